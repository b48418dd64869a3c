"""Nodes found by their meaning: the knowledge base as a collection of the memory, asked like any other.

Not an operation. The collection is attached when it is first needed and brought up to date each time.
"""

import os
from typing import TYPE_CHECKING

from quaid.brain import Brain
from quaid.ops.kb import KbMatch, root

if TYPE_CHECKING:
    from quaid.kb.catalog import Catalog, NodeFilters
    from quaid.storage.collections import Collection

NAME = KIND = "kb"


def added(
    brain: Brain,
    catalog: "Catalog",
    context: str,
    filters: "NodeFilters",
    matches: tuple[KbMatch, ...],
    most: int,
) -> tuple[tuple[KbMatch, ...], str]:
    """The matches in the order of the common pipeline, those that only words found behind; and what is to be said."""
    from quaid.embedding import backfill
    from quaid.ops import background, kb
    from quaid.search import answer as answers
    from quaid.storage import collections
    from quaid.storage.text_index import SearchFilters as Pages

    if not os.path.exists(brain.settings.db_path):
        return matches[:most], "By words only: meaning needs a memory, which `quaid init` makes"
    collection = _in_step(brain)
    backfill.cut_pages(brain.db, brain.progress)
    embedder, problem = background.asked_model(brain)
    answer = answers.answer_question(
        brain.db,
        embedder,
        context,
        now=brain.now(),
        filters=Pages(collection=collection.name),
        limit=4 * most,
        vectors=lambda: brain.vectors,
        no_model=problem,
    )
    nodes = {node.path: node for node in catalog.nodes if filters.take(node)}
    known = {each.slug: each.path or "" for each in collections.page_files(brain.db, collection.id)}
    by_words = {match.path: match for match in matches}
    least = float(brain.option("search.min_score"))  # some nearness in meaning has any node to any question
    found: dict[str, KbMatch] = {}
    for result in answer.results if answer.strength != "none" else ():
        path = known.get(result.slug, "")
        if path in nodes and path not in found and (result.score >= least or path in by_words):
            had = by_words.get(path) or kb.match(nodes[path], (), 0.0)
            more = ("meaning",) if result.lane in ("meaning", "both") else () if had.match else ("words",)
            found[path] = had._replace(match=had.match + more, relevance=round(result.score, 4))
    for path, match in by_words.items():
        found.setdefault(path, match)
    note = f"By words only: {problem}" if problem else "; ".join(answer.notes)
    return tuple(list(found.values())[:most]), note


def _in_step(brain: Brain) -> "Collection":
    """The collection of the store, with its nodes as they are on the disk."""
    from quaid.ops import noting
    from quaid.ops.collections import attach
    from quaid.storage import collections

    path = os.path.realpath(root(brain))
    held = {each.root: each for each in collections.list_all(brain.db) if each.kind == KIND}
    if path not in held:
        names = {each.name for each in collections.list_all(brain.db)}
        name = next(
            each for each in (NAME, *(f"{NAME}-{number}" for number in range(2, 1000))) if each not in names
        )
        attach(brain, name, path, kind=KIND)
        return collections.require(brain.db, name)
    noting.bring_in_step(brain, held[path])
    return held[path]
