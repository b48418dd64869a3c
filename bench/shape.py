"""The shape of the source: modules, lines, classes, imports, and how many modules one command enters."""

import ast
import collections
import io
import os
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from pathlib import Path

from bench.table import show, verdict

SOURCE = Path(__file__).resolve().parent.parent / "src" / "quaid"
RECORD_BASES = {"NamedTuple", "TypedDict", "Protocol"}
# Runs a command and prints the modules of ours in which a function was called.
TRACE = """
import sys
sys.setrecursionlimit(20000)
entered = set()
importing = 0  # modules being imported: what they call meanwhile does not count
def trace(frame, event, _):
    global importing
    if frame.f_code.co_name == "<module>":
        importing += {"call": 1, "return": -1}.get(event, 0)
    elif event == "call" and not importing:
        entered.add(frame.f_globals.get("__name__", ""))
from quaid.cli.main import main
sys.setprofile(trace)
try:
    main(sys.argv[1:])
finally:
    sys.setprofile(None)
    print("ENTERED", *sorted(name for name in entered if name.startswith("quaid.")), file=sys.stderr)
"""
KIND = ("--summary", "black first, then ruff", "--type", "principle")
COMMANDS = (  # the command, its standard input, most modules it should enter
    (("get", "people/ada"), "", 18),
    (("put", "people/ada"), "# Ada\n\nWrote the first program, see [[people/bob]].\n", 30),
    (("query", "who wrote the first program?"), "", 38),  # also attaches the knowledge base and embeds
    (("query", "what did Ada write?"), "", 38),
    (("collection", "sync", "notes"), "", 34),
    (("kb", "remember", "Run black before ruff.", "--title", "Formatter order", *KIND), "", 30),
)


def main() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in trees}
    code = {path: _code_lines(path.read_text(encoding="utf-8")) for path in trees}
    names = {path: _module_name(path) for path in trees}
    importers = _importers(trees, names)
    classes = {(node.name, path) for path, tree in trees.items() for node in _classes(tree)}
    places = collections.Counter(name for name, _ in classes)
    records = [node for tree in trees.values() for node in ast.walk(tree) if _is_record(node)]
    figures: list[tuple[str, float, float]] = [
        ("modules", len(trees), 170),
        ("lines", sum(lines.values()), 42_000),
        ("code lines", sum(code.values()), 31_000),
        ("modules with one importer", sum(len(importers[name]) == 1 for name in names.values()), 25),
        ("modules under 60 code lines", sum(count < 60 for count in code.values()), 30),
        ("record classes", len(records), 220),
        ("class names in more than one module", sum(count > 1 for count in places.values()), 0),
        ("modules named by a verb in -ing", sum(_is_verb(path.stem) for path in trees), 0),
        ("own imports inside functions", sum(_inner_imports(tree) for tree in trees.values()), 60),
    ]
    door = _storage_calls(trees, names)
    figures += [
        ("storage functions called from outside", len(door), 150),
        ("modules that call them", len(set().union(*door.values())), 45),
    ]
    rows = [(name, f"{value:,}", verdict(value, limit)) for name, value, limit in figures]
    for (command, _, limit), count in zip(COMMANDS, _entered(), strict=True):
        rows.append((f"modules entered by {' '.join(command[:2])}", str(count), verdict(count, limit)))
    show("Shape of the source", rows, ("what", "value", "target"))


def _code_lines(text: str) -> int:
    """Count the lines that are neither blank nor comment nor docstring."""
    lines = text.splitlines()
    idle = {number for number, line in enumerate(lines, 1) if not line.strip()}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and lines[token.start[0] - 1].strip().startswith("#"):
            idle.add(token.start[0])
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            idle.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines) - len(idle)


def _module_name(path: Path) -> str:
    return ".".join(("quaid", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")


def _importers(trees: dict[Path, ast.Module], names: dict[Path, str]) -> dict[str, set[str]]:
    known = set(names.values())
    found: dict[str, set[str]] = collections.defaultdict(set)
    for path, tree in trees.items():
        for other in set(_imported(tree)) & known - {names[path]}:
            found[other].add(names[path])
    return found


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _storage_calls(trees: dict[Path, ast.Module], names: dict[Path, str]) -> dict[tuple[str, str], set[str]]:
    """Return the functions of storage that take a database or a transaction, with the outside modules using them."""
    functions = {
        (names[path], node.name)
        for path, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.args.args and node.args.args[0].arg in ("db", "tx")
    }
    found: dict[tuple[str, str], set[str]] = collections.defaultdict(set)
    for path, tree in trees.items():
        if names[path].startswith("quaid.storage"):
            continue
        nodes = list(ast.walk(tree))
        imported = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in nodes
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("quaid.storage")
            for alias in node.names
        }
        for node in nodes:
            used = None
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in imported
            ):
                used = ".".join(imported[node.value.id]), node.attr
            elif isinstance(node, ast.Name):
                used = imported.get(node.id)
            if used in functions:
                found[used].add(names[path])
    return found


def _inner_imports(tree: ast.Module) -> int:
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    inner = {id(node): node for function in functions for node in ast.walk(function)}
    return sum(
        isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "quaid"
        for node in inner.values()
    )


def _is_verb(name: str) -> bool:
    return name.endswith("ing") and name not in ("briefing", "spelling")


def _classes(tree: ast.Module) -> list[ast.ClassDef]:
    return [node for node in tree.body if isinstance(node, ast.ClassDef)]


def _is_record(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any(
        isinstance(base, ast.Name) and base.id in RECORD_BASES for base in node.bases
    )


def _entered() -> list[int]:
    """Return for each command how many of our modules it enters."""
    with tempfile.TemporaryDirectory() as home:
        environ = {**os.environ, "HOME": home, "QUAID_HANDOVER": "off", "PYTHONPATH": str(SOURCE.parent)}
        notes = Path(home, "notes")
        notes.mkdir()
        (notes / "a.md").write_text("# A\n")

        def run(words: tuple[str, ...], text: str = "") -> set[str]:
            done = subprocess.run(
                [sys.executable, "-c", TRACE, *words],
                input=text,
                env=environ,
                cwd=home,
                capture_output=True,
                text=True,
                check=False,
            )
            return set(done.stderr.rpartition("ENTERED")[2].split())

        for words in (
            ("init",),
            ("put", "people/ada"),
            ("collection", "add", "notes", str(notes)),
            ("kb", "init"),
        ):
            run(words, "# Ada\n\nWrote the first program.\n")
        (notes / "a.md").write_text("# A\n\nChanged.\n")
        return [len(run(words, text)) for words, text, _ in COMMANDS]
