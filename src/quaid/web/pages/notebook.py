"""The home page, and the notebook's files: list, show, edit, create."""

import re
from collections.abc import Iterable
from difflib import unified_diff
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.errors import NoNotebook, NotFound, QuaidError, VersionConflict
from quaid.model import slug as slugs
from quaid.web.auth import MAX_BODY
from quaid.web.pages import links as urls, markdown
from quaid.web.pages.base import (
    FlashMessage,
    OperationFailure,
    cached_operation,
    call_operation,
    error_flash,
    gather_all,
    parse_number,
    read_form,
    redirect,
    render_fragment,
    render_page,
    try_operation,
)
from quaid.web.pages.links import resolve_nothing
from quaid.web.pages.markdown import look_up_names
from quaid.web.pages.page import DiffLine, diff_lines, load_page_links, requested_line, resolver_of_text

MAX_CHANGES = 8
DUE_DAYS = 30
MAX_FILES_NAMED = 3
"""Number of files named for each folder on the home page."""
NOTEBOOK_FOLDERS = ("lists", "reference", "knowledge", "daily")


class FolderCard(NamedTuple):
    """One folder of the notebook, on the home page."""

    name: str
    files: int
    told: str
    """Titles of some of its files; for the daily log, the latest day."""
    latest: str
    """Path of the file to open."""


def folder_cards(files: Any, today: str) -> list[FolderCard]:
    """Return the notebook's folders: first the four that every notebook has, then the others."""
    found: dict[str, list[str]] = {name: [] for name in NOTEBOOK_FOLDERS}
    for each in files:
        folder, slash, _ = each.path.partition("/")
        found.setdefault(folder if slash else "", []).append(each.path)
    return [
        _folder_card(name, paths, today) for name, paths in found.items() if paths or name in NOTEBOOK_FOLDERS
    ]


def _folder_card(name: str, paths: list[str], today: str) -> FolderCard:
    if name == "daily" and paths:
        latest = max(paths)
        day = latest.rpartition("/")[2].removesuffix(".md")
        return FolderCard(name, len(paths), f"Latest: {'today' if day == today else day}", latest)
    titles = [_file_title(path) for path in paths[:MAX_FILES_NAMED]]
    told = ", ".join(titles) + (", …" if len(paths) > MAX_FILES_NAMED else "")
    return FolderCard(name, len(paths), told, paths[0] if paths else "")


def _file_title(path: str) -> str:
    name = path.rpartition("/")[2].removesuffix(".md").replace("-", " ")
    return name[:1].upper() + name[1:]


UNDATED = re.compile(r"([\d,]+) open commitments? names? no day")


def undated_commitments(notes: Iterable[str]) -> str:
    """Return the briefing's count of open commitments without a due date as a sentence, or an empty string."""
    for each in notes:
        if found := UNDATED.match(each):
            one = found[1] == "1"
            return f"{found[1]} open commitment{' names' if one else 's name'} no day"
    return ""


async def show_home(
    request: Request, jotted: str = "", problem: FlashMessage | None = None, http: int = 200
) -> Response:
    book, changed, brief, status = await gather_all(
        try_operation(request, "notebook list"),
        try_operation(request, "list", limit=MAX_CHANGES),
        cached_operation(request, "briefing", since="7d", due=DUE_DAYS, limit=6, short=True),
        cached_operation(request, "status"),
    )
    today = brief.as_of[:10] if brief else ""
    names = await look_up_names(request, (each.summary for each in changed.pages) if changed else ())
    return render_page(
        *(request, "home.html"),
        names=names,
        http=http,
        told=problem,
        jotted=jotted,
        undated=undated_commitments(brief.notes) if brief else "",
        book=book,
        folders=folder_cards(book.files, today) if book else [],
        changed=changed,
        brief=brief,
        status=status,
        today=today,
    )


async def save_jotting(request: Request) -> Response:
    """Save a line typed on the home page: remember it, or add it to today's log."""
    given = await read_form(request)
    text = given.get("text", "").strip()
    if not text:
        return redirect(request, "/")
    try:
        if given.get("where") == "log":
            await call_operation(request, "log", entry=text)
            return redirect(request, "/", "logged")
        record = await call_operation(request, "remember", content=text)
    except QuaidError as error:
        return await show_home(request, text, error_flash(error), error.http_status)
    return redirect(request, "/", "remembered" if any(each.written for each in record.lines) else "known")


def home_routes() -> list[Route]:
    return [Route("/", show_home), Route("/jot", save_jotting, methods=["POST"])]


NOTEBOOK_COLLECTION = "notebook"


def file_tree(files: Any) -> list[tuple[str, list[Any]]]:
    """Return the files by folder: first the four of every notebook, then the others. The daily log is newest
    first."""
    found: dict[str, list[Any]] = {name: [] for name in NOTEBOOK_FOLDERS}
    for each in files:
        folder = each.path.rpartition("/")[0]
        found.setdefault(folder, []).append(each)
    if found["daily"]:
        found["daily"] = found["daily"][::-1]
    return list(found.items())


async def show_notebook(request: Request) -> Response:
    book = await try_operation(request, "notebook list")
    if isinstance(book, OperationFailure):
        if book.code != NoNotebook.code:
            raise NotFound(what="notebook", name="", hint=f" {book.told}")
        return render_page(request, "notebook.html", book=None, tree=[], file=None)
    return render_page(request, "notebook.html", book=book, tree=file_tree(book.files), file=None)


async def show_file(request: Request) -> Response:
    path = request.path_params["path"]
    book, record = await gather_all(
        try_operation(request, "notebook list"), call_operation(request, "notebook read", path=path)
    )
    stored = await _stored_page(request, path)
    lead = (await load_page_links(request, stored)).lead if stored else resolve_nothing
    file = {
        "path": path,
        "record": record,
        "html": markdown.render_markdown(
            _blank_front_matter(record.text), lead, at=requested_line(request)[1]
        ),
        "editing": "edit" in request.query_params,
        "problem": "",
        "theirs": "",
        "text": record.text,
        "lines": [],
    }
    return render_page(
        request,
        "notebook.html",
        book=book,
        tree=file_tree(book.files) if book else [],
        file=file,
        limit=MAX_BODY,
    )


async def _stored_page(request: Request, path: str) -> Any:
    """Return the page of a file, or None if the memory does not have it."""
    return await try_operation(request, "get", slug=f"{NOTEBOOK_COLLECTION}::{slugs.from_path(path)}") or None


async def preview_file(request: Request) -> Response:
    """Render a file while it is being edited."""
    given = await read_form(request)
    text = given.get("text", "")
    lead = await resolver_of_text(request, await _stored_page(request, given.get("path", "")), text)
    return render_fragment(
        "note_preview.html", html=markdown.render_markdown(_blank_front_matter(text), lead)
    )


def _blank_front_matter(text: str) -> str:
    """Replace the front matter by blank lines, so that line numbers stay the same."""
    if not text.startswith("---\n"):
        return text
    end = text.find("\n---\n", 3)
    return text if end < 0 else "\n" * text.count("\n", 0, end + 5) + text[end + 5 :]


async def save_file(request: Request) -> Response:
    path = request.path_params["path"]
    given = await read_form(request)
    text, version = given.get("text", ""), parse_number(given.get("version", ""))
    problem, theirs, status = "", "", 200
    try:
        record = await call_operation(
            *(request, "notebook write"), path=path, content=text, replace=True, expected_version=version
        )
        return redirect(request, urls.file_url(path), "saved" if record.changed else "same")
    except QuaidError as error:
        problem, status = str(error), error.http_status
        conflict = isinstance(error, VersionConflict) or status == 409
    book = await try_operation(request, "notebook list")
    now = await try_operation(request, "notebook read", path=path)
    lines: list[DiffLine] = []
    if conflict and now:
        theirs, version = now.text, now.version
        told = unified_diff(theirs.splitlines(), text.splitlines(), "theirs", "yours", lineterm="", n=2)
        lines = diff_lines("\n".join(told))
    file = {
        "path": path,
        "record": now or None,
        "html": markdown.render_markdown(_blank_front_matter(text)),
        "editing": True,
        "problem": problem,
        "theirs": theirs,
        "text": text,
        "version": version,
        "lines": lines,
    }
    return render_page(
        *(request, "notebook.html"),
        http=status,
        book=book,
        tree=file_tree(book.files) if book else [],
        file=file,
        limit=MAX_BODY,
    )


async def create_file(request: Request) -> Response:
    """Create a file with a heading and open it in the editor."""
    given = await read_form(request)
    path = given.get("path", "").strip()
    path = path if path.endswith(".md") else f"{path}.md"
    name = path.rpartition("/")[2].removesuffix(".md").replace("-", " ")
    heading = f"## {name[:1].upper()}{name[1:]}\n"
    await call_operation(
        request, "notebook write", path=path, content=heading, replace=True, expected_version=0
    )
    return redirect(request, f"{urls.file_url(path)}?edit=1")


def routes() -> list[Route]:
    return [
        Route("/notebook", show_notebook),
        Route("/notebook", create_file, methods=["POST"]),
        Route("/notebook/{path:path}", show_file),
        Route("/notebook/{path:path}", save_file, methods=["POST"]),
        Route("/ui/preview/notebook", preview_file, methods=["POST"]),
    ]
