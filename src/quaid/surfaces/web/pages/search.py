"""Search: notebook, daily log, pages and knowledge base, grouped, as one types or all at once.

Half a word is nobody's question: only what is asked with the whole page, and finds no good answer, is noted as a gap.
"""

import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.core import slug as slugs, timeline
from quaid.surfaces.web.pages import addresses
from quaid.surfaces.web.pages.asking import attempt, lately, may_write, together
from quaid.surfaces.web.pages.naming import Names, named
from quaid.surfaces.web.pages.notebook import COLLECTION as NOTEBOOK
from quaid.surfaces.web.pages.rendering import day as say_day, page, piece, words
from quaid.surfaces.web.pages.snippets import marked, pattern_of, plain_text, snippet

LIMIT = 12
BRIEF = 4
"""Of each group, in the list below the field that every page has."""
GOOD_RECALL = 0.5
"""What the notebook scores as a good answer (notebook.recalling)."""
KB = "kb"
LONGEST = 2_000
FILTERS = ("collection", "type", "wing", "since", "until")
_ADDRESS = re.compile(r"\[\[[^\[\]|\n]+[|\]]|\]\([^()\n]*\)")
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
    strength: str
    """strong, weak or none by itself; "" where nobody judges it."""


class Group(NamedTuple):
    name: str
    findings: list[Finding]
    note: str

    @property
    def halves(self) -> list[tuple[str, list[Finding]]]:
        """The findings that answer, then those that only come near."""
        good = [each for each in self.findings if each.strength in ("strong", "")]
        rest = [each for each in self.findings if each.strength not in ("strong", "")]
        return [("", good), ("Weaker" if good else "", rest)]


class Found(NamedTuple):
    groups: list[Group]
    strength: str
    """Of the answer as a whole."""
    notes: tuple[str, ...]
    total: int
    ms: int

    @property
    def strong(self) -> int:
        return self._count("strong")

    @property
    def weaker(self) -> int:
        return self._count("weak") + self._count("none")

    def _count(self, strength: str) -> int:
        return sum(each.strength == strength for group in self.groups for each in group.findings)

    def brief(self) -> list[Group]:
        """A few of each group, for a list that drops down."""
        return [group._replace(findings=group.findings[:BRIEF]) for group in self.groups if group.findings]


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
    recalled = found.recalled if found else None
    nodes = others[0] if others and others[0] else None
    results = found.answer.results if found else ()
    told = _Teller(question, await named(request, _texts(results, recalled, nodes)))
    groups: dict[str, list[Finding]] = {"Notebook": [], "Daily": [], "Pages": [], "Knowledge base": []}
    if recalled:
        groups["Notebook"] += map(told.file, recalled.notebook)
        groups["Daily"] += map(told.file, recalled.daily)
    if nodes:
        groups["Knowledge base"] += map(told.node, nodes.matches)
    for each in results:
        name = _group(each)
        if not (recalled and each.collection == NOTEBOOK) and not (nodes and each.collection == KB):
            groups[name].append(told.page(each))
    notes = {"Pages": "" if found else found.told, "Knowledge base": nodes.note if nodes else ""}
    return Found(
        [Group(name, findings, notes.get(name, "")) for name, findings in groups.items()],
        found.answer.strength if found else "none",
        found.answer.notes if found else (),
        sum(map(len, groups.values())),
        round((time.perf_counter() - began) * 1000),
    )


def _group(result: Any) -> str:
    """Where a page belongs: files of the notebook and nodes of the knowledge base have their own groups."""
    if result.collection == NOTEBOOK:
        return "Daily" if result.slug.startswith("daily/") else "Notebook"
    return "Knowledge base" if result.collection == KB else "Pages"


def _texts(results: Any, recalled: Any, nodes: Any) -> Iterator[str]:
    """Everything that a finding may say in words."""
    for each in results:
        yield from (each.content, each.summary)
    for each in (*recalled.notebook, *recalled.daily) if recalled else ():
        yield from (each.snippet, each.heading)
    for each in nodes.matches if nodes else ():
        yield each.summary


class _Teller:
    """Puts findings into words."""

    def __init__(self, question: str, names: Names) -> None:
        self._question, self._names = question, names
        self._looked = pattern_of(question)

    def file(self, hit: Any) -> Finding:
        lines = f"{hit.start_line}–{hit.end_line}" if hit.end_line > hit.start_line else f"{hit.start_line}"
        heading = plain_text(self._names.worded(hit.heading)).lstrip("# ")
        shown = plain_text(self._names.worded(hit.snippet))
        return Finding(
            addresses.file(hit.path, hit.start_line),
            marked(heading or hit.path, self._looked),
            f"{hit.path}:{lines}",
            snippet(shown.removeprefix(heading).lstrip() or shown, self._question),
            hit.score,
            "",
            "",
            "note",
            "strong" if hit.score >= GOOD_RECALL else "weak",
        )

    def page(self, result: Any) -> Finding:
        address = slugs.address(result.collection, result.slug)
        text, day = _without_heading(result.content) or result.summary, ""
        entries = timeline.parse(result.content) if result.part == "timeline" else ()
        if entries:
            first = entries[0]
            text = f"{first.summary} {first.detail}"
            day = f"{say_day(first.date)}{f', {first.source}' if first.source else ''}"
        return Finding(
            addresses.page(address, result.part, self._line(result)),
            marked(result.title, self._looked),
            " › ".join(filter(None, (_wing(result), day or self._heading(result)))),
            snippet(self._names.worded(text), self._question),
            result.score,
            LANES.get(result.lane, result.lane),
            result.reason,
            result.type,
            result.strength,
        )

    def _line(self, result: Any) -> int | None:
        """The line of a passage that holds what was asked for; None: the page's beginning is near enough."""
        found = self._looked.search(_without_links(result.content)) if self._looked else None
        line: int = result.start_line + (result.content.count("\n", 0, found.start()) if found else 0)
        return line if result.part == "timeline" or line > 1 else None

    def _heading(self, result: Any) -> str:
        """The headings above a passage, but for the page's own title."""
        names = [
            plain_text(self._names.worded(each)).lstrip("# ") for each in result.heading_path.split(" > ")
        ]
        return " › ".join(name for name in names if name and name != result.title)

    def node(self, match: Any) -> Finding:
        return Finding(
            addresses.node(match.id),
            marked(match.title, self._looked),
            match.path,
            snippet(self._names.worded(match.summary), self._question),
            match.score,
            ", ".join(match.match),
            match.status,
            "node",
            "",
        )


def _wing(result: Any) -> str:
    wing = words(result.wing)
    return (
        wing
        if result.collection == "default"
        else f"{result.collection} › {wing}"
        if wing
        else result.collection
    )


def _without_links(text: str) -> str:
    """The text with the addresses of its links made blank, each sign in its place: nobody reads them."""
    return _ADDRESS.sub(lambda link: " " * len(link[0]), text)


def _without_heading(text: str) -> str:
    """A passage without the heading that it begins with: it stands above."""
    first, _, rest = text.lstrip().partition("\n")
    return rest if first.startswith("#") and rest.strip() else text


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
    template = "quick.html" if "brief" in request.query_params else "results.html"
    return piece(template, found=found, question=question)


def routes() -> list[Route]:
    return [Route("/search", show), Route("/ui/search", as_typed)]
