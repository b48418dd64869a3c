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
from quaid.web import api, app as web_app


def test_debug_endpoints_need_the_debug_option(memory: Settings) -> None:
    with client(web_app.build_app(memory), service.owner_token(memory)) as asked:
        for path, methods in api.DEBUG_SCOPES.items():
            for method in methods:
                assert asked.request(method, path.replace("{path:path}", "lists/x.md")).status_code == 404


def test_status_and_files(reader: TestClient) -> None:
    status = ok(reader.get("/api/debug/memory/status"))
    assert status["pages"] >= 2
    assert status["chunks"] >= 2
    notebook = next(collection for collection in status["collections"] if collection["kind"] == "notebook")
    assert notebook["last_sync_at"]
    files = ok(reader.get("/api/debug/memory/files"))["files"]
    assert any(file["path"] == "reference/contacts.md" and len(file["hash"]) == 64 for file in files)


def test_files_have_indexed_at(reader: TestClient, writer: TestClient, memory: Settings) -> None:
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
    ok(writer.post("/api/debug/notebook/lists/times.md", json={"content": "## Times\n"}))
    sync()
    after = files()
    assert after["reference/contacts.md"]["indexed_at"] == before["indexed_at"]
    assert after["lists/times.md"]["indexed_at"] > before["indexed_at"]
    ok(writer.delete("/api/debug/notebook/lists/times.md"))


def test_search_leaves_no_gap(writer: TestClient) -> None:
    assert ok(writer.get("/api/debug/memory/search", params={"q": "unheard zygomorphic quandary"}))
    assert ok(writer.get("/api/memory/gaps"))["gaps"] == []


def test_search_shows_scores(reader: TestClient) -> None:
    result = ok(reader.get("/api/debug/memory/search", params={"q": "founder of River"}))
    assert result["results"][0]["score"] > 0
    assert failed(reader.get("/api/debug/memory/search"), 400)["facts"]["name"] == "q"


def test_a_page_is_written_read_and_deleted(writer: TestClient, memory: Settings) -> None:
    path = "/api/debug/notebook/lists/reading.md"
    assert ok(writer.post(path, json={"content": "## Reading\n- Dune\n"}))["created"] is True
    assert ok(writer.get(path))["text"] == "## Reading\n- Dune\n"
    assert ok(writer.post(path, content="## Reading\n", headers={"Content-Type": "text/markdown"}))["changed"]
    listed = [file["path"] for file in ok(writer.get("/api/debug/notebook/pages"))["files"]]
    assert "lists/reading.md" in listed
    assert ok(writer.delete(path)) == {"path": "lists/reading.md"}
    assert failed(writer.get(path), 404)
    assert failed(writer.delete(path), 404)
    listed = [file["path"] for file in ok(writer.get("/api/debug/notebook/pages"))["files"]]
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
def test_paths_stay_in_the_notebook(writer: TestClient, memory: Settings, path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        body = {"json": {"content": "x"}} if method == "POST" else {}
        response = writer.request(method, f"/api/debug/notebook/{path}", **body)  # type: ignore[arg-type]
        assert response.status_code in (400, 404, 405), (method, path, response.text)
    folder = os.path.dirname(memory.db_path)
    assert not os.path.exists(os.path.join(folder, "x.md"))
    assert os.path.getsize(memory.db_path) > 0


def test_writing_debug_endpoints_need_write_scope(reader: TestClient) -> None:
    assert reader.post("/api/debug/memory/rebuild").status_code == 403
    assert reader.delete("/api/debug/notebook/lists/todos.md").status_code == 403
    assert reader.post("/api/debug/brain/inject-turn", json={"content": "x"}).status_code == 403


def test_a_rebuild_makes_the_same_index_again(writer: TestClient) -> None:
    before = ok(writer.get("/api/memory/search", params={"query": "meters"}))
    assert ok(writer.post("/api/debug/memory/rebuild"))["pages"] >= 2
    assert ok(writer.get("/api/memory/search", params={"query": "meters"})) == before


def test_simulated_compaction_returns_prompts_and_context(writer: TestClient) -> None:
    result = ok(writer.post("/api/debug/memory/simulate-compaction"))
    assert "remember" in result["before"]
    assert "compacted" in result["after"]
    assert "555-1234" in result["context"]


def test_injected_turn_is_stored_and_its_tools_are_called(writer: TestClient) -> None:
    turn = {
        "content": "Please remember the zeppelin hangar.",
        "session": "test-1",
        "calls": [{"tool": "remember", "arguments": {"content": "Bo prefers tea", "category": "reference"}}],
    }
    done = ok(writer.post("/api/debug/brain/inject-turn", json=turn))
    assert done["turn"] == {"session": "test-1", "turns": 1}
    assert done["results"][0]["path"].startswith("reference/")
    result = ok(writer.get("/api/memory/conversation_search", params={"query": "zeppelin hangar"}))
    assert [hit["session"] for hit in result["hits"]] == ["test-1"]
    for wrong in (
        {},
        {"content": "  "},
        {"content": "x", "session": "../x"},
        {"content": "x", "role": "system"},
        {"calls": [1]},
    ):
        assert failed(writer.post("/api/debug/brain/inject-turn", json=wrong), 400)
