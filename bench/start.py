"""Cold start: CPU time of whole commands as fresh processes, against `python -c "import apsw"`."""

import os
import subprocess
import sys
import tempfile

from bench.table import cpu_of, show, verdict

RUNS = 21
LIMIT = 3.0
COMMANDS = (
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
        # The yardstick is measured before and after, so that a noisy minute is seen.
        bare = cpu_of([sys.executable, "-c", "import apsw"], runs)
        times = [(command, cpu_of([quaid, *command], runs, env=env)) for command in COMMANDS]
        bare = sorted(bare + cpu_of([sys.executable, "-c", "import apsw"], runs))
    yardstick = bare[len(bare) // 2]
    rows = [("python -c 'import apsw'", f"{yardstick * 1000:.1f}", "1.0", "")]
    for command, measured in times:
        middle = measured[len(measured) // 2]
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
