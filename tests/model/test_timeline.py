"""Timelines: reading entries, and adding one without touching the rest."""

import time

import pytest
from hypothesis import assume, example, given, strategies as st

from quaid.errors import InvalidArgument, InvalidDate
from quaid.model import timeline
from quaid.model.timeline import TimelineEntry


def shared_start(one: str, other: str) -> int:
    return next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def facts(text: str) -> list[tuple[str, str, str, str]]:
    return [entry[:4] for entry in timeline.parse(text)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("- **2024-03-01** | meeting/1 — Met Bob.", ("2024-03-01", "meeting/1", "Met Bob.", "")),
        ("- 2024-03-01 — Met Bob.", ("2024-03-01", "", "Met Bob.", "")),
        ("* 2024-03-01 – Met", ("2024-03-01", "", "Met", "")),
        ("+ 2024-03-01: Met", ("2024-03-01", "", "Met", "")),
        ("- **2024-03-01:** Met", ("2024-03-01", "", "Met", "")),
        ("- __2024-03-01__ - Met", ("2024-03-01", "", "Met", "")),
        ("   - 2024-03-01 Met Bob", ("2024-03-01", "", "Met Bob", "")),
        ("## 2024-03-01 — Met ##", ("2024-03-01", "", "Met", "")),
        ("### 2024-03-01 | mail — Met", ("2024-03-01", "mail", "Met", "")),
        ("- 2024-03-01 | call: weekly — Met - again", ("2024-03-01", "call: weekly", "Met - again", "")),
        ("- 2024-03-01 | call - Met", ("2024-03-01", "call", "Met", "")),
        ("- 2024-03-01 | call: Met", ("2024-03-01", "call", "Met", "")),
        ("- 2024-03-01 | Raised a round", ("2024-03-01", "", "Raised a round", "")),
        ("- 2024-03-01 — a | b", ("2024-03-01", "", "a | b", "")),
        ("- 2024-03-01 — 2024-03-05: trip", ("2024-03-01", "", "2024-03-05: trip", "")),
        ("- 2024-03-01", ("2024-03-01", "", "", "")),
    ],
)
def test_a_line_that_begins_with_a_date_is_an_entry(line: str, expected: tuple[str, str, str, str]) -> None:
    assert facts(line) == [expected]


@pytest.mark.parametrize(
    "line",
    [
        "- 2024-02-30 — never",
        "- 2024-13-01 — never",
        "- 2024-03 — a month",
        "- 2024 — a year",
        "2024-03-01 — no bullet",
        "    - 2024-03-01 — too far in",
        "- On 2024-03-01 we met",
        "- 2024-03-01T10:00 — a time",
        "- 2024-03-01-notes.md",
        "- 2024-03-01.md",
        "-2024-03-01 — no blank",
    ],
)
def test_other_lines_are_not(line: str) -> None:
    assert facts(line) == []


def test_indented_lines_are_the_detail_of_an_item() -> None:
    text = "- 2024-03-01 — a\n  one\n\n    two\n\nnot detail\n- 2024-03-02 — b\n\tthree"
    assert facts(text) == [("2024-03-01", "", "a", "one\n\n  two"), ("2024-03-02", "", "b", "three")]


def test_sibling_at_the_same_indentation_is_not_a_detail() -> None:
    assert facts("  - 2024-03-01 — a\n  - sibling\n") == [("2024-03-01", "", "a", "")]


def test_everything_below_a_heading_entry_is_its_detail_until_the_next_heading_or_entry() -> None:
    text = "## 2024-03-01 — a\n\ntext\n- item\n\n## Other\nlost\n## 2024-03-02\nb\nc\n- 2024-03-03 — d"
    assert facts(text) == [
        ("2024-03-01", "", "a", "text\n- item"),
        ("2024-03-02", "", "b", "c"),
        ("2024-03-03", "", "d", ""),
    ]


def test_a_heading_with_a_date_that_does_not_exist_still_ends_a_detail() -> None:
    assert facts("## 2024-03-01 — a\nb\n## 2024-02-30\nc") == [("2024-03-01", "", "a", "b")]


def test_an_entry_knows_its_line() -> None:
    assert [entry.line for entry in timeline.parse("## T\n\n- 2024-03-01 — a\n  b\n- 2024-03-02 — c")] == [
        3,
        5,
    ]


def test_the_first_entry_of_an_empty_timeline() -> None:
    assert (
        timeline.add_entry("", "2024-03-01", " Met. ", "mail", "x\n  y\n")
        == "- **2024-03-01** | mail — Met.\n  x\n    y"
    )
    assert timeline.add_entry(" \n", "2024-03-01", "Met.") == "- **2024-03-01** — Met."


def test_a_timeline_from_old_to_new_grows_at_its_end() -> None:
    text = "- 2024-01-01 — a\n- 2024-02-01 — b"
    assert timeline.add_entry(text, "2023-01-01", "c") == text + "\n- **2023-01-01** — c"


def test_a_timeline_from_new_to_old_stays_so() -> None:
    text = "## Timeline\n\n- 2024-03-01 — c\n  more\n- 2024-01-01 — a"
    assert timeline.add_entry(text, "2024-02-01", "b") == text.replace(
        "- 2024-01", "- **2024-02-01** — b\n- 2024-01"
    )
    assert timeline.add_entry(text, "2024-04-01", "d") == text.replace(
        "- 2024-03", "- **2024-04-01** — d\n- 2024-03"
    )
    assert timeline.add_entry(text, "2023-01-01", "z") == text + "\n- **2023-01-01** — z"


def test_the_second_entry_of_a_timeline_makes_it_newest_first() -> None:
    text = "- 2024-03-01 — a"
    assert timeline.add_entry(text, "2024-04-01", "b") == "- **2024-04-01** — b\n- 2024-03-01 — a"
    assert timeline.add_entry(text, "2024-02-01", "b") == "- 2024-03-01 — a\n- **2024-02-01** — b"


def test_entry_before_a_heading_or_after_a_paragraph_is_separate() -> None:
    headings = "## 2024-03-01\nx\n\n## 2024-01-01\ny"
    assert "\n\n- **2024-02-01** — b\n\n## 2024-01-01" in timeline.add_entry(headings, "2024-02-01", "b")
    assert timeline.add_entry("## Timeline", "2024-02-01", "b") == "## Timeline\n\n- **2024-02-01** — b"
    assert timeline.add_entry("Prose.\n", "2024-02-01", "b") == "Prose.\n\n- **2024-02-01** — b\n"


def test_a_detail_that_looks_like_an_entry_stays_a_detail() -> None:
    added = timeline.add_entry("", "2024-03-01", "a", detail="- 2024-01-01 — quoted")
    assert facts(added) == [("2024-03-01", "", "a", "- 2024-01-01 — quoted")]


@pytest.mark.parametrize(
    ("summary", "source", "name"),
    [
        ("", "", "summary"),
        ("a\nb", "", "summary"),
        ("a\rb", "", "summary"),
        ("a", "b\nc", "source"),
        ("a", "b — c", "source"),
    ],
)
def test_entries_that_would_not_parse_are_refused_by_name(summary: str, source: str, name: str) -> None:
    with pytest.raises(InvalidArgument, match=f"^{name}: ") as caught:
        timeline.add_entry("", "2024-03-01", summary, source)
    assert caught.value.facts["name"] == name


def test_a_date_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidDate):
        timeline.add_entry("", "2024-02-30", "a")


DATES = st.dates().map(str)
# fmt: off
PIECES = st.sampled_from([
    "- ", "* ", "## ", "  ", "    ", "\t", "**", "2024-03-01", "2024-02-01", "2024-01-01", "2023-02-30",
    " | ", " — ", " - ", ": ", "a", "text", "\n", "\n", "\n\n", "```", "---", "\u2028", "\x85",
])
# fmt: on
TEXTS = st.lists(PIECES, max_size=40).map("".join) | st.text()
ONE_LINE = (st.lists(PIECES, max_size=8).map("".join) | st.text()).filter(
    lambda s: "\n" not in s and "\r" not in s
)


@given(TEXTS, DATES, ONE_LINE, ONE_LINE, TEXTS)
@example("## 2024-01-01", "2024-03-01", "a", "", "")
@example("- 2024-03-01\n- 2024-01-01", "2024-02-01", "- b", "| c", "- 2024-03-01\n## 2024-03-01")
@example("- 2024-03-01 — x\n   ", "2024-02-01", "— b", "", "  a\nb")
def test_an_added_entry_reads_back_once_and_leaves_the_others_as_they_were(
    text: str, date: str, summary: str, source: str, detail: str
) -> None:
    assume(summary.strip() and "—" not in source)
    added = timeline.add_entry(text, date, summary, source, detail)
    before, after = facts(text), facts(added)
    own = facts(timeline.add_entry("", date, summary, source, detail))
    assert len(own) == 1
    assert own[0][:3] == (date, source.strip(), summary.strip())
    assert own[0][3].split() == detail.split()
    assert sorted(after) == sorted(before + own)


@given(TEXTS, DATES, ONE_LINE.filter(str.strip))
def test_the_old_text_survives_byte_for_byte_around_one_insertion(text: str, date: str, summary: str) -> None:
    assume(text.strip())
    added = timeline.add_entry(text, date, summary)
    same_before = shared_start(text, added)
    same_after = shared_start(text[::-1], added[::-1])
    assert same_before + same_after >= len(text)
    assert 0 <= len(added) - len(text) - len(timeline.add_entry("", date, summary)) <= 3


@given(st.permutations(["2024-01-01", "2024-02-01", "2024-03-01", "2024-04-01"]))
def test_newest_first_stays_newest_first_whatever_the_order_of_adding(dates: list[str]) -> None:
    text = "- 2030-01-01 — z\n- 2020-01-01 — a"
    for date in dates:
        text = timeline.add_entry(text, date, "x")
    results = [entry.date for entry in timeline.parse(text)]
    assert results == sorted(results, reverse=True)


@pytest.mark.parametrize(
    "unit", ["- ", "- 2024-03-01\n", "#", "# ", "  \n", "- 2024-03-01 — a\n  b\n", "|", "*", "\t"]
)
def test_hostile_repetition_is_read_in_linear_time(unit: str) -> None:
    text = unit * (400_000 // len(unit))
    start = time.process_time()
    timeline.parse(text)
    timeline.add_entry(text, "2024-03-01", "a")
    assert time.process_time() - start < 6


def test_the_hash_of_a_summary_is_sha_256() -> None:
    assert timeline.summary_hash("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert timeline.summary_hash("a") != timeline.summary_hash("b")
    assert timeline.summary_hash(" a ") == timeline.summary_hash("a")


def test_entries_are_values() -> None:
    assert TimelineEntry("2024-03-01", "", "a", "", 1) == timeline.parse("- 2024-03-01 — a")[0]
