"""The notebook's stories, told by a client over a real connection, with a person who edits files beside it."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tests.mcp import test_client
from tests.mcp.pipes import content_of
from tests.mcp.test_client import record, visit

from quaid import config
from quaid.app import Brain
from quaid.operations import dispatch

Story = Callable[[Client], Awaitable[None]]


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """The folder of an agent: a memory and its notebook."""
    folder = tmp_path / "agent"
    folder.mkdir()
    path = str(folder / "memory.db")
    with Brain(config.Settings(db_path=path, home=str(tmp_path), cwd=str(folder))) as brain:
        brain.create(path)
        dispatch.call(brain, dispatch.find_command("notebook init"), {}, "owner")
    return folder


def tell(agent: Path, story: Story) -> None:
    visit(str(agent / "memory.db"), "auto", story, "--tools", "all")


async def failure(client: Client, tool: str, **arguments: Any) -> str:
    return str((await test_client.failure(client, tool, **arguments))["message"])


def test_every_answer_names_a_file_of_the_notebook_alike(agent: Path) -> None:
    async def story(client: Client) -> None:
        noted = await record(client, "remember", content="remind me to call the bank")
        assert (noted["slug"], noted["path"]) == ("notebook::lists/todos", "lists/todos.md")
        assert noted["lines"] == [{"text": "Call the bank", "line": 2, "written": True}]
        [result, *_] = (await record(client, "memory_query", query="bank"))["results"]
        page = await record(client, "memory_get", slug="lists/todos.md")
        done = await record(client, "memory_correct", about="call the bank", now="done")
        assert {result["slug"], page["slug"], done["slug"]} == {noted["slug"]}
        assert "path" not in done
        assert (await record(client, "memory_get", slug=done["slug"]))["version"] == done["version"]

    tell(agent, story)


def test_next_session_knows_what_was_remembered(agent: Path) -> None:
    async def first(client: Client) -> None:
        await record(client, "remember", content="Sarah Chen's phone number is 555-1234")
        await record(client, "remember", content="Never send notifications before 9am")
        await record(client, "remember", content="buy milk and eggs")
        await record(client, "daily_log", entry="Called Sarah about the project timeline")

    async def second(client: Client) -> None:
        context = (await client.read_resource("memory://context")).contents[0]
        text = str(getattr(context, "text", ""))
        assert "555-1234" in text
        assert "before 9am" in text
        assert "Called Sarah" in text
        assert "Milk" not in text  # lists are looked up, not told
        again = (await client.read_resource("memory://context")).contents[0]
        assert getattr(again, "text", None) == text

    tell(agent, first)
    tell(agent, second)
    assert (agent / "notebook/lists/shopping.md").read_text() == "## Shopping List\n- Milk\n- Eggs\n"


def test_recall_comes_first_and_conversations_are_searched_apart(agent: Path) -> None:
    output = agent / "talk.jsonl"
    output.write_text(
        '{"role": "user", "content": "The plumber is called Ivo", "timestamp": "2026-02-01T10:00:00Z"}\n'
        "this line is broken\n"
        '{"role": "assistant", "content": "Noted.", "timestamp": "2026-02-01T10:00:05Z"}\n'
    )
    settings = config.Settings(db_path=str(agent / "memory.db"), home=str(agent), cwd=str(agent))
    with Brain(settings) as brain:
        dispatch.call(brain, dispatch.find_command("conversations add"), {"paths": [str(output)]}, "owner")

    async def story(client: Client) -> None:
        await record(client, "remember", content="Sarah prefers email to phone")
        result = await record(client, "recall", query="how does Sarah want to be reached, email or phone?")
        assert [hit["path"].partition("/")[0] for hit in result["notebook"]] == ["reference"]
        assert "notebook" not in await record(client, "recall", query="plumber Ivo")
        heard = await record(client, "conversation_search", query="plumber")
        assert [(hit["role"], hit["turn"], hit["date"][:10]) for hit in heard["hits"]] == [
            ("user", 1, "2026-02-01")
        ]
        shown = await record(client, "conversation_show", session=heard["hits"][0]["session"], around=1)
        assert [turn["role"] for turn in shown["turns"]] == ["user", "assistant"]

    tell(agent, story)


def test_line_edited_by_the_user_is_kept(agent: Path) -> None:
    async def story(client: Client) -> None:
        await record(client, "remember", content="The garage code is 4471")
        place = agent / "notebook/knowledge/facts.md"
        edited = place.read_text().replace("4471", "9999, since May")
        place.write_text(edited)
        await record(client, "remember", content="The cellar code is 1234")
        assert place.read_text() == edited + "- The cellar code is 1234\n"
        result = await record(client, "recall", query="garage code")
        assert "9999" in result["notebook"][0]["snippet"]
        assert "4471" not in str(result)

    tell(agent, story)


def test_a_file_is_restructured_with_the_version_that_was_read(agent: Path) -> None:
    async def story(client: Client) -> None:
        await record(client, "notebook_write", path="lists/reading.md", content="## Now\n- Ulysses\n")
        read = await record(client, "notebook_read", path="lists/reading.md")
        await record(client, "notebook_write", path="lists/reading.md", content="- Emma\n", section="Later")
        late = {"path": "lists/reading.md", "content": "- all read\n", "section": "Now", "replace": True}
        error = await failure(client, "notebook_write", **late, expected_version=read["version"])
        assert "version" in error
        now = await record(client, "notebook_read", path="lists/reading.md")
        await record(client, "notebook_write", **late, expected_version=now["version"])
        assert (agent / "notebook/lists/reading.md").read_text() == (
            "## Now\n- all read\n\n## Later\n- Emma\n"
        )

    tell(agent, story)


@pytest.mark.parametrize(
    "path",
    ["../memory.db", "/etc/passwd", "reference/../../x.md", ".hidden.md", "a\0b.md", "link/x.md", "x.txt"],
)
def test_file_tools_stay_within_the_notebook(agent: Path, path: str) -> None:
    (agent / "outside").mkdir()
    (agent / "outside/x.md").write_text("secret")
    os.symlink(agent / "outside", agent / "notebook/link")

    async def story(client: Client) -> None:
        for tool, more in (("notebook_read", {}), ("notebook_write", {"content": "gotcha"})):
            assert "secret" not in await failure(client, tool, path=path, **more)

    tell(agent, story)
    assert (agent / "outside/x.md").read_text() == "secret"
    assert sorted(path.name for path in agent.iterdir() if path.suffix in (".md", ".txt")) == []


def test_without_semantic_search_the_first_line_says_so(agent: Path) -> None:
    settings = config.Settings(db_path=str(agent / "memory.db"), home=str(agent), cwd=str(agent))
    with Brain(settings) as brain:
        dispatch.call(brain, dispatch.find_command("embeddings off"), {}, "owner")

    async def story(client: Client) -> None:
        await record(client, "remember", content="The garage code is 4471")
        tool = await client.call_tool("recall", {"query": "garage code"})
        message = str(getattr(tool.content[0], "text", ""))
        answer = content_of(tool.model_dump(by_alias=True, exclude_none=True))
        assert "semantic" not in answer  # false, so it is left out
        assert "off" in answer["note"]
        assert "4471" in message

    tell(agent, story)
