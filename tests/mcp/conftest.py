"""A small memory, and servers on it that are gone when the test is."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.mcp.pipes import Pipes

from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch

ALICE = """\
---
title: Alice Berg
type: person
tags: [founder]
---
> Founder of River, lives in Oslo.

She prefers short calls.

---

- **2026-04-25** | call — Moved to Oslo.
"""


@pytest.fixture
def brain(brain: Brain) -> Brain:
    """A memory with two pages, open."""
    fill(brain)
    return brain


@pytest.fixture
def db(settings: Settings) -> str:
    """The same memory, closed: the path of it."""
    with Brain(settings) as brain:
        brain.create(settings.db_path)
        fill(brain)
    return settings.db_path


@pytest.fixture
def start() -> Iterator[Callable[..., Pipes]]:
    """Starts a server for a memory."""
    started: list[Pipes] = []

    def begin(db: str, *more: str, **how: Any) -> Pipes:
        started.append(Pipes(db, *more, **how))
        return started[-1]

    yield begin
    for item in started:
        item.kill()


def fill(brain: Brain) -> None:
    put(brain, "people/alice", ALICE)
    put(brain, "companies/river", "# River\n\nMakes water meters.\n")


def put(brain: Brain, slug: str, content: str) -> None:
    dispatch.call(brain, dispatch.find_tool("memory_put"), {"slug": slug, "content": content}, "write")
