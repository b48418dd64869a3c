"""Adapters for agent frameworks. Each module needs the package of its framework, and is loaded only when imported."""
