"""The sides of a contradiction in their words: the page, the line, who says so, since when.

Knows how to find in a page's text what a finding cites. Does not know why two sides contradict each other.
"""

from typing import TYPE_CHECKING, NamedTuple

from quaid.model import departures, facts, slug as slugs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quaid.model.contradictions import Citation
    from quaid.store.db import Database


class Quote(NamedTuple):
    """One side of a contradiction. What is behind the source is missing in findings of earlier releases."""

    slug: str
    part: str
    line: int | None
    quote: str
    source: str
    title: str = ""
    """Of the page."""
    says: str = ""
    """What a fact or a link says, as in lives_in Oslo; a text says it in its own words."""
    since: str | None = None
    until: str | None = None

    @property
    def is_written(self) -> bool:
        """Whether the words stand in the text of the page."""
        return self.part in ("truth", "timeline", "frontmatter")


class _Written(NamedTuple):
    address: str
    title: str
    truth: str
    timeline: str
    changed_at: tuple[str, str]
    """When the truth and the timeline last changed."""

    def as_of(self, time: str) -> tuple[str, str]:
        """The halves that have not changed since a time; "" in the place of one that has."""
        truth_changed, timeline_changed = (bool(time) and changed > time for changed in self.changed_at)
        return "" if truth_changed else self.truth, "" if timeline_changed else self.timeline


def quotes(db: "Database", cites: "Sequence[Citation]", *, today: bool = False) -> list[Quote]:
    """Where each of these stands, with its words.

    A fact without evidence is quoted from a text that is as it was when the fact was written down, or, with `today`,
    from whatever mentions its object now.
    """
    pages = sorted({each.page_id for each in cites})
    texts = {
        page_id: _Written(slugs.address(collection, slug), title, truth, timeline, (truth_at, timeline_at))
        for page_id, collection, slug, title, truth, timeline, truth_at, timeline_at in db.rows(
            _TEXTS, (str(pages),)
        )
    }
    nowhere = _Written("?", "", "", "", ("", ""))
    return [_quote(_of_today(cite) if today else cite, texts.get(cite.page_id, nowhere)) for cite in cites]


def _of_today(cite: "Citation") -> "Citation":
    return cite._replace(
        recorded_at="", needles=(*cite.needles, cite.object) if cite.object else cite.needles
    )


def _quote(cite: "Citation", page: _Written) -> Quote:
    more = (page.title, cite.says, cite.since, cite.until)
    if cite.part in ("truth", "timeline") and not cite.quote:
        # A stale page: what its halves begin or end with.
        lines = (page.truth if cite.part == "truth" else page.timeline).split("\n")
        line, quote = _shown(lines, cite.part)
        return Quote(page.address, cite.part, line, quote, cite.source, *more)
    if cite.part:
        return Quote(page.address, cite.part, cite.line, facts.quote_line(cite.quote), cite.source, *more)
    place = facts.find_quote(*page.as_of(cite.recorded_at), cite.needles)
    if place and not (
        cite.recorded_at and departures.may_mention_departure(place.quote)
    ):  # "left Brex" does not say "is at Brex"
        return Quote(page.address, place.part, place.line, place.quote, cite.source, *more)
    return Quote(page.address, "facts", None, cite.quote, cite.source, *more)


def _shown(lines: list[str], part: str) -> tuple[int | None, str]:
    """The first line that says something beyond a heading; of a timeline the newest entry."""
    if part == "timeline":
        from quaid.model import timeline

        entries = timeline.parse("\n".join(lines))
        if entries:
            newest = max(entries, key=lambda entry: entry.date)
            return newest.line, facts.quote_line(f"{newest.date} {newest.summary}")
    told = [
        (number, line) for number, line in enumerate(lines, 1) if line.strip() and not line.startswith("#")
    ]
    return (told[0][0], facts.quote_line(told[0][1])) if told else (None, "")


_TEXTS = (
    "SELECT p.id, c.name, p.slug, p.title, p.compiled_truth, p.timeline, p.truth_updated_at, p.timeline_updated_at"
    " FROM json_each(?) AS w"
    " JOIN pages AS p ON p.id = w.value JOIN collections AS c ON c.id = p.collection_id"
)
