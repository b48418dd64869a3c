"""Search: notebook, daily log, pages and knowledge base, grouped, as one types or all at once.

Half a word is nobody's question: only what is asked with the whole page, and finds no good answer, is noted as a gap.
"""

import time
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.core import slug as slugs
from quaid.surfaces.web.pages import addresses
from quaid.surfaces.web.pages.asking import attempt, lately, may_write, together
from quaid.surfaces.web.pages.rendering import page, piece
from quaid.surfaces.web.pages.snippets import marked, pattern_of, snippet

LIMIT = 12
LONGEST = 2_000
FILTERS = ("collection", "type", "wing", "since", "until")
LANES = {
    "exact": "its name",
    "words": "words",
    "meaning": "meaning",
    "both": "words and meaning",
    "date": "date",
}


class Finding(NamedTuple):
    href: str
    title: Markup
    place: str
    snippet: Markup
    score: float
    lane: str
    reason: str
    type: str


class Group(NamedTuple):
    name: str
    findings: list[Finding]
    note: str


class Found(NamedTuple):
    groups: list[Group]
    strength: str
    notes: tuple[str, ...]
    total: int
    ms: int


def chosen(request: Request) -> dict[str, str]:
    """The filters of the address; what is no day is no filter."""
    given = {name: request.query_params.get(name, "").strip()[:100] for name in FILTERS}
    for name in ("since", "until"):
        if len(given[name]) != 10:
            given[name] = ""
    return given


async def look(request: Request, question: str, filters: dict[str, str]) -> Found:
    """What every part of the memory says to a question."""
    began = time.perf_counter()
    given = {name: value for name, value in filters.items() if value}
    asked = [attempt(request, "glance", text=question, limit=LIMIT, **given)]
    if not given:
        asked.append(attempt(request, "kb query", context=question, max_results=6))
    found, *others = await together(*asked)
    groups = []
    recalled = found.recalled if found else None
    if recalled:
        groups.append(Group("Notebook", [_of_file(each, question) for each in recalled.notebook], ""))
        groups.append(Group("Daily", [_of_file(each, question) for each in recalled.daily], ""))
    shown = [each for each in found.answer.results if not (recalled and _is_note(each))] if found else []
    groups.append(Group("Pages", [_of_page(each, question) for each in shown], "" if found else found.told))
    for nodes in filter(None, others):
        groups.append(
            Group("Knowledge base", [_of_node(each, question) for each in nodes.matches], nodes.note)
        )
    return Found(
        groups,
        found.answer.strength if found else "none",
        found.answer.notes if found else (),
        sum(len(each.findings) for each in groups),
        round((time.perf_counter() - began) * 1000),
    )


def _is_note(result: Any) -> bool:
    """Whether a page is a file of the notebook, which has its own groups."""
    return bool(result.collection == "notebook")


def _of_file(hit: Any, question: str) -> Finding:
    lines = f"{hit.start_line}–{hit.end_line}" if hit.end_line > hit.start_line else f"{hit.start_line}"
    return Finding(
        addresses.file(hit.path, hit.start_line),
        marked(hit.heading.lstrip("# ") or hit.path, pattern_of(question)),
        f"{hit.path}:{lines}",
        snippet(hit.snippet, question),
        hit.score,
        "",
        "",
        "note",
    )


def _of_page(result: Any, question: str) -> Finding:
    address = slugs.address(result.collection, result.slug)
    line = result.start_line if result.part == "timeline" or result.start_line > 1 else None
    return Finding(
        addresses.page(address, result.part, line),
        marked(result.title, pattern_of(question)),
        address + _heading(result),
        snippet(_without_heading(result.content) or result.summary, question),
        result.score,
        LANES.get(result.lane, result.lane),
        result.reason,
        result.type,
    )


def _heading(result: Any) -> str:
    """The headings above a passage, but for the page's own title."""
    names = [name.strip().lstrip("# ") for name in result.heading_path.split(" > ")]
    told = " › ".join(name for name in names if name and name != result.title)
    return f" · {told}" if told else ""


def _without_heading(text: str) -> str:
    """A passage without the heading that it begins with: it stands above."""
    first, _, rest = text.lstrip().partition("\n")
    return rest if first.startswith("#") and rest.strip() else text


def _of_node(match: Any, question: str) -> Finding:
    return Finding(
        addresses.node(match.id),
        marked(match.title, pattern_of(question)),
        match.path,
        snippet(match.summary, question),
        match.score,
        ", ".join(match.match),
        match.status,
        "node",
    )


async def show(request: Request) -> Response:
    question = request.query_params.get("q", "").strip()[:LONGEST]
    filters = chosen(request)
    choices = await lately(request, "wings")
    found = await look(request, question, filters) if question else None
    if found and found.strength != "strong" and not any(filters.values()) and may_write(request):
        await attempt(request, "gaps add", query_text=question, context="asked in the dashboard")
    return page(
        request,
        "search.html",
        question=question,
        found=found,
        filters=filters,
        filtered=any(filters.values()),
        choices=choices,
    )


async def as_typed(request: Request) -> Response:
    """The results alone, for a script to put in their place."""
    question = request.query_params.get("q", "").strip()[:LONGEST]
    found = await look(request, question, chosen(request)) if question else None
    return piece("results.html", found=found, question=question)


def routes() -> list[Route]:
    return [Route("/search", show), Route("/ui/search", as_typed)]
