"""Sidecars to sources and back."""

from typing import Any

import pytest
from hypothesis import given, strategies as st

from quaid.folders import indexer

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["sources", "sidecar", "x"]), inner)
    ),
    max_leaves=8,
)


def test_a_sidecar_belongs_to_the_page_above_its_folder() -> None:
    assert indexer.sidecar_page_stem("people/.raw/alice.json") == "people/alice"
    assert indexer.sidecar_page_stem(".raw/a.b.JSON") == "a.b"
    assert indexer.sidecar_path("people/alice") == "people/.raw/alice.json"
    assert indexer.sidecar_path("alice") == ".raw/alice.json"


def test_each_source_is_one_value() -> None:
    assert indexer.parse_sidecar(b'{"sources": {"crm": {"id": 7}, "web": null}}') == {
        "crm": {"id": 7},
        "web": None,
    }


def test_any_other_json_is_kept_whole() -> None:
    assert indexer.parse_sidecar(b'\xef\xbb\xbf{"name": "Bob"}') == {"sidecar": {"name": "Bob"}}
    assert indexer.parse_sidecar(b"[1, 2]") == {"sidecar": [1, 2]}
    assert indexer.parse_sidecar(b'{"sources": ["crm"]}') == {"sidecar": {"sources": ["crm"]}}


def test_other_keys_beside_the_sources_are_kept() -> None:
    assert indexer.parse_sidecar(b'{"sources": {"crm": 1}, "fetched": "today"}') == {
        "crm": 1,
        "sidecar": {"fetched": "today"},
    }


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"a": NaN}', b'{"a": 1e999}', b'"\\ud800"', b"\xff", b"[" * 100_000, b"1" * 5000]
)
def test_invalid_sidecar_gives_a_reason(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        indexer.parse_sidecar(data)


@given(st.dictionaries(st.sampled_from(["crm", "web", "sidecar", "sources"]), JSON, min_size=1))
def test_sources_survive_being_written_and_read(sources: dict[str, Any]) -> None:
    assert indexer.parse_sidecar(indexer.render_sidecar(sources)) == sources
