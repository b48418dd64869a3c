"""The service: the text that is written, and what the system's programs are told."""

import os
import plistlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import commands
from tests.mcp.pipes import SOURCE

from quaid.app import Brain
from quaid.cli.render import render
from quaid.config import Settings
from quaid.errors import InvalidArgument, NoService, ServiceMissing
from quaid.operations import dispatch

Keeper = Callable[[str], Brain]

SYSTEMCTL = """#!/bin/sh
echo "$@" >> "$HOME/calls"
case "$*" in
  "--user is-active quaid.service") cat "$HOME/state"; test "$(cat "$HOME/state")" = active ;;
  "--user start"*|"--user restart"*) echo active > "$HOME/state" ;;
  "--user stop"*|"--user disable"*) echo inactive > "$HOME/state" ;;
esac
"""
LAUNCHCTL = """#!/bin/sh
echo "$@" >> "$HOME/calls"
case "$1" in
  print) cat "$HOME/state"; test -s "$HOME/state" ;;
  bootstrap|kickstart) echo "state = running" > "$HOME/state" ;;
  bootout) test -s "$HOME/state" && : > "$HOME/state" ;;
esac
"""
JOURNALCTL = """#!/bin/sh
echo "$@" >> "$HOME/calls"
echo "2026-04-25T12:00:00+0000 host quaid[1]: quaid 0.1.0: http://127.0.0.1:4321"
"""


@pytest.fixture
def on(settings: Settings, tmp_path: Path) -> Keeper:
    """A brain on a machine of that kind, whose programs note what they are told."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("systemctl", SYSTEMCTL), ("launchctl", LAUNCHCTL), ("journalctl", JOURNALCTL)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (tmp_path / "state").write_text("inactive\n")

    def make(platform: str) -> Brain:
        if platform == "darwin":
            (tmp_path / "state").write_text("")
        environ = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(tmp_path)}
        brain = Brain(settings._replace(platform=platform, environ=environ, home=str(tmp_path / ".quaid")))
        brain.create(settings.db_path)
        return brain

    return make


def call(brain: Brain, command: str, **given: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), given, "owner")


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_a_service_is_installed_stopped_started_and_removed(
    on: Keeper, platform: str, tmp_path: Path
) -> None:
    with on(platform) as brain:
        status = call(brain, "daemon status")
        assert (status.state, status.exit_status) == ("not installed", 2)
        made = call(brain, "daemon install", port=4400)
        assert made.done
        assert made.changed
        assert os.stat(made.path).st_mode & 0o077 == 0
        text = Path(made.path).read_text()
        for word in ("serve", "--http", "--port", "4400", brain.settings.db_path):
            assert word in text
        assert call(brain, "daemon status").exit_status == 0
        assert call(brain, "daemon install", port=4400).changed is False
        assert "--host-name" not in text
        assert call(brain, "daemon install", port=4400, host_name="LOCALHOST").changed
        assert "localhost" in Path(made.path).read_text()
        with pytest.raises(InvalidArgument):
            call(brain, "daemon install", host_name="evil.example")
        assert call(brain, "daemon stop").done
        status = call(brain, "daemon status")
        assert (status.state, status.exit_status) == ("stopped", 1)
        assert call(brain, "daemon start").done
        assert call(brain, "daemon status").state == "running"
        assert call(brain, "daemon uninstall").done
        assert not os.path.exists(made.path)
        assert call(brain, "daemon status").state == "not installed"
        for command in ("daemon start", "daemon stop", "daemon uninstall", "daemon logs"):
            with pytest.raises(ServiceMissing, match="daemon install") as missing:
                call(brain, command)
            assert missing.value.exit_status == call(brain, "daemon status").exit_status == 2
    calls = (tmp_path / "calls").read_text()
    assert ("--user enable quaid.service" if platform == "linux" else "bootstrap gui/") in calls


def test_a_property_list_can_be_read(on: Keeper) -> None:
    with on("darwin") as brain:
        made = call(brain, "daemon install")
        with open(made.path, "rb") as file:
            plist = plistlib.load(file)
        assert plist["Label"] == "quaid.daemon"
        assert plist["ProgramArguments"][-4:] == ["serve", "--http", "--port", "4321"]


def test_logs(on: Keeper, tmp_path: Path) -> None:
    with on("linux") as brain:
        call(brain, "daemon install")
        assert "http://127.0.0.1:4321" in call(brain, "daemon logs").value[0]
    assert "-u quaid.service -n 50" in (tmp_path / "calls").read_text()
    (tmp_path / ".quaid").mkdir(exist_ok=True)


def test_logs_of_launchd_are_the_end_of_a_file(on: Keeper, tmp_path: Path) -> None:
    with on("darwin") as brain:
        call(brain, "daemon install")
        assert call(brain, "daemon logs").value == ()
        (tmp_path / ".quaid").mkdir(exist_ok=True)
        (tmp_path / ".quaid" / "daemon.log").write_text("\n".join(map(str, range(100))))
        assert call(brain, "daemon logs", lines=3).value == ("97", "98", "99")


def test_commands_are_shown_when_the_system_cannot_be_queried(on: Keeper, tmp_path: Path) -> None:
    (tmp_path / "bin" / "systemctl").write_text("#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n")
    with on("linux") as brain:
        made = call(brain, "daemon install")
        assert not made.done
        assert made.exit_status == 1
        assert made.problem == "Failed to connect to bus"
        assert "systemctl --user restart quaid.service" in made.to_run
        assert os.path.exists(made.path)
        status = call(brain, "daemon status")
        assert (status.state, status.exit_status) == ("unknown", 3)
        enabled = Path(made.path).parent / "default.target.wants" / "quaid.service"
        enabled.parent.mkdir()
        enabled.symlink_to(made.path)
        gone = call(brain, "daemon uninstall")
        assert gone.done  # the file is gone, and with it the service at the next login
        assert not os.path.exists(made.path)
        assert not enabled.is_symlink()
        output = render(gone)
    assert gone.to_run == ("systemctl --user stop quaid.service", "systemctl --user daemon-reload")
    assert output.startswith(
        "The service is removed, but the service manager was not reached (Failed to connect"
    )
    assert "If it is still running" in output
    assert "disable" not in output


def test_other_systems_get_instructions(on: Keeper) -> None:
    with on("win32") as brain:
        with pytest.raises(NoService, match="quaid serve --http"):
            call(brain, "daemon install")
        assert call(brain, "daemon status").exit_status == 3


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="systemd-analyze is not there; Debian's package systemd has it",
)
@pytest.mark.parametrize("folder", ["plain", "with a space", "with 100% and $HOME"])
def test_systemd_itself_finds_no_fault_with_the_unit(on: Keeper, tmp_path: Path, folder: str) -> None:
    with on("linux") as brain:
        place = tmp_path / folder
        place.mkdir()
        moved = str(place / "memory.db")
        os.rename(brain.settings.db_path, moved)
        brain.close()
        brain.settings = brain.settings._replace(db_path=moved)
        made = call(brain, "daemon install")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--user", made.path],
        capture_output=True,
        text=True,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "SYSTEMD_LOG_LEVEL": "warning"},
    )
    ours = [line for line in (done.stdout + done.stderr).splitlines() if "quaid.service" in line]
    assert (done.returncode, ours) == (0, []), done.stderr


@pytest.mark.parametrize(
    ("state", "status"), [("active", 0), ("inactive", 1), ("failed", 1), ("", 2), ("mystery", 3)]
)
def test_the_command_says_by_its_exit_status_how_the_service_is(
    on: Keeper, tmp_path: Path, state: str, status: int
) -> None:
    """As scripts ask: a process, and the program of systemd before it in PATH."""
    with on("linux") as brain:
        if state:
            call(brain, "daemon install")
            (tmp_path / "state").write_text(state + "\n")
        path = brain.settings.db_path
    done = subprocess.run(
        [commands.program(), "--db", path, "daemon", "status"],
        capture_output=True,
        text=True,
        env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": SOURCE},
    )
    words = {0: "running", 1: "stopped", 2: "not installed", 3: "unknown"}
    assert done.returncode == status, done.stderr
    assert words[status] in done.stdout.lower()
