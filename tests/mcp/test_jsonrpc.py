import json
from typing import Any

import pytest

from quaid.mcp import jsonrpc
from quaid.mcp.jsonrpc import INVALID_REQUEST, PARSE_ERROR, Request, RpcError


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"nonsense", b'{"a": NaN}', b'{"a": -Infinity}', b"\xff\xfe", b"[" * 100_000, b"9" * 5000],
)
def test_invalid_json_is_a_parse_error(line: bytes) -> None:
    with pytest.raises(RpcError) as caught:
        jsonrpc.decode(line)
    assert caught.value.code == PARSE_ERROR


@pytest.mark.parametrize(
    ("value", "id"),
    [
        (7, None),
        ("ping", None),
        (None, None),
        ({}, None),
        ({"jsonrpc": "2.0"}, None),
        ({"jsonrpc": "1.0", "id": 3, "method": "ping"}, 3),
        ({"id": 4, "method": "ping"}, 4),
        ({"jsonrpc": "2.0", "id": "a", "method": 5}, "a"),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": [1], "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": {}, "method": "ping"}, None),
    ],
)
def test_a_malformed_message_is_an_invalid_request_with_its_id_if_it_has_one(value: Any, id: Any) -> None:
    result, frame = jsonrpc.parse_message(value)
    assert isinstance(frame, RpcError)
    assert frame.code == INVALID_REQUEST
    assert result == id


def test_a_message_without_an_id_is_a_notification() -> None:
    assert jsonrpc.parse_message({"jsonrpc": "2.0", "method": "m"}) == (None, Request(None, "m", {}))


def test_params_may_be_null_but_not_a_list() -> None:
    assert jsonrpc.parse_message({"jsonrpc": "2.0", "id": 1, "method": "m", "params": None})[1] == Request(
        1, "m", {}
    )
    assert jsonrpc.parse_message({"jsonrpc": "2.0", "id": 1, "method": "m", "params": [1]})[1] == Request(
        1, "m", None
    )


def test_stray_response_is_ignored() -> None:
    assert jsonrpc.parse_message({"jsonrpc": "2.0", "id": 1, "result": {}}) == (None, None)
    assert jsonrpc.parse_message({"jsonrpc": "2.0", "id": 1, "error": {}}) == (None, None)


def test_nan_is_never_sent() -> None:
    with pytest.raises(ValueError, match="JSON"):
        jsonrpc.encode({"number": float("nan")})


@pytest.mark.parametrize("text", ["plain", "知识\u2028line\nbreak", "half \ud800 a pair", 'quote " and \\'])
def test_every_text_survives_as_one_line_of_utf8(text: str) -> None:
    line = jsonrpc.encode({"text": text})
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert json.loads(line.decode("utf-8")) == {"text": text}
