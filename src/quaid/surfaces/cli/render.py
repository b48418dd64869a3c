"""Records to text for people: one function per record, found by the record's name.

A function gets a record and returns what to print; it never asks the store for more.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from quaid.model.plain_text import count_noun
from quaid.surfaces.cli.text import account, address, cut, lost_front, size, table, wrap

ROOMS = (
    "notebook",
    "query",
    "models",
    "links",
    "graph",
    "truth",
    "gaps",
    "ingest",
    "merging",
    "forgetting",
    "briefing",
    "overview",
    "conversations",
    "collections",
    "watching",
    "restoring",
    "history",
    "clients",
    "kb",
    "service",
    "doctor",
)
"""Modules beside this one, each with the records of a room; they are looked through in this order, but for the one
that is named like the record's own."""


def render(record: Any) -> str:
    """The text of a record."""
    name = type(record).__name__
    if name not in RENDERERS:
        home = {part.partition("_")[0] for part in type(record).__module__.split(".")}  # kb_upkeep is of kb
        for room in sorted(ROOMS, key=lambda room: room not in home):
            RENDERERS.update(
                __import__(f"quaid.surfaces.cli.render_{room}", fromlist=["RENDERERS"]).RENDERERS
            )
            if name in RENDERERS:
                break
    return RENDERERS[name](record)


def _page(record: Any) -> str:
    from quaid.formats import markdown

    return markdown.render(record.frontmatter, record.compiled_truth, record.timeline)


def _put(record: Any) -> str:
    verb = "Made" if record.created else "Updated"
    place = " / ".join(filter(None, (record.wing, record.room)))
    said = f"{verb} {record.slug}: {record.title} ({record.type}, {place}), version {record.version}"
    if not record.changed:
        said = f"{record.slug} says this already (version {record.version}); nothing was written"
    if record.assertions:
        from quaid.surfaces.cli.render_truth import done as fact_done
    for each in record.assertions:
        said += "\n" + fact_done(each) + "".join(f"; ended fact {old}" for old in each.superseded)
    said += "".join(f"\nKept in the timeline: {each}" for each in record.timeline_kept)
    if record.timeline_kept:
        said += "\nYour text leaves them out; --replace-timeline removes them"
    if record.timeline_removed:
        from quaid.surfaces.cli.render_history import removed_entries

        said += removed_entries(record.timeline_removed, record.slug)
    return said + lost_front(record)


def _list(record: Any) -> str:
    if not record.pages:
        return (
            f"There {'is' if record.total == 1 else 'are'} only {count_noun(record.total, 'page')}."
            if record.total
            else "No pages match."
        )
    rows = [(address(page), page.type, page.updated_at[:10], page.title) for page in record.pages]
    last = record.offset + len(record.pages)
    if not record.offset and last == record.total:
        return f"{table(rows)}\n{count_noun(record.total, 'page')}"
    more = f"; next: --offset {last}" if last < record.total else ""
    return f"{table(rows)}\n{record.offset + 1:,}-{last:,} of {record.total:,} pages{more}"


def _tags(record: Any) -> str:
    if record.removed is not None:
        left = f"; left: {', '.join(record.tags)}" if record.tags else ""
        if record.changed:
            return f"Removed the tag {record.removed} from {record.slug}{left}"
        return f"{record.slug} has no tag {record.removed}; nothing was removed{left}"
    return "\n".join(record.tags) if record.tags else f"{record.slug} has no tags"


def _timeline(record: Any) -> str:
    if not record.entries:
        return f"{record.slug} has no dated entries"
    lines = []
    for entry in record.entries:
        lines.append(_entry(entry))
        lines += ["    " + line for line in entry.detail.splitlines()]
    if len(record.entries) < record.total:
        lines.append(f"{len(record.entries):,} of {record.total:,} entries; more: --limit {record.total}")
    return "\n".join(lines)


def _timeline_add(record: Any) -> str:
    if record.added:
        return f"Added to {record.slug}: {_entry(record.entry)} (version {record.version})"
    return f"{record.slug} has this entry already (version {record.version}); nothing was written"


def _entry(entry: Any) -> str:
    return f"{entry.date}  {f'[{entry.source}] ' if entry.source else ''}{entry.summary}"


def _raw(record: Any) -> str:
    if record.written:
        return f"Kept the data of {record.data[0].source} for {record.slug} (version {record.version})"
    if not record.data:
        return f"{record.slug} has no raw data"
    return "\n\n".join(
        f"{each.source} ({each.fetched_at})\n{json.dumps(each.data, ensure_ascii=False, indent=2)}"
        for each in record.data
    )


def _search(record: Any) -> str:
    if not record.hits:
        return f"Nothing found for {record.query!r}."
    lines = []
    for hit in record.hits:
        words = "" if hit.all_words else ", some of the words"
        lines.append(f"{address(hit)}  {hit.title} ({hit.type}{words})")
        excerpt = " ".join((hit.snippet or hit.summary).split())
        lines += ["    " + line for line in wrap(excerpt)]
    return "\n".join(lines)


def _stats(record: Any) -> str:
    rows = [("pages", f"{record.pages:,}")]
    rows += [(f"  {name}", f"{number:,}") for name, number in record.pages_by_type.items()]
    for name in ("links", "tags", "timeline_entries", "raw_data", "contradictions", "gaps", "imports"):
        rows.append((name.replace("_", " "), f"{getattr(record, name):,}"))
    rows.append(
        ("embeddings", count_noun(record.chunks, "chunk") + (f" ({record.model})" if record.model else ""))
    )
    rows.append(("size", f"{size(record.size)} and {size(record.wal_size)} of log"))
    rows.append(("newest change", record.updated_at or "none"))
    rows.append(("schema", str(record.schema_version)))
    rows.append(("memory", record.path))
    return table(rows)


def _validate(record: Any) -> str:
    checked = ", ".join(record.checks)
    if not record.violations:
        return f"All is well: {checked}{_vectors_to_make(record)}"
    lines = [f"{each.check}: {each.where}: {each.problem}" for each in record.violations]
    problems = f"{count_noun(len(record.violations), 'problem')} in: {checked}"
    return "\n".join([*lines, problems + _vectors_to_make(record)])


def _vectors_to_make(record: Any) -> str:
    chunks, pages = record.chunks_without_vector, record.pages_not_cut
    parts = [count_noun(chunks, "chunk")] if chunks else []
    parts += [f"{count_noun(pages, 'page')} not cut into chunks"] if pages else []
    return f"\nNo vectors yet: {', '.join(parts)}; `quaid embed` makes them" if parts else ""


def _compacted(record: Any) -> str:
    vectors = record.vectors_dropped
    dropped = f" Dropped {count_noun(vectors, 'vector')} of text that is gone." if vectors else ""
    if record.busy:
        return (
            f"{size(record.folded)} of the log went into the file; a reader still needs the log"
            f" ({size(record.wal_after)}). Run it again later.{dropped}"
        )
    folded = f"One file of {size(record.size)}; {size(record.folded)} of log folded in."
    return f"{folded} It can be copied now.{dropped}"


def _backup(record: Any) -> str:
    return f"Backup made and checked: {record.path} ({size(record.size)})"


def _setting(record: Any) -> str:
    return str(record.value)


def _settings(record: Any) -> str:
    return table(
        [(each.key, cut(" ".join(each.value.split()), 60) or "-", each.source) for each in record.settings]
    )


def _imported(record: Any) -> str:
    report, seen = record.report, record.report.files_seen
    if not seen:
        return f"{report.folder} holds no files."
    lines = [f"{report.folder}: {count_noun(seen, 'file')}"]
    told = {
        "new": "new",
        "changed": "changed",
        "unchanged": "unchanged",
        "edited": "unchanged, edited here since: left alone",
        "conflict": "in conflict: left as they are here",
        "too_large": "too large",
        "failed": "not taken in, because Quaid failed on them",
        "special": "kept, but no pages (index, schema, README)",
        "sidecar": "sidecars of raw data",
        "links_and_facts": "with links and facts that no text holds",
        "left_out": "left out",
    }
    lines += [
        f"  {report.outcomes[name]:>7,}  {text}" for name, text in told.items() if report.outcomes[name]
    ]
    lines += [f"{'':11}{count:>7,}  {reason}" for reason, count in report.left_out.items()]
    lines += [f"{each.path}: {each.note}" for each in report.notes]
    lines += [
        f"{each.path}: changed here and there; to take the file: {each.remedy}" for each in report.conflicts
    ]
    if report.gone:
        lines.append(f"gone since the last import: {count_noun(len(report.gone), 'file')}; their pages stay")
    if report.import_id is None:
        return "\n".join([*lines, f"Nothing was changed ({record.cpu_seconds:.2f} s CPU)"])
    lines += account(report)
    if report.outcomes["links_and_facts"]:
        lines.append(f"links brought back: {report.links:,}, facts brought back: {report.facts:,}")
    lines.append(f"Import {report.import_id} done ({record.cpu_seconds:.2f} s CPU)")
    return "\n".join([*lines, f"Next: {record.next_step}"] if record.next_step else lines)


def _exported(record: Any) -> str:
    what = (
        f"the files of import {record.import_id}"
        if record.import_id
        else f"{count_noun(record.pages, 'page')}"
    )
    said = f"Wrote {what} to {record.folder}: {count_noun(record.files, 'file')}, {size(record.bytes)}"
    if len(record.collections) > 1:
        rows = [
            (
                f"  {each.name}",
                f"{count_noun(each.pages, 'page')}",
                f"{record.folder}/{each.folder}".rstrip("/"),
            )
            for each in record.collections
        ]
        said += f"\n{table(rows)}"
    if record.links or record.facts:
        said += (
            f"\nBeside the texts: {count_noun(record.links, 'link')} and {count_noun(record.facts, 'fact')}"
        )
        said += f" in {record.folder}/.quaid/links-and-facts.json"
    if record.trouble:
        said += f"\nLinks and facts are missing: {record.trouble.rstrip('.')}"
    if record.quarantined:
        said += (
            f"\nNot written: {count_noun(record.quarantined, 'page')} in quarantine;"
            " `quaid collection quarantine export` writes them"
        )
    if record.unread:
        said += (
            f"\nDamaged, and left out: {count_noun(len(record.unread), 'page')}: {', '.join(record.unread)}"
        )
    return said


def _imports(record: Any) -> str:
    if not record.imports:
        return "Nothing was imported yet."
    return table(
        [
            (each.import_id, each.created_at, f"{count_noun(each.page_count, 'page')}", each.source_dir)
            for each in record.imports
        ]
    )


def _skills(record: Any) -> str:
    rows = [(each.name, each.description) for each in record.skills]
    return (
        "\n".join([table(rows), *_faults(record.problems)]) if rows else "\n".join(_faults(record.problems))
    )


def _skills_doctor(record: Any) -> str:
    lines = []
    for number, layer in enumerate(record.layers, 1):
        state = count_noun(len(layer.skills), "skill") if layer.present else "not there"
        origin = "" if layer.origin == layer.path else f" ({layer.origin})"
        lines.append(f"{number}. {layer.path}{origin}: {state}")
        lines += [f"     {each.name}  {each.sha256[:12]}" for each in layer.skills]
    lines.append("In force:")
    for each in record.skills:
        shadows = f", shadows {', '.join(each.shadows)}" if each.shadows else ""
        lines.append(f"     {each.name}  {each.sha256[:12]}  {each.path}{shadows}")
    return "\n".join([*lines, *_faults(record.problems)])


def _faults(problems: Sequence[Any]) -> list[str]:
    return [f"{each.path}: {each.problem}" for each in problems]


def _skills_extract(record: Any) -> str:
    return "\n".join(f"{each.outcome:9} {each.path}" for each in record.skills)


def _skill(record: Any) -> str:
    return str(record.text)


RENDERERS: dict[str, Callable[[Any], str]] = {
    "PageRecord": _page,
    "PutRecord": _put,
    "ListRecord": _list,
    "TagsRecord": _tags,
    "TimelineRecord": _timeline,
    "TimelineAddRecord": _timeline_add,
    "RawRecord": _raw,
    "SearchRecord": _search,
    "Stats": _stats,
    "ValidateRecord": _validate,
    "Compacted": _compacted,
    "BackedUp": _backup,
    "Setting": _setting,
    "SettingsRecord": _settings,
    "ImportRecord": _imported,
    "ExportReport": _exported,
    "ImportsRecord": _imports,
    "SkillsRecord": _skills,
    "SkillsDoctorRecord": _skills_doctor,
    "SkillsExtractRecord": _skills_extract,
    "SkillRecord": _skill,
}
