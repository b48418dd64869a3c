"""The commands that are not operations: they make a memory, serve it, or speak tools as text.

tests/surfaces/cli/test_local.py pins this list; a new verb belongs in the register.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import quaid
from quaid.app import Brain, schema_version_of, sqlite_version
from quaid.errors import AlreadyExists, InvalidArgument, MissingDatabase, QuaidError
from quaid.operations.registry import Arg, Param
from quaid.storage import OLDEST_VERSION, SCHEMA_VERSION
from quaid.surfaces.cli import arguments
from quaid.surfaces.cli.arguments import Line, settings_of


class Local(NamedTuple):
    summary: str
    params: tuple[Param, ...]
    run: Callable[[Line], int]
    examples: tuple[str, ...] = ()


def _param(
    name: str, help: str, *, required: bool = False, positional: bool = True, default: Any = None
) -> Param:
    return Param(name, "string", (), required, default, Arg(help, positional=positional, path=positional))


def _flag(name: str, help: str) -> Param:
    return Param(name, "boolean", (), False, False, Arg(help))


_PORT = Param("port", "integer", (), False, 4321, Arg("Where it listens; 0: any that is free."))
_DEBUG = _flag("debug", "Offer the debug endpoints, too.")
_READ_ONLY = _flag("read_only", "Let nobody change anything, whatever token they have.")


def _init(line: Line) -> int:
    given = arguments.of_line(line, COMMANDS["init"].params)
    settings = settings_of(line)
    path = settings.db_path
    if "path" in given:
        if given["path"] in ("", "-"):
            raise InvalidArgument(name="path", problem="must be the name of a file, as in memory.db")
        path = settings.path(given["path"])
    created = not os.path.exists(path)
    former = ""
    with Brain(settings._replace(db_path=path)) as brain:
        if created:
            from quaid.operations.background import create_memory

            former = create_memory(brain, path)
        elif os.path.isdir(path):
            raise AlreadyExists(path=path, hint="It is a folder; name a file in it, as in memory.db.")
        else:
            _ = brain.db
    if line.as_json:
        return _print_json({"path": path, "created": created})
    print(f"Made a new memory: {path}" if created else f"{path} is a memory already; nothing was changed")
    if former:
        print(f"The memory that was here had attached {former}; quaid collection add attaches them again")
    if created:
        print(
            "Next: quaid put people/alice alice.md, quaid import FOLDER, or connect an agent with quaid serve"
        )
    return 0


def _version(line: Line) -> int:
    arguments.of_line(line, ())
    path = settings_of(line).db_path
    schema, state = _state_of(path)
    facts = {
        "quaid": quaid.__version__,
        "sqlite": sqlite_version(),
        "schema": SCHEMA_VERSION,
        "python": sys.version.split()[0],
        "memory": path,
        "memory_schema": schema,
    }
    if line.as_json:
        return _print_json(facts)
    print(
        f"quaid {facts['quaid']} (SQLite {facts['sqlite']}, schema {facts['schema']}, Python {facts['python']})"
    )
    print(f"memory: {path} ({state})")
    return 0


def _state_of(path: str) -> tuple[int | None, str]:
    """Return the schema of the file of a memory, if it is one, and what to know about it."""
    try:
        schema = schema_version_of(path)
    except MissingDatabase:
        return None, "not made yet"
    except QuaidError as error:
        return None, f"cannot be used: {error.facts.get('problem') or error.code}"
    if schema > SCHEMA_VERSION:
        return schema, f"schema {schema}: a newer Quaid made it"
    if schema < OLDEST_VERSION:
        return schema, f"schema {schema}: older than {OLDEST_VERSION}, the oldest that can be upgraded"
    later = "" if schema == SCHEMA_VERSION else f", {SCHEMA_VERSION} after the next command that opens it"
    return schema, f"schema {schema}{later}"


def _serve(line: Line) -> int:
    given = arguments.of_line(line, COMMANDS["serve"].params)
    if "http" in given:
        from quaid.surfaces.cli import over_http

        return over_http.serve(settings_of(line), given)
    if set(given) - {"tools"}:
        raise InvalidArgument(name="--" + min(set(given) - {"tools"}), problem="belongs to --http")
    from quaid.mcp.stdio import serve

    return serve(settings_of(line), given.get("tools") or "core")


def _web(line: Line) -> int:
    given = arguments.of_line(line, COMMANDS["web"].params)
    from quaid.surfaces.cli import over_http

    return over_http.web(settings_of(line), given)


def _watch(line: Line) -> int:
    given = arguments.of_line(line, COMMANDS["watch"].params)
    from quaid.surfaces.cli import watching

    return watching.watch(settings_of(line), given.get("name"), "once" in given, line.as_json)


def _hook(line: Line) -> int:
    given = arguments.of_line(line, COMMANDS["hook"].params)
    from quaid.surfaces.cli import hook

    return hook.run(given["event"], lambda: settings_of(line), given.get("client"))


def _call(line: Line) -> int:
    given = arguments.of_line(line, COMMANDS["call"].params)
    from quaid.surfaces.cli import machine

    return machine.call(settings_of(line), given["tool"], given.get("json") or "{}")


def _pipe(line: Line) -> int:
    arguments.of_line(line, ())
    from quaid.surfaces.cli import machine

    return machine.pipe(settings_of(line))


def _tools_json(line: Line) -> int:
    if line.rest:
        raise InvalidArgument(name="--tools-json", problem="stands alone")
    from quaid.mcp.tools import list_tools

    return _print_json({"tools": list_tools("all")})


def _completion(line: Line) -> int:
    given = arguments.of_line(line, COMMANDS["completion"].params)
    from quaid.surfaces.cli import completing

    return completing.run(given["shell"], given.get("start") or "", lambda: settings_of(line))


def _demo(line: Line) -> int:
    given = arguments.of_line(line, COMMANDS["demo"].params)
    from quaid.surfaces.cli import demo

    return demo.run(settings_of(line), given.get("folder"), "all" in given, line.as_json)


def _print_json(value: Any) -> int:
    print(json.dumps(value, ensure_ascii=False, indent=2))
    return 0


COMMANDS: dict[str, Local] = {
    "init": Local(
        "Make a new memory.",
        (_param("path", "Where; else --db, QUAID_DB or ~/.quaid/memory.db."),),
        _init,
        ("quaid init", "quaid init ~/work.db"),
    ),
    "serve": Local(
        "Serve the memory to an agent over MCP: on stdio, or (--http) to many, with the browser's pages.",
        (
            _param(
                "tools",
                "lean, core, kb, all, or names with commas between.",
                positional=False,
                default="core",
            ),
            _flag("http", "Over HTTP, at /mcp; a token lets a client in (quaid token create)."),
            _PORT,
            _param("bind", "The address to listen on; beyond this machine only with TLS.", positional=False),
            _param("tls_cert", "The file of the certificate.", positional=False),
            _param("tls_key", "The file of its key.", positional=False),
            _flag("behind_proxy", "A proxy in front does TLS."),
            Param("allow_host", "array", (), False, (), Arg("A name under which it is reached.")),
            _DEBUG,
            _READ_ONLY,
        ),
        _serve,
        (
            "quaid serve",
            "quaid serve --tools all --db ~/work.db",
            "quaid serve --http --port 4321",
            "quaid serve --http --behind-proxy --allow-host memory.example.org",
        ),
    ),
    "web": Local(
        "Open the memory in a browser.",
        (_PORT, _flag("no_open", "Print the link instead of opening a browser."), _DEBUG, _READ_ONLY),
        _web,
        ("quaid web", "quaid web --port 0 --no-open"),
    ),
    "watch": Local(
        "Keep attached folders fresh until Ctrl-C; quaid serve does so too.",
        (
            _param("name", "The collection [all]."),
            Param("once", "boolean", (), False, False, Arg("Look once, say what changed, and end.")),
        ),
        _watch,
        ("quaid watch", "quaid watch notes", "quaid watch --once"),
    ),
    "hook": Local(
        "Answer a hook event of Claude Code: JSON in, JSON out; `quaid connect claude-code` sets it up.",
        (
            _param("event", "session-start, user-prompt, pre-compact or stop.", required=True),
            Param(
                "client", "string", (), False, None, Arg("Which client runs it, and so how much it takes.")
            ),
        ),
        _hook,
        ("quaid hook session-start < event.json",),
    ),
    "call": Local(
        "Call one tool with JSON, as an agent would.",
        (
            _param("tool", "The tool, as in memory_get.", required=True),
            _param("json", "Its arguments as JSON."),
        ),
        _call,
        ('quaid call memory_get \'{"slug": "people/alice"}\'',),
    ),
    "pipe": Local(
        'Answer tool calls line by line: {"tool": NAME, "arguments": {...}} in, results out.',
        (),
        _pipe,
        ("quaid pipe < calls.jsonl",),
    ),
    "completion": Local(
        "Print the script with which a shell completes commands, options and slugs.",
        (
            _param(
                "shell", "bash, zsh or fish; the scripts ask for names, as in slugs or tags.", required=True
            ),
            _param("start", "Of names: how they begin."),
        ),
        _completion,
        (
            "quaid completion bash > ~/.local/share/bash-completion/completions/quaid",
            "quaid completion zsh > ~/.zfunc/_quaid",
            "quaid completion fish > ~/.config/fish/completions/quaid.fish",
        ),
    ),
    "demo": Local(
        "Make a sample memory in a folder of its own, and walk through ten questions.",
        (
            _param("folder", "Where; it must be new or empty [a temporary one, gone at the end]."),
            _flag("all", "Do not wait for Enter between the questions."),
        ),
        _demo,
        ("quaid demo", "quaid demo ~/quaid-demo --all"),
    ),
    "version": Local("Show versions and where the memory is.", (), _version, ("quaid version",)),
    "--tools-json": Local("Print the tools as MCP lists them.", (), _tools_json, ("quaid --tools-json",)),
}
