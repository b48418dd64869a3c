"""The daily log: one file for each day, an entry under each time of day.

Knows names and headings. The time comes in as text, as the clock on the wall shows it.
"""

import re
from typing import NamedTuple

from quaid.errors import InvalidArgument
from quaid.model import dates
from quaid.notebook.layout import DAILY

LONGEST_HEADING = 100

_TIME = re.compile(r"([0-2]?[0-9]:[0-5][0-9])(?:[ \t]*[—–:-])?(?:[ \t]+|\Z)")
_TITLE = re.compile(r"\A\s*#[ \t][^\n]*")


class Logged(NamedTuple):
    text: str
    line: int


class Noted(NamedTuple):
    """An entry of the log, as it is read back."""

    time: str
    """As in 09:10; "" where none is written."""
    heading: str
    body: str
    line: int
    """Where it begins in the text, from 1."""


def path_of(day: str) -> str:
    """The file of a day, as in daily/2026-04-25.md."""
    return f"{DAILY}/{day}.md"


def recent(local: str, days: int = 2) -> tuple[str, ...]:
    """Today and yesterday, or more days, or fewer."""
    return tuple(dates.shift_date(local[:10], -ago) for ago in range(days))


def entry(local: str, text: str) -> str:
    """What is written: the time with the first line as heading, then the text, unless the heading says it all."""
    from quaid.formats import sections

    text = sections.sanitize(text)
    if not text:
        raise InvalidArgument(name="entry", problem="is empty; say what happened")
    first, _, rest = text.partition("\n")
    plain = first.removeprefix("\\").lstrip("#").strip()
    plain = plain.removeprefix("- ").strip() or first.strip()
    heading = plain if len(plain) <= LONGEST_HEADING else _cut(plain)
    body = rest.strip("\n") if heading == plain else text
    if plain.startswith(("```", "~~~")):  # code whose first line is no sentence
        heading, body = "Note", text
    return f"## {local[11:16]} — {heading}\n{body}".rstrip("\n")


def add(old: str | None, local: str, text: str) -> Logged:
    """A day's file with one more entry at its end."""
    from quaid.formats import sections

    before = old if old and old.strip() else f"# {local[:10]}\n"
    block = entry(local, text)
    added = sections.append_to_section(before, None, block)
    return Logged(added.text, added.line)


def entries(text: str) -> tuple[Noted, ...]:
    """The entries of a day's file in their order. What stands before the first one is an entry without a time."""
    from quaid.formats import sections

    places = sections.find_sections(text)
    found = []
    before = text[: places[0].start] if places else text
    opening = _TITLE.sub("", before, count=1)
    if opening.strip():
        start = len(before) - len(opening.lstrip())
        first, _, rest = opening.strip().partition("\n")
        found.append(Noted("", first.strip(), rest.strip(), text.count("\n", 0, start) + 1))
    for each in places:
        time = _TIME.match(each.title)
        heading = each.title[time.end() :] if time else each.title
        line = text.count("\n", 0, each.start) + 1
        found.append(
            Noted(time[1] if time else "", heading.strip(), text[each.body : each.end].strip(), line)
        )
    return tuple(found)


def _cut(text: str) -> str:
    short = text[: LONGEST_HEADING - 1]
    return (short.rpartition(" ")[0] or short) + "…"
