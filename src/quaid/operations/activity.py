"""Agent activity: list the tool calls of agents by session, and accept or undo their writes."""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

from quaid.app import Brain
from quaid.errors import ChangedSinceCreated, InvalidArgument, NotFound
from quaid.model import dates
from quaid.operations import cleanup, history, pages
from quaid.operations.registry import Arg, op
from quaid.storage import agents as store, trust
from quaid.storage.agents import AgentSession, CallFilter, StoredCall
from quaid.storage.sqlite.connection import Transaction

MAX_LISTED_CALLS = 1_000
MAX_DIFFS = 40


class WrittenPage(NamedTuple):
    """A page that a tool call wrote."""

    slug: str
    title: str
    change: str
    """"text", "created", or "related" (only facts, links or raw data changed)."""
    can_undo: bool
    """True if the page's text has not changed since this call.

    A page that the call created must not have changed in any way.
    """
    version: int
    diff: str = ""
    current_version: int = 0


class ReadPage(NamedTuple):
    slug: str
    title: str


class AgentCall(NamedTuple):
    id: int
    at: str
    tool: str
    outcome: str
    """"done", "proposed" or "failed"."""
    ms: int
    is_write: bool
    read: tuple[ReadPage, ...]
    written: tuple[WrittenPage, ...]
    proposal: int | None = None
    decision: str | None = None
    """"accepted", "undone" or "rejected"; None if the owner has not decided."""


class ActivityRecord(NamedTuple):
    sessions: tuple[AgentSession, ...]
    """The sessions, latest first."""
    total: int
    clients: tuple[str, ...]
    """All clients with recorded calls."""
    since: str
    is_on: bool
    """False if the setting log_activity is off."""


class ActivityDecision(NamedTuple):
    """The outcome of accepting or undoing writes."""

    accepted: int = 0
    undone: tuple[str, ...] = ()
    """Addresses of the pages whose previous text was restored."""
    erased: tuple[str, ...] = ()
    """Addresses of the pages that the call had created and that were erased."""
    would_erase: tuple[str, ...] = ()
    """Addresses of the pages that the undo would erase. Erasing needs confirmation."""

    @property
    def if_agreed(self) -> dict[str, Any]:
        return {"yes": True} if self.would_erase else {}

    @property
    def act(self) -> str:
        return f"Erasing {', '.join(self.would_erase)}"


@op(
    "read",
    examples=(
        "quaid activity",
        "quaid activity --client 'Claude Code' --since 7d",
        "quaid activity --writes --diffs",
    ),
)
def activity(
    brain: Brain,
    client: Annotated[str | None, Arg("Only this client.")] = None,
    since: Annotated[str, Arg("From this day, YYYY-MM-DD, or for a period such as 24h, 7d or 2w.")] = "30d",
    until: Annotated[str | None, Arg("Up to this day.")] = None,
    session: Annotated[str | None, Arg("Only this session.")] = None,
    writes: Annotated[bool, Arg("Only writes.")] = False,
    diffs: Annotated[bool, Arg("With the change of each write.")] = False,
    limit: Annotated[int, Arg("How many sessions.", minimum=1, maximum=1_000)] = 20,
) -> ActivityRecord:
    """List what agents read and wrote, by session. Questions and texts are not recorded."""
    first = _first_day(brain, since) if session is None else ""
    last = dates.check_date(until, "until") if until else "9999"
    calls = CallFilter(client, session, first, last, writes)
    with brain.db.reading():
        rows, total = calls.sessions(brain.db, limit)
        stored = calls.calls(brain.db, [row.session for row in rows], MAX_LISTED_CALLS)
        budget = MAX_DIFFS if diffs else 0
        by_session: dict[str, list[AgentCall]] = {}
        for call in stored:
            listed = _agent_call(brain, call, budget > 0)
            budget -= sum(bool(page.diff) for page in listed.written)
            by_session.setdefault(call.session, []).append(listed)
        names = tuple(store.calling_clients(brain.db))
    return ActivityRecord(
        tuple(row._replace(calls=tuple(by_session.get(row.session, ()))) for row in rows),
        *(total, names),
        *(first, brain.option("log_activity") != "off"),
    )


def _first_day(brain: Brain, since: str) -> str:
    seconds = dates.period_seconds(since)
    return brain.now(-seconds) if seconds is not None else dates.check_date(since, "since")


def _agent_call(brain: Brain, call: StoredCall, with_diff: bool) -> AgentCall:
    read = tuple(ReadPage(page.address, page.title) for page in call.pages if page.last_version is None)
    written = []
    for page in call.pages:
        if page.last_version is None:
            continue
        if page.first_version is None:
            written.append(WrittenPage(page.address, page.title, "related", False, page.last_version))
            continue
        change = history.change_of_version(brain, page.address, page.first_version, with_diff)
        kind = "created" if page.first_version == 1 else "text"
        is_same = page.current_version == page.last_version
        can_undo = is_same if kind == "created" else change.is_present and change.before is not None
        is_open = call.decision != "undone"
        written.append(
            WrittenPage(
                *(page.address, page.title, kind, can_undo and is_open, page.last_version),
                *(change.diff, page.current_version),
            )
        )
    return AgentCall(
        *(call.id, call.called_at, call.tool, call.outcome, call.ms, call.is_write, read, tuple(written)),
        *(call.proposal_id, call.decision),
    )


@op(
    "owner",
    command="activity accept",
    examples=("quaid activity accept 12", "quaid activity accept --session 5f0c2a9b"),
)
def activity_accept(
    brain: Brain,
    id: Annotated[
        int | None, Arg("The write, as listed by `quaid activity`.", positional=True, minimum=1)
    ] = None,
    session: Annotated[str | None, Arg("All writes of this session.")] = None,
) -> ActivityDecision:
    """Mark writes of agents as seen and accepted. Proposals are decided with `quaid review`."""
    if (id is None) == (session is None):
        raise InvalidArgument(name="id", problem="is required, or session; give one of the two")
    if id is not None:
        ids = [_require_write(brain, id).id]
    else:
        calls = CallFilter(session=session, writes=True)
        ids = [call.id for call in calls.calls(brain.db, [session or ""], store.MAX_CALLS)]
        if not ids:
            raise NotFound(what="session", name=session, hint=" `quaid activity --writes` lists them.")
    lines = [added for call_id in ids for added in _added_lines(brain, call_id)]

    def work(tx: Transaction) -> int:
        for page_id, text, first, last in lines:
            trust.accept(tx, page_id, text, first, last)
        return store.decide_calls(tx, ids, "accepted")

    return ActivityDecision(brain.db.write(work))


def _added_lines(brain: Brain, call_id: int) -> Iterator[tuple[int, str, int, int]]:
    """Yield page id, added lines, first version and last version for each page that a call wrote."""
    call = store.find_call(brain.db, call_id)
    for page in call.pages if call else ():
        if page.first_version is None or page.last_version is None:
            continue
        diff = history.change_of_version(brain, page.address, page.first_version, True).diff
        added = "\n".join(
            line[1:] for line in diff.split("\n") if line.startswith("+") and line != "+++ after"
        )
        page_id = pages.require_page(brain, page.address).id
        yield page_id, added, page.first_version, page.last_version


@op(
    "owner",
    command="activity undo",
    examples=("quaid activity undo 12", "quaid activity undo 12 --yes"),
)
def activity_undo(
    brain: Brain,
    id: Annotated[int, Arg("The write, as listed by `quaid activity`.", positional=True, minimum=1)],
    yes: Annotated[bool, Arg("Erase pages that the call created without asking.")] = False,
) -> ActivityDecision:
    """Undo a write of an agent: restore the text that each page had before, as a new version.

    A page that the write created is erased, unless it has changed since. A page whose text has changed since is
    not undone; use `quaid revert`."""
    call = _agent_call(brain, _require_write(brain, id), with_diff=False)
    texts = [page for page in call.written if page.change != "related"]
    for page in texts:
        if page.change == "created" and page.version != page.current_version:
            raise ChangedSinceCreated(
                slug=page.slug, expected=page.version, current_version=page.current_version
            )
    changed = [page.slug for page in texts if not page.can_undo]
    if not texts or changed:
        problem = f"{id} changed no text" if not texts else f"{', '.join(changed)} has changed since"
        raise InvalidArgument(name="id", problem=f"{problem}; `quaid history SLUG` lists the versions")
    created = tuple(page.slug for page in texts if page.change == "created")
    if created and not yes:
        return ActivityDecision(would_erase=created)
    undone = []
    for page in texts:
        if page.change == "created":
            cleanup.erase_version(brain, page.slug, page.version)
            continue
        stored = pages.require_page(brain, page.slug)
        first = next(own.first_version for own in _require_write(brain, id).pages if own.address == page.slug)
        before = history.change_of_version(brain, page.slug, first or 1, False).before
        history.revert(brain, page.slug, before or 1, expected_version=stored.version)
        undone.append(page.slug)
    brain.db.write(lambda tx: store.decide_calls(tx, [id], "undone"))
    return ActivityDecision(0, tuple(undone), created)


def _require_write(brain: Brain, call_id: int) -> StoredCall:
    call = store.find_call(brain.db, call_id)
    if call is None or not call.is_write or call.outcome != "done":
        raise NotFound(what="write", name=call_id, hint=" `quaid activity --writes` lists them.")
    return call
