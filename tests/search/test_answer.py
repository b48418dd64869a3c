"""Questions, answered by names, words and dates; test_meaning.py adds a model."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings as hypothesis_settings, strategies as st
from tests.search.asking import DEPTHS, NOW, ask

from quaid.errors import InvalidArgument
from quaid.model.plain_text import count_tokens
from quaid.search import text as text_search
from quaid.search.answer import Answer, json_text
from quaid.search.candidates import WORDS_ONLY, rank_question
from quaid.storage import chunks, collections
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import SearchFilters

Put = Callable[..., int]


def slugs(answer: Answer) -> list[str]:
    return [result.slug for result in answer.results]


@pytest.fixture
def vault(put: Put) -> Put:
    put(
        "people/mira-dahlquist",
        "# Mira Dahlquist\n\n> Founder of Brineloop.\n\n## Views\n\nShe trusts vanadium.",
        "- **2024-03-05** | call — Mira signed the lease.\n- **2025-08-01** | visit — Mira sold the boat.",
        title="Mira Dahlquist",
        aliases=["Captain Brine", "M.D."],
        wing="people",
        type="person",
        tags=["founder"],
    )
    put(
        "concepts/vanadium",
        "# Vanadium flow cells\n\n> A battery.\n\nVanadium survives cold sea water. Mira Dahlquist likes it.",
        title="Vanadium flow cells",
        wing="concepts",
    )
    put(
        "journal/2024-03-07",
        "Rain all day. Nothing was signed.",
        title="Thursday, 7 March 2024",
        type="journal",
        wing="journal",
    )
    put("concepts/zinc", "# Zinc\n\nZinc grows dendrites in sea water.", title="Zinc", wing="concepts")
    return put


# Names


@pytest.mark.usefixtures("vault")
@pytest.mark.parametrize(
    "question",
    [
        "Mira Dahlquist",
        "mira dahlquist?",
        "people/mira-dahlquist",
        "[[people/mira-dahlquist]]",
        "[[people/mira-dahlquist|Mira]]",
        "captain brine",
        "M.D.",
        "mira-dahlquist",
    ],
)
def test_a_page_that_is_asked_for_by_name_comes_first(db: Database, question: str) -> None:
    answer = ask(db, question)
    assert slugs(answer)[0] == "people/mira-dahlquist"
    assert (answer.results[0].lane, answer.results[0].score, answer.strength) == ("exact", 1.0, "strong")


@pytest.mark.usefixtures("vault")
def test_a_name_opens_its_page_at_the_beginning(db: Database) -> None:
    assert ask(db, "Mira Dahlquist", depth="section").results[0].start_line == 1


@pytest.mark.usefixtures("vault")
def test_a_page_that_the_question_mentions_is_favoured(db: Database) -> None:
    answer = ask(db, "what does Mira Dahlquist trust?", explain=True)
    assert slugs(answer)[0] == "people/mira-dahlquist"
    assert "the question names it (Mira Dahlquist)" in answer.results[0].reason
    assert answer.lanes[0].favour > 0


@pytest.mark.usefixtures("vault")
def test_the_wing_that_the_question_names_is_favoured(db: Database, vault: Put) -> None:
    vault("river-ai/notes", "Vanadium again, said twice: vanadium.", wing="river-ai")
    vault("other/notes", "Vanadium again, said twice: vanadium.", wing="other")
    assert slugs(ask(db, "vanadium at River AI"))[0] == "river-ai/notes"


# Words


@pytest.mark.usefixtures("vault")
def test_words_find_the_chunk_and_its_lines(db: Database) -> None:
    (first, *_) = ask(db, "who trusts it", depth="section").results
    assert (first.slug, first.part, first.start_line, first.end_line) == (
        "people/mira-dahlquist",
        "truth",
        5,
        7,
    )
    assert first.heading_path == "# Mira Dahlquist > ## Views"
    assert first.reason.startswith("holds trusts")
    assert first.lane == "words"


@pytest.mark.usefixtures("vault")
def test_each_page_is_one_result(db: Database) -> None:
    result = slugs(ask(db, "Mira signed sold trusts vanadium boat lease"))
    assert len(result) == len(set(result))


@pytest.mark.usefixtures("vault")
def test_without_a_model_the_answer_says_so(db: Database) -> None:
    assert ask(db, "vanadium").notes == ("by words only: no model is set up",)


def test_scripts_without_spaces_are_found(db: Database, put: Put) -> None:
    put("notes/tokyo", "# 東京\n\n知识管理は大切です。", title="東京の計画")
    put("notes/kyoto", "# 京都\n\n庭園。", title="京都")
    answer = ask(db, "知识管理")
    assert slugs(answer) == ["notes/tokyo"]
    assert "知识" in answer.results[0].reason


@pytest.mark.usefixtures("vault")
@pytest.mark.parametrize("merge", ["sum", "set-union", "rrf"])
def test_every_merge_strategy_answers(db: Database, merge: str) -> None:
    assert slugs(ask(db, "dendrites in sea water", strategy=merge))[0] == "concepts/zinc"


@pytest.mark.usefixtures("vault")
def test_scores_are_evidence_and_comparable_between_questions(db: Database) -> None:
    good, poor = (ask(db, text) for text in ("zinc grows dendrites", "which zinc unicorn parachute won"))
    assert (good.strength, poor.strength) == ("strong", "none")
    assert good.results[0].score >= 0.6
    assert poor.results[0].score < 0.3 < 0.9 < poor.results[0].rank_score
    assert all(result.score < 0.6 or result.strength == "strong" for result in (*good.results, *poor.results))


# Dates


@pytest.mark.usefixtures("vault")
def test_a_date_favours_the_entry_of_that_time(db: Database) -> None:
    march = ask(db, "What did Mira do in March 2024?", depth="section").results[0]
    assert (march.slug, march.part, march.start_line) == ("people/mira-dahlquist", "timeline", 1)
    assert "dated 2024-03-05 (March 2024)" in march.reason
    august = ask(db, "What did Mira do in August 2025?", depth="section").results[0]
    assert (august.part, august.start_line) == ("timeline", 2)


@pytest.mark.usefixtures("vault")
def test_a_date_alone_finds_what_is_of_that_day(db: Database) -> None:
    answer = ask(db, "on 7 March 2024", depth="section")
    assert slugs(answer)[0] == "journal/2024-03-07"
    assert slugs(ask(db, "2024-03-05"))[0] == "people/mira-dahlquist"


def test_a_question_that_only_names_a_time_finds_what_is_of_that_time(db: Database, put: Put) -> None:
    put("journal/2024-03-09", "Rain.")
    put("journal/2024-03", "The roof was mended.")
    put("meetings/kickoff", "We began.", date="2024-03-05")
    for number in range(130):
        put(f"notes/{number}", f"What happened notes {number}")
    answer = ask(db, "What happened in March 2024?")
    assert set(slugs(answer)[:3]) == {"journal/2024-03-09", "journal/2024-03", "meetings/kickoff"}
    assert answer.strength == "strong"
    assert ask(db, "What happened in May 2019?").strength != "strong"
    assert ask(db, "which notes happened in March 2024?").strength != "none"


def test_the_words_of_a_day_find_every_part_of_the_page_that_is_titled_with_it(
    db: Database, put: Put
) -> None:
    db.write(lambda tx: collections.set_setting(tx, "chunk_strategy", "paragraph"))
    for number in range(120):
        put(f"sessions/{number}", "Anna: Hello there.", title=f"Session {number}", date="2023-06-01")
    lines = [*["Ben: Well, that may be so."] * 9, "Anna: The harp has come.", "Ben: Fine, then."]
    put("sessions/day", "\n\n".join(lines), title="Session of 8 May 2023", date="2023-05-08")
    looked = rank_question(db, WORDS_ONLY, "What did Anna say on 8 May 2023?", now=NOW)
    by_words = [row.text.strip() for row in chunks.load(db, list(looked.candidates.evidence.lanes[1]))]
    assert "Anna: The harp has come." in by_words
    shown = ask(db, "What did Anna say on 8 May 2023?", depth="section").results[0]
    assert (shown.slug, shown.content) == ("sessions/day", "Anna: The harp has come.")


def test_an_answer_of_another_time_is_not_strong(db: Database, put: Put) -> None:
    put("meetings/a", "The lease was signed.", date="2023-01-05")
    put("meetings/b", "Rain.", date="2024-03-05")
    assert ask(db, "lease signed").strength == "strong"
    assert ask(db, "lease signed in May 2019").strength != "strong"


@pytest.mark.usefixtures("vault")
def test_a_time_is_cut_out_by_its_place_not_out_of_other_words(db: Database, put: Put) -> None:
    put("notes/mayor", "The Mayor spoke.", date="2026-03-01")
    assert "holds Mayor" in ask(db, "Mayor since May").results[0].reason


@pytest.mark.usefixtures("vault")
def test_since_and_until_filter_by_the_day_of_an_entry(db: Database) -> None:
    answer = ask(db, "Mira", filters=SearchFilters(since="2025-01-01", until="2025-12-31"), depth="section")
    assert [(result.slug, result.start_line) for result in answer.results] == [("people/mira-dahlquist", 2)]


@pytest.mark.usefixtures("vault")
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (SearchFilters(since="2024-03-07", until="2024-03-07"), ["journal/2024-03-07"]),
        (SearchFilters(until="2024-03-31"), ["journal/2024-03-07"]),
        (SearchFilters(since="2026-01-01", until="2026-12-31"), []),
    ],
)
def test_since_and_until_go_by_the_day_that_a_page_names(
    db: Database, filters: SearchFilters, expected: list[str]
) -> None:
    assert slugs(ask(db, "rain", filters=filters)) == expected


# Filters


@pytest.mark.usefixtures("vault")
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (SearchFilters(wing="concepts"), {"concepts/vanadium", "concepts/zinc"}),
        (SearchFilters(type="person"), {"people/mira-dahlquist"}),
        (SearchFilters(tag="founder"), {"people/mira-dahlquist"}),
        (SearchFilters(collection="default", wing="concepts"), {"concepts/vanadium", "concepts/zinc"}),
        (SearchFilters(collection="elsewhere"), set()),
    ],
)
def test_filters_hold_for_every_lane(db: Database, filters: SearchFilters, expected: set[str]) -> None:
    answer = ask(db, "Mira Dahlquist vanadium zinc water", filters=filters)
    assert set(slugs(answer)) <= expected
    assert bool(answer.results) == bool(expected)


@pytest.mark.usefixtures("vault")
def test_a_filter_keeps_out_even_a_page_of_that_name(db: Database) -> None:
    assert "people/mira-dahlquist" not in slugs(
        ask(db, "Mira Dahlquist", filters=SearchFilters(wing="concepts"))
    )


@pytest.mark.usefixtures("vault")
def test_a_quarantined_page_is_gone_at_once(db: Database) -> None:
    db.write(
        lambda tx: tx.execute("UPDATE pages SET quarantined_at = ? WHERE slug = 'concepts/zinc'", (NOW,))
    )
    assert "concepts/zinc" not in slugs(ask(db, "zinc dendrites"))
    assert "concepts/zinc" not in slugs(ask(db, "Zinc"))


# Strength


@pytest.mark.usefixtures("vault")
def test_strength_tells_what_the_memory_does_not_know(db: Database) -> None:
    assert ask(db, "zinc dendrites").strength == "strong"
    assert ask(db, "quarterly tax declaration of the bakery").strength == "none"


def test_an_empty_memory_answers_with_nothing(db: Database) -> None:
    answer = ask(db, "anything at all?")
    assert (answer.results, answer.strength, answer.total_tokens) == ((), "none", 28)


# Budget and bad input


@pytest.mark.usefixtures("vault")
@hypothesis_settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    max_examples=40,
)
@given(question=st.text(max_size=80), budget=st.integers(1, 300), depth=st.sampled_from(DEPTHS))
def test_any_text_is_answered_within_its_budget(db: Database, question: str, budget: int, depth: str) -> None:
    if not question.strip():
        return
    answer = ask(db, "vanadium Mira " + question, token_budget=budget, depth=depth)
    assert answer.total_tokens == count_tokens(
        json_text({"origin": "memory", "trust": "data"} | answer.agent_view())
    )
    assert answer.total_tokens <= budget or not answer.results
    assert answer.budget_remaining == max(0, budget - answer.total_tokens)


@pytest.mark.usefixtures("vault")
def test_a_small_budget_says_what_it_left_out(db: Database) -> None:
    answer = ask(db, "vanadium zinc Mira signed", token_budget=140)
    assert len(answer.results) >= 1
    assert any("did not fit into the budget" in note for note in answer.notes)


@pytest.mark.usefixtures("vault")
def test_a_question_of_a_megabyte_is_cut(db: Database) -> None:
    answer = ask(db, "vanadium " + "word " * 200_000)
    assert slugs(answer)[0] == "concepts/vanadium"
    assert any("characters of the question were read" in note for note in answer.notes)
    assert len(answer.question) == 500
    assert any("repeated" in note for note in answer.notes)


@pytest.mark.usefixtures("vault")
def test_a_budget_that_is_too_small_for_anything_says_that_something_was_found(db: Database) -> None:
    answer = ask(db, "lease signed", token_budget=1, filters=SearchFilters(type="person"))
    assert answer.results == ()
    assert any("the budget is too small" in note for note in answer.notes)


@pytest.mark.parametrize("question", ["", " \n"])
def test_an_empty_question_is_an_error(db: Database, question: str) -> None:
    with pytest.raises(InvalidArgument, match=r"^query: "):
        ask(db, question)


@pytest.mark.parametrize(
    "question", ['"', "AND OR NOT", "NEAR(a b)", "[[", "]] [[", "* ^ : -", "\ud800", "a\x00b", "🙂"]
)
def test_odd_text_is_only_text(db: Database, vault: Put, question: str) -> None:
    vault("notes/odd", question.encode("utf-8", "replace").decode())
    assert ask(db, question).strength in ("strong", "weak", "none")


# Large memories


@pytest.mark.usefixtures("vault")
def test_in_a_large_memory_words_that_are_everywhere_are_not_ranked(
    db: Database, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        put(f"a/{number}", "river water")
    put("a/heron", "heron")
    assert len(ask(db, "river heron", limit=50).results) == 21
    monkeypatch.setattr(text_search, "FEW_PAGES", 10)
    answer = ask(db, "river heron", limit=50, explain=True)
    assert slugs(answer)[0] == "a/heron"
    assert all(trace.words_place == 0 for trace in answer.lanes[1:])
    assert len(ask(db, "river", limit=50).results) == 20
