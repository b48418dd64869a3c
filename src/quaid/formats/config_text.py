"""Configuration text of other programs: edit JSONC and TOML in place, write systemd units and launchd plists.

An edit keeps all other bytes. The result of an edit of TOML, or of a removal from JSON, is parsed again before it
is returned.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

DEEPEST_JSON = 100
_SPACE = " \t\r\n\ufeff"


class UnreadableConfig(ValueError):
    """The text cannot be parsed or edited; the message gives the reason."""


class NotJson(UnreadableConfig):
    """The text is not valid JSONC; the message describes the error."""


class JsonNode(NamedTuple):
    """A parsed value with its start and end offsets, and the items of an object or list."""

    value: Any
    start: int
    end: int
    items: "tuple[JsonNode, ...]" = ()
    key: str | None = None
    """The key of this value in its object."""
    key_start: int = 0
    """Start offset of the key, or of the value if it is in a list."""


def parse_json(text: str) -> Any:
    """Return the value of a JSONC document, or raise NotJson."""
    return _json_root(text).value


def put_json(text: str, path: tuple[str, ...], value: Any) -> str:
    """Set the value at a path of keys. Objects on the path that are missing or null are created."""
    node = _json_root(text)
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict):
            raise NotJson(f"{'.'.join(path[:depth]) or 'the whole'} is not an object")
        member = next((item for item in node.items if item.key == key), None)
        if member is None or member.value is None:  # null counts as missing
            for name in reversed(path[depth + 1 :]):
                value = {name: value}
        if member is None:
            return _insert_member(text, node, key, value)
        node = member
        if node.value is None:
            break
    if node.value == value:
        return text
    return text[: node.start] + _json_text(text, value, _indent_at(text, node.start)) + text[node.end :]


def append_json(text: str, path: tuple[str, ...], value: Any) -> str:
    """Append an item to the list at a path, creating the list if it is missing."""
    node = _find_node(text, path)
    if node is None or node.value is None:
        return put_json(text, path, [value])
    if not isinstance(node.value, list):
        raise NotJson(f"{'.'.join(path)} is not a list")
    return _insert_member(text, node, None, value)


JsonPaths = Collection[tuple[str | int, ...]]


def has_json(text: str, path: tuple[str | int, ...]) -> bool:
    """Return True if there is a value at the path."""
    return _find_node(text, path) is not None


def remove_json(text: str, path: tuple[str | int, ...], keep: JsonPaths = ()) -> str:
    """Remove the member at a path, and each parent that becomes empty.

    The root, the paths in `keep` and parents that contain a comment are not removed.
    """
    parent = _find_node(text, path[:-1])
    if parent is None or not isinstance(parent.value, dict) or path[-1] not in parent.value:
        return text
    if len(parent.items) == 1 and len(path) > 1 and path[:-1] not in keep and _has_no_comment(text, parent):
        return remove_json(text, path[:-1], keep)
    at = next(number for number, item in enumerate(parent.items) if item.key == path[-1])
    return _cut_member(text, path[:-1], parent, at)


def remove_json_items(
    text: str, path: tuple[str | int, ...], unwanted: Callable[[Any], bool], keep: JsonPaths = ()
) -> str:
    """Remove the items for which `unwanted` is true from the list at a path.

    A list that becomes empty is removed too, unless its path is in `keep` or it contains a comment. Integers
    in the path are list indexes.
    """
    while True:
        node = _find_node(text, path)
        if node is None or not isinstance(node.value, list):
            return text
        at = next((number for number, item in enumerate(node.items) if unwanted(item.value)), None)
        if at is None:
            return text
        if len(node.items) == 1 and path not in keep and _has_no_comment(text, node):
            return remove_json(text, path, keep)
        text = _cut_member(text, path, node, at)


def _find_node(text: str, path: tuple[str | int, ...]) -> JsonNode | None:
    node = _json_root(text)
    for key in path:
        member = next((item for at, item in enumerate(node.items) if key in (item.key, at)), None)
        if member is None:
            return None
        node = member
    return node


# Editing


def _insert_member(text: str, node: JsonNode, key: str | None, value: Any) -> str:
    """Insert a member at the end of an object, or an item at the end of a list."""
    close = node.end - 1
    lines = "\n" in text[node.start : node.end] or not node.items
    outer = _indent_at(text, node.start)
    inner = _indent_at(text, node.items[0].key_start) if node.items and lines else outer + _unit(text)
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    written = name + (_json_text(text, value, inner) if lines else json.dumps(value, ensure_ascii=False))
    newline = _newline(text)
    if not node.items:
        comment = text[node.start + 1 : close].rstrip(_SPACE)  # keeps a comment in an empty object
        body = f"{comment}{newline}{inner}{written}{newline}{outer}"
        return text[: node.start + 1] + body + text[close:]
    last = node.items[-1].end
    comma = _comma(text, last, close)
    if not lines:
        end = comma + 1 if comma is not None else last
        return text[:end] + (" " if comma is not None else ", ") + written + text[end:]
    end = _content_end(text, last, close)
    if comma is not None:
        return f"{text[:end]}{newline}{inner}{written},{text[end:]}"
    tail = text[end:] if "\n" in text[end:close] else newline + outer + text[close:]
    return f"{text[:last]},{text[last:end]}{newline}{inner}{written}{tail}"


def _cut_member(text: str, path: tuple[str | int, ...], node: JsonNode, at: int) -> str:
    """Remove one member or item with its comma and leading space, and verify that nothing else changed."""
    if isinstance(node.value, dict):
        rest: Any = {key: value for key, value in node.value.items() if key != node.items[at].key}
    else:
        rest = [value for number, value in enumerate(node.value) if number != at]
    expected = _replaced(parse_json(text), path, rest)
    item = node.items[at]
    before = _content_end(text, node.items[at - 1].end if at else node.start + 1, item.key_start)
    for begin in (before, item.key_start):  # key_start keeps a line end that terminates a // comment
        new = _cut_from(text, node, at, begin)
        try:
            if parse_json(new) == expected:
                return new
        except NotJson:
            pass
    raise NotJson("the entry stands among remarks that it cannot be taken out of")


def _cut_from(text: str, node: JsonNode, at: int, begin: int) -> str:
    item, close = node.items[at], node.end - 1
    comma = _comma(text, item.end, node.items[at + 1].key_start if at + 1 < len(node.items) else close)
    end = item.end if comma is None else comma + 1
    if len(node.items) == 1:
        rest = text[end:close]
        empty = not rest.strip(_SPACE) and begin == node.start + 1
        return text[:begin] + ("" if empty else rest) + text[close:]
    if at + 1 < len(node.items) or comma is not None:
        return text[:begin] + text[end:]
    previous = _comma(text, node.items[at - 1].end, item.key_start)
    assert previous is not None  # members are always separated by a comma
    return text[:previous] + text[previous + 1 : begin] + text[end:]


def _replaced(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    if not path:
        return new
    changed: Any = list(value) if isinstance(value, list) else dict(value)
    changed[path[0]] = _replaced(value[path[0]], path[1:], new)
    return changed


def _has_no_comment(text: str, node: JsonNode) -> bool:
    """Return True if an object or list with one item contains no comment before or after the item."""
    item = node.items[0]
    around = text[node.start + 1 : item.key_start] + text[item.end : node.end - 1]
    return not around.strip(_SPACE + ",")


def _comma(text: str, start: int, end: int) -> int | None:
    at = start
    while at < end:
        if text[at] == ",":
            return at
        at = _skip(text, at) if text[at] == "/" else at + 1
    return None


def _content_end(text: str, start: int, end: int) -> int:
    """Return the end of the last non-whitespace character in a range; comments count as content."""
    content_end = at = start
    while at < end:
        if text[at] in _SPACE:
            at += 1
        else:
            at = content_end = _skip(text, at) if text[at] == "/" else at + 1
    return content_end


def _indent_at(text: str, at: int) -> str:
    """Return the leading whitespace of the line at this offset."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """Return the indentation unit of the text."""
    for line in text.splitlines():
        white = line[: len(line) - len(line.lstrip(" \t"))]
        if white and line.strip() and not line.lstrip().startswith(("//", "*", "/*")):
            return "\t" if white.startswith("\t") else white
    return "  "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _json_text(text: str, value: Any, indent: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text)).split("\n")
    return (_newline(text) + indent).join(lines)


# Parsing


def _json_root(text: str) -> JsonNode:
    at = _white(text, 0)
    node = _json_value(text, at, 0)
    rest = _white(text, node.end)
    if rest < len(text):
        raise _json_error(text, rest)
    return node


def _json_value(text: str, at: int, depth: int) -> JsonNode:
    if depth > DEEPEST_JSON:
        raise NotJson("it is nested too deeply")
    sign = text[at : at + 1]
    if sign == "{":
        return _container(text, at, depth, "}")
    if sign == "[":
        return _container(text, at, depth, "]")
    try:
        value, end = json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError):
        raise _json_error(text, at) from None
    return JsonNode(value, at, end)


def _container(text: str, start: int, depth: int, close: str) -> JsonNode:
    """Parse an object or a list with its items."""
    items: list[JsonNode] = []
    at = _white(text, start + 1)
    while text[at : at + 1] != close:
        begin, key = at, None
        if close == "}":
            if text[at : at + 1] != '"':
                raise _json_error(text, at)
            name = _json_value(text, at, depth)
            key = name.value
            at = _white(text, name.end)
            if text[at : at + 1] != ":":
                raise _json_error(text, at)
            at = _white(text, at + 1)
        node = _json_value(text, at, depth + 1)
        items.append(node._replace(key=key, key_start=begin))
        at = _white(text, node.end)
        if text[at : at + 1] == ",":
            at = _white(text, at + 1)
        elif text[at : at + 1] != close:
            raise _json_error(text, at)
    value: Any = [item.value for item in items]
    if close == "}":
        value = {item.key: item.value for item in items}
        if len(value) < len(items):
            raise NotJson("a key stands twice in one object")
    return JsonNode(value, start, at + 1, tuple(items))


def _white(text: str, at: int) -> int:
    """Return the first offset from `at` on that is neither whitespace nor in a comment."""
    while at < len(text) and (text[at] in _SPACE or text[at] == "/"):
        at = _skip(text, at) if text[at] == "/" else at + 1
    return at


def _skip(text: str, at: int) -> int:
    """Return the end of the comment that starts at this offset."""
    if text.startswith("//", at):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        return end - 1 if text[end - 1 : end] == "\r" else end
    if text.startswith("/*", at):
        end = text.find("*/", at + 2)
        if end >= 0:
            return end + 2
    raise _json_error(text, at)


def _json_error(text: str, at: int) -> NotJson:
    line = text.count("\n", 0, at) + 1
    what = f"{text[at]!r} is not expected" if at < len(text) else "it ends too early"
    return NotJson(f"line {line}: {what}")


_TOML_HEADER = re.compile(r"[ \t]*\[{1,2}([^\[\]\n]+)\]{1,2}[ \t]*(?:#.*)?")


class NotToml(UnreadableConfig):
    """The text is not valid TOML, or the table has a form that cannot be edited here."""


def parse_toml(text: str) -> dict[str, Any]:
    """Return the values of a TOML document, or raise NotToml."""
    import tomllib

    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise NotToml(str(error)) from None


def put_toml(text: str, path: tuple[str, ...], values: Mapping[str, str | list[str]]) -> str:
    """Set these values in a table, creating it if it is missing. Other keys of the table are kept."""
    expected = parse_toml(text)
    table = _table_at(expected, path)
    if table is not None and all(table.get(key) == value for key, value in values.items()):
        return text
    newline, new = _newline(text), text
    lines = {key: f"{_toml_key(key)} = {_toml_value(value)}{newline}" for key, value in values.items()}
    if table is None:
        header = f"[{'.'.join(map(_toml_key, path))}]{newline}"
        gap = newline if text and not text.endswith(newline * 2) else ""
        new += (gap if not text or text.endswith("\n") else newline * 2) + header + "".join(lines.values())
    else:
        for key, line in lines.items():
            new = _set_key(new, path, key, line)
    table = expected
    for key in path:
        table = table.setdefault(key, {})
    table.update(values)
    if not _is_toml(new) or parse_toml(new) != expected:
        raise _not_editable(path)
    return new


def remove_toml(text: str, path: tuple[str, ...]) -> str:
    """Remove a table and its subtables."""
    expected = parse_toml(text)
    if _table_at(expected, path) is None:
        return text
    lines: list[str] = []
    loose: list[str] = []  # blank lines and comments that may belong to the next table
    inside = False
    for line in text.splitlines(keepends=True):
        header = _table_header(line)
        if header is not None:
            lines += loose if inside and header[: len(path)] != path else []
            inside, loose = header[: len(path)] == path, []
        if not inside:
            lines.append(line)
        elif header is None:
            loose = [*loose, line] if not line.strip() or line.lstrip().startswith("#") else []
    new, newline = "".join([*lines, *loose]), _newline(text)
    if new.endswith(newline * 2) and not text.endswith(newline * 2):
        new = new[: -len(newline)]  # remove the blank line before a table that was removed from the end
    *parents, name = path
    del _table_at(expected, tuple(parents))[name]
    if not _is_toml(new) or _without_empty(parse_toml(new), parents) != _without_empty(expected, parents):
        raise _not_editable(path)
    return new


def _set_key(text: str, path: tuple[str, ...], key: str, line: str) -> str:
    """Replace the line of a key in a table, or insert it below the table's header."""
    lines = text.splitlines(keepends=True)
    at = next((number for number, line in enumerate(lines) if _table_header(line) == path), None)
    if at is None:
        raise _not_editable(path)
    for start in range(at + 1, len(lines)):
        if _table_header(lines[start]) is not None:
            break
        if re.match(rf"[ \t]*{re.escape(_toml_key(key))}[ \t]*=", lines[start]):
            end = start + 1
            while end < len(lines) and not _is_toml("".join(lines[start:end])):
                end += 1
            return "".join([*lines[:start], line, *lines[end:]])
    return "".join([*lines[: at + 1], line, *lines[at + 1 :]])


def _is_toml(text: str) -> bool:
    try:
        parse_toml(text)
    except NotToml:
        return False
    return True


def _not_editable(path: tuple[str, ...]) -> NotToml:
    tables = ".".join(map(_toml_key, path))
    return NotToml(
        f"{tables} is not written as a table of its own: dotted keys and inline tables are not edited here; write"
        f" it as tables, each with a header such as [{tables}]"
    )


def _table_header(line: str) -> tuple[str, ...] | None:
    """Return the path of the table that a line opens, or None."""
    match = _TOML_HEADER.fullmatch(line.strip("\r\n\ufeff"))
    if match is None or not _is_toml(f"[{match[1]}]"):
        return None
    table, path = parse_toml(f"[{match[1]}]"), []
    while table:
        path.append(next(iter(table)))
        table = table[path[-1]]
    return tuple(path)


def _table_at(values: dict[str, Any], path: Sequence[str]) -> Any:
    """Return the table at a path, or None if there is none."""
    for depth, key in enumerate(path, 1):
        if key not in values:
            return None
        values = values[key]
        if not isinstance(values, dict):
            raise NotToml(f"{'.'.join(path[:depth])} is not a table")
    return values


def _without_empty(values: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return the values without empty tables on a path, because an edit may or may not remove their headers."""
    if not path or path[0] not in values:
        return values
    below = _without_empty(values[path[0]], path[1:])
    rest = {key: value for key, value in values.items() if key != path[0]}
    return {**rest, path[0]: below} if below else rest


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _toml_value(value: str | list[str]) -> str:
    """Encode a string or a list of strings. JSON without escaped letters is valid TOML, except for DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


SYSTEMD_TEMPLATE = """\
[Unit]
Description={description}
After=default.target

[Service]
Type=exec
ExecStart=/usr/bin/env {command}
{environment}Restart=on-failure
RestartSec=5
TimeoutStopSec=5
KillMode=mixed
UMask=0077
NoNewPrivileges=yes

[Install]
WantedBy=default.target
"""


def systemd_unit(command: Sequence[str], description: str, environment: Mapping[str, str]) -> str:
    """Return a unit that keeps a program running.

    It starts the program with env, because ExecStart restricts the characters of a program path.
    """
    variables = "".join(
        f"Environment={systemd_quote(f'{name}={value}')}\n" for name, value in environment.items()
    )
    return SYSTEMD_TEMPLATE.format(
        command=" ".join(map(systemd_quote, command)), description=description, environment=variables
    )


def launchd_plist(command: Sequence[str], label: str, environment: Mapping[str, str], log: str) -> str:
    """Return a launchd plist that restarts the program only if it failed."""
    import plistlib

    values = {
        "Label": label,
        "ProgramArguments": list(command),
        "EnvironmentVariables": dict(environment),
        "KeepAlive": {"SuccessfulExit": False},
        "RunAtLoad": True,
        "ProcessType": "Background",
        "StandardErrorPath": log,
        "StandardOutPath": log,
        "Umask": 0o077,
        "ExitTimeOut": 5,
    }
    return plistlib.dumps(values).decode()


def systemd_quote(text: str) -> str:
    """Quote a word of a command line for systemd."""
    for sign, meant in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$"), ("\n", "\\n"), ("\t", "\\t")):
        text = text.replace(sign, meant)
    return f'"{text}"'
