"""A page cut into chunks: the pieces of text that are searched, embedded and shown one by one.

Compiled truth is cut at its `#` and `##` headings, the timeline at its entries. A piece that is too long for a
model is cut again, where a paragraph, a line or a sentence ends, and the next piece begins with the end of the
one before. Each chunk is a stretch of the text as it stands and knows its lines; no line is left out. Knows
neither models nor rows.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from quaid.core import fences, timeline
from quaid.core.tokens import count_tokens
from quaid.core.windows import windows

__all__ = ["STRATEGIES", "Chunk", "count_tokens", "cut", "embed_text", "embedded", "window"]

TRUTH, ENTRY = "truth_section", "timeline_entry"

STRATEGIES = ("section", "window", "paragraph", "page")

LIMITS = {"section": (450, 60), "window": (400, 80), "paragraph": (450, 60), "page": (450, 60)}
"""How many tokens a chunk may have, and about how many of them it may share with the one before. With title
and headings a chunk then rarely has more than the 512 that the usual models read."""

PLAIN_LENGTH = 1_500
"""Characters of a chunk that is cut by length alone."""

ACROSS = " across headings"

_LONGEST_HEADING = 200
_FARTHEST = 4_000
"""How far below a heading its first words are looked for."""

MOST_PARTS = 10_000
"""Headings, and parts, of one text that count for themselves: what comes behind them is cut by its length alone."""

# Begins with \n instead of ^, and searches a text with one put in front: several times as fast.
_HEADING = re.compile(r"\n {0,3}(#{1,6})(?:[ \t]+([^\n]*)|(?=\n|\Z))")
_LEADING_HEADINGS = re.compile(r"(?:\s*#{1,6}(?:[ \t][^\n]*)?(?=\n))+\s*(?=\S)")
_ONLY_HEADINGS = re.compile(r"(?:\s*#{1,6}(?:[ \t][^\n]*)?(?=\n|\Z))*\s*\Z")
_INK = re.compile(r"\S")
_BLANK_LINES = re.compile(r"\n[ \t\r\f\v]*(?=\n)")
_ITEM = re.compile(r"(?:[-*+]|[0-9]{1,9}[.)])[ \t]")
_SPEAKER = re.compile(r"\S[^:\n]{0,40}: \S")


class Chunk(NamedTuple):
    """A piece of a page. Its lines are those of the truth or of the timeline, from 1."""

    kind: str
    text: str
    heading_path: str
    start_line: int
    end_line: int
    tokens: int
    date: str = ""


class Heading(NamedTuple):
    start: int
    level: int
    text: str


class _Stretch(NamedTuple):
    """A part of a text that is cut for itself; an entry has a date."""

    start: int
    end: int
    date: str = ""
    entry: int = 0
    """Where the entry itself begins, below the headings that go with it."""


def cut(truth: str, timeline: str, strategy: str = "section") -> tuple[Chunk, ...]:
    """The chunks of a page, in the order of its text.

    A page whose structure this fails on is cut by its length alone, so that it stays findable and costs no other.
    """
    try:
        return cut_by_structure(truth, timeline, strategy)
    except Exception:
        return (*_by_length(truth, TRUTH), *_by_length(timeline, ENTRY))


def _by_length(text: str, kind: str) -> Iterator[Chunk]:
    line = 1
    for start in range(0, len(text), PLAIN_LENGTH):
        piece = text[start : start + PLAIN_LENGTH]
        end = line + piece.count("\n")
        if piece.strip():
            yield Chunk(kind, piece, "", line, end, count_tokens(piece))
        line = end


def cut_by_structure(truth: str, timeline: str, strategy: str = "section") -> tuple[Chunk, ...]:
    """The same; fails on a page that this module does not understand."""
    strategy, limit, overlap = _understood(strategy)
    headings = _headings(truth)
    stretches = _bounded(_STRETCHES[strategy](truth, headings), len(truth))
    chunks = list(_chunks(truth, TRUTH, stretches, headings, limit, overlap))
    if timeline and not timeline.isspace():
        headings = _headings(timeline)
        stretches = _whole(timeline, headings) if strategy == "page" else _entries(timeline, headings)
        stretches = _bounded(stretches, len(timeline))
        chunks += _chunks(timeline, ENTRY, stretches, headings, limit, overlap)
    return tuple(chunks)


def _bounded(stretches: Iterable[_Stretch], end: int) -> Iterator[_Stretch]:
    """Parts of a text; of very many the rest as one, up to the end."""
    for number, stretch in enumerate(stretches):
        if number == MOST_PARTS:
            yield _Stretch(stretch.start, end)
            return
        yield stretch


def window(limit: int, overlap: int, respect_headings: bool = True) -> str:
    """The strategy of windows of another size, or of such that do not end at a heading."""
    size = "" if (limit, overlap) == LIMITS["window"] else f" {limit}/{overlap}"
    return f"window{size}{'' if respect_headings else ACROSS}"


def _understood(strategy: str) -> tuple[str, int, int]:
    """A strategy's name, limit and overlap; `window 300/40 across headings` is what `window` gives."""
    across = strategy.endswith(ACROSS)
    name, _, size = strategy.removesuffix(ACROSS).partition(" ")
    limit, overlap = map(int, size.split("/")) if size else LIMITS[name]
    return "page" if across else name, limit, overlap


def embed_text(title: str, chunk: Chunk) -> str:
    """What is embedded of a chunk: the title, the headings above it, its text."""
    return embedded(title, chunk.heading_path, chunk.text)


def embedded(title: str, heading_path: str, text: str) -> str:
    """The same from the parts of a chunk. A heading that is among those above is not said again."""
    names = [part.lstrip("# ") for part in heading_path.split(" > ")] if heading_path else []
    said = {title, *names}
    heading = _LEADING_HEADINGS.match(text) if text[:1] in "# " else None
    if heading and _heading_text(heading[0].rstrip().rpartition("\n")[2].lstrip(" #")) in said:
        text = text[heading.end() :]
    above = " > ".join([name for name in names if name and name != title])
    return "\n".join([part for part in (title, above, text) if part])


# Where a text is cut first


def _sections(text: str, headings: list[Heading], *, bare: bool = False) -> Iterator[_Stretch]:
    """From one heading of level 1 or 2 to the next; one with nothing below it goes with the one after.

    With `bare` it does so only if that is a lower one: of two on a level, each says something of its own.
    """
    start = looked = 0
    above = 0  # the level of the last one
    for heading in headings:
        if heading.level <= 2:
            is_bare = _ONLY_HEADINGS.match(text, looked, heading.start)
            if not is_bare or (bare and above and heading.level <= above):
                yield _Stretch(start, heading.start)
                start = heading.start
            looked, above = heading.start, heading.level
    yield _Stretch(start, len(text))


def _noted(text: str, headings: list[Heading]) -> Iterator[_Stretch]:
    """Sections of notes: in a log a heading alone is an entry."""
    return _sections(text, headings, bare=True)


def _headings(text: str) -> list[Heading]:
    """Every heading that is not code."""
    if "#" not in text:
        return []
    blocks = iter(fences.find(text))
    block = next(blocks, None)
    found: list[Heading] = []
    for match in _HEADING.finditer("\n" + text):
        start = match.start()
        while block and block.end <= start:
            block = next(blocks, None)
        if not block or start < block.start:
            found.append(Heading(start, len(match[1]), _heading_text(match[2] or "")))
            if len(found) == MOST_PARTS:
                break
    return found


def _heading_text(text: str) -> str:
    text = text.strip()
    bare = text.rstrip("#")
    text = bare.rstrip() if not bare or bare[-1] in " \t" else text
    return text[:_LONGEST_HEADING]


class _Trail:
    """The headings above a place, for places that come in the order of the text."""

    def __init__(self, headings: list[Heading]) -> None:
        self._ahead = iter(headings)
        self._next = next(self._ahead, None)
        self._above: list[Heading] = []

    def at(self, position: int) -> str:
        while self._next and self._next.start <= position:
            level = self._next.level
            self._above = [above for above in self._above if above.level < level] + [self._next]
            self._next = next(self._ahead, None)
        return " > ".join([f"{'#' * level} {text}" for _, level, text in self._above if text])


def _whole(text: str, _: list[Heading]) -> Iterator[_Stretch]:
    yield _Stretch(0, len(text))


def _paragraphs(text: str, headings: list[Heading]) -> Iterator[_Stretch]:
    """What stands between empty lines, and of lists and conversations each item; code is one paragraph."""
    breaks = _outside_code([blank.start() + 1 for blank in _BLANK_LINES.finditer(text)], text)
    sections = [heading.start for heading in headings if heading.level <= 2]
    start = looked = 0
    for place in [*sorted({*breaks, *sections}), len(text)]:
        if not _ONLY_HEADINGS.match(text, looked, place):  # headings alone go with what stands below them
            yield from _items(text, start, place)
            start = place
        looked = place
    yield _Stretch(start, len(text))


def _outside_code(breaks: list[int], text: str) -> list[int]:
    blocks = fences.find(text)
    kept: list[int] = []
    at = 0
    for place in breaks:
        while at < len(blocks) and blocks[at].end < place:
            at += 1
        if at == len(blocks) or place <= blocks[at].start:
            kept.append(place)
    return kept


def _items(text: str, start: int, end: int) -> Iterator[_Stretch]:
    """A paragraph as the items that it lists, or the turns that are spoken; else whole."""
    starts = [start, *(start + line.end() for line in re.finditer("\n", text[start:end]))]
    lines = [place for place in starts if place < end and _INK.match(text, place)]
    spoken = len(lines) > 1 and all(_SPEAKER.match(text, place) for place in lines)
    for place in lines:
        if (spoken or _ITEM.match(text, place)) and not _ONLY_HEADINGS.match(text, start, place):
            yield _Stretch(start, place)
            start = place
    yield _Stretch(start, end)


def _entries(text: str, headings: list[Heading]) -> Iterator[_Stretch]:
    """The entries of a timeline, and what stands between them; headings above an entry go with it."""
    position = 0
    for date, start, end in _entry_places(text):
        if not _ONLY_HEADINGS.match(text, position, start):
            yield from _between(text, position, start, headings)
            position = start
        yield _Stretch(position, end, date, start)
        position = end
    yield from _between(text, position, len(text), headings)


def _between(text: str, start: int, end: int, headings: list[Heading]) -> Iterator[_Stretch]:
    if _INK.search(text, start, end):
        inside = _headings(text[start:end]) if headings else []
        for section in _sections(text[start:end], inside):
            yield _Stretch(start + section.start, start + section.end)


def _entry_places(text: str) -> list[tuple[str, int, int]]:
    """Date, begin and end of each entry."""
    entries = timeline.parse(text, MOST_PARTS + 1)
    starts: list[int] = []
    line, position = 1, 0
    for entry in entries:
        while line < entry.line:
            position = text.index("\n", position) + 1
            line += 1
        starts.append(position)
    ends = [*starts[1:], len(text)]
    return [
        (entry.date, start, _entry_end(text, start, end))
        for entry, start, end in zip(entries, starts, ends, strict=False)
    ]


def _entry_end(text: str, start: int, limit: int) -> int:
    """Where an entry ends: at the next heading, or, in a list, where the text stands no further in."""
    heading = text.startswith("#", start)
    indent = len(text[start : start + 4]) - len(text[start : start + 4].lstrip(" "))
    position = text.find("\n", start, limit) + 1
    while 0 < position < limit:
        line = text[position : text.find("\n", position) + 1 or len(text)]
        stripped = line.lstrip(" \t")
        if stripped.strip():
            depth = len(line[: len(line) - len(stripped)].expandtabs(4))
            if stripped.startswith("#") if heading else depth <= indent:
                return position
        position += len(line)
    return limit


_STRETCHES: dict[str, Callable[[str, list[Heading]], Iterator[_Stretch]]] = {
    "section": _sections,
    "window": _noted,
    "paragraph": _paragraphs,
    "page": _whole,
}


# Making chunks of stretches


def _chunks(
    text: str, kind: str, stretches: Iterable[_Stretch], headings: list[Heading], limit: int, overlap: int
) -> Iterator[Chunk]:
    trail = _Trail(headings)
    line, counted = 1, 0
    for stretch in stretches:
        ink = _INK.search(text, stretch.start, stretch.end)
        if ink is None:
            continue
        start = max(stretch.start, text.rfind("\n", stretch.start, ink.start()) + 1)
        end = start + len(text[start : stretch.end].rstrip())
        for first, fresh, last, tokens in windows(text, start, end, limit, overlap):
            line += (
                text.count("\n", counted, first) if first >= counted else -text.count("\n", first, counted)
            )
            counted = first
            piece = text[first:last]
            path = _path(text, trail, stretch, fresh)
            yield Chunk(kind, piece, path, line, line + piece.count("\n"), tokens, stretch.date)


def _path(text: str, trail: _Trail, stretch: _Stretch, start: int) -> str:
    """The headings above the first words of a chunk; of an entry, those above it and its date."""
    if stretch.date:
        return f"{trail.at(stretch.entry - 1) or '## Timeline'} > {stretch.date}"
    near = min(stretch.end, start + _FARTHEST)
    heading = _LEADING_HEADINGS.match(text, start, near) if text[start] in "# " else None
    return trail.at(heading.end() if heading else start)
