"""The home page, and the notebook's files: list, show, edit, create."""

import re
from collections.abc import Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from quaid.errors import NoNotebook, NotFound, QuaidError
from quaid.model import slug as slugs
from quaid.web.auth import MAX_BODY
from quaid.web.pages import base, markdown
from quaid.web.pages.base import (
    cached_operation,
    call_operation,
    error_flash,
    gather_all,
    parse_number,
    read_form,
    redirect,
    render_fragment,
    render_page,
    resolve_nothing,
    route,
    try_operation,
)
from quaid.web.pages.markdown import look_up_names
from quaid.web.pages.page import (
    SAVED,
    UNCHANGED,
    load_page_links,
    requested_line,
    resolver_of_text,
    text_difference,
)

MAX_CHANGES = 8
DUE_DAYS = 30
MAX_FILES_NAMED = 3
"""On the home page, at most this many files are named for each folder."""
NOTEBOOK_FOLDERS = ("lists", "reference", "knowledge", "daily")


def folder_cards(files: Any, today: str) -> list[tuple[str, int, str, str]]:
    """Return the notebook's folders: first the four that every notebook has, then the others.

    Each item has the name of the folder, its number of files, a description, and the path of the file to open.
    The description names some of the files or, for the daily log, the latest day.
    """
    folders: dict[str, list[str]] = {name: [] for name in NOTEBOOK_FOLDERS}
    for file in files:
        folder, slash, _ = file.path.partition("/")
        folders.setdefault(folder if slash else "", []).append(file.path)
    return [(name, len(paths), *_describe_folder(name, paths, today)) for name, paths in folders.items()]


def _describe_folder(name: str, paths: list[str], today: str) -> tuple[str, str]:
    if not paths:
        return "", ""
    if name == "daily":
        latest = max(paths)
        day = latest.rpartition("/")[2].removesuffix(".md")
        return f"Latest: {'today' if day == today else day}", latest
    titles = [_file_title(path) for path in paths[:MAX_FILES_NAMED]]
    return ", ".join(titles) + (", …" if len(paths) > MAX_FILES_NAMED else ""), paths[0]


def _file_title(path: str) -> str:
    name = path.rpartition("/")[2].removesuffix(".md").replace("-", " ")
    return name[:1].upper() + name[1:]


UNDATED = re.compile(r"([\d,]+) open commitments? names? no day")


def undated_commitments(notes: Iterable[str]) -> str:
    """Return the briefing's count of open commitments without a due date as a sentence, or an empty string."""
    for note in notes:
        if match := UNDATED.match(note):
            return f"{match[1]} open commitment{' has' if match[1] == '1' else 's have'} no due date"
    return ""


@route("/", GET="read")
async def show_home(request: Request, error: QuaidError | None = None) -> Response:
    book, changed, brief, status = await gather_all(
        try_operation(request, "notebook list"),
        try_operation(request, "list", limit=MAX_CHANGES),
        cached_operation(request, "briefing", since="7d", due=DUE_DAYS, limit=6, short=True),
        cached_operation(request, "status"),
    )
    today = brief.as_of[:10] if brief else ""
    names = await look_up_names(request, (page.summary for page in changed.pages) if changed else ())
    return render_page(
        *(request, "home.html"),
        names=names,
        http=error.http_status if error else 200,
        flash=error_flash(error) if error else None,
        unsaved=(await read_form(request)).get("text", "").strip() if error else "",
        undated=undated_commitments(brief.notes) if brief else "",
        book=book,
        folders=folder_cards(book.files, today) if book else [],
        changed=changed,
        brief=brief,
        status=status,
        today=today,
    )


@route("/jot", POST="write", on_error=show_home)
async def save_note(request: Request) -> Response:
    """Save a line typed on the home page: remember it, or add it to today's log."""
    form = await read_form(request)
    text = form.get("text", "").strip()
    if not text:
        return redirect(request, "/")
    if form.get("where") == "log":
        await call_operation(request, "log", content=text)
        return redirect(request, "/", "Added to today's log.")
    record = await call_operation(request, "remember", content=text)
    is_new = any(line.written for line in record.lines)
    return redirect(request, "/", "Remembered." if is_new else "The notebook already contains this.")


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
        html=markdown.render_markdown(_blank_front_matter(record.text), resolve, at=line),
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
    }
    tree = file_tree(book.files) if book else []
    return render_page(request, "notebook.html", http=http, book=book, tree=tree, file=file, limit=MAX_BODY)


async def _stored_page(request: Request, path: str) -> Any:
    """Return the page of a file, or None if the file has no page."""
    return await try_operation(request, "get", slug=f"{NOTEBOOK_COLLECTION}::{slugs.from_path(path)}") or None


@route("/ui/preview/notebook", POST="read")
async def preview_file(request: Request) -> Response:
    """Render a file while it is being edited."""
    form = await read_form(request)
    text = form.get("text", "")
    resolve = await resolver_of_text(request, await _stored_page(request, form.get("path", "")), text)
    html = markdown.render_markdown(_blank_front_matter(text), resolve)
    return render_fragment("note_preview.html", html=html)


def _blank_front_matter(text: str) -> str:
    """Replace the front matter by blank lines, so that line numbers stay the same."""
    if not text.startswith("---\n"):
        return text
    end = text.find("\n---\n", 3)
    return text if end < 0 else "\n" * text.count("\n", 0, end + 5) + text[end + 5 :]


@route("/notebook/{path:path}", POST="write")
async def save_file(request: Request) -> Response:
    path = request.path_params["path"]
    form = await read_form(request)
    text, version = form.get("text", ""), parse_number(form.get("version", ""))
    try:
        record = await call_operation(
            *(request, "notebook write"), path=path, content=text, replace=True, expected_version=version
        )
        return redirect(request, base.file_url(path), SAVED if record.changed else UNCHANGED)
    except QuaidError as caught:
        error = caught
    now = await try_operation(request, "notebook read", path=path)
    is_conflict = bool(now) and error.http_status == 409
    return await _render_file(
        *(request, now or None, text),
        html=markdown.render_markdown(_blank_front_matter(text)),
        is_editing=True,
        problem=str(error),
        theirs=now.text if is_conflict else "",
        version=now.version if is_conflict else version,
        http=error.http_status,
    )


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
