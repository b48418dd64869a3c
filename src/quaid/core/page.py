"""A page: what it holds and what follows from that. Knows no file, no row and no version."""

from typing import Any, NamedTuple

from quaid.core import page_type, tags
from quaid.core.page_type import TYPES, check_type
from quaid.core.timeline import Entry, parse as parse_timeline

__all__ = ["TYPES", "Entry", "Page", "build", "check_type"]


class Page(NamedTuple):
    """Compiled truth and timeline with everything that is derived from them."""

    slug: str
    type: str
    title: str
    summary: str
    truth: str
    timeline: str
    frontmatter: dict[str, Any]
    wing: str
    room: str
    tags: tuple[str, ...]
    entries: tuple[Entry, ...]


def build(
    slug: str, frontmatter: dict[str, Any], truth: str, timeline: str, *, fallback_title: str | None = None
) -> Page:
    """The page that these parts make; the front matter overrides whatever would be inferred."""
    from quaid.core import headline, palace, prose

    text = prose.without_code(truth)
    head = prose.head(text)
    kind = page_type.known(frontmatter.get("type")) or page_type.from_folders(slug)
    return Page(
        slug=slug,
        type=kind,
        title=headline.title(slug, frontmatter, head, fallback_title),
        summary=headline.summary(frontmatter, head),
        truth=truth,
        timeline=timeline,
        frontmatter=frontmatter,
        wing=palace.wing(slug, kind, frontmatter),
        room=palace.room(slug, frontmatter, head),
        tags=_tags(frontmatter, text, timeline),
        entries=parse_timeline(timeline),
    )


def _tags(frontmatter: dict[str, Any], text: str, timeline: str) -> tuple[str, ...]:
    named = tags.of_frontmatter(frontmatter)
    if "#" not in text and "#" not in timeline:
        return named
    from quaid.core import prose

    below = tags.in_text(prose.without_code(timeline)) if "#" in timeline else ()
    return tuple(dict.fromkeys((*named, *tags.in_text(text), *below)))
