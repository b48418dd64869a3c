"""The pages of the dashboard.

Pages call operations only through `base.call_operation`. Text of the memory becomes HTML only in `markdown`;
the templates escape every other value. Errors of an operation propagate to the app, which shows `error_page`.
"""

from quaid.web.pages import notebook, page, review, search, settings, today  # noqa: F401
from quaid.web.pages.base import PAGE_ROUTES

# More specific paths come first, for example /page/{slug:path}/edit before /page/{slug:path}.
PAGE_ROUTES.sort(key=lambda route: -len(route.path))
