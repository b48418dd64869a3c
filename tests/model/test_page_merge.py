"""Two pages made one, as values."""

from hypothesis import given, strategies as st

from quaid.model import page_merge, timeline
from quaid.model.page_merge import LinkSpan

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
    merged = said(page_merge.merge_timeline(kept, other, "Bo"))
    assert said(kept) <= merged
    assert all(covered(entry, merged) for entry in said(other))
    assert merged <= said(kept) | said(other)


def test_free_text_does_not_become_part_of_an_entry_that_is_put_before_it() -> None:
    kept = "- **2000-01-01** — a\nSome words between."
    other = "### 2000-01-01 — a\n\nWhat was said."
    once = page_merge.merge_timeline(kept, other, "Bo")
    assert said(once) == said(kept) | said(other)
    assert page_merge.merge_timeline(once, other, "Bo") == once


@given(TIMELINES, TIMELINES)
def test_every_line_of_free_text_is_in_the_merged_timeline(kept: str, other: str) -> None:
    merged = {line.strip() for line in page_merge.merge_timeline(kept, other, "Bo").split("\n")}
    entries = {entry.line for entry in timeline.parse(other)}
    lines = other.split("\n")
    outside = [line.strip() for at, line in enumerate(lines, 1) if at not in entries]
    assert {line.strip() for line in kept.split("\n")} - {""} <= merged
    # A line of an entry that the kept timeline has already is there with that entry.
    if not said(kept) & said(other):
        assert {line for line in outside if line} <= merged


@given(TIMELINES, TIMELINES)
def test_merging_the_same_timeline_again_changes_nothing(kept: str, other: str) -> None:
    once = page_merge.merge_timeline(kept, other, "Bo")
    assert said(page_merge.merge_timeline(once, other, "Bo")) == said(once)


def test_a_timeline_that_runs_from_new_to_old_goes_on_to_do_so() -> None:
    kept = "## Timeline\n\n- **2026-03-01** — C.\n- **2026-01-01** — A."
    other = (
        "## Timeline\n\n- **2026-02-01** | call — B.\n  More.\n- **2026-01-01** — A.\n- **2025-01-01** — Z"
    )
    assert page_merge.merge_timeline(kept, other, "Bo") == (
        "## Timeline\n\n- **2026-03-01** — C.\n- **2026-02-01** | call — B.\n  More.\n"
        "- **2026-01-01** — A.\n- **2025-01-01** — Z"
    )


def test_one_that_runs_from_old_to_new_does_so_too() -> None:
    kept = "- **2026-01-01** — A.\n- **2026-03-01** — C."
    assert page_merge.merge_timeline(kept, "- **2026-02-01** — B.", "Bo") == (
        "- **2026-01-01** — A.\n- **2026-02-01** — B.\n- **2026-03-01** — C."
    )


def test_the_same_entry_with_more_detail_is_kept_beside_the_other() -> None:
    kept, other = "- **2026-01-01** — A.", "- **2026-01-01** | call — A.\n  And why."
    assert page_merge.merge_timeline(kept, other, "Bo") == f"{kept}\n{other}"
    assert page_merge.merge_timeline(other, kept, "Bo") == other


def test_text_of_the_other_page_is_placed_under_its_name() -> None:
    kept = "# Robert\n\nLives in Oslo.\n\n## Work\n\nAt River."
    other = "# Bob\n\nLives in  Oslo.\n\n## Work\n\nAt River.\n\n## Likes\n\n```\n# no heading\n\ncode\n```\n\nTea."
    assert page_merge.merge_truth(kept, other, "Bob") == (
        f"{kept}\n\n## From Bob\n\n### Likes\n\n```\n# no heading\n\ncode\n```\n\nTea."
    )


def test_a_text_that_is_contained_adds_nothing() -> None:
    kept = "# Robert\n\nHe lives in Oslo, by the harbour."
    assert page_merge.merge_truth(kept, "lives in Oslo", "Bob") == kept
    assert page_merge.merge_truth(kept, "", "Bob") == kept
    assert page_merge.merge_truth(kept, "# Bob\n\n## Nothing below", "Bob") == kept


def test_a_page_without_text_takes_over_the_others() -> None:
    assert page_merge.merge_truth("", "# Bob\n\nTea.", "Bob") == "## From Bob\n\nTea."


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
    assert page_merge.merge_frontmatter(kept, other, slug="people/bob", title="Bob", kept_title="Robert") == {
        "title": "Robert",
        "tags": ["a", "b"],
        "linkedin": "rob",
        "links": ["x", {"to": "y"}],
        "phone": 7,
        "aliases": ["Bob", "Bobby"],
        "merged": {"people/bob": {"type": "person", "linkedin": "bob"}},
    }


def test_same_title_is_not_an_alias() -> None:
    assert page_merge.merge_frontmatter({}, {}, slug="b", title="BOB!", kept_title="Bob") == {}


def test_times_that_overlap_become_one_and_others_stay() -> None:
    inputs = [
        LinkSpan(1, "2020-01-01", "2021-01-01"),
        LinkSpan(2, "2020-06-01", "2022-01-01"),
        LinkSpan(3, "2022-01-01", None),
        LinkSpan(4, None, "2019-01-01"),
    ]
    assert page_merge.join_spans(inputs) == [
        LinkSpan(1, "2020-01-01", "2022-01-01", (2,)),
        LinkSpan(3, "2022-01-01", None),
        LinkSpan(4, None, "2019-01-01"),
    ]


SPANS = st.lists(
    st.tuples(*[st.sampled_from([None, "2020-01-01", "2021-01-01", "2022-01-01", "2023-01-01"])] * 2).filter(
        lambda span: span[0] is None or span[1] is None or span[0] <= span[1]
    ),
    max_size=6,
)


@given(SPANS)
def test_no_link_is_lost_and_none_overlaps(times: list[tuple[str | None, str | None]]) -> None:
    joined = page_merge.join_spans([LinkSpan(number, *span) for number, span in enumerate(times)])
    ids = [number for item in joined for number in (item.id, *item.absorbed)]
    assert sorted(ids) == list(range(len(times)))
    for at, one in enumerate(joined):
        for other in joined[at + 1 :]:
            first = [item.valid_from or item.valid_until or "9999-12-31" for item in (one, other)]
            last = [item.valid_until or "~" for item in (one, other)]
            assert not (first[0] < last[1] and first[1] < last[0])


def test_relative_links_lead_where_they_led() -> None:
    text = (
        "[a](../companies/river.md) [b](bo.md#x) [c](https://x.org/y.md) [d](/z.md)\n```\n[e](../q.md)\n```"
    )
    assert page_merge.rebase_relative_links(text, "people/alice", "archive/people/alice") == (
        "[a](../../companies/river.md) [b](../../people/bo.md#x) [c](https://x.org/y.md) [d](/z.md)\n"
        "```\n[e](../q.md)\n```"
    )
    assert page_merge.rebase_relative_links(text, "people/alice", "people/al") == text
