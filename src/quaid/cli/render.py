"""Format the record of an operation as text for people.

Most records have a function here that yields their lines; for a record without such a function, its fields
are printed.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from itertools import groupby
from typing import TYPE_CHECKING, Any

from quaid.formats import markdown
from quaid.model import slug as slugs
from quaid.model.plain_text import count_noun

if TYPE_CHECKING:
    from quaid.folders.export import ExportReport
    from quaid.folders.page_writer import IdsReport
    from quaid.folders.restore import AuditRecord, RestoreRecord
    from quaid.folders.sync import SyncReport
    from quaid.folders.watcher import WatchSynced
    from quaid.kb.health import KbStatus
    from quaid.kb.setup import KbInitReport, KbSyncRecord, KbTimerReport
    from quaid.kb.transaction import ChangeResult
    from quaid.notebook.layout import RecallResult
    from quaid.operations.cleanup import (
        DistinctRecord,
        DupesRecord,
        ExpiredRecord,
        ExpireRecord,
        ForgetRecord,
        MergeRecord,
        RenameRecord,
    )
    from quaid.operations.clients import ConnectRecord, SkillsExtractRecord, SkillsRecord
    from quaid.operations.collections import (
        CollectionAddRecord,
        CollectionInfoRecord,
        CollectionRemoveRecord,
        FoldersRecord,
        IgnoreRecord,
        ImportRecord,
        QuarantineDiscardRecord,
        WatchStandby,
    )
    from quaid.operations.conflicts import ConflictCopiesRecord, GitSetupRecord
    from quaid.operations.conversations import (
        ConversationRecord,
        ConversationRemoveRecord,
        ConversationsRecord,
        ReadingRecord,
    )
    from quaid.operations.corrections import CorrectRecord
    from quaid.operations.doctor import DoctorRecord
    from quaid.operations.dream import DreamModelRecord, DreamRecord
    from quaid.operations.facts import AssertRecord, CheckRecord, ContradictionsRecord, FactsRecord
    from quaid.operations.golden import BenchRecord, GoldenRun, GoldenSuggestion, GoldenTry
    from quaid.operations.history import BlameRecord, DiffRecord, HistoryRecord, RevertRecord
    from quaid.operations.ingest import IngestRecord
    from quaid.operations.kb import (
        KbCaptureRecord,
        KbChangeRecord,
        KbCurateRecord,
        KbEditRecord,
        KbIndexRecord,
        KbLintRecord,
        KbListRecord,
        KbPushRecord,
        KbQueryRecord,
        KbRememberRecord,
        KbShowRecord,
    )
    from quaid.operations.links import GraphRecord, LinkRecord, LinksRecord, PathRecord, UnlinkRecord
    from quaid.operations.maintenance import (
        EncryptionRecord,
        RebuiltRecord,
        StatusRecord,
        UpgradeRecord,
        ValidateRecord,
    )
    from quaid.operations.models import EmbeddingsRecord, EmbedRecord, ModelCheckRecord
    from quaid.operations.notebook import (
        MigrateRecord,
        NotebookListRecord,
        NotebookRecord,
        NotebookWriteRecord,
    )
    from quaid.operations.notes import RememberRecord
    from quaid.operations.overview import (
        BriefingRecord,
        DaysRecord,
        MapRecord,
        TickRecord,
        TodayRecord,
        WingRecord,
        WingsRecord,
    )
    from quaid.operations.page_changes import PutRecord, RawRecord, TimelineAddRecord
    from quaid.operations.pages import (
        ListRecord,
        PagesRecord,
        TagsRecord,
        TimelineRecord,
    )
    from quaid.operations.query import GapRecord, GapsClearRecord, GapsRecord, GlanceRecord
    from quaid.operations.registry import Named
    from quaid.operations.review import ActivityDecision, ActivityRecord, ReviewRecord
    from quaid.operations.search import SearchRecord
    from quaid.operations.service import DaemonRecord, TokensRecord
    from quaid.operations.shell import HomeRecord
    from quaid.operations.spaces import JoinRecord, LeaveRecord, SpaceProposalsRecord, SyncRecord
    from quaid.search.answer import Answer
    from quaid.search.conversations import ConversationSearchRecord
    from quaid.storage.briefing import Stats
    from quaid.storage.questions import GoldenQuestion
    from quaid.storage.sqlite.backup import Compacted

TEXT_WIDTH = 78
MOST_LINES = 20
"""Maximum number of lines printed for a list. --json prints all items."""
QUARANTINE_DAYS = 30
NESTED_INDENT = 2

Lines = Iterator[str]
_renderers: dict[str, Callable[[Any], Lines]] = {}


_table_width: ContextVar[int] = ContextVar("table_width", default=0)
"""Maximum width of tables in columns; 0 for no limit."""


def render(record: Any, width: int | None = None) -> str:
    """Return a record as text. Tables are at most `width` columns wide; 0 means no limit.

    A nested record is rendered without `width`, and has the width of the outer record.
    """
    if width is not None:
        mark = _table_width.set(width)
        try:
            return render(record)
        finally:
            _table_width.reset(mark)
    name = type(record).__name__
    if name in SENTENCES:
        sentence = SENTENCES[name]
        return sentence.format(record) if isinstance(sentence, str) else sentence(record)
    return "\n".join(filter(None, _renderers.get(name, _field_lines)(record)))


def _renders(*names: str) -> Callable[[Callable[[Any], Lines]], Callable[[Any], Lines]]:
    """Register a function for records by class name, so that their modules need not be imported here.

    Empty strings that the function yields are dropped. To print a blank line, the function adds a line break
    to the line before or after it.
    """

    def register(function: Callable[[Any], Lines]) -> Callable[[Any], Lines]:
        _renderers.update(dict.fromkeys(names, function))
        return function

    return register


# Records without a renderer


def _field_lines(record: Any) -> Lines:
    """Yield the fields of a record: plain values in two columns, then lists and nested records, then next steps."""
    if not hasattr(record, "_fields"):
        yield record if isinstance(record, str) else json.dumps(record, ensure_ascii=False, default=str)
        return
    fields = {
        name.replace("_", " "): value
        for name, value in zip(record._fields, record, strict=True)
        if value not in (None, "", (), [], {}) and not name.startswith("next_step")
    }
    plain = {name: _plain_text(value) for name, value in fields.items()}
    yield from format_table([(name, text) for name, text in plain.items() if text is not None])
    for name, text in plain.items():
        if text is None:
            yield f"{name}:"
            yield _indented("\n".join(_nested_lines(fields[name])), NESTED_INDENT)
    steps = getattr(record, "next_steps", None) or [getattr(record, "next_step", None)]
    yield from (f"Next: {step}" for step in steps if step)


def _plain_text(value: Any) -> str | None:
    """Return a plain value or a list of them as text, or None if the value is nested or has line breaks."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        texts = [_plain_text(item) for item in value]
        return None if None in texts else ", ".join(map(str, texts))
    return str(value) if isinstance(value, int | float | str) and "\n" not in str(value) else None


def _nested_lines(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        rows = [
            (str(key), _plain_text(item) or "\n".join(_nested_lines(item))) for key, item in value.items()
        ]
        return format_table(rows, NESTED_INDENT)
    if isinstance(value, str) or hasattr(value, "_fields"):
        return [value if isinstance(value, str) else render(value)]
    cells = [[_plain_text(cell) for cell in item] for item in value if hasattr(item, "_fields")]
    if len(cells) == len(value) and all(None not in row for row in cells):
        heading = [name.replace("_", " ") for name in value[0]._fields]
        return format_table([heading, *cells], NESTED_INDENT)
    return ["\n".join(_field_lines(item)) for item in value]


# Helpers for formatting text


def format_table(rows: Iterable[Sequence[Any]], indent: int = 0) -> list[str]:
    """Return rows as lines, each column as wide as its widest cell; the last column is not padded.

    If the terminal is narrower, long cells of the middle columns are shortened. The last column is wrapped or,
    if there is no room for it, printed below the others. `indent` is the number of columns by which the caller
    indents the lines.
    """
    texts = [["" if cell is None else str(cell) for cell in row] for row in rows]
    widths = [max(map(text_width, column)) for column in zip(*texts, strict=True)][:-1]
    most = max(0, _table_width.get() - indent)
    widest = max((text_width(row[-1]) for row in texts), default=0)
    if most:
        _fit_columns(widths, most - min(MIN_COLUMN, widest))
    start = sum(widths) + 2 * len(widths)
    if most and start + min(MIN_COLUMN // 2, widest) > most:
        start = NESTED_INDENT + 2  # too narrow: the last column goes below the others
    room = max(MIN_COLUMN // 2, most - start) if most else 0
    lines = []
    for row in texts:
        cells = [_pad(_cut(cell, width), width) for cell, width in zip(row, widths, strict=False)]
        last = _wrap_cell(row[-1], room) if room else [row[-1]]
        if widths and start < sum(widths):
            lines.append("  ".join(cells).rstrip())
            lines += [" " * start + text for text in last if text]
            continue
        lines.append("  ".join([*cells, last[0]]).rstrip())
        lines += [" " * start + text for text in last[1:]]
    return lines


def _key_values(*rows: tuple[str, Any]) -> list[str]:
    """Return a table of names and values, without the rows whose value is empty."""
    return format_table(row for row in rows if row[1])


MIN_COLUMN = 20
"""Width reserved for the last column.

Middle columns are reduced to make room, but not below 3/5 of this width.
"""


def _fit_columns(widths: list[int], most: int) -> None:
    """Reduce the widest columns, except the first, until all columns and gaps fit into `most`."""
    while len(widths) > 1 and sum(widths) + 2 * len(widths) > most and max(widths[1:]) > MIN_COLUMN * 3 // 5:
        widest = max(range(1, len(widths)), key=widths.__getitem__)
        widths[widest] -= 1


def text_width(text: str) -> int:
    """Return the width of a text on a terminal: 2 for a wide character, 0 for a combining one, else 1."""
    if text.isascii():
        return len(text)
    import unicodedata  # imported late, because ASCII does not need it

    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def _pad(text: str, width: int) -> str:
    return text + " " * (width - text_width(text))


def _cut(text: str, width: int) -> str:
    if text_width(text) <= width:
        return text
    while text and text_width(text) >= width:
        text = text[:-1]
    return text + "…"


def _wrap_cell(text: str, width: int) -> list[str]:
    """Split a text into lines of at most `width` columns, at spaces and wide characters; long words stay whole."""
    lines, line = [], ""
    for piece in re.split(r"( +|(?<=[\u2e80-\uffef]))", text):
        if line.strip() and text_width(line + piece.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += piece if line else piece.lstrip()
    return [*lines, line.rstrip()]


def shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def format_size(number: int) -> str:
    left = float(number)
    for unit in ("bytes", "KB", "MB"):
        if left < 1000:
            return f"{left:.0f} {unit}" if unit == "bytes" else f"{left:.1f} {unit}"
        left /= 1000
    return f"{left:.2f} GB"


def validity(link: Any) -> str:
    """Return the validity interval of a link, for example `2024-01-15 to 2026-03-01`, or "" if it has no dates."""
    if not link.valid_from and not link.valid_until:
        return ""
    return f"{link.valid_from or '?'} to {link.valid_until or 'now'}"


def _optional(text: str, value: Any) -> str:
    """Return the text with the value in place of `{}`, or "" if the value is empty."""
    return text.format(value) if value else ""


def _address(page: Any) -> str:
    return slugs.address(page.collection, page.slug)


def _day(time: str | None) -> str:
    return (time or "")[:10]


def _minute(time: str | None) -> str:
    """Return a timestamp as day and time, as in 2026-04-25 14:00 UTC."""
    return f"{(time or '')[:16].replace('T', ' ')} UTC"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _indented(text: str, width: int) -> str:
    import textwrap  # imported late, because most records do not need it

    return textwrap.indent(text, " " * width)


def _wrapped(text: str) -> str:
    import textwrap

    lines = textwrap.fill(_one_line(text), TEXT_WIDTH, break_long_words=False, break_on_hyphens=False)
    return _indented(lines, 4)


def _counts(numbers: dict[str, int]) -> str:
    """Return the numbers other than 0 with their descriptions, such as "3 new, 1 changed"."""
    return ", ".join(f"{number:,} {text}" for text, number in numbers.items() if number)


def _count(number: int | None, noun: str, plural: str = "") -> str:
    """Return a count with its noun, such as "3 files", or "" if the count is 0 or None."""
    return count_noun(number, noun, plural) if number else ""


SINGULARS = {
    "redirects": "redirect",
    "names": "name",
    "tags": "tag",
    "timeline entries": "timeline entry",
    "chunks": "chunk",
    "links out": "link out",
    "links in": "link in",
    "facts": "fact",
    "contradictions": "contradiction",
    "gaps that it answered": "gap that it answered",
    "golden questions": "golden question",
    "opened results": "opened result",
    "imported files": "imported file",
    "entries of the log of imports": "entry of the log of imports",
    "known files": "known file",
    "records of quarantine exports": "record of a quarantine export",
    "in conflict: left as they are here": "in conflict: left as it is here",
    "stored, but not as pages (index, schema, README)": "stored, but not as a page (index, schema, README)",
    "sidecars with raw data": "sidecar with raw data",
}
"""Singular forms of the plural nouns with which records label counts."""


def _noun(number: int, plural: str) -> str:
    return SINGULARS.get(plural, plural) if number == 1 else plural


def _first(items: Sequence[Any], line: Callable[[Any], str], more: str, most: int = MOST_LINES) -> Lines:
    """Yield a line for each of the first `most` items.

    If there are more items, also yield `more` with their number in place of `{}`.
    """
    yield from map(line, items[:most])
    if len(items) > most:
        yield more.format(f"{len(items) - most:,}")


def _some(names: Sequence[str]) -> str:
    """Return the first eight names, each shortened, and the number of the others."""
    more = f" and {len(names) - 8:,} more" if len(names) > 8 else ""
    return ", ".join(shorten(name, 60) for name in names[:8]) + more


def _limited(shown: int, total: int, noun: str, several: str = "") -> str:
    """Return the number of items and, if not all are shown, the --limit that shows them."""
    items = count_noun(total, noun, several)
    return items if shown >= total else f"{shown:,} of {items}; more: --limit {total}"


def _window(record: Any, shown: int, items: str) -> str:
    """Return the range of items shown and, if there are more, the --offset that shows the next ones."""
    last = record.offset + shown
    first = _more(shown, record.total, f"{record.offset + 1:,}-{last:,} of ")
    return first + items + _more(last, record.total, f"; next: --offset {last}")


def _part_of(shown: int, total: int) -> str:
    """Return "3 of " if only 3 of all items are shown, else ""."""
    return f"{shown:,} of " if shown < total else ""


def _more(shown: int, total: int, text: str) -> str:
    """Return `text` if fewer than `total` items are shown, else ""."""
    return text if shown < total else ""


def _link_source(link: Any) -> str:
    return slugs.address(link.from_collection, link.from_slug)


def _link_target(link: Any) -> str:
    """Return the address of the page that a link points to, with a note if there is no such page."""
    if not getattr(link, "resolved", True):
        return f"{link.to_slug} (no such page)"
    return slugs.address(link.to_collection, link.to_slug)


def _arrow(link: Any, page: str) -> str:
    """Return a link as an arrow pointing to `page` or away from it, labelled with its relationship."""
    label = link.relationship + _optional(" ({})", validity(link))
    return f"-{label}->" if link.to_slug == page else f"<-{label}-"


def _note(item: Any, indent: str = "  ") -> str:
    return f"{indent}{item.path}: {item.note if hasattr(item, 'note') else item.problem}"


def _words_only(reason: str) -> str:
    """Return a line that says that semantic search was not used, and why."""
    off = reason.lower().startswith("semantic search is off")
    return f"By words only{'. ' if off else ': '}{reason.rstrip('.')}."


def _entry(entry: Any) -> str:
    return f"{entry.date}  {_optional('[{}] ', entry.source)}{entry.summary}"


def _removed_front_matter(record: Any) -> Lines:
    keys = _optional("keys {}", ", ".join(record.keys_removed))
    tags = _optional("tags {}", ", ".join(record.tags_removed))
    if keys or tags:
        parts = "; ".join(filter(None, (keys, tags)))
        yield f"Removed with the front matter that the new text leaves out: {parts}"
        yield f"`quaid history {_address(record)}` lists the version that has them"


def _removed_entries(record: Any) -> Lines:
    if record.timeline_removed:
        yield from map("Removed from the timeline: {}".format, record.timeline_removed)
        yield f"`quaid history {_address(record)}` lists the version that has them"


def _page_counts(report: Any) -> Lines:
    """Yield the counts of an import or a sync."""
    types = ", ".join(f"{number:,} {name}" for name, number in report.types.items())
    yield f"types: {types or 'none'}"
    yield (
        f"tags: {report.tags:,}, links: {report.links_extracted:,}, timeline entries: {report.timeline_entries:,},"
        f" raw data: {report.raw_data:,}"
    )


# Lists of records


def _collection_row(item: Any) -> tuple[str, ...]:
    state = item.state + ("" if item.writable else ", read-only")
    state += ", takes new pages" if item.is_write_target else ""
    note = item.ignore_problem or _optional("{} not indexed", _count(item.files_not_taken_in, "file"))
    if item.halted:
        note = f"waits for you: {item.halted}"
    return item.name, item.root or "in the database", state, count_noun(item.pages, "page"), note


def _quarantine_row(page: Any) -> tuple[str, ...]:
    return f"{page.collection}::{page.slug}", f"{_day(page.since)} to {page.until}", _quarantine_data(page)


def _kb_check_row(check: Any) -> tuple[str, ...]:
    mark = "!!" if not check.well else "--" if check.missing else "ok"
    return mark, check.name, (check.told or "fine") + ("" if check.well else f". {check.remedy}")


def _model_row(model: Any) -> tuple[Any, ...]:
    state = "ready" if model.ready else model.problem
    return "*" if model.active else "", model.name, model.dimensions or "?", state


def _setting_row(item: Any) -> tuple[str, ...]:
    return item.key, shorten(_one_line(str(item.value)), 60) if item.value else "-", item.source


def _import_row(item: Any) -> tuple[str, ...]:
    return item.import_id, item.created_at, count_noun(item.page_count, "page"), item.source_dir


ROWS: dict[str, Callable[[Any], Sequence[Any]]] = {
    "CollectionRecord": _collection_row,
    "ImportBatch": _import_row,
    "KbCheck": _kb_check_row,
    "ModelRecord": _model_row,
    "BackupRecord": lambda copy: (copy.path, copy.made_at, format_size(copy.size)),
    "Login": lambda login: (
        login.id,
        login.device,
        f"since {_day(login.since)}",
        f"last seen {login.last_seen}",
    ),
    "Mention": lambda page: (f"{page.title} ({page.slug})", f"names {page.to_title} ({page.to_slug})"),
    "PageTitle": lambda page: (page.name, f"{page.title} ({page.slug})"),
    "Device": lambda device: (
        device.id[:8],
        device.name,
        f"{device.person}{_optional(' with {}', device.agent)}",
        "revoked" if device.revoked_at else f"last seen {device.last_seen_at or 'never'}",
        f"has read up to change {device.acknowledged:,}" if device.acknowledged >= 0 else "has not joined",
    ),
    "Member": lambda member: (f"{member.person}{_optional(' with {}', member.agent)}", member.right),
    "Setting": _setting_row,
    "SpaceRecord": lambda space: (
        space.collection,
        f"{space.space} on {space.hub}" + (", sealed" if space.sealed else ""),
        f"{space.person} may {space.right}" if space.right != "owner" else f"{space.person} owns it",
        count_noun(space.pages, "page") + (f", {space.waiting:,} to push" if space.waiting else ""),
        space.problem or f"synced {space.synced_at or 'never'}",
    ),
    "WaitingRecord": _quarantine_row,
}
"""Functions that return the columns of a record in a table, by class name of the record."""
FOOTERS: dict[str, Callable[[Any], str]] = {
    "ModelRecord": lambda _: "* is the active model",
    "WaitingRecord": lambda pages: count_noun(len(pages), "page"),
}


@_renders("Named")
def _named(record: "Named[Any]") -> Lines:
    """Yield the lines of a Named record.

    A tuple of records is shown as a table or one record after another, any other value as text.
    """
    if not isinstance(record.value, tuple) or hasattr(record.value, "_fields"):
        yield record.note or render(record.value)
        return
    if not record.value:
        yield record.note
        return
    kind = type(record.value[0]).__name__
    yield from format_table(map(ROWS[kind], record.value)) if kind in ROWS else map(render, record.value)
    if kind in FOOTERS:
        yield FOOTERS[kind](record.value)


# Records of one sentence

SENTENCES: dict[str, str | Callable[[Any], str]] = {
    "IntactCopy": lambda record: f"{record.path} is intact: {count_noun(record.pages, 'page')}",
    "BackedUp": lambda record: (
        f"Wrote and checked the backup {record.path} ({format_size(record.size)}"
        f"{_optional(', and {} beside it', record.images and count_noun(record.images, 'image'))})"
    ),
    "DaemonStatusRecord": lambda record: (
        f"{record.state}{_optional(' ({})', record.detail)}{_optional(': {}', record.path)}"
    ),
    "InviteRecord": "{0.link}\n"
    "For one person or device, with the right {0.right}, until {0.expires_at}: `quaid join LINK`",
    "KbMapRecord": "{0.dot}",
    "MergeDriverRecord": lambda record: (
        f"{record.path}: {count_noun(record.conflicts, 'conflict')}"
        if record.conflicts > 0
        else f"{record.path}: cannot be merged"
        if record.conflicts
        else ""
    ),
    "ModelRecord": "Added {0.name}: {0.dimensions} dimensions, up to {0.max_tokens:,} tokens\n"
    "`quaid embed --model {0.name}` makes it the active model",
    "NotebookReadRecord": "{0.text}",
    "LinesRecord": "{0.text}",
    "PageRecord": lambda page: markdown.render(page.frontmatter, page.compiled_truth, page.timeline),
    "Proposed": "Proposal {0.proposal} for {0.slug}: {0.summary}\n{0.note}",
    "QuarantineExportRecord": lambda record: (
        f"Wrote {count_noun(len(record.pages), 'page')} to {record.folder}: {count_noun(record.files, 'file')}"
    ),
    "QuarantineRestoreRecord": "Restored {0.path} as {0.collection}::{0.slug}, version {0.version}",
    "Setting": lambda setting: "" if setting.value is None else str(setting.value),
    "SessionPrompt": lambda prompt: (
        prompt.text
        or ("Nothing fits into so few tokens." if prompt.parts else "")
        or "reference/ and the logs of the last two days are empty."
    ),
    "SkillRecord": "{0.text}",
    "LoginCodeRecord": "{0.code}\nType this code at the dashboard's login page within {0.minutes} minutes."
    " It works once.",
    "TokenRecord": lambda token: (
        f"{token.token}\nThis is the token {token.name} ({token.scope}{_optional(', only {}', ', '.join(token.only))}"
        f"{f', until {_minute(token.expires_at)}' if token.expires_at else ''}). It is not shown again; only its hash"
        f" is stored. `quaid token revoke {token.name}` revokes it."
    ),
    "WatchBegan": "{0.collection}: watching {0.root}",
    "WatchTrouble": lambda event: f"{_optional('{}: ', event.collection)}{event.problem}; {event.remedy}",
}
"""Templates for str.format, or functions that return the text, by class name of the record."""


# Shared spaces


@_renders("SyncRecord")
def _sync_all(record: "SyncRecord") -> Lines:
    for space in record.spaces:
        yield from _synced_space(space)
    yield from map(render, record.folders)
    if not record.spaces and not record.folders:
        yield "Nothing to sync: no collection is shared (`quaid share`, `quaid join`) or has a folder"


def _synced_space(space: Any) -> Lines:
    """Yield the result of a sync of a shared collection, and its open problems."""
    if space.problem:
        yield f"{space.collection}: {space.problem}"
        yield _optional("  {} to push when the hub can be reached", _count(space.waiting, "page"))
        return
    done = {
        "pulled": space.pulled,
        "pushed": space.pushed,
        "proposed": space.proposed,
        "erased": space.erased,
    }
    yield f"{space.collection}: {_counts(done) or 'up to date'}"
    if space.restored:
        yield "  The hub was restored from a backup; newer pages of this memory were offered to it again"
    for slug in space.rejected:
        yield f"  {slug}: your proposal was rejected; `quaid history {slug}` lists the version that has it"
    for slug in space.conflicts:
        yield f"  {slug} has a conflict: both versions are in the page; `quaid review` resolves it"
    for old, new in space.renamed:
        yield f"  {old} is now {new}, because another page has that name; `quaid dupes` offers to merge them"
    yield _optional("  Forgotten pages are not yet erased on: {}", ", ".join(space.pending))
    yield from map("  {}".format, space.problems)


@_renders("EncryptionRecord")
def _encryption(record: "EncryptionRecord") -> Lines:
    results = {
        "encrypted": "is encrypted now",
        "decrypted": "is not encrypted any more",
        "": "was encrypted already",
    }
    yield f"{record.path} {results.get(record.act, 'has a new key')}"
    if record.act:
        yield _optional(
            "Key: {}. Keep a copy of it elsewhere: without the key, the memory is lost", record.key
        )
    yield from map("Backup with the same key: {}".format, record.backups)
    yield _optional("Images: {:,} converted", record.images)
    yield from map("Not encrypted: {}; delete it if it holds text of the memory".format, record.left)
    yield _optional("Note: {}", record.note)


@_renders("JoinRecord")
def _join(record: "JoinRecord") -> Lines:
    space = record.space
    where = f"the space {space.space} on {space.hub}"
    pages = count_noun(space.pages, "page")
    if record.created:
        yield f"Joined {where} as {space.person}: {pages} in the new collection {space.collection}"
    else:
        yield f"The collection {space.collection} is {where}, shared as {space.person}: {pages}"
    yield from _synced_space(record.sync)
    yield "`quaid sync` exchanges changes; `quaid serve` and `quaid web` do so by themselves"
    if space.right == "owner":
        yield f"`quaid space invite {space.collection} --right write` invites a person or your next device"


@_renders("SpaceProposalsRecord")
def _space_proposals(record: "SpaceProposalsRecord") -> Lines:
    yield record.decided
    for proposal in record.proposals:
        diff = _indented(proposal.diff.rstrip(), 3)
        yield f"{proposal.id}  {proposal.slug}  by {proposal.author}, {proposal.at}\n{diff}"
    if record.proposals:
        yield f"`quaid space proposals {record.space} --accept ID` or `--reject ID` decides one"
    elif not record.decided:
        yield "No proposals"


@_renders("LeaveRecord")
def _leave(record: "LeaveRecord") -> Lines:
    pages = count_noun(record.pages, "page")
    if record.waiting:
        yield f"{count_noun(record.waiting, 'page')} of {record.collection} changed here and the hub does not have it"
    if record.done:
        kept = f"its {pages} stay in this memory" if record.kept else f"{pages} removed from this memory"
        yield f"Left the space {record.space}: {kept}. The hub and other devices keep theirs"
    elif record.kept:
        yield f"{pages} of {record.collection} would stay in this memory, and no longer be shared"
    else:
        yield f"{pages} of {record.collection} would be removed from this memory; --keep-pages keeps them"


# Pages


@_renders("PagesRecord")
def _pages(record: "PagesRecord") -> Lines:
    for page in record.pages:
        part: Any = page if hasattr(page, "lines") else None  # a LinesRecord
        span = f", lines {part.lines} of {part.total_lines}" if part else ""
        text = render(page).rstrip("\n")
        yield f"==> {_address(page)}, version {page.version}{span} <==\n{text}\n"
    for missing in record.missing:
        about = f"There is no page {missing.slug}."
        yield missing.hint if missing.hint.startswith(about) else f"{about}{_optional(' {}', missing.hint)}"


@_renders("PutRecord")
def _put(record: "PutRecord") -> Lines:
    if record.changed:
        place = " / ".join(filter(None, (record.wing, record.room)))
        act = "Created" if record.created else "Updated"
        yield f"{act} {_address(record)}: {record.title} ({record.type}, {place}), version {record.version}"
    else:
        yield f"{_address(record)} already has this text (version {record.version}); nothing was written"
    for fact in record.assertions:
        yield _fact_change(fact) + "".join(f"; ended fact {old}" for old in fact.superseded)
    if record.timeline_kept:
        yield from map("Kept in the timeline: {}".format, record.timeline_kept)
        yield "Your text leaves them out; --replace-timeline removes them"
    yield from _removed_entries(record)
    yield from _removed_front_matter(record)
    yield from map("({})".format, record.notes)
    yield from _receipt(record)


def _receipt(record: Any) -> Lines:
    """Yield contradictions of a write, lines that still have an old value, and possible duplicate pages."""
    for item in record.contradicts:
        yield f"Contradiction {item.id}: {item.description}"
        yield from map("  {}".format, item.quotes)
    if record.contradicts:
        yield f"`quaid check --resolve {record.contradicts[0].id} --keep left|right|both` resolves it"
    outdated = getattr(record, "still_says", ())
    yield from (f"{line.slug} still says: {line.says}" for line in outdated)
    yield "`quaid correct` changes such a line" if outdated else ""
    similar = ", ".join(getattr(record, "similar", ()))
    yield _optional("Perhaps the same thing: {}; `quaid dupes` and `quaid merge` help", similar)


@_renders("ListRecord")
def _list(record: "ListRecord") -> Lines:
    yield from format_table(
        (_address(page), page.type, _day(page.updated_at), page.title) for page in record.pages
    )
    pages = count_noun(record.total, "page")
    if record.pages:
        yield _window(record, len(record.pages), pages)
    elif record.total:
        yield f"There {'is' if record.total == 1 else 'are'} only {pages}."
    else:
        yield "No pages match."
    yield from map("({})".format, record.notes)


@_renders("TagsRecord")
def _tags(record: "TagsRecord") -> Lines:
    if record.removed:
        left = _optional("; left: {}", ", ".join(record.tags))
        if record.changed:
            yield f"Removed the tag {record.removed} from {_address(record)}{left}"
        else:
            yield f"{_address(record)} has no tag {record.removed}; nothing was removed{left}"
    else:
        yield from record.tags or [f"{_address(record)} has no tags"]


@_renders("TimelineRecord")
def _timeline(record: "TimelineRecord") -> Lines:
    if not record.entries:
        yield f"{_address(record)} has no dated entries"
        return
    for entry in record.entries:
        yield _entry(entry)
        yield _indented(entry.detail.strip("\n"), 4)
    if len(record.entries) < record.total:
        yield _limited(len(record.entries), record.total, "entry", "entries")


@_renders("TimelineAddRecord")
def _timeline_add(record: "TimelineAddRecord") -> Lines:
    if record.added:
        yield f"Added to {_address(record)}: {_entry(record.entry)} (version {record.version})"
    else:
        yield f"{_address(record)} already has this entry (version {record.version}); nothing was written"
    yield from _receipt(record)


@_renders("RawRecord")
def _raw(record: "RawRecord") -> Lines:
    if record.written:
        yield f"Stored the data of {record.data[0].source} for {_address(record)} (version {record.version})"
        return
    texts = (
        f"{item.source} ({item.fetched_at})\n{json.dumps(item.data, ensure_ascii=False, indent=2)}"
        for item in record.data
    )
    yield "\n\n".join(texts) or f"{_address(record)} has no raw data"


@_renders("RenameRecord")
def _rename(record: "RenameRecord") -> Lines:
    old = f"{record.old_slug} {'redirects to it' if record.redirected else 'is free'}"
    yield f"{record.old_slug} is now {record.slug}: {record.title} ({record.wing}), version {record.version}; {old}"


@_renders("HistoryRecord")
def _history(record: "HistoryRecord") -> Lines:
    origins = {"edit": "edited here", "sync": "read from its file", "import": "imported", "made": "created"}
    several = len({version.device for version in record.versions if version.device}) > 1
    if several:
        origins["edit"] = "edited"
    yield from format_table(
        (
            f"{version.version:>4}",
            version.since,
            f"{format_size(version.size):>10}",
            origins[version.by]
            + (f" by {version.author}" if version.author not in ("", "sync", "import") else "")
            + _with(version, several)
            + _trust(version)
            + (", the current version" if version.is_present else ""),
        )
        for version in record.versions
    )


def _trust(record: Any) -> str:
    """Return the trust class in parentheses.

    For text of the person, only say whether it was accepted from an agent.
    """
    if record.trust == "person":
        return " (accepted by the person)" if record.agent else ""
    return f" ({record.trust})"


def _with(version: Any, several_devices: bool) -> str:
    """Return the agent that wrote a version or line for its author, and the device if several devices wrote
    the page.
    """
    agent = f" with {version.agent}" if version.agent not in ("", version.author) else ""
    return agent + (_optional(" on {}", version.device) if several_devices else "")


@_renders("CorrectRecord")
def _correct(record: "CorrectRecord") -> Lines:
    if not record.changed:
        yield record.note
        yield from format_table((row.id, row.says) for row in record.candidates)
        return
    for row in record.replaced:
        yield f"No longer: {row.says} ({row.id}{_optional(', until {}', row.until)})"
    yield _optional("Now: {}", record.now)
    yield f"{record.path or _address(record)}, version {record.version}{_optional(', fact {}', record.fact)}"
    yield from (f"Still says: {row.says} ({row.id})" for row in record.still_says)
    yield record.note


def _decision(decision: Any) -> Lines:
    """Yield the outcome of a proposal, and any text that was erased."""
    outcome = "not carried out" if decision.outcome == "conflict" else decision.outcome
    target, problem = _optional(" ({})", decision.target), _optional(": {}", decision.problem)
    yield f"Proposal {decision.id}{target} {outcome}{problem}"
    if decision.erased:
        yield from (_indented(line, 2) for line in _forget(decision.erased))
    if removed := decision.removed:
        for row in removed.replaced:
            yield f"  Erased from {removed.path or _address(removed)}: {row.id if row.says == 'erased' else row.says}"
        yield _optional("  {}", removed.note)
    if decision.outcome == "conflict":
        yield f"Proposed:\n{_indented(decision.diff.rstrip(), 2)}"
        yield f"Now it would be:\n{_indented(decision.diff_now.rstrip() or '(no change)', 2)}"


@_renders("ReviewRecord")
def _review(record: "ReviewRecord") -> Lines:
    for decision in record.decided:
        yield from _decision(decision)
    for proposal in record.proposals:
        yield f"{proposal.id}  {proposal.target}  by {proposal.author}, {proposal.age} ago, {proposal.tool}"
        if proposal.kind:
            yield f"   {proposal.summary}"
            yield from (
                f"   because {evidence.source} says: {evidence.quote}" for evidence in proposal.evidence
            )
        yield _indented(proposal.diff.rstrip(), 3)
    for conflict in record.conflicts:
        yield from _conflict(conflict)
    if record.resolved:
        yield f"Resolved {count_noun(record.resolved, 'conflict')}"
    elif record.decided:
        yield f"{_count(record.total, 'proposal') or 'No proposal is'} left"
    elif not record.proposals and not record.conflicts:
        yield "No proposals and no conflicts"
    if record.proposals and not record.decided:
        yield "`quaid review ID --accept` or `--reject` decides one, `--yes` or `--reject-all` decides all"
    if record.conflicts:
        yield "`quaid review [NUMBER] --slug PAGE --keep NAME` resolves conflicts; `--keep all` keeps all versions"


@_renders("DreamRecord")
def _dream(record: "DreamRecord") -> Lines:
    if record.kinds:
        yield from format_table([("kind", "proposed", "accepted", "known before"), *record.kinds])
    yield from record.notes
    yield _optional("The language model used about {:,} tokens", record.tokens)
    if record.waiting:
        yield f"{count_noun(record.waiting, 'proposal')} to decide: `quaid review` shows them with their evidence"
    elif record.kinds:
        yield "Nothing to decide"


@_renders("DreamModelRecord")
def _dream_model(record: "DreamModelRecord") -> Lines:
    model = record.model
    if model is None:
        yield "Dreams work by rules, without a language model"
        return
    yield f"{model.model} at {model.url}{' (another machine)' if model.is_remote else ''}"
    yield f"{record.spent_today:,} of {model.daily_tokens:,} tokens used today"


def _conflict(conflict: Any) -> Lines:
    yield f"{conflict.page}  conflict {conflict.number}: {conflict.key or 'text'}"
    for side in conflict.sides:
        value = side.value if isinstance(side.value, str) else json.dumps(side.value, ensure_ascii=False)
        if conflict.part == "page":
            yield f"   {side.name}: {value}"
            continue
        yield f"   {side.name}:"
        yield _indented("(removed)" if side.value in (None, "") else value, 5)


@_renders("BlameRecord")
def _blame(record: "BlameRecord") -> Lines:
    several = len({line.device for line in record.lines if line.device}) > 1
    yield from format_table(
        (
            f"{line.version:>4}" if line.version else "   -",
            line.since[:10] if line.since else f"before version {record.oldest_version}",
            line.author + _with(line, several) + _trust(line),
            line.source,
            line.text,
        )
        for line in record.lines
    )


@_renders("RevertRecord")
def _revert(record: "RevertRecord") -> Lines:
    if not record.changed:
        yield f"{_address(record)} already has the text of version {record.to}; nothing was written"
        return
    file = _optional(", and so does {}", record.path)
    yield f"{_address(record)} has the text of version {record.to} again{file} (version {record.version})"
    yield from _removed_entries(record)


@_renders("DiffRecord")
def _diff(record: "DiffRecord") -> Lines:
    if record.older:
        yield f"{_address(record)}: {record.older}"
    elif record.from_version == record.to_version:
        yield f"{_address(record)} has not changed since then (version {record.to_version})"
    if record.from_version == record.to_version:
        return
    if record.same_text:
        yield f"Versions {record.from_version} and {record.to_version} of {_address(record)} have the same text"
    yield record.diff


# Search


@_renders("SearchRecord")
def _search(record: "SearchRecord") -> Lines:
    if not record.hits:
        yield f"Nothing found for {record.query!r}. `quaid query` also searches by meaning."
    for hit in record.hits:
        partial = "" if hit.all_words else ", some of the words"
        trust = f", {hit.trust}" if hit.trust != "person" else ""
        heading = _optional(", {}", hit.heading)
        yield f"{_address(hit)}  {hit.title} ({hit.type}{partial}{trust}){heading}"
        yield _wrapped(hit.snippet or hit.summary)
    yield from map("({})".format, record.notes)


LONG_CONTENT = 300
"""If a result has more characters than this, its best matching sentence is also printed above it."""

STRENGTH_NOTES = {
    "strong": "Found (strong):",
    "weak": "Possible answers (weak evidence):",
    "none": "The memory probably does not have an answer. The nearest matches:",
}


@_renders("Answer")
def _answer(record: "Answer") -> Lines:
    if record.results:
        yield f"{STRENGTH_NOTES[record.strength]}\n"
        if direct := record.direct:
            quotes = [f"  “{direct.facts[0].quote}”"] if direct.is_read else []
            before = [f"  before: {fact.says}" for fact in direct.before]
            yield "\n".join((direct.line, *quotes, *before, ""))
        if record.facts:
            yield "\n".join((*map("* {}".format, record.facts), ""))
        for number, result in enumerate(record.results, 1):
            yield "\n".join(filter(None, _answer_result(number, result))) + "\n"
        if record.lanes:
            yield "\n".join(_lane_table(record.lanes)) + "\n"
        yield f"{count_noun(record.total_tokens, 'token')}, {record.budget_remaining:,} left"
    elif not any("budget is too small" in note for note in record.notes):
        yield f"Nothing found for {record.question[:200]!r}. `quaid list` shows what the memory has."
    yield from map("({})".format, record.notes)


def _lane_table(lanes: Any) -> list[str]:
    rows = [
        (
            lane.slug,
            lane.start_line,
            f"{lane.words:.2f}",
            lane.words_place or "-",
            f"{lane.page_words:.2f}",
            "-" if lane.cosine is None else f"{lane.cosine:.3f}",
            lane.meaning_place or "-",
            f"{lane.favour:.2f}",
        )
        for lane in lanes
    ]
    return format_table([("slug", "line", "words", "rank", "page", "cosine", "rank", "boost"), *rows])


def _answer_result(number: int, result: Any) -> Lines:
    rating = "unlikely" if result.strength == "none" else result.strength
    trust = result.trust if result.trust not in ("person", "observed") else ""
    about = ", ".join(filter(None, (result.type, rating, result.date, result.status, trust)))
    heading = result.heading_path.rpartition(" > ")[2].lstrip("#* ")
    heading = f"{heading}, " if heading not in ("", result.title) else ""
    place = f"[{heading}{result.part} {result.start_line}-{result.end_line}]" if result.part else ""
    page = _address(result) if result.slug else result.session
    yield f"{number}. {page}  {result.title} ({about})\n" + f"   {result.reason} {place}".rstrip()
    if len(result.content) > LONG_CONTENT:
        yield _optional("   > {}", result.line)
    yield _indented((result.text or result.summary).strip("\n"), 5)
    yield _optional("     now: {}", result.now)
    yield _optional("     latest: {}", result.latest)


@_renders("GlanceRecord")
def _glance(record: "GlanceRecord") -> Lines:
    if record.recalled and (record.recalled.notebook or record.recalled.daily):
        yield f"{render(record.recalled)}\n"
    yield render(record.answer)


# Notebook and conversations


@_renders("NotebookRecord")
def _notebook(record: "NotebookRecord") -> Lines:
    folders = ", ".join(f"{name}/" for name in record.folders)
    files = f"{count_noun(record.files, 'file')}{_optional(', created {}', folders)}"
    if record.created:
        yield f"The notebook is {record.root} ({files})"
        yield "Next: quaid remember WORDS, quaid log WORDS, quaid recall WORDS"
    else:
        unchanged = "" if record.folders else "; nothing was changed"
        yield f"{record.root} is already the notebook ({files}{unchanged})"


@_renders("NotebookListRecord")
def _notebook_list(record: "NotebookListRecord") -> Lines:
    rows = format_table((file.path, format_size(file.size)) for file in record.files)
    yield from rows or [f"{record.root} has no files yet. `quaid remember WORDS` writes one."]


@_renders("RememberRecord")
def _remember(record: "RememberRecord") -> Lines:
    act = {"ticked": "Ticked", "struck": "Struck", "nothing": "-"}.get(record.action, "Wrote")
    for number, line in enumerate(record.lines):
        word = act if line.written or record.action == "nothing" else "Already there:"
        if record.action == "replaced" and number == 0:
            word = "Struck"
        yield f"{word} {line.path}:{line.line}{_optional(' ({})', record.section)}: {line.text.partition(chr(10))[0]}"
    yield record.note
    if record.near and record.action == "added":
        yield f"Filed as {record.category}; it could also be: {', '.join(record.near)}. --category decides."
    yield from map("Nearly the same: {}".format, record.similar)
    yield from (f"No longer: {row.says} ({row.id})" for row in record.replaced if row.until)
    yield from (f"{row.slug} says otherwise: {row.says} ({row.id})" for row in record.contradicts)
    yield from (f"{row.slug} still says: {row.says}" for row in record.still_says)


@_renders("NotebookWriteRecord")
def _notebook_write(record: "NotebookWriteRecord") -> Lines:
    if record.heading:
        yield f"Wrote {record.path}:{record.line}: {record.heading.lstrip('# ')}"
    elif record.changed:
        yield f"{'Created' if record.created else 'Wrote'} {record.path}:{record.line}, version {record.version}"
    else:
        yield f"{record.path} already has this text (version {record.version}); nothing was written"


@_renders("RecallResult")
def _recall(record: "RecallResult") -> Lines:
    """Yield the hits in the notebook and in the daily logs as a tree."""
    yield _optional("From the index alone. {}", record.missing)
    yield "" if record.semantic else _words_only(record.note)
    groups = {name: hits for name, hits in (("NOTEBOOK", record.notebook), ("DAILY", record.daily)) if hits}
    if not groups:
        yield f"Nothing found for {record.query!r}. `quaid search` searches all pages."
    for name, hits in groups.items():
        corner, margin = ("└", "    ") if name == list(groups)[-1] else ("├", "│   ")
        yield f"{corner}── {name} ({count_noun(len(hits), 'result')})"
        for hit in hits:
            branch, stem = "└ " if hit is hits[-1] else "├│"
            last = f"-{hit.end_line}" if hit.end_line > hit.start_line else ""
            where = f"{hit.path}:{hit.start_line}{last}"
            yield f"{margin}{branch}── {where} {'.' * max(3, 52 - len(where))} {hit.score:.2f}"
            yield f'{margin}{stem}   "{hit.snippet}"'


MIGRATION_OUTCOMES = {
    "same": "already there",
    "differs": "another file is there; merge them by hand",
    "unreadable": "left out: not UTF-8 text",
    "stays": "left out: the agent's own file",
    "link": "left out: a symbolic link",
}


@_renders("MigrateRecord")
def _migrate(record: "MigrateRecord") -> Lines:
    if not record.moves:
        yield f"{record.source} has neither runtime/*.md nor brain/memory/core/*.md; nothing to do"
    outcomes = {**MIGRATION_OUTCOMES, "copied": "would be copied" if record.dry_run else "copied"}
    yield from format_table(
        (move.source, _optional("→ {}", move.path), outcomes[move.outcome]) for move in record.moves
    )


def _new_turns(report: Any) -> str:
    """Return the number of turns and conversations that an import of transcripts added."""
    new = count_noun(report.conversations, "new conversation")
    return f"{count_noun(report.turns, 'new turn')} in {new}{_optional(' and {:,} that continued', report.grown)}"


def _masked_secrets(report: Any) -> str:
    return _optional("  {} masked", _count(report.masked, "secret"))


@_renders("ReadingRecord")
def _transcripts(record: "ReadingRecord") -> Lines:
    report = record.report
    no_transcript = "no transcript" if report.other == 1 else "no transcripts"
    other = _counts(
        {"unchanged": report.unchanged, no_transcript: report.other, "deleted since": report.gone}
    )
    yield f"{count_noun(report.files, 'file')}{_optional(' ({})', other)}: {_new_turns(report)}"
    yield _masked_secrets(report)
    yield _optional("  {} skipped", _count(report.broken, "broken line"))
    removed = _count(report.removed, "conversation")
    yield _optional("  skipped {} that you removed; --again adds such ones again", removed)
    yield from map("  `quaid conversations sync` reads {} from now on".format, record.watched)
    yield _optional("  {}", record.unwatched)
    yield from _first(report.problems, _note, "  and {} more; --json lists all")


@_renders("ConversationsRecord")
def _conversations(record: "ConversationsRecord") -> Lines:
    if not record.conversations:
        yield "No conversations. `quaid conversations add PATH` adds transcripts."
        return
    yield from format_table(
        (
            _day(row.ended_at),
            row.client,
            row.session[:12],
            count_noun(row.turns, "turn"),
            shorten(row.title, 60),
        )
        for row in record.conversations
    )
    total = f"{count_noun(record.total, 'conversation')}, {count_noun(record.turns, 'turn')}"
    yield _window(record, len(record.conversations), total)


@_renders("ConversationRecord")
def _conversation(record: "ConversationRecord") -> Lines:
    row, turns = record.conversation, record.turns
    days = " to ".join(dict.fromkeys(time[:10] for time in (row.started_at, row.ended_at) if time))
    yield f"{row.client} {row.session}{_optional(': {}', row.title)}"
    yield "  " + ", ".join(filter(None, (days, row.project, count_noun(row.turns, "turn"))))
    for turn in turns:
        time = (turn.said_at or "").replace("T", " ").removesuffix("Z")
        mark = " <<<" if turn.turn == record.around else ""
        yield f"\n[{turn.turn}] {turn.role}{_optional(', {} UTC', time)}{mark}\n{turn.text}"
        yield _optional("… {}; --full shows them", _count(turn.left_out, "more character"))
    last = turns[-1].turn if turns else row.turns
    if left := row.turns - last:
        # The centre of the next window, which has the same size and starts after the last turn shown.
        middle = min(row.turns, last + 1 + len(turns) // 2)
        yield f"\n{count_noun(left, 'turn')} {'follows' if left == 1 else 'follow'}: --around {middle}"


@_renders("ConversationSearchRecord")
def _conversation_search(record: "ConversationSearchRecord") -> Lines:
    if record.note and record.semantic:
        yield f"{record.note}; `quaid embed --all` makes the missing ones."
    elif record.note:
        yield _words_only(record.note)
    if not record.hits:
        hint = "" if record.conversations else "; `quaid conversations add PATH` adds transcripts"
        where = count_noun(record.conversations, "conversation")
        yield f"Nothing found for {shorten(record.query, 200)!r} in {where}{hint}."
    for hit in record.hits:
        place = f"{hit.role}  {hit.client} {hit.session[:12]} turn {hit.turn}"
        yield f"{_day(hit.date) or 'no date'}  {place}{_optional('  {}', shorten(hit.title, 60))}"
        yield _wrapped(hit.snippet)


@_renders("ConversationRemoveRecord")
def _conversation_remove(record: "ConversationRemoveRecord") -> Lines:
    row = record.conversation
    what = f"{count_noun(row.turns, 'turn')} of {row.client} {row.session} ({row.title})"
    if not record.done:
        yield f"To be removed: {what}"
        return
    yield f"Removed {what}. The transcript file was not changed."
    if record.problem:
        problem = record.problem.rstrip(".")
        yield f"Bytes of it may be left in the file: {problem}. `quaid forget --finish` removes them."


# Links and facts


@_renders("LinkRecord")
def _link(record: "LinkRecord") -> Lines:
    link, source = record.link, _link_source(record.link)
    act = "Closed" if record.closed else "Linked"
    time = _optional(" ({})", validity(link))
    target = f"{_link_target(link)}{time}: link {link.id}"
    yield f"{act} {source} {link.relationship} {target} ({source} is at version {record.version})"
    yield from _receipt(record)


@_renders("LinksRecord")
def _links(record: "LinksRecord") -> Lines:
    outgoing = record.direction == "out"
    if not record.links:
        kind, hint = "outgoing links" if outgoing else "incoming links", ""
        if record.temporal != "all":
            kind, hint = f"{record.temporal} {kind}", "; --temporal all shows every link"
        yield f"{_address(record)} has no {kind} as of {record.as_of}{hint}"
        return
    kinds = {"wiki_link": "text", "programmatic": "added"}
    yield from format_table(
        (
            link.id,
            link.relationship,
            _link_target(link) if outgoing else _link_source(link),
            validity(link),
            kinds[link.source_kind],
            _one_line(link.context),
        )
        for link in record.links
    )
    yield _limited(len(record.links), record.total, "link")


@_renders("UnlinkRecord")
def _unlink(record: "UnlinkRecord") -> Lines:
    yield from (
        f"Removed link {link.id}: {link.from_slug} {link.relationship} {link.to_slug}"
        for link in record.removed
    )
    if record.from_text:
        ids = ", ".join(str(link.id) for link in record.from_text)
        yield f"Not removed, because they are in the text of {record.slug}: link {ids}"
    yield f"{record.slug} is at version {record.version}"


@_renders("PathRecord")
def _path(record: "PathRecord") -> Lines:
    if not record.found:
        problem = (
            "no path found" if record.complete else "the search stopped at its limit; there may be a path"
        )
        yield f"{record.from_slug} to {record.to_slug}: {problem} (--temporal all also follows links that have ended)"
        return
    yield record.pages[0]
    for link, page in zip(record.steps, record.pages[1:], strict=False):
        yield f"  {_arrow(link, page)} {page}"
    yield count_noun(len(record.steps), "step")


@_renders("GraphRecord")
def _graph(record: "GraphRecord") -> Lines:
    return {"text": _graph_tree, "dot": _graph_dot, "mermaid": _graph_mermaid}[record.form](record)


def _graph_tree(record: "GraphRecord") -> Lines:
    """Yield a graph as a tree.

    Each page is below the page from which it was reached, with the links between them.
    """
    links: dict[frozenset[str], list[Any]] = {}
    for link in record.links:
        links.setdefault(frozenset((link.from_slug, link.to_slug)), []).append(link)
    children: dict[str, list[Any]] = {}
    for node in record.nodes:
        if node.distance:
            children.setdefault(node.path[-2], []).append(node)

    def branch(node: Any) -> Lines:
        page = node.path[-1]
        between = links.get(frozenset(node.path[-2:]), []) if node.distance else []
        arrows = ", ".join(_arrow(link, page) for link in between[:3])
        yield f"{'  ' * node.distance}{arrows}{' ' if node.distance else ''}{page}  {node.title}"
        for child in children.get(page, ()):
            yield from branch(child)

    yield from branch(record.nodes[0])
    cut = "" if record.complete else "; there is more: --limit"
    figures = f"{count_noun(len(record.nodes), 'page')}, {count_noun(len(record.links), 'link')}"
    yield f"\n{figures} ({record.temporal}, {record.as_of}){cut}"


def _graph_dot(record: "GraphRecord") -> Lines:
    def quoted(text: str) -> str:  # in DOT, only backslashes, quotes and line breaks are special
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'

    yield "digraph quaid {\n  rankdir=LR;\n  node [shape=box, style=rounded];"
    for node in record.nodes:
        yield f"  {quoted(node.path[-1])} [label={quoted(node.title)}];"
    for link in record.links:
        label = quoted(f"{link.relationship} {validity(link)}".strip())
        yield f"  {quoted(link.from_slug)} -> {quoted(link.to_slug)} [label={label}];"
    yield "}"


def _graph_mermaid(record: "GraphRecord") -> Lines:
    def escaped(text: str) -> str:  # Mermaid has entities but no escape sequences
        entities = {'"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;", "\n": " "}
        return "".join(entities.get(letter, letter) for letter in text)

    names = {node.path[-1]: f"n{number}" for number, node in enumerate(record.nodes)}
    yield "graph LR"
    for node in record.nodes:
        yield f'  {names[node.path[-1]]}["{escaped(node.title)}"]'
    for link in record.links:
        label = escaped(f"{link.relationship} {validity(link)}".strip())
        yield f'  {names[link.from_slug]} -->|"{label}"| {names[link.to_slug]}'


@_renders("FactsRecord")
def _facts(record: "FactsRecord") -> Lines:
    heading = "the whole history" if record.history else f"as of {record.as_of}"
    yield f"{record.subject}{_optional(' ({})', record.slug)}: {heading}"
    for fact in record.facts:
        since = f"since {fact.since or 'an unknown day'}{_optional(', until {}', fact.until)}"
        yield f"  {fact.subject} {fact.predicate} {fact.object}: {since}"
        place = _optional(", {}", fact.part) + _optional(" {}", fact.part and fact.line)
        if fact.version:
            place += f"{'' if fact.part else ','} of version {fact.version}"
        details = (
            f"{fact.kind} {fact.id}",
            "" if fact.by == fact.kind else fact.by,
            fact.source,
            f"{fact.slug}{place}",
            f"confidence {fact.confidence:g}" if fact.confidence < 1 else "",
            _optional("superseded by fact {}", fact.superseded_by),
            _optional("supersedes fact {}", record.history and fact.supersedes),
        )
        yield "    " + "; ".join(filter(None, details))
    if not record.facts:
        yield "  no facts or links" + ("" if record.history else "; --history includes those that have ended")
    if len(record.facts) < record.total:
        yield f"  {_limited(len(record.facts), record.total, 'fact')}"
    if record.entries:
        yield "Dated entries:"
        yield from (f"  {_entry(entry)}  ({entry.slug}, timeline {entry.line})" for entry in record.entries)
        if len(record.entries) < record.total_entries:
            yield f"  {_limited(len(record.entries), record.total_entries, 'entry', 'entries')}"


def _fact_change(fact: Any) -> str:
    """Return a sentence on the change of a fact, given as a FactChange or an AssertRecord."""
    if fact.added:
        return f"Added fact {fact.id}"
    if not fact.changed:
        return f"Fact {fact.id} was already there"
    until = fact.fact.valid_until if hasattr(fact, "fact") else None
    change = ""
    if fact.ended_before:
        change = f"Moved the end of fact {fact.id} from {fact.ended_before}{_optional(' to {}', until)}"
    elif fact.ended:
        change = f"Ended fact {fact.id}{_optional(' on {}', until)}"
    if fact.witnessed:
        return f"{change}; added another source" if change else f"Added another source to fact {fact.id}"
    return change or f"Changed fact {fact.id}"


@_renders("AssertRecord")
def _assert(record: "AssertRecord") -> Lines:
    if not record.changed:
        yield f"{_address(record)} already has this fact (fact {record.id}); nothing was written"
        return
    fact = record.fact
    since = _optional(" since {}", record.added and fact.valid_from)
    ended = "".join(f"; ended fact {old}" for old in record.superseded)
    text = f"{fact.subject} {fact.predicate} {fact.object}{since}"
    yield f"{_fact_change(record)}: {text}{ended} ({_address(record)}, version {record.version})"
    yield from (
        f"Ended: {fact.says}{_optional(' until {}', fact.until)} (fact {fact.id})" for fact in record.replaced
    )
    yield from (
        f"Still holds: {fact.says}{_optional(' since {}', fact.since)} (fact {fact.id})"
        for fact in record.open_facts
    )
    yield from _receipt(record)


def _quote_place(quote: Any) -> str:
    return f"{quote.slug}, {quote.part}{_optional(' {}', quote.line)}"


def _contradiction(item: Any) -> Lines:
    yield f"{item.id}. {item.type}: {item.description}"
    for quote in item.quotes:
        yield f"    {_quote_place(quote)}: {quote.quote}{_optional(' [{}]', quote.source)}"


@_renders("CheckRecord")
def _check(record: "CheckRecord") -> Lines:
    if record.resolved:
        yield from _resolution(record)
        return
    for item in record.contradictions:
        yield from _contradiction(item)
    where = _optional(" in {}", record.slug)
    others = ""
    if count := record.open_of_other_types:
        others = f"; {count:,} of other types {'is' if count == 1 else 'are'} open"
    shown, total = len(record.contradictions), record.total
    if shown:
        more = _more(shown, total, f"; more: --limit {total}")
        remedy = "`quaid check --resolve ID --keep SIDE` resolves one (SIDE: left, right or both)"
        yield f"{_part_of(shown, total)}{total:,} open{where}{more}{others}; {remedy}"
    elif record.type:
        yield f"No {record.type} contradiction{where}{others or '; other types were not checked'}"
    else:
        yield f"No contradictions{where}"


def _resolution(record: Any) -> Lines:
    resolved = record.resolved
    if record.settled_before and not record.changed:
        act = f"{resolved.id} was already resolved on {_day(record.settled_before)}"
    else:
        act = f"Resolved {resolved.id}" + (" again" if record.settled_before else "")
    yield act + _optional(": {}", resolved.resolution)
    if record.kept == "both":
        yield "  Both statements are kept; --keep left or --keep right would end the other one"
    for change in record.changed:
        state = "has not ended" if change.kind == "link" else f"holds since {change.since}"
        if change.never_held:
            state = "never held"
        elif change.until:
            state = f"ended on {change.until}"
        yield f"  {change.kind} {change.id}, {change.says}: {state} ({change.slug})"
    yield from (f"  {_quote_place(quote)} still says: {quote.quote}" for quote in record.written)


@_renders("ContradictionsRecord")
def _contradictions(record: "ContradictionsRecord") -> Lines:
    for item in record.contradictions:
        yield from _contradiction(item)
    checked = f"as of the check on {_day(record.checked_at)}" if record.checked_at else "not checked yet"
    if record.checked_at and record.changed_pages:
        checked += f" ({count_noun(record.changed_pages, 'page')} changed since)"
    yield f"{record.total:,} open, {checked}; `quaid check` checks again"


# Knowledge base

NAMES_KB_COMMANDS = frozenset(
    "DoctorRecord KbCheck KbEditRecord KbInitReport KbLintRecord KbPushRecord KbRememberRecord KbStatus"
    " KbSyncRecord".split()
)
"""Records in whose text name_program() rewrites the commands for `quaid` or `ai-kb`.

Records that show texts of nodes are not listed, because these texts must not be rewritten.
"""


def names_kb_commands(record: Any) -> bool:
    """Return True if name_program() has to rewrite the text of a record, or of the items of a Named record."""
    name = type(record).__name__
    if name == "Named":
        items = record.value if isinstance(record.value, tuple) else ()
        name = type(items[0]).__name__ if items else ""
    return name in NAMES_KB_COMMANDS


def _node(node: Any) -> str:
    return f"{node.title} ({node.id})"


@_renders("KbQueryRecord")
def _kb_query(record: "KbQueryRecord") -> Lines:
    if not record.matches:
        yield f"No node matches {shorten(record.context, 80)!r}."
    for match in record.matches:
        details = [" ".join(match.projects), match.status, match.updated, match.path]
        details += [f"source {match.source}"] if match.source.startswith("raw/") else []
        details += [f"{', '.join(match.match)} {match.score:g}"]
        details += [] if match.relevance is None else [f"relevance {match.relevance:.2f}"]
        yield f"{_node(match)}: {match.summary}  [{'; '.join(details)}]"


def _linked_node(node: Any) -> str:
    return f"{_node(node)}  {node.path}"


@_renders("KbShowRecord")
def _kb_show(record: "KbShowRecord") -> Lines:
    yield _optional("! {}", record.note)
    if record.text is None:  # only the backlinks were requested
        yield from map(_linked_node, record.backlinks)
        yield "" if record.backlinks else f"No node links to {_node(record.node)}."
        return
    yield f"; {record.node.path}\n{record.text.rstrip()}"
    if record.backlinks:
        yield "\n; linked from"
        yield from (f";   {_linked_node(node)}" for node in record.backlinks)


def _findings(findings: Any) -> Lines:
    for finding in findings:
        style = "" if finding.fatal else "style: "
        remedy = finding.remedy[:1].upper() + finding.remedy[1:].removesuffix(".")
        yield f"{finding.path}:{finding.line}: {style}{finding.message}. {remedy}."


@_renders("KbListRecord")
def _kb_list(record: "KbListRecord") -> Lines:
    for node in record.nodes:
        yield f"{_node(node)}: {node.summary}  [{' '.join(node.projects)}; {node.status}; {node.updated}]"
    if len(record.nodes) < record.total:
        yield f"{len(record.nodes)} of {count_noun(record.total, 'node')}; --limit shows more."
    elif not record.nodes:
        yield "No node matches."


@_renders("KbEditRecord")
def _kb_edit(record: "KbEditRecord") -> Lines:
    yield from _findings(record.findings)
    if record.commit:
        yield f"Saved {_node(record.node)}"
        yield f"  {record.node.path}, commit {record.commit[:10]}"
    else:
        yield "Nothing was saved." if record.changed else "Nothing was changed."


@_renders("KbRememberRecord")
def _kb_remember(record: "KbRememberRecord") -> Lines:
    if not record.commit:
        yield from _findings(record.findings)
        yield "Nothing was written."
        return
    yield f"{'Wrote' if record.created else 'Added to'} {_node(record.node)}"
    yield f"  {record.node.path}, commit {record.commit[:10]}"
    for other in record.contradicts:
        yield f"! It contradicts {_node(other)}: {other.why}"
        yield f"    new: {shorten(other.one, 100)}"
        yield f"    old: {shorten(other.other, 100)}"
    if record.contradicts:
        yield "  All of them are now contested. A person decides: `ai-kb supersede` or `ai-kb contest --settle`."


@_renders("KbStatus")
def _kb_status(record: "KbStatus") -> Lines:
    changed = ", ".join(record.uncommitted[:3]) + (" …" if len(record.uncommitted) > 3 else "")
    yield from _key_values(
        ("store", record.root),
        ("nodes", f"{record.nodes:,}{_optional(', {} contested', record.contested)}"),
        ("remote", f"{record.remote or 'none'}, ahead {record.ahead}, behind {record.behind}"),
        ("indexed", record.indexed_at or "never by this machine"),
        ("raw", format_size(record.raw_bytes)),
        ("changed", changed),
        ("git", _optional("an unfinished {}", record.unfinished)),
        ("fetch", _optional("failed: {}", record.remote_problem)),
        ("push", _optional("failed: {}", record.push_problem)),
    )
    yield record.nudge


@_renders("KbInitReport")
def _kb_init(record: "KbInitReport") -> Lines:
    if record.commit:
        yield f"Created a knowledge base in {record.root}" if record.created else f"Repaired {record.root}"
        yield from map("  {}".format, record.files)
        if not record.remote:
            yield "It has no remote: `ai-kb init --remote URL` sets a private one to push to."
        yield "Next: `ai-kb remember`, `ai-kb query WORDS`, `ai-kb install-timer`."
    elif record.created:
        yield f"Cloned the knowledge base into {record.root}."
        yield "Next: `ai-kb query WORDS`, `ai-kb install-timer`."
    else:
        remote = _optional(" It is pushed to {}.", record.remote)
        yield f"{record.root} is already a knowledge base, and nothing is missing.{remote}"


@_renders("KbLintRecord")
def _kb_lint(record: "KbLintRecord") -> Lines:
    yield from _findings(record.findings)
    result = _optional("{} that would stop a commit", _count(record.fatal, "finding")) or "No errors"
    result += _optional(", {} on style", _count(len(record.findings) - record.fatal, "remark"))
    yield f"{result}; checked {count_noun(record.files, 'file')}, {count_noun(record.nodes, 'node')}."


@_renders("KbIndexRecord")
def _kb_index(record: "KbIndexRecord") -> Lines:
    yield from map("Added {}, which was not committed".format, record.taken_up)
    nodes, files = count_noun(record.nodes, "node"), ", ".join(record.files)
    result = f"Wrote {files} for {nodes}" if record.files else f"The index of {nodes} is up to date"
    yield result + (f", commit {record.commit[:10]}" if record.commit else ".")


@_renders("ChangeResult")
def _kb_commit(record: "ChangeResult") -> Lines:
    if record.commit:
        yield f"Committed {record.commit[:10]}:"
        yield from (f"  {path}" for path in record.paths)
    else:
        yield "Nothing has changed."


@_renders("KbCurateRecord")
def _kb_curate(record: "KbCurateRecord") -> Lines:
    if record.stamped:
        yield f"Marked {count_noun(record.stamped, 'node')} as reviewed."
        return
    report = record.report
    sections = {
        "Duplicates": [f"{_node(pair.one)} / {_node(pair.other)}: {pair.why}" for pair in report.duplicates],
        "Contested": map(_node, report.contested),
        "Superseded": map(_superseded_node, report.superseded),
        "Orphans": map(_node, report.orphans),
        "Over-broad": map(_node, report.broad),
        "Not edited for long": [f"{_node(node)} since {node.updated}" for node in report.untouched],
        "Raw captures without a node": report.raw_unused,
        "Large raw files": report.raw_large,
        "Next to review": [f"{_node(node)} {node.last_curated or 'never'}" for node in report.batch],
    }
    for title, items in sections.items():
        if lines := list(items):
            yield f"{title} ({len(lines)})"
            yield from _first(lines, "  {}".format, "  … and {} more; --json lists all", most=10)
    yield "Curation is due." if record.due else "Curation is not due yet."


def _superseded_node(item: Any) -> str:
    by = _optional(" by {}", ", ".join(node.title for node in item.by))
    linked = _optional("; still linked from {}", ", ".join(node.title for node in item.linked_from))
    return f"{_node(item.node)}{by}{linked}"


@_renders("KbPushRecord")
def _kb_push(record: "KbPushRecord") -> Lines:
    yield {
        "pushed": "Pushed.",
        "nothing": f"Nothing to push{_optional(': {}', record.problem)}.",
        "rejected": f"Not pushed: {record.problem}. Nothing is lost; `ai-kb doctor` says what to do.",
        "unreachable": f"The remote was not reached: {record.problem}. Commits not pushed: {record.ahead}.",
    }[record.outcome]


@_renders("KbCaptureRecord")
def _kb_capture(record: "KbCaptureRecord") -> Lines:
    cut = " The excerpt was cut at 2,000 words or 16 KB." if record.cut else ""
    yield f"Captured {record.path}{_optional(' and {}', record.file)}, commit {record.commit[:10]}.{cut}"
    yield f"To cite it in a node: --source {record.path}"


@_renders("KbSyncRecord")
def _kb_sync(record: "KbSyncRecord") -> Lines:
    partly = f", except for a node: {record.problem}" if record.problem else "."
    yield {
        "failed": f"Emacs could not build {record.database}: {record.problem}",
        "fresh": f"{record.database} is up to date.",
        "synced": f"Updated {record.database}{partly}",
    }.get(record.state, record.problem)


@_renders("KbTimerReport")
def _kb_timer(record: "KbTimerReport") -> Lines:
    yield from map("Wrote {}".format, record.written)
    yield from map("{} is up to date".format, record.unchanged)
    if record.enabled:
        yield "The knowledge base is pushed every 15 minutes."
    yield _optional("! {}", record.problem)
    if record.to_run:
        yield "Add this line to your crontab (`crontab -e`):" if record.kind == "cron" else "Then run:"
        yield from map("  {}".format, record.to_run)


@_renders("KbChangeRecord")
def _kb_change(record: "KbChangeRecord") -> Lines:
    yield f"Done: {record.act}, commit {record.commit[:10]}" if record.done else f"To be done: {record.act}"
    yield from map("  {}".format, record.files)
    if record.pointers:
        yield "Project notes that refer to it by its ID:"
        yield from map("  {}".format, record.pointers)


# Overviews


@_renders("Stats")
def _stats(record: "Stats") -> Lines:
    yield from format_table(
        [
            ("pages", f"{record.pages:,}"),
            *((f"  {name}", f"{count:,}") for name, count in record.pages_by_type.items()),
            ("links", f"{record.links:,}"),
            ("tags", f"{record.tags:,}"),
            ("timeline entries", f"{record.timeline_entries:,}"),
            ("raw data", f"{record.raw_data:,}"),
            ("contradictions", f"{record.contradictions:,}"),
            ("gaps", f"{record.gaps:,}"),
            ("imports", f"{record.imports:,}"),
            ("embeddings", count_noun(record.chunks, "chunk") + _optional(" ({})", record.model)),
            ("size", f"{format_size(record.size)}, log {format_size(record.wal_size)}"),
            ("last change", record.updated_at or "none"),
            ("schema", record.schema_version),
            ("memory", record.path),
        ]
    )


@_renders("BriefingRecord")
def _briefing(record: "BriefingRecord") -> Lines:
    yield f"As of {record.as_of}: new since {record.since}, due until {record.due_until}."
    for title, part in record.parts.items():
        if not part.items:
            continue
        yield f"\n{title} ({_part_of(len(part.items), part.total)}{part.total:,})"
        for item in part.items:
            page = item.slug if item.id is None else f"{item.slug} [{item.id}]".strip()
            text = f"{item.state}{_optional(': {}', item.text)}{_optional(' ({})', item.owner)}"
            yield f"  {item.day or 'no day':10}  {page}  {text}"
    empty = ", ".join(title.lower() for title, part in record.parts.items() if not part.items)
    yield _optional("\nNothing under: {}.", empty)
    yield from map("({})".format, record.notes)
    if record.next_steps:
        yield "\nNext"
        yield from map("  {}".format, record.next_steps)


@_renders("TodayRecord")
def _today(record: "TodayRecord") -> Lines:
    yield f"{record.day}. New since {record.since}."
    items = (*record.due, *record.later, *record.undated)
    if items:
        later = f", {record.later_total:,} later" if record.later else ""
        yield f"\nDue ({record.due_total:,}{later}), and {count_noun(record.undated_total, 'item')} without a day"
    for item in items:
        late = " overdue" if item.day and item.day < record.day else ""
        place = f"{item.kind}, {item.slug}{_optional(', {}', item.owner)}"
        yield f"  {item.day or 'no day':10}{late}  {item.words} ({place})"
    if record.log:
        yield "\nLog of today"
    for entry in reversed(record.log):
        yield f"  {entry.source or '--:--':5}  {_one_line(entry.text)}"
    if record.changed:
        yield f"\nChanged ({record.changed_total:,})"
    for group in record.changed:
        titles = ", ".join(page.title for page in group.items)
        titles += _more(len(group.items), group.pages, ", …")
        yield f"  {group.who}{_optional(' ({})', group.source)}, {count_noun(group.pages, 'page')}: {titles}"
    if record.facts:
        yield "\nFacts"
        yield from (f"  {line.day:10}  {line.state}: {line.text} ({line.slug})" for line in record.facts)
    if record.waiting:
        yield "\nWaiting for you"
        yield from (f"  {item.text} ({item.cost})" for item in record.waiting)
    if not any((items, record.log, record.changed, record.facts, record.waiting)):
        yield "Nothing is due, nothing changed, and nothing waits for you."


@_renders("TickRecord")
def _tick(record: "TickRecord") -> Lines:
    state = "done" if record.done else "open"
    yield f"{record.text}: {state if record.changed else f'was {state} before'}"


@_renders("DaysRecord")
def _days(record: "DaysRecord") -> Lines:
    if not record.dated:
        yield "No dated items match."
    for day, items in groupby(record.dated, lambda item: item.day):
        yield day
        for item in items:
            kind = f"({item.kind}{_optional(' {}', item.state)}){_optional(' [{}]', item.source)}"
            yield f"  {item.slug}  {kind} {_one_line(item.text) or item.title}"
    if record.more:
        yield f"More: --offset {record.offset + len(record.dated)}"
    yield from map("({})".format, record.notes)


@_renders("WingsRecord")
def _wings(record: "WingsRecord") -> Lines:
    if not record.wings:
        yield "No pages yet."
        return
    for title, counts in (("Wings", record.wings), ("Types", record.types)):
        yield title
        yield from format_table((f"  {item.name}", f"{item.pages:>7,}") for item in counts)
    yield "Collections"
    yield from map("  {}".format, record.collections)


@_renders("WingRecord")
def _wing(record: "WingRecord") -> Lines:
    yield from (f"{node.slug}  {node.title} ({node.type})" for node in record.nodes)
    yield from (f"  {link.from_slug} -[{link.relationship}]-> {link.to_slug}" for link in record.links)
    pages = _part_of(len(record.nodes), record.pages) + count_noun(record.pages, "page")
    yield f"{pages} in {record.wing}, {count_noun(len(record.links), 'link')} between them"


@_renders("FoldersRecord")
def _folders(record: "FoldersRecord") -> Lines:
    yield from (folder.path for folder in record.folders)
    owner = _optional(" It belongs to the collection {}.", record.collection)
    yield f"{record.path} has {count_noun(record.notes, 'note')}.{owner}"


@_renders("MapRecord")
def _map(record: "MapRecord") -> Lines:
    if not record.nodes:
        yield "No pages yet."
        return
    yield from format_table(
        (f"{node.links:>6,}", node.slug, f"{node.title} ({node.type})") for node in record.nodes
    )
    pages = _part_of(len(record.nodes), record.pages) + count_noun(record.pages, "page")
    yield f"{pages}, {count_noun(len(record.links) // 6, 'link')} between them"


def _gap_question(gap: Any) -> str:
    words = gap.query_text or gap.redacted_query
    return _one_line(words) if words else f"#{gap.query_hash[:12]}"


@_renders("GoldenQuestion")
def _golden_question(row: "GoldenQuestion") -> Lines:
    gone = f", {count_noun(row.missing, 'page')} gone" if row.missing else ""
    yield f"{row.id:>4}  {_one_line(row.question)}"
    yield f"      {', '.join(row.expected) or 'no page'} (among the first {row.within}{gone})"


@_renders("GoldenSuggestion")
def _golden_suggestion(row: "GoldenSuggestion") -> Lines:
    yield f"{_one_line(row.question)}"
    yield f"      {row.slug} ({row.reason})"
    yield f"      {_one_line(row.next_step)}"


@_renders("GoldenRun")
def _golden_run(record: "GoldenRun") -> Lines:
    for row in record.results:
        ranks = ", ".join(
            f"{page} at {rank}" if rank else f"{page} not found"
            for page, rank in zip(row.expected, row.ranks, strict=True)
        )
        yield f"{'ok  ' if row.passed else 'FAIL'}  {row.id:>3}  {_one_line(row.question)}"
        problem = "" if None in row.ranks and not row.problem.endswith("memory") else row.problem
        yield f"           {'; '.join(filter(None, (ranks, problem)))}"
    yield from map("Note: {}".format, record.notes)
    if not record.results:
        yield "No golden questions. `quaid golden add QUESTION --expect SLUG` adds one."
        return
    total = count_noun(len(record.results), "golden question")
    yield f"{record.passed:,} of {total} passed ({record.cpu_seconds} s CPU)"


@_renders("GoldenTry")
def _golden_try(record: "GoldenTry") -> Lines:
    yield from _golden_run(record.run)
    yield f"That was {record.program}: {record.version}"
    yield from (f"Passes now, fails there: {_one_line(question)}" for question in record.worse)
    if not record.worse:
        yield "No question that passes now fails with it."


@_renders("BenchRecord")
def _bench(record: "BenchRecord") -> Lines:
    def share(number: int, asked: int) -> str:
        return f"{number * 100 // asked} % ({number} of {asked})" if asked else "not measured"

    title, words, search = record.by_title, record.by_words, record.by_words_search
    stored = f"{count_noun(record.pages, 'page')}, {count_noun(record.chunks, 'chunk')}"
    rows = [
        ("what", "figure", "meaning"),
        ("memory", format_size(record.size), stored),
        ("vectors", f"{record.vectors:,}", record.model or "semantic search is off"),
        ("by title", share(title.first, title.asked), "query finds the page first"),
        ("by words, first", share(words.first, words.asked), "query with words of one sentence of a page"),
        ("by words, top 5", share(words.top, words.asked), "the same: among the first five"),
        ("search, top 5", share(search.top, search.asked), "the same words with search"),
        ("golden questions", share(record.golden_passed, record.golden_asked), "your own questions"),
        ("first question", f"{record.load_ms:.0f} ms CPU", "loads the model; a server does this once"),
    ]
    for name, speed in record.speeds.items():
        meaning = f"median of {speed.runs}; elapsed {speed.wall_p50:.1f}, p95 {speed.wall_p95:.1f}"
        rows.append((name, f"{speed.cpu_p50:.1f} ms CPU, p95 {speed.cpu_p95:.1f}", meaning))
    yield from format_table(rows)
    yield f"{'Stopped after' if record.stopped else 'Took'} {record.seconds} s; nothing was written."
    yield from map("Next: {}".format, record.next_steps)


@_renders("GapsRecord")
def _gaps(record: "GapsRecord") -> Lines:
    if not record.gaps:
        yield "No open gaps."
        return
    for gap in record.gaps:
        times = "once" if gap.times_seen == 1 else f"{gap.times_seen} times"
        details = f"{gap.sensitivity}, asked {times}, last on {_day(gap.last_seen_at)}"
        yield f"{gap.id:>4}  {_gap_question(gap)}  ({details})"
        yield _optional("      may be asked outside as: {}", gap.query_text and gap.redacted_query)
        yield _optional("      {}", gap.context)
        if gap.resolved_at:
            yield f"      resolved on {_day(gap.resolved_at)}{_optional(' by {}', gap.resolved_by_slug)}"
    yield _limited(len(record.gaps), record.total, "gap")
    if any(gap.approved_by is None and gap.resolved_at is None for gap in record.gaps):
        yield "The words of a question are stored only after approval: quaid gaps approve ID --help"


@_renders("GapRecord")
def _gap(record: "GapRecord") -> Lines:
    gap = record.gap
    result = {
        "logged": "recorded; only the hash of the question is stored",
        "counted": f"already recorded: asked {count_noun(gap.times_seen, 'time')} since {_day(gap.detected_at)}",
        "approved": f"approved by {gap.approved_by} ({gap.sensitivity}): {_gap_question(gap)}",
        "resolved": f"resolved{_optional(' by {}', gap.resolved_by_slug)}",
    }
    yield f"Gap {gap.id} {result[record.done]}"


@_renders("GapsClearRecord")
def _gaps_clear(record: "GapsClearRecord") -> Lines:
    closed = _optional("Closed {} whose words are not stored", _count(record.closed, "gap"))
    left = _optional("; {:,} with their words stay open", record.open)
    yield f"{closed or 'The words of all open gaps are stored'}{left}"


# Import, export and ingest

IMPORT_OUTCOMES = {
    "new": "new",
    "changed": "changed",
    "unchanged": "unchanged",
    "edited": "unchanged, edited here since: left alone",
    "conflict": "in conflict: left as they are here",
    "too_large": "too large",
    "failed": "failed",
    "special": "stored, but not as pages (index, schema, README)",
    "sidecar": "sidecars with raw data",
    "links_and_facts": "with links and facts that are not in any text",
    "left_out": "left out",
}


@_renders("ImportRecord")
def _import(record: "ImportRecord") -> Lines:
    report = record.report
    more = "  and {} more; --json lists all"
    if talks := record.conversations:
        yield _new_turns(talks)
        yield _masked_secrets(talks)
        yield from _first(talks.problems, _note, more)
    if record.unread:
        yield f"Not read: {count_noun(len(record.unread), 'part')}"
        yield from (f"  {number:>7,}  {reason}" for reason, number in (record.reasons or {}).items())
        yield from _first(record.unread, lambda part: f"  {part.path}: {part.reason}", more)
    if not report.files_seen:
        yield f"{report.folder} has no {'files' if record.reasons is None else 'notes or memories'}."
        return
    yield f"{report.folder}: {count_noun(report.files_seen, 'file' if record.reasons is None else 'page')}"
    for name, text in IMPORT_OUTCOMES.items():
        if number := report.outcomes[name]:
            yield f"  {number:>7,}  {_noun(number, text)}"
    yield from (f"           {number:>7,}  {reason}" for reason, number in report.left_out.items())
    yield from (_note(note, "") for note in report.notes)
    for conflict in report.conflicts:
        yield f"{conflict.path}: the file and the page have both changed; to take the file: {conflict.remedy}"
    yield _optional("deleted since the last import: {}; their pages stay", _count(len(report.gone), "file"))
    yield _optional("images copied: {:,}", report.images)
    if report.import_id is None:
        yield f"Nothing was changed ({record.cpu_seconds:.2f} s CPU)"
    else:
        yield from _page_counts(report)
        if report.outcomes["links_and_facts"]:
            yield f"links restored: {report.links:,}, facts restored: {report.facts:,}"
        yield f"Import {report.import_id} done ({record.cpu_seconds:.2f} s CPU)"
    yield _optional("Next: {}", record.next_step)


@_renders("ExportReport")
def _export(record: "ExportReport") -> Lines:
    what = f"the files of import {record.import_id}" if record.import_id else count_noun(record.pages, "page")
    files = f"{count_noun(record.files, 'file')}, {format_size(record.bytes)}"
    yield f"Wrote {what} to {record.folder}: {files}"
    if len(record.collections) > 1:
        yield from format_table(
            (
                f"  {item.name}",
                count_noun(item.pages, "page"),
                f"{record.folder}{_optional('/{}', item.folder)}",
            )
            for item in record.collections
        )
    if record.links or record.facts:
        beside = f"{count_noun(record.links, 'link')} and {count_noun(record.facts, 'fact')}"
        file = f"{record.folder}/.quaid/links-and-facts.json"
        places = {
            "markdown": f"in {file}",
            "okf": f"in {file}",
            "obsidian": f"at the end of each note and in {file}",
            "jsonl": "as lines of their own",
        }
        yield f"Not in the texts: {beside}, {places.get(record.format, 'below the heading Facts')}"
    if record.trouble:
        yield f"Links and facts are missing: {record.trouble.rstrip('.')}"
    quarantined = _count(record.quarantined, "page")
    yield _optional(
        "Not written: {} in quarantine; `quaid collection quarantine export` writes them", quarantined
    )
    if record.unread:
        yield f"Damaged, and left out: {count_noun(len(record.unread), 'page')}: {', '.join(record.unread)}"


@_renders("GitSetupRecord")
def _git_setup(record: "GitSetupRecord") -> Lines:
    yield from (f"{'Would change' if record.dry_run else 'Changed'} {change}" for change in record.changed)
    if not record.changed:
        yield f"Nothing to change in {record.folder}"
    elif record.driver and not record.dry_run:
        yield "Commit .gitattributes, and run `quaid git-setup` in every other clone"


@_renders("ConflictCopiesRecord")
def _conflict_copies(record: "ConflictCopiesRecord") -> Lines:
    for copy in record.copies:
        conflicts = _optional(", {} to decide with `quaid review`", _count(copy.conflicts, "conflict"))
        notes = {
            "found": f"a conflict copy{_optional(' of {}', copy.page)}",
            "merged": f"merged into {copy.page}{conflicts}",
            "left": f"not merged: {copy.problem}",
        }
        yield f"{copy.collection}/{copy.path}: {notes[copy.state]}"
    if not record.copies:
        yield "No conflict copies"
    elif any(copy.state == "found" for copy in record.copies):
        yield "`quaid collection conflicts --merge` merges them"


@_renders("IngestRecord")
def _ingest(record: "IngestRecord") -> Lines:
    yield from (f"{record.source_ref}: {note}" for note in record.notes)
    if record.source_type == "mail" and record.notes and not record.source_page:
        yield f"Import {record.import_id} done" if record.written else "Nothing was changed"
        return
    if not record.written:
        earlier = ", ".join(dict.fromkeys(filter(None, (record.source_page, *record.known_pages))))
        when = f"{_day(record.known_since)}{_optional(' ({})', earlier)}"
        yield f"{record.source_ref} was already ingested on {when}; nothing was written. --force ingests it again"
        return
    acts = {"created": "Created", "updated": "Updated", "unchanged": "Unchanged:"}
    for page in record.pages:
        yield f"{acts[page.outcome]} {page.slug}, version {page.version}{_ingested_parts(page)}"
        yield from _removed_front_matter(page)
        yield from map("({})".format, page.notes)
    yield from map("Skipped, because this source has already changed it: {}".format, record.known_pages)
    source = f"{record.source_type} {record.source_ref}"
    yield f"Source stored: {source} as {record.source_page} (import {record.import_id})"
    yield from map("Gap {} is answered".format, record.gaps_resolved)
    yield from (f"No link from {link.page} to {link.slug}: {link.why}" for link in record.links_skipped)
    yield from _receipt(record)
    yield _optional("Next: {}", record.next_step)


def _ingested_parts(page: Any) -> str:
    """Return the changes that an ingest made to a page, in parentheses."""
    parts = (
        _optional("truth: {}", page.outcome != "created" and page.truth),
        _count(page.timeline_entries, "timeline entry", "timeline entries"),
        _count(page.tags, "tag"),
        _count(page.links, "link"),
        _count(page.assertions, "fact"),
        "--force also writes the truth" if page.truth == "same words" else "",
    )
    return _optional(" ({})", "; ".join(filter(None, parts)))


# Activity of agents


@_renders("ActivityRecord")
def _activity(record: "ActivityRecord") -> Lines:
    for session in record.sessions:
        began, ended = session.began_at[:16].replace("T", " "), session.ended_at[11:16]
        counts = f"{count_noun(session.reads, 'read')}, {count_noun(session.writes, 'write')}"
        counts += _optional(", {:,} failed", session.failed)
        yield f"{session.client}  {began}–{ended}  {counts}  session {session.session}"
        for call in session.calls:
            state = call.decision or ("" if call.outcome == "done" else call.outcome)
            if call.proposal and not call.decision:
                state = f"proposal {call.proposal}"
            number = f"{call.id:>6}" if call.is_write else " " * 6
            pages = [page.slug for page in (*call.written, *call.read)]
            places = ", ".join(pages[:5]) + (f" and {len(pages) - 5} more" if len(pages) > 5 else "")
            yield f"{number}  {call.at[11:16]}  {call.tool}{_optional('  {}', places)}{_optional('  ({})', state)}"
            yield from (_indented(page.diff, 10) for page in call.written)
    if not record.sessions:
        yield f"No calls of agents{' are recorded' if record.is_on else ': the setting log_activity is off'}"
    elif any(call.is_write for session in record.sessions for call in session.calls):
        yield "`quaid activity accept ID` marks a write as seen, `quaid activity undo ID` restores the text before it"


@_renders("ActivityDecision")
def _activity_decision(record: "ActivityDecision") -> Lines:
    if record.accepted or not (record.undone or record.erased or record.would_erase):
        yield f"Accepted {count_noun(record.accepted, 'write')}"
    yield _optional("Restored the text before this write: {}", ", ".join(record.undone))
    yield _optional("Erased {}", ", ".join(record.erased))
    created = ", ".join(record.would_erase)
    yield _optional("The write created {}: undoing it erases what it created", created)


# Cleaning up


@_renders("DupesRecord")
def _dupes(record: "DupesRecord") -> Lines:
    if record.compared_at is None:
        yield "The pages were not compared yet; `quaid dupes` compares them."
        return
    if not record.pairs:
        yield f"No duplicates among {count_noun(record.pages, 'page')}."
        return
    for pair in record.pairs:
        yield f"{f'{pair.likeness:.2f}' if pair.likeness is not None else '    '}  {pair.slug}  {pair.title}"
        yield f"      {pair.other}  {pair.other_title}"
        yield f"      same {', '.join(pair.why)}; to merge them: {pair.command}"
    yield f"Among {count_noun(record.pages, 'page')}: {_limited(len(record.pairs), record.total, 'pair')}"


@_renders("MergeRecord")
def _merge(record: "MergeRecord") -> Lines:
    moved = record.moved
    yield f"{'Merged' if record.done else 'Merging'} {record.gone} into {record.kept}:"
    joined = _optional(
        ", {:,} joined with one of the same relationship whose time overlaps", moved.links_joined
    )
    same = _optional(", {:,} of which both pages had", moved.assertions_same)
    renamed = _optional(", renamed: {}", ", ".join(moved.raw_data_renamed))
    tags, aliases = (_optional(": {}", ", ".join(names)) for names in (record.tags, record.aliases))
    counts = (
        (record.entries, "timeline entry", "timeline entries", ""),
        (len(record.tags), "tag", "tags", tags),
        (len(record.aliases), "alias", "aliases", aliases),
        (moved.links, "added link", "added links", joined),
        (moved.links_in_texts, "link in the text of another page", "links in texts of other pages", ""),
        (moved.links_between, "link between the two, which goes", "links between the two, which go", ""),
        (moved.assertions, "fact", "facts", same),
        (moved.raw_data, "raw data of a source", "raw data of sources", renamed),
        (moved.imports, "imported file, as history", "imported files, as history", ""),
        (moved.contradictions, "contradiction", "contradictions", ""),
        (moved.gaps, "gap that it answered", "gaps that it answered", ""),
    )
    for number, one, several, details in counts:
        if number:
            yield f"  {number:>5,}  {one if number == 1 else several}{details}"
    if not record.truth:
        yield "  its text adds nothing"
    elif not record.done:
        yield "  text that is added:"
        yield _indented(shorten(record.truth, 2000).strip("\n"), 4)
    version = f"version {record.version}" if record.done else "nothing is changed yet"
    yield f"{record.gone} redirects to {record.kept}; {version}"


@_renders("DistinctRecord")
def _distinct(record: "DistinctRecord") -> Lines:
    state = (
        "are marked as distinct; `quaid dupes` no longer lists them"
        if record.changed
        else "were already marked as distinct"
    )
    yield f"{record.slug} and {record.other} {state}"


def _erasure(record: Any, layers: Sequence[Any]) -> Lines:
    """Yield the counts of erased rows, and the results of the search for remains."""
    yield f"Forgot {record.slug}{'.' if record.clean else ', but some of it is left.'}"
    for layer in layers:
        noun, left = _noun(layer.before, layer.name), count_noun(layer.after, "row")
        yield f"  {layer.before:>7,}  {noun}: {left} now"
    others = ", ".join(layer.name for layer in record.layers if layer not in layers)
    yield _optional("           0 rows before and now: {}", others)
    yield "Searched for remains:"
    for proof in record.proof:
        remains = f"{len(proof.found):,} found: {_some(proof.found)}" if proof.found else "none found"
        yield f"  {proof.where}: {remains}"
    yield from _first(
        record.mentions,
        lambda mention: f"  still mentioned by {_some(mention.said_by)}: {shorten(mention.text, 60)}",
        "  and {} more; --json lists all",
        most=8,
    )
    yield _optional("The page is gone from the memory, but bytes may be left in its file: {}", record.problem)
    yield record.hub


@_renders("ForgetRecord")
def _forget(record: "ForgetRecord") -> Lines:
    if not record.slug:
        yield record.problem or "The file was rewritten without the deleted content, and its log is empty."
        return
    layers = [layer for layer in record.layers if layer.before or layer.after]
    if record.done:
        yield from _erasure(record, layers)
    else:
        yield f"To be deleted: {record.slug} ({record.title})"
        yield from (f"  {layer.before:>7,}  {_noun(layer.before, layer.name)}" for layer in layers)
    for backup in record.backups:
        if backup.deleted or backup.holds_it:
            yield _backup_note(backup, record.done)
    files = _some(record.files)
    yield _optional("It was imported from {}. The next import of that folder brings it back.", files)


@_renders("ExpireRecord")
def _expire(record: "ExpireRecord") -> Lines:
    when = "does not expire" if record.expires == "never" else f"expires: {record.expires}"
    yield f"{record.slug}, version {record.version}: {when}" + ("" if record.changed else " (unchanged)")


@_renders("ExpiredRecord")
def _expired(record: "ExpiredRecord") -> Lines:
    yield from map("Kept {}".format, record.kept)
    for erased in record.erased:
        yield from _forget(erased)
    yield from record.problems
    if not record.items and not record.kept and not record.erased:
        yield "Nothing has expired."
    for item in record.items:
        name = item.slug if item.kind == "page" else f"{item.kind} of {item.slug}"
        end = _optional("erased from {} on", item.erased_on) or "stays hidden until you keep or erase it"
        yield f"{item.id:>5}  {name} ({item.title}), expired: {item.reason}; {end}"
        yield from (f"       {line}" for line in item.text.rstrip("\n").split("\n") if item.text)
    if record.items and not record.ask:
        yield f"`quaid expired ID --keep` brings one back; `--now` erases. Grace period: {record.grace}."
    yield from (f"{key}: {period} after the last change" for key, period in record.retention)


def _backup_note(backup: Any, done: bool) -> str:
    size = format_size(backup.size)
    if backup.deleted:
        return f"Deleted the backup {backup.path} ({size})."
    foreign = backup.made_by == "somebody"
    owner = "another memory" if foreign else "a copy of this memory"
    remedy = "delete it yourself" if foreign or done else "--backups deletes it"
    return f"{backup.path} ({size}) is {owner} that contains the page; {remedy}."


# Collections


CONFIRMABLE_PROBLEMS = ("missing at once", "is empty", "another one", "would hide", "is a link")
"""Phrases in the reason for a halted sync that the user can override with --confirm-deletes.

A halt because of an unreadable folder cannot be overridden.
"""


def _is_confirmable(reason: str) -> bool:
    return any(part in reason for part in CONFIRMABLE_PROBLEMS)


@_renders("CollectionInfoRecord")
def _collection_info(record: "CollectionInfoRecord") -> Lines:
    item = record.collection
    read_only = "" if item.writable else ", read-only"
    counts = f"{count_noun(item.pages, 'page')} of {count_noun(item.files, 'file')}"
    yield f"{item.name}: {item.root or 'in the database'}"
    yield f"  {item.state}{read_only}, {item.kind}, {counts}, last synced {item.last_sync_at or 'never'}"
    if record.missing:
        yield "  The folder does not exist. Restore it and run `quaid collection sync`, or detach it:"
        yield f"  `quaid collection remove {item.name} --keep-pages` keeps the pages in the memory, and"
        yield f"  `quaid collection restore {item.name} FOLDER` writes them as files into a new folder."
    if item.halted:
        confirm = " --confirm-deletes" if _is_confirmable(item.halted) else ""
        yield f"  Waits for you: {item.halted}. `quaid collection sync {item.name}{confirm}` continues."
    yield _optional("  .quaidignore is not in force: {}", item.ignore_problem)
    ignored = [line for line in record.ignore_patterns.splitlines() if line.strip() and line[0] != "#"]
    yield _optional("  Ignored: {}", ", ".join(ignored[:10]))
    if item.quarantined:
        only_here = _optional(", {} of them with data that is in no file", len(record.waiting))
        yield f"  In quarantine: {count_noun(item.quarantined, 'page')}{only_here}"
    yield from map(_note, record.problems)


@_renders("CollectionAddRecord")
def _collection_add(record: "CollectionAddRecord") -> Lines:
    item = record.collection
    yield f"Attached {item.name}: {item.root}{'' if item.writable else ' (read-only)'}"
    yield render(record.sync)
    if record.links or record.facts:
        yield f"  links restored: {record.links:,}, facts restored: {record.facts:,}"
    yield from map("  .quaid/links-and-facts.json: {}".format, record.problems)
    if record.sync.new:
        yield "Next: quaid search WORDS, quaid embed for semantic search, quaid watch to sync changes"


@_renders("RebuiltRecord")
def _rebuilt(record: "RebuiltRecord") -> Lines:
    yield f"Rebuilt the index of {count_noun(record.pages, 'page')}."
    yield from map(render, record.syncs)
    yield _optional("Made {}", _count(record.vectors, "vector"))
    yield _optional("Missing vectors could not be made: {}", record.problem)


SYNC_COUNTS = {"new": "new", "changed": "changed", "moved": "moved", "removed": "deleted"}


def _sync_counts(sync: Any, **others: str) -> str:
    return _counts({text: getattr(sync, name) for name, text in {**SYNC_COUNTS, **others}.items()})


def _quarantine_note(pages: int) -> str:
    return (
        f"  {count_noun(pages, 'page')} moved to quarantine: hidden, and kept for {QUARANTINE_DAYS} days in case the"
        " file comes back"
    )


@_renders("SyncReport")
def _sync(record: "SyncReport") -> Lines:
    counts = _sync_counts(record, hidden="newly ignored", failed="failed", unchanged="unchanged")
    yield f"{record.collection}: {count_noun(record.files, 'file')}: {counts or 'nothing to do'}"
    if record.types or record.raw_data:
        yield from map("  {}".format, _page_counts(record))
    left_out = [f"{reason} {number:,}" for reason, number in sorted(record.left_out.items()) if number]
    yield _optional("  left out: {}", ", ".join(left_out))
    if quarantined := record.removed + record.hidden:
        yield _quarantine_note(quarantined)
        them = "it" if quarantined == 1 else "them"
        yield f"  `quaid collection quarantine list {record.collection}` lists {them}"
    if record.discarded:
        yield f"  {count_noun(record.discarded, 'page')} deleted from quarantine, 30 days after the file was deleted"
    # The notes on failed files come first, and all of them are printed.
    most = max(MOST_LINES, record.failed)
    yield from _first(record.notes, _note, "  and {} more notes; --json lists all", most)
    if record.halted:
        waiting = _optional(" {}.", _count(record.waiting, "page stays", "pages stay"))
        yield f"  Nothing was removed: {record.halted}.{waiting}"
        if record.waiting and _is_confirmable(record.halted):
            case = "that is intended" if "would hide" in record.halted else "the files are gone for good"
            yield f"  If {case}: quaid collection sync {record.collection} --confirm-deletes"


@_renders("CollectionRemoveRecord")
def _collection_remove(record: "CollectionRemoveRecord") -> Lines:
    note = f"In quarantine for {QUARANTINE_DAYS} days, for data that is in no file: {count_noun(record.kept, 'page')}"
    changes_pages = record.removed or record.kept
    if record.done:
        removed = f"{count_noun(record.removed, 'page')} removed from the memory"
        pages = removed if changes_pages else "its pages stay"
        yield f"Detached {record.name}: {pages}; the folder was not changed"
        if record.kept:
            them = "it" if record.kept == 1 else "them"
            yield f"{note}; `quaid collection quarantine list` lists {them}"
        return
    yield f"To be detached: {record.name} ({record.root}). The folder is not changed."
    pages = _count(record.removed, "page")
    yield _optional("  {} would leave the memory with their history; the files stay", pages)
    yield f"  {note}" if record.kept else ""
    yield "  --keep-pages keeps all pages in the memory" if changes_pages else ""


@_renders("RestoreRecord")
def _restore(record: "RestoreRecord") -> Lines:
    yield f"Wrote {count_noun(record.files, 'file')} of {record.name} to {record.root}, {format_size(record.bytes)}"
    yield _optional("The original bytes are not stored for {}", ", ".join(record.without_bytes[:20]))
    yield _optional("{} is unchanged and is no longer synced", record.left)


@_renders("AuditRecord")
def _audit(record: "AuditRecord") -> Lines:
    yield from format_table(record.differences)
    counts = f"{record.name}: {count_noun(record.files, 'file')}, {count_noun(record.pages, 'page')}"
    differences = _optional(", {}", _count(len(record.differences), "difference"))
    yield f"{counts}{differences or ': files, pages and stored bytes agree'}"


@_renders("IdsReport")
def _ids(record: "IdsReport") -> Lines:
    act = "would get" if record.is_rehearsal else "got"
    yield f"{record.collection}: {count_noun(record.written, 'file')} {act} an id, {record.had:,} already had one"
    if record.left:
        yield f"Unchanged: {count_noun(len(record.left), 'file')}"
        yield from map(_note, record.left)


@_renders("IgnoreRecord")
def _ignore(record: "IgnoreRecord") -> Lines:
    if record.built_in:
        yield from record.patterns or [f"{record.name} has no ignore patterns"]
        yield _optional(".quaidignore is not in force; the last valid version is: {}", record.problem)
        yield f"Always ignored: {' '.join(record.built_in)}"
        return
    patterns = ", ".join(record.patterns)
    if not record.changed:
        yield f"Nothing to change: {patterns or 'no patterns'}"
        return
    yield f"{record.name} ignores: {patterns or 'only what is always ignored'}"
    titles = {"Hidden now, their pages in quarantine": record.hidden, "Visible now": record.shown}
    for title, paths in titles.items():
        if paths:
            yield f"{title}: {count_noun(len(paths), 'file')}"
            yield from _first(paths, "  {}".format, "  and {} more")
    if not record.hidden and not record.shown:
        yield "No file became hidden or visible"
    if record.sync:
        yield _optional("Nothing else was removed: {}", record.sync.halted)


def _quarantine_data(page: Any) -> str:
    counts = (
        _count(page.links, "link"),
        _count(page.assertions, "fact"),
        _count(page.raw_data, "raw data", "raw data"),
    )
    data = _optional("only here: {}", ", ".join(filter(None, counts))) or "all of it was in its file"
    return data + _optional("; exported to {}", page.exported_to)


@_renders("QuarantineDiscardRecord")
def _quarantine_discard(record: "QuarantineDiscardRecord") -> Lines:
    if not record.pages:
        yield "No page to discard."
    elif record.done:
        yield f"Discarded {count_noun(len(record.pages), 'page')}"
    else:
        yield "To be deleted permanently:"
    yield from (f"  {page.collection}::{page.slug}  {_quarantine_data(page)}" for page in record.pages)
    yield _optional("Kept, because they have data that is in no file: {}", ", ".join(record.kept))


@_renders("WatchSynced")
def _watch_synced(event: "WatchSynced") -> Lines:
    sync = event.sync
    counts = _sync_counts(sync, failed="failed", raw_data="new in sidecars")
    text = counts or ("" if sync.halted else "nothing changed")
    if event.whole and sync.files and (counts or not sync.halted):
        text += f" ({count_noun(sync.files, 'file')})"
    if sync.halted:
        text += f"{'; ' if counts else ''}nothing was removed: {sync.halted}"
        if sync.files:
            text += f". If they are gone for good: quaid collection sync {sync.collection} --confirm-deletes"
    yield f"{sync.collection}: {text}"
    if sync.removed or sync.hidden:
        yield _quarantine_note(sync.removed + sync.hidden)
    yield from _first(event.notes, _note, f"  and {{}} more notes: quaid collection info {sync.collection}")


@_renders("WatchStandby")
def _watch_standby(event: "WatchStandby") -> Lines:
    owners = sorted(event.owners, key=lambda owner: owner.pid)
    processes = [
        f"process {pid} watches {', '.join(owner.collection for owner in group)}"
        for pid, group in groupby(owners, lambda owner: owner.pid)
    ]
    yield f"{'; '.join(processes)}; this process waits to take over"


# Database, models, clients and services


@_renders("ValidateRecord")
def _validate(record: "ValidateRecord") -> Lines:
    yield from (f"{item.check}: {item.where}: {item.problem}" for item in record.violations)
    problems = _optional("{} in", _count(len(record.violations), "problem")) or "No problems found"
    yield f"{problems}: {', '.join(record.checks)}"
    missing = (
        _count(record.chunks_without_vector, "chunk"),
        _optional("{} not split into chunks", _count(record.pages_not_cut, "page")),
    )
    yield _optional("Without vectors: {}; `quaid embed` makes them", ", ".join(filter(None, missing)))


@_renders("Compacted")
def _compacted(record: "Compacted") -> Lines:
    dropped = _optional(" Removed {} of deleted text.", _count(record.vectors_dropped, "vector"))
    if record.busy:
        left = f"a reader still needs the log ({format_size(record.wal_after)})"
        yield f"Moved {format_size(record.folded)} of the log into the file; {left}. Run it again later.{dropped}"
    else:
        log = f"{format_size(record.folded)} were moved into it" if record.folded else "was already empty"
        yield f"One file of {format_size(record.size)}; the log {log}. It can be copied now.{dropped}"


@_renders("SkillsRecord")
def _skills(record: "SkillsRecord") -> Lines:
    for number, layer in enumerate(record.layers, 1):
        origin = "" if layer.origin == layer.path else f" ({layer.origin})"
        state = count_noun(len(layer.skills), "skill") if layer.present else "does not exist"
        yield f"{number}. {layer.path}{origin}: {state}"
        yield from (f"     {skill.name}  {skill.sha256[:12]}" for skill in layer.skills)
    if record.layers:
        yield "In force:"
        for skill in record.skills:
            shadows = _optional(", overrides {}", ", ".join(skill.shadows))
            yield f"     {skill.name}  {skill.sha256[:12]}  {skill.path}{shadows}"
    else:
        yield from format_table((skill.name, skill.description) for skill in record.skills)
    yield from (_note(problem, "") for problem in record.problems)


@_renders("SkillsExtractRecord")
def _skills_extract(record: "SkillsExtractRecord") -> Lines:
    yield from (f"{skill.outcome:9} {skill.path}" for skill in record.skills)


@_renders("ModelCheckRecord")
def _model_check(record: "ModelCheckRecord") -> Lines:
    if record.healthy:
        yield f"{record.name} works: {record.dimensions} dimensions, {record.ms_per_text:g} ms for a text of 40 words"
    else:
        yield f"{record.name}: {record.problem}"


@_renders("EmbedRecord")
def _embed(record: "EmbedRecord") -> Lines:
    chunks = count_noun(record.total, "chunk")
    yield f"{record.model}: embedded {record.embedded:,} of {chunks}, {record.cached:,} already had a vector"
    if record.turns or record.turns_left:
        left = _optional(", {:,} left", record.turns_left)
        yield f"{count_noun(record.turns, 'turn')} of conversations embedded{left}"
    if record.failed:
        failures = ", ".join(record.failures[:10]) + (" …" if len(record.failures) > 10 else "")
        yield f"{record.failed:,} failed ({failures}); `quaid model check {record.model}` says more"
    state = "It is the active model" if record.active else "It is not the active model yet"
    yield f"{state} ({record.cpu_seconds:.1f} s CPU)"


@_renders("HomeRecord")
def _home(record: "HomeRecord") -> Lines:
    yield "Quaid: the memory that you and your AI agents share"
    if not record.exists:
        yield f"There is no memory yet at {record.path}."
        yield "`quaid init` makes one, `quaid import FOLDER` fills it, `quaid demo` shows a sample."
    elif record.problem:
        yield f"{record.path}: {record.problem}"
        yield "`quaid doctor` checks it."
    waiting = (
        _count(record.proposals, "proposal of an agent", "proposals of agents"),
        _count(record.contradictions, "contradiction"),
        _count(record.gaps, "question without an answer", "questions without an answer"),
        _count(record.quarantined, "page whose file is gone", "pages whose files are gone"),
        _count(record.expired, "expired thing"),
    )
    unindexed = _optional(", {} to do", _count(record.unindexed, "page"))
    counted = record.exists and not record.problem
    yield from _key_values(
        ("memory", counted and f"{record.path} ({format_size(record.size)})"),
        ("pages", counted and f"{record.pages:,}"),
        ("notes", _optional("{:,}", record.notes)),
        ("index", counted and f"{count_noun(record.chunks, 'chunk')}{unindexed}"),
        ("clients", ", ".join(record.clients) or (counted and "none; `quaid connect` lists them")),
        ("due", _count(record.due, "commitment or action item", "commitments and action items")),
        ("waiting", ", ".join(filter(None, waiting))),
    )


@_renders("StatusRecord")
def _status(record: "StatusRecord") -> Lines:
    model, trouble = record.model, record.trouble
    sizes = f"{format_size(record.size)}, log {format_size(record.wal_size)}"
    uncut = _optional(" ({:,} not split into chunks yet)", record.pages_uncut)
    yield from _key_values(
        ("memory", record.path + ("" if record.writable else ", read-only")),
        ("size", f"{sizes}, schema {record.schema_version}"),
        ("pages", f"{record.pages:,}{uncut}"),
        ("chunks", f"{record.chunks:,}"),
        ("vectors", _vector_status(record)),
        ("conversations", _conversation_status(record.conversations)),
        ("model", f"{model.name}, {'ready' if model.ready else f'not ready: {model.problem}'}"),
        ("", model.remedy),
        *(("other model", f"{other.name}, {count_noun(other.vectors, 'vector')}") for other in record.others),
        ("background", _background_status(record)),
        *(("shared", _shared_status(space)) for space in record.spaces),
        ("expired", _optional("{:,}; `quaid expired` lists them", record.expired)),
        *(("retention", f"{key.removeprefix('retention.')}: {period}") for key, period in record.retention),
        ("server", "runs here and answers commands" if record.resident else ""),
        ("last failure", trouble and f"{trouble.at}: {trouble.problem}"),
        *(("next", step) for step in record.next_steps),
    )


def _shared_status(space: Any) -> str:
    synced = f"synced {space.synced_at}" if space.synced_at else "not synced yet"
    waiting = _optional("; {} to push", _count(space.waiting, "page"))
    return f"{space.collection}: {space.problem.rstrip('.') if space.problem else synced}{waiting}"


def _vector_status(record: Any) -> str:
    model = record.model
    text = f"{model.vectors:,} of {record.chunks:,}"
    if model.vectors and model.missing:
        text += f"; the beginnings of {model.pages_begun:,} of {count_noun(record.pages, 'page')}"
    if model.vectors and model.entries_missing:
        text += f"; {count_noun(model.entries_missing, 'list entry', 'list entries')} to do"
    return text


def _conversation_status(conversations: Any) -> str:
    if not conversations.turns:
        return ""
    turns = count_noun(conversations.turns, "turn")
    recent = conversations.embedding == "recent"
    days = f" of the last {count_noun(conversations.recent_days, 'day')}" if recent else ""
    if conversations.embedding == "off":
        return f"{turns}, searched by words only: embed_conversations is off"
    if conversations.missing:
        return f"{turns}, {conversations.missing:,}{days} not embedded yet"
    return f"{turns}, no vector missing{f' among those{days}' if recent else ''}"


def _background_status(record: Any) -> str:
    if record.filling:
        model, process, since = record.filling[:3]
        return f"process {process} makes vectors of {model} since {since}"
    if not record.writable:
        return "nothing: the memory is read-only"
    if record.background_embedding:
        return "on: `quaid serve` makes missing vectors, a query the last few"
    return "off: only `quaid embed` makes vectors"


@_renders("EmbeddingsRecord")
def _embeddings(record: "EmbeddingsRecord") -> Lines:
    state = "off" if not record.on else "on" if record.ready else f"on, but by words only: {record.problem}"
    yield from _key_values(
        ("semantic search", state),
        ("model", f"{record.model} (chosen by: {record.chosen_by})"),
        ("vectors", f"{record.vectors:,} of {record.chunks:,}{', being made' if record.filling else ''}"),
        ("next", record.next_step),
    )


@_renders("ConnectRecord")
def _connect(record: "ConnectRecord") -> Lines:
    if record.clients:
        yield from format_table(
            (item.client, f"{item.state}{_optional(' ({})', item.detail)}", item.path)
            for item in record.clients
        )
        yield "`quaid connect NAME` connects one, `quaid disconnect NAME` disconnects it"
    elif all(file.outcome == "as it should be" for file in record.files):
        yield f"{record.title} {'is already connected' if record.connected else 'was not connected'}; nothing to do"
    elif record.dry_run:
        yield from (file.difference for file in record.files)
        yield "Nothing was changed"
    else:
        for file in record.files:
            yield f"{file.outcome.capitalize()}: {file.path}{_optional(' (before: {})', file.backup)}"
        yield f"{record.title} is {'connected' if record.connected else 'disconnected'}"
        yield record.next_step


@_renders("TokensRecord")
def _tokens(record: "TokensRecord") -> Lines:
    rows = [
        (
            token.name,
            token.scope,
            token.client,
            _optional("only {}", ", ".join(token.only)),
            f"created {_day(token.created_at)}",
            f"last used {_minute(token.last_used_at)}" if token.last_used_at else "never used",
            f"expire{'d' if token.is_expired else 's'} {_minute(token.expires_at)}"
            if token.expires_at
            else "",
        )
        for token in record.tokens
    ]
    yield from format_table(rows) or ["No tokens. `quaid token create NAME` creates one."]


@_renders("DaemonRecord")
def _daemon(record: "DaemonRecord") -> Lines:
    if record.done and not record.problem:
        yield f"The service is {record.act}: {record.path}"
        return
    result, hint = f"could not be {record.act}", "Run this, or log in again:"
    if record.act == "uninstalled":
        result = "is removed, but the service manager was not reached"
        hint = "If it is still running, this stops it; so does logging out:"
    yield f"The service {result} ({record.problem}): {record.path}"
    if record.to_run:
        yield hint
        yield from map("  {}".format, record.to_run)


DOCTOR_STATES = {"fine": "ok", "missing": "--", "advice": "-", "wrong": "!"}


@_renders("DoctorRecord")
def _doctor(record: "DoctorRecord") -> Lines:
    yield from format_table((DOCTOR_STATES[check.state], check.name, check.detail) for check in record.checks)
    if not record.next_steps:
        yield "\nNo problems found, and nothing is left to do."
        return
    wrong = any(check.state == "wrong" for check in record.checks)
    yield "\nTo fix (!), then recommended (-):" if wrong else "\nNo problems found. Recommended:"
    yield from map("  {}".format, record.next_steps)


@_renders("UpgradeRecord")
def _upgrade(record: "UpgradeRecord") -> Lines:
    if not record.newest:
        yield f"This is quaid {record.current}. To upgrade: {record.how}."
        yield "`quaid upgrade --check --from PLACE` compares versions. Quaid never looks for updates by itself."
    elif record.is_newer:
        yield f"quaid {record.newest} is at {record.place}; this is {record.current}. To upgrade: {record.how}."
    else:
        yield f"This is quaid {record.current}; {record.place} has nothing newer ({record.newest})."
