"""The two full-text indexes."""

from typing import Any

import pytest

from quaid.model import plain_text
from quaid.model.page import build_page
from quaid.storage import page_edits, text_index
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import SPACED, UNSPACED, SearchFilters, TextIndex

NOW = "2026-04-25T12:00:00Z"


def put(db: Database, slug: str, truth: str, timeline: str = "", **front: Any) -> int:
    page = build_page(slug, {"title": slug, "type": "concept", **front}, truth, timeline)
    return db.write(lambda tx: page_edits.save(tx, page, uuid=slug, now=NOW, expected_version=None)).id


def unspaced_rows(db: Database) -> list[int]:
    return [page_id for (page_id,) in db.rows("SELECT id FROM page_fts_unspaced_docsize ORDER BY id")]


def test_only_pages_with_such_scripts_are_in_the_second_index(db: Database) -> None:
    put(db, "a/latin", "Zoë went to Málaga. Привет.")
    there = [
        put(db, "a/truth", "東京"),
        put(db, "a/timeline", "x", "- ไทย"),
        put(db, "a/title", "x", title="책"),
    ]
    assert unspaced_rows(db) == there


def test_the_second_index_follows_the_page(db: Database) -> None:
    page_id = put(db, "a/page", "東京")
    put(db, "a/page", "大阪 river")
    assert TextIndex(db, UNSPACED).matching_pages('"東京"', SearchFilters(), 9) == []
    assert TextIndex(db, UNSPACED).matching_pages('"大阪" AND "rivers"', SearchFilters(), 9) == [page_id]
    put(db, "a/page", "river")
    assert unspaced_rows(db) == []


def test_removing_a_page_twice_is_harmless(db: Database) -> None:
    page_id = put(db, "a/page", "東京")
    for _ in range(2):
        db.write(lambda tx: text_index.remove_page(tx, page_id))
    assert unspaced_rows(db) == []
    assert TextIndex(db, UNSPACED).highest_id() == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [""]),
        ("river", ["river"]),
        ("在Oslo見た", ["", "在", "Oslo", "見た", ""]),
        ("知識。管理", ["", "知識", "。", "管理", ""]),
        ("ｶﾞ", ["", "ガ", ""]),
        ("ภา\u200bษา", ["", "ภาษา", ""]),
    ],
)
def test_text_is_split_into_runs_and_separators(text: str, expected: list[str]) -> None:
    assert plain_text.split_cjk(text) == expected


def test_a_run_is_stored_in_pairs() -> None:
    assert plain_text.cjk_bigrams("東京都") == ["東京", "京都", "都"]
    assert plain_text.cjk_bigrams("京") == ["京"]
    assert plain_text.has_cjk("abc 京")
    assert not plain_text.has_cjk("Zoë, Привет, שלום, हिन्दी, emoji 🎉 — “quotes”")


def test_the_best_match_comes_first_and_scores_are_positive(db: Database) -> None:
    weak = put(db, "a/weak", "river " + "filling " * 50)
    strong = put(db, "a/strong", "river river", title="River")
    for number in range(5):
        put(db, f"b/{number}", "filling")
    match = TextIndex(db, SPACED).match('"river"', SearchFilters(), 9)
    assert [page_id for page_id, _ in match] == [strong, weak]
    assert match[0][1] > match[1][1] > 0
    assert [
        page_id for page_id, _ in TextIndex(db, SPACED).match('"river"', SearchFilters(), 1, first=[weak])
    ] == [weak]
    assert [
        page_id for page_id, _ in TextIndex(db, SPACED).match('"river"', SearchFilters(), 9, above=weak)
    ] == [strong]


def test_a_count_is_exact_in_a_small_memory(db: Database) -> None:
    for number in range(12):
        put(db, f"a/{number}", "river" if number % 3 else "board")
    assert TextIndex(db, SPACED).count('"river"', SearchFilters()) == 8
    counts = TextIndex(db, SPACED).document_counts(['"board"', '"river"', '"none"'])
    assert counts == {'"board"': 4, '"river"': 8, '"none"': 0}


def test_a_count_is_about_right_in_a_large_memory(db: Database) -> None:
    def fill(tx: Any) -> None:
        for number in range(4_000):
            tx.execute(
                "INSERT INTO pages (slug, uuid, type, title, created_at, updated_at, truth_updated_at,"
                " timeline_updated_at, compiled_truth) VALUES (?1, ?1, 'concept', 'x', '', '', '', '', ?2)",
                (f"a/{number}", "often " + "seldom " * (number % 10 == 0)),
            )

    db.write(fill)
    counts = TextIndex(db, SPACED).document_counts(['"often"', '"seldom"', '"never"'])
    often, seldom, never = counts.values()
    assert 3_500 <= often <= 4_000
    assert 300 <= seldom <= 500
    assert never == 0
    assert 300 <= TextIndex(db, SPACED).count('"often" AND "seldom"', SearchFilters()) <= 500
    assert TextIndex(db, SPACED).count('"often"', SearchFilters(type="person")) == 0


def test_after_a_write_only_estimates_of_common_words_last(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_index, "MOST_COUNTED", 3)
    moment = 100.0
    monkeypatch.setattr("quaid.storage.text_index.time.monotonic", lambda: moment)
    for number in range(4):
        put(db, f"a/{number}", "often")
    index = TextIndex(db, SPACED)

    def counts() -> list[int]:
        return list(index.document_counts(['"often"', '"seldom"']).values())

    assert counts() == [4, 0]
    put(db, "a/next", "often seldom")
    assert counts() == [4, 1]
    moment += text_index.ESTIMATE_SECONDS
    assert counts() == [5, 1]


def test_a_filter_never_needs_a_scan_of_the_pages(db: Database) -> None:
    put(db, "a/page", "river", tags=["x"])
    for name in SearchFilters._fields:
        filters = SearchFilters._make("x" if field == name else None for field in SearchFilters._fields)
        allowed, values = text_index._filter_sql(SPACED, filters)
        plan = db.rows(
            f"EXPLAIN QUERY PLAN SELECT rowid FROM page_fts WHERE page_fts MATCH ?{allowed}",
            ("river", *values),
        )
        steps = [step[3] for step in plan]
        assert [step for step in steps if step.startswith("SCAN") and "VIRTUAL TABLE" not in step] == []
        assert not any("VIRTUAL TABLE INDEX 0:=" in step for step in steps)


def test_words_are_stemmed_as_the_index_stems_them(db: Database) -> None:
    assert text_index.Stemmer(db).words("Zoë runs".encode()) == [(0, 4, "zoe"), (5, 9, "run")]


def segments(db: Database, index: str) -> int:
    row = db.one(f"SELECT count(DISTINCT segid) FROM {index}_idx")
    assert row
    return int(row[0])


def test_an_index_of_many_segments_is_merged_and_finds_the_same(db: Database) -> None:
    for number in range(40):
        put(db, f"a/{number}", "river " + f"word{number} " * 200)
    index = TextIndex(db, SPACED)
    before = segments(db, SPACED), index.match('"river"', SearchFilters(), 50)
    assert before[0] > text_index.MOST_SEGMENTS
    text_index.merge_segments(db)
    assert segments(db, SPACED) <= text_index.MOST_SEGMENTS
    assert index.match('"river"', SearchFilters(), 50) == before[1]
    version = db.change_stamp()
    text_index.merge_segments(db)
    assert db.change_stamp() == version, "an index of few segments is left alone"


def test_words_are_looked_up_together(db: Database) -> None:
    first = put(db, "a/first", "river board")
    put(db, "a/second", "harbour")
    index = TextIndex(db, SPACED)
    words = ['"river"', '"harbour"', '"none"', '"river board"']
    assert index.known_terms(words) == ['"river"', '"harbour"', '"river board"']
    assert index.terms_in_row(first, words) == ['"river"', '"river board"']
