"""What a restricted caller costs: CPU time of calls that see a half, a tenth or all of a memory.

Run `python bench/scopes.py [PAGES]`. All callers ask the same questions in turn, in one process.
"""

import random
import sys
import tempfile
import time
from pathlib import Path

from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch

ROUNDS = 40
WORDS = [
    f"{first}{last}"
    for first in "ba do fe ki lu mo ni pa ru so".split()
    for last in "ral tin wok zel mur".split()
]


def call(brain: Brain, tool: str, **arguments: object) -> float:
    """Call a tool and return its CPU time in milliseconds."""
    began = time.process_time()
    dispatch.call(brain, dispatch.find_tool(tool), arguments, "write")
    return (time.process_time() - began) * 1000


def fill(brain: Brain, pages: int) -> None:
    chance = random.Random(7)
    for number in range(pages):
        wing = "work" if number % 10 == 0 else "half" if number % 2 else "rest"
        text = " ".join(chance.choices(WORDS, k=120))
        link = f"[[{wing}/{number - 10}]]" if number >= 10 else ""
        content = f"# {chance.choice(WORDS)} {number}\n\n{text} {link}\n"
        call(brain, "memory_put", slug=f"{wing}/{number}", content=content)


def main(pages: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        environ = {"QUAID_EMBEDDING_PLUGIN": "off", "QUAID_LOG_GAPS": "off"}
        settings = Settings(str(Path(folder) / "memory.db"), folder, folder, environ)
        with Brain(settings) as brain:
            brain.create(settings.db_path)
            fill(brain, pages)
        scopes = {
            "all": (),
            "half": (("wing:half",),),
            "tenth": (("wing:work",),),
            "collection": (("default",),),
        }
        brains = {name: Brain(settings._replace(only=only)) for name, only in scopes.items()}
        slugs = {"all": "work/0", "half": "half/1", "tenth": "work/0", "collection": "work/0"}
        for name, brain in brains.items():
            began = time.process_time()
            _ = brain.db
            opened = (time.process_time() - began) * 1000
            first = call(brain, "memory_query", query=WORDS[0])
            print(f"{name}: open {opened:.1f} ms, first question {first:.0f} ms")
        for tool in ("memory_get", "memory_search", "memory_query", "memory_backlinks", "memory_list"):
            times: dict[str, list[float]] = {name: [] for name in brains}
            for number in range(ROUNDS):
                words = f"{WORDS[number % 50]} {WORDS[(number * 7 + 3) % 50]}"
                for name, brain in brains.items():
                    arguments = {"query": words} if tool in ("memory_search", "memory_query") else {}
                    arguments |= {"slug": slugs[name]} if tool in ("memory_get", "memory_backlinks") else {}
                    times[name].append(call(brain, tool, **arguments))
            medians = {name: sorted(values)[ROUNDS // 2] for name, values in times.items()}
            print(tool, ", ".join(f"{name} {value:.2f} ms" for name, value in medians.items()))
        for name, brain in brains.items():
            writes = [
                call(brain, "memory_tag", slug=slugs[name], tag=f"{name}{number}") for number in range(10)
            ]
            after = call(brain, "memory_query", query=WORDS[1])
            print(f"{name}: write {sorted(writes)[5]:.1f} ms, question after a write {after:.1f} ms")
            brain.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000)
