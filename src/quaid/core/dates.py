"""Calendar dates and timestamps as text. Knows the calendar; does not know what time it is."""

import re
import time

from quaid.errors import InvalidDate

_ISO = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_PERIOD = re.compile(r"([0-9]{1,3})([hdw])")
_UNITS = {"h": 3_600, "d": 86_400, "w": 604_800}
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_date(value: str) -> bool:
    """Whether the text is YYYY-MM-DD and that day exists."""
    match = _ISO.fullmatch(value)
    if not match:
        return False
    year, month, day = map(int, match.groups())
    if not (year and 1 <= month <= 12 and 1 <= day <= _DAYS[month - 1]):
        return False
    return (month, day) != (2, 29) or (year % 4 == 0 and (year % 100 != 0 or year % 400 == 0))


def check_date(value: str, name: str) -> str:
    """The value itself, or InvalidDate naming the argument that held it."""
    if not isinstance(value, str) or not is_date(value):
        raise InvalidDate(name=name, value=value)
    return value


def timestamp(seconds: float) -> str:
    """Unix seconds as UTC in ISO 8601, to the second: 2026-04-25T12:00:00Z."""
    at = time.gmtime(seconds)
    return f"{at[0]:04}-{at[1]:02}-{at[2]:02}T{at[3]:02}:{at[4]:02}:{at[5]:02}Z"


def days(day: str) -> int:
    """How many days a date lies after 1970-01-01."""
    year, month, number = map(int, day.split("-"))
    year -= month < 3  # counted from March, so that a leap day is the last of its year
    passed = (153 * ((month + 9) % 12) + 2) // 5 + number - 1
    return 365 * year + year // 4 - year // 100 + year // 400 + passed - 719_468


def shifted(day: str, by: int) -> str:
    """The date so many days later, or earlier."""
    return timestamp((days(day) + by) * 86_400)[:10]


def seconds(period: str) -> int | None:
    """The length of a period as in 24h, 7d or 2w; None for any other text."""
    match = _PERIOD.fullmatch(period.strip())
    return int(match[1]) * _UNITS[match[2]] if match else None
