"""What an answer has besides pages: turns of conversations, the caller's own proposals, and facts."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from quaid.embedding.registry import Embedder
from quaid.model.facts import is_valid_on
from quaid.model.similarity import fold_question, is_question
from quaid.search import fusion, text as text_search
from quaid.search.answer import OtherResult, RankedQuestion, SearchResult
from quaid.search.conversations import TurnEvidence, turns_with_evidence
from quaid.search.query import name_spans
from quaid.storage import facts, pages, proposals, text_index
from quaid.storage.facts import FactRow
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import SearchFilters

if TYPE_CHECKING:  # not imported at run time, because it loads numpy
    from quaid.storage.vector_index import TurnIndex

LONGEST_TURN = 2_400
"""Maximum characters of a turn in an answer, around its best line."""

QUESTION_SHARE = 0.5
"""Weight of a turn that only asks: it repeats the words of the question, but does not answer it."""

MOST_FACTS = 5
MOST_PAGES_NAMED = 5


def conversation_results(
    db: Database,
    embedder: Embedder | None,
    question: str,
    filters: SearchFilters,
    limit: int,
    *,
    vectors: "Callable[[], TurnIndex]",
) -> list[OtherResult]:
    """Return the best turn of each conversation that is at least a weak match, best first."""
    best: dict[int, tuple[float, TurnEvidence]] = {}
    asked = fold_question(question)
    for found in turns_with_evidence(db, embedder, question, 4 * limit, vectors=vectors):
        day = (found.turn.said_at or found.conversation.started_at or "")[:10]
        if found.strength == "none" or fold_question(found.turn.text) == asked:
            continue
        if (filters.since and day < filters.since) or (filters.until and day > filters.until):
            continue
        score = found.score * (QUESTION_SHARE if is_question(found.turn.text) else 1.0)
        if score > best.get(found.conversation.id, (0.0, found))[0]:
            best[found.conversation.id] = (score, found)
    ranked = sorted(best.values(), key=lambda pair: -pair[0])[:limit]
    return [_turn_result(found, score) for score, found in ranked]


def _turn_result(found: TurnEvidence, score: float) -> OtherResult:
    held, turn = found.conversation, found.turn
    text = turn.text.strip()
    at = max(0, text.find(found.line.strip("…")) - LONGEST_TURN // 4)
    section = text if len(text) <= LONGEST_TURN else f"…{text[at : at + LONGEST_TURN]}…"
    result = SearchResult(
        *("", "", held.title, "conversation", "", "", "summary", "", ""),
        score=round(score, 2),
        tokens_used=0,
        lane="both" if len(found.lanes) > 1 else found.lanes[0],
        reason=f"turn {turn.turn} of the conversation, by {turn.role}",
        heading_path="",
        part="",
        start_line=1,
        end_line=1,
        strength=found.strength,
        rank_score=round(score, 4),
        date=(turn.said_at or held.started_at or "")[:10],
        origin="conversation",
        session=f"{held.client}:{held.session}",
        turn=turn.turn,
    )
    return OtherResult(result, found.line, section)


def proposal_results(db: Database, author: str, question: str, limit: int) -> list[OtherResult]:
    """Return the author's own open proposals that contain most words of the question."""
    results = []
    wanted = {word for word in fold_question(question).split() if len(word) > 2}
    for row in proposals.search(db, author, question, limit):
        text = proposals.added_text(row.diff)
        held = {word for word in wanted if word in fold_question(f"{row.slug} {text}")}
        score = round(len(held) / max(1, len(wanted)), 2)
        result = SearchResult(
            *(row.slug, row.collection or "default", row.summary, "proposal", "", "", "summary", "", ""),
            score=score,
            tokens_used=0,
            lane="words",
            reason=f"proposal {row.id}, not accepted yet",
            heading_path="",
            part="",
            start_line=1,
            end_line=1,
            strength="strong" if score >= fusion.STRONG_WORDS else "weak",
            rank_score=score,
            date=row.created_at[:10],
            origin="proposal",
            proposal=row.id,
        )
        statements = text_search.split_statements(text)
        line = max(statements, key=lambda each: sum(word in each.lower() for word in wanted), default=text)
        results.append(OtherResult(result, line[: text_search.LONGEST_LINE], text.strip()))
    return results


class MatchingFacts(NamedTuple):
    """Facts whose subject and predicate a question names."""

    lines: tuple[str, ...]
    """What holds first, then what has ended."""
    outdated: tuple[tuple[str, tuple[str, ...]], ...]
    """The values that have ended, folded, each with those that hold now."""


NO_FACTS = MatchingFacts((), ())

_PAST = re.compile(
    r"\b(before|previous(ly)?|former(ly)?|used to|history|earlier|past|once|original(ly)?|until|old)\b",
    re.IGNORECASE,
)


def asks_for_past(ranked: RankedQuestion) -> bool:
    """Return True if a question is about an earlier time, so that what has ended answers it."""
    return bool(ranked.candidates.periods) or bool(_PAST.search(ranked.question))


def matching_facts(db: Database, ranked: RankedQuestion, today: str) -> MatchingFacts:
    """Return the facts whose subject is named in the question and whose predicate has a word of it."""
    named = ranked.candidates.named
    own_pages = list({**named.exact, **named.mentioned})[:MOST_PAGES_NAMED]
    rows = {row.id: row for row in facts.facts_about(db, name_spans(ranked.question))}
    rows |= {row.id: row for page in own_pages for row in facts.read_facts(db, page)}
    if not rows:
        return NO_FACTS
    stemmer = text_index.Stemmer(db)
    asked = text_search.stem_text(stemmer, ranked.question).telling
    matches = []
    for row in rows.values():
        predicate = text_search.stem_text(stemmer, row.predicate.replace("_", " ")).telling
        if predicate & (asked - text_search.stem_text(stemmer, row.subject).every):
            matches.append(row)
    if not matches:
        return NO_FACTS
    replaced = {row.supersedes_id for row in matches}
    holding = [row for row in matches if row.id not in replaced and _holds(row, today)]
    ended = [row for row in matches if row not in holding]
    order = sorted(holding, key=_newest_first) + sorted(ended, key=_newest_first)
    if asks_for_past(ranked):
        order.sort(key=lambda row: not _held_in_period(row, ranked))
    slugs = {page: head.slug for page, head in pages.page_heads(db, [row.page_id for row in matches]).items()}
    outdated = []
    for row in ended:
        now = tuple(
            other.object.casefold()
            for other in holding
            if (other.subject_key, other.predicate) == (row.subject_key, row.predicate)
        )
        if now:
            outdated.append((row.object.casefold(), now))
    lines = [_fact_text(row, slugs.get(row.page_id, ""), row in holding) for row in order[:MOST_FACTS]]
    return MatchingFacts(tuple(lines), tuple(outdated))


def _holds(row: FactRow, today: str) -> bool:
    return row.valid_until is None or is_valid_on(None, row.valid_until, today)


def _newest_first(row: FactRow) -> tuple[tuple[int, ...], int]:
    since = tuple(-int(part) for part in (row.valid_from or "0").split("-") if part.isdigit())
    return since, -row.id


def _held_in_period(row: FactRow, ranked: RankedQuestion) -> bool:
    return any(
        (row.valid_from or "") <= period.end and (row.valid_until or "9999") > period.start
        for period in ranked.candidates.periods
    )


def _fact_text(row: FactRow, slug: str, holds: bool) -> str:
    text = f"{row.subject} {row.predicate.replace('_', ' ')} {row.object}"
    if holds:
        text += f", since {row.valid_from}" if row.valid_from else ""
    else:
        text += f", ended {row.valid_until}" if row.valid_until else ", superseded"
    return f"{text} ({slug})" if slug else text
