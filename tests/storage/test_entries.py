"""Entries of chunks: their rows, their vectors, and chunks found by them."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import numpy as np
import pytest

from quaid.model.page import build_page
from quaid.storage import SCHEMA_VERSION, checks, erase, page_edits, vector_index, vectors
from quaid.storage.embedding_queue import ChunkQueue, EntryQueue
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import SearchFilters

NOW = "2026-04-25T12:00:00Z"
FACTS = "# Facts\n\n- The oven is too hot\n- The fridge is new\n- The stair creaks\n"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with Database.create(str(tmp_path / "memory.db"), NOW) as db:
        db.write(lambda tx: vectors.use_model(tx, "small", 4, NOW))
        put(db, "home/facts", FACTS)
        put(db, "work/prose", "A sentence about work. Another sentence about work.")
        yield db


def put(db: Database, slug: str, text: str) -> int:
    page = build_page(slug, {"title": "T"}, text, "")
    return db.write(lambda tx: page_edits.save(tx, page, uuid=slug, now=NOW, expected_version=None)).id


def embed(db: Database) -> None:
    """Give chunks the first direction, and the entries of the list the others in turn."""
    for queue, first in ((ChunkQueue(db, "small"), 0), (EntryQueue(db, "small"), 1)):
        texts = queue.texts(queue.missing())
        rows = [
            (text.content_hash, np.eye(4, dtype="<f4")[first + place % 3 * (first > 0)].tobytes())
            for place, text in enumerate(texts)
        ]
        db.write(lambda tx, rows=rows: vectors.keep_chunk_vectors(tx, "small", rows, NOW))  # type: ignore[misc]


def entry_texts(db: Database) -> list[str]:
    rows = db.rows(
        "SELECT c.chunk_text, e.start_at, e.end_at FROM chunk_entries AS e JOIN chunks AS c ON c.id = e.chunk_id"
        " ORDER BY e.id"
    )
    return [text[start:end].strip() for text, start, end in rows]


def test_a_list_has_entries_and_prose_has_none(db: Database) -> None:
    assert entry_texts(db) == ["The oven is too hot", "The fridge is new", "The stair creaks"]
    queue = EntryQueue(db, "small")
    texts = [text.text for text in queue.texts(queue.missing())]
    assert texts[0] == "T\nFacts\nThe oven is too hot"
    assert len(queue.newest(2)) == 2
    assert queue.owners([text.content_hash for text in queue.texts(queue.missing())]) == ("home/facts",)


def test_an_entry_that_stays_keeps_its_vector(db: Database) -> None:
    embed(db)
    put(db, "home/facts", FACTS + "- The bell is loud\n")
    queue = EntryQueue(db, "small")
    assert [text.text for text in queue.texts(queue.missing())] == ["T\nFacts\nThe bell is loud"]
    assert len(entry_texts(db)) == 4


@pytest.mark.parametrize("questions", [0, 2])
def test_a_chunk_is_as_near_as_its_nearest_entry(db: Database, questions: int) -> None:
    """From the second question on, vectors are in memory."""
    embed(db)
    index = vector_index.ChunkIndex(db)
    (facts,) = db.one("SELECT chunk_id FROM chunk_entries") or (0,)
    query = np.array([0, 0, 1, 0], np.float32)
    for _ in range(questions):
        index.nearest("small", query, 5)
    nearest, cosine = index.nearest("small", query, 5)[0]
    assert nearest == facts
    assert cosine == pytest.approx(1, abs=0.1)
    assert index.cosines("small", query, [facts])[facts] == pytest.approx(1, abs=0.1)
    cosines = index.entry_cosines("small", query, [facts])
    assert [round(cosine) for cosine in cosines.values()] == [0, 1, 0]
    assert [row[0] for row in index.nearest("small", query, 5, SearchFilters(wing="home"))] == [facts]
    assert facts not in [row[0] for row in index.nearest("small", query, 5, SearchFilters(wing="work"))]


def test_vectors_of_entries_are_purged_with_their_page(db: Database) -> None:
    embed(db)
    assert db.write(vectors.purge_vectors) == 0
    target = erase.find_target(db, "home/facts", "default")
    assert target is not None
    assert len(target.hashes) == 4
    erase.Erasure(db, target, []).run()
    assert entry_texts(db) == []
    assert db.rows("SELECT count(*) FROM page_embeddings_vec_4") == [(1,)]


def test_lost_entries_are_reported_and_rebuilt(db: Database) -> None:
    before = db.rows("SELECT chunk_id, start_at, end_at, content_hash FROM chunk_entries")
    db.write(lambda tx: tx.execute("DELETE FROM chunk_entries WHERE start_at > 20"))
    problems = [violation.problem for violation in checks.validate(db)]
    assert problems == ["the entries of its chunks are not those of its text"]
    db.write(checks.rebuild_derived_rows)
    assert db.rows("SELECT chunk_id, start_at, end_at, content_hash FROM chunk_entries") == before
    assert checks.validate(db) == []


def test_schema_9_is_extended_in_place(tmp_path: Path) -> None:
    path = str(tmp_path / "old.db")
    connection = apsw.Connection(path)
    connection.execute((Path(__file__).parent / "fixtures" / "v9.sql").read_text(encoding="utf-8"))
    connection.execute(
        "INSERT INTO collections (id, name, is_write_target, created_at, updated_at)"
        " VALUES (1, 'default', 1, '', '');"
        "INSERT INTO pages (id, slug, uuid, type, wing, title, created_at, updated_at, truth_updated_at,"
        " timeline_updated_at, compiled_truth)"
        " VALUES (1, 'home/facts', 'u1', 'concept', 'home', 'T', '', '', '', '', '')"
    )
    connection.execute(
        "INSERT INTO chunks (page_id, chunk_index, chunk_type, content_hash, token_count, start_line, end_line,"
        " heading_path, chunk_text) VALUES (1, 0, 'truth_section', x'00', 9, 1, 5, '# Facts', ?)",
        (FACTS,),
    )
    connection.pragma("journal_mode", "WAL")
    connection.close()
    with Database.open(path, NOW) as old, Database.create(str(tmp_path / "new.db"), NOW) as new:
        tables = "SELECT type, name, sql FROM sqlite_schema WHERE name LIKE 'chunk_entries%' ORDER BY name"
        assert old.rows(tables) == new.rows(tables)
        assert old.connection.pragma("user_version") == SCHEMA_VERSION
        assert entry_texts(old) == ["The oven is too hot", "The fridge is new", "The stair creaks"]
