"""The notebook browser: folders, files, one file open beside them; editing it against the version that was read."""

from difflib import unified_diff
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.errors import NoNotebook, NotFound, QuaidError, VersionConflict
from quaid.model import slug as slugs
from quaid.surfaces.web.guard import MAX_BODY
from quaid.surfaces.web.pages import addresses, markdown
from quaid.surfaces.web.pages.asking import Trouble, ask, attempt, form, number, together
from quaid.surfaces.web.pages.changing import links_of
from quaid.surfaces.web.pages.home import FOLDERS
from quaid.surfaces.web.pages.leading import nowhere
from quaid.surfaces.web.pages.page import Line, diff_lines, known_links, place_of
from quaid.surfaces.web.pages.rendering import go, page, piece

COLLECTION = "notebook"


def tree(files: Any) -> list[tuple[str, list[Any]]]:
    """The files by folder: the four of every notebook, then the others; the log from its latest day on."""
    found: dict[str, list[Any]] = {name: [] for name in FOLDERS}
    for each in files:
        folder = each.path.rpartition("/")[0]
        found.setdefault(folder, []).append(each)
    if found["daily"]:
        found["daily"] = found["daily"][::-1]
    return list(found.items())


async def show(request: Request) -> Response:
    book = await attempt(request, "notebook list")
    if isinstance(book, Trouble):
        if book.code != NoNotebook.code:
            raise NotFound(what="notebook", name="", hint=f" {book.told}")
        return page(request, "notebook.html", book=None, tree=[], file=None)
    return page(request, "notebook.html", book=book, tree=tree(book.files), file=None)


async def open_file(request: Request) -> Response:
    path = request.path_params["path"]
    book, record = await together(attempt(request, "notebook list"), ask(request, "notebook read", path=path))
    stored = await _stored(request, path)
    lead = (await known_links(request, stored)).lead if stored else nowhere
    file = {
        "path": path,
        "record": record,
        "html": markdown.render(_body(record.text), lead, at=place_of(request)[1]),
        "editing": "edit" in request.query_params,
        "problem": "",
        "theirs": "",
        "text": record.text,
        "lines": [],
    }
    return page(
        request, "notebook.html", book=book, tree=tree(book.files) if book else [], file=file, limit=MAX_BODY
    )


async def _stored(request: Request, path: str) -> Any:
    """Return the page of a file, if the memory has it."""
    return await attempt(request, "get", slug=f"{COLLECTION}::{slugs.from_path(path)}") or None


async def preview(request: Request) -> Response:
    """What a file will look like, while it is written."""
    given = await form(request)
    text = given.get("text", "")
    lead = await links_of(request, await _stored(request, given.get("path", "")), text)
    return piece("note_preview.html", html=markdown.render(_body(text), lead))


def _body(text: str) -> str:
    """The text with its front matter made blank, so that lines keep their numbers."""
    if not text.startswith("---\n"):
        return text
    end = text.find("\n---\n", 3)
    return text if end < 0 else "\n" * text.count("\n", 0, end + 5) + text[end + 5 :]


async def save(request: Request) -> Response:
    path = request.path_params["path"]
    given = await form(request)
    text, version = given.get("text", ""), number(given.get("version", ""))
    problem, theirs, status = "", "", 200
    try:
        record = await ask(
            *(request, "notebook write"), path=path, content=text, replace=True, expected_version=version
        )
        return go(request, addresses.file(path), "saved" if record.changed else "same")
    except QuaidError as error:
        problem, status = str(error), error.http_status
        conflict = isinstance(error, VersionConflict) or status == 409
    book = await attempt(request, "notebook list")
    now = await attempt(request, "notebook read", path=path)
    lines: list[Line] = []
    if conflict and now:
        theirs, version = now.text, now.version
        told = unified_diff(theirs.splitlines(), text.splitlines(), "theirs", "yours", lineterm="", n=2)
        lines = diff_lines("\n".join(told))
    file = {
        "path": path,
        "record": now or None,
        "html": markdown.render(_body(text)),
        "editing": True,
        "problem": problem,
        "theirs": theirs,
        "text": text,
        "version": version,
        "lines": lines,
    }
    return page(
        *(request, "notebook.html"),
        http=status,
        book=book,
        tree=tree(book.files) if book else [],
        file=file,
        limit=MAX_BODY,
    )


async def make(request: Request) -> Response:
    """A new file, with a heading to begin with."""
    given = await form(request)
    path = given.get("path", "").strip()
    path = path if path.endswith(".md") else f"{path}.md"
    name = path.rpartition("/")[2].removesuffix(".md").replace("-", " ")
    heading = f"## {name[:1].upper()}{name[1:]}\n"
    await ask(request, "notebook write", path=path, content=heading, replace=True, expected_version=0)
    return go(request, f"{addresses.file(path)}?edit=1")


def routes() -> list[Route]:
    return [
        Route("/notebook", show),
        Route("/notebook", make, methods=["POST"]),
        Route("/notebook/{path:path}", open_file),
        Route("/notebook/{path:path}", save, methods=["POST"]),
        Route("/ui/preview/notebook", preview, methods=["POST"]),
    ]
