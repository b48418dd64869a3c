"""Two hub processes over one PostgreSQL database."""

import threading
import time
from collections.abc import Iterator

import pytest
from tests.hub.running import HubProcess, bundle_of, push_of, uuid_of
from tests.hub.store_hub import all_pages

from quaid.errors import DeviceRevoked, HubUnreachable
from quaid.hub.postgres_store import PostgresHubStore
from quaid.spaces.http_client import HttpHub
from quaid.spaces.protocol import hash_secret, new_token


class TwoNodes:
    """Two hub processes and a person with a token."""

    def __init__(self, url: str) -> None:
        self.store = PostgresHubStore(url)
        self.store.add_person("ana", is_admin=True)
        self.nodes = [HubProcess(url), HubProcess(url)]
        self._connections: list[HttpHub] = []

    def device(self, node: int) -> HttpHub:
        """Return the connection of a new device to one of the nodes."""
        token = new_token()
        self.store.add_device("ana", f"device {len(self._connections)}", hash_secret(token))
        return self.connect(node, token)

    def connect(self, node: int, token: str) -> HttpHub:
        self._connections.append(HttpHub(self.nodes[node].url, token, self.store.hub_id))
        return self._connections[-1]

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        for node in self.nodes:
            if node.process.poll() is None:
                node.stop()
        self.store.close()


@pytest.fixture
def nodes(postgres_url: str) -> Iterator[TwoNodes]:
    two = TwoNodes(postgres_url)
    yield two
    two.close()


def test_a_write_through_one_node_is_read_through_the_other(nodes: TwoNodes) -> None:
    writer, reader = nodes.device(0), nodes.device(1)
    team = writer.create_space("team", "team")
    assert reader.spaces() == [team]
    delays = []
    for number in range(5):
        seen: list[float] = []

        def wait(after: int = number, times: list[float] = seen) -> None:
            assert reader.wait(team.id, after, 20)
            times.append(time.monotonic())

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.1)
        pushed = time.monotonic()
        assert writer.push(team.id, [push_of(bundle_of(number))])[0].status == "stored"
        thread.join(20)
        delays.append(seen[0] - pushed)
        assert reader.changes(team.id, number).changes[0].uuid == uuid_of(number)
    assert sorted(delays)[2] < 1


def test_a_device_revoked_through_one_node_is_refused_by_the_other(nodes: TwoNodes) -> None:
    admin, lost = nodes.device(0), nodes.device(1)
    device = lost.about().device
    admin.revoke(device)
    with pytest.raises(DeviceRevoked):
        lost.spaces()


def test_a_killed_node_loses_nothing_and_the_other_serves_on(nodes: TwoNodes) -> None:
    first = nodes.device(0)
    team = first.create_space("team", "team")
    acknowledged: list[int] = []
    started = threading.Event()

    def write(device: HttpHub, numbers: range) -> None:
        for number in numbers:
            try:
                [result] = device.push(team.id, [push_of(bundle_of(number, f"text {number}"))])
            except HubUnreachable:
                return
            assert result.status == "stored"
            acknowledged.append(number)
            started.set()

    threads = [
        threading.Thread(target=write, args=(nodes.device(0), range(start, start + 1_000)))
        for start in (1_000, 2_000, 3_000)
    ]
    for thread in threads:
        thread.start()
    assert started.wait(20)
    time.sleep(0.3)
    nodes.nodes[0].kill()
    for thread in threads:
        thread.join(20)
    assert acknowledged
    with pytest.raises(HubUnreachable):
        first.spaces()

    other = nodes.connect(1, first._token)
    pages = {change.uuid for change in all_pages(other, team.id)}
    assert {uuid_of(number) for number in acknowledged} <= pages
    assert len(pages) <= len(acknowledged) + len(threads)  # at most the pushes whose answer was lost
    assert other.push(team.id, [push_of(bundle_of(9))])[0].status == "stored"
    sequence = [change.seq for change in other.changes(team.id, 0, 5_000).changes]
    assert sequence == list(range(1, len(pages) + 2))
    assert nodes.store.verify_audit()[1] is None
