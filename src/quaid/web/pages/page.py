"""Show, create and edit a page: text, timeline, links, facts, history and images.

An edit of a version that is no longer current is merged with the current version. If both versions changed the same
text, nothing is written, and both versions are shown side by side.
"""

import asyncio
import base64
import re
from difflib import unified_diff
from typing import Any, NamedTuple

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from quaid.errors import FileChanged, PageExists, PageMoved, PageNotFound, QuaidError, VersionConflict
from quaid.formats import markdown
from quaid.model import merge, page as page_model, plain_text, slug as slugs, timeline
from quaid.web.auth import MAX_BODY
from quaid.web.pages import base, markdown as markdowns
from quaid.web.pages.base import (
    FlashMessage,
    Form,
    LinkResolver,
    browser_message,
    cached_operation,
    call_operation,
    humanize,
    parse_number,
    read_form,
    redirect,
    render_fragment,
    render_in_turn,
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
MAX_QUERY = 200
"""The text of a search is cut to this many characters."""
PROPERTIES_SHOWN_ELSEWHERE = ("title", "type", "tags", "summary", "links", "slug", "id")


def requested_line(request: Request) -> tuple[str, int]:
    """Return the part ("L" text, "T" timeline) and the line that `at` in the query names; the line is 0 if
    there is none.
    """
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
    (links, neighbours, resolve), backlinks, facts, history, contradictions, diff = await asyncio.gather(
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
    facts.sort(key=lambda fact: bool(fact.until or fact.superseded_by))  # current facts come first
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

    def render() -> dict[str, Any]:
        at = {"at": line if part == "L" else 0, "title": record.title, "summary": record.summary}
        return {
            "truth": markdowns.render_markdown(record.compiled_truth, resolve, **at, page=address),
            "entries": timeline_entries(record.timeline, resolve, line if part == "T" else 0),
            "leftover": timeline_leftover(record.timeline, resolve),
        }

    return render_page(
        request,
        "page.html",
        http=http,
        flash=flash,
        record=record,
        address=address,
        names=names,
        conflicts=len(merge.find_conflicts(record.compiled_truth, record.frontmatter)),
        summary=names.linked(lede_of(record.summary, record.frontmatter, record.compiled_truth)),
        **await render_in_turn(request, render),
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
    links, graph = await asyncio.gather(
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
    text = plain_text.text_head(plain_text.visible_text(truth))
    is_own = plain_text.one_line(front.get("summary")) or plain_text.top_quote(text)
    return summary if is_own or not plain_text.first_paragraph(text) else ""


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
    address = form["slug"]
    try:
        await call_operation(
            request,
            "revert",
            slug=address,
            to=parse_number(form["to"]),
            expected_version=parse_number(form["version"]),
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
NO_ADDRESS = "Give the page a title with letters or digits."
ADDRESS_TAKEN = "This address is taken. Nothing was overwritten: choose another one, or open that page."
SAVED, UNCHANGED = "Saved.", "Nothing was changed, so nothing was written."
MERGED = "Saved, and merged with a change that was saved while you were editing."
SIDES = ("yours", "theirs", merge.ALL_SIDES)
MAX_BASE = 500_000
"""The form has the text that the editor started from, to merge conflicts, if it is not longer than this."""


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
    conflicts: tuple[merge.PageConflict, ...] = (),
    origin: str = "",
) -> Response:
    """Render the edit form. `record` is the stored page, if any; `theirs` is the current text after a conflict.

    `conflicts` are the parts that both versions changed, and `origin` is the text that the edit started from.
    """
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
        conflicts=[(conflict, _shown_sides(conflict)) for conflict in conflicts],
        origin=origin if conflicts and len(origin) <= MAX_BASE else "",
        preview=preview,
        limit=MAX_BODY,
    )


def _shown_sides(conflict: merge.PageConflict) -> dict[str, str]:
    """Return the text of each side of a conflict by its name, yours first."""
    values = {side.name: side.value for side in conflict.sides}
    return {
        name: values[name] if isinstance(values.get(name), str) else _format_value(values.get(name) or "")
        for name in ("yours", "theirs")
    }


async def resolver_of_text(request: Request, record: Any, text: str) -> LinkResolver:
    """Return a link resolver for content being edited: stored links of the page, then a lookup by name."""
    stored: LinkResolver = (await load_page_links(request, record))[2] if record else resolve_nothing
    names = await look_up_names(request, [text[:MAX_LINK_TEXT]])
    return lambda name: stored(name) or names.resolve(name.removesuffix(".md").removesuffix(".org"))


@route("/page/{slug:path}/edit", POST="write")
async def save_page(request: Request) -> Response:
    form = await read_form(request)
    address = request.path_params["slug"]
    text, version = form["text"], parse_number(form["version"])
    if form["resolve"]:
        return await _save_chosen(request, address, form)
    try:
        record = await call_operation(
            request,
            "put",
            slug=address,
            content=text,
            expected_version=version,
            replace_timeline=bool(form["replace_timeline"]),
        )
    except QuaidError as error:
        if message := await _save_merged(request, address, form, error):
            return redirect(
                request, base.page_url(address), message, **await _saved_values(request, address, text)
            )
        return await _save_failed(request, address, form, error)
    links: tuple[tuple[str, str], ...] = ()
    message = SAVED if record.changed else UNCHANGED
    if record.timeline_kept:
        message = f"{TIMELINE_KEPT} {'; '.join(record.timeline_kept)}."
        links = ((base.edit_url(address), "Edit again"),)
    return redirect(
        request, base.page_url(address), message, *links, **await _saved_values(request, address, text)
    )


async def _saved_values(request: Request, address: str, sent: str) -> dict[str, Any]:
    if not base.stays_open(request):
        return {}
    record = await call_operation(request, "get", slug=address)
    text, parts = _page_text(record), markdown.parse(sent)
    is_same = markdown.render(parts.frontmatter, parts.truth, parts.timeline) == text
    return base.saved_values(record.version, text, is_same=is_same)


class MergedEdit(NamedTuple):
    """A submitted text merged with the current page. The texts of conflicts are in `truth`, between markers."""

    front: dict[str, Any]
    truth: str
    entries: str
    conflicts: tuple[merge.PageConflict, ...]


def _merge_edit(form: Form, before: str, now: Any) -> MergedEdit | None:
    """Merge the submitted text, which was based on `before`, with the current page.

    Return None if `before` is empty or a text cannot be parsed. Timeline entries that the submitted text
    leaves out are removed only if `replace_timeline` is set in the form.
    """
    old, ours = markdown.parse(before), markdown.parse(form["text"])
    if not before or old.problem or ours.problem:
        return None
    front, keys = merge.merge_front_matter(
        old.frontmatter, ours.frontmatter, now.frontmatter, "yours", "theirs"
    )
    truth, texts = merge.merge_text(old.truth, ours.truth, now.compiled_truth, "yours", "theirs")
    entries = ours.timeline
    if not form["replace_timeline"]:
        entries = timeline.merge_timelines(old.timeline, entries)
    entries = merge.merge_timeline(old.timeline, entries, now.timeline)
    return MergedEdit(front, truth, entries, (*texts, *keys))


async def _save_merged(request: Request, address: str, form: Form, error: QuaidError) -> str:
    """Merge the submitted text into a page that was changed meanwhile. Return a message, or "" if that fails."""
    is_other = isinstance(error, PageMoved | PageExists)
    if is_other or not isinstance(error, VersionConflict | FileChanged):
        return ""
    now = await try_operation(request, "get", slug=address)
    merged = _merge_edit(form, form["base"], now) if now else None
    return await _put_merged(request, address, merged, now) if merged and not merged.conflicts else ""


async def _put_merged(request: Request, address: str, merged: MergedEdit, now: Any) -> str:
    """Save a merged text over the version `now`. Return a message, or "" if the text was refused."""
    try:
        record = await call_operation(
            request,
            "put",
            slug=address,
            content=markdown.render(merged.front, merged.truth, merged.entries),
            expected_version=now.version,
            replace_timeline=True,
        )
    except QuaidError:
        return ""  # the form is shown again, with the current text
    return MERGED if record.changed else SAVED  # unchanged: an earlier attempt to save had arrived after all


async def _save_chosen(request: Request, address: str, form: Form) -> Response:
    """Save the choices made for the parts of a conflict.

    Show the form again if the page has changed since, a choice is missing, or the text is refused.
    """
    now = await call_operation(request, "get", slug=address)
    version, text = parse_number(form["version"]), form["text"]
    merged = _merge_edit(form, form["origin"], now)
    choices = [form[f"choice-{place}"] for place in range(len(merged.conflicts))] if merged else []
    if merged and now.version == version and all(choice in SIDES for choice in choices):
        front, truth = dict(merged.front), merged.truth
        for conflict, choice in zip(merged.conflicts, choices, strict=True):
            if conflict.part == "text":
                truth, _ = merge.resolve_conflict(truth, {}, conflict, choice)
            else:
                value = next((side.value for side in conflict.sides if side.name == choice), None)
                front[conflict.key] = value
        front = {key: value for key, value in front.items() if value is not None}
        message = await _put_merged(request, address, merged._replace(front=front, truth=truth), now)
        if message:
            saved = await _saved_values(request, address, text)
            return redirect(request, base.page_url(address), message, **saved)
    error = VersionConflict(slug=address, expected=version, current_version=now.version)
    return await _save_failed(request, address, form, error)


async def _save_failed(request: Request, address: str, form: Form, error: QuaidError) -> Response:
    """Show the form again with the submitted text. After a conflict, show the current text beside it."""
    text, version = form["text"], parse_number(form["version"])
    now, status = await try_operation(request, "get", slug=address), error.http_status
    if not now and version and now.code == PageNotFound.code:
        return await _edit_form(request, address, text, status=409, problem=PAGE_REMOVED)
    if now and isinstance(error, (VersionConflict, FileChanged)):
        # This also handles a page that another writer created meanwhile, and a page that has moved.
        origin = form["origin"] or form["base"]
        merged = None if isinstance(error, PageMoved | PageExists) else _merge_edit(form, origin, now)
        return await _edit_form(
            request,
            slugs.address(now.collection, now.slug),
            text,
            now,
            status=status,
            theirs=_page_text(now),
            problem=_conflict_message(error, now.title),
            conflicts=merged.conflicts if merged else (),
            origin=origin,
        )
    return await _edit_form(
        request, address, text, now or None, status=status, problem=browser_message(error), version=version
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
    """Show the form for a new page. The query may contain a title, an address, or a title in place of the address."""
    params = Form(request.query_params)
    typed, title = params["slug"].strip(), _one_line(params["title"])
    address = page_address(typed, title)
    if typed and not address:
        return _new_form(request, title or typed, "", problem=NO_ADDRESS, http=400)
    if not title and typed and typed != address:
        title = typed.rpartition("::")[2].rpartition("/")[2].strip()
    if typed and (page := await try_operation(request, "get", slug=address)):
        return _new_form(request, title, address, existing=page)
    return _new_form(request, title or base.title_from_address(address), address)


def page_address(typed: str, title: str = "") -> str:
    """Return the page address for a typed address, or for the title if none was typed; "" if it has no valid part."""
    collection, mark, name = typed.strip().rpartition("::")
    parts = [part for part in (name or title).split("/") if slugs.segment(part) != "x" or part.lower() == "x"]
    if not name:
        parts = [" ".join(parts)] if parts else []
    return f"{collection.lower()}{mark}{slugs.from_path('/'.join(parts))}" if parts else ""


def _one_line(text: str) -> str:
    return " ".join(text.split())[:MAX_TITLE]


def _new_form(
    request: Request,
    title: str,
    address: str,
    text: str = "",
    *,
    problem: str = "",
    existing: Any = None,
    http: int = 200,
) -> Response:
    """Render the form for a new page. `existing` is the page that already has this address."""
    at = slugs.address(existing.collection, existing.slug) if existing else ""
    return render_page(
        request,
        "new.html",
        http=http,
        title=title,
        slug=address,
        text=text,
        problem=problem,
        existing=existing,
        existing_at=at,
        preview=page_preview(address, new_page_text(title, text)) if title or text else None,
        limit=MAX_BODY,
    )


def new_page_text(title: str, text: str) -> str:
    """Return the whole text of a new page: its title in the front matter and as a heading, then the text."""
    parts = markdown.parse(text)
    front = {"title": title, **parts.frontmatter} if title else parts.frontmatter
    truth = parts.truth.strip("\n")
    if title and not truth.startswith("# "):
        truth = f"# {title}\n\n{truth}".rstrip("\n")
    return markdown.render(front, truth, parts.timeline)


@route("/new", POST="write")
async def create_page(request: Request) -> Response:
    form = await read_form(request)
    title, text = _one_line(form["title"]), form["text"]
    address = page_address(form["slug"], title)
    if not address:
        return _new_form(request, title, form["slug"], text, problem=NO_ADDRESS, http=400)
    content = new_page_text(title, text)
    try:
        await call_operation(request, "put", slug=address, content=content, expected_version=0)
    except QuaidError as error:
        existing = await try_operation(request, "get", slug=address)
        if not existing or _page_text(existing) != content:
            taken = (existing or None) if isinstance(error, VersionConflict) else None
            problem = ADDRESS_TAKEN if taken else browser_message(error)
            return _new_form(
                request, title, address, text, problem=problem, existing=taken, http=error.http_status
            )
    url = base.edit_url(address) if base.stays_open(request) else base.page_url(address)
    return redirect(request, url, SAVED)


MAX_LINKS_OFFERED = 8


@route("/ui/links", GET="read")
async def suggest_links(request: Request) -> Response:
    """Return completions for a link that is being typed, as JSON: title, address, type, and the text to insert."""
    query = request.query_params.get("q", "").strip()[:MAX_QUERY]
    pages: list[Any] = []
    if query:
        record = await try_operation(request, "glance", query=query, words_only=True, limit=MAX_LINKS_OFFERED)
        pages = list(record.answer.results) if record else []
    elif record := await try_operation(request, "list", limit=MAX_LINKS_OFFERED):
        pages = list(record.pages)
    offers = {slugs.address(page.collection, page.slug): page for page in reversed(pages)}
    return JSONResponse(
        [
            {"title": page.title, "address": address, "type": humanize(page.type), "insert": f"[[{address}]]"}
            for address, page in reversed(offers.items())
        ][:MAX_LINKS_OFFERED]
    )


@route("/ui/preview", POST="write")
async def preview_page(request: Request) -> Response:
    form = await read_form(request)
    address, text = form["slug"], form["text"]
    if "title" in form:  # a new page
        address, text = page_address(address, form["title"]), new_page_text(_one_line(form["title"]), text)
    record = await try_operation(request, "get", slug=address) if address and "title" not in form else None
    return render_fragment("preview.html", preview=await _preview(request, address, text, record or None))


async def _preview(request: Request, address: str, text: str, record: Any) -> dict[str, Any]:
    resolve, title = await resolver_of_text(request, record, text), record.title if record else ""
    return await render_in_turn(request, lambda: page_preview(address, text, resolve, title))


def page_preview(
    address: str, text: str, resolve: LinkResolver = resolve_nothing, title: str = ""
) -> dict[str, Any]:
    """Return the template values of a preview. `title` is the page's current title, used if the text has none."""
    document = markdown.parse(text)
    slug = address.rpartition("::")[2] or "page"
    parts = (document.frontmatter, document.truth, document.timeline)
    page = page_model.build_page(slug, *parts, fallback_title=title or None)
    return {
        "title": page.title,
        "summary": link_names(lede_of(page.summary, page.frontmatter, page.truth), resolve),
        "truth": markdowns.render_markdown(
            page.truth, resolve, title=page.title, summary=page.summary, page=address
        ),
        "entries": timeline_entries(page.timeline, resolve),
        "problem": document.problem or "",
        "tags": page.tags,
        "type": page.type,
    }


@route("/attachment/{name}", GET="read")
async def show_image(request: Request) -> Response:
    """Send an image of a page."""
    page = request.query_params.get("page") or None
    record = await call_operation(request, "attachment", name=request.path_params["name"], slug=page)
    return Response(base64.b64decode(record.data), media_type=record.type)


@route("/ui/attach", POST="owner")
async def attach_image(request: Request) -> Response:
    """Store the image in the body of the request. Return the Markdown that shows it, as JSON."""
    data = base64.b64encode(await request.body()).decode()
    page = page_address(request.query_params.get("page", "")) or None  # for a new page, the typed address
    record = await try_operation(request, "attach", data=data, slug=page)
    if not record:
        return JSONResponse({"message": record.message}, 400)
    return JSONResponse({"markdown": record.markdown})
