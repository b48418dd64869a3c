"""The git program, called so that nothing that lies in a repository runs on this machine.

Knows how git is found, which environment and settings it gets, and how a call that hangs is ended. Does not know what
a verb means, nor whether a repository's own settings may be trusted: that is guarding.py's business.

Settings are given in the environment, where they beat every file. What belongs to the person stays in force: their
identity, credential helper, proxy, ssh configuration and agent. Their variables GIT_* do not: they may point
elsewhere.
"""

import os
import signal
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from quaid.errors import GitMissing

if TYPE_CHECKING:
    from subprocess import Popen

LOCAL_SECONDS = 120.0
"""No verb that stays on this machine takes as long, unless something is wrong."""

GRACE = 2.0
"""Seconds that a git which is told to stop has to take its lock files away."""

PROTOCOLS = ("file", "http", "https", "ssh")

SSH = "ssh -oBatchMode=yes -oConnectTimeout=10 -oServerAliveInterval=10 -oServerAliveCountMax=3"

OVERRIDES = {
    # Programs that a repository could name.
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.alternateRefsCommand": ":",
    "core.askPass": "",
    "core.editor": ":",
    "sequence.editor": ":",
    "core.pager": "cat",
    "commit.gpgSign": "false",
    "push.gpgSign": "false",
    "log.showSignature": "false",
    "merge.verifySignatures": "false",
    # Other repositories inside this one.
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "push.recurseSubmodules": "no",
    "diff.ignoreSubmodules": "all",
    # The bytes of a file are the bytes of its blob, and nobody's list of ignored files hides a node.
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.symlinks": "false",  # a link in a clone becomes a file with a path in it, and leads nowhere
    "core.protectHFS": "true",
    "core.protectNTFS": "true",
    "transfer.fsckObjects": "true",
    # What was acknowledged survives a power cut.
    "core.fsync": "all",
    "core.fsyncMethod": "fsync",
    # Nothing goes on in the background; pushing.py tidies up.
    "gc.auto": "0",
    "gc.autoDetach": "false",
    "maintenance.auto": "false",
    # A server that has fallen silent.
    "http.lowSpeedLimit": "100",
    "http.lowSpeedTime": "30",
}

KEPT = (
    *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
    *("GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
)
"""The only variables of git that the caller may set: who they are, and whom they trust."""


class Done(NamedTuple):
    """How a call ended."""

    status: int
    out: bytes
    err: str
    timed_out: bool = False


def program(environ: Mapping[str, str]) -> str:
    """Where git is. Only whole paths count: the folder we work in may hold a program of that name."""
    names = ("git.exe",) if os.name == "nt" else ("git",)
    for folder in folders(environ):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
    raise GitMissing()


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What git gets to know, before a repository is named."""
    ours = {key: value for key, value in environ.items() if not key.startswith("GIT_") or key in KEPT}
    ours |= {
        "PATH": os.pathsep.join(folders(environ)),
        "LC_ALL": "C",
        "LANGUAGE": "",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "SSH_ASKPASS_REQUIRE": "never",
        "GCM_INTERACTIVE": "never",
        "GIT_EDITOR": ":",
        "GIT_SEQUENCE_EDITOR": ":",
        "GIT_MERGE_AUTOEDIT": "no",
        "GIT_PAGER": "cat",
        "GIT_SSH_COMMAND": SSH,
        "GIT_ALLOW_PROTOCOL": ":".join(PROTOCOLS),
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_CONFIG_COUNT": str(len(OVERRIDES)),
    }
    for number, (key, value) in enumerate(OVERRIDES.items()):
        ours[f"GIT_CONFIG_KEY_{number}"] = key
        ours[f"GIT_CONFIG_VALUE_{number}"] = value
    return ours


def served(verb: str) -> str:
    """The other end of a remote on this disk, which git starts here with that repository's settings and hooks."""
    settings = {
        key: OVERRIDES[key] for key in ("core.hooksPath", "core.fsmonitor", "core.alternateRefsCommand")
    }
    return " ".join(("git", *(f"-c {key}={value}" for key, value in settings.items()), verb))


def run(
    command: Sequence[str],
    folder: str,
    environ: Mapping[str, str],
    *,
    data: bytes | None = None,
    seconds: float = LOCAL_SECONDS,
    keep: Sequence[int] = (),
) -> Done:
    """Run a command to its end, or end it with all it has started. `keep`: open files that it inherits.

    It gets a session of its own, and so no terminal that it could ask anything on.
    """
    import subprocess  # 5 ms, and most commands need no git

    process = subprocess.Popen(
        list(command),
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL if data is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        pass_fds=keep if os.name != "nt" else (),
    )
    try:
        out, err = process.communicate(data, seconds)
    except subprocess.TimeoutExpired:
        stop(process)
        return Done(-1, b"", f"no answer within {seconds:g} s", timed_out=True)
    except BaseException:
        stop(process)
        raise
    return Done(process.returncode, out, err.decode(errors="replace"))


def stop(process: "Popen[bytes]") -> None:
    """End a process and what it has started: politely, then at once."""
    import subprocess

    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        try:
            if os.name == "nt":
                process.kill()
            else:
                os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):  # macOS says the latter of a group that has ended
            pass
        try:
            process.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired:
            continue
        except ValueError:  # its pipes were closed by an earlier end
            process.wait()
        return
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.wait()


def folders(environ: Mapping[str, str]) -> list[str]:
    """Where programs are looked for."""
    return [each for each in environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(each)]
