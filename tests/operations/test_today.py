"""Today: what is due, what changed since the last look, and ticking a to-do."""

from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.errors import InvalidArgument, NotFound
from quaid.model import dates
from quaid.operations import dispatch


def owner(brain: Brain, command: str, /, **arguments: Any) -> Any:
    values = {name.rstrip("_"): value for name, value in arguments.items()}
    return dispatch.call(brain, dispatch.find_command(command), values, "owner")


@pytest.fixture
def notebook(brain: Brain, tmp_path: Path) -> Path:
    owner(brain, "notebook init")
    return tmp_path / "notebook"


def due(brain: Brain) -> list[tuple[str, str, str]]:
    return [(item.words, item.day, item.kind) for item in owner(brain, "today").due]


def test_todos_of_notebook_and_pages_and_commitments_are_due_by_day(brain: Brain, notebook: Path) -> None:
    today = brain.local()[:10]
    late, soon, later = (dates.shift_date(today, days) for days in (-3, 2, 40))
    owner(brain, "remember", content="book flights in two days")
    owner(brain, "remember", content="call the bank", category="todos")
    page = f"# Harbour\n\n- [ ] Order piles ({late})\n- [x] Paint ({late})\n- [ ] Sell it ({later})\n- [ ] Think\n"
    owner(brain, "put", slug="projects/harbour", content=page)
    for slug, type_, day in (("c/draft", "commitment", soon), ("a/slides", "action_item", today)):
        text = f"---\ntype: {type_}\ndue: {day}\nowner: Ines\n---\n# The {slug[2:]}\n"
        owner(brain, "put", slug=slug, content=text)
    record = owner(brain, "today")
    assert due(brain) == [
        (f"Order piles ({late})", late, "to-do"),
        ("The slides", today, "action item"),
        ("Book flights in two days", soon, "to-do"),
        ("The draft", soon, "commitment"),
    ]
    assert [(item.text, item.day) for item in record.later] == [(f"Sell it ({later})", later)]
    assert [item.text for item in record.undated] == ["Call the bank"]
    assert record.due[2].path == "lists/todos.md"
    assert (record.due[0].slug, record.due[0].line) == ("projects/harbour", 3)


def test_ticking_changes_one_line_of_a_page(brain: Brain) -> None:
    text = "# Harbour\n\n* [ ] Order piles\n* [ ] Order piles twice\n\n## Timeline\n\n- **2026-01-01** | call — Met\n"
    owner(brain, "put", slug="projects/harbour", content=text)
    before = owner(brain, "get", slug="projects/harbour").compiled_truth
    record = owner(brain, "tick", slug="projects/harbour", text="Order piles")
    after = owner(brain, "get", slug="projects/harbour")
    assert (record.changed, record.done, record.line) == (True, True, 3)
    assert after.compiled_truth == before.replace("* [ ] Order piles\n", "* [x] Order piles\n")
    assert not owner(brain, "tick", slug="projects/harbour", text="Order piles").changed
    assert owner(brain, "get", slug="projects/harbour").version == after.version
    assert owner(brain, "tick", slug="projects/harbour", text="Order piles", undo=True).changed
    assert owner(brain, "get", slug="projects/harbour").compiled_truth == before
    with pytest.raises(NotFound, match="Order nails"):
        owner(brain, "tick", slug="projects/harbour", text="Order nails")
    with pytest.raises(InvalidArgument, match="not a commitment"):
        owner(brain, "tick", slug="projects/harbour")


def test_a_todo_of_the_timeline_is_ticked_though_the_text_has_the_same(brain: Brain) -> None:
    text = "# Pier\n\n- [x] Order piles\n\n---\n\n- **2026-01-01** | call — Met\n- [ ] Order piles\n"
    owner(brain, "put", slug="projects/pier", content=text)
    before = owner(brain, "get", slug="projects/pier")
    assert "- [ ] Order piles" in before.timeline
    assert owner(brain, "tick", slug="projects/pier", text="Order piles").changed
    after = owner(brain, "get", slug="projects/pier")
    assert after.compiled_truth == before.compiled_truth
    assert after.timeline == before.timeline.replace("[ ]", "[x]")


def test_ticking_keeps_what_another_program_wrote_into_the_file(brain: Brain, notebook: Path) -> None:
    owner(brain, "remember", content="call the bank", category="todos")
    file = notebook / "lists/todos.md"
    text = file.read_text()
    file.write_text(text + "- [ ] Written elsewhere\n")
    owner(brain, "tick", slug="notebook::lists/todos", text="Call the bank")
    assert file.read_text() == text.replace("[ ]", "[x]") + "- [ ] Written elsewhere\n"


def test_a_commitment_is_closed_by_its_status_and_opened_again(brain: Brain) -> None:
    text = "---\ntype: commitment\nstatus: in progress\ndue: 2026-01-02\n---\n# The draft\n"
    owner(brain, "put", slug="c/draft", content=text)
    record = owner(brain, "tick", slug="c/draft")
    assert (record.changed, record.was) == (True, "in progress")
    assert due(brain) == []
    assert not owner(brain, "tick", slug="c/draft").changed
    owner(brain, "tick", slug="c/draft", undo=True, status=record.was)
    assert owner(brain, "get", slug="c/draft").frontmatter["status"] == "in progress"
    assert [item[0] for item in due(brain)] == ["The draft"]


def write(brain: Brain, author: str, slug: str, text: str) -> None:
    brain.agent = author
    try:
        version = 0
        if owner(brain, "list").pages and any(page.slug == slug for page in owner(brain, "list").pages):
            version = owner(brain, "get", slug=slug).version
        owner(brain, "put", slug=slug, content=text, expected_version=version)
    finally:
        brain.agent = ""


def test_changes_are_grouped_by_who_made_them(brain: Brain, tmp_path: Path) -> None:
    owner(brain, "config set", key="agent_writes", value="direct")
    write(brain, "", "notes/one", "# One\n\nMine.\n")
    write(brain, "claude-code", "notes/one", "# One\n\nTheirs.\n")
    write(brain, "claude-code", "notes/two", "# Two\n")
    write(brain, "", "notes/three", "# Three\n")
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "four.md").write_text("# Four\n")
    owner(brain, "collection add", name="vault", path=str(folder))
    owner(brain, "assert", slug="notes/three", predicate="status", object="open")
    groups = {(group.who, group.kind): group for group in owner(brain, "today").changed}
    assert {key: group.pages for key, group in groups.items()} == {
        ("claude-code", "agent"): 2,
        ("folder", "folder"): 1,
        ("you", "you"): 1,
    }
    pages = {page.slug: page for page in groups["claude-code", "agent"].items}
    assert (pages["notes/one"].base, pages["notes/two"].base) == (1, 0)
    assert next(iter(groups.values())).kind == "agent"


def test_a_fact_of_an_agent_counts_as_its_change(brain: Brain) -> None:
    write(brain, "", "people/ines", "# Ines\n")
    brain.agent = "codex"
    owner(brain, "assert", slug="people/ines", predicate="lives_in", object="Galway")
    brain.agent = ""
    assert [(group.who, group.kind) for group in owner(brain, "today").changed] == [("codex", "agent")]


class Clock:
    def __init__(self, brain: Brain) -> None:
        self.seconds = 1_790_000_000.0
        brain._clock = lambda: self.seconds

    def minutes(self, number: float) -> None:
        self.seconds += 60 * number


def titles(brain: Brain) -> set[str]:
    return {page.title for group in owner(brain, "today").changed for page in group.items}


def test_a_reload_loses_no_change_that_was_not_seen(brain: Brain) -> None:
    clock = Clock(brain)
    write(brain, "codex", "notes/one", "# One\n")
    assert owner(brain, "today").looked_at == ""
    assert titles(brain) == {"One"}
    owner(brain, "seen", visit=True)
    for _ in range(3):  # reloads within the visit
        clock.minutes(9)
        assert titles(brain) == {"One"}
        owner(brain, "seen", visit=True)
    clock.minutes(1)
    write(brain, "codex", "notes/two", "# Two\n")
    clock.minutes(600)
    assert titles(brain) == {"Two"}  # it was written after the last look of the visit
    owner(brain, "seen", visit=True)
    assert titles(brain) == {"Two"}
    clock.minutes(1)
    owner(brain, "seen", until=owner(brain, "today").since)
    assert titles(brain) == {"Two"}
    clock.minutes(1)
    owner(brain, "seen")
    assert titles(brain) == set()
    with pytest.raises(InvalidArgument, match="must be a time"):
        owner(brain, "seen", until="yesterday")


def test_facts_that_became_false_and_contradictions_are_listed(brain: Brain) -> None:
    clock = Clock(brain)
    write(brain, "", "people/ines", "# Ines Calder\n")
    write(brain, "", "notes/call", "# Call\n")
    owner(brain, "assert", slug="people/ines", predicate="lives_in", object="Lisbon", valid_from="2020-01-01")
    owner(brain, "assert", slug="people/ines", predicate="phone", object="555 1000", valid_from="2026-01-01")
    clock.minutes(1)
    owner(brain, "seen")
    clock.minutes(60)
    assert owner(brain, "today").facts == ()
    owner(brain, "assert", slug="people/ines", predicate="lives_in", object="Galway", valid_from="2026-05-01")
    values = {
        "subject": "Ines Calder",
        "predicate": "phone",
        "object": "555 2000",
        "valid_from": "2026-01-01",
    }
    owner(brain, "assert", slug="notes/call", **values)
    owner(brain, "check")
    record = owner(brain, "today")
    assert [line.state for line in record.facts] == ["superseded", "contradiction"]
    assert "Lisbon" in record.facts[0].text
    assert "Galway" in record.facts[0].text
    assert [(item.kind, item.number) for item in record.waiting] == [("contradictions", 1)]


def test_at_most_three_kinds_of_decisions_wait(brain: Brain, tmp_path: Path) -> None:
    write(brain, "", "people/ines", "# Ines Calder\n")
    assert owner(brain, "today").waiting == ()
    folder = tmp_path / "vault"
    folder.mkdir()
    for name in ("lost", "kept"):
        (folder / f"{name}.md").write_text(f"# The {name} note\n\nText of the {name} note.\n")
    owner(brain, "collection add", name="vault", path=str(folder))
    (folder / "lost.md").unlink()
    owner(brain, "collection sync")
    assert [item.kind for item in owner(brain, "today").waiting] == ["quarantine"]
    for phone in ("555 1000", "555 2000"):
        owner(brain, "assert", slug="people/ines", predicate="phone", object=phone, valid_from="2026-01-01")
    owner(brain, "check")
    owner(brain, "gaps add", query_text="Who insures the pier?")
    brain.agent = "codex"
    owner(brain, "propose forget", slug="people/ines", reason="Asked for it")
    brain.agent = ""
    waiting = owner(brain, "today").waiting
    assert [(item.kind, item.number) for item in waiting] == [
        ("proposals", 1),
        ("contradictions", 1),
        ("gaps", 1),
    ]
    assert waiting[0].text == "1 change that an agent proposes"
    assert all(item.cost for item in waiting)
