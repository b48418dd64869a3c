"""Whatever somebody types is a search: an answer, or a refusal that says why, never a surprise."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.faults.full_memory import converse, create_memory
from tests.faults.fuzzed_queries import query
from tests.faults.ledger import Cases
from tests.faults.workspace import run

from quaid.errors import QuaidError

pytestmark = pytest.mark.promise("any text is a search")
WAYS = {
    "search": "query",
    "query": "question",
    "recall": "query",
    "glance": "text",
    "conversations search": "query",
    "kb query": "context",
}
"""Every command that looks for a text, and what it calls the text."""

REFUSALS = {"invalid_argument", "too_large"}


def test_every_text_can_be_searched_for_everywhere(tmp_path: Path, cases: Cases) -> None:
    home = tmp_path / "home"
    counter: Counter[str] = Counter()
    with create_memory(home) as brain:
        for number in range(40):
            text = f"# Page {number}\n\nTea and kettle {number} in Oslo, 東京 and 知识. [[p{number - 1}]]\n"
            run(brain, "put", slug=f"p{number}", content=text)
        run(brain, "remember", content="The kettle is in the kitchen")
        converse(home, brain, "Where is the kettle?", "In the kitchen, since 2025.")
        run(brain, "kb remember", title="Kettles", text="They boil water.", summary="About kettles")
        for seed in cases.walk(40, 100_000 // len(WAYS)):
            for command, name in WAYS.items():
                counter[ask(brain, command, {name: query(seed)})] += 1
            cases.count(len(WAYS) - 1)
    assert set(counter) <= {"answered", *REFUSALS}, counter
    assert cases.alone or counter["answered"] > 10 * sum(counter[refusal] for refusal in REFUSALS)
    cases.note(f"{counter['answered']:,} answered, {sum(counter[refusal] for refusal in REFUSALS):,} refused")


def ask(brain: Any, command: str, given: dict[str, str]) -> str:
    try:
        run(brain, command, **given)
    except QuaidError as error:
        return error.code if str(error).strip() else "a refusal without a word"
    return "answered"
