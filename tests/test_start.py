"""Start-up is a feature: what a cold command may load is written down here."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from quaid.kb import catalog

# Modules of the standard library and of ours that cold commands do load, beyond bare Python. Whoever adds
# one measures it first (docs/decisions/001 has figures): 1 ms here is paid by every hook and shell call.
OURS = "quaid"
ALLOWED = {
    "apsw", "json", "re", "typing", "hashlib", "datetime", "collections", "functools", "contextlib", "enum",
    "types", "operator", "keyword", "reprlib", "itertools", "copyreg", "errno", "fcntl", "time", "math",
    "threading", "unicodedata", "warnings", "weakref", "heapq", "abc", "struct", "signal", "bisect", "__future__",
    "msvcrt", "stat",
}  # fmt: skip
ALWAYS_HEAVY = {"numpy", "onnxruntime", "mcp", "starlette", "rich", "asyncio", "dataclasses", "inspect", "argparse",
                "logging", "pathlib", "pydantic", "ssl", "socket", "subprocess", "shutil", "tempfile", "uuid",
                "difflib", "textwrap", "email", "http", "urllib"}  # fmt: skip
SHOW = "import sys, atexit; atexit.register(lambda: print('LOADED', *sys.modules, file=sys.stderr))\n"


def loaded(command: list[str], folder: Path, text: str = "") -> set[str]:
    """Names of the top-level modules that a command loads beyond what bare Python loads."""

    def run(code: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-c", SHOW + code], input=text, capture_output=True, text=True, cwd=folder,
            env={**os.environ, "HOME": str(folder), "QUAID_DB": str(folder / "memory.db")},
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return {name.split(".")[0] for name in done.stderr.rpartition("LOADED")[2].split()}

    return run(f"from quaid.surfaces.cli import main; main({command!r})") - run("pass")


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    for command in (["init"], ["put", "people/ada"]):
        loaded(command, tmp_path, "# Ada\n\nWrote the first program.")
    for command in (["notebook", "init"], ["remember", "call Ada"], ["log", "Began"]):
        loaded(command, tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "further"),
    [
        (["--help"], set()),
        (["get", "people/ada"], set()),
        (["list"], set()),
        (["search", "first program"], set()),
        (["put", "people/ada"], set()),
        (["tag", "people/ada", "pioneer"], set()),
        (["remember", "I like tea"], {"marshal", "ctypes", "importlib"}),
        (["log", "Had tea"], {"marshal", "ctypes", "importlib"}),
        (["notebook", "read", "lists/todos.md"], {"marshal", "importlib"}),
        (["prompt"], {"importlib"}),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_cold_command_loads_only_what_it_needs(memory: Path, command: list[str], further: set[str]) -> None:
    names = {name for name in loaded(command, memory, "# Ada\n\nNew text.") if not name.startswith("_")}
    assert names - ALLOWED - {OURS} - further == set()
    assert names & ALWAYS_HEAVY == set()


def test_front_matter_loads_the_yaml_reader_and_nothing_else_does(memory: Path) -> None:
    assert "ryaml" in loaded(["put", "people/ada"], memory, "---\ntitle: Ada\n---\nText")
    assert "ryaml" not in loaded(["get", "people/ada"], memory)


@pytest.mark.skipif(
    sys.version_info >= (3, 14), reason="annotations.py takes the names of typing there, with re"
)
@pytest.mark.parametrize(
    "command", [["get", "people/ada"], ["search", "first program"], ["prompt"], ["list"]]
)
def test_a_command_without_a_pattern_loads_no_patterns(memory: Path, command: list[str]) -> None:
    assert loaded(command, memory) & {"re", "enum", "functools", "types", "contextlib", "json"} == set()


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="annotations.py takes the names of typing there")
def test_a_question_to_a_knowledge_base_that_is_as_it_was_loads_next_to_nothing(memory: Path) -> None:
    loaded(["kb", "init"], memory)
    time.sleep(catalog.RACY_NS / 10**9)  # files that changed just now are read again
    question = ["kb", "query", "knowledge"]
    loaded(question, memory)
    names = {name for name in loaded(question, memory) if not name.startswith("_")}
    assert names == {OURS, "errno", "itertools", "zlib"}


@pytest.mark.parametrize("command", [["kb", "query", "tea"], ["skills"], ["list", "--help"]])
def test_a_command_that_opens_no_memory_does_not_load_sqlite(memory: Path, command: list[str]) -> None:
    assert "apsw" not in loaded(command, memory)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="annotations.py takes the names of typing there")
@pytest.mark.parametrize(
    "command", [["get", "people/ada"], ["search", "first program"], ["prompt"], ["list"]]
)
def test_a_cold_command_loads_neither_typing_nor_failures_of_other_rooms(
    memory: Path, command: list[str]
) -> None:
    code = (
        f"from quaid.surfaces.cli import main; main({command!r}); import sys;"
        " print('LOADED', *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True,
        env={**os.environ, "HOME": str(memory), "QUAID_DB": str(memory / "memory.db")},
    )  # fmt: skip
    names = set(done.stderr.rpartition("LOADED")[2].split())
    assert "quaid.errors" in names
    assert {name for name in names if name.startswith("quaid.failures.")} <= {"quaid.failures.notebook"}
    assert "typing" not in names
