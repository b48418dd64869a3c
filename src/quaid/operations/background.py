"""Work that nobody has to ask for: embed missing text, elect a watcher, rebuild a deleted memory, notice changes.

A server decides here whether work is due; another process does it.
"""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.app import Brain
from quaid.embedding import backfill
from quaid.embedding.backfill import run_backfill
from quaid.errors import Cancelled, EmbedderUnavailable, QuaidError
from quaid.folders.sync import sync_collection
from quaid.model.plain_text import count_noun
from quaid.operations.doctor import backup_folders
from quaid.storage import briefing, collections, embedding_queue, files as durable_files, gaps, vectors
from quaid.storage.collections import (
    HEARTBEAT_SECONDS,
    STALE_SECONDS,
    AttachedFolder,
    FolderList,
    WatchLeases,
    WatchSession,
)
from quaid.storage.embedding_queue import ChangeStamp, EmbeddedRange, EmbeddingFailure, TurnScope
from quaid.storage.sqlite import backup as backups
from quaid.storage.sqlite.connection import WriterLock
from quaid.storage.sqlite.errors import translate_os_errors

if TYPE_CHECKING:
    from quaid.embedding.registry import Embedder

BACKGROUND_SETTING, BACKGROUND_VARIABLE = "background_embedding", "QUAID_BACKGROUND_EMBEDDING"
RETRY_SECONDS = 600
CONVERSATIONS_SETTING = "embed_conversations"
RECENT_DAYS = 90
"""What ended earlier is embedded only if all conversations are, or by `quaid embed --all`."""

REST_SECONDS = 60
"""So long questions do without a model that did not answer one."""

DELETE_BATCH = 2_000
"""Vectors that one write drops."""

SLOW_SECONDS = 1.0
"""Whoever needs longer to fail is not asked again for the same question."""


def is_embedding_on(brain: Brain) -> bool:
    """Whether vectors may be made without a call for it: never while semantic search is off."""
    return brain.option(BACKGROUND_SETTING) != "off" and bool(brain.model_name)


def turns_to_embed(brain: Brain) -> TurnScope:
    """Which turns of conversations are to have vectors, as embed_conversations says."""
    which = str(brain.option(CONVERSATIONS_SETTING))
    return TurnScope(which, brain.now(-RECENT_DAYS * 86_400) if which == "recent" else "")


def turns_since(brain: Brain) -> str | None:
    """The moment since which turns are to have vectors, "" for all; None: none are."""
    wanted = turns_to_embed(brain)
    return None if wanted.which == "off" else wanted.since


class EmbeddingMonitor:
    """What a server remembers between two looks at its memory."""

    def __init__(self) -> None:
        self._stamp: ChangeStamp | None = None
        self._whole: EmbeddedRange | None = EmbeddedRange()  # None: something lacks a vector
        self._tried: ChangeStamp | None = None  # the state in which somebody was last sent to fill
        self._troubled = False  # what went wrong was there at the last look

    def wants(self, brain: Brain) -> bool:
        """Whether somebody should be sent to make vectors now."""
        if not os.path.exists(brain.settings.db_path) or not brain.db.writable:
            return False
        stamp = embedding_queue.change_stamp(brain.db)
        if stamp != self._stamp:
            self._whole = embedding_queue.embedded_range(
                brain.db, self._whole or EmbeddedRange(), turns_to_embed(brain)
            )
            self._stamp = stamp
        if (
            self._whole is not None
            or not is_embedding_on(brain)
            or embedding_queue.current_run(brain.db.path)
        ):
            return False
        failed = embedding_queue.last_failure(brain.db.path)
        recovered, self._troubled = self._troubled and failed is None, failed is not None
        if failed is not None and failed.at > brain.now(-RETRY_SECONDS):
            wanted = stamp.own != (self._tried.own if self._tried else 0)
        else:
            # Whoever changed nothing will change nothing, unless the model is back.
            wanted = recovered or failed is not None or self._tried != stamp
        if wanted:
            self._tried = stamp
        return wanted


def embed_missing(brain: Brain) -> None:
    """Make what is missing, unless another process does. What goes wrong is left in writing."""
    embedder = _model_or_problem(brain)
    if embedder is not None:
        try:
            use_chosen_model(brain, embedder)
            run_backfill(
                brain.db,
                embedder,
                now=brain.now,
                progress=brain.progress,
                turns_since=turns_since(brain),
                patient=False,
            )
            _drop_stale_vectors(brain)
        except QuaidError:
            pass  # noted


def _drop_stale_vectors(brain: Brain) -> None:
    """Drop vectors of texts that are gone, once they outnumber the others: a server holds them all."""

    outlived = vectors.unused_contents(brain.db)
    for at in range(0, len(outlived), DELETE_BATCH):
        some = outlived[at : at + DELETE_BATCH]
        brain.db.write(lambda tx, some=some: vectors.drop_unused_vectors(tx, some))  # type: ignore[misc]


def use_chosen_model(brain: Brain, embedder: "Embedder") -> None:
    """Search with the chosen model from now on, if another was in use; what it made stays."""

    active = vectors.active_model(brain.db)
    if active is not None and active.name != embedder.name:
        moment = brain.now()

        def work(tx: Any) -> None:
            vectors.register_model(tx, embedder.name, embedder.dimensions, moment)
            vectors.activate_model(tx, embedder.name)

        brain.db.write(work)


def embed_few(brain: Brain, embedder: "Embedder", turns: str | None = None) -> str:
    """Make what is missing if that is little and likely to work. Why the model is not to be asked more, if so.

    With a moment, what was said in conversations since then; else what pages lack.
    """
    if not brain.db.writable or not is_embedding_on(brain) or _failed_recently(brain, embedder.name):
        return ""
    started = time.monotonic()
    try:
        if embedder.ready() is None:
            use_chosen_model(brain, embedder)
            if turns is None:
                backfill.embed_few_chunks(brain.db, embedder, now=brain.now, progress=brain.progress)
            else:
                backfill.embed_few_turns(
                    brain.db, embedder, now=brain.now, progress=brain.progress, since=turns
                )
    except Cancelled:
        raise
    except QuaidError as failure:
        # Some texts are refused, and at once; a model that hangs is another matter.
        hangs = isinstance(failure, EmbedderUnavailable) and time.monotonic() - started >= SLOW_SECONDS
        record_failure(brain, embedder.name, _failure_text(failure), down=hangs)
        return str(failure).rstrip(".") if hangs else ""
    return ""


class QuestionEmbedder:
    """A model for one question: what goes wrong is left in writing, and so is that it goes right again."""

    def __init__(self, brain: Brain, embedder: "Embedder") -> None:
        self._brain, self._embedder = brain, embedder
        self.name, self.dimensions, self.max_tokens = embedder.name, embedder.dimensions, embedder.max_tokens
        self.query_prefix, self.passage_prefix = embedder.query_prefix, embedder.passage_prefix
        self.unrelated: float | None = getattr(embedder, "unrelated", None)

    def ready(self) -> str | None:
        return self._embedder.ready()

    def health(self) -> str | None:
        return self._embedder.health()

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        return self._embedder.embed_passages(texts)

    def embed_query(self, text: str) -> bytes:
        try:
            vector = self._embedder.embed_query(text)
        except EmbedderUnavailable as failure:
            record_failure(self._brain, self.name, _failure_text(failure), down=True)
            raise
        clear_failure(self._brain, self.name)
        return vector


def backoff_reason(brain: Brain, model: str) -> str:
    """Why a question does without a model that failed a moment ago; "" when it may be asked."""
    failed = unresolved_failure(brain, model)
    if failed is None or failed.at <= brain.now(-REST_SECONDS):
        return ""
    return f"the model {model} failed at {failed.at}: {failed.problem}; it is tried again after a minute"


def unresolved_failure(brain: Brain, model: str) -> EmbeddingFailure | None:
    """The last failure of a model that has not answered since."""
    failed = embedding_queue.last_failure(brain.db.path)
    return failed if failed is not None and failed.down and failed.model == model else None


def clear_failure(brain: Brain, model: str) -> None:
    """Say that a model answers: whatever waits for that goes on."""
    if unresolved_failure(brain, model) is not None:
        try:
            embedding_queue.clear_failure(brain.db.path)
        except QuaidError:
            pass  # a folder that cannot be written


def record_failure(brain: Brain, model: str, problem: str, *, down: bool = False) -> None:
    """Say what went wrong, where `quaid status` finds it."""
    try:
        embedding_queue.record_failure(brain.db.path, model, problem, brain.now(), down=down)
    except QuaidError:
        pass  # a folder that cannot be written


def _failure_text(failure: QuaidError) -> str:
    """A failure as it may be written down: a server's own words may repeat the text that it was sent."""
    return str(failure.facts.get("noted") or failure.facts.get("problem") or failure).rstrip(".")


def record_exit(brain: Brain, problem: str) -> None:
    """Say that a process which made vectors died, unless it said why itself."""
    if not _failed_recently(brain, None):
        record_failure(brain, collections.get_setting(brain.db, "embedding_model") or "", problem)


def _failed_recently(brain: Brain, model: str | None) -> bool:
    failed = embedding_queue.last_failure(brain.db.path)
    return failed is not None and model in (None, failed.model) and failed.at > brain.now(-RETRY_SECONDS)


def _model_or_problem(brain: Brain) -> "Embedder | None":
    try:
        return brain.embedder
    except QuaidError as failure:
        record_failure(
            brain, collections.get_setting(brain.db, "embedding_model") or "", str(failure).rstrip(".")
        )
        return None


def question_embedder(brain: Brain) -> "tuple[Embedder | None, str]":
    """The active model with the last few vectors made, or why not: a question is answered all the same."""
    try:
        embedder = brain.embedder
    except QuaidError as failure:
        return None, str(failure).rstrip(".")
    # A model that hangs is not asked twice.
    problem = backoff_reason(brain, embedder.name) or embed_few(brain, embedder)
    return (None, problem) if problem else (QuestionEmbedder(brain, embedder), "")


SECONDS_TO_RELEASE = 1.0
"""A memory that is busy for longer is not told that we go; others find out."""


class Heartbeat(NamedTuple):
    """Seconds between two signs of life, and after which silence means death."""

    beat: float = HEARTBEAT_SECONDS
    stale: float = STALE_SECONDS


HEARTBEAT = Heartbeat()


class WatchDemand(NamedTuple):
    watcher: bool
    """A folder is watched by nobody."""
    soon: bool
    """And whoever watches another one may take it in a moment."""


def watch_demand(brain: Brain, rhythm: Heartbeat = HEARTBEAT) -> WatchDemand:
    """Whether somebody should be sent to watch."""
    if not os.path.exists(brain.settings.db_path) or not brain.db.writable:
        return WatchDemand(False, False)
    standing = collections.read_leases(brain.db, own_session(brain, rhythm), brain.now)
    return WatchDemand(bool(standing.free), bool(standing.free and standing.others))


class WatchLease:
    """The right to watch, kept alive by a thread while this is entered."""

    def __init__(self, brain: Brain, name: str | None = None, rhythm: Heartbeat = HEARTBEAT) -> None:
        self.standing = WatchLeases(frozenset(), (), ())
        self._brain = brain
        self._name = name
        self._seconds = rhythm.beat
        self._me = own_session(brain, rhythm)
        self._ending = Event()
        self._thread = Thread(target=self._keep, name="lease", daemon=True)

    def beat(self) -> None:
        """Say that we live, and take what is free. Who has nothing and finds nothing writes nothing."""
        standing = collections.read_leases(self._brain.db, self._me, self._brain.now, self._name)
        if standing.mine or standing.free:
            standing = collections.take_leases(self._brain.db, self._me, self._brain.now, self._name)
        self.standing = standing

    def __enter__(self) -> "WatchLease":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(SECONDS_TO_RELEASE)
        lock = self._brain.db.lock
        before, lock.patience = lock.patience, SECONDS_TO_RELEASE
        try:
            collections.release_leases(self._brain.db, self._me)
        except QuaidError:
            pass  # it counts as silent soon
        finally:
            lock.patience = before

    def _keep(self) -> None:
        while not self._ending.wait(self._seconds):
            try:
                self.beat()
            except Exception:  # noqa: S110 (a memory that is busy, full or just closed: the next beat tries again)
                pass


def own_session(brain: Brain, rhythm: Heartbeat = HEARTBEAT) -> WatchSession:
    """This process, as others know it."""
    return WatchSession(brain.new_uuid(), os.getpid(), _host_name(), rhythm.stale)


def _host_name() -> str:
    """Where the numbers of processes mean the same: the machine, and the container on it."""
    name = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    try:
        return f"{name} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return name


UNFINISHED_SUFFIX = "-unfinished"


def rebuild_if_deleted(brain: Brain) -> None:
    """Before a question: rebuild a deleted memory, or note the folders of one that has no list of them yet."""
    if os.path.lexists(brain.settings.db_path):
        if not os.path.exists(collections.folder_list_path(brain.db.path)) and brain.db.writable:
            collections.write_folder_list(brain.db)
        return
    path = os.path.realpath(brain.settings.db_path)
    known = collections.read_folder_list(path)
    if known is None or not brain.leaves_marks:
        return  # whoever opens the memory says that there is none
    with suppress(QuaidError):
        brain.close()  # a server may still have the deleted file open
    with WriterLock(path).held():
        if os.path.lexists(path):  # another process was faster
            return
        told = _rebuild_memory(brain, path, known)
    if brain.notice is not None:
        brain.notice(told)


def create_memory(brain: Brain, path: str) -> str:
    """Make a new memory. Return the folders of a deleted one that was at its place, which are not attached to it."""
    former = collections.read_folder_list(os.path.realpath(path))
    collections.write_folder_list(brain.create(path))
    return ", ".join(f"{each.name} ({each.root})" for each in former.folders) if former else ""


def _rebuild_memory(brain: Brain, path: str, known: FolderList) -> str:
    unfinished = path + UNFINISHED_SUFFIX
    taken_in, missing = [], []
    with translate_os_errors(path):
        log = _set_log_aside(path)
        durable_files.remove_with_sidecars(unfinished)
        try:
            with brain.beside(unfinished) as other:
                other.create(unfinished, known.memory_id)
                for each in known.folders:
                    problem = _attach_listed_folder(other, each)
                    if problem:
                        missing.append(f"{each.name} ({problem})")
                    else:
                        taken_in.append(each.name)
                shown = collections.page_counts(other.db)
                pages = {each.name: shown.get(each.id, (0, 0))[0] for each in collections.list_all(other.db)}
            durable_files.rename_durably(unfinished, path)
        finally:
            durable_files.remove_with_sidecars(unfinished)
            with suppress(FileNotFoundError):
                os.unlink(WriterLock(unfinished).path)
    return _rebuild_message(brain, path, known, [(name, pages[name]) for name in taken_in], missing, log)


def _attach_listed_folder(brain: Brain, folder: AttachedFolder) -> str:
    """Attach a folder and take its files in. Return what is wrong with it, if anything."""
    now = brain.now()

    def work(tx: object) -> None:
        added = collections.add(tx, folder.name, folder.kind, folder.root, folder.writable, now)  # type: ignore[arg-type]
        if folder.is_write_target:
            collections.set_write_target(tx, added)  # type: ignore[arg-type]

    brain.db.write(work)
    if not os.path.isdir(folder.root):
        return f"{folder.root} is not there"
    found = collections.require(brain.db, folder.name)
    try:
        sync_collection(brain.db, found, now=now, new_uuid=brain.new_uuid, progress=brain.progress)
    except QuaidError as error:
        return str(error)
    return ""


def _set_log_aside(path: str) -> str:
    """Give the log that a deleted memory left another name: SQLite would play it into the new file."""
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
    brain: Brain, path: str, known: FolderList, taken_in: list[tuple[str, int]], missing: list[str], log: str
) -> str:
    pages = ", ".join(f"{count_noun(number, 'page')} of {name}" for name, number in taken_in) or "no pages"
    told = f"{path} was deleted and is rebuilt from its folders: {pages}."
    told += "".join(f" Not rebuilt: {each}." for each in missing)
    told += " Pages, links, facts and conversations that no file holds are not in it"
    backup = (
        backups.newest_copy_with_id(known.memory_id, backup_folders(brain), but=path)
        if known.memory_id
        else None
    )
    if backup:
        told += f"; the backup {backup} has those of its day"
    return f"{told}; the log that it left is {log}" if log else told


class ChangeEvent(NamedTuple):
    kind: str  # changed, gap or embedding
    facts: dict[str, Any]


class ChangeDetector:
    """What was seen last. The first look tells nothing."""

    def __init__(self) -> None:
        self._stamp: ChangeStamp | None = None
        self._state: tuple[Any, ...] | None = None
        self._gap = 0
        self._filling = ""

    def look(self, brain: Brain) -> list[ChangeEvent]:
        """What is new."""
        news = self._embedding(brain)
        stamp = embedding_queue.change_stamp(brain.db)
        if stamp == self._stamp:
            return news
        first, self._stamp = self._stamp is None, stamp
        state, gap = briefing.page_count_and_last_change(brain.db), gaps.latest(brain.db)
        if not first and state != self._state:
            news.append(ChangeEvent("changed", {"pages": state[0], "updated_at": state[1]}))
        if not first and gap > self._gap:
            news.append(ChangeEvent("gap", {"id": gap, "open": gaps.count(brain.db, resolved=False)}))
        self._state, self._gap = state, gap
        return news

    def _embedding(self, brain: Brain) -> list[ChangeEvent]:
        at_work = embedding_queue.current_run(brain.db.path)
        model = at_work.model if at_work else self._filling
        self._filling = at_work.model if at_work else ""
        if not model or vectors.find_model(brain.db, model) is None:
            return []
        made, total = embedding_queue.chunk_coverage(brain.db, model)
        return [
            ChangeEvent(
                "embedding",
                {"model": model, "done": made, "total": total, "finished": at_work is None},
            )
        ]
