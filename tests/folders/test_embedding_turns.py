"""The backfill embeds turns of conversations after all pages have vectors."""

import pytest
from tests.folders.test_embedding import NOW, Hashes, Picky, now, quiet, write

from quaid.embedding.backfill import BATCH_SIZE, MAX_INLINE_CHUNKS, Backfill
from quaid.errors import EmbedderUnavailable
from quaid.storage import embedding_queue, vectors
from quaid.storage.conversations import Conversations, NewTurn, TurnBatch
from quaid.storage.embedding_queue import EmbeddedRange
from quaid.storage.sqlite.connection import Database


@pytest.fixture
def db(tmp_path: object) -> Database:
    return Database.create(f"{tmp_path}/memory.db", NOW)


def say(db: Database, session: str, *texts: str, day: str = "2026-04-01") -> None:
    turns = [NewTurn("user", text, f"{day}T10:00:00Z", f"{at}") for at, text in enumerate(texts)]
    db.write(lambda tx: TurnBatch("plain", session, turns).save(tx, NOW, {}, anew=True))


def sentences(count: int) -> list[str]:
    return [f"Sentence number {number} about the boats of the island." for number in range(count)]


def test_pages_come_first_and_turns_are_counted_apart(db: Database) -> None:
    say(db, "a", *sentences(40), "yes")
    write(db, 3)
    model = Hashes()
    filled = Backfill(db, model, now, quiet).run(turns_since="")
    assert filled is not None
    assert (filled.embedded, filled.total, filled.turns, filled.turns_left) == (3, 3, 40, 0)
    assert all("text" in text for text in model.seen[:3])
    assert all(text.startswith("user: Sentence") for text in model.seen[3:])
    again = Backfill(db, model, now, quiet).run(turns_since="")
    assert again is not None
    assert (again.turns, len(model.seen)) == (0, 43)


def test_turns_are_embedded_only_if_wanted(db: Database) -> None:
    say(db, "a", *sentences(2))
    say(db, "old", "What was said a long time ago.", day="2020-01-01")
    model = Hashes()
    for since, seen in ((None, 0), ("2026-01-01T00:00:00Z", 2), ("", 3)):
        Backfill(db, model, now, quiet).run(turns_since=since)
        assert len(model.seen) == seen


def test_a_stop_loses_at_most_a_batch(db: Database) -> None:
    say(db, "a", *sentences(3 * BATCH_SIZE))
    with pytest.raises(ConnectionError):
        Backfill(db, Hashes(works_for=2 * BATCH_SIZE), now, quiet).embed_turns()
    assert embedding_queue.TurnQueue(db, "hashes").coverage() == (2 * BATCH_SIZE, 3 * BATCH_SIZE)
    assert Backfill(db, Hashes(), now, quiet).embed_turns().turns == BATCH_SIZE


def test_rejected_turn_is_named_by_its_conversation(db: Database) -> None:
    say(db, "a", *sentences(5), "This is a bad sentence about boats.")
    filled = Backfill(db, Picky(), now, quiet).run(turns_since="")
    assert filled is not None
    assert (filled.turns, filled.turns_left, filled.failed, filled.failures) == (5, 1, 1, ("plain:a",))
    trouble = embedding_queue.last_failure(db.path)
    assert trouble is not None
    assert trouble.problem == "it gives nothing usable for 1 chunk (plain:a)"


def test_few_missing_turns_are_embedded_and_many_are_not(db: Database) -> None:
    model = Hashes()
    say(db, "a", *sentences(1))
    assert Backfill(db, model, now, quiet).embed_few("") == 0  # no model is in use yet
    Backfill(db, model, now, quiet).embed_turns()
    say(db, "b", *[f"{text} Again." for text in sentences(MAX_INLINE_CHUNKS)])
    assert Backfill(db, model, now, quiet).embed_few("") == MAX_INLINE_CHUNKS
    say(db, "c", *[f"{text} Once more." for text in sentences(MAX_INLINE_CHUNKS + 1)])
    assert Backfill(db, model, now, quiet).embed_few("") == 0
    assert len(model.seen) == 1 + MAX_INLINE_CHUNKS


def test_few_long_turns_are_not_embedded(db: Database) -> None:
    model = Hashes()
    say(db, "a", *sentences(1))
    Backfill(db, model, now, quiet).embed_turns()
    say(db, "b", "A very long sentence, again and again. " * 500)
    assert Backfill(db, model, now, quiet).embed_few("") == 0


def test_a_model_that_is_down_is_reported_and_finished_vectors_are_kept(db: Database) -> None:
    class Down(Hashes):
        def embed_passages(self, texts: object) -> list[bytes]:
            raise EmbedderUnavailable(name=self.name, problem="it is away", remedy="Wait")

    say(db, "a", *sentences(2))
    with pytest.raises(EmbedderUnavailable):
        Backfill(db, Down(), now, quiet).run(turns_since="")
    trouble = embedding_queue.last_failure(db.path)
    assert trouble is not None
    assert trouble.down


# Whether there is something to do


def test_missing_turns_are_detected_within_the_scope(db: Database) -> None:
    everything, recent = "", "2026-01-01T00:00:00Z"
    say(db, "old", "What was said a long time ago.", day="2020-01-01")
    assert embedding_queue.embedded_range(db, EmbeddedRange()) == EmbeddedRange()
    assert embedding_queue.embedded_range(db, EmbeddedRange(), everything) is None
    say(db, "a", *sentences(2))
    Backfill(db, Hashes(), now, quiet).embed_turns(since=recent)
    known = embedding_queue.embedded_range(db, EmbeddedRange(), recent)
    assert known == EmbeddedRange("hashes", 0, embedding_queue.highest_part_id(db), "recent")
    assert known is not None
    assert (
        embedding_queue.embedded_range(db, known, everything) is None
    )  # another wish is looked at from the beginning
    say(db, "b", "Something new about the boats.")
    assert embedding_queue.embedded_range(db, known, recent) is None


def test_reused_ids_do_not_hide_a_missing_turn(db: Database) -> None:
    everything = ""
    say(db, "a", *sentences(3))
    Backfill(db, Hashes(), now, quiet).embed_turns()
    known = embedding_queue.embedded_range(db, EmbeddedRange(), everything)
    assert known is not None
    (conversation,) = Conversations(db).with_session("a")
    db.write(lambda tx: conversation.remove(tx, NOW))
    say(db, "b", "Other words on the same rows of the table.")
    assert embedding_queue.embedded_range(db, known, everything) is None
    assert vectors.active_model(db) is not None
