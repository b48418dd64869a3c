"""The state of the memory, shown by `quaid` without arguments, and names for tab completion in the shell.

Both must be fast. Each press of the tab key asks for names, so slow modules are imported only for the kinds
of names that need them.
"""

import os
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from quaid import skills
from quaid.app import SCHEMA_VERSION, Brain, local_offset, schema_version_of
from quaid.clients import CLIENTS, Client, ClientPaths, find_server
from quaid.config import Settings
from quaid.embedding import registry as embedders
from quaid.errors import MissingDatabase, QuaidError
from quaid.kb import layout as kb_layout
from quaid.model.dates import Clock, timestamp
from quaid.notebook import layout as notebook_layout
from quaid.storage import collections, erase, expiry, pages
from quaid.storage.collections import Collections
from quaid.storage.conversations import Conversations
from quaid.storage.sqlite.connection import Database


class HomeRecord(NamedTuple):
    path: str
    exists: bool
    problem: str = ""
    """Why the memory was not opened, or ""."""
    size: int = 0
    pages: int = 0
    notes: int = 0
    chunks: int = 0
    unindexed: int = 0
    """Number of pages that are not split into chunks yet. The next query splits them."""
    clients: tuple[str, ...] = ()
    """Names of the clients whose settings have an entry for Quaid, with this or another memory."""
    due: int = 0
    proposals: int = 0
    contradictions: int = 0
    gaps: int = 0
    quarantined: int = 0
    expired: int = 0


def home_state(brain: Brain) -> HomeRecord:
    """Return the state of the memory, without reading page texts or loading a model.

    A database with an older schema is not migrated. Errors are returned in the record.
    """
    path, clients = brain.settings.db_path, _connected_clients(brain)
    try:
        schema = schema_version_of(path)
        if schema != SCHEMA_VERSION:
            problem = f"it has schema {schema}, and this version of Quaid {SCHEMA_VERSION}; `quaid version` says more"
            return HomeRecord(path, True, problem, clients=clients)
        counts = pages.memory_counts(brain.db, brain.local()[:10])
    except MissingDatabase:
        return HomeRecord(path, False, clients=clients)
    except QuaidError as error:
        return HomeRecord(path, True, str(error), clients=clients)
    return HomeRecord(path, True, "", os.path.getsize(path), clients=clients, **counts)


def _connected_clients(brain: Brain) -> tuple[str, ...]:
    """Return the names of the clients that have an entry for Quaid in their user-wide settings."""
    settings = brain.settings
    where = ClientPaths(settings.user_home, settings.cwd, settings.platform, settings.environ)
    return tuple(
        client.title for client in CLIENTS.values() if _has_entry(client, where.path(client.servers))
    )


def _has_entry(client: Client, path: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return "quaid" in text and isinstance(find_server(client, text), dict)
    except (OSError, ValueError, QuaidError):
        return False


# Completion

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
    """Return the names with this prefix among the default model, the added models and the chosen one.

    If there are none, return the names with this prefix of all available models.
    """
    added = embedders.parse_models(collections.get_setting(db, embedders.MODELS_SETTING))
    active = collections.get_setting(db, "embedding_model") or embedders.DEFAULT_MODEL
    names = _with_prefix([embedders.DEFAULT_MODEL, *added, active], start)
    return names or _with_prefix(embedders.available_models(added), start)


def _notebook_files(db: Database, start: str) -> list[str]:
    notebook = notebook_layout.find_notebook(db)
    return notebook.paths_beginning(db, start, MAX_NAMES + 1) if notebook else []


def _session_names(db: Database, start: str) -> list[str]:
    return [conversation.session for conversation in Conversations(db).with_session(start, MAX_NAMES + 1)]


def _skill_names(settings: Settings, start: str) -> list[str]:
    return _with_prefix((skill.name for skill in skills.effective_skills(settings.skill_folders)), start)


def _token_names(settings: Settings, start: str) -> list[str]:
    from quaid.operations import service

    return _with_prefix(service.token_names(settings), start)


def _node_names(settings: Settings, start: str) -> list[str]:
    root = settings.kb_root
    if not os.path.isdir(root):
        return []
    paths = (path for path, _ in kb_layout.walk_store(root) if kb_layout.is_node_file(path))
    nodes = (path.removesuffix(kb_layout.NODE_ENDING) for path in paths)
    return _with_prefix(nodes, start)


DATABASE_COMPLETERS: dict[str, Callable[[Database, str], list[str]]] = {
    "slugs": _slug_names,
    "quarantined": _quarantined_names,
    "collections": lambda db, start: _with_prefix((row.name for row in Collections(db).all()), start),
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
    """Return the names of a kind with this prefix, or [] if there are more than MAX_NAMES."""
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
        expiry.hide_expired(db, clock)
        return DATABASE_COMPLETERS[kind](db, start)


def _with_prefix(every: Iterable[str], start: str) -> list[str]:
    return [name for name in dict.fromkeys(every) if name.startswith(start)]
