"""Remember, recall, log and prompt, through the gate, on real files."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests import commands

from quaid.app import Brain
from quaid.errors import FileTrouble, InvalidArgument, NoNotebook
from quaid.mcp import tools
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value
from quaid.storage import chunks

REMEMBERING = """
import sys
from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch

db, folder, who = sys.argv[1:]
with Brain(Settings(db, folder, folder)) as brain:
    for number in range(15):
        content = f"The code of {who} {number} is x{number}"
        dispatch.call(brain, dispatch.find_tool("remember"), {"content": content}, "write")
        dispatch.call(brain, dispatch.find_tool("daily_log"), {"entry": f"{who} {number}"}, "write")
"""


def call(brain: Brain, tool: str, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json_value(dispatch.call(brain, dispatch.find_tool(tool), arguments, "write"))
    return answer


@pytest.fixture
def notebook(brain: Brain, tmp_path: Path) -> Path:
    dispatch.call(brain, dispatch.find_command("notebook init"), {}, "owner")
    return tmp_path / "notebook"


def test_without_a_notebook_the_remedy_is_named(brain: Brain) -> None:
    for tool, arguments in (("recall", {"query": "x"}), ("memory_context", {})):
        with pytest.raises(NoNotebook, match="quaid remember"):
            call(brain, tool, **arguments)


def test_first_note_creates_the_notebook(brain: Brain) -> None:
    assert call(brain, "remember", content="Ada prefers mail")["path"] == "reference/preferences.md"
    assert len(brain.created) == 1
    call(brain, "daily_log", entry="Called Ada")
    assert len(brain.created) == 1


def test_what_is_remembered_is_in_its_file_and_found_at_once(brain: Brain, notebook: Path) -> None:
    result = call(brain, "remember", content="Sarah Chen's phone number is 555-1234")
    assert (result["path"], result["section"], result["version"]) == (
        "reference/contacts.md",
        "Sarah Chen",
        1,
    )
    assert (notebook / "reference/contacts.md").read_text() == (
        "## Sarah Chen\n- Sarah Chen's phone number is 555-1234\n"
    )
    results = call(brain, "recall", query="sarah phone")
    assert [(hit["path"], hit["start_line"], hit["end_line"]) for hit in results["notebook"]] == [
        ("reference/contacts.md", 1, 2)
    ]
    assert results["daily"] == []


def test_the_same_again_changes_nothing_and_says_where_it_is(brain: Brain, notebook: Path) -> None:
    call(brain, "remember", content="The garage code is 4471")
    before = (notebook / "knowledge/facts.md").read_bytes()
    again = call(brain, "remember", content="Remember that the garage code is 4471.")
    assert again["lines"] == [
        {"text": "The garage code is 4471", "path": "knowledge/facts.md", "line": 2, "written": False}
    ]
    assert (notebook / "knowledge/facts.md").read_bytes() == before


def test_an_edit_by_hand_of_a_remembered_line_stays_and_is_found(brain: Brain, notebook: Path) -> None:
    call(brain, "remember", content="The garage code is 4471")
    place = notebook / "knowledge/facts.md"
    place.write_text(place.read_text().replace("4471", "9999 since May"))
    assert call(brain, "recall", query="9999")["notebook"]
    call(brain, "remember", content="The router stands in the cupboard")
    assert place.read_text() == (
        "## Facts\n- The garage code is 9999 since May\n- The router stands in the cupboard\n"
    )
    os.unlink(place)
    assert not call(brain, "recall", query="9999")["notebook"]


def test_findings_are_grouped_and_their_lines_are_those_of_the_file(brain: Brain, notebook: Path) -> None:
    (notebook / "reference/garden.md").write_text(
        "---\ntitle: Garden\na: 1\n---\n\n# Garden\n\n## Roses\n- water the roses\n\n## Apples\n- prune in March\n"
    )
    call(brain, "daily_log", entry="Planted roses\nTwo of them.")
    result = call(brain, "recall", query="roses", min_score=0)
    hit = result["notebook"][0]
    lines = (notebook / hit["path"]).read_text().split("\n")
    assert lines[hit["start_line"] - 1 : hit["end_line"]] == ["# Garden", "", "## Roses", "- water the roses"]
    assert result["daily"][0]["heading"] == "## 12:00 — Planted roses"
    assert result["daily"][0]["score"] == hit["score"]
    assert result["semantic"] is False
    assert result["note"]


def test_scores_are_comparable_and_the_least_one_holds(brain: Brain, notebook: Path) -> None:
    for content in (
        "The boiler was serviced in 2023",
        "The garage code is 4471",
        "The bins go out on Tuesday",
    ):
        call(brain, "remember", content=content)
    full = call(brain, "recall", query="garage code")["notebook"][0]["score"]
    part = call(brain, "recall", query="garage elephants parachute", min_score=0)["notebook"][0]["score"]
    assert full == 1.0
    assert part < 0.5
    assert call(brain, "recall", query="elephants")["notebook"] == []
    assert len(call(brain, "recall", query="the garage boiler bins", max_results=1)["notebook"]) == 1


def test_only_the_notebook_is_recalled(brain: Brain, notebook: Path) -> None:
    call(brain, "memory_put", slug="notes/garage", content="# Garage\n\nThe garage is blue.")
    assert call(brain, "recall", query="garage")["notebook"] == []


@pytest.mark.parametrize("query", ["", "  ", "\n"])
def test_a_question_without_words_is_refused(brain: Brain, notebook: Path, query: str) -> None:
    with pytest.raises(InvalidArgument):
        call(brain, "recall", query=query)


def test_a_least_score_is_from_0_to_1(brain: Brain, notebook: Path) -> None:
    with pytest.raises(InvalidArgument):
        call(brain, "recall", query="x", min_score=2)


@pytest.mark.parametrize("query", ['"', "AND OR NOT", "a*b", "日本", "' ; --", "\ufffd", "x" * 4_096])
def test_any_text_is_a_question(brain: Brain, notebook: Path, query: str) -> None:
    call(brain, "remember", content="The garage code is 4471")
    assert call(brain, "recall", query=query)["daily"] == []


def test_a_notebook_is_cut_by_window_whatever_the_setting_says(brain: Brain, notebook: Path) -> None:
    dispatch.call(
        brain, dispatch.find_command("config set"), {"key": "chunk_strategy", "value": "page"}, "owner"
    )
    (notebook / "lists/long.md").write_text("## One\n- x\n\n## Two\n" + "Many words stand here. " * 400)
    call(brain, "recall", query="words")
    rows = brain.db.rows("SELECT id FROM chunks")
    cut = chunks.load(brain.db, [row[0] for row in rows])
    assert len(cut) > 3
    assert all(item.tokens <= 400 for item in cut)
    assert not any("## One" in item.text and "## Two" in item.text for item in cut)
    assert dispatch.call(brain, dispatch.find_command("validate"), {}, "owner").exit_status == 0


def test_the_log_of_a_day_grows_under_the_time(brain: Brain, notebook: Path) -> None:
    first = call(brain, "daily_log", entry="Called Sarah\nShe is fine.")
    second = call(brain, "daily_log", entry="Lunch")
    assert (first["path"], first["line"], first["heading"]) == (
        "daily/2026-04-25.md",
        3,
        "## 12:00 — Called Sarah",
    )
    assert second["version"] == 2
    assert (notebook / "daily/2026-04-25.md").read_text() == (
        "# 2026-04-25\n\n## 12:00 — Called Sarah\nShe is fine.\n\n## 12:00 — Lunch\n"
    )


def test_the_prompt_is_a_resource_too_and_needs_no_database(brain: Brain, notebook: Path) -> None:
    call(brain, "remember", content="I prefer tea")
    call(brain, "daily_log", entry="Lunch")
    text = call(brain, "memory_context")["text"]
    assert "- I prefer tea" in text
    assert "Lunch" in text
    assert tools.read_resource(brain, "memory://context")["contents"][0]["text"] == text
    with Brain(brain.settings._replace(db_path=str(notebook.parent / "deleted.db"))) as other:
        assert "- I prefer tea" in call(other, "memory_context")["text"]


def test_deleting_the_database_loses_nothing(brain: Brain, notebook: Path, tmp_path: Path) -> None:
    call(brain, "remember", content="The garage code is 4471")
    path = str(tmp_path / "again.db")
    with Brain(brain.settings._replace(db_path=path)) as other:
        other.create(path)
        made = dispatch.call(other, dispatch.find_command("notebook init"), {}, "owner")
        assert (made.created, made.files, made.folders) == (True, 1, ())
        assert call(other, "recall", query="garage code")["notebook"]


def test_two_agents_who_remember_at_once_lose_nothing(brain: Brain, notebook: Path, tmp_path: Path) -> None:
    command = [commands.script(REMEMBERING), brain.db.path, str(tmp_path)]
    children = [subprocess.Popen([*command, who]) for who in ("ann", "ben")]
    assert [child.wait() for child in children] == [0, 0]
    facts = (notebook / "knowledge/facts.md").read_text().splitlines()
    wanted = [f"- The code of {who} {number} is x{number}" for who in ("ann", "ben") for number in range(15)]
    assert sorted(facts) == sorted(["## Facts", *wanted])
    logged = "".join(place.read_text() for place in (notebook / "daily").iterdir())
    assert all(f"— {who} {number}\n" in logged for who in ("ann", "ben") for number in range(15))


def test_a_list_that_a_sentence_names_is_made_and_found_again(brain: Brain, notebook: Path) -> None:
    assert call(brain, "remember", content="Add Dune to my reading list")["path"] == "lists/reading.md"
    assert (notebook / "lists/reading.md").read_text() == "## Reading\n- Dune\n"
    (notebook / "lists/Film List.md").write_text("1. Heat\n")
    assert call(brain, "remember", content="put Ran on the films list")["path"] == "lists/Film List.md"
    assert (notebook / "lists/Film List.md").read_text() == "1. Heat\n2. Ran\n"
    assert call(brain, "recall", query="dune")["notebook"][0]["path"] == "lists/reading.md"


def test_a_file_made_by_hand_is_found_by_its_name(brain: Brain, notebook: Path) -> None:
    (notebook / "lists/garden.md").write_text("- spade\n")
    assert call(brain, "remember", content="Rake", file="garden")["path"] == "lists/garden.md"
    assert (notebook / "lists/garden.md").read_text() == "- spade\n- Rake\n"


def test_a_category_does_not_lead_out_of_its_folder(brain: Brain, notebook: Path, tmp_path: Path) -> None:
    (notebook / "reference/contacts.md").write_text("## Ann\n")
    (tmp_path / "away").mkdir()
    (notebook / "lists/away").symlink_to(tmp_path / "away")
    (notebook / "lists/people.md").symlink_to(notebook / "reference/contacts.md")
    for file in (
        "reference/contacts",
        "../reference/contacts",
        "away/x",
        "people",
        "x.org",
        "daily/2026-01-01",
    ):
        with pytest.raises((InvalidArgument, FileTrouble)):
            call(brain, "remember", content="x", category="lists", file=file)
    assert (notebook / "reference/contacts.md").read_text() == "## Ann\n"
    assert os.listdir(tmp_path / "away") == []


def test_removal_strikes_a_line_or_a_cancelled_todo(brain: Brain, notebook: Path) -> None:
    call(brain, "remember", content="buy milk and bread")
    call(brain, "remember", content="Call the bank about the card")
    struck = call(brain, "remember", content="remove milk")
    assert (struck["action"], struck["category"], struck["path"]) == (
        "struck",
        "removal",
        "lists/shopping.md",
    )
    assert (
        notebook / "lists/shopping.md"
    ).read_text() == "## Shopping List\n- ~~Milk~~ (2026-04-25)\n- Bread\n"
    cancelled = call(brain, "remember", content="cancel the todo about the bank")
    assert cancelled["action"] == "struck"
    todos = (notebook / "lists/todos.md").read_text()
    assert todos.startswith("## To Do\n")
    assert "~~Call the bank about the card~~ (cancelled" in todos
    again = call(brain, "remember", content="buy milk")
    assert (again["action"], again["category"]) == ("added", "shopping")
    assert (notebook / "lists/shopping.md").read_text().endswith("- Bread\n- Milk\n")


def test_removal_that_fits_several_lines_or_none_changes_nothing(brain: Brain, notebook: Path) -> None:
    for fact in ("The car takes diesel", "The car is parked on level 3"):
        call(brain, "remember", content=fact)
    before = (notebook / "knowledge/facts.md").read_text()
    several = call(brain, "remember", content="forget what I said about the car")
    assert several["action"] == "nothing"
    assert [line["text"] for line in several["lines"]] == [
        "The car takes diesel",
        "The car is parked on level 3",
    ]
    none = call(brain, "remember", content="delete Anna's number")
    assert (none["action"], none["lines"]) == ("nothing", [])
    assert (notebook / "knowledge/facts.md").read_text() == before


@pytest.mark.parametrize(
    "text", ["done: renew passport", "I have renewed the passport", "Renewed the passport, done"]
)
def test_finished_todo_is_ticked(brain: Brain, notebook: Path, text: str) -> None:
    call(brain, "remember", content="Renew the passport")
    call(brain, "remember", content="Call Jo")
    ticked = call(brain, "remember", content=text)
    assert (ticked["action"], ticked["category"]) == ("ticked", "todo")
    assert (notebook / "lists/todos.md").read_text() == "## To Do\n- [x] Renew the passport\n- [ ] Call Jo\n"


def test_correction_replaces_the_old_line_or_is_filed_as_a_fact(brain: Brain, notebook: Path) -> None:
    call(brain, "remember", content="The meeting is at 3")
    replaced = call(brain, "remember", content="no, the meeting is at 4, not 3")
    assert replaced["action"] == "replaced"
    assert (notebook / "knowledge/facts.md").read_text() == (
        "## Facts\n- ~~The meeting is at 3~~ (2026-04-25)\n- The meeting is at 4, not 3\n"
    )
    filed = call(brain, "remember", content="Correction: the rent is 1,260")
    assert (filed["action"], filed["category"], filed["near"]) == ("added", "fact", ["correction"])
    assert (notebook / "knowledge/facts.md").read_text().endswith("- The rent is 1,260\n")


def test_long_text_is_not_a_note(brain: Brain, notebook: Path) -> None:
    with pytest.raises(
        InvalidArgument, match="10,000 are allowed; store a long text with `quaid ingest-source`"
    ):
        call(brain, "remember", content="The tide was high. " * 600)
    operation = dispatch.find_tool("remember")
    long = dispatch.call(brain, operation, {"content": "Ada likes " + "tea and " * 600}, "write")
    assert len(long.agent_view()["lines"][0].text) <= 200


def test_question_is_not_filed(brain: Brain, notebook: Path) -> None:
    asked = call(brain, "remember", content="What's Anna's number?")
    assert (asked["action"], asked["category"], asked["lines"]) == ("question", "question", [])
    assert "`quaid query`" in asked["note"]
    assert not list(notebook.rglob("*.md"))


def test_named_category_files_a_question_all_the_same(brain: Brain, notebook: Path) -> None:
    call(brain, "remember", content="Who am I?", category="lists", file="questions")
    assert (notebook / "lists/questions.md").read_text() == "## Questions\n- Who am I?\n"


def test_a_fact_lists_the_open_todos_that_it_may_finish(brain: Brain, notebook: Path) -> None:
    call(brain, "remember", content="Send the March invoice to Halvorsen", category="todos")
    call(brain, "remember", content="Water the plants", category="todos")
    record = call(brain, "remember", content="the Halvorsen invoice has gone out")
    assert record["action"] == "added"
    assert record["similar"] == ["lists/todos.md:2: Send the March invoice to Halvorsen"]
    assert "Open to-dos" in record["note"]


def test_a_reminder_is_cancelled(brain: Brain, notebook: Path) -> None:
    call(brain, "remember", content="Remind me to water the plants")
    answer = call(brain, "remember", content="Cancel the plants reminder")
    assert (answer["category"], answer["action"]) == ("removal", "struck")
    assert "~~Water the plants~~ (cancelled" in (notebook / "lists" / "todos.md").read_text()


def test_a_new_value_replaces_the_line_of_the_earlier_one(brain: Brain, notebook: Path) -> None:
    call(brain, "remember", content="My dentist is Dr. Grube")
    answer = call(brain, "remember", content="My dentist is now Dr. Fern")
    assert answer["action"] == "replaced"
    assert "~~My dentist is Dr. Grube~~" in (notebook / "reference" / "contacts.md").read_text()
    texts = {
        asked: call(brain, "memory_query", query=asked)["results"][0]["content"]
        for asked in ("Who is my dentist?", "Who was my dentist before?")
    }
    assert ["- ~~My dentist is Dr. Grube" in text for text in texts.values()] == [False, True]
    assert all("- My dentist is now Dr. Fern" in text for text in texts.values())


@pytest.mark.parametrize(
    "content",
    [
        "Cancel the milk reminder",
        "Vergiss, dass ich Käse mag",
        "Vergiss dass ich Käse nicht mag",
        "Oublie que je n'aime pas le fromage",
        "Oublie que j'aime le fromage",
        "Dimentica il numero di Ugo",
        "Esquece o número da Rita",
    ],
)
def test_a_removal_without_a_matching_line_is_not_filed(brain: Brain, notebook: Path, content: str) -> None:
    call(brain, "remember", content="The boat key hangs in the hall")
    answer = call(brain, "remember", content=content)
    assert (answer["category"], answer["action"]) == ("removal", "nothing")
    assert "nothing was changed or added" in answer["note"]
    assert content not in "".join(path.read_text() for path in notebook.rglob("*.md"))


def test_a_german_date_does_not_end_a_sentence(brain: Brain, notebook: Path) -> None:
    call(brain, "remember", content="Zahnarzttermin am 3. Mai um 9 Uhr")
    assert call(brain, "remember", content="Vergiss den Zahnarzttermin")["action"] == "struck"
    text = "".join(path.read_text() for path in notebook.rglob("*.md"))
    assert "~~Zahnarzttermin am 3. Mai um 9 Uhr~~" in text


@pytest.mark.parametrize(
    "content",
    [
        "N'oublie pas d'acheter du lait",
        "Vergiss die Milch nicht!",
        "Bitte vergiss morgen die Milch nicht",
        "Vergeet de melk niet te kopen",
        "Glöm inte mjölken",
    ],
)
def test_a_reminder_not_to_forget_is_no_removal(brain: Brain, notebook: Path, content: str) -> None:
    call(brain, "remember", content="Todo: Milch, melk, mjölk, lait bestellen")
    assert call(brain, "remember", content=content)["action"] == "added"
    assert "- [ ] Milch, melk, mjölk, lait bestellen" in (notebook / "lists" / "todos.md").read_text()


def test_a_todo_gets_the_day_on_which_it_is_due(brain: Brain, notebook: Path) -> None:
    result = call(brain, "remember", content="book flights by 20 November")
    (line,) = result["lines"]
    today = brain.local()[:10]
    year = int(today[:4]) + (today[5:] > "11-20")
    assert (result["category"], result["due"]) == ("todo", f"{year}-11-20")
    assert line["text"] == f"Book flights by 20 November (due {year}-11-20)"
    assert f"- [ ] {line['text']}\n" in (notebook / "lists/todos.md").read_text()
    again = call(brain, "remember", content="book flights by 20 November")
    assert not again["lines"][0]["written"]
    done = call(brain, "remember", content="done: book flights")
    assert done["action"] == "ticked"


def test_something_to_buy_by_a_day_is_a_todo(brain: Brain, notebook: Path) -> None:
    assert call(brain, "remember", content="buy milk and eggs")["category"] == "shopping"
    assert call(brain, "remember", content="buy a present by Friday")["category"] == "todo"
