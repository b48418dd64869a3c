"""Entry points of `quaid`, also as `python -m quaid`, and of `ai-kb`.

They first try to delegate the command to a running server, before importing anything else, so that a
delegated command takes little longer than the start of Python.
"""

import os
import sys

from quaid import server_socket


def main() -> int:
    """Run the command line of this process and return its exit status."""
    return _run("quaid", sys.argv[1:])


def ai_kb_main() -> int:
    """Run `ai-kb`, which is the same as `quaid kb`."""
    words = sys.argv[1:]
    if words in (["help", "--man"], ["--help", "--man"]):
        return _run("ai-kb", ["help", "--man"])
    if words[:1] in (["--version"], ["--help"], ["-h"], ["help"], []):
        return _run("ai-kb", ["--version"] if words[:1] == ["--version"] else ["help", "kb", *words[1:]])
    return _run("ai-kb", ["kb", *words])


def _run(program: str, words: list[str]) -> int:
    try:
        status = server_socket.delegate(words, program)
    except KeyboardInterrupt:
        sys.stderr.write(f"\n{program}: stopped\n")
        return 130
    if status is not None:
        os._exit(status)  # the output is flushed, and the cleanup of the interpreter would only take time
    from quaid.cli.main import run_process  # loads the whole command line

    return run_process(words, program)


if __name__ == "__main__":
    sys.exit(main())
