"""Registry of operations. Each is one typed function: its signature is the schema, its docstring the help text.

The command line, MCP and HTTP interfaces are built from the registry. The generated index maps each command
to its module, so that a command imports only the operations it needs.
"""

import importlib
from collections.abc import Callable, Container
from functools import lru_cache
from typing import Any, Generic, Literal, NamedTuple, TypeVar, cast

Scope = Literal["read", "write", "owner"]
SCOPES: tuple[Scope, ...] = ("read", "write", "owner")  # each scope includes the scopes before it

# Modules of this package that define operations. tests/operations/test_registry.py compares the list with the
# folder.
SUBJECTS = {
    "pages": "Pages",
    "page_changes": "Pages",
    "history": "Pages",
    "search": "Search",
    "query": "Search",
    "links": "Links and graph",
    "facts": "Truth over time",
    "ingest": "Ingest",
    "cleanup": "Clean up",
    "review": "Review of agents",
    "dream": "Truth over time",
    "corrections": "Truth over time",
    "overview": "Search",
    "notes": "Notebook",
    "notebook": "Notebook",
    "conversations": "Conversations",
    "models": "Models",
    "collections": "Folders of files",
    "conflicts": "Folders of files",
    "spaces": "Shared spaces",
    "maintenance": "Maintenance",
    "golden": "Quality",
    "doctor": "Maintenance",
    "kb": "Knowledge base",
    "instructions": "Clients and skills",
    "clients": "Clients and skills",
    "service": "Service and tokens",
}
"""The modules with operations, in the order of listings, and the title of the section that lists their commands."""


DEPRECATED_NAMES: dict[str, tuple[str, ...]] = {
    "page_version": ("expected_version",),
    "by": ("asserted_by", "resolved_by_slug"),
    "source_ref": ("source",),
    "source_type": ("type",),
    "query_text": ("query",),
    "context": ("query",),
    "max_results": ("limit",),
    "entry": ("content",),
    "text": ("content", "query"),
    "page": ("slug",),
    "evidence": ("evidence_text",),
    "supersedes": ("supersedes_id",),
    "budget": ("token_budget",),
    "question": ("query",),
}
"""Deprecated argument names and their replacements.

An old name is accepted by operations that have the new name and no argument with the old name. Schemas and
help omit old names. This table is to be removed in the next version.
"""


ARGUMENT_SYNONYMS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("text", "body", "markdown", "message", "note", "fact", "data", "value"), ("content", "append")
    ),
    **dict.fromkeys(("entry", "thing", "memory", "input"), ("content",)),
    **dict.fromkeys(("id", "name", "title", "page", "path", "address", "key", "file"), ("slug", "subject")),
    **dict.fromkeys(
        ("slug", "pages", "slugs", "entity", "person", "about"), ("slug", "subject", "about", "query")
    ),
    **dict.fromkeys(("q", "question", "search", "words", "terms", "keywords", "prompt"), ("query",)),
    **dict.fromkeys(("top", "top_k", "k", "n", "count", "max", "number", "size"), ("limit",)),
    **dict.fromkeys(("tokens", "max_tokens"), ("token_budget",)),
    **dict.fromkeys(("hash", "checksum", "etag"), ("content_hash",)),
    **dict.fromkeys(("version", "revision", "if_version"), ("expected_version",)),
    **dict.fromkeys(("kind", "category", "source_kind"), ("type",)),
    **dict.fromkeys(("from_date", "after", "start", "start_date", "begin"), ("since", "valid_from", "date")),
    **dict.fromkeys(("to_date", "before", "end", "end_date"), ("until", "valid_until")),
    **dict.fromkeys(("day", "when", "on"), ("date", "as_of", "since")),
    **dict.fromkeys(("at", "at_date"), ("as_of", "date")),
    **dict.fromkeys(("url", "reference", "ref", "origin"), ("source",)),
    **dict.fromkeys(("facts", "claims"), ("assertions",)),
    **dict.fromkeys(("heading", "header"), ("section",)),
    **dict.fromkeys(("truth", "summary", "replace"), ("compiled_truth", "content")),
    **dict.fromkeys(("add", "addition"), ("append",)),
    **dict.fromkeys(("metadata", "meta", "properties", "tags"), ("frontmatter",)),
    **dict.fromkeys(("relation", "type"), ("relationship", "predicate")),
    "timeline": ("timeline_append",),
    "folder": ("collection",),
}
"""Names that callers use by mistake, and the arguments that they may mean. Used for hints in error messages."""


class Arg(NamedTuple):
    """Metadata of a parameter that its type cannot express."""

    help: str
    positional: bool = False
    file: bool = False  # on the command line, a file name is given, and the argument is the text of that file
    path: bool = False  # a path on this machine
    # Set for the argument with the page version that the caller has read. With "page", only the owner may
    # omit the argument; with "optional", the operation decides whether it is needed.
    version: Literal["", "page", "optional"] = ""
    any_text: bool = False  # replace invalid Unicode and accept NUL characters instead of rejecting them
    question: bool = False  # a search query, limited to MAX_QUESTION bytes
    minimum: int | None = None
    maximum: int | None = None  # of a number, or of the size of a text in bytes
    flag: str = ""  # command-line flag, if it differs from the parameter name


class Param(NamedTuple):
    name: str  # as callers write it, for example `from` for from_
    kind: str  # JSON type: string, integer, number, boolean, array or object
    choices: tuple[str, ...]
    required: bool
    default: Any
    arg: Arg
    items: str = "string"  # JSON type of the items of an array
    variable: str = ""  # the name in the function signature

    @property
    def flag(self) -> str:
        return self.arg.flag or "--" + self.name.replace("_", "-")


class Operation(NamedTuple):
    function: Callable[..., Any]
    subject: str
    scope: Scope
    command: str  # the words after `quaid`
    aliases: dict[str, dict[str, Any]]  # alias commands, with the arguments that each alias presets
    tool: str
    core: bool  # included in the default tool list
    adds_only: bool  # a write that never overwrites existing data
    examples: tuple[str, ...]
    cli_note: str = ""  # shown only in command-line help, to keep tool descriptions short
    creates: bool = False  # creates the memory or the notebook if it is missing

    @property
    def summary(self) -> str:
        return (self.function.__doc__ or "").strip().split("\n", 1)[0]

    @property
    def description(self) -> str:
        """Return the docstring with each paragraph on one line and paragraphs separated by blank lines."""
        paragraphs = (self.function.__doc__ or "").strip().split("\n\n")
        return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)

    @property
    def is_tool(self) -> bool:
        """Return True if agents may call the operation.

        Operations of the owner, such as import, export and settings, are not offered to agents.
        """
        return self.scope != "owner"

    @property
    def params(self) -> tuple[Param, ...]:
        return _params(self.function)


Value = TypeVar("Value")


class Named(NamedTuple, Generic[Value]):
    """A result with a single value, often a tuple of records. In JSON it is `{name: value}`."""

    name: str
    value: Value
    note: str = ""
    """Text that the command line prints in place of a single value or an empty tuple.

    It is not part of the JSON.
    """
    warning: str = ""
    """Text that the command line prints on standard error, or "". It is not part of the JSON."""

    @property
    def exit_status(self) -> int:
        records = self.value if isinstance(self.value, tuple) else ()
        return max((getattr(record, "exit_status", 0) for record in records), default=0)


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
    creates: bool = False,
) -> Callable[[Function], Function]:
    """Return a decorator that registers a function as an operation. Operation explains the arguments."""

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
            creates=creates,
        )
        return function

    return register


def load_subject(subject: str) -> None:
    """Import a subject's module, which registers its operations."""
    importlib.import_module(f"quaid.operations.{subject}")


def all_operations() -> list[Operation]:
    """Return all operations in the order of SUBJECTS, for listings and documentation.

    This is slow, because it imports every module.
    """
    for subject in SUBJECTS:
        load_subject(subject)
    return sorted(OPERATIONS.values(), key=lambda operation: [*SUBJECTS].index(operation.subject))


@lru_cache(None)  # a server looks up the parameters on every request
def _params(function: Callable[..., Any]) -> tuple[Param, ...]:
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[1:count]  # skip the first parameter, brain
    defaults = dict(zip(reversed(names), reversed(function.__defaults__ or ()), strict=False))
    defaults.update(function.__kwdefaults__ or {})
    return tuple(_param(name, function.__annotations__[name], defaults) for name in names)


def _param(name: str, annotation: Any, defaults: dict[str, Any]) -> Param:
    arg = next(metadata for metadata in annotation.__metadata__ if isinstance(metadata, Arg))
    hint = annotation.__origin__
    parts = getattr(hint, "__args__", ())
    if None in parts or type(None) in parts:  # Optional[...]
        hint = next(part for part in parts if part is not None and part is not type(None))
    kind, choices = _json_type(hint)
    items = _json_type(hint.__args__[0])[0] if kind == "array" else "string"
    required = name not in defaults
    return Param(name.rstrip("_"), kind, choices, required, defaults.get(name), arg, items, name)


_JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}


def _json_type(hint: Any) -> tuple[str, tuple[str, ...]]:
    parts = getattr(hint, "__args__", ())
    if parts and all(isinstance(part, str) for part in parts):  # Literal
        return "string", parts
    plain = getattr(hint, "__origin__", hint)
    return _JSON_TYPES[plain], ()


def python_params(operation: Operation) -> tuple[list[Param], list[Param]]:
    """Return the parameters that a method of the Python library takes by position, and those only by name.

    Leading parameters that are required, or positional on the command line, are taken by position.
    """
    params = list(operation.params)
    count = 0
    while count < len(params) and (params[count].required or params[count].arg.positional):
        count += 1
    return params[:count], params[count:]


def current_name(name: str, params: Container[str]) -> str:
    """Return the current name of a deprecated argument if `params` has that name, else the name unchanged."""
    if name in params:
        return name
    return next((new for new in DEPRECATED_NAMES.get(name, ()) if new in params), name)


def schema(operation: Operation) -> dict[str, Any]:
    """Return the JSON schema of an operation's arguments, as shown to MCP and HTTP callers."""
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
