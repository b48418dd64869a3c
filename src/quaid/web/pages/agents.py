"""What agents did (reads and writes, by session), and conversations with them."""

from collections import Counter
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from quaid.errors import InvalidArgument, QuaidError
from quaid.model.dates import is_date
from quaid.model.plain_text import count_noun
from quaid.web.pages import base, markdown as markdowns
from quaid.web.pages.base import (
    browser_message,
    call_operation,
    gather_all,
    humanize,
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
"""What a tool that writes did, for readers who do not know its name."""


@route("/agents", GET="read")
async def show_agents(request: Request) -> Response:
    asked = request.query_params
    client, session, day = asked.get("client", ""), asked.get("session", ""), asked.get("day", "")
    writes = asked.get("writes", "") == "1"
    wrong_day = "Write a date." if day and not is_date(day) else ""
    limit = parse_number(asked.get("limit", "")) or SESSIONS_PER_PAGE
    on_day = {"since": day, "until": day} if day and not wrong_day else {}
    record, review = await gather_all(
        try_operation(
            *(request, "activity"),
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
        *(request, "agents.html"),
        record=record,
        sessions=[_session_view(row, waiting) for row in record.sessions] if record else [],
        filters={"client": client, "day": day, "session": session, "writes": "1" if writes else ""},
        wrong_day=wrong_day,
        here_url=str(request.url.path) + (f"?{request.url.query}" if request.url.query else ""),
        more=limit + SESSIONS_PER_PAGE if record and record.total > len(record.sessions) else 0,
    )


def _session_view(session: Any, waiting: dict[int, Any]) -> dict[str, Any]:
    """Return what the page shows of a session: each write, and each page that was read with a count."""
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
        "proposed": _proposed_lines(proposal.diff) if proposal else [],
        "can_undo": bool(pages) and any(page.can_undo for page in call.written),
        "erases": any(page.change == "created" for page in call.written),
        "is_open": call.outcome == "done" and call.decision is None and bool(call.written),
    }


def _proposed_lines(diff: str) -> list[tuple[str, str]]:
    from quaid.web.pages.review import proposal_lines  # imported late: review imports more of the pages

    return proposal_lines(diff)


@route("/agents/decide", POST="owner")
async def decide(request: Request) -> Response:
    """Accept or undo a write, accept all writes of a session, or decide a proposal."""
    form = await read_form(request)
    act, id = form.get("act", ""), parse_number(form.get("id", ""))
    back = form.get("back", "")
    back = back if back == "/agents" or back.startswith("/agents?") else "/agents"
    try:
        message, links = await _decide(request, act, id, form)
    except QuaidError as error:
        problem = f"Nothing was changed. {browser_message(error)}"
        return redirect(request, back, problem, succeeded=False)
    return redirect(request, back, message, *links)


async def _decide(
    request: Request, act: str, id: int, form: dict[str, str]
) -> tuple[str, list[tuple[str, str]]]:
    if act == "accept":
        await call_operation(request, "activity accept", id=id)
        return "Accepted.", []
    if act == "accept_session":
        record = await call_operation(request, "activity accept", session=form.get("session", ""))
        return f"Accepted {count_noun(record.accepted, 'write')}.", []
    if act == "undo":
        record = await call_operation(request, "activity undo", id=id, yes=form.get("sure") == "yes")
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
    asked = request.query_params
    question, client = asked.get("q", "").strip(), asked.get("client", "")
    offset = parse_number(asked.get("offset", ""))
    hits = None
    if question:
        hits = await try_operation(request, "conversations search", query=question, limit=MAX_HITS)
    listed = await try_operation(
        *(request, "conversations list"),
        client=client or None,
        limit=CONVERSATIONS_PER_PAGE,
        offset=offset,
    )
    return render_page(
        *(request, "conversations.html"),
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
    """Return the title of a conversation, or its first words, without marks of Markdown."""
    return conversation.title or markdowns.plain_text(conversation.opening) or "Conversation without a title"


def conversation_url(client: str, session: str, turn: int | None = None) -> str:
    """Return the URL of a conversation, or of a turn in it."""
    path = f"/conversations/{quote(f'{client}:{session}', safe=':')}"
    return with_query(path, {"turn": turn}) + f"#turn-{turn}" if turn else path


@route("/conversations/{name:path}", GET="read")
async def show_conversation(request: Request) -> Response:
    """Show the turns of a conversation, TURNS_PER_PAGE at a time."""
    asked, name = request.query_params, request.path_params["name"]
    turn, start = parse_number(asked.get("turn", "")), parse_number(asked.get("from", ""))
    full = asked.get("full", "") == "1"
    around = turn or (start + TURNS_PER_PAGE // 2 if start > 1 else None)
    first = await call_operation(request, "conversations show", session=name, limit=1)
    if around is not None:
        around = min(around, first.conversation.turns)
    record = await call_operation(
        *(request, "conversations show"),
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
        *(request, "conversation.html"),
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
    name = form.get("session", "")
    if form.get("sure") != "yes":
        raise InvalidArgument(name="sure", problem="must be ticked to delete a conversation")
    record = await call_operation(request, "conversations remove", session=name, yes=True)
    problem = f" {record.problem}" if record.problem else ""
    return redirect(request, "/conversations", f"The conversation is deleted.{problem}")
