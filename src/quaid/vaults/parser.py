"""The process that `ahead` starts: parses the files in a spool as it grows, and tells how far it has come.

Reads and writes the two files whose handles it is given, at places of its own, for the handles share one position
with the process that started it. Ends when that process does, or wants it to.
"""

import marshal
import os
import select
import signal
import sys

from quaid.model.page import derive_data
from quaid.vaults import index
from quaid.vaults.ahead import NUMBER, STEP, Parsed, dumped


def main(spool: int, found: int) -> None:
    # Ctrl-C reaches every process of the terminal; the one that started us decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end = place = written = 0
    waiting: list[bytes] = []
    while True:
        if place == end or select.select([0], [], [], 0)[0]:
            told = os.read(0, NUMBER)
            if len(told) < NUMBER:
                return
            end = int.from_bytes(told, "little")
        stop = min(end, place + STEP)
        while place < stop:
            size = int.from_bytes(_read(spool, NUMBER, place), "little")
            answer = _answer(_read(spool, size, place + NUMBER))
            place += NUMBER + size
            if answer is not None:
                waiting.append(len(answer).to_bytes(NUMBER, "little") + answer)
        if waiting:
            written = _write(found, b"".join(waiting), written)
            waiting = []
            os.write(1, written.to_bytes(NUMBER, "little"))


def _answer(record: bytes) -> bytes | None:
    """What a file says, unless somebody has found that out already."""
    path, _, data, known = marshal.loads(record)  # noqa: S302 (our own file)
    if known is not None:
        return None
    try:
        made, notes, _ = index.read(path, data)
        return dumped(Parsed(made, notes, derive_data(made)))
    except Exception:
        return dumped(None)  # whoever asked meets the same trouble, and can tell it


def _read(handle: int, size: int, place: int) -> bytes:
    data = os.pread(handle, size, place)
    while len(data) < size:
        more = os.pread(handle, size - len(data), place + len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _write(handle: int, data: bytes, place: int) -> int:
    while data:
        done = os.pwrite(handle, data, place)
        place += done
        data = data[done:]
    return place


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
