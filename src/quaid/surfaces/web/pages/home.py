"""Home: the notebook at a glance, what changed, what is due, what is open, how the index is. And a place to jot."""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.errors import QuaidError
from quaid.surfaces.web.pages.asking import ask, attempt, form, lately, together
from quaid.surfaces.web.pages.naming import named
from quaid.surfaces.web.pages.rendering import Told, failed, go, page

CHANGES = 8
DUE_DAYS = 30
NAMED = 3
"""Files that the card names of each folder."""
FOLDERS = ("lists", "reference", "knowledge", "daily")


class Folder(NamedTuple):
    """A line of the notebook's card."""

    name: str
    files: int
    told: str
    """Some of its files, or for the log its latest day."""
    latest: str
    """The path of the file that is opened."""


def folders(files: Any, today: str) -> list[Folder]:
    """The folders of the notebook, the four that every notebook has first."""
    found: dict[str, list[str]] = {name: [] for name in FOLDERS}
    for each in files:
        folder, slash, _ = each.path.partition("/")
        found.setdefault(folder if slash else "", []).append(each.path)
    return [_folder(name, paths, today) for name, paths in found.items() if paths or name in FOLDERS]


def _folder(name: str, paths: list[str], today: str) -> Folder:
    if name == "daily" and paths:
        latest = max(paths)
        day = latest.rpartition("/")[2].removesuffix(".md")
        return Folder(name, len(paths), f"Latest: {'today' if day == today else day}", latest)
    titles = [_title(path) for path in paths[:NAMED]]
    told = ", ".join(titles) + (", …" if len(paths) > NAMED else "")
    return Folder(name, len(paths), told, paths[0] if paths else "")


def _title(path: str) -> str:
    name = path.rpartition("/")[2].removesuffix(".md").replace("-", " ")
    return name[:1].upper() + name[1:]


UNDATED = re.compile(r"([\d,]+) open commitments? names? no day")


def undated(notes: Iterable[str]) -> str:
    """How many promises name no day, as the briefing counts them: they are open, though never due."""
    for each in notes:
        if found := UNDATED.match(each):
            one = found[1] == "1"
            return f"{found[1]} open commitment{' names' if one else 's name'} no day"
    return ""


async def show(request: Request, jotted: str = "", problem: Told | None = None, http: int = 200) -> Response:
    book, changed, brief, status = await together(
        attempt(request, "notebook list"),
        attempt(request, "list", limit=CHANGES),
        lately(request, "briefing", since="7d", due=DUE_DAYS, limit=6, short=True),
        lately(request, "status"),
    )
    today = brief.as_of[:10] if brief else ""
    names = await named(request, (each.summary for each in changed.pages) if changed else ())
    return page(
        *(request, "home.html"),
        names=names,
        http=http,
        told=problem,
        jotted=jotted,
        undated=undated(brief.notes) if brief else "",
        book=book,
        folders=folders(book.files, today) if book else [],
        changed=changed,
        brief=brief,
        status=status,
        today=today,
    )


async def jot(request: Request) -> Response:
    """Remember a line, or add it to today's log."""
    given = await form(request)
    text = given.get("text", "").strip()
    if not text:
        return go(request, "/")
    try:
        if given.get("where") == "log":
            await ask(request, "log", entry=text)
            return go(request, "/", "logged")
        record = await ask(request, "remember", content=text)
    except QuaidError as error:
        return await show(request, text, failed(error), error.http_status)
    return go(request, "/", "remembered" if any(each.written for each in record.lines) else "known")


def routes() -> list[Route]:
    return [Route("/", show), Route("/jot", jot, methods=["POST"])]
