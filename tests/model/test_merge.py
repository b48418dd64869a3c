"""Two versions of a page merged part by part, as values."""

import time
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from tests.timing import takes_at_most

from quaid.errors import NotFound
from quaid.model import merge as merging, timeline as timelines
from quaid.model.bundle import Bundle, BundleFact, BundleLink, BundleRaw, encode
from quaid.model.merge import ALL_SIDES, PageConflict, find_conflicts, is_addition, merge, resolve_conflict

UUID = "01890000-0000-7000-8000-000000000001"
NOW = "2026-01-01T00:00:00Z"
PAGE = Bundle(
    UUID,
    "people/mira",
    {"title": "Mira", "status": "friend", "tags": ["climbing"]},
    "# Mira\n\nShe lives in Lisbon.\n\n- likes tea\n- likes maps\n\nShe works at Acme.",
    "- **2026-02-01** — Called.\n- **2026-01-01** — Met.",
)


def merged(
    ours: Bundle, theirs: Bundle, base: Bundle | None = PAGE
) -> tuple[Bundle, tuple[PageConflict, ...]]:
    return merge(base, ours, theirs, "laptop", "desktop")


def link(number: int, **values: Any) -> BundleLink:
    to = f"01890000-0000-7000-8000-{number:012}"
    return BundleLink(to, "knows", "", None, None, NOW)._replace(**values)


def fact(value: str, **values: Any) -> BundleFact:
    return BundleFact(
        "Mira", "lives_in", value, "2024-01-01", None, None, 1.0, "manual", "", "", NOW, "owner"
    )._replace(**values)


def truth(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


# Text


def test_edits_of_different_blocks_are_both_kept() -> None:
    ours = PAGE._replace(truth=truth(PAGE.truth, "Lisbon", "Porto"))
    theirs = PAGE._replace(truth=truth(PAGE.truth, "- likes maps", "- likes maps\n- likes bread"))
    page, conflicts = merged(ours, theirs)
    assert conflicts == ()
    assert page.truth == (
        "# Mira\n\nShe lives in Porto.\n\n- likes tea\n- likes maps\n- likes bread\n\nShe works at Acme."
    )


def test_an_addition_beside_an_edited_block_is_no_conflict() -> None:
    ours = PAGE._replace(truth=truth(PAGE.truth, "She works at Acme.", "She works at Beta."))
    theirs = PAGE._replace(truth=PAGE.truth + "\n\nShe plays chess.")
    page, conflicts = merged(ours, theirs)
    assert conflicts == ()
    assert page.truth.endswith("- likes maps\n\nShe works at Beta.\n\nShe plays chess.")


def test_both_additions_at_one_place_are_kept_without_a_conflict() -> None:
    ours = PAGE._replace(truth=PAGE.truth + "\n\n## Notes\n\nOne.")
    theirs = PAGE._replace(truth=PAGE.truth + "\n\n## Notes\n\nTwo.")
    page, conflicts = merged(ours, theirs)
    assert conflicts == ()
    assert page.truth == PAGE.truth + "\n\n## Notes\n\nOne.\n\nTwo."


def test_two_edits_of_one_block_are_a_conflict_with_both_texts() -> None:
    ours = PAGE._replace(truth=truth(PAGE.truth, "Lisbon", "Porto"))
    theirs = PAGE._replace(truth=truth(PAGE.truth, "Lisbon", "Braga"))
    page, conflicts = merged(ours, theirs)
    assert page.truth.startswith(
        "# Mira\n\n<!-- conflict: desktop -->\nShe lives in Braga.\n<!-- or: laptop -->\nShe lives in Porto.\n"
        "<!-- end of conflict -->\n\n- likes tea"
    )
    assert find_conflicts(page.truth, page.frontmatter) == conflicts
    assert [(side.name, side.value) for side in conflicts[0].sides] == [
        ("desktop", "She lives in Braga."),
        ("laptop", "She lives in Porto."),
    ]


def test_a_block_that_one_side_deleted_and_the_other_changed_is_a_conflict() -> None:
    ours = PAGE._replace(truth=truth(PAGE.truth, "- likes tea\n", ""))
    theirs = PAGE._replace(truth=truth(PAGE.truth, "likes tea", "likes green tea"))
    page, conflicts = merged(ours, theirs)
    assert [side.value for side in conflicts[0].sides] == ["- likes green tea", ""]
    assert resolve_conflict(page.truth, {}, conflicts[0], "laptop")[0] == ours.truth.replace(
        "Lisbon.\n\n- likes", "Lisbon.\n\n- likes"
    )


def test_two_rewrites_of_several_blocks_are_a_conflict() -> None:
    ours = PAGE._replace(truth="# Mira\n\nMoved away.")
    theirs = PAGE._replace(truth="# Mira\n\nRetired.")
    page, conflicts = merged(ours, theirs)
    assert [[side.value for side in conflict.sides] for conflict in conflicts] == [
        ["Retired.", "Moved away."]
    ]
    assert page.truth.startswith("# Mira\n\n<!-- conflict: desktop -->")


@pytest.mark.parametrize("name", ["a ----> b", "two\nlines", "", "x" * 100, "<!-- or: y -->"])
def test_every_name_of_a_version_can_be_used_in_markers(name: str) -> None:
    front = [{**PAGE.frontmatter, "status": status} for status in ("rival", "partner")]
    cities = [PAGE._replace(truth=truth(PAGE.truth, "Lisbon", city)) for city in ("Porto", "Braga")]
    ours, theirs = (page._replace(frontmatter=values) for page, values in zip(cities, front, strict=True))
    page, conflicts = merge(PAGE, ours, theirs, name, name)
    assert len(conflicts) == len(find_conflicts(page.truth, page.frontmatter)) == 2
    mine = conflicts[1].sides[1].name
    text, values = page.truth, page.frontmatter
    while found := find_conflicts(text, values):
        text, values = resolve_conflict(text, values, found[0], mine)
    assert (text, values) == (ours.truth, ours.frontmatter)


def test_a_third_version_becomes_a_third_side_of_a_conflict() -> None:
    cities = [PAGE._replace(truth=truth(PAGE.truth, "Lisbon", city)) for city in ("Porto", "Braga", "Faro")]
    first = merged(cities[0], cities[1])[0]
    second, conflicts = merge(PAGE, first, cities[2], "laptop", "phone")
    assert [side.name for side in conflicts[0].sides] == ["desktop", "laptop", "phone"]
    assert second.truth.count("<!--") == 4


def test_a_resolved_conflict_stays_resolved() -> None:
    cities = [PAGE._replace(truth=truth(PAGE.truth, "Lisbon", city)) for city in ("Porto", "Braga")]
    conflicting = merged(*cities)
    text, _ = resolve_conflict(conflicting[0].truth, {}, conflicting[1][0], "laptop")
    assert text == cities[0].truth
    resolved = conflicting[0]._replace(truth=text)
    other = conflicting[0]._replace(timeline="- **2026-03-01** — Wrote.")
    assert merge(conflicting[0], other, resolved, "a", "b")[0].truth == text


def test_a_conflict_can_keep_all_texts() -> None:
    cities = [PAGE._replace(truth=truth(PAGE.truth, "Lisbon", city)) for city in ("Porto", "Braga")]
    page, conflicts = merged(*cities)
    text, _ = resolve_conflict(page.truth, {}, conflicts[0], ALL_SIDES)
    assert "# Mira\n\nShe lives in Braga.\n\nShe lives in Porto.\n\n- likes tea" in text
    with pytest.raises(NotFound, match="desktop, laptop, all"):
        resolve_conflict(page.truth, {}, conflicts[0], "phone")


def test_code_blocks_are_merged_as_one_block_and_closed() -> None:
    base = PAGE._replace(truth="Intro.\n\n```\na\n\nb\n```\n\nEnd.")
    ours = base._replace(truth="Intro.\n\n```\na\n\nc\n```\n\nEnd.")
    theirs = base._replace(truth="Intro.\n\n```\na\n\nd\n```\n\nEnd. Really.\n\n```\nopen")
    page, conflicts = merged(ours, theirs, base)
    assert [side.value for side in conflicts[0].sides] == ["```\na\n\nd\n```", "```\na\n\nc\n```"]
    assert page.truth.endswith("End. Really.\n\n```\nopen")
    more = merged(page._replace(truth=page.truth + "\n```\n\nLast."), page._replace(timeline=""), page)[0]
    assert more.truth.endswith("```\nopen\n```\n\nLast.")


def test_table_rows_are_merged_one_by_one() -> None:
    base = PAGE._replace(truth="| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |")
    ours = base._replace(truth=base.truth.replace("| 1 | 2 |", "| 1 | 9 |"))
    theirs = base._replace(truth=base.truth + "\n| 5 | 6 |")
    page, conflicts = merged(ours, theirs, base)
    assert (page.truth, conflicts) == ("| a | b |\n|---|---|\n| 1 | 9 |\n| 3 | 4 |\n| 5 | 6 |", ())


def test_without_a_base_similar_blocks_are_conflicts_and_others_are_additions() -> None:
    ours = PAGE._replace(truth="# Mira\n\nShe lives in Porto now.\n\nShe swims.")
    theirs = PAGE._replace(truth="# Mira\n\nShe lives in Braga now.\n\nHer sister is Ana Costa.")
    page, conflicts = merged(ours, theirs, None)
    assert [[side.value for side in conflict.sides] for conflict in conflicts] == [
        ["She lives in Braga now.", "She lives in Porto now."]
    ]
    assert "She swims." in page.truth
    assert "Her sister is Ana Costa." in page.truth


@pytest.mark.parametrize("lines", [["- same"] * 10_000, ["- a", "- b"] * 5_000, ["```", "x", "```"] * 3_000])
def test_many_equal_blocks_take_linear_time(lines: list[str]) -> None:
    base, ours, theirs = (
        PAGE._replace(truth="\n".join(text)) for text in (lines, [*lines[3:], "- q"], ["- r", *lines[:-6]])
    )

    def work(_: int) -> float:
        started = time.process_time()
        page = merged(ours, theirs, base)[0]
        assert "- q" in page.truth
        assert "- r" in page.truth
        return time.process_time() - started

    takes_at_most(3, work)


def test_many_conflicts_take_linear_time() -> None:
    lines = [f"Paragraph {number}." for number in range(10_000)]
    keys = {f"key {number}": 1 for number in range(10_000)}
    edits = [
        ["\n\n".join(line + name if place % 2 else line for place, line in enumerate(lines)), value]
        for name, value in (("", 1), (" Ours.", 2), (" Theirs.", 3))
    ]
    base, ours, theirs = (
        PAGE._replace(truth=str(text), frontmatter=dict.fromkeys(keys, value)) for text, value in edits
    )

    def work(_: int) -> float:
        started = time.process_time()
        assert len(merged(ours, theirs, base)[1]) == 15_000
        return time.process_time() - started

    takes_at_most(3, work)


def test_edits_of_a_long_text_are_merged_as_those_of_a_short_one() -> None:
    lines = [f"Paragraph {number % 1_500}." for number in range(3_000)]
    ours, theirs = list(lines), list(lines)
    ours[700:705], theirs[2_000] = ["New."], "Changed."
    ours.insert(2_900, "Paragraph 5.")
    base, one, other = (PAGE._replace(truth="\n\n".join(text)) for text in (lines, ours, theirs))
    page, conflicts = merged(one, other, base)
    expected = [*lines[:700], "New.", *lines[705:2_000], "Changed.", *lines[2_001:]]
    expected.insert(2_900, "Paragraph 5.")
    assert (page.truth, conflicts) == ("\n\n".join(expected), ())


@pytest.mark.parametrize(
    "text",
    [
        "<!-- conflict: -->",
        "<!-- conflict: x\ny -->",
        "<!-- conflict: a --> b -->",
        "<!-- conflict: a -->\nx\n<!-- end of conflict -->",
        "<!-- or: a -->",
    ],
)
def test_text_that_looks_like_a_marker_is_merged_as_text(text: str) -> None:
    ours = PAGE._replace(truth=truth(PAGE.truth, "She lives in Lisbon.", text))
    theirs = PAGE._replace(truth=truth(PAGE.truth, "Lisbon", "Porto"))
    page, conflicts = merged(ours, theirs)
    assert len(conflicts) == 1
    assert text.split("\n")[0] in page.truth
    assert "She lives in Porto." in page.truth
    assert find_conflicts(ours.truth, {}) == ()


def test_a_conflict_with_edited_markers_can_be_resolved() -> None:
    text = "<!-- conflict: a --> \nx\n<!-- or: b -->\n\ny\n<!-- end of conflict -->"
    [conflict] = find_conflicts(text, {})
    assert resolve_conflict(text, {}, conflict, "a")[0] == "x"


# Timeline


def test_entries_of_both_sides_are_in_the_timeline_in_order_of_date() -> None:
    ours = PAGE._replace(timeline="- **2026-03-01** — Wrote.\n" + PAGE.timeline)
    theirs = PAGE._replace(
        timeline=PAGE.timeline.replace("- **2026-01", "- **2026-01-15** — Ran.\n- **2026-01")
    )
    page, conflicts = merged(ours, theirs)
    assert conflicts == ()
    assert [entry.summary for entry in timelines.parse(page.timeline)] == [
        "Wrote.",
        "Called.",
        "Ran.",
        "Met.",
    ]


def test_a_removed_entry_stays_removed_unless_the_other_side_changed_it() -> None:
    removed = PAGE._replace(timeline="- **2026-02-01** — Called.")
    longer = PAGE._replace(timeline=PAGE.timeline + "\n- **2025-12-01** — Read.")
    changed = PAGE._replace(timeline=PAGE.timeline.replace("Met.", "Met at the fair."))
    assert "Met" not in merged(removed, longer)[0].timeline
    assert "Read." in merged(removed, longer)[0].timeline
    assert "Met at the fair." in merged(removed, changed)[0].timeline


# Front matter


def test_keys_are_merged_one_by_one_and_lists_as_sets() -> None:
    ours = PAGE._replace(frontmatter={"title": "Mira", "status": "colleague", "tags": ["climbing", "tea"]})
    theirs = PAGE._replace(
        frontmatter={"title": "Mira", "city": "Porto", "status": "friend", "tags": ["chess"]}
    )
    page, conflicts = merged(ours, theirs)
    assert conflicts == ()
    assert page.frontmatter == {
        "title": "Mira",
        "city": "Porto",
        "status": "colleague",
        "tags": ["tea", "chess"],
    }
    assert list(page.frontmatter) == ["title", "city", "status", "tags"]


def test_tags_as_text_and_as_a_list_are_merged() -> None:
    base = PAGE._replace(frontmatter={"tags": "a, b"})
    page, conflicts = merged(
        base._replace(frontmatter={"tags": ["a", "b", "c"]}),
        base._replace(frontmatter={"tags": "a, d"}),
        base,
    )
    assert (page.frontmatter, conflicts) == ({"tags": ["a", "c", "d"]}, ())


def test_two_values_of_one_key_are_a_conflict_that_keeps_both() -> None:
    ours = PAGE._replace(frontmatter={**PAGE.frontmatter, "status": "partner"})
    theirs = PAGE._replace(frontmatter={**PAGE.frontmatter, "status": "rival"})
    page, conflicts = merged(ours, theirs)
    assert page.frontmatter["status"] == "rival"
    assert page.frontmatter["conflicts"] == {"status": {"laptop": "partner"}}
    (conflict,) = find_conflicts(page.truth, page.frontmatter)
    assert [(side.name, side.value) for side in conflict.sides] == [
        ("current", "rival"),
        ("laptop", "partner"),
    ]
    assert len(conflicts) == 1
    _, chosen = resolve_conflict(page.truth, page.frontmatter, conflict, "laptop")
    assert chosen == ours.frontmatter
    _, kept = resolve_conflict(page.truth, page.frontmatter, conflict, "current")
    assert kept == theirs.frontmatter
    _, both = resolve_conflict(page.truth, page.frontmatter, conflict, ALL_SIDES)
    assert both["status"] == ["rival", "partner"]


def test_a_key_that_one_side_removed_and_the_other_changed_is_a_conflict() -> None:
    removed = PAGE._replace(frontmatter={"title": "Mira", "tags": ["climbing"]})
    changed = PAGE._replace(frontmatter={**PAGE.frontmatter, "status": "rival"})
    for ours, theirs, name in ((removed, changed, "laptop"), (changed, removed, "desktop")):
        page, conflicts = merged(ours, theirs)
        assert page.frontmatter["status"] == "rival"
        assert page.frontmatter["conflicts"] == {"status": {name: None}}
        assert len(conflicts) == 1
        (conflict,) = find_conflicts(page.truth, page.frontmatter)
        assert resolve_conflict(page.truth, page.frontmatter, conflict, name)[1] == removed.frontmatter


def test_the_time_of_the_last_edit_is_no_conflict() -> None:
    days = [
        PAGE._replace(frontmatter={**PAGE.frontmatter, "updated": day})
        for day in ("2026-01-02", "2026-01-03")
    ]
    page, conflicts = merged(*days)
    assert (page.frontmatter["updated"], conflicts) == ("2026-01-03", ())


def test_a_key_named_conflicts_that_the_user_wrote_is_not_lost() -> None:
    base = PAGE._replace(frontmatter={"conflicts": "Trojan War", "a": 0})
    page, _ = merged(
        base._replace(frontmatter={**base.frontmatter, "a": 1}),
        base._replace(frontmatter={**base.frontmatter, "a": 2}),
        base,
    )
    assert page.frontmatter["conflicts"] == {"conflicts": {"value": "Trojan War"}, "a": {"laptop": 1}}


# Links, facts, raw data, slug, deletion


def test_links_and_facts_are_merged_as_sets_with_their_columns() -> None:
    base = PAGE._replace(links=(link(1), link(2)), facts=(fact("Lisbon"),))
    ours = base._replace(links=(link(1), link(2), link(3)), facts=(fact("Lisbon", valid_until="2026-01-01"),))
    theirs = base._replace(links=(link(1),), facts=(fact("Lisbon", confidence=0.5), fact("Porto")))
    page, conflicts = merged(ours, theirs, base)
    assert conflicts == ()
    assert page.links == (link(1), link(3))
    assert page.facts == (fact("Lisbon", valid_until="2026-01-01", confidence=0.5), fact("Porto"))


def test_two_ends_of_one_fact_are_a_conflict() -> None:
    base = PAGE._replace(facts=(fact("Lisbon"),))
    ours = base._replace(facts=(fact("Lisbon", valid_until="2026-01-01"),))
    theirs = base._replace(facts=(fact("Lisbon", valid_until="2026-02-01"),))
    page, conflicts = merged(ours, theirs, base)
    assert page.facts[0].valid_until == "2026-01-01"
    assert [conflict.key for conflict in conflicts] == ["fact Mira lives_in Lisbon valid_until"]
    (conflict,) = find_conflicts(page.truth, page.frontmatter)
    assert conflict.part == "page"
    assert resolve_conflict(page.truth, page.frontmatter, conflict, ALL_SIDES)[1] == PAGE.frontmatter


def test_raw_data_that_both_sides_changed_is_kept_twice() -> None:
    base = PAGE._replace(raw=(BundleRaw("crm", NOW, "1"), BundleRaw("web", NOW, "1")))
    ours = base._replace(raw=(BundleRaw("crm", NOW, "2"),))
    theirs = base._replace(raw=(BundleRaw("crm", NOW, "3"), BundleRaw("web", NOW, "1")))
    page, conflicts = merged(ours, theirs, base)
    assert [(row.source, row.data) for row in page.raw] == [("crm", "3"), ("crm (laptop)", "2")]
    assert [conflict.key for conflict in conflicts] == ["raw crm"]


def test_a_changed_page_survives_its_deletion_and_the_conflict_is_shown() -> None:
    changed = PAGE._replace(truth=PAGE.truth + "\n\nMore.")
    deleted = PAGE._replace(deleted=True)
    for ours, theirs, name in ((changed, deleted, "desktop"), (deleted, changed, "laptop")):
        page, conflicts = merged(ours, theirs)
        assert (page.deleted, page.truth, len(conflicts)) == (False, changed.truth, 1)
        assert page.frontmatter["conflicts"] == {"(deleted)": {name: True}}
    assert merged(PAGE, deleted)[0].deleted


def test_a_rename_is_kept_and_two_renames_are_a_conflict() -> None:
    renamed, other = PAGE._replace(slug="people/mira-sol"), PAGE._replace(slug="people/mira-costa")
    edited = PAGE._replace(timeline="")
    assert merged(renamed, edited) == merged(edited, renamed)
    assert merged(renamed, edited)[0].slug == "people/mira-sol"
    page, conflicts = merged(renamed, other)
    assert (page.slug, conflicts[0].key) == ("people/mira-costa", "slug")
    assert page.frontmatter["conflicts"] == {"(slug)": {"laptop": "people/mira-sol"}}


def test_additions_are_told_from_other_changes() -> None:
    added = PAGE._replace(
        timeline="- **2026-03-01** — Wrote.\n" + PAGE.timeline, links=(link(1),), facts=(fact("Lisbon"),)
    )
    assert is_addition(None, PAGE)
    assert is_addition(PAGE, PAGE)
    assert is_addition(PAGE, added)
    for other in (
        PAGE._replace(truth=PAGE.truth + "\n\nMore."),
        PAGE._replace(timeline="- **2026-02-01** — Called."),
        PAGE._replace(timeline=PAGE.timeline + "\n\nFree text."),
        PAGE._replace(frontmatter={**PAGE.frontmatter, "status": "rival"}),
        PAGE._replace(deleted=True),
        PAGE._replace(slug="people/other"),
        PAGE._replace(raw=(BundleRaw("crm", NOW, "1"),)),
    ):
        assert not is_addition(PAGE, other), other
    assert not is_addition(added, PAGE)
    assert not is_addition(added, added._replace(facts=(fact("Lisbon", valid_until="2026-01-01"),)))
    assert not is_addition(None, PAGE._replace(deleted=True))


# Properties of all merges

WORDS = "ash birch cedar elm fir hazel larch maple oak pine rowan yew".split()
BLOCK = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
BLOCKS = st.one_of(
    BLOCK,
    BLOCK.map("- {}".format),
    BLOCK.map("  - {}".format),
    BLOCK.map("## {}".format),
    BLOCK.map("```\n{}\n\nx\n```".format),
    BLOCK.map("| {} |".format),
    BLOCK.map("{}\nsecond line".format),
)
DAYS = st.integers(1, 28).map("2026-01-{:02}".format)
ENTRIES = st.builds("- **{}** — {}".format, DAYS, BLOCK) | st.builds(
    "- **{}** — {}\n  more".format, DAYS, BLOCK
)
VALUES = st.sampled_from(["a", "b", "c", 1, None, ["x"], ["x", "y"], ["z", "x"], {"k": 1}, {"k": 2, "l": 3}])
FRONT = st.dictionaries(st.sampled_from(["title", "status", "tags", "aliases", "other"]), VALUES, max_size=4)
LINKS = st.builds(
    lambda number, until, context: link(number, valid_until=until, context=context),
    st.integers(1, 4),
    st.sampled_from([None, "2026-01-01", "2026-02-01"]),
    st.sampled_from(["", "why", "because"]),
)
FACTS = st.builds(
    lambda value, until: fact(value, valid_until=until),
    st.sampled_from(["Lisbon", "Porto", "Braga"]),
    st.sampled_from([None, "2026-01-01", "2026-02-01"]),
)


def edited(items: st.SearchStrategy[str], old: list[str]) -> st.SearchStrategy[list[str]]:
    """Return the list with some items removed, replaced, or with items inserted before them."""
    keep = st.tuples(st.just("keep"), st.just(""))
    edit = st.one_of(keep, keep, keep, st.tuples(st.sampled_from(["drop", "set", "add"]), items))

    def apply(edits: list[tuple[str, str]]) -> list[str]:
        result: list[str] = []
        for item, (kind, new) in zip([*old, ""], edits, strict=True):
            result += {"keep": [item], "drop": [], "set": [new], "add": [new, item]}[kind]
        return [item for item in result if item]

    return st.lists(edit, min_size=len(old) + 1, max_size=len(old) + 1).map(apply)


@st.composite
def versions(draw: st.DrawFn) -> tuple[Bundle, Bundle, Bundle]:
    """Draw a page and two edited versions of it."""
    blocks = draw(st.lists(BLOCKS, max_size=6))
    entries = draw(st.lists(ENTRIES, max_size=5, unique=True))
    if draw(st.booleans()):
        entries = sorted(entries, key=lambda entry: entry[4:14], reverse=True)
    separator = draw(st.sampled_from(["\n\n", "\n\n\n"]))

    def page(blocks: list[str], entries: list[str], front: dict[str, Any]) -> Bundle:
        links = draw(st.lists(LINKS, max_size=3, unique_by=lambda row: row.key))
        facts = draw(st.lists(FACTS, max_size=2, unique_by=lambda row: row.key))
        slug = draw(st.sampled_from(["a", "a", "a", "b", "c"]))
        deleted = draw(st.sampled_from([False] * 9 + [True]))
        return Bundle(
            UUID,
            slug,
            front,
            separator.join(blocks),
            "\n".join(entries),
            tuple(links),
            tuple(facts),
            (),
            deleted,
        )

    front = draw(FRONT)
    pages = [page(blocks, entries, front)]
    for _ in range(2):
        new = {key: value for key, value in front.items() if draw(st.integers(0, 4))}
        new |= draw(FRONT) if draw(st.booleans()) else {}
        pages.append(page(draw(edited(BLOCKS, blocks)), draw(edited(ENTRIES, entries)), new))
    return pages[0], pages[1], pages[2]


@given(versions())
def test_a_version_merged_with_its_base_or_with_itself_does_not_change(
    pages: tuple[Bundle, Bundle, Bundle],
) -> None:
    base, one, other = pages
    for before in (base, None):
        assert merge(before, one, one, "a", "b") == (one, ())
    assert merge(base, base, other, "a", "b") == (other, ())
    assert merge(base, one, base, "a", "b") == (one, ())


@given(versions())
def test_the_result_does_not_depend_on_which_device_merges(pages: tuple[Bundle, Bundle, Bundle]) -> None:
    base, one, other = pages
    if one.deleted and other.deleted:
        return
    for before in (base, None):
        (here, conflicts), (there, others) = (
            merge(before, one, other, "a", "b"),
            merge(before, other, one, "b", "a"),
        )
        assert (here.truth, here.timeline, here.links, here.facts) == there[3:7]
        assert len(conflicts) == len(others)
        clashes = {conflict.key for conflict in conflicts if conflict.part == "frontmatter"}
        fronts = [
            {key: value for key, value in page.frontmatter.items() if key not in clashes}
            for page in (here, there)
        ]
        if not clashes and here.slug == there.slug:
            assert encode(here) == encode(there)
        for key in {**fronts[0], **fronts[1]}:
            assert key == "conflicts" or fronts[0].get(key) == fronts[1].get(key)


@given(versions())
def test_devices_that_push_in_any_order_end_with_the_page_of_the_hub(
    pages: tuple[Bundle, Bundle, Bundle],
) -> None:
    base, one, other = pages
    for first, second in ((one, other), (other, one)):
        head = merge(base, second, first, "b", "a")[0]  # the second device merges and pushes
        assert encode(merge(first, first, head, "a", "b")[0]) == encode(head)
        # A push that arrives twice, and a device that merges the same revision again, change nothing.
        assert encode(merge(first, head, head, "b", "a")[0]) == encode(head)
        assert encode(merge(first, head, first, "b", "a")[0]) == encode(head)


def is_in(item: str, texts: list[str]) -> bool:
    return any(item in text for text in texts)


@given(versions(), st.booleans())
def test_nothing_that_a_version_added_is_lost(pages: tuple[Bundle, Bundle, Bundle], has_base: bool) -> None:
    base, one, other = pages
    page, _ = merge(base if has_base else None, one, other, "a", "b")
    if one.deleted or other.deleted:
        return
    blocks = merging.split_blocks(page.truth)
    entries = {entry.text for entry in timelines.split_entries(page.timeline)[0]}
    for version in (one, other):
        old = merging.split_blocks(base.truth) if has_base else []
        for block in merging.split_blocks(version.truth):
            assert block in old or is_in(block, blocks), block
        before = {entry.text for entry in timelines.split_entries(base.timeline)[0]} if has_base else set()
        added = {entry.text for entry in timelines.split_entries(version.timeline)[0]} - before
        assert added <= entries
        for rows, all_rows, old_rows in (
            (version.links, page.links, base.links),
            (version.facts, page.facts, base.facts),
        ):
            known = {row.key for row in old_rows} if has_base else set()
            assert {row.key for row in rows} - known <= {row.key for row in all_rows}
        tags, old_tags = (page.frontmatter.get("tags") for page in (version, base))
        for item in tags if isinstance(tags, list) else ():
            assert item in (old_tags if isinstance(old_tags, list) else ()) or item in str(page.frontmatter)


@given(versions())
def test_what_both_versions_removed_is_gone_and_what_both_kept_stays(
    pages: tuple[Bundle, Bundle, Bundle],
) -> None:
    base, one, other = pages
    page, _ = merge(base, one, other, "a", "b")
    if one.deleted or other.deleted:
        return
    texts = [
        [entry.text for entry in timelines.split_entries(version.timeline)[0]]
        for version in (base, one, other)
    ]
    entries = {entry.text for entry in timelines.split_entries(page.timeline)[0]}
    assert set(texts[1]) & set(texts[2]) <= entries
    assert not entries - {*texts[1], *texts[2]}
    before, ours, theirs, after = (
        merging.split_blocks(version.truth) for version in (base, one, other, page)
    )
    for block in {*ours} & {*theirs}:  # of two equal blocks, each version may have removed another one
        assert is_in(block, after) or before.count(block) > 1


@given(versions())
def test_every_conflict_is_found_in_the_page_and_can_be_resolved(
    pages: tuple[Bundle, Bundle, Bundle],
) -> None:
    base, one, other = pages
    page, conflicts = merge(base, one, other, "a", "b")
    text, front = page.truth, page.frontmatter
    found = find_conflicts(text, front)
    assert sorted((conflict.part, conflict.key) for conflict in found) == sorted(
        (conflict.part, conflict.key) for conflict in conflicts
    )
    while found := find_conflicts(text, front):
        text, front = resolve_conflict(text, front, found[0], found[0].sides[-1].name)
    assert "<!--" not in text
    assert "conflicts" not in front


@settings(max_examples=300)
@given(st.text("ab\n -#`|<!>\t", max_size=60))
def test_blocks_and_blank_lines_are_the_whole_text(text: str) -> None:
    parts = merging._split(text)
    assert len(parts.gaps) == len(parts.blocks) + 1
    assert (
        "".join([parts.gaps[0], *(b + g for b, g in zip(parts.blocks, parts.gaps[1:], strict=True))]) == text
    )


def test_a_fact_that_both_versions_add_from_different_sources_is_one_fact_with_both() -> None:
    newer = fact("Oslo", valid_from="2026-01-01", supersedes=fact("Porto", source_ref="b").key)
    ours = PAGE._replace(facts=(fact("Porto", source_ref="a", evidence_text="In Porto."),))
    theirs = PAGE._replace(facts=(fact("Porto", source_ref="b", confidence=0.5), newer))
    for result in (merged(ours, theirs), merged(theirs, ours)):
        joined, other = sorted(result[0].facts, key=lambda row: row.object, reverse=True)
        assert (joined.source_ref, joined.evidence_text, joined.confidence) == ("a; b", "In Porto.", 1.0)
        assert other.supersedes == joined.key
