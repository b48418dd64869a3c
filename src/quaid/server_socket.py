"""The Unix socket on which a running server answers commands that only read, and its client side.

A command sends one line of JSON with its arguments, working directory and environment. The server answers
with an empty line as soon as it accepts the command, then with JSON that contains the exit status and the
output. If the server closes the connection instead, the command runs locally; running it twice is safe,
because the server accepts only commands that do not write. This module imports only the standard library,
because a command looks for a server before it loads anything else.
"""

import os
import sys
from typing import TYPE_CHECKING, Any

import quaid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from socket import socket

SOCKET_FOLDER = "run"
MAX_SOCKET_PATH = 100  # bytes; systems allow 104 to 108
MAX_MESSAGE_BYTES = 24 * 1024 * 1024

ACCEPT_TIMEOUT, READ_TIMEOUT = 1.0, 60.0
"""Seconds in which the server must accept a command, and in which it must answer the command.

The first timeout is short, so that a suspended server process does not block the client.
"""

SHARED_VARIABLES = ("HOME", "TZ")
"""Variables, besides those with the prefix QUAID_, that must be equal in the command and the server."""

IGNORED_VARIABLES = ("QUAID_DB", "QUAID_CONFIG", "QUAID_HANDOVER", "QUAID_TRACE")
"""QUAID_ variables that may differ. Instead of the first two, the resulting database and settings are compared."""


def is_handover_off(environ: "Mapping[str, str]") -> bool:
    return environ.get("QUAID_HANDOVER", "").lower() in ("off", "0", "no", "false")


def socket_path(home: str, db_path: str) -> str:
    """Return the socket path for a database, named by the device and inode of the database file."""
    status = os.stat(db_path)
    return os.path.join(home, SOCKET_FOLDER, f"{status.st_dev:x}-{status.st_ino:x}")


def connect(home: str, db_path: str) -> "socket | None":
    """Connect to the server of a database. Return None if no server runs, or if it belongs to another user."""
    try:
        path = socket_path(home, db_path)
        if not os.path.exists(path) or os.stat(path).st_uid != os.getuid():
            return None
        import _socket  # importing socket takes six milliseconds more

        connection: socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)  # type: ignore[assignment]
        try:
            use_socket_path(path, connection.connect)
            if is_same_user(connection):
                return connection
        except OSError:
            pass
        connection.close()
    except (OSError, ImportError, AttributeError):
        pass  # there is no database, no socket, or no support for Unix sockets
    return None


def is_listening(home: str, db_path: str) -> bool:
    """Return True if a server is listening for this database."""
    connection = connect(home, db_path)
    if connection is None:
        return False
    connection.close()
    return True


def use_socket_path(path: str, use: "Callable[[str], object]") -> None:
    """Call `use` with a socket path.

    A path that exceeds the system's limit is replaced by a path through /proc/self/fd.
    """
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        use(path)
        return
    folder, name = os.path.split(path)
    handle = os.open(folder, os.O_RDONLY)
    try:
        use(f"/proc/self/fd/{handle}/{name}")
    finally:
        os.close(handle)


def is_same_user(connection: "socket") -> bool:
    """Return True if the peer of a Unix socket runs as the same user; False if that is unknown."""
    import _socket

    if hasattr(_socket, "SO_PEERCRED"):
        peer = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)  # process, user, group
    elif sys.platform == "darwin":
        peer = connection.getsockopt(0, 1, 76)  # LOCAL_PEERCRED: version, user, groups
    else:
        return False
    return int.from_bytes(peer[4:8], sys.byteorder) == os.getuid()


def shared_environment(environ: "Mapping[str, str]") -> dict[str, str]:
    """Return the environment variables that must be equal in the command and the server."""
    return {
        name: value
        for name, value in environ.items()
        if name in SHARED_VARIABLES or (name.startswith("QUAID_") and name not in IGNORED_VARIABLES)
    }


def request_of(words: list[str], program: str) -> dict[str, Any]:
    """Return the request that describes a command of this process."""
    return {
        "version": quaid.__version__,
        "package": os.path.dirname(os.path.abspath(quaid.__file__)),
        "cwd": os.getcwd(),
        "terminals": [stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)],
        "width": terminal_size()[0],
        "words": words,
        "program": program,
        "environ": dict(os.environ),
    }


def delegate(words: list[str], program: str = "quaid") -> int | None:
    """Run a command on a running server, print its output and return its status.

    `program` is the name of the command as typed. Return None if the command has to run locally, because no
    server answers, or the server has different settings or refuses the command.
    """
    if not words or is_handover_off(os.environ):
        return None
    home = os.path.join(os.environ.get("HOME") or os.path.expanduser("~"), ".quaid")
    db_path = _probable_db_path(words, home)
    connection = connect(home, db_path) if db_path else None
    if connection is None:
        return None
    import json

    try:
        connection.settimeout(ACCEPT_TIMEOUT)
        connection.sendall(json.dumps(request_of(words, program)).encode() + b"\n")
        reply = connection.recv(1)
        connection.settimeout(READ_TIMEOUT)
        while len(reply) <= MAX_MESSAGE_BYTES and (more := connection.recv(1024 * 1024)):
            reply += more
        status, *texts = json.loads(reply)
        before, out, after = [str(text).encode("utf-8", "replace") for text in texts]
        status = int(status)
        sys.stderr.buffer.write(before)
        sys.stderr.flush()
        if not show_in_pager(out, words):
            sys.stdout.buffer.write(out)
            sys.stdout.flush()
        sys.stderr.buffer.write(after)
        sys.stderr.flush()
    except (OSError, ValueError, TypeError, AttributeError):  # AttributeError if a standard stream is closed
        return None
    finally:
        connection.close()
    return status


def terminal_size() -> tuple[int, int]:
    """Return the columns and lines of the terminal on standard output, or zeros if it is not a terminal."""
    try:
        return tuple(os.get_terminal_size(sys.stdout.fileno())) if sys.stdout.isatty() else (0, 0)  # type: ignore[return-value]
    except (OSError, ValueError, AttributeError):
        return 0, 0


NO_PAGER = "--no-pager"


def show_in_pager(data: bytes, words: "Sequence[str]") -> bool:
    """Show a text that is longer than the terminal in $PAGER, or in less. Return False if it has to be printed.

    A text has to be printed if it is short, if standard output is no terminal or a dumb one, if the options have
    --no-pager, or if there is no pager.
    """
    height = terminal_size()[1]
    if not height or data.count(b"\n") < height or NO_PAGER in words or os.environ.get("TERM") == "dumb":
        return False
    import shlex
    import subprocess
    from signal import SIG_IGN, SIGINT, signal

    command = os.environ.get("PAGER", "less -FRX")
    before = signal(SIGINT, SIG_IGN)  # Ctrl-C is for the pager
    try:
        subprocess.run(shlex.split(command), input=data, check=False)
    except (OSError, ValueError, IndexError):  # there is no such program, or the setting is empty
        return False
    finally:
        signal(SIGINT, before)
    return True


def _probable_db_path(words: list[str], home: str) -> str:
    """Return the probable path of the memory, or "" if unknown.

    The server determines the exact path and refuses the command if it serves a different memory.
    """
    options = {"--db": os.environ.get("QUAID_DB", ""), "--config": os.environ.get("QUAID_CONFIG", "")}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if word == "--":
            break
        if name in options:
            options[name] = value if equals else following
    if options["--db"]:
        return os.path.expanduser(options["--db"])
    if options["--config"]:
        return ""  # the config file may set the path, but reading it costs more than delegating saves
    return "memory.db" if os.path.exists("memory.db") else os.path.join(home, "memory.db")
