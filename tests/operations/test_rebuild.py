"""A rebuild: everything that follows from pages and files is the same afterwards, and how far it is is told."""

import os
from typing import Any

from quaid.app import Brain
from quaid.cli.render import render
from quaid.operations import dispatch
from quaid.storage import collections


def call(brain: Brain, command: str, **given: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), given, "owner")


def burn(tx: Any) -> None:
    for table in ("tags", "timeline_entries", "chunks"):
        tx.execute(f"DELETE FROM {table}")


def test_a_rebuild_makes_everything_again_and_tells_how_far_it_is(brain: Brain) -> None:
    messages: list[tuple[int, int, str]] = []
    for number in range(60):
        text = f"# Page {number}\n\nAbout vanadium, #metal.\n\n---\n\n- **2026-01-01** — Begun.\n"
        call(brain, "put", slug=f"notes/page-{number}", content=text)
    call(brain, "embeddings off")
    before = call(brain, "search", query="vanadium", limit=100)
    brain.db.write(burn)
    brain.progress = lambda done, total, what: messages.append((done, total, what))
    done = call(brain, "rebuild")
    assert (done.pages, done.vectors, done.problem, done.exit_status) == (60, 0, "", 0)
    assert messages[:3] == [(value, 60, "Indexing pages anew") for value in (0, 50, 60)]
    assert call(brain, "search", query="vanadium", limit=100) == before
    assert call(brain, "tags", slug="notes/page-3").tags == ("metal",)
    assert render(done) == "Rebuilt the index of 60 pages."


def test_a_rebuild_takes_in_what_changed_in_the_folders(brain: Brain, tmp_path: Any) -> None:
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "one.md").write_text("# One\n")
    call(brain, "embeddings off")
    call(brain, "collection add", name="vault", path=str(folder))
    (folder / "two.md").write_text("# Two\n")
    os.unlink(folder / "one.md")
    done = call(brain, "rebuild")
    assert [(sync.collection, sync.new, sync.removed) for sync in done.syncs] == [("vault", 1, 1)]
    assert "vault" in render(done)


def test_model_that_is_not_there_is_reported_and_words_are_in_step(brain: Brain) -> None:
    call(brain, "put", slug="notes/one", content="# One\n\nAbout vanadium.\n")
    brain.db.write(lambda tx: collections.set_setting(tx, "embedding_model", "no-such-model"))
    done = call(brain, "rebuild")
    assert "no-such-model" in done.problem
    assert done.exit_status == 1
    assert "Missing vectors could not be made" in render(done)
    assert call(brain, "search", query="vanadium").hits
