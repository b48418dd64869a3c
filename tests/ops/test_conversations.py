"""The operations on conversations, as callers see them."""

import json
from pathlib import Path
from typing import Any

import pytest

from quaid.brain import Brain
from quaid.errors import InvalidArgument, NotAllowed, NotFound
from quaid.ops import gate
from quaid.ops.upkeep import config_set


def call(brain: Brain, command: str, scope: Any = "owner", **arguments: Any) -> Any:
    return gate.call(brain, gate.command(f"conversations {command}"), arguments, scope)


def transcript(path: Path, session: str, *texts: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        for number, text in enumerate(texts):
            line = {"role": "user", "content": text, "timestamp": 1_777_118_400 + number, "session": session}
            file.write(json.dumps(line) + "\n")
    return path


@pytest.fixture
def talks(brain: Brain, tmp_path: Path) -> Brain:
    transcript(tmp_path / "chats" / "a.jsonl", "abc-1", *[f"turn number {at}" for at in range(1, 31)])
    transcript(tmp_path / "chats" / "b.jsonl", "abd-2", "something else", "x" * 5000)
    call(brain, "add", paths=["chats"])
    return brain


def test_several_paths_are_read_at_once_and_a_file_once(brain: Brain, tmp_path: Path) -> None:
    transcript(tmp_path / "chats" / "a.jsonl", "a", "one")
    transcript(tmp_path / "b.jsonl", "b", "two")
    record = call(brain, "add", paths=["chats", "chats/a.jsonl", str(tmp_path / "b.jsonl")])
    assert (record.report.files, record.report.turns, record.total, record.exit_status) == (2, 2, 2, 0)


def test_a_path_that_is_not_there_is_told(brain: Brain) -> None:
    with pytest.raises(NotFound):
        call(brain, "add", paths=["nowhere"])


def test_a_sync_reads_what_was_added_and_the_configured_folders(talks: Brain, tmp_path: Path) -> None:
    transcript(tmp_path / "chats" / "a.jsonl", "abc-1", "one more")
    transcript(tmp_path / "other" / "c.jsonl", "c", "a new one")
    config_set(talks, "conversation_folders", f"{tmp_path / 'other'}:{tmp_path / 'gone'}")
    record = call(talks, "sync")
    assert (record.report.turns, record.report.unchanged) == (2, 1)
    assert [each.path for each in record.report.problems] == [str(tmp_path / "gone")]
    assert record.exit_status == 1


def test_a_sync_of_nothing_says_what_to_do(brain: Brain) -> None:
    with pytest.raises(NotFound, match="conversation_folders"):
        call(brain, "sync")


def test_a_folder_in_the_settings_is_a_whole_path(brain: Brain) -> None:
    for value in ("chats", "~/ok:chats"):
        with pytest.raises(InvalidArgument, match="not a whole path"):
            config_set(brain, "conversation_folders", value)


def test_the_latest_are_listed_first(talks: Brain) -> None:
    record = call(talks, "list", "read")
    assert [(each.session, each.turns) for each in record.conversations] == [("abc-1", 30), ("abd-2", 2)]
    assert (record.total, record.turns) == (2, 32)
    assert call(talks, "list", client="codex").total == 0


def test_a_search_is_a_tool_for_readers(talks: Brain) -> None:
    record = gate.call(talks, gate.tool("conversation_search"), {"query": "something else"}, "read")
    assert (record.hits[0].session, record.hits[0].turn, record.conversations) == ("abd-2", 1, 2)
    assert call(talks, "search", query="turn", max_results=3).hits[2:] != ()


def test_the_turns_around_one_are_shown(talks: Brain) -> None:
    def turns(**arguments: Any) -> list[int]:
        return [each.turn for each in call(talks, "show", session="abc", **arguments).turns]

    assert turns() == list(range(1, 21))
    assert turns(around=15, limit=5) == [13, 14, 15, 16, 17]
    assert turns(around=1, limit=5) == [1, 2, 3, 4, 5]
    assert turns(around=30, limit=5) == [26, 27, 28, 29, 30]
    with pytest.raises(NotFound, match="30"):
        turns(around=31)


def test_long_turns_are_cut_unless_all_is_wanted(talks: Brain) -> None:
    assert call(talks, "show", session="abd").turns[1].left_out == 3000
    assert len(call(talks, "show", session="abd", full=True).turns[1].text) == 5000


def test_a_name_must_mean_one_conversation(talks: Brain) -> None:
    with pytest.raises(InvalidArgument, match="plain:abd-2"):
        call(talks, "show", session="ab")
    for name in ("x", "codex:abc", ""):
        with pytest.raises((NotFound, InvalidArgument)):
            call(talks, "show", session=name)
    assert call(talks, "show", session="plain:abc").conversation.session == "abc-1"


def test_removing_is_asked_about_and_stays_done(talks: Brain) -> None:
    asked = call(talks, "remove", session="abc")
    assert (asked.done, asked.if_agreed) == (False, {"yes": True})
    assert call(talks, "remove", session="abc", dry_run=True).if_agreed == {}
    assert call(talks, "remove", session="abc", yes=True).done
    assert call(talks, "search", query="turn number").hits == ()
    call(talks, "add", paths=["chats"])
    assert call(talks, "list").total == 1
    assert call(talks, "add", paths=["chats"], again=True).report.turns == 30


@pytest.mark.parametrize("command", ["add", "sync", "remove"])
def test_an_agent_neither_reads_files_nor_removes(talks: Brain, command: str) -> None:
    given: dict[str, dict[str, Any]] = {"add": {"paths": ["chats"]}, "sync": {}, "remove": {"session": "abc"}}
    with pytest.raises(NotAllowed):
        call(talks, command, "write", **given[command])
