"""Whether vectors are missing, asked again and again."""

import struct

import pytest

from quaid.model.page import build_page
from quaid.store import chunks, pages, vectors, wanting
from quaid.store.db import Database
from quaid.store.wanting import Whole

NOW = "2026-04-25T12:00:00Z"


@pytest.fixture
def db(tmp_path: object) -> Database:
    return Database.create(f"{tmp_path}/memory.db", NOW)


def write(db: Database, slug: str, text: str = "text") -> int:
    page = build_page(slug, {}, text, "")
    return db.write(lambda tx: pages.save(tx, page, uuid=slug, now=NOW, expected_version=None)).id


def embed(db: Database, model: str = "m") -> None:
    def work(tx: object) -> None:
        vectors.register(tx, model, 4, NOW)  # type: ignore[arg-type]
        vectors.activate(tx, model)  # type: ignore[arg-type]

    db.write(work)
    found = [
        (each.content_hash, struct.pack("<4f", 1, 2, 3, len(each.text)))
        for each in vectors.missing(db, model, 1000)
    ]
    db.write(lambda tx: vectors.keep(tx, model, found, NOW))


def test_an_empty_memory_lacks_nothing(db: Database) -> None:
    assert wanting.whole(db, Whole()) == Whole()


def test_a_chunk_without_a_vector_is_seen_and_one_with_it_is_passed(db: Database) -> None:
    write(db, "a")
    assert wanting.whole(db, Whole()) is None
    embed(db)
    known = wanting.whole(db, Whole())
    assert known == Whole("m", chunks.highest_id(db))
    assert known is not None
    assert wanting.whole(db, known) == known
    write(db, "b")
    assert wanting.whole(db, known) is None
    embed(db)
    assert wanting.whole(db, known) == Whole("m", chunks.highest_id(db))


def test_another_model_is_looked_at_from_the_beginning(db: Database) -> None:
    write(db, "a")
    embed(db)
    known = wanting.whole(db, Whole())
    assert known

    def switch(tx: object) -> None:
        vectors.register(tx, "other", 4, NOW)  # type: ignore[arg-type]
        vectors.activate(tx, "other")  # type: ignore[arg-type]

    db.write(switch)
    assert wanting.whole(db, known) is None
    embed(db, "other")
    assert wanting.whole(db, known) == Whole("other", known.chunk_id)


def test_a_page_that_is_not_cut_yet_lacks_everything(db: Database) -> None:
    page_id = write(db, "a")
    embed(db)
    db.write(lambda tx: chunks.forget(tx, page_id))
    assert wanting.whole(db, Whole()) is None


def test_a_stamp_shows_who_wrote(db: Database) -> None:
    first = wanting.stamp(db)
    assert wanting.stamp(db) == first
    other = Database.open(db.path, NOW)
    write(other, "a")
    second = wanting.stamp(db)
    assert (second.others != first.others, second.own) == (True, first.own)
    write(db, "b")
    assert wanting.stamp(db).own != second.own
    other.close()
