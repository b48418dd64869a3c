"""The tasks of an agent: their data is complete, answers are judged by their order, and a small run works."""

import json
import os
import re
from typing import Any

import anyio
import pytest
from bench import agents
from bench.agents import KINDS, TASKS, WRITING_TASKS, Data, Play, Reply, Results, rows

TICKED = "corrections-q06"  # asks for a mark that the memory makes, so that it is not in the data


def every_item() -> list[dict[str, Any]]:
    return [row for task in TASKS for row in rows(task)]


def test_there_are_60_items_and_60_questions() -> None:
    assert [len(rows(task)) for task in WRITING_TASKS] == [25, 15, 20]
    questions = rows("questions")
    assert [sum(row["task"] == task for row in questions) for task in TASKS] == [22, 14, 14, 10]
    assert {row["kind"] for row in rows("corrections") if row["kind"]} == set(KINDS)


@pytest.mark.parametrize("name", [*TASKS, "questions", "facts"])
def test_rows_have_their_own_ids_and_need_rows_that_exist(name: str) -> None:
    ids = [row["id"] for row in every_item()]
    assert len(ids) == len(set(ids))
    for row in rows(name):
        assert set(row.get("needs", ())) <= set(ids), row


def test_the_expected_words_are_in_what_is_written() -> None:
    """Otherwise no memory could find them."""
    for item in every_item():
        for call in item["calls"]:
            if "gold" in call:
                text = " ".join(json.dumps(call["arguments"], ensure_ascii=False).replace("\\n", " ").split())
                assert any(re.search(pattern, text) for pattern in call["gold"]), call["sentence"]
    texts = {
        item["id"]: " ".join(json.dumps(item, ensure_ascii=False).replace("\\n", " ").split())
        for item in every_item()
    }
    for row in rows("questions"):
        text = " ".join(texts[id] for id in row["needs"])
        for key in ("gold", "stale", "wrong", "gone"):
            if (
                row.get(key) and row["id"] != "corrections-q06"
            ):  # the mark of a ticked to-do is not in the data
                assert any(re.search(pattern, text) for pattern in row[key]), (row["id"], key)


def test_expected_words_are_not_in_the_question_itself() -> None:
    for row in rows("questions"):
        if row["id"] not in ("corrections-q05",):  # asks whether something is still said of a person
            assert not any(re.search(pattern, row["ask"]) for pattern in row["gold"]), row["id"]


def reply(*results: dict[str, str]) -> Results:
    return Results.of(Reply("", {"query": "blue", "results": list(results)}, False, 1))


def test_an_outdated_value_above_the_answer_is_a_miss_unless_it_is_marked() -> None:
    question = {"gold": ["blue"], "stale": ["red"]}
    old, new = {"slug": "a", "text": "it is red"}, {"slug": "b", "text": "it is\nblue"}
    assert reply(new, old).judge(question)[0]
    assert not reply(old, new).judge(question)[0]
    assert reply({**old, "status": "superseded"}, new).judge(question)[0]
    assert reply({"slug": "c", "text": "was red, now blue"}).judge(question)[0]
    assert not reply(old).judge(question)[0]
    assert not Results.of(Reply("broken", {}, True, 1)).judge(question)[0]


def test_what_was_withdrawn_may_only_be_shown_as_such() -> None:
    question = {"gold": ["blue"], "wrong": ["red"]}
    assert not reply({"text": "blue"}, {"text": "red"}).judge(question)[0]
    assert reply({"text": "blue ~~red~~"}).judge(question)[0]
    assert reply({"text": "blue"}, {"text": "red", "status": "retracted"}).judge(question)[0]


def test_what_was_forgotten_may_not_come_back() -> None:
    assert reply({"text": "green"}).judge({"gold": [], "gone": ["red"]})[0]
    assert not reply({"text": "red", "status": "retracted"}).judge({"gold": [], "gone": ["red"]})[0]


def test_a_write_must_be_found_where_it_went() -> None:
    results = reply({"slug": "notes/a", "text": "blue"})
    assert results.first(["blue"], among=["notes/a"]) == 0
    assert results.first(["blue"], among=["notes/b"]) is None


def test_a_run_over_the_first_items_counts_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "QUICK_ITEMS", 1)
    play = agents.run(os.path.join(agents.ROOT, "src"), quick=True)
    assert [len(play.data.items[task]) for task in WRITING_TASKS] == [1, 1, 1]
    assert len(play.answers) == len(play.data.questions) > 0
    assert len(play.found) == sum(
        "gold" in call for task in TASKS for row in play.data.items[task] for call in row["calls"]
    )
    figures = play.figures()
    assert figures["tokens"] > figures["list_tokens"] > 1_000
    assert figures["findable"] > 0.5
    assert figures["answered"] > 0


def test_a_call_that_fails_is_reported_and_the_run_goes_on() -> None:
    bad = {"id": "bad", "calls": [{"tool": "memory_put", "arguments": {"slug": "a/b", "no_such": 1}}]}
    other = {"id": "other", "calls": [{"tool": "no_such_tool", "arguments": {}}]}
    items = {task: [bad, other] if task == "crm" else [] for task in TASKS}
    play = Play(os.path.join(agents.ROOT, "src"), Data(items, [], []))
    anyio.run(play.run)
    assert [call.wasted for call in play.calls] == ["failed", "failed"]
    assert play.failed_items == {"bad", "other"}
