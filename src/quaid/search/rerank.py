"""Reorder the best pages of a question with a cross-encoder that the user has set up.

A cross-encoder reads a question and a passage together, which is more exact and much slower than comparing
vectors. It is an ONNX model in a folder, as sentence-transformers exports it, or a server with the rerank API
of Cohere, Jina, vLLM or llama.cpp. Without a cross-encoder, this module is not loaded. If the cross-encoder
fails, the order is unchanged and the answer contains a note.
"""

import json
import math
import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from quaid.embedding.onnx import find_model_file, load_onnxruntime, read_max_tokens, session_options
from quaid.embedding.registry import first_line
from quaid.embedding.remote import RequestFailed, check_server, parse_address, request_json, server_problem
from quaid.errors import EmbedderUnavailable, InvalidModel, QuaidError
from quaid.search.candidates import Ranking, best_first
from quaid.storage import chunks, pages
from quaid.storage.sqlite.connection import Database

MOST_PAGES = 30
"""Number of the best pages to reorder."""

LONGEST_QUESTION = 1_000
LONGEST_PASSAGE = 2_000
"""Longer questions are truncated to LONGEST_QUESTION characters, and longer passages to LONGEST_PASSAGE."""

TIME_LIMIT = 2.0
"""Default limit in seconds for scoring the pages of one question. Loading a model is not counted."""

REMEDY = "`quaid rerank status` tells more, and `quaid rerank off` turns it off"
TRIAL = ("Where does the ferry leave?", ("The ferry leaves from the old quay.", "Tax law of 1911."))


class RerankerDescription(NamedTuple):
    """A cross-encoder as stored in a database: how to open it, without its API key."""

    place: str  # a folder or the address of a server
    model: str = ""  # the name of the model on the server
    key_env: str = ""  # the environment variable with the API key
    remote: bool = False  # whether texts may be sent to another machine
    time_limit: float = TIME_LIMIT

    @property
    def is_server(self) -> bool:
        return "://" in self.place


class Reranker(Protocol):
    """Scores passages for a question. Its methods may be called from several threads."""

    description: RerankerDescription

    def ready(self) -> str | None:
        """Return None if the reranker is expected to work, else the reason why it would fail.

        This must not load a model or use the network.
        """

    def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return the score of each passage. A higher score is better.

        If the time limit is reached, return the scores of the first passages only, or raise EmbedderUnavailable.
        """


def parse_description(text: str) -> RerankerDescription:
    """Parse a description from the configuration of a database."""
    fields = set(RerankerDescription._fields)
    return RerankerDescription(**{key: value for key, value in json.loads(text).items() if key in fields})


def format_description(description: RerankerDescription) -> str:
    """Format a description for the configuration of a database."""
    return json.dumps(description._asdict(), ensure_ascii=False)


def open_reranker(description: RerankerDescription, environ: Mapping[str, str]) -> Reranker:
    """Return the reranker for a description, without loading its model."""
    return HttpReranker(description, environ) if description.is_server else OnnxReranker(description)


def check_description(
    description: RerankerDescription, allow_remote: bool, environ: Mapping[str, str]
) -> RerankerDescription:
    """Validate a description, and test the reranker with two passages. Return the description to store."""
    place = description.place
    if description.is_server:
        is_remote = check_server(place, description.key_env, allow_remote, "questions and passages")
        description = description._replace(remote=is_remote)
    reranker = open_reranker(description, environ)
    try:
        problem = reranker.ready()
        scores = [] if problem else reranker.scores(*TRIAL)
    except EmbedderUnavailable as error:
        problem = str(error.facts["problem"])
    if problem is None and len(scores) < len(TRIAL[1]):
        problem = f"it needs more than {description.time_limit:g} seconds for two passages"
    if problem is None and scores[0] == scores[1]:
        problem = "it gives one score for all passages"
    if problem:
        raise InvalidModel(
            place=place,
            problem=problem,
            remedy="Name a folder with a cross-encoder (model.onnx and tokenizer.json), or the address of a server"
            " with a rerank API",
        )
    return description


def rerank(
    db: Database, reranker: Reranker, question: str, ranking: Ranking, exact: Sequence[int] = ()
) -> tuple[Ranking, str]:
    """Return the ranking with its best pages reordered, and a note if that was not possible for all of them.

    Pages asked for by name (`exact`) keep their place. The scores of the reordered pages are reassigned to them in
    their new order, so these pages stay before all other pages.
    """
    best = best_first(ranking.pages)
    first = [page for page in best if page in ranking.best and page not in exact][:MOST_PAGES]
    if len(first) < 2:
        return ranking, ""
    with db.reading():  # the model is called after this, outside of any transaction
        rows = {row.page_id: row for row in chunks.load(db, [ranking.best[page] for page in first])}
        heads = pages.page_heads(db, first)
    first = [page for page in first if page in rows and page in heads]
    passages = [f"{heads[page].title}\n{rows[page].text}"[:LONGEST_PASSAGE] for page in first]
    try:
        problem = reranker.ready()
        scores = [] if problem else reranker.scores(question[:LONGEST_QUESTION], passages)
    except QuaidError as error:
        # The server's response may quote the texts it received, so it is left out of the note.
        problem = str(error.facts.get("noted") or error.facts.get("problem") or error)
    if problem:
        return ranking, f"not reranked: {problem}"
    scored = first[: len(scores)]
    order = sorted(range(len(scored)), key=lambda at: -scores[at])
    reordered = {scored[at]: ranking.pages[page] for page, at in zip(scored, order, strict=True)}
    note = ""
    if len(scored) < len(first):
        limit = reranker.description.time_limit
        note = f"reranked only the best {len(scored)} of {len(first)} pages within {limit:g} seconds"
    # The reordered pages come first in the mapping, because pages of equal score keep its order.
    others = {page: score for page, score in ranking.pages.items() if page not in reordered}
    return ranking._replace(pages={**reordered, **others}), note


class OnnxReranker:
    """A cross-encoder and its tokenizer in a folder. They are loaded on first use."""

    def __init__(self, description: RerankerDescription) -> None:
        self.description = description
        self._loaded: tuple[Any, Any] | None = None
        self._loading = threading.Lock()

    def ready(self) -> str | None:
        folder = self.description.place
        if not os.path.isdir(folder):
            return f"there is no folder {folder}"
        if find_model_file(folder) is None:
            return f"{folder} has no model.onnx"
        if not os.path.isfile(os.path.join(folder, "tokenizer.json")):
            return f"{folder} has no tokenizer.json"
        return None

    def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        try:
            session, tokenizer = self._open()
            end = time.monotonic() + self.description.time_limit
            scores: list[float] = []
            for passage in passages:
                if time.monotonic() > end:
                    break
                scores.append(_score(session, tokenizer.encode(question, passage)))
            return scores
        except QuaidError:
            raise
        except Exception as error:  # the runtime and the tokenizer raise exceptions of many types
            raise _unavailable(self.description, f"it fails ({first_line(error)})") from error

    def _open(self) -> tuple[Any, Any]:
        with self._loading:
            if self._loaded is None:
                from tokenizers import Tokenizer

                folder = self.description.place
                tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
                tokenizer.no_padding()
                tokenizer.enable_truncation(read_max_tokens(folder), strategy="longest_first")
                session = load_onnxruntime().InferenceSession(
                    find_model_file(folder),
                    session_options(optimise=True, prepack=True, precise=False),
                    providers=["CPUExecutionProvider"],
                )
                self._loaded = session, tokenizer
            return self._loaded


def _score(session: Any, encoding: Any) -> float:
    """Return the score of one pair.

    For a model with two outputs, this is the difference between "relevant" and "not relevant".
    """
    import numpy as np

    ids = np.array([encoding.ids], dtype=np.int64)
    values = {
        "input_ids": ids,
        "attention_mask": np.ones_like(ids),
        "token_type_ids": np.array([encoding.type_ids], dtype=np.int64),
        "position_ids": np.arange(ids.shape[1], dtype=np.int64)[None],
    }
    inputs = {item.name: values[item.name] for item in session.get_inputs() if item.name in values}
    numbers = np.asarray(session.run(None, inputs)[0], dtype=np.float64).ravel()
    if numbers.size not in (1, 2):
        raise ValueError(f"it gives {numbers.size} numbers for a pair of texts, not one or two")
    score = float(numbers[-1] - numbers[0] if numbers.size == 2 else numbers[0])
    if not math.isfinite(score):
        raise ValueError("it gives a score that is not a number")
    return score


class HttpReranker:
    """A server with a rerank API. The API key is read from the environment for each request and never stored."""

    def __init__(self, description: RerankerDescription, environ: Mapping[str, str]) -> None:
        self.description = description
        self._environ = environ

    def ready(self) -> str | None:
        description = self.description
        return server_problem(description.place, description.key_env, description.remote, self._environ)

    def scores(self, question: str, passages: Sequence[str]) -> list[float]:
        place = self.description.place
        path = parse_address(place).path or "/v1"
        body = {"model": self.description.model, "query": question, "documents": list(passages)}
        try:
            answer = request_json(
                place,
                path if path.endswith("/rerank") else f"{path}/rerank",
                {**body, "top_n": len(passages)},
                self._environ.get(self.description.key_env, ""),
                self.description.time_limit,
            )
        except RequestFailed as failure:
            message = f"{failure.problem} ({failure.detail})" if failure.detail else failure.problem
            raise _unavailable(self.description, message, failure.problem) from None
        try:
            return _scores_by_index(answer, len(passages))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
            raise _unavailable(
                self.description, f"{place} answers something else than a score for each passage"
            ) from None


def _scores_by_index(answer: Any, count: int) -> list[float]:
    """Return the scores in the order of the passages. Raise an exception if one is missing or not a number."""
    items = (
        answer if isinstance(answer, list) else answer["results"] if "results" in answer else answer["data"]
    )
    by_index: dict[int, float] = {}
    for item in items:
        by_index[int(item["index"])] = float(
            item["relevance_score" if "relevance_score" in item else "score"]
        )
    if sorted(by_index) != list(range(count)) or not all(map(math.isfinite, by_index.values())):
        raise ValueError("scores that are missing or no numbers")
    return [by_index[at] for at in range(count)]


def _unavailable(description: RerankerDescription, problem: str, noted: str = "") -> EmbedderUnavailable:
    return EmbedderUnavailable(
        name=description.model or os.path.basename(os.path.normpath(description.place)),
        problem=problem,
        noted=noted or problem,
        remedy=REMEDY,
    )
