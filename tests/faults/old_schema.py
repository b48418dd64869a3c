"""Memories of schema 5 and 8 to 11, with enough pages that importing them takes a while."""

from pathlib import Path

import apsw
from tests.faults.workspace import open_brain, page_text, run

V5 = Path(__file__).resolve().parents[1] / "storage" / "fixtures" / "v5.sql"


def make(path: Path, pages: int = 50, version: int = 5) -> None:
    """Create a memory of schema 5 or 8 to 11 with pages old/0, old/1 and so on, d0 and d1."""
    if version in (8, 9, 10, 11):
        _make_previous(path, pages, version)
        return
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


def _make_previous(path: Path, pages: int, version: int) -> None:
    """Create a memory with the current program, and take away what schemas 9 to 12 added."""
    with open_brain(path.parent) as brain:
        brain.create(str(path))
        for number, slug in enumerate([*(f"old/{number}" for number in range(pages)), "d0", "d1"]):
            run(brain, "put", slug=slug, content=page_text(f"old{number}x"))
    connection = apsw.Connection(str(path))
    connection.execute("DROP TABLE activity_pages; DROP TABLE activity; DROP TABLE duplicate_pairs")
    connection.execute("DROP TABLE session_items")
    connection.execute(
        "DROP TABLE page_trust; ALTER TABLE assertions DROP COLUMN trust; ALTER TABLE links DROP COLUMN trust;"
        "ALTER TABLE page_authors DROP COLUMN trust"
    )
    connection.execute("DROP TABLE golden_pages; DROP TABLE golden_questions; DROP TABLE opened_results")
    connection.execute(
        "DROP TRIGGER pages_shown; DROP TRIGGER pages_hidden; DROP TABLE expired; DROP TABLE expirations;"
        "DROP INDEX pages_by_age; DROP TABLE fact_expirations;"
        "CREATE TRIGGER pages_hidden AFTER UPDATE OF quarantined_at ON pages WHEN new.quarantined_at IS NOT NULL"
        " BEGIN DELETE FROM chunks WHERE page_id = old.id; END"
    )
    definition = str(connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'knowledge_gaps'").get)
    lines = [line for line in definition.split("\n") if "sealed_query" not in line and "scope" not in line]
    connection.execute("DROP TABLE knowledge_gaps")
    connection.execute("\n".join(lines))
    connection.execute(
        "CREATE UNIQUE INDEX knowledge_gaps_open ON knowledge_gaps (query_hash) WHERE resolved_at IS NULL"
    )
    connection.execute(
        "CREATE INDEX knowledge_gaps_told ON knowledge_gaps (times_seen)"
        " WHERE query_text IS NOT NULL AND resolved_at IS NULL"
    )
    for column in ("kind", "evidence", "scope"):
        connection.execute(f"ALTER TABLE proposals DROP COLUMN {column}")
    definition = str(connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'proposals'").get)
    lines = [line for line in definition.split("\n") if "fingerprint" not in line]
    connection.execute("DROP TABLE proposals")
    connection.execute("\n".join(lines))
    connection.execute("CREATE INDEX proposals_open ON proposals (id) WHERE decided_at IS NULL")
    if version < 11:
        _drop_spaces(connection)
    if version < 10:
        connection.execute("DROP TABLE chunk_entries")
    if version == 8:
        connection.execute(
            "DROP TABLE page_authors; DROP TABLE proposals; ALTER TABLE assertions DROP COLUMN author"
        )
    connection.execute("UPDATE config SET value = ? WHERE key = 'version'", (str(version),))
    connection.execute("UPDATE quaid_config SET value = ? WHERE key = 'schema_version'", (str(version),))
    connection.pragma("user_version", version)
    connection.close()


def _drop_spaces(connection: apsw.Connection) -> None:
    connection.execute(
        "DROP TRIGGER pages_shared_ai; DROP TRIGGER pages_shared_au; DROP TRIGGER pages_shared_ad;"
        "DROP TABLE space_outbox; DROP TABLE space_pages; DROP TABLE spaces;"
        "ALTER TABLE page_authors DROP COLUMN agent; ALTER TABLE page_authors DROP COLUMN device;"
        "ALTER TABLE page_authors DROP COLUMN base_version"
    )


def texts(path: Path) -> list[tuple[str, str]]:
    """Return slug and text of every page, whatever the schema."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        pages = connection.execute("SELECT slug, compiled_truth FROM pages ORDER BY slug").fetchall()
        return [(str(slug), str(truth)) for slug, truth in pages]
    finally:
        connection.close()
