"""Folders and files that are private, and made by whoever is first."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from quaid.storage import files as durable_files

RACER = """
import sys
from quaid.storage import files
sys.stdout.write("ready\\n")
sys.stdout.flush()
sys.stdin.readline()
for number in range(int(sys.argv[2])):
    files.make_folders(f"{sys.argv[1]}/{number}/deep/er")
"""


def test_folders_are_made_down_to_the_last_and_for_their_owner_only(tmp_path: Path) -> None:
    durable_files.make_folders(str(tmp_path / "a" / "b" / "c"))
    assert [stat.S_IMODE((tmp_path / path).stat().st_mode) for path in ("a", "a/b", "a/b/c")] == [0o700] * 3
    durable_files.make_folders(str(tmp_path / "a" / "b" / "c"))


def test_two_processes_may_make_the_same_folders(tmp_path: Path) -> None:
    rounds = 200
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(tmp_path), str(rounds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for racer in racers:
        assert racer.stdout
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("go\n")
        racer.stdin.flush()
    for racer in racers:
        _, errors = racer.communicate(timeout=60)
        assert (racer.returncode, errors) == (0, "")
    assert all((tmp_path / str(number) / "deep" / "er").is_dir() for number in range(rounds))


def test_a_file_in_the_place_of_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    with pytest.raises(NotADirectoryError, match="a file stands where a folder must be") as refused:
        durable_files.make_folders(str(tmp_path / "a" / "b"))
    assert refused.value.filename == str(tmp_path / "a")
    assert (tmp_path / "a").read_text() == "mine"


def test_private_file_is_never_owned_by_another_user(tmp_path: Path) -> None:
    durable_files.make_private_file(str(tmp_path / "new"))
    assert stat.S_IMODE(os.stat(tmp_path / "new").st_mode) == 0o600
    with pytest.raises(FileExistsError):
        durable_files.make_private_file(str(tmp_path / "new"))
