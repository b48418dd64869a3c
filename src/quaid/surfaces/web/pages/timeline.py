"""The timeline: everything that is of a day, on all pages together, day by day, the newest first."""

from itertools import groupby
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.surfaces.web.pages import addresses, markdown
from quaid.surfaces.web.pages.asking import ask, lately, number, together
from quaid.surfaces.web.pages.rendering import page

AT_ONCE = 80
KINDS = (
    ("", "Everything"),
    ("entry", "Entries"),
    ("page", "Pages"),
    ("due", "Due"),
    ("link", "Links"),
    ("fact", "Facts"),
)
FILTERS = ("since", "until", "kind", "type", "wing", "collection", "text")


class Item(NamedTuple):
    kind: str
    state: str
    href: str
    title: str
    type: str
    text: Markup
    source: str


class Day(NamedTuple):
    day: str
    items: list[Item]


def by_day(dated: Any) -> list[Day]:
    return [Day(day, list(map(_item, group))) for day, group in groupby(dated, key=lambda each: each.day)]


def _item(each: Any) -> Item:
    part = "timeline" if each.kind == "entry" else ""
    text = Markup("{}").format(each.text) if each.kind in ("link", "fact") else markdown.line(each.text)
    return Item(
        *(each.kind, each.state, addresses.page(each.slug, part, each.line), each.title, each.type),
        *(text, each.source),
    )


def chosen(request: Request) -> dict[str, str]:
    given = {name: request.query_params.get(name, "").strip()[:100] for name in FILTERS}
    if given["kind"] not in {name for name, _ in KINDS}:
        given["kind"] = ""
    return given


async def show(request: Request) -> Response:
    filters = chosen(request)
    offset = number(request.query_params.get("offset", ""))
    given = {name: value for name, value in filters.items() if value}
    record, kinds = await together(
        ask(request, "days", limit=AT_ONCE, offset=offset, **given), lately(request, "wings")
    )
    older: dict[str, str | int] = {**filters, "offset": offset + AT_ONCE}
    return page(
        request,
        "timeline.html",
        days=by_day(record.dated),
        filters=filters,
        filtered=any(filters.values()),
        kinds=KINDS,
        older=addresses.with_values("/timeline", older) if record.more else "",
        newer=addresses.with_values("/timeline", {**filters, "offset": max(0, offset - AT_ONCE)})
        if offset
        else "",
        choices=kinds,
    )


def routes() -> list[Route]:
    return [Route("/timeline", show)]
