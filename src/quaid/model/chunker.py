"""Split pages and conversation turns (messages) into chunks that fit an embedding model.

By default, the compiled truth (the text of a page above the timeline) is split at # and ## headings, and the
timeline at its entries. A section that is too long is split into overlapping windows. Each chunk keeps its line
numbers, and no line with text is left out. The statements of a text are its sentences, list entries and table rows.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import islice
from typing import NamedTuple

from quaid.model import timeline
from quaid.model.plain_text import (
    LineCounter,
    TokenMeasure,
    count_tokens,
    fence_cover,
    token_measure,
    without_closing_hashes,
)

_VISIBLE = re.compile(r"\S")
_LIST_MARK = re.compile(r"\s*(?:[-*+•]|\d{1,4}[.)])\s+")
_QUOTE_PREFIX = re.compile(r"(?:\s*>)+ ?")
_STATEMENT_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")


@cache
def _sentence_end() -> re.Pattern[str]:
    """Return the pattern of the end of a sentence. Compiled at first use: it takes 1 ms."""
    return re.compile(r"(?<![.!?…])[.!?…]+[\"'”’»)\]*_]*(?:[ \t]+|\Z)|[。！？；｡]+[”’」』）]*")


ITEM, ROW, PARAGRAPH = "item", "row", "paragraph"


class StatementBlock(NamedTuple):
    """A list entry, table row or paragraph, as character offsets. A list mark or ">" at its start is left out."""

    start: int
    end: int
    kind: str
    indent: int
    """Number of characters between the start of the line and the text of a list entry; 0 for other blocks."""


def text_blocks(text: str) -> list[StatementBlock]:
    """Return the list entries, table rows and paragraphs of Markdown text.

    Headings, the marks of code blocks, and the lines below the headers of tables are left out.
    """
    blocks: list[StatementBlock] = []
    begin, kind, indent, at = -1, PARAGRAPH, 0, 0
    for line in text.split("\n"):
        quoted = _QUOTE_PREFIX.match(line) if ">" in line[:4] else None
        first = quoted.end() if quoted else 0
        mark = _LIST_MARK.match(line, first)
        bare = line[first:].strip()
        is_gap = not bare or bare.startswith(("#", "```", "~~~", "|---"))
        if is_gap or mark or bare.startswith("|"):
            if 0 <= begin < at:
                blocks.append(StatementBlock(begin, at, kind, indent))
            begin, kind, indent = -1, PARAGRAPH, 0
            if not is_gap:
                begin, kind = at + (mark.end() if mark else first), ITEM if mark else ROW
                indent = mark.end() if mark else 0
        elif begin < 0:
            begin = at + first
        at += len(line) + 1
    if 0 <= begin < len(text):
        blocks.append(StatementBlock(begin, len(text), kind, indent))
    return blocks


def statement_spans(text: str) -> list[tuple[int, int]]:
    """Return the offsets of the sentences, list entries and table rows of Markdown text."""
    spans: list[tuple[int, int]] = []
    for block in text_blocks(text):
        start = block.start
        if block.kind == PARAGRAPH:
            for gap in _STATEMENT_END.finditer(text, start, block.end):
                spans.append((start, gap.start()))
                start = gap.end()
        if start < block.end:
            spans.append((start, block.end))
    return spans


def statement_text(text: str) -> str:
    """Return a statement as one line, without the ">" of quoted lines."""
    return " ".join(text.replace("\n>", "\n").split())


def split_statements(text: str) -> list[str]:
    """Return the statements of Markdown text, each as one line without list mark."""
    return [statement_text(text[start:end]) for start, end in statement_spans(text)]


STRUCK = re.compile(r"~~.+?~~")
_PARENTHESIS = re.compile(r"\([^()]*\)")
_WORDS = re.compile(r"\w+")
_TICKED = re.compile(r"\[[xX]\]\s")


def is_struck(statement: str) -> bool:
    """Return True if a statement is struck through. One word and remarks in parentheses may be left unstruck."""
    if "~~" not in statement:
        return False
    rest = STRUCK.sub(" ", statement)
    return rest != statement and len(_WORDS.findall(_PARENTHESIS.sub(" ", rest))) <= 1


def without_struck(statement: str) -> str:
    """Return a statement without its struck parts."""
    return " ".join((STRUCK.sub(" ", statement) if "~~" in statement else statement).split())


def is_ticked(statement: str) -> bool:
    """Return True if a statement is a to-do with a ticked checkbox."""
    return bool(_TICKED.match(statement))


class Window(NamedTuple):
    """A range of text, as character offsets. Text before `fresh` is repeated from the previous window."""

    start: int
    fresh: int
    end: int
    tokens: int


def split_windows(text: str, start: int, end: int, limit: int, overlap: int) -> Iterator[Window]:
    """Split text[start:end] into overlapping windows of at most `limit` tokens; short text is one window."""
    total = count_tokens(text[start:end])
    if total <= limit:
        yield Window(start, start, end, total)
        return
    tokens_in = token_measure(text, start, end)
    width = (end - start) / total  # average characters per token
    fresh = start
    while True:
        reach = _token_reach(tokens_in, start, end, limit, width)
        if reach >= end:
            yield Window(start, fresh, end, count_tokens(text[start:end]))
            return
        least = max(fresh, start + (reach - start) * 6 // 10)
        stop = _best_break(text, least, reach)
        # str.rstrip() may strip characters that count as tokens, so a window with only such characters could
        # end before `fresh`.
        last = max(fresh, start + len(text[start:stop].rstrip()))
        yield Window(start, fresh, last, count_tokens(text[start:last]))
        fresh = _next_text_start(text, stop, end)
        start = (
            _overlap_start(text, tokens_in, max(start, stop - int(overlap * width)), stop, overlap) or fresh
        )


def _token_reach(tokens_in: TokenMeasure, start: int, end: int, limit: int, width: float) -> int:
    """Return an offset up to which the text has at most `limit` tokens, and not many fewer."""
    stop = min(end, start + min(int(limit * width), limit * 8) + 1)
    within, beyond = start, end + 1
    while beyond - within > 1:
        room = limit - tokens_in(start, stop)
        if room < 0:
            beyond = stop
        else:
            within = stop
            if room < limit // 20:
                break
        stop = (within + beyond) // 2 if beyond <= end else min(end, 2 * stop - start)
        if stop == within:
            break
    return within


def _best_break(text: str, least: int, reach: int) -> int:
    """Return the end of the last paragraph in the range, else of the last line, sentence or word, else `reach`."""
    for mark in ("\n\n", "\n"):
        position = text.rfind(mark, least, reach)
        if position > least:
            return position + len(mark)
    ends = [sentence.end() for sentence in _sentence_end().finditer(text, least, reach)]
    if ends and ends[-1] > least:
        return ends[-1]
    position = text.rfind(" ", least, reach)
    return position + 1 if position > least else reach


def _overlap_start(text: str, tokens_in: TokenMeasure, least: int, stop: int, overlap: int) -> int:
    """Return the offset at which the next window starts if it repeats about `overlap` tokens; 0 for no overlap.

    The offset is the start of a line, else of a sentence, else of a word.
    """
    while least < stop and (beyond := tokens_in(least, stop) - overlap) > 0:
        least += max(beyond // 2, 1)
    line = text.find("\n", max(least - 1, 0), stop - 1) + 1
    if not line:
        sentence = _sentence_end().search(text, least, stop - 1)
        line = sentence.end() if sentence else text.find(" ", least, stop - 1) + 1
    ink = _VISIBLE.search(text, line, stop) if line else None
    return ink.start() if ink else 0


def _next_text_start(text: str, start: int, end: int) -> int:
    """Return the start of the next non-blank line, with its indentation."""
    ink = _VISIBLE.search(text, start, end)
    position = ink.start() if ink else start
    return max(start, text.rfind("\n", start, position) + 1)


TRUTH_KIND, ENTRY_KIND = "truth_section", "timeline_entry"

STRATEGIES = ("section", "window", "paragraph", "page")

STRATEGY_LIMITS = {"section": (450, 60), "window": (400, 80), "paragraph": (450, 60), "page": (450, 60)}
"""Maximum tokens of a chunk, and approximate overlap with the previous chunk, for each strategy.

With these limits, a chunk with its title and headings rarely exceeds 512 tokens, the input limit of the usual
models.
"""

FALLBACK_LENGTH = 1_500
"""If a text is split by length only, each of its chunks has this many characters."""

ACROSS_HEADINGS = " across headings"

_LONGEST_HEADING = 200
_HEADING_REACH = 4_000
"""The first words under a heading are searched for in this many characters below it."""

MOST_PARTS = 10_000
"""A text is split at no more than this many headings, and into no more than this many segments.

The rest of the text is split by length only.
"""

# The pattern starts with \n instead of ^ and is applied to "\n" + text, which is several times as fast.
_HEADING = re.compile(r"\n {0,3}(#{1,6})(?:[ \t]+([^\n]*)|(?=\n|\Z))")
_LEADING_HEADINGS = re.compile(r"(?:\s*#{1,6}(?:[ \t][^\n]*)?(?=\n))+\s*(?=\S)")
_ONLY_HEADINGS = re.compile(r"(?:\s*#{1,6}(?:[ \t][^\n]*)?(?=\n|\Z))*\s*\Z")
_BLANK_LINES = re.compile(r"\n[ \t\r\f\v]*(?=\n)")
_ITEM = re.compile(r"(?:[-*+]|[0-9]{1,9}[.)])[ \t]")
_SPEAKER = re.compile(r"\S[^:\n]{0,40}: \S")


class Chunk(NamedTuple):
    """A piece of a page. Line numbers count from 1 within the compiled truth or the timeline."""

    kind: str
    text: str
    heading_path: str
    start_line: int
    end_line: int
    tokens: int
    date: str = ""


class MarkdownHeading(NamedTuple):
    start: int
    level: int
    text: str


class _Segment(NamedTuple):
    """A range of text that is split separately. Only timeline entries have a date."""

    start: int
    end: int
    date: str = ""
    entry: int = 0
    """Offset of the timeline entry itself, after the headings above it."""


def chunk_page(truth: str, timeline: str, strategy: str = "section") -> tuple[Chunk, ...]:
    """Return the chunks of a page, in text order.

    If splitting by structure fails, the page is split by length, so that it can still be searched and does
    not stop the indexing of other pages.
    """
    try:
        return chunk_by_structure(truth, timeline, strategy)
    except Exception:
        return (*_chunk_by_length(truth, TRUTH_KIND), *_chunk_by_length(timeline, ENTRY_KIND))


def _chunk_by_length(text: str, kind: str) -> Iterator[Chunk]:
    line = 1
    for start in range(0, len(text), FALLBACK_LENGTH):
        piece = text[start : start + FALLBACK_LENGTH]
        end = line + piece.count("\n")
        if piece.strip():
            yield Chunk(kind, piece, "", line, end, count_tokens(piece))
        line = end


def chunk_by_structure(truth: str, timeline: str, strategy: str = "section") -> tuple[Chunk, ...]:
    """Return the chunks of a page, as chunk_page() does, but without catching exceptions."""
    strategy, limit, overlap = _parse_strategy(strategy)
    headings = _find_headings(truth)
    stretches = _limit_segments(_SPLITTERS[strategy](truth, headings), len(truth))
    chunks = list(_make_chunks(truth, TRUTH_KIND, stretches, headings, limit, overlap))
    if timeline and not timeline.isspace():
        headings = _find_headings(timeline)
        stretches = (
            _whole_text(timeline, headings) if strategy == "page" else _split_entries(timeline, headings)
        )
        stretches = _limit_segments(stretches, len(timeline))
        chunks += _make_chunks(timeline, ENTRY_KIND, stretches, headings, limit, overlap)
    return tuple(chunks)


def _limit_segments(stretches: Iterable[_Segment], end: int) -> Iterator[_Segment]:
    """Yield at most MOST_PARTS segments, then one last segment that covers the rest of the text."""
    for number, stretch in enumerate(stretches):
        if number == MOST_PARTS:
            yield _Segment(stretch.start, end)
            return
        yield stretch


def window_strategy(limit: int, overlap: int, respect_headings: bool = True) -> str:
    """Return the name of the window strategy with this size, optionally ignoring headings."""
    size = "" if (limit, overlap) == STRATEGY_LIMITS["window"] else f" {limit}/{overlap}"
    return f"window{size}{'' if respect_headings else ACROSS_HEADINGS}"


def _parse_strategy(strategy: str) -> tuple[str, int, int]:
    """Return name, limit and overlap of a strategy such as `window 300/40`. The name is "page" across headings."""
    across = strategy.endswith(ACROSS_HEADINGS)
    name, _, size = strategy.removesuffix(ACROSS_HEADINGS).partition(" ")
    limit, overlap = map(int, size.split("/")) if size else STRATEGY_LIMITS[name]
    return "page" if across else name, limit, overlap


def embedding_text(title: str, heading_path: str, text: str) -> str:
    """Return the text to embed for a chunk: title, headings above it, and its text.

    The headings at the start of the text are dropped if the last of them is the title or in the path.
    """
    names = [part.lstrip("# ") for part in heading_path.split(" > ")] if heading_path else []
    names_above = {title, *names}
    heading = _LEADING_HEADINGS.match(text) if text[:1] in "# " else None
    if heading and _heading_text(heading[0].rstrip().rpartition("\n")[2].lstrip(" #")) in names_above:
        text = text[heading.end() :]
    above = " > ".join([name for name in names if name and name != title])
    return "\n".join([part for part in (title, above, text) if part])


# Entries, which are embedded in addition to the chunk that contains them

LONGEST_ENTRY = 400
"""Maximum characters of an entry. A longer list entry or paragraph is found by the vector of its chunk."""

LEAST_ENTRIES, LEAST_COVERED = 2, 0.5
"""The entries of a chunk are used if there are at least LEAST_ENTRIES, with at least LEAST_COVERED of its text.

For other chunks, the vector of the whole chunk is sufficient.
"""

LONGEST_PERSON_TURN = 1_600
"""Maximum characters of a person's turn in a chat. A longer turn is found by the vectors of its chunks."""

_PERSON = re.compile(r"(?:\*\*|__)?(?:user|human|me|you)(?:\*\*|__)?:", re.IGNORECASE)
_LONGEST_PARENT = 80
_CHECKBOX = re.compile(r"\A\s*\[[ xX-]\]\s+")
_LINK = re.compile(r"!?\[[^\[\]\n]*\]\([^()\n]*\)|\[\[[^\[\]\n]*\]\]|<?https?://\S+")
_WORD = re.compile(r"[^\W\d_]{2,}")
_TWO_WORDS = re.compile(r"(?<![^\W\d_])[^\W\d_]{2,}+\W++(?:\w++\W++){0,20}?[^\W\d_]{2,}")
_PATH_PART = re.compile(r"(#{1,6}) (.*)")


class ChunkEntry(NamedTuple):
    """A list entry, table row, single sentence or turn of a conversation within a chunk, as character offsets."""

    start: int
    end: int
    context: str
    """The text that the entry depends on: the list entry above it, or the first row of its table; "" if none."""
    heading_path: str


def find_entries(text: str, heading_path: str) -> tuple[ChunkEntry, ...]:
    """Return the entries of a chunk that mainly consists of entries; of any other chunk, a person's turns in a chat.

    In a chat, the person's turns are short and the answers long, so the vector of a chunk mainly represents the
    answers. Code, struck entries, and entries that consist only of links, as in a table of contents, are left out.
    """
    words = sum(1 for _ in islice(_WORD.finditer(text), 2 * LEAST_ENTRIES))
    if words < 2 * LEAST_ENTRIES:  # an entry has two words; checked first, because a page may have many lines
        return ()
    code = fence_cover(text)
    path = _HeadingPath(_find_headings(text), heading_path)
    above: list[StatementBlock] = []
    entries: list[ChunkEntry] = []
    for block in text_blocks(text):
        is_row = block.kind == ROW
        while above and (above[-1].kind == ROW) != is_row:
            above.pop()
        while above and not is_row and above[-1].indent >= block.indent:
            above.pop()
        if not code.contains(block.start) and _is_entry(text, block):
            context = text[above[-1].start : above[-1].end] if above else ""
            context = statement_text(context)[:_LONGEST_PARENT] if not is_row else context.strip()
            entries.append(ChunkEntry(block.start, block.end, context, path.at(block.start)))
        if block.kind == ITEM or (is_row and not above):
            above.append(block)
    covered = sum(entry.end - entry.start for entry in entries)
    if len(entries) >= LEAST_ENTRIES and covered >= LEAST_COVERED * len(text):
        return tuple(entries)
    turns = [entry for entry in entries if _PERSON.match(text, entry.start)]
    return tuple(turns) if any(entry.end - entry.start < len(text.rstrip()) for entry in turns) else ()


def _is_entry(text: str, block: StatementBlock) -> bool:
    longest = LONGEST_PERSON_TURN if _PERSON.match(text, block.start) else LONGEST_ENTRY
    if block.end - block.start > longest:
        return False
    content = text[block.start : block.end].strip()
    if block.kind == PARAGRAPH and not _SPEAKER.match(content):
        sentence = _sentence_end().search(content)
        is_long = sentence is not None and sentence.end() < len(content)
        if is_long or content.endswith(":") or content.startswith(("<", "{")):  # introductions and templates
            return False
    words = _LINK.sub(" ", content) if "[" in content or "://" in content else content
    return bool(_TWO_WORDS.search(words)) and not is_struck(content)


def entry_embedding_text(title: str, text: str, entry: ChunkEntry) -> str:
    """Return the text to embed for an entry: title, headings, context, and its text."""
    content = _CHECKBOX.sub("", without_struck(text[entry.start : entry.end]))
    return embedding_text(
        title, entry.heading_path, f"{entry.context}\n{content}" if entry.context else content
    )


# Splitters, which divide text into segments


def _split_sections(text: str, headings: list[MarkdownHeading], *, bare: bool = False) -> Iterator[_Segment]:
    """Split at headings of level 1 and 2. A heading with no text below it is joined with the next section.

    With `bare`, such a heading is joined only if the next heading is deeper, so that two headings of equal
    level are two sections.
    """
    start = looked = 0
    above = 0  # level of the previous heading
    for heading in headings:
        if heading.level <= 2:
            is_bare = _ONLY_HEADINGS.match(text, looked, heading.start)
            if not is_bare or (bare and above and heading.level <= above):
                yield _Segment(start, heading.start)
                start = heading.start
            looked, above = heading.start, heading.level
    yield _Segment(start, len(text))


def _find_headings(text: str) -> list[MarkdownHeading]:
    """Return all headings outside fenced code blocks, at most MOST_PARTS."""
    if "#" not in text:
        return []
    code = fence_cover(text)
    headings = (
        MarkdownHeading(match.start(), len(match[1]), _heading_text(match[2] or ""))
        for match in _HEADING.finditer("\n" + text)
        if not code.contains(match.start())
    )
    return list(islice(headings, MOST_PARTS))


def _heading_text(text: str) -> str:
    return without_closing_hashes(text.strip()).rstrip()[:_LONGEST_HEADING]


class _HeadingPath:
    """The path of headings above a position. Positions must be passed in ascending order."""

    def __init__(self, headings: list[MarkdownHeading], above: str = "") -> None:
        """`above` is the path of headings above the text."""
        self._ahead = iter(headings)
        self._next = next(self._ahead, None)
        parts = [_PATH_PART.match(part) for part in above.split(" > ")]
        self._above = [MarkdownHeading(-1, len(part[1]), part[2]) for part in parts if part]
        self._path = self._joined()

    def _joined(self) -> str:
        return " > ".join([f"{'#' * level} {text}" for _, level, text in self._above if text])

    def at(self, position: int) -> str:
        while self._next and self._next.start <= position:
            level = self._next.level
            self._above = [above for above in self._above if above.level < level] + [self._next]
            self._next = next(self._ahead, None)
            self._path = self._joined()
        return self._path


def _whole_text(text: str, _: list[MarkdownHeading]) -> Iterator[_Segment]:
    yield _Segment(0, len(text))


def _split_paragraphs(text: str, headings: list[MarkdownHeading]) -> Iterator[_Segment]:
    """Split at blank lines, headings of level 1 and 2, and each item of a list or conversation.

    Fenced code is one paragraph.
    """
    code = fence_cover(text)
    blanks = [blank.start() for blank in _BLANK_LINES.finditer(text)]
    breaks = [blank + 1 for blank in blanks if not code.contains(blank)]
    sections = [heading.start for heading in headings if heading.level <= 2]
    start = looked = 0
    for place in [*sorted({*breaks, *sections}), len(text)]:
        if not _ONLY_HEADINGS.match(text, looked, place):  # a heading is joined with the text below it
            yield from _split_items(text, start, place)
            start = place
        looked = place
    yield _Segment(start, len(text))


def _split_items(text: str, start: int, end: int) -> Iterator[_Segment]:
    """Split a paragraph into list items or speaker turns. Yield the whole paragraph if it has neither."""
    starts = [start, *(start + line.end() for line in re.finditer("\n", text[start:end]))]
    lines = [place for place in starts if place < end and _VISIBLE.match(text, place)]
    spoken = len(lines) > 1 and all(_SPEAKER.match(text, place) for place in lines)
    for place in lines:
        if (spoken or _ITEM.match(text, place)) and not _ONLY_HEADINGS.match(text, start, place):
            yield _Segment(start, place)
            start = place
    yield _Segment(start, end)


def _split_entries(text: str, headings: list[MarkdownHeading]) -> Iterator[_Segment]:
    """Split a timeline into its entries, with the headings above them, and the text between the entries."""
    position = 0
    for date, start, end in _entry_places(text):
        if not _ONLY_HEADINGS.match(text, position, start):
            yield from _split_between_entries(text, position, start, headings)
            position = start
        yield _Segment(position, end, date, start)
        position = end
    yield from _split_between_entries(text, position, len(text), headings)


def _split_between_entries(
    text: str, start: int, end: int, headings: list[MarkdownHeading]
) -> Iterator[_Segment]:
    if _VISIBLE.search(text, start, end):
        inside = _find_headings(text[start:end]) if headings else []
        for section in _split_sections(text[start:end], inside):
            yield _Segment(start + section.start, start + section.end)


def _entry_places(text: str) -> list[tuple[str, int, int]]:
    """Return date, start and end of each entry."""
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
    """Return the end of an entry: the next heading or, for a list item, the next line not indented deeper."""
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


_SPLITTERS: dict[str, Callable[[str, list[MarkdownHeading]], Iterator[_Segment]]] = {
    "section": _split_sections,
    # For notes: a heading without text is also a section, because a log entry may be just a heading.
    "window": partial(_split_sections, bare=True),
    "paragraph": _split_paragraphs,
    "page": _whole_text,
}


# Building chunks from segments


def _make_chunks(
    text: str,
    kind: str,
    stretches: Iterable[_Segment],
    headings: list[MarkdownHeading],
    limit: int,
    overlap: int,
) -> Iterator[Chunk]:
    trail, lines = _HeadingPath(headings), LineCounter(text)
    for stretch in stretches:
        ink = _VISIBLE.search(text, stretch.start, stretch.end)
        if ink is None:
            continue
        start = max(stretch.start, text.rfind("\n", stretch.start, ink.start()) + 1)
        end = start + len(text[start : stretch.end].rstrip())
        for first, fresh, last, tokens in split_windows(text, start, end, limit, overlap):
            line, piece = lines.at(first), text[first:last]
            path = _chunk_heading_path(text, trail, stretch, fresh)
            yield Chunk(kind, piece, path, line, line + piece.count("\n"), tokens, stretch.date)


def _chunk_heading_path(text: str, trail: _HeadingPath, stretch: _Segment, start: int) -> str:
    """Return the headings above the first words of a chunk.

    For an entry, return the headings above it, or "## Timeline" if there are none, and its date.
    """
    if stretch.date:
        return f"{trail.at(stretch.entry - 1) or '## Timeline'} > {stretch.date}"
    near = min(stretch.end, start + _HEADING_REACH)
    heading = _LEADING_HEADINGS.match(text, start, near) if text[start] in "# " else None
    return trail.at(heading.end() if heading else start)


TURN_PART_TOKENS, TURN_PART_OVERLAP = 400, 60
"""A part of a turn has at most TURN_PART_TOKENS tokens, about TURN_PART_OVERLAP of them from the previous part."""

SHORTEST_TURN = 6
"""A turn with fewer tokens has no parts and is not embedded."""

MOST_TURN_PARTS = 8
"""A turn has at most this many parts, about four book pages. The rest of its text is not embedded."""


def split_turn(text: str) -> tuple[tuple[int, int], ...]:
    """Return start and end of the parts of a turn, in text order."""
    # Text beyond the last part is not measured, because a pasted file may have millions of characters.
    end = min(len(text), (MOST_TURN_PARTS + 1) * TURN_PART_TOKENS * 4)
    tokens = count_tokens(text[:end])
    if tokens <= TURN_PART_TOKENS:
        return ((0, end),) if tokens >= SHORTEST_TURN else ()
    cut = islice(split_windows(text, 0, end, TURN_PART_TOKENS, TURN_PART_OVERLAP), MOST_TURN_PARTS)
    return tuple((part.start, part.end) for part in cut if not text[part.start : part.end].isspace())


def turn_embedding_text(role: str, text: str) -> str:
    """Return the text to embed for a part of a turn, including the role, because queries may mention it."""
    return f"{role}: {text}"
