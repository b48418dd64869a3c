"""Replace words of a question that the memory does not contain by words that are spelled almost the same.

A word is corrected only if no page and no conversation contains it and it is not an English word, because a
question may be about something that is not in the memory. English words are those of the vocabulary of the
built-in model; without its package no word is corrected. A word in quotation marks is never changed.
"""

import os
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from quaid.search.plan import STOP_WORDS
from quaid.storage import chunks, conversations, pages
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import CHUNKS, SPACED, TURNS, Stemmer, TextIndex

SHORTEST = 5
"""Shorter words are not corrected, because too many words differ from them by one letter."""

SHORTEST_STEM = 3
"""The rest of a word without its ending has at least this many letters."""

LONG = 8
"""Two letters may be wrong in a word of at least this length, and one in a shorter word."""

LONG_NAME = 6
"""A capitalized word may be a name, so it is corrected only from this length on, and only by one letter."""

MOST_CHECKED = 32
MOST_CORRECTED = 3
"""At most MOST_CHECKED words of a question are looked up, and at most MOST_CORRECTED of them are corrected."""

MANY_ROWS = 20_000
"""A correction begins with the same letter as the word; in an index with more rows than this, with the same two."""

_WORD = re.compile(r"[^\W\d_]+")
_LITERAL = re.compile(r'"[^"]*"|“[^“”]*”|\[\[[^\]]*\]\]|`[^`]*`|\S*[@/\\]\S*')
_ENDINGS = (
    *("s", "es", "ed", "ing", "ings", "ly", "er", "ers", "or", "ors", "est", "able", "ness"),
    *("ment", "ments", "ist", "ists", "ism", "ize", "ized", "izes", "izing", "less", "ful", "fully"),
)
"""A word with one of these endings is an English word if the rest is."""


class Correction(NamedTuple):
    """A word of a question, and the word that was searched for instead."""

    word: str
    instead: str

    def __str__(self) -> str:
        return f'searched for "{self.instead}" instead of "{self.word}"'


def correct_spelling(db: Database, question: str) -> tuple[str, tuple[Correction, ...]]:
    """Return a question with misspelled words replaced, and the corrections."""
    unknown = _unknown_words(db, question)
    corrections: list[Correction] = []
    for word in unknown:
        if len(corrections) == MOST_CORRECTED:
            break
        instead = _nearest_word(db, word)
        if instead:
            instead = instead.capitalize() if word[:1].isupper() else instead
            corrections.append(Correction(word, instead))
            question = re.sub(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", instead, question)
    return question, tuple(corrections)


def _unknown_words(db: Database, question: str) -> list[str]:
    """Return the words that neither the memory nor the English vocabulary contains."""
    text = _LITERAL.sub(" ", question)
    words = [word for word in dict.fromkeys(_WORD.findall(text)) if len(word) >= SHORTEST][:MOST_CHECKED]
    words = [word for word in words if word.isascii() and word.lower() not in STOP_WORDS]
    for name in (CHUNKS, SPACED, TURNS):
        if words:
            known = {
                term.strip('"') for term in TextIndex(db, name).known_terms([f'"{word}"' for word in words])
            }
            words = [word for word in words if word not in known]
    english = _english_words() if words else ""
    return [word for word in words if english and not _is_english(word.lower(), english)]


def _english_words() -> str:
    """Return English words, each on a line, or "" if the package of the built-in model is not installed."""
    from quaid.embedding import onnx  # takes a millisecond, and few questions have an unknown word

    folder = onnx.find_package(onnx.BGE_PACKAGE, *onnx.BGE_PATH)
    if folder is None:
        return ""
    try:
        with open(os.path.join(folder, "vocab.txt"), encoding="utf-8") as file:
            return f"\n{file.read()}\n"
    except OSError:
        return ""


def _is_english(word: str, english: str) -> bool:
    stems = []
    for ending in _ENDINGS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) >= SHORTEST_STEM:
            stems += [stem, f"{stem}e"] if ending[0] in "aeiou" else [stem]  # scheduled: schedule
    stems += [f"{stem[:-1]}y" for stem in stems if stem.endswith("i")]
    stems += [stem[:-1] for stem in stems if stem[-1] == stem[-2:-1]]  # planner: plan
    return any(f"\n{stem}\n" in english for stem in (word, *stems))


def _nearest_word(db: Database, word: str) -> str:
    """Return the most similar word of the memory, preferring frequent ones, or "" if none is similar enough."""
    stemmer = Stemmer(db)
    stem = _stem(stemmer, word)
    most = 2 if len(stem) >= LONG else 1
    if word[:1].isupper():
        most = 1 if len(word) >= LONG_NAME else 0
    letters = Counter(stem)
    best: tuple[int, int, str] | None = None
    for name in (SPACED, TURNS):
        index = TextIndex(db, name)
        same = stem[: 1 if index.highest_id() <= MANY_ROWS else 2]
        for term, count in index.terms(same, len(stem) - most, len(stem) + most):
            if (letters - Counter(term)).total() > most:
                continue
            distance = edit_distance(stem, term, most)
            if distance <= most and (best is None or (distance, -count) < best[:2]):
                best = distance, -count, term
    return _spelled(db, stemmer, best[2]) if best else ""


def _stem(stemmer: Stemmer, word: str) -> str:
    return next((stem for _, _, stem in stemmer.words(word.encode())), word.lower())


def _spelled(db: Database, stemmer: Stemmer, stem: str) -> str:
    """Return a word with this stem as it is spelled in a page or a turn, or "" if there is none."""
    for text in _texts_with_term(db, stem):
        raw = text.encode("utf-8", "replace")
        for start, end, of_word in stemmer.words(raw):
            if of_word == stem:
                return raw[start:end].decode("utf-8", "replace").lower()
    return ""


def _texts_with_term(db: Database, term: str) -> Iterator[str]:
    chunk, turn = (TextIndex(db, name).first_row_with_term(term) for name in (CHUNKS, TURNS))
    for row in chunks.load(db, [chunk] if chunk else []):
        yield from (row.text, row.heading_path)
        yield from (head.title for head in pages.page_heads(db, [row.page_id]).values())
    for of_turn, _ in conversations.load_turns(db, [turn] if turn else []).values():
        yield of_turn.text


def edit_distance(first: str, second: str, most: int) -> int:
    """Return the edit distance (insertions, deletions, replacements, swaps), or most + 1 if it is greater."""
    if abs(len(first) - len(second)) > most:
        return most + 1
    above = list(range(len(second) + 1))
    before = above
    for row, letter in enumerate(first, 1):
        line = [row]
        for column, other in enumerate(second, 1):
            cost = min(above[column] + 1, line[-1] + 1, above[column - 1] + (letter != other))
            if row > 1 and column > 1 and letter == second[column - 2] and first[row - 2] == other:
                cost = min(cost, before[column - 2] + 1)
            line.append(cost)
        if min(line) > most:
            return most + 1
        before, above = above, line
    return min(above[-1], most + 1)
