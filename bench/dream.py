"""A dream by rules over a large memory with conversations: CPU time by kind."""

import random
import sys
import time
from functools import partial

from bench.dashboard import PAGES, QUICK_PAGES, made_up_memory
from bench.table import show, verdict
from quaid.app import Brain
from quaid.operations import dream
from quaid.storage.conversations import NewTurn, TurnBatch

TURNS, QUICK_TURNS = 10_000, 1_000
SECONDS = 60


def main() -> None:
    quick = "--quick" in sys.argv
    count, turns = (QUICK_PAGES, QUICK_TURNS) if quick else (PAGES, TURNS)
    rows: list[tuple[str, ...]] = []
    with made_up_memory(count) as settings, Brain(settings) as brain:
        _talk(brain, turns)
        total = 0.0
        for kind in dream.KINDS:
            began = time.process_time()
            record = dream.dream(brain, [kind], 1_000)
            took = time.process_time() - began
            total += took
            rows.append((kind, f"{took:.2f} s", str(record.kinds[0].proposed), ""))
        rows.append(("all kinds", f"{total:.2f} s", "", verdict(total, SECONDS)))
        began = time.process_time()
        dream.dream(brain)
        rows.append(("again, nothing new", f"{time.process_time() - began:.2f} s", "", ""))
    show(f"Dream by rules, {count:,} pages, {turns:,} turns", rows, ("kind", "CPU", "proposed", "target"))


def _talk(brain: Brain, count: int) -> None:
    """Add conversations whose turns name pages; one in ten states a fact."""
    dice = random.Random(7)
    titles = [title for (title,) in brain.db.rows("SELECT title FROM pages ORDER BY id")]
    for session in range(count // 50):
        turns = []
        for _ in range(50):
            name = dice.choice(titles)
            text = f"We spoke about {name} again, and nothing came of it."
            if dice.random() < 0.1:
                text = f"{name} lives in {dice.choice(('Oslo', 'Galway', 'Porto'))} now."
            turns.append(NewTurn("user", text, "2026-04-20T10:00:00Z", ""))
        batch = TurnBatch("claude-code", str(session), turns)
        brain.db.write(partial(batch.save, now=brain.now(), seen={}, anew=True))


if __name__ == "__main__":
    main()
