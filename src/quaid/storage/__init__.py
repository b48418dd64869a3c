"""The database: rows, indexes and transactions. SQL occurs only in this package.

A memory is one SQLite database file with its pages, facts, links and conversations.
"""

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
