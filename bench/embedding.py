"""The built-in model: bulk speed against a bare onnxruntime loop, and what a cold and a warm question cost.

The bare loop runs the same texts on the same number of threads with the runtime's own defaults, one text per
run; both are timed in turns, so that a noisy minute hits both. CPU time throughout.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.table import cpu_of, show, verdict
from quaid.embed import bge_small, registry
from quaid.embed.onnx import processors
from quaid.embed.protocol import Surroundings

TEXTS = 96
ROUNDS = 5
WORDS = (
    "the harbour survey found salt in the cables and the ferry moved to the old quay while Mira wrote a second "
    "report about tides pumps batteries and the council asked who pays for repairs before winter"
).split()
QUESTION = "What did the council decide about the old quay in May?"
COLD = """
import sys
from quaid.embed import registry
from quaid.embed.protocol import Surroundings
registry.get(registry.DEFAULT, {}, Surroundings(sys.argv[1], {})).embed_query(sys.argv[2])
"""


def main() -> None:
    rounds = 2 if "--quick" in sys.argv else ROUNDS
    with tempfile.TemporaryDirectory() as folder:
        model = registry.get(registry.DEFAULT, {}, Surroundings(folder, {}))
        first = _cpu(lambda: model.embed_query(QUESTION))
        texts = [
            " ".join(WORDS[(at * 7 + step) % len(WORDS)] for step in range(40 + at)) for at in range(TEXTS)
        ]
        bare = _bare_loop()
        bare(texts[:4])
        model.embed_passages(texts[:16])
        times: dict[str, list[float]] = {"ours cpu": [], "ours wall": [], "bare cpu": [], "bare wall": []}
        for _ in range(rounds):
            for name, work in (("bare", bare), ("ours", model.embed_passages)):
                started, cpu = time.perf_counter(), time.process_time()
                work(texts)
                times[f"{name} cpu"].append(time.process_time() - cpu)
                times[f"{name} wall"].append(time.perf_counter() - started)
        best = {name: min(each) for name, each in times.items()}
        question = min(_cpu(lambda: model.embed_query(QUESTION)) for _ in range(20))
        cold = cpu_of([sys.executable, "-c", COLD, folder, QUESTION], 5 if rounds == 2 else 15)
        imports = cpu_of([sys.executable, "-c", "import onnxruntime"], 5 if rounds == 2 else 15)
    ratio = best["bare cpu"] / best["ours cpu"]
    show(
        f"Embedding ({registry.DEFAULT}, {processors()} threads)",
        [
            ("bare onnxruntime loop, texts per CPU second", f"{TEXTS / best['bare cpu']:.1f}", ""),
            ("quaid, texts per CPU second", f"{TEXTS / best['ours cpu']:.1f}", ""),
            ("quaid / bare, CPU", f"{ratio:.2f}", verdict(ratio, 0.9, at_least=True)),
            ("quaid / bare, wall clock", f"{best['bare wall'] / best['ours wall']:.2f}", ""),
            ("first use ever: hash, trial, copy (CPU ms)", f"{first * 1000:.0f}", ""),
            ("fresh process, one question (CPU ms, median)", f"{cold[len(cold) // 2] * 1000:.0f}", ""),
            ("  of which Python and `import onnxruntime`", f"{imports[len(imports) // 2] * 1000:.0f}", ""),
            ("loaded model, one question (CPU ms)", f"{question * 1000:.1f}", ""),
        ],
        ("what", "figure", "target"),
    )


def _bare_loop() -> Callable[[Sequence[str]], list[Any]]:
    """What a person would write in ten lines: the runtime as it comes, a pool, one text per run."""
    import numpy as np
    import onnxruntime as ort  # type: ignore[import-untyped]
    from tokenizers import Tokenizer

    from quaid.embed.finding import on_path

    folder = on_path(bge_small.PACKAGE, *bge_small.INSIDE) or ""
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    tokenizer.enable_truncation(512)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(
        os.path.join(folder, bge_small.MODEL), options, providers=["CPUExecutionProvider"]
    )

    def one(text: str) -> Any:
        ids = np.array([tokenizer.encode(text).ids], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        vector = session.run(None, given)[0][0, 0]
        return vector / np.linalg.norm(vector)

    def run(texts: Sequence[str]) -> list[Any]:
        with ThreadPoolExecutor(processors()) as pool:
            return list(pool.map(one, texts))

    return run


def _cpu(work: Callable[[], Any]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main()
