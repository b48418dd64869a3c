"""An older memory is brought forward whole, or stays as it was."""

import hashlib
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

import apsw
import pytest
from tests import commands
from tests.faults import old_schema

from quaid.errors import DiskFull, MigrationFailed
from quaid.model.page import ALL_BY_PERSON, DERIVED, IMPORTED, PERSON, WEB, LineTrust
from quaid.model.slug import fold_name
from quaid.storage import SCHEMA_VERSION, checks, collections, migrations, pages, trust
from quaid.storage.history import Imports
from quaid.storage.migrations import uuid_of_v5_page
from quaid.storage.sqlite.connection import Database, Transaction

NOW = "2026-06-01T00:00:00Z"


def shape(db: Database) -> list[tuple[object, ...]]:
    return db.rows(
        "SELECT type, name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'"
        " AND name NOT GLOB 'page_fts*_*' ORDER BY type, name"
    )


def rows(path: str, sql: str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_a_migrated_memory_has_the_shape_of_a_new_one(v5: str, tmp_path: Path) -> None:
    with Database.open(v5, NOW) as old, Database.create(str(tmp_path / "new.db"), NOW) as new:
        assert shape(old) == shape(new)
        assert old.connection.pragma("user_version") == SCHEMA_VERSION
        assert collections.get_setting(old, "version") == str(SCHEMA_VERSION)
        assert old.connection.pragma("foreign_keys") == 1
        assert old.connection.pragma("journal_mode") == "wal"


def test_a_migrated_memory_has_nothing_to_complain_of(v5: str) -> None:
    with Database.open(v5, NOW) as db:
        assert checks.validate(db) == []


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        (
            "pages",
            "id, slug, type, title, summary, compiled_truth, wing, room, version, created_at, updated_at",
        ),
        ("links", "id, from_page_id, to_page_id, relationship, context, valid_from, valid_until, created_at"),
        ("assertions", "id, page_id, subject, predicate, object, valid_from, valid_until, supersedes_id"),
        ("assertions", "coalesce(confidence, 1.0), asserted_by, source_ref, evidence_text, created_at"),
        ("raw_data", "page_id, source, data, fetched_at"),
        ("raw_imports", "id, page_id, import_id, is_active, raw_bytes, file_path, created_at"),
        ("contradictions", "id, page_id, other_page_id, type, description, detected_at, resolved_at"),
        ("knowledge_gaps", "id, query_hash, query_text, approved_by, approved_at, detected_at"),
        ("embedding_models", "name, dimensions, vec_table, active, created_at"),
    ],
)
def test_every_kept_row_is_carried_over(v5: str, table: str, columns: str) -> None:
    sql = f"SELECT {columns} FROM {table} ORDER BY 1, 2"
    before = rows(v5, sql)
    with Database.open(v5, NOW) as db:
        assert db.rows(sql) == before != []


def test_former_separate_tags_and_entries_are_in_the_page(v5: str) -> None:
    with Database.open(v5, NOW) as db:
        ada, babbage = pages.require(db, "people/ada"), pages.require(db, "people/babbage")
        assert ada.frontmatter == {"title": "Ada Lovelace", "type": "person", "tags": ["math", "history"]}
        assert ada.tags == ("math", "history")
        assert babbage.frontmatter == {"tag": ["math", "engines"]}
        assert [
            (entry.date, entry.source, entry.summary, entry.detail)
            for entry in pages.timeline_entries(db, ada.id)
        ] == [
            ("1852-11-27", "register", "Died in London.", "Aged 36."),
            ("1843-09-01", "journal", "Notes published.", ""),
        ]
        engine = pages.require(db, "projects/engine")
        assert engine.frontmatter == {"x-unknown": {"a": [1, None]}, "tags": ["machines"]}
        assert [entry.summary for entry in pages.timeline_entries(db, engine.id)] == ["First description."]


def test_words_are_found_after_a_migration(v5: str) -> None:
    with Database.open(v5, NOW) as db:
        assert db.rows("SELECT rowid FROM page_fts WHERE page_fts MATCH 'weave'") == [(9,)]
        assert db.rows("SELECT id FROM page_fts_unspaced_docsize") == [(4,)]


def test_the_bytes_of_imports_stay_and_know_their_page(v5: str) -> None:
    with Database.open(v5, NOW) as db:
        known = Imports(db).files()
        assert known["people/ada.md"].content_hash == hashlib.sha256(b"# Ada\n").hexdigest()
        assert known["people/ada.md"].page_version_at_import == 3  # nobody changed it since
        assert known["projects/engine.md"].page_version_at_import is None  # somebody did
        assert dict(Imports(db).contents("first"))["people/ada.md"] == b"# Ada"
        assert {batch.import_id for batch in Imports(db).all()} == {"first", "second", "stray"}
        assert pages.read_raw_data(db, 1)[0].data == {"born": 1815, "names": ["Augusta", "Ada"]}


def test_settings_of_the_user_stay(v5: str) -> None:
    with Database.open(v5, NOW) as db:
        assert collections.list_settings(db) == [
            ("chunk_strategy", "paragraph"),
            ("default_token_budget", "4000"),
            ("embedding_dimensions", "384"),
            ("embedding_model", "bge-small-en-v1.5"),
            ("original_index", "# Index"),
            ("search_merge_strategy", "set-union"),
            ("version", str(SCHEMA_VERSION)),
        ]


def test_a_question_without_a_name_under_its_permission_is_internal_again(v5: str) -> None:
    with Database.open(v5, NOW) as db:
        rows = db.rows("SELECT query_hash, sensitivity FROM knowledge_gaps ORDER BY query_hash")
        assert rows == [("aa", "internal"), ("bb", "internal"), ("cc", "external")]


def test_every_copy_of_a_memory_gets_the_same_identities(v5: str) -> None:
    with Database.open(v5, NOW) as db:
        ada = pages.require(db, "people/ada")
        assert ada.uuid == uuid_of_v5_page("people/ada", "2026-01-02T03:04:05Z")
        assert ada.uuid.startswith("019b7ca9-8c88-7")  # the milliseconds of created_at, then version 7
        assert db.one("SELECT count(DISTINCT uuid) FROM pages") == (4,)


def test_the_backup_is_the_old_memory_and_private(v5: str) -> None:
    before = rows(v5, "SELECT * FROM pages")
    Database.open(v5, NOW).close()
    backup = v5 + ".backup-v5"
    assert stat.S_IMODE(os.stat(backup).st_mode) == 0o600
    assert rows(backup, "SELECT * FROM pages") == before
    assert rows(backup, "PRAGMA user_version") == [(5,)]
    assert rows(backup, "PRAGMA application_id") == [(0x51414944,)]


def test_a_backup_that_is_there_is_never_overwritten(v5: str, tmp_path: Path) -> None:
    (tmp_path / "memory.db.backup-v5").write_text("precious")
    (tmp_path / "memory.db.backup-v5-2").write_text("precious too")
    Database.open(v5, NOW).close()
    assert (tmp_path / "memory.db.backup-v5").read_text() == "precious"
    assert rows(v5 + ".backup-v5-3", "PRAGMA user_version") == [(5,)]


def test_the_backup_can_be_brought_forward_again(v5: str) -> None:
    Database.open(v5, NOW).close()
    with Database.open(v5 + ".backup-v5", NOW) as db:
        assert checks.validate(db) == []


def test_opening_again_does_nothing_more(v5: str, tmp_path: Path) -> None:
    Database.open(v5, NOW).close()
    Database.open(v5, NOW).close()
    assert sorted(os.listdir(tmp_path)) == ["memory.db", "memory.db-lock", "memory.db.backup-v5"]


@pytest.mark.parametrize("failure", [ValueError("broken"), apsw.ConstraintError("broken")])
def test_an_import_that_fails_changes_nothing(
    v5: str, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    whole = migrations.import_v5

    def failing_import(tx: Transaction, now: str) -> None:
        whole(tx, now)
        raise failure

    monkeypatch.setattr(migrations, "import_v5", failing_import)
    before = rows(v5, "SELECT type, name, sql FROM sqlite_schema"), rows(v5, "SELECT * FROM pages")
    with pytest.raises(MigrationFailed, match="broken") as failed:
        Database.open(v5, NOW)
    assert failed.value.facts["backup"] == v5 + ".backup-v5"
    assert (rows(v5, "SELECT type, name, sql FROM sqlite_schema"), rows(v5, "SELECT * FROM pages")) == before
    assert rows(v5, "PRAGMA user_version") == [(5,)]
    monkeypatch.undo()
    Database.open(v5, NOW).close()


def test_rows_that_point_nowhere_stop_a_migration(v5: str) -> None:
    connection = apsw.Connection(v5)
    connection.execute("UPDATE links SET to_page_id = 77 WHERE id = 5")
    connection.close()
    with pytest.raises(MigrationFailed, match="row 5 of links points to a row of pages"):
        Database.open(v5, NOW)
    assert rows(v5, "PRAGMA user_version") == [(5,)]


def test_migration_stops_if_the_disk_has_no_space_for_the_backup(
    v5: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_room(path: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("quaid.storage.files.sync_file", no_room)
    with pytest.raises(DiskFull):
        Database.open(v5, NOW)
    assert not os.path.exists(v5 + ".backup-v5")
    assert rows(v5, "PRAGMA user_version") == [(5,)]


def test_of_many_processes_that_open_it_at_once_one_migrates(
    v5: str, tmp_path: Path, start: Callable[..., "Popen[str]"]
) -> None:
    script = """
        import sys
        from quaid.storage.sqlite.connection import Database, Transaction
        sys.stdin.readline()
        with Database.open(sys.argv[1], "2026-06-01T00:00:00Z") as db:
            print(db.one("SELECT count(*) FROM pages WHERE collection_id = 1"))
        """
    processes = [start(script, v5) for _ in range(4)]
    results = []
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        results.append(process.communicate(timeout=60))
    assert results == [("(4,)\n", "")] * 4
    assert [name for name in os.listdir(tmp_path) if "backup" in name] == ["memory.db.backup-v5"]


@pytest.mark.parametrize("moment", ["0.000", "0.004", "0.008", "0.012", "0.016", "0.020", "0.024"])
def test_a_migration_that_is_killed_can_be_done_again(
    v5: str, moment: str, start: Callable[..., "Popen[str]"]
) -> None:
    process = start(
        """
        import os, signal, sys, threading, time
        from quaid.storage import migrations
        from quaid.storage.sqlite.connection import Database, Transaction
        def kill():
            time.sleep(float(sys.argv[2]))
            os.kill(os.getpid(), signal.SIGKILL)
        threading.Thread(target=kill).start()
        Database.open(sys.argv[1], "2026-06-01T00:00:00Z")
        time.sleep(10)
        """,
        v5,
        moment,
    )
    process.wait(timeout=60)
    with Database.open(v5, NOW) as db:
        assert checks.validate(db) == []
        assert db.one("SELECT count(*) FROM pages") == (4,)


def test_facts_are_found_by_their_folded_subject(v5: str) -> None:
    with Database.open(v5, NOW) as db:
        subjects = db.rows("SELECT subject, subject_key FROM assertions")
        assert subjects
        assert all(key == fold_name(str(subject)) for subject, key in subjects)


def test_a_repeated_question_becomes_one_open_gap(v5: str) -> None:
    connection = apsw.Connection(v5)
    connection.execute(
        "DELETE FROM knowledge_gaps;"
        "INSERT INTO knowledge_gaps (query_hash, detected_at, resolved_at) VALUES"
        " ('a', '1', NULL), ('a', '4', NULL), ('b', '3', NULL), ('a', '0', '1'), ('a', '2', NULL)"
    )
    connection.close()
    with Database.open(v5, NOW) as db:
        assert db.rows(
            "SELECT query_hash, times_seen, detected_at, last_seen_at, resolved_at FROM knowledge_gaps ORDER BY id"
        ) == [("a", 3, "1", "4", None), ("b", 1, "3", "3", None), ("a", 1, "0", "0", "1")]


@pytest.mark.parametrize("words", [["list", "--json"], ["call", "memory_list", "{}"], ["list"]])
def test_the_command_line_says_what_was_done_and_where_the_backup_is(
    v5: str, words: list[str], tmp_path: Path
) -> None:
    environ = {**os.environ, "HOME": str(tmp_path), "QUAID_DB": v5, "QUAID_HANDOVER": "off"}
    command = [commands.program(), *words]
    first = subprocess.run(command, capture_output=True, text=True, env=environ, check=True)
    assert first.stderr.startswith(
        f"quaid: {v5} was migrated from schema 5 to {SCHEMA_VERSION} and checked. "
    )
    assert first.stderr.endswith(f" is kept in {v5}.backup-v5.\n")
    assert os.path.exists(v5 + ".backup-v5")
    assert "schema" not in first.stdout
    assert subprocess.run(command, capture_output=True, text=True, env=environ, check=True).stderr == ""


def test_the_mcp_server_says_so_on_standard_error_only(v5: str, tmp_path: Path) -> None:
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    asked = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "memory_list", "arguments": {}},
        },
    ]
    done = subprocess.run(
        [sys.executable, "-m", "quaid", "--db", v5, "serve"],
        input="".join(json.dumps(item) + "\n" for item in asked),
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path)},
        check=True,
    )
    assert f"is kept in {v5}.backup-v5" in done.stderr
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0, 1]


def columns(db: Database) -> list[tuple[object, ...]]:
    return db.rows(
        'SELECT s.type, s.name, c.name, c.type, c."notnull", c.dflt_value FROM sqlite_schema AS s'
        " LEFT JOIN pragma_table_info(s.name) AS c WHERE s.name NOT LIKE 'sqlite_%' ORDER BY 1, 2, 3"
    )


def test_schema_8_is_extended_in_place(v8: str, tmp_path: Path) -> None:
    kept = [
        *("SELECT * FROM pages", "SELECT * FROM raw_imports", "SELECT id, subject, object FROM assertions"),
        "SELECT * FROM collections",
    ]
    before = [rows(v8, sql) for sql in kept]
    with Database.open(v8, NOW) as old, Database.create(str(tmp_path / "new.db"), NOW) as new:
        assert [old.rows(sql) for sql in kept] == before
        assert columns(old) == columns(new)
        assert old.connection.pragma("user_version") == SCHEMA_VERSION
        assert old.rows("SELECT author FROM assertions") == [("",)]
        assert old.rows("SELECT value FROM quaid_config WHERE key = 'schema_version'") == [
            (str(SCHEMA_VERSION),)
        ]
    assert rows(f"{v8}.backup-v8", "PRAGMA user_version") == [(8,)]


@pytest.mark.parametrize(
    ("slug", "front", "expected"),
    [
        ("people/ada", '{"type": "Wizard"}', ("wizard", "people")),
        ("work/people/ada", "{}", ("concept", "work")),
        ("ada", '{"type": "paper"}', ("paper", "papers")),
        ("people/ada", "damaged", ("person", "people")),
    ],
)
def test_extension_of_schema_8_updates_types(
    v8: str, slug: str, front: str, expected: tuple[str, str]
) -> None:
    connection = apsw.Connection(v8)
    connection.execute("UPDATE pages SET slug = ?, frontmatter = ?", (slug, front))
    connection.close()
    with Database.open(v8, NOW) as db:
        assert db.one("SELECT type, wing FROM pages") == expected


def test_a_failed_extension_of_schema_8_changes_nothing(v8: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = migrations.extend_v8

    def failing(tx: Transaction) -> None:
        whole(tx)
        raise ValueError("broken")

    monkeypatch.setattr(migrations, "extend_v8", failing)
    before = rows(v8, "SELECT type, name, sql FROM sqlite_schema")
    with pytest.raises(MigrationFailed, match="broken"):
        Database.open(v8, NOW)
    assert rows(v8, "SELECT type, name, sql FROM sqlite_schema") == before
    assert rows(v8, "PRAGMA user_version") == [(8,)]


def test_rows_that_point_nowhere_stop_the_extension_of_schema_8(v8: str) -> None:
    connection = apsw.Connection(v8)
    connection.execute("UPDATE assertions SET page_id = 77")
    connection.close()
    with pytest.raises(MigrationFailed, match="row 1 of assertions points to a row of pages"):
        Database.open(v8, NOW)
    assert rows(v8, "PRAGMA user_version") == [(8,)]


def test_schema_10_is_extended_in_place_and_keeps_the_authors(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    old_schema.make(path, 3, 10)
    authors = rows(str(path), "SELECT * FROM page_authors ORDER BY 1, 2")
    with Database.open(str(path), NOW) as old, Database.create(str(tmp_path / "new.db"), NOW) as new:
        assert shape(old) == shape(new)
        assert old.rows("SELECT page_id, version, author, source FROM page_authors ORDER BY 1, 2") == authors
        assert old.rows("SELECT DISTINCT agent, device, base_version FROM page_authors") == [("", "", None)]
        assert checks.validate(old) == []
    assert len(authors) == 5
    assert rows(f"{path}.backup-v10", "PRAGMA user_version") == [(10,)]


def test_schema_11_is_extended_in_place_and_keeps_the_gaps(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    old_schema.make(path, 3, 11)
    connection = apsw.Connection(str(path))
    connection.execute(
        "INSERT INTO knowledge_gaps (query_hash, times_seen, detected_at, last_seen_at) VALUES ('h', 4, ?1, ?1)",
        (NOW,),
    )
    connection.close()
    with Database.open(str(path), NOW) as old, Database.create(str(tmp_path / "new.db"), NOW) as new:
        assert shape(old) == shape(new)
        assert old.rows("SELECT query_hash, times_seen, sealed_query FROM knowledge_gaps") == [("h", 4, None)]
        assert checks.validate(old) == []
    assert rows(f"{path}.backup-v11", "PRAGMA user_version") == [(11,)]


def test_versions_pages_lines_and_facts_of_an_older_memory_get_trust_classes(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    old_schema.make(path, 4, 11)
    connection = apsw.Connection(str(path))
    connection.execute("DELETE FROM page_authors; DELETE FROM raw_imports")
    ids = dict(connection.execute("SELECT slug, id FROM pages"))
    mixed, agent, imported = ids["old/0"], ids["old/1"], ids["old/2"]
    connection.execute(
        "UPDATE pages SET version = 2, compiled_truth = 'Mine.' || char(10) || 'Of an agent.' WHERE id = ?",
        (mixed,),
    )
    connection.executemany(
        "INSERT INTO page_authors (page_id, version, author, agent) VALUES (?, ?, ?, ?)",
        [(mixed, 1, "owner", ""), (mixed, 2, "Codex", "Codex"), (agent, 1, "Codex", "")],
    )
    connection.executemany(
        "INSERT INTO raw_imports (page_id, page_version, import_id, is_active, content_hash, file_path, created_at,"
        " raw_bytes) VALUES (?, 1, ?, 0, '', ?, '', ?)",
        [(mixed, "edit-1", "a.md", b"Mine."), (imported, "0190", "b.md", b"Theirs.")],
    )
    connection.executemany(
        "INSERT INTO assertions (page_id, subject, subject_key, predicate, object, asserted_by, source_ref,"
        " created_at, author) VALUES (?, 'a', 'a', 'p', 'o', ?, ?, '', ?)",
        [
            (mixed, "manual", "", "owner"),
            (mixed, "manual", "", "Codex"),
            (mixed, "import", "", "owner"),
            (mixed, "agent", "https://example.com", ""),
        ],
    )
    connection.close()
    with Database.open(str(path), NOW) as db:
        of_mixed = trust.of_page(db, mixed)
        assert [of_mixed.of_line(line) for line in ("Mine.", "Of an agent.")] == [PERSON, DERIVED]
        assert trust.of_page(db, agent) == LineTrust(DERIVED)
        assert trust.of_page(db, imported) == LineTrust(IMPORTED)
        assert trust.of_page(db, ids["old/3"]) == ALL_BY_PERSON
        assert db.rows("SELECT trust FROM assertions ORDER BY id") == [
            (PERSON,),
            (DERIVED,),
            (IMPORTED,),
            (WEB,),
        ]
        assert db.rows("SELECT trust FROM page_authors ORDER BY page_id, version") == [
            (PERSON,),
            (DERIVED,),
            (DERIVED,),
        ]
