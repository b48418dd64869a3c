"""With any guard taken out, some test fails, which passes when it is put back: it would notice if it were lost."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.guards import GUARDS, Guard
from tests.faults.ledger import LONG, Cases
from tests.faults.workspace import PROJECT

IN_SHORT = ("the removal guard", "the path check", "a newer memory", "a text that nobody read")
"""What `make test` takes out; `make faults` takes out all."""

CHOSEN = [guard for guard in GUARDS if LONG or guard.name.startswith(IN_SHORT)]


class House:
    """A copy of the house in which a guard can be taken out and put back."""

    def __init__(self, home: Path, guard: Guard) -> None:
        self.home, self.guard = home, guard
        for part in ("src", "tests", "emacs", "docs"):
            shutil.copytree(
                PROJECT / part, home / part, ignore=shutil.ignore_patterns("__pycache__", "images")
            )
        shutil.copy(PROJECT / "pyproject.toml", home)
        self.file = home / "src" / "quaid" / guard.file
        self.whole, self.made = self.file.read_text(), self.file.stat().st_mtime_ns

    def take_out(self) -> None:
        self.file.write_text(self.whole.replace(self.guard.kept, self.guard.gone))

    def put_back(self) -> None:
        self.file.write_text(self.whole)
        os.utime(self.file, ns=(self.made, self.made))  # so that nobody runs what was compiled without it

    def run(self, tests: str) -> "subprocess.CompletedProcess[str]":
        environ = {
            key: value for key, value in os.environ.items() if not key.startswith(("QUAID_", "PYTEST_"))
        }
        return subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-o", "cache_dir=missed"),
                *("-p", "no:randomly", "--tb=no", "-rf", tests),
            ],
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=600,
            env={
                **environ,
                "PYTHONPATH": f"{self.home / 'src'}{os.pathsep}{self.home}",
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # loading them costs more than most of the tests
            },
            check=False,
        )

    def missed_by(self) -> list[str]:
        """Which tests failed in the last run."""
        kept = self.home / "missed" / "v" / "cache" / "lastfailed"
        return list(json.loads(kept.read_text())) if kept.exists() else []


def test_all_guards_are_texts_of_their_files() -> None:
    texts = {guard: (PROJECT / "src" / "quaid" / guard.file).read_text() for guard in GUARDS}
    assert [guard.name for guard in GUARDS if guard.kept not in texts[guard]] == []


@pytest.mark.promise("guards that are taken out are missed")
@pytest.mark.parametrize("guard", CHOSEN, ids=lambda guard: guard.name.replace(" ", "-").replace(":", ""))
def test_removed_guard_is_noticed(tmp_path: Path, guard: Guard, cases: Cases) -> None:
    for _ in cases.walk(1, 1):
        house = House(tmp_path / "house", guard)
        house.take_out()
        without = house.run(guard.noticed_by)
        assert without.returncode == 1, f"nobody missed it:\n{without.stdout[-2000:]}{without.stderr[-500:]}"
        assert "\nFAILED " in without.stdout, f"it did not get so far:\n{without.stdout[-2000:]}"
        (missed,) = house.missed_by()
        house.put_back()
        again = house.run(missed)
        assert again.returncode == 0, f"{missed} fails with the guard, too:\n{again.stdout[-2000:]}"
        assert again.stdout.startswith("."), f"{missed} is skipped with the guard"
        cases.note(f"{guard.name}: {missed}")
