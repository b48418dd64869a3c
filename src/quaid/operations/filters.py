"""Filters of searches and lists by type, wing and tag.

Every `quaid search` imports this module, so modules that only one filter needs are imported when it is used.
"""

from quaid.app import Brain
from quaid.errors import NotFound
from quaid.storage import pages
from quaid.storage.text_index import SearchFilters

_MAX_WINGS_SHOWN = 12


def search_filters(brain: Brain, *, type: str | None, wing: str | None, tag: str | None) -> SearchFilters:
    """Check the filters of a search and return them. Raise InvalidType, NotFound (wing) or InvalidArgument (tag)."""
    filters = SearchFilters(wing=_require_wing(brain, wing) if wing else None)
    if type:
        from quaid.model.page import check_type

        filters = filters._replace(type=check_type(type))
    if tag:
        from quaid.model import tags

        filters = filters._replace(tag=tags.check(tag))
    return filters


def _require_wing(brain: Brain, wing: str) -> str:
    """Check that a wing (top-level category) has pages, and return its name.

    Otherwise raise NotFound with the known wings, except in an empty memory, where any name is accepted.
    """
    from quaid.storage import briefing

    if not pages.wings_called(brain.db, [wing]) and (wings := briefing.count_pages_by(brain.db, "wing")):
        shown = ", ".join(wing.name for wing in wings[:_MAX_WINGS_SHOWN])
        more = f" and {len(wings) - _MAX_WINGS_SHOWN} more" if len(wings) > _MAX_WINGS_SHOWN else ""
        raise NotFound(what="wing", name=repr(wing), hint=f" The wings are {shown}{more}.")
    return wing


def type_notes(brain: Brain, type: str | None) -> tuple[str, ...]:
    """Return a note if results were filtered by an unknown type that no page has."""
    if not type:
        return ()
    from quaid.model import page as page_model

    name = page_model.check_type(type)
    if name in page_model.PAGE_TYPES or pages.count(brain.db, type=name):
        return ()
    return (page_model.unused_type_note(name),)
