"""The import map, and the other rules of the house that a machine can check."""

import ast
import gc
import os
import re
from collections.abc import Iterator

import pytest

SRC = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src", "quaid")

# Each room may import itself and these. Everything may import errors.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "model": set(),
    "formats": {"model"},
    "storage": {"model"},
    "embedding": {"storage", "model"},
    "skills": {"storage"},  # only to write files
    "search": {"storage", "embedding", "formats", "model"},
    "folders": {"storage", "embedding", "formats", "model"},
    "config": {"formats"},
    "notebook": {"search", "folders", "storage", "embedding", "formats", "model"},
    "kb": {"search", "folders", "storage", "embedding", "formats", "model"},
    "clients": {"storage", "formats"},
    "server_socket": set(),
    "app": {"notebook", "kb", "search", "folders", "storage", "embedding", "formats", "model", "config"},
}
MAY_IMPORT["operations"] = {*MAY_IMPORT["app"], "app", "clients", "skills", "server_socket"}
MAY_IMPORT["worker"] = {"operations", "app", "config", "folders", "storage"}
MAY_IMPORT["mcp"] = {"worker", "operations", "app", "config", "formats", "model", "folders"}
MAY_IMPORT["cli"] = {"operations", "app", "config", "formats", "model", "server_socket", "mcp", "web"}
MAY_IMPORT["web"] = {
    "worker",
    "operations",
    "app",
    "config",
    "formats",
    "model",
    "server_socket",
    "mcp",
    "cli",
}
# Rooms that may not open files, look at the clock or the environment.
PURE = ("model", "formats")
IMPURE_MODULES = {"os", "io", "random", "secrets", "subprocess", "socket", "apsw", "shutil", "tempfile"}


@pytest.fixture(autouse=True)
def _nothing_is_collected_while_parsing() -> Iterator[None]:
    """Python 3.11 counts the depth of a tree once for all: a traceback that is logged in between makes it fail."""
    gc.disable()
    yield
    gc.enable()


def modules() -> Iterator[tuple[str, str, ast.Module]]:
    for folder, _, names in os.walk(SRC):
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                relative = os.path.relpath(path, SRC)
                room = relative.split(os.sep)[0].removesuffix(".py")
                with open(path, encoding="utf-8") as file:
                    yield room, relative, ast.parse(file.read())


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            if node.module == "quaid":
                yield from (f"quaid.{alias.name}" for alias in node.names)


SQL = re.compile(r"^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE TABLE|PRAGMA|WITH RECURSIVE|BEGIN|COMMIT)\b ")


def test_only_storage_contains_sql() -> None:
    """No statement and no type of the SQLite library is used outside storage; transactions are only handed on."""
    wrong = []
    for room, path, tree in modules():
        if room == "storage":
            continue
        wrong += [path for name in imported(tree) if name.split(".")[0] in ("apsw", "sqlite3")]
        for node in ast.walk(tree):
            statement = (
                isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value)
            )
            used = isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("tx", "self.tx", "_tx")
            raw = isinstance(node, ast.Attribute) and ast.unparse(node).endswith("db.connection")
            if statement or used or raw:
                wrong.append(f"{path}:{getattr(node, 'lineno', 0)}")
    assert not wrong


def test_imports_go_only_to_the_right() -> None:
    wrong = []
    for room, path, tree in modules():
        if room in ("__init__", "__main__"):
            continue
        allowed = MAY_IMPORT[room] | {room, "errors"}
        for name in imported(tree):
            parts = name.split(".")
            if (
                parts[0] == "quaid"
                and len(parts) > 1
                and parts[1] not in allowed
                and parts[1] != "__version__"
            ):
                wrong.append(f"{path} imports {name}")
    assert wrong == []


def test_only_storage_uses_the_database() -> None:
    wrong = [
        path
        for room, path, tree in modules()
        if room != "storage"
        for name in imported(tree)
        if name.split(".")[0] == "apsw"
    ]
    assert wrong == []


def test_the_old_sqlite_of_the_standard_library_is_never_used() -> None:
    assert [path for _, path, tree in modules() if "sqlite3" in set(imported(tree))] == []


def test_pure_packages_import_nothing_with_side_effects() -> None:
    wrong = [
        f"{path}: {name}"
        for room, path, tree in modules()
        if room in PURE
        for name in imported(tree)
        if name.split(".")[0] in IMPURE_MODULES
    ]
    wrong += [
        f"{path}: open()"
        for room, path, tree in modules()
        if room in PURE
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"
    ]
    wrong += [
        f"{path}: time.{node.attr}"
        for room, path, tree in modules()
        if room in PURE
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "time"
        and node.attr not in ("gmtime", "strftime")
    ]
    assert wrong == []


def test_only_the_interfaces_print() -> None:
    wrong = [
        path
        for room, path, tree in modules()
        if room not in ("cli", "mcp", "web")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert wrong == []


def test_every_module_says_what_it_is() -> None:
    assert [path for _, path, tree in modules() if not ast.get_docstring(tree)] == []


def test_every_table_is_marked_kept_or_derived() -> None:
    with open(os.path.join(SRC, "storage", "schema.sql"), encoding="utf-8") as file:
        sql = file.read()
    tables = re.findall(r"^CREATE (?:VIRTUAL )?TABLE (?:IF NOT EXISTS )?(\w+)", sql, re.M)
    marked = re.findall(
        r"^-- (?:kept|derived): .+\nCREATE (?:VIRTUAL )?TABLE (?:IF NOT EXISTS )?(\w+)", sql, re.M
    )
    assert len(tables) > 20
    assert tables == marked
