"""The database layer: rows, indexes and transactions. All SQL of Quaid is in this package.

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
"""Older schema versions. A memory with one of them is migrated in place when it is opened.

Schema 9 added authors and proposals, 10 the entries of chunks, 11 shared spaces, and 12 tool calls.
"""


class KeySources(NamedTuple):
    """Where to look for the keys of encrypted memories, besides the system keyring."""

    secret: str
    """The value of QUAID_KEY, or ""."""
    key_file: str
    ask: Callable[[str], str] | None = None
    """Prompts for a passphrase at the terminal. None in servers and other non-interactive processes."""
    asked_for: str = ""
    """The path of the memory for which `ask` may be called, or ""."""


key_sources: dict[KeySources, None] = {}
"""The key sources of all memories that this process uses. The values are unused.

A key can be checked against the first bytes of a file, so it does no harm to try the key of another memory.
"""


def as_json(value: Any) -> str:
    """Return a value as compact JSON, the format of JSON columns."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
