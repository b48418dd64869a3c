"""Many processes change the same pages, in every way there is: every update is there, and nobody meets a lock."""

import json
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.faults.here import AT_ONCE, EACH, FOLDER, open_brain, percentile, run, start
from tests.faults.ledger import LONG, SHARE, Cases
from tests.surfaces.web.process import Process

from quaid.config import Settings
from quaid.ops import tokens

WAYS = ("resident", "stdio", "http")
PROCESSES = 8 if LONG else 3
ROUNDS = max(25, round(5_000 * SHARE)) if LONG else 15


@pytest.mark.promise("no lost update")
def test_every_versioned_update_is_there_and_none_was_refused_as_locked(tmp_path: Path, cases: Cases) -> None:
    root = tmp_path / FOLDER
    root.mkdir()
    pages = range(((ROUNDS - 1) // EACH + 1) * AT_ONCE)
    slugs = [f"{FOLDER}::p{number}" if number % 2 else f"p{number}" for number in pages]
    with open_brain(tmp_path) as brain:
        brain.create(brain.settings.db_path)
        run(brain, "collection add", name=FOLDER, path=str(root))
        for slug in slugs:
            run(brain, "put", slug=slug, content=f"# {slug}\n\nShared.\n")
        settings: Settings = brain.settings
    names = [f"u{number}" for number in range(PROCESSES)]
    with Process(settings, "serve", "--http") as server:
        token = tokens.owner_token(settings)
        processes = [
            start("updater.py", tmp_path, name, ROUNDS, WAYS[number % 3], server.address, token)
            for number, name in enumerate(names)
        ]
        began = time.perf_counter()
        for process in processes:
            assert process.stdin
            process.stdin.write("\n")
            process.stdin.flush()
        codes: Counter[str] = Counter()
        seconds: list[float] = []
        said = [process.communicate(timeout=7_200) for process in processes]
        for out, errors in said:
            assert errors == "", errors
            told = json.loads(out)
            codes.update(told["codes"])
            seconds += told["seconds"]
        lasted = time.perf_counter() - began
    assert set(codes) <= {"version_conflict"}
    check(tmp_path, slugs, [f"{name}x{number}" for name in names for number in range(ROUNDS)])
    cases.count(len(seconds))
    cases.note(
        f"{PROCESSES} processes in {lasted:.0f} s: p50 {1000 * percentile(seconds, 0.5):.0f} ms,"
        f" p99 {1000 * percentile(seconds, 0.99):.0f} ms, longest {1000 * max(seconds):.0f} ms,"
        f" {codes['version_conflict']:,} conflicts retried, 0 locked"
    )


def check(home: Path, slugs: list[str], words: list[str]) -> None:
    """Each update is in one page once, in the files as in the index."""
    with open_brain(home) as brain:
        pages = [run(brain, "get", slug=slug) for slug in slugs]
        lines = [line.split(" — ")[1] for page in pages for line in page["timeline"].splitlines()]
        assert sorted(lines) == sorted(f"{word} was here." for word in words)
        assert sum(page["version"] - 1 for page in pages) == len(words)
        for slug, page in zip(slugs, pages, strict=True):
            if slug.startswith(FOLDER):
                text = (home / FOLDER / f"{page['slug']}.md").read_text()
                assert page["timeline"] in text
        report = run(brain, "collection sync", name=FOLDER)["syncs"][0]
        assert [report[name] for name in ("new", "changed", "moved", "removed")] == [0] * 4
        assert run(brain, "validate")["violations"] == []
    assert [path.name for path in (home / FOLDER).iterdir() if path.name.startswith(".")] == []
