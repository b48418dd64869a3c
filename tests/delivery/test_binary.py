"""The one executable, if `make binary` has made it here; that recipe tries it itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
BINARY = Path(os.environ.get("QUAID_BINARY", ROOT / "dist" / "quaid"))

pytestmark = pytest.mark.skipif(not BINARY.exists(), reason="`make binary` has not been run here")


def run(home: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [BINARY, *words], env={"HOME": str(home), **environ}, capture_output=True, text=True, timeout=300
    )


def test_binary_passes_the_smoke_test() -> None:
    smoke = str(ROOT / "delivery" / "smoke.py")
    done = subprocess.run([sys.executable, smoke, "binary", BINARY], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_unpacks_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    assert run(tmp_path, "version").returncode == 0
    [place] = (tmp_path / ".cache" / "quaid").iterdir()
    assert place.stat().st_mode & 0o077 == 0
    looks = (place / "bin" / "python").stat()
    assert run(tmp_path, "version").returncode == 0
    assert (place / "bin" / "python").stat() == looks
    assert [path.name for path in (tmp_path / ".cache" / "quaid").iterdir()] == [place.name]


def test_several_first_starts_at_once_end_in_one_folder(tmp_path: Path) -> None:
    started = [
        subprocess.Popen([BINARY, "version"], env={"HOME": str(tmp_path)}, stdout=subprocess.DEVNULL)
        for _ in range(4)
    ]
    assert [item.wait(timeout=300) for item in started] == [0] * 4
    assert len(list((tmp_path / ".cache" / "quaid").iterdir())) == 1


def test_a_cache_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    cache = tmp_path / ".cache" / "quaid"
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    own = tmp_path / "own"
    assert run(tmp_path, "version", XDG_CACHE_HOME=str(own)).returncode == 0
    assert list(cache.iterdir()) == []


def test_a_module_that_a_cleaner_took_away_comes_back(tmp_path: Path) -> None:
    assert run(tmp_path, "version").returncode == 0
    [place] = (tmp_path / ".cache" / "quaid").iterdir()
    lost = place / "lib" / "python" / "encodings" / "__init__.pyc"  # without it Python does not start
    lost.unlink()
    done = run(tmp_path, "version")
    assert done.returncode == 0, done.stderr
    assert "encodings/__init__.pyc in it is missing" in done.stderr
    assert lost.exists()
    assert run(tmp_path, "version").stderr == ""


def test_a_program_that_is_damaged_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    cut = tmp_path / "cut"
    with open(BINARY, "rb") as file:
        data = file.read()
    middle = len(data) // 2
    cut.write_bytes(data[:middle] + bytes(4096) + data[middle + 4096 :])
    cut.chmod(0o755)
    done = subprocess.run([cut, "version"], env={"HOME": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 5
    assert "damaged" in done.stderr
    assert list((tmp_path / ".cache" / "quaid").iterdir()) == []


def test_python_variables_of_the_caller_do_not_matter(tmp_path: Path) -> None:
    done = run(tmp_path, "version", PYTHONHOME="/nowhere", PYTHONPATH="/nowhere", LD_LIBRARY_PATH="/nowhere")
    assert done.returncode == 0, done.stderr
