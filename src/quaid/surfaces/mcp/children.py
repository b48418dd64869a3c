"""Processes that a server starts for work that it does not want to carry itself, and that end with it.

A child's standard input is a pipe that the server holds open and never writes to: when it closes, whatever ended
the server, the child ends too. It has no output, unless the server wants to hear it.
"""

import os
import sys
from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from subprocess import Popen

SECONDS_TO_END = 1.0
NO_WINDOW_LOW_PRIORITY = 0x08004000  # on Windows


def start(module: str, path: str, *more: str, heard: bool = False) -> "Popen[bytes]":
    """Run a module of ours on the memory at this path. Its output is read by us, or by nobody."""
    import subprocess  # half a megabyte, so not before it is needed

    # -P: without it Python would look for modules in the folder that the client happens to stand in.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, os.path.abspath(path), *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if heard else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        creationflags=NO_WINDOW_LOW_PRIORITY if os.name == "nt" else 0,
    )


def release(child: "Popen[bytes]") -> None:
    """Let a child end."""
    if child.stdin:
        child.stdin.close()


def end(child: "Popen[bytes]") -> None:
    """See to it that a child ends."""
    from subprocess import TimeoutExpired

    release(child)
    try:
        child.wait(SECONDS_TO_END)
    except TimeoutExpired:  # it hangs
        child.kill()
        child.wait()


def when_the_server_is_gone(act: Callable[[], None]) -> None:
    """In a child: act as soon as the server has ended or wants this process to."""

    def wait() -> None:
        while os.read(0, 1):
            pass
        act()

    Thread(target=wait, daemon=True).start()
