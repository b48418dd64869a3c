"""Taking a source in: one transaction for its bytes and everything that it changes."""

import hashlib
import os
from typing import Annotated, Any, Literal, NamedTuple

from quaid.brain import Brain
from quaid.errors import FileTrouble, InvalidArgument, InvalidFrontMatter, TooLarge
from quaid.formats import markdown
from quaid.model import dates, page as page_model, slug as slugs
from quaid.model.page import EntryInput, PageChange
from quaid.ops import gaps
from quaid.ops.gate import MAX_TEXT
from quaid.ops.ingesting import Ingesting, PageOutcome
from quaid.ops.register import Arg, op
from quaid.storage import history, pages
from quaid.storage.history import EarlierIngest, IngestSource
from quaid.storage.pages import PageRow

LONGEST_REF = 1_000
SourceType = Literal["meeting", "article", "doc", "conversation"]
SOURCE_TYPES = ("meeting", "article", "doc", "conversation")


class IngestRecord(NamedTuple):
    source_type: str
    source_ref: str
    written: bool
    """False: these bytes were taken in before, at `known_since`, and nothing was changed."""
    known_since: str | None
    import_id: str | None
    """`quaid export --raw --import-id` gives the bytes back."""
    pages: tuple[PageOutcome, ...]
    known_pages: tuple[str, ...]
    """Pages that the same source had changed before."""
    gaps_resolved: tuple[int, ...]
    source_page: str = ""
    """The page that the source is."""


class FileIngestRecord(IngestRecord):
    """The same, of a file that became a page."""


class AdoptRecord(NamedTuple):
    pages: tuple[str, ...]
    """The pages that were made."""


class _Read(NamedTuple):
    slug: str
    title: str | None
    front: dict[str, Any]
    truth: str
    timeline: str


@op(
    "write",
    command="ingest-source",
    core=True,
    tool="memory_ingest",
    examples=(
        "quaid ingest-source call.txt --source-type meeting --source-ref meeting/17 --pages"
        ' \'[{"slug": "people/alice", "expected_version": 3, "timeline_entries":'
        ' [{"date": "2026-04-25", "summary": "Moved to Oslo"}]}]\'',
    ),
)
def ingest(
    brain: Brain,
    content: Annotated[str, Arg("The source, word for word.", positional=True, file=True)],
    source_type: Annotated[SourceType, Arg("What it is.")],
    source_ref: Annotated[str, Arg("Its name, as in meeting/17.")],
    pages: Annotated[
        list[dict[str, Any]] | None,
        Arg(
            "Each {slug, expected_version if it exists, content | compiled_truth, timeline_append, frontmatter;"
            " links [{to, relationship, context, valid_from, valid_until}], timeline_entries [{date, summary,"
            " source, detail}], assertions [{subject, predicate, object, valid_from, valid_until,"
            " evidence_text}], tags []}."
        ),
    ] = None,
    force: Annotated[bool, Arg("Though the source or a truth is known.")] = False,
) -> IngestRecord:
    """Keep a source as a page, with everything that it changes, all or nothing.

    The same source again changes nothing; a truth that a page says already is skipped, evidence never."""
    for name, text in (("content", content), ("source_ref", source_ref)):
        if not text.strip():
            raise InvalidArgument(name=name, problem="is empty")
    ref = " ".join(source_ref.split())
    if len(ref) > LONGEST_REF:
        raise InvalidArgument(name="source_ref", problem=f"has more than {LONGEST_REF:,} characters")
    source = _source(source_type, ref, slugs.from_path(ref) + ".md", content.encode())
    return _taken_in(
        brain, Ingesting(brain, source, page_model.parse_changes(pages or []), force=force, is_file=False)
    )


@op(
    "owner",
    command="ingest",
    examples=(
        "quaid ingest standup.md --type meeting --date 2026-04-25",
        "quaid ingest paper.md --type article --slug sources/vanadium-review",
    ),
)
def ingest_file(
    brain: Brain,
    file: Annotated[str, Arg("A text file, as markdown or plain.", positional=True, path=True)],
    source_type: Annotated[
        SourceType | None, Arg("What it is; a new page's front matter keeps it.", flag="--type")
    ] = None,
    slug: Annotated[str | None, Arg("The page to make; else the file's own slug, else sources/NAME.")] = None,
    date: Annotated[str | None, Arg("The day that it is of: an entry in the page's timeline.")] = None,
    force: Annotated[bool, Arg("Also if it is known, says the same, or the page was edited here.")] = False,
) -> FileIngestRecord:
    """Take one file in as a page, keep its bytes, and say what happened. The same file again changes nothing."""
    path = brain.settings.path(file)
    data = _bytes_of(path)
    read = _read(path, data)
    flags = {"source_type": source_type, "date": dates.check_date(date, "date") if date else None}
    collection, name = slugs.split_address(slug or read.slug)
    there = pages.find(brain.db, slugs.check(name), collection or "default")
    change = _change(read, flags, there.slug if there else name, collection or "default", there)
    kind = _kind(markdown.parse(change.content or "").frontmatter)
    source = _source(kind, _printable(path), _printable(os.path.basename(path)), data)
    done = _taken_in(brain, Ingesting(brain, source, [change], force=force, is_file=True))
    return FileIngestRecord(*done)


@op("owner", command="adopt-sources", examples=("quaid adopt-sources",))
def adopt_sources(brain: Brain) -> AdoptRecord:
    """Make pages of sources that an earlier Quaid kept without one, so that they are found, shown and forgotten."""
    made: list[str] = []
    sources = history.sources_without_page(brain.db)
    for done, source in enumerate(sources):
        brain.progress(done, len(sources), "Making pages")
        outcome = brain.db.write(Ingesting(brain, source, [], force=False, is_file=False).run)
        if not isinstance(outcome, EarlierIngest):
            made.append(outcome.source)
    return AdoptRecord(tuple(made))


def _change(
    read: _Read, flags: dict[str, str | None], name: str, collection: str, there: PageRow | None
) -> PageChange:
    """What a file makes of its page. A flag counts more than the file, the file more than the page that is there."""
    kept = {key: there.frontmatter[key] for key in flags if there and key in there.frontmatter}
    front = {**kept, **read.front, **{key: value for key, value in flags.items() if value is not None}}
    made = page_model.build_page(name, front, read.truth, read.timeline, fallback_title=read.title)
    day = flags["date"]
    return PageChange(
        "page",
        name,
        collection,
        expected_version=there.version if there else 0,
        content=markdown.render(front, read.truth, read.timeline),
        entries=(EntryInput(day, made.title, _kind(front), ""),) if day else (),
        title=read.title,
    )


def _kind(front: dict[str, Any]) -> str:
    """Return what kind of source a page says that it is; doc if it says nothing."""
    named = front.get("source_type")
    if named in (None, ""):
        return "doc"
    if named not in SOURCE_TYPES:
        problem = (
            f"must be one of {', '.join(SOURCE_TYPES)}, not {named!r}; change the front matter or add --type"
        )
        raise InvalidArgument(name="source_type", problem=problem)
    return str(named)


def _taken_in(brain: Brain, work: Ingesting) -> IngestRecord:
    done = brain.db.write(work.run)
    source = work.source
    if isinstance(done, EarlierIngest):
        own = history.page_of_source(brain.db, source.content_hash, done.source_ref) or ""
        others = tuple(each for each in done.slugs if work.is_file or each != own)
        return IngestRecord(
            *(source.kind, source.ref, False, done.created_at, done.import_id, (), others, ()), own
        )
    closed = gaps.answered_by(brain, list(done.changed)) if done.changed else []
    return IngestRecord(
        *(source.kind, source.ref, True, None, work.import_id, done.pages, done.known, tuple(closed)),
        done.source,
    )


def _source(kind: str, ref: str, file_path: str, data: bytes) -> IngestSource:
    return IngestSource(kind, ref, file_path, data, hashlib.sha256(data).hexdigest())


def _bytes_of(path: str) -> bytes:
    if os.path.isdir(path):
        raise FileTrouble(path=path, problem="is a folder; `quaid import` takes folders")
    if os.path.exists(path) and not os.path.isfile(path):
        raise FileTrouble(path=path, problem="is not a file that can be read twice")
    with open(path, "rb") as file:  # what the system says becomes an error at the gate
        data = file.read(MAX_TEXT + 1)
    if len(data) > MAX_TEXT:
        raise TooLarge(what=path, size=os.path.getsize(path), limit=MAX_TEXT)
    if not data.strip():
        raise FileTrouble(path=path, problem="is empty")
    return data


def _read(path: str, data: bytes) -> _Read:
    """What a file says, and the page that it asks for."""
    text, mended = markdown.decode(data)
    if mended and "replaced" in mended:
        raise FileTrouble(path=path, problem="is not text; only text files can be taken in")
    document = markdown.parse(text)
    if document.problem:
        raise InvalidFrontMatter(problem=document.problem)
    front = dict(document.frontmatter)
    if front.get("type") in SOURCE_TYPES and page_model.known_type(front["type"]) is None:
        front.setdefault("source_type", front.pop("type"))  # a kind of source that is no type of page
    stem = _printable(os.path.splitext(os.path.basename(path))[0])
    name = slugs.segment(stem)
    named = front.get("slug")
    return _Read(
        slug=named if isinstance(named, str) else f"sources/{name}",
        title=None if name == stem else stem,
        front=front,
        truth=document.truth,
        timeline=document.timeline,
    )


def _printable(name: str) -> str:
    """A file name as text: one that is not valid Unicode cannot be stored."""
    return os.fsencode(name).decode("utf-8", "replace")
