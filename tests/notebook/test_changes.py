"""Which line a removal, a correction or a finished task is about."""

from typing import NamedTuple

import pytest

from quaid.model import corrections
from quaid.notebook import changes

SHOPPING = "## Shopping List\n- Milk\n- Oat milk\n- Bread\n- ~~Eggs~~\n"
TODOS = "## To Do\n- [ ] Renew the passport\n- [ ] Call the bank about the card\n- [ ] Call Jo\n- [x] Pay the rent\n"
CONTACTS = "## Anna\n- Anna's number is 555-9001\n\n## Ines Byrne\n- Ines lives in Cork\n- ines@example.org\n"
FACTS = "## Facts\n- The meeting is at 3\n- The garage code is 4418\n- The car takes diesel\n- 会议是三点\n"
LISTS = "## Reading\n- Dune\n- Emma\n"


class Line(NamedTuple):
    path: str
    text: str
    section: str
    box: str | None


def open_lines(path: str, text: str) -> list[Line]:
    return [Line(path, place.text, place.heading, place.box) for place in corrections.statements(text)]


@pytest.fixture
def lines() -> list[Line]:
    files = {
        "lists/shopping.md": SHOPPING,
        "lists/todos.md": TODOS,
        "lists/reading.md": LISTS,
        "reference/contacts.md": CONTACTS,
        "knowledge/facts.md": FACTS,
    }
    return [line for path, text in files.items() for line in open_lines(path, text)]


def test_open_lines_leave_out_what_is_ticked_or_struck(lines: list[Line]) -> None:
    texts = [line.text for line in lines]
    assert "Milk" in texts
    assert "Pay the rent" not in texts
    assert "~~Eggs~~" not in texts
    assert next(line for line in lines if line.text == "Ines lives in Cork").section == "Ines Byrne"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("remove milk", ["Milk"]),
        ("take the oat milk off the shopping list", ["Oat milk"]),
        ("delete Anna's number", ["Anna's number is 555-9001"]),
        ("forget what I said about the car", ["The car takes diesel"]),
        ("Remove Dune from my reading list", ["Dune"]),
        ("delete the todo about the passport", ["Renew the passport"]),
        ("cancel the reminder to call Jo", ["Call Jo"]),
        ("delete everything about Ines", ["Ines lives in Cork", "ines@example.org"]),
        ("remove butter", []),
        ("clear it", []),
        ("把会议删掉", ["会议是三点"]),
    ],
)
def test_lines_that_a_removal_is_about(text: str, found: list[str], lines: list[Line]) -> None:
    assert [line.text for line in changes.find_subject(text, lines)] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("done: renew passport", ["Renew the passport"]),
        ("I have renewed the passport", ["Renew the passport"]),
        ("I've called the bank", ["Call the bank about the card"]),
        ("Renew the passport is done", ["Renew the passport"]),
        ("done: call", ["Call the bank about the card", "Call Jo"]),
        ("finished: mow the lawn", []),
    ],
)
def test_task_that_is_finished(text: str, found: list[str], lines: list[Line]) -> None:
    task = changes.finished_task(text)
    assert task
    tasks = [line for line in lines if line.box is not None]
    assert [line.text for line in changes.find_task(task.text, tasks)] == found


@pytest.mark.parametrize(
    ("text", "todo"),
    [
        ("The parcel to Oslo has been sent", "Send the parcel to Oslo"),
        ("ok the gutters are cleaned, tick that off", "Clean the gutters"),
        ("Just finished grading the essays.", "Grade the essays"),
        ("Booked the table, all good.", "Book a table"),
        ("the bike's been serviced, with new brakes", "Get the bike serviced"),
        ("oh and you can cross off the trip form", "Sign the trip form"),
        ("The deposit was transferred an hour ago", "Transfer the deposit"),
        ("The invoices were filed today", "File the invoices"),
        ("C'est bon, j'ai payé le loyer.", "Payer le loyer"),
        ("Das Paket ist abgeschickt, erledigt.", "Paket abschicken"),
        ("水电费我已经交了。", "交水电费"),
        ("家賃はもう振り込みました。", "家賃を振り込む"),
    ],
)
def test_report_without_a_person_finishes_the_task_with_its_verb(text: str, todo: str) -> None:
    task = changes.finished_task(text)
    assert task
    line = Line("lists/todos.md", todo, "To Do", " ")
    assert changes.find_task(task.text, [line], 2, task.verb) == [line]


@pytest.mark.parametrize("text", ["Check the oven is off", "Complete the form", "Tick the box on page 3"])
def test_commands_report_no_finished_task(text: str) -> None:
    assert changes.finished_task(text) is None


@pytest.mark.parametrize(
    ("text", "todo"),
    [
        ("The flights to Oslo are cancelled", "Book the flights to Oslo"),
        ("The dentist is called Smith", "Call the dentist"),
        ("The bank is closed today", "Call the bank"),
        ("The invoices are not filed", "File the invoices"),
        ("The report was requested by Anna", "Write the report for Anna"),
    ],
)
def test_report_with_another_verb_finishes_no_task(text: str, todo: str) -> None:
    task = changes.finished_task(text)
    assert (
        not task
        or changes.find_task(task.text, [Line("lists/todos.md", todo, "To Do", " ")], 2, task.verb) == []
    )


@pytest.mark.parametrize(
    "text", ["I have two cats", "We were late", "Call Jo", "I am done for", "Check the bank is open", ""]
)
def test_other_sentences_finish_no_task(text: str, lines: list[Line]) -> None:
    task = changes.finished_task(text)
    assert (
        task is None or changes.find_task(task.text, [line for line in lines if line.box is not None]) == []
    )


@pytest.mark.parametrize(
    ("text", "old"),
    [
        ("no, the meeting is at 4, not 3", "The meeting is at 3"),
        ("actually Ines lives in Galway now", "Ines lives in Cork"),
        ("Anna's number is 555-9000, not 555-9001", "Anna's number is 555-9001"),
        ("the garage code was changed to 5521", "The garage code is 4418"),
        ("Correction: the rent is 1,260", None),
        ("Actually Tom lives in Galway", None),
        ("not Tuesday, Thursday", None),
    ],
)
def test_line_that_a_correction_replaces(text: str, old: str | None, lines: list[Line]) -> None:
    assert [line.text for line in changes.find_corrected(text, lines)] == ([old] if old else [])


def test_line_that_prefers_the_same_is_no_other_value() -> None:
    lines = open_lines("reference/preferences.md", "- Sarah prefers email to phone\n- Sarah prefers phone\n")
    found = changes.find_corrected("Sarah prefers email, not phone", lines)
    assert [line.text for line in found] == ["Sarah prefers phone"]


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("no, the meeting is at 4", "The meeting is at 4"),
        ("Correction: the rent is 1,260", "The rent is 1,260"),
        ("En fait, Inès habite à Toulouse", "Inès habite à Toulouse"),
        ("Actually Tom lives in Galway", "Tom lives in Galway"),
        ("Non mi piace il caffè", "Non mi piace il caffè"),
        ("Nein heißt nein", "Nein heißt nein"),
        ("Correction fluid is in the second drawer", "Correction fluid is in the second drawer"),
        ("No. 5 is taken", "No. 5 is taken"),
        ("no", "no"),
        ("Nora left", "Nora left"),
    ],
)
def test_words_that_announce_a_correction_are_removed(text: str, rest: str) -> None:
    assert changes.strip_correction(text) in (rest, rest.capitalize())


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("Rob doesn't work at Hill any more", "Rob work at Hill"),
        ("Sarah no longer eats pork.", "Sarah eats pork"),
        ("Ann isn't vegetarian anymore", "Ann is vegetarian"),
        ("Rob arbeitet nicht mehr bei Hill", "Rob arbeitet bei Hill"),
        ("Rob ya no trabaja en Hill", "Rob trabaja en Hill"),
        ("Inès n'habite plus à Lyon", "Inès habite à Lyon"),
        ("小王不再住在北京", "小王住在北京"),
        ("We do not any more", ""),
        ("Rob works at Hill", ""),
    ],
)
def test_statement_that_has_ended(text: str, statement: str) -> None:
    assert changes.ended_statement(text) == statement


@pytest.mark.parametrize(
    ("text", "reports"),
    [
        ("sent yesterday", True),
        ("I have paid it", True),
        ("it is done", True),
        ("Oslo", False),
        ("the new red one", False),
    ],
)
def test_words_that_report_a_finished_task(text: str, reports: bool) -> None:
    assert changes.reports_finished(text) is reports
