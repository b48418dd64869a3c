"""Spending a budget of tokens on results."""

from hypothesis import given, strategies as st
from tests.search.asking import DEPTHS

from quaid.model.plain_text import count_tokens
from quaid.search.answer import json_text, json_tokens, spend_budget
from quaid.search.results import Entry, SearchResult
from quaid.search.text import fit_text

WORD = "harbour "  # two tokens


def entry(slug: str, title: str, line: str, section: str, full: str) -> Entry:
    return Entry(SearchResult(slug, "default", title, "note"), line, section, full)


def result(name: str = "a", full: int = 100, section: int = 50) -> Entry:
    return entry(f"notes/{name}", "", f"Line of {name}.", WORD * section, WORD * full)


any_text = st.text(max_size=300) | st.text(alphabet='知识管理のテスト é🙂a "\\1.\n', max_size=400)
results = st.lists(st.builds(entry, st.text(max_size=30), any_text, any_text, any_text, any_text), max_size=6)


@given(results, st.integers(1, 600), st.sampled_from(DEPTHS))
def test_the_json_of_the_results_never_exceeds_the_budget(
    entries: list[Entry], budget: int, depth: str
) -> None:
    served = spend_budget(entries, budget, depth)
    assert sum(item.tokens_used for item in served) <= budget
    rows = [{**item.agent_fields(), "text": item.text} for item in served]
    assert count_tokens(json_text(rows)[1:-1]) <= budget
    for item in served:
        frame = count_tokens(json_text({**item.agent_fields(), "text": ""})) + 1
        assert item.tokens_used == frame + json_tokens(item.text)


@given(any_text, st.integers(-3, 200))
def test_a_text_fits_or_is_cut_to_fit(text: str, tokens: int) -> None:
    cut, is_cut = fit_text(text, tokens)
    assert count_tokens(cut) <= max(tokens, 0)
    assert is_cut or cut == text
    assert not is_cut or cut == "" or (cut.endswith("…") and text.startswith(cut[:-1]))


def test_auto_serves_the_whole_page_to_the_first_three_only() -> None:
    depths = [item.depth for item in spend_budget([result(str(place)) for place in range(5)], 20_000)]
    assert depths == ["full", "full", "full", "section", "section"]


def test_every_result_gets_its_line_before_any_gets_its_section() -> None:
    served = spend_budget([result(str(place), full=2_000, section=150) for place in range(10)], 1_050)
    assert [item.depth for item in served] == ["section"] * 3 + ["summary"] * 7
    assert [item.line for item in served] == [f"Line of {place}." for place in range(10)]


def test_long_lines_are_shortened_before_a_result_is_left_out() -> None:
    entries = [result(str(place))._replace(line=WORD * (60 if place % 2 else 2)) for place in range(10)]
    served = spend_budget(entries, 500)
    assert len(served) == 10
    assert [item.line.endswith("…") for item in served] == [False, True] * 5
    assert len({json_tokens(item.line) for item in served[1::2]}) == 1


def test_auto_serves_the_best_chunk_of_a_page_that_does_not_fit_whole() -> None:
    (served,) = spend_budget([result(full=10_000)], 4_000)
    assert (served.depth, served.content) == ("section", WORD * 50)


def test_full_cuts_a_page_that_does_not_fit() -> None:
    (served,) = spend_budget([result(full=10_000)], 300, "full")
    assert served.depth == "full"
    assert served.content.endswith("…")
    assert 250 < served.tokens_used <= 300


def test_a_section_that_is_cut_keeps_its_best_line() -> None:
    line = "The keel was laid in May."
    page = entry("notes/a", "", line, f"{WORD * 400}\n{line}\n{WORD * 400}", "")
    (served,) = spend_budget([page], 200, "section")
    assert served.content.startswith(f"…{line}\n")
    assert served.content.endswith("…")
    assert served.tokens_used <= 200


def test_a_section_is_not_cut_to_a_few_words() -> None:
    (served,) = spend_budget([result(section=500)], 50, "section")
    assert (served.depth, served.content, served.line) == ("summary", "", "Line of a.")


def test_summary_serves_no_content() -> None:
    (served,) = spend_budget([result()], 4_000, "summary")
    assert (served.depth, served.content, served.line) == ("summary", "", "Line of a.")


def test_results_that_nothing_is_left_for_are_left_out() -> None:
    served = spend_budget([result(str(place)) for place in range(50)], 60, "summary")
    assert 1 <= len(served) < 50


def test_a_result_without_text_is_served_by_its_fields() -> None:
    (served,) = spend_budget([entry("", "Title", "", "", "")], 50)
    assert (served.depth, served.line, served.content) == ("summary", "", "")
