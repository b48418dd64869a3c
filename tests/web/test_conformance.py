"""MCP's own conformance suite against `quaid serve --http`: its server scenarios, for both ways of speaking."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.mcp.pipes import ROOT
from tests.web.server_process import Process

from quaid.config import Settings
from quaid.operations import service

FOLDER = os.path.join(ROOT, ".cache", "conformance")
MODULES = os.path.join(FOLDER, "node_modules")
NODE = os.path.join(MODULES, ".bin", "node")
SUITE = os.path.join(MODULES, "@modelcontextprotocol", "conformance", "dist", "index.js")
HERE = os.path.dirname(__file__)

pytestmark = pytest.mark.skipif(
    not os.path.exists(os.path.join(FOLDER, "installed")),
    reason="MCP's conformance suite is not installed; .ci/conformance installs it",
)

NOT_DECLARED = "an ability that this server does not declare"
NEVER_ASKS = "this server never asks anything of its client"
NOT_OURS = {
    "completion-complete": NOT_DECLARED,
    "resources-subscribe": NOT_DECLARED,
    "resources-unsubscribe": NOT_DECLARED,
    "tools-call-with-logging": NOT_DECLARED,
    "logging-set-level": NOT_DECLARED,
    "server-sse-polling": "the calls of the scenario are answered with JSON, so there is no stream to resume",
    "tools-call-sampling": NEVER_ASKS,
    "tools-call-elicitation": NEVER_ASKS,
    "elicitation-sep1034-defaults": NEVER_ASKS,
    "elicitation-sep1330-enums": NEVER_ASKS,
    "http-custom-header-server-validation": "no tool of this server wants an argument in a header",
}
PREFIXES = {"tasks-": NOT_DECLARED, "input-required-result-": NEVER_ASKS}
WANTS_NO_ARGUMENT = "sep-2243-server-accepts-whitespace-header-value"
"""A check that calls the first tool without arguments; ours needs a slug. The exhibits pass it."""

EXHIBITS = {  # scenarios that ask for a tool, a resource or a prompt by a name that only a test has
    *("tools-call-simple-text", "tools-call-image", "tools-call-audio", "tools-call-embedded-resource"),
    *("tools-call-mixed-content", "tools-call-error", "tools-call-with-progress", "json-schema-2020-12"),
    *("resources-read-text", "resources-read-binary", "resources-templates-read", "prompts-get-simple"),
    *("prompts-get-with-args", "prompts-get-embedded-resource", "prompts-get-with-image"),
}


REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")


class Check(NamedTuple):
    scenario: str
    id: str
    status: str
    told: str
    untestable: bool  # the suite says so itself: it wants a tool of some name


def checked(server: Process, settings: Settings, folder: Path, *words: str) -> list[Check]:
    """What the suite finds."""
    done = subprocess.run(
        [
            *(NODE, "--import", os.path.join(HERE, "showing_token.mjs"), SUITE, "server"),
            *("--url", f"{server.address}/mcp", "--output-dir", str(folder), *words),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "QUAID_TOKEN": service.owner_token(settings), "HOME": str(folder)},
    )
    results = []
    for path in sorted(folder.glob("server-*/checks.json")):
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT[\d-]+Z$", "", path.parent.name.removeprefix("server-"))
        results += [_check(scenario, check) for check in json.loads(path.read_text())]
    assert results, done.stdout[-2_000:] + done.stderr[-2_000:]
    return results


def _check(scenario: str, told: dict[str, Any]) -> Check:
    details = told.get("details")
    untestable = isinstance(details, dict) and details.get("untestable") is True
    return Check(scenario, told["id"], told["status"], str(told.get("errorMessage", "")), untestable)


def failures(found: list[Check]) -> list[Check]:
    return [item for item in found if item.status in ("FAILURE", "WARNING") and not item.untestable]


def applies(scenario: str) -> bool:
    return scenario not in NOT_OURS and not scenario.startswith(tuple(PREFIXES))


def test_every_scenario_that_applies_passes(server: Process, memory: Settings, tmp_path: Path) -> None:
    result = checked(server, memory, tmp_path, "--suite", "all")
    seen = {item.scenario for item in result}
    assert set(NOT_OURS) | EXHIBITS <= seen, "the suite has other scenarios now; look which apply"
    wrong = [
        failure
        for failure in failures(result)
        if applies(failure.scenario) and failure.scenario not in EXHIBITS
    ]
    wrong = [item for item in wrong if item.id != WANTS_NO_ARGUMENT]
    assert wrong == [], "\n".join(map(str, wrong))
    for scenario in ("server-initialize", "server-session-lifecycle", "server-stateless", "tools-list"):
        assert [item for item in result if item.scenario == scenario and item.status == "SUCCESS"]
    for scenario in ("http-header-validation", "dns-rebinding-protection", "caching", "ping"):
        assert [item for item in result if item.scenario == scenario and item.status == "SUCCESS"]


@pytest.fixture(scope="module")
def exhibition(memory: Settings) -> Iterator[Process]:
    """The same server with what the suite asks for by name."""
    program = (sys.executable, "-P", os.path.join(HERE, "conformance_server.py"))
    with Process(memory, "serve", "--http", program=program) as process:
        yield process


@pytest.fixture(scope="module")
def exhibits(
    exhibition: Process, memory: Settings, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[Check]]:
    """What the suite finds at each revision that it knows."""
    return {
        revision: checked(
            *(exhibition, memory, tmp_path_factory.mktemp(revision)),
            *("--suite", "all", "--spec-version", revision),
        )
        for revision in REVISIONS
    }


@pytest.mark.parametrize("revision", REVISIONS)
def test_scenarios_with_fixture_tools_pass(exhibits: dict[str, list[Check]], revision: str) -> None:
    result = exhibits[revision]
    wrong = [failure for failure in failures(result) if applies(failure.scenario)]
    assert wrong == [], "\n".join(map(str, wrong))
    shown = {item.scenario for item in result if item.status == "SUCCESS"}
    if revision == "2025-03-26":  # the suite has one scenario for it
        assert shown == {"server-session-lifecycle"}
        return
    assert EXHIBITS - {"json-schema-2020-12"} <= shown
    assert revision == "2025-06-18" or "json-schema-2020-12" in shown


def outcome(checks: list[Check]) -> str:
    """How a scenario ends at one revision, as the documentation shows it."""
    if not checks:
        return "–"
    scenario = checks[0].scenario
    if not applies(scenario):
        return "n/a"
    passed = [check for check in checks if check.status == "SUCCESS"]
    return "passes" if passed and not failures(checks) else "fails"


def conformance_table(exhibits: dict[str, list[Check]]) -> str:
    """The table of the documentation: scenarios and their results at each revision."""
    names = sorted({check.scenario for checks in exhibits.values() for check in checks})
    cells = {
        name: [
            outcome([check for check in exhibits[revision] if check.scenario == name])
            for revision in REVISIONS
        ]
        for name in names
    }
    rows = [
        f"| `{name}` | {' | '.join(cells[name])} | {reason(name) if 'n/a' in cells[name] else ''} |"
        for name in names
    ]
    columns = list(zip(*cells.values(), strict=True))
    asked, passed, not_ours = (
        [str(sum(cell in kinds for cell in column)) for column in columns]
        for kinds in (("passes", "fails", "n/a"), ("passes",), ("n/a",))
    )
    totals = [
        f"| **{label}** | {' | '.join(numbers)} | |"
        for label, numbers in (("asked", asked), ("passed", passed), ("not applicable", not_ours))
    ]
    head = [f"| scenario | {' | '.join(REVISIONS)} | why not |", f"|---|{'---|' * len(REVISIONS)}---|"]
    return "\n".join([*head, *rows, *totals])


def reason(scenario: str) -> str:
    prefix = next((prefix for prefix in PREFIXES if scenario.startswith(prefix)), "")
    return NOT_OURS.get(scenario) or PREFIXES[prefix]


def test_the_documented_table_is_what_the_suite_finds(exhibits: dict[str, list[Check]]) -> None:
    path = Path(ROOT, "docs", "conformance.md")
    before, start, rest = path.read_text().partition("<!-- results -->\n\n")
    assert start
    if os.environ.get("QUAID_UPDATE"):
        path.write_text(f"{before}{start}{conformance_table(exhibits)}\n")
    else:
        assert rest == conformance_table(exhibits) + "\n"
