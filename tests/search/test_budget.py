"""Spending a budget of tokens on results."""

from hypothesis import given, strategies as st

from quaid.model.plain_text import count_tokens
from quaid.search.answer import DEPTHS, ServableTexts, fit_text, spend_budget

WORD = "harbour "  # two tokens


def result(name: str = "a", full: int = 100, section: int = 50) -> ServableTexts:
    return ServableTexts(f"Title {name}", f"Summary of {name}.", WORD * section, WORD * full)


any_text = st.text(max_size=300) | st.text(alphabet="知识管理のテスト é🙂a 1.\n", max_size=400)
results = st.lists(st.builds(ServableTexts, any_text, any_text, any_text, any_text), max_size=6)


@given(results, st.integers(1, 400), st.sampled_from(DEPTHS))
def test_the_budget_is_never_exceeded_in_any_script(
    found: list[ServableTexts], budget: int, depth: str
) -> None:
    served = spend_budget(found, budget, depth)
    assert sum(item.tokens for item in served) <= budget
    for element in served:
        assert element.tokens == sum(map(count_tokens, (element.title, element.summary, element.content)))


@given(any_text, st.integers(-3, 200))
def test_a_text_fits_or_is_cut_to_fit(text: str, tokens: int) -> None:
    cut, is_cut = fit_text(text, tokens)
    assert count_tokens(cut) <= max(tokens, 0)
    assert is_cut or cut == text
    assert not is_cut or cut == "" or (cut.endswith("…") and text.startswith(cut[:-1]))


def test_auto_serves_the_whole_page_to_the_first_three_only() -> None:
    depths = [item.depth for item in spend_budget([result(str(place)) for place in range(5)], 20_000)]
    assert depths == ["full", "full", "full", "section", "section"]


def test_auto_serves_a_chunk_while_more_than_500_tokens_are_left() -> None:
    served = spend_budget([result(str(place), full=2_000, section=150) for place in range(6)], 1_200)
    assert [item.depth for item in served] == [
        "section",
        "section",
        "section",
        "summary",
        "summary",
        "summary",
    ]


def test_auto_serves_the_best_chunk_of_a_page_that_does_not_fit_whole() -> None:
    (served,) = spend_budget([result(full=10_000)], 4_000)
    assert (served.depth, served.content) == ("section", WORD * 50)


def test_full_cuts_a_page_that_does_not_fit() -> None:
    (served,) = spend_budget([result(full=10_000)], 300, "full")
    assert served.depth == "full"
    assert served.is_cut
    assert served.content.endswith("…")
    assert 250 < served.tokens <= 300


def test_summary_serves_no_content() -> None:
    (served,) = spend_budget([result()], 4_000, "summary")
    assert (served.depth, served.content, served.summary) == ("summary", "", "Summary of a.")


def test_results_that_nothing_is_left_for_are_left_out() -> None:
    served = spend_budget([result(str(place)) for place in range(50)], 60, "summary")
    assert 1 <= len(served) < 50


def test_a_page_without_a_summary_is_served_by_its_title() -> None:
    (served,) = spend_budget([ServableTexts("Title", "", "", "")], 10)
    assert (served.depth, served.title, served.content) == ("summary", "Title", "")
