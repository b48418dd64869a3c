"""Entry points of `quaid` and `ai-kb`: run one command line, report errors, return the exit status.

Modules are imported only when a command needs them: a command that a running server executes (docs/decisions/018)
costs little more than the start of Python.
"""

import atexit
import gc
import os
import sys
from typing import TYPE_CHECKING

from quaid.app import Brain
from quaid.cli import client, output, parser
from quaid.cli.output import format_error
from quaid.errors import Defect, FileTrouble, QuaidError
from quaid.operations import dispatch, index

if TYPE_CHECKING:
    from quaid.cli.parser import CommandLine

GC_THRESHOLD = 50_000
"""Python looks for cycles after so many new objects: a cold command makes fewer, and has nothing to find."""

COMMANDS_WITHOUT_OUTPUT = ("serve", "web", "watch", "hook")
"""Commands whose output is not what they are for: they work on where nobody reads it."""

_program = "quaid"  # or ai-kb: what was typed, for the pages of help


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return its exit status; without words, that of this process, to its end."""
    if argv is None:
        return _run_process(sys.argv[1:])
    status = _run_guarded(argv)
    return 0 if argv[:1] == ["hook"] else status  # a client stops its session on another status


def ai_kb_main() -> int:
    """`ai-kb` is `quaid kb`; what stands before the verb holds for both."""
    global _program
    _program = "ai-kb"
    words = sys.argv[1:]
    if words in (["help", "--man"], ["--help", "--man"]):
        return _run_process(["help", "--man"])
    if words[:1] in (["--version"], ["--help"], ["-h"], ["help"], []):
        return _run_process(["--version"] if words[:1] == ["--version"] else ["help", "kb", *words[1:]])
    return _run_process(["kb", *words])


def _run_process(words: list[str]) -> int:
    """A command in a process of its own: nobody waits until what it has loaded is tidied up."""
    gc.set_threshold(GC_THRESHOLD)
    status = main(words)
    if words[:1] != ["hook"] and _has_pending_work():
        return status
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            pass  # whoever read it went away
    os._exit(status)


def _has_pending_work() -> bool:
    """Whether something wants to be done at the end of the process, or a thread still works."""
    threading = sys.modules.get("threading")
    return atexit._ncallbacks() > 0 or (threading is not None and threading.active_count() > 1)


def _run_guarded(words: list[str]) -> int:
    as_json = "--json" in words
    _replace_closed_streams(words)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a console's code page must not stop a page from showing
            stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    try:
        status = _dispatch(words)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("\nquaid: stopped; nothing half-done is left behind", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader went away (`quaid list | head`). Point stdout elsewhere so that exit stays quiet.
        _discard_output()
        return 0
    except Exception as error:
        return _report_error(error, as_json)


def _report_error(error: Exception, as_json: bool) -> int:
    """Say what went wrong, in one line with a remedy."""
    told = error
    if isinstance(error, OSError):
        _discard_output()
        told = FileTrouble(path=error.filename or "standard output", problem=error.strerror or str(error))
    elif not isinstance(error, QuaidError):
        if "QUAID_TRACE" in os.environ:
            raise error
        told = Defect(problem=f"{type(error).__name__}: {error}")
    assert isinstance(told, QuaidError)
    said = format_error(told, as_json, sys.stderr.isatty())
    sys.stderr.write(_reword_for_ai_kb(said) if _program == "ai-kb" else said)
    sys.stderr.flush()
    return told.exit_status


def _reword_for_ai_kb(said: str) -> str:
    """A complaint in the words of somebody who typed `ai-kb`."""
    for ours, theirs in (("`quaid kb ", "`ai-kb "), ("`quaid --help`", "`ai-kb --help`"), ("'kb ", "'")):
        said = said.replace(ours, theirs)
    return f"ai-kb: {said.removeprefix('quaid: ')}" if said.startswith("quaid: ") else said


def _replace_closed_streams(words: list[str]) -> None:
    """Put something in the place of a stream that the caller closed.

    Standard input reads as empty, and standard error swallows what is written. Standard output cannot be written:
    a command whose answer nobody can read has failed, as it has on a full disk.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            unread = name == "stdout" and words[:1] not in ([each] for each in COMMANDS_WITHOUT_OUTPUT)
            handle = os.open(os.devnull, os.O_RDONLY if unread or mode == "r" else os.O_WRONLY)
            setattr(sys, name, open(handle, mode))  # noqa: SIM115


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_overview() -> bool:
    """Print the first page of help as it was generated; false where the file is not part of a build."""
    try:
        with open(os.path.join(os.path.dirname(__file__), "overview.txt"), encoding="utf-8") as file:
            sys.stdout.write(file.read())
    except FileNotFoundError:
        return False
    return True


def _dispatch(words: list[str]) -> int:
    if words in ([], ["--help"], ["-h"], ["help"]) and _print_overview():
        return 0
    status = client.delegate(words)
    if status is not None:
        return status

    line = parser.split_command_line(words)
    if line.command in ("", "help") or line.wants_help or _is_command_group(line):
        print(parser.help_page(line.topic, _program) if line.topic else parser.help_overview(), end="")
        return 0
    if line.command in index.NO_OPERATIONS:
        from quaid.cli.commands import COMMANDS

        return COMMANDS[line.command].run(line)
    return _run_operation(line)


def _is_command_group(line: "CommandLine") -> bool:
    """Whether only the first word of a family of commands was typed, as in `quaid kb`: its page lists them."""
    known = line.command in index.COMMANDS or line.rest
    return not known and any(each.startswith(line.command + " ") for each in index.COMMANDS)


def _run_operation(line: "CommandLine") -> int:
    operation = dispatch.find_command(line.command)
    given = parser.operation_arguments(line, operation)

    def show(record: object, as_json: bool) -> None:
        sys.stdout.write(output.format_record(record, as_json, sys.stdout.isatty()))
        sys.stdout.flush()

    reporter = output.progress_reporter(line.as_json)
    with Brain(parser.load_settings(line), progress=reporter, notice=output.print_notice) as brain:
        record = dispatch.call(brain, operation, given, "owner")
        if hasattr(record, "if_agreed"):
            more = output.confirm(record, lambda each: show(each, False), line.as_json)
            record = dispatch.call(brain, operation, {**given, **more}, "owner") if more else record
    show(record, line.as_json)
    said = output.format_side_notes(given.get("slug"), record, line.as_json, sys.stderr.isatty())
    sys.stderr.write(_reword_for_ai_kb(said) if _program == "ai-kb" else said)
    return int(getattr(record, "exit_status", 0))
