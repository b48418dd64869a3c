"""Timelines that only grow: what one text adds to another, each dated thing once.

Knows entries and when two are the same: the day and the summary. Does not know pages.
"""

from quaid.core import timeline

Key = tuple[str, str]


def keys(text: str) -> set[Key]:
    """What makes each entry of a timeline the entry that it is."""
    return {(entry.date, timeline.summary_hash(entry.summary)) for entry in timeline.parse(text)}


def extended(text: str, more: str) -> str:
    """A timeline with a piece of text behind it, unless it holds that already."""
    if not more.strip() or more.strip() in text:
        return text
    if keys(text) & keys(more):
        return _with_missing(text, more)
    return f"{text}\n{more}" if text.strip() else more


def joined(old: str, new: str) -> str:
    """A new timeline in place of an old one, such that no entry of the old one is lost."""
    if not new.strip():
        return old
    return new if keys(old) <= keys(new) else _with_missing(old, new)


def with_entry(text: str, date: str, summary: str, source: str = "", detail: str = "") -> str:
    """A timeline with one more entry, unless it has that one."""
    if (date, timeline.summary_hash(summary)) in keys(text):
        return text
    return timeline.add(text, date, summary, source, detail)


def _with_missing(text: str, more: str) -> str:
    for entry in timeline.parse(more):
        if entry.summary:
            text = with_entry(text, entry.date, entry.summary, entry.source, entry.detail)
    return text
