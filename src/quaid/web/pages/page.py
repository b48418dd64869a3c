"""Show and edit a page: text, timeline, links, facts, history; also show a node of the knowledge base.

Saving over a version that is no longer current writes nothing and shows both texts side by side.
"""

import json
import re
from difflib import unified_diff
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.errors import FileChanged, PageExists, PageMoved, PageNotFound, QuaidError, VersionConflict
from quaid.formats import markdown
from quaid.model import markdown_text, page as page_model, slug as slugs, timeline
from quaid.model.links import ID_PREFIX
from quaid.web.auth import MAX_BODY
from quaid.web.pages import links as urls, markdown as markdowns
from quaid.web.pages.base import (
    FlashMessage,
    browser_message,
    cached_operation,
    call_operation,
    flash,
    gather_all,
    humanize,
    parse_number,
    read_form,
    redirect,
    render_fragment,
    render_page,
    try_operation,
)
from quaid.web.pages.links import LinkResolver, LinkTarget, resolve_nothing, resolver_of_page
from quaid.web.pages.markdown import PageNames, link_names, look_up_names, readable_line, shorten_markdown

_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")
MAX_NEIGHBOURS = 300
"""Number of neighbouring pages whose titles are loaded."""
MAX_LINKS = 200
MAX_CONTRADICTIONS = 500
"""Number of open contradictions that are searched for those of this page."""
MAX_PROPERTY_VALUE = 200
PROPERTIES_SHOWN_ELSEWHERE = ("title", "type", "tags", "summary", "links", "slug", "id")


class EntryView(NamedTuple):
    date: str
    source: str
    summary: Markup
    detail: Markup
    line: int
    here: bool


class LinkView(NamedTuple):
    """One link between two pages."""

    relationship: str
    since: str | None
    until: str | None
    context: Markup


class LinkedPage(NamedTuple):
    """Another page, with all links to it or from it."""

    address: str
    title: str
    type: str
    resolved: bool
    said: list[LinkView]


class FactView(NamedTuple):
    """A fact about a page, with its source."""

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
    """Id of the open contradiction that the fact is part of, or 0."""


class DiffLine(NamedTuple):
    kind: str
    """One of "added", "removed", "place" (a hunk header) and "same"."""
    text: str


def requested_line(request: Request) -> tuple[str, int]:
    """Return the part ("L" text, "T" timeline) and line number in the query, or ("", 0)."""
    at = request.query_params.get("at", "")
    return at[:1], parse_number(at[1:])


async def show_page(request: Request) -> Response:
    return await view_page(request, request.path_params["slug"])


async def view_page(
    request: Request, asked: str, told: FlashMessage | None = None, http: int = 200
) -> Response:
    record = await call_operation(request, "get", slug=asked)
    address = slugs.address(record.collection, record.slug)
    if address != asked:
        return redirect(request, urls.page_url(address))
    version = parse_number(request.query_params.get("diff", ""))
    known, tied, facts, history, clashes, diff = await gather_all(
        load_page_links(request, record),
        try_operation(request, "backlinks", slug=address, temporal="all", limit=MAX_LINKS),
        try_operation(request, "facts", subject=address, history=True, limit=100),
        try_operation(request, "history", slug=address),
        cached_operation(request, "contradictions", limit=MAX_CONTRADICTIONS),
        _load_diff(request, address, version),
    )
    lead, doubted = known.lead, _contradicted_facts(clashes)
    part, at = requested_line(request)
    stated = [each for each in facts.facts if each.kind == "fact"] if facts else []
    contexts = [each.context for each in (*_link_records(known.links), *_link_records(tied))]
    names = await look_up_names(
        request,
        [
            *contexts,
            record.summary,
            *(text for each in stated for text in (each.object, each.source)),
            *(
                slug
                for each in (*_link_records(known.links), *_link_records(tied))
                for slug in (each.from_slug, each.to_slug)
            ),
            *map(_format_value, record.frontmatter.values()),
        ],
        urls.page_url(address),
    )
    return render_page(
        *(request, "page.html"),
        http=http,
        told=told,
        record=record,
        address=address,
        truth=markdowns.render_markdown(
            *(record.compiled_truth, lead),
            at=at if part == "L" else 0,
            title=record.title,
            summary=record.summary,
        ),
        summary=names.linked(lede_of(record.summary, record.frontmatter, record.compiled_truth)),
        entries=timeline_entries(record.timeline, lead, at if part == "T" else 0),
        leftover=timeline_leftover(record.timeline, lead),
        out=_linked_pages(known.links, known.around, names, "to"),
        back=_linked_pages(tied, known.around, names, "from"),
        facts=[_fact_view(each, names, doubted) for each in stated],
        history=history,
        diff=diff,
        properties=page_properties(record.frontmatter, names),
    )


class PageLinks(NamedTuple):
    """The links of a page, its neighbours by address, and the resolver for links in its text."""

    links: Any
    around: dict[str, Any]
    lead: LinkResolver


async def load_page_links(request: Request, record: Any) -> PageLinks:
    address = slugs.address(record.collection, record.slug)
    links, near = await gather_all(
        try_operation(request, "links", slug=address, limit=MAX_LINKS),
        try_operation(request, "graph", slug=address, depth=1, temporal="all", limit=MAX_NEIGHBOURS),
    )
    around = {slugs.address(each.collection, each.slug): each for each in near.nodes} if near else {}
    titles = {name: each.title for name, each in around.items()}
    return PageLinks(links, around, resolver_of_page(record, links.links if links else (), titles))


async def _load_diff(request: Request, address: str, version: int) -> Any:
    if not version:
        return None
    record = await call_operation(request, "diff", slug=address, from_=version)
    return record, diff_lines(record.diff)


def diff_lines(diff: str) -> list[DiffLine]:
    kinds = {"+": "added", "-": "removed", "@": "place"}
    return [DiffLine(kinds.get(each[:1], "same"), _format_hunk(each)) for each in diff.split("\n")[2:]]


def _format_hunk(line: str) -> str:
    """Return a hunk header such as `@@ -2,4 +2,4 @@` as "… line 2 …", and any other line unchanged."""
    found = _HUNK.fullmatch(line)
    return f"… line {found[1]} …" if found else line


def timeline_entries(text: str, lead: LinkResolver, at: int = 0) -> list[EntryView]:
    """Return the dated entries of a timeline, newest first."""
    found = sorted(timeline.parse(text), key=lambda each: each.date, reverse=True)
    ends = {each.line: each.line + 1 + each.detail.count("\n") + bool(each.detail) for each in found}
    return [
        EntryView(
            *(each.date, each.source, markdowns.render_line(each.summary, lead)),
            markdowns.render_markdown(each.detail, lead, mark="T") if each.detail else Markup(),
            each.line,
            bool(at) and each.line <= at < ends[each.line],
        )
        for each in found
    ]


def timeline_leftover(text: str, lead: LinkResolver) -> Markup:
    """Render the text in a timeline that is not part of an entry, so that no text is hidden."""
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
    return markdowns.render_markdown("\n\n".join(kept), lead, mark="T") if kept else Markup()


def _link_records(record: Any) -> Any:
    return record.links if record else ()


def _linked_pages(record: Any, titles: dict[str, Any], names: PageNames, end: str) -> list[LinkedPage]:
    """Return the pages at the other ends of these links, without duplicates."""
    found: dict[str, LinkedPage] = {}
    for each in _link_records(record):
        slug, collection = getattr(each, f"{end}_slug"), getattr(each, f"{end}_collection")
        address = slugs.address(collection, slug) if each.resolved else slug
        known = titles.get(address)
        title, kind = (known.title, known.type) if known else (names.title(slug), "")
        tie = found.setdefault(address, LinkedPage(address, title, kind, each.resolved, []))
        context = names.linked(readable_line(each.context))
        tie.said.append(LinkView(each.relationship, each.valid_from, each.valid_until, context))
    return list(found.values())


_FACT_SOURCE = re.compile(r"fact (\d+)(?:,|$)")


def _contradicted_facts(clashes: Any) -> dict[int, int]:
    """Return the ids of facts in open contradictions, with the id of the contradiction."""
    found = clashes.contradictions if clashes else ()
    sides = ((each.id, _FACT_SOURCE.match(quote.source)) for each in found for quote in each.quotes)
    return {int(fact[1]): id for id, fact in sides if fact}


def lede_of(summary: str, front: dict[str, Any], truth: str) -> str:
    """Return the text below the title, or "" if the summary is only the page's first paragraph, which follows
    anyway."""
    text = markdown_text.text_head(markdown_text.visible_text(truth))
    said = markdown_text.one_line(front.get("summary")) or markdown_text.top_quote(text)
    return summary if said or not markdown_text.first_paragraph(text) else ""


def _fact_view(each: Any, names: PageNames, doubted: dict[int, int]) -> FactView:
    return FactView(
        *(each.predicate, names.linked(each.object), each.since, each.until, each.quote, each.by),
        names.linked(each.source),
        bool(each.until or each.superseded_by),
        bool(each.superseded_by),
        doubted.get(each.id, 0),
    )


def page_properties(front: dict[str, Any], names: PageNames) -> list[tuple[str, Markup]]:
    """Return the front matter values that the page does not show elsewhere."""
    return [
        (key, names.linked(shorten_markdown(_format_value(value), MAX_PROPERTY_VALUE)))
        for key, value in front.items()
        if key not in PROPERTIES_SHOWN_ELSEWHERE
    ]


def _format_value(value: Any) -> str:
    """Return a front matter value as text."""
    if isinstance(value, dict):
        return ", ".join(f"{humanize(str(key))}: {_format_value(each)}" for key, each in value.items())
    return "; ".join(map(_format_value, value)) if isinstance(value, list) else str(value)


async def revert_page(request: Request) -> Response:
    given = await read_form(request)
    address = given.get("slug", "")
    try:
        await call_operation(
            *(request, "revert"),
            slug=address,
            to=parse_number(given.get("to", "")),
            expected_version=parse_number(given.get("version", "")),
        )
    except (VersionConflict, FileChanged) as error:
        why = "The page was changed meanwhile, so nothing was reverted. This is what it says now."
        return await view_page(request, address, FlashMessage(why, went_well=False), error.http_status)
    return redirect(request, urls.page_url(address), "reverted")


def routes() -> list[Route]:
    return [
        Route("/page/{slug:path}", show_page),
        Route("/ui/revert", revert_page, methods=["POST"]),
    ]


MAX_LINK_TEXT = 200_000
"""Maximum length of the text that is searched for links, in characters."""
MAX_TITLE = 200
PAGE_REMOVED = (
    "This page was removed while you were writing. Your text is still here: saving makes the page anew."
)
TIMELINE_KEPT = (
    "Timeline entries that your text left out or changed were kept; to remove them, edit the page again and tick"
    " “Remove timeline entries”. Kept:"
)
_PLAIN_TITLE = re.compile(r"[^\W\d_](?:[\w '’.-]*[\w.])?")
"""Titles that YAML parses as a string without quotes."""

NEW_PAGE = """---
title: {said}
type: concept
tags: []
---

# {title}

> In one sentence.

## State

---

## Timeline
"""


async def edit_page(request: Request) -> Response:
    asked = request.path_params["slug"]
    if "view" in request.query_params:
        return await view_page(request, f"{asked}/edit")
    try:
        record = await call_operation(request, "get", slug=asked)
    except PageNotFound:
        return await view_page(request, f"{asked}/edit")  # a page whose slug ends in /edit
    return await _edit_form(
        request, slugs.address(record.collection, record.slug), _page_text(record), record
    )


def _page_text(record: Any) -> str:
    return markdown.render(record.frontmatter, record.compiled_truth, record.timeline)


async def _edit_form(
    request: Request,
    address: str,
    text: str,
    record: Any = None,
    *,
    status: int = 200,
    theirs: str = "",
    problem: str = "",
    version: int | None = None,
) -> Response:
    """Render the edit form. `record` is the stored page, if any; `theirs` is the current text after a conflict."""
    lines: list[DiffLine] = []
    if theirs:
        told = unified_diff(theirs.splitlines(), text.splitlines(), "theirs", "yours", lineterm="", n=2)
        lines = diff_lines("\n".join(told))
    preview = page_preview(
        address, text, await resolver_of_text(request, record, text), record.title if record else ""
    )
    if version is None:
        version = record.version if record else 0
    return render_page(
        request,
        "edit.html",
        http=status,
        address=address,
        title=record.title if record else preview["title"],
        text=text,
        version=version,
        theirs=theirs,
        lines=lines,
        problem=problem,
        preview=preview,
        limit=MAX_BODY,
    )


async def resolver_of_text(request: Request, record: Any, text: str) -> LinkResolver:
    """Return a resolver for a text being edited: stored links of the page first, then a lookup by name."""
    known, names = await gather_all(
        _resolver_of_record(request, record), look_up_names(request, [text[:MAX_LINK_TEXT]])
    )

    def lead(name: str) -> LinkTarget | None:
        found: LinkTarget | None = known(name) or names.lead(name.removesuffix(".md").removesuffix(".org"))
        return found

    return lead


async def _resolver_of_record(request: Request, record: Any) -> LinkResolver:
    return (await load_page_links(request, record)).lead if record else resolve_nothing


async def save_page(request: Request) -> Response:
    given = await read_form(request)
    address = request.path_params["slug"]
    text, version = given.get("text", ""), parse_number(given.get("version", ""))
    replace = bool(given.get("replace_timeline"))
    try:
        record = await call_operation(
            request,
            "put",
            slug=address,
            content=text,
            expected_version=version,
            replace_timeline=replace,
        )
    except QuaidError as error:
        return await _save_failed(request, address, text, version, error)
    if record.timeline_kept:
        listed = "; ".join(record.timeline_kept)
        flash(request, f"{TIMELINE_KEPT} {listed}.", (urls.edit_url(address), "Edit again"))
        return redirect(request, urls.page_url(address))
    return redirect(request, urls.page_url(address), "saved" if record.changed else "same")


async def _save_failed(
    request: Request, address: str, text: str, version: int, error: QuaidError
) -> Response:
    """Show the form again with the submitted text; after a conflict, with the current text beside it."""
    now, status = await try_operation(request, "get", slug=address), error.http_status
    if not now and version and now.code == PageNotFound.code:
        return await _edit_form(request, address, text, status=409, problem=PAGE_REMOVED)
    if now and isinstance(error, (VersionConflict, FileChanged)):
        # Also if another writer created the page meanwhile, or if it has moved to another address.
        there = slugs.address(now.collection, now.slug)
        return await _edit_form(
            *(request, there, text, now),
            status=status,
            theirs=_page_text(now),
            problem=_conflict_message(error, now.title),
        )
    return await _edit_form(
        *(request, address, text, now or None), status=status, problem=browser_message(error), version=version
    )


def _conflict_message(error: QuaidError, title: str) -> str:
    """Return a sentence that describes the conflict."""
    if isinstance(error, FileChanged):
        return f"The file {error.facts['path']} was changed outside while you were writing."
    if isinstance(error, PageMoved):
        return f"The page was renamed or merged while you were writing: it is “{title}” now."
    if isinstance(error, PageExists):
        return f"“{title}” was begun by somebody else meanwhile."
    return "Somebody saved while you were writing."


async def new_page(request: Request) -> Response:
    """Show the form for a new page."""
    typed = request.query_params.get("slug", "").strip()
    asked = typed.lower()
    if not asked:
        return render_page(request, "new.html", problem="", slug="", there=None, offer="", title="")
    try:
        slugs.check(slugs.split_address(asked)[1])
    except QuaidError as error:
        return _suggest_slug(request, typed, error)
    if there := await try_operation(request, "get", slug=asked):
        address = slugs.address(there.collection, there.slug)
        return render_page(
            request, "new.html", problem="", slug=asked, there=there, address=address, offer="", title=""
        )
    title = " ".join(request.query_params.get("title", "").split())[:MAX_TITLE]
    title = title or asked.rpartition("/")[2].replace("-", " ").capitalize()
    said = title if _PLAIN_TITLE.fullmatch(title) else json.dumps(title, ensure_ascii=False)
    return await _edit_form(request, asked, NEW_PAGE.format(said=said, title=title))


def _suggest_slug(request: Request, typed: str, error: QuaidError) -> Response:
    """Suggest the valid address nearest to the input, with the input as its title: Bob Smith becomes bob-smith."""
    collection, mark, name = typed.rpartition("::")
    parts = [each for each in name.split("/") if slugs.segment(each) != "x" or each.lower() == "x"]
    offer = f"{collection.lower()}{mark}{slugs.from_path('/'.join(parts))}" if parts else ""
    title = parts[-1].strip() if parts else ""
    return render_page(
        *(request, "new.html"),
        http=200 if offer else error.http_status,
        problem="" if offer else browser_message(error),
        slug=offer or typed,
        typed=typed,
        there=None,
        offer=offer,
        title=title,
    )


async def preview_page(request: Request) -> Response:
    given = await read_form(request)
    address, text = given.get("slug", ""), given.get("text", "")
    record = await try_operation(request, "get", slug=address) or None
    lead = await resolver_of_text(request, record, text)
    return render_fragment(
        "preview.html", preview=page_preview(address, text, lead, record.title if record else "")
    )


def page_preview(
    address: str, text: str, lead: LinkResolver = resolve_nothing, known: str = ""
) -> dict[str, Any]:
    """Return what the preview shows. A text without a title keeps `known`, the page's current title."""
    document = markdown.parse(text)
    slug = address.rpartition("::")[2] or "page"
    parts = (document.frontmatter, document.truth, document.timeline)
    made = page_model.build_page(slug, *parts, fallback_title=known or None)
    return {
        "title": made.title,
        "summary": link_names(lede_of(made.summary, made.frontmatter, made.truth), lead),
        "truth": markdowns.render_markdown(made.truth, lead, title=made.title, summary=made.summary),
        "entries": timeline_entries(made.timeline, lead),
        "problem": document.problem or "",
        "tags": made.tags,
        "type": made.type,
    }


def edit_routes() -> list[Route]:
    return [
        Route("/new", new_page),
        Route("/page/{slug:path}/edit", edit_page),
        Route("/page/{slug:path}/edit", save_page, methods=["POST"]),
        Route("/ui/preview", preview_page, methods=["POST"]),
    ]


async def show_node(request: Request) -> Response:
    record = await call_operation(request, "kb show", node=request.path_params["id"])
    known = {each.id: each.title for each in (*record.links, *record.backlinks)}

    def lead(named: str) -> LinkTarget | None:
        id = named.removeprefix(ID_PREFIX).partition("::")[0].strip()
        return LinkTarget(urls.node_url(id), known[id]) if id in known else None

    return render_page(
        request,
        "node.html",
        record=record,
        html=markdowns.render_org(record.text, lead),
        here="/search",
    )


def node_routes() -> list[Route]:
    return [Route("/kb/{id}", show_node)]
