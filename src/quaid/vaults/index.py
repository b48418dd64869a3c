"""One file's bytes to the page that they make: the one way in, for imports and for folders kept in step.

Knows how a file is decoded, parsed and named, and that a file of org may hold further pages. Does not know the disk,
the database, or which other file wants the same slug (naming.py does).
"""

import hashlib
import re
from typing import Any, NamedTuple

from quaid.errors import InvalidSlug
from quaid.formats import markdown
from quaid.model import markdown_text, page as page_model, slug as slugs
from quaid.model.links import IN_FILE_KEY
from quaid.model.page import Page

ID_KEY = "quaid_id"
"""The front-matter key that carries a page's id."""

ORG = ".org"
MOST_PROBLEMS = 3
"""Of a file of org that are told."""

LONGEST_REASON = 200

_TELLING = (b"slug", ID_KEY.encode(), b"\\", b"\xff\xfe", b"\xfe\xff")
_LIKE_A_SLUG = re.compile(r"[a-z0-9_-]+")
_ENDING = re.compile(r"\.(?:md|markdown|org)\Z", re.IGNORECASE)


class Indexed(NamedTuple):
    page: Page
    notes: tuple[str, ...]  # what had to be mended or could not be understood
    nodes: tuple[Page, ...] = ()  # headings that are pages of their own; `id` is in their front matter


def failure(error: Exception) -> str:
    """Say in one line that a file could not be taken in because Quaid failed on it."""
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return (
        f"not taken in: Quaid fails on it ({reason[:LONGEST_REASON]}). That is a bug: please report it."
        " The file is tried again when it changes"
    )


def digest(data: bytes) -> str:
    """The name of these bytes: SHA-256."""
    return hashlib.sha256(data).hexdigest()


def read(path: str, data: bytes) -> Indexed:
    """The page of a file, under the slug that the file asks for."""
    if is_org(path):
        return _read_org(path, data)
    text, mended = markdown.decode(data)
    document = markdown.parse(text)
    made = page_model.build_page(
        claimed_slug(document.frontmatter) or slugs.from_path(path),
        document.frontmatter,
        document.truth,
        document.timeline,
        fallback_title=_title_of_name(path),
    )
    notes = []
    if mended:
        notes.append(mended)
    if document.problem:
        kept = "kept as it is" if document.frontmatter else "taken for text"
        notes.append(f"front matter {kept}: {document.problem}")
    return Indexed(made, (*notes, *_note_of_type(made), *_notes_of_dates(made)))


class Asked(NamedTuple):
    slug: str
    identity: str | None


def asked(path: str, data: bytes) -> Asked:
    """What a file of markdown wants to be called and known by: as `read` would find it, for a tenth of the work."""
    head = data
    if data.startswith((b"---\n", b"+++\n")):
        closing = data.find(b"\n" + data[:4], 3)
        head = data[: closing + 5] if closing >= 0 else data
    # With a backslash a key can be written otherwise than letter by letter, and in UTF-16 it always is.
    if not any(each in head for each in _TELLING):
        return Asked(slugs.from_path(path), None)
    # What is no ASCII may be decoded otherwise for what stands behind it.
    front = markdown.parse(markdown.decode(head if head.isascii() else data).text).frontmatter
    named = front.get(ID_KEY)
    return Asked(claimed_slug(front) or slugs.from_path(path), named if isinstance(named, str) else None)


def _read_org(path: str, data: bytes) -> Indexed:
    """The page of a file of org, and those of its headings that have an id."""
    from quaid.formats import org

    text, mended = markdown.decode(data)
    document = org.read_pages(text)
    front, truth, timeline = document.page[1:]
    asked = claimed_slug(front) or slugs.from_path(path)
    made = page_model.build_page(asked, front, truth, timeline, fallback_title=_title_of_name(path))
    nodes: dict[str, Page] = {}
    for each in document.nodes:
        front = {**each.frontmatter, IN_FILE_KEY: path}
        address = slugs.from_path(f"{asked}/{slugs.segment(each.title)}")
        if front["id"] != made.frontmatter.get("id"):  # two with one id are one page; the first counts
            nodes.setdefault(front["id"], page_model.build_page(address, front, each.truth, each.timeline))
    told = [f"line {each.line}: {each.message}" for each in document.problems[:MOST_PROBLEMS]]
    more = len(document.problems) - len(told)
    notes = [*([mended] if mended else []), *told, *([f"{more} more of this kind"] if more else [])]
    return Indexed(made, (*notes, *_note_of_type(made)), tuple(nodes.values()))


def _note_of_type(made: Page) -> tuple[str, ...]:
    named = made.frontmatter.get("type")
    if named is None or page_model.known_type(named) is not None:
        return ()
    return (f"type {named!r} is not known; taken for a {made.type}",)


def _notes_of_dates(made: Page) -> list[str]:
    wrong = page_model.invalid_dates(made.slug, made.type, made.frontmatter)
    return [
        f"{name}: {value!r} is not a date; write YYYY-MM-DD, as in 2026-04-25"
        if value
        else f"a journal without a day; add `{name}: 2026-04-25` to its front matter"
        for name, value in wrong.items()
    ]


def is_org(path: str) -> bool:
    return path.lower().endswith(ORG)


def identity(made: Page, path: str) -> str | None:
    """The id by which a file is known wherever it goes: what we wrote into it, else the id of a file of org."""
    named = made.frontmatter.get(ID_KEY)
    if named is None and is_org(path):
        given = made.frontmatter.get("id")
        named = given if isinstance(given, str) and looks_like_uuid(given) else None
    return named if isinstance(named, str) else None


def looks_like_uuid(text: str) -> bool:
    return len(text) == 36 and all(part.isalnum() for part in text.split("-")) and text.count("-") == 4


def moved(made: Page, address: str) -> Page:
    """The same page under another slug."""
    if made.slug == address:
        return made
    return page_model.build_page(
        address, made.frontmatter, made.truth, made.timeline, fallback_title=made.title
    )


def titled(made: Page, path: str) -> Page:
    """The same page under the title that it has as a file at this path."""
    head = markdown_text.text_head(markdown_text.visible_text(made.truth))
    return made._replace(title=page_model.page_title(made.slug, made.frontmatter, head, _title_of_name(path)))


def claimed_slug(frontmatter: dict[str, Any]) -> str | None:
    """The slug that front matter asks for, if it is one."""
    named = frontmatter.get("slug")
    if not isinstance(named, str):
        return None
    try:
        return slugs.check(named)
    except InvalidSlug:
        return None


def stem(path: str) -> str:
    """The path without the ending that marks a page."""
    return _ENDING.sub("", path)


def _title_of_name(path: str) -> str | None:
    """A file name that is written for people is a title; one that is a slug already says nothing more."""
    name = stem(path).rpartition("/")[2].strip()
    return None if _LIKE_A_SLUG.fullmatch(name) else name or None
