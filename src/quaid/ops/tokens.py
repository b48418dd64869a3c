"""Tokens: what lets a program or a browser in over HTTP, without ever being kept.

Everything lies in a folder of the person's own, one for each memory, readable by nobody else: a token for the owner,
a small file for each token that was given away (with its hash, not itself), one for each login link that is still
open. A file is made or unlinked in one step, so that no two processes need a lock, and only one redeems a link.
"""

import base64
import hashlib
import hmac
import json
import os
import re
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple

from quaid.brain import Brain
from quaid.config import Settings
from quaid.errors import AlreadyExists, FileTrouble, InvalidArgument, NotFound
from quaid.ops.register import Arg, Scope, op
from quaid.storage import files as durable_files
from quaid.storage.sqlite.errors import translate_os_errors

BYTES = 32
SECONDS_OF_A_LINK = 60
MOST_TOKENS = 100
LARGEST = 4_096
OWNER = "owner-token"
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
OURS = re.compile(r"qd_[A-Za-z0-9_-]{43}")

Name = Annotated[str, Arg("What it is called, as in phone.", positional=True)]


class Token(NamedTuple):
    name: str
    scope: Literal["read", "write"]
    created_at: str
    last_used_at: str | None = None
    """To the minute; None: nobody has shown it yet."""


class TokenRecord(NamedTuple):
    name: str
    scope: Literal["read", "write"]
    token: str
    """Shown this once; only its hash is kept."""


class TokensRecord(NamedTuple):
    tokens: tuple[Token, ...]
    owner_file: str
    """The file with the owner's own token, which `quaid web` makes."""


class TokenRevokeRecord(NamedTuple):
    name: str


@op(
    "owner",
    command="token create",
    examples=("quaid token create phone", "quaid token create laptop --scope write"),
)
def token_create(
    brain: Brain,
    name: Name,
    scope: Annotated[Literal["read", "write"], Arg("What whoever has it may do.")] = "read",
) -> TokenRecord:
    """Make a token for a program that asks over HTTP. It is shown once; only its hash is kept."""
    _check_name(name)
    _ = brain.db  # a memory that is not there needs no token
    folder = _folder(brain.settings, "tokens")
    if len(_names(folder)) >= MOST_TOKENS:
        raise InvalidArgument(name="name", problem=f"there are {MOST_TOKENS} tokens already; revoke some")
    token = _new()
    kept = {"scope": scope, "created_at": brain.now(), "sha256": _hash(token)}
    path = os.path.join(folder, name + ".json")
    with translate_os_errors(path):
        try:
            _make(path, json.dumps(kept))
            os.utime(path, (0, 0))  # nobody has used it
        except FileExistsError:
            hint = f"`quaid token revoke {name}` ends it; or choose another name."
            raise AlreadyExists(path=f"A token {name}", hint=hint) from None
    return TokenRecord(name, scope, token)


@op("owner", command="token list", aliases={"token": {}}, examples=("quaid token list",))
def token_list(brain: Brain) -> TokensRecord:
    """List the tokens that were given away: what each may do, since when, and when it was last used."""
    folder = os.path.join(_place(brain.settings), "tokens")  # which is made with the first one
    paths = {name: os.path.join(folder, name + ".json") for name in _names(folder)}
    found = [(name, path, _kept(path)) for name, path in paths.items()]
    tokens = [
        Token(name, kept["scope"], kept["created_at"], _last_used(path)) for name, path, kept in found if kept
    ]
    return TokensRecord(tuple(sorted(tokens)), owner_file(brain.settings))


@op("owner", command="token revoke", examples=("quaid token revoke phone",))
def token_revoke(brain: Brain, name: Name) -> TokenRevokeRecord:
    """End a token. Whoever still sends it is refused from the next request on."""
    _check_name(name)
    path = os.path.join(_folder(brain.settings, "tokens"), name + ".json")
    with translate_os_errors(path):
        try:
            os.unlink(path)
        except FileNotFoundError:
            raise NotFound(what="token", name=name, hint=" `quaid token list` shows them all.") from None
    return TokenRevokeRecord(name)


# Not operations: what a server asks, and a shell


def names(settings: Settings) -> list[str]:
    """What the tokens that were given away are called."""
    return sorted(_names(os.path.join(_place(settings), "tokens")))


def owner_file(settings: Settings) -> str:
    """Where the owner's token is, or will be."""
    return os.path.join(_place(settings), OWNER)


def owner_token(settings: Settings) -> str:
    """The owner's token; made when there is none. A file that others can read is refused."""
    _folder(settings, "")
    path = owner_file(settings)
    with translate_os_errors(path):
        try:
            _make(path, _new())
        except FileExistsError:
            pass
        if os.name != "nt" and os.stat(path).st_mode & 0o077:
            problem = "it can be read by others; delete it, and a new one is made"
            raise FileTrouble(path=path, problem=problem)
        with open(path, encoding="ascii", errors="replace") as file:
            token = file.read(LARGEST).strip()
    if not OURS.fullmatch(token):
        raise FileTrouble(path=path, problem="there is no token in it; delete it, and a new one is made")
    return token


def scope_of(settings: Settings, owner: str, given: str) -> Scope | None:
    """What whoever shows this token may do. Every token is compared, and each for as long as any other."""
    found: Scope | None = None
    digest = _hash(given)
    if hmac.compare_digest(digest, _hash(owner)):
        found = "owner"
    folder = os.path.join(_place(settings), "tokens")
    for name in _names(folder):
        path = os.path.join(folder, name + ".json")
        kept = _kept(path)
        if kept and hmac.compare_digest(digest, kept["sha256"]):
            found = found or kept["scope"]
            _used(path)
    return found


def login_code(settings: Settings, port: int, moment: float) -> str:
    """A code for one login at the server on this port, within a minute."""
    folder = _folder(settings, "logins")
    for name in os.listdir(folder):  # those that nobody used
        kept = _kept(os.path.join(folder, name))
        if not kept or kept["until"] < moment:
            _unlinked(os.path.join(folder, name))
    code = _new()
    path = os.path.join(folder, _hash(code))
    with translate_os_errors(path):
        _make(path, json.dumps({"port": port, "until": moment + SECONDS_OF_A_LINK}))
    return code


def redeemed(settings: Settings, port: int, moment: float, code: str) -> bool:
    """Whether a code is good here and now; from then on it is not."""
    path = os.path.join(_place(settings), "logins", _hash(code))
    kept = _kept(path)
    return bool(kept and _unlinked(path) and kept["port"] == port and moment <= kept["until"])


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        problem = "must be lower-case a-z, 0-9, '-' and '_', at most 40 of them, as in phone"
        raise InvalidArgument(name="name", problem=problem)


def mark(settings: Settings) -> str:
    """By what two programs see that they mean the same memory."""
    return hashlib.sha256(os.fsencode(os.path.realpath(settings.db_path))).hexdigest()[:16]


def _place(settings: Settings) -> str:
    return os.path.join(settings.home, "web", mark(settings))


def _folder(settings: Settings, name: str) -> str:
    folder = os.path.join(_place(settings), name) if name else _place(settings)
    with translate_os_errors(folder):
        durable_files.make_folders(folder)
    return folder


def _names(folder: str) -> list[str]:
    try:
        return [each[:-5] for each in os.listdir(folder) if each.endswith(".json")]
    except OSError:
        return []


def _kept(path: str) -> dict[str, Any] | None:
    """What a file of ours says; None for one that is gone or cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.loads(file.read(LARGEST))
    except (OSError, ValueError):
        return None
    if not isinstance(value, dict):
        return None
    wanted = {"port", "until"} if "until" in value else {"scope", "created_at", "sha256"}
    return value if set(value) == wanted and value.get("scope") in (None, "read", "write") else None


def _used(path: str) -> None:
    """The file's own time says when its token was last shown; its text never changes."""
    try:
        os.utime(path)
    except OSError:
        pass  # a folder that cannot be written: it is let in all the same


def _last_used(path: str) -> str | None:
    try:
        moment = datetime.fromtimestamp(os.stat(path).st_mtime, UTC)
    except OSError:
        return None
    if not moment.timestamp():
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:00Z")


def _new() -> str:
    return "qd_" + base64.urlsafe_b64encode(os.urandom(BYTES)).decode().rstrip("=")


def _hash(token: str) -> str:
    """Enough for what is random through and through: nobody can try all of 2**256."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _make(path: str, text: str) -> None:
    """A file that is whole from its first moment; FileExistsError when there is one."""
    unfinished = f"{path}.{os.getpid()}-{os.urandom(4).hex()}"
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if os.name == "nt":
            os.rename(unfinished, path)  # fails there when the name is taken
            return
        os.link(unfinished, path)
    finally:
        _unlinked(unfinished)
    durable_files.sync_folder(os.path.dirname(path))


def _unlinked(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True
