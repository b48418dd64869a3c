"""Settings: state of the index, models, folders, clients, tokens, and the log of recent events.

The log shows what was done and when, never text of a page or a question.
"""

import asyncio
import os
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.errors import QuaidError
from quaid.model.plain_text import count_noun
from quaid.web.mcp import McpSession
from quaid.web.pages.base import (
    cached_operation,
    call_operation,
    clear_operation_cache,
    error_flash,
    flash,
    gather_all,
    humanize,
    read_form,
    redirect,
    render_page,
    request_scope,
    try_operation,
)

SYNC_COUNTS = (("new", "new"), ("changed", "changed"), ("moved", "moved"), ("removed", "gone"))
BUTTON_NAMES = {"`quaid embed`": "“Rebuild index”", "`quaid put SLUG FILE`": "“New page”"}
STATE_NOTES = {
    "detached": "Its folder is not watched any more; the pages stay.",
    "restoring": "Its files are being written.",
}


class ConnectedProgram(NamedTuple):
    """An MCP client with an open session."""

    name: str
    scope: str
    since: str
    calls: int
    silent: int
    """Seconds since its last request."""


class LogLine(NamedTuple):
    at: str
    told: str


class CollectionHealth(NamedTuple):
    """The state of a collection, and the reason for it."""

    good: bool
    word: str
    why: str


async def show_settings(request: Request, problem: QuaidError | None = None) -> Response:
    status, latest, models, folders, clients, kb, imports, given_away = await gather_all(
        cached_operation(request, "status"),
        try_operation(request, "list", limit=1),
        try_operation(request, "embeddings list"),
        cached_operation(request, "collection list"),
        try_operation(request, "connect"),
        try_operation(request, "kb status"),
        try_operation(request, "imports"),
        try_operation(request, "token list"),
    )
    return render_page(
        *(request, "settings.html"),
        http=problem.http_status if problem else 200,
        told=error_flash(problem) if problem else None,
        status=status,
        next_steps=[name_buttons(each) for each in status.next_steps] if status else [],
        latest=latest.pages[0].updated_at if latest and latest.pages else None,
        models=models,
        folders=folders,
        files=sum(each.files for each in folders.collections) if folders else None,
        synced=max((each.last_sync_at or "" for each in folders.collections), default="") if folders else "",
        clients=clients,
        kb=kb,
        imports=imports,
        tokens=given_away,
        health=await asyncio.to_thread(check_collections, folders.collections) if folders else [],
        programs=connected_programs(request.app.state.mcp_sessions)
        if request_scope(request) == "owner"
        else [],
        happened=log_lines(request.app.state.bus.recent),
    )


def connected_programs(sessions: Iterable[McpSession]) -> list[ConnectedProgram]:
    now = time.monotonic()
    return [
        ConnectedProgram(
            *(each.connection.client, each.connection.scope, _format_moment(each.began), each.calls),
            int(now - each.used),
        )
        for each in sessions
    ]


def log_lines(recent: Iterable[tuple[float, str, dict[str, Any]]]) -> list[LogLine]:
    """Return the recent events as sentences, newest first. They contain only counts and names of folders and
    operations.

    settings.js has the same wording for events that arrive while the page is open.
    """
    said = [LogLine(_format_moment(at), describe_event(kind, facts)) for at, kind, facts in recent]
    return [each for each in reversed(said) if each.told]


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
        return f"{count_noun(facts.get('events', 0), 'event')} came too fast to be told"
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
        counts = ((facts.get(each, 0), word) for each, word in SYNC_COUNTS)
        told = ", ".join(f"{number:,} {word}" for number, word in counts if number)
        return f"{name} was read: {told or 'nothing had changed'}"
    return f"{name} is watched" if event == "began" else ""


def name_buttons(step: str) -> str:
    """Replace commands in a suggestion by the names of the buttons on this page."""
    for command, button in BUTTON_NAMES.items():
        step = step.replace(command, button)
    return step


def _format_moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def check_collections(folders: Iterable[Any]) -> list[tuple[Any, CollectionHealth]]:
    """Return the state of each collection. Call it on a thread: a network folder may block."""
    return [(each, check_collection(each)) for each in folders]


def check_collection(folder: Any) -> CollectionHealth:
    """Return the most serious problem of a collection, with its remedy."""
    if folder.halted:
        return CollectionHealth(False, "waits for you", folder.halted)
    if folder.root and not os.path.isdir(folder.root):
        return CollectionHealth(
            False, "folder is gone", "Its folder cannot be found; nothing is removed while it is away."
        )
    if folder.files_not_taken_in:
        files = count_noun(folder.files_not_taken_in, "file")
        return CollectionHealth(
            False, f"{files} not taken in", "The page of this collection names them, and says why."
        )
    if folder.ignore_problem:
        return CollectionHealth(False, "left-out patterns", folder.ignore_problem)
    if folder.state != "active":
        return CollectionHealth(False, folder.state, STATE_NOTES.get(folder.state, ""))
    if folder.quarantined:
        why = f"{count_noun(folder.quarantined, 'page has', 'pages have')} lost the file; Review can bring it back."
        return CollectionHealth(False, f"{folder.quarantined} in quarantine", why)
    if folder.root and not folder.last_sync_at:
        return CollectionHealth(False, "not read yet", "Sync reads the folder.")
    return CollectionHealth(True, "well", "read only" if not folder.writable else "")


async def revoke_token(request: Request) -> Response:
    """Revoke a token."""
    given = await read_form(request)
    try:
        record = await call_operation(request, "token revoke", name=given.get("name", ""))
    except QuaidError as error:
        return await show_settings(request, error)
    flash(request, f"The token {record.name} is revoked. Whoever still shows it is refused.")
    return redirect(request, "/settings#tokens")


async def rebuild_index(request: Request) -> Response:
    """Rebuild everything derived from the pages, sync all folders and compute missing vectors.

    Progress is sent over /api/events.
    """
    clear_operation_cache(request)
    try:
        record = await call_operation(request, "rebuild")
    except QuaidError as error:
        return await show_settings(request, error)
    clear_operation_cache(request)  # pages loaded during the rebuild have cached the old figures
    flash(request, _rebuild_message(record), went_well=record.exit_status == 0)
    return redirect(request, "/settings")


def _rebuild_message(record: Any) -> str:
    """Return a summary of the rebuild, including what failed."""
    told = [f"The index of {count_noun(record.pages, 'page')} is made again."]
    told += [
        _sync_message(each)
        for each in record.syncs
        if each.halted or each.new or each.changed or each.removed
    ]
    if record.vectors:
        told.append(f"{count_noun(record.vectors, 'vector was', 'vectors were')} missing and made.")
    if record.problem:
        told.append(f"Missing vectors could not be made: {record.problem}")
    return " ".join(told)


async def choose_model(request: Request) -> Response:
    name = (await read_form(request)).get("name", "")
    try:
        if name == "off":
            await call_operation(request, "embeddings off")
            return redirect(request, "/settings#embeddings", "off")
        await call_operation(request, "embeddings use", name=name)
    except QuaidError as error:
        return await show_settings(request, error)
    flash(
        request, f"{name} is in use. Passages that have no vector of it get one by and by, or with a rebuild."
    )
    return redirect(request, "/settings#embeddings")


async def sync_folders(request: Request) -> Response:
    given = await read_form(request)
    try:
        record = await call_operation(request, "collection sync", name=given.get("name") or None)
    except QuaidError as error:
        return await show_settings(request, error)
    flash(request, " ".join(map(_sync_message, record.syncs)))
    return redirect(request, "/settings#collections")


def _sync_message(each: Any) -> str:
    if each.halted:
        return f"{each.collection} waits for you: {each.halted}"
    counts = ((each.new, "new"), (each.changed, "changed"), (each.moved, "moved"), (each.removed, "gone"))
    rest = f" {count_noun(each.failed, 'file')} could not be taken in." if each.failed else ""
    told = ", ".join(f"{number:,} {word}" for number, word in counts if number)
    return f"{each.collection} is in step with its folder: {told or 'nothing had changed'}.{rest}"


async def show_collection(request: Request) -> Response:
    """Show a collection with its problematic files."""
    record = await call_operation(request, "collection info", name=request.path_params["name"])
    return render_page(request, "collection.html", record=record, here="/settings")


def routes() -> list[Route]:
    return [
        Route("/settings", show_settings),
        Route("/settings/rebuild", rebuild_index, methods=["POST"]),
        Route("/settings/embeddings", choose_model, methods=["POST"]),
        Route("/settings/sync", sync_folders, methods=["POST"]),
        Route("/settings/token", revoke_token, methods=["POST"]),
        Route("/settings/collection/{name}", show_collection),
    ]
