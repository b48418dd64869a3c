"""Whether a new statement is there already, or opposes one that is.

Knows statements with a title, a summary and a body, and compares one with many. A finding is meant for a person, who
is asked about it: the rules rather miss one than raise a false alarm. Knows no file, and no meaning beyond words.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, product
from typing import NamedTuple

from quaid.core.opposing_words import ALTERNATIVES, COMPLEMENTS, LITTLE, NARROWING, PLACES, SYNONYMS, WEAK
from quaid.core.stating import Claim, Number, claims, fold, sentences, stems
from quaid.core.wording import stem

MOST_LOOKS = 40
"""Statements that are read closely, the shortest that hold the words first."""

ALIKE = 0.75
"""Share of the words of two summaries, or of titles and summaries, above which they say the same."""

SURELY = 0.85
"""The share that is asked for when each has a word that the other lacks: it may be the one that matters."""

LEAST_SHARED = ALIKE / (2 - ALIKE)
"""The share of the words of one that the other must hold for both to be that much alike."""

GENERAL = "general"
"""What belongs to this project belongs to all."""

STEPS = "procedure"
"""The type whose sentences are steps."""

_WORD = re.compile(r"[^\W_]+(?:[.'’][^\W_]+)*")
_TELLING = re.compile(
    r"\d+(?:[.,:/-]\d+)*%?|\b(?:not|no|never|none|nor|neither|without|cannot)\b|n['’]t\b"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b"
)


class Statement(NamedTuple):
    """One node, as far as it states something."""

    key: str
    title: str
    summary: str
    body: str = ""
    type: str = ""
    projects: tuple[str, ...] = ()


class Alike(NamedTuple):
    """A statement that says nearly the same."""

    key: str
    share: float
    why: str


class Probe(NamedTuple):
    """Words to look for, and how many of them may be missing."""

    words: tuple[str, ...]
    spare: int


class Opposed(NamedTuple):
    """A statement that cannot be followed, or be true, together with the new one."""

    key: str
    why: str
    one: str
    """The sentence of the new statement."""
    other: str


class Read(NamedTuple):
    """The new statement: what title and summary say, what the body says, and the words to look for."""

    statement: Statement
    told: list[Claim]
    below: list[Claim]
    probes: list[Probe]
    every: list[Probe]


def opposed(new: Statement, others: Iterable[Statement], most: int = 5) -> list[Opposed]:
    """The statements that a new one opposes, each with both sentences."""
    told, below = _claims(new), _body_claims(new)
    read = Read(new, told, below, _probes(told), _probes(told + below))
    found = []
    for other, is_near in _near(read, others):
        finding = _against(read, other, is_near)
        if finding:
            found.append(finding)
            if len(found) == most:
                break
    return found


def opposed_within(added: Statement, there: Statement, most: int = 5) -> list[Opposed]:
    """What is added to a statement against what it says already, sentence by sentence, the bodies too.

    Two bodies can be compared here: they share the context of one node."""
    new = _summary_claims(added) + _body_claims(added)
    old = _claims(there) + _body_claims(there, _probes(new))
    found: dict[str, Opposed] = {}
    for one, two in product(new, old):
        why = clash(one, two) if one.quote != two.quote else ""
        if why and _one_place(added, one, there, two):
            found.setdefault(one.quote, Opposed(there.key, why, one.quote, two.quote))
            if len(found) == most:
                break
    return list(found.values())


def _against(new: Read, other: Statement, is_near: bool) -> Opposed | None:
    """The first pair of sentences that oppose each other. Two bodies are not compared: they need their context."""
    for one, two in _pairs(new, other, is_near):
        why = clash(one, two)
        if why and _one_place(new.statement, one, other, two):
            return Opposed(other.key, why, one.quote, two.quote)
    return None


def _pairs(new: Read, other: Statement, is_near: bool) -> Iterator[tuple[Claim, Claim]]:
    if is_near:
        for two in _claims(other):
            for one in chain(new.told, new.below):
                if not one.words.isdisjoint(two.words) or one.kind == "chooses":
                    yield one, two
    if new.told and other.body:
        yield from product(new.told, _body_claims(other, new.probes))


def clash(one: Claim, other: Claim) -> str:
    """Why two claims oppose each other; "" when they do not."""
    if one.kind != other.kind or (one.person and other.person and one.person != other.person):
        return ""
    if one.kind == "setting":
        return _settings(one, other)
    if one.kind == "compares":
        if one.words == other.words and (one.value == other.value) is (one.sign != other.sign):
            return f"they compare the other way round: {_named(one.words, one)}"
        return ""
    if one.kind == "chooses":
        turned = one.words <= other.value and other.words <= one.value and not one.words <= one.value
        return f"they choose the other way round: {_named(one.words | other.words, one)}" if turned else ""
    if one.number and other.number:
        return _numbers(one, one.number, other, other.number)
    if one.number or other.number:
        return ""
    if one.sign != other.sign:
        return _polarity(one, other)
    return _alternatives(one, other) if one.sign > 0 else ""


def _polarity(one: Claim, other: Claim) -> str:
    common, apart = one.words & other.words, one.words ^ other.words
    if len(apart) > (len(common) >= 4) or apart & NARROWING or not common:
        return ""
    if len(common) == 1 and not (one.demands and other.demands):
        return ""
    return f"one is for it, the other against: {_named(common, one)}"


def _alternatives(one: Claim, other: Claim) -> str:
    first, second = one.words - other.words, other.words - one.words
    if len(first) != 1 or len(second) != 1 or not one.words & other.words:
        return ""
    (a,), (b,) = first, second
    if b in _CHOICES.get(a, ()):
        return f"“{_named(first, one)}” against “{_named(second, other)}”: {_named(one.words & other.words, one)}"
    return ""


def _numbers(one: Claim, first: Number, other: Claim, second: Number) -> str:
    common, every = one.words & other.words, one.words | other.words
    if not common or len(every) - len(common) > (len(common) >= 4) or (every - common) & NARROWING:
        return ""
    if one.sign != other.sign or (first.unit and second.unit and first.unit != second.unit):
        return ""
    if len(common) + bool(first.unit and second.unit) < 2 and not (one.demands and other.demands):
        return ""
    if (one.several or other.several) and not (one.demands and other.demands):
        return ""
    if not _exclude(first, second):
        return ""
    return f"{first.text} against {second.text}: {_named(common, one)}"


def _exclude(one: Number, other: Number) -> bool:
    """Whether no number fits both. Two limits of the same kind are two values of one limit."""
    if one.bound == other.bound:
        return one.value != other.value
    if {one.bound, other.bound} == {"most", "least"}:
        most, least = (one, other) if one.bound == "most" else (other, one)
        return least.value > most.value
    exact, limit = (one, other) if not one.bound else (other, one)
    # A value beside a limit is a limit told shortly: "line length is 88", "at most 100".
    return exact.value != limit.value if limit.bound == "most" else exact.value < limit.value


def _settings(one: Claim, other: Claim) -> str:
    if one.words != other.words or one.relation != other.relation or one.value & other.value:
        return ""
    values = f"“{_named(one.value, one)}” against “{_named(other.value, other)}”"
    return f"{values}: {_named(one.words, one)}"


def _named(words: frozenset[str], claim: Claim) -> str:
    """Stems as the words of the sentence that they come from."""
    written = [word for word in claim.quote.replace("`", "").split() if stems(word.lower()) & words]
    return " ".join(word.strip(",;:.!()\"'“”") for word in written) or ", ".join(sorted(words))


def _one_project(one: Statement, other: Statement) -> bool:
    mine, theirs = set(one.projects), set(other.projects)
    return not mine or not theirs or GENERAL in mine | theirs or bool(mine & theirs)


def _one_place(new: Statement, one: Claim, other: Statement, two: Claim) -> bool:
    """Whether both speak of the same place: a title can narrow what its node says to Makefiles, or to Redis."""
    mine, theirs = _words(new.title), _words(other.title)
    first, second = one.words | one.value, two.words | two.value
    if (mine | first) & _PLACE_STEMS != (theirs | second) & _PLACE_STEMS:
        return False
    # What a title names beyond the sentences is what they are about: "Redis pool", "Mail pool".
    said = _words(one.quote) | _words(two.quote)
    first, second = mine - said, theirs - said
    return one.kind == "compares" or not first - theirs or not second - mine


def _claims(statement: Statement) -> list[Claim]:
    is_step = statement.type == STEPS
    return claims(statement.title, is_title=True, is_step=is_step) + _summary_claims(statement)


def _summary_claims(statement: Statement) -> list[Claim]:
    is_step = statement.type == STEPS
    return [claim for each in sentences(statement.summary) for claim in claims(each, is_step=is_step)]


def _body_claims(statement: Statement, probes: list[Probe] | None = None) -> list[Claim]:
    """What the body states; with words given, only in the sentences that hold them."""
    found: list[Claim] = []
    is_step = statement.type == STEPS
    if probes is not None and not _holds(_low(statement.body), probes):
        return found
    for sentence in sentences(statement.body):
        if probes is None or _holds(_low(sentence), probes):
            found += claims(sentence, is_step=is_step)
    return found


def _probes(told: list[Claim]) -> list[Probe]:
    """What a text must hold before it is worth reading: the words of a claim, but for those that may be written in
    another way, or be the one by which it differs. The longest and so the rarest come first."""
    found = {}
    for claim in told:
        words, spare = claim.words - _FREE, len(claim.words) > 4
        if not words:
            words, spare = claim.words, len(claim.words) > 1
        found[claim.words] = Probe(tuple(sorted(words, key=lambda word: (-len(word), word))), int(spare))
    return list(found.values())


def _low(text: str) -> str:
    return text.lower() if text.isascii() else text.lower().replace("’", "'")


def _holds(text: str, probes: list[Probe]) -> bool:
    """Whether a text in lower case holds the words of one of the claims."""
    for words, spare in probes:
        for word in words:
            if word not in text:
                if not spare:
                    break
                spare -= 1
        else:
            return True
    return False


def _near(new: Read, others: Iterable[Statement]) -> list[tuple[Statement, bool]]:
    """The statements worth reading: those that hold the words of a claim, and whether in title and summary."""
    first, second = [], []
    for other in others:
        if _holds(_low(f"{other.title} {other.summary}"), new.every):
            first.append((other, True))
        elif other.body and _holds(_low(other.body), new.probes):
            second.append((other, False))
    # The shorter a text that holds the words, the more of it is about them.
    first.sort(key=lambda each: len(each[0].title) + len(each[0].summary))
    mine = new.statement
    found = [each for each in first + second if each[0].key != mine.key and _one_project(mine, each[0])]
    return found[:MOST_LOOKS]


def alike(new: Statement, others: Iterable[Statement], most: int = 5) -> list[Alike]:
    """The statements that say nearly the same as a new one, the most alike first."""
    title, summary = _words(new.title), _words(new.summary)
    probes = [Probe(tuple(title - _RENAMED), 0)]
    for words in (summary, title | summary):
        probes.append(Probe(tuple(words - _RENAMED), int(len(words) * (1 - LEAST_SHARED))))
    found = []
    for other in others:
        if not _holds(_low(f"{other.title} {other.summary}"), probes) or other.key == new.key:
            continue
        theirs = _words(other.title)
        if title and title == theirs and _weak(new.title) == _weak(other.title):
            found.append(Alike(other.key, 1.0, "the same title"))
            continue
        share = _alike(new, title, summary, other, theirs)
        if share >= ALIKE:
            found.append(Alike(other.key, round(share, 3), "the summaries say the same"))
    return sorted(found, key=lambda each: -each.share)[:most]


def _alike(
    new: Statement, title: frozenset[str], summary: frozenset[str], other: Statement, theirs: frozenset[str]
) -> float:
    second = _words(other.summary)
    share = max(_dice(summary, second), _dice(title | summary, theirs | second))
    if share < (SURELY if summary - second and second - summary else ALIKE):
        return 0.0
    return 0.0 if _turned(summary ^ second) or corrects(new.summary, other.summary) else share


def corrects(old: str, new: str) -> bool:
    """Return whether numbers, dates or negations differ: a small change that says something else."""
    return Counter(_TELLING.findall(old.lower())) != Counter(_TELLING.findall(new.lower()))


def _turned(apart: frozenset[str]) -> bool:
    """Whether words by which two texts differ are opposites."""
    return any(not apart.isdisjoint(_CHOICES.get(word, ())) for word in apart)


def _dice(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0


def _words(text: str) -> frozenset[str]:
    found = (word.lower().replace("’", "'").removesuffix("'s") for word in _WORD.findall(text))
    return frozenset(fold(word) for word in found if word not in WEAK) - {""}


def _weak(title: str) -> frozenset[str]:
    """Return the words of a title that `_words` leaves out and that tell titles apart all the same."""
    return frozenset(word.lower() for word in _WORD.findall(title)) & (WEAK - LITTLE)


def _choices() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    pairs = [frozenset(pair) for pair in COMPLEMENTS.items()]
    for group in (*ALTERNATIVES, *pairs):
        stems = frozenset(map(stem, group))
        for word in stems:
            found[word] = found.get(word, frozenset()) | (stems - {word})
    return found


_CHOICES = _choices()
_RENAMED = frozenset(map(stem, SYNONYMS.values()))
_FREE = _RENAMED.union(_CHOICES)
"""Stems of which another may stand in the other text."""
_PLACE_STEMS = frozenset(map(stem, PLACES))
