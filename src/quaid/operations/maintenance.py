"""Status, statistics, validation, rebuild, backup, settings, upgrades and encryption of a memory."""

import json
import os
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import quaid
from quaid import config, errors, server_socket
from quaid.app import CLIENT_ONLY, RERANKER_SETTING, Brain
from quaid.config import OPTIONS, canonical_name, check_folder_list, check_option, environment_variable
from quaid.embedding import registry as embedders
from quaid.embedding.registry import Embedder
from quaid.folders import atomic_write, attachments, page_writer, restore
from quaid.folders.scanner import Folder
from quaid.kb.repository import mask_urls
from quaid.model import dates
from quaid.model.facts import check_predicate_setting
from quaid.model.plain_text import count_noun
from quaid.notebook import layout
from quaid.operations import background, dispatch, golden, notebook as noting
from quaid.operations.dispatch import suggestion
from quaid.operations.query import can_seal
from quaid.operations.registry import Arg, Named, op
from quaid.storage import (
    SCHEMA_VERSION,
    briefing,
    checks,
    chunks,
    collections,
    embedding_queue,
    expiry,
    files as durable_files,
    vectors,
)
from quaid.storage.agents import Proposals
from quaid.storage.briefing import Stats, open_counts
from quaid.storage.checks import Violation, rebuild_derived_rows as rebuilt, recut_pages
from quaid.storage.collections import Collections
from quaid.storage.conversations import Conversations
from quaid.storage.embedding_queue import EmbeddingFailure, EmbeddingRun, TurnQueue
from quaid.storage.pages import count as count_pages
from quaid.storage.questions import OpenedResults
from quaid.storage.spaces import SharedState, Spaces
from quaid.storage.sqlite import backup as backups, encryption
from quaid.storage.sqlite.backup import BackedUp, Compacted
from quaid.storage.sqlite.connection import Transaction, cipher_header
from quaid.storage.sqlite.errors import translate_os_errors

if TYPE_CHECKING:
    from quaid.storage.sqlite.encryption import CipherKey


class ActiveModel(NamedTuple):
    """The embedding model used for queries."""

    name: str
    ready: bool
    problem: str | None
    remedy: str | None
    vectors: int  # number of chunks with a vector
    missing: int
    pages_begun: int  # pages whose first chunk has a vector
    entries_missing: int  # list entries, table rows and single sentences without a separate vector


class OtherModel(NamedTuple):
    """A model with stored vectors that is not in use."""

    name: str
    dimensions: int
    vectors: int


class ConversationCoverage(NamedTuple):
    """Embedding coverage of conversations."""

    turns: int
    missing: int  # turns that should have a vector and have none
    embedding: str  # value of the setting embed_conversations: recent, on or off
    recent_days: int


class StatusRecord(NamedTuple):
    path: str
    size: int
    wal_size: int
    writable: bool
    schema_version: int
    pages: int
    # Pages not yet split into chunks, for example after an import; the next query splits them.
    pages_uncut: int
    chunks: int
    model: ActiveModel
    others: tuple[OtherModel, ...]
    background_embedding: bool
    filling: EmbeddingRun | None
    trouble: EmbeddingFailure | None
    next_steps: tuple[str, ...]
    conversations: ConversationCoverage
    files_not_taken_in: int  # files in attached folders that could not be indexed; see `quaid doctor`
    folders_halted: tuple[str, ...]  # collections whose sync failed or needs confirmation
    resident: bool  # True if commands are forwarded to a running server for this memory
    proposals: int = 0  # writes of agents that await `quaid review`
    spaces: tuple[SharedState, ...] = ()
    expired: int = 0  # expired pages, lines and facts that are hidden and listed by `quaid expired`
    retention: tuple[tuple[str, str], ...] = ()  # retention settings and their periods


@op("read", core=True, examples=("quaid status", "quaid status --json"))
def status(brain: Brain) -> StatusRecord:
    """Show the state of the memory: pages, chunks, vectors, the model, and recommended commands."""
    db = brain.db
    with db.reading():
        pages = count_pages(db)
        uncut = len(chunks.uncut_pages(db))
        active = _active_model(brain)
        others = [
            OtherModel(model.name, model.dimensions, embedding_queue.ChunkQueue(db, model.name).coverage()[0])
            for model in vectors.list_models(db).values()
            if model.name != active.name
        ]
        turns = _conversation_coverage(brain, active.name)
    # The background worker's state covers all pages, so it is withheld from restricted callers.
    failed, filling = (
        (None, None)
        if db.only
        else (embedding_queue.last_failure(db.path), embedding_queue.current_run(db.path))
    )
    record = StatusRecord(
        path=db.path,
        size=db.file_size(),
        wal_size=db.file_size("-wal"),
        writable=db.writable,
        schema_version=SCHEMA_VERSION,
        pages=pages,
        pages_uncut=uncut,
        chunks=active.vectors + active.missing,
        model=active,
        others=tuple(other for other in others if other.vectors),
        background_embedding=background.is_embedding_on(brain),
        filling=filling,
        trouble=failed
        if failed and failed.model == active.name and (failed.down or active.missing + uncut + turns.missing)
        else None,
        next_steps=(),
        conversations=turns,
        files_not_taken_in=sum(
            not file.taken_in for files in Collections(db).file_problems().values() for file in files
        ),
        folders_halted=tuple(
            collection.name
            for collection in Collections(db).all()
            if collection.state == "active" and collection.halt_reason
        ),
        resident=server_socket.is_listening(brain.settings.home, db.path),
        proposals=Proposals(db).count_open(),
        spaces=Spaces(db).states(),
        expired=open_counts(db)["expired"],
        retention=tuple((rule.setting, rule.period) for rule in expiry.retention_rules(db)),
    )
    return record._replace(next_steps=tuple(_next_steps(record)))


def _active_model(brain: Brain) -> ActiveModel:
    name = brain.model_name or collections.get_setting(brain.db, "embedding_model") or embedders.DEFAULT_MODEL
    problem, remedy = _model_problem(brain, name)
    queue = embedding_queue.ChunkQueue(brain.db, name)
    made, total = queue.coverage()
    entries = embedding_queue.EntryQueue(brain.db, name).count()
    return ActiveModel(
        name, problem is None, problem, remedy, made, total - made, queue.pages_begun(), entries
    )


def _conversation_coverage(brain: Brain, model: str) -> ConversationCoverage:
    since = background.turns_since(brain)
    *_, turns = Conversations(brain.db).latest(0)
    missing = 0 if since is None else TurnQueue(brain.db, model, since).count_turns()
    which = str(brain.option(background.CONVERSATIONS_SETTING))
    return ConversationCoverage(turns, missing, which, background.RECENT_DAYS)


def _model_problem(brain: Brain, name: str) -> tuple[str | None, str | None]:
    """Return why the model cannot be used and the remedy, or None for both if it can be used."""
    try:
        embedder: Embedder = brain.embedder
        problem = embedder.ready()
    except errors.EmbeddingsOff:
        return "semantic search is off", brain.way_to_meaning
    except errors.QuaidError as error:
        return str(error.facts.get("problem") or error).rstrip("."), _remedy_of(name)
    except Exception as error:  # a plugin or manually edited settings may cause any error; report it
        return f"it fails ({type(error).__name__}: {error})", _remedy_of(name)
    failed = None if problem else background.unresolved_failure(brain, name)
    if failed is not None:
        problem = f"it failed at {failed.at}: {failed.problem}"
    return problem, _remedy_of(name) if problem else None


def _remedy_of(name: str) -> str:
    return f"`quaid model check {name}` tests it, `quaid model list` shows the others"


def _next_steps(record: StatusRecord) -> list[str]:
    model, steps = record.model, []
    for name in record.folders_halted:
        steps.append(f"`quaid collection info {name}` shows why it is not in sync with its folder")
    if record.files_not_taken_in:
        files = count_noun(record.files_not_taken_in, "file")
        steps.append(f"`quaid doctor` lists {files} of attached folders that could not be indexed")
    if record.proposals:
        steps.append(f"`quaid review` decides on {count_noun(record.proposals, 'proposal')} of agents")
    if not record.pages:
        steps.append("`quaid put SLUG FILE` or `quaid import FOLDER` adds pages")
    if not model.ready:
        steps.append("until the model is available, questions are answered by words")
    elif not record.writable:
        pass
    elif record.filling:
        steps.append("nothing to do: vectors are being made")
    elif record.pages_uncut:
        steps.append(
            f"`quaid embed` splits {count_noun(record.pages_uncut, 'page')} into chunks and makes the vectors"
        )
    elif model.missing:
        number = f"{model.missing:,} missing vectors" if model.missing > 1 else "missing vector"
        steps.append(f"`quaid embed` makes the {number}")
    elif record.conversations.missing:
        turns = count_noun(record.conversations.missing, "turn")
        steps.append(f"`quaid embed` makes vectors for {turns} of conversations")
    return steps


SETTINGS: dict[str, tuple[str, ...]] = {
    "chunk_strategy": ("section", "window", "paragraph", "page"),
    "single_valued_predicates": (),
    "agent_writes": ("guarded", "direct", "review"),
    "agents_may": (),
    CLIENT_ONLY: (),
    "welcome": ("ask", "hint", "done"),
    "dream_accept": (),
    "dream_nightly": ("on", "off"),
    **{key: option.choices for key, option in OPTIONS.items() if option.stored == key},
}
"""Settings that a user may change, with their allowed values; () if the values cannot be listed."""

# Stored when a model is selected. Until then, the defaults are shown.
MODEL_SETTINGS = ("embedding_model", "embedding_dimensions")


class ValidateRecord(NamedTuple):
    checks: tuple[str, ...]
    violations: tuple[Violation, ...]
    chunks_without_vector: int | None = None
    """Number of chunks without a vector of the active model; None if not counted.

    This is not a violation, because vectors are created later.
    """
    pages_not_cut: int | None = None
    """Number of pages that are not yet split into chunks, for example after an import; None if not counted."""

    @property
    def exit_status(self) -> int:
        return 1 if self.violations else 0


class Setting(NamedTuple):
    key: str
    value: str
    source: str  # environment variable, config file, "memory" or "default"


@op("read", examples=("quaid stats",))
def stats(brain: Brain) -> Stats:
    """Count the contents of the memory."""
    return briefing.database_stats(brain.db)


@op(
    "owner",
    examples=(
        "quaid validate",
        "quaid validate --links --json",
        "quaid validate --original notes --exported export",
    ),
)
def validate(
    brain: Brain,
    links: Annotated[bool, Arg("Check intervals and ends of links.")] = False,
    assertions: Annotated[bool, Arg("Check duplicates and chains of assertions.")] = False,
    embeddings: Annotated[bool, Arg("Check models and their vectors.")] = False,
    fts: Annotated[bool, Arg("Check the word indexes against the pages.")] = False,
    integrity: Annotated[bool, Arg("Check the database file and its derived rows.")] = False,
    all: Annotated[bool, Arg("All of these; this is the default.")] = False,
    original: Annotated[str | None, Arg("An imported folder, to compare with --exported.", path=True)] = None,
    exported: Annotated[str | None, Arg("An exported folder, to compare with --original.", path=True)] = None,
) -> ValidateRecord:
    """Check the memory, or compare an exported folder with its original. Exits 1 if there are violations."""
    if (original is None) != (exported is None):
        raise errors.InvalidArgument(
            name="exported" if exported is None else "original",
            problem="is required too: two folders are compared",
        )
    if original is not None and exported is not None:
        differences = restore.compare_folders(
            brain.settings.path(original), brain.settings.path(exported), brain.progress
        )
        return ValidateRecord(
            ("round trip",), tuple(Violation("round trip", *difference) for difference in differences)
        )
    flags = (links, assertions, embeddings, fts, integrity)
    kinds = ("links", "assertions", "embeddings", "fts", "integrity")
    names = tuple(name for name, chosen in zip(kinds, flags, strict=True) if chosen or all or not any(flags))
    try:
        violations = checks.validate(brain.db, names)
    except errors.DamagedDatabase as error:  # the damage prevents the checks
        violations = [Violation("integrity", error.facts["path"], error.facts["problem"])]
    failed = {violation.check for violation in violations}
    can_count = "embeddings" in names and not {"embeddings", "integrity"} & failed
    missing = _vectors_to_make(brain) if can_count else (None, None)
    return ValidateRecord(names, tuple(violations), *missing)


def _vectors_to_make(brain: Brain) -> tuple[int | None, int | None]:
    """Count chunks without a vector, and pages without chunks. Return None for both if semantic search is off."""
    if not brain.model_name:
        return None, None
    with brain.db.reading():
        uncut = len(chunks.uncut_pages(brain.db))
        made, total = embedding_queue.ChunkQueue(brain.db, brain.model_name).coverage()
    return total - made, uncut


@op("owner", examples=("quaid compact",))
def compact(brain: Brain) -> Compacted:
    """Remove unused vectors and merge the write-ahead log into the database file, ready to copy."""
    if brain.db.writable:
        # Otherwise vectors of pages that are not split into chunks yet would count as unused.
        chunks.cut_pages(brain.db, brain.progress)
    return backups.compact(brain.db)


@op("owner", examples=("quaid backup", "quaid backup ~/memory-2026-04-25.db"))
def backup(
    brain: Brain,
    file: Annotated[
        str | None,
        Arg("The file to create; it must not exist [in ~/.quaid/backups].", positional=True, path=True),
    ] = None,
) -> BackedUp:
    """Copy the memory into a new file, even while other processes use it.

    Images of pages without a file are copied into a folder beside it, named like the file with .attachments as its
    ending. Files of attached folders are not copied."""
    path = brain.settings.path(file) if file else _new_backup_path(brain)
    source, key = os.path.realpath(brain.db.path), collections.read_image_key(brain.db)
    return backups.create_backup(
        brain.db, path, brain.new_uuid(), lambda target: attachments.back_up(source, target, key)
    )


def _new_backup_path(brain: Brain) -> str:
    folder = brain.settings.backup_folders[-1]
    os.makedirs(folder, mode=0o700, exist_ok=True)
    stem = os.path.splitext(os.path.basename(brain.settings.db_path))[0]
    moment = re.sub(r"[^0-9]", "", brain.now())
    return os.path.join(folder, f"{stem}-{moment[:8]}-{moment[8:]}.db")


class BackupRecord(NamedTuple):
    path: str
    made_at: str
    size: int


@op("owner", command="backups list", aliases={"backups": {}}, examples=("quaid backups list",))
def backup_list(brain: Brain) -> Named[tuple[BackupRecord, ...]]:
    """List the backups beside the memory and in ~/.quaid/backups, newest first. Other folders are not searched."""
    copies = backups.backups_of(brain.settings.db_path, brain.settings.backup_folders)
    records = (BackupRecord(path, dates.timestamp(made), os.path.getsize(path)) for path, made in copies)
    return Named("backups", tuple(records), "No backup found. `quaid backup` makes one.")


@op(
    "owner",
    command="backups verify",
    examples=("quaid backups verify ~/.quaid/backups/memory-20260425-120000.db",),
)
def backup_verify(
    brain: Brain, file: Annotated[str, Arg("The backup.", positional=True, path=True)]
) -> backups.IntactCopy:
    """Check that a backup is intact, and show how many pages it has. Exits 1 if it is damaged."""
    path = brain.settings.path(file)
    if not os.path.isfile(path):
        raise errors.NotFound(what="backup", name=file, hint=" `quaid backups list` lists them.")
    return backups.verify_backup(path)


@op("owner", command="config get", examples=("quaid config get default_token_budget",))
def config_get(brain: Brain, key: Annotated[str, Arg("The setting.", positional=True)]) -> Setting:
    """Show one setting."""
    every = _all_settings(brain)
    setting = every.get(key) or every.get(canonical_name(key))
    if setting is None:
        raise errors.NotFound(what="setting", name=key, hint=_setting_hint(brain, key))
    return setting


@op("owner", command="config set", examples=("quaid config set search_merge_strategy rrf",))
def config_set(
    brain: Brain,
    key: Annotated[str, Arg("The setting.", positional=True)],
    value: Annotated[str, Arg("Its new value.", positional=True)],
) -> Setting:
    """Change one setting."""
    _refuse_fixed(brain, key)
    choices = SETTINGS.get(_general_key(key))
    if choices and value not in choices:
        raise errors.InvalidArgument(name=key, problem=f"must be one of {', '.join(choices)}, not {value!r}")
    if key == "single_valued_predicates":
        check_predicate_setting(key, value)
    elif key == "conversation_folders":
        check_folder_list(key, value)
    elif key == "agents_may":
        _check_words(key, value, ("forget", "merge", "nothing"))
    elif key == "dream_accept":
        from quaid.operations.dream import KINDS  # slow to import

        _check_words(key, value, (*KINDS, "nothing"))
    elif key == "log_opened" and value == "words" and not can_seal(brain):
        raise errors.InvalidArgument(
            name=key, problem="needs encryption: `pip install 'quaid-memory[sealed]'` comes first"
        )
    elif key == expiry.GRACE_SETTING or key.startswith(expiry.RETENTION):
        _check_period(key, value)
    elif _general_key(key) == CLIENT_ONLY:
        key, value = key.lower(), _checked_parts(brain, key, value)
    elif key in OPTIONS:
        try:
            value = str(check_option(key, value))
        except ValueError as error:
            raise errors.InvalidArgument(name=key, problem=str(error)) from None

    def work(tx: Transaction) -> None:
        if key.startswith(expiry.RETENTION) and value == "off":
            collections.set_setting(tx, key, None)
            return
        collections.set_setting(tx, key, value)
        if key == "log_opened" and value == "off":
            OpenedResults(brain.db).forget(tx)
        if key == "chunk_strategy":
            recut_pages(tx)

    brain.db.write(work)
    return Setting(key, value, "memory")


@op("owner", command="config list", aliases={"config": {}}, examples=("quaid config list",))
def config_list(brain: Brain) -> Named[tuple[Setting, ...]]:
    """List all settings, and where each value comes from.

    Includes the options of config.yaml beside the memory, such as `search.max_results`; `--config FILE` names another
    file. The environment overrides the file, the file overrides the memory.
    """
    every = _all_settings(brain)
    return Named("settings", tuple(every[key] for key in sorted(every)))


def _all_settings(brain: Brain) -> dict[str, Setting]:
    """Return all settings, from the environment, else the config file, else the memory, else the defaults."""
    defaults = {key: option.default for key, option in OPTIONS.items()}
    defaults.update({"chunk_strategy": "", "single_valued_predicates": ""})
    defaults.update({"agent_writes": "guarded", "agents_may": "nothing", "welcome": "done"})
    defaults[CLIENT_ONLY] = "everything"
    defaults.update({"dream_accept": "nothing", "dream_nightly": "off"})
    defaults.update(zip(MODEL_SETTINGS, (embedders.DEFAULT_MODEL, embedders.DEFAULT_DIMENSIONS), strict=True))
    settings = {key: Setting(key, _setting_text(value), "default") for key, value in defaults.items()}
    stored = dict(collections.list_settings(brain.db))
    settings.update({key: Setting(key, value, "memory") for key, value in stored.items()})
    for key, option in OPTIONS.items():
        value, source = brain.settings.configured(key)
        if value is not None:
            settings[key] = Setting(key, _setting_text(value), source)
        elif option.stored in stored:
            settings[key] = Setting(key, stored[option.stored], "memory")
    return settings


def _setting_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _refuse_fixed(brain: Brain, key: str) -> None:
    """Raise an error for a key that is unknown or that `config set` cannot change."""
    if _general_key(key) in (*SETTINGS, "retention"):
        if key == "retention":
            problem = "needs a collection or a type, as in retention.collection.work or retention.type.source"
            raise errors.InvalidArgument(name=key, problem=problem)
        if key.startswith(("agent_writes.collection.", "retention.collection.")):
            Collections(brain.db).require(key.split(".", 2)[2])
        return
    name = canonical_name(key)
    if key in MODEL_SETTINGS or name == "embedding.plugin":
        raise errors.InvalidArgument(name=key, problem="is chosen with `quaid embeddings use NAME`")
    if key == RERANKER_SETTING:
        raise errors.InvalidArgument(name=key, problem="is chosen with `quaid rerank use PLACE`")
    if collections.get_setting(brain.db, key) is not None:
        raise errors.InvalidArgument(name=key, problem="is managed by Quaid and cannot be set")
    if name in OPTIONS:
        folder = os.path.dirname(brain.settings.db_path)
        file = brain.settings.config_path or os.path.join(folder, "config.yaml")
        raise errors.InvalidArgument(
            name=key,
            problem=f"cannot be set in the memory; write it into {file}, or set {environment_variable(name)}",
        )
    raise errors.NotFound(what="setting", name=key, hint=_setting_hint(brain, key))


def _general_key(key: str) -> str:
    """Return a key without its client, collection or type: `retention` for `retention.type.source`.

    Any other key is returned unchanged.
    """
    if re.match(CLIENT_ONLY + r"\.[^\s.]", key):
        return CLIENT_ONLY
    match = re.match(
        r"(agent_writes)\.(?:collection|client)\.[^\s.]|(retention)\.(?:collection|type)\.[^\s.]", key
    )
    return match[1] or match[2] if match else key


def _check_period(key: str, value: str) -> None:
    if value == "off" and key.startswith(expiry.RETENTION):
        return
    if dates.retention_seconds(value) is None:
        ending = ", or off" if key.startswith(expiry.RETENTION) else ""
        problem = f"must be a period from 1h to 100y, as in 30d, 2w or 1y{ending}, not {value!r}"
        raise errors.InvalidArgument(name=key, problem=problem)


def _check_words(key: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raise InvalidArgument unless a setting contains only allowed words."""
    for word in filter(None, re.split(r"[,\s]+", value)):
        if word not in allowed:
            raise errors.InvalidArgument(
                name=key, problem=f"must be a list of {', '.join(allowed)}, not {word!r}"
            )


def _checked_parts(brain: Brain, key: str, value: str) -> str:
    """Check and return the value of client_only.NAME: the parts of the memory that a client may see, "" for all."""
    if key == CLIENT_ONLY:
        raise errors.InvalidArgument(name=key, problem="needs the name of a client, as in client_only.codex")
    if value.strip() in ("", "everything"):
        return ""
    return ",".join(brain.check_only([value], key))


def _setting_hint(brain: Brain, key: str) -> str:
    names: dict[str, Any] = dict.fromkeys([*SETTINGS, *_all_settings(brain)])
    return suggestion(key, names) or "`quaid config list` shows all settings."


SESSION_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
TURN_ROLES = ("user", "assistant")


class RebuiltRecord(NamedTuple):
    pages: int
    syncs: tuple[Any, ...]
    vectors: int
    """Number of new vectors. Vectors of unchanged content are kept."""
    problem: str
    """Why missing vectors could not be created. Text search is up to date regardless."""

    @property
    def exit_status(self) -> int:
        return 1 if self.problem or any(sync.halted for sync in self.syncs) else 0


def indexed_files(brain: Brain) -> dict[str, Any]:
    """Return the indexed files with the time of the last read, and their size, mtime and SHA-256 at that time."""
    files = [
        {
            "collection": collection.name,
            "path": file.path,
            "hash": file.content_hash,
            "size": file.stat.size,
            "mtime": dates.timestamp(file.stat.mtime_ns // 10**9),
            "indexed_at": dates.timestamp(file.seen_ns // 10**9),
        }
        for collection in Collections(brain.db).all()
        for file in collection.known_files(brain.db)
    ]
    return {"files": sorted(files, key=lambda file: (file["collection"], file["path"]))}


@op("owner", examples=("quaid rebuild", "quaid rebuild --json"))
def rebuild(
    brain: Brain,
    force: Annotated[bool, Arg("Rebuild even if golden questions fail then.")] = False,
) -> RebuiltRecord:
    """Rebuild the text index, tags, chunks and links; then sync every folder and make missing vectors.

    Pages, facts, history and files are not changed; vectors of unchanged texts are kept."""

    def work() -> None:
        brain.db.write(
            lambda tx: rebuilt(tx, lambda done, total: brain.progress(done, total, "Indexing pages anew"))
        )

    golden.guard(brain, work, what="The rebuilt index", force=force)
    syncs = dispatch.call(brain, dispatch.find_command("collection sync"), {}, "owner").value
    made, problem = 0, ""
    try:
        made = dispatch.call(brain, dispatch.find_command("embed"), {}, "owner").embedded
    except errors.EmbeddingsOff:
        pass  # embedding is turned off in the settings
    except errors.Cancelled:
        raise
    except errors.QuaidError as error:
        problem = str(error)
    return RebuiltRecord(count_pages(brain.db), tuple(syncs), made, problem)


def write_notebook_file(brain: Brain, path: str, text: str) -> Any:
    """Create or overwrite a file in the notebook."""
    return noting.edit_file(brain, layout.require_notebook(brain.db), path, lambda _old: text)


def remove_notebook_file(brain: Brain, path: str) -> dict[str, str]:
    """Delete a file from the notebook. Its page is quarantined (hidden, but not erased)."""
    notebook = layout.require_notebook(brain.db)
    file = page_writer.read_text_file(notebook, path)
    if file is None:
        raise errors.NotFound(what="file", name=path, hint="/api/debug/notebook/pages lists all files.")
    with brain.db.lock.held(), Folder(notebook.root or "") as folder:
        atomic_write.remove_file(folder, path, file.content_hash, brain.new_uuid())
    noting.sync_folder(brain, notebook, [path])
    return {"path": path}


def inject_turn(brain: Brain, session: str, role: str, content: str) -> dict[str, Any]:
    """Append a turn (message) to the transcript of a test conversation, and import the transcript."""
    if not SESSION_NAME.fullmatch(session):
        raise errors.InvalidArgument(
            name="session", problem="must be letters, digits, '-' and '_', at most 64"
        )
    if role not in TURN_ROLES:
        raise errors.InvalidArgument(name="role", problem=f"must be one of {', '.join(TURN_ROLES)}")
    folder = os.path.join(brain.settings.home, "web", "injected")
    path = os.path.join(folder, f"{session}.jsonl")
    turn = {"role": role, "content": content, "timestamp": brain.now(), "session": session}
    with translate_os_errors(path):
        durable_files.make_folders(folder)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps(turn) + "\n")
    dispatch.call(brain, dispatch.find_command("conversations add"), {"paths": [path]}, "owner")
    show = dispatch.find_tool("conversation_show")
    stored = dispatch.call(brain, show, {"session": session, "limit": 1}, "read").conversation
    return {"session": session, "turns": stored.turns}


PACKAGE = "quaid-memory"
"""Name of the distribution. On PyPI, `quaid` is another project."""
MAX_ANSWER_BYTES = 8 * 1024 * 1024
TIMEOUT_SECONDS = 10
ACCEPT_HEADER = "application/vnd.pypi.simple.v1+json, application/json;q=0.9, text/html;q=0.5"
LINK_PATTERN = r"""<a\b((?:[^<>"']|"[^"<]*"|'[^'<]*')*)>[^<]*"""
WHEEL_NAME = "quaid_memory-VERSION-py3-none-any.whl"
WHEEL_NOTE = ", with the wheel that you fetched and whose SHA-256 you compared"


class UpgradeRecord(NamedTuple):
    current: str
    newest: str | None
    """The newest version, or None without --check."""
    is_newer: bool
    place: str
    how: str
    """Instructions for upgrading."""

    @property
    def exit_status(self) -> int:
        return 1 if self.is_newer else 0


@op(
    "owner",
    examples=(
        "quaid upgrade --check --from https://packages.example/simple/",
        "quaid upgrade --check --from ~/Downloads",
    ),
)
def upgrade(
    brain: Brain,
    check: Annotated[bool, Arg("Compare with the newest version in --from.")] = False,
    from_: Annotated[
        str | None,
        Arg("A package index, the URL of a version list, a folder of wheels, or a file.", path=True),
    ] = None,
) -> UpgradeRecord:
    """Show how to upgrade, or (--check --from PLACE) check for a newer version. Exits 1 if there is one.

    Without --from, no server is contacted."""
    current, how = quaid.__version__, _upgrade_step()
    if not check:
        if from_ is not None:
            raise errors.InvalidArgument(name="--from", problem="needs --check")
        return UpgradeRecord(current, None, False, "", how)
    if from_ is None:
        places = "an index (https://packages.example/simple/), a folder of wheels or a file"
        raise errors.InvalidArgument(name="--from", problem=f"is required: {places}")
    if "://" in from_:
        place, versions = _versions_at_url(from_)
    else:
        place = brain.settings.path(from_)
        versions = _versions_on_disk(place)
    best = _newest_version(versions, current)
    if best is None:
        raise errors.FileTrouble(path=place, problem=f"contains no version of {PACKAGE}; name another place")
    return UpgradeRecord(current, best, is_newer_version(best, current), place, how)


def _versions_on_disk(place: str) -> list[str]:
    """Return the versions in the file names of a folder.

    For a file, return the version in its name or, if it has none, the versions in its content.
    """
    names = os.listdir(place) if os.path.isdir(place) else [os.path.basename(place)]
    versions = _versions_in_names(names)
    if versions or os.path.isdir(place):
        return versions
    try:
        with open(place, "rb") as file:
            return _versions_in_index(file.read(MAX_ANSWER_BYTES))
    except OSError as error:
        raise errors.FileTrouble(path=place, problem=f"cannot be read: {error.strerror}") from None


def _versions_at_url(address: str) -> tuple[str, list[str]]:
    """Return an address with its password masked, and the versions that the server lists.

    Redirects to another scheme, host or port are refused, because the user did not name that place.
    """
    from http.client import HTTPException
    from urllib import error, parse, request

    parts = parse.urlsplit(address)
    shown = mask_urls(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise errors.InvalidArgument(
            name="from", problem="must be an address of http or https, a folder or a file"
        )
    if parts.path.rstrip("/").endswith("/simple"):
        parts = parts._replace(path=parts.path.rstrip("/") + f"/{PACKAGE}/")

    class OnlyThere(request.HTTPRedirectHandler):
        def redirect_request(self, req, fp, code, msg, headers, newurl):  # type: ignore[no-untyped-def]
            target = parse.urlsplit(newurl)
            if (target.scheme, target.netloc) != (parts.scheme, parts.netloc):
                raise errors.FileTrouble(
                    path=shown,
                    problem=f"leads to another place ({target.hostname}); name that one with --from",
                )
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    asked = request.Request(  # noqa: S310 (http and https only, see above)
        parse.urlunsplit(parts), headers={"Accept": ACCEPT_HEADER, "User-Agent": PACKAGE}
    )
    try:
        with request.build_opener(OnlyThere()).open(asked, timeout=TIMEOUT_SECONDS) as answer:
            return shown, _versions_in_index(answer.read(MAX_ANSWER_BYTES))
    except error.HTTPError as problem:
        raise errors.FileTrouble(
            path=shown, problem=f"answers with {problem.code} {problem.reason}"
        ) from None
    except (error.URLError, OSError, HTTPException, ValueError) as problem:
        reason = getattr(problem, "reason", None) or problem
        raise errors.FileTrouble(path=shown, problem=f"does not answer: {reason}") from None


def _versions_in_index(data: bytes) -> list[str]:
    """Return the versions in a package index in JSON or HTML, or in text that is just a version number."""
    text = data.decode("utf-8", "replace")
    if version_key(text):
        return [text.strip()]
    try:
        answer = json.loads(text)
    except ValueError:
        text = re.sub(LINK_PATTERN, _unless_yanked, text, flags=re.IGNORECASE)
        return _versions_in_names(re.findall(r'[^/"<>\s#]+', text))
    if not isinstance(answer, dict):
        return []
    info, files = answer.get("info"), answer.get("files")
    if isinstance(info, dict) and isinstance(info.get("version"), str):
        return [info["version"]]
    if isinstance(files, list):
        names = [file.get("filename") for file in files if isinstance(file, dict) and not file.get("yanked")]
        return _versions_in_names(name for name in names if isinstance(name, str))
    listed = answer.get("versions", [answer.get("version")])
    return [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []


def _versions_in_names(names: Iterable[str]) -> list[str]:
    return [version for name in names if (version := version_in_filename(name))]


def version_in_filename(name: str) -> str | None:
    """Return the version in the filename of a wheel or sdist of Quaid, or None."""
    words = PACKAGE.replace("-", "[-_.]+")
    match = re.match(rf"{words}-(\d[^-]*?)(?:-[^/]*\.whl|\.tar\.gz|\.zip)$", name, re.IGNORECASE)
    return match[1] if match and version_key(match[1]) else None


VERSION_PATTERN = r"v?(\d+(?:\.\d+)*)(?:[._-]?(a|b|rc|dev|post)[._-]?(\d*))?$"
RELEASE_ORDER = {"dev": 0, "a": 1, "b": 2, "rc": 3, "": 4, "post": 5}


def version_key(version: str) -> tuple[tuple[int, ...], int, int] | None:
    """Return a sort key for a version, or None if it is not a valid version."""
    match = re.match(VERSION_PATTERN, version.strip().lower())
    if match is None:
        return None
    numbers = [int(part) for part in match[1].split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers), RELEASE_ORDER[match[2] or ""], int(match[3] or 0)


def _newest_version(versions: list[str], current: str) -> str | None:
    """Return the newest version, or None. Prereleases count only if the current version is a prerelease."""
    keys = {version: key for version in versions if (key := version_key(version))}
    if not _is_prerelease(version_key(current)):
        keys = {version: key for version, key in keys.items() if not _is_prerelease(key)}
    return max(keys, key=keys.__getitem__, default=None)


def _is_prerelease(key: tuple[tuple[int, ...], int, int] | None) -> bool:
    """Return True for versions that precede their release, such as 1.0rc1 and 1.0.dev3."""
    return key is not None and key[1] < RELEASE_ORDER[""]


def is_newer_version(one: str, other: str) -> bool:
    """Return True if the first version is newer than the second."""
    first, second = version_key(one), version_key(other)
    return first is not None and second is not None and first > second


def _unless_yanked(link: re.Match[str]) -> str:
    """Return an index link unchanged, or "" if its file was yanked. Quoted attribute values are ignored."""
    attributes = re.sub(r'"[^"]*"|\'[^\']*\'', "", link[1])
    return "" if "data-yanked" in attributes.lower() else link[0]


def _upgrade_step() -> str:
    """Return upgrade instructions for this kind of installation.

    They install from a file whose hash the user has compared, because the package may not be on the user's index.
    """
    environment = sys.prefix.replace(os.sep, "/")
    if os.path.exists(os.path.join(os.path.dirname(os.path.dirname(sys.executable)), "start.pyc")):
        called = os.path.abspath(sys.argv[0]) if sys.argv and sys.argv[0] else "the old one"
        return f"put the new file in the place of {called}, after `sha256sum --check quaid.sha256`"
    if "/pipx/" in environment:
        return f"`pipx install --force {WHEEL_NAME}`" + WHEEL_NOTE
    if "/uv/tools/" in environment:
        return f"`uv tool install --force {WHEEL_NAME}`" + WHEEL_NOTE
    return f"`{sys.executable} -m pip install --upgrade {WHEEL_NAME}`" + WHEEL_NOTE


class EncryptionRecord(NamedTuple):
    path: str
    act: str
    """"encrypted", "decrypted", "rekeyed", or "" if the memory itself was not changed."""
    key: str
    """The location of the key, or "" after a decryption."""
    backups: tuple[str, ...]
    """Backups that were converted together with the memory."""
    images: int
    """Number of converted images of the memory and its backups."""
    left: tuple[str, ...]
    """Unencrypted files that may contain text of the memory."""
    note: str = ""


KeyFile = Annotated[
    str | None, Arg("Keep the key in this file, which is created if it is missing.", path=True)
]
Passphrase = Annotated[bool, Arg("Compute the key from a passphrase, which is asked for.")]
FromEnvironment = Annotated[bool, Arg("Take the key from QUAID_KEY (rekey: QUAID_NEW_KEY).")]


@op(
    "owner",
    examples=("quaid encrypt", "quaid encrypt --key-file ~/.config/quaid.key", "quaid encrypt --passphrase"),
)
def encrypt(
    brain: Brain,
    key_file: KeyFile = None,
    passphrase: Passphrase = False,
    environment: FromEnvironment = False,
) -> EncryptionRecord:
    """Encrypt the memory, its backups beside it and in ~/.quaid/backups, and the images beside them.

    The key is a new random one in the keyring of your system; --key-file, --passphrase or --environment choose
    another place. If the key is lost, the memory is lost. Stop all servers first. Your own files are not encrypted:
    attached folders, notebooks, knowledge bases and exports. The old file is deleted, but a disk may keep its blocks
    for a while. If a backup was left without encryption, run the command again. Needs quaid-memory[encryption]."""
    path = os.path.realpath(brain.settings.db_path)
    chosen = (key_file, passphrase, environment)
    old = cipher_header(path)
    encryption.require_cipher(path)
    _check_choice(*chosen)
    _ = brain.db  # checks the memory, and migrates it before its backups are listed
    image_key = collections.read_image_key(brain.db) or os.urandom(encryption.KEY_BYTES)
    if old is not None:
        if any(chosen):
            raise errors.InvalidArgument(
                name="encrypt", problem="the memory is encrypted already; `quaid rekey` changes its key"
            )
        key, place = encryption.CipherKey(encryption.find_key(path, old), old), "unchanged"
    else:
        key, place = _new_key(brain, "QUAID_KEY", *chosen)
    copies = [copy for copy in _copies(brain, path) if cipher_header(copy) is None]
    if old is None:
        brain.close()
        encryption.convert(path, key, brain.progress, image_key.hex())
    done = _convert_copies(brain, copies, key, image_key)
    images = sum(attachments.reseal_images(file, image_key, is_encrypted=True) for file in (path, *done))
    collections.write_folder_list(brain.db)
    return EncryptionRecord(
        path, "" if old else "encrypted", place, done, images, _plain_files(brain, path, copies, done)
    )


@op(
    "owner",
    examples=("quaid rekey", "quaid rekey --passphrase", "QUAID_NEW_KEY=… quaid rekey --environment"),
)
def rekey(
    brain: Brain,
    key_file: KeyFile = None,
    passphrase: Passphrase = False,
    environment: FromEnvironment = False,
) -> EncryptionRecord:
    """Give an encrypted memory and its backups a new key, or keep the key in another place.

    Without an option, you are asked for a new passphrase if the old key comes from one. Otherwise the new key is in
    the key file if the old one is there, else in the keyring. Older copies elsewhere still need the old key, so it is
    not deleted from the keyring or the key file. Stop all servers first."""
    path = os.path.realpath(brain.settings.db_path)
    _check_choice(key_file, passphrase, environment)
    old = _require_encrypted(path, "rekey")
    old_key = encryption.find_key(path, old)
    if not (key_file or passphrase or environment):
        passphrase = old.kind == "passphrase"
        current = brain.settings.key_file
        if current and old_key.hex() in encryption.read_key_file(current):
            key_file = current
    key, place = _new_key(brain, "QUAID_NEW_KEY", key_file, passphrase, environment, old_key)
    copies = [copy for copy in _copies(brain, path) if cipher_header(copy) is not None]
    brain.close()
    encryption.convert(path, key, brain.progress)
    done = _convert_copies(brain, copies, key, None)
    collections.write_folder_list(brain.db)
    left = tuple(copy for copy in copies if copy not in done)
    note = f"{', '.join(left)} still need the old key" if left else ""
    return EncryptionRecord(path, "rekeyed", place, done, 0, (), note)


@op("owner", examples=("quaid decrypt",))
def decrypt(brain: Brain) -> EncryptionRecord:
    """Store the memory without encryption again, with the images beside it.

    Its backups stay encrypted, and the key stays where it is. Stop all servers first."""
    path = os.path.realpath(brain.settings.db_path)
    image_key = collections.read_image_key(brain.db)
    if cipher_header(path) is None and image_key is None:
        _require_encrypted(path, "decrypt")
    brain.close()
    if cipher_header(path) is not None:
        encryption.convert(path, None, brain.progress)
    images = attachments.reseal_images(path, image_key, is_encrypted=False)
    brain.db.write(collections.delete_image_key)
    collections.write_folder_list(brain.db)
    kept = [copy for copy in _copies(brain, path) if cipher_header(copy) is not None]
    note = f"keep the key: {', '.join(kept)} need it" if kept else ""
    return EncryptionRecord(path, "decrypted", "", (), images, (), note)


def _require_encrypted(path: str, command: str) -> encryption.CipherHeader:
    header = cipher_header(path)
    if header is None:
        raise errors.InvalidArgument(
            name=command, problem="the memory is not encrypted; `quaid encrypt` encrypts it"
        )
    return header


def _check_choice(key_file: str | None, passphrase: bool, environment: bool) -> None:
    if sum((key_file is not None, passphrase, environment)) > 1:
        raise errors.InvalidArgument(
            name="key", problem="has one place: --key-file, --passphrase or --environment, not several"
        )


def _copies(brain: Brain, path: str) -> list[str]:
    return backups.all_copies_of(path, brain.settings.backup_folders)


def _convert_copies(
    brain: Brain, copies: list[str], key: "CipherKey", image_key: bytes | None
) -> tuple[str, ...]:
    """Convert backups and return the converted ones. Damaged and read-only backups are skipped."""
    done = []
    for copy in copies:
        try:
            encryption.convert(
                copy, key, brain.progress, image_key.hex() if image_key else "", is_backup=True
            )
        except errors.QuaidError as error:
            if error.code == "cancelled":
                raise
            continue
        done.append(copy)
    return tuple(done)


def _plain_files(brain: Brain, path: str, copies: list[str], done: tuple[str, ...]) -> tuple[str, ...]:
    """Return unencrypted files that may contain text: backups, unsaved edits, and the WAL of a deleted
    memory.
    """
    files = [copy for copy in copies if copy not in done]
    folder, name = os.path.split(path)
    files += [
        os.path.join(folder, entry)
        for entry in sorted(os.listdir(folder))
        if entry.startswith(f"{name}-wal-of-deleted")
    ]
    edits = os.path.join(brain.settings.home, "edits")
    if os.path.isdir(edits):
        files += [os.path.join(edits, entry) for entry in sorted(os.listdir(edits))]
    return tuple(files)


def _new_key(
    brain: Brain,
    variable: str,
    key_file: str | None,
    passphrase: bool,
    environment: bool,
    old_key: bytes | None = None,
) -> tuple["CipherKey", str]:
    """Return the new key and the name of its place: variable, passphrase, key file or keyring.

    A key in a file or keyring is stored before this returns.
    """
    if environment:
        secret = brain.settings.environ.get(variable, "")
        if not secret:
            raise errors.InvalidArgument(
                name=variable,
                problem="is not set; set it to 64 hexadecimal digits, such as `openssl rand -hex 32` prints",
            )
        return encryption.make_key(secret), variable
    if passphrase:
        return encryption.make_key(_ask_twice(brain, variable)), "your passphrase"
    if key_file:
        return _key_in_file(brain, brain.settings.path(key_file), old_key)
    key = encryption.make_key(os.urandom(encryption.KEY_BYTES).hex())
    return key, f"the keyring ({encryption.store_in_keyring(key)})"


def _ask_twice(brain: Brain, variable: str) -> str:
    if brain.ask is None:
        problem = f"needs a terminal; set {variable} to the passphrase and use --environment instead"
        raise errors.InvalidArgument(name="--passphrase", problem=problem)
    secret = brain.ask("New passphrase: ")
    if not secret.strip():
        raise errors.InvalidArgument(
            name="passphrase", problem="is empty; type one, such as five random words"
        )
    if brain.ask("The same passphrase again: ") != secret:
        raise errors.InvalidArgument(name="passphrase", problem="the two inputs differ; nothing was changed")
    return secret


def _key_in_file(brain: Brain, path: str, old_key: bytes | None) -> tuple["CipherKey", str]:
    """Return the first key of a file, and a description of its place. The file is created if it is missing.

    If the file has no key, or the old key is the first, a new key is put at its beginning.

    The old key stays in the file, so that the memory can still be opened if `rekey` is interrupted.
    """
    keys = encryption.read_key_file(path) if os.path.exists(path) else []
    before = [old_key.hex()] if old_key else []
    if not keys or keys[0] in before:
        keys = [os.urandom(encryption.KEY_BYTES).hex(), *keys]
    elif any(len(key) != 2 * encryption.KEY_BYTES for key in keys):
        raise errors.FileTrouble(path=path, problem="must hold 64 hexadecimal digits, or not exist yet")
    encryption.write_key_file(path, list(dict.fromkeys([*keys, *before])))
    key = encryption.make_key(keys[0])
    if os.path.realpath(brain.settings.key_file or "") != os.path.realpath(path):
        _name_key_file(brain, path)
    return key, f"the key file {path}"


def _name_key_file(brain: Brain, path: str) -> None:
    """Write the path of the key file to the config file, so that servers and hooks find it.

    Raise InvalidArgument if another setting overrides it.
    """
    settings = brain.settings
    file = settings.config_path or os.path.join(os.path.dirname(settings.db_path), config.CONFIG_NAME)
    with translate_os_errors(file):
        text = ""
        if os.path.exists(file):
            with open(file, encoding="utf-8") as source:
                text = source.read()
        lines = [line for line in text.splitlines() if not re.match(r"(key_file|keyFile)\s*:", line)]
        lines.append(f"key_file: {json.dumps(path, ensure_ascii=False)}")
        durable_files.write_file(os.path.realpath(file), ("\n".join(lines) + "\n").encode())
    named = config.read_settings(settings.db_path, settings.environ, settings.cwd, file).key_file
    if os.path.realpath(named) != os.path.realpath(path):
        problem = f"is {named or 'not set'}, not {path}; correct it in the environment or in {file}"
        raise errors.InvalidArgument(name="key_file", problem=problem)
