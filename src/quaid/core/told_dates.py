"""Dates as people write them into sentences: 2025, March 2025, 5 May 2025, late 2024, Q3 2024.

Knows the calendar's words in English. A date here is a first and a last day; nothing is relative to today.
"""

import re
from typing import NamedTuple

from quaid.core.dates import is_date

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\.?"
)
_PARTS = {
    "early": (1, 4),
    "mid": (5, 8),
    "late": (9, 12),
    "spring": (3, 6),
    "summer": (6, 9),
    "autumn": (9, 12),
}
_PARTS |= {"fall": (9, 12), "winter": (1, 12), "q1": (1, 3), "q2": (4, 6), "q3": (7, 9), "q4": (10, 12)}

_DATE = re.compile(
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


class Told(NamedTuple):
    """A date of a text: its first and last day, and where the words end."""

    first: str
    last: str
    start: int
    end: int

    @property
    def exact(self) -> bool:
        return self.first == self.last


def dates_in(text: str) -> list[Told]:
    """Every date of a text, in its order."""
    if not any(mark in text for mark in ("19", "20")):
        return []
    found = []
    for match in _DATE.finditer(text):
        first, last = _span(match)
        if first:
            found.append(Told(first, last, match.start(), match.end()))
    return found


def _span(match: "re.Match[str]") -> tuple[str, str]:
    if match["iso"]:
        return (match["iso"], match["iso"]) if is_date(match["iso"]) else ("", "")
    if match["iso_month"]:
        return f"{match['iso_month']}-01", f"{match['iso_month']}-31"
    if match["only"]:
        return f"{match['only']}-01-01", f"{match['only']}-12-31"
    if match["part"]:
        low, high = _PARTS[match["part"].lower()]
        return f"{match['p_year']}-{low:02}-01", f"{match['p_year']}-{high:02}-31"
    if match["m_month"]:
        month = f"{match['m_year']}-{_number(match['m_month']):02}"
        return f"{month}-01", f"{month}-31"
    year = match["year"] or match["us_year"]
    number = _number(match["month"] or match["us_month"])
    day = f"{year}-{number:02}-{int(match['day'] or match['us_day']):02}"
    return (day, day) if is_date(day) else ("", "")


def _number(month: str) -> int:
    return _MONTHS.index(month[:3].lower()) + 1
