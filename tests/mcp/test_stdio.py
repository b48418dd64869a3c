import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests import commands
from tests.mcp.pipes import HELLO, PATIENCE, Pipes, command, content_of, environment, failure_of

from quaid.app import Brain
from quaid.config import Settings
from quaid.mcp.jsonrpc import MAX_LINE_BYTES as MAX_LINE, MAX_RAW_LINE_BYTES
from quaid.operations import dispatch

Start = Callable[..., Pipes]

PING = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}
GET = {"name": "memory_get", "arguments": {"slug": "people/alice"}}


def request(id: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def test_a_session_from_handshake_to_end(start: Start, db: str) -> None:
    server = start(db)
    assert server.greet()["protocolVersion"] == "2025-11-25"
    assert server.record("memory_get", slug="people/alice")["version"] == 1
    put = server.call("memory_put", slug="people/alice", timeline_append="- later", expected_version=1)
    assert content_of(put["result"])["version"] == 2
    status, left, errors = server.end()
    assert status == 0
    assert left == []
    assert errors == f"quaid 0.1.0: MCP on stdio, tools: core, memory: {db}\n"


def test_requests_before_the_end_of_input_are_answered(start: Start, db: str) -> None:
    server = start(db)
    server.write(
        request(0, "initialize", **HELLO), *(request(id, "tools/call", **GET) for id in range(1, 51))
    )
    status, left, _ = server.end()
    assert status == 0
    assert [item["id"] for item in left] == list(range(51))
    assert not any(
        name.startswith("memory.db-") for name in os.listdir(os.path.dirname(db)) if "lock" not in name
    )


def test_the_last_line_needs_no_line_end(db: str) -> None:
    done = subprocess.run(
        command(db), input=json.dumps(PING).encode(), capture_output=True, env=environment(), timeout=PATIENCE
    )
    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": "ping", "result": {}}
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("frame", "code", "id"),
    [
        (b"garbage", -32700, None),
        (b'{"jsonrpc": "2.0", "id": 1, "method"', -32700, None),
        (b"\xff\xfe\x00", -32700, None),
        (b'"just text"', -32600, None),
        (b"17", -32600, None),
        (b"null", -32600, None),
        (b"{}", -32600, None),
        ({"id": 5, "method": "ping"}, -32600, 5),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, -32600, None),
        ({"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}, -32600, None),
        ({"jsonrpc": "2.0", "id": 5, "method": ["ping"]}, -32600, 5),
        ({"jsonrpc": "2.0", "id": 5, "method": "ping", "params": [1]}, -32602, 5),
        ({"jsonrpc": "2.0", "id": "\ud800", "method": "no/such"}, -32601, "\ud800"),
        ([], -32600, None),
        ([PING], -32600, None),
        (request(5, "tools/call", name="memory_get", arguments="people/alice"), -32602, 5),
        (request(5, "tools/call", name="memory_list", arguments={"limit": 1e999}), -32700, 5),
    ],
    ids=lambda value: str(value)[:60] if not isinstance(value, int) else "",
)
def test_invalid_line_gets_an_error(start: Start, db: str, frame: Any, code: int, id: Any) -> None:
    server = start(db)
    server.greet()
    server.write(frame)
    answer = server.next()
    assert (answer["error"]["code"], answer["id"]) == (code, id)
    assert server.ask("ping")["result"] == {}


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (request(5, "tools/call", name="memory_get", arguments={"slug": "\ud800"}), "invalid_argument"),
        (request(5, "tools/call", name="memory_list", arguments={"limit": 10**30}), "invalid_argument"),
        (
            b'{"jsonrpc":"2.0","id":5,"method":"tools/call",'
            b'"params":{"name":"memory_list","arguments":{"limit":1e999}}}',
            "invalid_argument",
        ),
    ],
)
def test_invalid_tool_arguments_are_a_tool_error(start: Start, db: str, frame: Any, code: str) -> None:
    server = start(db)
    server.greet()
    server.write(frame)
    answer = server.next()
    error = failure_of(answer)
    assert (answer["id"], error["code"]) == (5, code)
    assert server.ask("ping")["result"] == {}


def test_valid_request_after_a_thousand_invalid_lines(start: Start, db: str) -> None:
    server = start(db)
    server.greet()
    bad = [b"{", b"\xff", b"[1", b"7", b"{}", b'{"jsonrpc":"2.0","id":1}', b"\x00", b'{"id":' + b"[" * 2000]
    for start_of in range(0, 1000, 50):
        server.write(*(bad[number % len(bad)] for number in range(start_of, start_of + 50)))
    answers = [server.next() for _ in range(1000)]
    assert {answer["error"]["code"] for answer in answers} == {-32700, -32600}
    assert server.call("memory_get", slug="people/alice")["result"]["isError"] is False


def test_a_line_at_the_limit_is_read_and_one_beyond_it_is_skipped(start: Start, db: str) -> None:
    server = start(db)
    ping = json.dumps(PING).encode()
    server.write(ping + b" " * (MAX_LINE - len(ping)))
    assert server.next()["result"] == {}
    server.write(ping + b" " * (MAX_LINE - len(ping) + 1))
    refused = server.next()
    assert (refused["error"]["code"], refused["id"]) == (-32600, PING["id"])
    server.write(b"x" * (3 * MAX_LINE), ping)
    assert server.next()["error"]["code"] == -32600
    assert server.next()["result"] == {}


def test_escaped_page_counts_as_its_text(start: Start, db: str) -> None:
    server = start(db)
    server.greet()
    text = "# Words\n\n" + "жук и мотылёк\n" * (3 * 1024 * 1024 // 25)
    sent = json.dumps(request(7, "tools/call", name="memory_put", arguments={"slug": "w", "content": text}))
    assert len(sent) > MAX_LINE
    server.write(sent.encode())
    assert server.next()["result"]["isError"] is False
    assert server.record("memory_get", slug="w")["compiled_truth"] == text.strip()


@pytest.mark.parametrize("size", [MAX_LINE, MAX_RAW_LINE_BYTES])
def test_oversized_request_is_refused_by_its_id(start: Start, db: str, size: int) -> None:
    server = start(db)
    server.greet()
    params = {"name": "memory_put", "arguments": {"id": 1, "slug": "w", "content": "x" * size}}
    first = {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params}
    last = {"jsonrpc": "2.0", "params": params, "method": "tools/call", "id": 9}
    server.write(first, last)
    answers = [server.next() for _ in range(2)]
    assert [(answer["id"], answer["error"]["code"]) for answer in answers] == [("a", -32600), (9, -32600)]
    server.write({"jsonrpc": "2.0", "result": {"x": "x" * size}, "id": 4})
    assert server.next()["id"] is None
    assert server.ask("ping")["result"] == {}


def test_a_text_of_over_four_megabytes_is_too_large_and_nothing_is_written(start: Start, db: str) -> None:
    server = start(db)
    server.greet()
    refused = server.fail("memory_put", slug="concepts/big", content="x" * (4 * 1024 * 1024 + 1))
    assert refused["code"] == "too_large"
    assert server.fail("memory_get", slug="concepts/big")["code"] == "page_not_found"


def test_notifications_and_stray_responses_get_no_response(start: Start, db: str) -> None:
    server = start(db)
    server.greet()
    server.write(
        {"jsonrpc": "2.0", "method": "notifications/unknown"},
        {"jsonrpc": "2.0", "method": "ping"},
        {"jsonrpc": "2.0", "method": "tools/call", "params": GET},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": 7},
        {"jsonrpc": "2.0", "id": 4, "result": {}},
        {"jsonrpc": "2.0", "id": 4, "error": {"code": 1, "message": "no"}},
        b"",
        b"   ",
        PING,
    )
    assert server.next()["id"] == "ping"
    assert server.end()[1] == []


def test_batches_in_old_revisions(start: Start, db: str) -> None:
    server = start(db)
    server.greet("2025-03-26")
    server.write(
        [
            request(1, "tools/call", **GET),
            {"jsonrpc": "2.0", "method": "notifications/unknown"},
            request(2, "ping"),
            {"nonsense": True},
            request("3", "no/such"),
        ],
        [{"jsonrpc": "2.0", "method": "notifications/unknown"}],
        PING,
    )
    batch, ping = server.next(), server.next()
    if isinstance(ping, list):  # the worker may be slower than the reader
        batch, ping = ping, batch
    assert ping["id"] == "ping"
    outcomes = {item["id"]: item.get("error", {}).get("code") for item in batch}
    assert outcomes == {1: None, 2: None, None: -32600, "3": -32601}
    assert server.end()[1] == []


def test_empty_batch_is_invalid(start: Start, db: str) -> None:
    server = start(db)
    server.greet("2025-03-26")
    server.write([])
    assert server.next()["error"]["code"] == -32600


def test_two_requests_of_one_id_get_two_answers(start: Start, db: str) -> None:
    server = start(db)
    server.greet()
    server.write(request(7, "tools/call", **GET), request(7, "tools/call", **GET))
    assert [server.next()["id"], server.next()["id"]] == [7, 7]


def test_ping_and_cancellation_during_a_long_call(start: Start, db: str) -> None:
    server = start(db)
    server.greet()
    words = " ".join(f"word{number}" for number in range(250_000))
    long = request(1, "tools/call", name="memory_put", arguments={"slug": "concepts/long", "content": words})
    waiting = request(2, "tools/call", name="memory_put", arguments={"slug": "concepts/no", "content": "x"})
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
    server.write(long, waiting, cancel, PING)
    assert [server.next()["id"], server.next()["id"]] == ["ping", 1]
    assert server.fail("memory_get", slug="concepts/no")["code"] == "page_not_found"
    assert server.end()[1] == []


def test_progress_comes_before_the_result(start: Start, db: str) -> None:
    server = start(db)
    server.greet()
    server.write(request(1, "resources/read", uri="memory://index", _meta={"progressToken": "p"}))
    progress, answer = server.next(), server.next()
    assert progress["method"] == "notifications/progress"
    assert progress["params"] == {"progressToken": "p", "progress": 2, "total": 2, "message": "Listing pages"}
    assert answer["id"] == 1


def test_print_goes_to_standard_error(db: str) -> None:
    """From Python or from below it: the protocol's pipe is out of reach."""
    code = (
        "import os, sys\n"
        "from quaid import config\n"
        "from quaid.mcp import server\n"
        "def noisy(ask):\n"
        "    print('stray text')\n"
        "    os.write(1, b'stray bytes')\n"
        "    assert sys.stdin.read() == ''\n"
        "    return {}\n"
        "server.HANDSHAKE_METHODS['ping'] = noisy\n"
        "status = server.serve(config.read_settings(sys.argv[1], os.environ, os.getcwd()), 'core')\n"
        "print('after')\n"
        "sys.exit(status)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, db],
        input=json.dumps(PING).encode() + b"\n" + json.dumps({**PING, "id": 2}).encode() + b"\n",
        capture_output=True,
        env=environment(),
        timeout=PATIENCE,
    )
    first, second, after = done.stdout.splitlines()
    assert [json.loads(first)["id"], json.loads(second)["id"]] == ["ping", 2]
    assert after == b"after"
    assert b"stray text" in done.stderr
    assert b"stray bytes" in done.stderr
    assert done.returncode == 0


def test_log_contains_no_content(start: Start, db: str) -> None:
    server = start(db)
    server.greet()
    server.call("memory_put", slug="people/zoe", content="# Zoe\n\nHer secret is xylophone.")
    server.call("memory_search", query="xylophone")
    server.call("memory_get", slug="people/xylophone")
    server.write(b"xylophone")
    assert server.ask("ping")
    errors = server.end()[2]
    assert "xylophone" not in errors
    assert len(errors.splitlines()) == 1


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals of this kind")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_the_server(start: Start, db: str, number: signal.Signals) -> None:
    server = start(db)
    server.greet()
    assert server.record("memory_put", slug="people/zoe", content="# Zoe")
    server.process.send_signal(number)
    assert server.process.wait(PATIENCE) == 0
    assert "Traceback" not in server.end()[2]
    assert start(db).greet()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals of this kind")
def test_signal_stops_the_server_while_the_client_does_not_read(db: str) -> None:
    process = subprocess.Popen(
        command(db), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert process.stdin
    assert process.stdout
    assert process.stderr
    lines = [request(0, "initialize", **HELLO), *(request(id, "tools/call", **GET) for id in range(500))]
    process.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    process.stdin.flush()
    process.stdout.readline()
    time.sleep(0.5)  # by now the pipe is full and the server waits for us
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0
    assert b"Traceback" not in process.stderr.read()
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()


@pytest.mark.parametrize("last", [PING, request(1, "tools/call", **GET)], ids=["reader", "worker"])
def test_server_ends_when_the_client_closes_the_pipe(db: str, last: dict[str, Any]) -> None:
    process = subprocess.Popen(
        command(db), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert process.stdin
    assert process.stdout
    assert process.stderr
    process.stdin.write(json.dumps(request(0, "initialize", **HELLO)).encode() + b"\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["id"] == 0
    process.stdout.close()
    process.stdin.write(json.dumps(last).encode() + b"\n")
    process.stdin.flush()
    assert process.wait(PATIENCE) == 0
    assert len(process.stderr.read().splitlines()) == 1
    process.stderr.close()
    process.stdin.close()


def test_server_starts_without_a_memory(start: Start, tmp_path: Any) -> None:
    missing = str(tmp_path / "none.db")
    server = start(missing)
    server.greet()
    assert server.ask("tools/list")["result"]["tools"]
    assert server.ask("prompts/list")["result"]["prompts"]
    assert "hits" not in server.record("memory_search", query="oslo")
    subprocess.run([commands.program(), "init", missing], env=environment(), capture_output=True, check=True)
    assert "hits" not in server.record("memory_search", query="oslo")
    assert "not made yet" in server.end()[2]


def test_invalid_database_is_reported_for_each_call(start: Start, tmp_path: Any) -> None:
    (tmp_path / "notes.db").write_text("these are just some notes of mine\n" * 100)
    server = start(str(tmp_path / "notes.db"))
    server.greet()
    assert server.fail("memory_stats")["code"] == "not_a_database"
    assert server.ask("ping")["result"] == {}


def test_an_unknown_selection_of_tools_is_refused_before_serving(db: str) -> None:
    done = subprocess.run(
        command(db, "--tools", "memory_gte"),
        input=b"",
        capture_output=True,
        env=environment(),
        timeout=PATIENCE,
    )
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.decode().startswith("quaid: Unknown tool: 'memory_gte'. Did you mean 'memory_get'?")


def test_calls_are_recorded_when_the_client_leaves(start: Start, db: str, settings: Settings) -> None:
    server = start(db)
    server.greet()
    server.record("memory_query", query="Where does Alice live?")
    server.record("memory_put", slug="people/bo", content="# Bo", expected_version=0)
    assert server.end()[0] == 0
    with Brain(settings) as brain:
        (session,) = dispatch.call(brain, dispatch.find_command("activity"), {}, "owner").sessions
    assert (session.client, session.reads, session.writes) == ("test", 1, 1)
    assert [page.slug for page in session.calls[0].written] == ["people/bo"]
    assert "people/alice" in [page.slug for page in session.calls[1].read]
