"""Three laptops of two people, and a hub on SQLite."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.spaces.laptops import Laptop

from quaid.hub.store import SqliteHubStore


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[SqliteHubStore]:
    store = SqliteHubStore(str(tmp_path / "hub.db"))
    yield store
    store.close()


@pytest.fixture
def laptop(tmp_path: Path, hub: SqliteHubStore) -> Iterator[Callable[[str, str], Laptop]]:
    made: list[Laptop] = []

    def make(person: str, name: str) -> Laptop:
        made.append(Laptop(tmp_path / name, hub, person, name))
        return made[-1]

    yield make
    for each in made:
        each.brain.close()
