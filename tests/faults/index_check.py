"""Compare an index with its folder, using a reader of markdown that shares no code with Quaid.

The reader supports only the markdown that the fault tests use. Sharing code would hide faults: an index that lost
half of every text would agree with a second one built by the same code.
"""

import random
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.faults.workspace import FOLDER, files, open_brain, run

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


class FileContent(NamedTuple):
    """Title, texts, tags, timeline entries and links of one file."""

    title: str
    truth: str
    timeline: str
    tags: frozenset[str]
    entries: frozenset[tuple[str, str]]
    """Dates and summaries."""
    links: frozenset[str]
    """Link targets, resolved or not."""


def parse_file(path: str, data: bytes) -> FileContent:
    """Parse a file."""
    text, tags = data.decode(), frozenset[str]()
    if text.startswith("---\n"):
        front, _, text = text.removeprefix("---\n").partition("\n---\n")
        match = _TAGS.search(front)
        tags = frozenset(match[1].split(", ")) if match else tags
    truth, _, timeline = f"\n{text}".partition("\n---\n")
    truth, timeline = truth.strip(), timeline.strip()
    headings = [line.removeprefix("# ") for line in truth.splitlines() if line.startswith("# ")]
    return FileContent(
        headings[0] if headings else Path(path).stem.capitalize(),
        truth,
        timeline,
        tags,
        frozenset(_ENTRY.findall(timeline)),
        frozenset(_LINK.findall(text)),
    )


def indexed_files(brain: Brain, name: str = FOLDER) -> dict[str, FileContent]:
    """Return the indexed content of each file of a collection."""
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
        path: FileContent(
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
    """Assert that the index holds the content of every file, and no other pages."""
    there, index = files(root), indexed_files(brain)
    without = brain.db.rows(_WITHOUT_A_FILE, (FOLDER,))
    assert not without, f"pages without a file: {without}"
    assert index.keys() == there.keys(), f"in one alone: {sorted(index.keys() ^ there.keys())}"
    for path, data in there.items():
        by_hand = parse_file(path, data)
        assert index[path] == by_hand, f"{path}: the index says {index[path]}, the file {by_hand}"


def check_words(brain: Brain, root: Path, words: Iterable[str]) -> None:
    """Assert that a search for each word returns exactly the pages whose files contain it."""
    slugs = {path: slug for path, slug, *_ in brain.db.rows(_LED, (FOLDER,))}
    there = {path: _words(path, data) for path, data in files(root).items()}
    for word in words:
        hits = run(brain, "search", query=word, limit=100)["hits"]
        results = {hit["slug"] for hit in hits if hit["collection"] == FOLDER}
        held_by = {slugs[path] for path, held in there.items() if word in held}
        assert results == held_by, f"{word} is in {sorted(held_by)}, and found in {sorted(results)}"


def _words(path: str, data: bytes) -> set[str]:
    """Return the searchable words of a file: its text and its name, without front matter."""
    file = parse_file(path, data)
    return set(re.findall(r"\w+", f"{path} {file.title} {file.truth} {file.timeline}".lower()))


def some_word(root: Path, chance: random.Random) -> str:
    """Return a word that few files contain, or one that none does if all are empty."""
    held = [
        word for path, data in files(root).items() for word in _words(path, data) if _RARE.fullmatch(word)
    ]
    return chance.choice(sorted(held)) if held else "nowhere9"


def check_like_new(brain: Brain, root: Path, home: Path) -> None:
    """Assert that slugs and link targets equal those of a new index of the same folder.

    Links to former slugs of renamed pages are skipped: a new index cannot resolve them."""
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
