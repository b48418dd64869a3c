"""What the memory knows of the project that somebody works in.

The project is told by its folder: the repository around it, else the folder itself. Finds pages by words only, so
that a prompt costs no model and stays the same as long as the pages do. Does not know how a prompt is put together.
"""

import os
from typing import TYPE_CHECKING

from quaid.notebook.layout import DAILY, REFERENCE
from quaid.search import text as text_search
from quaid.storage import collections

if TYPE_CHECKING:
    from quaid.storage.collections import Collection
    from quaid.storage.sqlite.connection import Database

MOST = 5
WIDELY_USED = frozenset(
    {"home", "src", "work", "main", "code", "projects", "documents", "desktop", "tmp", "root"}
)
"""Names of folders that say nothing of what is in them."""


def name_of(folder: str, home: str) -> str:
    """The name of the project that a folder belongs to, in words; nothing where there is none to be seen."""
    folder, home = os.path.realpath(folder), os.path.realpath(home)
    above = folder
    while above != os.path.dirname(above) and above != home:
        if os.path.lexists(os.path.join(above, ".git")):
            return _words(above)
        above = os.path.dirname(above)
    if folder == home or os.path.basename(folder).lower() in WIDELY_USED:
        return ""
    return _words(folder)


def told(db: "Database", name: str, notebook: "Collection | None") -> str:
    """The pages that hold all words of the name, best first, each with what it says there."""
    hits = [hit for hit in text_search.search_pages(db, name, limit=4 * MOST) if hit.all_words]
    paths = collections.paths_of_pages(db, {hit.id for hit in hits})
    lines = []
    for hit in hits:
        is_note = notebook is not None and hit.collection == notebook.name
        if is_note and paths.get(hit.id, "").startswith((f"{REFERENCE}/", f"{DAILY}/")):
            continue
        address = hit.slug if hit.collection == "default" else f"{hit.collection}::{hit.slug}"
        lines.append(f"- [[{address}]] {hit.title}: {' '.join(hit.snippet.replace('**', '').split())}")
    return "\n".join([f"## What the memory has on {name}", *lines[:MOST], ""]) if lines else ""


def _words(folder: str) -> str:
    name = os.path.basename(folder).lstrip(".")
    return " ".join("".join(each if each.isalnum() else " " for each in name).split())
