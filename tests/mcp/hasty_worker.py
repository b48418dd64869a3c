"""The worker process of a server with short intervals."""

import sys

from quaid import worker
from quaid.folders.watcher import WatchPace
from quaid.storage import leases

if __name__ == "__main__":
    leases.HEARTBEAT_SECONDS, leases.HEARTBEAT_TIMEOUT = 0.3, 5.0
    pace = WatchPace(debounce=0.2, longest=1.0, look=0.2, step=0.05)
    sys.exit(worker.main(*sys.argv[1:], pace=pace))
