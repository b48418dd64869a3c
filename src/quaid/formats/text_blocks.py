"""Plain text as blocks of Markdown: paragraphs, rows of tables and code."""

import re

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_MARK = re.compile(r"\s{0,3}(?:#|(?:-{3,}|\+{3,}|={3,})\s*\Z|```|~~~|<!--)")
MAX_LINE = 300


def without_controls(text: str) -> str:
    return _CONTROL.sub("", text)


def one_line(text: str) -> str:
    return " ".join(without_controls(text).split())[:MAX_LINE]


def clean(text: str) -> str:
    """Return text as Markdown: without control characters, and without lines that would be headings or dividers."""
    lines = without_controls(text.replace("\r\n", "\n").replace("\r", "\n")).split("\n")
    return "\n".join(f"\\{line.lstrip()}" if _MARK.match(line) else line.rstrip() for line in lines)


def fenced(text: str, language: str = "") -> str:
    """Return text as a block of code, whose fence is longer than each run of backticks in the text."""
    text = without_controls(text)
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def table_row(cells: list[str]) -> str:
    return f"| {' | '.join(' '.join(cell.split()).replace('|', '/') for cell in cells)} |"
