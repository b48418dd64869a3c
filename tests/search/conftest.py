"""A memory that fills with pages."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from quaid.model.page import build_page
from quaid.storage import page_edits
from quaid.storage.sqlite.connection import Database

NOW = "2026-04-25T12:00:00Z"
Put = Callable[..., int]


@pytest.fixture
def db(tmp_path: Path, empty_memory: Path) -> Iterator[Database]:
    path = str(tmp_path / "memory.db")
    shutil.copy(empty_memory, path)
    with Database.open(path, NOW) as database:
        yield database


@pytest.fixture
def put(db: Database) -> Put:
    """Save a page; its title is its slug unless it is given."""

    def save(slug: str, truth: str = "", timeline: str = "", **front: Any) -> int:
        page = build_page(slug, {"title": slug, "type": "concept", **front}, truth, timeline)
        saved = db.write(
            lambda tx: page_edits.save(tx, page, uuid=f"id of {slug}", now=NOW, expected_version=None)
        )
        return saved.id

    return save
