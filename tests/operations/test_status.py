"""How a memory is doing, whatever is wrong with its model."""

from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.operations import background, dispatch
from quaid.operations.dispatch import json_value
from quaid.storage import chunks, collections, embedding_queue, vectors
from quaid.storage.leases import Lease

MODEL = "bge-small-en-v1.5"


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def status(brain: Brain) -> Any:
    record = dispatch.call(brain, dispatch.find_tool("memory_status"), {}, "read")
    assert json_value(record)
    assert render(record).startswith("memory")
    return record


def put(brain: Brain, slug: str) -> None:
    run(brain, "put", slug=slug, content=f"# {slug}\n\nText of {slug}.")


def test_status_is_a_core_tool() -> None:
    assert dispatch.find_tool("memory_status").core
    assert dispatch.find_tool("memory_status").scope == "read"


def test_a_new_memory_says_how_to_begin(brain: Brain) -> None:
    report = status(brain)
    assert (report.pages, report.chunks, report.model.name, report.model.ready) == (0, 0, MODEL, True)
    assert report.next_steps == ("`quaid put SLUG FILE` or `quaid import FOLDER` adds pages",)


def test_missing_vectors_are_counted(brain: Brain) -> None:
    put(brain, "a")
    assert status(brain).next_steps == ("`quaid embed` makes the missing vector",)
    put(brain, "b")
    report = status(brain)
    assert (report.model.vectors, report.model.missing) == (0, 2)
    assert report.next_steps == ("`quaid embed` makes the 2 missing vectors",)


def test_pages_that_an_interrupted_import_left_whole_are_counted(brain: Brain, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("# A\n\nText.\n")
    assert "quaid embed" in run(brain, "import", folder=str(folder)).next_step
    assert status(brain).pages_uncut == 0
    brain.db.write(lambda tx: chunks.leave_uncut(tx, 1))
    report = status(brain)
    assert (report.pages, report.pages_uncut, report.chunks) == (1, 1, 0)
    assert report.next_steps == ("`quaid embed` splits 1 page into chunks and makes the vectors",)
    assert run(brain, "import", folder=str(folder)).next_step is None


def test_status_shows_current_run_and_last_failure(brain: Brain) -> None:
    put(brain, "a")
    background.record_failure(brain, MODEL, "it is too warm")
    report = status(brain)
    assert report.trouble.problem == "it is too warm"
    assert "last failure" in render(report)
    lease = Lease(brain.db.path, embedding_queue.LEASE)
    assert lease.try_take()
    lease.hold(model=MODEL, since=brain.now())
    report = status(brain)
    assert (report.filling.model, report.trouble) == (MODEL, None)
    assert report.next_steps == ("nothing to do: vectors are being made",)
    lease.release()


def test_models_that_made_vectors_before_are_named(brain: Brain) -> None:
    put(brain, "a")

    def work(tx: Any) -> None:
        for name in ("first", "second", "unused"):
            vectors.register_model(tx, name, 4, "now")
        vectors.activate_model(tx, "second")

    brain.db.write(work)
    (text,) = embedding_queue.pending_texts(brain.db, "first", 1)
    raw = bytes.fromhex("0000803f") * 4
    brain.db.write(lambda tx: vectors.keep_chunk_vectors(tx, "first", [(text.content_hash, raw)], "now"))
    report = status(brain)
    assert [(other.name, other.vectors) for other in report.others] == [("first", 1)]
    assert (report.model.name, report.model.vectors, report.model.missing) == ("second", 0, 1)


@pytest.mark.parametrize("added", [None, "[", "[{}]", '[{"name": "gone", "kind": "nothing"}]'])
def test_status_works_with_any_broken_model(brain: Brain, added: str | None) -> None:
    put(brain, "a")

    def work(tx: Any) -> None:
        collections.set_setting(tx, "embedding_model", "gone")
        if added:
            collections.set_setting(tx, "embedders", added)

    brain.db.write(work)
    report = status(brain)
    assert (report.pages, report.model.name, report.model.ready) == (1, "gone", False)
    assert report.model.problem
    assert "quaid model" in report.model.remedy
    assert report.next_steps == ("until the model is available, questions are answered by words",)
    assert report.model.problem in render(report)


def test_status_loads_no_model(brain: Brain) -> None:
    import subprocess
    import sys

    put(brain, "a")
    code = (
        "import sys\nfrom quaid.cli.main import main\n"
        f"assert main(['status', '--db', {brain.db.path!r}]) == 0\n"
        "heavy = {'numpy', 'onnxruntime', 'tokenizers'} & set(sys.modules)\nassert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
