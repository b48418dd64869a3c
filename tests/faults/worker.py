"""A client that works on a memory until it is killed, or for as many rounds as it is told.

Says a line for each write that was acknowledged to it: the page, how it was written, and the word. It says so with
writev, which nothing else here uses: whoever counts the calls to write counts those of the memory alone.
"""

import itertools
import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.faults.workspace import FOLDER, attach, open_brain, page_text, run

from quaid.app import Brain
from quaid.storage import files as durable_files

if TYPE_CHECKING:
    from quaid.embedding.registry import ModelCache

DAY = "2026-04-25"


def say(line: str) -> None:
    os.writev(1, [f"{line}\n".encode()])


class Worker:
    def __init__(self, home: Path, seed: str, rounds: int = 0, models: "ModelCache | None" = None) -> None:
        self.home, self.seed = home, seed
        self.rounds: Iterator[int] = iter(range(rounds)) if rounds else itertools.count()
        self.root = home / FOLDER
        self.chance = random.Random(seed)
        self.words = (f"w{seed}x{number}" for number in itertools.count())
        self.brain: Brain = open_brain(home, models=models)

    def acknowledge(self, slug: str, how: str, word: str) -> None:
        say(f"{slug} {how} {word}")

    def version(self, slug: str) -> int:
        return int(run(self.brain, "get", slug=slug)["version"])

    def put(self) -> None:
        """Edits of pages that are there, with a file and without, and new pages of both kinds."""
        for _ in self.rounds:
            slug = self.chance.choice([f"{FOLDER}::p{number}" for number in range(4)] + ["d0", "d1"])
            word = next(self.words)
            kind = self.chance.choice(["truth", "truth", "timeline", "new"])
            if kind == "truth":
                text = page_text(word, self.chance.choice([1, 30, 1000]))
                run(self.brain, "put", slug=slug, compiled_truth=text, expected_version=self.version(slug))
            elif kind == "timeline":
                run(self.brain, "timeline-add", slug=slug, date=DAY, summary=f"{word} begins. {word} ends.")
            else:
                place = self.chance.choice([f"{FOLDER}::new/{word}/page", f"new/{word}"])
                run(self.brain, "put", slug=place, content=page_text(word))
                slug = place
            self.acknowledge(slug, kind, word)

    def ingest(self) -> None:
        """Sources that change several pages at once, in the folder and out of it."""
        for _ in self.rounds:
            word = next(self.words)
            slugs = [f"{FOLDER}::p0", f"{FOLDER}::p1", "d0", f"{FOLDER}::in/{word}", f"solo/{word}"]
            changes = [self.change(slug, word) for slug in slugs]
            run(
                self.brain,
                "ingest-source",
                content=f"About {word}.",
                source_type="meeting",
                source_ref=f"meeting/{word}",
                pages=changes,
            )
            for slug in slugs:
                self.acknowledge(slug, "timeline", word)

    def change(self, slug: str, word: str) -> dict[str, Any]:
        entry = {"date": DAY, "summary": f"{word} begins. {word} ends."}
        if word in slug:
            return {"slug": slug, "content": page_text(word), "timeline_entries": [entry]}
        return {"slug": slug, "expected_version": self.version(slug), "timeline_entries": [entry]}

    def sync(self) -> None:
        """Syncs after edits of our own, while somebody else goes on editing other files."""
        if isinstance(self.rounds, itertools.count):
            chance = random.Random(self.chance.random())
            threading.Thread(target=self.edit, args=(chance,), daemon=True).start()
        for _ in self.rounds:
            written = {}
            for number in self.chance.sample(range(12), 5):
                written[f"mine/f{number}"] = next(self.words)
                self.save(f"mine/f{number}.md", page_text(written[f"mine/f{number}"]))
            run(self.brain, "collection sync", name=FOLDER)
            for slug, word in written.items():
                self.acknowledge(f"{FOLDER}::{slug}", "truth", word)

    def edit(self, chance: random.Random) -> None:
        """Make, replace, move and delete files, as an editor and a person do."""
        for number in itertools.count():
            name = f"theirs/f{chance.randrange(8)}.md"
            path = self.root / name
            kind = chance.choice(["save", "save", "move", "delete"])
            if kind == "save":
                self.save(name, page_text(f"t{number}"))
            elif kind == "move" and path.exists():
                os.replace(path, self.root / "theirs" / f"f{chance.randrange(8)}.md")
            elif kind == "delete" and path.exists():
                path.unlink()
            threading.Event().wait(0.002)

    def save(self, name: str, text: str) -> None:
        """Save by rename and durably, so that neither a torn file nor a lost one can be the editor's doing."""
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        temporary = path.with_name(f".{path.name}.{threading.get_ident()}~")
        temporary.write_text(text + "\n")
        durable_files.sync_file(str(temporary))
        os.replace(temporary, path)
        durable_files.sync_folder(str(path.parent))
        durable_files.sync_folder(str(self.root))

    def migrate(self) -> None:
        """The first look at an older memory brings it forward."""
        self.brain.db  # noqa: B018 (opening is the work)
        self.acknowledge("old/0", "timeline", "old0x")
        attach(self.brain, self.root)
        run(self.brain, "collection sync", name=FOLDER)
        self.put()

    def remember(self) -> None:
        """Things for the notebook, and lines for its log of the day."""
        for _ in self.rounds:
            word = next(self.words)
            if self.chance.random() < 0.3:
                made = run(self.brain, "log", entry=f"{word} begins. {word} ends.")
                self.acknowledge(f"notebook::{made['path'].removesuffix('.md')}", "timeline", word)
            else:
                category = self.chance.choice(["facts", "todos", "lists"])
                more = {"file": "things"} if category == "lists" else {}
                made = run(
                    self.brain, "remember", content=f"{word} begins. {word} ends.", category=category, **more
                )
                self.acknowledge(f"notebook::{made['path'].removesuffix('.md')}", "timeline", word)

    def kb(self) -> None:
        """Nodes of a knowledge base, each a commit."""
        for _ in self.rounds:
            word = next(self.words)
            fields = {"text": f"{word} begins. " * 40, "title": f"Thing {word}", "summary": f"What {word} is"}
            run(self.brain, "kb remember", **fields, force=True)
            self.acknowledge("kb", "node", word)

    def embed(self) -> None:
        """New text, and its vectors: text that has them keeps them."""
        for _ in self.rounds:
            word = next(self.words)
            slug = self.chance.choice(["d0", "d1"])
            run(
                self.brain,
                "put",
                slug=slug,
                compiled_truth=page_text(word, 2),
                expected_version=self.version(slug),
            )
            self.acknowledge(slug, "truth", word)
            run(self.brain, "embed")
            self.acknowledge(slug, "vectors", word)

    def begin(self) -> None:
        """New memories, each in folders of its own."""
        for number in self.rounds:
            word = next(self.words)
            with open_brain(self.home / f"new{number}" / "deep") as brain:
                brain.create(brain.settings.db_path)
                run(brain, "put", slug="d0", content=page_text(word))
                self.acknowledge(f"new{number}", "begun", word)

    def steady(self) -> None:
        """One numbered write after another over the same pages, so many a second, until the file `enough` is there.

        The seed is the pace, and there are as many pages as there would be rounds."""
        pace, pages = float(self.seed), len(list(self.rounds))
        began = time.monotonic()
        for number in itertools.count():
            version = {"expected_version": number // pages} if number >= pages else {}
            run(
                self.brain, "put", slug=f"s{number % pages}", compiled_truth=page_text(str(number)), **version
            )
            say(str(number))
            time.sleep(max(0.0, began + number / pace - time.monotonic()))
            if (self.home / "enough").exists():
                return
