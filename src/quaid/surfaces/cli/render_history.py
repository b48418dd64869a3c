"""The versions of a page, and what differs between them, as text for people."""

from collections.abc import Callable
from typing import Any

from quaid.surfaces.cli.text import size, table

BY = {"edit": "edited here", "sync": "read from its file", "import": "imported", "made": "made"}


def _history(record: Any) -> str:
    rows = [
        (
            f"{each.version:>4}",
            each.since,
            f"{size(each.size):>10}",
            BY[each.by] + (", the present one" if each.is_present else ""),
        )
        for each in record.versions
    ]
    return table(rows)


def _revert(record: Any) -> str:
    if not record.changed:
        return f"{record.slug} says what version {record.to} said; nothing was written"
    place = f", and so does {record.path}" if record.path else ""
    said = f"{record.slug} says again what version {record.to} said{place} (version {record.version})"
    return said + removed_entries(record.timeline_removed, record.slug)


def removed_entries(entries: tuple[str, ...], slug: str) -> str:
    """Lines that name the timeline entries which a page no longer has, if any."""
    return "".join(f"\nRemoved from the timeline: {each}" for each in entries) + (
        f"\n`quaid history {slug}` lists the version that has them" if entries else ""
    )


def _diff(record: Any) -> str:
    lines = [f"{record.slug}: {record.older}"] if record.older else []
    if record.from_version == record.to_version:
        return "\n".join(lines or [f"{record.slug} says what it said then (version {record.to_version})"])
    if record.same_text:
        lines.append(f"Versions {record.from_version} and {record.to_version} of {record.slug} say the same")
    return "\n".join([*lines, record.diff] if record.diff else lines)


RENDERERS: dict[str, Callable[[Any], str]] = {
    "HistoryRecord": _history,
    "RevertRecord": _revert,
    "DiffRecord": _diff,
}
