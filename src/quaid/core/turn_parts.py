"""What is embedded of a turn: windows of its text, as long as a model can read.

Who says little ("yes", "go on") says nothing that a model could tell apart; such a turn has no parts and is found by
its words. Of an endless one, as a log that was pasted, only the beginning has parts. Knows text only.
"""

from itertools import islice
from typing import NamedTuple

from quaid.core.tokens import count_tokens
from quaid.core.windows import windows

LIMIT, OVERLAP = 400, 60
"""How many tokens a part may have, and about how many of them it may share with the one before."""

LEAST = 6
"""A turn of fewer tokens has no parts."""

MOST = 8
"""Parts of one turn: about four pages of a book."""


class Part(NamedTuple):
    """A stretch of a turn, by its characters."""

    start: int
    end: int


def parts(text: str) -> tuple[Part, ...]:
    """The parts of a turn's text, in their order."""
    # What comes after the last part is not measured: a pasted file may have millions of characters.
    end = min(len(text), (MOST + 1) * LIMIT * 4)
    tokens = count_tokens(text[:end])
    if tokens <= LIMIT:
        return (Part(0, end),) if tokens >= LEAST else ()
    cut = islice(windows(text, 0, end, LIMIT, OVERLAP), MOST)
    return tuple(Part(each.start, each.end) for each in cut if not text[each.start : each.end].isspace())


def embedded(role: str, text: str) -> str:
    """What a model is given of a part: who says it belongs to it, or a question for Ada's plans finds anybody's."""
    return f"{role}: {text}"
