"""Hostile paths for every argument that names something, on every surface: nothing outside is read or changed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient
from tests.faults import hostile_paths
from tests.faults.full_memory import KB, converse, create_memory, open_memory, settings_for
from tests.faults.hostile_paths import CANARY
from tests.faults.ledger import Cases
from tests.faults.workspace import FOLDER, run

from quaid.app import Brain
from quaid.errors import QuaidError
from quaid.mcp import tools
from quaid.operations import dispatch, service
from quaid.operations.dispatch import json_value
from quaid.operations.registry import Operation, Param, all_operations
from quaid.web import server as web_app

pytestmark = pytest.mark.promise("paths")

PROSE = {
    *("content", "compiled_truth", "timeline_append", "summary", "detail", "query", "question", "text"),
    *("context", "query_text", "redacted_query", "note", "entry", "data", "frontmatter", "assertions"),
    *("excerpt", "evidence", "confidence_score", "message", "value"),
}
"""Arguments that are texts: rows of their own try those."""

NOT_ASKED = {
    "memory_daemon_install",  # these have the system run or stop programs; other tests watch what they write
    "memory_daemon_start",
    "memory_daemon_stop",
    "memory_daemon_uninstall",
    "memory_daemon_status",
    "memory_daemon_logs",
    "memory_kb_install_timer",
    "memory_kb_clone",  # these read what the person names, wherever it is: that is what they are for
    "memory_kb_init",
    "memory_kb_capture",
    "memory_kb_push",
    "memory_model_add",
    "memory_connect",
    "memory_disconnect",
    "memory_forget_now",
    "memory_compact",
}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A household with links in all its folders that lead outside, where nothing may be touched."""
    place = tmp_path / "home"
    beyond = hostile_paths.outside(place)
    with create_memory(place) as brain:
        run(brain, "put", slug="people/alice", content="# Alice\n\nLives in Oslo.\n")
        run(brain, "put", slug=f"{FOLDER}::bo", content="# Bo\n\nKnows [[people/alice]].\n")
        run(brain, "remember", content="The bicycle is in the cellar")
        converse(place, brain, "Where is the bicycle?", "In the cellar.")
        run(brain, "kb remember", title="Bicycles", text="They have two wheels.", summary="About bicycles")
    for folder in (FOLDER, "notebook", KB):
        hostile_paths.set_traps(place / folder, beyond)
    before = hostile_paths.state(beyond)
    yield place
    assert hostile_paths.state(beyond) == before
    assert {path.name for path in tmp_path.iterdir()} == {"home", "outside"}
    with open_memory(place) as brain:
        run(brain, "collection sync")
        assert run(brain, "search", query=CANARY)["hits"] == []
        assert run(brain, "kb query", context=CANARY)["matches"] == []


def asked() -> list[tuple[Operation, Param]]:
    """Every argument that names something, of every operation that does not take paths of the person's machine."""
    return [
        (operation, param)
        for operation in all_operations()
        if operation.tool not in NOT_ASKED
        for param in operation.params
        if param.kind in ("string", "array") and not param.choices and not param.arg.path
        if param.name not in PROSE and not param.arg.file
    ]


def arguments(operation: Operation, param: Param, hostile: str) -> dict[str, Any]:
    """The hostile path where it is tried, something harmless everywhere else that needs a value."""
    harmless = {
        "slug": "people/alice",
        "from": "people/alice",
        "to": f"{FOLDER}::bo",
        "subject": "people/alice",
        "path": "reference/contacts.md",
        "session": "talk-1",
        "node": "bicycles",
        "name": FOLDER,
        "date": "2026-04-25",
        "pattern": "*.tmp",
        "key": "chunk_strategy",
    }
    items: dict[str, Any] = {}
    for item in operation.params:
        if item.required and not item.arg.path:
            kinds: dict[str, Any] = {"integer": 1, "array": [], "object": {}, "number": 1.0, "boolean": False}
            items[item.name] = harmless.get(item.name, kinds.get(item.kind, "something"))
    for version in ("expected_version", "page_version", "other_version"):
        if any(param.name == version for param in operation.params):
            items[version] = 1
    items[param.name] = [hostile] if param.kind == "array" else hostile
    return items


def test_no_argument_of_any_operation_leads_outside(home: Path, cases: Cases) -> None:
    beyond, pairs = home.parent / "outside", asked()
    refused = answered = 0
    with open_memory(home) as brain:
        for seed in cases.walk(10, 5_000):
            hostile = hostile_paths.path(seed, beyond)
            for operation, param in pairs:
                try:
                    record = dispatch.call(brain, operation, arguments(operation, param, hostile), "owner")
                except QuaidError as error:
                    output, refused = str(error), refused + 1
                else:
                    output, answered = json.dumps(json_value(record)), answered + 1
                assert CANARY not in output, (operation.tool, param.name, hostile)
                assert "root:x:" not in output, (operation.tool, param.name, hostile)
            check_address(brain, hostile)
            cases.count(len(pairs))
    assert refused > answered or cases.alone
    assert {"slug", "path", "name", "node", "file", "session"} <= {param.name for _, param in pairs}
    cases.note(f"{len(pairs)} arguments of operations, {refused:,} refused, {answered:,} answered")


def check_address(brain: Brain, hostile: str) -> None:
    """The same as a resource, plain and encoded."""
    for spelled in (hostile, quote(hostile.encode("utf-8", "replace"), safe="")):
        try:
            message = str(tools.read_resource(brain, f"memory://pages/{spelled}"))
        except QuaidError as error:
            message = str(error)
        assert CANARY not in message


def addresses(app: Starlette) -> list[tuple[str, str]]:
    """Methods and addresses with a name in them."""
    results = []
    for route in app.routes:
        assert isinstance(route, Route)
        if "{" in route.path:
            results += [(method, route.path) for method in sorted((route.methods or set()) - {"HEAD"})]
    return results


QUERIES = ("/api/memory/get?slug=", "/api/notebook/read?path=", "/graph?slug=", "/notebook?path=")


def test_no_address_of_the_server_leads_outside(home: Path, cases: Cases) -> None:
    beyond = home.parent / "outside"
    settings = settings_for(home)
    app = web_app.build_app(settings, debug=True)
    places = addresses(app)
    assert ("DELETE", "/api/debug/notebook/{path:path}") in places
    assert ("GET", "/static/{name}") in places
    bearer = {"Authorization": f"Bearer {service.owner_token(settings)}"}
    tried = 0
    with TestClient(
        app, base_url="http://127.0.0.1:4321", headers=bearer, raise_server_exceptions=True
    ) as client:
        for seed in cases.walk(10, 5_000):
            hostile = hostile_paths.path(seed, beyond).encode("utf-8", "replace")
            for safe in ("", "/."):
                spelled = quote(hostile, safe=safe)
                for method, place in places:
                    address = place.split("{")[0] + spelled + place.partition("}")[2]
                    body = {"content": "Overwritten."} if method == "POST" else None
                    tried += look(client, method, address, body)
                for place in QUERIES:
                    tried += look(client, "GET", place + spelled, None)
    cases.count(tried)


def look(client: TestClient, method: str, address: str, body: Any) -> int:
    answer = client.request(method, address, json=body)
    assert answer.status_code != 500, (method, address, answer.text)
    assert CANARY not in answer.text, (method, address)
    assert "root:x:" not in answer.text, (method, address)
    return 1
