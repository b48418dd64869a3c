"""What a watcher tells, one line each."""

from collections.abc import Callable
from typing import Any

from quaid.model.plain_text import count_noun
from quaid.surfaces.cli.render_collections import in_quarantine

MOST_NOTES = 20


def _began(event: Any) -> str:
    return f"{event.collection}: watching {event.root}"


def _synced(event: Any) -> str:
    sync = event.sync
    told = [
        f"{number:,} {what}"
        for what, number in (
            ("new", sync.new),
            ("changed", sync.changed),
            ("moved", sync.moved),
            ("gone", sync.removed),
            ("failed", sync.failed),
            ("new in sidecars", sync.raw_data),
        )
        if number
    ]
    said = ", ".join(told) or "nothing changed"
    if event.whole and sync.files:
        said += f" ({count_noun(sync.files, 'file')})"
    if sync.halted:
        said = f"{said + '; ' if told else ''}nothing was removed: {sync.halted}"
    if sync.halted and sync.files:  # there is a folder: whether its files are gone for good, a person knows
        said += f". If they are gone for good: quaid collection sync {sync.collection} --confirm-deletes"
    lines = [
        f"{sync.collection}: {said}",
        *(f"  {each.path}: {each.note}" for each in event.notes[:MOST_NOTES]),
    ]
    if away := sync.removed + sync.hidden:
        lines.insert(1, f"  {in_quarantine(away)}")
    if len(event.notes) > MOST_NOTES:
        more = count_noun(len(event.notes) - MOST_NOTES, "more note")
        lines.append(f"  and {more}: quaid collection info {sync.collection}")
    return "\n".join(lines)


def _trouble(event: Any) -> str:
    return f"{event.collection + ': ' if event.collection else ''}{event.problem}; {event.remedy}"


def _stands_by(event: Any) -> str:
    by_process: dict[int, list[str]] = {}
    for owner in event.owners:
        by_process.setdefault(owner.pid, []).append(owner.collection)
    told = "; ".join(f"process {pid} watches {', '.join(names)}" for pid, names in by_process.items())
    return f"{told}; this one stands by"


RENDERERS: dict[str, Callable[[Any], str]] = {
    "WatchBegan": _began,
    "WatchSynced": _synced,
    "WatchTrouble": _trouble,
    "WatchStandby": _stands_by,
}
