"""A fresh memory, and Python scripts that use one as other processes do."""

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quaid.storage.sqlite.connection import Database

SRC = Path(__file__).resolve().parents[2] / "src"
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


@pytest.fixture
def db(path: str, empty_memory: Path) -> Iterator[Database]:
    shutil.copy(empty_memory, path)
    with Database.open(path, "2026-04-25T12:00:00Z") as database:
        yield database


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a script as a process of its own; its arguments are in sys.argv[1:]."""
    started: list[subprocess.Popen[str]] = []

    def run(script: str, *arguments: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(SRC)},
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def output(start: Start) -> Callable[..., str]:
    """Run a script to its end and return what it printed."""

    def run(script: str, *arguments: str) -> str:
        out, errors = start(script, *arguments).communicate(timeout=60)
        assert errors == ""
        return out

    return run


@pytest.fixture
def v5(path: str) -> str:
    """A memory of schema 5."""
    import apsw

    connection = apsw.Connection(path)
    connection.execute((Path(__file__).parent / "fixtures" / "v5.sql").read_text(encoding="utf-8"))
    connection.close()
    return path


@pytest.fixture
def v8(path: str) -> str:
    """A memory of schema 8, with a page, two of its versions and a fact."""
    import apsw

    connection = apsw.Connection(path)
    connection.execute((Path(__file__).parent / "fixtures" / "v8.sql").read_text(encoding="utf-8"))
    connection.execute(
        "INSERT INTO collections (id, name, is_write_target, created_at, updated_at)"
        " VALUES (1, 'default', 1, '', '');"
        "INSERT INTO pages (id, slug, uuid, type, wing, title, version, created_at, updated_at, truth_updated_at,"
        " timeline_updated_at, compiled_truth) VALUES (1, 'people/ada', 'u1', 'person', 'people', 'Ada', 2,"
        " '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', '2026-01-02T00:00:00Z', '2026-01-01T00:00:00Z',"
        " 'Writes notes.');"
        "INSERT INTO raw_imports (page_id, page_version, import_id, is_active, content_hash, file_path, created_at,"
        " raw_bytes) VALUES (1, 1, 'edit-x', 0, 'h', 'people/ada.md', '2026-01-02T00:00:00Z', x'4164610a');"
        "INSERT INTO assertions (page_id, subject, subject_key, predicate, object, created_at)"
        " VALUES (1, 'Ada', 'ada', 'lives_in', 'London', '2026-01-01T00:00:00Z')"
    )
    connection.pragma("journal_mode", "WAL")
    connection.close()
    return path
