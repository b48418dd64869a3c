"""Parse a user's text into the words and phrases to look for, as FTS5 expressions.

Every word is quoted, so that operators of FTS5 in the text are only text.
"""

import re
import unicodedata
from typing import NamedTuple

from quaid.model.plain_text import cjk_bigrams, has_cjk, split_cjk

LONGEST_QUERY = 10_000
"""Characters of a question that are read; whatever comes later is not a question any more."""

MOST_WORDS = 32
MOST_PARTS = 64
LONGEST_PHRASE = 64

STOP_WORDS = frozenset(
    """a about after all also am an and any are as at be because been before being both but by can could did do does
    doing down during each few for from had has have having he her here hers him his how i if in into is it its
    just me more most my no nor not now of off on once only or other our out over own same she should so some such
    t than that the their them then there these they this those through to too under until up very was we were what
    when where which while who whom why will with would you your""".split()
)
"""English words that say nothing about a page; they count only beside nothing else, or within a phrase."""

_PHRASE = re.compile(r'"([^"]*)"|“([^“”]*)”')
# An accent that no letter includes still belongs to its word.
_WORD = re.compile(r"[^\W_]+(?:[\u0300-\u036f]+[^\W_]*)*")
_POSSESSIVE = re.compile(r"(?i)(?<=[^\W_])['’]s(?![^\W_])")


class Term(NamedTuple):
    """One thing to look for."""

    text: str
    """Words of the index with spaces between them: one word, or a phrase."""
    unspaced: bool = False
    """Only page_fts_unspaced can hold it."""
    prefix: bool = False
    """The last word may go on."""
    literal: str = ""
    """How it stands in a page, where the words of the index do not show it."""

    @property
    def quoted(self) -> str:
        return f'"{self.text}"*' if self.prefix else f'"{self.text}"'


class QueryPlan(NamedTuple):
    """What to look for: pages with all words, then with all telling words, then with any of the parts."""

    words: tuple[Term, ...]
    telling: tuple[Term, ...]
    """The words without those that are in every text; all of them when there are no others."""
    parts: tuple[Term, ...]
    """The telling words, and what those that are made of several consist of, as e-mail or 東京都."""

    @property
    def unspaced(self) -> bool:
        return any(word.unspaced for word in self.words)


def plan_query(text: str) -> QueryPlan:
    """Read a user's text. No words in it: an empty plan."""
    words: dict[str, Term] = {}
    parts: dict[str, Term] = {}
    for piece, is_phrase in _pieces(_readable(text)):
        if not is_phrase and ("'" in piece or "’" in piece):
            piece = _POSSESSIVE.sub(" ", piece)
        word = _phrase(piece)
        if word is None:
            continue
        words.setdefault(word.text.lower(), word)
        if not is_phrase:
            for part in _parts(piece):
                parts.setdefault(part.text.lower(), part)
        if len(words) == MOST_WORDS or len(parts) >= MOST_PARTS:
            break
    telling = _without_stop_words(words)
    return QueryPlan(
        tuple(words.values()),
        tuple(telling.values()),
        tuple({**telling, **_without_stop_words(parts)}.values())[:MOST_PARTS],
    )


def _without_stop_words(terms: dict[str, Term]) -> dict[str, Term]:
    return {text: term for text, term in terms.items() if text not in STOP_WORDS} or terms


def whole_phrase(text: str) -> Term | None:
    """The whole text as one phrase."""
    return _phrase(_readable(text))


def _readable(text: str) -> str:
    text = text[:LONGEST_QUERY]
    if text.isascii():
        return text
    # The index folds an accent only where it is part of a letter.
    return unicodedata.normalize("NFC", text)


def _pieces(text: str) -> list[tuple[str, bool]]:
    """What stands between spaces, and what stands between a pair of quotes."""
    found: list[tuple[str, bool]] = []
    end = 0
    if ('"' in text or "“" in text) and text.count('"') % 2 == 0:
        for phrase in _PHRASE.finditer(text):
            found += [(piece, False) for piece in text[end : phrase.start()].split()]
            found.append((phrase[1] or phrase[2] or "", True))
            end = phrase.end()
    return found + [(piece, False) for piece in text[end:].split()]


def _words(text: str) -> list[str]:
    """The words of a text; most of what stands between two spaces is one."""
    words: list[str] = []
    for piece in text.split():
        words += [piece] if piece.isalnum() else _WORD.findall(piece)
    return words


def _phrase(piece: str) -> Term | None:
    """All of a piece, in its order."""
    if not has_cjk(piece):
        words = _words(piece)[:LONGEST_PHRASE]
        return Term(" ".join(words)) if words else None
    between_and_runs = split_cjk(piece)
    literal = "".join(between_and_runs).strip()
    words = []
    for place, text in enumerate(between_and_runs):
        words += cjk_bigrams(text) if place % 2 else _words(text)
    ends_in_run = not _WORD.search(between_and_runs[-1])
    prefix = ends_in_run and len(between_and_runs[-2]) == 1
    if ends_in_run and not prefix:
        # In a page the run may go on, so its last character need not stand alone there.
        words.pop()
    if len(words) > LONGEST_PHRASE:
        words, prefix = words[:LONGEST_PHRASE], False
    return Term(" ".join(words), unspaced=True, prefix=prefix, literal=literal)


def _parts(piece: str) -> list[Term]:
    """What a piece is made of, each for itself."""
    if not has_cjk(piece):
        return [Term(word) for word in _words(piece)]
    parts = []
    for place, text in enumerate(split_cjk(piece)):
        if place % 2 == 0:
            parts += [Term(word) for word in _words(text)]
        elif len(text) == 1:
            parts.append(Term(text, unspaced=True, prefix=True, literal=text))
        else:
            parts += [Term(pair, unspaced=True, literal=pair) for pair in cjk_bigrams(text)[:-1]]
    return parts
