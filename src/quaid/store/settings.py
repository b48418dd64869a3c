"""The settings that are kept in the database.

Knows keys and values as text. Does not know which keys there are or what may stand in them.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import apsw

    from quaid.store.db import Database


def get(db: "Database", key: str) -> str | None:
    """The value of a setting, if it is set."""
    row = db.one("SELECT value FROM config WHERE key = ?", (key,))
    return None if row is None else row[0]


def set(tx: "apsw.Connection", key: str, value: str) -> None:
    """Give a setting a value."""
    tx.execute(
        "INSERT INTO config (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def all(db: "Database") -> list[tuple[str, str]]:
    """Every setting with its value, by key."""
    return [(key, value) for key, value in db.rows("SELECT key, value FROM config ORDER BY key")]


MEMORY_ID = "memory_id"
"""The key in quaid_config of the id by which a memory and its copies are known as one."""


def memory_id(db: "Database") -> str | None:
    """The id of a memory; None if it was made before memories had one and was never backed up."""
    row = db.one("SELECT value FROM quaid_config WHERE key = ?", (MEMORY_ID,))
    return None if row is None else str(row[0])


def set_memory_id(tx: "apsw.Connection", id: str) -> None:
    """Give a memory its id, unless it has one."""
    tx.execute("INSERT OR IGNORE INTO quaid_config (key, value) VALUES (?, ?)", (MEMORY_ID, id))
