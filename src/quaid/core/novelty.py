"""Whether a text says anything that another does not say already.

Knows the two measures and their limits. Does not know where the texts and the vectors come from.
"""

from collections import Counter

from quaid.core.patterns import pattern

_TELLING = pattern(
    r"\d+(?:[.,:/-]\d+)*%?|\b(?:not|no|never|none|nor|neither|without|cannot)\b|n['’]t\b"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b"
)

WORDS_ALIKE = 0.85
"""Above this share of common words a text is a duplicate."""

MEANING_ALIKE = 0.95
"""Above this cosine it is one, too."""


def jaccard(one: str, other: str) -> float:
    """The share of words, split at white space and in lower case, that two texts have in common: 0 to 1."""
    first, second = set(one.lower().split()), set(other.lower().split())
    every = first | second
    return len(first & second) / len(every) if every else 1.0


def likeness(words: float, meaning: float | None) -> float | None:
    """How alike two texts are, if that makes the one a duplicate of the other; else None."""
    if words > WORDS_ALIKE:
        return words
    return meaning if meaning is not None and meaning > MEANING_ALIKE else None


def corrects(old: str, new: str) -> bool:
    """Whether numbers, dates or negations differ: a small change that says something else."""
    return Counter(_TELLING.findall(old.lower())) != Counter(_TELLING.findall(new.lower()))
