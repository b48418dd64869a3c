"""A page whose text is not that of its chunks is refused, wherever it would be shown."""

import pytest

from quaid.errors import DamagedDatabase
from quaid.model.page import build_page
from quaid.search.text import search_pages
from quaid.storage import page_edits, pages
from quaid.storage.sqlite.connection import Database, Transaction

NOW = "2026-04-25T12:00:00Z"
LONG = "\n\n".join(f"## Part {number}\n\n{'Some words about boats and tea. ' * 60}" for number in range(9))
TIMELINE = "- **2020-01-01** — One thing.\n- **2020-02-01** — Another thing.\n"


def save(db: Database, slug: str, *, cut: bool = True) -> None:
    page = build_page(slug, {}, f"# {slug}\n\n{LONG}", TIMELINE)
    db.write(lambda tx: page_edits.save(tx, page, uuid=slug, now=NOW, expected_version=0, cut=cut))


def flip(db: Database, table: str, column: str, old: str, new: str) -> None:
    """Change a text behind everybody's back, as a flipped bit would: no trigger hears of it."""

    def work(tx: Transaction) -> None:
        triggers = tx.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            tx.execute(f"DROP TRIGGER {name}")
        tx.execute(f"UPDATE {table} SET {column} = replace({column}, ?, ?) WHERE rowid = 1", (old, new))
        for _, made_by in triggers:
            tx.execute(str(made_by))

    db.write(work)


@pytest.mark.parametrize(
    ("table", "column", "old", "new"),
    [
        ("pages", "compiled_truth", "Part 7", "Paru 7"),
        ("pages", "timeline", "Another", "Anotier"),
        ("chunks", "chunk_text", "Part 0", "Paru 0"),
    ],
)
def test_a_text_that_has_changed_by_itself_is_not_served(
    db: Database, table: str, column: str, old: str, new: str
) -> None:
    save(db, "a")
    save(db, "b")
    flip(db, table, column, old, new)
    with pytest.raises(DamagedDatabase, match="the page a and its chunks say different things"):
        pages.find(db, "a")
    with pytest.raises(DamagedDatabase):
        search_pages(db, "boats tea")
    page = pages.find(db, "b")
    assert page is not None
    assert page.slug == "b"


def test_a_page_that_is_not_cut_yet_has_no_second_copy(db: Database) -> None:
    save(db, "a", cut=False)
    flip(db, "pages", "compiled_truth", "Part 7", "Paru 7")
    page = pages.find(db, "a")
    assert page is not None
    assert "Paru 7" in page.truth
