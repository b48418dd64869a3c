"""A damaged database: what it answers is right or refused, nothing breaks, and no file of a folder is written.

SQLite keeps no checksums of its own. What is served is compared with what the memory knows twice (a page and its
chunks, a word and the text that it leads to). A wrong answer that gets through all the same is a failure in the
table; the test allows for one in a hundred, if `validate` tells of each.
"""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.faults.corruption import damage
from tests.faults.fault_target import names_a_remedy
from tests.faults.filesystems import quick_folder
from tests.faults.full_memory import open_memory
from tests.faults.ledger import Cases
from tests.faults.workspace import FOLDER, files, open_brain, run

from quaid.errors import DamagedDatabase, FileTrouble, NotADatabase, QuaidError

pytestmark = pytest.mark.promise("damage is seen, not served")
PAGES = 24
QUESTIONS = ("tea", "kettle", "boat number3", "Oslo harbour", "garden soil in spring")
MORE = (
    "The kettle sings when the water is hot, and somebody pours it over the leaves.",
    "Rain fell on the garden for three days; the soil is heavy and the spring is late.",
    "They spoke about the harbour, the price of rope, and who will paint the boat.",
    "Nobody knew the way, so they asked at the station and walked along the canal.",
)


def text(number: int) -> str:
    """A page of an ordinary length, with a timeline."""
    body = "\n\n".join(f"{MORE[(number + at) % 4]} Paragraph {number}.{at}." for at in range(8))
    return f"{body}\n\n---\n\n- **2026-04-{number % 27 + 1:02}** | call — Spoke about number{number}.\n"


def make(home: Path) -> None:
    """A memory with files and pages, the newest of it still in the log, as a crash would leave it."""
    work = home.with_name("work")
    root = work / FOLDER
    root.mkdir(parents=True)
    for number in range(PAGES):
        (root / f"p{number}.md").write_text(
            f"---\ntags: [tea, t{number}]\n---\n# Page {number}\n\nTea and kettle number{number}."
            f" [[p{number - 1}]]\n\n{text(number)}"
        )
    with open_brain(work) as brain:
        brain.create(brain.settings.db_path)
        run(brain, "collection add", name=FOLDER, path=str(root))
        for number in range(PAGES):
            content = f"# Own {number}\n\nBoat number{number} in Oslo harbour.\n\n{text(number)}"
            run(brain, "put", slug=f"d{number}", content=content)
            if number == PAGES // 2:
                run(brain, "compact")
        shutil.copytree(work, home)
    (home / "memory.db-shm").unlink()
    shutil.rmtree(work)


def asked(home: Path) -> dict[str, Any]:
    """What a memory answers to a fixed list of questions: a record, or the words of a refusal."""
    messages: dict[str, Any] = {}
    pages = [slug for number in range(PAGES) for slug in (f"{FOLDER}::p{number}", f"d{number}")]
    calls: list[tuple[str, dict[str, Any]]] = [("list", {"limit": 100})]
    calls += [("search", {"query": question, "limit": 60}) for question in QUESTIONS]
    calls += [("query", {"question": question, "limit": 60}) for question in QUESTIONS]
    calls += [("get", {"slug": slug}) for slug in pages]
    calls += [("backlinks", {"slug": f"{FOLDER}::p3"}), ("collection sync", {}), ("validate", {})]
    with open_memory(home) as brain:
        for command, inputs in calls:
            try:
                answer = served(command, run(brain, command, **inputs))
            except (DamagedDatabase, NotADatabase, FileTrouble) as refusal:
                answer = str(refusal)
            except QuaidError as error:  # that a page is not there is an answer, and must be right
                answer = {"error": str(error)}
            except Exception as mistake:  # a mistake of ours: none may come of it
                answer = {"broken": repr(mistake)}
            messages[" ".join([command, *map(str, list(inputs.values())[:1])])] = answer
    return messages


def served(command: str, record: Any) -> Any:
    """What of an answer must be right: all but scores, their order, and times of now."""
    if command in ("search", "query"):
        hits = record["hits"] if command == "search" else record["results"]
        hidden = ("score", "rank_score", "strength", "lane", "lanes")
        return sorted(
            sorted((key, repr(value)) for key, value in hit.items() if key not in hidden) for hit in hits
        )
    return None if command == "collection sync" else record


def is_wrong(command: str, answer: Any, right: Any) -> bool:
    return command not in ("validate", "collection sync") and not isinstance(answer, str) and answer != right


def test_a_damaged_memory_answers_rightly_or_refuses_and_touches_no_file(cases: Cases) -> None:
    seen: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    broken: list[str] = []
    unseen: list[str] = []
    told_wrong: list[str] = []
    with quick_folder() as quick:
        make(quick / "good")
        home = quick / "hurt"
        shutil.copytree(quick / "good", home)
        right = asked(home)
        assert not [item for item in right.values() if isinstance(item, str)]
        assert right["validate"]["violations"] == []
        for seed in cases.walk(8, 1_000):
            shutil.rmtree(home)
            shutil.copytree(quick / "good", home)
            before = files(home / FOLDER)
            what = damage(home / "memory.db", seed)
            output = asked(home)
            refusals = [line for line in output.values() if isinstance(line, str)]
            assert [refusal for refusal in refusals if not names_a_remedy(refusal)] == [], what
            wrong = [key for key, answer in output.items() if is_wrong(key, answer, right[key])]
            broken += [
                f"{seed} {what}: {key} {item}" for key, item in output.items() if "broken" in (item or ())
            ]
            noticed = bool(refusals) or output["validate"] != right["validate"]
            seen["wrong" if wrong else "refused" if refusals else "noticed" if noticed else "right"] += 1
            if wrong:
                cases.wrong()
                kinds["in the log" if what.endswith("-wal") else "in the file"] += 1
                told_wrong.append(f"@{seed} {', '.join(wrong) if cases.alone else what}")
                unseen += told_wrong[-1:] if output["validate"] == right["validate"] else []
            assert files(home / FOLDER) == before, what
    assert broken == []
    cases.note(", ".join(f"{count} {name}" for name, count in sorted(seen.items())))
    if told_wrong:
        cases.note(f"wrong, though `validate` sees them: {'; '.join(told_wrong)}")
    assert unseen == []
    assert kinds["in the log"] == 0, told_wrong
    assert kinds["in the file"] <= 1 + 0.01 * cases.tried, told_wrong
