"""The notebook's files, through the gate: laid out, listed, read, written, brought over."""

from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.cli.render import render
from quaid.errors import (
    AlreadyExists,
    FileTrouble,
    InvalidArgument,
    NotebookGone,
    NotFound,
    QuaidError,
    VersionConflict,
)
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value
from quaid.storage.collections import Collections


def run(brain: Brain, command: str, **arguments: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json_value(
        dispatch.call(brain, dispatch.find_command(command), arguments, "owner")
    )
    return answer


@pytest.fixture
def notebook(brain: Brain, tmp_path: Path) -> Path:
    run(brain, "notebook init")
    return tmp_path / "notebook"


def test_a_notebook_is_laid_out_once_and_what_is_there_stays(brain: Brain, tmp_path: Path) -> None:
    root = tmp_path / "mine"
    (root / "reference").mkdir(parents=True)
    (root / "reference/contacts.md").write_text("## Ann\n- 555\n")
    made = run(brain, "notebook init", path="mine")
    assert (made["created"], made["folders"], made["files"]) == (True, ["lists", "knowledge", "daily"], 1)
    again = run(brain, "notebook init", path="mine")
    assert (again["created"], again["folders"]) == (False, [])
    assert (root / "reference/contacts.md").read_text() == "## Ann\n- 555\n"
    collection = Collections(brain.db).require("notebook")
    assert (collection.kind, collection.root, collection.writable) == ("notebook", str(root), True)


def test_a_second_notebook_and_a_file_in_the_way_are_refused(brain: Brain, tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/lists").write_text("a file")
    with pytest.raises(FileTrouble, match="move it away"):
        run(brain, "notebook init", path="bad")
    run(brain, "notebook init")
    with pytest.raises(AlreadyExists, match="collection remove"):
        run(brain, "notebook init", path="other")
    assert run(brain, "notebook init")["created"] is False


def test_a_notebook_that_was_let_go_can_be_attached_again(brain: Brain, notebook: Path) -> None:
    (notebook / "lists/a.md").write_text("- a\n")
    run(brain, "collection remove", name="notebook", yes=True)
    assert run(brain, "notebook init")["files"] == 1


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("notebook list", {}),
        ("notebook read", {"path": "lists/a.md"}),
        ("notebook write", {"path": "lists/a.md", "content": "x"}),
        ("notebook init", {}),
        ("notebook migrate", {"path": "."}),
        ("remember", {"content": "buy milk"}),
        ("log", {"entry": "Went home"}),
        ("prompt", {}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_notebook_that_was_moved_away_is_missed_in_the_same_words_everywhere(
    brain: Brain, notebook: Path, command: str, arguments: dict[str, Any]
) -> None:
    (notebook / "lists/a.md").write_text("- a\n")
    run(brain, "notebook list")
    notebook.rename(notebook.parent / "elsewhere")
    with pytest.raises(NotebookGone) as error:
        run(brain, command, **arguments)
    assert str(error.value) == (
        f"The notebook's folder {notebook} is missing. Restore it; or detach it with"
        " `quaid collection remove notebook` and create another with `quaid notebook init`."
    )
    assert not notebook.exists()
    (notebook.parent / "elsewhere").rename(notebook)
    assert [file["path"] for file in run(brain, "notebook list")["files"]] == ["lists/a.md"]


def test_recall_uses_the_index_of_a_moved_notebook(brain: Brain, notebook: Path) -> None:
    (notebook / "lists/a.md").write_text("The quagga is striped.\n")
    assert run(brain, "recall", query="quagga")["missing"] == ""
    notebook.rename(notebook.parent / "elsewhere")
    record = dispatch.call(brain, dispatch.find_command("recall"), {"query": "quagga"}, "owner")
    assert [hit.path for hit in record.notebook] == ["lists/a.md"]
    first = render(record).partition("\n")[0]
    assert first.startswith(f"From the index alone. The notebook's folder {notebook} is missing.")
    assert "quaid collection remove notebook" in first


def test_both_ways_out_of_a_missing_notebook_work(brain: Brain, notebook: Path) -> None:
    notebook.rename(notebook.parent / "elsewhere")
    run(brain, "collection remove", name="notebook", yes=True)
    made = run(brain, "notebook init", path="elsewhere")
    assert (made["created"], made["root"]) == (True, str(notebook.parent / "elsewhere"))


def test_line_behind_the_last_is_reported(brain: Brain, notebook: Path) -> None:
    (notebook / "lists/a.md").write_text("one\ntwo\n")
    (notebook / "lists/empty.md").write_text("")
    assert run(brain, "notebook read", path="lists/a.md", start_line=2)["text"] == "two\n"
    with pytest.raises(InvalidArgument, match=r"lists/a\.md has no line 3; its last line is 2"):
        run(brain, "notebook read", path="lists/a.md", start_line=3)
    assert run(brain, "notebook read", path="lists/empty.md")["text"] == ""
    with pytest.raises(InvalidArgument, match="it is empty"):
        run(brain, "notebook read", path="lists/empty.md", start_line=2)


def test_a_file_is_read_in_part_with_its_version(brain: Brain, notebook: Path) -> None:
    (notebook / "lists/a.md").write_bytes("one\ntwo\x85still two\nthree".encode())
    read = run(brain, "notebook read", path="lists/a.md", start_line=2, lines=1)
    assert read["text"] == "two\x85still two\n"
    assert (read["start_line"], read["end_line"], read["total_lines"], read["version"]) == (2, 2, 3, 1)
    (notebook / "lists/a.md").write_text("other\n")
    assert run(brain, "notebook read", path="lists/a.md")["version"] == 2
    with pytest.raises(NotFound, match="notebook list"):
        run(brain, "notebook read", path="lists/b.md")
    assert [file["path"] for file in run(brain, "notebook list")["files"]] == ["lists/a.md"]


def test_text_is_added_to_a_file_or_a_section(brain: Brain, notebook: Path) -> None:
    run(brain, "notebook write", path="lists/a.md", content="# Books\n")
    run(brain, "notebook write", path="lists/a.md", content="- Dune", section="## Later")
    result = run(brain, "notebook write", path="lists/a.md", content="- Emma\n", section="later")
    assert (result["line"], result["version"], result["created"]) == (5, 3, False)
    assert (notebook / "lists/a.md").read_text() == "# Books\n\n## Later\n- Dune\n- Emma\n"


def test_replacing_a_file_needs_its_version(brain: Brain, notebook: Path) -> None:
    run(brain, "notebook write", path="lists/a.md", content="## A\nold\n\n## B\nb\n")
    with pytest.raises(InvalidArgument, match="notebook_read"):
        run(brain, "notebook write", path="lists/a.md", content="new", section="A", replace=True)
    (notebook / "lists/a.md").write_text("## A\nby hand\n\n## B\nb\n")
    with pytest.raises(VersionConflict):
        run(
            brain,
            "notebook write",
            path="lists/a.md",
            content="new",
            section="A",
            replace=True,
            expected_version=1,
        )
    version = run(brain, "notebook read", path="lists/a.md")["version"]
    result = run(
        brain,
        "notebook write",
        path="lists/a.md",
        content="new",
        section="A",
        replace=True,
        expected_version=version,
    )
    assert (notebook / "lists/a.md").read_text() == "## A\nnew\n\n## B\nb\n"
    whole = run(
        brain,
        "notebook write",
        path="lists/a.md",
        content="all\n",
        replace=True,
        expected_version=result["version"],
    )
    assert (notebook / "lists/a.md").read_text() == "all\n"
    assert whole["version"] == result["version"] + 1


@pytest.mark.parametrize(
    "path", ["../x.md", "/x.md", ".git/x.md", "a/.x.md", "x.txt", "", "lists/../../x.md"]
)
def test_no_path_leads_out(brain: Brain, notebook: Path, path: str) -> None:
    for command, more in (("notebook read", {}), ("notebook write", {"content": "x"})):
        with pytest.raises(QuaidError):
            run(brain, command, path=path, **more)


def test_wrong_writes_say_what_is_wrong(brain: Brain, notebook: Path) -> None:
    with pytest.raises(InvalidArgument, match="nothing to add"):
        run(brain, "notebook write", path="lists/a.md", content=" \n")
    with pytest.raises(InvalidArgument, match="section"):
        run(brain, "notebook write", path="lists/a.md", content="x", section="##")


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    root = tmp_path / "agent"
    for path, text in {
        "runtime/standing-orders.md": "Never ping.\n",
        "runtime/external-communications.md": "Ask first.\n",
        "brain/memory/core/contacts.md": "## Ann\n",
        "brain/memory/core/identity.md": "I am Nina.\n",
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def test_an_older_layout_comes_over_and_nothing_is_overwritten(
    brain: Brain, notebook: Path, agent: Path
) -> None:
    (notebook / "reference/contacts.md").write_text("## Bob\n")
    (agent / "runtime/link.md").symlink_to(agent / "brain/memory/core/identity.md")
    planned = dispatch.call(
        brain, dispatch.find_command("notebook migrate"), {"path": str(agent), "dry_run": True}, "owner"
    )
    assert [(move.source, move.path, move.outcome) for move in planned.moves] == [
        ("runtime/link.md", "", "link"),
        ("runtime/external-communications.md", "reference/external-communications.md", "copied"),
        ("runtime/standing-orders.md", "reference/standing-orders.md", "copied"),
        ("brain/memory/core/identity.md", "", "stays"),
        ("brain/memory/core/contacts.md", "reference/contacts.md", "differs"),
    ]
    output = render(planned)
    assert "identity.md" in output
    assert "a symbolic link" in output
    assert not (notebook / "reference/standing-orders.md").exists()
    done = dispatch.call(brain, dispatch.find_command("notebook migrate"), {"path": str(agent)}, "owner")
    assert done.exit_status == 1
    assert (notebook / "reference/standing-orders.md").read_text() == "Never ping.\n"
    assert (notebook / "reference/contacts.md").read_text() == "## Bob\n"
    assert not (notebook / "reference/identity.md").exists()
    again = run(brain, "notebook migrate", path=str(agent))
    assert [move["outcome"] for move in again["moves"]] == ["link", "same", "same", "stays", "differs"]


def test_folder_of_no_known_agent_is_reported(brain: Brain, notebook: Path, tmp_path: Path) -> None:
    assert run(brain, "notebook migrate", path=str(tmp_path))["moves"] == []
    with pytest.raises(FileTrouble):
        run(brain, "notebook migrate", path=str(tmp_path / "missing"))
