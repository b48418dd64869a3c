"""What a sentence says: for or against which matter, which number, which value of which setting.

A light reading of English for core.opposing. It prefers silence to a guess: a question, a quotation, a thing of the
past, a "sometimes" state nothing. Knows no node and compares nothing.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from quaid.core.opposing_words import (
    ADJECTIVES,
    ASKING,
    ATTITUDES,
    COMPLEMENTS,
    DEMANDS,
    HEDGES,
    NEGATIONS,
    NUMBERS,
    PAST,
    REFUSALS,
    REPORTS,
    SETTINGS,
    SEVERAL,
    STRONG,
    SYNONYMS,
    UNITS,
    WEAK,
)
from quaid.core.patterns import pattern
from quaid.core.wording import stem

LONGEST = 300
"""Characters of a sentence that are read; a longer one says too much to be opposed as a whole."""

MOST_WORDS = 12
"""A matter of more words is never met again."""

_SENTENCE = pattern(r"(?<=[.!?])[\"')\]]*\s+|\n+")
_LEAD = pattern(r"^[\s>*+#-]*(?:\d+[.)]\s+)?|\[\[[^\]]*\]\[|\]\]|[*=~`](?=\S)|(?<=\S)[*=~`](?!\w)")
_QUOTED = pattern(r"[\"“][^\"”]*\s[^\"”]*[\"”]")
_OVER = pattern(
    r"\buntil (?:\w+ )?(?:19|20)\d\d|\bused to\b|\bsince then\b|\bback (?:then|in)\b|\bin (?:the past|19\d\d|20\d\d)\b|\blast (?:week|month|year)\b"
)
_NOT_ONLY = pattern(
    r"\bnot (?:only|just|merely|necessarily|always|yet|sure)\b|\bwhether\b|\bif not\b|\bnothing but\b"
)
_CLAUSE = pattern(
    r"\s*[;—–()]\s*|\s+-+\s+|:\s+|,\s+|\s+(?=(?:but|because|since|so|although|though|whereas)\s)|\s+(?=and (?:never|not|always|do not)\s)"
)
_DROPPED = pattern(
    r"(?:because|since|so|although|though|whereas|which|it|they|this|that|these|those|e\.g\.?)\b"
)
_CONDITION = pattern(r"(?:if|when|in|on|for|while|during|under|at|within|unless|except|after|before)\b")
_TOKEN = pattern(r"[a-z0-9][a-z0-9_.+#/@]*(?:-[a-z0-9.]*[0-9][a-z0-9.]*)*(?<![./])|%|[a-z0-9]")
_NUMBER = pattern(r"(\d+(?:[.,]\d+)*)([a-z%]*)\Z")
_BOUND = pattern(
    r"\b(?:(?P<most>at most|no (?:more|longer|larger|greater|bigger) than|not (?:\w+ )?(?:more|longer|larger) than|up to|under"
    r"|below|less than|fewer than|shorter than|maximum(?: of)?|within)"
    r"|(?P<least>at least|no (?:less|fewer|shorter) than|more than|over|above|longer than|minimum(?: of)?))\s+(?=\d)"
)
_CHOICE = pattern(r"(.+?)\s+(?:instead of|rather than|over)\s+(?!\d)(.+)")
_PREFER_TO = pattern(r"(.*\bprefers?\s+.+?)\s+to\s+(.+)")
_RATHER_THAN = pattern(r"(.*\brather\s+.+?)\s+than\s+(.+)")
_REST = pattern(r"\s+(?=(?:for|in|when|on|if|during|while|at|unless|where)\s)")
_COMPARED = pattern(r"(.+?)\s+(?:is|are|runs?)\s+(.*?)\b(\w+er|(?:more|less) \w+)\s+than\s+(.+)")
_SET = pattern(
    r"(?P<about>[\w' /.-]+?)\s*(?:(?P<sign>=|:)|\s(?P<is>is|are|will be)(?: (?:called|named|set to|always))?\b)\s*(?P<value>[^=:]+)\Z"
)
_AS_THE = pattern(r"(?:use|choose|pick|take)s?\s+(?P<value>.+?)\s+as\s+(?:the|our|a|an|your|my)\s+(?P<about>.+)\Z")
_RUNS_ON = pattern(r"(?P<about>.+?)\s(?P<verb>(?:is |are )?(?:runs?|encoded|hosted|lives?|written|stored|deployed) (?:on|as|at|in))\s(?P<value>.+)\Z")
_NARROWING = frozenset("only except unless without that who whom whose where twice".split())
_DETERMINERS = frozenset("the a an our we i they he she it this that these those my".split())


class Number(NamedTuple):
    """A number that a clause names, in the base of its unit."""

    value: float
    text: str
    unit: str
    """What is counted: time, size, share, …; "" when the clause does not say."""
    bound: str
    """most, least, or "" for the number itself."""


class Claim(NamedTuple):
    """What one clause says."""

    quote: str
    """The sentence it stands in."""
    kind: str
    """says, setting or compares."""
    sign: int
    """1 for the matter, -1 against it."""
    words: frozenset[str]
    """The matter, in stems. Of a setting, what is set; of a comparison, everything but the two sides' order."""
    person: str = ""
    """Whose taste it is, if somebody is named."""
    number: Number | None = None
    value: frozenset[str] = frozenset()
    """Of a setting its value; of a comparison the side that wins."""
    relation: str = ""
    several: bool = False
    """More than one such thing can be true at once."""
    demands: bool = False
    """It asks for something, and does not only tell how things are."""


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, without the marks of lists and emphasis."""
    for sentence in _SENTENCE.split(text):
        sentence = _LEAD.sub("", sentence).strip()
        if sentence:
            yield sentence


def claims(sentence: str, *, is_title: bool = False, is_step: bool = False) -> list[Claim]:
    """What a sentence states. A title states something only with a word of demand; a step only with a strong one."""
    if sentence.endswith("?") or len(sentence) > LONGEST or _QUOTED.search(sentence):
        return []
    text = _plain(sentence)
    first = text.partition(" ")[0]
    if first in ASKING or _OVER.search(text) or _NOT_ONLY.search(text):
        return []
    if not REPORTS.isdisjoint(text.split()):
        return []
    found: list[Claim] = []
    condition = ""
    name = sentence.partition(" ")[0].removesuffix("'s")
    for number, clause in enumerate(_clauses(text)):
        if _DROPPED.match(clause):
            continue
        if _CONDITION.match(clause) and number == 0 and "," in text:
            condition = " " + clause
            continue
        who = name if number == 0 and name[:1].isupper() else ""
        found += _read(clause + condition, sentence, who, is_title, is_step)
    return found


def _plain(sentence: str) -> str:
    """In lower case, with every negation and number in one spelling."""
    text = sentence.lower().replace("’", "'").rstrip(".! ")
    text = text.replace("won't", "will not").replace("can't", "can not").replace("cannot", "can not")
    text = text.replace("n't", " not").replace("needs not", "need not")
    return text.replace("no longer than", "at most").replace("no longer", "not")


def _clauses(text: str) -> list[str]:
    """The parts of a sentence that can be true or false each. A short name before a colon is a setting, not a part."""
    head, colon, value = text.partition(": ")
    if colon and len(head.split()) <= 4 and len(value.split()) <= 3 and "," not in text:
        return [f"{head}: {value}"]
    return [clause.strip() for clause in _CLAUSE.split(text) if clause.strip()]


def _read(clause: str, quote: str, name: str, is_title: bool, is_step: bool) -> Iterator[Claim]:
    clause = clause.removeprefix("but ").removeprefix("and ")
    compared = _COMPARED.match(clause)
    if compared:
        left, negated, more, right = compared.groups()
        one, other = _stems(left), _stems(_REST.split(right, maxsplit=1)[0])
        words = one | _stems(right) | {stem(more)}
        if one and other and not one & other:
            yield Claim(quote, "compares", -1 if "not" in negated.split() else 1, words, value=one)
        return
    choice = _PREFER_TO.match(clause) or _RATHER_THAN.match(clause) or _CHOICE.match(clause)
    if choice and not _BOUND.search(clause):
        chosen, left_out = choice.groups()
        left_out, *rest = _REST.split(left_out, maxsplit=1)
        tail = " " + rest[0] if rest else ""
        yield from _says(chosen + tail, quote, name, is_title, is_step, demands=True)
        yield from _says("not " + left_out + tail, quote, "", is_title, is_step, demands=True)
        return
    yield from _says(clause, quote, name, is_title, is_step)
    if not is_step:
        yield from _set(clause, quote)


def _says(clause: str, quote: str, name: str, is_title: bool, is_step: bool, demands: bool = False) -> Iterator[Claim]:
    bound = _BOUND.search(clause)
    if bound:
        clause = clause[: bound.start()] + " " + clause[bound.end() :]
    tokens = _tokens(clause)
    here = set(tokens)
    if here & HEDGES or here & PAST or _is_past(tokens):
        return
    strong = demands or not here.isdisjoint(STRONG)
    wanted = strong or not here.isdisjoint(DEMANDS)
    if (is_title and not wanted and not here & {"is", "are", "works"}) or (is_step and not strong):
        return
    person = ""
    if name and tokens and len(tokens) > 1 and not ATTITUDES.isdisjoint(tokens[1:4]):
        person = "" if tokens[0] in WEAK or tokens[0] in ATTITUDES | DEMANDS else tokens.pop(0)
    sign, words, number = _matter(tokens, bound.lastgroup or "" if bound else "")
    if words and len(words) <= MOST_WORDS:
        several = not here.isdisjoint(SEVERAL)
        yield Claim(quote, "says", sign, frozenset(words), person, number, several=several, demands=wanted)


def _matter(tokens: list[str], bound: str) -> tuple[int, set[str], Number | None]:
    """For or against, what, and which number. With several numbers none of them is the number."""
    sign, words, numbers = 1, set[str](), list[Number]()
    for place, token in enumerate(tokens):
        if token in NEGATIONS or token in REFUSALS:
            sign = -sign
        elif token in DEMANDS:
            continue
        elif (told := _NUMBER.match(NUMBERS.get(token, token))) is not None:
            after = tokens[place + 1] if place + 1 < len(tokens) else ""
            numbers.append(_number(told[1], told[2] or after, bound))
        elif token in _NARROWING:
            words.add(token)
        elif token not in WEAK:
            if numbers and tokens[place - 1][0].isdigit() and _unit(token):
                continue
            turned = COMPLEMENTS.get(token) or _OPPOSITE.get(stem(token))
            if turned:
                sign = -sign
            words.add(fold(turned or token))
    words.discard("")
    if len(numbers) > 1:
        words |= {number.text for number in numbers}
    return sign, words, numbers[0] if len(numbers) == 1 else None


def _number(text: str, unit: str, bound: str) -> Number:
    dimension, factor = _unit(unit) or ("", 1.0)
    plain = text.replace(",", "")
    dots = plain.count(".")
    # 3.9 and 3.10 are versions or fractions: told apart as they are written when no unit says which.
    value = float(plain) if dots < 2 else float(plain.split(".")[0])
    return Number(value * factor, text + (f" {unit}" if dimension and unit != "%" else unit * bool(dimension)), dimension, bound)


def _unit(word: str) -> tuple[str, float] | None:
    return UNITS.get(word) or UNITS.get(word.removesuffix("s"))


def _set(clause: str, quote: str) -> Iterator[Claim]:
    """A clause that gives a thing its one value: "the default branch is main", "formatter: black"."""
    for form in (_AS_THE, _RUNS_ON, _SET):
        match = form.match(clause)
        if match:
            break
    else:
        return
    given = match.groupdict()
    about, value = _stems(given["about"]), given["value"].split()
    here = set(_tokens(clause))
    if not about or len(about) > 5 or not 0 < len(value) <= 4 or here & (HEDGES | PAST | NEGATIONS | {"also"}):
        return
    relation = given.get("verb") or ""
    explicit = bool(given.get("sign")) or form is _RUNS_ON
    if not explicit and about.isdisjoint(_SETTING_STEMS):
        return
    if form is _SET and not given.get("sign") and not _is_value(value):
        return
    words = _stems(given["value"]) or frozenset(value)
    yield Claim(quote, "setting", 1, about, value=words, relation=relation.rpartition(" ")[2])


def _is_value(words: list[str]) -> bool:
    """Whether what follows "is" is a thing, and not what the subject is like or where."""
    first = words[0]
    if first in WEAK - {"a", "an", "the", "one"} or first in ADJECTIVES | REFUSALS | DEMANDS:
        return False
    return not first.endswith(("ed", "ing", "ly", "able")) and not (first in ("a", "an"))


def _tokens(clause: str) -> list[str]:
    return [token.removesuffix("'s") for token in _TOKEN.findall(clause.replace("'s ", " "))]


def _stems(text: str) -> frozenset[str]:
    return frozenset(fold(token) for token in _tokens(text) if token not in WEAK and token not in DEMANDS) - {""}


def fold(word: str) -> str:
    """One spelling for the forms of a word and its synonyms; "" for a word that says nothing."""
    other = SYNONYMS.get(word)
    return stem(word if other is None else other) if other != "" else ""


def _is_past(tokens: list[str]) -> bool:
    """Whether it tells what happened: "the build failed". With "is" or "be" before it, it is how things are."""
    if not tokens or tokens[0] not in _DETERMINERS:
        return False
    for place, token in enumerate(tokens[1:], 1):
        if token in ("is", "are", "be", "been", "has", "have"):
            return False
        if token.endswith("ed") and len(token) > 4 and place > 1 and tokens[place - 1] not in _DETERMINERS:
            return True
    return len(tokens) > 1 and tokens[0] in ("we", "i", "they") and tokens[1].endswith("ed")


_SETTING_STEMS = frozenset(map(stem, SETTINGS))
_OPPOSITE = {stem(word): base for word, base in COMPLEMENTS.items()}
