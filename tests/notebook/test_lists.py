"""Lists that a sentence names: which one, what goes on it, and in which file it is kept."""

import pytest

from quaid.notebook import router
from quaid.notebook.router import add_lines, choose_target


@pytest.mark.parametrize(
    ("said", "name", "items"),
    [
        ("Add Dune to my reading list", "reading", "Dune"),
        ("please put Emma on the reading list.", "reading", "Emma"),
        ("Add to my reading list: Dune", "reading", "Dune"),
        ("New on my list of restaurants: Noma", "restaurants", "Noma"),
        ("packing list: socks, soap", "packing", "socks, soap"),
        ("Dune goes on Anna's reading list", "reading", "Dune"),
        ("add Dark to my watchlist", "watch", "Dark"),
        ("Add sunscreen to the packing list for Rome", "packing for Rome", "sunscreen"),
        ("put 6 lemons on the list", "", "6 lemons"),
    ],
)
def test_the_list_and_what_goes_on_it(said: str, name: str, items: str) -> None:
    assert router.find_named_list(said) == (name, items)


@pytest.mark.parametrize(
    "said",
    [
        "I like lists",
        "The list is in the drawer",
        "Put me on the waiting list",
        "Anna is on the mailing list",
        "Listen to Anna",
        "My list of demands is long",
        "list",
        "",
        "add to my list",
    ],
)
def test_a_sentence_that_puts_nothing_on_a_list_names_none(said: str) -> None:
    assert router.find_named_list(said) is None


@pytest.mark.parametrize("there", ["lists/reading.md", "lists/reading-list.md", "lists/Reading List.md"])
def test_a_list_that_is_there_is_used(there: str) -> None:
    assert choose_target("Add Dune to my reading list", None, None, None, ("daily/x.md", there)).path == there


def test_a_list_is_made_when_it_is_first_named() -> None:
    goal = choose_target("Add Dune to my reading list", None, None, None)
    assert (goal.path, add_lines(None, goal).text) == ("lists/reading.md", "## Reading\n- Dune\n")
    assert (
        choose_target("Add Heat to my movie list", None, None, None, ("lists/movies.md",)).path
        == "lists/movies.md"
    )


def test_a_list_in_another_script_has_its_own_name_as_heading() -> None:
    goal = choose_target("Add Sushi to my 日本 list", None, None, None)
    text = add_lines(None, goal).text
    assert text == "## 日本\n- Sushi\n"
    again = choose_target("Add Ramen to the 日本 list", None, None, None, (goal.path,))
    assert (again.path, add_lines(text, again).text) == (goal.path, "## 日本\n- Sushi\n- Ramen\n")


@pytest.mark.parametrize(
    ("said", "lines"),
    [
        ("packing list: socks, soap and a towel", ["Socks", "Soap", "A towel"]),
        ("Add Thinking, Fast and Slow to my reading list", ["Thinking, Fast and Slow"]),
        (
            "Add The Lion, the Witch and the Wardrobe to my reading list",
            ["The Lion, the Witch and the Wardrobe"],
        ),
        ('Add "Dune", "Emma" and "War and Peace" to my reading list', ["Dune", "Emma", "War and Peace"]),
        ("Put the fence that is broken on the repairs list", ["The fence that is broken"]),
    ],
)
def test_plain_things_are_entries_of_their_own_and_titles_stay_whole(said: str, lines: list[str]) -> None:
    assert choose_target(said, None, None, None).lines == lines


def test_known_lists_keep_their_place() -> None:
    goal = choose_target("put 'call Ann' on my to-do list", None, None, None)
    assert (goal.path, goal.box) == ("lists/todos.md", True)
    assert choose_target("Add milk and eggs to the list of groceries", None, None, None).lines == [
        "Milk",
        "Eggs",
    ]
    assert choose_target("add mow the lawn to the list", None, None, None).path == "lists/todos.md"


def test_the_category_and_the_file_overrule_the_list_that_is_named() -> None:
    message = "Add Dune to my reading list"
    assert choose_target(message, "knowledge", None, None).path.startswith("knowledge/")
    assert choose_target(message, "todos", None, None).path == "lists/todos.md"
    assert choose_target(message, None, "books", None).lines == [message]
    assert choose_target(message, None, "reading", None, ("lists/reading.md",)).lines == ["Dune"]


@pytest.mark.parametrize(
    "text", ["list " * 399, "add " + "to the x " * 200 + "list", "a, " * 600 + "list: x"]
)
def test_a_long_text_about_lists_is_routed(text: str) -> None:
    assert choose_target(text, None, None, None).lines
