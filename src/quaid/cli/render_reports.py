"""Format report and maintenance records as text: briefing, gaps, merges, folders, models, clients."""

from collections.abc import Callable, Sequence
from typing import Any

from quaid.cli.output import format_page_counts, format_size, format_table, lost_front, shorten
from quaid.model.plain_text import count_noun
from quaid.operations.overview import BRIEFING_PARTS


def _briefing_record(record: Any) -> str:
    head = (
        f"As of {record.as_of}; new is what came since {record.since}, due what is due by {record.due_until}."
    )
    lines, empty = [head], []
    for name, title in BRIEFING_PARTS.items():
        part = getattr(record, name)
        if part.items:
            lines += [
                "",
                f"{title} ({_briefing_count(part)})",
                *(_briefing_item(each) for each in part.items),
            ]
        else:
            empty.append(title.lower())
    if empty:
        lines += ["", f"Nothing under: {', '.join(empty)}."]
    lines += [f"({note})" for note in record.notes]
    if record.next_steps:
        lines += ["", "Next", *(f"  {step}" for step in record.next_steps)]
    return "\n".join(lines)


def _briefing_count(part: Any) -> str:
    shown = len(part.items)
    return f"{part.total:,}" if shown == part.total else f"{shown:,} of {part.total:,}"


def _briefing_item(item: Any) -> str:
    name = item.slug if item.id is None else f"{item.slug} [{item.id}]".strip()
    owner = f" ({item.owner})" if item.owner else ""
    text = f": {item.text}" if item.text else ""
    return f"  {item.day or 'no day':10}  {name}  {item.state}{text}{owner}"


def _timeline_days(record: Any) -> str:
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


def _wing_list(record: Any) -> str:
    if not record.wings:
        return "No pages yet."
    lines = []
    for title, counted in (("Wings", record.wings), ("Types", record.types)):
        width = max(len(each.name) for each in counted)
        lines += [title, *(f"  {each.name:<{width}}  {each.pages:>7,}" for each in counted)]
    return "\n".join([*lines, "Collections", *(f"  {name}" for name in record.collections)])


def _wing_graph(record: Any) -> str:
    lines = [f"{each.slug}  {each.title} ({each.type})" for each in record.nodes]
    lines += [f"  {each.from_slug} -[{each.relationship}]-> {each.to_slug}" for each in record.links]
    shown = len(record.nodes)
    pages = (f"{shown:,} of " if shown < record.pages else "") + count_noun(record.pages, "page")
    return "\n".join(
        [*lines, f"{pages} in {record.wing}, {count_noun(len(record.links), 'link')} between them"]
    )


def _contradiction_list(record: Any) -> str:
    when = f"as of the check on {record.checked_at[:10]}" if record.checked_at else "nothing was checked yet"
    lines = []
    for each in record.contradictions:
        lines.append(f"{each.id}. {each.type}: {each.description}")
        for quote in each.quotes:
            place = f"{quote.part} {quote.line}" if quote.line else quote.part
            lines.append(f"    {quote.slug}, {place}: {quote.quote}")
    return "\n".join([*lines, f"{record.total:,} open, {when}; `quaid check` looks again"])


def _title_list(record: Any) -> str:
    lines = [f"{each.name}  {each.title} ({each.slug})" for each in record.titles]
    return "\n".join(lines) or "No page is called so."


HASH_SHOWN = 12


def _gap_list(record: Any) -> str:
    if not record.gaps:
        return "No open gaps."
    lines = [line for gap in record.gaps for line in _gap_lines(gap)]
    shown = len(record.gaps)
    if shown < record.total:
        lines.append(f"{shown:,} of {record.total:,} gaps; more: --limit {record.total}")
    else:
        lines.append(count_noun(shown, "gap"))
    if any(gap.approved_by is None and gap.resolved_at is None for gap in record.gaps):
        lines.append("Words are kept only after an approval: quaid gaps approve ID --help")
    return "\n".join(lines)


def _gap_record(record: Any) -> str:
    gap = record.gap
    if record.done == "logged":
        return f"Gap {gap.id} noted; only the hash of the question is kept"
    if record.done == "counted":
        return (
            f"Gap {gap.id} was known: asked {count_noun(gap.times_seen, 'time')} since {gap.detected_at[:10]}"
        )
    if record.done == "approved":
        return f"Gap {gap.id} approved by {gap.approved_by} ({gap.sensitivity}): {_gap_question(gap)}"
    return f"Gap {gap.id} resolved{f' by {gap.resolved_by_slug}' if gap.resolved_by_slug else ''}"


def _gap_lines(gap: Any) -> list[str]:
    times = "once" if gap.times_seen == 1 else f"{gap.times_seen} times"
    since = f"{times}, last on {gap.last_seen_at[:10]}"
    lines = [f"{gap.id:>4}  {_gap_question(gap)}  ({gap.sensitivity}, asked {since})"]
    if gap.redacted_query and gap.query_text:
        lines.append(f"      may be asked outside as: {gap.redacted_query}")
    if gap.context:
        lines.append(f"      {gap.context}")
    if gap.resolved_at:
        by = f" by {gap.resolved_by_slug}" if gap.resolved_by_slug else ""
        lines.append(f"      resolved on {gap.resolved_at[:10]}{by}")
    return lines


def _gap_question(gap: Any) -> str:
    words = gap.query_text or gap.redacted_query
    return " ".join(words.split()) if words else f"#{gap.query_hash[:HASH_SHOWN]}"


def _gaps_cleared(record: Any) -> str:
    told = (
        "No open gap is without its words"
        if not record.closed
        else f"Closed {count_noun(record.closed, 'gap')} whose words are not stored"
    )
    return f"{told}; {record.open:,} with their words stay open" if record.open else told


INGEST_NEXT_STEP = (
    "Next: the ingest skill (`quaid skills show ingest`) says how an agent brings its facts into other pages."
)


def _ingest_record(record: Any) -> str:
    if not record.written:
        known = [record.source_page, *(each for each in record.known_pages if each != record.source_page)]
        pages = f" ({', '.join(filter(None, known))})" if any(known) else ""
        return (
            f"{record.source_ref} was taken in on {record.known_since[:10]}{pages}; nothing was written."
            " --force does it again"
        )
    lines = [_ingested_page(each) for each in record.pages]
    lines += [f"Left alone, as the same source changed it before: {each}" for each in record.known_pages]
    kept = f"{record.source_type} {record.source_ref} as {record.source_page}"
    lines.append(f"Source kept: {kept} (import {record.import_id})")
    lines += [f"Gap {each} is answered" for each in record.gaps_resolved]
    return "\n".join(lines)


def _ingested_file(record: Any) -> str:
    return f"{_ingest_record(record)}\n{INGEST_NEXT_STEP}" if record.written else _ingest_record(record)


def _ingested_page(outcome: Any) -> str:
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


def _adopted_file(record: Any) -> str:
    made = [f"Made {each}" for each in record.pages]
    return "\n".join(made or ["Every source that was taken in has its page"])


MAX_MERGED_TEXT = 2_000


def _duplicate_pairs(record: Any) -> str:
    if not record.pairs:
        return f"No two of {count_noun(record.pages, 'page')} say the same."
    lines = []
    for each in record.pairs:
        alike = "    " if each.likeness is None else f"{each.likeness:.2f}"
        lines.append(f"{alike}  {each.slug}  {each.title}")
        lines.append(f"      {each.other}  {each.other_title}")
        lines.append(f"      same {', '.join(each.why)}; to make them one: {each.command}")
    shown = len(record.pairs)
    more = f"; more: --limit {record.total}" if shown < record.total else ""
    return "\n".join(
        [
            *lines,
            f"{shown:,} of {count_noun(record.total, 'pair')} among {count_noun(record.pages, 'page')}{more}",
        ]
    )


def _merge_record(record: Any) -> str:
    moved = record.moved
    head = (
        f"Merged {record.gone} into {record.kept}"
        if record.done
        else f"{record.gone} goes into {record.kept}"
    )
    rows = [
        (record.entries, "timeline entry", "timeline entries", ""),
        (len(record.tags), "tag", "tags", ": " + ", ".join(record.tags)),
        (len(record.aliases), "alias", "aliases", ": " + ", ".join(record.aliases)),
        (moved.links, "added link", "added links", _joined_links_note(moved)),
        (moved.links_in_texts, "link in a text of another page", "links in texts of other pages", ""),
        (moved.links_between, "link between the two", "links between the two", ", which goes"),
        (moved.assertions, "fact", "facts", _shared_facts_note(moved)),
        (moved.raw_data, "answer of a source", "answers of sources", _renamed_data_note(moved)),
        (moved.imports, "imported file", "imported files", ", as history"),
        (moved.contradictions, "contradiction", "contradictions", ""),
        (moved.gaps, "gap that it answered", "gaps that it answered", ""),
    ]
    lines = [
        f"  {number:>5,}  {one if number == 1 else many}{more}" for number, one, many, more in rows if number
    ]
    if record.truth and not record.done:
        lines += [
            "  text that is added:",
            *(f"    {line}".rstrip() for line in shorten(record.truth, MAX_MERGED_TEXT).split("\n")),
        ]
    elif not record.truth:
        lines.append("  its text adds nothing")
    state = f"version {record.version}" if record.done else "nothing is changed yet"
    lines.append(f"{record.gone} leads to {record.kept}; {state}")
    return "\n".join([f"{head}:", *lines])


def _joined_links_note(moved: Any) -> str:
    if not moved.links_joined:
        return ""
    return f", {moved.links_joined:,} joined with one of the same relationship whose time overlaps"


def _shared_facts_note(moved: Any) -> str:
    return f", {moved.assertions_same:,} of which both pages had" if moved.assertions_same else ""


def _renamed_data_note(moved: Any) -> str:
    return f", renamed: {', '.join(moved.raw_data_renamed)}" if moved.raw_data_renamed else ""


def _rename_record(record: Any) -> str:
    left = f"; {record.old_slug} leads to it" if record.redirected else f"; {record.old_slug} is free"
    return f"{record.old_slug} is {record.slug} now: {record.title} ({record.wing}), version {record.version}{left}"


def _distinct_record(record: Any) -> str:
    if not record.changed:
        return f"{record.slug} and {record.other} were told apart already"
    return f"{record.slug} and {record.other} are not the same; `quaid dupes` lists them no more"


MAX_FORGOTTEN_NAMES = 8
MAX_FORGOTTEN_TEXT = 60


def _forget_record(record: Any) -> str:
    if not record.slug:
        return record.problem or "The file was written anew without what was deleted, and its log is empty."
    if not record.done:
        return "\n".join(
            [
                f"{record.slug} ({record.title}) would go:",
                *_forget_layers(record),
                *_backups_and_files(record),
            ]
        )
    head = f"Forgot {record.slug}." if record.clean else f"Forgot {record.slug}, but not everything is gone."
    lines = [head, *_forget_layers(record), "Searched for what is left:"]
    lines += [f"  {each.where}: {_forget_matches(each.found)}" for each in record.proof]
    for each in record.mentions[:MAX_FORGOTTEN_NAMES]:
        lines.append(
            f"  still said by {_shortened_list(each.said_by)}: {shorten(each.text, MAX_FORGOTTEN_TEXT)}"
        )
    if len(record.mentions) > MAX_FORGOTTEN_NAMES:
        lines.append(f"  and {len(record.mentions) - MAX_FORGOTTEN_NAMES:,} more; --json shows them all")
    if record.problem:
        lines.append(f"The page is gone from the memory, but bytes may be left in its file: {record.problem}")
    return "\n".join([*lines, *_backups_and_files(record)])


def _forget_layers(record: Any) -> list[str]:
    shown = [each for each in record.layers if each.before or each.after]
    if not record.done:
        return [f"  {each.before:>7,}  {each.name}" for each in shown]
    rows = [f"  {each.before:>7,}  {each.name}: {count_noun(each.after, 'row')} now" for each in shown]
    others = [each.name for each in record.layers if not each.before and not each.after]
    return [*rows, f"           0 rows before and now: {', '.join(others)}"] if others else rows


def _forget_matches(found: tuple[str, ...]) -> str:
    return (
        f"{len(found):,} found: {_shortened_list([shorten(each, MAX_FORGOTTEN_TEXT) for each in found])}"
        if found
        else "none found"
    )


def _shortened_list(names: Any) -> str:
    more = f" and {len(names) - MAX_FORGOTTEN_NAMES:,} more" if len(names) > MAX_FORGOTTEN_NAMES else ""
    return ", ".join(names[:MAX_FORGOTTEN_NAMES]) + more


def _backups_and_files(record: Any) -> list[str]:
    lines = []
    for each in record.backups:
        if each.deleted:
            lines.append(f"Deleted the backup {each.path} ({format_size(each.size)}).")
        elif each.holds_it:
            how = (
                "--backups deletes it"
                if each.made_by != "somebody" and not record.done
                else "delete it yourself"
            )
            what = "another memory" if each.made_by == "somebody" else "a copy of this memory"
            lines.append(f"{each.path} ({format_size(each.size)}) is {what} that holds the page; {how}.")
    if record.files:
        lines.append(
            f"It was imported from {_shortened_list(record.files)}. The next import of that folder brings it back."
        )
    return lines


MAX_SYNC_NOTES = 20
QUARANTINE_DAYS = 30
"""Days that a page stays in quarantine."""

CONFIRMABLE_PROBLEMS = ("missing at once", "is empty", "another one", "would hide", "is a link")
"""Parts of halt reasons that the user can override with --confirm-deletes. An unreadable folder cannot be
overridden.
"""


def _collection_list(record: Any) -> str:
    rows = [
        (
            each.name,
            each.root or "in the database",
            each.state
            + ("" if each.writable else ", read-only")
            + (", takes new pages" if each.is_write_target else ""),
            count_noun(each.pages, "page"),
            f"waits for you: {each.halted}" if each.halted else each.ignore_problem or _failed_files(each),
        )
        for each in record.collections
    ]
    return format_table(rows)


def _failed_files(each: Any) -> str:
    return f"{count_noun(each.files_not_taken_in, 'file')} not taken in" if each.files_not_taken_in else ""


def _collection_info(record: Any) -> str:
    each = record.collection
    lines = [
        f"{each.name}: {each.root or 'in the database'}",
        f"  {each.state}{'' if each.writable else ', read-only'}, {each.kind},"
        f" {count_noun(each.pages, 'page')} of {count_noun(each.files, 'file')},"
        f" last synced {each.last_sync_at or 'never'}",
    ]
    if record.missing:
        lines += [
            "  The folder is not there. Bring it back, and `quaid collection sync` goes on; or let go of it:",
            f"  `quaid collection remove {each.name} --keep-pages` keeps the pages in the memory, and"
            f" `quaid collection restore {each.name} FOLDER`",
            "  writes them as files into a new folder.",
        ]
    if each.halted:
        may_confirm = any(word in each.halted for word in CONFIRMABLE_PROBLEMS)
        step = f"`quaid collection sync {each.name}{' --confirm-deletes' if may_confirm else ''}`"
        lines.append(f"  Waits for you: {each.halted}. {step} goes on.")
    if each.ignore_problem:
        lines.append(f"  .quaidignore is not in force: {each.ignore_problem}")
    patterns = [line for line in record.ignore_patterns.splitlines() if line.strip() and line[0] != "#"]
    if patterns:
        lines.append(f"  Ignored: {', '.join(patterns[:10])}")
    if each.quarantined:
        only_here = (
            f", {len(record.waiting)} of them with knowledge that no file has" if record.waiting else ""
        )
        lines.append(f"  In quarantine: {count_noun(each.quarantined, 'page')}{only_here}")
    lines += [f"  {trouble.path}: {trouble.problem}" for trouble in record.problems]
    return "\n".join(lines)


def _collection_added(record: Any) -> str:
    each = record.collection
    lines = [
        f"Attached {each.name}: {each.root}{'' if each.writable else ' (read-only)'}",
        *_sync_lines(record.sync),
    ]
    if record.links or record.facts:
        lines.append(f"  links brought back: {record.links:,}, facts brought back: {record.facts:,}")
    lines += [f"  .quaid/links-and-facts.json: {each}" for each in record.problems]
    if record.sync.new:
        lines.append("Next: quaid search WORDS, quaid embed to find by meaning, quaid watch to stay in step")
    return "\n".join(lines)


def _sync_list(record: Any) -> str:
    if not record.syncs:
        return "No folder is attached. `quaid collection add NAME FOLDER` attaches one."
    return "\n".join(line for each in record.syncs for line in _sync_lines(each))


def _rebuild_record(record: Any) -> str:
    """Format the result of a rebuild, folder by folder."""
    lines = [f"The index of {count_noun(record.pages, 'page')} is made again."]
    lines += [line for each in record.syncs for line in _sync_lines(each)]
    if record.vectors:
        lines.append(f"{count_noun(record.vectors, 'vector')} made")
    if record.problem:
        lines.append(f"Vectors that are missing could not be made: {record.problem}")
    return "\n".join(lines)


def _sync_lines(sync: Any) -> list[str]:
    told = [
        f"{number:,} {name}"
        for name, number in (
            ("new", sync.new),
            ("changed", sync.changed),
            ("moved", sync.moved),
            ("gone", sync.removed),
            ("ignored from now on", sync.hidden),
            ("failed", sync.failed),
            ("unchanged", sync.unchanged),
        )
        if number
    ]
    lines = [f"{sync.collection}: {count_noun(sync.files, 'file')}: {', '.join(told) or 'nothing to do'}"]
    if sync.types or sync.raw_data:
        lines += [f"  {line}" for line in format_page_counts(sync)]
    left = {reason: number for reason, number in sync.left_out.items() if number}
    if left:
        lines.append(
            "  left out: " + ", ".join(f"{reason} {number:,}" for reason, number in sorted(left.items()))
        )
    if away := sync.removed + sync.hidden:
        lines.append(f"  {quarantine_note(away)}")
        lines.append(f"  quaid collection quarantine list {sync.collection} shows what is there")
    if sync.discarded:
        lines.append(
            f"  {count_noun(sync.discarded, 'page')} left the quarantine for good, 30 days after the file was gone"
        )
    shown = max(MAX_SYNC_NOTES, sync.failed)  # failed files come first, and all of them are listed
    lines += [f"  {note.path}: {note.note}" for note in sync.notes[:shown]]
    if len(sync.notes) > shown:
        lines.append(f"  and {count_noun(len(sync.notes) - shown, 'more note')}; --json has them all")
    if sync.halted:
        pages = f" {count_noun(sync.waiting, 'page stays', 'pages stay')}." if sync.waiting else ""
        lines.append(f"  Nothing was removed: {sync.halted}.{pages}")
        if sync.waiting and any(word in sync.halted for word in CONFIRMABLE_PROBLEMS):
            lines.append(
                f"  If {'that is meant' if 'would hide' in sync.halted else 'the files are gone for good'}:"
                f" quaid collection sync {sync.collection} --confirm-deletes"
            )
    return lines


def quarantine_note(pages: int) -> str:
    """Return a note on pages whose files are gone or now ignored."""
    went = f"{count_noun(pages, 'page')} went into quarantine"
    return f"{went}: hidden, and kept for {QUARANTINE_DAYS} days in case the file comes back"


def _collection_removed(record: Any) -> str:
    going = count_noun(record.removed, "page")
    waiting = (
        f"{count_noun(record.kept, 'page')} with knowledge that no file has"
        f" {'waits' if record.kept == 1 else 'wait'} in quarantine for {QUARANTINE_DAYS} days"
    )
    if not record.done:
        lines = [f"Letting go of {record.name} ({record.root}). The folder is not touched."]
        if record.removed:
            lines.append(f"  {going} would leave the memory, history included; the files stay as they are")
        lines += [f"  {waiting}"] if record.kept else []
        if record.removed or record.kept:
            lines.append("  --keep-pages leaves all pages in the memory")
        return "\n".join(lines)
    what = f"{going} left the memory" if record.removed or record.kept else "its pages stay as they are"
    lines = [f"Detached {record.name}: {what}; the folder was not touched"]
    if record.kept:
        lines.append(f"{waiting}: quaid collection quarantine list")
    return "\n".join(lines)


MAX_PATHS = 20


def _restore_record(record: Any) -> str:
    lines = [
        f"Wrote {count_noun(record.files, 'file')} of {record.name} to {record.root}, {format_size(record.bytes)}"
    ]
    if record.without_bytes:
        lines.append(f"No bytes are kept of {', '.join(record.without_bytes[:MAX_PATHS])}")
    if record.left:
        lines.append(f"{record.left} is as it was; it is not synced any more")
    return "\n".join(lines)


def _audit_record(record: Any) -> str:
    head = f"{record.name}: {count_noun(record.files, 'file')}, {count_noun(record.pages, 'page')}"
    if not record.differences:
        return f"{head}: they agree, and the kept bytes with them"
    rows = [(each.kind, each.where, each.problem) for each in record.differences]
    return f"{format_table(rows)}\n{head}, {count_noun(len(rows), 'difference')}"


def _id_report(record: Any) -> str:
    verb = "would get" if record.is_rehearsal else "got"
    lines = [
        f"{record.collection}: {count_noun(record.written, 'file')} {verb} an id, {record.had:,} had theirs"
    ]
    if record.left:
        lines.append(f"Left as they are: {count_noun(len(record.left), 'file')}")
        lines += [f"  {each.path}: {each.note}" for each in record.left]
    return "\n".join(lines)


def _ignore_patterns(record: Any) -> str:
    lines = list(record.patterns) or [f"{record.name} has no patterns of its own"]
    if record.problem:
        lines.append(f".quaidignore is not in force, but the last good one: {record.problem}")
    return "\n".join([*lines, f"Always left out: {' '.join(record.built_in)}"])


def _ignore_changes(record: Any) -> str:
    if not record.changed:
        return f"Nothing to change: {', '.join(record.patterns) or 'no patterns'}"
    lines = [f"{record.name} leaves out: {', '.join(record.patterns) or 'only what is always left out'}"]
    lines += _path_lines("Hidden now, their pages in quarantine", record.hidden)
    lines += _path_lines("Seen now", record.shown)
    if not record.hidden and not record.shown:
        lines.append("No file became hidden or visible")
    if record.sync.halted:
        lines.append(f"Nothing else was removed: {record.sync.halted}")
    return "\n".join(lines)


def _path_lines(what: str, paths: Sequence[str]) -> list[str]:
    if not paths:
        return []
    more = f"\n  and {len(paths) - MAX_PATHS:,} more" if len(paths) > MAX_PATHS else ""
    shown = "\n".join(f"  {each}" for each in paths[:MAX_PATHS])
    return [f"{what}: {count_noun(len(paths), 'file')}", shown + more]


def _unsaved_data(each: Any) -> str:
    parts = [
        count_noun(number, noun)
        for number, noun in ((each.links, "link"), (each.assertions, "fact"), (each.raw_data, "raw answer"))
        if number
    ]
    told = f"only here: {', '.join(parts)}" if parts else "all of it was in its file"
    return f"{told}; exported to {each.exported_to}" if each.exported_to else told


def _quarantine_list(record: Any) -> str:
    if not record.pages:
        return "No page is in quarantine."
    rows = [
        (f"{each.collection}::{each.slug}", f"{each.since[:10]} to {each.until}", _unsaved_data(each))
        for each in record.pages
    ]
    return f"{format_table(rows)}\n{count_noun(len(rows), 'page')}"


def _quarantine_export(record: Any) -> str:
    return f"Wrote {count_noun(len(record.pages), 'page')} to {record.folder}: {count_noun(record.files, 'file')}"


def _quarantine_discard(record: Any) -> str:
    if not record.pages:
        lines = ["No page had to go."]
    else:
        verb = "Discarded" if record.done else "These would go for good:"
        lines = [f"{verb} {count_noun(len(record.pages), 'page')}"] if record.done else [verb]
        lines += [f"  {each.collection}::{each.slug}  {_unsaved_data(each)}" for each in record.pages]
    if record.kept:
        lines.append(f"Kept, for they hold what no file has: {', '.join(record.kept)}")
    return "\n".join(lines)


def _quarantine_restore(record: Any) -> str:
    return f"{record.path} is back; {record.collection}::{record.slug} is the same page, version {record.version}"


MAX_WATCH_NOTES = 20


def _watch_began(event: Any) -> str:
    return f"{event.collection}: watching {event.root}"


def _watch_synced(event: Any) -> str:
    sync = event.sync
    told = [
        f"{number:,} {what}"
        for what, number in (
            ("new", sync.new),
            ("changed", sync.changed),
            ("moved", sync.moved),
            ("gone", sync.removed),
            ("failed", sync.failed),
            ("new in sidecars", sync.raw_data),
        )
        if number
    ]
    said = ", ".join(told) or "nothing changed"
    if event.whole and sync.files:
        said += f" ({count_noun(sync.files, 'file')})"
    if sync.halted:
        said = f"{said + '; ' if told else ''}nothing was removed: {sync.halted}"
    if sync.halted and sync.files:  # the folder exists, so the user has to decide whether its files are gone
        said += f". If they are gone for good: quaid collection sync {sync.collection} --confirm-deletes"
    lines = [
        f"{sync.collection}: {said}",
        *(f"  {each.path}: {each.note}" for each in event.notes[:MAX_WATCH_NOTES]),
    ]
    if away := sync.removed + sync.hidden:
        lines.insert(1, f"  {quarantine_note(away)}")
    if len(event.notes) > MAX_WATCH_NOTES:
        more = count_noun(len(event.notes) - MAX_WATCH_NOTES, "more note")
        lines.append(f"  and {more}: quaid collection info {sync.collection}")
    return "\n".join(lines)


def _watch_problem(event: Any) -> str:
    return f"{event.collection + ': ' if event.collection else ''}{event.problem}; {event.remedy}"


def _watch_standby(event: Any) -> str:
    by_process: dict[int, list[str]] = {}
    for owner in event.owners:
        by_process.setdefault(owner.pid, []).append(owner.collection)
    told = "; ".join(f"process {pid} watches {', '.join(names)}" for pid, names in by_process.items())
    return f"{told}; this one stands by"


def _model_list(record: Any) -> str:
    rows = [
        (
            "*" if each.active else " ",
            each.name,
            str(each.dimensions or "?"),
            "ready" if each.ready else each.problem,
        )
        for each in record.models
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join([*map(str.ljust, row[:3], widths), row[3]]) for row in rows]
    return "\n".join([*lines, "* is the active one"])


def _model_added(record: Any) -> str:
    model = record.model
    return (
        f"Added {model.name}: {count_noun(model.dimensions, 'dimension')}, up to {model.max_tokens:,} tokens\n"
        f"`quaid embed --model {model.name}` makes it the active one"
    )


def _model_removed(record: Any) -> str:
    return f"Removed {record.name}"


def _model_check(record: Any) -> str:
    if not record.healthy:
        return f"{record.name}: {record.problem}"
    return f"{record.name} works: {record.dimensions} dimensions, {record.ms_per_text:g} ms for a text of 40 words"


def _embed_record(record: Any) -> str:
    chunks = count_noun(record.total, "chunk")
    lines = [f"{record.model}: {record.embedded:,} of {chunks} embedded, {record.cached:,} had a vector"]
    if record.turns or record.turns_left:
        left = f", {record.turns_left:,} not yet" if record.turns_left else ""
        lines.append(f"{count_noun(record.turns, 'turn')} of conversations embedded{left}")
    if record.failed:
        named = ", ".join(record.failures[:10]) + (" …" if len(record.failures) > 10 else "")
        lines.append(f"{record.failed:,} got none ({named}); `quaid model check {record.model}` says more")
    lines.append(
        f"{'It is' if record.active else 'Not yet'} the active model ({record.cpu_seconds:.1f} s CPU)"
    )
    return "\n".join(lines)


def _memory_status(record: Any) -> str:

    model = record.model
    uncut = f" ({record.pages_uncut:,} not cut into chunks yet)" if record.pages_uncut else ""
    read_only = "" if record.writable else ", can only be read"
    rows = [
        ("memory", f"{record.path}{read_only}"),
        (
            "size",
            f"{format_size(record.size)} and {format_size(record.wal_size)} of log, schema {record.schema_version}",
        ),
        ("pages", f"{record.pages:,}{uncut}"),
        ("chunks", f"{record.chunks:,}"),
        ("vectors", f"{model.vectors:,} of {record.chunks:,}"),
        *(
            [("conversations", _conversation_vectors(record.conversations))]
            if record.conversations.turns
            else []
        ),
        ("model", f"{model.name}, {'ready' if model.ready else f'not ready: {model.problem}'}"),
    ]
    if model.remedy:
        rows.append(("", model.remedy))
    rows += [("other model", f"{each.name}, {count_noun(each.vectors, 'vector')}") for each in record.others]
    rows.append(("background", _background_state(record)))
    if record.resident:
        rows.append(("server", "runs here; commands are handed to it"))
    if record.trouble:
        rows.append(("last failure", f"{record.trouble.at}: {record.trouble.problem}"))
    rows += [("next", step) for step in record.next_steps]
    return format_table(rows)


def _conversation_vectors(said: Any) -> str:
    turns = count_noun(said.turns, "turn")
    if said.embedding == "off":
        return f"{turns}, found by words: embed_conversations is off"
    which = f" of the last {count_noun(said.recent_days, 'day')}" if said.embedding == "recent" else ""
    if said.missing:
        return f"{turns}, {said.missing:,}{which} not embedded yet"
    return f"{turns}, no vector missing{which and f' among those{which}'}"  # very short turns get no vector


def _background_state(record: Any) -> str:
    if record.filling:
        model, process, since = record.filling
        return f"process {process} makes vectors of {model} since {since}"
    if not record.writable:
        return "nothing: the memory can only be read"
    if record.background_embedding:
        return "on: `quaid serve` makes missing vectors, a question the last few"
    return "off: only `quaid embed` makes vectors"


def _connect_record(record: Any) -> str:
    if record.clients:
        return _client_list(record)
    if all(each.outcome == "as it should be" for each in record.files):
        state = "is connected already" if record.connected else "was not connected"
        return f"{record.title} {state}; nothing to do"
    if record.dry_run:
        told = [each.difference for each in record.files if each.difference]
        return "\n".join([*told, "Nothing was changed"])
    lines = []
    for each in record.files:
        backup = f" (before: {each.backup})" if each.backup else ""
        lines.append(f"{each.outcome.capitalize()}: {each.path}{backup}")
    lines.append(f"{record.title} is {'connected' if record.connected else 'disconnected'}")
    return "\n".join([*lines, record.next_step] if record.next_step else lines)


def _client_list(record: Any) -> str:
    rows = []
    for each in record.clients:
        detail = f" ({each.detail})" if each.detail else ""
        rows.append((each.client, f"{each.state}{detail}", each.path))
    return "\n".join(
        [format_table(rows), "`quaid connect NAME` connects one, `quaid disconnect NAME` takes it out"]
    )


def _client_instructions(record: Any) -> str:
    return str(record.text)


def _embeddings_record(record: Any) -> str:
    state = "on" if record.on else "off"
    if record.on and not record.ready:
        state = f"on, but by words only: {record.problem}"
    rows = [
        ("semantic search", state),
        ("model", f"{record.model} (chosen by: {record.chosen_by})"),
        ("vectors", f"{record.vectors:,} of {record.chunks:,}{', being made' if record.filling else ''}"),
    ]
    if record.next_step:
        rows.append(("next", record.next_step))
    return format_table(rows)


def _token_created(record: Any) -> str:
    return (
        f"{record.token}\nThis is the token {record.name} ({record.scope}). It is not shown again; only its hash is"
        f" kept. `quaid token revoke {record.name}` ends it."
    )


def _token_list(record: Any) -> str:
    if not record.tokens:
        return "No tokens were given away. `quaid token create NAME` makes one."
    return format_table(
        [
            (each.name, each.scope, each.created_at[:10], f"used {_token_last_used(each)}")
            for each in record.tokens
        ]
    )


def _token_last_used(token: Any) -> str:
    return f"on {token.last_used_at[:10]}" if token.last_used_at else "never"


def _token_revoked(record: Any) -> str:
    return f"Revoked {record.name}; whoever still sends it is refused"


def _service_change(record: Any) -> str:
    if record.done and not record.problem:
        return f"The service is {record.act}: {record.path}"
    gone = record.act == "uninstalled"
    head = "is removed, but the system could not be told" if gone else f"could not be {record.act}"
    lines = [f"The service {head} ({record.problem}): {record.path}"]
    ask = "If it still runs, this ends it; so does logging out:" if gone else "Type this, or log in anew:"
    lines += [ask, *(f"  {each}" for each in record.to_run)] if record.to_run else []
    return "\n".join(lines)


def _service_status(record: Any) -> str:
    detail = f" ({record.detail})" if record.detail else ""
    return f"{record.state}{detail}" + (f": {record.path}" if record.path else "")


def _service_logs(record: Any) -> str:
    return "\n".join(record.lines) if record.lines else "Nothing was written yet"


CHECK_MARKS = {"fine": "ok", "missing": "--", "advice": "-", "wrong": "!"}


def _doctor_record(record: Any) -> str:
    lines = [format_table([(CHECK_MARKS[each.state], each.name, each.detail) for each in record.checks]), ""]
    if not record.next_steps:
        return "\n".join([*lines, "All is well, and nothing is left to do."])
    wrong = any(each.state == "wrong" for each in record.checks)
    lines.append(
        "To be done (!), then what would be good (-):" if wrong else "All is well. What would be good:"
    )
    return "\n".join([*lines, *(f"  {each}" for each in record.next_steps)])


def _upgrade_record(record: Any) -> str:
    if record.newest is None:
        return (
            f"This is quaid {record.current}. To upgrade: {record.how}.\n"
            "`quaid upgrade --check --from PLACE` compares versions; no place is asked by itself."
        )
    if record.is_newer:
        return (
            f"quaid {record.newest} is at {record.place}; this is {record.current}. To upgrade: {record.how}."
        )
    return f"This is quaid {record.current}; {record.place} has nothing newer ({record.newest})."


RENDERERS: dict[str, Callable[[Any], str]] = {
    "BriefingRecord": _briefing_record,
    "DaysRecord": _timeline_days,
    "TitlesRecord": _title_list,
    "WingsRecord": _wing_list,
    "WingRecord": _wing_graph,
    "ContradictionsRecord": _contradiction_list,
    "GapsRecord": _gap_list,
    "GapRecord": _gap_record,
    "GapsClearRecord": _gaps_cleared,
    "IngestRecord": _ingest_record,
    "FileIngestRecord": _ingested_file,
    "AdoptRecord": _adopted_file,
    "DupesRecord": _duplicate_pairs,
    "DistinctRecord": _distinct_record,
    "MergeRecord": _merge_record,
    "RenameRecord": _rename_record,
    "ForgetRecord": _forget_record,
    "CollectionsRecord": _collection_list,
    "CollectionInfoRecord": _collection_info,
    "CollectionAddRecord": _collection_added,
    "SyncsRecord": _sync_list,
    "RebuiltRecord": _rebuild_record,
    "CollectionRemoveRecord": _collection_removed,
    "RestoreRecord": _restore_record,
    "AuditRecord": _audit_record,
    "IdsReport": _id_report,
    "IgnoreRecord": _ignore_patterns,
    "IgnoreChangeRecord": _ignore_changes,
    "QuarantineRecord": _quarantine_list,
    "QuarantineExportRecord": _quarantine_export,
    "QuarantineDiscardRecord": _quarantine_discard,
    "QuarantineRestoreRecord": _quarantine_restore,
    "WatchBegan": _watch_began,
    "WatchSynced": _watch_synced,
    "WatchTrouble": _watch_problem,
    "WatchStandby": _watch_standby,
    "ModelsRecord": _model_list,
    "ModelAddRecord": _model_added,
    "ModelRemoveRecord": _model_removed,
    "ModelCheckRecord": _model_check,
    "EmbedRecord": _embed_record,
    "StatusRecord": _memory_status,
    "ConnectRecord": _connect_record,
    "InstructionsRecord": _client_instructions,
    "EmbeddingsRecord": _embeddings_record,
    "TokenRecord": _token_created,
    "TokensRecord": _token_list,
    "TokenRevokeRecord": _token_revoked,
    "DaemonRecord": _service_change,
    "DaemonStatusRecord": _service_status,
    "DaemonLogsRecord": _service_logs,
    "DoctorRecord": _doctor_record,
    "UpgradeRecord": _upgrade_record,
}
"""The formatting function for each record class, by class name."""
