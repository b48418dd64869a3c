"""The index is burned and made again, or made anew from the folder: nothing differs, and questions find the same."""

import random
from pathlib import Path
from typing import Any

import pytest
from tests.faults.full_memory import open_memory
from tests.faults.ledger import LONG, SHARE, Cases
from tests.faults.workspace import FOLDER, run

from quaid.app import Brain
from quaid.storage.checks import rebuild_derived_rows

pytestmark = pytest.mark.promise("the index is disposable")
FILES = max(300, round(10_000 * SHARE)) if LONG else 150
WORDS = [
    first + second
    for first in ("ka", "lo", "mi", "ne", "su")
    for second in ("ra", "to", "vi", "ze", "po", "du")
]
SHOWN = {
    "tags": "SELECT p.slug, t.tag FROM tags t JOIN pages p ON p.id = t.page_id",
    "entries": "SELECT p.slug, e.date, e.summary, e.line FROM timeline_entries e JOIN pages p ON p.id = e.page_id",
    "links": "SELECT p.slug, q.slug, l.relationship FROM links l JOIN pages p ON p.id = l.from_page_id"
    " LEFT JOIN pages q ON q.id = l.to_page_id",
    "names": "SELECT n.name, p.slug, n.kind FROM page_names n JOIN pages p ON p.id = n.page_id",
    "pages": "SELECT slug, type, title, summary, wing, room, frontmatter, compiled_truth, timeline FROM pages",
    "chunks": "SELECT p.slug, c.heading_path, c.chunk_text FROM chunks c JOIN pages p ON p.id = c.page_id",
}


def text(number: int) -> str:
    chance = random.Random(number)
    body = ". ".join(" ".join(chance.choices(WORDS, k=9)).capitalize() for _ in range(12))
    day = f"2026-04-{number % 28 + 1:02}"
    return (
        f"---\ntitle: Thing {number}\ntags: [{chance.choice(WORDS)}, {chance.choice(WORDS)}]\n---\n> {body[:60]}\n\n"
        f"# Part\n\n{body}. [[f{chance.randrange(FILES)}]]\n\n---\n\n- **{day}** | call — {body[:40]}.\n"
    )


def state(brain: Brain) -> dict[str, list[Any]]:
    run(brain, "query", question="kara")  # cuts what is not cut yet
    return {name: sorted(brain.db.rows(sql), key=repr) for name, sql in SHOWN.items()}


def answers(brain: Brain, seeds: list[int]) -> list[Any]:
    results = []
    for seed in seeds:
        words = " ".join(random.Random(seed).sample(WORDS, 3))
        hits = run(brain, "search", query=words, limit=10)["hits"]
        results.append((words, [hit["slug"] for hit in hits]))
        answer = run(brain, "query", question=words, limit=5)
        results.append((words, [result["slug"] for result in answer["results"]]))
    return results


def test_a_burned_and_a_new_index_are_what_the_old_one_was(tmp_path: Path, cases: Cases) -> None:
    root = tmp_path / FOLDER
    root.mkdir()
    for number in range(FILES):
        (root / f"f{number}.md").write_text(text(number))
    seeds = list(cases.walk(20, 200))
    seen: list[tuple[dict[str, list[Any]], list[Any]]] = []
    for home in (tmp_path, tmp_path / "again"):
        home.mkdir(exist_ok=True)
        with open_memory(home) as brain:
            brain.create(brain.settings.db_path)
            run(brain, "collection add", name=FOLDER, path=str(root))
            seen.append((state(brain), answers(brain, seeds)))
            if home == tmp_path:
                brain.db.write(rebuild_derived_rows)
                seen.append((state(brain), answers(brain, seeds)))
    first, *others = seen
    assert len(first[0]["pages"]) == FILES
    assert all(first[0][name] for name in SHOWN)
    for other in others:
        for name in SHOWN:
            assert other[0][name] == first[0][name], name
        assert other[1] == first[1]
    cases.count(FILES * len(others))
    cases.note(f"{FILES:,} files, {2 * len(seeds)} questions")
