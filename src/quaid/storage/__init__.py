"""The database: rows, indexes and transactions. SQL occurs only in this package.

A memory is one SQLite database file with its pages, facts, links and conversations.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

SCHEMA_VERSION = 12
"""The version of the tables in schema.sql.

It is defined here so that it can be imported without opening a memory.
"""

IMPORTED_VERSION = 5
"""The schema version of the predecessor written in Rust.

A memory with this version is imported when it is opened.
"""

PREVIOUS_VERSIONS = (8, 9, 10, 11)
"""The schema versions without authors and proposals (8), entries of chunks (9), shared spaces (10), and calls of
agents (11).

A memory with one of these versions is migrated in place when it is opened.
"""


class KeySources(NamedTuple):
    """Where the keys of encrypted memories are looked for, besides the keyring of the system."""

    secret: str
    """The value of QUAID_KEY, or ""."""
    key_file: str
    ask: Callable[[str], str] | None = None
    """Asks for a passphrase at the terminal. None in servers, hooks and other processes without a person."""
    asked_for: str = ""
    """The path of the memory whose passphrase is asked for."""


key_sources: dict[KeySources, None] = {}
"""The sources of all memories that this process uses.

The first bytes of a file tell which key is right, so the key of another memory does no harm.
"""


def as_json(value: Any) -> str:
    """Return a value as compact JSON, as columns hold it."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
