"""A server as a client sees it: a process with a line in and a line out."""

import json
import os
import queue
import subprocess
import threading
from typing import Any

from tests import commands

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SOURCE = os.path.join(ROOT, "src")
PATIENCE = 60  # seconds; only a test that fails waits that long

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def environment() -> dict[str, str]:
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((SOURCE, ROOT)),  # ROOT for hasty_worker
        "PYTHONWARNINGS": "error",
        "QUAID_BACKGROUND_EMBEDDING": "off",
    }


def command(db: str, *more: str, prelude: str = "") -> list[str]:
    return [commands.program(prelude), "serve", "--db", db, *more]


# Makes the server wait only moments before it uses a pause.
HASTY = """
from quaid import worker
from quaid.storage import leases
worker.START_DELAY = worker.CALL_DELAY = worker.WATCH_INTERVAL = 0.3
worker.EMBED_INTERVAL = 0.5
worker.WORKER_MODULE = "tests.mcp.hasty_worker"
leases.HEARTBEAT_TIMEOUT = 5.0
"""


def failure_of(answer: dict[str, Any]) -> dict[str, Any]:
    """The error of a tool that failed: a result marked as an error, with code and message as JSON."""
    assert "error" not in answer, answer
    result = answer["result"]
    assert result["isError"] is True, answer
    error = content_of(result)
    assert error["code"]
    assert error["message"]
    return error


def content_of(result: dict[str, Any]) -> dict[str, Any]:
    """The record in the result of a tool: one text block with JSON."""
    assert "structuredContent" not in result
    (block,) = result["content"]
    assert block["type"] == "text"
    record: dict[str, Any] = json.loads(block["text"])
    return record


class Pipes:
    """`quaid serve` with raw frames going in and out. Everything it printed is kept.

    `cold` starts it in its own process instead of a forked one, for tests that look at the process or kill it.
    """

    def __init__(
        self,
        db: str,
        *more: str,
        environ: dict[str, str] | None = None,
        hasty: bool = False,
        cold: bool = False,
    ) -> None:
        self.process = subprocess.Popen(
            command(db, *more, prelude=HASTY if hasty else ""),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment(), **(environ or {}), **(commands.ON_ITS_OWN if cold else {})},
        )
        self.lines: queue.Queue[bytes] = queue.Queue()
        self.ids = iter(range(1, 1_000_000))
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.put(line)

    def write(self, *frames: Any) -> None:
        """Send frames, bytes as they are and everything else as JSON, in one go."""
        assert self.process.stdin
        lines = [frame if isinstance(frame, bytes) else json.dumps(frame).encode() for frame in frames]
        self.process.stdin.write(b"".join(line + b"\n" for line in lines))
        self.process.stdin.flush()

    def next(self) -> Any:
        """The next message of the server."""
        return json.loads(self.lines.get(timeout=PATIENCE))

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return its answer; what comes before it is dropped."""
        id = f"q{next(self.ids)}"
        self.write({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})
        while (answer := self.next()).get("id") != id:
            pass
        return dict(answer)

    def greet(self, version: str = "2025-11-25") -> dict[str, Any]:
        answer = self.ask("initialize", {**HELLO, "protocolVersion": version})
        self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return dict(answer["result"])

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def record(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must succeed; its record."""
        answer = self.call(tool, **arguments)
        assert answer["result"]["isError"] is False, answer
        return content_of(answer["result"])

    def fail(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must fail; its error."""
        return failure_of(self.call(tool, **arguments))

    def end(self) -> tuple[int, list[Any], str]:
        """Close the pipe; the exit status, the messages nobody took, and what went to standard error."""
        assert self.process.stdin
        assert self.process.stderr
        assert self.process.stdout
        self.process.stdin.close()
        status = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        errors = self.process.stderr.read().decode()
        self.process.stderr.close()
        self.process.stdout.close()
        left = []
        while not self.lines.empty():
            left.append(json.loads(self.lines.get()))
        return status, left, errors

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe and not pipe.closed:
                pipe.close()
