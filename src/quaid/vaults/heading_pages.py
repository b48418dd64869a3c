"""Headings of a file of org that are pages of their own: made, changed and hidden with the file, in its transaction.

A heading is known by its id, wherever it goes: one that was moved into another file keeps its page. Knows slugs and
rows; does not look at the folder.
"""

from collections.abc import Callable, Iterable
from typing import Any

from quaid.model import slug as slugs
from quaid.model.page import Page
from quaid.storage import collections, erase as erasure, page_edits, pages
from quaid.storage.collections import Collection
from quaid.vaults import index, naming
from quaid.vaults.report import Note


def follow(
    tx: Any,
    collection: Collection,
    file_page: int,
    file_slug: str,
    path: str,
    nodes: Iterable[Page],
    now: str,
    token: str,
    has_left: Callable[[str, str], bool] | None = None,
    wrote: Callable[[int, Page], None] | None = None,
) -> list[Note]:
    """Let the pages of a file's headings be what the file says. Returns what a person should know.

    Where two files have a heading of one id, the one that was read last has the page: a heading that is moved is in
    both for a while. `has_left` says whether a heading is known to be in a file no more. `wrote` hears of each page.

    The token is one that nobody else has: ids of new pages are made of it."""
    there: set[int] = set()
    notes: list[Note] = []
    for node in nodes:
        named = str(node.frontmatter["id"])
        page_id = collections.page_of_heading(tx, collection.id, named)
        other = collections.other_file_with_heading(tx, page_id, file_page) if page_id is not None else None
        if other is not None and not (has_left and has_left(other, named)):
            notes.append(Note(path, f"the id {named} of {node.title!r} is that of a heading in {other} too"))
        saved = _save(tx, collection, file_page, file_slug, node, page_id, named, now, token)
        there.add(saved)
        if wrote:
            wrote(saved, node)
    erasure.quarantine_headings(tx, file_page, now, there)
    return notes


def _save(
    tx: Any,
    collection: Collection,
    file_page: int,
    file_slug: str,
    node: Page,
    page_id: int | None,
    named: str,
    now: str,
    token: str,
) -> int:
    made = _named(tx, collection, file_slug, node, page_id, named)
    before = pages.slug_of(tx, page_id) if page_id is not None else None
    if page_id is not None and before is not None and before != made.slug:
        page_edits.change_slug(tx, collection.id, page_id, before, made.slug, now)
    page_edits.free_slug(tx, collection.id, made.slug)
    saved = page_edits.save(
        tx,
        made,
        uuid=_uuid(tx, named, token),
        now=now,
        expected_version=None,
        collection=collection.name,
        cut=False,
    )
    if not saved.changed and before != made.slug:
        page_edits.derive(tx, saved.id, made, cut=False)  # it says what it said, and is called otherwise
    collections.record_heading(tx, collection.id, saved.id, file_page, named)
    return saved.id


def _named(
    tx: Any, collection: Collection, file_slug: str, node: Page, page_id: int | None, named: str
) -> Page:
    """The page under a slug below that of its file; where another page has it, beside it."""
    address = slugs.from_path(f"{file_slug}/{slugs.segment(node.title)}")
    holder = pages.slug_holder(tx, collection.id, address)
    if holder is not None and holder.page_id != page_id:
        if holder.is_hidden:
            page_edits.vacate_slug(tx, holder.page_id)  # it gets another one when it returns
        else:
            taken = pages.slugs_beginning(tx, collection.id, address)
            before = pages.slug_of(tx, page_id) if page_id is not None else None
            address = naming.beside(address, named, taken - {before or ""})
    return index.moved(node, address)


def _uuid(tx: Any, named: str, token: str) -> str:
    """The id of the heading, unless it is none or another page has it; else a new one."""
    if index.looks_like_uuid(named) and not pages.has_uuid(tx, named):
        return named
    from uuid import NAMESPACE_URL, uuid5

    return str(uuid5(NAMESPACE_URL, f"{token}/{named}"))
