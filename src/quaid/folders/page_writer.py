"""Save edits to page files and to the database: pages, text files and page ids.

Only the bytes that the edit needs are changed in a file, and only if the file has not been changed by another
program in the meantime. The file of a page is durable before the transaction commits; if the transaction
fails, the file is changed back.
"""

import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from typing import NamedTuple

from quaid import errors
from quaid.folders import atomic_write, indexer, scanner
from quaid.folders.indexer import ID_KEY
from quaid.folders.scanner import LARGEST_FILE, FileNote, Folder, Progress
from quaid.folders.sync import sync_collection, update_heading_pages
from quaid.formats import markdown, org
from quaid.model import page as page_model
from quaid.model.page import Page, line_keys
from quaid.model.sync_plan import LastSeenFile, ScannedFile
from quaid.storage import collections, history, page_edits, pages, trust
from quaid.storage.collections import Collection, PageFile
from quaid.storage.page_edits import SaveResult
from quaid.storage.pages import PageRow
from quaid.storage.sqlite.connection import Database, Transaction
from quaid.storage.sqlite.errors import os_error


def save_page(
    db: Database,
    tx: Transaction,
    collection: Collection,
    old: PageRow | None,
    new: Page,
    *,
    uuid: str,
    now: str,
    expected_version: int | None,
    data: bytes | None = None,
    source: str = "",
) -> SaveResult:
    """Save a page to the database and, in a collection with a folder, to its file.

    Raise an error if the page does not have the expected version; None accepts any version. `data` is the new
    content of the file. Without `data`, the current content is patched where the page differs, or a new file
    is rendered. `source` is recorded as the source of the new version.
    """
    indexed, heading_of = (
        collections.file_of_page(db, old.id)
        if old is not None and collection.root is not None
        else (None, None)
    )
    if collection.root is not None:
        require_writable(collection)
        path = indexed.path if indexed else f"{new.slug}.md"
        if not indexer.is_org(path):  # a title that is not in the file would not survive reindexing
            new = indexer.with_file_title(new, path)
    saved = page_edits.save(
        tx, new, uuid=uuid, now=now, expected_version=expected_version, collection=collection.name
    )
    if not saved.changed:
        if indexed is None or data is None or indexer.digest(data) == indexed.content_hash:
            return saved
        # The page is the same but the bytes of its file differ, for example after an older version was
        # restored.
        _, version = page_edits.touch(
            tx, new.slug, expected_version=None, now=now, collection=collection.name
        )
        saved = saved._replace(version=version, changed=True)
    history.record_author(tx, saved.id, saved.version, source)
    if collection.root is not None:
        if indexed is None and heading_of is not None:
            raise errors.PartOfOrgFile(slug=new.slug, path=heading_of)
        _write_page_file(db, tx, collection, indexed, new, saved, now, uuid, data)
    elif old is not None:
        keep_old_version(tx, collection.id, old, now, uuid)
    return saved


def keep_old_version(tx: Transaction, collection_id: int, old: PageRow, now: str, uuid: str) -> None:
    """Store the current content of a page without a file as a version, before the page is changed."""
    data = markdown.render(old.frontmatter, old.truth, old.timeline).encode()
    version = (old.id, old.version, f"{old.slug}.md", data, indexer.digest(data))
    history.keep_versions(tx, collection_id, [version], now, f"edit-{uuid}", present=False, trim=True)


def _write_page_file(
    db: Database,
    tx: Transaction,
    collection: Collection,
    indexed: LastSeenFile | None,
    new: Page,
    saved: SaveResult,
    now: str,
    uuid: str,
    data: bytes | None,
) -> None:
    root = collection.root or ""
    path = indexed.path if indexed else f"{new.slug}.md"
    with Folder(root, scanner.page_endings(collection.kind)) as folder:
        if indexed is None:
            _refuse_hidden(collection, path, "slug")
            data = data or markdown.render(new.frontmatter, new.truth, new.timeline).encode()
            _refuse_large(path, data)
            if db.rehearsal is not None:
                return  # in a dry run, only the row of the page is changed, and it shows the new text
            db.on_rollback(_undo(root, path, None, data, uuid))
            atomic_write.create_file(folder, path, data, uuid)
        else:
            before = _read_unchanged(folder, path, indexed.content_hash)
            data = _patch_file(path, before, new) if data is None else data
            _refuse_large(path, data)
            if db.rehearsal is not None:
                return
            db.on_rollback(_undo(root, path, before, data, uuid))
            atomic_write.replace_file(folder, path, data, indexed.content_hash, uuid)
        written = atomic_write.written_file(folder, path)
    digest = indexer.digest(data)
    version = (saved.id, saved.version, path, data, digest)
    history.keep_versions(tx, collection.id, [version], now, f"edit-{uuid}", trim=True)
    collection.record_files(tx, [(written, digest, saved.id, None)], now)
    if indexer.is_org(path):
        nodes = indexer.parse_file(path, data).nodes
        update_heading_pages(tx, collection, saved.id, new.slug, path, nodes, now, uuid)


def move_page_file(
    db: Database, tx: Transaction, collection: Collection, page_id: int, path: str, now: str, token: str
) -> None:
    """Rename the file of a page, if it has one. The slug of the page is changed by the caller.

    Raise FileChanged if another program has changed the file or created a file at the new path.
    """
    root = collection.root
    indexed, _ = collections.file_of_page(db, page_id) if root is not None else (None, None)
    if root is None or indexed is None:
        return
    require_writable(collection)
    _refuse_hidden(collection, path, "slug")
    with Folder(root, scanner.page_endings(collection.kind)) as folder:
        data = _read_unchanged(folder, indexed.path, indexed.content_hash)
        db.on_rollback(_undo(root, indexed.path, data, None, token))
        db.on_rollback(_undo(root, path, None, data, token))
        atomic_write.create_file(folder, path, data, token)
        atomic_write.remove_file(folder, indexed.path, indexed.content_hash, token)
        written = atomic_write.written_file(folder, path)
    collection.forget_files(tx, indexed.path, page_id)
    collection.record_files(tx, [(written, indexed.content_hash, page_id, None)], now)


def remove_page_file(
    db: Database, tx: Transaction, collection: Collection, page_id: int | None, token: str
) -> None:
    """Remove the file of a page, if it has one. Raise FileChanged if another program has changed the file."""
    if collection.root is None or page_id is None:
        return
    indexed, _ = collections.file_of_page(db, page_id)
    if indexed is None:
        return
    require_writable(collection)
    with Folder(collection.root) as folder:
        data = _read_unchanged(folder, indexed.path, indexed.content_hash)
        db.on_rollback(_undo(collection.root, indexed.path, data, None, token))
        atomic_write.remove_file(folder, indexed.path, indexed.content_hash, token)
    collection.forget_files(tx, indexed.path, page_id)


def _read_unchanged(folder: Folder, path: str, content_hash: str) -> bytes:
    """Return the bytes of a file. Raise FileChanged if they do not have the hash of the indexed content."""
    try:
        data = folder.read(path)
    except OSError as problem:
        if isinstance(problem, FileNotFoundError | NotADirectoryError):
            raise errors.FileChanged(path=path) from None
        raise errors.FileTrouble(path=path, problem="cannot be read; it was not written") from None
    if indexer.digest(data) != content_hash:
        raise errors.FileChanged(path=path)
    return data


def _patch_file(path: str, data: bytes, new: Page) -> bytes:
    """Return the bytes of a page file, changed where the new page differs from the file."""
    text = _decode(path, data)
    if indexer.is_org(path):
        return _patch_org_file(path, data, text, new)
    return markdown.patch(text, new.frontmatter, new.truth, new.timeline).encode()


def _patch_org_file(path: str, data: bytes, text: str, new: Page) -> bytes:
    """Return the bytes of an org file with the properties, title and tags of the new page.

    Raise PartOfOrgFile for other changes, because the body of the page cannot be converted back to org.
    """
    old = indexer.parse_file(path, data).page
    try:
        for key in {*old.frontmatter, *new.frontmatter}:
            value = new.frontmatter.get(key)
            if old.frontmatter.get(key) == value:
                continue
            if key == "tags":
                text = org.set_filetags(text, new.tags)
            elif key == "title" and isinstance(value, str):
                text = org.set_title(text, value)
            elif value is None:
                text = org.remove_property(text, key.upper())
            else:
                text = org.set_property(text, key.upper(), str(value))
    except errors.InvalidArgument as problem:
        raise errors.PartOfOrgFile(slug=new.slug, path=path) from problem
    changed = text.encode()
    page = indexer.parse_file(path, changed).page
    if (page.frontmatter, page.truth, page.timeline) != (new.frontmatter, new.truth, new.timeline):
        raise errors.PartOfOrgFile(slug=new.slug, path=path)
    return changed


def require_writable(collection: Collection) -> None:
    """Raise CollectionReadOnly if the files of a collection may not be changed."""
    if not collection.writable or collection.state != "active":
        why = "is read-only" if collection.state == "active" else f"is {collection.state}"
        raise errors.CollectionReadOnly(name=collection.name, why=why)


def _refuse_hidden(collection: Collection, path: str, what: str) -> None:
    """Raise FileTrouble for a path that a sync would skip, because the next sync would remove its page."""
    if not scanner.is_visible(path) or scanner.is_ignored(
        scanner.ignore_matcher(collection.ignore_patterns, collection.kind), path
    ):
        problem = f"is left out of {collection.name} by its ignore rules; choose another {what}"
        raise errors.FileTrouble(path=path, problem=problem)


def _refuse_large(path: str, data: bytes) -> None:
    if len(data) > LARGEST_FILE:
        raise errors.TooLarge(what=path, size=len(data), limit=LARGEST_FILE)


def _undo(root: str, path: str, before: bytes | None, after: bytes | None, token: str) -> Callable[[], None]:
    """Return a function that undoes a change of a file, unless the file was changed again since.

    `before` and `after` are the contents before and after the change; None means that there was no file.
    """

    def undo() -> None:
        # If this fails, the next sync indexes the file as it is.
        with suppress(errors.QuaidError), Folder(root) as folder:
            if after is None:
                atomic_write.create_file(folder, path, before or b"", token)
            elif before is None:
                atomic_write.remove_file(folder, path, indexer.digest(after), token)
            else:
                atomic_write.replace_file(folder, path, before, indexer.digest(after), token)

    return undo


# Text files

EDIT_ATTEMPTS = 10
RETRY_PAUSE = 0.01
"""Seconds before the second attempt. Each further pause is longer; together they last half a second."""

MAX_PATH_BYTES, MAX_NAME_BYTES = 1_000, 200
BOM = "\ufeff"

TextChange = Callable[[str | None], str]
"""A function that maps the old text (None if there is no file) to the new text. It may be called more than once."""


class FileText(NamedTuple):
    """The decoded text of a file, and the details needed to write it back the same way."""

    text: str
    content_hash: str
    crlf: bool
    bom: bool


class EditResult(NamedTuple):
    """The result of an edit."""

    path: str
    text: str
    created: bool
    changed: bool
    version: int
    """Version of the file's page; 0 if the file has no page."""


def check_page_path(path: str, name: str = "path") -> str:
    """Return the path. Raise InvalidArgument unless it is a relative .md path like reference/contacts.md."""
    problem = _path_problem(path)
    if problem:
        raise errors.InvalidArgument(name=name, problem=f"{scanner.printable(path)[:100]!r} {problem}")
    return path


def _path_problem(path: str) -> str:
    names = path.split("/")
    if not path or not path.isprintable() or "\\" in path:
        return "is no path within the folder, as in reference/contacts.md"
    if path.startswith(("/", "~")) or path[1:2] == ":":
        return "must be relative to the folder, as in reference/contacts.md"
    if any(name in ("", ".", "..") for name in names):
        return "leaves the folder or has an empty part; write it as in reference/contacts.md"
    if any(name.startswith(".") for name in names) or not scanner.is_visible(path):
        return "is hidden, and hidden files are not pages; choose another name"
    if not path.lower().endswith(".md"):
        return "must end with .md"
    if len(path.encode()) > MAX_PATH_BYTES or any(len(name.encode()) > MAX_NAME_BYTES for name in names):
        return f"is too long; a name may have {MAX_NAME_BYTES} bytes"
    return ""


def read_text_file(collection: Collection, path: str) -> FileText | None:
    """Return the text of a file, or None if it does not exist."""
    check_page_path(path)
    with Folder(collection.root or "") as folder:
        return _read_text(folder, path)


def edit_file(
    db: Database,
    collection: Collection,
    path: str,
    change: TextChange,
    *,
    now: str,
    new_uuid: Callable[[], str],
    progress: Progress,
    expected_version: int | None = None,
) -> EditResult:
    """Change or create a file, and index it. In a dry run, only record the change in `db.rehearsal`.

    With `expected_version`, the edit fails if the page of the file has a different version. Version 0 means
    that the file must not exist.
    """
    check_page_path(path)
    require_writable(collection)
    _refuse_hidden(collection, path, "name")

    def follow(authored: bool = False) -> None:
        sync_collection(
            db, collection, now=now, new_uuid=new_uuid, progress=progress, only=[path], authored=authored
        )

    for attempt in range(EDIT_ATTEMPTS):
        try:
            lock = db.lock.held() if db.rehearsal is None else nullcontext()
            with lock, Folder(collection.root or "") as folder:
                old = _read_text(folder, path)
                if not attempt and old and not db.rehearsal and not _is_indexed(db, collection, path, old):
                    # Another program changed the file. The handler below indexes that change as a separate version
                    # and tries again.
                    raise errors.FileChanged(path=path)
                if expected_version is not None:
                    _check_version(db, collection, path, expected_version, old)
                new = change(old.text if old else None)
                changed = old is None or new != old.text
                if changed and old and (known := collection.indexed_file(db, path)):
                    trust.guard_lines(db, known.page_id or 0, old.text, new)
                if changed and db.rehearsal is not None:
                    db.rehearsal.files.append((collection.name, path, old.text if old else "", new))
                elif changed:
                    _write_text(folder, path, old, new, new_uuid())
            break
        except errors.FileChanged:
            if attempt == EDIT_ATTEMPTS - 1:
                raise
            if expected_version is not None or not attempt:
                follow()  # the version of a file is known only after it is indexed
            time.sleep(RETRY_PAUSE * (attempt + 1))  # another process is saving the file
    if db.rehearsal is None:
        follow(authored=changed)
    indexed = collection.indexed_file(db, path)
    if changed and indexed and indexed.page_id and db.rehearsal is None:
        # A watcher may have indexed the file first, with its lines attributed to the user.
        added = set(line_keys(new)) - set(line_keys(old.text if old else ""))
        trust.lower(db, indexed.page_id, added)
    return EditResult(path, new, old is None, changed, (indexed and indexed.version) or 0)


def _read_text(folder: Folder, path: str) -> FileText | None:
    try:
        file = folder.look(path)
        if file is None:
            return None
        if not isinstance(file, ScannedFile):
            reason = "a link; links are not followed" if file.reason == scanner.SYMLINK else file.reason
            raise errors.FileTrouble(path=path, problem=f"cannot be read or written here: it is {reason}")
        data = folder.read(path)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise os_error(path, problem) from None
    if len(data) > LARGEST_FILE:
        raise errors.TooLarge(what=path, size=file.stat.size, limit=LARGEST_FILE)
    return _decode_text(path, data)


def _decode(path: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise errors.FileTrouble(
            path=path, problem="is not UTF-8; convert it before you change it here"
        ) from None


def _decode_text(path: str, data: bytes) -> FileText:
    text = _decode(path, data)
    bom = text.startswith(BOM)
    # CRLF is restored on writing, which is only possible if every line ends with CRLF.
    crlf = text.count("\r\n") == text.count("\n") == text.count("\r") > 0
    text = text.removeprefix(BOM)
    return FileText(text.replace("\r\n", "\n") if crlf else text, indexer.digest(data), crlf, bom)


def _write_text(folder: Folder, path: str, old: FileText | None, new: str, token: str) -> None:
    text = new.replace("\n", "\r\n") if old and old.crlf else new
    data = ((BOM if old and old.bom else "") + text).encode()
    _refuse_large(path, data)
    if old is None:
        atomic_write.create_file(folder, path, data, token)
    else:
        atomic_write.replace_file(folder, path, data, old.content_hash, token)


def _is_indexed(db: Database, collection: Collection, path: str, file: FileText) -> bool:
    indexed = collection.indexed_file(db, path)
    return indexed is not None and indexed.content_hash == file.content_hash


def _check_version(
    db: Database, collection: Collection, path: str, expected: int, old: FileText | None
) -> None:
    indexed = collection.indexed_file(db, path)
    if old is None and not expected:
        return
    if old is None:
        raise errors.NoSuchVersion(slug=path, expected=expected, current_version=0)
    if indexed is None or indexed.version is None or indexed.content_hash != old.content_hash:
        raise errors.FileChanged(path=path)  # the file was changed since it was indexed; the caller retries
    if indexed.version != expected:
        kind = errors.VersionConflict if expected else errors.PageExists
        raise kind(slug=path, expected=expected, current_version=indexed.version)


# Ids


class IdsReport(NamedTuple):
    collection: str
    written: int
    """Number of files to which an id was written or, in a dry run, would be written."""
    had: int
    """Number of files that already had their id."""
    left: tuple[FileNote, ...]
    """Files that were not changed, with the reasons."""
    is_rehearsal: bool


class _SkipFile(Exception):
    """Raised to skip a file; the message is the reason."""


def write_ids(
    db: Database,
    collection: Collection,
    *,
    now: Callable[[], str],
    new_uuid: Callable[[], str],
    progress: Progress,
    dry_run: bool = False,
) -> IdsReport:
    """Write the id of each page to its markdown file; with `dry_run`, only count and check the files."""
    todo = [file for file in collection.page_files(db) if file.path is not None]
    written = had = 0
    left: list[FileNote] = []
    try:
        with Folder(collection.root or "") as folder:
            for done, page_file in enumerate(todo):
                progress(done, len(todo), "Writing ids")
                try:
                    if not _needs_id(folder, page_file):
                        had += 1
                        continue
                    if not dry_run:
                        _write_id(db, collection, page_file, now(), new_uuid())
                    written += 1
                except (_SkipFile, errors.FileChanged, errors.InvalidFrontMatter) as reason:
                    left.append(FileNote(str(page_file.path), str(reason)))
        progress(len(todo), len(todo), "Writing ids")
    except (KeyboardInterrupt, errors.Cancelled):
        raise errors.IdsStopped(done=written + had, total=len(todo), name=collection.name) from None
    return IdsReport(collection.name, written, had, tuple(left), dry_run)


def _needs_id(folder: Folder, file: PageFile) -> bool:
    """Return True if the id must be written to the file, or False if the file already has it.

    Raise _SkipFile with the reason if the id cannot be written.
    """
    path = str(file.path)
    if indexer.is_org(path):
        raise _SkipFile("is org, which carries its id as a property; give it an :ID: in its drawer")
    try:
        data = folder.read(path)
    except OSError as error:
        raise _SkipFile(f"cannot be read: {error.strerror}") from None
    if indexer.digest(data) != file.content_hash:
        raise _SkipFile("changed since it was last read; sync first")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise _SkipFile("is not UTF-8") from None
    document = markdown.parse(text)
    if document.problem:
        raise _SkipFile(f"its front matter cannot be read: {document.problem}")
    present_id = document.frontmatter.get(ID_KEY)
    if present_id == file.uuid:
        return False
    if present_id is not None:
        raise _SkipFile(f"names another id: {present_id}")
    try:
        new = markdown.patch(
            text, {**document.frontmatter, ID_KEY: file.uuid}, document.truth, document.timeline
        )
    except errors.InvalidFrontMatter as error:
        raise _SkipFile(str(error.facts["problem"])) from None
    if not _is_pure_insertion(text, new):
        raise _SkipFile("cannot carry an id without changing more of it")
    return True


def _is_pure_insertion(old: str, new: str) -> bool:
    """Return True if the new text is the old text with one insertion."""
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    return new.endswith(old[same:]) and len(new) >= len(old)


def _write_id(db: Database, collection: Collection, file: PageFile, now: str, token: str) -> None:
    def work(tx: Transaction) -> None:
        old = pages.find(db, file.slug, collection.name)
        if old is None or old.id != file.page_id:
            raise _SkipFile("its page changed meanwhile; run it again")
        front = {**old.frontmatter, ID_KEY: file.uuid}
        new = page_model.build_page(old.slug, front, old.truth, old.timeline, fallback_title=old.title)
        save_page(db, tx, collection, old, new, uuid=token, now=now, expected_version=old.version)

    try:
        db.write(work)
    except (errors.FileChanged, errors.InvalidFrontMatter, errors.Cancelled):
        raise
    except errors.QuaidError as error:
        # An error of the disk or the database, or a read-only collection, affects all files.
        if error.exit_status == 5 or error.code == "collection_read_only":
            raise
        raise _SkipFile(str(error)) from None
