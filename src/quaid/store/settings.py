"""The settings that are kept in the database.

Knows keys and values as text. Does not know which keys there are or what may stand in them.
"""

from quaid.annotations import TYPE_CHECKING

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
