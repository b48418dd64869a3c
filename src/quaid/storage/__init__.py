"""The database: rows, indexes and transactions. SQL occurs only in this package."""

SCHEMA_VERSION = 8
"""Version of the tables in schema.sql. Defined here so that it can be imported without opening a memory."""

OLDEST_VERSION = 5
"""The oldest schema version that can be migrated."""
