"""Imports: the bytes of files, and which files an import stands for."""

import hashlib

import apsw
import pytest

from quaid.model.page import build_page
from quaid.storage import history, page_edits, pages
from quaid.storage.history import ImportBatch, ImportedFile, Imports, NewImport
from quaid.storage.sqlite.connection import Database, Transaction

T1, T2 = "2026-04-25T12:00:01Z", "2026-04-25T12:00:02Z"
ODD = b"\xef\xbb\xbf# A\r\n\0\xff"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def take_in(
    tx: Transaction, import_id: str, path: str, data: bytes, slug: str | None = None, now: str = T1
) -> int:
    page_id = version = None
    if slug:
        page = build_page(slug, {}, data.decode("utf-8", "replace"), "")
        saved = page_edits.save(tx, page, uuid=slug, now=now, expected_version=None)
        page_id, version = saved.id, saved.version
    NewImport(import_id, now).add_files(tx, [(page_id, version, path, data, digest(data))])
    return tx.last_insert_rowid()


@pytest.fixture
def first(db: Database) -> dict[str, int]:
    """An import of two pages and a file that makes none."""

    def work(tx: Transaction) -> dict[str, int]:
        NewImport("first", T1).begin(tx, "/notes")
        kept = {
            "a.md": take_in(tx, "first", "a.md", ODD, "a"),
            "b.md": take_in(tx, "first", "b.md", b"b", "b"),
            "README.md": take_in(tx, "first", "README.md", b"hello"),
        }
        NewImport("first", T1).finish(tx, 2)
        return kept

    return db.write(work)


def test_every_file_comes_back_byte_for_byte(db: Database, first: dict[str, int]) -> None:
    assert list(Imports(db).contents("first")) == [
        ("README.md", b"hello"),
        ("a.md", ODD),
        ("b.md", b"b"),
    ]
    assert history.version_bytes(db, first["a.md"]) == ODD
    assert list(Imports(db).contents("unknown")) == []


def test_imported_file_is_found_by_its_path(db: Database, first: dict[str, int]) -> None:
    known = Imports(db).files()
    page = pages.require(db, "a")
    assert known["a.md"] == ImportedFile(first["a.md"], digest(ODD), page.id, "a", 1, 1)
    assert known["README.md"] == ImportedFile(first["README.md"], digest(b"hello"), None, None, None, None)
    assert known == Imports(db).files("first")


def test_a_page_that_was_edited_since_shows_it(db: Database, first: dict[str, int]) -> None:
    db.write(lambda tx: page_edits.touch(tx, "a", expected_version=None, now=T2))
    known = Imports(db).files()["a.md"]
    assert (known.page_version_at_import, known.page_version_now) == (1, 2)


def test_import_covers_unchanged_files(db: Database, first: dict[str, int]) -> None:
    def work(tx: Transaction) -> None:
        NewImport("second", T2).begin(tx, "/copy/of/notes", {"a.md": first["a.md"]})
        take_in(tx, "second", "b.md", b"b2", "b", T2)
        NewImport("second", T2).finish(tx, 2)

    db.write(work)
    assert dict(Imports(db).contents("second")) == {"a.md": ODD, "b.md": b"b2"}
    assert dict(Imports(db).contents("first"))["b.md"] == b"b"
    assert Imports(db).all() == [
        ImportBatch("second", "/copy/of/notes", 2, 2, T2),
        ImportBatch("first", "/notes", 2, 3, T1),
    ]


def test_the_newest_bytes_of_a_path_are_the_active_ones(db: Database, first: dict[str, int]) -> None:
    def work(tx: Transaction) -> None:
        NewImport("second", T2).begin(tx, "/notes")
        take_in(tx, "second", "a.md", b"new", "a", T2)
        take_in(tx, "second", "README.md", b"again", now=T2)

    db.write(work)
    known = Imports(db).files()
    assert known["a.md"].content_hash == digest(b"new")
    assert known["a.md"].page_version_at_import == 2
    assert known["README.md"].content_hash == digest(b"again")
    assert db.one("SELECT count(*) FROM raw_imports WHERE is_active = 0") == (2,)


def test_a_page_has_one_active_file_even_when_it_moved(db: Database, first: dict[str, int]) -> None:
    def work(tx: Transaction) -> None:
        NewImport("second", T2).begin(tx, "/notes")
        take_in(tx, "second", "new/a.md", b"moved", "a", T2)

    db.write(work)
    assert Imports(db).files().keys() == {"new/a.md", "b.md", "README.md"}
    origin = Imports(db).origin(pages.require(db, "a").id)
    assert origin
    assert origin[:2] == ("/notes", "new/a.md")
    assert Imports(db).origin(99) is None


def test_a_removed_page_takes_its_bytes_along(db: Database, first: dict[str, int]) -> None:
    db.write(lambda tx: tx.execute("DELETE FROM pages WHERE slug = 'a'"))
    assert dict(Imports(db).contents("first")).keys() == {"b.md", "README.md"}
    assert "a.md" not in Imports(db).files()


def test_every_file_is_logged_with_its_hash(db: Database, first: dict[str, int]) -> None:
    page = pages.require(db, "b")
    rows = db.rows("SELECT import_id, source_ref, content_hash, pages_updated FROM ingest_log ORDER BY id")
    assert rows[1:] == [
        ("first", "b.md", digest(b"b"), f"[{page.id}]"),
        ("first", "README.md", digest(b"hello"), "[]"),
    ]


def test_two_active_rows_of_one_page_cannot_be(db: Database, first: dict[str, int]) -> None:
    with pytest.raises(apsw.ConstraintError):
        db.write(lambda tx: tx.execute("UPDATE raw_imports SET is_active = 1, page_id = 1 WHERE page_id = 2"))
