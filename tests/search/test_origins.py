"""One question over pages, notebook, daily logs, conversations and proposals, with what is current first."""

import json
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.model.chunker import is_struck, is_ticked, split_statements
from quaid.operations import dispatch


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
        "trust": "observed",
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


def test_turns_about_each_thing_whose_order_is_asked_for_are_results_by_date(
    brain: Brain, notes: Path, tmp_path: Path
) -> None:
    for number, text in enumerate(
        ("We renamed the package.", "There is a changelog now.", "Dropped support of old compilers.")
    ):
        path = tmp_path / f"s{number}.jsonl"
        said = {"role": "user", "content": text, "timestamp": 1_777_118_400 + number * 86_400}
        path.write_text(json.dumps({**said, "session": f"s{number}"}) + "\n")
        run(brain, "conversations add", paths=[str(path)])
    results = ask(
        brain, "Chronologically: old compilers dropped, the changelog, the renamed package?"
    ).results
    assert [result.session for result in results if result.session] == ["plain:s0", "plain:s1", "plain:s2"]


def test_the_same_question_in_a_conversation_is_not_a_result(
    brain: Brain, notes: Path, tmp_path: Path
) -> None:
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


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("what does Zed play?", True),
        ("Zed", True),
        ("who is playing an oboe?", True),
        ("when did Zed move to the new flat in Oslo?", True),
        ("用户界面", True),
        ("what does Ida cook?", False),
        ("who plays the harp in the town orchestra?", False),
        ("what is that?", False),
    ],
)
def test_a_question_finds_a_proposal_by_a_name_or_half_of_its_words(
    brain: Brain, notes: Path, question: str, found: bool
) -> None:
    run(brain, "config set", key="agent_writes", value="review")
    brain.agent = "codex"
    content = "Zed plays the oboe. 他喜欢用户界面。"
    dispatch.call(
        brain, dispatch.find_tool("memory_put"), {"slug": "people/zed", "content": content}, "write"
    )
    results = ask(brain, question).results
    assert [result.proposal for result in results if result.origin == "proposal"] == [1] * found


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


def test_a_corrected_line_is_superseded_for_questions_on_the_old_value(brain: Brain, notes: Path) -> None:
    put(brain, "notes/move", "# Move\n\n- ~~Marta lives in Basel~~ Marta lives in Zurich")
    assert ask(brain, "Basel").results[0].status == "superseded"
    assert ask(brain, "where does Marta live?").results[0].status == ""


def test_a_current_line_of_a_list_is_preferred_to_a_struck_one(brain: Brain, notes: Path) -> None:
    (notes / "reference").mkdir(exist_ok=True)
    (notes / "reference" / "contacts.md").write_text(
        "# Contacts\n\n- ~~Sarah's phone number is 555-0100~~ (2026-04-01)\n- Sarah's phone number is 555-0199\n"
    )
    first = ask(brain, "Sarah's phone number").results[0]
    assert (first.line, first.status) == ("Contacts: Sarah's phone number is 555-0199", "")


def test_a_struck_entry_of_a_list_does_not_mark_the_current_entries(brain: Brain, notes: Path) -> None:
    (notes / "reference").mkdir(exist_ok=True)
    (notes / "reference" / "contacts.md").write_text(
        "# Contacts\n\n- ~~Sarah's office phone number is 555-0100~~ (2026-04-01)\n- Sarah's number is 555-0199\n"
    )
    first = ask(brain, "Sarah's office phone number").results[0]
    assert (first.line, first.status) == ("Contacts: Sarah's number is 555-0199", "")
    assert "555-0100" not in ask(brain, "Sarah's office phone number", depth="section").results[0].text
    (notes / "reference" / "contacts.md").write_text(
        "# Contacts\n\n- ~~Sarah's office phone number is 555-0100~~ (2026-04-01)\n- Bo sells boats\n"
    )
    assert ask(brain, "Sarah's office phone number").results[0].status == "superseded"


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
    assert list(answer.agent_view())[:3] == ["strength", "answer", "facts"]
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


def test_facts_on_something_else_are_not_listed_and_do_not_make_an_answer_strong(jobs: Brain) -> None:
    answer = ask(jobs, "which violin does Ada Moreau play?")
    assert answer.facts == ()
    assert answer.strength != "strong"
    assert ask(jobs, "where does Ben Quist work?").facts == ()


def add_fact(brain: Brain, slug: str, predicate: str, value: str, since: str) -> None:
    run(brain, "assert", slug=slug, predicate=predicate, object=value, valid_from=since)


@pytest.fixture
def people(brain: Brain, notes: Path) -> Brain:
    """People and a project whose texts state what has ended."""
    put(brain, "people/marta-keller", "# Marta Keller\n\nMarta Keller lives in Basel.")
    put(brain, "people/sofia-lindqvist", "# Sofia Lindqvist\n\nSofia Lindqvist is analyst at Nordpol.")
    put(brain, "people/jonas-brandt", "# Jonas Brandt\n\nJonas Brandt plays chess.")
    put(brain, "projects/larkspur", "# Larkspur 1.0\n\nLarkspur 1.0 ships on 2026-05-01.")
    put(brain, "companies/helvia-logistics", "# Helvia Logistics\n\nA forwarder.")
    put(brain, "notes/visit", "# Visit\n\nPaul Basel lives in Basel, and so does his aunt.")
    for slug, predicate, old, new in (
        ("people/marta-keller", "lives_in", "Basel", "Zurich"),
        ("people/sofia-lindqvist", "role", "analyst", "head of data"),
        ("people/jonas-brandt", "works_at", "Nordpol", "Helvia Logistics"),
        ("people/jonas-brandt", "role", "clerk", "head of IT"),
        ("projects/larkspur", "deadline", "2026-05-01", "2026-09-01"),
    ):
        add_fact(brain, slug, predicate, old, "2020-01-01")
        add_fact(brain, slug, predicate, new, "2024-01-01")
    return brain


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("Where does Marta Keller live?", "Marta Keller lives in Zurich"),
        ("Where does Marta live?", "Marta Keller lives in Zurich"),
        ("where does marta live", "Marta Keller lives in Zurich"),
        ("What is Keller's city?", "Marta Keller lives in Zurich"),
        ("Sofia Lindqvist's job?", "Sofia Lindqvist role head of data"),
        ("Tell me about Sofia Lindqvist", "Sofia Lindqvist role head of data"),
        ("Who is Jonas Brandt?", "Jonas Brandt works at Helvia Logistics"),
        ("When is Larkspur 1.0 due?", "Larkspur 1.0 deadline 2026-09-01"),
        ("When is Larkspur due?", "Larkspur 1.0 deadline 2026-09-01"),
        ("Who works at Helvia Logistics?", "Jonas Brandt works at Helvia Logistics"),
        ("Who is head of IT at Helvia?", "Jonas Brandt role head of IT"),
    ],
)
def test_current_facts_are_listed_however_the_question_is_worded(
    people: Brain, question: str, fact: str
) -> None:
    facts = ask(people, question).facts
    current = [text for text in facts if ", ended " not in text]
    assert any(text.startswith(fact) for text in current), facts
    assert len(facts) <= 5


@pytest.mark.parametrize(
    ("question", "slug"),
    [
        ("Where does Marta live?", "people/marta-keller"),
        ("Tell me about Marta Keller", "people/marta-keller"),
        ("Sofia Lindqvist's job?", "people/sofia-lindqvist"),
        ("When is Larkspur 1.0 due?", "projects/larkspur"),
    ],
)
def test_text_that_states_an_ended_value_is_superseded_however_the_question_is_worded(
    people: Brain, question: str, slug: str
) -> None:
    status = {result.slug: result.status for result in ask(people, question).results}
    assert status[slug] == "superseded"


def test_an_ended_date_is_recognized_with_the_name_of_its_month(people: Brain) -> None:
    put(people, "notes/plan", "# Plan\n\nLarkspur 1.0 is due on 1 May.")
    put(people, "notes/news", "# News\n\nLarkspur 1.0 is due on September 1, not on 1 May.")
    status = {result.slug: result.status for result in ask(people, "When is Larkspur 1.0 due?").results}
    assert (status["notes/plan"], status["notes/news"]) == ("superseded", "")


def test_a_short_section_is_superseded_by_any_of_its_statements(people: Brain) -> None:
    put(people, "notes/plan", "# Larkspur 1.0 plan\n\nA billing tool. The public release is on 1 May.")
    status = {result.slug: result.status for result in ask(people, "When is Larkspur 1.0 due?").results}
    assert status["notes/plan"] == "superseded"
    more = "She has a cello. She has a cat. She has a boat. She has a bicycle."
    put(people, "notes/more", f"# Notes on Sofia Lindqvist\n\nA good listener. {more} Was analyst for long.")
    status = {result.slug: result.status for result in ask(people, "Sofia Lindqvist's job?").results}
    assert status["notes/more"] == ""


def test_the_same_value_of_someone_else_is_not_superseded(people: Brain) -> None:
    status = {result.slug: result.status for result in ask(people, "Where does Marta Keller live?").results}
    assert status["notes/visit"] == ""


def test_first_names_of_several_people_list_no_facts(people: Brain) -> None:
    put(people, "people/marta-novak", "# Marta Novak\n\nMarta Novak paints.")
    assert ask(people, "Where does Marta live?").facts == ()
    assert ask(people, "Where does Marta Olsen live?").facts == ()


def test_objects_without_a_page_are_found(people: Brain) -> None:
    add_fact(people, "people/marta-keller", "works_at", "Tidal Forge", "2024-01-01")
    for question in ("Who works at Tidal Forge?", "who works at tidal forge", "Who is with Tidal Forge now?"):
        assert ask(people, question).facts[0].startswith("Marta Keller works at Tidal Forge")


def test_questions_about_the_past_find_ended_facts_by_their_object(people: Brain) -> None:
    facts = ask(people, "Who used to work at Nordpol?").facts
    assert facts[0].startswith("Jonas Brandt works at Nordpol, ended 2024-01-01")


def test_a_question_without_a_name_lists_facts_of_the_first_pages_by_their_predicate(people: Brain) -> None:
    put(people, "projects/ledger", "# Ledger\n\nInvoices. The mail provider is Postbox.")
    add_fact(people, "projects/ledger", "mail_provider", "Postbox", "2020-01-01")
    add_fact(people, "projects/ledger", "mail_provider", "Pigeon Post", "2024-01-01")
    answer = ask(people, "Who sends our mails?")
    assert answer.facts[0].startswith("Ledger mail provider Pigeon Post")
    assert answer.results[0].status == "superseded"
    assert ask(people, "Who sends the letters of Mina Roth?").facts == ()


def test_facts_of_an_object_hold_now(people: Brain) -> None:
    facts = ask(people, "Who works at Nordpol?").facts
    assert not any(text.startswith("Jonas Brandt works at Nordpol") for text in facts)


def test_facts_count_in_the_budget(jobs: Brain) -> None:
    answer = ask(jobs, "where does Ada Moreau work?", token_budget=300)
    assert answer.facts
    assert answer.total_tokens <= 300


@pytest.fixture
def line_project(brain: Brain, notes: Path) -> Brain:
    """A company with people, and its project, whose facts changed."""
    put(brain, "companies/kestrel-brewing", "# Kestrel Brewing\n\nA brewery.")
    put(brain, "people/ruben-aalto", "# Ruben Aalto\n\nRuben Aalto, Kestrel Brewing.")
    put(brain, "projects/kestrel-line", "# Kestrel bottling line\n\nSecond line of Kestrel Brewing.")
    put(
        brain,
        "notes/call",
        "# Call on the Kestrel bottling line\n\nThe trial run is on 2 May. Ruben Aalto asks for a noise study"
        " before the trial run.",
    )
    for slug, predicate, value, since in (
        ("people/ruben-aalto", "role", "shift lead at Kestrel Brewing", "2026-01-20"),
        ("projects/kestrel-line", "budget", "EUR 1.9 million", "2026-01-20"),
        ("projects/kestrel-line", "server_deployment", "two machines in the cellar", "2026-01-20"),
        ("projects/kestrel-line", "trial_run_date", "2026-05-02", "2026-01-20"),
        ("projects/kestrel-line", "trial_run_date", "2026-05-23", "2026-03-03"),
    ):
        add_fact(brain, slug, predicate, value, since)
    return brain


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("What is the budget at Kestrel?", "Kestrel bottling line budget EUR 1.9 million"),
        ("How is the server of the Kestrel line deployed?", "Kestrel bottling line server deployment two"),
        ("What happens at Kestrel on 23 May?", "Kestrel bottling line trial run date 2026-05-23"),
        (
            "What must be done before the trial run at Kestrel?",
            "Kestrel bottling line trial run date 2026-05-23",
        ),
    ],
)
def test_facts_with_what_is_asked_for_come_before_roles_of_people(
    line_project: Brain, question: str, fact: str
) -> None:
    facts = ask(line_project, question).facts
    assert facts[0].startswith(fact)
    assert not any("role" in text for text in facts)


def test_what_holds_is_listed_beside_what_was_before(line_project: Brain) -> None:
    dates = ["2026-05-02", "2026-05-23"]
    for question, order in (
        ("When was the trial run of the Kestrel bottling line planned before?", dates),
        ("When is the trial run of the Kestrel bottling line, and when was it planned before?", dates[::-1]),
    ):
        facts = ask(line_project, question).facts
        assert [next(day for day in dates if day in text) for text in facts] == order


def test_a_superseded_result_has_what_holds_now(line_project: Brain) -> None:
    results = ask(line_project, "When is the trial run of the Kestrel bottling line?").results
    call = next(result for result in results if result.slug == "notes/call")
    assert (call.status, call.now) == ("superseded", "trial run date: 2026-05-23")
    assert call.agent_fields()["now"] == call.now


def test_a_name_of_an_ended_fact_beside_its_subject_is_not_superseded(line_project: Brain) -> None:
    add_fact(line_project, "companies/kestrel-brewing", "shift_lead", "Ruben Aalto", "2026-01-20")
    add_fact(line_project, "companies/kestrel-brewing", "shift_lead", "Malin Ojala", "2026-03-01")
    put(
        line_project,
        "notes/todo",
        "# Kestrel Brewing tasks\n\n- [ ] ask the shift lead Ruben Aalto for the plan",
    )
    answer = ask(line_project, "Who is shift lead at Kestrel Brewing?")
    assert answer.facts[0].startswith("Kestrel Brewing shift lead Malin Ojala")
    status = {result.slug: result.status for result in answer.results}
    assert (status["people/ruben-aalto"], status["notes/todo"]) == ("", "")


def test_a_statement_that_takes_a_value_back_is_not_superseded(line_project: Brain) -> None:
    put(
        line_project,
        "notes/mail",
        "# Mail on the Kestrel bottling line\n\nThe trial run is no longer on 2 May.",
    )
    results = ask(line_project, "When is the trial run of the Kestrel bottling line?").results
    assert next(result for result in results if result.slug == "notes/mail").status == ""


def test_facts_of_other_pages_are_found_by_the_source_they_were_taken_from(brain: Brain, notes: Path) -> None:
    text = "Release codes are birds, followed by a digit."
    page = {
        "slug": "projects/heron",
        "content": "# Heron\n\nA mail client.",
        "assertions": [{"predicate": "release_code_format", "object": "a bird and a digit"}],
    }
    source = {"content": text, "type": "session", "title": "Conventions", "pages": [page]}
    dispatch.call(brain, dispatch.find_tool("memory_ingest"), source, "owner")
    for number in range(12):
        put(brain, f"notes/n{number}", f"# Note {number}\n\nBarrel {number} has a name.")
    facts = ask(brain, "What do release codes consist of?").facts
    assert [fact.partition(" (")[0] for fact in facts] == [
        "Heron release code format a bird and a digit, derived"
    ]
    assert not ask(brain, "What do birds eat, and is there a digit?").facts


def test_a_predicate_is_found_if_the_subject_has_the_same_words(brain: Brain, notes: Path) -> None:
    put(brain, "concepts/noise-limit", "# Noise limit\n\nHow loud a brewery may be.")
    add_fact(brain, "concepts/noise-limit", "noise_limit", "55 decibels", "2026-01-20")
    put(brain, "studies/ghent", "# Ghent study\n\nA study of the noise limit.")
    run(
        brain,
        "assert",
        slug="studies/ghent",
        predicate="noise_limit",
        object="70 decibels",
        valid_from="2020-01-20",
        valid_until="2024-01-01",
    )
    facts = ask(brain, "At how many decibels is the noise limit?").facts
    assert [fact.partition(" (")[0] for fact in facts] == [
        "Noise limit noise limit 55 decibels, since 2026-01-20"
    ]


def test_letters_of_names_are_compared_in_their_usual_ascii_spelling(brain: Brain, notes: Path) -> None:
    put(brain, "companies/nordfisk", "# Nordfisk\n\nNordfisk has a plant in Bodø.")
    add_fact(brain, "companies/nordfisk", "headcount_bodo_plant", "195", "2026-01-20")
    facts = ask(brain, "How many people work at the Bodø plant?").facts
    assert [fact.partition(",")[0] for fact in facts] == ["Nordfisk headcount bodo plant 195"]


TRIAL = "When is the trial run of the Kestrel bottling line?"


@pytest.mark.parametrize(
    ("day", "text", "status"),
    [
        ("2026-02-10", "The trial run is set for 2 May at noon.", "superseded"),
        ("2026-03-03", "The trial run is on 2 May.", ""),
        ("2026-04-10", "The trial run is on 2 May.", ""),
        ("2026-02-10", "The trial run on 2 May was too early for the fitters.", ""),
        ("2026-02-10", "The trial run is in the week of Whitsun rather than on 2 May.", ""),
    ],
)
def test_a_text_is_superseded_only_if_it_is_older_than_the_change_and_does_not_report_it(
    line_project: Brain, day: str, text: str, status: str
) -> None:
    put(
        line_project,
        "notes/minutes",
        f"---\ndate: {day}\n---\n# Minutes on the Kestrel bottling line\n\n{text}",
    )
    results = {result.slug: result for result in ask(line_project, TRIAL).results}
    assert (results["notes/minutes"].date, results["notes/minutes"].status) == (day, status)
    assert results["notes/call"].status == "superseded"


def test_a_number_is_superseded_only_with_all_words_of_its_predicate(line_project: Brain) -> None:
    add_fact(line_project, "projects/kestrel-line", "night_shift_headcount", "30", "2026-01-20")
    add_fact(line_project, "projects/kestrel-line", "night_shift_headcount", "24", "2026-03-03")
    title = "Kestrel bottling line"
    put(line_project, "notes/plan", f"# Plan of the {title}\n\nHeadcount of the night shift: 30.")
    put(line_project, "notes/cellar", f"# Cellar of the {title}\n\n30 people carry crates.")
    answer = ask(line_project, f"How many people are in the night shift of the {title}?")
    assert answer.facts[0].startswith("Kestrel bottling line night shift headcount 24")
    status = {result.slug: result.status for result in answer.results}
    assert (status["notes/plan"], status["notes/cellar"]) == ("superseded", "")


def test_an_ended_value_that_is_not_asked_for_is_not_marked(line_project: Brain) -> None:
    text = "The noise study was paid by the city before the trial run on 2 May."
    put(line_project, "notes/noise", f"# Noise at the Kestrel bottling line\n\n{text}")
    answer = ask(line_project, "Who paid the noise study at the Kestrel bottling line?")
    noise = next(result for result in answer.results if result.slug == "notes/noise")
    assert (noise.text.endswith(text), noise.status, noise.now) == (True, "", "")


def test_the_statement_with_the_ended_value_is_the_line_of_a_superseded_result(line_project: Brain) -> None:
    results = ask(line_project, "What must be known about the trial run at Kestrel?").results
    call = next(result for result in results if result.slug == "notes/call")
    assert (call.status, call.line) == ("superseded", "The trial run is on 2 May.")


def test_a_correction_of_something_else_does_not_make_a_page_superseded(brain: Brain, notes: Path) -> None:
    put(
        brain,
        "projects/heron",
        "# Heron\n\nHeron is a mail client for harbours.\n\n---\n\n"
        "- **2026-02-01** | correction — ~~Heron stores drafts in use on disk~~ Heron keeps them in memory\n",
    )
    old, other = (
        ask(brain, question).results[0]
        for question in ("Heron: are drafts on disk?", "How is Heron packaged, and what is in use?")
    )
    assert (old.status, other.status) == ("superseded", "")
    assert "mail client" in other.text


def test_corrections_without_a_new_value_are_not_the_latest_entry(brain: Brain, notes: Path) -> None:
    put(
        brain,
        "projects/heron",
        "# Heron\n\nHeron is a mail client.\n\n---\n\n- **2999-02-01** | correction — ~~Heron is free~~ was wrong\n"
        "- **2999-01-01** | New logo\n",
    )
    assert ask(brain, "what is the client Heron?").results[0].latest == "2999-01-01: New logo"


def test_ticked_tasks_are_shown_if_the_question_asks_which_of_several_are_open(
    brain: Brain, notes: Path
) -> None:
    (notes / "lists").mkdir(exist_ok=True)
    (notes / "lists" / "todos.md").write_text(
        "# To do\n\n- [x] order copper gaskets\n- [ ] renew the Lisbon passport\n- [x] paint the attic door\n"
    )
    answer = ask(brain, "Which of these are still open: copper gaskets, the Lisbon passport, the attic door?")
    text = answer.results[0].text
    assert all(task in text for task in ("[x] order", "[ ] renew", "[x] paint")), text


# Timelines, repeated texts and open tasks


def test_the_matching_or_newest_entry_of_the_timeline_is_shown_beside_the_text(
    brain: Brain, notes: Path
) -> None:
    put(
        brain,
        "projects/heron",
        "# Heron\n\nHeron is a mail client. Public release planned for summer.\n\n---\n\n"
        "- **2026-01-10** | Mails are sent by Postbox\n- **2026-02-01** | ~~Public release is 2026-05-01~~"
        " Public release is 2026-09-01\n- **2026-03-01** | New logo\n",
    )
    first = ask(brain, "When is the public release of Heron planned?").results[0]
    assert first.part == "truth"
    assert first.latest == "2026-02-01: Public release is 2026-09-01"
    assert first.agent_fields()["latest"] == first.latest
    assert "     latest: 2026-02-01: Public release is 2026-09-01" in render(
        ask(brain, "Heron public release planned")
    )
    assert ask(brain, "which client is Heron, planned for summer?").results[0].latest == ""


def test_the_newest_entry_is_shown_if_no_entry_matches_and_the_text_is_older(
    brain: Brain, notes: Path
) -> None:
    put(
        brain,
        "projects/heron",
        "# Heron\n\nHeron is a mail client.\n\n---\n\n- **2026-01-10** | Idea\n- **2999-01-01** | New logo\n",
    )
    assert ask(brain, "what is the client Heron?").results[0].latest == "2999-01-01: New logo"


def test_latest_entries_leave_space_for_a_line_of_every_result(brain: Brain, notes: Path) -> None:
    for number in range(10):
        put(
            brain,
            f"projects/heron-{number}",
            f"# Heron {number}\n\nHeron {number} is a mail client.\n\n---\n\n"
            f"- **2999-01-01** | {' '.join(f'word{number}{place}' for place in range(60))}\n",
        )
    answer = ask(brain, "which mail client is Heron?", token_budget=800)
    assert len(answer.results) == 10
    assert answer.total_tokens <= 800
    assert [bool(result.latest) for result in answer.results] == sorted(
        [bool(result.latest) for result in answer.results], reverse=True
    )


def test_results_that_do_not_match_are_left_out_after_three_that_match(brain: Brain, notes: Path) -> None:
    for number in range(3):
        put(brain, f"notes/g{number}", f"# G{number}\n\nThe turquoise gondola {number} of the parade.")
    put(brain, "notes/other", "# Other\n\nA parade of ants, none of them on boats, went along the wall.")
    results = ask(brain, "turquoise gondola with seven lanterns and a parade").results
    assert sorted(result.slug for result in results) == ["notes/g0", "notes/g1", "notes/g2"]
    put(brain, "notes/g2", "# G2\n\nSold.")
    slugs = [
        result.slug for result in ask(brain, "turquoise gondola with seven lanterns and a parade").results
    ]
    assert {"notes/g0", "notes/g1", "notes/other"} <= set(slugs)


def test_at_most_three_results_that_do_not_match_are_shown_beside_others(brain: Brain, notes: Path) -> None:
    put(brain, "notes/kiln", "# Kiln\n\nThe kiln of Faenza burns olive stones.")
    for word in ("anchor", "basket", "candle", "drum", "engine", "flute"):
        put(brain, f"notes/{word}", f"# {word.title()}\n\nThis {word} burns well in the yard.")
    strengths = [result.strength for result in ask(brain, "Which fuel burns in the kiln of Faenza?").results]
    assert (strengths[0] != "none", strengths.count("none")) == (True, 3)


def test_a_line_has_letters(brain: Brain, notes: Path) -> None:
    put(brain, "notes/log", "# Log\n\n2026-02-26. Retries of the pump were raised.")
    result = ask(brain, "what happened on 2026-02-26?", depth="section").results[0]
    assert "Retries" in result.line


def test_the_status_of_a_closed_commitment_is_shown(brain: Brain, notes: Path) -> None:
    for name, status in (("outline", "done"), ("survey", "open"), ("visit", "cancelled")):
        front = f"---\ntype: commitment\nstatus: {status}\n---\n"
        put(brain, f"commitments/{name}", f"{front}# The {name} for Odile\n\nI promised Odile the {name}.")
    closed = {"commitments/outline": "done", "commitments/survey": "", "commitments/visit": "cancelled"}
    answer = ask(brain, "What did I promise Odile?")
    assert {result.slug: result.status for result in answer.results} == closed
    answer = ask(brain, "What is still open for Odile of what I promised?")
    assert {result.slug: result.status for result in answer.results} == closed
    assert answer.results[0].slug == "commitments/survey"
    assert answer.agent_view()["results"][1]["status"] in ("done", "cancelled")


def test_the_same_text_is_shown_once(brain: Brain, notes: Path) -> None:
    put(brain, "notes/a", "# Gondola\n\nThe turquoise gondola is sold.")
    put(brain, "sources/a", "# Mail about it\n\nThe turquoise gondola is sold.")
    assert len(ask(brain, "turquoise gondola").results) == 1


def test_open_tasks_are_at_least_a_weak_match_for_a_question_about_them(brain: Brain, notes: Path) -> None:
    put(brain, "notes/tasks", "# Jobs\n\n- [ ] call the plumber\n- [ ] renew the passport")
    answer = ask(brain, "what do I still have to do with the plumber, and when?")
    assert (answer.strength, answer.results[0].strength) != ("none", "none")
    assert ask(brain, "which quarks are still open to orthodox theology?").strength == "none"


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


def test_a_turn_that_is_a_question_comes_with_its_reply(brain: Brain, tmp_path: Path) -> None:
    add_conversation(
        brain, tmp_path, "s1", "What colour should the Wombat dashboard be?", "Let us take teal."
    )
    answer = run(brain, "query", query="What colour is the Wombat dashboard?")
    assert "teal" in answer.results[0].line + answer.results[0].content
