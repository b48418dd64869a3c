"""What the files of a folder say, read without any help of Quaid's, and whether an index says the same.

The reader knows as much of markdown as the texts of the fault tests use, and no more. It shares no line with what it
is to judge: an index that loses half of every text would agree with another one that was made by the same mistake.
"""

import random
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.faults.here import FOLDER, files, open_brain, run

from quaid.app import Brain

_ENTRY = re.compile(r"(?m)^- \*\*(\d{4}-\d\d-\d\d)\*\*(?: \|[^—\n]*)? — (.+)$")
_LINK = re.compile(r"\[\[([^\]|#]+)")
_TAGS = re.compile(r"(?m)^tags: \[(.*)\]$")

_RARE = re.compile(r"(?:s\d+n|word\d+x|changed\d+x|w\w+x|first|t)\d+")

_PAGES = """
SELECT p.id, f.relative_path, p.title, p.compiled_truth, p.timeline FROM file_state f JOIN pages p ON p.id = f.page_id
JOIN collections c ON c.id = p.collection_id WHERE p.quarantined_at IS NULL AND c.name = ?
"""
_WITHOUT_A_FILE = """
SELECT p.slug FROM pages p JOIN collections c ON c.id = p.collection_id
WHERE p.quarantined_at IS NULL AND c.name = ? AND p.id NOT IN (SELECT page_id FROM file_state WHERE page_id NOTNULL)
"""
_LED = """
SELECT f.relative_path, p.slug, l.target, q.slug FROM file_state f JOIN pages p ON p.id = f.page_id
JOIN collections c ON c.id = p.collection_id
LEFT JOIN links l ON l.from_page_id = p.id AND l.source_kind = 'wiki_link' LEFT JOIN pages q ON q.id = l.to_page_id
WHERE p.quarantined_at IS NULL AND c.name = ?
"""


class Told(NamedTuple):
    """What one file tells."""

    title: str
    truth: str
    timeline: str
    tags: frozenset[str]
    entries: frozenset[tuple[str, str]]
    """Dates and what happened on them."""
    links: frozenset[str]
    """What it names, whether that is there or not."""


def by_file(path: str, data: bytes) -> Told:
    """What a file tells whoever reads it."""
    text, tags = data.decode(), frozenset[str]()
    if text.startswith("---\n"):
        front, _, text = text.removeprefix("---\n").partition("\n---\n")
        match = _TAGS.search(front)
        tags = frozenset(match[1].split(", ")) if match else tags
    truth, _, timeline = f"\n{text}".partition("\n---\n")
    truth, timeline = truth.strip(), timeline.strip()
    headings = [line.removeprefix("# ") for line in truth.splitlines() if line.startswith("# ")]
    return Told(
        headings[0] if headings else Path(path).stem.capitalize(),
        truth,
        timeline,
        tags,
        frozenset(_ENTRY.findall(timeline)),
        frozenset(_LINK.findall(text)),
    )


def by_index(brain: Brain, name: str = FOLDER) -> dict[str, Told]:
    """What an index tells of each file of a collection."""
    tags, entries, links = (
        defaultdict[int, set[str]](set),
        defaultdict[int, set[tuple[str, str]]](set),
        _links(brain),
    )
    for page, tag in brain.db.rows("SELECT page_id, tag FROM tags"):
        tags[page].add(tag)
    for page, date, summary in brain.db.rows("SELECT page_id, date, summary FROM timeline_entries"):
        entries[page].add((date, summary))
    return {
        path: Told(
            title, truth, timeline, frozenset(tags[page]), frozenset(entries[page]), frozenset(links[page])
        )
        for page, path, title, truth, timeline in brain.db.rows(_PAGES, (name,))
    }


def _links(brain: Brain) -> defaultdict[int, set[str]]:
    links = defaultdict[int, set[str]](set)
    for page, target in brain.db.rows(
        "SELECT from_page_id, target FROM links WHERE source_kind = 'wiki_link'"
    ):
        links[page].add(target)
    return links


def check_texts(brain: Brain, root: Path) -> None:
    """The index tells of every file what the file tells, and of no other."""
    there, index = files(root), by_index(brain)
    without = brain.db.rows(_WITHOUT_A_FILE, (FOLDER,))
    assert not without, f"pages without a file: {without}"
    assert index.keys() == there.keys(), f"in one alone: {sorted(index.keys() ^ there.keys())}"
    for path, data in there.items():
        by_hand = by_file(path, data)
        assert index[path] == by_hand, f"{path}: the index says {index[path]}, the file {by_hand}"


def check_words(brain: Brain, root: Path, words: Iterable[str]) -> None:
    """A search for a word finds the pages whose files hold it, and no others; for one that is in no file, none."""
    slugs = {path: slug for path, slug, *_ in brain.db.rows(_LED, (FOLDER,))}
    there = {path: _words(path, data) for path, data in files(root).items()}
    for word in words:
        hits = run(brain, "search", query=word, limit=100)["hits"]
        results = {hit["slug"] for hit in hits if hit["collection"] == FOLDER}
        held_by = {slugs[path] for path, held in there.items() if word in held}
        assert results == held_by, f"{word} is in {sorted(held_by)}, and found in {sorted(results)}"


def _words(path: str, data: bytes) -> set[str]:
    """What a search finds a file by: its text and its name, but not what stands in its front matter."""
    file = by_file(path, data)
    return set(re.findall(r"\w+", f"{path} {file.title} {file.truth} {file.timeline}".lower()))


def some_word(root: Path, chance: random.Random) -> str:
    """A word that few files hold; one that none does, where all are empty."""
    held = [
        word for path, data in files(root).items() for word in _words(path, data) if _RARE.fullmatch(word)
    ]
    return chance.choice(sorted(held)) if held else "nowhere9"


def check_like_new(brain: Brain, root: Path, home: Path) -> None:
    """The index names pages and leads links as one does that is made anew of the same folder, in a home of its own.

    A page that was renamed is still found by its old name, which no folder can tell: such links are passed over."""
    home.mkdir()
    with open_brain(home) as other:
        other.create(other.settings.db_path)
        run(other, "collection add", name=FOLDER, path=str(root))
        new, old = (set(item.db.rows(_LED, (FOLDER,))) for item in (other, brain))
    shutil.rmtree(home)
    slugs = [slug for (slug,) in brain.db.rows("SELECT slug FROM redirects")]
    former = {*slugs, *(slug.rpartition("/")[2] for slug in slugs)}
    differing = [row for row in old ^ new if row[2] not in former]
    assert not differing, (
        f"old {[row for row in differing if row in old]}, new {[row for row in differing if row in new]}"
    )
