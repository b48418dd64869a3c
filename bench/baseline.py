"""The figures of the last release, and whether any of them dropped."""

import json
import os
from collections.abc import Mapping

from bench.table import show

BASELINE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "baseline.json")
MAY_DROP = 0.02

Figures = Mapping[str, float]


def compare(figures: Figures, *, quick: bool, write: bool = False, path: str = BASELINE) -> bool:
    """Whether nothing dropped by more than 2 % since the figures were kept. Higher is better in all of them."""
    part = "quick" if quick else "full"
    with open(path, encoding="utf-8") as file:
        kept: dict[str, dict[str, float]] = json.load(file)
    before = dict(kept.get(part, {}))
    rows = []
    for name, value in figures.items():
        said = f"{before[name]:.4f}" if name in before else "-"
        rows.append((name, f"{value:.4f}", said, "DROPPED" if name in dropped(figures, before) else ""))
    rows += [
        (name, "-", f"{value:.4f}", "not measured") for name, value in before.items() if name not in figures
    ]
    show("Against bench/baseline.json", rows, ("figure", "now", "kept", ""))
    if write:
        kept.setdefault(part, {}).update({name: round(value, 4) for name, value in figures.items()})
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(kept, indent=2, sort_keys=True) + "\n")
    return not dropped(figures, before)


def dropped(figures: Figures, before: Figures) -> list[str]:
    """Which figures are more than 2 % below what they were."""
    return [
        name for name, value in figures.items() if name in before and value < before[name] * (1 - MAY_DROP)
    ]
