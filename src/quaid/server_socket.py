"""The Unix socket on which a running server takes commands: its path, its messages, and how to connect.

Imports nothing but the standard library: a command looks for a server before it loads anything else.
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
MAX_INPUT_BYTES = 4 * 1024 * 1024 + 1  # bytes of standard input: one more than any text may have

REQUEST, INPUT, PROCEED = b"Q", b"T", b"G"
"""What a command sends: itself; its standard input; that it still waits."""

NOT_HERE, WANTS_INPUT, READS, WRITES, DONE = b"N", b"I", b"r", b"w", b"D"
"""What a resident answers: do it yourself, nothing was done; send your input; ready to read, or to write; done."""

SHARED_VARIABLES = ("HOME", "TZ")
"""Variables, beside all of ours, that may not differ between a command and the process that does it."""

IGNORED_VARIABLES = ("QUAID_DB", "QUAID_CONFIG", "QUAID_HANDOVER", "QUAID_TRACE")
"""Variables of ours that are compared by what they lead to."""


def is_handover_off(environ: "Mapping[str, str]") -> bool:
    return environ.get("QUAID_HANDOVER", "").lower() in ("off", "0", "no", "false")


def socket_folder(home: str) -> str:
    return os.path.join(home, SOCKET_FOLDER)


def socket_name(db_path: str) -> str:
    """The socket's name for a memory: whatever path leads to the file, and another one after it was replaced."""
    found = os.stat(db_path)
    return f"{found.st_dev:x}-{found.st_ino:x}"


def is_listening(home: str, db_path: str) -> bool:
    """Whether some process answers for this memory."""
    there = connect(home, db_path)
    if there is None:
        return False
    there.close()
    return True


def connect(home: str, db_path: str) -> "socket | None":
    """A connection to the resident process of a memory, if there is one and it is ours."""
    try:
        name = socket_name(db_path)
        path = os.path.join(socket_folder(home), name)
        if not os.path.exists(path) or os.stat(path).st_uid != os.getuid():
            return None
        import _socket  # the module over it costs six milliseconds

        there: socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)  # type: ignore[assignment]
        try:
            use_socket_path(path, there.connect)
            if peer_uid(there) == os.getuid():
                return there
        except OSError:
            pass
        there.close()
    except (OSError, ImportError, AttributeError):
        pass  # no memory, no socket, or a system without them
    return None


def use_socket_path(path: str, use: "object") -> None:
    """Use a socket by its path, or through the handle of its folder where the path is too long for the system."""
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
    """The user at the other end, as the system tells; None where it does not."""
    import _socket

    if hasattr(_socket, "SO_PEERCRED"):
        told = there.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)  # process, user, group
    elif sys.platform == "darwin":
        told = there.getsockopt(0, 1, 76)  # LOCAL_PEERCRED: version, user, groups
    else:
        return None
    return int.from_bytes(told[4:8], sys.byteorder)


# Frames


def encode_message(letter: bytes, *parts: bytes) -> bytes:
    """A message of several parts."""
    body = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return letter + len(body).to_bytes(4, "big") + body


def decode_parts(body: bytes) -> list[bytes]:
    """The parts of a message. ValueError when they do not add up."""
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
    """Words as one part: no word of a command line or of the environment holds a NUL."""
    return b"".join(os.fsencode(word) + b"\0" for word in words)


def split_words(part: bytes) -> list[str]:
    return [os.fsdecode(word) for word in part.split(b"\0")[:-1]]


def shared_environment(environ: "Mapping[str, str]") -> dict[str, str]:
    """The part of an environment that has to be the same on both sides."""
    return {
        name: value
        for name, value in environ.items()
        if name in SHARED_VARIABLES or (name.startswith("QUAID_") and name not in IGNORED_VARIABLES)
    }
