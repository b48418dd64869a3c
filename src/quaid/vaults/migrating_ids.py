"""Page ids into the files themselves, so that a page is known wherever its file goes.

One file after the other, each through the one way in which files are changed here: `quaid_id` is added to the
front matter, nothing else changes, and whoever cannot be changed so is told and left alone. Can be stopped at any
moment; the next run goes on.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from quaid.errors import Cancelled, FileChanged, IdsStopped, InvalidFrontMatter, QuaidError
from quaid.formats import markdown
from quaid.model import page as page_model
from quaid.storage import collections, pages
from quaid.storage.collections import Collection, PageFile
from quaid.storage.sqlite.connection import Database
from quaid.vaults import index, keeping
from quaid.vaults.index import ID_KEY
from quaid.vaults.report import Note
from quaid.vaults.scan import Folder

Progress = Callable[[int, int, str], None]


class IdsReport(NamedTuple):
    collection: str
    written: int
    """Files that got their id; or would, when nothing was to be changed."""
    had: int
    """Files that carried it before."""
    left: tuple[Note, ...]
    """Files that were left as they are, and why."""
    is_rehearsal: bool


class _Leave(Exception):
    """Why a file is left alone."""


def write_ids(
    db: Database,
    collection: Collection,
    *,
    now: Callable[[], str],
    new_uuid: Callable[[], str],
    progress: Progress,
    dry_run: bool = False,
) -> IdsReport:
    """Write each page's id into its file."""
    todo = [each for each in collections.page_files(db, collection.id) if each.path is not None]
    written = had = 0
    left: list[Note] = []
    try:
        with Folder(collection.root or "") as folder:
            for done, each in enumerate(todo):
                progress(done, len(todo), "Writing ids")
                try:
                    if not _needs_id(folder, each):
                        had += 1
                        continue
                    if not dry_run:
                        _write(db, collection, each, now(), new_uuid())
                    written += 1
                except (_Leave, FileChanged, InvalidFrontMatter) as reason:
                    left.append(Note(str(each.path), str(reason)))
        progress(len(todo), len(todo), "Writing ids")
    except (KeyboardInterrupt, Cancelled):
        raise IdsStopped(done=written + had, total=len(todo), name=collection.name) from None
    return IdsReport(collection.name, written, had, tuple(left), dry_run)


def _needs_id(folder: Folder, each: PageFile) -> bool:
    """Whether the file lacks its id and can be given it; _Leave with the reason when it cannot."""
    path = str(each.path)
    if index.is_org(path):
        raise _Leave("is org, which carries its id as a property; give it an :ID: in its drawer")
    try:
        data = folder.read(path)
    except OSError as error:
        raise _Leave(f"cannot be read: {error.strerror}") from None
    if index.digest(data) != each.content_hash:
        raise _Leave("changed since it was last read; sync first")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise _Leave("is not UTF-8") from None
    document = markdown.parse(text)
    if document.problem:
        raise _Leave(f"its front matter cannot be read: {document.problem}")
    there = document.frontmatter.get(ID_KEY)
    if there == each.uuid:
        return False
    if there is not None:
        raise _Leave(f"names another id: {there}")
    try:
        new = markdown.patch(
            text, {**document.frontmatter, ID_KEY: each.uuid}, document.truth, document.timeline
        )
    except InvalidFrontMatter as error:
        raise _Leave(str(error.facts["problem"])) from None
    if not _only_adds(text, new):
        raise _Leave("cannot carry an id without changing more of it")
    return True


def _only_adds(old: str, new: str) -> bool:
    """Whether the new text is the old one with something put in at one place."""
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    return new.endswith(old[same:]) and len(new) >= len(old)


def _write(db: Database, collection: Collection, each: PageFile, now: str, token: str) -> None:
    def work(tx: Any) -> None:
        old = pages.find(db, each.slug, collection.name)
        if old is None or old.id != each.page_id:
            raise _Leave("its page changed meanwhile; run it again")
        front = {**old.frontmatter, ID_KEY: each.uuid}
        new = page_model.build_page(old.slug, front, old.truth, old.timeline, fallback_title=old.title)
        keeping.save(db, tx, collection, old, new, uuid=token, now=now, expected_version=old.version)

    try:
        db.write(work)
    except (FileChanged, InvalidFrontMatter, Cancelled):
        raise
    except QuaidError as error:
        if (
            error.exit_status == 5 or error.code == "collection_read_only"
        ):  # the disk, the database: no use to go on
            raise
        raise _Leave(str(error)) from None
