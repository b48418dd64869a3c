"""Any sentence-transformers model that was exported to ONNX: a folder that stays where it is.

Reads what the folder says of itself: `1_Pooling/config.json` (without it, the mean of all tokens, as
sentence-transformers does), `sentence_bert_config.json` or `tokenizer_config.json` for the longest text,
`config_sentence_transformers.json` for the prefixes of questions and passages.
"""

import json
import os
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from quaid.embed.protocol import Description, Surroundings
from quaid.errors import EmbedderUnavailable, InvalidModel, QuaidError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from quaid.embed.session import Session

MODEL_FILES = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
NEEDED = ("onnxruntime", "tokenizers", "numpy")
MANY = 8  # texts from which on it pays to open the model for bulk
LONGEST = 8192  # tokens; beyond that a run takes gigabytes
CHARACTERS_PER_TOKEN = 24  # more than any tokenizer packs into one on average; what lies beyond is cut unread
REMEDY = "`quaid model check {name}` tells more; until it works, questions are answered by words alone"


def open_folder(description: Description, _: Surroundings) -> "OnnxEmbedder":
    """The model in the folder that the description names."""
    return OnnxEmbedder(description)


class OnnxEmbedder:
    """A folder with an ONNX model and its tokenizer. Loads on first use; may be shared by threads."""

    def __init__(self, description: Description) -> None:
        self.name = description.name
        self.dimensions = description.dimensions
        self.max_tokens = description.max_tokens
        self.query_prefix = description.query_prefix
        self.passage_prefix = description.passage_prefix
        self.folder = description.place
        self._pooling = description.pooling or "mean"
        self._session: Session | None = None
        self._for_bulk = False
        self._tokenizer: Tokenizer | None = None
        self._loading = threading.RLock()

    def ready(self) -> str | None:
        from quaid.embed.finding import on_path

        missing = [name for name in NEEDED if not on_path(name)]
        if missing:
            return f"{' and '.join(missing)} cannot be found: install quaid again"
        if self.model_file() is None:
            return f"{self.folder} has no model.onnx"
        if not os.path.isfile(os.path.join(self.folder, "tokenizer.json")):
            return f"{self.folder} has no tokenizer.json"
        return None

    def embed_query(self, text: str) -> bytes:
        with self._told_plainly():
            return self._open(bulk=False).vector(self._query_tokens(self.query_prefix + text))

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        with self._told_plainly():
            session = self._open(bulk=len(texts) >= MANY)

            def one(text: str) -> bytes:
                return session.vector(self._tokens(self.passage_prefix + text))

            workers = min(processors(), len(texts) // 2)
            if workers < 2:
                return [one(text) for text in texts]
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(workers) as pool:
                return list(pool.map(one, texts))

    def health(self) -> str | None:
        try:
            first, again, other = self.embed_passages(["A red apple.", "A red apple.", "Tax law of 1911."])
        except QuaidError as error:
            return str(error.facts.get("problem", error))
        width = len(first) // 4
        if self.dimensions and width != self.dimensions:
            return f"it gives {width} numbers, not {self.dimensions}: it is not the model that was added"
        if first != again:
            return "it gives two vectors for one text"
        return "it gives one vector for all texts" if first == other else None

    def model_file(self) -> str | None:
        """The ONNX file of the folder, if it has one."""
        return find_model(self.folder)

    def _open(self, *, bulk: bool) -> "Session":
        """The session, opened again once when many texts come."""
        with self._loading:
            if self._session is None or (bulk and not self._for_bulk):
                problem = self.ready()
                if problem:
                    raise self._unavailable(problem)
                self._session = self._load(bulk)
                self._for_bulk = bulk
            return self._session

    def _load(self, bulk: bool) -> "Session":
        from quaid.embed.session import Session, options

        path = self.model_file() or ""
        return Session(path, self._pooling, options(optimise=True, prepack=bulk, precise=False))

    def _tokens(self, text: str) -> list[int]:
        with self._loading:
            if self._tokenizer is None:
                from tokenizers import Tokenizer

                tokenizer = Tokenizer.from_file(os.path.join(self.folder, "tokenizer.json"))
                tokenizer.no_padding()
                tokenizer.enable_truncation(self.max_tokens)
                self._tokenizer = tokenizer
        ids: list[int] = self._tokenizer.encode(text[: self.max_tokens * CHARACTERS_PER_TOKEN]).ids
        return ids

    def _query_tokens(self, text: str) -> list[int]:
        return self._tokens(text)

    def _unavailable(self, problem: str) -> EmbedderUnavailable:
        return EmbedderUnavailable(name=self.name, problem=problem, remedy=REMEDY.format(name=self.name))

    def _told_plainly(self) -> "_ToldPlainly":
        return _ToldPlainly(self)


class _ToldPlainly:
    """Turns whatever a runtime throws into the one error that callers expect."""

    def __init__(self, embedder: OnnxEmbedder) -> None:
        self._embedder = embedder

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, QuaidError):
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise self._embedder._unavailable(f"it fails ({first[:200]})") from error


def find_model(folder: str) -> str | None:
    """The ONNX file of a folder: the whole one before a quantised one, then whatever is called model*."""
    for name in MODEL_FILES:
        path = os.path.join(folder, *name.split("/"))
        if os.path.isfile(path):
            return path
    for part in (folder, os.path.join(folder, "onnx")):
        if os.path.isdir(part):
            for name in sorted(os.listdir(part)):
                if name.startswith("model") and name.endswith(".onnx"):
                    return os.path.join(part, name)
    return None


def describe(folder: str, name: str, given: dict[str, str], pooling: str = "") -> Description:
    """What a folder says of itself, with what a person said put above it; the dimensions are found by a run."""
    if not os.path.isdir(folder):
        raise InvalidModel(
            place=folder, problem="there is no such folder", remedy="Name a folder with an ONNX model"
        )
    _check_files(folder)
    prompts = _json(folder, "config_sentence_transformers.json").get("prompts") or {}
    description = Description(
        name=name,
        kind="onnx",
        place=folder,
        max_tokens=_max_tokens(folder),
        query_prefix=given.get("query_prefix", prompts.get("query", "")),
        passage_prefix=given.get("passage_prefix", prompts.get("passage", prompts.get("document", ""))),
        pooling=pooling or _pooling(folder),
    )
    embedder = OnnxEmbedder(description)
    try:
        width = len(embedder.embed_passages(["A probe."])[0]) // 4
    except EmbedderUnavailable as error:
        raise InvalidModel(
            place=folder,
            problem=error.facts["problem"],
            remedy="Export it with `optimum-cli export onnx --task feature-extraction`",
        ) from error
    return description._replace(dimensions=width)


def _check_files(folder: str) -> None:
    if find_model(folder) is None:
        raise InvalidModel(
            place=folder,
            problem="it has no model.onnx, nor onnx/model.onnx",
            remedy="Export the model to ONNX first, as in `optimum-cli export onnx`",
        )
    if not os.path.isfile(os.path.join(folder, "tokenizer.json")):
        raise InvalidModel(
            place=folder,
            problem="it has no tokenizer.json",
            remedy="Put the tokenizer.json of the same model into it",
        )
    modules = _json(folder, "modules.json", list)
    if any(isinstance(each, dict) and str(each.get("type", "")).endswith(".Dense") for each in modules):
        raise InvalidModel(
            place=folder,
            problem="its vectors go through a further layer (Dense) that is not in the ONNX file",
            remedy="Choose a model that ends with pooling",
        )


def _max_tokens(folder: str) -> int:
    for file, key in (
        ("sentence_bert_config.json", "max_seq_length"),
        ("tokenizer_config.json", "model_max_length"),
        ("config.json", "max_position_embeddings"),
    ):
        value = _json(folder, file).get(key)
        if isinstance(value, int | float) and 8 <= value <= 1_000_000:  # "no limit" is written as 1e30
            return min(int(value), LONGEST)
    return 512


def _pooling(folder: str) -> str:
    says = _json(folder, "1_Pooling/config.json")
    if not says:
        return "mean"
    for key, pooling in (
        ("pooling_mode_cls_token", "cls"),
        ("pooling_mode_max_tokens", "max"),
        ("pooling_mode_lasttoken", "last"),
        ("pooling_mode_mean_tokens", "mean"),
    ):
        if says.get(key) or says.get("pooling_mode") == pooling:
            return pooling
    raise InvalidModel(
        place=folder,
        problem="1_Pooling/config.json asks for a pooling other than cls, mean, max and last token",
        remedy="Say with --pooling which of them comes nearest",
    )


def _json(folder: str, name: str, kind: type = dict) -> Any:
    """What a file of the folder holds; empty when it is not there or holds something else."""
    path = os.path.join(folder, *name.split("/"))
    if not os.path.isfile(path):
        return kind()
    try:
        with open(path, encoding="utf-8") as file:
            held = json.load(file)
        return held if isinstance(held, kind) else kind()
    except ValueError as error:
        raise InvalidModel(
            place=folder, problem=f"its {name} is not JSON ({error})", remedy="Fetch the model again"
        ) from error


def processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
