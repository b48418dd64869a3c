"""The index, burned and made again; and what the debug endpoints ask and do: raw looks at the index, and a notebook
prepared for a test and tidied up.

Only the rebuild is an operation. The others are offered by a server that was started with --debug, and overwrite and
delete without asking for a version.
"""

import json
import os
import re
from typing import Any, NamedTuple

from quaid.brain import Brain
from quaid.errors import Cancelled, EmbeddingsOff, InvalidArgument, NotFound, QuaidError
from quaid.model import dates
from quaid.notebook import layout
from quaid.ops import gate, noting
from quaid.ops.register import op
from quaid.storage import collections, files as durable_files
from quaid.storage.sqlite.errors import translate_os_errors

SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
ROLES = ("user", "assistant")


class IndexedFile(NamedTuple):
    collection: str
    path: str
    hash: str
    """SHA-256 of its bytes when it was last read."""
    size: int
    mtime: str
    indexed_at: str
    """When it was last read into the index; a sync that finds it unchanged does not read it."""


class FilesRecord(NamedTuple):
    files: tuple[IndexedFile, ...]


class RebuiltRecord(NamedTuple):
    pages: int
    syncs: tuple[Any, ...]
    vectors: int
    """Made now: those of texts that stayed the same are kept."""
    problem: str
    """Why vectors that are missing could not be made; words are in step all the same."""

    @property
    def exit_status(self) -> int:
        return 1 if self.problem or any(each.halted for each in self.syncs) else 0


class RemovedRecord(NamedTuple):
    path: str


class TurnRecord(NamedTuple):
    session: str
    turns: int


def files(brain: Brain) -> FilesRecord:
    """Every file that is indexed, with the hash of its bytes."""
    found: list[IndexedFile] = []
    for each in collections.list_all(brain.db):
        found += [
            IndexedFile(
                *(each.name, known.path, known.content_hash, known.stat.size),
                *(dates.timestamp(known.stat.mtime_ns // 10**9), dates.timestamp(known.seen_ns // 10**9)),
            )
            for known in collections.known_files(brain.db, each.id)
        ]
    return FilesRecord(tuple(sorted(found)))


@op("owner", examples=("quaid rebuild", "quaid rebuild --json"))
def rebuild(brain: Brain) -> RebuiltRecord:
    """Burn the index and make it again: words, tags, passages, links; then read every folder, then missing vectors.

    Pages, facts, history and files are not touched; vectors of texts that stayed the same are kept."""
    from quaid.storage import briefing
    from quaid.storage.checks import rebuild_derived_rows as rebuilt

    brain.db.write(
        lambda tx: rebuilt(tx, lambda done, total: brain.progress(done, total, "Indexing pages anew"))
    )
    syncs = gate.call(brain, gate.command("collection sync"), {}, "owner").syncs
    made, problem = 0, ""
    try:
        made = gate.call(brain, gate.command("embed"), {}, "owner").embedded
    except EmbeddingsOff:
        pass  # nobody wants any
    except Cancelled:
        raise
    except QuaidError as error:
        problem = str(error)
    return RebuiltRecord(briefing.page_count(brain.db), tuple(syncs), made, problem)


def write_file(brain: Brain, path: str, text: str) -> Any:
    """Make a file of the notebook, or put another text into it."""
    return noting.edit(brain, layout.require_notebook(brain.db), path, lambda _old: text)


def remove_file(brain: Brain, path: str) -> RemovedRecord:
    """Delete a file of the notebook; its page goes into quarantine, as with any file that is gone."""
    from quaid.folders import atomic_write, page_writer
    from quaid.folders.scanner import Folder

    notebook = layout.require_notebook(brain.db)
    found = page_writer.read_text_file(notebook, path)
    if found is None:
        raise NotFound(what="file", name=path, hint=" /api/debug/notebook/pages lists what there is.")
    with brain.db.lock.held(), Folder(notebook.root or "") as folder:
        atomic_write.remove_file(folder, path, found.content_hash, brain.new_uuid())
    noting.bring_in_step(brain, notebook, [path])
    return RemovedRecord(path)


def inject(brain: Brain, session: str, role: str, content: str) -> TurnRecord:
    """Add a turn to a conversation that exists only for tests, and take it in as any transcript."""
    if not SESSION.fullmatch(session):
        raise InvalidArgument(name="session", problem="must be letters, digits, '-' and '_', at most 64")
    if role not in ROLES:
        raise InvalidArgument(name="role", problem=f"must be one of {', '.join(ROLES)}")
    folder = os.path.join(brain.settings.home, "web", "injected")
    path = os.path.join(folder, f"{session}.jsonl")
    turn = {"role": role, "content": content, "timestamp": brain.now(), "session": session}
    with translate_os_errors(path):
        durable_files.make_folders(folder)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps(turn) + "\n")
    gate.call(brain, gate.command("conversations add"), {"paths": [path]}, "owner")
    held = gate.call(brain, gate.tool("conversation_show"), {"session": session, "limit": 1}, "read")
    return TurnRecord(session, held.conversation.turns)
