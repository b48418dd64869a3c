"""What a text says is over: "left Hexa in 2025", "no longer at Hexa", "stepped down as CEO of Hexa".

Knows the words; docs/truth.md says which. It reads a sentence only where one of them stands, and passes over what
was not so, was only planned, asked, rumoured or quoted, and what somebody took back. Does not know any link.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from quaid.core.leaving_words import BACK, DOUBTED, HEDGED, POST, TOLD, TRUSTED, WHOSE, WORDS
from quaid.core.names import fold
from quaid.core.sentences import Reader, Sentence, block_at, readable, sentence_at, subjects
from quaid.core.told_dates import dates_in

MOST = 500
"""Places that are looked at in one text."""

HERE = "@"
"""The object is the page itself, or the one place that the subject can have left."""

_BOARD = re.compile(
    rf"(?:{WHOSE}\s+)?(?:seat on\s+the\s+)?(?:\w+ )?board(?: of directors)?\s+(?:of|at)\s+", re.IGNORECASE
)
_BOARD_BEHIND = re.compile(r"[^.,;'’]{1,60}['’]s\s+(?:\w+\s+)?board\b", re.IGNORECASE)
_OF_POST = re.compile(
    rf"(?:{WHOSE}\s+)?(?:(?:role|post|position|job)\s+)?(?:as\s+)?(?:{WHOSE}\s+)?(?P<post>{POST})"
    r"(?:\s+(?:role|post|position|job))?(?:\s+(?:of|at|for|with)\s+|(?=\s+(?:in|on)\s|\s*[.,]|\s*\Z))",
    re.IGNORECASE,
)
_OF_JOB = re.compile(
    rf"{WHOSE}\s+(?:\w+\s+)?(?:role|post|position|job|team|staff|career|time|stint|tenure)\s+(?:at|with|of|in)\s+",
    re.IGNORECASE,
)
_OF_COMPANY = re.compile(
    r"the\s+(?:company|firm|startup|start-up|business|team|organi[sz]ation|bank|university|school|lab|agency|studio"
    r"|charity|foundation)\b",
    re.IGNORECASE,
)
_NO_OBJECT = re.compile(
    r"(?:in|on|at the end of|by|around|early|late|mid|last|this|again)\b|\d|\s*\Z|[.,;)]", re.IGNORECASE
)
_PLACE_BEFORE = re.compile(r"\b(?:joined|at|with|for|of|in|rejoined)\s+(?=[A-Z\[]|[\w-]+/[\w-])")

_CHIEFS = {
    "executive": "ceo",
    "technology": "cto",
    "technical": "cto",
    "financial": "cfo",
    "operating": "coo",
}
_CHIEFS |= {"marketing": "cmo", "product": "cpo"}

_AFTER = re.compile(r"(?:after|since|upon|on|before|following)\s+\Z", re.IGNORECASE)


class Departure(NamedTuple):
    """Something that a text says is over."""

    subject: str
    """OWN or a folded name."""
    scope: str
    """What is over: work, post, board, home, move, marriage, property, parent or study."""
    post: str
    """Which post, when only that is over."""
    object: str
    """The words of the text from the object on, or HERE."""
    first: str
    last: str
    """The first and last day on which it can have happened; "" when the text does not say."""
    is_event: bool
    line: int
    quote: str


def departures(text: str, reader: Reader, first_line: int = 1, day: str = "") -> list[Departure]:
    """What a text says is over. `day` is when it was written down, if that is known: an entry of a timeline."""
    matches = _matches(text)
    if not matches:
        return []
    text = readable(text)
    found: list[Departure] = []
    block = None
    for place, match, scope, is_event in matches:
        if text[place].isspace() and not match[0][0].isspace():
            continue  # it stands in code
        if block is None or not block.start <= place < block.end:
            block = block_at(text, place)
        around = sentence_at(text, place, first_line, block)
        if around:
            found += _read(*around, match, scope, is_event, reader, day)
    return found


def may_tell(text: str) -> bool:
    """Whether any of the words stands in a text: a look that costs little."""
    low = text.lower()
    return any(word in low for word in WORDS)


def _matches(text: str) -> list[tuple[int, "re.Match[str]", str, bool]]:
    """Where one of the words stands with what belongs to it; of several patterns the first that fits."""
    low = text.lower()
    if len(low) != len(text):  # letters whose small form is longer: places would not agree
        low = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
    found: dict[int, tuple[int, re.Match[str], str, bool]] = {}
    for word, patterns in WORDS.items():
        place = low.find(word)
        while place >= 0:
            inside = place > 0 and word[0].isalpha() and word != "n't work" and low[place - 1].isalnum()
            for wanted, scope, is_event in () if inside else patterns:
                match = wanted.match(text, place)
                if match:
                    found.setdefault(place, (place, match, scope, is_event))
                    break
            place = low.find(word, place + 1)
    return sorted(found.values(), key=lambda each: each[0])[:MOST]


def _read(
    sentence: Sentence,
    place: int,
    match: "re.Match[str]",
    scope: str,
    is_event: bool,
    reader: Reader,
    day: str,
) -> Iterator[Departure]:
    verb = re.sub(r"\s", " ", match[0])
    head, tail = sentence.text[:place], sentence.text[place + len(verb.rstrip()) :].lstrip()
    if _is_doubtful(sentence, head, tail, reader):
        return
    if scope == "until":
        yield from _lasting(sentence, place, head, tail, reader)
        return
    if scope == "renamed":
        joined = re.search(r"\b(joined)\s+[^()]{1,60}\(\Z", head)
        if not joined:
            return
        place, scope = joined.start(), "work"
    if _is_gerund(verb) and not _AFTER.search(head):
        return
    start = place - len(_after_word(head)) if _is_gerund(verb) else place
    if verb.lower().startswith("last day"):
        sentence, start = _with_owner(sentence, place)
    scope, post, obj = _object(scope, head, tail)
    first, last = _when(head, tail, day if is_event or day else "")
    if verb.lower().startswith(("leaves", "departs", "resigns")) and not first:
        return
    for subject in _who(sentence, start, reader, _is_gerund(verb)):
        yield Departure(subject, scope, post, obj, first, last, is_event, sentence.line, sentence.text)


def _with_owner(sentence: Sentence, place: int) -> tuple[Sentence, int]:
    """The sentence with a subject in place of an owner: whose last day it was, left."""
    head = re.sub(r"\b(?:his|her|their)\s*\Z", "she ", sentence.text[:place], flags=re.I)
    head = re.sub(r"['’]s\s*\Z", " ", head)
    return sentence._replace(text=head + sentence.text[place:]), len(head)


def _is_gerund(verb: str) -> bool:
    return verb.split()[0].lower().endswith("ing")


def _after_word(head: str) -> str:
    found = _AFTER.search(head)
    return found[0] if found else ""


def _who(sentence: Sentence, place: int, reader: Reader, gerund: bool) -> list[str]:
    """The subject; that of "After leaving X, Bea joined" comes after the comma."""
    if gerund and not sentence.text[:place].strip():
        comma = sentence.text.find(",", place)
        rest = sentence.text[comma + 1 :].strip() if comma >= 0 else ""
        following = re.match(r"(.*?)\s(?=[a-z]+(?:ed|s|ew|an|ok|nt|lt|de|ld)\b)", rest) if rest else None
        if following:
            return subjects(Sentence(following[1] + " ", 1, sentence.before), len(following[1]) + 1, reader)
    return subjects(sentence, place, reader)


def _is_doubtful(sentence: Sentence, head: str, tail: str, reader: Reader) -> bool:
    clause = re.split(r"\bbut\b|;", head)[-1]
    negated = re.sub(r"\bnot only\b", "", clause)
    if sentence.text.rstrip(" )\"'”").endswith("?") or HEDGED.search(negated) or DOUBTED.search(tail):
        return True
    if BACK.search(tail) and not re.search(r"\b(?:not|never)\b", tail):
        return True
    told = list(TOLD.finditer(head))
    if told:
        speaker = subjects(sentence, told[-1].start(), reader)
        return not (TRUSTED.match(told[-1][0]) and speaker == [""] and reader.is_person)
    return False


def _object(scope: str, head: str, tail: str) -> tuple[str, str, str]:
    """What is over in the end, which post, and the words that name the other side."""
    if scope == "noun":
        return "work", "", tail
    if scope == "work":
        board, of_post = _BOARD.match(tail), _OF_POST.match(tail)
        if board:
            return "board", "", tail[board.end() :]
        if of_post:
            rest = tail[of_post.end() :]
            post = post_of(of_post["post"])
            return ("board" if post == "board" else "post"), post, rest if _names_something(rest) else HERE
        if _BOARD_BEHIND.match(tail):
            return "board", "", tail
        job = _OF_JOB.match(tail)
        tail = tail[job.end() :] if job else tail
    if _OF_COMPANY.match(tail):
        return scope, "", HERE
    if _NO_OBJECT.match(tail) and scope != "parent":
        places = list(_PLACE_BEFORE.finditer(head))
        return scope, "", head[places[-1].end() :] if places else HERE
    return scope, "", tail


def _names_something(rest: str) -> bool:
    return bool(rest) and not _NO_OBJECT.match(rest.lstrip())


def _lasting(sentence: Sentence, place: int, head: str, tail: str, reader: Reader) -> Iterator[Departure]:
    """ "was at Tarn until March 2025", "Tarn (2019–2025)": the object stands before, the date behind."""
    told = dates_in(tail[:40])
    if not told or (
        told[0].start > 1
        and not re.match(r"(?:the )?(?:end|start|beginning|middle) of |about |around ", tail)
    ):
        return
    before = list(_PLACE_BEFORE.finditer(head))
    if head.strip() and not before:
        return
    obj = head[before[-1].end() :] if before else ""
    if not before:  # "Until March 2025 she was at Tarn"
        behind = _PLACE_BEFORE.search(tail)
        if not behind:
            return
        obj = tail[behind.end() :]
    said = sentence.text[: place if before else len(sentence.text)]
    scope = "home" if re.search(r"\b(?:liv\w+|resid\w+)\s+in\b", said, re.I) else "work"
    post = ""
    named = re.search(
        rf"\b(?P<post>{POST})\s+(?:of|at)\s+\Z", head[: before[-1].end()] if before else "", re.I
    )
    if named and post_of(named["post"]) == "ceo":
        scope, post = "post", "ceo"
    verb = re.search(
        r"\b(?:was|were|worked|been|served|led|ran|lived|studied|had|stayed|is|works?)\b", said, re.I
    )
    where = verb.start() if verb else 0
    who = subjects(sentence, where, reader) if verb and where else [""] if reader.is_person else []
    for subject in who:
        yield Departure(
            subject, scope, post, obj, told[0].first, told[0].last, True, sentence.line, sentence.text
        )


def _when(head: str, tail: str, day: str) -> tuple[str, str]:
    """The day that a sentence gives: the first date behind the verb, else the last one before it."""
    told = dates_in(tail) or dates_in(head)[-1:]
    return (told[0].first, told[0].last) if told else (day, day)


def post_of(words: str) -> str:
    """The post that words name, as predicates do: ceo, head, board."""
    folded = fold(words).split(" and ")[0]
    for short in ("acting ", "interim ", "deputy ", "co "):
        folded = folded.removeprefix(short)
    parts = folded.split()
    if parts[0] == "chief":
        return _CHIEFS.get(parts[1], parts[1])
    if parts[0].startswith("chair"):
        return "chair"
    return {"vice": "vp", "managing": "ceo"}.get(parts[0], parts[0])


def comebacks(text: str) -> list[str]:
    """The sentences that say that somebody came back, or still is somewhere."""
    found = []
    for match in BACK.finditer(text) if re.search(r"\b(?:re-?|back|return|still)", text, re.I) else ():
        around = sentence_at(text, match.start())
        if around and not re.search(r"\b(?:not|never|n't)\b", around[0].text):
            found.append(around[0].text)
    return found
