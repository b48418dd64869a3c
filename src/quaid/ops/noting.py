"""What operations on the notebook share: editing a file, and seeing what was changed by hand."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quaid.brain import Brain
from quaid.errors import InvalidConfig
from quaid.notebook import layout

if TYPE_CHECKING:
    from quaid.folders.page_writer import EditResult, TextChange
    from quaid.storage.collections import Collection


def edit(
    brain: Brain, notebook: "Collection", path: str, change: "TextChange", expected: int | None = None
) -> "EditResult":
    from quaid.folders import page_writer

    return page_writer.edit_file(
        brain.db,
        notebook,
        path,
        change,
        now=brain.now(),
        new_uuid=brain.new_uuid,
        progress=brain.progress,
        expected_version=expected,
    )


def bring_in_step(brain: Brain, notebook: "Collection", only: list[str] | None = None) -> None:
    from quaid.folders.sync import sync_collection

    now = brain.now()
    sync_collection(brain.db, notebook, now=now, new_uuid=brain.new_uuid, progress=brain.progress, only=only)


def take_in(brain: Brain, notebook: "Collection", path: str) -> None:
    if brain.db.writable:
        bring_in_step(brain, notebook, [path])


def session_room(client: str | None, environ: Mapping[str, str]) -> int:
    """The characters that a session may start with in a client, or in the one that an environment is of."""
    from quaid.clients.known import context_limit

    return context_limit(client, environ)


def root(brain: Brain) -> str:
    """Where the notebook is, or would be: as the config file says, else beside the database."""
    chosen, _ = brain.settings.said("memory.notebook_dir")
    return (
        brain.settings.beside_config(chosen)
        if chosen
        else layout.default_notebook_root(brain.settings.db_path)
    )


def cut_as_configured(brain: Brain) -> None:
    """Have notebooks cut into windows of the size that the config file asks for."""
    from quaid.model import chunker
    from quaid.options import windows_move
    from quaid.storage import collections
    from quaid.storage.chunks import NOTEBOOK_WINDOW

    limit, overlap, respect = (
        brain.option(f"chunking.{name}") for name in ("max_tokens", "overlap_tokens", "respect_headings")
    )
    if not windows_move(limit, overlap):  # only the environment can still say so
        raise InvalidConfig(
            path="The environment",
            problem=f"chunking.overlap_tokens ({overlap}) must be at most half of chunking.max_tokens ({limit})",
        )
    wanted = chunker.window_strategy(limit, overlap, respect)
    if wanted != (collections.get_setting(brain.db, NOTEBOOK_WINDOW) or "window"):
        from quaid.storage.checks import recut_pages

        def work(tx: Any) -> None:
            collections.set_setting(tx, NOTEBOOK_WINDOW, wanted)
            recut_pages(tx)

        brain.db.write(work)


def fresh(brain: Brain) -> "Collection":
    """The notebook, with what was changed by hand taken in as long as its folder is there."""
    from quaid.folders.staleness import stale_paths

    notebook = layout.find_notebook(brain.db)
    if notebook is None or not layout.folder_exists(notebook):
        return notebook or layout.require_notebook(brain.db)  # what is in the index is better than nothing
    if brain.db.writable:
        cut_as_configured(brain)
    if brain.db.writable and brain.option("sync.sync_on_search"):
        paths = stale_paths(brain.seen, notebook)
        if paths:
            bring_in_step(brain, notebook, paths)
    return notebook
