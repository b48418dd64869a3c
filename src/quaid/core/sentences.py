"""Sentences of a markdown text, and whom they are about.

A light reading of English for the search for contradictions: where a sentence begins and ends, in which line it
stands, and which name or pronoun is the subject of a verb in it. It prefers silence to a guess.
"""

import re
from typing import NamedTuple

from quaid.core import fences
from quaid.core.facts import unlinked
from quaid.core.names import fold

OWN = ""
"""The subject is whom the page is about."""

_BLOCK = re.compile(r"\n[ \t]*(?=\n)|\n(?=[ \t]*(?:[-*+]|\d+[.)]|\#{1,6}|\|)[ \t])")
_ABBREVIATIONS = (
    "Inc",
    "Ltd",
    "Dr",
    "Mr",
    "Ms",
    "Mrs",
    "St",
    "Co",
    "Jr",
    "vs",
    "etc",
    "Corp",
    "Prof",
    "approx",
)
_END = re.compile(
    r"[.!?](?<!\b[A-Z]\.)"
    + "".join(rf"(?<!\b{word}\.)" for word in _ABBREVIATIONS)
    + r"""["”')\]]*(?=\s|\Z)|;(?=\s)"""
)
WINDOW = 2_000
"""Characters before and behind a word that are read at most."""
MOST_BEFORE = 5
"""Sentences before one that are asked whom its pronoun means."""

_INLINE_CODE = re.compile(r"`[^`\n]*`")
_VISIBLE = re.compile(r"[^\n]")
_LEAD = re.compile(r"[ \t]*(?:>[ \t]*)*(?:(?:[-*+]|\d+[.)])[ \t]+|\#{1,6}[ \t]+)?")
_QUOTE_MARK = re.compile(r"(?<=\n)[ \t]*>[ \t]?")
_MARKS = re.compile(r"\*\*|__|(?<!\w)[*_]|[*_](?!\w)|~~")
_MD_LINK = re.compile(r"\[([^\[\]]*)\]\(([^()\s]*)\)")
_PAGE_PATH = re.compile(r"(?:\.\.?/)*+([\w/.-]+?)\.(?:md|markdown|org)\Z")

_SOFT = frozenset(
    (
        "has had have having do does was were is are been be got did made also then later finally eventually recently"
        " formally officially amicably quietly abruptly suddenly just since already again now soon subsequently"
        " voluntarily who himself herself both a an the"
    ).split()
)
_WHEN = re.compile(
    r"^(?:(?:in|on|by|around|since|from|until|during|at the (?:end|start|beginning) of)\s+)?(?:early|mid|late|spring"
    r"|summer|autumn|fall|winter)?[\s-]*(?:of\s+)?(?:\d{1,2}(?:st|nd|rd|th)?\s+)?(?:(?:january|february|march|april|may|june"
    r"|july|august|september|october|november|december)\s*(?:\d{1,2},?\s*)?)?(?:(?:19|20)\d\d(?:-\d\d){0,2})\s*[,:–—-]?\s*"
    r"|^(?:update|note|news|then|later|eventually|finally|afterwards|today|meanwhile|sadly"
    r"|last year|this year)\b[,:]?\s*",
    re.IGNORECASE,
)
_BOUNDARY = re.compile(
    r"[,;:()—–]|\s-\s|\b(?:and|but|or|then|which|who|that|while|when|because|after|since|before|until|as|so|though"
    r"|although|where)\b",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"(?:[A-ZÀ-ÖØ-Þ][\w'’.-]*|(?<![\w-])[\w-]+(?:/[\w.-]+)+)"
    r"(?:\s+(?:(?:van|von|de|da|der|bin|al|la)\s+)*(?:[A-ZÀ-ÖØ-Þ][\w'’.-]*))*"
)
_PRONOUN = re.compile(r"(?:he|she|they)\Z", re.IGNORECASE)
_ROLE = re.compile(
    r"(?:designer|engineer|founder|co-?founder|ceo|cto|cfo|coo|head|lead|vp|director|manager|partner|investor"
    r"|researcher|writer|sales|product|professor|chief|senior|principal|consultant|analyst|developer|teacher|lawyer"
    r"|joined|worked|met|was|studied|previously|formerly|currently|now|born|lives|married|moved|started|began|became"
    r"|served|ran|built|led|hired|retired|after|before|since|no|not|both|up|until|according)\b",
    re.IGNORECASE,
)
_QUALIFIED = re.compile(r"\s+(?:(?:of|from|at|in)\s|\w+ly\Z)")
_MET = re.compile(
    r"\b(?:hired|met|with|knows|married|told|managed|manages|mentored|mentors|introduced|and|replaced|succeeded|by)\s+"
    r"([A-ZÀ-ÖØ-Þ][\w'’-]*(?:\s+[A-ZÀ-ÖØ-Þ][\w'’-]*)*)"
)
_AFTER_ROLE = re.compile(r"\s+(?:at|of|in|for|from|with)\b")


class Sentence(NamedTuple):
    """One sentence as plain text; links are the slugs that they name."""

    text: str
    line: int
    """Of its beginning, from 1."""
    before: tuple[str, ...]
    """The sentences before it in the same paragraph."""


class Reader(NamedTuple):
    """Whose page it is."""

    names: frozenset[str]
    """All its names, folded, the parts of a person's name among them."""
    is_person: bool


def readable(text: str) -> str:
    """The text with code and comments blanked out; every other character keeps its place."""
    spans = (
        [(block.start, block.end) for block in fences.find(text)] if "```" in text or "~~~" in text else []
    )
    if "`" in text:
        spans += [match.span() for match in _INLINE_CODE.finditer(text)]
    start = text.find("<!--")
    while start >= 0 and (end := text.find("-->", start)) >= 0:
        spans.append((start, end + 3))
        start = text.find("<!--", end)
    kept: list[str] = []
    position = 0
    for first, last in sorted(spans):
        if last > position:
            first = max(first, position)
            kept += [text[position:first], _VISIBLE.sub(" ", text[first:last])]
            position = last
    return "".join([*kept, text[position:]]) if kept else text


class Block(NamedTuple):
    """A paragraph or list item, and where its sentences end."""

    start: int
    end: int
    text: str
    cuts: tuple[int, ...]


def block_at(text: str, position: int) -> Block:
    """The paragraph, list item or heading around a place of a readable text."""
    low, high = max(0, position - WINDOW), min(len(text), position + WINDOW)
    start = max((match.end() for match in _BLOCK.finditer(text, low, position)), default=low)
    following = _BLOCK.search(text, position, high)
    end = following.start() if following else high
    lead = _LEAD.match(text, start, end)
    start = lead.end() if lead else start
    body = text[start:end]
    if ">" in body:
        body = _QUOTE_MARK.sub(lambda mark: " " * len(mark[0]), body)
    return Block(start, end, body, (0, *(match.end() for match in _END.finditer(body)), len(body)))


def sentence_at(
    text: str, position: int, first_line: int = 1, block: Block | None = None
) -> tuple[Sentence, int] | None:
    """The sentence around a place of a readable text, and the place within it; None in a task or a quotation.

    `block` is the paragraph around the place, if the caller has it already.
    """
    block = block or block_at(text, position)
    place = position - block.start
    if place < 0 or block.text.startswith(("[ ]", "|")):
        return None
    cuts = block.cuts
    index = next(each for each in range(len(cuts) - 1) if cuts[each + 1] > place or each == len(cuts) - 2)
    raw = block.text[cuts[index] : cuts[index + 1]]
    head = plain(block.text[cuts[index] : place])
    if _quoted(head):
        return None
    tail = plain(block.text[place : cuts[index + 1]])
    begin = block.start + cuts[index] + len(raw) - len(raw.lstrip())
    line = first_line + text.count("\n", 0, begin)
    spans = [(cuts[each], cuts[each + 1]) for each in range(max(0, index - MOST_BEFORE), index)]
    earlier = tuple(plain(block.text[low:high]).strip() for low, high in spans)
    head = head.lstrip()
    return Sentence(head + tail.rstrip(), line, earlier), len(head)


def plain(text: str) -> str:
    """Text without emphasis, and with the slugs of links in place of the links."""
    text = unlinked(text)
    if "](" in text:
        text = _MD_LINK.sub(_link_target, text)
    return re.sub(r"\s", " ", _MARKS.sub("", text))


def _link_target(link: "re.Match[str]") -> str:
    path = _PAGE_PATH.fullmatch(link[2])
    return path[1] if path else link[1]


def names_in(text: str) -> set[str]:
    """What in a text may be a name, folded: words with capitals, up to five in a row, and slugs in links."""
    found = set()
    for line in text.split("\n"):
        for match in _NAME.finditer(plain(line)):
            words = match[0].split()[:20]
            for first in range(len(words)):
                found |= {
                    fold(" ".join(words[first:last]))
                    for last in range(first + 1, min(first + 5, len(words)) + 1)
                }
    return found


def _quoted(head: str) -> bool:
    return head.count('"') % 2 == 1 or head.count("“") > head.count("”") or head.count("«") > head.count("»")


def subjects(sentence: Sentence, place: int, reader: Reader) -> list[str]:
    """Whom the verb at a place of a sentence is about: OWN or folded names; nobody when it is not clear."""
    head = _without_soft_end(_without_times(sentence.text[:place]).rstrip(" ,")).strip()
    pair = re.fullmatch(rf"({_source(_NAME)})\s+and\s+({_source(_NAME)})", head)
    if pair:
        return [_named(each, reader) for each in (pair[1], pair[2])]
    cuts = list(_BOUNDARY.finditer(sentence.text, 0, place))
    last = cuts[-1] if cuts else None
    clause = sentence.text[last.end() if last else 0 : place].strip()
    clause = _without_soft_end(_without_times(clause)).strip(" ,")
    if clause:
        return _of_clause(clause, sentence, place, reader)
    if last and last[0].lower() == "who":
        return _antecedent(sentence.text[: last.start()].rstrip(" ,"), reader)
    return _leading(sentence, reader) if head else [OWN]


def _of_clause(clause: str, sentence: Sentence, place: int, reader: Reader) -> list[str]:
    if _PRONOUN.match(clause):
        behind = fold(sentence.text[place:])
        heard = _names(sentence.text[: place - len(clause) - 1])
        if any(not _is_own(each, reader) and fold(each) not in behind for each in heard):
            return []
        return _meant(sentence, reader)
    name = _NAME.match(clause)
    if not name or name[0].endswith(("'s", "’s", "s'")):
        return [OWN] if _ROLE.match(clause) and not name else []
    if name.end() == len(clause):
        return [_named(name[0], reader)]
    rest = clause[name.end() :]
    return [OWN] if _is_own(name[0], reader) and _QUALIFIED.match(rest) else []


def _meant(sentence: Sentence, reader: Reader) -> list[str]:
    """Whom a pronoun means: the subject of the sentence before, if nobody else was spoken of in it."""
    for number, earlier in enumerate(reversed(sentence.before)):
        met = [match[1] for match in _MET.finditer(earlier)]
        if number == 0 and any(not _is_own(each, reader) for each in met):
            return []
        lead = _lead_name(earlier)
        if lead and not _PRONOUN.fullmatch(lead):
            return [_named(lead, reader)]
    return [OWN] if reader.is_person else []


def _antecedent(head: str, reader: Reader) -> list[str]:
    found = re.search(rf"({_source(_NAME)})\Z", head)
    return [_named(found[1], reader)] if found else []


def _leading(sentence: Sentence, reader: Reader) -> list[str]:
    """The subject of a sentence whose later verbs go without one."""
    lead = _lead_name(sentence.text)
    if lead is None:
        return []
    if _PRONOUN.fullmatch(lead):
        return _of_clause(lead, Sentence(lead, 1, sentence.before), len(lead), reader)
    return [_named(lead, reader)] if lead else [OWN]


def _lead_name(text: str) -> str | None:
    """The name or pronoun with which a sentence begins; "" when it begins without a subject; None for others."""
    text = _without_times(text.strip())
    first = text.split(" ", 1)[0].strip(",")
    if _PRONOUN.fullmatch(first):
        return first
    name = _NAME.match(text)
    if name and not _ROLE.match(text) and not _AFTER_ROLE.match(text, name.end()):
        return None if name[0].endswith(("'s", "’s")) or name[0].lower() in _OTHERS else name[0]
    return "" if name or _ROLE.match(text) else None


_OTHERS = {
    "her",
    "his",
    "their",
    "my",
    "our",
    "your",
    "the",
    "a",
    "an",
    "i",
    "we",
    "you",
    "it",
    "its",
    "this",
    "that",
}
_OTHERS |= {
    "these",
    "those",
    "both",
    "all",
    "everyone",
    "nobody",
    "somebody",
    "someone",
    "half",
    "several",
    "many",
}


def _names(text: str) -> list[str]:
    """The names of a text, without the words that are written large only because a sentence begins."""
    found = []
    for match in _NAME.finditer(text):
        words = [word for word in match[0].split() if word.lower() not in _SMALL]
        if words and not _ROLE.match(words[0]):
            found.append(" ".join(words))
    return found


_SMALL = _OTHERS | set(
    "in on after before when while since he she they then later by at early late mid until from during january"
    " february march april may june july august september october november december monday tuesday wednesday"
    " thursday friday saturday sunday".split()
)


def _named(name: str, reader: Reader) -> str:
    return OWN if _is_own(name, reader) else fold(name) or "?"


def _is_own(name: str, reader: Reader) -> bool:
    return fold(name) in reader.names


def _without_times(text: str) -> str:
    while True:
        shorter = _WHEN.sub("", text, count=1)
        if shorter == text:
            return text
        text = shorter.lstrip(" ,")


def _without_soft_end(text: str) -> str:
    """The text without the small words at its end: "Bo has since" is Bo."""
    while (words := text.rsplit(None, 1)) and words[-1].lower() in _SOFT:
        text = words[0] if len(words) == 2 else ""
    return text


def _source(waiting: "re.Pattern[str]") -> str:
    return waiting.pattern
