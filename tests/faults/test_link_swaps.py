"""Folders turn into links to somewhere else while Quaid reads and writes below them: nothing gets out or comes in."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.faults import hostile_paths
from tests.faults.full_memory import KB, create_memory
from tests.faults.hostile_paths import CANARY
from tests.faults.ledger import Cases
from tests.faults.workspace import FOLDER, run, start

from quaid.app import Brain
from quaid.errors import QuaidError
from quaid.kb import layout

pytestmark = pytest.mark.promise("paths")


def deeds(brain: Brain, number: int) -> list[tuple[str, dict[str, Any]]]:
    """What is tried once while folders are swapped: every way of reading or writing below a folder."""
    word = f"word{number}"
    return [
        ("put", {"slug": f"{FOLDER}::sub/p{number % 50}", "content": f"# Page\n\n{word}\n"}),
        ("put", {"slug": f"{FOLDER}::sub/canary", "compiled_truth": f"# Mine\n\n{word}"}),
        ("timeline-add", {"slug": f"{FOLDER}::sub/old", "date": "2026-04-25", "summary": word}),
        ("notebook write", {"path": "lists/canary.md", "content": f"- {word}\n", "replace": True}),
        ("notebook read", {"path": "lists/canary.md"}),
        ("remember", {"content": word, "file": "lists/shopping.md"}),
        ("log", {"entry": word}),
        ("prompt", {}),
        ("collection sync", {}),
    ]


def kb_deeds(number: int) -> list[tuple[str, dict[str, Any]]]:
    """The same for a knowledge base, whose nodes may lie in folders, too."""
    return [
        ("kb query", {"context": f"{CANARY} secret"}),
        ("kb lint", {}),
        *([("kb remember", remembered(number))] if number % 5 == 0 else []),
        ("kb commit", {}),
    ]


def remembered(number: int) -> dict[str, Any]:
    title = f"Thing {number}"
    return {
        "title": title,
        "text": f"About thing {number}.",
        "summary": f"What thing {number} is",
        "force": True,
    }


def prepare(home: Path) -> tuple[Path, Brain]:
    outside = hostile_paths.outside(home)
    for name in ("p1.md", "old.md", "shopping.md", "node.org"):
        (outside / name).write_text(f"{node()}# Out\n\n{CANARY}\n" if name == "node.org" else f"{CANARY}\n")
    brain = create_memory(home)
    for path in (f"{FOLDER}/sub/old.md", f"{FOLDER}/sub/canary.md", "notebook/lists/canary.md"):
        (home / path).parent.mkdir(parents=True, exist_ok=True)
        (home / path).write_text("# Mine\n\nInside.\n")
    (home / KB / "sub").mkdir()
    (home / KB / "sub" / "node.org").write_text(node() + "Inside.\n")
    run(brain, "kb commit")
    run(brain, "collection sync")
    return outside, brain


def node() -> str:
    from tests.kb.nodes import text

    return text(3, "Words.\n")


@pytest.mark.parametrize("what", ["folders", "kb"])
def test_swapped_symlinks_give_no_access_outside(tmp_path: Path, cases: Cases, what: str) -> None:
    home = tmp_path / "home"
    outside, brain = prepare(home)
    swapped = [f"{FOLDER}/sub", "notebook/lists", "notebook/daily"] if what == "folders" else [f"{KB}/sub"]
    before = hostile_paths.state(outside)
    codes: Counter[str] = Counter()
    swapper = start("symlink_swapper.py", outside, 7, *[home / item for item in swapped])
    tried = 0
    try:
        with brain:
            for seed in cases.walk(6, 1_250):
                for command, inputs in deeds(brain, seed) if what == "folders" else kb_deeds(seed):
                    try:
                        output = json.dumps(run(brain, command, **inputs))
                        codes["done"] += 1
                    except QuaidError as error:
                        output, codes[error.code] = str(error), codes[error.code] + 1
                    tried += 1
                    assert CANARY not in output.replace(f"{CANARY} secret", ""), command
                assert hostile_paths.state(outside) == before
            swaps = finish(swapper)
            run(brain, "collection sync")
            assert run(brain, "search", query=CANARY)["hits"] == []
            for path in (f"{FOLDER}/sub/old.md", f"{KB}/sub/node.org"):
                assert "Inside" in (home / path).read_text()
            assert CANARY not in json.dumps(run(brain, "kb query", context="words node secret"))
    finally:
        swapper.kill()
        swapper.communicate()
    assert hostile_paths.state(outside) == before
    assert cases.alone or swaps > 5
    assert cases.alone or codes["done"] > tried // 10, codes
    cases.count(tried)
    cases.note(f"{what}: {tried:,} deeds during {swaps:,} swaps, 0 outside")


def test_a_look_into_a_knowledge_base_never_goes_through_a_link(tmp_path: Path, cases: Cases) -> None:
    """The same race without anything around it: walk, look and read as often as can be."""
    outside, root = tmp_path / "outside", tmp_path / "kb"
    for folder, says in ((outside, CANARY), (root / "sub", "Inside."), (root / "sub" / "deep", "Inside.")):
        folder.mkdir(parents=True)
        (folder / "a.org").write_text(f"{says}\n")
    (outside / "deep").mkdir()
    (outside / "deep" / "a.org").write_text(f"{CANARY}\n")
    foreign = {os.stat(outside / path).st_ino for path in ("a.org", "deep/a.org")}
    paths = ("sub/a.org", "sub/deep/a.org")
    read: Counter[str] = Counter()
    swapper = start("symlink_swapper.py", outside, 7, root / "sub")
    try:
        for _ in cases.walk(2_000, 100_000):
            looks = [layout.stat_file(str(root), path) for path in paths]
            looks += [stat for _, stat in layout.walk_store(str(root))]
            assert not foreign & {look.inode for look in looks if look}
            for path in paths:
                try:
                    read[layout.read_file(str(root), path).decode()] += 1
                except OSError:
                    read["refused"] += 1
        swaps = finish(swapper)
    finally:
        swapper.kill()
        swapper.communicate()
    assert set(read) <= {"Inside.\n", "refused"}
    assert cases.alone or (len(read) == 2 and swaps > 20)
    cases.note(f"looks into a knowledge base: {swaps:,} swaps, {read['refused']:,} reads refused, 0 outside")


def finish(swapper: Any) -> int:
    out, errors = swapper.communicate("\n", timeout=60)
    assert errors == ""
    return int(out)
