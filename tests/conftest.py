"""What most tests need: a brain with a fresh memory, a fixed clock and countable randomness."""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings as hypothesis

from quaid.app import Brain
from quaid.config import Settings

# Examples differ in cost a thousandfold and the machine is shared: a look at the clock would fail honest tests. And
# the same commit has the same examples wherever it is tested; QUAID_LUCK=1 goes and looks for others.
hypothesis.register_profile(
    "quaid",
    deadline=None,
    derandomize=os.environ.get("QUAID_LUCK") != "1",
    suppress_health_check=[HealthCheck.too_slow],
)
hypothesis.load_profile("quaid")

NOON = 1_777_118_400.0  # 2026-04-25T12:00:00Z


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        db_path=str(tmp_path / "memory.db"),
        home=str(tmp_path / "home"),
        cwd=str(tmp_path),
        environ={"QUAID_BACKGROUND_EMBEDDING": "off"},  # a question loads no model by itself
    )


@pytest.fixture
def brain(settings: Settings) -> Iterator[Brain]:
    """A brain whose clock moves one second with every look at it."""
    ticks = itertools.count()
    with Brain(settings, clock=lambda: NOON + next(ticks), random=os.urandom, offset=lambda _: 0) as brain:
        brain.create(settings.db_path)
        yield brain
