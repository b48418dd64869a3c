"""The clock that pushes a store every quarter of an hour: texts of systemd, launchd and cron, and putting them there.

Knows these three by their files. A crontab is the person's own: its line is told, not written. The ssh agent is the
session's: where a timer cannot reach it, the push fails and the state says so.
"""

import os
from collections.abc import Mapping, Sequence

from quaid.formats import units
from quaid.kb import calling
from quaid.kb.guarding import write_private
from quaid.kb.records import Timer
from quaid.store import durable
from quaid.store.trouble import system_told_plainly

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
    return SERVICE.format(command=" ".join(map(units.word, command)))


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
    import shlex

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
    import shlex

    folder = os.path.join(home, "Library", "LaunchAgents")
    name = f"{LABEL}.plist"
    written, unchanged = _put(folder, {name: plist(command)})
    path = shlex.quote(os.path.join(folder, name))
    to_run = (
        f"launchctl bootout gui/$(id -u)/{LABEL}",  # fails when it was not there, which is fine
        f"launchctl bootstrap gui/$(id -u) {path}",
    )
    return Timer("launchd", written, unchanged, False, to_run)


def _put(folder: str, texts: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which files were written, and which stood there as they should."""
    written, unchanged = [], []
    for name, text in texts.items():
        path = os.path.join(folder, name)
        with system_told_plainly(path):
            if _read(path) == text:
                unchanged.append(path)
                continue
            durable.make_folders(folder)
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
