"""Links at scale: what leads to a page, and what is around it, in a memory of 100,000 links."""

import os
import random
import sys
import tempfile
import time
from collections.abc import Callable

from bench.table import show, verdict
from quaid.app import Brain
from quaid.config import Settings
from quaid.model.page import build_page
from quaid.operations import dispatch
from quaid.storage import page_edits

PAGES, LINKS = 20_000, 100_000
QUICK = 10
ASKED = 300
NOW = "2026-04-25T12:00:00Z"


def main() -> None:
    part = QUICK if "--quick" in sys.argv else 1
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "memory.db")
        with Brain(Settings(db_path=path, home=folder, cwd=folder)) as brain:
            brain.create(path)
            made = _fill(brain, PAGES // part, LINKS // part)
            rng = random.Random(7)
            # Half of the questions go to the pages that most links lead to: where it hurts.
            popular = [f"p{number}" for number in range(ASKED // 2)]
            asked = popular + [f"p{rng.randrange(PAGES // part)}" for _ in range(ASKED // 2)]
            rows = [
                (f"making {PAGES // part:,} pages and their links", f"{made:.1f} s", "", ""),
                _row("backlinks", brain, asked, "backlinks"),
                _row("backlinks, all of them", brain, asked, "backlinks", temporal="all", limit=100_000),
                _row("graph, depth 2", brain, asked, "graph", depth=2),
                _row("graph, depth 2, 2,000 pages", brain, asked[::5], "graph", depth=2, limit=2_000),
                _row("path", brain, asked[::5], "path"),
            ]
    show(f"Links, {LINKS // part:,} of them, resident, CPU", rows, ("what", "p50", "p95", "target"))


def _fill(brain: Brain, count: int, links: int) -> float:
    """Pages whose links follow a power law: few pages are led to by very many."""
    rng = random.Random(1)
    texts = [[] for _ in range(count)]  # type: list[list[str]]
    for _ in range(links):
        texts[rng.randrange(count)].append(f"[[p{int(count * rng.random() ** 4)}]]")

    def work(tx: object) -> None:
        for number, named in enumerate(texts):
            page = build_page(f"p{number}", {}, "Words around " + " and ".join(named), "")
            page_edits.save(tx, page, uuid=str(number), now=NOW, expected_version=0, cut=False)  # type: ignore[arg-type]

    started = time.process_time()
    brain.db.write(work)
    return time.process_time() - started


def _row(
    name: str, brain: Brain, slugs: list[str], command: str, **given: object
) -> tuple[str, str, str, str]:
    operation = dispatch.find_command(command)
    arguments: Callable[[str], dict[str, object]] = (
        (lambda slug: {"from": slug, "to": slugs[-1]})
        if command == "path"
        else (lambda slug: {"slug": slug, **given})
    )
    dispatch.call(brain, operation, arguments(slugs[0]), "read")
    times = []
    for slug in slugs:
        started = time.process_time()
        dispatch.call(brain, operation, arguments(slug), "read")
        times.append(time.process_time() - started)
    times.sort()
    half, most = times[len(times) // 2], times[int(len(times) * 0.95)]
    target = verdict(most * 1000, 20) if given in ({}, {"depth": 2}) and command != "path" else ""
    return name, f"{half * 1000:.1f} ms", f"{most * 1000:.1f} ms", target
