"""Turn texts into vectors with local or remote models."""
