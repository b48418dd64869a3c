"""Filling vectors, as a person does it, with the real model."""

from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain, no_progress
from quaid.cli.render import render
from quaid.errors import Cancelled, InvalidArgument, PageNotFound, UnknownModel
from quaid.operations import dispatch
from quaid.storage import chunks, embedding_queue


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


@pytest.fixture
def imported(brain: Brain, tmp_path: Path) -> Brain:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "ferry.md").write_text("# Ferry\n\nThe boat to the island leaves at nine.\n")
    (folder / "bread.md").write_text("# Bread\n\nFlour, water, salt and a long night.\n")
    run(brain, "import", folder=str(folder))
    return brain


def test_an_import_cuts_its_pages_and_a_question_those_of_an_interrupted_one(
    brain: Brain, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "ferry.md").write_text("# Ferry\n\nThe boat to the island leaves at nine.\n")

    def stop(done: int, total: int, what: str) -> None:
        if what.startswith("Cutting"):
            raise Cancelled

    brain.progress = stop
    assert run(brain, "import", folder=str(folder)).report.outcomes["new"] == 1
    assert len(chunks.uncut_pages(brain.db)) == 1
    brain.progress = no_progress
    assert run(brain, "query", question="when does the boat leave?").results[0].slug == "ferry"
    assert chunks.uncut_pages(brain.db) == []
    (folder / "bread.md").write_text("# Bread\n\nFlour, water, salt and a long night.\n")
    assert run(brain, "import", folder=str(folder)).report.outcomes["new"] == 1
    assert chunks.uncut_pages(brain.db) == []


def test_an_import_with_its_chunks_is_valid(imported: Brain) -> None:
    assert run(imported, "validate").violations == ()


def test_a_question_is_answered_by_words_while_vectors_are_still_missing(
    brain: Brain, tmp_path: Path
) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(80):
        (folder / f"p{number}.md").write_text(f"# Page {number}\n\nKeyword{number} of the harbour.\n")
    run(brain, "import", folder=str(folder))
    run(brain, "embed", slug="p3")
    answer = run(brain, "query", question="keyword41")
    assert answer.results[0].slug == "p41"
    model = run(brain, "embed", slug="p3").model
    done, total = embedding_queue.ChunkQueue(brain.db, model).coverage()
    assert done < total == 80


def test_embedding_fills_every_chunk_once(imported: Brain) -> None:
    first = run(imported, "embed")
    again = run(imported, "embed")
    assert (first.embedded, first.total, first.active) == (2, 2, True)
    assert (again.embedded, again.cached) == (0, 2)
    assert embedding_queue.ChunkQueue(imported.db, first.model).coverage() == (2, 2)


def test_validate_counts_chunks_without_a_vector_and_finds_nothing_wrong(imported: Brain) -> None:
    def checked(**which: bool) -> tuple[int | None, int | None, int, str]:
        record = run(imported, "validate", **which)
        output = render(record).partition("\n")[2]
        return record.chunks_without_vector, record.pages_not_cut, record.exit_status, output

    both = "Without vectors: 2 chunks; `quaid embed` makes them"
    assert checked(embeddings=True) == (2, 0, 0, both)
    run(imported, "embed", slug="ferry")
    without = "Without vectors: 1 chunk; `quaid embed` makes them"
    assert checked(embeddings=True) == checked() == (1, 0, 0, without)
    assert checked(links=True) == (None, None, 0, "")
    run(imported, "embed")
    assert checked(embeddings=True) == (0, 0, 0, "")
    run(imported, "put", slug="later", content="# Later\n\nNot embedded.")
    assert checked(embeddings=True)[0] == 1
    run(imported, "embeddings off")
    assert checked(embeddings=True) == (None, None, 0, "")


def test_a_question_is_answered_by_meaning_after_that(imported: Brain) -> None:
    run(imported, "embed")
    answer = run(imported, "query", question="how do I bake a loaf?")
    assert answer.results[0].slug == "bread"
    assert answer.results[0].lane in ("meaning", "both")


def test_a_changed_page_is_stale_until_it_is_embedded_again(imported: Brain) -> None:
    model = run(imported, "embed").model
    run(imported, "put", slug="bread", compiled_truth="# Bread\n\nRye, this time.")
    assert embedding_queue.ChunkQueue(imported.db, model).coverage() == (1, 2)
    assert run(imported, "embed", slug="bread").embedded == 1
    assert embedding_queue.ChunkQueue(imported.db, model).coverage() == (2, 2)


def test_wrong_calls_are_named(imported: Brain) -> None:
    with pytest.raises(UnknownModel):
        run(imported, "embed", model="nothing-of-the-kind")
    with pytest.raises(PageNotFound):
        run(imported, "embed", slug="nowhere")
    with pytest.raises(InvalidArgument):
        run(imported, "embed", slug="bread", all=True)
