"""One question over pages, notebook, daily logs, conversations and proposals, with what is current first."""

import json
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.operations import dispatch
from quaid.search.text import is_struck, is_ticked, split_statements


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def ask(brain: Brain, question: str, **arguments: Any) -> Any:
    return run(brain, "query", query=question, **arguments)


def put(brain: Brain, slug: str, text: str) -> None:
    run(brain, "put", slug=slug, content=text)


@pytest.fixture
def notes(brain: Brain, tmp_path: Path) -> Path:
    """A memory with a page, and the folder of its notebook."""
    put(brain, "concepts/zinc", "# Zinc\n\nZinc grows dendrites in sea water.")
    run(brain, "notebook init", path=str(tmp_path / "notebook"))
    return tmp_path / "notebook"


def add_conversation(brain: Brain, folder: Path, session: str, *texts: str) -> None:
    path = folder / f"{session}.jsonl"
    path.write_text(
        "".join(
            json.dumps({"role": "user", "content": text, "timestamp": 1_777_118_400, "session": session})
            + "\n"
            for text in texts
        )
    )
    run(brain, "conversations add", paths=[str(path)])


def test_each_kind_of_memory_is_found_by_one_question(brain: Brain, notes: Path, tmp_path: Path) -> None:
    (notes / "lists").mkdir(exist_ok=True)
    (notes / "lists" / "shopping.md").write_text("# Shopping\n\n- milk\n- marmalade from Dundee\n- bread\n")
    run(brain, "log", entry="Painted the lighthouse door")
    add_conversation(brain, tmp_path, "s1", "Hello.", "We chose the turquoise gondola for the parade.")
    origins = {
        question: ask(brain, question).results[0].origin
        for question in (
            "dendrites in sea water",
            "marmalade Dundee",
            "lighthouse door",
            "turquoise gondola parade",
        )
    }
    assert list(origins.values()) == ["page", "notebook", "daily", "conversation"]


def test_a_turn_has_the_address_of_its_conversation(brain: Brain, notes: Path, tmp_path: Path) -> None:
    add_conversation(brain, tmp_path, "s1", "Hello.", "We chose the turquoise gondola for the parade.")
    answer = ask(brain, "turquoise gondola parade")
    first = answer.agent_view()["results"][0]
    assert first == {
        "origin": "conversation",
        "session": "plain:s1",
        "turn": 2,
        "title": "Hello.",
        "date": "2026-04-25",
        "strength": "strong",
        "text": "We chose the turquoise gondola for the parade.",
    }
    assert run(brain, "conversations show", session=first["session"], around=first["turn"]).turns
    assert "plain:s1  Hello. (conversation" in render(answer)
    assert answer.strength == "strong"


def test_the_order_of_pages_does_not_depend_on_conversations(
    brain: Brain, notes: Path, tmp_path: Path
) -> None:
    for number in range(6):
        put(brain, f"notes/{number}", f"# Note {number}\n\n" + "The gondola is green. " * number)
    before = [result.slug for result in ask(brain, "green gondola note").results]
    add_conversation(brain, tmp_path, "s1", "The gondola is green, says the note.")
    after = ask(brain, "green gondola note", limit=20).results
    assert [result.slug for result in after if result.origin == "page"] == before
    assert sum(result.origin == "conversation" for result in after) == 1


def test_the_same_question_in_a_conversation_is_no_answer(brain: Brain, notes: Path, tmp_path: Path) -> None:
    add_conversation(brain, tmp_path, "s1", "Who paints the turquoise gondola?")
    add_conversation(brain, tmp_path, "s2", "Ines paints the turquoise gondola.")
    results = ask(brain, "who paints the turquoise gondola").results
    assert [result.session for result in results if result.origin == "conversation"] == ["plain:s2"]


def test_filters_search_only_pages_and_dates_also_conversations(
    brain: Brain, notes: Path, tmp_path: Path
) -> None:
    add_conversation(brain, tmp_path, "s1", "We chose the turquoise gondola.")
    put(brain, "boats/gondola", "# Gondola\n\nA turquoise gondola.")
    assert {result.origin for result in ask(brain, "turquoise gondola", wing="boats").results} == {"page"}
    assert {result.origin for result in ask(brain, "turquoise gondola", type="note").results} <= {"page"}
    dated = {result.origin for result in ask(brain, "turquoise gondola", until="2020-01-01").results}
    assert "conversation" not in dated
    dated = {result.origin for result in ask(brain, "turquoise gondola", since="2026-04-01").results}
    assert "conversation" in dated


def test_a_list_of_the_notebook_shows_the_matching_entry_below_its_heading(brain: Brain, notes: Path) -> None:
    (notes / "lists").mkdir(exist_ok=True)
    entries = "".join(f"- thing number {number} of the attic\n" for number in range(12))
    (notes / "lists" / "shopping.md").write_text(
        f"# Shopping\n\n## Food\n\n{entries}- marmalade from Dundee\n"
    )
    first = ask(brain, "where is the marmalade from?").results[0]
    assert first.origin == "notebook"
    assert first.line == "Food: marmalade from Dundee"
    assert "attic" not in first.content.splitlines()[1]
    assert first.agent_fields()["slug"] == "notebook::lists/shopping"


def test_own_proposals_are_found_by_their_author_alone(brain: Brain, notes: Path) -> None:
    run(brain, "config set", key="agent_writes", value="review")
    brain.agent = "codex"
    content = "# Sofia\n\nSofia repairs cellos in Cremona."
    dispatch.call(
        brain, dispatch.find_tool("memory_put"), {"slug": "people/sofia", "content": content}, "write"
    )
    first = ask(brain, "who repairs cellos?").results[0]
    assert (first.origin, first.slug, first.proposal) == ("proposal", "people/sofia", 1)
    assert "Sofia repairs cellos in Cremona." in first.text
    brain.agent = "other"
    assert all(result.origin != "proposal" for result in ask(brain, "who repairs cellos?").results)
    brain.agent = ""
    assert all(result.origin != "proposal" for result in ask(brain, "who repairs cellos?").results)


# Current and superseded


def test_struck_lines_come_after_current_ones(brain: Brain, notes: Path) -> None:
    put(brain, "notes/old", "# Old\n\n- ~~Sarah's phone number is 555-0100~~ (2026-04-01)")
    put(brain, "notes/new", "# New\n\nSarah has a phone: 555-0199 is the number now, she says.")
    results = ask(brain, "what is Sarah's phone number?").results
    assert [(result.slug, result.status) for result in results[:2]] == [
        ("notes/new", ""),
        ("notes/old", "superseded"),
    ]
    assert results[1].agent_fields()["status"] == "superseded"


def test_a_current_line_of_a_list_is_preferred_to_a_struck_one(brain: Brain, notes: Path) -> None:
    (notes / "reference").mkdir(exist_ok=True)
    (notes / "reference" / "contacts.md").write_text(
        "# Contacts\n\n- ~~Sarah's phone number is 555-0100~~ (2026-04-01)\n- Sarah's phone number is 555-0199\n"
    )
    first = ask(brain, "Sarah's phone number").results[0]
    assert (first.line, first.status) == ("Contacts: Sarah's phone number is 555-0199", "")


def test_ticked_tasks_are_superseded_only_for_questions_about_open_ones(brain: Brain, notes: Path) -> None:
    put(brain, "notes/tasks", "# Tasks\n\n- [x] order gaskets for the pump")
    assert ask(brain, "which gaskets are still to order for the pump?").results[0].status == "superseded"
    assert ask(brain, "gaskets for the pump").results[0].status == ""


def test_pages_with_the_status_superseded_come_last(brain: Brain, notes: Path) -> None:
    put(brain, "decisions/a", "---\nstatus: superseded\n---\n# Pump A\n\nWe buy the pump of Weir.")
    put(brain, "decisions/b", "# Pump B\n\nWe buy the pump of Grundfos.")
    results = ask(brain, "which pump do we buy").results
    assert [(result.slug, result.status) for result in results[:2]] == [
        ("decisions/b", ""),
        ("decisions/a", "superseded"),
    ]


@pytest.fixture
def jobs(brain: Brain, notes: Path) -> Brain:
    put(brain, "people/ada-moreau", "# Ada Moreau\n\n> Engineer.\n\nShe likes tea.")
    for value, since in (("Aldertech", "2020-01-01"), ("Birchworks", "2024-06-01")):
        run(
            brain,
            "assert",
            slug="people/ada-moreau",
            predicate="works_at",
            object=value,
            valid_from=since,
        )
    put(
        brain,
        "meetings/old",
        "# Call\n\nAda Moreau works at Aldertech as an engineer, where she works on pumps.",
    )
    put(brain, "meetings/new", "# Visit\n\nAda Moreau works at Birchworks.")
    return brain


def test_facts_that_answer_come_first_with_what_holds_before_what_has_ended(jobs: Brain) -> None:
    answer = ask(jobs, "where does Ada Moreau work?")
    assert answer.facts == (
        "Ada Moreau works at Birchworks, since 2024-06-01 (people/ada-moreau)",
        "Ada Moreau works at Aldertech, ended 2024-06-01 (people/ada-moreau)",
    )
    assert list(answer.agent_view())[:2] == ["strength", "facts"]
    assert answer.strength == "strong"
    assert "* Ada Moreau works at Birchworks" in render(answer)


def test_statements_of_what_has_ended_are_superseded(jobs: Brain) -> None:
    status = {result.slug: result.status for result in ask(jobs, "where does Ada Moreau work?").results}
    assert (status["meetings/old"], status["meetings/new"]) == ("superseded", "")
    places = list(status)
    assert places.index("meetings/new") < places.index("meetings/old")


def test_questions_about_the_past_do_not_put_it_last(jobs: Brain) -> None:
    answer = ask(jobs, "where did Ada Moreau work in 2021?")
    assert answer.facts[0].startswith("Ada Moreau works at Aldertech")
    assert all(result.status == "" for result in answer.results)


def test_facts_on_something_else_are_left_out(jobs: Brain) -> None:
    assert ask(jobs, "what does Ada Moreau like?").facts == ()
    assert ask(jobs, "where does Ben Quist work?").facts == ()


def test_facts_count_in_the_budget(jobs: Brain) -> None:
    answer = ask(jobs, "where does Ada Moreau work?", token_budget=300)
    assert answer.facts
    assert answer.total_tokens <= 300


# Statements


def test_text_is_split_into_sentences_entries_and_rows() -> None:
    text = (
        "# Head\n\nOne is here. Two goes\non here!\n\n- first entry\n  continued\n- second. With two sentences\n"
        "\n> quoted line\n\n| a | b |\n|---|---|\n| c | d |\n知识管理。测试。"
    )
    assert split_statements(text) == [
        "One is here.",
        "Two goes on here!",
        "first entry continued",
        "second. With two sentences",
        "quoted line",
        "| a | b |",
        "| c | d | 知识管理。测试。",
    ]


@pytest.mark.parametrize(
    ("statement", "struck"),
    [
        ("~~milk~~", True),
        ("~~Sarah's phone is 555-0100~~ (2026-04-01)", True),
        ("Phone: ~~555-0100~~ (2026-04-01)", True),
        ("Phone: ~~555-0100~~ (2026-04-01) 555-0199", False),
        ("milk", False),
        ("a ~~ b", False),
    ],
)
def test_struck_statements(statement: str, struck: bool) -> None:
    assert is_struck(statement) == struck


def test_ticked_statements() -> None:
    assert is_ticked("[x] done")
    assert not is_ticked("[ ] open")
    assert not is_ticked("the box [x] is ticked")
