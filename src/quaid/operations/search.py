"""Full-text search, unanswered questions (gaps), and names for shell completion.

Every `quaid search` and every shell completion imports this module, so keep its imports light.
"""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from quaid.app import Brain
from quaid.config import OPTIONS, Settings
from quaid.errors import GapResolved, InvalidArgument, QuaidError, WrongQuestion
from quaid.model import page as page_model, tags
from quaid.model.similarity import (
    LONGEST_GAP_CONTEXT,
    fold_question,
    is_question,
    question_hash,
    reveals_question,
)
from quaid.operations import pages
from quaid.operations.registry import Arg, op
from quaid.search import text as text_search
from quaid.search.text import PageHit
from quaid.storage import collections, gaps, pages as pagess
from quaid.storage.gaps import Gap
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import SearchFilters

if TYPE_CHECKING:
    from quaid.search.answer import Answer


class SearchRecord(NamedTuple):
    query: str
    hits: tuple[PageHit, ...]


@op(
    "read",
    core=True,
    examples=("quaid search 'river ai board'", "quaid search oslo --type person --limit 3"),
)
def search(
    brain: Brain,
    query: Annotated[
        str, Arg("Words to search for; any text is valid.", positional=True, any_text=True, question=True)
    ],
    type: Annotated[str | None, Arg("Only pages of this type, as in person.")] = None,
    wing: Annotated[str | None, Arg("Only pages of this wing, as in people.")] = None,
    tag: Annotated[str | None, Arg("Only pages with this tag.")] = None,
    limit: Annotated[int, Arg("How many pages.", minimum=1, maximum=1000)] = 10,
    raw: Annotated[bool, Arg("The query is in FTS5 syntax.")] = False,
) -> SearchRecord:
    """Find pages by words. Pages that contain all of them come first."""
    filters = SearchFilters(
        type=page_model.check_type(type) if type else None,
        wing=pages.require_wing(brain, wing) if wing else None,
        tag=tags.check(tag) if tag else None,
    )
    return SearchRecord(query, tuple(text_search.search_pages(brain.db, query, filters, limit, raw=raw)))


LOG_GAPS = "log_gaps"
GAP_THRESHOLD = "gap_threshold"
"""Name of the setting for the minimum strength of an answer; a weaker answer records a gap."""

MAX_GAPS_TRIED = 20
"""Maximum number of gaps checked against a new page. Each check is a small search."""

GapId = Annotated[int, Arg("The gap's number, as `quaid gaps` shows it.", positional=True, minimum=1)]


class GapsRecord(NamedTuple):
    gaps: tuple[Gap, ...]
    total: int


class GapRecord(NamedTuple):
    gap: Gap
    done: Literal["logged", "counted", "approved", "resolved"]


class GapsClearRecord(NamedTuple):
    closed: int
    open: int
    """Open gaps that remain because their question text is stored."""


@op("read", command="gaps", examples=("quaid gaps", "quaid gaps --limit 5 --resolved"))
def gaps_(
    brain: Brain,
    limit: Annotated[int, Arg("How many.", minimum=1, maximum=10_000)] = 20,
    include_resolved: Annotated[bool, Arg("Include resolved gaps.", flag="--resolved")] = False,
) -> GapsRecord:
    """List questions that the memory could not answer, the most frequent first.

    A question is shown as a hash until its text is approved."""
    with brain.db.reading():
        rows, total = gaps.listing(brain.db, limit, resolved=include_resolved)
    return GapsRecord(tuple(rows), total)


@op(
    "write",
    command="gaps add",
    adds_only=True,
    examples=("quaid gaps add 'Who maintains the harbour crane?' --context 'asked in the weekly call'",),
)
def gap(
    brain: Brain,
    query_text: Annotated[
        str, Arg("The question. Only its hash is stored.", positional=True, any_text=True, question=True)
    ],
    context: Annotated[str, Arg("Where it came up, without the question itself.")] = "",
    confidence_score: Annotated[
        float | None, Arg("Score of the best answer that was found, from 0 to 1.")
    ] = None,
) -> GapRecord:
    """Record a question that the memory cannot answer. Recording it again increases its count."""
    if not fold_question(query_text):
        raise InvalidArgument(name="query_text", problem="is empty; write the question")
    if confidence_score is not None and not 0 <= confidence_score <= 1:
        raise InvalidArgument(name="confidence_score", problem=f"must be from 0 to 1, not {confidence_score}")
    if len(context) > LONGEST_GAP_CONTEXT:
        raise InvalidArgument(
            name="context", problem=f"has {len(context)} characters; the limit is {LONGEST_GAP_CONTEXT}"
        )
    if context and reveals_question(context, query_text):
        raise InvalidArgument(
            name="context", problem="repeats the question, which is not stored; describe where it came up"
        )
    digest, now = question_hash(query_text), brain.now()
    logged = brain.db.write(lambda tx: gaps.log_gap(tx, digest, context.strip(), confidence_score, now))
    return GapRecord(logged, "counted" if logged.times_seen > 1 else "logged")


@op(
    "write",
    command="gaps approve",
    examples=(
        "quaid gaps approve 3 --query-text 'What is vanadium?' --sensitivity external --approver Mira",
        "quaid gaps approve 4 --sensitivity redacted --approver Mira"
        " --redacted-query 'What do such companies sell for?'",
    ),
)
def gap_approve(
    brain: Brain,
    gap_id: GapId,
    sensitivity: Annotated[
        Literal["redacted", "external"],
        Arg("What may be shared: the redacted query, or the question itself."),
    ],
    approver: Annotated[str, Arg("Who approves it.")],
    query_text: Annotated[
        str | None,
        Arg(
            "The question again, because only its hash is stored; required for external, which stores it.",
            question=True,
        ),
    ] = None,
    redacted_query: Annotated[
        str | None, Arg("The question without names and figures; required for redacted.")
    ] = None,
) -> GapRecord:
    """Approve a gap's question, or a redacted form of it, for storage and outside research."""
    gap = gaps.require(brain.db, gap_id)
    if gap.resolved_at is not None:
        raise GapResolved(id=gap_id, date=gap.resolved_at[:10])
    if query_text is None and sensitivity == "external":
        raise InvalidArgument(name="query_text", problem="is required for external: only its hash is stored")
    if query_text is not None and question_hash(query_text) != gap.query_hash:
        raise WrongQuestion(id=gap_id)
    if not approver.strip():
        raise InvalidArgument(name="approver", problem="is empty; name the person who approves it")
    _check_redacted(sensitivity, query_text, redacted_query)
    now = brain.now()
    brain.db.write(
        lambda tx: gaps.approve(
            tx,
            gaps.require(brain.db, gap_id),
            query_text=query_text.strip() if query_text and sensitivity == "external" else None,
            sensitivity=sensitivity,
            approver=approver.strip(),
            redacted_query=redacted_query.strip() if redacted_query else None,
            now=now,
        )
    )
    return GapRecord(gaps.require(brain.db, gap_id), "approved")


@op("write", command="gaps resolve", examples=("quaid gaps resolve 3 --resolved-by-slug concepts/vanadium",))
def gap_resolve(
    brain: Brain,
    gap_id: GapId,
    resolved_by_slug: Annotated[str | None, Arg("The page that answers it.")] = None,
) -> GapRecord:
    """Close a gap, because a page answers it or it no longer matters."""
    gap = gaps.require(brain.db, gap_id)
    slug = pages.require_page(brain, resolved_by_slug).slug if resolved_by_slug else None
    now = brain.now()
    if not brain.db.write(lambda tx: gaps.resolve(tx, gap_id, slug, now)):
        raise GapResolved(id=gap_id, date=(gap.resolved_at or now)[:10])
    return GapRecord(gaps.require(brain.db, gap_id), "resolved")


@op("write", command="gaps clear", examples=("quaid gaps clear",))
def gap_clear(brain: Brain) -> GapsClearRecord:
    """Close every open gap whose text is not stored. Asking the same question again may record a new gap."""
    now = brain.now()
    closed = brain.db.write(lambda tx: gaps.resolve(tx, None, None, now))
    return GapsClearRecord(closed, gaps.listing(brain.db, 0)[1])


def record_gap(brain: Brain, question: str, answer: "Answer") -> None:
    """Record a gap if the answer is below the threshold, else resolve the open gap of the same question.

    Errors are ignored, and nothing is recorded while another process is writing.
    """
    try:
        if not brain.leaves_marks or not brain.db.writable or brain.option(LOG_GAPS) == "off":
            return
        digest = question_hash(question)
        well = ("strong",) if brain.option(GAP_THRESHOLD) == "strong" else ("strong", "weak")
        if answer.strength not in well:
            has_pages = answer.results or pagess.listing(brain.db, limit=1)
            if is_question(question) and has_pages and _is_writable(brain):
                best, now = max((result.score for result in answer.results), default=0.0), brain.now()
                brain.db.write(lambda tx: gaps.log_gap(tx, digest, "", best, now))
        elif (gap_id := gaps.open_with(brain.db, digest)) and _is_writable(brain):
            slug, now = answer.results[0].slug if answer.results else None, brain.now()
            brain.db.write(lambda tx: gaps.resolve(tx, gap_id, slug, now))
    except QuaidError:
        pass  # a full disk or a damaged file is reported by the next write


def close_answered_gaps(brain: Brain, slugs: list[str]) -> list[int]:
    """Resolve the gaps (unanswered questions) that one of these pages answers, and return their ids.

    Only gaps with stored text are tried, by text search, and at most MAX_GAPS_TRIED of them. Errors are
    ignored.
    """
    closed: list[int] = []
    try:
        for gap in gaps.listing(brain.db, MAX_GAPS_TRIED, with_text=True)[0]:
            slug = _answering_page(brain, gap.query_text or gap.redacted_query or "", slugs)
            if slug is not None:
                now = brain.now()
                brain.db.write(lambda tx, id=gap.id, by=slug, at=now: gaps.resolve(tx, id, by, at))  # type: ignore[misc]
                closed.append(gap.id)
    except QuaidError:
        pass  # the pages are written, and the gap can be resolved later
    return closed


def _answering_page(brain: Brain, question: str, slugs: list[str]) -> str | None:
    """Return the page that text search finds first, if it is one of `slugs` and the answer is strong."""
    from quaid.search import answer as answers

    answer = answers.answer_question(brain.db, None, question, now=brain.now(), limit=1, depth="summary")
    first = answer.results[0].slug if answer.results else None
    return first if answer.strength == "strong" and first in slugs else None


def _is_writable(brain: Brain) -> bool:
    """Return True if no other process holds the write lock."""
    if not brain.db.lock.try_take():
        return False
    brain.db.lock.release()
    return True


def _check_redacted(sensitivity: str, query_text: str | None, redacted_query: str | None) -> None:
    if sensitivity == "external":
        if redacted_query:
            raise InvalidArgument(
                name="redacted_query",
                problem="is only for sensitivity redacted; external shares the question itself",
            )
    elif not redacted_query or not redacted_query.strip():
        raise InvalidArgument(
            name="redacted_query", problem="is required for redacted: the question without names and figures"
        )
    elif query_text and reveals_question(redacted_query, query_text):
        raise InvalidArgument(
            name="redacted_query", problem="still contains the question; remove names and figures"
        )


MAX_SLUGS = 200  # if there are more slugs, their folders are offered instead
MAX_NAMES = 2_000  # if there are more, none is offered: a shell would complete the prefix of a partial list
LOCK_TIMEOUT_MS = 50  # how long to wait for a locked database before offering no names


def _slug_names(db: Database, start: str) -> list[str]:
    named, mark, rest = start.rpartition("::")
    slugs = pagess.slugs_or_folders(db, rest, MAX_SLUGS, MAX_NAMES + 1, named or None)
    return [f"{named}{mark}{slug}" for slug in slugs]


def _quarantined_names(db: Database, start: str) -> list[str]:
    from quaid.storage import erase as erasure

    of = "{0.collection}::{0.slug}" if "::" in start else "{0.slug}"
    return _with_prefix((of.format(page) for page in erasure.quarantined_pages(db)), start)


def _model_names(db: Database, start: str) -> list[str]:
    """Return the models of the memory with this prefix.

    Only if there are none, search all available models.
    """
    from quaid.embedding import registry as embedders

    added = embedders.parse_models(collections.get_setting(db, embedders.MODELS_SETTING))
    active = collections.get_setting(db, "embedding_model") or embedders.DEFAULT_MODEL
    names = _with_prefix([embedders.DEFAULT_MODEL, *added, active], start)
    return names or _with_prefix(embedders.available_models(added), start)


def _notebook_files(db: Database, start: str) -> list[str]:
    from quaid.notebook import layout as layouts

    notebook = layouts.find_notebook(db)
    return pagess.file_paths_beginning(db, notebook.id, start, MAX_NAMES + 1) if notebook else []


def _session_names(db: Database, start: str) -> list[str]:
    from quaid.storage import conversations

    return [each.session for each in conversations.find_by_session(db, start, MAX_NAMES + 1)]


def _skill_names(settings: Settings, start: str) -> list[str]:
    from quaid import skills

    return _with_prefix((each.name for each in skills.found(settings.skill_folders)), start)


def _token_names(settings: Settings, start: str) -> list[str]:
    from quaid.operations import service

    return _with_prefix(service.token_names(settings), start)


def _node_names(settings: Settings, start: str) -> list[str]:
    from quaid.kb import layout
    from quaid.operations import kb

    root = kb.kb_root_of(settings)
    if not os.path.isdir(root):
        return []
    paths = (path for path, _ in layout.walk_store(root) if layout.is_node_file(path))
    nodes = (path.removesuffix(layout.NODE_ENDING) for path in paths)
    return _with_prefix(nodes, start)


DATABASE_COMPLETERS: dict[str, Callable[[Database, str], list[str]]] = {
    "slugs": _slug_names,
    "quarantined": _quarantined_names,
    "collections": lambda db, start: _with_prefix((each.name for each in collections.list_all(db)), start),
    "wings": lambda db, start: pagess.names_beginning(db, "wing", start, MAX_NAMES + 1),
    "tags": lambda db, start: pagess.names_beginning(db, "tag", start, MAX_NAMES + 1),
    "models": _model_names,
    "notes": _notebook_files,
    "sessions": _session_names,
}
OTHER_COMPLETERS: dict[str, Callable[[Settings, str], list[str]]] = {
    "skills": _skill_names,
    "tokens": _token_names,
    "nodes": _node_names,
}
COMPLETION_KINDS = (*DATABASE_COMPLETERS, *OTHER_COMPLETERS)


def complete_names(settings: Settings, kind: str, start: str) -> list[str]:
    """Return the names of a kind with this prefix, or [] if there are too many."""
    of = OTHER_COMPLETERS.get(kind)
    names = of(settings, start) if of else _names_in_database(settings, kind, start)
    return names if len(names) <= MAX_NAMES else []


def _names_in_database(settings: Settings, kind: str, start: str) -> list[str]:
    """Return names from the database, or [] if its schema version is not the current one."""
    db = Database.open_for_names(settings.db_path, LOCK_TIMEOUT_MS)
    if db is None:
        return []
    with db:
        return DATABASE_COMPLETERS[kind](db, start)


def readable_settings() -> list[str]:
    """Return the names that `config get` accepts in every memory."""
    from quaid.operations.maintenance import SETTINGS

    return sorted({*SETTINGS, *OPTIONS})


def _with_prefix(every: Iterable[str], start: str) -> list[str]:
    return [each for each in dict.fromkeys(every) if each.startswith(start)]
