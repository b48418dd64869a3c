"""Web pages that a browser sends: the window of the bookmarklet, the API for clips, and the share target."""

import json
import re
from functools import cache
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from quaid.errors import InvalidArgument, QuaidError
from quaid.operations import ingest
from quaid.web import api
from quaid.web.auth import CLIP_PATH, request_host
from quaid.web.pages.base import (
    call_operation,
    error_flash,
    page_url,
    read_form,
    redirect,
    render_fragment,
    render_page,
    route,
    static_assets,
)

CLIP_FIELDS = ("source", "title", "content", "selection")
SHARE_FIELDS = ("title", "text", "url")
_ADDRESS = re.compile(r"https?://\S+")


@route("/clip", GET="public")
async def show_clip_window(_: Request) -> Response:
    """Show the window that the bookmarklet opens. Its script reads the page from the fragment."""
    return render_fragment("clip.html")


@route(CLIP_PATH, OPTIONS="public")
async def allow_clip(_: Request) -> Response:
    """Answer the question of a browser whether another site may send a clip. The headers are set for every answer."""
    return Response()


@route(CLIP_PATH, POST="write")
async def receive_clip(request: Request) -> Response:
    """Store a page: its address (`source`), `title`, HTML (`content`) and the selected text (`selection`)."""
    values = await api.json_body(request)
    for name, value in values.items():
        if name not in CLIP_FIELDS or not isinstance(value, str):
            problem = "must be a text" if name in CLIP_FIELDS else f"is unknown; use {', '.join(CLIP_FIELDS)}"
            raise InvalidArgument(name=name[:60], problem=problem)
    return api.record_response(await save_clip(request, **{"source": "", **values}))


async def save_clip(request: Request, **fields: str) -> Any:
    """Convert a clip in a child process, without holding up writes, and ingest it with the rights of the caller."""

    def convert(brain: Any) -> dict[str, Any]:
        return ingest.clip_arguments(brain, **fields)

    arguments = await api.run_for(request, "slow", convert, "clip")
    return await api.call_operation(request, "ingest-source", arguments, api.tool_scope(request))


def clip_address(request: Request) -> str:
    """Return the address of the window of the clipper.

    Pages of other sites see it. Therefore it is not the random name of the memory, but that of this machine.
    """
    state, host = request.app.state, request_host(request)
    own = state.sessions.hosts.get(host)
    is_random = own is None or host.rpartition(":")[0].endswith("localhost")
    return str(state.place.address if is_random else own.address)


def bookmarklet(address: str) -> str:
    """Return the code of the bookmarklet, encoded for a URL."""
    return quote(_bookmarklet_code().replace('"ADDRESS/', json.dumps(address)[:-1] + "/"))


@cache
def _bookmarklet_code() -> str:
    lines = static_assets()["bookmarklet.js"].data.decode().split("\n")
    return "".join(line.strip() for line in lines if not line.startswith("//"))


@route("/share", GET="write")
async def show_share(request: Request, error: QuaidError | None = None) -> Response:
    """Show what another app shared through the share sheet of a phone. Only the button of the form saves it."""
    sent = await read_form(request) if request.method == "POST" else dict(request.query_params)
    title, text, url = (sent.get(name, "").strip() for name in SHARE_FIELDS)
    if not url and (found := _ADDRESS.search(text)):  # Android passes the address in the text
        url = found[0]
        text = " ".join(text.replace(url, " ").split())
    return render_page(
        *(request, "share.html"),
        http=error.http_status if error else 200,
        flash=error_flash(error) if error else None,
        title=title,
        text=text,
        url=url,
    )


@route("/share", POST="write", on_error=show_share)
async def save_share(request: Request) -> Response:
    """Save what was shared: as it is, or the page at its address, which the owner lets Quaid fetch."""
    form = await read_form(request)
    title, text, url = (form.get(name, "").strip() for name in SHARE_FIELDS)
    if form.get("act") == "fetch":
        record = await call_operation(request, "ingest", file=ingest.web_address(url), type="article")
    elif url:
        record = await save_clip(request, source=url, title=title, selection=text)
    elif not text:
        raise InvalidArgument(name="text", problem="is empty; type what to save")
    else:
        record = await call_operation(
            request, "ingest-source", content=text, title=title or None, type="article"
        )
    slug = record.source_page
    message = "Saved." if record.written else "It was saved before; nothing changed."
    return redirect(request, page_url(slug) if slug else "/", message)
