"""Words that must not leak: of pages, of questions, of tokens, of addresses with a password. No log holds one."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.faults.here import PROJECT, run
from tests.faults.household import environment, settings_of, settle
from tests.faults.ledger import Cases
from tests.surfaces.mcp.pipes import HELLO, Pipes
from tests.surfaces.web.process import Process

from quaid.kb import layout
from quaid.ops import tokens
from quaid.surfaces.cli.hook import HANDLERS

pytestmark = pytest.mark.promise("quiet logs")
PAGE, ASKED, PASSWORD = "pagecanary81", "askedcanary82", "passwordcanary83"
REMOTE = f"https://ann:{PASSWORD}@127.0.0.1:1/kb.git"


WRECKED = f"""
import sys
from quaid.store import pages
from quaid.store.db import Database
def broken(*given, **named):
    raise RuntimeError(f"A {PAGE} text, asked with {{given}} {{named}}")
pages.find = broken
if "hook" in sys.argv:
    Database.open = broken
from quaid.surfaces.cli import main
sys.exit(main())
"""
"""Quaid with a mistake of our own in it, whose message holds what it was about."""

QUAID = ("-m", "quaid")


def command(home: Path, *words: str, program: tuple[str, ...] = QUAID, said: str = "") -> str:
    """What a command says on standard error."""
    return called(home, *words, program=program, said=said).stderr


def called(
    home: Path, *words: str, program: tuple[str, ...] = QUAID, said: str = ""
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-P", *program, "--db", str(home / "memory.db"), *words],
        env={**environment(home), "PYTHONPATH": str(PROJECT / "src")},
        capture_output=True,
        text=True,
        input=said,
        timeout=120,
    )


def test_nothing_that_is_private_reaches_a_log_or_standard_error(tmp_path: Path, cases: Cases) -> None:
    home = tmp_path / "home"
    with settle(home) as brain:
        run(brain, "put", slug="a/page", content=f"# Page\n\nA {PAGE} text.\n")
    subprocess.run(["git", "-C", str(home / "kb"), "remote", "add", "origin", REMOTE], check=True, timeout=60)
    settings = settings_of(home)
    token = tokens.owner_token(settings)
    said: list[str] = []
    for seed in cases.walk(1, 20):
        before = len(said)
        said += over_stdio(home, seed)
        said += over_http(home, token, seed)
        for verb in ("push", "status", "doctor", "sync"):
            done = called(home, "kb", verb)
            said += [done.stdout, done.stderr]
        said += [command(home, "get", f"no/{ASKED}"), command(home, "search", "--limit", "0", f"{ASKED}")]
        for program in (QUAID, ("-c", WRECKED)):
            said += [hooked(home, name, program) for name in HANDLERS]
        said += crashed(home, token)
        cases.count(len(said) - before - 1)
    canaries = (PAGE, PASSWORD, token)
    assert [(word, text) for text in said for word in canaries if word in text] == []
    logs = [path for path in home.rglob("*") if path.is_file() and is_log(path)]
    assert [
        (path, word) for path in logs for word in (*canaries, ASKED) if word.encode() in path.read_bytes()
    ] == []
    cases.count(len(logs))
    assert open_to_others(home / ".quaid", home / "memory.db") == []
    cases.note(f"{len(said)} outputs, {len(logs)} logs")


def is_log(path: Path) -> bool:
    """Logs, and what a knowledge base remembers of its remote; the person's own .git/config is none."""
    return path.suffix == ".log" or (".git" in path.parts and bool({"logs", layout.OURS} & {*path.parts}))


def open_to_others(*places: Path) -> list[str]:
    """What somebody else of this machine could read."""
    found = []
    for place in places:
        for path in [place, *place.rglob("*")] if place.is_dir() else [place]:
            mode = stat.S_IMODE(os.lstat(path).st_mode)
            if not path.is_symlink() and mode & 0o077:
                found.append(f"{path} {mode:o}")
    return found


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
    lines = "".join(json.dumps(each) + "\n" for each in frames)
    done = called(home, "serve", program=("-c", WRECKED), said=lines)
    assert "Internal error" in done.stdout
    assert "RuntimeError" in done.stderr
    assert PAGE not in done.stdout
    with Process(settings_of(home), "serve", "--http", program=("-c", WRECKED)) as server:
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


def over_stdio(home: Path, seed: int) -> list[str]:
    server = Pipes(str(home / "memory.db"), environ=environment(home))
    try:
        server.greet()
        server.call("memory_search", query=f"{ASKED} {PAGE}")
        server.call("memory_get", slug=f"../{ASKED}")
        server.call("memory_get", slug=5, nonsense=ASKED)
        server.call("memory_put", slug="a/page", content=PAGE, expected_version=99)
        server.write(f'{{"broken": "{ASKED} {PAGE} {seed}'.encode())
        _, _, errors = server.end()
    finally:
        server.kill()
    assert ASKED not in errors
    return [errors]


def over_http(home: Path, token: str, seed: int) -> list[str]:
    with Process(settings_of(home), "serve", "--http", "--debug") as server:
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
        server.stop()
        assert server.process.stderr
        errors = server.said + server.process.stderr.read()
    assert ASKED not in errors
    return [errors]
