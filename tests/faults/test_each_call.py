"""An operation is killed, or meets a failing disk, at each of its system calls: old or new, and never in between.

So does each git that it starts. A point is a kind of call and the how manieth of its kind in its process; `calls.py`
finds them all before. A seed is a fault at a point: `EIO:write:7`, or in a git `KILL:write-tree:fsync:1`. A fault
that does not come about is a failure.
"""

from pathlib import Path

import pytest
from tests.faults import calls
from tests.faults.killer import Nursery
from tests.faults.ledger import Cases
from tests.faults.operations import OPERATIONS
from tests.faults.stage import Stage, says_what_to_do, set_stage

SINGLE = [operation.name for operation in OPERATIONS if not operation.imports_v5]
pytestmark = calls.needs_strace


@pytest.fixture
def stage(nursery: Nursery, name: str, quick: Path) -> Stage:
    return set_stage(nursery, name, quick)


@pytest.mark.promise("… at every point")
@pytest.mark.parametrize("name", SINGLE)
def test_a_client_that_is_killed_at_any_call_leaves_the_old_or_the_new(stage: Stage, cases: Cases) -> None:
    for fault in cases.walk_names(2, stage.faults("KILL")):
        ended = stage.hit(fault)
        assert bool(ended.refused) == (ended.status == 0), "whose git was killed is told so, and lives"
        stage.check(ended)


@pytest.mark.promise("disk full, I/O error")
@pytest.mark.parametrize("name", SINGLE)
def test_a_disk_that_fails_at_any_call_is_told_plainly_and_leaves_the_old_or_the_new(
    stage: Stage, cases: Cases
) -> None:
    for fault in cases.walk_names(2, stage.faults("ENOSPC", "EIO")):
        ended = stage.hit(fault)
        assert ended.status == 0, "it went down with all hands"
        assert ended.refused or ended.acknowledged
        assert not ended.refused or says_what_to_do(ended.refused), ended.refused
        stage.check(ended)
