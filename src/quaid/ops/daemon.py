"""The service: one process for browser, MCP over HTTP, watching and embedding, kept alive by the system.

Knows systemd's user units and launchd's agents by their files and their programs. The process itself is `quaid serve
--http`, which knows nothing of this.
"""

import os
import shlex
from typing import Annotated, Literal, NamedTuple

from quaid.brain import Brain
from quaid.clients import config_files
from quaid.clients.config_files import ConfigChange
from quaid.errors import NoService, ServiceMissing
from quaid.formats import config_text
from quaid.kb import git as git_cli
from quaid.ops.clients import launch
from quaid.ops.register import Arg, op

UNIT = "quaid.service"
LABEL = "quaid.daemon"
DESCRIPTION = "Quaid: memory in the browser and over HTTP"
SECONDS = 30
PASSED_ON = ("QUAID_CONFIG", "QUAID_BACKGROUND_EMBEDDING")
LARGEST_LOG = 256 * 1024

State = Literal["running", "stopped", "not installed", "unknown"]


class Step(NamedTuple):
    """One call of the keeper's program."""

    words: tuple[str, ...]
    counts: bool = True  # whether its failure is one: what was not running need not be stopped


class DaemonRecord(NamedTuple):
    act: Literal["installed", "started", "stopped", "uninstalled"]
    done: bool
    path: str
    """The unit or property list."""
    changed: bool
    """Whether that file was written or removed now."""
    to_run: tuple[str, ...]
    """What is left to type when the system could not be asked."""
    problem: str

    @property
    def exit_status(self) -> int:
        return 0 if self.done else 1


class DaemonStatusRecord(NamedTuple):
    state: State
    path: str
    detail: str

    @property
    def exit_status(self) -> int:
        return ("running", "stopped", "not installed", "unknown").index(self.state)


class DaemonLogsRecord(NamedTuple):
    lines: tuple[str, ...]


class Keeper(NamedTuple):
    """Whoever keeps programs running on this machine."""

    kind: Literal["systemd", "launchd"]
    program: str  # "" when it is not there
    path: str


@op("owner", command="daemon install", examples=("quaid daemon install", "quaid daemon install --port 5000"))
def daemon_install(
    brain: Brain,
    port: Annotated[int, Arg("Where it listens, on this machine alone.", minimum=1, maximum=65535)] = 4321,
) -> DaemonRecord:
    """Keep the memory in the browser and over HTTP from now on: a systemd user unit or a launchd agent."""
    _ = brain.db
    keeper = _keeper(brain)
    before = config_files.read_config(keeper.path)
    change = ConfigChange(keeper.path, before, text(brain, keeper, port))
    if change.needed:
        config_files.write_config(change, brain.now())
    steps: tuple[Step, ...] = (Step(("daemon-reload",)), Step(("enable", UNIT)), Step(("restart", UNIT)))
    if keeper.kind == "launchd":
        steps = (Step(("bootout", _target()), counts=False), _bootstrap(keeper))
    return _carried_out(brain, keeper, "installed", change.needed, steps)


@op("owner", command="daemon start", examples=("quaid daemon start",))
def daemon_start(brain: Brain) -> DaemonRecord:
    """Start the service that `quaid daemon install` made."""
    keeper = _installed(brain)
    steps: tuple[Step, ...] = (Step(("start", UNIT)),)
    if keeper.kind == "launchd":
        steps = (_bootstrap(keeper, counts=False), Step(("kickstart", _target())))
    return _carried_out(brain, keeper, "started", False, steps)


@op("owner", command="daemon stop", examples=("quaid daemon stop",))
def daemon_stop(brain: Brain) -> DaemonRecord:
    """Stop the service until it is started again, or the next login."""
    keeper = _installed(brain)
    steps = (Step(("stop", UNIT) if keeper.kind == "systemd" else ("bootout", _target())),)
    return _carried_out(brain, keeper, "stopped", False, steps)


@op("owner", command="daemon uninstall", examples=("quaid daemon uninstall",))
def daemon_uninstall(brain: Brain) -> DaemonRecord:
    """Stop the service and remove it. The memory and the tokens stay."""
    keeper = _installed(brain)
    steps = (Step(("disable", "--now", UNIT)),)
    if keeper.kind == "launchd":
        steps = (Step(("bootout", _target()), counts=False),)
    record = _carried_out(brain, keeper, "uninstalled", True, steps)
    os.unlink(keeper.path)
    if keeper.kind == "systemd" and record.done:
        _run(brain, keeper, ("daemon-reload",))
    elif keeper.kind == "systemd":
        # Nobody could be asked. What enabled it goes too; what is left is to end the process, if there is one.
        _disable(keeper)
        left = (Step(("stop", UNIT)), Step(("daemon-reload",)))
        return record._replace(done=True, to_run=_typed(keeper, left))
    return record._replace(done=True)


@op(
    "owner",
    command="daemon status",
    aliases={"daemon": {}},
    examples=("quaid daemon status",),
)
def daemon_status(brain: Brain) -> DaemonStatusRecord:
    """Say how the service is. Exits 0 when it runs, 1 stopped, 2 not installed, 3 when nobody can tell."""
    try:
        keeper = _keeper(brain)
    except NoService as error:
        return DaemonStatusRecord("unknown", "", str(error))
    if not os.path.exists(keeper.path):
        return DaemonStatusRecord("not installed", keeper.path, "`quaid daemon install` sets it up")
    if not keeper.program:
        return DaemonStatusRecord("unknown", keeper.path, f"the program of {keeper.kind} is not there")
    if keeper.kind == "launchd":
        status, said = _run(brain, keeper, ("print", _target()))
        running = status == 0 and "state = running" in said
        return DaemonStatusRecord("running" if running else "stopped", keeper.path, "")
    status, said = _run(brain, keeper, ("is-active", UNIT))
    word = said.strip().partition("\n")[0]
    if status == 0 and word == "active":
        return DaemonStatusRecord("running", keeper.path, word)
    if word in ("inactive", "failed", "deactivating", "activating"):
        return DaemonStatusRecord("stopped", keeper.path, word)
    return DaemonStatusRecord("unknown", keeper.path, word)


@op("owner", command="daemon logs", examples=("quaid daemon logs", "quaid daemon logs --lines 200"))
def daemon_logs(
    brain: Brain, lines: Annotated[int, Arg("How many.", minimum=1, maximum=10_000)] = 50
) -> DaemonLogsRecord:
    """Show what the service wrote: starts, stops and failures, never a text or a question."""
    keeper = _installed(brain)
    if keeper.kind == "launchd":
        return DaemonLogsRecord(tuple(_tail(_log(brain), lines)))
    journal = _found("journalctl", brain)
    if not journal:
        raise NoService(problem="journalctl is not there", remedy="`quaid daemon status` says how it is")
    done = git_cli.run_command(
        (journal, "--user", "-u", UNIT, "-n", str(lines), "-o", "short-iso", "--no-pager"),
        brain.settings.user_home,
        brain.settings.environ,
        seconds=SECONDS,
    )
    if done.status != 0:
        raise NoService(
            problem=_first(done.err) or "journalctl failed", remedy="Try again after logging in anew"
        )
    return DaemonLogsRecord(tuple(done.out.decode("utf-8", "replace").splitlines()))


def text(brain: Brain, keeper: Keeper, port: int) -> str:
    """The unit or property list."""
    started = launch(brain)
    command = (started.command, *started.args, "--db", started.db, "serve", "--http", "--port", str(port))
    environ = brain.settings.environ
    passed = {name: environ[name] for name in PASSED_ON if environ.get(name)}
    if keeper.kind == "launchd":
        return config_text.launchd_plist(command, LABEL, passed, _log(brain))
    return config_text.systemd_unit(command, DESCRIPTION, passed)


def _keeper(brain: Brain) -> Keeper:
    settings = brain.settings
    home = settings.user_home
    if settings.platform == "darwin":
        path = os.path.join(home, "Library", "LaunchAgents", f"{LABEL}.plist")
        return Keeper("launchd", _found("launchctl", brain), path)
    if settings.platform != "linux":
        remedy = "Have `quaid serve --http` started by whatever starts programs here"
        raise NoService(problem="Services are set up with systemd or launchd only", remedy=remedy)
    chosen = settings.environ.get("XDG_CONFIG_HOME", "")
    folder = chosen if os.path.isabs(chosen) else os.path.join(home, ".config")
    return Keeper("systemd", _found("systemctl", brain), os.path.join(folder, "systemd", "user", UNIT))


def _installed(brain: Brain) -> Keeper:
    keeper = _keeper(brain)
    if not os.path.exists(keeper.path):
        raise ServiceMissing(path=keeper.path)
    return keeper


def _bootstrap(keeper: Keeper, *, counts: bool = True) -> Step:
    return Step(("bootstrap", _domain(), keeper.path), counts)


def _carried_out(
    brain: Brain,
    keeper: Keeper,
    act: Literal["installed", "started", "stopped", "uninstalled"],
    changed: bool,
    steps: tuple[Step, ...],
) -> DaemonRecord:
    problem = "" if keeper.program else f"the program of {keeper.kind} is not there"
    for step in steps if keeper.program else ():
        status, said = _run(brain, keeper, step.words)
        if status != 0 and step.counts:
            problem = _first(said) or f"it ended with {status}"
            break
    to_run = _typed(keeper, steps) if problem else ()
    return DaemonRecord(act, not problem, keeper.path, changed, to_run, problem)


def _typed(keeper: Keeper, steps: tuple[Step, ...]) -> tuple[str, ...]:
    """These steps as a person types them."""
    name = "systemctl --user" if keeper.kind == "systemd" else "launchctl"
    return tuple(f"{name} {shlex.join(step.words)}" for step in steps)


def _disable(keeper: Keeper) -> None:
    """Take away the link by which systemd starts the unit at a login; `disable` would do no more."""
    link = os.path.join(os.path.dirname(keeper.path), "default.target.wants", UNIT)
    if os.path.islink(link):
        os.unlink(link)


def _run(brain: Brain, keeper: Keeper, words: tuple[str, ...]) -> tuple[int, str]:
    head = (keeper.program, "--user") if keeper.kind == "systemd" else (keeper.program,)
    settings = brain.settings
    done = git_cli.run_command((*head, *words), settings.user_home, settings.environ, seconds=SECONDS)
    return done.status, done.out.decode("utf-8", "replace") + done.err


def _target() -> str:
    return f"{_domain()}/{LABEL}"


def _domain() -> str:
    return f"gui/{os.getuid() if hasattr(os, 'getuid') else 0}"


def _log(brain: Brain) -> str:
    return os.path.join(brain.settings.home, "daemon.log")


def _tail(path: str, lines: int) -> list[str]:
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LARGEST_LOG))
            return file.read().decode("utf-8", "replace").splitlines()[-lines:]
    except FileNotFoundError:
        return []


def _found(name: str, brain: Brain) -> str:
    for folder in git_cli.program_folders(brain.settings.environ):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return ""


def _first(text: str) -> str:
    return text.strip().partition("\n")[0]
