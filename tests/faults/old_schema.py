"""Memories of schema 5, with enough pages that importing them takes a while."""

from pathlib import Path

import apsw
from tests.faults.workspace import page_text

V5 = Path(__file__).resolve().parents[1] / "storage" / "fixtures" / "v5.sql"


def make(path: Path, pages: int = 50) -> None:
    """Create a memory of schema 5 with pages old/0, old/1 and so on, d0 and d1."""
    connection = apsw.Connection(str(path))
    connection.pragma("synchronous", "OFF")  # nobody kills us
    connection.execute(V5.read_text())
    connection.execute("BEGIN")
    for number, slug in enumerate([*(f"old/{number}" for number in range(pages)), "d0", "d1"]):
        text = f"{page_text(f'old{number}x')}\n\n[[old/{(number + 1) % pages}]]"
        connection.execute(
            "INSERT INTO pages (slug, type, title, frontmatter, compiled_truth, created_at, updated_at,"
            " truth_updated_at, timeline_updated_at) VALUES (?1, 'concept', ?1, '{}', ?2, '', '', '', '')",
            (slug, text),
        )
    connection.execute("COMMIT")
    connection.close()


def texts(path: Path) -> list[tuple[str, str]]:
    """Return slug and text of every page, whatever the schema."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        pages = connection.execute("SELECT slug, compiled_truth FROM pages ORDER BY slug").fetchall()
        return [(str(slug), str(truth)) for slug, truth in pages]
    finally:
        connection.close()
