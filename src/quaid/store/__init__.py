"""The database: rows, indexes and transactions. The only room that speaks SQL."""

SCHEMA_VERSION = 8
"""Of the tables in schema.sql. It stands here for those who ask for it and open no memory."""

OLDEST_VERSION = 5
"""The oldest schema that migrations can bring forward."""
