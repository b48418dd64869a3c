"""JSON to values, read by the scanner of the standard library without the rest of its module.

Loading `json` costs a cold command a tenth of what `import apsw` does, and with `re`, which it needs, nearly half.
What the scanner cannot read goes to `json.loads`, which says what is wrong with it.
"""

from quaid.annotations import Any

_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class _Reading:
    """What the scanner asks for; the values are those of `json.loads`."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = _NUMBERS.__getitem__


_scan: Any = None
try:
    from _json import make_scanner

    _scan = make_scanner(_Reading)  # type: ignore[arg-type]
except (ImportError, AttributeError, TypeError):  # not CPython, or not as we know it
    pass


def loads(text: str) -> Any:
    """The value of a text; ValueError when it is no JSON."""
    if _scan is not None:
        try:
            value, end = _scan(text, 0)
        except (StopIteration, ValueError):  # empty, or begins with a space, or is wrong
            pass
        else:
            if end == len(text):
                return value
    import json

    return json.loads(text)
