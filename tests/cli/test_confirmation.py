"""Asking before what cannot be undone: on a real terminal, and where there is none."""

import os
import pty
import subprocess

import pytest
from tests import commands

from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch


class Terminal:
    """Runs commands on a memory with two pages."""

    def __init__(self, db: str) -> None:
        self.command = [commands.program(), "--db", db]

    def quaid(self, *words: str, text: str = "") -> "subprocess.CompletedProcess[str]":
        return subprocess.run([*self.command, *words], input=text, capture_output=True, text=True, timeout=60)

    def answer(self, answer: str, *words: str) -> tuple[int, str]:
        """Run a command on a new terminal, answer its question, return its status and everything shown."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([*self.command, *words], stdin=theirs, stdout=theirs, stderr=theirs)
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

    def pages(self) -> int:
        return len(self.quaid("list").stdout.splitlines()) - 1


@pytest.fixture
def terminal(settings: Settings) -> Terminal:
    with Brain(settings) as brain:
        brain.create(settings.db_path)
        for slug, content in (("people/bob", "# Bob\n\nTea."), ("people/robert", "# Robert\n\nCoffee.")):
            dispatch.call(brain, dispatch.find_command("put"), {"slug": slug, "content": content}, "owner")
    return Terminal(settings.db_path)


def test_a_terminal_shows_the_version_beside_the_page(terminal: Terminal) -> None:
    status, shown = terminal.answer("", "get", "people/bob")
    assert (status, shown.replace("\r", "")) == (0, "# Bob\n\nTea.\nquaid: people/bob is at version 1\n")
    plain = terminal.quaid("get", "people/bob")
    assert (plain.stdout, plain.stderr) == ("# Bob\n\nTea.\n", "")


def test_put_accepts_the_output_of_get_unchanged(terminal: Terminal) -> None:
    text = "---\nb: 1\na: [x, z]\n---\n\n# Bob\n\nTea.\n\n---\n\n- 2026-04-22 — Called.\n"
    terminal.quaid("put", "people/bob", text=text)
    got = terminal.quaid("get", "people/bob").stdout
    assert got == text
    assert "already has this text (version 2)" in terminal.quaid("put", "people/bob", text=got).stdout


@pytest.mark.parametrize("answer", ["\n", "n\n", "maybe\n", "\x04"])
def test_any_answer_except_yes_cancels(terminal: Terminal, answer: str) -> None:
    status, shown = terminal.answer(answer, "forget", "people/bob")
    assert status == 130
    assert "To be deleted: people/bob (Bob)" in shown
    assert "nothing was changed" in shown
    assert terminal.pages() == 2


def test_confirmed_forget_shows_the_plan_and_then_the_result(terminal: Terminal) -> None:
    status, shown = terminal.answer("y\n", "forget", "people/bob")
    assert status == 0, shown
    assert shown.index("To be deleted:") < shown.index("[y/N]") < shown.index("Forgot people/bob.")
    assert terminal.pages() == 1


def test_merge_asks_for_confirmation(terminal: Terminal) -> None:
    words = ("merge", "people/robert", "people/bob", "--into", "people/robert")
    status, shown = terminal.answer("yes\n", *words)
    assert status == 0, shown
    assert shown.index("nothing is changed yet") < shown.index("Merged people/bob into people/robert")
    assert terminal.pages() == 1


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_without_a_terminal_forget_needs_yes(terminal: Terminal, more: tuple[str, ...]) -> None:
    done = terminal.quaid("forget", "people/bob", *more, text="y\n")
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert done.stdout == ""
    assert terminal.pages() == 2
