"""The backfill embeds chunks without a vector in batches; an interruption loses at most one batch."""

import hashlib
import os
import struct
import subprocess
import sys
from collections.abc import Sequence

import pytest

from quaid.embedding import backfill
from quaid.embedding.backfill import (
    BATCH_SIZE,
    MAX_INLINE_CHUNKS,
    MAX_INLINE_TOKENS,
    Backfill,
    BackfillReport,
)
from quaid.errors import Cancelled, EmbedderUnavailable, InvalidArgument
from quaid.model import dates
from quaid.model.page import build_page
from quaid.storage import chunks, embedding_queue, page_edits, vectors
from quaid.storage.embedding_queue import EmbeddingFailure
from quaid.storage.leases import Lease
from quaid.storage.sqlite.connection import Database

NOW = "2026-04-25T12:00:00Z"


class Hashes:
    """A model whose vectors are hashes of the text; it may stop working."""

    dimensions, max_tokens = 8, 512
    query_prefix = passage_prefix = ""

    def __init__(self, name: str = "hashes", works_for: int = 10**9) -> None:
        self.name = name
        self.works_for = works_for
        self.seen: list[str] = []

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        if len(self.seen) + len(texts) > self.works_for:
            raise ConnectionError("the model has gone")
        self.seen += texts
        return [self.vector(text) for text in texts]

    def embed_query(self, text: str) -> bytes:
        return self.vector(text)

    def ready(self) -> None:
        return None

    health = ready

    def vector(self, text: str) -> bytes:
        return struct.pack("<8f", *(byte - 100 for byte in hashlib.sha256(text.encode()).digest()[:8]))


class Picky(Hashes):
    def vector(self, text: str) -> bytes:
        return bytes(32) if "bad" in text else super().vector(text)


def now() -> str:
    return NOW


def quiet(done: int, total: int, what: str) -> None:
    assert 0 <= done <= total
    assert what


def write(db: Database, count: int, text: str = "text") -> None:
    for number in range(count):
        page = build_page(f"p{number}", {}, f"{text} {number}", "")
        db.write(lambda tx: page_edits.save(tx, page, uuid=page.slug, now=NOW, expected_version=None))  # noqa: B023


@pytest.fixture
def db(tmp_path: object) -> Database:
    return Database.create(f"{tmp_path}/memory.db", NOW)


def test_everything_gets_a_vector_once(db: Database) -> None:
    write(db, 70)
    model = Hashes()
    assert Backfill(db, model, now, quiet).embed_chunks() == BackfillReport(
        embedded=70, cached=0, total=70, failed=0
    )
    assert Backfill(db, model, now, quiet).embed_chunks() == BackfillReport(
        embedded=0, cached=70, total=70, failed=0
    )
    assert len(model.seen) == 70
    active = vectors.active_model(db)
    assert active is not None
    assert active.name == "hashes"


def test_only_changed_chunks_are_embedded_again(db: Database) -> None:
    write(db, 5)
    model = Hashes()
    Backfill(db, model, now, quiet).embed_chunks()
    write(db, 2, "other")
    assert Backfill(db, model, now, quiet).embed_chunks() == BackfillReport(
        embedded=2, cached=3, total=5, failed=0
    )
    write(db, 2)  # as before: the vectors are still there
    assert Backfill(db, model, now, quiet).embed_chunks().embedded == 0


def test_a_second_model_is_filled_beside_the_active_one(db: Database) -> None:
    write(db, 3)
    Backfill(db, Hashes("first"), now, quiet).embed_chunks()
    assert Backfill(db, Hashes("second"), now, quiet).embed_chunks().embedded == 3
    active = vectors.active_model(db)
    assert active is not None
    assert active.name == "first"


def test_a_failing_model_keeps_the_finished_vectors(db: Database) -> None:
    write(db, 3 * BATCH_SIZE)
    with pytest.raises(ConnectionError):
        Backfill(db, Hashes(works_for=2 * BATCH_SIZE), now, quiet).embed_chunks()
    assert embedding_queue.ChunkQueue(db, "hashes").coverage() == (2 * BATCH_SIZE, 3 * BATCH_SIZE)
    assert Backfill(db, Hashes(), now, quiet).embed_chunks().embedded == BATCH_SIZE


def test_stopped_backfill_resumes(db: Database) -> None:
    write(db, 3 * BATCH_SIZE)

    def stop(done: int, total: int, what: str) -> None:
        if done:
            raise Cancelled

    with pytest.raises(Cancelled):
        Backfill(db, Hashes(), now, stop).embed_chunks()
    model = Hashes()
    assert Backfill(db, model, now, quiet).embed_chunks().embedded == len(model.seen) == 2 * BATCH_SIZE


KILLED = """
import sys, time
from quaid.storage.sqlite.connection import Database
from quaid.embedding.backfill import BATCH_SIZE, Backfill
from tests.folders.test_embedding import NOW, Hashes

def told(done, total, what):
    print(done, flush=True)
    if done >= 4 * BATCH_SIZE:
        time.sleep(60)  # however late the kill comes, it comes before the end

class Slow(Hashes):
    def embed_passages(self, texts):
        time.sleep(0.05)
        return super().embed_passages(texts)

Backfill(Database.open(sys.argv[1], NOW), Slow(), lambda: NOW, told).embed_chunks()
"""


def test_killed_backfill_loses_at_most_one_batch(db: Database) -> None:
    write(db, 6 * BATCH_SIZE)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, db.path], stdout=subprocess.PIPE, text=True, env=environ
    ) as process:
        assert process.stdout
        heard = next(int(line) for line in process.stdout if int(line) >= 2 * BATCH_SIZE)
        process.kill()
        output = [heard, *(int(line) for line in process.stdout)]
    kept = embedding_queue.ChunkQueue(db, "hashes").coverage()[0]
    assert output[-1] <= kept < 6 * BATCH_SIZE
    model = Hashes()
    assert Backfill(db, model, now, quiet).embed_chunks().embedded == len(model.seen) == 6 * BATCH_SIZE - kept


def test_the_newest_page_comes_first_and_of_an_import_the_one_with_most_links(db: Database) -> None:
    def save(slug: str, text: str, moment: str) -> None:
        page = build_page(slug, {}, text, "")
        db.write(
            lambda tx: page_edits.save(tx, page, uuid=slug, now=moment, expected_version=None, cut=False),
        )

    for number in range(2 * BATCH_SIZE):
        save(f"p{number}", f"text {number}, see [[p{7 if number % 2 else 9 if number % 4 else number}]]", NOW)
    save("older", "an older one, though [[p7]] is named", "2026-04-24T12:00:00Z")
    save("newer", "a newer one", "2026-04-25T12:00:01Z")
    model = Hashes(works_for=BATCH_SIZE)
    with pytest.raises(ConnectionError):
        Backfill(db, model, now, quiet).embed_chunks()
    first = [text.splitlines()[-1] for text in model.seen]
    assert first[0].endswith("a newer one")
    assert [text.partition("text ")[2].partition(",")[0] for text in first[1:3]] == ["7", "9"]
    assert embedding_queue.ChunkQueue(db, "hashes").coverage() == (BATCH_SIZE, 2 * BATCH_SIZE + 2)
    again = Hashes()
    Backfill(db, again, now, quiet).embed_chunks()
    assert "an older one" in again.seen[-1]


def test_unusable_vectors_are_counted_and_not_kept(db: Database) -> None:
    write(db, 2)
    write(db, 1, "bad")
    assert Backfill(db, Picky(), now, quiet).embed_chunks() == BackfillReport(1, 0, 2, 1, ("p0",))
    assert embedding_queue.ChunkQueue(db, "hashes").coverage() == (1, 2)


def test_a_model_that_changed_its_width_is_refused(db: Database) -> None:
    write(db, 1)
    Backfill(db, Hashes(), now, quiet).embed_chunks()
    wide = Hashes()
    wide.dimensions = 16
    with pytest.raises(InvalidArgument):
        Backfill(db, wide, now, quiet).embed_chunks()


def test_single_pages_and_a_limited_number(db: Database) -> None:
    write(db, 10)
    assert Backfill(db, Hashes(), now, quiet).embed_chunks(slugs=["p3", "none"]).embedded == 1
    assert Backfill(db, Hashes(), now, quiet).embed_chunks(limit=4).embedded == 4
    assert embedding_queue.ChunkQueue(db, "hashes").coverage() == (5, 10)


def test_two_concurrent_backfills_give_correct_vectors(db: Database) -> None:
    write(db, 2 * BATCH_SIZE)
    other = Database.open(db.path, NOW)

    class Overtaken(Hashes):
        def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
            Backfill(other, Hashes(), now, quiet).embed_chunks()
            return super().embed_passages(texts)

    slow = Overtaken()
    Backfill(db, slow, now, quiet).embed_chunks()
    assert len(slow.seen) == BATCH_SIZE
    assert embedding_queue.ChunkQueue(db, "hashes").coverage() == (2 * BATCH_SIZE, 2 * BATCH_SIZE)
    assert db.rows("SELECT count(*) FROM page_embeddings_vec_8") == [(2 * BATCH_SIZE,)]
    other.close()


class Touchy(Hashes):
    """A model that refuses whole batches for one text that it cannot stand; `down` refuses all."""

    down = False

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        if self.down or any("poison" in text for text in texts):
            raise EmbedderUnavailable(name=self.name, problem="it chokes", remedy="Try another")
        return super().embed_passages(texts)


def test_rejected_text_is_skipped(db: Database) -> None:
    write(db, BATCH_SIZE + 5)
    write(db, 1, "poison")
    assert Backfill(db, Touchy(), now, quiet).embed_chunks().failed == 1
    assert embedding_queue.ChunkQueue(db, "hashes").coverage() == (BATCH_SIZE + 4, BATCH_SIZE + 5)


def test_several_rejected_texts_are_named_and_skipped(db: Database) -> None:
    write(db, 3 * BATCH_SIZE)
    write(db, 2, "poison")
    for _ in range(2):
        filled = Backfill(db, Touchy(), now, quiet).embed_chunks()
        assert (filled.failed, filled.failures) == (2, ("p0", "p1"))
        assert embedding_queue.ChunkQueue(db, "hashes").coverage() == (3 * BATCH_SIZE - 2, 3 * BATCH_SIZE)
    Backfill(db, Touchy(), now, quiet).run()
    failure = embedding_queue.last_failure(db.path)
    assert failure == EmbeddingFailure("hashes", "it gives nothing usable for 2 chunks (p0, p1)", NOW)


def test_single_rejected_text_does_not_mean_that_the_model_is_down(db: Database) -> None:
    write(db, 1, "poison")
    assert Backfill(db, Touchy(), now, quiet).embed_chunks() == BackfillReport(0, 0, 1, 1, ("p0",))


def test_vectors_made_before_the_model_went_down_are_kept(db: Database) -> None:
    write(db, BATCH_SIZE)
    write(db, 1, "poison")

    class Dying(Touchy):
        def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
            self.down = self.down or len(self.seen) >= 5
            return super().embed_passages(texts)

    with pytest.raises(EmbedderUnavailable):
        Backfill(db, Dying(), now, quiet).embed_chunks()
    assert embedding_queue.ChunkQueue(db, "hashes").coverage()[0] >= 4


def test_model_that_refuses_nearly_all_texts_is_unusable(db: Database) -> None:
    write(db, 4 * BATCH_SIZE, "poison")
    with pytest.raises(EmbedderUnavailable, match="refuses nearly every text"):
        Backfill(db, Touchy(), now, quiet).embed_chunks()


def test_model_that_is_down_is_tried_a_few_times(db: Database) -> None:
    write(db, BATCH_SIZE)

    class Counted(Touchy):
        tries = 0

        def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
            self.tries += 1
            return super().embed_passages(texts)

    model = Counted()
    model.down = True
    with pytest.raises(EmbedderUnavailable):
        Backfill(db, model, now, quiet).embed_chunks()
    assert model.tries <= 3


def test_run_records_and_clears_failures(db: Database) -> None:
    write(db, 3)
    model = Touchy()
    model.down = True
    with pytest.raises(EmbedderUnavailable):
        Backfill(db, model, now, quiet).run()
    assert embedding_queue.last_failure(db.path) == EmbeddingFailure("hashes", "it chokes", NOW, down=True)
    model.down = False
    assert Backfill(db, model, now, quiet).run() == BackfillReport(3, 0, 3, 0)
    assert embedding_queue.last_failure(db.path) is None
    write(db, 1, "poison")
    Backfill(db, Picky(), now, quiet).run()
    write(db, 1, "bad")
    Backfill(db, Picky(), now, quiet).run()
    failure = embedding_queue.last_failure(db.path)
    assert failure == EmbeddingFailure("hashes", "it gives nothing usable for 1 chunk (p0)", NOW)


def test_run_waits_for_the_lease_only_if_patient(db: Database) -> None:
    write(db, 2)
    other = Lease(db.path, embedding_queue.LEASE)
    assert other.try_take()
    assert Backfill(db, Hashes(), now, quiet).run(patient=False) is None
    messages = []

    def report(done: int, total: int, what: str) -> None:
        messages.append(what)
        other.release()

    assert Backfill(db, Hashes(), now, report).run() == BackfillReport(2, 0, 2, 0)
    assert messages[0] == "Another process makes vectors"


def test_cancelled_run_releases_the_lease_and_records_no_failure(db: Database) -> None:
    write(db, 2)

    def stop(done: int, total: int, what: str) -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        Backfill(db, Hashes(), now, stop).run()
    assert embedding_queue.last_failure(db.path) is None
    assert Lease(db.path, embedding_queue.LEASE).try_take()


def test_few_missing_chunks_are_embedded_at_once_and_more_in_several_steps(db: Database) -> None:
    assert Backfill(db, Hashes(), now, quiet).embed_few() == 0
    write(db, MAX_INLINE_CHUNKS)
    assert Backfill(db, Hashes(), now, quiet).embed_few() == MAX_INLINE_CHUNKS
    assert Backfill(db, Hashes(), now, quiet).embed_few() == 0
    write(db, MAX_INLINE_CHUNKS + 1, "other")
    assert Backfill(db, Hashes(), now, quiet).embed_few() == MAX_INLINE_CHUNKS
    assert Backfill(db, Hashes(), now, quiet).embed_few() == 1
    assert embedding_queue.ChunkQueue(db, "hashes").coverage() == (
        MAX_INLINE_CHUNKS + 1,
        MAX_INLINE_CHUNKS + 1,
    )


def test_while_many_chunks_are_missing_only_those_written_since_are_embedded(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "MAX_BACKLOG", 20)
    first = build_page("first", {}, "# First\n\nEmbedded.", "")
    db.write(lambda tx: page_edits.save(tx, first, uuid="first", now=NOW, expected_version=None))
    Backfill(db, Hashes(), now, quiet).embed_chunks()
    write(db, 60, "imported")
    fill = Backfill(db, Hashes(), now, quiet)
    assert fill.embed_few(recent=dates.shift_date(NOW[:10], 1)) == 0  # not recent
    newest = chunks.highest_id(db)
    assert fill.checked_up_to == newest
    page = build_page("written", {}, "# Written\n\nJust now.", "")
    db.write(lambda tx: page_edits.save(tx, page, uuid="written", now=NOW, expected_version=None))
    assert fill.embed_few(after=newest, recent=NOW) == 1
    assert fill.embed_few(after=fill.checked_up_to, recent=NOW) == 0
    assert embedding_queue.ChunkQueue(db, "hashes").newest(newest, "", 5) == []


def test_the_beginning_of_the_newest_page_is_embedded_first(db: Database) -> None:
    write(db, 1, "first")
    Backfill(db, Hashes(), now, quiet).embed_chunks()
    write(db, 3, "older")
    sections = "\n\n".join(f"## Part {number}\n\nText of part {number}." for number in range(30))
    page = build_page("long", {}, f"# Long\n\n{sections}", "")
    db.write(lambda tx: page_edits.save(tx, page, uuid="long", now=NOW, expected_version=None))
    assert Backfill(db, Hashes(), now, quiet).embed_few() == MAX_INLINE_CHUNKS
    left = [chunk_id for chunk_id, _ in embedding_queue.ChunkQueue(db, "hashes").newest(0, "", 100)]
    pages: dict[int, str] = dict(
        db.rows("SELECT c.id, p.slug FROM chunks AS c JOIN pages AS p ON p.id = c.page_id")
    )
    of_long = sorted(chunk_id for chunk_id, slug in pages.items() if slug == "long")
    assert [chunk_id for chunk_id in left if pages[chunk_id] == "long"] == of_long[MAX_INLINE_CHUNKS:]


def test_only_the_first_of_long_chunks_are_embedded(db: Database) -> None:
    write(db, 1, " ".join(f"word{number}" for number in range(2 * MAX_INLINE_TOKENS)))
    embedded = Backfill(db, Hashes(), now, quiet).embed_few()
    queue = embedding_queue.ChunkQueue(db, "hashes")
    made, total = queue.coverage()
    assert 0 < made == embedded < total
    assert queue.tokens(None) - sum(tokens for _, tokens in queue.newest(0, "", total)) <= MAX_INLINE_TOKENS


def test_a_query_after_a_large_import_embeds_none_of_its_chunks(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill, "MAX_BACKLOG", 20)
    pages = [build_page(f"old/{number}", {}, f"# Old {number}", "") for number in range(chunks.MANY_PAGES)]
    for page in pages:
        db.write(
            lambda tx, page=page: page_edits.save(  # type: ignore[misc]
                tx, page, uuid=page.slug, now=NOW, expected_version=None, cut=False
            )
        )
    chunks.cut_pages(db, quiet)
    assert Backfill(db, Hashes(), now, quiet).embed_few(recent=NOW) == 0
    write(db, 1, "written by hand")
    assert Backfill(db, Hashes(), now, quiet).embed_few(recent=NOW) == 1


def test_embed_few_uses_only_the_active_model(db: Database) -> None:
    write(db, 1)
    Backfill(db, Hashes(), now, quiet).embed_chunks()
    write(db, 1, "other")
    assert Backfill(db, Hashes("second"), now, quiet).embed_few() == 0
