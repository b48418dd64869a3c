"""Sources that were taken in: their bytes once, found again by content and name."""

from quaid.model.page import build_page
from quaid.storage import checks, page_edits
from quaid.storage.history import Imports, IngestSource
from quaid.storage.sqlite.connection import Database

NOW = "2026-04-25T12:00:00Z"
MINUTES = IngestSource("meeting", "meeting/17", "meeting/17.md", b"What was said.", "a" * 64)


def save(db: Database, slug: str) -> int:
    page = build_page(slug, {}, "x", "")
    return db.write(lambda tx: page_edits.save(tx, page, uuid=slug, now=NOW, expected_version=None)).id


def keep(db: Database, import_id: str, source: IngestSource = MINUTES, **more: object) -> None:
    page_ids = more.get("page_ids", [])
    page = more.get("page")
    db.write(
        lambda tx: source.keep(tx, import_id=import_id, now=NOW, page_ids=page_ids, page=page)  # type: ignore[arg-type]
    )


def test_the_same_bytes_are_known_by_their_source_or_by_any(db: Database) -> None:
    keep(db, "i1")
    assert Imports(db).last_ingest("a" * 64, "meeting/17") == ("i1", "meeting/17", NOW, ())
    assert Imports(db).last_ingest("a" * 64, "meeting/18") is None
    assert Imports(db).last_ingest("a" * 64) is not None
    assert Imports(db).last_ingest("b" * 64) is None


def test_a_source_is_new_again_when_its_pages_are_gone(db: Database) -> None:
    first, second = save(db, "a"), save(db, "b")
    keep(db, "i1", page_ids=[first, second])
    db.write(lambda tx: tx.execute("DELETE FROM pages WHERE slug = 'a'"))
    known = Imports(db).last_ingest("a" * 64)
    assert known is not None
    assert known.slugs == ("b",)
    db.write(lambda tx: tx.execute("DELETE FROM pages"))
    assert Imports(db).last_ingest("a" * 64) is None


def test_bytes_are_kept_once_and_given_back_by_every_ingest(db: Database) -> None:
    keep(db, "i1")
    keep(db, "i2")
    assert db.one("SELECT count(*) FROM raw_imports") == (1,)
    for import_id in ("i1", "i2"):
        assert list(Imports(db).contents(import_id)) == [("meeting/17.md", b"What was said.")]
    assert [batch.source_dir for batch in Imports(db).all()] == ["meeting: meeting/17"] * 2
    assert checks.validate(db) == []


def test_a_source_is_never_taken_for_a_file_of_a_folder(db: Database) -> None:
    page_id = save(db, "sources/a")
    keep(
        db, "i1", MINUTES._replace(ref="/home/a.md", file_path="a.md"), page_ids=[page_id], page=(page_id, 1)
    )
    assert Imports(db).files() == {}
    assert Imports(db).origin(page_id) is None
    assert (Imports(db).newest_source(page_id) or ())[:2] == ("/home/a.md", 1)
    assert Imports(db).newest_source(99) is None
