"""The MCP Inspector's command line against our server."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.pipes import PATIENCE, ROOT, command, content_of

from quaid.operations import dispatch, index

FOLDER = os.path.join(ROOT, ".cache", "inspector")
MODULES = os.path.join(FOLDER, "node_modules")
NODE = os.path.join(MODULES, ".bin", "node")
INSPECTOR = os.path.join(
    MODULES, "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js"
)

pytestmark = pytest.mark.skipif(
    not os.path.exists(os.path.join(FOLDER, "installed")),
    reason="the MCP Inspector is not installed; .ci/inspector installs it",
)


TOOL_FAILED = 5
"""The Inspector's exit status when a tool's result is an error."""


def inspect(db: str, home: Path, *words: str, status: int = 0) -> Any:
    """What the Inspector prints about one method of our server."""
    done = subprocess.run(
        [NODE, INSPECTOR, "--cli", *command(db), "--method", *words],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={**os.environ, "HOME": str(home)},
    )
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads(done.stdout) if status == 0 else done.stdout + done.stderr


def test_inspector_accepts_the_core_tools(db: str, tmp_path: Path) -> None:
    listed = inspect(db, tmp_path, "tools/list", "--strict")["tools"]
    assert [item["name"] for item in listed] == [
        name for name in index.TOOLS if dispatch.find_tool(name).core
    ]


def test_inspector_calls_a_tool(db: str, tmp_path: Path) -> None:
    result = inspect(
        db, tmp_path, "tools/call", "--tool-name", "memory_get", "--tool-arg", "slug=people/alice"
    )
    assert content_of(result)["title"] == "Alice Berg"


def test_inspector_shows_our_error_message(db: str, tmp_path: Path) -> None:
    words = ["tools/call", "--tool-name", "memory_get", "--tool-arg", "slug=people/alise"]
    assert "There is no page people/alise" in inspect(db, tmp_path, *words, status=TOOL_FAILED)


def test_inspector_lists_and_reads_resources(db: str, tmp_path: Path) -> None:
    listed = inspect(db, tmp_path, "resources/list")["resources"]
    assert {"memory://index", "memory://pages/people/alice"} <= {item["uri"] for item in listed}
    (template,) = inspect(db, tmp_path, "resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == "memory://pages/{slug}"
    (page,) = inspect(db, tmp_path, "resources/read", "--uri", "memory://pages/people/alice")["contents"]
    assert "She prefers short calls." in page["text"]


def test_inspector_lists_and_gets_prompts(db: str, tmp_path: Path) -> None:
    listed = inspect(db, tmp_path, "prompts/list")["prompts"]
    assert [item["name"] for item in listed] == ["memory_briefing", "memory_ingest_meeting"]
    words = ["prompts/get", "--prompt-name", "memory_ingest_meeting", "--prompt-args", "date=2026-04-25"]
    assert "2026-04-25" in inspect(db, tmp_path, *words)["messages"][0]["content"]["text"]
