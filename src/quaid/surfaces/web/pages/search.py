"""Search: notebook, daily log, pages and knowledge base, grouped, as one types or all at once.

Groups stand in the order of their best findings: what is called so, what answers, what only comes near. Half a word
is nobody's question, nor is a link that somebody follows: only what is asked with the whole page, and finds no good
answer anywhere, is noted as a gap.
"""

import re
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.model import names, slug as slugs, timeline
from quaid.model.similarity import is_question
from quaid.surfaces.web.pages import addresses
from quaid.surfaces.web.pages.asking import attempt, days_of, lately, may_write, together
from quaid.surfaces.web.pages.naming import Names, named
from quaid.surfaces.web.pages.notebook import COLLECTION as NOTEBOOK
from quaid.surfaces.web.pages.rendering import day as say_day, page, piece, words
from quaid.surfaces.web.pages.snippets import COMMON, marked, pattern_of, plain_text, snippet

LIMIT = 12
BRIEF = 4
"""Of each group, in the list below the field that every page has."""
GOOD_RECALL = 0.5
"""What the notebook scores as a good answer (notebook.recalling)."""
GOOD_SHARE, NEAR_SHARE = 0.6, 0.3
"""How much of a question's words a node holds that answers, or comes near (as search.strength, by words alone)."""
KB = "kb"
LONGEST = 2_000
LONGEST_NAME = 5
"""Words of what may be meant as a name."""
FILTERS, DAYS = ("collection", "type", "wing"), ("since", "until")
_ADDRESS = re.compile(r"\[\[[^\[\]|\n]+[|\]]|\]\([^()\n]*\)")
LANES = {
    "exact": "its name",
    "name": "its name",
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
    """strong, weak or none, by itself."""
    fit: int = 0
    """How its name fits what was asked for (core.names.fit)."""

    @property
    def is_good(self) -> bool:
        return self.strength == "strong" or self.fit > 0


STRENGTHS = ("none", "weak", "strong")


class Group(NamedTuple):
    name: str
    findings: list[Finding]
    note: str

    @property
    def halves(self) -> list[tuple[str, list[Finding]]]:
        """The findings that answer, then those that only come near."""
        good = [each for each in self.findings if each.is_good]
        rest = [each for each in self.findings if not each.is_good]
        return [("", good), ("Weaker" if good else "", rest)]

    @property
    def worth(self) -> tuple[int, bool, int]:
        """By what groups are put in order: how a name fits, a page's before a node's or a file's, then strength."""
        fit = max((each.fit for each in self.findings), default=0)
        best = max((STRENGTHS.index(each.strength) for each in self.findings), default=-1)
        return fit, bool(fit) and self.name == "Pages", best


class Found(NamedTuple):
    groups: list[Group]
    is_answered: bool
    """Whether some part of the memory knows."""
    notes: tuple[str, ...]
    total: int
    ms: int

    @property
    def strong(self) -> int:
        return self._count("strong")

    @property
    def weaker(self) -> int:
        return sum(not each.is_good for group in self.groups for each in group.findings)

    @property
    def is_named(self) -> bool:
        return any(each.fit for group in self.groups for each in group.findings)

    def _count(self, strength: str) -> int:
        return sum(each.strength == strength for group in self.groups for each in group.findings)

    def brief(self) -> list[Group]:
        """A few of each group, for a list that drops down."""
        return [group._replace(findings=group.findings[:BRIEF]) for group in self.groups if group.findings]


def chosen(request: Request) -> tuple[dict[str, str], dict[str, str]]:
    """The filters of the address, and what is to be said of days that are none."""
    days, wrong = days_of(request, *DAYS)
    return {**{name: request.query_params.get(name, "").strip()[:100] for name in FILTERS}, **days}, wrong


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
    files = {hit.path for hit in (*recalled.notebook, *recalled.daily)} if recalled else set()
    for each in results:
        if recalled and each.collection == NOTEBOOK:
            is_wanted = fit_of(each) and f"{each.slug}.md" not in files
        else:
            is_wanted = not (nodes and each.collection == KB)
        if is_wanted:
            groups[_group(each)].append(told.page(each))
    notes = {"Pages": "" if found else found.told, "Knowledge base": nodes.note if nodes else ""}
    made = [Group(name, _in_order(each), notes.get(name, "")) for name, each in groups.items()]
    made.sort(key=lambda group: group.worth, reverse=True)
    is_answered = any(each.is_good for group in made for each in group.findings)
    return Found(
        made,
        is_answered or bool(found and found.answer.strength == "strong"),
        found.answer.notes if found else (),
        sum(map(len, groups.values())),
        round((time.perf_counter() - began) * 1000),
    )


def _in_order(findings: list[Finding]) -> list[Finding]:
    """What is called so, what answers, what comes near, the rest; each as it came."""
    return sorted(findings, key=lambda each: (-each.fit, -STRENGTHS.index(each.strength)))


def fit_of(result: Any) -> int:
    """How a page's name fits what was asked for."""
    if result.lane == "exact":
        return names.EXACT_MATCH
    return (
        0
        if result.lane != "name"
        else names.WORD_MATCH
        if result.strength == "strong"
        else names.PREFIX_MATCH
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
            LANES[hit.lane],
            "",
            "note",
            # What only means something like it may mean something else.
            "strong" if hit.score >= GOOD_RECALL and hit.lane != "meaning" else "weak",
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
            fit_of(result),
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
            match.held,
            ", ".join(match.match),
            match.status,
            "node",
            _strength_of(match),
            self._fit(match.title),
        )

    def _fit(self, title: str) -> int:
        """How a node's title fits; a whole question, or words that are in every text, ask for none by its name."""
        typed = names.fold_name(self._question)
        words = typed.split()
        is_name = len(words) <= LONGEST_NAME and not COMMON.issuperset(words)
        fit = names.match_strength(names.fold_name(title), typed)
        return fit if is_name or fit == names.EXACT_MATCH else 0


def _strength_of(match: Any) -> str:
    """How well a node answers: by how much of the question it holds, and whether that is what it is about."""
    is_about_it = match.held == 1 or not {"title", "summary"}.isdisjoint(match.match)
    if match.held >= GOOD_SHARE and is_about_it:
        return "strong"
    return "weak" if match.held >= NEAR_SHARE else "none"


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
    filters, wrong = chosen(request)
    choices = await lately(request, "wings")
    found = await look(request, question, filters) if question else None
    is_asked = "link" not in request.query_params and not any((*filters.values(), *wrong.values()))
    if found and not found.is_answered and is_asked and is_question(question) and may_write(request):
        await attempt(request, "gaps add", query_text=question, context="asked in the dashboard")
    return page(
        request,
        "search.html",
        question=question,
        found=found,
        filters=filters,
        filtered=any((*filters.values(), *wrong.values())),
        wrong=wrong,
        left_out=[],
        choices=choices,
    )


async def as_typed(request: Request) -> Response:
    """The results alone, for a script to put in their place."""
    question = request.query_params.get("q", "").strip()[:LONGEST]
    filters, wrong = chosen(request)
    found = await look(request, question, filters) if question else None
    template = "quick.html" if "brief" in request.query_params else "results.html"
    return piece(template, found=found, question=question, left_out=list(wrong.values()))


def routes() -> list[Route]:
    return [Route("/search", show), Route("/ui/search", as_typed)]
