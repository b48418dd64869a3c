"""Settings: how the index is, bringing it up to date, which model, which folders, which programs, what happened.

The log shows what was done and when, as it is done; never what a page says or what was asked.
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
from quaid.surfaces.web.mcp import Session
from quaid.surfaces.web.pages.asking import ask, attempt, form, lately, scope_of, something_changes, together
from quaid.surfaces.web.pages.rendering import failed, go, page, tell, words

CHANGES = (("new", "new"), ("changed", "changed"), ("moved", "moved"), ("removed", "gone"))
BUTTONS = {"`quaid embed`": "“Rebuild index”", "`quaid put SLUG FILE`": "“New page”"}
STATES = {
    "detached": "Its folder is not watched any more; the pages stay.",
    "restoring": "Its files are being written.",
}


class Program(NamedTuple):
    """A program that speaks MCP with this server now."""

    name: str
    scope: str
    since: str
    calls: int
    silent: int
    """Seconds since it last asked."""


class Happened(NamedTuple):
    """A line of the log, in words."""

    at: str
    told: str


class Health(NamedTuple):
    """How a collection is, and why."""

    good: bool
    word: str
    why: str


async def show(request: Request, problem: QuaidError | None = None) -> Response:
    status, latest, models, folders, clients, kb, imports, given_away = await together(
        lately(request, "status"),
        attempt(request, "list", limit=1),
        attempt(request, "embeddings list"),
        lately(request, "collection list"),
        attempt(request, "connect"),
        attempt(request, "kb status"),
        attempt(request, "imports"),
        attempt(request, "token list"),
    )
    return page(
        *(request, "settings.html"),
        http=problem.http_status if problem else 200,
        told=failed(problem) if problem else None,
        status=status,
        next_steps=[in_here(each) for each in status.next_steps] if status else [],
        latest=latest.pages[0].updated_at if latest and latest.pages else None,
        models=models,
        folders=folders,
        files=sum(each.files for each in folders.collections) if folders else None,
        synced=max((each.last_sync_at or "" for each in folders.collections), default="") if folders else "",
        clients=clients,
        kb=kb,
        imports=imports,
        tokens=given_away,
        health=await asyncio.to_thread(healths, folders.collections) if folders else [],
        programs=programs(request.app.state.mcp_sessions) if scope_of(request) == "owner" else [],
        happened=happened(request.app.state.bus.recent),
    )


def programs(sessions: Iterable[Session]) -> list[Program]:
    now = time.monotonic()
    return [
        Program(
            *(each.connection.client, each.connection.scope, _moment(each.began), each.calls),
            int(now - each.used),
        )
        for each in sessions
    ]


def happened(recent: Iterable[tuple[float, str, dict[str, Any]]]) -> list[Happened]:
    """What was done lately, the last first. Facts are counts, names of folders and of operations.

    settings.js has the same words, for what happens while somebody looks."""
    said = [Happened(_moment(at), in_words(kind, facts)) for at, kind, facts in recent]
    return [each for each in reversed(said) if each.told]


def in_words(kind: str, facts: dict[str, Any]) -> str:
    """An event as a person would say it; "" for what only moves a bar."""
    if kind == "finished":
        name, seconds = words(str(facts.get("operation", "")).capitalize()), facts.get("seconds", 0)
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
    return _of_folder(facts) if kind == "files" else ""


def _of_folder(facts: dict[str, Any]) -> str:
    name, event = facts.get("collection") or "A folder", facts.get("event")
    if facts.get("problem"):
        return f"{name}: {facts['problem']}"
    if event == "synced":
        counts = ((facts.get(each, 0), word) for each, word in CHANGES)
        told = ", ".join(f"{number:,} {word}" for number, word in counts if number)
        return f"{name} was read: {told or 'nothing had changed'}"
    return f"{name} is watched" if event == "began" else ""


def in_here(step: str) -> str:
    """What is to be done next, by the names that it has on this page."""
    for command, button in BUTTONS.items():
        step = step.replace(command, button)
    return step


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def healths(folders: Iterable[Any]) -> list[tuple[Any, Health]]:
    """How each collection is. On a thread: a folder far away may not answer at once."""
    return [(each, health_of(each)) for each in folders]


def health_of(folder: Any) -> Health:
    """The worst that there is to say of a collection, and what helps."""
    if folder.halted:
        return Health(False, "waits for you", folder.halted)
    if folder.root and not os.path.isdir(folder.root):
        return Health(
            False, "folder is gone", "Its folder cannot be found; nothing is removed while it is away."
        )
    if folder.files_not_taken_in:
        files = count_noun(folder.files_not_taken_in, "file")
        return Health(False, f"{files} not taken in", "The page of this collection names them, and says why.")
    if folder.ignore_problem:
        return Health(False, "left-out patterns", folder.ignore_problem)
    if folder.state != "active":
        return Health(False, folder.state, STATES.get(folder.state, ""))
    if folder.quarantined:
        why = f"{count_noun(folder.quarantined, 'page has', 'pages have')} lost the file; Review can bring it back."
        return Health(False, f"{folder.quarantined} in quarantine", why)
    if folder.root and not folder.last_sync_at:
        return Health(False, "not read yet", "Sync reads the folder.")
    return Health(True, "well", "read only" if not folder.writable else "")


async def token(request: Request) -> Response:
    """End a token that was given away."""
    given = await form(request)
    try:
        record = await ask(request, "token revoke", name=given.get("name", ""))
    except QuaidError as error:
        return await show(request, error)
    tell(request, f"The token {record.name} is revoked. Whoever still shows it is refused.")
    return go(request, "/settings#tokens")


async def rebuild(request: Request) -> Response:
    """Make everything derived again, read every folder, make the vectors that are missing.

    Its progress comes over /api/events."""
    something_changes(request)
    try:
        record = await ask(request, "rebuild")
    except QuaidError as error:
        return await show(request, error)
    something_changes(request)  # who looked meanwhile saw the old figures
    tell(request, _rebuilt(record), went_well=record.exit_status == 0)
    return go(request, "/settings")


def _rebuilt(record: Any) -> str:
    """What a rebuild made, and what it could not."""
    told = [f"The index of {count_noun(record.pages, 'page')} is made again."]
    told += [
        _synced(each) for each in record.syncs if each.halted or each.new or each.changed or each.removed
    ]
    if record.vectors:
        told.append(f"{count_noun(record.vectors, 'vector was', 'vectors were')} missing and made.")
    if record.problem:
        told.append(f"Missing vectors could not be made: {record.problem}")
    return " ".join(told)


async def embeddings(request: Request) -> Response:
    name = (await form(request)).get("name", "")
    try:
        if name == "off":
            await ask(request, "embeddings off")
            return go(request, "/settings#embeddings", "off")
        await ask(request, "embeddings use", name=name)
    except QuaidError as error:
        return await show(request, error)
    tell(
        request, f"{name} is in use. Passages that have no vector of it get one by and by, or with a rebuild."
    )
    return go(request, "/settings#embeddings")


async def sync(request: Request) -> Response:
    given = await form(request)
    try:
        record = await ask(request, "collection sync", name=given.get("name") or None)
    except QuaidError as error:
        return await show(request, error)
    tell(request, " ".join(map(_synced, record.syncs)))
    return go(request, "/settings#collections")


def _synced(each: Any) -> str:
    if each.halted:
        return f"{each.collection} waits for you: {each.halted}"
    counts = ((each.new, "new"), (each.changed, "changed"), (each.moved, "moved"), (each.removed, "gone"))
    rest = f" {count_noun(each.failed, 'file')} could not be taken in." if each.failed else ""
    told = ", ".join(f"{number:,} {word}" for number, word in counts if number)
    return f"{each.collection} is in step with its folder: {told or 'nothing had changed'}.{rest}"


async def health(request: Request) -> Response:
    """Files of a collection that something is wrong with."""
    record = await ask(request, "collection info", name=request.path_params["name"])
    return page(request, "collection.html", record=record, here="/settings")


def routes() -> list[Route]:
    return [
        Route("/settings", show),
        Route("/settings/rebuild", rebuild, methods=["POST"]),
        Route("/settings/embeddings", embeddings, methods=["POST"]),
        Route("/settings/sync", sync, methods=["POST"]),
        Route("/settings/token", token, methods=["POST"]),
        Route("/settings/collection/{name}", health),
    ]
