"""What a person can type when a memory cannot be used as it is: bring a backup back, or save what still reads.

Knows where backups lie and in which order steps are safe: what is damaged is moved aside and never deleted, its log
goes with it, and nothing is copied over a good file. Changes nothing itself.
"""

import os
from contextlib import suppress
from typing import NamedTuple

from quaid import config
from quaid.brain import Brain
from quaid.clients.config_files import ShellQuote
from quaid.errors import QuaidError
from quaid.model import dates
from quaid.model.plain_text import count_noun
from quaid.storage import collections
from quaid.storage.collections import Collection
from quaid.storage.sqlite import backup as backups

WITH_IT = ("", "-wal", "-shm", "-journal")
"""The files of a memory, by what stands behind its name. A log beside another database would ruin that one."""


class Way(NamedTuple):
    """How to have a memory again."""

    told: str
    backup: str
    """The copy that can take its place; nothing when there is none."""
    steps: tuple[str, ...]
    """What to type, in this order."""


def backup_folders(brain: Brain) -> tuple[str, ...]:
    """Where backups are looked for: beside the memory, and in the folder of what is the user's."""
    home = brain.settings.home
    return os.path.dirname(brain.settings.db_path), home, os.path.join(home, "backups")


def way(brain: Brain, *, reads: bool) -> Way:
    """The way back to a memory that is whole. `reads`: some of the damaged one can still be read."""
    folders = _attached(brain) if reads else []
    with suppress(QuaidError):
        brain.close()  # whoever is the last tidies the log away, and only what stays is named
    path = brain.settings.db_path
    good = backups.newest_intact_copy(path, backup_folders(brain))
    salvaged = _free(f"{path}-salvaged")
    if good is not None:
        pages = count_noun(good.pages, "page")
        changed = f", last changed on {good.changed[:10]}" if good.changed else ""
        doubt = (
            ""
            if good.is_same
            else "; look whether it is a copy of this memory, of which nothing is left to compare with"
        )
        told = f"{dates.timestamp(good.made)[:10]}, {good.path}: it is whole, with {pages}{changed}{doubt}"
        back = line(brain, "copy" if _windows(brain) else "cp", good.path, path)
        export = [_quaid(brain, "export", "--dir", salvaged)] if reads else []
        return Way(told, good.path, (*export, *_aside(brain), back, _quaid(brain, "doctor")))
    told = "none that is whole lies beside the memory; one elsewhere would be the best way back"
    if reads:
        told += ". Without one, pages come back; old versions, gaps and conversations do not"
    saving, again = _saved(brain, folders, salvaged) if reads else ([], [])
    return Way(told, "", (*saving, *_aside(brain), f"quaid init {_quoted(brain, path)}", *again))


def _attached(brain: Brain) -> list[Collection]:
    """The collections besides the default one, as far as they can be read."""
    with suppress(QuaidError):
        return [
            each for each in collections.list_all(brain.db) if each.name != collections.DEFAULT_COLLECTION
        ]
    return []


def _saved(brain: Brain, others: list[Collection], salvaged: str) -> tuple[list[str], list[str]]:
    """What saves the pages of a damaged memory, and what brings them into a new one.

    A folder that is still there is attached again; pages of a collection without one are exported for it.
    """
    if not others:
        return [_quaid(brain, "export", "--dir", salvaged)], [_quaid(brain, "import", salvaged)]
    saving = [_quaid(brain, "export", "--collection", collections.DEFAULT_COLLECTION, "--dir", salvaged)]
    again = [_quaid(brain, "import", salvaged)]
    for each in others:
        root = each.root or ""
        if each.state != "active" or not os.path.isdir(root):
            root = f"{salvaged}-{each.name}"
            saving.append(_quaid(brain, "export", "--collection", each.name, "--dir", root))
        if each.kind == "notebook":
            again.append(_quaid(brain, "notebook", "init", root))
        else:
            kind = ("--kind", "kb") if each.kind == "kb" else ()
            only = () if each.writable else ("--read-only",)
            again.append(_quaid(brain, "collection", "add", each.name, root, *kind, *only))
    return saving, again


def is_found(brain: Brain) -> bool:
    """Whether `quaid` alone, typed here, means this memory."""
    settings = brain.settings
    usual = config.read(None, settings.environ, settings.cwd, forgiving=True).db_path
    return os.path.realpath(usual) == os.path.realpath(settings.db_path)


def named(brain: Brain, step: str) -> str:
    """A step that names this memory, for whoever would otherwise mean another one."""
    if not step.startswith("quaid ") or " --db " in step:
        return step
    if step == "quaid init":
        return line(brain, "quaid", "init", brain.settings.db_path)
    return f"{line(brain, 'quaid', '--db', brain.settings.db_path)} {step.removeprefix('quaid ')}"


def in_place_of_a_folder(brain: Brain) -> tuple[str, ...]:
    """The folder gets another name, with all that is in it, and a memory is made where it was."""
    path = brain.settings.db_path
    move = line(brain, "move" if _windows(brain) else "mv", path, _free(f"{path}-folder"))
    return move, line(brain, "quaid", "init", path)


def _aside(brain: Brain) -> tuple[str, ...]:
    """Into a folder of its own, with its log: it may yet be needed."""
    path = brain.settings.db_path
    files = [*(path + each for each in WITH_IT), collections.folder_list_path(path)]
    there = [each for each in files if os.path.lexists(each)]
    folder = _free(f"{path}-damaged")
    if _windows(brain):
        return (line(brain, "mkdir", folder), *(line(brain, "move", each, folder) for each in there))
    return line(brain, "mkdir", folder), line(brain, "mv", *there, folder)


def _free(path: str) -> str:
    """The name, or one like it that nobody has."""
    name, number = path, 1
    while os.path.lexists(name):
        number += 1
        name = f"{path}-{number}"
    return name


def _quaid(brain: Brain, command: str, *words: str) -> str:
    return line(brain, "quaid", "--db", brain.settings.db_path, command, *words)


def line(brain: Brain, *words: str) -> str:
    """A command to type, each word quoted for the shell of this system."""
    return " ".join(_quoted(brain, each) for each in words)


def _quoted(brain: Brain, word: str) -> str:
    return ShellQuote(brain.settings.platform)(word)


def _windows(brain: Brain) -> bool:
    return brain.settings.platform == "win32"
