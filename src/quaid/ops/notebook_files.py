"""The notebook's files: laid out, listed, read, written, brought over from an older layout."""

import os
from typing import TYPE_CHECKING, Annotated, NamedTuple

from quaid.brain import Brain
from quaid.errors import AlreadyExists, InvalidArgument, NotFound
from quaid.notebook import layout
from quaid.notebook.layout import MigratedFile
from quaid.ops import noting
from quaid.ops.register import Arg, op
from quaid.storage import collections
from quaid.storage.collections import Collection

if TYPE_CHECKING:
    from quaid.folders.page_writer import FileText
    from quaid.storage.collections import IndexedPage

Path = Annotated[str, Arg("The file within the notebook, as in reference/contacts.md.", positional=True)]


class NotebookRecord(NamedTuple):
    root: str
    created: bool
    """False: it was the notebook already."""
    folders: tuple[str, ...]
    """Folders that were made now."""
    files: int


class NotebookFile(NamedTuple):
    path: str
    size: int


class NotebookListRecord(NamedTuple):
    root: str
    files: tuple[NotebookFile, ...]


class NotebookReadRecord(NamedTuple):
    path: str
    text: str
    start_line: int
    end_line: int
    total_lines: int
    version: int
    """To be sent with a change."""


class NotebookWriteRecord(NamedTuple):
    path: str
    line: int
    created: bool
    changed: bool
    version: int


class MigrateRecord(NamedTuple):
    source: str
    root: str
    moves: tuple[MigratedFile, ...]
    dry_run: bool

    @property
    def exit_status(self) -> int:
        return int(any(each.outcome in ("differs", "unreadable") for each in self.moves))


@op(
    "owner",
    command="notebook init",
    examples=("quaid notebook init", "quaid notebook init ~/agent/notebook"),
)
def notebook_init(
    brain: Brain,
    path: Annotated[
        str | None, Arg("The folder; else one beside the memory.", positional=True, path=True)
    ] = None,
) -> NotebookRecord:
    """Make a notebook, or attach a folder as one: lists, reference, knowledge, daily. What is there stays."""
    from quaid.ops.collections import attach

    db = brain.db
    root = os.path.realpath(brain.settings.path(path) if path else noting.root(brain))
    known = layout.find_notebook(db)
    if known is not None and path and known.root != root:
        hint = f"It is {known.root}. `quaid collection remove {known.name}` lets go of it."
        raise AlreadyExists(path="A notebook", hint=hint)
    if known is not None and not layout.folder_exists(known):
        raise layout.folder_missing(
            known
        )  # made anew and empty, it would look as if every file had been deleted
    root = known.root or root if known else root
    made = layout.create_folders(root)
    if known is None:
        attach(brain, layout.NOTEBOOK_NAME, root, kind=layout.NOTEBOOK_KIND)
    else:
        noting.bring_in_step(brain, known)
    notebook = layout.require_notebook(db)
    return NotebookRecord(root, known is None, made, collections.count_files(db, notebook.id))


@op(
    "read",
    command="notebook list",
    tool="notebook_list",
    aliases={"notebook": {}},
    examples=("quaid notebook list",),
)
def notebook_list(brain: Brain) -> NotebookListRecord:
    """List the files of the notebook."""
    layout.require_notebook(brain.db)
    notebook = noting.fresh(brain)
    known = collections.known_files(brain.db, notebook.id)
    files = sorted(NotebookFile(each.path, each.stat.size) for each in known)
    return NotebookListRecord(notebook.root or "", tuple(files))


@op(
    "read",
    command="notebook read",
    tool="notebook_read",
    core=True,
    examples=("quaid notebook read reference/contacts.md", "quaid notebook read lists/todos.md --lines 20"),
)
def notebook_read(
    brain: Brain,
    path: Path,
    start_line: Annotated[int, Arg("The first line.", minimum=1)] = 1,
    lines: Annotated[int | None, Arg("How many lines [all].", minimum=1)] = None,
) -> NotebookReadRecord:
    """Read a file of the notebook, and the version to send with a change."""
    found, known = _in_step(brain, layout.require_notebook(brain.db), path)
    every = _lines(found.text)
    if start_line > max(1, len(every)):
        last = f"its last one is {len(every)}" if every else "it is empty"
        raise InvalidArgument(name="start_line", problem=f"{path} has no line {start_line}; {last}")
    end = len(every) if lines is None else min(len(every), start_line - 1 + lines)
    shown = "".join(every[start_line - 1 : end])
    version = known.version if known else 0
    return NotebookReadRecord(path, shown, start_line, max(end, start_line - 1), len(every), version)


def _in_step(brain: Brain, notebook: Collection, path: str) -> "tuple[FileText, IndexedPage | None]":
    """A file and its page, which are the same; a file that is saved all the time is read as it is at last."""
    from quaid.folders import page_writer

    page_writer.check_page_path(path)
    for _ in range(page_writer.EDIT_ATTEMPTS):
        noting.take_in(brain, notebook, path)
        found = page_writer.read_text_file(notebook, path)
        known = collections.indexed_page(brain.db, notebook.id, path)
        if found is None or known is None or known.content_hash == found.content_hash:
            break
    if found is None:
        raise NotFound(what="file", name=path, hint=" `quaid notebook list` shows what there is.")
    return found, known


@op(
    "write",
    command="notebook write",
    tool="notebook_write",
    core=True,
    examples=(
        "quaid notebook write lists/reading.md books.md",
        "quaid notebook write lists/reading.md - --section Later --replace --expected-version 3",
    ),
)
def notebook_write(
    brain: Brain,
    path: Path,
    content: Annotated[str, Arg("The text.", positional=True, file=True)],
    section: Annotated[str | None, Arg("The heading under which it goes; made if it is missing.")] = None,
    replace: Annotated[bool, Arg("Put it in the place of the section, or of the whole file.")] = False,
    expected_version: Annotated[
        int | None, Arg("The version that you read; replacing needs it. 0: a new file.", minimum=0)
    ] = None,
) -> NotebookWriteRecord:
    """Write into a file of the notebook: at the end of it or of a section, or (replace) in its place."""
    from quaid.notebook import files as notebook_files

    notebook = layout.require_notebook(brain.db)
    lines: list[int] = []

    def change(old: str | None) -> str:
        written = notebook_files.update_file_text(old, content, section, replace, expected_version)
        lines[:] = [written.line]
        return written.text

    edited = noting.edit(brain, notebook, path, change, expected_version)
    return NotebookWriteRecord(path, lines[0], edited.created, edited.changed, edited.version)


@op(
    "owner",
    command="notebook migrate",
    examples=("quaid notebook migrate ~/.my_agent --dry-run", "quaid notebook migrate ~/.my_agent"),
)
def notebook_migrate(
    brain: Brain,
    path: Annotated[
        str, Arg("The agent's folder, with runtime/ or brain/memory/core/ in it.", positional=True, path=True)
    ],
    dry_run: Annotated[bool, Arg("Only say what would be done.")] = False,
) -> MigrateRecord:
    """Copy the files of an older layout into reference. Nothing is overwritten; exits 1 when some need you."""
    from quaid.notebook import files as notebook_files

    notebook = layout.require_notebook(brain.db)
    source = brain.settings.path(path)
    moves = notebook_files.plan_migration(source, notebook)
    for move, text in moves:
        if move.outcome == "copied" and not dry_run:
            noting.edit(brain, notebook, move.path, lambda _, text=text: text, expected=0)  # type: ignore[misc]
    return MigrateRecord(source, notebook.root or "", tuple(move for move, _ in moves), dry_run)


def _lines(text: str) -> list[str]:
    """Lines as editors number them: only a line feed ends one."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]
