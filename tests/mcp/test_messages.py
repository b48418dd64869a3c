"""What agents read: no message tells them to run a command in a shell."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from tests.mcp.pipes import ROOT

from quaid.errors import InvalidArgument, NearDuplicate, PageNotFound, QuaidError, all_errors
from quaid.mcp import tools
from quaid.operations import dispatch, index

SHELL = re.compile(r"`(?:quaid|ai-kb|git|pip|pipx|uv|systemctl)(?: [^`]*)?`")


class Fact(str):
    """A fact of any type: it can be formatted as text and as a number."""

    def __format__(self, spec: str) -> str:
        return str(self)


def facts_of(error: type[QuaidError]) -> dict[str, Any]:
    fields = {name for _, name, _, _ in Formatter().parse(error.__doc__ or "") if name}
    return {name: Fact(name.upper()) for name in fields}


def assert_for_agent(text: str) -> None:
    for match in SHELL.finditer(text):
        around = text[: match.end() + 30]
        assert re.search(r"[Aa]sk the user", around), text


def texts(folder: Path) -> Iterator[str]:
    """All string literals with a command in them, outside docstrings."""
    for path in sorted(folder.rglob("*.py")):
        if path.relative_to(folder).parts[0] in ("cli", "web"):
            continue
        tree = ast.parse(path.read_text())
        docs = {
            ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, ast.Module)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                docs.add(ast.get_docstring(node, clean=False))
            if isinstance(node, ast.JoinedStr):
                yield "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "VALUE" for part in node.values
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in docs:
                yield node.value


@pytest.mark.parametrize("error", all_errors(), ids=lambda error: error.__name__)
def test_no_error_tells_an_agent_to_run_a_command(error: type[QuaidError]) -> None:
    record = tools.failure_record(error(**facts_of(error)))
    assert record["code"] == error.code
    assert record["message"]
    assert_for_agent(record["message"])
    assert_for_agent(record.get("next", ""))


def test_no_text_in_the_code_tells_an_agent_to_run_a_command() -> None:
    found = [text for text in texts(Path(ROOT) / "src/quaid") if SHELL.search(text)]
    assert len(found) > 60
    for text in found:
        assert_for_agent(tools.for_agent(text))


@pytest.mark.parametrize(
    ("command", "call"),
    [
        ("quaid list", "memory_list"),
        ("quaid get SLUG", "memory_get(slug=SLUG)"),
        ("quaid facts SUBJECT --history", "memory_facts(subject=SUBJECT, history=true)"),
        ("quaid put SLUG FILE", "memory_put(slug=SLUG, content=TEXT)"),
        ("quaid notebook list", "notebook_list"),
        ("ai-kb show ID", "kb_show(node=ID)"),
        ("quaid forget people/bob", "memory_forget(slug=people/bob)"),
        ("quaid embed --all", ""),
        ("git status", ""),
    ],
)
def test_command_becomes_the_tool_that_does_the_same(command: str, call: str) -> None:
    assert tools.tool_call(command) == call


def test_every_tool_has_a_command_that_leads_to_it() -> None:
    commands = {key: command for command, (key, _) in index.COMMANDS.items()}
    for tool, key in index.TOOLS.items():
        assert tools.tool_call(f"quaid {commands[key]}").startswith(tool)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("`quaid embed` makes the others", "Ask the user to run `quaid embed`, which makes the others"),
        (
            "2 of 3; `quaid embed` makes the rest",
            "2 of 3; ask the user to run `quaid embed`, which makes the rest",
        ),
        (
            "a person decides with `quaid review`.",
            "a person decides with `quaid review` (ask the user to run it).",
        ),
        ("run `quaid check` again", "run memory_check again"),
        ("plain `code` stays", "plain `code` stays"),
        ("2 of them; `quaid check` finds new ones", "2 of them"),
        (
            "`quaid check people/bo` shows what contradicts what",
            "memory_get(slug=people/bo): see what is right",
        ),
    ],
)
def test_notes_are_put_in_terms_of_tools(text: str, wanted: str) -> None:
    assert tools.for_agent(text) == wanted


def test_flags_become_arguments_of_the_tool_that_was_called() -> None:
    record = tools.failure_record(NearDuplicate(detail="X"), dispatch.find_tool("kb_remember"))
    assert (
        record["next"] == "Nothing was written; add to that node with add_to, or write a new one with force."
    )


def test_failure_has_problem_remedy_and_only_further_facts() -> None:
    error = PageNotFound(slug="a/b", hint="Did you mean a/c?", current_version=0)
    assert tools.failure_record(error) == {
        "code": "page_not_found",
        "message": "There is no page a/b.",
        "next": "Did you mean a/c? memory_query finds pages.",
        "current_version": 0,
    }


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("`quaid get people/bo`: check its progress", True),
        ("`quaid briefing` shows it", True),
        ("`quaid briefing --limit 50` shows the omitted lines", False),
        ("`quaid gaps` lists the open questions", False),
    ],
)
def test_a_step_with_a_tool_or_argument_outside_the_default_list_is_recognized(
    step: str, expected: bool
) -> None:
    assert tools.is_listed(tools.for_agent(step)) is expected


def test_the_usage_of_a_tool_has_no_rare_arguments() -> None:
    error = InvalidArgument(name="text", problem="memory_put has no such argument")
    usage = tools.failure_record(error, dispatch.find_tool("memory_put"))["next"]
    assert usage.startswith("memory_put needs slug and takes content, ")
    assert "replace_timeline" not in usage


def test_wrong_argument_gets_the_list_of_arguments() -> None:
    error = InvalidArgument(name="page", problem="memory_history has no such argument")
    record = tools.failure_record(error, dispatch.find_tool("memory_history"))
    assert record["next"].startswith("memory_history needs slug")
