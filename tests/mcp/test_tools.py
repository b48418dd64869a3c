import json

import pytest
from tests.mcp.pipes import content_of

from quaid.app import Brain
from quaid.errors import UnknownTool
from quaid.mcp import tools
from quaid.mcp.tools import list_tools
from quaid.operations import dispatch, index


def test_the_default_list_stays_under_13_kb() -> None:
    size = len(json.dumps(list_tools("core"), ensure_ascii=False).encode())
    assert 1024 < size < 13 * 1024


def test_lean_list_has_five_tools_and_hides_none() -> None:
    lean = list_tools("lean")
    assert {item["name"] for item in lean} == tools.LEAN_TOOLS
    assert len(json.dumps(lean, ensure_ascii=False).encode()) < 5_400
    assert tools.selected_tools("lean") is None


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
