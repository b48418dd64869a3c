"""When vectors are made without being asked, and when they are not."""

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from quaid import worker
from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import EmbedderUnavailable
from quaid.operations import background, dispatch
from quaid.operations.background import RETRY_SECONDS
from quaid.storage import embedding_queue, vectors
from quaid.storage.leases import Lease
from quaid.worker import EmbeddingMonitor

NOON = 1_777_118_400.0


class Clock:
    time = NOON

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def brain(settings: Settings, clock: Clock) -> Iterator[Brain]:
    with Brain(settings._replace(environ={}), clock=clock) as brain:
        brain.create(settings.db_path)
        yield brain


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def put(brain: Brain, slug: str = "a") -> None:
    run(brain, "put", slug=slug, content=f"# {slug}\n\nText of {slug}.")


def test_embedding_is_started_once_for_each_state(brain: Brain) -> None:
    watch = EmbeddingMonitor()
    assert not watch.wants(brain)
    put(brain)
    assert watch.wants(brain)
    assert not watch.wants(brain)  # whoever was sent changed nothing, and would again change nothing
    put(brain, "b")
    assert watch.wants(brain)
    run(brain, "embed")
    assert not watch.wants(brain)


def test_unused_vectors_are_deleted_when_they_outnumber_the_others(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors.unused_contents, "__defaults__", (4,))
    monkeypatch.setattr(vectors, "DELETE_BATCH", 2)
    put(brain, "kept")
    for number in range(8):
        page = run(brain, "get", slug="a") if number else None
        version = {"expected_version": page.version} if page else {}
        run(brain, "put", slug="a", content=f"# A\n\nText number {number}.", **version)
        run(brain, "embed")
    table = vectors.active_model(brain.db).vec_table  # type: ignore[union-attr]
    assert brain.db.one(f"SELECT count(*) FROM {table}") == (9,)
    background.embed_missing(brain)
    assert brain.db.one(f"SELECT count(*) FROM {table}") == (2,)
    assert run(brain, "query", question="text number 7").results[0].slug == "a"
    assert run(brain, "validate").violations == ()
    run(brain, "put", slug="b", content="# B\n\nOne more.")
    background.embed_missing(brain)
    assert brain.db.one(f"SELECT count(*) FROM {table}") == (3,)


def test_writes_of_other_processes_start_embedding(brain: Brain, settings: Settings) -> None:
    watch = EmbeddingMonitor()
    assert not watch.wants(brain)
    with Brain(settings) as other:
        put(other)
    assert watch.wants(brain)


def test_embedding_is_not_started_while_another_process_embeds(brain: Brain) -> None:
    put(brain)
    lease = Lease(brain.db.path, embedding_queue.LEASE)
    assert lease.try_take()
    lease.hold(model="m", since=brain.now())
    watch = EmbeddingMonitor()
    assert not watch.wants(brain)
    lease.release()
    assert watch.wants(brain)


def test_failed_model_is_retried_after_a_write_or_ten_minutes(brain: Brain, clock: Clock) -> None:
    put(brain)
    watch = EmbeddingMonitor()
    assert watch.wants(brain)
    background.record_failure(brain, "m", "it hangs")
    assert not watch.wants(brain)
    put(brain, "b")
    assert watch.wants(brain)
    assert not watch.wants(brain)
    clock.time += RETRY_SECONDS - 1
    assert not watch.wants(brain)
    clock.time += 2
    assert watch.wants(brain)


def test_exit_of_a_worker_does_not_replace_its_recorded_failure(brain: Brain) -> None:
    background.record_failure(brain, "m", "the reason")
    worker._record_failure(brain, "embed", "ended with status 1")
    failure = embedding_queue.last_failure(brain.db.path)
    assert failure
    assert failure.problem == "the reason"


@pytest.mark.parametrize(
    ("variable", "setting", "on"),
    [
        (None, None, True),
        (None, "off", False),
        (None, "on", True),
        ("off", "on", False),
        ("on", "off", True),
        ("", "off", False),
    ],
)
def test_the_environment_comes_before_the_setting(
    brain: Brain, variable: str | None, setting: str | None, on: bool
) -> None:
    if setting:
        run(brain, "config set", key="background_embedding", value=setting)
        assert run(brain, "config get", key="background_embedding").value == setting
    if variable is not None:
        brain.settings = brain.settings._replace(environ={"QUAID_BACKGROUND_EMBEDDING": variable})
    assert background.is_embedding_on(brain) == on
    put(brain)
    assert EmbeddingMonitor().wants(brain) == on


def test_unknown_model_is_recorded_as_failure(brain: Brain) -> None:
    brain.db.write(lambda tx: tx.execute("INSERT INTO config VALUES ('embedding_model', 'gone')"))
    background.embed_missing(brain)
    failure = embedding_queue.last_failure(brain.db.path)
    assert failure
    assert failure.problem.startswith("There is no model 'gone'")


# Questions


def test_new_page_is_found_by_meaning(brain: Brain) -> None:
    run(brain, "put", slug="a", content="# A\n\nThe physician prescribed rest.")
    run(brain, "put", slug="b", content="# B\n\nConcrete sets in a day.")
    answer = run(brain, "query", question="what did the doctor say?")
    assert (answer.results[0].slug, answer.notes) == ("a", ())
    assert answer.results[0].lane in ("meaning", "both")
    assert embedding_queue.ChunkQueue(brain.db, "bge-small-en-v1.5").coverage() == (2, 2)
    run(brain, "config set", key="background_embedding", value="off")
    put(brain, "c")
    assert run(brain, "query", question="what did the doctor say?").notes == (
        "2 of 3 chunks have vectors; `quaid embed` makes the others",
    )


class Down:
    """The built-in model's name, and nothing behind it."""

    name, dimensions, max_tokens, query_prefix, passage_prefix = "bge-small-en-v1.5", 384, 512, "", ""
    down = True
    asked = 0

    def ready(self) -> None:
        return None

    def embed_passages(self, texts: Any) -> Any:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> bytes:
        self.asked += 1
        if self.down:
            raise EmbedderUnavailable(name=self.name, problem="it hangs", remedy="Wait")
        return struct.pack("<384f", *([1.0] * 384))


def test_model_that_hangs_while_embedding_is_not_asked_the_question(
    brain: Brain, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(brain)
    monkeypatch.setattr(background, "SLOW_SECONDS", 0.0)
    message = "The model bge-small-en-v1.5 is not available: it hangs. Wait"
    assert background.embed_few(brain, Down()) == message  # type: ignore[arg-type]
    assert background.embed_few(brain, Down()) == ""  # type: ignore[arg-type]
    failure = embedding_queue.last_failure(brain.db.path)
    assert failure
    assert (failure.problem, failure.down) == ("it hangs", True)


def test_model_that_refuses_a_page_at_once_still_answers(brain: Brain) -> None:
    put(brain)
    assert background.embed_few(brain, Down()) == ""  # type: ignore[arg-type]
    assert not background.backoff_reason(brain, Down.name)


@pytest.fixture
def model(brain: Brain, monkeypatch: pytest.MonkeyPatch) -> Down:
    """A model that answers at first; one page has its vector, another one lacks it."""
    model = Down()
    monkeypatch.setattr(Brain, "embedder", property(lambda self: model))
    model.down = False
    put(brain)
    run(brain, "embed")
    model.down, model.asked = True, 0
    return model


def test_questions_skip_a_failed_model_for_a_minute(brain: Brain, clock: Clock, model: Down) -> None:
    assert "it hangs" in run(brain, "query", question="a text").notes[0]
    for _ in range(3):
        (note,) = run(brain, "query", question="a text").notes
        assert "failed at 2026-04-25T12:00:00Z: it hangs" in note
    assert model.asked == 1
    status = run(brain, "status")
    assert (status.model.ready, status.trouble.problem) == (False, "it hangs")
    assert "failed at 2026-04-25T12:00:00Z: it hangs" in status.model.problem
    assert "it hangs" in run(brain, "model list").value[0].problem
    clock.time += background.REST_SECONDS + 1
    run(brain, "query", question="a text")
    run(brain, "query", question="a text")
    assert model.asked == 2


def test_embedding_resumes_when_the_model_answers_again(brain: Brain, clock: Clock, model: Down) -> None:
    watch = EmbeddingMonitor()
    for number in range(30):
        put(brain, f"p{number}")
    assert watch.wants(brain)
    background.embed_missing(brain)
    assert not watch.wants(brain)
    clock.time += background.REST_SECONDS + 1
    model.down = False
    assert run(brain, "query", question="a text").notes == (
        "1 of 31 chunks have vectors; `quaid embed` makes the others",
    )
    assert embedding_queue.last_failure(brain.db.path) is None
    assert run(brain, "status").model.ready
    assert watch.wants(brain)


def test_a_steady_stream_of_calls_delays_embedding_for_a_limited_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr("quaid.worker.time.monotonic", clock)
    supervisor = worker.Supervisor()
    for _ in range(25):
        supervisor.put_off()
        assert supervisor.is_overdue() == (clock.time - NOON >= worker.LONGEST_DELAY)
        clock.time += 1.0
    assert supervisor.seconds() == 0
