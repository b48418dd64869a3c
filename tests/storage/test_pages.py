"""Pages: found, saved against a version, listed."""

from typing import Any

import apsw
import pytest

from quaid.errors import NotFound, PageNotFound, VersionConflict
from quaid.model.page import Page, build_page
from quaid.storage import collections, page_edits, pages
from quaid.storage.page_edits import SaveResult
from quaid.storage.sqlite.connection import Database

T1, T2, T3 = "2026-04-25T12:00:01Z", "2026-04-25T12:00:02Z", "2026-04-25T12:00:03Z"
ADA = build_page(
    "people/ada",
    {"title": "Ada", "type": "person", "tags": ["math", "history"], "x-own": {"b": [1, None], "a": True}},
    "# Ada\n\n> Wrote the first program.\n",
    "- **1843-09-01** | journal — Notes published.\n- **1852-11-27** | register — Died.\n",
)


def save(db: Database, page: Page, now: str = T1, expected: int | None = None) -> SaveResult:
    return db.write(
        lambda tx: page_edits.save(tx, page, uuid=f"id of {page.slug}", now=now, expected_version=expected)
    )


def note(slug: str, truth: str = "text", **front: Any) -> Page:
    return build_page(slug, front, truth, "")


def matches(db: Database, words: str) -> list[str]:
    rows = db.rows(
        "SELECT p.slug FROM page_fts f JOIN pages p ON p.id = f.rowid WHERE page_fts MATCH ? ORDER BY p.slug",
        (words,),
    )
    return [slug for (slug,) in rows]


def quarantine(db: Database, slug: str) -> None:
    db.write(lambda tx: tx.execute("UPDATE pages SET quarantined_at = ? WHERE slug = ?", (T2, slug)))


# Saving and finding


def test_a_saved_page_is_found_as_it_was(db: Database) -> None:
    saved = save(db, ADA)
    page = pages.find(db, "people/ada")
    assert page
    assert saved == SaveResult(page.id, 1, created=True, changed=True)
    assert page.frontmatter == ADA.frontmatter
    assert list(page.frontmatter["x-own"]) == ["b", "a"]
    for name in ("slug", "type", "title", "summary", "truth", "timeline", "wing", "room", "tags"):
        assert getattr(page, name) == getattr(ADA, name)
    assert page.uuid == "id of people/ada"
    assert page.collection == "default"
    assert {page.created_at, page.updated_at, page.truth_updated_at, page.timeline_updated_at} == {T1}


@pytest.mark.parametrize("text", ["a\0b", "\r\nx\r", "𝄞 e\u0301", "'; DROP TABLE pages; --", "x" * 400_000])
def test_any_text_survives(db: Database, text: str) -> None:
    save(db, build_page("a", {"title": text[:50], "k": text}, text, text))
    page = pages.require(db, "a")
    assert (page.truth, page.timeline, page.frontmatter["k"]) == (text, text, text)


def test_the_same_page_again_changes_nothing(db: Database) -> None:
    first = save(db, ADA)
    assert save(db, ADA, T2) == SaveResult(first.id, 1, created=False, changed=False)
    assert pages.require(db, "people/ada").updated_at == T1


@pytest.mark.parametrize(
    "changed",
    [
        ADA._replace(title="Ada L."),
        ADA._replace(frontmatter={**ADA.frontmatter, "more": 1}),
        ADA._replace(frontmatter=dict(reversed(ADA.frontmatter.items()))),
        ADA._replace(wing="elsewhere"),
        ADA._replace(summary="Other."),
    ],
)
def test_any_change_raises_the_version_once(db: Database, changed: Page) -> None:
    save(db, ADA)
    assert save(db, changed, T2).version == 2
    page = pages.require(db, "people/ada")
    assert (page.version, page.created_at, page.updated_at) == (2, T1, T2)
    assert (page.truth_updated_at, page.timeline_updated_at) == (T1, T1)
    assert page.uuid == "id of people/ada"


def test_truth_and_timeline_have_their_own_times(db: Database) -> None:
    save(db, ADA)
    save(db, ADA._replace(truth="new"), T2)
    save(db, ADA._replace(truth="new", timeline="new"), T3)
    page = pages.require(db, "people/ada")
    assert (page.truth_updated_at, page.timeline_updated_at, page.updated_at) == (T2, T3, T3)


def test_the_version_that_was_read_must_be_the_present_one(db: Database) -> None:
    save(db, ADA, expected=0)
    save(db, ADA._replace(truth="second"), expected=1)
    with pytest.raises(VersionConflict) as conflict:
        save(db, ADA._replace(truth="third"), expected=1)
    assert conflict.value.facts == {"slug": "people/ada", "expected": 1, "current_version": 2}
    assert pages.require(db, "people/ada").truth == "second"


def test_a_page_that_must_be_new_may_not_be_there(db: Database) -> None:
    save(db, ADA)
    with pytest.raises(VersionConflict) as conflict:
        save(db, ADA, expected=0)
    assert conflict.value.facts["current_version"] == 1


def test_a_page_that_must_be_there_may_not_be_missing(db: Database) -> None:
    with pytest.raises(VersionConflict) as conflict:
        save(db, ADA, expected=3)
    assert conflict.value.facts["current_version"] == 0
    assert pages.find(db, "people/ada") is None


def test_a_collection_that_is_not_there_is_named(db: Database) -> None:
    with pytest.raises(NotFound, match="collection work"):
        db.write(
            lambda tx: page_edits.save(tx, ADA, uuid="x", now=T1, expected_version=None, collection="work")
        )


def test_collections_may_use_the_same_slug(db: Database) -> None:
    new = "INSERT INTO collections (name, created_at, updated_at) VALUES ('work', ?, ?)"
    db.write(lambda tx: tx.execute(new, (T1, T1)))
    save(db, ADA)
    other = ADA._replace(truth="at work")
    db.write(lambda tx: page_edits.save(tx, other, uuid="x", now=T1, expected_version=0, collection="work"))
    page = pages.find(db, "people/ada", "work")
    assert page
    assert (page.truth, page.collection) == ("at work", "work")
    assert pages.require(db, "people/ada").truth == ADA.truth


# What follows from a page


def test_tags_and_entries_follow_the_page(db: Database) -> None:
    saved = save(db, ADA)
    save(db, build_page("people/ada", {"tags": ["new"]}, "x", "- **2000-01-01** — Only this.\n"))
    assert pages.require(db, "people/ada").tags == ("new",)
    assert [entry.summary for entry in pages.timeline_entries(db, saved.id)] == ["Only this."]


def test_entries_come_newest_first_and_as_written_within_a_day(db: Database) -> None:
    lines = ("- **2001-01-01** — c", "- **2003-01-01** | s — a", "  more", "- **2002-01-01** — b")
    saved = save(db, build_page("a", {}, "x", "\n".join([*lines, "- **2001-01-01** — d"])))
    entries = pages.timeline_entries(db, saved.id)
    assert [(entry.summary, entry.line) for entry in entries] == [("a", 2), ("b", 4), ("c", 1), ("d", 5)]
    assert (entries[0].source, entries[0].detail) == ("s", "more")
    assert pages.timeline_entries(db, saved.id, limit=2) == entries[:2]


def test_the_same_entry_twice_is_one_row(db: Database) -> None:
    saved = save(db, build_page("a", {}, "x", "- **2001-01-01** — Same.\n- **2001-01-01** — Same.\n"))
    assert len(pages.timeline_entries(db, saved.id)) == 1


def test_words_follow_the_page(db: Database) -> None:
    save(db, note("a", "An analytical engine weaves."))
    assert matches(db, "engines") == ["a"]
    save(db, note("a", "A loom weaves."))
    assert matches(db, "engine") == []
    assert matches(db, "looms") == ["a"]


def test_a_quarantined_page_is_hidden_everywhere(db: Database) -> None:
    save(db, note("a", "engine", type="concept", tags=["t"]))
    quarantine(db, "a")
    assert pages.find(db, "a") is None
    assert pages.listing(db) == []
    assert pages.count(db) == 0
    assert pages.page_addresses(db) == []
    assert matches(db, "engine") == []
    with pytest.raises(PageNotFound):
        db.write(lambda tx: page_edits.touch(tx, "a", expected_version=None, now=T1))


@pytest.mark.parametrize("expected", [None, 0, 1])
def test_saving_brings_a_quarantined_page_back(db: Database, expected: int | None) -> None:
    first = save(db, note("a", "engine"))
    quarantine(db, "a")
    assert save(db, note("a", "engine"), T3, expected) == SaveResult(first.id, 2, created=True, changed=True)
    assert matches(db, "engine") == ["a"]


def test_a_removed_page_takes_everything_along(db: Database) -> None:
    save(db, ADA._replace(truth="東京"))
    db.write(lambda tx: tx.execute("DELETE FROM pages"))
    for table in ("tags", "timeline_entries", "page_fts_docsize", "page_fts_unspaced_docsize"):
        assert db.rows(f"SELECT * FROM {table}") == []


# Touching


def test_touching_raises_the_version_and_nothing_else(db: Database) -> None:
    saved = save(db, ADA)
    before = pages.require(db, "people/ada")
    assert db.write(lambda tx: page_edits.touch(tx, "people/ada", expected_version=1, now=T2)) == (
        saved.id,
        2,
    )
    assert pages.require(db, "people/ada") == before._replace(version=2, updated_at=T2)


def test_touching_checks_the_version(db: Database) -> None:
    save(db, ADA)
    with pytest.raises(VersionConflict):
        db.write(lambda tx: page_edits.touch(tx, "people/ada", expected_version=2, now=T2))
    with pytest.raises(PageNotFound):
        db.write(lambda tx: page_edits.touch(tx, "none", expected_version=None, now=T2))


# Near misses


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("people/adda", "Did you mean people/ada?"),
        ("ada", "Did you mean people/ada?"),
        ("persons/ada", "Did you mean people/ada?"),
        ("poeple/ada-lovelace", ""),
        ("zzz", ""),
    ],
)
def test_a_missing_page_names_those_that_look_like_it(db: Database, wrong: str, hint: str) -> None:
    save(db, ADA)
    save(db, note("concepts/engine"))
    with pytest.raises(PageNotFound) as missing:
        pages.require(db, wrong)
    assert missing.value.facts == {"slug": wrong, "hint": hint}


def test_a_slug_of_two_collections_is_proposed_once(db: Database) -> None:
    save(db, note("ada"))
    db.write(lambda tx: collections.add(tx, "notes", "markdown", "/notes", True, T2))
    db.write(
        lambda tx: page_edits.save(
            tx, note("ada"), uuid="2", now=T2, expected_version=None, collection="notes"
        )
    )
    with pytest.raises(PageNotFound) as missing:
        pages.require(db, "people/ada")
    assert missing.value.facts["hint"] == "Did you mean ada?"


def test_at_most_three_similar_pages_are_named(db: Database) -> None:
    for number in range(5):
        save(db, note(f"notes/meeting-{number}"))
    with pytest.raises(PageNotFound) as missing:
        pages.require(db, "notes/meeting-x")
    assert missing.value.facts["hint"].count("notes/meeting-") == 3


# Listing


@pytest.fixture
def shelf(db: Database) -> Database:
    save(db, note("c", title="beta", type="concept", wing="x", tags=["red"]), T1)
    save(db, note("b", title="Alpha", type="person", wing="x", tags=["red", "blue"]), T2)
    save(db, note("a", title="gamma", type="person", wing="y"), T3)
    save(db, note("c", "changed", title="beta", type="concept", wing="x", tags=["red"]), T3)
    return db


def slugs(found: list[pages.PageListItem]) -> list[str]:
    return [header.slug for header in found]


def test_a_header_has_everything_but_the_texts(shelf: Database) -> None:
    (header,) = pages.listing(shelf, tag="blue")
    assert header == pages.PageListItem(
        slug="b",
        collection="default",
        type="person",
        title="Alpha",
        summary="text",
        wing="x",
        room=header.room,
        tags=("red", "blue"),
        version=1,
        created_at=T2,
        updated_at=T2,
    )


def test_listings_are_sorted_as_asked(shelf: Database) -> None:
    assert slugs(pages.listing(shelf)) == ["a", "c", "b"]
    assert slugs(pages.listing(shelf, sort="created")) == ["a", "b", "c"]
    assert slugs(pages.listing(shelf, sort="title")) == ["b", "c", "a"]


def test_listings_are_filtered_and_counted(shelf: Database) -> None:
    assert slugs(pages.listing(shelf, type="person")) == ["a", "b"]
    assert slugs(pages.listing(shelf, tag="red", sort="title")) == ["b", "c"]
    assert slugs(pages.listing(shelf, wing="x", tag="red", type="concept")) == ["c"]
    assert pages.count(shelf) == 3
    assert pages.count(shelf, wing="x", tag="red") == 2
    assert pages.count(shelf, type="none") == 0


def test_listings_come_in_parts(shelf: Database) -> None:
    assert slugs(pages.listing(shelf, limit=2)) == ["a", "c"]
    assert slugs(pages.listing(shelf, limit=2, offset=2)) == ["b"]
    assert pages.listing(shelf, limit=0) == []


def test_addresses_come_by_collection_and_type(shelf: Database) -> None:
    assert pages.page_addresses(shelf) == [
        ("default", "concept", "c"),
        ("default", "person", "a"),
        ("default", "person", "b"),
    ]


def test_the_newest_pages_are_listed_without_a_scan(db: Database) -> None:
    plan = db.rows(
        "EXPLAIN QUERY PLAN SELECT slug FROM pages WHERE quarantined_at IS NULL ORDER BY"
        f" {pages.PAGE_ORDER['updated']} LIMIT 50"
    )
    assert [row[3] for row in plan] == ["SCAN pages USING INDEX pages_by_update"]


def test_a_constraint_is_a_developers_error(db: Database) -> None:
    save(db, ADA)
    with pytest.raises(apsw.ConstraintError):
        db.write(
            lambda tx: page_edits.save(tx, note("b"), uuid="id of people/ada", now=T1, expected_version=None)
        )
