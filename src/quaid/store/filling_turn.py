"""Whose turn it is to make vectors, and what went wrong the last time.

Knows a file beside the database that is locked while somebody fills, and the one line in it. Does not know how
vectors are made. The system drops the lock when its holder dies; what he wrote then counts for nothing.
"""

import json
import os
from typing import Any, NamedTuple

from quaid.store.lock import take
from quaid.store.trouble import system_told_plainly

LOCKED_BYTE = 1 << 30  # Windows keeps others from reading what is locked: no line reaches this far
LONGEST_LINE = 4_096
LONGEST_PROBLEM = 600  # characters: written with escapes they still fit into a line


class Filling(NamedTuple):
    """Somebody who makes vectors now."""

    model: str
    process: int
    since: str


class Trouble(NamedTuple):
    """Why vectors could not be made."""

    model: str
    problem: str
    at: str
    down: bool = False
    """The model itself did not answer; else it only gave nothing for some texts."""


class Turn:
    """The right to make vectors for one memory."""

    def __init__(self, database_path: str) -> None:
        self._database_path = database_path
        self._handle: int | None = None

    def try_take(self) -> bool:
        """Take the turn, unless another process has it."""
        handle = _open(self._database_path, os.O_RDWR | os.O_CREAT)
        if not _locked(handle):
            os.close(handle)
            return False
        self._handle = handle
        return True

    def begin(self, model: str, now: str) -> None:
        """Say who is at work."""
        self._write({"filling": model, "process": os.getpid(), "since": now})

    def fail(self, model: str, problem: str, now: str, *, down: bool = False) -> None:
        """Say what went wrong."""
        if len(problem) > LONGEST_PROBLEM:
            problem = problem[: LONGEST_PROBLEM - 1] + "…"
        said = {"failed": model, "problem": problem, "at": now}
        self._write({**said, "down": True} if down else said)

    def succeed(self) -> None:
        """Nothing is wrong any more."""
        self._write({})

    def release(self) -> None:
        """Give the turn back."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _write(self, said: dict[str, Any]) -> None:
        assert self._handle is not None
        with system_told_plainly(self._database_path):
            os.ftruncate(self._handle, 0)
            os.lseek(self._handle, 0, os.SEEK_SET)
            os.write(self._handle, json.dumps(said).encode() if said else b"")


def filling(database_path: str) -> Filling | None:
    """Who makes vectors at this moment, if anybody does."""
    said = _read(database_path)
    if "filling" not in said or not _is_taken(database_path):
        return None
    return Filling(str(said["filling"]), int(said.get("process", 0)), str(said.get("since", "")))


def trouble(database_path: str) -> Trouble | None:
    """What went wrong the last time, if it has not gone right since."""
    said = _read(database_path)
    if "failed" not in said:
        return None
    return Trouble(
        *(str(said["failed"]), str(said.get("problem", "")), str(said.get("at", ""))), bool(said.get("down"))
    )


def note(database_path: str, model: str, problem: str, now: str, *, down: bool = False) -> None:
    """Say what went wrong, for somebody who had no turn; whoever fills now knows better."""
    turn = Turn(database_path)
    if turn.try_take():
        try:
            turn.fail(model, problem, now, down=down)
        finally:
            turn.release()


def clear(database_path: str) -> None:
    """Say that it goes right again; whoever fills now says so himself."""
    turn = Turn(database_path)
    if turn.try_take():
        try:
            turn.succeed()
        finally:
            turn.release()


def _is_taken(database_path: str) -> bool:
    try:
        handle = _open(database_path, os.O_RDWR)
    except Exception:  # a reader who may not write cannot find out
        return True
    try:
        return not _locked(handle)
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
    return take(handle)


def _read(database_path: str) -> dict[str, Any]:
    try:
        with open(_path(database_path), "rb") as file:
            said = json.loads(file.read(LONGEST_LINE) or b"{}")
    except (OSError, ValueError):  # ValueError: half a line, by somebody who writes now
        return {}
    return said if isinstance(said, dict) else {}


def _open(database_path: str, how: int) -> int:
    with system_told_plainly(database_path):
        return os.open(_path(database_path), how, 0o600)


def _path(database_path: str) -> str:
    return database_path + "-filling-lock"
