"""What all adapters share. These tests need no framework, except those of the page's examples."""

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import quaid
from quaid import errors, integrations
from quaid.app import Brain
from quaid.config import Settings
from quaid.mcp.tools import list_tools

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(
    r"<!-- examples/integrations/(\w+)\.py -->\n```python\n(.*?)^```\n\n```text\n(.*?)^```",
    (ROOT / "docs" / "integrations.md").read_text(),
    re.M | re.S,
)
FRAMEWORKS = {
    "openai_agents": ("agents", "openai-agents"),
    "langgraph": ("langgraph", "langgraph"),
    "llama_index": ("llama_index", "llama-index"),
    "claude_agent": ("claude_agent_sdk", "claude-agent"),
    "pydantic_ai": ("pydantic_ai", "pydantic-ai"),
}


@pytest.mark.parametrize("module", FRAMEWORKS)
def test_without_its_package_an_adapter_names_the_command_that_installs_it(module: str) -> None:
    package, extra = FRAMEWORKS[module]
    code = f"""
import sys
sys.modules[{package!r}] = None
try:
    import quaid.integrations.{module}
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("MissingFramework ")
    assert f"`pip install 'quaid-memory[{extra}]'`" in done.stdout
    assert f"\n{extra} = [" in (ROOT / "pyproject.toml").read_text()


def test_every_adapter_has_a_section_with_an_example() -> None:
    files = {path.stem: path.read_text() for path in (ROOT / "examples" / "integrations").glob("*.py")}
    assert {name: code for name, code, _ in EXAMPLES} == files
    for module in FRAMEWORKS:
        assert any(f"from quaid.integrations.{module} import" in code for code in files.values()), module


@pytest.mark.parametrize(("name", "code", "output"), EXAMPLES, ids=[name for name, _, _ in EXAMPLES])
def test_examples_of_the_page_print_what_it_shows(name: str, code: str, output: str) -> None:
    environ = {key: value for key, value in os.environ.items() if key != "QUAID_BACKGROUND_EMBEDDING"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ)
    if "ModuleNotFoundError" in done.stderr:
        pytest.skip(f"{done.stderr.splitlines()[-1]}; `sh .ci/integrations` installs the frameworks")
    assert (done.stdout, done.returncode) == (output, 0), done.stderr


def test_tools_are_those_of_mcp_and_answer_as_over_mcp(memory: quaid.Memory) -> None:
    assert integrations.list_tools(memory, "core") == list_tools("core")
    memory.put("people/alice", "# Alice\n\nShe lives in Ostrava.")
    text, failed = asyncio.run(integrations.call_tool(memory, "memory_get", {"slug": "people/alice"}))
    assert (json.loads(text)["trust"], json.loads(text)["slug"], failed) == ("data", "people/alice", False)
    text, failed = asyncio.run(
        integrations.call_tool(memory, "memory_put", {"slug": "people/alice", "content": "# B"})
    )
    assert (json.loads(text)["code"], failed) == ("version_conflict", True)
    assert "content_hash" in json.loads(text)["next"]
    with pytest.raises(errors.UnknownTool):
        asyncio.run(integrations.call_tool(memory, "memory_fly", {}))


def test_what_tools_write_is_recorded_as_written_by_the_agent(memory: quaid.Memory) -> None:
    asyncio.run(integrations.call_tool(memory, "memory_put", {"slug": "people/alice", "content": "# Alice"}))
    with quaid.open(memory.location) as owner:
        assert [version.author for version in owner.history("people/alice").versions] == ["planner"]
        assert any(call.client == "planner" for session in owner.activity().sessions for call in [session])


def test_tools_need_the_name_of_an_agent_or_a_memory_for_reading(home: Path, memory: quaid.Memory) -> None:
    with quaid.open(home / "memory.db") as owner, pytest.raises(errors.InvalidArgument, match="agent=NAME"):
        integrations.list_tools(owner, "core")
    with quaid.open(home / "memory.db", read_only=True) as reader:
        names = {entry["name"] for entry in integrations.list_tools(reader, "core")}
        assert "memory_query" in names
        assert "memory_put" not in names
        text, failed = asyncio.run(
            integrations.call_tool(reader, "memory_put", {"slug": "a", "content": "# A"})
        )
        assert (json.loads(text)["code"], failed) == ("not_allowed", True)


def test_a_call_that_waits_leaves_the_loop_free_and_its_task_can_be_cancelled(
    memory: quaid.Memory, settings: Settings
) -> None:
    put = {"slug": "people/alice", "content": "# Alice"}

    async def work() -> int:
        with Brain(settings) as other, other.db.lock.held():
            task = asyncio.create_task(integrations.call_tool(memory, "memory_put", put))
            ticks, end = 0, time.monotonic() + 0.3
            while time.monotonic() < end:
                await asyncio.sleep(0.01)
                ticks += 1
            assert not task.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        return ticks

    assert asyncio.run(work()) >= 5
