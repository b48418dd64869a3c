"""Folders of files: what is there, bringing it in, writing it out."""
