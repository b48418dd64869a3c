"""A node of the knowledge base: what it says, what it links to and what links to it."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.model.links import ID_PREFIX
from quaid.surfaces.web.pages import addresses, markdown
from quaid.surfaces.web.pages.asking import ask
from quaid.surfaces.web.pages.leading import Place
from quaid.surfaces.web.pages.rendering import page


async def show(request: Request) -> Response:
    record = await ask(request, "kb show", node=request.path_params["id"])
    known = {each.id: each.title for each in (*record.links, *record.backlinks)}

    def lead(named: str) -> Place | None:
        id = named.removeprefix(ID_PREFIX).partition("::")[0].strip()
        return Place(addresses.node(id), known[id]) if id in known else None

    return page(
        request,
        "node.html",
        record=record,
        html=markdown.org(record.text, lead),
        here="/search",
    )


def routes() -> list[Route]:
    return [Route("/kb/{id}", show)]
