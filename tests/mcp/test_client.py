"""The official SDK's client against our server, as a user's client would start it."""

import os
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from tests.mcp.pipes import command, content_of, environment, failure_of

from quaid import config
from quaid.app import Brain
from quaid.operations import dispatch, index

Visit = Callable[[Client], Awaitable[None]]
MODES = ["legacy", "auto", "2026-07-28"]


def visit(db: str, mode: str, what: Visit, *more: str, **options: Any) -> None:
    program, *arguments = command(db, *more)
    server = StdioServerParameters(command=program, args=arguments, env=environment())

    async def run() -> None:
        with anyio.fail_after(120):
            async with Client(server, mode=mode, **options) as client:
                await what(client)

    anyio.run(run)


async def record(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error
    return content_of(result.model_dump(by_alias=True, exclude_none=True))


async def failure(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must fail; its error."""
    result = await client.call_tool(tool, arguments)
    return failure_of({"result": result.model_dump(by_alias=True, exclude_none=True)})


async def protocol_error(client: Client, tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    """Call a tool that does not exist; the message and the data of the JSON-RPC error."""
    with pytest.raises(MCPError) as caught:
        await client.call_tool(tool, arguments)
    assert caught.value.error.code == -32602
    return caught.value.error.message, caught.value.error.data


@pytest.mark.parametrize(("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
def test_client_with_and_without_handshake(db: str, mode: str, version: str) -> None:
    async def meet(client: Client) -> None:
        assert client.session.protocol_version == version
        assert client.server_info is not None
        assert client.server_info.name == "quaid"
        assert "the version you read" in str(client.instructions)
        assert client.server_capabilities.tools is not None

    visit(db, mode, meet)


@pytest.mark.parametrize("mode", MODES)
def test_every_core_tool_can_be_listed_and_called(db: str, mode: str) -> None:
    async def use(client: Client) -> None:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        assert listed == {name for name in index.TOOLS if dispatch.find_tool(name).core}
        called = {"memory_get", "memory_put", "memory_query", "memory_ingest", "memory_facts", "remember"}
        called |= {"memory_correct", "memory_forget", "memory_briefing", "memory_status"}
        assert called == listed

        alice = await record(client, "memory_get", slug="people/alice")
        assert alice["tags"] == ["founder"]
        put = await record(
            client,
            "memory_put",
            slug="people/alice",
            frontmatter={"city": "Oslo"},
            expected_version=alice["version"],
        )
        assert put["version"] == 2
        assert (await record(client, "memory_list", type="person"))["total"] == 1
        added = await record(
            client,
            "memory_timeline_add",
            slug="people/alice",
            date="2026-05-01",
            summary="Bought a boat",
            expected_version=put["version"],
        )
        assert added["added"] is True
        result = await record(client, "memory_search", query="boat")
        assert [hit["slug"] for hit in result["hits"]] == ["people/alice"]
        answer = await record(client, "memory_query", question="who bought a boat?")
        assert answer["results"][0]["slug"] == "people/alice"
        assert (await record(client, "memory_stats"))["pages"] == 2
        await link_and_ingest(client, version=added["version"])
        await use_the_notebook(client)
        moved = await record(
            client, "memory_correct", about="people/alice", was="Oslo", now="lives in Bergen"
        )
        assert "Bergen" in str(moved)
        asked = await record(client, "memory_forget", slug="companies/river", reason="No longer needed")
        assert asked["proposal"]
        assert (await record(client, "memory_briefing"))["pages"] == 5
        assert (await record(client, "memory_status"))["pages"] == 5

    with Brain(config.Settings(db_path=db, home=os.path.dirname(db), cwd=os.path.dirname(db))) as brain:
        dispatch.call(brain, dispatch.find_command("notebook init"), {}, "owner")
    visit(db, mode, use)


async def use_the_notebook(client: Client) -> None:
    kept = await record(client, "remember", content="Sarah prefers email to phone")
    assert kept["path"].startswith("reference/")
    await record(client, "daily_log", entry="Shipped it")
    result = await record(client, "recall", query="how to reach Sarah, email or phone")
    assert result["notebook"]
    read = await record(client, "notebook_read", path=kept["path"])
    more = {"path": kept["path"], "content": "- By mail.\n", "expected_version": read["version"]}
    assert (await record(client, "notebook_write", **more))["changed"]
    assert "hits" not in await record(client, "conversation_search", query="Sarah")


async def link_and_ingest(client: Client, version: int) -> None:
    ends = {"from": "people/alice", "to": "companies/river"}
    linked = await record(client, "memory_link", **ends, relationship="founded", expected_version=version)
    assert linked["link"]["relationship"] == "founded"
    page = {
        "slug": "people/alice",
        "expected_version": linked["version"],
        "assertions": [{"predicate": "lives_in", "object": "Oslo", "valid_from": "2026-05-01"}],
    }
    taken = await record(
        client, "memory_ingest", content="A call.", source_type="meeting", source_ref="call/1", pages=[page]
    )
    assert taken["written"] is True
    facts = await record(client, "memory_facts", subject="people/alice")
    assert {"lives_in", "founded"} <= {fact["predicate"] for fact in facts["facts"]}


@pytest.mark.parametrize("mode", MODES)
def test_errors_carry_their_code_and_facts(db: str, mode: str) -> None:
    async def fail(client: Client) -> None:
        conflict = await failure(client, "memory_put", slug="people/alice", content="# A", expected_version=9)
        assert conflict["code"] == "version_conflict"
        assert conflict["current_version"] == 1
        missing = await failure(client, "memory_get", slug="people/nobody")
        assert missing["code"] == "page_not_found"
        invalid = await failure(client, "memory_timeline_add", slug="people/alice", date="tomorrow")
        assert invalid["code"] == "invalid_argument"
        message, unknown = await protocol_error(client, "memory_frget", slug="people/alice")
        assert (message, unknown["code"]) == ("Unknown tool: 'memory_frget'.", "unknown_tool")
        assert unknown["next"] == "Did you mean 'memory_forget'? Call one of the tools in your list."
        assert (await record(client, "memory_get", slug="people/alice"))["version"] == 1

    visit(db, mode, fail)


@pytest.mark.parametrize("mode", MODES)
def test_resources_and_their_templates(db: str, mode: str) -> None:
    async def read(client: Client) -> None:
        listed = (await client.list_resources()).resources
        assert [item.uri for item in listed] == [
            "memory://index",
            "memory://pages/companies/river",
            "memory://pages/people/alice",
        ]
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == "memory://pages/{slug}"
        for element in listed:
            (content,) = (await client.read_resource(element.uri)).contents
            assert content.mime_type == "text/markdown"
            assert "river" in content.text.lower()  # type: ignore[union-attr]
        with pytest.raises(MCPError) as missing:
            await client.read_resource("memory://pages/people/nobody")
        assert missing.value.error.code == (-32002 if mode == "legacy" else -32602)
        assert missing.value.error.data["code"] == "page_not_found"

    visit(db, mode, read)


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_keeps_a_notebook(db: str, mode: str) -> None:
    with Brain(config.read_settings(db, environment(), os.path.dirname(db))) as brain:
        dispatch.call(brain, dispatch.find_command("notebook init"), {}, "owner")

    async def work(client: Client) -> None:
        result = await record(client, "remember", content="Sarah Chen's phone number is 555-1234")
        assert result["path"] == "reference/contacts.md"
        bought = await record(client, "remember", content="buy milk and eggs")
        assert [line["text"] for line in bought["lines"]] == ["Milk", "Eggs"]
        again = await record(client, "remember", content="Buy eggs")
        assert "written" not in again["lines"][0]
        logged = await record(client, "daily_log", entry="Called Sarah Chen about the timeline")
        results = await record(client, "recall", query="Sarah Chen", min_score=0.1)
        assert [item["path"] for item in results["notebook"]] == ["reference/contacts.md"]
        assert [item["path"] for item in results["daily"]] == [logged["path"]]
        file = await record(client, "notebook_read", path="lists/shopping.md")
        change = {
            "path": "lists/shopping.md",
            "content": "- Tea",
            "section": "Shopping List",
            "replace": True,
        }
        stale = await failure(client, "notebook_write", **change, expected_version=file["version"] + 1)
        assert stale["code"] == "version_conflict"
        await record(client, "notebook_write", **change, expected_version=file["version"])
        assert (await record(client, "notebook_read", path="lists/shopping.md"))[
            "text"
        ] == "## Shopping List\n- Tea\n"
        assert (await failure(client, "notebook_read", path="../memory.db"))["code"] == "invalid_argument"
        assert "memory://context" in [resource.uri for resource in (await client.list_resources()).resources]
        (content,) = (await client.read_resource("memory://context")).contents
        assert "555-1234" in content.text  # type: ignore[union-attr]

    visit(db, mode, work)


@pytest.mark.parametrize("mode", MODES)
def test_prompts(db: str, mode: str) -> None:
    async def prompt(client: Client) -> None:
        listed = (await client.list_prompts()).prompts
        assert [item.name for item in listed] == ["memory_briefing", "memory_ingest_meeting"]
        (briefing,) = (await client.get_prompt("memory_briefing")).messages
        assert "people/alice" in briefing.content.text  # type: ignore[union-attr]
        arguments = {"transcript": "Alice: hello", "date": "2026-04-25"}
        (meeting,) = (await client.get_prompt("memory_ingest_meeting", arguments)).messages
        assert "Alice: hello" in meeting.content.text  # type: ignore[union-attr]

    visit(db, mode, prompt)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_cancelled_call_does_not_affect_the_next(db: str, mode: str) -> None:
    words = " ".join(f"word{number}" for number in range(200_000))

    async def give_up(client: Client) -> None:
        for _ in range(3):
            with anyio.move_on_after(0.01):
                await client.call_tool("memory_put", {"slug": "concepts/long", "content": words})
        assert (await record(client, "memory_get", slug="people/alice"))["version"] == 1

    visit(db, mode, give_up)


def test_client_gets_only_the_named_tools(db: str) -> None:
    async def look(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["memory_get", "memory_search"]
        _, refused = await protocol_error(client, "memory_put", slug="people/zoe", content="# Zoe")
        assert refused["code"] == "unknown_tool"
        assert "other tools only" in refused["next"]

    visit(db, "auto", look, "--tools", "memory_search,memory_get")


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_log_messages_reach_a_client_that_asked_for_them(db: str) -> None:
    heard: list[Any] = []

    async def hear(message: Any) -> None:
        heard.append(message)

    async def listen(client: Client) -> None:
        await record(client, "memory_stats")
        assert heard == []
        await client.set_logging_level("debug")
        await record(client, "memory_stats")
        await client.send_ping()

    visit(db, "legacy", listen, logging_callback=hear)
    assert [item.data["method"] for item in heard] == ["tools/call"]


def test_progress_reaches_a_client_that_asked_for_it(db: str) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async def watch(client: Client) -> None:
        request = types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri="memory://index"))
        await client.session.send_request(request, types.ReadResourceResult, progress_callback=note)

    visit(db, "legacy", watch)
    assert seen == [(2, 2, "Listing pages")]
