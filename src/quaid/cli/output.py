"""Format records, errors and progress for standard output and standard error, and ask for confirmation."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

from quaid.app import Progress, no_progress
from quaid.errors import Cancelled, NeedsYes, QuaidError
from quaid.operations.dispatch import json_value

PROGRAM_WORDS = {
    "quaid": (("`ai-kb ", "`quaid kb "),),
    "ai-kb": (("`quaid kb ", "`ai-kb "), ("`quaid --help`", "`ai-kb --help`"), ("'kb ", "'")),
}
"""For each program, words to replace in messages, so that they name its commands as typed."""


def name_program(message: str, program: str) -> str:
    """Return a message with the commands of the knowledge base written for `program`, quaid or ai-kb."""
    for other, ours in PROGRAM_WORDS[program]:
        message = message.replace(other, ours)
    return message


def format_record(record: Any, as_json: bool, terminal: bool, program: str = "quaid") -> str:
    """Return a record as text or JSON, for standard output."""
    if as_json:
        return json.dumps(json_value(record), ensure_ascii=False, indent=2) + "\n"
    from quaid.cli.render import names_kb_commands, render

    text = render(record)
    if names_kb_commands(record):
        text = name_program(text, program)
    if terminal:
        text = strip_control_characters(text)
    return text if text.endswith("\n") or not text else text + "\n"


def format_side_notes(asked: Any, record: Any, as_json: bool, terminal: bool, program: str = "quaid") -> str:
    """Return lines for standard error: a record's warning, or else the new address and version of a page.

    The version is only shown at a terminal; programs read it with --json. Standard output contains only the
    page, so that it can be written back unchanged.
    """
    warning = getattr(record, "warning", "")
    if warning and not as_json:
        return name_program(f"{program}: {strip_control_characters(warning)}\n", program)
    slug = getattr(record, "slug", None)
    if as_json or not isinstance(slug, str):
        return ""
    notes = ""
    asked = asked[0] if isinstance(asked, list) and len(asked) == 1 else asked
    is_moved = isinstance(asked, str) and asked.rpartition("::")[2] != slug.rpartition("::")[2]
    if is_moved and not hasattr(record, "old_slug"):
        now = "" if " " in asked or "." in asked else " now"  # a title or a file name did not change
        notes = f"quaid: {asked} is {slug}{now}\n"
    if terminal and type(record).__name__ == "PageRecord":
        notes += f"quaid: {slug} is at version {record.version}\n"
    return notes


def print_notice(text: str) -> None:
    """Print a notice on standard error."""
    sys.stderr.write(f"quaid: {strip_control_characters(text)}.\n")
    sys.stderr.flush()


def format_error(error: QuaidError, as_json: bool, terminal: bool, program: str = "quaid") -> str:
    """Return an error as text or JSON, for standard error."""
    if as_json:
        body = {"code": error.code, "message": name_program(str(error), program), **error.facts}
        return json.dumps({"error": body}, ensure_ascii=False, default=str) + "\n"
    over_the_bar = "\r\033[K" if terminal else ""
    message = name_program(" ".join(str(error).splitlines()), program)
    return f"{over_the_bar}{program}: {strip_control_characters(message)}\n"


def strip_control_characters(text: str) -> str:
    """Replace control characters, so that text cannot move the cursor or rename the terminal's window."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in text)


PROGRESS_DELAY = 0.5  # seconds; shorter work shows no progress
PROGRESS_INTERVAL = 0.1


def progress_reporter(quiet: bool) -> Progress:
    """Return a callback that draws a progress bar on standard error, and does nothing without a terminal."""
    if quiet or not sys.stderr.isatty():
        return no_progress
    started = drawn = time.monotonic()
    visible = False

    def report(done: int, total: int, what: str) -> None:
        nonlocal drawn, visible
        now = time.monotonic()
        finished = done >= total
        if now - started < PROGRESS_DELAY or (now - drawn < PROGRESS_INTERVAL and not finished):
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


def confirm(act: str, show: Callable[[], None], as_json: bool) -> None:
    """Show what would be done and ask for confirmation.

    Raise Cancelled if the user declines, and NeedsYes if the user cannot be asked.
    """
    problem = obstacle(sys.stdin.isatty(), sys.stderr.isatty(), as_json)
    if problem:
        raise NeedsYes(act=act, obstacle=problem)
    show()
    print("Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Cancelled


def obstacle(reads_terminal: bool, shows_terminal: bool, as_json: bool) -> str:
    """Return why the user cannot be asked, or an empty string."""
    if not reads_terminal:
        return "standard input is not a terminal"
    if not shows_terminal:
        return "standard error is not a terminal"
    return "--json does not ask" if as_json else ""
