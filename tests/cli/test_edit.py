"""`quaid edit`: a page in an editor, saved with a version check; `quaid open`: its address on the dashboard."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from quaid.app import Brain
from quaid.cli import commands
from quaid.cli.main import main
from quaid.config import Settings, read_settings
from quaid.operations import dispatch

Edit = Callable[..., tuple[int, str, str]]


@pytest.fixture
def edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Edit:
    """Run `quaid edit red` with a shell script as the editor. The file is $1 in the script."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("QUAID_HANDOVER", "off")
    monkeypatch.setenv("QUAID_BACKGROUND_EMBEDDING", "off")
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    assert main(["put", "red", "--compiled-truth", "# Red\n\nA colour.\n\nOf roses."]) == 0
    capsys.readouterr()

    def run(script: str, slug: str = "red", *words: str) -> tuple[int, str, str]:
        program = tmp_path / "editor"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o700)
        monkeypatch.setenv("EDITOR", str(program))
        status = main(["edit", slug, *words])
        return (status, *capsys.readouterr())

    return run


def text_of(slug: str) -> str:
    with Brain(settings()) as brain:
        return str(
            dispatch.call(brain, dispatch.find_command("get"), {"slug": [slug]}, "owner").compiled_truth
        )


def settings() -> Settings:
    return read_settings(None, os.environ, os.getcwd())


def kept(home: Path) -> list[Path]:
    return list((home / ".quaid" / "edits").iterdir())


def save_meanwhile(old: str, new: str) -> str:
    """Return a line of shell that changes the page as another program does."""
    quaid = f"{sys.executable} -m quaid"
    return f"{quaid} get red | sed 's/{old}/{new}/' | {quaid} put red >/dev/null"


def test_what_the_editor_saves_is_the_new_version(edit: Edit, tmp_path: Path) -> None:
    status, out, _ = edit("sed -i 's/roses/tulips/' \"$1\"")
    assert (status, out) == (0, "Updated red: Red (concept, concepts), version 2\n")
    assert "Of tulips." in text_of("red")
    assert kept(tmp_path) == []


def test_an_unchanged_text_writes_no_version(edit: Edit, tmp_path: Path) -> None:
    assert edit("true") == (0, "", "red was not changed\n")
    assert kept(tmp_path) == []


def test_a_new_slug_starts_with_a_heading(edit: Edit) -> None:
    assert edit('grep -q \'^# Dark blue$\' "$1" && echo Deep. >> "$1"', "colours/dark-blue")[0] == 0
    assert text_of("colours/dark-blue") == "# Dark blue\n\nDeep."


def test_a_slug_like_another_is_not_created_by_mistake(edit: Edit) -> None:
    status, _, err = edit("exit 1", "colours/red")
    assert status == 3
    assert "Did you mean red? `quaid put colours/red` creates it." in err


def test_a_change_of_another_part_is_merged(edit: Edit, tmp_path: Path) -> None:
    status, _, err = edit(f"{save_meanwhile('A colour', 'A warm colour')}\nsed -i 's/roses/tulips/' \"$1\"")
    assert (status, "both changes are merged" in err) == (0, True)
    assert text_of("red") == "# Red\n\nA warm colour.\n\nOf tulips."
    assert kept(tmp_path) == []


def test_a_conflict_keeps_the_text_in_a_named_file(edit: Edit, tmp_path: Path) -> None:
    status, _, err = edit(f"{save_meanwhile('roses', 'blood')}\nsed -i 's/roses/tulips/' \"$1\"")
    (file,) = kept(tmp_path)
    assert status == 2
    assert f"red was not saved. Your text is in {file}" in err
    assert "tulips" in file.read_text()
    assert "blood" in file.read_text()
    assert "Of blood." in text_of("red")
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ('echo More. >> "$1"; exit 3', "ended with status 3"),
        ("printf '\\377' >> \"$1\"", "is not UTF-8 text"),
        ("printf -- '---\\na: [\\n---\\n' > \"$1\"", "front matter"),
    ],
)
def test_a_text_that_cannot_be_saved_stays_in_the_file(
    edit: Edit, tmp_path: Path, script: str, problem: str
) -> None:
    status, _, err = edit(script)
    assert status != 0
    assert problem in err
    assert str(kept(tmp_path)[0]) in err
    assert "Of roses." in text_of("red")


def test_an_editor_that_is_missing_leaves_no_file(
    edit: Edit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "no-such-editor --wait")
    assert edit("true")[0] != 0
    assert kept(tmp_path) == []


def test_without_a_terminal_no_editor_is_guessed(
    edit: Edit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("EDITOR", raising=False)
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert main(["edit", "red"]) == 2
    assert "standard input is not a terminal" in capsys.readouterr().err
    assert kept(tmp_path) == []


def test_open_needs_a_page_that_exists(edit: Edit) -> None:
    assert main(["open", "nowhere"]) == 3
    assert commands._page_address(settings(), "Red") == "red"
