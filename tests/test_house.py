"""The import map, and the other rules of the house that a machine can check."""

import ast
import gc
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from quaid.config import OPTIONS

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
    "http_server": set(),
    "app": {"notebook", "kb", "search", "folders", "storage", "embedding", "formats", "model", "config"},
}
MAY_IMPORT["spaces"] = {"folders", "storage", "embedding", "formats", "model"}
MAY_IMPORT["operations"] = {*MAY_IMPORT["app"], "app", "clients", "skills", "server_socket", "spaces"}
MAY_IMPORT["library"] = {"operations", "app", "config", "signatures"}
MAY_IMPORT["integrations"] = {"library", "mcp", "operations", "search"}
MAY_IMPORT["worker"] = {"operations", "app", "config", "folders", "storage"}
MAY_IMPORT["mcp"] = {"worker", "operations", "app", "config", "formats", "model", "folders"}
MAY_IMPORT["hub"] = {
    "http_server",
    "embedding",
    "operations",
    "app",
    "spaces",
    "config",
    "formats",
    "model",
    "storage",
}
MAY_IMPORT["cli"] = {
    "operations",
    "app",
    "config",
    "formats",
    "model",
    "server_socket",
    "mcp",
    "web",
    "hub",
    "http_server",
    "spaces",
}
MAY_IMPORT["web"] = {
    "worker",
    "operations",
    "app",
    "config",
    "formats",
    "model",
    "server_socket",
    "http_server",
    "mcp",
    "cli",
}
# Rooms that may not open files, look at the clock or the environment.
PURE = ("model", "formats")
IMPURE_MODULES = {"os", "io", "random", "secrets", "subprocess", "socket", "apsw", "shutil", "tempfile"}


class Module(NamedTuple):
    room: str
    path: str
    tree: ast.Module
    nodes: list[ast.AST]


@pytest.fixture(scope="module")
def modules() -> list[Module]:
    """Every module of Quaid, parsed once for all tests."""
    parsed = []
    gc.disable()  # Python 3.11 fails to parse if a traceback is logged by a collection meanwhile
    for path in sorted(Path(SRC).rglob("*.py")):
        relative = str(path.relative_to(SRC))
        tree = ast.parse(path.read_text(encoding="utf-8"))
        parsed.append(
            Module(relative.split(os.sep)[0].removesuffix(".py"), relative, tree, list(ast.walk(tree)))
        )
    gc.enable()
    return parsed


def imported(module: Module) -> Iterator[str]:
    for node in module.nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            if node.module == "quaid":
                yield from (f"quaid.{alias.name}" for alias in node.names)


def without_type_imports(module: Module) -> Module:
    """Return the module without what it imports under `if TYPE_CHECKING`."""
    types = {
        inner
        for node in module.tree.body
        if isinstance(node, ast.If) and last_name(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    return module._replace(nodes=[node for node in module.nodes if node not in types])


def last_name(node: ast.AST) -> str:
    """Return the name of a variable or an attribute, or "" for other expressions."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


SQL = re.compile(r"^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE TABLE|PRAGMA|WITH RECURSIVE|BEGIN|COMMIT)\b ")


def test_only_storage_contains_sql(modules: list[Module]) -> None:
    """No statement and no type of the SQLite library is used outside storage; transactions are only handed on.

    A hub has a database of its own.
    """
    wrong = []
    for module in modules:
        if module.room in ("storage", "hub"):
            continue
        wrong += [module.path for name in imported(module) if name.split(".")[0] in ("apsw", "sqlite3")]
        for node in module.nodes:
            statement = (
                isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value)
            )
            used = isinstance(node, ast.Attribute) and last_name(node.value) in ("tx", "_tx")
            raw = (
                isinstance(node, ast.Attribute)
                and node.attr == "connection"
                and last_name(node.value).endswith("db")
            )
            if statement or used or raw:
                wrong.append(f"{module.path}:{getattr(node, 'lineno', 0)}")
    assert not wrong


def test_imports_go_only_to_the_right(modules: list[Module]) -> None:
    wrong = []
    for module in modules:
        if module.room in ("__init__", "__main__"):
            continue
        allowed = MAY_IMPORT[module.room] | {module.room, "errors"}
        if (
            module.path == "cli/render.py"
        ):  # each renderer names the type of its record, and imports nothing for it
            module = without_type_imports(module)
        for name in imported(module):
            parts = name.split(".")
            if (
                parts[0] == "quaid"
                and len(parts) > 1
                and parts[1] not in allowed
                and parts[1] != "__version__"
            ):
                wrong.append(f"{module.path} imports {name}")
    assert wrong == []


def test_the_old_sqlite_of_the_standard_library_is_never_used(modules: list[Module]) -> None:
    assert [module.path for module in modules if "sqlite3" in set(imported(module))] == []


def test_pure_packages_import_nothing_with_side_effects(modules: list[Module]) -> None:
    wrong = [
        f"{module.path}: {name}"
        for module in modules
        if module.room in PURE
        for name in imported(module)
        if name.split(".")[0] in IMPURE_MODULES
    ]
    wrong += [
        f"{module.path}: open()"
        for module in modules
        if module.room in PURE
        for node in module.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open"
    ]
    wrong += [
        f"{module.path}: time.{node.attr}"
        for module in modules
        if module.room in PURE
        for node in module.nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "time"
        and node.attr not in ("gmtime", "strftime")
    ]
    assert wrong == []


def test_only_the_interfaces_print(modules: list[Module]) -> None:
    wrong = [
        module.path
        for module in modules
        if module.room not in ("cli", "mcp", "web")
        for node in module.nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert wrong == []


def test_every_module_says_what_it_is(modules: list[Module]) -> None:
    assert [module.path for module in modules if not ast.get_docstring(module.tree)] == []


def test_every_table_is_marked_kept_or_derived() -> None:
    with open(os.path.join(SRC, "storage", "schema.sql"), encoding="utf-8") as file:
        sql = file.read()
    tables = re.findall(r"^CREATE (?:VIRTUAL )?TABLE (?:IF NOT EXISTS )?(\w+)", sql, re.M)
    marked = re.findall(
        r"^-- (?:kept|derived): .+\nCREATE (?:VIRTUAL )?TABLE (?:IF NOT EXISTS )?(\w+)", sql, re.M
    )
    assert len(tables) > 20
    assert tables == marked


HISTORY = ("log.md", "CHANGELOG.md")
"""Pages that may name modules of former versions."""


def exists(name: str) -> bool:
    """Return True if src/quaid has a path such as model/page.py, or a name such as model.page.build_page."""
    if "/" in name:
        return os.path.exists(os.path.join(SRC, name))
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        path = Path(SRC, *parts[:end])
        if path.with_suffix(".py").exists():
            text = path.with_suffix(".py").read_text(encoding="utf-8")
            return all(re.search(rf"\b{part}\b", text) for part in parts[end:])
    return path.is_dir() and len(parts) == 1


def test_modules_named_in_the_docs_exist() -> None:
    root = Path(SRC).parents[1]
    rooms = "|".join(sorted(MAY_IMPORT))
    path, dotted = r"/[a-z_/]+\.[a-z]+", r"(?:\.(?!(?:py|md|onnx)`)[a-z_]+)+"
    name = re.compile(rf"`(?:src/quaid/|quaid\.)?((?:{rooms})(?:{path}|{dotted}))`")
    missing = [
        f"{page.name}: {match[1]}"
        for page in [*root.glob("*.md"), *root.glob("docs/*.md")]
        if page.name not in HISTORY
        for match in name.finditer(page.read_text(encoding="utf-8"))
        if match[1] not in OPTIONS and not exists(match[1])
    ]
    assert missing == []
