"""Secrets in a text: where each stands, what it is and what to do about it.

Knows how a text is searched; how secrets look is data (`secret_rules`). Does not know files or who asks. A line with
the mark `allow-secret` is let pass; a secret of several lines is let pass when the line above it has the mark.

`find` catches nothing: a rule that fails is a bug, and whoever guards a commit must take it for a refusal.
"""

from bisect import bisect
from collections.abc import Iterable, Iterator
from re import Match
from typing import NamedTuple

from quaid.core import secret_looks as looks
from quaid.core.patterns import pattern
from quaid.core.secret_rules import CARD, COLUMN, DISCORD, LOOSE, PASSWORD_WORDS, SAID_BEFORE, SHAPED, Rule

VERSION = 1
"""Rises with every change of what is found: findings that are kept with a file are then looked for again."""

MARK = "allow-secret"
_MARK = pattern(r"(?<![\w-])allow-secret(?![\w-])")
_SHORTEST = 20
"""No token with a shape is shorter; words that are need not be searched for their beginnings."""


class Secret(NamedTuple):
    kind: str
    start: int
    end: int
    line: int
    """Of its first character, from 1."""
    remedy: str


def find(text: str, *, marks: bool = True) -> list[Secret]:
    """The secrets of a text, in order, none inside another. `marks`: lines with allow-secret may hold them."""
    spans = _settled(_candidates(text))
    if marks and spans and MARK in text:
        spans = [span for span in spans if not _allowed(text, span[0], span[1])]
    found = []
    line, at = 1, 0
    for start, end, rule in spans:
        line += text.count("\n", at, start)
        at = start
        found.append(Secret(rule.kind, start, end, line, remedy(rule)))
    return found


def remedy(rule: Rule) -> str:
    """What to do about a secret that this rule found."""
    first = f"revoke it at {rule.issuer}" if rule.issuer else "change it where it is used"
    return f"{first}, keep the new one in a password manager, and write only where it is kept; a line that holds no real secret may say {MARK}"


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

Span = tuple[int, int, Rule]


def _candidates(text: str) -> Iterator[Span]:
    """What each rule finds, the surest rules first."""
    dense = "\n".join([word for word in text.split() if len(word) >= _SHORTEST])
    for rule in SHAPED:
        for needle in rule.needles:
            if needle in (text if needle in _ANYWHERE else dense):
                yield from _where(rule, needle, text, text)
    if _DOTTED.search(dense):
        for dots in _DOTTED.finditer(text):
            yield from _where(DISCORD, text[dots.start() : dots.end()], text, text)
    folded = _folded(text)
    present = {needle for needle in _NEEDLES if needle in folded}
    if present:
        for rule in LOOSE:
            for needle in rule.needles:
                if needle in present:
                    yield from _where(rule, needle, text, folded)
        for needle in PASSWORD_WORDS:
            if needle in present:
                yield from _said_before(text, folded, needle)
                yield from _columns(text, folded, needle)
    yield from _cards(text)


_ANYWHERE = ("-----BEGIN ", "Private-Lines: ", "://")
"""Needles of secrets that may be shorter than that, or have a space in them."""
_DOTTED = pattern(r"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}")
_NEEDLES = tuple(dict.fromkeys(needle for rule in LOOSE for needle in rule.needles))


def _folded(text: str) -> str:
    """In small letters, each where it was: the Turkish capital İ would become two characters."""
    folded = text.lower()
    return folded if len(folded) == len(text) else text.replace("İ", "i").lower()


def _where(rule: Rule, needle: str, text: str, within: str) -> Iterator[Span]:
    """What a rule finds at each place of a needle."""
    match, holds, lead = rule.pattern.match, rule.holds, rule.lead
    at = within.find(needle)
    while at >= 0:
        found = match(text, at)
        after = at + len(needle)
        if found is not None:
            begins = lead.search(text, max(0, at - 100), at) if lead is not None else found
            if begins is not None and holds(found):
                start, end = _span(found)
                yield (begins.start() if start == at else start), end, rule
                after = max(after, end)
        at = within.find(needle, after)


def _span(found: Match[str]) -> tuple[int, int]:
    return found.span("secret" if "secret" in found.re.groupindex else 0)


def _said_before(text: str, folded: str, needle: str) -> Iterator[Span]:
    """`hunter2! is the password`: what stands before the word."""
    at = folded.find(needle)
    while at >= 0:
        near = folded[max(0, at - 40) : at]
        if any(word in near for word in (" is ", " was ", " as ", " ist ", " est ", " es ")):
            found = SAID_BEFORE.pattern.search(text, max(0, at - 140), at)
            if found is not None and SAID_BEFORE.holds(found):
                yield *found.span("secret"), SAID_BEFORE
        at = folded.find(needle, at + len(needle))


def _columns(text: str, folded: str, needle: str) -> Iterator[Span]:
    """The cells below the heading `password`, in a table of org or markdown or between commas."""
    at = folded.find(needle)
    while at >= 0:
        start = text.rfind("\n", 0, at) + 1
        end = _line_end(text, at)
        line = text[start:end]
        sign = next((each for each in "|\t;," if each in line), "")
        if sign and end - start <= 200 and _heads(text, start, line, sign):
            index = line.count(sign, 0, at - start)
            if text[at + len(needle) : end].partition(sign)[0].strip(" *\"'`").count(" ") <= 1:
                yield from _cells(text, end + 1, sign, index, line.count(sign))
        at = folded.find(needle, end)


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
                yield begins, begins + len(value), COLUMN
        at = end + 1


_ROWS = 100
"""Rows of a table that are looked at."""


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return end if end >= 0 else len(text)


def _cards(text: str) -> Iterator[Span]:
    at = 0
    while found := CARD.pattern.search(text, at):
        if CARD.holds(found):
            yield found.start(), found.end(), CARD
            at = found.end()
        else:
            at = found.start() + 4


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
