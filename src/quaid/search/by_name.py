"""Move pages whose name matches the typed text to the front of an answer.

Exact names come first, then names that contain the typed words, then names with words that begin with the
typed words. Within each group, names that begin with the typed text come first, then shorter names. Input of
more than a few words, or of stop words only, is not treated as a name.
"""

from quaid.model.names import EXACT_MATCH, LONGEST_NAME, PREFIX_MATCH, fold_name, match_strength
from quaid.search.answer import Answer, SearchResult
from quaid.search.plan import STOP_WORDS
from quaid.storage import chunks, pages, text_index
from quaid.storage.pages import PageHead
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import SearchFilters, TextIndex

MOST_NAMED = 6
"""Maximum number of pages moved to the front, so that other matches remain visible."""
MOST_WORDS = 5
NAMES_COMPARED = 60
"""Maximum number of pages whose names are compared."""
REASONS = {EXACT_MATCH: "its name is the query", PREFIX_MATCH: "its name begins with the query"}


def put_named_first(db: Database, answer: Answer, typed: str, filters: SearchFilters, limit: int) -> Answer:
    """Return the answer with pages whose name matches the typed text at the front, at most `limit` results.

    Such pages are added if the answer does not contain them. The answer's exact matches
    stay first.
    """
    matches = _find_named(db, fold_name(typed), filters) if len(typed) <= LONGEST_NAME else []
    if not matches:
        return answer
    results = {(result.collection, result.slug): result for result in answer.results}
    named = []
    for head, how in matches:
        other = results.pop((head.collection, head.slug), None)
        named.append(other if other and other.lane == "exact" else _named_result(head, how, other))
    named.sort(key=lambda each: each.lane != "exact")
    exact = [result for result in results.values() if result.lane == "exact"]
    rest = [result for result in results.values() if result.lane != "exact"]
    is_known = any(each.strength == "strong" for each in named)
    return answer._replace(
        results=tuple([*exact, *named, *rest][:limit]), strength="strong" if is_known else answer.strength
    )


def _find_named(db: Database, typed: str, filters: SearchFilters) -> list[tuple[PageHead, int]]:
    """Return the pages whose name matches and the strength of each match, best first."""
    wanted = typed.split()
    if len(wanted) > MOST_WORDS or all(each in STOP_WORDS for each in wanted):
        return []
    with db.reading():
        called: dict[int, list[str]] = {}
        for each in pages.pages_beginning(db, typed, NAMES_COMPARED):
            called.setdefault(each.page_id, []).append(each.name)
        expression = "title : (" + " AND ".join(f'"{each}"*' for each in wanted) + ")"
        titled = TextIndex(db, text_index.SPACED).matching_pages(expression, filters, NAMES_COMPARED)
        allowed = chunks.first_chunks_of_pages(db, list(called), filters) if any(filters) else called
        heads = pages.page_heads(db, list({*titled, *(each for each in called if each in allowed)}))
    fits: list[tuple[tuple[int, bool, int, int], PageHead]] = []
    for head in heads.values():
        title = fold_name(head.title)
        name = max(
            (title, *called.get(head.id, ())), key=lambda each: (match_strength(each, typed), each == title)
        )
        how = match_strength(name, typed)
        if how:
            fits.append(((-how, not name.startswith(typed), len(name), head.id), head))
    return [(head, -key[0]) for key, head in sorted(fits, key=lambda fit: fit[0])[:MOST_NAMED]]


def _named_result(head: PageHead, how: int, other: SearchResult | None) -> SearchResult:
    """Return a result that points to the start of the page; `other` is the answer's result for that page."""
    reason = REASONS.get(how, "its name has these words")
    is_whole = how != PREFIX_MATCH
    return SearchResult(
        *(head.slug, head.collection, head.title, head.type, head.wing, head.room),
        *("summary", head.summary, ""),
        score=1.0 if is_whole else other.score if other else 0.0,
        tokens_used=0,
        lane="exact" if how == EXACT_MATCH else "name",
        reason=f"{reason}; {other.reason}" if other else reason,
        heading_path="",
        part="truth",
        start_line=1,
        end_line=1,
        strength="strong" if is_whole or (other and other.strength == "strong") else "weak",
        rank_score=1.0 if is_whole else other.rank_score if other else 0.0,
    )
