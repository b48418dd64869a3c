"""The pages of the dashboard.

Pages call operations only through `base.call_operation`. Text of the memory becomes HTML only in `markdown`; the
templates escape every other value. Errors of an operation are left to the app, which shows `error_page`.
"""

from starlette.routing import Route

from quaid.web.pages import base, graph, notebook, page as page_views, review, search, settings

PAGE_MODULES = (
    notebook,
    search,
    notebook,
    search,
    graph,
    review,
    settings,
    page_views,
    page_views,
    page_views,
    base,
)
"""In this order: of two routes that fit an address, the first is taken."""


def routes() -> list[Route]:
    """Every route of the dashboard."""
    return [route for room in PAGE_MODULES for route in room.routes()]
