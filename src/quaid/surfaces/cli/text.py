"""How text for people is set: counts, tables, sizes, lines that fit, what was taken in."""

from collections.abc import Iterable, Sequence
from typing import Any

from quaid.model import slug as slugs

WIDTH = 78


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell; the last one runs free."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    )


def wrap(text: str) -> Iterable[str]:
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > WIDTH:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
    if line:
        yield line


def account(report: Any) -> list[str]:
    """What an import or a sync found in the pages that it wrote."""
    kinds = ", ".join(f"{number:,} {name}" for name, number in report.types.items())
    found = (
        ("tags", report.tags),
        ("links", report.links_extracted),
        ("timeline entries", report.timeline_entries),
        ("raw data", report.raw_data),
    )
    return [f"types: {kinds or 'none'}", ", ".join(f"{name}: {number:,}" for name, number in found)]


def lost_front(record: Any) -> str:
    """A line that names the front matter and the tags which a page has lost, if any."""
    lost = [
        f"{noun} {', '.join(names)}"
        for noun, names in (("keys", record.keys_removed), ("tags", record.tags_removed))
        if names
    ]
    if not lost:
        return ""
    told = f"Removed with the front matter that the new text leaves out: {'; '.join(lost)}"
    return f"\n{told}\n`quaid history {record.slug}` lists the version that has them"


def words_only(why: str) -> str:
    """Return the line that says that meaning was not looked at, and why; only a setting turns the search off."""
    if why.lower().startswith("semantic search is off"):
        return f"By words only. {why.rstrip('.')}."
    return f"By words only: {why.rstrip('.')}."


def cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def size(number: int) -> str:
    left = float(number)
    for unit in ("bytes", "KB", "MB"):
        if left < 1000:
            return f"{left:.0f} {unit}" if unit == "bytes" else f"{left:.1f} {unit}"
        left /= 1000
    return f"{left:.2f} GB"


def address(page: Any) -> str:
    """How a page is named so that it cannot be mistaken: with its collection, unless that is the default one."""
    return slugs.address(page.collection, page.slug)
