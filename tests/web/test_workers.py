"""Brains on threads: side by side, given up when nobody waits, one model for all."""

import asyncio
import gc
import os
import re
import threading
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import Cancelled, NotAllowed, PageNotFound, UnknownCommand, VersionConflict
from quaid.operations import dispatch
from quaid.operations.registry import all_operations
from quaid.web import workers
from quaid.web.workers import (
    LONG_OPERATIONS,
    READ_ONLY_OWNER_OPERATIONS,
    SEMANTIC_OPERATIONS,
    WorkerPool,
    find_operation,
    operation_key,
    queue_name,
)


@asynccontextmanager
async def working(settings: Settings, **how: Any) -> AsyncIterator[WorkerPool]:
    pool = WorkerPool(settings, **how)
    pool.start()
    try:
        yield pool
    finally:
        assert pool.stop(60)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def test_commands_and_tools_both_name_an_operation(memory: Settings) -> None:
    async def ask() -> None:
        async with working(memory) as pool:
            assert (await pool.call("get", {"slug": "people/alice"})).title == "Alice Berg"
            assert (await pool.call("memory_get", {"slug": "people/alice"}, "read")).title == "Alice Berg"
            assert (await pool.call("collection list", {})).value
            assert (await pool.call("untag", {"slug": "people/alice", "tag": "founder"})).tags == ()
            with pytest.raises(UnknownCommand):
                await pool.call("gte", {})

    run(ask())


def test_errors_of_an_operation_are_raised(memory: Settings) -> None:
    async def ask() -> None:
        async with working(memory) as pool:
            with pytest.raises(PageNotFound):
                await pool.call("get", {"slug": "people/nobody"})
            with pytest.raises(VersionConflict):
                await pool.call("memory_put", {"slug": "people/alice", "content": "x"}, "write")
            with pytest.raises(NotAllowed):
                await pool.call("memory_put", {"slug": "people/zoe", "content": "x"}, "read")

    run(ask())


def test_readers_run_in_parallel(memory: Settings) -> None:
    met = threading.Barrier(workers.READERS, timeout=60)

    async def ask() -> None:
        async with working(memory) as pool:
            results = await asyncio.gather(
                *(
                    pool.run("read", lambda brain: (met.wait(), brain.db.one("SELECT 1")))
                    for _ in range(workers.READERS)
                )
            )
            assert [item[1] for item in results] == [(1,)] * workers.READERS

    run(ask())


def test_cancelled_call_is_stopped_within_its_statement(memory: Settings) -> None:
    began, ended = threading.Event(), threading.Event()
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"

    def work(brain: Brain) -> None:
        began.set()
        try:
            brain.db.one(endless)
        finally:
            ended.set()

    async def ask() -> None:
        async with working(memory) as pool:
            task = asyncio.ensure_future(pool.run("read", work))
            while not began.is_set():
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(ended.wait, 60)
            assert (await pool.call("get", {"slug": "people/alice"})).title == "Alice Berg"

    run(ask())


def test_call_cancelled_in_the_queue_never_starts(memory: Settings) -> None:
    gate_open, ran = threading.Event(), []

    async def ask() -> None:
        async with working(memory) as pool:
            first = [
                asyncio.ensure_future(pool.run("meaning", lambda _: gate_open.wait(60)))
                for _ in range(workers.QUESTIONS)
            ]
            second = asyncio.ensure_future(pool.run("meaning", lambda _: ran.append(1)))
            await asyncio.sleep(0.05)
            second.cancel()
            gate_open.set()
            await asyncio.gather(*first)
            await pool.run("meaning", lambda _: None)
            assert ran == []

    run(ask())


def test_stopping_cancels_running_tasks(memory: Settings) -> None:
    began = threading.Event()

    def work(brain: Brain) -> None:
        began.set()
        while True:
            brain.progress(1, 2, "Going on")
            time.sleep(0.01)

    async def ask() -> None:
        pool = WorkerPool(memory)
        pool.start()
        task = asyncio.ensure_future(pool.run("long", work))
        while not began.is_set():
            await asyncio.sleep(0.01)
        assert await asyncio.to_thread(pool.stop, 60)
        with pytest.raises(Cancelled):
            await task

    run(ask())


def test_long_task_reports_progress_and_its_end(memory: Settings) -> None:
    heard: list[tuple[str, dict[str, Any]]] = []

    def work(brain: Brain) -> None:
        for step in range(100):
            time.sleep(0.01)
            brain.progress(step, 100, "Counting")

    async def ask() -> None:
        async with working(memory, tell=lambda kind, facts: heard.append((kind, facts))) as pool:
            await pool.run("long", work, "count")
            await pool.call("get", {"slug": "people/alice"})

    began = time.monotonic()
    run(ask())
    seconds = time.monotonic() - began
    assert [kind for kind, _ in heard[-1:]] == ["finished"]
    assert heard[-1][1]["operation"] == "count"
    assert heard[-1][1]["succeeded"] is True
    steps = [facts["done"] for kind, facts in heard if kind == "progress"]
    assert steps == sorted(steps)
    assert 1 <= len(steps) <= seconds / workers.PROGRESS_INTERVAL


def test_read_only_pool_changes_nothing_and_shows_everything(memory: Settings) -> None:
    async def ask() -> None:
        async with working(memory, readonly=True) as pool:
            for command in ("config list", "collection info", "connect", "embeddings list"):
                inputs = {"name": "notebook"} if command == "collection info" else {}
                await pool.call(command, inputs)
            for command, inputs in (("put", {"slug": "people/zoe", "content": "x"}), ("compact", {})):
                with pytest.raises(NotAllowed):
                    await pool.call(command, inputs)

    run(ask())


def test_workers_share_one_model(memory: Settings) -> None:
    async def ask() -> None:
        async with working(memory) as pool:
            results = await asyncio.gather(
                *(
                    pool.run(lane, lambda brain: brain.embedder)
                    for lane in ("read", "meaning", "write", "long")
                )
            )
            assert len({id(item) for item in results}) == 1

    run(ask())


def test_questions_asked_at_once_get_the_answers_that_each_gets_alone(memory: Settings) -> None:
    settings = memory._replace(environ={**memory.environ, "QUAID_LOG_GAPS": "off"})
    with Brain(settings) as brain:
        for number, text in enumerate(("Mira mends the hull.", "The ferry leaves at noon.", "Tides in May.")):
            page = {"slug": f"notes/n{number}", "content": f"# Note {number}\n\n{text}\n"}
            dispatch.call(brain, dispatch.find_command("put"), page, "write")
        dispatch.call(brain, dispatch.find_command("embed"), {"all": True}, "owner")
    questions = [
        f"{text} {number}" for number in range(3) for text in ("who repairs boats", "when does it go")
    ]

    async def ask() -> None:
        async with working(settings) as pool:
            alone = [await pool.call("query", {"query": question}) for question in questions]
        async with working(settings) as pool:
            assert await asyncio.gather(*(pool.call("query", {"query": text}) for text in questions)) == alone
        assert any(result.lane in ("meaning", "both") for answer in alone for result in answer.results)

    run(ask())


def test_operations_that_use_the_model_are_in_the_semantic_queue() -> None:
    asks = re.compile(r"question_embedder|brain\.vectors|turn_vectors=brain|brain\.turn_vectors")
    folder = os.path.dirname(dispatch.__file__)
    rooms = set()
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                if asks.search(file.read()):
                    rooms.add(name[:-3])
    # background is used by every operation that queries.
    known = {"query", "notebook", "conversations", "kb", "background"}
    assert rooms == known, "put the new operation into workers.SEMANTIC_OPERATIONS"


def test_search_by_words_does_not_wait_for_questions() -> None:
    glance, _ = find_operation("glance")
    assert queue_name(glance, {"query": "x"}) == "meaning"
    assert queue_name(glance, {"query": "x", "words_only": True}) == "read"


def test_every_listed_operation_exists() -> None:
    keys = {operation_key(operation) for operation in all_operations()}
    assert keys >= SEMANTIC_OPERATIONS
    assert keys >= LONG_OPERATIONS
    assert keys >= READ_ONLY_OWNER_OPERATIONS
    lanes = {queue_name(operation) for operation in all_operations()}
    assert lanes == {"read", "meaning", "write", "long"}


def test_unretrieved_error_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def ask() -> None:
        job = workers.Task(lambda _brain: None, "get", asyncio.get_running_loop())
        job.settle(None, Cancelled())
        while not job.future.done():
            await asyncio.sleep(0)

    gc.collect()
    caplog.clear()  # of what earlier tests left behind
    run(ask())
    gc.collect()
    assert not caplog.records
