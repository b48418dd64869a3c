"""What `ops.ingest` returns, as text for people: what happened to each page, and what to do next."""

from collections.abc import Callable
from typing import Any

from quaid.model.plain_text import count_noun
from quaid.surfaces.cli.text import lost_front

NEXT = (
    "Next: the ingest skill (`quaid skills show ingest`) says how an agent brings its facts into other pages."
)


def _ingest(record: Any) -> str:
    if not record.written:
        known = [record.source_page, *(each for each in record.known_pages if each != record.source_page)]
        pages = f" ({', '.join(filter(None, known))})" if any(known) else ""
        return (
            f"{record.source_ref} was taken in on {record.known_since[:10]}{pages}; nothing was written."
            " --force does it again"
        )
    lines = [_page(each) for each in record.pages]
    lines += [f"Left alone, as the same source changed it before: {each}" for each in record.known_pages]
    kept = f"{record.source_type} {record.source_ref} as {record.source_page}"
    lines.append(f"Source kept: {kept} (import {record.import_id})")
    lines += [f"Gap {each} is answered" for each in record.gaps_resolved]
    return "\n".join(lines)


def _file(record: Any) -> str:
    return f"{_ingest(record)}\n{NEXT}" if record.written else _ingest(record)


def _page(outcome: Any) -> str:
    verb = {"created": "Made", "updated": "Updated", "unchanged": "Left as it was:"}[outcome.outcome]
    counts = {
        ("timeline entry", "timeline entries"): outcome.timeline_entries,
        ("tag", "tags"): outcome.tags,
        ("link", "links"): outcome.links,
        ("fact", "facts"): outcome.assertions,
    }
    told = [count_noun(number, *nouns) for nouns, number in counts.items() if number]
    if outcome.truth and outcome.outcome != "created":
        told.insert(0, f"truth: {outcome.truth}")
    if outcome.truth == "same words":
        told.append("--force writes the truth, too")
    aside = f" ({'; '.join(told)})" if told else ""
    return f"{verb} {outcome.slug}, version {outcome.version}{aside}{lost_front(outcome)}"


def _adopted(record: Any) -> str:
    made = [f"Made {each}" for each in record.pages]
    return "\n".join(made or ["Every source that was taken in has its page"])


RENDERERS: dict[str, Callable[[Any], str]] = {
    "IngestRecord": _ingest,
    "FileIngestRecord": _file,
    "AdoptRecord": _adopted,
}
