"""Settling a contradiction by keeping one side of it, so that the memory says one thing again.

No operation of its own: `check --resolve ID --keep SIDE` asks for it. What is not kept ends and stays as history.
A text is never changed: who wants it to say something else edits its page, and is told where.
"""

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from quaid.brain import Brain
from quaid.errors import InvalidArgument
from quaid.model import slug as slugs
from quaid.model.contradictions import ResolutionChange, remaining_text_links, resolution_changes
from quaid.storage import contradictions, facts as assertions, links, page_edits
from quaid.storage.contradictions import Contradiction, EvidenceQuote
from quaid.storage.pages import page_heads

if TYPE_CHECKING:
    from quaid.model.contradictions import ContradictionFinding
    from quaid.model.facts import Snapshot

Keep = Literal["left", "right", "both"]


class Changed(NamedTuple):
    """A fact or a link that gave way."""

    kind: str
    """fact or link."""
    id: int
    slug: str
    """The page on which it stands."""
    says: str
    since: str | None
    until: str | None
    """None: it goes on, since it was its end that was wrong."""
    never_held: bool


class Settled(NamedTuple):
    changed: tuple[Changed, ...]
    written: tuple[EvidenceQuote, ...]
    """Where a text still says what was not kept."""


def keep(brain: Brain, id: int, side: Keep, note: str) -> Settled:
    """Keep one side or both, and say that the contradiction is settled, in one transaction."""
    now = brain.now()
    with brain.db.reading():
        known = contradictions.require(brain.db, id)
        if side == "both":
            world, given, written = None, [], []
        else:
            world, found = _found(brain, known, side)
            kept = 0 if side == "left" else 1
            given = resolution_changes(world, found, kept)
            cites = [found.cites[1 - kept], *remaining_text_links(world, found, kept)]
            quotes = contradictions.quote_evidence(brain.db, cites, today=True)
            written = list(dict.fromkeys(each for each in quotes if each.is_written))
        facts = assertions.facts_by_id(brain.db, [each.id for each in given if each.kind == "fact"])
        ties = {each.id: links.require_added(brain.db, each.id) for each in given if each.kind == "link"}
        about = page_heads(brain.db, sorted({each.page_id for each in given}))
    told = " ".join(filter(None, [note.strip(), _told(given) if given else ""]))

    def work(tx: Any) -> None:
        for each in given:
            if each.kind == "link":
                if links.require_added(brain.db, each.id) != ties[each.id]:
                    raise _changed_meanwhile(id)
                links.close(tx, ties[each.id], each.until)
            elif not assertions.shorten_fact(tx, facts[each.id], each.since, each.until, each.successor):
                raise _changed_meanwhile(id)
        for page in about.values():
            page_edits.touch(tx, page.slug, expected_version=None, now=now, collection=page.collection)
        contradictions.resolve(tx, id, told, now)

    brain.db.write(work)
    named = {key: slugs.address(page.collection, page.slug) for key, page in about.items()}
    return Settled(tuple(_record(each, named[each.page_id]) for each in given), tuple(written))


def _found(brain: Brain, known: Contradiction, side: Keep) -> "tuple[Snapshot, ContradictionFinding]":
    """The finding as it is now: what was settled or edited since is not decided twice."""
    from quaid.model.contradictions import find_contradictions

    if known.type == "stale":
        raise InvalidArgument(
            name="keep",
            problem=f"{known.id} is a truth older than its evidence, which has no {side} side to keep; write the"
            f" truth of {known.slug} anew, or say --keep both if it still holds",
        )
    fingerprint, roots = contradictions.cause(brain.db, known.id)
    world = contradictions.snapshot_around(brain.db, roots, brain.now()[:10])
    world = world._replace(texts=list(world.texts))
    for each in find_contradictions(world, known.type):
        if each.fingerprint == fingerprint:
            return world, each
    raise InvalidArgument(
        name="resolve", problem=f"{known.id} no longer contradicts itself; `quaid check` looks again"
    )


def _changed_meanwhile(id: int) -> InvalidArgument:
    return InvalidArgument(
        name="resolve", problem=f"what {id} is about changed just now; `quaid check` looks again"
    )


def _record(each: ResolutionChange, address: str) -> Changed:
    return Changed(each.kind, each.id, address, each.says, each.since, each.until, each.never_held)


def _told(given: list[ResolutionChange]) -> str:
    return " ".join(f"{each.says}: {_time(each)}." for each in given)


def _time(each: ResolutionChange) -> str:
    if each.never_held:
        return "never held"
    if each.until is None:
        return f"since {each.since}" if each.kind == "fact" else "goes on"
    return f"until {each.until}"
