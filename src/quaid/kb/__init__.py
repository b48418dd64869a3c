"""The knowledge base: org nodes in a git repository."""
