"""A long stretch of text cut into windows that share their ends.

A window ends where a paragraph ends, if it is well filled by then, else where a line, a sentence or a word does.
Knows text only, no headings.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from quaid.core.tokens import Measure, count_tokens, measure

_SENTENCE = re.compile(r"(?<![.!?…])[.!?…]+[\"'”’»)\]*_]*(?:[ \t]+|\Z)|[。！？；｡]+[”’」』）]*")
_INK = re.compile(r"\S")


class Window(NamedTuple):
    """Where a window begins, where it begins to say something new, where it ends, and its tokens."""

    start: int
    fresh: int
    end: int
    tokens: int


def windows(text: str, start: int, end: int, limit: int, overlap: int) -> Iterator[Window]:
    """A stretch of a text as windows of at most so many tokens; one that is short enough is one."""
    total = count_tokens(text[start:end])
    if total <= limit:
        yield Window(start, start, end, total)
        return
    tokens_in = measure(text, start, end)
    width = (end - start) / total  # characters of a token
    fresh = start
    while True:
        reach = _reach(tokens_in, start, end, limit, width)
        if reach >= end:
            yield Window(start, fresh, end, count_tokens(text[start:end]))
            return
        least = max(fresh, start + (reach - start) * 6 // 10)
        stop = _best_break(text, least, reach)
        # What is blank to Python may count as tokens: a window of nothing else ends where it begins.
        last = max(fresh, start + len(text[start:stop].rstrip()))
        yield Window(start, fresh, last, count_tokens(text[start:last]))
        fresh = _next_ink(text, stop, end)
        start = _shared(text, tokens_in, max(start, stop - int(overlap * width)), stop, overlap) or fresh


def _reach(tokens_in: Measure, start: int, end: int, limit: int, width: float) -> int:
    """How far a number of tokens goes, almost."""
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
    """The last place to cut at: where a paragraph ends, else a line, a sentence, a word; else the last at all."""
    for mark in ("\n\n", "\n"):
        found = text.rfind(mark, least, reach)
        if found > least:
            return found + len(mark)
    ends = [sentence.end() for sentence in _SENTENCE.finditer(text, least, reach)]
    if ends and ends[-1] > least:
        return ends[-1]
    found = text.rfind(" ", least, reach)
    return found + 1 if found > least else reach


def _shared(text: str, tokens_in: Measure, least: int, stop: int, overlap: int) -> int:
    """Where the next window begins, so that it repeats the last lines or sentences; 0: nowhere."""
    while least < stop and (beyond := tokens_in(least, stop) - overlap) > 0:
        least += max(beyond // 2, 1)
    line = text.find("\n", max(least - 1, 0), stop - 1) + 1
    if not line:
        sentence = _SENTENCE.search(text, least, stop - 1)
        line = sentence.end() if sentence else text.find(" ", least, stop - 1) + 1
    ink = _INK.search(text, line, stop) if line else None
    return ink.start() if ink else 0


def _next_ink(text: str, start: int, end: int) -> int:
    """The beginning of the next words, with what indents them."""
    ink = _INK.search(text, start, end)
    position = ink.start() if ink else start
    return max(start, text.rfind("\n", start, position) + 1)
