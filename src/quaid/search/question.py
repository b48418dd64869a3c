"""Parse a question: find the names and the order in time in it, and the kind of answer that it asks for.

Also correct its spelling.
"""

import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from quaid.embedding.registry import built_in_folder
from quaid.model import slug as slugs
from quaid.model.dates import LONGEST_DATED_TEXT, day_number, find_periods
from quaid.search.text import STOP_WORDS, plan_query
from quaid.storage import chunks, pages
from quaid.storage.conversations import Conversations
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import CHUNKS, SPACED, TURNS, Stemmer, TextIndex

MOST_NAME_WORDS = 48
LONGEST_NAME_WORDS = 5
"""The first MOST_NAME_WORDS words of a question are searched for names of up to LONGEST_NAME_WORDS words."""

MOST_EXACT = 5

_REFERENCE = re.compile(r"\[\[([^\[\]|#\n]{1,255})(?:[|#][^\[\]\n]*)?\]\]")
_NAME_WORD = re.compile(r"[^\W_]+(?:[_'’-][^\W_]+)*")


class Entities(NamedTuple):
    """The pages and wings (top-level categories of pages) that a question names."""

    exact: dict[int, str]
    """Pages whose name is the whole question, with the kind of name, and pages linked in it, with the link."""
    mentioned: dict[int, str]
    """Pages whose name occurs in the question, with that name."""
    wings: tuple[str, ...]
    """Wings whose name occurs in the question."""


def find_entities(db: Database, question: str) -> Entities:
    """Return the pages and wings that a question names, the most reliable matches first."""
    whole = slugs.fold_name(question)
    references = {slugs.fold_name(name) for name in _REFERENCE.findall(question[:10_000])}
    keys = references | ({whole} if len(question) <= slugs.LONGEST_NAME else set())
    parts = name_spans(question)
    named_pages = pages.pages_called(db, sorted((keys | parts.keys()) - {""}))
    exact: dict[int, str] = {}
    mentioned: dict[int, str] = {}
    for page in named_pages:
        if page.name in keys:
            exact.setdefault(page.page_id, f"[[{page.name}]]" if page.name in references else page.kind)
        elif page.name in parts:
            mentioned.setdefault(page.page_id, parts[page.name])
    wings = pages.wings_called(db, sorted(name.replace(" ", "-") for name in parts if name))
    return Entities(dict(list(exact.items())[:MOST_EXACT]), mentioned, tuple(wings))


@lru_cache(8)  # cached, because several steps of one search call it
def name_spans(question: str) -> Mapping[str, str]:
    """Return all word sequences that could be a name, normalized, with their original text."""
    words = [match.span() for match in _NAME_WORD.finditer(question)][:MOST_NAME_WORDS]
    spans: dict[str, str] = {}
    for first, (start, _) in enumerate(words):
        for _, end in words[first : first + LONGEST_NAME_WORDS]:
            text = question[start:end]
            if _may_be_name(text):
                spans.setdefault(slugs.fold_name(_TRAILING_POSSESSIVE.sub("", text)), text)
    return spans


_TRAILING_POSSESSIVE = re.compile(r"['’]s\Z", re.IGNORECASE)


def _may_be_name(text: str) -> bool:
    """Return True if text may be a name: neither its first nor its last word is a stop word."""
    first, last = text.split()[0].lower(), text.split()[-1].lower()
    return first not in STOP_WORDS and last not in STOP_WORDS and len(text) > 1


VAGUE_WORDS = frozenset(
    """happen happened happening happens occur occurred event events news new thing things anything something
    everything went go going gone changed change changes took take place tell show list""".split()
)
"""Words that add nothing to a question about a time, such as "what happened last week"."""

_SUBJECT_WORDS = r"(?: [\w'’-]+){1,5}"
_LATEST = re.compile(
    r"\b(?:latest|newest|most recent(?:ly)?|(?:the )?last time(?: that)?|up to date)\b"
    rf"|\b(?:when|how long ago|where) (?:did|was|were|have|has|had){_SUBJECT_WORDS} (?P<word>last)"
    r"(?! (?:week|month|year|night|time|spring|summer|autumn|fall|winter|\w+day)\b)\b",
    re.IGNORECASE,
)
_FIRST = re.compile(
    r"\b(?:earliest|initially|in the beginning(?! of)|(?:the |for the |my )?(?:very )?first (?:time|thing)(?: that)?"
    rf"|(?:did|have|has|was|were){_SUBJECT_WORDS} (?P<word>first)"
    r"(?! (?:place|name|aid|class|floor|half|two))"
    r"|(?P<verb>first) (?:mention|talk|say|tell|told|ask|bring|brought|come|came|start|beg[ai]n|hear)\w*)\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"\b(?:in (?:what|which) (?:order|sequence)|(?:in )?the (?:order|sequence) (?:in which|of)"
    r"|(?:in )?chronological(?:ly)?(?: order)?|(?:what|which)(?: of \w+)? (?:came|happened|was) (?:first|earlier))\b",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"\b(?:mention(?:s|ed)?|sa(?:y|ys|id)|tell|told|talk(?:ed)?|sp(?:eak|oke)|hear|heard|br(?:ing|ought) up"
    r"|c[oa]me up|discuss(?:ed)?|news|things?|happen(?:ed)?|events?|list|order)\b",
    re.IGNORECASE,
)
_BETWEEN_THINGS = re.compile(r"[,;:]|\b(?:and|or|then|before|after)\b", re.IGNORECASE)

LONGEST_SHORT_PERIOD = 31
"""If the question names a period of at most this many days, results are not sorted by date."""


class TimeOrder(NamedTuple):
    """The order in time that a question asks for."""

    kind: str
    """"first", "latest", or "order" if the question asks in which order things happened."""
    subject: str
    """The question without the words that ask for the order. Candidates are found by these words."""
    things: tuple[str, ...] = ()
    """The things that the question asks to order."""

    def extreme(self, days: Iterable[str]) -> str:
        """Return the first or the latest of these days."""
        return (max if self.kind == "latest" else min)(days)


@lru_cache(8)  # cached, because several steps of one search call it
def find_time_order(question: str) -> TimeOrder | None:
    """Return the order in time that a question asks for, or None."""
    text = question[:LONGEST_DATED_TEXT]
    patterns = (("order", _ORDER), ("latest", _LATEST), ("first", _FIRST))
    kind, match = next(
        ((kind, match) for kind, pattern in patterns if (match := pattern.search(text))), ("", None)
    )
    if match is None:
        return None
    named = next((name for name, value in match.groupdict().items() if value), 0)
    start, end = match.span(named)
    subject = _TELLING.sub(" ", f"{question[:start]} {question[end:]}")
    if all(word.text.lower() in STOP_WORDS | VAGUE_WORDS for word in plan_query(subject).words):
        subject = question
    things = [part.strip() for part in _BETWEEN_THINGS.split(subject)] if kind == "order" else []
    return TimeOrder(kind, subject, tuple(thing for thing in things if _names_something(thing)))


def names_short_period(question: str, now: str) -> bool:
    """Return True if a question names a period of at most a month."""
    return any(
        day_number(period.last) - day_number(period.first) <= LONGEST_SHORT_PERIOD
        for period in find_periods(question, now)
    )


def _names_something(text: str) -> bool:
    return any(word.text.lower() not in STOP_WORDS for word in plan_query(text).words)


# Names in a question

_WORD = re.compile(r"[^\W_]+(?:[’'-][^\W_]+)*|[.!?:;\"“”\n]")
_POSSESSIVE_END = re.compile(r"[’']s?\Z", re.IGNORECASE)
_GERMAN = frozenset(
    "der die das den dem des ein eine einen einem einer ist sind war hat und wo wer wann wie".split()
)
"""Words of German questions. German capitalizes all nouns, so capitals do not indicate names."""
_CALENDAR = frozenset(
    """january february march april may june july august september october november december monday tuesday
    wednesday thursday friday saturday sunday i i'm i've i'd""".split()
)


def names_asked(question: str, weights: Mapping[str, float]) -> dict[str, float]:
    """Return the capitalized words of a question, except the first of each sentence, with their weights.

    The first word is a name too if it is a possessive, or if another name follows. Months and weekdays are not
    names. If the question is German, or most words are capitalized, as in a heading, none is a name.
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


# The kind of answer that a question asks for

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
"""The beginning of a question that asks for a password itself, not for something about it, such as its place."""
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
    """The kind of answer that a question asks for, such as a number, and how to recognize it in a text."""

    kind: str
    text: re.Pattern[str]
    """A pattern of texts that contain an answer. A word in the group `name` must not be in `asked`."""
    weight: float
    """The amount subtracted from the evidence of a result without such an answer."""
    asked: frozenset[str] = frozenset()
    """The words of the question in lower case, with and without a plural or possessive s."""

    def is_in(self, text: str) -> bool:
        """Return True if a text contains an answer of this kind."""
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
        # Not for questions how often an event happened: many texts mention an event, and most do not state a number.
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
"""Each row: the kind of answer, a pattern of questions, a pattern of texts, and `Sought.weight`."""

_NO_NAME = frozenset(
    """the a an this that these those it its he she they his her their we our you your i my me and but or so if when
    while after before since for from in on at by to with of as is are was were has have had do does did not no yes
    there here then now also once all each every some many most both one two three mr mrs ms""".split()
)

_QUOTED = re.compile(r'"\w[^"]*"|“\w[^“”]*”')
_ABBREVIATED = re.compile(r"\b(Mrs?|Ms|Drs?|Prof|St)\.\s*")


def _has_name(text: str, asked: Collection[str]) -> bool:
    """Return True if a text has a capitalized word that may be a name and that is not a word of the question.

    The first word of a sentence may be a name if a capitalized word or a verb follows. The result is also True for
    a text without capitals and for one with a quotation, because they may contain names.
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
    """Return the compiled patterns. Compiling takes 10 ms, so it is done once, at the first question."""
    return [
        (re.compile(question, re.IGNORECASE), Sought(kind, re.compile(text, re.IGNORECASE), weight))
        for kind, question, text, weight in _SOUGHT
    ]


def sought(question: str) -> Sought | None:
    """Return the kind of answer that an English question asks for, or None if it matches no pattern."""
    words = {_POSSESSIVE_END.sub("", word).lower() for word in _WORD.findall(question)}
    words |= {word.removesuffix("s") for word in words}
    kind = next((each for pattern, each in _patterns() if pattern.search(question)), None)
    return kind._replace(asked=frozenset(words)) if kind else None


SHORTEST_CORRECTED = 5
"""Shorter words are not corrected, because too many words differ from them by one letter."""

SHORTEST_STEM = 3
"""Minimum letters of a word without its ending."""

LONG_WORD = 8
"""In words of at least this length two letters may be wrong; in shorter words, one."""

LONG_NAME = 6
"""Minimum length of a capitalized word to correct, by one letter only, because it may be a name."""

MOST_CHECKED = 32
MOST_CORRECTED = 3
"""At most MOST_CHECKED words of a question are looked up, and at most MOST_CORRECTED of them are corrected."""

MANY_ROWS = 20_000
"""A correction starts with the same letter as the word, or with the same two in an index with more rows than this.
"""

_LETTERS = re.compile(r"[^\W\d_]+")
_LITERAL = re.compile(r'"[^"]*"|“[^“”]*”|\[\[[^\[\]]*\]\]|`[^`]*`|(?<![^\s"”\]`])[^\s@/\\]{0,200}+[@/\\]\S*')
"""Matches a quotation, link, code, address or path. The last two begin after a space or one of the first three."""
_ENDINGS = (
    *("s", "es", "ed", "ing", "ings", "ly", "er", "ers", "or", "ors", "est", "able", "ness"),
    *("ment", "ments", "ist", "ists", "ism", "ize", "ized", "izes", "izing", "less", "ful", "fully"),
)
"""A word with one of these endings counts as English if the word without it is English."""


def correct_spelling(db: Database, question: str) -> tuple[str, tuple[str, ...]]:
    """Return a question with misspelled words replaced, and a note for each of them."""
    notes: list[str] = []
    for word in _unknown_words(db, question):
        if len(notes) == MOST_CORRECTED:
            break
        if instead := _nearest_word(db, word):
            instead = instead.capitalize() if word[:1].isupper() else instead
            notes.append(f'searched for "{instead}" instead of "{word}"')
            question = re.sub(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", instead, question)
    return question, tuple(notes)


def _unknown_words(db: Database, question: str) -> list[str]:
    """Return the words that are in neither the memory nor the English vocabulary.

    Short words, words with letters outside ASCII and stop words are skipped. Without the vocabulary, return nothing.
    """
    text = _LITERAL.sub(" ", question)
    words = [word for word in dict.fromkeys(_LETTERS.findall(text)) if len(word) >= SHORTEST_CORRECTED][
        :MOST_CHECKED
    ]
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
    """Return English words, one per line, or "" if the package of the built-in model is missing or unreadable."""
    folder = built_in_folder()
    if not folder:
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
            stems += [stem, f"{stem}e"] if ending[0] in "aeiou" else [stem]  # "scheduled" becomes "schedule"
    stems += [f"{stem[:-1]}y" for stem in stems if stem.endswith("i")]
    stems += [stem[:-1] for stem in stems if stem[-1] == stem[-2:-1]]  # "planner" becomes "plan"
    return any(f"\n{stem}\n" in english for stem in (word, *stems))


def _nearest_word(db: Database, word: str) -> str:
    """Return the most similar word in the memory, preferring frequent words, or "" if none is similar enough."""
    stemmer = Stemmer(db)
    stem = _stem(stemmer, word)
    most = 2 if len(stem) >= LONG_WORD else 1
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
    for of_turn, _ in Conversations(db).turns([turn] if turn else []).values():
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
