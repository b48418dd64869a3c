"""The document of the API, and a tool that believes it: no answer is a failure of ours."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from tests.web.conftest import filled, settings_in
from tests.web.server_process import Process

from quaid.operations import service
from quaid.operations.registry import all_operations
from quaid.web import api
from quaid.web.auth import ScopedRoute


def test_the_document_has_every_tool_with_its_scope() -> None:
    paths = api.openapi_document()["paths"]
    for operation in all_operations():
        if operation.is_tool:
            output = paths[api.tool_path(operation.tool)]
            assert output["post"]["x-scope"] == operation.scope
            assert ("get" in output) == api.accepts_get(operation)


def test_every_address_of_the_document_is_served(app: Starlette, reader: TestClient) -> None:
    document: dict[str, Any] = reader.get("/api/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    declared: dict[str, set[str]] = {}
    for route in app.routes:
        assert isinstance(route, ScopedRoute)
        declared.setdefault(route.path_format, set()).update(route.scopes)
    for path, methods in document["paths"].items():
        assert {method.upper() for method in methods} <= declared[path], path
    served = {path for path in declared if path.startswith("/api/")}
    assert served == set(document["paths"])


def test_document_without_debug_endpoints() -> None:
    assert not any("debug" in path for path in api.openapi_document()["paths"])


@pytest.mark.skipif(find_spec("schemathesis") is None, reason="schemathesis is not installed")
def test_schemathesis_finds_no_server_error(tmp_path: Path) -> None:
    settings = filled(settings_in(tmp_path))
    examples = os.environ.get("QUAID_SCHEMATHESIS_EXAMPLES", "")  # a number: more of them, and the edges too
    with Process(settings, "serve", "--http", "--debug") as server:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "schemathesis.cli", "run", f"{server.address}/api/openapi.json"),
                *("--header", f"Authorization: Bearer {service.owner_token(settings)}"),
                *("--checks", "not_a_server_error", "--max-examples", examples or "2"),
                *("--exclude-path", "/api/events", "--phases", "coverage,fuzzing" if examples else "fuzzing"),
                *("--generation-deterministic", "--no-color", "--request-timeout", "30"),
            ],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
        with server.client() as asked:
            assert asked.get("/api/memory/stats").status_code == 200
