"""Versions are compared when somebody asks, where they say, and nowhere else."""

import itertools
import json
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import quaid
from quaid.app import Brain
from quaid.errors import FileTrouble, InvalidArgument
from quaid.operations import maintenance
from quaid.operations.maintenance import upgrade

NEWER = "99.1.0"


class Index(BaseHTTPRequestHandler):
    """A package index on this machine that remembers what it was asked."""

    asked: list[tuple[str, dict[str, str]]] = []  # noqa: RUF012 (one server for each test)
    answers: dict[str, tuple[int, dict[str, str], bytes]] = {}  # noqa: RUF012

    def do_GET(self) -> None:
        self.asked.append((self.path, dict(self.headers)))
        status, headers, body = self.answers.get(self.path, (404, {}, b""))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def index() -> Iterator[tuple[str, type[Index]]]:
    class Here(Index):
        asked: list[tuple[str, dict[str, str]]] = []  # noqa: RUF012
        answers: dict[str, tuple[int, dict[str, str], bytes]] = {}  # noqa: RUF012

    server = ThreadingHTTPServer(("127.0.0.1", 0), Here)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", Here
    server.shutdown()
    thread.join()
    server.server_close()


def simple(*names: str, yanked: str = "") -> bytes:
    files = [{"filename": name, "yanked": name == yanked} for name in names]
    return json.dumps({"meta": {"api-version": "1.1"}, "name": "quaid-memory", "files": files}).encode()


def test_upgrade_looks_for_the_name_of_the_distribution() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["name"] == maintenance.PACKAGE
    assert maintenance.version_in_filename(maintenance.WHEEL_NAME.replace("VERSION", "0.2.0")) == "0.2.0"
    assert maintenance.version_in_filename("quaid-0.2.0-py3-none-any.whl") is None


def test_no_request_is_sent_without_an_address(brain: Brain) -> None:
    report = upgrade(brain)
    assert (report.newest, report.exit_status) == (None, 0)
    assert "pip install --upgrade quaid_memory-VERSION-py3-none-any.whl" in report.how
    with pytest.raises(InvalidArgument, match="is required"):
        upgrade(brain, check=True)


def test_an_index_tells_the_newest_version(brain: Brain, index: tuple[str, type[Index]]) -> None:
    address, server = index
    files = simple(
        f"quaid_memory-{NEWER}-py3-none-any.whl", "quaid_memory-0.0.9.tar.gz", "quaid-100.0.tar.gz"
    )
    server.answers["/simple/quaid-memory/"] = (200, {}, files)
    report = upgrade(brain, check=True, from_=f"{address}/simple/")
    assert (report.current, report.newest, report.exit_status) == (quaid.__version__, NEWER, 1)
    [(path, headers)] = server.asked
    assert path == "/simple/quaid-memory/"
    assert headers["User-Agent"] == "quaid-memory"  # not who, not which version, not which machine
    assert set(headers) <= {"Host", "Accept", "Accept-Encoding", "User-Agent", "Connection"}


def test_withdrawn_and_pre_release_versions_are_ignored(brain: Brain, index: tuple[str, type[Index]]) -> None:
    address, server = index
    gone, early = f"quaid_memory-{NEWER}-py3-none-any.whl", "quaid_memory-98.0rc1-py3-none-any.whl"
    here = f"quaid_memory-{quaid.__version__}-py3-none-any.whl"
    server.answers["/list"] = (200, {}, simple(gone, early, here, yanked=gone))
    report = upgrade(brain, check=True, from_=f"{address}/list")
    assert (report.newest, report.exit_status) == (quaid.__version__, 0)


def test_withdrawn_version_of_a_page_is_ignored(brain: Brain, index: tuple[str, type[Index]]) -> None:
    address, server = index
    here = f'<a href="/f/quaid_memory-{quaid.__version__}-py3-none-any.whl" title="not data-yanked">quaid</a>'
    file = f"quaid_memory-{NEWER}-py3-none-any.whl"
    for mark in ("data-yanked", 'data-yanked="broken > 3"'):
        gone = f'<a data-requires-python="&gt;=3.11" {mark} href="/f/{file}#sha256=0">{file}</a>'
        server.answers["/page"] = (200, {}, f"<html><body>{here}<br/>\n{gone}</body></html>".encode())
        report = upgrade(brain, check=True, from_=f"{address}/page")
        assert (report.newest, report.exit_status) == (quaid.__version__, 0)


@pytest.mark.parametrize(
    "body",
    [
        json.dumps({"info": {"version": NEWER}, "releases": {}}).encode(),
        json.dumps({"versions": ["0.0.1", NEWER]}).encode(),
        f'<a href="/f/quaid_memory-{NEWER}-py3-none-any.whl#sha256=0">quaid</a>'.encode(),
        f"{NEWER}\n".encode(),
    ],
)
def test_other_lists_are_read_too(brain: Brain, index: tuple[str, type[Index]], body: bytes) -> None:
    address, server = index
    server.answers["/x"] = (200, {}, body)
    assert upgrade(brain, check=True, from_=f"{address}/x").newest == NEWER


def test_a_redirect_to_another_server_is_not_followed(brain: Brain, index: tuple[str, type[Index]]) -> None:
    address, server = index
    server.answers["/x"] = (302, {"Location": "http://localhost:9/quaid"}, b"")
    with pytest.raises(FileTrouble, match="leads to another place"):
        upgrade(brain, check=True, from_=f"{address}/x")


def test_a_redirect_on_the_same_server_is(brain: Brain, index: tuple[str, type[Index]]) -> None:
    address, server = index
    server.answers["/x"] = (302, {"Location": "/y"}, b"")
    server.answers["/y"] = (200, {}, NEWER.encode())
    assert upgrade(brain, check=True, from_=f"{address}/x").newest == NEWER


def test_a_server_that_does_not_answer_times_out(brain: Brain, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(maintenance, "TIMEOUT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"http://who:secret@127.0.0.1:{silent.getsockname()[1]}/simple/"
        with pytest.raises(FileTrouble, match="does not answer") as caught:
            upgrade(brain, check=True, from_=place)
    assert "secret" not in str(caught.value)


def test_only_http_addresses_are_queried(brain: Brain) -> None:
    for place in ("ftp://127.0.0.1/simple", "file:///etc/passwd", "http://"):
        with pytest.raises(InvalidArgument):
            upgrade(brain, check=True, from_=place)


def test_a_folder_and_a_file_are_read(brain: Brain, tmp_path: Path) -> None:
    folder = tmp_path / "wheels"
    folder.mkdir()
    with pytest.raises(FileTrouble, match="contains no version"):
        upgrade(brain, check=True, from_="wheels")
    for name in (
        f"quaid_memory-{NEWER}-py3-none-any.whl",
        "quaid_memory-2.tar.gz",
        "other-100.0-py3-none-any.whl",
    ):
        (folder / name).touch()
    assert upgrade(brain, check=True, from_="wheels").newest == NEWER
    assert upgrade(brain, check=True, from_="wheels/quaid_memory-2.tar.gz").newest == "2"
    (tmp_path / "list.json").write_bytes(simple(f"quaid_memory-{NEWER}.tar.gz"))
    assert upgrade(brain, check=True, from_="list.json").newest == NEWER
    with pytest.raises(FileTrouble, match="cannot be read"):
        upgrade(brain, check=True, from_="not-there")


def test_versions_are_numbers_not_words() -> None:
    rising = ["0.9", "0.10.dev1", "0.10a1", "0.10b2", "0.10rc1", "0.10", "0.10.post1", "0.10.1", "1.0"]
    for older, newer in itertools.pairwise(rising):
        assert maintenance.is_newer_version(newer, older)
        assert not maintenance.is_newer_version(older, newer)
    assert maintenance.version_key("1.0") == maintenance.version_key("1.0.0") == maintenance.version_key("v1")
    assert maintenance.version_key("latest") is None
    assert not maintenance.is_newer_version("latest", "0.1")
