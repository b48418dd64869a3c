"""Every file of a knowledge base with the node that it makes, read once and remembered.

What is remembered lies in one file in .git/ai-kb, which a clone cannot bring along and which may be deleted at any
time. A quick look trusts a file that looks as it did; a certain one reads every file and trusts only the name of its
bytes, so that the gate before a commit never judges what is not there. Findings of lint are remembered with the bytes
that they are about. Knows no rule and no git.
"""

import hashlib
import json
import os
import time
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from quaid.kb import layout
from quaid.kb.layout import Looks
from quaid.kb.node import Node, Reference

VERSION = 1
NAME = "catalog"
LARGEST_NODE = 4 * 1024 * 1024
"""Bytes; what is larger is no node, and lint says so."""

RACY_NS = 2_000_000_000
"""A file that changed so shortly before it was looked at may change again without looking otherwise."""

Findings = tuple[tuple[int, str, str, str], ...]


class File(NamedTuple):
    path: str
    looks: Looks
    digest: str
    node: Node | None
    start: int
    end: int
    """Where its body stands among the bodies, in small letters."""
    rules: str
    """By which rules it was judged; nothing: not yet."""
    findings: Findings


class Catalog:
    """All files by their paths."""

    def __init__(self, root: str, files: dict[str, File], bodies: str) -> None:
        self.root = root
        self.files = files
        self.bodies = bodies

    @property
    def nodes(self) -> Iterator[Node]:
        """In the order of their paths."""
        return (file.node for file in self.files.values() if file.node is not None)

    def body(self, path: str) -> str:
        """The body of a node, in small letters."""
        file = self.files[path]
        return self.bodies[file.start : file.end]

    def text(self, path: str) -> str:
        """A file as it is on the disk."""
        return layout.read(self.root, path).decode("utf-8", "replace")


def look(root: str, folder: str, *, certain: bool = False) -> Catalog:
    """The files as they are now; `folder` is where the last look is remembered."""
    known, bodies = _remembered(folder)
    files: dict[str, File] = {}
    parts: list[str] = []
    length, changed = 0, False
    for path, looks in layout.walk(root):
        old = known.get(path)
        if old is not None and not certain and old.looks == looks:
            new, body = old, bodies[old.start : old.end]
        else:
            new, body = _read(root, path, looks, old, bodies)
            changed = changed or new is not old
        files[path] = new._replace(start=length, end=length + len(body)) if new.start != length else new
        parts.append(body)
        length += len(body)
    catalog = Catalog(root, files, "".join(parts))
    if changed or len(files) != len(known):
        save(catalog, folder)
    return catalog


def _read(root: str, path: str, looks: Looks, old: File | None, bodies: str) -> tuple[File, str]:
    try:
        data = layout.read(root, path, LARGEST_NODE + 1)
    except OSError:  # it went away, or may not be read: lint says so
        data = b""
    digest = hashlib.blake2b(data, digest_size=16).hexdigest()
    if old is not None and old.digest == digest:
        body = bodies[old.start : old.end]
        return (old if old.looks == looks else old._replace(looks=looks)), body
    if not layout.is_node(path) or len(data) > LARGEST_NODE:
        return File(path, looks, digest, None, 0, 0, "", ()), ""
    from quaid.kb import node

    made = node.read(path, data.decode("utf-8", "replace"))
    body = f"{made.body.lower()}\n"  # so that no word of the next body begins inside of one of this
    return File(path, looks, digest, made.node, 0, len(body), "", ()), body


# Remembering


def save(catalog: Catalog, folder: str) -> None:
    """Remember a look. Where that is not possible the next look takes longer."""
    blob = catalog.bodies.encode("utf-8", "surrogatepass")
    newest = time.time_ns() - RACY_NS
    head = {
        "version": VERSION,
        "bodies": [len(blob), zlib.crc32(blob)],
        "files": [_packed(file, newest) for file in catalog.files.values()],
    }
    path = os.path.join(folder, NAME)
    unfinished = f"{path}-{os.getpid()}"
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(json.dumps(head, separators=(",", ":")).encode() + b"\n" + blob)
        os.replace(unfinished, path)
    except OSError:
        try:
            os.unlink(unfinished)
        except OSError:
            pass


def _packed(file: File, newest: int) -> list[Any]:
    # What may still change unseen is remembered by its bytes alone.
    looks = file.looks if file.looks.mtime_ns < newest else (0, 0, -1, 0)
    node = list(file.node[1:]) if file.node else None
    return [file.path, *looks, file.digest, node, file.start, file.end, file.rules, file.findings]


def _remembered(folder: str) -> tuple[dict[str, File], str]:
    try:
        with open(os.path.join(folder, NAME), "rb") as file:
            head, _, blob = file.read().partition(b"\n")
        values = json.loads(head)
        if values["version"] != VERSION or values["bodies"] != [len(blob), zlib.crc32(blob)]:
            return {}, ""
        return {each[0]: _unpacked(each) for each in values["files"]}, blob.decode("utf-8", "surrogatepass")
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return {}, ""


def _unpacked(values: list[Any]) -> File:
    path, mtime, ctime, size, inode, digest, node, start, end, rules, findings = values
    return File(
        path,
        Looks(mtime, ctime, size, inode),
        digest,
        _node(path, node) if node else None,
        start,
        end,
        rules,
        tuple([tuple(each) for each in findings]),
    )


def _node(path: str, values: list[Any]) -> Node:
    fields = [tuple(each) if isinstance(each, list) else each for each in values]
    node = Node._make([path, *fields])
    return node._replace(links=tuple([Reference(*each) for each in node.links])) if node.links else node
