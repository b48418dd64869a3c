"""Whether two lines say the same, and what is left of a word without its ending. No meaning, no synonyms.

Two lines are one when their words are the same, or nearly all of them, and those that differ say nothing: an article,
not a name, a number or a "not".
"""

from functools import cache

from quaid.core import names

SHARE = 0.9
"""Of all words of both lines, how many they must share."""

SMALL = frozenset(
    """a an the and of to in on at for is are was were be been am my our your his her their its that this it
    please also so just i we you he she they with by as""".split()
)


def same(one: str, other: str) -> bool:
    """Whether two lines say the same."""
    left, right = _words(one), _words(other)
    if left == right:
        return True
    both, either = set(left) & set(right), set(left) | set(right)
    if not both or len(both) / len(either) < SHARE or not (either - both) <= SMALL:
        return False
    return [word for word in left if word not in SMALL] == [word for word in right if word not in SMALL]


@cache
def stem(word: str) -> str:
    """The beginning that the forms of an English word share: "format" of "formatters"."""
    for endings, least in _ENDINGS[word.endswith(("ss", "us", "is")) :]:
        for ending in endings:
            if word.endswith(ending) and len(word) - len(ending) >= least:
                word = word[: -len(ending)]
                break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] in "bdgklmnprt":
        return word[:-1]
    return word


_ENDINGS = (
    (("ies", "s"), 3),
    (("ations", "ation", "ating", "ated", "ate", "ment", "ing", "er", "ed", "ly"), 4),
    (("y", "e", "i"), 3),
)
"""Each line takes one ending off, if so many letters stay."""


def _words(text: str) -> list[str]:
    # Piece by piece: a folded name is cut off where no name goes on.
    return [word for piece in text.replace("’", "'").split() for word in names.fold(piece).split()]
