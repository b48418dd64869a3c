"""Where reading ends in a text that has too much of something: the rest is text, and what matters is told."""

from quaid.formats import org
from quaid.formats.org import MOST_MARKS
from quaid.model import page as page_model, plain_text, secrets, timeline


def test_a_file_of_org_with_too_many_headings_says_where_reading_ended() -> None:
    parsed = org.parse("* a\n" * (MOST_MARKS + 10))
    assert len(parsed.headings) == MOST_MARKS
    assert [(problem.line, problem.code) for problem in parsed.problems] == [
        (MOST_MARKS + 1, "too-many-marks")
    ]


def test_a_file_of_org_with_as_many_headings_as_allowed_has_no_problem() -> None:
    parsed = org.parse("* a\n" * MOST_MARKS)
    assert (len(parsed.headings), parsed.problems) == (MOST_MARKS, ())


def test_the_first_entries_of_a_timeline_are_those_of_the_whole() -> None:
    text = "".join(f"- **2026-04-{n:02}** | call — Entry {n}.\n  More.\n# b\n" for n in range(1, 29))
    assert timeline.parse(text, 7) == timeline.parse(text)[:7]
    assert len(timeline.parse(text)) == 28


def test_tags_on_one_endless_line_are_distinguished_from_code_and_targets() -> None:
    line = "#first `#code` [a](#target) (#second) " * 3_000
    assert page_model.text_tags(line) == ("first", "second")
    assert page_model.text_tags(f"    #indented\n{line}") == ("first", "second")


def test_fences_behind_the_last_that_counts_are_text() -> None:
    blocks = plain_text.find_fences("```\n```\n" * (plain_text.MOST_FENCES + 5))
    assert len(blocks) == plain_text.MOST_FENCES


def test_a_title_is_looked_for_in_whole_lines() -> None:
    text = "- a line\n" * 40_000
    looked_at = plain_text.text_head(text)
    assert plain_text.HEAD_LENGTH - 10 < len(looked_at) <= plain_text.HEAD_LENGTH
    assert looked_at.endswith("- a line")
    assert plain_text.text_head("short") == "short"


def test_text_with_too_many_candidates_is_not_clean() -> None:
    result = secrets.find_secrets("pw: x\n" * (secrets.MOST_PLACES + 10))
    assert [item.kind for item in result] == [secrets.UNSEARCHED]
    assert secrets.find_secrets("pw: x\n" * 100) == []


def test_a_run_as_long_as_a_book_is_cut_like_a_short_one() -> None:
    run = "知识图" * 8_000
    assert plain_text.cut_cjk(run).split() == plain_text.cjk_bigrams(run)
