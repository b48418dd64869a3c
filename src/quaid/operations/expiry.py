"""Expiry: set when a page expires; list, keep and erase what has expired."""

from typing import Annotated, NamedTuple

from quaid.app import Brain
from quaid.errors import InvalidArgument, NotFound, QuaidError
from quaid.folders import page_writer
from quaid.formats import markdown
from quaid.model import dates, expiry as model, page as page_model, slug as slugs
from quaid.model.page import Page
from quaid.model.plain_text import count_noun
from quaid.operations import cleanup, pages as editing
from quaid.operations.cleanup import DeletedPage, ForgetRecord
from quaid.operations.filters import ExpiryDay, ForPeriod, requested_moment
from quaid.operations.pages import Slug
from quaid.operations.registry import Arg, op
from quaid.storage import collections, erase as erasure, expiry as store, page_edits, pages
from quaid.storage.erase import TextErasure
from quaid.storage.expiry import ExpiredRow
from quaid.storage.pages import PageRow
from quaid.storage.sqlite.connection import Transaction


class ExpireRecord(NamedTuple):
    slug: str
    version: int
    expires: str
    """The day or time, or "never"."""
    changed: bool
    collection: str = "default"


@op(
    "owner",
    examples=(
        "quaid expire notes/guest-wifi --for 30d",
        "quaid expire notes/guest-wifi --expires 2026-11-20",
        "quaid expire notes/guest-wifi --never",
    ),
)
def expire(
    brain: Brain,
    slug: Slug,
    expires: ExpiryDay = None,
    for_: ForPeriod = None,
    never: Annotated[bool, Arg("Keep it, whatever the retention settings say.")] = False,
) -> ExpireRecord:
    """Set when a page expires. It then leaves all answers, is listed by `quaid expired`, and is erased later."""
    moment = requested_moment(brain, expires, for_)
    if (moment is None) != never:
        problem = "cannot be combined with a day or a period" if never else "is required, or --for or --never"
        raise InvalidArgument(name="never" if never else "expires", problem=problem)

    def change(old: PageRow | None) -> Page:
        assert old is not None
        front = {**old.frontmatter, model.KEY: moment or model.NEVER}
        return page_model.build_page(old.slug, front, old.truth, old.timeline, fallback_title=old.title)

    saved, page = editing.edit_page(brain, slug, None, change)
    collection, _ = editing.locate_page(brain, slug)
    return ExpireRecord(page.slug, saved.version, moment or model.NEVER, saved.changed, collection.name)


class ExpiredItem(NamedTuple):
    id: int
    kind: str
    """page, line or fact."""
    slug: str
    """The address of the page."""
    title: str
    text: str
    """The line or fact. The text of a page only if the page is named."""
    reason: str
    """The day or time at which it expired, or the retention setting."""
    hidden_at: str
    erased_on: str
    """The day from which on it is erased; "" if only a person may erase it."""
    file: str


class ExpiredRecord(NamedTuple):
    items: tuple[ExpiredItem, ...]
    grace: str
    retention: tuple[tuple[str, str], ...]
    """Retention settings and their periods."""
    kept: tuple[str, ...] = ()
    """What was brought back."""
    erased: tuple[ForgetRecord, ...] = ()
    problems: tuple[str, ...] = ()
    """Why something was not erased."""
    ask: bool = False

    @property
    def if_agreed(self) -> dict[str, object]:
        return {"yes": True} if self.ask else {}

    @property
    def act(self) -> str:
        return f"Erasing {len(self.items)} expired things"

    @property
    def exit_status(self) -> int:
        return int(bool(self.problems) or any(not record.clean for record in self.erased))


@op(
    "owner",
    examples=(
        "quaid expired",
        "quaid expired notes/guest-wifi",
        "quaid expired notes/guest-wifi --keep",
        "quaid expired 12 --keep --for 30d",
        "quaid expired --now --yes",
    ),
)
def expired(
    brain: Brain,
    items: Annotated[
        list[str] | None, Arg("Ids from the list, or pages; by default everything.", positional=True)
    ] = None,
    keep: Annotated[bool, Arg("Bring it back, for good or with `expires` or `for`.")] = False,
    expires: ExpiryDay = None,
    for_: ForPeriod = None,
    now: Annotated[bool, Arg("Erase it now, without waiting for the grace period.")] = False,
    yes: Annotated[bool, Arg("Do it without asking.")] = False,
) -> ExpiredRecord:
    """List expired pages, lines and facts, which are hidden; show one, keep it, or erase it now.

    After the grace period (setting expiry_grace) they are erased with the same checks as `quaid forget`."""
    moment = requested_moment(brain, expires, for_)
    if keep and now:
        raise InvalidArgument(name="keep", problem="cannot be combined with --now")
    if moment and not keep:
        raise InvalidArgument(name="for" if for_ else "expires", problem="needs --keep")
    if keep and not items:
        raise InvalidArgument(name="items", problem="is required with --keep; name an id or a page")
    rows = _chosen_rows(brain, items)
    record = _expired_record(brain, rows, show_text=bool(items))
    if keep:
        names = tuple(_keep_item(brain, row, moment) for row in rows)
        return _expired_record(brain, store.expired_rows(brain.db))._replace(kept=names)
    if not now or not rows:
        return record
    if not yes:
        return record._replace(ask=True)
    erased, problems = erase_rows(brain, rows)
    left = _expired_record(brain, store.expired_rows(brain.db))
    return left._replace(erased=tuple(erased), problems=tuple(problems))


def _chosen_rows(brain: Brain, items: list[str] | None) -> list[ExpiredRow]:
    rows = store.expired_rows(brain.db)
    if not items:
        return rows
    chosen: dict[int, ExpiredRow] = {}
    for item in items:
        collection, slug = slugs.split_address(item)
        same = [row for row in rows if row.slug == slug and collection in (None, row.collection)]
        matches = (
            [row for row in rows if str(row.id) == item]
            or [row for row in same if row.kind == "page"]
            or same
        )
        if not matches:
            raise NotFound(what="expired thing", name=item, hint="`quaid expired` lists them.")
        chosen.update({row.id: row for row in matches})
    return list(chosen.values())


def _expired_record(brain: Brain, rows: list[ExpiredRow], show_text: bool = False) -> ExpiredRecord:
    grace = str(brain.option(store.GRACE_SETTING))
    days = -(-(model.period_seconds(grace) or 0) // 86_400)
    items = []
    for row in rows:
        text = row.text
        if row.kind == "page" and show_text:
            text = markdown.render(*store.page_text(brain.db, row.page_id))
        items.append(
            ExpiredItem(
                *(row.id, row.kind, slugs.address(row.collection, row.slug), row.title, text, row.reason),
                row.hidden_at,
                dates.shift_date(row.hidden_at[:10], days) if row.writable and row.is_automatic else "",
                row.file,
            )
        )
    rules = tuple((rule.setting, rule.period) for rule in store.retention_rules(brain.db))
    return ExpiredRecord(tuple(items), grace, rules)


def _keep_item(brain: Brain, row: ExpiredRow, moment: str | None) -> str:
    """Bring a page, line or fact back, until `moment` or for good. Return its name."""
    address, at, token = slugs.address(row.collection, row.slug), brain.now(), brain.new_uuid()

    def work(tx: Transaction) -> None:
        collection = collections.require(brain.db, row.collection)
        if row.kind == "page":
            store.show_page(tx, row.page_id)
        old = pages.require(brain.db, row.slug, row.collection)
        front, truth, timeline = old.frontmatter, old.truth, old.timeline
        if row.kind == "page":
            front = {**front, model.KEY: moment or model.NEVER}
        elif row.kind == "line":
            truth, timeline = store.show_line(tx, row, model.with_mark(row.text, moment or model.NEVER))
        else:
            store.show_fact(tx, row, moment)
            page_edits.touch(tx, row.slug, expected_version=None, now=at, collection=row.collection)
        store.drop_item(tx, row.id)
        if row.kind != "fact":
            new = page_model.build_page(row.slug, front, truth, timeline, fallback_title=old.title)
            page_writer.save_page(
                brain.db, tx, collection, old, new, uuid=token, now=at, expected_version=None
            )

    brain.db.write(work)
    return address if row.kind == "page" else f"{row.kind} {row.id} of {address}"


def erase_past_grace(brain: Brain) -> list[ForgetRecord]:
    """Erase what was hidden longer ago than the grace period, except what only a person may erase."""
    rows = [row for row in store.expired_rows(brain.db, hidden_before=brain.grace_end) if row.is_automatic]
    return erase_rows(brain, rows)[0] if any(row.writable for row in rows) else []


def erase_and_report(brain: Brain) -> None:
    """Erase what is past its grace period after a write command, and say so."""
    records = erase_past_grace(brain)
    if records and brain.notice is not None:
        left = [record.slug for record in records if not record.clean]
        names = ", ".join(dict.fromkeys(record.slug for record in records))
        ending = f"; something remains of {', '.join(left)}" if left else ""
        brain.notice(f"erased {count_noun(len(records), 'expired thing')} ({names}){ending}")


def erase_rows(brain: Brain, rows: list[ExpiredRow]) -> tuple[list[ForgetRecord], list[str]]:
    """Erase expired things, with the checks of `quaid forget`. Return its records, and why others remain."""
    deleted: list[DeletedPage] = []
    parts: list[ExpiredRow] = []
    problems: list[str] = []
    files: dict[int, str] = {}
    for row in sorted(rows, key=lambda row: row.kind != "page"):
        address = slugs.address(row.collection, row.slug)
        if not row.writable:
            problems.append(f"{address} stays hidden: {row.collection} may not be changed")
            continue
        if row.page_id in {page.target.id for page in deleted}:
            continue
        try:
            if row.kind == "page":
                files[row.page_id] = row.file
                deleted.append(_delete_page(brain, row))
            else:
                _delete_part(brain, row)
                parts.append(row)
        except QuaidError as problem:
            problems.append(f"{address} stays hidden: {problem}")
    if not deleted and not parts:
        return [], problems
    trouble = erasure.vacuum_and_checkpoint(brain.db)
    records = [cleanup.prove_deletion(brain, page, trouble) for page in deleted]
    records = [
        record._replace(files=tuple(file for file in record.files if file != files[page.target.id]))
        for record, page in zip(records, deleted, strict=True)
    ]
    return [*records, *(_proof_of_part(brain, row, trouble) for row in parts)], problems


def _delete_page(brain: Brain, row: ExpiredRow) -> DeletedPage:
    """Delete an expired page, after the file that it came from."""
    collection = collections.require(brain.db, row.collection)
    target = erasure.find_target(brain.db, row.slug, row.collection)
    if target is None:
        raise NotFound(what="page", name=row.slug, hint="")
    token = brain.new_uuid()
    brain.db.write(lambda tx: page_writer.remove_page_file(brain.db, tx, collection, row.page_id, token))
    return cleanup.delete_page(brain, target)


def _delete_part(brain: Brain, row: ExpiredRow) -> None:
    """Delete an expired line or fact, after the line in the file of its page."""
    collection = collections.require(brain.db, row.collection)
    if row.kind == "line" and collection.root is not None and row.file:

        def change(old: str | None) -> str:
            lines = (old or "").split("\n")
            for line in reversed(model.expiring_lines(old or "")):
                if line.text == row.text:
                    del lines[line.number - 1 : line.end]
            return "\n".join(lines)

        page_writer.edit_file(
            *(brain.db, collection, row.file, change),
            now=brain.now(),
            new_uuid=brain.new_uuid,
            progress=brain.progress,
        )
    brain.db.write(lambda tx: store.erase_item(tx, row))


def _proof_of_part(brain: Brain, row: ExpiredRow, trouble: str) -> ForgetRecord:
    text = TextErasure(brain.db, [row.text, row.data])
    left, mentions = cleanup.remaining_bytes(brain.db.path, text)
    address = slugs.address(row.collection, row.slug)
    record = ForgetRecord(
        *(True, True, address, f"{row.kind} {row.id}", ()),
        proof=tuple(left),
        mentions=mentions,
        problem=cleanup.problem_with_step(trouble),
    )
    return cleanup.with_verdict(record)
