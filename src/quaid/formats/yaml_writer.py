"""Plain values as YAML that reads the same under YAML 1.2 and 1.1, except that days are dates in YAML 1.1.

No YAML library is loaded. Block style for mappings and for what is long, flow style for short lists. Text stands bare
only where no reader could take it for anything else, and is quoted as in JSON otherwise.
"""

import re
from collections.abc import Mapping
from typing import Any

from quaid.model import dates

_WIDEST_LIST = 100
_LONGEST_KEY = 500  # readers give up on `key:` beyond 1,024 characters and want `? key`

_BARE = re.compile(r"[^\W\d](?:[\w ./@+()'!%;=~–—’-]*[\w.)!%'’])?")
_BARE_URL = re.compile(r"https?://[\w./%=~+-]*[\w/]")
_MISREAD = frozenset(
    ("y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf", "infinity")
)

_SURROGATE = re.compile("[\ud800-\udfff]")
_UNPRINTABLE = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)
_ESCAPES = {
    **{code: f"\\u{code:04x}" for code in _UNPRINTABLE},
    **str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}),
}
_GUARDED_ESCAPES = {**_ESCAPES, **{ord(mark): f"\\u{ord(mark):04x}" for mark in "[]{}&*"}}


def write(values: Mapping[str, Any], *, guarded: bool = False) -> str:
    """The YAML lines of a mapping; guarded hides from naive checks the signs that stand within text."""
    lines: list[str] = []
    _Writer(lines, guarded).mapping(values, "")
    return "".join([line + "\n" for line in lines])


class _Writer:
    """Appends lines; holds the two things that every part of the tree needs."""

    def __init__(self, lines: list[str], guarded: bool) -> None:
        self.lines = lines
        self.guarded = guarded

    def mapping(self, values: Mapping[str, Any], indent: str) -> None:
        for key, value in values.items():
            name = self.text(key)
            if len(name) > _LONGEST_KEY:
                self.lines.append(f"{indent}? {name}")
                name = ""
            self.entry(f"{indent}{name}:", value, indent)

    def sequence(self, items: list[Any] | tuple[Any, ...], indent: str) -> None:
        for item in items:
            if isinstance(item, dict) and item:
                first = len(self.lines)
                self.mapping(item, indent + "  ")
                self.lines[first] = f"{indent}- {self.lines[first][len(indent) + 2 :]}"
            else:
                self.entry(f"{indent}-", item, indent)

    def entry(self, head: str, value: Any, indent: str) -> None:
        inline = self.inline(value)
        if inline is not None:
            self.lines.append(f"{head} {inline}")
            return
        self.lines.append(head)
        if isinstance(value, dict):
            self.mapping(value, indent + "  ")
        else:
            self.sequence(value, indent + "  ")

    def inline(self, value: Any) -> str | None:
        """The value if it goes on the line of its key: scalars, empty things and short lists of scalars."""
        if isinstance(value, dict):
            return None if value else "{}"
        if not isinstance(value, (list, tuple)):
            return self.scalar(value, bare_urls=True)
        if value and (self.guarded or any(isinstance(item, (dict, list, tuple)) for item in value)):
            return None
        flow = ", ".join([self.scalar(item, bare_urls=False) for item in value])
        return f"[{flow}]" if len(flow) <= _WIDEST_LIST else None

    def scalar(self, value: Any, *, bare_urls: bool) -> str:
        if value is None or isinstance(value, bool):
            return "null" if value is None else str(value).lower()
        if isinstance(value, int) and -(1 << 63) <= value < 1 << 64:
            return str(value)
        if isinstance(value, float) and value - value == 0:
            mantissa, exponent, power = repr(value).partition("e")
            return mantissa + (".0" if "." not in mantissa else "") + exponent + power
        text = str(value)
        if dates.is_date(text):
            return text  # Obsidian and other readers take a day for a date only without quotes
        return self.text(text, bare_urls=bare_urls)

    def text(self, text: str, *, bare_urls: bool = False) -> str:
        if (
            _BARE.fullmatch(text) or (bare_urls and _BARE_URL.fullmatch(text))
        ) and text.lower() not in _MISREAD:
            return text
        quoted = text.translate(_GUARDED_ESCAPES if self.guarded else _ESCAPES)
        return f'"{quoted}"' if quoted.isascii() else '"' + _SURROGATE.sub("\ufffd", quoted) + '"'
