"""The vectors of turns: apart from those of pages, newest first, and gone with what was said."""

import numpy as np
import pytest

from quaid.model.page import build_page
from quaid.storage import checks, embedding_queue, page_edits, vectors
from quaid.storage.checks import rebuild_derived_rows
from quaid.storage.conversations import Conversations, NewTurn, TurnBatch
from quaid.storage.embedding_queue import TurnQueue
from quaid.storage.sqlite.connection import Database
from quaid.storage.vector_index import ChunkIndex, TurnIndex

NOW = "2026-04-25T12:00:00Z"
MODEL, WIDTH = "m", 64


@pytest.fixture
def db(tmp_path: object) -> Database:
    db = Database.create(f"{tmp_path}/memory.db", NOW)
    db.write(lambda tx: vectors.register_model(tx, MODEL, WIDTH, NOW))
    db.write(lambda tx: vectors.activate_model(tx, MODEL))
    return db


def say(db: Database, session: str, *texts: str, day: str = "2026-04-01") -> int:
    turns = [
        NewTurn("user", text, f"{day}T10:00:{at % 60:02}Z", f"{session}{at}") for at, text in enumerate(texts)
    ]
    return db.write(lambda tx: TurnBatch("plain", session, turns).save(tx, NOW, {}, anew=True)).conversation


def vector(content_hash: bytes) -> bytes:
    return np.random.default_rng(list(content_hash)).normal(size=WIDTH).astype("<f4").tobytes()


def embed(db: Database, limit: int | None = None) -> list[str]:
    """Make vectors of so many parts. The texts in the order of work."""
    queue = TurnQueue(db, MODEL)
    texts = queue.texts(queue.missing()[:limit])
    rows = [(text.content_hash, vector(text.content_hash)) for text in texts]
    db.write(lambda tx: queue.store(tx, rows, NOW))
    return [text.text for text in texts]


def near(db: Database, text: str, k: int = 1) -> list[tuple[int, float]]:
    """The turns nearest to what was said in one turn."""
    ((hash_,),) = db.rows(
        "SELECT DISTINCT p.content_hash FROM turn_parts p JOIN conversation_turns t ON t.id = p.turn_id"
        " WHERE t.text = ?",
        (text,),
    )
    query = np.frombuffer(vector(hash_), "<f4")
    return TurnIndex(db).nearest(MODEL, query / np.linalg.norm(query), k)


def wrong(db: Database) -> list[object]:
    return [*checks.run_checks(db, ("embeddings", "fts", "integrity"))]


def sentence(number: int) -> str:
    return f"Sentence number {number} of a talk about boats and islands."


def test_the_latest_conversation_comes_first_and_its_end_before_its_beginning(db: Database) -> None:
    say(db, "old", "What was said a long time ago.", day="2025-01-01")
    say(db, "new", "The first thing that was said today.", "And the second one, a little later.", "yes")
    assert embed(db) == [
        "user: And the second one, a little later.",
        "user: The first thing that was said today.",
        "user: What was said a long time ago.",
    ]
    assert TurnQueue(db, MODEL).coverage() == (3, 3)


def test_a_moment_leaves_older_conversations_out(db: Database) -> None:
    say(db, "old", "What was said a long time ago.", day="2025-01-01")
    say(db, "new", "The first thing that was said today.")
    assert TurnQueue(db, MODEL, "2026-01-01T00:00:00Z").count_turns() == 1
    assert TurnQueue(db, MODEL).count_turns() == 2
    assert len(TurnQueue(db, MODEL, "2026-01-01T00:00:00Z").missing()) == 1
    assert embedding_queue.has_missing_parts(db, MODEL, "2026-01-01T00:00:00Z", 0)
    assert not embedding_queue.has_missing_parts(db, MODEL, "2027-01-01T00:00:00Z", 0)


def test_turns_with_the_same_text_share_one_vector(db: Database) -> None:
    say(db, "a", sentence(1), sentence(2))
    say(db, "b", sentence(1))
    assert len(embed(db)) == 2
    assert [score for _, score in near(db, sentence(1), 2)] == pytest.approx([1, 1], abs=1e-3)


@pytest.mark.parametrize("count", [20, 3_000])
def test_the_nearest_is_found_among_few_and_among_many(db: Database, count: int) -> None:
    say(db, "a", *[sentence(number) for number in range(count)])
    embed(db)
    for number in (0, count // 2, count - 1):
        ((turn, score),) = near(db, sentence(number))
        assert turn == number + 1
        assert score == pytest.approx(1, abs=1e-3)
    assert wrong(db) == []


def test_turns_are_not_among_chunks_and_their_mean_is_their_own(db: Database) -> None:
    page = build_page("p", {}, "A page about boats.", "")
    db.write(lambda tx: page_edits.save(tx, page, uuid="p", now=NOW, expected_version=None))
    pairs = [
        (text.content_hash, vector(text.content_hash)) for text in embedding_queue.pending_texts(db, MODEL, 9)
    ]
    db.write(lambda tx: vectors.keep_chunk_vectors(tx, MODEL, pairs, NOW))
    query = np.ones(WIDTH, np.float32)
    before = ChunkIndex(db).nearest(MODEL, query, 1_000), float(ChunkIndex(db).mean(MODEL)[0] @ query)
    say(db, "a", *[sentence(number) for number in range(400)])
    embed(db)
    assert (
        ChunkIndex(db).nearest(MODEL, query, 1_000),
        float(ChunkIndex(db).mean(MODEL)[0] @ query),
    ) == before
    assert len(before[0]) == 1
    assert len(TurnIndex(db).nearest(MODEL, query, 1_000)) == 400
    assert embedding_queue.ChunkQueue(db, MODEL).coverage() == (1, 1)
    assert db.rows("SELECT count(*) FROM page_embeddings") == [(1,)]


def test_a_conversation_takes_the_vectors_along_that_no_other_needs(db: Database) -> None:
    say(db, "a", *[sentence(number) for number in range(300)])
    say(db, "b", sentence(7), "Something that only this conversation has.")
    embed(db)
    index = TurnIndex(db)
    query = np.ones(WIDTH, np.float32)
    index.nearest(MODEL, query, 10)
    (conversation,) = Conversations(db).with_session("a")
    db.write(lambda tx: conversation.remove(tx, NOW))
    assert db.rows("SELECT count(*) FROM turn_vectors") == [(2,)]
    assert TurnQueue(db, MODEL).coverage() == (2, 2)
    assert len(index.nearest(MODEL, query, 10)) == 2  # whoever held them in memory lets go, too
    assert wrong(db) == []


def test_a_vector_that_comes_after_its_conversation_went_is_not_kept(db: Database) -> None:
    say(db, "a", sentence(1))
    queue = TurnQueue(db, MODEL)
    (waiting,) = queue.texts(queue.missing())
    (conversation,) = Conversations(db).with_session("a")
    db.write(lambda tx: conversation.remove(tx, NOW))
    result = [(waiting.content_hash, vector(waiting.content_hash))]
    assert db.write(lambda tx: queue.store(tx, result, NOW)) == 0
    assert db.rows("SELECT 1 FROM turn_vectors") == []


def test_turns_added_while_an_index_is_loaded_are_found(db: Database) -> None:
    say(db, "a", *[sentence(number) for number in range(10)])
    embed(db, 5)
    index, query = TurnIndex(db), np.ones(WIDTH, np.float32)
    model = vectors.find_model(db, MODEL)
    assert model is not None
    for _ in range(2):
        assert len(index.nearest(MODEL, query, 100)) == 5
        assert index.made(model) == (5, 10)
    embed(db)
    assert len(index.nearest(MODEL, query, 100)) == 10
    assert index.made(model) == (10, 10)


def test_parts_and_codes_burn_and_come_back(db: Database) -> None:
    say(db, "a", *[sentence(number) for number in range(300)], "no", "A long one. " * 400)
    embed(db)
    parts = "SELECT turn_id, part, start_at, end_at, content_hash FROM turn_parts ORDER BY 1, 2"
    kept = (
        db.rows(parts),
        db.rows("SELECT * FROM turn_codes"),
        db.rows("SELECT model, mean FROM turn_encodings"),
    )
    db.write(lambda tx: tx.execute("DELETE FROM turn_parts"))
    db.write(lambda tx: tx.execute("DELETE FROM turn_codes"))
    assert len(wrong(db)) > 300
    db.write(rebuild_derived_rows)
    assert kept == (
        db.rows(parts),
        db.rows("SELECT * FROM turn_codes"),
        db.rows("SELECT model, mean FROM turn_encodings"),
    )
    assert wrong(db) == []
    assert TurnQueue(db, MODEL).missing() == []
