"""Whether vectors are missing, asked again and again."""

import struct

import pytest

from quaid.model.page import build_page
from quaid.storage import chunks, embedding_queue, page_edits, vectors
from quaid.storage.embedding_queue import EmbeddedRange
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import CHUNKS, TextIndex

NOW = "2026-04-25T12:00:00Z"


@pytest.fixture
def db(tmp_path: object) -> Database:
    return Database.create(f"{tmp_path}/memory.db", NOW)


def write(db: Database, slug: str, text: str = "text") -> int:
    page = build_page(slug, {}, text, "")
    return db.write(lambda tx: page_edits.save(tx, page, uuid=slug, now=NOW, expected_version=None)).id


def embed(db: Database, model: str = "m") -> None:
    def work(tx: object) -> None:
        vectors.register_model(tx, model, 4, NOW)  # type: ignore[arg-type]
        vectors.activate_model(tx, model)  # type: ignore[arg-type]

    db.write(work)
    pairs = [
        (text.content_hash, struct.pack("<4f", 1, 2, 3, len(text.text)))
        for text in embedding_queue.pending_texts(db, model, 1000)
    ]
    db.write(lambda tx: vectors.keep_chunk_vectors(tx, model, pairs, NOW))


def test_an_empty_memory_lacks_nothing(db: Database) -> None:
    assert embedding_queue.embedded_range(db, EmbeddedRange()) == EmbeddedRange()


def test_a_chunk_without_a_vector_is_seen_and_one_with_it_is_passed(db: Database) -> None:
    write(db, "a")
    assert embedding_queue.embedded_range(db, EmbeddedRange()) is None
    embed(db)
    known = embedding_queue.embedded_range(db, EmbeddedRange())
    assert known == EmbeddedRange("m", TextIndex(db, CHUNKS).highest_id())
    assert known is not None
    assert embedding_queue.embedded_range(db, known) == known
    write(db, "b")
    assert embedding_queue.embedded_range(db, known) is None
    embed(db)
    assert embedding_queue.embedded_range(db, known) == EmbeddedRange("m", TextIndex(db, CHUNKS).highest_id())


def test_another_model_is_looked_at_from_the_beginning(db: Database) -> None:
    write(db, "a")
    embed(db)
    known = embedding_queue.embedded_range(db, EmbeddedRange())
    assert known

    def switch(tx: object) -> None:
        vectors.register_model(tx, "other", 4, NOW)  # type: ignore[arg-type]
        vectors.activate_model(tx, "other")  # type: ignore[arg-type]

    db.write(switch)
    assert embedding_queue.embedded_range(db, known) is None
    embed(db, "other")
    assert embedding_queue.embedded_range(db, known) == EmbeddedRange("other", known.chunk_id)


def test_a_page_that_is_not_cut_yet_lacks_everything(db: Database) -> None:
    page_id = write(db, "a")
    embed(db)
    db.write(lambda tx: chunks.leave_uncut(tx, page_id))
    assert embedding_queue.embedded_range(db, EmbeddedRange()) is None


def test_a_stamp_shows_who_wrote(db: Database) -> None:
    first = db.change_stamp()
    assert db.change_stamp() == first
    other = Database.open(db.path, NOW)
    write(other, "a")
    second = db.change_stamp()
    assert (second[0] != first[0], second[1]) == (True, first[1])
    write(db, "b")
    assert db.change_stamp()[1] != second[1]
    other.close()


def test_recent_pages_come_first_then_the_beginnings_of_all_then_the_rest(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_queue, "RECENT_PAGES", 1)
    pages = [write(db, f"p{number}", "## One\n\nfirst\n\n## Two\n\nsecond\n") for number in range(3)]
    db.write(lambda tx: vectors.register_model(tx, "m", 4, NOW))
    queue = embedding_queue.ChunkQueue(db, "m")
    places = chunks.places(db, queue.missing())
    newest, middle, oldest = reversed(pages)
    assert [places[chunk_id] for chunk_id in queue.missing()] == [
        (newest, 0),
        (newest, 1),
        (middle, 0),
        (oldest, 0),
        (middle, 1),
        (oldest, 1),
    ]
    assert queue.pages_begun() == 0
    some = [(text.content_hash, struct.pack("<4f", 1, 2, 3, 4)) for text in queue.texts(queue.missing()[:3])]
    db.write(lambda tx: vectors.keep_chunk_vectors(tx, "m", some, NOW))
    assert queue.pages_begun() == 2


def test_an_entry_without_a_vector_is_seen(db: Database) -> None:
    write(db, "a", "# Shops\n\n- The bakery at the harbour opens at six.\n- The library closes on Mondays.\n")
    embed(db)
    entries = embedding_queue.EntryQueue(db, "m")
    assert entries.count() == 2
    assert embedding_queue.embedded_range(db, EmbeddedRange()) is None
    pairs = [
        (text.content_hash, struct.pack("<4f", 1, 2, 3, len(text.text)))
        for text in entries.texts(entries.missing())
    ]
    db.write(lambda tx: vectors.keep_chunk_vectors(tx, "m", pairs, NOW))
    known = embedding_queue.embedded_range(db, EmbeddedRange())
    assert known is not None
    assert known.entry_id
    assert entries.count() == 0
