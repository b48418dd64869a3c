"""The built-in model: bulk speed against a bare onnxruntime loop, and what a cold and a warm question cost.

The bare loop is one session of onnxruntime with one thread to a run, shared by a pool of as many threads as quaid
uses, one text per run, all else as the runtime comes. Everything is timed in turns, so that a noisy minute hits all.
CPU time throughout. Beside it stand the other ways to use the processors: one text after the other on all of them, a
session for each, and texts of one length together. So that nobody beats a weak yardstick, quaid is also compared
with the best of them: of all, and of those that give the same vectors (texts in a batch change each other's).
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.table import cpu_of, show, verdict
from quaid.embedding import onnx as onnx_models, registry as embedders
from quaid.embedding.onnx import processor_count
from quaid.embedding.registry import EmbedderEnvironment

TEXTS = 96
ROUNDS = 3
WORDS = (
    "the harbour survey found salt in the cables and the ferry moved to the old quay while Mira wrote a second "
    "report about tides pumps batteries and the council asked who pays for repairs before winter"
).split()
SPEED, SAME = 0.9, 0.9999
"""Of a bare layout's; the least cosine of vectors that are the same."""

QUESTION = "What did the council decide about the old quay in May?"
COLD = """
import sys
from quaid.embedding import registry
from quaid.embedding.registry import EmbedderEnvironment
registry.get_embedder(registry.DEFAULT_MODEL, {}, EmbedderEnvironment(sys.argv[1], {})).embed_query(sys.argv[2])
"""


def main() -> None:
    rounds = 2 if "--quick" in sys.argv else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        model = embedders.get_embedder(embedders.DEFAULT_MODEL, {}, EmbedderEnvironment(folder, {}))
        first = _cpu(lambda: model.embed_query(QUESTION))
        texts = [
            " ".join(WORDS[(at * 7 + step) % len(WORDS)] for step in range(40 + at)) for at in range(TEXTS)
        ]
        ways: dict[str, Callable[[Sequence[str]], list[Any]]] = {
            "bare": _bare_loop(),
            "ours": model.embed_passages,
            "one session of all threads": _bare_loop(workers=1, threads=processor_count()),
            "sessions of one thread": _bare_loop(sessions=processor_count()),
            "batches of 8 by length": _bare_loop(batch=8),
        }
        for work in ways.values():
            work(texts[:16])
        times: dict[str, list[float]] = {f"{name} {what}": [] for name in ways for what in ("cpu", "wall")}
        vectors: dict[str, list[Any]] = {}
        for _ in range(rounds):
            for name, work in ways.items():
                started, cpu = time.perf_counter(), time.process_time()
                vectors[name] = work(texts)
                times[f"{name} cpu"].append(time.process_time() - cpu)
                times[f"{name} wall"].append(time.perf_counter() - started)
        best = {name: min(time) for name, time in times.items()}
        # Each question is another one, because the vectors of recent ones are cached.
        question = min(_cpu(lambda at=at: model.embed_query(f"{QUESTION} {at}")) for at in range(10, 30))  # type: ignore[misc]
        cold = cpu_of([sys.executable, "-c", COLD, folder, QUESTION], 5 if rounds == 2 else 15)
        imports = cpu_of([sys.executable, "-c", "import onnxruntime"], 5 if rounds == 2 else 15)
    bare = [name for name in ways if name != "ours"]
    same = [name for name in bare if _least(vectors["bare"], vectors[name]) >= SAME]
    show(
        f"Embedding ({embedders.DEFAULT_MODEL}, {processor_count()} threads)",
        [
            (
                f"bare: 1 session, 1 thread a run, pool of {processor_count()}, 1 text a run; texts per CPU second",
                f"{TEXTS / best['bare cpu']:.1f}",
                "",
            ),
            ("quaid, texts per CPU second", f"{TEXTS / best['ours cpu']:.1f}", ""),
            _against("bare", ["bare"], best),
            _against("the best bare layout of the same vectors", same, best),
            _against("the best bare layout, other vectors too", bare, best),
            ("quaid / bare, wall clock", f"{best['bare wall'] / best['ours wall']:.2f}", ""),
            *[
                (f"{name} / bare: CPU, wall clock, least cosine", _compared(name, best, vectors), "")
                for name in list(ways)[2:]
            ],
            ("first use ever: hash, trial, copy (CPU ms)", f"{first * 1000:.0f}", ""),
            ("fresh process, one question (CPU ms, median)", f"{cold[len(cold) // 2] * 1000:.0f}", ""),
            ("  of which Python and `import onnxruntime`", f"{imports[len(imports) // 2] * 1000:.0f}", ""),
            ("loaded model, one question (CPU ms)", f"{question * 1000:.1f}", ""),
        ],
        ("what", "figure", "target"),
    )


def _against(title: str, names: list[str], best: dict[str, float]) -> tuple[str, str, str]:
    """How quaid stands against the cheapest of some layouts; higher is better."""
    cheapest = min(names, key=lambda name: best[f"{name} cpu"])
    ratio = best[f"{cheapest} cpu"] / best["ours cpu"]
    named = "" if cheapest == title else f" ({cheapest})"
    return f"quaid / {title}{named}, CPU", f"{ratio:.2f}", verdict(ratio, SPEED, at_least=True)


def _compared(name: str, best: dict[str, float], vectors: dict[str, list[Any]]) -> str:
    """How a way stands against the bare loop; higher is better."""
    cpu, wall = (best[f"bare {what}"] / best[f"{name} {what}"] for what in ("cpu", "wall"))
    return f"{cpu:.2f}, {wall:.2f}, {_least(vectors['bare'], vectors[name]):.4f}"


def _least(ones: list[Any], others: list[Any]) -> float:
    """The least cosine between two makings of the same vectors."""
    return min(float(one @ other) for one, other in zip(ones, others, strict=True))


def _bare_loop(
    *, sessions: int = 1, workers: int = 0, threads: int = 1, batch: int = 1
) -> Callable[[Sequence[str]], list[Any]]:
    """What a person would write in twenty lines: the runtime as it comes, a pool, one text per run or a few."""
    import numpy as np
    import onnxruntime as ort  # type: ignore[import-untyped]
    from tokenizers import Tokenizer

    from quaid.embedding.registry import built_in_folder

    folder = built_in_folder()
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    tokenizer.enable_truncation(512)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    model, provider = os.path.join(folder, onnx_models.BGE_MODEL_FILE), ["CPUExecutionProvider"]
    opened = [ort.InferenceSession(model, options, providers=provider) for _ in range(sessions)]

    def some(number: int, texts: Sequence[str]) -> Any:
        read = [tokenizer.encode(text).ids for text in texts]
        ids, mask = np.zeros((2, len(read), max(map(len, read))), dtype=np.int64)
        for row, each in enumerate(read):
            ids[row, : len(each)], mask[row, : len(each)] = each, 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        found = opened[number % sessions].run(None, given)[0][:, 0]
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def run(texts: Sequence[str]) -> list[Any]:
        order = (
            sorted(range(len(texts)), key=lambda at: len(texts[at])) if batch > 1 else list(range(len(texts)))
        )
        parts = [order[at : at + batch] for at in range(0, len(order), batch)]
        with ThreadPoolExecutor(workers or processor_count()) as pool:
            found = pool.map(some, range(len(parts)), [[texts[at] for at in part] for part in parts])
            vectors = {
                at: each
                for part, rows in zip(parts, found, strict=True)
                for at, each in zip(part, rows, strict=True)
            }
        return [vectors[at] for at in range(len(texts))]

    return run


def _cpu(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main()
