"""A memory in parts, and calls of every operation, for the tests of callers that see only some of the parts."""

import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults.full_memory import environment

from quaid.app import Brain
from quaid.config import Settings
from quaid.embedding.registry import ModelCache
from quaid.errors import QuaidError
from quaid.operations import dispatch
from quaid.operations.registry import Operation, Param, all_operations

NOON = 1_777_118_400.0  # 2026-04-25T12:00:00Z
CANARY = "zqxcanary"
"""Begins each word that exists only outside of what a restricted caller sees."""
Only = tuple[tuple[str, ...], ...]


def settings_for(home: Path, only: Only = (), model: str = "off") -> Settings:
    environ = {**environment(home), "QUAID_EMBEDDING_PLUGIN": model}
    return Settings(str(home / "memory.db"), str(home / ".quaid"), str(home), environ, only=only)


def open_brain(
    home: Path, at: float = 0, only: Only = (), model: str = "off", models: "ModelCache | None" = None
) -> Brain:
    """Open the memory with a clock that goes one second with each look, and countable randomness."""
    ticks, numbers = itertools.count(), itertools.count(int(at))
    return Brain(
        settings_for(home, only, model),
        clock=lambda: NOON + at + next(ticks) / 1000,
        random=lambda size: next(numbers).to_bytes(8, "big").rjust(size, b"\1")[-size:],
        offset=lambda _: 0,
        models=models,
    )


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.json_value(dispatch.call(brain, dispatch.find_command(command), arguments, "owner"))


def agent_run(brain: Brain, tool: str, **arguments: Any) -> Any:
    brain.agent, brain.session = "tester", "s1"
    try:
        return dispatch.json_value(dispatch.call(brain, dispatch.find_tool(tool), arguments, "write"))
    finally:
        brain.agent = brain.session = ""


def _write_pages(brain: Brain, word: str, place: str, wing: str) -> None:
    """Write pages with facts, links, tags, dates, tasks, versions, a contradiction, raw data and a redirect."""
    inside = f"{place}{wing}/{word}"
    run(
        brain,
        "put",
        slug=f"{inside}-river",
        content=(
            f"---\naliases: [{word}alias]\nowner: {word}owner\n---\n# River {word}\n\nThe river {word} begins in"
            f" Oslo. It leads to the [[harbor]] and to [[{wing}/{word}-harbor]] and [[nowhere/{word}]].\n\n"
            f"- [ ] paint {word} boat\n\n## Open threads\n\n- What about {word}thread?\n"
        ),
    )
    run(
        brain,
        "put",
        slug=f"{inside}-harbor",
        content=f"# Harbor\n\nThe harbor {word} opens in spring. See [[River {word}]].",
    )
    run(
        brain,
        "put",
        slug=f"{inside}-harbor2",
        content=f"# Harbor\n\nThe harbor {word} opens in spring. See [[River {word}]].",
    )
    run(
        brain,
        "put",
        slug=f"{inside}-river",
        compiled_truth=f"# River {word}\n\nThe river {word} begins in Bergen, not far from [[harbor]] {word}second."
        "\n\n- [ ] paint the boat",
    )
    run(brain, "tag", slug=f"{inside}-river", tag=f"{word}tag")
    run(brain, "timeline-add", slug=f"{inside}-river", date="2026-04-20", summary=f"{word}entry happened")
    run(brain, "raw", slug=f"{inside}-river", source=f"{word}source", data={"key": f"{word}value"})
    run(
        brain,
        "link",
        **{"from": f"{inside}-river", "to": f"{inside}-harbor2"},
        relationship=f"{word}related",
        valid_from="2026-01-01",
    )
    for day, value in (("2026-01-01", "Oslo"), ("2026-02-01", "Bergen")):
        run(
            brain,
            "assert",
            slug=f"{inside}-river",
            predicate="lives_in",
            object=f"{word}{value}",
            valid_from=day,
            source=f"{word}ref",
        )
    run(brain, "assert", slug=f"{inside}-river", subject="River", predicate="works_at", object=f"{word}firm")
    if not place:  # a page of a folder is renamed by renaming its file
        run(brain, "rename", slug=f"{inside}-harbor", new_slug=f"{wing}/{word}-port")


def write_work(brain: Brain, home: Path, word: str) -> None:
    """The collection `work`, with a folder."""
    if not brain.db.rows("SELECT 1 FROM collections WHERE name = 'work'"):
        (home / "work").mkdir(exist_ok=True)
        run(brain, "collection add", name="work", path=str(home / "work"))
    _write_pages(brain, word, "work::", "plans")


def write_people(brain: Brain, _home: Path, word: str) -> None:
    """Pages of the wing `people` in the default collection."""
    _write_pages(brain, word, "", "people")
    run(brain, "put", slug="people/harbor", content=f"# Harbor\n\nA family {word}.")


def write_others(brain: Brain, _home: Path, word: str) -> None:
    """Pages of other wings in the default collection, and what is about no collection."""
    _write_pages(brain, word, "", "things")
    run(brain, "put", slug="things/harbor", content=f"# Harbor\n\nAn other {word}.")
    run(brain, "put", slug="default::plans/work-river", content=f"# River work\n\nAn other river {word}.")
    run(brain, "ingest-source", content=f"Talked about {word}talk.", source=f"{word}/1", type="meeting")
    run(brain, "check", all=True)
    brain.leaves_marks = True
    run(brain, "query", query=f"who is {word}unknown?")
    run(brain, "gaps add", query=f"what is {word}gap?", context=f"{word}context")
    gap = run(brain, "gaps add", query=f"why is {word}gap?")["gap"]["id"]
    run(
        brain,
        "gaps approve",
        gap_id=gap,
        query=f"why is {word}gap?",
        sensitivity="external",
        approver=f"{word}person",
    )
    run(brain, "config set", key="agent_writes", value="review")
    agent_run(brain, "memory_put", slug=f"things/{word}-proposed", content=f"# Proposed {word}\n\nText.")
    agent_run(brain, "memory_forget", slug=f"things/{word}-river", reason=f"{word}reason")
    run(brain, "config set", key="agent_writes", value="direct")
    run(brain, "dupes")


def write_private(brain: Brain, home: Path, word: str) -> None:
    """A collection with a folder, a file that cannot be read, a page in quarantine and an image."""
    root = home / f"{word}folder"
    root.mkdir(exist_ok=True)
    (root / "harbor.md").write_text(f"# Harbor\n\nA private {word}.\n")
    (root / f"{word}bad.md").write_bytes(b"\xff\xfe\x00bad")
    (root / "gone.md").write_text(f"# Gone {word}\n\nText.\n")
    run(brain, "collection add", name="hidden", path=str(root))
    _write_pages(brain, word, "hidden::", "plans")
    run(brain, "put", slug="hidden::plans/work-river", content=f"# River work\n\nThe other river {word}.")
    (root / "gone.md").unlink()
    run(brain, "collection sync", name="hidden")


def write_notebook(brain: Brain, _home: Path, word: str) -> None:
    run(brain, "notebook init")
    run(brain, "remember", content=f"Sarah prefers {word} to phone.")
    run(brain, "log", content=f"Shipped {word}.")
    run(brain, "notebook write", path=f"lists/{word}.md", content=f"- [ ] buy {word}\n")


def write_kb(brain: Brain, _home: Path, word: str) -> None:
    run(brain, "kb init")
    run(
        brain,
        "kb remember",
        content=f"A node about {word}. " * 10,
        title=f"Node {word}",
        summary=f"About {word}",
        force=True,
    )
    run(brain, "kb query", query=word, semantic=True)


def write_conversations(brain: Brain, home: Path, word: str) -> None:
    path = home / "chats" / f"{word}.jsonl"
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as file:
        for number, text in enumerate((f"Where is the river {word}?", f"The harbor {word} is near Oslo.")):
            line = {
                "role": "user",
                "content": text,
                "timestamp": int(NOON) + number,
                "session": f"{word}session",
            }
            file.write(json.dumps(line) + "\n")
    run(brain, "conversations add", paths=[str(path)])


Part = Callable[[Brain, Path, str], None]
PARTS: dict[str, Part] = {
    "work": write_work,
    "wing:people": write_people,
    "wing:things": write_others,
    "private": write_private,
    "notebook": write_notebook,
    "kb": write_kb,
    "conversations": write_conversations,
}


def build(home: Path, only: Only, outside: bool, models: "ModelCache | None" = None) -> None:
    """Create a memory with the parts that are visible and, after them, with the others if `outside` is set."""
    inside = [name for name in PARTS if all(name in group for group in only)]
    home.mkdir()
    with open_brain(home) as brain:
        brain.create(brain.settings.db_path, "0198c0de-0000-7000-8000-000000000000")
        run(brain, "config set", key="agent_writes", value="direct")
        for name in inside:
            PARTS[name](brain, home, name.rpartition(":")[2])
        run(brain, "check", all=True)
    with open_brain(home, 40_000, only) as brain:
        run(brain, "gaps add", query="how long is the river?", context="asked at work")
    with open_brain(home, 50_000) as brain:
        for name in PARTS if outside else ():
            if name not in inside:
                PARTS[name](brain, home, CANARY + name.rpartition(":")[2])
                run(brain, "check", all=True)
    with open_brain(home, 60_000, model="bge-small-en-v1.5" if models else "off", models=models) as brain:
        if models:
            run(brain, "embed")


class Examples(NamedTuple):
    """Arguments that make sense for a restricted caller."""

    values: dict[str, Any]
    of_tools: dict[str, dict[str, Any]]
    """Other arguments for single tools."""
    words: list[str]
    """Texts that name something visible, something hidden, and something that does not exist."""
    ids: list[int]


HIDDEN_WORDS = [
    "harbor",
    "things/harbor",
    "hidden::harbor",
    "nothere::harbor",
    "default::plans/work-river",
    "peop*",
]
_OPTIONAL = {
    "memory_put": ("content",),
    "memory_revert": ("to",),
    "memory_correct": ("was",),
    "memory_forget": ("slug",),
    "memory_ingest": ("source", "title"),
    "memory_gap_approve": ("query",),
    "memory_tick": ("text",),
    "memory_check": ("slug",),
    "kb_remember": ("title", "force", "content"),
}
"""Arguments that an operation does not require, but needs."""


def examples(brain: Brain) -> Examples:
    """Return arguments for the Brain of a restricted caller."""
    wing, place, word, harbor = "plans", "work::plans/", "work", "harbor"
    if not any("work" in group for group in brain.settings.only[-1:]):
        wing, place, word, harbor = "people", "people/", "people", "port"
    river, other = f"{place}{word}-river", f"{place}{word}-harbor2"
    slug = river.rpartition("::")[2]
    (version,) = brain.db.one("SELECT version FROM pages WHERE slug = ?", (slug,)) or (1,)
    (link,) = brain.db.one("SELECT id FROM links WHERE source_kind = 'programmatic'") or (1,)
    values = {
        "slug": river, "from": river, "to": f"{place}{word}-{harbor}", "other": other, "into": river,
        "new_slug": f"{place}{word}-renamed", "query": "how long is the river?", "tag": "wet", "date": "2026-04-21",
        "content": "# Text\n\nThe river [[harbor]] is long.", "names": ["harbor", f"River {word}"],
        "summary": "Entry",
        "source": "note", "data": {"a": 1}, "predicate": "lives_in", "object": "Oslo", "subject": f"River {word}",
        "about": f"River {word}", "was": "Bergen", "now": "begins in Paris", "reason": "old", "gap_id": 1,
        "link_id": link, "valid_until": "2026-03-01", "node": "Node kb", "path": "lists/notebook.md",
        "session": "conversationssession", "name": "0" * 32 + ".png", "text": "paint the boat",
        "title": "Titled thing",
        "resolved_by_slug": river, "approver": "owner", "sensitivity": "external", "wing": wing,
        "type": "meeting", "append": "More text.", "relationship": "related", "expected_version": version,
    }  # fmt: skip
    of_tools: dict[str, dict[str, Any]] = {
        "memory_put": {"slug": f"{place}{word}-new"},
        "memory_revert": {"to": 1},
        "memory_unlink": {"to": other},
    }
    return Examples(values, of_tools, [river, other, *HIDDEN_WORDS], [1, 2, 7, 14, 31])


def scoped_calls(example: Examples) -> Iterator[tuple[Operation, dict[str, Any]]]:
    """Yield every operation for agents, with arguments that make sense, and then with each argument replaced."""
    for operation in all_operations():
        if operation.scope == "owner":
            continue
        extra = _OPTIONAL.get(operation.tool, ())
        base = {
            param.name: _value(param, example)
            for param in operation.params
            if param.required or param.arg.version == "page" or param.name in extra
        }
        base |= example.of_tools.get(operation.tool, {})
        yield operation, base
        for param in operation.params:
            for value in _replacements(param, example):
                yield operation, {**base, param.name: value}


def _value(param: Param, example: Examples) -> Any:
    value = example.values.get(param.name)
    if value is not None:
        return value
    usual: dict[str, Any] = {"boolean": True, "integer": 1, "number": 0.5, "array": [], "object": {}}
    return param.choices[0] if param.choices else usual.get(param.kind, "x")


def _replacements(param: Param, example: Examples) -> list[Any]:
    if param.kind == "string":
        return list(param.choices or example.words)
    if param.kind == "array":
        return [example.words] if param.items == "string" else []
    if param.kind == "integer":
        return list(example.ids)
    return [True] if param.kind == "boolean" else []


def answer(brain: Brain, operation: Operation, arguments: dict[str, Any]) -> str:
    """Return the answer of an operation, or its error, as text."""
    brain.agent, brain.session = "tester", "s1"
    try:
        value = dispatch.json_value(dispatch.call(brain, operation, arguments, "write"))
    except QuaidError as error:
        facts = {key: str(fact) for key, fact in error.facts.items()}
        value = {"error": error.code, "text": str(error), "facts": facts}
    return json.dumps(value, ensure_ascii=False, default=str, sort_keys=True)


def without_numbers(text: str, home: Path) -> str:
    """Return an answer without the home and the numbers of new rows, which go on counting in the whole memory."""
    text = text.replace(str(home), "HOME").replace(str(home.resolve()), "HOME")
    text = re.sub(r"[0-9a-f]{40}", "COMMIT", text)
    text = re.sub(r'"(id|proposal|superseded|supersedes|supersedes_id)": "?\d+"?', r'"\1": N', text)
    text = re.sub(r"\b(fact|link|gap|proposal|Link|link-close):? ?`?[0-9]+", r"\1 N", text)
    return re.sub(r'"superseded": \[[0-9, ]+\]', '"superseded": N', text)
