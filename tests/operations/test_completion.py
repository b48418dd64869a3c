"""What a Tab finds in a memory, and that it leaves everything as it was."""

import os
import shutil
import time
from pathlib import Path
from typing import Any

import apsw
import pytest

from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import MissingDatabase
from quaid.operations import dispatch, shell
from quaid.storage import SCHEMA_VERSION
from quaid.storage.sqlite import connection as opening
from quaid.storage.sqlite.connection import Transaction


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def put(brain: Brain, slug: str, *tags: str) -> None:
    run(brain, "put", slug=slug, content=f"---\ntags: [{', '.join(tags)}]\n---\n# One\n")


@pytest.fixture
def filled(brain: Brain, tmp_path: Path) -> Settings:
    put(brain, "people/alice", "harbour", "größe")
    put(brain, "people/alan", "harp")
    put(brain, "projects/pier-ten", "harbour")
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "alan.md").write_text("---\ntags: [hidden]\n---\n# Alan\n")
    (folder / "alma.md").write_text("# Alma\n")
    run(brain, "collection add", name="notes", path=str(folder))
    run(brain, "put", slug="notes::alan", assertions=[{"predicate": "works_at", "object": "River AI"}])
    (folder / "alan.md").unlink()
    run(brain, "collection sync")
    run(brain, "notebook init", path=str(tmp_path / "notebook"))
    run(brain, "remember", content="call Alice", file="lists/my calls.md")
    run(brain, "token create", name="phone")
    return brain.settings


@pytest.mark.parametrize(
    ("kind", "start", "offered"),
    [
        ("slugs", "people/al", ["people/alan", "people/alice"]),
        ("slugs", "al", ["alma"]),
        ("slugs", "notes::", ["notes::alma"]),
        ("slugs", "nobody", []),
        ("quarantined", "", ["alan"]),
        ("quarantined", "notes::a", ["notes::alan"]),
        ("collections", "not", ["notes", "notebook"]),
        ("wings", "p", ["people", "projects"]),
        ("wings", "pr", ["projects"]),
        ("tags", "har", ["harbour", "harp"]),
        ("tags", "gr", ["größe"]),
        ("tags", "hid", []),
        ("models", "bge", ["bge-small-en-v1.5"]),
        ("notes", "lists/", ["lists/my calls.md"]),
        ("sessions", "", []),
        ("skills", "cur", ["curate"]),
        ("tokens", "ph", ["phone"]),
        ("nodes", "", []),
    ],
)
def test_names_that_begin_so_are_offered(filled: Settings, kind: str, start: str, offered: list[str]) -> None:
    assert shell.complete_names(filled, kind, start) == offered


def test_of_many_pages_the_folders_are_offered_first(brain: Brain) -> None:
    for number in range(shell.MAX_SLUGS):
        put(brain, f"people/p{number:04}", f"t{number:04}", "all")
    assert len(shell.complete_names(brain.settings, "slugs", "")) == shell.MAX_SLUGS
    put(brain, "people/old/agnes")
    put(brain, "people/old/anton")
    put(brain, "readme")
    assert shell.complete_names(brain.settings, "slugs", "") == ["people/", "readme"]
    within = shell.complete_names(brain.settings, "slugs", "people/")
    assert (len(within), within[:2]) == (shell.MAX_SLUGS + 1, ["people/old/", "people/p0000"])
    assert shell.complete_names(brain.settings, "slugs", "default::r") == ["default::readme"]
    assert shell.complete_names(brain.settings, "slugs", "default::") == [
        "default::people/",
        "default::readme",
    ]
    assert shell.complete_names(brain.settings, "tags", "a") == ["all"]
    assert len(shell.complete_names(brain.settings, "tags", "t")) == shell.MAX_SLUGS
    assert shell.complete_names(brain.settings, "wings", "p") == ["people"]


def test_incomplete_list_is_omitted(brain: Brain, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell would take what the first ones have in common for the beginning of all."""
    for slug in ("anna", "annika", "bob"):
        put(brain, slug, slug)
    monkeypatch.setattr(shell, "MAX_SLUGS", 2)
    monkeypatch.setattr(shell, "MAX_NAMES", 2)
    for kind in ("slugs", "tags"):
        assert shell.complete_names(brain.settings, kind, "") == []
        assert shell.complete_names(brain.settings, kind, "an") == ["anna", "annika"]


def test_a_tab_changes_no_byte_and_makes_no_file(brain: Brain, filled: Settings, tmp_path: Path) -> None:
    """Nor a log or a lock: those of a memory that lies there, closed."""
    brain.db.close()
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copy(filled.db_path, copy / "memory.db")
    before = (copy / "memory.db").read_bytes()
    settings = filled._replace(db_path=str(copy / "memory.db"))
    offered = {kind: shell.complete_names(settings, kind, "") for kind in shell.COMPLETION_KINDS}
    assert all(offered[kind] for kind in ("slugs", "wings", "notes"))
    assert os.listdir(copy) == ["memory.db"]
    assert (copy / "memory.db").read_bytes() == before


def test_a_tab_makes_no_memory(tmp_path: Path, settings: Settings) -> None:
    with pytest.raises(MissingDatabase):
        shell.complete_names(settings, "slugs", "")
    assert list(tmp_path.iterdir()) == []


def test_a_memory_of_another_schema_is_left_alone(brain: Brain, filled: Settings) -> None:
    brain.db.close()
    connection = apsw.Connection(filled.db_path)
    connection.pragma("user_version", SCHEMA_VERSION - 1)
    connection.close()
    assert shell.complete_names(filled, "slugs", "") == []
    assert opening.read_header(filled.db_path).version == SCHEMA_VERSION - 1


def test_completion_does_not_wait_for_a_writer(brain: Brain, filled: Settings) -> None:
    def work(tx: Transaction) -> float:
        tx.execute("UPDATE pages SET title = 'Two'")
        begun = time.monotonic()
        assert "people/alice" in shell.complete_names(filled, "slugs", "people/")
        return time.monotonic() - begun

    assert brain.db.write(work) < 4  # the patience of other readers is five seconds
