"""The database: rows, indexes and transactions. SQL is written in this package only."""

SCHEMA_VERSION = 8
"""Of the tables in schema.sql. It stands here for those who ask for it and open no memory."""

OLDEST_VERSION = 5
"""The oldest schema that migrations can bring forward."""
