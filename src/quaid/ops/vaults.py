"""Folders of files: bringing them in, writing them out."""

import os
import time
from typing import Annotated, NamedTuple

from quaid.brain import Brain
from quaid.errors import InvalidArgument
from quaid.folders.export import ExportReport
from quaid.folders.importer import ImportReport
from quaid.ops.register import Arg, op
from quaid.storage import history
from quaid.storage.history import ImportBatch


class ImportRecord(NamedTuple):
    report: ImportReport
    cpu_seconds: float
    next_step: str | None = None


class ImportsRecord(NamedTuple):
    imports: tuple[ImportBatch, ...]


@op("owner", command="import", examples=("quaid import ~/notes", "quaid import ~/notes --force"))
def import_(
    brain: Brain,
    folder: Annotated[str, Arg("The folder of markdown files.", positional=True, path=True)],
    force: Annotated[bool, Arg("Take every file in again, also over pages that were edited here.")] = False,
) -> ImportRecord:
    """Bring a folder of markdown in, in one transaction, with an account of every file.

    The folder stays as it is. A second run takes in only what changed, and does not overwrite a page that was
    edited here since. With --force the files win; `quaid history SLUG` keeps what a page said before. The folder
    of an export also brings its links and facts back."""
    from quaid.folders import importer

    started = _spent()
    report = importer.import_folder(
        brain.db,
        brain.settings.path(folder),
        import_id=brain.new_uuid(),
        now=brain.now(),
        new_uuid=brain.new_uuid,
        progress=brain.progress,
        force=force,
    )
    spent = round(_spent() - started, 3)
    return ImportRecord(report, spent, _next_step(brain) if report.import_id else None)


def _spent() -> float:
    """Seconds of processors so far: ours, and those of helpers that have ended."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _next_step(brain: Brain) -> str | None:
    """How to get vectors, if they can be had."""
    try:
        ready = brain.embedder.ready() is None
    except Exception:  # whatever is wrong with a model, the import is done; `quaid status` tells
        return None
    return "`quaid embed` makes the vectors for questions by meaning" if ready else None


@op(
    "owner",
    examples=(
        "quaid export --dir ~/notes-export",
        "quaid export --collection notes --dir ~/notes-export",
        "quaid export --raw --import-id 019dc505-9b00-7abc-8def-0123456789ab --dir ~/notes-as-imported",
    ),
)
def export(
    brain: Brain,
    dir: Annotated[str, Arg("The folder to make.", path=True)] = "./export",
    raw: Annotated[bool, Arg("Byte for byte as one import read the files.")] = False,
    import_id: Annotated[str | None, Arg("The import that --raw writes; `quaid imports` lists them.")] = None,
    collection: Annotated[str | None, Arg("Only the pages of this collection.")] = None,
    force: Annotated[bool, Arg("Write into a folder that holds files; the same names are replaced.")] = False,
) -> ExportReport:
    """Write all pages into a folder as they are now, or (--raw) the files of one import as they were.

    Pages of the default collection are written as SLUG.md, those of every other collection into a folder named
    after it; with --collection, the pages of that one straight into the folder. Links and facts that no text holds
    are written to .quaid/links-and-facts.json, which `quaid import` reads. Pages in quarantine are left out:
    `quaid collection quarantine export` writes them."""
    from quaid.folders import export as exporter

    if import_id is not None and not raw:
        raise InvalidArgument(
            name="import_id", problem="goes with --raw; other exports write what is there now"
        )
    target = brain.settings.path(dir)
    if raw:
        if collection is not None:
            raise InvalidArgument(
                name="collection", problem="does not go with --raw, which writes one import"
            )
        return exporter.export_raw(brain.db, import_id, target, force=force, progress=brain.progress)
    return exporter.export_pages(
        brain.db, target, force=force, progress=brain.progress, collection=collection
    )


@op("owner", examples=("quaid imports",))
def imports(brain: Brain) -> ImportsRecord:
    """List the imports, newest first, with the ids that `export --raw` takes."""
    return ImportsRecord(tuple(history.list_imports(brain.db)))
