"""Every option that a message of ours names is one that the help of its command lists."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import quaid
from quaid.cli import parser
from quaid.cli.commands import COMMANDS
from quaid.operations import index

ROOT = Path(quaid.__file__).parent
HELP = (parser.OPTIONS_HELP, parser.KB_OPTIONS_HELP)  # the help itself
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
OURS = re.compile(r"\b(quaid|ai-kb)\b((?:\s+(?:\{\}|[^\s`;,()]+))*)")
# Other programs, and commands of which only the end is a constant.
OTHERS = re.compile(
    r"\b(?:git|grep|pip|pipx|uv|npx|systemctl|launchctl|emacs|python|optimum-cli)\b[^`;]*|`\{\} [^`]*"
    r"|\b(?:en|dis)able --now"  # of systemctl
)


@cache
def flags_of(command: str) -> frozenset[str]:
    """The options that the help of a command lists."""
    lines = parser.help_page(command).partition("\nExamples\n")[0].splitlines()
    listed = [line for line in lines if line.startswith(("  --", "Every command"))]
    return frozenset(FLAG.findall("\n".join(listed)))


@cache
def flags_near(room: str) -> frozenset[str]:
    """The options that a message may name without a command: those of the commands which its module makes."""
    made = [name for name, (key, _) in index.COMMANDS.items() if key.partition(".")[0] == room]
    every = made or [*index.COMMANDS, *(command for command in COMMANDS if not command.startswith("-"))]
    top = () if made else FLAG.findall(parser.help_overview())
    return frozenset().union(*map(flags_of, every), top)


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The messages of a module: its strings with a space in them, `{}` for what is filled in, and its help."""
    skipped: set[int] = set()
    nodes = [*ast.walk(tree)]
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(inner) for inner in node.values}
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and not getattr(node, "decorator_list", []):
                skipped.add(id(first.value))  # for who reads the source
    for node in nodes:
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [str(value.value) if isinstance(value, ast.Constant) else "{}" for value in node.values]
            text = "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        if " " in text.strip() and "--" in text and not text.lstrip().startswith("--"):
            yield node.lineno, text


def command_of(words: list[str]) -> str | None:
    known = {*index.COMMANDS, *COMMANDS}
    return next((name for end in (3, 2, 1) if (name := " ".join(words[:end])) in known), None)


def wrong_flags(text: str, room: str = "") -> Iterator[str]:
    text = OTHERS.sub("", re.sub(r"\s+", " ", text))
    for program, typed in OURS.findall(text):
        words = re.sub(r"--(?:db|config) \S+", "", typed).split()
        command = command_of(
            [*(["kb"] if program == "ai-kb" else []), *(word.rstrip(".:'\"") for word in words)]
        )
        if command and not command.startswith("-"):
            known = flags_of(command)
            yield from (f"{command} {flag}" for flag in FLAG.findall(typed) if flag not in known)
    yield from (flag for flag in FLAG.findall(OURS.sub("", text)) if flag not in flags_near(room))


def test_options_in_messages_are_in_the_help_of_their_commands() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {flag} in {text[:120]!r}"
        for path in sorted(ROOT.rglob("*.py"))
        if "--" in path.read_text()
        for line, text in texts(ast.parse(path.read_text()))
        if text not in HELP
        for flag in wrong_flags(text, path.stem if path.parent.name == "operations" else "")
    ]
    assert wrong == []


def test_a_wrong_option_would_be_found() -> None:
    assert list(wrong_flags("Run `quaid export --everything` first.")) == ["export --everything"]
    assert list(wrong_flags("Run `quaid export --dir {}`, or leave out --nonsense.")) == ["--nonsense"]
    assert list(wrong_flags("Add --import-id, or leave it.", "doctor")) == ["--import-id"]
    assert list(wrong_flags("`quaid --db {} collection sync {} --confirm-deletes` does it.")) == []
    assert list(wrong_flags("`git status --porcelain` is another program's.")) == []
