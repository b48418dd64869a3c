"""What a person says to `remember` is neither lost nor falsified, and a line is changed only with evidence."""

from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value


def remember(brain: Brain, content: str, **arguments: Any) -> dict[str, Any]:
    tool = dispatch.find_tool("remember")
    answer: dict[str, Any] = json_value(
        dispatch.call(brain, tool, {"content": content, **arguments}, "write")
    )
    return answer


@pytest.fixture
def notebook(brain: Brain, tmp_path: Path) -> Path:
    dispatch.call(brain, dispatch.find_command("notebook init"), {}, "owner")
    return tmp_path / "notebook"


@pytest.mark.parametrize(
    "text",
    [
        "Non mi piace il caffè",
        "Nein heißt nein",
        "Correction fluid is in the second drawer",
        "Update the website",
        "Ida's birthday is in May",
        "Will is my brother",
        "May is my sister",
        "Can openers are in the left drawer",
        "What matters to Tom is punctuality",
        "I finished the report",
        "Why we left AWS: cost",
        "Forget-me-nots bloom in May",
        "Remove shoes before entering the house",
        "Take out the trash",
        "Drop Tom a line about the party",
        "Done deals are in the blue folder",
        "No. 5 is the spare key",
        "The report is not done",
        "Don't buy plastic bottles",
        "Sarah no longer eats pork",
    ],
)
def test_sentence_is_stored_verbatim_and_again_changes_nothing(
    brain: Brain, notebook: Path, text: str
) -> None:
    stored = remember(brain, text)
    assert stored["action"] == "added"
    assert [line["text"] for line in stored["lines"]] == [text]
    before = (notebook / stored["path"]).read_text()
    assert text in before
    remember(brain, text)
    assert (notebook / stored["path"]).read_text() == before


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("Update the website", "todo"),
        ("Take out the trash", "todo"),
        ("Clear the gutters", "todo"),
        ("Remove shoes before entering the house", "todo"),
        ("I finished the report", "fact"),
        ("Sarah no longer eats pork", "fact"),
        ("Don't buy plastic bottles", "order"),
        ("Do not buy plastic bottles", "order"),
    ],
)
def test_category_of_a_sentence_that_looks_like_a_change(
    brain: Brain, notebook: Path, text: str, category: str
) -> None:
    assert remember(brain, text)["category"] == category


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Todo: add a load test", "Add a load test"),
        ("remind me to add a load test", "Add a load test"),
        ("I need to call Ann", "Call Ann"),
        ("Add call Ann to my to-do list", "Call Ann"),
    ],
)
def test_lead_in_of_a_todo_is_cut_but_not_its_verb(
    brain: Brain, notebook: Path, text: str, line: str
) -> None:
    assert [row["text"] for row in remember(brain, text)["lines"]] == [line]
    assert (notebook / "lists/todos.md").read_text() == f"## To Do\n- [ ] {line}\n"


def test_apology_is_not_a_person(brain: Brain, notebook: Path) -> None:
    stored = remember(brain, "Sorry, Lena lives at Parkstrasse 7")
    assert stored["section"] != "Sorry"
    assert "Lena lives at Parkstrasse 7" in (notebook / stored["path"]).read_text()
    assert remember(brain, "Sorry, Lena's number is 555-0102")["section"] != "Sorry"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("Don't call Rob at work", "Rob doesn't work at Hill any more"),
        ("No nuts for Kim", "Kim doesn't live in Ulm any more"),
        ("Ben doesn't work at River any more", "Sarah doesn't work at River any more"),
        ("No pork for Sarah", "Sarah no longer eats pork"),
        ("Ben works at River", "Sarah doesn't work at River any more"),
        ("Rob works at Lake", "Rob doesn't work at Hill any more"),
        ("Rob is 40 years old", "Actually, Rob is my cousin"),
        ("The car is parked on level 3", "No, the car is blue"),
        ("Tom lives in Galway", "Actually, Ines lives in Cork"),
        ("Ines works in Cork", "Actually, Ines lives in Galway"),
    ],
)
def test_line_is_not_struck_without_evidence(brain: Brain, notebook: Path, line: str, text: str) -> None:
    remember(brain, line, category="facts")
    stored = remember(brain, text)
    assert stored["action"] == "added"
    every = "".join(place.read_text() for place in notebook.rglob("*.md"))
    assert "~~" not in every
    assert line in every
    assert text.split(", ")[-1].lower() in every.lower()


def test_near_lines_of_a_sentence_that_changes_nothing_are_named(brain: Brain, notebook: Path) -> None:
    remember(brain, "No pork for Sarah", category="preferences")
    stored = remember(brain, "Sarah no longer eats pork")
    assert stored["similar"] == ["reference/preferences.md:2: No pork for Sarah"]


@pytest.mark.parametrize(
    ("line", "text", "new"),
    [
        ("Rob works at Hill", "Rob doesn't work at Hill any more", "Rob doesn't work at Hill any more"),
        ("Ines lives in Cork", "Actually, Ines lives in Galway", "Ines lives in Galway"),
        ("The garage code is 4418", "Correction: the garage code is 5521", "The garage code is 5521"),
        ("会议是三点", "不对，会议是四点", "会议是四点"),
        ("The meeting is at 3", "no, the meeting is at 4, not 3", "The meeting is at 4, not 3"),
    ],
)
def test_line_is_replaced_by_another_value(
    brain: Brain, notebook: Path, line: str, text: str, new: str
) -> None:
    remember(brain, line, category="facts")
    assert remember(brain, text)["action"] == "replaced"
    assert (notebook / "knowledge/facts.md").read_text() == f"## Facts\n- ~~{line}~~ (2026-04-25)\n- {new}\n"


@pytest.mark.parametrize(
    "text",
    [
        "I must pay the rent",
        "I have not paid the rent",
        "I forgot to pay the rent",
        "Pay the rent when the salary is done",
        "Rent is done",
        "I paid the rent's deposit",
        "Remove the rent",
        "Done deals are about the rent",
    ],
)
def test_todo_is_not_ticked_by_a_sentence_that_does_not_finish_it(
    brain: Brain, notebook: Path, text: str
) -> None:
    remember(brain, "Pay the rent", category="todos")
    assert remember(brain, text)["action"] == "added"
    assert "- [ ] Pay the rent\n" in (notebook / "lists/todos.md").read_text()


def test_finished_task_without_a_todo_is_a_fact(brain: Brain, notebook: Path) -> None:
    stored = remember(brain, "done: mow the lawn")
    assert (stored["action"], stored["category"]) == ("added", "fact")
    assert "No to-do was found" in stored["note"]
    assert "done: mow the lawn" in (notebook / "knowledge/facts.md").read_text()


def test_removal_without_a_line_is_filed_unless_it_names_what_is_stored(brain: Brain, notebook: Path) -> None:
    stored = remember(brain, "remove the wallpaper")
    assert (stored["action"], stored["category"]) == ("added", "todo")
    assert "No line was found" in stored["note"]
    for text in ("Remove eggs from the shopping list", "Delete Anna's number", "forget what I said about Bo"):
        nothing = remember(brain, text)
        assert (nothing["action"], nothing["lines"]) == ("nothing", [])
        assert "nothing was changed" in nothing["note"]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("The gym membership costs 40", "Cancel the gym membership"),
        ("The battery is a CR2032", "Remove the battery"),
        ("The old photos are on the shelf", "Delete the old photos"),
    ],
)
def test_task_with_a_verb_of_removal_strikes_no_fact(
    brain: Brain, notebook: Path, line: str, text: str
) -> None:
    remember(brain, line, category="facts")
    assert remember(brain, text)["action"] == "added"
    assert (notebook / "knowledge/facts.md").read_text().startswith(f"## Facts\n- {line}\n")


def test_forgotten_statement_is_removed_and_not_filed_as_an_order(brain: Brain, notebook: Path) -> None:
    remember(brain, "Reto wants monthly invoices", category="facts")
    struck = remember(brain, "Forget that Reto wants monthly invoices")
    assert (struck["action"], struck["category"]) == ("struck", "removal")
    again = remember(brain, "Forget that Reto wants monthly invoices")
    assert (again["action"], again["category"]) == ("nothing", "removal")


def test_number_of_a_person_is_the_line_with_a_phone_number(brain: Brain, notebook: Path) -> None:
    for line in ("Anna lives in Ulm", "Anna has 3 cats", "Anna: 555-9001", "Anna: anna@example.org"):
        remember(brain, line, category="contacts", section="Anna")
    assert remember(brain, "Delete Anna's number")["lines"][0]["text"] == "Anna: 555-9001"
    assert remember(brain, "Delete Anna's number")["action"] == "nothing"
    assert "- Anna lives in Ulm\n" in (notebook / "reference/contacts.md").read_text()


@pytest.mark.parametrize("text", ["Where did I park", "What is the wifi password", "Did I pay the rent"])
def test_question_without_a_mark_is_not_stored(brain: Brain, notebook: Path, text: str) -> None:
    assert remember(brain, text)["action"] == "question"


@pytest.mark.parametrize(
    ("category", "path"),
    [
        ("fact", "knowledge/facts.md"),
        ("todo", "lists/todos.md"),
        ("contact", "reference/contacts.md"),
        ("preference", "reference/preferences.md"),
        ("order", "reference/standing-orders.md"),
        ("pattern", "knowledge/patterns.md"),
    ],
)
def test_category_of_an_answer_is_accepted(brain: Brain, notebook: Path, category: str, path: str) -> None:
    stored = remember(brain, "Oslo is cold", category=category)
    assert (stored["path"], stored["category"]) == (path, category)


def test_list_is_accepted_as_a_category(brain: Brain, notebook: Path) -> None:
    assert remember(brain, "Dune", category="list", file="reading")["path"] == "lists/reading.md"
