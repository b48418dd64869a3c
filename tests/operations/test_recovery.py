"""A memory that was deleted comes back with the next question, from the folders that it had attached."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests import commands

from quaid import config
from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import DamagedDatabase, MissingDatabase, NotFound
from quaid.operations import dispatch
from quaid.storage import checks, collections, pages
from quaid.storage.collections import Collections

SRC = str(Path(__file__).resolve().parents[2] / "src")


def call(brain: Brain, command: str, **given: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), given, "owner")


def quaid(home: Path, *words: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    environ = {**os.environ, "PYTHONPATH": SRC, "HOME": str(home), "QUAID_BACKGROUND_EMBEDDING": "off"}
    environ.pop("QUAID_DB", None)
    command = [commands.program(), *words]
    return subprocess.run(
        command, input=text, capture_output=True, text=True, env=environ, cwd=home, timeout=120
    )


@pytest.fixture
def lived_in(brain: Brain, tmp_path: Path) -> Brain:
    """A memory with a notebook, a folder, a read-only folder and a page that no file holds."""
    for name in ("notes", "wiki"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one.md").write_text(f"# One of {name}\n\nA pod is a group of containers.\n")
    call(brain, "notebook init")
    call(brain, "remember", content="Sarah prefers email")
    call(brain, "collection add", name="notes", path="notes")
    call(brain, "collection add", name="wiki", path="wiki", read_only=True)
    call(brain, "collection target", name="notes")
    call(brain, "put", slug="default::only", content="# Only here")
    return brain


def delete(brain: Brain) -> None:
    brain.close()
    for ending in ("", "-wal", "-shm"):
        Path(brain.settings.db_path + ending).unlink(missing_ok=True)


def attached(brain: Brain) -> list[tuple[Any, ...]]:
    return [
        (item.name, item.kind, item.root, item.writable, item.is_write_target)
        for item in Collections(brain.db).all()
    ]


@pytest.mark.parametrize("question", ["recall", "query"])
def test_the_next_question_rebuilds_a_deleted_memory(lived_in: Brain, question: str) -> None:
    before, id_ = attached(lived_in), collections.read_memory_id(lived_in.db)
    files = [address for address in pages.page_addresses(lived_in.db) if address[0] != "default"]
    messages: list[str] = []
    lived_in.notice = messages.append
    delete(lived_in)
    if question == "recall":
        assert "email" in str(call(lived_in, "recall", query="sarah"))
    else:
        assert {result.slug for result in call(lived_in, "query", question="what is a pod?").results} == {
            "one"
        }
    assert attached(lived_in) == before
    assert collections.read_memory_id(lived_in.db) == id_
    assert pages.page_addresses(lived_in.db) == files
    assert checks.validate(lived_in.db) == []
    assert len(messages) == 1
    assert "1 page of notebook, 1 page of notes, 1 page of wiki" in messages[0]
    assert "that no file holds are not in it" in messages[0]
    left = {name for name in os.listdir(os.path.dirname(lived_in.db.path)) if name.startswith("memory.db")}
    assert left <= {"memory.db", "memory.db-wal", "memory.db-shm", "memory.db-lock"}


def test_a_folder_that_is_not_there_stays_attached_and_is_named(lived_in: Brain, tmp_path: Path) -> None:
    messages: list[str] = []
    lived_in.notice = messages.append
    before = attached(lived_in)
    delete(lived_in)
    (tmp_path / "wiki").rename(tmp_path / "elsewhere")
    call(lived_in, "query", question="pod")
    assert f"Not rebuilt: wiki ({tmp_path}/wiki is not there)." in messages[0]
    assert attached(lived_in) == before
    (tmp_path / "elsewhere").rename(tmp_path / "wiki")
    call(lived_in, "collection sync", name="wiki")
    assert pages.find(lived_in.db, "one", "wiki") is not None


def test_the_backup_of_the_deleted_memory_is_named(lived_in: Brain, tmp_path: Path) -> None:
    call(lived_in, "backup", file="copy.db")
    with Brain(lived_in.settings._replace(db_path=str(tmp_path / "work.db"))) as other:
        other.create(other.settings.db_path)  # younger, and another memory
    messages: list[str] = []
    lived_in.notice = messages.append
    delete(lived_in)
    call(lived_in, "query", question="pod")
    assert f"the backup {tmp_path}/copy.db has those of its day" in messages[0]


def test_a_log_that_was_left_behind_is_kept_and_not_played_in(lived_in: Brain) -> None:
    path = Path(lived_in.settings.db_path)
    lived_in.close()
    path.unlink()
    Path(f"{path}-wal").write_bytes(b"what is left of it")
    messages: list[str] = []
    lived_in.notice = messages.append
    call(lived_in, "query", question="pod")
    assert messages[0].endswith(f"the log that it left is {path}-wal-of-deleted")
    assert Path(f"{path}-wal-of-deleted").read_bytes() == b"what is left of it"
    assert checks.validate(lived_in.db) == []


def test_a_process_that_has_the_deleted_file_open_rebuilds_it_too(lived_in: Brain) -> None:
    assert lived_in.db.writable
    os.unlink(lived_in.settings.db_path)
    call(lived_in, "query", question="pod")
    assert os.path.exists(lived_in.settings.db_path)
    assert pages.find(lived_in.db, "one", "notes") is not None


def test_other_commands_and_readers_make_nothing(lived_in: Brain) -> None:
    delete(lived_in)
    with pytest.raises(MissingDatabase, match="the next `quaid query` or `quaid recall` rebuilds it"):
        call(lived_in, "list")
    with pytest.raises(MissingDatabase):
        dispatch.call(lived_in, dispatch.find_command("query"), {"question": "pod"}, "read")
    assert not os.path.exists(lived_in.settings.db_path)


def test_without_folders_nothing_is_made(brain: Brain) -> None:
    call(brain, "put", slug="a", content="# A")
    call(brain, "query", question="a")
    delete(brain)
    with pytest.raises(MissingDatabase, match="`quaid init"):
        call(brain, "query", question="a")
    assert not os.path.exists(brain.settings.db_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"memory_id": "x", "folders": [{"name": "a"}]}', "\0" * 9])
def test_a_list_that_cannot_be_read_rebuilds_nothing(lived_in: Brain, text: str) -> None:
    delete(lived_in)
    Path(collections.folder_list_path(lived_in.settings.db_path)).write_text(text)
    with pytest.raises(MissingDatabase):
        call(lived_in, "query", question="pod")


def test_the_list_follows_the_collections(lived_in: Brain, tmp_path: Path) -> None:
    path = Path(collections.folder_list_path(lived_in.settings.db_path))
    assert path.stat().st_mode & 0o077 == 0
    assert [folder["name"] for folder in json.loads(path.read_text())["folders"]] == [
        "notebook",
        "notes",
        "wiki",
    ]
    call(lived_in, "collection remove", name="wiki", yes=True)
    call(lived_in, "collection restore", name="notes", target="moved")
    roots = [folder["root"] for folder in json.loads(path.read_text())["folders"]]
    assert roots == [str(tmp_path / "notebook"), str(tmp_path / "moved")]
    for name in ("notes", "notebook"):
        call(lived_in, "collection remove", name=name, yes=True)
    assert not path.exists()


def test_a_memory_from_before_there_were_lists_gets_one_with_its_next_question(lived_in: Brain) -> None:
    path = Path(collections.folder_list_path(lived_in.settings.db_path))
    path.unlink()
    call(lived_in, "recall", query="sarah")
    assert [folder["name"] for folder in json.loads(path.read_text())["folders"]] == [
        "notebook",
        "notes",
        "wiki",
    ]


def test_a_deleted_memory_of_this_folder_is_not_taken_for_the_one_at_home(tmp_path: Path) -> None:
    assert collections.folder_list_path(str(tmp_path / "memory.db")) == str(tmp_path / config.FOLDER_LIST)
    (tmp_path / config.FOLDER_LIST).write_text("{}")
    assert config.read_settings(None, {"HOME": "/nowhere"}, str(tmp_path)).db_path == str(
        tmp_path / "memory.db"
    )


def test_the_command_line_says_so_on_standard_error(tmp_path: Path) -> None:
    quaid(tmp_path, "init")
    quaid(tmp_path, "notebook", "init")
    quaid(tmp_path, "remember", "Sarah prefers email")
    for path in (tmp_path / ".quaid").glob("memory.db*"):
        path.unlink()
    done = quaid(tmp_path, "recall", "sarah", "--json")
    assert "email" in done.stdout
    assert json.loads(done.stdout)
    assert done.stderr.splitlines() == [
        f"quaid: {tmp_path}/.quaid/memory.db was deleted and is rebuilt from its folders: 1 page of notebook."
        " Pages, links, facts and conversations that no file holds are not in it."
    ]
    assert quaid(tmp_path, "recall", "sarah").stderr == ""


def test_a_new_memory_names_the_folders_of_the_deleted_one(tmp_path: Path) -> None:
    quaid(tmp_path, "init")
    quaid(tmp_path, "notebook", "init")
    (tmp_path / ".quaid" / "memory.db").unlink()
    done = quaid(tmp_path, "init")
    assert f"had attached notebook ({tmp_path}/.quaid/notebook)" in done.stdout
    assert not (tmp_path / ".quaid" / config.FOLDER_LIST).exists()


def test_two_questions_at_once_rebuild_it_once(lived_in: Brain, tmp_path: Path) -> None:
    delete(lived_in)
    command = [sys.executable, "-m", "quaid", "--db", lived_in.settings.db_path, "query", "pod", "--json"]
    environ = {**os.environ, "PYTHONPATH": SRC, "HOME": str(tmp_path), "QUAID_BACKGROUND_EMBEDDING": "off"}
    both = [
        subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [item.communicate(timeout=120) for item in both]
    assert [item.returncode for item in both] == [0, 0], outputs
    assert sum("was deleted and is rebuilt" in err for _, err in outputs) == 1
    slugs = [[result["slug"] for result in json.loads(out)["results"]] for out, _ in outputs]
    assert slugs[0]
    assert slugs[0] == slugs[1]


def test_a_rebuild_that_is_killed_leaves_no_half_memory(
    settings: Settings, brain: Brain, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    for number in range(600):
        (tmp_path / "notes" / f"{number}.md").write_text(
            f"# Note {number}\n\nA pod of {number} words.\n" * 20
        )
    call(brain, "collection add", name="notes", path="notes")
    delete(brain)
    environ = {**os.environ, "PYTHONPATH": SRC, "HOME": str(tmp_path), "QUAID_BACKGROUND_EMBEDDING": "off"}
    command = [sys.executable, "-m", "quaid", "--db", settings.db_path, "query", "pod"]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not os.path.exists(settings.db_path + "-unfinished") and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not os.path.exists(settings.db_path)
    call(brain, "query", question="pod")
    assert pages.count(brain.db) == 600
    assert not [name for name in os.listdir(tmp_path) if "unfinished" in name]


def test_backups_are_made_without_a_name_listed_and_verified(brain: Brain) -> None:
    call(brain, "put", slug="people/ada", content="# Ada\n\nA pilot.\n")
    assert call(brain, "backups list").value == ()
    made = call(brain, "backup")
    assert os.path.dirname(made.path) == os.path.realpath(brain.settings.backup_folders[-1])
    (listed,) = call(brain, "backups list").value
    assert (os.path.realpath(listed.path), listed.size) == (made.path, made.size)
    assert call(brain, "backups verify", file=made.path).pages == 1
    with open(made.path, "r+b") as file:
        file.seek(4096)
        file.write(os.urandom(8192))
    with pytest.raises(DamagedDatabase):
        call(brain, "backups verify", file=made.path)
    with pytest.raises(NotFound):
        call(brain, "backups verify", file="elsewhere.db")
