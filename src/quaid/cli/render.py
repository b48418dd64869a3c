"""Format a record as text for people: with its layout in layouts.txt, else as a list of its fields.

A layout is text with fields in braces. Names are looked up in the current item, then in the record around it:

    {name}  {a.b}  {0}        a value; lists are joined with commas; {.} is the current item, {@} its number
    {items#}  {items[:20]}    the length of a list, its first items; {a+b} and {a-b} calculate
    {^name}                   skips the current item and starts with the record around it
    {name:filter:filter}      a value through FILTERS, `#noun` (3 nouns), `~60` (shortened), `in4` (indented), or a
                              format specification of Python
    {?condition|then|else}    `a`, `!a`, `a=b`, `a!b`, `a<b`, `a>b`, joined by `&` (and) or `,` (or)
    {%name|value=text|...}    the text for a value
    {*items|text|separator}   the text for each item, by default one per line
    {=|lines}                 lines whose cells, separated by ¦, are aligned in columns
    {>name}                   another layout of the file

A line with fields is left out if all of them are empty. EXTRAS adds computed values to a record.
"""

import json
import operator
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import Any

from quaid.model import slug as slugs
from quaid.model.plain_text import count_noun

CELL = "\x1f"  # replaces ¦ of a layout, so that text of a page cannot contain it
TEXT_WIDTH = 78
QUARANTINE_DAYS = 30

Scope = tuple[Any, ...]
"""The current item, its number, and the records around it, innermost first."""


def render(record: Any) -> str:
    """Return a record as text."""
    name = type(record).__name__
    if name == "PageRecord":  # the page itself, without a parse of the layouts
        from quaid.formats import markdown

        return markdown.render(record.frontmatter, record.compiled_truth, record.timeline)
    if name not in _layouts():
        return "\n".join(_field_lines(record))
    return _fill(_layouts()[name], (record, EXTRAS[name](record)) if name in EXTRAS else (record,))


@cache
def _layouts() -> dict[str, str]:
    """Return the layouts of the file by the names in their heading."""
    with open(os.path.join(os.path.dirname(__file__), "layouts.txt"), encoding="utf-8") as file:
        sections = ("\n" + file.read()).split("\n== ")[1:]
    layouts = {}
    for section in sections:
        heading, _, layout = section.partition("\n")
        for name in (heading, *heading.split()):
            layouts[name] = layout.strip("\n")
    return layouts


def _fill(layout: str, scope: Scope) -> str:
    lines = []
    for line in _split(layout, "\n"):
        parts = _parts(line)
        text = "".join(_field(part, scope) if place % 2 else part for place, part in enumerate(parts))
        if text.strip() or len(parts) == 1:
            lines.append(text)
    return "\n".join(lines)


@cache
def _split(text: str, separator: str) -> list[str]:
    """Split a text at a separator, except inside braces."""
    pieces, depth = [""], 0
    for char in text:
        depth += {"{": 1, "}": -1}.get(char, 0)
        if char == separator and not depth:
            pieces.append("")
        else:
            pieces[-1] += char
    return pieces


@cache
def _parts(line: str) -> list[str]:
    """Split a line into literal text and the contents of its outer braces, alternating."""
    parts, depth = [""], 0
    for char in line:
        if char == "}":
            depth -= 1
        if (char == "{" and not depth) or (char == "}" and not depth):
            parts.append("")
        else:
            parts[-1] += CELL if char == "¦" and not depth else char
        if char == "{":
            depth += 1
    return parts


def _field(field: str, scope: Scope) -> str:
    head, *bodies = _split(field, "|")
    mark, name = head[:1], head[1:]
    if mark == "?":
        return _fill((bodies if _holds(name, scope) else [*bodies[1:], ""])[0], scope)
    if mark == "%":
        cases = dict(body.partition("=")[::2] for body in bodies)
        return _fill(cases[_value(name, scope)], scope)
    if mark == "*":
        items = _value(name, scope)
        items = items.items() if isinstance(items, dict) else items
        texts = [_fill(bodies[0], (item, {"@": place}, *scope)) for place, item in enumerate(items, 1)]
        return (bodies[1] if len(bodies) > 1 else "\n").join(texts)
    if mark == "=":
        rows = [line.split(CELL) for line in _fill(bodies[0], scope).split("\n")]
        return format_table(rows) if rows != [[""]] else ""
    if mark == ">":
        return _fill(_layouts()[name], scope)
    value = _value(head, scope)
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


def _holds(condition: str, scope: Scope) -> bool:
    return any(all(_term(term, scope) for term in part.split("&")) for part in condition.split(","))


def _term(term: str, scope: Scope) -> bool:
    negated = term.startswith("!")
    left, mark, right = re.fullmatch(r"!?([^=<>!]+)([=<>!]?)(.*)", term).groups()  # type: ignore[union-attr]
    value = _value(left, scope)
    if not mark:
        return (value is not None and (isinstance(value, float) or bool(value))) != negated
    try:
        other = int(right) if right.isdigit() else _value(right, scope)
    except LookupError:
        other = right  # not a field, so the text itself
    compare = {"=": operator.eq, "!": operator.ne, "<": operator.lt, ">": operator.gt}[mark]
    return bool(compare(value, other))


def _value(expression: str, scope: Scope) -> Any:
    path, *filters = expression.split(":")
    if "[:" in expression:  # the colon of a slice
        path, filters = f"{path}:{filters[0]}", filters[1:]
    first, *others = re.split(r"(?=[+-])", path)
    value = _lookup(first, scope)
    for other in others:
        amount = int(other[1:]) if other[1:].isdigit() else _lookup(other[1:], scope)
        value += amount if other[0] == "+" else -amount
    for name in filters:
        value = _filtered(value, name)
    return value


def _lookup(path: str, scope: Scope) -> Any:
    name, sliced, measured = re.fullmatch(r"(.*?)(?:\[:(\d+)\])?(#?)", path).groups()  # type: ignore[union-attr]
    if name.startswith("^"):
        name, scope = name[1:], scope[2:]
    if name == ".":
        value = scope[0]
    else:
        first, *rest = name.split(".")
        owner = next((each for each in scope if _has(each, first)), None)
        if owner is None:
            raise LookupError(name)
        value = _member(owner, first)
        for each in rest:
            value = _member(value, each)
    value = value[: int(sliced)] if sliced else value
    return len(value) if measured else value


def _has(owner: Any, name: str) -> bool:
    if isinstance(owner, dict):
        return name in owner
    kind = type(owner)
    return (
        name in getattr(kind, "_fields", ())
        or isinstance(getattr(kind, name, None), property)
        or (name.isdigit() and isinstance(owner, tuple))
    )


def _member(owner: Any, name: str) -> Any:
    return (
        owner[int(name) if name.isdigit() else name]
        if name.isdigit() or isinstance(owner, dict)
        else getattr(owner, name)
    )


def _filtered(value: Any, name: str) -> Any:
    if name in FILTERS:
        return FILTERS[name](value)
    if name.startswith("#"):
        return count_noun(len(value) if isinstance(value, tuple | list) else value, *name[1:].split("/"))
    if name.startswith("~"):
        return shorten(value, int(name[1:]))
    if name.startswith("in"):
        return textwrap.indent(value.strip("\n"), " " * int(name[2:]))
    return format(value, name)


def format_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as text, each column as wide as its widest cell; the last column is not padded."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in rows
    )


# Records without a layout


def _field_lines(record: Any) -> Iterator[str]:
    """Yield the fields of a record: plain values in two columns, then lists and nested records, then next steps."""
    if not hasattr(record, "_fields"):
        yield record if isinstance(record, str) else json.dumps(record, ensure_ascii=False, default=str)
        return
    fields = {
        name.replace("_", " "): value
        for name, value in zip(record._fields, record, strict=True)
        if value not in (None, "", (), [], {}) and not name.startswith("next_step")
    }
    plain = [(name, _plain_text(value)) for name, value in fields.items()]
    rows = [(name, text) for name, text in plain if text is not None]
    if rows:
        yield format_table(rows)
    for name, text in plain:
        if text is None:
            yield f"{name}:"
            yield textwrap.indent("\n".join(_nested_lines(fields[name])), "  ")
    steps = getattr(record, "next_steps", None) or [getattr(record, "next_step", None)]
    yield from (f"Next: {step}" for step in steps if step)


def _plain_text(value: Any) -> str | None:
    """Return a value that fits on a line as text, else None."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        texts = [_plain_text(item) for item in value]
        return None if None in texts else ", ".join(map(str, texts))
    return str(value) if isinstance(value, int | float | str) and "\n" not in str(value) else None


def _nested_lines(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        return [
            format_table(
                [
                    (str(key), _plain_text(item) or "\n".join(_nested_lines(item)))
                    for key, item in value.items()
                ]
            )
        ]
    if isinstance(value, str) or hasattr(value, "_fields"):
        return [value if isinstance(value, str) else render(value)]
    rows = [[_plain_text(cell) for cell in item] for item in value if hasattr(item, "_fields")]
    if len(rows) == len(value) and all(None not in row for row in rows):
        heading = [name.replace("_", " ") for name in value[0]._fields]
        return [format_table([heading, *([cell or "" for cell in row] for row in rows)])]
    return ["\n".join(_field_lines(item)) for item in value]


# Values that layouts use


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
    """Return the validity interval of a link, for example `2024-01-15 to 2026-03-01`."""
    if not link.valid_from and not link.valid_until:
        return ""
    return f"{link.valid_from or '?'} to {link.valid_until or 'now'}"


def _period(link: Any) -> str:
    return f" ({validity(link)})" if validity(link) else ""


def _arrow(link: Any, page: str) -> str:
    """Return a link as an arrow that leads to a page or comes from it."""
    label = f"{link.relationship}{_period(link)}"
    return f"-{label}->" if link.to_slug == page else f"<-{label}-"


def _link_source(link: Any) -> str:
    return slugs.address(link.from_collection, link.from_slug)


def _link_target(link: Any) -> str:
    """Return the page that a link leads to. A wanted page is marked."""
    if not getattr(link, "resolved", True):
        return f"{link.to_slug} (no such page)"
    return slugs.address(link.to_collection, link.to_slug)


def _page_counts(report: Any) -> str:
    """Return lines with the counts of an import or a sync."""
    types = ", ".join(f"{number:,} {name}" for name, number in report.types.items())
    return (
        f"types: {types or 'none'}\ntags: {report.tags:,}, links: {report.links_extracted:,},"
        f" timeline entries: {report.timeline_entries:,}, raw data: {report.raw_data:,}"
    )


def _fact_change(fact: Any) -> str:
    """Return what happened to a fact. Accepts a FactChange or an AssertRecord."""
    if fact.added:
        return f"Kept fact {fact.id}"
    if not fact.changed:
        return f"Had already fact {fact.id}"
    until = fact.fact.valid_until if hasattr(fact, "fact") else None
    changes = []
    if fact.ended_before:
        changes.append(
            f"Moved the end of fact {fact.id} from {fact.ended_before}" + (f" to {until}" if until else "")
        )
    elif fact.ended:
        changes.append(f"Ended fact {fact.id}" + (f" on {until}" if until else ""))
    if fact.witnessed:
        changes.append("added who else says so" if changes else f"Added to fact {fact.id} who else says so")
    return "; ".join(changes) or f"Changed fact {fact.id}"


def _ingested_parts(outcome: Any) -> str:
    """Return what an ingest changed in a page, in parentheses."""
    counts = (
        (outcome.timeline_entries, "timeline entry", "timeline entries"),
        (outcome.tags, "tag", "tags"),
        (outcome.links, "link", "links"),
        (outcome.assertions, "fact", "facts"),
    )
    parts = [count_noun(*count) for count in counts if count[0]]
    if outcome.truth and outcome.outcome != "created":
        parts.insert(0, f"truth: {outcome.truth}")
    if outcome.truth == "same words":
        parts.append("--force writes the truth, too")
    return f" ({'; '.join(parts)})" if parts else ""


def _only_here(page: Any) -> str:
    counts = ((page.links, "link"), (page.assertions, "fact"), (page.raw_data, "raw answer"))
    parts = [count_noun(number, noun) for number, noun in counts if number]
    return f"only here: {', '.join(parts)}" if parts else "all of it was in its file"


def _words_only(reason: str) -> str:
    """Return the line that says that only words were searched, and why."""
    off = reason.lower().startswith("semantic search is off")
    return f"By words only{'. ' if off else ': '}{reason.rstrip('.')}."


def _some(names: Sequence[str]) -> str:
    """Return the first names of a list, each shortened."""
    more = f" and {len(names) - 8:,} more" if len(names) > 8 else ""
    return ", ".join(shorten(name, 60) for name in names[:8]) + more


def _gap_question(gap: Any) -> str:
    words = gap.query_text or gap.redacted_query
    return " ".join(words.split()) if words else f"#{gap.query_hash[:12]}"


def _recall_tree(record: Any) -> str:
    """Return the hits in the notebook and in the daily logs as a tree."""
    lines = []
    groups = [(name, hits) for name, hits in (("NOTEBOOK", record.notebook), ("DAILY", record.daily)) if hits]
    for name, hits in groups:
        is_last = name == groups[-1][0]
        lines.append(f"{'└' if is_last else '├'}── {name} ({count_noun(len(hits), 'result')})")
        margin = "    " if is_last else "│   "
        for hit in hits:
            branch, stem = "└ " if hit is hits[-1] else "├│"
            where = f"{hit.path}:{hit.start_line}" + (
                f"-{hit.end_line}" if hit.end_line > hit.start_line else ""
            )
            lines.append(f"{margin}{branch}── {where} {'.' * max(3, 52 - len(where))} {hit.score:.2f}")
            lines.append(f'{margin}{stem}   "{hit.snippet}"')
    return "\n".join(lines)


def _graph(record: Any) -> str:
    return {"text": _graph_tree, "dot": _graph_dot, "mermaid": _graph_mermaid}[record.form](record)


def _graph_tree(record: Any) -> str:
    """Format a graph as a tree. Each page is below the one it was reached from, with the links between the two."""
    links: dict[frozenset[str], list[Any]] = {}
    for link in record.links:
        links.setdefault(frozenset((link.from_slug, link.to_slug)), []).append(link)
    children: dict[str, list[Any]] = {}
    for node in record.nodes:
        if node.distance:
            children.setdefault(node.path[-2], []).append(node)
    lines = []

    def show(node: Any) -> None:
        page = node.path[-1]
        between = links.get(frozenset(node.path[-2:]), []) if node.distance else []
        arrows = ", ".join(_arrow(link, page) for link in between[:3])
        lines.append(f"{'  ' * node.distance}{arrows}{' ' if node.distance else ''}{page}  {node.title}")
        for child in children.get(page, ()):
            show(child)

    show(record.nodes[0])
    cut = "" if record.complete else "; there is more: --limit"
    figures = f"{count_noun(len(record.nodes), 'page')}, {count_noun(len(record.links), 'link')}"
    return "\n".join([*lines, "", f"{figures} ({record.temporal}, {record.as_of}){cut}"])


def _graph_dot(record: Any) -> str:
    def quoted(text: str) -> str:  # in DOT, only backslashes, quotes and line breaks are special
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'

    lines = ["digraph quaid {", "  rankdir=LR;", "  node [shape=box, style=rounded];"]
    lines += [f"  {quoted(node.path[-1])} [label={quoted(node.title)}];" for node in record.nodes]
    for link in record.links:
        label = quoted(f"{link.relationship} {validity(link)}".strip())
        lines.append(f"  {quoted(link.from_slug)} -> {quoted(link.to_slug)} [label={label}];")
    return "\n".join([*lines, "}"])


def _graph_mermaid(record: Any) -> str:
    def escaped(text: str) -> str:  # Mermaid has entities but no escape sequences
        entities = {'"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;", "\n": " "}
        return "".join(entities.get(letter, letter) for letter in text)

    names = {node.path[-1]: f"n{place}" for place, node in enumerate(record.nodes)}
    lines = [f'  {names[node.path[-1]]}["{escaped(node.title)}"]' for node in record.nodes]
    for link in record.links:
        label = escaped(f"{link.relationship} {validity(link)}".strip())
        lines.append(f'  {names[link.from_slug]} -->|"{label}"| {names[link.to_slug]}')
    return "\n".join(["graph LR", *lines])


CONFIRMABLE_PROBLEMS = ("missing at once", "is empty", "another one", "would hide", "is a link")
"""Parts of halt reasons that the user can override with --confirm-deletes. An unreadable folder cannot be
overridden.
"""

FILTERS: dict[str, Callable[[Any], Any]] = {
    "address": lambda page: slugs.address(page.collection, page.slug),
    "briefing_name": lambda item: item.slug if item.id is None else f"{item.slug} [{item.id}]".strip(),
    "capital": str.capitalize,
    "clock": lambda time: time.replace("T", " ").removesuffix("Z"),
    "confirmable": lambda reason: any(part in reason for part in CONFIRMABLE_PROBLEMS),
    "day": lambda time: (time or "")[:10],
    "entry": lambda entry: f"{entry.date}  {f'[{entry.source}] ' if entry.source else ''}{entry.summary}",
    "fact_change": _fact_change,
    "first": lambda text: text.partition("\n")[0],
    "flat": lambda text: " ".join(text.split()),
    "gap_question": _gap_question,
    "graph": _graph,
    "heading": lambda text: text.lstrip("# "),
    "ingested_parts": _ingested_parts,
    "json": lambda value: json.dumps(value, ensure_ascii=False, indent=2),
    "link": lambda link: f"{_link_source(link)} {link.relationship} {_link_target(link)}{_period(link)}",
    "link_source": _link_source,
    "link_target": _link_target,
    "only_here": _only_here,
    "page_counts": _page_counts,
    "place": lambda quote: f"{quote.part} {quote.line}" if quote.line else quote.part,
    "quarantine_note": lambda pages: (
        f"{count_noun(pages, 'page')} went into quarantine: hidden, and kept for {QUARANTINE_DAYS} days in case the"
        " file comes back"
    ),
    "raw_path": lambda path: path.startswith("raw/"),
    "recall_tree": _recall_tree,
    "render": render,
    "repr": repr,
    "rstrip": str.rstrip,
    "sentence": lambda text: text[:1].upper() + text[1:] + ("" if text.endswith(".") else "."),
    "size": format_size,
    "some": _some,
    "stop": lambda text: text.rstrip("."),
    "validity": validity,
    "words_only": _words_only,
    "would_hide": lambda reason: "would hide" in reason,
    "wrap": lambda text: "\n".join(
        textwrap.wrap(" ".join(text.split()), TEXT_WIDTH, break_long_words=False, break_on_hyphens=False)
    ),
}


# Computed values of records


def _counts(pairs: Iterable[tuple[int, str]]) -> list[str]:
    return [f"{number:,} {noun}" for number, noun in pairs if number]


IMPORT_OUTCOMES = {
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
SYNC_COUNTS = {"new": "new", "changed": "changed", "moved": "moved", "removed": "gone"}


def _sync_extras(sync: Any) -> dict[str, Any]:
    names = {**SYNC_COUNTS, "hidden": "ignored from now on", "failed": "failed", "unchanged": "unchanged"}
    shown = max(20, sync.failed)  # failed files come first, and all of them are listed
    return {
        "counts": _counts((getattr(sync, name), text) for name, text in names.items()),
        "left": [f"{reason} {number:,}" for reason, number in sorted(sync.left_out.items()) if number],
        "shown_notes": sync.notes[:shown],
    }


def _watch_extras(event: Any) -> dict[str, Any]:
    names = {**SYNC_COUNTS, "failed": "failed", "raw_data": "new in sidecars"}
    return {"counts": _counts((getattr(event.sync, name), text) for name, text in names.items())}


def _conversation_extras(record: Any) -> dict[str, Any]:
    held, turns = record.conversation, record.turns
    days = " to ".join(dict.fromkeys(time[:10] for time in (held.started_at, held.ended_at) if time))
    last = turns[-1].turn if turns else held.turns
    return {
        "heading": list(filter(None, (days, held.project, count_noun(held.turns, "turn")))),
        "left": held.turns - last,
        # Centre of the next window of the same size, which starts after the last turn shown.
        "middle": min(held.turns, last + 1 + len(turns) // 2),
    }


def _briefing_extras(record: Any) -> dict[str, Any]:
    from quaid.operations.overview import BRIEFING_PARTS

    parts = [(title, getattr(record, name)) for name, title in BRIEFING_PARTS.items()]
    return {
        "parts": [(title, part) for title, part in parts if part.items],
        "empty": [title.lower() for title, part in parts if not part.items],
    }


def _curation_extras(record: Any) -> dict[str, Any]:
    """Return the findings of a curation report as titled lists of lines."""
    node = "{0.title} ({0.id})".format

    def superseded(item: Any) -> str:
        by = f" by {', '.join(each.title for each in item.by)}" if item.by else ""
        linked = ", ".join(each.title for each in item.linked_from)
        return node(item.node) + by + (f"; still linked from {linked}" if linked else "")

    report = record.report
    sections: tuple[tuple[str, Sequence[Any], Callable[[Any], str]], ...] = (
        ()
        if report is None
        else (
            (
                "Duplicates",
                report.duplicates,
                lambda pair: f"{node(pair.one)} / {node(pair.other)}: {pair.why}",
            ),
            ("Contested", report.contested, node),
            ("Superseded", report.superseded, superseded),
            ("Orphans", report.orphans, node),
            ("Over-broad", report.broad, node),
            ("Untouched for long", report.untouched, lambda item: f"{node(item)} since {item.updated}"),
            ("Raw captures without a node", report.raw_unused, str),
            ("Large raw files", report.raw_large, str),
            (
                "Next to look through",
                report.batch,
                lambda item: f"{node(item)} {item.last_curated or 'never'}",
            ),
        )
    )
    return {"sections": [(title, list(map(line, items))) for title, items, line in sections if items]}


def _ingest_extras(record: Any) -> dict[str, Any]:
    return {"earlier": list(dict.fromkeys(filter(None, (record.source_page, *record.known_pages))))}


EXTRAS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "BriefingRecord": _briefing_extras,
    "CollectionInfoRecord": lambda record: {
        "ignored": [line for line in record.ignore_patterns.splitlines() if line.strip() and line[0] != "#"]
    },
    "ConnectRecord": lambda record: {
        "changed_files": [file for file in record.files if file.outcome != "as it should be"]
    },
    "ConversationRecord": _conversation_extras,
    "DaysRecord": lambda record: {
        "days": [(day, list(items)) for day, items in groupby(record.dated, lambda item: item.day)]
    },
    "DoctorRecord": lambda record: {"wrong": any(check.state == "wrong" for check in record.checks)},
    "FileIngestRecord": _ingest_extras,
    "ForgetRecord": lambda record: {
        "going": [layer for layer in record.layers if layer.before or layer.after],
        "others": [layer.name for layer in record.layers if not layer.before and not layer.after],
    },
    "GapsRecord": lambda record: {
        "unapproved": any(gap.approved_by is None and gap.resolved_at is None for gap in record.gaps)
    },
    "ImportRecord": lambda record: {
        "outcomes": [
            (text, record.report.outcomes[name])
            for name, text in IMPORT_OUTCOMES.items()
            if record.report.outcomes[name]
        ]
    },
    "IngestRecord": _ingest_extras,
    "KbCurateRecord": _curation_extras,
    "PathRecord": lambda record: {
        "legs": [
            (_arrow(link, page), page) for link, page in zip(record.steps, record.pages[1:], strict=False)
        ]
    },
    "ReadingRecord": lambda record: {
        "aside": _counts(
            (
                (record.report.unchanged, "unchanged"),
                (record.report.other, "no transcript" if record.report.other == 1 else "no transcripts"),
                (record.report.gone, "not there any more"),
            )
        )
    },
    "SyncReport": _sync_extras,
    "WatchStandby": lambda event: {
        "processes": {
            pid: [owner.collection for owner in event.owners if owner.pid == pid]
            for pid in dict.fromkeys(owner.pid for owner in event.owners)
        }
    },
    "WatchSynced": _watch_extras,
}
