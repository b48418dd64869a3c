"""The process that keeps attached folders fresh for a server, and ends with it.

Takes the lease of every folder that nobody watches; ends when it has none. What is wrong with a folder stands in its
collection. Prints nothing, unless its server wants to hear what happens: then a line of JSON for each event, with
counts and names of collections, never of a text.
"""

import json
import os
import sys
import time
from threading import Event
from typing import Any

from quaid import config
from quaid.brain import Brain
from quaid.errors import QuaidError
from quaid.folders import watcher
from quaid.operations import collections
from quaid.surfaces.mcp import children

POLITENESS = 5  # of 19: an edit should be found soon, but not at the cost of whoever works
SECONDS_TO_STOP = 0.7  # the server kills after one


def main(path: str, *words: str, **how: Any) -> int:
    """Watch the folders of the memory at this path; `how` may set other intervals."""
    if hasattr(os, "nice"):
        os.nice(POLITENESS)
    stop = Event()

    def end() -> None:
        stop.set()
        time.sleep(SECONDS_TO_STOP)
        os._exit(0)  # a transaction that is not finished never was

    children.when_the_server_is_gone(end)
    try:
        with Brain(config.read(path, os.environ, os.path.dirname(path))) as brain:
            collections.watch_folders(
                brain, _told if "--tell" in words else _nothing, stop, patient=False, **how
            )
    except Exception as error:
        _left_in_writing(path, error)
        return 1
    return 0


def _left_in_writing(path: str, error: Exception) -> None:
    """Nobody reads our standard error: leave word where `quaid doctor` looks."""
    try:
        with Brain(config.read(path, os.environ, os.path.dirname(path))) as brain:
            collections.record_watch_failure(brain, watcher.error_text(error))
    except QuaidError:
        pass  # whoever opens the memory next is told


def _nothing(_event: Any) -> None:
    pass


def _told(event: Any) -> None:
    """One line for the server."""
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
        pass  # the server is gone; we are soon


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
