"""Commands of the same person, done here: the other side of `cli/client.py`.

A socket in a private folder, for this user alone. A command comes with its folder and its environment, and is
refused unless it would find the same memory and the same settings as this process, in the same version. It is then
done by the crew, by the very functions of the command line, and what it says goes back. What takes long, wants a
terminal or reads files by name is left to the command itself.
"""

import asyncio
import contextlib
import os
import socket
import stat
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, NamedTuple

import quaid
from quaid import config, server_socket
from quaid.app import Brain
from quaid.cli import output, parser
from quaid.config import Settings
from quaid.errors import Cancelled, Defect, NeedsYes, QuaidError
from quaid.operations import dispatch, index
from quaid.operations.registry import Operation
from quaid.server_socket import DONE, INPUT, NOT_HERE, PROCEED, READS, REQUEST, WANTS_INPUT, WRITES
from quaid.surfaces.web.crew import Crew, key_of, lane_of

if TYPE_CHECKING:
    from starlette.applications import Starlette

MOST_AT_ONCE = 32
SECONDS_OF_A_REQUEST = 5.0

WITH_CHILDREN = frozenset({"kb.kb_remember", "ingest.ingest", "truth.check"})
"""Operations that start processes of their own or take minutes: they belong to whoever asked."""


class Refused(Exception):
    """The command has to do this itself."""


class InputWanted(Exception):
    """The command's standard input is part of it."""


class Asked(NamedTuple):
    """A command that came."""

    line: parser.CommandLine
    settings: Settings
    terminals: tuple[bool, bool, bool]  # whether standard input, output and error are terminals


class Ready(NamedTuple):
    """A command that can be done here."""

    asked: Asked
    operation: Operation
    given: dict[str, Any]


class Said(NamedTuple):
    """What a command gives back."""

    status: int
    before: str  # on standard error
    out: str
    after: str  # on standard error again


def attend(app: "Starlette", settings: Settings) -> None:
    """Let a server take commands over while it runs. One that only reads does not: it would refuse half of them."""
    if (
        app.state.readonly
        or server_socket.is_handover_off(settings.environ)
        or not hasattr(socket, "AF_UNIX")
    ):
        return
    inner = app.router.lifespan_context

    @contextlib.asynccontextmanager
    async def both(served: Any) -> AsyncIterator[Any]:
        async with inner(served) as state, listening(settings, app.state.crew):
            yield state

    app.router.lifespan_context = both


@contextlib.asynccontextmanager
async def listening(settings: Settings, crew: Crew) -> AsyncIterator[None]:
    """Take commands over. Where no socket can be made, nobody finds one, and everything goes on as without."""
    try:
        found = _bound(settings)
    except OSError:
        yield
        return
    path, ours = found.path, found.inode
    desk = Desk(settings, crew)
    server = await asyncio.start_unix_server(desk.talk, sock=found.socket)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if os.stat(path).st_ino == ours:  # else another server has taken the place
                os.unlink(path)
        server.close()
        desk.stop()


class _Bound(NamedTuple):
    socket: socket.socket
    path: str
    inode: int


def _bound(settings: Settings) -> _Bound:
    """A socket under the memory's name, made under another one so that nobody sees it before it listens."""
    folder = server_socket.socket_folder(settings.home)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    about = os.lstat(folder)
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
        raise PermissionError
    os.chmod(folder, 0o700)
    path = os.path.join(folder, server_socket.socket_name(settings.db_path))
    new = f"{path}.{os.getpid()}"
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)
        server_socket.use_socket_path(new, found.bind)
        os.chmod(new, 0o600)
        found.listen(MOST_AT_ONCE)
        found.setblocking(False)
        inode = os.stat(new).st_ino
        os.replace(new, path)  # the newest server is the one that is asked
    except BaseException:
        found.close()
        raise
    return _Bound(found, path, inode)


class Desk:
    """Where commands come in, each on a connection of its own."""

    def __init__(self, settings: Settings, crew: Crew) -> None:
        self._settings, self._crew = settings, crew
        self._at = os.stat(settings.db_path)
        self._talks: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        for each in self._talks:
            each.cancel()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._talks.add(task)
        try:
            if is_ours(writer.get_extra_info("socket")) and len(self._talks) <= MOST_AT_ONCE:
                await self._talk(reader, writer)
        except (OSError, EOFError, ValueError, TimeoutError, asyncio.CancelledError):
            pass  # whoever asked does it alone, or is gone
        finally:
            self._talks.discard(task)
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parts = await asyncio.wait_for(_heard(reader, REQUEST), SECONDS_OF_A_REQUEST)
        try:
            asked = self._read(parts)
            try:
                ready = _ready(asked, None)
            except InputWanted:
                writer.write(server_socket.encode_message(WANTS_INPUT))
                (data,) = await _heard(reader, INPUT)
                ready = _ready(asked, data)
        except (Refused, QuaidError):  # what is wrong with a command is told by itself
            writer.write(server_socket.encode_message(NOT_HERE))
            await writer.drain()
            return
        writer.write(server_socket.encode_message(READS if ready.operation.scope == "read" else WRITES))
        await _heard(reader, PROCEED)  # nobody there any more: nothing is begun
        said = await self._while_there(reader, self._crew.run(lane_of(ready.operation), _doing(ready), ""))
        if said is None:
            writer.write(server_socket.encode_message(NOT_HERE))
        else:
            texts = (each.encode("utf-8", "replace") for each in said[1:])
            writer.write(server_socket.encode_message(DONE, str(said.status).encode(), *texts))
        await writer.drain()

    def _read(self, parts: list[bytes]) -> Asked:
        """A command, if this process may do it."""
        version, package, cwd, terminals, words, environ = parts
        here = os.path.dirname(os.path.abspath(quaid.__file__))
        if (os.fsdecode(version), os.fsdecode(package)) != (quaid.__version__, here):
            raise Refused
        theirs = dict(each.split("=", 1) for each in server_socket.split_words(environ) if "=" in each)
        if server_socket.shared_environment(theirs) != server_socket.shared_environment(
            self._settings.environ
        ):
            raise Refused
        line = parser.split_command_line(server_socket.split_words(words))
        settings = config.read_settings(line.db, theirs, os.fsdecode(cwd), line.config)
        try:
            there = os.stat(settings.db_path)
        except OSError:
            raise Refused from None
        if not os.path.samestat(there, self._at):
            raise Refused
        if (settings.config_path, settings.given) != (self._settings.config_path, self._settings.given):
            raise Refused
        read, out, err = (bool(each) for each in terminals)
        return Asked(line, settings, (read, out, err))

    async def _while_there(self, reader: asyncio.StreamReader, work: Any) -> "Said | None":
        """What some work gives; given up when whoever asked goes away."""
        job = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait((job, gone), return_when=asyncio.FIRST_COMPLETED)
            if not job.done():
                raise EOFError
            return job.result()  # type: ignore[no-any-return]
        finally:
            job.cancel()
            gone.cancel()


def is_ours(there: Any) -> bool:
    """Whether the user at the other end is the one that this process belongs to."""
    return server_socket.peer_uid(there) == os.getuid()


def _ready(asked: Asked, data: bytes | None) -> Ready:
    """The operation of a command and its arguments."""
    line = asked.line
    if line.wants_help or line.command not in index.COMMANDS:
        raise Refused
    operation = dispatch.find_command(line.command)
    if operation.scope == "owner" or key_of(operation) in WITH_CHILDREN:
        raise Refused
    if lane_of(operation) == "long" and asked.terminals[2]:
        raise Refused  # it would show how far it is

    def text_of(name: str) -> str:
        if name != "-" or asked.terminals[0]:
            raise Refused
        if data is None:
            raise InputWanted
        return parser.decode_text(name, data)

    return Ready(asked, operation, parser.operation_arguments(line, operation, text_of))


def _doing(ready: Ready) -> Any:
    """The work of a command, for a brain of the crew. None: it has to be asked about at a terminal."""
    asked, operation, given = ready
    line, (read, out, err) = asked.line, asked.terminals
    before = "".join(f"quaid: {each}\n" for each in asked.settings.warnings)

    def failed(error: QuaidError) -> Said:
        return Said(error.exit_status, before, "", output.format_error(error, line.as_json, err))

    def work(brain: Brain) -> Said | None:
        usual, brain.settings = brain.settings, asked.settings
        told: list[str] = []
        brain.notice = told.append
        try:
            record = dispatch.call(brain, operation, given, "owner")
            if getattr(record, "if_agreed", {}):
                obstacle = output.obstacle(read, err, line.as_json)
                if not obstacle:
                    return None
                raise NeedsYes(act=record.act, obstacle=obstacle)
            text = output.format_record(record, line.as_json, out)
            aside = output.format_side_notes(given.get("slug"), record, line.as_json, err)
            notices = "".join(f"quaid: {output.strip_control_characters(each)}.\n" for each in told)
            return Said(int(getattr(record, "exit_status", 0)), before + notices, text, aside)
        except Cancelled:
            raise
        except QuaidError as error:
            return failed(error)
        except Exception as error:
            if "QUAID_TRACE" in asked.settings.environ and operation.scope == "read":
                return None  # the command fails in the same way, and shows where
            return failed(Defect(problem=f"{type(error).__name__}: {error}"))
        finally:
            brain.settings, brain.notice = usual, None

    return work


async def _heard(reader: asyncio.StreamReader, letter: bytes) -> list[bytes]:
    head = await reader.readexactly(5)
    size = int.from_bytes(head[1:], "big")
    if head[:1] != letter or size > server_socket.MAX_MESSAGE_BYTES:
        raise ValueError("that is not what was to come")
    return server_socket.decode_parts(await reader.readexactly(size))
