"""Frames that no honest client sends: torn, nested, mistyped, unknown, and honest ones in the wrong order."""

import json
import random
from typing import Any

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
