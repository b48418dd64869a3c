"""The memory as a folder of files: as it is now, or byte for byte as one import read it.

Knows where a page goes and what it must say to come back as the same page. Does not know how files are
written (writer.py) or how a page is spelled (formats).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from quaid.core import page, slug
from quaid.errors import DamagedDatabase, NotFound, RawNeedsImport
from quaid.formats import markdown
from quaid.store import imports, pages, settings, sidecars
from quaid.store.db import Database
from quaid.store.pages import Stored
from quaid.vaults import index, scan, sidecar
from quaid.vaults.writer import FolderWriter

Progress = Callable[[int, int, str], None]

LONGEST_NAME = 240  # file systems allow 255 bytes, the ending included
NO_TITLE = "\0"
SHOWN_IMPORTS = 3


class ExportReport(NamedTuple):
    folder: str
    import_id: str | None  # of a raw export
    pages: int
    sidecars: int
    files: int
    bytes: int
    unread: tuple[str, ...] = ()  # pages that cannot be read, in a damaged memory

    @property
    def exit_status(self) -> int:
        return 1 if self.unread else 0


def export_pages(db: Database, target: str, *, force: bool, progress: Progress) -> ExportReport:
    """Write every page as it is now, its raw data beside it, and an index.

    A page that is damaged is named and left out: whoever saves what still reads shall have the others.
    """
    groups, unread = _listed(db)
    total = sum(len(names) for _, names in groups)
    contents: list[tuple[str, list[tuple[str, str]]]] = []
    done = with_data = 0
    with FolderWriter(target, force=force) as writer:
        for kind, names in groups:
            contents.append((kind, []))
            for name in names:
                progress(done, total, "Exporting")
                try:
                    stored = pages.find(db, name)
                    data = sidecars.read(db, stored.id) if stored else []
                except DamagedDatabase:
                    unread.append(name)
                    continue
                if stored is None:  # of another collection, or gone by now
                    continue
                done += 1
                path = place_for(name)
                writer.write(path, page_text(stored, path).encode())
                with_data += _write_sidecar(writer, data, path)
                contents[-1][1].append((stored.title, path))
        writer.write("index.md", _index(contents).encode())
        schema = settings.get(db, "original_schema")
        if schema is not None:
            writer.write("schema.md", schema.encode())
    progress(total, total, "Exporting")
    return ExportReport(target, None, done, with_data, writer.files, writer.bytes, tuple(unread))


def _listed(db: Database) -> tuple[list[tuple[str, list[str]]], list[str]]:
    """All slugs by type; in a memory too damaged to list them, those whose rows still read, and where others were."""
    try:
        return pages.by_type(db), []
    except DamagedDatabase:
        from quaid.store import salvage

        found = salvage.slugs(db)
    return found.groups, [f"number {each}" for each in found.lost]


def export_raw(
    db: Database, import_id: str | None, target: str, *, force: bool, progress: Progress
) -> ExportReport:
    """Write the files of one import, byte for byte."""
    batches = imports.batches(db)
    if import_id is None:
        raise RawNeedsImport(hint=_known_imports(batches))
    batch = next((each for each in batches if each.import_id == import_id), None)
    if batch is None:
        raise NotFound(what="import", name=import_id, hint=_known_imports(batches))
    with_data = 0
    with FolderWriter(target, force=force) as writer:
        for done, (path, data) in enumerate(imports.batch_files(db, import_id)):
            progress(done, batch.file_count, "Exporting")
            writer.write(path, data)
            with_data += f"/{scan.RAW_FOLDER}/" in f"/{path}"
    progress(batch.file_count, batch.file_count, "Exporting")
    return ExportReport(target, import_id, batch.page_count, with_data, writer.files, writer.bytes)


def place_for(address: str) -> str:
    """The path of a page's file: its slug, unless an import would pass by a file of that name."""
    *folders, name = address.split("/")
    folders = [f"{each}_" if each in scan.SKIPPED_FOLDERS else each for each in folders]
    if len(name) > LONGEST_NAME:
        name = f"{name[: LONGEST_NAME - 13]}-{index.digest(address.encode())[:12]}"
    path = "/".join([*folders, f"{name}.md"])
    return f"{name}.markdown" if path in scan.SPECIAL_NAMES else path


def page_text(stored: Stored, path: str) -> str:
    """A page as markdown that brings slug and title back when it is imported from this path."""
    front: dict[str, Any] = dict(stored.frontmatter)
    claimed = index.claimed_slug(front)
    if (claimed or slug.from_path(path)) != stored.slug:
        front["slug"] = stored.slug
    if not _names_its_title(front, stored.truth):
        front["title"] = stored.title
    return markdown.render(front, stored.truth, stored.timeline)


def _names_its_title(front: dict[str, Any], truth: str) -> bool:
    if isinstance(front.get("title"), str) and front["title"].strip():
        return True
    return page.build("x", front, truth, "", fallback_title=NO_TITLE).title != NO_TITLE


def _write_sidecar(writer: FolderWriter, data: list[sidecars.RawData], path: str) -> bool:
    sources = {each.source: each.data for each in data}
    if sources:
        writer.write(sidecar.path_for(index.stem(path)), sidecar.render(sources))
    return bool(sources)


def _index(contents: list[tuple[str, list[tuple[str, str]]]]) -> str:
    lines = ["# Index"]
    for kind, entries in contents:
        if entries:
            lines += ["", f"## {kind} ({len(entries)})", ""]
            lines += [f"- [{_link_text(title)}]({path})" for title, path in entries]
    return "\n".join(lines) + "\n"


def _link_text(title: str) -> str:
    return title.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _known_imports(batches: list[imports.Batch]) -> str:
    if not batches:
        return " Nothing was imported yet."
    newest = ", ".join(f"{each.import_id} ({each.created_at[:10]})" for each in batches[:SHOWN_IMPORTS])
    return f" The newest: {newest}. `quaid imports` lists them all."
