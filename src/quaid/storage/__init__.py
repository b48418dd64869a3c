"""The database: rows, indexes and transactions. SQL occurs only in this package.

A memory is one SQLite database file with its pages, facts, links and conversations.
"""

SCHEMA_VERSION = 8
"""Version of the tables in schema.sql. Defined here so that it can be imported without opening a memory."""

IMPORTED_VERSION = 5
"""Schema version of the predecessor written in Rust. Its memories are imported when they are opened."""


def version_problem(version: int) -> str:
    """Return why a memory with this schema version cannot be opened, or an empty string."""
    if version > SCHEMA_VERSION:
        return "a newer Quaid made it"
    if version < IMPORTED_VERSION:
        return f"older than {IMPORTED_VERSION}, the oldest that can be upgraded"
    if version not in (IMPORTED_VERSION, SCHEMA_VERSION):
        remedy = "`quaid export` of that one writes its pages, and `quaid import` reads them"
        return f"an unreleased Quaid made it; {remedy}"
    return ""
