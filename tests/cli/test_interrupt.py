"""Ctrl-C in the middle of long work: one line, status 130, and what was done stays done."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.config import Settings
from quaid.embedding.backfill import BATCH_SIZE
from quaid.operations import dispatch
from quaid.storage import embedding_queue, vectors

PAGES = 3 * BATCH_SIZE
PATIENCE = 60


class Model(ThreadingHTTPServer):
    asked = 0
    go_on: threading.Event


class Slow(BaseHTTPRequestHandler):
    """Gives the vectors of a batch after a moment, and those of the last one when somebody has been stopped."""

    server: Model

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        if len(texts) > 1:
            self.server.asked += len(texts)
            self.server.go_on.wait(1 if self.server.asked <= 2 * BATCH_SIZE else PATIENCE)
        body = json.dumps({"embeddings": [[len(text), 1, 2] for text in texts]}).encode()
        try:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            pass  # stopped

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def go_on() -> threading.Event:
    return threading.Event()


@pytest.fixture
def brain(settings: Settings, go_on: threading.Event) -> Iterator[Brain]:
    """A memory of pages without vectors, and a slow model."""
    with Model(("127.0.0.1", 0), Slow) as server, Brain(settings) as brain:
        server.go_on = go_on
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        brain.create(settings.db_path)
        for number in range(PAGES):
            run(brain, "put", slug=f"p{number}", content=f"# P{number}\n\nPage {number}.")
        place = f"http://127.0.0.1:{server.server_address[1]}"
        run(brain, "model add", place=place, kind="ollama", model="m")
        yield brain
        go_on.set()
        server.shutdown()


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def embed(brain: Brain) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "quaid", "--db", brain.db.path, "embed", "--model", "m"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        preexec_fn=heed_ctrl_c,
    )


def heed_ctrl_c() -> None:
    """Who is started in the background by a shell ignores Ctrl-C, and so do those whom he starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def made(brain: Brain) -> int:
    return embedding_queue.ChunkQueue(brain.db, "m").coverage()[0] if vectors.find_model(brain.db, "m") else 0


@pytest.mark.skipif(os.name == "nt", reason="Windows has no signals of this kind")
def test_an_interrupted_embed_keeps_its_vectors_and_resumes(brain: Brain, go_on: threading.Event) -> None:
    process = embed(brain)
    deadline = time.monotonic() + PATIENCE
    while not made(brain):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=PATIENCE)
    kept = made(brain)
    assert (process.returncode, out) == (130, "")
    assert errors == (
        f"quaid: Stopped on request: {kept} of {PAGES} chunks have a vector of m; they are kept."
        " `quaid embed --model m` makes the rest.\n"
    )
    assert kept in (BATCH_SIZE, 2 * BATCH_SIZE)
    assert embedding_queue.last_failure(brain.db.path) is None
    go_on.set()
    done = run(brain, "embed", model="m")
    assert (done.embedded, done.cached, done.active) == (PAGES - kept, kept, True)
