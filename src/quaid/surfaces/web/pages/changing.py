"""Editing a page: its whole text in a textarea, a preview by the same renderer, and the version that was read.

Whoever saves over a version that is no longer current gets both texts side by side, and nothing is written.
"""

import json
import re
from difflib import unified_diff
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.errors import FileChanged, PageExists, PageMoved, PageNotFound, QuaidError, VersionConflict
from quaid.formats import markdown
from quaid.model import page as page_model, slug as slugs
from quaid.surfaces.web.guard import MAX_BODY
from quaid.surfaces.web.pages import addresses, markdown as markdowns
from quaid.surfaces.web.pages.asking import ask, attempt, form, number, together
from quaid.surfaces.web.pages.leading import Leading, Place, nowhere
from quaid.surfaces.web.pages.naming import linked, named
from quaid.surfaces.web.pages.page import Line, diff_lines, entries, known_links, lede, view
from quaid.surfaces.web.pages.rendering import go, page, piece, plainly, tell

READ_FOR_NAMES = 200_000
"""Characters of a text whose links are looked up."""
LONGEST_TITLE = 200
REMOVED = "This page was removed while you were writing. Your text is still here: saving makes the page anew."
KEPT = (
    "Timeline entries that your text left out or changed were kept; to remove them, edit the page again and tick"
    " “Remove timeline entries”. Kept:"
)
_PLAIN = re.compile(r"[^\W\d_](?:[\w '’.-]*[\w.])?")
"""A title that YAML takes for a text as it is."""

NEW = """---
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


async def edit(request: Request) -> Response:
    asked = request.path_params["slug"]
    if "view" in request.query_params:
        return await view(request, f"{asked}/edit")
    try:
        record = await ask(request, "get", slug=asked)
    except PageNotFound:
        return await view(request, f"{asked}/edit")  # perhaps a page of that name
    return await _form(request, slugs.address(record.collection, record.slug), _text(record), record)


def _text(record: Any) -> str:
    return markdown.render(record.frontmatter, record.compiled_truth, record.timeline)


async def _form(
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
    """The text of a page, to be changed: the record is what the memory has of it now."""
    lines: list[Line] = []
    if theirs:
        told = unified_diff(theirs.splitlines(), text.splitlines(), "theirs", "yours", lineterm="", n=2)
        lines = diff_lines("\n".join(told))
    preview = preview_of(address, text, await links_of(request, record, text), record.title if record else "")
    if version is None:
        version = record.version if record else 0
    return page(
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


async def links_of(request: Request, record: Any, text: str) -> Leading:
    """Where the links of a text lead: those that the page had by what the memory found, new ones by their names."""
    known, names = await together(_known(request, record), named(request, [text[:READ_FOR_NAMES]]))

    def lead(name: str) -> Place | None:
        found: Place | None = known(name) or names.lead(name.removesuffix(".md").removesuffix(".org"))
        return found

    return lead


async def _known(request: Request, record: Any) -> Leading:
    return (await known_links(request, record)).lead if record else nowhere


async def save(request: Request) -> Response:
    given = await form(request)
    address = request.path_params["slug"]
    text, version = given.get("text", ""), number(given.get("version", ""))
    replace = bool(given.get("replace_timeline"))
    try:
        record = await ask(
            request,
            "put",
            slug=address,
            content=text,
            expected_version=version,
            replace_timeline=replace,
        )
    except QuaidError as error:
        return await _refused(request, address, text, version, error)
    if record.timeline_kept:
        listed = "; ".join(record.timeline_kept)
        tell(request, f"{KEPT} {listed}.", (addresses.edit(address), "Edit again"))
        return go(request, addresses.page(address))
    return go(request, addresses.page(address), "saved" if record.changed else "same")


async def _refused(request: Request, address: str, text: str, version: int, error: QuaidError) -> Response:
    """The form again, with what was typed: beside what the page says now, if somebody else was faster."""
    now, status = await attempt(request, "get", slug=address), error.http_status
    if not now and version and now.code == PageNotFound.code:
        return await _form(request, address, text, status=409, problem=REMOVED)
    if now and isinstance(error, (VersionConflict, FileChanged)):
        # Also for a new page that somebody else began meanwhile, and for one that has another address by now.
        there = slugs.address(now.collection, now.slug)
        return await _form(
            *(request, there, text, now), status=status, theirs=_text(now), problem=_faster(error, now.title)
        )
    return await _form(
        *(request, address, text, now or None), status=status, problem=plainly(error), version=version
    )


def _faster(error: QuaidError, title: str) -> str:
    """Who was faster."""
    if isinstance(error, FileChanged):
        return f"The file {error.facts['path']} was changed outside while you were writing."
    if isinstance(error, PageMoved):
        return f"The page was renamed or merged while you were writing: it is “{title}” now."
    if isinstance(error, PageExists):
        return f"“{title}” was begun by somebody else meanwhile."
    return "Somebody saved while you were writing."


async def new(request: Request) -> Response:
    """A page that is not there yet."""
    typed = request.query_params.get("slug", "").strip()
    asked = typed.lower()
    if not asked:
        return page(request, "new.html", problem="", slug="", there=None, offer="", title="")
    try:
        slugs.check(slugs.split_address(asked)[1])
    except QuaidError as error:
        return _offer(request, typed, error)
    if there := await attempt(request, "get", slug=asked):
        address = slugs.address(there.collection, there.slug)
        return page(
            request, "new.html", problem="", slug=asked, there=there, address=address, offer="", title=""
        )
    title = " ".join(request.query_params.get("title", "").split())[:LONGEST_TITLE]
    title = title or asked.rpartition("/")[2].replace("-", " ").capitalize()
    said = title if _PLAIN.fullmatch(title) else json.dumps(title, ensure_ascii=False)
    return await _form(request, asked, NEW.format(said=said, title=title))


def _offer(request: Request, typed: str, error: QuaidError) -> Response:
    """The address that is nearest to what was typed, and the title that it had: Bob Smith is at bob-smith."""
    collection, mark, name = typed.rpartition("::")
    parts = [each for each in name.split("/") if slugs.segment(each) != "x" or each.lower() == "x"]
    offer = f"{collection.lower()}{mark}{slugs.from_path('/'.join(parts))}" if parts else ""
    title = parts[-1].strip() if parts else ""
    return page(
        *(request, "new.html"),
        http=200 if offer else error.http_status,
        problem="" if offer else plainly(error),
        slug=offer or typed,
        typed=typed,
        there=None,
        offer=offer,
        title=title,
    )


async def preview(request: Request) -> Response:
    given = await form(request)
    address, text = given.get("slug", ""), given.get("text", "")
    record = await attempt(request, "get", slug=address) or None
    lead = await links_of(request, record, text)
    return piece("preview.html", preview=preview_of(address, text, lead, record.title if record else ""))


def preview_of(address: str, text: str, lead: Leading = nowhere, known: str = "") -> dict[str, Any]:
    """What the page will look like. A text that says no title keeps the one by which the page is known."""
    document = markdown.parse(text)
    slug = address.rpartition("::")[2] or "page"
    parts = (document.frontmatter, document.truth, document.timeline)
    made = page_model.build_page(slug, *parts, fallback_title=known or None)
    return {
        "title": made.title,
        "summary": linked(lede(made.summary, made.frontmatter, made.truth), lead),
        "truth": markdowns.render(made.truth, lead, title=made.title, summary=made.summary),
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
