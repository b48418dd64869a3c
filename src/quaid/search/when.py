"""The time that a question speaks of: "in March 2024", "last week", "since May", "2024-03-01".

Knows English phrases and the calendar; what day it is comes in as an argument. Does not know which pages are of
that time. A period favours what falls into it and excludes nothing: a question names a time loosely.
"""

import re
from datetime import date, timedelta
from typing import NamedTuple

FIRST, LAST = date(1, 1, 1), date(9999, 12, 31)
LONGEST_TEXT = 2_000
"""Characters of a question that are read for dates."""

_MONTHS = "january february march april may june july august september october november december".split()
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_SMALL = dict(
    zip("a an one two three four five six seven eight nine ten".split(), (1, 1, *range(1, 11)), strict=True)
)
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}

_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_YEAR = r"(?P<year>(?:19|20)[0-9]{2})\b"
_DAY = r"(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?\b"
_COUNT = rf"(?P<count>[0-9]{{1,3}}|{'|'.join(_SMALL)}|few|couple of)"
_UNIT = r"(?P<unit>day|week|fortnight|month|year)s?\b"
# Leads to a month or a year that stands alone: "may" and "march" are verbs too, and 2024 may be a number.
_LED = (
    r"\b(?:in|since|during|before|after|until|till|by|from|between|of|last|this|and|to|year)\W+"
    r"(?:(?:early|late|mid|the)\W+)?"
)

_PHRASES = tuple(
    (name, re.compile(f"{led}(?P<said>{text})", re.IGNORECASE))
    for name, led, text in (
        ("iso", r"(?<![\w-])", r"(?P<year>[0-9]{4})-(?P<month>[01][0-9])(?:-(?P<day>[0-3][0-9]))?(?![\w-])"),
        ("day", r"\b", rf"{_DAY}(?: of)? {_MONTH}(?:,? {_YEAR})?"),
        ("day", r"\b", rf"{_MONTH} {_DAY}(?!:)(?:,? {_YEAR})?"),
        ("month", r"\b", rf"{_MONTH},?(?: of)? {_YEAR}"),
        ("month", _LED, _MONTH),
        ("season", r"\b", rf"(?P<season>{'|'.join(_SEASONS)})(?: of)? {_YEAR}"),
        ("quarter", r"\b", rf"q(?P<quarter>[1-4])[ /-]?{_YEAR}"),
        ("year", _LED, _YEAR),
        ("ago", r"\b", rf"{_COUNT} {_UNIT} ago\b"),
        ("past", r"\b", rf"(?:last|past|previous) {_COUNT} {_UNIT}"),
        ("relative", r"\b", rf"(?P<which>last|this|past|previous) {_UNIT}"),
        ("weekday", r"\b(?:on|last|this|since) ", rf"(?P<weekday>{'|'.join(_WEEKDAYS)})\b"),
        ("near", r"\b", r"(?P<near>day before yesterday|today|yesterday|tonight|this morning|last night)\b"),
    )
)
# Most questions name no time, and one look tells.
_HINT = re.compile(
    rf"[0-9]|\b(?:last|past|previous|this|ago|today|yesterday|tonight|{'|'.join(month[:3] for month in _MONTHS)})"
    rf"|\b(?:{'|'.join(_WEEKDAYS)})\b",
    re.IGNORECASE,
)
_OPEN_END = re.compile(r"\b(since|from|after)\W+(?:the )?\Z", re.IGNORECASE)
_OPEN_START = re.compile(r"\b(before|until|till|up to|prior to)\W+(?:the )?\Z", re.IGNORECASE)
_JOINT = re.compile(r"\W+(?:and|to|until|till|through|-|–)\W+\Z", re.IGNORECASE)
_BETWEEN = re.compile(r"\b(?:between|from)\W+(?:the )?\Z", re.IGNORECASE)


class Period(NamedTuple):
    """From one day to another, both included, as YYYY-MM-DD."""

    start: str
    end: str
    text: str
    """How the question says it."""
    span: tuple[int, int] = (0, 0)
    """Where it stands there."""

    def holds(self, day: str) -> bool:
        """Whether a day, or a month given as YYYY-MM, falls into the period."""
        return self.start[: len(day)] <= day <= self.end[: len(day)] if day else False


class _Spot(NamedTuple):
    begin: int
    end: int
    first: date
    last: date


def periods(question: str, now: str) -> tuple[Period, ...]:
    """The times that a question names, in its order; `now` is today's date, or a timestamp that begins with it."""
    text = question[:LONGEST_TEXT]
    if not _HINT.search(text):
        return ()
    today = date(int(now[:4]), int(now[5:7]), int(now[8:10]))
    found: list[_Spot] = []
    unread: list[tuple[int, int]] = []
    for kind, phrase in _PHRASES:
        for match in phrase.finditer(text):
            begin, end = match.span("said")
            taken = [*unread, *((spot.begin, spot.end) for spot in found)]
            if any(first < end and begin < last for first, last in taken):
                continue
            if kind == "day" and _is_verb(text, match):
                continue
            days = _days(kind, match, today)
            if days:
                found.append(_Spot(begin, end, *days))
            elif kind == "day":  # 30 February: its month alone was not meant either
                unread.append((begin, end))
    return _joined(text, sorted(found))


def _is_verb(text: str, match: re.Match[str]) -> bool:
    """Whether "may 2" is what somebody may do: it follows whoever may, and names no year."""
    if match["month"].lower() != "may" or match["year"]:
        return False
    return match.start("month") < match.start("day") and _WHO_MAY.search(text[: match.start()]) is not None


_WHO_MAY = re.compile(r"\b(?:i|you|he|she|it|we|they|who|which|that|there)\W+\Z", re.IGNORECASE)


def _days(kind: str, match: re.Match[str], today: date) -> tuple[date, date] | None:
    """The first and the last day of what was said; None when there is no such day."""
    said = {name: value.lower() for name, value in match.groupdict().items() if value}
    try:
        return _READERS[kind](said, today)
    except (ValueError, OverflowError):
        return None


def _iso(said: dict[str, str], _: date) -> tuple[date, date]:
    year, month = int(said["year"]), int(said["month"])
    if "day" in said:
        day = date(year, month, int(said["day"]))
        return day, day
    return _month_of(year, month)


def _day(said: dict[str, str], today: date) -> tuple[date, date]:
    month = _month_number(said["month"])
    if "year" in said:
        day = date(int(said["year"]), month, int(said["day"]))
    else:
        day = date(today.year, month, int(said["day"]))
        if day > today:
            day = date(today.year - 1, month, int(said["day"]))
    return day, day


def _month(said: dict[str, str], today: date) -> tuple[date, date]:
    month = _month_number(said["month"])
    year = int(said["year"]) if "year" in said else today.year - (month > today.month)
    return _month_of(year, month)


def _season(said: dict[str, str], _: date) -> tuple[date, date]:
    first = date(int(said["year"]), _SEASONS[said["season"]], 1)
    return first, _month_of(*_plus_months(first.year, first.month, 2))[1]


def _quarter(said: dict[str, str], _: date) -> tuple[date, date]:
    year, first = int(said["year"]), 3 * int(said["quarter"]) - 2
    return date(year, first, 1), _month_of(year, first + 2)[1]


def _year(said: dict[str, str], _: date) -> tuple[date, date]:
    year = int(said["year"])
    return date(year, 1, 1), date(year, 12, 31)


def _ago(said: dict[str, str], today: date) -> tuple[date, date]:
    count, unit = _number(said["count"]), said["unit"]
    if unit == "day":
        day = today - timedelta(days=count)
        return day, day
    if unit in ("week", "fortnight"):
        return _unit_of(today - timedelta(weeks=count * (2 if unit == "fortnight" else 1)), "week")
    if unit == "month":
        return _month_of(*_plus_months(today.year, today.month, -count))
    return _unit_of(date(today.year - count, 1, 1), "year")


def _past(said: dict[str, str], today: date) -> tuple[date, date]:
    count, unit = _number(said["count"]), said["unit"]
    days = {"day": 1, "week": 7, "fortnight": 14, "month": 31, "year": 366}[unit]
    return today - timedelta(days=count * days), today


def _relative(said: dict[str, str], today: date) -> tuple[date, date]:
    unit = said["unit"]
    if said["which"] == "this":
        return _unit_of(today, unit)
    if unit == "month":
        return _month_of(*_plus_months(today.year, today.month, -1))
    if unit == "year":
        return _unit_of(date(today.year - 1, 1, 1), unit)
    days = {"day": 1, "week": 7, "fortnight": 14}[unit]
    first, last = _unit_of(today - timedelta(days=days), unit)
    return first, max(last, first)


def _weekday(said: dict[str, str], today: date) -> tuple[date, date]:
    back = (today.weekday() - _WEEKDAYS.index(said["weekday"])) % 7 or 7
    day = today - timedelta(days=back)
    return day, day


def _near(said: dict[str, str], today: date) -> tuple[date, date]:
    back = {"yesterday": 1, "last night": 1, "day before yesterday": 2}.get(said["near"], 0)
    day = today - timedelta(days=back)
    return day, day


_READERS = {
    "iso": _iso,
    "day": _day,
    "month": _month,
    "season": _season,
    "quarter": _quarter,
    "year": _year,
    "ago": _ago,
    "past": _past,
    "relative": _relative,
    "weekday": _weekday,
    "near": _near,
}


def _joined(text: str, spots: list[_Spot]) -> tuple[Period, ...]:
    """Periods with an open end closed, and two of them with "between … and" before them made one."""
    found: list[Period] = []
    place = 0
    while place < len(spots):
        spot = spots[place]
        before, first, last, end = text[: spot.begin], spot.first, spot.last, spot.end
        after = spots[place + 1] if place + 1 < len(spots) else None
        if after and _BETWEEN.search(before) and _JOINT.fullmatch(text[spot.end : after.begin]):
            if first > after.last:
                first = date(after.last.year, first.month, 1)
            last, end = max(after.last, first), after.end
            place += 1
        elif opened := _OPEN_END.search(before):
            first = _next(last) if opened[1].lower() == "after" else first
            last = LAST
        elif opened := _OPEN_START.search(before):
            last = _before(first) if opened[1].lower() in ("before", "prior to") else last
            first = FIRST
        said = text[spot.begin : end]
        found.append(
            Period(
                first.isoformat(), last.isoformat(), said.strip(" ,."), (spot.begin, spot.begin + len(said))
            )
        )
        place += 1
    return tuple(dict.fromkeys(found))


def _next(day: date) -> date:
    return day + timedelta(days=1) if day < LAST else day


def _before(day: date) -> date:
    return day - timedelta(days=1) if day > FIRST else day


def _number(text: str) -> int:
    return int(text) if text.isdigit() else _SMALL.get(text, 3 if text == "few" else 2)


def _month_number(name: str) -> int:
    return next(number for number, month in enumerate(_MONTHS, 1) if month[:3] == name[:3])


def _plus_months(year: int, month: int, count: int) -> tuple[int, int]:
    years, months = divmod(month - 1 + count, 12)
    return year + years, months + 1


def _month_of(year: int, month: int) -> tuple[date, date]:
    first = date(year, month, 1)
    following = date(*_plus_months(year, month, 1), 1)
    return first, following - timedelta(days=1)


def _unit_of(day: date, unit: str) -> tuple[date, date]:
    if unit in ("week", "fortnight"):
        first = day - timedelta(days=day.weekday())
        return first, first + timedelta(days=6 if unit == "week" else 13)
    if unit == "month":
        return _month_of(day.year, day.month)
    if unit == "year":
        return date(day.year, 1, 1), date(day.year, 12, 31)
    return day, day
