"""Quaid: a local-first memory that one person and their AI agents share."""

__version__ = "0.1.0"
