"""Journeys: what a person types and what comes back, kept as transcripts and played as real processes.

A transcript is a text file. `$ ` begins a command for the shell (a here-document runs to its end mark); below
it stands what it prints: standard output, then standard error with `! ` before each line, then `[exit N]` for
a status other than 0. `…` stands for any characters of a line, alone on a line for any lines. `; ` begins a
remark.

Each transcript runs in an empty home and an empty folder; their paths show as $HOME and $PWD. Whatever fails
has to say so in one line, without a traceback, and leave the memory as it was and sound. QUAID_UPDATE=1
writes what was printed into the transcripts, keeping the lines that still match.
"""

import datetime
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest
from tests import commands

import quaid
from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
UPDATE = bool(os.environ.get("QUAID_UPDATE"))
WITHOUT_PRIVILEGE = "setpriv --bounding-set=-dac_override,-dac_read_search,-fowner"
# What differs from run to run; an updated transcript gets the wildcard in its place.
CHANGING = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+Z|[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{21}|\b[0-9a-f]{64}\b|\b[0-9a-f]{12}\b"
    r"|\b[\d.]+ (?:KB|MB|ms)\b|(?<=SQLite )[\d.]+|(?<=Python )[\d.]+|(?<=near in meaning \()[\d.]+"
    r"|(?<=unrelated )[\d.]+|(?<=, )[\d.]+(?=, (?:meaning|both)\))"
    r"|(?<=schema_version\": )\d+|(?<=supports versions up to )\d+"
    r"|\b[\d.]+ s CPU\b|(?<=score\": )[\d.e-]+|(?<=size\": )\d{4,}|"
    + datetime.datetime.now(datetime.UTC).date().isoformat()
)


TAKEN_IN = "was changed by another program since it was last read"


class Step(NamedTuple):
    command: str
    expected: list[str]
    tail: list[str]  # blank lines and remarks up to the next command


class Outcome(NamedTuple):
    status: int
    out: str
    err: str


class Stage:
    """An empty home, an empty folder, and a `quaid` on the path."""

    def __init__(self, folder: Path) -> None:
        self.home, self.cwd, programs = folder / "home", folder / "work", folder / "bin"
        for item in (self.home, self.cwd, programs):
            item.mkdir()
        commands.install(programs / "quaid")
        _program(programs / "python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        # A read-only folder binds root only without its privileges.
        other = WITHOUT_PRIVILEGE if os.geteuid() == 0 else "env"
        _program(programs / "unprivileged", f'#!/bin/sh\nCOLD_START=1 exec {other} "$@"\n')
        self.memory = self.home / ".quaid" / "memory.db"
        self.environ = {
            "HOME": str(self.home),
            "PATH": f"{programs}:/usr/bin:/bin",
            "PYTHONPATH": os.path.dirname(os.path.dirname(quaid.__file__)),
            "EXAMPLES": str(ROOT / "examples"),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            **commands.SHARED_MODELS,
        }

    def run(self, command: str) -> Outcome:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.cwd,
            env=self.environ,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=300,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    def shown(self, outcome: Outcome) -> list[str]:
        lines = outcome.out.splitlines() + [f"! {line}" for line in outcome.err.splitlines()]
        if outcome.status:
            lines.append(f"[exit {outcome.status}]")
        text = "\n".join(lines)
        for path, name in ((self.cwd, "$PWD"), (self.home, "$HOME"), (ROOT, "$ROOT")):
            text = text.replace(str(path), name)
        return [line.rstrip() for line in text.split("\n")] if text else []

    def rows(self) -> list[tuple[str, list[object]]]:
        """Everything that the memory holds."""
        if not self.memory.exists():
            return []
        db = apsw.Connection(str(self.memory), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            tables = [
                name
                for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")
            ]
            return [(name, list(db.execute(f'SELECT * FROM "{name}"'))) for name in tables]
        finally:
            db.close()

    def violations(self) -> object:
        if not self.memory.exists():
            return ()
        with Brain(Settings(str(self.memory), str(self.home), str(self.cwd))) as brain:
            return dispatch.call(brain, dispatch.find_command("validate"), {}, "owner").violations


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def parse(text: str) -> tuple[list[str], list[Step]]:
    """The lines above the first command, and the steps."""
    lines = text.splitlines()
    head: list[str] = []
    while lines and not lines[0].startswith("$ "):
        head.append(lines.pop(0))
    steps: list[Step] = []
    while lines:
        command = lines.pop(0)[2:]
        mark = re.search(r"<<-?\s*'?(\w+)", command)
        while mark and lines:
            command += "\n" + lines[0]
            if lines.pop(0) == mark[1]:
                mark = None
        body: list[str] = []
        while lines and not lines[0].startswith("$ "):
            body.append(lines.pop(0))
        end = next((at for at, line in enumerate(body) if line.startswith("; ")), len(body))
        while end and not body[end - 1]:
            end -= 1
        steps.append(Step(command, body[:end], body[end:]))
    return head, steps


def matches(expected: list[str], actual: list[str]) -> bool:
    if not expected:
        return not actual
    if expected[0] == "…":
        return any(matches(expected[1:], actual[skip:]) for skip in range(len(actual) + 1))
    return bool(actual) and line_matches(expected[0], actual[0]) and matches(expected[1:], actual[1:])


def line_matches(expected: str, actual: str) -> bool:
    return re.fullmatch(".*".join(re.escape(part) for part in expected.split("…")), actual) is not None


def updated(step: Step, actual: list[str]) -> list[str]:
    if matches(step.expected, actual):
        return step.expected
    old = [line for line in step.expected if line != "…"]
    return [
        next((item for item in old if line_matches(item, line)), CHANGING.sub("…", line)) for line in actual
    ]


def complaint(outcome: Outcome) -> str:
    """What is wrong with the manner of an outcome, whatever it says."""
    if "Traceback" in outcome.out + outcome.err:
        return "a traceback reached the user"
    if outcome.status < 2:
        return ""
    lines = outcome.err.splitlines()
    if len(lines) != 1 or not lines[0].startswith(("quaid: ", '{"error":')):
        return "a failure has to say what is wrong in one line of standard error"
    return "" if not outcome.out else "a failure printed something on standard output"


class Played(NamedTuple):
    different: list[str]  # where something else was printed than is written
    wrong: list[str]  # what no transcript may hold
    text: str  # the transcript as it should read now


def perform(stage: Stage, text: str) -> Played:
    head, steps = parse(text)
    played = Played([], [], "")
    written = list(head)
    for step in steps:
        before = stage.rows()
        outcome = stage.run(step.command)
        actual = stage.shown(outcome)
        if not matches(step.expected, actual):
            compared = [f"$ {step.command}", "-- expected:", *step.expected, "-- got:", *actual]
            played.different.append("\n".join(compared))
        if manner := complaint(outcome):
            played.wrong.append(f"$ {step.command}\n{manner}:\n{outcome.out}{outcome.err}")
        # A refused edit takes in the file that somebody changed outside: that is the one thing it may do.
        if outcome.status >= 2 and TAKEN_IN not in outcome.err and stage.rows() != before:
            played.wrong.append(f"$ {step.command}\nfailed, and changed the memory")
        if outcome.status >= 2 and (result := stage.violations()):
            played.wrong.append(f"$ {step.command}\nleft the memory unsound: {result}")
        written += [f"$ {step.command}", *updated(step, actual), *step.tail]
    return played._replace(text="\n".join(written) + "\n")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
def small_disk(stage: Stage) -> Iterator[Path]:
    """A disk of 600 kB, mounted in the stage's folder."""
    place = stage.cwd / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if os.geteuid() != 0 or not mount:
        pytest.skip("only root can mount a disk that is small enough to fill")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=840k", "tmpfs", place], capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"no disk could be mounted: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", place], check=True)


def play(stage: Stage, path: Path) -> None:
    played = perform(stage, path.read_text(encoding="utf-8"))
    assert not played.wrong, "\n\n".join(played.wrong)
    if UPDATE:
        path.write_text(played.text, encoding="utf-8")
    else:
        assert not played.different, "\n\n".join(played.different)


@pytest.mark.parametrize("path", sorted(HERE.glob("*.txt")), ids=lambda path: path.stem)
def test_transcript(stage: Stage, path: Path) -> None:
    if path.stem == "config":
        del stage.environ["QUAID_EMBEDDING_MODELS_DIR"]  # it lists the settings and where they come from
    if path.stem == "read_only" and os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("permissions do not bind root, and setpriv is not here to lay its privileges down")
    play(stage, path)


def test_a_full_disk_loses_nothing(stage: Stage, small_disk: Path) -> None:
    play(stage, HERE / "small_disk" / "full.txt")


def test_tour_in_the_readme(stage: Stage) -> None:
    shutil.copytree(ROOT / "examples", stage.cwd / "examples")
    text = "".join(re.findall(r"^```console\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S))
    steps = parse(re.sub(r"/home/you[\w./-]*", "…", CHANGING.sub("…", text)))[1]
    assert len(steps) > 5
    for step in steps:
        outcome = stage.run(step.command)
        printed = [line.rstrip() for line in (outcome.out + outcome.err).splitlines()]
        assert matches(step.expected, printed), f"$ {step.command}\n" + "\n".join(printed)


def test_different_output_is_reported(stage: Stage) -> None:
    played = perform(stage, "; a remark\n\n$ echo one\ntwo\n\n$ echo three\nth…\n")
    assert len(played.different) == 1
    assert played.wrong == []
    assert played.text == "; a remark\n\n$ echo one\none\n\n$ echo three\nth…\n"


@pytest.mark.parametrize(
    "command",
    [
        "echo 'quaid: it failed'; exit 3",
        "echo 'quaid: it failed' >&2; echo 'and more' >&2; exit 3",
        "echo 'it failed' >&2; exit 3",
        "echo half-done; echo 'quaid: it failed' >&2; exit 3",
        "echo 'Traceback (most recent call last):' >&2; exit 1",
        "quaid init > /dev/null; echo 'quaid: it failed' >&2; exit 3",
    ],
)
def test_badly_reported_failures_are_noticed(stage: Stage, command: str) -> None:
    assert len(perform(stage, f"$ {command}\n").wrong) == 1


def test_wildcards_match_within_a_line_and_over_lines(stage: Stage) -> None:
    text = "$ printf 'a b c\\n1\\n2\\n\\nend\\n'\na … c\n…\nend\n; a remark\n"
    assert perform(stage, text) == Played([], [], text)
