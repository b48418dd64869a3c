"""Search the notebook, and list the pages of the memory that are about a project.

Half of a chunk's score is the share of the query's words that it contains, weighted by rarity. The other half
is how far its similarity to the query exceeds the similarity of an unrelated chunk. Without an embedder, only
the words count.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from quaid.embedding.registry import Embedder
from quaid.errors import QuaidError
from quaid.folders.scanner import Folder
from quaid.formats import markdown
from quaid.model import slug as slugs
from quaid.model.plain_text import shorten
from quaid.notebook.layout import DAILY, REFERENCE, RecallHit, RecallResult, folder_exists, folder_missing
from quaid.search import text as text_search
from quaid.search.candidates import MeaningLane, RankedQuestion, best_first, rank_question, standing_out
from quaid.search.text import EXCERPT_WIDTH, STOP_WORDS, ExcerptMarker, word_share
from quaid.storage import chunks, collections, text_index
from quaid.storage.chunks import ChunkRow
from quaid.storage.collections import Collection
from quaid.storage.sqlite.connection import Database
from quaid.storage.text_index import SearchFilters, TextIndex

if TYPE_CHECKING:  # not imported at run time, because it loads numpy
    from quaid.storage.vector_index import ChunkIndex

MAX_RESULTS, MIN_SCORE = 15, 0.25
CANDIDATES_PER_RESULT = 4
"""Number of chunks scored per requested result: this many of the best by words, and this many by meaning."""


def search_notebook(
    db: Database,
    notebook: Collection,
    embedder: Embedder | str,
    query: str,
    *,
    now: str,
    max_results: int = MAX_RESULTS,
    min_score: float = MIN_SCORE,
    vectors: "Callable[[], ChunkIndex] | None" = None,
) -> RecallResult:
    """Search the notebook and return hits with at least `min_score`, best first."""
    ranked = rank_question(
        db,
        embedder,
        query,
        now=now,
        filters=SearchFilters(collection=notebook.name),
        vectors=vectors,
    )
    with db.reading():
        worth = _score_chunks(db, ranked, CANDIDATES_PER_RESULT * max_results)
        scores = {chunk: score for chunk, (score, _) in worth.items() if score >= min_score}
        best = sorted(scores, key=lambda chunk: (-scores[chunk], chunk))
        rows = _without_overlaps(chunks.load(db, best[: 2 * max_results]))[:max_results]
        hits = _build_hits(db, notebook, ranked, rows, worth)
    off = ranked.meaning if isinstance(ranked.meaning, str) else ""
    return RecallResult(
        query,
        tuple(hit for hit in hits if not hit.path.startswith(f"{DAILY}/")),
        tuple(hit for hit in hits if hit.path.startswith(f"{DAILY}/")),
        not off,
        off,
        "" if folder_exists(notebook) else str(folder_missing(notebook)),
    )


_ChunkScore = tuple[float, Literal["words", "meaning", "both"]]
"""The score of a chunk, and the kind of search that found the chunk."""


def _score_chunks(db: Database, ranked: RankedQuestion, judged: int) -> dict[int, _ChunkScore]:
    """Return the scores of the best `judged` chunks by words and the best `judged` chunks by meaning."""
    candidates, meaning = ranked.candidates, ranked.meaning
    evidence = candidates.evidence
    ways = (evidence.words, evidence.cosines)
    chosen = {chunk for way in ways for chunk in best_first(way)[:judged]}
    held: dict[int, list[str]] = {chunk: [] for chunk in chosen}
    for part in candidates.plan.parts:
        matched = list(TextIndex(db, text_index.CHUNKS).scores_of(part.quoted, list(chosen)))
        for chunk in _exact_matches(db, part.text, matched):
            held[chunk].append(part.text)
    weights = candidates.word_weights
    most = MIN_SCORE if all(part.text.lower() in STOP_WORDS for part in candidates.plan.parts) else 1.0
    found_near = set(evidence.lanes[0])
    worth: dict[int, _ChunkScore] = {}
    cosines = meaning.cosines(list(chosen)) if isinstance(meaning, MeaningLane) else {}
    for chunk in chosen:
        share = min(most, word_share(held[chunk], weights))
        near = None
        if isinstance(meaning, MeaningLane) and chunk in cosines:
            near = standing_out(cosines[chunk], meaning.baseline, meaning.embedded)
        worth[chunk] = (
            evidence_score(share, near),
            "meaning" if not held[chunk] else "both" if chunk in found_near else "words",
        )
    return worth


def evidence_score(words: float, meaning: float | None) -> float:
    """Return the mean of the share of words and of 1.5 times the result of `standing_out`, both at most 1.

    If `meaning` is None, only the share of words counts.
    """
    if meaning is None:
        return round(words, 2)
    return round(min(1.0, (words + min(1.0, 1.5 * meaning)) / 2), 2)


def _exact_matches(db: Database, part: str, matched: list[int]) -> list[int]:
    """Drop chunks that match only because they contain a stop word with the same stem as the query part."""
    stemmer = text_index.Stemmer(db)
    if not matched or not text_search.is_mistakable(stemmer, part):
        return matched
    stems = text_search.stem_text(stemmer, part)
    return [
        row.id
        for row in chunks.load(db, matched)
        if text_search.stem_text(stemmer, f"{row.heading_path}\n{row.text}").hold(stems)
    ]


def _without_overlaps(rows: list[ChunkRow]) -> list[ChunkRow]:
    """Drop rows that share a line with a better row, because chunks of a file overlap.

    The rows must be sorted, best first.
    """
    distinct: list[ChunkRow] = []
    for row in rows:
        same_page = [other for other in distinct if other.page_id == row.page_id]
        if not any(row.start_line <= one.end_line and one.start_line <= row.end_line for one in same_page):
            distinct.append(row)
    return distinct


def _build_hits(
    db: Database,
    notebook: Collection,
    ranked: RankedQuestion,
    rows: list[ChunkRow],
    worth: dict[int, _ChunkScore],
) -> list[RecallHit]:
    paths = collections.paths_of_pages(db, {row.page_id for row in rows})
    marker = ExcerptMarker(text_index.Stemmer(db), ranked.candidates.plan, ("", ""))
    lines = _LineFinder(notebook)
    hits = []
    for row in rows:
        path = paths.get(row.page_id)
        if path is not None:
            start = lines.start(path, row)
            snippet = marker.excerpt(row.text) or shorten(" ".join(row.text.split()), EXCERPT_WIDTH)
            heading = row.heading_path.rpartition(" > ")[2]
            end = start + row.end_line - row.start_line
            hits.append(RecallHit(path, start, end, heading, snippet, *worth[row.id]))
    return hits


class _LineFinder:
    """Finds the line of a chunk in its file, because line numbers in the index exclude the front matter."""

    def __init__(self, notebook: Collection) -> None:
        self._root = notebook.root or ""
        self._texts: dict[str, str] = {}

    def start(self, path: str, row: ChunkRow) -> int:
        if path not in self._texts:
            self._texts[path] = self._read(path)
        text, best = self._texts[path], 0
        at = text.find(row.text)
        while at >= 0:
            line = text.count("\n", 0, at) + 1
            if line >= row.start_line:
                return line
            best = line
            at = text.find(row.text, at + 1)
        return best or row.start_line

    def _read(self, path: str) -> str:
        try:
            with Folder(self._root) as folder:
                return markdown.decode(folder.read(path))[0].replace("\r\n", "\n")
        except (OSError, QuaidError):
            return ""


MAX_PROJECT_PAGES = 5
GENERIC_FOLDER_NAMES = frozenset(
    {"home", "src", "work", "main", "code", "projects", "documents", "desktop", "tmp", "root"}
)
"""Folder names that do not identify a project."""


def project_name(folder: str, home: str) -> str:
    """Return the name of the Git repository that contains a folder, or else the name of the folder, as words.

    Return "" for the home folder and for GENERIC_FOLDER_NAMES outside of a repository.
    """
    folder, home = os.path.realpath(folder), os.path.realpath(home)
    above = folder
    while above != os.path.dirname(above) and above != home:
        if os.path.lexists(os.path.join(above, ".git")):
            return _words_of_name(above)
        above = os.path.dirname(above)
    if folder == home or os.path.basename(folder).lower() in GENERIC_FOLDER_NAMES:
        return ""
    return _words_of_name(folder)


def project_summary(db: Database, name: str, notebook: Collection | None) -> str:
    """Return a Markdown list of pages that contain all words of the name, best first, with excerpts.

    Reference files and daily logs of the notebook are left out.
    """
    hits = [hit for hit in text_search.search_pages(db, name, limit=4 * MAX_PROJECT_PAGES) if hit.all_words]
    paths = collections.paths_of_pages(db, {hit.id for hit in hits})
    lines = []
    for hit in hits:
        is_note = notebook is not None and hit.collection == notebook.name
        if is_note and paths.get(hit.id, "").startswith((f"{REFERENCE}/", f"{DAILY}/")):
            continue
        snippet = " ".join(hit.snippet.replace("**", "").split())
        lines.append(f"- [[{slugs.address(hit.collection, hit.slug)}]] {hit.title}: {snippet}")
    return "\n".join([f"## What the memory has on {name}", *lines[:MAX_PROJECT_PAGES], ""]) if lines else ""


def _words_of_name(folder: str) -> str:
    name = os.path.basename(folder).lstrip(".")
    return " ".join("".join(character if character.isalnum() else " " for character in name).split())
