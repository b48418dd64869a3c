"""What operations on the notebook share: editing a file, and seeing what was changed by hand."""

from typing import TYPE_CHECKING

from quaid.brain import Brain
from quaid.notebook import layout
from quaid.store.collections import Collection

if TYPE_CHECKING:
    from quaid.vaults.file_editing import Change, Edited


def edit(
    brain: Brain, notebook: Collection, path: str, change: "Change", expected: int | None = None
) -> "Edited":
    from quaid.vaults import file_editing

    return file_editing.edit(
        brain.db,
        notebook,
        path,
        change,
        now=brain.now(),
        new_uuid=brain.new_uuid,
        progress=brain.progress,
        expected_version=expected,
    )


def bring_in_step(brain: Brain, notebook: Collection, only: list[str] | None = None) -> None:
    from quaid.vaults.syncing import sync

    now = brain.now()
    sync(brain.db, notebook, now=now, new_uuid=brain.new_uuid, progress=brain.progress, only=only)


def take_in(brain: Brain, notebook: Collection, path: str) -> None:
    if brain.db.writable:
        bring_in_step(brain, notebook, [path])


def fresh(brain: Brain) -> Collection:
    """The notebook, with what was changed by hand taken in."""
    from quaid.vaults.staleness import stale

    notebook = layout.require(brain.db)
    if brain.db.writable:
        paths = stale(brain.seen, notebook)
        if paths:
            bring_in_step(brain, notebook, paths)
    return notebook
