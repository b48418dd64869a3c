"""What `ops.truth` returns, as text for people."""

from collections.abc import Callable
from typing import Any


def _facts(record: Any) -> str:
    page = f" ({record.slug})" if record.slug else ""
    head = f"{record.subject}{page}: {'all that was held' if record.history else f'as of {record.as_of}'}"
    lines = [head]
    for each in record.facts:
        lines += _line(each, record.history)
    if not record.facts:
        lines.append("  no facts or links" + ("" if record.history else "; --history shows what has ended"))
    if len(record.facts) < record.total:
        lines.append(f"  {len(record.facts):,} of {record.total:,}; more: --limit {record.total}")
    if record.entries:
        lines.append("Dated entries:")
        for each in record.entries:
            source = f"[{each.source}] " if each.source else ""
            lines.append(f"  {each.date}  {source}{each.summary}  ({each.slug}, timeline {each.line})")
        if len(record.entries) < record.total_entries:
            lines.append(f"  {len(record.entries):,} of {record.total_entries:,} entries")
    return "\n".join(lines)


def _line(fact: Any, history: bool) -> list[str]:
    since = f"since {fact.since}" if fact.since else "since an unknown day"
    until = f", until {fact.until}" if fact.until else ""
    lines = [f"  {fact.subject} {fact.predicate} {fact.object}: {since}{until}"]
    said = [f"{fact.kind} {fact.id}", fact.by if fact.by != fact.kind else "", fact.source]
    place = f"{fact.part} {fact.line}" if fact.line else fact.part
    place += f" of version {fact.version}" if fact.version else ""
    said.append(f"{fact.slug}, {place}" if place else fact.slug)
    if fact.confidence < 1:
        said.append(f"confidence {fact.confidence:g}")
    if fact.superseded_by:
        said.append(f"superseded by fact {fact.superseded_by}")
    if history and fact.supersedes:
        said.append(f"supersedes fact {fact.supersedes}")
    lines.append("    " + "; ".join(filter(None, said)))
    return lines


def _assert(record: Any) -> str:
    fact = record.fact
    said = f"{fact.subject} {fact.predicate} {fact.object}"
    if not record.changed:
        return f"{record.slug} says this already (fact {record.id}); nothing was written"
    since = f" since {fact.valid_from}" if fact.valid_from and record.added else ""
    ended = "".join(f"; ended fact {each}" for each in record.superseded)
    return f"{done(record, fact.valid_until)}: {said}{since}{ended} ({record.slug}, version {record.version})"


def done(fact: Any, until: str | None = None) -> str:
    """What became of a fact: as `Added` and `AssertRecord` say it."""
    if fact.added:
        return f"Kept fact {fact.id}"
    if not fact.changed:
        return f"Had already fact {fact.id}"
    day = f" on {until}" if until else ""
    told = []
    if fact.ended_before:
        told.append(
            f"Moved the end of fact {fact.id} from {fact.ended_before}" + (f" to {until}" if until else "")
        )
    elif fact.ended:
        told.append(f"Ended fact {fact.id}{day}")
    if fact.witnessed:
        told.append(f"Added to fact {fact.id} who else says so" if not told else "added who else says so")
    return "; ".join(told) or f"Changed fact {fact.id}"


def _check(record: Any) -> str:
    where = f" in {record.slug}" if record.slug else ""
    if record.resolved:
        note = f": {record.resolved.resolution}" if record.resolved.resolution else ""
        if record.settled_before:
            told = f"{record.resolved.id} was settled already, on {record.settled_before[:10]}{note}"
        else:
            told = f"Settled {record.resolved.id}{note}"
        return "\n".join([told, *map(_changed, record.changed), *map(_written, record.written)])
    others = record.open_of_other_types
    beside = f"; {others:,} of other types {'is' if others == 1 else 'are'} open" if others else ""
    if not record.contradictions:
        return (
            f"No {record.type} contradiction{where}{beside or '; the other types were not looked for'}"
            if record.type
            else f"Nothing contradicts itself{where}"
        )
    lines = []
    for each in record.contradictions:
        lines.append(f"{each.id}. {each.type}: {each.description}")
        lines += [_quote(quote) for quote in each.quotes]
    shown, total = len(record.contradictions), record.total
    more = f"; more: --limit {total}" if shown < total else ""
    count = f"{shown:,} of {total:,}" if shown < total else f"{total:,}"
    return "\n".join(
        [
            *lines,
            f"{count} open{where}{more}{beside}; `quaid check --resolve ID --keep left|right|both` settles one",
        ]
    )


def _changed(each: Any) -> str:
    """What gave way, with the page on which it stands."""
    if each.never_held:
        time = "never held"
    elif each.until is None:
        time = "goes on" if each.kind == "link" else f"holds since {each.since}"
    else:
        time = f"ended on {each.until}"
    return f"  {each.kind} {each.id}, {each.says}: {time} ({each.slug})"


def _written(quote: Any) -> str:
    place = f"{quote.part} {quote.line}" if quote.line else quote.part
    return f"  {quote.slug}, {place} still says: {quote.quote}"


def _quote(quote: Any) -> str:
    place = f"{quote.part} {quote.line}" if quote.line else quote.part
    source = f" [{quote.source}]" if quote.source else ""
    return f"    {quote.slug}, {place}: {quote.quote}{source}"


RENDERERS: dict[str, Callable[[Any], str]] = {
    "FactsRecord": _facts,
    "AssertRecord": _assert,
    "CheckRecord": _check,
}
