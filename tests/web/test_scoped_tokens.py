"""Tokens and servers that are bound to a part of the memory: over the API, over MCP, on the pages and on stdio."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.mcp.pipes import Pipes
from tests.operations.scoped_memory import CANARY, build, open_brain, run, settings_for
from tests.web.conftest import ADDRESS, client, own_client
from tests.web.test_mcp import STATELESS, begun, rpc, stateless

from quaid.config import Settings
from quaid.operations import service
from quaid.operations.registry import all_operations
from quaid.web import api, server as web_app

ONLY = (("work",),)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with a collection that the token sees, and much that it does not see."""
    path = tmp_path_factory.mktemp("scoped") / "home"
    build(path, ONLY, True)
    return path


def token(home: Path, name: str, scope: Any = "write", only: list[str] | None = None) -> str:
    with open_brain(home) as brain:
        return service.token_create(brain, name, scope, only=only).token


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@pytest.fixture(scope="module")
def asked(home: Path) -> Iterator[TestClient]:
    """A client whose token is bound to the collection work."""
    built = web_app.build_app(settings_for(home))
    with client(built, token(home, "bound", only=["work"])) as bound:
        yield bound


ARGUMENTS: dict[str, Any] = {
    "slug": "things/harbor", "query": "where is the harbor?", "from": "things/harbor", "to": "hidden::harbor",
    "subject": "Harbor", "names": ["harbor"], "session": "s", "path": "lists/notebook.md", "name": "0" * 32 + ".png",
    "node": "Node", "wing": "things",
}  # fmt: skip


def test_no_tool_over_http_shows_what_is_hidden(asked: TestClient) -> None:
    for operation in all_operations():
        if operation.scope != "read":
            continue
        arguments = {param.name: ARGUMENTS[param.name] for param in operation.params if param.required}
        texts = [
            asked.post(api.tool_path(operation.tool), json=arguments).text,
            asked.post(
                "/mcp",
                json=rpc("tools/call", name=operation.tool, arguments=arguments),
                headers=begun(asked),
            ).text,
            asked.post(
                "/mcp",
                json=stateless("tools/call", name=operation.tool, arguments=arguments),
                headers={
                    "Mcp-Protocol-Version": STATELESS,
                    "Mcp-Method": "tools/call",
                    "Mcp-Name": operation.tool,
                },
            ).text,
        ]
        assert all(CANARY not in text for text in texts), operation.tool


def test_resources_prompts_and_instructions_show_only_the_part(asked: TestClient) -> None:
    hello = rpc(
        "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"}
    )
    texts = [asked.post("/mcp", json=hello).text]
    assert "collections work." in json.loads(texts[0])["result"]["instructions"].replace(";", ".")
    headers = begun(asked)
    for method, params in (
        ("resources/list", {}),
        ("resources/read", {"uri": "memory://index"}),
        ("resources/read", {"uri": "memory://context"}),
        ("resources/read", {"uri": "memory://pages/things/harbor"}),
        ("resources/read", {"uri": "memory://pages/hidden::harbor"}),
        ("prompts/get", {"name": "memory_briefing", "arguments": {}}),
    ):
        texts.append(asked.post("/mcp", json=rpc(method, **params), headers=headers).text)
    assert all(CANARY not in text for text in texts)
    assert "work::plans/work-river" in texts[1]
    assert "Pages: 3" in texts[2]


@pytest.mark.parametrize(
    "path",
    ["/", "/settings", "/graph", "/page/things/harbor", "/api/events", "/api/jobs", "/search?q=harbor"],
)
def test_pages_and_events_are_refused(asked: TestClient, path: str) -> None:
    response = asked.get(path)
    assert response.status_code == 403
    assert CANARY not in response.text


def test_writes_go_to_the_visible_collection_and_nowhere_else(home: Path, asked: TestClient) -> None:
    def put(slug: str) -> Any:
        return asked.post("/api/memory/put", json={"slug": slug, "content": "# New\n\nText."})

    made = put("fresh")
    assert (made.status_code, made.json()["collection"]) == (200, "work")
    assert [put(slug).status_code for slug in ("hidden::fresh", "default::fresh", "nothere::fresh")] == [
        404
    ] * 3
    with open_brain(home) as owner:
        assert run(owner, "get", slug="fresh")["collection"] == "work"


def test_another_token_of_the_same_server_sees_everything(home: Path, asked: TestClient) -> None:
    free = TestClient(asked.app, base_url=ADDRESS, headers=bearer(token(home, "free", "read")))
    for _ in range(2):  # the workers are used by both in turn
        assert CANARY in free.get("/api/memory/list").text
        assert CANARY not in asked.get("/api/memory/list").text
        assert CANARY in free.post("/api/memory/query", json={"query": "harbor"}).text
        assert CANARY not in asked.post("/api/memory/query", json={"query": "harbor"}).text


def test_a_token_whose_binding_is_damaged_is_refused(home: Path, asked: TestClient) -> None:
    secret = token(home, "odd", only=["work"])
    path = home / ".quaid"
    (file,) = path.rglob("odd.json")
    for only in ([], "work", [1], None):
        file.write_text(json.dumps({**json.loads(file.read_text()), "only": only}))
        odd = TestClient(asked.app, base_url=ADDRESS, headers=bearer(secret))
        assert odd.get("/api/memory/list").status_code == 401


def test_a_server_that_is_bound_shows_the_part_to_every_token(home: Path) -> None:
    settings = settings_for(home)._replace(only=ONLY)
    with client(web_app.build_app(settings), token(home, "all")) as asked:
        assert CANARY not in asked.get("/api/memory/list").text
        assert CANARY not in asked.post("/mcp", json=rpc("resources/list"), headers=begun(asked)).text
        assert asked.get("/settings").status_code == 403


@pytest.fixture
def start() -> Iterator[Callable[..., Pipes]]:
    started: list[Pipes] = []

    def begin(db: str, *words: str) -> Pipes:
        started.append(Pipes(db, *words))
        return started[-1]

    yield begin
    for item in started:
        item.kill()


@pytest.mark.parametrize("by_setting", [False, True])
def test_a_server_on_stdio_is_bound_by_its_option_or_by_a_setting_of_its_client(
    home: Path, tmp_path: Path, start: Callable[..., Pipes], by_setting: bool
) -> None:
    shutil.copytree(home, tmp_path / "home", symlinks=True)
    db = str(tmp_path / "home" / "memory.db")
    if by_setting:
        with open_brain(tmp_path / "home") as brain:
            run(brain, "config set", key="client_only.test", value="work")
    pipes = start(db, "--tools", "all", *(() if by_setting else ("--only", "work")))
    hello = pipes.greet()
    answers = [hello, pipes.ask("resources/list"), pipes.ask("prompts/get", {"name": "memory_briefing"})]
    for tool in (
        "memory_list",
        "memory_stats",
        "memory_wings",
        "memory_gaps",
        "memory_contradictions",
        "memory_days",
    ):
        answers.append(pipes.call(tool))
    for tool in ("memory_search", "memory_query", "conversation_search", "recall"):
        answers.append(pipes.call(tool, query="harbor"))
    assert all(CANARY not in json.dumps(answer) for answer in answers)
    assert {page["collection"] for page in pipes.record("memory_list")["pages"]} == {"work"}
    missing, hidden = (
        pipes.fail("memory_put", slug=f"{name}::x", content="# X") for name in ("nothere", "hidden")
    )
    assert missing["message"].replace("nothere", "hidden") == hidden["message"]


def test_the_settings_page_creates_and_shows_a_bound_token(memory: Settings) -> None:
    built = web_app.build_app(memory)
    with own_client(built) as browser:
        code = service.login_code(memory, web_app.DEFAULT_PORT, time.time())
        browser.get(
            f"/login?code={code}", headers={"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
        )
        page = browser.get("/settings").text
        csrf = page.partition('name="csrf_token" value="')[2].partition('"')[0]
        form = {"csrf_token": csrf, "name": "helper", "scope": "read", "only": "default, wing:people"}
        made = browser.post("/settings/token/new", data=form)
        assert made.status_code == 200
        assert "only default, wing:people" in made.text
        wrong = browser.post("/settings/token/new", data={**form, "name": "other", "only": "nothere"})
        assert "there is no collection" in wrong.text
