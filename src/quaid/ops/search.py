"""Finding pages by their words."""

from typing import Annotated, NamedTuple

from quaid.brain import Brain
from quaid.ops.register import Arg, op
from quaid.search import text as text_search
from quaid.search.text import PageHit


class SearchRecord(NamedTuple):
    query: str
    hits: tuple[PageHit, ...]


@op(
    "read",
    core=True,
    examples=("quaid search 'river ai board'", "quaid search oslo --type person --limit 3"),
)
def search(
    brain: Brain,
    query: Annotated[
        str, Arg("Words to look for; any text will do.", positional=True, any_text=True, question=True)
    ],
    type: Annotated[str | None, Arg("Only pages of this type, as in person.")] = None,
    wing: Annotated[str | None, Arg("Only pages of this wing, as in people.")] = None,
    tag: Annotated[str | None, Arg("Only pages with this tag.")] = None,
    limit: Annotated[int, Arg("How many pages.", minimum=1, maximum=1000)] = 10,
    raw: Annotated[bool, Arg("The query is FTS5 syntax.")] = False,
) -> SearchRecord:
    """Find pages by their words. Pages that hold all of them come first."""
    if type or tag:
        from quaid.model import page as page_model, tags

        type = page_model.check_type(type) if type else None
        tag = tags.check(tag) if tag else None
    if wing:
        from quaid.ops import editing

        editing.require_wing(brain, wing)
    hits = text_search.search_pages(
        brain.db, query, type=type or None, wing=wing or None, tag=tag or None, limit=limit, raw=raw
    )
    return SearchRecord(query, tuple(hits))
