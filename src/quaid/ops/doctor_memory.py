"""What is found of a memory itself: whether it is one, whether it is whole, how old its backups are.

Looks at the file and its rows, changes nothing. Where the memory cannot be used as it is, the finding carries the
steps that lead back to one (mending.py).
"""

import os
from collections.abc import Iterator
from typing import Literal, NamedTuple

from quaid.brain import Brain
from quaid.errors import DamagedDatabase, MissingDatabase, NotADatabase
from quaid.model.plain_text import count_noun
from quaid.ops import mending
from quaid.storage import SCHEMA_VERSION, collections
from quaid.storage.checks import Violation, is_text_index_damage
from quaid.storage.sqlite import connection

DAYS_OF_A_BACKUP = 30
DAY = 86_400
DAMAGE = "damage"
"""The name of findings that become one, when the round is over."""
MOST_FAULTS = 100
"""SQLite names no more of them."""

MADE_AGAIN = (
    "its tags are not",
    "its timeline entries are not",
    "its chunks are not",
    "its links are not",
    "it does not lead to the page that its text names",
    "its parts in turn_parts are not",
    "its codes are not",
    "a block of its codes",
)
"""How problems of derived rows begin, which `quaid rebuild` mends."""

State = Literal["fine", "missing", "advice", "wrong"]


class Finding(NamedTuple):
    """One thing that was looked at."""

    name: str
    state: State
    """missing: something optional that is not there or cannot be known. advice: it would be better with it."""
    detail: str
    remedy: str = ""
    """What to type, or to do."""
    further: tuple[str, ...] = ()
    """What to type after it."""
    details: tuple[str, ...] = ()
    """What was found, word for word; for programs, and for who helps."""


def memory(brain: Brain) -> Iterator[Finding]:
    path = brain.settings.db_path
    try:
        version = connection.read_header(os.path.realpath(path)).version
    except MissingDatabase:
        known = collections.read_folder_list(os.path.realpath(path))
        if known is None:
            yield Finding("memory", "wrong", f"there is none at {path}", "quaid init")
        else:
            folders = count_noun(len(known.folders), "folder")
            told = f"{path} was deleted; the next question rebuilds it from {folders} that it had attached"
            yield Finding("memory", "wrong", told, "quaid query QUESTION")
        return
    except NotADatabase as error:
        yield from _no_memory(brain, path, str(error.facts["problem"]))
        return
    if version > SCHEMA_VERSION:
        told = f"{path} has schema {version}; this Quaid knows versions up to {SCHEMA_VERSION}"
        yield Finding("memory", "wrong", told, "quaid upgrade")
        return
    if version < SCHEMA_VERSION:
        told = f"{path} has schema {version}; the next command brings it to {SCHEMA_VERSION}, after a backup"
        yield Finding("memory", "wrong", told, "quaid stats")
        return
    try:
        _ = brain.db
    except (DamagedDatabase, NotADatabase) as error:
        yield from _lost(brain, f"{path} is damaged: {error.facts['problem']}")
        return
    yield Finding("memory", "fine", f"{path}, schema {version}")


def _no_memory(brain: Brain, path: str, problem: str) -> Iterator[Finding]:
    """Something else is where the memory should be."""
    if os.path.isdir(path):
        inside = os.path.join(path, "memory.db")
        if os.path.exists(inside):
            told = f"{path} is a folder; a memory is a file, as in {inside}"
            step = mending.line(brain, "quaid", "--db", inside, "doctor")
            yield Finding("memory", "wrong", told, step)
            return
        told = f"{path} is a folder, where the memory should be a file"
        first, *further = mending.in_place_of_a_folder(brain)
        yield Finding("memory", "wrong", told, first, tuple(further))
        return
    told = f"{path} is no memory: {problem}"
    ours = problem in (connection.EMPTY_FILE, connection.NOT_SQLITE)  # may have been a memory before
    lost = list(_lost(brain, told)) if ours else []
    if lost and (problem == connection.EMPTY_FILE or lost[-1].state == "fine"):
        yield from lost
    else:
        yield Finding("memory", "wrong", told, "quaid --db FILE doctor")


def rows(brain: Brain) -> Iterator[Finding]:
    from quaid.ops.upkeep import validate

    found = validate(brain)
    if not found.violations:
        yield Finding("rows", "fine", ", ".join(found.checks))
        return
    lines = [line for each in found.violations if _is_damage(each) for line in each.problem.splitlines()]
    damage = tuple(line for line in lines if not line.startswith("***"))  # SQLite's headings
    if damage:
        yield Finding(DAMAGE, "wrong", "rows", details=damage)
        return
    first = found.violations[0]
    told = (
        f"{count_noun(len(found.violations), 'problem')}, first {first.check}: {first.where}: {first.problem}"
    )
    cured = any(_is_made_again(each) for each in found.violations)
    steps = ("quaid rebuild", "quaid validate") if cured else ("quaid validate",)
    details = tuple(f"{each.check}: {each.where}: {each.problem}" for each in found.violations[:MOST_FAULTS])
    yield Finding("rows", "wrong", told, steps[0], steps[1:], details)


def sources(brain: Brain) -> Iterator[Finding]:
    from quaid.storage import history

    if found := len(history.sources_without_page(brain.db)):
        told = (
            f"{count_noun(found, 'source')} that an earlier Quaid kept without a page; no search finds them"
        )
        yield Finding("sources", "advice", told, "quaid adopt-sources")


def _is_damage(found: Violation) -> bool:
    """Whether the file itself is hurt. An index of words can be made again, and the check of it is no judge of it."""
    return found.where == "database" and found.check != "fts" and not is_text_index_damage(found.problem)


def _is_made_again(found: Violation) -> bool:
    """Whether `quaid rebuild` mends it."""
    made_again = found.problem.startswith(MADE_AGAIN)
    return found.check == "fts" or made_again or is_text_index_damage(found.problem)


def backups(brain: Brain) -> Iterator[Finding]:
    from quaid.model import dates
    from quaid.storage.sqlite import backup

    found = backup.newest_backup(brain.settings.db_path, mending.backup_folders(brain))
    name = os.path.join(brain.settings.home, f"backup-{brain.now()[:10]}.db")
    if found is None:
        told = "none beside the memory; this says nothing of copies elsewhere"
        yield Finding("backup", "advice", told, f"quaid backup {name}")
        return
    made = dates.timestamp(found[1])
    old = made < brain.now(-DAYS_OF_A_BACKUP * DAY)
    remedy = f"quaid backup {name}" if old else ""
    yield Finding("backup", "advice" if old else "fine", f"{made[:10]}, {found[0]}", remedy)


def if_damaged(brain: Brain, found: list[Finding]) -> list[Finding]:
    """Findings of a damaged memory: the damage once, with the way out of it, and no advice to go on writing there."""
    lines = tuple(dict.fromkeys(line for each in found if each.name == DAMAGE for line in each.details))
    damage = tuple(line for line in lines if not is_text_index_damage(line))
    if not damage:
        return _of_the_index(found, lines) if lines else found
    most = " or more" if len(damage) >= MOST_FAULTS else ""
    told = f"the file is damaged: SQLite names {count_noun(len(damage), 'fault')}{most} in it; `quaid validate` lists all"
    rest = [each for each in found if each.name not in (DAMAGE, "backup")]
    return [
        *_lost(brain, told, DAMAGE, damage, reads=True),
        *(each._replace(remedy="") if each.remedy.startswith("quaid ") else each for each in rest),
    ]


def _of_the_index(found: list[Finding], lines: tuple[str, ...]) -> list[Finding]:
    """Findings where nothing but an index of words is hurt: nothing is lost."""
    rest = [each for each in found if each.name != DAMAGE]
    if any(each.name == "rows" and each.state == "wrong" for each in rest):
        return rest
    told = "an index of words is damaged; it can be made again from the pages"
    return [Finding("rows", "wrong", told, "quaid rebuild", ("quaid validate",), lines), *rest]


def _lost(
    brain: Brain, told: str, name: str = "memory", details: tuple[str, ...] = (), *, reads: bool = False
) -> Iterator[Finding]:
    """What became of the memory, and the way back to one that is whole."""
    way = mending.way(brain, reads=reads)
    yield Finding(name, "wrong", told, way.steps[0], way.steps[1:], details)
    yield Finding("backup", "fine" if way.backup else "wrong", way.told)
