"""What lines and exports of each client say."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from quaid.formats import transcripts
from quaid.formats.transcripts import (
    BrokenTranscript,
    TranscriptLine,
    TranscriptTurn,
    detect_client,
    iter_json_list,
    parse_line,
    parse_time,
    read_plain_line,
)

CLAUDE = {
    "type": "user",
    "sessionId": "s1",
    "cwd": "/p",
    "uuid": "u1",
    "timestamp": "2026-04-25T12:00:00.123Z",
    "message": {"role": "user", "content": "Why SQLite?"},
}


def claude(**changes: Any) -> TranscriptLine:
    return transcripts.read_claude_code_line({**CLAUDE, **changes})


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


# Who writes


@pytest.mark.parametrize(
    ("value", "client"),
    [
        (CLAUDE, "claude-code"),
        ({"type": "summary", "summary": "x", "leafUuid": "y"}, "claude-code"),
        ({"type": "file-history-snapshot", "sessionId": "s"}, "claude-code"),
        ({"type": "session_meta", "payload": {"id": "a"}}, "codex"),
        ({"type": "response_item", "payload": said("x")}, "codex"),
        ({"id": "a", "timestamp": "t", "instructions": None}, "codex"),
        (said("x"), "codex"),
        ({"role": "user", "content": "x"}, "plain"),
        ({"role": "user", "content": ["x"], "timestamp": 1}, "plain"),
        ({"question": "a", "answer": "b"}, None),
        ({"role": 7, "content": "x"}, None),
        ({}, None),
    ],
)
def test_a_client_is_known_by_its_lines(value: dict[str, Any], client: str | None) -> None:
    assert detect_client(value) == client


# Claude Code


def test_a_line_of_claude_code_is_a_turn() -> None:
    turn = TranscriptTurn("user", "Why SQLite?", "2026-04-25T12:00:00Z", "u1")
    assert claude() == TranscriptLine("s1", turn, project="/p")


def test_only_the_text_of_an_answer_is_kept() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hidden"},
        {"type": "text", "text": "One file."},
        {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}},
        {"type": "text", "text": "No server."},
    ]
    line = claude(type="assistant", message={"role": "assistant", "content": blocks})
    assert line.turn
    assert (line.turn.role, line.turn.text) == ("assistant", "One file.\n\nNo server.")


@pytest.mark.parametrize(
    "changes",
    [
        {"isSidechain": True},
        {"isMeta": True},
        {"isCompactSummary": True},
        {"type": "progress"},
        {"message": {"role": "user", "content": [{"type": "tool_result", "content": "output"}]}},
        {"message": {"role": "user", "content": "<command-name>/clear</command-name>"}},
        {"message": {"role": "user", "content": "<local-command-stdout>much</local-command-stdout>"}},
        {"message": {"role": "user", "content": "  "}},
        {"message": "text"},
        {"message": None},
    ],
)
def test_system_messages_are_not_turns(changes: dict[str, Any]) -> None:
    assert claude(**changes).turn is None


def test_notes_of_the_client_are_removed_from_messages_of_the_user() -> None:
    line = claude(message={"role": "user", "content": "Go on.<system-reminder>be\nnice</system-reminder>"})
    assert line.turn
    assert line.turn.text == "Go on."


def test_a_summary_is_a_title() -> None:
    assert transcripts.read_claude_code_line(
        {"type": "summary", "summary": "Choosing", "leafUuid": "x"}
    ) == TranscriptLine(title="Choosing")


# Codex


def test_codex_names_its_session_first_and_then_talks() -> None:
    meta = {"type": "session_meta", "timestamp": "t", "payload": {"id": "abc", "cwd": "/p"}}
    assert transcripts.read_codex_line(meta) == TranscriptLine("abc", project="/p")
    line = transcripts.read_codex_line(
        {"type": "response_item", "timestamp": "2026-04-25T12:00:00Z", "payload": said("Hello")}
    )
    assert line == TranscriptLine(turn=TranscriptTurn("user", "Hello", "2026-04-25T12:00:00Z"))


def test_codex_of_the_first_months_is_read_too() -> None:
    assert transcripts.read_codex_line({"id": "abc", "timestamp": "t", "instructions": None}).session == "abc"
    assert transcripts.read_codex_line(said("Hello")).turn == TranscriptTurn("user", "Hello")


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "x"}]},
        {"type": "function_call", "name": "shell", "arguments": "{}"},
        {"type": "function_call_output", "output": "x"},
        said("You are an agent", "developer"),
        said("<environment_context>\n<cwd>/p</cwd></environment_context>"),
        said("# AGENTS.md instructions for /p"),
    ],
)
def test_automatic_codex_messages_are_not_turns(payload: dict[str, Any]) -> None:
    assert transcripts.read_codex_line({"type": "response_item", "payload": payload}).turn is None


def test_an_event_of_codex_repeats_an_item_and_is_left_out() -> None:
    line = transcripts.read_codex_line(
        {"type": "event_msg", "payload": {"type": "user_message", "message": "Hello"}}
    )
    assert line == TranscriptLine()


# Plain lines


def test_a_plain_line_may_name_its_session() -> None:
    line = read_plain_line(
        {"role": "Human", "content": "Hi", "timestamp": 1_777_118_400, "session_id": "x", "id": "1"}
    )
    assert line == TranscriptLine("x", TranscriptTurn("user", "Hi", "2026-04-25T12:00:00Z", "1"))


@pytest.mark.parametrize("role", ["system", "tool", "developer", "", None, 3])
def test_only_people_and_agents_talk(role: Any) -> None:
    assert read_plain_line({"role": role, "content": "x"}).turn is None


def test_a_name_can_be_a_role() -> None:
    line = read_plain_line({"role": "Nina", "content": [{"text": "a"}, "b", {"type": "image"}, 7]})
    assert line.turn == TranscriptTurn("nina", "a\n\nb")


def test_text_that_cannot_be_stored_is_repaired() -> None:
    line = read_plain_line({"role": "user", "content": "a\0b \ud800 c"})
    assert line.turn
    assert line.turn.text == "ab ? c"


def test_an_endless_turn_is_cut() -> None:
    line = read_plain_line({"role": "user", "content": "x" * 1_000_000})
    assert line.turn
    assert len(line.turn.text) < transcripts.LONGEST_TURN + 20


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-04-25T12:00:00.5Z", "2026-04-25T12:00:00Z"),
        ("2026-04-25T14:00:00+02:00", "2026-04-25T12:00:00Z"),
        ("2026-04-25 12:00:00", "2026-04-25T12:00:00Z"),
        ("2026-04-25", "2026-04-25T00:00:00Z"),
        (1_777_118_400, "2026-04-25T12:00:00Z"),
        (1_777_118_400_123, "2026-04-25T12:00:00Z"),
        (1_777_118_400.7, "2026-04-25T12:00:00Z"),
        ("yesterday", ""),
        ("0001-01-01T00:00:00+09:00", ""),
        (-5, ""),
        (float("nan"), ""),
        (float("inf"), ""),
        (10**30, ""),
        (10**400, ""),
        (True, ""),
        (None, ""),
        ([], ""),
    ],
)
def test_times_are_read_in_many_forms(value: Any, expected: str) -> None:
    assert parse_time(value) == expected


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"7", b"\xff\xfe{}", b"[" * 100_000, b'{"a":' * 100_000])
def test_broken_line_is_reported(line: bytes) -> None:
    with pytest.raises(BrokenTranscript):
        parse_line(line)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)
KEYS = st.sampled_from(
    "type role content message payload sessionId timestamp uuid summary text mapping chat_messages id parts author"
    " current_node sender isMeta cwd title".split()
)
OBJECTS = st.dictionaries(KEYS, JSON | st.dictionaries(KEYS, JSON, max_size=5), max_size=8)


@given(OBJECTS)
def test_any_object_can_be_read(value: dict[str, Any]) -> None:
    for client in ("claude-code", "codex", "plain"):
        assert isinstance(transcripts.read_line(client, value), TranscriptLine)
    detect_client(value)
    transcripts.read_export(value)


# Exports


def node(name: str, parent: str | None, role: str, text: str, **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [text]}
    message = {
        "id": f"m-{name}",
        "author": {"role": role},
        "create_time": 1_777_118_400.5,
        "content": content,
    }
    return {"id": name, "parent": parent, "children": [], "message": {**message, **more}}


def chatgpt(*nodes: dict[str, Any], current: str) -> dict[str, Any]:
    mapping = {
        "root": {"id": "root", "message": None, "parent": None},
        **{node["id"]: node for node in nodes},
    }
    return {"title": "Databases", "conversation_id": "c1", "mapping": mapping, "current_node": current}


def test_chatgpt_export_uses_the_last_viewed_branch() -> None:
    held = transcripts.read_export(
        chatgpt(
            node("a", "root", "system", "Be nice."),
            node("b", "a", "user", "Which database?"),
            node("c", "b", "assistant", "MySQL."),
            node("d", "b", "assistant", "SQLite."),
            node("e", "d", "tool", "output"),
            node("f", "e", "assistant", "search()", recipient="browser"),
            node("g", "f", "user", "Thanks."),
            current="g",
        )
    )
    assert held is not None
    assert (held.client, held.session, held.title) == ("chatgpt", "c1", "Databases")
    assert [turn.text for turn in held.turns] == ["Which database?", "SQLite.", "Thanks."]
    assert held.turns[0] == TranscriptTurn("user", "Which database?", "2026-04-25T12:00:00Z", "m-b")


def test_a_tree_that_bites_its_tail_ends() -> None:
    held = transcripts.read_export(
        chatgpt(node("a", "b", "user", "A"), node("b", "a", "user", "B"), current="a")
    )
    assert held
    assert [turn.text for turn in held.turns] == ["B", "A"]


def test_an_export_of_claude_is_read() -> None:
    messages = [
        {"uuid": "1", "sender": "human", "created_at": "2026-04-25T12:00:00Z", "text": "Hi", "content": []},
        {"uuid": "2", "sender": "assistant", "text": "", "content": [{"type": "text", "text": "Hello"}]},
        "broken",
    ]
    held = transcripts.read_export({"uuid": "c", "name": "Greeting", "chat_messages": messages})
    assert held is not None
    assert (held.client, held.session, held.title) == ("claude.ai", "c", "Greeting")
    assert [(turn.role, turn.text) for turn in held.turns] == [("user", "Hi"), ("assistant", "Hello")]


@pytest.mark.parametrize(
    "value", [None, 7, "x", [], {}, {"mapping": []}, {"mapping": {}}, {"chat_messages": []}]
)
def test_other_files_are_not_conversations(value: Any) -> None:
    assert transcripts.read_export(value) is None


@given(
    st.lists(JSON.filter(lambda value: isinstance(value, dict | list | str)), max_size=6), st.integers(1, 40)
)
def test_a_list_comes_item_by_item_however_it_is_cut(values: list[Any], width: int) -> None:
    data = json.dumps(values, indent=1, ensure_ascii=False).encode("utf-8", "replace")
    pieces = [data[at : at + width] for at in range(0, len(data), width)]
    assert json.dumps(list(iter_json_list(pieces))) == json.dumps(values)


@pytest.mark.parametrize("text", ["", "{}", "[", '[{"a": 1}', '[{"a": 1}, {', "[}", "[" * 200_000])
def test_malformed_or_truncated_list_is_reported(text: str) -> None:
    with pytest.raises(BrokenTranscript):
        list(iter_json_list([text.encode()]))
