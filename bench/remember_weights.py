"""Learn the weights that `remember` files sentences by, and write them to notebook/routing_weights.txt.

The sentences are those of bench/data/remember*.txt; the held-out half of remember_dev.txt is left out. The first
step sees words only. The second, for English, adds the points of routing_rules.toml, and a third the embedding by the
built-in model; they learn from the scores that the first step gives to sentences it has not seen.
"""

import atexit
import os
import shutil
import tempfile
from collections import Counter
from functools import cache
from typing import Any

import numpy as np

from quaid.embedding.registry import DEFAULT_MODEL, Embedder, EmbedderEnvironment, get_embedder
from quaid.notebook import classifier, router
from quaid.notebook.classifier import CATEGORIES

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
PENALTY, STEPS, FOLDS, LEAST_COUNT = 0.3, 150, 5, 3
KEPT_WEIGHT = 0.05
"""Features with only smaller weights are left out of the file."""

Row = tuple[str, str, str]
"""Language, category and text of a sentence."""


def read_rows(name: str) -> list[list[str]]:
    with open(os.path.join(DATA, name), encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]


def development(*, held_out: bool) -> list[Row]:
    rows = [(language, category, text) for language, category, text in read_rows("remember_dev.txt")]
    return rows[1::2] if held_out else rows[::2]


def training() -> list[Row]:
    names = {kind: name for name, kind in router.KIND_OF.items()}
    rows = [(language, category, text) for language, category, text in read_rows("remember_examples.txt")]
    rows += [("en", names[kind], text) for kind, text in read_rows("remember.txt")]
    for _, path, text in read_rows("remember_files.txt"):
        rows.append(("en", names.get(os.path.basename(path)[:-3], "list"), text))
    return rows + development(held_out=False)


def softmax(scores: Any) -> Any:
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def fit(inputs: Any, rows: list[Row], penalty: float = PENALTY) -> Any:
    """Return the weights of a logistic regression, found with Adam."""
    wanted = np.zeros((len(rows), len(CATEGORIES)), np.float32)
    wanted[np.arange(len(rows)), [CATEGORIES.index(row[1]) for row in rows]] = 1
    weights = np.zeros((inputs.shape[1], len(CATEGORIES)), np.float32)
    mean: Any = np.zeros_like(weights)
    square: Any = np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        slope = (inputs.T @ (softmax(inputs @ weights) - wanted) + penalty * weights) / len(rows)
        mean = 0.9 * mean + 0.1 * slope
        square = 0.99 * square + 0.01 * slope * slope
        weights -= 0.05 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return weights


def fit_features(
    rows: list[Row], features: list[set[str]], counted: int = 10**9
) -> tuple[dict[str, int], Any]:
    """Return the columns and weights of features that occur more than once in the first `counted` sentences."""
    counts = Counter(name for names in features[:counted] for name in names)
    index = {
        name: number for number, name in enumerate(sorted(n for n in counts if counts[n] >= LEAST_COUNT))
    }
    return index, fit(matrix(features, index), rows)


def matrix(features: list[set[str]], index: dict[str, int]) -> Any:
    inputs = np.zeros((len(features), len(index)), np.float32)
    for number, names in enumerate(features):
        columns = [index[name] for name in names if name in index]
        inputs[number, columns] = 4 / np.sqrt(len(columns) or 1)
    return inputs


def unseen_scores(rows: list[Row], features: list[set[str]]) -> Any:
    """Return the scores of each sentence by a model that was fitted without it."""
    scores = np.zeros((len(rows), len(CATEGORIES)), np.float32)
    for fold in range(FOLDS):
        kept = [number for number in range(len(rows)) if number % FOLDS != fold]
        left = [number for number in range(len(rows)) if number % FOLDS == fold]
        index, weights = fit_features([rows[n] for n in kept], [features[n] for n in kept])
        scores[left] = matrix([features[n] for n in left], index) @ weights
    return scores


@cache
def built_in_model() -> Embedder:
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return get_embedder(DEFAULT_MODEL, {}, EmbedderEnvironment(folder, dict(os.environ)))


def embed_sentence(text: str) -> bytes:
    return built_in_model().embed_query(text)


def embeddings(texts: list[str]) -> Any:
    return np.stack([np.frombuffer(embed_sentence(text), "<f4") for text in texts])


def main() -> None:
    rows = training()
    texts = [router.normalize(text) for _, _, text in rows]
    # Also without capitals, as many people type: names are not always written as such.
    plain = [
        (row, text.lower()) for row, text in zip(rows, texts, strict=True) if row[0] in ("en", "fr", "es")
    ]
    every = rows + [row for row, _ in plain]
    features = [
        classifier.features(text, row[0])
        for row, text in zip(every, texts + [text for _, text in plain], strict=True)
    ]
    index, weights = fit_features(every, features, len(rows))
    lines = {name: weights[number] for name, number in index.items()}
    english = [number for number, row in enumerate(rows) if row[0] == "en"]
    chosen = [rows[number] for number in english]
    scores = unseen_scores(rows, features[: len(rows)])[english]
    points = classifier.RULE_SCALE * np.array([router.rule_points(texts[number]) for number in english])
    base = np.hstack([np.ones((len(english), 1)), scores, points]).astype(np.float32)
    vectors = classifier.VECTOR_SCALE * embeddings([texts[number] for number in english])
    for kind, inputs in (("rules", base), ("vector", np.hstack([base, vectors]).astype(np.float32))):
        lines |= {f"{kind}:{number}": row for number, row in enumerate(fit(inputs, chosen))}
    write(lines)


def write(lines: dict[str, Any]) -> None:
    head = (
        "# Weights of features for "
        + ", ".join(CATEGORIES)
        + ".\n# Written by `python -m bench.remember_weights`.\n"
    )
    body = "".join(
        f"{name}\t{' '.join(str(round(float(weight) / classifier.WEIGHT_STEP)) for weight in row)}\n"
        for name, row in sorted(lines.items())
        if abs(row).max() >= KEPT_WEIGHT or name.startswith(("rules:", "vector:"))
    )
    folder = os.path.dirname(classifier.__file__)
    with open(os.path.join(folder, "routing_weights.txt"), "w", encoding="utf-8") as file:
        file.write(head + body)


if __name__ == "__main__":
    main()
