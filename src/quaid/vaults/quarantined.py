"""Quarantined pages as files again: back in their folder, or written out with what no file has.

Knows that a page which comes back is the same page: its id, links and facts are still there. Never writes over a
file. Does not decide who may go (store.quarantine says what would be lost).
"""

import json
import os
from typing import Any, NamedTuple

from quaid.errors import AlreadyExists, FileChanged, NoPlaceToRestore
from quaid.model import slug as slugs
from quaid.model.sync_plan import FileSignature, ScannedFile
from quaid.storage import (
    collections,
    erase as erasure,
    facts as assertions,
    files as durable_files,
    page_edits,
    pages,
)
from quaid.storage.collections import Collection
from quaid.storage.erase import QuarantinedPage
from quaid.storage.facts import FactRow
from quaid.storage.links import AddedLink
from quaid.storage.sqlite.connection import Database
from quaid.vaults import heading_pages, ignoring, index, links_and_facts, naming, replacing, scan, sidecar
from quaid.vaults.scan import Folder, Found
from quaid.vaults.writer import FolderWriter


class Returned(NamedTuple):
    slug: str
    path: str
    version: int


def restore(db: Database, each: QuarantinedPage, token: str, now: str) -> Returned:
    """Put a page's file back where it was, and let the page be seen again."""
    collection = collections.require(db, each.collection)
    if collection.root is None or not collection.writable or collection.state != "active":
        why = "is read-only" if collection.root and collection.state == "active" else f"is {collection.state}"
        raise NoPlaceToRestore(name=collection.name, why=why, slug=each.slug)
    path = each.path or f"{each.slug}.md"
    data = erasure.quarantined_bytes(db, each.id)
    if data is None:
        is_heading = collections.file_of_heading(db, each.id) is not None
        why = (
            "has it as a heading of a file, with which it comes back" if is_heading else "has lost its bytes"
        )
        raise NoPlaceToRestore(name=collection.name, why=why, slug=each.slug)
    with Folder(collection.root, scan.endings(collection.kind)) as folder:
        try:
            replacing.create(folder, path, data, token)
        except FileChanged:
            raise _occupied(collection, path) from None
        found = folder.look(path)
    if not isinstance(found, Found):
        raise FileChanged(path=path)
    stat = FileSignature(found.size, found.mtime_ns, found.ctime_ns, found.inode)
    file = ScannedFile(path, found.key.casefold(), stat)
    return db.write(lambda tx: _show(tx, collection, each, file, data, now, token))


def _occupied(collection: Collection, path: str) -> AlreadyExists:
    hint = "Move it away first; nothing was written over."
    if ignoring.hides(ignoring.matcher(collection.ignore_patterns, collection.kind), path):
        hint = (
            f"It is ignored: `quaid collection ignore remove {collection.name} PATTERN` brings the page back."
        )
    return AlreadyExists(path=path, hint=hint)


def _show(
    tx: Any,
    collection: Collection,
    each: QuarantinedPage,
    file: ScannedFile,
    data: bytes,
    now: str,
    token: str,
) -> Returned:
    _make_way(tx, collection, each, file, now)
    read = index.read(file.path, data)
    made = index.moved(read.page, _address(tx, collection, each, read.page.slug, file.path))
    if made.slug != each.slug:
        page_edits.change_slug(tx, collection.id, each.id, each.slug, made.slug, now, redirect=False)
    saved = page_edits.save(
        tx, made, uuid=each.uuid, now=now, expected_version=None, collection=collection.name, cut=False
    )
    collections.record_file(tx, collection.id, file, index.digest(data), saved.id, now)
    if read.nodes:
        heading_pages.follow(tx, collection, saved.id, made.slug, file.path, read.nodes, now, token)
    return Returned(made.slug, file.path, saved.version)


def _make_way(tx: Any, collection: Collection, each: QuarantinedPage, file: ScannedFile, now: str) -> None:
    """A page that is known at this path has lost its file, or ours could not have been made: it is put away."""
    other = collections.page_of_file(tx, collection.id, file.path)
    if other is not None and other != each.id:
        collections.forget_file(tx, collection.id, file.path)
        erasure.quarantine_headings(tx, other, now)
        erasure.quarantine_page(tx, other, now)


def _address(tx: Any, collection: Collection, each: QuarantinedPage, asked: str, path: str) -> str:
    """The slug of a page that comes back: its own, unless it left that to another one, which may be gone by now."""
    if not page_edits.is_vacated_slug(each.slug, each.id):
        return each.slug
    holder = pages.slug_holder(tx, collection.id, asked)
    if holder is None:
        return asked
    if holder.is_hidden:
        page_edits.vacate_slug(tx, holder.page_id)
        return asked
    return naming.beside(asked, path, pages.slugs_beginning(tx, collection.id, asked))


class Written(NamedTuple):
    folder: str
    files: int


def export(db: Database, chosen: list[QuarantinedPage], target: str, force: bool, now: str) -> Written:
    """Write pages into a folder: each as its file was, and a sidecar with all that is only here. Durably."""
    paths: list[str] = []
    with FolderWriter(target, force=force) as writer:
        for each in chosen:
            path = _place(each)
            paths += [path, sidecar.path_for(index.stem(path))]
            writer.write(path, erasure.quarantined_bytes(db, each.id) or b"")
            writer.write(paths[-1], _sidecar(db, each))
        beside = _links_and_facts(db, chosen)
        if beside:
            paths.append(links_and_facts.PATH)
            writer.write(links_and_facts.PATH, beside)
        for path in paths:
            durable_files.sync_file(os.path.join(target, path))
        for folder in {os.path.dirname(os.path.join(target, path)) for path in paths}:
            durable_files.sync_folder(folder)
    db.write(lambda tx: erasure.mark_exported(tx, chosen, os.path.abspath(target), now))
    return Written(target, len(paths))


def _place(each: QuarantinedPage) -> str:
    """Where an export has the file of a page."""
    return f"{each.collection}/{each.path or each.slug + '.md'}"


def _links_and_facts(db: Database, chosen: list[QuarantinedPage]) -> bytes | None:
    """The links and facts of all these pages, in the file that an import and an attached folder bring back."""
    found: dict[int, AddedLink] = {}
    facts: list[tuple[str, str, FactRow]] = []
    for each in chosen:
        for link in erasure.added_links_of(db, each.id):
            start, from_slug = link.from_page.split("::", 1)
            end, to_slug = link.to_page.split("::", 1)
            found[link.id] = AddedLink(
                link.id,
                start,
                from_slug,
                end,
                to_slug,
                link.relationship,
                link.context,
                link.valid_from,
                link.valid_until,
                link.created_at,
            )
        facts += [(each.collection, each.slug, fact) for fact in assertions.facts_of_page(db, each.id)]
    if not found and not facts:
        return None
    places = {slugs.address(each.collection, each.slug): _place(each) for each in chosen}
    gathered = links_and_facts.Gathered([found[id] for id in sorted(found)], facts, 0)
    return links_and_facts.render(gathered, places)


def _sidecar(db: Database, each: QuarantinedPage) -> bytes:
    """What hangs on a page, in the shape that an import reads: raw data under `sources`, the rest beside it."""
    value = {
        "sources": {data.source: data.data for data in pages.read_raw_data(db, each.id)},
        "quaid_id": each.uuid,
        "slug": each.slug,
        "collection": each.collection,
        "quarantined_at": each.quarantined_at,
        "links": [link._asdict() for link in erasure.added_links_of(db, each.id)],
        "assertions": [fact._asdict() for fact in assertions.facts_of_page(db, each.id)],
    }
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()
