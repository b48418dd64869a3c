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
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from quaid.errors import QuaidError
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
    "resolved": "Settled.",
    "checked": "Looked through the whole memory.",
    "approved": "Approved.",
    "closed": "Closed.",
    "restored": "The page and its file are back.",
    "exported": "Written out.",
    "discarded": "Gone for good.",
    "merged": "Merged. The old address leads to the page that stayed.",
    "apart": "Both pages stay, and are not compared again.",
    "revoked": "The token is revoked.",
    "chosen": "The model is chosen.",
    "off": "Semantic search is off. The vectors stay.",
    "synced": "In step with the folder.",
    "rebuilt": "The index is up to date.",
}
"""What was done, by a word in the address: no text out of an address is ever shown."""

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
        day=day, ago=ago, size=size, words=words, told=told, named=title_of, number=lambda value: f"{value:,}"
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
        plural=plural,
    )
    return made


def fill(template: str, **values: Any) -> str:
    """A template with its values, as text: for a piece of a page."""
    return environment().get_template(template).render(**values)


def page(request: Request, template: str, *, http: int = 200, **values: Any) -> Response:
    """A whole page."""
    path = request.url.path
    here = max((link for link, _, _ in NAVIGATION if path == link or path.startswith(f"{link}/")), default="")
    told = _told(request)
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
    kept = getattr(request.app.state, "told", {}).pop(getattr(request.state, "session", ""), None)
    if kept is None and (text := DONE.get(request.query_params.get("done", ""))):
        kept = Told(text)
    found: Told | None = kept
    return found


def piece(template: str, **values: Any) -> Response:
    """A piece of a page, for a script to put in its place."""
    return HTMLResponse(fill(template, **values), headers={"Cache-Control": "no-store"})


def go(address: str, done: str = "") -> Response:
    """Lead on after a form, so that loading again sends nothing twice."""
    if done:
        path, mark, place = address.partition("#")
        address = f"{path}{'&' if '?' in path else '?'}done={done}{mark}{place}"
    return RedirectResponse(address, 303)


def error_page(request: Request, error: Exception) -> Response:
    """What went wrong, and what helps."""
    status = error.http_status if isinstance(error, QuaidError) else 500
    told = (
        str(error) if isinstance(error, QuaidError) else "Something went wrong in here; nothing was changed."
    )
    code = error.code if isinstance(error, QuaidError) else "internal"
    missing = (
        str(error.facts.get("slug", "")) if isinstance(error, QuaidError) and code == "page_not_found" else ""
    )
    return page(
        request, "error.html", http=status, told_error=told, code=code, status_code=status, missing=missing
    )


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
        count = int(seconds // length)
        if unit == "day" and count > 30:
            return day(text)
        if count:
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    return "just now"


def size(count: int) -> str:
    for unit, length in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= length:
            return f"{count / length:.1f} {unit}"
    return f"{count} bytes"


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


def plural(count: int, noun: str, several: str = "") -> str:
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"
