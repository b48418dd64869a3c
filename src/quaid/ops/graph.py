"""The neighbourhood of a page, and the way from one page to another."""
