"""Collections and their syncs as text for people."""

from collections.abc import Callable
from typing import Any

from quaid.model.plain_text import count_noun
from quaid.surfaces.cli.text import account, table

MOST_NOTES = 20
DAYS = 30
"""That a page stays in quarantine."""

CONFIRMABLE = ("missing at once", "is empty", "another one", "would hide", "is a link")
"""Words of the reasons that a person can overrule; an unreadable folder is none."""


def _collections(record: Any) -> str:
    rows = [
        (
            each.name,
            each.root or "in the database",
            each.state
            + ("" if each.writable else ", read-only")
            + (", takes new pages" if each.is_write_target else ""),
            count_noun(each.pages, "page"),
            f"waits for you: {each.halted}" if each.halted else each.ignore_problem or _failed(each),
        )
        for each in record.collections
    ]
    return table(rows)


def _failed(each: Any) -> str:
    return f"{count_noun(each.files_not_taken_in, 'file')} not taken in" if each.files_not_taken_in else ""


def _info(record: Any) -> str:
    each = record.collection
    lines = [
        f"{each.name}: {each.root or 'in the database'}",
        f"  {each.state}{'' if each.writable else ', read-only'}, {each.kind},"
        f" {count_noun(each.pages, 'page')} of {count_noun(each.files, 'file')}, last synced {each.last_sync_at or 'never'}",
    ]
    if record.missing:
        lines += [
            "  The folder is not there. Bring it back, and `quaid collection sync` goes on; or let go of it:",
            f"  `quaid collection remove {each.name} --keep-pages` keeps the pages in the memory, and"
            f" `quaid collection restore {each.name} FOLDER`",
            "  writes them as files into a new folder.",
        ]
    if each.halted:
        may_confirm = any(word in each.halted for word in CONFIRMABLE)
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


def _add(record: Any) -> str:
    each = record.collection
    lines = [
        f"Attached {each.name}: {each.root}{'' if each.writable else ' (read-only)'}",
        *_sync(record.sync),
    ]
    if record.links or record.facts:
        lines.append(f"  links brought back: {record.links:,}, facts brought back: {record.facts:,}")
    lines += [f"  .quaid/links-and-facts.json: {each}" for each in record.problems]
    if record.sync.new:
        lines.append("Next: quaid search WORDS, quaid embed to find by meaning, quaid watch to stay in step")
    return "\n".join(lines)


def _syncs(record: Any) -> str:
    if not record.syncs:
        return "No folder is attached. `quaid collection add NAME FOLDER` attaches one."
    return "\n".join(line for each in record.syncs for line in _sync(each))


def _rebuilt(record: Any) -> str:
    """What was made again, folder by folder."""
    lines = [f"The index of {count_noun(record.pages, 'page')} is made again."]
    lines += [line for each in record.syncs for line in _sync(each)]
    if record.vectors:
        lines.append(f"{count_noun(record.vectors, 'vector')} made")
    if record.problem:
        lines.append(f"Vectors that are missing could not be made: {record.problem}")
    return "\n".join(lines)


def _sync(sync: Any) -> list[str]:
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
        lines += [f"  {line}" for line in account(sync)]
    left = {reason: number for reason, number in sync.left_out.items() if number}
    if left:
        lines.append(
            "  left out: " + ", ".join(f"{reason} {number:,}" for reason, number in sorted(left.items()))
        )
    if away := sync.removed + sync.hidden:
        lines.append(f"  {in_quarantine(away)}")
        lines.append(f"  quaid collection quarantine list {sync.collection} shows what is there")
    if sync.discarded:
        lines.append(
            f"  {count_noun(sync.discarded, 'page')} left the quarantine for good, 30 days after the file was gone"
        )
    shown = max(MOST_NOTES, sync.failed)  # files that failed come first, and are all named
    lines += [f"  {note.path}: {note.note}" for note in sync.notes[:shown]]
    if len(sync.notes) > shown:
        lines.append(f"  and {count_noun(len(sync.notes) - shown, 'more note')}; --json has them all")
    if sync.halted:
        pages = f" {count_noun(sync.waiting, 'page stays', 'pages stay')}." if sync.waiting else ""
        lines.append(f"  Nothing was removed: {sync.halted}.{pages}")
        if sync.waiting and any(word in sync.halted for word in CONFIRMABLE):
            lines.append(
                f"  If {'that is meant' if 'would hide' in sync.halted else 'the files are gone for good'}:"
                f" quaid collection sync {sync.collection} --confirm-deletes"
            )
    return lines


def in_quarantine(pages: int) -> str:
    """Say what happened to pages whose files are gone, or left out from now on."""
    went = f"{count_noun(pages, 'page')} went into quarantine"
    return f"{went}: hidden, and kept for {DAYS} days in case the file comes back"


def _removed(record: Any) -> str:
    going = count_noun(record.removed, "page")
    waiting = (
        f"{count_noun(record.kept, 'page')} with knowledge that no file has"
        f" {'waits' if record.kept == 1 else 'wait'} in quarantine for {DAYS} days"
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


RENDERERS: dict[str, Callable[[Any], str]] = {
    "CollectionsRecord": _collections,
    "CollectionInfoRecord": _info,
    "CollectionAddRecord": _add,
    "SyncsRecord": _syncs,
    "RebuiltRecord": _rebuilt,
    "CollectionRemoveRecord": _removed,
}
