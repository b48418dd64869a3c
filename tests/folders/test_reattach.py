"""The files are the truth: without its database a folder makes the same memory again."""

import os
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value

QUESTIONS = ("Who founded River AI?", "Oslo", "検索", "what happened in April 2026?", "Written on Windows")


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return json_value(dispatch.call(brain, dispatch.find_command(command), arguments, "owner"))


def memory(brain: Brain) -> dict[str, Any]:
    """All that a user can see of a memory, but for when it was made."""
    db = brain.db
    return {
        "pages": db.rows(
            "SELECT slug, type, title, summary, wing, room, frontmatter, compiled_truth, timeline FROM pages"
            " WHERE quarantined_at IS NULL ORDER BY slug"
        ),
        "tags": db.rows(
            "SELECT p.slug, t.tag FROM tags t JOIN pages p ON p.id = t.page_id ORDER BY p.slug, t.id"
        ),
        "names": db.rows(
            "SELECT p.slug, n.name, n.kind FROM page_names n JOIN pages p ON p.id = n.page_id ORDER BY 1, 2"
        ),
        "entries": db.rows(
            "SELECT p.slug, e.date, e.source, e.summary, e.detail FROM timeline_entries e"
            " JOIN pages p ON p.id = e.page_id ORDER BY 1, 2, 4"
        ),
        "links": db.rows(
            "SELECT a.slug, l.target, l.relationship, b.slug, l.context, l.valid_from FROM links l"
            " JOIN pages a ON a.id = l.from_page_id LEFT JOIN pages b ON b.id = l.to_page_id ORDER BY 1, 2, 3"
        ),
        "found": [
            [
                (hit["slug"], round(hit["rank_score"], 6))
                for hit in run(brain, "search", query=question)["hits"]
            ]
            for question in QUESTIONS
        ],
        "answers": [
            sorted(
                (result["slug"], result["content"])
                for result in run(brain, "query", question=question)["results"]
            )
            for question in QUESTIONS
        ],
    }


def attached(settings: Settings, folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """The memory that a folder makes in a new database."""
    for ending in ("", "-wal", "-shm", "-lock"):
        if os.path.exists(settings.db_path + ending):
            os.unlink(settings.db_path + ending)
    with Brain(settings, clock=lambda: 1_777_118_400.0) as brain:
        brain.create(settings.db_path)
        run(brain, "collection add", name="notes", path=str(folder))
        ids: dict[str, str] = dict(brain.db.rows("SELECT slug, uuid FROM pages"))
        return memory(brain), ids


@pytest.fixture
def folder(messy: Path) -> Path:
    (messy / "companies").mkdir()
    (messy / "companies" / "River AI.md").write_text(
        "# River AI\n\nFounded by [[Alice Example]] and [[bob]]. #startup\n"
    )
    (messy / "two.md").write_text("[[River AI]], [[検索]], [[shared]] and [[nobody]]\n")
    return messy


def test_a_folder_attached_again_is_the_same_memory(settings: Settings, folder: Path) -> None:
    first, _ = attached(settings, folder)
    again, _ = attached(settings, folder)
    assert len(first["pages"]) > 30
    assert [target for _, _, _, target, _, _ in first["links"]].count("companies/river-ai") == 2
    assert all(first["found"][:4])
    for part in first:
        assert again[part] == first[part], part


def test_edits_and_history_of_edits_end_in_the_same_memory(settings: Settings, folder: Path) -> None:
    """After reattaching, the index matches the current files, however they came to be."""
    attached(settings, folder)
    with Brain(settings) as brain:
        run(brain, "put", slug="people/alice", compiled_truth="# Alice\n\nLives in Paris. [[River AI]]")
        run(brain, "tag", slug="people/bob", tag="friend")
        run(brain, "timeline-add", slug="people/bob", date="2026-04-20", summary="Moved to Oslo")
        run(brain, "put", slug="notes::people/new", content="# New\n\nKnows [[bob]].")
        (folder / "log.md").rename(folder / "diary.md")
        (folder / "two.md").unlink()
        run(brain, "collection sync")
        lived = memory(brain)
    again, _ = attached(settings, folder)
    for part in ("pages", "tags", "entries", "found", "answers"):
        assert again[part] == lived[part], part
    assert set(again["links"]) == {row for row in lived["links"] if row[0] != "two"}


def test_with_ids_in_its_files_even_the_ids_are_the_same(settings: Settings, folder: Path) -> None:
    attached(settings, folder)
    with Brain(settings) as brain:
        left = {item["path"] for item in run(brain, "collection migrate-ids", name="notes")["left"]}
        before: dict[str, str] = dict(brain.db.rows("SELECT slug, uuid FROM pages"))
        paths: dict[str, str] = dict(
            brain.db.rows("SELECT relative_path, p.slug FROM file_state JOIN pages p ON p.id = page_id")
        )
    _, after = attached(settings, folder)
    same = {slug for path, slug in paths.items() if path not in left}
    assert len(same) > 25
    assert {slug: after[slug] for slug in same} == {slug: before[slug] for slug in same}
