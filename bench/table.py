"""One plain table, and the CPU time of a child process."""

import os
import resource
import subprocess
from collections.abc import Sequence


def show(title: str, rows: Sequence[Sequence[str]], head: Sequence[str]) -> None:
    """Print a markdown table."""
    widths = [max(len(str(row[column])) for row in (head, *rows)) for column in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        return (
            "| "
            + " | ".join(str(cell).ljust(width) for cell, width in zip(cells, widths, strict=True))
            + " |"
        )

    print(f"## {title}\n")
    print(line(head))
    print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    for row in rows:
        print(line(row))
    print(flush=True)


def verdict(value: float, limit: float, *, at_least: bool = False) -> str:
    """How a figure stands against its target."""
    good = value >= limit if at_least else value <= limit
    return f"{'reached' if good else 'MISSED'} ({'>=' if at_least else '<='} {limit:g})"


def cpu_of(
    command: Sequence[str], runs: int, *, text: str = "", env: dict[str, str] | None = None
) -> list[float]:
    """CPU seconds (user and system) of a command, sorted, over a number of runs."""
    # Installed software has its byte code beside it; a shell that forbids writing it would measure the compiler.
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            list(command),
            input=text.encode(),
            stdout=subprocess.DEVNULL,
            check=True,
            env={**environ, **(env or {})},
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return sorted(times)
