"""Pages that say the same: found, merged, renamed."""
