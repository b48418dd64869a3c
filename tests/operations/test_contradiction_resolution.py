"""Keeping one side of a contradiction: what ends, what stays, and that it stays so."""

from typing import Any

import pytest

from quaid.app import Brain
from quaid.errors import InvalidArgument
from quaid.operations import dispatch, maintenance

NORA, HEXA = "people/nora-vale", "companies/hexa"


def call(brain: Brain, tool: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_tool("memory_" + tool), arguments, "owner")


@pytest.fixture
def nora(brain: Brain) -> Brain:
    call(brain, "put", slug=NORA, content="# Nora Vale\n\n> Hydrologist.\n\nShe lives in Oslo.\n")
    call(brain, "put", slug=HEXA, content="# Hexa\n\nMeasures rain.")
    call(brain, "put", slug="meetings/kickoff", content="# Kickoff\n\nNora lives in Bergen, she says.")
    call(brain, "put", slug="meetings/later", content="# Later\n\nBergen again.")
    return brain


def lives(brain: Brain, slug: str, city: str, **more: Any) -> Any:
    return call(brain, "assert", slug=slug, subject="Nora Vale", predicate="lives_in", object=city, **more)


def only(brain: Brain) -> Any:
    (result,) = call(brain, "check").contradictions
    return result


def held(brain: Brain, **more: Any) -> list[tuple[str, str | None, str | None]]:
    facts = call(brain, "facts", subject=NORA, **more).facts
    return [(item.object, item.since, item.until) for item in facts if item.kind == "fact"]


def keep(brain: Brain, side: str, **more: Any) -> Any:
    return call(brain, "check", resolve=only(brain).id, keep=side, **more)


def two_homes(brain: Brain) -> None:
    lives(brain, NORA, "Oslo", valid_from="2024-01-01", source_ref="call")
    lives(brain, "meetings/kickoff", "Bergen", valid_from="2025-06-01", source_ref="kickoff")


def test_the_earlier_one_ends_when_the_later_one_is_kept(nora: Brain) -> None:
    two_homes(nora)
    before = call(nora, "get", slug=NORA).version
    done = keep(nora, "right")
    (changed,) = done.changed
    assert (changed.slug, changed.says, changed.until) == (NORA, "Nora Vale lives_in Oslo", "2025-06-01")
    assert (done.kept, done.total, changed.never_held) == ("right", 0, False)
    assert held(nora) == [("Bergen", "2025-06-01", None)]
    assert held(nora, as_of="2024-06-01") == [("Oslo", "2024-01-01", "2025-06-01")]
    history = call(nora, "facts", subject=NORA, history=True).facts
    assert [item.superseded_by for item in history if item.object == "Oslo"] == [2]
    assert call(nora, "get", slug=NORA).version == before + 1


def test_the_later_one_never_held_when_the_earlier_one_is_kept(nora: Brain) -> None:
    two_homes(nora)
    (changed,) = keep(nora, "left").changed
    assert (changed.says, changed.never_held) == ("Nora Vale lives_in Bergen", True)
    assert held(nora) == [("Oslo", "2024-01-01", None)]


def test_both_can_be_true(nora: Brain) -> None:
    two_homes(nora)
    done = keep(nora, "both", note="Two homes.")
    assert (done.changed, done.resolved.resolution) == ((), "Two homes.")
    assert {city for city, _, _ in held(nora)} == {"Oslo", "Bergen"}
    assert call(nora, "check").total == 0


def test_all_facts_of_the_rejected_side_are_ended(nora: Brain) -> None:
    two_homes(nora)
    lives(nora, "meetings/later", "Bergen", valid_from="2025-07-01")
    assert {item.slug for item in keep(nora, "left").changed} == {"meetings/kickoff", "meetings/later"}
    assert held(nora) == [("Oslo", "2024-01-01", None)]


def test_facts_without_a_beginning_end_today(nora: Brain) -> None:
    lives(nora, NORA, "Oslo")
    lives(nora, "meetings/kickoff", "Bergen")
    (changed,) = keep(nora, "left").changed
    assert changed.until == nora.now()[:10]
    assert [city for city, _, _ in held(nora)] == ["Oslo"]
    assert call(nora, "check").total == 0


def test_later_fact_begins_when_the_kept_one_ended(nora: Brain) -> None:
    lives(nora, NORA, "Oslo", valid_from="2020-01-01", valid_until="2023-03-01")
    lives(nora, "meetings/kickoff", "Bergen", valid_from="2023-01-01")
    keep(nora, "left")
    assert held(nora) == [("Bergen", "2023-03-01", None)]


@pytest.mark.parametrize("side", ["left", "right", "both"])
def test_a_decision_outlives_writing_saying_it_again_and_a_rebuild(nora: Brain, side: str) -> None:
    two_homes(nora)
    keep(nora, side)
    decided = held(nora)
    page = call(nora, "get", slug="meetings/kickoff")
    fact = {
        "subject": "Nora Vale",
        "predicate": "lives_in",
        "object": "Bergen",
        "valid_from": "2025-06-01",
        "source_ref": "kickoff",
    }
    call(
        *(nora, "put"),
        slug="meetings/kickoff",
        content=page.compiled_truth + "\nMore.\n",
        assertions=[fact],
        expected_version=page.version,
    )
    lives(nora, NORA, "Oslo", valid_from="2024-01-01", source_ref="call")
    maintenance.rebuild(nora)
    assert held(nora) == decided
    assert call(nora, "check").total == 0


def test_sentence_that_still_says_so_is_reported_with_its_line(nora: Brain) -> None:
    two_homes(nora)
    (quote,) = keep(nora, "right").written
    assert (quote.slug, quote.part, quote.title) == (NORA, "truth", "Nora Vale")
    assert quote.quote == "She lives in Oslo."


def over(brain: Brain) -> None:
    call(brain, "put", slug="meetings/farewell", content="# Farewell\n\nNora Vale left Hexa on 2025-03-01.\n")


def test_a_text_is_right_that_it_is_over(nora: Brain) -> None:
    dispatch.call(
        *(nora, dispatch.find_tool("memory_link")),
        {"from": NORA, "to": HEXA, "relationship": "works_at", "valid_from": "2021-01-01"},
        "owner",
    )
    call(nora, "assert", slug=NORA, predicate="works_at", object=HEXA, valid_from="2021-01-01")
    over(nora)
    done = keep(nora, "left")
    assert {(item.kind, item.until) for item in done.changed} == {
        ("fact", "2025-03-01"),
        ("link", "2025-03-01"),
    }
    assert done.written == ()
    assert call(nora, "check").total == 0


def test_a_text_is_wrong_that_it_is_over(nora: Brain) -> None:
    call(nora, "assert", slug=NORA, predicate="works_at", object=HEXA, valid_from="2021-01-01")
    over(nora)
    done = keep(nora, "right")
    assert (done.changed, [item.slug for item in done.written]) == ((), ["meetings/farewell"])
    assert held(nora)[0][2] is None
    assert call(nora, "check").total == 0


def test_a_link_out_of_a_text_changes_only_there(nora: Brain) -> None:
    text = "---\nlinks:\n  - {to: companies/hexa, relationship: works_at}\n---\n# Nora Vale\n"
    call(nora, "put", slug=NORA, content=text, expected_version=call(nora, "get", slug=NORA).version)
    assert [link.relationship for link in call(nora, "links", slug=NORA).links] == ["works_at"]
    over(nora)
    done = keep(nora, "left")
    assert done.changed == ()
    assert [item.slug for item in done.written] == [NORA]


def ended_link(brain: Brain) -> None:
    dispatch.call(
        *(brain, dispatch.find_tool("memory_link")),
        {
            "from": NORA,
            "to": HEXA,
            "relationship": "works_at",
            "valid_from": "2021-01-01",
            "valid_until": "2024-05-01",
        },
        "owner",
    )
    call(brain, "assert", slug=NORA, predicate="works_at", object=HEXA, valid_from="2021-01-01")


def test_a_fact_ends_with_its_link(nora: Brain) -> None:
    ended_link(nora)
    keep(nora, "right")
    assert held(nora, history=True) == [(HEXA, "2021-01-01", "2024-05-01")]


def test_a_link_goes_on_with_its_fact(nora: Brain) -> None:
    ended_link(nora)
    (changed,) = keep(nora, "left").changed
    assert (changed.kind, changed.until) == ("link", None)
    assert [link.valid_until for link in call(nora, "links", slug=NORA).links] == [None]
    assert call(nora, "check").total == 0


def test_two_heads_of_one_company_are_settled_from_either_side(nora: Brain) -> None:
    call(nora, "put", slug="people/bo", content="# Bo Lind\n")
    call(nora, "assert", slug=NORA, predicate="is_ceo_of", object=HEXA, valid_from="2023-01-01")
    call(nora, "assert", slug="people/bo", predicate="is_ceo_of", object=HEXA, valid_from="2022-01-01")
    (changed,) = keep(nora, "left").changed
    assert (changed.slug, changed.never_held) == (NORA, True)
    assert call(nora, "check").total == 0


def test_invalid_choices_of_keep_are_refused(nora: Brain) -> None:
    two_homes(nora)
    id = only(nora).id
    with pytest.raises(InvalidArgument, match="needs `resolve`"):
        call(nora, "check", keep="left")
    call(nora, "check", resolve=id, keep="right")
    with pytest.raises(InvalidArgument, match="is no longer a contradiction"):
        call(nora, "check", resolve=id, keep="left")
