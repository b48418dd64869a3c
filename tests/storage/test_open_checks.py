"""What is looked at before a file is opened."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from quaid import storage
from quaid.errors import UnsafeSqlite
from quaid.storage.sqlite import connection as opening
from quaid.storage.sqlite.connection import Database


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ("3.54.1", True),
        ("3.51.3", True),
        ("3.51.2", False),
        ("3.52.0", True),
        ("3.50.7", True),
        ("3.50.6", False),
        ("3.50.11", True),
        ("3.44.6", True),
        ("3.44.5", False),
        ("3.45.0", False),
        ("3.40.1", False),
        ("3.9", False),
        ("4.0", True),
    ],
)
def test_only_a_sqlite_that_keeps_commits_is_used(version: str, safe: bool) -> None:
    assert opening.is_safe_sqlite(version) is safe


def test_an_unsafe_sqlite_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr("apsw.sqlite_lib_version", lambda: "3.40.1")
    with pytest.raises(UnsafeSqlite, match=r"3\.40\.1"):
        Database.create(path, "now")
    assert not os.path.exists(path)


def test_the_header_tells_version_and_log(db: Database) -> None:
    assert opening.read_header(db.path) == opening.DatabaseHeader(version=storage.SCHEMA_VERSION, wal=True)


def test_looking_at_a_file_keeps_the_locks_that_this_process_holds_on_it(
    db: Database, output: Callable[..., str]
) -> None:
    db.write(lambda tx: tx.execute("INSERT INTO config VALUES ('a', 'b')"))
    Database.open(db.path, "now").close()
    opening.read_header(db.path)
    # The other process is the last one as far as it can see, unless our locks still stand.
    output(
        """
        import sys
        from quaid.storage.sqlite.connection import Database
        Database.open(sys.argv[1], "now").close()
        """,
        db.path,
    )
    assert os.path.exists(db.path + "-wal")


def test_every_connection_keeps_the_rules(db: Database) -> None:
    rules = {
        name: db.connection.pragma(name)
        for name in ("journal_mode", "synchronous", "foreign_keys", "trusted_schema", "temp_store")
    }
    assert rules == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "trusted_schema": 0,
        "temp_store": 2,
    }
    assert db.connection.pragma("busy_timeout") >= 5000


@pytest.mark.parametrize("name", ["a b.db", "a?b.db", "a#b.db", "50%25.db", "记.db"])
def test_a_name_with_odd_characters_can_be_read_without_writing(tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    Database.create(path, "now").close()
    connection = opening.connect(path, writable=False)
    assert connection.readonly("main")
    assert connection.pragma("user_version") == storage.SCHEMA_VERSION
    connection.close()
