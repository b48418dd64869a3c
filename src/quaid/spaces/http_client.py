"""The connection of a device to a hub over HTTP.

The client trusts a hub with storage only: it checks the hub's id and the hash of every bundle, follows no redirects,
and limits the size of answers. HTTPS is required unless the hub is on this machine.
"""

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from hashlib import sha256
from ipaddress import ip_address
from types import NoneType
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote, urlsplit

from quaid import errors
from quaid.errors import (
    DeviceRevoked,
    DifferentHub,
    HubRefused,
    HubUnreachable,
    InvalidArgument,
    QuaidError,
    UntrustworthyHub,
)
from quaid.spaces.protocol import (
    HUB_ID_HEADER,
    PROTOCOL,
    Change,
    ChangePage,
    Device,
    HubInfo,
    InvitationCode,
    Joined,
    Member,
    Proposal,
    Purge,
    Push,
    PushResult,
    Right,
    Space,
    SpaceKind,
    from_json,
    to_json,
)

TIMEOUT = 30.0
MAX_ANSWER = 256 * 1024 * 1024
PUSH_BYTES = 8 * 1024 * 1024
"""Maximum total size of the bundles in one request, unless it has a single larger one."""
PUSH_PAGES = 200
MOST_RETRIES = 5
NOT_REPEATABLE = ("redeem", "create_space", "invite", "settle")
"""Requests that must not be repeated if the answer was lost, because they are not idempotent."""
KNOWN_ERRORS = {
    error.code: error
    for error in (
        errors.AlreadyExists,
        errors.DifferentHub,
        errors.InvalidArgument,
        errors.InvalidBundle,
        errors.InvalidSlug,
        errors.InvitationRefused,
        errors.NotAllowed,
        errors.NotFound,
        errors.TooLarge,
        errors.TooMany,
    )
}
"""Errors of a hub that the client raises as the same class, by error code."""


Result = TypeVar("Result")


class HttpHub:
    """A HubConnection over HTTP. It sends one request at a time; use a second connection for wait().

    `hub_id` is the id of the hub that the device has joined, or "". It is checked before the token or any content is
    sent.
    """

    def __init__(self, url: str, token: str = "", hub_id: str = "") -> None:
        self.url = url.rstrip("/")
        self._secure, self._host, self._port = parse_address(self.url)
        self._token = token
        self._hub_id = hub_id
        self._is_checked = False
        self._connection: http.client.HTTPConnection | None = None
        self._lock = threading.Lock()

    @property
    def hub_id(self) -> str:
        return self._hub_id

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def about(self) -> HubInfo:
        info = self._request(HubInfo, "about")
        if info.protocol != PROTOCOL:
            problem = (
                f"it speaks version {info.protocol} of the protocol, and this program version {PROTOCOL}"
            )
            raise HubRefused(hub=self.url, problem=f"{problem}. Upgrade the older one.")
        return info

    def redeem(self, code: str, person: str, device_name: str, token_hash: str) -> Joined:
        arguments = {"code": code, "person": person, "device_name": device_name, "token_hash": token_hash}
        return self._request(Joined, "redeem", arguments)

    def create_space(self, name: str, kind: SpaceKind, sealed: bool = False) -> Space:
        return self._request(Space, "create_space", {"name": name, "kind": kind, "sealed": sealed})

    def spaces(self) -> list[Space]:
        return self._request(list[Space], "spaces")

    def members(self, space: str) -> list[Member]:
        return self._request(list[Member], "members", space=space)

    def set_member(self, space: str, person: str, right: Right | None, agent: str = "") -> None:
        self._request(NoneType, "set_member", {"person": person, "right": right, "agent": agent}, space)

    def invite(self, space: str, right: Right, person: str = "", agent: str = "") -> InvitationCode:
        arguments = {"right": right, "person": person, "agent": agent} | ({} if space else {"space": ""})
        return self._request(InvitationCode, "invite", arguments, space)

    def devices(self, space: str | None = None) -> list[Device]:
        return self._request(list[Device], "devices", space=space or "")

    def revoke(self, device: str) -> None:
        self._request(NoneType, "revoke", {"device": device})

    def changes(self, space: str, after: int, limit: int = 500) -> ChangePage:
        page = self._request(ChangePage, "changes", {"after": after, "limit": limit}, space)
        before = after
        for change in page.changes:
            self._check_bundle(change)
            if change.seq <= before:
                self._distrust(f"its changes after {before} are not in order")
            before = change.seq
        if before > max(after, page.last_seq):
            self._distrust(f"it sent change {before}, but its last one is {page.last_seq}")
        if not page.changes and not page.is_complete:
            self._distrust("it announces more changes, but sends none")
        return page

    def get(self, space: str, uuid: str, revision: int | None = None) -> Change | None:
        hint: Any = Change | None
        change: Change | None = self._request(hint, "get", {"uuid": uuid, "revision": revision}, space)
        if change is not None:
            if change.uuid != uuid:
                self._distrust(f"it sent {change.uuid[:64]} instead of {uuid}")
            self._check_bundle(change)
        return change

    def push(self, space: str, pushes: Sequence[Push]) -> list[PushResult]:
        results: list[PushResult] = []
        for part in _parts(pushes):
            answers = self._request(list[PushResult], "push", {"pushes": list(part)}, space)
            if [answer.uuid for answer in answers] != [push.uuid for push in part]:
                self._distrust("its answer to a push names other pages")
            for answer in answers:
                if answer.head is not None:
                    self._check_bundle(answer.head)
            results += answers
        return results

    def wait(self, space: str, after: int, timeout: float) -> bool:
        return self._request(bool, "wait", {"after": after, "timeout": timeout}, space, more_time=timeout)

    def proposals(self, space: str) -> list[Proposal]:
        proposals = self._request(list[Proposal], "proposals", space=space)
        for proposal in proposals:
            if proposal.push.bundle and sha256(proposal.push.bundle).hexdigest() != proposal.push.hash:
                self._distrust(f"the bundle of proposal {proposal.id} does not match its hash")
        return proposals

    def settle(self, space: str, proposal: int, accept: bool) -> PushResult | None:
        hint: Any = PushResult | None
        result: PushResult | None = self._request(
            hint, "settle", {"proposal": proposal, "accept": accept}, space
        )
        return result

    def purge(self, space: str, uuid: str) -> Purge:
        return self._request(Purge, "purge", {"uuid": uuid}, space)

    def purges(self, space: str) -> list[Purge]:
        return self._request(list[Purge], "purges", space=space)

    def acknowledge(self, space: str, seq: int) -> None:
        self._request(NoneType, "acknowledge", {"seq": seq}, space)

    def put_vectors(self, space: str, model: str, vectors: Sequence[tuple[bytes, bytes]]) -> int:
        return self._request(int, "put_vectors", {"model": model, "vectors": list(vectors)}, space)

    def get_vectors(self, space: str, model: str, hashes: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        arguments = {"model": model, "hashes": list(hashes)}
        return self._request(list[tuple[bytes, bytes]], "get_vectors", arguments, space)

    def _check_bundle(self, change: Change) -> None:
        if not change.purged and sha256(change.bundle).hexdigest() != change.hash:
            self._distrust(f"the bundle of page {change.uuid[:64]} does not match its hash")

    def _distrust(self, problem: str) -> NoReturn:
        raise UntrustworthyHub(hub=self.url, problem=problem)

    def _request(
        self,
        kind: type[Result],
        name: str,
        arguments: dict[str, Any] | None = None,
        space: str = "",
        more_time: float = 0,
    ) -> Result:
        """Send a request and return its result, which has the type `kind`. `more_time` extends the timeout."""
        place = f"/spaces/{quote(space, safe='')}" if space else ""
        body = json.dumps({key: to_json(value) for key, value in (arguments or {}).items()}).encode()
        with self._lock:
            if not self._is_checked and self._hub_id:
                self._exchange("about", "/hub/v1/about", b"{}", "", TIMEOUT)
            answer = self._exchange(name, f"/hub/v1{place}/{name}", body, self._token, TIMEOUT + more_time)
        try:
            result: Result = from_json(kind, json.loads(answer)["result"], "result")
        except (ValueError, RecursionError, KeyError, TypeError, InvalidArgument) as error:
            self._distrust(f"its answer to {name} cannot be read ({error})")
        return result

    def _exchange(self, name: str, path: str, body: bytes, token: str, timeout: float) -> bytes:
        """Send a request and return the body of the answer. Retry with a delay if the hub limits the rate."""
        for attempt in range(MOST_RETRIES + 1):
            response, answer = self._send(name, path, body, token, timeout)
            self._check_hub(response)
            if response.status == 200:
                return answer
            error = self._error(response, answer)
            if not isinstance(error, errors.TooMany) or attempt == MOST_RETRIES:
                raise error
            time.sleep(min(_seconds(response.getheader("retry-after")), 5.0))
        raise AssertionError  # not reached

    def _send(
        self, name: str, path: str, body: bytes, token: str, timeout: float
    ) -> tuple[http.client.HTTPResponse, bytes]:
        headers = {"Content-Type": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if self._hub_id:
            headers[HUB_ID_HEADER] = self._hub_id
        while True:
            is_reused = self._connection is not None
            try:
                connection = self._connection = self._connection or self._connect()
                if connection.sock is not None:
                    connection.sock.settimeout(timeout)
                connection.timeout = timeout
                connection.request("POST", path, body, headers)
                response = connection.getresponse()
                answer = response.read(MAX_ANSWER + 1)
                if len(answer) > MAX_ANSWER:
                    self.close()
                    self._distrust(f"its answer to {name} has more than {MAX_ANSWER:,} bytes")
                if response.length:  # read() with a limit does not raise IncompleteRead
                    raise http.client.IncompleteRead(answer, response.length)
                return response, answer
            except (OSError, http.client.HTTPException) as error:
                self.close()
                # Retry, because the hub may have closed an idle connection.
                if is_reused and name not in NOT_REPEATABLE and not isinstance(error, TimeoutError):
                    continue
                raise HubUnreachable(hub=self.url, problem=_reason(error)) from None
            except BaseException:
                self.close()  # the rest of this answer must not be read as the answer to the next request
                raise

    def _connect(self) -> http.client.HTTPConnection:
        if self._secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=TIMEOUT, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT)

    def _check_hub(self, response: http.client.HTTPResponse) -> None:
        """Check that the answer comes from the hub that the device has joined, or store the id of a new hub."""
        actual = response.getheader(HUB_ID_HEADER, "")
        if not actual:
            problem = f"something else than a hub answers there (status {response.status})"
            raise HubUnreachable(hub=self.url, problem=problem)
        if self._hub_id and actual != self._hub_id:
            raise DifferentHub(hub=self.url, actual=actual[:64], expected=self._hub_id)
        self._hub_id = actual
        self._is_checked = True

    def _error(self, response: http.client.HTTPResponse, answer: bytes) -> QuaidError:
        """Return the error that an answer describes."""
        if response.status == 401:
            return DeviceRevoked(hub=self.url)
        try:
            body = json.loads(answer)["error"]
            code, message, facts = str(body["code"]), str(body["message"]), dict(body["facts"])
        except (ValueError, RecursionError, KeyError, TypeError):
            return HubUnreachable(hub=self.url, problem=f"it answers with status {response.status}")
        if response.status >= 500:
            return HubUnreachable(hub=self.url, problem=message[:500].rstrip("."))
        if code in KNOWN_ERRORS:
            try:
                return KNOWN_ERRORS[code](**facts)
            except (KeyError, TypeError, ValueError, IndexError):
                pass  # the fields differ in another version of the hub
        return HubRefused(hub=self.url, problem=message[:500])


def parse_address(url: str) -> tuple[bool, str, int]:
    """Parse the URL of a hub into (uses TLS, host, port). Refuse HTTP unless the host is this machine."""
    parts = urlsplit(url)
    try:
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        port, host = None, ""
    if (
        parts.scheme not in ("http", "https")
        or not host
        or parts.path.strip("/")
        or parts.query
        or parts.username
    ):
        raise InvalidArgument(
            name="hub", problem=f"{url[:200]!r} is not an address like https://hub.example.org"
        )
    if parts.scheme == "http" and not is_loopback(host):
        raise InvalidArgument(
            name="hub", problem=f"{url[:200]} must begin with https: over http others could read it"
        )
    return parts.scheme == "https", host, port or (443 if parts.scheme == "https" else 80)


def is_loopback(host: str) -> bool:
    """Return True if a host is this machine: 127.0.0.0/8, ::1 or localhost. Other names are not resolved."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _parts(pushes: Sequence[Push]) -> Iterator[Sequence[Push]]:
    """Divide pushes into parts that fit into one request each."""
    start = size = 0
    for end, push in enumerate(pushes):
        if end > start and (size + len(push.bundle) > PUSH_BYTES or end - start >= PUSH_PAGES):
            yield pushes[start:end]
            start, size = end, 0
        size += len(push.bundle)
    if start < len(pushes):
        yield pushes[start:]


def _seconds(text: str | None) -> float:
    return float(text) if text and text.isascii() and text.isdigit() else 1.0


def _reason(error: Exception) -> str:
    """Return the reason why a connection failed, for a message."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not valid ({error.verify_message})"
    if isinstance(error, socket.gaierror):
        return "its name cannot be resolved"
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, http.client.HTTPException):
        return "it closed the connection"
    return getattr(error, "strerror", None) or type(error).__name__
