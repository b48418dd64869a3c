"""The hub: stores the spaces that several devices and people share, and serves them over HTTPS."""
