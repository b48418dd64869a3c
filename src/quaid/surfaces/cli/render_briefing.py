"""What `ops.briefing` returns, as text for people."""

from collections.abc import Callable
from typing import Any

from quaid.operations.overview import BRIEFING_PARTS


def _briefing(record: Any) -> str:
    head = (
        f"As of {record.as_of}; new is what came since {record.since}, due what is due by {record.due_until}."
    )
    lines, empty = [head], []
    for name, title in BRIEFING_PARTS.items():
        part = getattr(record, name)
        if part.items:
            lines += ["", f"{title} ({_counted(part)})", *(_line(each) for each in part.items)]
        else:
            empty.append(title.lower())
    if empty:
        lines += ["", f"Nothing under: {', '.join(empty)}."]
    lines += [f"({note})" for note in record.notes]
    if record.next_steps:
        lines += ["", "Next", *(f"  {step}" for step in record.next_steps)]
    return "\n".join(lines)


def _counted(part: Any) -> str:
    shown = len(part.items)
    return f"{part.total:,}" if shown == part.total else f"{shown:,} of {part.total:,}"


def _line(item: Any) -> str:
    name = item.slug if item.id is None else f"{item.slug} [{item.id}]".strip()
    owner = f" ({item.owner})" if item.owner else ""
    text = f": {item.text}" if item.text else ""
    return f"  {item.day or 'no day':10}  {name}  {item.state}{text}{owner}"


RENDERERS: dict[str, Callable[[Any], str]] = {"BriefingRecord": _briefing}
