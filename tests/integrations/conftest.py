"""A memory of an agent. The frameworks are installed by .ci/integrations; without one, its tests are skipped."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import quaid


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without a memory, as the current folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("QUAID_BACKGROUND_EMBEDDING", "off")
    monkeypatch.delenv("QUAID_DB", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def memory(home: Path) -> Iterator[quaid.Memory]:
    with quaid.open(home / "memory.db", agent="planner") as memory:
        yield memory
