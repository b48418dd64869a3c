"""Records to plain JSON values: what `--json`, MCP and HTTP send."""

from typing import Any


def plain(value: Any) -> Any:
    """Named records become objects, tuples become lists, everything else stays."""
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            return {name: plain(each) for name, each in zip(value._fields, value, strict=True)}
        return [plain(each) for each in value]
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value
