"""Links in step with texts and names."""

import json

import pytest

from quaid.errors import LinkFromText, LinkOverlaps, NotFound, TextSaysSo
from quaid.model.page import build_page
from quaid.storage import links, page_edits, pages
from quaid.storage.checks import rebuild_derived_rows
from quaid.storage.sqlite.connection import Database

NOW = "2026-04-25T12:00:00Z"
TODAY = "2026-04-25"


def put(db: Database, slug: str, truth: str = "", timeline: str = "", **front: object) -> int:
    page = build_page(slug, front, truth, timeline)
    saved = db.write(
        lambda tx: page_edits.save(tx, page, uuid=f"{slug}{db.path}", now=NOW, expected_version=None)
    )
    return saved.id


def out(db: Database, slug: str) -> list[tuple[str, str, bool]]:
    result = links.outgoing(db, pages.require(db, slug).id, "all", TODAY)
    return [(link.to_slug, link.relationship, link.resolved) for link in result]


def test_a_link_connects_when_its_page_appears(db: Database) -> None:
    put(db, "people/alice", "With [[Bob Smith]] at [Acme](../companies/acme.md).")
    assert out(db, "people/alice") == [
        ("Bob Smith", "mentions", False),
        ("companies/acme", "mentions", False),
    ]
    put(db, "people/bob-smith")
    put(db, "companies/acme")
    assert out(db, "people/alice") == [
        ("companies/acme", "mentions", True),
        ("people/bob-smith", "mentions", True),
    ]


def test_links_removed_from_the_text_are_removed_from_the_graph(db: Database) -> None:
    put(db, "b")
    put(db, "a", "[[b]] [[c]]")
    put(db, "a", "[[c]]")
    assert out(db, "a") == [("c", "mentions", False)]


def test_a_link_keeps_its_id_while_the_text_says_it(db: Database) -> None:
    put(db, "b")
    put(db, "a", "[[b]]")
    before = links.incoming(db, pages.require(db, "b").id, "all", TODAY)
    put(db, "a", "More.\n\nMuch more about [[b]].")
    after = links.incoming(db, pages.require(db, "b").id, "all", TODAY)
    assert [link.id for link in before] == [link.id for link in after]
    assert (after[0].line, after[0].context) == (3, "Much more about b.")


def test_links_that_a_user_added_survive_every_write(db: Database) -> None:
    a, b = put(db, "a", "x"), put(db, "b")
    add(db, a, b, "knows")
    put(db, "a", "y")
    assert out(db, "a") == [("b", "knows", True)]


def test_a_second_page_of_the_same_name_makes_a_link_ambiguous(db: Database) -> None:
    put(db, "notes/a", "[[bob]]")
    put(db, "people/bob")
    assert out(db, "notes/a") == [("people/bob", "mentions", True)]
    put(db, "pets/bob")
    assert out(db, "notes/a") == [("bob", "mentions", False)]
    put(db, "people/alfred", "", title="Alfred")
    put(db, "notes/b", "[[Fred]]")
    put(db, "people/alfred", "", title="Alfred", aliases=["Fred"])
    assert out(db, "notes/b") == [("people/alfred", "mentions", True)]
    put(db, "people/alfred", "", title="Alfred")
    assert out(db, "notes/b") == [("Fred", "mentions", False)]


def test_an_old_slug_redirects(db: Database) -> None:
    page = put(db, "people/robert")
    db.write(lambda tx: links.add_redirect(tx, 1, "people/bob", page, NOW))
    put(db, "people/robert", "changed")  # names are made anew with the next write
    put(db, "a", "[[people/bob]] and [text](people/bob.md)")
    assert out(db, "a") == [("people/robert", "mentions", True)]  # two rows, shown once
    assert db.rows("SELECT target, to_page_id = ? FROM links ORDER BY target", (page,)) == [
        ("/people/bob", 1),
        ("people/bob", 1),
    ]


def test_links_to_a_page_that_goes_wait_for_it(db: Database) -> None:
    put(db, "a", "[[b]]")
    b = put(db, "b")
    names = db.write(lambda tx: links.detach_page(tx, b))
    db.write(lambda tx: tx.execute("DELETE FROM pages WHERE id = ?", (b,)))
    assert "b" in names
    assert out(db, "a") == [("b", "mentions", False)]
    put(db, "b")
    assert out(db, "a") == [("b", "mentions", True)]


def test_a_page_does_not_lead_to_itself(db: Database) -> None:
    put(db, "a", "[[a]]")
    assert out(db, "a") == []


def test_quarantined_page_is_not_a_link_target(db: Database) -> None:
    put(db, "a", "[[b]]")
    b = put(db, "b")
    db.write(lambda tx: tx.execute("UPDATE pages SET quarantined_at = ? WHERE id = ?", (NOW, b)))
    assert out(db, "a") == [("b", "mentions", False)]


def test_burned_links_come_back_as_they_were(db: Database) -> None:
    put(db, "a", "[[b]] [[nowhere]]", links=[{"to": "c", "type": "knows", "valid_from": "2020"}])
    b, c = put(db, "b"), put(db, "c")
    add(db, b, c, "owns")
    columns = (
        "SELECT from_page_id, to_page_id, relationship, context, source_kind, valid_from, valid_until, target,"
        " target_key, part, line FROM links ORDER BY 1, 2, 3, 8"
    )
    before = db.rows(columns)
    db.write(lambda tx: tx.execute("DELETE FROM links WHERE source_kind = 'wiki_link'"))
    db.write(rebuild_derived_rows)
    assert db.rows(columns) == before
    assert len(before) == 4


def add(
    db: Database, start: int, end: int, relationship: str, since: str | None = None, until: str | None = None
) -> int:
    return db.write(
        lambda tx: links.add(
            tx,
            start,
            end,
            relationship=relationship,
            context="",
            valid_from=since,
            valid_until=until,
            now=NOW,
        )
    )


@pytest.mark.parametrize(
    ("first", "second", "allowed"),
    [
        (
            ("2020-01-01", "2021-01-01"),
            ("2021-01-01", None),
            True,
        ),  # the day on which one ends the other begins
        (("2020-01-01", "2021-01-01"), ("2020-06-01", None), False),
        (("2020-01-01", None), ("2021-01-01", None), False),
        (("2020-01-01", None), (None, None), False),
        ((None, None), (None, None), False),
        ((None, "2020-01-01"), ("2020-01-01", "2021-01-01"), True),
        (("2020-01-01", "2021-01-01"), ("2019-01-01", "2022-01-01"), False),
        (("2020-01-01", "2021-01-01"), (None, None), True),
    ],
)
def test_intervals_of_the_same_link_do_not_overlap(
    db: Database, first: tuple[str | None, str | None], second: tuple[str | None, str | None], allowed: bool
) -> None:
    a, b = put(db, "a"), put(db, "b")
    add(db, a, b, "works_at", *first)
    add(db, a, b, "advises", *second)  # another relationship is no matter
    if allowed:
        add(db, a, b, "works_at", *second)
    else:
        with pytest.raises(LinkOverlaps, match="link-close 1"):
            add(db, a, b, "works_at", *second)


def test_link_in_the_text_is_not_added_again(db: Database) -> None:
    a, b = put(db, "a", links=[{"to": "b", "type": "knows"}]), put(db, "b")
    with pytest.raises(TextSaysSo, match="front matter"):
        add(db, a, b, "knows")


def test_a_link_can_be_closed_but_not_into_another(db: Database) -> None:
    a, b = put(db, "a"), put(db, "b")
    first = add(db, a, b, "works_at", "2020-01-01", "2021-01-01")
    add(db, a, b, "works_at", "2022-01-01")
    link = links.require_added(db, first)
    db.write(lambda tx: link.close(tx, "2022-01-01"))
    with pytest.raises(LinkOverlaps):
        db.write(lambda tx: link.close(tx, "2023-01-01"))


def test_only_added_links_can_be_changed_by_id(db: Database) -> None:
    put(db, "a", "[[b]]")
    put(db, "b")
    with pytest.raises(LinkFromText):
        links.require_added(db, 1)
    with pytest.raises(NotFound, match="no link 99"):
        links.require_added(db, 99)


@pytest.mark.parametrize(
    ("temporal", "day", "seen"),
    [
        ("current", "2019-01-01", []),
        ("current", "2020-01-01", ["b"]),
        ("current", "2020-12-31", ["b"]),
        ("current", "2021-01-01", ["c"]),
        ("historical", "2021-01-01", ["b"]),
        ("historical", "2020-12-31", []),
        ("all", "1990-01-01", ["b", "c"]),
    ],
)
def test_links_are_seen_as_they_were_on_a_day(
    db: Database, temporal: links.Temporal, day: str, seen: list[str]
) -> None:
    a, b, c = put(db, "a"), put(db, "b"), put(db, "c")
    add(db, a, b, "works_at", "2020-01-01", "2021-01-01")
    add(db, a, c, "works_at", "2021-01-01")
    assert sorted(link.to_slug for link in links.outgoing(db, a, temporal, day)) == seen
    assert len(links.edges(db, [a], temporal, day, 10)) == len(seen)


def test_edges_are_found_from_both_ends_and_capped(db: Database) -> None:
    ids = [put(db, name) for name in "abcd"]
    for other in ids[1:]:
        add(db, other, ids[0], "knows")
    assert len(links.edges(db, ids[:1], "current", TODAY, 10)) == 3
    assert len(links.edges(db, ids[:1], "current", TODAY, 2)) == 2
    assert len(links.edges(db, ids, "current", TODAY, 10)) == 3


@pytest.mark.parametrize("temporal", ["current", "historical", "all"])
def test_the_first_links_to_a_page_are_those_that_come_first_of_all(
    db: Database, temporal: links.Temporal
) -> None:
    hub = put(db, "hub", "[[hub]]")
    others = [put(db, f"p{number}", "[[hub]]") for number in range(9)]
    for number, other in enumerate(others):
        add(db, other, hub, "knows", f"{2020 - number % 4}-01-01", "2025-01-01" if number % 3 == 0 else None)
    db.write(lambda tx: tx.execute("UPDATE pages SET quarantined_at = ? WHERE id = ?", (NOW, others[2])))
    every = links.incoming(db, hub, temporal, TODAY)
    assert len(every) > 2
    for limit in (1, 2, len(every), 100):
        assert links.listing(db, hub, "in", temporal, TODAY, limit) == (every[:limit], len(every))


def test_a_thousand_links_of_one_text_are_looked_up_at_once(db: Database) -> None:
    put(db, "a", " ".join(f"[[p{number}]]" for number in range(1000)))
    put(db, "p7")
    assert json.loads(json.dumps(out(db, "a")[0])) == ["p7", "mentions", True]
    assert len(out(db, "a")) == 1000
