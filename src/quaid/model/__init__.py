"""The domain model as plain values and functions, without access to files, clock or database."""
