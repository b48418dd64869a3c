"""Asking before what cannot be undone: on a real terminal, and where there is none."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

SRC = str(Path(__file__).resolve().parents[2] / "src")


def quaid(folder: Path, *words: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "quaid", "--db", str(folder / "memory.db"), *words]
    environ = {**os.environ, "PYTHONPATH": SRC}
    return subprocess.run(command, input=text, capture_output=True, text=True, env=environ, timeout=60)


def at_a_terminal(folder: Path, answer: str, *words: str) -> tuple[int, str]:
    """Run a command on a terminal of its own, answer its question, return its status and everything shown."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "quaid", "--db", str(folder / "memory.db"), *words],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "PYTHONPATH": SRC},
    )
    os.close(theirs)
    shown = b""
    answered = False
    while True:
        try:
            block = os.read(ours, 4096)
        except OSError:  # the terminal is closed
            break
        if not block:
            break
        shown += block
        if b"[y/N]" in shown and not answered:
            answered = True
            os.write(ours, answer.encode())
    os.close(ours)
    return process.wait(timeout=60), shown.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    quaid(tmp_path, "init")
    quaid(tmp_path, "put", "people/bob", text="# Bob\n\nTea.")
    quaid(tmp_path, "put", "people/robert", text="# Robert\n\nCoffee.")
    return tmp_path


def pages(folder: Path) -> int:
    return len(quaid(folder, "list").stdout.splitlines()) - 1


def test_a_terminal_shows_the_version_beside_the_page(folder: Path) -> None:
    status, shown = at_a_terminal(folder, "", "get", "people/bob")
    assert (status, shown.replace("\r", "")) == (0, "# Bob\n\nTea.\nquaid: people/bob is at version 1\n")
    plain = quaid(folder, "get", "people/bob")
    assert (plain.stdout, plain.stderr) == ("# Bob\n\nTea.\n", "")


def test_put_accepts_the_output_of_get_unchanged(folder: Path) -> None:
    text = "---\nb: 1\na: [x, z]\n---\n\n# Bob\n\nTea.\n\n---\n\n- 2026-04-22 — Called.\n"
    quaid(folder, "put", "people/bob", text=text)
    got = quaid(folder, "get", "people/bob").stdout
    assert got == text
    assert "already has this text (version 2)" in quaid(folder, "put", "people/bob", text=got).stdout


@pytest.mark.parametrize("answer", ["\n", "n\n", "maybe\n", "\x04"])
def test_any_answer_except_yes_cancels(folder: Path, answer: str) -> None:
    status, shown = at_a_terminal(folder, answer, "forget", "people/bob")
    assert status == 130
    assert "To be deleted: people/bob (Bob)" in shown
    assert "nothing was changed" in shown
    assert pages(folder) == 2


def test_confirmed_forget_shows_the_plan_and_then_the_result(folder: Path) -> None:
    status, shown = at_a_terminal(folder, "y\n", "forget", "people/bob")
    assert status == 0, shown
    assert shown.index("To be deleted:") < shown.index("[y/N]") < shown.index("Forgot people/bob.")
    assert pages(folder) == 1


def test_merge_asks_for_confirmation(folder: Path) -> None:
    words = ("merge", "people/robert", "people/bob", "--into", "people/robert")
    status, shown = at_a_terminal(folder, "yes\n", *words)
    assert status == 0, shown
    assert shown.index("nothing is changed yet") < shown.index("Merged people/bob into people/robert")
    assert pages(folder) == 1


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_without_a_terminal_forget_needs_yes(folder: Path, more: tuple[str, ...]) -> None:
    done = quaid(folder, "forget", "people/bob", *more, text="y\n")
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert done.stdout == ""
    assert pages(folder) == 2
