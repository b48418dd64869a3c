"""What most tests need: a brain with a fresh memory and a clock that moves one second each time it is read."""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings as hypothesis
from tests import commands

from quaid.app import Brain, ModelCache
from quaid.config import Settings
from quaid.embedding.registry import DEFAULT_MODEL, Embedder

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


@pytest.fixture
def brain(settings: Settings, models: ModelCache) -> Iterator[Brain]:
    """A brain whose clock moves one second with every look at it."""
    ticks = itertools.count()
    with Brain(
        settings, clock=lambda: NOON + next(ticks), random=os.urandom, offset=lambda _: 0, models=models
    ) as brain:
        brain.create(settings.db_path)
        yield brain


def pytest_unconfigure() -> None:
    commands.stop()
