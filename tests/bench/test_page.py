"""The page of all benchmarks says what was measured, how, and what was not."""

from pathlib import Path

import pytest
from bench import page
from bench.__main__ import NAMES
from bench.mcp import on_the_wire
from bench.table import Table

TABLE = Table("Cold start", [("quaid get", "42.4")], ("command", "CPU ms"))


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "benchmarks.md"
    monkeypatch.setattr(page, "PAGE", str(path))
    return path


def test_every_benchmark_has_a_part_in_their_order(written: Path) -> None:
    page.write([page.Part("start", [TABLE], [], 1.0)], NAMES)
    parts = dict(page.PART.findall(written.read_text(encoding="utf-8")))
    assert tuple(parts) == NAMES
    assert "| quaid get | 42.4   |" in parts["start"]
    assert "Not measured yet: `python -m bench peers --page`" in parts["peers"]


def test_figures_that_were_not_run_again_stay(written: Path) -> None:
    page.write([page.Part("start", [TABLE], [], 1.0)], NAMES)
    page.write([page.Part("peers", [TABLE._replace(title="Peers")], [], 1.0)], NAMES)
    parts = dict(page.PART.findall(written.read_text(encoding="utf-8")))
    assert "## Cold start" in parts["start"]
    assert "## Peers" in parts["peers"]
    assert "Not measured" not in parts["peers"]


def test_a_short_run_says_so(written: Path) -> None:
    page.write(
        [page.Part("start", [TABLE], [], 1.0, is_quick=True), page.Part("mcp", [TABLE], [], 1.0)], NAMES
    )
    parts = dict(page.PART.findall(written.read_text(encoding="utf-8")))
    assert "short run" in parts["start"]
    assert "short run" not in parts["mcp"]


def test_a_tool_list_is_counted_without_spaces_and_as_utf_8() -> None:
    assert on_the_wire([{"name": "a b", "x": ["é", 1]}]) == len('[{"name":"a b","x":["é",1]}]'.encode())
