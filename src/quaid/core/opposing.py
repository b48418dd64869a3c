"""Whether a new statement is there already, or opposes one that is.

Knows statements with a title, a summary and a body, and compares one with many. A finding is meant for a person, who is
asked about it: the rules rather miss one than raise a false alarm. Knows no file, and no meaning beyond words.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from quaid.core import novelty, wording
from quaid.core.opposing_words import ALTERNATIVES, COMPLEMENTS, PLACES, WEAK
from quaid.core.patterns import pattern
from quaid.core.stating import Claim, Number, claims, fold, sentences
from quaid.core.wording import stem

MOST_LOOKS = 300
"""Statements that are read closely, those with most words in common first."""

ALIKE = 0.75
"""Share of the words of two summaries, or of titles and summaries, above which they say the same."""

GENERAL = "general"
"""What belongs to this project belongs to all."""

STEPS = "procedure"
"""The type whose sentences are steps."""

_WORD = pattern(r"[^\W_]+(?:[.'’][^\W_]+)*")


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


class Opposed(NamedTuple):
    """A statement that cannot be followed, or be true, together with the new one."""

    key: str
    why: str
    one: str
    """The sentence of the new statement."""
    other: str


def opposed(new: Statement, others: Iterable[Statement], most: int = 5) -> list[Opposed]:
    """The statements that a new one opposes, each with both sentences."""
    told, below = _claims(new), _body_claims(new, None)
    if not told and not below:
        return []
    found = []
    for other in _near(new, others, [_probes(claim) for claim in told], [_probes(claim) for claim in below]):
        finding = _against(new, told, below, other)
        if finding:
            found.append(finding)
            if len(found) == most:
                break
    return found


def _against(new: Statement, told: list[Claim], below: list[Claim], other: Statement) -> Opposed | None:
    """The first pair of sentences that oppose each other. Two bodies are not compared: they need their context."""
    if not _one_project(new, other):
        return None
    theirs = _claims(other)
    for one, two in _pairs(told, theirs, below, lambda: _body_claims(other, told)):
        why = clash(one, two)
        if why and _one_place(new, one, other, two):
            return Opposed(other.key, why, one.quote, two.quote)
    return None


def _pairs(
    told: list[Claim], theirs: list[Claim], below: list[Claim], their_body: Callable[[], list[Claim]]
) -> Iterator[tuple[Claim, Claim]]:
    for one in told:
        for two in theirs:
            yield one, two
    for one in below:
        for two in theirs:
            yield one, two
    if told:
        for two in their_body():
            for one in told:
                yield one, two


def clash(one: Claim, other: Claim) -> str:
    """Why two claims oppose each other; "" when they do not."""
    if one.kind != other.kind or (one.person and other.person and one.person != other.person):
        return ""
    if one.kind == "setting":
        return _settings(one, other)
    if one.kind == "compares":
        if one.words == other.words and (one.value == other.value) is (one.sign != other.sign):
            return f"they compare the same things the other way round: {_about(one.words)}"
        return ""
    if one.number and other.number:
        return _numbers(one, one.number, other, other.number)
    if one.number or other.number:
        return ""
    if one.sign != other.sign:
        return _polarity(one, other)
    return _alternatives(one, other) if one.sign > 0 else ""


def _polarity(one: Claim, other: Claim) -> str:
    common, apart = one.words & other.words, one.words ^ other.words
    if len(apart) > (len(common) >= 4) or apart & _NARROW or not common:
        return ""
    if len(common) == 1 and not (one.demands and other.demands):
        return ""
    return f"one is for it, the other against: {_about(common)}"


def _alternatives(one: Claim, other: Claim) -> str:
    first, second = one.words - other.words, other.words - one.words
    if len(first) != 1 or len(second) != 1 or not one.words & other.words:
        return ""
    (a,), (b,) = first, second
    if b in _CHOICES.get(a, ()):
        return f"“{a}” against “{b}”: {_about(one.words & other.words)}"
    return ""


def _numbers(one: Claim, first: Number, other: Claim, second: Number) -> str:
    common, every = one.words & other.words, one.words | other.words
    if not common or len(every) - len(common) > (len(common) >= 4) or (every - common) & _NARROW:
        return ""
    if one.sign != other.sign or (first.unit and second.unit and first.unit != second.unit):
        return ""
    if (one.several or other.several) and not (one.demands and other.demands):
        return ""
    if first.text == second.text or not _exclude(first, second):
        return ""
    return f"{first.text} against {second.text}: {_about(common)}"


def _exclude(one: Number, other: Number) -> bool:
    """Whether no number fits both. Two limits of the same kind are two values of one limit."""
    if one.bound == other.bound:
        return one.value != other.value or one.text != other.text
    if {one.bound, other.bound} == {"most", "least"}:
        most, least = (one, other) if one.bound == "most" else (other, one)
        return least.value > most.value
    exact, limit = (one, other) if not one.bound else (other, one)
    # A value beside a limit is a limit told shortly: "line length is 88", "at most 100".
    return exact.value != limit.value if limit.bound == "most" else exact.value < limit.value


def _settings(one: Claim, other: Claim) -> str:
    if one.words != other.words or one.relation != other.relation or one.value & other.value:
        return ""
    return f"{_about(one.words)} is “{_about(one.value)}” or “{_about(other.value)}”"


def _about(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))


def _one_project(one: Statement, other: Statement) -> bool:
    mine, theirs = set(one.projects), set(other.projects)
    return not mine or not theirs or GENERAL in mine | theirs or bool(mine & theirs)


def _one_place(new: Statement, one: Claim, other: Statement, two: Claim) -> bool:
    """Whether both speak of the same place: a title can narrow what its node says to Makefiles, or to Redis."""
    mine, theirs = _words(new.title), _words(other.title)
    first, second = one.words | one.value, two.words | two.value
    if (mine | first) & _PLACE_STEMS != (theirs | second) & _PLACE_STEMS:
        return False
    outside = not mine & _words(one.quote) and not theirs & _words(two.quote)
    return not (outside and mine and theirs and not mine & theirs)


def _claims(statement: Statement) -> list[Claim]:
    is_step = statement.type == STEPS
    found = claims(statement.title, is_title=True, is_step=is_step)
    for sentence in sentences(statement.summary):
        found += claims(sentence, is_step=is_step)
    return found


def _body_claims(statement: Statement, told: list[Claim] | None) -> list[Claim]:
    """What the body states; with claims given, only the sentences that share words with one of them."""
    found: list[Claim] = []
    is_step = statement.type == STEPS
    probes = None if told is None else [_probes(claim) for claim in told]
    for sentence in sentences(statement.body):
        if probes is None or _share(sentence.lower(), probes) > 0:
            found += claims(sentence, is_step=is_step)
    return found


def _probes(claim: Claim) -> tuple[str, ...]:
    """Letters to look for in a text before it is read, the longest and so the rarest first."""
    return tuple(sorted(claim.words, key=lambda word: (-len(word), word)))


def _share(text: str, probes: list[tuple[str, ...]]) -> float:
    """The largest share of a claim's words that a text holds; 0 when it is less than half."""
    best = 0.0
    for words in probes:
        share = sum(word in text for word in words) / len(words)
        if share > best:
            best = share
    return best if best >= 0.5 else 0.0


def _near(
    new: Statement, others: Iterable[Statement], told: list[tuple[str, ...]], below: list[tuple[str, ...]]
) -> list[Statement]:
    """The statements that are worth reading closely: those that hold at least half of the words of a claim."""
    found = []
    both = told + below
    for place, other in enumerate(others):
        if other.key == new.key:
            continue
        share = _share(f"{other.title} {other.summary}".lower(), both)
        if share < 1 and other.body and told:
            share = max(share, _share(other.body.lower(), told))
        if share:
            found.append((-share, place, other))
    found.sort(key=lambda each: each[:2])
    return [each[2] for each in found[:MOST_LOOKS]]


def alike(new: Statement, others: Iterable[Statement], most: int = 5) -> list[Alike]:
    """The statements that say nearly the same as a new one, the most alike first."""
    title, summary = _words(new.title), _words(new.summary)
    probes = [tuple(words) for words in (title, summary) if words]
    found = []
    for other in others:
        if other.key == new.key or not _share(f"{other.title} {other.summary}".lower(), probes):
            continue
        theirs = _words(other.title)
        if title and title == theirs:
            found.append(Alike(other.key, 1.0, "the same title"))
            continue
        share = _alike(new, title, summary, other, theirs)
        if share >= ALIKE:
            found.append(Alike(other.key, round(share, 3), "the summaries say the same"))
    return sorted(found, key=lambda each: -each.share)[:most]


def _alike(new: Statement, title: frozenset[str], summary: frozenset[str], other: Statement, theirs: frozenset[str]) -> float:
    if wording.same(new.summary, other.summary):
        return 1.0
    second = _words(other.summary)
    apart = summary ^ second
    if novelty.corrects(new.summary, other.summary) or _turned(apart):
        return 0.0
    return max(_dice(summary, second), _dice(title | summary, theirs | second))


def _turned(apart: frozenset[str]) -> bool:
    """Whether words by which two texts differ are opposites."""
    return any(not apart.isdisjoint(_CHOICES.get(word, ())) for word in apart)


def _dice(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0


def _words(text: str) -> frozenset[str]:
    found = (word.lower().replace("’", "'").removesuffix("'s") for word in _WORD.findall(text))
    return frozenset(fold(word) for word in found if word not in WEAK) - {""}


def _choices() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    pairs = [frozenset(pair) for pair in COMPLEMENTS.items()]
    for group in (*ALTERNATIVES, *pairs):
        stems = frozenset(map(stem, group))
        for word in stems:
            found[word] = found.get(word, frozenset()) | (stems - {word})
    return found


_CHOICES = _choices()
_NARROW = frozenset("only except unless without that who whom whose where twice".split())
_PLACE_STEMS = frozenset(map(stem, PLACES))
