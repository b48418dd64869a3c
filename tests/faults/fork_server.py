"""Fork workers on request, because starting Python ten thousand times would dominate the run time.

Each line of JSON on standard input, [HOME, KIND, SEED, ROUNDS, TRACED], forks one worker in a new session. It prints
"started PID" and works. For a single operation, the seed is its name. A traced worker first stops itself and waits
for SIGCONT. "exited STATUS" reports its end. A worker whose operation is refused prints "refused CODE" and the error
message; after any other exception it prints "broken" and the traceback.
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
    """Load the model once, for all workers forked from now on."""
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
            say(f"started {os.getpid()}")
            if traced:
                os.kill(os.getpid(), signal.SIGSTOP)
            work(home, kind, seed, rounds)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        say(f"exited {status}")


if __name__ == "__main__":
    main()
