"""Models, their vectors, and the nearest of them."""

import functools
import hashlib
import re
from collections.abc import Callable, Sequence

import apsw
import numpy as np
import pytest

from quaid.errors import InvalidArgument, NotFound
from quaid.model.page import build_page
from quaid.storage import checks, chunks, collections, embedding_queue, page_edits, vector_index, vectors
from quaid.storage.sqlite.connection import Database, Transaction
from quaid.storage.text_index import SearchFilters
from quaid.storage.vector_index import ChunkIndex

NOW = "2026-04-25T12:00:00Z"
DIMENSIONS = 64


@functools.cache
def direction(seed: str, word: str, dimensions: int) -> "np.ndarray":
    """Return the random vector of a word; cached, because it costs more than the rest of most tests."""
    digest = hashlib.sha256(f"{seed} {word}".encode()).digest()
    return np.random.default_rng(list(digest[:8])).normal(size=dimensions)


class Bag:
    """A model in which each word has a direction that the seed determines."""

    def __init__(self, seed: str, dimensions: int = DIMENSIONS) -> None:
        self.name = f"bag-{seed}"
        self.dimensions = dimensions
        self._seed = seed

    def embed(self, text: str) -> "np.ndarray":
        total = np.full(self.dimensions, 0.01, np.float32)
        for word in re.findall(r"\w+", text.lower()):
            total += direction(self._seed, word, self.dimensions)
        return np.asarray(total / np.linalg.norm(total), np.float32)

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        return [self.embed(text).tobytes() for text in texts]


A, B = Bag("a"), Bag("b")


def write(db: Database, slug: str, truth: str, timeline: str = "", **frontmatter: object) -> int:
    page = build_page(slug, {"title": slug, **frontmatter}, truth, timeline)
    return db.write(lambda tx: page_edits.save(tx, page, uuid=slug, now=NOW, expected_version=None)).id


def use(db: Database, model: Bag, *, activate: bool = True) -> None:
    def work(tx: Transaction) -> None:
        vectors.register_model(tx, model.name, model.dimensions, NOW)
        if activate:
            vectors.activate_model(tx, model.name)

    db.write(work)


def embed(db: Database, model: Bag) -> int:
    waiting = embedding_queue.pending_texts(db, model.name, 10_000)
    result = list(
        zip(
            [item.content_hash for item in waiting],
            model.embed_passages([item.text for item in waiting]),
            strict=True,
        )
    )
    return db.write(lambda tx: vectors.keep_chunk_vectors(tx, model.name, result, NOW))


def nearest(
    db: Database, index: ChunkIndex, model: Bag, text: str, k: int = 5, filters: SearchFilters | None = None
) -> list[str]:
    neighbours = index.nearest(model.name, model.embed(text), k, filters)
    assert [score for _, score in neighbours] == sorted([score for _, score in neighbours], reverse=True)
    return [row.text for row in chunks.load(db, [chunk_id for chunk_id, _ in neighbours])]


WORDS = [f"word{number}" for number in range(400)]


def sentence(number: int) -> str:
    return " ".join([f"own{number}", *(WORDS[(number * step + step) % 400] for step in (1, 7, 13, 29, 31))])


MADE: dict[int, apsw.Connection] = {}
"""Memories that many() has filled, by their number of pages."""


def many(db: Database, count: int) -> None:
    """Fill an empty memory with this many pages and their vectors of model A."""
    if count in MADE:
        with db.connection.backup("main", MADE[count], "main") as copying:
            copying.step()
        return

    def work(tx: Transaction) -> None:
        for number in range(count):
            page = build_page(
                f"p{number}",
                {
                    "title": "t",
                    "wing": "even" if number % 2 == 0 else "odd",
                    "tags": ["rare"] if number % 97 == 0 else [],
                },
                sentence(number),
                "",
            )
            page_edits.save(tx, page, uuid=f"p{number}", now=NOW, expected_version=0)

    db.write(work)
    use(db, A)
    embed(db, A)
    MADE[count] = apsw.Connection(":memory:")
    with MADE[count].backup("main", db.connection, "main") as copying:
        copying.step()


# The registry


def test_one_model_is_active_and_the_settings_say_which(db: Database) -> None:
    use(db, A)
    use(db, B)
    assert [(model.name, model.active) for model in vectors.list_models(db).values()] == [
        ("bag-a", False),
        ("bag-b", True),
    ]
    assert collections.get_setting(db, "embedding_model") == "bag-b"
    assert collections.get_setting(db, "embedding_dimensions") == "64"
    db.write(lambda tx: vectors.activate_model(tx, "bag-a"))
    active = vectors.active_model(db)
    assert active is not None
    assert active.name == collections.get_setting(db, "embedding_model") == "bag-a"


def test_a_switch_that_fails_leaves_the_old_model_active(db: Database) -> None:
    use(db, A)
    with pytest.raises(NotFound):
        db.write(lambda tx: vectors.activate_model(tx, "unknown"))
    active = vectors.active_model(db)
    assert active is not None
    assert active.name == "bag-a"


def test_a_model_keeps_its_width(db: Database) -> None:
    use(db, A)
    use(db, A)
    with pytest.raises(InvalidArgument, match="64 dimensions"):
        db.write(lambda tx: vectors.register_model(tx, A.name, 32, NOW))
    with pytest.raises(InvalidArgument):
        db.write(lambda tx: vectors.register_model(tx, "none", 0, NOW))


def test_each_width_has_its_table_and_one_view_shows_all(db: Database) -> None:
    write(db, "a", "engine")
    for model in (A, Bag("wide", 96), Bag("c", 384), Bag("wider", 128)):
        use(db, model)
        embed(db, model)
    assert db.rows("SELECT model, page_id, chunk_text FROM page_embeddings ORDER BY model") == [
        (name, 1, "engine") for name in ("bag-a", "bag-c", "bag-wide", "bag-wider")
    ]


def test_wrong_vectors_are_refused_and_nothing_is_kept(db: Database) -> None:
    use(db, A)
    good = A.embed("x").tobytes()
    for bad in (good[:-4], b"", np.full(64, np.nan, "<f4").tobytes(), bytes(256)):
        with pytest.raises(InvalidArgument):
            db.write(lambda tx: vectors.keep_chunk_vectors(tx, A.name, [(b"1", good), (b"2", bad)], NOW))  # noqa: B023
    assert db.rows("SELECT count(*) FROM page_embeddings_vec_64") == [(0,)]


# The cache


def test_the_same_content_is_embedded_once(db: Database) -> None:
    write(db, "a", "## S\n\nengine\n\n## S\n\nengine")
    use(db, A)
    assert len(embedding_queue.pending_texts(db, A.name, 10)) == 1
    assert embed(db, A) == 1
    assert embedding_queue.ChunkQueue(db, A.name).coverage() == (2, 2)


def test_a_change_and_its_undoing_need_no_new_vector(db: Database) -> None:
    write(db, "a", "engine")
    use(db, A)
    embed(db, A)
    write(db, "a", "loom")
    assert embedding_queue.ChunkQueue(db, A.name).coverage() == (0, 1)
    write(db, "a", "engine")
    assert embedding_queue.ChunkQueue(db, A.name).coverage() == (1, 1)
    assert embedding_queue.pending_texts(db, A.name, 10) == []


def test_latest_changes_are_embedded_first(db: Database) -> None:
    for slug in ("a", "b", "c"):
        write(db, slug, slug)
    db.write(lambda tx: tx.execute("UPDATE pages SET updated_at = '2027' WHERE slug = 'b'"))
    use(db, A)
    assert [text.text for text in embedding_queue.pending_texts(db, A.name, 2)] == ["b\nb", "c\nc"]


def test_a_purge_drops_only_what_no_chunk_needs(db: Database) -> None:
    many(db, 300)
    for number in range(10):
        write(db, f"p{number}", "changed")
    assert db.write(vectors.purge_vectors) == 10
    assert embedding_queue.ChunkQueue(db, A.name).coverage() == (290, 300)
    assert nearest(db, ChunkIndex(db), A, "t " + sentence(77), 1) == [sentence(77)]
    assert db.write(vectors.purge_vectors) == 0


@pytest.mark.parametrize("count", [20, 300, 2600])
def test_forgotten_page_leaves_every_model_and_the_loaded_index(db: Database, count: int) -> None:
    many(db, count)
    use(db, B, activate=False)
    embed(db, B)
    index = ChunkIndex(db)
    for number in range(3):  # by the second question everything is in memory
        nearest(db, index, A, sentence(number))
    forgotten = range(0, count, 5)
    hashes = [
        db.rows("SELECT content_hash FROM chunks WHERE page_id = ?", (number + 1,))[0][0]
        for number in forgotten
    ]
    for number in forgotten:
        write(db, f"p{number}", f"changed {number}")
    assert db.write(lambda tx: vectors.drop_unused_vectors(tx, hashes)) == 2 * len(forgotten)
    assert db.write(lambda tx: vectors.drop_unused_vectors(tx, hashes)) == 0
    assert db.rows("SELECT count(*) FROM page_embeddings_vec_64") == [(2 * (count - len(forgotten)),)]
    assert checks.run_checks(db, ("embeddings",)) == []
    for model in (A, B):
        assert sentence(5) not in nearest(db, index, model, "t " + sentence(5))
        assert nearest(db, index, model, "t " + sentence(6), 1) == [sentence(6)]
    assert embed(db, A) == len(forgotten)  # what stands there now
    assert checks.run_checks(db, ("embeddings",)) == []
    assert nearest(db, index, A, "p5 changed 5", 1) == ["changed 5"]


def test_a_content_that_a_chunk_still_has_is_not_forgotten(db: Database) -> None:
    for slug in ("a", "b"):
        write(db, slug, "the same", title="both")
    use(db, A)
    embed(db, A)
    ((hash_,),) = db.rows("SELECT DISTINCT content_hash FROM chunks")
    write(db, "a", "another")
    assert db.write(lambda tx: vectors.drop_unused_vectors(tx, [hash_, b"unknown"])) == 0
    write(db, "b", "yet another")
    assert db.write(lambda tx: vectors.drop_unused_vectors(tx, [hash_])) == 1


def test_forgetting_everything_leaves_a_sound_memory(db: Database) -> None:
    many(db, 300)
    index = ChunkIndex(db)
    nearest(db, index, A, sentence(1))
    hashes = [row[0] for row in db.rows("SELECT content_hash FROM chunks")]
    db.write(lambda tx: tx.execute("DELETE FROM pages"))
    assert db.write(lambda tx: vectors.drop_unused_vectors(tx, hashes)) == 300
    assert nearest(db, index, A, sentence(1)) == []
    assert checks.run_checks(db, ("embeddings",)) == []
    write(db, "new", "words")
    embed(db, A)
    assert nearest(db, index, A, "new words") == ["words"]


def test_a_sample_is_known_again_by_the_model_that_made_it(db: Database) -> None:
    use(db, A)
    assert vectors.require_model(db, A.name).sample(db) is None
    write(db, "a", "some words")
    embed(db, A)
    sample = vectors.require_model(db, A.name).sample(db)
    assert sample
    text, vector = sample
    assert vectors.cosine_to_stored(A.embed_passages([text])[0], vector) > 0.999
    assert vectors.cosine_to_stored(B.embed_passages([text])[0], vector) < 0.9


# The nearest


def exact(
    db: Database, model: Bag, text: str, k: int, keeps: Callable[[int], bool] = lambda _: True
) -> set[float]:
    query = model.embed(text)
    rows = db.rows(
        "SELECT e.page_id, v.vector FROM page_embeddings e JOIN page_embeddings_vec_64 v ON v.id = e.vec_rowid"
    )
    scores = [float(np.frombuffer(raw, "<f2").astype("<f4") @ query) for page, raw in rows if keeps(page)]
    return {round(score, 4) for score in sorted(scores, reverse=True)[:k]}


@pytest.mark.parametrize("count", [3, 300, 2600])
def test_few_and_many_vectors_give_the_exact_order(db: Database, count: int) -> None:
    many(db, count)
    index = ChunkIndex(db)
    for number in range(8):  # the first question is answered from the file, the others from memory
        text = sentence(number * 37)
        neighbours = index.nearest(A.name, A.embed(text), 10)
        assert {round(score, 4) for _, score in neighbours} == exact(db, A, text, 10)


def test_the_vectors_may_stay_in_the_file(db: Database) -> None:
    many(db, 2600)
    inside, outside = ChunkIndex(db), ChunkIndex(db, resident_bytes=0)
    for number in range(4):
        query = A.embed(sentence(number * 11))
        ours, theirs = inside.nearest(A.name, query, 5), outside.nearest(A.name, query, 5)
        assert [chunk for chunk, _ in ours] == [chunk for chunk, _ in theirs]


@pytest.mark.parametrize("count", [300, 2600])
def test_a_filter_is_applied_inside_the_search(db: Database, count: int) -> None:
    many(db, count)
    for wing, tag in (("even", None), (None, "rare"), ("odd", "rare")):
        allowed = {
            row[0]
            for row in db.rows(
                "SELECT p.id FROM pages p WHERE (? IS NULL OR wing = ?)"
                " AND (? IS NULL OR EXISTS (SELECT 1 FROM tags WHERE page_id = p.id AND tag = ?))",
                (wing, wing, tag, tag),
            )
        }
        index, filters = ChunkIndex(db), SearchFilters(wing=wing, tag=tag)
        for number in range(3):
            text = sentence(number * 3)
            neighbours = index.nearest(A.name, A.embed(text), 10, filters)
            assert {round(score, 4) for _, score in neighbours} == exact(
                db, A, text, 10, allowed.__contains__
            )
            chunk_places = chunks.places(db, [chunk for chunk, _ in neighbours])
            assert {place[0] for place in chunk_places.values()} <= allowed


def test_dates_filter_entries(db: Database) -> None:
    write(db, "a", "engine", "- **2020-01-02** — engine old\n- **2021-01-02** — engine new\n")
    use(db, A)
    embed(db, A)
    index = ChunkIndex(db)
    for _ in range(2):
        assert nearest(db, index, A, "engine", 5, SearchFilters(until="2020-12-31")) == [
            "- **2020-01-02** — engine old"
        ]
        assert nearest(db, index, A, "engine", 5, SearchFilters(since="2030-01-01")) == []


@pytest.mark.parametrize("count", [3, 2600])
def test_added_and_deleted_vectors_are_visible_at_once(db: Database, count: int) -> None:
    many(db, count)
    other = Database.open(db.path, NOW)
    index = ChunkIndex(db)
    for _ in range(2):
        assert nearest(db, index, A, "t " + sentence(1), 1) == [sentence(1)]
    other.write(lambda tx: tx.execute("UPDATE pages SET quarantined_at = 'now' WHERE slug = 'p1'"))
    assert sentence(1) not in nearest(db, index, A, "t " + sentence(1), 3)
    db.write(lambda tx: tx.execute("DELETE FROM pages WHERE slug = 'p2'"))
    assert sentence(2) not in nearest(db, index, A, "t " + sentence(2), 3)
    write(other, "new", "quite another thing", wing="even")
    embed(other, A)
    assert nearest(db, index, A, "quite another thing", 1) == ["quite another thing"]
    assert nearest(db, index, A, "quite another thing", 1, SearchFilters(wing="even")) == [
        "quite another thing"
    ]
    write(db, "copy", "quite another thing", title="new", wing="odd")  # its vector is there already
    assert nearest(db, index, A, "quite another thing", 1, SearchFilters(wing="odd")) == [
        "quite another thing"
    ]
    other.close()


def test_many_that_have_gone_do_not_hide_the_others(db: Database) -> None:
    many(db, 2600)
    index = ChunkIndex(db)
    index.nearest(A.name, A.embed("x"), 5)
    index.nearest(A.name, A.embed("x"), 5)
    db.write(lambda tx: tx.execute("DELETE FROM pages WHERE id > 20"))
    for item in (index, ChunkIndex(db)):
        assert len(item.nearest(A.name, A.embed(sentence(700)), 10)) == 10
        assert len(item.nearest(A.name, A.embed(sentence(700)), 50)) == 20


def test_cosines_and_the_baseline_are_those_of_the_vectors(db: Database) -> None:
    many(db, 300)
    write(db, "late", "no vector yet")
    index, query = ChunkIndex(db), A.embed(sentence(5))
    ids = [row[0] for row in db.rows("SELECT id FROM chunks ORDER BY id DESC LIMIT 4")]
    cosines = index.cosines(A.name, query, [*ids, 9999])
    assert cosines.keys() == set(ids[1:])
    for chunk_id, score in index.nearest(A.name, query, 3):
        assert index.cosines(A.name, query, [chunk_id])[chunk_id] == pytest.approx(score, abs=1e-5)
    every = [
        np.frombuffer(raw, "<f2").astype("<f4")
        for (raw,) in db.rows("SELECT vector FROM page_embeddings_vec_64")
    ]
    mean, count = index.mean(A.name)
    assert float(mean @ query) == pytest.approx(float(np.mean(every, axis=0) @ query), abs=0.02)
    assert count == len(every)
    assert index.cosines(A.name, query, []) == {}


def test_an_empty_memory_has_nothing_near(db: Database) -> None:
    use(db, A)
    assert ChunkIndex(db).nearest(A.name, A.embed("x"), 5) == []
    assert not ChunkIndex(db).mean(A.name)[0].any()
    with pytest.raises(NotFound):
        ChunkIndex(db).nearest("unknown", A.embed("x"), 5)


def test_codes_follow_the_vectors_over_every_doubling(db: Database) -> None:
    use(db, A)
    rng = np.random.default_rng(3)
    for start in range(0, 3000, 250):
        rows = rng.normal(size=(250, DIMENSIONS)).astype("<f4")
        db.write(
            lambda tx, rows=rows, start=start: vectors.keep_chunk_vectors(  # type: ignore[misc]
                tx,
                A.name,
                [(f"{start + place}".encode(), row.tobytes()) for place, row in enumerate(rows)],
                NOW,
            )
        )
    blocks = db.rows(
        "SELECT block, length(vec_rowids) / 8, length(codes) / 8 FROM vector_codes ORDER BY block"
    )
    assert blocks == [(0, 1024, 1024), (1, 1024, 1024), (2, 952, 952)]
    assert db.rows("SELECT mean_of, encoding FROM embedding_models") == [(2000, 3)]
    (mean,) = db.rows("SELECT mean FROM embedding_models")[0]
    stored = [
        np.frombuffer(raw, "<f2").astype("<f4")
        for (raw,) in db.rows("SELECT vector FROM page_embeddings_vec_64")
    ]
    wanted = vectors.encode_vectors(np.stack(stored), np.frombuffer(mean, "<f4")).tobytes()
    assert b"".join(row[0] for row in db.rows("SELECT codes FROM vector_codes ORDER BY block")) == wanted


def test_a_distance_is_the_number_of_different_bits() -> None:
    rng = np.random.default_rng(5)
    for dimensions in (3, 64, 100, 384, 1024):
        rows = rng.normal(size=(50, dimensions)).astype(np.float32)
        mean = np.zeros(dimensions, np.float32)
        coded = vectors.encode_vectors(rows, mean)
        wanted = ((rows > 0) != (rows[7] > 0)).sum(axis=1)
        assert (vector_index.code_distances(np.ascontiguousarray(coded.T), coded[7]) == wanted).all()


# The gate for a change of model


def test_models_change_and_change_back_without_a_trace(db: Database) -> None:
    many(db, 400)
    asked = ["t " + sentence(number * 19) for number in range(20)]
    index = ChunkIndex(db)

    def answers() -> list[list[tuple[int, float]]]:
        active = vectors.active_model(db)
        assert active is not None
        model = {A.name: A, B.name: B}[active.name]
        return [index.nearest(active.name, model.embed(text), 5) for text in asked]

    before = answers()
    use(db, B, activate=False)
    assert answers() == before
    embed(db, B)
    assert answers() == before
    db.write(lambda tx: vectors.activate_model(tx, B.name))
    with_b = answers()
    for text, result in zip(asked, with_b, strict=True):
        assert {round(score, 4) for _, score in result} == _scores_by(db, B, text)
        assert {round(score, 4) for _, score in result} != _scores_by(db, A, text)
    db.write(lambda tx: vectors.activate_model(tx, A.name))
    assert answers() == before
    assert ChunkIndex(db).nearest(A.name, A.embed(asked[0]), 5) == before[0]
    assert (
        embedding_queue.ChunkQueue(db, A.name).coverage()
        == embedding_queue.ChunkQueue(db, B.name).coverage()
        == (400, 400)
    )


def _scores_by(db: Database, model: Bag, text: str) -> set[float]:
    query = model.embed(text)
    rows = db.rows("SELECT vector FROM page_embeddings_vec_64 WHERE model = ?", (model.name,))
    scores = [float(np.frombuffer(raw, "<f2").astype("<f4") @ query) for (raw,) in rows]
    return {round(score, 4) for score in sorted(scores, reverse=True)[:5]}


def test_most_linked_pages_of_an_import_are_embedded_first(
    db: Database,
) -> None:
    use(db, A)
    for slug, truth in (
        ("hub", "a hub"),
        ("first", "See [[hub]]."),
        ("second", "See [[hub]] and [[known]]."),
        ("known", "known"),
    ):
        write(db, slug, truth)
    newest = build_page("newest", {"title": "newest"}, "newest", "")
    db.write(
        lambda tx: page_edits.save(tx, newest, uuid="n", now="2026-04-25T12:00:01Z", expected_version=None)
    )

    order = [text.text.partition("\n")[0] for text in embedding_queue.pending_texts(db, A.name, 10)]

    assert order == ["newest", "hub", "known", "second", "first"]
