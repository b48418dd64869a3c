"""Looking after the memory: figures, checks, backup, settings."""

import os
from typing import Annotated, Any, NamedTuple

from quaid.brain import Brain
from quaid.errors import DamagedDatabase, InvalidArgument, NotFound
from quaid.ops.register import Arg, op
from quaid.storage import briefing, checks, collections
from quaid.storage.briefing import Stats
from quaid.storage.checks import Violation
from quaid.storage.sqlite import backup as backups
from quaid.storage.sqlite.backup import BackedUp, Compacted

# Settings that a person may change: the values allowed, int for a positive whole number, list for
# predicates, str for folders.
SETTINGS: dict[str, tuple[str, ...] | type[int] | type[list[str]] | type[str]] = {
    "chunk_strategy": ("section", "window", "paragraph", "page"),
    "search_merge_strategy": ("sum", "set-union", "rrf"),
    "default_token_budget": int,
    "background_embedding": ("on", "off"),
    "log_gaps": ("on", "off"),
    "gap_threshold": ("strong", "weak"),
    "single_valued_predicates": list,
    "conversation_folders": str,
    "embed_conversations": ("recent", "on", "off"),
}
# What holds while nobody has said anything; the others stand in the memory from its first day.
DEFAULTS = {
    "background_embedding": "on",
    "embed_conversations": "recent",
    "gap_threshold": "strong",
    "log_gaps": "on",
}


# Written by `quaid embed`; until then the model that it will use.
MODEL = ("embedding_model", "embedding_dimensions")


class ValidateRecord(NamedTuple):
    checks: tuple[str, ...]
    violations: tuple[Violation, ...]
    chunks_without_vector: int | None = None
    """Of the active model; not a violation, since vectors are made later. None: not counted."""
    pages_not_cut: int | None = None
    """Pages whose chunks are not made yet, as after an import."""

    @property
    def exit_status(self) -> int:
        return 1 if self.violations else 0


class Setting(NamedTuple):
    key: str
    value: str
    source: str  # the environment variable, the config file, memory, or default


class SettingsRecord(NamedTuple):
    settings: tuple[Setting, ...]


@op("read", examples=("quaid stats",))
def stats(brain: Brain) -> Stats:
    """Count what the memory holds."""
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
    all: Annotated[bool, Arg("All of these, which is also the default.")] = False,
    original: Annotated[
        str | None, Arg("A folder that was imported; compared with --exported.", path=True)
    ] = None,
    exported: Annotated[
        str | None, Arg("A folder that was exported; compared with --original.", path=True)
    ] = None,
) -> ValidateRecord:
    """Check the memory, or compare an exported folder with its original. Exits 1 when something is wrong."""
    if (original is None) != (exported is None):
        raise InvalidArgument(
            name="exported" if exported is None else "original",
            problem="is needed too: the comparison is of two folders",
        )
    if original is not None and exported is not None:
        from quaid.folders import export as exporter

        differences = exporter.compare_folders(
            brain.settings.path(original), brain.settings.path(exported), brain.progress
        )
        return ValidateRecord(("round trip",), tuple(Violation("round trip", *each) for each in differences))
    chosen = {
        "links": links,
        "assertions": assertions,
        "embeddings": embeddings,
        "fts": fts,
        "integrity": integrity,
    }
    names = tuple(name for name, wanted in chosen.items() if wanted or all or not any(chosen.values()))
    try:
        found = checks.validate(brain.db, names)
    except DamagedDatabase as error:  # so damaged that it cannot even be opened
        found = [Violation("integrity", error.facts["path"], error.facts["problem"])]
    can_count = "embeddings" in names and not {"embeddings", "integrity"} & {each.check for each in found}
    wanting = _vectors_to_make(brain) if can_count else (None, None)
    return ValidateRecord(names, tuple(found), *wanting)


def _vectors_to_make(brain: Brain) -> tuple[int | None, int | None]:
    """Count chunks without a vector of the active model, and pages that have no chunks yet."""
    from quaid.storage import chunks, embedding_queue, vectors

    if not brain.model_name:  # semantic search is off
        return None, None
    with brain.db.reading():
        uncut = len(chunks.uncut_pages(brain.db))
        if vectors.find_model(brain.db, brain.model_name) is None:
            return chunks.count(brain.db), uncut
        made, total = embedding_queue.chunk_coverage(brain.db, brain.model_name)
    return total - made, uncut


@op("owner", examples=("quaid compact",))
def compact(brain: Brain) -> Compacted:
    """Drop vectors of text that is gone and fold the write-ahead log into one file, ready to copy."""
    from quaid.embedding.backfill import cut_pages
    from quaid.storage import vectors

    if not brain.db.writable:
        return backups.compact(brain.db)  # which says why it cannot
    cut_pages(brain.db, brain.progress)  # a page that is not cut yet still needs its vectors
    dropped = brain.db.write(lambda tx: vectors.purge_chunk_vectors(tx) + vectors.purge_turn_vectors(tx))
    return backups.compact(brain.db)._replace(vectors_dropped=dropped)


@op("owner", examples=("quaid backup ~/memory-2026-04-25.db",))
def backup(
    brain: Brain,
    file: Annotated[str, Arg("The file to make; it must not exist.", positional=True, path=True)],
) -> BackedUp:
    """Copy the memory into a new file while others read and write."""
    return backups.create_backup(brain.db, brain.settings.path(file), brain.new_uuid())


@op("owner", command="config get", examples=("quaid config get default_token_budget",))
def config_get(brain: Brain, key: Annotated[str, Arg("The setting.", positional=True)]) -> Setting:
    """Show one setting."""
    from quaid.options import canonical

    every = _every(brain)
    found = every.get(key) or every.get(canonical(key))
    if found is None:
        raise NotFound(what="setting", name=key, hint=_known(brain, key))
    return found


@op("owner", command="config set", examples=("quaid config set search_merge_strategy rrf",))
def config_set(
    brain: Brain,
    key: Annotated[str, Arg("The setting.", positional=True)],
    value: Annotated[str, Arg("Its new value.", positional=True)],
) -> Setting:
    """Change one setting."""
    allowed = SETTINGS.get(key)
    if allowed is None:
        if key in MODEL:
            raise InvalidArgument(name=key, problem="`quaid embeddings use NAME` chooses the model")
        if collections.get_setting(brain.db, key) is not None:
            raise InvalidArgument(name=key, problem="is kept by Quaid itself and cannot be set")
        _of_the_file(brain, key)
        raise NotFound(what="setting", name=key, hint=_known(brain, key))
    if isinstance(allowed, tuple):
        if value not in allowed:
            raise InvalidArgument(name=key, problem=f"must be one of {', '.join(allowed)}, not {value!r}")
    elif allowed is list:
        from quaid.model.facts import check_predicate_setting

        check_predicate_setting(key, value)
    elif allowed is str:
        from quaid.model.plain_text import check_folder_list as check_folders

        check_folders(key, value)
    elif not (value.isascii() and value.isdigit() and 0 < int(value) < 10**9):
        raise InvalidArgument(name=key, problem=f"must be a positive whole number, not {value!r}")

    def work(tx: Any) -> None:
        collections.set_setting(tx, key, value)
        if key == "chunk_strategy":
            from quaid.storage.checks import recut_pages

            recut_pages(tx)

    brain.db.write(work)
    return Setting(key, value, "memory")


@op("owner", command="config list", aliases={"config": {}}, examples=("quaid config list",))
def config_list(brain: Brain) -> SettingsRecord:
    """List all settings, and where each value comes from.

    What a config.yaml beside the memory may say stands here too, as in `search.max_results`; `--config FILE` names
    another. The environment goes before the file, the file before the memory.
    """
    every = _every(brain)
    return SettingsRecord(tuple(every[key] for key in sorted(every)))


def _every(brain: Brain) -> dict[str, Setting]:
    from quaid.embedding import registry as embedders
    from quaid.options import OPTIONS

    unset = {**dict.fromkeys(SETTINGS, ""), **DEFAULTS}
    unset.update(zip(MODEL, (embedders.DEFAULT_MODEL, str(embedders.DEFAULT_DIMENSIONS)), strict=True))
    found = {key: Setting(key, value, "default") for key, value in unset.items()}
    found.update({key: Setting(key, value, "memory") for key, value in collections.list_settings(brain.db)})
    for key, option in OPTIONS.items():
        value, source = brain.settings.said(key)
        if value is not None:
            found[key] = Setting(key, _told(value), source)
        elif key not in found:
            stored = collections.get_setting(brain.db, option.stored) if option.stored else None
            if stored is not None:
                found[key] = Setting(key, stored, "memory")
            else:
                found[key] = Setting(key, _told(option.default), "default")
    return found


def _told(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _of_the_file(brain: Brain, key: str) -> None:
    """Refuse what is an option of the config file only."""
    from quaid.options import OPTIONS, canonical, variable

    name = canonical(key)
    if name == "embedding.plugin":
        raise InvalidArgument(name=key, problem="`quaid embeddings use NAME` chooses the model")
    if name in OPTIONS:
        file = brain.settings.config_path or os.path.join(
            os.path.dirname(brain.settings.db_path), "config.yaml"
        )
        raise InvalidArgument(name=key, problem=f"is set in {file}, or by {variable(name)}")


def _known(brain: Brain, key: str) -> str:
    from quaid.ops.gate import nearest

    known: dict[str, Any] = dict.fromkeys([*SETTINGS, *_every(brain)])
    return nearest(key, known) or " `quaid config list` shows them all."
