"""A damaged database: what it answers is right or refused, nothing breaks, and no file of a folder is written."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.faults.flipper import damage
from tests.faults.here import FOLDER, files, open_brain, run
from tests.faults.ledger import Cases

from quaid.errors import QuaidError

pytestmark = pytest.mark.promise("damage is seen, not served")
PAGES = 24
QUESTIONS = ("tea", "kettle", "boat number3", "Oslo harbour")


def make(home: Path) -> None:
    """A memory with files and pages, some of it still in the log."""
    root = home / FOLDER
    root.mkdir(parents=True)
    for number in range(PAGES):
        (root / f"p{number}.md").write_text(
            f"# Page {number}\n\nTea and kettle number{number}. [[p{number - 1}]]\n"
        )
    with open_brain(home) as brain:
        brain.create(brain.settings.db_path)
        run(brain, "collection add", name=FOLDER, path=str(root))
        for number in range(PAGES):
            run(
                brain,
                "put",
                slug=f"d{number}",
                content=f"# Own {number}\n\nBoat number{number} in Oslo harbour.\n",
            )


def asked(home: Path) -> dict[str, Any]:
    """What a memory answers to a fixed list of questions: a record, or the code of a refusal."""
    told: dict[str, Any] = {}
    with open_brain(home) as brain:
        calls: list[tuple[str, dict[str, Any]]] = [("list", {"limit": 100})]
        calls += [("search", {"query": question}) for question in QUESTIONS]
        calls += [("get", {"slug": slug}) for slug in (f"{FOLDER}::p3", "d3", f"{FOLDER}::p17", "d20")]
        calls += [("backlinks", {"slug": f"{FOLDER}::p3"}), ("collection sync", {}), ("validate", {})]
        for command, given in calls:
            key = f"{command} {list(given.values())}"
            try:
                told[key] = run(brain, command, **given)
            except QuaidError as error:
                told[key] = error.code if str(error).strip() else "a refusal without a word"
    return told


def text_of(record: Any) -> Any:
    """What of an answer must be right: slugs and texts, not scores and times."""
    if isinstance(record, str):
        return record
    if "compiled_truth" in record:
        return record["compiled_truth"]
    if "pages" in record and isinstance(record["pages"], list):
        return sorted(each["slug"] for each in record["pages"])
    if "hits" in record:
        return sorted(each["slug"] for each in record["hits"])
    return None


def test_a_damaged_memory_answers_rightly_or_refuses_and_touches_no_file(
    tmp_path: Path, cases: Cases
) -> None:
    make(tmp_path / "good")
    right = asked(tmp_path / "good")
    assert not any(isinstance(each, str) for each in right.values())
    seen: Counter[str] = Counter()
    for seed in cases.walk(8, 1_000):
        home = tmp_path / "hurt"
        shutil.copytree(tmp_path / "good", home)
        before = files(home / FOLDER)
        what = damage(home / "memory.db", seed)
        told = asked(home)
        wrong = [
            key
            for key, record in told.items()
            if not isinstance(record, str) and text_of(record) != text_of(right[key])
        ]
        refused = {record for record in told.values() if isinstance(record, str)}
        found = [told["validate []"]] if isinstance(told["validate []"], dict) else []
        noticed = bool(refused) or any(each["violations"] for each in found)
        seen["refused" if refused else "noticed" if noticed else "right"] += 1
        if wrong:
            seen["wrong and noticed" if noticed else "wrong"] += 1
        assert files(home / FOLDER) == before, what
        shutil.rmtree(home)
    cases.note(", ".join(f"{count} {name}" for name, count in sorted(seen.items())))
    assert not seen["wrong"], seen
