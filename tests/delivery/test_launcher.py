"""The launcher of the one executable: what it takes for whole, and which folders it trusts."""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from tests.delivery.stub_archive import box_of, content, start, works

SETTLED = 2.1  # seconds; before that no seal is put
NOBODY = 61234


def test_it_unpacks_once_for_its_owner_alone(program: Path, tmp_path: Path) -> None:
    assert works(program, tmp_path) == ""
    box = box_of(tmp_path)
    assert content(box) == content(program.parent / "box")
    assert [path for path in (box, *box.rglob("*")) if path.stat().st_mode & 0o077] == []
    facts = (box / "bin" / "python").stat()
    assert works(program, tmp_path) == ""
    assert (box_of(tmp_path) / "bin" / "python").stat() == facts


def test_a_strange_mask_of_the_caller_does_not_matter_and_is_kept(program: Path, tmp_path: Path) -> None:
    assert start(program, tmp_path, mask=0o777).stdout == "whole quaid hello 0777\n"
    assert content(box_of(tmp_path)) == content(program.parent / "box")


def test_removed_files_are_restored(program: Path, tmp_path: Path) -> None:
    works(program, tmp_path)
    box, whole = box_of(tmp_path), content(program.parent / "box")
    for name in [item for item in sorted(whole) if not re.search(r"weight-\d\d", item)]:
        lost = box / name
        shutil.rmtree(lost) if lost.is_dir() else lost.unlink()
        assert re.search(r": \S+ in it is missing .*unpacking again", works(program, tmp_path))
        assert content(box_of(tmp_path)) == whole


def test_a_cleaner_that_sets_times_back_is_seen_in_a_sealed_box(program: Path, tmp_path: Path) -> None:
    works(program, tmp_path)
    box = box_of(tmp_path)
    assert (box / ".seal").stat().st_size == 0  # too early to tell a later change from the unpacking
    time.sleep(SETTLED)
    works(program, tmp_path)
    assert (box / ".seal").stat().st_size == 8
    lost = box / "lib" / "deep" / "weight-7"
    times = lost.parent.stat()
    lost.unlink()
    os.utime(lost.parent, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "lib/deep/weight-7 in it is missing" in works(program, tmp_path)
    assert content(box_of(tmp_path)) == content(program.parent / "box")


def test_without_its_seal_or_with_a_wrong_one_a_whole_box_is_kept(program: Path, tmp_path: Path) -> None:
    works(program, tmp_path)
    seal = box_of(tmp_path) / ".seal"
    facts = (box_of(tmp_path) / "start.pyc").stat()
    seal.write_bytes(b"nonsense and more")
    assert works(program, tmp_path) == ""
    seal.unlink()
    assert works(program, tmp_path) == ""
    assert (box_of(tmp_path) / "start.pyc").stat() == facts


def test_a_file_that_was_cut_short_is_unpacked_again(program: Path, tmp_path: Path) -> None:
    works(program, tmp_path)
    os.truncate(box_of(tmp_path) / "lib" / "deep" / "weight-3", 5)
    assert "lib/deep/weight-3 in it is missing or was changed" in works(program, tmp_path)
    assert content(box_of(tmp_path)) == content(program.parent / "box")


@pytest.mark.parametrize(
    ("mode", "why"), [(0o777, "everybody can write to it"), (0o770, "its group can write to it")]
)
def test_a_box_that_others_could_write_to_is_unpacked_again(
    program: Path, tmp_path: Path, mode: int, why: str
) -> None:
    works(program, tmp_path)
    word = box_of(tmp_path) / "lib" / "deep" / "er" / "word"
    word.write_text("bad..\n")
    box_of(tmp_path).chmod(mode)
    assert why in works(program, tmp_path)
    assert content(box_of(tmp_path)) == content(program.parent / "box")


def test_a_link_in_the_place_of_the_box_is_replaced_and_not_followed(program: Path, tmp_path: Path) -> None:
    works(program, tmp_path)
    box, other = box_of(tmp_path), tmp_path / "other"
    box.rename(other)
    box.symlink_to(other)
    assert "is not a folder" in works(program, tmp_path)
    assert not box_of(tmp_path).is_symlink()
    assert content(other) == content(box)


@pytest.mark.parametrize(
    ("mode", "why"),
    [
        (0o777, "everybody can write to it; chmod go-w helps"),
        (0o775, "its group can write to it; chmod go-w helps"),
    ],
)
def test_a_cache_that_others_can_write_to_is_passed_over_with_the_reason(
    program: Path, tmp_path: Path, mode: int, why: str
) -> None:
    cache = tmp_path / "chosen" / "quaid"
    cache.mkdir(parents=True)
    cache.chmod(mode)
    output = works(program, tmp_path, XDG_CACHE_HOME=str(cache.parent))
    assert f"  {cache}: {why}\n" in output
    assert list(cache.iterdir()) == []
    assert box_of(tmp_path).is_dir()
    assert works(program, tmp_path, XDG_CACHE_HOME=str(cache.parent)) == ""  # said once


def test_a_folder_above_in_which_others_could_swap_the_cache_is_passed_over(
    program: Path, tmp_path: Path
) -> None:
    above = tmp_path / "chosen"
    above.mkdir()
    above.chmod(0o777)
    output = works(program, tmp_path, XDG_CACHE_HOME=str(above))
    assert f"  {above}: everybody can write to it; chmod go-w helps\n" in output
    assert list(above.iterdir()) == []
    above.chmod(0o1777)  # as /tmp is: nobody can rename what others made
    assert works(program, tmp_path, XDG_CACHE_HOME=str(above)) == ""
    assert (above / "quaid").is_dir()


def test_a_link_is_followed_above_and_not_in_the_place_of_the_cache(program: Path, tmp_path: Path) -> None:
    real, above = tmp_path / "real", tmp_path / "chosen"
    real.mkdir()
    above.symlink_to(real)
    assert works(program, tmp_path, XDG_CACHE_HOME=str(above)) == ""
    (real / "quaid").rename(real / "elsewhere")
    (real / "quaid").symlink_to(real / "elsewhere")
    assert "is a link" in works(program, tmp_path, XDG_CACHE_HOME=str(above))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_foreign_entries_are_skipped(program: Path, tmp_path: Path) -> None:
    cache = tmp_path / "chosen" / "quaid"
    cache.mkdir(parents=True)
    os.chown(cache, NOBODY, NOBODY)
    output = works(program, tmp_path, XDG_CACHE_HOME=str(cache.parent))
    assert f"  {cache}: belongs to user {NOBODY}\n" in output
    os.chown(cache.parent, NOBODY, NOBODY)
    shutil.rmtree(tmp_path / ".cache")
    output = works(program, tmp_path, XDG_CACHE_HOME=str(cache.parent))
    assert f"  {cache.parent}: belongs to user {NOBODY}\n" in output


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_without_any_place_it_names_each_with_its_reason(program: Path) -> None:
    last = Path("/tmp") / f"quaid-{NOBODY}"
    last.mkdir()
    try:
        done = subprocess.run(
            [program, "hello"],
            env={"HOME": "/nonexistent", "XDG_CACHE_HOME": "/"},
            capture_output=True,
            text=True,
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            cwd="/",
        )
    finally:
        last.rmdir()
    assert done.returncode == 5
    *_, chosen, home, tmp, remedy = done.stderr.splitlines()
    assert re.fullmatch(r"  //quaid: Permission denied", chosen)
    assert home == "  /nonexistent/.cache: No such file or directory"
    assert tmp == f"  {last}: belongs to user 0"
    assert re.fullmatch(r"Set XDG_CACHE_HOME to a folder of yours with room for \d+ MB\.", remedy)


def test_a_damaged_program_says_so_and_leaves_nothing(program: Path, tmp_path: Path) -> None:
    data = program.read_bytes()
    bad = tmp_path / "bad"
    for changed in (
        data[: len(data) // 2] + bytes(64) + data[len(data) // 2 + 64 :],
        data.replace(b"lib/deep/er/word\0", b"lib/deep/er/Word\0"),
        data[:-100],
    ):
        bad.write_bytes(changed)
        bad.chmod(0o755)
        done = start(bad, tmp_path)
        assert done.returncode == 5
        assert "fetch it again" in done.stderr
        assert not (tmp_path / ".cache").exists() or list((tmp_path / ".cache" / "quaid").iterdir()) == []
