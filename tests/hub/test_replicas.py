"""Copies of spaces that a hub process keeps to answer reads."""

import json
import os
import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from tests.hub.running import RunningHub, bundle_of, push_of, running, uuid_of, wait_until

from quaid.hub.direct import READS, SpaceCopies
from quaid.hub.store import SqliteHubStore
from quaid.operations import dispatch
from quaid.spaces.http_client import HttpHub
from quaid.spaces.protocol import Caller, hash_secret

ENVIRON = {"QUAID_EMBEDDING_PLUGIN": "off"}


@pytest.fixture
def copies(tmp_path: Path) -> Iterator[SpaceCopies]:
    store = SqliteHubStore(str(tmp_path / "hub.db"))
    (tmp_path / "data").mkdir()
    made = SpaceCopies(store, str(tmp_path / "data"), ENVIRON, most_open=2)
    yield made
    made.close()
    store.close()


@pytest.fixture
def hub(copies: SpaceCopies) -> Iterator[RunningHub]:
    with running(copies._store, copies=copies) as served:
        yield served


def ask(hub: RunningHub, device: HttpHub, space: str, operation: str, **arguments: Any) -> tuple[int, Any]:
    """Ask a hub to run an operation; return the status and the result or the code of the error."""
    connection = HTTPConnection("127.0.0.1", hub.port, timeout=20)
    path, headers = f"/hub/v1/spaces/{space}/call/{operation}", {"Authorization": f"Bearer {device._token}"}
    connection.request("POST", path, json.dumps(arguments), headers)
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return response.status, answer["result"] if response.status == 200 else answer["error"]["code"]


def caller_of(hub: RunningHub, device: HttpHub) -> Caller:
    caller = hub.store.authenticate(hash_secret(device._token))
    assert caller is not None
    return caller


def test_a_hub_answers_with_the_newest_pages(hub: RunningHub) -> None:
    ana = hub.device("ana")
    team = ana.create_space("team", "team").id
    ana.push(team, [push_of(bundle_of(1, "# Mira\n\nMira builds kites."))])
    _, result = ask(hub, ana, team, "search", query="kites")
    assert [hit["slug"] for hit in result["hits"]] == ["people/p1"]
    ana.push(team, [push_of(bundle_of(1, "# Mira\n\nMira builds boats."), 1)])
    assert ask(hub, ana, team, "search", query="kites")[1]["hits"] == []
    _, page = ask(hub, ana, team, "get", slug="people/p1")
    assert page["compiled_truth"] == "# Mira\n\nMira builds boats."
    ana.push(team, [push_of(bundle_of(1, deleted=True), 2)])
    assert ask(hub, ana, team, "get", slug="people/p1") == (404, "page_not_found")


def test_only_members_get_answers(hub: RunningHub) -> None:
    ana, eve, admin = hub.device("ana"), hub.device("eve"), hub.device("ada", is_admin=True)
    team = ana.create_space("team", "team").id
    ana.push(team, [push_of(bundle_of(1, "Only for members."))])
    for stranger in (eve, admin):
        assert ask(hub, stranger, team, "list") == (404, "not_found")
    ana.set_member(team, "eve", "read")
    assert ask(hub, eve, team, "list")[0] == 200


def test_only_reads_of_pages_are_answered(hub: RunningHub) -> None:
    ana = hub.device("ana")
    team = ana.create_space("team", "team").id
    for operation in ("put", "forget", "remember", "status", "config", "collections", "sync", "share"):
        assert ask(hub, ana, team, operation) == (404, "unknown_tool")
    assert ask(hub, ana, team, "get", slug=5) == (400, "invalid_argument")
    for operation in READS:
        assert dispatch.find_tool(f"memory_{operation}").scope == "read"


def test_a_sealed_space_has_no_copy(hub: RunningHub, tmp_path: Path) -> None:
    ana = hub.device("ana")
    sealed = ana.create_space("diary", "private", sealed=True).id
    assert ask(hub, ana, sealed, "list") == (400, "invalid_argument")
    assert os.listdir(tmp_path / "data") == []


def test_a_copy_is_not_a_device(hub: RunningHub) -> None:
    ana = hub.device("ana")
    team = ana.create_space("team", "team").id
    ana.push(team, [push_of(bundle_of(1))])
    ask(hub, ana, team, "list")
    assert [device.acknowledged for device in ana.devices(team)] == [-1]


def test_a_purged_page_leaves_the_copy_without_another_question(hub: RunningHub, tmp_path: Path) -> None:
    ana = hub.device("ana")
    team = ana.create_space("team", "team").id
    secret = "the combination is 4711"
    ana.push(team, [push_of(bundle_of(1, secret)), push_of(bundle_of(2, "stays"))])
    assert ask(hub, ana, team, "get", slug="people/p1")[0] == 200
    ana.purge(team, uuid_of(1))

    def is_gone() -> bool:
        files = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
        return files != [] and not any(secret.encode() in path.read_bytes() for path in files)

    wait_until(is_gone)
    assert ask(hub, ana, team, "get", slug="people/p1")[0] == 404
    assert ask(hub, ana, team, "get", slug="people/p2")[0] == 200
    assert hub.log == []


def test_few_copies_are_open_at_one_time(hub: RunningHub, copies: SpaceCopies) -> None:
    ana = hub.device("ana")
    spaces = [ana.create_space(f"space{number}", "private").id for number in range(6)]
    for number, space in enumerate(spaces):
        ana.push(space, [push_of(bundle_of(number, f"Page of space {number}."))])
    caller, wrong = caller_of(hub, ana), list[str]()

    def read(start: int) -> None:
        for step in range(30):
            number = (start * 5 + step * 7) % len(spaces)
            page = copies.call(caller, spaces[number], "get", {"slug": f"people/p{number}"})
            if page["compiled_truth"] != f"Page of space {number}.":
                wrong.append(page["compiled_truth"])

    threads = [threading.Thread(target=read, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert copies.call(caller, spaces[0], "list", {})["total"] == 1
    assert len(copies._open) == 2


def test_a_copy_can_be_deleted_while_no_hub_runs(hub: RunningHub, tmp_path: Path) -> None:
    ana = hub.device("ana")
    team = ana.create_space("team", "team").id
    ana.push(team, [push_of(bundle_of(1, "kept on the hub"))])
    (tmp_path / "new").mkdir()
    for folder in ("data", "new"):  # a second process starts with an empty folder
        copies = SpaceCopies(hub.store, str(tmp_path / folder), ENVIRON)
        assert copies.call(caller_of(hub, ana), team, "list", {})["total"] == 1
        copies.close()
