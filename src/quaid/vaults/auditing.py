"""Whether folder, index, pages and kept bytes agree. Looks at everything and changes nothing.

A sync trusts what it saw before and mends; an audit reads every file again and tells.
"""

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import Literal, NamedTuple

from quaid.errors import FileTrouble, NotFound
from quaid.storage import collections, history
from quaid.storage.collections import Collection, PageFile
from quaid.storage.sqlite.connection import Database
from quaid.vaults import ignoring, index, scan
from quaid.vaults.index import ID_KEY
from quaid.vaults.scan import LARGEST_FILE, Folder, Found
from quaid.vaults.syncing import INCOMPLETE

Progress = Callable[[int, int, str], None]

Kind = Literal["folder", "unreadable", "no page", "no file", "changed", "bytes", "id"]


class Difference(NamedTuple):
    kind: Kind
    where: str
    problem: str


class Audit(NamedTuple):
    files: int
    pages: int
    differences: tuple[Difference, ...]


def audit(db: Database, collection: Collection, progress: Progress) -> Audit:
    """Compare them all."""
    work = Auditing(db, collection, progress)
    kept = collections.page_files(db, collection.id)
    try:
        with Folder(collection.root or "", scan.endings(collection.kind)) as folder:
            work.read(folder)
    except (NotFound, FileTrouble) as trouble:
        work.say("folder", collection.root or "", str(trouble).rstrip("."))
    else:
        work.compare(kept)
    work.look_at_bytes(kept)
    return Audit(len(work.hashes), len(kept), tuple(work.differences))


class Auditing:
    def __init__(self, db: Database, collection: Collection, progress: Progress) -> None:
        self.db = db
        self.collection = collection
        self.progress = progress
        self.differences: list[Difference] = []
        self.hashes: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self.unreadable: list[str] = []

    def say(self, kind: Kind, where: str, problem: str) -> None:
        self.differences.append(Difference(kind, where, problem))

    def read(self, folder: Folder) -> None:
        """Every file of the folder that would make a page."""
        ignored = ignoring.matcher(self.collection.ignore_patterns, self.collection.kind)
        files: list[Found] = []
        for each in folder.walk(ignored):
            if isinstance(each, Found):
                files += [each] if each.kind != "sidecar" else []
            elif each.reason in INCOMPLETE:
                self.unreadable.append(each.path)
                self.say("unreadable", each.path, each.reason)
        for done, each in enumerate(files):
            self.progress(done, len(files), "Reading")
            self._read(folder, each.path)
        self.progress(len(files), len(files), "Reading")

    def _read(self, folder: Folder, path: str) -> None:
        try:
            data = folder.read(path)
        except OSError as error:
            self.unreadable.append(path)
            self.say("unreadable", path, f"cannot be read: {error.strerror}")
            return
        self.hashes[path] = index.digest(data) if len(data) <= LARGEST_FILE else ""
        if ID_KEY.encode() in data or index.is_org(path):
            named = index.identity(index.read(path, data).page, path)
            if named is not None:
                self.ids[path] = named

    def compare(self, kept: list[PageFile]) -> None:
        """Files and pages against each other."""
        troubles = {
            each.path: each.problem for each in collections.file_problems(self.db, self.collection.id)
        }
        known = {each.path: each for each in kept if each.path is not None}
        for path in self.hashes.keys() - known.keys():
            self.say("no page", path, troubles.get(path, "the index has not taken it in; a sync will"))
        for each in kept:
            if each.path is None:
                self.say("no file", each.slug, "the index knows of no file")
            elif each.path not in self.hashes:
                if not any(each.path == path or each.path.startswith(path) for path in self.unreadable):
                    self.say("no file", each.path, f"the file of {each.slug} is not there")
            elif self.hashes[each.path] != each.content_hash:
                self.say("changed", each.path, "it is not what the index has read; a sync will take it in")
        self._compare_ids(known)
        self.differences.sort()

    def _compare_ids(self, known: dict[str, PageFile]) -> None:
        times = Counter(self.ids.values())
        for path, named in self.ids.items():
            if times[named] > 1:
                self.say("id", path, f"{times[named]} files name the id {named}; take it out of the copies")
            elif path in known and known[path].uuid != named:
                self.say("id", path, f"it names the id {named}, its page has {known[path].uuid}")

    def look_at_bytes(self, kept: list[PageFile]) -> None:
        """Whether what would be restored is what was last read."""
        for done, each in enumerate(kept):
            self.progress(done, len(kept), "Comparing")
            where = each.path or each.slug
            if each.raw_id is None or each.raw_hash is None:
                self.say("bytes", where, "no bytes are kept of it; it could not be restored")
            elif hashlib.sha256(history.version_bytes(self.db, each.raw_id)).hexdigest() != each.raw_hash:
                self.say("bytes", where, "the bytes that are kept of it are damaged")
            elif each.content_hash is not None and each.raw_hash != each.content_hash:
                self.say("bytes", where, "the bytes that are kept of it are not those that were last read")
        self.progress(len(kept), len(kept), "Comparing")
