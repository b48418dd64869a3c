"""What a shell offers when Tab is pressed: the names that only this memory knows.

Not operations: nobody calls them but the scripts of `quaid completion`. They change nothing, and a memory that would
have to be upgraded first is not opened for a Tab.
"""

from collections.abc import Callable

from quaid.brain import SCHEMA_VERSION, Brain
from quaid.store import opening, slugs

MOST = 200  # more than anybody reads; the next letter narrows it


def _slugs(brain: Brain, start: str) -> list[str]:
    named, mark, _ = start.partition("::")
    if mark:
        return [f"{named}::{each}" for each in slugs.shown(brain.db, start[len(named) + 2 :], MOST, named)]
    return slugs.shown(brain.db, start, MOST)


def _collections(brain: Brain, start: str) -> list[str]:
    from quaid.store import collections

    return [each.name for each in collections.every(brain.db) if each.name.startswith(start)]


def _skills(brain: Brain, start: str) -> list[str]:
    from quaid import skills

    return [each.name for each in skills.found(brain.settings.skill_folders) if each.name.startswith(start)]


KINDS: dict[str, Callable[[Brain, str], list[str]]] = {
    "slugs": _slugs,
    "collections": _collections,
    "skills": _skills,
}


def names(brain: Brain, kind: str, start: str) -> list[str]:
    """Names of a kind that begin so; none when the memory is not there, or not of this Quaid's schema."""
    if kind != "skills" and opening.header_of(brain.settings.db_path).version != SCHEMA_VERSION:
        return []
    return KINDS[kind](brain, start)
