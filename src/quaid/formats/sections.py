"""Sections, lists and blocks of Markdown: edit the text under a ## heading, and escape plain text."""

import re
from typing import NamedTuple

from quaid.model.plain_text import close_fence, fence_cover, find_fences

# Patterns that reading and searching do not need are strings here: `re` compiles them at first use and caches them.
_HEADING = r"\n {0,3}(#{1,2})[ \t]+([^\n]*)|\n {0,3}(#{1,2})(?=\n|\Z)"
_FRONT = r"(?m)\A(---|\+\+\+)[ \t]*\r?\n(?s:.*?)^(?:\1|\.\.\.)[ \t]*\r?$"
LIST_ITEM = re.compile(r"([ \t]*)([-*+]|([0-9]{1,9})([.)]))[ \t]+(?:\[([ xX])\](?:[ \t]+|$))?(.*)")
_MARKUP_LINE = r"(?m)^(?= {0,3}#{1,6}(?:[ \t]|$)|(?:---+|===+|\+\+\+)[ \t]*$)"
NEW_LINE = "\n"


class Section(NamedTuple):
    """Offsets of a section: start of its heading, start of its body, and end."""

    start: int
    body: int
    end: int
    title: str


SectionEdit = tuple[str, int]
"""The new text, and the line where the addition starts, from 1."""


class ListItem(NamedTuple):
    """A list line. `number` is 0 for bullets; `box` is the checkbox's content, or None without a checkbox."""

    line: int
    indent: str
    bullet: str
    number: int
    box: str | None
    text: str


def find_sections(text: str) -> list[Section]:
    """Return the sections under `##` headings, in order."""
    return [place for level, place in _headed_sections(text) if level == 2]


def find_opening_list(text: str) -> Section | None:
    """Return the first part with a list among the parts before the first `##` heading, or None.

    These parts are the text before any heading, and the sections of `#` headings.
    """
    front = re.match(_FRONT, text)
    headed = _headed_sections(text)
    first = headed[0][1].start if headed else len(text)
    parts = [Section(0, front.end() if front else 0, first, "")]
    for level, place in headed:
        if level == 2:
            break
        parts.append(place)
    return next((part for part in parts if list_items(text[part.body : part.end])), None)


def _headed_sections(text: str) -> list[tuple[int, Section]]:
    """Return the section of each `#` or `##` heading, with the heading's level."""
    front = re.match(_FRONT, text)
    code = fence_cover(text)
    heads: list[tuple[int, int, int, str]] = []
    for match in re.finditer(_HEADING, "\n" + text):
        start = match.start()
        if (front and start < front.end()) or code.contains(start):
            continue
        level = len(match[1] or match[3])
        heads.append((start, match.end() - 1, level, heading_title(match[2] or "")))
    ends = [start for start, *_ in heads[1:]] + [len(text)]
    return [
        (level, Section(start, body, end, title))
        for (start, body, level, title), end in zip(heads, ends, strict=False)
    ]


def heading_title(heading: str) -> str:
    """Return the heading's text without markup: `## To Do ##` and `To Do` both give To Do."""
    text = heading.strip().lstrip("#").strip()
    bare = text.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else text


def find_section(text: str, section: str) -> Section | None:
    """Return the first section with this title, ignoring case and spacing, or None."""
    folded = _fold_title(section)
    return next((section for section in find_sections(text) if _fold_title(section.title) == folded), None)


def append_to_section(text: str, section: str | None, block: str) -> SectionEdit:
    """Append a block to a section, which is created if missing, or to the whole text if `section` is None."""
    place = find_section(text, section) if section else None
    if section and place is None:
        heading = f"## {heading_title(section)}\n"
        joint = _before_heading(text)
        return f"{text}{joint}{heading}{block.strip(NEW_LINE)}\n", _line_number(text + joint) + 1
    return append_to_place(text, place, block)


def append_to_place(text: str, place: Section | None, block: str) -> SectionEdit:
    """Append a block at the end of a section, or of the whole text if `place` is None."""
    block = block.strip("\n")
    body, end = (place.body, place.end) if place else (0, len(text))
    last = body + len(text[body:end].rstrip())
    if last == body:
        joint = "\n" if place else ""
        text = text if place else ""
    else:
        line_end = text.find("\n", last)
        last = line_end if line_end >= 0 else len(text)
        joint = "\n" if _continues_list(text[body:last], block) else "\n\n"
    return f"{text[:last]}{joint}{block}{text[last:] or NEW_LINE}", _line_number(text[:last] + joint)


def replace_section(text: str, section: str, body: str) -> SectionEdit:
    """Replace the body of a section, which is created if missing."""
    place = find_section(text, section)
    if place is None:
        return append_to_section(text, section, body)
    body = body.strip("\n")
    inside = text[place.body : place.end]
    gap = inside[len(inside.rstrip()) :] or NEW_LINE
    new = f"{text[: place.body]}{NEW_LINE if body else ''}{body}{gap}{text[place.end :]}"
    return new, _line_number(text[: place.body] + "\n")


def list_items(text: str) -> list[ListItem]:
    """Return the list lines outside of code, with their line numbers."""
    code = fence_cover(text)
    items: list[ListItem] = []
    position = 0
    for number, line in enumerate(text.split("\n"), 1):
        match = LIST_ITEM.fullmatch(line.rstrip("\r"))
        if match and not code.contains(position):
            indent, bullet, digits, _, box, words = match.groups()
            items.append(ListItem(number, indent, bullet, int(digits or 0), box, words.strip()))
        position += len(line) + 1
    return items


def with_box(line: str, mark: str) -> str:
    """Return a list line with this mark in its checkbox, which is added if the line has none."""
    match = LIST_ITEM.match(line)
    if match is None:
        return line
    start = match.start(5) if match[5] is not None else match.start(6)
    return (
        f"{line[:start]}{mark}{line[start + 1 :]}"
        if match[5] is not None
        else f"{line[:start]}[{mark}] {line[start:]}"
    )


def format_items(texts: list[str], body: str, box: bool) -> str:
    """Format entries as items that continue the last list in `body`, or start a new list.

    `box` asks for checkboxes. Items of a numbered list get checkboxes only if its last item has one.
    """
    items = [item for item in list_items(body) if not item.indent]
    last = items[-1] if items else None
    boxed = box if last is None else last.box is not None or (box and not last.number)
    lines = []
    for place, text in enumerate(texts, 1):
        mark = "-" if last is None else last.bullet
        if last is not None and last.number:
            mark = f"{last.number + place}{last.bullet[-1]}"
        first, _, more = text.partition("\n")
        lines.append(f"{mark} {'[ ] ' if boxed else ''}{first}")
        lines += [" " * (len(mark) + 1) + line if line.strip() else "" for line in more.splitlines()]
    return "\n".join(lines)


_CONTROLS = {
    code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n\v\f\r\x1c\x1d\x1e\x85"
}
"""Control characters to remove, because they may affect terminals.

Line separators are not removed but normalized.
"""


def sanitize(text: str) -> str:
    """Make text safe to insert: escape headings and rules, close open code, remove control characters."""
    text = text.translate(_CONTROLS)
    text = "\n".join(line.rstrip() for line in text.strip().splitlines())
    code = fence_cover(text)
    return close_fence(re.sub(_MARKUP_LINE, lambda mark: "" if code.contains(mark.start()) else "\\", text))


def _continues_list(before: str, block: str) -> bool:
    """Return True if a block continues the list that ends the text before it."""
    if not LIST_ITEM.match(block):
        return False
    last = before.rpartition("\n")[2]
    if LIST_ITEM.match(last):
        return True
    # Continuation lines of a multi-line item are indented.
    return last.startswith((" ", "\t")) and bool(list_items(before))


def _before_heading(text: str) -> str:
    """Return the separator before a new heading: the end of a code block left open, if any, and a blank line."""
    code = find_fences(text)
    if code and code[-1].left_open:
        return ("" if text.endswith("\n") else "\n") + code[-1].left_open + "\n\n"
    if not text.strip():
        return "" if text.endswith("\n") or not text else "\n"
    return "" if text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"


def _line_number(before: str) -> int:
    return before.count("\n") + 1


def _fold_title(title: str) -> str:
    return " ".join(heading_title(title).casefold().split())


# Plain text as blocks of Markdown

_UNPRINTABLE = r"[\x00-\x08\x0b\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]"
_BLOCK_MARK = r"\s{0,3}(?:#|(?:-{3,}|\+{3,}|={3,})\s*\Z|```|~~~|<!--)"
_LONGEST_LINE = 300


def without_controls(text: str) -> str:
    return re.sub(_UNPRINTABLE, "", text)


def one_line(text: str) -> str:
    return " ".join(without_controls(text).split())[:_LONGEST_LINE]


def escape_markup(text: str) -> str:
    """Return text as Markdown: without control characters, and without lines that would be headings or dividers."""
    lines = without_controls(text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    return "\n".join(f"\\{line.lstrip()}" if re.match(_BLOCK_MARK, line) else line.rstrip() for line in lines)


def fenced(text: str, language: str = "") -> str:
    """Return text as a block of code, whose fence is longer than each run of backticks in the text."""
    text = without_controls(text)
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def table_row(cells: list[str]) -> str:
    return f"| {' | '.join(' '.join(cell.split()).replace('|', '/') for cell in cells)} |"
