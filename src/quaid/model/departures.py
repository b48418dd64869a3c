"""Find sentences saying that a relation ended ("left Hexa in 2025", "no longer at Hexa"), and their subjects.

docs/truth.md lists the phrases. Negated, planned, rumoured and quoted statements are skipped.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from quaid.model.dates import find_dates
from quaid.model.english import (
    Sentence,
    blank_out_code,
    block_at,
    english_rules,
    pairs,
    pattern,
    sentence_at,
    strip_emphasis,
    word_list,
)
from quaid.model.slug import fold_name

OWNER = ""
"""The subject of a departure if it is the entity that the page is about."""

IMPLIED_OBJECT = "@"
"""The object of a departure if it is the page itself, or the only place that the subject can have left."""

LONGEST_LAST_NAME = 300
"""The name that "who" refers to is searched for in this many characters before "who"."""

MOST_MATCHES = 500
"""At most this many matches are examined in one text."""


class PageOwner(NamedTuple):
    """The entity that a page is about."""

    names: frozenset[str]
    """All normalized names of the entity, including the first and last name of a person."""
    is_person: bool


class Departure(NamedTuple):
    """A statement that a relation ended."""

    subject: str
    """OWNER or a normalized name."""
    scope: str
    """The kind of relation that ended: work, post, board, home, move, marriage, property, parent or study."""
    post: str
    """The post, such as ceo, if only the post ended; else ""."""
    object: str
    """The part of the sentence that starts with the place or thing that was left, or IMPLIED_OBJECT."""
    first: str
    last: str
    """First and last day on which the relation can have ended. Both are "" if the text gives no date."""
    is_event: bool
    line: int
    quote: str


@cache
def departure_phrases() -> dict[str, list[tuple["re.Pattern[str]", str, bool]]]:
    """Return tuples (pattern, scope, is_event) of departure phrases, by the first word of the phrase.

    `is_event` is False for a state such as "no longer at". The first pattern that matches is used.
    """
    rules, phrases = english_rules(), dict[str, list[tuple[re.Pattern[str], str, bool]]]()
    for kind, is_event in (("events", True), ("states", False)):
        for word, source, scope in rules.data["departures"][kind]:
            compiled = re.compile(rules.expand(source), re.IGNORECASE)
            phrases.setdefault(word, []).append((compiled, scope, is_event))
    return phrases


def candidate_names(text: str) -> set[str]:
    """Return normalized candidates for names: runs of one to five capitalized words, and slugs in links."""
    candidates = set()
    for line in text.split("\n"):
        for match in pattern("name").finditer(strip_emphasis(line)):
            words = match[0].split()[:20]
            for first in range(len(words)):
                candidates |= {
                    fold_name(" ".join(words[first:last]))
                    for last in range(first + 1, min(first + 5, len(words)) + 1)
                }
    return candidates


def verb_subjects(sentence: Sentence, place: int, reader: PageOwner) -> list[str]:
    """Return the subjects of the verb at this offset, each as OWNER or a normalized name (see fold_name).

    The list is empty if the subject is unclear.
    """
    head = _without_filler_end(_without_times(sentence.text[:place]).rstrip(" ,")).strip()
    pair = pattern("two_names").fullmatch(head)
    if pair:
        return [_subject_key(name, reader) for name in (pair[1], pair[2])]
    cuts = list(pattern("boundary").finditer(sentence.text, 0, place))
    last = cuts[-1] if cuts else None
    clause = sentence.text[last.end() if last else 0 : place].strip()
    clause = _without_filler_end(_without_times(clause)).strip(" ,")
    if clause:
        return _clause_subjects(clause, sentence, place, reader)
    if last and last[0].lower() == "who":
        return _antecedent(sentence.text[: last.start()].rstrip(" ,"), reader)
    return _leading_subjects(sentence, reader) if head else [OWNER]


def _clause_subjects(clause: str, sentence: Sentence, place: int, reader: PageOwner) -> list[str]:
    if pattern("pronoun").match(clause):
        behind = fold_name(sentence.text[place:])
        heard = _proper_names(sentence.text[: place - len(clause) - 1])
        if any(
            not _is_owner(candidate, reader) and fold_name(candidate) not in behind for candidate in heard
        ):
            return []
        return _pronoun_subjects(sentence, reader)
    name = pattern("name").match(clause)
    if not name or name[0].endswith(("'s", "’s", "s'")):
        return [OWNER] if pattern("role").match(clause) and not name else []
    if name.end() == len(clause):
        return [_subject_key(name[0], reader)]
    rest = clause[name.end() :]
    return [OWNER] if _is_owner(name[0], reader) and pattern("qualified").match(rest) else []


def _pronoun_subjects(sentence: Sentence, reader: PageOwner) -> list[str]:
    """Return what a pronoun refers to, which is the subject of a preceding sentence.

    If the sentence just before mentions another person, the reference is unclear and the result is empty.
    """
    for number, earlier in enumerate(reversed(sentence.before)):
        met = [match[1] for match in pattern("other_person").finditer(earlier)]
        if number == 0 and any(not _is_owner(name, reader) for name in met):
            return []
        lead = _lead_name(earlier)
        if lead and not pattern("pronoun").fullmatch(lead):
            return [_subject_key(lead, reader)]
    return [OWNER] if reader.is_person else []


def _antecedent(head: str, reader: PageOwner) -> list[str]:
    name = pattern("last_name").search(head, max(0, len(head) - LONGEST_LAST_NAME))
    return [_subject_key(name[1], reader)] if name else []


def _leading_subjects(sentence: Sentence, reader: PageOwner) -> list[str]:
    """Return the subject of a sentence, for a later verb that has no subject."""
    lead = _lead_name(sentence.text)
    if lead is None:
        return []
    if pattern("pronoun").fullmatch(lead):
        return _clause_subjects(lead, Sentence(lead, 1, sentence.before), len(lead), reader)
    return [_subject_key(lead, reader)] if lead else [OWNER]


def _lead_name(text: str) -> str | None:
    """Return the name or pronoun at the start of a sentence.

    Return "" if the subject is omitted, and None if the sentence starts with anything else.
    """
    text = _without_times(text.strip())
    first = text.split(" ", 1)[0].strip(",")
    if pattern("pronoun").fullmatch(first):
        return first
    name = pattern("name").match(text)
    if name and not pattern("role").match(text) and not pattern("after_role").match(text, name.end()):
        return (
            None if name[0].endswith(("'s", "’s")) or name[0].lower() in word_list("not_names") else name[0]
        )
    return "" if name or pattern("role").match(text) else None


def _proper_names(text: str) -> list[str]:
    """Return the names in the text, without words that are capitalized only because they start a sentence."""
    proper_names = []
    for match in pattern("name").finditer(text):
        words = [word for word in match[0].split() if word.lower() not in word_list("not_in_names")]
        if words and not pattern("role").match(words[0]):
            proper_names.append(" ".join(words))
    return proper_names


def _subject_key(name: str, reader: PageOwner) -> str:
    return OWNER if _is_owner(name, reader) else fold_name(name) or "?"


def _is_owner(name: str, reader: PageOwner) -> bool:
    return fold_name(name) in reader.names


def _without_times(text: str) -> str:
    while True:
        shorter = pattern("leading_time").sub("", text, count=1)
        if shorter == text:
            return text
        text = shorter.lstrip(" ,")


def _without_filler_end(text: str) -> str:
    """Remove auxiliary verbs and adverbs from the end: "Bo has since" becomes "Bo"."""
    while (words := text.rsplit(None, 1)) and words[-1].lower() in word_list("fillers"):
        text = words[0] if len(words) == 2 else ""
    return text


def find_departures(text: str, reader: PageOwner, first_line: int = 1, day: str = "") -> list[Departure]:
    """Return the departures in the text.

    `reader` describes the page that contains the text, and `first_line` is the line number of the text in the
    page. `day` is the date of the text, such as the date of a timeline entry, or "".
    """
    matches = _phrase_matches(text)
    if not matches:
        return []
    text = blank_out_code(text)
    departures: list[Departure] = []
    block = None
    for place, match, scope, is_event in matches:
        if text[place].isspace() and not match[0][0].isspace():
            continue  # the phrase is in code
        if block is None or not block.start <= place < block.end:
            block = block_at(text, place)
        around = sentence_at(text, place, first_line, block)
        if around:
            departures += _read_match(*around, match, scope, is_event, reader, day)
    return departures


def may_mention_departure(text: str) -> bool:
    """Return True if the text has a word of departure_phrases(). This is a cheap test before find_departures()."""
    low = text.lower()
    return any(word in low for word in departure_phrases())


def _phrase_matches(text: str) -> list[tuple[int, "re.Match[str]", str, bool]]:
    """Return the matches of departure_phrases() in text order.

    Of several matches at an offset, only the first is returned.
    """
    low = text.lower()
    if len(low) != len(text):  # lower() can make a letter longer, which would shift the offsets
        low = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
    matches: dict[int, tuple[int, re.Match[str], str, bool]] = {}
    for word, patterns in departure_phrases().items():
        place = low.find(word)
        while place >= 0:
            inside = place > 0 and word[0].isalpha() and word != "n't work" and low[place - 1].isalnum()
            for regex, scope, is_event in () if inside else patterns:
                match = regex.match(text, place)
                if match:
                    matches.setdefault(place, (place, match, scope, is_event))
                    break
            place = low.find(word, place + 1)
    return sorted(matches.values(), key=lambda entry: entry[0])[:MOST_MATCHES]


def _read_match(
    sentence: Sentence,
    place: int,
    match: "re.Match[str]",
    scope: str,
    is_event: bool,
    reader: PageOwner,
    day: str,
) -> Iterator[Departure]:
    verb = re.sub(r"\s", " ", match[0])
    head, tail = sentence.text[:place], sentence.text[place + len(verb.rstrip()) :].lstrip()
    if _is_doubtful(sentence, head, tail, reader):
        return
    if scope == "until":
        yield from _until_departures(sentence, place, head, tail, reader)
        return
    if scope == "renamed":
        joined = re.search(r"\b(joined)\s+[^()]{1,60}\(\Z", head)
        if not joined:
            return
        place, scope = joined.start(), "work"
    if _is_gerund(verb) and not pattern("preposition").search(head):
        return
    start = place - len(_after_word(head)) if _is_gerund(verb) else place
    if verb.lower().startswith("last day"):
        sentence, start = _with_owner(sentence, place)
    scope, post, obj = _departure_object(scope, head, tail)
    first, last = _departure_dates(head, tail, day if is_event or day else "")
    if verb.lower().startswith(("leaves", "departs", "resigns")) and not first:
        return
    for subject in _departing_subjects(sentence, start, reader, _is_gerund(verb)):
        yield Departure(subject, scope, post, obj, first, last, is_event, sentence.line, sentence.text)


def _with_owner(sentence: Sentence, place: int) -> tuple[Sentence, int]:
    """Replace a possessive, so that the subject can be found: "her last day" becomes "she last day"."""
    head = re.sub(r"\b(?:his|her|their)\s*\Z", "she ", sentence.text[:place], flags=re.I)
    head = re.sub(r"['’]s\s*\Z", " ", head)
    return sentence._replace(text=head + sentence.text[place:]), len(head)


def _is_gerund(verb: str) -> bool:
    return verb.split()[0].lower().endswith("ing")


def _after_word(head: str) -> str:
    preposition = pattern("preposition").search(head)
    return preposition[0] if preposition else ""


def _departing_subjects(sentence: Sentence, place: int, reader: PageOwner, gerund: bool) -> list[str]:
    """Return the subjects of a departure. In "After leaving X, Bea joined" the subject follows the comma."""
    if gerund and not sentence.text[:place].strip():
        comma = sentence.text.find(",", place)
        rest = sentence.text[comma + 1 :].strip() if comma >= 0 else ""
        following = re.match(r"(.*?)\s(?=[a-z]+(?:ed|s|ew|an|ok|nt|lt|de|ld)\b)", rest) if rest else None
        if following:
            return verb_subjects(
                Sentence(following[1] + " ", 1, sentence.before), len(following[1]) + 1, reader
            )
    return verb_subjects(sentence, place, reader)


def _is_doubtful(sentence: Sentence, head: str, tail: str, reader: PageOwner) -> bool:
    clause = re.split(r"\bbut\b|;", head)[-1]
    negated = re.sub(r"\bnot only\b", "", clause)
    if (
        sentence.text.rstrip(" )\"'”").endswith("?")
        or pattern("hedged").search(negated)
        or pattern("doubted").search(tail)
    ):
        return True
    if pattern("returned").search(tail) and not re.search(r"\b(?:not|never)\b", tail):
        return True
    reports = list(pattern("reported").finditer(head))
    if reports:
        speaker = verb_subjects(sentence, reports[-1].start(), reader)
        return not (pattern("trusted_report").match(reports[-1][0]) and speaker == [""] and reader.is_person)
    return False


def _departure_object(scope: str, head: str, tail: str) -> tuple[str, str, str]:
    """Return scope, post and object of a departure (see Departure)."""
    if scope == "noun":
        return "work", "", tail
    if scope == "work":
        board, of_post = pattern("board").match(tail), pattern("of_post").match(tail)
        if board:
            return "board", "", tail[board.end() :]
        if of_post:
            rest = tail[of_post.end() :]
            post = normalize_post(of_post["post"])
            return (
                ("board" if post == "board" else "post"),
                post,
                rest if _names_something(rest) else IMPLIED_OBJECT,
            )
        if pattern("board_behind").match(tail):
            return "board", "", tail
        job = pattern("of_job").match(tail)
        tail = tail[job.end() :] if job else tail
    if pattern("of_company").match(tail):
        return scope, "", IMPLIED_OBJECT
    if pattern("no_object").match(tail) and scope != "parent":
        places = list(pattern("place_before").finditer(head))
        return scope, "", head[places[-1].end() :] if places else IMPLIED_OBJECT
    return scope, "", tail


def _names_something(rest: str) -> bool:
    return bool(rest) and not pattern("no_object").match(rest.lstrip())


def _until_departures(
    sentence: Sentence, place: int, head: str, tail: str, reader: PageOwner
) -> Iterator[Departure]:
    """Yield departures from end dates, as in "was at Tarn until March 2025" or "Tarn (2019–2025)".

    The place that was left usually precedes the date.
    """
    dates = find_dates(tail[:40])
    if not dates or (
        dates[0].start > 1
        and not re.match(r"(?:the )?(?:end|start|beginning|middle) of |about |around ", tail)
    ):
        return
    before = list(pattern("place_before").finditer(head))
    if head.strip() and not before:
        return
    obj = head[before[-1].end() :] if before else ""
    if not before:  # as in "Until March 2025 she was at Tarn"
        behind = pattern("place_before").search(tail)
        if not behind:
            return
        obj = tail[behind.end() :]
    preceding = sentence.text[: place if before else len(sentence.text)]
    scope = "home" if re.search(r"\b(?:liv\w+|resid\w+)\s+in\b", preceding, re.I) else "work"
    post = ""
    named = pattern("post_at_end").search(head[: before[-1].end()] if before else "")
    if named and normalize_post(named["post"]) == "ceo":
        scope, post = "post", "ceo"
    verb = re.search(
        r"\b(?:was|were|worked|been|served|led|ran|lived|studied|had|stayed|is|works?)\b", preceding, re.I
    )
    where = verb.start() if verb else 0
    who = verb_subjects(sentence, where, reader) if verb and where else [""] if reader.is_person else []
    for subject in who:
        yield Departure(
            subject, scope, post, obj, dates[0].first, dates[0].last, True, sentence.line, sentence.text
        )


def _departure_dates(head: str, tail: str, day: str) -> tuple[str, str]:
    """Return the first and last day on which a departure can have happened.

    The first date after the verb is used, else the last date before it, else `day`.
    """
    dates = find_dates(tail) or find_dates(head)[-1:]
    return (dates[0].first, dates[0].last) if dates else (day, day)


def normalize_post(words: str) -> str:
    """Return the post that the words name, in the form that predicates use: ceo, head, board."""
    folded = fold_name(words).split(" and ")[0]
    for short in ("acting ", "interim ", "deputy ", "co "):
        folded = folded.removeprefix(short)
    parts = folded.split()
    if parts[0] == "chief":
        return pairs("chiefs").get(parts[1], parts[1])
    if parts[0].startswith("chair"):
        return "chair"
    return {"vice": "vp", "managing": "ceo"}.get(parts[0], parts[0])


def comebacks(text: str) -> list[str]:
    """Return the sentences that say that a person returned to a place or is still there."""
    sentences = []
    for match in (
        pattern("returned").finditer(text) if re.search(r"\b(?:re-?|back|return|still)", text, re.I) else ()
    ):
        around = sentence_at(text, match.start())
        if around and not re.search(r"\b(?:not|never|n't)\b", around[0].text):
            sentences.append(around[0].text)
    return sentences
