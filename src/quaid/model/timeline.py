"""Timelines: parse dated entries, add entries, and merge two timelines without losing an entry.

An entry is a list item or a heading that begins with a date:

- **2026-04-14** | demo day — Met the founders. Lines indented below it are its detail.

Two entries are the same if date and summary are equal. A merge keeps both if the second has a source or detail that
the first lacks.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from quaid.errors import InvalidArgument
from quaid.model.dates import check_date, is_date
from quaid.model.plain_text import LineCounter

_MARK = r"""(?mx)^(?:(?P<hashes>\#{1,6})|(?P<indent>[ ]{0,3})[-*+])[ \t]+
    (?P<bold>\*\*|__)?(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})(?![^\W_]|[/.-]\S)(?P<rest>[^\n]*)$
    | ^(?P<heading>\#{1,6})(?:[ \t][^\n]*)?$"""
_DASH = re.compile(r"[ \t]*(?:[—–]|[-:](?=[ \t]|\Z))")
_SOURCE_ENDS = tuple(map(re.compile, ("—", "–", r"[ \t]-(?:[ \t]|\Z)", r":(?:[ \t]|\Z)")))
_BULLET = re.compile(r" {0,3}[-*+](?:[ \t]|\Z)")


MOST_ENTRIES = 30_000
"""At most this many entries of a timeline are parsed; the rest is treated as text."""


class TimelineEntry(NamedTuple):
    """A dated entry, with its line number in the timeline."""

    date: str
    source: str
    summary: str
    detail: str
    line: int
    text: str = ""
    """The original lines of the entry. "" unless the entry comes from split_entries."""


def parse(text: str, most: int = MOST_ENTRIES) -> tuple[TimelineEntry, ...]:
    """Return the entries in text order, at most `most`; other text is skipped."""
    entries: list[TimelineEntry] = []
    lines = LineCounter(text)
    before: re.Match[str] | None = None  # the start of the entry whose end is still to be found
    for mark in re.finditer(_MARK, text):
        dated = mark["date"] and is_date(mark["date"])
        if not dated and not mark["hashes"] and not mark["heading"]:
            continue
        if before:
            below = text[before.end() : mark.start()]
            entries.append(_parse_entry(before, below, lines.at(before.start())))
            if len(entries) == most:
                return tuple(entries)
        before = mark if dated else None
    if before:
        entries.append(_parse_entry(before, text[before.end() :], lines.at(before.start())))
    return tuple(entries)


def _parse_entry(mark: re.Match[str], below: str, line: int) -> TimelineEntry:
    source, summary = _source_and_summary(mark)
    below = below[1:] if mark["hashes"] else _indented(below[1:], len(mark["indent"]))
    detail = _tidy(below)
    if not summary and detail:
        first, _, rest = detail.partition("\n")
        summary, detail = _BULLET.sub("", first, count=1).strip(), _tidy(rest)
    return TimelineEntry(mark["date"], source, summary, detail, line)


def _source_and_summary(mark: re.Match[str]) -> tuple[str, str]:
    """Return source and summary from the line with the date.

    A source begins with "|" and ends at the first "—"; in a line without one, at the first "–", else at the first
    "-" between spaces, else at the first ":" before a space. Without these signs, the source is "".
    """
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
        separator = sign.search(rest)
        if separator:
            return rest[: separator.start()].strip(), rest[separator.end() :].strip()
    return "", rest


def _indented(below: str, indent: int) -> str:
    """Return the lines of a list item: those before the first text that is not indented deeper than its bullet."""
    indented: list[str] = []
    for line in below.split("\n"):
        stripped = line.lstrip(" \t")
        if stripped and len(line[: len(line) - len(stripped)].expandtabs(4)) <= indent:
            break
        indented.append(line)
    return "\n".join(indented)


def _tidy(detail: str) -> str:
    """Remove common indentation, trailing whitespace, and blank lines at both ends."""
    if not detail or detail.isspace():
        return ""
    lines = [line.rstrip() for line in detail.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    indents = [line[: len(line) - len(line.lstrip(" \t"))] for line in lines if line]
    low, high = min(indents, default=""), max(indents, default="")
    common = next((at for at, character in enumerate(low) if character != high[at]), len(low))
    return "\n".join([line[common:] for line in lines]).strip("\n")


def add_entry(text: str, date: str, summary: str, source: str = "", detail: str = "") -> str:
    """Return the timeline with an added entry; the rest of the text is unchanged.

    If the timeline has a single entry or is ordered newest first, the entry is inserted by date. Otherwise it is
    appended.
    """
    entry = _render_entry(
        check_date(date, "date"), _check_line(summary, "summary"), _check_line(source, "source"), detail
    )
    entries = parse(text)
    dates = [existing.date for existing in entries]
    newest_first = dates == sorted(dates, reverse=True)
    if newest_first and (len(dates) == 1 or dates[:1] > dates[-1:]):
        for existing in entries:
            if existing.date <= date:
                return _insert_entry(text, existing.line, entry)
    return _append_entry(text, entry)


def _check_line(value: str, name: str) -> str:
    value = value.strip()
    if "\n" in value or "\r" in value:
        raise InvalidArgument(name=name, problem="it must be one line; put the rest into detail")
    if name == "summary" and not value:
        raise InvalidArgument(name=name, problem="it is empty; say in one line what happened")
    if name == "source" and "—" in value:
        raise InvalidArgument(name=name, problem="'—' ends a source in a timeline; write '-' in it instead")
    return value


def _render_entry(date: str, summary: str, source: str, detail: str) -> str:
    head = f"- **{date}** | {source} — {summary}" if source else f"- **{date}** — {summary}"
    lines = _tidy(detail).split("\n") if detail.strip() else []
    below = _indent(lines, "  ")
    if re.search(_MARK, below):  # a detail line that looks like an entry must not be parsed as one
        below = _indent(lines, "    ")
    return f"{head}\n{below}" if lines else head


def _indent(lines: list[str], margin: str) -> str:
    return "\n".join([margin + line if line else "" for line in lines])


def _insert_entry(text: str, line: int, entry: str) -> str:
    position = 0
    for _ in range(line - 1):
        position = text.index("\n", position) + 1
    gap = "\n\n" if text.startswith("#", position) else "\n"
    return text[:position] + entry + gap + text[position:]


def _append_entry(text: str, entry: str) -> str:
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
    """Return the SHA-256 of a summary. Page, date and this hash identify an entry."""
    import hashlib  # imported here, because loading OpenSSL takes 3 ms

    return hashlib.sha256(summary.strip().encode("utf-8", "surrogatepass")).hexdigest()


EntryKey = tuple[str, str]

MOST_LISTED_ENTRIES = 20
"""A response lists at most this many entries."""
_LONGEST_LISTED = 100
_HEADING = re.compile(r"#{1,6}(?=[ \t]|\Z)")
_INDENTED_BULLET = re.compile(r"( *)[-*+][ \t]")
_BLANKS = re.compile(r"[ \t]+")


def entry_keys(text: str) -> set[EntryKey]:
    """Return date and summary hash of each entry; the two identify an entry."""
    return {(entry.date, summary_hash(entry.summary)) for entry in parse(text)}


def append_text(text: str, more: str) -> str:
    """Append text to a timeline, unless the timeline already contains it.

    If the text and the timeline have entries in common, only the missing entries with a summary are added, by date.
    """
    if not more.strip() or more.strip() in text:
        return text
    if entry_keys(text) & entry_keys(more):
        return insert_entries(text, [entry for entry in missing_entries(more, text) if entry.summary])
    return f"{text}\n{more}" if text.strip() else more


def merge_timelines(old: str, new: str) -> str:
    """Return the new timeline with every entry added that only the old timeline has.

    If the new timeline is blank, return the old one with all its text.
    """
    if not new.strip():
        return old
    return insert_entries(new, missing_entries(old, new), old)


def missing_entries(old: str, new: str) -> list[TimelineEntry]:
    """Return the entries of `old` that `new` lacks, without duplicates."""
    if old == new:
        return []
    held: dict[EntryKey, list[TimelineEntry]] = {}
    for entry in parse(new):
        held.setdefault(_content_key(entry), []).append(entry)
    lost: list[TimelineEntry] = []
    for piece in split_entries(old)[0]:
        same = held.setdefault(_content_key(piece), [])
        if not any(_adds_nothing(piece, existing) for existing in same):
            same.append(piece)
            lost.append(piece)
    return lost


def describe_entries(lost: Iterable[TimelineEntry]) -> tuple[str, ...]:
    """Return one line for each entry. If there are too many, return the first lines and the number of the rest."""
    lines = [_truncate(f"{entry.date} {entry.summary}".strip(), _LONGEST_LISTED) for entry in lost]
    more = len(lines) - MOST_LISTED_ENTRIES
    return tuple(lines) if more <= 1 else (*lines[:MOST_LISTED_ENTRIES], f"and {more:,} more")


def add_entry_once(text: str, date: str, summary: str, source: str = "", detail: str = "") -> str:
    """Add an entry, unless the timeline has an entry with the same date and summary."""
    if (date, summary_hash(summary)) in entry_keys(text):
        return text
    return add_entry(text, date, summary, source, detail)


def insert_entries(text: str, more: list[TimelineEntry], like: str = "") -> str:
    """Insert entries by date.

    If the entries of the text have fewer than two dates, the order of `like` is used, and newest first if `like`
    has fewer than two dates as well. If the entries are in no order, the new entries are added after the last entry.
    """
    if not more:
        return text
    entries, _ = split_entries(text)
    days = [entry.date for entry in entries]
    order = _date_order(days)
    if order is None and len(set(days)) < 2:
        others = [entry.date for entry in parse(like)]
        order = _date_order(others)
        if order is None and len(set(others)) < 2:
            order = True
    rows = text.split("\n")
    places: dict[int, list[str]] = {}  # line index before which to insert
    last = entries[-1].line + entries[-1].text.count("\n") if entries else len(rows)
    following = next((row for row in rows[last:] if row.strip()), None)
    is_text = following is not None and not _HEADING.match(following)
    if is_text and any(_HEADING.match(piece.text) for piece in more):
        last = len(rows)  # otherwise the free text would become part of an entry that is a heading
    for piece in more:
        after = len(entries)
        if order is not None:
            newer = len(days) - bisect_left(days[::-1], piece.date)
            after = newer if order else bisect_right(days, piece.date)
        place = last if after == len(entries) else entries[after].line - 1
        places.setdefault(place, []).append(piece.text)
    result: list[str] = []
    for line in range(len(rows) + 1):
        for block in places.get(line, ()):
            _append_block(result, block)
        if line < len(rows):
            if line in places and rows[line].strip() and _needs_blank_line(rows[line], places[line][-1]):
                result.append("")
            result.append(rows[line])
    return "\n".join(result)


def split_entries(text: str) -> tuple[list[TimelineEntry], list[str]]:
    """Return the entries with their lines, and the text before the first entry and after each entry."""
    rows = text.split("\n")
    entries = parse(text)
    starts = [entry.line - 1 for entry in entries]
    free = ["\n".join(rows[: starts[0]] if starts else rows).strip("\n")]
    timeline_entries: list[TimelineEntry] = []
    for entry, (start, end) in zip(entries, pairwise([*starts, len(rows)]), strict=True):
        length = _entry_length(rows[start:end])
        timeline_entries.append(entry._replace(text="\n".join(rows[start : start + length]).rstrip()))
        free.append("\n".join(rows[start + length : end]).strip("\n"))
    return timeline_entries, free


def _content_key(entry: TimelineEntry) -> EntryKey:
    return entry.date, _BLANKS.sub(" ", entry.summary.strip())


def _adds_nothing(entry: TimelineEntry, same: TimelineEntry) -> bool:
    detail = not entry.detail or f"\n{entry.detail}\n" in f"\n{same.detail}\n"
    return detail and entry.source in ("", same.source)


def _truncate(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def _entry_length(rows: list[str]) -> int:
    """Return how many of the lines belong to the entry that starts on the first line."""
    bullet = _INDENTED_BULLET.match(rows[0])
    for place, row in enumerate(rows[1:], 1):
        if bullet is None:
            if _HEADING.match(row):
                return place
        elif row.strip(" \t"):
            margin = row[: len(row) - len(row.lstrip(" \t"))]
            if len(margin.expandtabs(4)) <= len(bullet[1]):
                return place
    return len(rows)


def _date_order(days: list[str]) -> bool | None:
    """Return True for newest first, False for oldest first, None if there is no order or too few dates."""
    if len(set(days)) < 2:
        return None
    return True if days == sorted(days, reverse=True) else False if days == sorted(days) else None


def _append_block(rows: list[str], block: str) -> None:
    """Append an entry: directly below another list item, else after a blank line."""
    if rows and rows[-1].strip():
        above = next((row for row in reversed(rows) if row[:1] not in (" ", "\t", "")), "")
        if block.startswith("#") or not _INDENTED_BULLET.match(above.lstrip(" ")):
            rows.append("")
    elif not any(map(str.strip, rows)):
        rows.clear()
    rows.append(block)


def _needs_blank_line(row: str, block: str) -> bool:
    """Return True if a blank line is needed between an entry and the line below it."""
    return block.startswith("#") or _INDENTED_BULLET.match(row) is None
