"""Timelines only grow, and hold everything once."""

from hypothesis import given, strategies as st

from quaid.core import evidence, timeline

OLD = "## Timeline\n\n- **2026-04-14** | fair — Met Bo.\n- **2026-04-20** — Wrote."


def test_a_piece_of_text_is_added_as_it_is() -> None:
    more = "- **2026-05-01** | call — Moved.\n  To Oslo."
    assert evidence.extended(OLD, more) == f"{OLD}\n{more}"
    assert evidence.extended("", more) == more


def test_the_same_piece_again_changes_nothing() -> None:
    more = "- **2026-05-01** | call — Moved."
    once = evidence.extended(OLD, more)
    assert evidence.extended(once, more) == once
    assert evidence.extended(once, "  ") == once
    assert evidence.extended(f"{once}\n\nSome remark.", "Some remark.") == f"{once}\n\nSome remark."


def test_of_a_piece_that_is_half_known_the_other_half_is_added() -> None:
    more = "- **2026-04-20** — Wrote.\n- **2026-05-01** | call — Moved.\n  To Oslo."
    entries = timeline.parse(evidence.extended(OLD, more))
    assert [entry.summary for entry in entries] == ["Met Bo.", "Wrote.", "Moved."]
    assert (entries[2].source, entries[2].detail) == ("call", "To Oslo.")


def test_a_new_timeline_never_loses_what_the_old_one_had() -> None:
    assert evidence.joined(OLD, "") == OLD
    whole = OLD + "\n- **2026-05-01** — Moved."
    assert evidence.joined(OLD, whole) == whole
    shorter = "- **2026-05-01** — Moved."
    assert evidence.keys(evidence.joined(OLD, shorter)) == evidence.keys(whole)


def test_an_entry_is_there_once() -> None:
    once = evidence.with_entry(OLD, "2026-05-01", "Moved", "call")
    assert evidence.with_entry(once, "2026-05-01", "Moved ", "other") == once


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
    old, new = ("\n".join(f"- **{day}** — {summary}" for day, summary in each) for each in (one, other))
    wanted = evidence.keys(old) | evidence.keys(new)
    assert evidence.keys(evidence.joined(old, new)) == wanted
    assert evidence.keys(evidence.extended(old, new)) == wanted
    assert evidence.extended(evidence.extended(old, new), new) == evidence.extended(old, new)
