"""The labelled cases of bench/data: a slice of the first set, and every case of one kind that once went wrong."""

from pathlib import Path

import pytest
from bench.truth import Case, cases, judge

ALL = cases("contradictions")


def test_there_are_enough_cases_and_half_of_them_are_traps() -> None:
    everything = [*ALL, *cases("contradictions-held-out")]
    assert len(everything) >= 120
    assert sum(case.is_trap for case in everything) >= len(everything) / 2
    assert all(case.is_trap is not bool(case.expected) for case in everything)


@pytest.mark.parametrize("case", ALL[::5], ids=lambda case: case.name)
def test_a_case_is_found_and_a_trap_is_passed_by(case: Case, tmp_path: Path) -> None:
    outcome = judge(case, str(tmp_path))
    assert (outcome.wrong, outcome.missed) == ([], [])
