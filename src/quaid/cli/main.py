"""Run one command line of `quaid` or `ai-kb`, print its result, progress and errors, and ask for confirmation.

Modules are imported only when a command needs them. A command that is executed by a running server
(docs/decisions/018) takes little longer than starting Python.
"""

import atexit
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from quaid import server_socket
from quaid.app import Brain, Progress, no_progress
from quaid.cli import parser
from quaid.cli.render import names_kb_commands, render
from quaid.errors import Cancelled, Defect, FileTrouble, InvalidArgument, InvalidDate, NeedsYes, QuaidError
from quaid.operations import dispatch, index
from quaid.operations.dispatch import json_value

GC_THRESHOLD = 50_000
"""Number of allocations before the garbage collector runs. Short commands finish before that."""

COMMANDS_WITHOUT_OUTPUT = ("serve", "web", "watch", "hook")
"""Commands that keep running if standard output is closed, because their output is incidental."""


def main(argv: list[str] | None = None) -> int:
    """Run a command line and return its exit status.

    Without `argv`, run the command line of this process and exit.
    """
    if argv is None:
        return run_process(sys.argv[1:], asks_server=True)
    return _run_guarded(argv, "quaid", asks_server=True)


def run_process(words: list[str], program: str = "quaid", *, asks_server: bool = False) -> int:
    """Run a command and exit without the interpreter's cleanup, to save time.

    If threads or exit callbacks are pending, return the status instead, except for `hook`. `program` is the name as
    typed, quaid or ai-kb. `asks_server` is False if a running server was already asked to run the command.
    """
    gc.set_threshold(GC_THRESHOLD)
    status = _run_guarded(words, program, asks_server)
    if words[:1] != ["hook"] and _has_pending_work():
        return status
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            pass  # the reader closed the pipe
    os._exit(status)


def _has_pending_work() -> bool:
    """Return True if there are atexit callbacks or other running threads."""
    threading = sys.modules.get("threading")
    return atexit._ncallbacks() > 0 or (threading is not None and threading.active_count() > 1)


def _run_guarded(words: list[str], program: str, asks_server: bool) -> int:
    status = _run_reporting(words, program, asks_server)
    return 0 if words[:1] == ["hook"] else status  # clients stop their session on a non-zero status


def _run_reporting(words: list[str], program: str, asks_server: bool) -> int:
    as_json = "--json" in words
    _replace_closed_streams(words)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # avoids encoding errors on consoles with a legacy code page
            stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    try:
        status = _dispatch(words, program, asks_server)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print(f"\n{program}: stopped; nothing half-done is left behind", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader closed the pipe (`quaid list | head`). Standard output is redirected so that the flush at
        # exit does not fail.
        _discard_output()
        return 0
    except Exception as error:
        return _report_error(error, as_json, program)


def _report_error(error: Exception, as_json: bool, program: str) -> int:
    """Print an error with its remedy on one line, and return the exit status."""
    if isinstance(error, OSError):
        _discard_output()
        error = FileTrouble(path=error.filename or "standard output", problem=error.strerror or str(error))
    elif not isinstance(error, QuaidError):
        if "QUAID_TRACE" in os.environ:
            raise error
        error = Defect(problem=f"{type(error).__name__}: {error}")
    sys.stderr.write(format_error(error, as_json, sys.stderr.isatty(), program))
    sys.stderr.flush()
    return error.exit_status


def _replace_closed_streams(words: list[str]) -> None:
    """Replace standard streams that the caller has closed.

    Standard input reads as empty, and standard error discards its output. Writing to standard output fails,
    as on a full disk, except for COMMANDS_WITHOUT_OUTPUT.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            unread = name == "stdout" and (not words or words[0] not in COMMANDS_WITHOUT_OUTPUT)
            handle = os.open(os.devnull, os.O_RDONLY if unread or mode == "r" else os.O_WRONLY)
            setattr(sys, name, open(handle, mode))  # noqa: SIM115


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(words: list[str], program: str, asks_server: bool) -> int:
    if words in (["--help"], ["-h"], ["help", "all"]):
        overview = parser.generated_file("overview.txt")
        _write(parser.fit_width(overview, server_socket.terminal_size()[0]), False)
        return 0
    status = server_socket.delegate(words, program) if asks_server else None
    if status is not None:
        return status
    line = parser.split_command_line(words)
    is_group_alone = line.command not in index.COMMANDS and not line.rest and parser.is_group(line.command)
    if not line.command and not line.wants_help:
        return _show_home(line)
    if line.command in ("", "help") or line.wants_help or is_group_alone:
        _write(_help_text(line, program), line.no_pager)
        return 0
    if line.command in index.NO_OPERATIONS:
        command = parser.local_commands()[line.command]
        return command.run(line, parser.line_arguments(line, command.params))
    return _run_operation(line, program)


def _help_text(line: parser.CommandLine, program: str) -> str:
    width = server_socket.terminal_size()[0]
    if not line.topic and not line.wants_help:
        return parser.fit_width(parser.home_help(_bold if uses_colour() else str), width)
    if line.topic == "--man":
        return parser.help_page(line.topic, program)
    return parser.fit_width(parser.help_page(line.topic or "all", program), width)


def _write(text: str, no_pager: bool) -> None:
    """Print a text, in a pager if it is longer than the terminal."""
    sys.stdout.flush()
    options = [server_socket.NO_PAGER] if no_pager else []
    if not server_socket.show_in_pager(text.encode("utf-8", "replace"), options):
        sys.stdout.write(text)
        sys.stdout.flush()


def _show_home(line: parser.CommandLine) -> int:
    """Print the state of the memory and the commands that matter most. Nothing is created or migrated."""
    from quaid.operations.shell import home_state

    with Brain(parser.load_settings(line), notice=print_notice) as brain:
        record = home_state(brain)
    width = server_socket.terminal_size()[0]
    text = format_record(record, line.as_json, sys.stdout.isatty(), width=width)
    if not line.as_json:
        paint = _bold if uses_colour() else str
        first, _, rest = text.partition("\n")
        text = parser.fit_width(f"{paint(first)}\n{rest}\n{parser.home_help(paint)}", width)
    sys.stdout.write(text)
    return 0


def uses_colour() -> bool:
    """Return True if standard output is a terminal that shows colours, and NO_COLOR is not set."""
    environ = os.environ
    return sys.stdout.isatty() and not environ.get("NO_COLOR") and environ.get("TERM", "") not in ("", "dumb")


def _bold(text: str) -> str:
    return f"\033[1;36m{text}\033[0m"


def _run_operation(line: parser.CommandLine, program: str) -> int:
    operation = dispatch.find_command(line.command)
    arguments = parser.operation_arguments(line, operation)

    def show(record: object, as_json: bool) -> None:
        text = format_record(record, as_json, sys.stdout.isatty(), program, server_socket.terminal_size()[0])
        _write(text, line.no_pager)

    reporter = progress_reporter(line.as_json)
    settings = parser.load_settings(line)
    with Brain(settings, progress=reporter, notice=print_notice, ask=passphrase_prompt()) as brain:
        try:
            record = dispatch.call(brain, operation, arguments, "owner")
            if getattr(record, "if_agreed", None):
                confirm(record.act, lambda: show(record, False), line.as_json)
                record = dispatch.call(brain, operation, {**arguments, **record.if_agreed}, "owner")
        except (InvalidArgument, InvalidDate) as error:
            raise parser.as_typed(error, operation) from error
    show(record, line.as_json)
    asked = arguments.get("slug")
    sys.stderr.write(format_side_notes(asked, record, line.as_json, sys.stderr.isatty(), program))
    return int(getattr(record, "exit_status", 0))


PROGRAM_WORDS = {
    "quaid": (("`ai-kb ", "`quaid kb "),),
    "ai-kb": (("`quaid kb ", "`ai-kb "), ("`quaid --help`", "`ai-kb --help`"), ("'kb ", "'")),
}
"""Replacements that make messages name the commands of the program that was called."""


def name_program(message: str, program: str) -> str:
    """Rewrite commands of the knowledge base in a message for `program`: quaid or ai-kb."""
    for other, ours in PROGRAM_WORDS[program]:
        message = message.replace(other, ours)
    return message


def format_record(record: Any, as_json: bool, terminal: bool, program: str = "quaid", width: int = 0) -> str:
    """Return a record as text or JSON. Tables are at most `width` columns wide; 0 means no limit."""
    if as_json:
        return json.dumps(json_value(record), ensure_ascii=False, indent=2) + "\n"
    text = render(record, width)
    if names_kb_commands(record):
        text = name_program(text, program)
    if terminal:
        text = strip_control_characters(text)
    return text if text.endswith("\n") or not text else text + "\n"


def format_side_notes(asked: Any, record: Any, as_json: bool, terminal: bool, program: str = "quaid") -> str:
    """Return lines for standard error, if any: a record's warning, or else the new address and version of a page.

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
        # A title, a name without a folder or a file name cannot be the old address of a renamed page.
        is_address = "/" in asked and " " not in asked and "." not in asked
        notes = f"quaid: {asked} is {slug} now\n" if is_address else f"quaid: found {slug}\n"
    if terminal and type(record).__name__ == "PageRecord":
        notes += f"quaid: {slug} is at version {record.version}\n"
    return notes


def print_notice(text: str) -> None:
    """Print a notice on standard error."""
    sys.stderr.write(f"quaid: {strip_control_characters(text)}.\n")
    sys.stderr.flush()


def format_error(error: QuaidError, as_json: bool, terminal: bool, program: str = "quaid") -> str:
    """Return an error as one line of text or JSON."""
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
    """Return a callback that draws a progress bar on standard error, unless `quiet` is set or it is not a
    terminal.
    """
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


def passphrase_prompt() -> Callable[[str], str] | None:
    """Return a function that asks for a passphrase without echoing it, or None without a terminal."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        return None

    def ask(prompt: str) -> str:
        from getpass import getpass

        try:
            return getpass(prompt)
        except EOFError:
            raise Cancelled from None

    return ask


def confirm(act: str, show: Callable[[], None], as_json: bool) -> None:
    """Show the planned changes and ask for confirmation.

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
    """Return the reason why the user cannot be asked for confirmation, or an empty string."""
    if not reads_terminal:
        return "standard input is not a terminal"
    if not shows_terminal:
        return "standard error is not a terminal"
    return "--json does not ask" if as_json else ""
