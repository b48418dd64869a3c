"""Questions that the memory could not answer."""
