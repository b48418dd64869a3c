"""Review: what waits for a person. Contradictions, gaps, pages in quarantine, pages that say the same.

Each has its own tab, and is asked for only when its tab is open: comparing all pages takes a while. Whatever a click
did is told in words on the next page; what a form could not do is told beside it, with what was typed.
"""

from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from quaid.errors import InvalidArgument, PageOfFolder, QuaidError, VersionConflict
from quaid.model import slug as slugs
from quaid.model.plain_text import count_noun
from quaid.model.similarity import question_hash
from quaid.surfaces.web.pages import addresses
from quaid.surfaces.web.pages.asking import ask, attempt, form, lately, number, something_changes, together
from quaid.surfaces.web.pages.rendering import Told, day, go, page, plainly, tell, told, words

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
MOST_GAPS = 10_000
LONGEST_QUOTE = 80
OF_FOLDER = (
    "Their files are the truth: merge the two files in their folder, and the memory follows. If they are about two"
    " things, keep both."
)
"""Why pages of an attached folder are not merged from here."""


class Tried(NamedTuple):
    """A form about a gap that did not go through: what was typed, and why not."""

    id: int
    given: dict[str, str]
    problem: str = ""

    def get(self, name: str) -> str:
        return self.given.get(name, "")


NOTHING_TRIED = Tried(0, {})


class Side(NamedTuple):
    """One side of a contradiction, as it is shown."""

    keep: str
    """left or right."""
    label: str
    """Of the button that keeps it."""
    says: str
    since: str | None
    until: str | None
    quote: str
    title: str
    address: str
    place: str
    source: str


class Clash(NamedTuple):
    """A contradiction, as it is shown."""

    id: int
    type: str
    description: str
    sides: list[Side]
    edit: str
    """For a truth older than its evidence: where it is written anew."""


def clashes(found: Any) -> list[Clash]:
    return [_clash(each) for each in found.contradictions]


def _clash(each: Any) -> Clash:
    titles = {quote.slug: quote.title for quote in each.quotes if quote.title}
    is_stale = each.type == "stale"
    sides = [_side(quote, place, each) for place, quote in enumerate(each.quotes)]
    edit = addresses.edit(each.quotes[0].slug) if is_stale and each.quotes else ""
    return Clash(each.id, each.type, _headline(told(each.description, titles), each.quotes), sides, edit)


def _headline(description: str, quotes: Any) -> str:
    """Two values as a question; anything else as it was found."""
    says = [words(quote.says) for quote in quotes]
    subject, said, _ = description.partition(" is said to be both ")
    if said and len(says) == 2 and all(says):
        return f"{_without_end(subject, says[0])}: {says[0]}, or {says[1]}?"
    return description


def _without_end(subject: str, says: str) -> str:
    """Mira Dahlquist lives in, without what is said of her."""
    whole, last = subject.split(" "), says.split(" ")
    for shared in range(min(len(whole) - 1, len(last)), 0, -1):
        if whole[-shared:] == last[:shared]:
            return " ".join(whole[:-shared])
    return subject


def _side(quote: Any, place: int, each: Any) -> Side:
    kind, _, source = quote.source.partition(", ")
    is_text = not kind
    says, label = words(quote.says), "This is true"
    if each.type == "temporal":
        is_over = is_text or (kind.startswith("link") and bool(quote.until))
        says = says or ("It is over" if is_text else "")
        label = "It is over" if is_over else "It still holds"
    where = {"truth": "line", "timeline": "timeline, line", "frontmatter": "front matter"}.get(quote.part, "")
    return Side(
        ("left", "right")[place] if place < 2 else "",
        label,
        says,
        quote.since,
        quote.until,
        told(quote.quote) if quote.part in ("facts", "links") else quote.quote,
        quote.title or told(quote.slug),
        addresses.page(quote.slug, quote.part, quote.line),
        f"{where} {quote.line}" if where and quote.line else where,
        source or ("added as a link" if kind.startswith("link") and quote.part == "links" else ""),
    )


async def show(request: Request) -> Response:
    chosen = request.query_params.get("tab", "")
    return await _tab(request, chosen if chosen in ASKED else TABS[0][0])


async def _tab(request: Request, tab: str, tried: Tried = NOTHING_TRIED, http: int = 200) -> Response:
    name, arguments = ASKED[tab]
    found, contradictions, gaps, waiting = await together(
        attempt(request, name, **arguments),
        attempt(request, "contradictions", limit=1),
        attempt(request, "gaps", limit=1),
        attempt(request, "collection quarantine list"),
    )
    pairs = await _pairs(request, found) if found and tab == "duplicates" else []
    counts = {
        "contradictions": contradictions.total if contradictions else 0,
        "gaps": gaps.total if gaps else 0,
        "quarantine": len(waiting.pages) if waiting else 0,
    }
    return page(
        *(request, "review.html"),
        http=http,
        tab=tab,
        tabs=TABS,
        found=found,
        counts=counts,
        plan=None,
        pairs=pairs,
        told=Told(tried.problem, went_well=False) if tried.problem and tab != "gaps" else None,
        clashes=clashes(found) if found and tab == "contradictions" else [],
        tried=tried,
        approver=_approver(found.gaps) if found and tab == "gaps" else "",
        wordless=sum(each.approved_by is None for each in found.gaps) if found and tab == "gaps" else 0,
    )


async def _pairs(request: Request, found: Any) -> list[tuple[Any, str]]:
    """Pages that are alike, each pair with why they cannot be merged from here; "" if they can."""
    folders = await lately(request, "collection list")
    of_folder = {each.name for each in folders.collections if each.root} if folders else set()
    return [(each, _apart(each, of_folder)) for each in found.pairs]


def _apart(pair: Any, of_folder: set[str]) -> str:
    one, other = (slugs.split_address(each)[0] or "default" for each in (pair.slug, pair.other))
    if one in of_folder or other in of_folder:
        return OF_FOLDER
    return (
        "" if one == other else f"One is in {one}, the other in {other}: only pages of one collection merge."
    )


def _approver(gaps: Any) -> str:
    """Whoever allowed something before is probably the one who does so now."""
    return next((str(each.approved_by) for each in gaps if each.approved_by), "")


async def look_again(request: Request) -> Response:
    something_changes(request)
    record = await ask(request, "check")
    found = (
        count_noun(record.total, "contradiction is", "contradictions are")
        if record.total
        else "No contradiction is"
    )
    tell(request, f"Looked through the whole memory. {found} open.")
    return go(request, "/review")


async def resolve(request: Request) -> Response:
    """Keep one side of a contradiction, or both, and say what that changed."""
    given = await form(request)
    side = given.get("keep", "") or None
    try:
        record = await ask(
            request,
            "check",
            resolve=number(given.get("id", "")),
            keep=side,
            note=given.get("note", "").strip(),
        )
    except QuaidError as error:
        tell(request, f"Nothing was changed. {plainly(error)}", went_well=False)
        return go(request, "/review")
    tell(request, _settled(record), *_still_written(record))
    return go(request, "/review")


def _settled(record: Any) -> str:
    changed = [f"{told(each.says)} {_became(each)}." for each in record.changed]
    if changed:
        return " ".join(["Settled.", *changed])
    if record.kept in ("left", "right"):
        return "Settled, and remembered. No fact had to change."
    return "Settled: both stay as they are."


def _became(each: Any) -> str:
    if each.never_held:
        return "never held, and stays as history"
    if each.until is None:
        return "goes on" if each.kind == "link" else f"holds since {day(each.since)}"
    return f"ended on {day(each.until)}"


def _still_written(record: Any) -> list[tuple[str, str]]:
    """Where a page still says what was not kept: only a person changes a text."""
    return [
        (
            addresses.edit(each.slug),
            f"{each.title or told(each.slug)} still says “{_short(each.quote)}”. Edit it",
        )
        for each in record.written[:3]
    ]


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…"


async def gap(request: Request) -> Response:
    """Find the gap of a question, approve that its words are kept, close it, or close all that have no words."""
    given = await form(request)
    act, id = given.get("act", ""), number(given.get("id", ""))
    try:
        if act == "find":
            return await _tab(request, "gaps", await _asked(request, given))
        tell(request, await _gap(request, act, id, given))
    except QuaidError as error:
        return await _tab(request, "gaps", Tried(id, given, plainly(error)), error.http_status)
    return go(request, "/review?tab=gaps")


async def _gap(request: Request, act: str, id: int, given: dict[str, str]) -> str:
    """What was done, in words."""
    if act == "clear":
        record = await ask(request, "gaps clear")
        return f"Closed {count_noun(record.closed, 'question')} whose words nobody keeps."
    if act == "close":
        record = await ask(
            request, "gaps resolve", gap_id=id, resolved_by_slug=given.get("by", "").strip() or None
        )
        answered = record.gap.resolved_by_slug
        return f"Question {id} is closed" + (f": {told(answered)} answers it." if answered else ".")
    await ask(
        *(request, "gaps approve"),
        gap_id=id,
        query_text=given.get("query_text", "").strip() or None,
        sensitivity=given.get("sensitivity", ""),
        approver=given.get("approver", ""),
        redacted_query=given.get("redacted_query", "").strip() or None,
    )
    kept = "its words are" if given.get("sensitivity") == "external" else "the redacted question is"
    return f"Question {id} is approved: {kept} kept from now on."


async def _asked(request: Request, given: dict[str, str]) -> Tried:
    """The open gap that a question left. Its words are compared by their hash, and kept nowhere."""
    text = given.get("query_text", "").strip()
    wanted = question_hash(text)
    record = await ask(request, "gaps", limit=MOST_GAPS)
    for each in record.gaps:
        if text and each.query_hash == wanted:
            return Tried(each.id, given)
    return Tried(0, given, "No open question was asked in these words." if text else "Type a question.")


async def quarantine(request: Request) -> Response:
    """Bring a page and its file back, write it out, or let it go for good."""
    given = await form(request)
    try:
        await _quarantine(request, given)
    except QuaidError as error:
        return await _tab(request, "quarantine", Tried(0, given, plainly(error)), error.http_status)
    return go(request, "/review?tab=quarantine")


async def _quarantine(request: Request, given: dict[str, str]) -> None:
    address, act = given.get("page", ""), given.get("act", "")
    name = await _waiting(request, address)
    if act == "restore":
        record = await ask(request, "collection quarantine restore", page=address)
        restored = f"“{name}” is back, and so is its file {record.path}."
        tell(request, restored, (addresses.page(address), "Open it"))
    elif act == "export":
        folder = given.get("folder", "").strip()
        await ask(request, "collection quarantine export", path=folder, page=address)
        tell(request, f"“{name}” is written out to {folder}. It still waits here.")
    elif act == "discard" and given.get("sure") == "yes":
        await ask(request, "collection quarantine discard", page=address, yes=True)
        tell(request, f"“{name}” is gone for good.")
    else:
        raise InvalidArgument(name="act", problem="is restore, export, or discard with the box ticked")


async def _waiting(request: Request, address: str) -> str:
    """The title of a page in quarantine, which no other question finds."""
    record = await attempt(request, "collection quarantine list")
    titles = {f"{each.collection}::{each.slug}": each.title for each in record.pages} if record else {}
    return titles.get(address) or told(address.rpartition("::")[2])


async def merge(request: Request) -> Response:
    """What a merge would do; sent again with the versions that were shown, the merge; or that both pages stay."""
    given = await form(request)
    slug, other, into = (given.get(name, "") for name in ("slug", "other", "into"))
    if given.get("act") == "distinct":
        record = await ask(request, "distinct", slug=slug, other=other)
        names = f"{told(record.slug)} and {told(record.other)}"
        tell(request, f"Both stay: {names} are not the same, and are not compared again.")
        return go(request, "/review?tab=duplicates")
    try:
        if given.get("sure") != "yes":
            plan = await ask(request, "merge", slug=slug, other=other, into=into, dry_run=True)
            return page(
                *(request, "review.html"),
                tab="duplicates",
                tabs=TABS,
                found=None,
                counts={},
                plan=plan,
                clashes=[],
                tried=NOTHING_TRIED,
            )
        done = await ask(
            *(request, "merge"),
            slug=slug,
            other=other,
            into=into,
            yes=True,
            expected_version=number(given.get("expected_version", "")),
            other_version=number(given.get("other_version", "")),
        )
    except QuaidError as error:
        why = f"Nothing was merged. {_why_not(error)}"
        return await _tab(request, "duplicates", Tried(0, given, why), error.http_status)
    merged = f"{told(done.gone)} is part of {done.title} now, and its old address leads there."
    tell(request, merged, (addresses.page(done.kept), "Open it"))
    return go(request, "/review?tab=duplicates")


def _why_not(error: QuaidError) -> str:
    if isinstance(error, PageOfFolder):
        return OF_FOLDER
    if isinstance(error, VersionConflict):
        return "One of the pages was changed since you looked; look again at what a merge would do."
    return plainly(error)


def routes() -> list[Route]:
    return [
        Route("/review", show),
        Route("/review/check", look_again, methods=["POST"]),
        Route("/review/resolve", resolve, methods=["POST"]),
        Route("/review/gap", gap, methods=["POST"]),
        Route("/review/quarantine", quarantine, methods=["POST"]),
        Route("/review/merge", merge, methods=["POST"]),
    ]
