"""The statements of Markdown text: sentences of paragraphs, list entries and table rows."""

import re
from typing import NamedTuple

_LIST_MARK = re.compile(r"\s*(?:[-*+•]|\d{1,4}[.)])\s+")
_QUOTE_MARKS = re.compile(r"(?:\s*>)+ ?")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")


ITEM, ROW, PARAGRAPH = "item", "row", "paragraph"


class TextBlock(NamedTuple):
    """A list entry, table row or paragraph, as character offsets without list mark and quotation marks."""

    start: int
    end: int
    kind: str
    indent: int
    """Number of characters before a list entry, with its list mark."""


def text_blocks(text: str) -> list[TextBlock]:
    """Return the list entries, table rows and paragraphs of Markdown text.

    Headings and the marks of code blocks are left out.
    """
    blocks: list[TextBlock] = []
    begin, kind, indent, at = -1, PARAGRAPH, 0, 0
    for line in text.split("\n"):
        quoted = _QUOTE_MARKS.match(line) if ">" in line[:4] else None
        first = quoted.end() if quoted else 0
        mark = _LIST_MARK.match(line, first)
        bare = line[first:].strip()
        is_gap = not bare or bare.startswith(("#", "```", "~~~", "|---"))
        if is_gap or mark or bare.startswith("|"):
            if 0 <= begin < at:
                blocks.append(TextBlock(begin, at, kind, indent))
            begin, kind, indent = -1, PARAGRAPH, 0
            if not is_gap:
                begin, kind = at + (mark.end() if mark else first), ITEM if mark else ROW
                indent = mark.end() if mark else 0
        elif begin < 0:
            begin = at + first
        at += len(line) + 1
    if 0 <= begin < len(text):
        blocks.append(TextBlock(begin, len(text), kind, indent))
    return blocks


def statement_spans(text: str) -> list[tuple[int, int]]:
    """Return the offsets of the sentences, list entries and table rows of Markdown text."""
    spans: list[tuple[int, int]] = []
    for block in text_blocks(text):
        start = block.start
        if block.kind == PARAGRAPH:
            for gap in _SENTENCE_END.finditer(text, start, block.end):
                spans.append((start, gap.start()))
                start = gap.end()
        if start < block.end:
            spans.append((start, block.end))
    return spans


def statement_text(text: str) -> str:
    """Return a statement as one line."""
    return " ".join(text.replace("\n>", "\n").split())


def split_statements(text: str) -> list[str]:
    """Return the statements of Markdown text, each as one line without list mark."""
    return [statement_text(text[start:end]) for start, end in statement_spans(text)]


_STRUCK = re.compile(r"~~.+?~~")
_PARENTHESIS = re.compile(r"\([^()]*\)")
_WORDS = re.compile(r"\w+")
_TICKED = re.compile(r"\[[xX]\]\s")


def is_struck(statement: str) -> bool:
    """Return True if a statement is struck through, except for a word and remarks in parentheses."""
    if "~~" not in statement:
        return False
    rest = _STRUCK.sub(" ", statement)
    return rest != statement and len(_WORDS.findall(_PARENTHESIS.sub(" ", rest))) <= 1


def without_struck(statement: str) -> str:
    """Return a statement without its struck parts."""
    return " ".join(_STRUCK.sub(" ", statement).split())


def is_ticked(statement: str) -> bool:
    """Return True for a task that is done."""
    return bool(_TICKED.match(statement))
