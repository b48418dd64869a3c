"""Tools over HTTP: the same records, the same errors, the same versions."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from quaid.operations.registry import all_operations
from quaid.web import api


def ok(response: Any) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/json"
    value: dict[str, Any] = response.json()
    return value


def failed(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    error: dict[str, Any] = response.json()["error"]
    assert set(error) == {"code", "message", "facts"}
    return error


@pytest.mark.parametrize(
    ("tool", "path"),
    [
        ("memory_get", "/api/memory/get"),
        ("memory_timeline_add", "/api/memory/timeline_add"),
        ("notebook_read", "/api/notebook/read"),
        ("remember", "/api/notebook/remember"),
        ("daily_log", "/api/notebook/daily_log"),
        ("conversation_search", "/api/memory/conversation_search"),
        ("kb_query", "/api/memory/kb_query"),
    ],
)
def test_path_of_a_tool(tool: str, path: str) -> None:
    assert api.tool_path(tool) == path


def test_every_tool_has_its_own_path() -> None:
    paths = [api.tool_path(operation.tool) for operation in all_operations() if operation.is_tool]
    assert len(paths) == len(set(paths))


def test_get_and_post_return_the_same_record(reader: TestClient) -> None:
    got = ok(reader.get("/api/memory/get", params={"slug": "people/alice"}))
    assert got == ok(reader.post("/api/memory/get", json={"slug": "people/alice"}))
    assert got["title"] == "Alice Berg"


def test_query_parameters_are_converted_to_their_types(reader: TestClient) -> None:
    listed = ok(reader.get("/api/memory/list", params={"limit": "1", "type": "person"}))
    assert len(listed["pages"]) == 1
    asked = ok(reader.get("/api/memory/query", params={"question": "who founded River?", "explain": "true"}))
    assert asked["results"]
    for name, value in (
        ("limit", "many"),
        ("limit", '"1"'),
        ("limit", "1.5"),
        ("limit", "null"),
        ("limit", "0"),
    ):
        error = failed(reader.get("/api/memory/list", params={name: value}), 400)
        assert error["code"] == "invalid_argument"
    error = failed(reader.get("/api/memory/list?limit=1&limit=2"), 400)
    assert "only once" in error["message"]
    error = failed(reader.get("/api/memory/list", params={"limti": "1"}), 400)
    assert "limit" in error["message"]


def test_replacing_text_requires_the_version_for_every_scope(owner: TestClient) -> None:
    made = ok(owner.post("/api/memory/put", json={"slug": "people/bo", "content": "# Bo\n\nA diver."}))
    assert made["version"] == 1
    change = {"slug": "people/bo", "content": "# Bo\n\nA pilot."}
    error = failed(owner.post("/api/memory/put", json=change), 409)
    assert error["code"] == "version_conflict"
    assert error["facts"]["current_version"] == 1
    assert failed(owner.post("/api/memory/put", json={**change, "expected_version": 7}), 409)
    assert ok(owner.post("/api/memory/put", json={**change, "expected_version": 1}))["version"] == 2
    assert ok(owner.post("/api/memory/tag", json={"slug": "people/bo", "tag": "x"}))["version"] == 3


def test_the_notebook(writer: TestClient) -> None:
    kept = ok(writer.post("/api/notebook/remember", json={"content": "buy milk"}))
    assert kept["path"] == "lists/shopping.md"
    assert "Milk" in ok(writer.get("/api/notebook/read", params={"path": kept["path"]}))["text"]
    result = ok(writer.get("/api/notebook/recall", params={"query": "Sarah phone", "min_score": "0.1"}))
    assert result["notebook"]
    assert ok(writer.post("/api/notebook/daily_log", json={"entry": "Shipped it"}))["path"].startswith(
        "daily/"
    )
    assert failed(writer.get("/api/notebook/read", params={"path": "../memory.db"}), 400)


def test_errors_have_a_code(reader: TestClient) -> None:
    assert (
        failed(reader.get("/api/memory/get", params={"slug": "people/nobody"}), 404)["code"]
        == "page_not_found"
    )
    assert failed(reader.get("/api/memory/get"), 400)["facts"]["name"] == "slug"
    assert failed(reader.post("/api/memory/put", json={"slug": "people/x", "content": "x"}), 403)


@pytest.mark.parametrize(
    ("content", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'{"slug": NaN}', "application/json", 400),
        (b"\xff", "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b'{"slug": "people/alice"}', "text/plain", 415),
        (b'{"slug": "people/alice"}', "", 415),
        (b"slug=people/alice", "application/x-www-form-urlencoded", 415),
        (b'{"slug": "people/alice"}', "application/json; charset=utf-8", 200),
    ],
)
def test_bodies(reader: TestClient, content: bytes, kind: str, status: int) -> None:
    response = reader.post("/api/memory/get", content=content, headers={"Content-Type": kind} if kind else {})
    assert response.status_code == status


def test_lone_surrogate_in_a_response(reader: TestClient) -> None:
    body = b'{"slug": "people/\\ud800"}'
    response = reader.post("/api/memory/get", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 400
    assert json.loads(response.content)["error"]


def test_undeclared_method_is_refused(reader: TestClient) -> None:
    error = failed(reader.get("/api/memory/put"), 405)
    assert error["code"] == "wrong_method"
    assert "POST" in reader.get("/api/memory/put").headers["allow"]


def test_states_of_long_jobs_are_listed_without_any_text(reader: TestClient) -> None:
    assert reader.get("/api/jobs").json() == {"jobs": []}
    assert reader.get("/api/memory/dupes").status_code == 200
    (job,) = reader.get("/api/jobs").json()["jobs"]
    assert (job["id"], job["operation"], job["state"]) == (1, "dupes", "finished")
