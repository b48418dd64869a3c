"""Folders of markdown and org files, kept in step with the memory."""
