"""The timeline: everything that is of a day, on all pages together, day by day, the newest first."""

from datetime import date
from itertools import groupby
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.surfaces.web.pages import addresses
from quaid.surfaces.web.pages.asking import attempt, days_of, lately, number, together
from quaid.surfaces.web.pages.naming import Names, named
from quaid.surfaces.web.pages.notebook import COLLECTION
from quaid.surfaces.web.pages.rendering import page, words
from quaid.surfaces.web.pages.snippets import cut, plain_text

AT_ONCE = 80
LONGEST = 400
"""Characters of an entry of the log that are shown."""
KINDS = (
    ("", "Everything"),
    ("entry", "Entries"),
    ("log", "Daily log"),
    ("page", "Pages"),
    ("due", "Due"),
    ("link", "Links"),
    ("fact", "Facts"),
)
FILTERS = ("kind", "type", "wing", "collection", "text")


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
    weekday: str
    items: list[Item]


def by_day(dated: Any, names: Names) -> list[Day]:
    groups = groupby(dated, key=lambda each: each.day)
    return [Day(day, _weekday(day), [_item(each, names) for each in group]) for day, group in groups]


def _weekday(day: str) -> str:
    """Monday, as it was; "" for a month."""
    try:
        return f"{date.fromisoformat(day):%A}"
    except ValueError:
        return ""


def _item(each: Any, names: Names) -> Item:
    if each.kind == "log":
        return _logged(each, names)
    text = each.text
    if each.kind == "link":
        relationship, _, other = text.partition(" ")
        text = f"{words(relationship)} {other}"
    part = "timeline" if each.kind == "entry" else ""
    return Item(
        *(each.kind, each.state, addresses.page(each.slug, part, each.line), each.title, each.type),
        *(names.linked(text), each.source),
    )


def _logged(each: Any, names: Names) -> Item:
    """What the daily log says: its heading leads to its line in the notebook."""
    heading, _, body = each.text.partition("\n")
    title = names.worded(plain_text(heading)) or each.title
    collection, _, path = each.slug.rpartition("::")
    href = addresses.page(each.slug)
    if collection == COLLECTION:
        href = addresses.file(f"{path}.md", each.line)
    text = names.linked(cut(" ".join(body.split()), LONGEST))
    return Item("log", "", href, title, each.type, text, each.source)


def chosen(request: Request) -> tuple[dict[str, str], dict[str, str]]:
    """The filters of the address, and what is to be said of days that are none."""
    given = {name: request.query_params.get(name, "").strip()[:100] for name in FILTERS}
    if given["kind"] not in {name for name, _ in KINDS}:
        given["kind"] = ""
    days, wrong = days_of(request, "since", "until")
    return {**given, **days}, wrong


async def show(request: Request) -> Response:
    filters, wrong = chosen(request)
    offset = number(request.query_params.get("offset", ""))
    given = {name: value for name, value in filters.items() if value}
    record, kinds = await together(
        attempt(request, "days", limit=AT_ONCE, offset=offset, **given), lately(request, "wings")
    )
    dated = record.dated if record else ()
    names = await named(request, (each.text for each in dated))
    older: dict[str, str | int] = {**filters, "offset": offset + AT_ONCE}
    return page(
        request,
        "timeline.html",
        trouble=None if record else record,
        days=by_day(dated, names),
        filters=filters,
        wrong=wrong,
        filtered=any((*filters.values(), *wrong.values())),
        narrowed=any(value for name, value in (*filters.items(), *wrong.items()) if name != "kind"),
        kinds=KINDS,
        older=addresses.with_values("/timeline", older) if record and record.more else "",
        newer=addresses.with_values("/timeline", {**filters, "offset": max(0, offset - AT_ONCE)})
        if offset
        else "",
        choices=kinds,
    )


def routes() -> list[Route]:
    return [Route("/timeline", show)]
