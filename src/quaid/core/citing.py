"""Where in a page's text something stands: the part, the line, and the words of that line.

Knows texts only. What cannot be found has no line, and nobody pretends.
"""

from typing import NamedTuple

from quaid.core.prose import plain, shorten

LONGEST_QUOTE = 300


class Place(NamedTuple):
    """A line of a page."""

    part: str
    """truth or timeline."""
    line: int | None
    """From 1; none: of an earlier text."""
    quote: str


def place(truth: str, timeline: str, needles: tuple[str, ...]) -> Place | None:
    """The first line that holds the first needle that is there at all; the case of letters does not matter."""
    for needle in needles:
        wanted = _tidy(needle)
        if not wanted:
            continue
        for part, text in (("truth", truth), ("timeline", timeline)):
            line = _line_with(text, wanted)
            if line:
                return Place(part, line, quoted(text.split("\n")[line - 1]))
    return None


def _line_with(text: str, wanted: str) -> int:
    low = text.lower()
    at = _whole(low, wanted)
    if at >= 0:
        return low.count("\n", 0, at) + 1
    if " " not in wanted:
        return 0
    tidy = _tidy(text)  # the words may run over the end of a line
    at = _whole(tidy, wanted)
    if at < 0:
        return 0
    words = tidy.count(" ", 0, at)
    for number, line in enumerate(low.split("\n"), 1):
        count = len(line.split())
        if words < count:
            return number
        words -= count
    return 0


def _whole(text: str, wanted: str) -> int:
    """Where whole words stand, or -1: active is not in inactive."""
    at = text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        if not (_joins(text[at - 1 : at], wanted[0]) or _joins(wanted[-1], text[end : end + 1])):
            return at
        at = text.find(wanted, at + 1)
    return -1


def _joins(before: str, after: str) -> bool:
    """Whether two neighbours are of one word. Where words are not parted by spaces, nobody can tell."""
    return all(
        each.isalnum() and (each.isascii() or each.lower() != each.upper()) for each in (before, after)
    )


def quoted(line: str) -> str:
    """A line as people read it."""
    return shorten(plain(line.lstrip(" \t>#-*+")), LONGEST_QUOTE)


def _tidy(text: str) -> str:
    return " ".join(text.lower().split())
