"""First use: the first write creates what is missing, and every listed tool works right after connect."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests import commands
from tests.mcp.pipes import Pipes, environment

from quaid.mcp import tools
from quaid.operations import doctor

Start = Callable[..., Pipes]

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("memory_status", {}),
    ("memory_query", {"query": "Where does Ada live?"}),
    ("memory_briefing", {}),
    ("remember", {"content": "Ada prefers mail to phone calls"}),
    ("memory_put", {"slug": "people/ada", "content": "---\ntype: person\n---\n# Ada\n\nAda lives in Oslo."}),
    ("memory_get", {"slug": "people/ada"}),
    ("memory_ingest", {"content": "Ada called.", "type": "meeting", "source": "call/1"}),
    ("memory_facts", {"subject": "people/ada"}),
    ("memory_correct", {"about": "people/ada", "was": "Oslo", "now": "Ada lives in Bergen"}),
    ("memory_forget", {"slug": "people/ada", "reason": "a test"}),
]


def quaid(home: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [commands.program(), *words],
        env={**environment(), "HOME": str(home)},
        cwd=home,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_every_listed_tool_works_right_after_connect(start: Start, tmp_path: Path) -> None:
    connected = quaid(tmp_path, "connect", "claude-code")
    assert connected.returncode == 0, connected.stderr
    assert "created the memory" in connected.stderr
    entry = json.loads((tmp_path / ".claude.json").read_text())["mcpServers"]["quaid"]
    db = entry["args"][-1]
    assert db == str(tmp_path / ".quaid/memory.db")
    server = start(db, environ={"HOME": str(tmp_path)})
    server.greet()
    listed = {tool["name"] for tool in server.ask("tools/list")["result"]["tools"]}
    assert listed == {name for name, _ in CALLS}
    for name, arguments in CALLS:
        answer = server.call(name, **arguments)
        assert answer["result"]["isError"] is False, (name, answer)
    assert server.end()[0] == 0


def test_memory_that_is_missing_reads_as_empty_and_the_first_write_creates_it(
    start: Start, tmp_path: Path
) -> None:
    db = tmp_path / "new.db"
    server = start(str(db), environ={"HOME": str(tmp_path)})
    server.greet()
    status = server.record("memory_status")
    assert (status["pages"], status["path"]) == (0, str(db))
    assert "results" not in server.record("memory_query", query="Ada")
    assert server.fail("memory_get", slug="people/ada")["code"] == "page_not_found"
    assert server.ask("resources/list")["result"]["resources"][0]["uri"] == "memory://index"
    assert not db.exists()
    first = server.record("remember", content="Ada prefers mail")
    assert first["also_created"] == [f"the memory {db}", f"the notebook {tmp_path / 'notebook'}"]
    assert "also_created" not in server.record("remember", content="Bo prefers calls")
    assert db.exists()
    assert "created the memory" in server.end()[2]


def test_memory_in_a_missing_folder_is_not_created(start: Start, tmp_path: Path) -> None:
    server = start(str(tmp_path / "typo/new.db"), environ={"HOME": str(tmp_path)})
    server.greet()
    for tool, arguments in (("memory_status", {}), ("remember", {"content": "Ada prefers mail"})):
        failure = server.fail(tool, **arguments)
        assert failure["code"] == "missing_database"
        assert failure["next"].startswith("Ask the user: `quaid init ")
    assert not (tmp_path / "typo").exists()


def test_first_write_on_the_command_line_says_once_what_it_created(tmp_path: Path) -> None:
    first = quaid(tmp_path, "put", "people/ada", stdin="# Ada\n")
    assert first.returncode == 0
    assert first.stderr.count("created") == 1
    assert f"created the memory {tmp_path / '.quaid/memory.db'}" in first.stderr
    assert quaid(tmp_path, "log", "Called", "Ada").stderr.count("created the notebook") == 1
    assert "created" not in quaid(tmp_path, "remember", "Ada prefers mail").stderr
    (tmp_path / "other").mkdir()
    reading = quaid(tmp_path, "--db", str(tmp_path / "other/none.db"), "list")
    assert reading.returncode == 5
    assert os.listdir(tmp_path / "other") == []


def test_import_creates_the_memory(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/ada.md").write_text("# Ada\n")
    assert "created the memory" in quaid(tmp_path, "import", "notes").stderr


def test_tools_of_the_default_list_are_tried_by_the_doctor() -> None:
    assert set(doctor.TOOL_TRIALS) == {tool["name"] for tool in tools.list_tools("core")}
