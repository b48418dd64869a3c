"""What the memory is made of, as plain values and functions: no files, no clock, no database."""
