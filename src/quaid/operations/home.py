"""The state of the memory that `quaid` without a command shows. It is cheap: no text is read, no model is loaded."""

import os
from typing import NamedTuple

from quaid.app import SCHEMA_VERSION, Brain, schema_version_of
from quaid.clients import CLIENTS, Client, ClientPaths
from quaid.errors import MissingDatabase, QuaidError
from quaid.storage import pages


class HomeRecord(NamedTuple):
    path: str
    exists: bool
    problem: str = ""
    """Why the memory was not opened."""
    size: int = 0
    pages: int = 0
    notes: int = 0
    chunks: int = 0
    unindexed: int = 0
    """Pages that are not split into chunks yet; the next query does that."""
    clients: tuple[str, ...] = ()
    """Names of programs whose settings have this or another memory of Quaid."""
    due: int = 0
    proposals: int = 0
    contradictions: int = 0
    gaps: int = 0
    quarantined: int = 0
    expired: int = 0


def home_state(brain: Brain) -> HomeRecord:
    """Return the state of the memory. An older one is not migrated, and problems are part of the record."""
    path, clients = brain.settings.db_path, connected_clients(brain)
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
    return HomeRecord(path, True, size=os.path.getsize(path), clients=clients, **counts._asdict())


def connected_clients(brain: Brain) -> tuple[str, ...]:
    """Return the names of programs with an entry of Quaid in their settings for all projects."""
    settings = brain.settings
    where = ClientPaths(settings.user_home, settings.cwd, settings.platform, settings.environ)
    return tuple(
        client.title for client in CLIENTS.values() if _has_entry(client, where.path(client.servers))
    )


def _has_entry(client: Client, path: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if "quaid" not in text:  # the parsers are imported only for a file that may have an entry
            return False
        from quaid.clients import config_files

        return isinstance(config_files.find_server(client, text), dict)
    except (OSError, ValueError, QuaidError):
        return False
