"""The statements of Markdown text: sentences of paragraphs, list entries and table rows."""

import re

_LIST_MARK = re.compile(r"\s*(?:[-*+•]|\d{1,4}[.)])\s+")
_QUOTE_MARKS = re.compile(r"(?:\s*>)+ ?")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")


def statement_spans(text: str) -> list[tuple[int, int]]:
    """Return the offsets of the sentences, list entries and table rows of Markdown text.

    Headings and the marks of code blocks are left out.
    """
    spans: list[tuple[int, int]] = []
    begin, is_entry, at = -1, False, 0

    def end_block(end: int) -> None:
        start = begin
        if start >= 0 and not is_entry:
            for gap in _SENTENCE_END.finditer(text, start, end):
                spans.append((start, gap.start()))
                start = gap.end()
        if 0 <= start < end:
            spans.append((start, end))

    for line in text.split("\n"):
        quoted = _QUOTE_MARKS.match(line) if ">" in line[:4] else None
        first = quoted.end() if quoted else 0
        mark = _LIST_MARK.match(line, first)
        bare = line[first:].strip()
        is_gap = not bare or bare.startswith(("#", "```", "~~~", "|---"))
        if is_gap or mark or bare.startswith("|"):
            end_block(at)
            begin, is_entry = (-1, False) if is_gap else (at + (mark.end() if mark else first), True)
        elif begin < 0:
            begin = at + first
        at += len(line) + 1
    end_block(len(text))
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
