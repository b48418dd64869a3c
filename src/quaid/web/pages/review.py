"""Items that need a decision: contradictions, gaps, quarantined pages, duplicates.

Each kind has a tab and is loaded only when the tab is open, because comparing all pages takes a while.
"""

from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.errors import InvalidArgument, PageOfFolder, QuaidError, VersionConflict
from quaid.model import slug as slugs
from quaid.model.plain_text import count_noun
from quaid.model.similarity import question_hash
from quaid.web.pages import links as urls
from quaid.web.pages.base import (
    FlashMessage,
    browser_message,
    cached_operation,
    call_operation,
    clear_operation_cache,
    flash,
    format_day,
    gather_all,
    humanize,
    humanize_sentence,
    parse_number,
    read_form,
    redirect,
    render_page,
    try_operation,
)

TABS = (
    ("contradictions", "Contradictions"),
    ("gaps", "Gaps"),
    ("quarantine", "Quarantine"),
    ("duplicates", "Duplicates"),
)
TAB_OPERATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "contradictions": ("contradictions", {"limit": 50}),
    "gaps": ("gaps", {"limit": 100}),
    "quarantine": ("collection quarantine list", {}),
    "duplicates": ("dupes", {"limit": 30}),
}
MAX_GAPS = 10_000
MAX_QUOTE = 80
FOLDER_MERGE_NOTE = (
    "Their files are the truth: merge the two files in their folder, and the memory follows. If they are about two"
    " things, keep both."
)
"""Shown in place of the merge form for pages of an attached folder."""


class FailedForm(NamedTuple):
    """A form that failed, or found a gap: the submitted fields and the error message."""

    id: int
    given: dict[str, str]
    problem: str = ""

    def get(self, name: str) -> str:
        return self.given.get(name, "")


NO_FAILED_FORM = FailedForm(0, {})


class SideView(NamedTuple):
    """One side of a contradiction."""

    keep: str
    """Value of the form field: left or right."""
    label: str
    """Label of the button that keeps this side."""
    says: str
    since: str | None
    until: str | None
    quote: str
    title: str
    address: str
    place: str
    source: str


class ContradictionView(NamedTuple):
    """A contradiction with its two sides."""

    id: int
    type: str
    description: str
    sides: list[SideView]
    edit: str
    """URL of the page's editor if its truth is older than its evidence; otherwise empty."""


def contradiction_views(found: Any) -> list[ContradictionView]:
    return [_contradiction_view(each) for each in found.contradictions]


def _contradiction_view(each: Any) -> ContradictionView:
    titles = {quote.slug: quote.title for quote in each.quotes if quote.title}
    is_stale = each.type == "stale"
    sides = [_side_view(quote, place, each) for place, quote in enumerate(each.quotes)]
    edit = urls.edit_url(each.quotes[0].slug) if is_stale and each.quotes else ""
    return ContradictionView(
        each.id, each.type, _headline(humanize_sentence(each.description, titles), each.quotes), sides, edit
    )


def _headline(description: str, quotes: Any) -> str:
    """Return two contradicting values as a question; return any other description unchanged."""
    says = [humanize(quote.says) for quote in quotes]
    subject, said, _ = description.partition(" is said to be both ")
    if said and len(says) == 2 and all(says):
        return f"{_drop_shared_end(subject, says[0])}: {says[0]}, or {says[1]}?"
    return description


def _drop_shared_end(subject: str, says: str) -> str:
    """Remove the end of the subject that is repeated at the start of the value."""
    whole, last = subject.split(" "), says.split(" ")
    for shared in range(min(len(whole) - 1, len(last)), 0, -1):
        if whole[-shared:] == last[:shared]:
            return " ".join(whole[:-shared])
    return subject


def _side_view(quote: Any, place: int, each: Any) -> SideView:
    kind, _, source = quote.source.partition(", ")
    is_text = not kind
    says, label = humanize(quote.says), "This is true"
    if each.type == "temporal":
        is_over = is_text or (kind.startswith("link") and bool(quote.until))
        says = says or ("It is over" if is_text else "")
        label = "It is over" if is_over else "It still holds"
    where = {"truth": "line", "timeline": "timeline, line", "frontmatter": "front matter"}.get(quote.part, "")
    return SideView(
        ("left", "right")[place] if place < 2 else "",
        label,
        says,
        quote.since,
        quote.until,
        humanize_sentence(quote.quote) if quote.part in ("facts", "links") else quote.quote,
        quote.title or humanize_sentence(quote.slug),
        urls.page_url(quote.slug, quote.part, quote.line),
        f"{where} {quote.line}" if where and quote.line else where,
        source or ("added as a link" if kind.startswith("link") and quote.part == "links" else ""),
    )


async def show_review(request: Request) -> Response:
    chosen = request.query_params.get("tab", "")
    return await _show_tab(request, chosen if chosen in TAB_OPERATIONS else TABS[0][0])


async def _show_tab(
    request: Request, tab: str, tried: FailedForm = NO_FAILED_FORM, http: int = 200
) -> Response:
    name, arguments = TAB_OPERATIONS[tab]
    found, contradictions, gaps, waiting = await gather_all(
        try_operation(request, name, **arguments),
        try_operation(request, "contradictions", limit=1),
        try_operation(request, "gaps", limit=1),
        try_operation(request, "collection quarantine list"),
    )
    pairs = await _duplicate_pairs(request, found) if found and tab == "duplicates" else []
    counts = {
        "contradictions": contradictions.total if contradictions else 0,
        "gaps": gaps.total if gaps else 0,
        "quarantine": len(waiting.pages) if waiting else 0,
    }
    return render_page(
        *(request, "review.html"),
        http=http,
        tab=tab,
        tabs=TABS,
        found=found,
        counts=counts,
        plan=None,
        pairs=pairs,
        told=FlashMessage(tried.problem, went_well=False) if tried.problem and tab != "gaps" else None,
        clashes=contradiction_views(found) if found and tab == "contradictions" else [],
        tried=tried,
        approver=_last_approver(found.gaps) if found and tab == "gaps" else "",
        wordless=sum(each.approved_by is None for each in found.gaps) if found and tab == "gaps" else 0,
    )


async def _duplicate_pairs(request: Request, found: Any) -> list[tuple[Any, str]]:
    """Return similar pairs of pages, each with the reason why they cannot be merged here, or ""."""
    folders = await cached_operation(request, "collection list")
    of_folder = {each.name for each in folders.collections if each.root} if folders else set()
    return [(each, _merge_obstacle(each, of_folder)) for each in found.pairs]


def _merge_obstacle(pair: Any, of_folder: set[str]) -> str:
    one, other = (slugs.split_address(each)[0] or "default" for each in (pair.slug, pair.other))
    if one in of_folder or other in of_folder:
        return FOLDER_MERGE_NOTE
    return (
        "" if one == other else f"One is in {one}, the other in {other}: only pages of one collection merge."
    )


def _last_approver(gaps: Any) -> str:
    """Return the name of the last approver, as the default of the form."""
    return next((str(each.approved_by) for each in gaps if each.approved_by), "")


async def check_again(request: Request) -> Response:
    clear_operation_cache(request)
    record = await call_operation(request, "check")
    found = (
        count_noun(record.total, "contradiction is", "contradictions are")
        if record.total
        else "No contradiction is"
    )
    flash(request, f"Looked through the whole memory. {found} open.")
    return redirect(request, "/review")


async def resolve_contradiction(request: Request) -> Response:
    """Resolve a contradiction by keeping one side or both, and show what changed."""
    given = await read_form(request)
    side = given.get("keep", "") or None
    try:
        record = await call_operation(
            request,
            "check",
            resolve=parse_number(given.get("id", "")),
            keep=side,
            note=given.get("note", "").strip(),
        )
    except QuaidError as error:
        flash(request, f"Nothing was changed. {browser_message(error)}", went_well=False)
        return redirect(request, "/review")
    flash(request, _resolution_message(record), *_stale_text_links(record))
    return redirect(request, "/review")


def _resolution_message(record: Any) -> str:
    changed = [f"{humanize_sentence(each.says)} {_fact_outcome(each)}." for each in record.changed]
    if changed:
        return " ".join(["Settled.", *changed])
    if record.kept in ("left", "right"):
        return "Settled, and remembered. No fact had to change."
    return "Settled: both stay as they are."


def _fact_outcome(each: Any) -> str:
    if each.never_held:
        return "never held, and stays as history"
    if each.until is None:
        return "goes on" if each.kind == "link" else f"holds since {format_day(each.since)}"
    return f"ended on {format_day(each.until)}"


def _stale_text_links(record: Any) -> list[tuple[str, str]]:
    """Return links to edit pages whose text still states the side that was not kept. Texts are never changed here."""
    return [
        (
            urls.edit_url(each.slug),
            f"{each.title or humanize_sentence(each.slug)} still says “{_shorten_quote(each.quote)}”. Edit it",
        )
        for each in record.written[:3]
    ]


def _shorten_quote(text: str) -> str:
    return text if len(text) <= MAX_QUOTE else text[: MAX_QUOTE - 1] + "…"


async def update_gap(request: Request) -> Response:
    """Find the gap of a question, approve storing its words, close it, or close all gaps without words."""
    given = await read_form(request)
    act, id = given.get("act", ""), parse_number(given.get("id", ""))
    try:
        if act == "find":
            return await _show_tab(request, "gaps", await _find_gap(request, given))
        flash(request, await _apply_gap_action(request, act, id, given))
    except QuaidError as error:
        return await _show_tab(
            request, "gaps", FailedForm(id, given, browser_message(error)), error.http_status
        )
    return redirect(request, "/review?tab=gaps")


async def _apply_gap_action(request: Request, act: str, id: int, given: dict[str, str]) -> str:
    """Apply one action and return a message about it."""
    if act == "clear":
        record = await call_operation(request, "gaps clear")
        return f"Closed {count_noun(record.closed, 'question')} whose words are not stored."
    if act == "close":
        record = await call_operation(
            request, "gaps resolve", gap_id=id, resolved_by_slug=given.get("by", "").strip() or None
        )
        answered = record.gap.resolved_by_slug
        return f"Question {id} is closed" + (
            f": {humanize_sentence(answered)} answers it." if answered else "."
        )
    await call_operation(
        *(request, "gaps approve"),
        gap_id=id,
        query_text=given.get("query_text", "").strip() or None,
        sensitivity=given.get("sensitivity", ""),
        approver=given.get("approver", ""),
        redacted_query=given.get("redacted_query", "").strip() or None,
    )
    kept = "its words are" if given.get("sensitivity") == "external" else "the redacted question is"
    return f"Question {id} is approved: {kept} kept from now on."


async def _find_gap(request: Request, given: dict[str, str]) -> FailedForm:
    """Find the open gap of a question by its hash. The question itself is not stored."""
    text = given.get("query_text", "").strip()
    wanted = question_hash(text)
    record = await call_operation(request, "gaps", limit=MAX_GAPS)
    for each in record.gaps:
        if text and each.query_hash == wanted:
            return FailedForm(each.id, given)
    return FailedForm(0, given, "No open question was asked in these words." if text else "Type a question.")


async def update_quarantine(request: Request) -> Response:
    """Restore a quarantined page with its file, export it, or discard it."""
    given = await read_form(request)
    try:
        await _apply_quarantine_action(request, given)
    except QuaidError as error:
        return await _show_tab(
            request, "quarantine", FailedForm(0, given, browser_message(error)), error.http_status
        )
    return redirect(request, "/review?tab=quarantine")


async def _apply_quarantine_action(request: Request, given: dict[str, str]) -> None:
    address, act = given.get("page", ""), given.get("act", "")
    name = await _quarantined_title(request, address)
    if act == "restore":
        record = await call_operation(request, "collection quarantine restore", page=address)
        restored = f"“{name}” is back, and so is its file {record.path}."
        flash(request, restored, (urls.page_url(address), "Open it"))
    elif act == "export":
        folder = given.get("folder", "").strip()
        await call_operation(request, "collection quarantine export", path=folder, page=address)
        flash(request, f"“{name}” is written out to {folder}. It still waits here.")
    elif act == "discard" and given.get("sure") == "yes":
        await call_operation(request, "collection quarantine discard", page=address, yes=True)
        flash(request, f"“{name}” is gone for good.")
    else:
        raise InvalidArgument(name="act", problem="is restore, export, or discard with the box ticked")


async def _quarantined_title(request: Request, address: str) -> str:
    """Return the title of a page in quarantine, which `get` does not find."""
    record = await try_operation(request, "collection quarantine list")
    titles = {f"{each.collection}::{each.slug}": each.title for each in record.pages} if record else {}
    return titles.get(address) or humanize_sentence(address.rpartition("::")[2])


async def merge_pages(request: Request) -> Response:
    """Show what a merge would do; merge if the form confirms it; or record that the two pages are distinct.

    The merge is sent with the versions that were shown, so a page changed in between is a conflict.
    """
    given = await read_form(request)
    slug, other, into = (given.get(name, "") for name in ("slug", "other", "into"))
    if given.get("act") == "distinct":
        record = await call_operation(request, "distinct", slug=slug, other=other)
        names = f"{humanize_sentence(record.slug)} and {humanize_sentence(record.other)}"
        flash(request, f"Both stay: {names} are not the same, and are not compared again.")
        return redirect(request, "/review?tab=duplicates")
    try:
        if given.get("sure") != "yes":
            plan = await call_operation(request, "merge", slug=slug, other=other, into=into, dry_run=True)
            return render_page(
                *(request, "review.html"),
                tab="duplicates",
                tabs=TABS,
                found=None,
                counts={},
                plan=plan,
                clashes=[],
                tried=NO_FAILED_FORM,
            )
        done = await call_operation(
            *(request, "merge"),
            slug=slug,
            other=other,
            into=into,
            yes=True,
            expected_version=parse_number(given.get("expected_version", "")),
            other_version=parse_number(given.get("other_version", "")),
        )
    except QuaidError as error:
        why = f"Nothing was merged. {_merge_failure(error)}"
        return await _show_tab(request, "duplicates", FailedForm(0, given, why), error.http_status)
    merged = f"{humanize_sentence(done.gone)} is part of {done.title} now, and its old address leads there."
    flash(request, merged, (urls.page_url(done.kept), "Open it"))
    return redirect(request, "/review?tab=duplicates")


def _merge_failure(error: QuaidError) -> str:
    if isinstance(error, PageOfFolder):
        return FOLDER_MERGE_NOTE
    if isinstance(error, VersionConflict):
        return "One of the pages was changed since you looked; look again at what a merge would do."
    return browser_message(error)


def routes() -> list[Route]:
    return [
        Route("/review", show_review),
        Route("/review/check", check_again, methods=["POST"]),
        Route("/review/resolve", resolve_contradiction, methods=["POST"]),
        Route("/review/gap", update_gap, methods=["POST"]),
        Route("/review/quarantine", update_quarantine, methods=["POST"]),
        Route("/review/merge", merge_pages, methods=["POST"]),
    ]
