"""A collection and its folder: written back whole, compared, and with page ids in the files."""

import os
from typing import Annotated, NamedTuple

from quaid.brain import Brain
from quaid.errors import AlreadyExists, CollectionReadOnly, InvalidArgument
from quaid.folders.page_writer import IdsReport
from quaid.folders.restore import AuditDifference
from quaid.ops.collections import overlap
from quaid.ops.register import Arg, op
from quaid.storage import collections
from quaid.storage.collections import Collection

Name = Annotated[str, Arg("The collection, as in notes.", positional=True)]


class RestoreRecord(NamedTuple):
    name: str
    root: str
    files: int
    bytes: int
    left: str | None
    """The folder that it had before, if it is still there; it was not touched."""
    without_bytes: tuple[str, ...]


class AuditRecord(NamedTuple):
    name: str
    root: str
    files: int
    pages: int
    differences: tuple[AuditDifference, ...]

    @property
    def exit_status(self) -> int:
        return 1 if self.differences else 0


@op("owner", command="collection restore", examples=("quaid collection restore notes ~/notes-again",))
def collection_restore(
    brain: Brain,
    name: Name,
    target: Annotated[str, Arg("A new or empty folder.", positional=True, path=True)],
) -> RestoreRecord:
    """Write every page of a collection back, byte for byte, into an empty folder, which becomes its folder.

    Works when the old folder is gone. Pictures and other files were never in the memory."""
    from quaid.folders import restore

    found = _with_folder(brain, name)
    place = os.path.realpath(brain.settings.path(target))
    for each in collections.list_all(brain.db):
        if each.root and overlap(each.root, place) and not (each.name == name and each.root == place):
            hint = f"It lies in the folder of {each.name} ({each.root}), or around it; choose another."
            raise AlreadyExists(path=target, hint=hint)
    done = restore.restore_collection(
        brain.db, found, place, now=brain.now(), token=brain.new_uuid(), progress=brain.progress
    )
    collections.write_folder_list(brain.db)
    old = found.root if found.root and found.root != place and os.path.isdir(found.root) else None
    return RestoreRecord(name, place, done.files, done.bytes, old, done.without_bytes)


@op("owner", command="collection audit", examples=("quaid collection audit notes",))
def collection_audit(brain: Brain, name: Name) -> AuditRecord:
    """Read every file of a collection again and compare: files, pages, kept bytes, ids. Changes nothing.

    Exits 1 when something differs."""
    from quaid.folders import restore

    found = _with_folder(brain, name)
    told = restore.audit_collection(brain.db, found, brain.progress)
    return AuditRecord(name, found.root or "", told.files, told.pages, told.differences)


@op(
    "owner",
    command="collection migrate-ids",
    examples=("quaid collection migrate-ids notes --dry-run", "quaid collection migrate-ids notes"),
)
def collection_migrate_ids(
    brain: Brain,
    name: Name,
    dry_run: Annotated[bool, Arg("Only say which files would change.")] = False,
) -> IdsReport:
    """Write each page's id into the front matter of its file, and nothing else, so that it is known wherever it goes.

    Can be stopped; the next run goes on."""
    from quaid.folders.sync import sync_collection

    found = _with_folder(brain, name)
    if found.state != "active" or not found.writable:
        why = "is read-only" if found.state == "active" else f"is {found.state}"
        raise CollectionReadOnly(name=name, why=why)
    if not dry_run:
        sync_collection(brain.db, found, now=brain.now(), new_uuid=brain.new_uuid, progress=brain.progress)
    return write_ids(brain, found, dry_run)


def write_ids(brain: Brain, collection: Collection, dry_run: bool = False) -> IdsReport:
    """The ids of a collection that was just synced, into its files."""
    from quaid.folders import page_writer

    return page_writer.write_ids(
        brain.db,
        collection,
        now=brain.now,
        new_uuid=brain.new_uuid,
        progress=brain.progress,
        dry_run=dry_run,
    )


def _with_folder(brain: Brain, name: str) -> Collection:
    found = collections.require(brain.db, name)
    if found.root is None:
        problem = f"{name} has no folder: its pages live in the database; `quaid export` writes them out"
        raise InvalidArgument(name="name", problem=problem)
    return found
