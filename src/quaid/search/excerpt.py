"""A few words of a page around those that were asked for, which are marked.

Knows where words stand in a text and which stretch of it shows most of them. Does not know why a page was found.

The words are found with the index's own tokenizer: asking FTS5 for its snippets repeats the match for each page
and takes seven times as long.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from quaid.search.plan import Plan
    from quaid.storage.text_index import Stemmer

WIDTH = 200
"""Characters of an excerpt; half as many in scripts without spaces, which say more with each."""

LEAD = 50
"""Characters before the first marked word, at most."""

CHUNK = 16_000
MOST_CHUNKS = 16
"""Long texts are read in chunks until one holds a word. What lies behind the last is not shown."""

SENTENCE_ENDS = ("\n", ". ", "! ", "? ", "。")
LINE_MARKS = "#>-*+ \t\n"
"""What opens a heading, a quote or a list."""


class Span(NamedTuple):
    """Where a word stands, and which."""

    start: int
    end: int
    word: str


class Marker:
    """Cuts excerpts for one question."""

    def __init__(self, stemmer: "Stemmer", wanted: "Plan", marks: tuple[str, str] = ("**", "**")) -> None:
        self._stemmer = stemmer
        self._marks = marks
        self._by_letters = wanted.unspaced
        words = " ".join(term.text for term in wanted.parts if not term.unspaced)
        self._stems = {stem for _, _, stem in stemmer.words(words.encode())}
        self._literals = [term.literal or term.text for term in wanted.parts]
        self._letters: re.Pattern[str] | None = None  # of the literals, once a text has none of the stems

    def excerpt(self, *texts: str) -> str:
        """The best stretch of the first text that holds a word; empty when none does."""
        find_first, find_then = self._by_stem, self._by_letter
        if self._by_letters:
            find_first, find_then = find_then, find_first
        for find in (find_first, find_then):
            for text in texts:
                for chunk in _chunks(text):
                    spans = find(chunk)
                    if spans:
                        return _cut(chunk, spans, WIDTH // 2 if self._by_letters else WIDTH, self._marks)
        return ""

    def _by_stem(self, text: str) -> list[Span]:
        encoded = text.encode("utf-8", "replace")
        found = []
        at = characters = 0
        for start, end, stem in self._stemmer.words(encoded):
            if stem in self._stems:
                begin = characters + len(encoded[at:start].decode())
                at, characters = end, begin + len(encoded[start:end].decode())
                found.append(Span(begin, characters, stem))
        return found

    def _by_letter(self, text: str) -> list[Span]:
        if not self._literals:
            return []
        if self._letters is None:
            self._letters = _pattern(self._literals)
        return [
            Span(found.start(), found.end(), found.group().lower()) for found in self._letters.finditer(text)
        ]


def _pattern(literals: list[str]) -> "re.Pattern[str]":
    longest_first = sorted(literals, key=len, reverse=True)
    # A word may stand right behind another script, but not within a word of its own.
    alternatives = [
        rf"(?<![a-z0-9]){re.escape(literal)}" if literal.isascii() else re.escape(literal)
        for literal in longest_first
    ]
    return re.compile("|".join(alternatives), re.IGNORECASE)


def _chunks(text: str) -> Iterator[str]:
    start = 0
    for _ in range(MOST_CHUNKS):
        end = start + CHUNK
        if end >= len(text):
            yield text[start:]
            return
        gap = max(text.rfind(" ", start, end), text.rfind("\n", start, end))
        end = gap if gap > start else end
        yield text[start:end]
        start = end


def _cut(text: str, spans: list[Span], width: int, marks: tuple[str, str]) -> str:
    """The stretch with most different words in it, the words between the marks."""
    best = max(range(len(spans)), key=lambda place: (_words_from(spans, place, width - LEAD), -place))
    start = _begin(text, spans[best].start)
    end = _end(text, max(start + width, spans[best].end))
    pieces = []
    at = start
    for span in _joined(text, [span for span in spans[best:] if span.end <= end]):
        pieces += [text[at : span.start], marks[0], text[span.start : span.end], marks[1]]
        at = span.end
    pieces.append(text[at:end])
    shown = " ".join("".join(pieces).split())
    return ("…" if text[:start].strip(LINE_MARKS) else "") + shown + ("…" if text[end:].strip() else "")


def _words_from(spans: list[Span], place: int, width: int) -> int:
    within = set()
    for span in spans[place : place + 50]:
        if span.end > spans[place].start + width:
            break
        within.add(span.word)
    return len(within)


def _begin(text: str, first: int) -> int:
    """A start before the first word: that of its line or sentence if near, else that of some word."""
    start = max(0, first - LEAD)
    ends = [found + len(mark) for mark in SENTENCE_ENDS if (found := text.rfind(mark, start, first)) >= 0]
    if ends:
        start = max(ends)
    elif start:
        gap = text.find(" ", start, first)
        start = gap + 1 if gap >= 0 else start
    while start < first and text[start] in LINE_MARKS:
        start += 1
    return start


def _end(text: str, end: int) -> int:
    if end >= len(text):
        return len(text)
    gap = text.rfind(" ", end - 20, end + 1)
    return gap if gap > 0 else end


def _joined(text: str, spans: list[Span]) -> Iterator[Span]:
    """Words that only a space parts are marked as one."""
    held: Span | None = None
    for span in spans:
        if held and not text[held.end : span.start].strip():
            held = Span(held.start, span.end, held.word)
            continue
        if held:
            yield held
        held = span
    if held:
        yield held
