"""One writer of a store at a time, over all processes; and what a killed one leaves behind is cleared away.

Knows the lock in .git/ai-kb and git's own lock files. The system drops our lock when its holder dies. A git that the
holder had started inherits it: when we get the lock, no git of ours is at work any more, killed holder or not. (Not
so for those that only speak to the remote: they touch neither the tree nor the index.)

A lock file of git says nothing about its owner, and a person's git may be running. It is removed only when

- no git is at work in the store, as the list of processes tells, and
- it is ours: it came after a holder of our lock had begun who never finished; or it is a minute old.

Where processes cannot be listed, ours must be a minute old and any other an hour.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from quaid.errors import DiskFull, GitFailed, StoreLocked
from quaid.kb import guarding
from quaid.kb.git import Git
from quaid.storage import files as durable_files
from quaid.storage.files import FIRST_LOCK_PAUSE, LONGEST_LOCK_PAUSE, try_lock_file
from quaid.storage.sqlite.errors import translate_os_errors

PATIENCE = 30.0
"""Seconds that a writer waits for its turn."""

GIT_PATIENCE = 2.0
"""Seconds that a person's git has to finish."""

MINUTE, HOUR = 60.0, 3600.0

LOCKS = ("index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "shallow.lock", "ORIG_HEAD.lock")

HARMLESS = frozenset(
    "push fetch send-pack receive-pack upload-pack pack-objects index-pack unpack-objects rev-list remote-https "
    "remote-http remote".split()
)
"""What git calls itself when it speaks to a remote: it may hang for long and locks nothing for long."""


@contextmanager
def held(git: Git, what: str = "ai-kb", patience: float = PATIENCE) -> Iterator[None]:
    """Write alone. Waits, then raises StoreLocked; what a killed writer was changing is put back first."""
    guarding.look_at(git.root)
    path = os.path.join(git.ours, "lock")
    with translate_os_errors(path):
        durable_files.make_folders(git.ours)
        handle = _waited_for(path, patience, git.root)
    before = _git_locks(git.folder)
    try:
        git.keep = (handle,)
        _clear(git, _holder(handle))  # refused, it leaves the name of who was killed to the next one
        _write(handle, f"{os.getpid()} {what}".encode())
        try:
            git.recover()
            yield
        except Exception as error:
            # An orderly failure; a kill leaves the name, and so is known for what it is. A git of ours that is killed
            # may go unnoticed, until the next one meets its lock.
            if isinstance(error, (GitFailed, DiskFull, StoreLocked)):
                _sweep(git, before)
            _write(handle, b"")
            raise
        _sweep(git, before)  # git does not mind if it cannot remove a lock of its own
        _write(handle, b"")
    finally:
        git.keep = ()
        os.close(handle)


def _waited_for(path: str, patience: float, root: str) -> int:
    deadline, pause = time.monotonic() + patience, FIRST_LOCK_PAUSE
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        try:
            if try_lock_file(handle) and _is_current(handle, path):
                return handle
            if time.monotonic() >= deadline:
                holder = _holder(handle)[0]
                told = f"{holder} for more than {patience:g} s" if holder else "another process"
                raise StoreLocked(path=root, holder=told, hint="")
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_LOCK_PAUSE)


def _is_current(handle: int, path: str) -> bool:
    """Whether the locked file is still the one at the path."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except FileNotFoundError:
        return False


def _holder(handle: int) -> tuple[str, float]:
    """Who wrote their name into the lock, as in "query (process 4711)", and when. Nobody: all ended well."""
    try:
        text = os.pread(handle, 200, 0).decode(errors="replace")
    except (AttributeError, OSError):  # a system whose locks forbid to read
        return "", 0.0
    number, _, what = text.strip().partition(" ")
    return (f"{what} (process {number})" if number else ""), os.fstat(handle).st_mtime


def _write(handle: int, text: bytes) -> None:
    os.lseek(handle, 0, os.SEEK_SET)
    os.ftruncate(handle, 0)
    os.write(handle, text)


def _clear(git: Git, left: tuple[str, float]) -> None:
    """Remove git's own locks that nobody holds any more; StoreLocked for one that somebody may."""
    deadline = time.monotonic() + GIT_PATIENCE
    for path in _git_locks(git.folder):
        while not _removed(path, git.root, left):
            if time.monotonic() >= deadline:
                name = os.path.relpath(path, git.root)
                hint = f" Its lock is {name}; if no git is running there, it can be deleted."
                raise StoreLocked(path=git.root, holder="another git", hint=hint)
            time.sleep(LONGEST_LOCK_PAUSE)


def _sweep(git: Git, before: list[str]) -> None:
    """Remove the locks of a git of ours that failed or was killed: new ones that no program has open."""
    for path in {*_git_locks(git.folder)} - {*before}:
        if _nobody_has(path):
            _removed(path, git.root, ("it", 0.0))


def _nobody_has(path: str) -> bool:
    """Whether no process of this user has a file open; where that cannot be told, somebody may."""
    if sys.platform != "linux":
        return False
    path = os.path.realpath(path)
    for number in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # of somebody else, or gone by now
            for handle in os.listdir(f"/proc/{number}/fd"):
                with suppress(FileNotFoundError):
                    if os.readlink(f"/proc/{number}/fd/{handle}") == path:
                        return False
    return True


def _git_locks(folder: str) -> list[str]:
    found = [os.path.join(folder, name) for name in LOCKS if os.path.lexists(os.path.join(folder, name))]
    for place, _, names in os.walk(os.path.join(folder, "refs")):
        found += [os.path.join(place, name) for name in names if name.endswith(".lock")]
    return found


def _removed(path: str, root: str, left: tuple[str, float]) -> bool:
    """Whether the lock file is gone, by us or by its owner."""
    try:
        since = os.lstat(path).st_mtime
    except FileNotFoundError:
        return True
    age = time.time() - since
    ours = bool(left[0]) and since >= left[1] - 0.1  # file times may be coarser than the clock
    at_work = git_at_work(root)
    if at_work is None:
        is_stale = age >= (MINUTE if ours else HOUR)
    else:
        is_stale = not at_work and (ours or age >= MINUTE)
    if not is_stale:
        return False
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except PermissionError:  # a system that does not remove what is open
        return False
    return True


def git_at_work(root: str, platform: str = sys.platform) -> bool | None:
    """Whether a git that could hold a lock is running in the store. None: this system does not tell."""
    if platform == "linux":
        return _at_work_by_proc(os.path.realpath(root))
    if platform == "win32":
        return None
    from quaid.kb.calling import run

    done = run(("ps", "-axo", "comm="), "/", {"PATH": "/bin:/usr/bin", "LC_ALL": "C"}, seconds=10)
    if done.status != 0:
        return None
    names = {os.path.basename(line.strip()) for line in done.out.decode(errors="replace").splitlines()}
    return any(name == "git" or name.startswith("git-") for name in names)


def _at_work_by_proc(root: str) -> bool:
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/comm", encoding="utf-8", errors="replace") as file:
                if not file.read().startswith("git"):
                    continue
            with open(f"/proc/{number}/cmdline", "rb") as file:
                words = os.fsdecode(file.read()).split("\0")
            with open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as file:
                if file.read().rpartition(")")[2].split()[0] in ("Z", "X"):
                    continue  # dead, and only not yet buried
            place = os.readlink(f"/proc/{number}/cwd")
        except (FileNotFoundError, ProcessLookupError):
            continue
        except PermissionError:
            return True
        if len(words) > 1 and words[1] in HARMLESS:
            continue
        if place == root or place.startswith(root + "/") or any(root in word for word in words):
            return True
    return False
