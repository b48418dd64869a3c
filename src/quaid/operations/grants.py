"""Access over OAuth: the registrations of programs, and the grants that the owner approved.

A registration is not stored: the id of a client contains its name and its redirect addresses, signed with a key of
this memory. A grant is a token file, as `quaid token` keeps them, which never changes, and a second file with the
hashes of its present access and refresh tokens. Deleting the token file ends the grant: a refresh at the same moment
can write only the second file, which is worth nothing without the first.
"""

import base64
import hashlib
import hmac
import json
import os
import re
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from quaid.config import Settings
from quaid.errors import FileTrouble, InvalidArgument
from quaid.model import dates
from quaid.operations import service
from quaid.storage import files as durable_files
from quaid.storage.sqlite.errors import translate_os_errors

ACCESS_SECONDS = 3_600
LATE_REFRESH_SECONDS = 10
"""A replaced refresh token that is used again so soon is refused; later it also ends the grant.

Two processes of one program may refresh at the same time.
"""
KEY_FILE = "client-key"
SIGNATURE_BYTES = 16
GRANT_ID_BYTES = 16
GRANT_ID_LENGTH = 22
REFRESH_PREFIX = "qr_"


class OAuthClient(NamedTuple):
    """A registered program. It chose its name itself."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]


class ApprovedAccess(NamedTuple):
    """What the owner allowed a program to do."""

    client: OAuthClient
    redirect_uri: str
    name: str
    """Name of the token, and the author of the program's changes."""
    scope: Literal["read", "write"]
    resource: str
    """The only address at which its tokens are accepted."""
    seconds: int
    only: tuple[str, ...] = ()
    """The part of the memory that it sees; () for all of it."""


class IssuedTokens(NamedTuple):
    """New tokens of a grant. They are not stored."""

    grant: str
    scope: Literal["read", "write"]
    access: str
    refresh: str
    seconds: int
    """How long the access token is valid."""


def register_client(settings: Settings, name: str, redirect_uris: tuple[str, ...]) -> OAuthClient:
    """Return a new registration with these values, which the caller has checked."""
    content = [name, list(redirect_uris), _random_text(6)]
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return OAuthClient(f"{_encode(_signature(settings, data))}.{_encode(data)}", name, redirect_uris)


def find_client(settings: Settings, id: str) -> OAuthClient | None:
    """Return the registration that a client id contains, or None unless this memory has signed it."""
    signature, _, text = id.partition(".")
    try:
        data = _decode(text)
        if not hmac.compare_digest(_decode(signature), _signature(settings, data)):
            return None
    except ValueError:
        return None
    name, redirect_uris, _ = json.loads(data)
    return OAuthClient(id, name, tuple(redirect_uris))


def free_name(settings: Settings, client: OAuthClient) -> str:
    """Return a name for the token of a client: that of its earlier grant, or a new one from its own name."""
    tokens = service.token_files(settings)
    for name, content in tokens.items():
        if content and content.get("client_id") == service.token_hash(client.id):
            return name
    base = re.sub(r"[^a-z0-9]+", "-", client.name.lower()).strip("-")[:34].strip("-") or "program"
    for number in range(1, service.MAX_TOKENS + 2):
        name = base if number == 1 else f"{base}-{number}"
        if name not in tokens and name not in service.RESERVED_NAMES:
            break
    return name


def check_access(settings: Settings, access: ApprovedAccess) -> None:
    """Raise InvalidArgument unless a token with the chosen name can be created."""
    service.check_token_name(access.name)
    tokens = service.token_files(settings)
    taken = tokens.get(access.name)
    is_own = taken is not None and taken.get("client_id") == service.token_hash(access.client.id)
    if access.name in tokens and not is_own:
        raise InvalidArgument(name="name", problem=f"{access.name} is taken by another token; choose another")
    if len(tokens) >= service.MAX_TOKENS and not is_own:
        problem = f"there are {service.MAX_TOKENS} tokens already; revoke some"
        raise InvalidArgument(name="name", problem=problem)


def begin_grant(settings: Settings, access: ApprovedAccess, moment: float) -> IssuedTokens:
    """Create the grant that the owner approved, in place of earlier grants of this client."""
    check_access(settings, access)
    folder = service.token_folder(settings, "tokens")
    client = service.token_hash(access.client.id)
    for name, earlier in service.token_files(settings).items():
        if earlier and earlier.get("client_id") == client:
            service.unlink_token(os.path.join(folder, name + ".json"))
    content: dict[str, Any] = {
        "scope": access.scope,
        "created_at": dates.timestamp(moment),
        "expires_at": dates.timestamp(moment + access.seconds),
        "grant": _random_text(GRANT_ID_BYTES),
        "client": f"{access.client.name} ({redirect_place(access.redirect_uri)})",
        "client_id": client,
        "resource": access.resource,
    }
    content |= {"only": list(access.only)} if access.only else {}
    tokens = _issue(settings, content, moment)
    path = os.path.join(folder, access.name + ".json")
    with translate_os_errors(path):
        durable_files.write_file(path, json.dumps(content).encode(), exclusive=True)
        os.utime(path, (0, 0))  # mtime 0 means never used
    _remove_ended(settings)
    return tokens


def refresh_grant(
    settings: Settings, client_id: str, resource: str, token: str, moment: float
) -> IssuedTokens | None:
    """Replace the tokens of a grant and return the new ones, or None if the refresh token is not valid.

    A refresh token that was replaced before ends the grant, because it may have been stolen.
    """
    content = _find_grant(settings, client_id, _grant_of(token))
    if content is None or content["resource"] != resource or content["expires_at"] <= dates.timestamp(moment):
        return None
    state = service.read_grant_state(service.grant_path(settings, content["grant"]))
    if state is None or not hmac.compare_digest(state["refresh"], service.token_hash(token)):
        if state is None or moment - state["since"] > LATE_REFRESH_SECONDS:
            end_grant(settings, content["grant"])
        return None
    return _issue(settings, content, moment)


def revoke_token(settings: Settings, client_id: str, token: str) -> None:
    """End the grant to which an access or refresh token of this client belongs, if there is one."""
    digest = service.token_hash(token)
    for content in service.token_files(settings).values():
        if content and content.get("client_id") == service.token_hash(client_id):
            state = service.read_grant_state(service.grant_path(settings, content["grant"]))
            is_access = bool(state and hmac.compare_digest(state["sha256"], digest))
            if is_access or content["grant"] == _grant_of(token):
                end_grant(settings, content["grant"])


def end_grant(settings: Settings, grant: str) -> None:
    """End a grant and its tokens at once."""
    for name, content in service.token_files(settings).items():
        if content and content.get("grant") == grant:
            service.unlink_token(os.path.join(service.token_folder(settings, "tokens"), name + ".json"))
    service.unlink_token(service.grant_path(settings, grant))


def _issue(settings: Settings, content: dict[str, Any], moment: float) -> IssuedTokens:
    """Create tokens for a grant and store their hashes."""
    access, refresh = service.new_token(), f"{REFRESH_PREFIX}{content['grant']}{_random_text(32)}"
    seconds = min(ACCESS_SECONDS, int(dates.seconds_of(content["expires_at"]) - moment))
    state = {
        "sha256": service.token_hash(access),
        "refresh": service.token_hash(refresh),
        "until": moment + seconds,
        "since": moment,
    }
    service.token_folder(settings, "grants")
    path = service.grant_path(settings, content["grant"])
    with translate_os_errors(path):
        durable_files.write_file(path, json.dumps(state).encode())
    return IssuedTokens(content["grant"], content["scope"], access, refresh, seconds)


def _grant_of(token: str) -> str:
    """Return the id of the grant to which a refresh token belongs; empty if the text is no refresh token."""
    return token[3 : 3 + GRANT_ID_LENGTH] if token.startswith(REFRESH_PREFIX) else ""


def _find_grant(settings: Settings, client_id: str, grant: str) -> dict[str, Any] | None:
    client = service.token_hash(client_id)
    for content in service.token_files(settings).values():
        if content and content.get("grant") == grant and content["client_id"] == client:
            return content
    return None


def _remove_ended(settings: Settings) -> None:
    """Remove the second files of grants that have ended."""
    alive = {content.get("grant") for content in service.token_files(settings).values() if content}
    for grant in service.names_in_folder(service.token_folder(settings, "grants")):
        if grant not in alive:
            service.unlink_token(service.grant_path(settings, grant))


def redirect_place(uri: str) -> str:
    """Return the host to which a redirect address leads, or its scheme if it opens a program."""
    address = urlsplit(uri)
    return address.hostname or "" if address.scheme in ("http", "https") else f"{address.scheme}://"


def _signature(settings: Settings, data: bytes) -> bytes:
    return hmac.new(_client_key(settings), data, hashlib.sha256).digest()[:SIGNATURE_BYTES]


def _client_key(settings: Settings) -> bytes:
    """Return the key that signs client ids, creating it if necessary."""
    path = os.path.join(service.token_folder(settings, ""), KEY_FILE)
    with translate_os_errors(path):
        if not os.path.exists(path):
            try:
                durable_files.write_file(path, service.new_token().encode(), exclusive=True)
            except FileExistsError:  # another process created it first
                pass
        with open(path, encoding="ascii", errors="replace") as file:
            key = file.read(service.MAX_TOKEN_FILE_BYTES).strip()
    if not service.TOKEN_PATTERN.fullmatch(key):
        raise FileTrouble(path=path, problem="there is no key in it; delete it, and a new one is made")
    return key.encode()


def _random_text(size: int) -> str:
    return _encode(os.urandom(size))


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    """Return the bytes of a text that `_encode` made. Raise ValueError if it is any other text."""
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if _encode(data) != text:
        raise ValueError("not in its only form")
    return data
