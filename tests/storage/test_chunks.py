"""Chunks as rows: they follow their page, keep their ids, and are found by words."""

import pytest

from quaid.model.page import build_page
from quaid.storage import checks, chunks, collections, page_edits
from quaid.storage.checks import recut_pages
from quaid.storage.sqlite.connection import Database, Transaction
from quaid.storage.text_index import CHUNKS, SearchFilters, TextIndex

NOW = "2026-04-25T12:00:00Z"
ALL = SearchFilters()


def save(db: Database, slug: str, truth: str, timeline: str = "", **frontmatter: object) -> int:
    page = build_page(slug, {"title": slug, **frontmatter}, truth, timeline)
    return db.write(lambda tx: page_edits.save(tx, page, uuid=slug, now=NOW, expected_version=None)).id


def found(db: Database, expression: str, filters: SearchFilters = ALL) -> list[str]:
    ids = [chunk_id for chunk_id, _, _ in chunks.match(db, expression, filters, 10)]
    return [row.text for row in chunks.load(db, ids)]


def ids(db: Database, page_id: int) -> list[int]:
    return [row.id for row in chunks.of_page(db, page_id)]


def in_index(db: Database) -> set[int]:
    return {row[0] for row in db.rows("SELECT id FROM chunk_fts_docsize")}


def test_a_saved_page_has_its_chunks(db: Database) -> None:
    page_id = save(db, "a", "# A\n\nOne.\n\n## B\n\nTwo.\n", "- **2026-01-02** — Three.\n")
    rows = chunks.of_page(db, page_id)
    assert [(row.position, row.kind, row.text, row.heading_path, row.date) for row in rows] == [
        (0, "truth_section", "# A\n\nOne.", "# A", None),
        (1, "truth_section", "## B\n\nTwo.", "# A > ## B", None),
        (2, "timeline_entry", "- **2026-01-02** — Three.", "## Timeline > 2026-01-02", "2026-01-02"),
    ]
    assert [(row.start_line, row.end_line) for row in rows] == [(1, 3), (5, 7), (1, 1)]


def test_unchanged_chunk_keeps_its_id_when_it_moves(db: Database) -> None:
    page_id = save(db, "a", "## A\n\none\n\n## B\n\ntwo\n\n## B\n\ntwo\n")
    first, second, third = ids(db, page_id)
    save(db, "a", "## New\n\nzero\n\n## B\n\ntwo\n\n## A\n\nother\n\n## B\n\ntwo\n")
    after = chunks.of_page(db, page_id)
    assert [row.id for row in after][1::2] == [second, third]
    assert first not in {row.id for row in after}
    assert [(row.position, row.start_line) for row in after] == [(0, 1), (1, 5), (2, 9), (3, 13)]
    assert in_index(db) == {row.id for row in after}


def test_the_same_words_under_other_headings_are_another_chunk(db: Database) -> None:
    page_id = save(db, "a", "# a\n\n## A\n\none\n", "- **2026-01-02** — x\n")
    before = ids(db, page_id)
    save(db, "a", "## A\n\none\n", "## Timeline\n\n- **2026-01-02** — x\n")
    after = chunks.of_page(db, page_id)
    assert [row.text for row in after] == ["## A\n\none", "## Timeline\n\n- **2026-01-02** — x"]
    assert set(before).isdisjoint({row.id for row in after})
    assert checks.validate(db) == []


def test_a_new_title_makes_new_chunks(db: Database) -> None:
    page_id = save(db, "a", "one")
    before = ids(db, page_id)
    save(db, "a", "one", title="Another")
    assert set(before).isdisjoint(ids(db, page_id))
    assert found(db, '"another"') == ["one"]


@pytest.mark.parametrize(
    "goes",
    ["DELETE FROM pages WHERE slug = 'a'", "UPDATE pages SET quarantined_at = 'now' WHERE slug = 'a'"],
)
def test_the_chunks_of_a_page_that_goes_are_gone_at_once(db: Database, goes: str) -> None:
    page_id = save(db, "a", "engine")
    save(db, "b", "engine")
    assert len(found(db, '"engine"')) == 2
    db.write(lambda tx: tx.execute(goes))
    assert chunks.of_page(db, page_id) == []
    assert len(found(db, '"engine"')) == len(in_index(db)) == 1


def test_a_page_that_comes_back_has_its_chunks_again(db: Database) -> None:
    page_id = save(db, "a", "engine")
    db.write(lambda tx: tx.execute("UPDATE pages SET quarantined_at = 'now'"))
    save(db, "a", "engine")
    assert [row.text for row in chunks.of_page(db, page_id)] == ["engine"]


def test_words_are_found_in_any_script(db: Database) -> None:
    save(db, "a", "The engines weave.")
    save(db, "b", "東京の図書館で本を読む。")
    save(db, "c", "Café crème")
    assert found(db, '"engine"') == ["The engines weave."]
    assert found(db, '"東京"') == ["東京の図書館で本を読む。"]
    assert found(db, '"cafe"') == ["Café crème"]


def test_words_in_titles_and_headings_count_more(db: Database) -> None:
    save(db, "filler", "\n\n".join(f"## N{number}\n\nnothing here" for number in range(9)))
    save(db, "text", "## Other\n\nAn engine among several other words here.")
    save(db, "heading", "## Engine\n\nAmong several other words here too.")
    best = chunks.match(db, '"engine"', ALL, 10)
    assert [row.heading_path for row in chunks.load(db, [best[0][0]])] == ["## Engine"]
    assert all(score > 0 for _, _, score in best)


def test_filters_apply_to_the_page_and_dates_to_the_entry(db: Database) -> None:
    save(db, "people/a", "engine", "- **2020-01-02** — engine entry\n", tags=["t"], wing="w")
    save(db, "b", "engine too")
    assert len(found(db, '"engine"')) == 3
    assert len(found(db, '"engine"', SearchFilters(tag="t"))) == 2
    assert len(found(db, '"engine"', SearchFilters(wing="w"))) == 2
    assert len(found(db, '"engine"', SearchFilters(type="person"))) == 2
    assert len(found(db, '"engine"', SearchFilters(collection="default"))) == 3
    assert found(db, '"engine"', SearchFilters(collection="none")) == []
    assert found(db, '"engine"', SearchFilters(until="2020-12-31")) == ["- **2020-01-02** — engine entry"]
    assert len(found(db, '"engine"', SearchFilters(since="2026-04-25", until="2026-04-25"))) == 2


def test_scores_of_given_chunks_are_those_of_the_match(db: Database) -> None:
    for number in range(20):
        save(db, f"p{number}", f"engine {'word ' * number}")
    best = {chunk_id: score for chunk_id, _, score in chunks.match(db, '"engine"', ALL, 20)}
    some = sorted(best)[3:9]
    other = save(db, "other", "nothing")
    assert TextIndex(db, CHUNKS).scores_of('"engine"', [*some, *ids(db, other)]).keys() == set(some)
    again = {chunk_id: score for chunk_id, _, score in chunks.match(db, '"engine"', ALL, 20)}
    assert TextIndex(db, CHUNKS).scores_of('"engine"', some) == {
        chunk_id: again[chunk_id] for chunk_id in some
    }


def test_chunks_of_pages_come_page_by_page(db: Database) -> None:
    first, second = save(db, "a", "## A\n\nx\n\n## B\n\ny"), save(db, "b", "z")
    assert chunks.chunks_of_pages(db, [second, first], 10) == dict.fromkeys(
        ids(db, second), second
    ) | dict.fromkeys(ids(db, first), first)
    assert len(chunks.chunks_of_pages(db, [first, second], 2)) == 2


def test_neighbours_are_those_beside_a_chunk_on_its_page(db: Database) -> None:
    page_id = save(db, "a", "\n".join(f"## H{number}\n\ntext" for number in range(6)))
    save(db, "b", "## H\n\ntext")
    every = ids(db, page_id)
    near = chunks.neighbours(db, [every[0], every[3]], 1)
    assert near == {every[place]: (page_id, place) for place in (0, 1, 2, 3, 4)}
    assert chunks.neighbours(db, [999]) == {}


def test_another_strategy_cuts_every_page_anew(db: Database) -> None:
    page_id = save(db, "a", "one\n\ntwo\n\n## B\n\nthree")
    kept = ids(db, page_id)[1]

    def work(tx: Transaction) -> None:
        collections.set_setting(tx, "chunk_strategy", "paragraph")
        recut_pages(tx)

    db.write(work)
    assert [row.text for row in chunks.of_page(db, page_id)] == ["one", "two", "## B\n\nthree"]
    assert ids(db, page_id)[2] == kept
    save(db, "b", "one\n\ntwo")
    assert chunks.count(db) == 5


def test_chunks_come_in_the_order_asked_for_and_lost_ones_are_left_out(db: Database) -> None:
    page_id = save(db, "a", "## A\n\none\n\n## B\n\ntwo")
    first, second = ids(db, page_id)
    assert [row.id for row in chunks.load(db, [second, 999, first])] == [second, first]


def test_pages_that_are_left_uncut_are_known_after_every_write(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave(memory: Database, slug: str, text: str) -> int:
        page = build_page(slug, {"title": slug}, text, "")
        return memory.write(
            lambda tx: page_edits.save(tx, page, uuid=slug, now=NOW, expected_version=None, cut=False)
        ).id

    kept = save(db, "kept", "Words.")
    assert chunks.uncut_pages(db) == []
    first = leave(db, "first", "One.")
    assert chunks.uncut_pages(db) == [first]
    with Database.open(db.path, NOW) as other:
        leave(other, "kept", "Other words.")  # a page that was cut before
        leave(other, "empty", "")
    assert chunks.uncut_pages(db) == [kept, first]
    db.write(lambda tx: chunks.write_pages(tx, [first]))
    assert chunks.uncut_pages(db) == [kept]
    looked = []
    every = chunks._find_uncut

    def look(db: Database, above: int = 0, among: str = "[]") -> object:
        looked.append(above)
        return every(db, above, among)

    monkeypatch.setattr(chunks, "_find_uncut", look)
    save(db, "new", "Cut at once.")
    assert chunks.uncut_pages(db) == [kept]
    assert looked
    assert all(looked)  # never again from the first page on
    db.write(lambda tx: tx.execute("DELETE FROM pages WHERE id = ?", (kept,)))
    assert chunks.uncut_pages(db) == []
