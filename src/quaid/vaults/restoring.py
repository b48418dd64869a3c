"""A collection written back into a folder, byte for byte, from what is kept of its files.

All of it is written beside the target and read again before it gets its name: a folder that is there is whole.
Old folders are left as they are. Knows nothing of what the files say.
"""

import os
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

from quaid.errors import AlreadyExists, FileTrouble
from quaid.model.sync_plan import FileSignature, ScannedFile
from quaid.storage import collections, files as durable_files, history
from quaid.storage.collections import Collection, CollectionState, PageFile
from quaid.storage.sqlite.connection import Database
from quaid.storage.sqlite.errors import translate_os_errors
from quaid.vaults import ignoring, index, scan
from quaid.vaults.scan import Folder, Found
from quaid.vaults.writer import FolderWriter

Progress = Callable[[int, int, str], None]


class Restored(NamedTuple):
    files: int
    bytes: int
    without_bytes: tuple[str, ...]
    """Pages of which no bytes are kept."""


def restore(
    db: Database, collection: Collection, target: str, *, now: str, token: str, progress: Progress
) -> Restored:
    """Write the pages of a collection into a new or empty folder, which becomes its own."""
    # A restore that was killed leaves "restoring" behind: the folder that it may have made is looked for first.
    before: CollectionState = "detached" if collection.state == "restoring" else collection.state
    wanted = collections.page_files(db, collection.id)
    there = [each for each in wanted if each.raw_id is not None]
    rules = collection.ignore_patterns.encode()
    is_done = collection.state == "restoring" and _holds(target, there, rules)
    if not is_done:
        _refuse_full(target)
    db.write(lambda tx: collections.set_state(tx, collection.id, "restoring", now))
    try:
        if not is_done:
            _put_in_place(db, there, rules, target, token, progress)
        size = _settle(db, collection, there, target, now)
    except BaseException:
        db.write(lambda tx: collections.set_state(tx, collection.id, before, now))
        raise
    return Restored(len(there), size, tuple(each.slug for each in wanted if each.raw_id is None))


def _refuse_full(target: str) -> None:
    with translate_os_errors(target):
        if os.path.lexists(target) and not os.path.isdir(target):
            raise FileTrouble(path=target, problem="is a file, not a folder; name another one")
        if os.path.isdir(target) and os.listdir(target):
            raise AlreadyExists(path=target, hint="It is not empty; choose a new or empty folder.")


def _put_in_place(
    db: Database, wanted: list[PageFile], rules: bytes, target: str, token: str, progress: Progress
) -> None:
    """Write beside the target, check, and rename: the target is empty or whole."""
    above, name = os.path.split(target)
    staged = os.path.join(above, f".{name[:100]}.quaid-{token}")
    with translate_os_errors(target):
        durable_files.make_folders(above)
        try:
            with FolderWriter(staged, force=False) as writer:
                for done, each in enumerate(wanted):
                    progress(done, len(wanted), "Writing")
                    writer.write(str(each.raw_path), history.version_bytes(db, each.raw_id or 0))
                if rules:
                    writer.write(ignoring.FILE, rules)
            os.sync()
            if not _holds(staged, wanted, rules):
                raise FileTrouble(path=staged, problem="does not read as it was written; check the disk")
            progress(len(wanted), len(wanted), "Writing")
            os.rename(staged, target)  # over an empty folder, and no other
            durable_files.sync_folder(above)
        finally:
            shutil.rmtree(staged, ignore_errors=True)


def _holds(folder: str, wanted: list[PageFile], rules: bytes) -> bool:
    """Whether a folder holds these files and ignore rules, byte for byte, and nothing else."""
    if not os.path.isdir(folder):
        return False
    files = sum(len(names) for _, _, names in os.walk(folder))
    try:
        with Folder(folder) as opened:
            if rules and opened.read(ignoring.FILE) != rules:
                return False
            return files == len(wanted) + bool(rules) and all(
                index.digest(opened.read(str(each.raw_path))) == each.raw_hash for each in wanted
            )
    except OSError:
        return False


def _settle(db: Database, collection: Collection, wanted: list[PageFile], target: str, now: str) -> int:
    """The collection lives in its new folder from now on."""
    with Folder(target, scan.endings(collection.kind)) as folder:
        looked = [(each, folder.look(str(each.raw_path))) for each in wanted]
        identity = str(folder.identity)

    def work(tx: Any) -> int:
        size = 0
        collections.forget_all_files(tx, collection.id)
        for each, found in looked:
            if isinstance(found, Found):  # what vanished meanwhile is the next sync's business
                stat = FileSignature(found.size, found.mtime_ns, found.ctime_ns, found.inode)
                file = ScannedFile(found.path, found.key.casefold(), stat)
                collections.record_file(tx, collection.id, file, str(each.raw_hash), each.page_id, now)
                size += found.size
        collections.set_root(tx, collection.id, target, collection.writable, now)
        collections.set_state(tx, collection.id, "active", now)
        collections.set_root_identity(tx, collection.id, identity)
        collections.mark_synced(tx, collection.id, now)
        return size

    return db.write(work)
