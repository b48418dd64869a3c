"""A cross-encoder of three nodes: each token has a weight, and the score of a pair is the sum of its weights."""

import struct
from pathlib import Path

from tests.embedding.conftest import field

WEIGHTS = {"[UNK]": 0.0, "[SEP]": 0.0, "ferry": 1.0, "quay": 4.0, "tulips": -2.0, "bread": 2.0}


def write_reranker(folder: Path, width: int = 1, value: float | None = None) -> Path:
    """Write a model with `width` outputs for a pair. The last one has the score, or always `value`."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    folder.mkdir()
    (folder / "model.onnx").write_bytes(_model(width, value))
    tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(WEIGHTS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A", pair="$A [SEP]:1 $B:1", special_tokens=[("[SEP]", 1)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def _model(width: int, constant: float | None) -> bytes:
    def shape(*dims: int | str) -> bytes:
        return b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d.encode())) for d in dims)

    def value(name: str, kind: int, *dims: int | str) -> bytes:
        tensor = field(1, kind) + field(2, shape(*dims))
        return field(1, name.encode()) + field(2, field(1, tensor))

    rows = [[0.0] * (width - 1) + [weight] for weight in WEIGHTS.values()]
    if constant is not None:
        rows = [[constant] * width for _ in rows]
    numbers = [number for row in rows for number in row]
    table = field(1, len(rows)) + field(1, width) + field(2, 1) + field(8, b"table")
    table += field(9, struct.pack(f"<{len(numbers)}f", *numbers))
    axis = field(1, 1) + field(2, 7) + field(8, b"axis") + field(9, struct.pack("<q", 1))
    gather = field(1, b"table") + field(1, b"input_ids") + field(2, b"tokens") + field(4, b"Gather")
    no_dims = field(1, b"keepdims") + field(3, 0) + field(20, 2)
    total = field(1, b"tokens") + field(1, b"axis") + field(2, b"logits") + field(4, b"ReduceSum")
    graph = field(1, gather) + field(1, total + field(5, no_dims)) + field(2, b"tiny")
    graph += field(5, table) + field(5, axis)
    graph += field(11, value("input_ids", 7, "batch", "length"))
    graph += field(12, value("logits", 1, "batch", width))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))
