import json
import re

import pytest
from tests.mcp.pipes import content_of

from quaid.app import Brain
from quaid.errors import UnknownTool
from quaid.mcp import tools
from quaid.mcp.jsonrpc import compact
from quaid.mcp.tools import list_tools
from quaid.model.plain_text import count_tokens
from quaid.operations import dispatch, index


def size_of(selection: str) -> int:
    """The bytes that a client receives as the list of tools."""
    return len(compact({"tools": list_tools(selection)}).encode())


def test_default_list_has_ten_tools_in_8_kb() -> None:
    assert {tool["name"] for tool in list_tools("core")} == {
        *("memory_query", "memory_get", "remember", "memory_put", "memory_ingest", "memory_facts"),
        *("memory_briefing", "memory_correct", "memory_forget", "memory_status"),
    }
    assert 1024 < size_of("core") <= 8_000


def test_lean_list_has_five_tools_and_hides_none() -> None:
    assert {item["name"] for item in list_tools("lean")} == tools.LEAN_TOOLS
    assert size_of("lean") <= 5_000
    assert tools.selected_tools("lean") is None


def test_seed_lists_the_tools_of_the_first_specifications() -> None:
    assert {item["name"] for item in list_tools("seed")} == tools.SEED_TOOLS
    assert tools.selected_tools("seed") is None


@pytest.mark.parametrize("selection", ["core", "lean", "seed", "all"])
def test_descriptions_mention_only_listed_tools_and_no_commands(selection: str) -> None:
    listed = {tool["name"] for tool in list_tools(selection)}
    for tool in list_tools(selection):
        text = json.dumps([tool["description"], tool["inputSchema"]])
        words = set(re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", text))
        assert (words & set(index.TOOLS)) - {tool["name"]} <= listed, tool["name"]
        assert "`quaid" not in text, tool["name"]
        assert not re.search(r"\bExits \d|Try this first|--[a-z]", text), tool["name"]
        commands = set(re.findall(r"`([a-z-]+)`", text)) & set(index.COMMANDS)
        assert commands <= set(tool["inputSchema"]["properties"]), tool["name"]


def test_rare_arguments_are_hidden_from_short_lists_and_accepted(brain: Brain) -> None:
    for name, rare in tools.RARE_ARGUMENTS.items():
        params = {param.name: param for param in dispatch.find_tool(name).params}
        assert rare <= set(params), name
        assert not any(params[argument].required for argument in rare)
    (short,) = (tool for tool in list_tools("core") if tool["name"] == "memory_facts")
    (full,) = (tool for tool in list_tools("all") if tool["name"] == "memory_facts")
    assert "limit" not in short["inputSchema"]["properties"]
    assert full["inputSchema"]["properties"]["limit"]["maximum"] == 1000
    arguments = {"subject": "people/alice", "limit": 1}
    assert len(content_of(tools.call_tool(brain, None, "memory_facts", arguments))["entries"]) == 1


def test_core_lists_the_core_tools_and_all_lists_every_one_in_one_order() -> None:
    everything = [tool["name"] for tool in list_tools("all")]
    core = [tool["name"] for tool in list_tools("core")]
    assert everything == list(index.TOOLS)
    assert core == [name for name in everything if dispatch.find_tool(name).core]
    assert len(core) < len(everything)


def test_named_tools_are_listed_in_index_order() -> None:
    names = [tool["name"] for tool in list_tools(" memory_put, memory_get,memory_put,")]
    assert names == ["memory_get", "memory_put"]


def test_an_unknown_name_gets_a_hint() -> None:
    with pytest.raises(UnknownTool, match="Did you mean 'memory_get'"):
        list_tools("memory_put,memory_gte")
    with pytest.raises(UnknownTool):
        list_tools(",")


def test_no_owner_operation_is_a_tool() -> None:
    assert {dispatch.find_tool(tool["name"]).scope for tool in list_tools("all")} == {"read", "write"}


def test_every_tool_says_what_it_does_and_takes() -> None:
    for tool in list_tools("all"):
        assert set(tool) == {"name", "title", "description", "inputSchema", "annotations"}
        assert 3 < len(tool["title"]) < 60
        assert tool["description"].startswith(tool["title"])
        schema = tool["inputSchema"]
        assert schema["type"] == "object"
        assert schema["additionalProperties"] is False
        assert set(schema.get("required", ())) <= set(schema["properties"])
        assert all(entry["description"] for entry in schema["properties"].values())


def test_tool_annotations() -> None:
    hints = {tool["name"]: tool["annotations"] for tool in list_tools("all")}
    assert hints["memory_get"] == {"readOnlyHint": True, "openWorldHint": False}
    assert hints["memory_put"]["destructiveHint"] is True
    assert {name for name, hint in hints.items() if hint.get("destructiveHint") is False} == {
        "daily_log",
        "kb_remember",
        "memory_assert",
        "memory_distinct",
        "memory_gap",
        "memory_link",
        "memory_timeline_add",
        "remember",
    }


def test_the_same_write_twice_changes_nothing_more(brain: Brain) -> None:
    """This is what idempotentHint promises."""
    arguments = {"slug": "people/alice", "timeline_append": "- again", "expected_version": 1}
    tools.call_tool(brain, None, "memory_put", arguments)
    with pytest.raises(Exception, match="at version 2"):
        tools.call_tool(brain, None, "memory_put", arguments)
    assert (
        dispatch.call(brain, dispatch.find_tool("memory_get"), {"slug": "people/alice"}, "read").version == 2
    )


def test_a_result_is_one_text_block_of_compact_json_without_empty_fields(brain: Brain) -> None:
    result = tools.call_tool(brain, None, "memory_get", {"slug": "people/alice"})
    assert set(result) == {"content", "isError"}
    assert result["isError"] is False
    record = content_of(result)
    assert record["title"] == "Alice Berg"
    assert record["frontmatter"]["tags"] == ["founder"]
    assert not [key for key, value in record.items() if value in (None, "", [], {}, False)]
    assert result["content"][0]["text"] == json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def test_a_page_for_agents_has_no_field_that_only_programs_need(brain: Brain) -> None:
    record = content_of(tools.call_tool(brain, None, "memory_get", {"slug": "people/alice"}))
    assert {"slug", "version", "content_hash", "updated_at", "compiled_truth"} <= set(record)
    left_out = {"uuid", "summary", "created_at", "truth_updated_at", "timeline_updated_at"}
    assert not left_out & set(record)
    tools.call_tool(brain, None, "memory_put", {"slug": "notes/a", "content": "# A"})
    several = content_of(tools.call_tool(brain, None, "memory_get", {"slug": ["people/alice", "notes/a"]}))
    assert several["pages"][0] == {key: value for key, value in record.items() if key != "trust"}


def test_a_write_that_wrote_nothing_has_no_version(brain: Brain) -> None:
    source = {"content": "Ida moved to Oslo.", "source": "mail/1"}
    assert content_of(tools.call_tool(brain, None, "memory_ingest", source))["version"] == 1
    known = content_of(tools.call_tool(brain, None, "memory_ingest", source))
    assert known["known_since"]
    assert "version" not in known
    page = {"slug": "people/ida", "content": "# Ida\n\nIda lives in Oslo. Ida lives in Turku."}
    tools.call_tool(brain, None, "memory_put", page)
    changed = {"about": "Ida", "now": "lives in Bergen"}
    unclear = content_of(tools.call_tool(brain, None, "memory_correct", changed))
    assert unclear["candidates"]
    assert "version" not in unclear


def test_empty_values_of_front_matter_are_kept(brain: Brain) -> None:
    text = "---\ndone: false\nowner: null\n---\nA page."
    tools.call_tool(brain, None, "memory_put", {"slug": "notes/a", "content": text})
    record = content_of(tools.call_tool(brain, None, "memory_get", {"slug": "notes/a"}))
    assert record["frontmatter"]["done"] is False
    assert record["frontmatter"]["owner"] is None


def test_unlisted_tools_can_be_called_unless_tools_were_named(brain: Brain) -> None:
    assert tools.call_tool(brain, tools.selected_tools("core"), "memory_tags", {"slug": "people/alice"})
    with pytest.raises(UnknownTool, match="other tools only"):
        tools.call_tool(
            brain,
            tools.selected_tools("memory_get,memory_search"),
            "memory_put",
            {"slug": "a/b", "content": "x"},
        )


@pytest.mark.parametrize("budget", [400, 1_500, 4_000])
def test_an_answer_is_sent_within_its_budget(brain: Brain, budget: int) -> None:
    put = dispatch.find_command("put")
    for number in range(12):
        lines = "\n".join(f'- Entry {at} on "harbour cranes" of port {number}.' for at in range(60))
        arguments = {"slug": f"ports/p{number}", "content": f"# Port {number}\n\n{lines}\n"}
        dispatch.call(brain, put, arguments, "owner")
    question = {"query": "harbour cranes of the port", "token_budget": budget}
    text = tools.call_tool(brain, None, "memory_query", question)["content"][0]["text"]
    assert 0.9 * budget <= count_tokens(text) <= 1.05 * budget
    assert len(json.loads(text)["results"]) == (10 if budget >= 1_500 else 5)
