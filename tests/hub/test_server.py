"""A hub over HTTP: what devices can do, and what enemies cannot."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from tests.hub.running import (
    RunningHub,
    bundle_of,
    invited,
    push_of,
    running,
    uuid_of,
    wait_until,
)

from quaid import http_server
from quaid.errors import (
    DeviceRevoked,
    DifferentHub,
    HubRefused,
    HubUnreachable,
    InvalidArgument,
    InvalidBundle,
    InvalidSlug,
    InvitationRefused,
    NotAllowed,
    NotFound,
    QuaidError,
    TooLarge,
    UntrustworthyHub,
)
from quaid.hub import server
from quaid.hub.store import SqliteHubStore
from quaid.model.bundle import decode
from quaid.spaces.http_client import HttpHub
from quaid.spaces.protocol import REQUESTS, Push, Space, hash_secret, new_token


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[RunningHub]:
    store = SqliteHubStore(str(tmp_path / "hub.db"))
    with running(store) as served:
        yield served
    store.close()


@pytest.fixture
def ana(hub: RunningHub) -> HttpHub:
    return hub.device("ana")


@pytest.fixture
def team(ana: HttpHub) -> Space:
    return ana.create_space("team", "team")


def raw_request(
    hub: RunningHub, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Send a request without our client; return status, JSON and headers."""
    connection = HTTPConnection("127.0.0.1", hub.port, timeout=20)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        text = response.read()
        fields = {name.lower(): value for name, value in response.getheaders()}
        return response.status, json.loads(text) if text[:1] == b"{" else {}, fields
    finally:
        connection.close()


def test_a_page_goes_from_one_device_to_another(hub: RunningHub, ana: HttpHub, team: Space) -> None:
    ben = hub.member(ana, team, "ben", "write")
    push = push_of(bundle_of(1, "She builds kites.", "- **2026-11-02** | Café"))
    [result] = ana.push(team.id, [push])
    assert (result.status, result.revision, result.seq) == ("stored", 1, 1)
    page = ben.changes(team.id, 0)
    assert [change.bundle for change in page.changes] == [push.bundle]
    assert (page.changes[0].person, page.last_seq, page.is_complete) == ("ana", 1, True)
    assert ben.get(team.id, push.uuid) == page.changes[0]
    [second] = ben.push(team.id, [push_of(bundle_of(1, "She builds boats."), 1)])
    assert second.revision == 2
    assert [decode(change.bundle).truth for change in ana.changes(team.id, 0).changes] == [
        "She builds boats."
    ]


def test_a_code_works_once(hub: RunningHub, ana: HttpHub, team: Space) -> None:
    invitation = ana.invite(team.id, "write", "ben")
    token = new_token()
    guest = hub.connect()
    joined = guest.redeem(invitation.code.lower(), "", "Ben's laptop", hash_secret(token))
    assert joined.person == "ben"
    assert joined.space is not None
    assert (joined.space.id, joined.space.right) == (team.id, "write")
    ben = hub.connect(token, guest.hub_id)
    assert ben.about().person == "ben"
    with pytest.raises(InvitationRefused):
        guest.redeem(invitation.code, "", "another", hash_secret(new_token()))


def test_codes_cannot_be_guessed_fast(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.store.add_person("ana")
    code = invited(hub, "", "owner", "ana")
    body = json.dumps({"code": "AAAA", "person": "x", "device_name": "y", "token_hash": "z"}).encode()
    statuses = [raw_request(hub, "POST", "/hub/v1/redeem", body)[0] for _ in range(35)]
    assert statuses == [403] * server.REFUSED_CODES_PER_MINUTE + [429] * 5
    right_code = json.dumps({**json.loads(body), "code": code}).encode()
    status, answer, headers = raw_request(hub, "POST", "/hub/v1/redeem", right_code)
    assert (status, answer["error"]["code"], headers["retry-after"]) == (429, "too_many", "1")


def test_a_forged_base_is_stale(ana: HttpHub, team: Space) -> None:
    ana.push(team.id, [push_of(bundle_of(1, "one"))])
    [result] = ana.push(team.id, [push_of(bundle_of(1, "two"), base=7)])
    assert result.status == "stale"
    assert result.head is not None
    assert result.head.revision == 1
    [unknown] = ana.push(team.id, [push_of(bundle_of(2, "new"), base=3)])
    assert (unknown.status, unknown.head) == ("stale", None)
    with pytest.raises(InvalidArgument):
        ana.push(team.id, [push_of(bundle_of(3), base=-1)])


def test_a_space_of_others_does_not_exist(hub: RunningHub, team: Space) -> None:
    eve = hub.device("eve")
    mine = eve.create_space("mine", "private")
    attempts: list[Callable[[str], Any]] = [
        lambda space: eve.push(space, [push_of(bundle_of(1))]),
        lambda space: eve.changes(space, 0),
        lambda space: eve.get(space, uuid_of(1)),
        lambda space: eve.wait(space, 0, 0.1),
        eve.members,
        lambda space: eve.set_member(space, "eve", "owner"),
        lambda space: eve.invite(space, "read"),
        eve.devices,
        eve.proposals,
        lambda space: eve.settle(space, 1, True),
        lambda space: eve.purge(space, uuid_of(1)),
        eve.purges,
        lambda space: eve.acknowledge(space, 5),
        lambda space: eve.put_vectors(space, "m", [(b"h" * 32, b"v")]),
        lambda space: eve.get_vectors(space, "m", [b"h" * 32]),
    ]
    for attempt in attempts:
        with pytest.raises(NotFound, match="There is no space"):
            attempt(team.id)
    with pytest.raises((NotFound, HubRefused), match="There is n"):
        eve.changes(f"../spaces/{team.id}", 0)
    assert [space.id for space in eve.spaces()] == [mine.id]


def test_a_repeated_push_is_stored_once(hub: RunningHub, ana: HttpHub, team: Space) -> None:
    push = push_of(bundle_of(1, "one"))
    first, again = ana.push(team.id, [push]), ana.push(team.id, [push])
    assert first == again
    ben = hub.member(ana, team, "ben", "write")
    [replayed] = ben.push(team.id, [push])  # the same bytes from another device
    assert replayed.status == "stale"
    assert ana.changes(team.id, 0).last_seq == 1


def test_a_revoked_device_gets_nothing(hub: RunningHub, ana: HttpHub, team: Space) -> None:
    ben = hub.member(ana, team, "ben", "write")
    admin = hub.device("ada", is_admin=True)
    assert ben.changes(team.id, 0).last_seq == 0
    admin.revoke(ben.about().device)
    for attempt in (lambda: ben.changes(team.id, 0), lambda: ben.push(team.id, [push_of(bundle_of(1))])):
        with pytest.raises(DeviceRevoked):
            attempt()
    with pytest.raises(DeviceRevoked):
        hub.connect("guessed", hub.store.hub_id).spaces()
    assert ana.changes(team.id, 0).last_seq == 0


def test_an_agent_cannot_do_more_than_its_right(hub: RunningHub, ana: HttpHub, team: Space) -> None:
    ana.set_member(team.id, "ana", "append", agent="scribe")
    scribe = hub.device("ana", agent="scribe", limit="append")
    first = bundle_of(1, "Truth.", "- **2026-11-01** | First")
    [stored] = scribe.push(team.id, [push_of(first)])
    assert stored.status == "stored"
    more = first._replace(timeline="- **2026-11-02** | Second\n- **2026-11-01** | First")
    assert scribe.push(team.id, [push_of(more, 1)])[0].status == "stored"
    for change in (more._replace(truth="Lie."), more._replace(timeline=""), more._replace(deleted=True)):
        [result] = scribe.push(team.id, [push_of(change, 2)])
        assert result.status == "proposed"
    forged = push_of(more._replace(truth="Lie."), 2)._replace(additions_only=True)
    assert scribe.push(team.id, [forged])[0].status == "proposed"
    with pytest.raises(NotAllowed):
        scribe.set_member(team.id, "ana", "owner", agent="scribe")
    with pytest.raises(NotAllowed):
        scribe.create_space("another", "team")
    head = ana.get(team.id, first.uuid)
    assert head is not None
    assert decode(head.bundle) == more


def test_a_member_who_only_reads_cannot_push(hub: RunningHub, ana: HttpHub, team: Space) -> None:
    reader = hub.member(ana, team, "rosa", "read")
    [result] = reader.push(team.id, [push_of(bundle_of(1))])
    assert result.status == "denied"
    assert ana.changes(team.id, 0).last_seq == 0


def send_head(hub: RunningHub, token: str, *lines: str) -> socket.socket:
    """Send the head of a push and return the connection."""
    connection = socket.create_connection(("127.0.0.1", hub.port), timeout=20)
    head = [
        "POST /hub/v1/spaces/s/push HTTP/1.1",
        f"Host: 127.0.0.1:{hub.port}",
        f"Authorization: Bearer {token}",
        *lines,
    ]
    connection.sendall(("\r\n".join(head) + "\r\n\r\n").encode())
    return connection


def test_a_body_of_100_mb_is_refused_before_it_is_sent(hub: RunningHub, ana: HttpHub) -> None:
    with send_head(hub, ana._token, f"Content-Length: {100 * 1024 * 1024}") as connection:
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"too_large"' in answer


def test_a_body_without_a_length_is_refused_when_it_is_too_large(hub: RunningHub, ana: HttpHub) -> None:
    sent = 0
    with send_head(hub, ana._token, "Transfer-Encoding: chunked") as connection:
        chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        try:
            while sent < 100:
                connection.sendall(chunk)
                sent += 1
        except OSError:
            pass  # the hub has closed the connection
    assert 31 <= sent < 60


def test_without_a_token_only_small_bodies_are_read(hub: RunningHub) -> None:
    status, answer, _ = raw_request(hub, "POST", "/hub/v1/redeem", b" " * 5_000)
    assert (status, answer["error"]["code"]) == (413, "too_large")


def test_a_bundle_above_the_limit_is_refused(ana: HttpHub, team: Space) -> None:
    push = push_of(bundle_of(1))._replace(bundle=b"x" * (17 * 1024 * 1024))
    with pytest.raises((TooLarge, InvalidBundle)):
        ana.push(team.id, [push])


@pytest.mark.parametrize(
    "slug", ["../../etc/passwd", "/etc/passwd", "a/../b", "other::people/mira", "a\\b", ""]
)
def test_a_path_in_a_slug_is_refused(ana: HttpHub, team: Space, slug: str) -> None:
    good = push_of(bundle_of(1, "text"))
    forged = good.bundle.replace(b"people/p1", slug.encode().replace(b"\\", b"\\\\"))
    for push in (good._replace(slug=slug), good._replace(slug=slug, bundle=forged)):
        with pytest.raises((InvalidSlug, InvalidBundle)):
            ana.push(team.id, [push])
    assert ana.changes(team.id, 0).last_seq == 0


def test_a_bundle_must_match_its_push(ana: HttpHub, team: Space) -> None:
    good, other = push_of(bundle_of(1)), push_of(bundle_of(2))
    for push in (
        good._replace(uuid=other.uuid),
        good._replace(slug=other.slug),
        good._replace(deleted=True, slug=""),
        good._replace(hash=other.hash),
        good._replace(bundle=b"{}"),
        good._replace(bundle=good.bundle + b" "),
    ):
        with pytest.raises((InvalidBundle, InvalidArgument)):
            ana.push(team.id, [push])
    assert ana.changes(team.id, 0).last_seq == 0


def test_a_sealed_space_takes_any_bytes_but_no_slugs(hub: RunningHub, ana: HttpHub) -> None:
    space = ana.create_space("diary", "private", sealed=True)
    plain = push_of(bundle_of(1))
    sealed = b"\x00\x01 ciphertext"
    push = Push(uuid_of(1), 0, hash_of(sealed), sealed, "")
    assert ana.push(space.id, [push])[0].status == "stored"
    with pytest.raises(InvalidArgument, match="sealed"):
        ana.push(space.id, [plain._replace(uuid=uuid_of(2))])


def hash_of(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


def test_append_is_not_possible_in_a_sealed_space(hub: RunningHub, ana: HttpHub) -> None:
    space = ana.create_space("diary", "team", sealed=True)
    hub.device("ben")
    with pytest.raises(InvalidArgument, match="sealed"):
        ana.set_member(space.id, "ben", "append")
    with pytest.raises(InvalidArgument, match="sealed"):
        ana.invite(space.id, "append", "carl")


class TamperingProxy:
    """Forwards connections to a hub and replaces bytes in its answers."""

    def __init__(self, port: int, old: bytes, new: bytes) -> None:
        assert len(old) == len(new)
        self._port, self._old, self._new = port, old, new
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            hub = socket.create_connection(("127.0.0.1", self._port))
            threading.Thread(target=self._forward, args=(client, hub, True), daemon=True).start()
            threading.Thread(target=self._forward, args=(hub, client, False), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, is_request: bool) -> None:
        own, hubs = self.url.rpartition("/")[2].encode(), f"127.0.0.1:{self._port}".encode()
        try:
            while data := source.recv(1 << 20):
                pair = (own, hubs) if is_request else (self._old, self._new)
                target.sendall(data.replace(*pair))
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        finally:
            source.close()

    def close(self) -> None:
        self._listener.close()


def test_a_hub_that_changes_a_page_is_found_out(hub: RunningHub, ana: HttpHub, team: Space) -> None:
    from base64 import b64encode

    push = push_of(bundle_of(1, "Pay to account 11111111 now"))
    ana.push(team.id, [push])
    old = b64encode(push.bundle)
    new = b64encode(push.bundle.replace(b"11111111", b"66666666"))
    proxy = TamperingProxy(hub.port, old, new)
    victim = HttpHub(proxy.url, ana._token, hub.store.hub_id)
    try:
        assert victim.spaces() == ana.spaces()  # what is not changed passes
        with pytest.raises(UntrustworthyHub, match="does not match its hash"):
            victim.changes(team.id, 0)
    finally:
        victim.close()
        proxy.close()


def test_a_hub_restored_from_a_backup_shows_its_smaller_number(tmp_path: Path) -> None:
    store = SqliteHubStore(str(tmp_path / "hub.db"))
    with running(store) as hub:
        ana = hub.device("ana")
        team = ana.create_space("team", "team")
        ana.push(team.id, [push_of(bundle_of(1, "one"))])
        store.backup(str(tmp_path / "backup.db"))
        second = push_of(bundle_of(1, "two"), 1)
        ana.push(team.id, [second, push_of(bundle_of(2, "new"))])
        port, token, hub_id = hub.port, ana._token, store.hub_id
    store.close()
    restored = SqliteHubStore(str(tmp_path / "backup.db"))
    with running(restored, port) as hub:
        device = hub.connect(token, hub_id)
        assert device.changes(team.id, 3).last_seq == 1  # smaller than what the device has seen
        # The device offers its newer revisions again: on their old base, nothing is lost.
        results = device.push(team.id, [second, push_of(bundle_of(2, "new"))])
        assert [result.status for result in results] == ["stored", "stored"]
        [stale] = device.push(team.id, [push_of(bundle_of(1, "three"), 5)])
        assert stale.status == "stale"
    restored.close()


def test_another_hub_at_the_same_address_is_refused(tmp_path: Path, hub: RunningHub, ana: HttpHub) -> None:
    other = SqliteHubStore(str(tmp_path / "other.db"))
    with running(other) as imposter:
        with pytest.raises(DifferentHub):
            imposter.connect(ana._token, ana.hub_id).spaces()
        # A client that does not check is refused by the hub.
        status, answer, _ = raw_request(
            imposter, "POST", "/hub/v1/about", b"{}", **{"quaid-hub": hub.store.hub_id}
        )
        assert (status, answer["error"]["code"]) == (409, "different_hub")
    other.close()


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/hub/v1/spaces", b"{}", 401, "not_logged_in"),
        ("GET", "/hub/v1/spaces", b"", 405, "wrong_method"),
        ("POST", "/hub/v1/close", b"{}", 404, "no_such_address"),
        ("POST", "/hub/v1/__init__", b"{}", 404, "no_such_address"),
        ("POST", "/elsewhere", b"{}", 404, "no_such_address"),
        ("POST", "/hub/v1/redeem", b"{}", 400, "invalid_argument"),
        ("POST", "/hub/v1/redeem", b"[", 415, "body_refused"),
        ("POST", "/hub/v1/redeem", b"[]", 415, "body_refused"),
        ("POST", "/hub/v1/redeem", b"[" * 4_000, 415, "body_refused"),
        ("POST", "/hub/v1/about", b'{"self": 1}', 400, "invalid_argument"),
    ],
)
def test_wrong_requests_get_an_error(
    hub: RunningHub, method: str, path: str, body: bytes, status: int, code: str
) -> None:
    actual, answer, headers = raw_request(hub, method, path, body)
    assert (actual, answer["error"]["code"]) == (status, code)
    assert headers["quaid-hub"] == hub.store.hub_id
    assert headers["cache-control"] == "no-store"


def test_every_request_without_a_token_is_refused(hub: RunningHub) -> None:
    for request in set(REQUESTS) - set(server.PUBLIC_REQUESTS):
        for path in (f"/hub/v1/{request}", f"/hub/v1/spaces/s/{request}"):
            status, _, _ = raw_request(hub, "POST", path, b"{}")
            assert status == 401 or (request == "wait" and status == 404), path
    assert raw_request(hub, "GET", "/hub/v1/spaces/s/events")[0] == 401


def test_another_host_name_is_refused(hub: RunningHub) -> None:
    status, answer, _ = raw_request(hub, "POST", "/hub/v1/about", b"{}", Host="evil.example.org")
    assert (status, answer["error"]["code"]) == (421, "wrong_host")


def test_a_body_with_a_length_and_an_encoding_does_not_contain_a_second_request(hub: RunningHub) -> None:
    host = f"Host: 127.0.0.1:{hub.port}\r\n"
    first = f"POST /hub/v1/about HTTP/1.1\r\n{host}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    with socket.create_connection(("127.0.0.1", hub.port), timeout=20) as connection:
        connection.sendall(f"{first}POST /hub/v1/about HTTP/1.1\r\n{host}\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_the_page_of_an_invitation_explains_it(hub: RunningHub) -> None:
    assert raw_request(hub, "GET", "/join")[0] == 200
    assert raw_request(hub, "GET", "/health")[0] == 200


def test_a_device_that_sends_too_much_does_not_slow_down_others(
    hub: RunningHub, ana: HttpHub, team: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "BURST", 20)
    monkeypatch.setattr(server, "REQUESTS_PER_SECOND", 1)
    noisy = {"Authorization": f"Bearer {hub.device('noah')._token}"}
    statuses = [raw_request(hub, "POST", "/hub/v1/spaces", b"{}", **noisy)[0] for _ in range(25)]
    assert statuses == [200] * 20 + [429] * 5
    assert ana.spaces() == [team]


def test_bodies_at_one_time_are_limited(
    hub: RunningHub, ana: HttpHub, team: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MAX_BODIES", 1_000)
    with send_head(hub, ana._token, "Content-Length: 900") as waiting:
        waiting.sendall(b"{")
        wait_until(lambda: hub.app.state.hub.limits._body_bytes.total() == 900)
        with send_head(hub, ana._token, "Content-Length: 200") as second:
            assert second.recv(65_536).startswith(b"HTTP/1.1 429 ")
    wait_until(lambda: not hub.app.state.hub.limits._body_bytes)
    assert ana.spaces() == [team]


def test_bodies_of_one_device_do_not_take_the_room_of_others(
    hub: RunningHub, ana: HttpHub, team: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MAX_DEVICE_BODIES", 1_000)
    noah = hub.device("noah")
    with send_head(hub, noah._token, "Content-Length: 900") as waiting:
        waiting.sendall(b"{")
        wait_until(lambda: hub.app.state.hub.limits._body_bytes.total() == 900)
        with send_head(hub, noah._token, "Content-Length: 200") as second:
            assert second.recv(65_536).startswith(b"HTTP/1.1 429 ")
        assert ana.members(team.id)


def test_slow_clients_without_a_token_do_not_keep_devices_out(hub: RunningHub) -> None:
    head = f"POST /hub/v1/about HTTP/1.1\r\nHost: 127.0.0.1:{hub.port}\r\nContent-Length: 900\r\n\r\n{{"
    with ExitStack() as stack:
        for _ in range(2 * server.MAX_AT_ONCE):
            slow = stack.enter_context(socket.create_connection(("127.0.0.1", hub.port), timeout=20))
            slow.sendall(head.encode())
        wait_until(lambda: hub.app.state.hub.limits._body_bytes.total() == 900 * 2 * server.MAX_AT_ONCE)
        started = time.monotonic()
        assert hub.device("ana").spaces() == []
        assert time.monotonic() - started < 1  # a refused request is repeated after a second


def test_clients_that_stop_sending_are_closed(
    hub: RunningHub, ana: HttpHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "BODY_TIMEOUT", 0.2)
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT", 0.2)
    with send_head(hub, ana._token, "Content-Length: 900") as slow_body:
        slow_body.sendall(b"{")
        assert slow_body.recv(65_536).startswith(b"HTTP/1.1 408 ")
    with socket.create_connection(("127.0.0.1", hub.port), timeout=20) as slow_head:
        slow_head.sendall(b"POST /hub/v1/ab")
        assert slow_head.recv(65_536) == b""


def test_clients_that_do_not_read_their_answer_are_closed(
    hub: RunningHub, ana: HttpHub, team: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    push = push_of(bundle_of(1, "word " * 3_000_000))
    ana.push(team.id, [push])
    assert ana.changes(team.id, 0).changes[0].bundle == push.bundle
    monkeypatch.setattr(server, "SEND_TIMEOUT", 0.3)
    with socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        lazy.settimeout(20)
        lazy.connect(("127.0.0.1", hub.port))
        body = b'{"after": 0}'
        head = [
            f"POST /hub/v1/spaces/{team.id}/changes HTTP/1.1",
            f"Host: 127.0.0.1:{hub.port}",
            f"Authorization: Bearer {ana._token}",
            f"Content-Length: {len(body)}",
        ]
        lazy.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        time.sleep(2)
        received = b"".join(iter(lambda: lazy.recv(1 << 20), b""))
    assert received.startswith(b"HTTP/1.1 200 ")
    assert len(received) < len(push.bundle)


def test_waiting_ends_at_the_next_change(hub: RunningHub, ana: HttpHub, team: Space) -> None:
    ben = hub.member(ana, team, "ben", "write")
    assert ben.wait(team.id, 0, 0.05) is False
    ana.push(team.id, [push_of(bundle_of(1))])
    assert ben.wait(team.id, 0, 20) is True  # at once, because the change is there
    waited: list[float] = []

    def wait() -> None:
        assert ben.wait(team.id, 1, 20)
        waited.append(time.monotonic())

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.2)
    pushed = time.monotonic()
    ana.push(team.id, [push_of(bundle_of(2))])
    thread.join(20)
    assert waited[0] - pushed < 1


def test_events_announce_changes_and_end_when_the_device_is_revoked(
    hub: RunningHub, ana: HttpHub, team: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HEARTBEAT", 0.1)
    ana.push(team.id, [push_of(bundle_of(1))])
    connection = HTTPConnection("127.0.0.1", hub.port, timeout=20)
    path = f"/hub/v1/spaces/{team.id}/events?after=0"
    connection.request("GET", path, headers={"Authorization": f"Bearer {ana._token}"})
    response = connection.getresponse()
    assert response.status == 200
    assert [response.readline() for _ in range(3)] == [b"event: change\n", b"data: 1\n", b"\n"]
    ana.push(team.id, [push_of(bundle_of(2))])
    lines = iter(response.readline, b"")
    assert next(line for line in lines if line.startswith(b"data")) == b"data: 2\n"
    ana.revoke(ana.about().device)
    assert set(lines) <= {b": waiting\n", b"\n"}  # and the stream ends
    connection.close()


def test_an_unexpected_error_tells_nothing(
    hub: RunningHub, ana: HttpHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("text of a page")

    monkeypatch.setattr(hub.store, "spaces", broken)
    with pytest.raises(HubUnreachable) as caught:
        ana.spaces()
    assert "text of a page" not in str(caught.value)
    assert hub.log == ["internal error: RuntimeError"]


def test_all_errors_of_a_hub_are_known_to_the_client(ana: HttpHub) -> None:
    with pytest.raises(QuaidError) as caught:
        ana.changes("unknown", 0)
    assert type(caught.value) is NotFound
