"""Settings, through the gate."""

from typing import Any

import pytest

from quaid.brain import Brain
from quaid.core import chunk
from quaid.errors import InvalidArgument, NotFound
from quaid.ops import gate
from quaid.ops.upkeep import SETTINGS


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return gate.call(brain, gate.command(command), arguments, "owner")


def test_every_way_of_cutting_can_be_chosen() -> None:
    assert SETTINGS["chunk_strategy"] == chunk.STRATEGIES


def test_another_way_of_cutting_cuts_the_pages_anew(brain: Brain) -> None:
    run(brain, "put", slug="a", content="# A\n\nOne.\n\nTwo.\n\nThree.\n")
    before = brain.db.one("SELECT count(*) FROM chunks")
    run(brain, "config set", key="chunk_strategy", value="paragraph")
    after = brain.db.one("SELECT count(*) FROM chunks")
    assert before is not None
    assert after is not None
    assert after[0] > before[0]
    assert run(brain, "validate").violations == ()


def test_a_setting_that_is_ours_cannot_be_set(brain: Brain) -> None:
    with pytest.raises(InvalidArgument, match="kept by Quaid"):
        run(brain, "config set", key="version", value="9")
    with pytest.raises(NotFound, match="default_token_budget"):
        run(brain, "config get", key="default_token_budgt")
