"""The spool yields the files that were added, and leaves no file behind."""

from pathlib import Path

from quaid.folders import indexer
from quaid.folders.indexer import Spool, SpooledFile
from quaid.model.page import derive_data


def test_items_are_returned_in_order(tmp_path: Path) -> None:
    text = "---\na: {b: [1, null, x]}\n---\nTruth\n\n---\n\n- **2026-04-14** | mail — Wrote.\n"
    page = indexer.parse_file("a.md", text.encode()).page
    assert page.entries
    items = [
        SpooledFile("a.md", "hash", b"\0\xff", page, derived=derive_data(page)),
        SpooledFile(".raw/a.json", "other", b"", None),
    ]
    with Spool(str(tmp_path / "memory.db")) as spool:
        for item in items:
            spool.add(item)
        assert spool.count == 2
        assert list(spool.files()) == items
        assert list(spool.files()) == items
        assert list(tmp_path.iterdir()) == []


def test_an_unused_spool_touches_no_disk(tmp_path: Path) -> None:
    with Spool(str(tmp_path / "missing" / "memory.db")) as spool:
        assert spool.count == 0
