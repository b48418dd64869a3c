"""Servers and attached folders: one server starts a watcher, and another takes over when it ends."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.pipes import PATIENCE, ROOT, SOURCE, Pipes, content_of

from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch
from quaid.storage import leases
from quaid.storage.collections import Collections

Start = Callable[..., Pipes]
pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="asks the system about processes")
ENVIRON = {"PYTHONPATH": f"{SOURCE}:{ROOT}"}


def wait_until(true: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (result := true()):
        assert time.monotonic() < deadline
        time.sleep(0.03)
    return result


@pytest.fixture
def folder(db: str, settings: Settings, tmp_path: Path) -> Path:
    """A folder that is attached to the memory."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "tide.md").write_text("# Tide\n\nIt comes twice a day.\n")
    with Brain(settings) as brain:
        add = dispatch.find_command("collection add")
        dispatch.call(brain, add, {"name": "notes", "path": str(folder)}, "owner")
    return folder


def owner(settings: Settings) -> int:
    """Return the process that watches now, or 0."""
    path = os.path.realpath(settings.db_path)
    with Brain(settings) as brain:
        names = [row.watch_lease for row in Collections(brain.db).all() if row.is_attached]
    held = [name for name in names if leases.is_leased(path, name)]
    return leases.read_state(path, held[0]).get("pid", 0) if held else 0


def is_running(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False


def children(process: int) -> list[int]:
    """The processes that one has started, from any of its threads."""
    results: list[int] = []
    for thread in os.listdir(f"/proc/{process}/task"):
        path = f"/proc/{process}/task/{thread}/children"
        with (
            suppress(FileNotFoundError, ProcessLookupError),
            open(path) as file,
        ):  # a thread may end meanwhile
            results += [int(word) for word in file.read().split()]
    return results


def finds(server: Pipes, words: str) -> bool:
    answer = server.call("memory_search", query=f'"{words}"')
    return bool(content_of(answer["result"]).get("hits"))


def begin(start: Start, db: str, count: int) -> list[Pipes]:
    servers = [start(db, environ=ENVIRON, hasty=True, cold=True) for _ in range(count)]
    for server in servers:
        server.greet()
    return servers


def test_of_three_servers_one_starts_a_watcher_and_all_find_the_change(
    start: Start, db: str, folder: Path, settings: Settings
) -> None:
    servers = begin(start, db, 3)
    process = wait_until(lambda: owner(settings))
    (folder / "tide.md").write_text("# Tide\n\nIt turned at noon.\n")
    wait_until(lambda: all(finds(server, "turned at noon") for server in servers))
    time.sleep(1.0)  # several looks; a second one that was sent at the same moment goes again
    wait_until(lambda: [child for server in servers for child in children(server.process.pid)] == [process])
    for server in servers:
        status, left, errors = server.end()
        assert (status, left, len(errors.splitlines())) == (0, [], 1)
    assert not is_running(process)
    assert owner(settings) == 0


@pytest.mark.parametrize("victim", ["server", "watcher", "hung watcher"])
def test_another_process_takes_over_a_watch_lease(
    start: Start, db: str, folder: Path, settings: Settings, victim: str
) -> None:
    servers = begin(start, db, 2)
    before = wait_until(lambda: owner(settings))
    (place,) = [at for at, server in enumerate(servers) if before in children(server.process.pid)]
    heir = servers[1 - place]
    if victim == "server":
        servers[place].process.kill()
    else:
        with Brain(settings) as brain, brain.db.lock.held():  # else it might stop within a transaction
            os.kill(before, signal.SIGKILL if victim == "watcher" else signal.SIGSTOP)
    try:
        (folder / "tide.md").write_text("# Tide\n\nIt turned at noon.\n")
        wait_until(lambda: owner(settings) not in (0, before))
        wait_until(lambda: finds(heir, "turned at noon"))
    finally:
        if victim == "hung watcher":
            os.kill(before, signal.SIGCONT)
    wait_until(lambda: not is_running(before))
    assert all(heir.record("memory_get", slug="people/alice") for _ in range(3))


def test_folder_attached_later_is_watched(start: Start, db: str, settings: Settings, tmp_path: Path) -> None:
    (server,) = begin(start, db, 1)
    time.sleep(0.7)
    assert children(server.process.pid) == []  # nothing to watch, nobody who watches
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "ebb.md").write_text("# Ebb\n\nIt goes.\n")
    with Brain(settings) as brain:
        arguments = {"name": "later", "path": str(tmp_path / "later")}
        dispatch.call(brain, dispatch.find_command("collection add"), arguments, "owner")
    wait_until(lambda: owner(settings))
    (tmp_path / "later" / "ebb.md").write_text("# Ebb\n\nIt goes as often.\n")
    wait_until(lambda: finds(server, "goes as often"))


def test_no_lock_errors_while_folders_change_and_servers_write(
    start: Start, db: str, folder: Path, settings: Settings
) -> None:
    servers = begin(start, db, 3)
    wait_until(lambda: owner(settings))
    for number in range(120):
        (folder / f"n{number}.md").write_text(f"# n{number}\n\nFile {number}.\n")
        server = servers[number % 3]
        server.record("memory_put", slug=f"default::p/{number}", content=f"# P\n\nPage {number}.")
    wait_until(lambda: finds(servers[0], "File 119"))
