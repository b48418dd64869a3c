"""What `ops.merging` returns, as text for people."""

from collections.abc import Callable
from typing import Any

from quaid.model.plain_text import count_noun
from quaid.surfaces.cli.text import cut

SHOWN_TEXT = 2_000


def _dupes(record: Any) -> str:
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


def _merge(record: Any) -> str:
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
        (moved.links, "added link", "added links", _joined(moved)),
        (moved.links_in_texts, "link in a text of another page", "links in texts of other pages", ""),
        (moved.links_between, "link between the two", "links between the two", ", which goes"),
        (moved.assertions, "fact", "facts", _same(moved)),
        (moved.raw_data, "answer of a source", "answers of sources", _renamed(moved)),
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
            *(f"    {line}".rstrip() for line in cut(record.truth, SHOWN_TEXT).split("\n")),
        ]
    elif not record.truth:
        lines.append("  its text adds nothing")
    state = f"version {record.version}" if record.done else "nothing is changed yet"
    lines.append(f"{record.gone} leads to {record.kept}; {state}")
    return "\n".join([f"{head}:", *lines])


def _joined(moved: Any) -> str:
    if not moved.links_joined:
        return ""
    return f", {moved.links_joined:,} joined with one of the same relationship whose time overlaps"


def _same(moved: Any) -> str:
    return f", {moved.assertions_same:,} of which both pages had" if moved.assertions_same else ""


def _renamed(moved: Any) -> str:
    return f", renamed: {', '.join(moved.raw_data_renamed)}" if moved.raw_data_renamed else ""


def _rename(record: Any) -> str:
    left = f"; {record.old_slug} leads to it" if record.redirected else f"; {record.old_slug} is free"
    return f"{record.old_slug} is {record.slug} now: {record.title} ({record.wing}), version {record.version}{left}"


def _distinct(record: Any) -> str:
    if not record.changed:
        return f"{record.slug} and {record.other} were told apart already"
    return f"{record.slug} and {record.other} are not the same; `quaid dupes` lists them no more"


RENDERERS: dict[str, Callable[[Any], str]] = {
    "DupesRecord": _dupes,
    "DistinctRecord": _distinct,
    "MergeRecord": _merge,
    "RenameRecord": _rename,
}
