"""Power loss: every disk that could be left when the current goes off, rebuilt from what strace saw of a run.

Two models of a disk. In `eager`, names are durable at once, but bytes only up to the last fsync of their file: what
was renamed without one is empty or old. In `lazy`, names too are durable only when their folder was synced. A real
disk is somewhere between the two; what holds in both holds there.

Bytes that a program changes through shared memory are not seen: SQLite does so only with the index of its log (-shm),
which is worth nothing after a crash and left out.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from tests.faults import calls, handles
from tests.faults.killer import End, Nursery

Model = Literal["eager", "lazy"]

SEEN = (
    "write,pwrite64,writev,ftruncate,fsync,fdatasync,rename,renameat,renameat2,link,linkat,unlink,unlinkat,rmdir,"
    "mkdir,mkdirat,mmap,chdir,fchdir"
)
UNKNOWN = (
    *("fallocate", "copy_file_range", "sendfile", "splice", "truncate", "symlink", "symlinkat"),
    *("pwritev", "pwritev2", "open", "creat", "openat2"),
)
"""Calls that change files in ways which this replay does not know; if one is seen, the replay is worth nothing."""

_LINE = re.compile(r"(\d+) +(\w+)\((.*)\) += (0x[0-9a-f]+|-?\d+)(?:<([^>]*)>)?")
_UNFINISHED = re.compile(r"(\d+) +(.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"(\d+) +<\.\.\. \w+ resumed>(.*)$")
_HANDLE = re.compile(r"(\d+|AT_FDCWD)<([^>]*)>(\(deleted\))?")
_TEXT = re.compile(r'"([^"]*)"')


class Step(NamedTuple):
    """One call that may matter to a disk."""

    call: str
    path: str
    """The file that it is about; of an acknowledgement, what was said."""
    other: str = ""
    offset: int = 0
    data: bytes = b""


def record(
    nursery: Nursery, home: Path, kind: str, seed: object, rounds: int, log: Path
) -> tuple[End, list[Step]]:
    """Let a worker do so many rounds, and note each of its steps."""
    ended = calls.run(nursery, home, kind, *options(log), rounds=rounds, seed=seed)
    return ended, list(steps(log, str(home)))


def options(log: Path) -> tuple[str, ...]:
    """How strace is asked for all that the replay needs to see."""
    seen = ",".join((SEEN, handles.CALLS, *UNKNOWN))
    return ("-y", "-xx", "-s", "100000000", "-o", str(log), "-e", f"trace={seen}", "-e", f"raw={handles.RAW}")


def steps(log: Path, base: str) -> Iterator[Step]:
    """What a log says of the files below a folder, and of what was acknowledged, in its order."""
    births = {str(each[3]): (each[0], each[2]) for each in _calls(log) if each[1] in handles.BIRTHS}
    known = handles.Handles(births)
    for process, call, arguments, result, opened in _calls(log):
        if call in handles.CALLS.split(","):
            known.saw(process, call, arguments, result)
            if call != "openat":
                continue
        here = _HANDLE.findall(arguments)
        if here and here[0][0] == "AT_FDCWD":
            known.folders[process] = _plain(here[0][1])
        if result < 0:
            continue
        texts = [_bytes(each) for each in _TEXT.findall(arguments)]
        if call == "writev" and here[0][0] == "1" and not _below(base, here[0]):
            yield Step("said", b"".join(texts).decode().rstrip("\n"))
        elif call == "openat":
            path = _plain(opened)
            if path.startswith(base):
                yield Step(
                    "open", path, "".join(flag for flag in ("O_CREAT", "O_TRUNC") if flag in arguments)
                )
        elif call in ("chdir", "fchdir"):
            to = _plain(here[0][1]) if call == "fchdir" else texts[0].decode(errors="replace")
            known.folders[process] = os.path.normpath(os.path.join(known.folders.get(process, "/"), to))
        elif call == "mmap":
            if "MAP_SHARED" in arguments and "PROT_WRITE" in arguments and here:
                assert not _below(base, here[0]) or _plain(here[0][1]).endswith("-shm"), arguments
        elif call in UNKNOWN:
            named = [
                os.path.join(known.folders.get(process, "/"), each.decode(errors="replace")) for each in texts
            ]
            assert not any(each.startswith(base) for each in named), f"{call} is not known here"
            assert not any(_below(base, each) for each in here), f"{call} is not known here"
        elif call in ("write", "writev", "pwrite64", "ftruncate", "fsync", "fdatasync"):
            if not _below(base, here[0]):
                continue
            path, last = _plain(here[0][1]), arguments.rsplit(", ", 1)[-1]
            if call in ("write", "writev"):
                offset = known.write(process, int(here[0][0]), result)
                yield Step("write", path, "", offset, b"".join(texts)[:result])
            elif call == "pwrite64":
                yield Step("write", path, "", int(last), texts[0][:result])
            elif call == "ftruncate":
                yield Step("cut", path, "", int(last))
            else:
                yield Step("sync", path)
        else:
            named = [each.decode() for each in texts]
            above = [_plain(path) for _, path, _ in here] or [known.folders.get(process, "/")] * len(named)
            paths = [os.path.normpath(os.path.join(*each)) for each in zip(above, named, strict=False)]
            if any(path.startswith(base) for path in paths):
                kind = (
                    "exchange"
                    if "RENAME_EXCHANGE" in arguments
                    else call.removesuffix("2").removesuffix("at")
                )
                yield Step(kind, paths[0], paths[1] if len(paths) > 1 else "")


def _calls(log: Path) -> Iterator[tuple[str, str, str, int, str]]:
    begun: dict[str, str] = {}
    with open(log, encoding="ascii") as lines:
        for line in lines:
            whole = line.rstrip("\n")
            if unfinished := _UNFINISHED.match(whole):
                begun[unfinished[1]] = unfinished[2]
                continue
            if resumed := _RESUMED.match(whole):
                whole = f"{resumed[1]} {begun.pop(resumed[1], '')}{resumed[2]}"
            if found := _LINE.match(whole):
                yield found[1], found[2], found[3], int(found[4], 0), found[5] or ""


def _below(base: str, handle: tuple[str, str, str]) -> bool:
    return not handle[2] and _plain(handle[1]).startswith(base)


def _plain(path: str) -> str:
    return _bytes(path).decode(errors="replace")


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.replace("\\x", ""))


class Node:
    """A file or a folder, whatever its name is: as programs see it, and as the disk has it."""

    def __init__(self, data: bytes = b"", *, folder: bool = False) -> None:
        self.now = bytearray(data)
        self.kept = data
        self.names: dict[str, Node] | None = {} if folder else None
        self.kept_names: dict[str, Node] = {}


class Disk:
    """The files below a folder, step by step."""

    def __init__(self, base: Path) -> None:
        self.base = str(base)
        self.root = self._taken_over(base)

    def _taken_over(self, path: Path) -> Node:
        """What was there before is on the disk."""
        if not path.is_dir():
            return Node(path.read_bytes())
        folder = Node(folder=True)
        assert folder.names is not None
        for each in path.iterdir():
            folder.names[each.name] = self._taken_over(each)
        folder.kept_names = dict(folder.names)
        return folder

    def take(self, step: Step) -> bool:
        """Do a step; whether a disk may look different after it."""
        if step.call == "open":
            return self._open(step)
        if step.call in ("write", "cut"):
            node = self._find(step.path)
            assert node is not None, step.path
            _change(node, step)
            return False
        if step.call == "sync":
            node = self._find(step.path)
            if node is not None:
                node.kept, node.kept_names = bytes(node.now), dict(node.names or {})
            return node is not None
        return self._rename(step)

    def _open(self, step: Step) -> bool:
        folder, name = self._place(step.path)
        new = name not in folder and "O_CREAT" in step.other
        if new:
            folder[name] = Node()
        if "O_TRUNC" in step.other and name in folder:
            folder[name].now.clear()
        return new

    def _rename(self, step: Step) -> bool:
        folder, name = self._place(step.path)
        if step.call == "mkdir":
            folder[name] = Node(folder=True)
        elif step.call in ("unlink", "rmdir"):
            folder.pop(name, None)
        else:
            other, new = self._place(step.other)
            if step.call == "exchange":
                folder[name], other[new] = other[new], folder[name]
            elif step.call == "link":
                other[new] = folder[name]
            elif step.call == "rename":
                other[new] = folder.pop(name)
            else:
                raise AssertionError(step.call)
        return True

    def _place(self, path: str) -> tuple[dict[str, Node], str]:
        above, _, name = path.rpartition("/")
        folder = self._find(above)
        assert folder is not None, path
        assert folder.names is not None, path
        return folder.names, name

    def _find(self, path: str) -> Node | None:
        node: Node | None = self.root
        for name in path[len(self.base) :].strip("/").split("/"):
            if name and node is not None:
                node = (node.names or {}).get(name)
        return node

    def left(self, model: Model) -> dict[str, bytes | None]:
        """What is there after the current went off: the bytes of each file by its path; None: a folder."""
        found: dict[str, bytes | None] = {}
        _gather(self.root, "", model, found)
        return found


def _change(node: Node, step: Step) -> None:
    if step.call == "cut":
        del node.now[step.offset :]
        node.now.extend(bytes(step.offset - len(node.now)))
        return
    offset = step.offset if step.offset >= 0 else len(node.now)
    if len(node.now) < offset:
        node.now.extend(bytes(offset - len(node.now)))
    node.now[offset : offset + len(step.data)] = step.data


def _gather(folder: Node, above: str, model: Model, found: dict[str, bytes | None]) -> None:
    names = folder.names if model == "eager" else folder.kept_names
    for name, node in (names or {}).items():
        if name.endswith("-shm"):
            continue
        if node.names is None:
            found[above + name] = node.kept
        else:
            found[above + name] = None
            _gather(node, f"{above}{name}/", model, found)
