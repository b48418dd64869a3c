"""A large folder is parsed by a helper process, with the same result as without it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from quaid.errors import FileTrouble
from quaid.folders import importer, indexer, sync
from quaid.folders.indexer import Spool
from quaid.storage import collections
from quaid.storage.collections import Collections
from quaid.storage.sqlite.connection import Database

NOW = "2026-04-25T12:00:00Z"
FILES = 120
TRICKY = {
    "none.md": b"No front matter, but a slug: elsewhere/x\n",
    "slug.md": b"---\nslug: people/someone\n---\nText\n",
    "twice.md": b"---\nslug: people/someone\n---\nAnother\n",
    "toml.md": b'+++\nslug = "from/toml"\n+++\nText\n',
    "escaped.md": b'---\n"sl\\u0075g": escaped/key\n---\nText\n',
    "id.md": b"---\nquaid_id: 0190a6d0-0000-7000-8000-000000000001\n---\nText\n",
    "id-number.md": b"---\nquaid_id: 7\n---\nText\n",
    "late.md": b"\n\n---\nslug: after/blank-lines\n---\nText\n",
    "dots.md": b"---\ntitle: x\n...\nslug: not/this\n---\nText\n",
    "dashes.md": b"---\ntitle: x\n---- no fence\nslug: a/b\n---\nText\n",
    "crlf.md": b"---\r\nslug: with/crlf\r\n---\r\nText\r\n",
    "cr.md": b"---\rslug: with/cr\r---\rText\r",
    "utf16.md": "---\nslug: with/utf-16\n---\nText\n".encode("utf-16"),
    "bom.md": b"\xef\xbb\xbf---\nslug: with/bom\n---\nText\n",
    "latin.md": b"---\nslug: with/latin\ntitle: caf\xe9\n---\nna\xefve\n",
    "mixed.md": "---\nslug: with/umlaut-ä\n---\n".encode() + b"\xff\xe9\n",
    "broken.md": b"---\nslug: [\n---\nText\n",
    "no-slug.md": b"---\nslug: 'Not A Slug!'\n---\nText\n",
    "list.md": b"---\n- slug\n---\nText\n",
    "open.md": b"---\nslug: never/closed\nText\n",
    "nul.md": b"---\nslug: with/nul\x00\n---\nText\n",
    "东京.md": "# 东京\n\n東京都に住む。\n".encode(),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "vault"
    root.mkdir()
    for name, data in TRICKY.items():
        (root / name).write_bytes(data)
    for number in range(FILES):
        (root / f"d{number % 7}").mkdir(exist_ok=True)
        front = (
            f"tags: [t{number % 5}]\naliases: [Alias {number}]\nlinks: [{{to: p{number + 1}, type: knows}}]"
        )
        links = f"See [[p{(number * 7) % FILES}]] and [that](../d{number % 3}/p{number}.md). #tag{number}"
        below = f"- **2026-04-{1 + number % 28:02}** | mail — Wrote {number}."
        text = f"---\n{front}\n---\n# Page {number}\n\n{links}\n\n---\n\n{below}\n"
        (root / f"d{number % 7}" / f"p{number}.md").write_text(text)
    return root


@pytest.fixture
def helpers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[indexer.ParserProcess]]:
    """Help is worth its while for a few files already; those that came to help are noted."""
    came: list[indexer.ParserProcess] = []

    class Noted(indexer.ParserProcess):
        def __init__(self, spool: IO[bytes], found: IO[bytes], memory: str) -> None:
            super().__init__(spool, found, memory)
            came.append(self)

    monkeypatch.setattr(indexer, "ParserProcess", Noted)
    monkeypatch.setattr(indexer, "FILES_BEFORE_HELPER", 5)
    monkeypatch.setattr(indexer, "MIN_FILES_FOR_HELPER", 20)
    monkeypatch.setattr(indexer, "cpu_count", lambda: 2)
    yield came
    assert all(item._process.returncode is not None for item in came), "a helper was left behind"


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    return lambda: monkeypatch.setattr(indexer, "cpu_count", lambda: 1)


def memory(path: Path) -> Database:
    return Database.create(str(path), NOW)


def numbered() -> Callable[[], str]:
    numbers = iter(range(1_000_000))
    return lambda: f"0190a6d0-0000-7000-9000-{next(numbers):012}"


def bring(db: Database, folder: Path, progress: Any = lambda *_: None) -> Any:
    return importer.import_folder(
        db, str(folder), import_id="first", now=NOW, new_uuid=numbered(), progress=progress
    )


def follow(db: Database, folder: Path) -> Any:
    db.write(lambda tx: collections.add(tx, "notes", "markdown", str(folder), True, NOW))
    collection = Collections(db).require("notes")
    return sync.sync_collection(db, collection, now=NOW, new_uuid=numbered(), progress=lambda *_: None)


def rows(db: Database) -> dict[str, list[Any]]:
    """Every row of every table but those of which an index is made inside: the words of that are asked for."""
    tables = [name for (name,) in db.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    kept = [name for name in tables if "fts" not in name]
    results = {name: sorted(db.rows(f'SELECT * FROM "{name}"'), key=repr) for name in kept}
    for word in ("page", "wrote", "alias", "text"):
        sql = "SELECT rowid, bm25(page_fts) FROM page_fts WHERE page_fts MATCH ? ORDER BY rowid"
        results[f"'{word}'"] = db.rows(sql, (word,))
    sql = "SELECT rowid FROM page_fts_unspaced WHERE page_fts_unspaced MATCH '\"東京\"'"
    results["unspaced"] = db.rows(sql)
    db.write(lambda tx: tx.execute("INSERT INTO page_fts (page_fts, rank) VALUES ('integrity-check', 1)"))
    return results


def test_an_import_with_help_writes_the_same_rows(
    tmp_path: Path, folder: Path, helpers: list[indexer.ParserProcess], alone: Callable[[], None]
) -> None:
    with memory(tmp_path / "a.db") as helped:
        output = bring(helped, folder)
        assert len(helpers) == 1
        alone()
        with memory(tmp_path / "b.db") as by_itself:
            assert bring(by_itself, folder) == output
            assert len(helpers) == 1
            assert rows(helped) == rows(by_itself)
    assert output.outcomes["new"] == FILES + len(TRICKY)
    assert [note.path for note in output.notes if "slug" in note.note] == ["twice.md"]


def test_a_sync_with_help_writes_the_same_rows(
    tmp_path: Path, folder: Path, helpers: list[indexer.ParserProcess], alone: Callable[[], None]
) -> None:
    with memory(tmp_path / "a.db") as helped:
        output = follow(helped, folder)
        assert len(helpers) == 1
        alone()
        with memory(tmp_path / "b.db") as by_itself:
            again = follow(by_itself, folder)
            assert sorted(again.notes) == sorted(output.notes)
            assert again._replace(notes=()) == output._replace(notes=())
            assert rows(helped) == rows(by_itself)
    assert output.new == FILES + len(TRICKY)


@pytest.mark.parametrize("path", TRICKY)
def test_requested_identity_equals_the_parsed_one(path: str) -> None:
    made = indexer.parse_file(path, TRICKY[path]).page
    assert indexer.requested_identity(path, TRICKY[path]) == (made.slug, indexer.file_id(made, path))


def test_few_files_need_no_help(tmp_path: Path, folder: Path, helpers: list[indexer.ParserProcess]) -> None:
    for path in folder.glob("d*/*.md"):
        path.unlink()
    with memory(tmp_path / "a.db") as db:
        bring(db, folder)
    assert helpers == []


def test_helper_that_dies_is_reported_with_a_remedy(
    tmp_path: Path, folder: Path, helpers: list[indexer.ParserProcess]
) -> None:
    def kill(_done: int, _total: int, _what: str) -> None:
        for helper in helpers:
            helper._process.kill()
            helper._process.wait()

    with memory(tmp_path / "a.db") as db:
        before = rows(db)
        with pytest.raises(FileTrouble, match=r"\(signal 9\); nothing of this folder was taken in\. Free"):
            bring(db, folder, kill)
        assert rows(db) == before
        assert sorted(path.name for path in tmp_path.iterdir() if "db" not in path.name) == ["vault"]


def test_rest_is_parsed_in_process_when_a_helper_hangs(
    tmp_path: Path, folder: Path, helpers: list[indexer.ParserProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_done: int, _total: int, _what: str) -> None:
        for helper in helpers:
            if helper._process.returncode is None:
                helper._process.send_signal(signal.SIGSTOP)

    monkeypatch.setattr(indexer, "HELPER_TIMEOUT", 0.2)
    with memory(tmp_path / "a.db") as db, memory(tmp_path / "b.db") as other:
        bring(db, folder, stop)
        assert len(helpers) == 1
        monkeypatch.setattr(indexer, "HELPER_TIMEOUT", 60.0)
        bring(other, folder)
        assert rows(db) == rows(other)


def test_an_interrupt_leaves_neither_rows_nor_a_helper(
    tmp_path: Path, folder: Path, helpers: list[indexer.ParserProcess]
) -> None:
    def interrupt(done: int, _total: int, what: str) -> None:
        if what == "Writing" and done == 50:
            raise KeyboardInterrupt

    with memory(tmp_path / "a.db") as db:
        before = rows(db)
        with pytest.raises(KeyboardInterrupt):
            bring(db, folder, interrupt)
        assert len(helpers) == 1
        assert rows(db) == before


def test_helper_ends_with_its_parent(tmp_path: Path) -> None:
    script = (
        "import sys, time\nfrom quaid.folders import indexer\nfrom quaid.folders.indexer import Spool\n"
        "indexer.FILES_BEFORE_HELPER = indexer.MIN_FILES_FOR_HELPER = 0\nindexer.cpu_count = lambda: 2\n"
        "spool = Spool(sys.argv[1] + '/memory.db')\nassert spool.has_helper(0)\n"
        "spool.add_unparsed('a.md', 'hash', b'A')\n"
        "assert [each.page.truth for each in spool.files()] == ['A']\n"
        "print(spool._helper._process.pid, flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        helper = int(process.stdout.readline())
        process.kill()
    deadline = time.monotonic() + 60
    while is_running(helper):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        completed = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
    except ProcessLookupError:
        return False
    return bool(completed.stdout.strip()) and not completed.stdout.startswith("Z")


def test_without_a_second_process_the_first_does_it_all(
    tmp_path: Path, folder: Path, helpers: list[indexer.ParserProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    with memory(tmp_path / "a.db") as db:
        assert bring(db, folder).outcomes["new"] == FILES + len(TRICKY)
    assert helpers == []


def test_more_than_a_pipe_holds_waits_in_the_file(
    tmp_path: Path, helpers: list[indexer.ParserProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "FILES_BEFORE_HELPER", 0)
    text = b"word " * 200_000
    with Spool(str(tmp_path / "memory.db")) as spool:
        assert spool.has_helper(20)
        for number in range(8):
            spool.add_unparsed(f"p{number}.md", "hash", text)
        pairs = [(item.path, item.page.truth if item.page else "") for item in spool.files()]
        assert pairs == [(f"p{number}.md", text.decode()) for number in range(8)]
        assert [item.path for item in spool.files()] == [path for path, _ in pairs]
