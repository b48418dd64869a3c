"""A page saved where it lives: in its file and its rows, or in its rows alone; what it said before is kept.

The one way for edits made here. A file is changed only in the bytes that the edit needs, and only if it still
says what the index has read; else nothing happens and the author is told. Runs inside the caller's transaction:
the file is durable before the transaction is. Should the machine stop between the two, the next sync takes the
file in.
"""

from typing import Any

from quaid.core import dates
from quaid.core.page import Page
from quaid.core.sync import File, Stat
from quaid.errors import CollectionReadOnly, FileChanged, FileTrouble
from quaid.formats import markdown, patching
from quaid.store import file_state, history, pages, slugs
from quaid.store.collections import Collection
from quaid.store.db import Database
from quaid.store.pages import Saved, Stored
from quaid.vaults import index, replacing
from quaid.vaults.scan import Folder, Found


def save(
    db: Database,
    tx: Any,
    collection: Collection,
    old: Stored | None,
    new: Page,
    *,
    uuid: str,
    now: str,
    expected_version: int | None,
) -> Saved:
    """Write a page against the version that its author had read, and its file if it has one."""
    if collection.root is not None and (not collection.writable or collection.state != "active"):
        why = "is read-only" if collection.state == "active" else f"is {collection.state}"
        raise CollectionReadOnly(name=collection.name, why=why)
    saved = pages.save(
        tx, new, uuid=uuid, now=now, expected_version=expected_version, collection=collection.name
    )
    if not saved.changed:
        return saved
    if collection.root is None:
        if old is not None:
            _remember(tx, collection, old, now, uuid)
    else:
        _write_file(db, tx, collection, collection.root, old, new, saved, now, uuid)
    history.trim(tx, saved.id, dates.shifted(now[:10], -history.DAYS))
    return saved


def _remember(tx: Any, collection: Collection, old: Stored, now: str, uuid: str) -> None:
    """Keep what a page without a file said before."""
    text = markdown.render(old.frontmatter, old.truth, old.timeline)
    history.keep(
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
    old: Stored | None,
    new: Page,
    saved: Saved,
    now: str,
    uuid: str,
) -> None:
    known = file_state.path_of(db, old.id) if old is not None else None
    path = known.path if known else f"{new.slug}.md"
    with Folder(root) as folder:
        if known is None:
            data = markdown.render(new.frontmatter, new.truth, new.timeline).encode()
            replacing.create(folder, path, data, uuid)
        else:
            data = _patched(folder, path, known.content_hash, new)
            replacing.replace(folder, path, data, known.content_hash, uuid)
        found = folder.look(path)
    if not isinstance(found, Found):
        raise FileChanged(path=path)
    slugs.free(tx, collection.id, new.slug)
    history.keep(tx, collection.id, saved.id, saved.version, path, data, now, f"edit-{uuid}")
    stat = Stat(found.size, found.mtime_ns, found.ctime_ns, found.inode)
    file = File(path, found.key.casefold(), stat)
    file_state.saw(tx, collection.id, file, index.digest(data), saved.id, now)


def _patched(folder: Folder, path: str, content_hash: str, new: Page) -> bytes:
    """The bytes of a file with the page's new parts in the place of the old ones."""
    try:
        data = folder.read(path)
    except FileNotFoundError:
        raise FileChanged(path=path) from None
    if index.digest(data) != content_hash:
        raise FileChanged(path=path)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise FileTrouble(path=path, problem="is not UTF-8; convert it before you change it here") from None
    return patching.patch(text, new.frontmatter, new.truth, new.timeline).encode()
