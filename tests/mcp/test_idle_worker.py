"""An idle server starts a worker process that embeds missing text."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.pipes import PATIENCE, Pipes, environment

from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch
from quaid.storage import chunks, embedding_queue, vectors

Start = Callable[..., Pipes]
ON = {"QUAID_BACKGROUND_EMBEDDING": "on"}


class Model(ThreadingHTTPServer):
    """A server of vectors that can be told to fail or to hang."""

    daemon_threads = True
    mood = "well"
    asked: list[str]

    @property
    def place(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that are ended while they wait are part of these tests."""


class Handler(BaseHTTPRequestHandler):
    server: Model

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        self.server.asked += texts
        while self.server.mood == "hangs":
            time.sleep(0.05)
        body = json.dumps({"embeddings": [[len(text), 1, 2] for text in texts]}).encode()
        self.send_response(200 if self.server.mood == "well" else 500)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def finish(self) -> None:
        try:
            super().finish()
        except OSError:
            pass  # a client that was ended


@pytest.fixture
def model() -> Iterator[Model]:
    with Model(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.mood = "well"
        server.shutdown()
        thread.join()


def run(settings: Settings, command: str, **arguments: Any) -> Any:
    with Brain(settings) as brain:
        return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


@pytest.fixture
def served(db: str, settings: Settings, model: Model) -> str:
    """A memory whose active model is that server, with every vector made."""
    run(settings, "model add", place=model.place, kind="ollama", model="m")
    assert run(settings, "embed", model="m").active
    model.asked.clear()
    return db


def coverage(settings: Settings) -> tuple[int, int]:
    with Brain(settings) as brain:
        active = vectors.active_model(brain.db)
        return embedding_queue.ChunkQueue(brain.db, active.name).coverage() if active else (0, -1)


def wait_until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_whole(settings: Settings) -> bool:
    made, total = coverage(settings)
    return made == total


def filler(settings: Settings) -> int:
    """The process that fills, once there is one."""
    results: list[int] = []

    def look() -> bool:
        if who := embedding_queue.current_run(settings.db_path):
            results.append(who.process)
        return bool(results)

    wait_until(look)
    return results[0]


def is_running(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"  # not yet taken note of is ended too
    except (FileNotFoundError, ProcessLookupError):  # it may end while we look
        return False


def test_old_and_new_pages_get_vectors_of_the_real_model(
    start: Start, db: str, settings: Settings, tmp_path: Path
) -> None:
    server = start(db, environ={**ON, "HOME": str(tmp_path)}, hasty=True)
    server.greet()
    assert server.record("memory_put", slug="concepts/tide", content="# Tide\n\nIt comes twice a day.")
    wait_until(lambda: is_whole(settings))
    with Brain(settings) as brain:
        slugs = {
            slug
            for (slug,) in brain.db.rows(
                "SELECT p.slug FROM page_embeddings AS e JOIN pages AS p ON p.id = e.page_id"
            )
        }
    assert slugs == {"people/alice", "companies/river", "concepts/tide"}
    status, left, errors = server.end()
    assert (status, left, len(errors.splitlines())) == (0, [], 1)


def test_what_was_just_written_has_a_vector_at_the_next_question_of_a_steady_stream(
    start: Start, served: str, settings: Settings, tmp_path: Path
) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(300):
        (folder / f"old-{number}.md").write_text(f"# Old {number}\n\nImported text {number}.\n")
    run(settings, "import", folder=str(folder))
    server = start(served, "--tools", "all", environ={**ON, "HOME": str(tmp_path)})
    server.greet()
    writes: list[Callable[[int], Any]] = [
        lambda number: server.record("memory_put", slug=f"p/{number}", content=f"# P\n\nPage {number}."),
        lambda number: server.record("remember", content=f"Anna likes tea number {number}"),
        lambda number: server.record("daily_log", entry=f"Painted door {number}"),
        lambda number: server.record(
            "memory_ingest",
            content=f"Boat {number} was sold.",
            source_type="meeting",
            source_ref=f"m/{number}",
        ),
    ]
    with Brain(settings) as brain:
        for number in range(100):
            writes[number % 4](number)
            server.record("memory_query", query=f"number {number}")
            newest = chunks.highest_id(brain.db)
            queue = embedding_queue.ChunkQueue(brain.db, "m")
            assert (newest, queue.newest(newest - 1, "", 1)) == (newest, []), number
    assert server.end()[0] == 0


def test_two_servers_do_not_embed_twice(start: Start, served: str, settings: Settings, model: Model) -> None:
    servers = [start(served, environ=ON, hasty=True) for _ in range(2)]
    for server in servers:
        server.greet()
    for number in range(6):
        for place, server in enumerate(servers):
            server.record("memory_put", slug=f"p/{place}-{number}", content=f"# P\n\nPage {place} {number}.")
    wait_until(lambda: is_whole(settings))
    assert coverage(settings)[1] == 12 + 3
    assert sorted(model.asked) == sorted(set(model.asked))
    assert len(model.asked) == 12
    for server in servers:
        assert server.end()[0] == 0


def test_failing_model_is_reported_not_retried_and_resumed_later(
    start: Start, served: str, settings: Settings, model: Model
) -> None:
    model.mood = "ill"
    server = start(served, "--tools", "all", environ=ON, hasty=True)
    server.greet()
    assert server.record("memory_put", slug="concepts/tide", content="# Tide\n\nIt comes twice a day.")
    wait_until(lambda: embedding_queue.last_failure(settings.db_path))
    tries = len(model.asked)
    time.sleep(1.2)  # two looks, and as many pauses
    assert len(model.asked) == tries
    content = server.record("memory_status")
    assert "answers with status 500" in content["trouble"]["problem"]
    assert (content["model"]["missing"], content.get("filling")) == (1, None)
    result = server.record("memory_query", question="tide")
    assert result["results"][0]["slug"] == "concepts/tide"
    assert result["notes"][0].startswith("by words only: the model m failed at")
    model.mood = "well"
    assert server.record("memory_put", slug="concepts/ebb", content="# Ebb\n\nIt goes as often.")
    wait_until(lambda: is_whole(settings))
    content = server.record("memory_status")
    assert content["model"]["missing"] == 0
    assert not {"trouble", "next_steps"} & set(content)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="asks the system about processes")
@pytest.mark.parametrize("ending", ["pipe", "term", "kill"])
def test_worker_ends_with_its_server(
    start: Start, served: str, settings: Settings, model: Model, ending: str
) -> None:
    model.mood = "hangs"
    run(settings, "put", slug="concepts/tide", content="# Tide\n\nIt comes twice a day.")
    server = start(served, environ=ON, hasty=True, cold=True)
    server.greet()
    process = filler(settings)
    assert server.record("memory_get", slug="people/alice")  # nobody waits for it
    assert process != server.process.pid
    assert is_running(process)
    if ending == "pipe":
        assert server.end()[0] == 0
    else:
        server.process.send_signal(signal.SIGTERM if ending == "term" else signal.SIGKILL)
        server.process.wait(PATIENCE)
    wait_until(lambda: not is_running(process))
    wait_until(lambda: embedding_queue.current_run(settings.db_path) is None)


@pytest.mark.parametrize("how", ["environment", "setting"])
def test_background_embedding_can_be_turned_off(
    start: Start, served: str, settings: Settings, model: Model, how: str
) -> None:
    if how == "setting":
        run(settings, "config set", key="background_embedding", value="off")
    environ = {"QUAID_BACKGROUND_EMBEDDING": "off" if how == "environment" else ""}
    server = start(served, environ=environ, hasty=True)
    server.greet()
    assert server.record("memory_put", slug="concepts/tide", content="# Tide\n\nIt comes.")
    time.sleep(1)
    assert model.asked == []
    assert coverage(settings) == (3, 4)


def test_server_without_a_memory_starts_no_worker(start: Start, settings: Settings, tmp_path: Path) -> None:
    server = start(str(tmp_path / "none.db"), environ=ON, hasty=True)
    server.greet()
    time.sleep(0.8)
    assert server.fail("memory_get", slug="a")["code"] == "page_not_found"
    status, _, errors = server.end()
    assert (status, len(errors.splitlines())) == (0, 1)
    assert os.listdir(tmp_path) == []


def test_modules_in_the_working_folder_are_not_imported(
    served: str, settings: Settings, model: Model, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    for name in ("json.py", "quaid.py", "apsw.py"):
        (folder / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit\n")
    run(settings, "put", slug="concepts/tide", content="# Tide\n\nIt comes twice a day.")
    code = (
        "import sys\nfrom quaid.worker import WorkerProcess\nworker = WorkerProcess('embed')\n"
        "worker.start(sys.argv[1])\nsys.exit(worker._process.wait())"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, served], cwd=folder, env={**environment(), **ON}, timeout=PATIENCE
    )
    assert done.returncode == 0
    assert is_whole(settings)
    assert not (tmp_path / "ran").exists()
