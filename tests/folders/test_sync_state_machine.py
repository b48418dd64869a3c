"""Anything may happen to a folder and its memory: they agree again after a sync, and nothing is lost."""

import itertools
import os
import shutil
import tempfile
import unicodedata
from pathlib import Path
from typing import Any

from hypothesis import settings as hypothesis, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from quaid.app import Brain
from quaid.config import Settings
from quaid.errors import FileChanged, PageNotFound, VersionConflict
from quaid.folders import indexer
from quaid.operations import dispatch
from quaid.operations.dispatch import json_value
from quaid.storage import history

NAMES = ["a.md", "A.md", "b/c.md", "b/C d.md", "\u00c4.md", "A\u0308.md", "deep/er/x.md"]
NAME = st.sampled_from(NAMES)
CLIENT = st.integers(0, 1)
NOON = 1_777_118_400.0


class LivingFolder(RuleBasedStateMachine):
    """Two clients of one memory, and an editor that changes the files directly."""

    @initialize()
    def start(self) -> None:
        history.MOST_VERSIONS = 1_000  # what is dropped for its age is another test's business
        self.home = Path(tempfile.mkdtemp())
        self.root = self.home / "notes"
        self.root.mkdir()
        self.ticks = itertools.count(0, 10)
        self.words = itertools.count()
        self.acknowledged: list[str] = []
        self.trash: dict[str, bytes] = {}
        self.clients = [self.open(), self.open()]
        self.clients[0].create(str(self.home / "memory.db"))
        self.write("a.md", "# First\n")
        self.run(0, "collection add", name="notes", path=str(self.root))

    def open(self) -> Brain:
        settings = Settings(db_path=str(self.home / "memory.db"), home=str(self.home), cwd=str(self.home))
        return Brain(settings, clock=lambda: NOON + next(self.ticks))

    def teardown(self) -> None:
        history.MOST_VERSIONS = 10
        if hasattr(self, "home"):
            for client in self.clients:
                client.close()
            shutil.rmtree(self.home)

    def run(self, client: int, command: str, **arguments: Any) -> Any:
        return json_value(
            dispatch.call(self.clients[client], dispatch.find_command(command), arguments, "owner")
        )

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_bytes(text.encode())

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in self.root.rglob("*.md")
            if not path.name.startswith(".")
        }

    @rule(name=NAME)
    def create_or_rewrite(self, name: str) -> None:
        self.write(name, f"# Page\n\nword{next(self.words)}\n")

    @rule(name=NAME)
    def append(self, name: str) -> None:
        if (self.root / name).exists():
            with open(self.root / name, "ab") as file:
                file.write(f"\nmore{next(self.words)}\n".encode())

    @rule(name=NAME)
    def save_by_rename(self, name: str) -> None:
        if (self.root / name).exists():
            temporary = self.root / ".save.tmp"
            temporary.write_text(f"# Saved\n\nword{next(self.words)}\n")
            os.replace(temporary, self.root / name)

    @rule(old=NAME, new=NAME)
    def move(self, old: str, new: str) -> None:
        if (self.root / old).exists() and not (self.root / new).exists():
            (self.root / new).parent.mkdir(parents=True, exist_ok=True)
            os.rename(self.root / old, self.root / new)

    @rule(name=NAME)
    def delete(self, name: str) -> None:
        if (self.root / name).exists():
            self.trash[name] = (self.root / name).read_bytes()
            (self.root / name).unlink()

    @rule(name=NAME)
    def bring_back(self, name: str) -> None:
        if name in self.trash and not (self.root / name).exists():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_bytes(self.trash.pop(name))

    @rule(client=CLIENT, place=st.integers(0, 6))
    def edit_here(self, client: int, place: int) -> None:
        shown = [page for page in self.run(client, "list")["pages"] if page["collection"] == "notes"]
        if not shown:
            return
        page = shown[place % len(shown)]
        word = f"acknowledged{next(self.words)}"
        try:
            self.run(
                client,
                "put",
                slug=f"notes::{page['slug']}",
                compiled_truth=f"# Edited\n\n{word}",
                expected_version=page["version"],
            )
        except (FileChanged, VersionConflict, PageNotFound):
            return
        self.acknowledged.append(word)

    @rule(client=CLIENT)
    def new_page_here(self, client: int) -> None:
        word = f"acknowledged{next(self.words)}"
        try:
            self.run(client, "put", slug=f"notes::made/p{next(self.words)}", content=f"# Made\n\n{word}\n")
        except FileChanged:
            return
        self.acknowledged.append(word)

    @rule(client=CLIENT)
    def a_client_is_killed(self, client: int) -> None:
        self.clients[client].close()
        self.clients[client] = self.open()

    @rule(client=CLIENT)
    def sync(self, client: int) -> None:
        report = self.run(client, "collection sync", name="notes")["syncs"][0]
        files = self.files()
        if report["halted"]:
            assert not files, report["halted"]
            report = self.run(client, "collection sync", name="notes", confirm_deletes=True)["syncs"][0]
        again = self.run(1 - client, "collection sync", name="notes")["syncs"][0]
        assert [again[name] for name in ("new", "changed", "moved", "removed")] == [0, 0, 0, 0]
        self.compare(client, files)

    def compare(self, client: int, files: dict[str, bytes]) -> None:
        """The index has the content of the folder, page by page."""
        db = self.clients[client].db
        rows = db.rows(
            "SELECT f.relative_path, p.compiled_truth, p.timeline FROM file_state f JOIN pages p ON p.id = f.page_id"
            " WHERE p.quarantined_at IS NULL"
        )
        wanted = {path: indexer.parse_file(path, data).page for path, data in files.items()}
        assert {row[0]: row[1:] for row in rows} == {
            path: (page.truth, page.timeline) for path, page in wanted.items()
        }
        shown = db.one("SELECT count(*) FROM pages WHERE collection_id <> 1 AND quarantined_at IS NULL")
        assert shown == (len(files),)
        assert self.run(client, "validate")["violations"] == []

    @invariant()
    def nothing_acknowledged_is_lost(self) -> None:
        if not getattr(self, "acknowledged", None):
            return
        kept = self.clients[0].db.rows("SELECT raw_bytes FROM raw_imports")
        everything = b"\n".join([*(row[0] for row in kept), *self.files().values(), *self.trash.values()])
        for word in self.acknowledged[-30:]:
            assert word.encode() in everything, word


LivingFolder.TestCase.settings = hypothesis(max_examples=25, stateful_step_count=30, deadline=None)
TestLivingFolder = LivingFolder.TestCase


def test_the_names_hold_both_ways_to_write_an_accent() -> None:
    assert len({unicodedata.normalize("NFC", name) for name in NAMES}) == len(NAMES) - 1
