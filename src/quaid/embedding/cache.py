"""Caches of models: one loaded model shared by threads, and optimised copies of model files that load fast.

An optimised copy is made on first use, after verifying the hash and the vectors of the original. Loading it takes 75
ms of CPU time instead of 280. It can be deleted at any time.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from quaid.embedding.registry import Embedder


class ModelCache:
    """Caches the embedder in use, for several threads. Requesting another model replaces it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._embedder: Embedder | None = None

    def get(self, name: str, open: Callable[[], Embedder]) -> Embedder:
        """Return the embedder with this name, opening it if it is not the cached one."""
        with self._lock:
            if self._embedder is None or self._embedder.name != name:
                self._embedder = open()
            return self._embedder


COPY_MODEL_FILE, COPY_WEIGHTS_FILE, COPY_STAMP_FILE = "model.onnx", "weights.bin", "stamp.json"
UNFINISHED_COPY = ".new-"
ABANDONED_SECONDS = 3_600  # seconds after which an unfinished copy is considered abandoned


def is_copy_valid(folder: str, origin: Sequence[str]) -> bool:
    """Return True if the folder has a complete copy for this origin.

    The origin is the hash of the original, the runtime version and the machine type.
    """
    try:
        with open(os.path.join(folder, COPY_STAMP_FILE), encoding="utf-8") as file:
            stamp: Any = json.load(file)
        sizes = [os.path.getsize(os.path.join(folder, name)) for name in (COPY_MODEL_FILE, COPY_WEIGHTS_FILE)]
    except (OSError, ValueError):
        return False
    return isinstance(stamp, dict) and stamp.get("sizes") == sizes and stamp.get("of") == list(origin)


def make_copy(folder: str, origin: Sequence[str], notice: str, write: Callable[[str, str], None]) -> None:
    """Create a copy in a new folder by calling `write`, add its stamp, and replace an older copy."""
    import shutil
    import tempfile

    _make_private_folder(os.path.dirname(folder))
    _remove_unfinished_copies(os.path.dirname(folder))
    new = tempfile.mkdtemp(prefix=UNFINISHED_COPY, dir=os.path.dirname(folder))
    try:
        write(os.path.join(new, COPY_MODEL_FILE), COPY_WEIGHTS_FILE)
        if os.path.isfile(notice):
            shutil.copyfile(notice, os.path.join(new, "NOTICE"))
        sizes = [os.path.getsize(os.path.join(new, name)) for name in (COPY_MODEL_FILE, COPY_WEIGHTS_FILE)]
        with open(os.path.join(new, COPY_STAMP_FILE), "w", encoding="utf-8") as file:
            json.dump({"of": list(origin), "sizes": sizes}, file)
        if os.path.isdir(folder):
            os.rename(folder, os.path.join(new, "old"))
        os.rename(new, folder)  # fails if another process was faster, whose copy is then kept
        shutil.rmtree(os.path.join(folder, "old"), ignore_errors=True)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _make_private_folder(folder: str) -> None:
    """Create a directory and its missing parents with mode 0700, as they will contain more than models."""
    if not os.path.isdir(folder):
        _make_private_folder(os.path.dirname(folder))
        os.makedirs(folder, mode=0o700, exist_ok=True)  # another process may have created it


def _remove_unfinished_copies(models: str) -> None:
    """Remove copies left unfinished by processes that were killed."""
    import shutil

    for entry in os.scandir(models):
        if entry.name.startswith(UNFINISHED_COPY) and entry.stat().st_mtime < time.time() - ABANDONED_SECONDS:
            shutil.rmtree(entry.path, ignore_errors=True)


def discard_copy(folder: str) -> None:
    """Delete a copy that cannot be loaded."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def sha256_of(path: str) -> str:
    """Return the SHA-256 hash of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
