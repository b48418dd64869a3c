"""How far the vectors are made."""

from pathlib import Path

import apsw
import pytest

from quaid.core.page import build
from quaid.store import filling, pages, vectors
from quaid.store.db import Database

NOW = "2026-04-25T12:00:00Z"
MODEL = "small"


@pytest.fixture
def db(tmp_path: Path) -> Database:
    memory = Database.create(str(tmp_path / "memory.db"), NOW)
    paragraphs = "\n\n".join(f"## Part {number}\n\nText {number}." for number in range(50))
    made = [build(f"notes/{number}", {"title": f"Page {number}"}, paragraphs, "") for number in range(3)]

    def work(tx: apsw.Connection) -> None:
        for page in made:
            pages.save(tx, page, uuid=page.slug, now=NOW, expected_version=None)

    memory.write(work)
    memory.write(lambda tx: vectors.register(tx, MODEL, 384, NOW))
    return memory


def fill(db: Database, limit: int) -> None:
    found = [(each.content_hash, bytes(range(1, 5)) * 384) for each in vectors.missing(db, MODEL, limit)]
    db.write(lambda tx: vectors.keep(tx, MODEL, found, NOW))


@pytest.mark.parametrize("few", [0, 10_000])
def test_counting_and_looking_agree(db: Database, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "FEW", few)
    model = vectors.find(db, MODEL)
    assert model is not None
    assert filling.made(db, model) == (0, 150)
    fill(db, 60)
    assert filling.made(db, model) == (60, 150)
    fill(db, 1_000)
    assert filling.made(db, model) == (150, 150)
