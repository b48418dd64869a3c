"""Frames that no honest client sends: torn, nested, mistyped, unknown, and honest ones in the wrong order.

And what a server owes for each, by JSON-RPC 2.0: read off the bytes, without asking the server's own reader.
"""

import json
import random
from typing import Any, NamedTuple

METHODS = (
    *("initialize", "ping", "tools/list", "tools/call", "resources/read", "resources/list", "prompts/get"),
    *("prompts/list", "logging/setLevel", "notifications/cancelled", "server/discover", "no/such", "", "\0"),
)
VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        -1,
        1.5,
        2**63,
        10**40,
        "",
        "x",
        "\ud800",
        "x" * 3_000,
        [],
        {},
        [[[]]],
        {"a": {"b": []}},
    ),
    *(
        {"name": "memory_get"},
        {"name": "memory_get", "arguments": {"slug": 5}},
        {"name": 7},
        {"uri": "file:///"},
    ),
    *({"name": "memory_search", "arguments": {"query": '" OR 1'}}, {"name": "no_such"}, {"level": "loud"}),
    *({"name": "memory_put", "arguments": {"slug": "../x", "content": "y"}}, {"requestId": [1]}),
    *({"_meta": {"progressToken": []}}, {"_meta": 7}, {"cursor": "after-0"}, {"protocolVersion": 5}),
)


def frame(seed: int) -> bytes:
    """One bad frame, without its end of line."""
    chance = random.Random(seed)
    kind = chance.randrange(7)
    if kind == 0:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(1, 80))).replace(b"\n", b" ")
    whole = json.dumps(message(chance)).encode()
    if kind == 1:
        return whole[: chance.randrange(1, len(whole))]
    if kind == 2:
        place = chance.randrange(len(whole))
        return (whole[:place] + bytes([chance.randrange(256)]) + whole[place + 1 :]).replace(b"\n", b" ")
    if kind == 3:
        return chance.choice([b"[", b'{"a":', b'[{"a":']) * chance.randrange(1, 2_000)
    if kind == 4:
        return json.dumps([message(chance) for _ in range(chance.randrange(0, 6))]).encode()
    if kind == 5:
        return json.dumps(chance.choice(VALUES)).encode()
    return whole


def message(chance: random.Random) -> dict[str, Any]:
    """A message in which at least one thing is not as it should be, most of the time."""
    made: dict[str, Any] = {
        "jsonrpc": chance.choice(("2.0", "2.0", "2.0", "1.0", 2, None)),
        "id": chance.choice((1, "a", None, True, 1.5, [], 2**70)),
        "method": chance.choice((*METHODS, 5, None, [])),
        "params": chance.choice(VALUES),
    }
    for name in chance.sample(sorted(made), chance.randrange(3)):
        del made[name]
    if chance.random() < 0.1:
        made[chance.choice(("result", "error"))] = chance.choice(VALUES)
    return made


PARSE_ERROR, INVALID_REQUEST = -32700, -32600


class Owed(NamedTuple):
    """An answer, as far as it can be told from the frame."""

    id: str
    """As JSON; "null" where the frame has none that could be repeated."""
    code: int = 0
    """Of a frame that is no message; 0 for whatever a method answers."""


Debt = Owed | tuple[Owed, ...]
"""One answer, or those of a batch, in one line."""


def owed(data: bytes, *, batches: bool) -> list[Debt]:
    """The answers that a server owes for a line: one, that of a batch, or none. A blank line is none."""
    if not data.strip():
        return []
    try:
        value = json.loads(data.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError):
        return [Owed("null", PARSE_ERROR)]
    if not isinstance(value, list):
        return [*_owed(value)]
    if not batches or not value:
        return [Owed("null", INVALID_REQUEST)]
    together = tuple(sorted(item for one in value for item in _owed(one)))
    return [together] if together else []


def _owed(value: Any) -> list[Owed]:
    """The answer to one message; none to a notification, and to an answer that nobody asked for."""
    if not isinstance(value, dict):
        return [Owed("null", INVALID_REQUEST)]
    id = value.get("id")
    known = json.dumps(id) if type(id) in (int, str) else "null"
    if value.get("jsonrpc") != "2.0":
        return [Owed(known, INVALID_REQUEST)]
    if "method" not in value and ("result" in value or "error" in value):
        return []
    if type(value.get("method")) is not str or ("id" in value and known == "null"):
        return [Owed(known, INVALID_REQUEST)]
    return [Owed(known)] if "id" in value else []


def paid(answer: Any) -> Debt:
    """What an answer pays."""
    if isinstance(answer, list):
        return tuple(sorted(_paid(item) for item in answer))
    return _paid(answer)


def _paid(answer: dict[str, Any]) -> Owed:
    code = answer.get("error", {}).get("code", 0)
    # A broken line is answered by its id where one can be read: tests/mcp/test_json_lines.py.
    id = None if code == PARSE_ERROR else answer["id"]
    return Owed(json.dumps(id), code if code in (PARSE_ERROR, INVALID_REQUEST) else 0)


def _no_number(word: str) -> None:
    raise ValueError(word)  # NaN and Infinity are no JSON
