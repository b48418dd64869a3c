"""Parse English text: word lists and patterns of english.toml, word stems, sentences of Markdown, and departures.

A departure is a statement that a relation ended ("left Hexa in 2025", "no longer at Hexa"). docs/truth.md lists the
phrases. Negated, planned, rumoured and quoted statements are skipped.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from quaid.model import plain_text
from quaid.model.dates import find_dates
from quaid.model.plain_text import RuleFile, replace_wiki_links
from quaid.model.slug import fold_name

READ_WINDOW = 2_000
"""At most this many characters are read before and after a match."""
MOST_PRECEDING = 5
"""At most this many preceding sentences are searched for the antecedent of a pronoun."""

_BLOCK = re.compile(r"\n[ \t]*(?=\n)|\n(?=[ \t]*(?:[-*+]|\d+[.)]|\#{1,6}|\|)[ \t])")
_ABBREVIATIONS = "Inc Ltd Dr Mr Ms Mrs St Co Jr vs etc Corp Prof approx".split()
_MONTH_AFTER_DAY = "Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember"
"""After a day such as "3.", these words do not begin a sentence."""
_END = re.compile(
    rf"[.!?](?!(?<=\d\.)(?<!\d\d\d\.) (?:{_MONTH_AFTER_DAY})\b)(?<!\b[A-Z]\.)"
    + "".join(rf"(?<!\b{word}\.)" for word in _ABBREVIATIONS)
    + r"""["”')\]]*(?=\s|\Z)|;(?=\s)"""
)
_INLINE_CODE = re.compile(r"`[^`\n]*`")
_VISIBLE = re.compile(r"[^\n]")
_LEAD = re.compile(r"[ \t]*(?:>[ \t]*)*(?:(?:[-*+]|\d+[.)])[ \t]+|\#{1,6}[ \t]+)?")
_QUOTE_MARK = re.compile(r"(?<=\n)[ \t]*>[ \t]?")
_MARKS = re.compile(r"\*\*|__|(?<!\w)[*_]|[*_](?!\w)|~~")
_MD_LINK = re.compile(r"\[([^\[\]]*)\]\(([^()\s]*)\)")
_PAGE_PATH = re.compile(r"(?:\.\.?/)*+([\w/.-]+?)\.(?:md|markdown|org)\Z")


@cache
def english_rules() -> RuleFile:
    """Return the rules of english.toml, which is read at first use."""
    return RuleFile("english.toml")


@cache
def word_list(name: str) -> frozenset[str]:
    """Return a word list of english.toml."""
    return english_rules().words(name)


@cache
def stems(name: str) -> frozenset[str]:
    """Return the stems of a word list."""
    return frozenset(map(stem, word_list(name)))


@cache
def pairs(name: str) -> dict[str, str]:
    """Return a list of `key=value` pairs of english.toml as a dictionary."""
    return dict(pair.split("=") for pair in english_rules().data["pairs"][name].split())


def pattern(name: str) -> re.Pattern[str]:
    return english_rules().pattern(name)


@cache
def stem(word: str) -> str:
    """Return the stem of an English word: "formatters" becomes "format"."""
    for endings, least in _STEM_SUFFIXES[word.endswith(("ss", "us", "is")) :]:
        for ending in endings:
            if word.endswith(ending) and len(word) - len(ending) >= least:
                word = word[: -len(ending)]
                break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] in "bdgklmnprt":
        return word[:-1]
    return word


_STEM_SUFFIXES = (
    (("ies", "s"), 3),
    (("ations", "ation", "ating", "ated", "ate", "ment", "ing", "er", "ed", "ly"), 4),
    (("y", "e", "i"), 3),
)
"""Rows of suffixes, with the minimum length of the remaining stem.

At most one suffix of each row is removed, in order. The first row is skipped for words in "ss", "us" or "is".
"""


class Sentence(NamedTuple):
    """One sentence as plain text, with links replaced by the slugs they name."""

    text: str
    line: int
    """Line number of the first character of the sentence, from 1."""
    before: tuple[str, ...]
    """The preceding sentences of the same paragraph, at most MOST_PRECEDING."""


def blank_out_code(text: str) -> str:
    """Replace code and comments with spaces; all other characters keep their offsets."""
    spans = [(block.start, block.end) for block in plain_text.find_fences(text)]
    if "`" in text:
        spans += [match.span() for match in _INLINE_CODE.finditer(text)]
    start = text.find("<!--")
    while start >= 0 and (end := text.find("-->", start)) >= 0:
        spans.append((start, end + 3))
        start = text.find("<!--", end)
    pieces: list[str] = []
    position = 0
    for first, last in sorted(spans):
        if last > position:
            first = max(first, position)
            pieces += [text[position:first], _VISIBLE.sub(" ", text[first:last])]
            position = last
    return "".join([*pieces, text[position:]]) if pieces else text


class TextBlock(NamedTuple):
    """A paragraph, list item or heading. `cuts` are the offsets of sentence boundaries in its text."""

    start: int
    end: int
    text: str
    cuts: tuple[int, ...]


def block_at(text: str, position: int) -> TextBlock:
    """Return the paragraph, list item or heading that contains an offset, cut to READ_WINDOW on both sides."""
    low, high = max(0, position - READ_WINDOW), min(len(text), position + READ_WINDOW)
    start = max((match.end() for match in _BLOCK.finditer(text, low, position)), default=low)
    following = _BLOCK.search(text, position, high)
    end = following.start() if following else high
    lead = _LEAD.match(text, start, end)
    start = lead.end() if lead else start
    body = text[start:end]
    if ">" in body:
        body = _QUOTE_MARK.sub(lambda mark: " " * len(mark[0]), body)
    return TextBlock(start, end, body, _sentence_cuts(body))


def _sentence_cuts(text: str) -> tuple[int, ...]:
    return 0, *(match.end() for match in _END.finditer(text)), len(text)


def split_sentences(text: str) -> list[str]:
    """Split text into sentences; a line end also ends a sentence."""
    return [line[start:end] for line in text.split("\n") for start, end in pairwise(_sentence_cuts(line))]


def sentence_at(
    text: str, position: int, first_line: int = 1, block: TextBlock | None = None
) -> tuple[Sentence, int] | None:
    """Return the sentence at an offset, and the offset within the sentence.

    Return None in an open task, a table or a quotation. `block` is the block at the offset, if the caller
    already has it.
    """
    block = block or block_at(text, position)
    place = position - block.start
    if place < 0 or block.text.startswith(("[ ]", "|")):
        return None
    cuts = block.cuts
    index = next(
        number for number in range(len(cuts) - 1) if cuts[number + 1] > place or number == len(cuts) - 2
    )
    raw = block.text[cuts[index] : cuts[index + 1]]
    head = strip_emphasis(block.text[cuts[index] : place])
    if _is_in_quotation(head):
        return None
    tail = strip_emphasis(block.text[place : cuts[index + 1]])
    begin = block.start + cuts[index] + len(raw) - len(raw.lstrip())
    line = first_line + text.count("\n", 0, begin)
    spans = [(cuts[number], cuts[number + 1]) for number in range(max(0, index - MOST_PRECEDING), index)]
    earlier = tuple(strip_emphasis(block.text[low:high]).strip() for low, high in spans)
    head = head.lstrip()
    return Sentence(head + tail.rstrip(), line, earlier), len(head)


def strip_emphasis(text: str) -> str:
    """Remove emphasis. Replace links to pages with the slugs they name, and all other links with their text."""
    text = replace_wiki_links(text)
    if "](" in text:
        text = _MD_LINK.sub(_link_target, text)
    return re.sub(r"\s", " ", _MARKS.sub("", text))


def _link_target(link: "re.Match[str]") -> str:
    path = _PAGE_PATH.fullmatch(link[2])
    return path[1] if path else link[1]


def _is_in_quotation(head: str) -> bool:
    return head.count('"') % 2 == 1 or head.count("“") > head.count("”") or head.count("«") > head.count("»")


# Departures

OWNER = ""
"""The subject of a departure if it is the entity that the page is about."""

IMPLIED_OBJECT = "@"
"""The object of a departure if it is the page itself, or the only place that the subject can have left."""

LONGEST_LAST_NAME = 300
"""This many characters before "who" are searched for the name that it refers to."""

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


def verb_subjects(sentence: Sentence, place: int, owner: PageOwner) -> list[str]:
    """Return the subjects of the verb at this offset, each as OWNER or a normalized name (see fold_name).

    The list is empty if the subject is unclear.
    """
    head = _without_filler_end(_without_times(sentence.text[:place]).rstrip(" ,")).strip()
    pair = pattern("two_names").fullmatch(head)
    if pair:
        return [_subject_key(name, owner) for name in (pair[1], pair[2])]
    cuts = list(pattern("boundary").finditer(sentence.text, 0, place))
    last = cuts[-1] if cuts else None
    clause = sentence.text[last.end() if last else 0 : place].strip()
    clause = _without_filler_end(_without_times(clause)).strip(" ,")
    if clause:
        return _clause_subjects(clause, sentence, place, owner)
    if last and last[0].lower() == "who":
        return _antecedent(sentence.text[: last.start()].rstrip(" ,"), owner)
    return _leading_subjects(sentence, owner) if head else [OWNER]


def _clause_subjects(clause: str, sentence: Sentence, place: int, owner: PageOwner) -> list[str]:
    if pattern("pronoun").match(clause):
        behind = fold_name(sentence.text[place:])
        heard = _proper_names(sentence.text[: place - len(clause) - 1])
        if any(not _is_owner(candidate, owner) and fold_name(candidate) not in behind for candidate in heard):
            return []
        return _pronoun_subjects(sentence, owner)
    name = pattern("name").match(clause)
    if not name or name[0].endswith(("'s", "’s", "s'")):
        return [OWNER] if pattern("role").match(clause) and not name else []
    if name.end() == len(clause):
        return [_subject_key(name[0], owner)]
    rest = clause[name.end() :]
    return [OWNER] if _is_owner(name[0], owner) and pattern("qualified").match(rest) else []


def _pronoun_subjects(sentence: Sentence, owner: PageOwner) -> list[str]:
    """Return the subjects that a pronoun refers to, from a preceding sentence.

    If the sentence just before mentions a person other than the owner of the page, the reference is unclear and the
    result is empty. If no sentence begins with a name, the pronoun refers to the owner, if the owner is a person.
    """
    for number, earlier in enumerate(reversed(sentence.before)):
        met = [match[1] for match in pattern("other_person").finditer(earlier)]
        if number == 0 and any(not _is_owner(name, owner) for name in met):
            return []
        lead = _lead_name(earlier)
        if lead and not pattern("pronoun").fullmatch(lead):
            return [_subject_key(lead, owner)]
    return [OWNER] if owner.is_person else []


def _antecedent(head: str, owner: PageOwner) -> list[str]:
    name = pattern("last_name").search(head, max(0, len(head) - LONGEST_LAST_NAME))
    return [_subject_key(name[1], owner)] if name else []


def _leading_subjects(sentence: Sentence, owner: PageOwner) -> list[str]:
    """Return the subject of a sentence, for a later verb that has no subject."""
    lead = _lead_name(sentence.text)
    if lead is None:
        return []
    if pattern("pronoun").fullmatch(lead):
        return _clause_subjects(lead, Sentence(lead, 1, sentence.before), len(lead), owner)
    return [_subject_key(lead, owner)] if lead else [OWNER]


def _lead_name(text: str) -> str | None:
    """Return the name or pronoun at the start of a sentence.

    Return "" if the sentence starts with a role or a verb and omits its subject, and None if it starts with
    anything else.
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


def _subject_key(name: str, owner: PageOwner) -> str:
    return OWNER if _is_owner(name, owner) else fold_name(name) or "?"


def _is_owner(name: str, owner: PageOwner) -> bool:
    return fold_name(name) in owner.names


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


def find_departures(text: str, owner: PageOwner, first_line: int = 1, day: str = "") -> list[Departure]:
    """Return the departures in the text.

    `owner` describes the page that contains the text, and `first_line` is the line number of the text in the
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
            departures += _read_match(*around, match, scope, is_event, owner, day)
    return departures


def may_mention_departure(text: str) -> bool:
    """Return True if the text has the first word of one of departure_phrases().

    This is a cheap test before find_departures().
    """
    low = text.lower()
    return any(word in low for word in departure_phrases())


def _phrase_matches(text: str) -> list[tuple[int, "re.Match[str]", str, bool]]:
    """Return the matches of departure_phrases() in text order, at most MOST_MATCHES.

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
    owner: PageOwner,
    day: str,
) -> Iterator[Departure]:
    verb = re.sub(r"\s", " ", match[0])
    head, tail = sentence.text[:place], sentence.text[place + len(verb.rstrip()) :].lstrip()
    if _is_doubtful(sentence, head, tail, owner):
        return
    if scope == "until":
        yield from _until_departures(sentence, place, head, tail, owner)
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
    for subject in _departing_subjects(sentence, start, owner, _is_gerund(verb)):
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


def _departing_subjects(sentence: Sentence, place: int, owner: PageOwner, gerund: bool) -> list[str]:
    """Return the subjects of a departure. In "After leaving X, Bea joined" the subject follows the comma."""
    if gerund and not sentence.text[:place].strip():
        comma = sentence.text.find(",", place)
        rest = sentence.text[comma + 1 :].strip() if comma >= 0 else ""
        following = re.match(r"(.*?)\s(?=[a-z]+(?:ed|s|ew|an|ok|nt|lt|de|ld)\b)", rest) if rest else None
        if following:
            return verb_subjects(
                Sentence(following[1] + " ", 1, sentence.before), len(following[1]) + 1, owner
            )
    return verb_subjects(sentence, place, owner)


def _is_doubtful(sentence: Sentence, head: str, tail: str, owner: PageOwner) -> bool:
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
        speaker = verb_subjects(sentence, reports[-1].start(), owner)
        return not (pattern("trusted_report").match(reports[-1][0]) and speaker == [""] and owner.is_person)
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
    sentence: Sentence, place: int, head: str, tail: str, owner: PageOwner
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
    who = verb_subjects(sentence, where, owner) if verb and where else [""] if owner.is_person else []
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
