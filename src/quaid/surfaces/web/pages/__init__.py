"""The pages of the dashboard: one small module for each, records in, template and values out.

A page asks the memory only through `asking.ask`, which goes to the crew; texts become HTML only in `markdown.py`;
every other value is escaped by the templates. Forms carry the token `csrf_token`; who may come in at all is `guard`'s
business. An error of the memory is left to the app, which shows `error_page`.
"""

from starlette.routing import Route

from quaid.surfaces.web.pages import (
    changing,
    graph,
    home,
    kb,
    notebook,
    page,
    review,
    search,
    settings,
    static,
    timeline,
)

ROOMS = (home, search, notebook, timeline, graph, review, settings, kb, changing, page, static)
"""In this order: of two routes that fit an address, the first is taken."""


def routes() -> list[Route]:
    """Every route of the dashboard."""
    return [route for room in ROOMS for route in room.routes()]
