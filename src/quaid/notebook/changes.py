"""Find the line that a removal, a correction or a finished task is about, and tick, strike or replace it.

No line is deleted: a finished to-do becomes `- [x]`, and any other line is struck through (`~~text~~`).
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from quaid.formats import sections
from quaid.notebook import classifier

_COMMAND_CLASSES = frozenset(
    """REMOVE PLEASE THE PREP MEMORY LIST ADD I ME MY YOU HE IT BE NOT NOW FIX DO_NOT MUST REMIND DONE RULE DUE COMMA
    POSSESSIVE WHAT DOES ALWAYS IF SHOW""".split()
)
"""Classes of words that say what to do, as opposed to the thing it is done to."""
_HINT_CLASSES = frozenset("REACH BUY LIKE LIVES PACK OUT EVERY".split())
"""Classes of words that a matching line need not contain. A line that contains them matches better."""

_PAST = dict(
    pair.split("=")
    for pair in """paid=pay sent=send bought=buy made=make got=get took=take wrote=write written=write brought=bring
    found=find told=tell met=meet sold=sell fed=feed rang=ring gave=give given=give spoke=speak built=build taken=take
    hung=hang swept=sweep mown=mow dealt=deal chose=choose""".split()
)
_DONE_BEFORE = (
    "done(?: with)?|finished|completed|tick(?:ed)?(?: off)?|check(?:ed)? off|fait|terminé|fini|erledigt|fertig|"
    "abgehakt|hecho|listo|terminado|已?完成|搞定|完了|済み"
)
_DONE_AFTER = (
    "done|finished|completed|sorted|erledigt|abgehakt|terminé|c['’]est fait|hecho|"
    "已完成|完成了|搞定了|办好了|完了|済み"
)
_DONE = re.compile(
    rf"(?:{_DONE_BEFORE})(?:\s*[:：]\s*|[\s、，,]+)(?P<task>.+)|"
    rf"(?P<before>.+?)(?:\s+(?:is|are|ist|est|está))?[\s,，、：:]*(?:{_DONE_AFTER})[.!。]?",
    re.IGNORECASE,
)
_HAVE_DONE = re.compile(
    r"(?:(?:i|we)(?:['’]ve| have)?(?: already| just| finally)? (?!(?:have|am|was|had|did|need|want)\b)|"
    r"j['’]ai (?:déjà |enfin )?|on a (?:déjà |enfin )?|ich habe? |wir haben |(?:ya )?he |(?:ya )?hemos |我?已经)"
    r"(?P<task>.+)",
    re.IGNORECASE,
)
_CORRECTION_LEAD = re.compile(
    r"^(?:(?:no+|nope|nah|actually|correction|sorry|wait|oops|hmm|update|edit|fix|in fact|hold on|scratch that|"
    r"i was wrong|i made a mistake|mistake on my part|my mistake|turns out|non|en fait|désolée?|pardon|attends|"
    r"erreur de ma part|je me suis trompée?|finalement|nein|nee|eigentlich|korrektur|moment|mein fehler|"
    r"ich habe mich (?:vertan|geirrt)|en realidad|corrección|perdón|espera|error mío|me equivoqué|"
    r"me he equivocado|al final|不对|其实|更正(?:一下)?|抱歉|等等|我?[说弄搞记]错了|"
    r"いや|実は|訂正|間違えた|すみません|待って|実際は)(?:\s*[-–—,:;，、：.。]\s*|\s+))+",
    re.IGNORECASE,
)


class NotebookLine(NamedTuple):
    """A list line of a notebook file."""

    path: str
    line: int
    text: str
    section: str
    box: str | None


class Subject(NamedTuple):
    """The words that a line must contain to match, and words that make a match better."""

    needed: tuple[str, ...]
    hints: tuple[str, ...]


def open_lines(path: str, text: str) -> Iterator[NotebookLine]:
    """Yield the list lines of a file that are neither ticked nor struck."""
    headed = sections.find_sections(text)
    starts = [(text.count("\n", 0, place.start) + 1, place.title) for place in headed]
    for item in sections.list_items(text):
        if item.box in (None, " ") and item.text and not item.text.startswith("~~"):
            title = next((title for start, title in reversed(starts) if start < item.line), "")
            yield NotebookLine(path, item.line, item.text, title, item.box)


def subject_of(text: str, language: str = "") -> Subject:
    """Return the words that say what a sentence is about."""
    needed: list[str] = []
    hints: list[str] = []
    for word in classifier.tag_words(text, language or classifier.guess_language(text)):
        if _COMMAND_CLASSES.intersection(word.classes):
            continue
        (hints if _HINT_CLASSES.intersection(word.classes) else needed).append(word.text)
    return Subject(tuple(dict.fromkeys(needed)), tuple(dict.fromkeys(hints)))


def find_subject(subject: Subject, lines: Iterable[NotebookLine]) -> list[NotebookLine]:
    """Return the lines that contain every required word. If some match better than others, return only those."""
    needed, hints = subject if subject.needed else (subject.hints, ())
    if not needed:
        return []
    ranked: list[tuple[tuple[bool, int], NotebookLine]] = []
    for line in lines:
        within = _Words(line.text)
        around = _Words(f"{line.section} {line.path}")
        own = sum(word in within for word in needed)
        if (own or any(word in _Words(line.section) for word in needed)) and all(
            word in within or word in around for word in needed
        ):
            exact = within.stems == {stem for word in needed for stem in _stems(word)}
            ranked.append(((exact, sum(word in within for word in hints)), line))
    best = max((rank for rank, _ in ranked), default=None)
    return [line for rank, line in ranked if rank == best]


def finished_task(text: str) -> tuple[str, bool] | None:
    """Return the task that a sentence reports as finished, and True if it says so explicitly ("done: …")."""
    text = text.strip()
    match = _DONE.fullmatch(text)
    if match:
        return (match["task"] or match["before"]).strip(), True
    match = _HAVE_DONE.fullmatch(text.rstrip(".!。"))
    return (match["task"].strip(), False) if match else None


def find_task(task: str, lines: Iterable[NotebookLine]) -> list[NotebookLine]:
    """Return the open to-dos that a finished task is about, which are those that share most of its words."""
    words = [
        word.text for word in classifier.tag_words(task, classifier.guess_language(task)) if _tells(word)
    ]
    ranked = []
    for line in lines:
        within = _Words(line.text)
        shared = sum(word in within for word in words)
        if shared and shared >= 0.6 * min(len(words), len(within)) and shared >= 0.5 * len(words):
            ranked.append((shared, line))
    best = max((shared for shared, _ in ranked), default=0)
    return [line for shared, line in ranked if shared == best]


def find_corrected(text: str, lines: Iterable[NotebookLine]) -> NotebookLine | None:
    """Return the line that a correction clearly replaces, or None."""
    tagged = classifier.tag_words(strip_correction(text), classifier.guess_language(text))
    words = [word.text for word in tagged if _tells(word)]
    names = [word.text for word in tagged if "NAME" in word.classes]
    ranked = []
    for line in lines:
        within = _Words(f"{line.text} {line.section}")
        shared = sum(word in within for word in words)
        size = len(_Words(line.text))
        if names and not any(name in within for name in names):
            continue
        if shared and (shared >= 2 or size <= 2):
            ranked.append((shared / max(1, min(len(words), size)), line))
    ranked.sort(key=lambda pair: -pair[0])
    if not ranked or ranked[0][0] < 0.5 or (len(ranked) > 1 and ranked[1][0] > ranked[0][0] - 0.15):
        return None
    return ranked[0][1]


def strip_correction(text: str) -> str:
    """Remove the words that announce a correction, such as "no," or "actually"."""
    rest = _CORRECTION_LEAD.sub("", text.strip()).strip()
    return rest[:1].upper() + rest[1:] if rest else text.strip()


def mark_line(text: str, line: NotebookLine, added: str = "") -> str | None:
    """Return the file's text with the line ticked or struck, and `added` below it; None if the line is gone."""
    every = text.split("\n")
    row = every[line.line - 1] if line.line <= len(every) else ""
    if line.text not in row:
        return None
    end = "\r" if row.endswith("\r") else ""
    before, _, _ = row.rpartition(line.text)
    if line.box is not None and not added:
        every[line.line - 1] = re.sub(r"\[ \]", "[x]", row, count=1)
    else:
        every[line.line - 1] = f"{before}~~{line.text}~~{end}"
    if added:
        every.insert(line.line, f"{before}{added}{end}")
    return "\n".join(every)


def _tells(word: classifier.TaggedWord) -> bool:
    """Return True if a word says what a sentence is about, unlike small words such as "the"."""
    return not {
        "THE",
        "PREP",
        "COMMA",
        "POSSESSIVE",
        "PLEASE",
        "BE",
        "NOT",
        "FIX",
        "NOW",
        "MY",
        "I",
    }.intersection(word.classes)


class _Words:
    """The words of a text that carry its meaning.

    They are compared regardless of plural and past tense, and also in scripts without spaces.
    """

    def __init__(self, text: str) -> None:
        self._text = text.casefold()
        language = classifier.guess_language(text)
        self._unspaced = language in ("zh", "ja")
        self._words = [word.text for word in classifier.tag_words(text, language) if _tells(word)]
        self.stems = _stems(self._text)

    def __len__(self) -> int:
        return len(self._words)

    def __contains__(self, word: str) -> bool:
        if self._unspaced:
            return word in self._text
        return _stems(word.casefold()) <= self.stems


def _stems(text: str) -> set[str]:
    return {_stem(part) for part in re.findall(r"[^\W_]+", text)}


def _stem(word: str) -> str:
    word = _PAST.get(word, word)
    for end in ("ing", "ied", "ies", "ed", "es", "s", "e"):
        if word.endswith(end) and len(word) - len(end) >= 3:
            word = word[: -len(end)]
            break
    if word.endswith("y") and len(word) > 3:
        word = word[:-1]
    return word[:-1] if len(word) > 4 and word[-1] == word[-2] else word
