"""A notebook: a collection of markdown with customs of its own."""
