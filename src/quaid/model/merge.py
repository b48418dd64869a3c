"""Three-way merge of two versions of a page, and joining of two pages into one.

Timelines, tags, links and facts are merged as sets, front matter by key, and the compiled truth by block
(paragraph, heading, list item, table row, code block). If both versions changed the same block or key in
different ways, the merged page contains both values, and `find_conflicts` finds them again:

<!-- conflict: laptop -->
Mira lives in Lisbon.
<!-- or: desktop -->
Mira lives in Porto.
<!-- end of conflict -->

In front matter, the value of `theirs` stays under its key, and the other one is stored under `conflicts`.
"""

import json
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal, NamedTuple, TypeVar

from quaid.errors import NotFound
from quaid.model import page as page_model, plain_text, slug as slugs, timeline as timelines
from quaid.model.bundle import Bundle, BundleFact, BundleLink, BundleRaw, FactKey, json_text

CONFLICTS_KEY = "conflicts"
"""Front-matter key with the values that lost a conflict: {key: {name: value}}."""
TIME_KEYS = ("updated", "modified", "updated_at", "modified_at", "last_modified", "lastmod", "date_modified")
"""Front-matter keys with the time of the last edit. The later of two values is used."""
ALL_SIDES = "all"
"""The choice that keeps the values of all sides of a conflict."""
CURRENT_SIDE = "current"
"""Name of the side of a front-matter conflict whose value is in use."""

Part = Literal["text", "frontmatter", "page"]
Row = TypeVar("Row", BundleLink, BundleFact, BundleRaw)
Key = tuple[str, int]
"""An item of a list, and the number of equal items before it in the list."""


_MISSING: Any = object()
"""Stands for the value of a key that is missing from a mapping."""


class ConflictSide(NamedTuple):
    name: str
    """The name of the version, for example the name of a device."""
    value: Any
    """A text, "" if this version removed it; or a value of front matter, None if this version removed it."""


class PageConflict(NamedTuple):
    """A block or key with different values in two or more versions."""

    part: Part
    """`text` is a block of the compiled truth; `page` is the slug, a deletion, a link, a fact or raw data."""
    key: str
    """The front-matter key; "" for part `text`; a description such as "slug" or "deleted" for part `page`."""
    sides: tuple[ConflictSide, ...]


def merge(
    base: Bundle | None, ours: Bundle, theirs: Bundle, our_name: str, their_name: str
) -> tuple[Bundle, tuple[PageConflict, ...]]:
    """Merge two versions of a page. `base` is the version on which both are based, or None if there is none.

    Return the merged page and its new conflicts. The result does not depend on which version is ours, except that in
    a conflict of slugs, front-matter values or raw data, those of `theirs` stay in use.
    """
    our_name, their_name = _plain_name(our_name), _plain_name(their_name)
    our_name = f"{our_name[:58]} 2" if our_name == their_name else our_name
    if base is not None and _same_bundle(theirs, base):
        return ours, ()
    if _same_bundle(ours, theirs) or (base is not None and _same_bundle(ours, base)):
        return theirs, ()
    if ours.deleted or theirs.deleted:
        return _merge_deleted(ours, theirs, our_name, their_name)
    frontmatter, conflicts = merge_front_matter(
        {} if base is None else base.frontmatter, ours.frontmatter, theirs.frontmatter, our_name, their_name
    )
    truth, text_conflicts = merge_text(
        None if base is None else base.truth, ours.truth, theirs.truth, our_name, their_name
    )
    before = base or Bundle(theirs.uuid, theirs.slug, {}, "", "")
    _record(frontmatter, ((conflict.key, *conflict.sides[1]) for conflict in conflicts))
    notes: list[PageConflict] = []
    slug = ours.slug if theirs.slug == before.slug and base is not None else theirs.slug
    if base is not None and ours.slug not in (before.slug, slug):
        notes.append(_note("slug", their_name, theirs.slug, our_name, ours.slug))
    links = _merge_rows(before.links, ours.links, theirs.links, our_name, their_name, notes)
    facts = _join_equal_facts(
        _merge_rows(before.facts, ours.facts, theirs.facts, our_name, their_name, notes)
    )
    raw = _merge_raw(before.raw, ours.raw, theirs.raw, our_name, their_name, notes)
    _record(frontmatter, ((f"({note.key})", *note.sides[1]) for note in notes))
    merged = Bundle(
        *(theirs.uuid, slug, frontmatter, truth),
        merge_timeline("" if base is None else base.timeline, ours.timeline, theirs.timeline),
        *(links, facts, raw),
    )
    return merged, (*text_conflicts, *conflicts, *notes)


def is_addition(base: Bundle | None, new: Bundle) -> bool:
    """Return True if a version only adds timeline entries, links and facts to the base, or is a new page."""
    if base is None:
        return not new.deleted
    same = new._replace(timeline=base.timeline, links=base.links, facts=base.facts)
    if not _same_bundle(base, same) or not set(base.links) <= set(new.links):
        return False
    units = iter(_timeline_units(new.timeline))
    added: list[str] = []
    for unit in _timeline_units(base.timeline):
        for other in units:
            if other == unit:
                break
            added.append(other)
        else:
            return False
    return set(base.facts) <= set(new.facts) and all(map(timelines.parse, [*added, *units]))


def _same_bundle(one: Bundle, other: Bundle) -> bool:
    if one[3:5] != other[3:5] or (one.slug, one.deleted) != (other.slug, other.deleted):
        return False
    rows = zip((one.links, one.facts, one.raw), (other.links, other.facts, other.raw), strict=True)
    return json_text(one.frontmatter) == json_text(other.frontmatter) and all(
        sorted(map(json_text, ours)) == sorted(map(json_text, theirs)) for ours, theirs in rows
    )


def _merge_deleted(
    ours: Bundle, theirs: Bundle, our_name: str, their_name: str
) -> tuple[Bundle, tuple[PageConflict, ...]]:
    """Return the version that is not deleted, because a change takes precedence over a deletion.

    If both are deleted, return `theirs`.
    """
    if ours.deleted and theirs.deleted:
        return theirs, ()
    alive, name = (theirs, our_name) if ours.deleted else (ours, their_name)
    frontmatter = dict(alive.frontmatter)
    _record(frontmatter, [("(deleted)", name, True)])
    conflict = PageConflict("page", "deleted", (ConflictSide(CURRENT_SIDE, None), ConflictSide(name, True)))
    return alive._replace(frontmatter=frontmatter), (conflict,)


def _note(key: str, name: str, value: Any, loser: str, lost: Any) -> PageConflict:
    """Return a conflict of part `page`. The first side is the one whose value is used."""
    return PageConflict("page", key, (ConflictSide(name, value), ConflictSide(loser, lost)))


# Lists as sets


def _numbered(items: Iterable[str]) -> list[Key]:
    """Return each item with the number of equal items before it, so that repeated items stay distinct."""
    seen: dict[str, int] = {}
    keys = []
    for item in items:
        seen[item] = seen.get(item, -1) + 1
        keys.append((item, seen[item]))
    return keys


def _kept(base: list[Key], ours: list[Key], theirs: list[Key]) -> set[Key]:
    """Return the items that are in both lists, or that one list added to the base."""
    in_ours, in_theirs = set(ours), set(theirs)
    return (in_ours & in_theirs) | ((in_ours ^ in_theirs) - set(base))


def _by_precedence(base: list[Key], ours: list[Key], theirs: list[Key]) -> tuple[list[Key], list[Key]]:
    """Return both lists, the one that changed more of the base first. The first list determines the merged order."""

    present = set(base)

    def weight(items: list[Key]) -> tuple[bool, int, list[Key]]:
        remaining = set(items)
        kept = [item for item in base if item in remaining]
        return kept == [item for item in items if item in present], len(kept), items

    first, second = sorted((ours, theirs), key=weight)
    return first, second


def _merge_order(base: list[Key], ours: list[Key], theirs: list[Key]) -> list[Key]:
    """Three-way merge of ordered sets. Each added item is placed after the item that precedes it in its list."""
    keep = _kept(base, ours, theirs)
    first, second = _by_precedence(base, ours, theirs)
    return _with_additions(
        [item for item in first if item in keep], [item for item in second if item in keep]
    )


def _with_additions(items: list[Key], others: list[Key]) -> list[Key]:
    """Insert the items that only `others` contains, each after the item that precedes it in `others`."""
    present = set(items)
    added: dict[Key | None, list[Key]] = {None: []}
    above: Key | None = None
    for item in others:
        if item in present:
            above = item
        else:
            added.setdefault(above, []).append(item)
    return [*added[None], *(one for item in items for one in (item, *added.get(item, ())))]


# Front matter


class _Clash(Exception):
    """Both versions changed a value, in different ways."""


def merge_front_matter(
    base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any], our_name: str, their_name: str
) -> tuple[dict[str, Any], list[PageConflict]]:
    """Merge front matter by key. If both versions changed a value that cannot be merged, `theirs` is used.

    If one version removed a key and the other changed it, the changed value is used. The first side of a conflict
    is the one whose value is used.
    """
    values: dict[str, Any] = {}
    conflicts: list[PageConflict] = []
    for key in {**theirs, **ours}:
        versions = (mapping.get(key, _MISSING) for mapping in (base, ours, theirs))
        before, our_value, their_value = _as_lists(key, *versions)
        if key == CONFLICTS_KEY and all(map(_are_records, (before, our_value, their_value))):
            values[key] = _merge_records(before, our_value, their_value)
            continue
        try:
            values[key] = _merge_value(key, before, our_value, their_value)
        except _Clash:
            sides = [ConflictSide(their_name, their_value), ConflictSide(our_name, our_value)]
            if their_value is _MISSING:
                sides.reverse()
            values[key] = sides[0].value
            lost = None if sides[1].value is _MISSING else sides[1].value
            conflicts.append(PageConflict("frontmatter", key, (sides[0], sides[1]._replace(value=lost))))
    return _in_order(values, base, ours, theirs), conflicts


def _in_order(
    values: dict[str, Any], base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]
) -> dict[str, Any]:
    """Return the merged values of two mappings, without missing ones, in the merged order of their keys."""
    order = _merge_order(*([(key, 0) for key in mapping] for mapping in (base, ours, theirs)))
    keys = [*(key for key, _ in order), *values]
    return {key: values[key] for key in keys if values[key] is not _MISSING}


def _as_lists(key: str, *values: Any) -> tuple[Any, ...]:
    """Convert tags and aliases that are strings to lists if the versions differ, so that lists can be merged."""
    if key not in ("tags", "tag", "aliases", "alias") or not any(
        isinstance(value, str) for value in values[1:]
    ):
        return values
    split: Callable[[str], Any] = (
        (lambda text: list(page_model.parse_tags(text))) if key[0] == "t" else lambda text: [text]
    )
    lists = tuple(split(value) if isinstance(value, str) else value for value in values)
    changed = [value for value in values if value is not _MISSING]
    return lists if any(not _same(value, changed[0]) for value in changed) else values


def _same(one: Any, other: Any) -> bool:
    if one is _MISSING or other is _MISSING:
        return one is other
    return json_text(one) == json_text(other)


def _merge_value(key: str, base: Any, ours: Any, theirs: Any) -> Any:
    """Return the merged value, or raise _Clash."""
    if _same(ours, theirs) or _same(ours, base):
        return theirs
    if _same(theirs, base):
        return ours
    if all(value is None or value is _MISSING for value in (ours, theirs)):
        return _MISSING
    if isinstance(ours, dict) and isinstance(theirs, dict):
        mappings = (base if isinstance(base, dict) else {}, ours, theirs)
        merged = {
            name: _merge_value("", *(mapping.get(name, _MISSING) for mapping in mappings))
            for name in {**theirs, **ours}
        }
        return _in_order(merged, *mappings)
    if isinstance(ours, list) and isinstance(theirs, list):
        lists = (base if isinstance(base, list) else [], ours, theirs)
        items = {json_text(item): item for values in lists for item in values}
        return [
            items[text] for text, _ in _merge_order(*(_numbered(map(json_text, values)) for values in lists))
        ]
    if key in TIME_KEYS and isinstance(ours, str) and isinstance(theirs, str):
        return max(ours, theirs)
    raise _Clash


def _merge_records(base: Any, ours: Any, theirs: Any) -> Any:
    """Merge the values of CONFLICTS_KEY. Values of both versions are kept, unless one version resolved them."""
    flat = (
        _numbered(
            json_text([key, name, value])
            for key, sides in ({} if records is _MISSING else records).items()
            for name, value in sides.items()
        )
        for records in (base, ours, theirs)
    )
    merged: dict[str, Any] = {CONFLICTS_KEY: {}}
    _record(merged, (json.loads(text) for text, _ in _merge_order(*flat)))
    return merged[CONFLICTS_KEY] or _MISSING


def _are_records(value: Any) -> bool:
    """Return True if a value of CONFLICTS_KEY has the form that `_record` writes, or is missing."""
    if isinstance(value, dict):
        return all(isinstance(sides, dict) for sides in value.values())
    return value is _MISSING


def _record(frontmatter: dict[str, Any], lost: Iterable[Sequence[Any]]) -> None:
    """Store values that lost a conflict, each given as key, name of the version and value.

    A value gets another name if the name is in use for a different value.
    """
    lost = list(lost)
    if not lost:
        return
    records = frontmatter.get(CONFLICTS_KEY, _MISSING)
    if not _are_records(records):
        records = {CONFLICTS_KEY: {"value": records}}
    records = {} if records is _MISSING else {key: dict(sides) for key, sides in records.items()}
    for key, name, value in lost:
        sides = records.setdefault(key, {})
        label, number = name, 1
        while label in sides and json_text(sides[label]) != json_text(value):
            number += 1
            label = f"{name} {number}"
        sides[label] = value
    frontmatter[CONFLICTS_KEY] = records


# Links, facts and raw data


def _merge_rows(
    base: Sequence[Row],
    ours: Sequence[Row],
    theirs: Sequence[Row],
    our_name: str,
    their_name: str,
    notes: list[PageConflict],
) -> tuple[Row, ...]:
    """Merge rows by their keys. A row is kept if one version removed it and the other changed it."""
    before, our_rows, their_rows = map(_rows_by_key, (base, ours, theirs))
    merged: list[Row] = []
    for key in sorted({**our_rows, **their_rows}):
        old, one, other = before.get(key), our_rows.get(key), their_rows.get(key)
        if one is None or other is None:
            row = one or other
            if row is not None and row != old:
                merged.append(row)
            continue
        merged.append(_merge_columns(old, one, other, our_name, their_name, notes))
    return tuple(merged)


def _join_equal_facts(facts: tuple[BundleFact, ...]) -> tuple[BundleFact, ...]:
    """Join equal facts from different sources into one fact with all sources."""
    groups: dict[tuple[Any, ...], list[BundleFact]] = {}
    for fact in sorted(facts, key=json_text):
        groups.setdefault(fact[:5], []).append(fact)
    keys: dict[FactKey, FactKey] = {}
    joined: list[BundleFact] = []
    for same in groups.values():
        fact = same[0]
        if len(same) > 1:
            sources = [source for other in same for source in other.source_ref.split("; ") if source]
            pieces = dict.fromkeys(other.evidence_text for other in same if other.evidence_text)
            fact = fact._replace(
                source_ref="; ".join(sorted(set(sources))),
                evidence_text=" / ".join(pieces),
                confidence=max(other.confidence for other in same),
                created_at=min(other.created_at for other in same),
                supersedes=next((other.supersedes for other in same if other.supersedes), None),
            )
        keys |= {other.key: fact.key for other in same if other.key != fact.key}
        joined.append(fact)
    older = [keys.get(fact.supersedes, fact.supersedes) if fact.supersedes else None for fact in joined]
    return tuple(
        fact._replace(supersedes=None if key == fact.key else key)
        for fact, key in zip(joined, older, strict=True)
    )


def _rows_by_key(rows: Sequence[Row]) -> dict[Key, Row]:
    ordered = sorted(rows, key=json_text)
    return dict(zip(_numbered(json_text(row.key) for row in ordered), ordered, strict=True))


def _merge_columns(
    base: Row | None, ours: Row, theirs: Row, our_name: str, their_name: str, notes: list[PageConflict]
) -> Row:
    """Merge two rows with the same key column by column. Only different values of valid_until are a conflict."""
    values: dict[str, Any] = {}
    for column, other in theirs._asdict().items():
        one = getattr(ours, column)
        old = _MISSING if base is None else getattr(base, column)
        if one in (other, old):
            values[column] = other
        elif other == old:
            values[column] = one
        elif column == "valid_until":
            values[column] = min(filter(None, (one, other)))
            if one and other:
                kind = "link" if isinstance(theirs, BundleLink) else "fact"  # raw data has no validity
                about = " ".join(filter(None, [kind, *map(str, theirs.key[:3])]))
                (won, name), (lost, loser) = sorted([(one, our_name), (other, their_name)])
                notes.append(_note(f"{about} valid_until", name, won, loser, lost))
        elif column in ("context", "evidence_text"):
            low, high = sorted((one, other), key=lambda text: (len(text), text))
            values[column] = high if low in high else " / ".join(sorted((low, high)))
        else:
            values[column] = min((one, other), key=json_text)
    return theirs._replace(**values)


def _merge_raw(
    base: Sequence[BundleRaw],
    ours: Sequence[BundleRaw],
    theirs: Sequence[BundleRaw],
    our_name: str,
    their_name: str,
    notes: list[PageConflict],
) -> tuple[BundleRaw, ...]:
    """Merge raw data by source. If both changed a source, both are kept, ours under another source name."""
    before, our_rows, their_rows = ({row.source: row for row in rows} for rows in (base, ours, theirs))
    merged: dict[str, BundleRaw] = {}
    for source in {**our_rows, **their_rows}:
        old, one, other = before.get(source), our_rows.get(source), their_rows.get(source)
        if one is None or other is None:
            row = one or other
            if row is not None and row != old:
                merged[source] = row
            continue
        merged[source] = one if other == old else other
        if one.data != other.data and old not in (one, other):
            copy = f"{source} ({our_name})"
            merged[copy] = one._replace(source=copy)
            notes.append(_note(f"raw {source}", their_name, source, our_name, copy))
    return tuple(merged[source] for source in sorted(merged))


# Compiled truth

_MARKER = re.compile(r"<!-- (?:(?:conflict|or): (?P<name>.*)|(?P<end>end of conflict)) -->[ \t]*")
_HEADING_LINE = re.compile(r" {0,3}(#{1,6})(?=[ \t]|\Z)")
_ITEM_LINE = re.compile(r"[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\S")
_ROW_LINE = re.compile(r" {0,3}\|")
_LEAST_LIKENESS = 0.5
"""Two blocks without a common base are versions of one block if at least this share of their words is equal."""
_LONG_TEXT = 1_000
"""Longer sequences are compared with _matches_of_long(), because SequenceMatcher takes quadratic time."""
_MOST_PAIRS = 400
"""If there are more possible pairs of old and new blocks, blocks are not paired by similarity; see _pairs()."""


class _Blocks(NamedTuple):
    """A text as blocks, and the blank lines before each block and after the last."""

    blocks: list[str]
    gaps: list[str]


def split_blocks(text: str) -> list[str]:
    """Return the blocks of a text: paragraphs, headings, list items, table rows, code blocks, conflicts."""
    return _split(text).blocks


def _split(text: str) -> _Blocks:
    lines = text.split("\n")
    whole = _whole_ranges(text, lines)
    blocks: list[list[str]] = []
    gaps: list[list[str]] = [[]]
    place, is_open = 0, False
    while place < len(lines):
        line, end = lines[place], whole.get(place, place + 1)
        if end > place + 1 or place in whole:
            blocks.append(lines[place:end])
            gaps.append([])
            is_open = False
        elif not line.strip():
            gaps[-1].append(line)
            is_open = False
        elif is_open and not any(start.match(line) for start in (_HEADING_LINE, _ITEM_LINE, _ROW_LINE)):
            blocks[-1].append(line)
        else:
            blocks.append([line])
            gaps.append([])
            is_open = not _HEADING_LINE.match(line)
        place = end
    # A gap is the text between two blocks: line ends and blank lines.
    texts = ["\n".join(["", *gap, ""]) for gap in gaps]
    texts[0] = texts[0][1:] if blocks else texts[0][1:-1]
    texts[-1] = texts[-1][:-1] if blocks else texts[-1]
    return _Blocks(["\n".join(block) for block in blocks], texts)


def _whole_ranges(text: str, lines: list[str]) -> dict[int, int]:
    """Map the first line of each code block or conflict, which is never split, to the line after its last line."""
    ranges: dict[int, int] = {}
    for fence in plain_text.find_fences(text):
        first = text.count("\n", 0, fence.start)
        ranges[first] = first + text.count("\n", fence.start, fence.end) + 1
    place, start = 0, None
    while place < len(lines):
        if place in ranges:
            place = ranges[place]
            continue
        marker = _MARKER.fullmatch(lines[place])
        if marker and lines[place].startswith("<!-- conflict:"):
            start = place
        elif marker and marker["end"] and start is not None:
            ranges = {first: end for first, end in ranges.items() if not start <= first < place}
            ranges[start] = place + 1
            start = None
        place += 1
    return ranges


def merge_text(
    base: str | None, ours: str, theirs: str, our_name: str, their_name: str
) -> tuple[str, list[PageConflict]]:
    """Merge a compiled truth by blocks. Conflicts are written into the text between markers."""
    if ours in (theirs, base):
        return theirs, []
    if theirs == base:
        return ours, []
    one, other = _split(ours), _split(theirs)
    old = _split(base) if base is not None else _Blocks(_common(one.blocks, other.blocks), [])
    pieces: list[str | PageConflict] = []
    for before, our_part, their_part in _chunks(old.blocks, one.blocks, other.blocks):
        pieces += _merge_chunk(before, our_part, their_part, (our_name, their_name), base is None)
    conflicts = [piece for piece in pieces if isinstance(piece, PageConflict)]
    blocks = [piece if isinstance(piece, str) else conflict_text(piece) for piece in pieces]
    return _join(blocks, old, one, other), conflicts


def _common(ours: list[str], theirs: list[str]) -> list[str]:
    first, second = sorted((ours, theirs))
    return [first[place] for place, _ in _matches(first, second)]


def _matches(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs of indexes at which two sequences have equal items, both indexes ascending."""
    start, shorter = 0, min(len(one), len(other))
    while start < shorter and one[start] == other[start]:
        start += 1
    end = 0
    while end < shorter - start and one[-1 - end] == other[-1 - end]:
        end += 1
    ours, theirs = one[start : len(one) - end], other[start : len(other) - end]
    if max(len(ours), len(theirs)) > _LONG_TEXT:
        between = _matches_of_long(ours, theirs)
    else:
        matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
        between = [
            (match.a + step, match.b + step)
            for match in matcher.get_matching_blocks()
            for step in range(match.size)
        ]
    return [
        *((place, place) for place in range(start)),
        *((start + place, start + other_place) for place, other_place in between),
        *((len(one) - place, len(other) - place) for place in range(end, 0, -1)),
    ]


def _matches_of_long(one: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """Return pairs like _matches(), but possibly different ones, in O(n log n) time; SequenceMatcher takes O(n²).

    The first occurrence of an item is paired with the first one in the other sequence, the second with the second
    and so on. The result is the longest increasing sequence of such pairs.
    """
    places = {key: place for place, key in enumerate(_numbered(other))}
    pairs = [(place, places[key]) for place, key in enumerate(_numbered(one)) if key in places]
    ends: list[int] = []  # smallest last index of an increasing sequence, by its length
    last: list[int] = []  # position in `pairs` of that last index
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1], last[length : length + 1] = [place], [number]
    matches = []
    number = last[-1] if last else -1
    while number >= 0:
        matches.append(pairs[number])
        number = before[number]
    return matches[::-1]


def _chunks(
    base: list[str], ours: list[str], theirs: list[str]
) -> Iterable[tuple[list[str], list[str], list[str]]]:
    """Split three versions at the blocks of the base that both other versions contain."""
    in_ours, in_theirs = dict(_matches(base, ours)), dict(_matches(base, theirs))
    start = (0, 0, 0)
    for place in range(len(base)):
        if place in in_ours and place in in_theirs:
            end = (place, in_ours[place], in_theirs[place])
            yield base[start[0] : end[0]], ours[start[1] : end[1]], theirs[start[2] : end[2]]
            yield [base[place]], [base[place]], [base[place]]
            start = (end[0] + 1, end[1] + 1, end[2] + 1)
    yield base[start[0] :], ours[start[1] :], theirs[start[2] :]


def _merge_chunk(
    base: list[str], ours: list[str], theirs: list[str], names: tuple[str, str], no_base: bool
) -> list[str | PageConflict]:
    if ours == theirs or theirs == base:
        return [*ours]
    if ours == base:
        return [*theirs]
    if no_base:
        return _merge_alike(ours, theirs, names)
    our_blocks, our_inserted = _edits(base, ours)
    their_blocks, their_inserted = _edits(base, theirs)
    merged: list[str | PageConflict] = []
    for place in range(len(base) + 1):
        merged += _union(our_inserted[place], their_inserted[place])
        if place < len(base):
            old = base[place]
            one, other = our_blocks[place], their_blocks[place]
            block = other if one in (old, other) else one
            if old not in (one, other) and one != other:
                merged.append(_text_conflict([(names[0], one or ""), (names[1], other or "")]))
            elif block is not None:
                merged.append(block)
    return merged


def _union(ours: list[str], theirs: list[str]) -> list[str]:
    """Return the blocks inserted by either version at one place. The order does not depend on which is ours."""
    first, second = sorted((ours, theirs))
    present = set(first)
    return [*first, *(block for block in second if block not in present)]


def _edits(base: list[str], new: list[str]) -> tuple[list[str | None], list[list[str]]]:
    """Return the new version of each base block, None if removed, and the insertions before each and at the end."""
    blocks: list[str | None] = [None] * len(base)
    inserted: list[list[str]] = [[] for _ in range(len(base) + 1)]
    first = start = 0
    for last, stop in [*_matches(base, new), (len(base), len(new))]:
        pairs = dict(_pairs(base[first:last], new[start:stop]))
        for place in range(first, last):
            if place - first in pairs:
                blocks[place] = new[start + pairs[place - first]]
        paired = {other: place for place, other in pairs.items()}
        at = first
        for place in range(start, stop):
            if place - start in paired:
                at = first + paired[place - start] + 1
            else:
                inserted[at].append(new[place])
        if last < len(base):
            blocks[last] = base[last]
        first, start = last + 1, stop + 1
    return blocks, inserted


def _pairs(old: list[str], new: list[str], least: float = 0.0) -> list[tuple[int, int]]:
    """Pair old blocks with the new blocks that replace them, in order and with the greatest total similarity.

    If there are as many new as old blocks, or more than _MOST_PAIRS pairs, blocks are paired by position. With
    `least`, return only pairs of at least this similarity, and none if there are more than _MOST_PAIRS pairs.
    """
    if len(old) == len(new) and not least:
        return [(place, place) for place in range(len(old))]
    if len(old) * len(new) > _MOST_PAIRS:
        return [] if least else [(place, place) for place in range(min(len(old), len(new)))]
    # The best pairs without crossing, by dynamic programming from the end.
    best: list[list[tuple[float, list[tuple[int, int]]]]]
    best = [[(0.0, [])] * (len(new) + 1) for _ in range(len(old) + 1)]
    for place in reversed(range(len(old))):
        for other in reversed(range(len(new))):
            likeness = max(_likeness(old[place], new[other]), 0.0 if least else 0.001)
            score, pairs = best[place + 1][other + 1]
            options = [best[place + 1][other], best[place][other + 1]]
            if likeness >= least:
                options.insert(0, (score + likeness, [(place, other), *pairs]))
            best[place][other] = max(options, key=lambda option: option[0])
    return best[0][0][1]


def _likeness(one: str, other: str) -> float:
    """Return the share of equal words, from 0 to 1; 0 if only one of the blocks is a heading."""
    if bool(_HEADING_LINE.match(one)) != bool(_HEADING_LINE.match(other)):
        return 0.0
    ours, theirs = Counter(one.split()), Counter(other.split())
    return 2 * (ours & theirs).total() / max(1, ours.total() + theirs.total())


def _merge_alike(ours: list[str], theirs: list[str], names: tuple[str, str]) -> list[str | PageConflict]:
    """Merge blocks without a base: similar blocks are a conflict, and the others are additions."""
    if sorted((ours, theirs)) != [ours, theirs]:
        ours, theirs, names = theirs, ours, names[::-1]
    merged: list[str | PageConflict] = []
    start = stop = 0
    for place, other in [*_pairs(ours, theirs, _LEAST_LIKENESS), (len(ours), len(theirs))]:
        merged += _union(ours[start:place], theirs[stop:other])
        if place < len(ours):
            merged.append(_text_conflict([(names[0], ours[place]), (names[1], theirs[other])]))
        start, stop = place + 1, other + 1
    return merged


def _text_conflict(sides: list[tuple[str, str]]) -> PageConflict:
    """Return a conflict of texts. If a text is itself a conflict, its sides are used instead."""
    texts: dict[str, str] = {}
    for name, text in sides:
        nested = _parse_conflict(text)
        for side in nested or [ConflictSide(_plain_name(name), text)]:
            texts.setdefault(side.value, side.name)
    ordered = sorted((name, text) for text, name in texts.items())
    return PageConflict("text", "", tuple(ConflictSide(name, text) for name, text in ordered))


def _plain_name(name: str) -> str:
    """Return a version name that is safe in a conflict marker, which is an HTML comment."""
    return re.sub("-{2,}", "-", " ".join(name.split()))[:60] or "unnamed"


def conflict_text(conflict: PageConflict) -> str:
    """Return the sides of a conflict with markers around them."""
    lines = []
    for number, side in enumerate(conflict.sides):
        lines.append(f"<!-- {'or' if number else 'conflict'}: {side.name} -->")
        if side.value:
            lines.append(plain_text.close_fence(side.value))
    return "\n".join([*lines, "<!-- end of conflict -->"])


def _parse_conflict(block: str) -> list[ConflictSide]:
    """Return the sides of a block that is a conflict; [] for other blocks."""
    if not block.startswith("<!-- conflict: ") or not block.endswith("-->"):
        return []
    sides: list[tuple[str, list[str]]] = []
    for line in block.split("\n"):
        marker = _MARKER.fullmatch(line)
        if marker and marker["name"] is not None:
            sides.append((marker["name"], []))
        elif not sides:  # the first line only looks like a marker
            return []
        elif not marker:
            sides[-1][1].append(line)
    return [ConflictSide(name, "\n".join(lines)) for name, lines in sides] if len(sides) > 1 else []


def _join(blocks: list[str], base: _Blocks, ours: _Blocks, theirs: _Blocks) -> str:
    """Join blocks with the blank lines that separated them in either version.

    Blocks that are neighbours in neither version are separated by one blank line, and by none if both are list items
    or both are table rows.
    """
    between: dict[tuple[str, str], str] = {}
    for version in (ours, theirs):
        for place in range(1, len(version.blocks)):
            pair = version.blocks[place - 1], version.blocks[place]
            between[pair] = max(between.get(pair, ""), version.gaps[place])
    if not blocks:
        return ""
    texts: list[str] = []
    for place, block in enumerate(blocks):
        if place:
            above = blocks[place - 1]
            is_list = all(_ITEM_LINE.match(text) for text in (above, block)) or all(
                _ROW_LINE.match(text) for text in (above, block)
            )
            texts.append(between.get((above, block), "\n" if is_list else "\n\n"))
        texts.append(plain_text.close_fence(block) if place + 1 < len(blocks) else block)
    first = _merged_gap(base, ours, theirs, 0)
    last = _merged_gap(base, ours, theirs, -1)
    return "".join([first, *texts, last])


def _merged_gap(base: _Blocks, ours: _Blocks, theirs: _Blocks, place: int) -> str:
    old = base.gaps[place] if base.gaps else None
    one, other = ours.gaps[place], theirs.gaps[place]
    return other if one == old else one if other == old else max(one, other)


# Timelines


def _timeline_units(text: str) -> list[str]:
    """Return the entries of a timeline and the blocks of text between them, in order."""
    entries, free = timelines.split_entries(text)
    units = split_blocks(free[0])
    for entry, below in zip(entries, free[1:], strict=True):
        units += [entry.text, *split_blocks(below)]
    return units


def merge_timeline(base: str, ours: str, theirs: str) -> str:
    """Return a timeline with the entries of both versions.

    An entry that one version removed is removed, unless the other version changed it. New entries are inserted
    by date, as in timeline.insert_entries.
    """
    if ours in (theirs, base):
        return theirs
    if theirs == base:
        return ours
    old, one, other = (_numbered(_timeline_units(text)) for text in (base, ours, theirs))
    keep = _kept(old, one, other)
    first, second = _by_precedence(old, one, other)
    entries = {entry.text: entry for text in (theirs, ours) for entry in timelines.split_entries(text)[0]}
    merged = [unit for unit in first if unit in keep]
    present = set(merged)
    added = [unit for unit in second if unit in keep and unit not in present and unit[0] in entries]
    free = [unit for unit in second if unit in present or (unit in keep and unit[0] not in entries)]
    merged = _with_additions(merged, free)
    text = _join(
        [unit for unit, _ in merged], *(_timeline_blocks(version) for version in (base, ours, theirs))
    )
    like = theirs if second == other else ours
    return timelines.insert_entries(text, [entries[unit] for unit, _ in added], like)


def _timeline_blocks(text: str) -> _Blocks:
    """Return the units of a timeline with the text between them."""
    units = _timeline_units(text)
    gaps, at = [], 0
    for unit in units:
        start = text.index(unit, at)
        gaps.append(text[at:start])
        at = start + len(unit)
    return _Blocks(units, [*gaps, text[at:]])


# Conflicts in a page


def find_conflicts(truth: str, frontmatter: dict[str, Any]) -> tuple[PageConflict, ...]:
    """Return the conflicts that a page contains: first those of its text, then those of its front matter."""
    conflicts = [
        PageConflict("text", "", tuple(sides))
        for block in (split_blocks(truth) if "<!-- conflict: " in truth else ())
        if (sides := _parse_conflict(block))
    ]
    records = frontmatter.get(CONFLICTS_KEY)
    for key, sides in records.items() if isinstance(records, dict) and _are_records(records) else ():
        if sides:
            others = [ConflictSide(str(name), value) for name, value in sides.items()]
            if key.startswith("(") and key.endswith(")"):
                conflicts.append(PageConflict("page", key[1:-1], tuple(others)))
            else:
                current = ConflictSide(CURRENT_SIDE, frontmatter.get(key))
                conflicts.append(PageConflict("frontmatter", key, (current, *others)))
    return tuple(conflicts)


def resolve_conflict(
    truth: str, frontmatter: dict[str, Any], conflict: PageConflict, choice: str
) -> tuple[str, dict[str, Any]]:
    """Return text and front matter with one conflict resolved.

    `choice` is the name of the side whose value is used, or ALL_SIDES to keep the texts or list items of all
    sides. For a conflict of part `page`, only its record in the front matter is removed; the caller renames the
    page if another slug was chosen. Raise NotFound if the page has no such conflict, or the conflict no such side.
    """
    values = [side.value for side in conflict.sides if choice in (side.name, ALL_SIDES)]
    if not values or conflict not in find_conflicts(truth, frontmatter):
        names = ", ".join([*(side.name for side in conflict.sides), ALL_SIDES])
        raise NotFound(what="side of this conflict", name=choice, hint=f"The conflict has: {names}.")
    if conflict.part == "text":
        parts = _split(truth)
        place = next(
            place
            for place, block in enumerate(parts.blocks)
            if tuple(_parse_conflict(block)) == conflict.sides
        )
        chosen = "\n\n".join(filter(None, values))
        blocks = [*parts.blocks[:place], *filter(None, [chosen]), *parts.blocks[place + 1 :]]
        gaps = parts.gaps if chosen else [*parts.gaps[:place], *parts.gaps[place + 1 :]]
        text = gaps[0] + "".join(block + gap for block, gap in zip(blocks, gaps[1:], strict=True))
        return text, frontmatter
    return truth, _resolve_key(frontmatter, conflict, choice, values)


def _resolve_key(
    frontmatter: dict[str, Any], conflict: PageConflict, choice: str, values: list[Any]
) -> dict[str, Any]:
    resolved = dict(frontmatter)
    key = f"({conflict.key})" if conflict.part == "page" else conflict.key
    records = {name: sides for name, sides in frontmatter[CONFLICTS_KEY].items() if name != key}
    resolved[CONFLICTS_KEY] = records
    if not records:
        del resolved[CONFLICTS_KEY]
    if conflict.part == "frontmatter":
        items = [item for value in values for item in (value if isinstance(value, list) else [value])]
        value = list({json_text(item): item for item in items}.values()) if choice == ALL_SIDES else values[0]
        if value is None:
            resolved.pop(key, None)
        else:
            resolved[key] = value
    return resolved


# Two pages joined into one

MERGED_KEY = "merged"
"""Front-matter key under which the conflicting values of the removed page are kept."""

_BLANK = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_IDENTITY_KEYS = ("title", "slug", "type", "wing", "room")
"""Keys for the identity and the place of a page. They are never copied from the other page."""
_JOINED_KEYS = ("tags", "tag", "aliases", "alias", "links", MERGED_KEY)


def join_truths(truth: str, other: str, title: str) -> str:
    """Append the blocks that only the compiled truth `other` has, under a heading with the title of its page."""
    existing = {_fold_text(block) for block in _paragraphs(truth)}
    new = _new_blocks(_paragraphs(other), existing, title)
    if not new or _fold_text(other) in _fold_text(truth):
        return truth
    section = "\n\n".join([f"## From {title}", *_lower_headings(new)])
    return f"{truth.rstrip()}\n\n{section}" if truth.strip() else section


def _paragraphs(text: str) -> list[str]:
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
    if plain_text.find_fences(block) or not any(map(_HEADING_LINE.match, block.split("\n"))):
        return [block]
    parts: list[list[str]] = [[]]
    for line in block.split("\n"):
        if _HEADING_LINE.match(line):
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
    heading = None if "\n" in block else _HEADING_LINE.match(block)
    return len(heading[1]) if heading else 0


def _fold_text(text: str) -> str:
    return " ".join(text.split()).casefold()


def join_timelines(own: str, other: str, title: str) -> str:
    """Add the entries and free text of the other timeline that the first timeline does not contain.

    New entries are inserted in date order if the timeline is sorted, and otherwise appended. Free text comes
    last, under a heading.
    """
    merged = timelines.insert_entries(own.rstrip("\n"), timelines.missing_entries(other, own))
    own_lines = set(map(_fold_text, merged.split("\n")))
    _, free = timelines.split_entries(other)
    free = [
        piece
        for piece in free
        if not own_lines.issuperset(map(_fold_text, filter(str.strip, piece.split("\n"))))
    ]
    if free:
        merged = "\n\n".join(filter(None, [merged, f"### From {title}", *free]))
    return merged


def join_front_matter(
    own: dict[str, Any], other: dict[str, Any], *, slug: str, title: str, kept_title: str
) -> dict[str, Any]:
    """Merge the other page's tags, names, links and remaining keys into the first page's front matter.

    If both pages have different values for a key, the value of the first page is used, and the other value is
    kept under `merged`. The title of the other page becomes an alias.
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
        ours = _as_list(result.get("links"))
        result["links"] = [*ours, *(link for link in _as_list(other["links"]) if link not in ours)]
    _record_conflicts(result, other, slug, lost)
    return result


def _record_conflicts(result: dict[str, Any], other: dict[str, Any], slug: str, lost: dict[str, Any]) -> None:
    notes: dict[str, Any] = {}
    for note in (result.get(MERGED_KEY), other.get(MERGED_KEY)):
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
