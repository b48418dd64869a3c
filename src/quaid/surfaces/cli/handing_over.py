"""A command that a resident process of the same memory does for us, whose answer we only pass on.

What is handed over is the command line as it is, with folder and environment; the other side does what we would have
done, with everything loaded already. Whatever is not as it should be, the command does itself: nobody there, another
version, other settings, a command that wants a terminal or files. A write is begun there only after we have said that
we still wait for it, so that it is never done twice; if the answer is then lost, we say so and do nothing more.
"""

import os
import sys
from typing import TYPE_CHECKING

from quaid import server_socket
from quaid.server_socket import DONE, INPUT, PROCEED, READS, REQUEST, WANTS_INPUT, WRITES

if TYPE_CHECKING:
    from socket import socket

SECONDS_TO_ANSWER = 1.0
"""Until the other side has looked at the command. A process that was stopped does not hold us up."""

SECONDS_TO_READ, SECONDS_TO_WRITE = 60.0, 300.0

ALONE = frozenset(
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
"""First words with which it is not worth asking: the other side would refuse."""


def handed_over(words: list[str]) -> int | None:
    """Have a resident process do a command and print what it said; None when we have to do it ourselves."""
    if (
        not words
        or words[0] in ALONE
        or server_socket.is_handover_off(os.environ)
        or "--help" in words
        or "-h" in words
    ):
        return None
    home = os.path.join(os.environ.get("HOME") or os.path.expanduser("~"), ".quaid")
    db_path = _memory(words, home)
    there = server_socket.connect(home, db_path) if db_path else None
    if there is None:
        return None
    try:
        return _asked(there, words)
    finally:
        there.close()


def _memory(words: list[str], home: str) -> str:
    """Where the memory probably is; the other side finds out for itself, and refuses when it is another one."""
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
        return ""  # it may say where the memory is, and reading it takes longer than it is worth
    return "memory.db" if os.path.exists("memory.db") else os.path.join(home, "memory.db")


def _asked(there: "socket", words: list[str]) -> int | None:
    import quaid

    begun = b""
    try:
        there.settimeout(SECONDS_TO_ANSWER)
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
        answer, parts = _heard(there)
        if answer == WANTS_INPUT:
            data = _input()
            if data is None:
                return None
            there.sendall(server_socket.encode_message(INPUT, data))
            answer, parts = _heard(there)
        if answer not in (READS, WRITES):
            return None
        begun = answer
        there.settimeout(SECONDS_TO_WRITE if begun == WRITES else SECONDS_TO_READ)
        there.sendall(server_socket.encode_message(PROCEED))
        answer, parts = _heard(there)
        if answer != DONE:
            return None
        status, before, out, after = parts
        done = int(status)
    except (OSError, ValueError):
        if begun == WRITES:
            raise _unanswered(words) from None
        return None  # nothing was begun, or nothing that would change anything
    for stream, said in ((sys.stderr, before), (sys.stdout, out), (sys.stderr, after)):
        stream.write(said.decode("utf-8", "replace"))
        stream.flush()
    return done


def _heard(there: "socket") -> tuple[bytes, list[bytes]]:
    head = _exactly(there, 5)
    size = int.from_bytes(head[1:], "big")
    if size > server_socket.MAX_MESSAGE_BYTES:
        raise ValueError("too much")
    return head[:1], server_socket.decode_parts(_exactly(there, size))


def _exactly(there: "socket", size: int) -> bytes:
    found = b""
    while len(found) < size:
        more = there.recv(min(size - len(found), 1024 * 1024))
        if not more:
            raise ValueError("it ended")
        found += more
    return found


def _input() -> bytes | None:
    """Our standard input; None if a person is to type it, for which we have to tell them so."""
    if sys.stdin.isatty():
        return None
    data = sys.stdin.buffer.read(server_socket.MAX_INPUT_BYTES)
    import io

    sys.stdin = io.TextIOWrapper(io.BytesIO(data))  # should we have to do it ourselves after all
    return data


def _unanswered(words: list[str]) -> Exception:
    from quaid.errors import Unanswered

    return Unanswered(command=words[0])
