"""Format content records as text: pages, search, facts, links, notebook, knowledge base.

There is one function per record class, looked up by class name. None of them queries the database.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any

from quaid.cli.output import (
    format_page_counts,
    format_size,
    format_table,
    lost_front,
    page_address,
    shorten,
    words_only_note,
    wrap_text,
)
from quaid.formats import markdown
from quaid.model.plain_text import count_noun
from quaid.model.slug import address


def render(record: Any) -> str:
    """Format a record as text for people."""
    name = type(record).__name__
    if name not in RENDERERS:
        from quaid.cli import render_reports

        RENDERERS.update(render_reports.RENDERERS)
    return RENDERERS[name](record)


def _page_record(record: Any) -> str:
    return markdown.render(record.frontmatter, record.compiled_truth, record.timeline)


def _put_record(record: Any) -> str:
    verb = "Made" if record.created else "Updated"
    place = " / ".join(filter(None, (record.wing, record.room)))
    said = f"{verb} {record.slug}: {record.title} ({record.type}, {place}), version {record.version}"
    if not record.changed:
        said = f"{record.slug} says this already (version {record.version}); nothing was written"
    for each in record.assertions:
        said += "\n" + fact_outcome(each) + "".join(f"; ended fact {old}" for old in each.superseded)
    said += "".join(f"\nKept in the timeline: {each}" for each in record.timeline_kept)
    if record.timeline_kept:
        said += "\nYour text leaves them out; --replace-timeline removes them"
    if record.timeline_removed:
        said += removed_timeline_entries(record.timeline_removed, record.slug)
    return said + lost_front(record)


def _page_list(record: Any) -> str:
    if not record.pages:
        return (
            f"There {'is' if record.total == 1 else 'are'} only {count_noun(record.total, 'page')}."
            if record.total
            else "No pages match."
        )
    rows = [(page_address(page), page.type, page.updated_at[:10], page.title) for page in record.pages]
    last = record.offset + len(record.pages)
    if not record.offset and last == record.total:
        return f"{format_table(rows)}\n{count_noun(record.total, 'page')}"
    more = f"; next: --offset {last}" if last < record.total else ""
    return f"{format_table(rows)}\n{record.offset + 1:,}-{last:,} of {record.total:,} pages{more}"


def _tag_list(record: Any) -> str:
    if record.removed is not None:
        left = f"; left: {', '.join(record.tags)}" if record.tags else ""
        if record.changed:
            return f"Removed the tag {record.removed} from {record.slug}{left}"
        return f"{record.slug} has no tag {record.removed}; nothing was removed{left}"
    return "\n".join(record.tags) if record.tags else f"{record.slug} has no tags"


def _timeline_entries(record: Any) -> str:
    if not record.entries:
        return f"{record.slug} has no dated entries"
    lines = []
    for entry in record.entries:
        lines.append(_timeline_entry(entry))
        lines += ["    " + line for line in entry.detail.splitlines()]
    if len(record.entries) < record.total:
        lines.append(f"{len(record.entries):,} of {record.total:,} entries; more: --limit {record.total}")
    return "\n".join(lines)


def _timeline_add(record: Any) -> str:
    if record.added:
        return f"Added to {record.slug}: {_timeline_entry(record.entry)} (version {record.version})"
    return f"{record.slug} has this entry already (version {record.version}); nothing was written"


def _timeline_entry(entry: Any) -> str:
    return f"{entry.date}  {f'[{entry.source}] ' if entry.source else ''}{entry.summary}"


def _raw_data(record: Any) -> str:
    if record.written:
        return f"Kept the data of {record.data[0].source} for {record.slug} (version {record.version})"
    if not record.data:
        return f"{record.slug} has no raw data"
    return "\n\n".join(
        f"{each.source} ({each.fetched_at})\n{json.dumps(each.data, ensure_ascii=False, indent=2)}"
        for each in record.data
    )


def _search_results(record: Any) -> str:
    if not record.hits:
        return f"Nothing found for {record.query!r}."
    lines = []
    for hit in record.hits:
        words = "" if hit.all_words else ", some of the words"
        lines.append(f"{page_address(hit)}  {hit.title} ({hit.type}{words})")
        excerpt = " ".join((hit.snippet or hit.summary).split())
        lines += ["    " + line for line in wrap_text(excerpt)]
    return "\n".join(lines)


def _statistics(record: Any) -> str:
    rows = [("pages", f"{record.pages:,}")]
    rows += [(f"  {name}", f"{number:,}") for name, number in record.pages_by_type.items()]
    for name in ("links", "tags", "timeline_entries", "raw_data", "contradictions", "gaps", "imports"):
        rows.append((name.replace("_", " "), f"{getattr(record, name):,}"))
    rows.append(
        ("embeddings", count_noun(record.chunks, "chunk") + (f" ({record.model})" if record.model else ""))
    )
    rows.append(("size", f"{format_size(record.size)} and {format_size(record.wal_size)} of log"))
    rows.append(("newest change", record.updated_at or "none"))
    rows.append(("schema", str(record.schema_version)))
    rows.append(("memory", record.path))
    return format_table(rows)


def _validation(record: Any) -> str:
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


def _compaction(record: Any) -> str:
    vectors = record.vectors_dropped
    dropped = f" Dropped {count_noun(vectors, 'vector')} of text that is gone." if vectors else ""
    if record.busy:
        return (
            f"{format_size(record.folded)} of the log went into the file; a reader still needs the log"
            f" ({format_size(record.wal_after)}). Run it again later.{dropped}"
        )
    folded = f"One file of {format_size(record.size)}; {format_size(record.folded)} of log folded in."
    return f"{folded} It can be copied now.{dropped}"


def _backup(record: Any) -> str:
    return f"Backup made and checked: {record.path} ({format_size(record.size)})"


def _setting(record: Any) -> str:
    return str(record.value)


def _settings(record: Any) -> str:
    return format_table(
        [
            (each.key, shorten(" ".join(each.value.split()), 60) or "-", each.source)
            for each in record.settings
        ]
    )


def _import_report(record: Any) -> str:
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
    lines += format_page_counts(report)
    if report.outcomes["links_and_facts"]:
        lines.append(f"links brought back: {report.links:,}, facts brought back: {report.facts:,}")
    lines.append(f"Import {report.import_id} done ({record.cpu_seconds:.2f} s CPU)")
    return "\n".join([*lines, f"Next: {record.next_step}"] if record.next_step else lines)


def _export_report(record: Any) -> str:
    what = (
        f"the files of import {record.import_id}"
        if record.import_id
        else f"{count_noun(record.pages, 'page')}"
    )
    said = f"Wrote {what} to {record.folder}: {count_noun(record.files, 'file')}, {format_size(record.bytes)}"
    if len(record.collections) > 1:
        rows = [
            (
                f"  {each.name}",
                f"{count_noun(each.pages, 'page')}",
                f"{record.folder}/{each.folder}".rstrip("/"),
            )
            for each in record.collections
        ]
        said += f"\n{format_table(rows)}"
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


def _import_list(record: Any) -> str:
    if not record.imports:
        return "Nothing was imported yet."
    return format_table(
        [
            (each.import_id, each.created_at, f"{count_noun(each.page_count, 'page')}", each.source_dir)
            for each in record.imports
        ]
    )


def _skill_list(record: Any) -> str:
    rows = [(each.name, each.description) for each in record.skills]
    return (
        "\n".join([format_table(rows), *_skill_problems(record.problems)])
        if rows
        else "\n".join(_skill_problems(record.problems))
    )


def _skill_layers(record: Any) -> str:
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
    return "\n".join([*lines, *_skill_problems(record.problems)])


def _skill_problems(problems: Sequence[Any]) -> list[str]:
    return [f"{each.path}: {each.problem}" for each in problems]


def _extracted_skills(record: Any) -> str:
    return "\n".join(f"{each.outcome:9} {each.path}" for each in record.skills)


def _skill_text(record: Any) -> str:
    return str(record.text)


STRENGTH_NOTES = {
    "strong": "Found (strong):",
    "weak": "Perhaps (weak): the memory holds little on this.",
    "none": "The memory does not seem to know this. What comes nearest:",
}


def _query_answer(record: Any) -> str:
    if not record.results:
        return "\n".join([f"Nothing found for {record.question[:200]!r}.", *_query_notes(record)])
    lines = [STRENGTH_NOTES[record.strength], ""]
    for place, result in enumerate(record.results, 1):
        lines += [*_query_result(place, result), ""]
    if record.lanes:
        lines += [*_lane_table(record.lanes), ""]
    left = f"{count_noun(record.total_tokens, 'token')}, {record.budget_remaining:,} left"
    return "\n".join([*lines, left, *_query_notes(record)])


def _query_result(place: int, result: Any) -> list[str]:
    where = f"{result.part} {result.start_line}-{result.end_line}"
    lines = [
        f"{place}. {page_address(result)}  {result.title} ({result.type}, {result.score:.2f}, {result.lane})",
        f"   {result.reason} [{where}]",
    ]
    body = result.content or result.summary
    return lines + ["     " + line if line else "" for line in body.strip("\n").splitlines()]


def _lane_table(lanes: Any) -> list[str]:
    rows = [("slug", "line", "words", "place", "page", "cosine", "place", "favour")]
    for each in lanes:
        cosine = "-" if each.cosine is None else f"{each.cosine:.3f}"
        rows.append(
            (
                *(each.slug, str(each.start_line), f"{each.words:.2f}", _rank(each.words_place)),
                *(f"{each.page_words:.2f}", cosine, _rank(each.meaning_place), f"{each.favour:.2f}"),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _rank(place: int) -> str:
    return str(place) if place else "-"


def _query_notes(record: Any) -> list[str]:
    return [f"({note})" for note in record.notes]


def _glance_record(record: Any) -> str:

    told = _recall_record
    parts = [told(record.recalled)] if record.recalled else []
    return "\n\n".join([*parts, _query_answer(record.answer)])


NOTEBOOK_COLUMN = 52
"""Column of the score in recall results."""


def _notebook_init(record: Any) -> str:
    made = f", made {', '.join(f'{each}/' for each in record.folders)}" if record.folders else ""
    if record.created:
        return (
            f"The notebook is {record.root} ({count_noun(record.files, 'file')}{made})\n"
            "Next: quaid remember WORDS, quaid log WORDS, quaid recall WORDS"
        )
    files = count_noun(record.files, "file")
    return f"{record.root} is the notebook already ({files}{made or '; nothing was changed'})"


def _notebook_list(record: Any) -> str:
    if not record.files:
        return f"{record.root} has no files yet. `quaid remember WORDS` writes one."
    return format_table([(each.path, format_size(each.size)) for each in record.files])


def _remember_record(record: Any) -> str:
    lines = []
    for each in record.lines:
        first = each.text.partition("\n")[0]
        said = "Wrote" if each.written else "Already there:"
        under = f" ({record.section})" if record.section else ""
        lines.append(f"{said} {each.path}:{each.line}{under}: {first}")
    return "\n".join(lines)


def _log_record(record: Any) -> str:
    return f"Wrote {record.path}:{record.line}: {record.heading.lstrip('# ')}"


def _notebook_file(record: Any) -> str:
    return str(record.text)


def _notebook_write(record: Any) -> str:
    if not record.changed:
        return f"{record.path} says this already (version {record.version}); nothing was written"
    return f"{'Made' if record.created else 'Wrote'} {record.path}:{record.line}, version {record.version}"


def _recall_record(record: Any) -> str:
    lines = [f"From the index alone. {record.missing}"] if record.missing else []
    lines += [] if record.semantic else [words_only_note(record.note)]
    groups = [("NOTEBOOK", record.notebook), ("DAILY", record.daily)]
    groups = [group for group in groups if group[1]]
    if not groups:
        lines.append(f"Nothing found for {record.query!r}.")
    for place, (name, hits) in enumerate(groups):
        last = place == len(groups) - 1
        lines.append(f"{'└' if last else '├'}── {name} ({count_noun(len(hits), 'result')})")
        lines += [("    " if last else "│   ") + line for line in _recall_hits(hits)]
    return "\n".join(lines)


def _recall_hits(hits: Sequence[Any]) -> list[str]:
    lines = []
    for place, hit in enumerate(hits):
        last = place == len(hits) - 1
        where = f"{hit.path}:{hit.start_line}" + (f"-{hit.end_line}" if hit.end_line > hit.start_line else "")
        lines.append(
            f"{'└' if last else '├'}── {where} {'.' * max(3, NOTEBOOK_COLUMN - len(where))} {hit.score:.2f}"
        )
        lines.append(f'{" " if last else "│"}   "{hit.snippet}"')
    return lines


def _prompt_record(record: Any) -> str:
    if not record.text and record.parts:
        return "Nothing fits into so few tokens."
    return str(record.text) or "Nothing is written yet in reference/ and in the logs of these two days."


def _notebook_migration(record: Any) -> str:
    if not record.moves:
        return f"{record.source} has neither runtime/*.md nor brain/memory/core/*.md; nothing to do"
    told = {
        "copied": "would be copied" if record.dry_run else "copied",
        "same": "is there already",
        "differs": "another file is there; merge them by hand",
        "unreadable": "cannot be read as UTF-8 text; left out",
        "stays": "is the agent's own; left out",
        "link": "is a link, which is not followed; left out",
    }
    rows = [(each.source, f"→ {each.path}" if each.path else "", told[each.outcome]) for each in record.moves]
    return format_table(rows)


SESSION_ID_SHOWN = 12
"""Characters of a session id shown in lists: enough to identify the session in a command."""

MAX_PROBLEMS = 20


def _conversation_import(record: Any) -> str:
    report = record.report
    parts = [
        (report.unchanged, "unchanged"),
        (report.other, "no transcript" if report.other == 1 else "no transcripts"),
        (report.gone, "not there any more"),
    ]
    aside = ", ".join(f"{number:,} {told}" for number, told in parts if number)
    lines = [
        f"{count_noun(report.files, 'file')}{f' ({aside})' if aside else ''}:"
        f" {count_noun(report.turns, 'new turn')} in {count_noun(report.conversations, 'new conversation')}"
        + (f" and {report.grown:,} that went on" if report.grown else "")
    ]
    if report.masked:
        lines.append(f"  {count_noun(report.masked, 'secret')} masked")
    if report.broken:
        lines.append(f"  {count_noun(report.broken, 'broken line')} skipped")
    if report.removed:
        lines.append(
            f"  {count_noun(report.removed, 'conversation')} you removed stayed out; --again takes such ones in again"
        )
    lines += [f"  `quaid conversations sync` looks into {each} from now on" for each in record.watched]
    if record.unwatched:
        lines.append(f"  {record.unwatched}")
    lines += [f"  {each.path}: {each.problem}" for each in report.problems[:MAX_PROBLEMS]]
    if len(report.problems) > MAX_PROBLEMS:
        lines.append(f"  and {len(report.problems) - MAX_PROBLEMS:,} more; --json has them all")
    return "\n".join(lines)


def _conversation_list(record: Any) -> str:
    if not record.conversations:
        return "No conversations. `quaid conversations add PATH` takes transcripts in."
    rows = [
        (
            (each.ended_at or "")[:10],
            each.client,
            shorten(each.session, SESSION_ID_SHOWN + 1).replace("…", ""),
            count_noun(each.turns, "turn"),
            shorten(each.title, 60),
        )
        for each in record.conversations
    ]
    last = record.offset + len(record.conversations)
    more = f"; next: --offset {last}" if last < record.total else ""
    shown = "" if not record.offset and last == record.total else f"{record.offset + 1:,}-{last:,} of "
    total = f"{count_noun(record.total, 'conversation')}, {count_noun(record.turns, 'turn')}"
    return f"{format_table(rows)}\n{shown}{total}{more}"


def _conversation(record: Any) -> str:
    held = record.conversation
    when = " to ".join(dict.fromkeys(each[:10] for each in (held.started_at, held.ended_at) if each))
    lines = [f"{held.client} {held.session}: {held.title}".rstrip(": ")]
    lines.append("  " + ", ".join(filter(None, (when, held.project, count_noun(held.turns, "turn")))))
    for each in record.turns:
        at = f", {each.said_at.replace('T', ' ').removesuffix('Z')} UTC" if each.said_at else ""
        mark = " <<<" if each.turn == record.around else ""
        lines += ["", f"[{each.turn}] {each.role}{at}{mark}", each.text]
        if each.left_out:
            lines.append(f"… {count_noun(each.left_out, 'more character')}; --full shows them")
    if record.turns and record.turns[-1].turn < held.turns:
        last = record.turns[-1].turn
        left = held.turns - last
        # Centre of the next window of the same size, which starts after the last turn shown.
        middle = min(held.turns, last + 1 + len(record.turns) // 2)
        lines += ["", f"{count_noun(left, 'turn')} {'follows' if left == 1 else 'follow'}: --around {middle}"]
    return "\n".join(lines)


def _conversation_search(record: Any) -> str:
    lines = []
    if record.note and not record.semantic:
        lines.append(words_only_note(record.note))
    elif record.note:
        lines.append(f"{record.note}; `quaid embed --all` makes the missing ones.")
    if not record.hits:
        none = "; `quaid conversations add PATH` takes transcripts in" if not record.conversations else ""
        where = count_noun(record.conversations, "conversation")
        lines.append(f"Nothing found for {shorten(record.query, 200)!r} in {where}{none}.")
    for hit in record.hits:
        day = (hit.date or "no date")[:10]
        title = f"  {shorten(hit.title, 60)}" if hit.title else ""
        lines.append(
            f"{day}  {hit.role}  {hit.client} {hit.session[:SESSION_ID_SHOWN]} turn {hit.turn}{title}"
        )
        lines += ["    " + line for line in wrap_text(hit.snippet)]
    return "\n".join(lines)


def _conversation_removal(record: Any) -> str:
    held = record.conversation
    what = f"{count_noun(held.turns, 'turn')} of {held.client} {held.session} ({held.title})"
    if not record.done:
        return f"These would go: {what}"
    left = f"\nBytes of it may be left in the file: {record.problem.rstrip('.')}. `quaid forget --finish` cleans it."
    return f"Removed {what}. The transcript itself was not touched.{left if record.problem else ''}"


CHANGE_ORIGINS = {"edit": "edited here", "sync": "read from its file", "import": "imported", "made": "made"}


def _page_history(record: Any) -> str:
    rows = [
        (
            f"{each.version:>4}",
            each.since,
            f"{format_size(each.size):>10}",
            CHANGE_ORIGINS[each.by] + (", the present one" if each.is_present else ""),
        )
        for each in record.versions
    ]
    return format_table(rows)


def _page_revert(record: Any) -> str:
    if not record.changed:
        return f"{record.slug} says what version {record.to} said; nothing was written"
    place = f", and so does {record.path}" if record.path else ""
    said = f"{record.slug} says again what version {record.to} said{place} (version {record.version})"
    return said + removed_timeline_entries(record.timeline_removed, record.slug)


def removed_timeline_entries(entries: tuple[str, ...], slug: str) -> str:
    """Return lines that list removed timeline entries, or ""."""
    return "".join(f"\nRemoved from the timeline: {each}" for each in entries) + (
        f"\n`quaid history {slug}` lists the version that has them" if entries else ""
    )


def _page_diff(record: Any) -> str:
    lines = [f"{record.slug}: {record.older}"] if record.older else []
    if record.from_version == record.to_version:
        return "\n".join(lines or [f"{record.slug} says what it said then (version {record.to_version})"])
    if record.same_text:
        lines.append(f"Versions {record.from_version} and {record.to_version} of {record.slug} say the same")
    return "\n".join([*lines, record.diff] if record.diff else lines)


LINK_KINDS = {"wiki_link": "text", "programmatic": "added"}


def validity(link: Any) -> str:
    """Return the validity interval of a link, for example `2024-01-15 to 2026-03-01`."""
    if not link.valid_from and not link.valid_until:
        return ""
    return f"{link.valid_from or '?'} to {link.valid_until or 'now'}"


def _other_end(link: Any, outward: bool) -> str:
    if not outward:
        return address(link.from_collection, link.from_slug)
    return address(link.to_collection, link.to_slug) if link.resolved else f"{link.to_slug} (no such page)"


def _link_added(record: Any) -> str:
    link = record.link
    time = f" ({validity(link)})" if validity(link) else ""
    verb = "Closed" if record.closed else "Linked"
    return (
        f"{verb} {address(link.from_collection, link.from_slug)} {link.relationship}"
        f" {address(link.to_collection, link.to_slug)}{time}: link {link.id}"
        f" ({record.slug} is at version {record.version})"
    )


def _link_list(record: Any) -> str:
    outward = record.direction == "out"
    if not record.links:
        which = "" if record.temporal == "all" else f"{record.temporal} "
        said = "leads nowhere" if outward else "nothing leads here"
        hint = "" if record.temporal == "all" else "; --temporal all shows every link"
        return f"{record.slug}: {said} ({which}links as of {record.as_of}){hint}"
    rows = [
        (
            str(link.id),
            link.relationship,
            _other_end(link, outward),
            validity(link),
            LINK_KINDS[link.source_kind],
            link.context,
        )
        for link in record.links
    ]
    more = f"; {record.total - len(rows):,} more: --limit {record.total}" if record.total > len(rows) else ""
    return f"{format_table(rows)}\n{count_noun(record.total, 'link')}{more}"


def _link_removed(record: Any) -> str:
    lines = [
        f"Removed link {link.id}: {link.from_slug} {link.relationship} {link.to_slug}"
        for link in record.removed
    ]
    if record.from_text:
        ids = ", ".join(str(link.id) for link in record.from_text)
        lines.append(f"Still there, because the text of {record.slug} says so: link {ids}")
    return "\n".join([*lines, f"{record.slug} is at version {record.version}"])


def _graph_record(record: Any) -> str:
    return {"text": _graph_tree, "dot": _graph_dot, "mermaid": _graph_mermaid}[record.form](record)


def _graph_tree(record: Any) -> str:
    """Format a graph as a tree. Each page is below the one it was reached from, with the links between the two."""
    arrows: dict[frozenset[str], list[Any]] = {}
    for arrow in record.links:
        arrows.setdefault(frozenset((arrow.from_slug, arrow.to_slug)), []).append(arrow)
    children: dict[str, list[Any]] = {}
    for node in record.nodes:
        if node.distance:
            children.setdefault(node.path[-2], []).append(node)
    lines = []

    def show(node: Any) -> None:
        if node.distance:
            between = arrows.get(frozenset((node.path[-2], node.path[-1])), [])
            said = ", ".join(_graph_edge(arrow, node) for arrow in between[:3])
            lines.append(f"{'  ' * node.distance}{said} {node.path[-1]}  {node.title}")
        else:
            lines.append(f"{node.path[-1]}  {node.title}")
        for child in children.get(node.path[-1], ()):
            show(child)

    show(record.nodes[0])
    cut = "" if record.complete else "; there is more: --limit"
    figures = f"{count_noun(len(record.nodes), 'page')}, {count_noun(len(record.links), 'link')}"
    return "\n".join([*lines, "", f"{figures} ({record.temporal}, {record.as_of}){cut}"])


def _graph_edge(arrow: Any, node: Any) -> str:
    time = f" ({validity(arrow)})" if validity(arrow) else ""
    return (
        f"-{arrow.relationship}{time}->"
        if arrow.to_slug == node.path[-1]
        else f"<-{arrow.relationship}{time}-"
    )


def _graph_dot(record: Any) -> str:
    lines = ["digraph quaid {", "  rankdir=LR;", "  node [shape=box, style=rounded];"]
    for node in record.nodes:
        lines.append(f"  {_dot_quoted(node.path[-1])} [label={_dot_quoted(node.title)}];")
    for arrow in record.links:
        lines.append(
            f"  {_dot_quoted(arrow.from_slug)} -> {_dot_quoted(arrow.to_slug)}"
            f" [label={_dot_quoted(_edge_label(arrow))}];"
        )
    return "\n".join([*lines, "}"])


def _graph_mermaid(record: Any) -> str:
    names = {node.path[-1]: f"n{place}" for place, node in enumerate(record.nodes)}
    lines = ["graph LR"]
    lines += [f'  {names[node.path[-1]]}["{_mermaid_text(node.title)}"]' for node in record.nodes]
    for arrow in record.links:
        lines.append(
            f'  {names[arrow.from_slug]} -->|"{_mermaid_text(_edge_label(arrow))}"| {names[arrow.to_slug]}'
        )
    return "\n".join(lines)


def _edge_label(arrow: Any) -> str:
    return f"{arrow.relationship} {validity(arrow)}".strip()


def _dot_quoted(text: str) -> str:
    """Quote a string for DOT, where only backslashes, quotes and line breaks are special."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


def _mermaid_text(text: str) -> str:
    """Escape a label for Mermaid, which has entities but no escape sequences."""
    marks = {'"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;", "\n": " "}
    return "".join([marks.get(letter, letter) for letter in text])


def _path_record(record: Any) -> str:
    if not record.found:
        why = "no way was found" if record.complete else "the search was given up; there may be a way"
        return (
            f"{record.from_slug} to {record.to_slug}: {why} (--temporal all also takes links that have ended)"
        )
    lines = [record.pages[0]]
    for arrow, page in zip(record.steps, record.pages[1:], strict=True):
        time = f" ({validity(arrow)})" if validity(arrow) else ""
        line = f"-{arrow.relationship}{time}->" if arrow.to_slug == page else f"<-{arrow.relationship}{time}-"
        lines.append(f"  {line} {page}")
    return "\n".join([*lines, count_noun(len(record.steps), "step")])


def _fact_list(record: Any) -> str:
    page = f" ({record.slug})" if record.slug else ""
    head = f"{record.subject}{page}: {'all that was held' if record.history else f'as of {record.as_of}'}"
    lines = [head]
    for each in record.facts:
        lines += _fact_lines(each, record.history)
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


def _fact_lines(fact: Any, history: bool) -> list[str]:
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


def _assert_record(record: Any) -> str:
    fact = record.fact
    said = f"{fact.subject} {fact.predicate} {fact.object}"
    if not record.changed:
        return f"{record.slug} says this already (fact {record.id}); nothing was written"
    since = f" since {fact.valid_from}" if fact.valid_from and record.added else ""
    ended = "".join(f"; ended fact {each}" for each in record.superseded)
    return f"{fact_outcome(record, fact.valid_until)}: {said}{since}{ended} ({record.slug}, version {record.version})"


def fact_outcome(fact: Any, until: str | None = None) -> str:
    """Return the outcome for a fact. Accepts a FactChange or an AssertRecord."""
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


def _contradiction_check(record: Any) -> str:
    where = f" in {record.slug}" if record.slug else ""
    if record.resolved:
        note = f": {record.resolved.resolution}" if record.resolved.resolution else ""
        if record.settled_before:
            told = f"{record.resolved.id} was settled already, on {record.settled_before[:10]}{note}"
        else:
            told = f"Settled {record.resolved.id}{note}"
        return "\n".join(
            [told, *map(_resolution_change, record.changed), *map(_remaining_text, record.written)]
        )
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
        lines += [_contradiction_quote(quote) for quote in each.quotes]
    shown, total = len(record.contradictions), record.total
    more = f"; more: --limit {total}" if shown < total else ""
    count = f"{shown:,} of {total:,}" if shown < total else f"{total:,}"
    return "\n".join(
        [
            *lines,
            f"{count} open{where}{more}{beside}; `quaid check --resolve ID --keep left|right|both` settles one",
        ]
    )


def _resolution_change(each: Any) -> str:
    """Format a fact or link that was changed by a resolution, with its page."""
    if each.never_held:
        time = "never held"
    elif each.until is None:
        time = "goes on" if each.kind == "link" else f"holds since {each.since}"
    else:
        time = f"ended on {each.until}"
    return f"  {each.kind} {each.id}, {each.says}: {time} ({each.slug})"


def _remaining_text(quote: Any) -> str:
    place = f"{quote.part} {quote.line}" if quote.line else quote.part
    return f"  {quote.slug}, {place} still says: {quote.quote}"


def _contradiction_quote(quote: Any) -> str:
    place = f"{quote.part} {quote.line}" if quote.line else quote.part
    source = f" [{quote.source}]" if quote.source else ""
    return f"    {quote.slug}, {place}: {quote.quote}{source}"


MAX_KB_ITEMS = 10


def _kb_query(record: Any) -> str:
    """Format one node per line, so that lines can be counted and cut. Warnings go to standard error."""
    if not record.matches:
        return f"No node matches {shorten(record.context, 80)!r}."
    lines = []
    for each in record.matches:
        source = (f"source {each.source}",) if each.source.startswith("raw/") else ()
        reasons = f"{', '.join(each.match)} {each.score:g}"
        if each.relevance is not None:
            reasons += f"; relevance {each.relevance:.2f}"
        facts = (" ".join(each.projects), each.status, each.updated, each.path, *source, reasons)
        lines.append(f"{each.title} ({each.id}): {each.summary}  [{'; '.join(facts)}]")
    return "\n".join(lines)


def _kb_node(record: Any) -> str:
    lines = [f"! {record.note}"] if record.note else []
    lines += [f"; {record.node.path}", record.text.rstrip("\n")]
    if record.backlinks:
        lines += ["", "; linked from", *_kb_node_lines(record.backlinks, ";   ")]
    return "\n".join(lines)


def _kb_backlinks(record: Any) -> str:
    lines = [f"! {record.note}"] if record.note else []
    if not record.backlinks:
        return "\n".join([*lines, f"No node links to {record.node.title} ({record.node.id})."])
    return "\n".join([*lines, *_kb_node_lines(record.backlinks)])


def _kb_node_lines(nodes: Sequence[Any], indent: str = "") -> list[str]:
    return [f"{indent}{each.title} ({each.id})  {each.path}" for each in nodes]


def _kb_remember(record: Any) -> str:
    what = "Wrote" if record.created else "Added to"
    lines = [
        f"{what} {record.node.title} ({record.node.id})",
        f"  {record.node.path}, commit {record.commit[:10]}",
    ]
    for each in record.contradicts:
        lines += [
            f"! It contradicts {each.title} ({each.id}): {each.why}",
            f"    new: {shorten(each.one, 100)}",
            f"    old: {shorten(each.other, 100)}",
        ]
    if record.contradicts:
        lines.append(
            "  All of them are contested now. A person decides: `ai-kb supersede` or `ai-kb contest --settle`."
        )
    return "\n".join(lines)


def _kb_status(record: Any) -> str:
    remote = record.remote or "none"
    rows = [
        ("store", record.root),
        ("nodes", f"{record.nodes:,}" + (f", {record.contested} contested" if record.contested else "")),
        ("remote", f"{remote}, ahead {record.ahead}, behind {record.behind}"),
        ("indexed", record.indexed_at or "never by this machine"),
        ("raw", format_size(record.raw_bytes)),
    ]
    if record.uncommitted:
        rows.append(
            ("changed", ", ".join(record.uncommitted[:3]) + (" …" if len(record.uncommitted) > 3 else ""))
        )
    if record.unfinished:
        rows.append(("git", f"a {record.unfinished} was begun and not finished"))
    if record.remote_problem:
        rows.append(("fetch", f"failed: {record.remote_problem}"))
    if record.push_problem:
        rows.append(("push", f"failed: {record.push_problem}"))
    return "\n".join([format_table(rows), *([record.nudge] if record.nudge else [])])


def _kb_setup(record: Any) -> str:
    if not record.commit and record.created:
        return f"Fetched the knowledge base into {record.root}.\nNext: `ai-kb query WORDS`, `ai-kb install-timer`."
    if not record.commit:
        remote = f" It is pushed to {record.remote}." if record.remote else ""
        return f"{record.root} is a knowledge base already, and nothing is missing.{remote}"
    head = f"Made a knowledge base in {record.root}" if record.created else f"Mended {record.root}"
    lines = [head, *[f"  {path}" for path in record.files]]
    if not record.remote:
        lines.append("It has no remote: `ai-kb init --remote URL` names a private one to push to.")
    return "\n".join([*lines, "Next: `ai-kb remember`, `ai-kb query WORDS`, `ai-kb install-timer`."])


def _kb_lint(record: Any) -> str:
    lines = []
    for each in record.findings:
        mark = "" if each.fatal else "style: "
        lines.append(f"{each.path}:{each.line}: {mark}{each.message}. {_capitalized(each.remedy)}")
    style = len(record.findings) - record.fatal
    told = (
        f"{count_noun(record.fatal, 'finding')} that would stop a commit"
        if record.fatal
        else "Nothing is wrong"
    )
    rest = f", {count_noun(style, 'remark')} on style" if style else ""
    return "\n".join(
        [
            *lines,
            f"{told}{rest}; looked at {count_noun(record.files, 'file')}, {count_noun(record.nodes, 'node')}.",
        ]
    )


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _kb_index(record: Any) -> str:
    lines = [f"Took up {path}, which was not committed" for path in record.taken_up]
    if record.files:
        lines.append(f"Wrote {', '.join(record.files)} for {count_noun(record.nodes, 'node')}")
    else:
        lines.append(f"The index is that of the {count_noun(record.nodes, 'node')} already")
    return "\n".join(lines) + (f", commit {record.commit[:10]}" if record.commit else ".")


def _kb_commit(record: Any) -> str:
    if not record.commit:
        return "Nothing has changed."
    lines = [f"Committed {record.commit[:10]}:", *[f"  {path}" for path in record.paths]]
    return "\n".join(lines)


def _kb_doctor(record: Any) -> str:
    rows = []
    for each in record.checks:
        told = each.told or "fine"
        mark = "!!" if not each.well else "--" if each.missing else "ok"
        rows.append((mark, each.name, told if each.well else f"{told}. {each.remedy}"))
    return format_table(rows)


def _kb_superseded(each: Any) -> str:
    line = f"{each.node.title} ({each.node.id})"
    if each.by:
        line += f" by {', '.join(node.title for node in each.by)}"
    if each.linked_from:
        line += f"; still linked from {', '.join(node.title for node in each.linked_from)}"
    return line


def _kb_curation(record: Any) -> str:
    if record.stamped:
        return f"Marked {count_noun(record.stamped, 'node')} as looked through."
    report = record.report
    lines: list[str] = []

    def tell(title: str, found: Sequence[Any], line: Callable[[Any], str]) -> None:
        if found:
            lines.append(f"{title} ({len(found)})")
            lines.extend(f"  {line(each)}" for each in found[:MAX_KB_ITEMS])
            if len(found) > MAX_KB_ITEMS:
                lines.append(f"  … and {len(found) - MAX_KB_ITEMS:,} more; --json shows them all")

    pointer = "{0.title} ({0.id})".format
    tell(
        "Duplicates",
        report.duplicates,
        lambda each: f"{pointer(each.one)} / {pointer(each.other)}: {each.why}",
    )
    tell("Contested", report.contested, pointer)
    tell("Superseded", report.superseded, _kb_superseded)
    tell("Orphans", report.orphans, pointer)
    tell("Over-broad", report.broad, pointer)
    tell("Untouched for long", report.untouched, lambda each: f"{pointer(each)} since {each.updated}")
    tell("Raw captures without a node", report.raw_unused, str)
    tell("Large raw files", report.raw_large, str)
    tell("Next to look through", report.batch, lambda each: f"{pointer(each)} {each.last_curated or 'never'}")
    lines.append("Curation is due." if record.due else "Curation is not due yet.")
    return "\n".join(lines)


def _kb_push(record: Any) -> str:
    return {
        "pushed": "Pushed.",
        "nothing": f"Nothing to push{f': {record.problem}' if record.problem else ''}.",
        "rejected": f"Not pushed: {record.problem}. Nothing is lost; `ai-kb doctor` says what to do.",
        "unreachable": f"The remote was not reached: {record.problem}."
        f" Not pushed: {count_noun(record.ahead, 'commit')}.",
    }[record.outcome]


def _kb_capture(record: Any) -> str:
    rest = " The excerpt was cut at 2,000 words or 16 KB." if record.cut else ""
    also = f" and {record.file}" if record.file else ""
    head = f"Captured {record.path}{also}, commit {record.commit[:10]}.{rest}"
    return f"{head}\nA node names it with --source {record.path}"


def _kb_sync(record: Any) -> str:
    if record.state in ("no emacs", "no org-roam"):
        return str(record.problem)
    if record.state == "failed":
        return f"Emacs could not build {record.database}: {record.problem}"
    if record.problem:
        return f"{record.database} is up to date now, but for a node: {record.problem}"
    return f"{record.database} is {'up to date' if record.state == 'fresh' else 'up to date now'}."


def _kb_map(record: Any) -> str:
    return str(record.dot)


def _kb_emacs_file(record: Any) -> str:
    return str(record.path)


def _kb_timer(record: Any) -> str:
    lines = [f"Wrote {path}" for path in record.written] + [
        f"{path} is as it should be" for path in record.unchanged
    ]
    if record.enabled:
        lines.append("The knowledge base is pushed every 15 minutes.")
    if record.problem:
        lines.append(f"! {record.problem}")
    if record.to_run:
        how = "Put this line into your crontab (`crontab -e`):" if record.kind == "cron" else "Then run:"
        lines += [how, *[f"  {each}" for each in record.to_run]]
    return "\n".join(lines)


def _kb_change(record: Any) -> str:
    verb = "Done" if record.done else "To be done"
    tail = f", commit {record.commit[:10]}" if record.done else ""
    lines = [f"{verb}: {record.act}{tail}", *[f"  {path}" for path in record.files]]
    if record.pointers:
        lines += ["Notes of projects that name it by its ID:", *[f"  {path}" for path in record.pointers]]
    return "\n".join(lines)


RENDERERS: dict[str, Callable[[Any], str]] = {
    "PageRecord": _page_record,
    "PutRecord": _put_record,
    "ListRecord": _page_list,
    "TagsRecord": _tag_list,
    "TimelineRecord": _timeline_entries,
    "TimelineAddRecord": _timeline_add,
    "RawRecord": _raw_data,
    "SearchRecord": _search_results,
    "Stats": _statistics,
    "ValidateRecord": _validation,
    "Compacted": _compaction,
    "BackedUp": _backup,
    "Setting": _setting,
    "SettingsRecord": _settings,
    "ImportRecord": _import_report,
    "ExportReport": _export_report,
    "ImportsRecord": _import_list,
    "SkillsRecord": _skill_list,
    "SkillsDoctorRecord": _skill_layers,
    "SkillsExtractRecord": _extracted_skills,
    "SkillRecord": _skill_text,
    "Answer": _query_answer,
    "GlanceRecord": _glance_record,
    "NotebookRecord": _notebook_init,
    "NotebookListRecord": _notebook_list,
    "RememberRecord": _remember_record,
    "LogRecord": _log_record,
    "NotebookReadRecord": _notebook_file,
    "NotebookWriteRecord": _notebook_write,
    "RecallResult": _recall_record,
    "SessionPrompt": _prompt_record,
    "MigrateRecord": _notebook_migration,
    "ReadingRecord": _conversation_import,
    "ConversationsRecord": _conversation_list,
    "ConversationRecord": _conversation,
    "ConversationSearchRecord": _conversation_search,
    "ConversationRemoveRecord": _conversation_removal,
    "HistoryRecord": _page_history,
    "RevertRecord": _page_revert,
    "DiffRecord": _page_diff,
    "LinkRecord": _link_added,
    "LinksRecord": _link_list,
    "UnlinkRecord": _link_removed,
    "GraphRecord": _graph_record,
    "PathRecord": _path_record,
    "FactsRecord": _fact_list,
    "AssertRecord": _assert_record,
    "CheckRecord": _contradiction_check,
    "KbQueryRecord": _kb_query,
    "KbShowRecord": _kb_node,
    "KbBacklinksRecord": _kb_backlinks,
    "KbRememberRecord": _kb_remember,
    "KbStatus": _kb_status,
    "KbInitReport": _kb_setup,
    "KbLintRecord": _kb_lint,
    "KbIndexRecord": _kb_index,
    "KbCommitRecord": _kb_commit,
    "KbDoctorRecord": _kb_doctor,
    "KbCurateRecord": _kb_curation,
    "KbPushRecord": _kb_push,
    "KbCaptureRecord": _kb_capture,
    "KbSyncRecord": _kb_sync,
    "KbMapRecord": _kb_map,
    "KbEmacsFileRecord": _kb_emacs_file,
    "KbTimerReport": _kb_timer,
    "KbChangeRecord": _kb_change,
}
"""The formatting function for each record class, by class name."""
