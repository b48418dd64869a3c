"""Learn the weights that `remember` files sentences by, and write them to notebook/routing_weights.txt.

The sentences are those of bench/data/remember*.txt; the held-out half of remember_dev.txt is left out. The first
step sees words only. The second, for English, adds the points of routing_rules.toml, and a third the embedding by the
built-in model; they learn from the scores that the first step gives to sentences it has not seen.
"""

import atexit
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from quaid.embedding.registry import DEFAULT_MODEL, Embedder, EmbedderEnvironment, get_embedder
from quaid.notebook import classifier, router
from quaid.notebook.classifier import CATEGORIES

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
PENALTY, STEPS, FOLDS, LEAST_COUNT = 0.5, 150, 4, 3
KEPT_WEIGHT = 0.05
"""Features with only smaller weights are left out of the file."""


class Row(NamedTuple):
    """A labelled sentence, with other categories that are also right."""

    language: str
    category: str
    text: str
    also: Collection[str] = ()


def read_rows(name: str) -> list[list[str]]:
    with open(os.path.join(DATA, name), encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]


def development(*, held_out: bool) -> list[Row]:
    rows = read_sets()["development"]
    return rows[1::2] if held_out else rows[::2]


@cache
def read_sets() -> dict[str, list[Row]]:
    """Return the labelled sentences by set. Each set was written at another time, one by another writer."""
    names = {kind: name for name, kind in router.KIND_OF.items()}
    files = [
        Row("en", names.get(os.path.basename(path)[:-3], "list"), text)
        for _, path, text in read_rows("remember_files.txt")
    ]
    return {
        "first": [Row("en", names[kind], text) for kind, text in read_rows("remember.txt")],
        "files": files,
        "development": [Row(*row) for row in read_rows("remember_dev.txt")],
        "examples": [Row(*row) for row in read_rows("remember_examples.txt")],
        "writer": [
            Row(*row[:3], *(set(also.split()) for also in row[3:]))
            for row in read_rows("remember_writer.txt")
        ],
    }


def training() -> list[Row]:
    sets = read_sets()
    return [*sets["examples"], *sets["first"], *sets["files"], *sets["writer"], *development(held_out=False)]


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


@cache
def embed_sentence(text: str) -> bytes:
    return built_in_model().embed_query(text)


def embeddings(texts: list[str]) -> Any:
    return np.stack([np.frombuffer(embed_sentence(text), "<f4") for text in texts])


def learn(rows: list[Row]) -> dict[str, Any]:
    """Return the weights of all steps by the name of the feature or input."""
    texts = [router.normalize(row.text) for row in rows]
    # Also without capitals, as many people type: names are not always written as such.
    plain = [
        (row, text.lower())
        for row, text in zip(rows, texts, strict=True)
        if row.language in ("en", "fr", "es")
    ]
    every = rows + [row for row, _ in plain]
    features = [
        classifier.features(text, row.language)
        for row, text in zip(every, texts + [text for _, text in plain], strict=True)
    ]
    index, weights = fit_features(every, features, len(rows))
    lines = {name: weights[number] for name, number in index.items()}
    english = [number for number, row in enumerate(rows) if row.language == "en"]
    chosen = [rows[number] for number in english]
    scores = unseen_scores(rows, features[: len(rows)])[english]
    points = classifier.RULE_SCALE * np.array([router.rule_points(texts[number]) for number in english])
    base = np.hstack([np.ones((len(english), 1)), scores, points]).astype(np.float32)
    vectors = classifier.VECTOR_SCALE * embeddings([texts[number] for number in english])
    for kind, inputs in (("rules", base), ("vector", np.hstack([base, vectors]).astype(np.float32))):
        lines |= {f"{kind}:{number}": row for number, row in enumerate(fit(inputs, chosen))}
    return lines


def leave_one_out(names: Iterable[str]) -> None:
    """Print the share of each set that is classified right by weights learned from the other sets."""
    sets = read_sets()
    for name in names:
        learned = learn([row for other in sets if other != name for row in sets[other]])
        classifier.weights = cache(lambda learned=learned: classifier.Weights(format_lines(learned)))
        for language in dict.fromkeys(row.language for row in sets[name]):
            rows = [row for row in sets[name] if row.language == language]
            for embed in (None, embed_sentence) if language == "en" else (None,):
                chosen = [router.classify(row.text, embed).category for row in rows]
                share = sum(map(is_right, rows, chosen)) / len(rows)
                print(name, language, len(rows), "with model" if embed else "", f"{share:.3f}", flush=True)
                if "--wrong" in sys.argv:
                    for row, category in zip(rows, chosen, strict=True):
                        if not is_right(row, category):
                            print(f"  {row.category} -> {category}: {row.text}")


def is_right(row: Row, category: str) -> bool:
    return category == row.category or category in row.also


def format_lines(lines: dict[str, Any]) -> list[str]:
    return [
        f"{name}\t{' '.join(str(round(float(weight) / classifier.WEIGHT_STEP)) for weight in row)}"
        for name, row in sorted(lines.items())
        if abs(row).max() >= KEPT_WEIGHT or name.startswith(("rules:", "vector:"))
    ]


def write(lines: dict[str, Any]) -> None:
    head = (
        "# Weights of features for "
        + ", ".join(CATEGORIES)
        + ".\n# Written by `python -m bench.remember_weights`.\n"
    )
    folder = os.path.dirname(classifier.__file__)
    with open(os.path.join(folder, "routing_weights.txt"), "w", encoding="utf-8") as file:
        file.write(head + "".join(f"{line}\n" for line in format_lines(lines)))


def main() -> None:
    if "--leave-out" in sys.argv:
        leave_one_out([name for name in read_sets() if name in sys.argv] or read_sets())
    else:
        write(learn(training()))


if __name__ == "__main__":
    main()
