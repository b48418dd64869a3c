"""Brains on threads: side by side, given up when nobody waits, one model for all."""

import asyncio
import contextlib
import gc
import os
import re
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from quaid import worker
from quaid.app import Brain, new_calls
from quaid.config import Settings
from quaid.errors import (
    Cancelled,
    Defect,
    NotAllowed,
    NotFound,
    PageNotFound,
    TooMany,
    UnknownCommand,
    VersionConflict,
)
from quaid.operations import dispatch
from quaid.operations.registry import all_operations
from quaid.web import workers
from quaid.web.workers import (
    LONG_OPERATIONS,
    READ_ONLY_OWNER_OPERATIONS,
    SEMANTIC_OPERATIONS,
    SLOW_OPERATIONS,
    FairQueue,
    Task,
    WorkerPool,
    find_operation,
    operation_key,
    queue_name,
)

needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="lists processes in /proc")


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


def children() -> set[int]:
    """Return the worker processes of this process that run operations."""
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", encoding="ascii") as file:
            if int(file.read().rpartition(")")[2].split()[1]) == os.getpid():
                with open(f"/proc/{name}/cmdline", encoding="utf-8") as line:
                    if "quaid.worker\0run" in line.read():
                        found.add(int(name))
    return found


@needs_proc
def test_processes_answer_as_threads_do_and_end_with_the_server(memory: Settings) -> None:
    settings = memory._replace(environ={**memory.environ, "QUAID_LOG_GAPS": "off"})

    async def ask() -> None:
        async with working(settings) as pool:
            expected = await pool.call("query", {"query": "who is Alice?"})
        async with working(settings, processes=True) as pool:
            assert await pool.call("query", {"query": "who is Alice?"}) == expected
            assert len(children()) == 1, "one question at a time needs one process"
            together = (pool.call("query", {"query": "who is Alice?"}, "read") for _ in range(6))
            assert await asyncio.gather(*together) == [expected] * 6
            assert len(children()) == workers.QUESTION_PROCESSES
            with pytest.raises(NotFound) as caught:
                await pool.call("query", {"query": "who?", "collection": "missing"})
            assert caught.value.facts["name"] == "missing"
        assert not children()

    run(ask())


@needs_proc
def test_question_survives_the_death_of_its_process(memory: Settings) -> None:
    async def ask() -> None:
        async with working(memory, processes=True) as pool:
            expected = await pool.call("query", {"query": "who is Alice?"})
            for process in children():
                os.kill(process, signal.SIGKILL)
            assert await pool.call("query", {"query": "who is Alice?"}) == expected
            busy = asyncio.ensure_future(pool.call("query", {"query": "who is Alice? " * 80}))
            await asyncio.sleep(0.02)  # while it is answered, or after it: both must work
            for process in children():
                os.kill(process, signal.SIGKILL)
            assert (await busy).results

    run(ask())


@needs_proc
@pytest.mark.parametrize("is_cancelled", [False, True])
def test_process_that_hangs_is_replaced(
    memory: Settings, monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    async def ask() -> None:
        async with working(memory, processes=True) as pool:
            expected = await pool.call("query", {"query": "who is Alice?"})
            (process,) = children()
            os.kill(process, signal.SIGSTOP)
            # From here on, because the first question also loads the model.
            monkeypatch.setattr(worker, "CANCEL_SECONDS" if is_cancelled else "ANSWER_SECONDS", 0.3)
            hung = asyncio.ensure_future(pool.call("query", {"query": "who is Alice?"}))
            await asyncio.sleep(0.1)
            if is_cancelled:
                hung.cancel()
            with pytest.raises(asyncio.CancelledError if is_cancelled else Defect):
                await hung
            while process in children():
                await asyncio.sleep(0.01)
            monkeypatch.undo()
            assert await pool.call("query", {"query": "who is Alice?"}) == expected

    run(ask())


@needs_proc
def test_cancelled_question_leaves_its_process_usable(memory: Settings) -> None:
    async def ask() -> None:
        async with working(memory, processes=True) as pool:
            for seconds in (0.0, 0.05, 0.4):  # while the process starts, and later
                cancelled = asyncio.ensure_future(pool.call("query", {"query": "what does Bob do?"}))
                await asyncio.sleep(seconds)
                cancelled.cancel()
                answer = await pool.call("query", {"query": "who is Alice?"})
                assert answer.question == "who is Alice?"

    run(ask())


@needs_proc
def test_long_job_runs_in_a_process_that_ends_with_it(memory: Settings) -> None:
    async def ask() -> None:
        async with working(memory, processes=True) as pool:
            job = asyncio.ensure_future(pool.call("dupes", {}, "read"))
            while not children() and not job.done():
                await asyncio.sleep(0.01)
            assert children()
            await job
            while children():
                await asyncio.sleep(0.01)

    run(ask())


def test_job_that_stays_goes_on_without_its_caller_and_has_a_state(memory: Settings) -> None:
    gate, ran = threading.Event(), threading.Event()

    def work(brain: Brain) -> None:
        brain.progress(3, 10, "Counting")
        gate.wait(60)
        brain.progress(10, 10, "Counting")
        ran.set()

    async def ask() -> None:
        async with working(memory) as pool:
            page = asyncio.ensure_future(pool.run("long", work, "count", stays=True))
            program = asyncio.ensure_future(pool.run("long", lambda _: None, "waits"))
            while not pool.jobs or pool.jobs[-1].done < 3:
                await asyncio.sleep(0.01)
            assert [(job.operation, job.state) for job in pool.jobs] == [
                ("waits", "waiting"),
                ("count", "running"),
            ]
            page.cancel()
            program.cancel()
            gate.set()
            assert await asyncio.to_thread(ran.wait, 60)
            with pytest.raises(PageNotFound):
                await pool.run("long", lambda brain: pages_get(brain, "people/nobody"), "fails")
            states = {job.operation: job.state for job in pool.jobs}
            assert states == {"count": "finished", "waits": "cancelled", "fails": "failed"}
            assert (pool.jobs[0].error, pool.jobs[-1].total) == ("page_not_found", 10)

    def pages_get(brain: Brain, slug: str) -> None:
        dispatch.call(brain, dispatch.find_command("get"), {"slug": slug}, "owner")

    run(ask())


def test_server_stops_within_its_deadline_while_processes_work(memory: Settings) -> None:
    async def ask() -> None:
        pool = WorkerPool(memory, processes=True)
        pool.start()
        questions = [
            asyncio.ensure_future(pool.call("query", {"query": f"who is Alice {n}?"})) for n in range(8)
        ]
        await asyncio.sleep(0.3)
        assert await asyncio.to_thread(pool.stop, 60)
        assert not children()
        for result in await asyncio.gather(*questions, return_exceptions=True):
            assert isinstance(result, Cancelled) or result.results  # type: ignore[union-attr]

    run(ask())


def queued(queue: FairQueue, callers: str) -> None:
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        for number, caller in enumerate(callers):
            queue.put(Task(lambda _: None, f"{caller}{number}", loop, caller))


def served(queue: FairQueue, seconds: dict[str, float], count: int) -> str:
    """Take tasks one after the other and finish each. Return their callers."""
    order = ""
    for _ in range(count):
        task = queue.take()
        assert task is not None
        order += task.caller
        queue.finish(task, seconds.get(task.caller, 0.01))
    return order


def test_callers_are_served_in_turn() -> None:
    queue = FairQueue()
    queued(queue, "aaaaaaabcbc")
    assert served(queue, {}, 11) == "abcabcaaaaa"


def test_caller_with_expensive_tasks_gets_the_same_time_as_others() -> None:
    queue = FairQueue()
    queued(queue, "a" * 4 + "b" * 24)
    order = served(queue, {"a": 1 / 8, "b": 1 / 64}, 28)
    assert order == "a" + "b" * 8 + "a" + "b" * 8 + "a" + "b" * 8 + "a"


def test_caller_who_was_away_has_saved_no_time() -> None:
    queue = FairQueue()
    queued(queue, "a" * 20)
    assert served(queue, {}, 10) == "a" * 10
    queued(queue, "b" * 5)
    assert served(queue, {}, 10) == "babababab" + "a"


def test_running_tasks_count_before_they_end() -> None:
    queue = FairQueue(workers=3)
    queued(queue, "aaab")
    first, second = queue.take(), queue.take()
    assert first is not None
    assert second is not None
    assert (first.caller, second.caller) == ("a", "b")


def test_caller_with_too_many_waiting_tasks_is_refused_and_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "MAX_QUEUED", 10)
    queue = FairQueue(most_of_caller=3)
    queued(queue, "aaa")
    with pytest.raises(TooMany):
        queued(queue, "a")
    queued(queue, "bbbccc")
    with pytest.raises(TooMany, match="10 requests"):
        queued(queue, "dd")


def test_caller_leaves_a_worker_free_while_others_ask() -> None:
    now = 0.0
    queue = FairQueue(workers=2, clock=lambda: now)
    queued(queue, "aaaaaa")
    alone = [queue.take(), queue.take()]
    assert [task.caller for task in alone if task] == ["a", "a"], "alone, a caller has all workers"
    queued(queue, "b")
    for task in alone:
        assert task is not None
        queue.finish(task, 1.0)
    together = [queue.take(), queue.take()]
    assert sorted(task.caller for task in together if task) == ["a", "b"]
    assert together[0] is not None
    assert together[1] is not None
    queue.finish(next(task for task in together if task and task.caller == "b"), 1.0)
    assert queue.take(seconds=0) is None, "the other worker stays free for b"
    now = workers.RECENT_SECONDS + 1
    queued(queue, "a")
    queue.finish(next(task for task in together if task and task.caller == "a"), 1.0)
    assert [getattr(queue.take(), "caller", "") for _ in range(2)] == ["a", "a"], "b has gone"


def test_task_goes_to_the_first_idle_worker() -> None:
    queue, taken = FairQueue(workers=2), []
    done = threading.Semaphore(0)

    def work(rank: int) -> None:
        ready = None
        while (task := queue.take(rank, ready=ready)) is not None:
            taken.append(rank)
            queue.finish(task, 0.0)
            ready = done.release

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    for number, thread in enumerate(threads, 1):
        thread.start()
        while len(queue._idle) < number:
            time.sleep(0.001)
    for _ in range(50):
        queued(queue, "a")
        done.acquire()
    queue.close()
    for thread in threads:
        thread.join()
    assert taken == [0] * 50


def test_workers_serve_callers_in_turn(memory: Settings) -> None:
    gate, order = threading.Event(), []

    async def ask() -> None:
        async with working(memory) as pool:

            async def send(caller: str) -> None:
                workers.CALLER.set(caller)
                await pool.run("write", lambda _: order.append(caller))

            first = asyncio.ensure_future(pool.run("write", lambda _: gate.wait(60)))
            await asyncio.sleep(0)
            others = [asyncio.ensure_future(send(caller)) for caller in ("crowd",) * 20 + ("person",)]
            await asyncio.sleep(0)
            gate.set()
            await asyncio.gather(first, *others)

    run(ask())
    assert order.index("person") <= 1, "a person who comes last does not wait for a crowd"


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
    assert keys >= LONG_OPERATIONS | SLOW_OPERATIONS
    assert keys >= READ_ONLY_OWNER_OPERATIONS
    lanes = {queue_name(operation) for operation in all_operations()}
    assert lanes == {"read", "meaning", "write", "slow", "long"}


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


def test_reads_of_agents_are_recorded_later_than_writes(
    memory: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "POLL_SECONDS", 0.02)
    calls = new_calls()

    def call(tool: str) -> None:
        with Brain(memory) as brain:
            brain.calls, brain.agent, brain.session = calls, "robot", "s1"
            arguments = {"slug": "people/alice", **({"tag": "seen"} if tool == "memory_tag" else {})}
            dispatch.call(brain, dispatch.find_tool(tool), arguments, "owner")

    call("memory_get")
    upkeep = workers.MaintenanceThread(memory, lambda _kind, _facts: None, maintains=False, calls=calls)
    upkeep.start()
    try:
        wait_until(lambda: not calls)  # the first time, at once
        call("memory_get")
        time.sleep(0.5)
        assert len(calls) == 1
        call("memory_tag")
        wait_until(lambda: not calls)
        call("memory_get")
    finally:
        upkeep.end()
        assert upkeep.is_over(20)
    assert not calls, "the rest is recorded at the end"


def wait_until(is_true: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < until
        time.sleep(0.01)
