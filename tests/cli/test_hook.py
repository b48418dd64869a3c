"""`quaid hook` as Claude Code runs it: a process, an event on standard input, an answer on standard output."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests import commands

from quaid.cli import hook
from quaid.cli.main import main

# Events with the fields that the client's documentation shows.
COMMON = {"session_id": "00893aaf-19fa-41d2-8238-13269b9b3ca0", "permission_mode": "default"}
EVENTS: dict[str, dict[str, Any]] = {
    "session-start": {"hook_event_name": "SessionStart", "source": "startup", "model": "claude-opus-5"},
    "user-prompt": {"hook_event_name": "UserPromptSubmit", "prompt": "What is the ferry's number?"},
    "pre-compact": {"hook_event_name": "PreCompact", "trigger": "auto", "custom_instructions": ""},
    "stop": {"hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": "Done."},
}


class Answered(NamedTuple):
    status: int
    answer: Any
    err: str


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


# The same command, which leaves nothing out because the machine is slow or busy.
PATIENT = "from quaid.cli import hook\nhook.CPU_SECONDS, hook.WALL_SECONDS = 60.0, {wall}"


class Client:
    wall = 60.0

    def __init__(self, folder: Path, transcript: Path) -> None:
        self.folder, self.transcript = folder, transcript
        self.environ = {**os.environ, "HOME": str(folder), "QUAID_DB": str(folder / "memory.db")}
        self.environ.pop("CLAUDE_PROJECT_DIR", None)

    def run(self, name: str, data: bytes | None = None, **changed: Any) -> Answered:
        event = {
            **COMMON,
            "transcript_path": str(self.transcript),
            "cwd": str(self.folder),
            **EVENTS.get(name.partition(" ")[0], {}),
        }
        done = subprocess.run(
            [commands.program(PATIENT.format(wall=self.wall)), "hook", *name.split()],
            input=json.dumps({**event, **changed}).encode() if data is None else data,
            capture_output=True,
            env=self.environ,
            cwd=self.folder,
            timeout=120,
        )
        return Answered(done.returncode, json.loads(done.stdout or b"null"), done.stderr.decode())

    def quaid(self, *words: str, text: str = "") -> str:
        done = subprocess.run(
            [commands.program(), *words],
            input=text, capture_output=True, text=True, env=self.environ, cwd=self.folder,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def client(tmp_path: Path, transcript: Path) -> Client:
    return Client(tmp_path, transcript)


def answer_of(tokens: int) -> bytes:
    usage = {"input_tokens": 10, "cache_read_input_tokens": tokens, "output_tokens": 20}
    return json.dumps({"type": "assistant", "message": {"usage": usage}}).encode() + b"\n"


@pytest.mark.parametrize("name", EVENTS)
def test_without_a_memory_the_response_is_empty_and_no_file_is_created(client: Client, name: str) -> None:
    done = client.run(name)
    assert done.status == 0
    assert done.answer == ({"systemMessage": hook.PRE_COMPACT_MESSAGE} if name == "pre-compact" else {})
    assert done.err == ""
    assert not (client.folder / "memory.db").exists()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe", b"null", b"[" * 50_000])
@pytest.mark.parametrize("name", EVENTS)
def test_bad_input_gets_an_empty_response(client: Client, name: str, data: bytes) -> None:
    done = client.run(name, data)
    assert (done.status, done.answer) == (0, {})
    assert done.err.startswith("quaid: hook: ")
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    "name",
    [
        "",
        "nonsense",
        "stop --client",
        "session-start --client nonsense",
        "stop --db",
        "stop --db missing/x.db",
        "stop --config missing.yaml",
    ],
)
def test_a_wrong_call_never_stops_a_session(client: Client, name: str) -> None:
    assert client.run(name).status == 0


def test_a_damaged_memory_is_reported_and_the_session_goes_on(client: Client) -> None:
    (client.folder / "memory.db").write_bytes(b"not a database at all" * 500)
    done = client.run("session-start")
    assert (done.status, done.answer) == (0, {})


def test_the_flush_is_asked_for_once_when_the_context_is_three_quarters_full(client: Client) -> None:
    client.transcript.write_bytes(answer_of(140_000))
    assert client.run("user-prompt").answer == {}
    client.transcript.write_bytes(answer_of(151_000))
    output = client.run("user-prompt").answer["hookSpecificOutput"]
    assert output == {"hookEventName": "UserPromptSubmit", "additionalContext": hook.FLUSH_PROMPT}
    assert client.run("user-prompt").answer == {}
    assert client.run("user-prompt", session_id="another").answer != {}
    client.transcript.write_bytes(answer_of(30_000))  # it was compacted
    assert client.run("user-prompt").answer == {}
    client.transcript.write_bytes(answer_of(160_000))
    assert client.run("user-prompt").answer != {}


def test_the_context_window_is_a_setting(client: Client) -> None:
    client.transcript.write_bytes(answer_of(20_000))
    (client.folder / "config.yaml").write_text("hooks:\n  contextTokens: 32000\n  flushAt: 0.5\n")
    assert client.run("user-prompt").answer != {}


def test_a_session_that_was_compacted_is_asked_to_write_from_its_summary(client: Client) -> None:
    client.run("pre-compact")
    output = client.run("session-start", source="compact").answer["hookSpecificOutput"]
    assert output["additionalContext"].startswith(hook.COMPACTED_PROMPT)
    assert client.run("session-start", source="compact").answer == {}  # once for each compaction
    client.run("pre-compact")
    assert client.run("session-start", source="compact").answer != {}
    assert client.run("session-start", source="resume").answer == {}


def test_a_session_begins_with_what_the_notebook_says(client: Client) -> None:
    client.quaid("init")
    client.quaid("notebook", "init", str(client.folder / "notebook"))
    (client.folder / "notebook" / "reference" / "contacts.md").write_text(
        "# Contacts\n\n## Sarah Chen\n- Phone: 555-1234\n", encoding="utf-8"
    )
    output = client.run("session-start").answer["hookSpecificOutput"]
    assert output["hookEventName"] == "SessionStart"
    assert "555-1234" in output["additionalContext"]


def test_a_session_begins_with_as_much_as_the_client_takes(client: Client) -> None:
    client.quaid("init")
    client.quaid("notebook", "init", str(client.folder / "notebook"))
    for number in range(6):
        path = client.folder / f"notebook/reference/f{number}.md"
        path.write_text(f"# File {number}\n\n" + "many words here\n" * 5_000)

    def told(event: str, **changed: Any) -> str:
        return str(client.run(event, **changed).answer["hookSpecificOutput"]["additionalContext"])

    anywhere = told("session-start")
    assert 30_000 < len(anywhere) <= 32_000
    known = told("session-start --client claude-code")
    assert 8_800 < len(known) <= 10_000
    for text in (anywhere, known):
        assert all(f"# File {number}\n" in text for number in range(6))
    client.environ["CLAUDE_PROJECT_DIR"] = str(client.folder)  # a hook from before --client was written
    assert told("session-start") == known
    assert told("session-start --client cursor") == anywhere
    client.run("pre-compact")
    assert len(told("session-start", source="compact")) <= 10_000


def test_a_session_begins_with_the_line_of_the_knowledge_base(client: Client) -> None:
    client.quaid("kb", "init")
    assert client.run("session-start").answer == {}
    (client.folder / ".local/share/ai-kb/loose.org").write_text("Not committed.\n")
    context = client.run("session-start").answer["hookSpecificOutput"]["additionalContext"]
    assert context == "ai-kb: 1 file not committed: `ai-kb commit`"


def test_a_late_knowledge_base_does_not_hold_back_the_rest(client: Client) -> None:
    client.quaid("init")
    client.quaid("notebook", "init", str(client.folder / "notebook"))
    (client.folder / "notebook/reference/contacts.md").write_text("# Contacts\n\nSarah: 555-1234\n")
    client.quaid("kb", "init")
    slow = client.folder / "bin"
    slow.mkdir()
    (slow / "git").write_text("#!/bin/sh\nexec sleep 30\n")
    (slow / "git").chmod(0o755)
    client.environ["PATH"] = f"{slow}{os.pathsep}{client.environ['PATH']}"
    client.wall = 5.0
    done = client.run("session-start")
    assert "555-1234" in done.answer["hookSpecificOutput"]["additionalContext"]
    assert done.err == "quaid: hook: session-start took too long; the rest was left out\n"


def test_a_reminder_at_the_end_is_off_unless_it_is_wanted(client: Client) -> None:
    client.transcript.write_bytes(b'{"type":"user"}\n' * 5_000)
    assert client.run("stop").answer == {}
    client.environ["QUAID_HOOKS_STOP_REMINDER"] = "true"
    assert client.run("stop", stop_hook_active=True).answer == {}
    assert client.run("stop").answer == {"decision": "block", "reason": hook.STOP_PROMPT}
    assert client.run("stop").answer == {}
    with open(client.transcript, "ab") as file:
        file.write(b'{"message":{"content":[{"type":"tool_use","name":"mcp__quaid__daily_log"}]}}\n')
    assert client.run("stop", session_id="another").answer == {}


def test_a_client_that_never_ends_its_input_is_not_waited_for(client: Client) -> None:
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "quaid", "hook", "stop"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=client.environ,
    ) as process:  # fmt: skip
        assert process.wait(timeout=60) == 0
        assert process.stdout
        assert process.stdout.read() == b"{}\n"
    assert time.monotonic() - began < 30


def test_a_hook_loads_neither_numpy_nor_models(client: Client) -> None:
    client.quaid("init")
    code = (
        "import sys, atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "from quaid.cli.main import main; main(['hook', 'session-start'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"{}", capture_output=True, env=client.environ, cwd=client.folder
    )
    loaded = set(done.stderr.decode().split())
    assert not loaded & {"numpy", "onnxruntime", "tokenizers", "asyncio", "logging", "ryaml", "watchfiles"}


def test_old_sessions_are_forgotten(tmp_path: Path) -> None:
    folder = tmp_path / "hooks"
    folder.mkdir()
    for number in range(hook.SESSIONS_KEPT + 1):
        (folder / f"{number:04}.flushed").touch()
        os.utime(folder / f"{number:04}.flushed", (number, number))
    hook._prune_marks(str(folder))
    left = sorted(path.name for path in folder.iterdir())
    assert len(left) == hook.SESSIONS_KEPT // 2
    assert left[-1] == f"{hook.SESSIONS_KEPT:04}.flushed"


def test_help_on_hooks_is_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hook", "--help"]) == 0
    assert "session-start" in capsys.readouterr().out
