"""JSON texts of limited length: how long a text is once it is decoded, and what a text says that is too long to keep.

The limit counts decoded text: a program that writes letters as \\u escapes needs up to six bytes for one, and its
pages are no longer than those of others.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

MAX_DECODED = 5 * 1024 * 1024
MAX_RAW = 6 * MAX_DECODED
"""Bytes that are kept of one text; a longer one is only looked through."""
_AT_ONCE = 64 * 1024
_LONGEST_VALUE = 1_024
_MOST_MESSAGES = 1_000
_SIGNS = re.compile(rb'["{}\[\],:]')
_ONE_BYTE = re.compile(rb"\\u00[0-7]")
_FEWER_BYTES = re.compile(rb"\\u(?:0[0-7]|[dD][89a-fA-F])")
"""Letters below 800, and halves of those above FFFF: two bytes each, or one."""
_CUT = 6
"""An escape may be cut where one part of a text ends, and is then not seen."""


class TooLong:
    """A text over the limit, of which only these keys of its objects are known: one object, or a list of them."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.messages: list[dict[str, Any]] = []
        self.is_list = False
        self._keys = {key.encode(): key for key in keys}
        self._depth = 0
        self._level = 0  # the depth at which the objects are whose keys count; 0: nothing has begun
        self._in_string = self._escaped = self._is_value = False
        self._message: dict[str, Any] = {}
        self._text = bytearray()  # of the key or value that is being read
        self._key = b""

    def feed(self, data: bytes) -> None:
        """Look at the next bytes."""
        at = 0
        while at < len(data):
            if self._in_string:
                at = self._string(data, at)
                continue
            sign = _SIGNS.search(data, at)
            end = sign.start() if sign else len(data)
            self._keep(data[at:end])
            at = end + 1
            if sign:
                self._sign(sign[0])

    def _string(self, data: bytes, at: int) -> int:
        """Go to the end of a string, and say where that is."""
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
        if self._depth == self._level and len(self._text) <= _LONGEST_VALUE:
            self._text += data[: _LONGEST_VALUE + 1]

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
        if len(self.messages) < _MOST_MESSAGES:
            self.messages.append(self._message)
        self._text.clear()
        self._is_value = False

    def _end_value(self) -> None:
        name = self._keys.get(self._key) if self._is_value else None
        if name and len(self._text) <= _LONGEST_VALUE:
            try:
                self._message[name] = json.loads(self._text)
            except ValueError:
                pass  # an object, a list, or no JSON
        self._is_value = False


def lines(source: BinaryIO, *keys: str) -> Iterator[bytes | TooLong]:
    """Each line as it comes; of one over the limit what these keys of its objects say."""
    while line := source.readline(MAX_DECODED + 1):
        is_whole = len(line) <= MAX_DECODED or line.endswith(b"\n")
        yield line if is_whole else _long_line(source, line, keys)


def _long_line(source: BinaryIO, begun: bytes, keys: tuple[str, ...]) -> bytes | TooLong:
    """The rest of a line: kept as long as its escapes may be what makes it long, and looked through meanwhile."""
    unread = TooLong(keys)
    kept: bytearray | None = bytearray()
    size, part = 0, begun
    while part:
        unread.feed(part)
        if kept is not None:
            kept += part
            size += decoded_size(part.rstrip(b"\n"))
            if size > MAX_DECODED or len(kept) > MAX_RAW + 1:
                kept = None
        part = b"" if part.endswith(b"\n") else source.readline(_AT_ONCE)
    return unread if kept is None else bytes(kept)


def decoded_size(data: bytes) -> int:
    """How many bytes a JSON text has when its strings are written without escapes; at most 6 in 64 KB too few."""
    return sum(_decoded_size(data[at : at + _AT_ONCE]) for at in range(0, len(data), _AT_ONCE))


def _decoded_size(data: bytes) -> int:
    backslashes = data.count(b"\\")
    if not backslashes:
        return len(data)
    escapes = backslashes - data.count(b"\\\\")
    by_number = data.count(b"\\u")
    size = (
        len(data) - escapes - 2 * by_number
    )  # one byte for a letter, three for one that is given by its number
    if by_number:
        size -= len(_FEWER_BYTES.findall(data)) + len(_ONE_BYTE.findall(data))
    return size - _CUT
