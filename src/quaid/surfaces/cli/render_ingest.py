"""What `ops.ingest` returns, as text for people: what happened to each page, and what to do next."""

from collections.abc import Callable

from quaid.annotations import Any
from quaid.surfaces.cli.text import count

NEXT = (
    "Next: the ingest skill (`quaid skills show ingest`) says how an agent brings its facts into other pages."
)


def _ingest(record: Any) -> str:
    if not record.written:
        pages = f" ({', '.join(record.known_pages)})" if record.known_pages else ""
        return (
            f"{record.source_ref} was taken in on {record.known_since[:10]}{pages}; nothing was written."
            " --force does it again"
        )
    lines = [_page(each) for each in record.pages] or ["No page was changed"]
    lines.append(f"Source kept: {record.source_type} {record.source_ref} (import {record.import_id})")
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
    told = [count(number, *nouns) for nouns, number in counts.items() if number]
    if outcome.truth and outcome.outcome != "created":
        told.insert(0, f"truth: {outcome.truth}")
    if outcome.truth == "same words":
        told.append("--force writes the truth, too")
    aside = f" ({'; '.join(told)})" if told else ""
    return f"{verb} {outcome.slug}, version {outcome.version}{aside}"


RENDERERS: dict[str, Callable[[Any], str]] = {"IngestRecord": _ingest, "FileIngestRecord": _file}
