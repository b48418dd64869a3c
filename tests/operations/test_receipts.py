"""What a write answers: what it replaced and contradicts, which facts still hold, which pages look alike."""

from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.errors import VersionConflict
from quaid.model.slug import fold_name, is_similar_name
from quaid.operations import dispatch, facts
from quaid.operations.facts import OldLine, OpenFact, ReplacedStatement


def call(brain: Brain, tool: str, /, **arguments: Any) -> Any:
    name = tool if tool == "remember" else f"memory_{tool}"
    return dispatch.call(brain, dispatch.find_tool(name), arguments, "write")


def command(brain: Brain, name: str, /, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(name), arguments, "owner")


@pytest.fixture
def bo(brain: Brain) -> Brain:
    facts = [
        {"predicate": "works_at", "object": "River", "valid_from": "2024-01-01"},
        {"predicate": "likes", "object": "tea"},
    ]
    call(
        brain,
        "put",
        slug="people/bo",
        content="---\ntype: person\n---\n# Bo Berg\n\nBakes.",
        assertions=facts,
    )
    return brain


def state_by_source(brain: Brain) -> None:
    """Make all facts those of a source. A source does not end facts of the person."""
    brain.db.write(lambda tx: tx.execute("UPDATE assertions SET trust = 3"))


def test_a_new_value_names_the_fact_that_it_ended_and_those_that_hold(bo: Brain) -> None:
    record = call(
        bo, "assert", slug="people/bo", predicate="works_at", object="Acme", valid_from="2026-01-01"
    )
    assert record.replaced == (ReplacedStatement(1, "works_at River", "2026-01-01"),)
    assert record.open_facts == (OpenFact(2, "likes tea", None),)
    assert (record.contradicts, record.collection, record.version) == ((), "default", 2)
    text = render(record)
    assert "Ended: works_at River until 2026-01-01 (fact 1)" in text
    assert "Still holds: likes tea (fact 2)" in text


def test_a_repeated_fact_has_an_empty_receipt(bo: Brain) -> None:
    record = call(bo, "assert", slug="people/bo", predicate="likes", object="tea")
    assert (record.replaced, record.open_facts, record.contradicts) == ((), (), ())


def test_facts_of_a_put_and_of_an_ingest_are_in_the_receipt(bo: Brain) -> None:
    fact = {"predicate": "works_at", "object": "Acme", "valid_from": "2026-01-01"}
    record = call(bo, "put", slug="people/bo", assertions=[fact])
    assert [item.says for item in record.replaced] == ["works_at River"]
    state_by_source(bo)
    change = {"slug": "people/bo", "assertions": [{**fact, "object": "Zed", "valid_from": "2026-02-01"}]}
    source = {"content": "Bo is at Zed now.", "source_type": "meeting", "source_ref": "m/1"}
    record = call(bo, "ingest", **source, pages=[change])
    assert [item.says for item in record.replaced] == ["works_at Acme"]
    assert [item.says for item in record.open_facts] == ["likes tea"]
    assert (record.version, record.collection) == (1, "default")


@pytest.fixture
def aurora(brain: Brain) -> Brain:
    """A project whose page has a line for each of its two facts."""
    facts = [{"predicate": "budget", "object": "80,000 CHF"}, {"predicate": "located_in", "object": "Zurich"}]
    text = "# Aurora\n\n- Budget 80,000 CHF\n- The office is located in Zurich."
    call(brain, "put", slug="projects/aurora", content=text, assertions=facts)
    return brain


def test_lines_with_the_value_of_a_replaced_fact_are_in_every_receipt(aurora: Brain) -> None:
    fact = {"predicate": "budget", "object": "95,000 CHF", "valid_from": "2026-02-01"}
    change = {"slug": "projects/aurora", "assertions": [fact]}
    state_by_source(aurora)
    record = call(
        aurora, "ingest", content="Budget 80,000 CHF is now 95,000 CHF.", type="mail", pages=[change]
    )
    assert record.still_says == (OldLine("projects/aurora", "Budget 80,000 CHF"),)
    assert "`quaid correct` with was and now" in record.hint
    fact = {"predicate": "located_in", "object": "Oslo", "valid_from": "2026-02-01"}
    record = call(aurora, "put", slug="projects/aurora", assertions=[fact])
    assert record.still_says == (OldLine("projects/aurora", "The office is located in Zurich."),)
    assert "projects/aurora still says: The office is located in Zurich." in render(record)
    fact = {"predicate": "budget", "object": "99,000 CHF", "valid_from": "2026-03-01"}
    record = call(aurora, "assert", slug="projects/aurora", **fact)
    assert (record.still_says, record.hint) == ((), "")


def test_a_line_that_mentions_the_old_value_for_another_reason_is_not_reported(brain: Brain) -> None:
    text = "# Bo\n\nBo met his wife in Ghent."
    old = {"predicate": "lives_in", "object": "Ghent", "valid_from": "2020-01-01"}
    call(brain, "put", slug="people/bo", content=text, assertions=[old])
    record = call(
        brain, "assert", slug="people/bo", predicate="lives_in", object="Lyon", valid_from="2026-01-01"
    )
    assert [row.says for row in record.replaced] == ["lives_in Ghent"]
    assert record.still_says == ()


def test_a_line_with_the_old_and_the_new_value_is_not_reported(aurora: Brain) -> None:
    call(aurora, "correct", about="projects/aurora", was="Budget 80,000 CHF", now="Budget 90,000 CHF")
    text = "The budget rose from 90,000 CHF to 95,000 CHF."
    call(aurora, "put", slug="projects/aurora", compiled_truth=f"# Aurora\n\n{text}", expected_version=2)
    record = call(aurora, "assert", slug="projects/aurora", predicate="budget", object="95,000 CHF")
    assert [row.says for row in record.replaced] == ["budget 90,000 CHF"]
    assert record.still_says == ()


def test_at_most_five_open_facts_with_the_written_predicate_first(bo: Brain) -> None:
    for number in range(6):
        call(bo, "assert", slug="people/bo", predicate="has_met", object=f"guest {number}")
    record = call(bo, "assert", slug="people/bo", predicate="likes", object="rain")
    assert len(record.open_facts) == facts.MAX_OPEN_FACTS
    assert record.open_facts[0].says == "likes tea"


def test_a_contradiction_has_an_id_and_both_quotes(bo: Brain) -> None:
    record = call(bo, "timeline_add", slug="people/bo", date="2026-03-01", summary="Left River.")
    [conflict] = record.contradicts
    assert any("Left River" in quote for quote in conflict.quotes)
    assert len(conflict.quotes) == 2
    assert f"Contradiction {conflict.id}: " in render(record)
    resolved = call(bo, "check", resolve=conflict.id, keep="right")
    assert resolved.resolved.id == conflict.id
    assert call(bo, "put", slug="people/bo", append="Sings.").contradicts == ()


def test_a_contradiction_that_a_write_removes_is_forgotten(bo: Brain) -> None:
    call(bo, "timeline_add", slug="people/bo", date="2026-03-01", summary="Left River.")
    record = call(
        bo, "assert", slug="people/bo", predicate="works_at", object="River", valid_until="2026-03-01"
    )
    assert record.contradicts == ()
    assert call(bo, "contradictions").total == 0


@pytest.mark.parametrize(
    ("slug", "content"),
    [
        ("contacts/bo-berg", "---\ntype: person\n---\n# Bo Berg\n\nAgain."),
        ("people/berg-bo", "---\ntype: person\n---\n# Berg, Bo\n\nAgain."),
        ("people/bo-bergg", "---\ntype: person\n---\n# Bo Bergg\n\nAgain."),
        ("people/b", "---\ntype: person\naliases: [bo berg]\n---\n# B.\n\nAgain."),
    ],
)
def test_a_page_that_looks_like_another_is_named(bo: Brain, slug: str, content: str) -> None:
    record = call(bo, "put", slug=slug, content=content)
    assert record.similar == ("people/bo",)
    assert "Perhaps the same thing: people/bo" in render(record)
    command(bo, "distinct", slug="people/bo", other=slug)
    assert call(bo, "put", slug=slug, append="More.").similar == ()


@pytest.mark.parametrize(("one", "other"), [("Emre Yildiz", "E. Yildiz"), ("E. Yildiz", "Emre Yildiz")])
def test_a_name_with_an_initial_is_similar_among_many_names(brain: Brain, one: str, other: str) -> None:
    for number in range(60):
        title = f"E{chr(97 + number % 26)}a Person{number}"
        call(brain, "put", slug=f"people/p{number}", content=f"# {title}\n\nA person.")
    call(brain, "put", slug="people/first", content=f"# {one}\n\nAn engineer.")
    record = call(brain, "put", slug="people/second", content=f"# {other}\n\nAn engineer.")
    assert record.similar == ("people/first",)
    assert "tell the user" in record.hint


def test_names_of_many_pages_are_not_similar(brain: Brain) -> None:
    for number in range(4):
        call(brain, "put", slug=f"projects/p{number}/overview", content=f"# Overview\n\nProject {number}.")
    assert call(brain, "put", slug="projects/q/overview", content="# Overview\n\nOther.").similar == ()


@pytest.mark.parametrize(
    ("one", "other", "type", "expected"),
    [
        ("Acme", "Acme Inc.", "company", True),
        ("Acme", "Acme Labs", "company", False),
        ("Priya", "Priya Natarajan", "person", True),
        ("Harbour", "Harbour Office", "place", False),
        ("Meeting 2026-04-01", "Meeting 2026-04-02", "meeting", False),
        ("Northwind Freight", "Northwind Frieght", "company", True),
        ("Anna", "Anne", "person", False),
        ("E. Yildiz", "Emre Yildiz", "person", True),
        ("J. R. Moss", "Jen Rita Moss", "person", True),
        ("Jen Moss", "Jen Rita Moss", "person", True),
        ("A. Yildiz", "Emre Yildiz", "person", False),
        ("E. Yildiz", "Emre Yilmaz", "person", False),
        ("Ada Yildiz", "Emre Yildiz", "person", False),
        ("A Plan", "Apollo Plan", "project", False),
        ("Alice Berg", "Carol Dahl", "person", False),
    ],
)
def test_similar_names(one: str, other: str, type: str, expected: bool) -> None:
    assert is_similar_name(fold_name(one), fold_name(other), type) is expected
    assert is_similar_name(fold_name(other), fold_name(one), type) is expected


def test_a_link_answers_with_its_collection_and_open_facts(bo: Brain) -> None:
    call(bo, "put", slug="people/cy", content="# Cy")
    record = call(bo, "link", **{"from": "people/bo", "to": "people/cy"})
    assert (record.collection, len(record.open_facts)) == ("default", 2)


def test_an_agent_gets_a_short_answer(bo: Brain) -> None:
    bo.agent = "tester"
    record = call(bo, "put", slug="people/cy", content="# Cy\n\nSings.")
    assert (record.slug, record.version, record.collection, record.title, record.summary) == (
        *("people/cy", 1, "default"),
        *("", ""),
    )


@pytest.fixture
def notebook(brain: Brain) -> Brain:
    command(brain, "notebook init")
    return brain


def test_remember_names_lines_that_say_nearly_the_same(notebook: Brain) -> None:
    call(notebook, "remember", content="Sarah prefers email to phone")
    call(notebook, "remember", content="The harbour crane is blue")
    record = call(notebook, "remember", content="Sarah prefers email, not phone")
    assert (record.collection, record.version > 1) == ("notebook", True)
    assert [line.partition(": ")[2] for line in record.similar] == ["Sarah prefers email to phone"]
    assert "Nearly the same: reference/preferences.md:" in render(record)


def test_a_ticked_line_is_replaced(notebook: Brain) -> None:
    call(notebook, "remember", content="todo: renew the passport")
    record = call(notebook, "remember", content="done: renew the passport")
    assert record.action == "ticked"
    assert [statement.says for statement in record.replaced] == ["Renew the passport"]
    assert record.similar == ()


def test_a_list_of_items_has_no_similar_lines(notebook: Brain) -> None:
    assert call(notebook, "remember", content="buy milk, eggs and bread").similar == ()


def test_log_and_file_name_their_collection(notebook: Brain) -> None:
    for tool, arguments in (
        ("daily_log", {"content": "Shipped version 2"}),
        ("notebook_write", {"path": "lists/x.md", "content": "- a"}),
    ):
        record = dispatch.call(notebook, dispatch.find_tool(tool), arguments, "write")
        assert record.collection == "notebook"


@pytest.mark.parametrize(
    "part",
    [
        {"assertions": [{"predicate": "works_at", "object": "River"}]},
        {"timeline_append": "- **2026-04-25** | call — Moved to Oslo."},
        {"frontmatter": {"role": "engineer"}},
    ],
)
def test_a_part_of_a_missing_page_creates_the_page(brain: Brain, part: dict[str, Any]) -> None:
    record = call(brain, "put", slug="people/ada-lund", **part)
    assert (record.created, record.version, record.title) == (True, 1, "Ada Lund")
    assert record.notes == ("a new page: its title is 'Ada Lund', from the slug",)
    assert call(brain, "get", slug="people/ada-lund").compiled_truth == "# Ada Lund"
    again = call(brain, "put", slug="people/ada-lund", **part)
    assert (again.created, again.changed, again.notes) == (False, "timeline_append" in part, ())
    if "assertions" in part:
        facts = call(brain, "facts", subject="people/ada-lund").facts
        assert [(fact.subject, fact.object) for fact in facts] == [("Ada Lund", "River")]


def test_a_fact_of_a_missing_page_with_a_version_is_refused(brain: Brain) -> None:
    facts = [{"predicate": "works_at", "object": "River"}]
    with pytest.raises(VersionConflict):
        call(brain, "put", slug="people/ada", assertions=facts, expected_version=3)
