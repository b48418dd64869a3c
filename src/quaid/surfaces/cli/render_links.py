"""Links as text for people."""

from collections.abc import Callable
from typing import Any

from quaid.model.plain_text import count_noun
from quaid.model.slug import address
from quaid.surfaces.cli.text import table

KINDS = {"wiki_link": "text", "programmatic": "added"}


def span(link: Any) -> str:
    """The time of a link, as in `2024-01-15 to 2026-03-01`."""
    if not link.valid_from and not link.valid_until:
        return ""
    return f"{link.valid_from or '?'} to {link.valid_until or 'now'}"


def _far_end(link: Any, outward: bool) -> str:
    if not outward:
        return address(link.from_collection, link.from_slug)
    return address(link.to_collection, link.to_slug) if link.resolved else f"{link.to_slug} (no such page)"


def _link(record: Any) -> str:
    link = record.link
    time = f" ({span(link)})" if span(link) else ""
    verb = "Closed" if record.closed else "Linked"
    return (
        f"{verb} {address(link.from_collection, link.from_slug)} {link.relationship}"
        f" {address(link.to_collection, link.to_slug)}{time}: link {link.id}"
        f" ({record.slug} is at version {record.version})"
    )


def _links(record: Any) -> str:
    outward = record.direction == "out"
    if not record.links:
        which = "" if record.temporal == "all" else f"{record.temporal} "
        said = "leads nowhere" if outward else "nothing leads here"
        hint = "" if record.temporal == "all" else "; --temporal all shows every link"
        return f"{record.slug}: {said} ({which}links as of {record.as_of}){hint}"
    rows = [
        (
            str(link.id),
            link.relationship,
            _far_end(link, outward),
            span(link),
            KINDS[link.source_kind],
            link.context,
        )
        for link in record.links
    ]
    more = f"; {record.total - len(rows):,} more: --limit {record.total}" if record.total > len(rows) else ""
    return f"{table(rows)}\n{count_noun(record.total, 'link')}{more}"


def _unlink(record: Any) -> str:
    lines = [
        f"Removed link {link.id}: {link.from_slug} {link.relationship} {link.to_slug}"
        for link in record.removed
    ]
    if record.from_text:
        ids = ", ".join(str(link.id) for link in record.from_text)
        lines.append(f"Still there, because the text of {record.slug} says so: link {ids}")
    return "\n".join([*lines, f"{record.slug} is at version {record.version}"])


RENDERERS: dict[str, Callable[[Any], str]] = {
    "LinkRecord": _link,
    "LinksRecord": _links,
    "UnlinkRecord": _unlink,
}
