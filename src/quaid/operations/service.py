"""The background service: the systemd or launchd unit, and the tokens for HTTP access."""

import base64
import hashlib
import hmac
import json
import os
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple

from quaid.app import Brain
from quaid.clients import config_files
from quaid.clients.config_files import ConfigChange
from quaid.config import Settings
from quaid.errors import AlreadyExists, FileTrouble, InvalidArgument, NoService, NotFound, ServiceMissing
from quaid.formats import config_text
from quaid.kb import git as git_cli
from quaid.operations.clients import launch_command
from quaid.operations.registry import Arg, Named, Scope, op
from quaid.storage import files as durable_files
from quaid.storage.sqlite.errors import translate_os_errors

UNIT_NAME = "quaid.service"
LAUNCHD_LABEL = "quaid.daemon"
DESCRIPTION = "Quaid: memory in the browser and over HTTP"
TIMEOUT_SECONDS = 30
PASSED_VARIABLES = ("QUAID_CONFIG", "QUAID_BACKGROUND_EMBEDDING")
MAX_LOG_BYTES = 256 * 1024

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
"""Commands of the service manager for each act. As in a makefile, a command with a leading "-" may fail."""


class DaemonRecord(NamedTuple):
    act: Literal["installed", "started", "stopped", "uninstalled"]
    done: bool
    path: str
    """The unit file or property list."""
    changed: bool
    """True if the unit file or property list was written or removed."""
    to_run: tuple[str, ...]
    """Commands to run manually if the service manager could not be used."""
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
) -> DaemonRecord:
    """Install a service for the browser pages and HTTP: a systemd user unit or a launchd agent."""
    _ = brain.db
    keeper = _service_manager(brain)
    before = config_files.read_config(keeper.path)
    change = ConfigChange(keeper.path, before, unit_text(brain, keeper, port))
    if change.needed:
        config_files.write_config(change, brain.now())
    return _run_steps(brain, keeper, "installed", change.needed)


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
    keeper = _installed(brain)
    record = _run_steps(brain, keeper, "uninstalled", True)
    os.unlink(keeper.path)
    if keeper.kind == "systemd" and record.done:
        _run_manager(brain, keeper, ("daemon-reload",))
    elif keeper.kind == "systemd":
        # The service manager is not available, so the symlink for starting the unit at login is removed here,
        # as `disable` would do. The user has to stop the process.
        link = os.path.join(os.path.dirname(keeper.path), "default.target.wants", UNIT_NAME)
        if os.path.islink(link):
            os.unlink(link)
        left = (("stop", UNIT_NAME), ("daemon-reload",))
        return record._replace(done=True, to_run=_shell_lines(keeper, left))
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
        keeper = _service_manager(brain)
    except NoService as error:
        return DaemonStatusRecord("unknown", "", str(error))
    if not os.path.exists(keeper.path):
        return DaemonStatusRecord("not installed", keeper.path, "`quaid daemon install` sets it up")
    if not keeper.program:
        return DaemonStatusRecord("unknown", keeper.path, f"the program of {keeper.kind} is not there")
    if keeper.kind == "launchd":
        status, output = _run_manager(brain, keeper, ("print", _launchd_target()))
        running = status == 0 and "state = running" in output
        return DaemonStatusRecord("running" if running else "stopped", keeper.path, "")
    status, output = _run_manager(brain, keeper, ("is-active", UNIT_NAME))
    word = output.strip().partition("\n")[0]
    if status == 0 and word == "active":
        return DaemonStatusRecord("running", keeper.path, word)
    if word in ("inactive", "failed", "deactivating", "activating"):
        return DaemonStatusRecord("stopped", keeper.path, word)
    return DaemonStatusRecord("unknown", keeper.path, word)


@op("owner", command="daemon logs", examples=("quaid daemon logs", "quaid daemon logs --lines 200"))
def daemon_logs(
    brain: Brain, lines: Annotated[int, Arg("How many.", minimum=1, maximum=10_000)] = 50
) -> Named[tuple[str, ...]]:
    """Show the log of the service: starts, stops and failures, never page texts or questions."""
    keeper = _installed(brain)
    if keeper.kind == "launchd":
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


def unit_text(brain: Brain, keeper: ServiceManager, port: int) -> str:
    """Return the text of the unit file or property list."""
    started = launch_command(brain)
    command = (started.command, *started.args, "--db", started.db, "serve", "--http", "--port", str(port))
    environ = brain.settings.environ
    passed = {name: environ[name] for name in PASSED_VARIABLES if environ.get(name)}
    if keeper.kind == "launchd":
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
    keeper = _service_manager(brain)
    if not os.path.exists(keeper.path):
        raise ServiceMissing(path=keeper.path)
    return keeper


def _run_steps(
    brain: Brain,
    keeper: ServiceManager,
    act: Literal["installed", "started", "stopped", "uninstalled"],
    changed: bool,
) -> DaemonRecord:
    steps = STEPS[keeper.kind, act]
    names = {"target": _launchd_target(), "domain": _launchd_domain(), "path": keeper.path}
    commands = [
        tuple(word.format(**names) for word in step.removeprefix("-").split())  # the path may contain spaces
        for step in steps
    ]
    problem = "" if keeper.program else f"the program of {keeper.kind} is not there"
    for step, words in zip(steps, commands, strict=True) if keeper.program else ():
        status, printed = _run_manager(brain, keeper, words)
        if status != 0 and not step.startswith("-"):
            problem = _first_line(printed) or f"it ended with {status}"
            break
    return DaemonRecord(
        act, not problem, keeper.path, changed, _shell_lines(keeper, commands) if problem else (), problem
    )


def _shell_lines(keeper: ServiceManager, commands: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the commands as typed in a shell."""
    name = "systemctl --user" if keeper.kind == "systemd" else "launchctl"
    return tuple(f"{name} {shlex.join(words)}" for words in commands)


def _run_manager(brain: Brain, keeper: ServiceManager, words: tuple[str, ...]) -> tuple[int, str]:
    head = (keeper.program, "--user") if keeper.kind == "systemd" else (keeper.program,)
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
MAX_TOKEN_FILE_BYTES = 4_096
OWNER_FILE_NAME = "owner-token"
TOKEN_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
TOKEN_PATTERN = re.compile(r"qd_[A-Za-z0-9_-]{43}")

EMPTY_LOG = "The log is empty"
TokenName = Annotated[str, Arg("Name of the token, as in phone.", positional=True)]


class Token(NamedTuple):
    name: str
    scope: Literal["read", "write"]
    created_at: str
    last_used_at: str | None = None
    """Time of the last use, rounded down to the minute, or None if the token was never used."""


class TokenRecord(NamedTuple):
    name: str
    scope: Literal["read", "write"]
    token: str
    """The token. It is shown only once, because only its hash is stored."""


class TokensRecord(NamedTuple):
    tokens: tuple[Token, ...]
    owner_file: str
    """Path of the file with the owner's token. `quaid web` creates it."""


@op(
    "owner",
    command="token create",
    examples=("quaid token create phone", "quaid token create laptop --scope write"),
)
def token_create(
    brain: Brain,
    name: TokenName,
    scope: Annotated[Literal["read", "write"], Arg("What the token allows.")] = "read",
) -> TokenRecord:
    """Create a token for an HTTP client. It is shown once; only its hash is stored."""
    _check_name(name)
    _ = brain.db  # raises an error if there is no memory
    folder = _token_folder(brain.settings, "tokens")
    if len(_names_in_folder(folder)) >= MAX_TOKENS:
        raise InvalidArgument(name="name", problem=f"there are {MAX_TOKENS} tokens already; revoke some")
    token = _new_token()
    content = {"scope": scope, "created_at": brain.now(), "sha256": _token_hash(token)}
    path = os.path.join(folder, name + ".json")
    with translate_os_errors(path):
        try:
            durable_files.write_file(path, json.dumps(content).encode(), exclusive=True)
            os.utime(path, (0, 0))  # mtime 0 means never used
        except FileExistsError:
            hint = f"`quaid token revoke {name}` ends it; or choose another name."
            raise AlreadyExists(path=f"A token {name}", hint=hint) from None
    return TokenRecord(name, scope, token)


@op("owner", command="token list", aliases={"token": {}}, examples=("quaid token list",))
def token_list(brain: Brain) -> TokensRecord:
    """List the tokens with their scope, creation date and last use."""
    folder = os.path.join(_token_path(brain.settings), "tokens")  # created with the first token
    paths = {name: os.path.join(folder, name + ".json") for name in _names_in_folder(folder)}
    files = [(name, path, _read_token_file(path)) for name, path in paths.items()]
    tokens = [
        Token(name, content["scope"], content["created_at"], _last_used(path))
        for name, path, content in files
        if content
    ]
    return TokensRecord(tuple(sorted(tokens)), owner_token_path(brain.settings))


@op("owner", command="token revoke", examples=("quaid token revoke phone",))
def token_revoke(brain: Brain, name: TokenName) -> Named[str]:
    """Revoke a token. Requests with it are refused from then on."""
    _check_name(name)
    path = os.path.join(_token_folder(brain.settings, "tokens"), name + ".json")
    with translate_os_errors(path):
        try:
            os.unlink(path)
        except FileNotFoundError:
            raise NotFound(what="token", name=name, hint=" `quaid token list` shows them all.") from None
    return Named("name", name, f"Revoked {name}; requests with it are refused")


# Not operations: used by the HTTP server and shell completion


def token_names(settings: Settings) -> list[str]:
    """Return the names of all tokens except the owner's."""
    return sorted(_names_in_folder(os.path.join(_token_path(settings), "tokens")))


def owner_token_path(settings: Settings) -> str:
    """Return the path of the file with the owner's token. The file may not exist yet."""
    return os.path.join(_token_path(settings), OWNER_FILE_NAME)


def owner_token(settings: Settings) -> str:
    """Return the owner's token, creating it if necessary. A file that other users can read is refused."""
    _token_folder(settings, "")
    path = owner_token_path(settings)
    with translate_os_errors(path):
        try:
            durable_files.write_file(path, _new_token().encode(), exclusive=True)
        except FileExistsError:
            pass
        if os.name != "nt" and os.stat(path).st_mode & 0o077:
            problem = "it can be read by others; delete it, and a new one is made"
            raise FileTrouble(path=path, problem=problem)
        with open(path, encoding="ascii", errors="replace") as file:
            token = file.read(MAX_TOKEN_FILE_BYTES).strip()
    if not TOKEN_PATTERN.fullmatch(token):
        raise FileTrouble(path=path, problem="there is no token in it; delete it, and a new one is made")
    return token


def scope_of_token(settings: Settings, owner: str, token: str) -> Scope | None:
    """Return the scope of a token, or None if the token is invalid. Record that the token was used.

    The token is compared with every stored token in constant time.
    """
    scope: Scope | None = None
    digest = _token_hash(token)
    if hmac.compare_digest(digest, _token_hash(owner)):
        scope = "owner"
    folder = os.path.join(_token_path(settings), "tokens")
    for name in _names_in_folder(folder):
        path = os.path.join(folder, name + ".json")
        content = _read_token_file(path)
        if content and hmac.compare_digest(digest, content["sha256"]):
            scope = scope or content["scope"]
            with suppress(OSError):  # the folder may not be writable; accept the token anyway
                # The last use is recorded as the modification time, so that the content never changes.
                os.utime(path)
    return scope


def login_code(settings: Settings, port: int, moment: float) -> str:
    """Create a code for one login at the server on this port, valid for LOGIN_CODE_SECONDS."""
    folder = _token_folder(settings, "logins")
    for name in os.listdir(folder):  # remove expired codes
        content = _read_token_file(os.path.join(folder, name))
        if not content or content["until"] < moment:
            _unlink_token(os.path.join(folder, name))
    code = _new_token()
    path = os.path.join(folder, _token_hash(code))
    with translate_os_errors(path):
        grant = json.dumps({"port": port, "until": moment + LOGIN_CODE_SECONDS})
        durable_files.write_file(path, grant.encode(), exclusive=True)
    return code


def redeem_login_code(settings: Settings, port: int, moment: float, code: str) -> bool:
    """Return True if the code is valid, and invalidate it."""
    path = os.path.join(_token_path(settings), "logins", _token_hash(code))
    content = _read_token_file(path)
    return bool(content and _unlink_token(path) and content["port"] == port and moment <= content["until"])


def _check_name(name: str) -> None:
    if not TOKEN_NAME.fullmatch(name):
        problem = "must be lower-case a-z, 0-9, '-' and '_', at most 40 of them, as in phone"
        raise InvalidArgument(name="name", problem=problem)


def memory_fingerprint(settings: Settings) -> str:
    """Return a hash of the database path, by which two programs can tell that they use the same memory."""
    return hashlib.sha256(os.fsencode(os.path.realpath(settings.db_path))).hexdigest()[:16]


def _token_path(settings: Settings) -> str:
    return os.path.join(settings.home, "web", memory_fingerprint(settings))


def _token_folder(settings: Settings, name: str) -> str:
    folder = os.path.join(_token_path(settings), name) if name else _token_path(settings)
    with translate_os_errors(folder):
        durable_files.make_folders(folder)
    return folder


def _names_in_folder(folder: str) -> list[str]:
    try:
        return [name[:-5] for name in os.listdir(folder) if name.endswith(".json")]
    except OSError:
        return []


def _read_token_file(path: str) -> dict[str, Any] | None:
    """Return the content of a token file, or None if it is missing or invalid."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.loads(file.read(MAX_TOKEN_FILE_BYTES))
    except (OSError, ValueError):
        return None
    if not isinstance(value, dict):
        return None
    expected = {"port", "until"} if "until" in value else {"scope", "created_at", "sha256"}
    return value if set(value) == expected and value.get("scope") in (None, "read", "write") else None


def _last_used(path: str) -> str | None:
    try:
        moment = datetime.fromtimestamp(os.stat(path).st_mtime, UTC)
    except OSError:
        return None
    if not moment.timestamp():
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:00Z")


def _new_token() -> str:
    return "qd_" + base64.urlsafe_b64encode(os.urandom(TOKEN_BYTES)).decode().rstrip("=")


def _token_hash(token: str) -> str:
    """Return the SHA-256 of a token. A plain hash is enough, because tokens have 256 random bits."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def _unlink_token(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True
