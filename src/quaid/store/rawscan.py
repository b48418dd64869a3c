"""Looking for bytes in files, whatever the files are.

Runs as a program of its own: opening and closing a database in a process that uses it through SQLite would drop
the locks which that process holds (see opening.py). So it imports nothing of ours but what tells of trouble, and
that only where it is called from.

As a program it reads JSON from standard input, {"files": [...], "pieces": [...]}, and prints which pieces are in
which file, as [[file, piece], ...].
"""

import json
import os
import sys

AT_ONCE = 16 * 1024 * 1024


def scan(files: list[str], pieces: list[str]) -> list[tuple[str, str]]:
    """Which of these texts are in which of these files, byte by byte. A file that is not there holds none."""
    wanted = [(piece, piece.encode("utf-8", "surrogatepass")) for piece in pieces]
    overlap = max((len(raw) for _, raw in wanted), default=1) - 1
    found: dict[tuple[str, str], None] = {}
    for path in files:
        try:
            file = open(path, "rb")  # noqa: SIM115
        except FileNotFoundError:
            continue
        with file:
            rest = b""
            while block := file.read(AT_ONCE):
                data = rest + block
                for piece, raw in wanted:
                    if (path, piece) not in found and raw in data:
                        found[path, piece] = None
                rest = data[len(data) - overlap :] if overlap else b""
    return list(found)


def scan_apart(files: list[str], pieces: list[str]) -> list[tuple[str, str]]:
    """The same, in another process."""
    import subprocess

    from quaid.errors import FileTrouble

    done = subprocess.run(
        [sys.executable, "-I", "-S", os.path.abspath(__file__)],
        input=json.dumps({"files": files, "pieces": pieces}).encode("utf-8", "surrogatepass"),
        capture_output=True,
    )
    if done.returncode:
        raise FileTrouble(path=files[0], problem="could not be read to the end to prove that nothing is left")
    return [(path, piece) for path, piece in json.loads(done.stdout)]


if __name__ == "__main__":
    _given = json.loads(sys.stdin.buffer.read())
    sys.stdout.write(json.dumps(scan(_given["files"], _given["pieces"])))
