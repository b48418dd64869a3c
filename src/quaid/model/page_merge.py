"""Merge two pages into one: text, timeline, front matter and link validity, without losing content."""

import re
from typing import Any, NamedTuple

from quaid.model import page as page_model, plain_text, slug as slugs, timeline

MERGED_KEY = "merged"
"""Front-matter key under which the conflicting values of the removed page are kept."""

_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|\Z)")
_BLANK = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_IDENTITY_KEYS = ("title", "slug", "type", "wing", "room")
"""Keys that identify a page. They are never copied from the other page."""


class LinkSpan(NamedTuple):
    """The id and validity interval of a link, and the ids of the links that were merged into it."""

    id: int
    valid_from: str | None
    valid_until: str | None
    absorbed: tuple[int, ...] = ()


# Compiled truth (the body of a page above the timeline)


def merge_truth(truth: str, other: str, title: str) -> str:
    """Append the blocks that only the compiled truth `other` has, under a heading with the title of its page."""
    existing = {_fold_text(block) for block in _blocks(truth)}
    new = _new_blocks(_blocks(other), existing, title)
    if not new or _fold_text(other) in _fold_text(truth):
        return truth
    section = "\n\n".join([f"## From {title}", *_lower_headings(new)])
    return f"{truth.rstrip()}\n\n{section}" if truth.strip() else section


def _blocks(text: str) -> list[str]:
    """Split text at blank lines and headings. Fenced blocks are never split."""
    blocks: list[str] = []
    position = 0
    for fence in [*plain_text.find_fences(text), plain_text.Fence(len(text), len(text), "")]:
        blocks += _BLANK.split(text[position : fence.start].strip("\n"))
        blocks.append(text[fence.start : fence.end])
        position = fence.end
    return [piece for block in blocks for piece in _headings_apart(block) if piece.strip()]


def _headings_apart(block: str) -> list[str]:
    """Split a block so that each heading is a separate block, even if no blank line follows the heading."""
    if plain_text.find_fences(block) or not any(map(_HEADING.match, block.split("\n"))):
        return [block]
    parts: list[list[str]] = [[]]
    for line in block.split("\n"):
        if _HEADING.match(line):
            parts += [[line], []]
        else:
            parts[-1].append(line)
    return ["\n".join(lines) for lines in parts if lines]


def _new_blocks(blocks: list[str], existing: set[str], title: str) -> list[str]:
    """Return the blocks that are not in `existing`, with the headings above them. Other headings are left out."""
    new: list[str] = []
    above: list[tuple[int, str]] = []
    for block in blocks:
        level = _heading_level(block)
        if level:
            above = [heading for heading in above if heading[0] < level]
            if not (level == 1 and _fold_text(block.lstrip("# ")) == _fold_text(title)):
                above.append((level, block))
        elif _fold_text(block) not in existing:
            new += [heading for _, heading in above]
            new.append(block)
            above = []
    return new


def _lower_headings(blocks: list[str]) -> list[str]:
    """Add `#` to all headings so that they are at level 3 or deeper, below the heading of the section."""
    levels = [level for level in map(_heading_level, blocks) if level]
    down = max(0, 3 - min(levels)) if levels else 0
    return [
        f"{'#' * min(6, level + down)}{block.lstrip(' ').lstrip('#')}"
        if (level := _heading_level(block))
        else block
        for block in blocks
    ]


def _heading_level(block: str) -> int:
    heading = None if "\n" in block else _HEADING.match(block)
    return len(heading[1]) if heading else 0


def _fold_text(text: str) -> str:
    return " ".join(text.split()).casefold()


# Timeline


def merge_timeline(own: str, other: str, title: str) -> str:
    """Add the entries and free text of the other timeline that the first timeline does not contain.

    New entries are inserted in date order if the timeline is sorted, and otherwise appended. Free text comes
    last, under a heading.
    """
    merged = timeline.insert_entries(own.rstrip("\n"), timeline.missing_entries(other, own))
    own_lines = set(map(_fold_text, merged.split("\n")))
    _, free = timeline.split_entries(other)
    free = [
        piece
        for piece in free
        if not own_lines.issuperset(map(_fold_text, filter(str.strip, piece.split("\n"))))
    ]
    if free:
        merged = "\n\n".join(filter(None, [merged, f"### From {title}", *free]))
    return merged


# Front matter


def merge_frontmatter(
    own: dict[str, Any], other: dict[str, Any], *, slug: str, title: str, kept_title: str
) -> dict[str, Any]:
    """Merge the other page's tags, names, links and remaining keys into the first page's front matter.

    If both pages have different values for a key, the value of the first page is used, and the other value is
    kept under `merged`.
    """
    result = dict(own)
    lost: dict[str, Any] = {}
    for key, value in other.items():
        if key in _IDENTITY_KEYS or (key in result and key not in _JOINED_KEYS):
            if key not in ("title", "slug") and result.get(key) != value:
                lost[key] = value
        elif key not in _JOINED_KEYS:
            result[key] = value
    _join_tags(result, other)
    _join_names(result, other, title, kept_title)
    if other.get("links") is not None:
        result["links"] = _union(_as_list(result.get("links")), _as_list(other["links"]))
    _record_conflicts(result, other, slug, lost)
    return result


_JOINED_KEYS = ("tags", "tag", "aliases", "alias", "links", MERGED_KEY)


def _record_conflicts(result: dict[str, Any], other: dict[str, Any], slug: str, lost: dict[str, Any]) -> None:
    earlier = result.get(MERGED_KEY), other.get(MERGED_KEY)
    notes: dict[str, Any] = {}
    for note in earlier:
        notes.update(note if isinstance(note, dict) else {} if note is None else {slug: note})
    if lost:
        notes[slug] = lost
    if notes:
        result[MERGED_KEY] = notes


def _join_tags(result: dict[str, Any], other: dict[str, Any]) -> None:
    ours = page_model.parse_tags(result.get("tags", result.get("tag")))
    more = [tag for tag in page_model.parse_tags(other.get("tags", other.get("tag"))) if tag not in ours]
    if more:
        key = "tag" if "tag" in result and "tags" not in result else "tags"
        listed = result.get(key)
        result[key] = [*(listed if isinstance(listed, list) else ours), *more]


def _join_names(result: dict[str, Any], other: dict[str, Any], title: str, kept_title: str) -> None:
    ours = slugs.aliases(result)
    folded = {slugs.fold_name(alias) for alias in [*ours, kept_title]}
    more = []
    for name in [title, *slugs.aliases(other)]:
        if slugs.fold_name(name) not in folded:
            folded.add(slugs.fold_name(name))
            more.append(name)
    if more:
        key = "alias" if "alias" in result and "aliases" not in result else "aliases"
        result[key] = [*ours, *more]


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _union(ours: list[Any], theirs: list[Any]) -> list[Any]:
    return [*ours, *(item for item in theirs if item not in ours)]


# Links


def join_spans(spans: list[LinkSpan]) -> list[LinkSpan]:
    """Merge links with overlapping validity. All must have the same relationship and the same two pages."""
    joined: list[LinkSpan] = []
    for span in sorted(spans, key=lambda span: span.id):
        while other := next((earlier for earlier in joined if _spans_overlap(earlier, span)), None):
            joined.remove(other)
            since = [day for day in (other.valid_from, span.valid_from) if day]
            until = (
                max(other.valid_until, span.valid_until) if other.valid_until and span.valid_until else None
            )
            span = LinkSpan(
                other.id, min(since, default=None), until, (*other.absorbed, span.id, *span.absorbed)
            )
        joined.append(span)
    return joined


def _spans_overlap(one: LinkSpan, other: LinkSpan) -> bool:
    return _span_start(one) < _span_end(other) and _span_start(other) < _span_end(one)


def _span_start(span: LinkSpan) -> str:
    """Return the start of validity, else the end of validity, else 9999-12-31 if both are unknown.

    storage.checks uses the same rule to find overlapping links.
    """
    return span.valid_from or span.valid_until or "9999-12-31"


def _span_end(span: LinkSpan) -> str:
    return span.valid_until or "~"


# Relative links


def rebase_relative_links(text: str, old_slug: str, new_slug: str) -> str:
    """Rewrite relative links so that they still reach the same files after the page moves to another slug."""
    if "](" not in text or old_slug.rpartition("/")[0] == new_slug.rpartition("/")[0]:
        return text
    code = [(block.start, block.end) for block in plain_text.find_fences(text)]

    def moved(link: "re.Match[str]") -> str:
        if any(first <= link.start() < last for first, last in code):
            return link[0]
        return f"]({link['open']}{_rebase_path(link['path'], old_slug, new_slug)}"

    return _RELATIVE_PATH.sub(moved, text)


_RELATIVE_PATH = re.compile(
    r"\]\((?P<open><?)(?P<path>(?![A-Za-z][A-Za-z0-9+.-]+:|/|#)[^()\s<>#?]+\.(?:md|markdown|org)\b)"
)


def _rebase_path(path: str, old_slug: str, new_slug: str) -> str:
    steps = old_slug.split("/")[:-1]
    for step in path.split("/"):
        if step == "..":
            if not steps:
                return path
            steps.pop()
        elif step not in ("", "."):
            steps.append(step)
    here = new_slug.split("/")[:-1]
    common = 0
    while common < min(len(here), len(steps) - 1) and here[common] == steps[common]:
        common += 1
    return "/".join([".."] * (len(here) - common) + steps[common:])
