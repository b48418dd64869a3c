"""Answer questions by text and vector search within a token budget, and record questions without an answer
(gaps).
"""

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from quaid.app import Brain
from quaid.embedding.registry import Embedder
from quaid.errors import GapResolved, InvalidArgument, QuaidError, WrongQuestion
from quaid.folders.sync import changed_paths
from quaid.kb.layout import KB_KIND
from quaid.model import dates
from quaid.model.page import CLASSES
from quaid.model.plain_text import (
    LONGEST_GAP_CONTEXT,
    fold_question,
    is_question,
    question_hash,
    reveals_question,
)
from quaid.notebook import layout
from quaid.notebook.layout import RecallResult
from quaid.notebook.recall import search_notebook
from quaid.operations import background, notebook
from quaid.operations.history import past_texts
from quaid.operations.pages import require_page, type_notes
from quaid.operations.registry import Arg, op
from quaid.operations.search import AtLeast, Tag, Type, Wing, search_filters
from quaid.search.answer import Answer, build_answer, proposal_results, put_named_first
from quaid.search.candidates import WORDS_ONLY, RankedQuestion, rank_question
from quaid.search.conversations import conversation_results
from quaid.search.direct_answer import DirectAnswer, find_answer
from quaid.search.facts import matching_facts
from quaid.search.results import Entry
from quaid.storage import chunks, files as durable_files, pages as page_store
from quaid.storage.agents import Proposals
from quaid.storage.collections import Collections
from quaid.storage.questions import Gap, Gaps
from quaid.storage.text_index import SearchFilters

if TYPE_CHECKING:  # not imported at run time, because few memories have a reranker
    from quaid.search.rerank import Reranker

GLANCE_BUDGET = 12_000
"""Maximum number of tokens in the passages that `glance` returns."""

LOG_GAPS = "log_gaps"
GAP_THRESHOLD = "gap_threshold"
"""Name of the setting for the minimum strength of an answer.

A question with a weaker answer is recorded as a gap.
"""

OfCollection = Annotated[str | None, Arg("Only pages of this collection.")]
Since = Annotated[str | None, Arg("Only what is dated on this day or later, as in 2026-04-25.")]
Until = Annotated[str | None, Arg("Only what is dated on this day or earlier.")]


# Gaps


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
    """Number of open gaps that remain because the text of their question is stored."""


@op("read", command="gaps", examples=("quaid gaps", "quaid gaps --limit 5 --resolved"))
def gaps_(
    brain: Brain,
    limit: Annotated[int, Arg("How many.", minimum=1, maximum=10_000)] = 20,
    include_resolved: Annotated[bool, Arg("Include resolved gaps.", flag="--resolved")] = False,
) -> GapsRecord:
    """List questions that the memory could not answer, the most frequent first.

    A question is shown as a hash, unless the settings store its text or the text was approved."""
    with brain.db.reading():
        rows, total = Gaps(brain.db).read(limit, resolved=include_resolved)
    return GapsRecord(tuple(_with_words(brain, rows)), total)


def seal_words(brain: Brain, text: str, option: str = "log_gaps") -> bytes | None:
    """Encrypt a question with the key file beside the database.

    Return None if the setting `option` is not "words", PyNaCl is not installed, or the key file is unusable.
    """
    box = _words_box(brain, make=True) if brain.option(option) == "words" else None
    return bytes(box.encrypt(text.encode())) if box else None


def can_seal(brain: Brain) -> bool:
    """Return True if PyNaCl is installed and the key file, created if missing, can be read."""
    return _words_box(brain, make=True) is not None


def open_words(brain: Brain, sealed: list[bytes]) -> list[str | None]:
    """Decrypt questions with the key file beside the database.

    A question that cannot be decrypted becomes None.
    """
    box = _words_box(brain) if sealed else None
    if box is None:
        return [None] * len(sealed)
    from nacl.exceptions import CryptoError

    texts: list[str | None] = []
    for data in sealed:
        try:
            texts.append(box.decrypt(data).decode())
        except CryptoError:  # encrypted with another key
            texts.append(None)
    return texts


def _with_words(brain: Brain, rows: list[Gap]) -> list[Gap]:
    """Fill in the decrypted text of questions if the caller is the owner."""
    sealed = Gaps(brain.db).sealed() if brain.may_overwrite and not brain.agent else {}
    shown = open_words(brain, [sealed[row.id] for row in rows if row.id in sealed])
    words = dict(zip((row.id for row in rows if row.id in sealed), shown, strict=True))
    return [
        row._replace(query_text=words[row.id]) if row.query_text is None and words.get(row.id) else row
        for row in rows
    ]


def _words_box(brain: Brain, *, make: bool = False) -> Any:
    """Return the cipher for the text of questions, or None if it is not available.

    `make` creates a missing key file, which only its owner can read.
    """
    try:
        from nacl.secret import SecretBox
    except ImportError:
        return None
    folder, name = os.path.split(brain.db.path)
    path = os.path.join(folder, f"key-of-{name}")
    try:
        if make and not os.path.exists(path):
            with suppress(FileExistsError):  # another process created it first
                durable_files.write_file(path, os.urandom(SecretBox.KEY_SIZE), exclusive=True)
        with open(path, "rb") as file:
            return SecretBox(file.read())
    except (OSError, ValueError):
        return None


@op(
    "write",
    command="gaps add",
    adds_only=True,
    examples=("quaid gaps add 'Who maintains the harbour crane?' --context 'asked in the weekly call'",),
)
def gap(
    brain: Brain,
    query: Annotated[
        str,
        Arg(
            "The question. Only its hash is stored, unless `log_gaps` is text.",
            positional=True,
            any_text=True,
            question=True,
        ),
    ],
    context: Annotated[str, Arg("Where it came up, without the question itself.")] = "",
    confidence_score: Annotated[
        float | None, Arg("Score of the best answer that was found, from 0 to 1.")
    ] = None,
) -> GapRecord:
    """Record a question that the memory cannot answer. Recording it again increases its count."""
    if not fold_question(query):
        raise InvalidArgument(name="query", problem="is empty; write the question")
    if confidence_score is not None and not 0 <= confidence_score <= 1:
        raise InvalidArgument(name="confidence_score", problem=f"must be from 0 to 1, not {confidence_score}")
    if len(context) > LONGEST_GAP_CONTEXT:
        raise InvalidArgument(
            name="context", problem=f"has {len(context)} characters; the limit is {LONGEST_GAP_CONTEXT}"
        )
    if context and reveals_question(context, query):
        raise InvalidArgument(
            name="context", problem="repeats the question, which is not stored; describe where it came up"
        )
    digest, now = question_hash(query), brain.now()
    text = query.strip() if brain.option("log_gaps") == "text" else None
    sealed = seal_words(brain, query.strip())
    logged = Gaps(brain.db).log(digest, context.strip(), confidence_score, now, text, sealed)
    return GapRecord(logged, "counted" if logged.times_seen > 1 else "logged")


@op(
    "write",
    command="gaps approve",
    examples=(
        "quaid gaps approve 3 --query 'What is vanadium?' --sensitivity external --approver Mira",
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
    query: Annotated[
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
    gap = Gaps(brain.db).require(gap_id)
    if gap.resolved_at is not None:
        raise GapResolved(id=gap_id, date=gap.resolved_at[:10])
    if query is None and sensitivity == "external":
        raise InvalidArgument(name="query", problem="is required for external: only its hash is stored")
    if query is not None and question_hash(query) != gap.query_hash:
        raise WrongQuestion(id=gap_id)
    if not approver.strip():
        raise InvalidArgument(name="approver", problem="is empty; name the person who approves it")
    _check_redacted(sensitivity, query, redacted_query)
    approved = Gaps(brain.db).approve(
        gap_id,
        query_text=query.strip() if query and sensitivity == "external" else None,
        sensitivity=sensitivity,
        approver=approver.strip(),
        redacted_query=redacted_query.strip() if redacted_query else None,
        now=brain.now(),
    )
    return GapRecord(approved, "approved")


@op("write", command="gaps resolve", examples=("quaid gaps resolve 3 --resolved-by-slug concepts/vanadium",))
def gap_resolve(
    brain: Brain,
    gap_id: GapId,
    resolved_by_slug: Annotated[str | None, Arg("The page that answers it.")] = None,
) -> GapRecord:
    """Close a gap, because a page answers it or it no longer matters."""
    gap = Gaps(brain.db).require(gap_id)
    slug = require_page(brain, resolved_by_slug).slug if resolved_by_slug else None
    now = brain.now()
    if not Gaps(brain.db).resolve(gap_id, slug, now):
        raise GapResolved(id=gap_id, date=(gap.resolved_at or now)[:10])
    return GapRecord(Gaps(brain.db).require(gap_id), "resolved")


@op("write", command="gaps clear", examples=("quaid gaps clear",))
def gap_clear(brain: Brain) -> GapsClearRecord:
    """Close every open gap whose text is not stored. Asking the same question again may record a new gap."""
    gaps = Gaps(brain.db)
    return GapsClearRecord(gaps.resolve(None, None, brain.now()), gaps.read(0)[1])


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


# Questions


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
    marked superseded; `trust` marks what the user did not write. Filters other than dates and trust search only
    pages.
    """
    background.rebuild_if_deleted(brain)
    filters = _filters(brain, type, wing, tag, collection, since, until, trust)
    is_everything = filters == SearchFilters(since=filters.since, until=filters.until, trust=filters.trust)
    if is_everything:
        _sync_sources(brain)
    if brain.db.writable:
        chunks.cut_pages(brain.db, brain.progress)  # an import leaves its pages without chunks
    embedder = _embedder(brain, query)
    ranked = _rank(brain, embedder, query, filters, brain.reranker)
    answer = build_answer(
        brain.db,
        ranked,
        limit=limit,
        depth=depth,
        token_budget=token_budget or int(brain.option("default_token_budget")),
        explain=explain,
        others=_other_results(brain, ranked, embedder, limit) if is_everything else (),
        facts=matching_facts(brain.db, ranked) if is_everything else None,
        direct=_direct_answer(brain, ranked) if is_everything else None,
    )
    if filters == SearchFilters():  # with a filter, the answer may be on an excluded page
        _record_gap(brain, query, answer)
    return answer._replace(notes=(*answer.notes, *type_notes(brain, type)))


def _sync_sources(brain: Brain) -> None:
    """Index changed files of the notebook and the knowledge base, and attach a new knowledge base."""
    if not brain.db.writable:
        return
    attached = Collections(brain.db).all()
    active = [collection for collection in attached if collection.state == "active"]
    if any(collection.kind == layout.NOTEBOOK_KIND for collection in active):
        notebook.fresh_notebook(brain)
    for collection in active:
        if collection.kind == KB_KIND and (paths := changed_paths(brain.seen, collection)):
            notebook.sync_folder(brain, collection, paths)
    if (
        all(collection.kind != KB_KIND for collection in attached)
        and brain.leaves_marks
        and not brain.settings.only
        and os.path.isdir(os.path.join(brain.settings.kb_root, ".git"))
    ):
        from quaid.operations.collections import synced_kb  # that module imports this one

        synced_kb(brain)


def _embedder(brain: Brain, question: str) -> Embedder | str:
    """Return the embedder for a question, or the reason why there is none."""
    return background.question_embedder(brain) if question.strip() else WORDS_ONLY


def _rank(
    brain: Brain,
    embedder: Embedder | str,
    question: str,
    filters: SearchFilters,
    reranker: "Reranker | None" = None,
) -> RankedQuestion:
    return rank_question(
        brain.db,
        embedder,
        question,
        now=brain.now(),
        filters=filters,
        strategy=brain.option("search_merge_strategy"),
        fusion_k=int(brain.option("search.fusion_k")),
        vectors=lambda: brain.vectors,
        reranker=reranker,
    )


def _other_results(brain: Brain, ranked: RankedQuestion, embedder: Embedder | str, limit: int) -> list[Entry]:
    """Return results from conversations, and for an agent from its open proposals."""
    if background.turns_since(brain) is None:
        embedder = WORDS_ONLY
    others = conversation_results(
        brain.db, ranked, embedder, max(1, limit // 2), vectors=lambda: brain.turn_vectors
    )
    if brain.agent and Proposals(brain.db).count_open():
        others += proposal_results(brain.db, brain.author, ranked.question, limit)
    return others


def _direct_answer(brain: Brain, ranked: RankedQuestion) -> DirectAnswer | None:
    """Return an answer in one sentence from facts and links, or None.

    With a trust filter, the answer is returned only if its first fact has the required class or a higher one.
    """

    answer = find_answer(brain.db, ranked.question, ranked.today, past_texts(brain))
    limit = ranked.filters.trust_limit
    if answer is None or limit is None:
        return answer
    return answer._replace(claims=()) if CLASSES.index(answer.facts[0].trust) <= limit else None


def _record_gap(brain: Brain, question: str, answer: Answer) -> None:
    """Record a question as a gap if its answer is below the threshold, else resolve the open gap of that question.

    A query that is not a question is not recorded, and neither is any question in an empty memory.

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
                Gaps(brain.db).log(digest, "", best, now, text, sealed)
        elif (gap_id := Gaps(brain.db).open_id(digest)) and _is_writable(brain):
            slug = (answer.results[0].slug or None) if answer.results else None
            Gaps(brain.db).resolve(gap_id, slug, brain.now())
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
        chunks.cut_pages(brain.db, brain.progress)
    embedder = "without the model" if words_only else _embedder(brain, query)
    ranked = _rank(brain, embedder, query, filters)
    answer = build_answer(
        brain.db,
        ranked,
        limit=limit,
        depth="section",
        token_budget=GLANCE_BUDGET,
        direct=_direct_answer(brain, ranked) if filters == SearchFilters() else None,
    )
    answer = put_named_first(brain.db, answer, query, filters, limit)
    own = layout.find_notebook(brain.db)
    if not own or filters not in (SearchFilters(), SearchFilters(collection=own.name)):
        return GlanceRecord(answer, None)
    recalled = search_notebook(
        brain.db,
        notebook.fresh_notebook(brain),
        embedder,
        query,
        now=brain.now(),
        max_results=limit,
        min_score=float(brain.option("search.min_score")),
        vectors=lambda: brain.vectors,
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
        collection=Collections(brain.db).require(collection).name if collection else None,
        since=dates.check_date(since, "since") if since else None,
        until=dates.check_date(until, "until") if until else None,
    )
