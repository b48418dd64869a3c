"""The process that watches for a server, in a hurry: what takes it seconds takes this one moments."""

import sys

from quaid.folders.watcher import WatchPace
from quaid.mcp import watcher
from quaid.operations.background import Heartbeat

if __name__ == "__main__":
    pace = WatchPace(debounce=0.2, longest=1.0, look=0.2, step=0.05)
    sys.exit(watcher.main(sys.argv[1], rhythm=Heartbeat(beat=0.3, stale=5.0), pace=pace))
