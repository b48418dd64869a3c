"""Golden questions: what it costs to ask a hundred of them, and to check a change with them."""

import os
import random
import sys
import time
from collections.abc import Callable

from bench.dashboard import made_up, made_up_memory
from bench.table import show, verdict
from quaid.app import Brain
from quaid.operations import dispatch, golden
from quaid.storage import pages
from quaid.storage.questions import GoldenQuestions

PAGES, QUICK_PAGES = 5_000, 1_000
QUESTIONS = 100
RUN_SECONDS = 5
GUARDS = 1_000


def main() -> None:
    count = QUICK_PAGES if "--quick" in sys.argv else PAGES
    with made_up_memory(count) as settings, Brain(settings) as brain:
        made = [(page.slug, page.summary) for page in made_up(count)]
        rows = _measure(brain, settings.cwd, made)
    show(f"Golden questions, {count:,} pages", rows, ("what", "figure (CPU)", "target"))


def _measure(brain: Brain, folder: str, made: list[tuple[str, str]]) -> list[tuple[str, ...]]:
    free = _spent(lambda: [golden.guard(brain, int) for _ in range(GUARDS)])
    plain = _spent(lambda: _import(brain, folder, "plain"))
    rng = random.Random(3)

    for slug, text in rng.sample(made, QUESTIONS):
        row = pages.require(brain.db, slug)
        words = " ".join(rng.sample(text.rstrip(".").split(), 6))
        GoldenQuestions(brain.db).add(words, [row.id], 5, brain.now())
    golden.golden_run(brain)  # loads the model
    run = golden.golden_run(brain)
    guarded = _spent(lambda: _import(brain, folder, "guarded"))
    return [
        (
            f"golden run, {QUESTIONS} questions, model loaded",
            f"{run.cpu_seconds:.2f} s",
            verdict(run.cpu_seconds, RUN_SECONDS),
        ),
        ("questions that pass", f"{run.passed} of {QUESTIONS}", ""),
        ("a change without golden questions, checked", f"{free / GUARDS * 1e6:.0f} µs", ""),
        ("import of 100 pages, without golden questions", f"{plain:.2f} s", ""),
        (f"import of 100 pages, with {QUESTIONS} golden questions", f"{guarded:.2f} s", ""),
    ]


def _import(brain: Brain, folder: str, name: str) -> None:
    place = os.path.join(folder, name)
    os.mkdir(place)
    for number in range(100):
        with open(os.path.join(place, f"{name}-{number}.md"), "w", encoding="utf-8") as file:
            file.write(f"# {name} {number}\n\n" + f"A harmless sentence about {name} {number}. " * 20)
    dispatch.call(brain, dispatch.find_command("import"), {"folder": place}, "owner")


def _spent(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    main()
