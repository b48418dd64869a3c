"""Whether two lines say the same, and what is left of a word without its ending. No meaning, no synonyms.

Two lines are one when their words are the same, in the same order, but for one that says nothing: an article, not a
name, a number or a "not". To write a thing twice is a small evil, to drop one that was different a great one.
"""

from functools import cache

SHARE = 0.85
"""Of the words of the longer line, how many they must share."""

SMALL = frozenset(
    """a an the and of to in on at for is are was were be been am my our your his her their its that this it
    please also so just i we you he she they with by as""".split()
)


def same(one: str, other: str) -> bool:
    """Whether two lines say the same: one is the other, but for a few small words that it has more."""
    short, long = sorted((_words(one), _words(other)), key=len)
    if len(short) < SHARE * len(long) or not short:
        return False
    rest = iter(long)
    for word in short:
        for each in rest:
            if each == word:
                break
            if each not in SMALL:
                return False
        else:
            return False
    return all(each in SMALL for each in rest)


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
    """The words of a line with all that tells them apart: signs in and around them, case where it means something.

    Only what ends or sets off a sentence goes: `milk.` is `milk`, but `-18`, `C++`, `3,500` and `Secret1` stay.
    """
    pieces = text.replace("’", "'").split()
    words = [_cased(_bare(piece)) for piece in pieces if piece.strip(SIGNS)]
    return words or pieces


def _bare(piece: str) -> str:
    word = piece.strip(SIGNS)
    return word if any(each.isalnum() for each in word) else piece  # != is a word too


SIGNS = "\"'`*_()[]{}“”‘„«»,;:.!?…"


def _cased(word: str) -> str:
    """A code or a name with odd capitals is itself; a word may be written large."""
    if any(each.isdigit() for each in word) or (
        not word.isupper() and any(each.isupper() for each in word[1:])
    ):
        return word
    return word.lower()
