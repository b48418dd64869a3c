"""Review by the user: proposals of agents, conflicts of merged pages, and the activity of agents."""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from difflib import unified_diff
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from quaid import errors
from quaid.app import Brain
from quaid.formats import markdown
from quaid.model import dates, merge as merging, slug as slugs
from quaid.model.merge import ALL_SIDES
from quaid.model.page import Page
from quaid.model.slug import aliases, fold_name
from quaid.notebook import layout
from quaid.operations import cleanup, corrections, dispatch, golden, history, page_changes, pages
from quaid.operations.registry import Arg, Operation, op
from quaid.storage import collections, pages as page_store
from quaid.storage.agents import (
    MAX_CALLS,
    AgentCalls,
    AgentSession,
    CallFilter,
    ChangedRow,
    ProposalRow,
    Proposals,
    StoredCall,
    read_state,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from quaid.storage.sqlite.connection import Rehearsal

MODE_SETTING = "agent_writes"
"""Name of the setting that controls writes by agents: `guarded`, `direct` or `review`.

With `guarded`, the default, only writes that change text or end facts of the user are reviewed.
`agent_writes.collection.NAME` and `agent_writes.client.NAME` override the setting for a collection or client.
"""
DEFAULT_MODE = "guarded"

GRANTS_SETTING = "agents_may"
"""Name of the setting that lists the operations (forget, merge) that agents may carry out without review."""

MAX_SUMMARY = 120
MAX_CONFLICTING_PAGES = 1_000
NOT_ERASED = "Nothing is erased yet: a person decides with `quaid review`. Until then queries find it."
OWNER_OPERATIONS = {"memory_forget": "forget", "memory_merge": "merge"}
"""By tool: the owner's command that accepting a proposal runs.

Agents' calls of these tools become proposals, unless `agents_may` grants the command.
"""


class Proposed(NamedTuple):
    """The result of a write that was stored as a proposal instead of being carried out."""

    proposal: int
    slug: str
    collection: str
    version: int
    """The current version of the page; 0 for a new page."""
    summary: str
    note: str = "Not written yet: a person decides with `quaid review`. Your own queries find it until then."


class ProposalEvidence(NamedTuple):
    """A quote that supports a proposal."""

    source: str
    """The page or conversation turn that contains the quote."""
    quote: str


class OpenProposal(NamedTuple):
    id: int
    author: str
    tool: str
    target: str
    """Address of the page, or path of the notebook file."""
    created_at: str
    age: str
    summary: str
    diff: str
    kind: str = ""
    """The kind of a proposal of `quaid dream`; "" for proposals of agents."""
    evidence: tuple[ProposalEvidence, ...] = ()


class Decision(NamedTuple):
    """The outcome of deciding on one proposal."""

    id: int
    outcome: Literal["accepted", "rejected", "conflict", "failed"]
    target: str
    problem: str = ""
    diff: str = ""
    """The proposed change if it conflicts with the current text, else ""."""
    diff_now: str = ""
    """The change that accepting the proposal would make now if there is a conflict, else ""."""
    erased: cleanup.ForgetRecord | None = None
    """For a proposal to erase a page: the erased data, and the result of the search for remains."""
    removed: corrections.CorrectRecord | None = None
    """For a proposal to erase a sentence: the sentence and its location."""


class OpenConflict(NamedTuple):
    """A block of text, front-matter key or property of a page, such as its slug, that two versions changed
    differently.
    """

    page: str
    version: int
    number: int
    """The number of the conflict on its page, from 1."""
    part: merging.Part
    key: str
    """The front-matter key or the name of the property, or "" for a block of text."""
    sides: tuple[merging.ConflictSide, ...]


class ReviewRecord(NamedTuple):
    proposals: tuple[OpenProposal, ...]
    """The open proposals, oldest first. If an id was given, only that proposal."""
    total: int
    decided: tuple[Decision, ...] = ()
    conflicts: tuple[OpenConflict, ...] = ()
    resolved: int = 0
    """The number of conflicts that this call resolved."""

    @property
    def exit_status(self) -> int:
        return int(
            any(
                decision.outcome in ("conflict", "failed") or (decision.erased and not decision.erased.clean)
                for decision in self.decided
            )
        )


class _Change(NamedTuple):
    """The changes that an operation would make."""

    diff: str
    collection: str
    slug: str
    version: int
    collections: frozenset[str]


def write_or_propose(brain: Brain, operation: Operation, arguments: dict[str, Any]) -> Any:
    """Run a write of an agent, or store it as a proposal if the settings require review of this change."""
    if operation.tool in OWNER_OPERATIONS:  # these tools store proposals themselves
        return operation.function(brain, **arguments)
    if not _may_need_review(brain):
        return _write_or_propose_change(brain, operation, arguments)
    change = _rehearse(brain, lambda: operation.function(brain, **arguments))
    if not change.diff or not any(_needs_review(brain, name) for name in change.collections):
        return _write_or_propose_change(brain, operation, arguments)
    return _store_proposal(brain, operation.tool, arguments, change)


def _write_or_propose_change(brain: Brain, operation: Operation, arguments: dict[str, Any]) -> Any:
    """Run a write of an agent, or store it as a proposal if it would change text or end facts of the user.

    The mode `direct` of the client, or of the memory if the client has no mode, allows such changes.
    """
    if not os.path.exists(brain.settings.db_path) or brain.db.rehearsal is not None:
        return operation.function(brain, **arguments)
    modes = _modes(brain)
    if (modes.get(f"client.{brain.agent.lower()}") or modes.get(MODE_SETTING)) == "direct":
        return operation.function(brain, **arguments)
    try:
        with brain.db.guarding():
            return operation.function(brain, **arguments)
    except errors.TextOfPerson:
        change = _rehearse(brain, lambda: operation.function(brain, **arguments))
        proposed = _store_proposal(brain, operation.tool, arguments, change)
        return proposed._replace(note=f"It would change what the person has written. {proposed.note}")


def _store_proposal(
    brain: Brain, tool: str, arguments: dict[str, Any], change: _Change, summary: str = ""
) -> Proposed:
    if brain.settings.only:  # the user, who sees the whole memory, may have other pages with these names
        named = [name for name in ("slug", "other", "into") if isinstance(arguments.get(name), str)]
        places = {name: pages.locate_page(brain, arguments[name]) for name in named}
        arguments = {**arguments, **{name: f"{place[0].name}::{place[1]}" for name, place in places.items()}}
    row = ProposalRow(
        *(0, brain.author, tool, change.slug, change.collection, change.version, brain.now()),
        *(
            None,
            None,
            "",
            "",
            _shortened(summary) or _summary(change.diff),
            json.dumps(arguments, ensure_ascii=False),
            change.diff,
        ),
    )
    number = brain.db.write(lambda tx: row.add(tx))
    return Proposed(number, change.slug, change.collection, change.version, row.summary)


def _modes(brain: Brain) -> dict[str, str]:
    prefix = f"{MODE_SETTING}."
    settings = collections.list_settings(brain.db)
    return {
        key.removeprefix(prefix): mode
        for key, mode in settings
        if key == MODE_SETTING or key.startswith(prefix)
    }


def _may_need_review(brain: Brain) -> bool:
    if not os.path.exists(brain.settings.db_path) or not brain.db.writable or brain.db.rehearsal is not None:
        return False
    return "review" in _modes(brain).values()


def _needs_review(brain: Brain, collection: str) -> bool:
    """Return True if writes of the calling client to a collection are reviewed.

    The settings of client and collection override the setting of the memory. Writes are reviewed if one of the
    two is `review`.
    """
    modes = _modes(brain)
    special = [modes.get(f"client.{brain.agent.lower()}"), modes.get(f"collection.{collection}")]
    chosen = [mode for mode in special if mode] or [modes.get(MODE_SETTING, DEFAULT_MODE)]
    return "review" in chosen


def may_at_once(brain: Brain, act: str) -> bool:
    """Return True if the setting `agents_may` lets agents carry out the operation `act` without review.

    Agents that see only a part of the memory always need review."""
    granted = re.split(r"[,\s]+", collections.get_setting(brain.db, GRANTS_SETTING) or "")
    return act in granted and not brain.settings.only


def _rehearse(brain: Brain, work: Callable[[], Any]) -> _Change:
    """Run an operation, roll back its writes, and return the changes that it would make once accepted."""

    def run(rehearsal: "Rehearsal") -> "tuple[Rehearsal, dict[tuple[str, int], ChangedRow]]":
        work()
        return rehearsal, read_state(brain.db, rehearsal.rows)

    before_accepting, brain.accepting = brain.accepting, True
    try:
        rehearsal, after = brain.db.rehearse(run)
    finally:
        brain.accepting = before_accepting
    before = read_state(brain.db, rehearsal.rows)
    in_files = {collection for collection, *_ in rehearsal.files}
    diffs: list[tuple[str, str, int, str]] = []
    for collection, path, old, new in rehearsal.files:
        diffs.append((collection, slugs.from_path(path), 0, text_diff(path, old, new)))
    for key in {**before, **after}:
        old_row, new_row = before.get(key), after.get(key)
        row = new_row or old_row
        if (
            row is None
            or row.collection in in_files
            or (old_row and new_row and old_row.parts == new_row.parts)
        ):
            continue
        version = old_row.version if old_row and row.kind == "page" else row.version
        if row.kind == "page" and old_row is None:
            version = 0
        diffs.append((row.collection, row.slug, version, _row_diff(row, old_row, new_row)))
    changed = [row for row in diffs if row[3]]
    collection, slug, version = changed[0][:3] if changed else ("", "", 0)
    diff = "".join(row[3] for row in changed)
    return _Change(diff, collection, slug, version, frozenset(row[0] for row in changed))


def _row_diff(row: ChangedRow, old: ChangedRow | None, new: ChangedRow | None) -> str:
    if row.kind == "page":
        return text_diff(slugs.address(row.collection, row.slug), _page_text(old), _page_text(new))
    lines = [f"-{row.kind}: {old.parts[0]}\n"] if old else []
    return "".join([*lines, *([f"+{row.kind}: {new.parts[0]}\n"] if new else [])])


def _page_text(row: ChangedRow | None) -> str:
    if row is None:
        return ""
    front, truth, timeline = row.parts
    return markdown.render(json.loads(front), truth, timeline)


def text_diff(name: str, old: str, new: str) -> str:
    """Return a unified diff of two texts, each line ending with a line feed."""
    lines = unified_diff(old.splitlines(), new.splitlines(), name if old else "/dev/null", name, lineterm="")
    return "".join(f"{line}\n" for line in lines)


def _summary(diff: str) -> str:
    """Return the first added line of a diff that is not a heading, or else the first removed one.

    If all lines are headings, return the last one. For an erasure, return the line with its reason.
    """
    first = diff.partition("\n")[0]
    lines = [line for line in diff.split("\n") if not line.startswith(("+++", "---"))]
    if first[:1] not in ("+", "-"):
        lines = [f"+{first}"]  # the diff of an erasure starts with its reason
    marked = [line for mark in "+-" for line in lines if line.startswith(mark) and line.strip("+- ")]
    text = next((line for line in marked if not line[1:].startswith("#")), (marked or [""])[-1])
    text = text[1:].strip(" #-*>")
    return _shortened(text)


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_SUMMARY else f"{text[: MAX_SUMMARY - 1]}…"


def _was_reviewed(change: str, reviewed: str, days: tuple[str, str]) -> bool:
    """Return True if a diff adds and removes only lines that the reviewed diff adds and removes.

    Lines may be missing, for example if another proposal has already added the heading. Random ids, and the
    dates in `days`, may differ.
    """

    def lines(diff: str) -> Counter[str]:
        text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "id", diff)
        for day in days:
            text = text.replace(day, "today")
        # File names are ignored. They differ if an earlier proposal has created the page in the meantime.
        text = re.sub(r"^--- .*\n\+\+\+ .*$", "", text, flags=re.MULTILINE)
        changed = [line for line in text.split("\n") if line[:1] in ("+", "-")]
        return Counter(line for line in changed if line.strip("+- "))

    return not lines(change) - lines(reviewed)


@contextmanager
def _acting_for(brain: Brain, row: ProposalRow, by_person: bool) -> "Iterator[None]":
    """Within this context, writes have the author and the time of a proposal.

    Text that the user accepts (`by_person`) gets the trust class `person`.
    """
    brain.agent, brain.asked_at = row.author, dates.seconds_of(row.created_at)
    brain.accepting = by_person
    try:
        yield
    finally:
        brain.agent, brain.asked_at, brain.accepting = "", None, False


def _with_current_versions(brain: Brain, value: Any) -> Any:
    """Replace expected versions in arguments with the current ones, and content hashes with None.

    The author of a proposal read earlier versions. `_accept` compares diffs instead of versions.
    """
    if isinstance(value, list):
        return [_with_current_versions(brain, item) for item in value]
    if not isinstance(value, dict):
        return value
    updated = {key: _with_current_versions(brain, item) for key, item in value.items()}
    if updated.get("expected_version") is not None:
        updated["expected_version"] = _current_version(brain, value)
    if "content_hash" in updated:
        updated["content_hash"] = None
    return updated


def _current_version(brain: Brain, arguments: Mapping[str, Any]) -> int:
    if "path" in arguments:
        notebook = layout.require_notebook(brain.db)
        file = notebook.indexed_file(brain.db, str(arguments["path"]))
        return (file and file.version) or 0
    collection, name = pages.locate_page(brain, str(arguments["slug"]))
    stored = page_store.find(brain.db, name, collection.name)
    return stored.version if stored else 0


def _accept(
    brain: Brain, row: ProposalRow, note: str, force: bool = False, *, by_person: bool = True
) -> Decision:
    """Carry out a proposal. Return a conflict if it would now change other lines than those that it proposed.

    Proposals of operations that only add are carried out in any case.

    A proposal of `quaid dream` is refused if it would make a golden question fail, unless `force` is set.
    """
    target = _target(row)
    try:
        with _acting_for(brain, row, by_person):
            change, adds_only, work = _planned(brain, row)
            days = (row.created_at[:10], brain.now()[:10])
            if not adds_only and not _was_reviewed(change.diff, row.diff, days):
                problem = f"{target} has changed since; accepting would now change other lines"
                return Decision(row.id, "conflict", target, problem, row.diff, change.diff)
            what = f"Accepting proposal {row.id}"
            result = golden.guard(brain, work, what=what, force=force) if row.kind else work()
    except errors.QuaidError as error:
        return Decision(row.id, "failed", target, str(error))
    _decide(brain, row, "accepted", note)  # no effect if the proposal was erased together with its page
    erased = result if isinstance(result, cleanup.ForgetRecord) else None
    is_removal = row.tool == "memory_forget" and isinstance(result, corrections.CorrectRecord)
    return Decision(row.id, "accepted", target, erased=erased, removed=result if is_removal else None)


def _planned(brain: Brain, row: ProposalRow) -> tuple[_Change, bool, Callable[[], Any]]:
    """Return the change that a proposal makes now, whether it only adds text, and a function to make it."""
    arguments = json.loads(row.arguments)
    # Names refer to pages in the part of the memory that the agent could see.
    visible = brain.bound(tuple(map(tuple, json.loads(row.scope)))) if row.scope else brain
    if "query" in arguments and row.tool == "memory_forget":
        line = corrections.line_to_remove(visible, arguments["query"])
        if isinstance(line, corrections.CorrectRecord):
            raise errors.InvalidArgument(name="query", problem="matches several lines by now")
        return _removal(brain, line, arguments["reason"]), False, lambda: corrections.remove_line(brain, line)
    if row.tool in OWNER_OPERATIONS:
        operation = dispatch.find_command(OWNER_OPERATIONS[row.tool])
        erasure = _erasure(brain, **arguments) if row.tool == "memory_forget" else None
        arguments = {**{name: value for name, value in arguments.items() if name != "reason"}, "yes": True}
    else:
        operation, erasure, brain = dispatch.find_tool(row.tool), None, visible
        arguments = _with_current_versions(brain, arguments)

    def work() -> Any:
        return operation.function(brain, **arguments)

    return erasure or _rehearse(brain, work), operation.adds_only, work


def _removal(brain: Brain, line: corrections.StoredStatement, reason: str) -> _Change:
    """Return the change that removing a line would make, with the reason at the top of its diff."""
    change = _rehearse(brain, lambda: corrections.remove_line(brain, line))
    return change._replace(diff=f"Remove a line: {reason.strip()}\n{change.diff}")


def _reject(brain: Brain, row: ProposalRow, note: str) -> Decision:
    _decide(brain, row, "rejected", note)
    return Decision(row.id, "rejected", _target(row))


def _decide(brain: Brain, row: ProposalRow, decision: str, note: str) -> None:
    now, author = brain.now(), brain.author
    brain.db.write(lambda tx: row.decide(tx, decision, decided_by=author, note=note, now=now))


def _target(row: ProposalRow) -> str:
    return slugs.address(row.collection, row.slug) if row.slug else row.collection


@op(
    "owner",
    examples=(
        "quaid review",
        "quaid review 3 --accept",
        "quaid review 3 --reject --note 'She said Oslo.'",
        "quaid review --yes",
        "quaid review --slug people/alice --keep laptop",
    ),
)
def review(
    brain: Brain,
    id: Annotated[
        int | None, Arg("Only this proposal; with `slug`, only this conflict.", positional=True, minimum=1)
    ] = None,
    accept: Annotated[bool, Arg("Carry it out.")] = False,
    reject: Annotated[bool, Arg("Discard it.")] = False,
    yes: Annotated[bool, Arg("Accept all open proposals.")] = False,
    reject_all: Annotated[bool, Arg("Reject all open proposals.")] = False,
    note: Annotated[str, Arg("The reason, for the record.")] = "",
    slug: Annotated[str | None, Arg("Only the conflicts of this page.")] = None,
    keep: Annotated[
        str | None, Arg("Resolve the conflicts of `slug`: the name of the version to keep, or `all`.")
    ] = None,
    expected_version: Annotated[int | None, Arg("The version of the page that you read.", minimum=1)] = None,
    force: Annotated[
        bool, Arg("Accept proposals of `quaid dream` although a golden question fails.")
    ] = False,
) -> ReviewRecord:
    """List changes proposed by agents and conflicts of merged pages, and decide them.

    A proposal whose page changed since, so that it would now change other lines, is not carried out: both diffs are
    shown. A conflict has two versions of a text or of a front-matter key, and the page contains both until it is
    resolved."""
    if slug is not None or keep is not None:
        return _review_conflicts(brain, slug, id, keep, expected_version)
    if accept + reject + yes + reject_all > 1:
        raise errors.InvalidArgument(
            name="accept", problem="choose one of accept, reject, yes and reject_all"
        )
    if (accept or reject) != (id is not None) and (accept or reject):
        raise errors.InvalidArgument(
            name="id", problem="is required; `quaid review` lists the open proposals"
        )
    if (yes or reject_all) and id is not None:
        raise errors.InvalidArgument(name="id", problem="cannot be combined with yes or reject_all")
    rows = Proposals(brain.db).all_open() if id is None else [_require_open(brain, id)]
    decided: tuple[Decision, ...] = ()
    if accept or yes:
        decided = tuple(_accept(brain, row, note, force) for row in rows)
    elif reject or reject_all:
        decided = tuple(_reject(brain, row, note) for row in rows)
    done = {decision.id for decision in decided}
    now = brain.now()
    listed = tuple(_open_proposal(row, now) for row in rows if row.id not in done)
    conflicts = () if id is not None or decided else _open_conflicts(brain)
    return ReviewRecord(listed, Proposals(brain.db).count_open(), decided, conflicts)


def _open_conflicts(brain: Brain) -> tuple[OpenConflict, ...]:
    rows = page_store.pages_with_conflicts(brain.db, MAX_CONFLICTING_PAGES)
    return tuple(conflict for row in rows for conflict in _page_conflicts(row))


def _page_conflicts(row: page_store.PageRow) -> list[OpenConflict]:
    address = slugs.address(row.collection, row.slug)
    found = merging.find_conflicts(row.truth, row.frontmatter)
    return [OpenConflict(address, row.version, number, *conflict) for number, conflict in enumerate(found, 1)]


def _review_conflicts(
    brain: Brain, address: str | None, number: int | None, keep: str | None, expected: int | None
) -> ReviewRecord:
    """List the conflicts of a page. With `keep`, resolve the conflict with this number, or all of them."""
    if address is None:
        raise errors.InvalidArgument(
            name="slug", problem="is required; `quaid review` lists the pages with conflicts"
        )
    resolved = 0

    def change(old: page_store.PageRow | None) -> Page:
        nonlocal resolved
        assert old is not None
        assert keep is not None
        conflicts = merging.find_conflicts(old.truth, old.frontmatter)
        if number is not None and number > len(conflicts):
            raise errors.NotFound(what="conflict", name=number, hint=f" {address} has {len(conflicts)}.")
        chosen = conflicts if number is None else conflicts[number - 1 : number]
        having = [
            conflict for conflict in chosen if keep in {ALL_SIDES, *(side.name for side in conflict.sides)}
        ]
        truth, front = old.truth, old.frontmatter
        for conflict in having or chosen:  # if `keep` names no version, resolve_conflict raises an error
            truth, front = merging.resolve_conflict(truth, front, conflict, keep)
            resolved += 1
        return pages.rebuild_page(old, frontmatter=front, truth=truth)

    if keep is not None:
        address, expected = _keep_slug(brain, address, number, keep, expected)
        page_changes.edit_page(brain, address, expected, change)
    left = _page_conflicts(pages.require_page(brain, address))
    if keep is None and number is not None:
        left = [conflict for conflict in left if conflict.number == number]
    return ReviewRecord((), Proposals(brain.db).count_open(), (), tuple(left), resolved)


def _keep_slug(
    brain: Brain, address: str, number: int | None, keep: str, expected: int | None
) -> tuple[str, int | None]:
    """Rename the page if `keep` selects the other slug of a conflict.

    Return the page's address and its new version, or the arguments if the page was not renamed.
    """
    page = pages.require_page(brain, address)
    for place, conflict in enumerate(merging.find_conflicts(page.truth, page.frontmatter), 1):
        if number in (None, place) and (conflict.part, conflict.key) == ("page", "slug"):
            for side in conflict.sides:
                if side.name == keep and side.value != page.slug:
                    record = cleanup.rename(brain, address, side.value, expected_version=expected)
                    return slugs.address(page.collection, record.slug), record.version
    return address, expected


def _require_open(brain: Brain, id: int) -> ProposalRow:
    row = Proposals(brain.db).require(id)
    if row.decided_at is not None:
        raise errors.InvalidArgument(
            name="id", problem=f"proposal {id} was {row.decision} on {row.decided_at[:10]}"
        )
    return row


def _open_proposal(row: ProposalRow, now: str) -> OpenProposal:
    age = dates.age_text(row.created_at, now)
    evidence = tuple(ProposalEvidence(*pair) for pair in json.loads(row.evidence))
    return OpenProposal(
        *(row.id, row.author, row.tool, _target(row), row.created_at, age, row.summary, row.diff),
        *(row.kind, evidence),
    )


def propose_call(
    brain: Brain,
    author: str,
    kind: str,
    tool: str,
    arguments: dict[str, Any],
    summary: str,
    evidence: tuple[ProposalEvidence, ...],
    fingerprint: str,
) -> int | None:
    """Store a tool call as a proposal with its evidence.

    Return its id, or None if the call would change nothing.
    """
    row = ProposalRow(
        *(0, author, tool, "", "", 0, brain.now(), None, None, "", "", _shortened(summary)),
        *(json.dumps(arguments, ensure_ascii=False), "", kind, fingerprint),
        json.dumps(evidence, ensure_ascii=False),
    )
    with _acting_for(brain, row, by_person=False):
        change, _, _ = _planned(brain, row)
    if not change.diff:
        return None
    row = row._replace(
        slug=change.slug, collection=change.collection, base_version=change.version, diff=change.diff
    )
    return brain.db.write(lambda tx: row.add(tx))


def accept_proposal(brain: Brain, id: int, note: str) -> Decision:
    """Carry out an open proposal that is accepted by a setting. Its text keeps the trust class of an agent.

    The caller checks the golden questions.
    """
    return _accept(brain, _require_open(brain, id), note, force=True, by_person=False)


Reason = Annotated[str, Arg("Why, for the person who decides.")]


@op(
    "write",
    core=True,
    command="propose forget",
    tool="memory_forget",
    examples=("quaid propose forget people/alice --reason 'She asked for it.'",),
)
def propose_forget(
    brain: Brain,
    reason: Reason,
    slug: Annotated[str | None, Arg("The page, by slug or title.", positional=True)] = None,
    query: Annotated[
        str | None, Arg("Instead of a page: words or id of one sentence to erase.", question=True)
    ] = None,
) -> Any:
    """Propose to erase a page or sentence for good; a person confirms it. To correct: memory_correct."""
    if not reason.strip():
        raise errors.InvalidArgument(name="reason", problem="is empty; say why it should be forgotten")
    if (slug is None) == (query is None):
        raise errors.InvalidArgument(name="slug", problem="is required, or query; send one of the two")
    if query is not None:
        line = corrections.line_to_remove(brain, query)
        if isinstance(line, corrections.CorrectRecord):
            return line  # lists the matching lines, because there are several
        if may_at_once(brain, "forget"):
            return corrections.remove_line(brain, line)
        change = _removal(brain, line, reason)
        # A text identifies the line even if the line moves. The id is used if several lines have the same text.
        is_unique = not isinstance(corrections.line_to_remove(brain, line.text), corrections.CorrectRecord)
        arguments = {"query": line.text if is_unique else line.id, "reason": reason}
        stored = _store_proposal(brain, "memory_forget", arguments, change, f"Remove: {line.text}")
        return stored._replace(note=NOT_ERASED)
    assert slug is not None
    slug = _address_to_erase(brain, slug)
    change = _erasure(brain, slug, reason)
    if may_at_once(brain, "forget"):
        return cleanup.forget(brain, slug, yes=True)
    stored = _store_proposal(brain, "memory_forget", {"slug": slug, "reason": reason}, change)
    return stored._replace(note=NOT_ERASED)


def _address_to_erase(brain: Brain, name: str) -> str:
    """Return the address of the page with exactly this slug, or of the only page with this title or alias.

    A slug that redirects to a page is refused, because the caller may have meant another page.
    """
    try:
        stored = cleanup.require_exact_slug(brain, name)
    except (errors.InvalidSlug, errors.PageNotFound):
        stored = pages.open_page(brain, name)
        title = fold_name(slugs.split_address(name)[1])
        if title not in map(fold_name, (stored.title, *aliases(stored.frontmatter))):
            raise
    return slugs.address(stored.collection, stored.slug)


def _erasure(brain: Brain, slug: str, reason: str) -> _Change:
    """Return the change that erasing a page would make.

    Erasing is not rehearsed, as it cannot be rolled back.
    """
    stored = cleanup.require_exact_slug(brain, slug)
    page_changes.refuse_page_of_folder(brain, stored.slug, stored.collection, "Delete")
    text = markdown.render(stored.frontmatter, stored.truth, stored.timeline)
    address = slugs.address(stored.collection, stored.slug)
    diff = f"Erase {address}: {reason.strip()}\n{text_diff(address, text, '')}"
    return _Change(diff, stored.collection, stored.slug, stored.version, frozenset([stored.collection]))


@op(
    "write",
    command="propose merge",
    tool="memory_merge",
    examples=("quaid propose merge people/bob people/robert --into people/robert --reason 'Same person.'",),
)
def propose_merge(
    brain: Brain,
    slug: Annotated[str, Arg("One page.", positional=True)],
    other: Annotated[str, Arg("The other page.", positional=True)],
    into: Annotated[str, Arg("Which of the two is kept.")],
    reason: Reason,
) -> Any:
    """Propose to merge two pages about the same thing. A person confirms it."""

    def merge() -> Any:
        return cleanup.merge(brain, slug, other, into, yes=True)

    if may_at_once(brain, "merge"):
        return merge()
    change = _rehearse(brain, merge)
    kept = cleanup.require_exact_slug(brain, into)
    change = change._replace(slug=kept.slug, collection=kept.collection, version=kept.version)
    arguments = {"slug": slug, "other": other, "into": into, "reason": reason}
    return _store_proposal(brain, "memory_merge", arguments, change)


MAX_LISTED_CALLS = 1_000
MAX_DIFFS = 40


class WrittenPage(NamedTuple):
    """A page that a tool call wrote."""

    slug: str
    title: str
    change: str
    """"text", "created", or "related" (only facts, links or raw data changed)."""
    can_undo: bool
    """True if the call was not undone and the page's text has not changed since.

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
    which, calls = CallFilter(client, session, first, last, writes), AgentCalls(brain.db)
    with brain.db.reading():
        rows, total = calls.sessions(which, limit)
        stored = calls.of_sessions(which, [row.session for row in rows], MAX_LISTED_CALLS)
        budget = MAX_DIFFS if diffs else 0
        by_session: dict[str, list[AgentCall]] = {}
        for call in stored:
            listed = _agent_call(brain, call, budget > 0)
            budget -= sum(bool(page.diff) for page in listed.written)
            by_session.setdefault(call.session, []).append(listed)
        names = tuple(calls.clients())
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
        raise errors.InvalidArgument(name="id", problem="is required, or session; give one of the two")
    if id is not None:
        ids = [_require_write(brain, id).id]
    else:
        which = CallFilter(session=session, writes=True)
        calls = AgentCalls(brain.db).of_sessions(which, [session or ""], MAX_CALLS)
        ids = [call.id for call in calls]
        if not ids:
            raise errors.NotFound(what="session", name=session, hint=" `quaid activity --writes` lists them.")
    lines = [added for call_id in ids for added in _added_lines(brain, call_id)]
    return ActivityDecision(AgentCalls(brain.db).accept(ids, lines))


def _added_lines(brain: Brain, call_id: int) -> Iterator[tuple[int, str, int, int]]:
    """Yield page id, added lines, first version and last version for each page that a call wrote."""
    call = AgentCalls(brain.db).find(call_id)
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

    A page that the write created is erased. If one of the pages has changed since, nothing is undone: use
    `quaid revert`."""
    call = _agent_call(brain, _require_write(brain, id), with_diff=False)
    texts = [page for page in call.written if page.change != "related"]
    for page in texts:
        if page.change == "created" and page.version != page.current_version:
            raise errors.ChangedSinceCreated(
                slug=page.slug, expected=page.version, current_version=page.current_version
            )
    changed = [page.slug for page in texts if not page.can_undo]
    if not texts or changed:
        problem = f"{id} changed no text" if not texts else f"{', '.join(changed)} has changed since"
        raise errors.InvalidArgument(name="id", problem=f"{problem}; `quaid history SLUG` lists the versions")
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
    AgentCalls(brain.db).mark_undone(id)
    return ActivityDecision(0, tuple(undone), created)


def _require_write(brain: Brain, call_id: int) -> StoredCall:
    call = AgentCalls(brain.db).find(call_id)
    if call is None or not call.is_write or call.outcome != "done":
        raise errors.NotFound(what="write", name=call_id, hint=" `quaid activity --writes` lists them.")
    return call
