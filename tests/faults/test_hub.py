"""A hub that gets mutated requests, and one that is killed while devices push."""

import json
import random
import threading
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from tests.faults.ledger import Cases
from tests.hub.running import HubProcess, RunningHub, bundle_of, push_of, running, uuid_of
from tests.hub.store_hub import all_pages

from quaid.errors import HubUnreachable
from quaid.hub import server
from quaid.hub.store import SqliteHubStore
from quaid.spaces.http_client import HttpHub
from quaid.spaces.protocol import REQUESTS, RIGHTS, Push, hash_secret, new_token, to_json, types_of

pytestmark = pytest.mark.promise("a hub keeps what is pushed, and to itself")
BATCH = 100
SECRET = "the combination is 4711"
ANSWERS = {200, 400, 401, 403, 404, 405, 409, 413, 415, 421}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningHub]:
    monkeypatch.setattr(server, "BURST", 1e9)
    monkeypatch.setattr(server, "REFUSED_CODES_PER_MINUTE", 10**9)
    monkeypatch.setattr(server, "MAX_WAIT", 0.01)
    store = SqliteHubStore(str(tmp_path / "hub.db"))
    with running(store) as served:
        yield served
    store.close()


def hostile_value(dice: random.Random, spaces: list[str]) -> Any:
    """Return a value that an attacker may put anywhere."""
    push = push_of(bundle_of(dice.randrange(4), "text " * dice.randrange(3)), dice.randrange(-1, 4))
    fields = to_json(push._replace(slug=dice.choice([push.slug, "../x", "a::b", "é" * 300, ""])))
    fields.pop(dice.choice([*fields, "none"]), None)
    return dice.choice(
        [
            *(
                None,
                True,
                0,
                -1,
                2**63 - 1,
                2**70,
                1e400,
                "",
                "\0",
                "\ud800",
                "%00",
                "' OR 1=1 --",
                "eve",
                "ana",
            ),
            *(
                [],
                {},
                [[]],
                [fields],
                fields,
                {"uuid": uuid_of(1)},
                "A" * 70_000,
                "LQ==",
                ["LQ=="],
                [["LQ==", ""]],
            ),
            *(dice.choice(spaces), dice.choice(RIGHTS), uuid_of(1), "team", "sealed", "/../../etc/passwd"),
        ]
    )


def hostile_request(dice: random.Random, spaces: list[str]) -> tuple[str, bytes]:
    """Return the path and the body of a request with some wrong arguments."""
    name = dice.choice([*REQUESTS, "close", "__class__", "store", "%2e%2e"])
    types = types_of(name) if name in REQUESTS else {}
    arguments = {key: hostile_value(dice, spaces) for key in types if key != "return" and dice.random() < 0.9}
    if dice.random() < 0.1:
        arguments[dice.choice(["self", "caller", "é"])] = hostile_value(dice, spaces)
    place = arguments.pop("space", None)
    path = (
        f"/hub/v1/spaces/{place}/{name}"
        if dice.random() < 0.8 and isinstance(place, str)
        else f"/hub/v1/{name}"
    )
    body = json.dumps(arguments).encode()
    if dice.random() < 0.05:
        body = body[: dice.randrange(len(body) + 1)] + dice.randbytes(3)
    return "".join(letter if "!" <= letter <= "~" else "%00" for letter in path)[:4_000], body


def test_mutated_requests_get_an_error_and_no_content_of_others(hub: RunningHub, cases: Cases) -> None:
    ana, eve = hub.device("ana"), hub.device("eve")
    private, team = ana.create_space("private", "private"), ana.create_space("team", "team")
    for space in (private, team):
        ana.push(space.id, [push_of(bundle_of(1, SECRET))])
    ana.set_member(team.id, "eve", "read")
    spaces = [private.id, eve.create_space("mine", "team").id, "none"]
    counts: dict[int, int] = {}
    for seed in cases.walk(3, 300):
        dice = random.Random(seed)
        connection = HTTPConnection("127.0.0.1", hub.port, timeout=20)
        for _ in range(BATCH):
            path, body = hostile_request(dice, spaces)
            token = dice.choice([eve._token] * 8 + ["", "wrong"])
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            answer = response.read()
            assert response.status in ANSWERS, (path, body[:500], answer[:500])
            assert SECRET.encode() not in answer
            counts[response.status] = counts.get(response.status, 0) + 1
        connection.close()
        cases.count(BATCH - 1)
        for space in (private, team):
            assert ana.changes(space.id, 0).last_seq == 1
        assert {member.person for member in ana.members(private.id)} == {"ana"}
        assert hub.log == []
    assert hub.store.verify_audit()[1] is None
    cases.note(", ".join(f"{count:,} × {status}" for status, count in sorted(counts.items())))


class Writer(threading.Thread):
    """A device that pushes new pages until the hub is gone."""

    def __init__(self, url: str, token: str, space: str, start: int) -> None:
        super().__init__()
        self._hub, self._space, self._start = HttpHub(url, token), space, start
        self.acknowledged: dict[str, bytes] = {}
        self.unanswered: list[Push] = []

    def run(self) -> None:
        for number in range(self._start, self._start + 10_000):
            push = push_of(bundle_of(number, f"text {number}"))
            try:
                [result] = self._hub.push(self._space, [push])
            except HubUnreachable:
                self.unanswered.append(push)
                break
            assert result.status == "stored"
            self.acknowledged[push.uuid] = push.bundle
        self._hub.close()


def test_a_killed_hub_has_every_push_that_it_acknowledged(tmp_path: Path, cases: Cases) -> None:
    place, token = str(tmp_path / "hub.db"), new_token()
    store = SqliteHubStore(place)
    store.add_person("ana")
    store.add_device("ana", "laptop", hash_secret(token))
    store.close()
    stored: dict[str, bytes] = {}
    space = ""
    for seed in cases.walk(2, 200):
        node = HubProcess(place)
        hub = HttpHub(node.url, token)
        space = space or hub.create_space("team", "team").id
        writers = [Writer(node.url, token, space, (seed * 3 + part) * 100_000 + 1) for part in range(3)]
        for writer in writers:
            writer.start()
        time.sleep(random.Random(seed).uniform(0.05, 0.5))
        node.kill()
        hub.close()
        for writer in writers:
            writer.join(20)
            stored |= writer.acknowledged
        again = HubProcess(place)
        hub = HttpHub(again.url, token)
        for push in (
            push for writer in writers for push in writer.unanswered
        ):  # stored before the kill or now, but once
            assert hub.push(space, [push])[0].status == "stored"
            stored[push.uuid] = push.bundle
        changes = all_pages(hub, space)
        hub.close()
        again.kill()
        pages = {change.uuid: change.bundle for change in changes}
        assert (stored.keys() - pages, pages.keys() - stored) == (set(), set())
        assert pages == stored
        assert [change.seq for change in changes] == list(range(1, len(stored) + 1))
    store = SqliteHubStore(place)
    assert store.verify_audit()[1] is None
    store.close()
    cases.note(f"{len(stored):,} pushes")
