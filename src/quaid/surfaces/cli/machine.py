"""Tools for programs: `quaid call` answers one call, `quaid pipe` a line after another.

Both speak tools exactly as MCP does, with the same scope: what needs a version there needs it here.
"""

import json
import sys
from typing import Any

from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import Defect, InvalidArgument, LineTooLarge, QuaidError
from quaid.mcp import jsonrpc
from quaid.mcp.jsonrpc import MAX_LINE_BYTES, OversizedLine
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value
from quaid.surfaces.cli.speaking import notice


def call(settings: Settings, tool: str, text: str) -> int:
    with Brain(settings, notice=notice) as brain:
        result = _answer(brain, tool, _object(text))
    print(json.dumps(result, ensure_ascii=False, indent=2))
    return 0


def pipe(settings: Settings) -> int:
    """Every line gets exactly one line back; a bad one gets an error object and the loop goes on."""
    with Brain(settings, notice=notice) as brain:
        for line in jsonrpc.read_lines(sys.stdin.buffer, "id"):
            if isinstance(line, OversizedLine) or line.strip():
                print(json.dumps(_answer_line(brain, line), ensure_ascii=False), flush=True)
    return 0


def _answer_line(brain: Brain, line: bytes | OversizedLine) -> dict[str, Any]:
    request: dict[str, Any] = {}
    try:
        if isinstance(line, OversizedLine):
            request = line.messages[0] if line.messages and not line.is_list else {}
            raise LineTooLarge(limit=MAX_LINE_BYTES)
        request = _object(line.decode("utf-8", "replace"))
        tool, arguments = request.get("tool"), request.get("arguments", request.get("input", {}))
        if not isinstance(tool, str):
            raise InvalidArgument(name="tool", problem='is missing; write {"tool": NAME, "arguments": {...}}')
        if not isinstance(arguments, dict):
            raise InvalidArgument(name="arguments", problem="must be an object")
        answer: dict[str, Any] = {"result": _answer(brain, tool, arguments)}
    except QuaidError as error:
        answer = _told(error)
    except Exception as error:  # one bad line must not end the loop, even if the fault is ours
        answer = _told(Defect(problem=type(error).__name__))
    return {"id": request["id"], **answer} if "id" in request else answer


def _told(error: QuaidError) -> dict[str, Any]:
    facts = {key: value for key, value in error.facts.items() if isinstance(value, str | int | float)}
    return {"error": {"code": error.code, "message": str(error), **facts}}


def _answer(brain: Brain, tool: str, arguments: dict[str, Any]) -> Any:
    return json_value(dispatch.call(brain, dispatch.find_tool(tool), arguments, "write"))


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(name="JSON", problem=f"cannot be read: {error}") from None
    if not isinstance(value, dict):
        raise InvalidArgument(name="JSON", problem="must be an object in braces")
    return value
