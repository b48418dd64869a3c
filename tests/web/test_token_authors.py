"""Every tool that writes records the name of the caller's token as the author, over the API and over MCP."""

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.mcp.pipes import content_of
from tests.web.conftest import client, filled, settings_in, token
from tests.web.test_mcp import STATELESS, begun, rpc, stateless

from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch, service
from quaid.operations.registry import all_operations
from quaid.web import api, server as web_app

NAME = "night-porter"
Way = Callable[[TestClient, str, dict[str, Any]], Any]


def over_http(asked: TestClient, tool: str, arguments: dict[str, Any]) -> Any:
    response = asked.post(api.tool_path(tool), json=arguments)
    assert response.status_code == 200, response.text
    return response.json()


def in_a_session(asked: TestClient, tool: str, arguments: dict[str, Any]) -> Any:
    call = rpc("tools/call", name=tool, arguments=arguments)
    return _succeeded(asked.post("/mcp", json=call, headers=begun(asked)).json())


def without_a_session(asked: TestClient, tool: str, arguments: dict[str, Any]) -> Any:
    call = stateless("tools/call", name=tool, arguments=arguments)
    headers = {"Mcp-Protocol-Version": STATELESS, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    return _succeeded(asked.post("/mcp", json=call, headers=headers).json())


def _succeeded(answer: Any) -> Any:
    assert not answer["result"].get("isError"), answer
    return content_of(answer["result"])


QUESTION = "Where is the spare anchor of the pilot boat kept?"
PAGE = "# {0}\n\n{0} is a harbour pilot in Oslo.\n\n- [ ] Call the yard\n"
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("memory_put", {"slug": "people/mia", "content": PAGE.format("Mia Holm")}),
    ("memory_put", {"slug": "people/noa", "content": PAGE.format("Noa Holm")}),
    ("memory_put", {"slug": "people/mia", "append": "Sails on Sundays.", "expected_version": "now"}),
    ("memory_tag", {"slug": "people/mia", "tag": "pilot"}),
    (
        "memory_timeline_add",
        {"slug": "people/mia", "date": "2026-04-01", "summary": "Met.", "expected_version": "now"},
    ),
    ("memory_raw", {"slug": "people/mia", "data": {"phone": "1"}, "source": "card"}),
    ("memory_link", {"from": "people/mia", "to": "people/noa", "relationship": "knows"}),
    ("memory_link_close", {"link_id": "link", "valid_until": "2026-05-01"}),
    ("memory_unlink", {"from": "people/mia", "to": "people/noa"}),
    ("memory_assert", {"slug": "people/mia", "predicate": "lives_in", "object": "Oslo"}),
    ("memory_check", {"slug": "people/mia"}),
    ("memory_tick", {"slug": "people/mia", "text": "Call the yard", "expected_version": "now"}),
    ("memory_revert", {"slug": "people/mia", "to": 1, "expected_version": "now"}),
    ("memory_rename", {"slug": "people/noa", "new_slug": "people/noa-holm", "expected_version": "now"}),
    ("memory_distinct", {"slug": "people/mia", "other": "people/noa-holm"}),
    ("memory_regroup", {"wing": "crew", "slug": ["people/noa-holm"]}),
    ("memory_correct", {"about": "Mia Holm", "was": "Oslo", "now": "Bergen"}),
    ("memory_ingest", {"content": "Mia agreed to the plan.", "type": "meeting", "source": "meeting/1"}),
    ("memory_gap", {"query": QUESTION}),
    (
        "memory_gap_approve",
        {"gap_id": "gap", "sensitivity": "external", "approver": "Ana", "query": QUESTION},
    ),
    ("memory_gap_resolve", {"gap_id": "gap"}),
    ("memory_gap_clear", {}),
    ("memory_forget", {"slug": "people/noa-holm", "reason": "moved away"}),
    (
        "memory_merge",
        {"slug": "people/mia", "other": "people/noa-holm", "into": "people/mia", "reason": "one person"},
    ),
    ("remember", {"content": "Mia prefers email to phone"}),
    ("daily_log", {"content": "Painted the pilot boat"}),
    ("notebook_write", {"path": "lists/boats.md", "content": "- Emma\n"}),
    (
        "kb_remember",
        {
            "title": "Pilot boats",
            "summary": "How pilot boats are moored.",
            "content": "Moor a pilot boat at the stern.",
        },
    ),
]
SILENT = {
    *("memory_gap", "memory_gap_approve", "memory_gap_resolve", "memory_gap_clear", "memory_check"),
    *("memory_raw", "memory_link", "memory_link_close", "memory_unlink", "memory_rename", "memory_distinct"),
}
"""Tools that write no version of a page, fact, file or proposal: their rows have no author."""


def authors(settings: Settings) -> set[tuple[Any, ...]]:
    """Author, table and row of everything that has an author."""
    with sqlite3.connect(f"file:{settings.db_path}?mode=ro", uri=True) as db:
        tables = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE sql LIKE 'CREATE TABLE%'"))
        return {
            (row[0], name, repr(row))
            for name, sql in tables.items()
            if re.search(r"\bauthor\b", sql)
            for row in db.execute(f"SELECT author, * FROM {name}")
        }


def completed(asked: TestClient, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with the present version of the page, and ids of what earlier calls have made."""
    result = dict(arguments)
    if result.get("expected_version") == "now":
        page = asked.get("/api/memory/get", params={"slug": result["slug"]}).json()
        result["expected_version"] = page["version"]
    if result.get("link_id") == "link":
        links = asked.get("/api/memory/links", params={"slug": "people/mia"}).json()["links"]
        result["link_id"] = links[0]["id"]
    if result.get("gap_id") == "gap":
        result["gap_id"] = asked.get("/api/memory/gaps").json()["gaps"][0]["id"]
    return result


def test_every_tool_that_writes_is_called() -> None:
    writing = {item.tool for item in all_operations() if item.is_tool and item.scope == "write"}
    assert {tool for tool, _ in CALLS} == writing


@pytest.mark.parametrize("way", [over_http, in_a_session, without_a_session])
def test_writes_with_a_token_have_its_name_as_author(
    way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = filled(settings_in(tmp_path))
    settings = settings._replace(environ={**settings.environ, "HOME": str(tmp_path)})
    with Brain(settings) as brain:
        root = dispatch.call(brain, dispatch.find_command("kb init"), {}, "owner").root
    app = web_app.build_app(settings, tools="all")
    with client(app, token(settings, NAME, "write")) as asked:
        for tool, arguments in CALLS:
            before = authors(settings)
            way(asked, tool, completed(asked, arguments))
            new = {(author, table) for author, table, _ in authors(settings) - before}
            assert {author for author, _ in new} <= {NAME}, (tool, new)
            assert bool(new) == (tool not in SILENT and tool != "kb_remember"), (tool, new)
        versions = asked.get("/api/memory/history", params={"slug": "people/mia"}).json()
        assert NAME in str(versions)
    (node,) = Path(root).glob("*pilot-boats.org")
    assert f":CREATED_BY: {NAME}\n" in node.read_text()


def test_the_owners_token_and_pages_of_the_dashboard_keep_their_author(tmp_path: Path) -> None:
    settings = filled(settings_in(tmp_path))
    app = web_app.build_app(settings)
    with client(app, token(settings, NAME, "write")) as asked:
        form = {"slug": "people/gro", "text": "# Gro", "version": "0", "name": "Gro"}
        over_http(asked, "memory_put", {"slug": "people/mia", "content": "# Mia"})
        before = authors(settings)
        assert asked.post("/page/people/gro/edit", data=form, follow_redirects=False).status_code == 303
        assert {author for author, *_ in authors(settings) - before} == {NAME}
        before = authors(settings)
        owner = {"Authorization": f"Bearer {service.owner_token(settings)}"}
        made = asked.post("/api/memory/put", json={"slug": "people/ole", "content": "# Ole"}, headers=owner)
        assert made.status_code == 200
        assert {author for author, *_ in authors(settings) - before} == {"owner"}
