"""Cold commands must not import heavy libraries that they do not use."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "numpy",
    "onnxruntime",
    "tokenizers",
    "starlette",
    "uvicorn",
    "asyncio",
    "mcp",
    "httpx",
    "pydantic",
    "psycopg",
}
SHOW = "import sys, atexit; atexit.register(lambda: print('LOADED', *sys.modules, file=sys.stderr))\n"


def loaded(command: list[str], folder: Path, text: str = "") -> set[str]:
    """Return the names of the top-level modules that a command has loaded when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", f"{SHOW}from quaid.cli.main import main; main({command!r})"],
        input=text,
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "QUAID_DB": str(folder / "memory.db")},
    )
    assert "Traceback" not in done.stderr, done.stderr
    return {name.split(".")[0] for name in done.stderr.rpartition("LOADED")[2].split()}


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with a page and a notebook, shared because only the loaded modules are compared."""
    folder = tmp_path_factory.mktemp("start")
    for command in (["init"], ["put", "people/ada"]):
        loaded(command, folder, "# Ada\n\nWrote the first program.")
    for command in (["notebook", "init"], ["remember", "call Ada"], ["log", "Began"]):
        loaded(command, folder)
    return folder


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["--help"],
        ["get", "people/ada"],
        ["list"],
        ["search", "first program"],
        ["put", "people/ada"],
        ["tag", "people/ada", "pioneer"],
        ["remember", "I like tea"],
        ["log", "Had tea"],
        ["notebook", "read", "lists/todos.md"],
        ["prompt"],
        ["kb", "query", "tea"],
    ],
    ids=" ".join,
)
def test_cold_commands_load_no_heavy_library(memory: Path, command: list[str]) -> None:
    assert loaded(command, memory, "# Ada\n\nNew text.") & HEAVY == set()


def test_yaml_is_loaded_only_for_front_matter(memory: Path) -> None:
    assert "ryaml" in loaded(["put", "people/ada"], memory, "---\ntitle: Ada\n---\nText")
    assert "ryaml" not in loaded(["get", "people/ada"], memory)


@pytest.mark.parametrize("command", [["kb", "query", "tea"], ["skills"], ["list", "--help"]], ids=" ".join)
def test_commands_without_a_memory_do_not_load_sqlite(memory: Path, command: list[str]) -> None:
    assert "apsw" not in loaded(command, memory)
