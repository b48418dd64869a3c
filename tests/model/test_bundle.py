"""Bundles as bytes: the same bundle has the same bytes, and other bytes are refused."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from quaid.errors import InvalidBundle
from quaid.model import bundle as bundles
from quaid.model.bundle import Bundle, BundleFact, BundleLink, BundleRaw

UUID = "01890000-0000-7000-8000-000000000001"
OTHER = "01890000-0000-7000-8000-000000000002"
FACT = BundleFact(
    *("Mira", "works_at", "Acme", "2024-01-01", None, None),
    *(1.0, "manual", "call", "She said so.", "2026-01-01T00:00:00Z", "owner"),
)
LINK = BundleLink(OTHER, "works_at", "since spring", "2024-04-01", None, "2026-01-01T00:00:00Z")
RAW = BundleRaw("crm", "2026-01-01T00:00:00Z", '{"id": 7}')
PAGE = Bundle(
    UUID,
    "people/mira",
    {"title": "Mira", "aliases": ["M"], "rank": 2.5},
    "# Mira\n\nFounder.",
    "- **2026-01-01** — Met.",
    (LINK,),
    (FACT, FACT._replace(object="Beta", supersedes=FACT.key)),
    (RAW,),
)

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXTS, VALUES, max_size=4), TEXTS, TEXTS, TEXTS)
def test_decoding_gives_the_bundle_that_was_encoded(
    frontmatter: dict[str, Any], truth: str, timeline: str, source: str
) -> None:
    page = PAGE._replace(
        frontmatter=frontmatter, truth=truth, timeline=timeline, raw=(RAW._replace(source=source),)
    )
    data = bundles.encode(page)
    assert bundles.decode(data) == page
    assert list(bundles.decode(data).frontmatter) == list(frontmatter)
    assert bundles.encode(bundles.decode(data)) == data


def test_the_order_of_rows_does_not_change_the_bytes() -> None:
    data = bundles.encode(PAGE)
    assert bundles.encode(PAGE._replace(facts=PAGE.facts[::-1])) == data
    assert bundles.digest(data) != bundles.digest(bundles.encode(PAGE._replace(deleted=True)))
    assert len(bundles.digest(data)) == 64


def changed(**parts: Any) -> bytes:
    """Return the bytes of the page with other values, without the checks of `encode`."""
    values = {**json.loads(bundles.encode(PAGE)), **parts}
    return json.dumps(dict(sorted(values.items())), ensure_ascii=False, separators=(",", ":")).encode()


def row(values: Any, **parts: Any) -> list[dict[str, Any]]:
    return [dict(sorted({**values._asdict(), **parts}.items()))]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "format"),
        (changed(format=2), "format"),
        (changed(format="1"), "format"),
        (changed(surprise=1), "must have the keys"),
        (changed(slug="../etc/passwd"), "not a slug"),
        (changed(slug="/etc/passwd"), "not a slug"),
        (changed(slug="team::people/mira"), "not a slug"),
        (changed(slug=""), "not a slug"),
        (changed(slug=None), "slug must be text"),
        (changed(uuid="1"), "uuid"),
        (changed(uuid=UUID.upper().replace("0", "A")), "uuid"),
        (changed(truth=1), "truth must be text"),
        (changed(truth=None), "truth must be text"),
        (changed(timeline=["a"]), "timeline must be text"),
        (changed(deleted=0), "true or false"),
        (changed(frontmatter=[]), "object"),
        (changed(frontmatter=json.loads('{"a":' * 120 + "1" + "}" * 120)), "nested"),
        (changed(links={}), "must be a list"),
        (changed(links=["a"]), "something else"),
        (changed(links=row(LINK, extra=1)), "something else"),
        (changed(links=row(LINK, to="people/mira")), "uuid"),
        (changed(links=row(LINK, valid_from="soon")), "dates"),
        (changed(links=row(LINK, valid_until="2020-01-01")), "before valid_from"),
        (changed(links=row(LINK, context=None)), "context must be text"),
        (changed(facts=row(FACT, confidence=2.0)), "confidence"),
        (changed(facts=row(FACT, confidence="1")), "confidence"),
        (changed(facts=row(FACT, asserted_by="me")), "asserted_by"),
        (changed(facts=row(FACT, supersedes=["a", "b"])), "supersedes"),
        (changed(facts=row(FACT, supersedes=7)), "supersedes"),
        (changed(raw=row(RAW, data="{")), "raw data"),
        (changed(raw=row(RAW) * 2), "same source"),
        (bundles.encode(PAGE).replace(b"Founder", b"\\ud800"), "surrogate"),
        (bundles.encode(PAGE) + b"\n", "canonical"),
        (bundles.encode(PAGE).replace(b'"deleted":false', b'"deleted":false,"deleted":false'), "canonical"),
        (b"\xef\xbb\xbf" + bundles.encode(PAGE), "not JSON"),
        (bundles.encode(PAGE).replace(b"2.5", b"NaN"), "number"),
        (b" " * (bundles.MOST_BYTES + 1), "bytes; the limit"),
    ],
)
def test_other_bytes_are_refused(data: bytes, problem: str) -> None:
    with pytest.raises(InvalidBundle, match=problem):
        bundles.decode(data)


def test_a_bundle_that_cannot_be_decoded_is_not_encoded() -> None:
    for page in (
        PAGE._replace(slug="../x"),
        PAGE._replace(truth="\ud800"),
        PAGE._replace(truth="x" * bundles.MOST_BYTES),
        PAGE._replace(frontmatter={"a": float("nan")}),
        PAGE._replace(frontmatter={"a": {1, 2}}),
    ):
        with pytest.raises(InvalidBundle):
            bundles.encode(page)
