"""Dates and timestamps as text: validation, arithmetic, dates and periods written in English, and expiry.

Pages, facts, and lines with an expiry mark such as "(expires 2026-11-20)" expire at a moment: a day such as
2026-11-20, or a time in UTC such as 2026-11-20T12:00:00Z. A day means the end of that day in the local time zone.
"""

import re
import time
from functools import cache
from typing import Any, NamedTuple

from quaid.errors import InvalidArgument, InvalidDate
from quaid.model.plain_text import fence_cover

_ISO = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIMESTAMP = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"
_PERIOD = re.compile(r"([0-9]{1,3})([hdw])")
_UNITS = {"h": 3_600, "d": 86_400, "w": 604_800, "y": 365 * 86_400}
_MONTH_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_date(value: str) -> bool:
    """Return True if the text is YYYY-MM-DD and that day exists."""
    match = _ISO.fullmatch(value)
    if not match:
        return False
    year, month, day = map(int, match.groups())
    if not (year and 1 <= month <= 12 and 1 <= day <= _MONTH_DAYS[month - 1]):
        return False
    return (month, day) != (2, 29) or (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))


def check_date(value: str, name: str) -> str:
    """Return the value if it is a valid date, or raise InvalidDate with the name of the argument."""
    if not isinstance(value, str) or not is_date(value):
        raise InvalidDate(name=name, value=value)
    return value


def check_interval(since: str | None, until: str | None, name: str) -> None:
    """Raise InvalidArgument if an interval ends before it starts. `name` is the argument that gives the end."""
    if since and until and until < since:
        raise InvalidArgument(name=name, problem=f"{until} is before valid_from, {since}")


def is_timestamp(value: str) -> bool:
    """Return True if the text is a time in the format of `timestamp`, and its day exists."""
    return bool(re.fullmatch(_TIMESTAMP, value)) and is_date(value[:10])


def timestamp(seconds: float) -> str:
    """Format Unix seconds as UTC in ISO 8601 with a resolution of one second: 2026-04-25T12:00:00Z."""
    at = time.gmtime(seconds)
    return f"{at[0]:04}-{at[1]:02}-{at[2]:02}T{at[3]:02}:{at[4]:02}:{at[5]:02}Z"


def seconds_of(timestamp: str) -> float:
    """Return a UTC timestamp, as in 2026-04-25T12:00:00Z, as seconds since 1970."""
    from datetime import datetime  # imported late, because most commands do not need it

    return datetime.fromisoformat(timestamp).timestamp()


def age_text(since: str, now: str) -> str:
    """Return roughly how long ago a timestamp was, as in 5 minutes, 3 hours or 2 days."""
    minutes = max(0, int(seconds_of(now) - seconds_of(since))) // 60
    for noun, length in (("day", 1440), ("hour", 60), ("minute", 1)):
        if minutes >= length:
            count = minutes // length
            return f"{count} {noun}{'s' if count > 1 else ''}"
    return "less than a minute"


def day_number(day: str) -> int:
    """Return the number of days from 1970-01-01 to the date."""
    year, month, number = map(int, day.split("-"))
    year -= month < 3  # the year starts in March here, so that a leap day is the last day of the year
    passed = (153 * ((month + 9) % 12) + 2) // 5 + number - 1
    return 365 * year + year // 4 - year // 100 + year // 400 + passed - 719_468


def _weekday(day: str) -> int:
    return (day_number(day) + 3) % 7  # 0 is Monday; 1970-01-01 was a Thursday


def shift_date(day: str, by: int) -> str:
    """Return the date `by` days later, or earlier if negative."""
    return timestamp((day_number(day) + by) * 86_400)[:10]


def period_seconds(period: str) -> int | None:
    """Return the length in seconds of a period such as 24h, 7d or 2w; None if the text is not a period."""
    match = _PERIOD.fullmatch(period.strip())
    return int(match[1]) * _UNITS[match[2]] if match else None


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NAME = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_MONTH = rf"{_MONTH_NAME}\.?"
_YEAR_PARTS = {
    "early": (1, 4),
    "mid": (5, 8),
    "late": (9, 12),
    "spring": (3, 6),
    "summer": (6, 9),
    "autumn": (9, 12),
}
_YEAR_PARTS |= {"fall": (9, 12), "winter": (1, 12), "q1": (1, 3), "q2": (4, 6), "q3": (7, 9), "q4": (10, 12)}


@cache
def _date() -> re.Pattern[str]:
    """Return the pattern of dates with a year. Compiled at first use: it takes 1 ms."""
    return re.compile(
        rf"""(?<![\w.,/-])(?:
          (?P<iso>(?:19|20)\d\d-\d\d-\d\d)(?![\w-])
        | (?P<iso_month>(?:19|20)\d\d-\d\d)(?![\w-])
        | (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month>{_MONTH}),?\s+(?P<year>(?:19|20)\d\d)\b
        | (?P<us_month>{_MONTH})\s+(?P<us_day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<us_year>(?:19|20)\d\d)\b
        | (?P<m_month>{_MONTH}),?\s+(?:of\s+)?(?P<m_year>(?:19|20)\d\d)\b
        | (?P<part>early|mid|late|spring|summer|autumn|fall|winter|q[1-4])[\s-]+(?:of\s+|in\s+)?
          (?P<p_year>(?:19|20)\d\d)\b
        | (?P<only>(?:19|20)\d\d)(?![\w-]|,\d|\.\d|%)
        )""",
        re.VERBOSE | re.IGNORECASE,
    )


class DatePhrase(NamedTuple):
    """A date or period found in text: its first and last day, and the character offsets of the phrase."""

    first: str
    last: str
    start: int
    end: int

    @property
    def exact(self) -> bool:
        return self.first == self.last

    def holds(self, day: str) -> bool:
        """Return True if a day (or month as YYYY-MM) is within the period."""
        return self.first[: len(day)] <= day <= self.last[: len(day)] if day else False


def find_dates(text: str) -> list[DatePhrase]:
    """Return all dates in the text with a year from 1900 to 2099, in order."""
    if not any(mark in text for mark in ("19", "20")):
        return []
    phrases = []
    for match in _date().finditer(text):
        first, last = _date_range(match)
        if first and last:
            phrases.append(DatePhrase(first, last, match.start(), match.end()))
    return phrases


def whole_date(text: str) -> DatePhrase | None:
    """Return the date that a text consists of, or None."""
    phrases = find_dates(text)
    return phrases[0] if phrases and (phrases[0].start, phrases[0].end) == (0, len(text)) else None


@cache
def _day() -> re.Pattern[str]:
    """Return the pattern of days with or without a year. Compiled at first use: it takes 0.5 ms."""
    return re.compile(
        rf"""(?<![\w/-])(?:
          (?:19|20)\d\d-(?P<iso_month>\d\d)-(?P<iso_day>\d\d)(?![\w-])
        | (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<month>{_MONTH})(?:,?\s+(?:19|20)\d\d)?(?!\w)
        | (?P<us_month>{_MONTH})\s+(?P<us_day>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?:19|20)\d\d)?(?!\w)
        )""",
        re.VERBOSE | re.IGNORECASE,
    )


DAY_WORD = re.compile(r"day\d{4}x")
"""Pattern of a day in the form that `fold_days` returns."""


def fold_days(text: str) -> str:
    """Return text in which each day is one word without its year, so that "31 August" equals 2026-08-31."""

    def word(match: "re.Match[str]") -> str:
        name = match["month"] or match["us_month"]
        month = _MONTHS.index(name[:3].lower()) + 1 if name else int(match["iso_month"])
        day = int(match["iso_day"] or match["day"] or match["us_day"])
        return f"day{month:02}{day:02}x" if 1 <= month <= 12 and 1 <= day <= 31 else match[0]

    return _day().sub(word, text) if any(character.isdigit() for character in text) else text


def _month_end(month: str) -> str:
    """Return the last day of a month that is given as YYYY-MM."""
    days = (f"{month}-{day}" for day in (31, 30, 29, 28))
    return next(filter(is_date, days), "")


def _date_range(match: "re.Match[str]") -> tuple[str, str]:
    if match["iso"]:
        return (match["iso"], match["iso"]) if is_date(match["iso"]) else ("", "")
    if match["iso_month"]:
        return f"{match['iso_month']}-01", _month_end(match["iso_month"])
    if match["only"]:
        return f"{match['only']}-01-01", f"{match['only']}-12-31"
    if match["part"]:
        low, high = _YEAR_PARTS[match["part"].lower()]
        return f"{match['p_year']}-{low:02}-01", _month_end(f"{match['p_year']}-{high:02}")
    if match["m_month"]:
        month = f"{match['m_year']}-{_month_number(match['m_month']):02}"
        return f"{month}-01", _month_end(month)
    year = match["year"] or match["us_year"]
    number = _month_number(match["month"] or match["us_month"])
    day = f"{year}-{number:02}-{int(match['day'] or match['us_day']):02}"
    return (day, day) if is_date(day) else ("", "")


def _month_number(month: str) -> int:
    return _MONTHS.index(month[:3].lower()) + 1


class DueDate(NamedTuple):
    """The due day that a sentence gives."""

    day: str
    is_deadline: bool
    """True if the sentence has a word such as by, before, until or due, so that the day is a deadline."""


_WEEKDAYS = {
    **{name: number for number, name in enumerate(("mon", "tue", "wed", "thu", "fri", "sat", "sun"))},
    **{name: number for number, name in enumerate("montag dienstag mittwoch donnerstag freitag".split())},
    "samstag": 5,
    "sonntag": 6,
}
_GERMAN_MONTHS = {"mär": "mar", "mai": "may", "okt": "oct", "dez": "dec"}
_ENGLISH_COUNTS = {
    name: number for number, name in enumerate("one two three four five six seven eight nine ten".split(), 1)
} | {"a": 1, "an": 1}
_COUNTS = {
    **_ENGLISH_COUNTS,
    **{name: number for number, name in enumerate("einer zwei drei vier fünf sechs".split(), 1)},
    "einem": 1,
    "einigen": 3,
}
_DEADLINE_WORDS = ("no", "by", "before", "until", "till", "due", "bis", "deadline")
_UNIT_DAYS = {"day": 1, "tag": 1, "week": 7, "woch": 7, "fortnight": 14}
_FEASTS = {"christmas": "12-25", "christmas eve": "12-24", "new years": "01-01", "new years eve": "12-31"}


@cache
def _due_pattern() -> "re.Pattern[str]":
    """Return the pattern of a due day, compiled at first use, because that takes 5 ms."""
    return re.compile(
        rf"""(?<![\w/-])(?<!every\ )(?<!each\ )(?<!last\ )(?<!of\ )(?<!from\ )(?<!since\ )(?<!jeden\ )(?<!vom\ )
        (?<!seit\ )
        (?P<lead>(?:no\ later\ than|by|before|until|till|due(?:\ (?:on|by))?|bis(?:\ zum|\ spätestens)?|deadline:?)
            \s+(?:the\s+)?
          |(?:on|for|am|in|within)\s+(?:the\s+)?)?
        (?:(?P<word>today|tonight|heute|tomorrow|tmrw|tmr|morgen|übermorgen|(?:the\ )?day\ after\ tomorrow)
        | (?P<end>end\ of)\ (?:the\ |this\ )?(?:(?P<of_week>week)|(?P<of_month>month)|(?P<of_year>year))
        | (?P<which>next|this|coming|nächste[nr]?|diese[nr]?)\ (?:(?P<week>week|woche)|(?P<span>month|monat))
        | (?:(?P<that>next|this|coming|nächsten|kommenden|diesen)\ )?
          (?P<weekday>(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?
            |montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)
        | (?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?
          (?P<month>{_MONTH}|märz|mai|januar|februar|juni|juli|oktober|dezember)
          (?:,?\s+(?P<year>20\d\d))?
        | (?P<nth>\d{{1,2}})(?:st|nd|rd|th)(?=\s*(?:$|[,.:;!)]))
        | (?P<feast>(?:christmas|xmas)(?:\ eve)?|new\ year[’']?s(?:\ eve)?)
        | (?P<us_month>{_MONTH})\s+(?P<us_day>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<us_year>20\d\d))?
        | (?P<iso>20\d\d-\d\d-\d\d)
        | (?P<count>\d{{1,2}}|{"|".join(_COUNTS)})\s+
          (?P<unit>days?|weeks?|fortnights?|months?|tage?n?|wochen?|monate?n?)
        )(?![\w-])""",
        re.VERBOSE | re.IGNORECASE,
    )


def find_due(text: str, today: str) -> DueDate | None:
    """Return the day on which a to-do is due, in English or German; None if the text names no day.

    A weekday, or a day without a year, is its next occurrence. "Next Friday" is in the next week, and a week ends
    on its Friday; only on a weekend does "this week" end on Sunday. If the text names several days, the first one
    after by, before, until or due is used, else the first one.
    """
    dues = []
    for match in _due_pattern().finditer(text):
        lead = (match["lead"] or "").lower().split()[:1]
        day = _due_day(match, today, lead)
        if day and is_date(day):
            dues.append(DueDate(day, bool(lead) and lead[0].rstrip(":") in _DEADLINE_WORDS))
    return next((due for due in dues if due.is_deadline), dues[0] if dues else None)


def parse_day(text: str, today: str) -> str:
    """Return the day that words such as "Friday", "until 20 November" or "in 3 days" name, or ""."""
    match = _due_pattern().fullmatch(text.strip())
    if match is None:
        return ""
    day = _due_day(match, today, (match["lead"] or "until").lower().split()[:1])
    return day if is_date(day) else ""


def _due_day(match: "re.Match[str]", today: str, lead: list[str]) -> str:
    weekday = _weekday(today)
    which = (match["which"] or match["that"] or "").lower()
    is_next = which.startswith(("next", "nächste"))
    if word := (match["word"] or "").lower():
        is_today = word in ("today", "tonight", "heute")
        return shift_date(today, 0 if is_today else 2 if "after" in word or word == "übermorgen" else 1)
    if name := (match["weekday"] or "").lower():
        if len(name) == 3 and not match["weekday"][0].isupper() and not lead and not which:
            is_last = not match.string[match.end() :].strip(" .!")
            if not is_last or name in ("sat", "sun"):  # also ordinary English words
                return ""
        wanted = _WEEKDAYS.get(name, _WEEKDAYS.get(name[:3], 0))
        return shift_date(today, wanted - weekday + 7 if is_next else (wanted - weekday) % 7 or 7)
    if match["nth"] or match["feast"]:
        return _day_named_after(match, today) if lead and lead[0].rstrip(":") in _DEADLINE_WORDS else ""
    if match["week"] or match["of_week"]:
        return shift_date(today, 11 - weekday if is_next else 4 - weekday if weekday < 5 else 6 - weekday)
    if match["of_year"]:
        return f"{today[:4]}-12-31"
    if match["span"] or match["of_month"]:
        return _month_end(_shift_month(today, 1 if is_next else 0)[:7])
    if match["count"]:
        if lead not in (["in"], ["within"]):
            return ""
        count = int(match["count"]) if match["count"].isdigit() else _COUNTS[match["count"].lower()]
        unit = match["unit"].lower()
        days = next((days for name, days in _UNIT_DAYS.items() if unit.startswith(name)), 0)
        return shift_date(today, count * days) if days else _shift_month(today, count)
    return match["iso"] or _day_of_year(match, today)


def _day_named_after(match: "re.Match[str]", today: str) -> str:
    """Return the next date of a day of the month ("the 25th") or a holiday ("xmas eve")."""
    if match["nth"]:
        months = (
            f"{_shift_month(f'{today[:7]}-01', ahead)[:7]}-{int(match['nth']):02}" for ahead in range(3)
        )
        return next((day for day in months if day >= today and is_date(day)), "")
    name = match["feast"].lower().replace("xmas", "christmas")
    rest = _FEASTS[name.replace("’", "").replace("'", "")]
    this = f"{today[:4]}-{rest}"
    return this if this >= today else f"{int(today[:4]) + 1}-{rest}"


def _shift_month(day: str, by: int) -> str:
    """Return a day `by` months later (earlier if negative), or the last day of that month if it is too short."""
    months = int(day[:4]) * 12 + int(day[5:7]) - 1 + by
    month = f"{months // 12:04}-{months % 12 + 1:02}"
    return min(f"{month}-{day[8:]}", _month_end(month))


def _day_of_year(match: "re.Match[str]", today: str) -> str:
    """Return the date of a day such as 20 November; without a year, its next occurrence."""
    name = (match["month"] or match["us_month"])[:3].lower()
    month = _MONTHS.index(_GERMAN_MONTHS.get(name, name)) + 1
    rest = f"{month:02}-{int(match['day'] or match['us_day']):02}"
    year = match["year"] or match["us_year"]
    if year:
        return f"{year}-{rest}"
    this = f"{today[:4]}-{rest}"
    return this if this >= today else f"{int(today[:4]) + 1}-{rest}"


_DUE_MARK = r"\(due ((?:19|20)\d\d-\d\d-\d\d)\)"


def due_day_of(todo: str) -> str:
    """Return the day on which a stored to-do is due, or "".

    This is the day in "(due 2026-11-20)", else the first day in the text, else the end of the first month in it.
    """
    if mark := re.search(_DUE_MARK, todo):
        return mark[1]
    phrases = find_dates(todo)
    near = [phrase for phrase in phrases if phrase.exact] or [
        phrase for phrase in phrases if phrase.first[:7] == phrase.last[:7]
    ]
    return near[0].last if near else ""


def without_due_mark(todo: str) -> str:
    """Return a to-do without its mark "(due 2026-11-20)"."""
    return re.sub(_DUE_MARK, "", todo).rstrip()


# Periods in questions

LONGEST_DATED_TEXT = 2_000
"""Maximum characters of a question that are searched for dates."""

FIRST_DAY, LAST_DAY = "0001-01-01", "9999-12-31"

_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The first month of each season. Winter ends in the next year."""

_OPEN_END = r"(?i)\b(since|from|after)\W+(?:the )?\Z"
_OPEN_START = r"(?i)\b(before|until|till|up to|prior to)\W+(?:the )?\Z"
_JOINT = r"(?i)\W+(?:and|to|until|till|through|-|–)\W+\Z"
_BETWEEN = r"(?i)\b(?:between|from)\W+(?:the )?\Z"
_WHO_MAY = r"(?i)\b(?:i|you|he|she|it|we|they|who|which|that|there)\W+\Z"


@cache
def _period_patterns() -> "tuple[re.Pattern[str], tuple[tuple[str, re.Pattern[str]], ...]]":
    """Return a fast check for a time expression, and the patterns of such expressions, each with its kind."""
    month, year = rf"(?P<month>{_MONTH_NAME})\b\.?", r"(?P<year>(?:19|20)[0-9]{2})\b"
    day, unit = r"(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?\b", r"(?P<unit>day|week|fortnight|month|year)s?\b"
    count = rf"(?P<count>[0-9]{{1,3}}|{'|'.join(_ENGLISH_COUNTS)}|few|couple of)"
    weekdays = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
    # A month or year alone is a date only after these words, because "may" is also a verb and 2024 may be any
    # number.
    led = (
        r"\b(?:in|since|during|before|after|until|till|by|from|between|of|last|this|and|to|year)\W+"
        r"(?:(?:early|late|mid|the)\W+)?"
    )
    kinds = (
        ("iso", r"(?<![\w-])", r"(?P<year>[0-9]{4})-(?P<month>[01][0-9])(?:-(?P<day>[0-3][0-9]))?(?![\w-])"),
        ("day", r"\b", rf"{day}(?: of)? {month}(?:,? {year})?"),
        ("day", r"\b", rf"{month} {day}(?!:)(?:,? {year})?"),
        ("month", r"\b", rf"{month},?(?: of)? {year}"),
        ("month", led, month),
        ("season", r"\b", rf"(?P<season>{'|'.join(_SEASONS)})(?: of)? {year}"),
        ("quarter", r"\b", rf"q(?P<quarter>[1-4])[ /-]?{year}"),
        ("year", led, year),
        ("ago", r"\b", rf"{count} {unit} ago\b"),
        ("past", r"\b", rf"(?:last|past|previous) {count} {unit}"),
        ("relative", r"\b", rf"(?P<which>last|this|past|previous) {unit}"),
        ("weekday", r"\b(?:on|last|this|since) ", rf"(?P<weekday>{weekdays})\b"),
        ("near", r"\b", r"(?P<near>day before yesterday|today|yesterday|tonight|this morning|last night)\b"),
    )
    hint = re.compile(
        rf"[0-9]|\b(?:last|past|previous|this|ago|today|yesterday|tonight|{'|'.join(_MONTHS)})"
        rf"|\b(?:{weekdays})\b",
        re.IGNORECASE,
    )
    return hint, tuple((kind, re.compile(f"(?i){lead}(?P<phrase>{text})")) for kind, lead, text in kinds)


def find_periods(question: str, now: str) -> tuple[DatePhrase, ...]:
    """Return the periods that a question names, in order; `now` is today's date or a timestamp.

    A day or month without a year is the last one that has begun.
    """
    text, today = question[:LONGEST_DATED_TEXT], now[:10]
    hint, patterns = _period_patterns()
    if not hint.search(text):
        return ()
    phrases: list[DatePhrase] = []
    unread: list[tuple[int, int]] = []
    for kind, pattern in patterns:
        for match in pattern.finditer(text):
            begin, end = match.span("phrase")
            taken = [*unread, *((phrase.start, phrase.end) for phrase in phrases)]
            if any(start < end and begin < stop for start, stop in taken):
                continue
            if kind == "day" and _is_verb(text, match):
                continue
            groups = {name: value.lower() for name, value in match.groupdict().items() if value}
            first, last = _period_days(kind, groups, today)
            if is_date(first) and is_date(last):
                phrases.append(DatePhrase(first, last, begin, end))
            elif kind == "day":  # in an invalid date such as 30 February, the month alone is not used either
                unread.append((begin, end))
    return _join_periods(text, sorted(phrases, key=lambda phrase: phrase.start))


def _is_verb(text: str, match: "re.Match[str]") -> bool:
    """Return True if "may" in a match such as "may 2" is a verb: it follows a pronoun and has no year."""
    if match["month"].lower() != "may" or match["year"]:
        return False
    return (
        match.start("month") < match.start("day") and re.search(_WHO_MAY, text[: match.start()]) is not None
    )


def _period_days(kind: str, words: dict[str, str], today: str) -> tuple[str, str]:
    """Return the first and last day of a time expression. A day may be invalid, such as 30 February."""
    year, unit, this_year = words.get("year", ""), words.get("unit", ""), int(today[:4])
    if kind in ("iso", "day"):
        month = int(words["month"]) if kind == "iso" else _month_number(words["month"])
        if "day" not in words:
            return _month_days(int(year), month)
        rest = f"{month:02}-{int(words['day']):02}"
        day = f"{year or today[:4]}-{rest}"
        if not year and is_date(day) and day > today:
            day = f"{this_year - 1}-{rest}"
        return day, day
    if kind == "month":
        month = _month_number(words["month"])
        return _month_days(int(year) if year else this_year - (month > int(today[5:7])), month)
    if kind == "season":
        return _month_days(int(year), _SEASONS[words["season"]], 3)
    if kind == "quarter":
        return _month_days(int(year), 3 * int(words["quarter"]) - 2, 3)
    if kind == "year":
        return _unit_days(f"{year}-01-01", "year")
    if kind == "weekday":
        return _days_ago((_weekday(today) - _WEEKDAYS[words["weekday"][:3]]) % 7 or 7, "day", today)
    if kind == "near":
        back = {"yesterday": 1, "last night": 1, "day before yesterday": 2}.get(words["near"], 0)
        return _days_ago(back, "day", today)
    if kind == "relative":
        return _days_ago(0 if words["which"] == "this" else 1, unit, today)
    named = words["count"]
    count = int(named) if named.isdigit() else _ENGLISH_COUNTS.get(named, 3 if named == "few" else 2)
    if kind == "past":
        days = {"day": 1, "week": 7, "fortnight": 14, "month": 31, "year": 366}[unit]
        return shift_date(today, -count * days), today
    return _days_ago(2 * count, "week", today) if unit == "fortnight" else _days_ago(count, unit, today)


def _days_ago(count: int, unit: str, today: str) -> tuple[str, str]:
    """Return the first and last day of the day, week, fortnight, month or year that was `count` units ago."""
    if unit == "month":
        return _unit_days(_shift_month(f"{today[:7]}-01", -count), unit)
    if unit == "year":
        return _unit_days(f"{int(today[:4]) - count:04}-01-01", unit)
    return _unit_days(shift_date(today, -count * _UNIT_DAYS[unit]), unit)


def _unit_days(day: str, unit: str) -> tuple[str, str]:
    """Return the first and last day of the unit of time that contains a day. A fortnight begins with its week."""
    if unit in ("week", "fortnight"):
        monday = shift_date(day, -_weekday(day))
        return monday, shift_date(monday, _UNIT_DAYS[unit] - 1)
    if unit == "month":
        return _month_days(int(day[:4]), int(day[5:7]))
    return (f"{day[:4]}-01-01", f"{day[:4]}-12-31") if unit == "year" else (day, day)


def _month_days(year: int, month: int, count: int = 1) -> tuple[str, str]:
    """Return the first and last day of a period of `count` months that begins with this month."""
    first = f"{year:04}-{month:02}-01"
    return first, _month_end(_shift_month(first, count - 1)[:7])


def _join_periods(text: str, phrases: list[DatePhrase]) -> tuple[DatePhrase, ...]:
    """Extend periods after words such as "since" and "before", and join the two periods of "between … and …"."""
    periods: list[DatePhrase] = []
    place = 0
    while place < len(phrases):
        first, last, begin, end = phrases[place]
        before = text[:begin]
        after = phrases[place + 1] if place + 1 < len(phrases) else None
        if after and re.search(_BETWEEN, before) and re.fullmatch(_JOINT, text[end : after.start]):
            if first > after.last:
                first = f"{after.last[:4]}-{first[5:7]}-01"
            last, end = max(after.last, first), after.end
            place += 1
        elif opened := re.search(_OPEN_END, before):
            first = shift_date(last, 1) if opened[1].lower() == "after" and last < LAST_DAY else first
            last = LAST_DAY
        elif opened := re.search(_OPEN_START, before):
            excludes = opened[1].lower() in ("before", "prior to")
            last = shift_date(first, -1) if excludes and first > FIRST_DAY else first if excludes else last
            first = FIRST_DAY
        periods.append(DatePhrase(first, last, begin, end))
        place += 1
    return tuple(dict.fromkeys(periods))


# Expiry

EXPIRY_KEY = "expires"
"""The front-matter key with the moment at which a page expires."""
NEVER = "never"
"""The value of EXPIRY_KEY that exempts a page from retention settings."""
MOMENT_FORMS = "a day such as 2026-11-20, a time such as 2026-11-20T12:00Z, or never"
EXPIRY_MARK = "(expires "
LONGEST_PERIOD = 100 * 365 * 86_400

_RETENTION = re.compile(r"([0-9]{1,9}) ?([hdwy])")
_MOMENT = (
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-2][0-9]:[0-5][0-9])(:[0-5][0-9])?(?:\.[0-9]+)? ?(Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_EXPIRY_MARK = r"\(expires ([0-9T:+Z .-]{10,35})\)"
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")


def retention_seconds(text: str) -> int | None:
    """Return the length of a period such as 12h, 30d, 2w or 1y; None if it is invalid, zero or over 100 years."""
    match = _RETENTION.fullmatch(text.strip().lower())
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
    match = re.fullmatch(_MOMENT, text)
    if match is None or not is_date(match[1]):
        return None
    if match[2] is None:
        return match[1]
    try:
        return timestamp(seconds_of(f"{match[1]}T{match[2]}{match[3] or ':00'}{match[4] or 'Z'}"))
    except (ValueError, OverflowError, OSError):
        return None


class Clock(NamedTuple):
    """The current time in UTC, and the current day in the local time zone."""

    now: str
    today: str

    def is_past(self, moment: str) -> bool:
        return moment < self.today if len(moment) == 10 else moment <= self.now


class ExpiringLine(NamedTuple):
    """A line with an expiry mark, and the more deeply indented lines below it."""

    number: int
    """Number of the first line, from 1."""
    end: int
    moment: str
    """The earliest moment in its marks, or "" if the line is in `gone` (see expiring_lines)."""
    text: str


def expiring_lines(text: str, gone: frozenset[str] = frozenset()) -> list[ExpiringLine]:
    """Return the lines with a valid expiry mark, and the lines in `gone`, which have already expired.

    `gone` contains lines in the form that line_words() returns. Headings and fenced code are skipped.
    """
    if EXPIRY_MARK not in text and not gone:
        return []
    code, position = fence_cover(text), 0
    lines = text.split("\n")
    expiring: list[ExpiringLine] = []
    for number, line in enumerate(lines, 1):
        start, position = position, position + len(line) + 1
        moment = "" if line_words(line) in gone else _moment_of(line)
        if moment is None or _HEADING.match(line) or code.contains(start):
            continue
        if expiring and number <= expiring[-1].end:
            continue
        end, indent = number, _indent(line)
        while end < len(lines) and lines[end].strip() and _indent(lines[end]) > indent:
            end += 1
        expiring.append(ExpiringLine(number, end, moment, "\n".join(lines[number - 1 : end])))
    return expiring


def _moment_of(line: str) -> str | None:
    """Return the earliest valid moment in the expiry marks of a line, or None."""
    moments = (
        [parse_moment(mark[1]) for mark in re.finditer(_EXPIRY_MARK, line)] if EXPIRY_MARK in line else []
    )
    return min((moment for moment in moments if moment and moment != NEVER), default=None)


def line_words(text: str) -> str:
    """Return the first line of a text without expiry marks and surrounding whitespace."""
    return with_expiry(text, NEVER).partition("\n")[0].strip()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def without_expired(
    text: str, clock: Clock, gone: frozenset[str] = frozenset()
) -> tuple[str, list[ExpiringLine]]:
    """Return the text with its expired lines blanked, so that line numbers do not change, and the expired lines.

    Lines in `gone` (see expiring_lines) have expired earlier, possibly on another device.
    """
    past = [line for line in expiring_lines(text, gone) if not line.moment or clock.is_past(line.moment)]
    if not past:
        return text, past
    lines = text.split("\n")
    for line in past:
        lines[line.number - 1 : line.end] = [""] * (line.end - line.number + 1)
    return "\n".join(lines), past


def unexpired_text(text: str, clock: Clock, gone: frozenset[str] = frozenset()) -> str:
    """Return the text with its expired lines blanked."""
    return without_expired(text, clock, gone)[0]


def lasting_text(text: str) -> str:
    """Return the text without lines that have an expiry mark, expired or not, and the lines indented below them."""
    lines = text.split("\n")
    for line in reversed(expiring_lines(text)):
        del lines[line.number - 1 : line.end]
    return "\n".join(lines)


def with_expiry(line: str, moment: str) -> str:
    """Set the expiry mark of a line; the moment "never" removes the mark."""
    first, newline, rest = line.partition("\n")
    first = re.sub(r" ?" + _EXPIRY_MARK, "", first).rstrip()
    return f"{first}{'' if moment == NEVER else f' {EXPIRY_MARK}{moment})'}{newline}{rest}"
