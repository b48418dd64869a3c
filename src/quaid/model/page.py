"""Pages: parts, type, title, summary, wing, room and tags, index data, trust classes, and changes by an ingest.

A wing is a top-level category of pages, such as people; a room is a subcategory of a wing. An ingest is a
request that changes several pages at once. A trust class tells the origin of a line, page or fact: 0 (person) is the
highest class and is trusted most, 4 (web) is the lowest. Lines keep their class when other lines of their page
change; see docs/trust.md.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import islice
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from unicodedata import normalize

from quaid.errors import InvalidArgument, InvalidType
from quaid.model import dates, links, plain_text, slug as slugs
from quaid.model.dates import is_date
from quaid.model.links import LinkReference, find_references
from quaid.model.plain_text import SpanCover, code_spans, has_cjk, shorten
from quaid.model.slug import names_of
from quaid.model.timeline import TimelineEntry, parse as parse_timeline, summary_hash

PAGE_TYPES: dict[str, str] = {
    "person": "people",
    "company": "companies",
    "deal": "deals",
    "yc": "yc",
    "civic": "civic",
    "project": "projects",
    "area": "areas",
    "resource": "resources",
    "archive": "archives",
    "concept": "concepts",
    "original": "originals",
    "source": "sources",
    "media": "media",
    "decision": "decisions",
    "commitment": "commitments",
    "action_item": "actions",
    "journal": "journal",
    "meeting": "meetings",
    "paper": "papers",
    "note": "notes",
}
"""The known page types and the default wing of each. A page may have any other type; see `type_name`."""

LONGEST_TYPE = 50

DATE_FIELDS: dict[str, tuple[str, ...]] = {
    "deal": ("expected_close",),
    "decision": ("date", "made_at", "revisit_at"),
    "commitment": ("made_at", "revisit_at", "due"),
    "action_item": ("due",),
    "journal": ("date",),
}
"""Front-matter keys whose values are dates, by page type."""

_TYPE_FOLDERS: dict[str, str] = {
    **{name: name for name in PAGE_TYPES},
    **{wing: name for name, wing in PAGE_TYPES.items()},
    "program": "source",
    "programs": "source",
    "action": "action_item",
    "action_items": "action_item",
    "journals": "journal",
    "daily": "journal",
    "ideas": "project",
}
_ORDER_NUMBER = re.compile(r"[0-9]{1,3}[-_]+(?=[a-z])")
_WORD_SEPARATORS = re.compile(r"[\s_-]+")

CLOSED_STATUSES = {
    "commitment": ("completed", "complete", "done", "kept", "dropped", "cancelled", "canceled", "closed"),
    "action_item": ("done", "completed", "complete", "dropped", "cancelled", "canceled", "closed"),
    "deal": ("won", "lost", "closed", "dropped", "cancelled", "canceled", "archived"),
}
"""The statuses, by type, of pages with nothing left to do. With any other status, or without one, a page is open."""


def check_type(value: Any) -> str:
    """Return a type in its stored form, or raise InvalidType if the value cannot name a type."""
    name = type_name(value)
    if name is None:
        raise InvalidType(type=value, longest=LONGEST_TYPE, types=", ".join(PAGE_TYPES))
    return name


def type_name(value: Any) -> str | None:
    """Return the stored form of a type ("Action Item" becomes action_item), or None if the value cannot name one.

    The type need not be a known one.
    """
    if not isinstance(value, str):
        return None
    name = _WORD_SEPARATORS.sub("_", normalize("NFC", value).strip().lower())
    return name if name and len(name) <= LONGEST_TYPE and name.isprintable() else None


def unknown_type_note(value: Any) -> str:
    """Return a note about a type that is kept although it is not known.

    Return "" for a known type, and for a value that cannot name a type, such as None.
    """
    name = type_name(value)
    if name is None or name in PAGE_TYPES:
        return ""
    return f"type {value!r} is not one of the known types{_similar_type(name)}; kept as it is"


def unused_type_note(name: str) -> str:
    """Return a note about a requested type that no page has."""
    return f"no page has the type {name!r}{_similar_type(name)}; `quaid stats` shows the types in use"


def _similar_type(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, PAGE_TYPES, 1)
    return f" (did you mean {near[0]}?)" if near else ""


def page_type(slug: str, frontmatter: dict[str, Any]) -> str:
    """Return the type of a page: from the front matter, else from the top folder."""
    return type_name(frontmatter.get("type")) or type_from_folders(slug)


def type_from_folders(slug: str) -> str:
    """Return the type implied by the top folder, or "concept" if it does not name a type."""
    folder, mark, _ = slug.partition("/")
    name = _TYPE_FOLDERS.get(strip_order_number(folder).replace("-", "_")) if mark else None
    return name or "concept"


def strip_order_number(folder: str) -> str:
    """Remove a number that only sorts the folder: 1-projects becomes projects; 2024-03 is unchanged."""
    return _ORDER_NUMBER.sub("", folder, count=1) if folder[:1].isdigit() else folder


def invalid_dates(slug: str, kind: str, frontmatter: dict[str, Any]) -> dict[str, Any]:
    """Return the keys whose values should be dates but are not, with these values.

    A page with `type: journal` needs a date, either in its key `date` or at the end of its slug.
    """
    wrong = {
        key: value
        for key in DATE_FIELDS.get(kind, ())
        if (value := frontmatter.get(key)) not in (None, "") and not _begins_with_day(value)
    }
    is_journal = kind == "journal" and type_name(frontmatter.get("type")) == kind
    if is_journal and not frontmatter.get("date") and not is_date(slug[-10:]):
        wrong["date"] = frontmatter.get("date")
    return wrong


def _begins_with_day(value: Any) -> bool:
    """Return True if a value is a date, optionally followed by a time."""
    return isinstance(value, str) and is_date(value[:10]) and value[10:11] in ("", "T", " ")


SUMMARY_LENGTH = 300

_DATE_NAME = re.compile(r"[0-9]{4}-[0-9]{2}(?:-[0-9]{2})?")


def page_title(slug: str, frontmatter: dict[str, Any], text: str, fallback: str | None) -> str:
    """Return the title: from the front matter, else the first H1, the fallback, or the end of the slug."""
    explicit = plain_text.one_line(frontmatter.get("title")) or plain_text.first_heading(text, 1) or fallback
    if explicit:
        return explicit
    name = slug.rpartition("/")[2]
    if _DATE_NAME.fullmatch(name):
        return name
    words = name.replace("-", " ").replace("_", " ").split()
    return " ".join([word[0].upper() + word[1:] for word in words]) or name


def page_summary(frontmatter: dict[str, Any], text: str) -> str:
    """Return the summary: from the front matter, else the top quotation, first paragraph or `description`."""
    explicit = plain_text.one_line(frontmatter.get("summary"))
    if explicit and len(explicit) <= SUMMARY_LENGTH:
        return explicit
    return plain_text.shorten(
        plain_text.strip_markdown(explicit)  # strip markup first, so that truncation cannot cut through it
        or plain_text.top_quote(text)
        or plain_text.first_paragraph(text)
        or plain_text.strip_markdown(plain_text.one_line(frontmatter.get("description"))),
        SUMMARY_LENGTH,
    )


def page_wing(address: str, page_type: str, frontmatter: dict[str, Any]) -> str:
    """Return the wing: from the front matter, else the first folder, else the default wing of the type."""
    named = plain_text.one_line(frontmatter.get("wing"))
    if named:
        return slugs.segment(named)
    folder, mark, _ = address.partition("/")
    if not mark:
        return PAGE_TYPES.get(page_type) or slugs.segment(page_type)
    folder = strip_order_number(folder)
    return PAGE_TYPES.get(folder.replace("-", "_"), folder)  # project/x and projects/x share a wing


def page_room(address: str, frontmatter: dict[str, Any], text: str) -> str:
    """Return the room: from the front matter, else the second folder of a nested slug, else the first H2."""
    named = plain_text.one_line(frontmatter.get("room"))
    if named:
        return slugs.segment(named)
    segments = address.split("/")
    if len(segments) > 2:
        return strip_order_number(segments[1])
    heading = plain_text.first_heading(text, 2)
    return slugs.segment(heading) if heading else ""


LONGEST_TAG = 100
MOST_TAGS_IN_TEXT = 500
"""At most this many tags are taken from the text of one page."""

MOST_HASHES = 100_000
"""At most this many "#" are examined in one text; the rest of the text is skipped."""

_TAG_MARK = re.compile(r"\A[#\s]+")
# The pattern starts with a literal that the regex engine can search for. A tag may contain anything except
# whitespace, punctuation and quotation marks; "-", "_" and "/" are allowed.
_TAG = r"#([^\s\x00-,.:-@\[-^`{-\xbf\u2000-\u206f\u3000-\u303f\uff00-\uff0f]+)"
_BEFORE_TAG = (" ", "\t", "\n", "(")
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]")
_COLOUR = re.compile(r"(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})\Z", re.IGNORECASE)
_INK = re.compile(r"\S")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def check_tag(tag: str) -> str:
    """Return the tag in its stored form, or raise InvalidArgument."""
    spelled = _spell_tag(tag)
    if not spelled:
        raise InvalidArgument(name="tag", problem="it is empty")
    if len(spelled) > LONGEST_TAG:
        raise InvalidArgument(name="tag", problem=f"it is longer than {LONGEST_TAG} characters")
    if "," in spelled:
        raise InvalidArgument(name="tag", problem=f"{spelled!r} holds a comma; give one tag at a time")
    if _CONTROL.search(spelled):
        raise InvalidArgument(name="tag", problem=f"{spelled!r} holds a control character")
    return spelled


def frontmatter_tags(front: dict[str, Any]) -> tuple[str, ...]:
    """Return the tags in front matter, under the key `tags` or `tag`."""
    return parse_tags(front.get("tags", front.get("tag")))


def parse_tags(value: Any) -> tuple[str, ...]:
    """Return the tags in a front-matter value: a list, or text separated by commas or else by whitespace.

    Invalid tags are skipped; they remain in the front matter.
    """
    tags: dict[str, None] = {}
    for item in value if isinstance(value, (list, tuple)) else _tag_pieces(value):
        for piece in str(item).split(",") if isinstance(item, (str, int, float)) else ():
            spelled = _spell_tag(piece)
            if spelled and len(spelled) <= LONGEST_TAG and not _CONTROL.search(spelled):
                tags[spelled] = None
    return tuple(tags)


def text_tags(text: str) -> tuple[str, ...]:
    """Return the tags in running text, such as `#idea`. The caller removes fenced code first.

    Headings, inline code, URLs, anchors, numbers and colour codes are not tags.
    """
    tags: dict[str, None] = {}
    code: SpanCover | None = None
    line = _TagLine(text)
    for match in islice(re.finditer(_TAG, text), MOST_HASHES):
        start = match.start()
        if start and text[start - 1] not in _BEFORE_TAG:
            continue
        spelled = _spell_tag(match[1].strip("/-"))
        if spelled in tags or not _is_tag(spelled) or line.says_something_else(start):
            continue
        if code is None:
            code = SpanCover(code_spans(text) if "`" in text else [])
        if not code.contains(start):
            tags[spelled] = None
            if len(tags) == MOST_TAGS_IN_TEXT:
                break
    return tuple(tags)


def _is_tag(spelled: str) -> bool:
    if len(spelled) > LONGEST_TAG or not any(
        character.isalpha() or character > "\u20ff" for character in spelled
    ):
        return False
    if _COLOUR.match(spelled):  # without a digit, it may be a word such as "face"
        return not (any(map(str.isdigit, spelled)) or len(set(spelled)) == 1 or spelled in ("abc", "abcdef"))
    return True


class _TagLine:
    """The line that contains a "#".

    The "#" characters are tested in text order, so that each line is scanned once.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.begin = self.passed = 0
        self.ink = -1  # offset of the first non-blank character of the line

    def says_something_else(self, start: int) -> bool:
        """Return True if the "#" is in a heading, starts a line of indented code, or is in a link target."""
        text = self.text
        end_before = text.rfind("\n", self.passed, start)
        if end_before >= 0:
            self.begin = end_before + 1
        self.passed = start
        begin = self.begin
        if _HEADING.match(text, begin, start + 8) or text.endswith(("](", "]: "), begin, start):
            return True
        if text.endswith("(", begin, start):
            return text[max(begin, start - 2) : start - 1] not in ("", " ", "\t")
        if self.ink < begin:
            ink = _INK.search(text, begin)
            self.ink = ink.start() if ink else len(text)
        return self.ink >= start and (start - begin > 3 or "\t" in text[begin:start])


def _tag_pieces(value: Any) -> list[Any]:
    if isinstance(value, str):
        return value.split(",") if "," in value else value.split()
    return [value]


def _spell_tag(tag: str) -> str:
    spelled = "-".join(_TAG_MARK.sub("", tag).lower().split())
    if not spelled.isascii():
        spelled = normalize("NFC", spelled)
    return spelled


class Page(NamedTuple):
    """A page: its compiled truth (the text above the timeline), its timeline, and derived fields."""

    slug: str
    type: str
    title: str
    summary: str
    truth: str
    timeline: str
    frontmatter: dict[str, Any]
    wing: str
    room: str
    tags: tuple[str, ...]
    entries: tuple[TimelineEntry, ...]


def build_page(
    slug: str, frontmatter: dict[str, Any], truth: str, timeline: str, *, fallback_title: str | None = None
) -> Page:
    """Build a page from its parts. Front matter takes precedence over inferred values."""

    text = plain_text.visible_text(truth)
    head = plain_text.text_head(text)
    kind = page_type(slug, frontmatter)
    return Page(
        slug=slug,
        type=kind,
        title=page_title(slug, frontmatter, head, fallback_title),
        summary=page_summary(frontmatter, head),
        truth=truth,
        timeline=timeline,
        frontmatter=frontmatter,
        wing=page_wing(slug, kind, frontmatter),
        room=page_room(slug, frontmatter, head),
        tags=_page_tags(frontmatter, text, timeline),
        entries=parse_timeline(timeline),
    )


def _page_tags(frontmatter: dict[str, Any], text: str, timeline: str) -> tuple[str, ...]:
    named = frontmatter_tags(frontmatter)
    if "#" not in text and "#" not in timeline:
        return named

    below = text_tags(plain_text.visible_text(timeline)) if "#" in timeline else ()
    return tuple(dict.fromkeys((*named, *text_tags(text), *below)))


encode_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class DerivedData(NamedTuple):
    """Index data computed from a single page, before links are resolved."""

    frontmatter: str
    names: list[tuple[str, str]]
    """Normalized names of the page with their kinds, sorted."""
    references: list[LinkReference]
    hashes: list[str]
    """Summary hashes of the timeline entries, in order."""
    is_unspaced: bool
    """True if the page contains a script written without spaces between words."""


def derive_data(page: "Page") -> DerivedData:
    return DerivedData(
        encode_json(page.frontmatter),
        sorted(names_of(page.title, page.slug, page.frontmatter)),
        find_references(page),
        [summary_hash(entry.summary) for entry in page.entries],
        has_cjk(page.title) or has_cjk(page.truth) or has_cjk(page.timeline),
    )


CHANGE_KEYS = (
    *("slug", "content", "compiled_truth", "timeline_append", "frontmatter"),
    *("expected_version", "content_hash", "assertions", "links", "timeline_entries", "tags"),
)
LINK_KEYS = ("to", "relationship", "context", "valid_from", "valid_until", "target", "type")
ENTRY_KEYS = ("date", "summary", "source", "detail")

MOST_CHANGES = 500
"""An ingest may change at most this many pages."""


class LinkInput(NamedTuple):
    where: str
    to: str
    relationship: str
    context: str
    valid_from: str | None
    valid_until: str | None


class EntryInput(NamedTuple):
    date: str
    summary: str
    source: str
    detail: str


class PageChange(NamedTuple):
    """One page of an ingest. Facts are validated later, because their default subject is the page's title."""

    where: str
    slug: str
    collection: str | None
    """Name of the collection.

    None means the collection that contains the page or, for a new page, the collection for new pages.
    """
    expected_version: int | None = None
    """The version of the page that the author of the change had read; 0 for a new page.

    None is allowed for a new page, and for a change that only adds to the page.
    """
    content_hash: str | None = None
    """The hash of the text that the author had read, which may be given in place of the version."""
    content: str | None = None
    compiled_truth: str | None = None
    timeline_append: str | None = None
    frontmatter: dict[str, Any] | None = None
    assertions: tuple[dict[str, Any], ...] = ()
    links: tuple[LinkInput, ...] = ()
    entries: tuple[EntryInput, ...] = ()
    tags: tuple[str, ...] = ()
    title: str | None = None
    """The title to use if the page itself has no title."""

    @property
    def address(self) -> str:
        return self.slug if self.collection in (None, "default") else f"{self.collection}::{self.slug}"


WHOLE_OR_PARTS = (
    "cannot be sent with `content`, which is the whole page; put it in there, or leave `content` out"
)


def parse_changes(pages: list[dict[str, Any]]) -> list[PageChange]:
    """Parse the pages of an ingest. Raise InvalidArgument if a value is invalid or a page occurs twice."""
    if len(pages) > MOST_CHANGES:
        problem = f"holds {len(pages):,} pages and {MOST_CHANGES} are allowed; ingest it in parts"
        raise InvalidArgument(name="pages", problem=problem)
    changes = [_parse_change(values, f"pages[{place}]") for place, values in enumerate(pages, 1)]
    seen: set[str] = set()
    for change in changes:
        if change.address in seen:
            raise InvalidArgument(
                name=f"{change.where}.slug", problem=f"{change.address} is there twice; put it into one"
            )
        seen.add(change.address)
    return changes


def _parse_change(values: dict[str, Any], where: str) -> PageChange:
    _check_keys(values, CHANGE_KEYS, where)
    present = {name: value for name, value in values.items() if value is not None}
    address = _text_value(present, "slug", where, needed=True)
    collection, name = slugs.split_address(address)
    content = _optional_text(present, "content", where)
    parts = [part for part in ("compiled_truth", "timeline_append", "frontmatter") if part in present]
    if content is not None and parts:
        raise InvalidArgument(name=f"{where}.{parts[0]}", problem=WHOLE_OR_PARTS)
    if content is not None and not content.strip():
        raise InvalidArgument(name=f"{where}.content", problem="is empty; a page needs text")
    front = present.get("frontmatter")
    if front is not None and not isinstance(front, dict):
        raise InvalidArgument(name=f"{where}.frontmatter", problem="must be an object")
    return PageChange(
        where=where,
        slug=slugs.check(name),
        collection=collection,
        expected_version=_version_value(present.get("expected_version"), f"{where}.expected_version"),
        content_hash=_optional_text(present, "content_hash", where),
        content=content,
        compiled_truth=_optional_text(present, "compiled_truth", where),
        timeline_append=_optional_text(present, "timeline_append", where),
        frontmatter=front,
        assertions=tuple(value for value, _ in _object_list(present, "assertions", where)),
        links=tuple(_parse_link(*item) for item in _object_list(present, "links", where, "to")),
        entries=tuple(_parse_entry(*item) for item in _object_list(present, "timeline_entries", where)),
        tags=tuple(check_tag(tag) for tag in _text_list(present, "tags", where)),
    )


def _parse_link(values: dict[str, Any], where: str) -> LinkInput:
    _check_keys(values, LINK_KEYS, where)
    present = {
        {"target": "to", "type": "relationship"}.get(name, name): value for name, value in values.items()
    }
    since, until = _date_value(present, "valid_from", where), _date_value(present, "valid_until", where)
    dates.check_interval(since, until, f"{where}.valid_until")
    named = _text_value(present, "relationship", where) or links.RELATED
    relationship = links.normalize_relationship(named)
    if not relationship:
        raise InvalidArgument(name=f"{where}.relationship", problem=f"{named!r} holds no letter or digit")
    context = " ".join(_text_value(present, "context", where).split())
    return LinkInput(
        *(where, _text_value(present, "to", where, needed=True), relationship),
        *(shorten(context, links.LONGEST_CONTEXT), since, until),
    )


def _parse_entry(values: dict[str, Any], where: str) -> EntryInput:
    _check_keys(values, ENTRY_KEYS, where)
    date = dates.check_date(_text_value(values, "date", where, needed=True), f"{where}.date")
    summary = _text_value(values, "summary", where, needed=True).strip()
    source = _text_value(values, "source", where).strip()
    for name, text in (("summary", summary), ("source", source)):
        if "\n" in text or "\r" in text:
            raise InvalidArgument(
                name=f"{where}.{name}", problem="must be one line; put the rest into detail"
            )
    if "—" in source:
        raise InvalidArgument(
            name=f"{where}.source", problem="'—' ends a source in a timeline; write '-' in it instead"
        )
    return EntryInput(date, summary, source, _text_value(values, "detail", where))


def _object_list(
    values: dict[str, Any], name: str, where: str, short: str = ""
) -> list[tuple[dict[str, Any], str]]:
    """Return the objects of a list, with their paths for messages.

    With `short`, an item may also be a text, which stands for {short: text}.
    """
    objects = []
    for place, item in enumerate(_list_value(values, name, where), 1):
        here = f"{where}.{name}[{place}]"
        if short and isinstance(item, str):
            item = {short: item}
        if not isinstance(item, dict):
            raise InvalidArgument(name=here, problem="must be an object")
        objects.append((item, here))
    return objects


def _text_list(values: dict[str, Any], name: str, where: str) -> list[str]:
    for place, item in enumerate(_list_value(values, name, where), 1):
        if not isinstance(item, str):
            raise InvalidArgument(name=f"{where}.{name}[{place}]", problem="must be text")
    return _list_value(values, name, where)


def _list_value(values: dict[str, Any], name: str, where: str) -> list[Any]:
    value = values.get(name, [])
    if not isinstance(value, list):
        raise InvalidArgument(name=f"{where}.{name}", problem="must be a list")
    return value


def _text_value(values: dict[str, Any], name: str, where: str, *, needed: bool = False) -> str:
    value = values.get(name)
    value = "" if value is None else value
    if not isinstance(value, str):
        raise InvalidArgument(name=f"{where}.{name}", problem="must be text")
    if needed and not value.strip():
        raise InvalidArgument(name=f"{where}.{name}", problem="is required")
    return value


def _optional_text(values: dict[str, Any], name: str, where: str) -> str | None:
    return _text_value(values, name, where) if name in values else None


def _date_value(values: dict[str, Any], name: str, where: str) -> str | None:
    text = _text_value(values, name, where)
    return dates.check_date(text, f"{where}.{name}") if text else None


def _version_value(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise InvalidArgument(name=name, problem="must be the version that you read, a whole number")
    return value


def _check_keys(values: dict[str, Any], allowed: tuple[str, ...], where: str) -> None:
    for name in values:
        if name not in allowed:
            raise InvalidArgument(
                name=f"{where}.{name}", problem=f"is no part of it; there are: {', '.join(allowed)}"
            )


TrustName = Literal["person", "observed", "imported", "derived", "web"]
CLASSES: tuple[TrustName, ...] = ("person", "observed", "imported", "derived", "web")
PERSON, OBSERVED, IMPORTED, DERIVED, WEB = range(len(CLASSES))

KEY_BYTES = 8
"""A line is identified by this many bytes of the hash of its text."""

WEB_KINDS = ("web", "clip")
"""Kinds of ingested sources that have the class `web`, even if their name is not a web address."""

_MARKS = re.compile(r"\A(?:[-*+]\s+|\d+[.)]\s+)?(?:\[[ xX]\]\s+)?")
"""The bullet and checkbox of a list item. They are not part of a line's key, so ticking an item keeps its class."""
_ADDRESS = re.compile(r"\bhttps?://", re.IGNORECASE)


SUPERSEDED_STATUSES = frozenset({"superseded", "retracted", "replaced", "obsolete", "deprecated"})
"""Values of `status`, in front matter or in a node of the knowledge base, that mean superseded."""


def is_superseded(status: object) -> bool:
    """Return True if a value of `status` means that the text is outdated."""
    return str(status).strip().casefold() in SUPERSEDED_STATUSES


def parse_class(name: str | None) -> int | None:
    """Return the number of the class with this name, or None if the name is None."""
    return None if name is None else CLASSES.index(name)


def class_of_source(source: str, kind: str = "") -> int:
    """Return the class of an ingested source: WEB for a web kind or a name with a web address, else IMPORTED."""
    return WEB if kind in WEB_KINDS or _ADDRESS.search(source) else IMPORTED


def line_key(line: str) -> bytes:
    """Return the key that identifies a line by its text, or b"" for a line without text."""
    import hashlib  # imported here, because loading OpenSSL takes 3 ms

    text = " ".join(_MARKS.sub("", line.strip(), count=1).split())
    if not text:
        return b""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()


def line_keys(text: str) -> list[bytes]:
    """Return the keys of the non-empty lines of a text."""
    return [key for line in text.splitlines() if (key := line_key(line))]


def _words(text: str) -> str:
    return " ".join(_MARKS.sub("", text.strip(), count=1).strip("…").split())


class LineTrust(NamedTuple):
    """The classes of the lines of a page."""

    rest: int = PERSON
    """The class of all lines that are not in `lines`."""
    lines: Mapping[bytes, int] = MappingProxyType({})
    """The classes of the lines whose class is not `rest`, by line key."""

    @property
    def lowest(self) -> int:
        return max(self.rest, *self.lines.values()) if self.lines else self.rest

    @property
    def highest(self) -> int:
        return min(self.rest, *self.lines.values()) if self.lines else self.rest

    def of_line(self, line: str) -> int:
        return self.lines.get(line_key(line), self.rest) if self.lines else self.rest

    def of_text(self, text: str) -> int:
        """Return the lowest class of the lines of a text. Lines that are not in `lines` have the class `rest`."""
        if not self.lines:
            return self.rest
        return max((self.lines.get(key, self.rest) for key in line_keys(text)), default=self.rest)

    def of_excerpt(self, excerpt: str, text: str) -> int:
        """Return the lowest class of the lines of `text` that contain the excerpt or are contained in it.

        If there are no such lines, return the lowest class of all lines.
        """
        if not self.lines:
            return self.rest
        rows = [line for line in text.splitlines() if excerpt in line] if excerpt else []
        if rows:  # the excerpt occurs verbatim
            return max(map(self.of_line, rows))
        part = _words(excerpt)
        rows = [
            line for line in text.splitlines() if (words := _words(line)) and (words in part or part in words)
        ]
        return max((self.of_line(line) for line in rows), default=self.of_text(text))

    def without(self, text: str, limit: int) -> str:
        """Return a text without the lines of a class below `limit`; "" if only headings would remain."""
        if not self.lines:
            return text if self.rest <= limit else ""
        kept = [line for line in text.splitlines() if not line.strip() or self.of_line(line) <= limit]
        has_text = any(line.strip() and not line.startswith("#") for line in kept)
        return "\n".join(kept).strip("\n") if has_text else ""

    def after_write(self, old: str, new: str, written: int) -> "LineTrust":
        """Return the classes after a write of class `written` has changed the text from `old` to `new`.

        Lines of the old text keep their class, even if their order changed.
        """
        if not self.lines and self.rest == written:
            return self
        before = set(line_keys(old))
        return combine(
            (key, self.lines.get(key, self.rest) if key in before else written) for key in line_keys(new)
        )

    def lowered(self, text: str, classes: dict[bytes, int]) -> "LineTrust":
        """Return the classes of the lines of a text, with those in `classes` overridden."""
        if not classes:
            return self
        own = {key: self.lines.get(key, self.rest) for key in line_keys(text)}
        return combine({**own, **classes}.items())

    def removed(self, old: str, new: str, limit: int) -> bool:
        """Return True if a line of a class above `limit` is in the old text but not in the new text."""
        if self.highest >= limit:
            return False
        kept = set(line_keys(new))
        return any(self.lines.get(key, self.rest) < limit for key in line_keys(old) if key not in kept)

    def joined(self, own: str, other: "LineTrust", text: str) -> "LineTrust":
        """Return the classes of the lines of two joined pages.

        `own` is the text of this page; `other` and `text` are the classes and the text of the other page. A line on
        both pages keeps its class on this page.
        """
        classes = {key: self.lines.get(key, self.rest) for key in line_keys(own)}
        for key in line_keys(text):
            classes.setdefault(key, other.lines.get(key, other.rest))
        return combine(classes.items())

    def pack(self) -> bytes:
        return b"".join(key + bytes([number]) for key, number in sorted(self.lines.items()))


ALL_BY_PERSON = LineTrust()


def combine(classes: Iterable[tuple[bytes, int]]) -> LineTrust:
    """Build a LineTrust from classes by line key. The most frequent class becomes `rest`."""
    by_key = dict(classes)
    if not by_key:
        return ALL_BY_PERSON
    rest = Counter(by_key.values()).most_common(1)[0][0]
    return LineTrust(rest, {key: number for key, number in by_key.items() if number != rest})


def unpack(rest: int, packed: bytes) -> LineTrust:
    size = KEY_BYTES + 1
    return LineTrust(
        rest,
        {packed[at : at + KEY_BYTES]: packed[at + KEY_BYTES] for at in range(0, len(packed), size)},
    )


@cache
def _instruction() -> re.Pattern[str]:
    """Return the pattern of phrases that address an agent or give it a rule.

    This is a heuristic; docs/trust.md gives its error rates. Compiled at first use, because that takes 2 ms.
    """
    return re.compile(
        r"""\b(?:ignore|disregard|override|forget|bypass)\b[^.\n]{0,40}\b(?:instruct|rule|prompt|order|polic|guideline)
        | \b(?:instructions?|orders?|rules?|note|message|notice|action|important)\ (?:for|to)\b[^.\n]{0,20}
          \b(?:ai|assistants?|agents?|models?|bots?|llms?)\b
        | \b(?:ai|assistants?|agents?|chatbots?|llms?|models?)\b[^.\n]{0,60}
          \b(?:must|shall|should|will|need\ to|have\ to|has\ to|are\ to|is\ to|always|never)\b
        | \b(?:as\ an?\ (?:ai|assistant|agent)|dear\ (?:ai|assistant|agent)|you\ are\ now)\b
        | \byou\ (?:must|shall|should|have\ to|are\ to|may|can\ now|will\ now|always|never)\b
        | \b(?:from\ now\ on|henceforth|from\ today\ on|effective\ (?:today|immediately))\b
        | \bstanding\ orders?\b | \bsystem\ prompt\b | \b(?:new|updated)\ (?:instructions?|rules?|orders?)\b
        | \b(?:the\ )?(?:user|owner)(?:'s)?\ (?:has\ |always\ )?
          (?:said|says|wants?|prefers?|decided|confirmed|ordered|orders|asked|asks|told|rule)\b
        | \bwhenever\ you\b | \bwhen\ (?:you\ )?(?:summari[sz]ing|answering|asked)\b
        | (?:^|[.:;!>]\s+|[-*+]\s+)(?:please\ |dear\ \w+,\ )?(?:always|never|do\ not|don['’]t|make\ sure)\s+\w+
        | <\s*/?\s*(?:system|assistant|user|instructions?|prompt|tool|memory)\b
        | (?:^|[\[{\s"'])(?:system|assistant|developer)["']?\s*[\]]?\s*:
        """,
        re.IGNORECASE | re.VERBOSE | re.MULTILINE,
    )


_DELIMITER = (
    r"(?i)<(?=\s*/?\s*(?:system|assistant|user|developer|instructions?|prompt|tool|function|memory|context|quote)\b"
    r"|!--)"
)


_TRIGGERS = frozenset(
    "ignore disregard override forget bypass ai assistant assistants agent agents model models bot bots"
    " chatbot chatbots llm llms you from henceforth effective standing system new updated user owner whenever"
    " when always never do don make developer instruction instructions prompt tool memory instruct".split()
)
"""Every text that _instruction() matches contains one of these words. Searching for them first is much faster."""


def quotes_instructions(text: str) -> bool:
    """Return True if a text seems to give instructions to an agent."""
    if _TRIGGERS.isdisjoint(re.findall(r"[^\W_]+", text.lower())):
        return False
    return _instruction().search(text) is not None


def escape_delimiters(text: str) -> str:
    """Escape tags such as <system> or </quote>, so that quoted text cannot end the quotation or imitate a speaker."""
    return re.sub(_DELIMITER, "&lt;", text) if "<" in text else text
