"""The tools of the register over HTTP: /api/memory/NAME and /api/notebook/NAME.

The rule: `memory_get` is /api/memory/get and `notebook_read` is /api/notebook/read; `remember`, `recall` and
`daily_log` stand under /api/notebook/, every other tool under /api/memory/ by its whole name. Arguments are a JSON
object that is POSTed; a tool that only reads takes simple ones in the query of a GET, too. The answer is the record.
A write names the version that it read, as over MCP, whoever asks.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.errors import BodyRefused, InvalidArgument, QuaidError
from quaid.operations.dispatch import json_value
from quaid.operations.registry import SCOPES, Operation, Param, Scope, all_operations

IN_THE_NOTEBOOK = ("remember", "recall", "daily_log")
SIMPLE = ("string", "integer", "number", "boolean")

Endpoint = Callable[[Request], Awaitable[Response]]


def path_of(tool: str) -> str:
    """Where a tool is called."""
    room, _, rest = tool.partition("_")
    if room in ("memory", "notebook") and rest:
        return f"/api/{room}/{rest}"
    return f"/api/{'notebook' if tool in IN_THE_NOTEBOOK else 'memory'}/{tool}"


def takes_query(operation: Operation) -> bool:
    """Whether all arguments of a reading tool can stand in the query of a GET."""
    return operation.scope == "read" and all(
        param.kind in SIMPLE or (param.kind == "array" and param.items == "string")
        for param in operation.params
    )


def served() -> list[Operation]:
    """The tools, in the register's order."""
    return [each for each in all_operations() if each.is_tool]


def routes() -> list[Route]:
    """A route for each tool."""
    return [
        Route(
            path_of(each.tool),
            _endpoint(each),
            methods=["GET", "POST"] if takes_query(each) else ["POST"],
            name=each.tool,
        )
        for each in served()
    ]


def scopes() -> dict[str, dict[str, str]]:
    """What each of these routes needs."""
    return {
        path_of(each.tool): dict.fromkeys(["GET", "POST"] if takes_query(each) else ["POST"], each.scope)
        for each in served()
    }


def _endpoint(operation: Operation) -> Endpoint:
    async def answer(request: Request) -> Response:
        if request.method == "POST":
            arguments = await body_of(request)
        else:
            arguments = _query(request, operation)
        record = await request.app.state.crew.call(operation.tool, arguments, scope_of(request))
        return sent(json_value(record))

    return answer


def scope_of(request: Request) -> Scope:
    """A caller's scope for tools: even the owner's program names the version that it changes."""
    given: Scope = request.state.scope
    return min(given, "write", key=SCOPES.index)


async def body_of(request: Request) -> dict[str, Any]:
    """The JSON object that was sent; nothing at all is an empty one."""
    data = await request.body()
    if not data:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise BodyRefused(problem=f"its type is {kind[:60]!r}" if kind else "its type is not told")
    try:
        value = json.loads(data.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise InvalidArgument(name="body", problem="is not JSON in UTF-8") from None
    if not isinstance(value, dict):
        raise InvalidArgument(name="body", problem="must be a JSON object")
    return value


def _query(request: Request, operation: Operation) -> dict[str, Any]:
    params = {param.name: param for param in operation.params}
    given: dict[str, Any] = {}
    for name in dict.fromkeys(name for name, _ in request.query_params.multi_items()):
        values = request.query_params.getlist(name)
        param = params.get(name)
        if param is not None and param.kind == "array":
            given[name] = values
        elif len(values) > 1:
            raise InvalidArgument(name=name, problem="is given more than once")
        else:
            given[name] = values[0] if param is None else _value(param, values[0])
    return given


def _value(param: Param, text: str) -> Any:
    if param.kind == "string":
        return text
    wanted = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}[param.kind]
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, str) or value is None:
        raise InvalidArgument(name=param.name, problem=f"must be {wanted}, not {text[:60]!r}")
    return value


def sent(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A value as JSON. Half a surrogate pair cannot be UTF-8, so text that holds one is written in ASCII."""
    try:
        data = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        data = json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
    return Response(data, status, headers, media_type="application/json")


def told(error: QuaidError) -> Response:
    """An error: its code, its message with the remedy, and its facts."""
    facts = {
        key: value for key, value in error.facts.items() if isinstance(value, str | int | float | list | bool)
    }
    headers = {"WWW-Authenticate": "Bearer"} if error.http_status == 401 else None
    body = {"code": error.code, "message": str(error), "facts": facts}
    try:
        return sent({"error": body}, error.http_status, headers)
    except (TypeError, ValueError):  # a fact that JSON does not have
        return sent({"error": {**body, "facts": {}}}, error.http_status, headers)


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and Infinity are Python's, not JSON's
