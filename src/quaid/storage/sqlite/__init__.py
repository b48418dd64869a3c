"""SQLite: connections, also encrypted and restricted ones, errors and backups."""
