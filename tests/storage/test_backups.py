"""Copies beside a memory: which of them can take its place."""

import os
from pathlib import Path

import pytest

from quaid.model.page import build_page
from quaid.storage import collections, page_edits
from quaid.storage.sqlite import backup as backups
from quaid.storage.sqlite.connection import Database

NOW = "2026-04-25T12:00:00Z"


def memory(path: Path, *slugs: str) -> Database:
    db = Database.create(str(path), NOW)
    for slug in slugs:
        put(db, slug, f"{path.stem}/{slug} with the length of an id")
    return db


def put(db: Database, slug: str, uuid: str) -> None:
    page = build_page(slug, {}, f"# {slug}", "")
    db.write(lambda tx: page_edits.save(tx, page, uuid=uuid, now=NOW, expected_version=0))


def hurt(path: Path) -> None:
    """Take the first page of the file away, on which everything hangs."""
    with open(path, "r+b") as file:
        file.write(bytes(4096))


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A memory with two backups, the younger of which is damaged as well, and a younger memory of another person."""
    path = tmp_path / "memory.db"
    with memory(path, "a", "b") as db:
        for made, name in enumerate(("old.db", "young.db")):
            backups.create_backup(db, str(tmp_path / name))
            os.utime(tmp_path / name, (1_000 + made, 1_000 + made))
    memory(tmp_path / "work.db", "a", "b").close()
    with open(tmp_path / "young.db", "r+b") as file:
        file.seek(4096 * 4)
        file.write(b"\xff" * 4096 * 8)
    hurt(path)
    return path


def test_the_youngest_that_is_whole_is_found_and_no_other_memory(damaged: Path) -> None:
    copy = backups.newest_intact_copy(str(damaged), (str(damaged.parent),))
    assert copy is not None
    assert (os.path.basename(copy.path), copy.pages, copy.changed, copy.is_same) == (
        "old.db",
        2,
        NOW,
        True,
    )


def test_unreadable_copy_has_no_intact_part(damaged: Path) -> None:
    (damaged.parent / "old.db").unlink()
    assert backups.newest_intact_copy(str(damaged), (str(damaged.parent),)) is None


def test_the_backup_of_a_migration_counts_and_an_unfinished_one_does_not(damaged: Path) -> None:
    (damaged.parent / "old.db").rename(f"{damaged}.backup-v8-unfinished")
    assert backups.newest_intact_copy(str(damaged), (str(damaged.parent),)) is None
    os.rename(f"{damaged}.backup-v8-unfinished", f"{damaged}.backup-v8")
    copy = backups.newest_intact_copy(str(damaged), (str(damaged.parent),))
    assert copy is not None
    assert copy.path == os.path.realpath(f"{damaged}.backup-v8")


def test_empty_file_may_be_a_copy(damaged: Path) -> None:
    damaged.write_bytes(b"")
    copy = backups.newest_intact_copy(str(damaged), (str(damaged.parent),))
    assert copy is not None
    assert (os.path.basename(copy.path), copy.is_same) == ("work.db", False)


def newest(path: Path) -> str | None:
    backup = backups.newest_backup(str(path), (str(path.parent),))
    return os.path.basename(backup[0]) if backup else None


def test_only_a_copy_of_the_same_memory_is_its_backup(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Database.create(str(path), NOW, "id-of-one") as db:
        put(db, "a", "uuid of a")
        with Database.create(str(tmp_path / "work.db"), NOW, "id-of-another") as other:
            put(other, "a", "uuid of a")  # taken in from the same folder
        assert newest(path) is None
        backups.create_backup(db, str(tmp_path / "copy.db"))
        os.utime(tmp_path / "copy.db", (1_000, 1_000))
        put(db, "b", "uuid of b")
    assert newest(path) == "copy.db"
    assert newest(tmp_path / "work.db") is None


def test_a_memory_without_an_id_gets_one_with_its_first_backup(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with memory(path, "a") as db:
        assert collections.read_memory_id(db) is None
        backups.create_backup(db, str(tmp_path / "old.db"))  # as before there were ids
        backups.create_backup(db, str(tmp_path / "young.db"), "the-id")
        assert collections.read_memory_id(db) == "the-id"
        backups.create_backup(db, str(tmp_path / "younger.db"), "another-id")
        assert collections.read_memory_id(db) == "the-id"
    memory(tmp_path / "work.db", "a").close()  # made in the same second, with other pages
    for name in ("work.db", "younger.db", "young.db", "old.db"):
        assert newest(path) == ("younger.db" if name == "work.db" else name)
        (tmp_path / name).unlink()
    assert newest(path) is None


def test_a_damaged_memory_is_compared_by_id(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with Database.create(str(path), NOW, "0199-the-id-of-one") as db:
        put(db, "a", "uuid of a")
        backups.create_backup(db, str(tmp_path / "copy.db"))
        with db.connection as tx:
            tx.execute("UPDATE pages SET uuid = 'another uuid'")
    hurt(path)
    copy = backups.newest_intact_copy(str(path), (str(tmp_path),))
    assert copy is not None
    assert (os.path.basename(copy.path), copy.is_same) == ("copy.db", True)
