"""Cold start: CPU time of whole commands as fresh processes, against `python -c "import apsw"`, and the same commands
while a server of the memory runs, to which they are handed over (docs/decisions/018)."""

import os
import signal
import subprocess
import sys
import tempfile
from typing import NamedTuple

from bench import kb
from bench.table import cpu_of, show, verdict

RUNS = 15
NODES = 1_000
EVENT = '{"session_id": "bench", "cwd": "/", "source": "startup"}'


class Command(NamedTuple):
    words: tuple[str, ...]
    ratio: float = 0  # at most so many times the yardstick
    seconds: float = 0  # at most so much CPU
    text: str = ""

    @property
    def name(self) -> str:
        return " ".join(self.words[: 2 if self.words[0] in ("kb", "hook") else 1])


COMMANDS = (
    Command(("--help",), ratio=4),
    Command(("version",)),
    Command(("get", "people/ada"), ratio=4),
    Command(("search", "first", "program"), ratio=4),
    Command(("prompt",), seconds=0.15),
    Command(("list",)),
    Command(("put", "people/ada", "--timeline-append", "- **2026-04-25** — Seen.")),
    Command(("stats",)),
    Command(("remember", "likes green tea")),
    Command(("recall", "tea")),
    Command(("query", "who wrote the first program"), seconds=0.35),
    Command(("hook", "session-start"), text=EVENT),
    Command(("kb", "query", "formatter"), seconds=0.05),
    Command(("kb", "index"), seconds=0.15),
)


def main() -> None:
    runs = 5 if "--quick" in sys.argv else RUNS
    quaid = os.path.join(os.path.dirname(sys.executable), "quaid")
    if not os.path.exists(quaid):
        raise SystemExit("bench.start needs the quaid command beside its Python: run it with `make bench`")
    with tempfile.TemporaryDirectory() as folder:
        env = _prepared(quaid, folder)
        bare, cold = _measured(quaid, env, runs)
        server = _served(quaid, env)
        try:
            _, handed = _measured(quaid, env, runs)
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate()
    rows = [("python -c 'import apsw'", f"{bare * 1000:.1f}", "1.0", "", "", "")]
    for command in COMMANDS:
        alone, given = cold[command.name], handed[command.name]
        target = ""
        if command.ratio:
            target = verdict(alone / bare, command.ratio)
        elif command.seconds:
            target = verdict(alone * 1000, command.seconds * 1000)
        rows.append(
            (
                f"quaid {command.name}",
                f"{alone * 1000:.1f}",
                f"{alone / bare:.2f}",
                target,
                f"{given * 1000:.1f}",
                f"{given / bare:.2f}",
            )
        )
    head = ("command", "CPU ms (median)", "ratio", "target", "beside a server", "ratio")
    show("Cold start", rows, head)


def _prepared(quaid: str, folder: str) -> dict[str, str]:
    """A home with a memory, a notebook, a model that was used once, and a knowledge base."""
    environ = kb.make(os.path.join(os.path.dirname(quaid), "ai-kb"), folder, NODES)
    env = {
        "QUAID_DB": os.path.join(folder, "memory.db"),
        "HOME": folder,
        "AI_KB_DIR": environ["AI_KB_DIR"],
        "QUAID_BACKGROUND_EMBEDDING": "off",
    }
    for words, text in (
        (("init",), ""),
        (("put", "people/ada"), "# Ada\n\nWrote the first program."),
        (("notebook", "init"), ""),
        (("remember", "likes tea"), ""),
        (("embed",), ""),
        (("query", "who wrote the first program"), ""),
        (("kb", "query", "formatter"), ""),
    ):
        cpu_of([quaid, *words], 1, text=text, env=env)
    return env


def _measured(quaid: str, env: dict[str, str], runs: int) -> tuple[float, dict[str, float]]:
    """The yardstick and each command, CPU seconds. All take turns, so that a noisy minute hits each of them."""
    bare: list[float] = []
    times: dict[str, list[float]] = {command.name: [] for command in COMMANDS}
    for _ in range(runs):
        bare += cpu_of([sys.executable, "-c", "import apsw"], 1)
        for command in COMMANDS:
            times[command.name] += cpu_of([quaid, *command.words], 1, text=command.text, env=env)
    return sorted(bare)[runs // 2], {name: sorted(taken)[runs // 2] for name, taken in times.items()}


def _served(quaid: str, env: dict[str, str]) -> subprocess.Popen[str]:
    """A server of the memory, once it answers."""
    server = subprocess.Popen(
        [quaid, "serve", "--http", "--port", "0"],
        env={**os.environ, **env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    server.stderr.readline()  # where it listens
    cpu_of([quaid, "query", "who wrote the first program"], 3, env=env)  # it has its model now
    return server


if __name__ == "__main__":
    main()
