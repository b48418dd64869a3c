"""Parse English text: word lists and patterns of english.toml, word stems, and the sentences of Markdown."""

import re
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from quaid.model import plain_text
from quaid.model.plain_text import RuleFile, replace_wiki_links

READ_WINDOW = 2_000
"""At most this many characters are read before and after a match."""
MOST_PRECEDING = 5
"""The antecedent of a pronoun is searched for in at most this many preceding sentences."""

_BLOCK = re.compile(r"\n[ \t]*(?=\n)|\n(?=[ \t]*(?:[-*+]|\d+[.)]|\#{1,6}|\|)[ \t])")
_ABBREVIATIONS = "Inc Ltd Dr Mr Ms Mrs St Co Jr vs etc Corp Prof approx".split()
_MONTH_AFTER_DAY = "Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember"
"""After a day such as "3." these do not begin a sentence."""
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

At most one suffix of each row is removed, in order.
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
    spans = (
        [(block.start, block.end) for block in plain_text.find_fences(text)]
        if "```" in text or "~~~" in text
        else []
    )
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
    """Return the paragraph, list item or heading that contains an offset."""
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
    """Remove emphasis, and replace links with the slugs they name."""
    text = replace_wiki_links(text)
    if "](" in text:
        text = _MD_LINK.sub(_link_target, text)
    return re.sub(r"\s", " ", _MARKS.sub("", text))


def _link_target(link: "re.Match[str]") -> str:
    path = _PAGE_PATH.fullmatch(link[2])
    return path[1] if path else link[1]


def _is_in_quotation(head: str) -> bool:
    return head.count('"') % 2 == 1 or head.count("“") > head.count("”") or head.count("«") > head.count("»")
