"""Two pages made one: their texts, their timelines, their front matter, and the times of their links.

Knows values only. Whatever one of the two says is in the result, once. Does not know rows, nor who asks.
"""

import re
from typing import Any, NamedTuple

from quaid.core import evidence, fences, names, tags

MERGED = "merged"
"""The front-matter key for what the page that went said otherwise."""

_HEADING = re.compile(r" {0,3}(#{1,6})(?=[ \t]|\Z)")
_BLANK = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_OWN = ("title", "slug", "type", "wing", "room")
"""Keys that say what a page is. They are never taken over."""


class Span(NamedTuple):
    """The time of a link, and which link it is."""

    id: int
    valid_from: str | None
    valid_until: str | None


class Joined(NamedTuple):
    """A span that stands for several; the first of them gives the id."""

    span: Span
    absorbed: tuple[int, ...]


# Truth


def truth(kept: str, other: str, title: str) -> str:
    """The first text, then what only the other one says, under a heading with the other's title."""
    known = {_plain(block) for block in _blocks(kept)}
    new = _news(_blocks(other), known, title)
    if not new or _plain(other) in _plain(kept):
        return kept
    section = "\n\n".join([f"## From {title}", *_lowered(new)])
    return f"{kept.rstrip()}\n\n{section}" if kept.strip() else section


def _blocks(text: str) -> list[str]:
    """Pieces between blank lines; a fenced block is never cut."""
    blocks: list[str] = []
    position = 0
    for fence in [*fences.find(text), fences.Fence(len(text), len(text), "")]:
        blocks += _BLANK.split(text[position : fence.start].strip("\n"))
        blocks.append(text[fence.start : fence.end])
        position = fence.end
    return [each for block in blocks for each in _headings_apart(block) if each.strip()]


def _headings_apart(block: str) -> list[str]:
    """A heading is a block of its own, whether or not a blank line follows it."""
    if _is_fence(block) or not any(map(_HEADING.match, block.split("\n"))):
        return [block]
    parts: list[list[str]] = [[]]
    for line in block.split("\n"):
        if _HEADING.match(line):
            parts += [[line], []]
        else:
            parts[-1].append(line)
    return ["\n".join(lines) for lines in parts if lines]


def _news(blocks: list[str], known: set[str], title: str) -> list[str]:
    """The blocks that are not known, with the headings above them; a heading alone says nothing."""
    new: list[str] = []
    above: list[tuple[int, str]] = []
    for block in blocks:
        level = _level(block)
        if level:
            above = [each for each in above if each[0] < level]
            if not (level == 1 and _plain(block.lstrip("# ")) == _plain(title)):
                above.append((level, block))
        elif _plain(block) not in known:
            new += [heading for _, heading in above]
            new.append(block)
            above = []
    return new


def _lowered(blocks: list[str]) -> list[str]:
    """Headings moved down so that the highest stands below the heading of the section."""
    levels = [level for level in map(_level, blocks) if level]
    down = max(0, 3 - min(levels)) if levels else 0
    return [
        f"{'#' * min(6, level + down)}{block.lstrip(' ').lstrip('#')}" if (level := _level(block)) else block
        for block in blocks
    ]


def _level(block: str) -> int:
    found = None if "\n" in block else _HEADING.match(block)
    return len(found[1]) if found else 0


def _is_fence(block: str) -> bool:
    return bool(fences.find(block))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


# Timeline


def lines(kept: str, other: str, title: str) -> str:
    """The first timeline with every entry of the other that it does not hold, and the other's free text below.

    A timeline that runs in one direction goes on to do so; entries of the other come last in any other.
    """
    merged = evidence.with_entries(kept.rstrip("\n"), evidence.missing(other, kept))
    held = set(map(_plain, merged.split("\n")))
    _, free = evidence.pieces(other)
    free = [piece for piece in free if not held.issuperset(map(_plain, filter(str.strip, piece.split("\n"))))]
    if free:
        merged = "\n\n".join(filter(None, [merged, f"### From {title}", *free]))
    return merged


# Front matter


def frontmatter(
    kept: dict[str, Any], other: dict[str, Any], *, slug: str, title: str, kept_title: str
) -> dict[str, Any]:
    """The first page's front matter with the other's tags, names, links and further keys.

    Where both say something and not the same, the first one's word stays, and the other's is kept under `merged`.
    """
    result = dict(kept)
    lost: dict[str, Any] = {}
    for key, value in other.items():
        if key in _OWN or (key in result and key not in _JOINED):
            if key not in ("title", "slug") and result.get(key) != value:
                lost[key] = value
        elif key not in _JOINED:
            result[key] = value
    _join_tags(result, other)
    _join_names(result, other, title, kept_title)
    if other.get("links") is not None:
        result["links"] = _union(_listed(result.get("links")), _listed(other["links"]))
    _note(result, other, slug, lost)
    return result


_JOINED = ("tags", "tag", "aliases", "alias", "links", MERGED)


def _note(result: dict[str, Any], other: dict[str, Any], slug: str, lost: dict[str, Any]) -> None:
    earlier = result.get(MERGED), other.get(MERGED)
    notes: dict[str, Any] = {}
    for each in earlier:
        notes.update(each if isinstance(each, dict) else {} if each is None else {slug: each})
    if lost:
        notes[slug] = lost
    if notes:
        result[MERGED] = notes


def _join_tags(result: dict[str, Any], other: dict[str, Any]) -> None:
    ours = tags.from_frontmatter(result.get("tags", result.get("tag")))
    more = [tag for tag in tags.from_frontmatter(other.get("tags", other.get("tag"))) if tag not in ours]
    if more:
        key = "tag" if "tag" in result and "tags" not in result else "tags"
        given = result.get(key)
        result[key] = [*(given if isinstance(given, list) else ours), *more]


def _join_names(result: dict[str, Any], other: dict[str, Any], title: str, kept_title: str) -> None:
    ours = names.aliases(result)
    known = {names.fold(each) for each in [*ours, kept_title]}
    more = []
    for name in [title, *names.aliases(other)]:
        if names.fold(name) not in known:
            known.add(names.fold(name))
            more.append(name)
    if more:
        key = "alias" if "alias" in result and "aliases" not in result else "aliases"
        result[key] = [*ours, *more]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _union(ours: list[Any], theirs: list[Any]) -> list[Any]:
    return [*ours, *(each for each in theirs if each not in ours)]


# Links


def spans(given: list[Span]) -> list[Joined]:
    """Times of one relationship between the same pages, those that overlap made one."""
    joined: list[Joined] = []
    for span in sorted(given, key=lambda each: each.id):
        new = Joined(span, ())
        while other := next((each for each in joined if _overlap(each.span, new.span)), None):
            joined.remove(other)
            new = Joined(_union_of(other.span, new.span), (*other.absorbed, new.span.id, *new.absorbed))
        joined.append(new)
    return joined


def _overlap(one: Span, other: Span) -> bool:
    return _first(one) < _last(other) and _first(other) < _last(one)


def _first(span: Span) -> str:
    """As validate counts: from the last day if the first is unknown, from the end of time without any."""
    return span.valid_from or span.valid_until or "9999-12-31"


def _last(span: Span) -> str:
    return span.valid_until or "~"


def _union_of(one: Span, other: Span) -> Span:
    since = [each for each in (one.valid_from, other.valid_from) if each]
    until = None
    if one.valid_until and other.valid_until:
        until = max(one.valid_until, other.valid_until)
    return Span(one.id, min(since, default=None), until)


# Places


def relative_paths(text: str, old_slug: str, new_slug: str) -> str:
    """A text whose relative links lead where they led, now that it stands at another place."""
    if "](" not in text or old_slug.rpartition("/")[0] == new_slug.rpartition("/")[0]:
        return text
    code = [(block.start, block.end) for block in fences.find(text)]

    def moved(link: "re.Match[str]") -> str:
        if any(first <= link.start() < last for first, last in code):
            return link[0]
        return f"]({link['open']}{_from_there(link['path'], old_slug, new_slug)}"

    return _PATH.sub(moved, text)


_PATH = re.compile(
    r"\]\((?P<open><?)(?P<path>(?![A-Za-z][A-Za-z0-9+.-]+:|/|#)[^()\s<>#?]+\.(?:md|markdown|org)\b)"
)


def _from_there(path: str, old_slug: str, new_slug: str) -> str:
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
