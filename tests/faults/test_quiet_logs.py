"""Words that must not leak: of pages, of questions, of tokens, of addresses with a password. No log holds one."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.embedding.conftest import Server, serving, well
from tests.faults import old_schema
from tests.faults.canaries import (
    ASKED,
    COPIES,
    INBOX,
    PAGE,
    PASSWORD,
    QUAID,
    REMOTE,
    TEMPORARY,
    around,
    called,
    kept_by_us,
    leaks,
    open_to_others,
    seen,
)
from tests.faults.full_memory import create_memory, open_memory, settings_for
from tests.faults.ledger import Cases
from tests.faults.workspace import FOLDER, PROJECT, run
from tests.mcp.pipes import HELLO, PATIENCE, Pipes
from tests.web.server_process import Process

from quaid.cli.hook import HANDLERS
from quaid.operations import service
from quaid.storage import embedding_queue

pytestmark = pytest.mark.promise("quiet logs")


WRECKED = f"""
import sys
from quaid.storage import pages
from quaid.storage.sqlite.connection import Database
def broken(*given, **named):
    raise RuntimeError(f"A {PAGE} text, asked with {{given}} {{named}}")
pages.find = broken
if "hook" in sys.argv:
    Database.open = broken
from quaid.cli import hook
from quaid.cli.main import main
hook.CPU_SECONDS = hook.WALL_SECONDS = 60.0  # a busy machine does not keep it from the mistake
sys.exit(main())
"""
"""Quaid with a mistake of our own in it, whose message holds what it was about."""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Where files are open to everybody unless somebody takes care."""
    before = os.umask(0o022)
    yield tmp_path / "home"
    os.umask(before)


@pytest.fixture
def model() -> Iterator[Server]:
    """A server of vectors that repeats what it was sent when something is wrong, as they do."""
    with serving() as running:
        yield running


def repeats(path: str, body: dict[str, Any]) -> tuple[int, Any]:
    if PAGE in str(body["input"]):
        return 400, {"error": f"cannot embed {body['input']}"}
    return well(path, body)


def test_nothing_that_is_private_reaches_a_log_or_standard_error(
    home: Path, model: Server, cases: Cases
) -> None:
    with create_memory(home) as brain:
        run(brain, "put", slug="a/page", content=f"# Page\n\nA {PAGE} text.\n")
    for name in (INBOX, COPIES, TEMPORARY):
        (home / name).mkdir()
    subprocess.run(["git", "-C", str(home / "kb"), "remote", "add", "origin", REMOTE], check=True, timeout=60)
    token = service.owner_token(settings_for(home))
    output = [done(home, "model", "add", model.place, "--kind", "ollama", "--model", "m")]
    for seed in cases.walk(1, 20):
        before = len(output)
        model.answer = well
        output += [done(home, "embed", "--model", "m")]  # so that little is missing: a question makes no more
        model.answer = repeats
        output += over_stdio(home, token, model, seed)
        output += over_http(home, token, seed)
        for verb in ("push", "status", "doctor", "sync"):
            kb = called(home, "kb", verb)
            output += [kb.stdout, kb.stderr]
        output += [command(home, "get", f"no/{ASKED}"), command(home, "search", "--limit", "0", f"{ASKED}")]
        for program in (QUAID, ("-c", WRECKED)):
            output += [hooked(home, name, program) for name in HANDLERS]
        output += crashed(home, token)
        output += taken_in(home, seed)
        output += watched(home, token, seed)
        output += copied(home, seed)
        cases.count(len(output) - before - 1)
    canaries = (PAGE, PASSWORD, token)
    assert [(word, text) for text in output for word in canaries if word in text] == []
    assert leaks(home, *canaries, ASKED) == []
    assert open_to_others(home) == []
    looked = kept_by_us(home)
    assert {"memory.db-lock", "memory.db-embed-lock", "HEAD"} <= {path.name for path in looked}
    cases.count(len(looked))
    cases.note(f"{len(output)} outputs, {len(looked)} files")


def command(home: Path, *words: str, program: tuple[str, ...] = QUAID, said: str = "") -> str:
    """What a command says on standard error."""
    return called(home, *words, program=program, said=said).stderr


def done(home: Path, *words: str) -> str:
    """What a command that goes well says on standard error."""
    ended = called(home, *words)
    assert ended.returncode == 0, ended.stderr
    return ended.stderr


def refused(home: Path, *words: str) -> str:
    """What a command that fails says on standard error."""
    ended = called(home, *words)
    assert ended.returncode, ended.stdout
    return ended.stderr


def knows(home: Path, slug: str) -> bool:
    """Whether a file of the folder has become a page."""
    with open_memory(home) as brain:
        return bool(brain.db.rows("SELECT 1 FROM pages WHERE slug = ?", (slug,)))


def wait_until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def hooked(home: Path, name: str, program: tuple[str, ...]) -> str:
    """What a hook leaves in the log of the client that calls it."""
    transcript = home / "transcript.jsonl"
    transcript.write_text(json.dumps({"type": "user", "message": {"content": PAGE}}) + "\n")
    event = {"session_id": "s1", "prompt": f"{ASKED} {PAGE}", "transcript_path": str(transcript)}
    errors = command(home, "hook", name, program=program, said=json.dumps(event))
    errors += command(home, "hook", name, program=program, said=f'{{"prompt": "{ASKED} {PAGE}')
    assert ASKED not in errors
    assert ("RuntimeError" in errors) == (program != QUAID and name == "session-start")
    return errors


def crashed(home: Path, token: str) -> list[str]:
    """A mistake of our own inside an operation: the caller hears that there is one, no log what it was about."""
    asked = {"name": "memory_get", "arguments": {"slug": ASKED}}
    frames: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked},
    ]
    lines = "".join(json.dumps(frame) + "\n" for frame in frames)
    done = called(home, "serve", program=("-c", WRECKED), said=lines)
    assert "Internal error" in done.stdout
    assert "RuntimeError" in done.stderr
    assert PAGE not in done.stdout
    with Process(
        settings_for(home),
        *("serve", "--http"),
        program=(sys.executable, "-P", "-c", WRECKED),
        environ={"TMPDIR": str(home / TEMPORARY)},
    ) as server:
        with server.client(token) as client:
            answers = [client.post("/api/memory/get", json={"slug": ASKED}), client.get(f"/page/{ASKED}")]
            answers.append(
                client.post("/mcp", json=frames[0], headers={"Accept": "application/json, text/event-stream"})
            )
        server.stop()
        assert server.process.stderr
        errors = server.said + server.process.stderr.read()
    assert [answer.status_code for answer in answers[:2]] == [500, 500]
    assert [answer.text for answer in answers if PAGE in answer.text] == []
    assert ASKED not in done.stderr + errors
    return [done.stderr, errors]


def over_stdio(home: Path, token: str, model: Server, seed: int) -> list[str]:
    """A server with its two helpers: one that makes vectors, with a model that fails, and one that watches."""
    output = os.pathsep.join((around(home)["PYTHONPATH"], str(PROJECT)))  # the one that watches is a test's
    environ = {**around(home), "QUAID_BACKGROUND_EMBEDDING": "on", "PYTHONPATH": output}
    server = Pipes(str(home / "memory.db"), environ=environ, hasty=True, cold=True)
    try:
        server.greet()
        server.call("memory_search", query=f"{ASKED} {PAGE}")
        server.call("memory_get", slug=f"../{ASKED}")
        server.call("memory_get", slug=5, nonsense=ASKED)
        server.call("memory_put", slug="a/page", content=PAGE, expected_version=99)
        server.write(f'{{"broken": "{ASKED} {PAGE} {seed}'.encode())
        embedding_queue.record_state(str(home / "memory.db"), {})
        (home / FOLDER / f"stdio{seed}.md").write_text(f"---\n[{PAGE}\n---\n# {PAGE}\n\nstdio{seed}\n")
        wait_until(lambda: knows(home, f"stdio{seed}"))
        wait_until(lambda: embedding_queue.last_failure(str(home / "memory.db")))
        for question in (ASKED, f"{ASKED} {PAGE}"):  # the first lets it make vectors, the second is refused
            assert seen(home, token) == []
            embedding_queue.record_state(
                str(home / "memory.db"), {}
            )  # a model that has just failed is asked nothing
            model.asked.clear()
            server.call("memory_query", question=question)
            asked = [str(body["input"]) for _, body, _ in model.asked]
            assert any(question in item for item in asked)
            assert any(PAGE in item for item in asked)
            assert embedding_queue.last_failure(str(home / "memory.db"))
        assert seen(home, token) == []
        _, _, errors = server.end()
    finally:
        server.kill()
    assert ASKED not in errors
    return [errors]


def over_http(home: Path, token: str, seed: int) -> list[str]:
    with Process(
        settings_for(home), "serve", "--http", "--debug", environ={"TMPDIR": str(home / TEMPORARY)}, cold=True
    ) as server:
        with server.client(token) as client:
            for address in (
                f"/search?q={ASKED}",
                f"/page/{ASKED}",
                "/page/a/page",
                f"/api/memory/get?slug={ASKED}",
            ):
                client.get(address)
            client.post("/mcp", content=f'{{"broken": "{ASKED} {seed}'.encode())
            client.get("/api/memory/stats", headers={"Authorization": f"Bearer {token}x"})
            client.get(f"/login?code={token}")
            client.post("/api/memory/put", json={"slug": f"http/{seed}", "content": f"# {PAGE}\n"})
        assert seen(home, token) == []
        server.stop()
        assert server.process.stderr
        errors = server.said + server.process.stderr.read()
    assert ASKED not in errors
    return [errors]


def taken_in(home: Path, seed: int) -> list[str]:
    """A folder, files and a conversation, each with something that cannot be read beside what can."""
    folder = home / INBOX / str(seed)
    folder.mkdir()
    (folder / "good.md").write_text(f"---\nslug: in/{seed}\n---\n# In {seed}\n\nA {PAGE} text.\n")
    (folder / "yaml.md").write_text(f"---\nslug: [{PAGE}\n---\n# {PAGE} {seed}\n")
    (folder / "latin.md").write_bytes(f"# {PAGE} {seed} \xe9\n".encode("latin-1"))
    (home / "chats").mkdir(exist_ok=True)
    chat = home / "chats" / f"{seed}.jsonl"
    turn = {"role": "user", "content": f"{PAGE} {ASKED}", "timestamp": 1_777_000_000, "session": f"s{seed}"}
    chat.write_text(json.dumps(turn) + f'\n{{"role": "user", "content": "{PAGE}\n{PAGE}\n')
    output = [command(home, "import", str(folder)), command(home, "conversations", "add", str(chat))]
    assert called(home, "get", f"in/{seed}").returncode == 0
    assert PAGE in called(home, "conversations", "search", PAGE).stdout
    output += [done(home, "ingest", str(folder / "good.md"), "--slug", f"sources/{seed}", "--force")]
    (folder / "nul.md").write_bytes(f"# {PAGE} {seed} \0\n".encode())
    output += [
        command(home, "ingest", str(folder / name), "--force") for name in ("latin.md", "yaml.md", "nul.md")
    ]
    output += [
        refused(
            *(home, "ingest-source", str(folder / "good.md"), "--source-type", "doc"),
            *("--source-ref", f"doc/{seed}", "--pages", json.dumps([{"slug": "a/page", "part": PAGE}])),
        )
    ]
    return output


def watched(home: Path, token: str, seed: int) -> list[str]:
    """`quaid watch`, which a person may have write into a log: what it prints is looked at as well."""
    watching = subprocess.Popen(
        [sys.executable, "-P", *QUAID, "--db", str(home / "memory.db"), "watch"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=around(home),
    )
    try:
        assert watching.stdout
        lines = [watching.stdout.readline()]
        (home / FOLDER / f"watch{seed}.md").write_text(f"# {PAGE}\n\nA {PAGE} text.\n")
        (home / FOLDER / f"torn{seed}.md").write_bytes(f"# {PAGE} \xe9".encode("latin-1"))
        wait_until(lambda: knows(home, f"watch{seed}"))
        assert seen(home, token) == []
        watching.send_signal(signal.SIGINT)
        out, errors = watching.communicate(timeout=PATIENCE)
    finally:
        watching.kill()
        watching.wait()
    assert watching.returncode == 0, errors
    return [*lines, out, errors]


def copied(home: Path, seed: int) -> list[str]:
    """Copies of the memory: one that a person asks for, and the one before an upgrade."""
    copy, old = home / COPIES / f"{seed}.db", home / COPIES / f"old{seed}.db"
    old_schema.make(old, pages=2)
    old.chmod(0o600)
    output = [done(home, "backup", str(copy))]
    ended = called(home, "validate", db=f"{COPIES}/{old.name}")
    assert ended.returncode == 0, ended.stderr
    assert copy.exists()
    assert list(old.parent.glob(f"{old.name}.backup-*"))
    return [*output, ended.stderr]
