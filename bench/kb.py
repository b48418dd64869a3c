"""The knowledge base: CPU time of fresh `ai-kb` processes, their git included, at 100, 1,000 and 10,000 nodes.

Warm is ordinary use. Cold is the first time after a clone or a change of lint's rules, when every node is parsed; no
target is set for it. The best of several runs counts: the machine is shared, and what others do only ever adds.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable

from bench.table import cpu_of, show, verdict

SIZES = (100, 1_000, 10_000)
RUNS = 7
NODE_BYTES = 2_000
BUDGETS = {"index": 150, "query": 50, "lint": 300, "remember": 400}
"""CPU milliseconds at 1,000 nodes: a twentieth of what the seed allows."""

GROWTH = 11.0
"""How many times as long ten times as many nodes may take: as many, and what the machine's noise adds."""

TYPES = ("principle", "preference", "procedure", "observation", "reference")
PROJECTS = ("general", "emacs", "deepsat", "website", "backups", "home-lab", "taxes", "notes")
SYLLABLES = (
    "ba be bi bo bu da de di do du fa fe ga ge gi ka ke ki ko la le li lo lu ma me mi mo na ne ni no pa pe po"
    " ra re ri ro sa se si so ta te ti to va ve vi za"
).split()


def main() -> None:
    quick = "--quick" in sys.argv
    program = os.path.join(os.path.dirname(sys.executable), "ai-kb")
    if not os.path.exists(program):
        raise SystemExit("bench.kb needs the ai-kb command beside its Python: run it with `make bench`")
    times = {size: measured(program, size, 3 if quick else RUNS) for size in (SIZES[:2] if quick else SIZES)}
    bare = 1000 * cpu_of([sys.executable, "-c", "pass"], 3 if quick else 15)[0]
    rows = [("python -c pass", *[f"{bare:.0f}"] * len(times), "1.0", "", "")]
    for what in times[SIZES[0]]:
        at = [time[what] for time in times.values()]
        budget = BUDGETS.get(what.partition(",")[0]) if "cold" not in what else None
        growth = at[-1] / at[-2]
        grown = "" if quick else f"{growth:.1f} {verdict(growth, GROWTH)}"
        rows.append(
            (
                what,
                *[f"{each:.0f}" for each in at],
                f"{at[1] / bare:.1f}",
                verdict(at[1], budget) if budget else "",
                grown,
            )
        )
    sizes = tuple(f"{size:,}" for size in times)
    head = (
        "CPU ms, git included",
        *sizes,
        "ratio at 1,000",
        "target at 1,000",
        f"{sizes[-2]} to {sizes[-1]}, times",
    )
    show("Knowledge base", rows, head)


def measured(program: str, size: int, runs: int) -> dict[str, float]:
    """CPU milliseconds of each command at a number of nodes."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("QUAID_BENCH_DISK")) as folder:
        environ = make(program, folder, size)
        store = environ["AI_KB_DIR"]
        catalog = os.path.join(store, ".git", "ai-kb", "catalog")
        words = random.Random(size)

        def best(*arguments: str) -> float:
            return 1000 * cpu_of([program, *arguments], 1, env=environ)[0]

        def remember() -> float:
            title = " ".join(word(words) for _ in range(4))
            text = " ".join(word(words) for _ in range(300))
            return best("remember", text, "--title", title, "--summary", f"What {title} means for us")

        def stale_index() -> float:
            with open(os.path.join(store, "index.org"), "a", encoding="utf-8") as file:
                file.write("\n")
            return best("index")

        def cold(work: str) -> float:
            os.unlink(catalog)
            return best(*work.split())

        acts: dict[str, Callable[[], float]] = {
            "query, cold": lambda: cold("query formatter"),
            "index, cold": lambda: cold("index"),
            "lint, cold": lambda: cold("lint"),
            "lint, warm": lambda: best("lint"),
            "index, stale, with its commit": stale_index,
            "query, warm": lambda: best("query", "formatter"),
            "remember, warm": remember,
            "query, after a change": lambda: best("query", "formatter"),
            "status": lambda: best("status"),
        }
        found: dict[str, list[float]] = {what: [] for what in acts}
        for _ in range(runs):
            time.sleep(0 if runs < RUNS else 2.5)  # what changed just now is read again
            for what, act in acts.items():
                found[what].append(act())
        return {what: min(each) for what, each in found.items()}


# A store that looks like one


def make(program: str, folder: str, size: int) -> dict[str, str]:
    """A store with so many nodes, pushed to a bare remote on the disk; the environment to find it."""
    store, remote = os.path.join(folder, "store"), os.path.join(folder, "remote.git")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "QUAID_", "XDG_"))}
    environ = {**kept, "HOME": folder, "AI_KB_DIR": store}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)

    def run(*command: str) -> None:
        subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL)

    run("git", "init", "--quiet", "--bare", "-b", "main", remote)
    run(program, "init", "--remote", remote)
    for name, text in nodes(size - 1):
        with open(os.path.join(store, name), "w", encoding="utf-8") as file:
            file.write(text)
    # By plain git: what a commit of 10,000 new files takes is not what is measured here.
    run("git", "-C", store, "add", "--all")
    run(
        *("git", "-C", store, "-c", "user.name=b", "-c", "user.email=b@example.org"), "commit", "-qm", "nodes"
    )
    run(program, "index")
    run("git", "-C", store, "gc", "--quiet")
    run(program, "push")
    return environ


def nodes(count: int, seed: int = 7) -> list[tuple[str, str]]:
    """File names and texts of nodes with links among them."""
    chance = random.Random(seed)
    vocabulary = [word(chance) for _ in range(4_000)]
    ids = [str(uuid.UUID(int=chance.getrandbits(128), version=4)) for _ in range(count)]
    made = []
    for number, id in enumerate(ids):
        title = " ".join(chance.choices(vocabulary, k=4)).capitalize() + (
            " formatter" if number % 37 == 5 else ""
        )
        links = [f"RELATES_TO [[id:{chance.choice(ids[:number])}][another]]" for _ in range(min(number, 2))]
        made.append((f"{20260101000000 + number}-n.org", node(chance, vocabulary, id, title, links)))
    return made


def node(chance: random.Random, vocabulary: list[str], id: str, title: str, links: list[str]) -> str:
    day = f"2026-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"
    head = [
        *(":PROPERTIES:", f":ID: {id}", f":PROJECTS: :{chance.choice(PROJECTS)}:", ":CREATED: 2025-12-01"),
        *(f":UPDATED: {day}", ":CREATED_BY: claude-code", ":CONFIDENCE: observed", ":VISIBILITY: personal"),
        *(f":SOURCE: chat {day}", ":STATUS: current"),
        f":SUMMARY: {' '.join(chance.choices(vocabulary, k=12)).capitalize()}.",
        *(":END:", f"#+title: {title}", f"#+filetags: :{chance.choice(TYPES)}:", ""),
    ]
    lines: list[str] = []
    while sum(map(len, lines)) < NODE_BYTES - 600:
        sentence = f"{' '.join(chance.choices(vocabulary, k=14)).capitalize()}."
        shape = chance.randrange(8)
        lines.append(
            {0: f"* {sentence[:40]}", 1: f"- {sentence}", 2: f"- [ ] {sentence}"}.get(shape, sentence)
        )
        if shape == 3:
            lines += ["#+begin_src sh", "make test && git status --short", "#+end_src"]
    return "\n".join([*head, *lines, "", *links, ""])


def word(chance: random.Random) -> str:
    return "".join(chance.choices(SYLLABLES, k=chance.randrange(2, 5)))


if __name__ == "__main__":
    main()
