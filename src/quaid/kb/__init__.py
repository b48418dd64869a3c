"""A knowledge base: a private git repository of org nodes with one safe way to write."""
