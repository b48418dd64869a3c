"""The process that watches attached folders for a server and exits with it.

It takes the lease of every folder without a watcher, and exits when it holds none. With --tell it prints one line of
JSON per event, with counts and collection names but no page text.
"""

import json
import os
import sys
import time
from threading import Event
from typing import Any

from quaid import config
from quaid.app import Brain
from quaid.errors import QuaidError
from quaid.folders import watcher
from quaid.mcp import worker
from quaid.operations import collections

WATCHER_NICENESS = 5  # of 19: notice edits soon, but yield to interactive processes
WATCHER_STOP_SECONDS = 0.7  # less than the one second after which the server kills the process


def main(path: str, *words: str, **how: Any) -> int:
    """Watch the folders of the memory at this path. `how` is passed on to watch_folders()."""
    if hasattr(os, "nice"):
        os.nice(WATCHER_NICENESS)
    stop = Event()

    def end() -> None:
        stop.set()
        time.sleep(WATCHER_STOP_SECONDS)
        os._exit(0)  # safe: SQLite rolls back an unfinished transaction

    worker.on_server_exit(end)
    try:
        with Brain(config.read_settings(path, os.environ, os.path.dirname(path))) as brain:
            collections.watch_folders(
                brain, _print_event if "--tell" in words else _ignore_event, stop, patient=False, **how
            )
    except Exception as error:
        _record_failure(path, error)
        return 1
    return 0


def _record_failure(path: str, error: Exception) -> None:
    """Record the error for `quaid doctor`, since standard error is discarded."""
    try:
        with Brain(config.read_settings(path, os.environ, os.path.dirname(path))) as brain:
            collections.record_watch_failure(brain, watcher.error_text(error))
    except QuaidError:
        pass  # the next command that opens the memory reports the problem


def _ignore_event(_event: Any) -> None:
    pass


def _print_event(event: Any) -> None:
    """Print an event as one line of JSON for the server."""
    kind = type(event).__name__.removeprefix("Watch").lower()
    facts = {name: getattr(event, name, None) for name in ("collection", "problem")}
    if kind == "synced":
        sync = event.sync
        facts = {
            name: getattr(sync, name)
            for name in ("collection", "files", "new", "changed", "moved", "removed")
        }
    try:
        print(json.dumps({"event": kind, **facts}), flush=True)
    except OSError:
        pass  # the server has exited, and this process will too


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
