"""The registry of operations: one typed function is one operation; its signature is the schema, its docstring the
help.

Every interface (command line, MCP, HTTP) is built from it. The generated index names the module of each command, so
that a command imports only the operations it needs.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, TypeVar, cast

Scope = Literal["read", "write", "owner"]
SCOPES: tuple[Scope, ...] = ("read", "write", "owner")  # each includes the ones before it

# Modules of this package that hold operations. tests/operations/test_register.py compares it with the folder.
SUBJECTS = (
    "pages",
    "history",
    "search",
    "query",
    "links",
    "facts",
    "ingest",
    "cleanup",
    "overview",
    "notebook",
    "conversations",
    "models",
    "collections",
    "maintenance",
    "doctor",
    "kb",
    "clients",
    "service",
)


DEPRECATED_NAMES: dict[str, tuple[str, ...]] = {
    "page_version": ("expected_version",),
    "by": ("asserted_by", "resolved_by_slug"),
    "source": ("source_ref",),
    "evidence": ("evidence_text",),
    "supersedes": ("supersedes_id",),
    "budget": ("token_budget",),
}
"""Deprecated names of arguments and what they are called now. Each is still accepted by operations that have the new
name and no argument of the old one, and is listed in no schema or help; remove this table with the next version."""


class Arg(NamedTuple):
    """What a parameter's type cannot say."""

    help: str
    positional: bool = False
    file: bool = False  # on the command line this is a file name, and its text the value
    path: bool = False  # names a file or folder of this machine
    version: Literal["", "page", "or new"] = (
        ""  # the version that was read; "or new": 0 stands for a new page
    )
    any_text: bool = False  # text that is not valid Unicode is mended, not refused
    question: bool = False  # something to look for: any text as well, but a short one
    minimum: int | None = None
    maximum: int | None = None
    flag: str = ""  # on the command line, if it is not the name of the parameter


class Param(NamedTuple):
    name: str  # as callers write it: an argument from_ is called from
    kind: str  # a JSON type: string integer number boolean array object
    choices: tuple[str, ...]
    required: bool
    default: Any
    arg: Arg
    items: str = "string"  # the JSON type of what an array holds
    variable: str = ""  # as the function calls it

    @property
    def flag(self) -> str:
        return self.arg.flag or "--" + self.name.replace("_", "-")


class Operation(NamedTuple):
    function: Callable[..., Any]
    subject: str
    scope: Scope
    command: str  # what is typed after `quaid`
    aliases: dict[str, dict[str, Any]]  # further commands, each with arguments already set
    tool: str
    core: bool  # in the tool list that clients get by default
    adds_only: bool  # a write that never replaces what was there
    examples: tuple[str, ...]
    cli_note: str = ""  # what only the help of the command line says; agents pay for every word

    @property
    def summary(self) -> str:
        return (self.function.__doc__ or "").strip().split("\n", 1)[0]

    @property
    def description(self) -> str:
        """The docstring with its indentation taken out; line breaks inside a paragraph do not matter."""
        paragraphs = (self.function.__doc__ or "").strip().split("\n\n")
        return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)

    @property
    def is_tool(self) -> bool:
        """What only the person at this machine may do (import, export, settings) is no tool."""
        return self.scope != "owner"

    @property
    def params(self) -> tuple[Param, ...]:
        return _params(self.function)


OPERATIONS: dict[str, Operation] = {}

Function = TypeVar("Function", bound=Callable[..., Any])


def op(
    scope: Scope,
    *,
    command: str = "",
    aliases: dict[str, dict[str, Any]] | None = None,
    tool: str = "",
    core: bool = False,
    adds_only: bool = False,
    examples: tuple[str, ...] = (),
    cli_note: str = "",
) -> Callable[[Function], Function]:
    """Register the decorated function as an operation."""

    def register(function: Function) -> Function:
        subject = function.__module__.rpartition(".")[2]
        name = function.__name__.rstrip("_")
        OPERATIONS[f"{subject}.{name}"] = Operation(
            function=function,
            subject=subject,
            scope=scope,
            command=command or name.replace("_", "-"),
            aliases=aliases or {},
            tool=tool or f"memory_{name}",
            core=core,
            adds_only=adds_only,
            examples=examples,
            cli_note=cli_note,
        )
        return function

    return register


def load_subject(subject: str) -> None:
    """Import the module of a subject, which registers its operations."""
    importlib.import_module(f"quaid.operations.{subject}")


def all_operations() -> list[Operation]:
    """Return all operations in the order of their subjects. Imports every module, so only lists and docs use it."""
    for subject in SUBJECTS:
        load_subject(subject)
    return sorted(OPERATIONS.values(), key=lambda operation: SUBJECTS.index(operation.subject))


def _params(function: Callable[..., Any]) -> tuple[Param, ...]:
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[1:count]  # the first is the brain
    defaults = dict(zip(reversed(names), reversed(function.__defaults__ or ()), strict=False))
    defaults.update(function.__kwdefaults__ or {})
    return tuple(_param(name, function.__annotations__[name], defaults) for name in names)


def _param(name: str, annotation: Any, defaults: dict[str, Any]) -> Param:
    arg = next(each for each in annotation.__metadata__ if isinstance(each, Arg))
    hint = annotation.__origin__
    parts = getattr(hint, "__args__", ())
    if None in parts or type(None) in parts:  # it may be left out
        hint = next(each for each in parts if each is not None and each is not type(None))
    kind, choices = _json_type(hint)
    items = _json_type(hint.__args__[0])[0] if kind == "array" else "string"
    required = name not in defaults
    return Param(name.rstrip("_"), kind, choices, required, defaults.get(name), arg, items, name)


_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


def _json_type(hint: Any) -> tuple[str, tuple[str, ...]]:
    parts = getattr(hint, "__args__", ())
    if parts and all(isinstance(each, str) for each in parts):  # Literal
        return "string", parts
    plain = getattr(hint, "__origin__", hint)
    return _JSON_TYPES[plain], ()


def current_name(name: str, known: Mapping[str, Any]) -> str:
    """Return what an argument is called now among those that an operation has, or the name as it is."""
    if name in known:
        return name
    return next((each for each in DEPRECATED_NAMES.get(name, ()) if each in known), name)


def schema(operation: Operation) -> dict[str, Any]:
    """The JSON schema of an operation's arguments, as MCP and HTTP callers see it."""
    properties: dict[str, Any] = {}
    for param in operation.params:
        entry: dict[str, Any] = {"type": param.kind, "description": param.arg.help}
        if param.kind == "array":
            entry["items"] = {"type": param.items}
        if param.choices:
            entry["enum"] = list(param.choices)
        if param.arg.minimum is not None:
            entry["minimum"] = param.arg.minimum
        if param.arg.maximum is not None:
            entry["maximum"] = param.arg.maximum
        if param.default not in (None, (), "", False):
            entry["default"] = cast(Any, param.default)
        properties[param.name] = entry
    required = [p.name for p in operation.params if p.required or p.arg.version == "page"]
    result: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        result["required"] = required
    result["additionalProperties"] = False
    return result
