"""Write the memory into a folder: all pages as they are now, or the files of one import byte for byte.

Pages of the default collection go into the folder itself; every other collection gets a folder named after it.
"""

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from quaid.errors import DamagedDatabase, FileTrouble, NotFound, RawNeedsImport
from quaid.formats import markdown
from quaid.model import page as page_model, slug as slugs
from quaid.storage import collections, history, pages
from quaid.storage.collections import DEFAULT_COLLECTION
from quaid.storage.pages import PageRow
from quaid.storage.sqlite.connection import Database
from quaid.vaults import index, links_and_facts, scan, sidecar
from quaid.vaults.writer import FolderWriter

Progress = Callable[[int, int, str], None]

LONGEST_NAME = 240  # file systems allow 255 bytes, the ending included
NO_TITLE = "\0"
SHOWN_IMPORTS = 3

Contents = dict[str, list[tuple[str, str]]]
"""Titles and paths of the pages of one collection, by type."""


class ExportedCollection(NamedTuple):
    name: str
    folder: str
    """Within the export; empty: the export itself."""
    pages: int


class ExportReport(NamedTuple):
    """What is on the disk after an export."""

    folder: str
    import_id: str | None  # of a raw export
    pages: int
    sidecars: int
    files: int
    bytes: int
    unread: tuple[str, ...] = ()  # pages that cannot be read, in a damaged memory
    collections: tuple[ExportedCollection, ...] = ()
    quarantined: int = 0
    """Pages in quarantine, which are not written."""
    links: int = 0
    """Links that no text holds, in a file of their own with the facts."""
    facts: int = 0
    trouble: str = ""
    """Why links and facts are missing in it."""

    @property
    def exit_status(self) -> int:
        return 1 if self.unread or self.trouble else 0


def export_pages(
    db: Database, target: str, *, force: bool, progress: Progress, collection: str | None = None
) -> ExportReport:
    """Write every page as it is now, or those of one collection, with their raw data and an index.

    A damaged page is named and left out, so that the others of a damaged memory can be saved.
    """
    if collection is not None:
        collections.require(db, collection)
    addresses, unread = _listed(db, collection)
    folders = {collection: ""} if collection else _folders(addresses)
    written: dict[str, Contents] = {name: {} for name in folders}
    with_data: list[str] = []
    places: dict[str, str] = {}
    with FolderWriter(target, force=force) as writer:
        for done, (name, kind, address) in enumerate(addresses):
            progress(done, len(addresses), "Exporting")
            try:
                stored = pages.find(db, address, name)
                data = pages.read_raw_data(db, stored.id) if stored else []
            except DamagedDatabase:
                unread.append(slugs.address(name, address))
                continue
            if stored is None:  # deleted meanwhile
                continue
            inside = place_for(address)
            path = folders[name] + inside
            writer.write(path, page_text(stored, inside).encode())
            with_data += _write_sidecar(writer, data, path)
            written[name].setdefault(kind, []).append((stored.title, path))
            places[slugs.address(name, address)] = path
        if DEFAULT_COLLECTION in folders:  # an attached folder would take them for pages
            writer.write("index.md", _index(written).encode())
            schema = collections.get_setting(db, "original_schema")
            if schema is not None:
                writer.write("schema.md", schema.encode())
        links, facts, trouble = _write_links_and_facts(db, writer, collection, places)
        report = _counted(writer, written, folders, with_data)
    report = report._replace(links=links, facts=facts, trouble=trouble)
    progress(len(addresses), len(addresses), "Exporting")
    return report._replace(unread=tuple(unread), quarantined=_quarantined(db, collection))


def _write_links_and_facts(
    db: Database, writer: FolderWriter, collection: str | None, places: dict[str, str]
) -> tuple[int, int, str]:
    """Write what no text holds into a file of its own. How many links and facts, and what is wrong, if anything."""
    path = links_and_facts.PATH
    try:
        found = links_and_facts.gather(db, collection)
        if not (found.links or found.facts or os.path.lexists(os.path.join(writer.root, path))):
            return 0, 0, _lost(found.lost)
        data = links_and_facts.render(found, places)
        writer.write(path, data)
    except (DamagedDatabase, FileTrouble) as error:
        return 0, 0, str(error)
    trouble = _lost(found.lost)
    if len(data) > links_and_facts.LARGEST:
        trouble = f"{path} has {len(data):,} bytes, and an import reads {links_and_facts.LARGEST:,}"
    return len(found.links), len(found.facts), trouble


def _lost(rows: int) -> str:
    return f"the memory is damaged, and {rows:,} of them cannot be read" if rows else ""


def _listed(db: Database, collection: str | None) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Collection, type and slug of the pages to write; in a damaged memory of those that can still be read."""
    unread: list[str] = []
    try:
        addresses = pages.page_addresses(db)
    except DamagedDatabase:
        from quaid.storage import checks

        addresses, lost = checks.readable_addresses(db)
        unread = [f"number {each}" for each in lost]
    return [each for each in addresses if collection in (None, each[0])], unread


def _folders(addresses: list[tuple[str, str, str]]) -> dict[str, str]:
    """The folder of each collection, as a prefix of paths; never one that pages of the default collection use."""
    taken = {
        address.partition("/")[0]
        for name, _, address in addresses
        if name == DEFAULT_COLLECTION and "/" in address
    }
    folders = {DEFAULT_COLLECTION: ""}
    for name in dict.fromkeys(each[0] for each in addresses):
        if name != DEFAULT_COLLECTION:
            folder, number = name, 1
            while folder in taken or folder in scan.SKIPPED_FOLDERS:
                folder = f"{name}-collection" + (f"-{number}" if number > 1 else "")
                number += 1
            taken.add(folder)
            folders[name] = f"{folder}/"
    return folders


def _counted(
    writer: FolderWriter, written: dict[str, Contents], folders: dict[str, str], with_data: list[str]
) -> ExportReport:
    """Count what is on the disk. Paths that the file system takes for one file are one file."""
    there: dict[str, tuple[int, int, int]] = {}
    for path in writer.written:
        facts = os.stat(os.path.join(writer.root, path), follow_symlinks=False)
        there[path] = (facts.st_dev, facts.st_ino, facts.st_size)
    parts = []
    for name, contents in written.items():
        files = {there[path] for entries in contents.values() for _, path in entries}
        if files or name == DEFAULT_COLLECTION or len(written) == 1:
            parts.append(ExportedCollection(name, folders[name].rstrip("/"), len(files)))
    distinct = set(there.values())
    return ExportReport(
        folder=writer.root,
        import_id=None,
        pages=sum(each.pages for each in parts),
        sidecars=len({there[path] for path in with_data}),
        files=len(distinct),
        bytes=sum(size for _, _, size in distinct),
        collections=tuple(parts),
    )


def _quarantined(db: Database, collection: str | None) -> int:
    try:
        hidden = collections.page_counts(db)
        chosen = [each for each in collections.list_all(db) if collection in (None, each.name)]
    except DamagedDatabase:
        return 0
    return sum(hidden.get(each.id, (0, 0))[1] for each in chosen)


def export_raw(
    db: Database, import_id: str | None, target: str, *, force: bool, progress: Progress
) -> ExportReport:
    """Write the files of one import, byte for byte."""
    batches = history.list_imports(db)
    if import_id is None:
        raise RawNeedsImport(hint=_known_imports(batches))
    batch = next((each for each in batches if each.import_id == import_id), None)
    if batch is None:
        raise NotFound(what="import", name=import_id, hint=_known_imports(batches))
    with_data: list[str] = []
    with FolderWriter(target, force=force) as writer:
        for done, (path, data) in enumerate(history.read_import_files(db, import_id)):
            progress(done, batch.file_count, "Exporting")
            writer.write(path, data)
            if f"/{scan.RAW_FOLDER}/" in f"/{path}":
                with_data.append(path)
        report = _counted(writer, {}, {}, with_data)
    progress(batch.file_count, batch.file_count, "Exporting")
    return report._replace(import_id=import_id, pages=batch.page_count)


def place_for(address: str) -> str:
    """The path of a page's file: its slug, unless an import would pass by a file of that name."""
    *folders, name = address.split("/")
    folders = [f"{each}_" if each in scan.SKIPPED_FOLDERS else each for each in folders]
    if len(name) > LONGEST_NAME:
        name = f"{name[: LONGEST_NAME - 13]}-{index.digest(address.encode())[:12]}"
    path = "/".join([*folders, f"{name}.md"])
    return f"{name}.markdown" if path in scan.SPECIAL_NAMES else path


def page_text(stored: PageRow, path: str) -> str:
    """A page as markdown that brings slug and title back when it is imported from this path."""
    front: dict[str, Any] = dict(stored.frontmatter)
    claimed = index.claimed_slug(front)
    if (claimed or slugs.from_path(path)) != stored.slug:
        front["slug"] = stored.slug
    if not _names_its_title(front, stored.truth):
        front["title"] = stored.title
    return markdown.render(front, stored.truth, stored.timeline)


def _names_its_title(front: dict[str, Any], truth: str) -> bool:
    if isinstance(front.get("title"), str) and front["title"].strip():
        return True
    return page_model.build_page("x", front, truth, "", fallback_title=NO_TITLE).title != NO_TITLE


def _write_sidecar(writer: FolderWriter, data: list[pages.RawData], path: str) -> list[str]:
    """Write the raw data of a page beside it. Return the path, if there was anything to write."""
    sources = {each.source: each.data for each in data}
    if not sources:
        return []
    beside = sidecar.path_for(index.stem(path))
    writer.write(beside, sidecar.render(sources))
    return [beside]


def _index(written: dict[str, Contents]) -> str:
    lines = ["# Index"]
    for name, contents in written.items():
        if name != DEFAULT_COLLECTION and len(written) > 1:
            lines += ["", f"# Collection {name}"]
        for kind, entries in contents.items():
            lines += ["", f"## {kind} ({len(entries)})", ""]
            lines += [f"- [{_link_text(title)}]({path})" for title, path in entries]
    return "\n".join(lines) + "\n"


def _link_text(title: str) -> str:
    return title.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _known_imports(batches: list[history.ImportBatch]) -> str:
    if not batches:
        return " Nothing was imported yet."
    newest = ", ".join(f"{each.import_id} ({each.created_at[:10]})" for each in batches[:SHOWN_IMPORTS])
    return f" The newest: {newest}. `quaid imports` lists them all."
