"""Corrections: find the statement that a correction is about, and replace it by the new statement."""

import re
from difflib import SequenceMatcher
from typing import NamedTuple

from quaid.model.claims import stem_words
from quaid.model.english import split_sentences
from quaid.model.names import fold_name
from quaid.model.plain_text import has_cjk

STRUCK = re.compile(r"~~.+?~~")
OPEN_BOX = re.compile(r"\[ \]")
_LEAD = re.compile(r"\s*(?:>\s*)*(?:(?:[-*+]|\d+[.)])\s+)?(?:\[[ xX]\]\s+)?")
_ENTRY = re.compile(r"\*\*\d{4}-\d{2}-\d{2}\*\*(?:\s*\|[^—\n]*)?\s*—\s*")
_DONE = re.compile(
    r"(?:is |it's |was |all )*(?:done|finished|completed?|ticked(?: off)?|checked(?: off)?|bought|erledigt|fertig"
    r"|fait|terminé|hecho|fatto|klar|完成|済)",
    re.IGNORECASE,
)
_NEVER_HELD = re.compile(
    r"\b(?:(?:that|this|it) (?:is|was) )?(?:wrong|false|incorrect|not true|never true|never held|untrue|a mistake"
    r"|mistaken|an error|a typo|a misunderstanding)\b[.!]?",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"^(?:(?:is|are|was|has|have)\s+)?(?:now|actually|currently|instead)\b[:,]?\s*", re.IGNORECASE
)
_NOW_VERB = re.compile(r"\b(is|are|has|have) now\b", re.IGNORECASE)
_VALUE = re.compile(r"(.*?(?:\s(?:is|are|was)\s|[:=]\s*))(\S.*?)([.!]?)")
_CHANGE_VERB = re.compile(
    r"^(?:raised|moved|changed|set|reduced|cut|increased|lowered|postponed) to ", re.IGNORECASE
)
_PRONOUN = re.compile(r"^(?:she|he|they|it)\s+", re.IGNORECASE)
_TRAILING_WORDS = ("as of now", "as of today", "from now on", "instead", "now")
_VALUE_LEADS = frozenset(
    "is are was were be now has have had the a an to in at as of for on with from moved changed new its his her"
    " their became becomes it he she they".split()
)

MIN_SHARE_OF_WAS = 0.6
"""A statement matches a correction only if it contains at least this share of the words of `was`."""

MIN_WORDS_LEFT = 3
"""A sentence is changed as a whole only if fewer than this many other words would be lost."""

MIN_SHARE_OF_NOW = 0.5
"""Without `was`, a statement matches only if it contains at least this share of the words of `now`.

Words of the subject are not counted.
"""


MAX_VALUE_WORDS = 4

_CHANGE_VERBS = (
    (re.compile(r"\bmov(?:e|es|ed|ing)\b", re.IGNORECASE), "lives"),
    (re.compile(r"\bjoin(?:s|ed|ing)?\b", re.IGNORECASE), "works"),
)
"""Verbs that tell a change, and a word for the relation that changes: a person who moves lives elsewhere."""


class Wording(NamedTuple):
    """A correction as read from the words of the caller."""

    was: str
    """The wrong or former statement or value, or ""."""
    now: str
    """The new statement or value, or ""."""
    never_held: bool
    """True if the old statement was never true; False if it was true until now."""
    is_done: bool
    """True if a to-do is to be ticked."""


class StatementPlace(NamedTuple):
    """A sentence in a text, with its offsets."""

    line: int
    start: int
    end: int
    text: str
    score: float
    sentence: int = 1
    """Position of the sentence within its line, from 1."""


def read_wording(was: str, now: str) -> Wording:
    """Return what the caller means by the old and the new words, such as "that was wrong" or "is now Oslo"."""
    old, new = _NEVER_HELD.sub("", was).strip(" ,;:-"), _NEVER_HELD.sub("", now).strip(" ,;:-")
    says_wrong = old != was.strip(" ,;:-") or new != now.strip(" ,;:-")
    done = bool(_DONE.fullmatch(new.strip(" .!")))
    new = "" if done else _NOW_VERB.sub(r"\1", _FILLER.sub("", new))
    return Wording(old, new, says_wrong or (bool(old) and not new and not done), done)


_ANYTHING = Wording("", "", never_held=False, is_done=False)
"""A correction that every sentence matches."""


def find_statements(
    text: str,
    wording: Wording,
    about: frozenset[str],
    known: frozenset[str],
    topic: frozenset[str] = frozenset(),
) -> list[StatementPlace]:
    """Return the sentences of a text that a correction may be about, each with a score from 0 to 1.

    `about` has the stems of the subject. `known` has the stems that apply to the whole text, such as those of
    its title; the heading above a sentence applies to it too. `topic` has the stems that name one statement about
    the subject, such as "birthday". Struck text, headings, code and ticked to-dos are skipped.
    """
    places, offset, fenced, heading = [], 0, False, frozenset[str]()
    for number, line in enumerate(text.split("\n"), 1):
        fenced ^= line.lstrip().startswith(("```", "~~~ "))
        if line.startswith("#"):
            heading = stem_words(line.lower())
        lead = _LEAD.match(line)
        start = offset + (lead.end() if lead else 0)
        if entry := _ENTRY.match(line, start - offset):
            start = offset + entry.end()
        body = line[start - offset :]
        is_skipped = lead is not None and re.search(r"\[[xX]\]", lead[0]) is not None
        if lead and OPEN_BOX.search(lead[0]) and not (wording.was or wording.is_done):
            is_skipped = True  # a new value alone never changes an open to-do, which may only name the person
        if not fenced and not is_skipped and not line.lstrip().startswith("#") and not STRUCK.search(line):
            for count, sentence in enumerate(split_sentences(body), 1):
                score = _score(sentence, wording, about, known | heading, topic)
                if score:
                    trimmed = sentence.strip()
                    begin = start + sentence.index(trimmed)
                    places.append(StatementPlace(number, begin, begin + len(trimmed), trimmed, score, count))
                start += len(sentence)
        offset += len(line) + 1
    return places


def all_statements(text: str) -> list[StatementPlace]:
    """Return all sentences of a text, without headings, code, struck text and to-dos."""
    return find_statements(text, _ANYTHING, frozenset(), frozenset())


def _score(
    sentence: str, wording: Wording, about: frozenset[str], known: frozenset[str], topic: frozenset[str]
) -> float:
    if not sentence.strip():
        return 0
    if wording is _ANYTHING:
        return 1
    stems = stem_words(sentence.lower())
    if about and not about <= stems | known:
        return 0
    if wording.was:
        if fold_name(wording.was) in fold_name(sentence):
            return 1
        return _share(stem_words(wording.was.lower()) - about, stems, MIN_SHARE_OF_WAS)
    if wording.now:
        if fold_name(wording.now) == fold_name(sentence):
            return 0
        is_value = len(wording.now.split()) <= MAX_VALUE_WORDS and not _shares_words(wording.now, sentence)
        if is_value and topic & stems and topic <= stems | known:
            return 1  # the sentence names the topic, and the new words are its value
        if _have_same_label(wording.now, sentence):
            return 1
        return _share(stem_words(wording.now.lower()) - about, stems, MIN_SHARE_OF_NOW)
    # The words of the subject name the statement itself, as in "buy milk" for a to-do.
    return len(about & stems) / len(about) if about else 0


def _have_same_label(one: str, other: str) -> bool:
    """Return True if both texts have the form "LABEL: value" or "LABEL is value" with the same words as label."""
    matches = [_VALUE.fullmatch(text.strip()) for text in (one, other)]
    labels = [
        re.sub(r"^(?:the|a|an) | (?:is|are|was)$", "", fold_name(match[1])) for match in matches if match
    ]
    return (
        len(labels) == 2
        and labels[0] == labels[1]
        and labels[0] not in ("", "it", "he", "she", "they", "this")
    )


def _shares_words(one: str, other: str) -> bool:
    return bool(stem_words(one.lower()) & stem_words(other.lower()))


def _has_words(text: str, words: str) -> bool:
    """Return True if a text has these words next to each other, regardless of case and accents."""
    return bool(words.strip()) and f" {fold_name(words)} " in f" {fold_name(text)} "


def _share(wanted: frozenset[str], stems: frozenset[str], minimum: float) -> float:
    share = len(wanted & stems) / len(wanted) if wanted else 0
    return share if share >= minimum else 0


def fact_score(predicate: str, value: str, wording: Wording, about: frozenset[str]) -> float:
    """Return from 0 to 1 how likely it is that a correction about a subject is about this fact."""
    relation = predicate.replace("_", " ")
    if wording.was:
        return float(_has_words(wording.was, value) or _has_words(f"{relation} {value}", wording.was))
    if wording.now:
        if _has_words(wording.now, value):
            return 0
        words = stem_words(relation.lower())
        if not words:
            return float(_has_words(wording.now, relation))
        stems = stem_words(wording.now.lower()) | about
        for verb, relation_word in _CHANGE_VERBS:
            if verb.search(wording.now):
                stems |= stem_words(relation_word)
        return _share(words, stems, 0.67)
    return float(bool(about) and stem_words(value.lower()) <= about)


def touches_value(wording: Wording, value: str) -> bool:
    """Return True unless the old words of a correction are about something else than this value."""
    return not wording.was or _has_words(wording.was, value) or _has_words(value, wording.was)


def states_fact(sentence: str, predicate: str, value: str) -> bool:
    """Return True if a sentence has the value of a fact and a word of its predicate."""
    return _has_words(sentence, value) and _shares_words(sentence, predicate.replace("_", " "))


def statements_of_fact(text: str, predicate: str, value: str) -> list[StatementPlace]:
    """Return the sentences of a text that have the value of a fact.

    If some of them also have a word of its predicate, only these are returned.
    """
    wording = Wording(value, "", never_held=False, is_done=False)
    places = [
        place
        for place in find_statements(text, wording, frozenset(), frozenset())
        if has_value(place.text, value)
    ]
    return [place for place in places if states_fact(place.text, predicate, value)] or places


def has_value(sentence: str, value: str) -> bool:
    """Return True if a sentence has these words next to each other, or this text in a script without spaces."""
    return _has_words(sentence, value) or _find_words(sentence, value) is not None


def new_value(wording: Wording, subject: str, predicate: str, value: str) -> str:
    """Return the new value of a fact, from the words of a correction such as "Alice lives in Oslo now"."""
    now = _without_trailing(wording.now)
    old_words, new_words = wording.was.rstrip(".!").split(), now.split()
    if fold_name(wording.was) == fold_name(value):
        return now
    if exact := _value_in_place(now, wording.was, value):
        return exact
    label = _VALUE.fullmatch(now)
    if not wording.was and label and fold_name(predicate).split()[-1:] == _last_word(label[1]):
        return _CHANGE_VERB.sub("", label[2])
    same = [fold_name(word) for word in f"{subject} {predicate.replace('_', ' ')}".split()]
    if old_words:
        while len(new_words) > 1 and old_words and fold_name(new_words[0]) == fold_name(old_words[0]):
            new_words, old_words = new_words[1:], old_words[1:]
        while len(new_words) > 1 and old_words and fold_name(new_words[-1]) == fold_name(old_words[-1]):
            new_words, old_words = new_words[:-1], old_words[:-1]
    stems = stem_words(" ".join(same))
    while len(new_words) > 1 and (
        fold_name(new_words[0]).removesuffix("'s") in (*same, *_VALUE_LEADS)
        or stem_words(new_words[0].lower()) & stems
    ):
        new_words = new_words[1:]
    return " ".join(new_words)


def _without_trailing(text: str) -> str:
    """Return a text without full stop and without words such as "now" at its end."""
    text = text.strip().rstrip(".! ")
    words = next((words for words in _TRAILING_WORDS if text.lower().endswith(f" {words}")), "")
    return text[: len(text) - len(words)].rstrip(" ,.!")


def _last_word(label: str) -> list[str]:
    """Return the last word of a label such as "The beta deadline is ", as a list with at most one item."""
    return re.sub(r" (?:is|are|was)$", "", fold_name(label)).split()[-1:]


def _value_in_place(now: str, was: str, value: str) -> str:
    """Return the words of `now` that stand where `was` has the value, or "".

    For "the rent is EUR 900 a month", "EUR 900" and "his rent is EUR 950 a month" this is "EUR 950".
    """
    match = _find_words(was, value)
    if match is None:
        return ""
    words = now.split()
    before, after = was[: match.start()].split(), was[match.end() :].rstrip(".!").split()
    begin = next(
        (place + n for n in range(len(before), 0, -1) if (place := _position(words, before[-n:])) >= 0), 0
    )
    rest = words[begin:]
    end = next(
        (place for n in range(len(after), 0, -1) if (place := _position(rest, after[:n])) >= 0), len(rest)
    )
    if (before and not begin) or (after and end == len(rest)):
        return ""
    return " ".join(rest[:end]).strip(" ,;")


def _position(words: list[str], part: list[str]) -> int:
    """Return the index at which some words occur one after the other in a list of words, or -1."""
    folded, wanted = [word.casefold() for word in words], [word.casefold() for word in part]
    starts = range(len(folded) - len(wanted) + 1)
    return next((start for start in starts if folded[start : start + len(wanted)] == wanted), -1)


def replaced_sentence(old: str, wording: Wording, about: str, value: tuple[str, str] | None) -> str:
    """Return the sentence that replaces an old sentence; "" if the old sentence is only withdrawn.

    `about` has the words that name the subject. `value` is the old and the new value of the fact that the
    sentence states, if there is one.
    """
    if not wording.now:
        return _without_clause(old, wording.was)
    for before, after in ((wording.was, wording.now), value or ("", "")):
        match = _find_words(old, before)
        if match and not _shares_words(after, old[: match.start()] + old[match.end() :]):
            after = after.rstrip(".!") if old[match.end() :].startswith((".", "!")) else after
            if not match.start() and not _shares_words(after, about):
                after = " ".join([*_leading_words(before, about), after])
            return old[: match.start()] + after + old[match.end() :]
    if core := _changed_words(wording.was, wording.now):
        match = _find_words(old, core[0])
        if match and not _shares_words(core[1], old[: match.start()] + old[match.end() :]):
            return old[: match.start()] + core[1] + old[match.end() :]
    match, new = _VALUE.fullmatch(old), _VALUE.fullmatch(wording.now)
    if match and new and (fold_name(match[1]) == fold_name(new[1]) or _have_same_label(wording.now, old)):
        return match[1] + new[2] + match[3]
    if match and len(wording.now.split()) <= MAX_VALUE_WORDS and not _shares_words(wording.now, match[1]):
        return match[1] + wording.now.rstrip(".!") + match[3]
    now = wording.now
    if not _shares_words(now, about) and (names := _leading_words(old, about)):
        now = " ".join([*names, _PRONOUN.sub("", now)])
    now = now[:1].upper() + now[1:] if old[:1].isupper() else now
    return now if now.endswith((".", "!", "?", "。")) or not old.endswith(".") else f"{now}."


def _without_clause(sentence: str, clause: str) -> str:
    """Return a sentence without one of its clauses, or "" if too little of the sentence would be left."""
    match = _find_words(sentence, clause.rstrip(".!"))
    if match is None:
        return ""
    before, after = sentence[: match.start()].rstrip(" ,;:–—-"), sentence[match.end() :]
    rest = re.sub(r"\b(?:and|but|because|und|et|y)$", "", before).rstrip(" ,;") + after
    return rest if len(before.split()) >= MIN_WORDS_LEFT else ""


def says_more(sentence: str, wording: Wording, about: str) -> bool:
    """Return True if a sentence has several words that neither wording has, which would be lost."""
    if not wording.was or _find_words(sentence, wording.was.rstrip(".!")):
        return False
    words = stem_words(f"{wording.was} {wording.now} {about}".lower())
    return len(stem_words(sentence.lower()) - words) >= MIN_WORDS_LEFT


def _changed_words(was: str, now: str) -> tuple[str, str] | None:
    """Return the words in which two wordings of a statement differ, if that is one place with words in both."""
    old, new = was.rstrip(".!").split(), now.rstrip(".!").split()
    changes = [
        row for row in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if row[0] != "equal"
    ]
    if len(changes) != 1 or changes[0][0] != "replace" or len(old) < 3:
        return None
    _, start, end, new_start, new_end = changes[0]
    return " ".join(old[start:end]), " ".join(new[new_start:new_end])


def _find_words(text: str, words: str) -> "re.Match[str] | None":
    """Return the first match of some words in a text, as whole words if the script has spaces between words."""
    pattern = re.escape(words) if has_cjk(words) else rf"(?<!\w){re.escape(words)}(?!\w)"
    return re.search(pattern, text, re.IGNORECASE) if words else None


def _leading_words(sentence: str, about: str) -> list[str]:
    """Return the first words of a sentence that name the subject."""
    names, words = set(fold_name(about).split()), sentence.split()
    count = 0
    while count < len(words) and fold_name(words[count]) in names:
        count += 1
    return words[:count]


def replace_in_page(truth: str, place: StatementPlace, new: str) -> str:
    """Return the compiled truth (the text above the timeline) with one sentence replaced or removed.

    If nothing else is on the line of a removed sentence, the line is removed too.
    """
    text = truth[: place.start] + new + truth[place.end :]
    if new:
        return text
    begin = text.rfind("\n", 0, place.start) + 1
    end = text.find("\n", place.start)
    end = len(text) if end < 0 else end
    line = text[begin:end]
    lead = _LEAD.match(line)
    if line[lead.end() if lead else 0 :].strip():
        return text[:begin] + line.rstrip().replace("  ", " ") + text[end:]
    return text[:begin] + text[end + 1 :]


def strike_in_notebook(text: str, place: StatementPlace, new: str, day: str) -> str:
    """Return the text of a notebook file with a statement struck through and the new one as the next list item."""
    begin = text.rfind("\n", 0, place.start) + 1
    lead, rest = text[begin : place.start], text[place.end :]
    head = f"{text[: place.start]}~~{place.text}~~ ({day})"
    if not new:
        return head + rest
    if rest.partition("\n")[0].strip() or not _LEAD.fullmatch(lead):
        return f"{head} {new}{rest}"
    line_end, _, below = rest.partition("\n")
    return f"{head}{line_end}\n{lead}{new}\n{below}"


def tick_box(text: str, place: StatementPlace) -> str | None:
    """Return the text with the to-do of this place ticked, or None if its line has no open box."""
    begin = text.rfind("\n", 0, place.start) + 1
    box = OPEN_BOX.search(text, begin, place.start)
    return None if box is None else f"{text[: box.start()]}[x]{text[box.end() :]}"
