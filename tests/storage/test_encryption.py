"""Encrypted memories: with apsw-sqlite3mc, in the environment that .ci/encryption makes."""

import base64
import json
import os
import pty
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.faults.full_memory import converse, settings_for
from tests.faults.old_schema import make as make_old_memory
from tests.faults.workspace import PROJECT

from quaid import errors, storage
from quaid.app import Brain
from quaid.operations import dispatch
from quaid.storage import collections
from quaid.storage.sqlite import connection, encryption

HAS_CIPHER = hasattr(apsw, "mc_version")
needs_cipher = pytest.mark.skipif(
    not HAS_CIPHER, reason="apsw-sqlite3mc is not installed; run .ci/encryption"
)

CANARIES = {
    kind: f"{kind}canary{number}x"
    for number, kind in enumerate(
        "page history fact turn question proposal image imported raw title tag backup".split()
    )
}
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(autouse=True)
def _no_known_keys() -> Iterator[None]:
    """Each test starts as a new process would: without keys, and without sources of keys."""
    for known in (storage.key_sources, encryption._known_keys):
        known.clear()
    yield
    for known in (storage.key_sources, encryption._known_keys):
        known.clear()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def opened(home: Path, ask: Any = None, **environ: str) -> Brain:
    """A brain as a new process of this person would have it."""
    storage.key_sources.clear()
    encryption._known_keys.clear()
    settings = settings_for(home)
    if (home / "config.yaml").exists():
        settings = settings._replace(
            options={"key_file": str(home / "keys" / "quaid.key")}, config_path=str(home / "config.yaml")
        )
    return Brain(
        settings._replace(environ={**settings.environ, **environ}),
        ask=ask,
        clock=time.time,
        offset=lambda _: 0,
    )


def made(home: Path, text: str = "pagecanary is here") -> None:
    with opened(home) as brain:
        brain.create(brain.settings.db_path)
        run(brain, "put", slug="people/alice", content=f"# Alice\n\n{text}\n")


def encrypted(home: Path) -> str:
    """Make and encrypt a memory with a key file. Return the path of the key file."""
    made(home)
    key_file = str(home / "keys" / "quaid.key")
    with opened(home) as brain:
        run(brain, "encrypt", key_file=key_file)
    return key_file


def text_of(home: Path, **environ: str) -> str:
    with opened(home, **environ) as brain:
        return str(run(brain, "get", slug=["people/alice"]))


def quaid(home: Path, *words: str, said: str = "", **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-P", "-m", "quaid", "--db", str(home / "memory.db"), *words],
        env={**process_environment(home), **environ},
        capture_output=True,
        text=True,
        input=said,
        timeout=120,
    )


def process_environment(home: Path) -> dict[str, str]:
    return {
        **{name: os.environ[name] for name in ("PATH", "QUAID_EMBEDDING_MODELS_DIR") if name in os.environ},
        "HOME": str(home),
        "TMPDIR": str(home),
        "PYTHONPATH": str(PROJECT / "src"),
        "QUAID_BACKGROUND_EMBEDDING": "off",
    }


def found_in(folder: Path, *words: str) -> set[str]:
    """The words that occur in any file below a folder, whatever its name."""
    return {
        word
        for path in folder.rglob("*")
        if path.is_file() and not path.is_socket()
        for word in words
        if word.encode() in path.read_bytes()
    }


# The proof: every writing operation, and then every byte


def write_everything(home: Path, outside: Path) -> None:
    """Write a canary with each way to write into a memory. Files of the person are in `outside`."""
    with opened(home) as brain:
        word = CANARIES
        put = {"slug": "people/bob", "content": f"# {word['title']}\n\n{word['history']}\n"}
        run(brain, "put", **put)
        text = f"---\ntags: [{word['tag']}]\n---\n# {word['title']}\n\n{word['page']}\n"
        run(brain, "put", slug="people/bob", content=text)
        run(brain, "raw", slug="people/bob", source="web", data={"text": word["raw"]})
        run(brain, "assert", subject="Bob", predicate="likes", object=word["fact"], slug="people/bob")
        image = PIXEL + b"tEXt" + word["image"].encode()
        run(brain, "attach", data=base64.b64encode(image).decode())
        run(brain, "config set", key="log_gaps", value="text")
        run(brain, "query", question=f"who is {word['question']}")
        files = outside / "files"
        files.mkdir()
        (files / "note.md").write_text(f"# Note\n\n{word['imported']}\n")
        run(brain, "import", folder=str(files))
        converse(outside, brain, word["turn"])
        brain.agent = "robot"
        run(brain, "config set", key="agent_writes", value="review")
        run(brain, "put", slug="people/eve", content=f"# Eve\n\n{word['proposal']}\n")
        # The WAL is there while the memory is open.
        assert (home / "memory.db-wal").stat().st_size
    with opened(home) as brain:
        run(brain, "put", slug="people/dan", content=f"# Dan\n\n{CANARIES['backup']}\n")
        run(brain, "backup")
        run(brain, "forget", slug="people/dan", yes=True)


@needs_cipher
@pytest.mark.parametrize("is_encrypted", [True, False])
def test_no_byte_below_home_holds_text_of_an_encrypted_memory(
    home: Path, tmp_path: Path, is_encrypted: bool
) -> None:
    """The same walk leaves every word in the files of a plain memory, so the scan can fail."""
    outside = tmp_path / "outside"
    outside.mkdir()
    if is_encrypted:
        encrypted(home)
    else:
        made(home)
    write_everything(home, outside)
    words = set(CANARIES.values())
    assert found_in(home, *words, "pagecanary is") == (set() if is_encrypted else {*words, "pagecanary is"})


@needs_cipher
def test_wal_and_backup_made_while_the_memory_is_open_are_encrypted(home: Path) -> None:
    encrypted(home)
    with opened(home) as brain:
        run(brain, "put", slug="people/bob", content="# Bob\n\nwalcanary1\n")
        assert (home / "memory.db-wal").stat().st_size > 4096
        run(brain, "backup")
        assert found_in(home, "walcanary1") == set()
    with opened(home) as brain:
        (copy,) = run(brain, "backups list").value
        assert run(brain, "backups verify", file=copy.path).pages == 2


@needs_cipher
def test_encrypting_an_existing_memory_encrypts_backups_and_images_too(home: Path) -> None:
    made(home)
    with opened(home) as brain:
        image = base64.b64encode(PIXEL + b"imagecanary7").decode()
        name = run(brain, "attach", data=image).name
        run(brain, "backup")
        before = os.stat(run(brain, "backups list").value[0].path).st_mtime
    assert found_in(home, "pagecanary", "imagecanary7") == {"pagecanary", "imagecanary7"}
    with opened(home) as brain:
        record = run(brain, "encrypt", key_file=str(home / "keys" / "quaid.key"))
    assert (record.act, len(record.backups), record.images, record.left) == ("encrypted", 1, 2, ())
    assert found_in(home, "pagecanary", "imagecanary7") == set()
    with opened(home) as brain:
        assert base64.b64decode(run(brain, "attachment", name=name).data) == PIXEL + b"imagecanary7"
        assert os.stat(run(brain, "backups list").value[0].path).st_mtime == before
        assert run(brain, "decrypt").images == 1
    with opened(home) as brain:
        assert base64.b64decode(run(brain, "attachment", name=name).data) == PIXEL + b"imagecanary7"


@needs_cipher
def test_backups_left_plain_by_a_killed_command_are_encrypted_by_the_next(home: Path, tmp_path: Path) -> None:
    made(home)
    copy = home / "copy.db"
    with opened(home) as brain:
        run(brain, "backup", file=str(tmp_path / "aside.db"))
        run(brain, "encrypt", key_file=str(home / "keys" / "quaid.key"))
    os.rename(tmp_path / "aside.db", copy)
    with opened(home) as brain:
        findings = run(brain, "doctor", quick=True).checks
        assert [check.remedy.split()[-1] for check in findings if "without encryption" in check.detail] == [
            "encrypt"
        ]
    with opened(home) as brain:
        record = run(brain, "encrypt")
    assert (record.act, record.backups) == ("", (str(copy),))
    assert found_in(home, "pagecanary") == set()


# Crashes


def die_at(event_number: int, words: dict[str, Any], command: str, home: Path) -> bool:
    """Run a command in a forked process that is killed at its n-th file operation or progress report.

    Return True if it was killed, False if it finished before.
    """
    child = os.fork()
    if child == 0:
        seen = 0

        def count(*_: object) -> None:
            nonlocal seen
            seen += 1
            if seen == event_number:
                os.kill(os.getpid(), signal.SIGKILL)

        def hook(event: str, args: tuple[Any, ...]) -> None:
            if event in ("os.rename", "os.remove", "os.chmod", "os.utime") or (
                event == "open" and str(home) in str(args[0])
            ):
                count()

        status = 1
        try:
            with opened(home) as brain:
                brain.progress = count
                sys.addaudithook(hook)
                run(brain, command, **words)
                status = 0
        finally:
            os._exit(status)
    _, result = os.waitpid(child, 0)
    assert os.WIFSIGNALED(result) or os.WEXITSTATUS(result) == 0
    return os.WIFSIGNALED(result)


@needs_cipher
@pytest.mark.parametrize("command", ["encrypt", "rekey", "decrypt"])
def test_a_command_killed_at_any_step_leaves_a_memory_that_opens(
    home: Path, tmp_path: Path, command: str
) -> None:
    words = {"key_file": str(home / "keys" / "quaid.key")}
    deaths = 0
    for number in range(1, 400):
        home = tmp_path / f"home{number}"
        home.mkdir()
        words = {} if command == "decrypt" else {"key_file": str(home / "keys" / "quaid.key")}
        if command == "encrypt":
            made(home)
        else:
            encrypted(home)
        with opened(home) as brain:
            run(brain, "backup", file=str(home / "copy.db"))
        if not die_at(number, words, command, home):
            break
        deaths += 1
        assert "pagecanary" in text_of(home), number
        if connection.cipher_header(str(home / "memory.db")) is not None and command != "encrypt":
            assert found_in(home, "pagecanary") == set(), number
        with opened(home) as brain:
            state = connection.cipher_header(str(home / "memory.db"))
            if command == "decrypt":
                if state is not None or collections.read_image_key(brain.db) is not None:
                    run(brain, "decrypt")
            elif command == "rekey" or state is None:
                run(brain, command, **words)
            else:
                run(brain, "encrypt")
        assert "pagecanary" in text_of(home), number
        if command != "decrypt":
            assert found_in(home, "pagecanary") == set(), number
    assert deaths >= 10
    assert not os.path.exists(home / "memory.db-converting")


@needs_cipher
def test_ctrl_c_while_encrypting_leaves_the_plain_memory(home: Path) -> None:
    made(home)
    before = (home / "memory.db").read_bytes()

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with opened(home) as brain:
        brain.progress = interrupt
        with pytest.raises(errors.Cancelled):
            run(brain, "encrypt", key_file=str(home / "keys" / "quaid.key"))
    assert (home / "memory.db").read_bytes()[100:] == before[100:]
    assert not (home / "memory.db-converting").exists()
    assert "pagecanary" in text_of(home)


# Keys


@needs_cipher
def test_a_wrong_key_is_an_error_and_changes_nothing(home: Path) -> None:
    key_file = Path(encrypted(home))
    before = (home / "memory.db").read_bytes()
    right = key_file.read_text()
    key_file.write_text("ab" * 32 + "\n")
    with (
        opened(home) as brain,
        pytest.raises(errors.WrongKey, match=r"key file .*quaid.key does not open it"),
    ):
        run(brain, "get", slug=["people/alice"])
    for words in (["init"], ["stats"], ["query", "who is alice"], ["put", "people/x", "-"], ["encrypt"]):
        done = quaid(home, *words, said="# X\n")
        assert (done.returncode, done.stderr.count("\n")) == (5, 1), (words, done.stderr)
        assert "another key" in done.stderr
    doctor = quaid(home, "doctor", "--quick", "--json")
    (finding,) = [check for check in json.loads(doctor.stdout)["checks"] if check["name"] == "memory"]
    assert (finding["state"], finding["remedy"], finding["further"]) == ("wrong", "", [])
    assert (home / "memory.db").read_bytes() == before
    assert {path.name for path in home.glob("memory.db*")} <= {"memory.db", "memory.db-lock"}
    key_file.write_text(right)
    assert "pagecanary" in text_of(home)


def replace_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


@needs_cipher
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.chmod(0o640), "chmod 600"),
        (lambda path: path.unlink(), "is missing"),
        (lambda path: path.write_text(""), "is empty"),
        (replace_by_pipe, "plain file"),
    ],
)
def test_a_key_file_that_cannot_be_used_is_named_in_one_line(home: Path, spoil: Any, message: str) -> None:
    spoil(Path(encrypted(home)))
    done = quaid(home, "get", "people/alice")
    assert (done.returncode, done.stderr.count("\n")) == (5, 1)
    assert message in done.stderr
    assert "quaid.key" in done.stderr


@needs_cipher
def test_key_file_is_private_and_named_in_the_config_file(home: Path) -> None:
    key_file = encrypted(home)
    assert stat.S_IMODE(os.stat(key_file).st_mode) == 0o600
    assert "key_file" in (home / "config.yaml").read_text()
    assert "pagecanary" in quaid(home, "get", "people/alice").stdout


@needs_cipher
@pytest.mark.parametrize("secret", ["0f" * 32, "five random words", "pässphrase"])
def test_environment_holds_a_key_or_a_passphrase(home: Path, secret: str) -> None:
    made(home)
    with opened(home, QUAID_KEY=secret) as brain:
        assert run(brain, "encrypt", environment=True).key == "QUAID_KEY"
    assert "pagecanary" in text_of(home, QUAID_KEY=secret)
    with opened(home, QUAID_KEY=secret + "x") as brain, pytest.raises(errors.WrongKey):
        _ = brain.db
    with opened(home) as brain, pytest.raises(errors.MissingKey):
        _ = brain.db
    with opened(home, QUAID_KEY=secret, QUAID_NEW_KEY="another one") as brain:
        run(brain, "rekey", environment=True)
    assert "pagecanary" in text_of(home, QUAID_KEY="another one")
    with opened(home, QUAID_KEY=secret) as brain, pytest.raises(errors.WrongKey):
        _ = brain.db


@needs_cipher
def test_rekey_keeps_the_old_key_for_old_copies(home: Path, tmp_path: Path) -> None:
    key_file = Path(encrypted(home))
    with opened(home) as brain:
        run(brain, "backup", file=str(tmp_path / "old.db"))
        run(brain, "backup", file=str(home / "beside.db"))
        record = run(brain, "rekey")
        assert record.backups == (str(home / "beside.db"),)
        assert len(key_file.read_text().split()) == 2
        headers = [
            connection.cipher_header(str(path))
            for path in (home / "memory.db", home / "beside.db", tmp_path / "old.db")
        ]
        assert headers[0] == headers[1] != headers[2]
    with opened(home) as brain:
        _ = brain.db
        assert run(brain, "backups verify", file=str(tmp_path / "old.db")).pages == 1


@needs_cipher
def test_keyring_of_the_system_holds_the_key(home: Path) -> None:
    made(home)
    backend = {"PYTHON_KEYRING_BACKEND": "keyrings.alt.file.PlaintextKeyring"}
    done = quaid(home, "encrypt", **backend)
    assert done.returncode == 0, done.stderr
    assert "keyring" in done.stdout
    assert "pagecanary" in quaid(home, "get", "people/alice", **backend).stdout
    assert quaid(home, "rekey", **backend).returncode == 0
    assert "pagecanary" in quaid(home, "get", "people/alice", **backend).stdout
    none = quaid(home, "get", "people/alice", PYTHON_KEYRING_BACKEND="keyring.backends.fail.Keyring")
    assert (none.returncode, none.stderr.count("\n")) == (5, 1)
    assert "no keyring" in none.stderr


@needs_cipher
def test_without_a_keyring_encrypt_names_the_other_ways_and_changes_nothing(home: Path) -> None:
    made(home)
    done = quaid(home, "encrypt", PYTHON_KEYRING_BACKEND="keyring.backends.fail.Keyring")
    assert done.returncode == 2
    assert "--key-file" in done.stderr
    assert connection.cipher_header(str(home / "memory.db")) is None


@needs_cipher
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"passphrase": True}, "needs a terminal"),
        ({"environment": True}, "QUAID_KEY"),
        ({"environment": True, "passphrase": True}, "not several"),
    ],
)
def test_a_key_that_cannot_be_made_is_refused(home: Path, words: dict[str, bool], message: str) -> None:
    made(home)
    with opened(home) as brain, pytest.raises(errors.InvalidArgument, match=message):
        run(brain, "encrypt", **words)
    assert connection.cipher_header(str(home / "memory.db")) is None


@needs_cipher
def test_encrypted_twice_and_decrypted_twice_say_what_to_do(home: Path) -> None:
    key_file = encrypted(home)
    with opened(home) as brain, pytest.raises(errors.InvalidArgument, match="quaid rekey"):
        run(brain, "encrypt", key_file=key_file)
    with opened(home) as brain:
        run(brain, "decrypt")
        for command in ("decrypt", "rekey"):
            with pytest.raises(errors.InvalidArgument, match="quaid encrypt"):
                run(brain, command)
    assert found_in(home, "pagecanary") == {"pagecanary"}


# A person at a terminal, and processes without one


def at_terminal(home: Path, words: list[str], *typed: str) -> tuple[int, str]:
    """Run a command in a terminal, and type each text when it asks."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.clear()
        os.environ.update(process_environment(home), TERM="dumb")
        os.execv(
            sys.executable,
            [sys.executable, "-P", "-m", "quaid", "--db", str(home / "memory.db"), *words],
        )
    shown = fresh = ""
    answers = list(typed)
    while True:
        if not select.select([terminal], [], [], 60)[0]:
            os.kill(child, signal.SIGKILL)
            raise AssertionError(f"no output for a minute after {shown!r}")
        try:
            data = os.read(terminal, 4096)
        except OSError:
            break
        if not data:
            break
        shown += data.decode()
        fresh += data.decode()
        if answers and fresh.endswith(": "):
            os.write(terminal, f"{answers.pop(0)}\n".encode())
            fresh = ""
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    return os.waitstatus_to_exitcode(status), shown


@needs_cipher
def test_passphrase_is_asked_for_at_a_terminal_only(home: Path) -> None:
    made(home)
    status, shown = at_terminal(home, ["encrypt", "--passphrase"], " ")
    assert (status, "is empty" in shown) == (2, True)
    status, shown = at_terminal(home, ["encrypt", "--passphrase"], "open sesame", "close sesame")
    assert (status, "differ" in shown) == (2, True)
    status, shown = at_terminal(home, ["encrypt", "--passphrase"], "open sesame", "open sesame")
    assert (status, "is encrypted now" in shown) == (0, True), shown
    assert "open sesame" not in shown
    status, shown = at_terminal(home, ["get", "people/alice"], "open sesame")
    assert (status, "pagecanary" in shown) == (0, True), shown
    status, shown = at_terminal(home, ["get", "people/alice"], "wrong")
    assert (status, "another passphrase" in shown) == (5, True), shown


@needs_cipher
def test_processes_without_a_terminal_fail_with_one_line_for_a_passphrase(home: Path) -> None:
    made(home)
    with opened(home, QUAID_KEY="open sesame") as brain:
        run(brain, "encrypt", environment=True)
    for words in (["get", "people/alice"], ["watch", "--once"], ["embed"], ["call", "memory_stats"]):
        done = quaid(home, *words)
        assert (done.returncode, done.stderr.count("\n")) == (5, 1), (words, done.stderr)
        assert "passphrase was not found" in done.stderr
    hook = quaid(home, "hook", "session-start", said='{"session_id": "1"}')
    assert "Traceback" not in hook.stderr
    served = quaid(home, "serve", said=tool_call("memory_get", slug="people/alice"))
    assert "passphrase was not found" in served.stdout + served.stderr


def tool_call(name: str, **arguments: Any) -> str:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}},
    ]
    return "".join(json.dumps(message) + "\n" for message in messages)


@needs_cipher
def test_servers_watchers_and_hooks_open_a_memory_with_a_key_file(home: Path) -> None:
    encrypted(home)
    with opened(home) as brain:
        (home / "vault").mkdir()
        run(brain, "collection add", name="vault", path=str(home / "vault"))
    served = quaid(home, "serve", said=tool_call("memory_get", slug="people/alice"))
    assert "pagecanary" in served.stdout
    for words in (["watch", "--once"], ["embed"], ["stats"]):
        done = quaid(home, *words)
        assert done.returncode == 0, (words, done.stderr)
    hook = quaid(home, "hook", "session-start", said='{"session_id": "1"}')
    assert hook.returncode == 0
    assert "encrypted" not in hook.stderr


@needs_cipher
@pytest.mark.parametrize("command", ["encrypt", "decrypt", "rekey"])
def test_a_memory_that_another_process_has_open_is_refused(home: Path, command: str) -> None:
    made(home)
    if command != "encrypt":
        with opened(home) as brain:
            run(brain, "encrypt", key_file=str(home / "keys" / "quaid.key"))
    script = (
        "import sys; from quaid.app import Brain; from quaid.config import read_settings; import os\n"
        "brain = Brain(read_settings(sys.argv[1], os.environ, '.')); brain.db.one('SELECT 1 FROM pages')\n"
        "print('open', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-P", "-c", script, str(home / "memory.db")],
        env=process_environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert other.stdout
        assert other.stdout.readline() == b"open\n"
        before = connection.cipher_header(str(home / "memory.db"))
        words = {} if command == "decrypt" else {"key_file": str(home / "keys" / "quaid.key")}
        with opened(home) as brain, pytest.raises(errors.InUse, match="daemon stop"):
            run(brain, command, **words)
        assert connection.cipher_header(str(home / "memory.db")) == before
        assert not (home / "memory.db-converting").exists()
    finally:
        other.communicate()
    assert "pagecanary" in text_of(home)


def test_a_write_to_a_file_that_was_replaced_is_refused(home: Path) -> None:
    """A process that has the old file open would lose what it writes."""
    made(home)
    with opened(home) as brain:
        _ = brain.db
        (home / "copy.db").write_bytes((home / "memory.db").read_bytes())
        os.replace(home / "copy.db", home / "memory.db")
        with pytest.raises(errors.MemoryReplaced):
            run(brain, "put", slug="people/bob", content="# Bob\n")


# Damage, restore, rebuild and migration


@needs_cipher
@pytest.mark.parametrize("page", [0, 3])
def test_damage_is_not_mistaken_for_a_wrong_key_and_doctor_finds_the_backup(home: Path, page: int) -> None:
    encrypted(home)
    with opened(home) as brain:
        run(brain, "backup")
    data = bytearray((home / "memory.db").read_bytes())
    data[page * 4096 + 2000] ^= 1
    (home / "memory.db").write_bytes(data)
    with opened(home) as brain:
        checks = run(brain, "doctor").checks
    (copy,) = (home / ".quaid" / "backups").glob("*.db")
    damaged = [check for check in checks if check.state == "wrong" and str(copy) in " ".join(check.further)]
    assert len(damaged) == 1, checks
    for name in ("memory.db", "memory.db-wal", "memory.db-shm"):
        (home / name).unlink(missing_ok=True)
    (home / "memory.db").write_bytes(copy.read_bytes())
    assert "pagecanary" in text_of(home)


@needs_cipher
def test_a_deleted_memory_is_rebuilt_with_its_key(home: Path, tmp_path: Path) -> None:
    encrypted(home)
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "carol.md").write_text("# Carol\n\nvaultcanary3 is a word\n")
    with opened(home) as brain:
        run(brain, "collection add", name="vault", path=str(folder))
        header = brain.db.cipher
    (home / "memory.db").unlink()
    with opened(home) as brain:
        hits = run(brain, "query", question="vaultcanary3")
        assert brain.db.cipher == header
        assert collections.read_image_key(brain.db) is not None
    assert "carol" in str(hits)
    assert found_in(home, "vaultcanary3") == set()
    (home / "memory.db").unlink()
    (home / "keys" / "quaid.key").unlink()
    with opened(home) as brain, pytest.raises(errors.MissingKey):
        run(brain, "query", question="vaultcanary3")
    assert not (home / "memory.db").exists()


@needs_cipher
def test_a_migration_of_an_encrypted_memory_leaves_an_encrypted_backup(home: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    make_old_memory(old / "memory.db", pages=3, version=11)
    key_file = str(home / "keys" / "quaid.key")
    key = encryption.make_key("5a" * 32)
    encryption.write_key_file(key_file, ["5a" * 32])
    source = apsw.Connection(str(old / "memory.db"), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
    source.execute("VACUUM INTO ?", (encryption.target_uri(str(home / "memory.db"), key),))
    source.close()
    (home / "config.yaml").write_text(f"key_file: {key_file}\n")
    with opened(home) as brain:
        assert "was migrated from schema 11" in brain.db.migrated
        assert connection.read_header(str(home / "memory.db")).version == storage.SCHEMA_VERSION
    (copy,) = home.glob("memory.db.backup-v11")
    assert connection.cipher_header(str(copy)) == key.header
    assert found_in(home, "old0x") == set()


# Without the package


@pytest.mark.skipif(HAS_CIPHER, reason="tests the message for an apsw that cannot encrypt")
def test_an_apsw_that_cannot_encrypt_says_what_to_install(home: Path) -> None:
    made(home)
    with opened(home) as brain, pytest.raises(errors.NoCipher, match=r"pip install .*apsw-sqlite3mc"):
        run(brain, "encrypt")
    (home / "memory.db").write_bytes(b"QMK1" + os.urandom(8188))
    with opened(home) as brain:
        with pytest.raises(errors.NoCipher):
            _ = brain.db
        (finding,) = [check for check in run(brain, "doctor", quick=True).checks if check.name == "memory"]
        assert finding.remedy == encryption.INSTALL
    assert (home / "memory.db").read_bytes().startswith(b"QMK1")
