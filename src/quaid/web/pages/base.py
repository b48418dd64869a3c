"""Helpers for all pages: routes, operations, forms, templates, flash messages, static files, URLs and links."""

import asyncio
import gzip
import json
import posixpath
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from functools import cache, wraps
from hashlib import sha256
from os import listdir
from os.path import dirname, join
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast
from urllib.parse import parse_qsl, quote, unquote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from quaid.errors import QuaidError
from quaid.model import dates, slug as slugs
from quaid.model.links import ID_PREFIX, OR_FROM_ROOT, target_key
from quaid.model.plain_text import count_noun
from quaid.operations import service
from quaid.operations.registry import Scope
from quaid.web import api
from quaid.web.auth import NOT_LOGGED_IN, ScopedRoute, local_path, request_host

if TYPE_CHECKING:
    from quaid.operations.pages import PageRecord


MAX_FIELDS = 100
OPERATION_CACHE_SECONDS = 5.0


PageHandler = TypeVar("PageHandler", bound=Callable[[Request], Awaitable[Response]])
ErrorHandler = Callable[[Request, QuaidError], Awaitable[Response]]
Result = TypeVar("Result")

PAGE_ROUTES: list[ScopedRoute] = []


def route(
    path: str, *, on_error: ErrorHandler | None = None, **scopes: str
) -> Callable[[PageHandler], PageHandler]:
    """Register a page handler with the scope that each method needs, as in `@route("/notebook", GET="read")`.

    If the handler raises a QuaidError, `on_error` returns the response, for example the form with the error.
    """

    def register(handler: PageHandler) -> PageHandler:
        @wraps(handler)
        async def respond(request: Request) -> Response:
            try:
                return await handler(request)
            except QuaidError as error:
                if on_error is None:
                    raise
                return await on_error(request, error)

        PAGE_ROUTES.append(ScopedRoute(path, respond, **scopes))
        return handler

    return register


class OperationFailure(NamedTuple):
    """The error of an operation whose result is one part of a page.

    An OperationFailure is falsy; a record is not.
    """

    message: str
    code: str

    def __bool__(self) -> bool:
        return False


def request_scope(request: Request) -> Scope:
    """Return the caller's scope, which the auth middleware has set."""
    return cast(Scope, getattr(request.state, "scope", "read"))


def may_write(request: Request) -> bool:
    return request_scope(request) in ("write", "owner")


async def call_operation(request: Request, command: str, /, **arguments: Any) -> Any:
    """Run an operation and return its record. Arguments that are None are omitted; `from_` is passed as `from`."""
    present = {key.rstrip("_"): value for key, value in arguments.items() if value is not None}
    # A submitted form takes effect even if its page is closed before the answer.
    stays = request.method == "POST"
    return await api.call_operation(request, command, present, request_scope(request), stays=stays)


async def try_operation(request: Request, command: str, /, **arguments: Any) -> Any:
    """Run an operation for one part of a page.

    Return an OperationFailure if the operation fails, so that the rest of the page is shown.
    """
    try:
        return await call_operation(request, command, **arguments)
    except QuaidError as error:
        return OperationFailure(str(error), error.code)


async def cached_operation(request: Request, command: str, /, **arguments: Any) -> Any:
    """Run an operation as `try_operation` does, but cache its result.

    The cached result is used for OPERATION_CACHE_SECONDS or until a form is submitted; failures are not cached.
    This is for figures about the whole memory, which are expensive to compute.
    """
    cached = request.app.state.operation_cache
    key = (f"{command} {arguments}", request_scope(request))
    at, record = cached.get(key, (0.0, None))
    if not record or time.monotonic() - at > OPERATION_CACHE_SECONDS:
        record = await try_operation(request, command, **arguments)
        cached[key] = (time.monotonic(), record)
    return record


async def render_in_turn(request: Request, work: Callable[[], Result]) -> Result:
    """Run a function that renders text on a worker thread, because rendering may take 100 ms."""
    return cast(Result, await request.app.state.workers.run("read", lambda _: work(), "render"))


class Form(dict[str, str]):
    """The fields of a submitted form or of a query string. A field that was not sent is an empty string."""

    def __missing__(self, name: str) -> str:
        return ""


async def read_form(request: Request) -> Form:
    """Return the fields of a submitted form, with CR LF converted to LF. Clear the operation cache.

    The form is empty unless the request is a POST.
    """
    if request.method != "POST":
        return Form()
    request.app.state.operation_cache.clear()
    body = await request.body()
    return _parse_form(body) if len(body) < api.LARGE_BODY else await asyncio.to_thread(_parse_form, body)


def _parse_form(body: bytes) -> Form:
    fields = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    return Form((name, value.replace("\r\n", "\n")) for name, value in fields)


def read_days(request: Request, *names: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the dates in these query parameters, and an error message for each parameter that is not a date."""
    texts = {name: request.query_params.get(name, "").strip()[:100] for name in names}
    wrong = {name: text for name, text in texts.items() if text and not dates.is_date(text)}
    problems = {name: f"“{text}” is not a date. Write it as 2026-04-25." for name, text in wrong.items()}
    return {name: "" if name in wrong else text for name, text in texts.items()}, problems


def parse_number(text: str, otherwise: int = 0) -> int:
    """Return the number in `text`, or `otherwise` unless `text` consists of 1 to 15 digits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else otherwise


WEB_FOLDER = dirname(dirname(__file__))
STATIC_FOLDER = join(WEB_FOLDER, "static")
STATIC_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "png": "image/png",
    "svg": "image/svg+xml",
    "webmanifest": "application/manifest+json",
}

FAVICON = "mark.svg"


class StaticAsset(NamedTuple):
    data: bytes
    packed: bytes
    type: str
    digest: str


@cache
def static_assets() -> dict[str, StaticAsset]:
    assets = {}
    for name in sorted(listdir(STATIC_FOLDER)):
        kind = name.rpartition(".")[2]
        if kind in STATIC_TYPES:
            with open(join(STATIC_FOLDER, name), "rb") as file:
                data = file.read()
            digest = sha256(data).hexdigest()[:12]
            assets[name] = StaticAsset(data, gzip.compress(data, mtime=0), STATIC_TYPES[kind], digest)
    return assets


def asset_url(name: str) -> str:
    """Return the URL of a static file.

    It contains a digest of the content, so that the file can be cached forever.
    """
    return f"/static/{name}?v={static_assets()[name].digest}"


@route("/static/{name}", GET="public")
@route("/favicon.ico", GET="public")
async def send_static(request: Request) -> Response:
    asset = static_assets().get(request.path_params.get("name", FAVICON))
    if asset is None:
        return Response("File not found.", 404, media_type="text/plain")
    fresh = request.query_params.get("v") == asset.digest
    headers = {
        "Cache-Control": "public, max-age=31536000, immutable" if fresh else "no-cache",
        "ETag": f'"{asset.digest}"',
        "Vary": "Accept-Encoding",
    }
    if request.headers.get("if-none-match") == f'"{asset.digest}"':
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(asset.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=asset.type)
    return Response(asset.data, headers=headers, media_type=asset.type)


OFFLINE_FILES = ("app.css", "theme.js", "offline.js", "mark.svg")
"""The static files of the page that the service worker shows if the server does not answer."""


@route("/offline", GET="public")
async def show_offline(_: Request) -> Response:
    return _html(render_template("offline.html"))


@route("/service-worker.js", GET="public")
async def send_service_worker(_: Request) -> Response:
    """Return the service worker. It contains a digest of all static files; a new digest replaces its cache."""
    assets = static_assets()
    page = render_template("offline.html")
    release = sha256("".join([page, *(asset.digest for asset in assets.values())]).encode()).hexdigest()[:12]
    files = json.dumps([*map(asset_url, OFFLINE_FILES)])
    text = (
        f'const RELEASE = "{release}";\nconst FILES = {files};\n' + assets["service-worker.js"].data.decode()
    )
    return Response(text, headers={"Cache-Control": "no-cache"}, media_type=STATIC_TYPES["js"])


NAVIGATION = (
    ("/", "Today", "today"),
    ("/search", "Search", "search"),
    ("/notebook", "Notebook", "book"),
    ("/kb", "Knowledge base", "shelf"),
    ("/graph", "Graph", "graph"),
    ("/timeline", "Timeline", "time"),
    ("/agents", "Agents", "robot"),
    ("/review", "Review", "check"),
    ("/settings", "Settings", "gear"),
)
"""URL, name and icon of each section."""

PHONE_TABS = ("/", "/search", "/notebook", "/review")
"""The sections in the tab bar of a phone. The others are in its "More" menu."""

ERROR_HEADINGS: dict[str | int, str] = {
    "version_conflict": "Changed in the meantime",
    "file_changed": "Changed in the meantime",
    "page_moved": "Page moved",
    401: "Log in",
    403: "Not allowed",
    404: "Not found",
    409: "Not possible here",
    413: "Too long",
}
"""Headings of error pages, by error code or HTTP status."""

BROWSER_REMEDIES = {
    "folder_not_empty": "Choose a new folder.",
    "only_here": "Export it first.",
    "too_large": "Nothing was saved. Go back with the browser's button: the form may still contain your text.",
}
"""Remedies that are shown in the browser, by error code, in place of sentences that name a command."""

SAVE_HEADER = "x-quaid-save"
"""Sent by the script that saves forms: "stay" if the page stays open, else "leave"."""
NOT_SAVED = (
    "Nothing was saved, because you are logged out. Log in, then go back with the browser's button:"
    " the form may still contain your text."
)

MAX_FLASHES = 100
"""At most this many flash messages are kept, one for each browser session."""


class FlashMessage(NamedTuple):
    """The result of a form, shown on the next page, with links (URL and label) to follow-up actions."""

    text: str
    links: tuple[tuple[str, str], ...] = ()
    succeeded: bool = True
    undo: tuple[str, Mapping[str, str | int]] | None = None
    """URL and fields of a form that undoes the action, or None."""


@cache
def template_environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(join(WEB_FOLDER, "templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(
        day=format_day,
        weekday=lambda day: f"{date.fromisoformat(day):%A}",
        ago=format_ago,
        typed=format_commands,
        size=format_size,
        words=humanize,
        humanized=humanize_sentence,
        named=title_from_address,
        number=lambda value: f"{value:,}",
    )
    environment.globals.update(
        page_url=page_url,
        edit_url=edit_url,
        file_url=file_url,
        node_url=node_url,
        graph_url=graph_url,
        search_url=search_url,
        with_values=with_query,
        asset=asset_url,
        navigation=NAVIGATION,
        tabs=PHONE_TABS,
        plural=count_noun,
    )
    return environment


def render_template(template: str, **values: Any) -> str:
    """Render a template to a string, for a part of a page."""
    return template_environment().get_template(template).render(**values)


def render_page(
    request: Request, template: str, *, http: int = 200, error: QuaidError | None = None, **values: Any
) -> Response:
    """Render a whole page, with the error of its form, or with the pending flash message if there is one."""
    path, scope = request.url.path, request_scope(request)
    here = max((link for link, _, _ in NAVIGATION if path == link or path.startswith(f"{link}/")), default="")
    flash = values.pop("flash", None)
    if error:
        http, flash = error.http_status, FlashMessage(browser_message(error), succeeded=False)
    flash = flash or request.app.state.flashes.pop(request.state.session, None)
    shared = {
        "here": here,
        "csrf": request.state.csrf,
        "may_write": may_write(request),
        "is_owner": scope == "owner",
        "question": "",
        "memory": service.memory_fingerprint(request.app.state.settings),
    }
    return _html(render_template(template, **{**shared, **values, "flash": flash}), http)


def _html(text: str, status: int = 200) -> Response:
    return HTMLResponse(text, status, headers={"Cache-Control": "no-store"})


def render_fragment(template: str, **values: Any) -> Response:
    """Return a part of a page as a response, for a script to insert."""
    return _html(render_template(template, **values))


def redirect(
    request: Request,
    address: str,
    message: str = "",
    *links: tuple[str, str],
    succeeded: bool = True,
    undo: tuple[str, Mapping[str, str | int]] | None = None,
    **saved: Any,
) -> Response:
    """Redirect after a form, so that reloading does not submit it again. The next page shows the message.

    The message is kept on the server for this browser session, so it never appears in a URL. A form that was sent by
    `drafts.js` gets JSON instead: the address to open, or, if the page stays open, the message and the values of
    `saved`, such as the new version.
    """
    sent_by_script = request.headers.get(SAVE_HEADER, "")
    if sent_by_script == "stay" and saved:
        return JSONResponse({"location": address, "message": message, **saved})
    flashes = request.app.state.flashes
    if message and request.state.session:
        while len(flashes) >= MAX_FLASHES:
            flashes.pop(next(iter(flashes)))
        flashes[request.state.session] = FlashMessage(message, links, succeeded, undo)
    return JSONResponse({"location": address}) if sent_by_script else RedirectResponse(address, 303)


def stays_open(request: Request) -> bool:
    """Return True if the editor that sent the form stays open."""
    return request.headers.get(SAVE_HEADER) == "stay"


def saved_values(version: int | str, text: str, *, is_same: bool) -> dict[str, Any]:
    """Return the new version for an editor that stays open, and the stored text if it differs from the sent one."""
    return {"version": version, "base": text, "text": None if is_same else text}


def error_page(request: Request, error: Exception) -> Response:
    """Return the HTML page for an error, with its message and remedy."""
    status, code, message, missing = 500, "internal", "An internal error occurred. Nothing was changed.", ""
    if isinstance(error, QuaidError):
        status, code, message = error.http_status, error.code, browser_message(error)
        missing = str(error.facts.get("slug", "")) if code == "page_not_found" else ""
    values: dict[str, Any] = {
        "heading": ERROR_HEADINGS.get(code) or ERROR_HEADINGS.get(status, "That did not work"),
        "message": message,
        "code": code,
        "status_code": status,
    }
    # If the user is not logged in, show a page without navigation.
    if not getattr(request.state, "scope", ""):
        here = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
        is_form = request.method not in ("GET", "HEAD")
        if status == 401 and NOT_LOGGED_IN in message:  # the login page has instructions
            values["message"] = NOT_SAVED if is_form else ""
        target = "/" if is_form else local_path(here)
        return login_page(request, status=status, target=target, **{**values, "is_login": status == 401})
    return render_page(request, "error.html", http=status, missing=missing, back=back_link(request), **values)


def login_page(request: Request, *, status: int = 200, **values: Any) -> Response:
    """Return the login page: a notice, a button that redeems the code `grant`, or a refresh to `forward`.

    `target` is the path to open after the login. `hint` is shown instead of the refresh, with a link to `forward`.
    """
    lan = request.app.state.sessions.lan
    texts = {**dict.fromkeys(("heading", "message", "grant", "hint", "forward"), ""), "target": "/"}
    flags = {"is_login": True, "code_only": False}
    flags["is_phone"] = bool(lan and request_host(request) in lan.hosts)
    return _html(render_template("login.html", **{"status_code": 0, **texts, **flags, **values}), status)


def consent_page(request: Request, *, status: int = 200, **values: Any) -> Response:
    """Return the page on which the owner allows or denies a program access, or the page that then redirects."""
    defaults: dict[str, Any] = {"forward": "", "again": False, "problem": "", "error": "", "client": None}
    shared = {"csrf": getattr(request.state, "csrf", "")}
    return _html(render_template("consent.html", **{**defaults, **shared, **values}), status)


def back_link(request: Request) -> tuple[str, str] | None:
    """Return the URL and label of the link back from an error page, or None.

    The link leads to the page of the failed form, or to the section without the query that failed.
    """
    path, is_form = request.url.path, request.method not in ("GET", "HEAD")
    if is_form and path.startswith("/page/") and path.endswith("/edit"):
        return path, "Open the saved text"
    for link, name, _ in NAVIGATION[1:]:
        if path.startswith(f"{link}/") or (path == link and (is_form or request.url.query)):
            return link, f"Back to {name}"
    return None


_SENTENCE_END = re.compile(r"(?<=[.!?]) +(?=[A-Z`])")
_COMMAND = re.compile(r"`quaid |(?:^|\s)--[a-z]")


def browser_message(error: QuaidError) -> str:
    """Return an error's message without the sentences that name a command, unless nothing else is left.

    The message of a server error, or of a refused login, is returned unchanged.
    """
    text = str(error)
    if error.http_status >= 500 or error.http_status == 401:
        return text
    sentences = [part for part in _SENTENCE_END.split(text) if not _COMMAND.search(part)]
    return " ".join(filter(None, [*sentences, BROWSER_REMEDIES.get(error.code, "")])) or text


def format_commands(text: str) -> Markup:
    """Return a sentence as HTML, with `commands` in backticks as <code>."""
    parts = [
        Markup("<code>{}</code>").format(part) if at % 2 else escape(part)
        for at, part in enumerate(text.split("`"))
    ]
    return Markup().join(parts)


def format_day(text: str | None) -> str:
    """Return an ISO date as "25 April 2026", "" for None, and text that is not a date unchanged."""
    if not text:
        return ""
    try:
        day = date.fromisoformat(text[:10])
    except ValueError:
        return text
    return f"{day.day} {day:%B %Y}"


def format_ago(text: str | None, now: float | None = None) -> str:
    """Return roughly how long ago a timestamp was, such as "3 hours ago".

    Return the date if the timestamp is more than 30 days old or in the future, and "never" if there is no
    timestamp.
    """
    if not text:
        return "never"
    try:
        then = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return text
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    seconds = (time.time() if now is None else now) - then.timestamp()
    if seconds < 0:
        return format_day(text)
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        passed = int(seconds // length)
        if unit == "day" and passed > 30:
            return format_day(text)
        if passed:
            return f"{count_noun(passed, unit)} ago"
    return "just now"


def format_size(number: int) -> str:
    for unit, length in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if number >= length:
            return f"{number / length:.1f} {unit}"
    return count_noun(number, "byte")


def humanize(name: str) -> str:
    """Replace underscores and hyphens by spaces: "works_at" becomes "works at"."""
    return name.replace("_", " ").replace("-", " ")


_SLUG = re.compile(rf"(?<![\w/.:])[{slugs.CHARACTERS}]+(?:/[{slugs.CHARACTERS}]+)+(?![\w/])")
_NAME = re.compile(r"(?<![\w/])[a-z]+(?:_[a-z]+)+(?![\w/])")


def humanize_sentence(text: str, titles: Mapping[str, str] | None = None) -> str:
    """Replace slugs by page titles, and names such as "works_at" by words, in a generated sentence."""
    titled = _SLUG.sub(lambda slug: (titles or {}).get(slug[0]) or title_from_address(slug[0]), text)
    return _NAME.sub(lambda name: humanize(name[0]), titled)


def title_from_address(address: str) -> str:
    """Return a title derived from a page's address, for a page whose title is not known."""
    last = address.rpartition("/")[2].rpartition("::")[2].replace("-", " ").replace("_", " ")
    return last[:1].upper() + last[1:]


UNQUOTED_CHARACTERS = "/:@!$'()*,~"
"""Characters that are not percent-encoded in a path, so that `notes::people/alice` stays readable."""


def page_url(address: str, part: str = "", line: int | None = None) -> str:
    """Return the URL of a page, or of a line in it.

    If `part` is "timeline", lines are counted from the start of the timeline.
    """
    path = f"/page/{quote(address, safe=UNQUOTED_CHARACTERS)}"
    view = {"view": "1"} if address.endswith("/edit") else {}
    if not line:
        return path + (f"?{urlencode(view)}" if view else "")
    mark = "T" if part == "timeline" else "L"
    return f"{path}?{urlencode({**view, 'at': f'{mark}{line}'})}#{mark}{line}"


def edit_url(address: str) -> str:
    return f"/page/{quote(address, safe=UNQUOTED_CHARACTERS)}/edit"


def file_url(path: str, line: int | None = None) -> str:
    """Return the URL of a notebook file, or of a line in it."""
    url = f"/notebook/{quote(path, safe=UNQUOTED_CHARACTERS)}"
    return f"{url}?at=L{line}#L{line}" if line else url


def node_url(id: str) -> str:
    """Return the URL of a node of the knowledge base."""
    return f"/kb/{quote(id, safe='')}"


def search_url(text: str) -> str:
    """Return the URL of a search for a tag or an unresolved link.

    `link=1` keeps the search from being recorded as a gap (an unanswered question).
    """
    return "/search?" + urlencode({"q": text, "link": 1})


def graph_url(address: str) -> str:
    return "/graph?" + urlencode({"slug": address})


def with_query(path: str, values: dict[str, str | int]) -> str:
    """Return a path with a query string; empty and zero values are omitted."""
    present = {name: value for name, value in values.items() if value not in ("", 0)}
    return path + (f"?{urlencode(present)}" if present else "")


class LinkTarget(NamedTuple):
    """The target of a link."""

    href: str
    title: str = ""
    """Title of the target page; empty if not known."""


LinkResolver = Callable[[str], LinkTarget | None]
"""Maps the name in a link to its target, or to None if it cannot be resolved."""


def slug_words(name: str) -> str:
    """Return the words in a name that belongs to no page, for example "alice berg" for `people/alice-berg`.

    In a name with spaces, hyphens and underscores are kept.
    """
    last = name.strip().rstrip("/").rpartition("/")[2]
    return last if " " in name.strip() else last.replace("-", " ").replace("_", " ").strip() or name


FILE_PREFIX = "file:"
"""Prefix of a path that is relative to the page's folder."""


def resolve_nothing(_: str) -> None:
    """Return None for every name: a LinkResolver that resolves no links."""


def resolver_of_page(
    record: "PageRecord", links: Iterable[Any], titles: Mapping[str, str] = {}
) -> LinkResolver:
    """Return a resolver for the links in this page's text, based on its stored links."""
    targets: dict[str, LinkTarget] = {}
    for link in links:
        if link.resolved:
            address = slugs.address(link.to_collection, link.to_slug)
            target = LinkTarget(page_url(address), titles.get(address, ""))
            for name in link.as_written:
                targets.setdefault(target_key(name.replace(OR_FROM_ROOT, "/")), target)

    def resolve(name: str) -> LinkTarget | None:
        if name.startswith(ID_PREFIX):
            return targets.get(target_key(ID_PREFIX + name[len(ID_PREFIX) :].partition("::")[0].strip()))
        if name.startswith((FILE_PREFIX, "./", "../")):
            path = unquote(name.removeprefix(FILE_PREFIX).partition("#")[0].partition("::")[0])
            place = path if path.startswith("/") else f"{posixpath.dirname(record.slug)}/{path}"
            return targets.get(target_key("/" + slugs.from_path(posixpath.normpath(place).lstrip("/"))))
        return targets.get(target_key(name.removesuffix(".md").removesuffix(".org")))

    return resolve
