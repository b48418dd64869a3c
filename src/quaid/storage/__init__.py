"""The database: rows, indexes and transactions. SQL occurs only in this package.

A memory is one SQLite database file with its pages, facts, links and conversations.
"""

SCHEMA_VERSION = 9
"""Version of the tables in schema.sql. Defined here so that it can be imported without opening a memory."""

IMPORTED_VERSION = 5
"""Schema version of the predecessor written in Rust. Its memories are imported when they are opened."""

PREVIOUS_VERSION = 8
"""Schema version without authors and proposals. Its memories are migrated in place when they are opened."""
