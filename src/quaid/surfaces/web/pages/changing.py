"""Editing a page: its whole text in a textarea, a preview by the same renderer, and the version that was read.

Whoever saves over a version that is no longer current gets both texts side by side, and nothing is written.
"""

from difflib import unified_diff

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.core import page as pages, slug as slugs
from quaid.errors import PageExists, PageNotFound, QuaidError, VersionConflict
from quaid.formats import markdown as written
from quaid.surfaces.web.pages import addresses, markdown
from quaid.surfaces.web.pages.asking import ask, attempt, form, number
from quaid.surfaces.web.pages.leading import Leading, nowhere
from quaid.surfaces.web.pages.page import Line, diff_lines, entries, known_links, view
from quaid.surfaces.web.pages.rendering import go, page, piece

NEW = """---
title: {title}
type: concept
tags: []
---

# {title}

> In one sentence.

## State

---

## Timeline
"""


async def edit(request: Request) -> Response:
    asked = request.path_params["slug"]
    if "view" in request.query_params:
        return await view(request, f"{asked}/edit")
    try:
        record = await ask(request, "get", slug=asked)
    except PageNotFound:
        return await view(request, f"{asked}/edit")  # perhaps a page of that name
    address = slugs.address(record.collection, record.slug)
    text = written.render(record.frontmatter, record.compiled_truth, record.timeline)
    known = await known_links(request, record)
    return _form(request, address, record.title, text, record.version, lead=known.lead)


def _form(
    request: Request,
    address: str,
    title: str,
    text: str,
    version: int,
    *,
    status: int = 200,
    theirs: str = "",
    problem: str = "",
    lead: Leading = nowhere,
) -> Response:
    lines: list[Line] = []
    if theirs:
        told = unified_diff(theirs.splitlines(), text.splitlines(), "theirs", "yours", lineterm="", n=2)
        lines = diff_lines("\n".join(told))
    return page(
        request,
        "edit.html",
        http=status,
        address=address,
        title=title,
        text=text,
        version=version,
        theirs=theirs,
        lines=lines,
        problem=problem,
        preview=preview_of(address, text, lead),
    )


async def save(request: Request) -> Response:
    given = await form(request)
    address = request.path_params["slug"]
    text, version = given.get("text", ""), number(given.get("version", ""))
    try:
        record = await ask(request, "put", slug=address, content=text, expected_version=version)
    except (VersionConflict, PageExists) as error:
        now = await ask(
            request, "get", slug=address
        )  # also for a new page that somebody else began meanwhile
        theirs = written.render(now.frontmatter, now.compiled_truth, now.timeline)
        return _form(
            *(request, address, now.title, text, now.version),
            status=error.http_status,
            theirs=theirs,
            problem=str(error),
        )
    except QuaidError as error:
        return _form(request, address, address, text, version, status=error.http_status, problem=str(error))
    return go(addresses.page(address), "saved" if record.changed else "same")


async def new(request: Request) -> Response:
    """A page that is not there yet."""
    asked = request.query_params.get("slug", "").strip().lower()
    if not asked:
        return page(request, "new.html", problem="", slug="", there=None)
    try:
        slugs.check(slugs.split_address(asked)[1])
    except QuaidError as error:
        return page(request, "new.html", problem=str(error), slug=asked, there=None, http=error.http_status)
    if there := await attempt(request, "get", slug=asked):
        address = slugs.address(there.collection, there.slug)
        return page(request, "new.html", problem="", slug=asked, there=there, address=address)
    title = asked.rpartition("/")[2].replace("-", " ").capitalize()
    return _form(request, asked, title, NEW.format(title=title), 0)


async def preview(request: Request) -> Response:
    given = await form(request)
    address = given.get("slug", "")
    record = await attempt(request, "get", slug=address)
    lead = (await known_links(request, record)).lead if record else nowhere
    return piece("preview.html", preview=preview_of(address, given.get("text", ""), lead))


def preview_of(address: str, text: str, lead: Leading = nowhere) -> dict[str, object]:
    """What the page will look like; a new link is looked up when the page is saved."""
    document = written.parse(text)
    slug = address.rpartition("::")[2] or "page"
    made = pages.build(slug, document.frontmatter, document.truth, document.timeline)
    return {
        "title": made.title,
        "summary": markdown.line(made.summary, lead),
        "truth": markdown.render(made.truth, lead, title=made.title, summary=made.summary),
        "entries": entries(made.timeline, lead),
        "problem": document.problem or "",
        "tags": made.tags,
        "type": made.type,
    }


def routes() -> list[Route]:
    return [
        Route("/new", new),
        Route("/page/{slug:path}/edit", edit),
        Route("/page/{slug:path}/edit", save, methods=["POST"]),
        Route("/ui/preview", preview, methods=["POST"]),
    ]
