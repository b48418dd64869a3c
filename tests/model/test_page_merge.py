"""Two pages made one, as values."""

from hypothesis import given, strategies as st

from quaid.model import links, merge, timeline
from quaid.model.links import GraphLink

DAYS = st.dates().map(lambda day: f"{day.year:04}-{day.month:02}-{day.day:02}")
WORDS = st.text("abc é-", min_size=1, max_size=12).map(str.strip).filter(bool)
LIST_ENTRY = st.builds(
    lambda margin, mark, day, source, said, detail: (
        f"{margin}{mark} **{day}** {f'| {source} ' if source else ''}— {said}"
        + "".join(f"\n{margin}  {line}" if line else "\n" for line in detail)
    ),
    st.sampled_from(["", " ", "  "]),
    st.sampled_from("-*+"),
    DAYS,
    st.sampled_from(["", "call", "meeting/3"]),
    WORDS,
    st.lists(st.sampled_from(["", "more", "  deeper", "- a point"]), max_size=3),
)
HEADING_ENTRY = st.builds(
    lambda day, said, detail: f"### {day} — {said}\n\n{detail}",
    DAYS,
    WORDS,
    st.sampled_from(["", "What was said.", "One.\n\nTwo."]),
)
FREE = st.sampled_from(
    ["## Timeline", "Some words between.", " a margin", "### 2024 was long", "- no date here", ""]
)
TIMELINES = st.lists(st.one_of(LIST_ENTRY, HEADING_ENTRY, FREE), max_size=6).map("\n".join)


def said(text: str) -> set[tuple[str, str, str, str]]:
    return {(item.date, item.source, item.summary, item.detail) for item in timeline.parse(text)}


def covered(entry: tuple[str, str, str, str], by: set[tuple[str, str, str, str]]) -> bool:
    date, source, summary, detail = entry
    return any(
        (date, summary) == (item[0], item[2]) and source in ("", item[1]) and detail in item[3] for item in by
    )


@given(TIMELINES, TIMELINES)
def test_every_entry_of_both_timelines_is_in_the_merged_one(kept: str, other: str) -> None:
    merged = said(merge.join_timelines(kept, other, "Bo"))
    assert said(kept) <= merged
    assert all(covered(entry, merged) for entry in said(other))
    assert merged <= said(kept) | said(other)


def test_free_text_does_not_become_part_of_an_entry_that_is_put_before_it() -> None:
    kept = "- **2000-01-01** — a\nSome words between."
    other = "### 2000-01-01 — a\n\nWhat was said."
    once = merge.join_timelines(kept, other, "Bo")
    assert said(once) == said(kept) | said(other)
    assert merge.join_timelines(once, other, "Bo") == once


@given(TIMELINES, TIMELINES)
def test_every_line_of_free_text_is_in_the_merged_timeline(kept: str, other: str) -> None:
    merged = {line.strip() for line in merge.join_timelines(kept, other, "Bo").split("\n")}
    entries = {entry.line for entry in timeline.parse(other)}
    lines = other.split("\n")
    outside = [line.strip() for at, line in enumerate(lines, 1) if at not in entries]
    assert {line.strip() for line in kept.split("\n")} - {""} <= merged
    # A line of an entry that the kept timeline has already is there with that entry.
    if not said(kept) & said(other):
        assert {line for line in outside if line} <= merged


@given(TIMELINES, TIMELINES)
def test_merging_the_same_timeline_again_changes_nothing(kept: str, other: str) -> None:
    once = merge.join_timelines(kept, other, "Bo")
    assert said(merge.join_timelines(once, other, "Bo")) == said(once)


def test_a_timeline_that_runs_from_new_to_old_goes_on_to_do_so() -> None:
    kept = "## Timeline\n\n- **2026-03-01** — C.\n- **2026-01-01** — A."
    other = (
        "## Timeline\n\n- **2026-02-01** | call — B.\n  More.\n- **2026-01-01** — A.\n- **2025-01-01** — Z"
    )
    assert merge.join_timelines(kept, other, "Bo") == (
        "## Timeline\n\n- **2026-03-01** — C.\n- **2026-02-01** | call — B.\n  More.\n"
        "- **2026-01-01** — A.\n- **2025-01-01** — Z"
    )


def test_one_that_runs_from_old_to_new_does_so_too() -> None:
    kept = "- **2026-01-01** — A.\n- **2026-03-01** — C."
    assert merge.join_timelines(kept, "- **2026-02-01** — B.", "Bo") == (
        "- **2026-01-01** — A.\n- **2026-02-01** — B.\n- **2026-03-01** — C."
    )


def test_the_same_entry_with_more_detail_is_kept_beside_the_other() -> None:
    kept, other = "- **2026-01-01** — A.", "- **2026-01-01** | call — A.\n  And why."
    assert merge.join_timelines(kept, other, "Bo") == f"{kept}\n{other}"
    assert merge.join_timelines(other, kept, "Bo") == other


def test_text_of_the_other_page_is_placed_under_its_name() -> None:
    kept = "# Robert\n\nLives in Oslo.\n\n## Work\n\nAt River."
    other = "# Bob\n\nLives in  Oslo.\n\n## Work\n\nAt River.\n\n## Likes\n\n```\n# no heading\n\ncode\n```\n\nTea."
    assert merge.join_truths(kept, other, "Bob") == (
        f"{kept}\n\n## From Bob\n\n### Likes\n\n```\n# no heading\n\ncode\n```\n\nTea."
    )


def test_a_text_that_is_contained_adds_nothing() -> None:
    kept = "# Robert\n\nHe lives in Oslo, by the harbour."
    assert merge.join_truths(kept, "lives in Oslo", "Bob") == kept
    assert merge.join_truths(kept, "", "Bob") == kept
    assert merge.join_truths(kept, "# Bob\n\n## Nothing below", "Bob") == kept


def test_a_page_without_text_takes_over_the_others() -> None:
    assert merge.join_truths("", "# Bob\n\nTea.", "Bob") == "## From Bob\n\nTea."


def test_front_matter_keeps_what_both_say() -> None:
    kept = {"title": "Robert", "tags": ["a"], "linkedin": "rob", "links": ["x"]}
    other = {
        "title": "Bob",
        "type": "person",
        "tags": "b, a",
        "alias": "Bobby",
        "linkedin": "bob",
        "phone": 7,
        "links": ["x", {"to": "y"}],
    }
    assert merge.join_front_matter(kept, other, slug="people/bob", title="Bob", kept_title="Robert") == {
        "title": "Robert",
        "tags": ["a", "b"],
        "linkedin": "rob",
        "links": ["x", {"to": "y"}],
        "phone": 7,
        "aliases": ["Bob", "Bobby"],
        "merged": {"people/bob": {"type": "person", "linkedin": "bob"}},
    }


def test_same_title_is_not_an_alias() -> None:
    assert merge.join_front_matter({}, {}, slug="b", title="BOB!", kept_title="Bob") == {}


def span(number: int, since: str | None, until: str | None) -> GraphLink:
    return GraphLink(number, 1, 2, "works_at", since, until)


def test_times_that_overlap_become_one_and_others_stay() -> None:
    inputs = [
        span(1, "2020-01-01", "2021-01-01"),
        span(2, "2020-06-01", "2022-01-01"),
        span(3, "2022-01-01", None),
        span(4, None, "2019-01-01"),
    ]
    assert links.join_spans(inputs) == [
        (span(1, "2020-01-01", "2022-01-01"), (2,)),
        (span(3, "2022-01-01", None), ()),
        (span(4, None, "2019-01-01"), ()),
    ]


SPANS = st.lists(
    st.tuples(*[st.sampled_from([None, "2020-01-01", "2021-01-01", "2022-01-01", "2023-01-01"])] * 2).filter(
        lambda days: days[0] is None or days[1] is None or days[0] <= days[1]
    ),
    max_size=6,
)


@given(SPANS)
def test_no_link_is_lost_and_none_overlaps(times: list[tuple[str | None, str | None]]) -> None:
    joined = links.join_spans(span(number, *days) for number, days in enumerate(times))
    ids = [number for link, absorbed in joined for number in (link.id, *absorbed)]
    assert sorted(ids) == list(range(len(times)))
    for at, (one, _) in enumerate(joined):
        for other, _ in joined[at + 1 :]:
            first = [item.valid_from or item.valid_until or "9999-12-31" for item in (one, other)]
            last = [item.valid_until or "~" for item in (one, other)]
            assert not (first[0] < last[1] and first[1] < last[0])


def test_relative_links_lead_where_they_led() -> None:
    text = (
        "[a](../companies/river.md) [b](bo.md#x) [c](https://x.org/y.md) [d](/z.md)\n```\n[e](../q.md)\n```"
    )
    assert links.rebase_relative_links(text, "people/alice", "archive/people/alice") == (
        "[a](../../companies/river.md) [b](../../people/bo.md#x) [c](https://x.org/y.md) [d](/z.md)\n"
        "```\n[e](../q.md)\n```"
    )
    assert links.rebase_relative_links(text, "people/alice", "people/al") == text


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
