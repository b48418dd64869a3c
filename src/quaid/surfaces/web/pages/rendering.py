"""Templates: found, filled, sent. Every value is escaped; what is HTML already comes from markdown.py alone.

Knows how times, sizes and names are put into words. Knows no operation.
"""

import re
import time
from collections.abc import Mapping
from datetime import UTC, date, datetime
from functools import cache
from os.path import dirname, join
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from quaid.errors import QuaidError
from quaid.model.plain_text import count_noun
from quaid.surfaces.web.pages import addresses, static
from quaid.surfaces.web.pages.asking import scope_of

HERE = dirname(dirname(__file__))

NAVIGATION = (
    ("/", "Home", "home"),
    ("/search", "Search", "search"),
    ("/notebook", "Notebook", "book"),
    ("/timeline", "Timeline", "time"),
    ("/graph", "Graph", "graph"),
    ("/review", "Review", "check"),
    ("/settings", "Settings", "gear"),
)

DONE = {
    "saved": "Saved.",
    "same": "Nothing had changed, so nothing was written.",
    "reverted": "The earlier version is back, as a new one.",
    "remembered": "Remembered.",
    "known": "The notebook says so already.",
    "logged": "Added to today's log.",
    "off": "Semantic search is off. The vectors stay.",
}
"""What was done, where there is no more to say of it."""

HEADINGS: dict[str | int, str] = {
    "version_conflict": "Somebody was faster",
    "file_changed": "Somebody was faster",
    "page_moved": "It is somewhere else now",
    401: "Log in",
    403: "Not allowed",
    404: "Not found",
    409: "That cannot be done here",
    413: "That is too long",
}
"""What an error page says first, by code, else by status."""

INSTEAD = {
    "folder_not_empty": "Choose a new folder.",
    "only_here": "Export it first.",
    "too_large": "Nothing was saved. Go back with the browser's own button: the form may still hold what you typed.",
}
"""What helps in a browser, where the message says what helps on a command line."""

MOST_TOLD = 100
"""Messages that wait for the next page of a browser."""


class Told(NamedTuple):
    """What a form did, for the page that comes next: in our words, with what a person may do about it."""

    text: str
    steps: tuple[tuple[str, str], ...] = ()
    """Addresses, each with what it is called."""
    went_well: bool = True


@cache
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(join(HERE, "templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        day=day,
        ago=ago,
        typed=typed,
        size=size,
        words=words,
        told=told,
        named=title_of,
        number=lambda value: f"{value:,}",
    )
    made.globals.update(
        page_url=addresses.page,
        edit_url=addresses.edit,
        file_url=addresses.file,
        node_url=addresses.node,
        graph_url=addresses.graph,
        search_url=addresses.search,
        with_values=addresses.with_values,
        asset=static.asset,
        navigation=NAVIGATION,
        plural=count_noun,
    )
    return made


def fill(template: str, **values: Any) -> str:
    """A template with its values, as text: for a piece of a page."""
    return environment().get_template(template).render(**values)


def page(request: Request, template: str, *, http: int = 200, **values: Any) -> Response:
    """A whole page."""
    path = request.url.path
    told: Told | None = values.pop("told", None) or _told(request)
    here = max((link for link, _, _ in NAVIGATION if path == link or path.startswith(f"{link}/")), default="")
    text = fill(
        template,
        here=values.pop("here", here),
        csrf=getattr(request.state, "csrf", ""),
        may_write=scope_of(request) in ("write", "owner"),
        is_owner=scope_of(request) == "owner",
        told=told,
        question=values.pop("question", ""),
        **values,
    )
    return HTMLResponse(text, http, headers={"Cache-Control": "no-store"})


def tell(request: Request, text: str, *steps: tuple[str, str], went_well: bool = True) -> None:
    """Keep what a form did until this browser asks for its next page. It is never in an address."""
    state = request.app.state
    if not hasattr(state, "told"):
        state.told = {}
    if session := getattr(request.state, "session", ""):
        while len(state.told) >= MOST_TOLD:
            state.told.pop(next(iter(state.told)))
        state.told[session] = Told(text, steps, went_well)


def _told(request: Request) -> Told | None:
    kept = getattr(request.app.state, "told", {})
    found: Told | None = kept.pop(getattr(request.state, "session", ""), None)
    return found


def failed(error: QuaidError) -> Told:
    """Why a form did nothing, for the page that shows it again."""
    return Told(plainly(error), went_well=False)


def piece(template: str, **values: Any) -> Response:
    """A piece of a page, for a script to put in its place."""
    return HTMLResponse(fill(template, **values), headers={"Cache-Control": "no-store"})


def go(request: Request, address: str, done: str = "") -> Response:
    """Lead on after a form, so that loading again sends nothing twice. What was done is told there, once."""
    if done:
        tell(request, DONE[done])
    return RedirectResponse(address, 303)


def error_page(request: Request, error: Exception) -> Response:
    """What went wrong, and what helps."""
    status, code, told, missing = 500, "internal", "Something went wrong in here; nothing was changed.", ""
    if isinstance(error, QuaidError):
        status, code, told = error.http_status, error.code, plainly(error)
        missing = str(error.facts.get("slug", "")) if code == "page_not_found" else ""
    values: dict[str, Any] = {
        "heading": HEADINGS.get(code) or HEADINGS.get(status, "That did not work"),
        "told_error": told,
        "code": code,
        "status_code": status,
    }
    if not getattr(request.state, "scope", ""):  # nobody who might go anywhere else from here
        return HTMLResponse(fill("login.html", **values), status, headers={"Cache-Control": "no-store"})
    return page(request, "error.html", http=status, missing=missing, back=way_back(request), **values)


def way_back(request: Request) -> tuple[str, str] | None:
    """Where a form stands that failed, or the whole of what an address asked for a part of; and what it is called."""
    path, is_form = request.url.path, request.method not in ("GET", "HEAD")
    if is_form and path.startswith("/page/") and path.endswith("/edit"):
        return path, "Open the text as it is kept"
    for link, name, _ in NAVIGATION[1:]:
        if path.startswith(f"{link}/") or (path == link and (is_form or request.url.query)):
            return link, f"Back to {name}"
    return None


_END = re.compile(r"(?<=[.!?]) +(?=[A-Z`])")
_COMMAND = re.compile(r"`quaid |(?:^|\s)--[a-z]")


def plainly(error: QuaidError) -> str:
    """What went wrong, without what helps on a command line only. Where nothing else helps, that stays."""
    text = str(error)
    if error.http_status >= 500 or error.http_status == 401:
        return text
    kept = [each for each in _END.split(text) if not _COMMAND.search(each)]
    return " ".join(filter(None, [*kept, INSTEAD.get(error.code, "")])) or text


def typed(text: str) -> Markup:
    """A sentence whose `commands` stand out as what one types."""
    parts = [
        Markup("<code>{}</code>").format(each) if at % 2 else escape(each)
        for at, each in enumerate(text.split("`"))
    ]
    return Markup().join(parts)


def day(text: str | None) -> str:
    """2026-04-25 as people say it; what is no day stays as it is."""
    if not text:
        return ""
    try:
        found = date.fromisoformat(text[:10])
    except ValueError:
        return text
    return f"{found.day} {found:%B %Y}"


def ago(text: str | None, now: float | None = None) -> str:
    """How long ago a moment was, roughly."""
    if not text:
        return "never"
    try:
        then = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return text
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    seconds = (time.time() if now is None else now) - then.timestamp()
    if seconds < 0:
        return day(text)
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        passed = int(seconds // length)
        if unit == "day" and passed > 30:
            return day(text)
        if passed:
            return f"{count_noun(passed, unit)} ago"
    return "just now"


def size(number: int) -> str:
    for unit, length in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if number >= length:
            return f"{number / length:.1f} {unit}"
    return count_noun(number, "byte")


def words(name: str) -> str:
    """works_at as words."""
    return name.replace("_", " ").replace("-", " ")


_SLUG = re.compile(r"(?<![\w/.:])[a-z0-9_-]+(?:/[a-z0-9_-]+)+(?![\w/])")
_NAME = re.compile(r"(?<![\w/])[a-z]+(?:_[a-z]+)+(?![\w/])")


def told(text: str, titles: Mapping[str, str] | None = None) -> str:
    """A sentence of ours as people read it: slugs by the titles of their pages, works_at as words."""
    known = titles or {}

    def name(found: re.Match[str]) -> str:
        return known.get(found[0]) or title_of(found[0])

    return _NAME.sub(lambda found: words(found[0]), _SLUG.sub(name, text))


def title_of(address: str) -> str:
    """What a page may be called, by its address alone."""
    last = address.rpartition("/")[2].rpartition("::")[2].replace("-", " ").replace("_", " ")
    return last[:1].upper() + last[1:]
