"""Bombs, depths, floods and traps: each costs little, breaks nothing, and the rest is found as ever."""

import json
import os
import signal
from pathlib import Path

import pytest
from tests.faults import pattern_traps
from tests.faults.hostile_reader import ROOMS
from tests.faults.ledger import LONG, Cases
from tests.faults.pattern_traps import Found, Trap
from tests.faults.workspace import start
from tests.timing import TRIES

pytestmark = pytest.mark.promise("hostile files")
MOST_SECONDS, MOST_MEGABYTES = 3.0, 200.0
"""The largest files take about 2 s. Slow machines need 2.5 s; a cost that grows with the square, far more."""
SHORT = {"markdown": 4, "org": 3, "ignore": 2, "export": 2, "dashboard": 2}
"""Cases of the short slice; one in every other room."""


@pytest.mark.parametrize("room", ROOMS)
def test_a_hostile_file_costs_little_and_the_rest_is_found(tmp_path: Path, cases: Cases, room: str) -> None:
    names = [item.name for item in ROOMS[room].made()]
    reader = start("hostile_reader.py", tmp_path / "home", room)
    assert reader.stdin is not None
    assert reader.stdout is not None
    assert reader.stderr is not None
    worst, largest = ("", 0.0), ("", 0.0)
    try:
        for seed in cases.walk(SHORT.get(room, 1), len(names)):
            name = names[seed]
            for _ in range(TRIES):  # other processes can double the CPU time of a try
                reader.stdin.write(f"{name}\n")
                reader.stdin.flush()
                line = reader.stdout.readline()
                assert line, f"{room}, {name}: {reader.stderr.read()}"
                payload = json.loads(line)
                if payload["seconds"] <= MOST_SECONDS:
                    break
            cost = (
                f"{room}, {name}: {payload['seconds']:.2f} s, {payload['megabytes']:.0f} MB {payload['said']}"
            )
            if os.environ.get("QUAID_TABLE"):
                with Path(os.environ["QUAID_TABLE"]).open("a") as table:
                    table.write(f"{cost}\n")
            assert payload["status"] == 0, cost
            assert payload["seconds"] <= MOST_SECONDS, cost
            assert payload["megabytes"] <= MOST_MEGABYTES, cost
            worst = max(worst, (name, payload["seconds"]), key=lambda each: each[1])
            largest = max(largest, (name, payload["megabytes"]), key=lambda each: each[1])
    finally:
        reader.communicate(timeout=600)
    cases.note(f"{room} at most {worst[1]:.1f} s ({worst[0]}), {largest[1]:.0f} MB ({largest[0]})")


SIZE = 200_000 if LONG else 20_000
LIMIT = 0.4 if LONG else 0.1
"""CPU seconds for a text of that size; what grows with its square needs a hundred times as long."""


PATTERNS_AT_ONCE = 50


def test_no_pattern_can_be_trapped(cases: Cases) -> None:
    result = pattern_traps.patterns()
    for first in cases.each(range(0, len(result), PATTERNS_AT_ONCE)):
        together = result[first : first + PATTERNS_AT_ONCE]
        tried = [(item, trap) for item in together for trap in pattern_traps.traps(item)[:: 1 if LONG else 8]]
        sprung = _sprung(tried)
        assert sprung is None, f"{sprung[0].name}: {sprung[0].source[:200]!r} on {sprung[1]}"
        cases.count(len(together) - 1)


def _sprung(tried: list[tuple[Found, Trap]]) -> tuple[Found, Trap] | None:
    """Return the first pattern that takes too long on its trap. A child tries them, and a timer ends it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        for number, (found, trap) in enumerate(tried):
            os.write(writer, number.to_bytes(4, "big"))
            text = trap.text(SIZE)
            signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT)
            found.run(text)
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        os._exit(0)
    os.close(writer)
    numbers = b""
    while piece := os.read(reader, 65_536):
        numbers += piece
    os.close(reader)
    _, status = os.waitpid(child, 0)
    return tried[int.from_bytes(numbers[-4:], "big")] if status else None
