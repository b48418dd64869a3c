"""Memories of every older schema, with enough pages that bringing them forward takes a while."""

from pathlib import Path

import apsw
from tests.faults.here import FOLDER, saying

from quaid.storage.migrations import add_default_collection, read_schema

SCHEMAS = (5, 6, 7)
V5 = Path(__file__).resolve().parents[1] / "storage" / "fixtures" / "v5.sql"


def make(path: Path, version: int, pages: int = 50, root: Path | None = None) -> None:
    """A memory of a schema with pages old/0, old/1 and so on, d0 and d1, and perhaps a folder."""
    connection = apsw.Connection(str(path))
    connection.pragma("synchronous", "OFF")  # nobody kills us
    connection.execute(V5.read_text() if version == 5 else read_schema(f"schema_{version}.sql"))
    connection.execute("BEGIN")
    if version > 5:
        add_default_collection(connection, "2026-04-25T12:00:00Z")
        if root:
            connection.execute(
                "INSERT INTO collections (id, name, kind, root_path, created_at, updated_at)"
                " VALUES (2, ?, 'markdown', ?, '', '')",
                (FOLDER, str(root)),
            )
    names = [f"old/{number}" for number in range(pages)] + ["d0", "d1"]
    own = {"uuid": "u{}", "collection_id": "1"} if version > 5 else {}
    for number, slug in enumerate(names):
        text = f"{saying(f'old{number}x')}\n\n[[old/{(number + 1) % pages}]]"
        values = {
            **{name: value.format(number) for name, value in own.items()},
            **dict.fromkeys(("created_at", "updated_at", "truth_updated_at", "timeline_updated_at"), ""),
            "slug": slug,
            "type": "concept",
            "title": slug,
            "frontmatter": "{}",
            "compiled_truth": text,
        }
        marks = ", ".join("?" * len(values))
        connection.execute(
            f"INSERT INTO pages ({', '.join(values)}) VALUES ({marks})",
            tuple(values.values()),
        )
    connection.execute("COMMIT")
    connection.close()


def texts(path: Path) -> list[tuple[str, str]]:
    """What every page says, whatever the schema."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found = connection.execute("SELECT slug, compiled_truth FROM pages ORDER BY slug").fetchall()
        return [(str(slug), str(truth)) for slug, truth in found]
    finally:
        connection.close()
