"""Vectors of known chunks: from the file at first, from memory later, and always those that are there."""

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from quaid.errors import Cancelled
from quaid.model.page import build_page
from quaid.storage import chunks, embedding_queue, page_edits, vector_index, vectors
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import SearchFilters
from quaid.storage.vector_index import ChunkIndex
from quaid.storage.vectors import ViewCache

NOW = "2026-04-25T12:00:00Z"
MODEL = "small"
DIMENSIONS = 8


def save(db: Database, number: int, *, slug: str = "", **front: object) -> int:
    page = build_page(
        slug or f"p{number}", {"title": "t", **front}, f"## A\n\n{number} a\n\n## B\n\n{number} b", ""
    )
    return db.write(lambda tx: page_edits.save(tx, page, uuid=page.slug, now=NOW, expected_version=None)).id


def embed(db: Database) -> None:
    """Give every content some direction of its own."""
    db.write(lambda tx: vectors.register_model(tx, MODEL, DIMENSIONS, NOW))
    pairs = [
        (
            text.content_hash,
            np.random.default_rng(list(text.content_hash)).normal(size=DIMENSIONS).astype("<f4"),
        )
        for text in embedding_queue.pending_texts(db, MODEL, 10_000)
    ]
    db.write(
        lambda tx: vectors.keep_chunk_vectors(
            tx, MODEL, [(hash_, made.tobytes()) for hash_, made in pairs], NOW
        )
    )


@pytest.fixture
def query() -> "np.ndarray":
    made = np.random.default_rng(1).normal(size=DIMENSIONS).astype(np.float32)
    return np.asarray(made / np.linalg.norm(made))


def warm(db: Database, query: "np.ndarray") -> ChunkIndex:
    index = ChunkIndex(db)
    for _ in range(2):
        index.nearest(MODEL, query, 3)
    return index


def both(db: Database, query: "np.ndarray") -> tuple[ChunkIndex, ChunkIndex]:
    """One that reads the file, and one that has everything in memory."""
    return ChunkIndex(db), warm(db, query)


def test_memory_and_file_say_the_same(db: Database, query: "np.ndarray") -> None:
    for number in range(20):
        save(db, number)
    embed(db)
    save(db, 99)  # no vector yet
    ids = [row[0] for row in db.rows("SELECT id FROM chunks ORDER BY id DESC")]
    cold, resident = both(db, query)
    assert list(cold.cosines(MODEL, query, ids)) == list(resident.cosines(MODEL, query, ids)) == ids[2:]
    assert resident.cosines(MODEL, query, ids) == pytest.approx(cold.cosines(MODEL, query, ids), abs=1e-6)
    assert resident.cosines(MODEL, query, [-1, 0, 10**9]) == resident.cosines(MODEL, query, []) == {}
    page_ids = [row[0] for row in db.rows("SELECT id FROM pages")]
    of_pages = [item.page_cosines(MODEL, query, page_ids) for item in (cold, resident)]
    assert of_pages[0] == pytest.approx(of_pages[1], abs=1e-6)
    assert of_pages[0].keys() == set(page_ids[:-1])


def test_vectors_that_do_not_fit_into_memory_are_read_and_say_the_same(
    db: Database, query: "np.ndarray"
) -> None:
    for number in range(1_200):
        save(db, number)
    embed(db)
    ids = [row[0] for row in db.rows("SELECT id FROM chunks ORDER BY id DESC")][:500]
    roomy, narrow = warm(db, query), ChunkIndex(db, resident_bytes=1_000)
    for _ in range(2):
        neighbours = narrow.nearest(MODEL, query, 20)
    assert [chunk for chunk, _ in neighbours] == [chunk for chunk, _ in roomy.nearest(MODEL, query, 20)]
    assert narrow.cosines(MODEL, query, ids) == pytest.approx(roomy.cosines(MODEL, query, ids), abs=1e-6)
    delete(db, "p1199")
    db.write(vectors.purge_vectors)
    assert narrow.cosines(MODEL, query, ids).keys() == set(ids[2:])


def test_among_many_codes_the_question_itself_chooses_those_that_are_read() -> None:
    rng = np.random.default_rng(3)
    made = rng.normal(size=(5_000, 100)).astype(np.float32)  # no whole number of words
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    mean = made.mean(axis=0)
    words = np.ascontiguousarray(vectors.encode_vectors(made, mean).T)
    query = made[17] + rng.normal(scale=0.05, size=100).astype(np.float32)
    places = np.arange(5_000)

    chosen = vector_index.refine_codes(words, places, query, 400)

    assert len(set(chosen.tolist())) == 400
    exact = np.argsort(-(made @ query))[:20]
    share = len({*exact.tolist()} & {*chosen.tolist()}) / 20
    assert share >= 0.9
    assert vector_index.refine_codes(words, places[:300], query, 400).tolist() == places[:300].tolist()


def test_a_resident_index_finds_the_same_days_as_the_file(db: Database, query: "np.ndarray") -> None:
    save(db, 1, date="2024-03-05")
    save(db, 2, slug="daily/2024-04-01")
    save(db, 3, slug="months/2024-03")
    save(db, 4)  # of the day on which it was saved
    timeline = "- **2023-12-31** | before\n- **2024-03-31** | after\n"
    page = build_page("p5", {"title": "t"}, "words", timeline)
    db.write(lambda tx: page_edits.save(tx, page, uuid="p5", now=NOW, expected_version=None))
    embed(db)
    resident = warm(db, query)

    def agree(filters: SearchFilters) -> set[int]:
        results = [
            {chunk for chunk, _ in item.nearest(MODEL, query, 50, filters)}
            for item in (ChunkIndex(db), resident)
        ]
        assert results[0] == results[1]
        return results[0]

    spans = [
        (None, "2023-12-31"),
        ("2024-01-01", "2024-03-04"),
        ("2024-03-05", "2024-03-05"),
        ("2024-03-31", "2024-04-01"),
        ("2026-04-25", None),
        ("2027-01-01", None),
    ]
    counts = [len(agree(SearchFilters(since=since, until=until))) for since, until in spans]
    assert counts == [1, 2, 4, 5, 3, 0]
    db.write(lambda tx: tx.execute("UPDATE pages SET frontmatter = '{}' WHERE slug = 'p1'"))
    assert len(agree(SearchFilters(since="2024-03-05", until="2024-03-05"))) == 2
    assert len(agree(SearchFilters(since="2026-04-25", type="concept"))) == 5


def quarantine(db: Database, slug: str) -> None:
    db.write(lambda tx: tx.execute("UPDATE pages SET quarantined_at = 'now' WHERE slug = ?", (slug,)))


def delete(db: Database, slug: str) -> None:
    db.write(lambda tx: tx.execute("DELETE FROM pages WHERE slug = ?", (slug,)))


@pytest.mark.parametrize("remove", [quarantine, delete])
def test_a_page_that_goes_takes_its_chunks_out_of_a_warm_index(
    db: Database, query: "np.ndarray", remove: Callable[[Database, str], None]
) -> None:
    ids = [save(db, number) for number in range(5)]
    embed(db)
    index = warm(db, query)
    gone = set(chunks.chunks_of_pages(db, [ids[2]], 10))
    with Database.open(db.path, NOW) as other:
        remove(other, "p2")
    assert len(gone) == 2
    assert not gone & {chunk for chunk, _ in index.nearest(MODEL, query, 100)}
    assert ids[2] not in index.page_cosines(MODEL, query, ids)


def test_later_writes_appear_in_a_loaded_index(db: Database, query: "np.ndarray") -> None:
    for number in range(5):
        save(db, number)
    embed(db)
    index = warm(db, query)
    new, copy = save(db, 50), save(db, 3, slug="copy")  # the copy's contents have vectors already
    embed(db)
    for page_id in (new, copy):
        cosines = index.page_cosines(MODEL, query, [page_id])
        assert cosines == pytest.approx(ChunkIndex(db).page_cosines(MODEL, query, [page_id]), abs=1e-6)
        assert cosines


def test_coverage_is_counted_again_after_a_write(db: Database) -> None:
    save(db, 1)
    embed(db)
    index, model = ChunkIndex(db), next(iter(vectors.list_models(db).values()))
    assert [index.made(model), index.made(model)] == [(2, 2), (2, 2)]
    save(db, 2)
    assert index.made(model) == (2, 4)
    with Database.open(db.path, NOW) as other:
        embed(other)
    assert index.made(model) == (4, 4)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (SearchFilters(since="2024-03-01"), {"daily/2024-03-07", "b"}),
        (SearchFilters(until="2024-03-31"), {"daily/2024-03-07", "a"}),
        (SearchFilters(since="2024-03-01", until="2024-03-31", wing="w"), {"daily/2024-03-07"}),
    ],
)
def test_days_of_pages_filter_vectors(
    db: Database, query: "np.ndarray", filters: SearchFilters, expected: set[str]
) -> None:
    save(db, 1, slug="a", date="2020-01-01", wing="w")
    save(db, 2, slug="daily/2024-03-07", wing="w")
    save(db, 3, slug="b", wing="w")  # of the day on which it was saved
    embed(db)
    for index in both(db, query):
        places = chunks.places(db, [chunk for chunk, _ in index.nearest(MODEL, query, 10, filters)])
        slugs: dict[int, str] = dict(db.rows("SELECT id, slug FROM pages"))
        assert {slugs[place[0]] for place in places.values()} == expected


def test_the_highest_come_in_order_and_of_equals_the_first() -> None:
    scores = np.array([0.1, 0.9, 0.5, 0.9, 0.2], np.float32)
    assert vector_index.highest_scores(scores, 3).tolist() == [1, 3, 2]
    assert vector_index.highest_scores(scores, 9).tolist() == [1, 3, 2, 4, 0]


def test_connections_of_one_process_share_what_is_in_memory(db: Database, query: "np.ndarray") -> None:
    shared = ViewCache()
    for number in range(30):
        save(db, number)
    embed(db)
    problems: list[str] = []
    writing = threading.Event()

    def ask() -> None:
        with Database.open(db.path, NOW) as own:
            index = ChunkIndex(own, shared=shared)
            is_last = False
            while not is_last:
                is_last = writing.is_set()
                with own.reading():
                    ids = [row[0] for row in own.rows("SELECT id FROM chunks")]
                    pairs = index.nearest(MODEL, query, 10), index.cosines(MODEL, query, ids)
                    alone = ChunkIndex(own)
                    expected = alone.nearest(MODEL, query, 10), alone.cosines(MODEL, query, ids)
                if [chunk for chunk, _ in pairs[0]] != [chunk for chunk, _ in expected[0]]:
                    problems.append(f"nearest: {pairs[0]} instead of {expected[0]}")
                # Another connection may have seen the vector of a chunk that has none in this snapshot yet.
                cosines = {chunk: pairs[1].get(chunk) for chunk in expected[1]}
                if cosines != pytest.approx(expected[1], abs=1e-6):
                    problems.append("cosines")

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(30, 60):
        save(db, number % 40)
        embed(db)
    writing.set()
    for thread in threads:
        thread.join(60)
    assert problems == []
    assert len(shared.views("ChunkIndex", db.path)) == 1


def test_view_that_was_refreshed_in_part_is_made_again(
    db: Database, query: "np.ndarray", monkeypatch: pytest.MonkeyPatch
) -> None:
    save(db, 1)
    embed(db)
    index = warm(db, query)
    save(db, 2)
    embed(db)

    def cancelled(*_: object) -> None:
        raise Cancelled

    with monkeypatch.context() as patch:
        patch.setattr(vector_index._ChunkTable, "refresh", cancelled)
        with pytest.raises(Cancelled):
            index.nearest(MODEL, query, 10)
    ids = [row[0] for row in db.rows("SELECT id FROM chunks")]
    for _ in range(2):
        assert len(index.nearest(MODEL, query, 10)) == len(ids) == 4
    assert list(index.cosines(MODEL, query, ids)) == ids


def test_views_of_a_replaced_file_are_dropped(db: Database, query: "np.ndarray", tmp_path: Path) -> None:
    save(db, 1)
    embed(db)
    shared = ViewCache()
    ChunkIndex(db, shared=shared).nearest(MODEL, query, 1)
    assert shared.views("ChunkIndex", db.path)
    other = tmp_path / "other.db"
    other.touch()
    assert shared.views("ChunkIndex", str(other)) == {}
