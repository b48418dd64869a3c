"""Several processes at one memory: nothing is lost, nobody sees a lock."""

import signal
import time
from collections.abc import Callable
from subprocess import Popen

import apsw

from quaid.model.page import build_page
from quaid.storage import checks, page_edits, pages
from quaid.storage.sqlite import backup as backups
from quaid.storage.sqlite.connection import Database

NOW = "2026-04-25T12:00:00Z"
Start = Callable[..., "Popen[str]"]

COUNTS_UP = """
    import sys
    from quaid.model.page import build_page
    from quaid.errors import VersionConflict
    from quaid.storage import page_edits, pages
    from quaid.storage.sqlite.connection import Database
    path, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    conflicts = 0
    with Database.open(path, "now") as db:
        sys.stdin.readline()
        for number in range(rounds):
            while True:
                stored = pages.require(db, "counter")
                page = build_page("counter", {}, stored.truth + f"{name}{number}\\n", "")
                try:
                    db.write(lambda tx: page_edits.save(
                        tx, page, uuid="u", now="2026-04-25T12:00:01Z", expected_version=stored.version))
                    break
                except VersionConflict:
                    conflicts += 1
    print(conflicts)
    """


def save(db: Database, slug: str, truth: str) -> None:
    page = build_page(slug, {}, truth, "")
    db.write(lambda tx: page_edits.save(tx, page, uuid=slug, now=NOW, expected_version=None))


def test_four_processes_that_change_one_page_lose_nothing(db: Database, start: Start) -> None:
    save(db, "counter", "")
    processes = [start(COUNTS_UP, db.path, name, "50") for name in "abcd"]
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert errors == ""
    page = pages.require(db, "counter")
    assert page.version == 201
    lines = page.truth.split()
    assert sorted(lines) == sorted(f"{name}{number}" for name in "abcd" for number in range(50))
    for name in "abcd":
        own = [line for line in lines if line.startswith(name)]
        assert own == [f"{name}{number}" for number in range(50)]
    assert checks.validate(db) == []


def test_one_of_several_writers_with_the_same_version_wins(db: Database, start: Start) -> None:
    save(db, "counter", "")
    script = """
        import sys
        from quaid.model.page import build_page
        from quaid.errors import VersionConflict
        from quaid.storage import page_edits
        from quaid.storage.sqlite.connection import Database
        with Database.open(sys.argv[1], "now") as db:
            sys.stdin.readline()
            page = build_page("counter", {}, sys.argv[2], "")
            try:
                db.write(lambda tx: page_edits.save(tx, page, uuid="u", now="now", expected_version=1))
                print("won")
            except VersionConflict as conflict:
                print("lost to", conflict.facts["current_version"])
        """
    processes = [start(script, db.path, name) for name in "abcd"]
    for process in processes:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
    results = sorted(process.communicate(timeout=60)[0] for process in processes)
    assert results == ["lost to 2\n"] * 3 + ["won\n"]


def test_a_killed_writer_loses_only_unconfirmed_writes(db: Database, start: Start) -> None:
    writer = """
        import sys
        from quaid.model.page import build_page
        from quaid.storage import page_edits
        from quaid.storage.sqlite.connection import Database
        db = Database.open(sys.argv[1], "now")
        first = int(sys.argv[2])
        for number in range(first, first + 10_000):
            def work(tx, number=number):
                for part in "ab":
                    page = build_page(f"{part}/{number}", {"tags": ["t"]}, "東京x " * 200, "- **2020-01-01** — x")
                    page_edits.save(tx, page, uuid=page.slug, now="now", expected_version=0)
            db.write(work)
            print(number, flush=True)
        """
    acknowledged = 0
    for attempt in range(6):
        process = start(writer, db.path, str(attempt * 10_000))
        assert process.stdout
        process.stdout.readline()
        time.sleep(0.01 * attempt)
        process.send_signal(signal.SIGKILL)
        acknowledged += 1 + len(process.communicate()[0].split())
        halves = [number for (number,) in db.rows("SELECT count(*) FROM pages GROUP BY substr(slug, 1, 1)")]
        assert halves[0] == halves[1] >= acknowledged
        assert checks.validate(db) == []


def test_many_processes_may_open_and_close_while_one_writes(db: Database, start: Start) -> None:
    """Whoever closes last moves the log; a write that happens meanwhile must not be lost."""
    script = """
        import sys
        from quaid.storage.sqlite.connection import Database
        for _ in range(60):
            with Database.open(sys.argv[1], "now") as db:
                assert db.one("SELECT count(*) FROM config")[0] >= 4
        """
    openers = [start(script, db.path) for _ in range(2)]
    db.close()
    for number in range(60):
        with Database.open(db.path, NOW) as writer:
            writer.write(lambda tx, key=f"k{number}": tx.execute("INSERT INTO config VALUES (?, '')", (key,)))  # type: ignore[misc]
    for process in openers:
        assert process.communicate(timeout=60)[1] == ""
    with Database.open(db.path, NOW) as again:
        assert again.one("SELECT count(*) FROM config WHERE key GLOB 'k*'") == (60,)
        assert checks.validate(again) == []


def test_a_backup_while_others_write_is_one_state(db: Database, start: Start, tmp_path: object) -> None:
    writer = """
        import sys
        from quaid.storage.sqlite.connection import Database
        with Database.open(sys.argv[1], "now") as db:
            print("ready", flush=True)
            for number in range(100_000):
                db.write(lambda tx: tx.execute(
                    "INSERT INTO config VALUES ('a' || ?1, ''), ('b' || ?1, '')", (number,)))
        """
    process = start(writer, db.path)
    assert process.stdout
    process.stdout.readline()
    for number in range(5):
        target = f"{tmp_path}/copy-{number}.db"
        backups.create_backup(db, target)
        copy = apsw.Connection(target)
        counts = copy.execute(
            "SELECT count(*) FROM config WHERE key GLOB '[ab][0-9]*' GROUP BY substr(key, 1, 1)"
        ).fetchall()
        copy.close()
        assert len(set(counts)) <= 1
    process.kill()
