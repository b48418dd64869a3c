"""Commands that are not operations: init, serve, web, watch, hook, call, pipe, completion, demo, version."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType
from typing import Any, NamedTuple

import quaid
from quaid.app import SCHEMA_VERSION, Brain, schema_version_of, sqlite_version, version_problem
from quaid.cli import parser
from quaid.cli.output import print_notice
from quaid.cli.parser import CommandLine, load_settings
from quaid.config import Settings
from quaid.errors import AlreadyExists, Defect, InvalidArgument, LineTooLarge, MissingDatabase, QuaidError
from quaid.mcp import jsonrpc
from quaid.mcp.jsonrpc import MAX_LINE_BYTES, OversizedLine
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value
from quaid.operations.registry import Arg, Param


class LocalCommand(NamedTuple):
    summary: str
    params: tuple[Param, ...]
    run: Callable[[CommandLine], int]
    examples: tuple[str, ...] = ()


def _text_param(
    name: str, help: str, *, required: bool = False, positional: bool = True, default: Any = None
) -> Param:
    return Param(name, "string", (), required, default, Arg(help, positional=positional, path=positional))


def _flag_param(name: str, help: str) -> Param:
    return Param(name, "boolean", (), False, False, Arg(help))


_PORT = Param("port", "integer", (), False, 4321, Arg("Where it listens; 0: any that is free."))
_DEBUG = _flag_param("debug", "Offer the debug endpoints, too.")
_READ_ONLY = _flag_param("read_only", "Let nobody change anything, whatever token they have.")


def _run_init(line: CommandLine) -> int:
    given = parser.line_arguments(line, COMMANDS["init"].params)
    settings = load_settings(line)
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


def _run_version(line: CommandLine) -> int:
    parser.line_arguments(line, ())
    path = load_settings(line).db_path
    schema, state = _schema_state(path)
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


def _schema_state(path: str) -> tuple[int | None, str]:
    """Return the schema version of a database file, or None, and a description of its state."""
    try:
        schema = schema_version_of(path)
    except MissingDatabase:
        return None, "not made yet"
    except QuaidError as error:
        return None, f"cannot be used: {error.facts.get('problem') or error.code}"
    if problem := version_problem(schema):
        return schema, f"schema {schema}: {problem}"
    later = "" if schema == SCHEMA_VERSION else f", {SCHEMA_VERSION} after the next command that opens it"
    return schema, f"schema {schema}{later}"


def _run_serve(line: CommandLine) -> int:
    given = parser.line_arguments(line, COMMANDS["serve"].params)
    if "http" in given:
        return serve_http(load_settings(line), given)
    if set(given) - {"tools"}:
        raise InvalidArgument(name="--" + min(set(given) - {"tools"}), problem="belongs to --http")
    from quaid.mcp.stdio import serve

    return serve(load_settings(line), given.get("tools") or "core")


def _run_web(line: CommandLine) -> int:
    given = parser.line_arguments(line, COMMANDS["web"].params)

    return serve_web(load_settings(line), given)


def _run_watch(line: CommandLine) -> int:
    given = parser.line_arguments(line, COMMANDS["watch"].params)

    return watch_folders(load_settings(line), given.get("name"), "once" in given, line.as_json)


def _run_hook(line: CommandLine) -> int:
    given = parser.line_arguments(line, COMMANDS["hook"].params)
    from quaid.cli import hook

    return hook.run_hook(given["event"], lambda: load_settings(line), given.get("client"))


def _run_call(line: CommandLine) -> int:
    given = parser.line_arguments(line, COMMANDS["call"].params)

    return call_tool(load_settings(line), given["tool"], given.get("json") or "{}")


def _run_pipe(line: CommandLine) -> int:
    parser.line_arguments(line, ())

    return answer_pipe(load_settings(line))


def _run_tools_json(line: CommandLine) -> int:
    if line.rest:
        raise InvalidArgument(name="--tools-json", problem="stands alone")
    from quaid.mcp.tools import list_tools

    return _print_json({"tools": list_tools("all")})


def _run_completion(line: CommandLine) -> int:
    given = parser.line_arguments(line, COMMANDS["completion"].params)
    from quaid.cli import completion

    return completion.run_completion(given["shell"], given.get("start") or "", lambda: load_settings(line))


def _run_demo(line: CommandLine) -> int:
    given = parser.line_arguments(line, COMMANDS["demo"].params)
    from quaid.cli import demo

    return demo.run_demo(load_settings(line), given.get("folder"), "all" in given, line.as_json)


def _print_json(value: Any) -> int:
    print(json.dumps(value, ensure_ascii=False, indent=2))
    return 0


COMMANDS: dict[str, LocalCommand] = {
    "init": LocalCommand(
        "Make a new memory.",
        (_text_param("path", "Where; else --db, QUAID_DB or ~/.quaid/memory.db."),),
        _run_init,
        ("quaid init", "quaid init ~/work.db"),
    ),
    "serve": LocalCommand(
        "Serve the memory to an agent over MCP: on stdio, or (--http) to many, with the browser's pages.",
        (
            _text_param(
                "tools",
                "lean, core, kb, all, or names with commas between.",
                positional=False,
                default="core",
            ),
            _flag_param("http", "Over HTTP, at /mcp; a token lets a client in (quaid token create)."),
            _PORT,
            _text_param(
                "bind", "The address to listen on; beyond this machine only with TLS.", positional=False
            ),
            _text_param("tls_cert", "The file of the certificate.", positional=False),
            _text_param("tls_key", "The file of its key.", positional=False),
            _flag_param("behind_proxy", "A proxy in front does TLS."),
            Param("allow_host", "array", (), False, (), Arg("A name under which it is reached.")),
            _DEBUG,
            _READ_ONLY,
        ),
        _run_serve,
        (
            "quaid serve",
            "quaid serve --tools all --db ~/work.db",
            "quaid serve --http --port 4321",
            "quaid serve --http --behind-proxy --allow-host memory.example.org",
        ),
    ),
    "web": LocalCommand(
        "Open the memory in a browser.",
        (_PORT, _flag_param("no_open", "Print the link instead of opening a browser."), _DEBUG, _READ_ONLY),
        _run_web,
        ("quaid web", "quaid web --port 0 --no-open"),
    ),
    "watch": LocalCommand(
        "Keep attached folders fresh until Ctrl-C; quaid serve does so too.",
        (
            _text_param("name", "The collection [all]."),
            Param("once", "boolean", (), False, False, Arg("Look once, say what changed, and end.")),
        ),
        _run_watch,
        ("quaid watch", "quaid watch notes", "quaid watch --once"),
    ),
    "hook": LocalCommand(
        "Answer a hook event of Claude Code: JSON in, JSON out; `quaid connect claude-code` sets it up.",
        (
            _text_param("event", "session-start, user-prompt, pre-compact or stop.", required=True),
            Param(
                "client", "string", (), False, None, Arg("Which client runs it, and so how much it takes.")
            ),
        ),
        _run_hook,
        ("quaid hook session-start < event.json",),
    ),
    "call": LocalCommand(
        "Call one tool with JSON, as an agent would.",
        (
            _text_param("tool", "The tool, as in memory_get.", required=True),
            _text_param("json", "Its arguments as JSON."),
        ),
        _run_call,
        ('quaid call memory_get \'{"slug": "people/alice"}\'',),
    ),
    "pipe": LocalCommand(
        'Answer tool calls line by line: {"tool": NAME, "arguments": {...}} in, results out.',
        (),
        _run_pipe,
        ("quaid pipe < calls.jsonl",),
    ),
    "completion": LocalCommand(
        "Print the script with which a shell completes commands, options and slugs.",
        (
            _text_param(
                "shell", "bash, zsh or fish; the scripts ask for names, as in slugs or tags.", required=True
            ),
            _text_param("start", "Of names: how they begin."),
        ),
        _run_completion,
        (
            "quaid completion bash > ~/.local/share/bash-completion/completions/quaid",
            "quaid completion zsh > ~/.zfunc/_quaid",
            "quaid completion fish > ~/.config/fish/completions/quaid.fish",
        ),
    ),
    "demo": LocalCommand(
        "Make a sample memory in a folder of its own, and walk through ten questions.",
        (
            _text_param("folder", "Where; it must be new or empty [a temporary one, gone at the end]."),
            _flag_param("all", "Do not wait for Enter between the questions."),
        ),
        _run_demo,
        ("quaid demo", "quaid demo ~/quaid-demo --all"),
    ),
    "version": LocalCommand("Show versions and where the memory is.", (), _run_version, ("quaid version",)),
    "--tools-json": LocalCommand(
        "Print the tools as MCP lists them.", (), _run_tools_json, ("quaid --tools-json",)
    ),
}


def serve_web(settings: Settings, given: dict[str, Any]) -> int:
    """Serve on this machine and open a browser."""
    from quaid.web import server

    _limit_blas_threads()
    return server.serve_web(settings, _server_options(settings, given), opens="no_open" not in given)


def serve_http(settings: Settings, given: dict[str, Any]) -> int:
    """Serve without a browser, optionally to other machines."""
    from quaid.web import server

    _limit_blas_threads()
    return server.serve_http(settings, _server_options(settings, given))


def _server_options(settings: Settings, given: dict[str, Any]) -> Any:
    from quaid.mcp import tools
    from quaid.web.app import DEFAULT_PORT
    from quaid.web.server import LOOPBACK, ServerOptions

    port = given.get("port", DEFAULT_PORT)
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= 65_535:
        raise InvalidArgument(name="--port", problem=f"must be from 0 to 65535, not {port}")
    chosen = given.get("tools") or "core"
    tools.selected_tools(chosen)
    return ServerOptions(
        port=port,
        bind=given.get("bind", LOOPBACK),
        tls_cert=settings.path(given["tls_cert"]) if given.get("tls_cert") else "",
        tls_key=settings.path(given["tls_key"]) if given.get("tls_key") else "",
        behind_proxy=bool(given.get("behind_proxy")),
        allow_hosts=tuple(given.get("allow_host", ())),
        debug=bool(given.get("debug")),
        readonly=bool(given.get("read_only")),
        tools=chosen,
    )


def _limit_blas_threads() -> None:
    # Set before numpy is imported: OpenBLAS threads keep spinning after each small product.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def call_tool(settings: Settings, tool: str, text: str) -> int:
    with Brain(settings, notice=print_notice) as brain:
        result = _tool_result(brain, tool, _parse_object(text))
    print(json.dumps(result, ensure_ascii=False, indent=2))
    return 0


def answer_pipe(settings: Settings) -> int:
    """Answer each input line with one output line. A bad line gets an error object and does not end the loop."""
    with Brain(settings, notice=print_notice) as brain:
        for line in jsonrpc.read_lines(sys.stdin.buffer, "id"):
            if isinstance(line, OversizedLine) or line.strip():
                print(json.dumps(_answer_pipe_line(brain, line), ensure_ascii=False), flush=True)
    return 0


def _answer_pipe_line(brain: Brain, line: bytes | OversizedLine) -> dict[str, Any]:
    request: dict[str, Any] = {}
    try:
        if isinstance(line, OversizedLine):
            request = line.messages[0] if line.messages and not line.is_list else {}
            raise LineTooLarge(limit=MAX_LINE_BYTES)
        request = _parse_object(line.decode("utf-8", "replace"))
        tool, arguments = request.get("tool"), request.get("arguments", request.get("input", {}))
        if not isinstance(tool, str):
            raise InvalidArgument(name="tool", problem='is missing; write {"tool": NAME, "arguments": {...}}')
        if not isinstance(arguments, dict):
            raise InvalidArgument(name="arguments", problem="must be an object")
        answer: dict[str, Any] = {"result": _tool_result(brain, tool, arguments)}
    except QuaidError as error:
        answer = _error_object(error)
    except Exception as error:  # one bad line must not end the loop, even if the bug is ours
        answer = _error_object(Defect(problem=type(error).__name__))
    return {"id": request["id"], **answer} if "id" in request else answer


def _error_object(error: QuaidError) -> dict[str, Any]:
    facts = {key: value for key, value in error.facts.items() if isinstance(value, str | int | float)}
    return {"error": {"code": error.code, "message": str(error), **facts}}


def _tool_result(brain: Brain, tool: str, arguments: dict[str, Any]) -> Any:
    return json_value(dispatch.call(brain, dispatch.find_tool(tool), arguments, "write"))


def _parse_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(name="JSON", problem=f"cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise InvalidArgument(name="JSON", problem="must be an object in braces")
    return value


def watch_folders(settings: Settings, name: str | None, once: bool, as_json: bool) -> int:
    """Watch folders until Ctrl-C, the normal way to end it, so the exit status is 0."""
    from quaid.operations import collections

    def tell(event: Any) -> None:
        print(_format_event(event, as_json), flush=True)

    with Brain(settings, notice=print_notice) as brain:
        if once:
            return 0 if collections.sync_once(brain, tell, name) else 1
        stop = Event()
        with _stop_on_signals(stop):
            collections.watch_folders(brain, tell, stop, name=name)
    if not as_json:
        print("Stopped watching; the next sync or watch goes on from here.", file=sys.stderr)
    return 0


def _format_event(event: Any, as_json: bool) -> str:
    if as_json:
        kind = type(event).__name__.removeprefix("Watch").lower()
        return json.dumps({"event": kind, **json_value(event)}, ensure_ascii=False)
    from quaid.cli.render import render

    return f"{time.strftime('%H:%M:%S')}  {render(event)}"


@contextmanager
def _stop_on_signals(stop: Event) -> Iterator[None]:
    """Set `stop` on SIGINT or SIGTERM, so that current work can finish. A second signal has its normal effect."""
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
