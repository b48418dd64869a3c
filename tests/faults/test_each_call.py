"""A put is killed, or meets a failing disk, at each of its system calls: file and index agree after it.

Needs strace, which can kill a process at its n-th call or answer that call with an error. Without it the tests are
passed over.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.here import FOLDER, LONG, PROJECT, files, is_whole, open_brain, run, saying

CALLS = (
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "renameat",
    "renameat2",
    "linkat",
    "unlinkat",
    "ftruncate",
)
MOST = 120
"""Of one kind of call that a put makes."""

ENOUGH = 4
"""Unharmed puts in a row, after which there are no more calls to fail; SQLite itself overlooks some failures."""

PUT = """
import sys
from pathlib import Path
from tests.faults.here import open_brain, run, saying
with open_brain(Path(sys.argv[1])) as brain:
    run(brain, "put", slug="notes::a", compiled_truth=saying("second"), expected_version=1)
    sys.stdout.write("acknowledged")
    sys.stdout.flush()
    run(brain, "put", slug="notes::new/page", content=saying("made"))
    sys.stdout.write(" twice")
    sys.stdout.flush()
"""

pytestmark = [
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not here"),
    pytest.mark.skipif(not LONG, reason="QUAID_LONG=1 (make faults) runs it"),
]


def make(home: Path) -> None:
    (home / FOLDER).mkdir(parents=True)
    (home / FOLDER / "a.md").write_text(saying("first") + "\n")
    with open_brain(home) as brain:
        brain.create(brain.settings.db_path)
        run(brain, "collection add", name=FOLDER, path=str(home / FOLDER))


def put_with(home: Path, fault: str) -> "subprocess.CompletedProcess[str]":
    call = fault.partition(":")[0]
    return subprocess.run(
        [
            *("strace", "-qq", "-f", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={fault}"),
            *(sys.executable, "-B", "-c", PUT, str(home)),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": f"{PROJECT / 'src'}:{PROJECT}", "PATH": "/usr/bin:/bin"},
        check=False,
    )


@pytest.mark.parametrize("fault", ["signal=KILL", "error=ENOSPC", "error=EIO"])
@pytest.mark.parametrize("call", CALLS)
def test_a_put_that_is_hit_at_any_call_leaves_one_text_or_the_other(
    tmp_path: Path, call: str, fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hits = unharmed = 0
    for number in range(1, MOST):
        home = tmp_path / "home"
        shutil.rmtree(home, ignore_errors=True)
        make(home)
        done = put_with(home, f"{call}:{fault}:when={number}")
        try:
            check(home, done.stdout)
        except BaseException as problem:
            problem.add_note(f"{call} {number} {fault}: {done.stdout} {done.stderr[-1000:]}")
            raise
        hit = done.returncode != 0 or "twice" not in done.stdout
        hits, unharmed = hits + hit, 0 if hit else unharmed + 1
        if unharmed == ENOUGH:
            break
    with capsys.disabled():
        sys.stdout.write(f"\n{call} {fault}: {hits} moments")


def check(home: Path, acknowledged: str) -> None:
    with open_brain(home) as brain:
        assert run(brain, "validate")["violations"] == []
        for path, data in files(home / FOLDER).items():
            assert is_whole(data.decode()), path
        text = (home / FOLDER / "a.md").read_text()
        before = run(brain, "get", slug=f"{FOLDER}::a")
        report = run(brain, "collection sync", name=FOLDER)["syncs"][0]
        assert not report["halted"]
        page = run(brain, "get", slug=f"{FOLDER}::a")
        assert page["compiled_truth"] + "\n" == text
        if acknowledged:
            assert "second ends." in page["compiled_truth"]
            assert before["version"] == 2
        if "twice" in acknowledged:
            assert "made ends." in run(brain, "get", slug=f"{FOLDER}::new/page")["compiled_truth"]
        again = run(brain, "collection sync", name=FOLDER)["syncs"][0]
        assert [again[name] for name in ("new", "changed", "moved", "removed")] == [0] * 4
    with open_brain(home, later=7200) as brain:
        run(brain, "collection sync", name=FOLDER)
    assert list((home / FOLDER).rglob(".quaid-*")) == []
