"""The operations on conversations, as callers see them."""

import json
from pathlib import Path
from typing import Any

import pytest

from quaid import config
from quaid.app import Brain
from quaid.cli.render import render
from quaid.errors import InvalidArgument, NotAllowed, NotFound
from quaid.operations import conversations, dispatch
from quaid.operations.conversations import SessionTurn
from quaid.operations.maintenance import config_set


def call(brain: Brain, command: str, scope: Any = "owner", **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(f"conversations {command}"), arguments, scope)


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


def test_path_that_is_not_there_is_reported(brain: Brain) -> None:
    with pytest.raises(NotFound):
        call(brain, "add", paths=["nowhere"])


def test_a_sync_reads_what_was_added_and_the_configured_folders(talks: Brain, tmp_path: Path) -> None:
    transcript(tmp_path / "chats" / "a.jsonl", "abc-1", "one more")
    transcript(tmp_path / "other" / "c.jsonl", "c", "a new one")
    config_set(talks, "conversation_folders", f"{tmp_path / 'other'}:{tmp_path / 'gone'}")
    record = call(talks, "sync")
    assert (record.report.turns, record.report.unchanged) == (2, 1)
    assert [problem.path for problem in record.report.problems] == [str(tmp_path / "gone")]
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
    assert [(conversation.session, conversation.turns) for conversation in record.conversations] == [
        ("abc-1", 30),
        ("abd-2", 2),
    ]
    assert (record.total, record.turns) == (2, 32)
    assert call(talks, "list", client="codex").total == 0


def test_a_search_is_a_tool_for_readers(talks: Brain) -> None:
    record = dispatch.call(
        talks, dispatch.find_tool("conversation_search"), {"query": "something else"}, "read"
    )
    assert (record.hits[0].session, record.hits[0].turn, record.conversations) == ("abd-2", 1, 2)
    assert call(talks, "search", query="turn", max_results=3).hits[2:] != ()


def test_the_turns_around_one_are_shown(talks: Brain) -> None:
    def turns(**arguments: Any) -> list[int]:
        return [turn.turn for turn in call(talks, "show", session="abc", **arguments).turns]

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
    fields: dict[str, dict[str, Any]] = {
        "add": {"paths": ["chats"]},
        "sync": {},
        "remove": {"session": "abc"},
    }
    with pytest.raises(NotAllowed):
        call(talks, command, "write", **fields[command])


# By meaning


CANARY = "Zanzibar-Kohlrabi-4711"


@pytest.fixture
def said(brain: Brain, tmp_path: Path) -> Brain:
    transcript(
        *(
            tmp_path / "chats" / "a.jsonl",
            "a",
            f"The boat to the island is called {CANARY} and leaves at nine.",
        ),
        *("Put the key of the shed under the third flower pot.", "yes"),
    )
    transcript(
        *(tmp_path / "chats" / "b.jsonl", "b", "Flour, water, salt and a long night make good bread."),
        "Put the key of the shed under the third flower pot.",
    )
    call(brain, "add", paths=["chats"])

    return brain


@pytest.fixture
def meant(said: Brain) -> Brain:
    """The same two conversations with vectors of the real model."""
    embed(said)
    return said


def embed(brain: Brain, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command("embed"), arguments, "owner")


def status(brain: Brain) -> Any:
    return dispatch.call(brain, dispatch.find_command("status"), {}, "read")


def test_embedding_makes_vectors_of_turns_and_says_how_many(said: Brain) -> None:
    assert status(said).conversations[:3] == (5, 4, "recent")
    embedded = embed(said)
    assert (embedded.turns, embedded.turns_left, embedded.total) == (4, 0, 0)
    assert status(said).conversations[:3] == (5, 0, "recent")
    assert status(said).next_steps == ("`quaid put SLUG FILE` or `quaid import FOLDER` adds pages",)


def test_a_search_by_meaning_finds_what_has_none_of_its_words(meant: Brain) -> None:
    record = call(meant, "search", query="recipe for baking a loaf")
    assert (record.semantic, record.note) == (True, "")
    assert (record.hits[0].session, record.hits[0].turn, record.hits[0].lanes) == ("b", 1, ("meaning",))


def test_a_question_finds_pages_and_turns_each_by_its_own_text(meant: Brain) -> None:
    dispatch.call(
        meant,
        dispatch.find_command("put"),
        {"slug": "notes/tax", "content": "# Tax\n\nIt is due in May."},
        "owner",
    )
    embed(meant)
    answer = dispatch.call(
        meant, dispatch.find_command("query"), {"question": "recipe for baking a loaf"}, "read"
    )
    first = answer.results[0]
    assert (first.origin, first.session, first.turn) == ("conversation", "plain:b", 1)
    assert all(result.strength == "none" for result in answer.results if result.origin == "page")
    assert all("due" not in hit.snippet for hit in call(meant, "search", query="when is the tax due").hits)


def test_missing_vectors_are_reported(meant: Brain, tmp_path: Path) -> None:
    transcript(tmp_path / "chats" / "a.jsonl", "a", "The heating was repaired by somebody from Bremen.")
    call(meant, "sync")
    assert status(meant).conversations.missing == 1
    assert status(meant).next_steps[1:] == ("`quaid embed` makes vectors for 1 turn of conversations",)
    record = call(meant, "search", query="baking a loaf")
    assert record.note.startswith("3 of 4 texts have vectors")


def test_a_search_says_why_it_goes_by_words_only(meant: Brain) -> None:
    config_set(meant, "embed_conversations", "off")
    record = call(meant, "search", query="bread")
    assert (record.semantic, record.note) == (False, "embed_conversations is off")
    assert [hit.session for hit in record.hits] == ["b"]
    assert status(meant).conversations[:3] == (5, 0, "off")
    with pytest.raises(InvalidArgument):
        config_set(meant, "embed_conversations", "sometimes")


def test_old_conversations_wait_until_all_are_wanted(brain: Brain, tmp_path: Path) -> None:
    line = {"role": "user", "content": "It was a mild winter in those days.", "timestamp": 1_500_000_000}
    (tmp_path / "old.jsonl").write_text(json.dumps({**line, "session": "old"}) + "\n")
    call(brain, "add", paths=["old.jsonl"])
    assert status(brain).conversations[:3] == (1, 0, "recent")
    assert embed(brain).turns == 0
    assert embed(brain, all=True).turns == 1
    config_set(brain, "embed_conversations", "on")
    assert status(brain).conversations[:3] == (1, 0, "on")


def test_a_removed_conversation_leaves_no_byte_and_no_vector(meant: Brain, tmp_path: Path) -> None:
    db = meant.db
    own = "SELECT DISTINCT hex(content_hash) FROM turn_parts WHERE turn_id <= 2"
    hashes = [bytes.fromhex(row) for (row,) in db.rows(own)]
    rows = db.rows("SELECT content_hash, vector FROM turn_vectors")
    vectors: dict[bytes, bytes] = dict(rows)
    shared = [row for (row,) in db.rows("SELECT content_hash FROM turn_parts WHERE turn_id > 3")]
    assert sum(item in shared for item in hashes) == 1
    assert call(meant, "search", query="what is the ship called?").hits[0].session == "a"
    record = call(meant, "remove", session="a", yes=True)
    assert (record.done, record.problem) == (True, "")
    held = b"".join(path.read_bytes() for path in tmp_path.glob("memory.db*"))
    for word in (CANARY, "Kohlrabi", CANARY.lower(), "kohlrabi", "zanzibar"):
        assert word.encode() not in held
    for element in hashes:
        assert (element in held) == (element in shared)
        assert (vectors[element] in held) == (element in shared)
    assert db.rows("SELECT count(*) FROM turn_parts WHERE turn_id <= 3") == [(0,)]
    assert all(hit.session == "b" for hit in call(meant, "search", query="what is the ship called?").hits)
    assert dispatch.call(meant, dispatch.find_command("validate"), {}, "owner").violations == ()


def test_compacting_drops_vectors_of_turns_that_are_gone(meant: Brain) -> None:
    meant.db.write(lambda tx: tx.execute("DELETE FROM conversation_turns WHERE turn = 1"))
    assert dispatch.call(meant, dispatch.find_command("compact"), {}, "owner").vectors_dropped == 2
    assert meant.db.rows("SELECT count(*) FROM turn_vectors") == [(1,)]


# Folders of the config file


def test_a_config_file_names_folders_and_goes_before_the_memory(talks: Brain, tmp_path: Path) -> None:
    transcript(tmp_path / "one" / "c.jsonl", "c", "a new one")
    transcript(tmp_path / "two" / "d.jsonl", "d", "another one")
    transcript(tmp_path / "three" / "e.jsonl", "e", "one more")
    config_set(talks, "conversation_folders", str(tmp_path / "three"))
    (tmp_path / "config.yaml").write_text(
        f"conversationFolders:\n  - {tmp_path / 'one'}\n  - {tmp_path / 'two'}\nembed_conversations: off\n"
    )
    talks.settings = config.read_settings(str(tmp_path / "memory.db"), {}, str(tmp_path))
    assert talks.settings.warnings == ()
    assert call(talks, "sync").report.turns == 2
    assert {conversation.session for conversation in call(talks, "list").conversations} == {
        "abc-1",
        "abd-2",
        "c",
        "d",
    }
    assert status(talks).conversations.embedding == "off"


@pytest.mark.parametrize("said", ["[one, two]", "one;two", "one:two", "[./one, ../here/two]"])
def test_folders_in_a_config_file_are_relative_to_it(brain: Brain, tmp_path: Path, said: str) -> None:
    here = tmp_path / "here"
    transcript(here / "one" / "c.jsonl", "c", "a new one")
    transcript(here / "two" / "d.jsonl", "d", "another one")
    (here / "config.yaml").write_text(f"conversationFolders: {said}\n")
    settings = config.read_settings(brain.settings.db_path, {}, str(tmp_path), str(here / "config.yaml"))
    assert settings.warnings == ()
    brain.settings = settings
    assert call(brain, "sync").report.turns == 2


def test_a_folder_of_the_environment_is_a_whole_path(talks: Brain) -> None:
    talks.settings = talks.settings._replace(environ={"QUAID_CONVERSATION_FOLDERS": "chats"})
    with pytest.raises(InvalidArgument, match="not a whole path"):
        call(talks, "sync")


# Folders that were added, and files that were renamed


def test_a_folder_that_was_added_is_looked_into_by_every_sync(talks: Brain, tmp_path: Path) -> None:
    assert talks.option("conversation_folders") == str(tmp_path / "chats")
    transcript(tmp_path / "chats" / "below" / "c.jsonl", "c", "a new one")
    report = call(talks, "sync").report
    assert (report.conversations, report.turns, report.unchanged) == (1, 1, 2)
    again = call(talks, "add", paths=["chats", "chats/below"])
    assert (again.watched, again.unwatched) == ((), "")
    assert talks.option("conversation_folders") == str(tmp_path / "chats")
    transcript(tmp_path / "more" / "d.jsonl", "d", "one more")
    added = call(talks, "add", paths=[str(tmp_path / "more"), "chats/a.jsonl"])
    assert added.watched == (str(tmp_path / "more"),)
    assert f"reads {tmp_path / 'more'} from now on" in render(added)
    assert talks.option("conversation_folders") == f"{tmp_path / 'chats'}:{tmp_path / 'more'}"


def test_a_folder_is_not_added_over_the_head_of_a_config_file(brain: Brain, tmp_path: Path) -> None:
    transcript(tmp_path / "chats" / "a.jsonl", "a", "one")
    brain.settings = brain.settings._replace(
        options={"conversation_folders": "other"}, config_path=str(tmp_path / "config.yaml")
    )
    added = call(brain, "add", paths=["chats"])
    assert added.watched == ()
    assert added.unwatched == (
        f"{tmp_path / 'chats'} is not synced: conversation_folders is set by {tmp_path / 'config.yaml'};"
        " add the folder there"
    )
    assert added.unwatched in render(added)


def test_folder_whose_name_cannot_be_written_down_is_reported(brain: Brain, tmp_path: Path) -> None:
    transcript(tmp_path / "ab:cd" / "a.jsonl", "a", "one")
    assert "its name contains : or ;" in call(brain, "add", paths=["ab:cd"]).unwatched
    assert brain.option("conversation_folders") == ""


@pytest.mark.parametrize("new", ["z.jsonl", "../aside/z.jsonl"])
def test_a_renamed_transcript_is_followed(talks: Brain, tmp_path: Path, new: str) -> None:
    (tmp_path / "aside").mkdir()
    config_set(talks, "conversation_folders", str(tmp_path / "aside"))  # no longer the folder that was added
    (tmp_path / "chats" / "a.jsonl").rename(tmp_path / "chats" / new)
    report = call(talks, "sync").report
    assert (report.files, report.turns, report.other, report.gone) == (2, 0, 0, 0)
    transcript(tmp_path / "chats" / new, "abc-1", "one more")
    report = call(talks, "sync").report
    assert (report.turns, report.grown, report.conversations) == (1, 1, 0)


def test_a_renamed_export_is_followed(brain: Brain, tmp_path: Path) -> None:
    export = [
        {"uuid": "u1", "name": "T", "chat_messages": [{"uuid": "m", "sender": "human", "text": "Hello"}]}
    ]
    (tmp_path / "conversations.json").write_text(json.dumps(export))
    assert call(brain, "add", paths=["conversations.json"]).report.turns == 1
    (tmp_path / "conversations.json").rename(tmp_path / "conversations-1.json")
    for _ in range(2):
        report = call(brain, "sync").report
        assert (report.files, report.turns, report.gone, report.conversations) == (1, 0, 0, 0)


def test_another_file_with_the_number_of_a_deleted_one_is_not_it(talks: Brain, tmp_path: Path) -> None:
    config_set(talks, "conversation_folders", str(tmp_path / "aside"))
    (tmp_path / "aside").mkdir()
    old = tmp_path / "chats" / "a.jsonl"
    old.rename(tmp_path / "chats" / "new.jsonl")  # the number stays, and nothing else does
    (tmp_path / "chats" / "new.jsonl").write_text('{"role": "user", "content": "not yours"}\n')
    report = call(talks, "sync").report
    assert (report.gone, report.turns, report.files) == (1, 0, 2)
    assert "1 deleted since" in render(call(talks, "sync"))


def test_unknown_client_error_lists_the_known_ones(talks: Brain) -> None:
    assert call(talks, "list", client="plain").total == 2
    assert call(talks, "list", client="codex").total == 0
    with pytest.raises(NotFound, match=r"claude-code, codex, plain, chatgpt, claude\.ai"):
        call(talks, "list", client="nope")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"limit": 29}, "1 turn follows: --around 30"),
        ({"limit": 10}, "20 turns follow: --around 16"),
        ({"limit": 10, "around": 16}, "10 turns follow: --around 26"),
        ({"limit": 10, "around": 26}, None),
    ],
)
def test_the_turns_that_follow_are_shown_by_what_is_said(
    talks: Brain, arguments: dict[str, Any], told: str | None
) -> None:
    record = call(talks, "show", session="abc-1", **arguments)
    last = render(record).splitlines()[-1]
    assert last == told or (told is None and "--around" not in last)
    if told:
        middle = int(told.rpartition(" ")[2])
        after = call(talks, "show", session="abc-1", **{**arguments, "around": middle})
        assert after.turns[0].turn <= record.turns[-1].turn + 1 < after.turns[-1].turn + 1


def test_items_of_a_session_are_kept_popped_and_cleared(brain: Brain) -> None:
    place = ("openai-agents", "s")
    items = [{"role": "user", "content": "sardines"}, {"type": "function_call", "name": "memory_get"}]
    turns = [SessionTurn("user", "sardines", items[0]), SessionTurn("function_call", "memory_get", items[1])]
    conversations.add_session_turns(brain, *place, [*turns, SessionTurn("user", "words only")])
    assert conversations.session_items(brain, *place) == items
    assert conversations.session_items(brain, *place, limit=1) == items[1:]
    assert conversations.session_items(brain, "llama-index", "s") == []
    assert conversations.pop_session_item(brain, *place) == items[1]
    assert [turn.text for turn in call(brain, "show", session="s").turns] == ["sardines", "words only"]
    assert len(call(brain, "search", query="sardines").hits) == 1
    conversations.clear_session(brain, *place)
    assert conversations.session_items(brain, *place) == []
    assert conversations.pop_session_item(brain, *place) is None
    assert brain.db.one("SELECT count(*) FROM session_items") == (0,)
    conversations.add_session_turns(brain, *place, turns)
    assert conversations.session_items(brain, *place) == items
