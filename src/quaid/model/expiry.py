"""When pages, facts and lines expire: moments, periods such as 30d, and the mark "(expires 2026-11-20)" in a line.

A moment is a day, as in 2026-11-20, or a time in UTC, as in 2026-11-20T12:00:00Z. Something that expires on a day
is there until that day ends in the local time zone of the device.
"""

import re
from typing import Any, NamedTuple

from quaid.model import dates

KEY = "expires"
"""The key in the front matter of a page."""
NEVER = "never"
"""The value of a page that retention settings do not apply to."""
FORMS = "a day such as 2026-11-20, a time such as 2026-11-20T12:00Z, or never"
MARK = "(expires "
LONGEST_PERIOD = 100 * 365 * 86_400

_PERIOD = re.compile(r"([0-9]{1,9}) ?([hdwy])")
_UNITS = {"h": 3_600, "d": 86_400, "w": 604_800, "y": 365 * 86_400}
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-2][0-9]:[0-5][0-9])(:[0-5][0-9])?(?:\.[0-9]+)? ?(Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_MARK = re.compile(r"\(expires ([0-9T:+Z .-]{10,35})\)")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")


def period_seconds(text: str) -> int | None:
    """Return the length of a period such as 12h, 30d, 2w or 1y; None for zero, nonsense and over 100 years."""
    match = _PERIOD.fullmatch(text.strip().lower())
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    return seconds if 0 < seconds <= LONGEST_PERIOD else None


def parse_moment(value: Any) -> str | None:
    """Return a moment in its stored form, "never", or None if the value is neither.

    A time without a zone is in UTC.
    """
    if not isinstance(value, str):
        return None
    text = value.strip()
    if text.lower() == NEVER:
        return NEVER
    match = _MOMENT.fullmatch(text)
    if match is None or not dates.is_date(match[1]):
        return None
    if match[2] is None:
        return match[1]
    try:
        seconds = dates.seconds_of(f"{match[1]}T{match[2]}{match[3] or ':00'}{match[4] or 'Z'}")
        return dates.timestamp(seconds)
    except (ValueError, OverflowError, OSError):
        return None


class Clock(NamedTuple):
    """The current time in UTC, and the current day in the local time zone."""

    now: str
    today: str

    def is_past(self, moment: str) -> bool:
        return moment < self.today if len(moment) == 10 else moment <= self.now


class ExpiringLine(NamedTuple):
    """A line with a mark, and the indented lines below it that belong to it."""

    number: int
    """The first line, from 1."""
    end: int
    moment: str
    """The moment of its mark, or "" if it is known to have expired."""
    text: str


def expiring_lines(text: str, gone: frozenset[str] = frozenset()) -> list[ExpiringLine]:
    """Return the lines with a valid mark, and those whose words are in `gone`.

    Headings and fenced code are not read.
    """
    if MARK not in text and not gone:
        return []
    from quaid.model import plain_text  # imported late, because most texts have no mark

    fenced: set[int] = set()
    for fence in plain_text.find_fences(text):
        first = text.count("\n", 0, fence.start) + 1
        fenced.update(range(first, first + text.count("\n", fence.start, fence.end) + 1))
    lines = text.split("\n")
    found: list[ExpiringLine] = []
    for number, line in enumerate(lines, 1):
        moment = "" if words(line) in gone else _moment_of(line)
        if moment is None or number in fenced or _HEADING.match(line) or (found and number <= found[-1].end):
            continue
        end, indent = number, _indent(line)
        while end < len(lines) and lines[end].strip() and _indent(lines[end]) > indent:
            end += 1
        found.append(ExpiringLine(number, end, moment, "\n".join(lines[number - 1 : end])))
    return found


def _moment_of(line: str) -> str | None:
    """Return the earliest valid moment of the marks in a line, or None."""
    moments = [parse_moment(mark[1]) for mark in _MARK.finditer(line)] if MARK in line else []
    return min((moment for moment in moments if moment and moment != NEVER), default=None)


def words(text: str) -> str:
    """Return the first line of a text without marks and white space around it."""
    return with_mark(text, NEVER).partition("\n")[0].strip()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def without_expired(
    text: str, clock: Clock, gone: frozenset[str] = frozenset()
) -> tuple[str, list[ExpiringLine]]:
    """Return the text with its expired lines emptied, and these lines. Other lines keep their numbers.

    Lines whose words are in `gone` expired earlier, perhaps by another clock.
    """
    past = [line for line in expiring_lines(text, gone) if not line.moment or clock.is_past(line.moment)]
    if not past:
        return text, past
    lines = text.split("\n")
    for line in past:
        lines[line.number - 1 : line.end] = [""] * (line.end - line.number + 1)
    return "\n".join(lines), past


def visible_text(text: str, clock: Clock, gone: frozenset[str] = frozenset()) -> str:
    """Return the text with its expired lines emptied."""
    return without_expired(text, clock, gone)[0]


def lasting_text(text: str) -> str:
    """Return the text without the lines that expire, now or later."""
    lines = text.split("\n")
    for line in reversed(expiring_lines(text)):
        del lines[line.number - 1 : line.end]
    return "\n".join(lines)


def with_mark(line: str, moment: str) -> str:
    """Return a line with the mark of a moment; "never" removes a mark that is there."""
    first, newline, rest = line.partition("\n")
    first = re.sub(r" ?" + _MARK.pattern, "", first).rstrip()
    return f"{first}{'' if moment == NEVER else f' {MARK}{moment})'}{newline}{rest}"
