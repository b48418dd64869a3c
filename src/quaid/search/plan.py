"""Parse a query into words and phrases for FTS5.

Every word is quoted, so that FTS5 operators in the text have no effect.
"""

import re
import unicodedata
from typing import NamedTuple

from quaid.model.plain_text import cjk_bigrams, has_cjk, split_cjk

LONGEST_QUERY = 10_000
"""This many characters of a query are read; the rest is ignored."""

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
"""English words that are ignored, unless they are part of a phrase or the query has no other words."""

_PHRASE = re.compile(r'"([^"]*)"|“([^“”]*)”')
# Combining accents without a precomposed letter belong to the word.
_WORD = re.compile(r"[^\W_]+(?:[\u0300-\u036f]+[^\W_]*)*")
_POSSESSIVE = re.compile(r"(?i)(?<=[^\W_])['’]s(?![^\W_])")


class Term(NamedTuple):
    """A word or phrase to search for."""

    text: str
    """One word or a phrase, as tokens of the index separated by spaces."""
    unspaced: bool = False
    """True if only page_fts_unspaced, the index of scripts written without spaces, can contain the term."""
    prefix: bool = False
    """True if the last word is a prefix."""
    literal: str = ""
    """The text as it appears in a page, if it differs from the tokens."""

    @property
    def quoted(self) -> str:
        return f'"{self.text}"*' if self.prefix else f'"{self.text}"'


class QueryPlan(NamedTuple):
    """The terms of a query: all words, the words except stop words, and the parts of these words."""

    words: tuple[Term, ...]
    telling: tuple[Term, ...]
    """`words` without stop words, or all words if all of them are stop words."""
    parts: tuple[Term, ...]
    """The terms in `telling`, and the components of compound words such as e-mail or 東京都."""

    @property
    def unspaced(self) -> bool:
        return any(word.unspaced for word in self.words)


def plan_query(text: str) -> QueryPlan:
    """Parse a query. Text without words gives an empty plan."""
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
    """Return the whole text as one phrase, or None if it has no words."""
    return _phrase(_readable(text))


def _readable(text: str) -> str:
    text = text[:LONGEST_QUERY]
    if text.isascii():
        return text
    # The index folds accents only in precomposed letters.
    return unicodedata.normalize("NFC", text)


def _pieces(text: str) -> list[tuple[str, bool]]:
    """Split text at whitespace. Text between quotation marks is one piece, marked as a phrase."""
    pieces: list[tuple[str, bool]] = []
    end = 0
    if ('"' in text or "“" in text) and text.count('"') % 2 == 0:
        for phrase in _PHRASE.finditer(text):
            pieces += [(piece, False) for piece in text[end : phrase.start()].split()]
            pieces.append((phrase[1] or phrase[2] or "", True))
            end = phrase.end()
    return pieces + [(piece, False) for piece in text[end:].split()]


def _words(text: str) -> list[str]:
    """Return the words of the text, without punctuation."""
    words: list[str] = []
    for piece in text.split():
        words += [piece] if piece.isalnum() else _WORD.findall(piece)
    return words


def _phrase(piece: str) -> Term | None:
    """Return a whole piece as one phrase, or None if it has no words."""
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
        # In a page, more characters may follow. In that case the last character is not indexed as a separate
        # token.
        words.pop()
    if len(words) > LONGEST_PHRASE:
        words, prefix = words[:LONGEST_PHRASE], False
    return Term(" ".join(words), unspaced=True, prefix=prefix, literal=literal)


def _parts(piece: str) -> list[Term]:
    """Return the components of a piece as separate terms."""
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
