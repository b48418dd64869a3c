"""Text to vectors. Knows models and how to reach them; knows nothing of pages, chunks or rows."""
