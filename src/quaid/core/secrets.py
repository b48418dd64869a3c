"""Secrets in a text: where each stands, what it is and what to do about it.

Knows how a text is searched; how secrets look is data (`secret_rules`). Does not know files or who asks. A line with
the mark `allow-secret` is let pass; a secret of several lines is let pass when the line above it has the mark.

`find` catches nothing: a rule that fails is a bug, and whoever guards a commit must take it for a refusal.
"""

import re
from bisect import bisect
from collections.abc import Iterable, Iterator
from re import Match
from typing import NamedTuple

from quaid.core import secret_looks as looks
from quaid.core.secret_rules import CARD, DISCORD, SHAPED, Rule
from quaid.core.secret_words import BESIDE, LOOSE, NAMES, PASSWORD_WORDS, SECRET_WORDS

VERSION = 3
"""Rises with every change of what is found: findings that are kept with a file are then looked for again."""

RULES = (*SHAPED, DISCORD, *LOOSE, BESIDE, CARD)
MARK = "allow-secret"
UNSEARCHED = "too many places to search"
_MARK = re.compile(r"(?<![\w-])allow-secret(?![\w-])")
_SHORTEST = 20
"""No token with a shape is shorter; words that are need not be searched for their beginnings."""


MOST_PLACES = 50_000
"""Places of one text that may be searched for a value. A text with more of them is told as one that was not searched
to its end."""


class Secret(NamedTuple):
    kind: str
    start: int
    end: int
    line: int
    """Of its first character, from 1."""
    remedy: str


def find(text: str, *, marks: bool = True, places: int = MOST_PLACES) -> list[Secret]:
    """The secrets of a text, in order, none inside another. `marks`: lines with allow-secret may hold them."""
    budget = _Budget(places)
    spans = _settled(_candidates(text, budget))
    if marks and spans and MARK in text:
        spans = [span for span in spans if not _allowed(text, span[0], span[1])]
    found = []
    line, at = 1, 0
    remedies: dict[Rule, str] = {}
    for start, end, rule in spans:
        line += text.count("\n", at, start)
        at = start
        what = remedies.get(rule) or remedies.setdefault(rule, remedy(rule))
        found.append(Secret(rule.kind, start, end, line, what))
    if budget.stopped is not None:
        start = budget.stopped
        line = text.count("\n", 0, start) + 1
        found.append(Secret(UNSEARCHED, start, start + 1, line, "keep the file outside, or in smaller parts"))
        found.sort(key=lambda secret: secret.start)
    return found


def remedy(rule: Rule) -> str:
    """What to do about a secret that this rule found."""
    first = f"revoke it at {rule.issuer}" if rule.issuer else "change it where it is used"
    return (
        f"{first}, keep the new one in a password manager, and write only where it is kept; "
        f"a line that holds no real secret may say {MARK}"
    )


def is_text(data: bytes) -> bool:
    """Whether the bytes of a file are text by their look: no NUL (but for UTF-16), few control characters."""
    head = data[:8192]
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    if b"\0" in head:
        return False
    return len(head) - len(head.translate(None, _CONTROLS)) <= len(head) // 20


_CONTROLS = bytes(each for each in range(32) if each not in b"\t\n\r\f\b\x1b") + b"\x7f"


def decoded(data: bytes) -> str:
    """The text of a file that `is_text`, whatever it takes: a secret in a stray encoding is one all the same."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    return data.decode("utf-8-sig", "replace")


# The search


class _Budget:
    """How many places may still be looked at, and where that ended."""

    def __init__(self, places: int) -> None:
        self.left = places
        self.stopped: int | None = None


Span = tuple[int, int, Rule]


def _candidates(text: str, budget: _Budget) -> Iterator[Span]:
    """What each rule finds, the surest rules first."""
    dense = "\n".join([word for word in text.split() if len(word) >= _SHORTEST])
    for needle, rule in _SHAPES:
        if needle in dense:
            yield from _found(rule, text, _places(needle, text, text, budget))
    anywhere = {needle: _places(needle, text, text, budget) for needle in _SHORT if needle in text}
    for needle, rule in _ANYWHERE:
        if needle in anywhere:
            yield from _found(rule, text, anywhere[needle])
    if _DOTTED.search(dense):
        yield from _found(DISCORD, text, [dots.start() for dots in _DOTTED.finditer(text)])
    folded = _folded(text)
    places = {
        needle: _places(needle, text, folded, budget)
        for gate, needles in (_GATES if not text.isascii() else _ASCII_GATES)
        if gate in folded
        for needle in needles
        if needle == gate or needle in folded
    }
    if places:
        for rule in LOOSE:
            for needle in rule.needles:
                if needle in places:
                    yield from _found(rule, text, places[needle])
        for needle in PASSWORD_WORDS:
            if needle in places:
                yield from _said_before(text, folded, places[needle])
                yield from _columns(text, folded, places[needle])
    yield from _cards(text)


_SHORT = ("-----BEGIN ", "Private-Lines: ", "://")
"""Needles of secrets that may be shorter than `_SHORTEST`, or have a space in them."""
_SHAPES = [(needle, rule) for rule in SHAPED for needle in rule.needles if needle not in _SHORT]
_ANYWHERE = [(needle, rule) for rule in SHAPED for needle in rule.needles if needle in _SHORT]
_DOTTED = re.compile(r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}")
_STEMS = ("secret", "auth", "sess", "cred", "login", "mot", " -", "--")
"""Parts that several needles share: where one is missing, none of its needles need be looked for."""


def _gates() -> list[tuple[str, list[str]]]:
    """The needles of loose rules, each behind a stem of its own or one that it shares."""
    found: dict[str, list[str]] = {}
    for needle in dict.fromkeys(needle for rule in LOOSE for needle in rule.needles):
        found.setdefault(next((stem for stem in _STEMS if stem in needle), needle), []).append(needle)
    return list(found.items())


_GATES = _gates()
_ASCII_GATES = [(gate, needles) for gate, needles in _GATES if gate.isascii()]


def _folded(text: str) -> str:
    """In small letters, each where it was: the Turkish capital İ would become two characters."""
    folded = text.lower()
    return folded if len(folded) == len(text) else text.replace("İ", "i").lower()


def _places(needle: str, text: str, within: str, budget: _Budget) -> list[int]:
    """Where a needle stands; of a word for passwords and tokens, where it begins a name."""
    names = NAMES.match if needle in _NAMES else None
    found: list[int] = []
    end = -1
    at = within.find(needle)
    while at >= 0:
        budget.left -= 1
        if budget.left < 0:
            budget.stopped = at if budget.stopped is None else min(at, budget.stopped)
            break
        name = names(text, at) if names is not None else None
        if name is not None and found and at == end:
            found[-1] = at  # passwordpassword: the last of them is the name
        elif name is not None or names is None:
            found.append(at)
        end = name.end() if name is not None else -1
        at = within.find(needle, at + len(needle))
    return found


_NAMES = frozenset((*PASSWORD_WORDS, *SECRET_WORDS, "psk"))


def _found(rule: Rule, text: str, places: Iterable[int]) -> Iterator[Span]:
    """What a rule finds at these places."""
    match = rule.pattern.match
    past = refused = until = 0
    for at in places:
        found = match(text, at) if at >= past else None
        if found is None:
            continue
        span = _judged(rule, found, text, at)
        if span is not None:
            yield span
            past = span[1]
        elif at >= until:
            refused, until = 1, found.end()
        elif (refused := refused + 1) > _NESTED:
            past = until


_NESTED = 8
"""How often a value that begins inside a refused one is looked at: token=token=token=… ends somewhere."""


def _judged(rule: Rule, found: Match[str], text: str, at: int) -> Span | None:
    begins = rule.lead.search(text, max(0, at - rule.reach), at) if rule.lead is not None else found
    if begins is None or not rule.holds(found):
        return None
    start, end = found.span("secret" if "secret" in found.re.groupindex else 0)
    return (begins.start() if start == at else start), end, rule


def _said_before(text: str, folded: str, places: Iterable[int]) -> Iterator[Span]:
    """`hunter2! is the password`: what stands before the word."""
    for at in places:
        words = folded[max(0, at - 120) : at].split() if at and not folded[at - 1].isalnum() else []
        verb = next(
            (place for place in range(len(words) - 1, max(0, len(words) - 5), -1) if words[place] in _VERBS),
            0,
        )
        if verb:
            start = folded.rfind(words[verb - 1], 0, at)
            value = text[start : start + len(words[verb - 1])].strip("\"'`*,")
            if looks.listed(value):
                start = text.index(value, start)
                yield start, start + len(value), BESIDE


_VERBS = frozenset(("is", "was", "as", "ist", "war", "als", "est", "es"))


def _columns(text: str, folded: str, places: Iterable[int]) -> Iterator[Span]:
    """The cells below the heading `password`, in a table of org or markdown or between commas."""
    end = -1
    for at in places:
        if at < end:
            continue  # one column of a table is enough
        start, end = text.rfind("\n", 0, at) + 1, _line_end(text, at)
        line = text[start:end] if end - start <= 200 else ""
        sign = next((each for each in "|\t;," if each in line), "")
        if not sign or not _heads(text, start, line, sign):
            continue
        if folded[at:end].partition(sign)[0].strip(" *\"'`").count(" ") <= 1:
            yield from _cells(text, end + 1, sign, line.count(sign, 0, at - start), line.count(sign))


def _heads(text: str, start: int, line: str, sign: str) -> bool:
    """Whether a line is the first of its table: names of columns, and nothing of the table above it."""
    above = text[text.rfind("\n", 0, max(0, start - 1)) + 1 : max(0, start - 1)].strip()
    if sign == "|":
        return line.lstrip().startswith("|") and not above.startswith("|")
    return (not above or above.startswith(("```", "#+"))) and all(
        0 < len(cell) <= 30 and not any(map(str.isdigit, cell)) for cell in line.strip().split(sign)
    )


def _cells(text: str, at: int, sign: str, index: int, signs: int) -> Iterator[Span]:
    for _ in range(_ROWS):
        end = _line_end(text, at)
        if at >= len(text) or end - at > 2_000 or text.count(sign, at, end) != signs:
            if not text.startswith(("|-", "| -", "|:"), at):
                return
        else:
            start = at
            for _ in range(index):
                start = text.index(sign, start) + 1
            stop = text.find(sign, start, end)
            cell = text[start : stop if stop >= 0 else end]
            value = cell.strip(" \t\r\"'`~=")
            if looks.listed(value):
                begins = start + cell.index(value)
                yield begins, begins + len(value), BESIDE
        at = end + 1


_ROWS = 100
"""Rows of a table that are looked at."""


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def _cards(text: str) -> Iterator[Span]:
    """Numbers of cards: whole runs of digits, or groups of them as they are printed."""
    for run in CARD.pattern.finditer(text):
        groups = list(_GROUP.finditer(text, run.start(), min(run.end(), run.start() + 400)))
        place = 0
        while place < len(groups):
            count = looks.card(text, groups[place : place + 4])
            if count:
                yield groups[place].start(), groups[place + count - 1].end(), CARD
            place += count or 1


_GROUP = re.compile(r"[0-9]+")


def _settled(candidates: Iterable[Span]) -> list[Span]:
    """In order of the text; of two that overlap, the one that was found by the surer rule."""
    starts: list[int] = []
    kept: list[Span] = []
    for span in candidates:
        place = bisect(starts, span[0])
        if (place and kept[place - 1][1] > span[0]) or (place < len(kept) and kept[place][0] < span[1]):
            continue
        starts.insert(place, span[0])
        kept.insert(place, span)
    return kept


def _allowed(text: str, start: int, end: int) -> bool:
    """Whether the mark is on one of the lines of a secret; or on the line above, if it has several."""
    begins = text.rfind("\n", 0, start) + 1
    if "\n" in text[start:end].strip() and begins:
        begins = text.rfind("\n", 0, begins - 1) + 1
    return _MARK.search(text, begins, _line_end(text, end - 1)) is not None
