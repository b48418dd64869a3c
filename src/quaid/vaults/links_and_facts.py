"""Links and facts that no text holds, as one file of an export: `.quaid/links-and-facts.json`.

Knows how they are written, what of such a file can be trusted, and what becomes of each of them in a memory that
may know some already. The folder is hidden, so that scans of folders and other programs pass by it.
"""

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from quaid.errors import InvalidArgument, LinkOverlaps, QuaidError
from quaid.model import dates, slug as slugs
from quaid.model.facts import FACT_TEXT_LIMITS, FactInput, canonical_predicate, check_fact, object_key
from quaid.model.links import LONGEST_CONTEXT, normalize_relationship
from quaid.model.markdown_text import shorten
from quaid.model.names import fold_name
from quaid.storage import checks, collections, facts as assertions, links, page_edits, pages
from quaid.storage.collections import Collection
from quaid.storage.facts import FactChange, FactRow
from quaid.storage.links import AddedLink
from quaid.storage.sqlite.connection import Database
from quaid.storage.sqlite.errors import write_alone
from quaid.vaults import scan, sidecar
from quaid.vaults.scan import Folder

FOLDER = ".quaid"
PATH = f"{FOLDER}/links-and-facts.json"
FORMAT = 1
LARGEST = 32 * 1024 * 1024
"""Bytes: some hundred thousand of them, which is more than a page may have."""

LONGEST_JOINED = 100_000
"""Characters of the sources, or of the words, of all witnesses of a fact together."""

SHOWN_PROBLEMS = 20
LONGEST_PROBLEM = 300
_TIMESTAMP = re.compile(r"[0-9-]{10}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z")
_FACT = (
    *("subject", "predicate", "object", "valid_from", "valid_until", "confidence", "asserted_by"),
    *("source_ref", "evidence_text"),
)


class Gathered(NamedTuple):
    """What a memory has for the file."""

    links: list[AddedLink]
    facts: list[tuple[str, str, FactRow]]
    lost: int
    """Rows that cannot be read, in a damaged memory."""


def gather(db: Database, collection: str | None) -> Gathered:
    """The links and facts of all shown pages, or of those of one collection."""
    found, lost_links = checks.read_by_id_range(db, "links", partial(links.added_links, db))
    facts, lost_facts = checks.read_by_id_range(db, "assertions", partial(assertions.facts_in_range, db))
    return Gathered(
        [each for each in found if collection in (None, each.from_collection)],
        [each for each in facts if collection in (None, each[0])],
        len(lost_links) + len(lost_facts),
    )


def render(gathered: Gathered, places: dict[str, str]) -> bytes:
    """The file. `places` has the path of each page's file by its address."""
    told_links = [
        {
            "from": slugs.address(each.from_collection, each.from_slug),
            "to": slugs.address(each.to_collection, each.to_slug),
            **{name: getattr(each, name) for name in ("relationship", "context")},
            **{name: getattr(each, name) for name in ("valid_from", "valid_until", "created_at")},
        }
        for each in gathered.links
    ]
    place = {fact.id: number for number, (_, _, fact) in enumerate(gathered.facts)}
    told_facts = [
        {
            "page": slugs.address(collection, address),
            **{name: getattr(fact, name) for name in _FACT},
            "created_at": fact.created_at,
            "supersedes": place.get(fact.supersedes_id or 0),
        }
        for collection, address, fact in gathered.facts
    ]
    named = {each[end] for each in told_links for end in ("from", "to")}
    named |= {each["page"] for each in told_facts}
    files = {each: places[each] for each in sorted(named) if each in places and places[each] != f"{each}.md"}
    parts = [f'"format": {FORMAT}', f'"links": {_lines(told_links)}', f'"facts": {_lines(told_facts)}']
    if files:
        parts.append(f'"files": {json.dumps(files, indent=1)}')
    return ("{" + ",\n".join(parts) + "}\n").encode()


def _lines(records: list[dict[str, Any]]) -> str:
    """A list with a line for each of its members."""
    if not records:
        return "[]"
    return "[\n" + ",\n".join(json.dumps(each, ensure_ascii=False) for each in records) + "\n]"


class LinkGiven(NamedTuple):
    start: str
    end: str
    relationship: str
    context: str
    valid_from: str | None
    valid_until: str | None
    created_at: str | None


class FactGiven(NamedTuple):
    page: str
    given: FactInput
    created_at: str | None
    supersedes: int | None
    """Its place in the list."""


class Contents(NamedTuple):
    """What a file says. What cannot be understood is None in its list, and one of the problems."""

    links: list[LinkGiven | None]
    facts: list[FactGiven | None]
    files: dict[str, str]
    """Paths of pages, by address, where the address does not say so."""
    problems: list[str]


def read(data: bytes) -> Contents:
    """Understand a file, whoever wrote it. ValueError, with the reason, when nothing of it can be."""
    value = sidecar.parsed(data)
    if not isinstance(value, dict) or "format" not in value:
        raise ValueError('it is no object with a "format"')
    if value["format"] is True or value["format"] != FORMAT:
        raise ValueError(f"its format is {str(value['format'])[:20]}, and this Quaid reads format {FORMAT}")
    problems: list[str] = []
    found_links = _each(value, "links", _link, problems)
    found_facts = _each(value, "facts", _fact, problems)
    files = value.get("files")
    return Contents(
        found_links,
        found_facts,
        {name: path for name, path in files.items() if isinstance(path, str)}
        if isinstance(files, dict)
        else {},
        problems,
    )


def _each(
    value: dict[str, Any],
    name: str,
    understand: Callable[[dict[str, Any], str], Any],
    problems: list[str],
) -> list[Any]:
    records = value.get(name, [])
    if not isinstance(records, list):
        raise ValueError(f"its {name} are no list")
    found: list[Any] = []
    for number, record in enumerate(records):
        where = f"{name}[{number}]"
        try:
            if not isinstance(record, dict):
                raise InvalidArgument(name=where, problem="is no object")
            found.append(understand(record, where))
        except QuaidError as error:
            found.append(None)
            problems.append(_said(error, where))
    return found


def _said(error: Exception, where: str) -> str:
    text = str(error)
    text = text if where in text else f"{where}: {text}"
    return text[:LONGEST_PROBLEM].rstrip(".")


def _link(record: dict[str, Any], where: str) -> LinkGiven:
    relationship = normalize_relationship(_text(record, "relationship", where, FACT_TEXT_LIMITS["predicate"]))
    if not relationship:
        raise InvalidArgument(name=f"{where}.relationship", problem="is missing")
    since, until = (_day(record, name, where) for name in ("valid_from", "valid_until"))
    if since and until and until < since:
        raise InvalidArgument(name=f"{where}.valid_until", problem=f"{until} is before valid_from, {since}")
    context = _text(record, "context", where, LONGEST_JOINED).replace("\0", " ")
    return LinkGiven(
        _address(record, "from", where),
        _address(record, "to", where),
        relationship,
        shorten(" ".join(context.split()), LONGEST_CONTEXT),
        since,
        until,
        _created(record),
    )


def _fact(record: dict[str, Any], where: str) -> FactGiven:
    page = _address(record, "page", where)
    values = {name: record.get(name) for name in _FACT}
    for name, value in values.items():
        if isinstance(value, str) and "\0" in value:
            raise InvalidArgument(name=f"{where}.{name}", problem="holds a NUL character")
    given = check_fact({**values, "source_ref": "", "evidence_text": ""}, where)._replace(
        source_ref=_text(record, "source_ref", where, LONGEST_JOINED),
        evidence_text=_text(record, "evidence_text", where, LONGEST_JOINED),
    )
    supersedes = record.get("supersedes")
    if supersedes is not None and (isinstance(supersedes, bool) or not isinstance(supersedes, int)):
        raise InvalidArgument(name=f"{where}.supersedes", problem="must be the place of another fact")
    return FactGiven(page, given, _created(record), supersedes)


def _text(record: dict[str, Any], name: str, where: str, longest: int) -> str:
    value = record.get(name) or ""
    if not isinstance(value, str):
        raise InvalidArgument(name=f"{where}.{name}", problem="must be text")
    if len(value) > longest:
        problem = f"has {len(value):,} characters; {longest:,} is the most"
        raise InvalidArgument(name=f"{where}.{name}", problem=problem)
    return value.strip()


def _day(record: dict[str, Any], name: str, where: str) -> str | None:
    value = record.get(name)
    return None if value is None else dates.check_date(value, f"{where}.{name}")


def _created(record: dict[str, Any]) -> str | None:
    """When it was written down, if that can be understood."""
    value = record.get("created_at")
    if isinstance(value, str) and _TIMESTAMP.fullmatch(value) and dates.is_date(value[:10]):
        return value
    return None


def _address(record: dict[str, Any], name: str, where: str) -> str:
    """The address of a page, as `slug.address` writes it."""
    value = _text(record, name, where, 2 * slugs.LONGEST + 2)
    if not value:
        raise InvalidArgument(name=f"{where}.{name}", problem="is missing")
    collection, address = slugs.split_address(value)
    slugs.check(address)
    if collection is not None:
        slugs.check(collection)
    return value


class Place(NamedTuple):
    """The page that an address means here."""

    id: int
    collection: str
    slug: str


class Returning:
    """Bring what a file says back, in a transaction: what is there already, or is wrong, is passed by."""

    def __init__(self, db: Database, tx: Any, find: Callable[[str], Place | None], now: str) -> None:
        self.db = db
        self.tx = tx
        self.find = find
        self.now = now
        self.pages: dict[str, Place | None] = {}
        self.links = self.facts = 0
        self.ours: set[int] = set()
        """Links that came back just now."""
        self.changed: dict[int, Place] = {}
        """Pages that have more now than before."""
        self.problems: list[str] = []
        self.missing: dict[str, int] = {}
        """Pages that are not there, and how many links and facts name them."""
        self.untold: dict[tuple[int, str, str], bool] = {}
        """Of which subjects and predicates a page said nothing before."""

    def run(self, contents: Contents, only: set[str] | None) -> None:
        """Bring everything back, or only what hangs on pages of the default collection with these slugs."""
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
                self._follow(number, new, ids.get(fact.supersedes))
        for address, times in self.missing.items():
            what = "1 link or fact names it" if times == 1 else f"{times} links and facts name it"
            self.problems.append(f"there is no page {address}; {what}")

    def _alone(self, where: str, write: Callable[[], None]) -> None:
        """Write one of them such that whatever is wrong with it costs no other."""
        if failure := write_alone(self.tx, write):
            self.problems.append(_said(failure, where))

    def _page(self, address: str) -> Place | None:
        if address not in self.pages:
            self.pages[address] = self.find(address)
        found = self.pages[address]
        if found is None:
            self.missing[address] = self.missing.get(address, 0) + 1
        return found

    def _link(self, link: LinkGiven, where: str, only: set[str] | None) -> None:
        start, end = self._page(link.start), self._page(link.end)
        if start is None or end is None or not (_is_meant(start, only) or _is_meant(end, only)):
            return
        if start.id == end.id:
            raise InvalidArgument(name=where, problem="leads from a page to itself")
        created = self._created(link.created_at)
        if any(
            there.valid_until == link.valid_until
            or (there.created_at == created and there.id not in self.ours)
            for there in links.between(self.db, start.id, end.id, link.relationship)
            if there.source_kind != links.FROM_TEXT and there.valid_from == link.valid_from
        ):
            return  # it came back before, and may have been closed since
        try:
            new = links.add(
                self.tx,
                start.id,
                end.id,
                relationship=link.relationship,
                context=link.context,
                valid_from=link.valid_from,
                valid_until=link.valid_until,
                now=created,
                beside_texts=True,
            )
        except LinkOverlaps as error:
            raise InvalidArgument(name=where, problem=f"is left out. {error}") from None
        self.ours.add(new)
        self.links += 1
        self.changed[start.id] = start

    def _fact(self, fact: FactGiven, number: int, ids: dict[int, int], only: set[str] | None) -> None:
        page = self._page(fact.page)
        if page is None or not _is_meant(page, only):
            return
        added = self._kept(page.id, fact.given, self._created(fact.created_at))
        ids[number] = added.id
        self.facts += added.added
        if added.changed:
            self.changed[page.id] = page

    def _kept(self, page_id: int, given: FactInput, created: str) -> FactChange:
        """A fact of which the page said nothing comes back as it was. Else it joins what is there, as if said now."""
        group = (page_id, fold_name(given.subject), canonical_predicate(given.predicate))
        there = assertions.facts_like(self.tx, page_id, given)
        if self.untold.setdefault(group, not there):
            return assertions.restore_fact(self.tx, page_id, given, created)
        for row in there:
            same_row = (row.valid_from, row.created_at) == (given.valid_from, created)
            if same_row and object_key(row.object) == object_key(given.object):
                return FactChange(row.id, False, (), False)  # it came back before, and may have changed since
        return assertions.add_fact(self.tx, page_id, given, self.now)

    def _follow(self, number: int, new: int, old: int | None) -> None:
        if old is not None and not assertions.mark_superseded(self.tx, new, old):
            self.problems.append(f"facts[{number}].supersedes: it cannot supersede that one; left out")

    def _created(self, created: str | None) -> str:
        return min(created or self.now, self.now)


class Returned(NamedTuple):
    """What came back with the folder of a collection."""

    links: int
    facts: int
    problems: tuple[str, ...]


def of_folder(db: Database, collection: Collection, now: str) -> Returned:
    """Bring back what the folder of a collection holds beside its files, onto pages of that collection only."""
    try:
        with Folder(collection.root or "", scan.endings(collection.kind)) as folder:
            data = folder.read(PATH, LARGEST)
        if len(data) > LARGEST:
            raise ValueError(f"it is too large: {LARGEST:,} bytes are allowed")
        contents = read(data)
    except FileNotFoundError:
        return Returned(0, 0, ())
    except (OSError, QuaidError, ValueError) as error:
        return Returned(0, 0, (f"not taken in: {error}".rstrip("."),))

    def work(tx: Any) -> Returned:
        def find(address: str) -> Place | None:
            path = contents.files.get(address) or address.replace("::", "/", 1) + ".md"
            page_id = collections.page_of_file(tx, collection.id, path)
            name = None if page_id is None else pages.slug_of(tx, page_id)
            return None if page_id is None or name is None else Place(page_id, collection.name, name)

        returning = Returning(db, tx, find, now)
        returning.run(contents, None)
        for place in returning.changed.values():
            page_edits.touch(tx, place.slug, expected_version=None, now=now, collection=place.collection)
        return Returned(returning.links, returning.facts, tuple(shown(returning.problems)))

    return db.write(work)


def _is_meant(page: Place, only: set[str] | None) -> bool:
    return only is None or (page.collection == "default" and page.slug in only)


def shown(problems: list[str]) -> list[str]:
    """The first problems, and how many there are more."""
    more = len(problems) - SHOWN_PROBLEMS
    return [*problems[:SHOWN_PROBLEMS], f"and {more:,} more problems"] if more > 1 else problems
