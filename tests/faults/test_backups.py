"""`quaid backup` while somebody writes without a pause: each copy is the memory as it was at one moment."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
from tests.faults.killer import ForkServer
from tests.faults.ledger import Cases
from tests.faults.workspace import open_brain, page_text, run

PAGES = 40
PER_SECOND = 100


class Writing:
    """Somebody who writes one thing after another; the last that is acknowledged is known at any time."""

    def __init__(self, fork_server: ForkServer) -> None:
        self.fork_server = fork_server
        self.last = -1
        self.trouble = ""
        self.began = time.monotonic()

    def listen(self) -> None:
        while not (line := self.fork_server.line()).startswith("exited"):
            if line.startswith(("refused", "broken")):
                self.trouble = line
            else:
                self.last = int(line)

    @property
    def pace(self) -> float:
        return (self.last + 1) / (time.monotonic() - self.began)


@contextmanager
def writing(home: Path) -> Iterator[Writing]:
    with ForkServer() as fork_server:
        fork_server.spawn(home, "steady", PER_SECOND, PAGES)
        works = Writing(fork_server)
        ears = threading.Thread(target=works.listen)
        ears.start()
        try:
            yield works
        finally:
            (home / "enough").touch()
            ears.join(60)
            fork_server.worker = 0
        assert works.trouble == ""


@pytest.mark.promise("backups restore")
def test_each_backup_is_an_acknowledged_prefix_of_what_was_written(tmp_path: Path, cases: Cases) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with open_brain(home) as brain:
        brain.create(brain.settings.db_path)
    moments = []
    with writing(home) as works, open_brain(home) as brain:
        while works.last < PAGES:
            time.sleep(0.01)
        for seed in cases.walk(5, 100):
            copy = tmp_path / f"copy{seed}.db"
            before = works.last
            run(brain, "backup", file=str(copy))
            moments.append(check(copy, before))
            copy.unlink()
            time.sleep(seed % 7 * 0.02)
        pace = works.pace
    assert moments == sorted(moments)
    cases.note(f"{moments[-1]:,} writes meanwhile, {pace:.0f} a second")


def check(copy: Path, before: int) -> int:
    """The copy opens, is whole, and holds all writes up to one of them and nothing of the later ones: up to which?"""
    connection = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READONLY)
    result = connection.execute("SELECT slug, version, compiled_truth FROM pages").fetchall()
    rows = [(str(slug), version, str(truth)) for slug, version, truth in result]
    assert connection.pragma("integrity_check") == "ok"
    connection.close()
    numbers = {slug: int(truth.split()[2]) for slug, _, truth in rows}
    last = max(numbers.values())
    assert last >= before, "what was acknowledged before the backup began is not in it"
    for page in range(PAGES):
        newest = last - (last - page) % PAGES
        assert numbers[f"s{page}"] == newest
    for slug, version, truth in rows:
        assert truth == page_text(str(numbers[slug]))
        assert version == numbers[slug] // PAGES + 1
    restored = copy.parent / "restored"
    restored.mkdir(exist_ok=True)
    (restored / "memory.db").write_bytes(copy.read_bytes())
    with open_brain(restored) as brain:
        assert run(brain, "validate")["violations"] == []
        run(brain, "put", slug="after", content="It goes on.")
    for path in restored.glob("memory.db*"):
        path.unlink()
    return last
