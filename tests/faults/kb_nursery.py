"""Writers of a knowledge base who are born to be killed: `kb_nursery.py STORE HOME`.

For each line "SEED" on standard input one is forked, with a session of its own; it says "born PID" and remembers one
thing after the other, with a line "TITLE" for each that was acknowledged to it. Starting Python a thousand times
would take longer than all the rest.
"""

import os
import signal
import sys

from quaid.brain import Brain
from quaid.config import Settings
from quaid.kb import changing, remembering  # noqa: F401 (loaded once, for all)
from quaid.ops import gate


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def remember(store: str, home: str, seed: str) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": home, "AI_KB_DIR": store}
    settings = Settings(db_path=f"{home}/memory.db", home=home, cwd=home, environ=environ)
    with Brain(settings) as brain:
        for number in range(10_000):
            title = f"Thing {seed} {number}"
            said = {"text": f"All of {title}. " * 40, "title": title, "summary": f"What {title} is"}
            gate.call(brain, gate.command("kb remember"), {**said, "force": True}, "owner")
            say(title)


def main() -> None:
    _, store, home = sys.argv
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead need no burial
    for line in sys.stdin:
        if os.fork():
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        say(f"born {os.getpid()}")
        try:
            remember(store, home, line.strip())
        finally:
            os._exit(1)


if __name__ == "__main__":
    main()
