"""A figure that drops makes a benchmark fail."""

import json
import sys
import types
from pathlib import Path

import pytest
from bench import __main__ as bench_main, asking, baseline, reality, retrieval
from bench.asking import WAYS, Judged
from bench.corpora import Ask
from bench.measures import judge


@pytest.fixture
def kept(tmp_path: Path) -> str:
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps({"full": {"a": 0.8, "b": 0.5}, "quick": {"a": 0.1}}), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("figures", "good"),
    [
        ({"a": 0.8, "b": 0.5}, True),
        ({"a": 0.785, "b": 0.491}, True),
        ({"a": 0.783, "b": 0.5}, False),
        ({"a": 0.9, "b": 0.48}, False),
        ({"a": 0.8, "new": 0.0}, True),
    ],
)
def test_a_drop_of_more_than_two_percent_is_one(
    kept: str, figures: dict[str, float], good: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert baseline.compare(figures, quick=False, path=kept) is good
    assert ("DROPPED" in capsys.readouterr().out) is not good


def test_short_run_has_separate_figures(kept: str) -> None:
    assert baseline.compare({"a": 0.1}, quick=True, path=kept)


def test_figure_that_was_not_measured_is_reported(kept: str, capsys: pytest.CaptureFixture[str]) -> None:
    baseline.compare({"a": 0.8}, quick=False, path=kept)
    assert "not measured" in capsys.readouterr().out


def test_writing_keeps_what_was_not_measured(kept: str) -> None:
    assert not baseline.compare({"a": 0.7, "c": 1.0}, quick=False, write=True, path=kept)
    payload = json.loads(Path(kept).read_text(encoding="utf-8"))
    assert payload == {"full": {"a": 0.7, "b": 0.5, "c": 1.0}, "quick": {"a": 0.1}}


def test_the_whole_run_fails_where_a_figure_dropped(
    kept: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = {"a": 0.8, "b": 0.5}
    monkeypatch.setattr(sys, "argv", ["bench", "retrieval", "links"])
    monkeypatch.setattr(baseline.compare, "__kwdefaults__", {"write": False, "path": kept})
    monkeypatch.setattr(retrieval, "conversations", lambda *, quick: dict(figures))
    monkeypatch.setattr(reality, "figures", lambda *, quick: {})
    others: list[str] = []
    monkeypatch.setitem(sys.modules, "bench.links", types.ModuleType("bench.links"))
    monkeypatch.setattr(sys.modules["bench.links"], "main", lambda: others.append("links"), raising=False)
    assert bench_main.main() == 0
    figures["b"] = 0.4
    assert bench_main.main() == 1
    assert others == ["links", "links"]
    assert "failed: retrieval" in capsys.readouterr().err


def test_every_way_of_merging_is_kept() -> None:
    judged = [Judged(Ask("q", {"a": 1.0}), {way: judge(["b", "a"], {"a": 1.0}) for way in WAYS})]
    result = asking.figures("some", judged, "ndcg10")
    assert result.keys() == {
        "some ndcg@10",
        *(f"some ndcg@10, {way}" for way in ("words", "meaning", "set-union", "rrf")),
    }
    with open(baseline.BASELINE, encoding="utf-8") as file:
        kept_ways = json.load(file)["full"]
    for way in ("words", "meaning", "set-union", "rrf"):
        assert f"locomo turns share@10, {way}" in kept_ways
        assert f"locomo sessions share@10, {way}" in kept_ways
