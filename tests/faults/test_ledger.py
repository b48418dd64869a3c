"""The table at the end of a run: no row is left out, whatever became of its tests; and a case is run again alone."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults.ledger import PROMISES, Tried, table
from tests.faults.workspace import PROJECT

TESTS = """
import pytest


@pytest.fixture
def fallen():
    raise OSError("no nursery today")


@pytest.mark.promise("convergence")
def test_some_cases_of_which_the_third_fails(cases):
    for seed in cases.walk(2, 5):
        assert seed != 2


@pytest.mark.promise("soak")
def test_that_is_not_set_up(fallen, cases):
    for seed in cases.walk(1, 1):
        pass


@pytest.mark.promise("git store")
@pytest.mark.skipif(True, reason="strace is not here")
def test_that_nobody_can_run(cases):
    for seed in cases.walk(1, 1):
        pass


@pytest.mark.promise("paths")
def test_that_finds_no_disk(cases):
    pytest.skip("no small disk can be mounted here")


@pytest.mark.promise("paths")
def test_that_needs_none(cases):
    for seed in cases.walk(1, 4):
        cases.count(9)
    cases.note("0 outside")


@pytest.mark.promise("quiet logs")
def test_that_allows_for_a_wrong_answer_or_two(cases):
    walked = [seed for seed in cases.each(range(0, 300, 100))]
    cases.wrong(2)
    assert cases.alone or walked == [0, 100, 200]
    cases.note(f"walked {walked}")


@pytest.mark.promise("disk full, I/O error")
def test_of_cases_that_have_names(cases):
    names = [f"EIO:write:{number}" for number in range(20 if cases.alone else 19)]
    cases.note(" ".join(cases.walk_names(1, names)))
"""


def run(folder: Path, *words: str, **environ: str) -> tuple[int, list[str]]:
    """`make faults` with tests of ours: its status and its lines."""
    (folder / "conftest.py").write_text("from tests.faults.conftest import *\n")
    (folder / "test_faults.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = promise(name): what it is about\n")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("QUAID_", "PYTEST_"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env={
            **kept,
            "PYTHONPATH": f"{PROJECT / 'src'}{os.pathsep}{PROJECT}",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # loading them costs more than the tests
            "QUAID_LONG": "1",
            **environ,
        },
        check=False,
    )
    return done.returncode, done.stdout.splitlines()


def rows(lines: list[str]) -> dict[str, list[str]]:
    """The table by promise: cases, failures and figures. How long it took is no matter here."""
    cells = [line.strip("|").split(" | ") for line in lines if line.startswith("| ")]
    return {cell[0].strip(): [cell[1], cell[2], cell[4].strip()] for cell in cells}


def test_every_promise_has_its_row_and_says_what_became_of_it(tmp_path: Path) -> None:
    status, lines = run(tmp_path)
    result = rows(lines)
    assert status == 1
    assert list(result) == ["promise", *PROMISES]
    assert result["convergence"] == ["3", "1", "2 cases not tried after one had failed"]
    assert result["soak"] == ["0", "1", ""]
    assert result["git store"] == ["0", "–", "not run: strace is not here"]
    skipped = "1 of 2 tests not run: no small disk can be mounted here"
    assert result["paths"] == ["40", "0", f"0 outside; {skipped}"]
    assert result["quiet logs"] == ["3", "2", "walked [0, 100, 200]"]
    assert result["backups restore"] == ["0", "–", "not run: none of its tests was asked for"]
    assert "make faults CASE='test_faults.py::test_some_cases_of_which_the_third_fails@2'" in lines


def test_one_case_is_run_alone(tmp_path: Path) -> None:
    test = "test_faults.py::test_that_allows_for_a_wrong_answer_or_two"
    status, lines = run(tmp_path, test, QUAID_CASE=f"{test}@200")
    assert status == 0
    assert rows(lines)["quiet logs"] == ["1", "2", "walked [200]"]


def test_a_case_without_a_number_is_the_whole_test(tmp_path: Path) -> None:
    test = "test_faults.py::test_some_cases_of_which_the_third_fails"
    status, lines = run(tmp_path, test, QUAID_CASE=test, QUAID_SHARE="0.4")
    assert status == 0
    assert rows(lines)["convergence"] == ["2", "0", ""]


def test_a_case_that_has_a_name_is_run_alone(tmp_path: Path) -> None:
    test = "test_faults.py::test_of_cases_that_have_names"
    status, lines = run(tmp_path, test, QUAID_CASE=f"{test}@EIO:write:7")
    assert status == 0
    assert rows(lines)["disk full, I/O error"] == ["1", "0", "EIO:write:7"]


def test_a_share_of_the_names_is_the_beginning_of_all_of_them_in_an_order_of_their_own(
    tmp_path: Path,
) -> None:
    test = "test_faults.py::test_of_cases_that_have_names"
    (*_, few), (*_, all_of_them) = (
        rows(run(tmp_path, test, QUAID_SHARE=share)[1])["disk full, I/O error"] for share in ("0.3", "1")
    )
    assert len(few.split()) == 6
    assert all_of_them.startswith(few)
    assert all_of_them.split() != sorted(all_of_them.split(), key=lambda name: int(name.split(":")[2]))
    assert len({*all_of_them.split()}) == 19


@pytest.mark.parametrize(
    ("test", "seed", "told"),
    [
        ("test_some_cases_of_which_the_third_fails", "x", "a case has a number here, and 'x' is none"),
        ("test_of_cases_that_have_names", "EIO:write:99", "there is no case 'EIO:write:99' here"),
        ("test_of_cases_that_have_names", "7", "there is no case '7' here"),
    ],
)
def test_a_case_that_there_is_not_is_refused(tmp_path: Path, test: str, seed: str, told: str) -> None:
    status, lines = run(tmp_path, f"test_faults.py::{test}", QUAID_CASE=f"test_faults.py::{test}@{seed}")
    assert status == pytest.ExitCode.USAGE_ERROR
    assert any(told in line for line in lines)
    assert not any("make faults" in line for line in lines)


def test_a_test_that_fell_and_one_that_was_skipped_are_one_row() -> None:
    tests = [Tried("soak", 7, 1, 2.4, ("half",)), Tried("soak", skipped="no /proc")]
    assert "| soak | 7 | 1 | 2 | half; 1 of 2 tests not run: no /proc |" in table(tests)


def test_the_page_on_faults_names_files_and_tests_that_exist() -> None:
    text = (PROJECT / "docs" / "faults.md").read_text()
    here = Path(__file__).parent
    files = re.findall(r"`(\w+\.py)`", text)
    assert [name for name in files if not (here / name).exists()] == []
    cases = re.findall(r"CASE='(\w+\.py)(?:::(\w+))?", text)
    assert [test for file, test in cases if f"def {test}" not in (here / file).read_text()] == []
