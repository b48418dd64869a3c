"""Forgetting a page everywhere, with the proof."""
