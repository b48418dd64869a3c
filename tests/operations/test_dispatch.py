"""The call gate: types are checked once, scope is judged once."""

from typing import Annotated, Any

import pytest

from quaid.app import Brain
from quaid.cli import parser
from quaid.errors import (
    DiskFull,
    FileTrouble,
    InvalidArgument,
    NotAllowed,
    QuaidError,
    TooLarge,
    UnknownCommand,
    UnknownTool,
)
from quaid.operations import dispatch, index, registry
from quaid.operations.registry import Arg, Operation


def every_kind(
    brain: Brain,
    text: Annotated[str, Arg("Text.")],
    count: Annotated[int, Arg("Count.", minimum=1, maximum=9)] = 5,
    share: Annotated[float, Arg("Share.")] = 0.5,
    sure: Annotated[bool, Arg("Sure.")] = False,
    names: Annotated[list[str] | None, Arg("Names.")] = None,
    facts: Annotated[dict[str, Any] | None, Arg("Facts.")] = None,
    things: Annotated[list[dict[str, Any]] | None, Arg("Things.")] = None,
    page_version: Annotated[int | None, Arg("Version.", version="page")] = None,
) -> dict[str, Any]:
    """Give back what came in."""
    return {"text": text, "count": count, "share": share, "sure": sure, "names": names, "facts": facts}


OPERATION = Operation(every_kind, "test", "write", "every-kind", {}, "memory_every_kind", False, False, ())


def check(**arguments: Any) -> dict[str, Any]:
    return dispatch.check_arguments(OPERATION, arguments, "owner")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        *(("rm", "forget"), ("delete", "forget"), ("remove", "forget"), ("find", "search"), ("add", "put")),
        *(("edit", "put"), ("new", "put"), ("show", "get"), ("ls", "list"), ("serch", "search")),
    ],
)
def test_command_synonyms_are_suggested(typed: str, meant: str) -> None:
    with pytest.raises(UnknownCommand, match=f"Did you mean '{meant}'"):
        dispatch.find_command(typed)


def test_every_synonym_names_a_command() -> None:
    assert set(dispatch.COMMAND_SYNONYMS.values()) <= set(index.COMMANDS)
    assert not set(dispatch.COMMAND_SYNONYMS) & set(index.COMMANDS)


def test_right_types_pass_as_they_are() -> None:
    fields = {"text": "a", "count": 9, "share": 1, "sure": True, "names": ["x"], "facts": {"a": [1, None]}}
    assert check(**fields) == {**fields, "share": 1.0, "things": None, "page_version": None}


def test_a_list_of_objects_passes_as_it_is() -> None:
    things = [{"a": 1}, {"b": ["x", {}]}]
    assert check(text="a", things=things)["things"] == things
    assert registry.schema(OPERATION)["properties"]["things"]["items"] == {"type": "object"}
    assert registry.schema(OPERATION)["properties"]["names"]["items"] == {"type": "string"}


def test_defaults_fill_what_is_left_out_or_null() -> None:
    assert check(text="a", count=None)["count"] == 5


def test_a_whole_number_may_come_as_a_float_or_as_text() -> None:
    assert check(text="a", count=5.0)["count"] == 5
    assert check(text="a", count="5")["count"] == 5


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({}, "text"),
        ({"text": 5}, "text"),
        ({"text": "nul\0"}, "text"),
        ({"text": "\ud800"}, "text"),
        ({"text": "a", "count": "five"}, "count"),
        ({"text": "a", "count": "10"}, "count"),
        ({"text": "a", "count": "5.5"}, "count"),
        ({"text": "a", "count": "9" * 5000}, "count"),
        ({"text": "a", "count": True}, "count"),
        ({"text": "a", "count": 0}, "count"),
        ({"text": "a", "count": 10}, "count"),
        ({"text": "a", "count": 5.5}, "count"),
        ({"text": "a", "count": 10**30}, "count"),
        ({"text": "a", "share": "half"}, "share"),
        ({"text": "a", "share": float("nan")}, "share"),
        ({"text": "a", "sure": 1}, "sure"),
        ({"text": "a", "names": 5}, "names"),
        ({"text": "a", "names": [1]}, "names"),
        ({"text": "a", "facts": []}, "facts"),
        ({"text": "a", "facts": {"x": float("inf")}}, "facts"),
        ({"text": "a", "facts": {"x": "\ud800"}}, "facts"),
        ({"text": "a", "things": {"x": 1}}, "things"),
        ({"text": "a", "things": [{}, "x"]}, "things"),
        ({"text": "a", "things": [{"x": float("nan")}]}, "things"),
        ({"text": "a", "things": [{"x": "\ud800"}]}, "things"),
        ({"text": "a", "things": [{"x": "nul\0"}]}, "things"),
        ({"text": "a", "cuont": 5}, "cuont"),
    ],
)
def test_a_wrong_argument_is_named(arguments: dict[str, Any], name: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        dispatch.check_arguments(OPERATION, arguments, "owner")
    assert caught.value.facts["name"] == name


def test_a_misspelt_argument_gets_the_nearest_name() -> None:
    with pytest.raises(InvalidArgument, match="did you mean 'count'"):
        check(text="a", cuont=5)


def test_names_in_camel_case_are_understood() -> None:
    assert check(text="x", pageVersion=3)["page_version"] == 3
    for wrong in ({"pagesVersion": 3}, {"Text": "x"}):
        with pytest.raises(InvalidArgument, match="no such argument"):
            check(**{"text": "x", **wrong})
    with pytest.raises(InvalidArgument, match="pageVersion: is another name of page_version"):
        check(text="x", pageVersion=3, page_version=3)


ONE_NAME = {
    "query": ("question", "query_text", "q", "words", "search"),
    "content": ("body", "markdown", "entry"),
    "slug": ("page", "slugs", "address"),
    "limit": ("max_results", "max", "top", "top_k", "count", "n", "size"),
    "since": ("after", "from_date", "start_date"),
    "until": ("before", "to_date", "end_date"),
    "as_of": ("at", "on", "day"),
    "expected_version": ("version", "page_version", "revision"),
    "content_hash": ("hash", "etag", "checksum"),
    "token_budget": ("tokens", "budget", "max_tokens"),
    "source": ("source_ref", "ref", "reference"),
    "type": ("source_type", "page_type"),
    "collection": ("vault", "folder_name"),
}
"""The name of an argument, and names that no operation uses for the same thing."""


@pytest.mark.parametrize(("name", "others"), ONE_NAME.items())
def test_one_thing_has_one_name_in_all_operations(name: str, others: tuple[str, ...]) -> None:
    used = {
        (operation.tool, param.name) for operation in registry.all_operations() for param in operation.params
    }
    assert [use for use in used if use[1] in others] == [], f"call it {name}"


@pytest.mark.parametrize(
    ("tool", "wrong", "right"),
    [
        ("memory_put", "body", "content"),
        ("memory_put", "title", "slug"),
        ("memory_put", "version", "expected_version"),
        ("memory_put", "facts", "assertions"),
        ("memory_get", "name", "slug"),
        ("memory_query", "top_k", "limit"),
        ("memory_query", "q", "query"),
        ("memory_ingest", "url", "source"),
        ("memory_ingest", "day", "date"),
        ("memory_facts", "slug", "subject"),
        ("remember", "fact", "content"),
        ("memory_put", "contnet", "content"),
    ],
)
def test_an_unknown_argument_names_the_right_one(tool: str, wrong: str, right: str) -> None:
    with pytest.raises(InvalidArgument, match=f"no such argument .did you mean '{right}'") as caught:
        dispatch.check_arguments(dispatch.find_tool(tool), {wrong: "x"}, "write")
    assert caught.value.facts["name"] == wrong


def test_an_argument_like_no_other_lists_them_all() -> None:
    with pytest.raises(InvalidArgument, match="it has slug, lines"):
        dispatch.check_arguments(dispatch.find_tool("memory_get"), {"zzz": "x"}, "write")


@pytest.mark.parametrize(
    ("tool", "former", "now"),
    [
        ("memory_tag", "page_version", "expected_version"),
        ("memory_tag", "pageVersion", "expected_version"),
        ("memory_assert", "by", "asserted_by"),
        ("memory_assert", "source_ref", "source"),
        ("memory_ingest", "source_ref", "source"),
        ("memory_ingest", "source_type", "type"),
        ("memory_query", "question", "query"),
        ("memory_gap", "query_text", "query"),
        ("kb_query", "context", "query"),
        ("recall", "max_results", "limit"),
        ("recall", "maxResults", "limit"),
        ("conversation_search", "max_results", "limit"),
        ("daily_log", "entry", "content"),
        ("kb_remember", "text", "content"),
        ("memory_assert", "evidence", "evidence_text"),
        ("memory_assert", "supersedes", "supersedes_id"),
        ("memory_gap_resolve", "by", "resolved_by_slug"),
        ("memory_context", "budget", "token_budget"),
    ],
)
def test_former_names_of_arguments_are_accepted_and_not_listed(tool: str, former: str, now: str) -> None:
    operation = dispatch.find_tool(tool)
    param = {param.name: param for param in operation.params}[now]
    value: Any = 3 if param.kind == "integer" else "manual"
    needed = {
        other.name: 1 if other.kind == "integer" else "x"
        for other in operation.params
        if other.required and other.name != now
    }
    assert dispatch.check_arguments(operation, {**needed, former: value}, "owner")[param.variable] == value
    assert former not in registry.schema(operation)["properties"]
    with pytest.raises(InvalidArgument, match=f"{former}: is another name of {now}"):
        dispatch.check_arguments(operation, {**needed, former: value, now: value}, "owner")
    flag = "--" + former.replace("_", "-")
    if former.islower() and not any(other.arg.positional and other.arg.file for other in operation.params):
        flag = param.flag if param.arg.positional else flag
        assert (
            parser.parse_arguments([flag, str(value), *map(str, needed.values())], operation.params)[now]
            == value
        )


def test_argument_with_a_former_name_keeps_it() -> None:
    fields = {"slug": "a", "date": "2026-01-01", "summary": "x", "source": "call"}
    assert (
        dispatch.check_arguments(dispatch.find_tool("memory_timeline_add"), fields, "owner")["source"]
        == "call"
    )


def test_text_over_the_limit_is_too_large() -> None:
    with pytest.raises(TooLarge):
        check(text="é" * (dispatch.MAX_TEXT // 2 + 1))


def test_only_the_owner_may_leave_out_the_version() -> None:
    with pytest.raises(InvalidArgument, match="page_version"):
        dispatch.check_arguments(OPERATION, {"text": "a"}, "write")
    assert check(text="a")["page_version"] is None


def test_scope_is_judged_before_arguments(brain: Brain) -> None:
    with pytest.raises(NotAllowed, match="needs the write scope"):
        dispatch.call(brain, OPERATION, {"nonsense": 1}, "read")


def test_an_unknown_tool_gets_the_nearest_name() -> None:
    with pytest.raises(UnknownTool, match="memory_search"):
        dispatch.find_tool("memory_serach")


@pytest.mark.parametrize(
    ("number", "error"), [(28, DiskFull), (5, FileTrouble)], ids=["no space", "input/output error"]
)
def test_os_errors_become_errors_with_a_remedy(brain: Brain, number: int, error: type[QuaidError]) -> None:
    def failing(brain: Brain) -> None:
        """Fail."""
        raise OSError(number, "said the system", "/some/file")

    operation = Operation(failing, "test", "read", "failing", {}, "memory_failing", False, False, ())
    with pytest.raises(error, match="/some/file"):
        dispatch.call(brain, operation, {}, "read")


def nested(levels: int) -> dict[str, Any]:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return {"a": value}


def test_deeply_nested_json_is_refused_before_writing() -> None:
    assert check(text="a", facts=nested(90))["facts"]
    with pytest.raises(InvalidArgument, match="nested"):
        check(text="a", facts=nested(900))
