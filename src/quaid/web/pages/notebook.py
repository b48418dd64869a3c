"""The notebook's files: list, show, edit, create."""

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from quaid.errors import NoNotebook, NotFound, QuaidError
from quaid.model import merge, slug as slugs
from quaid.web.auth import MAX_BODY
from quaid.web.pages import base, markdown
from quaid.web.pages.base import (
    LinkResolver,
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
        *(request, record, record.text),
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
    text = form.get("text", "")
    resolve = await resolver_of_text(request, await _stored_page(request, form.get("path", "")), text)
    html = await _file_html(request, form.get("path", ""), text, resolve)
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
    text, version = form.get("text", ""), parse_number(form.get("version", ""))
    try:
        record = await _write_file(request, path, text, version)
        return redirect(
            *(request, base.file_url(path), SAVED if record.changed else UNCHANGED),
            **await _saved_values(request, path, text),
        )
    except QuaidError as caught:
        error = caught
    now = await try_operation(request, "notebook read", path=path)
    is_conflict = bool(now) and error.http_status == 409
    if is_conflict and (message := await _save_merged(request, form, now)):
        return redirect(request, base.file_url(path), message, **await _saved_values(request, path, text))
    return await _render_file(
        *(request, now or None, text),
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
    path, line = form.get("path", ""), parse_number(form.get("line", ""))
    record = await call_operation(request, "notebook read", path=path)
    text, http, message = record.text, 200, ""
    if record.version != parse_number(form.get("version", "")):
        http, message = 409, CHANGED_MEANWHILE
    elif "done" in form:
        ticked = markdown.tick_line(text, line, done=form["done"] == "yes")
        http, text = (200, ticked) if ticked is not None else (400, text)
    else:
        steps = form.get("steps", "")
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
        *(request, "notebook write"), path=path, content=text, replace=True, expected_version=version
    )


async def _saved_values(request: Request, path: str, sent: str) -> dict[str, Any]:
    """Return what an editor that stays open needs: the new version, and the stored text if it is another one."""
    if request.headers.get(base.SAVE_HEADER) != "stay":
        return {}
    record = await call_operation(request, "notebook read", path=path)
    return {
        "version": record.version,
        "base": record.text,
        "text": None if record.text == sent else record.text,
    }


async def _save_merged(request: Request, form: dict[str, str], now: Any) -> str:
    """Merge the submitted text into a file that was changed meanwhile. Return a message, or "" for a conflict."""
    if not form.get("base"):
        return ""
    text, conflicts = merge.merge_text(form["base"], form.get("text", ""), now.text, "yours", "theirs")
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
    path = (await read_form(request)).get("path", "").strip()
    path = path if path.endswith(".md") else f"{path}.md"
    heading = f"## {_file_title(path)}\n"
    await call_operation(
        request, "notebook write", path=path, content=heading, replace=True, expected_version=0
    )
    return redirect(request, f"{base.file_url(path)}?edit=1")
