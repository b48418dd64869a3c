"""Review: what waits for a person. Contradictions, gaps, pages in quarantine, pages that say the same.

Each has its own tab, and is asked for only when its tab is open: comparing all pages takes a while.
"""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.errors import InvalidArgument
from quaid.surfaces.web.pages.asking import ask, attempt, form, number, something_changes, together
from quaid.surfaces.web.pages.rendering import go, page

TABS = (
    ("contradictions", "Contradictions"),
    ("gaps", "Gaps"),
    ("quarantine", "Quarantine"),
    ("duplicates", "Duplicates"),
)
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "contradictions": ("contradictions", {"limit": 50}),
    "gaps": ("gaps", {"limit": 100}),
    "quarantine": ("collection quarantine list", {}),
    "duplicates": ("dupes", {"limit": 30}),
}


async def show(request: Request) -> Response:
    chosen = request.query_params.get("tab", "")
    tab = chosen if chosen in ASKED else TABS[0][0]
    name, arguments = ASKED[tab]
    found, contradictions, gaps, waiting = await together(
        attempt(request, name, **arguments),
        attempt(request, "contradictions", limit=1),
        attempt(request, "gaps", limit=1),
        attempt(request, "collection quarantine list"),
    )
    counts = {
        "contradictions": contradictions.total if contradictions else 0,
        "gaps": gaps.total if gaps else 0,
        "quarantine": len(waiting.pages) if waiting else 0,
    }
    return page(request, "review.html", tab=tab, tabs=TABS, found=found, counts=counts, plan=None)


async def look_again(request: Request) -> Response:
    something_changes(request)
    await ask(request, "check")
    return go("/review", "checked")


async def resolve(request: Request) -> Response:
    given = await form(request)
    await ask(request, "check", resolve=number(given.get("id", "")), note=given.get("note", "").strip())
    return go("/review", "resolved")


async def gap(request: Request) -> Response:
    """Approve that a question's words are kept, or close it."""
    given = await form(request)
    id = number(given.get("id", ""))
    if given.get("act") == "close":
        await ask(request, "gaps resolve", gap_id=id, by=given.get("by", "").strip() or None)
        return go("/review?tab=gaps", "closed")
    await ask(
        *(request, "gaps approve"),
        gap_id=id,
        query_text=given.get("query_text", ""),
        sensitivity=given.get("sensitivity", ""),
        approver=given.get("approver", ""),
        redacted_query=given.get("redacted_query", "").strip() or None,
    )
    return go("/review?tab=gaps", "approved")


async def quarantine(request: Request) -> Response:
    given = await form(request)
    address, act = given.get("page", ""), given.get("act", "")
    if act == "restore":
        await ask(request, "collection quarantine restore", page=address)
        return go("/review?tab=quarantine", "restored")
    if act == "export":
        folder = given.get("folder", "").strip()
        await ask(request, "collection quarantine export", path=folder, page=address)
        return go("/review?tab=quarantine", "exported")
    if act == "discard" and given.get("sure") == "yes":
        await ask(request, "collection quarantine discard", page=address, yes=True)
        return go("/review?tab=quarantine", "discarded")
    raise InvalidArgument(name="act", problem="is restore, export, or discard with the box ticked")


async def merge(request: Request) -> Response:
    """What a merge would do; and, sent again with the versions that were shown, the merge itself."""
    given = await form(request)
    slug, other, into = (given.get(name, "") for name in ("slug", "other", "into"))
    if given.get("sure") != "yes":
        plan = await ask(request, "merge", slug=slug, other=other, into=into, dry_run=True)
        return page(*(request, "review.html"), tab="duplicates", tabs=TABS, found=None, counts={}, plan=plan)
    await ask(
        *(request, "merge"),
        slug=slug,
        other=other,
        into=into,
        yes=True,
        page_version=number(given.get("page_version", "")),
        other_version=number(given.get("other_version", "")),
    )
    return go("/review?tab=duplicates", "merged")


def routes() -> list[Route]:
    return [
        Route("/review", show),
        Route("/review/check", look_again, methods=["POST"]),
        Route("/review/resolve", resolve, methods=["POST"]),
        Route("/review/gap", gap, methods=["POST"]),
        Route("/review/quarantine", quarantine, methods=["POST"]),
        Route("/review/merge", merge, methods=["POST"]),
    ]
