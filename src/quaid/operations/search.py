"""Full-text search, and the filters that searches have in common.

Every `quaid search` imports this module, so modules that only one filter needs are imported when it is used.
"""

from typing import Annotated, Literal, NamedTuple

from quaid.app import Brain
from quaid.errors import NotFound
from quaid.model.page import check_tag, check_type, parse_class
from quaid.operations.registry import Arg, op
from quaid.search import text as text_search
from quaid.search.text import PageHit
from quaid.storage import pages
from quaid.storage.text_index import SearchFilters

_MAX_WINGS_SHOWN = 12

Wing = Annotated[str | None, Arg("Only pages of this wing, as in people.")]
Type = Annotated[str | None, Arg("Only pages of this type, as in person.")]
Tag = Annotated[str | None, Arg("Only pages with this tag.")]
AtLeast = Annotated[
    Literal["person", "observed", "imported", "derived"] | None,
    Arg("Only text of this class or a higher one."),
]


class SearchRecord(NamedTuple):
    query: str
    hits: tuple[PageHit, ...]
    notes: tuple[str, ...] = ()


@op(
    "read",
    examples=("quaid search 'river ai board'", "quaid search oslo --type person --limit 3"),
)
def search(
    brain: Brain,
    query: Annotated[
        str, Arg("Words to search for; any text is valid.", positional=True, any_text=True, question=True)
    ],
    type: Type = None,
    wing: Wing = None,
    tag: Tag = None,
    trust: AtLeast = None,
    limit: Annotated[int, Arg("How many pages.", minimum=1, maximum=1000)] = 10,
    raw: Annotated[bool, Arg("The query is in FTS5 syntax.")] = False,
) -> SearchRecord:
    """Find pages by words. Pages that contain all of them come first."""
    filters = search_filters(brain, type=type, wing=wing, tag=tag, trust=trust)
    hits = tuple(text_search.search_pages(brain.db, query, filters, limit, raw=raw))
    notes: tuple[str, ...] = ()
    if not hits and not raw:
        from quaid.search.question import correct_spelling  # most searches find something without it

        corrected, corrections = correct_spelling(brain.db, query)
        if corrections:
            hits = tuple(text_search.search_pages(brain.db, corrected, filters, limit))
        notes = tuple(map(str, corrections))
    if hits or not type:
        return SearchRecord(query, hits, notes if hits else ())
    from quaid.operations.pages import type_notes  # 5 ms, and most searches find something

    return SearchRecord(query, hits, type_notes(brain, type))


def search_filters(
    brain: Brain, *, type: str | None, wing: str | None, tag: str | None, trust: str | None = None
) -> SearchFilters:
    """Check the filters of a search and return them. Raise InvalidType, NotFound (wing) or InvalidArgument (tag)."""
    return SearchFilters(
        wing=_require_wing(brain, wing) if wing else None,
        trust=(parse_class(trust) or 0) + 1 if trust else None,
        type=check_type(type) if type else None,
        tag=check_tag(tag) if tag else None,
    )


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
