"""The process that makes missing vectors for a server, and ends with it.

A model needs more than a hundred megabytes; in here they are gone as soon as the work is done. Prints nothing. Its
standard input is a pipe that the server holds open and never writes to: when it closes, whatever ended the
server, this process ends too. What was made until then is kept.
"""

import os
import sys
from threading import Thread

from quaid import config
from quaid.brain import Brain
from quaid.errors import QuaidError
from quaid.ops import background

POLITENESS = 10  # of 19: whoever wants the processor goes first


def main(path: str) -> int:
    """Fill the memory at this path."""
    if hasattr(os, "nice"):
        os.nice(POLITENESS)
    Thread(target=_end_with_the_server, daemon=True).start()
    try:
        with Brain(config.read(path, os.environ, os.path.dirname(path))) as brain:
            background.fill(brain)
    except QuaidError:
        return 1
    return 0


def _end_with_the_server() -> None:
    while os.read(0, 1):
        pass
    os._exit(0)  # between two batches or within one: a transaction that is not finished never was


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
