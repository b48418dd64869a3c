"""The database: rows, indexes and transactions. The only room that speaks SQL."""
