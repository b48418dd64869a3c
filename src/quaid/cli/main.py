"""Run one command line of `quaid` or `ai-kb`, report errors, and return the exit status.

Modules are imported only when a command needs them, so that a command that a running server executes
(docs/decisions/018) costs little more than the start of Python.
"""

import atexit
import gc
import os
import sys

from quaid import server_socket
from quaid.app import Brain
from quaid.cli import output, parser
from quaid.cli.output import format_error
from quaid.errors import Defect, FileTrouble, InvalidArgument, QuaidError
from quaid.operations import dispatch, index

GC_THRESHOLD = 50_000
"""Garbage is collected after this many allocations. A short command makes fewer, so no collection is run."""

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

    If threads or exit callbacks are pending, return the status instead. `program` is the name as typed, quaid or
    ai-kb. `asks_server` is False if a running server was already asked to run the command.
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
    if words in ([], ["--help"], ["-h"], ["help"]):
        sys.stdout.write(parser.generated_file("overview.txt"))
        return 0
    status = server_socket.delegate(words, program) if asks_server else None
    if status is not None:
        return status
    line = parser.split_command_line(words)
    is_group_alone = line.command not in index.COMMANDS and not line.rest and parser.is_group(line.command)
    if line.command in ("", "help") or line.wants_help or is_group_alone:
        print(parser.help_page(line.topic, program) if line.topic else parser.help_overview(), end="")
        return 0
    if line.command in index.NO_OPERATIONS:
        from quaid.cli.commands import COMMANDS

        command = COMMANDS[line.command]
        return command.run(line, parser.line_arguments(line, command.params))
    return _run_operation(line, program)


def _run_operation(line: parser.CommandLine, program: str) -> int:
    operation = dispatch.find_command(line.command)
    arguments = parser.operation_arguments(line, operation)

    def show(record: object, as_json: bool) -> None:
        sys.stdout.write(output.format_record(record, as_json, sys.stdout.isatty(), program))
        sys.stdout.flush()

    reporter = output.progress_reporter(line.as_json)
    with Brain(parser.load_settings(line), progress=reporter, notice=output.print_notice) as brain:
        try:
            record = dispatch.call(brain, operation, arguments, "owner")
            if getattr(record, "if_agreed", None):
                output.confirm(record.act, lambda: show(record, False), line.as_json)
                record = dispatch.call(brain, operation, {**arguments, **record.if_agreed}, "owner")
        except InvalidArgument as error:
            raise parser.as_typed(error, operation) from error
    show(record, line.as_json)
    asked = arguments.get("slug")
    sys.stderr.write(output.format_side_notes(asked, record, line.as_json, sys.stderr.isatty(), program))
    return int(getattr(record, "exit_status", 0))
