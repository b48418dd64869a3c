"""Which words of a question a text holds, as the index sees them: by their stems.

To the index the name `Ines` and the word `in` are one stem. A word that is in every text therefore stands for no
other than itself. Knows stems and the words that say nothing; does not know where a text comes from.
"""

from typing import TYPE_CHECKING, NamedTuple

from quaid.search.plan import COMMON

if TYPE_CHECKING:
    from quaid.storage.text_index import Stemmer


class Stems(NamedTuple):
    """The words of a text."""

    every: frozenset[str]
    telling: frozenset[str]
    """Without those that are in every text."""

    def hold(self, wanted: "Stems") -> bool:
        """Whether all words of a part of a question are here."""
        if wanted.every == wanted.telling:
            return bool(wanted.every) and wanted.every <= self.telling
        return wanted.every <= self.every


def stems(stemmer: "Stemmer", text: str) -> Stems:
    raw = text.encode("utf-8", "replace")
    every, telling = set(), set()
    for start, end, stem in stemmer.words(raw):
        every.add(stem)
        if raw[start:end].lower().decode("utf-8", "replace") not in COMMON:
            telling.add(stem)
    return Stems(frozenset(every), frozenset(telling))


def mistakable(stemmer: "Stemmer", part: str) -> bool:
    """Whether the index takes a telling word for one that is in every text."""
    wanted = stems(stemmer, part)
    return wanted.every == wanted.telling and not wanted.every.isdisjoint(
        stems(stemmer, " ".join(COMMON)).every
    )
