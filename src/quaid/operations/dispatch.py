"""Look up operations by name, check scope and arguments, call them, and convert their results to JSON.

Arguments are checked here, so operations can rely on their types. OSErrors are converted to QuaidErrors.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from quaid import errors
from quaid.app import Brain
from quaid.model import dates
from quaid.operations import index
from quaid.operations.registry import (
    ARGUMENT_SYNONYMS,
    OPERATIONS,
    SCOPES,
    Named,
    Operation,
    Param,
    Scope,
    current_name,
    load_subject,
)
from quaid.storage.agents import KEPT_DAYS, AgentCalls, NewCall
from quaid.storage.sqlite.errors import os_error

MAX_TEXT = 4 * 1024 * 1024  # maximum size of a text argument in bytes
# Maximum size of a query in bytes; longer queries take seconds and give no better results.
MAX_QUESTION = 4 * 1024
MAX_INTEGER = 2**63 - 1
MAX_DEPTH = 100  # maximum nesting depth of JSON objects and arrays
MAX_PAGES = 20  # at most this many pages of a result are recorded as read
COMMAND_SYNONYMS = {
    **dict.fromkeys(("rm", "del", "delete", "remove"), "forget"),
    **dict.fromkeys(("find", "grep"), "search"),
    **dict.fromkeys(("add", "new", "create", "edit", "write"), "put"),
    **dict.fromkeys(("show", "cat", "view", "read", "open"), "get"),
    **dict.fromkeys(("ls", "dir"), "list"),
    "mv": "rename",
}
"""Names that other programs use for commands of Quaid. Suggestions by spelling would be misleading for these."""


def find_command(name: str) -> Operation:
    """Return the operation for a command-line command. Raises UnknownCommand."""
    if name not in index.COMMANDS:
        names = {*index.COMMANDS, *index.NO_OPERATIONS}
        same = COMMAND_SYNONYMS.get(name, "")
        raise errors.UnknownCommand(
            name=name, hint=f" Did you mean {same!r}?" if same in names else suggestion(name, names)
        )
    return operation_by_key(index.COMMANDS[name][0])


def find_tool(name: str) -> Operation:
    """Return the operation for a tool name, as used by MCP, `quaid call` and `quaid pipe`. Raises UnknownTool."""
    if name not in index.TOOLS:
        raise errors.UnknownTool(name=name, hint=suggestion(name, index.TOOLS))
    return operation_by_key(index.TOOLS[name])


def call(brain: Brain, operation: Operation, arguments: Mapping[str, Any], scope: Scope) -> Any:
    """Check the caller's scope and arguments, run the operation and return its result."""
    if SCOPES.index(operation.scope) > SCOPES.index(scope):
        raise errors.NotAllowed(name=operation.tool, needed=operation.scope, granted=scope)
    if brain.settings.only and operation.scope == "owner":
        raise errors.NotAllowed(name=operation.tool, needed="owner", granted="part of the memory")
    checked = check_arguments(operation, arguments, scope)
    brain.leaves_marks = scope != "read"
    brain.may_overwrite = scope == "owner"

    def run() -> Any:
        if brain.runner is not None:
            return brain.runner(operation, arguments, scope)
        result = _run_or_create(brain, operation, checked)
        if scope == "owner" and operation.scope == "write" and brain.has_past_grace():
            from quaid.operations import cleanup  # imported late, because it is rarely needed

            cleanup.erase_and_report(brain)
        return result

    try:
        if brain.agent and brain.calls is not None:
            return recorded(brain, operation, run)
        return run()
    except KeyboardInterrupt:
        raise errors.Cancelled from None
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else brain.settings.db_path
        raise os_error(where, error) from error


def recorded(brain: Brain, operation: Operation, work: Callable[[], Any]) -> Any:
    """Run a tool call of an agent and add it to the calls that store_calls() stores. Arguments are not recorded."""
    began, at = time.perf_counter(), brain.now()
    brain.take_written()
    outcome, result = "failed", None
    read: tuple[str, ...] = ()
    try:
        result = work()
        outcome = "done"
    finally:
        proposal = getattr(result, "proposal", None)
        proposal = proposal if isinstance(proposal, int) else None
        is_write = operation.scope != "read"
        written = brain.take_written() if outcome == "done" and proposal is None else []
        if outcome == "done" and not is_write:
            read = tuple(_addresses(result, {}))
        if brain.calls is not None:
            brain.calls.append(
                NewCall(
                    session=brain.session or "unknown",
                    client=brain.agent,
                    tool=operation.tool,
                    is_write=is_write,
                    outcome="proposed" if proposal else outcome,
                    called_at=at,
                    ms=round((time.perf_counter() - began) * 1000),
                    proposal_id=proposal,
                    read=read,
                    written=tuple(written),
                )
            )
    return result


def _addresses(value: Any, addresses: dict[str, None]) -> dict[str, None]:
    """Collect the addresses of the pages in a result, at most MAX_PAGES."""
    if len(addresses) >= MAX_PAGES or not isinstance(value, tuple | list):
        return addresses
    slug = getattr(value, "slug", None)
    if isinstance(slug, str) and slug:
        collection = getattr(value, "collection", "")
        known = isinstance(collection, str) and collection and "::" not in slug
        addresses[f"{collection}::{slug}" if known else slug] = None
    for item in value:
        if isinstance(item, tuple | list):
            _addresses(item, addresses)
    return addresses


def store_calls(brain: Brain) -> None:
    """Store the recorded calls of agents. If another process is writing, keep them for the next call.

    Discard them if the setting log_activity is off or the memory is read-only.
    """
    if not brain.calls or not os.path.exists(brain.settings.db_path):
        return
    try:
        if brain.option("log_activity") == "off" or not brain.db.writable:
            brain.calls.clear()
            return
        if not brain.db.lock.try_take():
            return
        brain.db.lock.release()
        calls = []
        while brain.calls:
            calls.append(brain.calls.popleft())
        oldest = dates.shift_date(brain.now()[:10], -KEPT_DAYS)
        AgentCalls(brain.db).store(calls, oldest)
    except errors.QuaidError:
        pass  # a full disk or a damaged file is reported by the next write


def _run_or_create(brain: Brain, operation: Operation, arguments: dict[str, Any]) -> Any:
    """Run an operation. Create a missing memory or notebook first, if the operation may do so.

    Operations marked with `creates` and all writes of agents may do so, unless the caller is restricted to a part
    of the memory.
    """
    is_agent_write = bool(brain.agent) and operation.scope == "write"
    creates = (operation.creates or is_agent_write) and not brain.settings.only
    for _ in range(2):  # the memory and the notebook may both be missing
        try:
            return _run(brain, operation, arguments)
        except errors.MissingDatabase:
            if not creates or not brain.create_if_missing():
                raise
        except errors.NoNotebook:
            if not creates:
                raise
            made = find_command("notebook init").function(brain)
            brain.report_created(f"the notebook {made.root}")
    return _run(brain, operation, arguments)


def _run(brain: Brain, operation: Operation, arguments: dict[str, Any]) -> Any:
    brain.hide_expired()
    if brain.agent and operation.scope == "write":
        from quaid.operations import review  # only for agents, so that commands need not import it

        return review.write_or_propose(brain, operation, arguments)
    return operation.function(brain, **arguments)


def _with_current_names(arguments: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments under their current names, translating camel case (maxResults) and deprecated names."""
    spelled = dict(arguments)
    for name in arguments:
        snake = "".join(f"_{letter.lower()}" if "A" <= letter <= "Z" else letter for letter in name)
        ours = current_name(snake, params)
        if name == ours or ours not in params:
            continue
        if ours in spelled:
            raise errors.InvalidArgument(
                name=name, problem=f"is another name of {ours}, which is given too; use one"
            )
        spelled[ours] = spelled.pop(name)
    return spelled


def check_arguments(operation: Operation, arguments: Mapping[str, Any], scope: Scope) -> dict[str, Any]:
    """Return the arguments converted for the operation's signature.

    Raises InvalidArgument for the first invalid argument.
    """
    params = {param.name: param for param in operation.params}
    arguments = _with_current_names(arguments, params)
    for name in arguments:
        if name not in params:
            raise errors.InvalidArgument(
                name=name, problem=f"{operation.tool} has no such argument{_argument_hint(name, params)}"
            )
    checked: dict[str, Any] = {}
    for name, param in params.items():
        value = arguments.get(name)
        checked[param.variable] = (
            _default_of(param, scope) if value is None else _CHECKS[param.kind](param, value)
        )
    return checked


def _argument_hint(name: str, params: Mapping[str, Param]) -> str:
    """Return a hint in parentheses: the argument that is probably meant, or else all arguments."""
    meant = next((other for other in ARGUMENT_SYNONYMS.get(name.lower(), ()) if other in params), "")
    hint = f" (did you mean {meant!r}?)" if meant else inline_suggestion(name, params)
    return hint or f" (it has {', '.join(params)})" if params else " (it has none)"


def _default_of(param: Param, scope: Scope) -> Any:
    """Return the default of an omitted argument, or raise InvalidArgument if the argument is required.

    Only the owner may omit the page version.
    """
    if param.required or (param.arg.version == "page" and scope != "owner"):
        raise errors.InvalidArgument(name=param.name, problem="is required")
    return param.default


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return a "Did you mean" hint with the closest known name, or an empty string."""
    from difflib import get_close_matches

    # The dashes of an option are not compared, because they would make all short options similar.
    spelled = {option.lstrip("-"): option for option in sorted(names)}  # "version" wins over "--version"
    typed = name.lstrip("-")
    close = get_close_matches(typed, spelled, n=1)
    close = close or [
        option for option in spelled if sorted(option) == sorted(typed)
    ]  # the same letters in another order
    return f" Did you mean {spelled[close[0]]!r}?" if close else ""


def inline_suggestion(name: str, names: Iterable[str]) -> str:
    """Return the hint of suggestion() in parentheses, for use inside a sentence."""
    hint = suggestion(name, names).strip()
    return f" ({hint[0].lower()}{hint[1:]})" if hint else ""


def operation_by_key(key: str) -> Operation:
    """Return an operation by its key in the registry, such as query.query."""
    if key not in OPERATIONS:
        load_subject(key.partition(".")[0])
    return OPERATIONS[key]


def _string(param: Param, value: Any) -> str:
    if param.name == "id" and type(value) is int:
        value = str(value)  # tools show ids of facts as numbers
    if not isinstance(value, str):
        raise errors.InvalidArgument(name=param.name, problem=f"must be text, not {_type_name(value)}")
    text: str = value
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        if not param.arg.any_text:
            raise errors.InvalidArgument(
                name=param.name, problem="holds text that is not valid Unicode"
            ) from None
        text = text.encode("utf-8", "replace").decode()
        size = len(text.encode())
    if size > (limit := param.arg.maximum or MAX_TEXT):
        raise errors.TooLarge(what=param.name, size=size, limit=limit)
    if param.arg.question and size > MAX_QUESTION:
        problem = f"has {size:,} bytes and {MAX_QUESTION:,} are allowed; ask in fewer words"
        raise errors.InvalidArgument(name=param.name, problem=problem)
    if "\0" in text and not param.arg.any_text:
        raise errors.InvalidArgument(name=param.name, problem="holds a NUL character; remove it")
    if not text and (param.arg.path or (param.default is None and not param.required and not param.arg.file)):
        raise errors.InvalidArgument(name=param.name, problem="is empty; leave it out or give it a value")
    if param.choices and text not in param.choices:
        raise errors.InvalidArgument(
            name=param.name, problem=f"must be one of {', '.join(param.choices)}, not {text!r}"
        )
    return text


def _integer(param: Param, value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON has one number type, so 5.0 is an integer
    if isinstance(value, str) and len(value) < 20 and value.isascii() and value.removeprefix("-").isdigit():
        value = int(value)  # models often send numbers as strings
    if not isinstance(value, int) or isinstance(value, bool):
        raise errors.InvalidArgument(
            name=param.name, problem=f"must be a whole number, not {_type_name(value)}"
        )
    low = -MAX_INTEGER if param.arg.minimum is None else param.arg.minimum
    high = MAX_INTEGER if param.arg.maximum is None else param.arg.maximum
    if not low <= value <= high:
        allowed = f"{low} or more" if high == MAX_INTEGER and value < low else f"from {low} to {high}"
        raise errors.InvalidArgument(name=param.name, problem=f"must be {allowed}, not {value}")
    return value


def _number(param: Param, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise errors.InvalidArgument(name=param.name, problem=f"must be a number, not {_type_name(value)}")
    return float(value)


def _boolean(param: Param, value: Any) -> bool:
    if not isinstance(value, bool):
        raise errors.InvalidArgument(
            name=param.name, problem=f"must be true or false, not {_type_name(value)}"
        )
    return value


def _array(param: Param, value: Any) -> list[Any]:
    if isinstance(value, str) and param.items == "string":
        value = _list_of_text(value)
    if not isinstance(value, list):
        raise errors.InvalidArgument(name=param.name, problem=f"must be a list, not {_type_name(value)}")
    if param.items == "string":
        return [_string(param, item) for item in value]
    for place, item in enumerate(value, 1):
        if not isinstance(item, dict):
            raise errors.InvalidArgument(
                name=param.name, problem=f"must hold objects, but item {place} is {_type_name(item)}"
            )
    _check_json(param, value)
    if _holds_nul(value):
        raise errors.InvalidArgument(name=param.name, problem="holds a NUL character; remove it")
    return list(value)


def _list_of_text(text: str) -> Any:
    """Return the items of a list that was sent as text.

    Some models send a JSON list as text. Any other text is a single item.
    """
    try:
        value = json.loads(text) if text.startswith("[") else text
    except ValueError:
        value = text
    return value if isinstance(value, list) else [text]


def _object(param: Param, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise errors.InvalidArgument(name=param.name, problem=f"must be an object, not {_type_name(value)}")
    _check_json(param, value)
    return dict(value)


def _check_json(param: Param, value: Any) -> None:
    """Reject values that are too large, too deeply nested or not representable in JSON."""
    try:
        size = len(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
    except (ValueError, RecursionError):
        raise errors.InvalidArgument(
            name=param.name, problem="holds text or numbers that JSON cannot carry"
        ) from None
    if size > MAX_TEXT:
        raise errors.TooLarge(what=param.name, size=size, limit=MAX_TEXT)
    if _is_deeper(value, MAX_DEPTH):
        raise errors.InvalidArgument(name=param.name, problem=f"is nested more than {MAX_DEPTH} levels deep")


def _is_deeper(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        inner = [
            container.values() if isinstance(container, dict) else container
            for container in level
            if isinstance(container, dict | list)
        ]
        level = [item for container in inner for item in container]
    return bool(level)


def _holds_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_holds_nul(key) or _holds_nul(item) for key, item in value.items())
    return isinstance(value, list) and any(map(_holds_nul, value))


_CHECKS: dict[str, Callable[[Param, Any], Any]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _array,
    "object": _object,
}


def _type_name(value: Any) -> str:
    names = {
        bool: "true or false",
        int: "a number",
        float: "a number",
        str: "text",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), "null")


def json_value(value: Any) -> Any:
    """Convert a result to JSON types: named tuples become objects, other tuples become lists."""
    if isinstance(value, Named):
        return {value.name: json_value(value.value)}
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            return {name: json_value(item) for name, item in zip(value._fields, value, strict=True)}
        return [json_value(item) for item in value]
    if isinstance(value, list):
        return [json_value(item) for item in value]
    if isinstance(value, dict):
        return {key: json_value(item) for key, item in value.items()}
    return value
