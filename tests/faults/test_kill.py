"""A process is killed at any moment: what it was told is safe is there, files are whole, and folder and index agree.

Moments differ from run to run; the work that a seed stands for does not.
"""

import random
import re
import shutil
import sys
from pathlib import Path

import apsw
import pytest
from tests.faults import index_check, old_schema, operations
from tests.faults.killer import ForkServer
from tests.faults.ledger import Cases
from tests.faults.workspace import (
    FOLDER,
    STORE,
    attach,
    everything_kept,
    files,
    is_whole,
    open_brain,
    page_text,
    run,
)

from quaid.app import Brain
from quaid.storage import embedding_queue
from quaid.storage.history import MOST_VERSIONS

KILLS = {
    "put": (12, 3_000),
    "ingest": (8, 1_500),
    "sync": (8, 1_500),
    "remember": (12, 2_000),
    "embed": (4, 900),
    "migrate": (6, 600),
    "kb": (3, 500),
}
"""In the short form and in the long one: ten thousand."""

LONG_LIVED = 150
"""Writes that one memory goes through, with many kills between them."""

OURS = re.compile(r"\.quaid-")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, and finds processes in /proc")


@pytest.mark.promise("acknowledged writes survive process death")
@pytest.mark.parametrize("kind", KILLS)
def test_a_killed_process_loses_nothing_that_was_acknowledged(
    fork_server: ForkServer, quick: Path, kind: str, cases: Cases
) -> None:
    acknowledged: list[list[str]] = []
    writes = 0
    home = quick / "start"
    for seed in cases.walk(*KILLS[kind]):
        if not home.exists() or len(acknowledged) >= LONG_LIVED or kind == "migrate":
            shutil.rmtree(home, ignore_errors=True)
            home, acknowledged = quick / f"round-{seed}", []
            make(home, kind, seed)
        now = fork_server.kill(home, kind, seed, family=bool(seed % 2)).acknowledged
        acknowledged += now
        writes += len(now)
        check_memory(home, acknowledged, {word for _, _, word in now}, thorough=seed % 4 == 0)
    cases.note(f"{kind} {writes:,} acknowledged")


def make(home: Path, kind: str, seed: int) -> None:
    """A memory with what a kind of work needs, or an older one that has to be brought forward."""
    root = home / FOLDER
    root.mkdir(parents=True)
    for number in range(4):
        (root / f"p{number}.md").write_text(
            f"---\nkey: {number} # mine\n---\n{page_text(f'first{number}')}\n"
        )
    if kind == "migrate":
        old_schema.make(home / "memory.db")
        return
    with open_brain(home) as brain:
        brain.create(brain.settings.db_path)
        run(brain, "collection add", name=FOLDER, path=str(root))
        for slug in ("d0", "d1"):
            run(brain, "put", slug=slug, content=page_text("first"))
        if kind == "remember":
            run(brain, "notebook init")
        if kind == "kb":
            run(brain, "kb init")


def check_memory(home: Path, acknowledged: list[list[str]], recent: set[str], *, thorough: bool) -> None:
    """Nothing that was acknowledged is lost, nothing is torn, and the folder and its index agree after a sync.

    A history keeps ten versions: of texts that were replaced, only `recent` ones must be there. Now and then, what
    a sync made of it is checked too."""
    with open_brain(home) as brain:
        assert run(brain, "validate")["violations"] == []
        check_words(brain, acknowledged, recent)
        check_folder(brain, home / FOLDER)
        if thorough:
            check_words(brain, acknowledged, recent)
            assert run(brain, "validate")["violations"] == []
        if (home / STORE).is_dir():
            check_store(brain, home, {f"Thing {word}" for *_, word in acknowledged})
    if thorough:
        clean_up(home)
    for backup in home.glob("memory.db.backup-v*"):
        if not backup.name.endswith(("-unfinished", "-unfinished-journal")):
            assert apsw.Connection(str(backup)).pragma("integrity_check") == "ok"


def check_words(brain: Brain, acknowledged: list[list[str]], recent: set[str]) -> None:
    by_page: dict[str, list[list[str]]] = {}
    for item in acknowledged:
        by_page.setdefault(item[0], []).append(item)
    by_page.pop("kb", None)
    for slug, writes in by_page.items():
        now = run(brain, "get", slug=slug)
        kept = everything_kept(brain, slug)
        last = writes[-MOST_VERSIONS:]  # every write makes a version, and so many are kept
        replaced = [word for _, how, word in last if how != "timeline" and word in recent]
        assert [word for word in replaced if f"{word} ends." not in kept] == [], slug
        lines = now["timeline"] + now["compiled_truth"]
        added = [word for _, how, word in writes if how == "timeline"]
        assert [word for word in added if f"{word} ends." not in lines] == [], slug
    check_vectors(brain, acknowledged)


def check_vectors(brain: Brain, acknowledged: list[list[str]]) -> None:
    """When the last that was said is that all has vectors, and nothing has been put since, all has."""
    if not acknowledged or acknowledged[-1][1] != "vectors":
        return
    _, _, last = acknowledged[-1]
    truths = [
        str(row[0]) for row in brain.db.rows("SELECT compiled_truth FROM pages WHERE slug GLOB 'd[01]'")
    ]
    begun = {
        (int(seed), int(number))
        for truth in truths
        for seed, number in re.findall(r"w(\d+)x(\d+) begins", truth)
    }
    newest = "w{}x{}".format(*max(begun))  # a put of a later process may be stored without an acknowledgement
    if last == newest:
        covered, total = embedding_queue.ChunkQueue(brain.db, brain.model_name).coverage()
        assert covered == total > 0


def check_folder(brain: Brain, root: Path) -> None:
    for path, data in files(root).items():
        assert is_whole(data.decode()), path
    attach(brain, root)
    report = run(brain, "collection sync", name=FOLDER)["syncs"][0]
    assert not report["halted"], report
    again = run(brain, "collection sync", name=FOLDER)["syncs"][0]
    assert [again[name] for name in ("new", "changed", "moved", "removed", "waiting")] == [0] * 5
    index_check.check_texts(brain, root)
    index_check.check_words(brain, root, [index_check.some_word(root, random.Random(len(files(root))))])
    assert not [path for path in index_check.indexed_files(brain) if OURS.search(path)]


def check_store(brain: Brain, home: Path, titles: set[str]) -> None:
    """No commit is lost, and the next one comes at once, to a store in which all is well."""
    operations.goes_on(home)
    assert titles <= operations.nodes(home)


def clean_up(home: Path) -> None:
    """What a killed writer left beside the files goes with a sync an hour later."""
    with open_brain(home, later=7200) as brain:
        run(brain, "collection sync")
    left = [path for name in (FOLDER, operations.NOTEBOOK) for path in (home / name).rglob("*")]
    assert [path for path in left if OURS.search(path.name)] == []
