"""Commands that are not operations, such as init, edit, open, serve, web, hub, watch, hook and demo."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from shlex import quote, split
from threading import Event, Thread
from types import FrameType
from typing import Any, NamedTuple

import quaid
from quaid import errors
from quaid.app import SCHEMA_VERSION, Brain, schema_version_of, sqlite_version, version_problem
from quaid.cli.hook import run_hook
from quaid.cli.main import format_record, main, passphrase_prompt, print_notice
from quaid.cli.parser import CommandLine, generated_file, load_settings
from quaid.config import Settings
from quaid.formats import markdown
from quaid.mcp import jsonrpc, tools
from quaid.mcp.jsonrpc import MAX_LINE_BYTES, OversizedLine
from quaid.model import slug as slugs
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value
from quaid.operations.registry import Arg, Param

SHELLS = ("bash", "zsh", "fish")


class LocalCommand(NamedTuple):
    summary: str
    params: tuple[Param, ...]
    run: Callable[[CommandLine, dict[str, Any]], int]
    examples: tuple[str, ...] = ()


def _print_json(value: Any) -> int:
    print(json.dumps(value, ensure_ascii=False, indent=2))
    return 0


def _init(line: CommandLine, arguments: dict[str, Any]) -> int:
    settings = load_settings(line)
    path = settings.db_path
    if "path" in arguments:
        if arguments["path"] in ("", "-"):
            raise errors.InvalidArgument(name="path", problem="must be the name of a file, as in memory.db")
        path = settings.path(arguments["path"])
    created = not os.path.exists(path)
    former = ""
    with Brain(settings._replace(db_path=path), ask=passphrase_prompt()) as brain:
        if created:
            former = brain.create_memory(path)
        elif os.path.isdir(path):
            raise errors.AlreadyExists(path=path, hint="It is a folder; name a file in it, as in memory.db.")
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


def _version(line: CommandLine, _: dict[str, Any]) -> int:
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
    print("quaid {quaid} (SQLite {sqlite}, schema {schema}, Python {python})".format(**facts))
    print(f"memory: {path} ({state})")
    return 0


def _schema_state(path: str) -> tuple[int | None, str]:
    """Return the schema version of a database file, None if unreadable, and a description of its state."""
    try:
        schema = schema_version_of(path)
    except errors.MissingDatabase:
        return None, "not made yet"
    except errors.QuaidError as error:
        return None, f"cannot be used: {error.facts.get('problem') or error.code}"
    if problem := version_problem(schema):
        return schema, f"schema {schema}: {problem}"
    later = "" if schema == SCHEMA_VERSION else f", {SCHEMA_VERSION} after the next command that opens it"
    return schema, f"schema {schema}{later}"


def _serve(line: CommandLine, arguments: dict[str, Any]) -> int:
    if "http" in arguments:
        return _serve_http(line, arguments)
    others = set(arguments) - {"tools", "only"}
    if others:
        raise errors.InvalidArgument(name="--" + min(others).replace("_", "-"), problem="belongs to --http")
    from quaid.mcp.server import serve

    return serve(_bound_settings(line, arguments), arguments.get("tools") or "core")


def _bound_settings(line: CommandLine, arguments: dict[str, Any]) -> Settings:
    """Return the settings of a command with --only, which limits it to a part of the memory."""
    settings = load_settings(line)
    if "only" not in arguments:
        return settings
    with Brain(settings, notice=print_notice) as brain:
        return settings._replace(only=(brain.check_only(arguments["only"], "--only"),))


def listen_options(settings: Settings, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of http_server.ListenOptions given on the command line, except the port."""
    fields = {name: settings.path(arguments[name]) for name in ("tls_cert", "tls_key") if arguments.get(name)}
    for path in fields.values():
        if not os.access(path, os.R_OK):
            raise errors.FileTrouble(path=path, problem="cannot be read")
    if "bind" in arguments:
        fields["bind"] = arguments["bind"]
    hosts = tuple(arguments.get("allow_host", ()))
    return {**fields, "behind_proxy": "behind_proxy" in arguments, "allow_hosts": hosts}


def _serve_http(line: CommandLine, arguments: dict[str, Any]) -> int:
    """Run `quaid web`, `quaid open` or `quaid serve --http`."""
    # This is set before numpy is imported, because OpenBLAS threads would keep spinning after each small
    # matrix product.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from quaid.operations import service
    from quaid.web import server

    settings = _bound_settings(line, arguments)
    port = arguments.get("port", server.ServerOptions().port)
    if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port <= 65_535:
        raise errors.InvalidArgument(name="--port", problem=f"must be from 0 to 65535, not {port}")
    tool_set = arguments.get("tools") or "core"
    tools.selected_tools(tool_set)
    if "lan" not in arguments and (extra := {"lan_address", "insecure"} & arguments.keys()):
        raise errors.InvalidArgument(name="--" + min(extra).replace("_", "-"), problem="belongs to --lan")
    options = server.ServerOptions(
        port,
        **listen_options(settings, arguments),
        debug="debug" in arguments,
        readonly="read_only" in arguments,
        tools=tool_set,
        host_name=service.check_host_name(arguments.get("host_name", "")),
        lan="lan" in arguments,
        lan_address=arguments.get("lan_address", ""),
        insecure="insecure" in arguments,
    )
    if line.command == "serve":
        return server.serve_http(settings, options)
    page = _page_address(settings, arguments["slug"]) if "slug" in arguments else ""
    return server.serve_web(settings, options, opens="no_open" not in arguments, page=page)


def _page_address(settings: Settings, name: str) -> str:
    """Return the address of a page. Raise PageNotFound if there is none."""
    with Brain(settings, notice=print_notice) as brain:
        return _address(_read_page(brain, name))


def _read_page(brain: Brain, name: str) -> Any:
    return dispatch.call(brain, dispatch.find_command("get"), {"slug": [name]}, "owner")


def _address(page: Any) -> str:
    return slugs.address(page.collection, page.slug)


CONFLICT_START = "<<<<<<<"
"""Start of the line that opens a conflict in a merged text."""


def _edit(line: CommandLine, arguments: dict[str, Any]) -> int:
    """Edit a page in an editor. If saving fails, the text stays in a file whose path is printed."""
    with Brain(load_settings(line), notice=print_notice, ask=passphrase_prompt()) as brain:
        brain.create_if_missing()
        slug, text, version = _text_to_edit(brain, arguments["slug"])
        path = _edit_file(brain.settings, slug)
        try:
            record = _edit_until_saved(brain, slug, path, text, version)
        except BaseException:
            if _is_unchanged(path, text):
                os.unlink(path)
            else:
                print(f"quaid: {slug} was not saved. Your text is in {path}", file=sys.stderr)
            raise
    os.unlink(path)
    if record is None:
        print(f"{slug} was not changed", file=sys.stderr)
    else:
        print(format_record(record, line.as_json, sys.stdout.isatty()), end="")
    return 0


def _text_to_edit(brain: Brain, name: str) -> tuple[str, str, int]:
    """Return the address, text and version of a page: for a new page, a heading and version 0."""
    try:
        page = _read_page(brain, name)
    except errors.PageNotFound as error:
        hint = error.facts.get("hint")
        if hint:  # the page was merged, erased or quarantined, or another one has a similar name
            if "Did you mean" in hint and "/" in name:
                error.facts["hint"] = f"{hint} `quaid put {name}` creates it."
                raise errors.PageNotFound(**error.facts) from None
            raise
        title = name.rpartition("/")[2].rpartition("::")[2].replace("-", " ")
        return name, f"# {title[:1].upper()}{title[1:]}\n\n", 0
    text = markdown.render(page.frontmatter, page.compiled_truth, page.timeline)
    return _address(page), text, page.version


def _edit_file(settings: Settings, slug: str) -> str:
    """Create an empty file, readable only by the user, for the text of a page. Return its path."""
    from tempfile import mkstemp

    folder = os.path.join(settings.home, "edits")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    name = "".join(char if char.isalnum() else "-" for char in slug)[-80:]
    handle, path = mkstemp(prefix=f"{name}-", suffix=".md", dir=folder)
    os.close(handle)
    return path


def _edit_until_saved(brain: Brain, slug: str, path: str, text: str, version: int) -> Any:
    """Run the editor and save the text. Return the record, or None if nothing was changed.

    If the page was changed in the meantime, both versions are merged. If they change the same passages, the
    editor is run again to resolve the conflicts; without a terminal, raise InvalidArgument.
    """
    draft = text
    while True:
        _run_editor(brain.settings, path, draft)
        edited = _read_edited(path)
        if edited == text:
            return None
        if CONFLICT_START in edited and CONFLICT_START not in text:
            raise errors.InvalidArgument(
                name="text", problem=f"still has lines that start with {CONFLICT_START}"
            )
        try:
            return _save_edited(brain, slug, edited, version)
        except (errors.VersionConflict, errors.FileChanged):
            _, theirs, version = _text_to_edit(brain, slug)
            merged = markdown.merge_files(text, edited, theirs)
            if merged is None:
                raise
        text, (draft, conflicts) = theirs, merged
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(draft)
        if not conflicts:
            print_notice(f"{slug} was changed in the meantime; both changes are merged")
            return _save_edited(brain, slug, draft, version)
        if not sys.stdin.isatty():
            problem = "has conflicts with a change of the page in the meantime; they are marked"
            raise errors.InvalidArgument(name="text", problem=problem)
        print_notice(f"{slug} was changed in the meantime; the editor shows the passages to decide")


def _save_edited(brain: Brain, slug: str, text: str, version: int) -> Any:
    values = {"slug": slug, "content": text, "expected_version": version, "replace_timeline": True}
    return dispatch.call(brain, dispatch.find_command("put"), values, "owner")


def _run_editor(settings: Settings, path: str, text: str) -> None:
    from shutil import which
    from subprocess import call

    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    environ = settings.environ
    command = environ.get("VISUAL") or environ.get("EDITOR")
    if not command and not sys.stdin.isatty():
        raise errors.InvalidArgument(
            name="EDITOR",
            problem="is not set, and standard input is not a terminal; `quaid put` takes a text from it",
        )
    command = command or next(filter(which, ("nano", "vi")), "")
    if not command:
        raise errors.InvalidArgument(
            name="EDITOR", problem="is not set, and neither nano nor vi is installed"
        )
    try:
        status = call([*split(command), path])
    except (OSError, ValueError) as error:
        problem = f"cannot be started: {getattr(error, 'strerror', '') or error}"
        raise errors.FileTrouble(path=f"the editor {command}", problem=problem) from None
    if status:
        raise errors.FileTrouble(path=f"the editor {command}", problem=f"ended with status {status}")


def _read_edited(path: str) -> str:
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError:
        raise errors.FileTrouble(path=path, problem="is not UTF-8 text") from None


def _is_unchanged(path: str, text: str) -> bool:
    """Return True if a file is empty or has this text. A new file is empty until the editor is started."""
    with open(path, "rb") as file:
        return file.read() in (b"", text.encode())


def _hub(line: CommandLine, arguments: dict[str, Any]) -> int:
    from quaid.cli.hub import run_hub  # imported late, because it imports the HTTP server

    return run_hub(line, arguments)


def _watch(line: CommandLine, arguments: dict[str, Any]) -> int:
    """Watch folders until Ctrl-C, or sync them once.

    The exit status after Ctrl-C is 0, because Ctrl-C is the normal way to stop.
    """
    from quaid.operations import collections

    def print_event(event: Any) -> None:
        print(_format_event(event, line.as_json), flush=True)

    name = arguments.get("name")
    with Brain(load_settings(line), notice=print_notice) as brain:
        if "once" in arguments:
            return 0 if collections.sync_once(brain, print_event, name) else 1
        stop = Event()
        with stop_on_signals(stop):
            collections.watch_folders(brain, print_event, stop, name=name)
    if not line.as_json:
        print("Stopped watching; the next sync or watch goes on from here.", file=sys.stderr)
    return 0


def _format_event(event: Any, as_json: bool) -> str:
    if as_json:
        kind = type(event).__name__.removeprefix("Watch").lower()
        return json.dumps({"event": kind, **json_value(event)}, ensure_ascii=False)
    return f"{time.strftime('%H:%M:%S')}  {format_record(event, False, False).removesuffix(chr(10))}"


@contextmanager
def stop_on_signals(stop: Event) -> Iterator[None]:
    """Set `stop` on SIGINT or SIGTERM, so that current work can finish. A second signal has its normal effect."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def handle(_number: int, _frame: FrameType | None) -> None:
        for number, handler in before.items():
            signal.signal(number, handler)
        # A thread calls set(), because the interrupted code may be inside stop.wait(), which holds the lock of set().
        Thread(target=stop.set, daemon=True).start()

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _hook(line: CommandLine, arguments: dict[str, Any]) -> int:
    return run_hook(arguments["event"], lambda: _bound_settings(line, arguments), arguments.get("client"))


def _call(line: CommandLine, arguments: dict[str, Any]) -> int:
    settings = _bound_settings(line, arguments)
    with Brain(settings, notice=print_notice, ask=passphrase_prompt()) as brain:
        return _print_json(
            _tool_result(brain, arguments["tool"], _parse_object(arguments.get("json") or "{}"))
        )


def _pipe(line: CommandLine, arguments: dict[str, Any]) -> int:
    """Answer each input line that is not blank with one output line.

    An invalid line gets an error object and does not end the loop.
    """
    with Brain(_bound_settings(line, arguments), notice=print_notice) as brain:
        for text in jsonrpc.read_lines(sys.stdin.buffer, "id"):
            if isinstance(text, OversizedLine) or text.strip():
                print(json.dumps(_answer_pipe_line(brain, text), ensure_ascii=False), flush=True)
    return 0


def _answer_pipe_line(brain: Brain, line: bytes | OversizedLine) -> dict[str, Any]:
    request: dict[str, Any] = {}
    try:
        if isinstance(line, OversizedLine):
            request = line.messages[0] if line.messages and not line.is_list else {}
            raise errors.LineTooLarge(limit=MAX_LINE_BYTES)
        request = _parse_object(line.decode("utf-8", "replace"))
        tool, arguments = request.get("tool"), request.get("arguments", request.get("input", {}))
        if not isinstance(tool, str):
            raise errors.InvalidArgument(
                name="tool", problem='is missing; write {"tool": NAME, "arguments": {...}}'
            )
        if not isinstance(arguments, dict):
            raise errors.InvalidArgument(name="arguments", problem="must be an object")
        answer: dict[str, Any] = {"result": _tool_result(brain, tool, arguments)}
    except errors.QuaidError as error:
        answer = _error_object(error)
    except Exception as error:  # an invalid line must not end the loop, even if the cause is a bug in Quaid
        answer = _error_object(errors.Defect(problem=type(error).__name__))
    return {"id": request["id"], **answer} if "id" in request else answer


def _error_object(error: errors.QuaidError) -> dict[str, Any]:
    facts = {key: value for key, value in error.facts.items() if isinstance(value, str | int | float)}
    return {"error": {"code": error.code, "message": str(error), **facts}}


def _tool_result(brain: Brain, tool: str, arguments: dict[str, Any]) -> Any:
    return json_value(dispatch.call(brain, dispatch.find_tool(tool), arguments, "write"))


def _parse_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise errors.InvalidArgument(name="JSON", problem=f"cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise errors.InvalidArgument(name="JSON", problem="must be an object in braces")
    return value


def _tools_json(*_: Any) -> int:
    return _print_json({"tools": tools.list_tools("all")})


def _completion(line: CommandLine, arguments: dict[str, Any]) -> int:
    """Print a completion script, or the names that a script asks for.

    If the names cannot be found, nothing is printed.
    """
    from quaid.operations.shell import COMPLETION_KINDS, complete_names

    kind = arguments["shell"]
    if kind in SHELLS:
        print(generated_file(f"quaid.{kind}"), end="")
        return 0
    if kind not in COMPLETION_KINDS:
        raise errors.InvalidArgument(
            name="shell", problem=f"must be one of {', '.join(SHELLS)}, not {kind!r}"
        )
    try:
        with open(os.devnull, "w") as null, redirect_stderr(null):  # warnings would garble the command line
            names = complete_names(load_settings(line), kind, arguments.get("start") or "")
    except Exception:
        if "QUAID_TRACE" in os.environ:
            raise
        return 0
    print("".join(f"{name}\n" for name in names if name.isprintable()), end="")
    return 0


def _demo(line: CommandLine, arguments: dict[str, Any]) -> int:
    return run_demo(load_settings(line), arguments.get("folder"), "all" in arguments, line.as_json)


def _param(name: str, help: str, *, required: bool = False) -> Param:
    return Param(name, "string", (), required, None, Arg(help, positional=True, path=True))


def _option(name: str, help: str, kind: str = "string", default: Any = None) -> Param:
    return Param(name, kind, (), False, default, Arg(help))


def _flag(name: str, help: str) -> Param:
    return _option(name, help, "boolean", False)


_PORT = _option("port", "The port to listen on; 0: any free one.", "integer", 4321)
_LISTEN = (
    _option("bind", "The address to listen on; beyond this machine only with TLS."),
    _option("tls_cert", "The file of the certificate."),
    _option("tls_key", "The file of its key."),
    _flag("behind_proxy", "TLS is terminated by a proxy in front of it."),
    _option("allow_host", "A name under which it is reached.", "array", ()),
)
_HOST_NAME = _option(
    "host_name",
    "The name for browsers, as in localhost, if yours cannot open the random one [quaid-….localhost].",
)
_ONLY = _option(
    "only",
    "Show only these collections, wing:NAME or project:NAME; nothing else exists for the caller.",
    "array",
    (),
)
_DEBUG = _flag("debug", "Enable the debug endpoints.")
_READ_ONLY = _flag("read_only", "Refuse all changes, whatever the token allows.")

COMMANDS: dict[str, LocalCommand] = {
    "init": LocalCommand(
        "Create a memory.",
        (_param("path", "Path of the new memory [--db, QUAID_DB or ~/.quaid/memory.db]."),),
        _init,
        ("quaid init", "quaid init ~/work.db"),
    ),
    "edit": LocalCommand(
        "Edit a page in $VISUAL or $EDITOR. Changes that others save meanwhile are merged.",
        (_param("slug", "The page, by slug, title or alias. A new slug creates a page.", required=True),),
        _edit,
        ("quaid edit people/alice", "EDITOR=nano quaid edit 'Alice Example'"),
    ),
    "serve": LocalCommand(
        "Serve the memory to an agent over MCP: on stdio, or (--http) to many, with the browser's pages.",
        (
            _option("tools", "lean, core, seed, kb, all, or names with commas.", default="core"),
            _ONLY,
            _flag("http", "Serve over HTTP at /mcp; clients need a token (quaid token create)."),
            _PORT,
            *_LISTEN,
            _HOST_NAME,
            _DEBUG,
            _READ_ONLY,
        ),
        _serve,
        (
            "quaid serve",
            "quaid serve --tools all --db ~/work.db",
            "quaid serve --only work --only wing:people",
            "quaid serve --http --port 4321",
            "quaid serve --http --behind-proxy --allow-host memory.example.org",
        ),
    ),
    "web": LocalCommand(
        "Open the memory in a browser.",
        (
            _PORT,
            _flag("no_open", "Print the link instead of opening a browser."),
            _HOST_NAME,
            _flag("lan", "Let phones in the same network log in, over TLS; shows a QR code."),
            _option("lan_address", "The address of this machine there [found]."),
            _flag("insecure", "With --lan: without TLS. Everyone in the network can read along."),
            _DEBUG,
            _READ_ONLY,
        ),
        _serve_http,
        ("quaid web", "quaid web --port 0 --no-open", "quaid web --lan"),
    ),
    "open": LocalCommand(
        "Open a page in the browser, or the first page of the dashboard; starts `quaid web` if it is not running.",
        (
            _param("slug", "The page, by slug, title or alias [the first page]."),
            _PORT,
            _flag("no_open", "Print the link instead of opening a browser."),
        ),
        _serve_http,
        ("quaid open people/alice", "quaid open 'Alice Example' --no-open"),
    ),
    "hub": LocalCommand(
        "Run a hub, which stores spaces that several devices and people share. See docs/hub.md.",
        (
            _param(
                "action",
                "init, serve, invite, people, spaces, devices, revoke, audit or backup.",
                required=True,
            ),
            _param("name", "A person (init, invite), a device (revoke), or a new file (backup)."),
            _option("store", "A file, or postgresql://USER@HOST/DATABASE [QUAID_HUB_STORE]."),
            _option("url", "The address of the hub in invitations [QUAID_HUB_URL, this machine]."),
            _option("space", "Only this space: its name or id."),
            _option("right", "read, propose, append, write or owner [write]."),
            _option("agent", "Invite an agent of the person."),
            _flag("admin", "Invite a person who may also manage people and devices."),
            _option("port", "The port to listen on; 0: any free one.", "integer", 4399),
            *_LISTEN,
            _option("data", "Keep copies of spaces in this folder, and answer searches."),
            _flag("verify", "Check that the audit log is complete and unchanged."),
            _option("after", "Only audit entries after this number.", "integer", 0),
            _option("limit", "The most audit entries.", "integer", 100),
        ),
        _hub,
        (
            "quaid hub init anna --store hub.db",
            "quaid hub serve --store hub.db",
            "quaid hub serve --store postgresql://quaid@db/quaid --behind-proxy --allow-host hub.example.org",
            "quaid hub invite ben --store hub.db --space team --right append --url https://hub.example.org",
            "quaid hub audit --verify --store hub.db",
        ),
    ),
    "watch": LocalCommand(
        "Sync attached folders as their files change, until Ctrl-C; quaid serve does the same.",
        (
            _param("name", "The collection [all]."),
            _flag("once", "Sync once, print the changes, and exit."),
        ),
        _watch,
        ("quaid watch", "quaid watch notes", "quaid watch --once"),
    ),
    "hook": LocalCommand(
        "Answer a hook event of Claude Code: JSON in, JSON out; `quaid connect claude-code` sets it up.",
        (
            _param("event", "session-start, user-prompt, pre-compact or stop.", required=True),
            _option("client", "The client that runs the hook; it determines the size limit."),
            _ONLY,
        ),
        _hook,
        ("quaid hook session-start < event.json",),
    ),
    "call": LocalCommand(
        "Call one tool with JSON, as an agent would.",
        (
            _param("tool", "The tool, as in memory_get.", required=True),
            _param("json", "Its arguments as JSON."),
            _ONLY,
        ),
        _call,
        ('quaid call memory_get \'{"slug": "people/alice"}\'',),
    ),
    "pipe": LocalCommand(
        'Answer tool calls line by line: {"tool": NAME, "arguments": {...}} in, results out.',
        (_ONLY,),
        _pipe,
        ("quaid pipe < calls.jsonl",),
    ),
    "completion": LocalCommand(
        "Print a completion script for a shell: commands, options and slugs.",
        (
            _param(
                "shell", "bash, zsh or fish; the scripts ask for names, as in slugs or tags.", required=True
            ),
            _param("start", "Only names that start with this."),
        ),
        _completion,
        (
            "quaid completion bash > ~/.local/share/bash-completion/completions/quaid",
            "quaid completion zsh > ~/.zfunc/_quaid",
            "quaid completion fish > ~/.config/fish/completions/quaid.fish",
        ),
    ),
    "demo": LocalCommand(
        "Create a sample memory in a separate folder, and walk through ten questions.",
        (
            _param("folder", "A new or empty folder [a temporary one, deleted at the end]."),
            _flag("all", "Do not wait for Enter between the questions."),
        ),
        _demo,
        ("quaid demo", "quaid demo ~/quaid-demo --all"),
    ),
    "version": LocalCommand("Show versions and where the memory is.", (), _version, ("quaid version",)),
    "--tools-json": LocalCommand(
        "Print the tools as MCP lists them.", (), _tools_json, ("quaid --tools-json",)
    ),
}


NEXT_STEPS = """
Your own: quaid init, then quaid import YOUR-NOTES or quaid put, and quaid connect CLIENT lets an agent use it
(quaid help connect names them). quaid doctor says what is next."""


def run_demo(settings: Settings, folder: str | None, whole: bool, as_json: bool) -> int:
    """Build the sample memory and run the example commands.

    Without a folder, a temporary folder is used and removed afterwards.
    """
    if as_json:
        raise errors.InvalidArgument(name="--json", problem="does not work with demo, which is for people")
    if folder is not None:
        place = settings.path(folder)
        if os.path.exists(place) and (not os.path.isdir(place) or os.listdir(place)):
            raise errors.AlreadyExists(path=place, hint="It is not an empty folder; name a new one, or none.")
        os.makedirs(place, mode=0o700, exist_ok=True)
        status = _run_questions(place, whole)
        _remove_model_copy(place)
        memory = f"quaid --db {quote(os.path.join(place, 'memory.db'))}"
        print(f"\nIt stays in {place}, until you delete it. To go on there:")
        print(f'  {memory} query "who knows about bees?"\n  {memory} web   # all of it, in a browser')
    else:
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="quaid-demo-") as place:
            status = _run_questions(place, whole)
        print("\nThat was in a temporary folder, which is deleted. To keep one: quaid demo ~/quaid-demo")
    print(NEXT_STEPS)
    return status


def _run_questions(place: str, whole: bool) -> int:
    import tomllib

    with open(os.path.join(os.path.dirname(__file__), "demo.toml"), "rb") as file:
        demo = tomllib.load(file)
    _isolate_environment(place)
    print("Making a sample memory in a separate folder; your own data is not read or changed …", flush=True)
    begun = time.monotonic()
    pages = _build_memory(place, demo)
    without_meaning = _run_silently("embed") != 0  # a failure is explained on standard error
    seconds, size = time.monotonic() - begun, os.path.getsize(os.path.join(place, "memory.db")) / 1e6
    print(f"{pages} pages: people, companies, meetings over two years, with facts, links and a notebook.")
    print(f"It took {seconds:.0f} s and {size:.1f} MB on this machine: no account, no key, no network.")
    if without_meaning:
        print("So search by meaning does not show here: every question is answered by its words.")
    print("Ten questions to it.")
    asks = not whole and sys.stdin.isatty() and sys.stdout.isatty()
    for number, step in enumerate(demo["questions"], 1):
        if asks and not _continues():
            break
        shown = " ".join(f'"{word}"' if " " in word else word for word in step["words"])
        print(f"\n{number}. {step['question']}\n\n$ quaid {shown}", flush=True)
        status = main(step["words"])
        if status > 1:  # status 1 means that a check found something
            return status
        print(f"\n   {step['explanation']}", flush=True)
    return 0


def _continues() -> bool:
    """Wait for Enter. Return False on end of input (Ctrl-D)."""
    try:
        input("\nEnter for the next one ")
    except EOFError:
        print()
        return False
    return True


def _remove_model_copy(place: str) -> None:
    """Remove the demo's copy of the model. Later commands use the copy in the user's home."""
    from shutil import rmtree

    rmtree(os.path.join(place, ".quaid"), ignore_errors=True)


def _isolate_environment(place: str) -> None:
    """Make this process use the demo's home and memory, and remove all Quaid variables except QUAID_TRACE."""
    for name in [name for name in os.environ if name.startswith(("QUAID_", "AI_KB_"))]:
        if name != "QUAID_TRACE":
            del os.environ[name]
    os.environ.update(HOME=place, QUAID_DB=os.path.join(place, "memory.db"))


def _build_memory(place: str, demo: dict[str, Any]) -> int:
    """Create the sample pages, and the facts and notes of demo.toml. Return the number of pages."""
    notes = os.path.join(place, "notes")
    from quaid.operations.collections import sample_pages

    pages = sample_pages()
    for slug, text in pages:
        path = os.path.join(notes, *slug.split("/")) + ".md"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    for words in (
        ("init",),
        ("import", notes),
        *(("assert", *split(fact)) for fact in demo["facts"]),
        ("notebook", "init", os.path.join(place, "notebook")),
        *(("remember", text) for text in demo["remembered"]),
        *(("log", text) for text in demo["logged"]),
    ):
        if _run_silently(*words):
            raise RuntimeError(f"quaid {' '.join(words)} failed")
    return len(pages)


def _run_silently(*words: str) -> int:
    """Run a command without showing its standard output. Errors are still shown."""
    from io import StringIO

    with redirect_stdout(StringIO()):
        return main(list(words))
