"""How far the vectors are made."""

from pathlib import Path

import pytest

from quaid.model.page import build_page
from quaid.storage import embedding_queue, page_edits, vectors
from quaid.storage.embedding_queue import ChunkQueue
from quaid.storage.sqlite.connection import Database, Transaction
from quaid.storage.vector_index import COVERAGE_SECONDS, ChunkIndex

NOW = "2026-04-25T12:00:00Z"
MODEL = "small"


@pytest.fixture
def db(tmp_path: Path) -> Database:
    memory = Database.create(str(tmp_path / "memory.db"), NOW)
    paragraphs = "\n\n".join(f"## Part {number}\n\nText {number}." for number in range(50))
    made = [build_page(f"notes/{number}", {"title": f"Page {number}"}, paragraphs, "") for number in range(3)]

    def work(tx: Transaction) -> None:
        for page in made:
            page_edits.save(tx, page, uuid=page.slug, now=NOW, expected_version=None)

    memory.write(work)
    memory.write(lambda tx: vectors.register_model(tx, MODEL, 384, NOW))
    return memory


def fill(db: Database, limit: int) -> None:
    pairs = [
        (text.content_hash, bytes(range(1, 5)) * 384)
        for text in embedding_queue.pending_texts(db, MODEL, limit)
    ]
    db.write(lambda tx: vectors.keep_chunk_vectors(tx, MODEL, pairs, NOW))


def estimated(db: Database, model: vectors.EmbeddingModel) -> tuple[int, int]:
    coverage = ChunkQueue(db, model.name).estimate_coverage()
    return coverage.total - coverage.lacking, coverage.total


@pytest.mark.parametrize("few", [0, 10_000])
def test_counting_and_looking_agree(db: Database, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_queue, "FEW_CHUNKS", few)
    model = vectors.find_model(db, MODEL)
    assert model is not None
    assert estimated(db, model) == (0, 150)
    fill(db, 60)
    assert estimated(db, model) == (60, 150)
    fill(db, 1_000)
    assert estimated(db, model) == (150, 150)


def counted(db: Database, model: vectors.EmbeddingModel) -> tuple[int, int]:
    """What a look at every chunk says; and that what is waited for are those that lack one."""
    waiting = ChunkQueue(db, model.name).estimate_coverage().waiting
    assert waiting is None or sorted(waiting) == sorted(ChunkQueue(db, MODEL).missing())
    return ChunkQueue(db, MODEL).coverage()


def save(db: Database, slug: str, text: str, *, cut: bool = True) -> None:
    page = build_page(slug, {"title": slug}, text, "")
    db.write(lambda tx: page_edits.save(tx, page, uuid=slug, now=NOW, expected_version=None, cut=cut))


def test_after_a_write_only_what_is_new_is_looked_at(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding_queue, "FEW_CHUNKS", 100)
    model = vectors.find_model(db, MODEL)
    assert model is not None
    fill(db, 1_000)
    assert estimated(db, model) == (150, 150)
    monkeypatch.setattr(
        embedding_queue, "_measure_coverage", None
    )  # whoever looked at everything again would fail
    save(db, "new", "## One\n\nFirst.\n\n## Two\n\nSecond.")
    assert estimated(db, model) == counted(db, model) == (150, 152)
    with Database.open(db.path, NOW) as other:
        save(other, "of another", "Third.")
        assert estimated(db, model) == counted(db, model) == (150, 153)
        fill(other, 1)
    assert estimated(db, model) == counted(db, model) == (151, 153)
    fill(db, 10)
    assert estimated(db, model) == counted(db, model) == (153, 153)


def test_chunks_that_went_are_counted_out_after_some_writes(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_queue, "FEW_CHUNKS", 20)
    monkeypatch.setattr(embedding_queue, "MOST_UPDATES", 3)
    model = vectors.find_model(db, MODEL)
    assert model is not None
    fill(db, 1_000)
    assert estimated(db, model) == (150, 150)
    db.write(lambda tx: tx.execute("DELETE FROM pages WHERE slug = 'notes/1'"))
    seen = []
    for number in range(5):
        save(db, f"new{number}", "")
        seen.append(estimated(db, model))
    assert seen[-1] == counted(db, model) == (100, 100)


def test_large_memory_is_checked_from_the_newest_chunk_back(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = vectors.find_model(db, MODEL)
    assert model is not None
    fill(db, 1_000)
    save(db, "long", "\n\n".join(f"## P{number}\n\nNew {number}." for number in range(10)))
    monkeypatch.setattr(embedding_queue, "FEW_CHUNKS", 60)
    monkeypatch.setattr(embedding_queue, "SAMPLE_WINDOW", 8)
    monkeypatch.setattr(ChunkQueue, "coverage", None)  # nothing is counted whole
    with Database.open(db.path, NOW) as other:
        assert estimated(other, model) == (150, 160)
        monkeypatch.undo()
        assert counted(other, model) == (150, 160)


def test_a_question_in_a_large_memory_counts_vectors_once_a_second(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_queue, "FEW_CHUNKS", 100)
    moment = 100.0
    monkeypatch.setattr("quaid.storage.sqlite.connection.time.monotonic", lambda: moment)
    model = vectors.find_model(db, MODEL)
    assert model is not None
    index = ChunkIndex(db)
    assert index.made(model) == (0, 150)
    fill(db, 60)
    assert index.made(model) == (60, 150)  # the first vectors are noticed at once
    moment += COVERAGE_SECONDS
    assert index.made(model) == (60, 150)
    fill(db, 60)
    assert index.made(model) == (60, 150)
    moment += COVERAGE_SECONDS
    assert index.made(model) == (120, 150)
