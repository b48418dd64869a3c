"""The pages of the dashboard.

Pages call operations only through `base.call_operation`. Text of the memory becomes HTML only in `markdown`;
the templates escape every other value. Errors of an operation propagate to the app, which shows `error_page`.
"""

from starlette.routing import Route

from quaid.web.pages import base, graph, notebook, page as page_views, review, search, settings
from quaid.web.pages.base import error_page

__all__ = ["error_page", "routes"]


def routes() -> list[Route]:
    """Return every route of the dashboard. If two match an address, the first one is used."""
    return [
        *notebook.home_routes(),
        *search.routes(),
        *notebook.routes(),
        *search.timeline_routes(),
        *graph.routes(),
        *review.routes(),
        *settings.routes(),
        *page_views.node_routes(),
        *page_views.edit_routes(),
        *page_views.routes(),
        *base.static_routes(),
    ]
