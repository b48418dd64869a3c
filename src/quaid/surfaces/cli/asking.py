"""Asking a person before something is done that cannot be undone.

An operation that wants to be asked about returns a record of what it would do, with `act` (what it is, in words)
and `if_agreed` (the arguments with which it does so). Without a terminal, --yes has to be given beforehand.
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
    problem = obstacle(sys.stdin.isatty(), sys.stderr.isatty(), as_json)
    if problem:
        raise NeedsYes(act=record.act, obstacle=problem)
    show(record)
    print("Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Cancelled
    return more


def obstacle(reads_terminal: bool, shows_terminal: bool, as_json: bool) -> str:
    """Return why no question can be asked, or an empty string."""
    if not reads_terminal:
        return "standard input is not a terminal"
    if not shows_terminal:
        return "standard error is not a terminal"
    return "--json does not ask" if as_json else ""
