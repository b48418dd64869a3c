"""Claims made by sentences of knowledge base nodes, and conflicts and duplicates between nodes.

A small rule-based reader of English. A finding is shown to a person, so the rules prefer a miss to a false alarm.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, product
from typing import NamedTuple

from quaid.model.similarity import stem

NEGATIONS = frozenset("not never no neither nor nobody none stop hardly".split())
"""Words that negate a clause."""

DEMANDS = frozenset(
    """use uses using prefer prefers like likes love loves enjoy enjoys favour favours favor favors want wants choose
    adopt recommend recommends recommended always must should shall ought needs need require requires required allow
    allows allowed permit permits permitted please ensure preferred encouraged mandatory""".split()
)
"""Words that recommend or require something. The other words of the clause are its topic."""

REFUSALS = frozenset(
    """avoid avoids avoiding dislike dislikes hate hates forbid forbids forbidden prohibit prohibits prohibited ban
    bans banned refuse refuses reject rejects refrain shun loathes detests discouraged disallow disallows
    disallowed""".split()
)
"""Words that advise against something or forbid it."""

ATTITUDES = frozenset(
    """prefers likes loves enjoys favours favors wants dislikes hates avoids refuses uses rejects loathes detests
    prefer like love enjoy want dislike hate avoid use rather""".split()
)
"""Verbs of preference. A name before one of them is the person who has the preference, not part of the topic."""

STRONG_WORDS = (
    frozenset(
        "always never must should shall ought not no mandatory required prefer forbidden prohibited".split()
    )
    | REFUSALS
)
"""A sentence of a procedure without one of these words is a step, not a rule."""

HEDGES = frozenset(
    "may might could sometimes perhaps maybe occasionally possibly probably rarely seldom".split()
)
"""Clauses with one of these words are skipped: a statement that holds only sometimes conflicts with nothing."""

PAST_WORDS = frozenset(
    """was were had did took went became ran got gave came previously formerly once ago originally
    historically earlier initially yesterday undecided unclear""".split()
)
"""Clauses with one of these words are skipped: a past or undecided state conflicts with nothing."""

QUESTION_WORDS = frozenset("how what why where whether who which whose".split())

REPORTING_WORDS = frozenset(
    "says say said claims claim claimed argues argue believes believe suggests according".split()
)
"""Sentences with one of these words are skipped: they report the opinion of another person, not of the node."""

MULTI_VALUE_WORDS = frozenset(
    """also support supports supported ship ships include includes contain contains has have provides compatible too
    another e.g tested works
    upgrade upgraded update updated bump bumped patch patched release released adds added""".split()
)
"""Words, mostly verbs, that can apply to several values at once: two versions can both be supported, or both have
been released."""

STOP_WORDS = frozenset(
    """a an the and or of to in on at for is are be been being am my our your his her their its that this these those
    it i we you he she they with by as into onto from so just very really only own any all every each whole entire new
    ones do does done doing can will would has have having there here then than when if while always s general
    generally usually often normally strictly explicitly simply still now currently today user users owner people
    person one who which where how about up out per via get gets let lets please also too such both time times
    instead rather much many more most least less few""".split()
)
"""Words that are not part of a topic."""

LITTLE = frozenset("a an the and or of to in on at for with by as is are be my our your its s".split())
"""The stop words that are ignored when titles are compared. The others, such as how, when and who, make two titles
different."""

NARROWING = frozenset("only except unless without that who whom whose where twice even".split())
"""Words that restrict a clause to a part of its topic."""

COMPLEMENTS = {
    "disable": "enable", "exclude": "include", "fail": "pass", "hide": "show", "delete": "keep", "remove": "add",
    "deny": "allow", "close": "open", "unlock": "lock", "decline": "accept", "reject": "accept", "ignore": "heed",
    "asynchronous": "synchronous", "async": "sync", "mutable": "immutable", "unsafe": "safe", "invalid": "valid",
    "insecure": "secure", "unsigned": "signed", "unstable": "stable", "private": "public", "optional": "mandatory",
    "false": "true", "lack": "offer", "uninstall": "install", "discard": "keep", "drop": "keep",
    "unavailable": "available", "impossible": "possible", "incompatible": "compatible", "slow": "fast",
}  # fmt: skip
"""Pairs of opposites: negating one means the other. Each key is replaced by its value with the sign reversed."""

ALTERNATIVES = tuple(
    frozenset(group.split())
    for group in (
        "tabs spaces", "before after", "merge rebase squash", "single double triple", "dark light", "lazily eagerly",
        "lazy eager", "camelcase snake_case kebab-case pascalcase", "npm pnpm yarn bun", "pip uv poetry pipenv conda",
        "utc local", "main master trunk develop", "black ruff yapf autopep8", "pytest unittest nose",
        "mypy pyright pyre", "emacs vim neovim nano", "bash zsh fish", "docker podman", "json yaml toml xml ini",
        "postgresql mysql mariadb sqlite", "ascending descending", "first last", "top bottom", "left right",
        "above below", "minimum maximum", "internal external", "monorepo polyrepo", "metric imperial",
        "celsius fahrenheit", "http https", "ssh https", "github gitlab gitea codeberg", "us british",
        "debug info warning error", "optimistic pessimistic", "local remote", "push pull", "explicit implicit",
        "explicitly implicitly", "high low", "manually automatically", "manual automatic", "strict lenient",
        "early late", "static dynamic", "statically dynamically", "upper lower", "uppercase lowercase",
        "singular plural", "monday sunday", "weekly daily monthly hourly yearly", "formal informal", "short long",
        "brief detailed", "small large", "sequential parallel", "sequentially parallel",
        "synchronously asynchronously", "relative absolute",
        "centralised decentralised", "positional keyword", "inside outside", "lf crlf",
    )
)  # fmt: skip
"""Groups of which only one member is chosen. Rejecting one member does not imply another."""

SETTING_NOUNS = frozenset(
    """branch formatter linter editor port shell language framework database license licence timezone zone format
    encoding version name manager runner style theme default host hostname region path url directory folder model
    separator width size limit timeout retention quote broker provider level archive backend engine server address
    domain registry bucket channel color font locale currency schedule strategy protocol compiler interpreter
    distribution distro os browser terminal library tool client orm owner maintainer remote origin mirror key prefix
    extension scheme mode policy convention platform driver queue cache store storage""".split()
)
"""Settings that have one value at a time."""

ADJECTIVES = frozenset(
    """fast slow good bad right wrong important useful safe stable new old big small large long short available empty
    full ready public private optional mandatory free open hard easy simple complex clean dirty strict enough
    different same clear fine broken active idle read-only writable case-sensitive unique shared single cheap
    expensive nice ugly set up down responsible worth due""".split()
)
"""Words after "is" that describe a thing, and are not the value of a setting."""

CONTEXT_WORDS = frozenset(
    """python javascript typescript java go golang rust ruby perl lisp elisp haskell c c++ makefile makefiles css html
    sql linux macos windows android ios debian ubuntu fedora arch arm x86 ci production staging development testing
    test tests docs documentation laptop laptops server servers home work office chat email weekend weekends friday
    fridays monday mondays markdown org""".split()
)
"""Words that restrict a node to a context, such as a language or platform, if its title contains one."""

SYNONYMS = {
    "long": "length", "licence": "license", "colour": "color", "folder": "directory", "postgres": "postgresql",
    "js": "javascript", "ts": "typescript", "golang": "go", "characters": "", "chars": "", "columns": "",
    "lint": "linter", "dir": "directory", "wide": "width", "char": "",
    "kept": "keep", "written": "write", "built": "build", "sent": "send", "made": "make", "held": "hold",
    "shown": "show", "chosen": "choose", "ran": "run", "broken": "break", "done": "do", "taken": "take",
}  # fmt: skip
"""Maps a word to its canonical form; "" for a unit that is dropped."""

UNITS = {
    "ms": ("time", 0.001), "millisecond": ("time", 0.001), "s": ("time", 1.0), "sec": ("time", 1.0),
    "second": ("time", 1.0), "min": ("time", 60.0), "minute": ("time", 60.0), "h": ("time", 3600.0),
    "hour": ("time", 3600.0), "day": ("time", 86400.0), "week": ("time", 604800.0), "month": ("time", 2592000.0),
    "year": ("time", 31536000.0), "kb": ("size", 1e3), "mb": ("size", 1e6), "gb": ("size", 1e9), "tb": ("size", 1e12),
    "kib": ("size", 1024.0), "mib": ("size", 1048576.0), "gib": ("size", 1073741824.0), "%": ("share", 1.0),
    "percent": ("share", 1.0), "character": ("length", 1.0), "char": ("length", 1.0), "column": ("length", 1.0),
    "line": ("lines", 1.0), "space": ("spaces", 1.0), "word": ("words", 1.0), "time": ("times", 1.0),
}  # fmt: skip

NUMBER_WORDS = {
    word: str(number) for number, word in enumerate("two three four five six seven eight nine ten".split(), 2)
}

LONGEST_SENTENCE = 300
"""Maximum characters of a sentence; longer sentences make too many statements at once to compare and are skipped."""

MOST_CLAIM_WORDS = 12
"""Maximum words of a claim's topic. A longer topic practically never occurs twice."""

_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+|\n+")
_LEAD = re.compile(r"^[\s>*+#-]*(?:\d+[.)]\s+)?|\[\[[^\]]*\]\[|\]\]|[*=~`](?=\S)|(?<=\S)[*=~`](?!\w)")
_ASIDE = re.compile(r"\s*\([^()]*\)")
_QUOTED = re.compile(r"[\"“][^\"”]*\s[^\"”]*[\"”]")
_PAST_PHRASE = re.compile(
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
_SETTING = re.compile(
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


class ClaimNumber(NamedTuple):
    """A number in a clause."""

    value: tuple[float, ...]
    """The number in the base unit of its dimension; for a version, one element for each part."""
    text: str
    unit: str
    """The dimension: time, size, share, …; "" if the clause names no unit."""
    bound: str
    """most, least, or "" for an exact number."""


class Claim(NamedTuple):
    """The statement that one clause makes."""

    quote: str
    """The sentence that contains the clause."""
    kind: str
    """says, setting, compares or chooses."""
    sign: int
    """1 if the clause is for the topic, -1 if it is against it."""
    words: frozenset[str]
    """Stems of the topic. For a setting: its name; for a comparison: both sides and the comparative; for a
    choice: the rejected side."""
    person: str = ""
    """The person whose preference it is, if the sentence names one."""
    number: ClaimNumber | None = None
    value: frozenset[str] = frozenset()
    """For a setting its value, for a comparison its left side, for a choice the preferred side."""
    relation: str = ""
    several: bool = False
    """True if several values can hold at once."""
    demands: bool = False
    """True if the clause requires or recommends something, False if it describes a state."""


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences."""
    return _SENTENCE.split(text)


def parse_claims(sentence: str, *, is_title: bool = False, is_step: bool = False) -> list[Claim]:
    """Return the claims of a sentence. A title needs a word of _ASSERTING to make a claim, a step one of
    STRONG_WORDS."""
    if len(sentence) > 2 * LONGEST_SENTENCE:  # checked before any pattern is applied
        return []
    sentence = _LEAD.sub("", sentence).strip()
    if sentence.endswith("?") or len(sentence) > LONGEST_SENTENCE or _QUOTED.search(sentence):
        return []
    text = _normalize_sentence(sentence)
    words = text.split()
    if not words or words[0] in QUESTION_WORDS or not REPORTING_WORDS.isdisjoint(words):
        return []
    if (is_step and STRONG_WORDS.isdisjoint(words)) or (is_title and _ASSERTING.isdisjoint(words)):
        return []
    if _PAST_PHRASE.search(text) or _NOT_ONLY.search(text):
        return []
    found: list[Claim] = []
    condition = ""
    person = _leading_person(text) if sentence[0].isupper() else ""
    for number, clause in enumerate(_clauses(text)):
        if _DROPPED.match(clause):
            continue
        if _CONDITION.match(clause) and number == 0 and "," in text:
            if not NEGATIONS.isdisjoint(clause.split()):
                return []  # the claim holds only if something is not the case
            condition = " " + clause
            continue
        if number == 0 and person:
            clause = clause[len(person) :].lstrip()
        found += _clause_claims(clause + condition, sentence, is_step)
    return [claim._replace(person=person) for claim in found] if person else found


def _leading_person(text: str) -> str:
    """Return the name at the beginning of a sentence about a preference; "" if there is none."""
    first, *after = text.split()[:4]
    is_name = (
        first.isalpha()
        and first not in STOP_WORDS
        and first not in ATTITUDES | DEMANDS | NEGATIONS | REFUSALS
    )
    return first if is_name and not ATTITUDES.isdisjoint(after) else ""


def _normalize_sentence(sentence: str) -> str:
    """Convert to lower case and expand contracted negations."""
    text = _ASIDE.sub("", sentence.lower()).replace("’", "'").rstrip(".! ")
    text = text.replace("won't", "will not").replace("can't", "can not").replace("cannot", "can not")
    text = text.replace("n't", " not").replace("needs not", "need not")
    return text.replace("no longer than", "at most").replace("no longer", "not")


def _clauses(text: str) -> list[str]:
    """Split a sentence into clauses. A short name before a colon ("formatter: black") is a setting and is not
    split."""
    head, colon, value = text.partition(": ")
    if colon and len(head.split()) <= 4 and len(value.split()) <= 3 and "," not in text:
        return [f"{head}: {value}"]
    return [clause.strip() for clause in _CLAUSE.split(text) if clause.strip()]


def _clause_claims(clause: str, quote: str, is_step: bool) -> Iterator[Claim]:
    clause = clause.removeprefix("but ").removeprefix("and ")
    compared = _COMPARED.match(clause) if " than " in clause else None
    if compared:
        left, negated, more, right = compared.groups()
        one, other = stem_words(left), stem_words(_REST.split(right, maxsplit=1)[0])
        words = one | stem_words(right) | {stem(more)}
        if one and other and not one & other:
            yield Claim(quote, "compares", -1 if "not" in negated.split() else 1, words, value=one)
        return
    choice = _choice(clause)
    if choice and not _BOUND.search(clause):
        chosen, left_out = choice.groups()
        left_out, *rest = _REST.split(left_out, maxsplit=1)
        tail = " " + rest[0] if rest else ""
        yield from _plain_claims(chosen + tail, quote, is_step, demands=True)
        yield from _plain_claims("not " + left_out + tail, quote, is_step, demands=True)
        out, kept = stem_words(left_out + tail), stem_words(chosen + tail)
        if out and kept and not is_step:
            yield Claim(quote, "chooses", 1, out, value=kept)
        return
    yield from _plain_claims(clause, quote, is_step)
    if not is_step:
        yield from _setting_claims(clause, quote)


def _choice(clause: str) -> re.Match[str] | None:
    """Match a clause that prefers one thing to another; the groups are the preferred and the rejected side."""
    if " than " in clause and (found := _RATHER_THAN.match(clause)):
        return found
    if "prefer" in clause and " to " in clause and (found := _PREFER_TO.match(clause)):
        return found
    return _CHOICE.match(clause) if " over " in clause or " of " in clause or " than " in clause else None


def _plain_claims(clause: str, quote: str, is_step: bool, demands: bool = False) -> Iterator[Claim]:
    bound = _BOUND.search(clause)
    if bound:
        clause = clause[: bound.start()] + " " + clause[bound.end() :]
    tokens = _tokens(clause)
    here = set(tokens)
    if here & HEDGES or here & PAST_WORDS or _is_past(tokens):
        return
    strong = demands or not here.isdisjoint(STRONG_WORDS)
    wanted = strong or not here.isdisjoint(DEMANDS)
    if is_step and not strong:
        return
    sign, words, number = _parse_matter(tokens, bound.lastgroup or "" if bound else "")
    if words and len(words) <= MOST_CLAIM_WORDS:
        several = not here.isdisjoint(MULTI_VALUE_WORDS)
        yield Claim(quote, "says", sign, frozenset(words), number=number, several=several, demands=wanted)


def _parse_matter(tokens: list[str], bound: str) -> tuple[int, set[str], ClaimNumber | None]:
    """Return sign, topic words and number of a clause. If there are several numbers, they become topic words."""
    sign, words, numbers = 1, set[str](), list[ClaimNumber]()
    for place, token in enumerate(tokens):
        if token in NEGATIONS or token in REFUSALS:
            sign = -sign
        elif token in DEMANDS:
            continue
        elif (told := _NUMBER.match(NUMBER_WORDS.get(token, token))) and (not told[2] or _unit(told[2])):
            after = tokens[place + 1] if place + 1 < len(tokens) else ""
            numbers.append(_parse_number(told[1], told[2] or after, bound))
        elif token in NARROWING:
            words.add(token)
        elif token not in STOP_WORDS:
            if numbers and tokens[place - 1][0].isdigit() and _unit(token):
                continue
            turned = COMPLEMENTS.get(token) or _OPPOSITE.get(stem(token))
            if turned:
                sign = -sign
            words.add(fold_word(turned or token))
    words.discard("")
    if len(numbers) > 1:
        words |= {number.text for number in numbers}
    return sign, words, numbers[0] if len(numbers) == 1 else None


def _parse_number(text: str, unit: str, bound: str) -> ClaimNumber:
    dimension, factor = _unit(unit) or ("", 1.0)
    plain = text.replace(",", "")
    if plain.count(".") < 2 and (dimension or plain.startswith("0.")):
        value: tuple[float, ...] = (float(plain) * factor,)
    else:
        value = tuple(map(float, plain.split(".")))  # a version: 3.9 is before 3.11
    shown = f"{text}%" if unit == "%" else f"{text} {unit}" if dimension else text
    return ClaimNumber(value, shown, dimension, bound)


def _unit(word: str) -> tuple[str, float] | None:
    return UNITS.get(word) or UNITS.get(word.removesuffix("s"))


def _setting_claims(clause: str, quote: str) -> Iterator[Claim]:
    """Yield the claim of a clause that assigns a setting: "the default branch is main", "formatter: black"."""
    for form in (_AS_THE, _RUNS_ON, _SETTING):
        match = form.match(clause)
        if match:
            break
    else:
        return
    given = match.groupdict()
    about, value = stem_words(given["about"]), given["value"].split()
    here = set(_tokens(clause))
    if (
        not about
        or len(about) > 5
        or not 0 < len(value) <= 4
        or here & (HEDGES | PAST_WORDS | NEGATIONS | {"also"})
    ):
        return
    relation = given.get("verb") or ""
    if (
        form is not _RUNS_ON
        and given.get("sign") != "="
        and (about <= _VAGUE or about.isdisjoint(_SETTING_STEMS))
    ):
        return
    if form is _SETTING and not given.get("sign") and not _is_value(value):
        return
    words = stem_words(given["value"]) or frozenset(value)
    yield Claim(quote, "setting", 1, about, value=words, relation=relation.rpartition(" ")[2])


def _is_value(words: list[str]) -> bool:
    """Return True if the words after "is" name a thing, and do not describe the subject or its place."""
    first = words[0]
    if first in STOP_WORDS - {"a", "an", "the", "one"} or first in ADJECTIVES | REFUSALS | DEMANDS:
        return False
    return not first.endswith(("ed", "ing", "ly", "able")) and first not in ("a", "an")


def _tokens(clause: str) -> list[str]:
    return [token.removesuffix("'s") for token in _TOKEN.findall(clause.replace("'s ", " "))]


def stem_words(text: str) -> frozenset[str]:
    """Return the stems of the words in a lower-case text, without stop words and words of demand."""
    return frozenset(
        fold_word(token) for token in _tokens(text) if token not in STOP_WORDS and token not in DEMANDS
    ) - {""}


def fold_word(word: str) -> str:
    """Return the stem of a word or of its synonym; "" for a word to drop."""
    other = SYNONYMS.get(word)
    return stem(word if other is None else other) if other != "" else ""


def _is_past(tokens: list[str]) -> bool:
    """Return True if a clause tells a past event ("the build failed"). After "is", "be" or "has" it describes a
    state."""
    if not tokens or tokens[0] not in _DETERMINERS:
        return False
    for place, token in enumerate(tokens[1:], 1):
        if token in ("is", "are", "be", "been", "has", "have"):
            return False
        if token.endswith("ed") and len(token) > 4 and place > 1 and tokens[place - 1] not in _DETERMINERS:
            return True
    return len(tokens) > 1 and tokens[0] in ("we", "i", "they") and tokens[1].endswith("ed")


_ASSERTING = DEMANDS | STRONG_WORDS | NEGATIONS | {"is", "are", "works"}
_SETTING_STEMS = frozenset(map(stem, SETTING_NOUNS))
_VAGUE = frozenset(
    map(stem, ("default", "name", "version", "mode", "key", "path", "size", "style", "format", "policy"))
)
_OPPOSITE = {stem(word): base for word, base in COMPLEMENTS.items()}

MOST_CANDIDATES = 40
"""Maximum statements that are parsed. Candidates with short titles and summaries come first."""

SIMILAR_SHARE = 0.75
"""Minimum Dice similarity of two summaries, or of titles and summaries together, for statements to be duplicates."""

SURE_SHARE = 0.85
"""The minimum similarity if each summary has a word that the other lacks, since those words may be the ones that
matter."""

LEAST_SHARED = SIMILAR_SHARE / (2 - SIMILAR_SHARE)
"""Share of the words of one text that the other must contain for the two to reach SIMILAR_SHARE."""

GENERAL_PROJECT = "general"
"""The project whose statements apply to all projects."""

PROCEDURE_TYPE = "procedure"
"""The node type whose sentences are steps."""

_WORD = re.compile(r"[^\W_]+(?:[.'’][^\W_]+)*")
_DECISIVE = re.compile(
    r"\d+(?:[.,:/-]\d+)*%?|\b(?:not|no|never|none|nor|neither|without|cannot)\b|n['’]t\b"
    r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b"
)


class Statement(NamedTuple):
    """The parts of a node that are compared."""

    key: str
    title: str
    summary: str
    body: str = ""
    type: str = ""
    projects: tuple[str, ...] = ()


class SimilarStatement(NamedTuple):
    """A statement that is nearly a duplicate of the new one."""

    key: str
    share: float
    why: str


class WordProbe(NamedTuple):
    """Words to search for in a text, and how many of them may be missing."""

    words: tuple[str, ...]
    spare: int


class StatementConflict(NamedTuple):
    """A statement that contradicts the new one."""

    key: str
    why: str
    one: str
    """The sentence of the new statement."""
    other: str


class ParsedStatement(NamedTuple):
    """The new statement with the claims of title and summary, the claims of the body, and the words to search for."""

    statement: Statement
    told: list[Claim]
    below: list[Claim]
    probes: list[WordProbe]
    every: list[WordProbe]


def find_conflicts(new: Statement, others: Iterable[Statement], most: int = 5) -> list[StatementConflict]:
    """Return the statements that contradict a new one, each with the two sentences."""
    told, below = _head_claims(new), _body_claims(new)
    read = ParsedStatement(new, told, below, _claim_probes(told), _claim_probes(told + below))
    found = []
    for other, is_near in _candidates(read, others):
        finding = _first_conflict(read, other, is_near)
        if finding:
            found.append(finding)
            if len(found) == most:
                break
    return found


def find_conflicts_within(added: Statement, there: Statement, most: int = 5) -> list[StatementConflict]:
    """Compare text added to a statement with what the statement already says, sentence by sentence.

    Bodies can be compared with each other here, because they share the context of one node.
    """
    new = _summary_claims(added) + _body_claims(added)
    old = _head_claims(there) + _body_claims(there, _claim_probes(new))
    found: dict[str, StatementConflict] = {}
    for one, two in product(new, old):
        why = conflict_reason(one, two) if one.quote != two.quote else ""
        if why and _same_context(added, one, there, two):
            found.setdefault(one.quote, StatementConflict(there.key, why, one.quote, two.quote))
            if len(found) == most:
                break
    return list(found.values())


def _first_conflict(new: ParsedStatement, other: Statement, is_near: bool) -> StatementConflict | None:
    """Return the first pair of contradicting sentences. Two bodies are not compared, because they depend on their
    context."""
    for one, two in _claim_pairs(new, other, is_near):
        why = conflict_reason(one, two)
        if why and _same_context(new.statement, one, other, two):
            return StatementConflict(other.key, why, one.quote, two.quote)
    return None


def _claim_pairs(new: ParsedStatement, other: Statement, is_near: bool) -> Iterator[tuple[Claim, Claim]]:
    if is_near:
        for two in _head_claims(other):
            for one in chain(new.told, new.below):
                if not one.words.isdisjoint(two.words) or one.kind == "chooses":
                    yield one, two
    if new.told and other.body:
        yield from product(new.told, _body_claims(other, new.probes))


def conflict_reason(one: Claim, other: Claim) -> str:
    """Return why two claims contradict each other; "" if they do not."""
    if one.kind != other.kind or (one.person and other.person and one.person != other.person):
        return ""
    if one.kind == "setting":
        return _setting_conflict(one, other)
    if one.kind == "compares":
        if one.words == other.words and (one.value == other.value) is (one.sign != other.sign):
            return f"they compare the other way round: {_quote_words(one.words, one)}"
        return ""
    if one.kind == "chooses":
        turned = one.words <= other.value and other.words <= one.value and not one.words <= one.value
        return (
            f"they choose the other way round: {_quote_words(one.words | other.words, one)}" if turned else ""
        )
    if one.number and other.number:
        return _number_conflict(one, one.number, other, other.number)
    if one.number or other.number:
        return ""
    if one.sign != other.sign:
        return _polarity_conflict(one, other)
    return _alternative_conflict(one, other) if one.sign > 0 else ""


def _polarity_conflict(one: Claim, other: Claim) -> str:
    common, apart = one.words & other.words, one.words ^ other.words
    if len(apart) > (len(common) >= 4) or apart & NARROWING or not common:
        return ""
    if len(common) == 1 and not (one.demands and other.demands):
        return ""
    return f"one is for it, the other against: {_quote_words(common, one)}"


def _alternative_conflict(one: Claim, other: Claim) -> str:
    first, second = one.words - other.words, other.words - one.words
    if len(first) != 1 or len(second) != 1 or not one.words & other.words:
        return ""
    (a,), (b,) = first, second
    if b in _ALTERNATIVE_STEMS.get(a, ()):
        both = _quote_words(one.words & other.words, one)
        return f"“{_quote_words(first, one)}” against “{_quote_words(second, other)}”: {both}"
    return ""


def _number_conflict(one: Claim, first: ClaimNumber, other: Claim, second: ClaimNumber) -> str:
    common, every = one.words & other.words, one.words | other.words
    if not common or len(every) - len(common) > (len(common) >= 4) or (every - common) & NARROWING:
        return ""
    if one.sign != other.sign or (first.unit and second.unit and first.unit != second.unit):
        return ""
    if len(common) + bool(first.unit and second.unit) < 2 and not (one.demands and other.demands):
        return ""
    if (one.several or other.several) and not (one.demands and other.demands):
        return ""
    if not _numbers_exclude(first, second):
        return ""
    return f"{first.text} against {second.text}: {_quote_words(common, one)}"


def _numbers_exclude(one: ClaimNumber, other: ClaimNumber) -> bool:
    """Return True if no number satisfies both. Two bounds of the same kind with different values exclude each
    other."""
    if one.bound == other.bound:
        return one.value != other.value
    if {one.bound, other.bound} == {"most", "least"}:
        most, least = (one, other) if one.bound == "most" else (other, one)
        return least.value > most.value
    exact, limit = (one, other) if not one.bound else (other, one)
    # An exact value next to an upper bound is read as a bound: "line length is 88", "at most 100".
    return exact.value != limit.value if limit.bound == "most" else exact.value < limit.value


def _setting_conflict(one: Claim, other: Claim) -> str:
    if one.words != other.words or one.relation != other.relation or one.value & other.value:
        return ""
    values = f"“{_quote_words(one.value, one)}” against “{_quote_words(other.value, other)}”"
    return f"{values}: {_quote_words(one.words, one)}"


def _quote_words(words: frozenset[str], claim: Claim) -> str:
    """Return the words of the claim's sentence that have these stems."""
    written = [word for word in claim.quote.replace("`", "").split() if stem_words(word.lower()) & words]
    return " ".join(word.strip(",;:.!()\"'“”") for word in written) or ", ".join(sorted(words))


def _same_project(one: Statement, other: Statement) -> bool:
    mine, theirs = set(one.projects), set(other.projects)
    return not mine or not theirs or GENERAL_PROJECT in mine | theirs or bool(mine & theirs)


def _same_context(new: Statement, one: Claim, other: Statement, two: Claim) -> bool:
    """Return True if both claims apply to the same context: a title can restrict its node to Makefiles, or to
    Redis."""
    mine, theirs = _content_stems(new.title), _content_stems(other.title)
    first, second = one.words | one.value, two.words | two.value
    if (mine | first) & _CONTEXT_STEMS != (theirs | second) & _CONTEXT_STEMS:
        return False
    # Title words that are missing from both sentences name the subject: "Redis pool", "Mail pool".
    said = _content_stems(one.quote) | _content_stems(two.quote)
    first, second = mine - said, theirs - said
    return one.kind == "compares" or not first - theirs or not second - mine


def _head_claims(statement: Statement) -> list[Claim]:
    is_step = statement.type == PROCEDURE_TYPE
    return parse_claims(statement.title, is_title=True, is_step=is_step) + _summary_claims(statement)


def _summary_claims(statement: Statement) -> list[Claim]:
    is_step = statement.type == PROCEDURE_TYPE
    return [
        claim for each in split_sentences(statement.summary) for claim in parse_claims(each, is_step=is_step)
    ]


def _body_claims(statement: Statement, probes: list[WordProbe] | None = None) -> list[Claim]:
    """Return the claims of the body; with probes, only of the sentences that match one."""
    found: list[Claim] = []
    is_step = statement.type == PROCEDURE_TYPE
    if probes is not None and not _matches_probe(_lowercase(statement.body), probes):
        return found
    for sentence in split_sentences(statement.body):
        if probes is None or _matches_probe(_lowercase(sentence), probes):
            found += parse_claims(sentence, is_step=is_step)
    return found


def _claim_probes(told: list[Claim]) -> list[WordProbe]:
    """Return the words that a text must contain to be worth parsing.

    Words that have synonyms or alternatives are left out, since the other text may use another form. The longest
    and so rarest words come first, so that most texts fail at the first test.
    """
    found = {}
    for claim in told:
        words, spare = claim.words - _VARIABLE_STEMS, len(claim.words) > 4
        if not words:
            words, spare = claim.words, len(claim.words) > 1
        found[claim.words] = WordProbe(tuple(sorted(words, key=lambda word: (-len(word), word))), int(spare))
    return list(found.values())


def _lowercase(text: str) -> str:
    return text.lower() if text.isascii() else text.lower().replace("’", "'")


def _matches_probe(text: str, probes: list[WordProbe]) -> bool:
    """Return True if a lower-case text contains the words of at least one probe."""
    for words, spare in probes:
        for word in words:
            if word not in text:
                if not spare:
                    break
                spare -= 1
        else:
            return True
    return False


def _candidates(new: ParsedStatement, others: Iterable[Statement]) -> list[tuple[Statement, bool]]:
    """Return the statements to parse, each with True if title and summary match, False if only the body does."""
    first, second = [], []
    for other in others:
        if _matches_probe(_lowercase(f"{other.title} {other.summary}"), new.every):
            first.append((other, True))
        elif other.body and _matches_probe(_lowercase(other.body), new.probes):
            second.append((other, False))
    # The shorter a matching text is, the more of it is about the words.
    first.sort(key=lambda each: len(each[0].title) + len(each[0].summary))
    mine = new.statement
    found = [each for each in first + second if each[0].key != mine.key and _same_project(mine, each[0])]
    return found[:MOST_CANDIDATES]


def find_similar(new: Statement, others: Iterable[Statement], most: int = 5) -> list[SimilarStatement]:
    """Return near-duplicates of a new statement, most similar first."""
    title, summary = _content_stems(new.title), _content_stems(new.summary)
    probes = [WordProbe(tuple(title - _SYNONYM_STEMS), 0)]
    for words in (summary, title | summary):
        probes.append(WordProbe(tuple(words - _SYNONYM_STEMS), int(len(words) * (1 - LEAST_SHARED))))
    found = []
    for other in others:
        if not _matches_probe(_lowercase(f"{other.title} {other.summary}"), probes) or other.key == new.key:
            continue
        theirs = _content_stems(other.title)
        if title and title == theirs and _weak(new.title) == _weak(other.title):
            found.append(SimilarStatement(other.key, 1.0, "the same title"))
            continue
        share = _similar_share(new, title, summary, other, theirs)
        if share >= SIMILAR_SHARE:
            found.append(SimilarStatement(other.key, round(share, 3), "the summaries say the same"))
    return sorted(found, key=lambda each: -each.share)[:most]


def _similar_share(
    new: Statement, title: frozenset[str], summary: frozenset[str], other: Statement, theirs: frozenset[str]
) -> float:
    second = _content_stems(other.summary)
    share = max(_dice(summary, second), _dice(title | summary, theirs | second))
    if share < (SURE_SHARE if summary - second and second - summary else SIMILAR_SHARE):
        return 0.0
    return 0.0 if _are_opposites(summary ^ second) or corrects_details(new.summary, other.summary) else share


def corrects_details(old: str, new: str) -> bool:
    """Return True if numbers, dates or negations differ: a small change of wording that changes the meaning."""
    return Counter(_DECISIVE.findall(old.lower())) != Counter(_DECISIVE.findall(new.lower()))


def _are_opposites(apart: frozenset[str]) -> bool:
    """Return True if two of the words are opposites or alternatives."""
    return any(not apart.isdisjoint(_ALTERNATIVE_STEMS.get(word, ())) for word in apart)


def _dice(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0


def _content_stems(text: str) -> frozenset[str]:
    found = (word.lower().replace("’", "'").removesuffix("'s") for word in _WORD.findall(text))
    return frozenset(fold_word(word) for word in found if word not in STOP_WORDS) - {""}


def _weak(title: str) -> frozenset[str]:
    """Return the stop words of a title that still distinguish it from other titles."""
    return frozenset(word.lower() for word in _WORD.findall(title)) & (STOP_WORDS - LITTLE)


def _alternative_stems() -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    pairs = [frozenset(pair) for pair in COMPLEMENTS.items()]
    for group in (*ALTERNATIVES, *pairs):
        stems = frozenset(map(stem, group))
        for word in stems:
            found[word] = found.get(word, frozenset()) | (stems - {word})
    return found


_ALTERNATIVE_STEMS = _alternative_stems()
_SYNONYM_STEMS = frozenset(map(stem, SYNONYMS.values()))
_VARIABLE_STEMS = _SYNONYM_STEMS.union(_ALTERNATIVE_STEMS)
"""Stems for which the other text may use another word."""
_CONTEXT_STEMS = frozenset(map(stem, CONTEXT_WORDS))
