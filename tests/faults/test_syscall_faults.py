"""An operation killed, or failing with an I/O error, at each system call leaves the old or the new state.

The same holds for each git process that it starts. A point is a kind of call and its number within the process;
`syscalls.py` lists all points first. A seed is a fault at a point: `EIO:write:7`, in git `KILL:write-tree:fsync:1`.
A fault that is not triggered fails the test.
"""

from pathlib import Path

import pytest
from tests.faults import syscalls
from tests.faults.fault_target import FaultTarget, names_a_remedy, prepare_target
from tests.faults.killer import ForkServer
from tests.faults.ledger import Cases
from tests.faults.operations import OPERATIONS

SINGLE = [operation.name for operation in OPERATIONS if not operation.old_schema]
pytestmark = syscalls.needs_strace


@pytest.fixture
def stage(fork_server: ForkServer, name: str, quick: Path) -> FaultTarget:
    return prepare_target(fork_server, name, quick)


@pytest.mark.promise("… at every point")
@pytest.mark.parametrize("name", SINGLE)
def test_a_client_that_is_killed_at_any_call_leaves_the_old_or_the_new(
    stage: FaultTarget, cases: Cases
) -> None:
    for fault in cases.walk_names(2, stage.faults("KILL")):
        ended = stage.hit(fault)
        assert bool(ended.refused) == (ended.status == 0), "whose git was killed is told so, and lives"
        stage.check(ended)


@pytest.mark.promise("disk full, I/O error")
@pytest.mark.parametrize("name", SINGLE)
def test_io_error_at_any_call_is_reported_and_leaves_the_old_or_the_new(
    stage: FaultTarget, cases: Cases
) -> None:
    for fault in cases.walk_names(2, stage.faults("ENOSPC", "EIO")):
        ended = stage.hit(fault)
        assert ended.status == 0, "it went down with all hands"
        assert ended.refused or ended.acknowledged
        assert not ended.refused or names_a_remedy(ended.refused), ended.refused
        stage.check(ended)
