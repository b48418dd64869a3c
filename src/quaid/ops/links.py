"""Links between pages: add, close, list, remove."""
