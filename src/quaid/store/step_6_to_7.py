"""Schema 6 to schema 7: links know what the text names, old slugs lead on, facts are found by a folded subject.

The new shape is schema_7.sql, which stays as it was when 7 was the newest version.
"""

import apsw

from quaid.model.names import fold_name
from quaid.store.creating import shapes

REPLACED = ("links", "assertions", "contradictions")
"""Tables with other columns than before. SQLite cannot change them in place so that they look like new ones."""

# The same question was logged anew each time; now its first row counts them.
ONE_ROW_FOR_EACH_QUESTION = """
UPDATE knowledge_gaps AS first SET (times_seen, last_seen_at) = (
    SELECT sum(times_seen), max(last_seen_at) FROM knowledge_gaps
    WHERE query_hash = first.query_hash AND resolved_at IS NULL
) WHERE resolved_at IS NULL;

DELETE FROM knowledge_gaps WHERE resolved_at IS NULL AND id NOT IN (
    SELECT min(id) FROM knowledge_gaps WHERE resolved_at IS NULL GROUP BY query_hash
);
"""


def step_6_to_7(tx: apsw.Connection, _now: str) -> None:
    """Replace three tables, add what is new. Links out of texts are derived: they are made again afterwards."""
    tx.create_scalar_function("fold", lambda *given: fold_name(str(given[0])), 1, deterministic=True)
    tx.pragma("legacy_alter_table", True)  # other tables go on pointing to the name, which the new table gets
    try:
        tx.execute("DELETE FROM links WHERE source_kind = 'wiki_link'")
        tx.execute(ONE_ROW_FOR_EACH_QUESTION)
        new = shapes("schema_7.sql")
        for table in REPLACED:
            _replace(tx, table, new[table])
        there = {name for (name,) in tx.execute("SELECT name FROM sqlite_schema")}
        for name, sql in new.items():
            if name not in there:
                tx.execute(sql)
    finally:
        tx.pragma("legacy_alter_table", False)
        tx.create_scalar_function("fold", None)
    tx.execute("UPDATE config SET value = '7' WHERE key = 'version'")
    tx.execute("UPDATE quaid_config SET value = '7' WHERE key = 'schema_version'")
    tx.pragma("user_version", 7)


def _replace(tx: apsw.Connection, table: str, sql: str) -> None:
    """The same rows in a table of the new shape, and the next id as it would have been."""
    columns = ", ".join(_columns(tx, table))
    (last,) = tx.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = ?", (table,)).fetchone() or (
        None,
    )
    tx.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    tx.execute(sql)
    added, values = (", subject_key", ", fold(subject)") if table == "assertions" else ("", "")
    tx.execute(f"INSERT INTO {table} ({columns}{added}) SELECT {columns}{values} FROM old_{table}")  # noqa: S608
    tx.execute(f"DROP TABLE old_{table}")
    tx.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
    if last is not None:
        tx.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table, last))


def _columns(tx: apsw.Connection, table: str) -> list[str]:
    return [str(name) for (name,) in tx.execute("SELECT name FROM pragma_table_info(?)", (table,))]
