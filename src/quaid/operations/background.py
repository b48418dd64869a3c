"""Background work: create missing vectors, rebuild a deleted memory, detect changes of the database."""

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from quaid.app import Brain
from quaid.embedding import backfill
from quaid.embedding.backfill import Backfill
from quaid.errors import Cancelled, EmbedderUnavailable, QuaidError
from quaid.folders.sync import sync_collection
from quaid.model.plain_text import count_noun
from quaid.storage import briefing, collections, embedding_queue, files as durable_files, vectors
from quaid.storage.collections import AttachedFolder, Collections, FolderList
from quaid.storage.embedding_queue import EmbeddingFailure
from quaid.storage.questions import Gaps
from quaid.storage.sqlite import backup as backups
from quaid.storage.sqlite.connection import Transaction, WriterLock
from quaid.storage.sqlite.errors import translate_os_errors

if TYPE_CHECKING:
    from quaid.embedding.registry import Embedder

BACKGROUND_SETTING = "background_embedding"
RETRY_SECONDS = 600
CONVERSATIONS_SETTING = "embed_conversations"
RECENT_DAYS = 90
"""With embed_conversations set to "recent", conversations that ended more than this many days ago are not embedded.

`quaid embed --all` embeds them too.
"""

REST_SECONDS = 60
"""Queries do not use an embedding model for this many seconds after it failed to respond."""

RECENT_SECONDS = 600
"""While many vectors are missing, a query creates only vectors of pages saved at most this many seconds ago."""

SLOW_SECONDS = 1.0
"""A model that takes at least this many seconds to fail counts as not responding."""


def is_embedding_on(brain: Brain) -> bool:
    """Return True unless background embedding or semantic search is turned off."""
    return brain.option(BACKGROUND_SETTING) != "off" and bool(brain.model_name)


def turns_since(brain: Brain) -> str | None:
    """Return the time after which a conversation must have ended to be embedded.

    "" means all conversations, and None means no conversations.
    """
    which = brain.option(CONVERSATIONS_SETTING)
    if which == "off":
        return None
    return brain.now(-RECENT_DAYS * 86_400) if which == "recent" else ""


def embed_missing(brain: Brain) -> None:
    """Create missing vectors unless another process is creating them. Failures are recorded, not raised."""
    try:
        embedder = brain.embedder
    except QuaidError as failure:
        model = collections.get_setting(brain.db, "embedding_model") or ""
        record_failure(brain, model, str(failure).rstrip("."))
        return
    with suppress(QuaidError):  # Backfill.run() has recorded its failure
        use_chosen_model(brain, embedder)
        _backfill(brain, embedder).run(turns_since=turns_since(brain), patient=False)
        vectors.drop_outlived_vectors(brain.db)


def _backfill(brain: Brain, embedder: "Embedder") -> Backfill:
    return Backfill(brain.db, embedder, brain.now, brain.progress)


def use_chosen_model(brain: Brain, embedder: "Embedder") -> None:
    """Activate the configured model if another one is active. The vectors of the previous model are kept."""

    active = vectors.active_model(brain.db)
    if active is not None and active.name != embedder.name:
        moment = brain.now()
        brain.db.write(lambda tx: vectors.use_model(tx, embedder.name, embedder.dimensions, moment))


def embed_few(brain: Brain, embedder: "Embedder", turns: str | None = None) -> str:
    """Create a few missing vectors, unless the model has failed recently (see Backfill.embed_few).

    If `turns` is None, the vectors are those of page chunks. If it is a time, they are those of turns (messages)
    in conversations that ended since that time. Nothing is done if the memory is read-only or background
    embedding is off. Return the problem if the model hangs, else "".
    """
    if not brain.db.writable or not is_embedding_on(brain) or failed_recently(brain, embedder.name):
        return ""
    started = time.monotonic()
    try:
        if embedder.ready() is None:
            use_chosen_model(brain, embedder)
            work = _backfill(brain, embedder)
            work.embed_few(turns, brain.asked_up_to, brain.now(-RECENT_SECONDS))
            brain.asked_up_to = work.checked_up_to
    except Cancelled:
        raise
    except QuaidError as failure:
        # A rejected input fails at once. Only a slow failure means that the model hangs.
        hangs = isinstance(failure, EmbedderUnavailable) and time.monotonic() - started >= SLOW_SECONDS
        record_failure(brain, embedder.name, backfill.failure_reason(failure), down=hangs)
        return str(failure).rstrip(".") if hangs else ""
    return ""


class QuestionEmbedder:
    """Embedder for one command. It embeds each query once, and records whether the model responds."""

    def __init__(self, brain: Brain, embedder: "Embedder") -> None:
        self._brain, self._embedder = brain, embedder
        self._vectors: dict[str, bytes] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed_query(self, text: str) -> bytes:
        if text not in self._vectors:
            try:
                self._vectors[text] = self._embedder.embed_query(text)
            except EmbedderUnavailable as failure:
                record_failure(self._brain, self.name, backfill.failure_reason(failure), down=True)
                raise
            clear_failure(self._brain, self.name)
        return self._vectors[text]


def backoff_reason(brain: Brain, model: str) -> str:
    """Return why queries skip a model that failed less than REST_SECONDS ago, or "" if it may be used."""
    failed = unresolved_failure(brain, model)
    if failed is None or failed.at <= brain.now(-REST_SECONDS):
        return ""
    return f"the model {model} failed at {failed.at}: {failed.problem}; it is tried again after a minute"


def unresolved_failure(brain: Brain, model: str) -> EmbeddingFailure | None:
    """Return the model's last failure to respond, or None if it has responded since."""
    failed = embedding_queue.last_failure(brain.db.path)
    return failed if failed is not None and failed.down and failed.model == model else None


def clear_failure(brain: Brain, model: str) -> None:
    """Clear the recorded failure of a model that responds again, so that waiting work resumes."""
    if unresolved_failure(brain, model) is not None:
        with suppress(QuaidError):  # the folder may not be writable
            embedding_queue.record_state(brain.db.path, {})


def record_failure(brain: Brain, model: str, problem: str, *, down: bool = False) -> None:
    """Record a failure of a model, for `quaid status`. `down` means that the model does not respond."""
    state = embedding_queue.failure_state(model, problem, brain.now(), down=down)
    with suppress(QuaidError):  # the folder may not be writable
        embedding_queue.record_state(brain.db.path, state)


def failed_recently(brain: Brain, model: str | None = None) -> bool:
    """Return True if this model failed less than RETRY_SECONDS ago. If `model` is None, any model counts."""
    failed = embedding_queue.last_failure(brain.db.path)
    return failed is not None and model in (None, failed.model) and failed.at > brain.now(-RETRY_SECONDS)


def question_embedder(brain: Brain, turns: str | None = None) -> "Embedder | str":
    """Return the embedder for a query, or the reason why there is none.

    embed_few() first creates a few missing vectors: those of conversations that ended since the time `turns`, or
    those of page chunks if `turns` is None.
    """
    try:
        embedder = brain.embedder
    except QuaidError as failure:
        return str(failure).rstrip(".")
    # If the model is known to hang, do not wait for it again.
    problem = backoff_reason(brain, embedder.name) or embed_few(brain, embedder, turns)
    return problem or cast("Embedder", QuestionEmbedder(brain, embedder))


UNFINISHED_SUFFIX = "-unfinished"


def rebuild_if_deleted(brain: Brain) -> None:
    """Rebuild a deleted database from the folders that were attached to it.

    If the database exists but the list of its folders is missing, write the list. This is called before a
    query is answered.
    """
    if brain.settings.only:
        return  # a restricted caller cannot see all folders
    if os.path.lexists(brain.settings.db_path):
        if not os.path.exists(collections.folder_list_path(brain.db.path)) and brain.db.writable:
            collections.write_folder_list(brain.db)
        return
    path = os.path.realpath(brain.settings.db_path)
    folder_list = collections.read_folder_list(path)
    if folder_list is None or not brain.leaves_marks:
        return  # opening the database will raise MissingDatabase
    with suppress(QuaidError):
        brain.close()  # a server may still have the deleted file open
    with WriterLock(path).held():
        if os.path.lexists(path):  # another process has rebuilt it
            return
        message = _rebuild_memory(brain, path, folder_list)
    if brain.notice is not None:
        brain.notice(message)


def _rebuild_memory(brain: Brain, path: str, folder_list: FolderList) -> str:
    unfinished = path + UNFINISHED_SUFFIX
    taken_in, missing = [], []
    with translate_os_errors(path):
        log = _set_log_aside(path)
        durable_files.remove_with_sidecars(unfinished)
        try:
            with brain.beside(unfinished) as other:
                other.create(unfinished, folder_list.memory_id, folder_list.cipher)
                for folder in folder_list.folders:
                    problem = _attach_listed_folder(other, folder)
                    if problem:
                        missing.append(f"{folder.name} ({problem})")
                    else:
                        taken_in.append(folder.name)
                shown = Collections(other.db).page_counts()
                pages = {
                    collection.name: shown.get(collection.id, (0, 0))[0]
                    for collection in Collections(other.db).all()
                }
            durable_files.rename_durably(unfinished, path)
        finally:
            durable_files.remove_with_sidecars(unfinished)
            with suppress(FileNotFoundError):
                os.unlink(WriterLock(unfinished).path)
    return _rebuild_message(
        brain, path, folder_list, [(name, pages[name]) for name in taken_in], missing, log
    )


def _attach_listed_folder(brain: Brain, folder: AttachedFolder) -> str:
    """Attach a folder and sync it. Return the problem, or ""."""
    now = brain.now()

    def work(tx: Transaction) -> None:
        collections.add(tx, folder.name, folder.kind, folder.root, folder.writable, now)
        if folder.is_write_target:
            Collections(tx).require(folder.name).update(tx, is_write_target=True)

    brain.db.write(work)
    if not os.path.isdir(folder.root):
        return f"{folder.root} is not there"
    collection = Collections(brain.db).require(folder.name)
    try:
        sync_collection(brain.db, collection, now=now, new_uuid=brain.new_uuid, progress=brain.progress)
    except QuaidError as error:
        return str(error)
    return ""


def _set_log_aside(path: str) -> str:
    """Rename the WAL file of a deleted database and return its new path, or "" if there is no such file.

    Without this, SQLite would replay the WAL file into the new database. The -shm file is deleted.
    """
    with suppress(FileNotFoundError):
        os.unlink(path + "-shm")
    if not os.path.lexists(path + "-wal"):
        return ""
    name, number = f"{path}-wal-of-deleted", 1
    while os.path.lexists(name):
        number += 1
        name = f"{path}-wal-of-deleted-{number}"
    os.rename(path + "-wal", name)
    return name


def _rebuild_message(
    brain: Brain,
    path: str,
    folder_list: FolderList,
    taken_in: list[tuple[str, int]],
    missing: list[str],
    log: str,
) -> str:
    pages = ", ".join(f"{count_noun(number, 'page')} of {name}" for name, number in taken_in) or "no pages"
    message = f"{path} was deleted and is rebuilt from its folders: {pages}."
    message += "".join(f" Not rebuilt: {folder}." for folder in missing)
    message += " Pages, links, facts and conversations that no file holds are not in it"
    backup = (
        backups.newest_copy_with_id(folder_list.memory_id, brain.settings.backup_folders, but=path)
        if folder_list.memory_id
        else None
    )
    if backup:
        message += f"; the backup {backup} has those of its day"
    return f"{message}; the log that it left is {log}" if log else message


ChangeEvent = tuple[str, dict[str, Any]]
"""The kind of a change and its data.

The kinds are "changed", "embedding" and "gap" (a question that the memory could not answer).
"""


class ChangeDetector:
    """Detects changes of a database between calls of look(). The first call reports only embedding events."""

    def __init__(self) -> None:
        self._stamp: tuple[int, int] | None = None
        self._state: list[Any] | None = None
        self._gap = 0
        self._filling = ""

    def look(self, brain: Brain) -> list[ChangeEvent]:
        """Return the events since the previous call."""
        news = self._embedding(brain)
        stamp = brain.db.change_stamp()
        if stamp == self._stamp:
            return news
        first, self._stamp = self._stamp is None, stamp
        *state, gap = briefing.latest_changes(brain.db)
        if not first and state != self._state:
            news.append(("changed", {"pages": state[0], "updated_at": state[1]}))
        if not first and gap > self._gap:
            news.append(("gap", {"id": gap, "open": Gaps(brain.db).read(0)[1]}))
        self._state, self._gap = state, gap
        return news

    def _embedding(self, brain: Brain) -> list[ChangeEvent]:
        at_work = embedding_queue.current_run(brain.db.path)
        model = at_work.model if at_work else self._filling
        self._filling = at_work.model if at_work else ""
        if not model or model not in vectors.list_models(brain.db):
            return []
        made, total = embedding_queue.ChunkQueue(brain.db, model).coverage()
        facts = {"model": model, "done": made, "total": total, "finished": at_work is None}
        return [("embedding", facts)]
