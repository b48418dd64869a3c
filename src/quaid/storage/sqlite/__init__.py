"""SQLite: connections, errors, backups."""
