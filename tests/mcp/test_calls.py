import threading
import time
from typing import Any

import pytest

from quaid.config import Settings
from quaid.errors import Cancelled
from quaid.mcp.jsonrpc import Request
from quaid.mcp.server import (
    CancellableBrain,
    Connection,
    PendingCall,
    Response,
    StdioServer,
    progress_reporter,
)

LONG = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1e9) SELECT max(i) FROM n"


@pytest.fixture
def memory(settings: Settings, db: str) -> CancellableBrain:
    return CancellableBrain(settings)


@pytest.fixture
def worker(memory: CancellableBrain) -> StdioServer:
    return working(memory, [])


def working(memory: CancellableBrain, sent: list[Any], level: str = "warning") -> StdioServer:
    connection = Connection("core")
    connection.version, connection.level = "2025-11-25", level
    return StdioServer(connection, memory, sent.append, on_disconnect=lambda: None)


def get(id: int, answers: list[Response | None], **meta: Any) -> PendingCall:
    params = {"name": "memory_get", "arguments": {"slug": "people/alice"}, "_meta": meta}
    return PendingCall(Request(id, "tools/call", params), answers.append)


def ids(answers: list[Response | None]) -> list[Any]:
    return [answer and answer["id"] for answer in answers]


def test_calls_are_answered_in_order_before_the_end(worker: StdioServer) -> None:
    answers: list[Response | None] = []
    for id in range(20):
        worker.add(get(id, answers))
    worker.finish()
    assert ids(answers) == list(range(20))


def held(worker: StdioServer, answers: list[Response | None]) -> threading.Event:
    """Keep the worker busy with call 1 until the event is set."""
    release = threading.Event()

    def reply(answer: Response | None) -> None:
        release.wait(30)
        answers.append(answer)

    worker.add(PendingCall(get(1, []).request, reply))
    return release


def test_a_call_cancelled_before_its_turn_never_runs(worker: StdioServer) -> None:
    answers: list[Response | None] = []
    release = held(worker, answers)
    worker.add(get(2, answers))
    worker.add(get(3, answers))
    worker.cancel(2)
    worker.cancel(99)
    release.set()
    worker.finish()
    assert ids(answers) == [1, None, 3]


def test_an_id_of_another_type_cancels_nothing(worker: StdioServer) -> None:
    answers: list[Response | None] = []
    release = held(worker, answers)
    worker.add(get(2, answers))
    worker.cancel("2")
    release.set()
    worker.finish()
    assert ids(answers) == [1, 2]


def test_a_statement_of_sqlite_stops_when_its_call_is_cancelled_and_the_memory_stays_usable(
    memory: CancellableBrain,
) -> None:
    call = memory.call = get(1, [])
    threading.Timer(0.2, lambda: setattr(call, "cancelled", True)).start()
    with pytest.raises(Cancelled), memory.db.reading():
        memory.db.rows(LONG)
    memory.call = None
    memory.db.write(lambda tx: tx.execute("UPDATE config SET value = value"))
    memory.close()


def test_a_cancelled_write_leaves_nothing_behind(memory: CancellableBrain) -> None:
    call = memory.call = get(1, [])
    threading.Timer(0.2, lambda: setattr(call, "cancelled", True)).start()

    def work(tx: Any) -> None:
        tx.execute("UPDATE pages SET title = 'half done'")
        tx.execute(LONG).fetchall()

    with pytest.raises(Cancelled):
        memory.db.write(work)
    memory.call = None
    assert memory.db.rows("SELECT 1 FROM pages WHERE title = 'half done'") == []
    memory.close()


def test_progress_rises_over_several_rounds_at_a_calm_pace() -> None:
    sent: list[Any] = []
    report = progress_reporter(get(1, [], progressToken="t").request, sent.append)
    for _round in range(2):
        for done in range(1001):
            report(done, 1000, "Counting")
    assert all(item["method"] == "notifications/progress" for item in sent)
    values = [item["params"]["progress"] for item in sent]
    assert values == sorted(set(values))
    assert values[-1] == 2000
    assert 1000 in values
    assert len(values) < 50
    assert sent[-1]["params"] == {
        "progressToken": "t",
        "progress": 2000,
        "total": 2000,
        "message": "Counting",
    }


@pytest.mark.parametrize("token", [None, True, 1.5, [], {}])
def test_no_progress_without_a_valid_token(token: Any) -> None:
    sent: list[Any] = []
    progress_reporter(get(1, [], progressToken=token).request, sent.append)(1, 1, "Counting")
    assert sent == []


def test_progress_is_where_a_cancelled_call_stops() -> None:
    call = get(1, [])
    report = progress_reporter(call.request, [].append, lambda: call.cancelled)
    report(1, 2, "Counting")
    call.cancelled = True
    with pytest.raises(Cancelled):
        report(2, 2, "Counting")


def test_stopping_cancels_waiting_calls(memory: CancellableBrain) -> None:
    answers: list[Response | None] = []
    worker = working(memory, [])
    started = time.monotonic()
    for id in range(10):
        worker.add(PendingCall(Request(id, "resources/read", {"uri": "memory://index"}), answers.append))
    worker.stop()
    assert len(answers) == 10
    assert time.monotonic() - started < 30


def test_disconnected_client_ends_the_thread_and_closes_the_memory(
    memory: CancellableBrain,
) -> None:
    on_disconnect = threading.Event()
    connection = Connection("core")
    connection.version = "2025-11-25"
    worker = StdioServer(connection, memory, [].append, on_disconnect.set)

    def broken(_answer: Response | None) -> None:
        raise BrokenPipeError

    worker.add(PendingCall(Request(1, "tools/call", {"name": "memory_stats"}), broken))
    assert on_disconnect.wait(30)
    assert memory._db is None


def test_debug_messages_contain_the_duration_and_no_content(memory: CancellableBrain) -> None:
    sent: list[Any] = []
    worker = working(memory, sent, "debug")
    worker.add(get(1, []))
    missing = {"name": "memory_get", "arguments": {"slug": "people/zoe"}}
    worker.add(PendingCall(Request(2, "tools/call", missing), lambda _: None))
    worker.finish()
    message, failed = sent
    assert (message["params"]["data"]["succeeded"], failed["params"]["data"]["succeeded"]) == (True, False)
    assert message["method"] == "notifications/message"
    assert message["params"]["level"] == "debug"
    assert set(message["params"]["data"]) == {"method", "succeeded", "ms"}
    assert "alice" not in str(message)
