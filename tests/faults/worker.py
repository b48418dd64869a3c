"""A client that works on a memory until it is killed: `worker.py HOME KIND SEED`.

Prints "ready", then a line for each write that was acknowledged to it: the page, how it was written, and the word.
"""

import itertools
import os
import random
import sys
import threading
from pathlib import Path
from typing import Any

from tests.faults.here import FOLDER, open_brain, run, saying

from quaid.brain import Brain

DAY = "2026-04-25"


class Worker:
    def __init__(self, home: Path, seed: str) -> None:
        self.home = home
        self.root = home / FOLDER
        self.chance = random.Random(seed)
        self.words = (f"w{seed}x{number}" for number in itertools.count())
        self.brain: Brain = open_brain(home)

    def acknowledge(self, slug: str, how: str, word: str) -> None:
        sys.stdout.write(f"{slug} {how} {word}\n")
        sys.stdout.flush()

    def version(self, slug: str) -> int:
        return int(run(self.brain, "get", slug=slug)["version"])

    def put(self) -> None:
        """Edits of pages that are there, with a file and without, and new pages of both kinds."""
        while True:
            slug = self.chance.choice([f"{FOLDER}::p{number}" for number in range(4)] + ["d0", "d1"])
            word = next(self.words)
            kind = self.chance.choice(["truth", "truth", "timeline", "new"])
            if kind == "truth":
                text = saying(word, self.chance.choice([1, 30, 3000]))
                run(self.brain, "put", slug=slug, compiled_truth=text, expected_version=self.version(slug))
            elif kind == "timeline":
                run(self.brain, "timeline-add", slug=slug, date=DAY, summary=f"{word} begins. {word} ends.")
            else:
                place = self.chance.choice([f"{FOLDER}::new/{word}/page", f"new/{word}"])
                run(self.brain, "put", slug=place, content=saying(word))
                slug = place
            self.acknowledge(slug, kind, word)

    def ingest(self) -> None:
        """Sources that change several pages at once, in the folder and out of it."""
        while True:
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
            return {"slug": slug, "content": saying(word), "timeline_entries": [entry]}
        return {"slug": slug, "expected_version": self.version(slug), "timeline_entries": [entry]}

    def sync(self) -> None:
        """Syncs after edits of our own, while somebody else goes on editing other files."""
        threading.Thread(target=self.edit, args=(random.Random(self.chance.random()),), daemon=True).start()
        while True:
            written = {}
            for number in self.chance.sample(range(12), 5):
                written[f"mine/f{number}"] = next(self.words)
                self.save(f"mine/f{number}.md", saying(written[f"mine/f{number}"]))
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
                self.save(name, saying(f"t{number}"))
            elif kind == "move" and path.exists():
                os.replace(path, self.root / "theirs" / f"f{chance.randrange(8)}.md")
            elif kind == "delete" and path.exists():
                path.unlink()
            threading.Event().wait(0.002)

    def save(self, name: str, text: str) -> None:
        """Save by rename, so that a torn file cannot be the editor's doing."""
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        temporary = path.with_name(f".{path.name}.{threading.get_ident()}~")
        temporary.write_text(text + "\n")
        os.replace(temporary, path)

    def migrate(self) -> None:
        """The first look at an older memory brings it forward."""
        self.brain.db  # noqa: B018 (opening is the work)
        self.acknowledge("old/0", "timeline", "old0x")
        run(self.brain, "collection sync", name=FOLDER)
        self.put()


if __name__ == "__main__":
    _, home, kind, seed = sys.argv
    worker = Worker(Path(home), seed)
    if kind != "migrate":
        worker.brain.db  # noqa: B018
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    getattr(worker, kind)()
