"""Asking through the gate, as every surface does."""

from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.errors import InvalidArgument, InvalidDate, InvalidType, NotFound
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value


@pytest.fixture(autouse=True)
def two_pages(brain: Brain) -> None:
    for slug, text in (
        ("people/mira", "# Mira\n\n> Founder of Brineloop.\n\nShe trusts vanadium."),
        ("concepts/zinc", "# Zinc\n\n> A metal.\n\nZinc grows dendrites in sea water."),
    ):
        dispatch.call(brain, dispatch.find_command("put"), {"slug": slug, "content": text}, "owner")


def ask(brain: Brain, question: str, **arguments: Any) -> Any:
    return dispatch.call(
        brain, dispatch.find_tool("memory_query"), {"question": question, **arguments}, "read"
    )


def test_read_scope_permits_queries(brain: Brain) -> None:
    answer = ask(brain, "which metal grows dendrites?")
    assert answer.results[0].slug == "concepts/zinc"
    assert answer.strength == "strong"


def test_before_anything_is_embedded_the_answer_comes_by_words_and_says_so(brain: Brain) -> None:
    (note,) = ask(brain, "dendrites").notes
    assert note.startswith("by words only: nothing is embedded yet")


def test_a_memory_without_pages_has_nothing_to_embed(brain: Brain) -> None:
    for slug in ("people/mira", "concepts/zinc"):
        dispatch.call(brain, dispatch.find_command("forget"), {"slug": slug, "yes": True}, "owner")
    answer = ask(brain, "dendrites")
    assert answer.results == answer.notes == ()


def test_a_model_that_is_gone_does_not_keep_the_answer_back(brain: Brain) -> None:
    brain.db.write(
        lambda tx: tx.execute("INSERT OR REPLACE INTO config (key, value) VALUES ('embedding_model', 'gone')")
    )
    answer = ask(brain, "dendrites")
    assert answer.results[0].slug == "concepts/zinc"
    assert answer.notes[0].startswith("by words only: There is no model 'gone'")


def test_the_budget_comes_from_the_settings(brain: Brain) -> None:
    dispatch.call(
        brain, dispatch.find_command("config set"), {"key": "default_token_budget", "value": "160"}, "owner"
    )
    answer = ask(brain, "vanadium dendrites")
    assert answer.total_tokens + answer.budget_remaining == 160
    assert ask(brain, "vanadium", token_budget=50).budget_remaining <= 50


def test_the_merge_strategy_comes_from_the_settings(brain: Brain) -> None:
    dispatch.call(
        brain, dispatch.find_command("config set"), {"key": "search_merge_strategy", "value": "rrf"}, "owner"
    )
    assert ask(brain, "which metal grows dendrites?").results[0].rank_score < 0.05


@pytest.mark.parametrize("depth", ["auto", "summary", "section", "full"])
def test_every_depth_answers(brain: Brain, depth: str) -> None:
    (first, *_) = ask(brain, "dendrites", depth=depth).results
    assert bool(first.content) == (depth != "summary")


def test_an_answer_is_plain_json(brain: Brain) -> None:
    record = json_value(ask(brain, "dendrites", explain=True))
    assert record["results"][0]["lane"] == "words"
    assert record["lanes"][0]["slug"] == "concepts/zinc"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"question": "  "}, InvalidArgument),
        ({"question": "x", "token_budget": 0}, InvalidArgument),
        ({"question": "x", "token_budget": -1}, InvalidArgument),
        ({"question": "x", "limit": 0}, InvalidArgument),
        ({"question": "x", "depth": "deep"}, InvalidArgument),
        ({"question": "x", "since": "yesterday"}, InvalidDate),
        ({"question": "x", "type": "x" * 51}, InvalidType),
        ({"question": "x", "collection": "nonsense"}, NotFound),
    ],
)
def test_a_wrong_argument_is_named(brain: Brain, arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        dispatch.call(brain, dispatch.find_tool("memory_query"), arguments, "read")


@pytest.mark.parametrize(("tool", "name"), [("memory_query", "query"), ("memory_search", "query")])
def test_filter_by_an_unused_type_finds_nothing_and_says_so(brain: Brain, tool: str, name: str) -> None:
    record = dispatch.call(brain, dispatch.find_tool(tool), {name: "zinc", "type": "persn"}, "read")
    assert (
        "no page has the type 'persn' (did you mean person?); `quaid stats` shows the types in use"
        in record.notes
    )
    assert "(no page has the type 'persn'" in render(record)
    dispatch.call(
        brain,
        dispatch.find_tool("memory_put"),
        {"slug": "a", "content": "---\ntype: Persn\n---\nzinc"},
        "owner",
    )
    record = dispatch.call(brain, dispatch.find_tool(tool), {name: "zinc", "type": "persn"}, "read")
    assert "no page has" not in render(record)
    assert [hit["slug"] for hit in json_value(record).get("hits", json_value(record).get("results"))] == ["a"]


def test_a_person_reads_why_and_where(brain: Brain) -> None:
    text = render(ask(brain, "dendrites", explain=True))
    assert "1. concepts/zinc  Zinc (concept, strong)" in text
    assert "holds dendrites [truth 1-5]" in text
    assert "Zinc grows dendrites in sea water." in text
    assert "(by words only: " in text


def test_a_person_reads_that_nothing_was_found(brain: Brain) -> None:
    assert render(ask(brain, "quarterly tax")).startswith("Nothing found for 'quarterly tax'.")
    assert (
        render(ask(brain, "vanadium", token_budget=1)).splitlines()[-1].endswith("too small for any of them)")
    )
    assert "Nothing found" not in render(ask(brain, "vanadium", token_budget=1))


@pytest.mark.parametrize(("tool", "name"), [("memory_query", "query"), ("memory_search", "query")])
def test_unknown_wing_is_an_error_that_lists_the_wings(brain: Brain, tool: str, name: str) -> None:
    with pytest.raises(NotFound, match=r"no wing 'mira'\. The wings are concepts, people"):
        dispatch.call(brain, dispatch.find_tool(tool), {name: "vanadium", "wing": "mira"}, "read")
    assert dispatch.call(brain, dispatch.find_tool("memory_gaps"), {}, "read").gaps == ()


@pytest.mark.parametrize(
    ("tool", "arguments", "kind"),
    [
        ("memory_query", {"question": "lantern"}, "results"),
        ("memory_search", {"query": "lantern"}, "hits"),
        ("memory_glance", {"text": "Beacon"}, "answer"),
    ],
)
def test_results_name_wing_and_room(brain: Brain, tool: str, arguments: dict[str, Any], kind: str) -> None:
    text = "---\nroom: harbours\n---\n# Beacon\n\nA lantern by the sea."
    dispatch.call(
        brain, dispatch.find_tool("memory_put"), {"slug": "concepts/beacon", "content": text}, "write"
    )
    results = json_value(dispatch.call(brain, dispatch.find_tool(tool), arguments, "read"))[kind]
    (result,) = results["results"] if kind == "answer" else results
    assert (result["wing"], result["room"]) == ("concepts", "harbours")


def test_a_misspelled_word_is_corrected_and_the_notes_say_so(brain: Brain) -> None:
    note = 'searched for "dendrites" instead of "dentrites"'
    assert note in ask(brain, "what grows dentrites?").notes
    record = dispatch.call(brain, dispatch.find_command("search"), {"query": "dentrites"}, "read")
    assert [hit.slug for hit in record.hits] == ["concepts/zinc"]
    assert record.notes == (note,)
    raw = dispatch.call(brain, dispatch.find_command("search"), {"query": "dentrites", "raw": True}, "read")
    assert (raw.hits, raw.notes) == ((), ())


@pytest.mark.parametrize(
    ("question", "is_answered"),
    [
        ("what is the headcount of Birchworks?", True),
        ("when was Birchworks founded?", True),
        ("who is the CEO of Birchworks?", True),
        ("what is the phone number of Birchworks?", False),
        ("how old is the CEO of Birchworks?", False),
        ("what is the email password of Birchworks?", False),
        ("who founded Birchworks?", False),
    ],
)
def test_a_fact_is_an_answer_only_if_it_has_what_is_asked_for(
    brain: Brain, question: str, is_answered: bool
) -> None:
    values = {"headcount": "40", "ceo": "Ann Rowe", "founded": "1990", "email": "hi@birch.example"}
    facts = [{"predicate": name, "object": value} for name, value in values.items()]
    arguments = {"slug": "companies/birchworks", "content": "# Birchworks\n\nA maker.", "assertions": facts}
    dispatch.call(brain, dispatch.find_command("put"), arguments, "owner")
    assert (ask(brain, question).strength == "strong") is is_answered
