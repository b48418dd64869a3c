"""Settings: state of the index, models, folders, clients, tokens, and the log of recent events.

The log shows what was done and when. It never contains text of a page or a question.
"""

import asyncio
import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from quaid.errors import QuaidError
from quaid.model.plain_text import count_noun
from quaid.web.pages.base import (
    cached_operation,
    call_operation,
    error_flash,
    gather_all,
    humanize,
    read_form,
    redirect,
    render_page,
    request_scope,
    route,
    try_operation,
)

SYNC_COUNTS = ("new", "changed", "moved", "removed")
BUTTON_NAMES = {"`quaid embed`": "“Rebuild index”", "`quaid put SLUG FILE`": "“New page”"}
STATE_NOTES = {
    "detached": "Its folder is no longer watched. The pages are kept.",
    "restoring": "Its files are being written.",
}


@route("/settings", GET="read")
async def show_settings(request: Request, error: QuaidError | None = None) -> Response:
    status, latest, models, folders, clients, kb, imports, tokens = await gather_all(
        cached_operation(request, "status"),
        try_operation(request, "list", limit=1),
        try_operation(request, "embeddings list"),
        cached_operation(request, "collection list"),
        try_operation(request, "connect"),
        try_operation(request, "kb status"),
        try_operation(request, "imports"),
        try_operation(request, "token list"),
    )
    collections = folders.value if folders else ()
    sessions = request.app.state.mcp_sessions if request_scope(request) == "owner" else ()
    return render_page(
        *(request, "settings.html"),
        http=error.http_status if error else 200,
        flash=error_flash(error) if error else None,
        status=status,
        next_steps=[name_buttons(step) for step in status.next_steps] if status else [],
        latest=latest.pages[0].updated_at if latest and latest.pages else None,
        models=models,
        folders=folders,
        files=sum(folder.files for folder in collections),
        synced=max((folder.last_sync_at or "" for folder in collections), default=""),
        clients=clients,
        kb=kb,
        imports=imports,
        tokens=tokens,
        health=await asyncio.to_thread(_check_collections, collections),
        programs=[
            (session, _format_moment(session.began), int(time.monotonic() - session.used) // 60)
            for session in sessions
        ],
        log=log_lines(request.app.state.bus.recent),
    )


def log_lines(recent: Iterable[tuple[float, str, dict[str, Any]]]) -> list[tuple[str, str]]:
    """Return the recent events as timestamps and sentences, newest first.

    The sentences contain only counts and names of folders and operations. settings.js has the same wording
    for events that arrive while the page is open.
    """
    lines = [(_format_moment(at), describe_event(kind, facts)) for at, kind, facts in recent]
    return [line for line in reversed(lines) if line[1]]


def describe_event(kind: str, facts: dict[str, Any]) -> str:
    """Return an event as a sentence; empty for events that only update a progress bar."""
    if kind == "finished":
        name, seconds = humanize(str(facts.get("operation", "")).capitalize()), facts.get("seconds", 0)
        return f"{name} {'took' if facts.get('succeeded') else 'failed after'} {seconds:g} s"
    if kind == "changed":
        return f"Pages changed: there are {facts.get('pages', 0):,} now"
    if kind == "gap":
        return f"A question found no answer: {count_noun(facts.get('open', 0), 'question is', 'questions are')} open"
    if kind == "lost":
        return f"{count_noun(facts.get('events', 0), 'event')} were skipped because they came too fast"
    if kind == "compaction":
        return "A compaction was simulated"
    if kind == "embedding":
        return f"{facts.get('done', 0):,} passages have their vector" if facts.get("finished") else ""
    return _describe_folder_event(facts) if kind == "files" else ""


def _describe_folder_event(facts: dict[str, Any]) -> str:
    name, event = facts.get("collection") or "A folder", facts.get("event")
    if facts.get("problem"):
        return f"{name}: {facts['problem']}"
    if event == "synced":
        return f"{name} was synced: {_sync_counts(facts)}"
    return f"{name} is watched" if event == "began" else ""


def name_buttons(step: str) -> str:
    """Replace commands in a suggestion by the names of the buttons on this page."""
    for command, button in BUTTON_NAMES.items():
        step = step.replace(command, button)
    return step


def _format_moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _sync_counts(counts: dict[str, Any]) -> str:
    parts = (f"{counts[kind]:,} {kind}" for kind in SYNC_COUNTS if counts.get(kind))
    return ", ".join(parts) or "no changes"


def _check_collections(folders: Iterable[Any]) -> list[tuple[Any, str, str]]:
    """Return each collection with its state and problem.

    This must run on a thread, because a network folder may block.
    """
    return [(folder, *check_collection(folder)) for folder in folders]


def check_collection(folder: Any) -> tuple[str, str]:
    """Return the state of a collection ("good" without problems), and its most serious problem with the remedy."""
    if folder.halted:
        return "needs a decision", folder.halted
    if folder.root and not os.path.isdir(folder.root):
        return "folder missing", "The folder cannot be found. No page is removed while it is missing."
    if folder.files_not_taken_in:
        state = f"{count_noun(folder.files_not_taken_in, 'file')} not imported"
        return state, "The page of this collection lists them with the reasons."
    if folder.ignore_problem:
        return "invalid ignore patterns", folder.ignore_problem
    if folder.state != "active":
        return folder.state, STATE_NOTES.get(folder.state, "")
    if folder.quarantined:
        pages = count_noun(folder.quarantined, "page has", "pages have")
        return f"{folder.quarantined} in quarantine", f"{pages} lost the file. Restore it on the page Review."
    if folder.root and not folder.last_sync_at:
        return "not read yet", "Sync reads the folder."
    return "good", "" if folder.writable else "read only"


@route("/settings/token", POST="owner", on_error=show_settings)
async def revoke_token(request: Request) -> Response:
    record = await call_operation(request, "token revoke", name=(await read_form(request)).get("name", ""))
    message = f"The token {record.value} is revoked. Requests with it are refused."
    return redirect(request, "/settings#tokens", message)


@route("/settings/rebuild", POST="owner", on_error=show_settings)
async def rebuild_index(request: Request) -> Response:
    """Rebuild everything derived from the pages, sync all folders and compute missing vectors.

    Progress is sent over /api/events.
    """
    record = await call_operation(request, "rebuild")
    request.app.state.operation_cache.clear()
    return redirect(request, "/settings", _rebuild_message(record), succeeded=record.exit_status == 0)


def _rebuild_message(record: Any) -> str:
    """Return a summary of the rebuild, including what failed."""
    parts = [f"The index of {count_noun(record.pages, 'page')} is rebuilt."]
    parts += [
        _sync_message(sync)
        for sync in record.syncs
        if sync.halted or sync.new or sync.changed or sync.removed
    ]
    if record.vectors:
        parts.append(f"{count_noun(record.vectors, 'missing vector was', 'missing vectors were')} computed.")
    if record.problem:
        parts.append(f"Missing vectors could not be computed: {record.problem}")
    return " ".join(parts)


@route("/settings/embeddings", POST="owner", on_error=show_settings)
async def choose_model(request: Request) -> Response:
    name = (await read_form(request)).get("name", "")
    if name == "off":
        await call_operation(request, "embeddings off")
        message = "Semantic search is off. Existing vectors are kept."
    else:
        await call_operation(request, "embeddings use", name=name)
        message = f"{name} is in use. Missing vectors are computed in the background, or with a rebuild."
    return redirect(request, "/settings#embeddings", message)


@route("/settings/sync", POST="owner", on_error=show_settings)
async def sync_folders(request: Request) -> Response:
    name = (await read_form(request)).get("name") or None
    record = await call_operation(request, "collection sync", name=name)
    return redirect(request, "/settings#collections", " ".join(map(_sync_message, record.value)))


def _sync_message(sync: Any) -> str:
    if sync.halted:
        return f"{sync.collection} needs a decision: {sync.halted}"
    failed = f" {count_noun(sync.failed, 'file')} could not be imported." if sync.failed else ""
    return f"{sync.collection} is in sync with its folder: {_sync_counts(sync._asdict())}.{failed}"


@route("/settings/collection/{name}", GET="owner")
async def show_collection(request: Request) -> Response:
    """Show a collection with its problematic files."""
    record = await call_operation(request, "collection info", name=request.path_params["name"])
    return render_page(request, "collection.html", record=record, here="/settings")
