"""The process that makes missing vectors for a server, and ends with it.

A model needs more than a hundred megabytes; in here they are gone as soon as the work is done. Prints nothing. What
was made until it ends is kept.
"""

import os
import sys

from quaid import config
from quaid.brain import Brain
from quaid.errors import QuaidError
from quaid.operations import background
from quaid.surfaces.mcp import children

POLITENESS = 10  # of 19: whoever wants the processor goes first


def main(path: str) -> int:
    """Fill the memory at this path."""
    if hasattr(os, "nice"):
        os.nice(POLITENESS)
    # Between two batches or within one: a transaction that is not finished never was.
    children.when_the_server_is_gone(lambda: os._exit(0))
    try:
        with Brain(config.read(path, os.environ, os.path.dirname(path))) as brain:
            background.embed_missing(brain)
    except QuaidError:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
