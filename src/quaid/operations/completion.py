"""Names for shell completion: slugs, collections, tags, models, skills and others.

A shell runs this at each press of the tab key, so slow imports are made only for the kinds of names that need
them.
"""

import os
import time
from collections.abc import Callable, Iterable

from quaid import skills
from quaid.app import local_offset
from quaid.config import Settings
from quaid.embedding import registry as embedders
from quaid.kb import layout as kb_layout
from quaid.model.dates import Clock, timestamp
from quaid.notebook import layout as notebook_layout
from quaid.storage import collections, conversations, erase, expiry, pages
from quaid.storage.sqlite.connection import Database

MAX_SLUGS = 200  # if there are more slugs, their folders are offered instead
# If there are more names, none is offered, because a shell would complete the common prefix of a partial list.
MAX_NAMES = 2_000
LOCK_TIMEOUT_MS = 50  # if the database is locked for longer, no names are offered


def _slug_names(db: Database, start: str) -> list[str]:
    named, mark, rest = start.rpartition("::")
    slugs = pages.slugs_or_folders(db, rest, MAX_SLUGS, MAX_NAMES + 1, named or None)
    return [f"{named}{mark}{slug}" for slug in slugs]


def _quarantined_names(db: Database, start: str) -> list[str]:
    of = "{0.collection}::{0.slug}" if "::" in start else "{0.slug}"
    return _with_prefix((of.format(page) for page in erase.quarantined_pages(db)), start)


def _model_names(db: Database, start: str) -> list[str]:
    """Return the models of the memory with this prefix.

    If there are none, return all available models with this prefix.
    """
    added = embedders.parse_models(collections.get_setting(db, embedders.MODELS_SETTING))
    active = collections.get_setting(db, "embedding_model") or embedders.DEFAULT_MODEL
    names = _with_prefix([embedders.DEFAULT_MODEL, *added, active], start)
    return names or _with_prefix(embedders.available_models(added), start)


def _notebook_files(db: Database, start: str) -> list[str]:
    notebook = notebook_layout.find_notebook(db)
    return notebook.paths_beginning(db, start, MAX_NAMES + 1) if notebook else []


def _session_names(db: Database, start: str) -> list[str]:
    return [conversation.session for conversation in conversations.find_by_session(db, start, MAX_NAMES + 1)]


def _skill_names(settings: Settings, start: str) -> list[str]:
    return _with_prefix((skill.name for skill in skills.effective_skills(settings.skill_folders)), start)


def _token_names(settings: Settings, start: str) -> list[str]:
    from quaid.operations import service

    return _with_prefix(service.token_names(settings), start)


def _node_names(settings: Settings, start: str) -> list[str]:
    from quaid.operations import kb

    root = kb.kb_root_of(settings)
    if not os.path.isdir(root):
        return []
    paths = (path for path, _ in kb_layout.walk_store(root) if kb_layout.is_node_file(path))
    nodes = (path.removesuffix(kb_layout.NODE_ENDING) for path in paths)
    return _with_prefix(nodes, start)


DATABASE_COMPLETERS: dict[str, Callable[[Database, str], list[str]]] = {
    "slugs": _slug_names,
    "quarantined": _quarantined_names,
    "collections": lambda db, start: _with_prefix((row.name for row in collections.list_all(db)), start),
    "wings": lambda db, start: pages.names_beginning(db, "wing", start, MAX_NAMES + 1),
    "tags": lambda db, start: pages.names_beginning(db, "tag", start, MAX_NAMES + 1),
    "models": _model_names,
    "notes": _notebook_files,
    "sessions": _session_names,
}
OTHER_COMPLETERS: dict[str, Callable[[Settings, str], list[str]]] = {
    "skills": _skill_names,
    "tokens": _token_names,
    "nodes": _node_names,
}
COMPLETION_KINDS = (*DATABASE_COMPLETERS, *OTHER_COMPLETERS)


def complete_names(settings: Settings, kind: str, start: str) -> list[str]:
    """Return the names of a kind with this prefix, or [] if there are too many."""
    of = OTHER_COMPLETERS.get(kind)
    names = of(settings, start) if of else _names_in_database(settings, kind, start)
    return names if len(names) <= MAX_NAMES else []


def _names_in_database(settings: Settings, kind: str, start: str) -> list[str]:
    """Return names from the database, or [] if its schema version is not the current one."""
    db = Database.open_for_names(settings.db_path, LOCK_TIMEOUT_MS)
    if db is None:
        return []
    with db:
        seconds = time.time()
        clock = Clock(timestamp(seconds), timestamp(seconds + local_offset(seconds))[:10])
        if expiry.is_due(db, clock):
            expiry.shadow(db, clock)
        return DATABASE_COMPLETERS[kind](db, start)


def _with_prefix(every: Iterable[str], start: str) -> list[str]:
    return [name for name in dict.fromkeys(every) if name.startswith(start)]
