"""Restored, compared and identified collections, their ignore rules and their quarantine as text for people."""

from collections.abc import Callable, Sequence
from typing import Any

from quaid.model.plain_text import count_noun
from quaid.surfaces.cli.text import size, table

MOST_SHOWN = 20


def _restored(record: Any) -> str:
    lines = [
        f"Wrote {count_noun(record.files, 'file')} of {record.name} to {record.root}, {size(record.bytes)}"
    ]
    if record.without_bytes:
        lines.append(f"No bytes are kept of {', '.join(record.without_bytes[:MOST_SHOWN])}")
    if record.left:
        lines.append(f"{record.left} is as it was; it is not synced any more")
    return "\n".join(lines)


def _audit(record: Any) -> str:
    head = f"{record.name}: {count_noun(record.files, 'file')}, {count_noun(record.pages, 'page')}"
    if not record.differences:
        return f"{head}: they agree, and the kept bytes with them"
    rows = [(each.kind, each.where, each.problem) for each in record.differences]
    return f"{table(rows)}\n{head}, {count_noun(len(rows), 'difference')}"


def _ids(record: Any) -> str:
    verb = "would get" if record.is_rehearsal else "got"
    lines = [
        f"{record.collection}: {count_noun(record.written, 'file')} {verb} an id, {record.had:,} had theirs"
    ]
    if record.left:
        lines.append(f"Left as they are: {count_noun(len(record.left), 'file')}")
        lines += [f"  {each.path}: {each.note}" for each in record.left]
    return "\n".join(lines)


def _ignore(record: Any) -> str:
    lines = list(record.patterns) or [f"{record.name} has no patterns of its own"]
    if record.problem:
        lines.append(f".quaidignore is not in force, but the last good one: {record.problem}")
    return "\n".join([*lines, f"Always left out: {' '.join(record.built_in)}"])


def _ignore_change(record: Any) -> str:
    if not record.changed:
        return f"Nothing to change: {', '.join(record.patterns) or 'no patterns'}"
    lines = [f"{record.name} leaves out: {', '.join(record.patterns) or 'only what is always left out'}"]
    lines += _paths("Hidden now, their pages in quarantine", record.hidden)
    lines += _paths("Seen now", record.shown)
    if not record.hidden and not record.shown:
        lines.append("No file became hidden or visible")
    if record.sync.halted:
        lines.append(f"Nothing else was removed: {record.sync.halted}")
    return "\n".join(lines)


def _paths(what: str, paths: Sequence[str]) -> list[str]:
    if not paths:
        return []
    more = f"\n  and {len(paths) - MOST_SHOWN:,} more" if len(paths) > MOST_SHOWN else ""
    shown = "\n".join(f"  {each}" for each in paths[:MOST_SHOWN])
    return [f"{what}: {count_noun(len(paths), 'file')}", shown + more]


def _only_here(each: Any) -> str:
    parts = [
        count_noun(number, noun)
        for number, noun in ((each.links, "link"), (each.assertions, "fact"), (each.raw_data, "raw answer"))
        if number
    ]
    told = f"only here: {', '.join(parts)}" if parts else "all of it was in its file"
    return f"{told}; exported to {each.exported_to}" if each.exported_to else told


def _quarantine(record: Any) -> str:
    if not record.pages:
        return "No page is in quarantine."
    rows = [
        (f"{each.collection}::{each.slug}", f"{each.since[:10]} to {each.until}", _only_here(each))
        for each in record.pages
    ]
    return f"{table(rows)}\n{count_noun(len(rows), 'page')}"


def _exported(record: Any) -> str:
    return f"Wrote {count_noun(len(record.pages), 'page')} to {record.folder}: {count_noun(record.files, 'file')}"


def _discarded(record: Any) -> str:
    if not record.pages:
        lines = ["No page had to go."]
    else:
        verb = "Discarded" if record.done else "These would go for good:"
        lines = [f"{verb} {count_noun(len(record.pages), 'page')}"] if record.done else [verb]
        lines += [f"  {each.collection}::{each.slug}  {_only_here(each)}" for each in record.pages]
    if record.kept:
        lines.append(f"Kept, for they hold what no file has: {', '.join(record.kept)}")
    return "\n".join(lines)


def _returned(record: Any) -> str:
    return f"{record.path} is back; {record.collection}::{record.slug} is the same page, version {record.version}"


RENDERERS: dict[str, Callable[[Any], str]] = {
    "RestoreRecord": _restored,
    "AuditRecord": _audit,
    "IdsReport": _ids,
    "IgnoreRecord": _ignore,
    "IgnoreChangeRecord": _ignore_change,
    "QuarantineRecord": _quarantine,
    "QuarantineExportRecord": _exported,
    "QuarantineDiscardRecord": _discarded,
    "QuarantineRestoreRecord": _returned,
}
