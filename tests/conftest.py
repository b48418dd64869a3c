"""What most tests need: a brain with a fresh memory and a clock that moves one second each time it is read."""

import gc
import itertools
import os
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings as hypothesis
from tests import commands

from quaid.app import Brain, ModelCache
from quaid.config import Settings
from quaid.embedding.registry import DEFAULT_MODEL, Embedder
from quaid.storage.sqlite.connection import Database

# Examples differ in cost a thousandfold and the machine is shared: a look at the clock would fail honest tests. And
# the same commit has the same examples wherever it is tested; QUAID_LUCK=1 goes and looks for others.
hypothesis.register_profile(
    "quaid",
    deadline=None,
    derandomize=os.environ.get("QUAID_LUCK") != "1",
    suppress_health_check=[HealthCheck.too_slow],
)
hypothesis.load_profile("quaid")
os.environ.update(commands.SHARED_MODELS)

NOON = 1_777_118_400.0  # 2026-04-25T12:00:00Z


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        db_path=str(tmp_path / "memory.db"),
        home=str(tmp_path / "home"),
        cwd=str(tmp_path),
        environ={"QUAID_BACKGROUND_EMBEDDING": "off", **commands.SHARED_MODELS},  # no question loads a model
    )


class DefaultModelCache(ModelCache):
    """Loads the default model once for all tests. Other models are opened by each test that uses them."""

    def get(self, name: str, open: Callable[[], Embedder]) -> Embedder:
        return super().get(name, open) if name == DEFAULT_MODEL else open()

    def get_reranker(self, description: str, open: Callable[[], Any]) -> Any:
        return open()


@pytest.fixture(scope="session")
def models() -> ModelCache:
    return DefaultModelCache()


@pytest.fixture(scope="session")
def empty_memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new memory of that noon. A copy of it costs half as much as another new one."""
    path = tmp_path_factory.mktemp("empty") / "memory.db"
    Database.create(str(path), "2026-04-25T12:00:00Z", "019dc482-ce00-7000-8000-000000000000").close()
    return path


@pytest.fixture
def brain(settings: Settings, models: ModelCache, empty_memory: Path) -> Iterator[Brain]:
    """A brain whose clock moves one second with every look at it."""
    ticks = itertools.count()
    with Brain(
        settings, clock=lambda: NOON + next(ticks), random=os.urandom, offset=lambda _: 0, models=models
    ) as brain:
        shutil.copy(empty_memory, settings.db_path)
        brain.new_uuid()  # takes a second, as the id of a new memory does
        assert brain.db
        yield brain


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector away from what lives as long as the run; it would take a third of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    commands.stop()
