"""Finding nodes by words: title before tag, project and status, these before the summary, that before the body.

A field either holds one of the words or does not; its weight counts once. Of nodes with the same score those come
first that hold more of the words, then those that were updated last: recency alone would bury what is old and stable.
Knows fields and weights. Does not know the disk.
"""

from quaid.core.patterns import pattern
from quaid.kb.catalog import Catalog, File
from quaid.kb.node import Node
from quaid.records import NamedTuple

TITLE, TAG, SUMMARY, BODY = 100, 50, 20, 5
MOST = 10

_WORD = pattern(r"[^\W_]+(?:[-'][^\W_]+)*")
COMMON = frozenset(
    "a an and are as at be before by can do does for from had has have how i if in into is it its me my not of on or"
    " our should that the their then there these this to use used using was we what when where which who why will"
    " with would you your".split()
)
"""Words that say nothing of what is meant, unless the question has no others."""


class Match(NamedTuple):
    node: Node
    score: int
    reasons: tuple[str, ...]
    """Which fields matched: title, tag, project, status, summary, body."""
    words: int
    """How many of the words it holds."""


def words(context: str) -> list[str]:
    """The words of a question that are looked for, in small letters; a plural is looked for as its singular."""
    every: list[str] = []
    for piece in context.split():  # most of them are a word
        every += [piece] if piece.isalnum() else _WORD.findall(piece)
    every = [word.lower() for word in every]
    telling = [word for word in every if word not in COMMON] or every
    return list(dict.fromkeys(map(_stem, telling)))


def _stem(word: str) -> str:
    for ending, rest in (("ies", "y"), ("sses", "ss"), ("s", "")):
        if len(word) > len(ending) + 2 and word.endswith(ending) and not word.endswith(("ss", "us", "is")):
            return word[: -len(ending)] + rest
    return word


def query(
    catalog: Catalog, context: str, *, most: int = MOST, filters: "Filters | None" = None
) -> list[Match]:
    """The nodes that match best."""
    wanted = words(context)
    if not wanted:
        return []
    found = []
    for file in _holding(catalog, wanted):
        node = catalog.node(file)
        if filters and not filters.take(node):
            continue
        held: set[str] = set()
        score, reasons = 0, []
        for name, weight, text in (
            ("title", TITLE, node.title),
            ("tag", TAG, " ".join(node.tags)),
            ("project", TAG, " ".join(node.projects)),
            ("status", TAG, node.status),
            ("summary", SUMMARY, node.summary),
        ):
            inside = _held(text.lower(), wanted)
            if inside:
                score += weight
                reasons.append(name)
                held |= inside
        inside = {word for word in wanted if _begins(catalog.texts, word, file.middle, file.end) >= 0}
        if inside:
            score += BODY
            reasons.append("body")
            held |= inside
        if score:
            found.append(Match(node, score, tuple(reasons), len(held)))
    found.sort(key=lambda match: (match.node.title.casefold(), match.node.id))
    found.sort(key=lambda match: (match.score, match.words, match.node.updated), reverse=True)
    return found[:most]


class Filters(NamedTuple):
    type: str = ""
    project: str = ""
    status: str = ""

    def take(self, node: Node) -> bool:
        return (
            (not self.type or self.type in node.tags)
            and (not self.project or self.project in node.projects)
            and (not self.status or node.status == self.status)
        )


def _held(text: str, wanted: list[str]) -> set[str]:
    return {word for word in wanted if word in text and _begins(text, word) >= 0}


def _begins(text: str, word: str, at: int = 0, end: int | None = None) -> int:
    """Where a word of the text begins with these letters."""
    at = text.find(word, at, end)
    if word[0] > "\u2e7f":  # scripts without spaces between words: one begins anywhere
        return at
    while at > 0 and text[at - 1].isalnum():
        at = text.find(word, at + 1, end)
    return at


def _holding(catalog: Catalog, wanted: list[str]) -> list[File]:
    """The files that hold any of the words: all are searched as one text, from one that does to the next."""
    files = [file for file in catalog.files.values() if file.end > file.start]
    found: dict[str, File] = {}
    for word in wanted:
        at, place = _begins(catalog.texts, word), 0
        while at >= 0:
            while files[place].end <= at:
                place += 1
            found[files[place].path] = files[place]
            at = _begins(catalog.texts, word, files[place].end)
    return list(found.values())
