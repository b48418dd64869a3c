"""Find nodes by words: title before tag, project and status, these before the summary, that before the body.

A field matches if it holds one of the words; its weight counts once. An ID, or the beginning of one, finds its node
first. The other properties weigh least, and count alone only if they hold every word: `observed` or `written` would
otherwise match every node. Nodes with the same score are ordered by how many of the words they hold, then by date:
recency alone would bury what is old and stable.
"""

import re
from typing import NamedTuple

from quaid.kb.catalog import Catalog, File
from quaid.kb.node import Node

ID, TITLE, TAG, SUMMARY, BODY, PROPERTY = 500, 100, 50, 20, 5, 1
MOST = 10

WHOLE_WORDS = 2
"""Words of up to so many letters match whole words only; longer ones match where a word begins with them."""

SHORTEST_ID = 6
"""Characters of an ID that are enough to mean its node, as in `ai-kb show`."""

_WORD = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*")
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
    """Which fields matched: id, title, tag, project, status, summary, body, property."""
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
        match = _match(catalog, file, node, wanted)
        if match is not None:
            found.append(match)
    found.sort(key=lambda match: (match.node.title.casefold(), match.node.id))
    found.sort(key=lambda match: (match.score, match.words, match.node.updated), reverse=True)
    return found[:most]


def _match(catalog: Catalog, file: File, node: Node, wanted: list[str]) -> Match | None:
    """Return which fields of a node hold which of the words; None if none of them counts."""
    fields = (
        ("id", ID, {word for word in wanted if _is_id_of(word, node)}),
        ("title", TITLE, _held(node.title.lower(), wanted)),
        ("tag", TAG, _held(" ".join(node.tags).lower(), wanted)),
        ("project", TAG, _held(" ".join(node.projects).lower(), wanted)),
        ("status", TAG, _held(node.status.lower(), wanted)),
        ("summary", SUMMARY, _held(node.summary.lower(), wanted)),
        ("body", BODY, {word for word in wanted if _begins(catalog.texts, word, file.middle, file.end) >= 0}),
    )
    reasons = [name for name, _, held in fields if held]
    score = sum(weight for _, weight, held in fields if held)
    words: set[str] = set().union(*(held for _, _, held in fields))
    held = _held(catalog.properties(file), wanted) - fields[0][2]
    if held and (score or len(held) == len(wanted)):
        reasons.append("property")
        score += PROPERTY
        words |= held
    return Match(node, score, tuple(reasons), len(words)) if score else None


def _is_id_of(word: str, node: Node) -> bool:
    return (
        len(word) >= SHORTEST_ID
        and not word.strip("0123456789abcdef-")
        and any(id.startswith(word) for id in (node.id, *node.merged, *node.inner))
    )


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
    """Return where a word of the text begins with these letters, or is these letters if they are few."""
    at = text.find(word, at, end)
    if word[0] > "\u2e7f":  # scripts without spaces between words: one begins anywhere
        return at
    is_whole = len(word) <= WHOLE_WORDS
    while (at > 0 and text[at - 1].isalnum()) or (is_whole and at >= 0 and _goes_on(text, at + len(word))):
        at = text.find(word, at + 1, end)
    return at


def _goes_on(text: str, at: int) -> bool:
    """Return whether a word has more letters from here on than the s of a plural."""
    rest = text[at : at + 2]
    return rest[:1].isalnum() and not (rest[0] == "s" and not rest[1:].isalnum())


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
