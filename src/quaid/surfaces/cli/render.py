"""Records to text for people: one function per record, found by the record's name.

A function gets a record and returns what to print; it never asks the store for more.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from quaid.formats import markdown

WIDTH = 78


def render(record: Any) -> str:
    """The text of a record."""
    return RENDERERS[type(record).__name__](record)


def _page(record: Any) -> str:
    return markdown.render(record.frontmatter, record.compiled_truth, record.timeline)


def _put(record: Any) -> str:
    if not record.changed:
        return f"{record.slug} says this already (version {record.version}); nothing was written"
    verb = "Made" if record.created else "Updated"
    place = " / ".join(filter(None, (record.wing, record.room)))
    return f"{verb} {record.slug}: {record.title} ({record.type}, {place}), version {record.version}"


def _list(record: Any) -> str:
    if not record.pages:
        return "No pages match." if record.total == 0 else f"There are only {record.total:,} pages."
    rows = [(page.slug, page.type, page.updated_at[:10], page.title) for page in record.pages]
    last = record.offset + len(record.pages)
    more = f"\n{record.offset + 1:,}-{last:,} of {record.total:,} pages" + (
        f"; next: --offset {last}" if last < record.total else ""
    )
    return _table(rows) + more


def _tags(record: Any) -> str:
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
    import json

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
        lines.append(f"{hit.slug}  {hit.title} ({hit.type}, score {hit.score:.1f})")
        excerpt = " ".join((hit.snippet or hit.summary).split())
        lines += ["    " + line for line in _wrap(excerpt)]
    return "\n".join(lines)


def _stats(record: Any) -> str:
    rows = [("pages", f"{record.pages:,}")]
    rows += [(f"  {name}", f"{count:,}") for name, count in record.by_type]
    for name in ("links", "tags", "timeline_entries", "raw_data", "assertions", "contradictions", "gaps", "imports"):
        rows.append((name.replace("_", " "), f"{getattr(record, name):,}"))
    model = f" ({record.embedding_model})" if record.embedding_model else ""
    rows.append(("embeddings", f"{record.embeddings:,} chunks{model}"))
    rows.append(("size", f"{_size(record.db_bytes)} and {_size(record.wal_bytes)} of log"))
    rows.append(("newest change", record.newest or "none"))
    rows.append(("schema", str(record.schema_version)))
    rows.append(("memory", record.path))
    return _table(rows)


def _validate(record: Any) -> str:
    checked = ", ".join(record.checks)
    if not record.violations:
        return f"All is well: {checked}"
    lines = [f"{each.check}: {each.where}: {each.problem}" for each in record.violations]
    count = len(record.violations)
    return "\n".join([*lines, f"{count:,} problem{'' if count == 1 else 's'} in: {checked}"])


def _compacted(record: Any) -> str:
    if record.busy:
        return (
            f"{_size(record.wal_before - record.wal_after)} of the log went into the file; a reader still needs "
            f"the rest ({_size(record.wal_after)}). Run it again later."
        )
    return f"One file of {_size(record.size)}; {_size(record.wal_before)} of log folded in. It can be copied now."


def _backup(record: Any) -> str:
    return f"Backup made and checked: {record.path} ({_size(record.size)})"


def _setting(record: Any) -> str:
    return str(record.value)


def _settings(record: Any) -> str:
    return _table([(each.key, _cut(" ".join(each.value.split()), WIDTH)) for each in record.settings])


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell; the last one runs free."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    )


def _wrap(text: str) -> Iterable[str]:
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > WIDTH:
            yield line
            line = ""
        line = f"{line} {word}" if line else word
    if line:
        yield line


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _size(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.2f} GB"


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
    "BackupRecord": _backup,
    "Setting": _setting,
    "SettingsRecord": _settings,
}
