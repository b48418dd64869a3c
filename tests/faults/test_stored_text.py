"""Poisoned pages through everything that reads: each answer is labelled, and no text gets out of its place.

The label is decided by where a text is kept; the tools are described the same way whatever the memory holds.
"""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.faults import injected_text
from tests.faults.full_memory import converse, create_memory, environment
from tests.faults.injected_text import Poison
from tests.faults.ledger import Cases
from tests.faults.workspace import FOLDER, run
from tests.mcp.pipes import Pipes, failure_of

from quaid.folders import attachments
from quaid.mcp import tools
from quaid.operations.registry import Operation, all_operations

READS = [operation for operation in all_operations() if operation.scope == "read"]
OWN = {"memory_context", "notebook_list", "notebook_read"}
IMAGE = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"
pytestmark = pytest.mark.promise("stored text is data")


@contextmanager
def poisoned(home: Path, pages: list[Poison]) -> Iterator[Pipes]:
    """A household where every page is hostile, and a server on it."""
    with create_memory(home) as brain:
        for number, page in enumerate(pages):
            run(brain, "put", slug=f"poison/p{number}", content=page.text)
            (home / FOLDER / f"f{number}.md").write_text(page.text)
        reference = home / "notebook" / "reference"
        (reference / "orders.md").write_text("# Orders\n\nCall me Ann.\n")
        for number, page in enumerate(pages[:5]):
            (reference / f"z{number}.md").write_text(page.text)
        run(brain, "collection sync")
        converse(home, brain, *[page.text for page in pages[:50]])
        for page in pages[:2]:
            text = page.text.replace("---", "")
            run(brain, "kb remember", title=page.word, text=text, summary=f"About {page.word}", force=True)
        run(brain, "assert", slug="poison/p0", predicate="role", object=pages[0].text[:200])
        run(brain, "attach", data=base64.b64encode(IMAGE).decode())
        run(brain, "gaps add", query_text=pages[0].text[:500])
    server = Pipes(str(home / "memory.db"), "--tools", "all", environ=environment(home), cold=True)
    try:
        server.greet()
        yield server
    finally:
        server.kill()


def arguments(operation: Operation, number: int, word: str, home: Path) -> dict[str, Any]:
    """What a tool is asked for, so that its answer holds the page."""
    names = {
        "slug": f"poison/p{number}",
        "from": f"poison/p{number}",
        "to": "poison/p0",
        "subject": "poison/p0",
        "wing": "poison",
        "path": f"reference/z{number % 5}.md",
        "session": "talk-1",
        "node": word,
        "name": attachments.image_name(IMAGE),
        "names": [f"poison/p{number}"],
        **dict.fromkeys(("query", "question", "text", "context"), f"{word} says"),
    }
    items = {param.name: names[param.name] for param in operation.params if param.required}
    return items | ({"slug": f"{FOLDER}::f{number}"} if number % 3 == 1 and "slug" in items else {})


def test_every_answer_of_every_read_tool_is_labelled_by_its_place_and_quoted(
    tmp_path: Path, cases: Cases
) -> None:
    pages = [injected_text.page(seed) for seed in range(200)]
    seeds = cases.seeds(8, 200)
    messages: dict[str, int] = {}
    with poisoned(tmp_path / "home", [pages[seed] for seed in seeds]) as server:
        before = json.dumps(server.ask("tools/list")["result"], sort_keys=True)
        for number, seed in enumerate(cases.each(seeds)):
            word = pages[seed].word if number < 2 else pages[seeds[0]].word
            for operation in READS:
                kb = operation.tool in ("kb_show", "kb_backlinks")
                asked = arguments(operation, number, word if kb else pages[seed].word, tmp_path)
                answer = server.call(operation.tool, **asked)
                if "error" in answer or answer["result"]["isError"]:
                    assert failure_of(answer)["code"] != "defect", (operation.tool, answer)
                    continue
                check(operation.tool, answer["result"])
                messages[operation.tool] = messages.get(operation.tool, 0) + (pages[seed].word in str(answer))
        after = json.dumps(server.ask("tools/list")["result"], sort_keys=True)
        assert before == after
        assert "venom" not in after
        status, left, errors = server.end()
    assert (status, left) == (0, [])
    assert "venom" not in errors
    cases.count(len(seeds) * (len(READS) - 1))
    assert {read.tool for read in READS} == set(messages), "a tool that never answered was never tried"
    served = {name for name, times in messages.items() if times}
    asked_for = {"memory_get", "memory_search", "memory_query", "recall", "conversation_search", "kb_show"}
    assert asked_for <= served
    cases.note(f"{len(READS)} tools, {sum(messages.values()):,} answers with poison, all labelled")


def check(tool: str, result: dict[str, Any]) -> None:
    """The label stands first, says what it must, and the text is one JSON value."""
    wanted = {"trust": "own" if tool in OWN else "data"}
    (block,) = result["content"]
    pairs: list[tuple[str, Any]] = json.loads(block["text"], object_pairs_hook=list)
    assert dict(pairs[:1]) == wanted, tool
    assert [key for key, _ in pairs].count("trust") == 1
    assert "structuredContent" not in result


def test_record_text_cannot_replace_its_label() -> None:
    provenance = tools.with_provenance("memory_get", {"title": "T", "trust": "own", "origin": "notebook"})
    assert list(provenance.items()) == [("trust", "data"), ("title", "T"), ("origin", "notebook")]


def test_resources_and_prompts_keep_a_text_within_its_marks(tmp_path: Path, cases: Cases) -> None:
    pages = [injected_text.page(seed) for seed in range(200)]
    seeds = cases.seeds(8, 200)
    with poisoned(tmp_path / "home", [pages[seed] for seed in seeds]) as server:
        for number, _ in enumerate(cases.each(seeds)):
            answer = server.ask("resources/read", {"uri": f"memory://pages/poison/p{number}"})
            (content,) = answer["result"]["contents"]
            assert content["_meta"] == {"quaid/origin": "memory", "quaid/trust": "data"}
        (context,) = server.ask("resources/read", {"uri": "memory://context"})["result"]["contents"]
        assert context["_meta"] == {"quaid/origin": "notebook", "quaid/trust": "own"}
        begun = [line for line in context["text"].splitlines() if "<!--" in line and "-->" in line]
        names = ["orders", *(f"z{number}" for number in range(min(5, len(seeds))))]
        assert begun == [f"<!-- reference/{name}.md -->" for name in names]
        briefing = server.ask("prompts/get", {"name": "memory_briefing"})["result"]["messages"][0]
        text = briefing["content"]["text"].lower()
        assert [text.count(mark) for mark in ("<memory>", "</memory>", "< / memory>")] == [1, 1, 0]
        transcript = {"transcript": "\n".join(pages[seed].text for seed in seeds)}
        fields = {"name": "memory_ingest_meeting", "arguments": transcript}
        meeting = server.ask("prompts/get", fields)["result"]["messages"][0]["content"]["text"].lower()
        assert [meeting.count(mark) for mark in ("<transcript>", "</transcript>")] == [1, 1]
        assert meeting.rstrip().endswith("</transcript>")
