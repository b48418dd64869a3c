"""One protocol each, built by walking the register of operations."""
