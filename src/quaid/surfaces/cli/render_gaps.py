"""What `ops.gaps` returns, as text for people."""

from collections.abc import Callable
from typing import Any

from quaid.model.plain_text import count_noun

HASH_SHOWN = 12


def _gaps(record: Any) -> str:
    if not record.gaps:
        return "No open gaps."
    lines = [line for gap in record.gaps for line in _lines(gap)]
    shown = len(record.gaps)
    if shown < record.total:
        lines.append(f"{shown:,} of {record.total:,} gaps; more: --limit {record.total}")
    else:
        lines.append(count_noun(shown, "gap"))
    if any(gap.approved_by is None and gap.resolved_at is None for gap in record.gaps):
        lines.append("Words are kept only after an approval: quaid gaps approve ID --help")
    return "\n".join(lines)


def _gap(record: Any) -> str:
    gap = record.gap
    if record.done == "logged":
        return f"Gap {gap.id} noted; only the hash of the question is kept"
    if record.done == "counted":
        return (
            f"Gap {gap.id} was known: asked {count_noun(gap.times_seen, 'time')} since {gap.detected_at[:10]}"
        )
    if record.done == "approved":
        return f"Gap {gap.id} approved by {gap.approved_by} ({gap.sensitivity}): {_question(gap)}"
    return f"Gap {gap.id} resolved{f' by {gap.resolved_by_slug}' if gap.resolved_by_slug else ''}"


def _lines(gap: Any) -> list[str]:
    times = "once" if gap.times_seen == 1 else f"{gap.times_seen} times"
    since = f"{times}, last on {gap.last_seen_at[:10]}"
    lines = [f"{gap.id:>4}  {_question(gap)}  ({gap.sensitivity}, asked {since})"]
    if gap.redacted_query and gap.query_text:
        lines.append(f"      may be asked outside as: {gap.redacted_query}")
    if gap.context:
        lines.append(f"      {gap.context}")
    if gap.resolved_at:
        by = f" by {gap.resolved_by_slug}" if gap.resolved_by_slug else ""
        lines.append(f"      resolved on {gap.resolved_at[:10]}{by}")
    return lines


def _question(gap: Any) -> str:
    words = gap.query_text or gap.redacted_query
    return " ".join(words.split()) if words else f"#{gap.query_hash[:HASH_SHOWN]}"


def _cleared(record: Any) -> str:
    told = (
        "No open gap is without its words"
        if not record.closed
        else f"Closed {count_noun(record.closed, 'gap')} whose words nobody keeps"
    )
    return f"{told}; {record.open:,} with their words stay open" if record.open else told


RENDERERS: dict[str, Callable[[Any], str]] = {
    "GapsRecord": _gaps,
    "GapRecord": _gap,
    "GapsClearRecord": _cleared,
}
