"""One file's bytes to the page that they make: the one way in, for imports and for folders kept in step.

Knows how a file is decoded, parsed and named. Does not know the disk, the database, or which other file wants
the same slug (naming.py does).
"""

import hashlib
import re
from typing import Any, NamedTuple

from quaid.core import page, page_type, slug
from quaid.core.page import Page
from quaid.errors import InvalidSlug
from quaid.formats import markdown

_LIKE_A_SLUG = re.compile(r"[a-z0-9_-]+")
_ENDING = re.compile(r"\.(?:md|markdown)\Z", re.IGNORECASE)


class Indexed(NamedTuple):
    page: Page
    notes: tuple[str, ...]  # what had to be mended or could not be understood


def digest(data: bytes) -> str:
    """The name of these bytes: SHA-256."""
    return hashlib.sha256(data).hexdigest()


def read(path: str, data: bytes) -> Indexed:
    """The page of a file, under the slug that the file asks for."""
    text, mended = markdown.decode(data)
    document = markdown.parse(text)
    made = page.build(
        claimed_slug(document.frontmatter) or slug.from_path(path),
        document.frontmatter,
        document.truth,
        document.timeline,
        fallback_title=_title_of_name(path),
    )
    notes = []
    if mended:
        notes.append(mended)
    if document.problem:
        notes.append(f"front matter kept as it is: {document.problem}")
    named = document.frontmatter.get("type")
    if named is not None and page_type.known(named) is None:
        notes.append(f"type {named!r} is not known; taken for a {made.type}")
    return Indexed(made, tuple(notes))


def moved(made: Page, address: str) -> Page:
    """The same page under another slug."""
    if made.slug == address:
        return made
    return page.build(address, made.frontmatter, made.truth, made.timeline, fallback_title=made.title)


def claimed_slug(frontmatter: dict[str, Any]) -> str | None:
    """The slug that front matter asks for, if it is one."""
    named = frontmatter.get("slug")
    if not isinstance(named, str):
        return None
    try:
        return slug.check(named)
    except InvalidSlug:
        return None


def stem(path: str) -> str:
    """The path without the ending that marks a page."""
    return _ENDING.sub("", path)


def _title_of_name(path: str) -> str | None:
    """A file name that is written for people is a title; one that is a slug already says nothing more."""
    name = stem(path).rpartition("/")[2].strip()
    return None if _LIKE_A_SLUG.fullmatch(name) else name or None
