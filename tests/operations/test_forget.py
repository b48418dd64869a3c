"""Forgetting, through the gate and in processes of their own. What is gone is looked for in the bytes."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from tests import commands

from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import InvalidArgument, NotAllowed, PageMoved, PageNotFound
from quaid.operations import dispatch
from quaid.storage import history, vectors

SRC = str(Path(__file__).resolve().parents[2] / "src")
BOB = """---
title: Bobadil Zyzzogeton
aliases: [Kwyjibo]
tags: [parrotlike]
---
# Bobadil Zyzzogeton

Lives in Oslo with a quixotically named cockatoo. 日本語のテキスト

Knows [[companies/river]].

---

- **2026-03-01** | teahouse — Met the chrysanthemum grower.
  Wore a flugelhorn.
"""
# What nobody else says, in the spelling of the text and as the word index has it.
OWN = (
    *(
        "Bobadil",
        "Zyzzogeton",
        "Kwyjibo",
        "parrotlike",
        "quixotically",
        "cockatoo",
        "日本語",
        "chrysanthemum",
    ),
    *(
        "flugelhorn",
        "5551234567",
        "handshake",
        "bobadil",
        "zyzzogeton",
        "chrysanthemum",
        "kwyjibo",
        "flugelhorn",
    ),
)

COMMON = "lives in Oslo with a named Met the grower Wore sea wind tide batteries knows".split()


def run(brain: Brain, command: str, **arguments: Any) -> Any:
    return dispatch.call(brain, dispatch.find_command(command), arguments, "owner")


def quaid(path: str, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [commands.program(), "--db", path, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": SRC},
        stdin=subprocess.DEVNULL,
        timeout=120,
    )


LOOK = """
import os, sys
path, *wanted = sys.argv[1:]
files = [path + ending for ending in ("", "-wal", "-shm") if os.path.exists(path + ending)]
data = b"".join(open(file, "rb").read() for file in files)
print(*(each for each in wanted if each.encode() in data))
"""


def left_in(path: str) -> set[str]:
    """What the bytes of a memory hold of the page: read by another process, which drops no locks of this one."""
    done = subprocess.run([sys.executable, "-c", LOOK, path, *OWN], capture_output=True, check=True)
    return set(done.stdout.decode().split())


def fill(brain: Brain, others: int = 20) -> None:
    """A page that every layer knows something of, among others."""
    run(
        brain, "put", slug="companies/river", content="# River\n\nTidal batteries. [[people/bob]] works here."
    )
    run(brain, "put", slug="people/bob", content="# Bobadil Zyzzogeton\n\nAn older text with a handshake.")
    run(brain, "put", slug="people/bob", content=BOB)
    run(brain, "raw", slug="people/bob", source="crm", data={"phone": "5551234567"})
    for number in range(others):
        text = " ".join(random.Random(number).choices(COMMON, k=80))
        run(brain, "put", slug=f"notes/n{number}", content=f"# Note {number}\n\n{text}")
    brain.db.write(_side_rows)


def _side_rows(tx: Any) -> None:
    ids = dict(tx.execute("SELECT slug, id FROM pages"))
    river, bob = ids["companies/river"], ids["people/bob"]
    now = "2026-01-01T00:00:00Z"
    tx.execute(
        "INSERT INTO links (from_page_id, to_page_id, relationship, context, created_at)"
        " VALUES (?, ?, 'employs', ?, ?)",
        (river, bob, "a secret handshake", now),
    )
    tx.execute(
        "INSERT INTO assertions (page_id, subject, subject_key, predicate, object, created_at)"
        " VALUES (?, 'Bobadil', 'bobadil', 'plays', 'flugelhorn', ?)",
        (bob, now),
    )
    tx.execute(
        "INSERT INTO contradictions (page_id, other_page_id, type, description, evidence, detected_at)"
        ' VALUES (?, ?, \'cross_page\', \'x\', \'[{"slug": "people/bob", "quote": "a cockatoo"}]\', ?)',
        (river, bob, now),
    )
    tx.execute(
        "INSERT INTO knowledge_gaps (query_hash, resolved_at, resolved_by_slug, detected_at, last_seen_at)"
        " VALUES ('x', ?, 'people/bob', ?, ?)",
        (now, now, now),
    )
    vectors.register_model(tx, "small", 384, now)
    vectors.activate_model(tx, "small")
    hashes = [row for (row,) in tx.execute("SELECT DISTINCT content_hash FROM chunks ORDER BY 1")]
    made = np.random.default_rng(1).normal(size=(len(hashes), 384)).astype("<f4")
    vectors.keep_chunk_vectors(
        tx, "small", [(item, vector.tobytes()) for item, vector in zip(hashes, made, strict=True)], now
    )


@pytest.fixture
def known(brain: Brain) -> Brain:
    fill(brain)
    return brain


def test_forget_preview_changes_nothing(known: Brain) -> None:
    shown = run(known, "forget", slug="people/bob")
    before = {layer.name: layer.before for layer in shown.layers}
    assert (shown.done, shown.if_agreed, shown.title) == (False, {"yes": True}, "Bobadil Zyzzogeton")
    assert (before["page"], before["tags"], before["timeline entries"], before["raw data"]) == (1, 1, 1, 1)
    assert (before["links out"], before["links in"], before["facts"]) == (1, 2, 1)
    assert (before["contradictions"], before["gaps that it answered"]) == (1, 1)
    assert before["chunks"] == before["vectors"] > 0
    assert before["words"] == 2
    assert all(layer.after is None for layer in shown.layers)
    assert run(known, "forget", slug="people/bob", dry_run=True, yes=True).done is False
    assert run(known, "get", slug="people/bob").version == 3


def test_nothing_of_a_forgotten_page_is_left_in_any_layer_nor_in_the_bytes(known: Brain) -> None:
    known.db.connection.execute("ANALYZE")
    known.db.connection.pragma("wal_checkpoint", "TRUNCATE")
    assert left_in(known.db.path) == set(OWN)
    done = run(known, "forget", slug="people/bob", yes=True)
    assert (done.done, done.clean, done.exit_status, done.problem) == (True, True, 0, "")
    assert all(layer.after == 0 for layer in done.layers)
    assert all(item.found == () for item in done.proof)
    assert [(mention.text, mention.said_by) for mention in done.mentions] == [
        ("people/bob", ("companies/river",))
    ]
    assert run(known, "validate").violations == ()
    with pytest.raises(PageNotFound):
        run(known, "get", slug="people/bob")
    for query in ("zyzzogeton", "cockatoo", "日本語", "flugelhorn"):
        assert run(known, "search", query=query).hits == ()
    assert known.db.rows("SELECT to_page_id, source_kind FROM links") == [(None, "wiki_link")]
    assert known.db.rows("SELECT resolved_at IS NULL, resolved_by_slug FROM knowledge_gaps") == [(0, None)]
    path = known.db.path
    known.close()
    assert left_in(path) == set()


def put(brain: Brain, slug: str, content: str) -> None:
    run(brain, "put", slug=slug, content=content)


@pytest.mark.parametrize(
    ("slug", "text", "other"),
    [
        ("kwyjibo", "# Kwyjibo Quixotl\n\nPlain words.", "# Other\n\nKWYJIBO was here."),
        ("notes/a", "# A\n\nA watercolourist came.", "# Other\n\nMany Watercolourists."),
        ("notes/a", "# tokyo\n\nA word of tokyo.", "# Other\n\n東京tokyoです。"),
        ("timeline", "# evidence\n\ncontradictions and conversation_turns", "# Other"),
    ],
    ids=["capitals", "another ending", "without spaces", "names of tables"],
)
def test_word_of_another_page_is_not_a_remnant(brain: Brain, slug: str, text: str, other: str) -> None:
    put(brain, slug, text)
    put(brain, "other", other)
    record = run(brain, "forget", slug=slug, yes=True)
    assert [(item.where, item.found) for item in record.proof if item.found] == []
    assert record.clean
    assert "other" in [page.slug for page in run(brain, "list").pages]


def test_shared_text_is_listed_as_a_mention_of_the_other_page(brain: Brain) -> None:
    put(brain, "kwyjibo", "# Kwyjibo Quixotl\n\nPlain words.")
    put(brain, "other", "# Other\n\nKWYJIBO was here.")
    record = run(brain, "forget", slug="kwyjibo", yes=True)
    assert [tuple(mention) for mention in record.mentions] == [("kwyjibo", ("other",))]


LEAVING: dict[str, dict[str, Any]] = {
    "bytes in free space": {"enable_secure_delete": lambda db: None, "_vacuum": lambda connection: False},
    "words in the index": {"words_stay": True, "_vacuum": lambda connection: False},
}


@pytest.mark.parametrize("how", LEAVING)
def test_remnants_are_found_although_another_page_has_the_same_words(
    brain: Brain, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    text = "Only here is the flugelhorn of chrysanthemum growers, quite extraordinarily."
    put(brain, "kwyjibo", f"# Kwyjibo Quixotl\n\n{text}")
    put(brain, "other", "# Other\n\nKWYJIBO was here, with flugelhorn and chrysanthemum growers.")
    for name, value in LEAVING[how].items():
        if name == "words_stay":
            brain.db.write(lambda tx: tx.execute("DROP TRIGGER chunks_ad"))
        else:
            monkeypatch.setattr(f"quaid.storage.erase.{name}", value)
    record = run(brain, "forget", slug="kwyjibo", yes=True)
    assert not record.clean
    assert record.exit_status == 1
    assert [item.found for item in record.proof if item.found]


def test_vectors_of_text_that_another_page_has_too_stay(known: Brain) -> None:
    run(known, "put", slug="people/twin", content=BOB)
    done = run(known, "forget", slug="people/bob", yes=True)
    vectors_of = {layer.name: layer for layer in done.layers}["vectors"]
    assert vectors_of.before == 0
    twin = known.db.rows(
        "SELECT e.id FROM page_embeddings AS e JOIN pages AS p"
        " ON p.id = e.page_id WHERE p.slug = 'people/twin'"
    )
    assert len(twin) > 0
    assert done.clean
    assert {by for mention in done.mentions for by in mention.said_by} >= {"people/twin"}
    assert run(known, "validate").violations == ()


def test_a_link_to_a_forgotten_page_connects_when_one_of_that_name_comes(known: Brain) -> None:
    run(known, "forget", slug="people/bob", yes=True)
    run(known, "put", slug="people/bob", content="# Another Bob")
    assert len(known.db.rows("SELECT 1 FROM links WHERE to_page_id IS NOT NULL")) == 1


def test_a_quarantined_page_can_be_forgotten(known: Brain) -> None:
    known.db.write(lambda tx: tx.execute("UPDATE pages SET quarantined_at = 'now' WHERE slug = 'people/bob'"))
    assert run(known, "forget", slug="people/bob", yes=True).clean
    path = known.db.path
    known.close()
    assert left_in(path) == set()


def test_names_are_exact_and_old_slugs_go_with_the_page(known: Brain) -> None:
    run(known, "rename", slug="people/bob", new_slug="people/zed")
    with pytest.raises(PageMoved, match="people/zed"):
        run(known, "forget", slug="people/bob", yes=True)
    with pytest.raises(PageNotFound):
        run(known, "forget", slug="people/zedd", yes=True)
    done = run(known, "forget", slug="people/zed", yes=True)
    assert done.clean
    assert known.db.rows("SELECT * FROM redirects") == []
    assert run(known, "put", slug="people/bob", content="# Free again").created


def test_imported_bytes_go_too_and_the_next_import_is_warned_of(brain: Brain, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "people" / ".raw").mkdir(parents=True)
    (folder / "people" / "bob.md").write_text(BOB)
    (folder / "people" / "mia.md").write_text("# Mia\n")
    (folder / "people" / ".raw" / "bob.json").write_text('{"sources": {"crm": {"phone": "5551234567"}}}')
    (folder / "index.md").write_text("# Index\n\n- [Bobadil](people/bob.md)\n")
    run(brain, "import", folder=str(folder))
    (folder / "people" / "bob.md").write_text(BOB.replace("Oslo", "Rome"))
    run(brain, "import", folder=str(folder))
    done = run(brain, "forget", slug="people/bob", yes=True)
    assert done.clean
    assert done.files == ("people/bob.md",)
    said_by = {by for mention in done.mentions for by in mention.said_by}
    assert said_by == {"the imported file index.md", "the setting original_index"}
    left = [("index.md",), ("people/mia.md",)]
    assert brain.db.rows("SELECT DISTINCT file_path FROM raw_imports ORDER BY 1") == left
    assert brain.db.rows("SELECT DISTINCT source_ref FROM ingest_log ORDER BY 1") == left
    assert brain.db.rows("SELECT DISTINCT page_count FROM import_manifest") == [(1,)]
    assert run(brain, "validate").violations == ()
    path = brain.db.path
    brain.close()
    assert left_in(path) == {"Bobadil"}  # the index says so


def test_a_source_that_changed_only_this_page_goes_with_it(known: Brain) -> None:
    def take_in(tx: Any) -> None:
        ids = dict(tx.execute("SELECT slug, id FROM pages"))
        for name, slugs in (("a", ["people/bob"]), ("b", ["people/bob", "companies/river"])):
            data = f"They met in {name}, and there was a flugelhorn.".encode() if name == "a" else b"Both."
            source = history.IngestSource("meeting", f"meeting/{name}", f"meeting/{name}.md", data, name)
            pages = [ids[slug] for slug in slugs]
            source.keep(tx, import_id=f"import-{name}", now="2026-01-01T00:00:00Z", page_ids=pages)

    known.db.write(take_in)
    assert run(known, "forget", slug="people/bob", yes=True).clean
    assert known.db.rows("SELECT file_path FROM raw_imports") == [("meeting/b.md",)]
    assert known.db.rows("SELECT import_id FROM import_manifest") == [("import-b",)]
    assert known.db.rows("SELECT source_ref, pages_updated FROM ingest_log") == [("meeting/b", "[1]")]
    path = known.db.path
    known.close()
    assert left_in(path) == set()


def test_backups_are_shown_and_deleted_on_request(known: Brain, tmp_path: Path) -> None:
    run(known, "backup", file=str(tmp_path / "copy.db"))
    shutil.copy(tmp_path / "copy.db", tmp_path / "memory.db.backup-v6")
    (tmp_path / "memory.db.backup-v5").write_bytes(b"no memory")
    shown = run(known, "forget", slug="people/bob", dry_run=True)
    messages = {
        os.path.basename(backup.path): (backup.made_by, backup.holds_it, backup.deleted)
        for backup in shown.backups
    }
    assert messages == {"copy.db": ("backup", True, False), "memory.db.backup-v6": ("migration", True, False)}
    done = run(known, "forget", slug="people/bob", yes=True, backups=True)
    deleted = {os.path.basename(backup.path): backup.deleted for backup in done.backups}
    assert deleted == {"copy.db": True, "memory.db.backup-v6": True}
    assert {name for name in os.listdir(tmp_path) if "-" not in name or "backup" in name} == {
        *("memory.db", "memory.db.backup-v5"),
    }


def test_modified_copy_is_a_separate_memory(known: Brain, tmp_path: Path) -> None:
    run(known, "backup", file=str(tmp_path / "copy.db"))
    connection = apsw.Connection(str(tmp_path / "copy.db"))
    connection.execute("UPDATE pages SET version = version + 1 WHERE slug = 'people/bob'")
    connection.close()
    (shown,) = run(known, "forget", slug="people/bob", dry_run=True).backups
    assert (shown.made_by, shown.holds_it) == ("somebody", True)


def test_only_the_person_at_this_machine_may_forget(known: Brain) -> None:
    with pytest.raises(NotAllowed):
        dispatch.call(known, dispatch.find_command("forget"), {"slug": "people/bob", "yes": True}, "write")
    for wrong in ({}, {"slug": "people/bob", "finish": True}, {"finish": True, "dry_run": True}):
        with pytest.raises(InvalidArgument):
            run(known, "forget", **wrong)


def test_a_reader_in_another_process_delays_only_the_bytes(known: Brain) -> None:
    path = known.db.path
    known.close()
    reader = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM pages WHERE slug = 'people/bob'").fetchall() == [(1,)]
    done = quaid(path, "forget", "people/bob", "--yes")
    assert done.returncode == 1, done.stderr
    assert "some of it is left" in done.stdout
    assert "quaid forget --finish" in done.stdout
    assert quaid(path, "get", "people/bob").returncode == 3
    # The reader still sees what it saw.
    assert reader.execute("SELECT count(*) FROM pages WHERE slug = 'people/bob'").fetchall() == [(1,)]
    assert quaid(path, "forget", "--finish").returncode == 1
    reader.execute("ROLLBACK")
    reader.close()
    finished = quaid(path, "forget", "--finish")
    assert finished.returncode == 0, finished.stdout
    assert left_in(path) == set()
    assert quaid(path, "validate").returncode == 0


def test_an_idle_process_with_the_memory_open_does_not_hinder(known: Brain) -> None:
    run(known, "get", slug="people/bob")
    done = quaid(known.db.path, "forget", "people/bob", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    with pytest.raises(PageNotFound):
        run(known, "get", slug="people/bob")
    assert run(known, "validate").violations == ()


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.02, 0.04, 0.07])
def test_a_kill_in_the_middle_leaves_a_whole_memory(settings: Settings, brain: Brain, delay: float) -> None:
    fill(brain, others=60)
    path = brain.db.path
    brain.close()
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, path], env={**os.environ, "PYTHONPATH": SRC}, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with Brain(settings) as after:
        assert run(after, "validate").violations == ()
        rows = after.db.rows("SELECT slug FROM pages WHERE slug = 'people/bob'")
        chunks = after.db.rows("SELECT count(*) FROM chunks WHERE chunk_text LIKE '%cockatoo%'")
        assert chunks == [(1 if rows else 0,)]
        assert bool(run(after, "search", query="cockatoo").hits) == bool(rows)
        if rows:
            assert run(after, "forget", slug="people/bob", yes=True).clean
        else:
            assert run(after, "forget", finish=True).clean
    assert left_in(path) == set()


KILLED = """
import sys
from quaid.app import Brain
from quaid.config import Settings
from quaid.operations import dispatch
with Brain(Settings(sys.argv[1], "/", "/")) as brain:
    brain.db.rows("SELECT 1")
    dispatch.find_command("forget")
    print("now", flush=True)
    dispatch.call(brain, dispatch.find_command("forget"), {"slug": "people/bob", "yes": True}, "owner")
"""
