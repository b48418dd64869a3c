"""A progress line on a terminal for anything that takes more than a moment."""

import sys
import time

from quaid.app import Progress, no_progress

QUIET_SECONDS = 0.5  # work that is over by then shows nothing
REFRESH_SECONDS = 0.1


def reporter(quiet: bool) -> Progress:
    """A reporter that draws on standard error, or none where nobody would see it."""
    if quiet or not sys.stderr.isatty():
        return no_progress
    started = drawn = time.monotonic()
    visible = False

    def report(done: int, total: int, what: str) -> None:
        nonlocal drawn, visible
        now = time.monotonic()
        finished = done >= total
        if now - started < QUIET_SECONDS or (now - drawn < REFRESH_SECONDS and not finished):
            return
        drawn = now
        if finished and visible:
            sys.stderr.write("\r\033[K")
        elif not finished:
            visible = True
            bar = "#" * (30 * done // max(1, total))
            sys.stderr.write(f"\r\033[K{what} [{bar:30}] {done:,} of {total:,}")
        sys.stderr.flush()

    return report
