"""`quaid watch`: in the foreground, a line for everything that happens, until somebody ends it."""

import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType
from typing import Any

from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import collections
from quaid.surfaces.cli.speaking import notice


def watch(settings: Settings, name: str | None, once: bool, as_json: bool) -> int:
    """Watch until Ctrl-C, which is how it is meant to end: status 0."""

    def tell(event: Any) -> None:
        print(_line(event, as_json), flush=True)

    with Brain(settings, notice=notice) as brain:
        if once:
            return 0 if collections.sync_once(brain, tell, name) else 1
        stop = Event()
        with _signals_set(stop):
            collections.watch_folders(brain, tell, stop, name=name)
    if not as_json:
        print("Stopped watching; the next sync or watch goes on from here.", file=sys.stderr)
    return 0


def _line(event: Any, as_json: bool) -> str:
    if as_json:
        from quaid.operations.dispatch import json_value

        kind = type(event).__name__.removeprefix("Watch").lower()
        return json.dumps({"event": kind, **json_value(event)}, ensure_ascii=False)
    from quaid.surfaces.cli.render import render

    return f"{time.strftime('%H:%M:%S')}  {render(event)}"


@contextmanager
def _signals_set(stop: Event) -> Iterator[None]:
    """SIGINT and SIGTERM let the work at hand come to its end; a second one ends the process as ever."""
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}

    def handle(_number: int, _frame: FrameType | None) -> None:
        for each, handler in before.items():
            signal.signal(each, handler)
        stop.set()

    for each in before:
        signal.signal(each, handle)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
