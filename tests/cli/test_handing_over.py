"""A command that a resident process answers, or does not answer as it should."""

import socket
import threading

import pytest

from quaid import server_socket
from quaid.cli import client
from quaid.errors import Unanswered


def answered(kind: bytes, *parts: bytes) -> int | None:
    """What becomes of a command that another process takes on, and then answers with these parts."""
    ours, theirs = socket.socketpair()

    def other_side() -> None:
        theirs.recv(1024 * 1024)
        theirs.sendall(server_socket.encode_message(kind))
        theirs.recv(16)
        theirs.sendall(server_socket.encode_message(server_socket.DONE, *parts))

    thread = threading.Thread(target=other_side)
    thread.start()
    try:
        return client._request(ours, ["list"])
    finally:
        thread.join()
        ours.close()
        theirs.close()


def test_an_answer_is_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert answered(server_socket.READS, b"3", b"", b"found\n", b"") == 3
    assert capsys.readouterr().out == "found\n"


@pytest.mark.parametrize("parts", [(), (b"0", b""), (b"zero", b"", b"", b"")])
def test_an_answer_that_is_not_whole_is_none(
    parts: tuple[bytes, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert answered(server_socket.READS, *parts) is None  # we do it ourselves
    with pytest.raises(Unanswered):
        answered(server_socket.WRITES, *parts)  # it may have been done there
    assert capsys.readouterr() == ("", "")
