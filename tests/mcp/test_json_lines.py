"""Lines of JSON: what counts as their length, and what is known of one that is too long."""

import io
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from quaid.mcp import jsonrpc
from quaid.mcp.jsonrpc import MAX_LINE_BYTES, OversizedLine, decoded_size, read_lines

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4) | st.just("id"), inner),
    max_leaves=8,
)
MESSAGES = st.dictionaries(st.sampled_from(["id", "method", "params", "x"]), VALUES)


def seen(data: bytes, size: int) -> OversizedLine:
    line = OversizedLine(("id", "method"))
    for start in range(0, len(data), size):
        line.feed(data[start : start + size])
    return line


def scalars(message: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in message.items()
        if key in ("id", "method") and not isinstance(value, dict | list)
    }


@given(MESSAGES, st.integers(1, 9), st.booleans())
def test_id_is_found_anywhere_in_a_line(message: dict[str, Any], size: int, spaces: bool) -> None:
    data = json.dumps(message, indent=1 if spaces else None, ensure_ascii=spaces).encode()
    keys = seen(data, size)
    assert (keys.messages, keys.is_list) == ([scalars(message)], False)


@given(st.lists(MESSAGES, max_size=4), st.integers(1, 9))
def test_ids_in_a_list_are_found(messages: list[dict[str, Any]], size: int) -> None:
    keys = seen(json.dumps(messages).encode(), size)
    assert (keys.messages, keys.is_list) == ([scalars(message) for message in messages], True)


@given(st.binary(max_size=60) | st.text('{}[]",:\\aid10 ', max_size=60).map(str.encode), st.integers(1, 9))
def test_result_does_not_depend_on_chunk_boundaries(data: bytes, size: int) -> None:
    keys, at_once = seen(data, size), seen(data, len(data) or 1)
    assert (keys.messages, keys.is_list) == (at_once.messages, at_once.is_list)
    assert all(set(message) <= {"id", "method"} for message in keys.messages)
    assert not any(isinstance(value, dict | list) for message in keys.messages for value in message.values())


@pytest.mark.parametrize("text", ["plain", 'naïve — жук 𝄞 \x00\n\t"\\/', "\\u0041", "\ud800", "漢字" * 9])
def test_decoded_size_ignores_escapes(text: str) -> None:
    short = len(json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    for escaped in (json.dumps(text), "".join(['"', *(f"\\u{ord(item):04X}" for item in "abc"), '"'])):
        assert decoded_size(escaped.encode()) <= short
    assert decoded_size(json.dumps("жук𝄞a").encode()) == len('"жук𝄞a"'.encode()) - 6
    text = "жук𝄞a" * 100_000
    size = len(text.encode())
    assert size * 0.999 < decoded_size(json.dumps(text).encode()) < size


def test_a_line_in_escapes_may_be_six_times_as_long() -> None:
    letters = MAX_LINE_BYTES - 2
    at_the_limit = b'"' + b"\\u0041" * letters + b'"\n'
    assert list(read_lines(io.BytesIO(at_the_limit + b"1\n"))) == [at_the_limit, b"1\n"]
    beyond, after = read_lines(io.BytesIO(b'"' + b"\\u0041" * (letters + 10_000) + b'"\n1'))
    assert isinstance(beyond, OversizedLine)
    assert after == b"1"


def test_memory_for_an_endless_line_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonrpc, "MAX_RAW_LINE_BYTES", 1000)
    monkeypatch.setattr(jsonrpc, "MAX_LINE_BYTES", 100)
    line = b'{"params": {"id": 3, "text": "' + b'x\\"' * 100_000 + b'"}, "id": "seven", "method": "ping"}\n'
    result, after = read_lines(io.BytesIO(line + b"{}\n"), "id", "method")
    assert isinstance(result, OversizedLine)
    assert result.messages == [{"id": "seven", "method": "ping"}]
    assert after == b"{}\n"
