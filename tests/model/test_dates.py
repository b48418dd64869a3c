"""Dates and timestamps as text."""

import datetime

import pytest
from hypothesis import given, strategies as st

from quaid.errors import InvalidDate
from quaid.model import dates


@given(st.dates())
def test_every_day_of_the_calendar_is_a_date(day: datetime.date) -> None:
    assert dates.check_date(day.isoformat(), "date") == day.isoformat()


@given(st.integers(0, 9999), st.integers(0, 99), st.integers(0, 99))
def test_a_day_is_a_date_exactly_when_the_calendar_has_it(year: int, month: int, day: int) -> None:
    try:
        datetime.date(year, month, day)
        exists = True
    except ValueError:
        exists = False
    assert dates.is_date(f"{year:04}-{month:02}-{day:02}") is exists


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "2026",
        "2026-04",
        "2026-4-5",
        "2026-04-25 ",
        "2026-04-25\n",
        "26-04-25",
        "٢٠٢٦-٠٤-٢٥",
        "2025-02-29",
    ],
)
def test_anything_else_is_refused_under_the_name_of_its_argument(bad: str) -> None:
    with pytest.raises(InvalidDate, match="valid_from"):
        dates.check_date(bad, "valid_from")


@given(st.floats(0, 253402300799))
def test_a_timestamp_is_utc_to_the_second(seconds: float) -> None:
    at = datetime.datetime.fromtimestamp(int(seconds), datetime.UTC)
    assert dates.timestamp(seconds) == at.strftime("%Y-%m-%dT%H:%M:%SZ")


@given(st.dates(), st.integers(-3_650, 3_650))
def test_days_are_counted_and_shifted_as_the_calendar_does(day: datetime.date, by: int) -> None:
    assert dates.day_number(day.isoformat()) == (day - datetime.date(1970, 1, 1)).days
    try:
        later = day + datetime.timedelta(by)
    except OverflowError:
        return
    assert dates.shift_date(day.isoformat(), by) == later.isoformat()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("24h", 86_400), ("7d", 604_800), ("2w", 1_209_600), ("0h", 0), (" 1d ", 86_400)],
)
def test_a_period_is_a_number_of_hours_days_or_weeks(text: str, seconds: int) -> None:
    assert dates.period_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "7", "d", "7 d", "-1d", "1.5h", "7D", "9999d", "٧d", "2026-04-25"])
def test_anything_else_is_not_a_period(text: str) -> None:
    assert dates.period_seconds(text) is None


@pytest.mark.parametrize(
    "text", ["2026-08-31", "31 August", "31st of August 2026", "August 31", "Aug 31, 2026"]
)
def test_a_day_is_one_word_however_it_is_written(text: str) -> None:
    assert dates.fold_days(f"due {text}, late") == "due day0831x, late"
    assert dates.fold_days("31 apples, 12 of 2026-13-01") == "31 apples, 12 of 2026-13-01"


@pytest.mark.parametrize(
    ("text", "day", "is_deadline"),
    [
        ("book flights by 20 November", "2026-11-20", True),
        ("pay the rent on 3 Dec", "2026-12-03", False),
        ("March 8, order the cake", "2027-03-08", False),
        ("call Ann tomorrow", "2026-11-19", False),
        ("reply by Friday", "2026-11-20", True),
        ("reply by next Friday", "2026-11-27", True),
        ("water the plants on Wednesday", "2026-11-25", False),
        ("send the draft next week", "2026-11-27", False),
        ("send the draft this week", "2026-11-20", False),
        ("renew it in two weeks", "2026-12-02", False),
        ("expenses before the end of the month", "2026-11-30", True),
        ("passport due 2026-12-24", "2026-12-24", True),
        ("on Monday ask Jo, finish by Friday", "2026-11-20", True),
        ("ring the plumber tmrw", "2026-11-19", False),
        ("bins out thu", "2026-11-19", False),
        ("invoice by the 3rd", "2026-12-03", True),
        ("cards posted before xmas eve", "2026-12-24", True),
        ("dressing changed in a fortnight", "2026-12-02", False),
        ("bis Freitag Miete zahlen", "2026-11-20", True),
        ("am 3. März Anna anrufen", "2027-03-03", False),
    ],
)
def test_due_days_are_read_in_plain_words(text: str, day: str, is_deadline: bool) -> None:
    assert dates.find_due(text, "2026-11-18") == (day, is_deadline)  # a Wednesday


@pytest.mark.parametrize(
    "text",
    [
        "water the plants every Friday",
        "reply to the mail of 3 March",
        "water the plants for two weeks",
        "sat nav repair",
        "the 3rd draft by the 2nd author",
        "by 31 February",
        "buy milk",
    ],
)
def test_other_days_and_words_are_no_due_day(text: str) -> None:
    assert dates.find_due(text, "2026-11-18") is None


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Book flights by Friday (due 2026-11-20)", "2026-11-20"),
        ("Answer the letter of 2026-01-05 (due 2026-11-20)", "2026-11-20"),
        ("Pay on 3 December 2026", "2026-12-03"),
        ("File the 2025 report", ""),
        ("Renew it in March 2027", "2027-03-31"),
    ],
)
def test_the_day_of_a_stored_todo(text: str, day: str) -> None:
    assert dates.due_day_of(text) == day
