"""Shared spaces on a device: the connection to a hub, and the copy of a space in the memory."""
