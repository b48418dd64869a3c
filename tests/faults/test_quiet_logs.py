"""Words that must not leak: of pages, of questions, of tokens, of addresses with a password. No log holds one."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.here import PROJECT, run
from tests.faults.household import environment, settings_of, settle
from tests.faults.ledger import Cases
from tests.surfaces.mcp.pipes import Pipes
from tests.surfaces.web.process import Process

from quaid.ops import tokens

pytestmark = pytest.mark.promise("quiet logs")
PAGE, ASKED, PASSWORD = "pagecanary81", "askedcanary82", "passwordcanary83"
REMOTE = f"https://ann:{PASSWORD}@127.0.0.1:1/kb.git"


def command(home: Path, *words: str) -> str:
    """What a command says on standard error."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "quaid", "--db", str(home / "memory.db"), *words],
        env={**environment(home), "PYTHONPATH": str(PROJECT / "src")},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
    return done.stderr


def test_nothing_that_is_private_reaches_a_log_or_standard_error(tmp_path: Path, cases: Cases) -> None:
    home = tmp_path / "home"
    with settle(home) as brain:
        run(brain, "put", slug="a/page", content=f"# Page\n\nA {PAGE} text.\n")
    subprocess.run(["git", "-C", str(home / "kb"), "remote", "add", "origin", REMOTE], check=True, timeout=60)
    settings = settings_of(home)
    token = tokens.owner_token(settings)
    said: list[str] = []
    for seed in cases.walk(1, 20):
        said += over_stdio(home, seed)
        said += over_http(home, token, seed)
        said += [command(home, "kb", "push"), command(home, "kb", "status"), command(home, "kb", "doctor")]
        said += [command(home, "get", f"no/{ASKED}"), command(home, "search", "--limit", "0", f"{ASKED}")]
        cases.count(20)
    canaries = (PAGE, PASSWORD, token)
    assert [(word, text) for text in said for word in canaries if word in text] == []
    logs = [path for path in home.rglob("*") if path.is_file() and is_log(path)]
    assert [
        (path, word) for path in logs for word in (*canaries, ASKED) if word.encode() in path.read_bytes()
    ] == []
    assert open_to_others(home / ".quaid", home / "memory.db") == []
    cases.note(f"{len(said)} outputs, {len(logs)} logs")


def is_log(path: Path) -> bool:
    return path.suffix == ".log" or (".git" in path.parts and "logs" in path.parts)


def open_to_others(*places: Path) -> list[str]:
    """What somebody else of this machine could read."""
    found = []
    for place in places:
        for path in [place, *place.rglob("*")] if place.is_dir() else [place]:
            mode = stat.S_IMODE(os.lstat(path).st_mode)
            if not path.is_symlink() and mode & 0o077:
                found.append(f"{path} {mode:o}")
    return found


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
