"""The launcher with a small folder behind it instead of Python.

What it unpacks is a shell script in the place of the interpreter, a word that the script says, and some weight.
"""

import importlib.util
import os
import random
import subprocess
from pathlib import Path

import pytest

BINARY = Path(__file__).parent.parent.parent / "delivery" / "binary.py"
COMPILER = os.environ.get("CC", "cc")
SCRIPT = """#!/bin/sh
read -r word < "${0%/bin/python}/lib/deep/er/word"
echo "$word $3 $5 $(umask)"
"""
SAID = "whole quaid hello 0022\n"


def build(work: Path) -> Path:
    """The program; beside it, as `box`, what is packed behind it."""
    spec = importlib.util.spec_from_file_location("quaid_delivery_binary", BINARY)
    assert spec is not None
    assert spec.loader is not None
    binary = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(binary)
    box = work / "box"
    (box / "bin").mkdir(parents=True)
    (box / "bin" / "python").write_text(SCRIPT)
    (box / "bin" / "python").chmod(0o755)
    (box / "start.pyc").write_bytes(b"")
    (box / "lib" / "deep" / "er").mkdir(parents=True)
    (box / "lib" / "deep" / "er" / "word").write_text("whole\n")
    chance = random.Random(1)
    for number in range(30):
        (box / "lib" / "deep" / f"weight-{number}").write_bytes(chance.randbytes(100_000))
    try:
        launcher = binary.launcher(COMPILER, str(work))
    except SystemExit as failed:
        pytest.skip(str(failed))
    binary.pack(str(box), launcher, str(work / "quaid"))
    return work / "quaid"


def start(program: Path, home: Path, mask: int = 0o022, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, "hello"],
        env={"HOME": str(home), **environ},
        umask=mask,
        capture_output=True,
        text=True,
        timeout=120,
    )


def works(program: Path, home: Path, **environ: str) -> str:
    """That it says its word; what it complained of."""
    done = start(program, home, 0o022, **environ)
    assert (done.returncode, done.stdout) == (0, SAID), done.stderr
    return done.stderr


def box_of(home: Path) -> Path:
    """The only thing in the cache."""
    [box] = (home / ".cache" / "quaid").iterdir()
    return box


def content(box: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(box)): path.read_bytes() if path.is_file() else None
        for path in box.rglob("*")
        if path.name != ".seal"
    }
