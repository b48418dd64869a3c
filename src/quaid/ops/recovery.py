"""Rebuild a memory whose file was deleted from the folders that were attached to it.

The new file is built beside its place and renamed when all folders are taken in: a memory that is there is whole.
"""

import os
from contextlib import suppress

from quaid.brain import Brain
from quaid.errors import QuaidError
from quaid.model.plain_text import count_noun
from quaid.storage import collections, files as durable_files
from quaid.storage.collections import AttachedFolder, FolderList
from quaid.storage.sqlite import backup as backups
from quaid.storage.sqlite.connection import WriterLock
from quaid.storage.sqlite.errors import translate_os_errors

UNFINISHED = "-unfinished"


def ready(brain: Brain) -> None:
    """Before a question: rebuild a deleted memory, or note the folders of one that has no list of them yet."""
    if os.path.lexists(brain.settings.db_path):
        if not os.path.exists(collections.folder_list_path(brain.db.path)) and brain.db.writable:
            collections.write_folder_list(brain.db)
        return
    path = os.path.realpath(brain.settings.db_path)
    known = collections.read_folder_list(path)
    if known is None or not brain.leaves_marks:
        return  # whoever opens the memory says that there is none
    with suppress(QuaidError):
        brain.close()  # a server may still have the deleted file open
    with WriterLock(path).held():
        if os.path.lexists(path):  # another process was faster
            return
        told = _rebuilt(brain, path, known)
    if brain.notice is not None:
        brain.notice(told)


def begin_anew(brain: Brain, path: str) -> str:
    """Make a new memory. Return the folders of a deleted one that was at its place, which are not attached to it."""
    former = collections.read_folder_list(os.path.realpath(path))
    collections.write_folder_list(brain.create(path))
    return ", ".join(f"{each.name} ({each.root})" for each in former.folders) if former else ""


def _rebuilt(brain: Brain, path: str, known: FolderList) -> str:
    unfinished = path + UNFINISHED
    taken_in, missing = [], []
    with translate_os_errors(path):
        log = _moved_log(path)
        durable_files.remove_with_sidecars(unfinished)
        try:
            with brain.beside(unfinished) as other:
                other.create(unfinished, known.memory_id)
                for each in known.folders:
                    problem = _take_in(other, each)
                    if problem:
                        missing.append(f"{each.name} ({problem})")
                    else:
                        taken_in.append(each.name)
                shown = collections.page_counts(other.db)
                pages = {each.name: shown.get(each.id, (0, 0))[0] for each in collections.list_all(other.db)}
            durable_files.rename_durably(unfinished, path)
        finally:
            durable_files.remove_with_sidecars(unfinished)
            with suppress(FileNotFoundError):
                os.unlink(WriterLock(unfinished).path)
    return _told(brain, path, known, [(name, pages[name]) for name in taken_in], missing, log)


def _take_in(brain: Brain, folder: AttachedFolder) -> str:
    """Attach a folder and take its files in. Return what is wrong with it, if anything."""
    from quaid.folders.sync import sync_collection

    now = brain.now()

    def work(tx: object) -> None:
        added = collections.add(tx, folder.name, folder.kind, folder.root, folder.writable, now)  # type: ignore[arg-type]
        if folder.is_write_target:
            collections.set_write_target(tx, added)  # type: ignore[arg-type]

    brain.db.write(work)
    if not os.path.isdir(folder.root):
        return f"{folder.root} is not there"
    found = collections.require(brain.db, folder.name)
    try:
        sync_collection(brain.db, found, now=now, new_uuid=brain.new_uuid, progress=brain.progress)
    except QuaidError as error:
        return str(error)
    return ""


def _moved_log(path: str) -> str:
    """Give the log that a deleted memory left another name: SQLite would play it into the new file."""
    with suppress(FileNotFoundError):
        os.unlink(path + "-shm")
    if not os.path.lexists(path + "-wal"):
        return ""
    name, number = f"{path}-wal-of-deleted", 1
    while os.path.lexists(name):
        number += 1
        name = f"{path}-wal-of-deleted-{number}"
    os.rename(path + "-wal", name)
    return name


def _told(
    brain: Brain, path: str, known: FolderList, taken_in: list[tuple[str, int]], missing: list[str], log: str
) -> str:
    from quaid.ops.mending import backup_folders

    pages = ", ".join(f"{count_noun(number, 'page')} of {name}" for name, number in taken_in) or "no pages"
    told = f"{path} was deleted and is rebuilt from its folders: {pages}."
    told += "".join(f" Not rebuilt: {each}." for each in missing)
    told += " Pages, links, facts and conversations that no file holds are not in it"
    backup = (
        backups.newest_copy_with_id(known.memory_id, backup_folders(brain), but=path)
        if known.memory_id
        else None
    )
    if backup:
        told += f"; the backup {backup} has those of its day"
    return f"{told}; the log that it left is {log}" if log else told
