"""An operation is killed, or meets a failing disk, at each of its system calls: old or new, and never in between.

A point is a kind of call and the how manieth of its kind; `calls.py` finds them all before. A seed is a point, in an
order that is shuffled once and always the same, so that a few of them are a fair sample.
"""

from pathlib import Path

import pytest
from tests.faults import calls
from tests.faults.killer import Nursery
from tests.faults.ledger import Cases
from tests.faults.operations import OPERATIONS
from tests.faults.stage import Stage, says_what_to_do, set_stage

SINGLE = [each.name for each in OPERATIONS if not each.schema]
pytestmark = calls.needs_strace


@pytest.fixture
def stage(nursery: Nursery, name: str, quick: Path) -> Stage:
    return set_stage(nursery, name, quick)


@pytest.mark.promise("… at every point")
@pytest.mark.parametrize("name", SINGLE)
def test_a_client_that_is_killed_at_any_call_leaves_the_old_or_the_new(stage: Stage, cases: Cases) -> None:
    for seed in cases.walk(2, len(stage.points)):
        ended = stage.hit("signal=KILL", seed)
        assert not ended.refused or stage.name == "kb remember", "a git of its own was killed"
        stage.check(ended)


@pytest.mark.promise("disk full, I/O error")
@pytest.mark.parametrize("name", SINGLE)
def test_a_disk_that_fails_at_any_call_is_told_plainly_and_leaves_the_old_or_the_new(
    stage: Stage, cases: Cases
) -> None:
    for seed in cases.walk(2, 2 * len(stage.points)):
        ended = stage.hit(f"error={('ENOSPC', 'EIO')[seed % 2]}", seed // 2)
        assert ended.status == 0, "it went down with all hands"
        assert ended.refused or ended.acknowledged
        assert not ended.refused or says_what_to_do(ended.refused), ended.refused
        stage.check(ended)
