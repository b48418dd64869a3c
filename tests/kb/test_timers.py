"""The clock that pushes: texts that systemd, launchd and cron accept, written once."""

import os
import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from quaid.kb import setup

COMMAND = ("/opt/my tools/ai-kb", "push", "--store", '/home/ann/100% "kb"/$HOME\\x')


def machine(tmp_path: Path, status: int = 0) -> dict[str, str]:
    """A machine with a systemctl that notes how it was called."""
    tools = tmp_path / "bin"
    tools.mkdir()
    script = tools / "systemctl"
    script.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\necho "no bus" >&2\nexit {status}\n')
    script.chmod(0o755)
    return {"PATH": f"{tools}:/bin:/usr/bin", "XDG_CONFIG_HOME": str(tmp_path / "config")}


def test_the_units_are_written_and_the_timer_is_started(tmp_path: Path) -> None:
    environ = machine(tmp_path)
    done = setup.install_timer(COMMAND, environ, str(tmp_path), "linux")
    folder = tmp_path / "config" / "systemd" / "user"
    assert done.written == (str(folder / "ai-kb-push.service"), str(folder / "ai-kb-push.timer"))
    assert (done.kind, done.enabled, done.to_run) == ("systemd", True, ())
    assert (tmp_path / "calls").read_text() == "--user daemon-reload\n--user enable --now ai-kb-push.timer\n"
    assert "OnCalendar=*:0/15\nPersistent=true\n" in (folder / "ai-kb-push.timer").read_text()
    again = setup.install_timer(COMMAND, environ, str(tmp_path), "linux")
    assert (again.written, again.unchanged) == ((), done.written)


def test_commands_are_shown_without_a_session(tmp_path: Path) -> None:
    done = setup.install_timer(COMMAND, machine(tmp_path, 1), str(tmp_path), "linux")
    assert (done.enabled, done.problem) == (False, "no bus")
    assert done.to_run[-1] == "systemctl --user enable --now ai-kb-push.timer"
    assert len(done.written) == 2


def test_cron_line_is_shown_without_systemd(tmp_path: Path) -> None:
    done = setup.install_timer(COMMAND, {"PATH": str(tmp_path)}, str(tmp_path), "linux")
    assert (done.kind, done.written, done.enabled) == ("cron", (), False)
    assert os.listdir(tmp_path) == []
    (line,) = done.to_run
    assert line.startswith("*/15 * * * * '/opt/my tools/ai-kb' push --store ")
    shell = line.removeprefix("*/15 * * * * ").removesuffix(" >/dev/null 2>&1").replace(r"\%", "%")
    output = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {shell}"], capture_output=True, text=True, check=True
    ).stdout
    assert tuple(output.splitlines()) == COMMAND


def test_launchd_agent_is_written_and_its_commands_are_shown(tmp_path: Path) -> None:
    done = setup.install_timer(COMMAND, {}, str(tmp_path), "darwin")
    (path,) = done.written
    assert path.startswith(str(tmp_path / "Library" / "LaunchAgents"))
    plist = plistlib.loads(Path(path).read_bytes())
    assert plist["ProgramArguments"] == list(COMMAND)
    assert plist["StartInterval"] == 900
    assert path in done.to_run[-1]
    assert setup.install_timer(COMMAND, {}, str(tmp_path), "darwin").written == ()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    tool = tmp_path / 'my "tools" 100% $HOME'
    tool.mkdir()
    program = tool / "ai-kb"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "ai-kb-push.service").write_text(setup.service_unit((str(program), "push", "a b")))
    (tmp_path / "ai-kb-push.timer").write_text(setup.timer_unit())
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", "./ai-kb-push.service", "./ai-kb-push.timer"],
        cwd=tmp_path,
        env=os.environ | {"XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert "ai-kb-push" not in done.stderr, done.stderr
    completed = subprocess.run(["systemd-analyze", "calendar", "*:0/15"], capture_output=True, text=True)
    assert completed.returncode == 0
