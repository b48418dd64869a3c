"""Entry point of `quaid`, also as `python -m quaid`.

Tries a running server before importing anything else, so that a delegated command takes little longer than
the start of Python.
"""

import os
import sys

from quaid import server_socket


def main() -> int:
    """Run the command line of this process and return its exit status."""
    try:
        status = server_socket.delegate(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("\nquaid: stopped\n")
        return 130
    if status is not None:
        os._exit(status)  # the output is flushed, and the interpreter's cleanup would only cost time
    server_socket.is_refused = True
    from quaid.cli.main import main as run_locally  # loads the whole command line

    return run_locally()


if __name__ == "__main__":
    sys.exit(main())
