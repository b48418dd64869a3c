"""Many processes change the same pages, in every way there is: every update is there, and nobody meets a lock."""

import json
import subprocess
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.faults.ledger import LONG, SHARE, Cases
from tests.faults.updater import FIRST, TOO_LATE
from tests.faults.workspace import AT_ONCE, EACH, FOLDER, open_brain, percentile, run, start
from tests.web.server_process import Process

from quaid.config import Settings
from quaid.operations import service

WAYS = ("resident", "stdio", "http", "cli")
PROCESSES = 8 if LONG else 4
ROUNDS = max(25, round(6_250 * SHARE)) if LONG else 15
ROUNDS_BY_COMMAND = max(5, round(1_250 * SHARE)) if LONG else 3
"""Of somebody who starts two processes for each update, and more when somebody else was quicker: 40,000 in all, of
eight clients."""

SLOWEST = 1.0
"""Seconds that 99 of 100 updates take at most, also with the start of a process for each."""
ENOUGH = 1_000
"""Updates of which 99 of 100 can be told: of fewer, those are most that meet the rush at the start."""


class Updater(NamedTuple):
    """One of those who write."""

    name: str
    way: str
    process: "subprocess.Popen[str]"

    @property
    def rounds(self) -> int:
        return rounds_of(self.way)


def rounds_of(way: str) -> int:
    return ROUNDS_BY_COMMAND if way == "cli" else ROUNDS


@pytest.mark.promise("no lost update")
def test_every_versioned_update_is_there_and_none_was_refused_as_locked(tmp_path: Path, cases: Cases) -> None:
    """Who meets whom differs from run to run; which pages each of them changes, one after another, does not."""
    for seed in cases.walk(1, 1):
        slugs = prepare(tmp_path)
        with open_brain(tmp_path) as brain:
            settings: Settings = brain.settings
        with Process(settings, "serve", "--http", cold=True) as server:
            updaters = started(tmp_path, seed, server.address, service.owner_token(settings))
            began = time.perf_counter()
            codes, seconds = finished(updaters)
            lasted = time.perf_counter() - began
        check(
            tmp_path,
            slugs,
            [f"{updater.name}x{number}" for updater in updaters for number in range(updater.rounds)],
        )
        assert set(codes) == {TOO_LATE}
        sure = len(FIRST) * (PROCESSES - 1)
        assert codes[TOO_LATE] >= sure, "more than one wrote over the same version"
        assert codes[TOO_LATE] > sure or not LONG, "they met nowhere but at the start"
        by_command = seconds.pop("cli")
        resident = [item for some in seconds.values() for item in some]
        slowest, slowest_command = percentile(resident, 0.99), percentile(by_command, 0.99)
        if LONG:
            assert slowest <= SLOWEST or len(resident) < ENOUGH, f"p99 is {slowest:.2f} s"
            assert slowest_command <= SLOWEST or len(by_command) < ENOUGH, (
                f"by command {slowest_command:.2f} s"
            )
        cases.count(len(resident) + len(by_command) - 1)
        cases.note(
            f"{PROCESSES} processes in {lasted:.0f} s: p50 {1000 * percentile(resident, 0.5):.0f} ms,"
            f" p99 {1000 * slowest:.0f} ms, longest {1000 * max(resident):.0f} ms;"
            f" by command p50 {1000 * percentile(by_command, 0.5):.0f} ms,"
            f" p99 {1000 * slowest_command:.0f} ms, its process included;"
            f" {codes[TOO_LATE]:,} conflicts retried, 0 locked"
        )


def prepare(home: Path) -> list[str]:
    """A memory with the pages that all of them write."""
    (home / FOLDER).mkdir()
    pages = range(((ROUNDS - 1) // EACH + 1) * AT_ONCE)
    slugs = [f"{FOLDER}::p{number}" if number % 2 else f"p{number}" for number in pages]
    with open_brain(home) as brain:
        brain.create(brain.settings.db_path)
        run(brain, "collection add", name=FOLDER, path=str(home / FOLDER))
        for slug in slugs:
            run(brain, "put", slug=slug, content=f"# {slug}\n\nShared.\n")
    return slugs


def started(home: Path, seed: int, address: str, token: str) -> list[Updater]:
    updaters = []
    for number in range(PROCESSES):
        name, way = f"u{number}", WAYS[number % len(WAYS)]
        rounds = rounds_of(way)
        inputs = (home, seed, name, rounds, ROUNDS // rounds, way, address, token)
        updaters.append(Updater(name, way, start("updater.py", *inputs)))
    return updaters


def finished(updaters: list[Updater]) -> tuple[Counter[str], dict[str, list[float]]]:
    """Let them write: the errors that they met, and how long each put took, by way."""
    for updater in updaters:
        assert updater.process.stdout
        assert updater.process.stdout.readline() == "ready\n", updater.process.communicate()[1]
    for updater in updaters:
        assert updater.process.stdin
        updater.process.stdin.write("\n")
        updater.process.stdin.flush()
    codes: Counter[str] = Counter()
    seconds: dict[str, list[float]] = defaultdict(list)
    pairs = [(updater.way, *updater.process.communicate(timeout=7_200)) for updater in updaters]
    for way, out, errors in pairs:
        assert errors == "", errors
        payload = json.loads(out)
        codes.update(payload["codes"])
        seconds[way] += payload["seconds"]
    return codes, seconds


def check(home: Path, slugs: list[str], words: list[str]) -> None:
    """Each update is in one page once, in its text as in its timeline, and in the files as in the index."""
    with open_brain(home) as brain:
        pages = [run(brain, "get", slug=slug) for slug in slugs]
        lines = [line.split(" — ")[1] for page in pages for line in page["timeline"].splitlines()]
        assert sorted(lines) == sorted(f"{word} was here." for word in words)
        texts = [page["compiled_truth"].partition("Shared.")[2].split() for page in pages]
        assert sorted(word for text in texts for word in text) == sorted(words)
        assert sum(page["version"] - 1 for page in pages) == len(words)
        for slug, page in zip(slugs, pages, strict=True):
            if slug.startswith(FOLDER):
                text = (home / FOLDER / f"{page['slug']}.md").read_text()
                assert f"{page['compiled_truth']}\n\n---\n\n{page['timeline']}\n" in text
        report = run(brain, "collection sync", name=FOLDER)["syncs"][0]
        assert [report[name] for name in ("new", "changed", "moved", "removed")] == [0] * 4
        assert run(brain, "validate")["violations"] == []
    assert [path.name for path in (home / FOLDER).iterdir() if path.name.startswith(".")] == []
