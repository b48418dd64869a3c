"""Convert files to pages: parse page files and sidecars, assign slugs, and collect the results in a spool.

A sidecar is a JSON file with raw data beside a page file. The spool is a buffer, in RAM or on disk, of files
to be written to the database. Large folders are parsed in parallel by a second process, which runs this
module. The two processes share two unnamed files, the spool and the results; pipes carry only the offsets up
to which the files are complete.
"""

import hashlib
import io
import json
import marshal
import os
import re
import select
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn

from quaid.errors import FileTrouble, InvalidSlug
from quaid.folders.scanner import RAW_FOLDER
from quaid.formats import markdown, org
from quaid.model import page as page_model, plain_text, slug as slugs
from quaid.model.links import IN_FILE_KEY, LinkReference
from quaid.model.page import DerivedData, Page, derive_data
from quaid.model.sync_plan import path_key
from quaid.model.timeline import TimelineEntry
from quaid.storage.sqlite.errors import translate_os_errors

if TYPE_CHECKING:
    from subprocess import Popen

ID_KEY = "quaid_id"
"""The front-matter key with the id of the page."""

ORG_ENDING = ".org"
MAX_ORG_PROBLEMS = 3
"""Maximum number of problems reported for one org file."""

MAX_REASON_LENGTH = 200

_HEADER_MARKS = (b"slug", ID_KEY.encode(), b"\\", b"\xff\xfe", b"\xfe\xff")
_SLUG_LIKE = re.compile(r"[a-z0-9_-]+")
_PAGE_ENDING = re.compile(r"\.(?:md|markdown|org)\Z", re.IGNORECASE)


class ParsedPage(NamedTuple):
    page: Page
    notes: tuple[str, ...]  # what was corrected or could not be parsed
    nodes: tuple[Page, ...] = ()  # a page for each org heading with an ID


def failure_note(error: Exception) -> str:
    """Return a one-line note for a file that could not be indexed because of a bug in Quaid."""
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return (
        f"not taken in: Quaid fails on it ({reason[:MAX_REASON_LENGTH]}). That is a bug: please report it."
        " The file is tried again when it changes"
    )


def digest(data: bytes) -> str:
    """Return the SHA-256 of the data in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def parse_file(path: str, data: bytes) -> ParsedPage:
    """Parse a file into its page, under the slug that the file requests, and the pages of its headings."""
    if is_org(path):
        return _parse_org(path, data)
    text, mended = markdown.decode(data)
    document = markdown.parse(text)
    page = page_model.build_page(
        claimed_slug(document.frontmatter) or slugs.from_path(path),
        document.frontmatter,
        document.truth,
        document.timeline,
        fallback_title=_title_from_name(path),
    )
    notes = []
    if mended:
        notes.append(mended)
    if document.problem:
        treatment = "kept as it is" if document.frontmatter else "taken for text"
        notes.append(f"front matter {treatment}: {document.problem}")
    return ParsedPage(page, (*notes, *_type_notes(page), *_date_notes(page)))


def requested_identity(path: str, data: bytes) -> tuple[str, str | None]:
    """Return the slug that a markdown file requests, and the id in its front matter or None.

    The result is the same as with `parse_file`, at a tenth of the cost.
    """
    head = data
    if data.startswith((b"---\n", b"+++\n")):
        closing = data.find(b"\n" + data[:4], 3)
        head = data[: closing + 5] if closing >= 0 else data
    # Keys may be written with backslash escapes or in UTF-16, so a header that contains either has to be
    # parsed.
    if not any(mark in head for mark in _HEADER_MARKS):
        return slugs.from_path(path), None
    # Non-ASCII text is decoded as a whole, because its encoding may depend on bytes after the header.
    front = markdown.parse(markdown.decode(head if head.isascii() else data)[0]).frontmatter
    named = front.get(ID_KEY)
    return claimed_slug(front) or slugs.from_path(path), named if isinstance(named, str) else None


def _parse_org(path: str, data: bytes) -> ParsedPage:
    """Parse an org file into its page and the pages of its headings that have an id."""
    text, mended = markdown.decode(data)
    (_, front, truth, timeline), headings, problems = org.read_pages(text)
    slug = claimed_slug(front) or slugs.from_path(path)
    page = page_model.build_page(slug, front, truth, timeline, fallback_title=_title_from_name(path))
    nodes: dict[str, Page] = {}
    for node in headings:
        front = {**node.frontmatter, IN_FILE_KEY: path}
        address = slugs.from_path(f"{slug}/{slugs.segment(node.title)}")
        # If several nodes have the same id, the first one is used.
        if front["id"] != page.frontmatter.get("id"):
            nodes.setdefault(front["id"], page_model.build_page(address, front, node.truth, node.timeline))
    messages = [f"line {problem.line}: {problem.message}" for problem in problems[:MAX_ORG_PROBLEMS]]
    more = len(problems) - len(messages)
    notes = [*([mended] if mended else []), *messages, *([f"{more} more of this kind"] if more else [])]
    return ParsedPage(page, (*notes, *_type_notes(page)), tuple(nodes.values()))


def _type_notes(page: Page) -> tuple[str, ...]:
    named = page.frontmatter.get("type")
    if named is None:
        return ()
    if page_model.type_name(named) is None:
        return (f"type {named!r} is not the name of a type; taken for a {page.type}",)
    note = page_model.unknown_type_note(named)
    return (note,) if note else ()


def _date_notes(page: Page) -> list[str]:
    wrong = page_model.invalid_dates(page.slug, page.type, page.frontmatter)
    return [
        f"{name}: {value!r} is not a date; write YYYY-MM-DD, as in 2026-04-25"
        if value
        else f"a journal without a day; add `{name}: 2026-04-25` to its front matter"
        for name, value in wrong.items()
    ]


def is_org(path: str) -> bool:
    return path.lower().endswith(ORG_ENDING)


def file_id(page: Page, path: str) -> str | None:
    """Return the id that identifies a file after a move: `quaid_id`, or the UUID of an org file, or None."""
    named = page.frontmatter.get(ID_KEY)
    if named is None and is_org(path):
        id_value = page.frontmatter.get("id")
        named = id_value if isinstance(id_value, str) and looks_like_uuid(id_value) else None
    return named if isinstance(named, str) else None


def looks_like_uuid(text: str) -> bool:
    return len(text) == 36 and all(part.isalnum() for part in text.split("-")) and text.count("-") == 4


def with_slug(page: Page, address: str) -> Page:
    """Return the page under another slug."""
    if page.slug == address:
        return page
    return page_model.build_page(
        address, page.frontmatter, page.truth, page.timeline, fallback_title=page.title
    )


def with_file_title(page: Page, path: str) -> Page:
    """Return the page with the title it would get if it were read from a file at this path."""
    head = plain_text.text_head(plain_text.visible_text(page.truth))
    return page._replace(
        title=page_model.page_title(page.slug, page.frontmatter, head, _title_from_name(path))
    )


def claimed_slug(frontmatter: dict[str, Any]) -> str | None:
    """Return the slug in the front matter, or None if it is missing or invalid."""
    named = frontmatter.get("slug")
    if not isinstance(named, str):
        return None
    try:
        return slugs.check(named)
    except InvalidSlug:
        return None


def page_stem(path: str) -> str:
    """Return the path without the extension of a page file (.md, .markdown or .org)."""
    return _PAGE_ENDING.sub("", path)


def _title_from_name(path: str) -> str | None:
    """Return the file name as a title, or None if the name has the form of a slug."""
    name = page_stem(path).rpartition("/")[2].strip()
    return None if _SLUG_LIKE.fullmatch(name) else name or None


# Slugs

MIN_SUFFIX_LENGTH = 6


def assign_slugs(claims: Iterable[tuple[str, str]], taken: Iterable[str] = ()) -> dict[str, str]:
    """Return a unique slug for each path.

    `claims` are pairs of a path and the slug that its file requests, sorted by path. Slugs in `taken` are
    already in use.
    """
    owned = set(taken)
    assigned: dict[str, str] = {}
    waiting: list[tuple[str, str]] = []
    for path, slug in claims:
        if slug not in owned and page_stem(path) == slug:
            assigned[path] = slug
            owned.add(slug)
        else:
            waiting.append((path, slug))
    for path, slug in waiting:
        if slug in owned:
            slug = slugs.from_path(path)
        if slug in owned:
            slug = suffixed_slug(slug, path, owned)
        assigned[path] = slug
        owned.add(slug)
    return assigned


def suffixed_slug(address: str, path: str, taken: set[str]) -> str:
    """Return a slug that is not in `taken`: the address with the first characters of a hash of the path."""
    mark = digest(path_key(path).encode())
    for length in range(MIN_SUFFIX_LENGTH, len(mark) + 1):
        name = f"{address[: slugs.LONGEST - length - 1].rstrip('/-')}-{mark[:length]}"
        if name not in taken:
            return name
    raise AssertionError("a hash met itself")


# Sidecars

EMPTY_SIDECAR = b'{"sources": {}}'
WHOLE_SOURCE = "sidecar"  # the source name for data in a sidecar outside of "sources"


def is_sidecar(path: str) -> bool:
    """Return True if a walk would treat the file at this path as a sidecar."""
    folders, _, name = path.rpartition("/")
    shown = all(not part.startswith(".") for part in folders.split("/")[:-1])
    in_raw = folders.rpartition("/")[2] == RAW_FOLDER
    return shown and in_raw and name.lower().endswith(".json") and not name.startswith(".")


def sidecar_page_stem(path: str) -> str:
    """Return the path, without extension, of the page file that a sidecar belongs to."""
    folder, _, name = path.rpartition("/")
    above = folder.rpartition("/")[0]
    return f"{above}/{name[: -len('.json')]}" if above else name[: -len(".json")]


def sidecar_path(page: str) -> str:
    """Return the path of a page's sidecar, given the path of the page file without extension."""
    folder, mark, name = page.rpartition("/")
    return f"{folder}{mark}.raw/{name}.json"


def parse_json(data: bytes) -> Any:
    """Parse JSON. Raise ValueError with the reason if it is invalid or cannot be stored."""
    try:
        value = json.loads(data.decode("utf-8-sig"), parse_constant=_reject_constant)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half a character (a lone surrogate)") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except RecursionError:
        raise ValueError("it nests too deeply") from None
    return value


def parse_sidecar(data: bytes) -> dict[str, Any]:
    """Return the data in a sidecar by source. Raise ValueError with the reason if the JSON is invalid."""
    value = parse_json(data)
    sources = value.get("sources") if isinstance(value, dict) else None
    if not isinstance(sources, dict):
        return {WHOLE_SOURCE: value}
    rest = {key: item for key, item in value.items() if key != "sources"}
    if not rest:
        return dict(sources)
    return {WHOLE_SOURCE: value} if WHOLE_SOURCE in sources else {**sources, WHOLE_SOURCE: rest}


def render_sidecar(sources: Mapping[str, Any]) -> bytes:
    """Render a sidecar that `parse_sidecar` reads back as the same sources."""
    rest = sources.get(WHOLE_SOURCE)
    value: Any = {"sources": dict(sources)}
    if WHOLE_SOURCE in sources and not (isinstance(rest, dict) and "sources" in rest):
        others = {name: data for name, data in sources.items() if name != WHOLE_SOURCE}
        if not others:
            value = rest
        elif isinstance(rest, dict) and rest:
            value = {"sources": others, **rest}
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


# The helper process

FILES_BEFORE_HELPER = 30
"""Number of files to parse in this process before a helper process is considered."""

MIN_FILES_FOR_HELPER = 300
"""Minimum number of remaining files for which a helper process is started.

Starting it takes as long as parsing about 100 files.
"""

PROGRESS_STEP_BYTES = 256 * 1024
"""Number of bytes after which a process reports its progress to the other process."""

NUMBER_BYTES = 8

HELPER_TIMEOUT = 60.0
"""Seconds to wait for progress of the helper. No single file takes this long."""


ParsedFile = tuple[Page, tuple[str, ...], DerivedData]
"""A page, the notes about it, and its derived data."""


def is_helper_worthwhile(done: int, waiting: int) -> bool:
    """Return True if a second process saves time, with `done` files parsed and `waiting` files left."""
    return (
        done >= FILES_BEFORE_HELPER
        and waiting >= MIN_FILES_FOR_HELPER
        and os.name == "posix"
        and bool(sys.executable)
        and cpu_count() > 1
    )


def cpu_count() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class ParserProcess:
    """The helper process that parses files, and its results so far."""

    def __init__(self, spool: IO[bytes], results: IO[bytes], memory: str) -> None:
        import subprocess

        self._results = results
        self._memory = memory
        self._reported = 0
        self._parsed_to = 0
        shared = (spool.fileno(), results.fileno())
        # Without -P, Python would also import modules from the current directory of the user.
        command = [sys.executable, "-P", "-m", "quaid.folders.indexer", *map(str, shared)]
        self._process: Popen[bytes] = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=shared,
            bufsize=0,
        )

    def is_behind(self, end: int) -> bool:
        """Return True if the spool has grown so much since the last report that its new end should be reported."""
        # The steps grow so that the pipe does not fill up while the helper is busy.
        return end - self._reported > max(PROGRESS_STEP_BYTES, self._reported // 8)

    def report_end(self, end: int) -> None:
        """Report to the helper that the spool is complete up to this offset."""
        self._reported = end
        assert self._process.stdin
        try:
            self._process.stdin.write(end.to_bytes(NUMBER_BYTES, "little"))
        except BrokenPipeError:
            raise self._exit_error() from None

    def parsed(self) -> Iterator[ParsedFile | None]:
        """Yield the parsed pages of the files that the helper parses, in spool order.

        Yield None for a file that the helper could not parse, and for all remaining files after a timeout.
        """
        place = 0
        try:
            while True:
                size = int.from_bytes(self._read(place, NUMBER_BYTES), "little")
                record = self._read(place + NUMBER_BYTES, size)
                place += NUMBER_BYTES + size
                yield load_parsed(record)
        except TimeoutError:
            self._process.kill()
        while True:
            yield None

    def _read(self, place: int, size: int) -> bytes:
        assert self._process.stdout
        while self._parsed_to < place + size:
            if not select.select([self._process.stdout], [], [], HELPER_TIMEOUT)[0]:
                raise TimeoutError
            answer = self._process.stdout.read(NUMBER_BYTES)
            if len(answer or b"") < NUMBER_BYTES:
                raise self._exit_error()
            self._parsed_to = int.from_bytes(answer, "little")
        return _read_at(self._results.fileno(), size, place)

    def _exit_error(self) -> FileTrouble:
        status = self._process.wait()
        how = f"signal {-status}" if status < 0 else f"status {status}"
        problem = (
            f"the process that parses files beside this one ended early ({how});"
            " nothing of this folder was taken in. Free some memory and run the command again"
        )
        return FileTrouble(path=self._memory, problem=problem)

    def close(self) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()
        self._process.wait()
        self._results.close()


def page_to_plain(page: Page) -> tuple[Any, ...]:
    """Convert a page to builtin types that marshal can serialize."""
    return (*page[:-1], [tuple(entry) for entry in page.entries])


def page_from_plain(values: tuple[Any, ...]) -> Page:
    *parts, entries = values
    return Page._make([*parts, tuple([TimelineEntry(*entry) for entry in entries])])


def dump_parsed(parsed: ParsedFile | None) -> bytes:
    if parsed is None:
        return marshal.dumps(None)
    page, notes, (front, names, references, *rest) = parsed
    derived: Any = (front, names, [tuple(reference) for reference in references], *rest)
    return marshal.dumps((page_to_plain(page), notes, derived))


def load_parsed(record: bytes) -> ParsedFile | None:
    plain = marshal.loads(record)  # noqa: S302 (our own file)
    if plain is None:
        return None
    page, notes, (front, names, references, *rest) = plain
    derived = DerivedData(front, names, [LinkReference(*reference) for reference in references], *rest)
    return page_from_plain(page), notes, derived


# The spool

MAX_MEMORY_BYTES = 1024 * 1024
"""Size in bytes up to which a spool stays in RAM, so that a single edit needs no temporary file."""


class SpooledFile(NamedTuple):
    """A file in the spool. `page` is its parsed page; None if it is not a page file or has a `problem`."""

    path: str
    content_hash: str
    data: bytes
    page: Page | None
    nodes: tuple[Page, ...] = ()
    """Headings of the file that are separate pages."""
    notes: tuple[str, ...] = ()
    """Notes of the parser about the file, if they were not reported when the file was read."""
    derived: DerivedData | None = None
    """Data derived from the page, such as its names and links."""
    problem: str = ""
    """The note about a page file that could not be parsed, or ""."""

    @property
    def parsed_page(self) -> Page:
        """The page of a file that was parsed."""
        assert self.page is not None
        return self.page

    def with_slug(self, slug: str) -> "SpooledFile":
        """Return the file with its page under another slug."""
        if self.parsed_page.slug == slug:
            return self
        return self._replace(page=with_slug(self.parsed_page, slug), derived=None)


class Spool:
    """A buffer, in RAM or on disk, of files to be written to the database."""

    def __init__(self, memory: str) -> None:
        self.folder = os.path.dirname(memory)
        self.memory = memory  # path of the database
        self.count = 0
        self._open: IO[bytes] | None = None
        self._helper: ParserProcess | None = None
        self._start_failed = False
        """True if starting a helper has failed."""

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *_: object) -> None:
        if self._helper:
            self._helper.close()
        if self._open:
            self._open.close()

    @property
    def _file(self) -> IO[bytes]:
        if self._open is None:
            self._open = io.BytesIO()
        elif isinstance(self._open, io.BytesIO) and self._open.tell() > MAX_MEMORY_BYTES:
            self._open = self._on_disk(self._open.getvalue())
        return self._open

    def _on_disk(self, data: bytes) -> IO[bytes]:
        import tempfile

        # The file is beside the database, because free space is needed there anyway, and /tmp may be in RAM.
        with translate_os_errors(self.folder):
            file = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115 (closed on exit)
            file.write(data)
        return file

    def add(self, item: SpooledFile) -> None:
        plain = [page_to_plain(page) for page in (item.page, *item.nodes) if page is not None]
        self._add(marshal.dumps((item.path, item.content_hash, item.data, plain)))

    def _add(self, record: bytes) -> None:
        self._file.write(len(record).to_bytes(NUMBER_BYTES, "little") + record)
        self.count += 1

    def has_helper(self, waiting: int) -> bool:
        """Return True if a helper process is running, so that files can be added unparsed.

        `waiting` is the number of files that are left. If it is large enough, the helper is started first.
        """
        if self._helper is None and not self._start_failed and is_helper_worthwhile(self.count, waiting):
            self._start_failed = not self._start_helper()
        return self._helper is not None

    def _start_helper(self) -> bool:
        if isinstance(self._file, io.BytesIO):
            self._open = self._on_disk(self._file.getvalue())
        results = self._on_disk(b"")
        try:
            self._helper = ParserProcess(self._file, results, self.memory)
        except OSError:  # the process could not be started
            results.close()
        return self._helper is not None

    def add_unparsed(self, path: str, content_hash: str, data: bytes) -> None:
        """Add a file for the helper process to parse."""
        assert self._helper
        self._add(marshal.dumps((path, content_hash, data, None)))
        self._report_end()

    def _report_end(self, *, all_of_it: bool = False) -> None:
        end = self._file.tell()
        if self._helper and (all_of_it or self._helper.is_behind(end)):
            self._file.flush()
            self._helper.report_end(end)

    def files(self) -> Iterator[SpooledFile]:
        """Yield the added files in order."""
        self._file.seek(0, os.SEEK_END)
        self._report_end(all_of_it=True)
        parsed = self._helper.parsed() if self._helper else iter(())
        self._file.seek(0, os.SEEK_SET)
        while head := self._file.read(NUMBER_BYTES):
            record = self._file.read(int.from_bytes(head, "little"))
            path, content_hash, data, plain = marshal.loads(record)  # noqa: S302 (our own file)
            item = SpooledFile(path, content_hash, data, None)
            parts = next(parsed) if plain is None else None
            if parts is not None:
                page, notes, derived = parts
                yield item._replace(page=page, notes=notes, derived=derived)
                continue
            try:
                yield _parse_spooled(item, plain)
            except Exception as error:
                yield item._replace(problem=failure_note(error))


def _parse_spooled(item: SpooledFile, plain: list[Any] | None) -> SpooledFile:
    """Return the item with its pages and derived data.

    The data is derived here, so that an error in a file occurs before its page is written.
    """
    notes: tuple[str, ...] = ()
    if plain is None:
        page, notes, _ = parse_file(item.path, item.data)
        pages = [page]
    else:
        pages = [page_from_plain(fields) for fields in plain]
    if not pages:
        return item
    derived = [derive_data(page) for page in pages]
    return item._replace(page=pages[0], nodes=tuple(pages[1:]), notes=notes, derived=derived[0])


# Inside the helper process


def run_parser(spool: int, results: int) -> None:
    # Ctrl-C reaches all processes of the terminal, but the parent process decides when this process ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end = place = written = 0
    waiting: list[bytes] = []
    while True:
        if place == end or select.select([0], [], [], 0)[0]:
            message = os.read(0, NUMBER_BYTES)
            if len(message) < NUMBER_BYTES:
                return
            end = int.from_bytes(message, "little")
        stop = min(end, place + PROGRESS_STEP_BYTES)
        while place < stop:
            size = int.from_bytes(_read_at(spool, NUMBER_BYTES, place), "little")
            answer = _parse_record(_read_at(spool, size, place + NUMBER_BYTES))
            place += NUMBER_BYTES + size
            if answer is not None:
                waiting.append(len(answer).to_bytes(NUMBER_BYTES, "little") + answer)
        if waiting:
            written = _write_at(results, b"".join(waiting), written)
            waiting = []
            os.write(1, written.to_bytes(NUMBER_BYTES, "little"))


def _parse_record(record: bytes) -> bytes | None:
    """Return the serialized result of parsing a spool record, or None if its pages are already parsed."""
    path, _, data, parsed = marshal.loads(record)  # noqa: S302 (our own file)
    if parsed is not None:
        return None
    try:
        page, notes, _ = parse_file(path, data)
        return dump_parsed((page, notes, derive_data(page)))
    except Exception:
        return dump_parsed(None)  # the parent parses the file again and reports the error


def _read_at(handle: int, size: int, place: int) -> bytes:
    data = os.pread(handle, size, place)
    while len(data) < size:  # pread may return less than requested
        more = os.pread(handle, size - len(data), place + len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _write_at(handle: int, data: bytes, place: int) -> int:
    while data:
        done = os.pwrite(handle, data, place)
        place += done
        data = data[done:]
    return place


if __name__ == "__main__":
    run_parser(int(sys.argv[1]), int(sys.argv[2]))
