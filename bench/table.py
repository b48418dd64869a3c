"""One plain table, a curve beside it, and the CPU time of a child process."""

import os
import resource
import subprocess
from collections.abc import Sequence
from typing import NamedTuple

from bench.plot import Curve


class Table(NamedTuple):
    title: str
    rows: Sequence[Sequence[str]]
    head: Sequence[str]


SHOWN: list[Table] = []
CURVES: list[Curve] = []
"""What this run has shown so far, for `bench.page`."""


def show(title: str, rows: Sequence[Sequence[str]], head: Sequence[str]) -> None:
    """Print a markdown table, and keep it for the page."""
    SHOWN.append(Table(title, rows, head))
    print(markdown(SHOWN[-1]), flush=True)


def draw(curve: Curve) -> None:
    """Keep a curve for the page."""
    CURVES.append(curve)


def markdown(table: Table) -> str:
    title, rows, head = table
    widths = [max(len(str(row[column])) for row in (head, *rows)) for column in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        return (
            "| "
            + " | ".join(str(cell).ljust(width) for cell, width in zip(cells, widths, strict=True))
            + " |"
        )

    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([f"## {title}\n", line(head), rule, *map(line, rows), ""])


def verdict(value: float, limit: float, *, at_least: bool = False) -> str:
    """How a figure stands against its target."""
    good = value >= limit if at_least else value <= limit
    return f"{'reached' if good else 'MISSED'} ({'>=' if at_least else '<='} {limit:g})"


def child_environ(*paths: str) -> dict[str, str]:
    """Return the environment of a process that is measured, with these folders of modules.

    Installed software has its byte code beside it; a process that must not write it would measure the compiler.
    """
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**environ, "PYTHONPATH": os.pathsep.join(paths)} if paths else environ


def cpu_of(
    command: Sequence[str], runs: int, *, text: str = "", env: dict[str, str] | None = None
) -> list[float]:
    """CPU seconds (user and system) of a command, sorted, over a number of runs."""
    times = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            list(command),
            input=text.encode(),
            stdout=subprocess.DEVNULL,
            check=True,
            env={**child_environ(), **(env or {})},
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return sorted(times)
