"""What somebody types leads to the page that is called so, through a real glance."""

from typing import Any

import pytest

from quaid.app import Brain
from quaid.operations import dispatch


def call(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


@pytest.fixture
def people(brain: Brain) -> Brain:
    call(brain, "embeddings off")
    for slug, text in {
        "meetings/dinner-with-ines": "# Dinner with Ines\n\nInes, Ines, Ines: she cooked in the yard.",
        "people/ines-karvonen": "---\naliases: [Nessie]\n---\n\n# Ines Karvonen\n\n> Boatbuilder.\n\nBuilds hulls.",
        "people/inessa-wolf": "# Inessa Wolf\n\nKeeps the books.",
        "concepts/inside-joke": "# Inside joke\n\nNobody else laughs.",
        "concepts/karvonen": "# Karvonen\n\nA formula for training.",
        "projects/hull": "# The hull\n\nInes paints in spring.",
    }.items():
        call(brain, "put", slug=slug, content=text)
    return brain


def led(brain: Brain, text: str, **filters: str) -> list[str]:
    results = call(brain, "glance", text=text, **filters).answer.results
    return [result.slug for result in results if result.lane in ("exact", "name")]


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("ines", ["people/ines-karvonen", "meetings/dinner-with-ines", "people/inessa-wolf"]),
        ("ine", ["people/inessa-wolf", "people/ines-karvonen", "meetings/dinner-with-ines"]),
        ("karvonen", ["concepts/karvonen", "people/ines-karvonen"]),
        ("ines karv", ["people/ines-karvonen"]),
        ("nessi", ["people/ines-karvonen"]),
        ("Ines Karvonen", ["people/ines-karvonen"]),
        ("the", []),
        ("how do I paint a hull in spring", []),
        ('"* OR title:', []),
    ],
)
def test_a_name_leads_before_any_text(people: Brain, typed: str, wanted: list[str]) -> None:
    assert led(people, typed) == wanted
    results = call(people, "glance", text=typed).answer.results
    assert [result.slug for result in results][: len(wanted)] == wanted
    assert len({result.slug for result in results}) == len(results)


def test_whole_words_are_strong_and_beginnings_are_not(people: Brain) -> None:
    results = {result.slug: result for result in call(people, "glance", text="ines").answer.results}
    assert results["people/ines-karvonen"].strength == "strong"
    assert results["people/inessa-wolf"].strength == "weak"
    assert results["people/ines-karvonen"].reason.startswith("its name has these words")
    assert call(people, "glance", text="nessi").answer.strength != "strong"


def test_filters_hold_for_names_too(people: Brain) -> None:
    assert led(people, "ines", wing="meetings") == ["meetings/dinner-with-ines"]
    assert led(people, "nessie", type="person") == ["people/ines-karvonen"]
    assert led(people, "nessi", wing="concepts") == []


def test_name_matches_leave_places_for_text_matches(people: Brain) -> None:
    for number in range(12):
        call(people, "put", slug=f"concepts/hull-{number}", content=f"# Hull {number}\n\nWood.")
    results = call(people, "glance", text="hull", limit=8).answer.results
    assert len(results) == 8
    assert sum(item.lane in ("exact", "name") for item in results) == 6
