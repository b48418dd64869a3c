"""A small disk fills up: whoever finds no room is told so, nothing is half done, and with room it goes on."""

import random
from pathlib import Path
from typing import Any

import pytest
from tests.faults import operations
from tests.faults.fault_target import names_a_remedy, prepare_target
from tests.faults.filesystems import leave_room, make_room, tiny_disk
from tests.faults.killer import ForkServer
from tests.faults.ledger import Cases
from tests.faults.operations import OPERATIONS
from tests.faults.workspace import FOLDER, open_brain, page_text, run

from quaid.app import Brain
from quaid.errors import QuaidError

SINGLE = [operation.name for operation in OPERATIONS if not operation.old_schema]
DISK = 16_000_000
PAGE = 4096

pytestmark = pytest.mark.promise("disk full, I/O error")


@pytest.mark.parametrize("name", SINGLE)
def test_an_operation_that_finds_no_room_is_refused_whole(
    fork_server: ForkServer, tmp_path: Path, name: str, cases: Cases
) -> None:
    refused = 0
    with tiny_disk(tmp_path / "disk", DISK) as disk:
        stage = prepare_target(fork_server, name, disk, traced=False)
        for seed in cases.walk(1, 40):
            operations.put_back(stage.home, stage.template)
            leave_room(disk, random.Random(f"{name} {seed}").randrange(100) * PAGE if seed else 0)
            fork_server.spawn(stage.home, operations.ONCE, name)
            ended = fork_server.end()
            make_room(disk)
            assert ended.refused or ended.acknowledged
            assert not ended.refused or names_a_remedy(ended.refused), ended.refused
            refused += bool(ended.refused)
            stage.check(ended)
    assert refused or cases.alone


def test_a_resident_client_reads_on_a_full_disk_and_writes_when_there_is_room(
    tmp_path: Path, cases: Cases
) -> None:
    refused = 0
    with tiny_disk(tmp_path / "disk", DISK) as disk:
        operations.make(disk / "home", "remember")
        with open_brain(disk / "home") as brain:
            for seed in cases.walk(3, 60):
                chance = random.Random(f"resident {seed}")
                leave_room(disk, chance.randrange(40) * PAGE)
                kept, output = until_it_is_full(brain, seed)
                refused += bool(output)
                assert not output or names_a_remedy(output), output
                assert run(brain, "search", query="first")["hits"]
                assert "first ends." in run(brain, "get", slug="d1")["compiled_truth"]
                make_room(disk)
                run(brain, "put", slug=f"room{seed}", content=page_text("room"))
                for slug, text in kept.items():
                    assert text in run(brain, "get", slug=slug)["compiled_truth"]
                assert run(brain, "validate")["violations"] == []
                for slug in kept:
                    run(brain, "put", slug=slug, compiled_truth="Small again.", **version(brain, slug))
                run(brain, "compact")
        operations.agree(disk / "home")
    assert refused or cases.alone


def until_it_is_full(brain: Brain, seed: int) -> tuple[dict[str, str], str]:
    """Write until it is refused: what was acknowledged, by page, and what was told then."""
    kept: dict[str, str] = {}
    for number in range(200):
        slug = f"{FOLDER}::p{number % 3}" if number % 2 else f"d{number % 2}"
        text = f"Full {seed} {number}. " * 200
        try:
            run(brain, "put", slug=slug, compiled_truth=text, **version(brain, slug))
        except QuaidError as refusal:
            return kept, str(refusal)
        kept[slug] = f"Full {seed} {number}. "
    return kept, ""


def version(brain: Brain, slug: str) -> dict[str, Any]:
    return {"expected_version": run(brain, "get", slug=slug)["version"]}
