"""Settings that are kept in the database."""

from quaid.store import settings
from quaid.store.db import Database


def test_a_new_memory_has_its_defaults(db: Database) -> None:
    assert settings.all(db) == [
        ("chunk_strategy", "section"),
        ("default_token_budget", "4000"),
        ("search_merge_strategy", "sum"),
        ("version", "8"),
    ]


def test_a_setting_can_be_changed_and_added(db: Database) -> None:
    db.write(lambda tx: settings.set(tx, "chunk_strategy", "page"))
    db.write(lambda tx: settings.set(tx, "new", "välue"))
    assert settings.get(db, "chunk_strategy") == "page"
    assert settings.get(db, "new") == "välue"


def test_an_unknown_setting_is_none(db: Database) -> None:
    assert settings.get(db, "unheard-of") is None
