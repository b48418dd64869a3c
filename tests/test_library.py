"""The Python library: methods of a memory are the operations of the registry, with the same results and errors."""

import ast
import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType

import pytest

import quaid
from quaid import errors, library
from quaid.app import Brain
from quaid.cli.main import main
from quaid.config import Settings
from quaid.library import MAX_CONNECTIONS, METHODS
from quaid.operations.registry import all_operations, python_params

PAGE = Path(__file__).parents[1] / "docs" / "python.md"
EXAMPLES = re.findall(
    r"<!-- examples/library/(\w+)\.py -->\n```python\n(.*?)^```\n\n```text\n(.*?)^```",
    PAGE.read_text(),
    re.M | re.S,
)
STUB = Path(library.__file__).with_name("signatures.pyi")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without a memory, as the current folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("QUAID_BACKGROUND_EMBEDDING", "off")
    monkeypatch.delenv("QUAID_DB", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def memory(home: Path) -> Iterator[quaid.Memory]:
    with quaid.open(home / "memory.db") as memory:
        yield memory


def join_workers() -> None:
    """Wait until the worker threads have ended."""
    for thread in threading.enumerate():
        if thread.name.startswith("quaid"):
            thread.join(10)
            assert not thread.is_alive()


def test_methods_are_the_operations_of_the_registry(memory: quaid.Memory) -> None:
    keys = {f"{op.subject}.{op.function.__name__.rstrip('_')}": op for op in all_operations()}
    assert sorted(METHODS.values()) == sorted(keys), "two operations have the same name"
    for kind, other in ((library.Memory, memory), (library.AsyncMemory, object.__new__(library.AsyncMemory))):
        for name, key in METHODS.items():
            method = getattr(other, name)
            assert method.__wrapped__ is keys[key].function, f"{name} is an attribute of {kind.__name__}"
            assert asyncio.iscoroutinefunction(method) == (kind is library.AsyncMemory)
    assert set(METHODS) < set(dir(memory))


def test_signatures_for_editors_match_the_registry() -> None:
    classes = [node for node in ast.parse(STUB.read_text()).body if isinstance(node, ast.ClassDef)]
    operations = {f"{op.subject}.{op.function.__name__.rstrip('_')}": op for op in all_operations()}
    assert [node.name for node in classes] == ["Operations", "AsyncOperations"]
    for node in classes:
        kind = ast.AsyncFunctionDef if node.name.startswith("Async") else ast.FunctionDef
        methods = {item.name: item.args for item in node.body if isinstance(item, kind)}
        assert set(methods) == set(METHODS)
        assert len(node.body) == len(METHODS) + 2, "only get() has overloads"
        for name, arguments in methods.items():
            by_position, by_name = python_params(operations[METHODS[name]])
            assert [arg.arg for arg in arguments.args] == ["self", *(param.variable for param in by_position)]
            assert [arg.arg for arg in arguments.kwonlyargs] == [param.variable for param in by_name]


def test_import_and_open_load_no_heavy_packages(home: Path) -> None:
    code = """
import sys
before = set(sys.modules)
import quaid
print(sorted(set(sys.modules) - before))
quaid.errors.PageNotFound
with quaid.open() as memory:
    memory.put("people/alice", "# Alice")
    memory.get("people/alice")
heavy = {"numpy", "onnxruntime", "tokenizers", "starlette", "uvicorn", "mcp", "httpx", "asyncio"}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["['quaid']", "[]"]
    assert (home / ".quaid" / "memory.db").exists()


def test_without_a_path_the_memory_of_the_command_line_is_opened(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with quaid.open() as memory:
        memory.put("people/alice", "# Alice\n\nShe lives in Ostrava.")
        assert memory.location == str(home / ".quaid" / "memory.db")
        assert main(["get", "people/alice", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == quaid.as_json(memory.get("people/alice"))
    monkeypatch.setenv("QUAID_DB", "other.db")
    with quaid.open() as memory:
        assert memory.location == str(home / "other.db")
        assert memory.list().total == 0


def test_a_missing_memory_is_created_unless_asked_not_to(home: Path) -> None:
    path = home / "deep" / "memory.db"
    for create, read_only in ((False, False), (True, True)):
        with pytest.raises(errors.MissingDatabase):
            quaid.open(path, create=create, read_only=read_only)
    assert not path.parent.exists()
    with quaid.open(path) as memory:
        memory.put("people/alice", "# Alice")
    with quaid.open(str(path), create=False) as memory:
        assert memory.list().total == 1
    (home / "notes.txt").write_text("This is text.")
    with pytest.raises(errors.NotADatabase):
        quaid.open(home / "notes.txt")


def test_arguments_are_taken_as_in_python_and_checked_as_everywhere(memory: quaid.Memory, home: Path) -> None:
    memory.put("people/alice", "# Alice\n\nOne.")
    memory.put("people/alice", append="Two.")
    memory.put("people/bob", content="# Bob")
    assert memory.diff("people/alice", from_=1, to=2).diff.count("+Two.") == 1
    many = memory.get(("people/alice", "people/bob"))
    assert quaid.as_json(many)["pages"][1]["slug"] == "people/bob"
    folder = home / "notes"
    folder.mkdir()
    (folder / "note.md").write_text("# Note")
    assert memory.import_(folder).report.files_seen == 1
    with pytest.raises(TypeError, match=r"query\(\) takes 1 positional"):
        memory.query("a", "b")  # type: ignore[arg-type, call-arg]
    with pytest.raises(TypeError, match="multiple values for argument 'slug'"):
        memory.get("people/alice", slug="people/bob")  # type: ignore[call-overload]
    with pytest.raises(errors.InvalidArgument, match="did you mean 'limit'"):
        memory.query("a", top_k=3)  # type: ignore[call-arg]
    with pytest.raises(errors.InvalidArgument, match="slug: is required"):
        memory.get()  # type: ignore[call-overload]
    with pytest.raises(errors.PageNotFound):
        memory.get("people/carol")
    with pytest.raises(errors.VersionConflict) as caught:
        memory.put("people/alice", "# Alice", expected_version=1)
    assert caught.value.facts["current_version"] == 2
    with pytest.raises(AttributeError, match="Did you mean 'query'"):
        memory.querry  # type: ignore[attr-defined]  # noqa: B018


def test_a_closed_memory_refuses_calls(home: Path) -> None:
    with quaid.open(home / "memory.db") as memory:
        memory.put("people/alice", "# Alice")
    memory.close()
    with pytest.raises(ValueError, match="closed"):
        memory.get("people/alice")
    assert "closed" in repr(memory)
    assert not (home / "memory.db-wal").exists(), "a connection is still open"


def test_threads_lose_no_write_and_share_connections(memory: quaid.Memory) -> None:
    def work(number: int) -> int:
        memory.put(f"notes/{number}", f"# Note {number}\n\nHarbour.")
        memory.put("notes/shared", append=f"Line {number}.")
        assert memory.get(f"notes/{number}").version == 1
        return len(memory.search("harbour", limit=100).hits)

    with ThreadPoolExecutor(12) as pool:
        totals = list(pool.map(work, range(60)))
    assert max(totals) == 60
    text = memory.get("notes/shared").compiled_truth
    assert sorted(int(line[5:-1]) for line in text.splitlines() if line) == list(range(60))
    assert 1 <= len(memory._idle) <= MAX_CONNECTIONS


def test_threads_of_an_agent_record_each_call_once(home: Path) -> None:
    with quaid.open(home / "memory.db", agent="planner") as memory, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: memory.put(f"notes/{number}", f"# Note {number}"), range(80)))
    with quaid.open(home / "memory.db") as memory:
        [session] = memory.activity(limit=200).sessions
        assert len(session.calls) == 80


def test_closing_waits_for_no_thread_and_leaves_no_connection(home: Path, settings: Settings) -> None:
    memory = quaid.open(home / "memory.db")
    done: list[str] = []
    with Brain(settings) as other, other.db.lock.held():
        thread = threading.Thread(target=lambda: done.append(memory.put("people/alice", "# Alice").slug))
        thread.start()
        while memory._idle:  # until the call has taken the connection
            pass
        memory.close()
    thread.join()
    assert done == ["people/alice"], "a running call finishes"
    assert memory._idle == []
    assert not (home / "memory.db-wal").exists()


def test_a_forked_process_opens_connections_of_its_own(memory: quaid.Memory) -> None:
    memory.put("people/alice", "# Alice")
    [before] = memory._idle
    child = os.fork()
    if child == 0:
        code = 1
        try:
            memory.put("people/bob", "# Bob")
            code = int(before in memory._idle)
            memory.close()
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert memory.list().total == 2
    assert memory._idle == [before]


def test_an_interrupt_is_not_reported_as_an_error_of_quaid(memory: quaid.Memory, settings: Settings) -> None:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    locked, release = threading.Event(), threading.Event()

    def hold() -> None:
        with Brain(settings) as other, other.db.lock.held():
            locked.set()
            release.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    locked.wait()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            memory.put("people/alice", "# Alice")
    finally:
        release.set()
        thread.join()
        signal.signal(signal.SIGALRM, before)
    assert memory.list().total == 0


def test_an_agent_has_the_rights_of_an_agent(home: Path) -> None:
    with quaid.open(home / "memory.db", agent="planner") as memory:
        memory.put("people/alice", "# Alice")
        memory.query("alice")
        with pytest.raises(errors.NotAllowed):
            memory.forget("people/alice", yes=True)
        with pytest.raises(errors.NotAllowed):
            memory.export(dir=home / "export")
    with quaid.open(home / "memory.db", read_only=True) as memory:
        assert memory.history("people/alice").versions[0].author == "planner"
        [session] = memory.activity().sessions
        assert [call.tool for call in session.calls] == ["memory_query", "memory_put"]
        with pytest.raises(errors.NotAllowed):
            memory.put("people/bob", "# Bob")


def test_an_empty_name_gives_no_rights_of_the_owner_and_no_other_memory(home: Path) -> None:
    for agent in ("", " ", "a\0b"):
        with pytest.raises(errors.InvalidArgument, match="agent: must be a name"):
            quaid.open(home / "memory.db", agent=agent)
    for path in ("", "a\0b"):
        with pytest.raises(errors.InvalidArgument, match="path: must be the name of a file"):
            quaid.open(path)
    assert not list(home.glob("*.db"))


def test_coroutines_have_the_same_results_and_errors(home: Path) -> None:
    async def work() -> None:
        async with await quaid.open_async(home / "memory.db") as memory:
            await memory.put("notes/shared", "# Shared")
            await asyncio.gather(*(memory.put("notes/shared", append=f"Line {n}.") for n in range(20)))
            assert (await memory.get("notes/shared")).version == 21
            with pytest.raises(errors.PageNotFound):
                await memory.get("people/carol")
        await memory.close()
        with pytest.raises(ValueError, match="closed"):
            await memory.get("notes/shared")
        with pytest.raises(errors.MissingDatabase):
            await quaid.open_async(home / "none.db", create=False)

    asyncio.run(work())
    join_workers()
    assert not (home / "memory.db-wal").exists()


def test_cancelled_calls_change_nothing_and_later_calls_work(home: Path, settings: Settings) -> None:
    folder = home / "notes"
    folder.mkdir()
    for number in range(100):
        (folder / f"{number}.md").write_text(f"# Note {number}")

    async def work() -> None:
        async with await quaid.open_async(home / "memory.db") as memory:
            with Brain(settings) as other, other.db.lock.held():
                running = asyncio.create_task(memory.import_(folder))  # waits for the lock
                waiting = asyncio.create_task(memory.put("people/alice", "# Alice"))
                await asyncio.sleep(0.2)
                for task in (running, waiting):
                    task.cancel()
                assert all(
                    isinstance(result, asyncio.CancelledError)
                    for result in await asyncio.gather(running, waiting, return_exceptions=True)
                )
            assert (await memory.list()).total == 0
            assert (await memory.import_(folder)).report.files_seen == 100

    asyncio.run(work())


def test_a_cancelled_open_leaves_no_connection(home: Path) -> None:
    async def work() -> None:
        task = asyncio.create_task(quaid.open_async(home / "memory.db"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    join_workers()
    assert not (home / "memory.db-wal").exists()


@pytest.mark.parametrize(("name", "code", "output"), EXAMPLES, ids=[name for name, _, _ in EXAMPLES])
def test_examples_of_the_page_print_what_it_shows(
    name: str, code: str, output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("QUAID_BACKGROUND_EMBEDDING")
    exec(compile(code, name, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == output


def test_page_shows_five_examples_and_lists_all_public_names() -> None:
    files = Path(__file__).parents[1] / "examples" / "library"
    assert sorted(name for name, _, _ in EXAMPLES) == sorted(path.stem for path in files.glob("*.py"))
    assert len(EXAMPLES) == 5
    public = PAGE.read_text().partition("## What is public")[2]
    assert [name for name in quaid.__all__ if f"`quaid.{name}`" not in public] == []
    assert [name for name in quaid.__all__ if name not in dir(quaid)] == []
