"""The command line: words in, one operation called, its record printed.

Every command is an operation of the register, but for the few in `local.py`. Nothing here knows what an
operation does; nothing below here prints.
"""

import os
import sys
from typing import Any, NoReturn

from quaid.errors import Defect, FileTrouble, InvalidArgument, QuaidError, WrongUsage


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return its exit status."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] != ["hook"]:
        return _main(words)
    if argv is None:
        _hurry(words)
    _main(words)
    return 0  # a client stops its session on another status


def _hurry(words: list[str]) -> NoReturn:
    """A hook in a process of its own: nobody waits until what it has loaded is tidied up."""
    import gc

    gc.disable()
    _main(words)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            pass  # the client went away
    os._exit(0)


def knowledge_base() -> int:
    """`ai-kb` is `quaid kb`; what stands before the verb holds for both."""
    words = sys.argv[1:]
    if words[:1] in (["--version"], ["--help"], ["-h"], ["help"], []):
        return main(["--version"] if words[:1] == ["--version"] else ["help", "kb", *words[1:]])
    return main(["kb", *words])


def _main(words: list[str]) -> int:
    as_json = "--json" in words
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a console's code page must not stop a page from showing
            stream.reconfigure(encoding="utf-8", errors="replace", newline="\n")
    try:
        status = _run(words)
        sys.stdout.flush()
        return status
    except QuaidError as error:
        _complain(error, as_json)
        return error.exit_status
    except KeyboardInterrupt:
        print("\nquaid: stopped; nothing half-done is left behind", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader went away (`quaid list | head`). Point stdout elsewhere so that exit stays quiet.
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()
        trouble = FileTrouble(path=error.filename or "standard output", problem=error.strerror or str(error))
        _complain(trouble, as_json)
        return trouble.exit_status
    except Exception as error:
        if "QUAID_TRACE" in os.environ:
            raise
        defect = Defect(problem=f"{type(error).__name__}: {error}")
        _complain(defect, as_json)
        return defect.exit_status


def _open_streams() -> None:
    """A stream that the caller closed reads as empty and swallows what is written."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    from quaid.surfaces.cli import arguments

    line = arguments.split(words)
    if line.command in ("", "help") or line.wants_help:
        from quaid.surfaces.cli import manual

        print(manual.page(line.topic) if line.topic else manual.overview(), end="")
        return 0
    from quaid.surfaces.cli.local import COMMANDS

    if line.command in COMMANDS:
        return COMMANDS[line.command].run(line)
    return _operation(line)


def _operation(line: Any) -> int:
    from quaid.brain import Brain
    from quaid.ops import gate, index
    from quaid.surfaces.cli import arguments, progress
    from quaid.surfaces.cli.local import settings_of

    operation = gate.command(line.command)
    try:
        given = arguments.parse(line.rest, operation.params)
    except InvalidArgument as error:
        raise WrongUsage(command=line.command, **error.facts) from None
    given.update(index.ALIASES.get(line.command, {}))
    with Brain(settings_of(line), progress=progress.reporter(line.as_json)) as brain:
        record = gate.call(brain, operation, given, "owner")
        if hasattr(record, "if_agreed"):
            from quaid.surfaces.cli import asking

            more = asking.agreed(record, lambda each: _show(each, False), line.as_json)
            record = gate.call(brain, operation, {**given, **more}, "owner") if more else record
    _show(record, line.as_json)
    _tell_moved(given.get("slug"), record, line.as_json)
    return int(getattr(record, "exit_status", 0))


def _tell_moved(asked: Any, record: Any, as_json: bool) -> None:
    """Say so when an old slug led to a page that has another one now."""
    found = getattr(record, "slug", None)
    if as_json or hasattr(record, "old_slug") or not (isinstance(asked, str) and isinstance(found, str)):
        return
    if asked.rpartition("::")[2] != found.rpartition("::")[2]:
        print(f"quaid: {asked} is {found} now", file=sys.stderr)


def _show(record: Any, as_json: bool) -> None:
    if as_json:
        import json

        from quaid.ops.plain import plain

        print(json.dumps(plain(record), ensure_ascii=False, indent=2))
        return
    from quaid.surfaces.cli.render import render

    text = render(record)
    if sys.stdout.isatty():
        text = _harmless(text)
    sys.stdout.write(text if text.endswith("\n") or not text else text + "\n")
    sys.stdout.flush()


def _harmless(text: str) -> str:
    """Text for a terminal: control characters in a page must not move the cursor or rename the window."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in "\n\t" else "\N{REPLACEMENT CHARACTER}" for each in text
    )


def _complain(error: QuaidError, as_json: bool) -> None:
    if as_json:
        import json

        body = {"code": error.code, "message": str(error), **error.facts}
        print(json.dumps({"error": body}, ensure_ascii=False, default=str), file=sys.stderr)
    else:
        over_the_bar = "\r\033[K" if sys.stderr.isatty() else ""
        print(f"{over_the_bar}quaid: {_harmless(' '.join(str(error).splitlines()))}", file=sys.stderr)
