"""The guards of the knowledge base: which contradictions and duplicates they find or make up, and how fast."""

import os
import random
import sys
import time
from typing import NamedTuple

from bench.table import show, verdict
from quaid.model.claims import Statement, find_conflicts, find_similar

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
PRECISION, RECALL = 0.9, 0.7
BUDGETS = {1_000: 30, 10_000: 300}
"""CPU milliseconds for one new node."""


class Pair(NamedTuple):
    """Two nodes, and whether they should be found."""

    kind: str
    wanted: bool
    one: Statement
    other: Statement


class Score(NamedTuple):
    precision: float
    recall: float
    wrong: list[str]
    missed: list[str]


def pairs(name: str) -> list[Pair]:
    """The labelled pairs of a file."""
    with open(os.path.join(DATA, f"{name}.txt"), encoding="utf-8") as file:
        blocks = "".join(line for line in file if not line.startswith("#")).strip().split("\n\n")
    found = []
    for block in blocks:
        label, one, other = block.strip().split("\n")
        word, _, kind = label.partition(" ")
        found.append(Pair(kind, word in ("opposed", "same"), _node("one", one), _node("other", other)))
    return found


def _node(key: str, line: str) -> Statement:
    kinds: list[str] = []
    if line.startswith("["):
        inside, _, line = line[1:].partition("] ")
        kinds = inside.split()
    head, _, body = line.partition(" || ")
    title, _, summary = head.partition(" | ")
    return Statement(key, title, summary, body, kinds[0] if kinds else "", tuple(kinds[1:]))


def part(every: list[Pair], held_out: bool) -> list[Pair]:
    """Every third pair is held out."""
    return [pair for number, pair in enumerate(every) if (number % 3 == 2) is held_out]


def judge(name: str, chosen: list[Pair]) -> Score:
    """Precision and recall over pairs; a pair is looked at from both sides and must look the same."""
    find = find_conflicts if name == "opposing" else find_similar
    right, wrong, missed = 0, [], []
    for pair in chosen:
        found = find(pair.one, [pair.other])
        shown = f"{pair.kind}: {pair.one.summary} / {pair.other.summary}"
        if bool(found) != bool(find(pair.other, [pair.one])):
            wrong.append(f"not the same from both sides: {shown}")
        if found and pair.wanted:
            right += 1
        elif found:
            wrong.append(f"{shown} ({found[0].why})")
        elif pair.wanted:
            missed.append(shown)
    return Score(right / max(1, right + len(wrong)), right / max(1, right + len(missed)), wrong, missed)


def crossed(every: list[Pair]) -> list[str]:
    """What is found between nodes of different pairs: nearly all of it would be a false alarm."""
    every_node = [node for pair in every for node in (pair.one, pair.other)]
    nodes = [node._replace(key=str(number)) for number, node in enumerate(every_node)]
    return [
        f"{node.summary} / {nodes[int(found.key)].summary} ({found.why})"
        for place, node in enumerate(nodes)
        for found in find_conflicts(node, nodes[place + 1 :], most=100)
    ]


MATTERS = (
    "line length|port|branch|formatter|linter|commit message|changelog|review|test|fixture|mock|backup|timeout|retry"
    "|cache|lock|queue|worker|index|query|schema|migration|release|tag|hook|mirror|timer|log|metric|alert|token|key"
    "|session|header|route|template|script|package|module|class|function|import|comment|docstring|type hint|editor"
).split("|")
PLACES = "the API|the parser|shell scripts|Python projects|Emacs|the build|staging|notebooks|clients".split(
    "|"
)
RULES = (
    "Always check the {0} before the {1} in {2}.",
    "Never change the {0} of {2} without the {1}.",
    "Craig prefers a short {0} over a long {1} in {2}.",
    "The {0} of {2} is kept beside the {1}.",
    "Use the {1} for every {0} of {2}.",
    "The {0} of {2} takes {3} seconds.",
    "In {2} the {0} no longer needs a {1}.",
    "Avoid a second {0} in {2} when the {1} is there.",
)


def made_up(count: int) -> list[Statement]:
    """A knowledge base of one field: few words, used again and again, with a page of text below each summary."""
    chance = random.Random(11)

    def sentence() -> str:
        one, other = chance.sample(MATTERS, 2)
        return chance.choice(RULES).format(one, other, chance.choice(PLACES), chance.randrange(2, 90))

    types = ("principle", "preference", "procedure", "observation", "reference")
    return [
        Statement(
            str(number),
            f"{chance.choice(MATTERS).capitalize()} and {chance.choice(MATTERS)} of {chance.choice(PLACES)}",
            sentence(),
            " ".join(sentence() for _ in range(chance.randrange(5, 25))),
            chance.choice(types),
            ("general",),
        )
        for number in range(count)
    ]


def speed(count: int, asked: int = 40) -> tuple[float, float]:
    """CPU milliseconds of both guards for a new node, the mean and the worst, each node's better one of two runs.
    Patterns are compiled before."""
    nodes = made_up(count + asked)
    new, others = nodes[:asked], nodes[asked:]
    find_conflicts(nodes[-1], nodes[:60])
    times = []
    for node in new:
        runs = []
        for _ in range(2):
            started = time.process_time()
            find_conflicts(node, others)
            find_similar(node, others)
            runs.append(1_000 * (time.process_time() - started))
        times.append(min(runs))
    return sum(times) / len(times), max(times)


def main() -> None:
    rows = []
    seen, fresh, likes = pairs("opposing"), pairs("opposing-fresh"), pairs("alike")
    for name, which, chosen in (
        ("opposing", "seen", part(seen, False)),
        ("opposing", "held out", part(seen, True)),
        ("opposing", "written afterwards", fresh),
        ("opposing", "all", seen + fresh),
        ("alike", "seen", part(likes, False)),
        ("alike", "held out", part(likes, True)),
    ):
        score = judge(name, chosen)
        rows.append(
            (
                *(name, which, f"{len(chosen)} ({sum(pair.wanted for pair in chosen)} wanted)"),
                f"{score.precision:.3f}, {verdict(score.precision, PRECISION, at_least=True)}",
                f"{score.recall:.3f}, {verdict(score.recall, RECALL, at_least=True)}",
            )
        )
        if which == "seen":
            for line in [
                *(f"wrong: {each}" for each in score.wrong),
                *(f"missed: {each}" for each in score.missed),
            ]:
                print(f"{name}, {line}")
    show(
        "Contradictions and duplicates of the knowledge base",
        rows,
        ("what", "part", "pairs", "precision", "recall"),
    )
    figures = []
    for count in (1_000,) if "--quick" in sys.argv else BUDGETS:
        mean, worst = speed(count)
        figures.append((f"{count:,}", f"{mean:.1f}", f"{worst:.1f}, {verdict(worst, BUDGETS[count])}"))
    show("Both guards for a new node, CPU ms", figures, ("nodes", "mean", "worst"))


if __name__ == "__main__":
    main()
