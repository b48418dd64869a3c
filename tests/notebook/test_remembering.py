"""The right line under the right heading of the right file, once."""

import pytest

from quaid.errors import InvalidArgument
from quaid.notebook.remembering import target, write


def remembered(text: str | None, content: str, **where: str) -> str:
    goal = target(content, where.get("category"), where.get("file"), where.get("section"))
    return write(text, goal).text


def test_each_kind_goes_to_its_file_and_section() -> None:
    assert remembered(None, "Call the dentist tomorrow") == "## To Do\n- [ ] Call the dentist tomorrow\n"
    assert target("I prefer tea", None, None, None)[:2] == ("reference/preferences.md", "Preferences")
    assert target("Sarah Chen's phone is 555-1234", None, None, None)[:2] == (
        "reference/contacts.md",
        "Sarah Chen",
    )


def test_who_says_the_place_gets_it() -> None:
    assert target("Dune", "lists", "reading", None)[:2] == ("lists/reading.md", "Reading")
    assert target("Dune", None, "lists/sf-books.md", "To read")[:2] == ("lists/sf-books.md", "To read")
    assert target("Dune", None, "reading", None, ("lists/reading.md",)).path == "lists/reading.md"
    assert target("Oslo is cold", "todos", None, None).path == "lists/todos.md"
    assert target("whatever", None, "todos", None).box


@pytest.mark.parametrize("file", ["../x", "/etc/passwd", ".git/x", "a/../../x", "x\0"])
def test_a_file_outside_is_refused(file: str) -> None:
    with pytest.raises(InvalidArgument):
        target("x", None, file, None)


def test_an_item_is_not_written_twice_and_one_that_was_bought_is() -> None:
    text = "## Shopping List\n- [x] Milk\n- Eggs\n"
    written = write(text, target("buy milk and eggs", None, None, None))
    assert [(line.text, line.line, line.written) for line in written.lines] == [
        ("Milk", 4, True),
        ("Eggs", 3, False),
    ]
    assert write(written.text, target("buy milk and eggs", None, None, None)).text == written.text


def test_a_first_name_finds_the_only_person_who_has_it() -> None:
    text = "## Sarah Chen\n- Phone: 555\n\n## Tom Ray\n- Phone: 556\n"
    written = write(text, target("Sarah's email is s@c.org", None, None, None))
    assert written.section == "Sarah Chen"
    assert written.text.startswith("## Sarah Chen\n- Phone: 555\n- Sarah's email is s@c.org\n\n## Tom Ray")


def test_the_same_words_under_another_person_are_another_thing() -> None:
    text = "## Ann Lee\n- Phone: 555\n"
    written = write(text, target("Phone: 555", "contacts", None, "Tom Ray"))
    assert written.lines[0].written


def test_what_stands_there_stays_byte_for_byte() -> None:
    text = "---\ntitle: x\n---\n\n# Facts   \n\nprose\n\n## Facts\n* one\n\n\n## Other\n1. a\n"
    written = write(text, target("The garage code is 4471", None, None, None))
    assert written.text == text.replace("* one\n", "* one\n* The garage code is 4471\n")


def test_a_long_note_with_the_same_first_line_is_another_note() -> None:
    first = write(None, target("Plan:\n\nwalk", "facts", None, None)).text
    assert write(first, target("Plan:\n\nwalk", "facts", None, None)).text == first
    assert "run" in write(first, target("Plan:\n\nrun", "facts", None, None)).text


def test_nothing_to_remember_is_refused() -> None:
    for content, section in ((" \n", None), ("x", "  "), ("x", "y" * 200)):
        with pytest.raises(InvalidArgument):
            target(content, None, None, section or None) if section is None else target(
                content, None, None, section
            )
