"""A page: its truth and its timeline side by side, what it is tied to, what is known of it, what it said before."""

import re
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.errors import FileChanged, VersionConflict
from quaid.model import markdown_text, slug as slugs, timeline
from quaid.surfaces.web.pages import addresses, markdown
from quaid.surfaces.web.pages.asking import ask, attempt, form, lately, number, together
from quaid.surfaces.web.pages.leading import Leading, of_page
from quaid.surfaces.web.pages.naming import Names, named
from quaid.surfaces.web.pages.rendering import Told, go, page, words
from quaid.surfaces.web.pages.snippets import cut, stretch

_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")
NEAR = 300
"""Pages around this one whose titles are shown."""
MOST_LINKS = 200
MOST_CLASHES = 500
"""Open contradictions among which those of this page are looked for."""
LONGEST_VALUE = 200
SHOWN_ELSEWHERE = ("title", "type", "tags", "summary", "links", "slug", "id")


class Entry(NamedTuple):
    date: str
    source: str
    summary: Markup
    detail: Markup
    line: int
    here: bool


class Said(NamedTuple):
    """One link between two pages."""

    relationship: str
    since: str | None
    until: str | None
    context: Markup


class Tie(NamedTuple):
    """Another page, and all the links to it or from it."""

    address: str
    title: str
    type: str
    resolved: bool
    said: list[Said]


class Fact(NamedTuple):
    """Something that is known of a page, who says so and where."""

    predicate: str
    object: Markup
    since: str | None
    until: str | None
    quote: str
    by: str
    source: Markup
    is_over: bool
    superseded: bool
    clash: int
    """The open contradiction in which it is one side; 0: none is known."""


class Line(NamedTuple):
    """A line of a diff."""

    kind: str
    """added, removed, place or same."""
    text: str


def place_of(request: Request) -> tuple[str, int]:
    """The line that is looked for: its part and its number."""
    at = request.query_params.get("at", "")
    return at[:1], number(at[1:])


async def show(request: Request) -> Response:
    return await view(request, request.path_params["slug"])


async def view(request: Request, asked: str, told: Told | None = None, http: int = 200) -> Response:
    record = await ask(request, "get", slug=asked)
    address = slugs.address(record.collection, record.slug)
    if address != asked:
        return go(request, addresses.page(address))
    version = number(request.query_params.get("diff", ""))
    known, tied, facts, history, clashes, diff = await together(
        known_links(request, record),
        attempt(request, "backlinks", slug=address, temporal="all", limit=MOST_LINKS),
        attempt(request, "facts", subject=address, history=True, limit=100),
        attempt(request, "history", slug=address),
        lately(request, "contradictions", limit=MOST_CLASHES),
        _diff(request, address, version),
    )
    lead, doubted = known.lead, _doubted(clashes)
    part, at = place_of(request)
    stated = [each for each in facts.facts if each.kind == "fact"] if facts else []
    contexts = [each.context for each in (*_links(known.links), *_links(tied))]
    names = await named(
        request,
        [
            *contexts,
            record.summary,
            *(text for each in stated for text in (each.object, each.source)),
            *(
                slug
                for each in (*_links(known.links), *_links(tied))
                for slug in (each.from_slug, each.to_slug)
            ),
            *map(_told, record.frontmatter.values()),
        ],
        addresses.page(address),
    )
    return page(
        *(request, "page.html"),
        http=http,
        told=told,
        record=record,
        address=address,
        truth=markdown.render(
            *(record.compiled_truth, lead),
            at=at if part == "L" else 0,
            title=record.title,
            summary=record.summary,
        ),
        summary=names.linked(lede(record.summary, record.frontmatter, record.compiled_truth)),
        entries=entries(record.timeline, lead, at if part == "T" else 0),
        leftover=leftover(record.timeline, lead),
        out=_ties(known.links, known.around, names, "to"),
        back=_ties(tied, known.around, names, "from"),
        facts=[_fact(each, names, doubted) for each in stated],
        history=history,
        diff=diff,
        properties=properties(record.frontmatter, names),
    )


class Known(NamedTuple):
    """The links of a page, the pages around it, and where the links in its text lead."""

    links: Any
    around: dict[str, Any]
    lead: Leading


async def known_links(request: Request, record: Any) -> Known:
    address = slugs.address(record.collection, record.slug)
    links, near = await together(
        attempt(request, "links", slug=address, limit=MOST_LINKS),
        attempt(request, "graph", slug=address, depth=1, temporal="all", limit=NEAR),
    )
    around = {slugs.address(each.collection, each.slug): each for each in near.nodes} if near else {}
    titles = {name: each.title for name, each in around.items()}
    return Known(links, around, of_page(record, links.links if links else (), titles))


async def _diff(request: Request, address: str, version: int) -> Any:
    if not version:
        return None
    record = await ask(request, "diff", slug=address, from_=version)
    return record, diff_lines(record.diff)


def diff_lines(diff: str) -> list[Line]:
    kinds = {"+": "added", "-": "removed", "@": "place"}
    return [Line(kinds.get(each[:1], "same"), _place_in_words(each)) for each in diff.split("\n")[2:]]


def _place_in_words(line: str) -> str:
    """`@@ -2,4 +2,4 @@` as somebody would say it; any other line as it is."""
    found = _HUNK.fullmatch(line)
    return f"… line {found[1]} …" if found else line


def entries(text: str, lead: Leading, at: int = 0) -> list[Entry]:
    """The dated entries of a timeline, the newest first."""
    found = sorted(timeline.parse(text), key=lambda each: each.date, reverse=True)
    ends = {each.line: each.line + 1 + each.detail.count("\n") + bool(each.detail) for each in found}
    return [
        Entry(
            *(each.date, each.source, markdown.line(each.summary, lead)),
            markdown.render(each.detail, lead, mark="T") if each.detail else Markup(),
            each.line,
            bool(at) and each.line <= at < ends[each.line],
        )
        for each in found
    ]


def leftover(text: str, lead: Leading) -> Markup:
    """What stands in a timeline without being an entry: shown as it is, so that no text is hidden."""
    lines = text.split("\n")
    for each in timeline.parse(text):
        length = 1 + (each.detail.count("\n") + 1 if each.detail else 0)
        first = each.line - 1
        blank = 0
        while length and first + blank < len(lines):
            if lines[first + blank].strip() or blank == 0:
                length -= 1
            lines[first + blank] = ""
            blank += 1
    kept = [line for line in lines if line.strip() and line.strip().strip("#").strip().lower() != "timeline"]
    return markdown.render("\n\n".join(kept), lead, mark="T") if kept else Markup()


def _links(record: Any) -> Any:
    return record.links if record else ()


def _ties(record: Any, titles: dict[str, Any], names: Names, end: str) -> list[Tie]:
    """The pages at the other ends of these links, each once."""
    found: dict[str, Tie] = {}
    for each in _links(record):
        slug, collection = getattr(each, f"{end}_slug"), getattr(each, f"{end}_collection")
        address = slugs.address(collection, slug) if each.resolved else slug
        known = titles.get(address)
        title, kind = (known.title, known.type) if known else (names.title(slug), "")
        tie = found.setdefault(address, Tie(address, title, kind, each.resolved, []))
        context = names.linked(stretch(each.context))
        tie.said.append(Said(each.relationship, each.valid_from, each.valid_until, context))
    return list(found.values())


_FACT = re.compile(r"fact (\d+)(?:,|$)")


def _doubted(clashes: Any) -> dict[int, int]:
    """Facts that contradict something, each with the contradiction that waits for a person."""
    found = clashes.contradictions if clashes else ()
    sides = ((each.id, _FACT.match(quote.source)) for each in found for quote in each.quotes)
    return {int(fact[1]): id for id, fact in sides if fact}


def lede(summary: str, front: dict[str, Any], truth: str) -> str:
    """What stands below the title: not the summary that is only the first paragraph, which comes next anyhow."""
    text = markdown_text.text_head(markdown_text.visible_text(truth))
    said = markdown_text.one_line(front.get("summary")) or markdown_text.top_quote(text)
    return summary if said or not markdown_text.first_paragraph(text) else ""


def _fact(each: Any, names: Names, doubted: dict[int, int]) -> Fact:
    return Fact(
        *(each.predicate, names.linked(each.object), each.since, each.until, each.quote, each.by),
        names.linked(each.source),
        bool(each.until or each.superseded_by),
        bool(each.superseded_by),
        doubted.get(each.id, 0),
    )


def properties(front: dict[str, Any], names: Names) -> list[tuple[str, Markup]]:
    """What the front matter says beside what the page shows anyhow."""
    return [
        (key, names.linked(cut(_told(value), LONGEST_VALUE)))
        for key, value in front.items()
        if key not in SHOWN_ELSEWHERE
    ]


def _told(value: Any) -> str:
    """A value of the front matter in words."""
    if isinstance(value, dict):
        return ", ".join(f"{words(str(key))}: {_told(each)}" for key, each in value.items())
    return "; ".join(map(_told, value)) if isinstance(value, list) else str(value)


async def revert(request: Request) -> Response:
    given = await form(request)
    address = given.get("slug", "")
    try:
        await ask(
            *(request, "revert"),
            slug=address,
            to=number(given.get("to", "")),
            expected_version=number(given.get("version", "")),
        )
    except (VersionConflict, FileChanged) as error:
        why = "The page was changed meanwhile, so nothing was reverted. This is what it says now."
        return await view(request, address, Told(why, went_well=False), error.http_status)
    return go(request, addresses.page(address), "reverted")


def routes() -> list[Route]:
    return [
        Route("/page/{slug:path}", show),
        Route("/ui/revert", revert, methods=["POST"]),
    ]
