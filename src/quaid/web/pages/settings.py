"""Settings: state of the index, models, folders, clients, tokens, and the log of recent events; also the clipper.

The clipper saves web pages that a browser sends: from a bookmarklet, over the API for clips, or as a share target.

The log shows what was done and when. It never contains text of a page or a question.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from quaid.errors import InvalidArgument, NotFound, QuaidError
from quaid.model.plain_text import count_noun
from quaid.operations import ingest
from quaid.web import api
from quaid.web.auth import CLIP_PATH, request_host
from quaid.web.pages.base import (
    Form,
    browser_message,
    cached_operation,
    call_operation,
    format_size,
    humanize,
    login_page,
    page_url,
    read_form,
    redirect,
    render_fragment,
    render_page,
    request_scope,
    route,
    static_assets,
    try_operation,
)
from quaid.web.pages.page import diff_lines

MAX_NAME = 40
"""A suggested name of a collection is cut to this many characters."""
SYNC_COUNTS = ("new", "changed", "moved", "removed")
BUTTON_NAMES = {"`quaid embed`": "“Rebuild index”", "`quaid put SLUG FILE`": "“New page”"}
PERIODS = (
    ("7d", "after a week"),
    ("30d", "after 30 days"),
    ("90d", "after 90 days"),
    ("52w", "after a year"),
)
"""The periods after which a token or the access of a program may expire, with their labels."""
NEW_TOKEN = {"name": "", "scope": "read", "expires": "90d", "only": ""}
STATE_NOTES = {
    "detached": "Its folder is no longer watched. The pages are kept.",
    "restoring": "Its files are being written.",
}


@route("/settings", GET="read")
async def show_settings(
    request: Request, error: QuaidError | None = None, created: Any = None, clipper_token: str = ""
) -> Response:
    """Show the settings, with a token that was just created, which is shown only in this response."""
    typed = await read_form(request)
    status, latest, models, folders, clients, kb, imports, tokens, logins = await asyncio.gather(
        cached_operation(request, "status"),
        try_operation(request, "list", limit=1),
        try_operation(request, "embeddings list"),
        cached_operation(request, "collection list"),
        try_operation(request, "connect"),
        try_operation(request, "kb status"),
        try_operation(request, "imports"),
        try_operation(request, "token list"),
        try_operation(request, "login list"),
    )
    rerank, backups, settings, notebook = await asyncio.gather(
        try_operation(request, "rerank status"),
        cached_operation(request, "backups list"),
        try_operation(request, "config list"),
        try_operation(request, "notebook list"),
    )
    collections = folders.value if folders else ()
    sessions = request.app.state.mcp_sessions if request_scope(request) == "owner" else ()
    return render_page(
        request,
        "settings.html",
        error=error,
        status=status,
        next_steps=[name_buttons(step) for step in status.next_steps] if status else [],
        latest=latest.pages[0].updated_at if latest and latest.pages else None,
        models=models,
        folders=folders,
        files=sum(folder.files for folder in collections),
        synced=max((folder.last_sync_at or "" for folder in collections), default=""),
        clients=clients,
        typed=typed,
        problem=browser_message(error) if error else "",
        form=request.url.path if error else "",
        rerank=rerank,
        backups=backups,
        rights=agent_rights(settings.value if settings else ()),
        notebook=notebook,
        kb=kb,
        imports=imports,
        tokens=tokens,
        created=created,
        clipper_token=clipper_token,
        clip_address=clip_address(request),
        bookmarklet=bookmarklet(clip_address(request)),
        token_periods=(*PERIODS, ("", "never")),
        entered={**NEW_TOKEN, **(typed if error and request.url.path == "/settings/token/new" else {})},
        logins=logins,
        session=request.state.session,
        health=await asyncio.to_thread(_check_collections, collections),
        jobs=request.app.state.workers.jobs,
        programs=[
            (session, _format_moment(session.began), int(time.monotonic() - session.used) // 60)
            for session in sessions
        ],
        log=log_lines(request.app.state.bus.recent),
    )


def log_lines(recent: Iterable[tuple[float, str, dict[str, Any]]]) -> list[tuple[str, str]]:
    """Return the recent events as timestamps and sentences, newest first.

    The sentences contain only counts and names of folders and operations. settings.js has the same wording
    for events that arrive while the page is open.
    """
    lines = [(_format_moment(at), describe_event(kind, facts)) for at, kind, facts in recent]
    return [line for line in reversed(lines) if line[1]]


def describe_event(kind: str, facts: dict[str, Any]) -> str:
    """Return an event as a sentence; empty for events that only update a progress bar."""
    if kind == "finished":
        name, seconds = humanize(str(facts.get("operation", "")).capitalize()), facts.get("seconds", 0)
        return f"{name} {'took' if facts.get('succeeded') else 'failed after'} {seconds:g} s"
    if kind == "changed":
        return f"Pages changed: there are {facts.get('pages', 0):,} now"
    if kind == "gap":
        return f"A question found no answer: {count_noun(facts.get('open', 0), 'question is', 'questions are')} open"
    if kind == "lost":
        return f"{count_noun(facts.get('events', 0), 'event')} were skipped because they came too fast"
    if kind == "compaction":
        return "A compaction was simulated"
    if kind == "embedding":
        return f"{facts.get('done', 0):,} passages can be found by meaning" if facts.get("finished") else ""
    return _describe_folder_event(facts) if kind == "files" else ""


def _describe_folder_event(facts: dict[str, Any]) -> str:
    name, event = facts.get("collection") or "A folder", facts.get("event")
    if facts.get("problem"):
        return f"{name}: {facts['problem']}"
    if event == "synced":
        return f"{name} was synced: {_sync_counts(facts)}"
    return f"{name} is watched" if event == "began" else ""


def name_buttons(step: str) -> str:
    """Replace commands in a suggestion by the names of the buttons on this page."""
    for command, button in BUTTON_NAMES.items():
        step = step.replace(command, button)
    return re.sub(r"makes the (?:[\d,]+ )?missing vectors?", "completes the search by meaning", step)


def _format_moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _sync_counts(counts: dict[str, Any]) -> str:
    parts = (f"{counts[kind]:,} {kind}" for kind in SYNC_COUNTS if counts.get(kind))
    return ", ".join(parts) or "no changes"


def _check_collections(folders: Iterable[Any]) -> list[tuple[Any, str, str]]:
    """Return each collection with its state and problem.

    This must run on a thread, because a network folder may block.
    """
    return [(folder, *check_collection(folder)) for folder in folders]


def check_collection(folder: Any) -> tuple[str, str]:
    """Return the state of a collection ("good" without problems), and its most serious problem with the remedy."""
    if folder.halted:
        return "needs a decision", folder.halted
    if folder.root and not os.path.isdir(folder.root):
        return "folder missing", "The folder cannot be found. No page is removed while it is missing."
    if folder.files_not_taken_in:
        state = f"{count_noun(folder.files_not_taken_in, 'file')} not imported"
        return state, "The page of this collection lists them with the reasons."
    if folder.ignore_problem:
        return "invalid ignore patterns", folder.ignore_problem
    if folder.state != "active":
        return folder.state, STATE_NOTES.get(folder.state, "")
    if folder.quarantined:
        pages = count_noun(folder.quarantined, "page has", "pages have")
        return f"{folder.quarantined} in quarantine", f"{pages} lost the file. Restore it on the page Review."
    if folder.root and not folder.last_sync_at:
        return "not read yet", "Sync reads the folder."
    return "good", "" if folder.writable else "read only"


@route("/settings/token/new", POST="owner", on_error=show_settings)
@route("/settings/clipper", POST="owner", on_error=show_settings)
async def create_token(request: Request) -> Response:
    form = await read_form(request)
    record = await call_operation(
        request,
        "token create",
        name=form["name"].strip(),
        scope=form.get("scope", "read"),
        expires=form["expires"] or None,
        only=[form["only"]] if form["only"].strip() else None,
    )
    if request.url.path == "/settings/clipper":
        return await show_settings(request, clipper_token=record.token)
    return await show_settings(request, created=record)


@route("/settings/token", POST="owner", on_error=show_settings)
async def revoke_token(request: Request) -> Response:
    record = await call_operation(request, "token revoke", name=(await read_form(request))["name"])
    message = f"The token {record.value} is revoked. Requests with it are refused."
    return redirect(request, "/settings#tokens", message)


@route("/settings/login", POST="owner", on_error=show_settings)
async def end_login(request: Request) -> Response:
    form = await read_form(request)
    if form["all"]:
        await call_operation(request, "login end", all=True)
        return login_page(request, heading="You are logged out on every device")
    await call_operation(request, "login end", id=form["id"])
    return redirect(request, "/settings#logins", "That browser is logged out.")


@route("/phone", GET="owner")
async def add_phone(request: Request) -> Response:
    """Show a QR code and a code to type, with which a phone in the same network logs in."""
    lan = request.app.state.sessions.lan
    if not lan:
        return render_page(request, "phone.html", lan=None)
    record = await call_operation(request, "login code", port=lan.port, url=lan.url)
    import segno

    picture = segno.make(record.link, error="l").svg_inline(scale=6, border=3, light="#fff", omitsize=True)
    return render_page(
        request,
        "phone.html",
        lan=lan,
        record=record,
        picture=Markup(picture),  # noqa: S704 (segno encodes the link as lines)
        fingerprint=request.app.state.lan_fingerprint,
    )


@route("/settings/rebuild", POST="owner", on_error=show_settings)
async def rebuild_index(request: Request) -> Response:
    """Rebuild everything derived from the pages, sync all folders and compute missing vectors.

    Progress is sent over /api/events.
    """
    record = await call_operation(request, "rebuild")
    request.app.state.operation_cache.clear()
    return redirect(request, "/settings", _rebuild_message(record), succeeded=record.exit_status == 0)


def _rebuild_message(record: Any) -> str:
    """Return a summary of the rebuild, including what failed."""
    parts = [f"The index of {count_noun(record.pages, 'page')} is rebuilt."]
    parts += [
        _sync_message(sync)
        for sync in record.syncs
        if sync.halted or sync.new or sync.changed or sync.removed
    ]
    if record.vectors:
        parts.append(f"{count_noun(record.vectors, 'more passage')} can be found by meaning.")
    if record.problem:
        parts.append(f"Search by meaning is not complete: {record.problem}")
    return " ".join(parts)


@route("/settings/embeddings", POST="owner", on_error=show_settings)
async def choose_model(request: Request) -> Response:
    name = (await read_form(request))["name"]
    if name == "off":
        await call_operation(request, "embeddings off")
        message = "Search by meaning is off."
    else:
        await call_operation(request, "embeddings use", name=name)
        message = f"{name} is in use. It reads the pages in the background, or with a rebuild."
    return redirect(request, "/settings#embeddings", message)


@route("/settings/sync", POST="owner", on_error=show_settings)
async def sync_folders(request: Request) -> Response:
    name = (await read_form(request))["name"] or None
    record = await call_operation(request, "collection sync", name=name)
    return redirect(request, "/settings#collections", " ".join(map(_sync_message, record.value)))


def _sync_message(sync: Any) -> str:
    if sync.halted:
        return f"{sync.collection} needs a decision: {sync.halted}"
    failed = f" {count_noun(sync.failed, 'file')} could not be imported." if sync.failed else ""
    return f"{sync.collection} is in sync with its folder: {_sync_counts(sync._asdict())}.{failed}"


@route("/settings/collection/{name}", GET="owner")
async def show_collection(request: Request, error: QuaidError | None = None) -> Response:
    """Show a collection with its problematic files, and what detaching it would remove."""
    name = request.path_params.get("name") or (await read_form(request))["name"]
    record = await call_operation(request, "collection info", name=name)
    is_attached = record.collection.root and record.collection.state == "active"
    removal = (
        await try_operation(request, "collection remove", name=name, dry_run=True) if is_attached else None
    )
    return render_page(
        request, "collection.html", error=error, record=record, removal=removal, here="/settings"
    )


@route("/settings/detach", POST="owner", on_error=show_collection)
async def detach_folder(request: Request) -> Response:
    form = await read_form(request)
    keeps = form["pages"] != "remove"
    record = await call_operation(request, "collection remove", name=form["name"], keep_pages=keeps, yes=True)
    rest = (
        "Its pages stay in the memory."
        if keeps
        else f"{count_noun(record.removed, 'page was', 'pages were')} removed."
    )
    return redirect(
        request, "/settings#collections", f"{record.name} is detached. Its files are not changed. {rest}"
    )


@route("/settings/folders", GET="owner")
async def show_folders(request: Request, error: QuaidError | None = None) -> Response:
    """Show the folders below a folder, to attach one as a collection or as the notebook.

    After an error, the form keeps what was typed.
    """
    typed = await read_form(request)
    params = Form(request.query_params)
    purpose = typed["for"] or params["for"]
    under = typed["under"] or params["under"] or None
    record = await try_operation(request, "collection folders", under=under)
    wrong = "" if record else record.message
    if not record:
        record = await call_operation(request, "collection folders")
    steps = folder_steps(record.path, record.roots)
    return render_page(
        request,
        "folders.html",
        error=error,
        record=record,
        wrong=wrong,
        purpose=purpose if purpose in ("notebook", "welcome") else "collection",
        path=typed.get("path", record.path),
        name=typed.get("name", suggest_name(record.path)),
        is_read_only=bool(typed["read_only"]),
        steps=steps,
        places=[root for root in record.roots if not f"{root}/".startswith(f"{steps[0][1]}/")],
        here="/settings",
    )


def suggest_name(path: str) -> str:
    """Return a name for a collection: the folder's name in lower case, with hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", os.path.basename(path).lower()).strip("-")[:MAX_NAME]


def folder_steps(path: str, roots: Iterable[str]) -> list[tuple[str, str]]:
    """Return name and path of each folder from the nearest root down to this one."""
    root = max((root for root in roots if f"{path}/".startswith(f"{root}/")), key=len, default=path)
    names = [name for name in path[len(root) :].split("/") if name]
    steps = [(root, root)]
    for name in names:
        steps.append((name, os.path.join(steps[-1][1], name)))
    return steps


@route("/settings/folders", POST="owner", on_error=show_folders)
async def attach_folder(request: Request) -> Response:
    """Attach a folder as a collection, or start the notebook in it."""
    form = await read_form(request)
    path = form["path"].strip()
    if form["for"] == "notebook":
        record = await call_operation(request, "notebook init", path=path or None)
        return redirect(request, "/notebook", f"The notebook is in {record.root}.")
    record = await call_operation(
        request, "collection add", name=form["name"].strip(), path=path, read_only=bool(form["read_only"])
    )
    added = f"{record.collection.name} is attached, with {count_noun(record.collection.pages, 'page')}."
    halted = f" It needs a decision: {record.sync.halted}" if record.sync.halted else ""
    back = "/welcome" if form["for"] == "welcome" else "/settings#collections"
    return redirect(request, back, added + halted, succeeded=not halted)


@route("/settings/client/{name}", GET="owner")
async def show_client(request: Request, error: QuaidError | None = None) -> Response:
    """Show what connecting or disconnecting a program would change in its files."""
    name = request.path_params["name"]
    listing = await call_operation(request, "connect")
    client = next((client for client in listing.clients if client.client == name), None)
    if client is None:
        raise NotFound(what="program", name=name, hint="")
    typed = await read_form(request) or Form(request.query_params)
    options = {key: bool(typed[key]) for key in ("instructions", "kb")}
    is_leaving = client.state == "connected" and not any(options.values()) and typed["act"] != "connect"
    command, more = ("disconnect", {}) if is_leaving else ("connect", options)
    preview = await try_operation(request, command, client=name, dry_run=True, **more)
    return render_page(
        request,
        "client.html",
        error=error,
        client=client,
        preview=preview,
        act=command,
        options=options,
        diff_lines=diff_lines,
        here="/settings",
    )


@route("/settings/client/{name}", POST="owner", on_error=show_client)
async def connect_client(request: Request) -> Response:
    form, name = await read_form(request), request.path_params["name"]
    if form["act"] == "disconnect":
        record = await call_operation(request, "disconnect", client=name)
        return redirect(request, "/settings#clients", f"{record.title} is disconnected.")
    options = {key: bool(form[key]) for key in ("instructions", "kb")}
    record = await call_operation(request, "connect", client=name, **options)
    step = f" {record.next_step}." if record.next_step and "`" not in record.next_step else ""
    return redirect(request, "/settings#clients", f"{record.title} is connected.{step}")


@route("/settings/embed", POST="owner", on_error=show_settings)
async def compute_vectors(request: Request) -> Response:
    """Compute missing vectors. Progress is sent over /api/events."""
    await read_form(request)
    record = await call_operation(request, "embed")
    made = count_noun(record.embedded, "more passage")
    return redirect(request, "/settings#embeddings", f"{made} can be found by meaning.")


@route("/settings/rerank", POST="owner", on_error=show_settings)
async def choose_reranker(request: Request) -> Response:
    form = await read_form(request)
    if form["act"] == "off":
        await call_operation(request, "rerank off")
        return redirect(request, "/settings#embeddings", "Results are no longer reordered by a model.")
    place, model = form["place"].strip(), form["model"].strip()
    await call_operation(request, "rerank use", place=place, model=model or None)
    return redirect(request, "/settings#embeddings", "The best results of each question are now reordered.")


@route("/settings/backup", POST="owner", on_error=show_settings)
async def make_backup(request: Request) -> Response:
    await read_form(request)  # clears the list of backups
    record = await call_operation(request, "backup")
    message = f"The backup is written and checked: {record.path} ({format_size(record.size)})."
    if record.images:
        message += f" {count_noun(record.images, 'image')} beside it."
    return redirect(request, "/settings#backups", message)


@route("/settings/backup/verify", POST="owner", on_error=show_settings)
async def verify_backup(request: Request) -> Response:
    """Verify a backup from the list; other files are refused."""
    path = (await read_form(request))["path"]
    backups = await call_operation(request, "backups list")
    if path not in [backup.path for backup in backups.value]:
        raise NotFound(what="backup", name=path, hint="")
    record = await call_operation(request, "backups verify", file=path)
    message = f"{os.path.basename(path)} is intact: {count_noun(record.pages, 'page')}."
    return redirect(request, "/settings#backups", message)


AGENT_MODES = (
    (
        "guarded",
        "Add at once, propose changes of your words",
        "What would change or end what you wrote waits under Review.",
    ),
    ("direct", "Write at once", "You see each change under Agents and can undo it."),
    ("review", "Propose", "Each change waits under Review until you accept it."),
)
"""The values of the setting `agent_writes`, with a name and an explanation; the default first."""


def agent_rights(settings: Iterable[Any]) -> dict[str, Any]:
    """Return how writes of agents are handled, in general and for each client and collection.

    `may` contains the operations that agents may carry out without review.
    """
    values = {setting.key: setting.value for setting in settings}
    prefix = "agent_writes."
    special = [
        (key, *key.removeprefix(prefix).split(".", 1), value)
        for key, value in sorted(values.items())
        if key.startswith(prefix)
    ]
    may = re.split(r"[,\s]+", values.get("agents_may", ""))
    mode = values.get("agent_writes") or AGENT_MODES[0][0]
    return {"mode": mode, "modes": AGENT_MODES, "special": special, "may": may}


@route("/settings/agents", POST="owner", on_error=show_settings)
async def set_agent_rights(request: Request) -> Response:
    """Set how writes are handled: those of all agents, those of one client, or those in one collection."""
    form = await read_form(request)
    kind, name = form["kind"], form["name"].strip()
    mode = form["mode"]
    if kind in ("client", "collection"):
        if not name:
            raise InvalidArgument(name="name", problem=f"is missing; name the {kind}")
        name = name.lower() if kind == "client" else name
        await call_operation(request, "config set", key=f"agent_writes.{kind}.{name}", value=mode)
        return redirect(request, "/settings#agents", f"Saved for {name}.")
    may = ",".join(act for act in ("forget", "merge") if form[act]) or "nothing"
    await call_operation(request, "config set", key="agent_writes", value=mode)
    await call_operation(request, "config set", key="agents_may", value=may)
    return redirect(request, "/settings#agents", "Saved. It applies to the next write of an agent.")


@route("/settings/spaces", POST="owner", on_error=show_settings)
async def sync_spaces(request: Request) -> Response:
    await read_form(request)
    record = await call_operation(request, "sync")
    succeeded = record.exit_status == 0
    message = "Everything is in sync." if succeeded else "Not everything could be synced; the table says why."
    return redirect(request, "/settings#spaces", message, succeeded=succeeded)


CLIP_FIELDS = ("source", "title", "content", "selection")
SHARE_FIELDS = ("title", "text", "url")
_ADDRESS = re.compile(r"https?://\S+")


@route("/clip", GET="public")
async def show_clip_window(_: Request) -> Response:
    """Show the window that the bookmarklet opens. Its script reads the page from the fragment."""
    return render_fragment("clip.html")


@route(CLIP_PATH, OPTIONS="public")
async def allow_clip(_: Request) -> Response:
    """Answer the CORS preflight request for a clip. AuthMiddleware adds the headers."""
    return Response()


@route(CLIP_PATH, POST="write")
async def receive_clip(request: Request) -> Response:
    """Store a page: its address (`source`), `title`, HTML (`content`) and the selected text (`selection`)."""
    values = await api.json_body(request)
    for name, value in values.items():
        if name not in CLIP_FIELDS or not isinstance(value, str):
            problem = "must be a text" if name in CLIP_FIELDS else f"is unknown; use {', '.join(CLIP_FIELDS)}"
            raise InvalidArgument(name=name[:60], problem=problem)
    return api.record_response(await save_clip(request, **{"source": "", **values}))


async def save_clip(request: Request, **fields: str) -> Any:
    """Convert a clip in a child process, so that writes do not wait, and ingest it with the rights of the caller."""

    def convert(brain: Any) -> dict[str, Any]:
        return ingest.clip_arguments(brain, **fields)

    arguments = await api.run_for(request, "slow", convert, "clip")
    return await api.call_operation(request, "ingest-source", arguments, api.tool_scope(request))


def clip_address(request: Request) -> str:
    """Return the base URL of the clipper window.

    Other sites can read this URL, so it never contains the random host name of the memory.
    """
    state, host = request.app.state, request_host(request)
    own = state.sessions.hosts.get(host)
    is_random = own is None or host.rpartition(":")[0].endswith("localhost")
    return str(state.address.url if is_random else own.url)


def bookmarklet(address: str) -> str:
    """Return the code of the bookmarklet, encoded for a URL."""
    return quote(_bookmarklet_code().replace('"ADDRESS/', json.dumps(address)[:-1] + "/"))


@cache
def _bookmarklet_code() -> str:
    lines = static_assets()["bookmarklet.js"].data.decode().split("\n")
    return "".join(line.strip() for line in lines if not line.startswith("//"))


@route("/share", GET="write")
async def show_share(request: Request, error: QuaidError | None = None) -> Response:
    """Show the content that an app on a phone shared. It is saved only when the form is submitted."""
    sent = await read_form(request) or Form(request.query_params)
    title, text, url = (sent[name].strip() for name in SHARE_FIELDS)
    if not url and (address := _ADDRESS.search(text)):  # Android passes the address in the text
        url = address[0]
        text = " ".join(text.replace(url, " ").split())
    return render_page(request, "share.html", error=error, title=title, text=text, url=url)


@route("/share", POST="write", on_error=show_share)
async def save_share(request: Request) -> Response:
    """Save the shared content as sent, or fetch and save the page at its URL."""
    form = await read_form(request)
    title, text, url = (form[name].strip() for name in SHARE_FIELDS)
    if form["act"] == "fetch":
        record = await call_operation(request, "ingest", file=ingest.web_address(url), type="article")
    elif url:
        record = await save_clip(request, source=url, title=title, selection=text)
    elif not text:
        raise InvalidArgument(name="text", problem="is empty; type what to save")
    else:
        record = await call_operation(
            request, "ingest-source", content=text, title=title or None, type="article"
        )
    slug = record.source_page
    message = "Saved." if record.written else "It was saved before; nothing changed."
    return redirect(request, page_url(slug) if slug else "/", message)
