"""The first page: a box for notes, due items, recent changes, facts, and pending decisions."""

import asyncio
import os
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from quaid.errors import FileChanged, InvalidArgument, NotFound, QuaidError, VersionConflict
from quaid.formats.sections import LIST_ITEM
from quaid.model import dates
from quaid.model.plain_text import count_noun
from quaid.web.pages import base
from quaid.web.pages.base import (
    cached_operation,
    call_operation,
    format_day,
    parse_number,
    read_form,
    redirect,
    render_page,
    request_scope,
    route,
    try_operation,
)
from quaid.web.pages.markdown import PageNames, look_up_names, plain_text
from quaid.web.pages.settings import suggest_name

SAMPLE = "sample"
"""Name of the collection with sample pages, which `sample add` adds."""
VISIT_INTERVAL = 60
"""A visit is recorded at most once in this many seconds, because that is a write."""
WAITING_URLS = {
    "proposals": "/review?tab=proposals",
    "conflicts": "/review?tab=conflicts",
    "contradictions": "/review",
    "gaps": "/review?tab=gaps",
    "quarantine": "/review?tab=quarantine",
    "expired": "/review?tab=expired",
    "stale": "/review",
}
NOTE_PLACES = {
    "todo": "to your to-dos",
    "shopping": "to your shopping list",
    "contact": "to your contacts",
    "preference": "to your preferences",
    "order": "to your standing orders",
    "pattern": "to your patterns",
    "fact": "to your facts",
}
FOLDED_TODOS = 50


class DueView(NamedTuple):
    """A to-do as shown, with its link and the fields of the form that ticks it."""

    text: str
    href: str
    place: str
    day: str
    when: str
    is_late: bool
    owner: str
    fields: dict[str, str | int]


def due_view(item: Any, names: PageNames, today: str) -> DueView:
    part = "timeline" if item.part == "timeline" else ""
    href = base.file_url(item.path, item.line) if item.path else base.page_url(item.slug, part, item.line)
    is_todo = item.kind == "to-do"
    fields = {"slug": item.slug, "text": item.text if is_todo else "", "line": item.line or 0}
    text = plain_text(names.worded(item.words)) or item.words
    place = "" if item.path == "lists/todos.md" else item.title if is_todo else item.kind
    return DueView(
        text=text,
        href=href,
        place=place,
        day=item.day,
        when=describe_day(item.day, today) if item.day else "",
        is_late=bool(item.day) and item.day < today,
        owner=names.worded(item.owner),
        fields=fields,
    )


def describe_day(day: str, today: str) -> str:
    """Return how far away a day is: "2 days late", "today", "tomorrow", or "in 5 days"."""
    ahead = dates.day_number(day) - dates.day_number(today)
    if ahead < 0:
        return f"{count_noun(-ahead, 'day')} late"
    return ("today", "tomorrow")[ahead] if ahead < 2 else f"in {count_noun(ahead, 'day')}"


def describe_group(group: Any) -> str:
    """Return who changed how many pages, as the heading of a group."""
    pages = count_noun(group.pages, "page")
    if group.kind in ("folder", "import"):
        return f"{f'From the folder {group.source}' if group.kind == 'folder' else 'Imported'}: {pages}"
    if group.kind == "unknown":
        return f"{pages} changed"
    return f"{'You' if group.kind == 'you' else group.who} changed {pages}"


@route("/", GET="read")
async def show_today(request: Request, error: QuaidError | None = None) -> Response:
    record, status, setting, groups = await asyncio.gather(
        cached_operation(request, "today", limit=FOLDED_TODOS),
        cached_operation(request, "status"),
        cached_operation(request, "config get", key="welcome"),  # fails unless the caller is the owner
        cached_operation(request, "wings"),  # 40 ms faster than `collection list`
    )
    welcome = setting.value if setting else "done"
    if welcome == "ask" and status and not status.pages and not error:
        return redirect(request, "/welcome")
    due, later, undated, facts = (
        (record.due, record.later, record.undated, record.facts) if record else ((), (), (), ())
    )
    names = await look_up_names(
        request, [text for item in (*due, *later, *undated, *facts) for text in (item.text, item.owner)]
    )
    if record and not error:
        await _record_visit(request, record)
    return render_page(
        request,
        "today.html",
        error=error,
        unsaved=(await read_form(request))["text"].strip() if error else "",
        record=record,
        due=[due_view(item, names, record.day) for item in due],
        later=[due_view(item, names, record.day) for item in later],
        undated=[due_view(item, names, record.day) for item in undated],
        describe=describe_group,
        names=names,
        waiting_urls=WAITING_URLS,
        welcome=welcome,
        has_sample=bool(groups) and SAMPLE in groups.collections,
        status=status,
    )


async def _record_visit(request: Request, record: Any) -> None:
    """Record that the owner has seen the changes, unless the browser only prefetches the page."""
    if request_scope(request) != "owner" or "prefetch" in request.headers.get("sec-purpose", ""):
        return
    last = record.looked_at
    if not last or dates.seconds_of(record.as_of) - dates.seconds_of(last) > VISIT_INTERVAL:
        await try_operation(request, "seen", visit=True, until=record.as_of)


@route("/jot", POST="write", on_error=show_today)
async def save_note(request: Request) -> Response:
    """Save a note from the box with `remember`, or in today's log, and show where it was stored."""
    form = await read_form(request)
    text = form["text"].strip()
    if not text:
        return redirect(request, "/")
    if form["where"] == "log":
        logged = await call_operation(request, "log", content=text)
        place = base.file_url(logged.path, logged.line)
        return redirect(request, "/", "Added to today's log.", (place, "Show it"))
    record = await call_operation(request, "remember", content=text)
    if record.action == "question":
        return redirect(request, base.with_query("/search", {"q": text}))
    message, links = describe_note(record)
    is_changed = record.version and record.path and any(line.written for line in record.lines)
    undo = ("/today/undo", undo_fields(record)) if is_changed else None
    return redirect(request, "/", message, *links, succeeded=record.action != "nothing", undo=undo)


def describe_note(record: Any) -> tuple[str, list[tuple[str, str]]]:
    """Return a sentence that says where a note was stored, and links to its line and the page that it is about."""
    lines = [line for line in record.lines if line.written]
    words = "; ".join(dates.without_due_mark(line.text.partition("\n")[0]) for line in lines)
    links = [(base.file_url(record.path, lines[-1].line), "Show it")] if lines and record.path else []
    if record.about:
        links.append((base.page_url(record.about), "Open the page about it"))
    if record.action == "nothing":
        return "Nothing was changed, because several lines may be meant or none clearly is.", links
    if not lines:
        at = record.lines[0] if record.lines else None
        return "Your notebook already says so.", [(base.file_url(at.path, at.line), "Show it")] if at else []
    if record.action in ("ticked", "struck"):
        return f"{'Ticked off' if record.action == 'ticked' else 'Struck out'}: {words}.", links
    if record.action == "replaced":
        message = f"Changed in your notebook: it now says “{lines[-1].text}”."
    else:
        place = NOTE_PLACES.get(record.category) or f"to the list {record.section or record.path}"
        due = f", due {format_day(record.due)}" if record.due else ""
        under = f" under {record.section}" if record.category == "contact" and record.section else ""
        count = f" ({words})" if len(lines) > 1 else ""
        message = f"Added {place}{under}{count}{due}."
    ended = [fact for fact in record.replaced if fact.until]
    if ended:
        message += f" The earlier fact has ended: {ended[0].says}."
    elif record.contradicts:
        message += " Another line or fact says otherwise."
    return message, links


def undo_fields(record: Any) -> dict[str, str | int]:
    slug = f"{record.collection}::{record.slug}" if record.slug else ""
    return {"slug": slug, "path": record.path, "version": record.version, "to": record.version - 1}


@route("/today/undo", POST="write")
async def undo_change(request: Request) -> Response:
    """Restore the text before a change. If the text was changed again since, nothing is undone."""
    form = await read_form(request)
    slug, version = form["slug"], parse_number(form["version"])
    to = parse_number(form["to"])
    page = (base.page_url(slug), "Open it")
    try:
        if to:
            await call_operation(request, "revert", slug=slug, to=to, expected_version=version)
        else:
            await _remove_items(request, form["path"], version)
    except (VersionConflict, FileChanged, NotFound):
        message = (
            "This was not undone, because the text was changed since then or its earlier text is not stored."
        )
        return redirect(request, "/", message, page, succeeded=False)
    return redirect(
        request, "/", "Undone. The earlier text is back; the other one stays in the history.", page
    )


async def _remove_items(request: Request, path: str, version: int) -> None:
    """Remove all list items of a file that a note has created. Raise VersionConflict if the file has changed
    since.
    """
    file = await call_operation(request, "notebook read", path=path)
    lines = [line for line in file.text.split("\n") if not LIST_ITEM.match(line)]
    await call_operation(
        request, "notebook write", path=path, content="\n".join(lines), replace=True, expected_version=version
    )


@route("/today/tick", POST="write")
async def tick_item(request: Request) -> Response:
    """Tick a to-do or close a commitment, or open it again."""
    form = await read_form(request)
    slug, text, line = form["slug"], form["text"], parse_number(form["line"])
    is_undo = "undo" in form
    try:
        record = await call_operation(
            request,
            "tick",
            slug=slug,
            text=text,
            line=line or None,
            undo=is_undo,
            status=form["status"] or None,
        )
    except (NotFound, VersionConflict, FileChanged):
        message = "This line was changed in the meantime, so it was not ticked."
        return redirect(request, "/", message, (base.page_url(slug), "Open it"), succeeded=False)
    words = dates.without_due_mark(record.text)
    if is_undo:
        return redirect(request, "/", f"Open again: {words}.")
    fields = {"slug": slug, "text": text, "line": record.line or 0, "undo": 1, "status": record.was or "open"}
    return redirect(request, "/", f"Done: {words}.", undo=("/today/tick", fields))


@route("/today/seen", POST="owner")
async def mark_seen(request: Request) -> Response:
    """Mark the changes shown on the page as seen."""
    form = await read_form(request)
    await call_operation(request, "seen", until=form["until"] or None)
    return redirect(request, "/", "Marked as seen. From now on you see later changes.")


@route("/welcome", GET="owner")
async def show_welcome(request: Request, error: QuaidError | None = None) -> Response:
    """Ask for a folder, a program to connect and a sample. Each question can be skipped."""
    clients, folders = await asyncio.gather(
        try_operation(request, "connect"), try_operation(request, "collection list")
    )
    attached = [folder for folder in folders.value if folder.root] if folders else []
    return render_page(
        request,
        "welcome.html",
        http=error.http_status if error else 200,
        here="/",
        problem=base.browser_message(error) if error else "",
        form=await read_form(request),
        clients=[client for client in clients.clients if client.state != "not installed"] if clients else [],
        attached=[folder for folder in attached if folder.name not in (SAMPLE, "notebook")],
        has_sample=any(folder.name == SAMPLE for folder in attached),
    )


@route("/welcome", POST="owner", on_error=show_welcome)
async def answer_welcome(request: Request) -> Response:
    form = await read_form(request)
    act, back = form["act"], "/welcome"
    if act == "folder":
        message = await _attach_typed_folder(request, form["path"].strip())
    elif act == "client":
        record = await call_operation(request, "connect", client=form["client"])
        message = f"{record.title} is connected."
    elif act == "sample":
        record = await call_operation(request, "sample add")
        message = f"The sample is there: {count_noun(record.collection.pages, 'page')}."
    elif act == "remove_sample":
        record = await call_operation(request, "sample remove")
        kept = f" Files that are not from the sample are still in {record.kept_in}." if record.kept_in else ""
        message, back = f"The sample is removed.{kept}", form.get("back", back)
    else:
        await call_operation(request, "config set", key="welcome", value="done" if act == "close" else "hint")
        message, back = "", "/"
    return redirect(request, back if back in ("/", "/welcome") else "/", message)


async def _attach_typed_folder(request: Request, path: str) -> str:
    """Attach a folder as a collection named after it, and return a message."""
    if not path.startswith("~") and not os.path.isabs(path):
        raise InvalidArgument(name="folder", problem="needs its whole path, as in ~/Documents/notes")
    listed = await call_operation(request, "collection list")
    taken = {folder.name for folder in listed.value}
    name = suggest_name(path.rstrip("/")) or "notes"
    names = (name, *(f"{name}-{number}" for number in range(2, 99)))
    name = next(free for free in names if free not in taken)
    record = await call_operation(request, "collection add", name=name, path=path)
    return f"{name} is attached: {count_noun(record.collection.pages, 'page')}."
