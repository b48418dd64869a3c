"""Set up a store and this machine: init, clone, the push timer, and org-roam's database for Emacs.

All of these except the clone can be repeated: a further run only restores missing or outdated parts.
"""

import hashlib
import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from quaid.errors import FileTrouble, RemoteOccupied, StoreOccupied
from quaid.formats import config_text
from quaid.kb import git as git_cli, layout, node as nodes, repository, transaction
from quaid.kb.catalog import Catalog
from quaid.kb.git import Git
from quaid.kb.node import NodeDraft
from quaid.kb.transaction import StoreChange
from quaid.storage import files as durable_files
from quaid.storage.sqlite.errors import translate_os_errors

CONTRACT_TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "agent_contract.org")

RAW_README_TEXT = """\
#+title: Raw captures

Excerpts of outside sources, each with its address and the day it was read; whole files are in files/. Nodes name them
in :SOURCE:. Nothing here is a node, and nothing here is a secret.
"""

FOLDER_REMEDY = (
    "A knowledge base needs a folder of its own: name a new one, or make one among these files with --force"
)
REMOTE_REMEDY = "Name an empty private repository, or add --force to commit and push beside these files"

FIRST_NODE = NodeDraft(
    title="How this knowledge base is used",
    summary="What belongs into this knowledge base, who writes it, and how nodes are found again.",
    body="""\
Knowledge that holds beyond one project and one session: principles, preferences, procedures, observations and
references. What belongs to one project stays there.

- Before acting: =ai-kb query WORDS= shows what is known.
- After learning something that lasts: =ai-kb remember= writes it, checks everything and commits.
- A node that is wrong is contested or superseded by a person, never silently overwritten.

The rules are in AGENT_CONTRACT.org.""",
    type="reference",
    created_by="quaid",
    confidence="user-stated",
    source="ai-kb init",
)


class KbCheck(NamedTuple):
    name: str
    well: bool
    told: str
    remedy: str = ""
    missing: bool = False
    """True if an optional part is absent or cannot be checked, which is neither a pass nor a failure."""

    @property
    def exit_status(self) -> int:
        return 0 if self.well else 1


class KbInitReport(NamedTuple):
    root: str
    created: bool
    """False if the repository already had a commit."""
    files: tuple[str, ...]
    """Files written by this run."""
    remote: str
    """URL without credentials."""
    commit: str


class KbTimerReport(NamedTuple):
    """The result of installing the timer, and the steps left for the user."""

    kind: str  # systemd, launchd or cron
    written: tuple[str, ...]  # new or changed files
    unchanged: tuple[str, ...]
    enabled: bool
    to_run: tuple[str, ...]  # commands for the user to run, or the line to add to the crontab
    problem: str = ""


def clone_store(git: Git, url: str, environ: Mapping[str, str], *, force: bool = False) -> Git:
    """Clone a store.

    Unless `force`, raise RemoteOccupied before any file is checked out if the remote has files but is not a
    knowledge base.
    """

    def check(fetched: Git) -> None:
        files = transaction.foreign_remote(fetched)
        if files:
            raise RemoteOccupied(url=repository.mask_urls(url), detail=files, remedy=REMOTE_REMEDY)

    return Git.clone(url, git.root, environ, check=None if force else check)


def init_store(
    git: Git, environ: Mapping[str, str], *, remote: str, now: str, local: str, id: str, force: bool = False
) -> KbInitReport:
    """Create or repair a store. Unless forced, refuse folders and remotes with other content."""
    created = not git.is_repository() or git.head() is None
    if remote:
        remote = repository.check_url(repository.absolute_url(remote), git.root)
    if not force:
        _refuse_foreign(git, remote, environ)
    git.init()
    if remote and git.remote() != remote:
        git.set_remote(remote)
        transaction.fetch_store(git, now)
    git.follow_the_only_branch()
    if force and git.remote():
        repository.note_state(git.root, accepted=transaction.url_hash(git.remote() or ""))

    def plan(catalog: Catalog) -> StoreChange:
        files: dict[str, bytes | None] = {}
        if layout.CONTRACT_FILE not in catalog.files:
            files[layout.CONTRACT_FILE] = contract_text().encode()
        if not any(layout.is_raw_file(path) for path in catalog.files):
            files[layout.RAW_README] = RAW_README_TEXT.encode()
        if not catalog.count:
            name = nodes.node_file_name(FIRST_NODE.title, local)
            files[name] = nodes.render_node(FIRST_NODE, id, local[:10]).encode()
        if not files and layout.INDEX_PREFIX + layout.NODE_ENDING not in catalog.files:
            return transaction.index_change(catalog)
        return StoreChange(files, "ai-kb: a knowledge base")

    done = transaction.apply_change(git, now, "init", plan, foreign=force)
    return KbInitReport(git.root, created, done.paths, repository.mask_urls(git.remote() or ""), done.commit)


def _refuse_foreign(git: Git, remote: str, environ: Mapping[str, str]) -> None:
    files = transaction.foreign_store(git)
    if files:
        raise StoreOccupied(path=git.root, detail=files, remedy=FOLDER_REMEDY)
    configured = git.remote() if git.is_repository() else None
    url = remote or configured or ""
    if not url or (url == configured and git.head() is not None):
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="ai-kb-", ignore_cleanup_errors=True) as folder:
        copy = Git(folder, environ)
        files = transaction.foreign_remote(copy) if copy.fetch_latest(url) else ""
    if files:
        raise RemoteOccupied(url=repository.mask_urls(url), detail=files, remedy=REMOTE_REMEDY)


def contract_text() -> str:
    """Return the text of AGENT_CONTRACT.org, the rules for agents."""
    values = {
        "types": ", ".join(nodes.NODE_TYPES),
        "creators": " | ".join(nodes.CREATORS[:4]),
        "confidences": " | ".join(nodes.CONFIDENCES),
        "visibilities": " | ".join(nodes.VISIBILITIES),
        "statuses": " | ".join(nodes.STATUSES),
        "relations": ", ".join(nodes.RELATIONS),
    }
    with open(CONTRACT_TEMPLATE, encoding="utf-8") as file:
        return file.read().format(**values)


# The timer

TIMER_NAME = "ai-kb-push"
LAUNCHD_LABEL = "quaid.ai-kb-push"
PUSH_MINUTES = 15

SERVICE_TEMPLATE = """\
[Unit]
Description=Push the knowledge base to its remote
Documentation=https://git-scm.com/docs/git-push

[Service]
Type=oneshot
ExecStart=/usr/bin/env {command}
TimeoutStartSec=300
Nice=10
IOSchedulingClass=idle
NoNewPrivileges=yes
"""

TIMER_TEMPLATE = """\
[Unit]
Description=Push the knowledge base every {minutes} minutes

[Timer]
OnCalendar=*:0/{minutes}
Persistent=true
RandomizedDelaySec=60

[Install]
WantedBy=timers.target
"""


def service_unit(command: Sequence[str]) -> str:
    """Return the service unit that pushes once.

    The unit runs env, because systemd restricts the paths of programs.
    """
    return SERVICE_TEMPLATE.format(command=" ".join(map(config_text.systemd_quote, command)))


def timer_unit() -> str:
    """Return the timer unit."""
    return TIMER_TEMPLATE.format(minutes=PUSH_MINUTES)


def launchd_plist(command: Sequence[str]) -> str:
    """Return the launchd agent that pushes at regular intervals."""
    import plistlib

    settings = {
        "Label": LAUNCHD_LABEL,
        "ProgramArguments": list(command),
        "StartInterval": PUSH_MINUTES * 60,
        "RunAtLoad": True,
        "ProcessType": "Background",
    }
    return plistlib.dumps(settings).decode()


def cron_line(command: Sequence[str]) -> str:
    """Return the crontab line, with percent signs escaped because cron treats them as newlines."""
    return f"*/{PUSH_MINUTES} * * * * " + shlex.join(command).replace("%", r"\%") + " >/dev/null 2>&1"


def install_timer(
    command: Sequence[str], environ: Mapping[str, str], home: str, platform: str
) -> KbTimerReport:
    """Install and start a systemd timer, or install a launchd agent, that runs `command` (with absolute paths).

    On other systems, nothing is installed, and the report contains the line to add to the crontab. A repeated
    call has no further effect. `home` is the user's home folder.
    """
    if platform == "darwin":
        return _install_launchd(command, home)
    systemctl = git_cli.find_program("systemctl", environ) if platform == "linux" else ""
    if not systemctl:
        return KbTimerReport("cron", (), (), False, (cron_line(command),))
    return _install_systemd(command, environ, home, systemctl)


def _install_systemd(
    command: Sequence[str], environ: Mapping[str, str], home: str, systemctl: str
) -> KbTimerReport:
    folder = _systemd_folder(environ, home)
    texts = {f"{TIMER_NAME}.service": service_unit(command), f"{TIMER_NAME}.timer": timer_unit()}
    written, unchanged = _write_units(folder, texts)
    problem = ""
    steps = (("daemon-reload",), ("enable", "--now", f"{TIMER_NAME}.timer"))
    for step in steps:
        done = git_cli.run_command((systemctl, "--user", *step), home, environ, seconds=30)
        if done.status != 0:
            problem = done.err.strip().partition("\n")[0] or f"systemctl ended with {done.status}"
            break
    to_run = tuple(f"systemctl --user {' '.join(step)}" for step in steps) if problem else ()
    return KbTimerReport("systemd", written, unchanged, not problem, to_run, problem)


def _install_launchd(command: Sequence[str], home: str) -> KbTimerReport:
    folder = os.path.join(home, "Library", "LaunchAgents")
    name = f"{LAUNCHD_LABEL}.plist"
    written, unchanged = _write_units(folder, {name: launchd_plist(command)})
    path = shlex.quote(os.path.join(folder, name))
    to_run = (
        f"launchctl bootout gui/$(id -u)/{LAUNCHD_LABEL}",  # fails harmlessly if it was not loaded
        f"launchctl bootstrap gui/$(id -u) {path}",
    )
    return KbTimerReport("launchd", written, unchanged, False, to_run)


def _systemd_folder(environ: Mapping[str, str], home: str) -> str:
    settings = environ.get("XDG_CONFIG_HOME", "")
    return os.path.join(
        settings if os.path.isabs(settings) else os.path.join(home, ".config"), "systemd/user"
    )


def check_timer(root: str, environ: Mapping[str, str], home: str, platform: str) -> KbCheck | None:
    """Check the timer that pushes a store on this machine. Return None if there is no timer."""
    if platform == "darwin":
        path = os.path.join(home, "Library", "LaunchAgents", f"{LAUNCHD_LABEL}.plist")
        service = f"gui/{os.getuid() if hasattr(os, 'getuid') else 0}/{LAUNCHD_LABEL}"
        remedy = f"`launchctl bootstrap gui/$(id -u) {path}`"
        return _check_unit(root, path, path, ("launchctl", "print", service), remedy, environ)
    folder = _systemd_folder(environ, home)
    timer, service = (os.path.join(folder, f"{TIMER_NAME}.{ending}") for ending in ("timer", "service"))
    if os.path.exists(timer):
        command = ("systemctl", "--user", "is-active", f"{TIMER_NAME}.timer")
        remedy = f"`systemctl --user enable --now {TIMER_NAME}.timer`"
        return _check_unit(root, timer, service, command, remedy, environ)
    program = git_cli.find_program("crontab", environ)
    if not program:
        return None
    lines = git_cli.run_command((program, "-l"), home, environ, seconds=10).out.decode(errors="replace")
    if any("kb push" in line and root in line for line in lines.splitlines() if line.lstrip()[:1] != "#"):
        return KbCheck("timer", True, "your crontab, active")
    return None


def _check_unit(
    root: str, path: str, named_in: str, command: Sequence[str], remedy: str, environ: Mapping[str, str]
) -> KbCheck | None:
    """Check the timer defined by the unit file `path`. Return None if the file does not exist.

    `named_in` is the file that contains the path of the pushed store. `command` reports whether the timer is
    active, and `remedy` is the command that activates it.
    """
    if not os.path.exists(path):
        return None
    text = _read_or_none(named_in) or ""
    if config_text.systemd_quote(f"AI_KB_DIR={root}") not in text and f"AI_KB_DIR={root}<" not in text:
        problem = f"{path}: it does not push {root}"
        return KbCheck("timer", False, problem, "`ai-kb install-timer` writes it anew")
    program = git_cli.find_program(command[0], environ)
    problem = f"{command[0]} is not there"
    if program:
        done = git_cli.run_command((program, *command[1:]), os.sep, environ, seconds=10)
        if done.status == 0:
            return KbCheck("timer", True, f"{path}, active")
        answer = done.out.decode(errors="replace").strip()
        if answer in ("inactive", "failed", "unknown", "deactivating") or command[0] == "launchctl":
            return KbCheck("timer", False, f"{path}: it is {answer or 'not loaded'}", remedy)
        problem = done.err.strip().partition("\n")[0] or f"{command[0]} ended with {done.status}"
    return KbCheck("timer", True, f"{path}; whether it runs cannot be known: {problem}")


def _write_units(folder: str, texts: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Write the files that differ. Return the paths of the written and of the unchanged files."""
    written, unchanged = [], []
    for name, text in texts.items():
        path = os.path.join(folder, name)
        with translate_os_errors(path):
            if _read_or_none(path) == text:
                unchanged.append(path)
                continue
            durable_files.make_folders(folder)
            durable_files.write_file(os.path.realpath(path), text.encode())
            written.append(path)
    return tuple(written), tuple(unchanged)


def _read_or_none(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return None


# The database of org-roam

ORG_ROAM_DATABASE = "org-roam.db"
STAMP_SUFFIX = ".synced"
"""Suffix of the file beside the database that records a digest of the indexed nodes."""
EMACS_TIMEOUT = 300.0
SYNC_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "org_roam_sync.el")


class KbSyncRecord(NamedTuple):
    """Result of updating the org-roam database."""

    state: Literal["fresh", "synced", "no emacs", "no org-roam", "failed"]
    database: str
    problem: str = ""

    @property
    def exit_status(self) -> int:
        return 1 if self.state == "failed" else 0


def lisp_file() -> str:
    """Return the path of ai-kb.el, in the installed package or in the source tree."""
    import quaid

    package = os.path.dirname(os.path.abspath(quaid.__file__))
    installed = os.path.join(package, "emacs", "ai-kb.el")
    source = os.path.join(os.path.dirname(os.path.dirname(package)), "emacs", "ai-kb.el")
    for path in (installed, source):
        if os.path.exists(path):
            return path
    raise FileTrouble(path=installed, problem="it is not there; install quaid anew")


def is_org_roam_fresh(root: str, database: str) -> bool:
    """Return True if the org-roam database matches the current nodes."""
    return os.path.exists(database) and _read_or_none(database + STAMP_SUFFIX) == _nodes_digest(root)


def sync_org_roam(
    root: str, environ: Mapping[str, str], *, database: str = "", force: bool = False
) -> KbSyncRecord:
    """Update the org-roam database with Emacs in batch mode. If it is up to date, do so only with `force`."""
    import shutil

    database = database or os.path.join(layout.own_folder(root), ORG_ROAM_DATABASE)
    if not force and is_org_roam_fresh(root, database):
        return KbSyncRecord("fresh", database)
    program = shutil.which("emacs", path=environ.get("PATH", ""))
    if program is None:
        return KbSyncRecord("no emacs", database, "Emacs is not installed; only its browsing needs this")
    before = _nodes_digest(root)
    command = (program, "--batch", "--no-site-file", "--load", SYNC_PROGRAM)
    variables = {"AI_KB_ROOT": root, "AI_KB_DATABASE": database, "AI_KB_FORCE": "1" if force else ""}
    done = git_cli.run_command(command, root, {**environ, **variables}, seconds=EMACS_TIMEOUT)
    lines = [line for line in done.err.splitlines() if line.strip()]
    if done.status != 0 or not os.path.exists(database):
        problem = _emacs_error(lines) or f"Emacs ended with {done.status}"
        if "load file" in problem and "org-roam" in problem:
            missing = "org-roam is not installed in Emacs; only browsing needs it"
            return KbSyncRecord("no org-roam", database, missing)
        return KbSyncRecord("failed", database, problem)
    with open(database + STAMP_SUFFIX, "w", encoding="ascii") as file:
        file.write(before)
    return KbSyncRecord("synced", database, next((line for line in lines if "(org-roam):" in line), ""))


def _emacs_error(lines: list[str]) -> str:
    """Return the error message from Emacs' output. Newer versions print a backtrace after the message."""
    marked = [line.partition("Lisp error: ")[2] for line in lines if "Lisp error: " in line]
    plain = [line for line in lines if not line[0].isspace()]
    return (marked or plain[-1:] or lines[-1:] or [""])[0].strip()


def _nodes_digest(root: str) -> str:
    """Return a digest of the paths and stats of all nodes.

    It changes when a node is added, removed or modified.
    """
    signatures = [
        (path, *signature) for path, signature in layout.walk_store(root) if layout.is_node_file(path)
    ]
    return hashlib.blake2b(repr(signatures).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
