"""Kills, races and disks that cannot do everything, while the one executable unpacks itself."""

import contextlib
import fcntl
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.delivery.stub_archive import SAID, box_of, content, start, works


def test_leftovers_of_killed_starts_are_removed_and_running_ones_kept(program: Path, tmp_path: Path) -> None:
    cache = tmp_path / ".cache" / "quaid"
    dead, busy, other = cache / ".new-1-dead", cache / ".new-2-busy", cache / "an-older-box"
    for folder in (dead / "lib" / "more", busy / "lib", other):
        folder.mkdir(parents=True)
        (folder / "file").write_text("left")
    cache.chmod(0o700)
    handle = os.open(busy, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        works(program, tmp_path)
        assert not dead.exists()
        assert (busy / "lib" / "file").exists()
        assert (other / "file").exists()
    finally:
        os.close(handle)
    works(program, tmp_path)
    assert not busy.exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[list[str]]:
    """Where it is, and to be followed by options: one that holds one box and a half."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if os.geteuid() != 0 or not mount:
        pytest.skip("only root can mount a disk that is small enough to fill")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=4608k", "tmpfs", place], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"no disk could be mounted: {done.stderr.strip()}")
    yield [str(place), mount, "-o"]
    subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.parametrize("option", ["size=2m", "nr_inodes=20"])
def test_full_disk_is_reported_with_what_is_needed_and_left_as_it_was(
    program: Path, tmp_path: Path, small_disk: list[str], option: str
) -> None:
    place, mount, flag = small_disk
    subprocess.run([mount, flag, f"remount,{option}", place], check=True)
    done = start(program, tmp_path, XDG_CACHE_HOME=place)
    assert done.returncode == 5
    needs = r"No space left on device: unpacking needs 4 MB in 37 files, and \d MB are free\. Make room there, or set"
    assert re.search(needs + " XDG_CACHE_HOME to a folder", done.stderr), done.stderr
    assert list(Path(place, "quaid").iterdir()) == []
    assert not (tmp_path / ".cache").exists()
    assert works(program, tmp_path, XDG_CACHE_HOME=str(tmp_path / "elsewhere")) == ""


def test_a_disk_from_which_nothing_can_be_started_is_passed_over(
    program: Path, tmp_path: Path, small_disk: list[str]
) -> None:
    place, mount, flag = small_disk
    subprocess.run([mount, flag, "remount,noexec", place], check=True)
    assert "(noexec)" in works(program, tmp_path, XDG_CACHE_HOME=place)
    assert list(Path(place, "quaid").iterdir()) == []


def test_a_broken_box_makes_room_for_the_whole_one(
    program: Path, tmp_path: Path, small_disk: list[str]
) -> None:
    place = small_disk[0]
    works(program, tmp_path, XDG_CACHE_HOME=place)
    [box] = Path(place, "quaid").iterdir()
    (box / "lib" / "deep" / "er" / "word").unlink()
    assert "unpacking again" in works(program, tmp_path, XDG_CACHE_HOME=place)
    assert content(box) == content(program.parent / "box")


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is needed to make calls fail")
@pytest.mark.parametrize("fault", ["renameat2:error=EINVAL", "flock:error=EBADF"])
def test_a_disk_that_cannot_exchange_or_lock_is_good_enough(
    program: Path, tmp_path: Path, fault: str
) -> None:
    traced = ["strace", "-f", "-qq", "-o", str(tmp_path / "trace"), "-e", f"inject={fault}"]
    cache = tmp_path / ".cache" / "quaid"
    for name in (".new-1-young", ".new-2-old"):
        (cache / name).mkdir(parents=True)
    cache.chmod(0o700)
    os.utime(cache / ".new-2-old", (0, 0))
    for _ in range(2):
        done = subprocess.run(
            [*traced, program, "hello"],
            env={"HOME": str(tmp_path)},
            umask=0o022,
            capture_output=True,
            text=True,
        )
        if "ptrace" in done.stderr:
            pytest.skip(done.stderr)
        assert done.stdout == SAID, done.stderr
        left = sorted(path.name for path in cache.iterdir() if path.name.startswith(".new-"))
        assert left == ([".new-1-young"] if fault.startswith("flock") else [])
        [box] = (path for path in cache.iterdir() if path.name not in left)
        assert content(box) == content(program.parent / "box")
        (box / "lib" / "deep" / "er" / "word").unlink()
    assert "INJECTED" in (tmp_path / "trace").read_text()


@pytest.mark.parametrize("broken", [False, True])
def test_many_first_starts_at_once_all_work(program: Path, tmp_path: Path, broken: bool) -> None:
    if broken:
        works(program, tmp_path)
        (box_of(tmp_path) / "lib" / "deep" / "er" / "word").unlink()
    started = [
        subprocess.Popen(
            [program, "hello"],
            env={"HOME": str(tmp_path)},
            umask=0o022,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    ends = [item.communicate(timeout=120) for item in started]
    assert [out for out, _ in ends] == [SAID] * 8, ends
    assert sum("unpacking again" in output for _, output in ends) == broken
    assert content(box_of(tmp_path)) == content(program.parent / "box")


@pytest.fixture
def quick_home(tmp_path: Path) -> Iterator[Path]:
    """In memory where that is possible: a kill is no power cut, and each start waits for the disk."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK) or os.statvfs(memory).f_flag & os.ST_NOEXEC:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory) as name:
        yield Path(name)


def test_a_kill_at_any_moment_does_not_keep_the_next_start_from_working(
    program: Path, quick_home: Path
) -> None:
    home, whole = quick_home, content(program.parent / "box")
    begun = time.monotonic()
    works(program, home)
    usual = time.monotonic() - begun
    chance = random.Random(20260716)
    killed = halfway = 0
    for number in range(100):
        box = box_of(home)
        if number % 2:
            shutil.rmtree(box)
        else:
            (box / "lib" / "deep" / "er" / "word").unlink()
        victim = subprocess.Popen(
            [program, "hello"], env={"HOME": str(home)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            victim.wait(timeout=chance.uniform(0, usual))
        victim.send_signal(signal.SIGKILL)
        killed += victim.wait() == -signal.SIGKILL
        halfway += any(path.name.startswith(".new-") for path in box.parent.iterdir())
        works(program, home)
        assert content(box_of(home)) == whole  # and nothing beside it
    assert killed >= halfway > 0  # else these kills came too early or too late to mean anything
