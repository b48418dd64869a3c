"""Asking a question: by words and by meaning, as deep as a budget of tokens allows."""

from typing import Annotated, Literal

from quaid.brain import Brain
from quaid.core import dates, page, tags
from quaid.ops import background, gaps
from quaid.ops.register import Arg, op
from quaid.search import pipeline
from quaid.search.answer import Answer
from quaid.search.fuse import STRATEGIES
from quaid.store.words import Filters
from quaid.vaults import embedding


@op(
    "read",
    core=True,
    examples=(
        "quaid query 'who knows about vanadium?'",
        "quaid query 'what changed in April 2026?' --type project --depth section",
        "quaid query 'salt creep' --token-budget 800 --explain",
    ),
)
def query(
    brain: Brain,
    question: Annotated[
        str, Arg("What you want to know, in your own words.", positional=True, any_text=True)
    ],
    depth: Annotated[
        Literal["auto", "summary", "section", "full"],
        Arg("How much of each page: its summary, its best section, all of it, or what the budget allows."),
    ] = "auto",
    token_budget: Annotated[
        int | None,
        Arg("Tokens that the answer may take; config default_token_budget.", minimum=1, maximum=10**9),
    ] = None,
    wing: Annotated[str | None, Arg("Only pages of this wing, as in people.")] = None,
    type: Annotated[str | None, Arg("Only pages of this type, as in person.")] = None,
    tag: Annotated[str | None, Arg("Only pages with this tag.")] = None,
    collection: Annotated[str | None, Arg("Only pages of this collection.")] = None,
    since: Annotated[str | None, Arg("Only what is of this day or later, as in 2026-04-25.")] = None,
    until: Annotated[str | None, Arg("Only what is of this day or earlier.")] = None,
    limit: Annotated[int, Arg("How many pages.", minimum=1, maximum=1000)] = 10,
    explain: Annotated[bool, Arg("Say what each lane found.")] = False,
) -> Answer:
    """Answer a question from the memory, by words and by meaning; results fit into a budget of tokens.

    `strength` says whether the memory knows: strong, weak or none.
    """
    filters = Filters(
        type=page.check_type(type) if type else None,
        wing=wing or None,
        tag=tags.check(tag) if tag else None,
        collection=collection or None,
        since=dates.check_date(since, "since") if since else None,
        until=dates.check_date(until, "until") if until else None,
    )
    if brain.db.writable:
        embedding.cut_up(brain.db, brain.progress)  # what an import left whole; nothing to do otherwise
    merge = brain.option("search_merge_strategy")
    budget = token_budget or int(brain.option("default_token_budget"))
    embedder, problem = background.asked_model(brain) if question.strip() else (None, "")
    answer = pipeline.query(
        brain.db,
        embedder,
        question,
        now=brain.now(),
        filters=filters,
        limit=limit,
        depth=depth,
        token_budget=budget,
        merge=merge if merge in STRATEGIES else STRATEGIES[0],
        fusion_k=int(brain.option("search.fusion_k")),
        explain=explain,
        vectors=lambda: brain.vectors,
        no_model=problem,
    )
    if filters == Filters():  # a filter may have hidden the answer
        gaps.note(brain, question, answer)
    return answer

