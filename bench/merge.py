"""Merge pairs of edits of one page: by parts, and by lines with `git merge-file`; compare with the true conflicts."""

import os
import random
import shutil
import subprocess
import tempfile
import time
from typing import Any, NamedTuple

from bench.table import show, verdict
from quaid.formats import markdown

PAIRS = 500
WORDS = (
    "Acme Braga Lisbon Mira Porto answer budget call chess contract design draft early fair garden"
    " invoice kitchen lease letter meeting moved offer office paper plan price release review school"
    " sister spring summer talk team tea ticket train visit week winter work"
).split()


class Version(NamedTuple):
    """A page as its parts. Each block and entry has a number, which stays when its text changes."""

    front: dict[str, Any]
    blocks: dict[float, str]
    entries: dict[str, str]

    def text(self) -> str:
        blocks = "\n\n".join(text for _, text in sorted(self.blocks.items()))
        entries = "\n".join(text for _, text in sorted(self.entries.items(), reverse=True))
        return markdown.render(self.front, blocks.replace("\n\n- ", "\n- "), entries)


def sentence(rng: random.Random, least: int = 5) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randrange(least, least + 8))).capitalize() + "."


def make_page(rng: random.Random) -> Version:
    front = {
        "title": "Mira",
        "type": "person",
        "status": "friend",
        "city": "Lisbon",
        "tags": ["climbing", "tea"],
    }
    blocks: dict[float, str] = {0: "# Mira"}
    for number in range(1, rng.randrange(5, 12)):
        kind = rng.choice(["{}", "{}", "- {}", "- {}", "## {}"])
        blocks[number] = kind.format(sentence(rng))
    days = sorted(
        {f"2026-{rng.randrange(1, 9):02}-{rng.randrange(1, 28):02}" for _ in range(rng.randrange(2, 8))}
    )
    return Version(front, blocks, {day: f"- **{day}** — {sentence(rng)}" for day in days})


def change(rng: random.Random, base: Version, side: str) -> tuple[Version, dict[Any, Any]]:
    """Return an edited version, and each changed block or key with its new value (None if removed)."""
    front, blocks, entries = dict(base.front), dict(base.blocks), dict(base.entries)
    changed: dict[Any, Any] = {}
    for _ in range(rng.randrange(1, 4)):
        kind = rng.choices(
            ["entry", "key", "tag", "block", "new block", "removed block"], [8, 4, 3, 4, 4, 1]
        )[0]
        if kind == "entry":
            day = f"2026-{rng.randrange(8, 13):02}-{rng.randrange(1, 28):02}"
            entries[f"{day} {side} {len(entries)}"] = f"- **{day}** — {sentence(rng)}"
        elif kind == "key":
            key = rng.choice(["status", "city", "phone", "birthday", "company"])
            front[key] = changed[key] = " ".join(rng.choices(WORDS, k=3))
        elif kind == "tag":
            front["tags"] = [*front["tags"], f"{rng.choice(WORDS).lower()}-{side}"]
        elif kind == "new block":
            place = rng.choice([*base.blocks, max(base.blocks)])
            blocks[place + rng.random() / 2 + 0.25] = rng.choice(["{}", "- {}"]).format(sentence(rng))
        else:
            place = rng.choice(list(base.blocks)[1:])
            if kind == "removed block":
                blocks.pop(place, None)
                changed[place] = None
            else:
                mark = base.blocks[place].partition(" ")[0]
                start = f"{mark} " if mark in ("-", "##") else ""
                blocks[place] = changed[place] = start + sentence(rng)
    return Version(front, blocks, entries), changed


def git_conflicts(folder: str, texts: list[str]) -> bool:
    """Return True if `git merge-file` leaves a conflict."""
    paths = [os.path.join(folder, name) for name in ("ours", "base", "theirs")]
    for path, text in zip(paths, (texts[1], texts[0], texts[2]), strict=True):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    done = subprocess.run(["git", "merge-file", "-p", "-q", *paths], capture_output=True)
    return done.returncode > 0


def additions(base: Version, version: Version) -> set[str]:
    """Return the texts that a version added to blocks, entries and tags."""
    texts = {*version.blocks.values(), *version.entries.values()} - {
        *base.blocks.values(),
        *base.entries.values(),
    }
    return texts | {*version.front["tags"]}


class Counts:
    true = by_parts = by_lines = missed = false = lost = 0


def measure(pairs: int, seed: int = 20) -> tuple[Counts, list[float]]:
    rng = random.Random(seed)
    counts, times = Counts(), []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(pairs):
            base = make_page(rng)
            (ours, our_changes), (theirs, their_changes) = change(rng, base, "a"), change(rng, base, "b")
            both = our_changes.keys() & their_changes.keys()
            is_true = any(our_changes[key] != their_changes[key] for key in both)
            texts = [base.text(), ours.text(), theirs.text()]
            started = time.process_time()
            merged = markdown.merge_files(*texts)
            times.append(time.process_time() - started)
            assert merged is not None
            text, conflicts = merged
            counts.true += is_true
            counts.by_parts += conflicts > 0
            counts.missed += is_true and not conflicts
            counts.false += bool(conflicts) and not is_true
            counts.lost += sum(added not in text for added in additions(base, ours) | additions(base, theirs))
            counts.by_lines += git_conflicts(folder, texts)
    return counts, sorted(times)


def main() -> None:
    if not shutil.which("git"):
        print("git is not installed; nothing is measured")
        return
    counts, times = measure(PAIRS)
    show(
        f"Merging {PAIRS} pairs of edits",
        [
            ("pairs that truly conflict", f"{counts.true}", ""),
            (
                "pairs with conflicts, merged by parts",
                f"{counts.by_parts}",
                verdict(counts.by_parts, counts.true),
            ),
            ("pairs with conflicts, `git merge-file`", f"{counts.by_lines}", ""),
            ("true conflicts missed", f"{counts.missed}", verdict(counts.missed, 0)),
            ("conflicts that are none", f"{counts.false}", verdict(counts.false, 0)),
            ("additions lost", f"{counts.lost}", verdict(counts.lost, 0)),
            ("one merge, CPU, p50", f"{times[len(times) // 2] * 1000:.2f} ms", ""),
            ("one merge, CPU, p95", f"{times[int(len(times) * 0.95)] * 1000:.2f} ms", ""),
        ],
        ("what", "figure", "target"),
    )
