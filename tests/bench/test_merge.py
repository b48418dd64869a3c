"""Conflicts are exactly the true ones on made pairs of edits."""

import shutil

import pytest
from bench import merge


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_merging_by_parts_leaves_exactly_the_true_conflicts() -> None:
    counts, _ = merge.measure(100, seed=2)
    assert 0 < counts.true == counts.by_parts < counts.by_lines
    assert (counts.missed, counts.false, counts.lost) == (0, 0, 0)
