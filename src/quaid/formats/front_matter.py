"""Front matter: read YAML and TOML, write YAML.

Values are restricted to JSON types. Input is limited in size and depth, because files may come from untrusted
sources.
"""

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from quaid.errors import InvalidFrontMatter
from quaid.model import dates

_WIDEST_LIST = 100
_LONGEST_KEY = 500  # parsers reject `key:` beyond 1,024 characters, and require `? key` instead

# Patterns that reading and searching do not need are strings here: `re` compiles them at first use and caches them.
_BARE = r"[^\W\d](?:[\w ./@+()'!%;=~–—’-]*[\w.)!%'’])?"
_BARE_URL = re.compile(r"https?://[\w./%=~+-]*[\w/]")
_MISREAD = frozenset(
    ("y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf", "infinity")
)

_SURROGATE = "[\ud800-\udfff]"
_UNPRINTABLE = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF, 0xFFFE, 0xFFFF)
_ESCAPES = {
    **{code: f"\\u{code:04x}" for code in _UNPRINTABLE},
    **str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}),
}
_GUARDED_ESCAPES = {**_ESCAPES, **{ord(mark): f"\\u{ord(mark):04x}" for mark in "[]{}&*"}}


def write_yaml(values: Mapping[str, Any], *, guarded: bool = False) -> str:
    """Return the YAML of a mapping.

    `guarded` escapes brackets, & and * in text, which _refusal() would mistake for YAML syntax.
    """
    lines: list[str] = []
    _YamlWriter(lines, guarded).mapping(values, "")
    return "".join([line + "\n" for line in lines])


class _YamlWriter:
    """Appends the YAML of nested values to a list of lines."""

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
        """Return the value as YAML that fits on one line, or None if it needs a block of its own."""
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
            return text  # Obsidian and other programs recognize dates only without quotes
        return self.text(text, bare_urls=bare_urls)

    def text(self, text: str, *, bare_urls: bool = False) -> str:
        if (
            re.fullmatch(_BARE, text) or (bare_urls and _BARE_URL.fullmatch(text))
        ) and text.lower() not in _MISREAD:
            return text
        quoted = text.translate(_GUARDED_ESCAPES if self.guarded else _ESCAPES)
        return f'"{quoted}"' if quoted.isascii() else '"' + re.sub(_SURROGATE, "\ufffd", quoted) + '"'


LARGEST_BLOCK = 64 * 1024
DEEPEST_NESTING = 100
# YAML parsing is quadratic in the nesting depth, and quotes can hide brackets from the depth check.
MOST_BRACKETS = 2000

# These are not compiled here, because they are used only for unusual or invalid blocks.
_ANCHOR = "(?<![^\\s\ufeff\\[{,:?-])&([0-9A-Za-z_-]+)"
_ALIAS = "(?<![^\\s\ufeff\\[{,:?-])\\*([0-9A-Za-z_-]+)"
_PLACE = r"\s*\(?\bat (?:line ([0-9]+),? column [0-9]+|position ([0-9]+)|end of document)\)?"
_DUPLICATE = r'(?s)duplicate entry with key "(.*)"'
_REWORDED = {
    "mapping values are not allowed": "mapping values are not allowed here; a value with ': ' in it needs quotes,"
    ' as in title: "Plan: phase 2"',
    "unhashable": "a mapping or a list stands where a key should",
    "more than one document": "it holds more than one YAML document",
    "codec can't encode": "it holds a lone surrogate, which is no character",
    "as u128": "an integer has more than 64 bits; put it in quotes",
    "as i128": "an integer has more than 64 bits; put it in quotes",
}


def read_yaml(text: str, first_line: int = 1) -> dict[str, Any]:
    """Return the mapping in a YAML block, or raise InvalidFrontMatter.

    `first_line` is the number of the block's first line in the file, used in the message.
    """
    _refuse(text)
    import ryaml

    try:
        values = ryaml.loads(text)  # type: ignore[attr-defined]
    except ValueError as error:
        _fail(str(error), text, first_line)
    except BaseException as error:  # a panic inside the parser is not an Exception
        if type(error).__name__ != "PanicException":
            raise
        raise InvalidFrontMatter(problem="the YAML reader gave up on it") from None
    return _check_mapping(values)


def read_toml(text: str, first_line: int = 1) -> dict[str, Any]:
    """Return the table in a TOML block, or raise InvalidFrontMatter. Dates and times become ISO 8601 text."""
    _refuse(text)
    import tomllib

    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        _fail(str(error), text, first_line)
    return _check_mapping(values)


def dump_yaml(values: Mapping[str, Any]) -> str:
    """Return the YAML of plain values. read_yaml returns the same values if the text fits into LARGEST_BLOCK."""
    text = write_yaml(values)
    return write_yaml(values, guarded=True) if _refusal(text) else text


def plain_values(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Convert a mapping to plain values and validate it, for front matter that does not come from a file."""
    plain = _check_mapping(dict(values))
    _refuse(dump_yaml(plain))
    return plain


def _refuse(text: str) -> None:
    refusal = _refusal(text)
    if refusal:
        raise InvalidFrontMatter(problem=refusal)


def _refusal(text: str) -> str | None:
    """Return why a block must not be passed to its parser, or None."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    if size > LARGEST_BLOCK:
        return f"it has {size:,} bytes and {LARGEST_BLOCK:,} are allowed"
    brackets = text.count("[") + text.count("{")
    if brackets > MOST_BRACKETS:
        return f"it has {brackets:,} brackets and {MOST_BRACKETS:,} are allowed"
    if brackets > DEEPEST_NESTING and _bracket_depth(text) > DEEPEST_NESTING:
        return f"it nests deeper than {DEEPEST_NESTING} levels"
    if "&" in text and "*" in text:
        shared = set(re.findall(_ANCHOR, text)).intersection(re.findall(_ALIAS, text))
        if shared:
            return f"it repeats the anchor &{min(shared)} by an alias, which is not supported"
    return None


def _bracket_depth(text: str) -> int:
    depth = deepest = 0
    for bracket in re.findall(r"[\[\]{}]", text):
        depth = depth + 1 if bracket in "[{" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest


def _fail(message: str, text: str, first_line: int) -> NoReturn:
    """Raise InvalidFrontMatter with a shortened parser message and the line in the file."""
    places, duplicate = list(re.finditer(_PLACE, message)), re.search(_DUPLICATE, message)
    line = 1
    if duplicate:
        key = re.compile(rf"""^[\s-]*["']?{re.escape(duplicate[1])}["']?\s*:""", re.MULTILINE)
        line = ([text.count("\n", 0, again.end()) + 1 for again in key.finditer(text)] + [1, 1])[1]
        message = f"the key {duplicate[1][:40]!r} appears twice"
    elif places:
        # For a missing bracket or quotation mark, the opening position is more helpful than the end.
        line = _error_line(places[0] if "block" in message else places[-1], text)
        message = message[: places[0].start()] or message
    message = next((words for sign, words in _REWORDED.items() if sign in message), message)
    raise InvalidFrontMatter(problem=f"line {line + first_line - 1}: {message[:120].strip()}") from None


def _error_line(place: re.Match[str], text: str) -> int:
    if place[1]:
        return min(int(place[1]), text.count("\n") + 1)
    before = text.encode("utf-8", "replace")
    return (before[: int(place[2])] if place[2] else before).count(b"\n") + 1


def _check_mapping(values: Any) -> dict[str, Any]:
    if values is None:
        return {}
    if not isinstance(values, dict):
        kind = "a list" if isinstance(values, list) else "plain text"
        raise InvalidFrontMatter(problem=f"it is {kind}, not 'key: value' lines")
    return _plain_mapping(values, 1)


def _plain_mapping(values: dict[Any, Any], depth: int) -> dict[str, Any]:
    plain = {_plain_key(key): _plain_value(value, depth + 1) for key, value in values.items()}
    if len(plain) < len(values):
        raise InvalidFrontMatter(problem="two of its keys are spelled alike")
    return plain


def _plain_key(key: Any) -> str:
    if key is None or isinstance(key, bool):
        return "null" if key is None else str(key).lower()
    return str(_plain_value(key, 0))


def _plain_value(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _without_surrogates(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 64 else str(value)
    if isinstance(value, float):
        return value if value - value == 0 else ".nan" if value != value else ".inf" if value > 0 else "-.inf"
    if isinstance(value, (dict, list, tuple)) and depth > DEEPEST_NESTING:
        raise InvalidFrontMatter(problem=f"it nests deeper than {DEEPEST_NESTING} levels")
    if isinstance(value, dict):
        return _plain_mapping(value, depth)
    if isinstance(value, (list, tuple)):
        return [_plain_value(item, depth + 1) for item in value]
    return _without_surrogates(value.isoformat() if hasattr(value, "isoformat") else str(value))


def _without_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON may contain but files and databases cannot store."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
