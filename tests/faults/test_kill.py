"""A process is killed at any moment: what it was told is safe is there, files are whole, and folder and index agree.

Each round has a number, which is its seed: `QUAID_KILL=17` runs that round alone. Moments differ from run to run, the
work does not.
"""

import os
import random
import re
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import apsw
import pytest
from tests.faults.here import FOLDER, LONG, everything_kept, files, is_whole, open_brain, run, saying, start

from quaid.brain import Brain
from quaid.store.creating import add_default_collection, schema

ROUNDS = 300 if LONG else 40
OLD_PAGES = 150 if LONG else 50
KINDS = ("put", "sync", "ingest", "migrate")
OURS = re.compile(r"\.quaid-")


def make(home: Path, kind: str) -> None:
    """A memory with a folder, or an older one that has to be brought forward."""
    root = home / FOLDER
    root.mkdir(parents=True)
    for number in range(4):
        (root / f"p{number}.md").write_text(f"---\nkey: {number} # mine\n---\n{saying(f'first{number}')}\n")
    if kind == "migrate":
        make_older(home / "memory.db", root)
        return
    with open_brain(home) as brain:
        brain.create(brain.settings.db_path)
        run(brain, "collection add", name=FOLDER, path=str(root))
        for slug in ("d0", "d1"):
            run(brain, "put", slug=slug, content=saying("first"))


def make_older(path: Path, root: Path) -> None:
    """A memory of schema 6 with enough pages that bringing it forward takes a while."""
    connection = apsw.Connection(str(path))
    connection.execute("BEGIN")
    connection.execute(schema("schema_6.sql"))
    add_default_collection(connection, "2026-04-25T12:00:00Z")
    connection.execute(
        "INSERT INTO collections (id, name, kind, root_path, created_at, updated_at)"
        " VALUES (2, ?, 'markdown', ?, '', '')",
        (FOLDER, str(root)),
    )
    names = [f"old/{number}" for number in range(OLD_PAGES)] + ["d0", "d1"]
    for number, slug in enumerate(names, 1):
        text = saying(f"old{number - 1}x")
        connection.execute(
            "INSERT INTO pages (id, collection_id, slug, uuid, type, title, created_at, updated_at,"
            " truth_updated_at, timeline_updated_at, frontmatter, compiled_truth)"
            " VALUES (?, 1, ?, ?, 'concept', ?, '', '', '', '', '{}', ?)",
            (number, slug, f"u{number}", slug, f"{text}\n\n[[old/{number % OLD_PAGES}]]"),
        )
    connection.execute("COMMIT")
    connection.close()


def kill(home: Path, kind: str, seed: int) -> list[list[str]]:
    """Let a worker do a few things and kill it. What it had been told is safe."""
    chance = random.Random(seed)
    process = start("worker.py", home, kind, seed)
    assert process.stdout
    assert process.stderr
    acknowledged = []
    ready = process.stdout.readline()
    assert ready == "ready\n", process.stderr.read()
    for _ in range(chance.randrange(12) if kind != "migrate" else 0):
        acknowledged.append(process.stdout.readline().split())
    time.sleep(chance.random() * (0.5 if kind == "migrate" else 0.015))
    process.send_signal(signal.SIGKILL)
    acknowledged += [line.split() for line in process.stdout if line.endswith("\n")]
    errors = process.stderr.read()
    assert not errors, errors
    assert process.wait(timeout=60) == -signal.SIGKILL
    for pipe in (process.stdin, process.stdout, process.stderr):
        assert pipe
        pipe.close()
    return acknowledged


def check_memory(home: Path, acknowledged: list[list[str]], recent: set[str]) -> None:
    """Nothing that was acknowledged is lost, nothing is torn, and the folder and its index agree after a sync.

    A history keeps ten versions: of texts that were replaced, only `recent` ones must be there."""
    with open_brain(home) as brain:
        assert run(brain, "validate")["violations"] == []
        check_folder(brain, home / FOLDER)
        by_page: dict[str, list[list[str]]] = {}
        for each in acknowledged:
            by_page.setdefault(each[0], []).append(each)
        for slug, writes in by_page.items():
            now = run(brain, "get", slug=slug)
            kept = everything_kept(brain, slug)
            replaced = [word for _, how, word in writes if how != "timeline" and word in recent]
            assert [word for word in replaced if f"{word} ends." not in kept] == [], slug
            lines = now["timeline"] + now["compiled_truth"]
            added = [word for _, how, word in writes if how == "timeline"]
            assert [word for word in added if f"{word} ends." not in lines] == [], slug
        assert run(brain, "validate")["violations"] == []
    clean_up(home)
    for backup in home.glob("memory.db.backup-v6*"):
        if not backup.name.endswith("-unfinished"):
            assert apsw.Connection(str(backup)).pragma("integrity_check") == "ok"


def check_folder(brain: Brain, root: Path) -> None:
    for path, data in files(root).items():
        assert is_whole(data.decode()), path
    report = run(brain, "collection sync", name=FOLDER)["syncs"][0]
    assert not report["halted"], report
    again = run(brain, "collection sync", name=FOLDER)["syncs"][0]
    assert [again[name] for name in ("new", "changed", "moved", "removed", "waiting")] == [0] * 5
    rows = brain.db.rows(
        "SELECT f.relative_path, p.compiled_truth FROM file_state f JOIN pages p ON p.id = f.page_id"
        " WHERE p.quarantined_at IS NULL"
    )
    there = files(root)
    assert sorted(path for path, _ in rows) == sorted(there)
    for path, truth in rows:
        assert truth in there[path].decode(), path
        assert not OURS.search(path)


def clean_up(home: Path) -> None:
    """What a killed writer left beside the files goes with a sync an hour later."""
    with open_brain(home, later=7200) as brain:
        run(brain, "collection sync", name=FOLDER)
    assert [path for path in (home / FOLDER).rglob("*") if OURS.search(path.name)] == []


def rounds() -> list[int]:
    one = os.environ.get("QUAID_KILL")
    return [int(one)] if one else list(range(ROUNDS))


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_process_loses_nothing_that_was_acknowledged(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told: Counter[str] = Counter()
    acknowledged: list[list[str]] = []
    home = tmp_path / "start"
    for number in rounds():
        if KINDS[number % len(KINDS)] != kind:
            continue
        home, acknowledged = fresh(tmp_path, home, kind, number, acknowledged)
        now = kill(home, kind, number)
        told["kills"] += 1
        told["acknowledged"] += len(now)
        acknowledged += now
        told["left behind"] += sum(1 for path in (home / FOLDER).rglob("*") if OURS.search(path.name))
        try:
            check_memory(home, acknowledged, {word for _, _, word in now})
        except BaseException as problem:
            problem.add_note(f"round {number} ({kind}); QUAID_KILL={number} runs it again; {home} is kept")
            raise
    if LONG:
        with capsys.disabled():
            sys.stdout.write(f"\n{kind}: " + ", ".join(f"{count} {what}" for what, count in told.items()))


def fresh(
    tmp_path: Path, home: Path, kind: str, number: int, acknowledged: list[list[str]]
) -> tuple[Path, list[list[str]]]:
    """A memory goes through several kills; one that was brought forward is of no more use."""
    if home.exists() and len(acknowledged) < 300 and kind != "migrate":
        return home, acknowledged
    shutil.rmtree(home, ignore_errors=True)
    new = tmp_path / f"round-{number}"
    make(new, kind)
    return new, []
