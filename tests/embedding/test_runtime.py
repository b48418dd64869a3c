"""Nothing goes anywhere: no socket, no file of reports under the user's home."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ASK = """
import sys, time
from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch
settings = Settings(db_path=sys.argv[1] + "/memory.db", home=sys.argv[1], cwd=sys.argv[1])
with Brain(settings) as brain:
    brain.create(settings.db_path)
    page = {"slug": "a", "content": "# Boats are mended in the harbour"}
    dispatch.call(brain, dispatch.find_command("put"), page, "owner")
    done = dispatch.call(brain, dispatch.find_command("query"), {"question": "who repairs ships?"}, "owner")
    assert not any("words only" in note for note in done.notes), done.notes
    time.sleep(0.5)
"""


def ask(home: Path, *before: str) -> "subprocess.CompletedProcess[str]":
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [*before, sys.executable, "-c", ASK, str(home)]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)


def test_a_question_leaves_no_report_under_the_home(tmp_path: Path) -> None:
    done = ask(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    left = {
        str(path.relative_to(tmp_path)).split(os.sep)[0] for path in tmp_path.rglob("*") if path.is_file()
    }
    assert not [name for name in left if not name.startswith(("memory.db", "models"))]


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed")
def test_a_question_opens_no_connection(tmp_path: Path) -> None:
    log = tmp_path / "calls.txt"
    done = ask(tmp_path, "strace", "-f", "-e", "trace=socket,connect,sendto", "-o", str(log))
    assert done.returncode == 0, done.stderr
    assert "AF_INET" not in log.read_text()


def test_every_use_of_the_runtime_goes_through_the_silenced_one() -> None:
    room = Path(__file__).parents[2] / "src" / "quaid"
    loaders = [path.name for path in room.rglob("*.py") if "import onnxruntime as" in path.read_text()]
    assert loaders == ["onnx.py"]
