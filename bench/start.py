"""Cold start: CPU time of whole commands as fresh processes, against `python -c "import apsw"`."""

import os
import subprocess
import sys
import tempfile

from bench.table import cpu_of, show, verdict

RUNS = 21
LIMIT = 3.0
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("--help",),
    ("get", "people/ada"),
    ("search", "first", "program"),
    ("list",),
    ("put", "people/ada", "--timeline-append", "- **2026-04-25** — Seen."),
    ("stats",),
)


def main() -> None:
    runs = 5 if "--quick" in sys.argv else RUNS
    quaid = os.path.join(os.path.dirname(sys.executable), "quaid")
    if not os.path.exists(quaid):
        raise SystemExit("bench.start needs the quaid command beside its Python: run it with `make bench`")
    with tempfile.TemporaryDirectory() as folder:
        env = {"QUAID_DB": os.path.join(folder, "memory.db"), "HOME": folder}
        subprocess.run([quaid, "init"], env={**os.environ, **env}, check=True, stdout=subprocess.DEVNULL)
        cpu_of([quaid, "put", "people/ada"], 1, text="# Ada\n\nWrote the first program.", env=env)
        # All take turns, so that a noisy minute of the machine hits each of them.
        bare: list[float] = []
        times: dict[tuple[str, ...], list[float]] = {command: [] for command in COMMANDS}
        for _ in range(runs):
            bare += cpu_of([sys.executable, "-c", "import apsw"], 1)
            for command in COMMANDS:
                times[command] += cpu_of([quaid, *command], 1, env=env)
    yardstick = sorted(bare)[runs // 2]
    rows = [("python -c 'import apsw'", f"{yardstick * 1000:.1f}", "1.0", "")]
    for command, measured in times.items():
        middle = sorted(measured)[runs // 2]
        asked = command[0] in ("get", "search")
        rows.append(
            (
                "quaid " + " ".join(command[:1]),
                f"{middle * 1000:.1f}",
                f"{middle / yardstick:.2f}",
                verdict(middle / yardstick, LIMIT) if asked else "",
            )
        )
    show("Cold start", rows, ("command", "CPU ms (median)", "ratio", "target"))


if __name__ == "__main__":
    main()
