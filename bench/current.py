"""Questions whose answers changed: do the facts answer first, and is what has ended marked as superseded?

    python -m bench current [-v]

The calls in bench/data/current.jsonl make a memory of meetings, sessions and papers with the tools of agents. Values
change in later calls and by corrections. Each question then states what the answer must show:

- `first`: the first fact. `facts`: facts that must be listed. `not_facts`: what no fact may state.
- `old`: texts that are shown as superseded or not at all. `now`: the value beside them, if they are shown.
- `current`: texts that are shown and not superseded. `both`: texts that are shown. `shown`: a text that facts or
  results have.
- `latest`, `not_latest`: what the newest entry of a result states or does not state.

-v prints every answer that fails.
"""

import json
import os
import re
import sys
import tempfile
from typing import Any

from bench.table import show, verdict
from bench.truth import Clock
from quaid import config
from quaid.app import Brain
from quaid.operations import dispatch

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "current.jsonl")
TODAY = "2026-06-15"
KINDS = {
    "facts": "facts that answer come first",
    "superseded": "statements that were replaced are marked",
    "current": "statements that hold are not marked",
    "history": "questions about the past, and those that only look so",
    "latest": "the newest entry of a page",
    "done": "tasks that are done",
}

Row = dict[str, Any]


def main() -> None:
    outcomes, tokens = measure(DATA)
    rows = []
    for kind, title in KINDS.items():
        own = [not problems for row, problems, _ in outcomes if row["kind"] == kind]
        if own:
            rows.append((title, f"{sum(own)} of {len(own)}", ""))
    passed = sum(not problems for _, problems, _ in outcomes)
    share = passed / len(outcomes)
    rows.append(("all", f"{passed} of {len(outcomes)}", verdict(round(share, 3), 0.9, at_least=True)))
    rows.append(("tokens of an answer, mean", f"{tokens:,.0f}", ""))
    show("What is current", rows, ("questions", "answered as stated", "target"))
    for row, problems, view in outcomes:
        if problems:
            print(f"  {row['ask']} {'; '.join(problems)}")
            if "-v" in sys.argv:
                print(json.dumps(view, ensure_ascii=False, indent=1))
    print()


def measure(path: str) -> tuple[list[tuple[Row, list[str], Row]], float]:
    """Return each question with what is wrong with its answer and the answer, and the mean tokens of the answers."""
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    outcomes, tokens = [], 0
    with tempfile.TemporaryDirectory() as folder:
        db_path = os.path.join(folder, "memory.db")
        clock = Clock()
        with Brain(config.read_settings(db_path, {"HOME": folder}, folder), clock=clock) as brain:
            brain.create(db_path)
            brain.agent = "bench"
            for row in rows:
                if "tool" in row:
                    clock.day = row["arguments"].get("date", clock.day)
                    dispatch.call(brain, dispatch.find_tool(row["tool"]), row["arguments"], "write")
            clock.day = TODAY
            for row in rows:
                if "ask" in row:
                    call = dispatch.find_tool("memory_query")
                    answer = dispatch.call(brain, call, {"query": row["ask"]}, "read")
                    view = answer.agent_view()
                    tokens += answer.total_tokens
                    outcomes.append((row, judge(row, view), view))
    return outcomes, tokens / len(outcomes)


def judge(row: Row, view: Row) -> list[str]:
    """Return what is wrong with an answer."""
    facts, results = view.get("facts", []), view.get("results", [])
    texts = {place: re.sub(r"~~.*?~~", "", result["text"]) for place, result in enumerate(results)}
    latest = [result["latest"] for result in results if "latest" in result]
    problems = []

    def require(is_right: object, name: str) -> None:
        if not is_right:
            problems.append(name)

    def matching(pattern: str) -> list[Row]:
        return [results[place] for place, text in texts.items() if re.search(pattern, text)]

    if "first" in row:
        require(facts and re.search(row["first"], facts[0]), "first")
    for pattern in row.get("facts", ()):
        require(any(re.search(pattern, fact) for fact in facts), f"facts: {pattern}")
    if "not_facts" in row:
        require(not any(re.search(row["not_facts"], fact) for fact in facts), "not_facts")
    for pattern in row.get("old", ()):
        marked = matching(pattern)
        require(all(result.get("status") == "superseded" for result in marked), f"old: {pattern}")
        if "now" in row:
            require(all(re.search(row["now"], str(result.get("now"))) for result in marked), "now")
    for pattern in row.get("current", ()):
        shown = matching(pattern)
        require(shown and not any("status" in result for result in shown), f"current: {pattern}")
    for pattern in row.get("both", ()):
        require(matching(pattern), f"both: {pattern}")
    if "shown" in row:
        require(re.search(row["shown"], "\n".join([*facts, *texts.values()])), "shown")
    if "latest" in row:
        require(any(re.search(row["latest"], text) for text in latest), "latest")
    if "not_latest" in row:
        require(not any(re.search(row["not_latest"], text) for text in latest), "not_latest")
    return problems


if __name__ == "__main__":
    main()
