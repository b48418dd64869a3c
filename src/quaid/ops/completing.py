"""What a shell offers when Tab is pressed: the names that only this memory knows.

Not operations: nobody calls them but the scripts of `quaid completion`. They change nothing: the memory is opened for
reading only, nobody is waited for, and one that would have to be upgraded first is not opened for a Tab.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from quaid.config import Settings
from quaid.storage import SCHEMA_VERSION, pages
from quaid.storage.sqlite import connection
from quaid.storage.sqlite.connection import Database

if TYPE_CHECKING:
    from collections.abc import Iterable

MANY = 200  # more slugs than anybody reads: then their folders are offered
MOST = 2_000  # of which all must be told, or a shell takes the beginning of some for that of all
PATIENCE_MS = 50  # for whoever has the file locked; then there is nothing to offer


def _slugs(db: Database, start: str) -> list[str]:
    named, mark, rest = start.rpartition("::")
    found = pages.visible_slugs(db, rest, MANY + 1, named or None)
    if len(found) > MANY:
        found = pages.slugs_by_folder(db, rest, MOST + 1, named or None)
    return [f"{named}{mark}{each}" for each in found]


def _quarantined(db: Database, start: str) -> list[str]:
    from quaid.storage import erase as erasure

    of = "{0.collection}::{0.slug}" if "::" in start else "{0.slug}"
    return _beginning((of.format(each) for each in erasure.quarantined_pages(db)), start)


def _collections(db: Database, start: str) -> list[str]:
    from quaid.storage import collections

    return _beginning((each.name for each in collections.list_all(db)), start)


def _wings(db: Database, start: str) -> list[str]:

    return pages.wings_beginning(db, start, MOST + 1)


def _tags(db: Database, start: str) -> list[str]:

    return pages.tags_beginning(db, start, MOST + 1)


def _models(db: Database, start: str) -> list[str]:
    """Those that this memory knows; if none fits, those of other packages too, which takes twice the time."""
    from quaid.embedding import registry as embedders
    from quaid.storage import collections

    added = embedders.parse_models(collections.get_setting(db, embedders.MODELS_SETTING))
    known = [
        embedders.DEFAULT_MODEL,
        *added,
        collections.get_setting(db, "embedding_model") or embedders.DEFAULT_MODEL,
    ]
    return _beginning(known, start) or _beginning(embedders.available_models(added), start)


def _notes(db: Database, start: str) -> list[str]:
    from quaid.notebook import layout as layouts

    notebook = layouts.find_notebook(db)
    return pages.file_paths_beginning(db, notebook.id, start, MOST + 1) if notebook else []


def _sessions(db: Database, start: str) -> list[str]:
    from quaid.storage import conversations

    return [each.session for each in conversations.find_by_session(db, start, MOST + 1)]


def _skills(settings: Settings, start: str) -> list[str]:
    from quaid import skills

    return _beginning((each.name for each in skills.found(settings.skill_folders)), start)


def _tokens(settings: Settings, start: str) -> list[str]:
    from quaid.ops import tokens

    return _beginning(tokens.names(settings), start)


def _nodes(settings: Settings, start: str) -> list[str]:
    from quaid.kb import layout
    from quaid.ops import kb_glance

    root = kb_glance.root(settings)
    if not os.path.isdir(root):
        return []
    nodes = (
        each.path.removesuffix(layout.NODE_ENDING)
        for each in layout.walk_store(root)
        if layout.is_node_file(each.path)
    )
    return _beginning(nodes, start)


IN_MEMORY: dict[str, Callable[[Database, str], list[str]]] = {
    "slugs": _slugs,
    "quarantined": _quarantined,
    "collections": _collections,
    "wings": _wings,
    "tags": _tags,
    "models": _models,
    "notes": _notes,
    "sessions": _sessions,
}
ELSEWHERE: dict[str, Callable[[Settings, str], list[str]]] = {
    "skills": _skills,
    "tokens": _tokens,
    "nodes": _nodes,
}
KINDS = (*IN_MEMORY, *ELSEWHERE)


def names(settings: Settings, kind: str, start: str) -> list[str]:
    """Names of a kind that begin so; none when there are too many, until another letter is typed."""
    found = ELSEWHERE[kind](settings, start) if kind in ELSEWHERE else _in_memory(settings, kind, start)
    return found if len(found) <= MOST else []


def _in_memory(settings: Settings, kind: str, start: str) -> list[str]:
    """None when the memory is not of this Quaid's schema."""
    path = os.path.realpath(settings.db_path)
    if connection.read_header(path).version != SCHEMA_VERSION:
        return []
    with Database(path, connection.connect(path, writable=False), writable=False) as db:
        db.connection.set_busy_timeout(PATIENCE_MS)
        return IN_MEMORY[kind](db, start)


def settings_to_read() -> list[str]:
    """What `config get` knows by name, whatever the memory."""
    from quaid.ops.upkeep import SETTINGS
    from quaid.options import OPTIONS

    return sorted({*SETTINGS, *OPTIONS})


def _beginning(every: "Iterable[str]", start: str) -> list[str]:
    return [each for each in dict.fromkeys(every) if each.startswith(start)]
