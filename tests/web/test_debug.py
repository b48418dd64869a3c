"""The debug endpoints, as the notebook's design lists them."""

import os
import time

import pytest
from starlette.testclient import TestClient
from tests.web.conftest import client
from tests.web.test_api import failed, ok

from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch, service
from quaid.web import api, server as web_app


def test_debug_endpoints_need_the_debug_option(memory: Settings) -> None:
    with client(web_app.build_app(memory), service.owner_token(memory)) as asked:
        for route in api.DEBUG_ROUTES:
            for method in route.scopes:
                assert (
                    asked.request(method, route.path.replace("{path:path}", "lists/x.md")).status_code == 404
                )


def test_status_and_files(reader: TestClient) -> None:
    status = ok(reader.get("/api/debug/memory/status"))
    assert status["pages"] >= 2
    assert status["chunks"] >= 2
    notebook = next(collection for collection in status["collections"] if collection["kind"] == "notebook")
    assert notebook["last_sync_at"]
    files = ok(reader.get("/api/debug/memory/files"))["files"]
    assert any(file["path"] == "reference/contacts.md" and len(file["hash"]) == 64 for file in files)


def test_files_have_indexed_at(reader: TestClient, owner: TestClient, memory: Settings) -> None:
    def files() -> dict[str, dict[str, str]]:
        return {file["path"]: file for file in ok(reader.get("/api/debug/memory/files"))["files"]}

    def sync() -> None:
        with Brain(memory) as brain:
            dispatch.call(brain, dispatch.find_command("collection sync"), {}, "owner")

    before: dict[str, str] = {}
    for _ in range(30):  # a sync reads a file again if it had changed just before the last one
        sync()
        last, before = before, files()["reference/contacts.md"]
        if last == before:
            break
        time.sleep(1.1)  # times are rounded to the second
    assert last == before
    assert before["indexed_at"] >= before["mtime"]
    ok(owner.post("/api/debug/notebook/lists/times.md", json={"content": "## Times\n"}))
    sync()
    after = files()
    assert after["reference/contacts.md"]["indexed_at"] == before["indexed_at"]
    assert after["lists/times.md"]["indexed_at"] > before["indexed_at"]
    ok(owner.delete("/api/debug/notebook/lists/times.md"))


def test_search_leaves_no_gap(owner: TestClient) -> None:
    assert ok(owner.get("/api/debug/memory/search", params={"q": "unheard zygomorphic quandary"}))
    assert ok(owner.get("/api/memory/gaps"))["gaps"] == []


def test_search_shows_scores(reader: TestClient) -> None:
    result = ok(reader.get("/api/debug/memory/search", params={"q": "founder of River"}))
    assert result["results"][0]["score"] > 0
    assert failed(reader.get("/api/debug/memory/search"), 400)["facts"]["name"] == "q"


def test_a_page_is_written_read_and_deleted(owner: TestClient, memory: Settings) -> None:
    path = "/api/debug/notebook/lists/reading.md"
    assert ok(owner.post(path, json={"content": "## Reading\n- Dune\n"}))["created"] is True
    assert ok(owner.get(path))["text"] == "## Reading\n- Dune\n"
    assert ok(owner.post(path, content="## Reading\n", headers={"Content-Type": "text/markdown"}))["changed"]
    listed = [file["path"] for file in ok(owner.get("/api/debug/notebook/pages"))["files"]]
    assert "lists/reading.md" in listed
    assert ok(owner.delete(path)) == {"path": "lists/reading.md"}
    assert failed(owner.get(path), 404)
    assert failed(owner.delete(path), 404)
    listed = [file["path"] for file in ok(owner.get("/api/debug/notebook/pages"))["files"]]
    assert "lists/reading.md" not in listed


@pytest.mark.parametrize(
    "path",
    [
        "%2e%2e/memory.db",
        "lists/%2e%2e/%2e%2e/memory.db",
        "/etc/passwd",
        "~/x.md",
        ".hidden.md",
        "x.txt",
        "a%00.md",
    ],
)
def test_paths_stay_in_the_notebook(owner: TestClient, memory: Settings, path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        body = {"json": {"content": "x"}} if method == "POST" else {}
        response = owner.request(method, f"/api/debug/notebook/{path}", **body)  # type: ignore[arg-type]
        assert response.status_code in (400, 404, 405), (method, path, response.text)
    folder = os.path.dirname(memory.db_path)
    assert not os.path.exists(os.path.join(folder, "x.md"))
    assert os.path.getsize(memory.db_path) > 0


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("POST", "memory/rebuild", "owner"),
        ("POST", "notebook/lists/todos.md", "owner"),
        ("DELETE", "notebook/lists/todos.md", "owner"),
        ("POST", "brain/inject-turn", "owner"),
        ("POST", "memory/simulate-compaction", "write"),
    ],
)
def test_debug_endpoints_need_the_scope_of_their_operation(
    reader: TestClient, writer: TestClient, method: str, path: str, scope: str
) -> None:
    for caller in (reader, *([writer] if scope == "owner" else [])):
        refused = failed(caller.request(method, f"/api/debug/{path}"), 403)
        assert f"needs the {scope} scope" in refused["message"]


def test_a_rebuild_makes_the_same_index_again(owner: TestClient) -> None:
    before = ok(owner.get("/api/memory/search", params={"query": "meters"}))
    assert ok(owner.post("/api/debug/memory/rebuild"))["pages"] >= 2
    assert ok(owner.get("/api/memory/search", params={"query": "meters"})) == before


def test_simulated_compaction_returns_prompts_and_context(owner: TestClient) -> None:
    result = ok(owner.post("/api/debug/memory/simulate-compaction"))
    assert "remember" in result["before"]
    assert "compacted" in result["after"]
    assert "555-1234" in result["context"]


def test_injected_turn_is_stored_and_its_tools_are_called(owner: TestClient) -> None:
    turn = {
        "content": "Please remember the zeppelin hangar.",
        "session": "test-1",
        "calls": [{"tool": "remember", "arguments": {"content": "Bo prefers tea", "category": "reference"}}],
    }
    done = ok(owner.post("/api/debug/brain/inject-turn", json=turn))
    assert done["turn"] == {"session": "test-1", "turns": 1}
    assert done["results"][0]["path"].startswith("reference/")
    result = ok(owner.get("/api/memory/conversation_search", params={"query": "zeppelin hangar"}))
    assert [hit["session"] for hit in result["hits"]] == ["test-1"]
    for wrong in (
        {},
        {"content": "  "},
        {"content": "x", "session": "../x"},
        {"content": "x", "role": "system"},
        {"calls": [1]},
    ):
        assert failed(owner.post("/api/debug/brain/inject-turn", json=wrong), 400)
