"""Sync folders of markdown and org files with the index."""
