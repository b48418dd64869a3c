"""The time that a question speaks of."""

import pytest
from hypothesis import given, strategies as st

from quaid.model.dates import DatePhrase, find_periods

NOW = "2026-04-25T12:00:00Z"  # a Saturday


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("What did we decide in March 2024?", "2024-03-01", "2024-03-31"),
        ("2024-03-01: who came?", "2024-03-01", "2024-03-01"),
        ("notes of 2024-02", "2024-02-01", "2024-02-29"),
        ("the party on 8 May, 2023", "2023-05-08", "2023-05-08"),
        ("May 8th 2023 party", "2023-05-08", "2023-05-08"),
        ("what happened in 2022?", "2022-01-01", "2022-12-31"),
        ("summer of 2023", "2023-06-01", "2023-08-31"),
        ("results of Q3 2024", "2024-07-01", "2024-09-30"),
        ("what did I do yesterday?", "2026-04-24", "2026-04-24"),
        ("what happened last week", "2026-04-13", "2026-04-19"),
        ("this month", "2026-04-01", "2026-04-30"),
        ("last month", "2026-03-01", "2026-03-31"),
        ("last year", "2025-01-01", "2025-12-31"),
        ("who called on Monday", "2026-04-20", "2026-04-20"),
        ("3 days ago", "2026-04-22", "2026-04-22"),
        ("two months ago", "2026-02-01", "2026-02-28"),
        ("in the last 10 days", "2026-04-15", "2026-04-25"),
    ],
)
def test_a_phrase_names_its_days(question: str, start: str, end: str) -> None:
    assert [(period.first, period.last) for period in find_periods(question, NOW)] == [(start, end)]


def test_a_month_without_a_year_is_the_last_one_that_began() -> None:
    assert find_periods("in April", NOW)[0].first == "2026-04-01"
    assert find_periods("in May", NOW)[0].first == "2025-05-01"


def test_a_day_without_a_year_is_the_last_one() -> None:
    assert find_periods("on 5 July", NOW)[0].first == "2025-07-05"


def test_since_has_no_end_and_before_has_no_start() -> None:
    assert find_periods("since May", NOW) == (DatePhrase("2025-05-01", "9999-12-31", 6, 9),)
    assert find_periods("until 2020-01-15", NOW)[0][:2] == ("0001-01-01", "2020-01-15")


@pytest.mark.parametrize(
    ("question", "start", "end"),
    [
        ("before 2020-01-15", "0001-01-01", "2020-01-14"),
        ("before 2020", "0001-01-01", "2019-12-31"),
        ("after June 2023", "2023-07-01", "9999-12-31"),
        ("since June 2023", "2023-06-01", "9999-12-31"),
    ],
)
def test_before_and_after_leave_out_what_they_name(question: str, start: str, end: str) -> None:
    assert find_periods(question, NOW)[0][:2] == (start, end)


def test_between_two_times_is_one_period() -> None:
    (result,) = find_periods("between 2023-01-01 and 2023-02-01", NOW)
    assert (result.first, result.last) == ("2023-01-01", "2023-02-01")
    (result,) = find_periods("between March and June 2023", NOW)
    assert (result.first, result.last) == ("2023-03-01", "2023-06-30")


@pytest.mark.parametrize(
    "question",
    [
        *("Who may help?", "march on", "2024-13-45", "Feb 30 2024", "", "知识"),
        *("30 February 2024", "on 30 February 2024", "I may 2 go", "can we? she may 3 times"),
    ],
)
def test_words_without_a_date_give_no_period(question: str) -> None:
    assert find_periods(question, NOW) == ()


def test_a_period_holds_days_and_months() -> None:
    (result,) = find_periods("in March 2024", NOW)
    assert result.holds("2024-03-31")
    assert result.holds("2024-03")
    assert not result.holds("2024-04-01")
    assert not result.holds("")


@given(st.text(alphabet="0123456789- lastmonthweekfrombetweenandMarchMay,./", max_size=60))
def test_any_text_has_an_answer_that_starts_before_it_ends(question: str) -> None:
    assert all(period.first <= period.last for period in find_periods(question, NOW))
