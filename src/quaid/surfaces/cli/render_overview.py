"""What `ops.overview` returns, as text for people."""

from collections.abc import Callable
from typing import Any

from quaid.model.plain_text import count_noun


def _days(record: Any) -> str:
    if not record.dated:
        return "Nothing is of such a day."
    lines: list[str] = []
    day = ""
    for each in record.dated:
        if each.day != day:
            day = each.day
            lines.append(day)
        state = f" {each.state}" if each.state else ""
        source = f" [{each.source}]" if each.source else ""
        text = " ".join(each.text.split()) or each.title
        lines.append(f"  {each.slug}  ({each.kind}{state}){source} {text}")
    if record.more:
        lines.append(f"More: --offset {record.offset + len(record.dated)}")
    return "\n".join(lines)


def _wings(record: Any) -> str:
    if not record.wings:
        return "No pages yet."
    lines = []
    for title, counted in (("Wings", record.wings), ("Types", record.types)):
        width = max(len(each.name) for each in counted)
        lines += [title, *(f"  {each.name:<{width}}  {each.pages:>7,}" for each in counted)]
    return "\n".join([*lines, "Collections", *(f"  {name}" for name in record.collections)])


def _wing(record: Any) -> str:
    lines = [f"{each.slug}  {each.title} ({each.type})" for each in record.nodes]
    lines += [f"  {each.from_slug} -[{each.relationship}]-> {each.to_slug}" for each in record.links]
    shown = len(record.nodes)
    pages = (f"{shown:,} of " if shown < record.pages else "") + count_noun(record.pages, "page")
    return "\n".join(
        [*lines, f"{pages} in {record.wing}, {count_noun(len(record.links), 'link')} between them"]
    )


def _contradictions(record: Any) -> str:
    when = f"as of the check on {record.checked_at[:10]}" if record.checked_at else "nothing was checked yet"
    lines = []
    for each in record.contradictions:
        lines.append(f"{each.id}. {each.type}: {each.description}")
        for quote in each.quotes:
            place = f"{quote.part} {quote.line}" if quote.line else quote.part
            lines.append(f"    {quote.slug}, {place}: {quote.quote}")
    return "\n".join([*lines, f"{record.total:,} open, {when}; `quaid check` looks again"])


def _titles(record: Any) -> str:
    lines = [f"{each.name}  {each.title} ({each.slug})" for each in record.titles]
    return "\n".join(lines) or "No page is called so."


RENDERERS: dict[str, Callable[[Any], str]] = {
    "DaysRecord": _days,
    "TitlesRecord": _titles,
    "WingsRecord": _wings,
    "WingRecord": _wing,
    "ContradictionsRecord": _contradictions,
}
