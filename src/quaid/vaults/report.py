"""What became of every file of an import.

Counts and remembers; every file seen has exactly one outcome. Decides nothing.
"""

import os
from collections import Counter
from shlex import quote
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from quaid.vaults import scan

if TYPE_CHECKING:
    from quaid.model.page import Page

Outcome = Literal[
    "new",  # a page was made
    "changed",  # the file changed since it was last read, and the page with it
    "unchanged",  # the page says what the file says
    "edited",  # the file is as it was; the page was edited here since, and left alone
    "conflict",  # both changed, or the page was not made from this file: the page was left as it is
    "too_large",
    "failed",  # Quaid failed on it; a page that was made from it before stays as it is
    "special",  # index.md, schema.md and README.md of the root: kept, but no page
    "sidecar",
    "links_and_facts",  # the file of an export with what no text holds
    "left_out",
]
WORTH_A_NOTE = (scan.LINK, scan.NOT_A_FILE, scan.UNREADABLE, scan.BAD_NAME, scan.TOO_DEEP, scan.GONE)


class Note(NamedTuple):
    """Something about a file that a person should know."""

    path: str
    note: str


class Conflict(NamedTuple):
    path: str
    slug: str
    remedy: str  # the command that takes the file's text


class Written:
    """What the pages hold that an import or a sync wrote."""

    def __init__(self) -> None:
        self.types: Counter[str] = Counter()
        self.tags = self.timeline_entries = 0
        self.page_ids: list[int] = []

    def add(self, page_id: int, page: "Page") -> None:
        self.types[page.type] += 1
        self.tags += len(page.tags)
        self.timeline_entries += len(page.entries)
        self.page_ids.append(page_id)

    def copy(self) -> "Written":
        same = Written()
        same.types, same.page_ids = self.types.copy(), self.page_ids[:]
        same.tags, same.timeline_entries = self.tags, self.timeline_entries
        return same


class ImportReport(NamedTuple):
    folder: str
    import_id: str | None  # none: nothing changed, nothing was written
    files_seen: int
    outcomes: dict[Outcome, int]
    left_out: dict[str, int]  # by reason
    types: dict[str, int]  # of the pages that were made or changed
    tags: int
    timeline_entries: int
    raw_data: int
    notes: tuple[Note, ...]
    conflicts: tuple[Conflict, ...]
    gone: tuple[str, ...]  # files of this folder's last import that are not there now; their pages stay
    links: int = 0  # that no text holds
    facts: int = 0
    links_extracted: int = 0  # that the texts of the pages make which were made or changed


class Tally:
    """The report while it grows."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.files_seen = 0
        self.outcomes: Counter[Outcome] = Counter()
        self.left_out: Counter[str] = Counter()
        self.written = Written()
        self.raw_data = self.links = self.facts = self.links_extracted = 0
        self.notes: list[Note] = []
        self.conflicts: list[Conflict] = []
        self.gone: list[str] = []

    def leave_out(self, path: str, reason: str) -> None:
        self.outcomes["left_out"] += 1
        self.left_out[reason] += 1
        if reason in WORTH_A_NOTE:
            self.note(path, f"left out: {reason}")

    def fail(self, path: str, problem: str) -> None:
        self.outcomes["failed"] += 1
        self.note(path, problem)

    def note(self, path: str, *texts: str) -> None:
        self.notes += [Note(scan.printable(path), text) for text in texts]

    def wrote(self, outcome: Outcome, page_id: int, page: "Page") -> None:
        self.outcomes[outcome] += 1
        self.written.add(page_id, page)

    def conflict(self, path: str, slug: str) -> None:
        self.outcomes["conflict"] += 1
        remedy = f"quaid put {slug} {quote(os.path.join(self.folder, path))}"
        self.conflicts.append(Conflict(scan.printable(path), slug, remedy))

    def report(self, import_id: str | None) -> ImportReport:
        return ImportReport(
            folder=self.folder,
            import_id=import_id,
            files_seen=self.files_seen,
            outcomes={outcome: self.outcomes[outcome] for outcome in get_args(Outcome)},
            left_out=dict(sorted(self.left_out.items())),
            types=dict(self.written.types.most_common()),
            tags=self.written.tags,
            timeline_entries=self.written.timeline_entries,
            raw_data=self.raw_data,
            notes=tuple(sorted(self.notes)),
            conflicts=tuple(sorted(self.conflicts)),
            gone=tuple(sorted(map(scan.printable, self.gone))),
            links=self.links,
            facts=self.facts,
            links_extracted=self.links_extracted,
        )
