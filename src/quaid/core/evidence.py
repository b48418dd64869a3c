"""Timelines that only grow: which entries a text leaves out, and a timeline with those entries in their places.

Two entries are the same when date and summary are. An entry whose source or detail says more than the other's is
not replaced by it.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from quaid.core import timeline

Key = tuple[str, str]

MOST_NAMED = 20
"""Entries that an answer names one by one."""
_LONGEST_NAME = 100
_HEADING = re.compile(r"#{1,6}(?=[ \t]|\Z)")
_BULLET = re.compile(r"( *)[-*+][ \t]")
_BLANKS = re.compile(r"[ \t]+")


class Piece(NamedTuple):
    """An entry with its lines as they are written."""

    entry: timeline.Entry
    text: str


def keys(text: str) -> set[Key]:
    """What makes each entry of a timeline the entry that it is."""
    return {(entry.date, timeline.summary_hash(entry.summary)) for entry in timeline.parse(text)}


def extended(text: str, more: str) -> str:
    """A timeline with a piece of text behind it, unless it holds that already."""
    if not more.strip() or more.strip() in text:
        return text
    if keys(text) & keys(more):
        return with_entries(text, [each for each in missing(more, text) if each.entry.summary])
    return f"{text}\n{more}" if text.strip() else more


def joined(old: str, new: str) -> str:
    """A new timeline in place of an old one, with every entry of the old one that it leaves out."""
    if not new.strip():
        return old
    return with_entries(new, missing(old, new), old)


def missing(old: str, new: str) -> list[Piece]:
    """The entries of one timeline that another does not hold, each once."""
    if old == new:
        return []
    held: dict[Key, list[timeline.Entry]] = {}
    for entry in timeline.parse(new):
        held.setdefault(_key(entry), []).append(entry)
    lost: list[Piece] = []
    for piece in pieces(old)[0]:
        same = held.setdefault(_key(piece.entry), [])
        if not any(_says_no_more(piece.entry, each) for each in same):
            same.append(piece.entry)
            lost.append(piece)
    return lost


def named(lost: Iterable[Piece]) -> tuple[str, ...]:
    """Entries in a line each, for an answer; of many only the first, and how many more there are."""
    lines = [_shortened(f"{each.entry.date} {each.entry.summary}".strip(), _LONGEST_NAME) for each in lost]
    more = len(lines) - MOST_NAMED
    return tuple(lines) if more <= 1 else (*lines[:MOST_NAMED], f"and {more:,} more")


def with_entry(text: str, date: str, summary: str, source: str = "", detail: str = "") -> str:
    """A timeline with one more entry, unless it has that one."""
    if (date, timeline.summary_hash(summary)) in keys(text):
        return text
    return timeline.add(text, date, summary, source, detail)


def with_entries(text: str, more: list[Piece], like: str = "") -> str:
    """A timeline with more entries, each where its date belongs.

    Where the text has too few entries to tell their order, it takes that of `like`, else the newest comes first. In
    a text without order they come last.
    """
    if not more:
        return text
    there, _ = pieces(text)
    days = [each.entry.date for each in there]
    order = _order(days)
    if order is None and len(set(days)) < 2:
        others = [each.date for each in timeline.parse(like)]
        order = _order(others)
        if order is None and len(set(others)) < 2:
            order = True
    rows = text.split("\n")
    places: dict[int, list[str]] = {}  # before which line
    last = _end_of(there[-1]) if there else len(rows)
    for piece in more:
        after = len(there) if order is None else _rank(days, piece.entry.date, order)
        place = last if after == len(there) else there[after].entry.line - 1
        places.setdefault(place, []).append(piece.text)
    result: list[str] = []
    for line in range(len(rows) + 1):
        for block in places.get(line, ()):
            _add(result, block)
        if line < len(rows):
            if line in places and rows[line].strip() and _is_apart(rows[line], places[line][-1]):
                result.append("")
            result.append(rows[line])
    return "\n".join(result)


def pieces(text: str) -> tuple[list[Piece], list[str]]:
    """Each entry with its lines, and the text between the entries."""
    rows = text.split("\n")
    entries = timeline.parse(text)
    starts = [each.line - 1 for each in entries]
    free = ["\n".join(rows[: starts[0]] if starts else rows).strip("\n")]
    found: list[Piece] = []
    for entry, (start, end) in zip(entries, pairwise([*starts, len(rows)]), strict=True):
        length = _length(rows[start:end])
        found.append(Piece(entry, "\n".join(rows[start : start + length]).rstrip()))
        free.append("\n".join(rows[start + length : end]).strip("\n"))
    return found, free


def _key(entry: timeline.Entry) -> Key:
    return entry.date, _BLANKS.sub(" ", entry.summary.strip())


def _says_no_more(entry: timeline.Entry, same: timeline.Entry) -> bool:
    detail = not entry.detail or f"\n{entry.detail}\n" in f"\n{same.detail}\n"
    return detail and entry.source in ("", same.source)


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def _length(rows: list[str]) -> int:
    """How many of these lines belong to the entry that begins with the first."""
    bullet = _BULLET.match(rows[0])
    for place, row in enumerate(rows[1:], 1):
        if bullet is None:
            if _HEADING.match(row):
                return place
        elif row.strip(" \t"):
            margin = row[: len(row) - len(row.lstrip(" \t"))]
            if len(margin.expandtabs(4)) <= len(bullet[1]):
                return place
    return len(rows)


def _order(days: list[str]) -> bool | None:
    """True: the newest comes first. False: the oldest does. None: neither, or nothing to tell it by."""
    if len(set(days)) < 2:
        return None
    return True if days == sorted(days, reverse=True) else False if days == sorted(days) else None


def _rank(days: list[str], day: str, newest_first: bool) -> int:
    """How many of the days come before this one."""
    return len(days) - bisect_left(days[::-1], day) if newest_first else bisect_right(days, day)


def _end_of(piece: Piece) -> int:
    return piece.entry.line - 1 + piece.text.count("\n") + 1


def _add(rows: list[str], block: str) -> None:
    """Put an entry below what is there: close to another item of a list, apart from everything else."""
    if rows and rows[-1].strip():
        above = next((row for row in reversed(rows) if row[:1] not in (" ", "\t", "")), "")
        if block.startswith("#") or not _BULLET.match(above.lstrip(" ")):
            rows.append("")
    elif not any(map(str.strip, rows)):
        rows.clear()
    rows.append(block)


def _is_apart(row: str, block: str) -> bool:
    """Whether a blank line belongs between an entry and the line below it."""
    return block.startswith("#") or _BULLET.match(row) is None
