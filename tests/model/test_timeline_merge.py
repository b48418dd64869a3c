"""Timelines only grow, and hold everything once."""

from hypothesis import given, strategies as st
from tests.model.test_page_merge import TIMELINES

from quaid.model import timeline

OLD = "## Timeline\n\n- **2026-04-14** | fair — Met Bo.\n- **2026-04-20** — Wrote."


def test_a_piece_of_text_is_added_as_it_is() -> None:
    more = "- **2026-05-01** | call — Moved.\n  To Oslo."
    assert timeline.append_text(OLD, more) == f"{OLD}\n{more}"
    assert timeline.append_text("", more) == more


def test_the_same_piece_again_changes_nothing() -> None:
    more = "- **2026-05-01** | call — Moved."
    once = timeline.append_text(OLD, more)
    assert timeline.append_text(once, more) == once
    assert timeline.append_text(once, "  ") == once
    assert timeline.append_text(f"{once}\n\nSome remark.", "Some remark.") == f"{once}\n\nSome remark."


def test_the_missing_half_of_a_partly_known_entry_is_added() -> None:
    more = "- **2026-04-20** — Wrote.\n- **2026-05-01** | call — Moved.\n  To Oslo."
    entries = timeline.parse(timeline.append_text(OLD, more))
    assert [entry.summary for entry in entries] == ["Met Bo.", "Wrote.", "Moved."]
    assert (entries[2].source, entries[2].detail) == ("call", "To Oslo.")


def test_a_new_timeline_never_loses_what_the_old_one_had() -> None:
    assert timeline.merge_timelines(OLD, "") == OLD
    whole = OLD + "\n- **2026-05-01** — Moved."
    assert timeline.merge_timelines(OLD, whole) == whole
    shorter = "- **2026-05-01** — Moved."
    assert timeline.entry_keys(timeline.merge_timelines(OLD, shorter)) == timeline.entry_keys(whole)


def test_entries_that_were_left_out_come_back_where_their_dates_belong() -> None:
    new = "## Timeline\n\n- **2026-04-20** — Wrote.\n- **2026-06-01** — Came back.\n\nA remark below."
    assert timeline.merge_timelines(OLD, new) == (
        "## Timeline\n\n- **2026-04-14** | fair — Met Bo.\n- **2026-04-20** — Wrote.\n"
        "- **2026-06-01** — Came back.\n\nA remark below."
    )


def test_a_timeline_with_one_entry_takes_the_order_of_the_old_one() -> None:
    old = "- **2026-03-01** — C.\n- **2026-01-01** — A.\n  Why."
    assert timeline.merge_timelines(old, "- **2026-02-01** — B.") == (
        "- **2026-03-01** — C.\n- **2026-02-01** — B.\n- **2026-01-01** — A.\n  Why."
    )


def test_the_newest_comes_first_where_nothing_tells_the_order() -> None:
    old, new = "- **2026-03-01** — C.", "- **2026-02-01** — B."
    assert timeline.merge_timelines(old, new) == f"{old}\n{new}"
    assert timeline.merge_timelines(new, old) == f"{old}\n{new}"


def test_a_heading_without_entries_gets_them_all_below_it() -> None:
    assert timeline.merge_timelines(OLD, "## Timeline") == OLD


def test_entries_under_headings_stay_apart() -> None:
    old = "### 2026-01-01 — A\n\nOne.\n\n### 2026-02-01 — B\n\nTwo."
    assert (
        timeline.merge_timelines(old, "### 2026-03-01 — C\n\nThree.")
        == f"{old}\n\n### 2026-03-01 — C\n\nThree."
    )


def test_an_entry_whose_text_was_changed_is_kept_beside_the_new_one() -> None:
    new = OLD.replace("Met Bo.", "Met Bo and Ann.")
    entries = [entry.summary for entry in timeline.parse(timeline.merge_timelines(OLD, new))]
    assert entries == ["Met Bo and Ann.", "Met Bo.", "Wrote."]


def test_an_entry_may_say_more_but_not_less() -> None:
    short, long = (
        "- **2026-04-14** — Met Bo.\n  At nine.",
        "- **2026-04-14** | fair — Met Bo.\n  At nine.\n  Left.",
    )
    assert timeline.merge_timelines(short, long) == long
    both = timeline.merge_timelines(long, short)
    assert [entry.detail for entry in timeline.parse(both)] == ["At nine.", "At nine.\nLeft."]
    assert timeline.merge_timelines(both, both.strip()) == both
    assert not timeline.missing_entries(both, both + "\n")


def test_duplicate_entry_is_kept_once() -> None:
    assert timeline.describe_entries(
        timeline.missing_entries(f"{OLD}\n- **2026-04-20** — Wrote.", "None.")
    ) == (
        "2026-04-14 Met Bo.",
        "2026-04-20 Wrote.",
    )


def test_only_the_first_of_many_entries_are_named() -> None:
    old = "\n".join(f"- **2026-04-14** — Thing {number}." for number in range(30))
    named = timeline.describe_entries(timeline.missing_entries(old, "None."))
    assert (len(named), named[0], named[-1]) == (21, "2026-04-14 Thing 0.", "and 10 more")


@given(TIMELINES, TIMELINES)
def test_no_entry_and_no_line_is_lost_whatever_replaces_a_timeline(old: str, new: str) -> None:
    together = timeline.merge_timelines(old, new)
    assert not timeline.missing_entries(old, together)
    assert not timeline.missing_entries(new, together)
    assert {line for line in new.split("\n") if line.strip()} <= set(together.split("\n"))
    assert timeline.merge_timelines(old, together) == together


def test_an_entry_is_there_once() -> None:
    once = timeline.add_entry_once(OLD, "2026-05-01", "Moved", "call")
    assert timeline.add_entry_once(once, "2026-05-01", "Moved ", "other") == once


ENTRIES = st.lists(
    st.tuples(
        st.dates().map(str).filter(lambda day: day > "0999"), st.sampled_from(["Met.", "Left.", "Came back."])
    ),
    max_size=6,
)


@given(ENTRIES, ENTRIES)
def test_joining_is_a_union_whatever_is_joined(
    one: list[tuple[str, str]], other: list[tuple[str, str]]
) -> None:
    old, new = ("\n".join(f"- **{day}** — {summary}" for day, summary in item) for item in (one, other))
    wanted = timeline.entry_keys(old) | timeline.entry_keys(new)
    assert timeline.entry_keys(timeline.merge_timelines(old, new)) == wanted
    assert timeline.entry_keys(timeline.append_text(old, new)) == wanted
    assert timeline.append_text(timeline.append_text(old, new), new) == timeline.append_text(old, new)
