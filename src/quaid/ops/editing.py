"""What operations on one page share: finding it, and changing it within one transaction."""

from collections.abc import Callable
from typing import Annotated, Any

from quaid.brain import Brain
from quaid.core import page, slug
from quaid.core.page import Page
from quaid.ops.register import Arg
from quaid.store import pages
from quaid.store.pages import Saved, Stored

Slug = Annotated[str, Arg("The page, as in people/alice.", positional=True)]
PageVersion = Annotated[int | None, Arg("The page's version as you read it.", version="page", minimum=1)]


def require(brain: Brain, address: str) -> Stored:
    collection, name = slug.split_address(address)
    return pages.require(brain.db, slug.check(name), collection or "default")


def edit(
    brain: Brain,
    address: str,
    expected: int | None,
    change: Callable[[Stored | None], Page],
    *,
    may_create: bool = False,
) -> tuple[Saved, Page]:
    """Read, change and save a page in one transaction, so that no other writer comes between."""
    collection, name = slug.split_address(address)
    name, collection = slug.check(name), collection or "default"
    now, uuid = brain.now(), brain.new_uuid()

    def work(tx: Any) -> tuple[Saved, Page]:
        find = pages.find if may_create else pages.require
        old = find(brain.db, name, collection)
        new = change(old)
        saved = pages.save(tx, new, uuid=uuid, now=now, expected_version=expected, collection=collection)
        return saved, new

    return brain.db.write(work)


def rebuilt(old: Stored, *, frontmatter: dict[str, Any] | None = None, lines: str | None = None) -> Page:
    return page.build(
        old.slug,
        old.frontmatter if frontmatter is None else frontmatter,
        old.truth,
        old.timeline if lines is None else lines,
        fallback_title=old.title,
    )
