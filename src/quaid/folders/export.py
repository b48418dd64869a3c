"""Export pages to a folder, and restore links and facts from an export.

The links-and-facts file of an export contains the links and facts that are not in any page's text.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Container
from contextlib import suppress
from functools import partial
from typing import Any, Literal, NamedTuple

from quaid import errors
from quaid.folders import attachments, indexer, scanner
from quaid.folders.atomic_write import FolderWriter
from quaid.folders.scanner import Folder, Progress
from quaid.formats import foreign_notes, markdown
from quaid.formats.note_writers import (
    NameTable,
    Note,
    NoteRef,
    free_okf_stem,
    is_okf_name_taken,
    logseq_page,
    logseq_path,
    obsidian_facts,
    obsidian_links,
    okf_concept,
    okf_index,
    okf_links,
    okf_reserved,
    org_page,
)
from quaid.model import dates, page as page_model, slug
from quaid.model.facts import FACT_TEXT_LIMITS, FactInput, check_fact
from quaid.model.links import LONGEST_CONTEXT, normalize_relationship
from quaid.model.plain_text import shorten
from quaid.storage import (
    checks,
    collections,
    facts as assertions,
    history,
    links,
    page_edits,
    pages,
)
from quaid.storage.collections import DEFAULT_COLLECTION, Collection, Collections
from quaid.storage.conversations import Conversations
from quaid.storage.facts import FactRow
from quaid.storage.history import Imports
from quaid.storage.pages import PageRow
from quaid.storage.sqlite.connection import Database, Transaction
from quaid.storage.sqlite.errors import write_alone

DATA_FOLDER = ".quaid"
LINKS_AND_FACTS_PATH = f"{DATA_FOLDER}/links-and-facts.json"
LINKS_AND_FACTS_FORMAT = 1
MAX_LINKS_AND_FACTS_BYTES = 32 * 1024 * 1024
"""Maximum size of the links-and-facts file in bytes, enough for some hundred thousand links and facts."""

MAX_JOINED_LENGTH = 100_000
"""Maximum number of characters in each of these fields: a fact's sources, a fact's evidence, a link's context."""

SHOWN_PROBLEMS = 20
MAX_PROBLEM_LENGTH = 300
_TIMESTAMP = re.compile(r"[0-9-]{10}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z")
_LINK_FIELDS = ("relationship", "context", "valid_from", "valid_until", "created_at")
_FACT_FIELDS = (
    *("subject", "predicate", "object", "valid_from", "valid_until", "confidence", "asserted_by"),
    *("source_ref", "evidence_text"),
)


def render_links_and_facts(
    links: list[tuple[str, str, Any]], facts: list[tuple[str, FactRow]], places: dict[str, str]
) -> bytes:
    """Render the links-and-facts file.

    `links` are the links, each with the addresses of its two pages. `facts` are the facts, each with the address
    of its page. `places` maps page addresses to file paths.
    """
    link_records = [
        {"from": start, "to": end, **{name: getattr(link, name) for name in _LINK_FIELDS}}
        for start, end, link in links
    ]
    positions = {fact.id: number for number, (_, fact) in enumerate(facts)}
    fact_records = [
        {
            "page": page,
            **{name: getattr(fact, name) for name in (*_FACT_FIELDS, "created_at")},
            "supersedes": positions.get(fact.supersedes_id or 0),
        }
        for page, fact in facts
    ]
    named = {page for start, end, _ in links for page in (start, end)} | {page for page, _ in facts}
    files = {page: places[page] for page in sorted(named) if places.get(page, f"{page}.md") != f"{page}.md"}
    parts = [
        f'"format": {LINKS_AND_FACTS_FORMAT}',
        f'"links": {_json_lines(link_records)}',
        f'"facts": {_json_lines(fact_records)}',
    ]
    if files:
        parts.append(f'"files": {json.dumps(files, indent=1)}')
    return ("{" + ",\n".join(parts) + "}\n").encode()


def _json_lines(records: list[dict[str, Any]]) -> str:
    """Render a JSON list with one line per record."""
    if not records:
        return "[]"
    return "[\n" + ",\n".join(json.dumps(record, ensure_ascii=False) for record in records) + "\n]"


class ImportedLink(NamedTuple):
    start: str
    end: str
    relationship: str
    context: str
    valid_from: str | None
    valid_until: str | None
    created_at: str | None


class ImportedFact(NamedTuple):
    page: str
    input: FactInput
    created_at: str | None
    supersedes: int | None
    """Index of the superseded fact in the list of facts."""


class LinksAndFacts(NamedTuple):
    """The parsed links-and-facts file.

    Records that cannot be parsed are None, with an entry in `problems`.
    """

    links: list[ImportedLink | None]
    facts: list[ImportedFact | None]
    files: dict[str, str]
    """The file path of each page by page address, for files that are not named after the address."""
    problems: list[str]


def parse_links_and_facts(data: bytes) -> LinksAndFacts:
    """Parse an untrusted links-and-facts file.

    Raise ValueError with the reason if the whole file is invalid.
    """
    value = indexer.parse_json(data)
    if not isinstance(value, dict) or "format" not in value:
        raise ValueError('it is no object with a "format"')
    if value["format"] is True or value["format"] != LINKS_AND_FACTS_FORMAT:
        raise ValueError(
            f"its format is {str(value['format'])[:20]}, and this Quaid reads format {LINKS_AND_FACTS_FORMAT}"
        )
    problems: list[str] = []
    parsed_links = _parse_records(value, "links", _parse_link, problems)
    parsed_facts = _parse_records(value, "facts", _parse_fact, problems)
    files = value.get("files")
    named = files.items() if isinstance(files, dict) else ()
    paths = {name: path for name, path in named if isinstance(path, str)}
    return LinksAndFacts(parsed_links, parsed_facts, paths, problems)


def _parse_records(
    value: dict[str, Any],
    name: str,
    understand: Callable[[dict[str, Any], str], Any],
    problems: list[str],
) -> list[Any]:
    records = value.get(name, [])
    if not isinstance(records, list):
        raise ValueError(f"its {name} are no list")
    parsed: list[Any] = []
    for number, record in enumerate(records):
        where = f"{name}[{number}]"
        try:
            if not isinstance(record, dict):
                raise errors.InvalidArgument(name=where, problem="is no object")
            parsed.append(understand(record, where))
        except errors.QuaidError as error:
            parsed.append(None)
            problems.append(_problem_text(error, where))
    return parsed


def _problem_text(error: Exception, where: str) -> str:
    text = str(error)
    text = text if where in text else f"{where}: {text}"
    return text[:MAX_PROBLEM_LENGTH].rstrip(".")


def _parse_link(record: dict[str, Any], where: str) -> ImportedLink:
    relationship = normalize_relationship(
        _text_field(record, "relationship", where, FACT_TEXT_LIMITS["predicate"])
    )
    if not relationship:
        raise errors.InvalidArgument(name=f"{where}.relationship", problem="is missing")
    since, until = (_date_field(record, name, where) for name in ("valid_from", "valid_until"))
    dates.check_interval(since, until, f"{where}.valid_until")
    context = _text_field(record, "context", where, MAX_JOINED_LENGTH).replace("\0", " ")
    return ImportedLink(
        _address_field(record, "from", where),
        _address_field(record, "to", where),
        relationship,
        shorten(" ".join(context.split()), LONGEST_CONTEXT),
        since,
        until,
        _timestamp_field(record),
    )


def _parse_fact(record: dict[str, Any], where: str) -> ImportedFact:
    page = _address_field(record, "page", where)
    values = {name: record.get(name) for name in _FACT_FIELDS}
    for name, value in values.items():
        if isinstance(value, str) and "\0" in value:
            raise errors.InvalidArgument(name=f"{where}.{name}", problem="holds a NUL character")
    fact = check_fact({**values, "source_ref": "", "evidence_text": ""}, where)._replace(
        source_ref=_text_field(record, "source_ref", where, MAX_JOINED_LENGTH),
        evidence_text=_text_field(record, "evidence_text", where, MAX_JOINED_LENGTH),
    )
    supersedes = record.get("supersedes")
    if supersedes is not None and (isinstance(supersedes, bool) or not isinstance(supersedes, int)):
        raise errors.InvalidArgument(name=f"{where}.supersedes", problem="must be the place of another fact")
    return ImportedFact(page, fact, _timestamp_field(record), supersedes)


def _text_field(record: dict[str, Any], name: str, where: str, longest: int) -> str:
    value = record.get(name) or ""
    if not isinstance(value, str):
        raise errors.InvalidArgument(name=f"{where}.{name}", problem="must be text")
    if len(value) > longest:
        problem = f"has {len(value):,} characters; {longest:,} is the most"
        raise errors.InvalidArgument(name=f"{where}.{name}", problem=problem)
    return value.strip()


def _date_field(record: dict[str, Any], name: str, where: str) -> str | None:
    value = record.get(name)
    return None if value is None else dates.check_date(value, f"{where}.{name}")


def _timestamp_field(record: dict[str, Any]) -> str | None:
    """Return the creation time, or None if it is missing or invalid."""
    value = record.get("created_at")
    if isinstance(value, str) and _TIMESTAMP.fullmatch(value) and dates.is_date(value[:10]):
        return value
    return None


def _address_field(record: dict[str, Any], name: str, where: str) -> str:
    """Return the page address in a field, in the form that `slug.address` writes.

    Raise an error if it is invalid.
    """
    value = _text_field(record, name, where, 2 * slug.LONGEST + 2)
    if not value:
        raise errors.InvalidArgument(name=f"{where}.{name}", problem="is missing")
    collection, address = slug.split_address(value)
    slug.check(address)
    if collection is not None:
        slug.check(collection)
    return value


PageKey = tuple[int, str, str]
"""Id, collection and slug of a page."""


class LinksAndFactsImport:
    """Restores links and facts from a parsed links-and-facts file within a transaction.

    Records that exist already or are invalid are skipped. Pages are cached, because a file may refer to many
    thousands of pages.
    """

    def __init__(
        self, db: Database, tx: Transaction, find: Callable[[str], PageKey | None], now: str
    ) -> None:
        self.db = db
        self.tx = tx
        self.find = find
        self.now = now
        self.pages: dict[str, PageKey | None] = {}
        self.links = self.facts = 0
        self.restored_ids: set[int] = set()
        """Ids of links restored by this import."""
        self.changed: dict[int, PageKey] = {}
        """Pages that received new links or facts, by id."""
        self.problems: list[str] = []
        self.missing: dict[str, int] = {}
        """For each address without a page, the number of links and facts that refer to it."""
        self.had_no_facts: dict[tuple[int, str, str], bool] = {}
        """By page id, subject and predicate: True if the page had no such facts before this import."""

    def run(
        self, contents: LinksAndFacts, only: set[str] | None = None, written: Container[str] = ()
    ) -> None:
        """Restore all records or, with `only`, those that belong to a page of the default collection in `only`.

        `only` contains slugs. A link belongs to both of its pages. The versions of changed pages are incremented,
        except for pages of the default collection with a slug in `written`.
        """
        self.problems += contents.problems
        for number, link in enumerate(contents.links):
            if link:
                self._alone(f"links[{number}]", partial(self._link, link, f"links[{number}]", only))
        ids: dict[int, int] = {}
        for number, fact in enumerate(contents.facts):
            if fact:
                self._alone(f"facts[{number}]", partial(self._fact, fact, number, ids, only))
        for number, new in ids.items():
            fact = contents.facts[number]
            if fact and fact.supersedes is not None:
                old = ids.get(fact.supersedes)
                if old is not None and not assertions.mark_superseded(self.tx, new, old):
                    self.problems.append(
                        f"facts[{number}].supersedes: it cannot supersede that one; left out"
                    )
        for address, times in self.missing.items():
            what = "1 link or fact names it" if times == 1 else f"{times} links and facts name it"
            self.problems.append(f"there is no page {address}; {what}")
        for _, collection, address in self.changed.values():
            if collection != DEFAULT_COLLECTION or address not in written:
                page_edits.touch(self.tx, address, expected_version=None, now=self.now, collection=collection)

    def _alone(self, where: str, write: Callable[[], None]) -> None:
        """Run `write`, which adds one record, in a savepoint, so that an error affects only that record."""
        if failure := write_alone(self.tx, write):
            self.problems.append(_problem_text(failure, where))

    def _page(self, address: str) -> PageKey | None:
        if address not in self.pages:
            self.pages[address] = self.find(address)
        key = self.pages[address]
        if key is None:
            self.missing[address] = self.missing.get(address, 0) + 1
        return key

    def _link(self, link: ImportedLink, where: str, only: set[str] | None) -> None:
        start, end = self._page(link.start), self._page(link.end)
        if start is None or end is None or not (_is_selected(start, only) or _is_selected(end, only)):
            return
        if start[0] == end[0]:
            raise errors.InvalidArgument(name=where, problem="leads from a page to itself")
        created = self._created(link.created_at)
        if any(
            existing.valid_until == link.valid_until
            or (existing.created_at == created and existing.id not in self.restored_ids)
            for existing in links.between(self.db, start[0], end[0], link.relationship)
            if existing.source_kind != links.FROM_TEXT and existing.valid_from == link.valid_from
        ):
            return  # the link exists already; it may have been closed since it was restored
        try:
            new = links.add(
                self.tx,
                start[0],
                end[0],
                relationship=link.relationship,
                context=link.context,
                valid_from=link.valid_from,
                valid_until=link.valid_until,
                now=created,
                beside_texts=True,
            )
        except errors.LinkOverlaps as error:
            raise errors.InvalidArgument(name=where, problem=f"is left out. {error}") from None
        self.restored_ids.add(new)
        self.links += 1
        self.changed[start[0]] = start

    def _fact(self, fact: ImportedFact, number: int, ids: dict[int, int], only: set[str] | None) -> None:
        page = self._page(fact.page)
        if page is None or not _is_selected(page, only):
            return
        added = assertions.restore_fact(
            self.tx, page[0], fact.input, self._created(fact.created_at), self.now, self.had_no_facts
        )
        ids[number] = added.id
        self.facts += added.added
        if added.changed:
            self.changed[page[0]] = page

    def _created(self, created: str | None) -> str:
        return min(created or self.now, self.now)


def restore_links_and_facts(
    db: Database, collection: Collection, now: str
) -> tuple[int, int, tuple[str, ...]]:
    """Restore links and facts of a collection's pages from the links-and-facts file of an export.

    The file is in the collection's folder. If that folder contains no `.quaid` folder, the file in the parent
    folder is used, because an export of several collections puts a single file beside their folders. Return
    the number of restored links, the number of restored facts, and the problems.
    """
    root, prefix = collection.root or "", ""
    above, folder_name = os.path.split(root)
    if not os.path.lexists(os.path.join(root, DATA_FOLDER)):
        root, prefix = above, f"{folder_name}/"
    if not os.path.lexists(os.path.join(root, LINKS_AND_FACTS_PATH)):
        return 0, 0, ()
    try:
        with Folder(root) as folder:
            data = folder.read(LINKS_AND_FACTS_PATH, MAX_LINKS_AND_FACTS_BYTES)
        if len(data) > MAX_LINKS_AND_FACTS_BYTES:
            raise ValueError(f"it is too large: {MAX_LINKS_AND_FACTS_BYTES:,} bytes are allowed")
        contents = parse_links_and_facts(data)
    except (OSError, errors.QuaidError, ValueError) as error:
        return 0, 0, (f"not taken in: {error}".rstrip("."),)

    def path_of(address: str) -> str:
        return contents.files.get(address) or address.replace("::", "/", 1) + ".md"

    def is_inside(*addresses: str) -> bool:
        return all(path_of(address).startswith(prefix) for address in addresses)

    contents = contents._replace(
        links=[link if link and is_inside(link.start, link.end) else None for link in contents.links],
        facts=[fact if fact and is_inside(fact.page) else None for fact in contents.facts],
    )

    def work(tx: Transaction) -> tuple[int, int, tuple[str, ...]]:
        def find(address: str) -> PageKey | None:
            file = collection.indexed_file(tx, path_of(address).removeprefix(prefix))
            if file is None or file.page_id is None or file.slug is None:
                return None
            return file.page_id, collection.name, file.slug

        restored = LinksAndFactsImport(db, tx, find, now)
        restored.run(contents)
        return restored.links, restored.facts, tuple(shorten_problems(restored.problems))

    return db.write(work)


def _is_selected(page: PageKey, only: set[str] | None) -> bool:
    return only is None or (page[1] == DEFAULT_COLLECTION and page[2] in only)


def shorten_problems(problems: list[str]) -> list[str]:
    """Return the first SHOWN_PROBLEMS problems and a line with the number of the rest, or all if only one is left."""
    more = len(problems) - SHOWN_PROBLEMS
    return [*problems[:SHOWN_PROBLEMS], f"and {more:,} more problems"] if more > 1 else problems


# Export

MAX_EXPORT_NAME = 240  # bytes; file systems allow 255, including the extension
NO_TITLE = "\0"
SHOWN_IMPORTS = 3

PagesByType = dict[str, list[tuple[str, str]]]
"""Titles and paths of the pages of one collection, by type."""


class ExportedCollection(NamedTuple):
    name: str
    folder: str
    """Path of the folder within the export; "" for the root of the export."""
    pages: int


class ExportReport(NamedTuple):
    """The numbers of pages and files that an export wrote, and the pages that it could not export."""

    folder: str
    import_id: str | None  # set for a raw export
    pages: int
    sidecars: int
    files: int
    bytes: int
    unread: tuple[str, ...] = ()  # pages that could not be read because the database is damaged
    collections: tuple[ExportedCollection, ...] = ()
    quarantined: int = 0
    """Number of pages in quarantine (pages whose file is gone or ignored), which are not exported."""
    links: int = 0
    """Number of exported links that are not in any page's text."""
    facts: int = 0
    trouble: str = ""
    """Why links or facts are missing from the export or cannot be imported from it, or ""."""
    format: str = "markdown"

    @property
    def exit_status(self) -> int:
        return 1 if self.unread or self.trouble else 0


ExportFormat = Literal["obsidian", "logseq", "org-roam", "okf", "jsonl"]
FORMATS_WITH_DATA = ("markdown", "obsidian", "okf")
"""Formats that store raw data, links and facts in separate files, which an import can read."""

JSONL_FILE_BYTES = 32 * 1024 * 1024
"""Maximum size of a file of JSON lines in bytes. Only a file with a single line may be larger."""
TURNS_PER_READ = 500


def export_pages(
    db: Database,
    target: str,
    to: ExportFormat | None = None,
    *,
    force: bool,
    progress: Progress,
    collection: str | None = None,
) -> ExportReport:
    """Export all pages, or those of one collection, with their images, raw data, links and facts.

    Without `to`, pages are written as Markdown, with an index file if the default collection is exported. Formats
    of other programs may have no place for some of the data. A page that cannot be read is reported and skipped, so
    that the rest of a damaged database can be saved.
    """
    if collection is not None:
        Collections(db).require(collection)
    with FolderWriter(target, force=force) as writer:
        run = _PageExport(db, writer, to or "markdown", collection)
        run.run(progress)
        report = run.report()
    return report._replace(quarantined=_count_quarantined(db, collection))


class _PageExport:
    """One export of pages, as Markdown or in the format of another program."""

    def __init__(self, db: Database, writer: FolderWriter, to: str, collection: str | None) -> None:
        self.db, self.writer, self.to, self.collection = db, writer, to, collection
        addresses, lost = checks.readable_addresses(db)
        self.addresses = [address for address in addresses if collection in (None, address[0])]
        """Collection, type and slug of each page to export."""
        self.unread = [f"number {page_id}" for page_id in lost]
        self.folders = {collection: ""} if collection else _collection_folders(self.addresses)
        self.roots = {row.name: row.root for row in Collections(db).all()}
        self.written: dict[str, PagesByType] = {name: {} for name in self.folders}
        self.with_data: list[str] = []
        self.places: dict[str, str] = {}
        self.links: list[tuple[str, str, Any]] = []
        """Links that are in no page's text, each preceded by the addresses of its two pages."""
        self.facts: list[tuple[str, FactRow]] = []
        self.trouble = ""
        self._links_from: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        self._fact_lines: defaultdict[str, list[str]] = defaultdict(list)
        self.names = NameTable()
        self.refs: dict[str, NoteRef] = {}
        self._concepts: dict[str, list[tuple[str, str, str]]] = {"": []}  # entries of index files, by folder
        self._renamed: dict[
            str, str
        ] = {}  # new paths of the pages of a bundle with a reserved name, by old path
        self._lines: list[bytes] = []
        self._size = self._files = 0
        self._file_name = "memory"

    def run(self, progress: Progress) -> None:
        self._read_links_and_facts()
        for name, _, page_slug in self.addresses if self.to != "markdown" else ():
            with suppress(errors.DamagedDatabase):
                if stored := pages.find(self.db, page_slug, name):
                    self._name_page(stored)
        for done, (name, kind, page_slug) in enumerate(self.addresses):
            progress(done, len(self.addresses), "Exporting")
            try:
                stored = pages.find(self.db, page_slug, name)
                data = pages.read_raw_data(self.db, stored.id) if stored else []
            except errors.DamagedDatabase:
                self.unread.append(slug.address(name, page_slug))
                continue
            if stored is not None:  # else it was deleted in the meantime
                path = self._write_page(stored, data)
                self.written[name].setdefault(kind, []).append((stored.title, path))
        if self.to in FORMATS_WITH_DATA:
            self._write_links_and_facts()
        if self.to == "markdown" and DEFAULT_COLLECTION in self.folders:
            self._write_index()
        elif self.to == "okf":
            self._write_bundle_indexes()
        elif self.to == "jsonl":
            self._write_records()
        progress(len(self.addresses), len(self.addresses), "Exporting")

    def report(self) -> ExportReport:
        # A JSON lines file contains several pages, so the number of files is not the number of pages.
        is_jsonl = self.to == "jsonl"
        report = _count_written(self.writer, {} if is_jsonl else self.written, self.folders, self.with_data)
        if is_jsonl:
            counts = {name: sum(map(len, kinds.values())) for name, kinds in self.written.items()}
            parts = tuple(ExportedCollection(name, "", number) for name, number in counts.items())
            report = report._replace(pages=sum(counts.values()), collections=parts)
        return report._replace(
            links=len(self.links),
            facts=len(self.facts),
            trouble=self.trouble,
            unread=tuple(self.unread),
            format=self.to,
        )

    def _read_links_and_facts(self) -> None:
        """Read the links and facts that are not in the text of any page."""
        try:
            link_rows, fact_rows, lost_links, lost_facts = checks.readable_links_and_facts(self.db)
        except errors.DamagedDatabase as error:
            self.trouble = str(error)
            return
        self.links = [
            (
                slug.address(row.from_collection, row.from_slug),
                slug.address(row.to_collection, row.to_slug),
                row,
            )
            for row in link_rows
            if self.collection in (None, row.from_collection)
        ]
        self.facts = [
            (slug.address(name, page), fact)
            for name, page, fact in fact_rows
            if self.collection in (None, name)
        ]
        for start, end, link in self.links:
            self._links_from[start].append((link.relationship, end))
        for address, fact in self.facts:
            self._fact_lines[address].append(_fact_line(fact))
        if lost := len(lost_links) + len(lost_facts):
            self.trouble = f"the memory is damaged, and {lost:,} of them cannot be read"

    def _write_links_and_facts(self) -> None:
        """Write the links-and-facts file if there are links or facts, or if an older file has to be replaced."""
        path = LINKS_AND_FACTS_PATH
        if not (self.links or self.facts or os.path.lexists(os.path.join(self.writer.root, path))):
            return
        data = render_links_and_facts(self.links, self.facts, self.places)
        try:
            self.writer.write(path, data)
        except errors.FileTrouble as error:
            self.links, self.facts, self.trouble = [], [], str(error)
            return
        if len(data) > MAX_LINKS_AND_FACTS_BYTES:
            self.trouble = (
                f"{path} has {len(data):,} bytes, and an import reads {MAX_LINKS_AND_FACTS_BYTES:,}"
            )

    def _name_page(self, stored: PageRow) -> None:
        address = slug.address(stored.collection, stored.slug)
        inside = indexer.page_stem(export_path(stored.slug))
        name = inside.rpartition("/")[2]
        if self.to == "okf" and is_okf_name_taken(name, stored.frontmatter, stored.truth):
            old, folder = inside, self.folders[stored.collection]
            inside = free_okf_stem(inside, {page_slug for _, _, page_slug in self.addresses})
            self._renamed[f"{folder}{old}.md"] = f"{folder}{inside}.md"
        own = stored.frontmatter.get("id")
        identifier = own if isinstance(own, str) and indexer.looks_like_uuid(own) else stored.uuid
        title = self.names.unique_title(stored.title, address)
        ref = NoteRef(self.folders[stored.collection] + inside, title, identifier)
        self.refs[address] = ref
        names = [name for name, _ in slug.names_of(stored.title, stored.slug, stored.frontmatter)]
        self.names.add(ref, [*names, address])

    def _write_page(self, stored: PageRow, data: list[pages.RawData]) -> str:
        address = slug.address(stored.collection, stored.slug)
        inside = export_path(stored.slug)
        path = self.folders[stored.collection] + inside
        if self.to == "jsonl":
            self._add_line(_page_record(stored, address, path, inside, data))
            return path
        if self.to == "markdown":
            text = render_page(stored, inside)
        else:
            path, text = self._render_note(stored, address, inside)
        self.places[address] = path
        self.writer.write(path, text.encode())
        if data and self.to in FORMATS_WITH_DATA:
            sidecar = indexer.sidecar_path(indexer.page_stem(path))
            self.writer.write(sidecar, indexer.render_sidecar({row.source: row.data for row in data}))
            self.with_data.append(sidecar)
        self._write_images(stored, path)
        return path

    def _write_images(self, page: PageRow, path: str) -> None:
        """Copy the images that a page embeds to the folder beside its exported file. Missing images are skipped."""
        beside = _attachments_folder(path)
        for name in attachments.names_in(f"{page.truth}\n{page.timeline}"):
            if beside + name in self.writer.written:
                continue
            root, inside, key = self.roots.get(page.collection), "", None
            if root:
                seen = collections.file_of_page(self.db, page.id)[0]
                inside = _attachments_folder(seen.path if seen else page.slug)
            else:
                root, key = attachments.memory_folder(self.db.path), collections.read_image_key(self.db)
            with suppress(errors.NotFound, errors.FileTrouble):
                self.writer.write(beside + name, attachments.read(root, inside, name, key))

    def _render_note(self, stored: PageRow, address: str, inside: str) -> tuple[str, str]:
        """Return the path and the text of a page in the format of another program."""
        ref = self.refs[address]
        path = f"{ref.stem}.md"
        if self.to == "okf":
            return path, self._bundle_text(stored, ref)
        note = Note(
            *(ref, stored.frontmatter, stored.truth, stored.timeline, stored.created_at, stored.updated_at),
            self._fact_lines[address],
            [(name, self.refs[end]) for name, end in self._links_from[address] if end in self.refs],
        )
        if self.to == "logseq":
            return logseq_path(ref.title), logseq_page(note, self.names.resolve)
        if self.to == "org-roam":
            return f"{ref.stem}.org", org_page(note, self.names.resolve)
        front = {**stored.frontmatter, "created": stored.created_at, "updated": stored.updated_at}
        truth, timeline = (
            obsidian_links(part, self.names.resolve) for part in (stored.truth, stored.timeline)
        )
        own = stored._replace(frontmatter=front, truth=truth, timeline=timeline)
        return path, render_page(own, f"{indexer.page_stem(inside)}.md") + obsidian_facts(note)

    def _write_index(self) -> None:
        """Write index.md and, if one was imported, schema.md.

        An export without the default collection has neither of them, because they would become pages if the folder
        of the export were attached.
        """
        self.writer.write("index.md", _render_index(self.written).encode())
        schema = collections.get_setting(self.db, "original_schema")
        if schema is not None:
            self.writer.write("schema.md", schema.encode())

    def _bundle_text(self, stored: PageRow, ref: NoteRef) -> str:
        """Render a page as a file of an OKF bundle, and add it to the index of its folder.

        A page with a reserved name, index or log, is not added to the index.
        """
        truth, timeline = (
            okf_links(foreign_notes.rename_targets(part, self._renamed), self.names.resolve)
            for part in (stored.truth, stored.timeline)
        )
        path = f"{ref.stem}.md"
        folder, _, name = path.rpartition("/")
        if name.removesuffix(".md") in foreign_notes.OKF_RESERVED:
            return okf_reserved(truth, timeline, is_root_index=path == "index.md")
        author = next((row.author for row in history.page_authors(self.db, stored.id)), "owner")
        actor = "human:owner" if author == "owner" else f"{author}/unknown"
        front = dict(stored.frontmatter)
        if not _has_own_title(front, truth):
            front["title"] = stored.title
        note = Note(ref, front, truth, timeline, stored.created_at, stored.updated_at)
        inside = self.folders[stored.collection] + stored.slug
        text, description = okf_concept(note, stored.slug, inside, actor)
        self._concepts.setdefault(folder, []).append((stored.title, name, description))
        return text

    def _write_bundle_indexes(self) -> None:
        """Write an index for each folder of a bundle that has no index page."""
        folders = {""}
        for folder in self._concepts:
            parts = folder.split("/")
            folders |= {"/".join(parts[:depth]) for depth in range(len(parts) + 1)}
        for folder in sorted(folders):
            path = f"{folder}/index.md".lstrip("/")
            inside = [other for other in folders if other and other.rpartition("/")[0] == folder]
            sizes = [(other.rpartition("/")[2], self._count_below(other)) for other in sorted(inside)]
            if path not in self.writer.written:
                text = okf_index(folder, self._concepts.get(folder, []), sizes)
                self.writer.write(path, text.encode())

    def _count_below(self, folder: str) -> int:
        return sum(
            len(entries)
            for other, entries in self._concepts.items()
            if other == folder or other.startswith(f"{folder}/")
        )

    def _add_line(self, record: dict[str, Any]) -> None:
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        if self._lines and self._size + len(line) > JSONL_FILE_BYTES:
            self._end_file()
        self._lines.append(line)
        self._size += len(line)

    def _end_file(self) -> None:
        self._files += 1
        self.writer.write(f"{self._file_name}-{self._files:03}.jsonl", b"".join(self._lines))
        self._lines, self._size = [], 0

    def _write_records(self) -> None:
        """Write, as JSON lines, the links and facts that do not appear in the text of any page.

        An export of all collections also gets the conversations.
        """
        value = json.loads(render_links_and_facts(self.links, self.facts, {}))
        for kind in ("link", "fact"):
            for record in value[f"{kind}s"]:
                self._add_line({"kind": kind, **record})
        if self._lines or not self._files:
            self._end_file()
        if self.collection is None:
            self._write_conversations()

    def _write_conversations(self) -> None:
        """Write all turns as JSON lines in the format of `quaid conversations add`."""
        self._files, self._file_name = 0, "conversations"
        for talk in Conversations(self.db).latest(-1)[0]:
            shared = {
                "session": talk.session,
                "client": talk.client,
                "title": talk.title,
                "project": talk.project,
            }
            turns = talk.read_turns(self.db, 0, TURNS_PER_READ)
            while turns:
                for turn in turns:
                    record = {"role": turn.role, "content": turn.text, "timestamp": turn.said_at, **shared}
                    self._add_line({key: item for key, item in record.items() if item})
                turns = talk.read_turns(self.db, turns[-1].turn + 1, TURNS_PER_READ)
        if self._lines:
            self._end_file()


def _page_record(
    stored: PageRow, address: str, path: str, inside: str, data: list[pages.RawData]
) -> dict[str, Any]:
    return {
        "kind": "page",
        "address": address,
        "id": stored.uuid,
        "title": stored.title,
        "type": stored.type,
        "tags": list(stored.tags),
        "created_at": stored.created_at,
        "updated_at": stored.updated_at,
        "path": path,
        "text": render_page(stored, inside),
        "raw": {row.source: row.data for row in data},
    }


def _fact_line(fact: FactRow) -> str:
    """Format a fact as an inline field, with the days between which it is valid."""
    days = [
        f"from {fact.valid_from}" if fact.valid_from else "",
        f"until {fact.valid_until}" if fact.valid_until else "",
    ]
    validity = " ".join(filter(None, days))
    return f"{fact.predicate}:: {fact.object}" + (f" ({validity})" if validity else "")


def _attachments_folder(path: str) -> str:
    """Return the folder for the images of a page file, with a trailing slash."""
    return f"{path.rpartition('/')[0]}/{attachments.FOLDER}/".lstrip("/")


def _collection_folders(addresses: list[tuple[str, str, str]]) -> dict[str, str]:
    """Return the path prefix of each collection in an export; "" for the default collection.

    The other prefixes are distinct from the top-level folders of the default collection.
    """
    taken = {
        address.partition("/")[0]
        for name, _, address in addresses
        if name == DEFAULT_COLLECTION and "/" in address
    }
    folders = {DEFAULT_COLLECTION: ""}
    for name in dict.fromkeys(address[0] for address in addresses):
        if name != DEFAULT_COLLECTION:
            folder, number = name, 1
            while folder in taken or folder in scanner.SKIPPED_FOLDERS:
                folder = f"{name}-collection" + (f"-{number}" if number > 1 else "")
                number += 1
            taken.add(folder)
            folders[name] = f"{folder}/"
    return folders


def _count_written(
    writer: FolderWriter, written: dict[str, PagesByType], folders: dict[str, str], with_data: list[str]
) -> ExportReport:
    """Return the report for the written files. Paths that the file system treats as the same file count once."""
    identities: dict[str, tuple[int, int, int]] = {}
    for path in writer.written:
        facts = os.stat(os.path.join(writer.root, path), follow_symlinks=False)
        identities[path] = (facts.st_dev, facts.st_ino, facts.st_size)
    parts = []
    for name, contents in written.items():
        files = {identities[path] for entries in contents.values() for _, path in entries}
        if files or name == DEFAULT_COLLECTION or len(written) == 1:
            parts.append(ExportedCollection(name, folders[name].rstrip("/"), len(files)))
    distinct = set(identities.values())
    return ExportReport(
        folder=writer.root,
        import_id=None,
        pages=sum(part.pages for part in parts),
        sidecars=len({identities[path] for path in with_data}),
        files=len(distinct),
        bytes=sum(size for _, _, size in distinct),
        collections=tuple(parts),
    )


def _count_quarantined(db: Database, collection: str | None) -> int:
    try:
        hidden = Collections(db).page_counts()
        chosen = [candidate for candidate in Collections(db).all() if collection in (None, candidate.name)]
    except errors.DamagedDatabase:
        return 0
    return sum(hidden.get(candidate.id, (0, 0))[1] for candidate in chosen)


def export_raw(
    db: Database, import_id: str | None, target: str, *, force: bool, progress: Progress
) -> ExportReport:
    """Export the files of one import byte for byte, but without pages and lines that have expired."""
    batches = Imports(db).all()
    if import_id is None:
        raise errors.RawNeedsImport(hint=_import_hint(batches))
    batch = next((batch for batch in batches if batch.import_id == import_id), None)
    if batch is None:
        raise errors.NotFound(what="import", name=import_id, hint=_import_hint(batches))
    with_data: list[str] = []
    with FolderWriter(target, force=force) as writer:
        for done, (path, data) in enumerate(Imports(db).contents(import_id)):
            progress(done, batch.file_count, "Exporting")
            writer.write(path, data)
            if f"/{scanner.RAW_FOLDER}/" in f"/{path}":
                with_data.append(path)
        report = _count_written(writer, {}, {}, with_data)
    progress(batch.file_count, batch.file_count, "Exporting")
    return report._replace(import_id=import_id, pages=batch.page_count)


def export_path(address: str) -> str:
    """Return the path of a page's file in an export: the slug with the extension .md.

    The path is changed if the name is too long or an import would not treat a file of that name as a page.
    """
    *folders, name = address.split("/")
    folders = [f"{folder}_" if folder in scanner.SKIPPED_FOLDERS else folder for folder in folders]
    if len(name.encode()) > MAX_EXPORT_NAME:
        start = name.encode()[: MAX_EXPORT_NAME - 13].decode("utf-8", "ignore")
        name = f"{start}-{indexer.digest(address.encode())[:12]}"
    path = "/".join([*folders, f"{name}.md"])
    return f"{name}.markdown" if path in scanner.SPECIAL_NAMES else path


def render_page(stored: PageRow, path: str) -> str:
    """Render a page as markdown that yields the same slug and title when imported from this path."""
    front: dict[str, Any] = dict(stored.frontmatter)
    claimed = indexer.claimed_slug(front)
    if (claimed or slug.from_path(path)) != stored.slug:
        front["slug"] = stored.slug
    if not _has_own_title(front, stored.truth):
        front["title"] = stored.title
    return markdown.render(front, stored.truth, stored.timeline)


def _has_own_title(front: dict[str, Any], truth: str) -> bool:
    if isinstance(front.get("title"), str) and front["title"].strip():
        return True
    return page_model.build_page("x", front, truth, "", fallback_title=NO_TITLE).title != NO_TITLE


def _render_index(written: dict[str, PagesByType]) -> str:
    lines = ["# Index"]
    for name, contents in written.items():
        if name != DEFAULT_COLLECTION and len(written) > 1:
            lines += ["", f"# Collection {name}"]
        for kind, entries in contents.items():
            lines += ["", f"## {kind} ({len(entries)})", ""]
            lines += [f"- [{_link_text(title)}]({path})" for title, path in entries]
    return "\n".join(lines) + "\n"


def _link_text(title: str) -> str:
    return title.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")


def _import_hint(batches: list[history.ImportBatch]) -> str:
    if not batches:
        return " Nothing was imported yet."
    newest = ", ".join(f"{batch.import_id} ({batch.created_at[:10]})" for batch in batches[:SHOWN_IMPORTS])
    return f" The newest: {newest}. `quaid imports` lists them all."
