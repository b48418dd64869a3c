"""Taking in a source with everything that it changes, all or nothing."""
