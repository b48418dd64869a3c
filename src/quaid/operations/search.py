"""Full-text search, and unanswered questions (gaps).

Every `quaid search` imports this module, so its imports must be fast.
"""

import os
from contextlib import suppress
from typing import Annotated, Any, Literal, NamedTuple

from quaid.app import Brain
from quaid.errors import GapResolved, InvalidArgument, WrongQuestion
from quaid.model.similarity import (
    LONGEST_GAP_CONTEXT,
    fold_question,
    question_hash,
    reveals_question,
)
from quaid.operations.filters import AtLeast, search_filters, type_notes
from quaid.operations.registry import Arg, op
from quaid.search import text as text_search
from quaid.search.text import PageHit
from quaid.storage import files as durable_files, gaps
from quaid.storage.gaps import Gap


class SearchRecord(NamedTuple):
    query: str
    hits: tuple[PageHit, ...]
    notes: tuple[str, ...] = ()


@op(
    "read",
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
    trust: AtLeast = None,
    limit: Annotated[int, Arg("How many pages.", minimum=1, maximum=1000)] = 10,
    raw: Annotated[bool, Arg("The query is in FTS5 syntax.")] = False,
) -> SearchRecord:
    """Find pages by words. Pages that contain all of them come first."""
    filters = search_filters(brain, type=type, wing=wing, tag=tag, trust=trust)
    hits = tuple(text_search.search_pages(brain.db, query, filters, limit, raw=raw))
    if hits or raw:
        return SearchRecord(query, hits, () if hits else type_notes(brain, type))
    from quaid.search.spelling import correct_spelling  # most searches find something without it

    corrected, corrections = correct_spelling(brain.db, query)
    if corrections:
        hits = tuple(text_search.search_pages(brain.db, corrected, filters, limit))
    if hits:
        return SearchRecord(query, hits, tuple(map(str, corrections)))
    return SearchRecord(query, hits, type_notes(brain, type))


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

    A question is shown as a hash until its text is approved."""
    with brain.db.reading():
        rows, total = gaps.listing(brain.db, limit, resolved=include_resolved)
    return GapsRecord(tuple(_with_words(brain, rows)), total)


def seal_words(brain: Brain, text: str, option: str = "log_gaps") -> bytes | None:
    """Return a question encrypted with the key beside the memory, or None unless the option is words.

    Also return None if the package for encryption is missing.
    """
    box = _words_box(brain, make=True) if brain.option(option) == "words" else None
    return bytes(box.encrypt(text.encode())) if box else None


def can_seal(brain: Brain) -> bool:
    """Return True if questions can be encrypted here."""
    return _words_box(brain, make=True) is not None


def open_words(brain: Brain, sealed: list[bytes]) -> list[str | None]:
    """Return encrypted questions as text; None for each one that the key beside the memory does not open."""
    box = _words_box(brain) if sealed else None
    if box is None:
        return [None] * len(sealed)
    from nacl.exceptions import CryptoError

    texts: list[str | None] = []
    for data in sealed:
        try:
            texts.append(box.decrypt(data).decode())
        except CryptoError:  # encrypted with a key that is gone
            texts.append(None)
    return texts


def _with_words(brain: Brain, rows: list[gaps.Gap]) -> list[gaps.Gap]:
    """Return gaps with their decrypted words, which only the owner sees."""
    sealed = gaps.sealed_queries(brain.db) if brain.may_overwrite and not brain.agent else {}
    shown = open_words(brain, [sealed[row.id] for row in rows if row.id in sealed])
    words = dict(zip((row.id for row in rows if row.id in sealed), shown, strict=True))
    return [
        row._replace(query_text=words[row.id]) if row.query_text is None and words.get(row.id) else row
        for row in rows
    ]


def _words_box(brain: Brain, *, make: bool = False) -> Any:
    """Return the cipher for words of questions, or None. `make` creates a missing key, readable by its owner only."""
    try:
        from nacl.secret import SecretBox
    except ImportError:
        return None
    folder, name = os.path.split(brain.db.path)
    path = os.path.join(folder, f"key-of-{name}")
    try:
        if make and not os.path.exists(path):
            with suppress(FileExistsError):  # another process has made it
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
    logged = brain.db.write(
        lambda tx: gaps.log_gap(tx, digest, context.strip(), confidence_score, now, text, sealed)
    )
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
    gap = gaps.require(brain.db, gap_id)
    if gap.resolved_at is not None:
        raise GapResolved(id=gap_id, date=gap.resolved_at[:10])
    if query is None and sensitivity == "external":
        raise InvalidArgument(name="query", problem="is required for external: only its hash is stored")
    if query is not None and question_hash(query) != gap.query_hash:
        raise WrongQuestion(id=gap_id)
    if not approver.strip():
        raise InvalidArgument(name="approver", problem="is empty; name the person who approves it")
    _check_redacted(sensitivity, query, redacted_query)
    now = brain.now()
    brain.db.write(
        lambda tx: gaps.approve(
            tx,
            gaps.require(brain.db, gap_id),
            query_text=query.strip() if query and sensitivity == "external" else None,
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
    from quaid.operations.pages import require_page

    gap = gaps.require(brain.db, gap_id)
    slug = require_page(brain, resolved_by_slug).slug if resolved_by_slug else None
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
