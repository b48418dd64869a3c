"""Corrections: split text into statements, compare them with the words of a correction, and edit them.

A statement matches if it contains the old words of the correction, or has the same label as the new words. In
"Budget: 3", the label is "Budget" and the value is "3".
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from quaid.model import facts
from quaid.model.chunker import STRUCK
from quaid.model.claims import stem_words
from quaid.model.english import split_sentences
from quaid.model.plain_text import has_cjk
from quaid.model.slug import fold_name

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
"""Regular expression for words that mean that a task is finished."""
_DONE = re.compile(rf"(?:is |it's |was |all )*(?:{DONE_WORDS}|bought)", re.IGNORECASE)
_CANCELLED = re.compile(
    r"(?:(?:it |this |that )?(?:is|was|has been) )?"
    r"(?:cancell?ed|dropped|abandoned|called off|written off|(?:it )?(?:will not|won['’]t) happen|never kept"
    r"|not needed(?: any ?more)?|no longer needed|abgesagt|gestrichen|annulée?|cancelad[oa]|取消了?)"
    r"(?![\w-])[\s,;:.!–—(-]*(?P<reason>.*)",
    re.IGNORECASE | re.DOTALL,
)
_WRONG = (
    r"(?:(?:(?:that|this|it) )?(?:is|was) )?(?:wrong|false|incorrect|not true|never true|never held|untrue|a mistake"
    r"|mistaken|an error|a typo|a misunderstanding)"
)
_SAYS_WRONG = re.compile(rf"(?:^|(?<![\s,;:.–—-])[\s,;:.–—-]+){_WRONG}[.!]?\Z", re.IGNORECASE)
_VALUE = re.compile(r"(.*?(?:\s(?:is|are|was|ist|sind|est|sont|es|está)\s|[:=]\s*))(\S.*?)([.!]?)")
_LABEL_END = re.compile(r"\s(?:is|are|was|ist|sind|est|sont|es|está)\s\Z|[:=]\s*\Z")
_PREPOSITION = re.compile(r"(?:in|at|on|by|from|for|until|to|near|bei|à|en)\s+", re.IGNORECASE)
_CHANGE_VERBS = frozenset("moved joined switched changed raised set reduced cut increased lowered".split())
_LABEL_LEADS = frozenset(
    "the a an his her its their my our she he it they has have had is are was now new".split()
)
_AFTER_LABEL = frozenset("is are was were be now to in at on as of".split())
_SMALL_LABEL_WORDS = frozenset("of in at on to the a an is for by with".split())
_TRAILING_WORDS = ("as of now", "as of today", "from now on", "instead", "now")
_RELATION_WORDS = {"lives_in": "moved", "works_at": "joined", "deadline": "due"}
"""Additional words that express a predicate in a sentence."""
_CONJUNCTION = re.compile(r"(?:[\s,;:–—-]|\b(?:and|but|und|et|y)){1,8}\Z")
"""Punctuation and conjunctions before a clause. The count is limited because a search for `+\\Z` is quadratic."""
_CLAUSE_START = re.compile(r"(?:\A|[,;:–—(-]\s*|\b(?:and|but|und|et|y)\s+)\Z", re.IGNORECASE)
_CLAUSE_END = re.compile(r"\s*(?:\Z|[,;)]|[.!]\Z)")
_NO_CONTENT = frozenset("he she it they we i".split())

LEAST_QUOTE = 0.75
"""A text quotes a to-do if it contains at least this share of the words of the to-do."""

MAX_VALUE_WORDS = 6
"""Maximum words of a value. Longer text after a label probably makes several statements."""


class Wording(NamedTuple):
    """A correction, parsed from the old and new words that the caller gave."""

    was: str
    """The wrong or former statement or value, or ""."""
    now: str
    """The new statement or value, as given, or ""."""
    never_held: bool = False
    """True if the old statement was never true; False if it was true in the past."""
    outcome: Literal["", "done", "cancelled"] = ""
    """The new state of a to-do according to `now`; "" if `now` gives none."""
    reason: str = ""
    """The reason why a to-do was cancelled, or ""."""


class StatementPlace(NamedTuple):
    """A statement: a sentence of a text, or a whole to-do or table row, with its offsets."""

    line: int
    start: int
    end: int
    text: str
    sentence: int = 1
    """Position of the statement within its line, from 1."""
    heading: str = ""
    box: str | None = None
    """A space for an open to-do, as in its checkbox; None for other statements."""
    is_row: bool = False
    """True for a row of a table."""


def read_wording(was: str, now: str, *, has_date: bool = False) -> Wording:
    """Parse the old and new words of a correction, including phrases such as "that was wrong" or "done".

    If only old words are given, the old statement was never true, or, with a date, was true until that date.
    """
    old, new = _SAYS_WRONG.sub("", was.strip()).strip(), now.strip()
    says_wrong = old != was.strip()
    if _SAYS_WRONG.fullmatch(new):
        says_wrong, new = True, ""
    cancelled = _CANCELLED.fullmatch(new)
    outcome: Literal["", "done", "cancelled"] = (
        "done" if _DONE.fullmatch(new.strip(" .!")) else "cancelled" if cancelled else ""
    )
    reason = cancelled["reason"].strip(" .)") if cancelled else ""
    never_held = says_wrong or bool(old and not new and not has_date)
    return Wording(old, new, never_held, outcome, reason)


def statements(text: str, *, closed: bool = False) -> Iterator[StatementPlace]:
    """Yield the statements of a text. Headings and code are skipped.

    Ticked to-dos and lines with struck text are skipped too, unless `closed` is set.
    """
    offset, fenced, heading = 0, False, ""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        fenced ^= line.lstrip().startswith(("```", "~~~ "))
        below = lines[number] if number < len(lines) else ""
        is_heading = line.lstrip().startswith("#") or bool(line.strip() and _UNDERLINE.fullmatch(below))
        if is_heading and not fenced:
            heading = line.strip("# \t\r")
        lead = _LEAD.match(line)
        assert lead is not None  # every part of the pattern is optional
        start = (_ENTRY.match(line, lead.end()) or lead).end()
        is_todo = "[ ]" in lead[0]
        is_closed = not closed and ("[x]" in lead[0].lower() or STRUCK.search(line))
        is_row = line.startswith("|", start)
        parts = [line[start:]]
        if fenced or is_heading or is_closed or not _LETTER.search(line):
            parts = []
        elif not is_todo and not is_row:
            parts = [part for sentence in split_sentences(parts[0]) for part in _CJK_STOP.split(sentence)]
        start += offset
        for count, part in enumerate(parts, 1):
            if trimmed := part.strip():
                begin = start + part.index(trimmed)
                place = StatementPlace(number, begin, begin + len(trimmed), trimmed, count, heading)
                yield place._replace(box=" " if is_todo else None, is_row=is_row)
            start += len(part)
        offset += len(line) + 1


# Comparing words


def stems(text: str) -> frozenset[str]:
    return stem_words(text.lower())


def has_value(sentence: str, value: str) -> bool:
    """Return True if a sentence contains the value as whole words, or anywhere in a script without spaces.

    Case and accents are ignored.
    """
    value = value.strip().rstrip(".!")
    folded = fold_name(value)
    whole = bool(folded) and f" {folded} " in f" {fold_name(sentence)} "
    return whole or (has_cjk(value) and _find_words(sentence, value) is not None)


def _find_words(text: str, words: str) -> "re.Match[str] | None":
    """Return the first match of `words` in a text; only whole words match, unless the script has no spaces."""
    pattern = re.escape(words) if has_cjk(words) else rf"(?<!\w){re.escape(words)}(?!\w)"
    return re.search(pattern, text, re.IGNORECASE) if words else None


def relation_stems(predicate: str) -> frozenset[str]:
    """Return the stems of the words that express a predicate in a sentence."""
    name = facts.canonical_predicate(predicate)
    words = [predicate, *facts.predicate_spellings(name), _RELATION_WORDS.get(name, "")]
    return stems(" ".join(words).replace("_", " "))


def states_fact(sentence: str, predicate: str, values: Iterable[str]) -> bool:
    """Return True if a sentence contains one of the spellings of a fact's value, and a word of its predicate."""
    is_value = any(has_value(sentence, value) for value in values)
    return is_value and not stems(sentence).isdisjoint(relation_stems(predicate))


def statements_of_fact(text: str, predicate: str, values: Sequence[str]) -> list[StatementPlace]:
    """Return the sentences that contain one of the spellings of a fact's value.

    If some of these sentences also contain a word of the predicate, only those are returned.
    """
    places = [place for place in statements(text) if any(has_value(place.text, value) for value in values)]
    return [place for place in places if stems(place.text) & relation_stems(predicate)] or places


def split_label(text: str, subject: str, predicate: str, *, strict: bool = False) -> tuple[bool, str]:
    """Return True and the rest of the text if the text begins with the predicate; else False and the whole text.

    Words that name the subject, articles and pronouns may precede the predicate; any words may if ":" or "is" follows
    it. "Alice moved to Rome" has the label "moved"; with `strict`, only if that verb belongs to the predicate. A
    final full stop and trailing words such as "now" are dropped.
    """
    words = _without_trailing(text).split()
    names = {*fold_name(subject).split(), *_LABEL_LEADS}
    start = 0
    while start < len(words) - 1 and set(_plain(words[start]).split()) <= names:
        start += 1
    for begin in range(start, -1, -1):
        end = _end_of_label(words, begin, predicate)
        if end:
            return True, _after_label(words[end:])
    verb = _plain(words[start]) if words else ""
    own = _RELATION_WORDS.get(facts.canonical_predicate(predicate), "")
    if verb and start < len(words) - 1 and (verb == own if strict else verb in _CHANGE_VERBS):
        return True, _after_label(words[start + 1 :])
    label = _VALUE.fullmatch(_without_trailing(text))
    last = re.sub(r" (?:is|are|was)$", "", fold_name(label[1])).split()[-1:] if label else []
    if label and last == fold_name(predicate).split()[-1:]:
        return True, _after_label(label[2].split())
    return False, " ".join(words)


def _plain(word: str) -> str:
    return fold_name(re.sub(r"['’]s\Z", "", word.strip(",:;")))


def _end_of_label(words: list[str], begin: int, predicate: str) -> int:
    """Return the index after the words of a predicate that start at `begin`; 0 if there are none."""
    spellings = {predicate, facts.canonical_predicate(predicate)}
    for spelling in sorted(spellings):
        wanted = [word for word in spelling.split("_") if word not in _SMALL_LABEL_WORDS]
        place = begin
        while wanted and place < len(words):
            parts = _plain(words[place]).split()
            part, head = " ".join(parts), " ".join(wanted[: len(parts)])
            if part and (part == head or stems(part) == stems(head) != frozenset()):
                wanted = wanted[len(parts) :]
            elif place == begin or _plain(words[place]) not in _SMALL_LABEL_WORDS:
                break
            place += 1
        if not wanted and begin < place < len(words):
            return place
    return 0


def _after_label(words: list[str]) -> str:
    """Return the words after a label, without leading words such as "is" or "now to"."""
    while len(words) > 1:
        if len(words) > 2 and words[0].lower() in _CHANGE_VERBS and words[1].lower() == "to":
            words = words[2:]
        elif words[0].lower().strip(":=") in {*_AFTER_LABEL, ""}:
            words = words[1:]
        else:
            break
    return " ".join(words)


def _without_trailing(text: str) -> str:
    """Remove a final full stop or exclamation mark, and trailing words such as "now" or "as of today"."""
    text = text.strip()
    bare = text.rstrip("! ") if text.endswith("!") else text.removesuffix(".").rstrip()
    words = next((words for words in _TRAILING_WORDS if bare.lower().endswith(f" {words}")), "")
    return bare[: len(bare) - len(words)].rstrip(" ,") if words else bare


def match_fact(wording: Wording, subject: str, predicate: str, value: str) -> int:
    """Return how well the old words of a correction match a fact, from 0 (no match) to 3 (certain)."""
    was = wording.was
    labelled, rest = split_label(was, subject, predicate)
    if any(facts.object_key(text) == facts.object_key(value) for text in (was, rest)):
        return 3
    if labelled and (has_value(value, rest) or has_value(rest, value)):
        return 3
    if has_value(value, was):
        return 2
    if has_value(was, value):
        has_label = bool(stems(was) & stems(predicate.replace("_", " ")))
        is_exact = any(map(str.isdigit, value)) and bool(value_in_place(wording.now, was, value))
        return 2 if has_label else int(is_exact)
    return 0


def new_value(wording: Wording, subject: str, predicate: str, value: str) -> str:
    """Return the new value of a fact: the new words of the correction without words that repeat the predicate.

    If the old words are only a part of the value, the new words replace that part.
    """
    was, now = wording.was, wording.now
    labelled_was, _ = split_label(was, subject, predicate) if was else (False, "")
    labelled, rest = split_label(now, subject, predicate)
    if in_place := value_in_place(now, was, value):
        return min(in_place, rest, key=len) if labelled else in_place
    if labelled or labelled_was or not has_value(value, was):
        is_abbreviated = value.endswith(".") and now.endswith(f"{rest}.")  # as in "Acme Inc."
        return f"{rest}." if is_abbreviated else rest
    left, place, right = cut_words(value, was)
    return f"{left}{now}{right}" if place and (left or right) else now


def value_in_place(now: str, was: str, value: str) -> str:
    """Return the words of `now` that take the place of the value in `was`; "" if there are none.

    If `was` is "the rent is EUR 900 a month", `value` is "EUR 900" and `now` is "his rent is EUR 950 a month", the
    result is "EUR 950". The words after the value must be equal in `was` and `now`.
    """
    match = _find_words(was, value)
    if match is None or not now:
        return ""
    before, after = was[: match.start()].split(), was[match.end() :].rstrip(".!").split()
    if not before and not after:
        return ""
    for start in range(max(1, len(before))):  # try the longest context before the value first
        words = r"\s+".join([*map(re.escape, before[start:]), r"(\S.*?)", *map(re.escape, after)])
        begin = r"(?<!\S)" if before else r"\A"
        if match := re.search(rf"{begin}{words}[.!]*\Z", " ".join(now.split()), re.IGNORECASE):
            new = match[1].rstrip(".! ").strip(" ,;")
            return f"{new}." if value.endswith(".") and now.endswith(f"{new}.") else new
    return ""


def _folded(words: list[str]) -> list[str]:
    return [word.casefold() for word in words]


def quotes_task(words: str, task: str) -> bool:
    """Return True if `words` contains nearly all words of the to-do `task`, compared by stem."""
    own = stems(task)
    return bool(own) and len(own & stems(words)) >= LEAST_QUOTE * len(own)


def label_of(text: str) -> tuple[frozenset[str], str]:
    """Return the stems of the label, and the value, of a text such as "Budget: 3" or "The owner is Paula".

    Both are empty if the text has another form.
    """
    match = _VALUE.fullmatch(_without_trailing(text))
    if match is None:
        return frozenset(), ""
    return stems(_LABEL_END.sub("", match[1])), _after_label(match[2].split())


# Editing a statement


def cut_words(text: str, words: str) -> tuple[str, str, str]:
    """Split a text into the parts before, at and after the first occurrence of `words`.

    If the words are in a link, the middle part is the whole link. If the words do not occur, it is "".
    """
    match = _find_words(text, words)
    if match is None:
        return text, "", ""
    links = (link.span() for link in _LINK.finditer(text))
    start, end = next(((a, b) for a, b in links if a <= match.start() < b), match.span())
    end = max(end, match.end())
    return text[:start], text[start:end], text[end:]


def rewrite(sentence: str, was: str, now: str, names: str) -> str | None:
    """Return a sentence with `was` replaced by `now`, or None if the result would be uncertain.

    `names` contains the words that name the subject. If `now` is "", the clause with the old words is removed; the
    result is "" if the sentence makes no other statement. If `now` repeats all of the sentence, it replaces the
    sentence.
    """
    old = was.rstrip(".!")
    left, place, right = cut_words(sentence, old)
    if not place:
        return _rewrite_difference(sentence, was, now, names) if now else None
    rest = stems(left + right) - stems(names) - _NO_CONTENT
    if not now:
        if not rest:
            return ""
        if _CLAUSE_START.search(left) and _CLAUSE_END.match(right) and left.strip():
            return _CONJUNCTION.sub("", left.rstrip()) + right
        return None
    new = _without_adjacent(now, left, right)
    whole = not right.strip(".! ")
    repeated = rest & stems(new)
    if new == now and repeated and len(now.split()) > len(old.split()) + 1:
        if rest <= stems(now):
            return now.rstrip(".!") + right if whole and right else now
        if len(repeated) > 1:
            return None
    elif not left and whole:
        return new if new.endswith((".", "!", "?", "。")) else new + right
    elif not left and not stems(new) & stems(names):
        subject = set(fold_name(names).split())
        lead = itertools.takewhile(lambda word: fold_name(word) in subject, place.split())
        new = " ".join([*lead, new])
    return left + (new.rstrip(".!") if right.startswith((".", "!")) else new) + right


def _rewrite_difference(sentence: str, was: str, now: str, names: str) -> str | None:
    """Replace the words in which `was` and `now` differ, if the sentence contains all words of `was` in any order.

    Return None if they differ in several places, or if the words to replace do not occur exactly once.
    """
    old, new = was.rstrip(".!").split(), now.rstrip(".!").split()
    matcher = SequenceMatcher(None, _folded(old), _folded(new), autojunk=False)
    changes = [row for row in matcher.get_opcodes() if row[0] != "equal"]
    if len(changes) != 1 or changes[0][0] != "replace" or not stems(was) - stems(names) <= stems(sentence):
        return None
    _, start, end, new_start, new_end = changes[0]
    words = " ".join(old[start:end])
    left, place, right = cut_words(sentence, words)
    if len(old) < 3 or not place or _find_words(right, words):
        return None
    return left + " ".join(new[new_start:new_end]) + right


def _without_adjacent(new: str, before: str, after: str) -> str:
    """Remove words from both ends of `new` that would repeat the words next to the insertion point.

    If "lives in Oslo" replaces "Paris" in "Alice lives in Paris", the result is "Oslo".
    """
    words, left, right = new.split(), before.split(), after.rstrip(".! ").split()
    most = len(words) - 1  # at least one word remains
    counts = range(min(most, len(left)), 0, -1)
    start = next((n for n in counts if _folded(words[:n]) == _folded(left[-n:])), 0)
    counts = range(min(most - start, len(right)), 0, -1)
    end = next((n for n in counts if _folded(words[-n:]) == _folded(right[:n])), 0)
    return " ".join(words[start : len(words) - end]) if start or end else new


def replace_labelled(sentence: str, value: str) -> str | None:
    """Replace the value in a sentence such as "Budget: 3". Return None if it is not a label and one value."""
    match = _VALUE.fullmatch(sentence.strip())
    if match is None or not _is_single_value(match[2]):
        return None
    kept = _PREPOSITION.match(match[2]) if not _PREPOSITION.match(value) else None
    return match[1] + (kept[0] if kept else "") + value.rstrip(".!") + match[3]


def replace_after_prefix(sentence: str, text: str) -> str | None:
    """Replace the end of a sentence with that of a text that begins with the same words.

    Return None if fewer than two words are equal, or if the end of the sentence is not a single value.
    """
    old, new = sentence.rstrip(".!").split(), _without_trailing(text).split()
    pairs = enumerate(zip(_folded(old), _folded(new), strict=False))
    count = next((n for n, (one, other) in pairs if one != other), min(len(old), len(new)))
    if count < 2 or not new[count:] or not _is_single_value(" ".join(old[count:])):
        return None
    return " ".join([*old[:count], *new[count:]]) + sentence[len(sentence.rstrip(".!")) :]


def _is_single_value(text: str) -> bool:
    """Return True if a text has at most MAX_VALUE_WORDS words and is not a list."""
    return len(text.split()) <= MAX_VALUE_WORDS and not re.search(r"[,;] |\band\b", text)


def replace_in_page(truth: str, place: StatementPlace, new: str) -> str:
    """Return the compiled truth (the text above the timeline) with one sentence replaced or removed.

    A line that becomes empty is removed too.
    """
    text = truth[: place.start] + new + truth[place.end :]
    if new:
        return text
    begin = text.rfind("\n", 0, place.start) + 1
    end = text.find("\n", place.start)
    end = len(text) if end < 0 else end
    lead = _LEAD.match(text, begin, end)
    left, right = text[lead.end() if lead else begin : place.start], text[place.start : end]
    if not (left + right).strip():
        return text[:begin] + text[end + 1 :]
    if right.strip():
        return text[: place.start] + right.lstrip() + text[end:]
    return text[: place.start].rstrip(" ") + right + text[end:]


def strike_in_notebook(text: str, place: StatementPlace, new: str, day: str) -> str:
    """Strike through a statement in a notebook file and add `new`, if given, as a new list item if possible."""
    begin = text.rfind("\n", 0, place.start) + 1
    lead, rest = text[begin : place.start], text[place.end :]
    head = f"{text[: place.start]}~~{place.text}~~ ({day})"
    if not new:
        return head + rest
    if rest.partition("\n")[0].strip() or not _LEAD.fullmatch(lead):
        return f"{head} {new}{rest}"
    line_end, _, below = rest.partition("\n")
    return f"{head}{line_end}\n{lead}{new}\n{below}"


def close_task(text: str, place: StatementPlace, wording: Wording, day: str | None, today: str) -> str | None:
    """Return the text with a to-do ticked or cancelled, or None if its line has no open checkbox.

    A ticked to-do gets the day, if one is given. A cancelled to-do is struck through, with the day, or else today,
    and the reason.
    """
    begin = text.rfind("\n", 0, place.start) + 1
    box = text.find("[ ]", begin, place.start)
    if box < 0:
        return None
    if wording.outcome == "cancelled":
        why = f": {wording.reason}" if wording.reason else ""
        head = text[:box] + text[box + 3 : place.start].lstrip()
        return f"{head}~~{place.text}~~ (cancelled {day or today}{why}){text[place.end :]}"
    done = f" (done {day})" if day else ""
    return f"{text[:box]}[x]{text[box + 3 : place.end]}{done}{text[place.end :]}"
