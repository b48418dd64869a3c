"""Corrections: find the statement that a correction is about, and replace it by the new statement."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from quaid.model.claims import stem_words
from quaid.model.english import split_sentences
from quaid.model.facts import canonical_predicate
from quaid.model.plain_text import has_cjk
from quaid.model.slug import fold_name

STRUCK = re.compile(r"~~.+?~~")
OPEN_BOX = re.compile(r"\[ \]")
TICKED_BOX = re.compile(r"\[[xX]\]")
_UNDERLINE = re.compile(r" {0,3}(?:={2,}|-{2,})[ \t\r]*")
_LINK = re.compile(r"\[\[[^\[\]]+\]\]|\[[^\[\]]*\]\([^()\s]*\)")
_CJK_STOP = re.compile(r"(?<=[。！？])")
_LETTER = re.compile(r"[^\W_]")
_LEAD = re.compile(r"\s*(?:>\s*)*(?:(?:[-*+]|\d+[.)])\s+)?(?:\[[ xX]\]\s+)?")
_ENTRY = re.compile(r"\*\*\d{4}-\d{2}-\d{2}\*\*(?:\s*\|[^—\n]*)?\s*—\s*")
DONE_WORDS = (
    r"done|finished|completed?|tick(?:ed)?(?: off)?|check(?:ed)?(?: off)?|sorted|erledigt|fertig|abgehakt|"
    r"(?:c['’]est )?fait|terminée?|fini|hecho|listo|terminado|fatto|klart?|已?完成了?|搞定了?|办好了|完了|済み?"
)
"""Words that say that a task is finished, as part of a pattern."""
_DONE = re.compile(rf"(?:is |it's |was |all )*(?:{DONE_WORDS}|bought)", re.IGNORECASE)
_NEVER_HELD = re.compile(
    r"\b(?:(?:that|this|it) (?:is|was) )?(?:wrong|false|incorrect|not true|never true|never held|untrue|a mistake"
    r"|mistaken|an error|a typo|a misunderstanding)\b[.!]?",
    re.IGNORECASE,
)
_FILLER = re.compile(
    r"^(?:(?:is|are|was|has|have)\s+)?(?:now|actually|currently|instead)\b[:,]?\s*", re.IGNORECASE
)
_NOW_VERB = re.compile(r"\b(is|are|has|have) now\b", re.IGNORECASE)
_VALUE = re.compile(r"(.*?(?:\s(?:is|are|was|ist|sind|est|sont|es|está)\s|[:=]\s*))(\S.*?)([.!]?)")
_PREPOSITION = re.compile(r"(?:in|at|on|by|from|for|until|to|near|bei|à|en)\s+", re.IGNORECASE)
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
    ends: bool = False
    """True if `now` only says that the old statement has ended, as in "Jo no longer works at Acme"."""


class StatementPlace(NamedTuple):
    """A sentence of a text that is neither struck nor ticked, with its offsets. A to-do is one statement."""

    line: int
    start: int
    end: int
    text: str
    sentence: int = 1
    """Position of the sentence within its line, from 1."""
    heading: str = ""
    box: str | None = None
    """The content of the checkbox, which is a space; None without a checkbox."""
    is_row: bool = False
    """True for a row of a table."""
    score: float = 1


def read_wording(was: str, now: str) -> Wording:
    """Return what the caller means by the old and the new words, such as "that was wrong" or "is now Oslo"."""
    old, new = _NEVER_HELD.sub("", was).strip(" ,;:-"), _NEVER_HELD.sub("", now).strip(" ,;:-")
    says_wrong = old != was.strip(" ,;:-") or new != now.strip(" ,;:-")
    done = bool(_DONE.fullmatch(new.strip(" .!")))
    new = "" if done else _NOW_VERB.sub(r"\1", _FILLER.sub("", new))
    return Wording(old, new, says_wrong or (bool(old) and not new and not done), done)


def statements(text: str) -> Iterator[StatementPlace]:
    """Yield the sentences of a text. Headings, code, ticked to-dos and lines with struck text are skipped."""
    offset, fenced, heading = 0, False, ""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        fenced ^= line.lstrip().startswith(("```", "~~~ "))
        below = lines[number] if number < len(lines) else ""
        is_heading = line.lstrip().startswith("#") or bool(line.strip() and _UNDERLINE.fullmatch(below))
        if is_heading and not fenced:
            heading = line.strip("# \t\r")
        lead = _LEAD.match(line)
        start = offset + (lead.end() if lead else 0)
        if entry := _ENTRY.match(line, start - offset):
            start = offset + entry.end()
        is_todo = lead is not None and OPEN_BOX.search(lead[0]) is not None
        is_ticked = lead is not None and TICKED_BOX.search(lead[0]) is not None
        skipped = fenced or is_heading or is_ticked or STRUCK.search(line) or not _LETTER.search(line)
        body = line[start - offset :]
        is_row = body.startswith("|")
        for count, sentence in enumerate([] if skipped else _sentences(body, is_todo or is_row), 1):
            if trimmed := sentence.strip():
                begin = start + sentence.index(trimmed)
                place = StatementPlace(number, begin, begin + len(trimmed), trimmed, count, heading)
                yield place._replace(box=" " if is_todo else None, is_row=is_row)
            start += len(sentence)
        offset += len(line) + 1


def _sentences(body: str, is_whole: bool) -> list[str]:
    """Return the sentences of a line, also in scripts without spaces; or the line itself, if it is one statement."""
    if is_whole:
        return [body]
    return [part for sentence in split_sentences(body) for part in _CJK_STOP.split(sentence)]


def score(
    place: StatementPlace,
    wording: Wording,
    about: frozenset[str],
    known: frozenset[str],
    topic: frozenset[str] = frozenset(),
) -> float:
    """Return from 0 to 1 how likely it is that a correction is about this statement.

    `about` has the stems of the subject. `known` has the stems that apply to the whole text, such as those of
    its title; the heading above a sentence applies to it too. `topic` has the stems that name one statement about
    the subject, such as "birthday".
    """
    sentence = place.text
    if place.is_row and not (wording.was and has_value(sentence, wording.was)):
        return 0
    if place.box and not wording.was:
        return 0  # a new value alone never changes an open to-do, which may only name the person
    stems = stem_words(sentence.lower())
    known |= stem_words(place.heading.lower())
    if about and not about <= stems | known:
        return 0
    if wording.was:
        if has_value(sentence, wording.was):
            return 1
        return _share(stem_words(wording.was.lower()) - about, stems, MIN_SHARE_OF_WAS)
    if wording.now:
        if fold_name(wording.now) == fold_name(sentence):
            return 0
        is_value = len(wording.now.split()) <= MAX_VALUE_WORDS
        if is_value and topic & stems and topic <= stems | known:
            return 1  # the sentence names the topic, and the new words are its value
        if _have_same_label(wording.now, sentence):
            return 1
        return _share(stem_words(wording.now.lower()) - about, stems, MIN_SHARE_OF_NOW)
    # The words of the subject name the statement itself, as in "milk" for an item that was bought.
    return len(about & stems) / len(about) if about else 0


def _have_same_label(one: str, other: str) -> bool:
    """Return True if both texts have the form "LABEL: value" or "LABEL is value" with the same words as label."""
    matches = [_VALUE.fullmatch(text.strip()) for text in (one, other)]
    labels = [
        re.sub(r"^(?:the|a|an|his|her|its|their|my|our) | (?:is|are|was)$", "", fold_name(match[1]))
        for match in matches
        if match
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
    usual = canonical_predicate(predicate)
    if usual != predicate:  # "employer" is also "works_at"
        return max(_fact_score(name, value, wording, about) for name in (predicate, usual))
    return _fact_score(predicate, value, wording, about)


def _fact_score(predicate: str, value: str, wording: Wording, about: frozenset[str]) -> float:
    relation = predicate.replace("_", " ")
    if wording.was:
        if _has_words(f"{relation} {value}", wording.was) or states_fact(wording.was, predicate, value):
            return 1
        return 0.5 * _has_words(wording.was, value)
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


def states_fact(sentence: str, predicate: str, value: str) -> bool:
    """Return True if a sentence has the value of a fact and a word of its predicate."""
    return _has_words(sentence, value) and _shares_words(sentence, predicate.replace("_", " "))


def statements_of_fact(text: str, predicate: str, values: Sequence[str]) -> list[StatementPlace]:
    """Return the sentences of a text that have the value of a fact, in one of its spellings.

    If some of them also have a word of its predicate, only these are returned.
    """
    places = [place for place in statements(text) if any(has_value(place.text, value) for value in values)]
    relation = predicate.replace("_", " ")
    return [place for place in places if _shares_words(place.text, relation)] or places


def has_value(sentence: str, value: str) -> bool:
    """Return True if a sentence has these words next to each other, or this text in a script without spaces."""
    return _has_words(sentence, value) or _find_words(sentence, value) is not None


def new_value(wording: Wording, subject: str, predicate: str, value: str) -> str:
    """Return the new value of a fact, from the words of a correction such as "Alice lives in Oslo now"."""
    new = _new_value(wording, subject, predicate, value)
    is_abbreviated = value.endswith(".") and f"{new}." in wording.now  # as in "Acme Inc."
    return f"{new}." if is_abbreviated and not new.endswith(".") else new


def _new_value(wording: Wording, subject: str, predicate: str, value: str) -> str:
    now = _without_trailing(wording.now)
    old_words, new_words = wording.was.rstrip(".!").split(), now.split()
    if fold_name(wording.was) == fold_name(value):
        return now
    if exact := value_in_place(now, wording.was, value):
        return exact
    label = _VALUE.fullmatch(now)
    if not wording.was and label and fold_name(predicate).split()[-1:] == _last_word(label[1]):
        return _CHANGE_VERB.sub("", label[2])
    relations = f"{predicate} {canonical_predicate(predicate)}".replace("_", " ")
    same = [fold_name(word) for word in f"{subject} {relations}".split()]
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


def value_in_place(now: str, was: str, value: str) -> str:
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
    new = " ".join(rest[:end]).strip(" ,;")
    return new if value.endswith(".") else new.rstrip(".!。")


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
        left, place, right = _cut_words(old, before)
        if not place:
            continue
        after = _without_adjacent(after, left, right)
        is_as_short = len(after.split()) <= len(before.split()) + 1
        if is_as_short or not _shares_words(after, left + right):
            after = after.rstrip(".!") if right.startswith((".", "!")) else after
            if not left and not _shares_words(after, about):
                after = " ".join([*_leading_words(before, about), after])
            return left + after + right
    if core := _changed_words(wording.was, wording.now):
        left, place, right = _cut_words(old, core[0])
        if place and not _shares_words(core[1], left + right):
            return left + core[1] + right
    match, new = _VALUE.fullmatch(old), _VALUE.fullmatch(wording.now)
    if match and new and (fold_name(match[1]) == fold_name(new[1]) or _have_same_label(wording.now, old)):
        return match[1] + new[2] + match[3]
    if match and len(wording.now.split()) <= MAX_VALUE_WORDS and not _shares_words(wording.now, match[1]):
        kept = _PREPOSITION.match(match[2]) if not _PREPOSITION.match(wording.now) else None
        return match[1] + (kept[0] if kept else "") + wording.now.rstrip(".!") + match[3]
    now = wording.now
    if not _shares_words(now, about) and (names := _leading_words(old, about)):
        now = " ".join([*names, _PRONOUN.sub("", now)])
    now = now[:1].upper() + now[1:] if old[:1].isupper() else now
    return now if now.endswith((".", "!", "?", "。")) or not old.endswith(".") else f"{now}."


def _without_adjacent(new: str, before: str, after: str) -> str:
    """Return new words without those at their ends that the sentence has right before or after their place.

    With "lives in Oslo" for "Paris" in "Alice lives in Paris", this is "Oslo".
    """
    words, left, right = new.split(), before.split(), after.rstrip(".! ").split()
    for count in range(min(len(words) - 1, len(left)), 0, -1):
        if [word.casefold() for word in words[:count]] == [word.casefold() for word in left[-count:]]:
            words = words[count:]
            break
    for count in range(min(len(words) - 1, len(right)), 0, -1):
        if [word.casefold() for word in words[-count:]] == [word.casefold() for word in right[:count]]:
            words = words[:-count]
            break
    return " ".join(words)


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


def _cut_words(text: str, words: str) -> tuple[str, str, str]:
    """Split a text at the first occurrence of some words. A link that has them is not cut.

    If the words do not occur, the second part is "".
    """
    match = _find_words(text, words)
    if match is None:
        return text, "", ""
    links = (link.span() for link in _LINK.finditer(text))
    start, end = next(((a, b) for a, b in links if a <= match.start() < b), match.span())
    end = max(end, match.end())
    return text[:start], text[start:end], text[end:]


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


def tick_box(text: str, place: StatementPlace, day: str | None) -> str | None:
    """Return the text with the to-do of this place ticked, or None if its line has no open box.

    If a day is given, it is added to the line.
    """
    begin = text.rfind("\n", 0, place.start) + 1
    box = OPEN_BOX.search(text, begin, place.start)
    if box is None:
        return None
    done = f" (done {day})" if day else ""
    return f"{text[: box.start()]}[x]{text[box.end() : place.end]}{done}{text[place.end :]}"
