"""What a table says about its figures follows from them."""

from bench.importing import Round, Run, rows
from bench.scale import DRAWN, GROWTH, Measured, rows_of, works

OUTCOMES = {"new": 1_200, "unchanged": 1_200}


def _import(own: float, helper: float = 0.0, wall: float = 1.0, cutting: float = 0.0) -> Run:
    return Run(own + cutting, helper, wall + cutting, 40.0, OUTCOMES, cutting)


def _round(alone_wall: float, both_wall: float) -> Round:
    alone, both = _import(1.8, wall=alone_wall, cutting=1.5), _import(1.0, 0.9, both_wall, cutting=1.5)
    return Round(alone, both, _import(0.1), _import(0.2), _import(0.2))


def test_cutting_has_a_separate_verdict() -> None:
    result = rows([_round(2.0, 1.0)])
    speeds = {name: (figure, output) for name, figure, output in result if name.startswith("files per")}
    (without, cut) = speeds.values()
    assert without == ("632", "reached (>= 600)")  # 1,200 / 1.9
    assert cut == ("353", "MISSED (>= 600)")  # 1,200 / (1.9 + 1.5)
    assert "NOT cut" in next(iter(speeds))


def test_the_gain_is_that_of_pairs_not_of_the_best_of_each() -> None:
    # The quickest alone and the quickest pair of processes lie in different rounds: 2.0 / 2.0 would be 1.0.
    results = {
        name: (figure, output) for name, figure, output in rows([_round(4, 2), _round(2, 4), _round(6, 4)])
    }
    assert results["two processes gain, by wall clock, median of 3 pairs"] == ("1.50 x", "MISSED (>= 1.6)")
    assert results["two processes gain, by CPU, median of 3 pairs"] == ("1.80 x", "reached (>= 1.6)")


def _measured(size: int, cost: float, built: dict[str, float]) -> Measured:
    times = dict.fromkeys(GROWTH, (cost, cost))
    return Measured(size, 1.0, built, times, {"get": (cost, cost)}, 100.0, 1.0, {})


def test_growth_above_the_limit_is_a_miss() -> None:
    results = {
        name: (grown, target)
        for name, _, _, grown, target in rows_of(
            [_measured(10, 1.0, {"cpu_seconds": 3.0}), _measured(1_000, 20.0, {})]
        )
    }
    assert results["get, resident"][0] == "20.0 x: MISSED (<= 3)"
    assert results["get, cold"][0] == "20.0 x: MISSED (<= 3)"
    assert results["query, resident"] == ("20.0 x: reached (<= 100)", "reached (<= 100)")


def test_cost_of_creating_a_memory_is_reported() -> None:
    (row,) = (
        row
        for row in rows_of([_measured(10, 1.0, {"cpu_seconds": 3.0}), _measured(1_000, 1.0, {})])
        if row[0] == "making it, CPU s, when built"
    )
    assert row[1:3] == ("3", "not noted")


def test_every_operation_has_a_limit_and_a_notebook_that_stays_is_not_drawn_as_growing() -> None:
    assert works(["q"] * 60, ["s"] * 60).keys() == GROWTH.keys()
    assert "recall" not in DRAWN
    names = [row[0] for row in rows_of([_measured(10, 1.0, {})])]
    assert "recall, of a notebook of 500 files at every size, resident" in names
