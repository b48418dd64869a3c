"""What a text says is over."""

import time

import pytest

from quaid.model.dates import find_dates
from quaid.model.english import OWNER, PageOwner, blank_out_code, find_departures

NORA = PageOwner(frozenset({"nora vale", "nora", "vale", "people nora vale"}), is_person=True)


@pytest.mark.parametrize(
    ("text", "subject", "scope", "first"),
    [
        ("Nora left Hexa in 2025.", OWNER, "work", "2025-01-01"),
        ("Bob Stein left Hexa in 2025.", "bob stein", "work", "2025-01-01"),
        ("She left the board of Hexa in March 2025.", OWNER, "board", "2025-03-01"),
        ("Nora stepped down as CEO of Hexa on 5 May 2025.", OWNER, "post", "2025-05-05"),
        ("Nora moved from Ghent to Lyon in May 2025.", OWNER, "move", "2025-05-01"),
        ("Bob Stein ran sales. He left Hexa in 2025.", "bob stein", "work", "2025-01-01"),
        ("Nora was at Hexa until 2025-06-30.", OWNER, "work", "2025-06-30"),
    ],
)
def test_a_departure_has_a_subject_a_kind_and_a_day(text: str, subject: str, scope: str, first: str) -> None:
    (result,) = find_departures(text, NORA)
    assert (result.subject, result.scope, result.first) == (subject, scope, first)


@pytest.mark.parametrize(
    "text",
    [
        "Nora did not leave Hexa in 2025.",
        "Nora plans to leave Hexa in 2026.",
        "Her boss left Hexa in 2025.",
        "Nora left a note at Hexa in 2025.",
        '"Nora left Hexa in 2025", the headline said.',
        "- [ ] ask whether Nora left Hexa in 2025",
        "Has Nora left Hexa in 2025?",
        "`Nora left Hexa in 2025.`",
    ],
)
def test_negated_state_is_not_a_departure(text: str) -> None:
    assert find_departures(text, NORA) == []


def test_the_line_is_that_of_the_sentence() -> None:
    (result,) = find_departures("# Nora\n\nBakes bread.\n\n- Sails\n- Left Hexa in 2025", NORA)
    assert (result.line, result.quote) == (6, "Left Hexa in 2025")


def test_an_entry_lends_its_day() -> None:
    (result,) = find_departures("Left Hexa", NORA, 7, "2025-03-01")
    assert (result.first, result.last, result.line) == ("2025-03-01", "2025-03-01", 7)


def test_a_long_hostile_text_costs_little() -> None:
    started = time.process_time()
    find_departures("left the " * 100_000, NORA)
    find_departures("Left Aa until 2020 and " * 20_000, NORA)
    assert time.process_time() - started < 20


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("in 2025", "2025-01-01", "2025-12-31"),
        ("March 2025", "2025-03-01", "2025-03-31"),
        ("5th of May 2025", "2025-05-05", "2025-05-05"),
        ("May 5, 2025", "2025-05-05", "2025-05-05"),
        ("late 2024", "2024-09-01", "2024-12-31"),
        ("Q3 2024", "2024-07-01", "2024-09-30"),
        ("February 2024", "2024-02-01", "2024-02-29"),
        ("2024-02-29", "2024-02-29", "2024-02-29"),
    ],
)
def test_a_date_is_read_as_people_write_it(text: str, first: str, last: str) -> None:
    (output,) = find_dates(text)
    assert (output.first, output.last) == (first, last)


@pytest.mark.parametrize("text", ["2025-13-01", "2025%", "12025", "1,2025 boats", "room 2025a"])
def test_number_is_not_a_date(text: str) -> None:
    assert find_dates(text) == []


def test_code_and_comments_are_blanked_and_all_else_keeps_its_place() -> None:
    assert blank_out_code("a `b` c <!-- d\ne --> f") == "a     c       \n      f"
    assert blank_out_code("a <!-- never closed") == "a <!-- never closed"


@pytest.mark.parametrize("text", ["Bob left Acme <!-- " * 40_000, "`a` " * 120_000, "<!-- a --> " * 60_000])
def test_hostile_text_is_read_in_no_time(text: str) -> None:
    started = time.process_time()
    assert len(blank_out_code(text)) == len(text)
    assert time.process_time() - started < 2
