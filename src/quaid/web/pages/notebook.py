"""The notebook's files and the nodes of the knowledge base: list, show, edit, create.

A node is linted while it is being edited.
"""

from hashlib import sha256
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from quaid.errors import FileChanged, NearDuplicate, NoNotebook, NotFound, QuaidError, StoreMissing
from quaid.formats import org
from quaid.model import merge, slug as slugs
from quaid.model.links import ID_PREFIX
from quaid.web.auth import MAX_BODY
from quaid.web.pages import base, markdown
from quaid.web.pages.base import (
    Form,
    LinkResolver,
    LinkTarget,
    browser_message,
    call_operation,
    parse_number,
    read_form,
    redirect,
    render_fragment,
    render_in_turn,
    render_page,
    resolve_nothing,
    route,
    try_operation,
)
from quaid.web.pages.page import (
    MAX_BASE,
    MAX_QUERY,
    MERGED,
    SAVED,
    UNCHANGED,
    load_page_links,
    requested_line,
    resolver_of_text,
    text_difference,
)

NOTEBOOK_FOLDERS = ("lists", "reference", "knowledge", "daily")


def _file_title(path: str) -> str:
    name = path.rpartition("/")[2].removesuffix(".md").replace("-", " ")
    return name[:1].upper() + name[1:]


NOTEBOOK_COLLECTION = "notebook"


def file_tree(files: Any) -> list[tuple[str, list[Any]]]:
    """Return the files by folder: first the four folders that every notebook has, then the others.

    The daily log is newest first.
    """
    folders: dict[str, list[Any]] = {name: [] for name in NOTEBOOK_FOLDERS}
    for file in files:
        folders.setdefault(file.path.rpartition("/")[0], []).append(file)
    folders["daily"].reverse()
    return list(folders.items())


@route("/notebook", GET="read")
async def show_notebook(request: Request) -> Response:
    book = await try_operation(request, "notebook list")
    if not book and book.code != NoNotebook.code:
        raise NotFound(what="notebook", name="", hint=f" {book.message}")
    return render_page(
        request, "notebook.html", book=book or None, tree=file_tree(book.files) if book else [], file=None
    )


@route("/notebook/{path:path}", GET="read")
async def show_file(request: Request) -> Response:
    path = request.path_params["path"]
    record = await call_operation(request, "notebook read", path=path)
    page = await _stored_page(request, path)
    resolve = (await load_page_links(request, page))[2] if page else resolve_nothing
    line = requested_line(request)[1]
    return await _render_file(
        request,
        record,
        record.text,
        html=await _file_html(request, path, record.text, resolve, line),
        is_editing="edit" in request.query_params,
    )


async def _render_file(
    request: Request,
    record: Any,
    text: str,
    *,
    html: Any,
    is_editing: bool,
    problem: str = "",
    theirs: str = "",
    version: int | None = None,
    http: int = 200,
) -> Response:
    """Render the notebook with a file. `theirs` is the file's current text after a conflict."""
    book = await try_operation(request, "notebook list")
    file = {
        "path": request.path_params["path"],
        "record": record,
        "html": html,
        "editing": is_editing,
        "problem": problem,
        "theirs": theirs,
        "text": text,
        "version": record.version if version is None else version,
        "lines": text_difference(theirs, text) if theirs else [],
        "page": page_of_file(request.path_params["path"]),
        "base": record.text if is_editing and record and len(record.text) <= MAX_BASE else "",
    }
    tree = file_tree(book.files) if book else []
    return render_page(request, "notebook.html", http=http, book=book, tree=tree, file=file, limit=MAX_BODY)


async def _file_html(request: Request, path: str, text: str, resolve: LinkResolver, line: int = 0) -> Any:
    """Render the text of a file below its front matter."""
    shown, page = _blank_front_matter(text), page_of_file(path)
    return await render_in_turn(request, lambda: markdown.render_markdown(shown, resolve, at=line, page=page))


def page_of_file(path: str) -> str:
    """Return the address of the page of a file."""
    return f"{NOTEBOOK_COLLECTION}::{slugs.from_path(path)}"


async def _stored_page(request: Request, path: str) -> Any:
    """Return the page of a file, or None if the file has no page."""
    return await try_operation(request, "get", slug=page_of_file(path)) or None


@route("/ui/preview/notebook", POST="write")
async def preview_file(request: Request) -> Response:
    """Render a file while it is being edited."""
    form = await read_form(request)
    text = form["text"]
    resolve = await resolver_of_text(request, await _stored_page(request, form["path"]), text)
    html = await _file_html(request, form["path"], text, resolve)
    return render_fragment("note_preview.html", html=html)


def _blank_front_matter(text: str) -> str:
    """Replace the front matter by blank lines, so that line numbers stay the same."""
    end = _front_matter_end(text)
    return "\n" * text.count("\n", 0, end) + text[end:]


def _front_matter_end(text: str) -> int:
    """Return where the text below the front matter begins."""
    end = text.find("\n---\n", 3) if text.startswith("---\n") else -1
    return 0 if end < 0 else end + 5


@route("/notebook/{path:path}", POST="write")
async def save_file(request: Request) -> Response:
    path = request.path_params["path"]
    form = await read_form(request)
    text, version = form["text"], parse_number(form["version"])
    try:
        record = await _write_file(request, path, text, version)
        return redirect(
            request,
            base.file_url(path),
            SAVED if record.changed else UNCHANGED,
            **await _saved_values(request, path, text),
        )
    except QuaidError as caught:
        error = caught
    now = await try_operation(request, "notebook read", path=path)
    is_conflict = bool(now) and error.http_status == 409
    if is_conflict and (message := await _save_merged(request, form, now)):
        return redirect(request, base.file_url(path), message, **await _saved_values(request, path, text))
    return await _render_file(
        request,
        now or None,
        text,
        html=await _file_html(request, path, text, resolve_nothing),
        is_editing=True,
        problem=str(error),
        theirs=now.text if is_conflict else "",
        version=now.version if is_conflict else version,
        http=error.http_status,
    )


CHANGED_MEANWHILE = "The file was changed meanwhile, so nothing was done. This is its current text."


@route("/ui/notebook/line", POST="write")
async def change_line(request: Request) -> Response:
    """Tick a checkbox or move a list item in the rendered file. Return its new version and HTML as JSON."""
    form = await read_form(request)
    path, line = form["path"], parse_number(form["line"])
    record = await call_operation(request, "notebook read", path=path)
    text, http, message = record.text, 200, ""
    if record.version != parse_number(form["version"]):
        http, message = 409, CHANGED_MEANWHILE
    elif "done" in form:
        ticked = markdown.tick_line(text, line, done=form["done"] == "yes")
        http, text = (200, ticked) if ticked is not None else (400, text)
    else:
        steps = form["steps"]
        count = parse_number(steps.removeprefix("-"))
        blank = _blank_front_matter(text)
        moved = markdown.move_item(blank, line, -count if steps.startswith("-") else count)
        http = 200 if moved else 400
        if moved:
            end = _front_matter_end(text)
            line = moved[1]
            text = text[:end] + moved[0][text.count("\n", 0, end) :]
    version = record.version
    if text != record.text:
        version = (await _write_file(request, path, text, version)).version
    page = await _stored_page(request, path)
    resolve = (await load_page_links(request, page))[2] if page else resolve_nothing
    html = await _file_html(request, path, text, resolve)
    return JSONResponse({"version": version, "html": html, "line": line, "message": message}, http)


async def _write_file(request: Request, path: str, text: str, version: int) -> Any:
    return await call_operation(
        request, "notebook write", path=path, content=text, replace=True, expected_version=version
    )


async def _saved_values(request: Request, path: str, sent: str) -> dict[str, Any]:
    if not base.stays_open(request):
        return {}
    record = await call_operation(request, "notebook read", path=path)
    return base.saved_values(record.version, record.text, is_same=record.text == sent)


async def _save_merged(request: Request, form: Form, now: Any) -> str:
    """Merge the submitted text into a file that was changed meanwhile. Return a message, or "" if that fails."""
    if not form["base"]:
        return ""
    text, conflicts = merge.merge_text(form["base"], form["text"], now.text, "yours", "theirs")
    if conflicts:
        return ""
    try:
        record = await _write_file(request, request.path_params["path"], text, now.version)
    except QuaidError:
        return ""  # the form is shown again, with the current text
    return MERGED if record.changed else SAVED


@route("/notebook", POST="write")
async def create_file(request: Request) -> Response:
    """Create a file with a heading and open it in the editor."""
    path = (await read_form(request))["path"].strip()
    path = path if path.endswith(".md") else f"{path}.md"
    heading = f"## {_file_title(path)}\n"
    await call_operation(
        request, "notebook write", path=path, content=heading, replace=True, expected_version=0
    )
    return redirect(request, f"{base.file_url(path)}?edit=1")


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
        request,
        "node_edit.html",
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
    """Return the lint findings for an edited node. If the edit is refused, the reason is the only finding."""
    record = await try_operation(request, "kb edit", node=id, content=text, dry_run=True)
    return list(record.findings) if record else [_refusal(record.message)]


def _refusal(message: str) -> dict[str, Any]:
    return {"line": 0, "message": message, "remedy": "", "fatal": True}


@route("/kb/{id}/edit", POST="owner")
async def save_node(request: Request) -> Response:
    id, form = request.path_params["id"], await read_form(request)
    text, expected = form["text"], form["version"]
    message = ""
    try:
        record = await _edit(request, id, text, expected)
        message = SAVED if record.changed else UNCHANGED
    except FileChanged:
        now = await call_operation(request, "kb show", node=id)
        merged, conflicts = merge.merge_text(form["base"] or None, text, now.text, "yours", "theirs")
        if conflicts or not form["base"]:
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
    if base.stays_open(request):
        now = await call_operation(request, "kb show", node=id)
        saved = base.saved_values(_version(now.text), now.text, is_same=now.text == text)
    return redirect(request, base.node_url(id), message, **saved)


async def _edit(request: Request, id: str, text: str, expected: str) -> Any:
    return await call_operation(request, "kb edit", node=id, content=text, expected=expected)


@route("/ui/preview/kb", POST="write")
async def preview_node(request: Request) -> Response:
    """Render a node while it is being edited, with its lint findings."""
    form = await read_form(request)
    text = form["text"]
    if "title" in form:
        findings = await _findings_of_new(request, form)
    else:
        findings = await _findings_of_edit(request, form["slug"], text)
    return render_fragment("node_preview.html", html=await _preview(request, text), findings=findings)


@route("/new/node", GET="write")
async def new_node(request: Request) -> Response:
    return await _new_form(request, Form(type="observation"))


async def _new_form(
    request: Request, form: Form, *, problem: str = "", similar: bool = False, http: int = 200
) -> Response:
    has_text = bool(form["text"].strip())
    return render_page(
        request,
        "node_new.html",
        http=http,
        form=form,
        types=TYPES,
        problem=problem,
        similar=similar,
        html=await _preview(request, form["text"]),
        findings=await _findings_of_new(request, form) if has_text else [],
        limit=MAX_BODY,
        here="/kb",
    )


def _draft(form: Form) -> dict[str, Any]:
    lists = {
        name: [part.strip() for part in form[name].split(",") if part.strip()] or None
        for name in ("tags", "projects")
    }
    texts = {name: form[name] for name in ("title", "summary")}
    kind = form["type"]
    return {"content": form["text"], **texts, **lists, "type": kind if kind in TYPES else None}


async def _findings_of_new(request: Request, form: Form) -> list[Any]:
    if not all(form[name].strip() for name in ("title", "summary", "text")):
        return [_refusal("A node needs a title, a summary and a text.")]
    record = await try_operation(request, "kb remember", dry_run=True, force=True, **_draft(form))
    return list(record.findings) if record else [_refusal(record.message)]


@route("/new/node", POST="write")
async def create_node(request: Request) -> Response:
    form = await read_form(request)
    try:
        record = await call_operation(
            request, "kb remember", **_draft(form), force=bool(form["force"]) or None
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
    """Return completions for a link that is being typed, as JSON."""
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
