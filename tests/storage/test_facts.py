"""Facts as they follow one another, on a real database."""

from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.errors import InvalidArgument, InvalidDate, NotFound, QuaidError
from quaid.model.facts import FactInput, check_fact
from quaid.operations import dispatch
from quaid.storage import collections, facts
from quaid.storage.facts import FactChange

NOW = "2026-04-25T12:00:00Z"


@pytest.fixture
def page(brain: Brain) -> int:
    dispatch.call(
        brain, dispatch.find_tool("memory_put"), {"slug": "people/alice", "content": "# Alice"}, "write"
    )
    row = brain.db.one("SELECT id FROM pages")
    assert row
    return int(row[0])


def add(
    brain: Brain,
    page: int,
    predicate: str,
    value: str,
    since: str | None = None,
    subject: str = "Alice",
    batch: tuple[int, ...] = (),
    **more: Any,
) -> FactChange:
    fact = FactInput(subject, predicate, value, since, **more)
    return brain.db.write(lambda tx: facts.add_fact(tx, page, fact, NOW, batch))


def held(brain: Brain, page: int) -> list[tuple[str, str | None, str | None, int | None]]:
    return [
        (row.object, row.valid_from, row.valid_until, row.supersedes_id)
        for row in facts.read_facts(brain.db, "page", [page])
    ]


def test_the_same_fact_again_changes_nothing(brain: Brain, page: int) -> None:
    first = add(brain, page, "lives_in", "São Paulo", "2020-01-01")
    assert add(brain, page, "Lives in", "sao paulo", "2020-01-01") == FactChange(first.id, False, (), False)
    assert len(held(brain, page)) == 1


def test_c_plus_plus_is_not_c_sharp(brain: Brain, page: int) -> None:
    assert add(brain, page, "writes", "C++").added
    assert add(brain, page, "writes", "C#").added


def test_a_later_value_of_a_single_valued_predicate_ends_the_earlier_one(brain: Brain, page: int) -> None:
    old = add(brain, page, "lives_in", "Ghent", "2015-01-01")
    new = add(brain, page, "lives_in", "Lyon", "2025-05-01")
    assert new.superseded == (old.id,)
    assert held(brain, page) == [
        ("Ghent", "2015-01-01", "2025-05-01", None),
        ("Lyon", "2025-05-01", None, old.id),
    ]


def test_the_order_of_saying_does_not_matter(brain: Brain, page: int) -> None:
    for town, since in (("Lyon", "2025-05-01"), ("Ghent", "2015-01-01"), ("Kiel", "2020-01-01")):
        add(brain, page, "lives_in", town, since)
    assert sorted(held(brain, page), key=lambda row: row[1] or "") == [
        ("Ghent", "2015-01-01", "2020-01-01", None),
        ("Kiel", "2020-01-01", "2025-05-01", 2),
        ("Lyon", "2025-05-01", None, 3),
    ]


def test_an_undated_value_ends_the_earlier_one_today(brain: Brain, page: int) -> None:
    add(brain, page, "lives_in", "Ghent")
    assert add(brain, page, "lives_in", "Lyon").superseded == (1,)
    assert held(brain, page) == [("Ghent", None, "2026-04-25", None), ("Lyon", None, None, 1)]
    assert add(brain, page, "lives_in", "Lyon").changed is False


def test_an_undated_value_ends_a_dated_one_but_not_one_that_has_yet_to_begin(brain: Brain, page: int) -> None:
    add(brain, page, "works_at", "Hexa", "2026-04-25")
    add(brain, page, "works_at", "Tarn", "2026-09-01")
    assert add(brain, page, "works_at", "Kelp").superseded == (1,)
    assert held(brain, page)[1:] == [("Tarn", "2026-09-01", None, 3), ("Kelp", None, "2026-09-01", 1)]


def test_values_stated_together_hold_together(brain: Brain, page: int) -> None:
    first = add(brain, page, "email", "a@example.org")
    second = add(brain, page, "email", "b@example.org", batch=(first.id,))
    assert second.superseded == ()


@pytest.mark.parametrize(
    ("predicate", "old", "new"),
    [
        ("migration_deadline", "end of March", "mid May"),
        ("budget", "50k EUR", "about 60k"),
        ("project_owner", "Mira", "Tom"),
        ("current_client", "Hexa", "Tarn"),
        ("seats", "40", "55"),
        ("runway_ends", "2026-05-01", "2026-09-01"),
    ],
)
def test_names_and_values_show_that_a_predicate_has_one_value(
    brain: Brain, page: int, predicate: str, old: str, new: str
) -> None:
    add(brain, page, predicate, old)
    assert add(brain, page, predicate, new).superseded == (1,)


@pytest.mark.parametrize(
    ("predicate", "old", "new"),
    [("knows", "Bob", "Eve"), ("likes", "tea", "chess"), ("previous_owner", "Mira", "Tom")],
)
def test_other_predicates_have_many_values(
    brain: Brain, page: int, predicate: str, old: str, new: str
) -> None:
    add(brain, page, predicate, old)
    assert add(brain, page, predicate, new).superseded == ()


def test_stored_facts_show_how_many_values_a_predicate_has(brain: Brain, page: int) -> None:
    for number in range(5):
        add(brain, page, "flagship", f"product {number}", subject=f"Company {number}")
        add(brain, page, "sponsors", f"team {number}", subject=f"Company {number}")
        add(brain, page, "sponsors", f"club {number}", subject=f"Company {number}")
    assert add(brain, page, "flagship", "another", subject="Company 1").superseded
    assert not add(brain, page, "sponsors", "another", subject="Company 1").superseded


def test_a_predicate_of_many_values_ends_nothing(brain: Brain, page: int) -> None:
    add(brain, page, "invested_in", "Hexa", "2015-01-01")
    assert add(brain, page, "invested_in", "Tarn", "2016-01-01").superseded == ()


def test_the_user_says_which_further_predicates_have_one_value(brain: Brain, page: int) -> None:
    brain.db.write(
        lambda tx: collections.set_setting(tx, facts.SINGLE_VALUED_SETTING, "favourite_colour, lives_in:many")
    )
    add(brain, page, "favourite colour", "red", "2015-01-01")
    assert add(brain, page, "favourite_colour", "blue", "2016-01-01").superseded == (1,)
    add(brain, page, "lives_in", "Ghent", "2015-01-01")
    assert add(brain, page, "lives_in", "Lyon", "2016-01-01").superseded == ()


def test_a_fact_that_has_ended_does_not_end_another_by_itself(brain: Brain, page: int) -> None:
    add(brain, page, "lives_in", "Oslo", "2010-01-01")
    assert add(brain, page, "lives_in", "Rome", "2015-01-01", valid_until="2015-07-01").superseded == ()


def test_a_fact_of_unknown_beginning_is_superseded_by_a_dated_one(brain: Brain, page: int) -> None:
    add(brain, page, "lives_in", "Oslo")
    assert add(brain, page, "lives_in", "Rome", "2026-01-01").superseded == (1,)
    assert add(brain, page, "lives_in", "Kiel", "2026-06-01").superseded == (2,)


def test_a_named_fact_is_superseded_whatever_it_says(brain: Brain, page: int) -> None:
    old = add(brain, page, "knows", "Bob", "2020-01-01")
    new = add(brain, page, "knows", "Bo", "2020-01-01", supersedes_id=old.id)
    assert new.superseded == (old.id,)
    assert held(brain, page) == [
        ("Bob", "2020-01-01", "2020-01-01", None),
        ("Bo", "2020-01-01", None, old.id),
    ]
    with pytest.raises(NotFound):
        add(brain, page, "knows", "Bea", supersedes_id=99)


def test_a_named_fact_ends_today_when_the_new_one_has_no_beginning(brain: Brain, page: int) -> None:
    old = add(brain, page, "status", "active", "2020-01-01")
    add(brain, page, "status", "alumna", supersedes_id=old.id)
    assert held(brain, page)[0][2] == "2026-04-25"


def test_an_end_alone_ends_what_holds(brain: Brain, page: int) -> None:
    add(brain, page, "works_at", "Hexa", "2020-01-01")
    ended = add(brain, page, "works_at", "Hexa", valid_until="2024-01-01")
    assert (ended.added, ended.changed) == (False, True)
    assert add(brain, page, "works_at", "Hexa", valid_until="2024-01-01").changed is False
    assert held(brain, page) == [("Hexa", "2020-01-01", "2024-01-01", None)]


def test_an_end_before_the_beginning_is_refused(brain: Brain, page: int) -> None:
    add(brain, page, "works_at", "Hexa", "2020-01-01")
    with pytest.raises(InvalidArgument):
        add(brain, page, "works_at", "Hexa", valid_until="2019-01-01")


def test_fact_that_ended_and_is_stated_again_holds_from_its_end_on(brain: Brain, page: int) -> None:
    add(brain, page, "works_at", "Hexa", "2020-01-01")
    add(brain, page, "works_at", "Hexa", valid_until="2024-01-01")
    again = add(brain, page, "works_at", "Hexa", "2020-01-01")
    assert (again.added, again.restarted) == (True, "2024-01-01")
    assert [row[1:3] for row in held(brain, page)] == [("2020-01-01", "2024-01-01"), ("2024-01-01", None)]
    assert add(brain, page, "works_at", "Hexa", "2020-01-01").changed is False


def test_superseded_fact_that_is_stated_again_stays_ended_and_says_so(brain: Brain, page: int) -> None:
    add(brain, page, "works_at", "Hexa", "2020-01-01")
    add(brain, page, "works_at", "Tarn", "2024-01-01")
    again = add(brain, page, "works_at", "Hexa", "2020-01-01")
    assert (again.changed, again.ended_on) == (False, "2024-01-01")


def test_values_of_written_cases_replace_each_other_or_stay(brain: Brain, page: int) -> None:
    """A fact that is ended wrongly is worse than two open ones, so no case may be."""
    path = Path(__file__).parents[2] / "bench" / "data" / "succession.txt"
    rows = [line.split(" | ") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    ended = {"replaces": 0, "both": 0}
    for number, (predicate, old, new, expected) in enumerate(rows):
        add(brain, page, predicate, old, subject=f"Subject {number}")
        ended[expected] += bool(add(brain, page, predicate, new, subject=f"Subject {number}").superseded)
    unknown = 2  # tables and fleet: their names do not say that they have one value
    assert ended == {"replaces": sum(row[3] == "replaces" for row in rows) - unknown, "both": 0}


def test_values_of_events_stay_side_by_side(brain: Brain, page: int) -> None:
    events = [
        ("swim_time", "31 min", "29 min"),
        ("rainfall", "12 mm", "30 mm"),
        ("harvest", "80 kg", "95 kg"),
    ]
    events += [("checkup", "2026-01-04", "2026-03-01"), ("quiz_points", "12", "15")]
    for predicate, old, new in events:
        add(brain, page, predicate, old)
        assert add(brain, page, predicate, new).superseded == (), predicate


def test_fact_supersedes_only_the_same_subject_and_predicate(brain: Brain, page: int) -> None:
    home = add(brain, page, "lives_in", "Ghent", "2020-01-01")
    with pytest.raises(InvalidArgument) as caught:
        add(brain, page, "works_at", "Hexa", supersedes_id=home.id)
    assert "Alice lives_in Ghent" in str(caught.value)
    assert "Alice works_at Hexa" in str(caught.value)
    stranger = FactInput("Bob", "lives_in", "Lyon", supersedes_id=home.id)
    with pytest.raises(InvalidArgument):
        brain.db.write(lambda tx: facts.add_fact(tx, page, stranger, NOW))
    assert held(brain, page) == [("Ghent", "2020-01-01", None, None)]
    same = FactInput("people/alice", "residence", "Lyon", "2021-01-01", supersedes_id=home.id)
    assert brain.db.write(lambda tx: facts.add_fact(tx, page, same, NOW)).superseded == (home.id,)


def test_a_fact_that_is_known_can_still_say_what_it_supersedes(brain: Brain, page: int) -> None:
    old, new = add(brain, page, "knows", "Ghent"), add(brain, page, "knows", "Lyon")
    with pytest.raises(NotFound):
        add(brain, page, "knows", "Lyon", supersedes_id=99)
    with pytest.raises(InvalidArgument):
        add(brain, page, "knows", "Lyon", supersedes_id=new.id)
    assert add(brain, page, "knows", "Lyon", supersedes_id=old.id).superseded == (old.id,)
    assert held(brain, page) == [("Ghent", None, "2026-04-25", None), ("Lyon", None, None, old.id)]
    assert add(brain, page, "knows", "Lyon", supersedes_id=old.id).changed is False
    with pytest.raises(InvalidArgument):
        add(brain, page, "knows", "Ghent", supersedes_id=new.id, valid_until="2026-04-25")


def test_an_end_can_be_corrected_and_the_record_says_what_it_was(brain: Brain, page: int) -> None:
    first = add(brain, page, "works_at", "Hexa", "2020-01-01", valid_until="2024-01-01")
    moved = add(brain, page, "works_at", "Hexa", "2020-01-01", valid_until="2024-02-01")
    assert (moved.id, moved.changed, moved.ended_before) == (first.id, True, "2024-01-01")
    assert add(brain, page, "works_at", "Hexa", valid_until="2024-03-01").ended_before == "2024-02-01"
    assert held(brain, page) == [("Hexa", "2020-01-01", "2024-03-01", None)]


def test_an_end_before_all_that_is_known_is_of_an_earlier_time(brain: Brain, page: int) -> None:
    add(brain, page, "works_at", "Hexa", "2020-01-01", valid_until="2024-01-01")
    assert add(brain, page, "works_at", "Hexa", valid_until="2015-01-01").added


def test_a_second_witness_is_kept_and_the_first_one_again_changes_nothing(brain: Brain, page: int) -> None:
    mail: dict[str, Any] = {"source_ref": "mail/1", "evidence_text": "Alice, of Ghent", "confidence": 0.6}
    call: dict[str, Any] = {"source_ref": "mail/12", "evidence_text": "I live in Ghent", "confidence": 0.9}
    first = add(brain, page, "lives_in", "Ghent", **call)
    second = add(brain, page, "lives_in", "Ghent", **mail)
    assert (second.id, second.added, second.changed, second.witnessed) == (first.id, False, True, True)
    for again in (mail, call, {}):
        assert add(brain, page, "lives_in", "Ghent", **again).changed is False
    (row,) = facts.read_facts(brain.db, "page", [page])
    assert (row.source_ref, row.evidence_text, row.confidence) == (
        *("mail/12; mail/1", "I live in Ghent / Alice, of Ghent", 0.9),
    )


def test_the_only_witness_may_become_less_sure(brain: Brain, page: int) -> None:
    add(brain, page, "lives_in", "Ghent", source_ref="mail/1")
    assert add(brain, page, "lives_in", "Ghent", source_ref="mail/1", confidence=0.5).witnessed
    assert facts.read_facts(brain.db, "page", [page])[0].confidence == 0.5


def test_an_undated_fact_that_was_ended_can_be_stated_again(brain: Brain, page: int) -> None:
    add(brain, page, "works_at", "Hexa", source_ref="mail/1")
    add(brain, page, "works_at", "Hexa", valid_until="2024-01-01")
    assert add(brain, page, "works_at", "Hexa", source_ref="mail/1").changed is False  # an old mail, replayed
    assert add(brain, page, "works_at", "Hexa").added
    assert [row[2] for row in held(brain, page)] == ["2024-01-01", None]
    assert add(brain, page, "works_at", "Hexa").changed is False


@pytest.mark.parametrize(
    ("values", "error", "said"),
    [
        ({}, InvalidArgument, "facts[1].subject"),
        ({"subject": "A"}, InvalidArgument, "facts[1].predicate"),
        ({"subject": "A", "predicate": "is"}, InvalidArgument, "facts[1].object"),
        ({"subject": "!!", "predicate": "is", "object": "b"}, InvalidArgument, "no letter"),
        ({"subject": "A", "predicate": "--", "object": "b"}, InvalidArgument, "no letter"),
        ({"subject": "A", "predicate": "is", "object": []}, InvalidArgument, "must be text"),
        (
            {"subject": "A", "predicate": "is", "object": "b", "since": "2020"},
            InvalidArgument,
            "facts[1].since",
        ),
        (
            {"subject": "A", "predicate": "is", "object": "b", "valid_from": "2020"},
            InvalidDate,
            "facts[1].valid_from",
        ),
        ({"subject": "A", "predicate": "is", "object": "b", "confidence": 2}, InvalidArgument, "from 0 to 1"),
        (
            {"subject": "A", "predicate": "is", "object": "b", "asserted_by": "me"},
            InvalidArgument,
            "one of agent",
        ),
        (
            {"subject": "A", "predicate": "is", "object": "b", "supersedes_id": "x"},
            InvalidArgument,
            "id of a fact",
        ),
        ({"subject": "A" * 999, "predicate": "is", "object": "b"}, InvalidArgument, "200 is the most"),
        (
            {
                "subject": "A",
                "predicate": "is",
                "object": "b",
                "valid_from": "2020-01-02",
                "valid_until": "2020-01-01",
            },
            InvalidArgument,
            "before valid_from",
        ),
    ],
)
def test_a_bad_fact_is_refused_by_the_name_of_its_field(
    values: dict[str, Any], error: type[QuaidError], said: str
) -> None:
    with pytest.raises(error) as caught:
        check_fact(values, "facts[1]")
    assert said in str(caught.value)


def test_a_fact_of_the_wire_is_tidied() -> None:
    fact = check_fact(
        {"predicate": "Works at", "object": "[[companies/hexa|Hexa]]", "confidence": 1}, "x", "Alice"
    )
    assert fact[:3] == ("Alice", "works_at", "companies/hexa")
    assert check_fact({"predicate": "age", "object": 42}, "x", "Alice").object == "42"


def test_a_former_value_does_not_end_the_current_one(brain: Brain, page: int) -> None:
    add(brain, page, "works_at", "Hill", "2025-01-01")
    add(brain, page, "works_at", "Dale")
    add(brain, page, "works_at", "Old Corp", "2019-01-01")
    current = [row[0] for row in held(brain, page) if row[2] is None]
    assert current == ["Dale"]
    assert ("Old Corp", "2019-01-01", "2025-01-01", None) in held(brain, page)


def test_a_recent_value_ends_undated_ones_that_were_recorded_after_its_first_day(
    brain: Brain, page: int
) -> None:
    for size in ("120", "150"):
        add(brain, page, "headcount", size)
    assert add(brain, page, "headcount", "200", "2026-04-24").superseded == (1, 2)
    assert held(brain, page) == [
        ("120", None, "2026-04-24", None),
        ("150", None, "2026-04-24", 1),
        ("200", "2026-04-24", None, 2),
    ]
    add(brain, page, "headcount", "90", "2026-01-01")
    assert [row[0] for row in held(brain, page) if row[2] is None] == ["200"]


def test_a_value_from_years_ago_does_not_end_an_undated_one(brain: Brain, page: int) -> None:
    add(brain, page, "works_at", "Dale")
    add(brain, page, "works_at", "Old Corp", "2019-01-01")
    assert held(brain, page) == [("Dale", None, None, 2), ("Old Corp", "2019-01-01", "2026-04-25", None)]
