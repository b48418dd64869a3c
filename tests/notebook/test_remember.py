"""The right line under the right heading of the right file, once."""

import pytest

from quaid.errors import InvalidArgument
from quaid.notebook import router
from quaid.notebook.router import add_lines, choose_target


def remembered(text: str | None, content: str, **where: str) -> str:
    goal = choose_target(content, where.get("category"), where.get("file"), where.get("section"))
    return add_lines(text, goal).text


def test_each_kind_goes_to_its_file_and_section() -> None:
    assert remembered(None, "Call the dentist tomorrow") == "## To Do\n- [ ] Call the dentist tomorrow\n"
    assert choose_target("I prefer tea", None, None, None)[:2] == ("reference/preferences.md", "Preferences")
    assert choose_target("Sarah Chen's phone is 555-1234", None, None, None)[:2] == (
        "reference/contacts.md",
        "Sarah Chen",
    )


def test_named_file_wins_over_classification() -> None:
    assert choose_target("Dune", "lists", "reading", None)[:2] == ("lists/reading.md", "Reading")
    assert choose_target("Dune", None, "lists/sf-books.md", "To read")[:2] == ("lists/sf-books.md", "To read")
    assert choose_target("Dune", None, "reading", None, ("lists/reading.md",)).path == "lists/reading.md"
    assert choose_target("Oslo is cold", "todos", None, None).path == "lists/todos.md"
    assert choose_target("whatever", None, "todos", None).box


@pytest.mark.parametrize("file", ["../x", "/etc/passwd", ".git/x", "a/../../x", "x\0"])
def test_a_file_outside_is_refused(file: str) -> None:
    with pytest.raises(InvalidArgument):
        choose_target("x", None, file, None)


@pytest.mark.parametrize(
    ("category", "file"),
    [
        ("lists", "reference/contacts"),
        ("lists", "Reference/../reference/contacts"),
        ("knowledge", "lists/todos.md"),
        ("preferences", "lists/shopping"),
        ("todos", "daily/2026-01-01"),
        ("reference", "daily/2026-01-01.md"),
        (None, "daily/2026-01-01"),
        ("lists", "../reference/contacts"),
    ],
)
def test_a_file_of_another_category_is_refused(category: str | None, file: str) -> None:
    with pytest.raises(InvalidArgument, match=r"is not in|daily log|leaves the folder"):
        choose_target("x", category, file, None)


@pytest.mark.parametrize(
    ("category", "file", "path"),
    [
        ("lists", "contacts", "lists/contacts.md"),
        ("lists", "lists/contacts.md", "lists/contacts.md"),
        ("preferences", "food", "reference/food.md"),
        ("reference", "people/work", "reference/people/work.md"),
        ("preferences", "shopping", "reference/shopping.md"),
    ],
)
def test_a_file_of_a_category_is_in_its_folder(category: str, file: str, path: str) -> None:
    there = ("reference/contacts.md", "knowledge/food.md", "lists/shopping.md")
    assert choose_target("x", category, file, None, there).path == path


def test_a_kind_that_was_named_keeps_its_manner_in_another_file() -> None:
    assert remembered(None, "call Ann", category="todos", file="work") == "## Work\n- [ ] Call Ann\n"
    assert remembered(None, "Ann Lee, 555-1234", category="contacts", file="suppliers").startswith(
        "## Ann Lee\n"
    )


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("1. Emma\n2. Ulysses\n", "1. Emma\n2. Ulysses\n3. Dune\n"),
        ("# Books\n\n* Emma\n", "# Books\n\n* Emma\n* Dune\n"),
        ("- Emma\n\n## Done\n- Ulysses\n", "- Emma\n- Dune\n\n## Done\n- Ulysses\n"),
        ("---\ntags:\n- a\n---\n# Books\n", "---\ntags:\n- a\n---\n# Books\n\n## Reading\n- Dune\n"),
        ("- Emma\n\n## Reading\n- Ulysses\n", "- Emma\n\n## Reading\n- Ulysses\n- Dune\n"),
        ("Some prose.\n", "Some prose.\n\n## Reading\n- Dune\n"),
    ],
)
def test_a_list_without_a_heading_goes_on(text: str, after: str) -> None:
    assert remembered(text, "Dune", category="lists", file="reading") == after
    assert remembered(text, "Dune", category="lists", file="reading", section="New").endswith(
        "\n## New\n- Dune\n"
    )


def test_an_item_is_not_written_twice_and_one_that_was_bought_is() -> None:
    text = "## Shopping List\n- [x] Milk\n- Eggs\n"
    written = add_lines(text, choose_target("buy milk and eggs", None, None, None))
    assert [(line.text, line.line, line.written) for line in written.lines] == [
        ("Milk", 4, True),
        ("Eggs", 3, False),
    ]
    assert add_lines(written.text, choose_target("buy milk and eggs", None, None, None)).text == written.text


def test_a_first_name_finds_the_only_person_who_has_it() -> None:
    text = "## Sarah Chen\n- Phone: 555\n\n## Tom Ray\n- Phone: 556\n"
    written = add_lines(text, choose_target("Sarah's email is s@c.org", None, None, None))
    assert written.section == "Sarah Chen"
    assert written.text.startswith("## Sarah Chen\n- Phone: 555\n- Sarah's email is s@c.org\n\n## Tom Ray")


def test_the_same_words_under_another_person_are_another_thing() -> None:
    text = "## Ann Lee\n- Phone: 555\n"
    written = add_lines(text, choose_target("Phone: 555", "contacts", None, "Tom Ray"))
    assert written.lines[0].written


def test_existing_text_stays_byte_for_byte() -> None:
    text = "---\ntitle: x\n---\n\n# Facts   \n\nprose\n\n## Facts\n* one\n\n\n## Other\n1. a\n"
    written = add_lines(text, choose_target("The garage code is 4471", None, None, None))
    assert written.text == text.replace("* one\n", "* one\n* The garage code is 4471\n")


def test_a_long_note_with_the_same_first_line_is_another_note() -> None:
    first = add_lines(None, choose_target("Plan:\n\nwalk", "facts", None, None)).text
    assert add_lines(first, choose_target("Plan:\n\nwalk", "facts", None, None)).text == first
    assert "run" in add_lines(first, choose_target("Plan:\n\nrun", "facts", None, None)).text


def test_nothing_to_remember_is_refused() -> None:
    for content, section in ((" \n", None), ("x", "  "), ("x", "y" * 200)):
        with pytest.raises(InvalidArgument):
            choose_target(content, None, None, section or None) if section is None else choose_target(
                content, None, None, section
            )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The wifi password is Secret1", "The wifi password is secret1"),
        ("The freezer is set to 18", "The freezer is set to -18"),
        ("I like C", "I like C++"),
        ("Rate it 👍", "Rate it 👎"),
        ("The budget is 3,500", "The budget is 3.500"),
    ],
)
def test_correction_is_not_a_repetition(first: str, second: str) -> None:
    once = router.add_lines(None, router.choose_target(first, "facts", None, None))
    twice = router.add_lines(once.text, router.choose_target(second, "facts", None, None))
    assert [line.written for line in twice.lines] == [True]
    assert first in twice.text
    assert second in twice.text


def test_contradicted_statement_is_quoted() -> None:
    once = router.add_lines(None, router.choose_target("Tea, please", "facts", None, None))
    again = router.add_lines(once.text, router.choose_target("tea please!", "facts", None, None))
    assert [(line.text, line.written) for line in again.lines] == [("Tea, please", False)]


def test_nothing_that_moves_a_cursor_is_written() -> None:
    made = router.add_lines(
        None, router.choose_target("Bell\x07 \x1b[31mred\x00 \x9b2J end", "facts", None, None)
    )
    assert made.text == "## Facts\n- Bell [31mred 2J end\n"


@pytest.mark.parametrize(
    ("content", "kind", "lines"),
    [
        ("No nuts, no shellfish, no dairy", "preferences", None),
        ("Always email Sarah, never phone her", "standing-orders", None),
        ("Berlin Marathon, 27 September", "facts", None),
        ("Paris, France", "facts", None),
        ("Buy mac and cheese, 1,5 l water", "shopping", ["Mac and cheese", "1,5 l water"]),
        ("buy salt and vinegar crisps", "shopping", ["Salt and vinegar crisps"]),
        ("buy a birthday card for Mum, and wrap it", "shopping", ["A birthday card for Mum, and wrap it"]),
        ("milk, eggs, bread", "shopping", ["Milk", "Eggs", "Bread"]),
    ],
)
def test_a_comma_alone_makes_no_shopping(content: str, kind: str, lines: list[str] | None) -> None:
    result = router.route_kind(content)
    assert result.name == kind
    assert router.lines_to_write(content, result) == (lines or [content])


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("Todo: call Ann; pay the rent; book flights", ["Call Ann", "Pay the rent", "Book flights"]),
        ("To do: call Ann, pay the rent and book flights", ["Call Ann", "Pay the rent", "Book flights"]),
        ("To do: write proposal to Ilse", ["Write proposal to Ilse"]),
        ("Todo: fix the door, which squeaks", ["Fix the door, which squeaks"]),
        ("Tareas: llamar al banco; comprar pan", ["Llamar al banco", "Comprar pan"]),
        ("待办：给妈妈打电话；交房租", ["给妈妈打电话", "交房租"]),
        ("Buy batteries (AA, 4 pcs.) and milk", ["Batteries (AA, 4 pcs.)", "Milk"]),
        ("Batteries (AA, 4 pcs.)", ["Batteries (AA, 4 pcs.)"]),
        ("Add Dune (part 1, 2) to my film list", ["Dune (part 1, 2)"]),
    ],
)
def test_labelled_tasks_are_separate_and_parentheses_stay_whole(content: str, lines: list[str]) -> None:
    kind = router.KIND_OF.get(router.classify(content).category)
    assert choose_target(content, None, None, None, guessed=kind).lines == lines


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ("Zoë Ångström's phone is +46 70 123 45 67", "Zoë Ångström"),
        ("José Núñez can be reached at jose@example.org", "José Núñez"),
        ("Mary-Jane O'Neill's number is 555-3333", "Mary-Jane O'Neill"),
        ("You can reach Dr. Okafor at 555-1234", "Dr. Okafor"),
        ("Emergency contact: Łukasz Żak 600-700-800", "Łukasz Żak"),
        ("Иван Петров, +7 912 345 67 89", "Иван Петров"),
    ],
)
def test_a_person_has_the_whole_name_in_any_alphabet(content: str, name: str) -> None:
    assert router.route_kind(content).name == "contacts"
    assert router.find_person(content) == name


@pytest.mark.parametrize(
    "content",
    ["The blob is " + "ab12" * 25_000, "Word " * 20_000, "a" * 100_000, "a-" * 50_000, "whenever " * 12_000],
)
def test_a_long_text_costs_no_more_than_a_short_one(content: str) -> None:
    import time

    began = time.process_time()
    goal = router.choose_target(content, None, None, None)
    router.add_lines("## Facts\n- x\n", goal)
    assert time.process_time() - began < 2
