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
    NARROWING,
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
from quaid.core.wording import stem

LONGEST = 300
"""Characters of a sentence that are read; a longer one says too much to be opposed as a whole."""

MOST_WORDS = 12
"""A matter of more words is never met again."""

_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\n+")
_LEAD = re.compile(r"^[\s>*+#-]*(?:\d+[.)]\s+)?|\[\[[^\]]*\]\[|\]\]|[*=~`](?=\S)|(?<=\S)[*=~`](?!\w)")
_ASIDE = re.compile(r"\s*\([^()]*\)")
_QUOTED = re.compile(r"[\"“][^\"”]*\s[^\"”]*[\"”]")
_OVER = re.compile(
    r"\buntil (?:\w+ )?(?:19|20)\d\d|\bused to\b|\bsince then\b|\bback (?:then|in)\b"
    r"|\bin (?:the past|19\d\d|20\d\d)\b|\blast (?:week|month|year)\b"
)
_NOT_ONLY = re.compile(
    r"\bnot (?:only|just|merely|necessarily|always|yet|sure)\b|\bwhether\b|\bif not\b|\bnothing but\b|\botherwise\Z"
)
_CLAUSE = re.compile(
    r"\s*[;—–]\s*|\s+-+\s+|:\s+|,\s+|\s+(?=(?:but|because|since|so|although|though|whereas)\s)"
    r"|\s+(?=and (?:never|not|always|do not)\s)"
)
_DROPPED = re.compile(
    r"(?:because|since|so|although|though|whereas|which|it|they|this|that|these|those|otherwise|e\.g\.?)\b"
)
_CONDITION = re.compile(r"(?:if|when|in|on|for|while|during|under|at|within|unless|except|after|before)\b")
_TOKEN = re.compile(r"[a-z0-9][a-z0-9_.+#/@]*(?:-[a-z0-9.]*[0-9][a-z0-9.]*)*(?<![./])|%|[a-z0-9]")
_NUMBER = re.compile(r"(\d+(?:[.,]\d+)*)([a-z%]*)\Z")
_BOUND = re.compile(
    r"\b(?:(?P<most>at most|no (?:more|longer|larger|greater|bigger) than|not (?:\w+ )?(?:more|longer|larger) than"
    r"|up to|under|below|less than|fewer than|shorter than|maximum(?: of)?|within)"
    r"|(?P<least>at least|no (?:less|fewer|shorter) than|more than|over|above|longer than|minimum(?: of)?))\s+"
    r"(?=\d|(?:(?<=at least )|(?<=at most ))[a-z]+ \d)"
)
_CHOICE = re.compile(r"(.+?)\s+(?:instead of|rather than|over)\s+(?!\d)(.+)")
_PREFER_TO = re.compile(r"(.*\bprefers?\s+.+?)\s+to\s+(.+)")
_RATHER_THAN = re.compile(r"(.*\brather\s+.+?)\s+than\s+(.+)")
_REST = re.compile(r"\s+(?=(?:for|in|when|on|if|during|while|at|unless|where)\s)")
_COMPARED = re.compile(r"(.+?)\s+(?:is|are|runs?)\s+(.*?)\b(\w+er|(?:more|less) \w+)\s+than\s+(.+)")
_SET = re.compile(
    r"(?P<about>[\w' /.-]*?[\w'/.-])\s*+"
    r"(?:(?P<sign>=|:)|(?<=\s)(?:is|are|will be)(?: (?:called|named|set to|always))?\b)"
    r"\s*(?P<value>[^=:]+)\Z"
)
_AS_THE = re.compile(
    r"(?:use|choose|pick|take)s?\s+(?P<value>.+?)\s+as\s+(?:the|our|a|an|your|my)\s+(?P<about>.+)\Z"
)
_RUNS_ON = re.compile(
    r"(?P<about>.+?)\s(?P<verb>(?:is |are )?(?:runs?|encoded|hosted|lives?|written|stored|deployed)"
    r" (?:on|as|at|in))\s(?P<value>.+)\Z"
)
_DETERMINERS = frozenset("the a an our we i they he she it this that these those my".split())


class Number(NamedTuple):
    """A number that a clause names."""

    value: tuple[float, ...]
    """In the base of its unit; a version part by part."""
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
    """says, setting, compares or chooses."""
    sign: int
    """1 for the matter, -1 against it."""
    words: frozenset[str]
    """The matter, in stems. Of a setting, what is set; of a comparison, everything but the order of its sides; of a
    choice, what is left out."""
    person: str = ""
    """Whose taste it is, if somebody is named."""
    number: Number | None = None
    value: frozenset[str] = frozenset()
    """Of a setting its value; of a comparison or a choice the side that wins."""
    relation: str = ""
    several: bool = False
    """More than one such thing can be true at once."""
    demands: bool = False
    """It asks for something, and does not only tell how things are."""


def sentences(text: str) -> list[str]:
    """The sentences of a text, as they are written."""
    return _SENTENCE.split(text)


def claims(sentence: str, *, is_title: bool = False, is_step: bool = False) -> list[Claim]:
    """What a sentence states. A title states something only with a word of demand; a step only with a strong one."""
    if len(sentence) > 2 * LONGEST:  # before any pattern sees it
        return []
    sentence = _LEAD.sub("", sentence).strip()
    if sentence.endswith("?") or len(sentence) > LONGEST or _QUOTED.search(sentence):
        return []
    text = _plain(sentence)
    words = text.split()
    if not words or words[0] in ASKING or not REPORTS.isdisjoint(words):
        return []
    if (is_step and STRONG.isdisjoint(words)) or (is_title and _ASSERTING.isdisjoint(words)):
        return []
    if _OVER.search(text) or _NOT_ONLY.search(text):
        return []
    found: list[Claim] = []
    condition = ""
    person = _person(text) if sentence[0].isupper() else ""
    for number, clause in enumerate(_clauses(text)):
        if _DROPPED.match(clause):
            continue
        if _CONDITION.match(clause) and number == 0 and "," in text:
            if not NEGATIONS.isdisjoint(clause.split()):
                return []  # what holds if something is not so
            condition = " " + clause
            continue
        if number == 0 and person:
            clause = clause[len(person) :].lstrip()
        found += _read(clause + condition, sentence, is_step)
    return [claim._replace(person=person) for claim in found] if person else found


def _person(text: str) -> str:
    """Whose taste a sentence tells: the name that it begins with."""
    first, *after = text.split()[:4]
    is_name = (
        first.isalpha() and first not in WEAK and first not in ATTITUDES | DEMANDS | NEGATIONS | REFUSALS
    )
    return first if is_name and not ATTITUDES.isdisjoint(after) else ""


def _plain(sentence: str) -> str:
    """In lower case, with every negation and number in one spelling."""
    text = _ASIDE.sub("", sentence.lower()).replace("’", "'").rstrip(".! ")
    text = text.replace("won't", "will not").replace("can't", "can not").replace("cannot", "can not")
    text = text.replace("n't", " not").replace("needs not", "need not")
    return text.replace("no longer than", "at most").replace("no longer", "not")


def _clauses(text: str) -> list[str]:
    """The parts of a sentence that can each be true or false. A short name before a colon is a setting, no part."""
    head, colon, value = text.partition(": ")
    if colon and len(head.split()) <= 4 and len(value.split()) <= 3 and "," not in text:
        return [f"{head}: {value}"]
    return [clause.strip() for clause in _CLAUSE.split(text) if clause.strip()]


def _read(clause: str, quote: str, is_step: bool) -> Iterator[Claim]:
    clause = clause.removeprefix("but ").removeprefix("and ")
    compared = _COMPARED.match(clause) if " than " in clause else None
    if compared:
        left, negated, more, right = compared.groups()
        one, other = stems(left), stems(_REST.split(right, maxsplit=1)[0])
        words = one | stems(right) | {stem(more)}
        if one and other and not one & other:
            yield Claim(quote, "compares", -1 if "not" in negated.split() else 1, words, value=one)
        return
    choice = _choice(clause)
    if choice and not _BOUND.search(clause):
        chosen, left_out = choice.groups()
        left_out, *rest = _REST.split(left_out, maxsplit=1)
        tail = " " + rest[0] if rest else ""
        yield from _says(chosen + tail, quote, is_step, demands=True)
        yield from _says("not " + left_out + tail, quote, is_step, demands=True)
        out, kept = stems(left_out + tail), stems(chosen + tail)
        if out and kept and not is_step:
            yield Claim(quote, "chooses", 1, out, value=kept)
        return
    yield from _says(clause, quote, is_step)
    if not is_step:
        yield from _set(clause, quote)


def _choice(clause: str) -> re.Match[str] | None:
    """What is chosen and what is left out, where a clause says so."""
    if " than " in clause and (found := _RATHER_THAN.match(clause)):
        return found
    if "prefer" in clause and " to " in clause and (found := _PREFER_TO.match(clause)):
        return found
    return _CHOICE.match(clause) if " over " in clause or " of " in clause or " than " in clause else None


def _says(clause: str, quote: str, is_step: bool, demands: bool = False) -> Iterator[Claim]:
    bound = _BOUND.search(clause)
    if bound:
        clause = clause[: bound.start()] + " " + clause[bound.end() :]
    tokens = _tokens(clause)
    here = set(tokens)
    if here & HEDGES or here & PAST or _is_past(tokens):
        return
    strong = demands or not here.isdisjoint(STRONG)
    wanted = strong or not here.isdisjoint(DEMANDS)
    if is_step and not strong:
        return
    sign, words, number = _matter(tokens, bound.lastgroup or "" if bound else "")
    if words and len(words) <= MOST_WORDS:
        several = not here.isdisjoint(SEVERAL)
        yield Claim(quote, "says", sign, frozenset(words), number=number, several=several, demands=wanted)


def _matter(tokens: list[str], bound: str) -> tuple[int, set[str], Number | None]:
    """For or against, what, and which number. With several numbers none of them is the number."""
    sign, words, numbers = 1, set[str](), list[Number]()
    for place, token in enumerate(tokens):
        if token in NEGATIONS or token in REFUSALS:
            sign = -sign
        elif token in DEMANDS:
            continue
        elif (told := _NUMBER.match(NUMBERS.get(token, token))) and (not told[2] or _unit(told[2])):
            after = tokens[place + 1] if place + 1 < len(tokens) else ""
            numbers.append(_number(told[1], told[2] or after, bound))
        elif token in NARROWING:
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
    if plain.count(".") < 2 and (dimension or plain.startswith("0.")):
        value: tuple[float, ...] = (float(plain) * factor,)
    else:
        value = tuple(map(float, plain.split(".")))  # a version: 3.9 is before 3.11
    shown = f"{text}%" if unit == "%" else f"{text} {unit}" if dimension else text
    return Number(value, shown, dimension, bound)


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
    about, value = stems(given["about"]), given["value"].split()
    here = set(_tokens(clause))
    if (
        not about
        or len(about) > 5
        or not 0 < len(value) <= 4
        or here & (HEDGES | PAST | NEGATIONS | {"also"})
    ):
        return
    relation = given.get("verb") or ""
    if (
        form is not _RUNS_ON
        and given.get("sign") != "="
        and (about <= _VAGUE or about.isdisjoint(_SETTING_STEMS))
    ):
        return
    if form is _SET and not given.get("sign") and not _is_value(value):
        return
    words = stems(given["value"]) or frozenset(value)
    yield Claim(quote, "setting", 1, about, value=words, relation=relation.rpartition(" ")[2])


def _is_value(words: list[str]) -> bool:
    """Whether what follows "is" is a thing, and not what the subject is like or where."""
    first = words[0]
    if first in WEAK - {"a", "an", "the", "one"} or first in ADJECTIVES | REFUSALS | DEMANDS:
        return False
    return not first.endswith(("ed", "ing", "ly", "able")) and first not in ("a", "an")


def _tokens(clause: str) -> list[str]:
    return [token.removesuffix("'s") for token in _TOKEN.findall(clause.replace("'s ", " "))]


def stems(text: str) -> frozenset[str]:
    """What a text in lower case is about."""
    return frozenset(fold(token) for token in _tokens(text) if token not in WEAK and token not in DEMANDS) - {
        ""
    }


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


_ASSERTING = DEMANDS | STRONG | NEGATIONS | {"is", "are", "works"}
_SETTING_STEMS = frozenset(map(stem, SETTINGS))
_VAGUE = frozenset(
    map(stem, ("default", "name", "version", "mode", "key", "path", "size", "style", "format", "policy"))
)
_OPPOSITE = {stem(word): base for word, base in COMPLEMENTS.items()}
