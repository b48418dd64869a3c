"""A page's text, changed only where its parts differ.

Works on lines, each with the line end that it has, so that whatever an edit does not touch stays byte for byte:
line ends, blank lines, comments, the order and spelling of keys. Every patch is read back before it is given
out. Knows the shape of a page; does not know files.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from quaid.errors import InvalidFrontMatter
from quaid.formats import front_matter, markdown, yaml_writer

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_KEY = re.compile(
    r"""("[^"]*"|'[^']*'|[^\s#"'\-?:,\[\]{}&*!|>%@`][^#\n]*?|-[^\s#][^#\n]*?)[ \t]*:(?=[ \t]|$)"""
)
_COMMENT = re.compile(r"(?<![ \t])[ \t]+#.*$")
_ITEM = re.compile(r"([ \t]*-[ \t]+)\S")
_BLANK = " \t\r\n"
_BOM = "\ufeff"


class _Shape(NamedTuple):
    """Where the parts of a page stand, in lines: from the first to behind the last."""

    fence: str
    """What encloses the front matter, or nothing where there is none."""
    front: tuple[int, int]
    truth: tuple[int, int]
    divider: int | None
    timeline: tuple[int, int]


def patch(text: str, frontmatter: Mapping[str, Any], truth: str, timeline: str) -> str:
    """The text with these parts. InvalidFrontMatter where the front matter cannot be changed in place."""
    old = markdown.parse(text)
    lines: list[str] = _LINE.findall(text)
    end = _line_end(lines)
    shape = _shape(lines)
    if timeline != old.timeline:
        _splice(lines, *_timeline(lines, shape, timeline, end))
    if truth != old.truth:
        _splice(lines, *_truth(lines, shape, truth, end))
    if frontmatter != old.frontmatter:
        _splice(lines, *_front(lines, shape, old.frontmatter, frontmatter, end))
    patched = "".join(lines)
    if markdown.parse(patched)[:3] == (frontmatter, truth, timeline):
        return patched
    whole = _with_ends(markdown.render(frontmatter, truth, timeline), end)
    if markdown.parse(whole)[:3] == (frontmatter, truth, timeline):
        return whole
    raise InvalidFrontMatter(problem="this change cannot be written into the file")


def _line_end(lines: list[str]) -> str:
    """The line end that most lines have."""
    found = [line[len(line.rstrip("\r\n")) :] for line in lines]
    return max(("\n", "\r\n", "\r"), key=found.count) if found else "\n"


def _shape(lines: list[str]) -> _Shape:
    parts = markdown.places("".join([line.rstrip("\r\n") + "\n" for line in lines]))
    front = (0, 0) if parts.front is None else parts.front
    bare = [line.strip(_BLANK + "\ufeff") for line in lines]
    last = len(lines) if parts.divider is None else parts.divider
    truth = _trimmed(bare, parts.body, last)
    timeline = (
        (len(lines), len(lines)) if parts.divider is None else _trimmed(bare, parts.divider + 1, len(lines))
    )
    return _Shape(parts.fence, front, truth, parts.divider, timeline)


def _trimmed(bare: list[str], first: int, last: int) -> tuple[int, int]:
    """The same lines without the blank ones at either end."""
    while first < last and not bare[first]:
        first += 1
    while last > first and not bare[last - 1]:
        last -= 1
    return first, last


_Splice = tuple[int, int, list[str]]


def _splice(lines: list[str], first: int, last: int, new: list[str]) -> None:
    if new and first and not lines[first - 1].endswith(("\n", "\r")):
        lines[first - 1] += _line_end(lines)
    lines[first:last] = new


def _with_ends(text: str, end: str) -> str:
    return text.replace("\n", end) if end != "\n" else text


def _changed(lines: list[str], span: tuple[int, int], text: str, end: str) -> _Splice:
    """The smallest run of lines that turns a span into a text."""
    first, last = span
    new = text.split("\n") if text else []
    old = [line.rstrip("\r\n") for line in lines[first:last]]
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    tail = 0
    while tail < min(len(old), len(new)) - same and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle = [line + end for line in new[same : len(new) - tail]]
    if middle and last - tail == len(lines) and lines and not lines[-1].endswith(("\r", "\n")):
        middle[-1] = middle[-1].rstrip("\r\n")  # the file ended without a line end, and still does
    return first + same, last - tail, middle


def _truth(lines: list[str], shape: _Shape, truth: str, end: str) -> _Splice:
    first, last = shape.truth
    if first < last:
        return _changed(lines, shape.truth, truth, end)
    place = shape.front[1] + 1 if shape.fence else 0
    new = [line + end for line in truth.split("\n")]
    before = [end] if place else []
    after = [end] if place < len(lines) and lines[place].strip(_BLANK) else []
    return place, place, [*before, *new, *after]


def _timeline(lines: list[str], shape: _Shape, timeline: str, end: str) -> _Splice:
    first, last = shape.timeline
    if first < last:
        return _changed(lines, shape.timeline, timeline, end)
    new = [line + end for line in timeline.split("\n")]
    if shape.divider is not None:
        return shape.divider + 1, shape.divider + 1, [end, *new]
    blank = [] if not lines or not lines[-1].strip(_BLANK) else [end]
    return len(lines), len(lines), [*blank, "---" + end, end, *new]


def _front(
    lines: list[str], shape: _Shape, old: Mapping[str, Any], new: Mapping[str, Any], end: str
) -> _Splice:
    """The block of front matter with the keys that changed, and only those, written anew."""
    if not shape.fence:
        written = front_matter.dump_yaml(dict(new)) if new else ""
        made = [line + end for line in f"---\n{written}---\n".split("\n")]
        if lines and lines[0].startswith(_BOM):
            return 0, 1, [_BOM + made[0], *made[1:], lines[0].removeprefix(_BOM)]
        return 0, 0, made
    if shape.fence != "---" or markdown.UNPARSED in old:
        raise InvalidFrontMatter(problem="only YAML front matter that can be read is changed in place")
    first, last = shape.front
    block = [line.rstrip("\r\n") for line in lines[first:last]]
    spans = _keys(block)
    for key in [key for key in spans if old.get(key) != new.get(key) or key not in new][::-1]:
        start, stop = spans[key]
        block[start:stop] = _rewritten(block[start:stop], key, old.get(key), new[key]) if key in new else []
    for key in new:
        if key not in old:
            block += yaml_writer.write({key: new[key]}).splitlines()
    return first, last, [line + end for line in block]


def _keys(block: list[str]) -> dict[str, tuple[int, int]]:
    """The lines of each key, without the comments and blank lines that follow it."""
    starts: list[tuple[str, int]] = []
    for place, line in enumerate(block):
        match = _KEY.match(line)
        if match:
            name = match[1]
            starts.append((name[1:-1] if name[0] in "\"'" else name, place))
    spans: dict[str, tuple[int, int]] = {}
    for number, (name, start) in enumerate(starts):
        stop = starts[number + 1][1] if number + 1 < len(starts) else len(block)
        while stop > start + 1 and (not block[stop - 1].strip() or block[stop - 1].startswith("#")):
            stop -= 1
        spans[name] = (start, stop)
    return spans


def _rewritten(block: list[str], key: str, old: Any, new: Any) -> list[str]:
    """The lines of one key with a new value, in the manner of the old ones."""
    if isinstance(old, list) and isinstance(new, list) and new:
        listed = _relisted(block, old, new)
        if listed:
            return listed
    written = yaml_writer.write({key: new}).splitlines()
    spelled = block[0].partition(":")[0]
    written[0] = spelled + written[0][written[0].index(":") :] if ":" not in key else written[0]
    if len(block) == len(written) == 1:
        comment = _COMMENT.search(block[0])
        if comment and _is_comment(block[0], comment.start()):
            written[0] += comment[0]
    return written


def _relisted(block: list[str], old: list[Any], new: list[Any]) -> list[str] | None:
    """A list with one item to a line, changed item by item; comments between them stay. None: it is no such list."""
    items = [line for line in block[1:] if _ITEM.match(line)]
    others = [line for line in block[1:] if not _ITEM.match(line)]
    made = {str(item): yaml_writer.write({"x": item})[3:].rstrip("\n") for item in new}
    if len(items) != len(old) or not items or any("\n" in text for text in made.values()):
        return None
    if any(line.strip() and not line.lstrip().startswith("#") for line in others):
        return None
    mark = _ITEM.match(items[0])
    assert mark is not None
    lines = dict(zip(map(str, old), items, strict=True))
    order = [str(item) for item in new]
    if [name for name in map(str, old) if name in made] != order[
        : sum(name in made for name in map(str, old))
    ]:
        return [block[0], *(lines.get(name, mark[1] + made[name]) for name in order)]
    gone = {id(line) for name, line in lines.items() if name not in made}
    kept = [line for line in block if id(line) not in gone]
    return [*kept, *(mark[1] + made[name] for name in order if name not in lines)]


def _is_comment(line: str, place: int) -> bool:
    """Whether what follows is a comment: the line says the same without it."""
    try:
        return front_matter.read_yaml(line[:place]) == front_matter.read_yaml(line)
    except InvalidFrontMatter:
        return False
