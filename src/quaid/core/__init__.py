"""Pure values: what a page, an entry, a slug, a date is. No files, no SQL, no clock, no settings."""
