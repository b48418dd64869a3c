"""Show and edit a page: text, timeline, links, facts, history, graph; also show a node of the knowledge base.

Saving over a version that is no longer current writes nothing and shows both versions side by side.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from difflib import unified_diff
from typing import Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from quaid.errors import FileChanged, PageExists, PageMoved, PageNotFound, QuaidError, VersionConflict
from quaid.formats import markdown
from quaid.model import markdown_text, merge, page as page_model, slug as slugs, timeline
from quaid.model.links import ID_PREFIX
from quaid.web.auth import MAX_BODY
from quaid.web.pages import base, markdown as markdowns
from quaid.web.pages.base import (
    FlashMessage,
    LinkResolver,
    LinkTarget,
    browser_message,
    cached_operation,
    call_operation,
    gather_all,
    humanize,
    parse_number,
    read_days,
    read_form,
    redirect,
    render_fragment,
    render_page,
    resolve_nothing,
    resolver_of_page,
    route,
    try_operation,
)
from quaid.web.pages.markdown import PageNames, link_names, look_up_names, readable_line, shorten_markdown

AddressedLinks = dict[str, tuple[str, str, bool, list[Any]]]
"""Linked pages by address: title, type, True if the page exists, and the links to or from the page."""

_HUNK = re.compile(r"\A@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@\Z")
"""A hunk header such as `@@ -2,4 +2,4 @@`, shown as "… line 2 …"."""
MAX_NEIGHBOURS = 300
"""The titles of at most this many linked pages are loaded."""
MAX_LINKS = 200
MAX_CONTRADICTIONS = 500
"""At most this many open contradictions are loaded to find the contradictions of a page."""
MAX_PROPERTY_VALUE = 200
PROPERTIES_SHOWN_ELSEWHERE = ("title", "type", "tags", "summary", "links", "slug", "id")


def requested_line(request: Request) -> tuple[str, int]:
    """Return the part ("L" text, "T" timeline) and line number in the query, or ("", 0)."""
    at = request.query_params.get("at", "")
    return at[:1], parse_number(at[1:])


@route("/page/{slug:path}", GET="read")
async def show_page(request: Request) -> Response:
    return await view_page(request, request.path_params["slug"])


async def view_page(
    request: Request, slug: str, flash: FlashMessage | None = None, http: int = 200
) -> Response:
    record = await call_operation(request, "get", slug=slug)
    address = slugs.address(record.collection, record.slug)
    if address != slug:
        return redirect(request, base.page_url(address))
    version = parse_number(request.query_params.get("diff", ""))
    (links, neighbours, resolve), backlinks, facts, history, contradictions, diff = await gather_all(
        load_page_links(request, record),
        try_operation(request, "backlinks", slug=address, temporal="all", limit=MAX_LINKS),
        try_operation(request, "facts", subject=address, history=True, limit=100),
        try_operation(request, "history", slug=address),
        cached_operation(request, "contradictions", limit=MAX_CONTRADICTIONS),
        _load_diff(request, address, version),
    )
    links, backlinks = (record.links if record else () for record in (links, backlinks))
    part, line = requested_line(request)
    facts = [fact for fact in facts.facts if fact.kind == "fact"] if facts else []
    names = await look_up_names(
        request,
        [
            record.summary,
            *(text for link in (*links, *backlinks) for text in (link.context, link.from_slug, link.to_slug)),
            *(text for fact in facts for text in (fact.object, fact.source)),
            *map(_format_value, record.frontmatter.values()),
        ],
        base.page_url(address),
    )
    return render_page(
        *(request, "page.html"),
        http=http,
        flash=flash,
        record=record,
        address=address,
        names=names,
        conflicts=len(merge.find_conflicts(record.compiled_truth, record.frontmatter)),
        truth=markdowns.render_markdown(
            *(record.compiled_truth, resolve),
            at=line if part == "L" else 0,
            title=record.title,
            summary=record.summary,
        ),
        summary=names.linked(lede_of(record.summary, record.frontmatter, record.compiled_truth)),
        entries=timeline_entries(record.timeline, resolve, line if part == "T" else 0),
        leftover=timeline_leftover(record.timeline, resolve),
        out=_linked_pages(links, neighbours, names, "to"),
        back=_linked_pages(backlinks, neighbours, names, "from"),
        readable=readable_line,
        facts=facts,
        contradicted=_contradicted_facts(contradictions),
        history=history,
        diff=diff,
        properties=page_properties(record.frontmatter, names),
    )


async def load_page_links(request: Request, record: Any) -> tuple[Any, dict[str, Any], LinkResolver]:
    """Return the links of a page, its neighbours by address, and the resolver for links in its text."""
    address = slugs.address(record.collection, record.slug)
    links, graph = await gather_all(
        try_operation(request, "links", slug=address, limit=MAX_LINKS),
        try_operation(request, "graph", slug=address, depth=1, temporal="all", limit=MAX_NEIGHBOURS),
    )
    neighbours = {slugs.address(node.collection, node.slug): node for node in graph.nodes} if graph else {}
    titles = {name: node.title for name, node in neighbours.items()}
    return links, neighbours, resolver_of_page(record, links.links if links else (), titles)


async def _load_diff(request: Request, address: str, version: int) -> Any:
    if not version:
        return None
    record = await call_operation(request, "diff", slug=address, from_=version)
    return record, diff_lines(record.diff)


def diff_lines(diff: str) -> list[tuple[str, str]]:
    """Return the kind ("added", "removed", "place" for a hunk header, "same") and text of each line of a diff."""
    kinds = {"+": "added", "-": "removed", "@": "place"}
    lines = diff.split("\n")[2:]
    return [(kinds.get(line[:1], "same"), _HUNK.sub(r"… line \1 …", line)) for line in lines]


def text_difference(theirs: str, yours: str) -> list[tuple[str, str]]:
    """Return the differences between two conflicting versions, in the form of `diff_lines`."""
    lines = unified_diff(theirs.splitlines(), yours.splitlines(), "theirs", "yours", lineterm="", n=2)
    return diff_lines("\n".join(lines))


def timeline_entries(text: str, resolve: LinkResolver, at: int = 0) -> list[dict[str, Any]]:
    """Return the dated entries of a timeline, newest first. The entry that contains line `at` is marked."""
    entries = sorted(timeline.parse(text), key=lambda entry: entry.date, reverse=True)
    return [
        {
            "date": entry.date,
            "source": entry.source,
            "summary": markdowns.render_line(entry.summary, resolve),
            "detail": markdowns.render_markdown(entry.detail, resolve, mark="T") if entry.detail else "",
            "line": entry.line,
            "here": entry.line <= at <= entry.line + entry.detail.count("\n") + bool(entry.detail),
        }
        for entry in entries
    ]


def timeline_leftover(text: str, resolve: LinkResolver) -> Markup:
    """Render the text in a timeline that is not part of an entry, so that no text is hidden."""
    lines = text.split("\n")
    for entry in timeline.parse(text):
        length = 1 + (entry.detail.count("\n") + 1 if entry.detail else 0)
        at = first = entry.line - 1
        while length and at < len(lines):
            if lines[at].strip() or at == first:
                length -= 1
            lines[at] = ""
            at += 1
    rest = [line for line in lines if line.strip() and line.strip().strip("#").strip().lower() != "timeline"]
    return markdowns.render_markdown("\n\n".join(rest), resolve, mark="T") if rest else Markup()


def _linked_pages(links: Any, neighbours: dict[str, Any], names: PageNames, end: str) -> AddressedLinks:
    pages: AddressedLinks = {}
    for link in links:
        slug = getattr(link, f"{end}_slug")
        address = slugs.address(getattr(link, f"{end}_collection"), slug) if link.resolved else slug
        page = neighbours.get(address)
        title, kind = (page.title, page.type) if page else (names.title(slug), "")
        pages.setdefault(address, (title, kind, link.resolved, []))[-1].append(link)
    return pages


_FACT_SOURCE = re.compile(r"fact (\d+)(?:,|$)")


def _contradicted_facts(record: Any) -> dict[int, int]:
    """Return the ids of facts in open contradictions, each with the id of its contradiction."""
    listed = record.contradictions if record else ()
    sides = ((item.id, _FACT_SOURCE.match(quote.source)) for item in listed for quote in item.quotes)
    return {int(fact[1]): id for id, fact in sides if fact}


def lede_of(summary: str, front: dict[str, Any], truth: str) -> str:
    """Return the summary to show below the title. Return "" if it only repeats the page's first paragraph."""
    text = markdown_text.text_head(markdown_text.visible_text(truth))
    is_own = markdown_text.one_line(front.get("summary")) or markdown_text.top_quote(text)
    return summary if is_own or not markdown_text.first_paragraph(text) else ""


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
        return ", ".join(f"{humanize(str(key))}: {_format_value(part)}" for key, part in value.items())
    return "; ".join(map(_format_value, value)) if isinstance(value, list) else str(value)


@route("/ui/revert", POST="write")
async def revert_page(request: Request) -> Response:
    form = await read_form(request)
    address = form.get("slug", "")
    try:
        await call_operation(
            *(request, "revert"),
            slug=address,
            to=parse_number(form.get("to", "")),
            expected_version=parse_number(form.get("version", "")),
        )
    except (VersionConflict, FileChanged) as error:
        problem = "The page was changed in the meantime, so it was not reverted. This is its current text."
        return await view_page(request, address, FlashMessage(problem, succeeded=False), error.http_status)
    return redirect(request, base.page_url(address), "Reverted. The earlier text is now the newest version.")


MAX_LINK_TEXT = 200_000
"""At most this many characters of the text are searched for links."""
MAX_TITLE = 200
PAGE_REMOVED = (
    "This page was removed while you were editing. Your text is still here: saving creates it again."
)
TIMELINE_KEPT = (
    "Timeline entries that your text left out or changed were kept; to remove them, edit the page again and tick"
    " “Remove timeline entries”. Kept:"
)
SAVED, UNCHANGED = "Saved.", "Nothing was changed, so nothing was written."
MERGED = "Saved, and merged with a change that was saved while you were editing."
MAX_BASE = 500_000
"""The form has the text that the editor started from, to merge conflicts, if it is not longer than this."""
_PLAIN_TITLE = re.compile(r"[^\W\d_](?:[\w '’.-]*[\w.])?")
"""Matches titles that YAML parses as a string even without quotes."""

NEW_PAGE = """---
title: {quoted}
type: concept
tags: []
---

# {title}

> In one sentence.

## State

---

## Timeline
"""


@route("/page/{slug:path}/edit", GET="write")
async def edit_page(request: Request) -> Response:
    slug = request.path_params["slug"]
    if "view" in request.query_params:
        return await view_page(request, f"{slug}/edit")
    try:
        record = await call_operation(request, "get", slug=slug)
    except PageNotFound:
        return await view_page(request, f"{slug}/edit")  # the slug of a page may end in /edit
    address = slugs.address(record.collection, record.slug)
    return await _edit_form(request, address, _page_text(record), record)


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
    preview = await _preview(request, address, text, record)
    if version is None:
        version = record.version if record else 0
    started_from = _page_text(record) if record and record.version == version else ""
    return render_page(
        request,
        "edit.html",
        http=status,
        address=address,
        title=record.title if record else preview["title"],
        text=text,
        version=version,
        base=started_from if len(started_from) <= MAX_BASE else "",
        theirs=theirs,
        lines=text_difference(theirs, text) if theirs else [],
        problem=problem,
        preview=preview,
        limit=MAX_BODY,
    )


async def resolver_of_text(request: Request, record: Any, text: str) -> LinkResolver:
    """Return a link resolver for content being edited: stored links of the page, then a lookup by name."""
    stored: LinkResolver = (await load_page_links(request, record))[2] if record else resolve_nothing
    names = await look_up_names(request, [text[:MAX_LINK_TEXT]])
    return lambda name: stored(name) or names.resolve(name.removesuffix(".md").removesuffix(".org"))


@route("/page/{slug:path}/edit", POST="write")
async def save_page(request: Request) -> Response:
    form = await read_form(request)
    address = request.path_params["slug"]
    text, version = form.get("text", ""), parse_number(form.get("version", ""))
    try:
        record = await call_operation(
            *(request, "put"),
            slug=address,
            content=text,
            expected_version=version,
            replace_timeline=bool(form.get("replace_timeline")),
        )
    except QuaidError as error:
        if await _save_merged(request, address, form, error):
            return redirect(request, base.page_url(address), MERGED)
        return await _save_failed(request, address, text, version, error)
    if record.timeline_kept:
        message = f"{TIMELINE_KEPT} {'; '.join(record.timeline_kept)}."
        return redirect(request, base.page_url(address), message, (base.edit_url(address), "Edit again"))
    return redirect(request, base.page_url(address), SAVED if record.changed else UNCHANGED)


async def _save_merged(request: Request, address: str, form: dict[str, str], error: QuaidError) -> bool:
    """Merge the submitted text into a page that was changed meanwhile. Return False if the changes conflict.

    Timeline entries that the submitted text leaves out are removed only if the form says so.
    """
    is_other = isinstance(error, PageMoved | PageExists)
    if not form.get("base") or is_other or not isinstance(error, VersionConflict | FileChanged):
        return False
    now = await try_operation(request, "get", slug=address)
    before, ours = markdown.parse(form["base"]), markdown.parse(form.get("text", ""))
    if not now or before.problem or ours.problem:
        return False
    front, conflicts = merge.merge_front_matter(
        *(before.frontmatter, ours.frontmatter, now.frontmatter), "yours", "theirs"
    )
    truth, text_conflicts = merge.merge_text(before.truth, ours.truth, now.compiled_truth, "yours", "theirs")
    entries = ours.timeline
    if not form.get("replace_timeline"):
        entries = timeline.merge_timelines(before.timeline, entries)
    if conflicts or text_conflicts:
        return False
    entries = merge.merge_timeline(before.timeline, entries, now.timeline)
    try:
        await call_operation(
            *(request, "put"),
            slug=address,
            content=markdown.render(front, truth, entries),
            expected_version=now.version,
            replace_timeline=True,
        )
    except QuaidError:
        return False  # the form is shown again, with the current text
    return True


async def _save_failed(
    request: Request, address: str, text: str, version: int, error: QuaidError
) -> Response:
    """Show the form again with the submitted text. After a conflict, show the current text beside it."""
    now, status = await try_operation(request, "get", slug=address), error.http_status
    if not now and version and now.code == PageNotFound.code:
        return await _edit_form(request, address, text, status=409, problem=PAGE_REMOVED)
    if now and isinstance(error, (VersionConflict, FileChanged)):
        # This also handles a page that another writer created meanwhile, and a page that has moved.
        return await _edit_form(
            *(request, slugs.address(now.collection, now.slug), text, now),
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
        return f"The file {error.facts['path']} was changed by another program while you were editing."
    if isinstance(error, PageMoved):
        return f"The page was renamed or merged while you were editing: it is now “{title}”."
    if isinstance(error, PageExists):
        return f"“{title}” was created in the meantime."
    return "The page was saved by another program or browser while you were editing."


@route("/new", GET="write")
async def new_page(request: Request) -> Response:
    """Show the form for a new page."""
    typed = request.query_params.get("slug", "").strip()
    slug = typed.lower()
    values: dict[str, Any] = {"problem": "", "slug": slug, "existing": None, "suggestion": "", "title": ""}
    if not slug:
        return render_page(request, "new.html", **values)
    try:
        slugs.check(slugs.split_address(slug)[1])
    except QuaidError as error:
        return _suggest_slug(request, typed, error)
    if page := await try_operation(request, "get", slug=slug):
        address = slugs.address(page.collection, page.slug)
        return render_page(request, "new.html", **{**values, "existing": page, "address": address})
    title = " ".join(request.query_params.get("title", "").split())[:MAX_TITLE]
    title = title or slug.rpartition("/")[2].replace("-", " ").capitalize()
    quoted = title if _PLAIN_TITLE.fullmatch(title) else json.dumps(title, ensure_ascii=False)
    return await _edit_form(request, slug, NEW_PAGE.format(quoted=quoted, title=title))


def _suggest_slug(request: Request, typed: str, error: QuaidError) -> Response:
    """Suggest the nearest valid address, such as bob-smith for Bob Smith, or show the error if there is none."""
    collection, mark, name = typed.rpartition("::")
    parts = [part for part in name.split("/") if slugs.segment(part) != "x" or part.lower() == "x"]
    suggestion = f"{collection.lower()}{mark}{slugs.from_path('/'.join(parts))}" if parts else ""
    return render_page(
        *(request, "new.html"),
        http=200 if suggestion else error.http_status,
        problem="" if suggestion else browser_message(error),
        slug=suggestion or typed,
        typed=typed,
        existing=None,
        suggestion=suggestion,
        title=parts[-1].strip() if parts else "",
    )


@route("/ui/preview", POST="read")
async def preview_page(request: Request) -> Response:
    form = await read_form(request)
    address = form.get("slug", "")
    record = await try_operation(request, "get", slug=address) or None
    return render_fragment(
        "preview.html", preview=await _preview(request, address, form.get("text", ""), record)
    )


async def _preview(request: Request, address: str, text: str, record: Any) -> dict[str, Any]:
    resolve = await resolver_of_text(request, record, text)
    return page_preview(address, text, resolve, record.title if record else "")


def page_preview(
    address: str, text: str, resolve: LinkResolver = resolve_nothing, title: str = ""
) -> dict[str, Any]:
    """Return what the preview shows. `title` is the page's current title, used if the text has none."""
    document = markdown.parse(text)
    slug = address.rpartition("::")[2] or "page"
    parts = (document.frontmatter, document.truth, document.timeline)
    page = page_model.build_page(slug, *parts, fallback_title=title or None)
    return {
        "title": page.title,
        "summary": link_names(lede_of(page.summary, page.frontmatter, page.truth), resolve),
        "truth": markdowns.render_markdown(page.truth, resolve, title=page.title, summary=page.summary),
        "entries": timeline_entries(page.timeline, resolve),
        "problem": document.problem or "",
        "tags": page.tags,
        "type": page.type,
    }


@route("/kb/{id}", GET="read")
async def show_node(request: Request) -> Response:
    record = await call_operation(request, "kb show", node=request.path_params["id"])
    titles = {node.id: node.title for node in (*record.links, *record.backlinks)}

    def resolve(name: str) -> LinkTarget | None:
        id = name.removeprefix(ID_PREFIX).partition("::")[0].strip()
        return LinkTarget(base.node_url(id), titles[id]) if id in titles else None

    html = markdowns.render_org(record.text, resolve)
    return render_page(request, "node.html", record=record, html=html, here="/search")


MAX_NODES = 2_000
MAX_DEPTH = 4
MAX_SUGGESTIONS = 12
"""At most this many pages are suggested as the centre of the graph."""
MAX_LISTED = 200
"""The list below the drawing shows at most this many links."""

COLOURS = (
    *("person", "company", "project", "concept", "source", "journal", "decision"),
    *("commitment", "action_item", "media", "original", "deal"),
)
"""Page types that have a fixed colour. If a type does not occur, its colour is given to another type."""
MAX_QUERY = 200
"""The text of a search for the centre of the graph is cut to this many characters."""
SHAPES = ("circle", "square", "diamond", "triangle")


def node_styles(types: Iterable[str]) -> list[tuple[str, str, str, int]]:
    """Return type, colour, shape and number of pages for each type, the most frequent first.

    The first twelve types have distinct colours. Further types reuse a colour with a different shape.
    """
    counts = Counter(types)
    free = [colour for colour in COLOURS if colour not in counts]
    styles, reused = [], 0
    for name, pages in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        colour, shape = name, SHAPES[0]
        if name not in COLOURS and free:
            colour = free.pop()
        elif name not in COLOURS:
            colour = COLOURS[reused % len(COLOURS)]
            shape = SHAPES[1 + reused // len(COLOURS) % (len(SHAPES) - 1)]
            reused += 1
        styles.append((name, colour, shape, pages))
    return styles


async def load_graph(request: Request) -> dict[str, Any] | None:
    """Return the nodes and links that the query asks for, or None if it names neither a page nor a wing.

    A node is a tuple of address, title, type and distance from the centre. `centre` is the address of the page in the
    centre, or "" for a wing.
    """
    slug, wing = request.query_params.get("slug", ""), request.query_params.get("wing", "")
    depth = min(max(parse_number(request.query_params.get("depth", ""), 2), 1), MAX_DEPTH)
    if slug:
        record = await call_operation(
            request, "graph", slug=slug, depth=depth, temporal="all", limit=MAX_NODES
        )
        nodes = [
            (slugs.address(node.collection, node.slug), node.title, node.type, node.distance)
            for node in record.nodes
        ]
        centre, wing, complete = nodes[0][0], "", record.complete
    elif wing:
        record = await call_operation(request, "wing", wing=wing, limit=MAX_NODES)
        nodes = [(node.slug, node.title, node.type, 0) for node in record.nodes]
        centre, depth, complete = "", 0, len(nodes) >= record.pages
    else:
        return None
    shown = {address for address, *_ in nodes}
    links = [link for link in record.links if link.from_slug in shown and link.to_slug in shown]
    source = base.with_query("/ui/graph", {"slug": centre, "wing": wing, "depth": depth})
    return {
        "centre": centre,
        "wing": wing,
        "depth": depth,
        "nodes": nodes,
        "links": links,
        "complete": complete,
        "source": source,
    }


async def suggest_pages(request: Request, query: str) -> list[Any]:
    """Return candidates for the centre of the graph: pages that match `query` or, without one, the latest."""
    if query:
        record = await try_operation(request, "glance", text=query, limit=MAX_SUGGESTIONS)
        return list(record.answer.results) if record else []
    record = await try_operation(request, "list", limit=MAX_SUGGESTIONS)
    return list(record.pages) if record else []


@route("/graph", GET="read")
async def show_graph(request: Request) -> Response:
    query = request.query_params.get("find", "").strip()[:MAX_QUERY]
    graph, wings, pages = await gather_all(
        load_graph(request), cached_operation(request, "wings"), suggest_pages(request, query)
    )
    days, wrong = read_days(request, "on")
    day = days["on"] or f"{datetime.now(UTC):%Y-%m-%d}"
    nodes = graph["nodes"] if graph else []
    links = [
        link
        for link in (graph["links"] if graph else ())
        if (link.begins or "") <= day and (not link.valid_until or day < link.valid_until)
    ]
    return render_page(
        *(request, "graph.html"),
        graph=graph,
        titles={address: title for address, title, _, _ in nodes},
        wings=wings.wings if wings else [],
        wanted=query,
        suggestions=[(slugs.address(page.collection, page.slug), page.title, page.type) for page in pages],
        links=links[:MAX_LISTED],
        total=len(links),
        day=day,
        wrong=wrong,
        has_day=bool(days["on"]),
        most=MAX_LISTED,
        styles=node_styles(kind for _, _, kind, _ in nodes),
    )


@route("/ui/graph", GET="read")
async def graph_data(request: Request) -> Response:
    """Return the graph as JSON. Links refer to nodes by their index."""
    graph = await load_graph(request)
    if graph is None:
        return JSONResponse({"nodes": [], "links": []})
    places = {address: place for place, (address, *_) in enumerate(graph["nodes"])}
    links = [
        (
            *(places[link.from_slug], places[link.to_slug], link.relationship),
            *(link.valid_from, link.valid_until, link.begins),
        )
        for link in graph["links"]
    ]
    shown = {key: graph[key] for key in ("centre", "complete", "nodes")}
    return JSONResponse({**shown, "links": links}, headers={"Cache-Control": "no-store"})
