"""The Unix socket on which a running server accepts commands: its path, its messages, and how to connect.

Imports only the standard library, because a command looks for a server before it loads anything else.
"""

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from socket import socket

SOCKET_FOLDER = "run"
MAX_SOCKET_PATH = 100  # bytes; systems allow 104 to 108
MAX_MESSAGE_BYTES = 24 * 1024 * 1024
MAX_INPUT_BYTES = 4 * 1024 * 1024 + 1  # of standard input: one more than the maximum size of a text

REQUEST, INPUT, PROCEED = b"Q", b"T", b"G"
"""Messages from a command: the request, its standard input, and the confirmation that it is still waiting."""

NOT_HERE, WANTS_INPUT, READS, WRITES, DONE = b"N", b"I", b"r", b"w", b"D"
"""Messages from a server: refused and nothing done; send standard input; ready to read; ready to write; done."""

SHARED_VARIABLES = ("HOME", "TZ")
"""Variables, besides those with the prefix QUAID_, that must be equal in the command and the server."""

IGNORED_VARIABLES = ("QUAID_DB", "QUAID_CONFIG", "QUAID_HANDOVER", "QUAID_TRACE")
"""QUAID_ variables that may differ: the database and settings that they lead to are compared instead."""


def is_handover_off(environ: "Mapping[str, str]") -> bool:
    return environ.get("QUAID_HANDOVER", "").lower() in ("off", "0", "no", "false")


def socket_folder(home: str) -> str:
    return os.path.join(home, SOCKET_FOLDER)


def socket_name(db_path: str) -> str:
    """Return the socket name for a database, built from device and inode so that it does not depend on the path."""
    found = os.stat(db_path)
    return f"{found.st_dev:x}-{found.st_ino:x}"


def is_listening(home: str, db_path: str) -> bool:
    """Return True if a server is listening for this database."""
    there = connect(home, db_path)
    if there is None:
        return False
    there.close()
    return True


def connect(home: str, db_path: str) -> "socket | None":
    """Connect to the server of a database. Return None if there is none or another user runs it."""
    try:
        name = socket_name(db_path)
        path = os.path.join(socket_folder(home), name)
        if not os.path.exists(path) or os.stat(path).st_uid != os.getuid():
            return None
        import _socket  # importing socket takes six milliseconds more

        there: socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)  # type: ignore[assignment]
        try:
            use_socket_path(path, there.connect)
            if peer_uid(there) == os.getuid():
                return there
        except OSError:
            pass
        there.close()
    except (OSError, ImportError, AttributeError):
        pass  # no database, no socket, or no support for Unix sockets
    return None


def use_socket_path(path: str, use: "object") -> None:
    """Call `use` with a socket path, shortened through a handle of its folder if it exceeds the system's limit."""
    assert callable(use)
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        use(path)
        return
    folder, name = os.path.split(path)
    handle = os.open(folder, os.O_RDONLY)
    try:
        use(f"/proc/self/fd/{handle}/{name}")
    finally:
        os.close(handle)


def peer_uid(there: "socket") -> int | None:
    """Return the user id of the peer, or None if the system does not provide it."""
    import _socket

    if hasattr(_socket, "SO_PEERCRED"):
        told = there.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)  # process, user, group
    elif sys.platform == "darwin":
        told = there.getsockopt(0, 1, 76)  # LOCAL_PEERCRED: version, user, groups
    else:
        return None
    return int.from_bytes(told[4:8], sys.byteorder)


# Messages


def encode_message(letter: bytes, *parts: bytes) -> bytes:
    """Encode a message of several parts."""
    body = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return letter + len(body).to_bytes(4, "big") + body


def decode_parts(body: bytes) -> list[bytes]:
    """Decode the parts of a message. Raise ValueError if a part is truncated."""
    parts = []
    at = 0
    while at < len(body):
        end = at + 4 + int.from_bytes(body[at : at + 4], "big")
        if end > len(body):
            raise ValueError("a part is cut off")
        parts.append(body[at + 4 : end])
        at = end
    return parts


def join_words(words: "list[str]") -> bytes:
    """Encode words, separated by NUL, which no argument or environment variable can contain."""
    return b"".join(os.fsencode(word) + b"\0" for word in words)


def split_words(part: bytes) -> list[str]:
    return [os.fsdecode(word) for word in part.split(b"\0")[:-1]]


def shared_environment(environ: "Mapping[str, str]") -> dict[str, str]:
    """Return the environment variables that must be equal in the command and the server."""
    return {
        name: value
        for name, value in environ.items()
        if name in SHARED_VARIABLES or (name.startswith("QUAID_") and name not in IGNORED_VARIABLES)
    }
