"""Rate the evidence for an answer: strong, weak or none.

The rating of a result uses raw evidence instead of rescaled scores:

- the question's words that it contains, in all, in one statement, and by BM25; rare words weigh more
- how much nearer its chunk is than the nearest of as many unrelated chunks would be
- how far the first result is ahead of the second
- whether it contains the names in the question, words of the question besides its subject, and what is asked
  for, such as a number or a phone number

The nearest of many unrelated chunks is nearer than the nearest of a few, so the same cosine means less in a
large memory. For n independent values, the highest is about sqrt(2 ln n) standard deviations above the mean.
The standard deviation is that of the memory itself: the distance of its chunks from their mean, spread
evenly over all dimensions. Therefore the limits hold for memories of any size and for any model.
`python -m bench strength` measures them, and docs/decisions/076-strength.md has the figures.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Literal, NamedTuple

Strength = Literal["strong", "weak", "none"]

STRONG, WEAK = 0.68, 0.0
"""The limits of the evidence for strong and weak."""

SHARE_WEIGHT, NEAR_WEIGHT, BM25_WEIGHT, MEANING_WEIGHT, LEAD_WEIGHT = 0.25, 0.35, 0.4, 1.0, 0.3
"""Weights of `words`, `near`, `bm25`, `meaning` and `lead` of Found."""

NAMES_WEIGHT, SUBJECT_WEIGHT = 0.25, 0.2
"""This much is subtracted if a result has none of the question's names, or none of its words besides the subject."""

LEAST_ATTRIBUTE = 0.1
"""A result with a smaller share of the question's words besides its subject is not strong."""

STRONG_WORDS, WEAK_WORDS = 0.6, 0.3
"""The limits for strong and weak if only words are known."""

NAMES_WEIGHT_OF_WORDS = 0.4
"""This much is subtracted for missing names if only words are known."""

ENOUGH_CHUNKS = 50
"""The mean of at least this many chunks is a reliable baseline (the cosine of an unrelated chunk)."""

LEAST_WEIGHT = 0.1
"""A word has at least this weight, however many chunks contain it."""

CHANCE = 2.0
"""The expected nearness of the nearest unrelated chunk, in units of spread times sqrt(2 ln n).

Questions vary most in the directions in which chunks vary too, so this is more than 1.
"""

TYPICAL_SPREAD, MOST_BY_CHANCE = 0.03, 0.35
"""The spread that is assumed in a memory of few chunks, and the highest value of `Unrelated.by_chance`."""


class Unrelated(NamedTuple):
    """What is expected of chunks that have nothing to do with a question."""

    baseline: float
    """Their mean cosine."""
    spread: float
    """The standard deviation of their cosines."""
    chunks: int
    """How many chunks were compared."""

    @property
    def by_chance(self) -> float:
        """The value of `standing_out` that the nearest unrelated chunk is expected to reach."""
        share = min(1.0, self.chunks / ENOUGH_CHUNKS)
        spread = share * self.spread + (1 - share) * TYPICAL_SPREAD
        return min(MOST_BY_CHANCE, CHANCE * spread * math.sqrt(2 * math.log(max(self.chunks, ENOUGH_CHUNKS))))

    def excess(self, cosine: float) -> float | None:
        """Return how much nearer a chunk is than the nearest unrelated one; negative if it is less near.

        Return None if that is not known (see `standing_out`).
        """
        nearness = standing_out(cosine, self.baseline, self.chunks)
        return None if nearness is None else nearness - self.by_chance


class Found(NamedTuple):
    """How a result matches a question. Shares of words are from 0 to 1, and rare words weigh more."""

    words: float
    """The share of the question's words that it contains."""
    near: float
    """The largest share of the question's words in one statement together with its title and heading."""
    bm25: float
    """Its BM25 score, divided by the sum of the weights of the question's words."""
    meaning: float | None
    """The result of `Unrelated.excess`, or None if it has no vector."""
    missing_names: float = 0.0
    """The share of the question's names that it does not contain."""
    attribute: float = 1.0
    """The share of the question's words, other than names and words of the title; 1 if there are no others."""
    lacking: float = 0.0
    """`Sought.weight` if the result does not have what the question asks for, otherwise 0."""
    lead: float = 0.0
    """For the first result, the difference between its ranking score and that of the second; otherwise 0."""


def rate(found: Found) -> tuple[Strength, float]:
    """Return the strength of a result, and its evidence as a number from 0 to 1, comparable between questions.

    The number is at least 0.5 for strong results, and at least 0.24 for weak ones.
    """
    limits = _LIMITS
    if found.meaning is None:
        limits, evidence = _WORD_LIMITS, found.words - NAMES_WEIGHT_OF_WORDS * found.missing_names
    else:
        evidence = (
            SHARE_WEIGHT * found.words
            + NEAR_WEIGHT * found.near
            + BM25_WEIGHT * min(1.0, found.bm25)
            + MEANING_WEIGHT * found.meaning
            + LEAD_WEIGHT * found.lead
            - NAMES_WEIGHT * found.missing_names
            - SUBJECT_WEIGHT * (1 - found.attribute)
        )
    evidence -= found.lacking
    score = round(min(1.0, max(0.0, _scaled(evidence, limits))), 2)
    if found.attribute < LEAST_ATTRIBUTE or found.lacking:
        score = below_strong(score)
    strength: Strength = "none"
    if score >= WEAK_SCORE:
        strength = "strong" if score >= STRONG_SCORE else "weak"
    return strength, score


STRONG_SCORE, WEAK_SCORE = 0.5, 0.24
"""The limits of the number that `rate` returns."""


class _Limits(NamedTuple):
    """The evidence required for the lowest score, for a weak and a strong result, and for the highest score."""

    least: float
    weak: float
    strong: float
    most: float


_LIMITS = _Limits(-0.4, WEAK, STRONG, 1.6)
_WORD_LIMITS = _Limits(0.0, WEAK_WORDS, STRONG_WORDS, 1.0)


def _scaled(evidence: float, limits: _Limits) -> float:
    """Return the score for some evidence. The limits for weak and strong become WEAK_SCORE and STRONG_SCORE."""
    least, weak, strong, most = limits
    if evidence >= strong:
        return STRONG_SCORE + (1 - STRONG_SCORE) * (evidence - strong) / (most - strong)
    if evidence >= weak:
        return WEAK_SCORE + (STRONG_SCORE - WEAK_SCORE - 0.01) * (evidence - weak) / (strong - weak)
    return (WEAK_SCORE - 0.01) * (evidence - least) / (weak - least)


def below_strong(score: float) -> float:
    """Limit a score to less than the limit for strong, for a result that lacks what the question asks for."""
    return min(score, STRONG_SCORE - 0.01)


def evidence_score(words: float, meaning: float | None) -> float:
    """Return the share of words and the result of `standing_out` as one number from 0 to 1; each counts half.

    If `meaning` is None, only the share of words counts.
    """
    if meaning is None:
        return round(words, 2)
    return round(min(1.0, (words + min(1.0, 1.5 * meaning)) / 2), 2)


def standing_out(cosine: float, baseline: float, chunks: int) -> float | None:
    """Return how near a chunk is to the question, from 0 (like an unrelated chunk) to 1 (identical).

    `cosine` is the cosine of the chunk, and `baseline` is the result of `expected_baseline`. The baseline is
    a mean that includes this chunk, so the chunk's share is subtracted from it. Return None if this is the
    only chunk and the model has no measured cosine of unrelated texts.
    """
    if chunks < 2 and baseline == cosine:  # this is the only chunk, and the model has no measured value
        return None
    others = baseline if chunks < 2 else (baseline * chunks - cosine) / (chunks - 1)
    return max(0.0, (cosine - others) / (1 - others)) if others < 1 else 0.0


def expected_baseline(mean: float, chunks: int, prior: float | None) -> float:
    """Return the expected cosine of an unrelated chunk.

    This is the mean over the database, mixed with `prior` if there are few chunks. `prior` is the model's
    measured cosine of unrelated texts, or None.
    """
    if prior is None or chunks >= ENOUGH_CHUNKS:
        return mean
    share = chunks / ENOUGH_CHUNKS
    return share * mean + (1 - share) * prior


def word_weights(counts: Mapping[str, int], total: int) -> dict[str, float]:
    """Return the weight of each word of a question, by the number of chunks that contain it.

    In a small database even a rare word may be in every chunk, so the total is at least ENOUGH_CHUNKS.
    """
    total = max(total, ENOUGH_CHUNKS)
    return {
        word: max(LEAST_WEIGHT, math.log((total + 0.5) / (count + 0.5))) for word, count in counts.items()
    }


def word_share(held: Iterable[str], weight: Mapping[str, float]) -> float:
    """Return the share of a question's words that are in `held`. Each word counts by its weight."""
    every = sum(weight.values())
    return sum(weight[word] for word in set(held) if word in weight) / every if every else 0.0


# Names in a question

_WORD = re.compile(r"[^\W_]+(?:[’'-][^\W_]+)*|[.!?:;\"“”\n]")
_POSSESSIVE_END = re.compile(r"[’']s?\Z", re.IGNORECASE)
_GERMAN = frozenset(
    "der die das den dem des ein eine einen einem einer ist sind war hat und wo wer wann wie".split()
)
"""In a question with one of these words, nouns are capitalized, so that capitals do not mark names."""
_CALENDAR = frozenset(
    """january february march april may june july august september october november december monday tuesday
    wednesday thursday friday saturday sunday i i'm i've i'd""".split()
)


def names_asked(question: str, weights: Mapping[str, float]) -> dict[str, float]:
    """Return the capitalized words of a question, except the first of each sentence, with their weights.

    The first word is a name too if it is a possessive, or if another name follows. Months and weekdays are not
    names. If most words are capitalized, as in a heading, none is a name.
    """
    words = _WORD.findall(question)
    names: set[str] = set()
    letters = [word for word in words if word[0].isalpha()]
    if len(letters) > 2 and 2 * sum(word[0].isupper() for word in letters) > len(letters):
        return {}
    if not _GERMAN.isdisjoint(word.lower() for word in letters):
        return {}
    starts = True
    for word, after in zip(words, [*words[1:], ""], strict=False):
        bare = _POSSESSIVE_END.sub("", word).lower()
        is_name = word[0].isupper() and bare not in _CALENDAR
        if starts:
            is_name = is_name and (bare != word.lower() or after[:1].isupper())
        if is_name:
            names.update((bare, *re.split(r"[’'-]", bare)))
        starts = not word[0].isalnum()
    return {word: weight for word, weight in weights.items() if word.lower() in names}


def missing_names(names: Mapping[str, float], held: Iterable[str]) -> float:
    """Return the share of the names that are not in `held`, or 0 if there are none. Rare names count more."""
    return 1 - word_share(held, names) if names else 0.0


_ASKING = frozenset(
    """tell show give list find explain describe know known remember say said information info note notes detail
    details overview summary news status latest thing things something anything everything happened""".split()
)
"""Words of a question that asks for anything about a subject."""


def attribute_share(weights: Mapping[str, float], held: Iterable[str], subject: Collection[str]) -> float:
    """Return the share of a question's words besides its subject that are in `held`, or 1 if it has no others."""
    others = {
        word: weight
        for word, weight in weights.items()
        if word not in subject and word.lower() not in _ASKING
    }
    return word_share(held, others) if others else 1.0


# What a question asks for

_DAYS_AND_MONTHS = (
    "(?:jan(?:uary)?|feb(?:ruary)?|march|april|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    "|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)"
)
_NUMBER = (
    r"(?:\d[\d.,:]*|\b(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen"
    "|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand"
    r"|million|dozen|half|few|several|couple)\b)"
)
_COUNT = _NUMBER.replace("an?|", "") + r"|\b(?:once|twice|both|none|no|only)\b"
_TIME_UNIT = (
    "(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|nights?|weeks?|weekends?|months?|years?|decades?)"
)
_PARTS_OF_TIME = (
    "today|tonight|yesterday|tomorrow|(?:last|next|this|every|each|the) (?:week|month|year|morning|night|weekend"
    "|spring|summer|autumn|fall|winter)|ago|noon|midnight|christmas|easter|(?:early|late|in|since|until) (?:the )?"
    "(?:spring|summer|autumn|fall|winter|morning|afternoon|evening)|daily|weekly|monthly|yearly"
)
_CLOCK = r"\b\d{1,2}[:.h]\d\d\b|\b\d{1,2} ?(?:am|pm|a\.m|p\.m|o[’']?clock)|\b(?:noon|midnight)\b"
_CLOCK += rf"|\b(?:half past|quarter (?:past|to))\b|\b(?:at|from|by|until|till|around) {_COUNT}"
_SECRETS = "passwords?|passphrase|passcode|credentials?|login|pin|code|key|token"
_VALUE = (
    rf"\b(?:{_SECRETS})\b[^.!?\n]*?(?:\b(?:is|are|was)\b|[:=])\s*"
    r"(?:[\"'`“]\S+|\S*\d\S*|\w+[^\w\s.,;:’'–—]\S+|\w+(?=[.;\n]|\Z))"
)
_MONEY = (
    r"[$€£¥] ?\d|\d[\d.,]* ?(?:k|thousand|million|m|bn)? ?(?:[$€£¥]|(?:euros?|eur|dollars?|usd|pounds?|gbp"
    r"|francs?|chf|kroner|kronor|kr|yen|cents?|bucks|%)\b)|\bfree\b|\bfor nothing\b"
    r"|\b(?:costs?|paid|pays?|charges?|prices?|fees?|rent|salary|budget|spent|earns?)\W+(?:\w+\W+){0,2}\d"
)
_FOR_ITSELF = (
    r"\A(?!\W*(?:where|when|who|whom|whose|why|how|did|does|is|are|was|were|should|has|have|will)\b)[\s\S]*"
)
"""The beginning of a question that may ask for a password itself, not for something about it, such as its place."""
_COSTS = "price|costs?|budget|salary|wage|fee|rent|deposit|refund|payment|invoice amount|premium|insured for|paid for"
_ROLE = (
    r"\b(?:I|we|me|us|myself|mum|mom|dad|grand(?:ma|pa|mother|father|parents))\b|\b(?:my|our|his|her|their|your) \w+"
    r"|\b(?:an?|the) (?:old |former |new |close )?"
    r"(?:friend|neighbou?r|colleague|landlord|mother|father|sister|brother|aunt|uncle)\b"
)
_REASON = (
    r"\b(?:because|since|due to|reasons?|cause[sd]?|so|as|thanks to|owing to|in order|therefore|hence|after|but|for"
    r"|wants?|wanted|needs?|needed|(?:which is|that[’']s) why)\b"
    r"|\bto (?!an?\b|the\b|his\b|her\b|our\b|my\b|their\b|\w+[^su]s\b)(?-i:[a-z])"
)
_NAMED_THINGS = (
    "company|firm|employer|airline|provider|supplier|vendor|bank|brand|hotel|restaurant|shop|store|school|university"
    "|college|museum|band|team|club|author|book|film|movie|song|game|city|country|town|village|street|tablets?"
    "|medicine|drug|hospital|clinic|architect|languages?"
)
_PLACE = (
    r"\b(?:in|at|from|to|near|behind|on|under|next to|between|around|above|below|beside|inside|outside|opposite|into"
    r"|towards|by|through|off|along|across)\s+(?P<head>(?:(?:the|an?|our|my|his|her|their|its|this|that)\s+)?"
    r"(?P<name>[^\W\d_][\w’'-]*))"
    r"|\b(?:here|home|abroad|upstairs|downstairs|outside|inside|everywhere|online|next door)\b|https?:"
    r"|\d+\w? (?-i:[A-Z])\w"
)
_NO_PLACE = frozenset(
    """it him her me them us you time first last least all most addition fact case order general spring summer autumn
    fall winter morning afternoon evening night week weekend month year day days weeks months years hour minute
    moment end beginning start once home foot purpose hand average total advance stock use progress""".split()
)


class Sought(NamedTuple):
    """What a question asks for, such as a number, and how it is recognized in a text."""

    kind: str
    text: re.Pattern[str]
    """A pattern of texts that contain it. A word in the group `name` must not be in `asked`."""
    weight: float
    """This much is subtracted from the evidence of a result without it."""
    asked: frozenset[str] = frozenset()
    """The words of the question in lower case, with and without a plural or possessive s."""

    def is_in(self, text: str) -> bool:
        """Return True if a text contains what is asked for."""
        if self.kind in ("person", "name"):
            return _has_name(text, self.asked) or bool(self.kind == "person" and self.text.search(text))
        return any(self.kind != "place" or self._is_place(match) for match in self.text.finditer(text))

    def _is_place(self, match: re.Match[str]) -> bool:
        name = match["name"]
        if not name:
            return True
        is_bare = match["head"] == name and name[0].islower()
        word = _POSSESSIVE_END.sub("", name).lower()
        if (
            word in _NO_PLACE
            or word in self.asked
            or word in _CALENDAR
            or word.removesuffix("s") in _CALENDAR
        ):
            return False
        return not (is_bare and match[0].lower().startswith(("to", "by", "from", "through", "off")))


_SOUGHT: tuple[tuple[str, str, str, float], ...] = (
    (
        "mail address",
        rf"{_FOR_ITSELF}(\be?-?mail\b.*\baddress\b|[’']s e?-?mail\b|\be?-?mail (address )?of\b)",
        r"\S@\S",
        0.4,
    ),
    (
        "phone number",
        r"\A(?!.* to do\b).*(\b(phone|telephone|mobile|cell) number\b|[’']s (tele)?phone\W*\Z|\b(tele)?phone of\b"
        r"|\b(reach|call)\b.*\bby (tele)?phone\b)",
        r"(?<![\d-])(?!\d{4}-\d\d-\d\d)\+?\d([ ()/.-]{0,2}\d){5}",
        0.4,
    ),
    (
        "password",
        rf"{_FOR_ITSELF}(\b(passwords?|passphrase|passcode|credentials?|login)\b|\bpin( code)?\b"
        r"|\b(api|secret|encryption|access|private) (key|token)\b|\b(what|which) (is|was) the (\w+ )?code\b)",
        _VALUE,
        0.4,
    ),
    (
        "web address",
        rf"{_FOR_ITSELF}\b(url|web ?site|web (page|address)|home ?page)\b",
        r"https?:|www\.|\w\.\w\w",
        0.4,
    ),
    (
        "price",
        rf"\bwhat .* cost\b|\bhow (much|expensive) .*\b(costs?|charges?|pays?|paid|spend|spent|earns?)\b"
        rf"|\bhow (expensive|high) .*\b({_COSTS}|offer)\b"
        rf"|\b({_COSTS}) (of|for|do|does|did|is|are|was)\b|\bwhat (is|was|are) (the|our|my) (\w+ )?({_COSTS})\b",
        _MONEY,
        0.3,
    ),
    (
        "duration",
        r"\bhow long\b|\b(what|which) (is|was) the (\w+ )?(period|duration)\b",
        rf"{_NUMBER}[ -](?:\w+ )?(?:{_TIME_UNIT}|metres?|meters?|k?m|cm|miles?|feet|pages?)\b|\b\d+ ?(?:h|s|min|ms)\b"
        rf"|\b(?:since|until|till|forever|always|overnight|all (?:day|night|week)|from .* (?:to|until))\b|\d\d:\d\d",
        0.1,
    ),
    (
        "measure",
        r"\bhow (tall|far|heavy|wide|deep)\b",
        rf"{_NUMBER} ?-?(?:[mck]?m|met(?:re|er)s?|kilomet(?:re|er)s?|miles?|feet|foot|ft|inch(?:es)?|yards?"
        rf"|k?g|tons?|tonnes?|kilos?|pounds|lbs?|blocks?|{_TIME_UNIT})\b",
        0.1,
    ),
    (
        "number",
        # Events are counted in many texts, and most do not state their number.
        r"\bhow many\b(?!.*\b(has|have)\b.*\b(been|won|made|gone|seen|read|written|taken|had|\w+ed)\b)"
        r"|\bhow (much|old|large|big|high|fast)\b"
        r"|\b(serial|account|room|house|flight|order|invoice|port|version|policy|contract|customer|member) number\b"
        r"|\blicen[cs]e plate\b|\bwhat (age|amount|number|percentage|size)\b",
        rf"\d|{_COUNT}",
        0.1,
    ),
    ("time", r"\b(what|which) time\b", _CLOCK, 0.1),
    (
        "date",
        r"\bwhen\b|\b(what|which) (day|date|month|year)\b|\bbirthday\b",
        rf"\b\d{{4}}\b|\b\d{{1,2}}[./-]\d{{1,2}}\b|\b{_DAYS_AND_MONTHS}\b|\b(?:{_PARTS_OF_TIME})\b"
        rf"|\b(?:in|within|after|for) {_NUMBER} {_TIME_UNIT}\b|\b(?:the )?\d{{1,2}}(?:st|nd|rd|th)\b|{_CLOCK}",
        0.1,
    ),
    ("reason", r"\bwhy\b|\breasons?\b|\bwhat\b.* (caused|causes)\b|\bcause of\b", _REASON, 0.1),
    (
        "place",
        r"\bwhere\b|\b(what|which) place\b|\b(home|street) address\b|\baddress of\b",
        _PLACE,
        0.1,
    ),
    (
        "colour",
        r"\bwhat colou?rs?\b|\bcolou?r of\b",
        r"\b(?:black|white|red|green|blue|yellow|brown|gr[ae]y|orange|purple|violet|pink|silver|gold|beige|turquoise|cream)\w*",
        0.1,
    ),
    ("name", rf"\bwhat (is|was|are|were) the names?\b|\b(what|which) ({_NAMED_THINGS})\b", "", 0.1),
    ("person", r"\b(who|whom|whose)\b", _ROLE, 0.1),
)
"""Each row: what is asked for, a pattern of questions, a pattern of texts that contain it, and `Sought.weight`."""

_NO_NAME = frozenset(
    """the a an this that these those it its he she they his her their we our you your i my me and but or so if when
    while after before since for from in on at by to with of as is are was were has have had do does did not no yes
    there here then now also once all each every some many most both one two three mr mrs ms""".split()
)


_QUOTED = re.compile(r'"\w[^"]*"|“\w[^”]*”')
_ABBREVIATED = re.compile(r"\b(Mrs?|Ms|Drs?|Prof|St)\.\s*")


def _has_name(text: str, asked: Collection[str]) -> bool:
    """Return True if a text has a capitalized word that may be a name and that is not a word of the question.

    The first word of a sentence is one if a capitalized word or a verb follows. A text without capitals may
    contain names.
    """
    if text.islower() or _QUOTED.search(text):
        return True
    words = _WORD.findall(_ABBREVIATED.sub(r"\1 ", text))
    starts = True
    for word, after in zip(words, [*words[1:], ""], strict=False):
        bare = _POSSESSIVE_END.sub("", word).lower()
        is_name = (
            word[0].isupper() and not {bare, bare.removesuffix("s")} & _CALENDAR and bare not in _NO_NAME
        )
        if is_name and starts:
            is_name = (
                after[:1].isupper()
                or bool(re.fullmatch(r"\w{2,}(s|ed)|will|can", after))
                or bare != word.lower()
            )
        if is_name and bare not in asked:
            return True
        starts = not word[0].isalnum()
    return False


@cache
def _patterns() -> list[tuple[re.Pattern[str], Sought]]:
    """Return the patterns of questions. Compiling them takes 10 ms, so it is done for the first question only."""
    return [
        (re.compile(question, re.IGNORECASE), Sought(kind, re.compile(text, re.IGNORECASE), weight))
        for kind, question, text, weight in _SOUGHT
    ]


def sought(question: str) -> Sought | None:
    """Return what a question in English asks for, or None if it matches no pattern."""
    words = {_POSSESSIVE_END.sub("", word).lower() for word in _WORD.findall(question)}
    words |= {word.removesuffix("s") for word in words}
    kind = next((each for pattern, each in _patterns() if pattern.search(question)), None)
    return kind._replace(asked=frozenset(words)) if kind else None
