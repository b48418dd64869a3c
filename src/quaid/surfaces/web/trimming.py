"""What a process that serves for days no longer uses, given back to the system.

What is freed stays with the allocator, in pieces, and that grows with every busy minute. So once a minute garbage is
collected and what is free goes back. Knows nothing of what is served.
"""

import ctypes
import gc
import time
from collections.abc import Callable
from threading import Thread

SECONDS = 60.0


def start() -> None:
    """From now on, as long as the process lives. What is there by now, code above all, is not looked at again."""
    gc.collect()
    gc.freeze()
    Thread(target=_trim, args=(_give_back(),), name="trimming", daemon=True).start()


def _trim(give_back: Callable[[int], int]) -> None:
    while True:
        time.sleep(SECONDS)
        gc.collect()
        give_back(0)


def _give_back() -> Callable[[int], int]:
    """glibc's malloc_trim; elsewhere nothing is done."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return lambda _pad: 0
