"""The guard of the knowledge base: how many contradictions and duplicates it finds, how many it makes up, how fast."""

import os
import random
import sys
import time
from typing import NamedTuple

from bench.table import show, verdict
from quaid.core.opposing import Statement, alike, opposed

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
    find = opposed if name == "opposing" else alike
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
        for found in opposed(node, nodes[place + 1 :], most=100)
    ]


def main() -> None:
    show_all = "--all" in sys.argv
    rows = []
    for name in ("opposing", "alike"):
        every = pairs(name)
        parts = (("seen", part(every, False)), ("held out", part(every, True)), ("all", every))
        for which, chosen in parts:
            score = judge(name, chosen)
            rows.append(
                (
                    *(name, which, f"{len(chosen)} ({sum(pair.wanted for pair in chosen)} wanted)"),
                    f"{score.precision:.3f}, {verdict(score.precision, PRECISION, at_least=True)}",
                    f"{score.recall:.3f}, {verdict(score.recall, RECALL, at_least=True)}",
                )
            )
            if which == "seen" or show_all:
                for line in [*(f"wrong: {each}" for each in score.wrong), *(f"missed: {each}" for each in score.missed)]:
                    print(f"{name} {which} {line}")
    show("The guard of the knowledge base", rows, ("what", "part", "pairs", "precision", "recall"))


if __name__ == "__main__":
    main()
