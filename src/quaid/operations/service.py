"""The background service: its systemd or launchd unit, and access over HTTP by tokens, logins and OAuth."""

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from quaid import clients
from quaid.app import Brain
from quaid.clients import ConfigChange
from quaid.config import Settings
from quaid.errors import AlreadyExists, FileTrouble, InvalidArgument, NoService, NotFound, ServiceMissing
from quaid.formats import config_text
from quaid.kb import git as git_cli
from quaid.model import dates
from quaid.model.plain_text import count_noun
from quaid.operations.registry import Arg, Named, Scope, op
from quaid.storage import files as durable_files
from quaid.storage.sqlite.errors import translate_os_errors

UNIT_NAME = "quaid.service"
LAUNCHD_LABEL = "quaid.daemon"
DESCRIPTION = "Quaid: memory in the browser and over HTTP"
TIMEOUT_SECONDS = 30
PASSED_VARIABLES = ("QUAID_CONFIG", "QUAID_BACKGROUND_EMBEDDING")
MAX_LOG_BYTES = 256 * 1024
EMPTY_LOG = "The log is empty"

ServiceState = Literal["running", "stopped", "not installed", "unknown"]


STEPS = {
    ("systemd", "installed"): ("daemon-reload", "enable quaid.service", "restart quaid.service"),
    ("systemd", "started"): ("start quaid.service",),
    ("systemd", "stopped"): ("stop quaid.service",),
    ("systemd", "uninstalled"): ("disable --now quaid.service",),
    ("launchd", "installed"): ("-bootout {target}", "bootstrap {domain} {path}"),
    ("launchd", "started"): ("-bootstrap {domain} {path}", "kickstart {target}"),
    ("launchd", "stopped"): ("bootout {target}",),
    ("launchd", "uninstalled"): ("-bootout {target}",),
}
"""Commands of the service manager for each action.

As in a makefile, a leading "-" means that failure is ignored.
"""


class DaemonRecord(NamedTuple):
    act: Literal["installed", "started", "stopped", "uninstalled"]
    done: bool
    path: str
    """Path of the unit file (systemd) or property list (launchd)."""
    changed: bool
    """True if the unit file or property list was written or removed."""
    to_run: tuple[str, ...]
    """Commands to run manually if the service manager is missing or failed."""
    problem: str

    @property
    def exit_status(self) -> int:
        return 0 if self.done else 1


class DaemonStatusRecord(NamedTuple):
    state: ServiceState
    path: str
    detail: str

    @property
    def exit_status(self) -> int:
        return ("running", "stopped", "not installed", "unknown").index(self.state)


class ServiceManager(NamedTuple):
    """The service manager of this machine."""

    kind: Literal["systemd", "launchd"]
    program: str  # "" if it is not installed
    path: str


@op("owner", command="daemon install", examples=("quaid daemon install", "quaid daemon install --port 5000"))
def daemon_install(
    brain: Brain,
    port: Annotated[
        int, Arg("The port to listen on, on this machine only.", minimum=1, maximum=65535)
    ] = 4321,
    host_name: Annotated[str, Arg("As for `quaid web`: localhost, if your browser needs it.")] = "",
) -> DaemonRecord:
    """Install a service (a systemd user unit or launchd agent) that serves the dashboard and agents over HTTP."""
    _ = brain.db
    manager = _service_manager(brain)
    before = clients.read_config(manager.path)
    change = ConfigChange(manager.path, before, unit_text(brain, manager, port, check_host_name(host_name)))
    if change.needed:
        clients.write_config(change, brain.now())
    return _run_steps(brain, manager, "installed", change.needed)


@op("owner", command="daemon start", examples=("quaid daemon start",))
def daemon_start(brain: Brain) -> DaemonRecord:
    """Start the installed service."""
    return _run_steps(brain, _installed(brain), "started", False)


@op("owner", command="daemon stop", examples=("quaid daemon stop",))
def daemon_stop(brain: Brain) -> DaemonRecord:
    """Stop the service until it is started again, or the next login."""
    return _run_steps(brain, _installed(brain), "stopped", False)


@op("owner", command="daemon uninstall", examples=("quaid daemon uninstall",))
def daemon_uninstall(brain: Brain) -> DaemonRecord:
    """Stop the service and remove it. The memory and the tokens stay."""
    manager = _installed(brain)
    record = _run_steps(brain, manager, "uninstalled", True)
    os.unlink(manager.path)
    if manager.kind == "systemd" and record.done:
        _run_manager(brain, manager, ("daemon-reload",))
    elif manager.kind == "systemd":
        # The service manager is not available, so the symlink for starting the unit at login is removed here,
        # as `disable` would do. The user has to stop the process.
        link = os.path.join(os.path.dirname(manager.path), "default.target.wants", UNIT_NAME)
        if os.path.islink(link):
            os.unlink(link)
        left = (("stop", UNIT_NAME), ("daemon-reload",))
        return record._replace(done=True, to_run=_shell_lines(manager, left))
    return record._replace(done=True)


@op(
    "owner",
    command="daemon status",
    aliases={"daemon": {}},
    examples=("quaid daemon status",),
)
def daemon_status(brain: Brain) -> DaemonStatusRecord:
    """Show whether the service runs. Exits 0 if it runs, 1 if stopped, 2 if not installed, 3 if unknown."""
    try:
        manager = _service_manager(brain)
    except NoService as error:
        return DaemonStatusRecord("unknown", "", str(error))
    if not os.path.exists(manager.path):
        return DaemonStatusRecord("not installed", manager.path, "`quaid daemon install` sets it up")
    if not manager.program:
        return DaemonStatusRecord("unknown", manager.path, f"the program of {manager.kind} is not there")
    if manager.kind == "launchd":
        status, output = _run_manager(brain, manager, ("print", _launchd_target()))
        running = status == 0 and "state = running" in output
        return DaemonStatusRecord("running" if running else "stopped", manager.path, "")
    status, output = _run_manager(brain, manager, ("is-active", UNIT_NAME))
    word = output.strip().partition("\n")[0]
    if status == 0 and word == "active":
        return DaemonStatusRecord("running", manager.path, word)
    if word in ("inactive", "failed", "deactivating", "activating"):
        return DaemonStatusRecord("stopped", manager.path, word)
    return DaemonStatusRecord("unknown", manager.path, word)


@op("owner", command="daemon logs", examples=("quaid daemon logs", "quaid daemon logs --lines 200"))
def daemon_logs(
    brain: Brain, lines: Annotated[int, Arg("How many.", minimum=1, maximum=10_000)] = 50
) -> Named[tuple[str, ...]]:
    """Show the log of the service: starts, stops and failures, never page texts or questions."""
    manager = _installed(brain)
    if manager.kind == "launchd":
        return Named("lines", tuple(_last_lines(_log_path(brain), lines)), EMPTY_LOG)
    journal = git_cli.find_program("journalctl", brain.settings.environ)
    if not journal:
        raise NoService(problem="journalctl is not there", remedy="`quaid daemon status` says how it is")
    done = git_cli.run_command(
        (journal, "--user", "-u", UNIT_NAME, "-n", str(lines), "-o", "short-iso", "--no-pager"),
        brain.settings.user_home,
        brain.settings.environ,
        seconds=TIMEOUT_SECONDS,
    )
    if done.status != 0:
        raise NoService(
            problem=_first_line(done.err) or "journalctl failed", remedy="Try again after logging in anew"
        )
    return Named("lines", tuple(done.out.decode("utf-8", "replace").splitlines()), EMPTY_LOG)


def unit_text(brain: Brain, manager: ServiceManager, port: int, host_name: str = "") -> str:
    """Return the text of the unit file or property list."""
    environ = brain.settings.environ
    started = clients.launch_command(brain.settings.db_path, environ)
    command = (started.command, *started.args, "--db", started.db, "serve", "--http", "--port", str(port))
    command += ("--host-name", host_name) if host_name else ()
    passed = {name: environ[name] for name in PASSED_VARIABLES if environ.get(name)}
    if manager.kind == "launchd":
        return config_text.launchd_plist(command, LAUNCHD_LABEL, passed, _log_path(brain))
    return config_text.systemd_unit(command, DESCRIPTION, passed)


def _service_manager(brain: Brain) -> ServiceManager:
    settings = brain.settings
    home = settings.user_home
    if settings.platform == "darwin":
        path = os.path.join(home, "Library", "LaunchAgents", f"{LAUNCHD_LABEL}.plist")
        return ServiceManager("launchd", git_cli.find_program("launchctl", settings.environ), path)
    if settings.platform != "linux":
        remedy = "Have `quaid serve --http` started by whatever starts programs here"
        raise NoService(problem="Services are set up with systemd or launchd only", remedy=remedy)
    chosen = settings.environ.get("XDG_CONFIG_HOME", "")
    folder = chosen if os.path.isabs(chosen) else os.path.join(home, ".config")
    path = os.path.join(folder, "systemd", "user", UNIT_NAME)
    return ServiceManager("systemd", git_cli.find_program("systemctl", settings.environ), path)


def _installed(brain: Brain) -> ServiceManager:
    manager = _service_manager(brain)
    if not os.path.exists(manager.path):
        raise ServiceMissing(path=manager.path)
    return manager


def _run_steps(
    brain: Brain,
    manager: ServiceManager,
    act: Literal["installed", "started", "stopped", "uninstalled"],
    changed: bool,
) -> DaemonRecord:
    steps = STEPS[manager.kind, act]
    names = {"target": _launchd_target(), "domain": _launchd_domain(), "path": manager.path}
    commands = [
        tuple(word.format(**names) for word in step.removeprefix("-").split())  # the path may contain spaces
        for step in steps
    ]
    problem = "" if manager.program else f"the program of {manager.kind} is not there"
    for step, words in zip(steps, commands, strict=True) if manager.program else ():
        status, printed = _run_manager(brain, manager, words)
        if status != 0 and not step.startswith("-"):
            problem = _first_line(printed) or f"it ended with {status}"
            break
    return DaemonRecord(
        act, not problem, manager.path, changed, _shell_lines(manager, commands) if problem else (), problem
    )


def _shell_lines(manager: ServiceManager, commands: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the commands as typed in a shell."""
    name = "systemctl --user" if manager.kind == "systemd" else "launchctl"
    return tuple(f"{name} {shlex.join(words)}" for words in commands)


def _run_manager(brain: Brain, manager: ServiceManager, words: tuple[str, ...]) -> tuple[int, str]:
    head = (manager.program, "--user") if manager.kind == "systemd" else (manager.program,)
    settings = brain.settings
    done = git_cli.run_command((*head, *words), settings.user_home, settings.environ, seconds=TIMEOUT_SECONDS)
    return done.status, done.out.decode("utf-8", "replace") + done.err


def _launchd_target() -> str:
    return f"{_launchd_domain()}/{LAUNCHD_LABEL}"


def _launchd_domain() -> str:
    return f"gui/{os.getuid() if hasattr(os, 'getuid') else 0}"


def _log_path(brain: Brain) -> str:
    return os.path.join(brain.settings.home, "daemon.log")


def _last_lines(path: str, lines: int) -> list[str]:
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MAX_LOG_BYTES))
            return file.read().decode("utf-8", "replace").splitlines()[-lines:]
    except FileNotFoundError:
        return []


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


TOKEN_BYTES = 32
LOGIN_CODE_SECONDS = 60
MAX_TOKENS = 100
MAX_TOKEN_SECONDS = 10 * 366 * 86_400
LAST_USE_SECONDS = 60
MAX_TOKEN_FILE_BYTES = 4_096
OWNER_FILE_NAME = "owner-token"
SHORT_CODE_FILE = "short-code.json"
SHORT_CODE_SECONDS = 300
SHORT_CODE_TRIES = 5
LOGIN_ID_LENGTH = 8
CERTIFICATE_DAYS = 800  # Apple's devices accept at most 825
HOST_FILE_NAME = "host-name"
HOST_NAME_BYTES = 15
LOCALHOST_NAME = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)?localhost")
HOST_NAME = re.compile(r"quaid-[a-z2-7]{24}\.localhost")
MAX_SESSIONS = 100
IDLE_SESSION_SECONDS = 7 * 24 * 3600.0
MAX_SESSION_SECONDS = 90 * 24 * 3600.0
SEEN_SECONDS = 60.0
"""The last use of a session is recorded at most once in this many seconds."""
RESERVED_NAMES = ("human", "manual", "owner")
"""Names by which the owner is recorded as the author of a change."""
TOKEN_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
GRANT_FIELDS = {"grant", "client", "client_id", "resource"}
GRANT_ID = re.compile(r"[A-Za-z0-9_-]{22}")
TOKEN_PATTERN = re.compile(r"qd_[A-Za-z0-9_-]{43}")

TokenName = Annotated[str, Arg("Name of the token, as in phone.", positional=True)]


class Token(NamedTuple):
    name: str
    scope: Literal["read", "write"]
    created_at: str
    last_used_at: str | None = None
    """Time of the last use, rounded down to the minute, or None if the token was never used."""
    expires_at: str | None = None
    is_expired: bool = False
    client: str = ""
    """For an OAuth client, its name and the host of its redirect URI, as in Claude Code (localhost); else ""."""
    only: tuple[str, ...] = ()
    """The parts of the memory that the token gives access to; empty for the whole memory."""


class TokenRecord(NamedTuple):
    name: str
    scope: Literal["read", "write"]
    token: str
    """The token. It is shown only once, because only its hash is stored."""
    expires_at: str | None = None
    only: tuple[str, ...] = ()


class TokensRecord(NamedTuple):
    tokens: tuple[Token, ...]
    owner_file: str
    """Path of the file with the owner's token. `quaid web` creates it."""


@op(
    "owner",
    command="token create",
    examples=(
        "quaid token create phone",
        "quaid token create laptop --scope write --expires 30d",
        "quaid token create work-bot --only work --only wing:people",
    ),
)
def token_create(
    brain: Brain,
    name: TokenName,
    scope: Annotated[Literal["read", "write"], Arg("What the token allows.")] = "read",
    expires: Annotated[
        str | None, Arg("When it ends: a period (12h, 30d, 6w) or its last day (2027-01-31) [never].")
    ] = None,
    only: Annotated[
        list[str] | None,
        Arg("The collections, wing:NAME or project:NAME that it may see [the whole memory]."),
    ] = None,
) -> TokenRecord:
    """Create a token for an HTTP client. It is shown once; only its hash is stored.

    Changes made with the token have its name as their author."""
    check_token_name(name)
    expires_at = _expiry(brain, expires) if expires is not None else None
    items = brain.check_only(only) if only is not None else ()
    _ = brain.db  # raises an error if there is no memory
    folder = token_folder(brain.settings, "tokens")
    if len(names_in_folder(folder)) >= MAX_TOKENS:
        raise InvalidArgument(name="name", problem=f"there are {MAX_TOKENS} tokens already; revoke some")
    token = new_token()
    content: dict[str, Any] = {"scope": scope, "created_at": brain.now(), "sha256": token_hash(token)}
    content |= {"expires_at": expires_at} if expires_at else {}
    content |= {"only": items} if items else {}
    path = os.path.join(folder, name + ".json")
    with translate_os_errors(path):
        try:
            durable_files.write_file(path, json.dumps(content).encode(), exclusive=True)
            os.utime(path, (0, 0))  # mtime 0 means never used
        except FileExistsError:
            hint = f"`quaid token revoke {name}` ends it; or choose another name."
            raise AlreadyExists(path=f"A token {name}", hint=hint) from None
    return TokenRecord(name, scope, token, expires_at, items)


def _expiry(brain: Brain, expires: str) -> str:
    """Return the time at which a new token expires."""
    seconds = dates.period_seconds(expires) if len(expires) < 10 else None
    if seconds is None and dates.is_date(expires.strip()) and len(expires.strip()) == 10:
        midnight = dates.day_number(dates.shift_date(expires.strip(), 1)) * 86_400
        # The last day ends at midnight of the local time zone.
        local = dates.seconds_of(brain.local() + "Z")
        seconds = midnight - int(local)
    if seconds is None:
        problem = f"must be a period or a day, as in 12h, 30d, 6w or 2027-01-31, not {expires[:40]!r}"
        raise InvalidArgument(name="expires", problem=problem)
    if not 0 < seconds <= MAX_TOKEN_SECONDS:
        problem = "is in the past" if seconds <= 0 else "must be at most ten years from now"
        raise InvalidArgument(name="expires", problem=problem)
    return brain.now(seconds)


@op("owner", command="token list", aliases={"token": {}}, examples=("quaid token list",))
def token_list(brain: Brain) -> TokensRecord:
    """List the tokens with their scope, the part of the memory that they see, creation date, expiry and last use.

    Programs that logged in over OAuth are listed too, with the name that they gave themselves."""
    folder = os.path.join(_token_path(brain.settings), "tokens")  # created with the first token
    tokens = [
        Token(
            name,
            content["scope"],
            content["created_at"],
            _last_used(os.path.join(folder, name + ".json")),
            content.get("expires_at"),
            _is_expired(content, brain.now()),
            content.get("client", ""),
            tuple(content.get("only", ())),
        )
        for name, content in token_files(brain.settings).items()
        if content
    ]
    return TokensRecord(tuple(sorted(tokens)), owner_token_path(brain.settings))


@op("owner", command="token revoke", examples=("quaid token revoke phone",))
def token_revoke(brain: Brain, name: TokenName) -> Named[str]:
    """Revoke a token, or the access of a program. Requests with it are refused at once, and its open streams end."""
    _check_name(name)
    path = os.path.join(token_folder(brain.settings, "tokens"), name + ".json")
    with translate_os_errors(path):
        try:
            os.unlink(path)
        except FileNotFoundError:
            raise NotFound(what="token", name=name, hint=" `quaid token list` shows them all.") from None
    return Named("name", name, f"Revoked {name}; requests with it are refused")


class Login(NamedTuple):
    id: str
    device: str
    """The browser and the system, as in Firefox on Android."""
    network: bool
    """True if the browser reaches the server over the network, as a phone does."""
    since: str
    last_seen: str


class LoginCodeRecord(NamedTuple):
    code: str
    """The code to type at the login page of the server."""
    link: str
    """A link that works for one login, for example as a QR code."""
    minutes: int
    """Lifetime of the code and the link."""


@op("owner", command="login list", aliases={"login": {}}, examples=("quaid login list",))
def login_list(brain: Brain) -> Named[tuple[Login, ...]]:
    """List the browsers that are logged in to the dashboard, the last used first."""
    logins = tuple(
        Login(
            session.id[:LOGIN_ID_LENGTH],
            session.device,
            not session.host.rpartition(":")[0].endswith("localhost"),
            _format_minute(session.since),
            _format_minute(session.last_seen),
        )
        for session in sessions_of(brain.settings, _moment(brain))
    )
    return Named("logins", logins, "No browser is logged in. `quaid web` opens one that is.")


@op("owner", command="login end", examples=("quaid login end 3f9a02c1", "quaid login end --all"))
def login_end(
    brain: Brain,
    id: Annotated[str, Arg("Id of the login, from `quaid login list`.", positional=True)] = "",
    all: Annotated[bool, Arg("End all logins, on every device.")] = False,
) -> Named[int]:
    """Log a browser out, or all of them. The next request of the browser is refused."""
    if bool(id) == all:
        raise InvalidArgument(name="id", problem="is needed, or --all")
    sessions = sessions_of(brain.settings, _moment(brain))
    ended = [session.id for session in sessions if all or session.id[:LOGIN_ID_LENGTH] == id]
    if id and not ended:
        raise NotFound(what="login", name=id, hint=" `quaid login list` shows them all.")
    for session in ended:
        end_session(brain.settings, session)
    return Named("ended", len(ended), f"Logged out {count_noun(len(ended), 'browser')}")


@op("owner", command="login code", examples=("quaid login code", "quaid login code --port 5000"))
def login_new_code(
    brain: Brain,
    port: Annotated[int, Arg("The port of the running server.", minimum=1, maximum=65535)] = 4321,
    url: Annotated[str, Arg("The address of the server for the link [this machine].")] = "",
) -> LoginCodeRecord:
    """Show a code to type at the dashboard's login page. It works once, and ends after five wrong tries."""
    moment, base = _moment(brain), url or f"http://127.0.0.1:{port}"
    link = f"{base}/login?code={login_code(brain.settings, port, moment, SHORT_CODE_SECONDS)}"
    code = short_login_code(brain.settings, port, moment)
    return LoginCodeRecord(f"{code[:4]} {code[4:]}", link, SHORT_CODE_SECONDS // 60)


# Functions for the HTTP server and shell completion. They are not operations.


def token_names(settings: Settings) -> list[str]:
    """Return the names of all tokens except the owner's."""
    return sorted(names_in_folder(os.path.join(_token_path(settings), "tokens")))


def owner_token_path(settings: Settings) -> str:
    """Return the path of the file with the owner's token. The file may not exist yet."""
    return os.path.join(_token_path(settings), OWNER_FILE_NAME)


def owner_token(settings: Settings) -> str:
    """Return the owner's token, creating it if necessary. Raise FileTrouble if other users can read its file."""
    path = owner_token_path(settings)
    with translate_os_errors(path):
        if os.name != "nt" and os.path.exists(path) and os.stat(path).st_mode & 0o077:
            problem = "it can be read by others; delete it, and a new one is made"
            raise FileTrouble(path=path, problem=problem)
    return _secret_in_file(settings, OWNER_FILE_NAME, new_token, TOKEN_PATTERN, "token")


def _secret_in_file(
    settings: Settings, name: str, create: Callable[[], str], pattern: re.Pattern[str], what: str
) -> str:
    """Return the secret in a file beside the owner's token. A missing file is created.

    Raise FileTrouble if its text does not match the pattern.
    """
    path = os.path.join(token_folder(settings, ""), name)
    with translate_os_errors(path):
        if not os.path.exists(path):
            with suppress(FileExistsError):  # another process created it first
                durable_files.write_file(path, create().encode(), exclusive=True)
        with open(path, encoding="ascii", errors="replace") as file:
            text = file.read(MAX_TOKEN_FILE_BYTES).strip()
    if not pattern.fullmatch(text):
        problem = f"there is no {what} in it; delete it, and a new one is made"
        raise FileTrouble(path=path, problem=problem)
    return text


class TokenGrant(NamedTuple):
    """The permissions of a token."""

    scope: Scope
    name: str = ""
    """The name of the token; empty for the owner's."""
    expires_at: str | None = None
    is_expired: bool = False
    grant: str = ""
    """Id of the OAuth grant to which an access token belongs; empty for other tokens."""
    resource: str = ""
    """The URL at which an OAuth access token is accepted; empty for other tokens, which every URL accepts."""
    only: tuple[str, ...] = ()


class TokenReader:
    """Looks up tokens in their files.

    A file is read again when it changes, so that changes take effect at once.
    """

    def __init__(self, settings: Settings) -> None:
        self._owner_path = owner_token_path(settings)
        self._folder = os.path.join(_token_path(settings), "tokens")
        self._grants = os.path.join(_token_path(settings), "grants")
        self._cache: dict[str, tuple[tuple[int, ...], dict[str, Any] | None]] = {}

    def find(self, token: str, moment: float) -> TokenGrant | None:
        """Return the permissions of a token, or None if it is unknown. Record its use unless it has expired.

        The token is compared with every stored token in constant time.
        """
        digest = token_hash(token)
        grant: TokenGrant | None = None
        if (owner := self._read(self._owner_path)) and hmac.compare_digest(digest, owner["sha256"]):
            grant = TokenGrant("owner")
        for name in names_in_folder(self._folder):
            path = os.path.join(self._folder, name + ".json")
            content = self._read(path)
            state = content and content.get("grant") and self._read(self._grant_file(content))
            if content and hmac.compare_digest(digest, (state or content).get("sha256", "")):
                is_expired = _is_expired(content, dates.timestamp(moment))
                is_expired = is_expired or bool(state and state["until"] <= moment)
                ends_at = dates.timestamp(state["until"]) if state else content.get("expires_at")
                found = TokenGrant(content["scope"], name, ends_at, is_expired)
                grant = grant or found._replace(
                    grant=content.get("grant", ""),
                    resource=content.get("resource", ""),
                    only=tuple(content.get("only", ())),
                )
                if not is_expired:
                    _record_use(path, moment)
        return grant

    def _grant_file(self, content: dict[str, Any]) -> str:
        return os.path.join(self._grants, content["grant"] + ".json")

    def _read(self, path: str) -> dict[str, Any] | None:
        try:
            status = os.stat(path)
        except OSError:
            self._cache.pop(path, None)
            return None
        stamp = (status.st_ino, status.st_ctime_ns, status.st_size, status.st_mode)
        if path not in self._cache or self._cache[path][0] != stamp:
            read = _read_owner_file if path == self._owner_path else _read_token_file
            read = read_grant_state if os.path.dirname(path) == self._grants else read
            self._cache[path] = (stamp, read(path))
        return self._cache[path][1]


def token_files(settings: Settings) -> dict[str, dict[str, Any] | None]:
    """Return the content of each token file by token name; None for an invalid file."""
    folder = os.path.join(_token_path(settings), "tokens")
    return {name: _read_token_file(os.path.join(folder, name + ".json")) for name in names_in_folder(folder)}


def grant_path(settings: Settings, grant: str) -> str:
    """Return the path of the file with the hashes of the current tokens of an OAuth grant."""
    return os.path.join(_token_path(settings), "grants", grant + ".json")


def read_grant_state(path: str) -> dict[str, Any] | None:
    """Return the token hashes of a grant with issue and expiry times, or None if the file is invalid."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.loads(file.read(MAX_TOKEN_FILE_BYTES))
        kinds = {"sha256": str, "refresh": str, "until": float, "since": float}
        return value if all(isinstance(value[name], kind) for name, kind in kinds.items()) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _read_owner_file(path: str) -> dict[str, Any] | None:
    try:
        if os.name != "nt" and os.stat(path).st_mode & 0o077:
            return None
        with open(path, encoding="ascii", errors="replace") as file:
            token = file.read(MAX_TOKEN_FILE_BYTES).strip()
    except OSError:
        return None
    return {"sha256": token_hash(token)} if TOKEN_PATTERN.fullmatch(token) else None


def _record_use(path: str, moment: float) -> None:
    """Record the last use of a token as the modification time of its file, at most once a minute."""
    with suppress(OSError):  # the folder may not be writable; accept the token anyway
        if abs(moment - os.stat(path).st_mtime) >= LAST_USE_SECONDS:
            os.utime(path, (moment, moment))


def _is_expired(content: dict[str, Any], now: str) -> bool:
    return str(content.get("expires_at", "9999")) <= now


def login_code(settings: Settings, port: int, moment: float, seconds: int = LOGIN_CODE_SECONDS) -> str:
    """Create and return a one-time login code for the server on this port."""
    folder = token_folder(settings, "logins")
    for name in os.listdir(folder):  # remove expired codes
        content = _read_token_file(os.path.join(folder, name))
        if not content or content["until"] < moment:
            unlink_token(os.path.join(folder, name))
    code = new_token()
    path = os.path.join(folder, token_hash(code))
    with translate_os_errors(path):
        grant = json.dumps({"port": port, "until": moment + seconds})
        durable_files.write_file(path, grant.encode(), exclusive=True)
    return code


def redeem_login_code(settings: Settings, port: int, moment: float, code: str) -> bool:
    """Return True if the code is valid, and invalidate it."""
    path = os.path.join(_token_path(settings), "logins", token_hash(code))
    content = _read_token_file(path)
    return bool(content and unlink_token(path) and content["port"] == port and moment <= content["until"])


def short_login_code(settings: Settings, port: int, moment: float) -> str:
    """Create and return a one-time login code of eight digits. It replaces the previous one."""
    code = f"{secrets.randbelow(10**8):08}"
    content = {
        "port": port,
        "until": moment + SHORT_CODE_SECONDS,
        "tries": SHORT_CODE_TRIES,
        "sha256": token_hash(code),
    }
    path = os.path.join(token_folder(settings, ""), SHORT_CODE_FILE)
    with translate_os_errors(path):
        durable_files.write_file(path, json.dumps(content).encode(), durable=False)
    return code


def redeem_short_code(settings: Settings, port: int, moment: float, code: str) -> bool:
    """Return True if the code is correct, and invalidate it. A wrong code uses up one of SHORT_CODE_TRIES.

    The file is renamed first, so that only one of several concurrent attempts is compared.
    """
    path = os.path.join(_token_path(settings), SHORT_CODE_FILE)
    claimed = f"{path}.{os.urandom(4).hex()}.claimed"
    try:
        os.rename(path, claimed)
        try:
            with open(claimed, encoding="utf-8") as file:
                content = json.loads(file.read(MAX_TOKEN_FILE_BYTES))
        finally:
            os.unlink(claimed)
        if moment > content["until"]:
            return False
        if content["port"] == port and hmac.compare_digest(content["sha256"], token_hash(code)):
            return True
        content["tries"] -= 1
        if content["tries"] > 0:
            durable_files.write_file(path, json.dumps(content).encode(), durable=False, exclusive=True)
    except (OSError, ValueError, KeyError, TypeError):  # there is no code, or a new one was created meanwhile
        pass
    return False


def certificate_files(settings: Settings, address: str, moment: float) -> tuple[str, str]:
    """Return the paths of the TLS certificate for --lan and of its key.

    Both are created anew if one is missing or half of the certificate's lifetime has passed.
    """
    folder = token_folder(settings, "")
    cert, key = os.path.join(folder, "lan-cert.pem"), os.path.join(folder, "lan-key.pem")
    with suppress(OSError):
        if moment - os.stat(cert).st_mtime < CERTIFICATE_DAYS * 86_400 / 2 and os.stat(key).st_size:
            return cert, key
    made = _certificate_by_openssl(settings, address) or _certificate_by_package(address)
    if not made:
        problem = "needs the program openssl, or the Python package cryptography, to make a certificate"
        raise InvalidArgument(
            name="--lan", problem=f"{problem}; install one, or run `quaid web --lan --insecure`"
        )
    for path, data in zip((key, cert), made, strict=True):
        with translate_os_errors(path):
            durable_files.write_file(path, data)
    return cert, key


def _certificate_by_openssl(settings: Settings, address: str) -> tuple[bytes, bytes] | None:
    """Return a new key and a self-signed certificate, or None if openssl is missing or fails."""
    program = git_cli.find_program("openssl", settings.environ)
    if not program:
        return None
    import tempfile

    command = [program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", str(CERTIFICATE_DAYS), "-subj", "/CN=Quaid", "-keyout", "key", "-out", "cert"]
    command += ["-addext", f"subjectAltName=IP:{address}", "-addext", "extendedKeyUsage=serverAuth"]
    with tempfile.TemporaryDirectory() as folder:
        done = git_cli.run_command(tuple(command), folder, settings.environ, seconds=TIMEOUT_SECONDS)
        if done.status != 0:
            return None
        paths = [os.path.join(folder, name) for name in ("key", "cert")]
        with open(paths[0], "rb") as key, open(paths[1], "rb") as cert:
            return key.read(), cert.read()


def _certificate_by_package(address: str) -> tuple[bytes, bytes] | None:
    """Return a new key and a self-signed certificate, or None if the package cryptography is missing."""
    from ipaddress import ip_address

    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
    except ImportError:
        return None
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Quaid")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=1))
    builder = builder.not_valid_after(now + timedelta(days=CERTIFICATE_DAYS))
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    builder = builder.add_extension(names, critical=False).add_extension(usage, critical=False)
    cert = builder.sign(key, hashes.SHA256())
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption()), cert.public_bytes(encoding)


def certificate_fingerprint(path: str) -> str:
    """Return the SHA-256 fingerprint of a certificate, as browsers show it."""
    with open(path, encoding="ascii") as file:
        lines = file.read().partition("-----BEGIN CERTIFICATE-----")[2].partition("-----END")[0]
    return hashlib.sha256(base64.b64decode(lines)).digest().hex(":").upper()


def check_host_name(name: str) -> str:
    """Return a host name in lower case.

    Raise InvalidArgument unless it is empty, localhost or NAME.localhost.
    """
    name = name.lower()
    if name and not LOCALHOST_NAME.fullmatch(name):
        raise InvalidArgument(
            name="--host-name", problem=f"must be localhost or NAME.localhost, not {name!r}"
        )
    return name


def web_host_name(settings: Settings) -> str:
    """Return the host name under which browsers reach the dashboard of this memory, creating it if necessary.

    The name is random, so that other local servers do not receive its cookies. See docs/decisions/094.
    """

    def new_name() -> str:
        return f"quaid-{base64.b32encode(os.urandom(HOST_NAME_BYTES)).decode().lower()}.localhost"

    return _secret_in_file(settings, HOST_FILE_NAME, new_name, HOST_NAME, "name")


class BrowserSession(NamedTuple):
    id: str
    """Hash of the cookie."""
    host: str
    """The host and port to which the cookie belongs."""
    device: str
    since: float
    last_seen: float


def begin_session(settings: Settings, host: str, device: str, moment: float) -> str:
    """Create a browser session and return the secret for its cookie. Only the hash of the secret is stored.

    If there are MAX_SESSIONS already, the least recently used one ends.
    """
    folder = token_folder(settings, "sessions")
    for session in sessions_of(settings, moment)[MAX_SESSIONS - 1 :]:
        unlink_token(os.path.join(folder, session.id + ".json"))
    secret = new_token()
    content = {"host": host, "device": device, "since": moment, "owner": token_hash(owner_token(settings))}
    path = os.path.join(folder, token_hash(secret) + ".json")
    with translate_os_errors(path):
        durable_files.write_file(path, json.dumps(content).encode(), exclusive=True)
        os.utime(path, (moment, moment))
    return secret


def find_session(settings: Settings, host: str, secret: str, moment: float) -> BrowserSession | None:
    """Return the session of a cookie that was sent to this host, or None. Record that the session was used.

    The session is looked up by the hash of the cookie, so that the timing of the lookup leaks nothing.
    """
    session = _read_session(settings, token_hash(secret), moment)
    if session is None or session.host != host:
        return None
    if moment - session.last_seen > SEEN_SECONDS:
        with suppress(OSError):  # the session has just ended, or the folder is not writable
            os.utime(_session_path(settings, session.id), (moment, moment))
    return session


def sessions_of(settings: Settings, moment: float) -> list[BrowserSession]:
    """Return the open browser sessions, most recently used first. Files of ended sessions are removed."""
    sessions = []
    for id in names_in_folder(os.path.join(_token_path(settings), "sessions")):
        if session := _read_session(settings, id, moment):
            sessions.append(session)
        else:
            unlink_token(_session_path(settings, id))
    return sorted(sessions, key=lambda session: (-session.last_seen, session.id))


def end_session(settings: Settings, id: str) -> bool:
    """End a session. Return False if there is no such session."""
    return bool(id) and unlink_token(_session_path(settings, id))


def _session_path(settings: Settings, id: str) -> str:
    return os.path.join(_token_path(settings), "sessions", id + ".json")


def _read_session(settings: Settings, id: str, moment: float) -> BrowserSession | None:
    """Return a session, or None if it has expired, or if the owner's token was changed or deleted."""
    path = _session_path(settings, id)
    try:
        last_seen = os.stat(path).st_mtime
        with open(path, encoding="utf-8") as file:
            content = json.loads(file.read(MAX_TOKEN_FILE_BYTES))
        with open(owner_token_path(settings), encoding="utf-8") as file:
            owner = token_hash(file.read(MAX_TOKEN_FILE_BYTES).strip())
        session = BrowserSession(id, content["host"], content["device"], content["since"], last_seen)
        until = min(session.since + MAX_SESSION_SECONDS, last_seen + IDLE_SESSION_SECONDS)
        is_open = moment <= until and hmac.compare_digest(content["owner"], owner)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return session if is_open else None


def check_token_name(name: str) -> None:
    """Raise InvalidArgument unless a new token may have this name."""
    _check_name(name)
    if name in RESERVED_NAMES:
        raise InvalidArgument(name="name", problem=f"{name} stands for you; choose another name")


def _check_name(name: str) -> None:
    if not TOKEN_NAME.fullmatch(name):
        problem = "must be lower-case a-z, 0-9, '-' and '_', at most 40 of them, as in phone"
        raise InvalidArgument(name="name", problem=problem)


def memory_fingerprint(settings: Settings) -> str:
    """Return a hash of the database path. It is equal for two programs that use the same memory."""
    return hashlib.sha256(os.fsencode(os.path.realpath(settings.db_path))).hexdigest()[:16]


def _token_path(settings: Settings) -> str:
    return os.path.join(settings.home, "web", memory_fingerprint(settings))


def token_folder(settings: Settings, name: str) -> str:
    """Return a folder beside the owner's token, creating it if necessary."""
    folder = os.path.join(_token_path(settings), name) if name else _token_path(settings)
    with translate_os_errors(folder):
        durable_files.make_folders(folder)
    return folder


def names_in_folder(folder: str) -> list[str]:
    """Return the names of the JSON files in a folder, without the extension."""
    try:
        return [name[:-5] for name in os.listdir(folder) if name.endswith(".json")]
    except OSError:
        return []


def _read_token_file(path: str) -> dict[str, Any] | None:
    """Return the content of the file of a token or a login code, or None if it is missing or invalid."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.loads(file.read(MAX_TOKEN_FILE_BYTES))
    except (OSError, ValueError):
        return None
    if not isinstance(value, dict):
        return None
    if "until" in value:
        return value if set(value) == {"port", "until"} else None
    secret = GRANT_FIELDS if "grant" in value else {"sha256"}
    is_token = set(value) - {"expires_at", "only"} == {"scope", "created_at"} | secret
    is_valid = is_token and value["scope"] in ("read", "write")
    is_valid = is_valid and all(isinstance(value[name], str) for name in secret)
    if "grant" in value and not (is_valid and GRANT_ID.fullmatch(value["grant"]) and "expires_at" in value):
        return None
    only = value.get("only", [""])
    if not (isinstance(only, list) and only and all(isinstance(item, str) for item in only)):
        return None
    expires_at = value.get("expires_at", "9999-12-31T23:59:59Z")
    return value if is_valid and isinstance(expires_at, str) and dates.is_timestamp(expires_at) else None


def _last_used(path: str) -> str | None:
    try:
        moment = datetime.fromtimestamp(os.stat(path).st_mtime, UTC)
    except OSError:
        return None
    return _format_minute(moment.timestamp()) if moment.timestamp() else None


def _moment(brain: Brain) -> float:
    return datetime.fromisoformat(brain.now()).timestamp()


def _format_minute(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:00Z")


def new_token() -> str:
    """Return a new token of 256 random bits."""
    return "qd_" + _random_text(TOKEN_BYTES)


def token_hash(token: str) -> str:
    """Return the SHA-256 of a token. A plain hash is enough, because tokens have 256 random bits."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def unlink_token(path: str) -> bool:
    """Delete a file. Return False if it does not exist or cannot be deleted."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True


# OAuth
#
# Client registrations are not stored: the id of a client contains its name and redirect URIs, signed with a
# key of this memory. A grant consists of a token file, which never changes, and a state file with the hashes
# of its current access and refresh tokens. Deleting the token file ends the grant: a concurrent refresh can
# write only the state file, which has no effect without the token file.

ACCESS_SECONDS = 3_600
LATE_REFRESH_SECONDS = 10
"""A replaced refresh token that is reused within this time is only refused. After this time, its reuse also ends
the grant.

The delay allows two processes of one client to refresh at the same time.
"""
KEY_FILE = "client-key"
SIGNATURE_BYTES = 16
GRANT_ID_BYTES = 16
GRANT_ID_LENGTH = 22
REFRESH_PREFIX = "qr_"


class OAuthClient(NamedTuple):
    """A registered OAuth client. The name is chosen by the client and not verified."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]


class ApprovedAccess(NamedTuple):
    """The access that the owner granted to an OAuth client."""

    client: OAuthClient
    redirect_uri: str
    name: str
    """Name of the token, which is also recorded as the author of the client's changes."""
    scope: Literal["read", "write"]
    resource: str
    """The URL of the server at which the tokens are accepted."""
    seconds: int
    only: tuple[str, ...] = ()
    """The parts of the memory that the client can access; () for the whole memory."""


class IssuedTokens(NamedTuple):
    """New tokens of a grant. Only their hashes are stored."""

    grant: str
    scope: Literal["read", "write"]
    access: str
    refresh: str
    seconds: int
    """Lifetime of the access token."""


def register_client(settings: Settings, name: str, redirect_uris: tuple[str, ...]) -> OAuthClient:
    """Return a new registration. The caller must have checked the name and the redirect URIs."""
    content = [name, list(redirect_uris), _random_text(6)]
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return OAuthClient(f"{_encode(_signature(settings, data))}.{_encode(data)}", name, redirect_uris)


def find_client(settings: Settings, id: str) -> OAuthClient | None:
    """Return the registration that a client id contains, or None if this memory has not signed it."""
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
    """Return the token name of the client's earlier grant, or an unused name based on the client's name."""
    tokens = token_files(settings)
    for name, content in tokens.items():
        if content and content.get("client_id") == token_hash(client.id):
            return name
    base = re.sub(r"[^a-z0-9]+", "-", client.name.lower()).strip("-")[:34].strip("-") or "program"
    for number in range(1, MAX_TOKENS + 2):
        name = base if number == 1 else f"{base}-{number}"
        if name not in tokens and name not in RESERVED_NAMES:
            break
    return name


def check_access(settings: Settings, access: ApprovedAccess) -> None:
    """Raise InvalidArgument unless a token with the chosen name can be created."""
    check_token_name(access.name)
    tokens = token_files(settings)
    taken = tokens.get(access.name)
    is_own = taken is not None and taken.get("client_id") == token_hash(access.client.id)
    if access.name in tokens and not is_own:
        raise InvalidArgument(name="name", problem=f"{access.name} is taken by another token; choose another")
    if len(tokens) >= MAX_TOKENS and not is_own:
        problem = f"there are {MAX_TOKENS} tokens already; revoke some"
        raise InvalidArgument(name="name", problem=problem)


def begin_grant(settings: Settings, access: ApprovedAccess, moment: float) -> IssuedTokens:
    """Create the grant that the owner approved. It replaces earlier grants of the client."""
    check_access(settings, access)
    folder = token_folder(settings, "tokens")
    client = token_hash(access.client.id)
    for name, earlier in token_files(settings).items():
        if earlier and earlier.get("client_id") == client:
            unlink_token(os.path.join(folder, name + ".json"))
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

    Reusing a refresh token that was replaced ends the grant, because the token may have been stolen. See
    LATE_REFRESH_SECONDS.
    """
    content = _find_grant(settings, client_id, _grant_of(token))
    if content is None or content["resource"] != resource or content["expires_at"] <= dates.timestamp(moment):
        return None
    state = read_grant_state(grant_path(settings, content["grant"]))
    if state is None or not hmac.compare_digest(state["refresh"], token_hash(token)):
        if state is None or moment - state["since"] > LATE_REFRESH_SECONDS:
            end_grant(settings, content["grant"])
        return None
    return _issue(settings, content, moment)


def revoke_token(settings: Settings, client_id: str, token: str) -> None:
    """End the grant to which an access or refresh token belongs, if it is a grant of this client."""
    digest = token_hash(token)
    for content in token_files(settings).values():
        if content and content.get("client_id") == token_hash(client_id):
            state = read_grant_state(grant_path(settings, content["grant"]))
            is_access = bool(state and hmac.compare_digest(state["sha256"], digest))
            if is_access or content["grant"] == _grant_of(token):
                end_grant(settings, content["grant"])


def end_grant(settings: Settings, grant: str) -> None:
    """Delete the files of a grant, which invalidates its tokens at once."""
    for name, content in token_files(settings).items():
        if content and content.get("grant") == grant:
            unlink_token(os.path.join(token_folder(settings, "tokens"), name + ".json"))
    unlink_token(grant_path(settings, grant))


def _issue(settings: Settings, content: dict[str, Any], moment: float) -> IssuedTokens:
    """Create tokens for a grant and store their hashes."""
    access, refresh = new_token(), f"{REFRESH_PREFIX}{content['grant']}{_random_text(32)}"
    seconds = min(ACCESS_SECONDS, int(dates.seconds_of(content["expires_at"]) - moment))
    state = {
        "sha256": token_hash(access),
        "refresh": token_hash(refresh),
        "until": moment + seconds,
        "since": moment,
    }
    token_folder(settings, "grants")
    path = grant_path(settings, content["grant"])
    with translate_os_errors(path):
        durable_files.write_file(path, json.dumps(state).encode())
    return IssuedTokens(content["grant"], content["scope"], access, refresh, seconds)


def _grant_of(token: str) -> str:
    """Return the id of the grant to which a refresh token belongs, or "" if it is not a refresh token."""
    return token[3 : 3 + GRANT_ID_LENGTH] if token.startswith(REFRESH_PREFIX) else ""


def _find_grant(settings: Settings, client_id: str, grant: str) -> dict[str, Any] | None:
    client = token_hash(client_id)
    for content in token_files(settings).values():
        if content and content.get("grant") == grant and content["client_id"] == client:
            return content
    return None


def _remove_ended(settings: Settings) -> None:
    """Remove the state files of grants that have ended."""
    alive = {content.get("grant") for content in token_files(settings).values() if content}
    for grant in names_in_folder(token_folder(settings, "grants")):
        if grant not in alive:
            unlink_token(grant_path(settings, grant))


def redirect_place(uri: str) -> str:
    """Return the host of a redirect URI, or its scheme if it is not an HTTP address."""
    address = urlsplit(uri)
    return address.hostname or "" if address.scheme in ("http", "https") else f"{address.scheme}://"


def _signature(settings: Settings, data: bytes) -> bytes:
    key = _secret_in_file(settings, KEY_FILE, new_token, TOKEN_PATTERN, "key")
    return hmac.new(key.encode(), data, hashlib.sha256).digest()[:SIGNATURE_BYTES]


def _random_text(size: int) -> str:
    return _encode(os.urandom(size))


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decode(text: str) -> bytes:
    """Decode URL-safe Base64.

    Raise ValueError unless the text is exactly what `_encode` returns for the result.
    """
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if _encode(data) != text:
        raise ValueError("not in its only form")
    return data
