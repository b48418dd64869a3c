"""Hook events and transcripts, as the client documents them."""

import json
from typing import Any

import pytest

from quaid.cli import hook


def line(**values: Any) -> bytes:
    return json.dumps(values).encode() + b"\n"


def assistant(tokens: int, **more: Any) -> bytes:
    usage = {"input_tokens": 4, "cache_read_input_tokens": tokens - 10, "output_tokens": 6}
    return line(type="assistant", message={"role": "assistant", "usage": usage}, **more)


def test_an_event_is_read_and_odd_fields_are_nothing() -> None:
    event = hook.parse_event('{"session_id": "s", "cwd": 3, "source": "compact", "stop_hook_active": true}')
    assert (event.session, event.cwd, event.source, event.stopped_before) == ("s", "", "compact", True)
    for text in ("", "[]", "{", "3", "[" * 100_000):
        with pytest.raises(ValueError):  # noqa: PT011 (each says something else)
            hook.parse_event(text)


def test_the_last_answer_tells_how_full_the_context_is() -> None:
    data = assistant(1_000) + assistant(150_000) + assistant(20_000, isSidechain=True)
    tokens = hook.tokens_in_use(data, len(data))
    assert 150_000 <= tokens < 150_100
    data += line(type="user", message={"role": "user", "content": "x" * 5_000})
    assert 151_000 <= hook.tokens_in_use(data, len(data)) < 151_200


def test_a_compaction_empties_it() -> None:
    data = (
        assistant(190_000)
        + line(type="system", subtype="compact_boundary")
        + line(type="user", message="go on")
    )
    assert hook.tokens_in_use(data, len(data)) < 100


def test_without_figures_the_size_is_a_guess() -> None:
    data = line(role="user", content="x" * 1_000) * 10
    assert hook.tokens_in_use(data, len(data)) == len(data) // 5
    assert hook.tokens_in_use(data[-500:], 5_000_000) == 1_000_000
    assert hook.tokens_in_use(b"", 0) == 0
    assert hook.tokens_in_use(b'{"usage": \n{"message": {"usage": 3}}\n', 40) == 8


def test_more_than_fits_means_the_long_window() -> None:
    assert hook.context_window(150_000, 200_000) == 200_000
    assert hook.context_window(250_000, 200_000) == 1_000_000


def test_only_a_call_of_a_writing_tool_is_one() -> None:
    assert hook.calls_writing_tool(b'{"type":"tool_use","name":"mcp__quaid__remember","input":{}}')
    assert hook.calls_writing_tool(b'{"name": "mcp__my-quaid__daily_log"}')
    assert not hook.calls_writing_tool(b'{"name":"mcp__quaid__recall"}')
    assert not hook.calls_writing_tool(b'{"text":"call mcp__quaid__remember"}')
