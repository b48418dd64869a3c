"""Clients who are born to be killed: starting Python ten thousand times would take longer than all the rest.

For each line of JSON on standard input, [HOME, KIND, SEED, ROUNDS, TRACED], one worker is forked, in a session of its
own; it says "born PID" and does its work. Of a single operation, the seed is the name. Whoever is to be traced stops
itself before, until it is told to go on. Its end is told as "gone STATUS". A worker that is refused says
"refused CODE" with the words that a user would see, and one that fails in a way that no user should see says "broken"
with the trace.
"""

import gc
import json
import os
import signal
import sys
import traceback
from pathlib import Path

from tests.faults import operations
from tests.faults.worker import Worker, say

from quaid.embedding import registry as embedders
from quaid.embedding.registry import EmbedderEnvironment, ModelCache
from quaid.errors import QuaidError
from quaid.folders import page_writer, sync  # noqa: F401
from quaid.kb import edits, transaction  # noqa: F401 (loaded once, for all)
from quaid.operations.registry import all_operations
from quaid.storage.migrations import migrate  # noqa: F401

MODELS = ModelCache()


def load_model(home: str) -> None:
    """One model in memory, for all that are born from now on."""
    here = EmbedderEnvironment(str(Path(home) / "home" / "models"), {})
    MODELS.get(
        embedders.DEFAULT_MODEL, lambda: embedders.get_embedder(embedders.DEFAULT_MODEL, {}, here)
    ).embed_query("Awake?")


def work(home: str, kind: str, seed: str, rounds: int) -> None:
    try:
        if kind == operations.ONCE:
            operations.do(Path(home), seed)
        else:
            worker = Worker(Path(home), seed, rounds, MODELS)
            getattr(worker, kind)()
            worker.brain.close()
    except QuaidError as refusal:
        say(f"refused {refusal.code} {str(refusal)!r}")
    except BaseException:
        say(f"broken {json.dumps(traceback.format_exc())}")


def main() -> None:
    all_operations()
    gc.freeze()
    for line in sys.stdin:
        home, kind, seed, rounds, traced = json.loads(line)
        if kind == "embed":
            load_model(home)
        child = os.fork()
        if not child:
            os.setsid()
            say(f"born {os.getpid()}")
            if traced:
                os.kill(os.getpid(), signal.SIGSTOP)
            work(home, kind, seed, rounds)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        say(f"gone {status}")


if __name__ == "__main__":
    main()
