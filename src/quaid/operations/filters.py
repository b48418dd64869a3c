"""Arguments that several operations have: filters of searches and lists, and when something expires.

Every `quaid search` imports this module, so modules that only one filter needs are imported when it is used.
"""

from typing import Annotated, Literal

from quaid.app import Brain
from quaid.errors import InvalidArgument, NotFound
from quaid.model import dates, expiry
from quaid.operations.registry import Arg
from quaid.storage import pages
from quaid.storage.text_index import SearchFilters

_MAX_WINGS_SHOWN = 12


AtLeast = Annotated[
    Literal["person", "observed", "imported", "derived"] | None,
    Arg("Only text of this class or a higher one."),
]


def search_filters(
    brain: Brain, *, type: str | None, wing: str | None, tag: str | None, trust: str | None = None
) -> SearchFilters:
    """Check the filters of a search and return them. Raise InvalidType, NotFound (wing) or InvalidArgument (tag)."""
    filters = SearchFilters(wing=_require_wing(brain, wing) if wing else None)
    if trust:
        from quaid.model.trust import parse_class

        filters = filters._replace(trust=(parse_class(trust) or 0) + 1)
    if type or tag:
        from quaid.model.page import check_tag, check_type

        filters = filters._replace(
            type=check_type(type) if type else filters.type, tag=check_tag(tag) if tag else filters.tag
        )
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


ForPeriod = Annotated[str | None, Arg("Forget it after this period, as in 12h, 30d, 2w or 1y.", flag="--for")]
ExpiryDay = Annotated[str | None, Arg("Forget it after this day or time, as in Friday.")]


def requested_moment(brain: Brain, day: str | None, period: str | None) -> str | None:
    """Return the moment that a day or a period names, or None if neither is given.

    Raise InvalidArgument if it is not readable, or past.
    """
    if day is not None and period is not None:
        raise InvalidArgument(name="for", problem="cannot be combined with expires; use one of them")
    clock = brain.clock
    if period is not None:
        seconds = expiry.period_seconds(period)
        if seconds is None:
            problem = f"must be a period from 1h to 100y, as in 12h, 30d, 2w or 1y, not {period!r}"
            raise InvalidArgument(name="for", problem=problem)
        is_hours = period.strip().lower().endswith("h")
        return brain.now(seconds) if is_hours else dates.shift_date(clock.today, seconds // 86_400)
    if day is None:
        return None
    moment = expiry.parse_moment(day) or dates.parse_day(day, clock.today)
    if not moment or moment == expiry.NEVER:
        problem = (
            f"must be a day such as 2026-11-20 or Friday, or a time such as 2026-11-20T12:00Z, not {day!r}"
        )
        raise InvalidArgument(name="expires", problem=problem)
    if clock.is_past(moment):
        raise InvalidArgument(name="expires", problem=f"{day} is past; name a later day")
    return moment
