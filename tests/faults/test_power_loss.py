"""The current goes off at any moment of a run: all that was acknowledged is there, and no file is empty or torn.

A seed is the number of the step after which the current goes off. The steps of a kind of work are the same in every
run, but for those of git, which makes names by chance: there it is a moment of the same work.
"""

import hashlib
import itertools
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.faults import operations, syscalls
from tests.faults.filesystems import quick_folder
from tests.faults.killer import ForkServer
from tests.faults.ledger import LONG, SHARE, Cases
from tests.faults.power_loss_replay import MODELS, UNSYNCED, Disk, Model, Step, record
from tests.faults.test_kill import make
from tests.faults.workspace import FOLDER, STORE, files, is_whole, open_brain, run

ROUNDS = {
    "put": (6, 90),
    "ingest": (2, 40),
    "sync": (2, 30),
    "remember": (4, 60),
    "kb": (2, 30),
    "begin": (2, 10),
}
"""Operations in the short form and in the long one: 260."""

MINUTES = 300.0
"""Seconds that a machine takes to come back and be asked something."""

AT_MOST = 5
"""Disks of a run that the short form starts from, chosen evenly; the long form starts from every one."""

THOROUGH = 8
"""Every so many disks are looked at from all sides."""

pytestmark = syscalls.needs_strace


class Recorded(NamedTuple):
    """A run of a kind of work, and what was there before it."""

    kind: str
    rounds: int
    home: Path
    template: Path
    acknowledged: int
    steps: list[Step]


@pytest.fixture(scope="module", params=ROUNDS)
def recorded(request: pytest.FixtureRequest, fork_server: ForkServer) -> Iterator[Recorded]:
    with quick_folder() as quick:
        kind, home, template = str(request.param), quick / "home", quick / "template"
        make(home, kind, 0)
        shutil.copytree(home, template)
        short, long = ROUNDS[kind]
        rounds = max(short, round(long * SHARE)) if LONG else short
        ended, steps = record(fork_server, home, kind, "7", rounds, quick / "log")
        assert not ended.refused, ended
        yield Recorded(kind, rounds, home, template, len(ended.acknowledged), steps)


@pytest.mark.promise("… and power loss")
@pytest.mark.parametrize("model", MODELS)
def test_acknowledged_writes_survive_a_power_loss(recorded: Recorded, model: Model, cases: Cases) -> None:
    home, steps = recorded.home, recorded.steps
    operations.put_back(home, recorded.template)
    times = different(Disk(home), steps, model)
    assert len(times) > recorded.rounds
    most = max(AT_MOST, round(len(times) * SHARE)) if LONG else AT_MOST
    chosen = cases.wanted(sorted(evenly(users_first(times, steps) if model in UNSYNCED else times, most)))
    if chosen[-1] >= len(steps):
        cases.refuse(f"the run had {len(steps)} steps")
    disks = moments(Disk(home), steps, model, chosen)
    for number, (_, (output, left)) in enumerate(zip(cases.each(chosen), disks, strict=True)):
        lay_out(home, left)
        check(home, [line.split() for line in output], thorough=cases.alone or number % THOROUGH == 0)
    cases.note(
        f"{recorded.kind} {model}: {recorded.rounds} operations, {recorded.acknowledged} acknowledgements,"
        f" {len(chosen)} of {len(times)} disks started from"
    )


def different(disk: Disk, steps: list[Step], model: Model) -> list[int]:
    """After which steps a disk looks as at no later time: of equal disks the last one, when most was acknowledged."""
    last: dict[tuple[tuple[str, bytes], ...], int] = {}
    digests: dict[int, tuple[bytes | None, bytes]] = {}  # with the bytes, so that their id stays theirs
    writes = within_runs(steps) if model in UNSYNCED else set()
    for number, step in enumerate(steps):
        changed = step.call == "said" or disk.take(step)
        if changed and (step.call != "write" or number in writes):
            left = sorted(disk.left(model).items())
            digests = {
                id(data): digests.get(id(data)) or (data, hashlib.sha256(data or b"a folder").digest())
                for _, data in left
            }
            last[tuple((path, digests[id(data)][1]) for path, data in left)] = number
    return sorted(last.values())


def within_runs(steps: list[Step]) -> set[int]:
    """Of writes to one file with nothing between them the one in the middle, and the last."""
    result: set[int] = set()
    for (call, _), together in itertools.groupby(
        range(len(steps)), lambda number: (steps[number].call, steps[number].path)
    ):
        if call == "write":
            numbers = list(together)
            result |= {numbers[len(numbers) // 2], numbers[-1]}
    return result


def users_first(times: list[int], steps: list[Step]) -> list[int]:
    """Files that a person reads before those of a database, of which there are many more writes."""
    return sorted(times, key=lambda time: (os.path.basename(steps[time].path).startswith("memory.db"), time))


def evenly(times: list[int], most: int) -> list[int]:
    """So many of them at most, the last one always."""
    count = min(most, len(times))
    return [times[(at + 1) * len(times) // count - 1] for at in range(count)]


def moments(
    disk: Disk, steps: list[Step], model: Model, times: list[int]
) -> Iterator[tuple[tuple[str, ...], dict[str, bytes | None]]]:
    """The disks after these steps, each with what had been acknowledged by then."""
    outputs: list[str] = []
    wanted = set(times)
    for number, step in enumerate(steps):
        if step.call == "said":
            outputs.append(step.path)
        else:
            disk.take(step)
        if number in wanted:
            yield tuple(outputs), disk.left(model)


def lay_out(home: Path, left: dict[str, bytes | None]) -> None:
    """A disk as it was left, some minutes ago. The folders that collections are known by stay the same."""
    for there in home.iterdir():
        for item in there.iterdir() if there.name in (FOLDER, operations.NOTEBOOK) else [there]:
            shutil.rmtree(item) if item.is_dir() else item.unlink()
    for path, data in left.items():
        if data is None:
            (home / path).mkdir(exist_ok=True)
        else:
            (home / path).write_bytes(data)
            os.utime(home / path, (time.time() - MINUTES,) * 2)


def check(home: Path, acknowledged: list[list[str]], *, thorough: bool) -> None:
    for folder, word in [(slug, word) for slug, how, word in acknowledged if how == "begun"]:
        with open_brain(home / folder / "deep") as brain:
            assert word in run(brain, "get", slug="d0")["compiled_truth"]
            assert run(brain, "validate")["violations"] == []
    acknowledged = [item for item in acknowledged if item[1] != "begun"]
    for path, data in files(home / FOLDER).items():
        assert is_whole(data.decode()), path
    for path, data in files(home / operations.NOTEBOOK).items():
        assert is_whole(data.decode()), path
    with open_brain(home) as brain:
        if thorough:
            assert run(brain, "validate")["violations"] == []
        for report in run(brain, "collection sync")["syncs"]:
            assert not report["halted"], report
        for slug in {item[0] for item in acknowledged} - {"kb"}:
            page = run(brain, "get", slug=slug)
            now = page["compiled_truth"] + page["timeline"]
            added = [word for where, how, word in acknowledged if where == slug and how == "timeline"]
            assert [word for word in added if f"{word} ends." not in now] == [], slug
            written = [word for where, how, word in acknowledged if where == slug and how != "timeline"]
            there = re.findall(r"(w\d+x\d+) ends\.", page["compiled_truth"])
            assert newest(there) >= newest(written), f"{slug} has been put back"
        assert run(brain, "validate")["violations"] == []
    if (home / STORE).is_dir():
        assert {f"Thing {word}" for *_, word in acknowledged} <= operations.nodes(home)
        operations.by_git(home, "fsck", "--strict", "--no-dangling")
    if thorough:
        operations.agree(home)
        operations.goes_on(home)


def newest(words: list[str]) -> int:
    """The number of the last of these words; -1: there is none."""
    return max((int(word.partition("x")[2]) for word in words), default=-1)
