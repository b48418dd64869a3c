"""One ONNX model in memory: token ids in, one vector of length one out.

Every text is run alone: with dynamically quantised models the vector of a text depends on what stands beside
it in a batch (cosine 0.995 between a text alone and the same text among 16), and alone was as fast. A run
uses one thread, which costs the least CPU; several texts run side by side in several threads.
"""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def options(*, optimise: bool, prepack: bool, precise: bool) -> Any:
    """How a model is to be run, as the runtime's SessionOptions.

    Without `prepack` it opens 110 ms sooner and each short text takes a fifth longer; the vectors are the same
    to the bit. `precise` keeps signed 8-bit weights from overflowing on processors without VNNI.
    """
    from quaid.embed.runtime import onnxruntime

    ort = onnxruntime()
    chosen = ort.SessionOptions()
    chosen.intra_op_num_threads = 1
    chosen.inter_op_num_threads = 1
    chosen.log_severity_level = 4
    chosen.enable_cpu_mem_arena = False  # no slower, and memory goes back after a long text
    levels = ort.GraphOptimizationLevel
    chosen.graph_optimization_level = levels.ORT_ENABLE_EXTENDED if optimise else levels.ORT_DISABLE_ALL
    chosen.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if not prepack:
        chosen.add_session_config_entry("session.disable_prepacking", "1")
        # Planning which buffers can be shared takes longer than a dozen short texts, and saves no memory here.
        chosen.enable_mem_reuse = False
        chosen.enable_mem_pattern = False
    if precise:
        chosen.add_session_config_entry("session.x64quantprecision", "1")
    return chosen


class Session:
    """An open model."""

    def __init__(self, path: str, pooling: str, chosen: Any) -> None:
        from quaid.embed.runtime import onnxruntime

        ort = onnxruntime()
        self._session = ort.InferenceSession(path, chosen, providers=["CPUExecutionProvider"])
        self._inputs = [each.name for each in self._session.get_inputs()]
        outputs = self._session.get_outputs()
        # Some exports end with the pooled vector; the others give one vector for each token.
        pooled = [each for each in outputs if each.name == "sentence_embedding"]
        self._output = (pooled or outputs)[0].name
        self._pool = _POOL[pooling]

    def vector(self, ids: list[int]) -> bytes:
        """The vector of one text."""
        import numpy as np

        tokens = np.array([ids], dtype=np.int64)
        given = {"input_ids": tokens}
        for name in self._inputs:
            if name == "attention_mask":
                given[name] = np.ones_like(tokens)
            elif name == "position_ids":
                given[name] = np.arange(tokens.shape[1], dtype=np.int64)[None]
            elif name == "token_type_ids":
                given[name] = np.zeros_like(tokens)
        out: Any = self._session.run([self._output], given)[0][0]
        vector = (self._pool(out) if out.ndim == 2 else out).astype(np.float32)
        length = float(np.sqrt(np.dot(vector, vector)))
        if not 0 < length < float("inf"):
            raise ValueError("the model gives a vector without a direction")
        return packed(vector / length)


def packed(vector: "np.ndarray[Any, Any]") -> bytes:
    """Four bytes for each number, little endian."""
    return (vector if sys.byteorder == "little" else vector.byteswap()).tobytes()


_POOL: dict[str, Callable[[Any], Any]] = {
    "cls": lambda out: out[0],
    "mean": lambda out: out.mean(axis=0),
    "max": lambda out: out.max(axis=0),
    "last": lambda out: out[-1],
}
