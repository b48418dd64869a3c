"""Commands that a resident process does: the same words come out, and nothing is ever done twice."""

import contextlib
import io
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
from tests.web.conftest import filled, settings_in
from tests.web.process import Process

import quaid
from quaid import server_socket
from quaid.app import Brain
from quaid.cli import client
from quaid.cli.main import main
from quaid.config import Settings
from quaid.errors import PageNotFound
from quaid.operations import dispatch, registry
from quaid.web import server

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no such sockets here")

Capture = pytest.CaptureFixture[str]
Said = tuple[int, str, str]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A memory with a server, in a home whose name both find."""
    settings = filled(settings_in(tmp_path_factory.mktemp("handed"))._replace())
    with Process(settings, "serve", "--http"):
        yield settings


@pytest.fixture
def lonely(tmp_path: Path) -> Settings:
    """A memory without a server."""
    return filled(settings_in(tmp_path)._replace(home=str(tmp_path / ".quaid")))


def live_in(settings: Settings, patch: pytest.MonkeyPatch, **further: str) -> None:
    """Be a shell of that person, who waits longer for an answer than others: the machine may be busy."""
    patch.setattr(client, "ACCEPT_TIMEOUT", 60.0)
    patch.chdir(settings.cwd)
    for name, value in {
        "HOME": os.path.dirname(settings.home),
        "QUAID_DB": settings.db_path,
        "QUAID_BACKGROUND_EMBEDDING": "off",
        **further,
    }.items():
        patch.setenv(name, value)


def handed(words: list[str], capsys: Capture) -> Said:
    """What a resident process says; fails when it does not do the command."""
    capsys.readouterr()
    status = client.delegate(words)
    assert status is not None, f"not taken over: {words}"
    return (status, *capsys.readouterr())


def alone(words: list[str], capsys: Capture, patch: pytest.MonkeyPatch) -> Said:
    """What the command itself says."""
    capsys.readouterr()
    with patch.context() as inner:
        inner.setenv("QUAID_HANDOVER", "off")
        status = main(words)
    return (status, *capsys.readouterr())


def steady(said: Said) -> Said:
    """Without what differs from moment to moment: times, sizes of the log."""
    out = re.sub(
        r"\d{4}-\d\d-\d\dT[\d:.]+Z?|[\d.,]+ (bytes|KB|MB)( of log)?|\d+(\.\d+)? ?(ms|s)\b", "…", said[1]
    )
    return (said[0], re.sub(r'"(wal_size|size|seconds|cpu_seconds|ms)": [\d.]+', "…", out), said[2])


def reading() -> list[list[str]]:
    """The examples of every operation that reads."""
    every = [each for each in registry.all_operations() if each.scope == "read"]
    lines = [shlex.split(example, comments=True)[1:] for each in every for example in each.examples]
    return [line for line in lines if line and not {"|", "<", ">"} & set(line)]


@pytest.mark.parametrize("words", reading(), ids=" ".join)
def test_a_command_says_the_same_from_both_places(
    words: list[str], served: Settings, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(served, monkeypatch)
    words = ["sources/talk" if word == "PAGE" else word for word in words]
    there = steady(handed(words, capsys)) if client.delegate(words) is not None else None
    here = steady(alone(words, capsys, monkeypatch))
    if there is None:  # a command that is wrong is told so by itself
        assert here[0] != 0
    else:
        assert there == here
        for_programs = [*words, "--json"]
        assert steady(handed(for_programs, capsys)) == steady(alone(for_programs, capsys, monkeypatch))


def test_most_reading_commands_are_taken_over(
    served: Settings, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(served, monkeypatch)
    taken = [words for words in reading() if client.delegate(words) is not None]
    capsys.readouterr()
    assert len(taken) > 0.8 * len(reading())


def test_writes_say_and_do_the_same(
    served: Settings, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(served, monkeypatch)

    def typed(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    typed("# Moritz\n\nKeeps bees.")
    there = handed(["put", "people/moritz"], capsys)
    typed("# Moritz\n\nKeeps bees.")
    here = alone(["put", "people/walter"], capsys, monkeypatch)
    assert (there[0], there[1].replace("moritz", "walter"), there[2]) == here
    assert handed(["tag", "people/moritz", "friend"], capsys)[1] == "friend\n"
    assert alone(["tags", "people/moritz"], capsys, monkeypatch)[1] == "friend\n"
    assert "Wrote" in handed(["remember", "Moritz gave us a jar of honey"], capsys)[1]
    assert "jar of honey" in alone(["recall", "honey"], capsys, monkeypatch)[1]


def test_a_failure_is_told_in_the_same_words_and_status(
    served: Settings, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(served, monkeypatch)
    for words in (["get", "nobody/here"], ["get", "nobody/here", "--json"], ["links", "nobody/here"]):
        there = handed(words, capsys)
        assert there == alone(words, capsys, monkeypatch)
        assert there[0] != 0


@pytest.mark.parametrize(
    "words",
    [
        ["get", "--help"],
        ["import", "x"],
        ["config", "list"],
        ["put", "x", "file.md"],
        ["version"],
        ["nonsense"],
    ],
    ids=" ".join,
)
def test_what_belongs_to_the_command_itself_is_left_to_it(
    words: list[str], served: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(served, monkeypatch)
    assert client.delegate(words) is None


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
def test_other_settings_are_not_mixed_up(
    other: dict[str, str], served: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(served.cwd, "other.yaml").write_text("search:\n  max_results: 3\n")
    live_in(served, monkeypatch)
    assert client.delegate(["tags", "people/alice"]) is not None
    for name, value in other.items():
        monkeypatch.setenv(name, value)
    assert client.delegate(["tags", "people/alice"]) is None


def test_another_version_does_its_own_work(served: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    live_in(served, monkeypatch)
    monkeypatch.setattr(quaid, "__version__", "0.0.1")
    assert client.delegate(["list"]) is None


def test_many_at_once_get_their_own_answers(served: Settings) -> None:
    env = {**os.environ, "HOME": os.path.dirname(served.home), "QUAID_DB": served.db_path}
    env["QUAID_BACKGROUND_EMBEDDING"] = "off"
    words = [["search", f"word{number}"] for number in range(8)]
    running = [
        subprocess.Popen([sys.executable, "-m", "quaid", *each], env=env, stdout=subprocess.PIPE, text=True)
        for each in words
    ]
    for each, process in zip(words, running, strict=True):
        assert each[1] in process.communicate(timeout=60)[0]
        assert process.returncode == 0


def test_a_write_is_not_begun_for_somebody_who_is_gone(
    served: Settings, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(served, monkeypatch)
    there = server_socket.connect(served.home, served.db_path)
    assert there is not None
    words = ["tag", "people/alice", "ghost"]
    environ = server_socket.join_words([f"{name}={value}" for name, value in os.environ.items()])
    package = os.path.dirname(os.path.abspath(quaid.__file__))
    there.sendall(
        server_socket.encode_message(
            server_socket.REQUEST,
            *(os.fsencode(each) for each in (quaid.__version__, package, served.cwd)),
            bytes(3),
            server_socket.join_words(words),
            environ,
        )
    )
    assert there.recv(1) == server_socket.WRITES
    there.close()  # without a word that it may begin
    assert "ghost" not in handed(["tags", "people/alice"], capsys)[1]


def test_the_socket_is_private_and_goes_with_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = filled(settings_in(tmp_path))
    live_in(settings, monkeypatch)
    with Process(settings, "web", "--no-open") as server:
        folder = server_socket.socket_folder(settings.home)
        path = os.path.join(folder, server_socket.socket_name(settings.db_path))
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        with Brain(settings) as brain:
            assert dispatch.call(brain, dispatch.find_command("status"), {}, "owner").resident
        server.stop(signal.SIGTERM)
        assert os.listdir(folder) == []


def test_a_server_for_reading_only_takes_nothing_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = filled(settings_in(tmp_path))
    live_in(settings, monkeypatch)
    with Process(settings, "serve", "--http", "--read-only"):
        assert client.delegate(["list"]) is None


def test_a_server_that_was_killed_leaves_commands_to_themselves(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = filled(settings_in(tmp_path))
    live_in(settings, monkeypatch)
    with Process(settings, "serve", "--http") as server:
        assert client.delegate(["list"]) == 0
        server.stop(signal.SIGKILL)
        assert os.path.exists(
            os.path.join(
                server_socket.socket_folder(settings.home), server_socket.socket_name(settings.db_path)
            )
        )
        assert client.delegate(["list"]) is None
        assert main(["tags", "people/alice"]) == 0
        with Process(settings, "serve", "--http"):  # the dead socket is in nobody's way
            assert client.delegate(["list"]) == 0


def test_only_this_user_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = socket.socketpair()
    with one, other:
        assert server_socket.peer_uid(one) == os.getuid()
        assert server.is_same_user(one)
        monkeypatch.setattr(os, "getuid", lambda: 4711)
        assert not server.is_same_user(one)


def test_a_long_path_is_reached_through_its_folder(tmp_path: Path) -> None:
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


def test_all_input_that_a_text_may_have_is_sent() -> None:
    assert server_socket.MAX_INPUT_BYTES == dispatch.MAX_TEXT + 1


def test_parts_that_do_not_add_up_are_refused() -> None:
    letter_and_length = 5
    whole = server_socket.encode_message(b"X", b"", b"abc")
    assert server_socket.decode_parts(whole[letter_and_length:]) == [b"", b"abc"]
    with pytest.raises(ValueError, match="cut off"):
        server_socket.decode_parts(whole[letter_and_length:-1])


# A server that ends at the worst moment


Talk = Callable[[socket.socket], None]


@contextlib.contextmanager
def ending(settings: Settings, talk: Talk) -> Iterator[None]:
    """Something that listens for one command of a memory, answers as it is told to, and ends."""
    folder = server_socket.socket_folder(settings.home)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, server_socket.socket_name(settings.db_path))
    with socket.socket(socket.AF_UNIX) as server:
        server_socket.use_socket_path(path, server.bind)
        server.listen()

        def serve() -> None:
            there, _ = server.accept()
            with there:
                there.recv(1024 * 1024)
                talk(there)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()
    os.unlink(path)


def says(*letters: bytes) -> Talk:
    """Sends these, each but the last followed by a look at what comes back."""

    def talk(there: socket.socket) -> None:
        for letter in letters:
            there.sendall(server_socket.encode_message(letter))
            there.recv(1024 * 1024)

    return talk


def has_tag(settings: Settings, tag: str) -> bool:
    with Brain(settings) as brain:
        return (
            tag in dispatch.call(brain, dispatch.find_command("tags"), {"slug": "people/alice"}, "owner").tags
        )


def test_a_read_that_was_not_answered_is_done_here(
    lonely: Settings, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(lonely, monkeypatch)
    with ending(lonely, says(server_socket.READS)):
        assert main(["tags", "people/alice"]) == 0
    assert capsys.readouterr().err == ""


def test_a_write_that_was_not_answered_is_told_and_not_repeated(
    lonely: Settings, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(lonely, monkeypatch)
    with ending(lonely, says(server_socket.WRITES)):
        assert main(["tag", "people/alice", "twice"]) == 5
    said = capsys.readouterr()
    assert said.out == ""
    assert "not known" in said.err
    assert not has_tag(lonely, "twice")


def test_a_write_that_was_not_begun_is_done_here(
    lonely: Settings, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(lonely, monkeypatch)
    with ending(lonely, lambda _: None):
        assert main(["tag", "people/alice", "once"]) == 0
    assert has_tag(lonely, "once")


def test_input_that_was_sent_in_vain_is_not_lost(
    lonely: Settings, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(lonely, monkeypatch)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"# Sent\n\nIn vain.")))
    with Brain(lonely) as brain, pytest.raises(PageNotFound):
        dispatch.call(brain, dispatch.find_command("get"), {"slug": "notes/sent"}, "owner")
    with ending(lonely, says(server_socket.WANTS_INPUT)):
        assert main(["put", "notes/sent"]) == 0
    with Brain(lonely) as brain:
        assert (
            dispatch.call(brain, dispatch.find_command("get"), {"slug": "notes/sent"}, "owner").title
            == "Sent"
        )


def test_a_server_that_stands_still_does_not_hold_a_command_up(
    lonely: Settings, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_in(lonely, monkeypatch)
    monkeypatch.setattr(client, "ACCEPT_TIMEOUT", 0.05)
    done = threading.Event()
    with ending(lonely, lambda _: (done.wait(), None)[1]):
        assert main(["tag", "people/alice", "patient"]) == 0
        done.set()
    assert has_tag(lonely, "patient")
