"""One look at the whole set-up, and the next step as a command."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest

from quaid.app import Brain
from quaid.cli.main import format_record, main
from quaid.config import Settings
from quaid.operations import dispatch, index
from quaid.operations.doctor import DoctorFinding, DoctorRecord, doctor
from quaid.storage import pages
from quaid.storage.checks import rebuild_derived_rows


@pytest.fixture
def home(brain: Brain) -> Brain:
    os.makedirs(brain.settings.home, mode=0o700)
    os.chmod(brain.settings.home, 0o700)
    return brain


def found(record: DoctorRecord, name: str) -> DoctorFinding:
    return next(check for check in record.checks if check.name == name)


def test_a_new_memory_is_well_and_the_next_steps_are_commands(home: Brain) -> None:
    record = doctor(home)
    assert record.exit_status == 0
    assert not [check for check in record.checks if check.state == "wrong"]
    assert "quaid notebook init" in record.next_steps
    assert "quaid import FOLDER" in record.next_steps
    assert found(record, "self-test").state == "fine"
    assert found(record, "rows").state == "fine"
    for step in record.next_steps:
        words = step.removeprefix("quaid ").replace("ai-kb", "kb").split()
        assert any(" ".join(words[:count]) in index.COMMANDS for count in (1, 2, 3)), step


ABSENT = re.compile(r"\bnot (?:installed|used|needed)\b|\bnone\b|^0 |cannot be known")


def test_missing_parts_are_not_reported_as_ok(home: Brain) -> None:
    checks = doctor(home, quick=True).checks
    assert [check for check in checks if check.state == "fine" and ABSENT.search(check.detail)] == []
    assert found(doctor(home, quick=True), "service").state == "missing"
    lines = format_record(doctor(home, quick=True), False, False).splitlines()
    assert [line for line in lines if "not installed" in line] == ["--  service         not installed"]


def test_optional_parts_of_a_knowledge_base_are_reported_as_missing(home: Brain) -> None:
    call(home, "kb init")
    record = call(home, "kb doctor")
    states = {check.name: (check.well, check.missing) for check in record.value}
    assert states["remote"] == states["timer"] == states["adapter"] == (True, True)
    assert states["tree"] == (True, False)
    lines = format_record(record, False, False).splitlines()
    assert [
        line for line in lines if line.startswith("ok") and re.search("not installed|none[;.]", line)
    ] == []
    assert record.exit_status == 0


def test_without_a_memory_the_first_step_is_to_make_one(settings: Settings) -> None:
    with Brain(settings) as brain:
        record = doctor(brain)
    assert record.exit_status == 1
    assert (
        record.next_steps[0] == f"quaid init {settings.db_path}"
    )  # without a file here it would be another one
    assert not os.path.exists(settings.db_path)


def test_steps_are_for_the_memory_that_was_looked_at(home: Brain, tmp_path: Path) -> None:
    elsewhere = home.settings._replace(cwd=str(tmp_path / "elsewhere"))
    with Brain(elsewhere) as brain:
        record = doctor(brain, quick=True)
    assert f"quaid --db {home.settings.db_path} notebook init" in record.next_steps
    assert not [step for step in record.next_steps if step.startswith("quaid ") and "--db" not in step]
    with Brain(elsewhere._replace(environ={"QUAID_DB": home.settings.db_path})) as brain:
        assert "quaid notebook init" in doctor(brain, quick=True).next_steps


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_a_memory_behind_a_link_is_as_well_as_any(home: Brain, tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(home.settings.db_path)
    with Brain(home.settings._replace(db_path=str(tmp_path / "link.db"))) as brain:
        record = doctor(brain)
    assert found(record, "memory").state == "fine"
    assert record.exit_status == 0


def test_file_that_is_not_a_memory_is_reported(settings: Settings) -> None:
    Path(settings.db_path).write_text("a letter")
    with Brain(settings) as brain:
        record = doctor(brain)
    assert found(record, "memory").state == "wrong"
    assert Path(settings.db_path).read_text() == "a letter"


def test_newer_memory_is_reported_and_left_alone(home: Brain) -> None:
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
def test_memory_that_others_can_read_is_reported(home: Brain) -> None:
    os.chmod(home.settings.db_path, 0o644)
    record = doctor(home, quick=True)
    assert found(record, "permissions").state == "wrong"
    assert f"chmod 600 {home.settings.db_path}" in record.next_steps
    assert not [step for step in record.next_steps if "-wal" in step]
    assert record.exit_status == 1


def test_damaged_rows_are_reported(home: Brain) -> None:
    call(home, "put", slug="people/ada", content="# Ada\n\nWrote the first program.")
    connection = apsw.Connection(home.settings.db_path)
    connection.execute("DELETE FROM chunk_fts_docsize")
    connection.close()
    record = doctor(home)
    assert found(record, "rows").state == "wrong"
    assert "quaid validate" in record.next_steps
    assert not [check for check in doctor(home, quick=True).checks if check.name == "rows"]


def test_folder_that_is_gone_is_reported(home: Brain, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "one.md").write_text("# One\n")
    call(home, "collection add", name="notes", path="notes")
    assert found(doctor(home, quick=True), "folder notes").state == "fine"
    folder.rename(tmp_path / "elsewhere")
    gone = found(doctor(home, quick=True), "folder notes")
    assert (gone.state, gone.remedy) == ("wrong", "quaid collection info notes")
    message = format_record(call(home, "collection info", name="notes"), False, False)
    assert "The folder does not exist. Restore it" in message
    assert "quaid collection remove notes" in message
    assert "quaid collection restore notes FOLDER" in message


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


def test_another_memory_in_the_folder_is_not_a_backup(home: Brain) -> None:
    with Brain(home.settings._replace(db_path=os.path.join(home.settings.home, "work.db"))) as other:
        other.create(other.settings.db_path)
        call(other, "put", slug="a", content="# A")
    assert found(doctor(home, quick=True), "backup").state == "advice"
    call(home, "backup", file=os.path.join(home.settings.home, "copy.db"))
    assert "copy.db" in found(doctor(home, quick=True), "backup").detail


def test_client_is_reported_until_it_is_connected(home: Brain) -> None:
    (Path(home.settings.user_home) / ".claude").mkdir()
    before = next(check for check in doctor(home, quick=True).checks if "Claude Code" in check.detail)
    assert (before.state, before.remedy) == ("advice", "quaid connect claude-code")
    call(home, "connect", client="claude-code")
    after = next(check for check in doctor(home, quick=True).checks if "Claude Code" in check.detail)
    assert after.state == "fine"
    hooks = Path(home.settings.user_home) / ".claude" / "settings.json"
    payload = json.loads(hooks.read_text())
    payload["hooks"].popitem()
    hooks.write_text(json.dumps(payload))
    broken = next(check for check in doctor(home, quick=True).checks if "Claude Code" in check.detail)
    assert (broken.state, broken.remedy) == ("wrong", "quaid connect claude-code")
    hooks.write_text("{ this is no JSON")
    assert (
        next(check for check in doctor(home, quick=True).checks if "Claude" in check.detail).state == "wrong"
    )


def test_damaged_memory_is_reported_in_one_line_with_the_backup_that_is_whole(home: Brain) -> None:
    fill(home)
    copy = os.path.join(home.settings.home, "copy.db")
    call(home, "backup", file=copy)
    hurt(home, 3)
    record = doctor(home)
    damage = found(record, "damage")
    assert (damage.state, "btree" in damage.detail.lower(), "\n" in damage.detail) == ("wrong", False, False)
    assert "faults" in damage.detail
    assert len(damage.details) >= 3
    assert any("btreeInitPage" in line for line in damage.details)
    assert copy in found(record, "backup").detail
    assert "60 pages" in found(record, "backup").detail
    path = home.settings.db_path
    assert record.next_steps[:5] == (
        f"quaid --db {path} export --dir {path}-salvaged",
        f"mkdir {path}-damaged",
        f"mv {path} {path}-damaged",
        f"cp {copy} {path}",
        f"quaid --db {path} doctor",
    )
    assert not [step for step in record.next_steps if "quaid backup" in step or "quaid embed" in step]


def run(home: Brain, steps: tuple[str, ...]) -> None:
    for step in steps:
        words = shlex.split(step)
        command = [sys.executable, "-m", *words] if words[0] == "quaid" else words
        done = subprocess.run(command, env={**os.environ, "HOME": home.settings.cwd}, capture_output=True)
        assert done.returncode == 0 or words[3] in ("export", "doctor"), (step, done.stderr)


def test_the_steps_out_of_damage_lead_to_a_memory_that_is_well(home: Brain) -> None:
    fill(home)
    call(home, "backup", file=os.path.join(home.settings.home, "copy.db"))
    hurt(home, 3)
    steps = doctor(home).next_steps[:5]
    home.close()
    run(home, steps)
    assert found(doctor(home), "rows").state == "fine"
    assert len(list(Path(home.settings.db_path + "-salvaged").rglob("note-*.md"))) >= 50


def test_a_copy_that_is_in_use_is_not_offered(home: Brain) -> None:
    fill(home)
    copy = os.path.join(home.settings.home, "copy.db")
    call(home, "backup", file=copy)
    hurt(home, 3)
    with Brain(home.settings._replace(db_path=copy)) as other:
        call(other, "put", slug="notes/late", content="# Late\n\nOnly in the log.")
        assert not [step for step in doctor(home).next_steps if copy in step]


def test_without_a_whole_backup_what_still_reads_is_saved(home: Brain) -> None:
    fill(home)
    Path(home.settings.home, "copy.db").write_bytes(Path(home.settings.db_path).read_bytes()[:50_000])
    with Brain(home.settings._replace(db_path=os.path.join(home.settings.home, "work.db"))) as other:
        other.create(other.settings.db_path)
        fill(other)
    hurt(home, 3)
    record = doctor(home)
    path = home.settings.db_path
    assert found(record, "backup").state == "wrong"
    assert "old versions, gaps and conversations are not" in found(record, "backup").detail
    assert record.next_steps[:5] == (
        f"quaid --db {path} export --dir {path}-salvaged",
        f"mkdir {path}-damaged",
        f"mv {path} {path}-damaged",
        f"quaid init {path}",
        f"quaid --db {path} import {path}-salvaged",
    )


def test_the_steps_without_a_backup_bring_collections_back(home: Brain, tmp_path: Path) -> None:
    fill(home)
    for name in ("notes", "wiki"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one.md").write_text(f"# One of {name}\n")
        call(home, "collection add", name=name, path=name, read_only=name == "wiki")
    call(home, "collection remove", name="notes", keep_pages=True)
    hurt(home, 3)
    steps = doctor(home).next_steps[:8]
    path = home.settings.db_path
    assert steps == (
        f"quaid --db {path} export --collection default --dir {path}-salvaged",
        f"quaid --db {path} export --collection notes --dir {path}-salvaged-notes",
        f"mkdir {path}-damaged",
        f"mv {path} {tmp_path}/folders-of-memory.db.json {path}-damaged",
        f"quaid init {path}",
        f"quaid --db {path} import {path}-salvaged",
        f"quaid --db {path} collection add notes {path}-salvaged-notes",
        f"quaid --db {path} collection add wiki {tmp_path}/wiki --read-only",
    )
    home.close()
    run(home, steps)
    addresses = [f"{name}::{slug}" for name, _, slug in pages.page_addresses(home.db)]
    assert {"notes::one", "wiki::one"} < {*addresses}
    assert 52 <= len(addresses) <= 62
    assert found(doctor(home), "rows").state == "fine"


def test_a_memory_that_cannot_be_opened_gets_its_own_backup_and_not_another_memory(home: Brain) -> None:
    fill(home)
    copy = os.path.join(home.settings.home, "copy.db")
    call(home, "backup", file=copy)
    with Brain(home.settings._replace(db_path=os.path.join(home.settings.home, "work.db"))) as other:
        other.create(other.settings.db_path)  # younger than the backup
        fill(other)
    home.close()
    with open(home.settings.db_path, "r+b") as file:
        file.write(bytes(4096))
    record = doctor(home)
    assert found(record, "memory").state == "wrong"
    assert f"cp {copy} {home.settings.db_path}" in record.next_steps
    assert not [step for step in record.next_steps if "work.db" in step or " export " in step]


def test_on_windows_the_steps_are_those_of_its_shell(home: Brain) -> None:
    fill(home)
    copy = os.path.join(home.settings.home, "my copy.db")
    call(home, "backup", file=copy)
    hurt(home, 3)
    home.settings = home.settings._replace(platform="win32")
    path = home.settings.db_path
    steps = doctor(home).next_steps
    assert steps[1:4] == (f"mkdir {path}-damaged", f"move {path} {path}-damaged", f'copy "{copy}" {path}')


def test_folder_in_the_place_of_the_memory_is_reported(settings: Settings) -> None:
    os.mkdir(settings.db_path)
    inside = os.path.join(settings.db_path, "memory.db")
    with Brain(settings) as brain:
        record = doctor(brain)
        assert "is a folder" in found(record, "memory").detail
        path = settings.db_path
        assert record.next_steps[:2] == (f"mv {path} {path}-folder", f"quaid init {path}")
        Path(inside).touch()
        assert doctor(brain).next_steps[0] == f"quaid --db {inside} doctor"


def test_an_empty_file_is_moved_aside_and_a_memory_made(settings: Settings) -> None:
    Path(settings.db_path).touch()
    with Brain(settings) as brain:
        record = doctor(brain)
    assert "it is empty" in found(record, "memory").detail
    path = settings.db_path
    wanted = (f"mkdir {path}-damaged", f"mv {path} {path}-damaged", f"quaid init {path}")
    assert record.next_steps[:3] == wanted


def test_file_that_is_not_a_database_is_kept(settings: Settings) -> None:
    Path(settings.db_path).write_text("a letter")
    with Brain(settings) as brain:
        assert doctor(brain).next_steps[0] == "quaid --db FILE doctor"
    os.unlink(settings.db_path)
    apsw.Connection(settings.db_path).execute("CREATE TABLE recipes (name)")
    with Brain(settings) as brain:
        record = doctor(brain)
    assert "another program made it" in found(record, "memory").detail
    assert record.next_steps[0] == "quaid --db FILE doctor"


def test_words_that_do_not_fit_can_be_made_again(home: Brain) -> None:
    call(home, "put", slug="people/ada", content="# Ada\n\nWrote the first program.")
    connection = apsw.Connection(home.settings.db_path)
    connection.execute("DELETE FROM chunk_fts_docsize")
    connection.close()
    assert doctor(home).next_steps[:2] == ("quaid rebuild", "quaid validate")
    call(home, "rebuild")
    assert found(doctor(home), "rows").state == "fine"


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM page_fts_data WHERE id > 10",
        "DELETE FROM page_fts_data WHERE id = 10",
        "UPDATE page_fts_unspaced_data SET block = zeroblob(10) WHERE id > 10",
        "DELETE FROM page_fts_config",
        "DROP TABLE page_fts_idx",
        "DROP TABLE chunk_fts_data",
        "DROP TABLE chunk_fts_docsize",
        "DROP TABLE turn_fts_config",
        "DROP TABLE turn_fts",
        "DELETE FROM chunks WHERE id % 3 = 0",
        "DELETE FROM tags",
    ],
)
def test_damage_to_what_is_derived_throws_no_memory_away(home: Brain, damage: str) -> None:
    for number in range(4):
        text = f"# Note {number} 東京都\n\nSome words. #tag\n\n## More\n\nOther words.\n\n## Third\n\nLast.\n"
        call(home, "put", slug=f"notes/note-{number}", content=text)
    call(home, "backup", file=os.path.join(home.settings.home, "copy.db"))
    kept = home.db.rows("SELECT * FROM pages")
    home.close()
    connection = apsw.Connection(home.settings.db_path)
    connection.execute(damage)
    connection.close()
    record = doctor(home)
    assert found(record, "rows").state == "wrong"
    assert record.next_steps[:2] == ("quaid rebuild", "quaid validate")
    assert not [step for step in record.next_steps if step.startswith(("mv", "cp", "quaid init"))]
    home.db.write(rebuild_derived_rows)
    assert found(doctor(home), "rows").state == "fine"
    assert home.db.rows("SELECT * FROM pages") == kept
    assert len(call(home, "search", query="words").hits) == 4
    call(home, "put", slug="notes/new", content="# New\n\nSome words.")
    assert len(call(home, "search", query="words").hits) == 5


def test_broken_file_of_a_client_is_reported_with_its_line(home: Brain) -> None:
    folder = Path(home.settings.user_home) / ".claude"
    folder.mkdir()
    call(home, "connect", client="claude-code")
    (folder / "settings.json").write_text('{\n  "hooks": {,}\n}\n')
    record = doctor(home, quick=True)
    broken = next(check for check in record.checks if "Claude Code" in check.detail)
    assert (broken.state, "line 2" in broken.detail) == ("wrong", True)
    assert broken.remedy == f"edit line 2 of {folder / 'settings.json'}"
    assert broken.further == ("quaid connect claude-code",)


def test_a_broken_config_file_is_a_finding_and_the_round_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("QUAID_DB", raising=False)
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    file = tmp_path / ".quaid" / "config.yaml"
    file.write_text("search:\n  max_results: 5\n bad: [\n")
    capsys.readouterr()
    assert main(["doctor", "--quick", "--json"]) == 1
    captured = capsys.readouterr()
    record = json.loads(captured.out)
    config = next(check for check in record["checks"] if check["name"] == "config")
    assert (config["state"], "line 3" in config["detail"]) == ("wrong", True)
    assert record["next_steps"][0] == f"edit line 3 of {file}"
    assert "pages" in {check["name"] for check in record["checks"]}
    assert captured.err == ""
    assert main(["list"]) == 2
    capsys.readouterr()
    file.write_text("search:\n  max_resluts: 5\n")
    assert main(["doctor", "--quick"]) == 0
    captured = capsys.readouterr()
    assert "did you mean search.max_results?" in captured.out
    assert captured.err == ""
    assert main(["--config", "nowhere.yaml", "doctor", "--quick"]) == 1
    assert "name another file with --config" in capsys.readouterr().out


def test_doctor_changes_nothing(home: Brain) -> None:
    call(home, "put", slug="people/ada", content="# Ada\n\nWrote the first program.")
    before, files = rows(home), set(os.listdir(home.settings.home))
    doctor(home, quick=True)
    assert set(os.listdir(home.settings.home)) == files
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
    assert {check["state"] for check in json.loads(capsys.readouterr().out)["checks"]} == {
        "fine",
        "missing",
        "advice",
    }


def call(brain: Brain, command: str, **given: object) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), given, "owner")


def fill(brain: Brain) -> None:
    """Pages that take room in the file, each on a page of SQLite's own."""
    for number in range(60):
        call(brain, "put", slug=f"notes/note-{number}", content=f"# Note {number}\n\n{'Some words. ' * 300}")


def hurt(brain: Brain, pages: int) -> None:
    """Overwrite leaves of the index of words, which hold no page of the memory."""
    connection = brain.db.connection
    numbers = [
        number
        for (number,) in connection.execute(
            "SELECT pageno FROM dbstat WHERE name = 'chunk_fts_data' AND pagetype = 'leaf' ORDER BY pageno DESC"
        )
    ]
    size = connection.pragma("page_size")
    brain.close()
    with open(brain.settings.db_path, "r+b") as file:
        for number in numbers[:pages]:
            file.seek((number - 1) * size)
            file.write(b"\xff" * size)


def rows(brain: Brain) -> list[object]:
    tables = [name for (name,) in brain.db.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return [(name, brain.db.rows(f'SELECT * FROM "{name}"')) for name in tables]
