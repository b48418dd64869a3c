"""Quarantine: pages whose file vanished, or is ignored by now. Look at them, write them out, bring them back."""

from typing import Annotated, Any, NamedTuple

from quaid.brain import Brain
from quaid.errors import AmbiguousSlug, InvalidArgument, NotFound, OnlyHere
from quaid.model import dates, slug as slugs
from quaid.ops.register import Arg, op
from quaid.storage import collections, erase as erasure
from quaid.storage.erase import QuarantinedPage

SEE = " `quaid collection quarantine list` shows what there is."

Page = Annotated[str, Arg("The page, as in people/alice or notes::people/alice.", positional=True)]


class WaitingRecord(NamedTuple):
    slug: str
    title: str
    collection: str
    path: str | None
    """Where its file was."""
    since: str
    until: str
    """The day from which on a sync lets it go, unless it holds what is only here."""
    links: int
    assertions: int
    raw_data: int
    exported_to: str | None


class QuarantineRecord(NamedTuple):
    pages: tuple[WaitingRecord, ...]


class QuarantineExportRecord(NamedTuple):
    folder: str
    pages: tuple[str, ...]
    files: int


class QuarantineDiscardRecord(NamedTuple):
    done: bool
    pages: tuple[WaitingRecord, ...]
    """What went, or would."""
    kept: tuple[str, ...] = ()
    """What holds knowledge that is only here, and stays."""
    ask: bool = True
    """Whether somebody has to agree first."""

    @property
    def if_agreed(self) -> dict[str, Any]:
        return {"yes": True} if self.ask and self.pages and not self.done else {}

    @property
    def act(self) -> str:
        which = self.pages[0].slug if len(self.pages) == 1 else f"{len(self.pages):,} pages"
        return f"Discarding {which} for good"


class QuarantineRestoreRecord(NamedTuple):
    slug: str
    collection: str
    path: str
    version: int


@op(
    "owner",
    command="collection quarantine list",
    aliases={"collection quarantine": {}},
    examples=("quaid collection quarantine list", "quaid collection quarantine list notes"),
)
def quarantine_list(
    brain: Brain, name: Annotated[str | None, Arg("The collection [all].", positional=True)] = None
) -> QuarantineRecord:
    """List the pages whose file is gone or ignored: since when, until when, and what is only here."""
    chosen = None if name is None else collections.require(brain.db, name).id
    return QuarantineRecord(tuple(_record(each) for each in erasure.quarantined_pages(brain.db, chosen)))


@op(
    "owner",
    command="collection quarantine export",
    examples=(
        "quaid collection quarantine export ~/rescued",
        "quaid collection quarantine export ~/rescued people/alice",
    ),
)
def quarantine_export(
    brain: Brain,
    path: Annotated[str, Arg("A new or empty folder.", positional=True, path=True)],
    page: Annotated[str | None, Arg("The page, as in people/alice [all].", positional=True)] = None,
    force: Annotated[bool, Arg("Write into a folder that is not empty.")] = False,
) -> QuarantineExportRecord:
    """Write quarantined pages out: each as its file was, and links, facts and raw data in JSON beside it."""
    from quaid.folders import restore

    chosen = erasure.quarantined_pages(brain.db) if page is None else [_the_one(brain, page)]
    if not chosen:
        raise NotFound(what="page", name="in quarantine", hint=" Nothing was written.")
    target = brain.settings.path(path)
    written = restore.export_quarantined(brain.db, chosen, target, force, brain.now())
    return QuarantineExportRecord(target, tuple(each.slug for each in chosen), written.files)


@op(
    "owner",
    command="collection quarantine discard",
    examples=(
        "quaid collection quarantine discard people/alice",
        "quaid collection quarantine discard --expired --yes",
    ),
)
def quarantine_discard(
    brain: Brain,
    page: Annotated[str | None, Arg("The page, as in people/alice.", positional=True)] = None,
    expired: Annotated[bool, Arg("All whose time is over, in every collection.")] = False,
    yes: Annotated[bool, Arg("Do it without asking.")] = False,
    dry_run: Annotated[bool, Arg("Only show what would go.")] = False,
    force: Annotated[bool, Arg("Even if it holds what is only here and was not written out.")] = False,
) -> QuarantineDiscardRecord:
    """Let quarantined pages go for good. What is only here must be exported first."""
    if expired == bool(page):
        raise InvalidArgument(name="page", problem="is required, or --expired, and not both")
    today = brain.now()[:10]
    if page:
        chosen = [_the_one(brain, page)]
    else:
        chosen = [each for each in erasure.quarantined_pages(brain.db) if _until(each) <= today]
    kept = [each for each in chosen if not (each.is_safe or force)]
    if page and kept:
        raise OnlyHere(told=f"{page} holds")
    going = [each for each in chosen if each not in kept]
    done = yes and not dry_run
    if done:
        brain.db.write(lambda tx: _discard(tx, going))
    told, left = tuple(_record(each) for each in going), tuple(each.slug for each in kept)
    return QuarantineDiscardRecord(done, told, left, ask=not dry_run)


@op(
    "owner",
    command="collection quarantine restore",
    examples=("quaid collection quarantine restore people/alice",),
)
def quarantine_restore(brain: Brain, page: Page) -> QuarantineRestoreRecord:
    """Put a page's file back where it was. It is the same page again, with its links and facts."""
    from quaid.folders import restore

    found = _the_one(brain, page)
    back = restore.restore_quarantined_page(brain.db, found, brain.new_uuid(), brain.now())
    return QuarantineRestoreRecord(back.slug, found.collection, back.path, back.version)


def _discard(tx: Any, going: list[QuarantinedPage]) -> None:
    for each in going:
        erasure.discard_page(tx, each.id)


def _the_one(brain: Brain, address: str) -> QuarantinedPage:
    """The quarantined page of an address, exactly."""
    named, name = slugs.split_address(address)
    if named:
        collections.require(brain.db, named)
    found = erasure.find_quarantined(brain.db, slugs.check(name), named or None)
    if len(found) > 1:
        candidates = ", ".join(f"{each.collection}::{each.slug}" for each in found)
        raise AmbiguousSlug(slug=name, candidates=candidates)
    if not found:
        raise NotFound(what="quarantined page", name=address, hint=SEE)
    return found[0]


def _until(each: QuarantinedPage) -> str:
    return dates.shift_date(each.quarantined_at[:10], erasure.QUARANTINE_DAYS + 1)


def _record(each: QuarantinedPage) -> WaitingRecord:
    return WaitingRecord(
        *(each.slug, each.title, each.collection, each.path, each.quarantined_at, _until(each)),
        *(each.links, each.assertions, each.raw_data, each.exported_to),
    )
