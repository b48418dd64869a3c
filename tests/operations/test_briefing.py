"""A briefing: compiled from the database itself, called through the gate as every surface calls it."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import InvalidArgument
from quaid.formats import markdown
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value
from quaid.operations.overview import BRIEFING_PARTS
from quaid.storage.briefing import BriefingLine

DAY = 86_400.0


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.at = 1_777_118_400.0  # 2026-04-25T12:00:00Z

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def brain(settings: Settings, clock: Clock) -> Iterator[Brain]:
    with Brain(settings, clock=clock, random=os.urandom) as brain:
        brain.create(settings.db_path)
        yield brain


def put(brain: Brain, slug: str, truth: str = "", **front: Any) -> None:
    arguments = {"slug": slug, "compiled_truth": truth or f"# {slug}\n", "frontmatter": front}
    dispatch.call(brain, dispatch.find_command("put"), arguments, "owner")


def bring(brain: Brain, slug: str, **front: Any) -> None:
    """A page from a folder, whose front matter may say anything."""
    path = os.path.join(brain.settings.cwd, "brought", f"{slug}.md")
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as file:
        file.write(markdown.render(front, f"# {slug}", ""))
    folder = os.path.join(brain.settings.cwd, "brought")
    dispatch.call(brain, dispatch.find_command("import"), {"folder": folder}, "owner")


def brief(brain: Brain, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_tool("memory_briefing"), arguments, "read")


def told(brain: Brain, part: str, **arguments: Any) -> list[tuple[str, str, str]]:
    return [(item.slug, item.day, item.state) for item in getattr(brief(brain, **arguments), part).items]


def add_fact(brain: Brain, slug: str, object: str, **columns: Any) -> int:
    """A row as the truth room writes it."""
    row = {
        "subject": "Alice",
        "subject_key": "alice",
        "predicate": "works_at",
        "object": object,
        "created_at": brain.now(),
        **columns,
    }

    def work(tx: Any) -> int:
        (page_id,) = tx.execute("SELECT id FROM pages WHERE slug = ?", (slug,)).fetchone()
        names = ", ".join(row)
        marks = ", ".join("?" for _ in row)
        tx.execute(f"INSERT INTO assertions (page_id, {names}) VALUES (?, {marks})", (page_id, *row.values()))
        return int(tx.last_insert_rowid())

    return brain.db.write(work)


def write(brain: Brain, sql: str, *values: Any) -> None:
    brain.db.write(lambda tx: tx.execute(sql, values))


def test_an_empty_memory_gets_an_empty_briefing_and_a_start(brain: Brain) -> None:
    record = brief(brain)
    assert all(getattr(record, name) == ((), 0) for name in BRIEFING_PARTS)
    assert (record.as_of, record.since) == ("2026-04-25T12:00:00Z", "2026-04-24T12:00:00Z")
    assert record.due_until == "2026-05-02"
    assert any("quaid import" in step for step in record.next_steps)


def test_pages_are_new_or_changed_within_the_window_the_latest_first(brain: Brain, clock: Clock) -> None:
    clock.at -= 2 * DAY
    put(brain, "people/alice")
    put(brain, "people/bob")
    clock.at += 2 * DAY
    put(brain, "people/bob", "# Bob\n\nMoved.\n")
    clock.at += 1
    put(brain, "people/carol")
    today = "2026-04-25"
    assert told(brain, "changed") == [("people/carol", today, "new"), ("people/bob", today, "changed")]
    assert [slug for slug, *_ in told(brain, "changed", since="3d")] == [
        "people/carol",
        "people/bob",
        "people/alice",
    ]
    assert len(told(brain, "changed", since="2026-04-23")) == 3


def test_a_fact_that_was_replaced_shows_both_once(brain: Brain, clock: Clock) -> None:
    put(brain, "people/alice")
    clock.at -= 10 * DAY
    old = add_fact(brain, "people/alice", "Acme", valid_until="2026-04-25")
    clock.at += 10 * DAY
    add_fact(brain, "people/alice", "River", valid_from="2026-04-25", supersedes_id=old)
    (item,) = brief(brain).shifted.items
    assert item[:4] == ("people/alice", "2026-04-25", "superseded", "Alice works_at Acme → River")


def test_files_of_the_other_packages_are_reported(brain: Brain, clock: Clock) -> None:
    def call(command: str, **arguments: Any) -> Any:
        return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")

    clock.at -= 9 * DAY
    put(brain, "people/alice", "# Alice\n")
    put(brain, "people/bob", "# Bob\n")
    call("assert", slug="people/alice", predicate="works_at", object="Acme", valid_from="2024-01-01")
    clock.at += 9 * DAY
    call("assert", slug="people/alice", predicate="works_at", object="River", valid_from="2026-04-25")
    call("assert", slug="people/bob", subject="Alice", predicate="works_at", object="Brine")
    call("check")
    call("gaps add", query_text="Who owns the crane?")
    record = brief(brain)
    assert [item.text for item in record.shifted.items] == ["Alice works_at Acme → River"]
    assert [item.state for item in record.contradictions.items] == ["cross_page"]
    assert (record.gaps.items, record.unworded_gaps) == ((), 1)
    assert any(note.startswith("1 question without an answer") for note in record.notes)
    assert "crane" not in str(json_value(record))


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def test_words_of_questions_are_shown_if_the_setting_stores_them(brain: Brain) -> None:
    put(brain, "people/alice")
    run(brain, "gaps add", query="Who owns the crane?")
    run(brain, "config set", key="log_gaps", value="text")
    run(brain, "query", query="Who repairs the lighthouse lamps?")
    run(brain, "gaps add", query="Who owns the crane?")
    record = brief(brain)
    assert sorted((item.text, item.state) for item in record.gaps.items) == [
        ("Who owns the crane?", "internal, asked 2 times"),
        ("Who repairs the lighthouse lamps?", "internal, asked 1 time"),
    ]
    assert record.unworded_gaps == 0


def test_open_todos_are_listed_by_day_and_those_without_a_day_last(brain: Brain) -> None:
    run(brain, "notebook init")
    root = os.path.join(os.path.dirname(brain.settings.db_path), "notebook")
    with open(os.path.join(root, "lists", "todos.md"), "w", encoding="utf-8") as file:
        file.write(
            "# To Do\n\n- [ ] Call the plumber\n- [ ] File the taxes by 2026-04-25\n- [x] Pay rent 2026-04-20\n"
            "- [ ] Renew the passport by 20 April 2026\n- [ ] ~~Sell the boat~~\n- [ ] Book a hall 2026-09-01\n"
        )
    with open(os.path.join(root, "lists", "packing.md"), "w", encoding="utf-8") as file:
        file.write("# Packing\n\n- [ ] Tent\n- [ ] Rent skis 2026-04-27\n")
    part = brief(brain).todos
    assert [(item.slug, item.day, item.state, item.text) for item in part.items] == [
        (
            "notebook::lists/todos",
            "2026-04-20",
            "open, overdue by 5 days",
            "Renew the passport by 20 April 2026",
        ),
        ("notebook::lists/todos", "2026-04-25", "open, today", "File the taxes by 2026-04-25"),
        ("notebook::lists/packing", "2026-04-27", "open, in 2 days", "Rent skis 2026-04-27"),
        ("notebook::lists/todos", "", "open", "Call the plumber"),
    ]
    limited = brief(brain, limit=2).todos
    assert (len(limited.items), limited.total) == (2, 4)


def test_writes_that_wait_for_review_are_listed(brain: Brain) -> None:
    run(brain, "config set", key="agent_writes", value="review")
    brain.agent = "robot"
    put_tool = dispatch.find_tool("memory_put")
    dispatch.call(brain, put_tool, {"slug": "people/eve", "compiled_truth": "# Eve"}, "write")
    assert [item.slug for item in brief(brain).review.items] == ["people/eve"]
    brain.agent = "other"
    assert brief(brain).review.items == ()
    brain.agent = ""
    record = brief(brain)
    assert [(item.slug, item.state, item.id) for item in record.review.items] == [
        ("people/eve", "memory_put by robot", 1)
    ]
    assert record.proposals == 1


def test_a_past_that_is_written_down_in_one_go_shifts_nothing(brain: Brain) -> None:
    put(brain, "people/alice")
    old = add_fact(brain, "people/alice", "Acme", valid_from="2010-01-01", valid_until="2015-01-01")
    add_fact(brain, "people/alice", "River", valid_from="2015-01-01", supersedes_id=old)
    assert brief(brain).shifted == ((), 0)
    add_fact(brain, "people/alice", "Brine", valid_from="2026-04-25", supersedes_id=old)
    assert [item.text for item in brief(brain).shifted.items] == ["Alice works_at Acme → Brine"]


def test_fact_that_ended_within_the_window_is_reported_and_an_older_one_is_not(brain: Brain) -> None:
    put(brain, "people/alice")
    add_fact(brain, "people/alice", "Acme", valid_until="2026-04-24")
    add_fact(brain, "people/alice", "Brine", valid_until="2026-04-20")
    add_fact(brain, "people/alice", "Later", valid_until="2026-05-20")
    add_fact(brain, "people/alice", "Now")
    assert [item.text for item in brief(brain).shifted.items] == ["Alice works_at Acme"]
    assert brief(brain, since="7d").shifted.total == 2


def test_links_that_begin_or_close_are_shifts_and_links_of_a_text_are_not(brain: Brain, clock: Clock) -> None:
    clock.at -= 9 * DAY
    put(brain, "companies/acme")
    put(brain, "companies/river")
    put(brain, "people/alice", "# Alice\n\nKnows [[companies/river]].\n")
    link = {"from": "people/alice", "to": "companies/acme", "relationship": "works_at"}
    made = dispatch.call(brain, dispatch.find_command("link"), {**link, "valid_from": "2024-01-15"}, "owner")
    clock.at += 9 * DAY
    closing = {"link_id": made.link.id, "valid_until": "2026-04-25"}
    dispatch.call(brain, dispatch.find_command("link-close"), closing, "owner")
    dispatch.call(brain, dispatch.find_command("link"), {**link, "to": "companies/river"}, "owner")
    assert [(item.state, item.text) for item in brief(brain).shifted.items] == [
        ("link begun", "works_at companies/river"),
        ("link ended", "works_at companies/acme"),
    ]


@pytest.mark.parametrize(("status", "shown"), [("reversed", True), ("Superseded", True), ("active", False)])
def test_a_decision_that_was_turned_is_a_shift(brain: Brain, status: str, shown: bool) -> None:
    put(brain, "decisions/zinc", title="Zinc", status=status)
    assert bool(brief(brain).shifted.items) is shown


def test_a_commitment_that_moved_is_a_shift(brain: Brain) -> None:
    put(brain, "commitments/report", title="Report", status="shifted", due="2026-09-01", owner="people/bo")
    (item,) = brief(brain).shifted.items
    assert item == BriefingLine("commitments/report", "2026-04-25", "shifted", "Report", "people/bo")


def test_commitments_are_due_by_the_horizon_overdue_first(brain: Brain) -> None:
    put(brain, "commitments/later", due="2026-05-03", status="open")
    put(brain, "commitments/soon", due="2026-05-02", status="open", owner="people/bob")
    put(brain, "commitments/today", due="2026-04-25")
    put(brain, "commitments/late", due="2026-04-01", status="shifted")
    put(brain, "commitments/kept", due="2026-04-01", status="Completed")
    put(brain, "commitments/by-date", date="2026-04-30T09:00:00")
    bring(brain, "commitments/some-day", due="soon")
    assert told(brain, "commitments") == [
        ("commitments/late", "2026-04-01", "shifted, overdue by 24 days"),
        ("commitments/today", "2026-04-25", "open, today"),
        ("commitments/by-date", "2026-04-30", "open, in 5 days"),
        ("commitments/soon", "2026-05-02", "open, in 7 days"),
    ]
    record = brief(brain, due=0)
    assert record.commitments.total == 2
    assert brief(brain).commitments.items[-1].owner == "people/bob"
    assert record.notes == ("1 open commitment names no day: no `due` in the front matter",)
    assert "`quaid get commitments/late`" in record.next_steps[0]


def test_actions_are_ordered_by_priority_then_by_day(brain: Brain) -> None:
    put(brain, "actions/low", priority="low", due="2026-04-01", status="open")
    put(brain, "actions/plain", due="2026-05-01")
    put(brain, "actions/no-day", status="blocked")
    put(brain, "actions/urgent", priority="Urgent", due="2026-06-01", status="open")
    put(brain, "actions/done", priority="urgent", status="done")
    put(brain, "actions/cancelled", status="cancelled")
    assert told(brain, "actions") == [
        ("actions/urgent", "2026-06-01", "open, urgent, in 37 days"),
        ("actions/plain", "2026-05-01", "open, in 6 days"),
        ("actions/no-day", "", "blocked"),
        ("actions/low", "2026-04-01", "open, low, overdue by 24 days"),
    ]


def test_open_contradictions_are_those_of_now_with_their_numbers_and_without_settled_ones(
    brain: Brain,
) -> None:
    put(brain, "people/alice", "# Alice\n")
    # Values that one call states together contradict each other; stated one after the other, the last one holds.
    values = (("lives_in", "Oslo"), ("lives_in", "Rome"), ("email", "a@x.org"), ("email", "b@x.org"))
    facts = [{"predicate": predicate, "object": value} for predicate, value in values]
    dispatch.call(brain, dispatch.find_command("put"), {"slug": "people/alice", "assertions": facts}, "owner")
    assert [item.id for item in brief(brain).contradictions.items] == [2, 1]  # the write has stored them
    contradictions = dispatch.call(brain, dispatch.find_command("check"), {}, "owner").contradictions
    assert {item.id for item in brief(brain).contradictions.items} == {item.id for item in contradictions}
    dispatch.call(brain, dispatch.find_command("check"), {"resolve": contradictions[0].id}, "owner")
    (item,) = brief(brain).contradictions.items
    assert (item.slug, item.day, item.state, item.id) == (
        *("people/alice", "2026-04-25", "cross_page", contradictions[1].id),
    )


def test_a_large_memory_says_how_old_its_contradictions_are(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quaid.operations.overview.MAX_PAGES_CHECKED", 0)
    put(brain, "people/alice")
    assert "first check" in brief(brain).notes[0]
    dispatch.call(brain, dispatch.find_command("check"), {}, "owner")
    assert "as of the last check, 2026-04-25" in brief(brain).notes[0]


def test_a_resolved_stale_page_is_not_listed(brain: Brain, clock: Clock) -> None:
    put(brain, "people/old")
    clock.at += 40 * DAY
    entry = {"slug": "people/old", "date": "2026-04-25", "summary": "Moved"}
    dispatch.call(brain, dispatch.find_command("timeline-add"), entry, "owner")
    (result,) = dispatch.call(brain, dispatch.find_command("check"), {}, "owner").contradictions
    assert brief(brain).stale.total == 1
    dispatch.call(brain, dispatch.find_command("check"), {"resolve": result.id}, "owner")
    assert brief(brain).stale.total == 0


def test_only_approved_words_of_a_gap_are_shown(brain: Brain) -> None:
    sql = (
        "INSERT INTO knowledge_gaps (query_hash, query_text, context, sensitivity, approved_by, approved_at,"
        " redacted_query, times_seen, detected_at, last_seen_at)"
        " VALUES (?1, ?2, 'hidden context', ?3, ?4, ?4, ?5, ?6, '2026-04-20T00:00:00Z', '2026-04-24T00:00:00Z')"
    )
    write(brain, sql, "hash-1", None, "internal", None, None, 3)
    write(brain, sql, "hash-2", "hidden words", "redacted", "Mira", "what do such firms cost?", 2)
    write(brain, sql, "hash-3", "what is vanadium?", "external", "Mira", None, 1)
    write(brain, sql, "hash-4", "approved but internal", "internal", "Mira", None, 1)
    record = brief(brain)
    assert [(item.state, item.text) for item in record.gaps.items] == [
        ("redacted, asked 2 times", "what do such firms cost?"),
        ("external, asked 1 time", "what is vanadium?"),
    ]
    assert record.unworded_gaps == 2
    for secret in ("hidden", "hash", "approved but"):
        assert secret not in str(json_value(record))


def test_a_page_is_stale_when_its_timeline_is_thirty_days_ahead(brain: Brain, clock: Clock) -> None:
    for slug, days in (("people/old", 30), ("people/young", 29)):
        clock.at -= days * DAY
        put(brain, slug)
        clock.at += days * DAY
        entry = {"slug": slug, "date": "2026-04-25", "summary": "Moved"}
        dispatch.call(brain, dispatch.find_command("timeline-add"), entry, "owner")
    assert told(brain, "stale") == [("people/old", "2026-03-26", "truth is 30 days old")]


def test_open_threads_come_from_the_pages_left_alone_longest(brain: Brain, clock: Clock) -> None:
    for slug in ("people/old", "people/new"):
        put(brain, slug, f"# X\n\n## Open Threads\n\n- [ ] ask {slug}\n- [x] done\n")
        clock.at += DAY
    put(brain, "concepts/none", "# On open threads\n\n- [ ] not one\n")
    assert [(item.slug, item.text) for item in brief(brain).threads.items] == [
        ("people/old", "ask people/old"),
        ("people/new", "ask people/new"),
    ]


def test_deals_that_are_neither_won_nor_lost_are_active(brain: Brain) -> None:
    put(brain, "deals/a", status="negotiation")
    put(brain, "deals/b", status="prospect", expected_close="2026-05-01")
    put(brain, "deals/c", status="won")
    put(brain, "deals/d", status="Lost ")
    assert told(brain, "deals") == [
        ("deals/b", "2026-05-01", "prospect, in 6 days"),
        ("deals/a", "", "negotiation"),
    ]


def test_people_in_play_changed_this_week_and_score_enough(brain: Brain, clock: Clock) -> None:
    clock.at -= 8 * DAY
    put(brain, "people/long-ago", score=5)
    clock.at += 8 * DAY
    put(brain, "people/some", score=3)
    put(brain, "people/little", score=2)
    put(brain, "people/unscored")
    put(brain, "people/much", score="4.5")
    assert [slug for slug, *_ in told(brain, "people")] == ["people/much", "people/some", "people/unscored"]


def test_omitted_results_are_counted_with_the_option_to_see_them(brain: Brain) -> None:
    for number in range(5):
        put(brain, f"actions/a{number}")
    record = brief(brain, limit=2)
    assert (len(record.actions.items), record.actions.total) == (2, 5)
    assert "`quaid briefing --limit 5` shows the omitted lines" in record.next_steps


def test_a_hidden_page_is_in_no_part(brain: Brain, clock: Clock) -> None:
    clock.at -= 40 * DAY
    for slug in ("people/a", "decisions/b", "commitments/c", "actions/d", "deals/e"):
        put(brain, slug, "## Open Threads\n- [ ] x\n", status="reversed", due="2026-04-25")
    add_fact(brain, "people/a", "Acme", valid_until="2026-04-25")
    write(
        brain,
        "INSERT INTO contradictions (page_id, type, description, detected_at)"
        " SELECT id, 'temporal', 'x', '2026-04-20' FROM pages",
    )
    clock.at += 40 * DAY
    write(
        brain, "UPDATE pages SET updated_at = ?1, timeline_updated_at = ?1, quarantined_at = ?1", brain.now()
    )
    record = brief(brain)
    assert record.pages == 0
    assert {name: getattr(record, name).total for name in BRIEFING_PARTS} == dict.fromkeys(BRIEFING_PARTS, 0)


def test_every_text_is_one_short_line(brain: Brain) -> None:
    put(brain, "actions/x", title="one\ntwo\u2028three " + "long " * 100, owner=["people/a", "people/b"])
    bring(brain, "actions/y", status={"odd": 1}, due=20260425, priority=[1], owner=None)
    for item in brief(brain).actions.items:
        for text in item[:5]:
            assert len(text.splitlines()) <= 1
            assert len(text) <= 200


@pytest.mark.parametrize("since", ["yesterday", "", "7", "2026-02-30", "-1d", "9999d", "2026-04-26"])
def test_invalid_window_is_refused_with_a_remedy(brain: Brain, since: str) -> None:
    with pytest.raises(InvalidArgument, match="since"):
        brief(brain, since=since)


def test_a_briefing_writes_nothing(brain: Brain) -> None:
    put(brain, "people/alice")
    before = brain.db.one("PRAGMA data_version"), brain.db.connection.total_changes()
    brief(brain)
    assert (brain.db.one("PRAGMA data_version"), brain.db.connection.total_changes()) == before


def test_a_short_briefing_leaves_out_what_takes_longest_and_nothing_else(brain: Brain) -> None:
    put(brain, "commitments/report", "# Report\n", type="commitment", due="2026-04-26", status="open")
    put(brain, "projects/pier", "# Pier\n\n## Open Threads\n\n- [ ] Call the diver\n")
    long, short = brief(brain), brief(brain, short=True)
    assert long.threads.total == 1
    assert (short.threads.total, short.stale.total, short.shifted.total) == (0, 0, 0)
    assert (short.commitments, short.changed, short.gaps) == (long.commitments, long.changed, long.gaps)
    assert short.commitments.total == 1


def test_a_briefing_and_a_check_agree_on_stale_pages(brain: Brain, clock: Clock) -> None:
    ahead = (0, 29 * DAY, 30 * DAY - 1, 30 * DAY, 30 * DAY + 1, 31 * DAY, 400 * DAY)
    start = clock.at
    for place, seconds in enumerate(ahead):
        clock.at = start + place * 3_601
        put(brain, f"concepts/page-{place}")
        clock.at += seconds
        arguments = {"slug": f"concepts/page-{place}", "date": "2026-04-25", "summary": "Seen"}
        dispatch.call(brain, dispatch.find_command("timeline-add"), arguments, "owner")
    checked = dispatch.call(brain, dispatch.find_command("check"), {"type": "stale"}, "owner")
    by_check = {finding.slug for finding in checked.contradictions}
    assert by_check == {f"concepts/page-{place}" for place in (3, 4, 5, 6)}
    assert {item.slug for item in brief(brain).stale.items} == by_check
    resolved = {"resolve": checked.contradictions[0].id}
    dispatch.call(brain, dispatch.find_command("check"), resolved, "owner")
    checked = dispatch.call(brain, dispatch.find_command("check"), {"type": "stale"}, "owner")
    assert {item.slug for item in brief(brain).stale.items} == {item.slug for item in checked.contradictions}
