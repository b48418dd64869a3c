"""Pages for pending decisions, the activity of agents, and conversations with them.

The review page has a tab for contradictions, agents' proposals, conflicts, gaps (unanswered questions), quarantined
and expired pages, and duplicates. A tab is loaded only when it is open, because comparing all pages takes a while.
The page of agents lists their reads and writes by session.
"""

import asyncio
from collections import Counter
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from quaid.errors import InvalidArgument, PageOfFolder, QuaidError, VersionConflict
from quaid.model import slug as slugs
from quaid.model.bundle import json_text
from quaid.model.dates import is_date
from quaid.model.plain_text import count_noun, question_hash, shorten
from quaid.web.pages import base, markdown as markdowns
from quaid.web.pages.base import (
    FlashMessage,
    Form,
    browser_message,
    cached_operation,
    call_operation,
    format_day,
    humanize,
    humanize_sentence,
    parse_number,
    read_form,
    redirect,
    render_in_turn,
    render_page,
    route,
    try_operation,
    with_query,
)
from quaid.web.pages.page import diff_lines

TABS = (
    ("contradictions", "Contradictions"),
    ("proposals", "Proposals"),
    ("conflicts", "Conflicts"),
    ("gaps", "Gaps"),
    ("quarantine", "Quarantine"),
    ("expired", "Expired"),
    ("duplicates", "Duplicates"),
)
TAB_OPERATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "contradictions": ("contradictions", {"limit": 50}),
    "proposals": ("review", {}),
    "conflicts": ("review", {}),
    "gaps": ("gaps", {"limit": 100}),
    "quarantine": ("collection quarantine list", {}),
    "expired": ("expired", {}),
    "duplicates": ("dupes", {"limit": 30, "stored": True}),
}
MAX_GAPS = 10_000
MAX_QUOTE = 80
FOLDER_MERGE_NOTE = (
    "Merge the two files in their folder; the memory follows. If they are about different things, keep both."
)
"""Shown in place of the merge form for pages of an attached folder."""


def contradiction_views(contradictions: Any) -> list[dict[str, Any]]:
    """Return the template values of each contradiction and its two sides.

    `edit` is the URL of the page's editor if the compiled truth (the text above the timeline) is older than
    the evidence in the timeline; otherwise it is empty.
    """
    return [
        {
            "id": contradiction.id,
            "type": contradiction.type,
            "description": _headline(
                humanize_sentence(
                    contradiction.description,
                    {quote.slug: quote.title for quote in contradiction.quotes if quote.title},
                ),
                contradiction.quotes,
            ),
            "sides": [
                _side_view(quote, place, contradiction) for place, quote in enumerate(contradiction.quotes)
            ],
            "edit": base.edit_url(contradiction.quotes[0].slug)
            if contradiction.type == "stale" and contradiction.quotes
            else "",
        }
        for contradiction in contradictions
    ]


def _headline(description: str, quotes: Any) -> str:
    """Return two contradicting values as a question; return any other description unchanged."""
    says = [humanize(quote.says) for quote in quotes]
    subject, verb, _ = description.partition(" is said to be both ")
    if verb and len(says) == 2 and all(says):
        return f"{_drop_shared_end(subject, says[0])}: {says[0]}, or {says[1]}?"
    return description


def _drop_shared_end(subject: str, says: str) -> str:
    """Remove the last words of the subject if the value starts with these words."""
    whole, last = subject.split(" "), says.split(" ")
    for shared in range(min(len(whole) - 1, len(last)), 0, -1):
        if whole[-shared:] == last[:shared]:
            return " ".join(whole[:-shared])
    return subject


def _side_view(quote: Any, place: int, contradiction: Any) -> dict[str, Any]:
    """Return one side of a contradiction.

    `keep` is the value of the form field that keeps this side, and `label` is the text of its button.
    """
    kind, _, source = quote.source.partition(", ")
    is_text = not kind
    says, label = humanize(quote.says), "This is true"
    if contradiction.type == "temporal":
        is_over = is_text or (kind.startswith("link") and bool(quote.until))
        says = says or ("It is over" if is_text else "")
        label = "It is over" if is_over else "It still holds"
    where = {"truth": "line", "timeline": "timeline, line", "frontmatter": "front matter"}.get(quote.part, "")
    return {
        "keep": ("left", "right")[place] if place < 2 else "",
        "label": label,
        "says": says,
        "since": quote.since,
        "until": quote.until,
        "quote": humanize_sentence(quote.quote) if quote.part in ("facts", "links") else quote.quote,
        "title": quote.title or humanize_sentence(quote.slug),
        "address": base.page_url(quote.slug, quote.part, quote.line),
        "place": f"{where} {quote.line}" if where and quote.line else where,
        "source": source or ("added as a link" if kind.startswith("link") and quote.part == "links" else ""),
    }


@route("/review", GET="read")
async def show_review(request: Request) -> Response:
    tab = request.query_params.get("tab", "")
    return await _show_tab(request, tab if tab in TAB_OPERATIONS else TABS[0][0])


async def _show_tab(
    request: Request, tab: str, problem: str = "", http: int = 200, gap: int | None = None
) -> Response:
    """Render a tab. Fields of a submitted form keep their values; `gap` is the id of the gap in the form."""
    form = await read_form(request)
    name, arguments = TAB_OPERATIONS[tab]
    record, review, contradictions, gaps, waiting, status = await asyncio.gather(
        try_operation(request, name, **arguments),
        try_operation(request, "review"),
        try_operation(request, "contradictions", limit=1),
        try_operation(request, "gaps", limit=1),
        try_operation(request, "collection quarantine list"),
        try_operation(request, "status"),
    )
    if tab == "duplicates" and record and record.compared_at is None:
        record = await try_operation(request, "dupes", limit=30)
    open_gaps = record.gaps if record and tab == "gaps" else ()
    log_gaps = await try_operation(request, "config get", key="log_gaps") if tab == "gaps" else None
    return render_page(
        request,
        "review.html",
        http=http,
        tab=tab,
        tabs=TABS,
        found=record,
        counts={
            "contradictions": contradictions.total if contradictions else 0,
            "gaps": gaps.total if gaps else 0,
            "quarantine": len(waiting.value) if waiting else 0,
            "expired": status.expired if status else 0,
            "proposals": status.proposals if status else 0,
            "conflicts": len(review.conflicts) if review else 0,
        },
        proposals=[(row, proposal_lines(row.diff)) for row in record.proposals]
        if record and tab == "proposals"
        else [],
        conflicts=[(row, _conflict_sides(row)) for row in record.conflicts]
        if record and tab == "conflicts"
        else [],
        plan=None,
        pairs=await _duplicate_pairs(request, record) if record and tab == "duplicates" else [],
        flash=FlashMessage(problem, succeeded=False) if problem and tab != "gaps" else None,
        contradictions=contradiction_views(record.contradictions)
        if record and tab == "contradictions"
        else [],
        form=form,
        problem=problem,
        gap=parse_number(form["id"]) if gap is None else gap,
        approver=next((gap.approved_by for gap in open_gaps if gap.approved_by), ""),
        wordless=sum(gap.approved_by is None for gap in open_gaps),
        log_gaps=log_gaps.value if log_gaps else "",  # only the owner may read and change the setting
        can_encrypt=find_spec("nacl") is not None,
    )


def _conflict_sides(conflict: Any) -> list[tuple[str, str]]:
    """Return name and text of the sides of a conflict. The text is "" if the side has no value."""
    values = [(side.name, "" if side.value is None else side.value) for side in conflict.sides]
    return [(name, value if isinstance(value, str) else json_text(value)) for name, value in values]


def proposal_lines(diff: str) -> list[tuple[str, str]]:
    """Return kind and text of the lines of a proposal's diff, in the form of `diff_lines`.

    The diff may have several pages, each under its name, and facts and links without a header.
    """
    lines = [line for line in diff.rstrip("\n").split("\n") if not line.startswith("--- ")]
    marked = diff_lines("\n".join(["", "", *lines]))
    return [
        ("place", line[4:]) if line.startswith("+++ ") else row
        for line, row in zip(lines, marked, strict=True)
    ]


async def _show_failed_form(request: Request, error: QuaidError) -> Response:
    """Show the form again, with the error. The form's URL determines the tab."""
    tab = {"/review/gap": "gaps", "/review/quarantine": "quarantine", "/review/expired": "expired"}[
        request.url.path
    ]
    return await _show_tab(request, tab, browser_message(error), error.http_status)


async def _duplicate_pairs(request: Request, record: Any) -> list[tuple[Any, str]]:
    """Return the pairs of similar pages, each with the reason why it cannot be merged here, or ""."""
    folders = await cached_operation(request, "collection list")
    of_folder = {folder.name for folder in folders.value if folder.root} if folders else set()
    return [(pair, _merge_obstacle(pair, of_folder)) for pair in record.pairs]


def _merge_obstacle(pair: Any, of_folder: set[str]) -> str:
    one, other = (slugs.split_address(address)[0] or "default" for address in (pair.slug, pair.other))
    if one in of_folder or other in of_folder:
        return FOLDER_MERGE_NOTE
    if one == other:
        return ""
    return f"One is in {one}, the other in {other}. Only pages of the same collection can be merged."


@route("/review/check", POST="write")
async def check_again(request: Request) -> Response:
    request.app.state.operation_cache.clear()
    record = await call_operation(request, "check")
    open_ones = count_noun(record.total, "contradiction is", "contradictions are")
    return redirect(
        request,
        "/review",
        f"Checked the whole memory. {open_ones if record.total else 'No contradiction is'} open.",
    )


@route("/review/compare", POST="write")
async def compare_again(request: Request) -> Response:
    """Compare all pages again. Progress is reported as events, because it may take some seconds."""
    record = await call_operation(request, "dupes", limit=1)
    pairs = count_noun(record.total, "pair") if record.total else "no pair"
    message = f"Compared {count_noun(record.pages, 'page')} and found {pairs}."
    return redirect(request, "/review?tab=duplicates", message)


def _unchanged(request: Request, address: str, error: QuaidError) -> Response:
    """Redirect to an address, with a message that says why nothing was changed."""
    return redirect(request, address, f"Nothing was changed. {browser_message(error)}", succeeded=False)


@route("/review/resolve", POST="write")
async def resolve_contradiction(request: Request) -> Response:
    """Resolve a contradiction by keeping one side or both, and show what changed."""
    form = await read_form(request)
    id, keep, note = parse_number(form["id"]), form["keep"] or None, form["note"].strip()
    try:
        record = await call_operation(request, "check", resolve=id, keep=keep, note=note)
    except QuaidError as error:
        return _unchanged(request, "/review", error)
    return redirect(request, "/review", _resolution_message(record), *_stale_text_links(record))


def _resolution_message(record: Any) -> str:
    changed = [f"{humanize_sentence(fact.says)} {_fact_outcome(fact)}." for fact in record.changed]
    if changed:
        return " ".join(["Resolved.", *changed])
    if record.kept in ("left", "right"):
        return "Resolved. No fact had to change."
    return "Resolved: both are kept."


def _fact_outcome(fact: Any) -> str:
    if fact.never_held:
        return "never held; it is kept as history"
    if fact.until is None:
        return "continues" if fact.kind == "link" else f"holds since {format_day(fact.since)}"
    return f"ended on {format_day(fact.until)}"


def _stale_text_links(record: Any) -> list[tuple[str, str]]:
    """Return edit links for pages whose text still states the rejected side.

    The text is never changed here.
    """
    return [
        (
            base.edit_url(text.slug),
            f"{text.title or humanize_sentence(text.slug)} still says “{shorten(text.quote, MAX_QUOTE)}”. Edit it",
        )
        for text in record.written[:3]
    ]


@route("/review/proposal", POST="owner")
async def decide_proposal(request: Request) -> Response:
    """Accept or reject one proposal of an agent, or all of them."""
    form = await read_form(request)
    act, note = form["act"], form["note"].strip()
    if act in ("accept", "reject"):
        arguments: dict[str, Any] = {"id": parse_number(form["id"]), act: True}
    elif act in ("accept_all", "reject_all"):
        arguments = {"yes" if act == "accept_all" else act: True}
    else:
        raise InvalidArgument(name="act", problem="must be accept, reject, accept_all or reject_all")
    try:
        record = await call_operation(request, "review", **arguments, note=note)
    except QuaidError as error:
        return _unchanged(request, "/review?tab=proposals", error)
    problems = [f"Proposal {row.id}: {row.problem}." for row in record.decided if row.problem]
    done = Counter(row.outcome for row in record.decided if not row.problem)
    messages = [f"{count_noun(number, 'proposal')} {outcome}." for outcome, number in done.items()]
    return redirect(
        request, "/review?tab=proposals", " ".join([*messages, *problems]), succeeded=not problems
    )


@route("/review/conflict", POST="owner")
async def resolve_conflict(request: Request) -> Response:
    """Resolve a conflict of a page by keeping one of its versions, or all."""
    form = await read_form(request)
    page = form["page"]
    try:
        await call_operation(
            request,
            "review",
            slug=page,
            id=parse_number(form["number"]),
            keep=form["keep"],
            expected_version=parse_number(form["version"]),
        )
    except QuaidError as error:
        return _unchanged(request, "/review?tab=conflicts", error)
    return redirect(request, "/review?tab=conflicts", "Resolved.", (base.page_url(page), "Open the page"))


@route("/review/gap", POST="write", on_error=_show_failed_form)
async def update_gap(request: Request) -> Response:
    """Find, approve or close a gap, close all gaps without stored words, or set whether words are stored.

    Approving a gap allows the words of its question to be stored.
    """
    form = await read_form(request)
    if form["act"] == "find":
        return await _find_gap(request, form["query_text"].strip())
    return redirect(request, "/review?tab=gaps", await _apply_gap_action(request, form))


async def _apply_gap_action(request: Request, form: Form) -> str:
    """Apply one action and return a message about it."""
    act, id = form["act"], parse_number(form["id"])
    if act == "keep":
        kept = "words" if form["log_gaps"] == "words" else "on"
        await call_operation(request, "config set", key="log_gaps", value=kept)
        return (
            "The words of your next questions without an answer are kept, encrypted."
            if kept == "words"
            else "The words of your next questions are not kept."
        )
    if act == "clear":
        record = await call_operation(request, "gaps clear")
        return f"Closed {count_noun(record.closed, 'question')} whose words are not stored."
    if act == "close":
        slug = form["by"].strip() or None
        record = await call_operation(request, "gaps resolve", gap_id=id, resolved_by_slug=slug)
        answer = record.gap.resolved_by_slug
        return f"Question {id} is closed" + (f": {humanize_sentence(answer)} answers it." if answer else ".")
    await call_operation(
        request,
        "gaps approve",
        gap_id=id,
        query_text=form["query_text"].strip() or None,
        sensitivity=form["sensitivity"],
        approver=form["approver"],
        redacted_query=form["redacted_query"].strip() or None,
    )
    stored = "its words are" if form["sensitivity"] == "external" else "the redacted question is"
    return f"Question {id} is approved: {stored} stored from now on."


async def _find_gap(request: Request, text: str) -> Response:
    """Show the open gap of a question, found by its hash. The question itself is not stored."""
    record = await call_operation(request, "gaps", limit=MAX_GAPS)
    digest = question_hash(text)
    gap = next((gap.id for gap in record.gaps if text and gap.query_hash == digest), 0)
    problem = "No open question has these words." if text else "Type a question."
    return await _show_tab(request, "gaps", "" if gap else problem, gap=gap)


@route("/review/quarantine", POST="owner", on_error=_show_failed_form)
async def update_quarantine(request: Request) -> Response:
    """Restore a quarantined page with its file, export it, or discard it."""
    form = await read_form(request)
    address, act = form["page"], form["act"]
    name = await _quarantined_title(request, address)
    links: list[tuple[str, str]] = []
    if act == "restore":
        record = await call_operation(request, "collection quarantine restore", page=address)
        message = f"“{name}” and its file {record.path} are restored."
        links = [(base.page_url(address), "Open it")]
    elif act == "export":
        folder = form["folder"].strip()
        await call_operation(request, "collection quarantine export", path=folder, page=address)
        message = f"“{name}” is exported to {folder}. It is still in quarantine."
    elif act == "discard" and form["sure"] == "yes":
        await call_operation(request, "collection quarantine discard", page=address, yes=True)
        message = f"“{name}” is deleted."
    else:
        raise InvalidArgument(name="act", problem="must be restore, export, or discard with the box ticked")
    return redirect(request, "/review?tab=quarantine", message, *links)


@route("/review/expired", POST="owner", on_error=_show_failed_form)
async def update_expired(request: Request) -> Response:
    """Restore or erase an expired page, line or fact."""
    form = await read_form(request)
    item, act = form["id"], form["act"]
    if act == "keep":
        record = await call_operation(request, "expired", items=[item], keep=True)
        message = f"Kept {', '.join(record.kept)}."
    elif act == "erase" and form["sure"] == "yes":
        record = await call_operation(request, "expired", items=[item], now=True, yes=True)
        message = " ".join([*record.problems, "It is erased." if record.erased else ""]).strip()
    else:
        raise InvalidArgument(name="act", problem="must be keep, or erase with the box ticked")
    return redirect(request, "/review?tab=expired", message)


async def _quarantined_title(request: Request, address: str) -> str:
    """Return the title of a page in quarantine, which `get` does not find."""
    record = await try_operation(request, "collection quarantine list")
    titles = {f"{page.collection}::{page.slug}": page.title for page in record.value} if record else {}
    return titles.get(address) or humanize_sentence(address.rpartition("::")[2])


async def _show_failed_merge(request: Request, error: QuaidError) -> Response:
    if isinstance(error, PageOfFolder):
        problem = FOLDER_MERGE_NOTE
    elif isinstance(error, VersionConflict):
        problem = "One of the pages was changed in the meantime; preview the merge again."
    else:
        problem = browser_message(error)
    return await _show_tab(request, "duplicates", f"Nothing was merged. {problem}", error.http_status)


@route("/review/merge", POST="owner", on_error=_show_failed_merge)
async def merge_pages(request: Request) -> Response:
    """Show what a merge would do, merge if the form confirms it, or record that the two pages are distinct.

    The merge is sent with the versions that were shown, so a change to a page in between causes a conflict.
    """
    form = await read_form(request)
    pair = {name: form[name] for name in ("slug", "other")}
    if form["act"] == "distinct":
        record = await call_operation(request, "distinct", **pair)
        names = f"{humanize_sentence(record.slug)} and {humanize_sentence(record.other)}"
        message = f"Both pages are kept: {names} are not the same, and are not compared again."
        return redirect(request, "/review?tab=duplicates", message)
    pair["into"] = form["into"]
    if form["sure"] != "yes":
        plan = await call_operation(request, "merge", **pair, dry_run=True)
        return render_page(request, "review.html", tab="duplicates", tabs=TABS, counts={}, plan=plan)
    record = await call_operation(
        request,
        "merge",
        **pair,
        yes=True,
        expected_version=parse_number(form["expected_version"]),
        other_version=parse_number(form["other_version"]),
    )
    message = (
        f"{humanize_sentence(record.gone)} is now part of {record.title}, and its old address leads there."
    )
    return redirect(request, "/review?tab=duplicates", message, (base.page_url(record.kept), "Open it"))


SESSIONS_PER_PAGE = 20
CONVERSATIONS_PER_PAGE = 30
TURNS_PER_PAGE = 40
MAX_HITS = 40
TOOL_LABELS = {
    "memory_put": "Wrote",
    "memory_correct": "Corrected",
    "memory_assert": "Added a fact to",
    "memory_link": "Added a link to",
    "memory_tag": "Changed the tags of",
    "memory_revert": "Restored an earlier version of",
    "memory_ingest": "Added a source to",
    "memory_forget": "Asked to erase",
    "memory_merge": "Asked to merge",
    "remember": "Remembered in",
    "daily_log": "Logged in",
}
"""Labels of writing tools, for readers who do not know the tool names."""


@route("/agents", GET="read")
async def show_agents(request: Request) -> Response:
    params = Form(request.query_params)
    client, session, day = params["client"], params["session"], params["day"]
    writes = params["writes"] == "1"
    wrong_day = "Write a date." if day and not is_date(day) else ""
    limit = parse_number(params["limit"]) or SESSIONS_PER_PAGE
    on_day = {"since": day, "until": day} if day and not wrong_day else {}
    record, review = await asyncio.gather(
        try_operation(
            request,
            "activity",
            client=client or None,
            session=session or None,
            writes=writes,
            diffs=True,
            limit=min(limit, 500),
            **on_day,
        ),
        try_operation(request, "review"),
    )
    waiting = {proposal.id: proposal for proposal in review.proposals} if review else {}
    return render_page(
        request,
        "agents.html",
        record=record,
        sessions=[_session_view(row, waiting) for row in record.sessions] if record else [],
        filters={"client": client, "day": day, "session": session, "writes": "1" if writes else ""},
        wrong_day=wrong_day,
        here_url=str(request.url.path) + (f"?{request.url.query}" if request.url.query else ""),
        more=limit + SESSIONS_PER_PAGE if record and record.total > len(record.sessions) else 0,
    )


def _session_view(session: Any, waiting: dict[int, Any]) -> dict[str, Any]:
    """Return the template values of a session: its writes, and the pages it read, each with a count."""
    read = Counter((page.slug, page.title) for call in session.calls for page in call.read)
    writes = [_write_view(call, waiting) for call in session.calls if call.is_write]
    open_writes = sum(write["is_open"] and not write["proposal"] for write in writes)
    return {"row": session, "writes": writes, "read": read.most_common(), "open": open_writes}


def _write_view(call: Any, waiting: dict[int, Any]) -> dict[str, Any]:
    proposal = waiting.get(call.proposal) if call.proposal else None
    pages = [(page, diff_lines(page.diff) if page.diff else []) for page in call.written]
    return {
        "call": call,
        "label": TOOL_LABELS.get(call.tool, f"{humanize(call.tool.removeprefix('memory_')).capitalize()}:"),
        "pages": pages,
        "proposal": proposal,
        "proposed": proposal_lines(proposal.diff) if proposal else [],
        "can_undo": bool(pages) and any(page.can_undo for page in call.written),
        "erases": any(page.change == "created" for page in call.written),
        "is_open": call.outcome == "done" and call.decision is None and bool(call.written),
    }


@route("/agents/decide", POST="owner")
async def decide(request: Request) -> Response:
    """Accept or undo a write, accept all writes of a session, or decide a proposal."""
    form = await read_form(request)
    act, id, back = form["act"], parse_number(form["id"]), form["back"]
    back = back if back == "/agents" or back.startswith("/agents?") else "/agents"
    try:
        message, links = await _decide(request, act, id, form)
    except QuaidError as error:
        return _unchanged(request, back, error)
    return redirect(request, back, message, *links)


async def _decide(request: Request, act: str, id: int, form: Form) -> tuple[str, list[tuple[str, str]]]:
    if act == "accept":
        await call_operation(request, "activity accept", id=id)
        return "Accepted.", []
    if act == "accept_session":
        record = await call_operation(request, "activity accept", session=form["session"])
        return f"Accepted {count_noun(record.accepted, 'write')}.", []
    if act == "undo":
        record = await call_operation(request, "activity undo", id=id, yes=form["sure"] == "yes")
        if record.would_erase:
            raise InvalidArgument(name="sure", problem="must be ticked, because undoing erases a page")
        if record.erased and not record.undone:
            return "Undone: the page that was created is erased.", []
        links = [(base.page_url(slug), "Open the page") for slug in record.undone[:1]]
        return "Undone: the earlier text is back, as a new version.", links
    if act in ("accept_proposal", "reject_proposal"):
        verdict = act.partition("_")[0]
        record = await call_operation(request, "review", id=id, **{verdict: True})
        (decision,) = record.decided
        if decision.problem:
            raise InvalidArgument(name="id", problem=decision.problem)
        return f"The proposal is {decision.outcome}.", []
    raise InvalidArgument(name="act", problem="must be accept, accept_session, undo or a decision")


@route("/conversations", GET="read")
async def show_conversations(request: Request) -> Response:
    params = Form(request.query_params)
    question, client, offset = params["q"].strip(), params["client"], parse_number(params["offset"])
    hits = None
    if question:
        hits = await try_operation(request, "conversations search", query=question, limit=MAX_HITS)
    listed = await try_operation(
        request, "conversations list", client=client or None, limit=CONVERSATIONS_PER_PAGE, offset=offset
    )
    return render_page(
        request,
        "conversations.html",
        record=listed,
        hits=hits,
        found=[(hit, markdowns.make_snippet(hit.snippet.replace("**", ""), question)) for hit in hits.hits]
        if hits
        else [],
        asked=question,
        here="/agents",
        client=client,
        offset=offset,
        page_size=CONVERSATIONS_PER_PAGE,
        conversation_url=conversation_url,
        title_of=title_of,
    )


def title_of(conversation: Any) -> str:
    """Return the title of a conversation, or its first words, without Markdown markup."""
    return conversation.title or markdowns.plain_text(conversation.opening) or "Conversation without a title"


def conversation_url(client: str, session: str, turn: int | None = None) -> str:
    """Return the URL of a conversation, or of a turn in it."""
    path = f"/conversations/{quote(f'{client}:{session}', safe=':')}"
    return with_query(path, {"turn": turn}) + f"#turn-{turn}" if turn else path


@route("/conversations/{name:path}", GET="read")
async def show_conversation(request: Request) -> Response:
    """Show the turns of a conversation, TURNS_PER_PAGE at a time."""
    params, name = Form(request.query_params), request.path_params["name"]
    turn, start, full = parse_number(params["turn"]), parse_number(params["from"]), params["full"] == "1"
    around = turn or (start + TURNS_PER_PAGE // 2 if start > 1 else None)
    first = await call_operation(request, "conversations show", session=name, limit=1)
    if around is not None:
        around = min(around, first.conversation.turns)
    record = await call_operation(
        request,
        "conversations show",
        session=name,
        around=around,
        limit=1 if full and turn else TURNS_PER_PAGE,
        full=full,
    )
    shown = await render_in_turn(
        request,
        lambda: [(row, markdowns.render_markdown(row.text, mark=f"t{row.turn}-L")) for row in record.turns],
    )
    return render_page(
        request,
        "conversation.html",
        record=record,
        name=f"{record.conversation.client}:{record.conversation.session}",
        turns=shown,
        turn=turn,
        here="/agents",
        title=title_of(record.conversation),
        conversation_url=conversation_url,
        before=max(1, record.turns[0].turn - TURNS_PER_PAGE) if shown and record.turns[0].turn > 1 else 0,
        after=record.turns[-1].turn + 1 if shown and record.turns[-1].turn < record.conversation.turns else 0,
    )


@route("/conversations/remove", POST="owner")
async def remove_conversation(request: Request) -> Response:
    form = await read_form(request)
    name = form["session"]
    if form["sure"] != "yes":
        raise InvalidArgument(name="sure", problem="must be ticked to delete a conversation")
    record = await call_operation(request, "conversations remove", session=name, yes=True)
    problem = f" {record.problem}" if record.problem else ""
    return redirect(request, "/conversations", f"The conversation is deleted.{problem}")
