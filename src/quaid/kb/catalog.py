"""Every file of a knowledge base with the node that it makes, read once and remembered.

What is remembered lies in one file in .git/ai-kb, which a clone cannot bring along and which may be deleted at any
time. A quick look trusts a file that looks as it did; a certain one reads every file and trusts only the name of its
bytes: so lint, doctor and the commit of what a person has edited never judge what is not there. What a judge says of
a file's bytes is remembered with them. Knows no rule and no git.
"""

import json
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.kb import layout
from quaid.kb.layout import Looks
from quaid.kb.node import Node, Reference

if TYPE_CHECKING:
    from quaid.kb.node import Read

VERSION = 6
"""Rises with the form of what is remembered, and with that of the index: whether it is right is remembered too."""

NAME = "catalog"
LARGEST_NODE = 4 * 1024 * 1024
LARGEST_RAW = 64 * 1024 * 1024
"""Bytes; what is larger is neither read nor committed, and lint says so."""

LARGE_RAW = 1024 * 1024
"""Bytes of a raw file that even a certain look does not read again while it looks as it did."""

RACY_NS = 2_000_000_000
"""A file that changed so shortly before it was looked at may change again without looking otherwise."""

OWN_LINE = frozenset({"ID", "PROJECTS", "STATUS", "SUMMARY"})
"""Properties that a query searches as fields of their own."""

LINKS = Node._fields.index("links") - 1

UNSEEN = Looks(0, 0, -1, 0)
"""As no file looks."""

Findings = tuple[tuple[int, str, str, str], ...]


class File(NamedTuple):
    path: str
    looks: Looks
    digest: str
    fields: str
    """The node that it makes, without its path, as JSON; nothing: it makes none."""
    start: int
    middle: int
    end: int
    """Where its head and its body stand among the texts, in small letters."""
    rules: str
    """By which rules it was judged; nothing: not yet."""
    findings: Findings


class Judge(NamedTuple):
    """Somebody who says what is wrong with the bytes of a file."""

    rules: str
    """Their name; what was judged by others is judged again."""
    passing: frozenset[str]
    """Codes of findings that may be gone the next time: they are not remembered."""
    judge: "Callable[[str, bytes | None, Read | None], Findings]"
    """Given path, bytes (None: they cannot be read) and the node, if it is one."""


class Catalog:
    """All files by their paths."""

    def __init__(self, root: str, files: dict[str, File], texts: str) -> None:
        self.root = root
        self.files = files
        self.texts = texts
        self.index: dict[str, str] | None = None
        """The index that the nodes make, once somebody has made it."""
        self.index_problem: str | None = None
        """What is wrong with the index that is there; nothing: it is right; None: nobody has looked."""
        self._nodes: dict[str, Node] = {}

    @property
    def nodes(self) -> Iterator[Node]:
        """In the order of their paths."""
        packed = [file for file in self.files.values() if file.fields and file.path not in self._nodes]
        unpacked = json.loads(
            f"[{','.join([file.fields for file in packed])}]"
        )  # all at once is four times as fast
        for file, fields in zip(packed, unpacked, strict=True):
            self._nodes[file.path] = _node(file.path, fields)
        return (self._nodes[path] for path, file in self.files.items() if file.fields)

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return sum(1 for file in self.files.values() if file.fields)

    def node(self, file: File) -> Node:
        """The node of a file that makes one; it is unpacked when somebody asks for it."""
        found = self._nodes.get(file.path)
        if found is None:
            found = self._nodes[file.path] = _node(file.path, json.loads(file.fields))
        return found

    def body(self, path: str) -> str:
        """The body of a node, in small letters."""
        file = self.files[path]
        return self.texts[file.middle : file.end]

    def properties(self, file: File) -> str:
        """Return the properties of a node that are no fields of their own, lowercased: `NAME value NAME value`."""
        return self.texts[file.start : file.middle - 2].rpartition("\n")[2]

    def text(self, path: str) -> str:
        """A file as it is on the disk."""
        return layout.read(self.root, path).decode("utf-8", "replace")


def look(root: str, folder: str, *, certain: bool = False, judge: Judge | None = None) -> Catalog:
    """The files as they are now; `folder` is where the last look is remembered."""
    known, found = _remembered(root, folder), layout.walk(root)
    if not certain and _is_as_it_was(known, found, judge):
        return known
    files: dict[str, File] = {}
    fresh: dict[str, str] = {}
    again, newest = 0, time.time_ns() - RACY_NS
    with layout.Root(root) as store:
        for path, looks in found:
            old = known.files.get(path)
            if (
                old is None
                or old.looks != looks
                or (certain and (looks.size <= LARGE_RAW or not layout.is_raw(path)))
                or (judge is not None and old.rules != judge.rules)
            ):
                old = _read(store, path, looks, old, judge, fresh)
                again += old is not known.files.get(path) and _is_settled(looks, newest)
            files[path] = old
    if not fresh and len(files) == len(known.files):
        known.files = files
        if again:  # what could not be remembered by its looks before, can be now
            save(known, folder)
        return known
    catalog = _put_together(known, files, fresh)
    save(catalog, folder)
    return catalog


def _is_as_it_was(known: Catalog, found: list[layout.Found], judge: Judge | None) -> bool:
    """Whether all files look as they did and were judged, compared at once: a query has no time for each of them."""
    files = known.files.values()
    return [file[:2] for file in files] == found and (
        judge is None or {file.rules for file in files} <= {judge.rules}
    )


def look_again(catalog: Catalog, paths: Iterable[str], judge: Judge | None = None) -> Catalog:
    """The catalog with these files as they are now, and all others as they were. Nothing is remembered."""
    files, fresh = dict(catalog.files), dict[str, str]()
    with layout.Root(catalog.root) as store:
        for path in paths:
            looks = layout.looks(catalog.root, path)
            old = files.pop(path, None)
            if looks is not None:
                files[path] = _read(store, path, looks, old, judge, fresh)
    return _put_together(catalog, dict(sorted(files.items())), fresh)


def digest(data: bytes) -> str:
    """The name of bytes."""
    return blake2b(data, digest_size=16).hexdigest()


def limit_of(path: str) -> int:
    return LARGEST_RAW if layout.is_raw(path) else LARGEST_NODE


def _read(
    store: layout.Root,
    path: str,
    looks: Looks,
    old: File | None,
    judge: Judge | None,
    fresh: dict[str, str],
) -> File:
    """A file with what it says; its text goes into `fresh` if it is another one than before."""
    limit = limit_of(path)
    data: bytes | None = None
    try:
        data = store.read(path, limit + 1)
    except OSError:  # it went away, or may not be read
        looks = UNSEEN
    name = "" if data is None else digest(data)
    is_same = old is not None and old.digest == name
    if old is not None and is_same and (judge is None or old.rules == judge.rules):
        return old if old.looks == looks else old._replace(looks=looks)
    read = None
    if data is not None and layout.is_node(path) and len(data) <= limit:
        from quaid.kb import node

        read = node.read(path, data.decode("utf-8", "replace"))
    findings = judge.judge(path, data, read) if judge else ()
    rules = judge.rules if judge and not any(each[1] in judge.passing for each in findings) else ""
    if old is not None and is_same:
        return old._replace(looks=looks, rules=rules, findings=findings)
    head = _head(read) if read else ""
    fresh[path] = head + read.body.lower() if read else ""
    fields = _packed(read.node) if read else ""
    return File(path, looks, name, fields, 0, len(head), len(fresh[path]), rules, findings)


def _head(read: "Read") -> str:
    """Return what a query searches besides the body, one field per line; the last line are the other properties."""
    node = read.node
    others = [f"{name} {value}" for name, value in read.parsed.properties.items() if name not in OWN_LINE]
    fields = (
        *(node.title, " ".join(node.tags), " ".join(node.projects), node.status, node.summary),
        *(" ".join([node.id, *node.inner]), " ".join(others)),
    )
    return "\n".join([" ".join(field.split("\n")) for field in fields]).lower() + "\n\n"


def _put_together(known: Catalog, files: dict[str, File], fresh: dict[str, str]) -> Catalog:
    """A catalog of files of which some have other texts than the one that is known."""
    parts, at = [], 0
    for path, file in files.items():
        text = fresh.get(path)
        if text is None:
            text = known.texts[file.start : file.end]
        if file.start != at:
            files[path] = file._replace(
                start=at, middle=at + file.middle - file.start, end=at + file.end - file.start
            )
        parts.append(text)
        at += len(text)
    catalog = Catalog(known.root, files, "".join(parts))
    changed = {path for path in fresh if not layout.is_index(path)}
    changed |= {path for path in known.files.keys() ^ files.keys() if not layout.is_index(path)}
    if not changed:
        catalog.index = known.index
    catalog._nodes = {path: node for path, node in known._nodes.items() if path not in changed}
    return catalog


# Remembering: a line of JSON with a column for each property of files, a line for each node, then all texts. So the
# columns are read in one step, and nodes stay packed until they are asked for.


def save(catalog: Catalog, folder: str) -> None:
    """Remember a look. Where that is not possible the next look takes longer."""
    blob = catalog.texts.encode("utf-8", "surrogatepass")
    newest = time.time_ns() - RACY_NS
    # What may still change unseen is remembered by its bytes alone.
    files = catalog.files.values()
    looks = [file.looks if _is_settled(file.looks, newest) else UNSEEN for file in files]
    paths, _, digests, _, *rest = ([file[place] for file in files] for place in range(len(File._fields)))
    seen = [[each[place] for each in looks] for place in range(len(Looks._fields))]
    first = json.dumps([VERSION, len(blob), catalog.index_problem, paths, seen, digests, *rest])
    data = "\n".join([first, *[file.fields for file in files], ""]).encode() + blob
    path = os.path.join(folder, NAME)
    unfinished = f"{path}-{os.getpid()}"
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            out.write(b"%08x " % zlib.crc32(data) + data)
        os.replace(unfinished, path)
    except OSError:
        try:
            os.unlink(unfinished)
        except OSError:
            pass


def _is_settled(looks: Looks, newest: int) -> bool:
    return looks.mtime_ns < newest and looks.ctime_ns < newest


def _remembered(root: str, folder: str) -> Catalog:
    try:
        with open(os.path.join(folder, NAME), "rb") as file:
            data = file.read()
        view = memoryview(data)  # whose parts are no copies
        if int(data[:8], 16) != zlib.crc32(view[9:]):
            raise ValueError
        end = data.index(b"\n")
        version, length, problem, *columns = json.loads(str(view[9:end], "utf-8"))
        if version != VERSION:
            raise ValueError
        paths, seen, digests, starts, middles, ends, rules, findings = columns
        nodes = str(view[end + 1 : len(data) - length], "utf-8").split("\n")[:-1]
        found = [tuple(map(tuple, each)) if each else () for each in findings]
        mtimes, ctimes, sizes, inodes = seen
        looks = map(Looks._make, zip(mtimes, ctimes, sizes, inodes, strict=True))
        rows = zip(paths, looks, digests, nodes, starts, middles, ends, rules, found, strict=True)
        files = dict(zip(paths, map(File._make, rows), strict=True))
        catalog = Catalog(root, files, str(view[len(data) - length :], "utf-8", "surrogatepass"))
        catalog.index_problem = problem
    except (OSError, ValueError, TypeError, IndexError):
        return Catalog(root, {}, "")
    return catalog


def _packed(node: Node) -> str:
    return json.dumps(node[1:], separators=(",", ":"))


def _node(path: str, values: list[Any]) -> Node:
    fields: list[Any] = [tuple(each) if type(each) is list else each for each in values]
    if fields[LINKS]:
        fields[LINKS] = tuple([Reference(*each) for each in fields[LINKS]])
    return Node(path, *fields)
