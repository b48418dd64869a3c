"""The clock that pushes a store every quarter of an hour: texts of systemd, launchd and cron, and putting them there.

Knows these three by their files. A crontab is the person's own: its line is told, not written. The ssh agent is the
session's: where a timer cannot reach it, the push fails and the state says so.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from quaid.formats import config_text
from quaid.kb import calling
from quaid.kb.guarding import write_private
from quaid.kb.records import Timer
from quaid.storage import files as durable_files
from quaid.storage.sqlite.errors import translate_os_errors

NAME = "ai-kb-push"
LABEL = "quaid.ai-kb-push"
MINUTES = 15

SERVICE = """\
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

TIMER = """\
[Unit]
Description=Push the knowledge base every {minutes} minutes

[Timer]
OnCalendar=*:0/{minutes}
Persistent=true
RandomizedDelaySec=60

[Install]
WantedBy=timers.target
"""


def service(command: Sequence[str]) -> str:
    """The unit that pushes once. Through env, since systemd is choosy about the name of a program, not of a word."""
    return SERVICE.format(command=" ".join(map(config_text.systemd_quote, command)))


def timer() -> str:
    """The unit that says when."""
    return TIMER.format(minutes=MINUTES)


def plist(command: Sequence[str]) -> str:
    """The same for launchd."""
    import plistlib

    told = {
        "Label": LABEL,
        "ProgramArguments": list(command),
        "StartInterval": MINUTES * 60,
        "RunAtLoad": True,
        "ProcessType": "Background",
    }
    return plistlib.dumps(told).decode()


def cron_line(command: Sequence[str]) -> str:
    """The same for cron, to which a percent sign means a new line."""
    return f"*/{MINUTES} * * * * " + shlex.join(command).replace("%", r"\%") + " >/dev/null 2>&1"


def install(command: Sequence[str], environ: Mapping[str, str], home: str, platform: str) -> Timer:
    """Write what this machine needs to run `command` (whole paths) by the clock, and start it where that is sure.

    Done twice, the second time changes nothing. `home` is the person's home folder."""
    if platform == "darwin":
        return _launchd(command, home)
    systemctl = _found("systemctl", environ) if platform == "linux" else None
    if systemctl is None:
        return Timer("cron", (), (), False, (cron_line(command),))
    return _systemd(command, environ, home, systemctl)


def _systemd(command: Sequence[str], environ: Mapping[str, str], home: str, systemctl: str) -> Timer:
    settings = environ.get("XDG_CONFIG_HOME", "")
    folder = os.path.join(
        settings if os.path.isabs(settings) else os.path.join(home, ".config"), "systemd/user"
    )
    texts = {f"{NAME}.service": service(command), f"{NAME}.timer": timer()}
    written, unchanged = _put(folder, texts)
    problem = ""
    steps = (("daemon-reload",), ("enable", "--now", f"{NAME}.timer"))
    for step in steps:
        done = calling.run((systemctl, "--user", *step), home, environ, seconds=30)
        if done.status != 0:
            problem = done.err.strip().partition("\n")[0] or f"systemctl ended with {done.status}"
            break
    to_run = tuple(f"systemctl --user {' '.join(step)}" for step in steps) if problem else ()
    return Timer("systemd", written, unchanged, not problem, to_run, problem)


def _launchd(command: Sequence[str], home: str) -> Timer:
    folder = os.path.join(home, "Library", "LaunchAgents")
    name = f"{LABEL}.plist"
    written, unchanged = _put(folder, {name: plist(command)})
    path = shlex.quote(os.path.join(folder, name))
    to_run = (
        f"launchctl bootout gui/$(id -u)/{LABEL}",  # fails when it was not there, which is fine
        f"launchctl bootstrap gui/$(id -u) {path}",
    )
    return Timer("launchd", written, unchanged, False, to_run)


class Installed(NamedTuple):
    """A timer that is there, and whether it does what it should."""

    place: str
    state: Literal["active", "stopped", "another store", "unknown"]
    problem: str = ""
    remedy: str = ""


def installed(root: str, environ: Mapping[str, str], home: str, platform: str) -> Installed | None:
    """Return the timer that pushes a store on this machine; None: there is none."""
    if platform == "darwin":
        place = os.path.join(home, "Library", "LaunchAgents", f"{LABEL}.plist")
        asked: tuple[str, ...] = (
            "launchctl",
            "print",
            f"gui/{os.getuid() if hasattr(os, 'getuid') else 0}/{LABEL}",
        )
        remedy = f"`launchctl bootstrap gui/$(id -u) {place}`"
        return _judged(root, place, place, asked, remedy, environ)
    settings = environ.get("XDG_CONFIG_HOME", "")
    folder = os.path.join(
        settings if os.path.isabs(settings) else os.path.join(home, ".config"), "systemd/user"
    )
    place, service = os.path.join(folder, f"{NAME}.timer"), os.path.join(folder, f"{NAME}.service")
    if os.path.exists(place):
        asked = ("systemctl", "--user", "is-active", f"{NAME}.timer")
        remedy = f"`systemctl --user enable --now {NAME}.timer`"
        return _judged(root, place, service, asked, remedy, environ)
    program = _found("crontab", environ)
    if program is None:
        return None
    lines = calling.run((program, "-l"), home, environ, seconds=10).out.decode(errors="replace").splitlines()
    if any("kb push" in line and root in line for line in lines if not line.lstrip().startswith("#")):
        return Installed("your crontab", "active")
    return None


def _judged(
    root: str, place: str, named_in: str, asked: Sequence[str], remedy: str, environ: Mapping[str, str]
) -> Installed | None:
    """Return a timer whose unit is a file; None where that is missing."""
    if not os.path.exists(place):
        return None
    text = _read(named_in) or ""
    if config_text.systemd_quote(f"AI_KB_DIR={root}") not in text and f"AI_KB_DIR={root}<" not in text:
        return Installed(
            place, "another store", f"it does not push {root}", "`ai-kb install-timer` writes it anew"
        )
    program = _found(asked[0], environ)
    if program is None:
        return Installed(place, "unknown", f"{asked[0]} is not there")
    done = calling.run((program, *asked[1:]), os.sep, environ, seconds=10)
    if done.status == 0:
        return Installed(place, "active")
    told = done.out.decode(errors="replace").strip()
    if told in ("inactive", "failed", "unknown", "deactivating") or asked[0] == "launchctl":
        return Installed(place, "stopped", f"it is {told or 'not loaded'}", remedy)
    problem = done.err.strip().partition("\n")[0] or f"{asked[0]} ended with {done.status}"
    return Installed(place, "unknown", problem)


def _put(folder: str, texts: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which files were written, and which stood there as they should."""
    written, unchanged = [], []
    for name, text in texts.items():
        path = os.path.join(folder, name)
        with translate_os_errors(path):
            if _read(path) == text:
                unchanged.append(path)
                continue
            durable_files.make_folders(folder)
            write_private(os.path.realpath(path), text.encode())
            written.append(path)
    return tuple(written), tuple(unchanged)


def _read(path: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _found(name: str, environ: Mapping[str, str]) -> str | None:
    for folder in calling.folders(environ):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None
