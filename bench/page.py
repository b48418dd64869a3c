"""`docs/benchmarks.md`: one page with every table of a run, where and when it was measured, and how cost grows.

A benchmark that is run alone with `--page` renews its own part of the page; each part says its commit and day, and
whether it was a short run. One that was never run has a part that says so.
"""

import os
import platform
import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from bench.plot import Curve, svg
from bench.table import Table, markdown

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(ROOT, "docs", "benchmarks.md")
IMAGES = os.path.join(ROOT, "docs", "images")
HEAD = """# Benchmarks

Written by `make bench`; `python -m bench NAME --page` renews one part. CPU time is user and system time of the whole
process. The machines are small, shared and noisy: ratios within one table mean something, times across tables and
days do not. A target that was not reached says MISSED.
"""
PART = re.compile(r"<!-- part (\S+) -->\n(.*?)<!-- end -->\n", re.DOTALL)


class Part(NamedTuple):
    """What one benchmark printed."""

    name: str
    tables: Sequence[Table]
    curves: Sequence[Curve]
    seconds: float
    is_quick: bool = False


def write(parts: Sequence[Part], order: Sequence[str]) -> None:
    """Put the parts of a run into the page; the others stay as they are."""
    known: dict[str, str] = {}
    if os.path.exists(PAGE):
        with open(PAGE, encoding="utf-8") as file:
            known = dict(PART.findall(file.read()))
    for part in parts:
        known[part.name] = _text(part)
    for name in order:
        known.setdefault(name, f"## {name}\n\nNot measured yet: `python -m bench {name} --page`.\n")
    sections = (f"<!-- part {name} -->\n{known[name]}<!-- end -->\n" for name in order)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write("\n".join([HEAD, *sections]))


def _text(part: Part) -> str:
    lines = [markdown(table) for table in part.tables]
    for number, curve in enumerate(part.curves):
        name = f"bench-{part.name}-{number}.svg"
        with open(os.path.join(IMAGES, name), "w", encoding="utf-8") as file:
            file.write(svg(curve))
        lines.append(f"![{curve.title}](images/{name})\n")
    short = ", a short run (`--quick`): fewer and smaller than usual" if part.is_quick else ""
    lines.append(f"*{_where()}, {part.seconds:.0f} s{short}.*\n")
    return "\n".join(lines)


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _where() -> str:
    # What earlier parts of a run have written is no change to what is measured.
    changed = _git("status", "--porcelain", "--", ":!docs/benchmarks.md", ":!docs/images")
    commit = (_git("rev-parse", "--short", "HEAD") or "no commit") + ("-dirty" if changed else "")
    day = datetime.now(UTC).date().isoformat()
    return (
        f"Commit {commit}, {day}, {os.cpu_count()} cores ({platform.machine()}),"
        f" Python {platform.python_version()}"
    )
