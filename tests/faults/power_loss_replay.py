"""Power loss: every disk that could be left when the current goes off, rebuilt from what strace saw of a run.

A disk keeps what was synced; of the rest it may keep anything. So there are four models of it:

- `eager`: names are there at once, and so is the cutting of a file; bytes only up to the last fsync of their file.
  What was renamed without one is empty or old.
- `lazy`: nothing is there but what was synced, names neither.
- `torn`: as `eager`; but of the file that was written to last, all bytes had found their way to the disk, and of the
  last write the first sectors. What is written in place is cut short.
- `early`: as `torn`; but of that file, of all writes since its fsync, only the very last had. What has to be there
  before it, in that file or in another, is not.

The last two are about one file at a time. What holds in all four need not hold for every mixture of unsynced writes.
A sector is written whole or not at all.

Bytes that a program changes through shared memory are not seen: SQLite does so only with the index of its log (-shm),
which is worth nothing after a crash and left out.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from tests.faults import file_descriptors, syscalls
from tests.faults.killer import End, ForkServer

Model = Literal["eager", "lazy", "torn", "early"]
MODELS: tuple[Model, ...] = ("eager", "lazy", "torn", "early")
UNSYNCED = ("torn", "early")
"""Models in which bytes are on the disk that nobody has asked to be there."""

SECTOR = 512

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
    fork_server: ForkServer, home: Path, kind: str, seed: object, rounds: int, log: Path
) -> tuple[End, list[Step]]:
    """Let a worker do so many rounds, and note each of its steps."""
    ended = syscalls.run(fork_server, home, kind, *options(log), rounds=rounds, seed=seed)
    return ended, list(steps(log, str(home)))


def options(log: Path) -> tuple[str, ...]:
    """How strace is asked for all that the replay needs to see."""
    seen = ",".join((SEEN, file_descriptors.CALLS, *UNKNOWN))
    return (
        "-y",
        "-xx",
        "-s",
        "100000000",
        "-o",
        str(log),
        "-e",
        f"trace={seen}",
        "-e",
        f"raw={file_descriptors.RAW}",
    )


def steps(log: Path, base: str) -> Iterator[Step]:
    """What a log says of the files below a folder, and of what was acknowledged, in its order."""
    births = {str(call[3]): (call[0], call[2]) for call in _calls(log) if call[1] in file_descriptors.BIRTHS}
    known = file_descriptors.Handles(births)
    for process, call, arguments, result, opened in _calls(log):
        if call in file_descriptors.CALLS.split(","):
            known.saw(process, call, arguments, result)
            if call != "openat":
                continue
        here = _HANDLE.findall(arguments)
        if here and here[0][0] == "AT_FDCWD":
            known.folders[process] = _plain(here[0][1])
        if result < 0:
            continue
        texts = [_bytes(match) for match in _TEXT.findall(arguments)]
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
                os.path.join(known.folders.get(process, "/"), text.decode(errors="replace")) for text in texts
            ]
            assert not any(item.startswith(base) for item in named), f"{call} is not known here"
            assert not any(_below(base, item) for item in here), f"{call} is not known here"
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
            named = [text.decode() for text in texts]
            above = [_plain(path) for _, path, _ in here] or [known.folders.get(process, "/")] * len(named)
            paths = [os.path.normpath(os.path.join(*item)) for item in zip(above, named, strict=False)]
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
            if match := _LINE.match(whole):
                yield match[1], match[2], match[3], int(match[4], 0), match[5] or ""


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
        self.cut: bytes | None = None
        """As the disk has it where a cut needs no fsync; None: as in `kept`."""
        self.names: dict[str, Node] | None = {} if folder else None
        self.kept_names: dict[str, Node] = {}


class Last(NamedTuple):
    """The last change of bytes, as long as they are not synced."""

    node: Node
    step: Step
    covered: bytes
    """What stood where it was written."""

    def left(self, model: Model) -> bytes:
        """What the disk has of the file."""
        if model == "early":
            kept = bytearray(self.node.kept)
            _change(kept, self.step)
            return bytes(kept)
        start, end = self.step.offset, self.step.offset + len(self.step.data)
        sector = (start + end) // 2 // SECTOR * SECTOR
        if self.step.call == "cut" or not start < sector < end:
            return bytes(self.node.now)
        return bytes(self.node.now[:sector] + self.covered[sector - start :] + self.node.now[end:])


class Disk:
    """The files below a folder, step by step."""

    def __init__(self, base: Path) -> None:
        self.base = str(base)
        self.root = self._taken_over(base)
        self.last: Last | None = None

    def _taken_over(self, path: Path) -> Node:
        """What was there before is on the disk."""
        if not path.is_dir():
            return Node(path.read_bytes())
        folder = Node(folder=True)
        assert folder.names is not None
        for item in path.iterdir():
            folder.names[item.name] = self._taken_over(item)
        folder.kept_names = dict(folder.names)
        return folder

    def take(self, step: Step) -> bool:
        """Do a step; whether a disk may look different after it."""
        if step.call == "open":
            return self._open(step)
        if step.call in ("write", "cut"):
            node = self._find(step.path)
            assert node is not None, step.path
            return self._write(node, step)
        if step.call == "sync":
            node = self._find(step.path)
            if node is not None:
                node.kept, node.cut, node.kept_names = bytes(node.now), None, dict(node.names or {})
                if self.last and self.last.node is node:
                    self.last = None
            return node is not None
        return self._rename(step)

    def _open(self, step: Step) -> bool:
        folder, name = self._place(step.path)
        new = name not in folder and "O_CREAT" in step.other
        if new:
            folder[name] = Node()
        if "O_TRUNC" in step.other and folder[name].now:
            self._write(folder[name], Step("cut", step.path))
            return True
        return new

    def _write(self, node: Node, step: Step) -> bool:
        """Change bytes that are not on the disk, but for a cut."""
        if step.offset < 0:
            step = step._replace(offset=len(node.now))
        self.last = Last(node, step, bytes(node.now[step.offset : step.offset + len(step.data)]))
        _change(node.now, step)
        if step.call == "cut":
            cut = bytearray(node.kept if node.cut is None else node.cut)
            _change(cut, step)
            node.cut = bytes(cut)
        return True

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
        results: dict[str, bytes | None] = {}
        self._gather(self.root, "", model, results)
        return results

    def _gather(self, folder: Node, above: str, model: Model, found: dict[str, bytes | None]) -> None:
        names = folder.kept_names if model == "lazy" else folder.names
        for name, node in (names or {}).items():
            if name.endswith("-shm"):
                continue
            if node.names is not None:
                found[above + name] = None
                self._gather(node, f"{above}{name}/", model, found)
            elif model in UNSYNCED and self.last and self.last.node is node:
                found[above + name] = self.last.left(model)
            else:
                found[above + name] = node.kept if model == "lazy" or node.cut is None else node.cut


def _change(data: bytearray, step: Step) -> None:
    """A write or a cut, at a place that may be beyond the end."""
    if len(data) < step.offset:
        data.extend(bytes(step.offset - len(data)))
    if step.call == "cut":
        del data[step.offset :]
    else:
        data[step.offset : step.offset + len(step.data)] = step.data
