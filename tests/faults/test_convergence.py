"""Any order of edits, moves, deletions, syncs and puts: after a last sync the folder and its index say the same."""

import os
import random
from pathlib import Path

import pytest
from tests.faults import index_check
from tests.faults.ledger import Cases
from tests.faults.workspace import FOLDER, open_brain, run

from quaid.app import Brain
from quaid.errors import QuaidError

pytestmark = pytest.mark.promise("convergence")
STEPS = 50
NAMES = [f"{folder}{name}.md" for folder in ("", "a/", "a/b/", "c/") for name in ("one", "two", "three")]


class Household:
    """A folder with somebody who works in it, and a memory that follows; each step is one of its methods."""

    def __init__(self, home: Path) -> None:
        self.home, self.root = home, home / FOLDER
        self.root.mkdir(parents=True)
        self.brain: Brain = open_brain(home)
        self.brain.create(self.brain.settings.db_path)
        run(self.brain, "collection add", name=FOLDER, path=str(self.root))

    def walk(self, seed: int) -> None:
        self.seed, self.chance, self.said = seed, random.Random(seed), 0
        for number in range(STEPS):
            self.word = f"s{seed}n{number}"
            step = self.chance.choice(WEIGHED)
            try:
                getattr(self, step)()
            except QuaidError:
                self.said += 1  # a refusal is fine: nothing of it may stay

    def some(self) -> Path:
        return self.root / self.chance.choice(NAMES)

    def edit(self) -> None:
        path = self.some()
        path.parent.mkdir(parents=True, exist_ok=True)
        text = f"# {path.stem} {self.word}\n\n{self.word} and [[{self.chance.choice(NAMES)[:-3]}]]\n"
        if self.chance.random() < 0.5:
            text = f"---\ntags: [red, {self.word}]\n---\n{text}"
        if self.chance.random() < 0.5:
            text += f"\n---\n\n- **2026-04-25** | call — Met {self.word}, see [[two]].\n"
        path.write_text(text)

    def append(self) -> None:
        path = self.some()
        if path.exists():
            with path.open("a") as file:
                file.write(f"\nMore {self.word}.\n")

    def move(self) -> None:
        old, new = self.some(), self.some()
        if old.exists():
            new.parent.mkdir(parents=True, exist_ok=True)
            os.replace(old, new)

    def move_folder(self) -> None:
        old, new = self.root / self.chance.choice("ac"), self.root / self.chance.choice(("x", "a", "c"))
        if old.exists() and not new.exists():
            old.rename(new)

    def delete(self) -> None:
        self.some().unlink(missing_ok=True)

    def empty(self) -> None:
        path = self.some()
        if path.exists():
            path.write_text("")

    def sync(self) -> None:
        run(self.brain, "collection sync", name=FOLDER)

    def put(self) -> None:
        slug = f"{FOLDER}::{self.chance.choice(NAMES)[:-3]}"
        run(self.brain, "put", slug=slug, compiled_truth=f"# Put\n\n{self.word}.")

    def rename(self) -> None:
        old, new = (self.chance.choice(NAMES)[:-3] for _ in range(2))
        run(self.brain, "rename", slug=f"{FOLDER}::{old}", new_slug=new)

    def revert(self) -> None:
        run(self.brain, "revert", slug=f"{FOLDER}::{self.chance.choice(NAMES)[:-3]}", to=1)

    def restore(self) -> None:
        waiting = run(self.brain, "collection quarantine list")["pages"]
        if waiting:
            run(self.brain, "collection quarantine restore", page=self.chance.choice(waiting)["slug"])

    def check(self) -> None:
        """Folder and index agree in all that files tell, a search finds what is there and nothing else, and a second
        sync has nothing to do; an index that is made anew is the same."""
        run(self.brain, "collection sync", name=FOLDER, confirm_deletes=True)
        again = run(self.brain, "collection sync", name=FOLDER)["syncs"][0]
        assert [again[name] for name in ("new", "changed", "moved", "removed", "waiting")] == [0] * 5, again
        index_check.check_texts(self.brain, self.root)
        words = [f"s{self.seed}n{number}" for number in self.chance.sample(range(STEPS), 3)]
        index_check.check_words(
            self.brain, self.root, [*words, index_check.some_word(self.root, self.chance)]
        )
        assert run(self.brain, "validate")["violations"] == []
        index_check.check_like_new(self.brain, self.root, self.home / f"new-{self.seed}")


WEIGHED = (
    *("edit", "edit", "edit", "append", "move", "move", "delete", "sync", "sync", "put", "put", "rename"),
    *("revert", "restore", "move_folder", "empty"),
)


def test_folder_and_index_agree_after_any_sequence_of_steps(tmp_path: Path, cases: Cases) -> None:
    home: Household | None = None
    refused = 0
    for seed in cases.walk(6, 10_000):
        if home is None or seed % 25 == 0:
            if home is not None:
                home.brain.close()
            home = Household(tmp_path / f"from-{seed}")
            for earlier in range(seed - seed % 25, seed):  # a case that is run alone has its past, too
                home.walk(earlier)
                home.check()
        home.walk(seed)
        home.check()
        refused += home.said
    assert home is not None
    home.brain.close()
    cases.note(f"{STEPS} steps each, {refused:,} refused")
