"""Asking a person before something is done that cannot be undone.

An operation that wants to be asked about returns a record of what it would do, with `act` (what it is, in words)
and `if_agreed` (the arguments with which it does so). Whoever is not at a terminal has to say --yes beforehand.
"""

import sys
from collections.abc import Callable
from typing import Any

from quaid.errors import Cancelled, NeedsYes


def agreed(record: Any, show: Callable[[Any], None], as_json: bool) -> dict[str, Any]:
    """What to call the operation with again, after a person has agreed; nothing when there is no question."""
    more: dict[str, Any] = getattr(record, "if_agreed", {})
    if not more:
        return {}
    if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise NeedsYes(act=record.act)
    show(record)
    print("Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Cancelled
    return more
