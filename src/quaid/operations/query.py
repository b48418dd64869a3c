"""Answer questions by combined text and vector search within a token budget."""

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from quaid.app import Brain
from quaid.embedding import backfill
from quaid.embedding.registry import Embedder
from quaid.errors import QuaidError
from quaid.folders.sync import changed_paths
from quaid.kb.layout import default_store_root
from quaid.model import dates
from quaid.model.similarity import is_question, question_hash
from quaid.model.trust import CLASSES
from quaid.notebook import layout, recall as notebook_recall
from quaid.notebook.layout import RecallResult
from quaid.operations import background, notebook
from quaid.operations.filters import AtLeast, search_filters, type_notes
from quaid.operations.registry import Arg, op
from quaid.operations.search import seal_words
from quaid.search import answer as answers, direct_answer, origins
from quaid.search.answer import Answer, RankedQuestion
from quaid.search.direct_answer import DirectAnswer
from quaid.search.fusion import FUSION_STRATEGIES
from quaid.storage import collections, gaps, pages as page_store, proposals
from quaid.storage.text_index import SearchFilters

if TYPE_CHECKING:  # not imported at run time, because few memories have a reranker
    from quaid.search.rerank import Reranker

GLANCE_BUDGET = 12_000
"""The passages that `glance` returns have at most this many tokens."""

KB_KIND = "kb"
"""The kind of the collection with the nodes of the knowledge base."""

LOG_GAPS = "log_gaps"
GAP_THRESHOLD = "gap_threshold"
"""Name of the setting for the minimum strength of an answer. A weaker answer is recorded as a gap."""

Wing = Annotated[str | None, Arg("Only pages of this wing, as in people.")]
Type = Annotated[str | None, Arg("Only pages of this type, as in person.")]
Tag = Annotated[str | None, Arg("Only pages with this tag.")]
OfCollection = Annotated[str | None, Arg("Only pages of this collection.")]
Since = Annotated[str | None, Arg("Only what is dated on this day or later, as in 2026-04-25.")]
Until = Annotated[str | None, Arg("Only what is dated on this day or earlier.")]


@op(
    "read",
    core=True,
    aliases={"ask": {}},
    examples=(
        "quaid query 'who knows about vanadium?'",
        "quaid query 'what changed in April 2026?' --type project --depth section",
        "quaid query 'salt creep' --token-budget 800 --explain",
        "quaid query 'where does Alice live?' --trust person",
    ),
)
def query(
    brain: Brain,
    query: Annotated[
        str, Arg("What you want to know, in your own words.", positional=True, any_text=True, question=True)
    ],
    depth: Annotated[
        Literal["auto", "summary", "section", "full"],
        Arg("How much of each result: a line, its best section, all of it, or what the budget allows."),
    ] = "auto",
    token_budget: Annotated[
        int | None,
        Arg("Maximum tokens.", minimum=1),
    ] = None,
    wing: Wing = None,
    type: Type = None,
    tag: Tag = None,
    collection: OfCollection = None,
    since: Since = None,
    until: Until = None,
    trust: AtLeast = None,
    limit: Annotated[int, Arg("How many results.", minimum=1, maximum=1000)] = 10,
    explain: Annotated[bool, Arg("Show the scores of each result by words and by meaning.")] = False,
) -> Answer:
    """Answer a question from pages, notebook, logs, conversations and knowledge base, within a token budget.

    `origin` says where a result is stored, `strength` how well it answers: strong, weak or none. What has ended is
    marked superseded, and `trust` what the user did not write. Filters other than dates and trust search only pages.
    """
    background.rebuild_if_deleted(brain)
    filters = _filters(brain, type, wing, tag, collection, since, until, trust)
    is_everything = filters == SearchFilters(since=filters.since, until=filters.until, trust=filters.trust)
    if is_everything:
        _sync_sources(brain)
    if brain.db.writable:
        backfill.cut_pages(brain.db, brain.progress)  # an import leaves its pages without chunks
    budget = token_budget or int(brain.option("default_token_budget"))
    model = background.question_embedder(brain) if query.strip() else (None, "")
    others = (
        (lambda ranked: _other_sources(brain, ranked, filters, model[0], limit)) if is_everything else None
    )
    answer = _answer(
        brain,
        query,
        filters,
        model,
        limit=limit,
        depth=depth,
        budget=budget,
        explain=explain,
        reranker=brain.reranker,
        extend=others,
    )
    if filters == SearchFilters():  # with a filter, the answer may be on an excluded page
        _record_gap(brain, query, answer)
    return answer._replace(notes=(*answer.notes, *type_notes(brain, type)))


def _sync_sources(brain: Brain) -> None:
    """Index what was changed in the files of the notebook and of the knowledge base."""
    if not brain.db.writable:
        return
    if layout.find_notebook(brain.db) is not None:
        notebook.fresh_notebook(brain)
    attached = [collection for collection in collections.list_all(brain.db) if collection.kind == KB_KIND]
    for collection in attached:
        paths = changed_paths(brain.seen, collection) if collection.state == "active" else []
        if paths:
            notebook.sync_folder(brain, collection, paths)
    if (
        not attached
        and brain.leaves_marks
        and not brain.settings.only
        and os.path.isdir(os.path.join(_kb_root(brain), ".git"))
    ):
        from quaid.operations import kb  # slow to import, and needed only once for each memory

        kb.synced_collection(brain)


def _kb_root(brain: Brain) -> str:
    """Return the path of the knowledge base, like kb.kb_root, without importing its operations."""
    chosen, _ = brain.settings.configured("kb.store")
    if chosen:
        return brain.settings.beside_config(chosen)
    return brain.settings.path(default_store_root(brain.settings.environ, brain.settings.user_home))


def _other_sources(
    brain: Brain, ranked: RankedQuestion, filters: SearchFilters, embedder: Embedder | None, limit: int
) -> dict[str, Any]:
    """Return results from conversations and proposals, and facts, as arguments of `build_answer`."""
    with_vectors = embedder if background.turns_since(brain) is not None else None
    others = origins.conversation_results(
        brain.db,
        with_vectors,
        ranked.question,
        filters,
        max(1, limit // 2),
        vectors=lambda: brain.turn_vectors,
        searched=ranked.searched,
    )
    if brain.agent and proposals.count_open(brain.db):
        others += origins.proposal_results(brain.db, brain.author, ranked.question, limit)
    today = brain.now()[:10]
    limit_of_trust = None if filters.trust is None else filters.trust - 1
    facts = origins.matching_facts(brain.db, ranked, today, limit_of_trust)
    is_past = origins.asks_only_for_past(ranked, today)
    return {
        "direct": _direct_answer(brain, ranked.question, limit_of_trust),
        "others": others,
        "facts": facts.lines,
        "outdated": () if is_past else facts.outdated,
        "is_answered": facts.is_answer,
        # A past state is often mentioned only in passing, in results with weak evidence.
        "is_concise": not is_past,
        "is_past": is_past,
    }


def _direct_answer(brain: Brain, question: str, least: int | None = None) -> DirectAnswer | None:
    """Return the answer to a question from facts and links, or None. `least` is its lowest trust class."""

    def past(slug: str, collection: str, time: str) -> Iterable[tuple[int | None, str, str]]:
        from quaid.operations.history import past_texts  # few facts are quoted from an earlier version

        return past_texts(brain)(slug, collection, time)

    answer = direct_answer.find_answer(brain.db, question, brain.now()[:10], past)
    if answer is None or least is None:
        return answer
    return answer._replace(claims=()) if CLASSES.index(answer.facts[0].trust) <= least else None


def _record_gap(brain: Brain, question: str, answer: Answer) -> None:
    """Record a gap if the answer is below the threshold, else resolve the open gap of the same question.

    Errors are ignored, and nothing is recorded while another process is writing.
    """
    try:
        if not brain.leaves_marks or not brain.db.writable or brain.option(LOG_GAPS) == "off":
            return
        digest = question_hash(question)
        well = ("strong",) if brain.option(GAP_THRESHOLD) == "strong" else ("strong", "weak")
        if answer.strength not in well:
            has_pages = answer.results or page_store.listing(brain.db, limit=1)
            if is_question(question) and has_pages and _is_writable(brain):
                best, now = max((result.score for result in answer.results), default=0.0), brain.now()
                text = question.strip() if brain.option(LOG_GAPS) == "text" else None
                sealed = seal_words(brain, question.strip())
                brain.db.write(lambda tx: gaps.log_gap(tx, digest, "", best, now, text, sealed))
        elif (gap_id := gaps.open_with(brain.db, digest)) and _is_writable(brain):
            slug, now = (answer.results[0].slug or None) if answer.results else None, brain.now()
            brain.db.write(lambda tx: gaps.resolve(tx, gap_id, slug, now))
    except QuaidError:
        pass  # a full disk or a damaged file is reported by the next write


def _is_writable(brain: Brain) -> bool:
    """Return True if no other process holds the write lock."""
    if not brain.db.lock.try_take():
        return False
    brain.db.lock.release()
    return True


class GlanceRecord(NamedTuple):
    answer: Answer
    recalled: RecallResult | None
    """Notebook results. None if there is no notebook or a filter excludes it."""


@op("read", examples=("quaid glance 'tidal bat'", "quaid glance harbour --wing projects"))
def glance(
    brain: Brain,
    query: Annotated[str, Arg("The text typed so far.", positional=True, any_text=True, question=True)],
    wing: Wing = None,
    type: Type = None,
    collection: OfCollection = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, Arg("How many pages, and how many notebook results.", minimum=1, maximum=200)] = 12,
    words_only: Annotated[
        bool, Arg("Search by names and words only. This never waits for the model.")
    ] = False,
) -> GlanceRecord:
    """Search pages and notebook as you type. Does not record knowledge gaps.

    Pages with this name come first, then pages whose name contains these words or words that start with them."""
    filters = _filters(brain, type, wing, None, collection, since, until)
    if brain.db.writable:
        backfill.cut_pages(brain.db, brain.progress)
    model: tuple[Embedder | None, str] = (None, "without the model")
    if query.strip() and not words_only:
        model = background.question_embedder(brain)
    answer = _answer(
        *(brain, query, filters, model),
        limit=limit,
        depth="section",
        budget=GLANCE_BUDGET,
        explain=False,
        extend=lambda _: {"direct": _direct_answer(brain, query)} if filters == SearchFilters() else {},
    )
    answer = answers.put_named_first(brain.db, answer, query, filters, limit)
    own = layout.find_notebook(brain.db)
    if not own or not query.strip() or filters not in (SearchFilters(), SearchFilters(collection=own.name)):
        return GlanceRecord(answer, None)
    recalled = notebook_recall.search_notebook(
        brain.db,
        notebook.fresh_notebook(brain),
        model[0],
        query,
        now=brain.now(),
        max_results=limit,
        min_score=float(brain.option("search.min_score")),
        vectors=lambda: brain.vectors,
        no_model=model[1],
    )
    return GlanceRecord(answer, recalled)


def _filters(
    brain: Brain,
    type: str | None,
    wing: str | None,
    tag: str | None,
    collection: str | None,
    since: str | None,
    until: str | None,
    trust: str | None = None,
) -> SearchFilters:
    return search_filters(brain, type=type, wing=wing, tag=tag, trust=trust)._replace(
        collection=collections.require(brain.db, collection).name if collection else None,
        since=dates.check_date(since, "since") if since else None,
        until=dates.check_date(until, "until") if until else None,
    )


def _answer(
    brain: Brain,
    question: str,
    filters: SearchFilters,
    model: "tuple[Embedder | None, str]",
    *,
    limit: int,
    depth: str,
    budget: int,
    explain: bool,
    reranker: "Reranker | None" = None,
    extend: "Callable[[RankedQuestion], dict[str, Any]] | None" = None,
) -> Answer:
    merge = brain.option("search_merge_strategy")
    return answers.answer_question(
        brain.db,
        model[0],
        question,
        now=brain.now(),
        filters=filters,
        limit=limit,
        depth=depth,
        token_budget=budget,
        merge=merge if merge in FUSION_STRATEGIES else FUSION_STRATEGIES[0],
        fusion_k=int(brain.option("search.fusion_k")),
        explain=explain,
        vectors=lambda: brain.vectors,
        no_model=model[1],
        reranker=reranker,
        extend=extend,
    )
