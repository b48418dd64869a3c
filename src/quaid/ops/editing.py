"""What operations on one page share: finding it, and changing it within one transaction."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from quaid.brain import Brain
from quaid.errors import InvalidSlug, InvalidType, NotFound, PageNotFound
from quaid.model import slug as slugs
from quaid.ops.register import Arg
from quaid.storage import pages
from quaid.storage.page_edits import SaveResult
from quaid.storage.pages import PageRow

if TYPE_CHECKING:
    from quaid.model.page import Page
    from quaid.storage.collections import Collection

MOST_WINGS_SHOWN = 12

Slug = Annotated[str, Arg("The page, as in people/alice.", positional=True)]
PageVersion = Annotated[int | None, Arg("The version you read.", version="page", minimum=1)]


def locate(brain: Brain, address: str) -> "tuple[Collection, str]":
    """Where a page is, or would be made: the collection that is named, the one that has it, or the write target."""
    from quaid.storage import collections

    named, name = _split(brain, address)
    holder = named or pages.single_collection_with(brain.db, name)
    if holder is None:
        return collections.write_target(brain.db), name
    return collections.require(brain.db, holder), name


def require(brain: Brain, address: str) -> PageRow:
    named, name = _split(brain, address)
    return pages.require(brain.db, name, named or pages.single_collection_with(brain.db, name) or "default")


def require_wing(brain: Brain, wing: str) -> str:
    """Return the wing, or raise NotFound with the wings there are. Any wing will do in an empty memory."""
    from quaid.storage import briefing

    if not pages.wings_called(brain.db, [wing]) and (wings := briefing.wing_counts(brain.db)):
        shown = ", ".join(each.name for each in wings[:MOST_WINGS_SHOWN])
        more = f" and {len(wings) - MOST_WINGS_SHOWN} more" if len(wings) > MOST_WINGS_SHOWN else ""
        raise NotFound(what="wing", name=repr(wing), hint=f" The wings are {shown}{more}.")
    return wing


def _split(brain: Brain, address: str) -> tuple[str | None, str]:
    """The collection and the slug of an address. Whoever writes a page's title instead is told its slug."""
    named, name = slugs.split_address(address)
    try:
        return named, slugs.check(name)
    except InvalidSlug:
        hint = pages.namesake_hint(brain.db, name, named)
        if not hint:
            raise
        raise PageNotFound(slug=address, hint=hint) from None


def edit(
    brain: Brain,
    address: str,
    expected: int | None,
    change: "Callable[[PageRow | None], Page]",
    *,
    may_create: bool = False,
    also: "Callable[[Any, SaveResult, Page, str], SaveResult] | None" = None,
    exact: Callable[[], bytes | None] | None = None,
) -> "tuple[SaveResult, Page]":
    """Read, change and save a page in one transaction, so that no other writer comes between.

    `also` writes what hangs on the page, in the same transaction, and says what came of the save then. `exact`,
    asked after the change, knows the very bytes that the page's file shall have."""
    from quaid.errors import FileChanged
    from quaid.folders import page_writer

    now, uuid = brain.now(), brain.new_uuid()

    def work(tx: Any) -> "tuple[SaveResult, Page]":
        collection, name = locate(brain, address)
        find = pages.find if may_create else pages.require
        old = find(brain.db, name, collection.name)
        new = change(old)
        data = exact() if exact else None
        saved = page_writer.save_page(
            brain.db, tx, collection, old, new, uuid=uuid, now=now, expected_version=expected, data=data
        )
        return also(tx, saved, new, now) if also else saved, new

    try:
        return brain.db.write(work)
    except FileChanged as changed:
        _take_in(brain, address, str(changed.facts["path"]))
        raise


def _take_in(brain: Brain, address: str, path: str) -> None:
    """Read a file that was changed outside, so that its author's next look at the page shows what it says."""
    from quaid.folders.sync import sync_collection

    collection, _ = locate(brain, address)
    if collection.root is not None:
        now = brain.now()
        sync_collection(
            brain.db, collection, now=now, new_uuid=brain.new_uuid, progress=brain.progress, only=[path]
        )


def refuse_folder(brain: Brain, address: str, collection: str, act: str) -> None:
    """What changes where a page is, or whether it is, has to happen to its file where there is one."""
    from quaid.errors import PageOfFolder
    from quaid.storage import collections

    if collections.require(brain.db, collection).root is not None:
        raise PageOfFolder(slug=address, collection=collection, act=act)


def rebuilt(old: PageRow, *, frontmatter: dict[str, Any] | None = None, lines: str | None = None) -> "Page":
    from quaid.model import page as page_model

    return page_model.build_page(
        old.slug,
        old.frontmatter if frontmatter is None else frontmatter,
        old.truth,
        old.timeline if lines is None else lines,
        fallback_title=old.title,
    )


def checked(
    address: str, front: dict[str, Any], truth: str, lines: str, old: PageRow | None, title: str | None = None
) -> "Page":
    """A page whose type, if it names a new one, is a known type, and whose new dates are dates."""
    from quaid.model import page as page_model

    named = front.get("type")
    if named is not None and (old is None or old.frontmatter.get("type") != named):
        if not isinstance(named, str):
            raise InvalidType(type=named, hint="", known=", ".join(page_model.PAGE_TYPES))
        page_model.check_type(named)
    name = slugs.split_address(address)[1]
    made = page_model.build_page(
        slugs.check(name), front, truth, lines, fallback_title=old.title if old else title
    )
    _check_dates(made, old)
    return made


def _check_dates(made: "Page", old: PageRow | None) -> None:
    """Refuse a value that is no day in a key that holds one, unless the page had it before."""
    from quaid.errors import InvalidPageDate, MissingDate
    from quaid.model import page as page_model

    before = page_model.invalid_dates(old.slug, old.type, old.frontmatter) if old else {}
    for name, value in page_model.invalid_dates(made.slug, made.type, made.frontmatter).items():
        if name in before and before[name] == value:
            continue
        if value in (None, ""):
            raise MissingDate(slug=made.slug, name=name)
        raise InvalidPageDate(slug=made.slug, name=name, value=value)


def removed_front(old: PageRow | None, new: "Page") -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the keys of the front matter and the tags that a page has lost."""
    if old is None:
        return (), ()
    keys = tuple(key for key in old.frontmatter if key not in (*new.frontmatter, "tag", "tags"))
    return keys, tuple(each for each in old.tags if each not in new.tags)


def with_keys(front: dict[str, Any], keys: dict[str, Any]) -> dict[str, Any]:
    """Front matter with some keys set; None takes a key away."""
    from quaid.formats import front_matter

    changed = dict(front)
    for key, value in front_matter.plain_values(keys).items():
        if value is None:
            changed.pop(key, None)
        else:
            changed[key] = value
    return changed


def with_tags(front: dict[str, Any], labels: list[str]) -> dict[str, Any]:
    """Front matter with these tags, under the key that the page uses for them."""
    key = "tag" if "tag" in front and "tags" not in front else "tags"
    changed = {**front, key: labels}
    if not labels:
        del changed[key]
    return changed
