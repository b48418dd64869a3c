"""With any guard taken out, some test fails: the tests that stand for it would notice if it were lost."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.guards import GUARDS, Guard
from tests.faults.here import PROJECT
from tests.faults.ledger import LONG, Cases

IN_SHORT = ("the removal guard", "the path check", "a newer memory", "a text that nobody read")
"""What `make test` takes out; `make faults` takes out all."""

CHOSEN = [guard for guard in GUARDS if LONG or guard.name.startswith(IN_SHORT)]


def without(guard: Guard, home: Path) -> Path:
    """The house without a guard."""
    for part in ("src", "tests", "emacs", "docs"):
        shutil.copytree(PROJECT / part, home / part, ignore=shutil.ignore_patterns("__pycache__", "images"))
    shutil.copy(PROJECT / "pyproject.toml", home)
    file = home / "src" / "quaid" / guard.file
    text = file.read_text()
    assert guard.kept in text, f"{guard.file} no longer says {guard.kept!r}"
    file.write_text(text.replace(guard.kept, guard.gone))
    return home


@pytest.mark.promise("guards that are taken out are missed")
@pytest.mark.parametrize("guard", CHOSEN, ids=lambda guard: guard.name.replace(" ", "-").replace(":", ""))
def test_a_guard_that_is_taken_out_is_missed(tmp_path: Path, guard: Guard, cases: Cases) -> None:
    for _ in cases.walk(1, 1):
        house = without(guard, tmp_path / "house")
        environ = {
            key: value for key, value in os.environ.items() if not key.startswith(("QUAID_", "PYTEST_"))
        }
        done = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider"),
                *("-p", "no:randomly", "--tb=no", "-rf", guard.noticed_by),
            ],
            cwd=house,
            capture_output=True,
            text=True,
            timeout=600,
            env={**environ, "PYTHONPATH": f"{house / 'src'}{os.pathsep}{house}"},
            check=False,
        )
        assert done.returncode == 1, f"nobody missed it:\n{done.stdout[-2000:]}{done.stderr[-500:]}"
        missed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
        assert missed, done.stdout[-2000:]
        cases.note(f"{guard.name}: {missed[0].removeprefix('FAILED ').partition(' - ')[0]}")
