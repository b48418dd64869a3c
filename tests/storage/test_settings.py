"""Settings that are kept in the database."""

from quaid.storage import collections
from quaid.storage.sqlite.connection import Database


def test_a_new_memory_has_its_defaults(db: Database) -> None:
    assert collections.list_settings(db) == [
        ("chunk_strategy", "section"),
        ("default_token_budget", "1500"),
        ("search_merge_strategy", "sum"),
        ("version", "12"),
    ]


def test_a_setting_can_be_changed_and_added(db: Database) -> None:
    db.write(lambda tx: collections.set_setting(tx, "chunk_strategy", "page"))
    db.write(lambda tx: collections.set_setting(tx, "new", "välue"))
    assert collections.get_setting(db, "chunk_strategy") == "page"
    assert collections.get_setting(db, "new") == "välue"


def test_unknown_setting_is_ignored(db: Database) -> None:
    assert collections.get_setting(db, "unheard-of") is None
