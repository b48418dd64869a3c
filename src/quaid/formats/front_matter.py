"""Front matter: YAML and TOML to plain values, and plain values to YAML.

Plain values are what JSON can carry: str keys, str, bool, None, finite floats, integers of 64 bits, lists and
mappings. Reading is capped, because front matter comes from anywhere: a hostile block is refused at little
cost, before a parser expands it. Does not know where a block begins and ends in a file.
"""

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from quaid.errors import InvalidFrontMatter
from quaid.formats import yaml_writer

LARGEST = 64 * 1024
DEEPEST = 100
MOST_BRACKETS = 2000  # the YAML reader's time grows with the square of their depth, which quotes can hide

# Patterns, not compiled here: only a block that is odd or broken meets them.
_ANCHOR = "(?<![^\\s\ufeff\\[{,:?-])&([0-9A-Za-z_-]+)"
_ALIAS = "(?<![^\\s\ufeff\\[{,:?-])\\*([0-9A-Za-z_-]+)"
_PLACE = r"\s*\(?\bat (?:line ([0-9]+),? column [0-9]+|position ([0-9]+)|end of document)\)?"
_DUPLICATE = r'(?s)duplicate entry with key "(.*)"'
_REWORDED = {
    "unhashable": "a mapping or a list stands where a key should",
    "more than one document": "it holds more than one YAML document",
    "codec can't encode": "it holds a lone surrogate, which is no character",
    "as u128": "an integer has more than 64 bits; put it in quotes",
    "as i128": "an integer has more than 64 bits; put it in quotes",
}


def read_yaml(text: str, first_line: int = 1) -> dict[str, Any]:
    """The mapping in a YAML block, or InvalidFrontMatter; first_line is its place in the file."""
    _refuse(text)
    import ryaml

    try:
        values = ryaml.loads(text)  # type: ignore[attr-defined]
    except ValueError as error:
        _fail(str(error), text, first_line)
    except BaseException as error:  # a panic inside the reader is no Exception
        if type(error).__name__ != "PanicException":
            raise
        raise InvalidFrontMatter(problem="the YAML reader gave up on it") from None
    return _mapping(values)


def read_toml(text: str, first_line: int = 1) -> dict[str, Any]:
    """The table in a TOML block, or InvalidFrontMatter; dates and times become ISO 8601 text."""
    _refuse(text)
    import tomllib

    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        _fail(str(error), text, first_line)
    return _mapping(values)


def dump_yaml(values: Mapping[str, Any]) -> str:
    """The YAML of plain values; read_yaml gives them back as long as it fits into LARGEST."""
    text = yaml_writer.write(values)
    return yaml_writer.write(values, guarded=True) if _refusal(text) else text


def plain_values(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Any mapping as plain values: the door for front matter that does not come out of a file."""
    plain = _mapping(dict(values))
    _refuse(dump_yaml(plain))
    return plain


def _refuse(text: str) -> None:
    refusal = _refusal(text)
    if refusal:
        raise InvalidFrontMatter(problem=refusal)


def _refusal(text: str) -> str | None:
    """Why a block is not even handed to its parser, if so."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    if size > LARGEST:
        return f"it has {size:,} bytes and {LARGEST:,} are allowed"
    brackets = text.count("[") + text.count("{")
    if brackets > MOST_BRACKETS:
        return f"it has {brackets:,} brackets and {MOST_BRACKETS:,} are allowed"
    if brackets > DEEPEST and _bracket_depth(text) > DEEPEST:
        return f"it nests deeper than {DEEPEST} levels"
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
    """Raise InvalidFrontMatter with the parser's complaint in a few words, and its line in the file."""
    places, duplicate = list(re.finditer(_PLACE, message)), re.search(_DUPLICATE, message)
    line = 1
    if duplicate:
        key = re.compile(rf"""^[\s-]*["']?{re.escape(duplicate[1])}["']?\s*:""", re.MULTILINE)
        line = ([text.count("\n", 0, again.end()) + 1 for again in key.finditer(text)] + [1, 1])[1]
        message = f"the key {duplicate[1][:40]!r} appears twice"
    elif places:
        # Where a bracket or a quotation mark is missing, the place where it opened says more than the end.
        line = _line(places[0] if "block" in message else places[-1], text)
        message = message[: places[0].start()] or message
    message = next((words for sign, words in _REWORDED.items() if sign in message), message)
    raise InvalidFrontMatter(problem=f"line {line + first_line - 1}: {message[:120].strip()}") from None


def _line(place: re.Match[str], text: str) -> int:
    if place[1]:
        return min(int(place[1]), text.count("\n") + 1)
    before = text.encode("utf-8", "replace")
    return (before[: int(place[2])] if place[2] else before).count(b"\n") + 1


def _mapping(values: Any) -> dict[str, Any]:
    if values is None:
        return {}
    if not isinstance(values, dict):
        kind = "a list" if isinstance(values, list) else "plain text"
        raise InvalidFrontMatter(problem=f"it is {kind}, not 'key: value' lines")
    return _plain_mapping(values, 1)


def _plain_mapping(values: dict[Any, Any], depth: int) -> dict[str, Any]:
    plain = {_plain_key(key): _plain(value, depth + 1) for key, value in values.items()}
    if len(plain) < len(values):
        raise InvalidFrontMatter(problem="two of its keys are spelled alike")
    return plain


def _plain_key(key: Any) -> str:
    if key is None or isinstance(key, bool):
        return "null" if key is None else str(key).lower()
    return str(_plain(key, 0))


def _plain(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _without_surrogates(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 64 else str(value)
    if isinstance(value, float):
        return value if value - value == 0 else ".nan" if value != value else ".inf" if value > 0 else "-.inf"
    if isinstance(value, (dict, list, tuple)) and depth > DEEPEST:
        raise InvalidFrontMatter(problem=f"it nests deeper than {DEEPEST} levels")
    if isinstance(value, dict):
        return _plain_mapping(value, depth)
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    return _without_surrogates(value.isoformat() if hasattr(value, "isoformat") else str(value))


def _without_surrogates(text: str) -> str:
    """No file and no database can hold a lone surrogate; JSON can smuggle one in."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
