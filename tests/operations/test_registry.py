"""The register: every operation is whole, and the generated index is current."""

import os
import subprocess
import sys
from typing import Any

from quaid.operations import dispatch, index, registry

# A gap and a contradiction are no part of a page; an ingest is given the version of each of its pages.
WITHOUT_A_VERSION = {
    "memory_gap",
    "memory_gap_approve",
    "memory_gap_resolve",
    "memory_gap_clear",
    "memory_check",
    "memory_distinct",
    "memory_ingest",
    # They add; to replace, notebook_write asks for the version.
    *("remember", "daily_log", "notebook_write", "kb_remember"),
    # A person decides on them, and sees what the page says then.
    *("memory_forget", "memory_merge"),
    "memory_correct",  # it finds the statement in the current text
    "memory_regroup",  # it changes one key of the current front matter
}

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def test_generated_pages_are_current() -> None:
    done = subprocess.run(
        [sys.executable, os.path.join(ROOT, "docs", "generate.py"), "--check"], capture_output=True, text=True
    )
    assert done.stdout == "", "run `make docs`"
    assert done.returncode == 0


def test_subjects_are_the_modules_that_hold_operations() -> None:
    folder = os.path.join(ROOT, "src", "quaid", "operations")
    others = {
        "__init__",
        "registry",
        "dispatch",
        "index",
        "background",
        "shell",
    }
    modules = {name[:-3] for name in os.listdir(folder) if name.endswith(".py")}
    assert modules - others == set(registry.SUBJECTS)


def test_operations_have_summary_examples_and_help() -> None:
    for operation in registry.all_operations():
        assert operation.summary.endswith("."), f"{operation.command}: the docstring's first line is the help"
        assert operation.examples, f"{operation.command}: show how it is used"
        assert all(param.arg.help.endswith(".") for param in operation.params), operation.command


def test_writing_tools_take_the_expected_version() -> None:
    for operation in registry.all_operations():
        takes_version = any(param.arg.version for param in operation.params)
        expected = operation.scope == "write" and operation.tool not in WITHOUT_A_VERSION
        assert takes_version == expected, operation.command


def test_basic_tools_exist() -> None:
    names = "get put search list tags tag timeline timeline_add raw stats".split()
    assert {f"memory_{name}" for name in names} <= set(index.TOOLS)


def test_no_operation_has_a_deprecated_and_a_current_name() -> None:
    for operation in registry.all_operations():
        names = {param.name for param in operation.params}
        for former, present in registry.DEPRECATED_NAMES.items():
            is_other_thing = (operation.command, former) == (
                "gaps add",
                "context",
            )  # the context of a question
            assert former not in names or names.isdisjoint(present) or is_other_thing, (
                operation.command,
                former,
            )


def test_schemas_are_closed_and_typed() -> None:
    for operation in registry.all_operations():
        schema: dict[str, Any] = registry.schema(operation)
        assert schema["additionalProperties"] is False
        assert all(
            item["type"] in ("string", "integer", "number", "boolean", "array", "object")
            and item["description"]
            for item in schema["properties"].values()
        )


def test_a_mutator_requires_its_expected_version_of_tools() -> None:
    assert "expected_version" in registry.schema(dispatch.find_tool("memory_revert"))["required"]
    assert registry.schema(dispatch.find_tool("memory_tag"))["required"] == ["slug", "tag"]
    assert registry.schema(dispatch.find_tool("memory_put"))["required"] == ["slug"]
