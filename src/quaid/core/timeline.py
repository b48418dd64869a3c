"""The timeline of a page: dated entries in markdown, read and added to.

An entry is a list item or a heading that begins with a date:

    - **2026-04-14** | demo day — Met the founders.
      What they said, as the detail.

Knows the text only; which page it belongs to and who wrote it are somebody else's business.
"""

import hashlib
import re
from typing import NamedTuple

from quaid.core.dates import check_date, is_date
from quaid.errors import InvalidArgument

_MARK = re.compile(
    r"""^(?:(?P<hashes>\#{1,6})|(?P<indent>[ ]{0,3})[-*+])[ \t]+
    (?P<bold>\*\*|__)?(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})(?![^\W_]|[/.-]\S)(?P<rest>[^\n]*)$
    | ^(?P<heading>\#{1,6})(?:[ \t][^\n]*)?$""",
    re.MULTILINE | re.VERBOSE,
)
_DASH = re.compile(r"[ \t]*(?:[—–]|[-:](?=[ \t]|\Z))")
_SOURCE_ENDS = tuple(map(re.compile, ("—", "–", r"[ \t]-(?:[ \t]|\Z)", r":(?:[ \t]|\Z)")))
_BULLET = re.compile(r" {0,3}[-*+](?:[ \t]|\Z)")


MOST_ENTRIES = 30_000
"""Entries of one timeline; what comes behind them is text."""


class Entry(NamedTuple):
    """One dated thing that happened, with the line of the timeline on which it stands."""

    date: str
    source: str
    summary: str
    detail: str
    line: int


def parse(text: str, most: int = MOST_ENTRIES) -> tuple[Entry, ...]:
    """Every entry, in the order of the text; what is no entry is passed over."""
    entries: list[Entry] = []
    line, counted = 1, 0
    before: re.Match[str] | None = None  # the mark of an entry whose end is looked for
    for mark in _MARK.finditer(text):
        dated = mark["date"] and is_date(mark["date"])
        if not dated and not mark["hashes"] and not mark["heading"]:
            continue
        if before:
            line += text.count("\n", counted, before.start())
            counted = before.start()
            entries.append(_entry(before, text[before.end() : mark.start()], line))
            if len(entries) == most:
                return tuple(entries)
        before = mark if dated else None
    if before:
        line += text.count("\n", counted, before.start())
        entries.append(_entry(before, text[before.end() :], line))
    return tuple(entries)


def _entry(mark: re.Match[str], below: str, line: int) -> Entry:
    source, summary = _source_and_summary(mark)
    below = below[1:] if mark["hashes"] else _indented(below[1:], len(mark["indent"]))
    detail = _tidy(below)
    if not summary and detail:
        first, _, rest = detail.partition("\n")
        summary, detail = _BULLET.sub("", first, count=1).strip(), _tidy(rest)
    return Entry(mark["date"], source, summary, detail, line)


def _source_and_summary(mark: re.Match[str]) -> tuple[str, str]:
    """What follows the date on its line. The source ends at the first em dash, else at a lesser sign."""
    rest: str = mark["rest"]
    if mark["bold"]:
        before, _, after = rest.partition(mark["bold"])
        rest = before + after
    if mark["hashes"]:
        rest = re.sub(r"(?<=[ \t])#+\Z", "", rest.rstrip())
    dash = _DASH.match(rest)
    if dash:
        rest = rest[dash.end() :]
    rest = rest.strip()
    if dash or not rest.startswith("|"):
        return "", rest
    rest = rest[1:].strip()
    for sign in _SOURCE_ENDS:
        found = sign.search(rest)
        if found:
            return rest[: found.start()].strip(), rest[found.end() :].strip()
    return "", rest


def _indented(below: str, indent: int) -> str:
    """The lines that belong to a list item: those that stand further in than its bullet."""
    kept: list[str] = []
    for line in below.split("\n"):
        stripped = line.lstrip(" \t")
        if stripped and len(line[: len(line) - len(stripped)].expandtabs(4)) <= indent:
            break
        kept.append(line)
    return "\n".join(kept)


def _tidy(detail: str) -> str:
    """Detail without common indentation, trailing blanks, and empty lines at both ends."""
    lines = [line.rstrip() for line in detail.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    indents = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line]
    low, high = min(indents, default=""), max(indents, default="")
    common = next((at for at, character in enumerate(low) if character != high[at]), len(low))
    return "\n".join([line[common:] for line in lines]).strip("\n")


def add(text: str, date: str, summary: str, source: str = "", detail: str = "") -> str:
    """The timeline with one more entry; every other character stays as it is.

    A timeline is kept newest first. One that a person keeps oldest first, or in no order, grows at its end.
    """
    entry = _render(
        check_date(date, "date"), _checked(summary, "summary"), _checked(source, "source"), detail
    )
    entries = parse(text)
    dates = [known.date for known in entries]
    newest_first = dates == sorted(dates, reverse=True)
    if newest_first and (len(dates) == 1 or dates[:1] > dates[-1:]):
        for known in entries:
            if known.date <= date:
                return _insert(text, known.line, entry)
    return _append(text, entry)


def _checked(value: str, name: str) -> str:
    value = value.strip()
    if "\n" in value or "\r" in value:
        raise InvalidArgument(name=name, problem="it must be one line; put the rest into detail")
    if name == "summary" and not value:
        raise InvalidArgument(name=name, problem="it is empty; say in one line what happened")
    if name == "source" and "—" in value:
        raise InvalidArgument(name=name, problem="'—' ends a source in a timeline; write '-' in it instead")
    return value


def _render(date: str, summary: str, source: str, detail: str) -> str:
    head = f"- **{date}** | {source} — {summary}" if source else f"- **{date}** — {summary}"
    lines = _tidy(detail).split("\n") if detail.strip() else []
    below = _indent(lines, "  ")
    if _MARK.search(below):  # a detail that looks like an entry must not become one
        below = _indent(lines, "    ")
    return f"{head}\n{below}" if lines else head


def _indent(lines: list[str], margin: str) -> str:
    return "\n".join([margin + line if line else "" for line in lines])


def _insert(text: str, line: int, entry: str) -> str:
    position = 0
    for _ in range(line - 1):
        position = text.index("\n", position) + 1
    gap = "\n\n" if text.startswith("#", position) else "\n"
    return text[:position] + entry + gap + text[position:]


def _append(text: str, entry: str) -> str:
    if not text.strip():
        return entry
    newlines = len(text) - len(text.rstrip("\n"))
    missing = (1 if _ends_in_list(text) else 2) - newlines
    return text + "\n" * missing + entry + ("\n" if newlines else "")


def _ends_in_list(text: str) -> bool:
    end = len(text)
    while end > 0:
        start = text.rfind("\n", 0, end) + 1
        line = text[start:end]
        if _BULLET.match(line):
            return True
        if line.strip() and line[0] not in " \t":
            return False
        end = start - 1
    return False


def summary_hash(summary: str) -> str:
    """SHA-256 of a summary as it is stored: with page and date, what makes an entry the same entry."""
    return hashlib.sha256(summary.strip().encode("utf-8", "surrogatepass")).hexdigest()
