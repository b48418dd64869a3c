"""Values as JSON, the form in which rows keep what has no columns of its own."""

from quaid.annotations import Any


def as_json(value: Any) -> str:
    """A value as JSON, the shortest way."""
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def from_json(text: str) -> Any:
    """The value. A row that keeps nothing needs no reader."""
    if text in ("{}", "[]"):
        return {} if text == "{}" else []
    from quaid.core import json_reading

    return json_reading.loads(text)
