"""The knowledge base: list, show, create and edit its nodes. A node is linted while it is typed."""

from hashlib import sha256
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from quaid.errors import FileChanged, NearDuplicate, QuaidError, StoreMissing
from quaid.formats import org
from quaid.model import merge
from quaid.model.links import ID_PREFIX
from quaid.web.auth import MAX_BODY
from quaid.web.pages import base, markdown
from quaid.web.pages.base import (
    LinkResolver,
    LinkTarget,
    browser_message,
    call_operation,
    read_form,
    redirect,
    render_fragment,
    render_in_turn,
    render_page,
    route,
    try_operation,
)
from quaid.web.pages.page import MAX_QUERY, MERGED, SAVED, UNCHANGED, text_difference

MAX_LISTED, MAX_NODES = 200, 1_000
MAX_OFFERS = 8
STATUSES = ("current", "contested", "superseded")
TYPES = {
    "observation": "something that was noticed",
    "principle": "a rule that holds in general",
    "preference": "how somebody likes it",
    "procedure": "steps to do something",
    "reference": "where to look something up",
}
FIELDS = ("title", "summary", "type", "tags", "projects", "text")
NOT_SAVED = "Not saved: the problems beside the text have to be solved first."


@route("/kb", GET="read")
async def show_nodes(request: Request) -> Response:
    """List nodes, or those that match a search. Without a knowledge base, say what one is for."""
    asked = {name: request.query_params.get(name, "").strip()[:MAX_QUERY] for name in ("q", "tag", "project")}
    status = request.query_params.get("status", "")
    status = status if status in STATUSES else ""
    filters = {"project": asked["project"] or None, "status": status or None}
    most = MAX_NODES if asked["q"] else MAX_LISTED
    listed = await try_operation(request, "kb list", tag=asked["tag"] or None, limit=most, **filters)
    if not listed and listed.code != StoreMissing.code:
        return render_page(
            request, "kb.html", problem=listed, listed=None, nodes=[], asked=asked, status=status
        )
    nodes = list(listed.nodes) if listed else []
    if listed and asked["q"]:
        matches = await call_operation(request, "kb query", query=asked["q"], limit=MAX_LISTED, **filters)
        kept = {node.id for node in nodes}
        nodes = [node for node in matches.matches if node.id in kept]
    return render_page(
        request, "kb.html", problem=None, listed=listed or None, nodes=nodes, asked=asked, status=status
    )


@route("/kb", POST="owner")
async def start_knowledge_base(request: Request) -> Response:
    await read_form(request)
    await call_operation(request, "kb init")
    return redirect(request, "/kb", "Started. Its first node explains how it works.")


@route("/kb/{id}", GET="read")
async def show_node(request: Request) -> Response:
    record = await call_operation(request, "kb show", node=request.path_params["id"])
    resolve = _resolver((*record.links, *record.backlinks))
    html = await render_in_turn(request, lambda: markdown.render_org(record.text, resolve))
    return render_page(request, "node.html", record=record, html=html)


def _resolver(nodes: Any) -> LinkResolver:
    titles = {node.id: node.title for node in nodes}

    def resolve(name: str) -> LinkTarget | None:
        id = name.removeprefix(ID_PREFIX).partition("::")[0].strip()
        return LinkTarget(base.node_url(id), titles[id]) if id in titles else None

    return resolve


async def _preview(request: Request, text: str) -> Any:
    """Render org text as it will be shown, without its properties."""
    body = await render_in_turn(request, lambda: text[org.parse(text).body_start :])
    listed = await try_operation(request, "kb list", limit=MAX_NODES) if ID_PREFIX in body else None
    resolve = _resolver(listed.nodes if listed else ())
    return await render_in_turn(request, lambda: markdown.render_org(body, resolve))


@route("/kb/{id}/edit", GET="owner")
async def edit_node(request: Request) -> Response:
    record = await call_operation(request, "kb show", node=request.path_params["id"])
    return await _edit_form(request, record, record.text)


async def _edit_form(
    request: Request, record: Any, text: str, *, problem: str = "", theirs: str = "", http: int = 200
) -> Response:
    """Render the editor of a node. `theirs` is its current text after a conflict."""
    return render_page(
        *(request, "node_edit.html"),
        http=http,
        node=record.node,
        text=text,
        version=_version(record.text),
        base=record.text,
        theirs=theirs,
        lines=text_difference(theirs, text) if theirs else [],
        problem=problem,
        html=await _preview(request, text),
        findings=await _findings_of_edit(request, record.node.id, text),
        limit=MAX_BODY,
    )


def _version(text: str) -> str:
    return sha256(text.encode()).hexdigest()


async def _findings_of_edit(request: Request, id: str, text: str) -> list[Any]:
    """Return what lint finds in the text of a node; a text that is refused as a whole is one finding."""
    record = await try_operation(request, "kb edit", node=id, content=text, dry_run=True)
    return list(record.findings) if record else [_refusal(record.message)]


def _refusal(message: str) -> dict[str, Any]:
    return {"line": 0, "message": message, "remedy": "", "fatal": True}


@route("/kb/{id}/edit", POST="owner")
async def save_node(request: Request) -> Response:
    id, form = request.path_params["id"], await read_form(request)
    text, expected = form.get("text", ""), form.get("version", "")
    message = ""
    try:
        record = await _edit(request, id, text, expected)
        message = SAVED if record.changed else UNCHANGED
    except FileChanged:
        now = await call_operation(request, "kb show", node=id)
        merged, conflicts = merge.merge_text(form.get("base") or None, text, now.text, "yours", "theirs")
        if conflicts or not form.get("base"):
            problem = "The node was changed by another program or browser while you were editing."
            return await _edit_form(request, now, text, problem=problem, theirs=now.text, http=409)
        record = await _edit(request, id, merged, _version(now.text))
        message = MERGED if record.changed else SAVED
    except QuaidError as error:
        now = await call_operation(request, "kb show", node=id)
        return await _edit_form(request, now, text, problem=browser_message(error), http=error.http_status)
    if record.exit_status:
        now = await call_operation(request, "kb show", node=id)
        return await _edit_form(request, now, text, problem=NOT_SAVED, http=400)
    saved: dict[str, Any] = {}
    if request.headers.get(base.SAVE_HEADER) == "stay":
        now = await call_operation(request, "kb show", node=id)
        saved = {
            "version": _version(now.text),
            "base": now.text,
            "text": None if now.text == text else now.text,
        }
    return redirect(request, base.node_url(id), message, **saved)


async def _edit(request: Request, id: str, text: str, expected: str) -> Any:
    return await call_operation(request, "kb edit", node=id, content=text, expected=expected)


@route("/ui/preview/kb", POST="write")
async def preview_node(request: Request) -> Response:
    """Render a node while it is typed, with what lint finds in it."""
    form = await read_form(request)
    text = form.get("text", "")
    if "title" in form:
        findings = await _findings_of_new(request, form)
    else:
        findings = await _findings_of_edit(request, form.get("slug", ""), text)
    return render_fragment("node_preview.html", html=await _preview(request, text), findings=findings)


@route("/new/node", GET="write")
async def new_node(request: Request) -> Response:
    return await _new_form(request, dict.fromkeys(FIELDS, "") | {"type": "observation"})


async def _new_form(
    request: Request, form: dict[str, str], *, problem: str = "", similar: bool = False, http: int = 200
) -> Response:
    has_text = bool(form.get("text", "").strip())
    return render_page(
        *(request, "node_new.html"),
        http=http,
        form={name: form.get(name, "") for name in FIELDS},
        types=TYPES,
        problem=problem,
        similar=similar,
        html=await _preview(request, form.get("text", "")),
        findings=await _findings_of_new(request, form) if has_text else [],
        limit=MAX_BODY,
        here="/kb",
    )


def _draft(form: dict[str, str]) -> dict[str, Any]:
    lists = {
        name: [part.strip() for part in form.get(name, "").split(",") if part.strip()] or None
        for name in ("tags", "projects")
    }
    texts = {name: form.get(name, "") for name in ("title", "summary")}
    kind = form.get("type", "")
    return {"content": form.get("text", ""), **texts, **lists, "type": kind if kind in TYPES else None}


async def _findings_of_new(request: Request, form: dict[str, str]) -> list[Any]:
    if not all(form.get(name, "").strip() for name in ("title", "summary", "text")):
        return [_refusal("A node needs a title, a summary and a text.")]
    record = await try_operation(request, "kb remember", dry_run=True, force=True, **_draft(form))
    return list(record.findings) if record else [_refusal(record.message)]


@route("/new/node", POST="write")
async def create_node(request: Request) -> Response:
    form = await read_form(request)
    try:
        record = await call_operation(
            request, "kb remember", **_draft(form), force=bool(form.get("force")) or None
        )
    except QuaidError as error:
        message, is_similar = browser_message(error), isinstance(error, NearDuplicate)
        return await _new_form(request, form, problem=message, similar=is_similar, http=error.http_status)
    message = SAVED
    if record.contradicts:
        names = ", ".join(f"“{node.title}”" for node in record.contradicts)
        message = f"Saved. It contradicts {names}: both are marked as contested until you decide."
    return redirect(request, base.node_url(record.node.id), message)


@route("/ui/links/kb", GET="read")
async def suggest_nodes(request: Request) -> Response:
    """Return nodes for a link that is being typed, as JSON."""
    query = request.query_params.get("q", "").removeprefix(ID_PREFIX).strip()[:MAX_QUERY]
    listed = await try_operation(request, "kb list", limit=MAX_NODES)
    words = query.lower().split()
    nodes = (
        [node for node in listed.nodes if all(word in node.title.lower() for word in words)] if listed else []
    )
    offers = [
        {
            "title": node.title,
            "address": node.summary,
            "type": node.type,
            "insert": f"[[{ID_PREFIX}{node.id}][{node.title.replace('[', '(').replace(']', ')')}]]",
        }
        for node in nodes[:MAX_OFFERS]
    ]
    return JSONResponse(offers)
