"""JSON-RPC 2.0 frames: bytes to requests, answers to bytes.

Knows what a well-formed message is. Knows nothing of MCP's methods, nor of the pipe the bytes came from.
"""

import json
from typing import Any, NamedTuple

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

Id = int | str


class RpcError(Exception):
    """A failure of the protocol itself, not of an operation."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        self.code, self.data = code, data
        super().__init__(message)


class Request(NamedTuple):
    id: Id | None  # None: a notification, which nobody answers
    method: str
    params: dict[str, Any] | None  # None: sent, but not as an object

    @property
    def meta(self) -> dict[str, Any]:
        meta = (self.params or {}).get("_meta")
        return meta if isinstance(meta, dict) else {}


class Ignored(NamedTuple):
    """A message that asks for nothing, such as an answer to a question we never put."""


Frame = Request | Ignored | RpcError


def decode(line: bytes) -> Any:
    """The JSON value of one line."""
    try:
        return json.loads(line.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        raise RpcError(PARSE_ERROR, "Parse error: the line is not JSON in UTF-8") from None


def read(value: Any) -> tuple[Id | None, Frame]:
    """What one message is, with the id that its answer needs."""
    if not isinstance(value, dict):
        return None, RpcError(INVALID_REQUEST, "Invalid request: a message is a JSON object")
    id = value.get("id")
    known = id if isinstance(id, int | str) and not isinstance(id, bool) else None
    if value.get("jsonrpc") != "2.0":
        return known, RpcError(INVALID_REQUEST, 'Invalid request: "jsonrpc" must be "2.0"')
    if "method" not in value and ("result" in value or "error" in value):
        return None, Ignored()
    if not isinstance(value.get("method"), str):
        return known, RpcError(INVALID_REQUEST, 'Invalid request: "method" must be text')
    if "id" in value and known is None:
        return None, RpcError(INVALID_REQUEST, 'Invalid request: "id" must be text or a whole number')
    params = {} if value.get("params") is None else value["params"]
    return known, Request(known, value["method"], params if isinstance(params, dict) else None)


def result(id: Id | None, value: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": value}


def failure(id: Id | None, code: int, message: str, data: dict[str, Any] | None = None) -> dict[str, Any]:
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": id, "error": error}


def notification(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def encode(message: Any) -> bytes:
    """One line. Half a surrogate pair cannot be UTF-8, so a message that holds one is written in ASCII."""
    try:
        return compact(message).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def compact(value: Any) -> str:
    """JSON without spaces. A number that JSON does not have is a ValueError, not a broken line."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and Infinity are Python's, not JSON's
