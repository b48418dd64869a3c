"""Transcripts on disk: read once, continued after growth, read again on request, without duplicates."""

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from quaid.app import Brain
from quaid.errors import NotFound, ReadingStopped
from quaid.folders import transcripts
from quaid.folders.transcripts import TranscriptReport
from quaid.formats import documents
from quaid.storage.conversations import Conversations

SECRET = "sk-ant-" + "api03-" + "a1B2" * 10


def line(text: str, number: int = 0, session: str = "s1", role: str = "user") -> str:
    """As Claude Code writes it."""
    return (
        json.dumps(
            {
                "type": role,
                "sessionId": session,
                "uuid": f"{session}-{number}-{text[:9]}",
                "timestamp": f"2026-04-25T12:00:{number % 60:02}Z",
                "message": {"role": role, "content": text},
            }
        )
        + "\n"
    )


def plain(text: str) -> str:
    return json.dumps({"role": "user", "content": text}) + "\n"


def read(brain: Brain, *paths: Path, again: bool = False) -> TranscriptReport:
    results = [transcript for path in paths for transcript in transcripts.find_transcripts(str(path))]
    named = {os.path.realpath(path) for path in paths if not path.is_dir()}
    return transcripts.read_transcripts(
        brain.db, results, named=named, now=brain.now(), progress=brain.progress, again=again
    )


def texts(brain: Brain) -> list[str]:
    return [
        text
        for (text,) in brain.db.rows("SELECT text FROM conversation_turns ORDER BY conversation_id, turn")
    ]


def sound(brain: Brain) -> bool:
    from quaid.storage import checks

    return checks.validate(brain.db) == []


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "s1.jsonl"


def test_a_file_is_read_once(brain: Brain, file: Path) -> None:
    file.write_text(line("one", 1) + line("two", 2))
    assert read(brain, file)[:6] == (1, 0, 0, 1, 0, 2)
    assert read(brain, file)[:6] == (1, 1, 0, 0, 0, 0)
    assert texts(brain) == ["one", "two"]
    assert sound(brain)


def test_a_file_that_grows_is_read_from_where_it_ended(brain: Brain, file: Path) -> None:
    file.write_text(line("one", 1))
    read(brain, file)
    with file.open("a") as more:
        more.write(line("two", 2))
    report = read(brain, file)
    assert (report.turns, report.conversations, report.grown) == (1, 0, 1)
    assert texts(brain) == ["one", "two"]


def test_a_half_written_line_waits_for_its_end(brain: Brain, file: Path) -> None:
    whole = line("two", 2)
    file.write_text(line("one", 1) + whole[:40])
    report = read(brain, file)
    assert (report.turns, report.broken) == (1, 0)
    with file.open("a") as more:
        more.write(whole[40:])
    report = read(brain, file)
    assert (report.turns, report.broken) == (1, 0)
    assert texts(brain) == ["one", "two"]


def test_a_last_line_without_an_end_is_read_when_it_is_whole(brain: Brain, file: Path) -> None:
    file.write_text(line("one", 1).rstrip("\n"))
    assert read(brain, file).turns == 1
    with file.open("a") as more:
        more.write("\n" + line("two", 2))
    assert read(brain, file).turns == 1
    assert texts(brain) == ["one", "two"]


def test_a_broken_line_is_counted_and_skipped(brain: Brain, file: Path) -> None:
    file.write_bytes(line("one", 1).encode() + b"{broken\n\xff\xfe\n[1]\n\n" + line("two", 2).encode())
    report = read(brain, file)
    assert (report.turns, report.broken) == (2, 3)
    assert brain.db.rows("SELECT broken_lines FROM transcript_files") == [(3,)]


def test_a_truncated_file_is_read_again_without_duplicates(brain: Brain, file: Path) -> None:
    file.write_text("".join(line(f"turn {number}", number) for number in range(5)))
    read(brain, file)
    file.write_text(line("turn 0", 0) + line("turn 9", 9))
    assert read(brain, file).turns == 1
    assert texts(brain) == [f"turn {number}" for number in (0, 1, 2, 3, 4, 9)]
    assert sound(brain)


def test_a_file_replaced_by_a_longer_one_is_read_from_its_start(brain: Brain, file: Path) -> None:
    file.write_text(line("one", 1))
    read(brain, file)
    other = file.with_name("other")
    other.write_text(line("zero", 0) + line("one", 1) + line("two", 2))
    os.replace(other, file)
    assert read(brain, file).turns == 2
    assert sorted(texts(brain)) == ["one", "two", "zero"]


def test_a_file_that_was_renamed_is_the_same_file(brain: Brain, tmp_path: Path) -> None:
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    old.write_text(plain("yes") + plain("no"))
    read(brain, old)
    old.rename(new)
    with new.open("a") as more:
        more.write(plain("yes"))
    assert read(brain, new).turns == 1
    assert Conversations(brain.db).latest(0)[1:] == (1, 3)
    assert brain.db.rows("SELECT path FROM transcript_files") == [(os.path.realpath(new),)]


def test_equal_messages_are_two_turns(brain: Brain, tmp_path: Path) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text(plain("yes") * 2)
    assert read(brain, file).turns == 2
    with file.open("a") as more:
        more.write(plain("yes"))
    assert read(brain, file).turns == 1
    assert read(brain, file, again=True).turns == 0
    file.write_text(plain("yes") * 2)  # shorter now
    assert read(brain, file).turns == 0
    assert texts(brain) == ["yes"] * 3


def test_a_copy_of_a_session_adds_nothing(brain: Brain, tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(line("one", 1))
    assert read(brain, tmp_path).turns == 1
    assert Conversations(brain.db).latest(0)[1:] == (1, 1)


def test_two_plain_files_of_the_same_name_are_two_conversations(brain: Brain, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "chat.jsonl").write_text(plain("hello"))
    assert read(brain, tmp_path).conversations == 2


def test_codex_fork_is_a_separate_conversation(brain: Brain, tmp_path: Path) -> None:
    def meta(name: str) -> str:
        return json.dumps({"type": "session_meta", "payload": {"id": name, "cwd": "/p"}}) + "\n"

    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
    output = (
        json.dumps({"type": "response_item", "timestamp": "2026-04-25T12:00:00Z", "payload": item}) + "\n"
    )
    file = tmp_path / "rollout-1.jsonl"
    file.write_text(meta("fork") + meta("parent") + output)
    read(brain, file)
    with file.open("a") as more:
        more.write(output.replace("hello", "again"))
    read(brain, file)
    (held,), *_ = Conversations(brain.db).latest(10, client="codex")
    assert (held.session, held.project, held.turns, held.title) == ("fork", "/p", 2, "hello")


def test_a_summary_above_the_first_line_is_the_title(brain: Brain, tmp_path: Path) -> None:
    file = tmp_path / "other-name.jsonl"
    file.write_text('{"type":"summary","summary":"Choosing a database","leafUuid":"x"}\n' + line("one", 1))
    read(brain, file)
    (held,), *_ = Conversations(brain.db).latest(10)
    assert (held.session, held.title) == ("s1", "Choosing a database")


def test_a_secret_is_nowhere_in_the_memory(brain: Brain, file: Path) -> None:
    title = json.dumps({"type": "custom-title", "customTitle": f"key {SECRET}", "sessionId": "s1"}) + "\n"
    file.write_text(line(f"my key is {SECRET}, keep it", 1) + title)
    report = read(brain, file)
    assert report.masked == 1
    assert texts(brain) == ["my key is [masked: anthropic key], keep it"]
    brain.close()
    for name in os.listdir(os.path.dirname(brain.settings.db_path)):
        path = os.path.join(os.path.dirname(brain.settings.db_path), name)
        if os.path.isfile(path) and path != str(file):
            assert SECRET[14:40].encode() not in Path(path).read_bytes()


def test_a_line_without_end_is_not_held_in_memory(
    brain: Brain, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quaid.folders.transcripts.MAX_LINE_BYTES", 1000)
    file.write_text(line("one", 1) + line("x" * 5000, 2) + line("three", 3))
    report = read(brain, file)
    assert (report.turns, report.broken) == (2, 1)
    with file.open("a") as more:
        more.write(line("y" * 5000, 4)[:-1])  # its end is missing
    assert read(brain, file).broken == 0
    with file.open("a") as more:
        more.write("\n" + line("five", 5))
    report = read(brain, file)
    assert (report.turns, report.broken) == (1, 1)


def test_a_run_that_was_stopped_goes_on_where_it_was(
    brain: Brain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "TURNS_PER_TRANSACTION", 10)
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text("".join(line(f"t{n}", n, name) for n in range(25)))

    def stop(done: int, _total: int, _what: str) -> None:
        if done:
            raise KeyboardInterrupt

    paths = transcripts.find_transcripts(str(tmp_path))
    with pytest.raises(ReadingStopped) as stopped:
        transcripts.read_transcripts(brain.db, paths, named=set(), now=brain.now(), progress=stop)
    assert "1 of 2 files" in str(stopped.value)
    report = read(brain, tmp_path)
    assert (report.unchanged, report.turns) == (1, 25)
    assert len(texts(brain)) == 50


def test_a_crash_between_two_batches_loses_and_doubles_nothing(
    brain: Brain, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "TURNS_PER_TRANSACTION", 10)
    file.write_text("".join(plain(f"turn {number % 7}") for number in range(35)))
    write, writes = brain.db.write, []

    def failing(work: Any) -> Any:
        writes.append(1)
        if len(writes) == 3:
            raise MemoryError
        return write(work)

    monkeypatch.setattr(brain.db, "write", failing)
    with pytest.raises(MemoryError):
        read(brain, file)
    assert len(texts(brain)) == 20
    monkeypatch.setattr(brain.db, "write", write)
    assert read(brain, file).turns == 15
    assert texts(brain) == [f"turn {number % 7}" for number in range(35)]


def test_a_removed_conversation_stays_out_until_it_is_wanted_again(brain: Brain, file: Path) -> None:
    file.write_text(line("one", 1))
    read(brain, file)
    (held,), *_ = Conversations(brain.db).latest(10)
    brain.db.write(lambda tx: held.remove(tx, brain.now()))
    with file.open("a") as more:
        more.write(line("two", 2))
    report = read(brain, file)
    assert (report.turns, report.removed) == (0, 1)
    assert texts(brain) == []
    assert read(brain, file, again=True).turns == 2
    assert sound(brain)


# Files that are not transcripts


def test_only_possible_transcripts_are_opened(brain: Brain, tmp_path: Path) -> None:
    (tmp_path / "a" / ".hidden").mkdir(parents=True)
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "x.jsonl").write_text(line("hidden"))
    (tmp_path / "a" / ".hidden" / "x.jsonl").write_text(line("found", 1))
    (tmp_path / "data.jsonl").write_text('{"question": "a"}\n')
    (tmp_path / "notes.md").write_text("notes")
    os.symlink(tmp_path / "data.jsonl", tmp_path / "link.jsonl")
    report = read(brain, tmp_path)
    assert (report.files, report.other, report.turns, report.problems) == (2, 1, 1, ())
    assert read(brain, tmp_path).other == 1


def test_named_file_that_is_not_a_transcript_is_reported(brain: Brain, tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text('{"question": "a"}\n')
    for _ in range(2):
        report = read(brain, tmp_path / "data.jsonl")
        assert [problem.problem for problem in report.problems] == [transcripts.NOT_A_TRANSCRIPT]
        assert report.exit_status == 1


def test_path_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        transcripts.find_transcripts(str(tmp_path / "nowhere"))


def test_a_pipe_is_not_waited_for(brain: Brain, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jsonl")
    assert read(brain, tmp_path / "a.jsonl").problems[0].problem == "is not a file"


# Exports


def export(count: int) -> list[dict[str, Any]]:
    return [
        {
            "uuid": f"c{number}",
            "name": f"Talk {number}",
            "chat_messages": [
                {
                    "uuid": f"m{number}",
                    "sender": "human",
                    "created_at": "2026-04-25T12:00:00Z",
                    "text": f"hello {number}",
                }
            ],
        }
        for number in range(count)
    ]


def archive(path: Path, text: str, name: str = "conversations.json") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("user.json", "{}")
        packed.writestr(name, text)
    return path


def test_a_newer_archive_adds_only_new_turns(brain: Brain, tmp_path: Path) -> None:
    assert read(brain, archive(tmp_path / "a.zip", json.dumps(export(3)))).conversations == 3
    assert read(brain, archive(tmp_path / "b.zip", json.dumps(export(5), indent=2))).turns == 2
    assert read(brain, tmp_path / "b.zip").unchanged == 1
    assert Conversations(brain.db).latest(0, client="claude.ai")[1:] == (5, 5)


def test_an_unpacked_export_is_read_too(brain: Brain, tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(json.dumps([*export(2), {"other": 1}]))
    report = read(brain, tmp_path)
    assert (report.turns, report.broken) == (2, 1)


def test_a_bomb_is_refused(brain: Brain, tmp_path: Path) -> None:
    path = archive(tmp_path / "bomb.zip", "[" + " " * (documents.RATIO_CHECK_BYTES + 1) + "]")
    assert "refused" in read(brain, path).problems[0].problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [("{}", "not a list"), ('[{"uuid": "c', "in the middle"), ("", "not a list")],
)
def test_broken_export_is_reported(brain: Brain, tmp_path: Path, text: str, problem: str) -> None:
    path = archive(tmp_path / "a.zip", text)
    for _ in range(2):
        assert problem in read(brain, path).problems[0].problem


def test_damaged_archive_is_reported(brain: Brain, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", json.dumps(export(3)))
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    assert "damaged" in read(brain, path).problems[0].problem


def test_another_archive_in_a_folder_is_passed_by(brain: Brain, tmp_path: Path) -> None:
    archive(tmp_path / "photos.zip", "x", "photo.jpg")
    report = read(brain, tmp_path)
    assert (report.other, report.problems) == (1, ())
    assert "holds no conversations.json" in read(brain, tmp_path / "photos.zip").problems[0].problem
