"""Settings: how the index is, bringing it up to date, which model, which folders, which programs, what happened.

The log shows what was done and when, as it is done; never what a page says or what was asked.
"""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.errors import EmbeddingsOff, NotAllowed
from quaid.ops import inspecting
from quaid.surfaces.web.pages.asking import ask, attempt, form, lately, scope_of, something_changes, together
from quaid.surfaces.web.pages.rendering import go, page


async def show(request: Request) -> Response:
    status, latest, models, folders, clients, kb, imports = await together(
        lately(request, "status"),
        attempt(request, "list", limit=1),
        attempt(request, "embeddings list"),
        lately(request, "collection list"),
        attempt(request, "connect"),
        attempt(request, "kb status"),
        attempt(request, "imports"),
    )
    return page(
        request,
        "settings.html",
        status=status,
        latest=latest.pages[0].updated_at if latest and latest.pages else None,
        models=models,
        folders=folders,
        clients=clients,
        kb=kb,
        imports=imports,
    )


async def rebuild(request: Request) -> Response:
    """Make everything derived again, read every folder, make the vectors that are missing.

    Its progress comes over /api/events."""
    if scope_of(request) != "owner":
        raise NotAllowed(name="rebuild", needed="owner", given=scope_of(request))
    something_changes(request)
    await request.app.state.crew.run("long", inspecting.rebuild, "rebuild")
    try:
        await ask(request, "embed")
    except EmbeddingsOff:
        pass  # words are in step; there is nothing else to make
    return go("/settings", "rebuilt")


async def embeddings(request: Request) -> Response:
    given = await form(request)
    if given.get("name") == "off":
        await ask(request, "embeddings off")
        return go("/settings#embeddings", "off")
    await ask(request, "embeddings use", name=given.get("name", ""))
    return go("/settings#embeddings", "chosen")


async def sync(request: Request) -> Response:
    given = await form(request)
    await ask(request, "collection sync", name=given.get("name") or None)
    return go("/settings#collections", "synced")


async def health(request: Request) -> Response:
    """Files of a collection that make no page, and why."""
    record = await ask(request, "collection info", name=request.path_params["name"])
    return page(request, "collection.html", record=record, here="/settings")


def routes() -> list[Route]:
    return [
        Route("/settings", show),
        Route("/settings/rebuild", rebuild, methods=["POST"]),
        Route("/settings/embeddings", embeddings, methods=["POST"]),
        Route("/settings/sync", sync, methods=["POST"]),
        Route("/settings/collection/{name}", health),
    ]
