"""The command `quaid hub`."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.hub.running import HubProcess, bundle_of, push_of, wait_until

from quaid.cli.main import main
from quaid.errors import HubUnreachable
from quaid.hub.store import SqliteHubStore
from quaid.spaces.http_client import HttpHub
from quaid.spaces.protocol import hash_secret, new_token, parse_link


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("QUAID_HUB_URL", raising=False)
    path = str(tmp_path / "hub.db")
    monkeypatch.setenv("QUAID_HUB_STORE", path)
    return path


@pytest.fixture
def hub(place: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["hub", "init", "ana"]) == 0
    capsys.readouterr()
    return place


def run(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main(["hub", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("command", [["hub", "serve"], ["serve", "--http"]], ids=" ".join)
def test_servers_refuse_a_certificate_that_cannot_be_read(
    hub: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    missing = str(tmp_path / "missing.pem")
    assert main([*command, "--tls-cert", missing, "--tls-key", missing, "--db", f"{tmp_path}/memory.db"]) == 5
    assert capsys.readouterr().err == f"quaid: {missing}: cannot be read.\n"


def test_init_creates_a_hub_and_invites_its_admin(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hub", "init", "ana", "--url", "https://hub.example.org"]) == 0
    text = capsys.readouterr().out
    assert "quaid share COLLECTION --hub 'https://hub.example.org/join#" in text
    assert os.stat(place).st_mode & 0o077 == 0
    assert run(capsys, "init")["created"] is False
    assert [(person["name"], person["is_admin"]) for person in run(capsys, "people")] == [("ana", True)]
    code = parse_link(text.split("'")[1]).code
    assert code.encode() not in Path(place).read_bytes()  # only its hash is stored


def test_an_invited_person_joins_a_space(hub: str, capsys: pytest.CaptureFixture[str]) -> None:
    server = HubProcess(hub)
    try:
        first = run(capsys, "invite", "ana")
        token = new_token()
        ana = HttpHub(server.url)
        ana.redeem(first["code"], "", "laptop", hash_secret(token))
        ana.close()
        ana = HttpHub(server.url, token)
        assert ana.about().is_admin
        space = ana.create_space("team", "team")
        ana.push(space.id, [push_of(bundle_of(1, "Only for members."))])
        invitation = run(capsys, "invite", "ben", "--space", "team", "--right", "append")
        ben = HttpHub(server.url)
        joined = ben.redeem(invitation["code"], "", "phone", hash_secret(new_token()))
        assert joined.space is not None
        assert joined.space.right == "append"
        ben.close()
        assert {space["name"]: space["last_seq"] for space in run(capsys, "spaces")} == {"team": 1}
        names = {device["name"] for device in run(capsys, "devices", "--space", "team")}
        assert names == {"laptop", "phone"}
        assert main(["hub", "revoke", "phone"]) == 0
        assert "Revoked phone of ben" in capsys.readouterr().out
        ana.close()
    finally:
        status, printed = server.stop()
    assert status == 0
    assert "Only for members" not in printed
    assert token not in printed


def test_the_audit_log_is_listed_and_verified(hub: str, capsys: pytest.CaptureFixture[str]) -> None:
    actions = [entry["action"] for entry in run(capsys, "audit")]
    assert "add person" in actions
    assert run(capsys, "audit", "--verify")["first_mismatch"] is None
    store = SqliteHubStore(hub)
    store._writer.execute("UPDATE audit SET subject = 'nobody' WHERE number = 1")
    store.close()
    assert main(["hub", "audit", "--verify"]) == 4
    assert "was changed" in capsys.readouterr().out


def test_a_backup_is_a_hub_of_its_own(hub: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = str(tmp_path / "backup.db")
    assert run(capsys, "backup", copy)["path"] == copy
    assert [person["name"] for person in run(capsys, "people", "--store", copy)] == ["ana"]
    assert main(["hub", "backup", copy]) != 0  # it is not overwritten


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("explode",), "must be one of init, serve"),
        (("people", "--space", "x"), "--space: does not belong to quaid hub people"),
        (("invite",), "NAME: is missing"),
        (("invite", "ben", "--space", "none"), "There is no space none"),
        (("invite", "ben", "--right", "root"), "--right: must be one of"),
        (("revoke", "none"), "no device has this id"),
        (("serve", "--bind", "0.0.0.0"), "without TLS"),
        (("serve", "--behind-proxy"), "needs --allow-host"),
        (("people", "--store", "absent.db"), "There is no hub"),
    ],
)
def test_wrong_calls_are_explained(
    hub: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], problem: str
) -> None:
    assert main(["hub", *words]) != 0
    assert problem in capsys.readouterr().err


def test_a_store_is_needed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUAID_HUB_STORE", raising=False)
    assert main(["hub", "people"]) == 2
    assert "--store: is missing" in capsys.readouterr().err


def test_devices_reach_a_hub_over_tls_and_refuse_an_unknown_certificate(
    hub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=localhost",
    ]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    server = HubProcess(hub, "--tls-cert", cert, "--tls-key", key, "--allow-host", "localhost")
    try:
        url = f"https://localhost:{server.url.rpartition(':')[2]}"
        stranger = HttpHub(url)
        with pytest.raises(HubUnreachable, match="certificate is not valid"):
            stranger.about()
        monkeypatch.setenv("SSL_CERT_FILE", cert)
        device = HttpHub(url)
        assert device.about().protocol == 1
        device.close()
    finally:
        server.stop()


def test_a_waiting_request_does_not_delay_the_end_of_the_server(hub: str) -> None:
    import threading
    import time

    server = HubProcess(hub)
    store = SqliteHubStore(hub)
    token = new_token()
    store.add_device("ana", "laptop", hash_secret(token))
    store.close()
    ana = HttpHub(server.url, token)
    space = ana.create_space("team", "team")
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(ana.wait(space.id, 0, 60)))
    thread.start()
    time.sleep(0.3)
    started = time.monotonic()
    status, _ = server.stop()
    thread.join(10)
    assert (status, answers) == (0, [False])
    assert time.monotonic() - started < 5
    ana.close()
    wait_until(lambda: server.process.poll() is not None)
