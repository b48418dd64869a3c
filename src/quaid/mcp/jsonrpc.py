"""JSON-RPC: read lines of JSON up to a size limit, parse messages, build responses."""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

MAX_LINE_BYTES = 5 * 1024 * 1024
MAX_RAW_LINE_BYTES = 6 * MAX_LINE_BYTES
"""Maximum raw size of a line whose decoded text fits into MAX_LINE_BYTES. An escape takes up to 6 bytes."""
_READ_BYTES = 64 * 1024
_MAX_VALUE_BYTES = 1_024
_MAX_MESSAGES = 1_000
_JSON_SIGNS = re.compile(rb'["{}\[\],:]')
_ONE_BYTE = re.compile(rb"\\u00[0-7]")
_FEWER_BYTES = re.compile(rb"\\u(?:0[0-7]|[dD][89a-fA-F])")
"""Matches escapes below U+0800 and surrogate halves, which decode to two bytes.

Escapes that also match _ONE_BYTE decode to one byte.
"""
_CUT_ESCAPE = 6
"""Tolerance per chunk in bytes, because an escape that is split between two chunks is not recognized."""


class OversizedLine:
    """An incremental scanner for a line over the limit, which may be one JSON object or a list of objects.

    Only the values of the given top-level keys are collected, in `messages`."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.messages: list[dict[str, Any]] = []
        self.is_list = False
        self._keys = {key.encode(): key for key in keys}
        self._depth = 0
        self._level = 0  # nesting depth of the objects whose keys are collected; 0 before the first bracket
        self._in_string = self._escaped = self._is_value = False
        self._message: dict[str, Any] = {}
        self._text = bytearray()  # the current key or value
        self._key = b""

    def feed(self, data: bytes) -> None:
        """Scan the next bytes."""
        at = 0
        while at < len(data):
            if self._in_string:
                at = self._string(data, at)
                continue
            sign = _JSON_SIGNS.search(data, at)
            end = sign.start() if sign else len(data)
            self._keep(data[at:end])
            at = end + 1
            if sign:
                self._sign(sign[0])

    def _string(self, data: bytes, at: int) -> int:
        """Scan to the end of a string and return the position after it."""
        start = at
        if self._escaped:
            self._escaped = False
            at += 1
        while (quote := data.find(b'"', at)) >= 0:
            between = data[at:quote]
            at = quote + 1
            if (len(between) - len(between.rstrip(b"\\"))) % 2 == 0:
                self._keep(data[start:at])
                self._in_string = False
                return at
        rest = data[at:]
        self._escaped = (len(rest) - len(rest.rstrip(b"\\"))) % 2 == 1
        self._keep(data[start:])
        return len(data)

    def _keep(self, data: bytes) -> None:
        if self._depth == self._level and len(self._text) <= _MAX_VALUE_BYTES:
            self._text += data[: _MAX_VALUE_BYTES + 1]

    def _sign(self, sign: bytes) -> None:
        if not self._level:
            self.is_list = sign == b"["
            self._level = 2 if self.is_list else 1
        if sign == b'"':
            self._keep(sign)
            self._in_string = True
        elif sign in b"{[":
            self._depth += 1
            if sign == b"{" and self._depth == self._level:
                self._begin()
        elif sign in b"}]":
            if self._depth == self._level:
                self._end_value()
            self._depth -= 1
        elif self._depth == self._level:
            if sign == b":":
                self._key = bytes(self._text).strip().strip(b'"')
                self._is_value = True
            else:
                self._end_value()
            self._text.clear()

    def _begin(self) -> None:
        self._message = {}
        if len(self.messages) < _MAX_MESSAGES:
            self.messages.append(self._message)
        self._text.clear()
        self._is_value = False

    def _end_value(self) -> None:
        name = self._keys.get(self._key) if self._is_value else None
        if name and len(self._text) <= _MAX_VALUE_BYTES:
            try:
                self._message[name] = json.loads(self._text)
            except ValueError:
                pass  # the value is an object, a list, or invalid JSON
        self._is_value = False


def read_lines(source: BinaryIO, *keys: str) -> Iterator[bytes | OversizedLine]:
    """Yield each line. A line over the limit is yielded as an OversizedLine with the values of these keys."""
    while line := source.readline(MAX_LINE_BYTES + 1):
        is_whole = len(line) <= MAX_LINE_BYTES or line.endswith(b"\n")
        yield line if is_whole else _read_long_line(source, line, keys)


def _read_long_line(source: BinaryIO, begun: bytes, keys: tuple[str, ...]) -> bytes | OversizedLine:
    """Read the rest of a long line.

    Return the whole line if it is within the limit once its escapes are decoded.
    """
    unread = OversizedLine(keys)
    line: bytearray | None = bytearray()
    size, part = 0, begun
    while part:
        unread.feed(part)
        if line is not None:
            line += part
            size += decoded_size(part.rstrip(b"\n"))
            if size > MAX_LINE_BYTES or len(line) > MAX_RAW_LINE_BYTES + 1:
                line = None
        part = b"" if part.endswith(b"\n") else source.readline(_READ_BYTES)
    return unread if line is None else bytes(line)


def decoded_size(data: bytes) -> int:
    """Return the size in bytes of JSON with its escapes decoded.

    The result may be up to 6 bytes per 64 KB too small.
    """
    return sum(_decoded_size_of_chunk(data[at : at + _READ_BYTES]) for at in range(0, len(data), _READ_BYTES))


def _decoded_size_of_chunk(data: bytes) -> int:
    backslashes = data.count(b"\\")
    if not backslashes:
        return len(data)
    escapes = backslashes - data.count(b"\\\\")
    by_number = data.count(b"\\u")
    # A simple escape decodes to one byte, and \uXXXX to at most three bytes.
    size = len(data) - escapes - 2 * by_number
    if by_number:
        size -= len(_FEWER_BYTES.findall(data)) + len(_ONE_BYTE.findall(data))
    return size - _CUT_ESCAPE


PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

RequestId = int | str


class RpcError(Exception):
    """An error at the protocol level, as opposed to a failed operation."""

    def __init__(self, code: int, message: str, data: dict[str, Any] | None = None) -> None:
        self.code, self.data = code, data
        super().__init__(message)


class Request(NamedTuple):
    id: RequestId | None  # None for a notification, which gets no response
    method: str
    params: dict[str, Any] | None  # None if the client sent something other than an object

    @property
    def meta(self) -> dict[str, Any]:
        meta = (self.params or {}).get("_meta")
        return meta if isinstance(meta, dict) else {}


Message = Request | RpcError | None
"""None means a message that needs no response, such as a response to a request that we did not send."""


def decode(line: bytes) -> Any:
    """Parse one line as JSON."""
    try:
        return json.loads(line.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
        raise RpcError(PARSE_ERROR, "Parse error: the line is not JSON in UTF-8") from None


def request_id(value: Any) -> RequestId | None:
    """Return the value if it may be the ID of a request, else None."""
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None


def parse_message(value: Any) -> tuple[RequestId | None, Message]:
    """Return the ID for the response to a message, and the request, or an RpcError if the message is invalid."""
    if not isinstance(value, dict):
        return None, RpcError(INVALID_REQUEST, "Invalid request: a message is a JSON object")
    id = request_id(value.get("id"))
    if value.get("jsonrpc") != "2.0":
        return id, RpcError(INVALID_REQUEST, 'Invalid request: "jsonrpc" must be "2.0"')
    if "method" not in value and ("result" in value or "error" in value):
        return None, None
    if not isinstance(value.get("method"), str):
        return id, RpcError(INVALID_REQUEST, 'Invalid request: "method" must be text')
    if "id" in value and id is None:
        return None, RpcError(INVALID_REQUEST, 'Invalid request: "id" must be text or a whole number')
    params = {} if value.get("params") is None else value["params"]
    return id, Request(id, value["method"], params if isinstance(params, dict) else None)


def result(id: RequestId | None, value: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": value}


def failure(
    id: RequestId | None, code: int, message: str, data: dict[str, Any] | None = None
) -> dict[str, Any]:
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": id, "error": error}


def notification(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def encode(message: Any) -> bytes:
    """Encode a message as one line.

    A message with lone surrogates, which UTF-8 cannot encode, is written in ASCII.
    """
    try:
        return compact(message).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def compact(value: Any) -> str:
    """Return JSON without spaces. NaN and Infinity raise ValueError, because JSON does not have them."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _refuse_constant(constant: str) -> None:
    raise ValueError(constant)  # Python accepts NaN and Infinity, but they are not JSON
