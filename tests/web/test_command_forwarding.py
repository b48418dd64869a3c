"""Commands that a running server answers: the output is the same as that of a local run."""

import contextlib
import os
import re
import shlex
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests import commands
from tests.web.conftest import filled, settings_in
from tests.web.server_process import Process

import quaid
from quaid import server_socket
from quaid.app import Brain
from quaid.cli.main import main
from quaid.config import Settings
from quaid.operations import dispatch, registry

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no such sockets here")

Capture = pytest.CaptureFixture[str]
Result = tuple[int, str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A memory with a server, in a home whose name both find."""
    settings = filled(settings_in(tmp_path_factory.mktemp("handed"))._replace())
    with Process(settings, "serve", "--http"):
        yield settings


@pytest.fixture
def unserved(tmp_path: Path) -> Settings:
    """A memory without a server."""
    return filled(settings_in(tmp_path)._replace(home=str(tmp_path / ".quaid")))


def use_environment(settings: Settings, patch: pytest.MonkeyPatch, **further: str) -> None:
    """Set the environment of a command, with a long timeout because the machine may be busy."""
    patch.setattr(server_socket, "ACCEPT_TIMEOUT", 60.0)
    patch.chdir(settings.cwd)
    for name, value in {
        "HOME": os.path.dirname(settings.home),
        "QUAID_DB": settings.db_path,
        "QUAID_BACKGROUND_EMBEDDING": "off",
        **further,
    }.items():
        patch.setenv(name, value)


def delegated(words: list[str], capsys: Capture) -> Result:
    """Return status and output of a command that the server must answer."""
    capsys.readouterr()
    status = server_socket.delegate(words)
    assert status is not None, f"refused: {words}"
    return (status, *capsys.readouterr())


def run_locally(words: list[str], capsys: Capture, patch: pytest.MonkeyPatch) -> Result:
    """Return status and output of a command without a server."""
    capsys.readouterr()
    with patch.context() as inner:
        inner.setenv("QUAID_HANDOVER", "off")
        status = main(words)
    return (status, *capsys.readouterr())


def without_times(result: Result) -> Result:
    """Mask times and log sizes, which differ between two runs."""
    out = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z?|[\d.,]+ (bytes|KB|MB)|\d+(\.\d+)? ?(ms|s)\b", "…", result[1])
    return (result[0], re.sub(r'"(wal_size|size|seconds|cpu_seconds|ms)": [\d.]+', "…", out), result[2])


def read_commands() -> list[list[str]]:
    """The examples of every operation that reads."""
    every = [operation for operation in registry.all_operations() if operation.scope == "read"]
    lines = [shlex.split(example, comments=True)[1:] for item in every for example in item.examples]
    return [line for line in lines if line and not {"|", "<", ">"} & set(line)]


@pytest.mark.parametrize("words", read_commands(), ids=" ".join)
def test_output_is_the_same_as_that_of_a_local_run(
    words: list[str], served: Settings, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_environment(served, monkeypatch)
    words = ["sources/talk" if word == "PAGE" else word for word in words]
    is_delegated = server_socket.delegate(words) is not None
    local = without_times(run_locally(words, capsys, monkeypatch))
    if not is_delegated:  # a command with wrong arguments is refused
        assert local[0] != 0
        return
    assert without_times(delegated(words, capsys)) == local
    words = [*words, "--json"]
    local = without_times(run_locally(words, capsys, monkeypatch))
    assert without_times(delegated(words, capsys)) == local


def test_most_reading_commands_are_answered_by_the_server(
    served: Settings, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_environment(served, monkeypatch)
    answered = [words for words in read_commands() if server_socket.delegate(words) is not None]
    capsys.readouterr()
    assert len(answered) > 0.8 * len(read_commands())


def test_failure_has_the_same_message_and_status(
    served: Settings, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_environment(served, monkeypatch)
    for words in (["get", "nobody/here"], ["get", "nobody/here", "--json"], ["links", "nobody/here"]):
        there = delegated(words, capsys)
        assert there == run_locally(words, capsys, monkeypatch)
        assert there[0] != 0


@pytest.mark.parametrize(
    "words",
    [
        ["get", "--help"],
        ["import", "x"],
        ["config", "list"],
        ["put", "x", "file.md"],
        ["put", "x"],
        ["tag", "people/alice", "x"],
        ["remember", "x"],
        ["version"],
        ["nonsense"],
    ],
    ids=" ".join,
)
def test_writes_and_local_commands_are_refused(
    words: list[str], served: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_environment(served, monkeypatch)
    assert server_socket.delegate(words) is None


@pytest.mark.parametrize(
    "other",
    [
        {"QUAID_SEARCH_MAX_RESULTS": "3"},
        {"TZ": "Pacific/Auckland"},
        {"QUAID_HANDOVER": "off"},
        {"QUAID_DB": "elsewhere.db"},
        {"QUAID_CONFIG": "other.yaml"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_command_with_other_settings_is_refused(
    other: dict[str, str], served: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(served.cwd, "other.yaml").write_text("search:\n  max_results: 3\n")
    use_environment(served, monkeypatch)
    assert server_socket.delegate(["tags", "people/alice"]) is not None
    for name, value in other.items():
        monkeypatch.setenv(name, value)
    assert server_socket.delegate(["tags", "people/alice"]) is None


def test_another_version_is_refused(served: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    use_environment(served, monkeypatch)
    monkeypatch.setattr(quaid, "__version__", "0.0.1")
    assert server_socket.delegate(["list"]) is None


def test_many_commands_at_once_get_their_own_answers(served: Settings) -> None:
    env = {**os.environ, "HOME": os.path.dirname(served.home), "QUAID_DB": served.db_path}
    env["QUAID_BACKGROUND_EMBEDDING"] = "off"
    words = [["search", f"word{number}"] for number in range(8)]
    running = [
        subprocess.Popen([commands.program(), *word], env=env, stdout=subprocess.PIPE, text=True)
        for word in words
    ]
    for item, process in zip(words, running, strict=True):
        assert item[1] in process.communicate(timeout=60)[0]
        assert process.returncode == 0


def test_socket_is_private_and_removed_with_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = filled(settings_in(tmp_path))
    use_environment(settings, monkeypatch)
    with Process(settings, "web", "--no-open") as server:
        path = server_socket.socket_path(settings.home, settings.db_path)
        folder = os.path.dirname(path)
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        with Brain(settings) as brain:
            assert dispatch.call(brain, dispatch.find_command("status"), {}, "owner").resident
        server.stop(signal.SIGTERM)
        assert os.listdir(folder) == []


def test_read_only_server_answers_no_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = filled(settings_in(tmp_path))
    use_environment(settings, monkeypatch)
    with Process(settings, "serve", "--http", "--read-only"):
        assert server_socket.delegate(["list"]) is None


def test_socket_of_a_killed_server_is_ignored(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = filled(settings_in(tmp_path))
    use_environment(settings, monkeypatch)
    with Process(settings, "serve", "--http", cold=True) as server:
        assert server_socket.delegate(["list"]) == 0
        server.stop(signal.SIGKILL)
        assert os.path.exists(server_socket.socket_path(settings.home, settings.db_path))
        assert server_socket.delegate(["list"]) is None
        assert main(["tags", "people/alice"]) == 0
        with Process(settings, "serve", "--http"):  # the dead socket is in nobody's way
            assert server_socket.delegate(["list"]) == 0


def test_only_the_same_user_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = socket.socketpair()
    with one, other:
        assert server_socket.is_same_user(one)
        monkeypatch.setattr(os, "getuid", lambda: 4711)
        assert not server_socket.is_same_user(one)


def test_long_socket_path_is_reached_through_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server_socket.use_socket_path(str(folder / "here"), server.bind)
        server.listen()
        server_socket.use_socket_path(str(folder / "here"), client.connect)
        accepted, _ = server.accept()
        with accepted:
            client.sendall(b"x")
            assert accepted.recv(1) == b"x"


# A server that ends at the worst moment


Talk = Callable[[socket.socket], None]


@contextlib.contextmanager
def ending(settings: Settings, talk: Talk) -> Iterator[None]:
    """A server that accepts one command of a memory, answers with `talk`, and exits."""
    path = server_socket.socket_path(settings.home, settings.db_path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with socket.socket(socket.AF_UNIX) as server:
        server_socket.use_socket_path(path, server.bind)
        server.listen()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1024 * 1024)
                talk(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()
    os.unlink(path)


def sends(reply: bytes) -> Talk:
    return lambda connection: connection.sendall(reply)


def has_tag(settings: Settings, tag: str) -> bool:
    with Brain(settings) as brain:
        return (
            tag in dispatch.call(brain, dispatch.find_command("tags"), {"slug": "people/alice"}, "owner").tags
        )


@pytest.mark.parametrize(
    "reply",
    [b"", b"\n", b'\n[0, "", "cut o', b"\n[0]", b'\n["zero", "", "", ""]', b"\nnull"],
    ids=["none", "accepted", "cut off", "short", "no status", "null"],
)
def test_command_without_a_complete_answer_runs_locally(
    reply: bytes, unserved: Settings, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_environment(unserved, monkeypatch)
    expected = run_locally(["tags", "people/alice"], capsys, monkeypatch)
    with ending(unserved, sends(reply)):
        assert main(["tags", "people/alice"]) == 0
    assert capsys.readouterr() == expected[1:]


def test_answer_is_printed(unserved: Settings, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    use_environment(unserved, monkeypatch)
    with ending(unserved, sends(b'\n[3, "a note\\n", "the output\\n", ""]')):
        assert main(["tags", "people/alice"]) == 3
    assert capsys.readouterr() == ("the output\n", "a note\n")


@pytest.mark.parametrize(
    ("entry", "words"), [("main", ["tags", "people/alice"]), ("ai_kb_main", ["query", "formatter"])]
)
def test_delegated_command_does_not_load_the_command_line(
    entry: str, words: list[str], unserved: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_environment(unserved, monkeypatch)
    script = (
        f"import os, sys; from quaid.__main__ import {entry} as run\n"
        "def leave(status): print([name for name in sys.modules if name.startswith('quaid.')]); sys.exit(status)\n"
        "os._exit = leave\nrun()"
    )
    with ending(unserved, sends(b'\n[0, "", "", ""]')):
        done = subprocess.run(
            [sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=60
        )
    assert done.stdout == "['quaid.server_socket', 'quaid.__main__']\n"


def test_suspended_server_does_not_block_a_command(
    unserved: Settings, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_environment(unserved, monkeypatch)
    monkeypatch.setattr(server_socket, "ACCEPT_TIMEOUT", 0.05)
    done = threading.Event()
    with ending(unserved, lambda _: (done.wait(), None)[1]):
        assert main(["tag", "people/alice", "patient"]) == 0
        done.set()
    assert has_tag(unserved, "patient")
