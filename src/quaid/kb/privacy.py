"""Whether others can read what is pushed to a remote, as far as that can be known from this machine.

A folder is judged by its permissions, an http address by asking it without any credentials, which is what a stranger
would do. Behind ssh there is no way to know: the key opens a public repository and a private one alike.
"""

import os
from collections.abc import Mapping
from typing import Literal, NamedTuple

from quaid.kb import calling, guarding, reading

EXPORTED = "git-daemon-export-ok"
"""The file by which `git daemon` knows that it may serve a repository to everybody."""

LOCAL_HOSTS = ("localhost", "127.0.0.1", "[::1]")
REFUSALS = ("Authentication failed", "could not read Username", "error: 401", "error: 403", "error: 404")
"""What git says of a server that shows nothing to strangers."""


class Privacy(NamedTuple):
    state: Literal["private", "public", "unknown"]
    told: str
    remedy: str = ""


def judge(url: str, root: str, environ: Mapping[str, str], seconds: float) -> Privacy:
    """Return who can read the remote of a store, which has just been reached."""
    folder = guarding.on_disk(url, root)
    if folder is not None:
        return _of_folder(folder, environ)
    scheme, separator, rest = url.partition("://")
    if separator and scheme.lower() in ("http", "https"):
        return _of_server(scheme.lower(), rest, environ, seconds)
    return Privacy(
        "unknown",
        "cannot be known behind ssh: a key opens public and private repositories alike",
        "Look at its settings on the server; it should be readable by you only",
    )


def _of_folder(folder: str, environ: Mapping[str, str]) -> Privacy:
    path = os.path.realpath(folder)
    if os.path.isdir(os.path.join(path, ".git")):
        path = os.path.join(path, ".git")
    if os.path.exists(os.path.join(path, EXPORTED)):
        return Privacy(
            "public", f"git daemon may serve it to everybody ({EXPORTED})", f"`rm {path}/{EXPORTED}`"
        )
    mirrors = _mirrors(path, environ)
    if mirrors:
        told = f"it has a remote of its own, {guarding.masked(mirrors[0])}; whether that is private cannot be known"
        return Privacy("unknown", told, "Take the remote away if it is a public mirror")
    if os.name == "nt":
        return Privacy("unknown", "cannot be known of a folder on this system")
    try:
        is_open = _is_open_to_all(path)
    except OSError as error:
        return Privacy("unknown", f"cannot be known: {error.strerror}")
    if is_open:
        return Privacy("public", "every user of this machine can read it", f"`chmod -R o-rwx {path}`")
    return Privacy("private", "a folder that other users of this machine cannot read")


def _mirrors(path: str, environ: Mapping[str, str]) -> list[str]:
    """Return where a repository on this disk passes on what it gets; reading its settings runs nothing."""
    file = os.path.join(path, "config")
    command = (
        calling.program(environ),
        "config",
        "--file",
        file,
        "--get-regexp",
        r"^remote\..*\.(push)?url$",
    )
    done = calling.run(command, os.sep, calling.environment(environ), seconds=10)
    return [line.partition(" ")[2] for line in done.out.decode(errors="replace").splitlines()]


def _is_open_to_all(path: str) -> bool:
    """Return whether others may enter a folder, all the way from the root, and read what is in it."""
    place = path
    while True:
        if not os.stat(place).st_mode & 0o001:
            return False
        above = os.path.dirname(place)
        if above == place:
            break
        place = above
    return bool(os.stat(os.path.join(path, "HEAD")).st_mode & 0o004)


def _of_server(scheme: str, rest: str, environ: Mapping[str, str], seconds: float) -> Privacy:
    host = rest.partition("/")[0].rpartition("@")[2]
    name = host if host.startswith("[") else host.partition(":")[0]
    if scheme == "http" and name.lower() not in LOCAL_HOSTS:
        told = "http sends everything in the clear, so the network can read it"
        return Privacy("public", told, "`ai-kb init --remote URL` with https or ssh")
    address = f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}/{rest.partition('/')[2]}"
    # Nothing of the person: no helper, no .netrc, no header, no certificate.
    nobody = {"HOME": os.devnull, "XDG_CONFIG_HOME": os.devnull, "NETRC": os.devnull}
    nobody |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = (calling.program(environ), "ls-remote", "--heads", "--", address)
    done = calling.run(command, os.sep, calling.environment(environ) | nobody, seconds=seconds)
    if done.status == 0:
        return Privacy("public", "it answers without a password", "Make it private on the server")
    if any(each in done.err for each in REFUSALS):
        return Privacy("private", "it shows nothing without a password")
    return Privacy("unknown", f"cannot be known: {guarding.masked(reading.complaint(done.err))}")
