"""Output on a terminal: a pager for long texts, and tables that fit into its width."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import NamedTuple

import pytest
from tests import commands

from quaid.cli import render


def on_terminal(words: list[str], folder: Path, columns: int = 60, **variables: str) -> str:
    """Run a command whose standard output is a terminal with 20 lines, and return what it shows."""
    screen, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 20, columns, 0, 0))
    environ = {**os.environ, "HOME": str(folder), "TERM": "xterm", "QUAID_HANDOVER": "off", **variables}
    done = subprocess.Popen([commands.program(), *words], stdout=end, env=environ, cwd=folder)
    os.close(end)
    parts = []
    while True:
        try:
            data = os.read(screen, 65_536)
        except OSError:  # the program has ended
            break
        if not data:
            break
        parts.append(data)
    os.close(screen)
    assert done.wait() == 0
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_a_text_longer_than_the_terminal_is_shown_in_the_pager(tmp_path: Path) -> None:
    assert on_terminal(["help", "all"], tmp_path, PAGER="sed s/^/paged:/").startswith(
        "paged:quaid: the memory"
    )


@pytest.mark.parametrize(
    ("words", "pager"),
    [
        (["help", "all", "--no-pager"], "sed s/^/paged:/"),
        (["version"], "sed s/^/paged:/"),
        (["help", "all"], "no-such-program"),
        (["help", "all"], ""),
    ],
    ids=["option", "short", "missing", "empty"],
)
def test_other_texts_are_printed(tmp_path: Path, words: list[str], pager: str) -> None:
    shown = on_terminal(words, tmp_path, PAGER=pager)
    assert shown.startswith("quaid")
    assert "paged:" not in shown


def test_a_pipe_gets_no_pager(tmp_path: Path) -> None:
    environ = {**os.environ, "HOME": str(tmp_path), "PAGER": "sed s/^/paged:/"}
    command = [commands.program(), "help", "all"]
    assert b"paged:" not in subprocess.run(command, capture_output=True, env=environ, check=True).stdout


class Row(NamedTuple):
    name: str
    kind: str
    text: str


class Rows(NamedTuple):
    rows: tuple[Row, ...]


ROWS = Rows(
    (
        Row(
            "people/alice",
            "a kind with a rather long name",
            "She bakes bread in Oslo, and sells it on Saturdays.",
        ),
        Row("people/李", "person", "她住在北京，喜欢喝茶，也喜欢在周末写信给朋友们。" * 2),
    )
)


@pytest.mark.parametrize("width", [50, 70, 90])
def test_tables_fit_into_the_width(width: int) -> None:
    lines = render.render(ROWS, width).splitlines()
    assert max(map(render.text_width, lines)) <= width
    shown = "".join("".join(lines).split())
    for row in ROWS.rows:
        assert row.name in shown
        assert "".join(row.text.split())[:4] in shown


def test_last_column_goes_below_the_others_if_it_has_no_room() -> None:
    token = render._table_width.set(60)
    try:
        rows = [
            ("sample::projects/" + "a" * 22, "project", "2026-11-18", "The repair book"),
            ("b", "c", "d", ""),
        ]
        assert render.format_table(rows) == [
            f"sample::projects/{'a' * 22}  project  2026-11-18",
            "    The repair book",
            f"b{' ' * 40}c        d",
        ]
    finally:
        render._table_width.reset(token)


def test_a_narrow_last_column_leaves_the_room_to_the_others() -> None:
    token = render._table_width.set(60)
    try:
        [line] = render.format_table([("notes", "/home/mira/" + "n" * 60, "active", "78 pages")])
        assert len(line) == 60
    finally:
        render._table_width.reset(token)


@pytest.mark.parametrize("words", [[], ["help"], ["help", "all"], ["help", "import"], ["config", "--help"]])
@pytest.mark.parametrize("columns", [60, 80])
def test_help_fits_into_the_terminal(tmp_path: Path, words: list[str], columns: int) -> None:
    shown = on_terminal(words, tmp_path, columns, PAGER="cat")
    lines = re.sub(r"\x1b\[[\d;]*m", "", shown).splitlines()
    assert len(lines) > 3
    long = [line for line in lines if len(line) > columns and str(tmp_path) not in line]
    assert [line for line in long if not line.startswith("  quaid ")] == []


def test_without_a_width_every_cell_is_whole() -> None:
    text = render.render(ROWS, 0)
    assert all(cell in text for row in ROWS.rows for cell in row)


def test_wide_characters_take_two_columns() -> None:
    assert render.text_width("李e\u0301a") == 4
    first, second = render.format_table([("李李", "x"), ("abcd", "y")])
    assert (first, second) == ("李李  x", "abcd  y")


def test_a_word_without_spaces_is_not_cut_in_the_last_column(tmp_path: Path) -> None:
    path = "/home/somebody/" + "folder/" * 12
    token = render._table_width.set(40)
    try:
        assert path in "\n".join(render.format_table([("memory", f"at {path} here")]))
    finally:
        render._table_width.reset(token)


def test_a_list_on_a_narrow_terminal_fits(tmp_path: Path) -> None:
    environ = {**os.environ, "HOME": str(tmp_path), "QUAID_BACKGROUND_EMBEDDING": "off"}
    put = [sys.executable, "-m", "quaid", "put", "people/li", "--compiled-truth"]
    subprocess.run(
        [*put, "# " + "Somebody with a long name " * 4], env=environ, check=True, stdout=subprocess.DEVNULL
    )
    shown = on_terminal(["list"], tmp_path, 50)
    assert max(map(len, shown.splitlines())) <= 50
    assert "people/li" in shown
