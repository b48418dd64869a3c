"""A server in a process: where it listens, how it ends, what it says."""

import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from tests import commands
from tests.mcp.test_idle_worker import Model, filler, is_running, model, wait_until  # noqa: F401
from tests.timing import takes_at_most
from tests.web.conftest import filled, settings_in
from tests.web.server_process import PATIENCE, Process
from tests.web.test_auth import VISIT

from quaid.app import Brain
from quaid.cli.main import main
from quaid.config import Settings
from quaid.errors import InvalidArgument, OpenToOthers, PortTaken
from quaid.http_server import open_listener, server_address
from quaid.operations import dispatch, service
from quaid.web.server import ServerOptions, _is_same_memory, open_listeners


def run(settings: Settings, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [commands.program(), "--db", settings.db_path, *words],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "HOME": os.path.dirname(settings.db_path)},
    )


def test_server_prints_its_address(server: Process) -> None:
    assert server.settings.db_path in server.said
    with server.client() as asked:
        assert asked.get("/api/memory/get", params={"slug": "people/alice"}).json()["title"] == "Alice Berg"
    assert httpx.get(f"{server.address}/api/memory/stats", timeout=PATIENCE).status_code == 401
    strange = {"Host": f"evil.example:{server.port}"}
    evil = httpx.get(f"{server.address}/health", headers=strange, timeout=PATIENCE)
    assert evil.status_code == 421
    assert "server" not in evil.headers


def test_responses_are_not_delayed_by_nagle(server: Process) -> None:
    with server.client() as asked:
        taken = []
        for _ in range(200):
            began = time.perf_counter()
            asked.get("/health")
            taken.append(time.perf_counter() - began)
            if taken[-1] < 0.02:
                break
    assert min(taken) < 0.035, "a nod that is waited for comes after 0.04"


def test_server_listens_on_loopback_only(server: Process) -> None:
    with open("/proc/net/tcp", encoding="ascii") as file:
        ours = [line.split()[1] for line in file if line.split()[1].endswith(f":{server.port:04X}")]
    assert {item.split(":")[0] for item in ours if ours} == {"0100007F"}


def test_a_head_that_is_too_large_is_refused(server: Process) -> None:
    response = httpx.get(f"{server.address}/health", headers={"X-Long": "x" * 100_000}, timeout=PATIENCE)
    assert response.status_code in (400, 413)
    assert httpx.get(f"{server.address}/health", timeout=PATIENCE).status_code == 200


def test_disconnecting_client_does_not_affect_others(server: Process) -> None:
    for _ in range(20):
        there = socket.create_connection(("127.0.0.1", server.port))
        shown = service.owner_token(server.settings)
        there.sendall(
            b"POST /api/memory/query HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"
            b'Content-Type: application/json\r\nContent-Length: 19\r\n\r\n{"question": "who"}'
            % (server.port, shown.encode())
        )
        there.close()
    with server.client() as asked:
        assert asked.get("/api/memory/stats").status_code == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_server_stops_within_two_seconds(tmp_path: Path, number: int) -> None:
    def end(attempt: int) -> float:
        folder = tmp_path / str(attempt)
        folder.mkdir()
        settings = filled(settings_in(folder))
        with Process(settings, "serve", "--http") as server, server.client() as asked:
            made = asked.post("/api/memory/put", json={"slug": "people/bo", "content": "# Bo"})
            assert made.status_code == 200
            with socket.create_connection(("127.0.0.1", server.port)):
                status, seconds = server.stop(number)
        assert status == 0
        assert run(settings, "get", "people/bo").stdout.startswith("# Bo")
        log = settings.db_path + "-wal"
        assert not os.path.exists(log) or os.path.getsize(log) == 0
        return seconds

    takes_at_most(2, end)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_server_stops_in_time_while_busy(
    tmp_path: Path,
    model: Model,  # noqa: F811
    number: int,
) -> None:
    settings = filled(settings_in(tmp_path))
    with Brain(settings) as brain:
        added = {"place": model.place, "kind": "ollama", "model": "m"}
        dispatch.call(brain, dispatch.find_command("model add"), added, "owner")
        assert dispatch.call(brain, dispatch.find_command("embed"), {"model": "m"}, "owner").active
        dispatch.call(brain, dispatch.find_command("put"), {"slug": "people/bo", "content": "# Bo"}, "owner")
    model.mood = "hangs"
    on = {"QUAID_BACKGROUND_EMBEDDING": "on"}

    def end(_: int) -> float:
        with Process(settings, "serve", "--http", environ=on) as server:
            child = filler(settings)
            with (
                server.client() as asked,
                asked.stream("GET", "/api/events") as events,
                socket.create_connection(("127.0.0.1", server.port)) as question,
            ):
                assert next(events.iter_raw()).startswith(b"retry")
                shown = service.owner_token(settings)
                head = f"Host: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {shown}\r\n\r\n"
                model.asked.clear()
                question.sendall(f"GET /api/memory/query?question=tide HTTP/1.1\r\n{head}".encode())
                wait_until(lambda: model.asked)  # a thread waits for the model, and cannot be told
                status, seconds = server.stop(number)
            assert status == 0
            wait_until(lambda: not is_running(child))
        return seconds

    takes_at_most(2, end)
    with Brain(settings) as brain:
        assert (
            dispatch.call(brain, dispatch.find_command("get"), {"slug": "people/bo"}, "owner").title == "Bo"
        )


def test_web_prints_a_login_link_each_time(tmp_path: Path) -> None:
    settings = filled(settings_in(tmp_path))
    with Process(settings, "web", "--no-open") as server:
        assert server.process.stdout
        link = re.search(r"http://\S+", server.process.stdout.readline())
        assert link
        with httpx.Client(headers=VISIT, timeout=PATIENCE) as browser:
            page = browser.get(link[0])
            own = re.search(r"url=http://(\S+)(/login\S+?)\"", page.text)
            assert own
            assert own[1] == f"{service.web_host_name(settings)}:{server.port}"
            assert page.cookies == {}
            host = {"Host": own[1]}
            entered = browser.get(server.address + own[2], headers=host)
            cookies = {"Cookie": entered.headers["set-cookie"].partition(";")[0]}
            stats = server.address + "/api/memory/stats"
            assert browser.get(stats, headers={**host, **cookies}).status_code == 200
            assert browser.get(stats, headers=cookies).status_code == 401
            assert browser.get(link[0]).status_code == 401
        again = run(settings, "web", "--no-open", "--port", str(server.port))
        assert again.returncode == 0, again.stderr
        second = re.search(r"http://\S+", again.stdout)
        assert second
        assert second[0] != link[0]
        with httpx.Client(headers=VISIT, timeout=PATIENCE) as browser:
            assert browser.get(second[0]).status_code == 200
        server.stop()
        assert server.process.stderr
        assert "code=" not in server.said + server.process.stderr.read()


def test_both_loopback_addresses_are_taken(tmp_path: Path) -> None:
    """A browser may try either of them for a name that ends in .localhost."""
    listeners = open_listeners("127.0.0.1", 0)
    if len(listeners) == 1:
        pytest.skip("there is no IPv6")
    port = listeners[0].getsockname()[1]
    try:
        assert [listener.getsockname()[0] for listener in listeners] == ["127.0.0.1", "::1"]
        with pytest.raises(PortTaken):
            open_listener("::1", port)
    finally:
        for listener in listeners:
            listener.close()
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as other:
        done = run(filled(settings_in(tmp_path)), "web", "--no-open", "--port", str(other.getsockname()[1]))
        assert done.returncode == 5
        assert "taken" in done.stderr or "in use" in done.stderr, done.stderr


def test_guessable_host_name_is_warned_of(memory: Settings) -> None:
    with Process(memory, "web", "--no-open", "--host-name", "localhost") as server:
        assert server.process.stderr
        assert "WARNING" in (line := server.process.stderr.readline())
        assert "localhost" in line
    for name in ("evil.example", "127.0.0.1", "a b.localhost", ".localhost", "xlocalhost"):
        done = run(memory, "web", "--no-open", "--host-name", name)
        assert done.returncode == 2
        assert "--host-name" in done.stderr


def test_port_of_another_program_is_reported(tmp_path: Path) -> None:
    settings = filled(settings_in(tmp_path))
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = run(settings, "serve", "--http", "--port", str(port))
    assert done.returncode == 5
    assert f"Port {port}" in done.stderr
    assert "--port 0" in done.stderr


def test_port_that_already_serves_this_memory_is_reported(memory: Settings, server: Process) -> None:
    done = run(memory, "serve", "--http", "--port", str(server.port))
    assert done.returncode == 5
    assert f"This memory is already served at http://127.0.0.1:{server.port}" in done.stderr
    assert "another program" not in done.stderr


@pytest.mark.parametrize("bind", ["nonsense", "300.1.1.1", "127.0.0.1:80", "a b.example", "http://x.example"])
def test_invalid_bind_address_is_reported(bind: str) -> None:
    for how in (ServerOptions(bind=bind), ServerOptions(bind=bind, tls_cert="c", tls_key="k")):
        with pytest.raises(InvalidArgument, match="must be an address of this machine"):
            server_address(how, 4321)


def test_server_needs_the_folder_of_its_memory(tmp_path: Path) -> None:
    done = run(settings_in(tmp_path / "missing"), "serve", "--http", "--port", "0")
    assert done.returncode == 5
    assert "quaid init" in done.stderr


# Beyond this machine


def test_listening_beyond_this_machine_needs_tls() -> None:
    for bind in ("0.0.0.0", "::", "192.168.1.2", "", "128.0.0.1", "127.0.0.1.nip.io", "::ffff:10.0.0.1"):
        with pytest.raises(OpenToOthers, match="TLS"):
            server_address(ServerOptions(bind=bind), 4321)


@pytest.mark.parametrize(
    ("bind", "host"),
    [
        ("127.0.0.1", "127.0.0.1:4321"),
        ("127.0.0.2", "127.0.0.2:4321"),
        ("127.255.255.254", "127.255.255.254:4321"),
        ("::1", "[::1]:4321"),
        ("localhost", "localhost:4321"),
    ],
)
def test_loopback_addresses_need_no_tls(bind: str, host: str) -> None:
    address = server_address(ServerOptions(bind=bind), 4321)
    assert host in address.hosts
    assert address.url == f"http://{host}"
    assert not address.secure


def test_server_on_another_loopback_address(memory: Settings) -> None:
    with Process(memory, "serve", "--http", "--bind", "127.0.0.2", at="127.0.0.2") as server:
        assert f"http://127.0.0.2:{server.port}" in server.said
        with server.client() as asked:
            assert asked.get("/api/memory/stats").status_code == 200
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"http://127.0.0.1:{server.port}/health")
    refused = run(memory, "serve", "--http", "--bind", "0.0.0.0", "--port", "0")
    assert refused.returncode == 2
    for word in ("0.0.0.0", "other machines", "--tls-cert", "--behind-proxy"):
        assert word in refused.stderr


def test_server_behind_a_proxy_answers_only_to_its_name(memory: Settings) -> None:
    words = ("--behind-proxy", "--allow-host", "memory.example.org")
    with Process(memory, "serve", "--http", *words) as server:
        health = f"http://127.0.0.1:{server.port}/health"
        named = {"Host": "memory.example.org"}
        assert httpx.get(health, headers=named, timeout=PATIENCE).status_code == 200
        assert httpx.get(health, timeout=PATIENCE).status_code == 421
        link = {"Host": "memory.example.org", **VISIT}
        code = service.login_code(memory, server.port, time.time())
        login = health.replace("/health", f"/login?code={code}")
        entered = httpx.get(login, headers=link, timeout=PATIENCE)
        assert entered.headers["set-cookie"].startswith("__Host-quaid=")
        assert "Secure" in entered.headers["set-cookie"]


def test_behind_a_proxy_it_answers_to_the_names_that_are_allowed() -> None:
    address = server_address(ServerOptions(behind_proxy=True, allow_hosts=("memory.example.org",)), 4321)
    assert "memory.example.org" in address.hosts
    assert "https://memory.example.org" in address.origins
    assert "127.0.0.1:4321" not in address.hosts
    assert address.secure
    with pytest.raises(InvalidArgument, match="allow-host"):
        server_address(ServerOptions(behind_proxy=True), 4321)


def test_with_tls_it_answers_to_its_address() -> None:
    address = server_address(ServerOptions(bind="192.168.1.2", tls_cert="c", tls_key="k"), 4321)
    assert "192.168.1.2:4321" in address.hosts
    assert "https://192.168.1.2:4321" in address.origins
    with pytest.raises(InvalidArgument, match="allow-host"):
        server_address(ServerOptions(bind="0.0.0.0", tls_cert="c", tls_key="k"), 4321)
    for how in (ServerOptions(tls_cert="c"), ServerOptions(tls_key="k"), ServerOptions(allow_hosts=("x",))):
        with pytest.raises(InvalidArgument):
            server_address(how, 4321)


def test_server_with_tls(tmp_path: Path) -> None:
    made = subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")),
        ],
        capture_output=True,
    )
    if made.returncode:
        pytest.skip("openssl is not there")
    settings = filled(settings_in(tmp_path))
    files = ("--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem"))
    process = subprocess.Popen(
        [commands.program(), "--db", settings.db_path, "serve", "--http", "--port", "0", *files],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    try:
        assert process.stderr
        match = re.search(r"memory: |https://127\.0\.0\.1:(\d+)", line := process.stderr.readline())
        assert match, line
        port = re.search(r":(\d+)", line)
        assert port
        import ssl

        trusted = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        until = time.monotonic() + PATIENCE
        while True:
            try:
                response = httpx.get(f"https://127.0.0.1:{port[1]}/health", verify=trusted, timeout=PATIENCE)
                break
            except httpx.ConnectError:
                assert time.monotonic() < until
                time.sleep(0.05)
        assert response.text.startswith("quaid ")
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def test_free_and_taken_ports() -> None:
    first = open_listener("127.0.0.1", 0)
    try:
        with pytest.raises(PortTaken):
            open_listener("127.0.0.1", first.getsockname()[1])
    finally:
        first.close()


@pytest.mark.parametrize(
    "words",
    [
        ["serve", "--port", "4000"],
        ["serve", "--http", "--port", "70000"],
        ["serve", "--http", "--port", "x"],
        ["serve", "--http", "--tools", "nonsense"],
        ["web", "--port", "-1"],
        ["serve", "--http", "--bind", "nonsense"],
    ],
)
def test_invalid_options_are_reported(
    settings: Settings, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--db", settings.db_path, *words]) == 2
    assert capsys.readouterr().err


def test_server_of_another_memory_on_the_port(tmp_path: Path, memory: Settings, server: Process) -> None:
    other = Settings(db_path=str(tmp_path / "other.db"), home=str(tmp_path), cwd=str(tmp_path))
    assert not _is_same_memory(server.port, other, "127.0.0.1")
    assert _is_same_memory(server.port, memory, "127.0.0.1")
