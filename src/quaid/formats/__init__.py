"""Text to values and back: markdown pages and their front matter. No files, no SQL, no clock."""
