"""Classify a sentence by the kinds of words in it, in English, French, German, Spanish, Chinese and Japanese.

routing_words.txt assigns words to classes that are the same in every language, such as LIKE for "prefer" and
"préfère". A linear model scores the classes, their order and the shape of the sentence (a phone number, a question
mark). Its weights are in routing_weights.txt; `python -m bench.remember_weights` learns them from labelled sentences.
"""

import itertools
import math
import os
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

CATEGORIES = (
    "todo",
    "shopping",
    "contact",
    "order",
    "preference",
    "pattern",
    "fact",
    "list",
    "removal",
    "question",
    "correction",
)
LATIN_LANGUAGES = ("en", "fr", "de", "es")
SURELY_ENGLISH, PROBABLY_ENGLISH = 0.85, 0.6
"""A sentence with at least this share of English words is not compared with other languages.

PROBABLY_ENGLISH applies to sentences with a word of ONLY_ENGLISH, and SURELY_ENGLISH to others.
"""
ONLY_ENGLISH = frozenset(("the", "my", "and", "of", "with", "is", "to"))
"""Frequent English words that do not exist in French, German and Spanish."""
MAX_CLASSIFIED_LENGTH = 400
"""Maximum leading characters of a note that are used to classify it, which limits the cost."""

VECTOR_SCALE = 8.0
RULE_SCALE = 0.3
WEIGHT_STEP = 0.01
"""The unit of the numbers in routing_weights.txt."""

_WORD = re.compile(r"[^\W_]+(?=['’]s\b)|['’]s\b|[^\W_]+['’](?=[^\W_])|[^\W_]+")
_LETTERS_OF = {"fr": "èêçùœàâ", "de": "äöüß", "es": "ñ¿¡íóú"}
_SHAPES = {
    "MAIL": re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+\.\w"),
    "PHONE": re.compile(
        r"(?<![\w-])(?:\+|\(|0)\d[\d ()/.-]{5,}\d|(?<![\w-])\d{3}-\d{3,4}(?:-\d{3,4})?(?![\w-])|"
        r"(?<![\w-])\d{3}[ .]\d{2,4}[ .]\d{2,4}(?:[ .]\d{2,4})?(?![\w-])|(?<!\d)1\d{10}(?!\d)"
    ),
    "QUESTION": re.compile(r"[?？]\s*$"),
    "COLON": re.compile(r"[:：=]|\s[—–-]\s"),
    "QUOTE": re.compile(r"[\"“”«»『』「」《》]|(?<!\w)'"),
    "GREATER": re.compile(r">"),
    "TIME": re.compile(r"\d[:h点時]\s?\d\d|\d\s?(?:am|pm|uhr|h)\b|\d[点時]", re.IGNORECASE),
    "NUMBER": re.compile(r"\d"),
    "HANDLE": re.compile(r"(?<!\w)@\w"),
    "EXCLAMATION": re.compile(r"!"),
    "BOX": re.compile(r"^\s*(?:[-*]\s*)?\[ ?\]"),
}
_VERB_CLASSES = frozenset(("BE", "TASK", "LIKE", "LIVES", "MUST", "ADD", "REMOVE", "I", "HE"))


class TaggedWord(NamedTuple):
    """A word or phrase with its classes: the classes of the lexicon, or NAME, DIGIT, COMMA, POSSESSIVE, OTHER."""

    text: str
    classes: tuple[str, ...]


class Lexicon:
    """The words of one language and their classes."""

    def __init__(self, lines: Iterable[str], *, spaced: bool) -> None:
        self.spaced = spaced
        self.longest = 1
        self._phrases: dict[str, tuple[str, ...]] = {}
        self._beginnings: dict[str, tuple[str, ...]] = {}
        self._ends: dict[str, tuple[str, ...]] = {}
        for line in lines:
            name, _, words = line.partition(": ")
            for word in words.split(", "):
                self._add(name, word)

    def _add(self, name: str, word: str) -> None:
        if word.endswith("*"):
            table, key = self._beginnings, word[:-1]
        elif word.startswith("*"):
            table, key = self._ends, word[1:]
        else:
            table, key = self._phrases, word
            if not self.spaced:
                key = word.lower()
                self.longest = max(self.longest, len(key))
            elif not word.isalpha():  # most entries are single words, which need no splitting
                words = _split_words(word)
                key = " ".join(words)
                self.longest = max(self.longest, len(words))
        if name not in table.get(key, ()):
            table[key] = (*table.get(key, ()), name)

    def phrase_classes(self, phrase: str) -> tuple[str, ...]:
        return self._phrases.get(phrase, ())

    def word_classes(self, word: str) -> tuple[str, ...]:
        """Return the classes of a word. A word may also match by its beginning or end."""
        classes = self._phrases.get(word, ())
        if self._beginnings:
            for length in range(4, len(word) + 1):
                classes += self._beginnings.get(word[:length], ())
        if self._ends:
            for length in range(3, len(word)):
                classes += self._ends.get(word[-length:], ())
        return classes


def _split_words(text: str) -> list[str]:
    return [word.replace("’", "'") for word in _WORD.findall(text.lower())]


@cache
def _data_lines(name: str) -> list[str]:
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        text = file.read().replace("\n  ", " ")  # join continuation lines
    return [line for line in text.split("\n") if line and not line.startswith("#")]


@cache
def lexicon(language: str) -> Lexicon:
    lines = _data_lines("routing_words.txt")
    start = lines.index(f"[{language}]") + 1
    end = next((number for number in range(start, len(lines)) if lines[number][0] == "["), len(lines))
    return Lexicon(lines[start:end], spaced=language in LATIN_LANGUAGES)


def guess_language(text: str) -> str:
    """Return the language with the most words in the text.

    Return "en" for scripts that no lexicon covers.
    """
    if any("\u3040" <= letter <= "\u30ff" for letter in text):  # kana
        return "ja"
    if any("\u3400" <= letter <= "\u9fff" for letter in text):  # Chinese characters
        return "zh"
    words = _split_words(text)
    english = lexicon("en").word_classes
    least = SURELY_ENGLISH if ONLY_ENGLISH.isdisjoint(words) else PROBABLY_ENGLISH
    if len(words) > 2 and text.isascii() and sum(map(bool, map(english, words))) >= least * len(words):
        return "en"  # the usual case, without reading the other lexicons
    scores = {}
    for language in LATIN_LANGUAGES:
        classes = lexicon(language).word_classes
        # Long words are rarely shared by two languages, so they count more.
        scores[language] = sum(1.5 if len(word) > 4 else 1.0 for word in words if classes(word))
        letters = _LETTERS_OF.get(language)
        scores[language] += 0.1 if letters is None else 1.5 * any(letter in text for letter in letters)
    return max(scores, key=lambda language: scores[language])


def tag_words(text: str, language: str) -> list[TaggedWord]:
    """Split a sentence into words and phrases of the lexicon with their classes. The longest phrase is used."""
    words = lexicon(language)
    return _tag_spaced(text, words, language) if words.spaced else _tag_unspaced(text.lower(), words)


def _tag_spaced(text: str, words: Lexicon, language: str) -> list[TaggedWord]:
    matches = list(_WORD.finditer(text))
    lowered = [match[0].lower().replace("’", "'") for match in matches]
    tagged: list[TaggedWord] = []
    position = end = 0
    while position < len(matches):
        gap = text[end : matches[position].start()]
        if position and ("," in gap or ";" in gap):
            tagged.append(TaggedWord(",", ("COMMA",)))
        classes: tuple[str, ...] = ()
        length = 1
        for count in range(min(words.longest, len(matches) - position), 1, -1):
            classes = words.phrase_classes(" ".join(lowered[position : position + count]))
            if classes:
                length = count
                break
        classes = classes or tuple(dict.fromkeys(words.word_classes(lowered[position])))
        original = matches[position][0]
        if original[1:] == "s" and original[0] in "'’":
            classes = ("POSSESSIVE", *classes)
        elif original[0].isupper() and (not classes or (tagged and language != "de")):
            classes += ("NAME",)  # German capitalizes every noun
        elif not classes:
            classes = ("DIGIT",) if original[0].isdigit() else ("OTHER",)
        tagged.append(TaggedWord(" ".join(lowered[position : position + length]), classes))
        end = matches[position + length - 1].end()
        position += length
    return tagged


def _tag_unspaced(text: str, words: Lexicon) -> list[TaggedWord]:
    tagged: list[TaggedWord] = []
    position = start = 0

    def close_run() -> None:
        if start < position:
            tagged.append(TaggedWord(text[start:position], ("OTHER",)))

    while position < len(text):
        for count in range(min(words.longest, len(text) - position), 0, -1):
            classes = words.phrase_classes(text[position : position + count])
            if classes:
                close_run()
                tagged.append(TaggedWord(text[position : position + count], classes))
                position = start = position + count
                break
        else:
            if not text[position].isalnum():
                close_run()
                if text[position] in "、，,;；":
                    tagged.append(TaggedWord(",", ("COMMA",)))
                start = position + 1
            position += 1
    close_run()
    return tagged


def features(text: str, language: str) -> set[str]:
    """Return the features of a sentence by which the linear model scores it."""
    tagged = tag_words(text, language)
    while len(tagged) > 2 and tagged[0].classes[0] in ("COMMA", "PLEASE"):
        tagged = tagged[1:]
    found = {"bias", *(f"shape:{name}" for name, shape in _SHAPES.items() if shape.search(text))}
    classes = [word.classes for word in tagged]
    for word in tagged:
        found.add(f"word:{word.text}")
        found.update(f"has:{name}" for name in word.classes)
    for one, other in itertools.pairwise(tagged):
        found.update(_pairs("next", one.classes, other.classes))
    if tagged:
        found |= {f"first-word:{tagged[0].text}", f"last-word:{tagged[-1].text}"}
        found.update(f"first:{name}" for name in classes[0])
        found.update(f"last:{name}" for name in classes[-1])
    if len(classes) > 1:
        found.update(_pairs("first-two", classes[0], classes[1]))
    if len(classes) > 2:
        found.update(_pairs("first-third", classes[0], classes[2]))
    for place, names in enumerate(classes[:10]):
        for later in classes[place + 2 : place + 6]:
            found.update(pair for pair in _pairs("later", names, later) if "OTHER" not in pair)
    found.add(f"length:{sum(len(tagged) > limit for limit in (2, 4, 7, 12))}")
    found.add(f"commas:{min(sum(names == ('COMMA',) for names in classes), 2)}")
    found.add(f"goods:{min(sum('GOODS' in names for names in classes), 3)}")
    if not any(_VERB_CLASSES.intersection(names) for names in classes):
        found.add("no-verb")
    infinitive = _INFINITIVES.get(language)
    if infinitive and re.search(infinitive, text):
        found.add("infinitive")
    return found


_INFINITIVES = {
    "fr": r"^(?:se |s['’])?[^\W\d_]{3,}(?:er|ir|re|oir)\b",
    "de": r"[a-zäöüß]{2,}(?:en|ern|eln)[.!]?$",
    "es": r"(?i)^[^\W\d_]{2,}[aei]r(?:se|me|l[aeo]s?)?\b",
    "zh": r"^把",
    "ja": r"[うくぐすつぬぶむる][。！]?$",
}
"""Patterns of verb forms that are typical of tasks: infinitives, and in Japanese the plain form at the end."""


def _pairs(kind: str, one: Sequence[str], other: Sequence[str]) -> list[str]:
    return [f"{kind}:{first}.{second}" for first in one for second in other]


class Weights:
    """The learned weights of the features, and of the later steps, which also use the rules and the embedding."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._rows = dict(line.split("\t", 1) for line in lines)

    def row(self, name: str) -> list[float]:
        return [WEIGHT_STEP * int(number) for number in self._rows.get(name, "").split()]

    def score(self, names: Iterable[str]) -> list[float]:
        rows = [row for name in names if (row := self.row(name))]
        scale = 4 / math.sqrt(len(rows) or 1)
        return [scale * sum(column) for column in zip(*rows, strict=True)] or [0.0] * len(CATEGORIES)


@cache
def weights() -> Weights:
    return Weights(_data_lines("routing_weights.txt"))


def probabilities(scores: Sequence[float]) -> dict[str, float]:
    top = max(scores)
    powers = [math.exp(score - top) for score in scores]
    total = sum(powers)
    return {name: power / total for name, power in zip(CATEGORIES, powers, strict=True)}


def score_words(text: str, language: str) -> list[float]:
    """Return the score of each category by a sentence's words and shape; all are 0 if no feature is known."""
    names = features(" ".join(text.split())[:MAX_CLASSIFIED_LENGTH], language)
    if not any(name.startswith(("has:", "shape:")) and name not in _UNKNOWN for name in names):
        return [0.0] * len(CATEGORIES)
    return weights().score(names)


_UNKNOWN = frozenset(("has:OTHER", "has:NAME", "has:DIGIT", "has:COMMA", "has:POSSESSIVE", "shape:NUMBER"))
"""Features that a sentence may have without containing any word of the lexicon."""


def score_again(
    scores: Sequence[float], points: Sequence[float], vector: Sequence[float] = ()
) -> list[float]:
    """Return more accurate scores for English, from the word scores, the points of the rules and any embedding."""
    kind = "vector" if vector else "rules"
    given = [
        1.0,
        *scores,
        *(RULE_SCALE * point for point in points),
        *(VECTOR_SCALE * part for part in vector),
    ]
    total = [0.0] * len(CATEGORIES)
    for number, value in enumerate(given):
        if value:
            total = [
                sum_ + value * weight
                for sum_, weight in zip(total, weights().row(f"{kind}:{number}"), strict=True)
            ]
    return total
