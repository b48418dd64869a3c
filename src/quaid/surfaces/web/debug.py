"""Endpoints for tests and for looking under the hood, as the notebook's design lists them. Only with --debug.

A notebook is prepared, looked at and tidied up over HTTP; what an agent would do is simulated: what it is told before
a compaction, and a turn of it with the tools that it calls.
"""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.cli.hook import COMPACTED_PROMPT, FLUSH_PROMPT
from quaid.errors import InvalidArgument
from quaid.operations import maintenance, notebook
from quaid.operations.dispatch import json_value
from quaid.surfaces.web import openapi
from quaid.surfaces.web.api import body_of, scope_of, sent

MOST_CALLS = 50
TEXTS = ("text/plain", "text/markdown")


async def status(request: Request) -> Response:
    """How the index is: counts, vectors, collections with their last sync."""
    crew, scope = request.app.state.crew, scope_of(request)
    record = json_value(await crew.call("status", {}, scope))
    folders = json_value(await crew.call("memory_collections", {}, scope))
    return sent({**record, **folders})


async def search(request: Request) -> Response:
    """Raw results with their scores, and what each lane found. Looking leaves no gap, whoever looks."""
    question = request.query_params.get("q", "")
    if not question.strip():
        raise InvalidArgument(name="q", problem="is missing; say what to look for, as in ?q=boat")
    given = {"question": question, "explain": True}
    return sent(json_value(await request.app.state.crew.call("query", given, "read")))


async def files(request: Request) -> Response:
    return sent(json_value(await request.app.state.crew.run("read", maintenance.indexed_files, "files")))


async def rebuild(request: Request) -> Response:
    return sent(json_value(await request.app.state.crew.run("long", maintenance.rebuild, "rebuild")))


async def pages(request: Request) -> Response:
    return sent(json_value(await request.app.state.crew.call("notebook_list", {}, scope_of(request))))


async def notebook_file(request: Request) -> Response:
    """Read, write or delete one file of the notebook."""
    crew, path = request.app.state.crew, request.path_params["path"]
    if request.method == "POST":
        text = await _text(request)
        return sent(
            json_value(
                await crew.run(
                    "write", lambda brain: maintenance.write_notebook_file(brain, path, text), "write"
                )
            )
        )
    if request.method == "DELETE":
        return sent(
            json_value(
                await crew.run("write", lambda brain: maintenance.remove_notebook_file(brain, path), "delete")
            )
        )
    return sent(json_value(await crew.call("notebook_read", {"path": path}, scope_of(request))))


async def simulate_compaction(request: Request) -> Response:
    """What an agent is told before its context is compacted, and what it has afterwards."""
    crew = request.app.state.crew
    context = await crew.call("prompt", {"characters": notebook.session_limit(None, {})}, "owner")
    request.app.state.bus.tell("compaction", {})
    return sent({"before": FLUSH_PROMPT, "after": COMPACTED_PROMPT, "context": context.text})


async def inject_turn(request: Request) -> Response:
    """A turn of an agent: what it says is kept as a conversation, and the tools that it calls are called."""
    crew, given = request.app.state.crew, await body_of(request)
    content, calls = given.get("content", ""), given.get("calls", [])
    if not isinstance(content, str) or not isinstance(calls, list) or len(calls) > MOST_CALLS:
        problem = f"must hold content (text), and perhaps role, session and calls (at most {MOST_CALLS})"
        raise InvalidArgument(name="body", problem=problem)
    if not content.strip() and not calls:
        raise InvalidArgument(name="content", problem="is missing; a turn says something, or calls a tool")
    turn = None
    if content:
        session, role = str(given.get("session", "debug")), str(given.get("role", "user"))
        turn = await crew.run(
            "write", lambda brain: maintenance.inject_turn(brain, session, role, content), "inject"
        )
    results = [json_value(await crew.call(*_call(each), scope_of(request))) for each in calls]
    return sent({"turn": json_value(turn), "results": results})


def _call(value: Any) -> tuple[str, dict[str, Any]]:
    tool = value.get("tool") if isinstance(value, dict) else None
    arguments = value.get("arguments", {}) if isinstance(value, dict) else None
    if not isinstance(tool, str) or not isinstance(arguments, dict):
        raise InvalidArgument(name="calls", problem='must hold objects {"tool": NAME, "arguments": {...}}')
    return tool, arguments


async def _text(request: Request) -> str:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in TEXTS:
        try:
            return (await request.body()).decode()
        except UnicodeDecodeError as error:
            raise InvalidArgument(name="body", problem=f"is not UTF-8 (byte {error.start})") from None
    content = (await body_of(request)).get("content")
    if not isinstance(content, str):
        raise InvalidArgument(name="content", problem="must be the text of the file")
    return content


def routes() -> list[Route]:
    return [
        Route("/api/debug/memory/status", status),
        Route("/api/debug/memory/search", search),
        Route("/api/debug/memory/files", files),
        Route("/api/debug/memory/rebuild", rebuild, methods=["POST"]),
        Route("/api/debug/memory/simulate-compaction", simulate_compaction, methods=["POST"]),
        Route("/api/debug/brain/inject-turn", inject_turn, methods=["POST"]),
        Route("/api/debug/notebook/pages", pages),
        Route("/api/debug/notebook/{path:path}", notebook_file, methods=["GET", "POST", "DELETE"]),
    ]


SCOPES = {
    "/api/debug/memory/status": {"GET": "read"},
    "/api/debug/memory/search": {"GET": "read"},
    "/api/debug/memory/files": {"GET": "read"},
    "/api/debug/memory/rebuild": {"POST": "write"},
    "/api/debug/memory/simulate-compaction": {"POST": "write"},
    "/api/debug/brain/inject-turn": {"POST": "write"},
    "/api/debug/notebook/pages": {"GET": "read"},
    "/api/debug/notebook/{path:path}": {"GET": "read", "POST": "write", "DELETE": "write"},
}


def described() -> dict[str, Any]:
    """These endpoints in the API's document."""
    told: dict[str, Any] = {}
    for path, methods in SCOPES.items():
        plain_path = path.replace("{path:path}", "{path}")
        for method, scope in methods.items():
            entry = openapi.described(f"Debugging: {plain_path.rpartition('/')[2]}.", scope)
            if method == "POST":
                entry["requestBody"] = {"content": {"application/json": {"schema": {"type": "object"}}}}
            if path.endswith("/search"):
                entry["parameters"] = [
                    {"name": "q", "in": "query", "required": True, "schema": {"type": "string"}}
                ]
            if "{path}" in plain_path:
                entry["parameters"] = [
                    {"name": "path", "in": "path", "required": True, "schema": {"type": "string"}}
                ]
            told.setdefault(plain_path, {})[method.lower()] = entry
    return told
