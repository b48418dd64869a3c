"""A page saved where it lives: in its file and its rows, or in its rows alone; what it said before is kept.

The one way for edits made here. A file is changed only in the bytes that the edit needs, and only if it still
says what the index has read; else nothing happens and the author is told. Runs inside the caller's transaction:
the file is durable before the transaction is. Should the transaction fail, the file is changed back; should the
machine stop between the two, the next sync takes the file in.
"""

from collections.abc import Callable
from typing import Any

from quaid.errors import (
    CollectionReadOnly,
    FileChanged,
    FileTrouble,
    InvalidArgument,
    PartOfOrgFile,
    QuaidError,
    TooLarge,
)
from quaid.formats import markdown
from quaid.model import dates
from quaid.model.page import Page
from quaid.model.sync_plan import FileSignature, ScannedFile
from quaid.storage import collections, history, page_edits
from quaid.storage.collections import Collection
from quaid.storage.page_edits import SaveResult
from quaid.storage.pages import PageRow
from quaid.storage.sqlite.connection import Database
from quaid.vaults import heading_pages, ignoring, index, replacing, scan
from quaid.vaults.scan import LARGEST_FILE, Folder, Found


def save(
    db: Database,
    tx: Any,
    collection: Collection,
    old: PageRow | None,
    new: Page,
    *,
    uuid: str,
    now: str,
    expected_version: int | None,
    data: bytes | None = None,
) -> SaveResult:
    """Write a page against the version that its author had read, and its file if it has one.

    `data` are the file's new bytes, for who knows them; else its old ones are changed where the page differs."""
    if collection.root is not None and (not collection.writable or collection.state != "active"):
        why = "is read-only" if collection.state == "active" else f"is {collection.state}"
        raise CollectionReadOnly(name=collection.name, why=why)
    if collection.root is not None:
        new = _titled(db, old, new)
    saved = page_edits.save(
        tx, new, uuid=uuid, now=now, expected_version=expected_version, collection=collection.name
    )
    if not saved.changed and not _are_other_bytes(db, collection, old, data):
        return saved
    if not saved.changed:  # the same page in other bytes, which somebody wants back
        _, version = page_edits.touch(
            tx, new.slug, expected_version=None, now=now, collection=collection.name
        )
        saved = saved._replace(version=version, changed=True)
    if collection.root is None:
        if old is not None:
            _remember(tx, collection, old, now, uuid)
    else:
        _write_file(db, tx, collection, collection.root, old, new, saved, now, uuid, data)
    history.trim_versions(tx, saved.id, dates.shift_date(now[:10], -history.HISTORY_DAYS))
    return saved


def _titled(db: Database, old: PageRow | None, new: Page) -> Page:
    """The page under the title that its file gives it: one that stands in no file would be gone with the index."""
    known = collections.file_of_page(db, old.id) if old is not None else None
    path = known.path if known else f"{new.slug}.md"
    return new if index.is_org(path) else index.titled(new, path)


def _are_other_bytes(db: Database, collection: Collection, old: PageRow | None, data: bytes | None) -> bool:
    known = (
        collections.file_of_page(db, old.id)
        if data is not None and old is not None and collection.root
        else None
    )
    return known is not None and data is not None and index.digest(data) != known.content_hash


def _remember(tx: Any, collection: Collection, old: PageRow, now: str, uuid: str) -> None:
    """Keep what a page without a file said before."""
    text = markdown.render(old.frontmatter, old.truth, old.timeline)
    history.keep_version(
        tx,
        collection.id,
        old.id,
        old.version,
        f"{old.slug}.md",
        text.encode(),
        now,
        f"edit-{uuid}",
        present=False,
    )


def _write_file(
    db: Database,
    tx: Any,
    collection: Collection,
    root: str,
    old: PageRow | None,
    new: Page,
    saved: SaveResult,
    now: str,
    uuid: str,
    data: bytes | None,
) -> None:
    known = collections.file_of_page(db, old.id) if old is not None else None
    heading_of = collections.file_of_heading(db, old.id) if old is not None and known is None else None
    if heading_of is not None:
        raise PartOfOrgFile(slug=new.slug, path=heading_of)
    path = known.path if known else f"{new.slug}.md"
    with Folder(root, scan.endings(collection.kind)) as folder:
        if known is None:
            _refuse_hidden(collection, path)
            data = data or markdown.render(new.frontmatter, new.truth, new.timeline).encode()
            _refuse_large(path, data)
            db.on_rollback(_taking_back(root, path, data, None, uuid))
            replacing.create(folder, path, data, uuid)
        else:
            before = _read(folder, path, known.content_hash)
            data = _patched(path, before, new) if data is None else data
            _refuse_large(path, data)
            db.on_rollback(_taking_back(root, path, data, before, uuid))
            replacing.replace(folder, path, data, known.content_hash, uuid)
        found = folder.look(path)
    if not isinstance(found, Found):
        raise FileChanged(path=path)
    page_edits.free_slug(tx, collection.id, new.slug)
    history.keep_version(tx, collection.id, saved.id, saved.version, path, data, now, f"edit-{uuid}")
    stat = FileSignature(found.size, found.mtime_ns, found.ctime_ns, found.inode)
    file = ScannedFile(path, found.key.casefold(), stat)
    collections.record_file(tx, collection.id, file, index.digest(data), saved.id, now)
    if index.is_org(path):
        nodes = index.read(path, data).nodes
        heading_pages.follow(tx, collection, saved.id, new.slug, path, nodes, now, uuid)


def _read(folder: Folder, path: str, content_hash: str) -> bytes:
    """The bytes of a file, which must be those that the index has read."""
    try:
        data = folder.read(path)
    except OSError as problem:
        if isinstance(problem, FileNotFoundError | NotADirectoryError):
            raise FileChanged(path=path) from None
        raise FileTrouble(path=path, problem="cannot be read; it was not written") from None
    if index.digest(data) != content_hash:
        raise FileChanged(path=path)
    return data


def _patched(path: str, data: bytes, new: Page) -> bytes:
    """The bytes of a file with the page's new parts in the place of the old ones."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise FileTrouble(path=path, problem="is not UTF-8; convert it before you change it here") from None
    if index.is_org(path):
        return _patched_org(path, data, text, new)
    return markdown.patch(text, new.frontmatter, new.truth, new.timeline).encode()


def _patched_org(path: str, data: bytes, text: str, new: Page) -> bytes:
    """A file of org with other properties, title or tags. Its text is not ours to write: it would not stay org."""
    from quaid.formats import org_edit

    old = index.read(path, data).page
    try:
        for key in {*old.frontmatter, *new.frontmatter}:
            value = new.frontmatter.get(key)
            if old.frontmatter.get(key) == value:
                continue
            if key == "tags":
                text = org_edit.set_filetags(text, new.tags)
            elif key == "title" and isinstance(value, str):
                text = org_edit.set_title(text, value)
            elif value is None:
                text = org_edit.remove_property(text, key.upper())
            else:
                text = org_edit.set_property(text, key.upper(), str(value))
    except InvalidArgument as problem:
        raise PartOfOrgFile(slug=new.slug, path=path) from problem
    changed = text.encode()
    made = index.read(path, changed).page
    if (made.frontmatter, made.truth, made.timeline) != (new.frontmatter, new.truth, new.timeline):
        raise PartOfOrgFile(slug=new.slug, path=path)
    return changed


def _refuse_hidden(collection: Collection, path: str) -> None:
    """A file that no sync would see must not be made: its page would vanish with the next one."""
    if not scan.is_shown(path) or ignoring.hides(
        ignoring.matcher(collection.ignore_patterns, collection.kind), path
    ):
        problem = f"is left out of {collection.name} by its ignore rules; choose another slug"
        raise FileTrouble(path=path, problem=problem)


def _refuse_large(path: str, data: bytes) -> None:
    if len(data) > LARGEST_FILE:
        raise TooLarge(what=path, size=len(data), limit=LARGEST_FILE)


def _taking_back(root: str, path: str, data: bytes, before: bytes | None, token: str) -> Callable[[], None]:
    """How to undo the change of a file, should the transaction fail: unless somebody has changed it since."""

    def undo() -> None:
        try:
            with Folder(root) as folder:
                if before is None:
                    replacing.remove(folder, path, index.digest(data), token)
                else:
                    replacing.replace(folder, path, before, index.digest(data), token)
        except QuaidError:
            pass  # the file keeps the new text, and the next sync takes it in

    return undo
