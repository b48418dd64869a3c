"""One look at the whole set-up, and the next step as a command."""

import json
import os
from pathlib import Path

import apsw
import pytest

from quaid.brain import Brain
from quaid.config import Settings
from quaid.ops import gate, index
from quaid.ops.doctor import DoctorRecord, Finding, doctor
from quaid.surfaces.cli import main


@pytest.fixture
def home(brain: Brain) -> Brain:
    os.makedirs(brain.settings.home, mode=0o700)
    os.chmod(brain.settings.home, 0o700)
    return brain


def found(record: DoctorRecord, name: str) -> Finding:
    return next(each for each in record.checks if each.name == name)


def test_a_new_memory_is_well_and_the_next_steps_are_commands(home: Brain) -> None:
    record = doctor(home)
    assert record.exit_status == 0
    assert not [each for each in record.checks if each.state == "wrong"]
    assert "quaid notebook init" in record.next_steps
    assert "quaid import FOLDER" in record.next_steps
    assert found(record, "self-test").state == "fine"
    assert found(record, "rows").state == "fine"
    for step in record.next_steps:
        words = step.removeprefix("quaid ").replace("ai-kb", "kb").split()
        assert any(" ".join(words[:count]) in index.COMMANDS for count in (1, 2, 3)), step


def test_without_a_memory_the_first_step_is_to_make_one(settings: Settings) -> None:
    with Brain(settings) as brain:
        record = doctor(brain)
    assert record.exit_status == 1
    assert record.next_steps[0] == "quaid init"
    assert not os.path.exists(settings.db_path)


def test_what_is_no_memory_is_told(settings: Settings) -> None:
    Path(settings.db_path).write_text("a letter")
    with Brain(settings) as brain:
        record = doctor(brain)
    assert found(record, "memory").state == "wrong"
    assert Path(settings.db_path).read_text() == "a letter"


def test_a_newer_memory_is_told_and_left_alone(home: Brain) -> None:
    path = home.settings.db_path
    home.close()
    connection = apsw.Connection(path)
    connection.pragma("journal_mode", "DELETE")
    connection.pragma("user_version", 99)
    connection.close()
    before = Path(path).read_bytes()
    record = doctor(home)
    assert found(record, "memory").remedy == "quaid upgrade"
    assert Path(path).read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of Unix")
def test_a_memory_that_others_can_read_is_told(home: Brain) -> None:
    os.chmod(home.settings.db_path, 0o644)
    record = doctor(home, quick=True)
    assert found(record, "permissions").state == "wrong"
    assert f"chmod 600 {home.settings.db_path}" in record.next_steps
    assert record.exit_status == 1


def test_damaged_rows_are_told(home: Brain) -> None:
    call(home, "put", slug="people/ada", content="# Ada\n\nWrote the first program.")
    connection = apsw.Connection(home.settings.db_path)
    connection.execute("DELETE FROM chunk_fts_docsize")
    connection.close()
    record = doctor(home)
    assert found(record, "rows").state == "wrong"
    assert "quaid validate" in record.next_steps
    assert not [each for each in doctor(home, quick=True).checks if each.name == "rows"]


def test_a_folder_that_is_gone_is_told(home: Brain, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "one.md").write_text("# One\n")
    call(home, "collection add", name="notes", path="notes")
    assert found(doctor(home, quick=True), "folder notes").state == "fine"
    folder.rename(tmp_path / "elsewhere")
    gone = found(doctor(home, quick=True), "folder notes")
    assert (gone.state, gone.remedy) == ("wrong", "quaid collection info notes")


def test_a_backup_counts_until_it_is_old(home: Brain) -> None:
    assert found(doctor(home, quick=True), "backup").state == "advice"
    copy = os.path.join(home.settings.home, "copy.db")
    call(home, "backup", file=copy)
    now = 1_777_118_400
    os.utime(copy, (now, now))
    assert found(doctor(home, quick=True), "backup").state == "fine"
    os.utime(copy, (now - 40 * 86_400,) * 2)
    old = found(doctor(home, quick=True), "backup")
    assert (old.state, old.remedy[:13]) == ("advice", "quaid backup ")


def test_a_client_is_told_until_it_is_connected(home: Brain) -> None:
    (Path(home.settings.user_home) / ".claude").mkdir()
    before = next(each for each in doctor(home, quick=True).checks if "Claude Code" in each.detail)
    assert (before.state, before.remedy) == ("advice", "quaid connect claude-code")
    call(home, "connect", client="claude-code")
    after = next(each for each in doctor(home, quick=True).checks if "Claude Code" in each.detail)
    assert after.state == "fine"
    hooks = Path(home.settings.user_home) / ".claude" / "settings.json"
    told = json.loads(hooks.read_text())
    told["hooks"].popitem()
    hooks.write_text(json.dumps(told))
    broken = next(each for each in doctor(home, quick=True).checks if "Claude Code" in each.detail)
    assert (broken.state, broken.remedy) == ("wrong", "quaid connect claude-code")
    hooks.write_text("{ this is no JSON")
    assert next(each for each in doctor(home, quick=True).checks if "Claude" in each.detail).state == "wrong"


def test_doctor_changes_nothing(home: Brain) -> None:
    call(home, "put", slug="people/ada", content="# Ada\n\nWrote the first program.")
    before = rows(home)
    doctor(home)
    assert rows(home) == before


def test_the_exit_status_and_the_text_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("QUAID_DB", raising=False)
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "--quick"]) == 1
    assert "  quaid init\n" in capsys.readouterr().out
    assert main(["init"]) == 0
    capsys.readouterr()
    assert main(["doctor", "--quick", "--json"]) == 0
    assert {each["state"] for each in json.loads(capsys.readouterr().out)["checks"]} == {"fine", "advice"}


def call(brain: Brain, command: str, **given: object) -> object:
    return gate.call(brain, gate.command(command), given, "owner")


def rows(brain: Brain) -> list[object]:
    tables = [name for (name,) in brain.db.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return [(name, brain.db.rows(f'SELECT * FROM "{name}"')) for name in tables]
