"""Page bundles: a page with its added links, facts and raw data, as bytes that devices and hubs exchange.

The bytes are canonical: equal bundles have equal bytes, and `decode` accepts no other spelling.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NoReturn

from quaid.errors import InvalidBundle, InvalidSlug
from quaid.model import slug as slugs
from quaid.model.dates import is_date

FORMAT = 1
MOST_BYTES = 16 * 1024 * 1024
"""Maximum size of an encoded bundle in bytes."""
DEEPEST = 110
"""Maximum nesting depth of JSON values in front matter."""

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_SURROGATE = re.compile("[\ud800-\udfff]")

FactKey = tuple[str, str, str, str | None, str]
"""Subject, predicate, object, valid_from and source_ref, which identify a fact on a page."""
LinkKey = tuple[str, str, str | None]
"""Target, relationship and valid_from, which identify an added link of a page."""


class BundleLink(NamedTuple):
    """A link that was added to the page. Links in the text of a page are not part of its bundle."""

    to: str
    """The uuid of the target page."""
    relationship: str
    context: str
    valid_from: str | None
    valid_until: str | None
    created_at: str

    @property
    def key(self) -> LinkKey:
        return self.to, self.relationship, self.valid_from


class BundleFact(NamedTuple):
    """A fact of the page, with the columns of the table `assertions` that do not depend on one database."""

    subject: str
    predicate: str
    object: str
    valid_from: str | None
    valid_until: str | None
    supersedes: FactKey | None
    """The key of the fact on the same page that this one replaces."""
    confidence: float
    asserted_by: str
    source_ref: str
    evidence_text: str
    created_at: str
    author: str

    @property
    def key(self) -> FactKey:
        return self.subject, self.predicate, self.object, self.valid_from, self.source_ref


class BundleRaw(NamedTuple):
    """The raw data of one source."""

    source: str
    fetched_at: str
    data: str
    """JSON, as stored."""

    @property
    def key(self) -> str:
        return self.source


class Bundle(NamedTuple):
    """A page and the rows that belong to it."""

    uuid: str
    slug: str
    frontmatter: dict[str, Any]
    truth: str
    timeline: str
    links: tuple[BundleLink, ...] = ()
    facts: tuple[BundleFact, ...] = ()
    raw: tuple[BundleRaw, ...] = ()
    deleted: bool = False


def json_text(value: Any) -> str:
    """Return a JSON value as text without blanks between its parts; the keys keep their order.

    Raise InvalidBundle for NaN and infinity.
    """
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise InvalidBundle(problem="it holds a number that JSON does not have") from error


def encode(bundle: Bundle) -> bytes:
    """Return the canonical bytes of a bundle: JSON with sorted keys. Front matter keeps the order of its keys.

    Links, facts and raw data are sorted. Raise InvalidBundle if the bundle breaks a rule of `decode`.
    """
    _check(bundle)
    return _dump(bundle)


def _dump(bundle: Bundle) -> bytes:
    parts = {
        "deleted": bundle.deleted,
        "facts": _sorted_rows(bundle.facts),
        "format": FORMAT,
        "frontmatter": bundle.frontmatter,
        "links": _sorted_rows(bundle.links),
        "raw": _sorted_rows(bundle.raw),
        "slug": bundle.slug,
        "timeline": bundle.timeline,
        "truth": bundle.truth,
        "uuid": bundle.uuid,
    }
    text = json_text(parts)
    if _SURROGATE.search(text):
        _refuse("a text holds half of a surrogate pair")
    data = text.encode()
    if len(data) > MOST_BYTES:
        _refuse(f"it has {len(data):,} bytes; the limit is {MOST_BYTES:,}")
    return data


def _sorted_rows(rows: Iterable[BundleLink | BundleFact | BundleRaw]) -> list[dict[str, Any]]:
    return sorted((dict(sorted(row._asdict().items())) for row in rows), key=json_text)


def digest(data: bytes) -> str:
    """Return the SHA-256 of the bytes of a bundle, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def decode(data: bytes) -> Bundle:
    """Return the bundle of canonical bytes. Raise InvalidBundle for all other bytes."""
    if len(data) > MOST_BYTES:
        _refuse(f"it has {len(data):,} bytes; the limit is {MOST_BYTES:,}")
    try:
        parts = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise InvalidBundle(problem="it is not JSON in UTF-8") from error
    if not isinstance(parts, dict) or parts.pop("format", None) != FORMAT:
        _refuse(f"it is not of format {FORMAT}")
    if set(parts) != set(Bundle._fields):
        _refuse(f"it must have the keys {', '.join(sorted(Bundle._fields))}")
    bundle = Bundle(
        **{
            **parts,
            "links": _rows(parts, "links", BundleLink),
            "facts": _rows(parts, "facts", _fact),
            "raw": _rows(parts, "raw", BundleRaw),
        }
    )
    _check(bundle)
    if _dump(bundle) != data:
        _refuse("its bytes are not canonical")
    return bundle


def _rows(parts: dict[str, Any], name: str, make: Callable[..., Any]) -> tuple[Any, ...]:
    if not isinstance(parts[name], list):
        _refuse(f"{name} must be a list")
    try:
        return tuple(make(**row) for row in parts[name])
    except TypeError as error:
        raise InvalidBundle(problem=f"{name} holds something else than {name}") from error


def _fact(**row: Any) -> BundleFact:
    fact = BundleFact(**row)
    return fact._replace(supersedes=tuple(fact.supersedes)) if isinstance(fact.supersedes, list) else fact


def _check(bundle: Bundle) -> None:
    """Raise InvalidBundle if a value has the wrong type, or the slug, a uuid, a date or raw data is invalid."""
    for name, kind in (("uuid", str), ("slug", str), ("truth", str), ("timeline", str), ("deleted", bool)):
        if not isinstance(getattr(bundle, name), kind):
            _refuse(f"{name} must be {'true or false' if kind is bool else 'text'}")
    if not _UUID.fullmatch(bundle.uuid):
        _refuse("its uuid is not one")
    try:
        if slugs.check(bundle.slug) != bundle.slug:
            _refuse("its slug is not in Unicode NFC")
    except InvalidSlug as error:
        raise InvalidBundle(problem=str(error).rstrip(".")) from error
    if not isinstance(bundle.frontmatter, dict):
        _refuse("its front matter must be an object")
    _check_json(bundle.frontmatter, DEEPEST)
    for link in bundle.links:
        _check_texts("links", link, optional=("valid_from", "valid_until"))
        _check_interval("links", link.valid_from, link.valid_until)
        if not _UUID.fullmatch(link.to):
            _refuse("the target of a link is not a uuid")
    for fact in bundle.facts:
        _check_fact(fact)
    for raw in bundle.raw:
        _check_raw(raw)
    if len({raw.source for raw in bundle.raw}) < len(bundle.raw):
        _refuse("two rows of raw have the same source")


def _check_fact(fact: BundleFact) -> None:
    _check_texts("facts", fact, optional=("valid_from", "valid_until"), other=("supersedes", "confidence"))
    _check_interval("facts", fact.valid_from, fact.valid_until)
    if fact.asserted_by not in ("agent", "manual", "import", "enrichment"):
        _refuse(f"asserted_by cannot be {fact.asserted_by[:40]!r}")
    if not isinstance(fact.confidence, float) or not 0 <= fact.confidence <= 1:
        _refuse("the confidence of a fact must be a fraction from 0.0 to 1.0")
    other = fact.supersedes
    if other is not None and not (
        isinstance(other, tuple)
        and len(other) == 5
        and all(isinstance(part, str) or (part is None and place == 3) for place, part in enumerate(other))
    ):
        _refuse("supersedes must be the key of a fact")


def _check_raw(raw: BundleRaw) -> None:
    _check_texts("raw", raw)
    try:
        json.loads(raw.data)
    except (ValueError, RecursionError) as error:
        raise InvalidBundle(problem="raw data is not JSON") from error


def _check_texts(
    name: str,
    row: BundleLink | BundleFact | BundleRaw,
    optional: tuple[str, ...] = (),
    other: tuple[str, ...] = (),
) -> None:
    for column, value in row._asdict().items():
        if column in other or (value is None and column in optional):
            continue
        if not isinstance(value, str):
            _refuse(f"{name}: {column} must be text")


def _check_interval(name: str, since: str | None, until: str | None) -> None:
    if not all(day is None or is_date(day) for day in (since, until)):
        _refuse(f"{name}: valid_from and valid_until must be dates")
    if since and until and until < since:
        _refuse(f"{name}: valid_until is before valid_from")


def _check_json(value: Any, depth: int) -> None:
    if depth == 0:
        _refuse("its front matter is nested too deeply")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                _refuse("a key of its front matter is not text")
            _check_json(item, depth - 1)
    elif isinstance(value, list):
        for item in value:
            _check_json(item, depth - 1)
    elif value is not None and not isinstance(value, str | int | float):
        _refuse("its front matter holds a value that JSON does not have")


def _refuse(problem: str) -> NoReturn:
    raise InvalidBundle(problem=problem)
