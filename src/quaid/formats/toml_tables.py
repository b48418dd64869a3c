"""A table of a TOML text put in, changed or taken out; every other line stays as it is.

Edits whole lines and proves each edit: the new text must read as the old values with only that table changed, or
it is refused. Does not know files, nor what the tables mean.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

_HEADER = re.compile(r"[ \t]*\[{1,2}([^\[\]\n]+)\]{1,2}[ \t]*(?:#.*)?")
_INLINE = re.compile(r"""((?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_.\- \t])++)=[ \t]*\{""")
_PART = re.compile(r"""[ \t]*("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)[ \t]*(\.|\Z)""")


class NotToml(ValueError):
    """The text is not TOML, or writes the table in a way that is not edited here."""


def parse(text: str) -> dict[str, Any]:
    """The values of a text, or NotToml."""
    import tomllib

    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise NotToml(str(error)) from None


def put(text: str, path: tuple[str, ...], values: Mapping[str, str | list[str]]) -> str:
    """The text with a table that has these values; other keys of the table stay."""
    try:
        return _put(text, path, values)
    except NotToml as error:
        raise NotToml(_inline(text, path) or str(error)) from None


def remove(text: str, path: tuple[str, ...]) -> str:
    """The text without a table and the tables below it."""
    try:
        return _removed(text, path)
    except NotToml as error:
        raise NotToml(_inline(text, path) or str(error)) from None


def _put(text: str, path: tuple[str, ...], values: Mapping[str, str | list[str]]) -> str:
    old = parse(text)
    table = _at(old, path)
    if table is not None and all(table.get(key) == value for key, value in values.items()):
        return text
    newline = "\r\n" if "\r\n" in text else "\n"
    if table is None:
        block = [f"[{'.'.join(map(_key, path))}]", *(f"{_key(k)} = {_value(v)}" for k, v in values.items())]
        gap = "" if not text or text.endswith(newline * 2) else newline
        gap = gap if not text or text.endswith("\n") else newline * 2
        new = text + gap + "".join(line + newline for line in block)
    else:
        new = text
        for key, value in values.items():
            new = _set(new, path, key, f"{_key(key)} = {_value(value)}{newline}")
    return _proved(new, _with(old, path, {**(table or {}), **values}))


def _inline(text: str, path: tuple[str, ...]) -> str:
    """What to say of a table within a line, which an edit of lines cannot change; nothing when there is none."""
    above: tuple[str, ...] = ()
    for line in text.splitlines():
        header = _header(line)
        if header is not None:
            above = header
            continue
        match = _INLINE.match(line)
        if match is None or "=" not in line:
            continue
        keys = _parts(match[1]) or ()
        whole = (*above, *keys)
        if keys and whole == path[: len(whole)]:
            name = ".".join(whole)
            tables = ".".join(map(_key, path))
            return (
                f"{name} is an inline table ({name} = {{ … }}), and inline tables are not edited here;"
                f" write it as tables, each with a header such as [{tables}]"
            )
    return ""


def _removed(text: str, path: tuple[str, ...]) -> str:
    old = parse(text)
    if _at(old, path) is None:
        return text
    kept: list[str] = []
    loose: list[str] = []  # blank lines and remarks in our table so far: they may belong to the next one
    inside = False
    for line in text.splitlines(keepends=True):
        header = _header(line)
        if header is not None:
            kept += loose if inside and header[: len(path)] != path else []
            inside, loose = header[: len(path)] == path, []
        if not inside:
            kept.append(line)
        elif header is None:
            loose = [*loose, line] if not line.strip() or line.lstrip().startswith("#") else []
    new = _without_gap("".join([*kept, *loose]), text)
    return _proved(new, _with(old, path, None), _with(old, path, None, keep_empty=True))


def _without_gap(new: str, old: str) -> str:
    """The blank line before a table at the end goes with the table."""
    for newline in ("\r\n", "\n"):
        if new.endswith(newline * 2) and not old.endswith(newline * 2):
            return new[: -len(newline)]
    return new


def _set(text: str, path: tuple[str, ...], key: str, line: str) -> str:
    """The text with one line of a table exchanged, or put below its header."""
    lines = text.splitlines(keepends=True)
    at = next((number for number, each in enumerate(lines) if _header(each) == path), None)
    if at is None:
        raise NotToml(f"{'.'.join(path)} is not written as a table of its own")
    for start in range(at + 1, len(lines)):
        if _header(lines[start]) is not None:
            break
        if re.match(rf"[ \t]*{re.escape(_key(key))}[ \t]*=", lines[start]):
            end = start + 1
            while end < len(lines) and not _reads("".join(lines[start:end])):
                end += 1
            return "".join([*lines[:start], line, *lines[end:]])
    return "".join([*lines[: at + 1], line, *lines[at + 1 :]])


def _reads(text: str) -> bool:
    try:
        parse(text)
    except NotToml:
        return False
    return True


def _proved(text: str, *expected: dict[str, Any]) -> str:
    if parse(text) not in expected:
        raise NotToml("the table is written in a way that cannot be edited line by line")
    return text


def _header(line: str) -> tuple[str, ...] | None:
    """The path that a line opens a table of, if it does."""
    match = _HEADER.fullmatch(line.strip("\r\n\ufeff"))
    return None if match is None else _parts(match[1])


def _parts(name: str) -> tuple[str, ...] | None:
    """The parts of a dotted name."""
    parts, at = [], 0
    while at < len(name):
        part = _PART.match(name, at)
        if part is None:
            return None
        word = part[1]
        parts.append(parse(f"x = {word}")["x"] if word[0] in "\"'" else word)
        at = part.end()
    return tuple(parts)


def _at(values: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any] | None:
    found: Any = values
    for key in path:
        if not isinstance(found, dict) or key not in found:
            return None
        found = found[key]
    if not isinstance(found, dict):
        raise NotToml(f"{'.'.join(path)} is not a table")
    return found


def _with(
    values: dict[str, Any], path: tuple[str, ...], table: dict[str, Any] | None, keep_empty: bool = False
) -> dict[str, Any]:
    """The values with one table exchanged or gone; a parent that this leaves empty goes too, if it was implied."""
    key, rest = path[0], path[1:]
    if not rest:
        changed = {name: value for name, value in values.items() if name != key}
        return changed if table is None else {**changed, key: table}
    below = values.get(key, {})
    if not isinstance(below, dict):
        raise NotToml(f"{key} is not a table")
    inner = _with(below, rest, table, keep_empty)
    changed = {name: value for name, value in values.items() if name != key}
    return {**changed, key: inner} if inner or keep_empty or table is not None else changed


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _value(value: str | list[str]) -> str:
    """Text and lists of text: what JSON writes without escaping letters is TOML too."""
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")
