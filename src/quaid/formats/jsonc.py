"""JSON with comments and trailing commas, changed in place: what is not asked for keeps every byte.

Knows where each value stands in its text. Plain JSON is a case of it. Does not know files, nor whose settings
the text holds.
"""

import json
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

DEEPEST = 100
_SPACE = " \t\r\n\ufeff"


class NotJson(ValueError):
    """The text is not JSON; the message says what stands where."""


class Node(NamedTuple):
    """A value and its place: members of an object carry a key and where it begins."""

    value: Any
    start: int
    end: int
    items: "tuple[Item, ...]" = ()


class Item(NamedTuple):
    key: str | None
    start: int  # of the key, or of the value in a list
    node: Node


def parse(text: str) -> Any:
    """The value of a text, or NotJson."""
    return _root(text).value


def put(text: str, path: tuple[str, ...], value: Any) -> str:
    """The text with `value` at the end of a path of keys; objects on the way that are missing or null are made."""
    node = _root(text)
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict):
            raise NotJson(f"{'.'.join(path[:depth]) or 'the whole'} is not an object")
        found = next((each for each in node.items if each.key == key), None)
        if found is None:
            for name in reversed(path[depth + 1 :]):
                value = {name: value}
            return _insert(text, node, key, value)
        node = found.node
        if node.value is None:  # as good as missing
            for name in reversed(path[depth + 1 :]):
                value = {name: value}
            break
    if node.value == value:
        return text
    return text[: node.start] + _written(text, value, _indent_at(text, node.start)) + text[node.end :]


def append(text: str, path: tuple[str, ...], value: Any) -> str:
    """The text with one more item at the end of the list at a path, which is made if it is missing."""
    node = _find(text, path)
    if node is None or node.value is None:
        return put(text, path, [value])
    if not isinstance(node.value, list):
        raise NotJson(f"{'.'.join(path)} is not a list")
    return _insert(text, node, None, value)


Paths = Collection[tuple[str | int, ...]]


def has(text: str, path: tuple[str | int, ...]) -> bool:
    """Whether there is anything at a path."""
    return _find(text, path) is not None


def remove(text: str, path: tuple[str | int, ...], keep: Paths = ()) -> str:
    """The text without the member at a path; objects that this leaves empty go too, but the outermost and `keep`."""
    parent = _find(text, path[:-1])
    if parent is None or not isinstance(parent.value, dict) or path[-1] not in parent.value:
        return text
    if len(parent.items) == 1 and len(path) > 1 and path[:-1] not in keep and _bare(text, parent):
        return remove(text, path[:-1], keep)
    at = next(number for number, each in enumerate(parent.items) if each.key == path[-1])
    return _cut(text, path[:-1], parent, at)


def remove_items(
    text: str, path: tuple[str | int, ...], unwanted: Callable[[Any], bool], keep: Paths = ()
) -> str:
    """The text without those items of the list at a path; a list that this leaves empty goes too, unless in `keep`.

    A number in the path is the place of an item in a list.
    """
    while True:
        node = _find(text, path)
        if node is None or not isinstance(node.value, list):
            return text
        at = next((number for number, each in enumerate(node.items) if unwanted(each.node.value)), None)
        if at is None:
            return text
        if len(node.items) == 1 and path not in keep and _bare(text, node):
            return remove(text, path, keep)
        text = _cut(text, path, node, at)


def _find(text: str, path: tuple[str | int, ...]) -> Node | None:
    node = _root(text)
    for key in path:
        found = next((each for at, each in enumerate(node.items) if key in (each.key, at)), None)
        if found is None:
            return None
        node = found.node
    return node


# Changing


def _insert(text: str, node: Node, key: str | None, value: Any) -> str:
    """Put a member or an item behind the last one of an object or list."""
    close = node.end - 1
    lines = "\n" in text[node.start : node.end] or not node.items
    outer = _indent_at(text, node.start)
    inner = _indent_at(text, node.items[0].start) if node.items and lines else outer + _unit(text)
    name = "" if key is None else f"{_quoted(key)}: "
    written = name + (_written(text, value, inner) if lines else _compact(value))
    newline = _newline(text)
    if not node.items:
        kept = text[node.start + 1 : close].rstrip(_SPACE)  # a comment in an empty object
        body = f"{kept}{newline}{inner}{written}{newline}{outer}"
        return text[: node.start + 1] + body + text[close:]
    last = node.items[-1].node.end
    comma = _comma(text, last, close)
    if not lines:
        end = comma + 1 if comma is not None else last
        return text[:end] + (" " if comma is not None else ", ") + written + text[end:]
    end = _content_end(text, last, close)
    if comma is not None:
        return f"{text[:end]}{newline}{inner}{written},{text[end:]}"
    tail = text[end:] if "\n" in text[end:close] else newline + outer + text[close:]
    return f"{text[:last]},{text[last:end]}{newline}{inner}{written}{tail}"


def _cut(text: str, path: tuple[str | int, ...], node: Node, at: int) -> str:
    """Take one member or item out, with its comma and the space before it, and prove that only it is gone."""
    if isinstance(node.value, dict):
        rest: Any = {key: value for key, value in node.value.items() if key != node.items[at].key}
    else:
        rest = [value for number, value in enumerate(node.value) if number != at]
    expected = _replaced(parse(text), path, rest)
    item = node.items[at]
    before = _content_end(text, node.items[at - 1].node.end if at else node.start + 1, item.start)
    for begin in (before, item.start):  # the space stays where a remark before it would swallow what follows
        new = _cut_from(text, node, at, begin)
        try:
            if parse(new) == expected:
                return new
        except NotJson:
            pass
    raise NotJson("the entry stands among remarks that it cannot be taken out of")


def _cut_from(text: str, node: Node, at: int, begin: int) -> str:
    item, close = node.items[at], node.end - 1
    comma = _comma(text, item.node.end, node.items[at + 1].start if at + 1 < len(node.items) else close)
    end = item.node.end if comma is None else comma + 1
    if len(node.items) == 1:
        rest = text[end:close]
        empty = not rest.strip(_SPACE) and begin == node.start + 1
        return text[:begin] + ("" if empty else rest) + text[close:]
    if at + 1 < len(node.items) or comma is not None:
        return text[:begin] + text[end:]
    previous = _comma(text, node.items[at - 1].node.end, item.start)
    assert previous is not None  # between two members stands a comma
    return text[:previous] + text[previous + 1 : begin] + text[end:]


def _replaced(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    if not path:
        return new
    changed: Any = list(value) if isinstance(value, list) else dict(value)
    changed[path[0]] = _replaced(value[path[0]], path[1:], new)
    return changed


def _bare(text: str, node: Node) -> bool:
    """Whether there is no comment in an object or list of one item, beside the item itself."""
    item = node.items[0]
    around = text[node.start + 1 : item.start] + text[item.node.end : node.end - 1]
    return not around.strip(_SPACE + ",")


def _comma(text: str, start: int, end: int) -> int | None:
    at = start
    while at < end:
        if text[at] == ",":
            return at
        at = _skip(text, at) if text[at] == "/" else at + 1
    return None


def _content_end(text: str, start: int, end: int) -> int:
    """Where the last character stands between two places that is not white; comments count as content."""
    found = at = start
    while at < end:
        if text[at] in _SPACE:
            at += 1
        else:
            at = found = _skip(text, at) if text[at] == "/" else at + 1
    return found


def _indent_at(text: str, at: int) -> str:
    """The white space that the line of a place begins with."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    """One step of indentation, as this text does it."""
    for line in text.splitlines():
        white = line[: len(line) - len(line.lstrip(" \t"))]
        if white and line.strip() and not line.lstrip().startswith(("//", "*", "/*")):
            return "\t" if white.startswith("\t") else white
    return "  "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _written(text: str, value: Any, indent: str) -> str:
    lines = json.dumps(value, ensure_ascii=False, indent=_unit(text)).split("\n")
    return (_newline(text) + indent).join(lines)


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _quoted(key: str) -> str:
    return _compact(key)


# Reading


def _root(text: str) -> Node:
    at = _white(text, 0)
    node = _value(text, at, 0)
    rest = _white(text, node.end)
    if rest < len(text):
        raise _wrong(text, rest)
    return node


def _value(text: str, at: int, depth: int) -> Node:
    if depth > DEEPEST:
        raise NotJson("it is nested too deeply")
    sign = text[at : at + 1]
    if sign == "{":
        return _container(text, at, depth, "}")
    if sign == "[":
        return _container(text, at, depth, "]")
    try:
        value, end = json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError):
        raise _wrong(text, at) from None
    return Node(value, at, end)


def _container(text: str, start: int, depth: int, close: str) -> Node:
    """An object or a list with its items."""
    items: list[Item] = []
    at = _white(text, start + 1)
    while text[at : at + 1] != close:
        begin, key = at, None
        if close == "}":
            if text[at : at + 1] != '"':
                raise _wrong(text, at)
            name = _value(text, at, depth)
            key = str(name.value)
            at = _white(text, name.end)
            if text[at : at + 1] != ":":
                raise _wrong(text, at)
            at = _white(text, at + 1)
        node = _value(text, at, depth + 1)
        items.append(Item(key, begin, node))
        at = _white(text, node.end)
        if text[at : at + 1] == ",":
            at = _white(text, at + 1)
        elif text[at : at + 1] != close:
            raise _wrong(text, at)
    value: Any = [each.node.value for each in items]
    if close == "}":
        value = {str(each.key): each.node.value for each in items}
        if len(value) < len(items):
            raise NotJson("a key stands twice in one object")
    return Node(value, start, at + 1, tuple(items))


def _white(text: str, at: int) -> int:
    """The next place that is neither white nor in a comment."""
    while at < len(text) and (text[at] in _SPACE or text[at] == "/"):
        at = _skip(text, at) if text[at] == "/" else at + 1
    return at


def _skip(text: str, at: int) -> int:
    """The end of the comment that begins here."""
    if text.startswith("//", at):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        return end - 1 if text[end - 1 : end] == "\r" else end
    if text.startswith("/*", at):
        end = text.find("*/", at + 2)
        if end >= 0:
            return end + 2
    raise _wrong(text, at)


def _wrong(text: str, at: int) -> NotJson:
    line = text.count("\n", 0, at) + 1
    what = f"{text[at]!r} is not expected" if at < len(text) else "it ends too early"
    return NotJson(f"line {line}: {what}")
