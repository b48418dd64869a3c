"""A copy of a model that opens fast: its graph already optimised, its weights in a file of their own.

Opening the file of a package takes 280 ms of CPU, opening the copy 75: the weights are mapped, not read. The
copy is made on first use, after the hash of the original was found right and the model gave the vectors that
it should, so neither is done again; its stamp says what it was made of. It can be deleted at any time.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

MODEL, WEIGHTS, STAMP = "model.onnx", "weights.bin", "stamp.json"
UNFINISHED = ".new-"
ABANDONED = 3_600  # seconds after which a copy that is not finished never will be


def is_whole(folder: str, origin: Sequence[str]) -> bool:
    """Whether there is a complete copy of that origin: the hash of the original, the runtime, the machine."""
    try:
        with open(os.path.join(folder, STAMP), encoding="utf-8") as file:
            stamp: Any = json.load(file)
        sizes = [os.path.getsize(os.path.join(folder, name)) for name in (MODEL, WEIGHTS)]
    except (OSError, ValueError):
        return False
    return isinstance(stamp, dict) and stamp.get("sizes") == sizes and stamp.get("of") == list(origin)


def make(folder: str, origin: Sequence[str], notice: str, write: Callable[[str, str], None]) -> None:
    """Have `write` put the copy into a new folder, stamp it, and let it take the place of an older one."""
    import shutil
    import tempfile

    _make_private(os.path.dirname(folder))
    _tidy_up(os.path.dirname(folder))
    new = tempfile.mkdtemp(prefix=UNFINISHED, dir=os.path.dirname(folder))
    try:
        write(os.path.join(new, MODEL), WEIGHTS)
        if os.path.isfile(notice):
            shutil.copyfile(notice, os.path.join(new, "NOTICE"))
        sizes = [os.path.getsize(os.path.join(new, name)) for name in (MODEL, WEIGHTS)]
        with open(os.path.join(new, STAMP), "w", encoding="utf-8") as file:
            json.dump({"of": list(origin), "sizes": sizes}, file)
        if os.path.isdir(folder):
            os.rename(folder, os.path.join(new, "old"))
        os.rename(new, folder)  # another process may have been faster: then theirs stays
        shutil.rmtree(os.path.join(folder, "old"), ignore_errors=True)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _make_private(folder: str) -> None:
    """Make a folder and those above it that are missing, for their owner only: more than models will lie there."""
    if not os.path.isdir(folder):
        _make_private(os.path.dirname(folder))
        os.makedirs(folder, mode=0o700, exist_ok=True)  # another process may have been faster


def _tidy_up(models: str) -> None:
    """Remove what processes left that were ended in the middle of a copy."""
    import shutil

    for entry in os.scandir(models):
        if entry.name.startswith(UNFINISHED) and entry.stat().st_mtime < time.time() - ABANDONED:
            shutil.rmtree(entry.path, ignore_errors=True)


def discard(folder: str) -> None:
    """Forget a copy that turned out bad."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def sha256_of(path: str) -> str:
    """The hash of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
