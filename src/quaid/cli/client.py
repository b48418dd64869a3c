"""Client that delegates a command to a running server of the same memory and prints its output.

The command line is sent as typed, with working directory and environment. The command runs locally if no
server answers, or if the server has another version or other settings. A server starts a write only after the
client has confirmed that it is still waiting, so a write never happens twice; if the answer is lost after
that, the client reports an error.
"""

import os
import sys
from typing import TYPE_CHECKING

from quaid import server_socket
from quaid.errors import Unanswered
from quaid.server_socket import DONE, INPUT, PROCEED, READS, REQUEST, WANTS_INPUT, WRITES

if TYPE_CHECKING:
    from socket import socket

ACCEPT_TIMEOUT = 1.0
"""Seconds for the server to accept the command. Short, so that a suspended server process does not block the
client."""

READ_TIMEOUT, WRITE_TIMEOUT = 60.0, 300.0

LOCAL_COMMANDS = frozenset(
    {
        *(
            "help",
            "-h",
            "--help",
            "init",
            "serve",
            "web",
            "watch",
            "hook",
            "call",
            "pipe",
            "version",
            "--version",
        ),
        *(
            "--tools-json",
            "completion",
            "demo",
            "import",
            "export",
            "embed",
            "backup",
            "compact",
            "connect",
            "daemon",
            "upgrade",
        ),
    }
)
"""First words of commands that are never delegated, because the server would refuse them."""


def delegate(words: list[str]) -> int | None:
    """Run a command on a running server, print its output and return its status. Return None if it has to run
    locally."""
    if (
        not words
        or words[0] in LOCAL_COMMANDS
        or server_socket.is_handover_off(os.environ)
        or "--help" in words
        or "-h" in words
    ):
        return None
    home = os.path.join(os.environ.get("HOME") or os.path.expanduser("~"), ".quaid")
    db_path = _probable_db_path(words, home)
    there = server_socket.connect(home, db_path) if db_path else None
    if there is None:
        return None
    try:
        return _request(there, words)
    finally:
        there.close()


def _probable_db_path(words: list[str], home: str) -> str:
    """Return the probable path of the memory, or "" if unknown. The server resolves it exactly and refuses a
    mismatch."""
    chosen = os.environ.get("QUAID_DB", "")
    config = os.environ.get("QUAID_CONFIG", "")
    for at, word in enumerate(words):
        if word == "--":
            break
        if word in ("--db", "--config"):
            value = words[at + 1] if at + 1 < len(words) else ""
            chosen, config = (value, config) if word == "--db" else (chosen, value)
        elif word.startswith("--db="):
            chosen = word[5:]
        elif word.startswith("--config="):
            config = word[9:]
    if chosen:
        return os.path.expanduser(chosen)
    if config:
        return ""  # the config file may set the path, but reading it costs more than delegating saves
    return "memory.db" if os.path.exists("memory.db") else os.path.join(home, "memory.db")


def _request(there: "socket", words: list[str]) -> int | None:
    import quaid

    begun = b""
    try:
        there.settimeout(ACCEPT_TIMEOUT)
        there.sendall(
            server_socket.encode_message(
                REQUEST,
                os.fsencode(quaid.__version__),
                os.fsencode(os.path.dirname(os.path.abspath(quaid.__file__))),
                os.fsencode(os.getcwd()),
                bytes(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)),
                server_socket.join_words(words),
                server_socket.join_words([f"{name}={value}" for name, value in os.environ.items()]),
            )
        )
        answer, parts = _receive_frame(there)
        if answer == WANTS_INPUT:
            data = _read_stdin()
            if data is None:
                return None
            there.sendall(server_socket.encode_message(INPUT, data))
            answer, parts = _receive_frame(there)
        if answer not in (READS, WRITES):
            return None
        begun = answer
        there.settimeout(WRITE_TIMEOUT if begun == WRITES else READ_TIMEOUT)
        there.sendall(server_socket.encode_message(PROCEED))
        answer, parts = _receive_frame(there)
        if answer != DONE:
            return None
        status, before, out, after = parts
        done = int(status)
    except (OSError, ValueError):
        if begun == WRITES:
            raise _unanswered_error(words) from None
        return None  # nothing was started, or only a read: safe to run locally
    for stream, said in ((sys.stderr, before), (sys.stdout, out), (sys.stderr, after)):
        stream.write(said.decode("utf-8", "replace"))
        stream.flush()
    return done


def _receive_frame(there: "socket") -> tuple[bytes, list[bytes]]:
    head = _receive_exactly(there, 5)
    size = int.from_bytes(head[1:], "big")
    if size > server_socket.MAX_MESSAGE_BYTES:
        raise ValueError("too much")
    return head[:1], server_socket.decode_parts(_receive_exactly(there, size))


def _receive_exactly(there: "socket", size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = there.recv(min(size - len(found), 1024 * 1024))
        if not more:
            raise ValueError("it ended")
        found += more
    return found


def _read_stdin() -> bytes | None:
    """Return standard input, or None if it is a terminal: the local command then prompts the user."""
    if sys.stdin.isatty():
        return None
    data = sys.stdin.buffer.read(server_socket.MAX_INPUT_BYTES)
    import io

    sys.stdin = io.TextIOWrapper(io.BytesIO(data))  # so that a local run can read it again
    return data


def _unanswered_error(words: list[str]) -> Exception:
    return Unanswered(command=words[0])
