"""Convert documents to Markdown with a heading for each page, slide, sheet or chapter.

Files are untrusted. Nothing is extracted to disk, macros are not run, external references are not followed, XML with
entity declarations is refused, and the size of all unpacked content is limited. Time and memory are limited by the
process that calls this module.
"""

import email
import email.header
import email.message
import email.utils
import posixpath
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote
from xml.parsers import expat

from quaid.formats import html_text, markdown
from quaid.formats.sections import escape_markup, fenced, one_line, table_row

if TYPE_CHECKING:
    from zipfile import ZipInfo

MAX_DIRECTORY_BYTES = 16 * 1024 * 1024
"""Maximum size of a zip archive's central directory in bytes, enough for about 120,000 entries."""

MAX_UNPACKED_BYTES = 4 * 1024**3
"""Maximum total size, in bytes, of the files that are read from an archive."""

MAX_COMPRESSION_RATIO = 100
"""Maximum compression ratio of a large archive. The ratio of text is 4 to 10."""

RATIO_CHECK_BYTES = 20 * 1024 * 1024
READ_SIZE = 1 << 20


class BrokenArchive(ValueError):
    """An archive cannot be read, or its contents exceed the limits. The message has the reason."""


class ZipReader:
    """A zip archive that is read in memory. Methods raise BrokenArchive if it is damaged or exceeds a limit."""

    def __init__(self, file: IO[bytes]) -> None:
        from zipfile import BadZipFile, ZipFile

        if _directory_size(file) > MAX_DIRECTORY_BYTES:
            raise BrokenArchive("its list of files is far too long")
        try:
            self._zip = ZipFile(file)
        except (BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError) as error:
            raise BrokenArchive(f"is a damaged archive ({error})") from None
        self.members = [member for member in self._zip.infolist() if not member.is_dir()]

    def close(self) -> None:
        self._zip.close()

    def member(self, name: str) -> "ZipInfo":
        return self._zip.getinfo(name)

    def pieces(self, member: "ZipInfo") -> Iterator[bytes]:
        """Yield the bytes of a file. A file that is longer than declared fails the checksum."""
        with _zip_errors(), self._zip.open(member) as packed:
            while piece := packed.read(READ_SIZE):
                yield piece

    def read(self, member: "ZipInfo") -> bytes:
        return b"".join(self.pieces(member))


def check_sizes(members: "Iterable[ZipInfo]", limit: int = MAX_UNPACKED_BYTES) -> int:
    """Return the unpacked size of the members; raise BrokenArchive if it exceeds a limit."""
    members = list(members)
    size = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members)
    if size > limit or (size > RATIO_CHECK_BYTES and size > MAX_COMPRESSION_RATIO * packed):
        raise BrokenArchive(f"would unpack {packed:,} bytes to {size:,}; no export does, so it is refused")
    return size


def _directory_size(file: IO[bytes]) -> int:
    """Return the size of the central directory, as stated in the end record of the archive."""
    file.seek(0, 2)
    file.seek(max(0, file.tell() - 65_557))
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    size = int.from_bytes(tail[at + 12 : at + 16], "little") if at >= 0 else 0
    file.seek(0)
    return size if size != 0xFFFFFFFF else MAX_DIRECTORY_BYTES + 1


@contextmanager
def _zip_errors() -> Iterator[None]:
    """Convert errors of the zip library to BrokenArchive."""
    from zipfile import BadZipFile

    try:
        yield
    except (BadZipFile, zlib.error, EOFError) as error:
        raise BrokenArchive(f"is damaged ({error})") from None
    except (RuntimeError, NotImplementedError) as error:  # encrypted, or unknown compression
        raise BrokenArchive(f"cannot be unpacked ({error})") from None


MAX_TEXT = 3_500_000
"""Maximum bytes of the text of a document; the rest is left out and reported."""
MAX_UNPACKED = 100 * 1024 * 1024
MAX_MEMBERS = 10_000
MAX_XML_DEPTH = 1_000
MAX_MESSAGE = 4 * 1024 * 1024
"""Maximum bytes read of each e-mail in a mailbox; the rest is skipped."""
MAX_PAGES = 5_000
MAX_COLUMNS = 300
ROWS_PER_PART = 100
LINES_PER_PART = 100

_LEADERS = re.compile(r"(?: ?\.){5,}")
"""The dots between an entry of a table of contents and its page number."""
_BLANK_LINES = re.compile(r"\n{3,}")


class UnreadableDocument(ValueError):
    """A document cannot be converted. The message is to be put after the file name, as in "is encrypted"."""


class DocumentPart(NamedTuple):
    heading: str
    """The heading of a page, slide, sheet or chapter, as in "Page 14"; "" if the part has none."""
    text: str


class Document(NamedTuple):
    title: str
    parts: Iterable[DocumentPart]
    frontmatter: dict[str, Any]
    notes: tuple[str, ...] = ()


def read(kind: str, name: str, stream: IO[bytes]) -> Iterator[Document]:
    """Yield the documents in a file: one, or each e-mail of a mailbox.

    Raise UnreadableDocument if the file is broken, encrypted, not of this kind, or has no text.
    """
    if kind == "mbox":
        yield from read_mailbox(stream)
        return
    try:
        document = READERS[kind](name, stream)
        parts = list(limited(document.parts))
        notes = document.notes
    except BrokenArchive as error:
        raise UnreadableDocument(_one_line(error)) from None
    except KeyError as error:
        raise UnreadableDocument(f"is damaged ({_one_line(error)})") from None
    except expat.ExpatError as error:
        raise UnreadableDocument(f"is damaged (XML: {_one_line(error)})") from None
    if parts and parts[-1].heading is LEFT_OUT:
        notes = (*notes, parts.pop().text)
    if not any(part.text.strip() for part in parts):
        problem = "has no text: its pages are pictures" if kind == "pdf" else "has no text"
        raise UnreadableDocument(problem)
    yield document._replace(parts=parts, notes=notes)


LEFT_OUT = "left out"


def limited(parts: Iterable[DocumentPart]) -> Iterator[DocumentPart]:
    """Yield parts up to MAX_TEXT bytes; if text is left out, add a part with the heading LEFT_OUT and a note."""
    left = MAX_TEXT
    for heading, text in parts:
        data = text.encode("utf-8", "replace")
        if len(data) > left:
            yield DocumentPart(heading, data[:left].decode("utf-8", "ignore"))
            end = f" (up to {heading[0].lower()}{heading[1:]})" if heading else ""
            yield DocumentPart(LEFT_OUT, f"only the first {MAX_TEXT:,} bytes of its text were taken in{end}")
            return
        left -= len(data) + len(heading) + 8
        yield DocumentPart(heading, text)


def render(document: Document, more: dict[str, Any] | None = None) -> str:
    """Return a document as a Markdown page. `more` is added to its front matter."""
    blocks = []
    for heading, text in document.parts:
        text = _BLANK_LINES.sub("\n\n", text).strip("\n")
        if heading and text:
            blocks.append(f"## {heading}")
        if text:
            blocks.append(text)
    front = {"title": document.title, **document.frontmatter, **(more or {})}
    return markdown.render({key: value for key, value in front.items() if value}, "\n\n".join(blocks), "")


def merge(title: str, documents: Iterable[Document]) -> Document:
    """Return the e-mails of a mailbox as one document, with a heading for each."""
    parts = (
        DocumentPart(f"{one_line(message.title)} ({message.frontmatter.get('date', 'no date')})", part.text)
        for message in documents
        for part in message.parts
    )
    kept = list(limited(parts))
    notes = (kept.pop().text,) if kept and kept[-1].heading is LEFT_OUT else ()
    return Document(title, kept, {}, notes)


# Plain text


def _one_line(error: BaseException) -> str:
    return one_line(str(error))[:120] or type(error).__name__


def stem(name: str) -> str:
    return one_line(posixpath.splitext(posixpath.basename(name))[0]) or "document"


def read_text(name: str, stream: IO[bytes]) -> Document:
    """Read plain text. Form feeds separate its pages."""
    text = _decode(stream.read(MAX_UNPACKED))
    pages = text.split("\f")
    if len(pages) == 1:
        return Document(stem(name), [DocumentPart("", escape_markup(text))], {})
    return Document(
        stem(name), [DocumentPart(f"Page {n}", escape_markup(page)) for n, page in enumerate(pages, 1)], {}
    )


def read_code(name: str, stream: IO[bytes]) -> Document:
    """Read source code, with a heading for every hundred lines."""
    lines = _decode(stream.read(MAX_UNPACKED)).replace("\r\n", "\n").rstrip("\n").split("\n")
    language = posixpath.splitext(name)[1][1:]
    parts = []
    for first in range(0, len(lines), LINES_PER_PART):
        block = lines[first : first + LINES_PER_PART]
        heading = f"Lines {first + 1}–{first + len(block)}"
        parts.append(DocumentPart(heading, fenced("\n".join(block), language)))
    return Document(one_line(posixpath.basename(name)), parts, {})


def _decode(data: bytes) -> str:
    if b"\0" in data[:8_192] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UnreadableDocument("is not text")
    return markdown.decode(data)[0]


# PDF


def read_pdf(name: str, stream: IO[bytes]) -> Document:
    try:
        import pypdfium2  # type: ignore[import-untyped]
    except ImportError:
        problem = "needs the extra for PDF files: pip install 'quaid-memory[documents]'"
        raise UnreadableDocument(problem) from None
    data = stream.read()
    try:
        pdf = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        encrypted = "password" in str(error).lower()
        raise UnreadableDocument("is encrypted" if encrypted else "is damaged (no PDF file)") from None
    count = len(pdf)
    notes = (f"only the first {MAX_PAGES:,} of {count:,} pages were taken in",) if count > MAX_PAGES else ()
    metadata = pdf.get_metadata_dict()
    front = {"author": one_line(metadata.get("Author", "")), "pages": count}
    return Document(one_line(metadata.get("Title", "")) or stem(name), _pdf_pages(pdf), front, notes)


def _pdf_pages(pdf: Any) -> Iterator[DocumentPart]:
    import pypdfium2

    for number in range(min(len(pdf), MAX_PAGES)):
        try:
            page = pdf[number]
            text_page = page.get_textpage()
            text = text_page.get_text_range()
            text_page.close()
            page.close()
        except pypdfium2.PdfiumError:
            continue  # skip a damaged page, but read the others
        # PDFium marks a hyphen at the end of a line with U+FFFE.
        text = _LEADERS.sub(" … ", re.sub("\ufffe(?:\r?\n)?", "", text))
        yield DocumentPart(f"Page {number + 1}", escape_markup(text))


# Archives and XML


class Archive:
    """A ZIP file that is read in memory, with a limit for everything that is unpacked."""

    def __init__(self, stream: IO[bytes]) -> None:
        head = stream.read(8)
        stream.seek(0)
        if head == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":
            raise UnreadableDocument(
                "is encrypted, or in the format of Office before 2007; save it as a new file"
            )
        self._zip = ZipReader(stream)
        if len(self._zip.members) > MAX_MEMBERS:
            raise UnreadableDocument(f"holds more than {MAX_MEMBERS:,} files")
        self.names = frozenset(member.filename for member in self._zip.members)
        self._left = MAX_UNPACKED

    def read(self, name: str) -> bytes:
        member = self._zip.member(name)
        if member.flag_bits & 1:
            raise UnreadableDocument("is encrypted")
        if member.file_size > self._left:
            raise UnreadableDocument(f"unpacks to more than {MAX_UNPACKED // 1024 // 1024} MB")
        self._left -= member.file_size
        return self._zip.read(member)

    def relations(self, name: str) -> dict[str, tuple[str, str]]:
        """Map relationship ids of a part to type and path of the target part. External targets are left out."""
        folder, base = posixpath.split(name)
        path = f"{folder}/_rels/{base}.rels" if folder else f"_rels/{base}.rels"
        related: dict[str, tuple[str, str]] = {}
        if path not in self.names:
            return related

        def start(tag: str, values: dict[str, str]) -> None:
            if tag == "Relationship" and values.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, values.get("Target", "")))[1:]
                related[values.get("Id", "")] = values.get("Type", "").rpartition("/")[2], target

        parse_xml(self.read(path), start)
        return related


def parse_xml(
    data: bytes,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None] | None = None,
    text: Callable[[str], None] | None = None,
) -> None:
    """Parse XML and call the handlers with local names. Attributes with a namespace get the prefix ":".

    Raise UnreadableDocument if the XML declares an entity or is nested too deeply.
    """
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True
    depth = 0

    def on_start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_XML_DEPTH:
            raise UnreadableDocument("nests too deeply")
        values = {
            f":{key.rpartition('}')[2]}" if "}" in key else key: text for key, text in attributes.items()
        }
        start(tag.rpartition("}")[2], values)

    def on_end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        if end:
            end(tag.rpartition("}")[2])

    def refuse(*_: object) -> int:
        raise UnreadableDocument("declares XML entities, which documents must not")

    parser.StartElementHandler = on_start
    parser.EndElementHandler = on_end
    if text:
        parser.CharacterDataHandler = text
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    parser.Parse(data, True)


def _metadata(data: bytes) -> dict[str, str]:
    """Return the text of the first `title` and of the first `creator` element."""
    texts, current = dict[str, str](), [""]

    def start(tag: str, _: dict[str, str]) -> None:
        current[0] = tag if tag in ("title", "creator") and tag not in texts else ""
        if current[0]:
            texts[tag] = ""

    def add(text: str) -> None:
        if current[0]:
            texts[current[0]] += text

    parse_xml(data, start, lambda _: current.__setitem__(0, ""), add)
    return {name: one_line(text) for name, text in texts.items()}


def _office(stream: IO[bytes], part: str, ending: str) -> tuple[Archive, str, dict[str, str]]:
    """Open an Office file. Return the archive, the path of its main part and its properties."""
    archive = Archive(stream)
    root = archive.relations("")
    main = next((path for kind, path in root.values() if kind == "officeDocument"), part)
    if not main.startswith(part.partition("/")[0] + "/") or main not in archive.names:
        raise UnreadableDocument(f"is not a {ending} file")
    properties = next((path for kind, path in root.values() if kind == "core-properties"), "")
    values = _metadata(archive.read(properties)) if properties in archive.names else {}
    return archive, main, values


# DOCX


class WordReader:
    """Collects paragraphs, tables and headings of a DOCX file, with the page numbers that Word last stored."""

    def __init__(self, levels: dict[str, int]) -> None:
        self.levels = levels
        self.parts: list[DocumentPart] = []
        self.blocks: list[str] = []
        self.heading, self.page, self.page_of_part = "", 1, 1
        self.follows_break = False  # no text since a manual page break
        self.words: list[str] = []
        self.style, self.is_item, self.in_text = "", False, False
        self.rows: list[list[str]] = []
        self.tables = self.skipped = 0
        self.has_headings = any(level < 3 for level in levels.values())

    def start(self, tag: str, values: dict[str, str]) -> None:
        if tag == "Fallback":  # repeats the content for older programs
            self.skipped += 1
        elif tag == "p" and not self.tables:
            self.words, self.style, self.is_item = [], "", False
        elif tag == "pStyle":
            self.style = values.get(":val", "")
        elif tag == "numPr":
            self.is_item = True
        elif tag == "t":
            self.in_text = True
        elif tag == "tab":
            self.words.append(" ")
        elif tag == "lastRenderedPageBreak" and self.follows_break:  # Word marks a manual break twice
            self.follows_break = False
        elif tag == "lastRenderedPageBreak" or (tag == "br" and values.get(":type") == "page"):
            self.page += 1
            self.follows_break = tag == "br"
            if not self.has_headings and not self.tables and not self.words:
                self.finish()
        elif tag in ("br", "cr"):
            self.words.append("\n")
        elif tag == "tbl":
            self.tables += 1
            self.rows = self.rows if self.tables > 1 else []
        elif tag == "tr" and self.tables == 1:
            self.rows.append([])
        elif tag == "tc" and self.tables == 1:
            self.words = []

    def end(self, tag: str) -> None:
        if tag == "Fallback":
            self.skipped -= 1
        elif tag == "t":
            self.in_text = False
        elif tag == "p":
            self._end_paragraph()
        elif tag == "tc" and self.tables == 1 and self.rows:
            self.rows[-1].append("".join(self.words))
            self.words = []
        elif tag == "tbl":
            self.tables -= 1
            if not self.tables:
                self.blocks.append(_table(self.rows))

    def add(self, text: str) -> None:
        if self.in_text and not self.skipped:
            self.words.append(text)
            self.follows_break = False

    def _end_paragraph(self) -> None:
        if self.tables:
            self.words.append("\n")
            return
        text = escape_markup("".join(self.words)).strip()
        self.words = []
        level = self.levels.get(self.style)
        if level == 1 and text:
            self.finish()
            self.heading = one_line(text)
        elif text:
            mark = "#" * min(6, level + 1) + " " if level else "- " if self.is_item else ""
            self.blocks.append(mark + (one_line(text) if level else text))
        if not self.has_headings and self.page != self.page_of_part:
            self.finish()

    def finish(self) -> None:
        """End the current part."""
        heading = self.heading
        if self.page > 1:
            heading = f"{heading} (page {self.page_of_part})" if heading else f"Page {self.page_of_part}"
        self.parts.append(DocumentPart(heading, "\n\n".join(self.blocks)))
        self.blocks, self.page_of_part, self.heading = [], self.page, ""


def _table(rows: list[list[str]]) -> str:
    lines = [table_row(row[:MAX_COLUMNS]) for row in rows if any(cell.strip() for cell in row)]
    if lines:
        lines.insert(1, "|" + "---|" * max(1, len(rows[0])))
    return "\n".join(lines)


def read_docx(name: str, stream: IO[bytes]) -> Document:
    archive, main, properties = _office(stream, "word/document.xml", "DOCX")
    styles = next((path for kind, path in archive.relations(main).values() if kind == "styles"), "")
    levels = _heading_levels(archive.read(styles)) if styles in archive.names else {}
    data = archive.read(main)
    used = set(re.findall(rb'pStyle [^>]*?val="([^"]*)"', data))
    reader = WordReader({style: level for style, level in levels.items() if style.encode() in used})
    parse_xml(data, reader.start, reader.end, reader.add)
    reader.finish()
    return Document(
        properties.get("title") or stem(name), reader.parts, {"author": properties.get("creator", "")}
    )


def _heading_levels(data: bytes) -> dict[str, int]:
    """Return the heading level of each paragraph style that has one."""
    levels: dict[str, int] = {}
    style = [""]

    def start(tag: str, values: dict[str, str]) -> None:
        value = values.get(":val", "")
        if tag == "style":
            style[0] = values.get(":styleId", "")
        elif tag == "name" and (match := re.fullmatch(r"[Hh]eading ([1-9])", value)):
            levels[style[0]] = int(match[1])
        elif tag == "outlineLvl" and value.isdecimal() and int(value) < 9:
            levels.setdefault(style[0], int(value) + 1)

    parse_xml(data, start)
    return levels


# PPTX


class SlideReader:
    """The title and the paragraphs of a slide."""

    def __init__(self) -> None:
        self.title, self.blocks = "", list[str]()
        self.words: list[str] = []
        self.in_title = self.in_text = False
        self.row: list[str] | None = None
        self.skipped = 0

    def start(self, tag: str, values: dict[str, str]) -> None:
        if tag == "Fallback":
            self.skipped += 1
        elif tag == "sp":
            self.in_title = False
        elif tag == "ph":
            self.in_title = values.get("type") in ("title", "ctrTitle")
            self.skipped += values.get("type") in ("sldNum", "dt", "ftr") and not self.skipped
        elif tag == "t":
            self.in_text = True
        elif tag == "br":
            self.words.append(" ")
        elif tag == "tr":
            self.row = []

    def end(self, tag: str) -> None:
        if tag == "Fallback" or (tag == "sp" and self.skipped):
            self.skipped -= 1
        elif tag == "t":
            self.in_text = False
        elif tag == "tc" and self.row is not None:
            self.row.append("".join(self.words))
            self.words = []
        elif tag == "tr" and self.row is not None:
            self.blocks.append(table_row(self.row))
            self.row = None
        elif tag == "p" and self.row is None:
            text, self.words = "".join(self.words).strip(), []
            if text and self.in_title and not self.title:
                self.title = one_line(text)
            elif text:
                self.blocks.append(escape_markup(text))

    def add(self, text: str) -> None:
        if self.in_text and not self.skipped:
            self.words.append(text)


def read_pptx(name: str, stream: IO[bytes]) -> Document:
    archive, main, properties = _office(stream, "ppt/presentation.xml", "PPTX")
    order: list[str] = []

    def start(tag: str, values: dict[str, str]) -> None:
        if tag == "sldId":
            order.append(values.get(":id", ""))

    parse_xml(archive.read(main), start)
    related = archive.relations(main)
    slides = [related[id_][1] for id_ in order if id_ in related and related[id_][1] in archive.names]
    parts = (_slide(archive, number, path) for number, path in enumerate(slides, 1))
    front = {"author": properties.get("creator", ""), "slides": len(slides)}
    return Document(properties.get("title") or stem(name), parts, front)


def _slide(archive: Archive, number: int, path: str) -> DocumentPart:
    reader, notes = SlideReader(), SlideReader()
    parse_xml(archive.read(path), reader.start, reader.end, reader.add)
    extra = next((to for kind, to in archive.relations(path).values() if kind == "notesSlide"), "")
    if extra in archive.names:
        parse_xml(archive.read(extra), notes.start, notes.end, notes.add)
    blocks = [*reader.blocks, *(["Notes:", *notes.blocks] if notes.blocks else [])]
    heading = f"Slide {number}: {reader.title}" if reader.title else f"Slide {number}"
    return DocumentPart(heading, "\n\n".join(blocks) or reader.title)


# XLSX

_DATE_FORMATS = frozenset([*range(14, 23), *range(45, 48)])
_FORMAT_QUOTES = re.compile(r'"[^"]*"|\[[^\[\]]*\]|\\.')
_LETTERS = re.compile(r"[A-Z]{1,3}")


class SheetReader:
    """The rows of a sheet, in parts of ROWS_PER_PART rows."""

    def __init__(self, name: str, strings: list[str], date_styles: set[int], is_1904: bool) -> None:
        self.name, self.strings, self.date_styles, self.is_1904 = name, strings, date_styles, is_1904
        self.rows: list[tuple[int, list[str]]] = []
        self.number = 0
        self.cells: list[str] = []
        self.kind, self.style, self.column = "", 0, 0
        self.words: list[str] | None = None

    def start(self, tag: str, values: dict[str, str]) -> None:
        if tag == "row":
            self.number = int(values.get("r") or self.number + 1)
            self.cells = []
        elif tag == "c":
            letters = _LETTERS.match(values.get("r", ""))
            self.column = _column(letters[0]) if letters else len(self.cells)
            self.kind, self.style = values.get("t", "n"), int(values.get("s") or 0)
        elif tag in ("v", "t"):
            self.words = []

    def add(self, text: str) -> None:
        if self.words is not None:
            self.words.append(text)

    def end(self, tag: str) -> None:
        if tag in ("v", "t") and self.words is not None:
            value = self._value("".join(self.words))
            self.words = None
            if self.column < MAX_COLUMNS and value:
                self.cells += [""] * (self.column + 1 - len(self.cells))
                self.cells[self.column] += value
        elif tag == "row" and any(self.cells):
            self.rows.append((self.number, self.cells))

    def _value(self, text: str) -> str:
        if self.kind == "s":
            return self.strings[int(text)] if text.isdecimal() and int(text) < len(self.strings) else ""
        if self.kind == "b":
            return "TRUE" if text == "1" else "FALSE"
        if self.kind == "n" and self.style in self.date_styles:
            return _excel_date(text, self.is_1904)
        if self.kind == "n" and len(text) > 15:  # 0.1 is stored as 0.10000000000000001
            try:
                return f"{float(text):.15g}"
            except ValueError:
                return text
        return text

    def parts(self) -> Iterator[DocumentPart]:
        many = len(self.rows) > ROWS_PER_PART
        for first in range(0, len(self.rows), ROWS_PER_PART):
            block = self.rows[first : first + ROWS_PER_PART]
            heading = f"Sheet {self.name}"
            if many:
                heading += f", rows {block[0][0]}–{block[-1][0]}"
            rows = [cells for _, cells in block]
            yield DocumentPart(heading, _table(rows if not first else [self.rows[0][1], *rows]))


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1


def _excel_date(text: str, is_1904: bool) -> str:
    from datetime import datetime, timedelta

    try:
        days = float(text) + (1_462 if is_1904 else 0)
        moment = datetime(1899, 12, 30) + timedelta(days=days)
    except (ValueError, OverflowError):
        return text
    if 0 <= days < 1:
        return moment.strftime("%H:%M")
    return moment.strftime("%Y-%m-%d") if days == int(days) else moment.strftime("%Y-%m-%d %H:%M")


def read_xlsx(name: str, stream: IO[bytes]) -> Document:
    archive, main, properties = _office(stream, "xl/workbook.xml", "XLSX")
    sheets: list[tuple[str, str]] = []
    is_1904 = [False]

    def start(tag: str, values: dict[str, str]) -> None:
        if tag == "sheet":
            sheets.append((one_line(values.get("name", "")), values.get(":id", "")))
        elif tag == "workbookPr":
            is_1904[0] = values.get("date1904") in ("1", "true")

    parse_xml(archive.read(main), start)
    related = archive.relations(main)
    paths = dict(related.values())
    strings = _shared_strings(archive, paths.get("sharedStrings", ""))
    dates = _date_styles(archive, paths.get("styles", ""))

    def parts() -> Iterator[DocumentPart]:
        for title, id_ in sheets:
            path = related.get(id_, ("", ""))[1]
            if path in archive.names:
                reader = SheetReader(title, strings, dates, is_1904[0])
                parse_xml(archive.read(path), reader.start, reader.end, reader.add)
                yield from reader.parts()

    front = {"author": properties.get("creator", ""), "sheets": len(sheets)}
    return Document(properties.get("title") or stem(name), parts(), front)


def _shared_strings(archive: Archive, path: str) -> list[str]:
    strings: list[str] = []
    state = {"in_text": False, "phonetic": False}

    def start(tag: str, _: dict[str, str]) -> None:
        if tag == "si":
            strings.append("")
        state["in_text"] = tag == "t" and not state["phonetic"]
        state["phonetic"] = state["phonetic"] or tag == "rPh"

    def end(tag: str) -> None:
        state["in_text"] = False
        state["phonetic"] = state["phonetic"] and tag != "rPh"

    def add(text: str) -> None:
        if state["in_text"] and strings:
            strings[-1] += text

    if path in archive.names:
        parse_xml(archive.read(path), start, end, add)
    return strings


def _date_styles(archive: Archive, path: str) -> set[int]:
    """Return the numbers of the cell styles that show a number as a date."""
    dates, styles, formats, in_cells = set(_DATE_FORMATS), set[int](), list[int](), [False]

    def start(tag: str, values: dict[str, str]) -> None:
        if tag == "numFmt" and re.search(
            "[ymdhs]", _FORMAT_QUOTES.sub("", values.get("formatCode", "").lower())
        ):
            dates.add(int(values.get("numFmtId") or -1))
        elif tag == "cellXfs":
            in_cells[0] = True
        elif tag == "xf" and in_cells[0]:
            formats.append(int(values.get("numFmtId") or 0))

    def end(tag: str) -> None:
        in_cells[0] = in_cells[0] and tag != "cellXfs"

    if path in archive.names:
        parse_xml(archive.read(path), start, end)
    styles.update(place for place, format_ in enumerate(formats) if format_ in dates)
    return styles


# HTML and EPUB

_DATE_KEYS = ("article:published_time", "date", "dcterms.date", "dc.date")


def read_html(name: str, stream: IO[bytes]) -> Document:
    data = stream.read(MAX_UNPACKED)
    declared = re.search(rb"<meta[^>]{0,200}charset=[\"']?([\w-]{1,40})", data[:4_096])
    body, reader = html_text.main_text(_decode_as(data, declared[1].decode() if declared else ""))
    days = (re.match(r"\d{4}-\d\d-\d\d", reader.meta.get(key, "")) for key in _DATE_KEYS)
    date = next((day[0] for day in days if day), "")
    return Document(one_line(reader.title) or stem(name), [DocumentPart("", body)], {"date": date})


def _decode_as(data: bytes, charset: str) -> str:
    """Decode text in a declared encoding, or like markdown.decode() if there is none or that fails."""
    if charset and not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        try:
            return data.decode(charset)
        except (LookupError, ValueError):
            pass
    return markdown.decode(data)[0]


def read_svg(name: str, stream: IO[bytes]) -> Document:
    """Read the title, the description and the text of a drawing."""
    texts: list[tuple[str, str]] = []
    open_tags: list[str] = []

    def start(tag: str, _: dict[str, str]) -> None:
        if tag in ("title", "desc", "text") and not open_tags:
            texts.append((tag, ""))
        if open_tags or tag in ("title", "desc", "text"):
            open_tags.append(tag)

    def end(_: str) -> None:
        if open_tags:
            open_tags.pop()

    def add(text: str) -> None:
        if open_tags:
            tag, words = texts[-1]
            texts[-1] = tag, f"{words}{text}"

    parse_xml(stream.read(MAX_UNPACKED), start, end, add)
    title = next((one_line(text) for tag, text in texts if tag == "title"), "")
    lines = [escape_markup(" ".join(text.split())) for tag, text in texts]
    return Document(title or stem(name), [DocumentPart("", "\n".join(filter(None, lines)))], {})


def read_epub(name: str, stream: IO[bytes]) -> Document:
    archive = Archive(stream)
    if "META-INF/container.xml" not in archive.names:
        raise UnreadableDocument("is not an EPUB file")
    package = [""]

    def root(tag: str, values: dict[str, str]) -> None:
        if tag == "rootfile" and not package[0]:
            package[0] = unquote(values.get("full-path", ""))

    parse_xml(archive.read("META-INF/container.xml"), root)
    items: dict[str, str] = {}
    spine: list[str] = []
    folder = posixpath.dirname(package[0])

    def start(tag: str, values: dict[str, str]) -> None:
        if tag == "item" and "html" in values.get("media-type", ""):
            path = posixpath.normpath(posixpath.join("/", folder, unquote(values.get("href", ""))))[1:]
            items[values.get("id", "")] = path
        elif tag == "itemref":
            spine.append(values.get("idref", ""))

    data = archive.read(package[0])
    parse_xml(data, start)
    chapters = [items[id_] for id_ in spine if items.get(id_) in archive.names]
    locks = archive.read("META-INF/encryption.xml") if "META-INF/encryption.xml" in archive.names else b""
    if any(path.encode() in locks for path in chapters):
        raise UnreadableDocument("is encrypted")
    values = _metadata(data)
    front = {"author": values.get("creator", "")}
    parts = (_chapter(archive, number, path) for number, path in enumerate(chapters, 1))
    return Document(values.get("title") or stem(name), parts, front)


def _chapter(archive: Archive, number: int, path: str) -> DocumentPart:
    body, reader = html_text.main_text(_decode_as(archive.read(path), ""), shift=2)
    lines = body.lstrip("\n").split("\n")
    title = one_line(lines.pop(0).lstrip("#")) if lines[0].startswith("#") else one_line(reader.title)
    return DocumentPart(f"Chapter {number}: {title}" if title else f"Chapter {number}", "\n".join(lines))


# E-mail

_MAIL_FIELDS = ("From", "To", "Cc", "Date")


def read_mail(_name: str, stream: IO[bytes]) -> Document:
    return parse_mail(stream.read(MAX_UNPACKED))


def parse_mail(data: bytes) -> Document:
    """Return an e-mail as a document: its header fields, its text and the names of its attachments."""
    message = email.message_from_bytes(data)
    fields = {name: _header(message, name) for name in _MAIL_FIELDS}
    if not (fields["From"] or message["Subject"] or fields["Date"]):
        raise UnreadableDocument("is not an e-mail: it has no From, Subject or Date")
    try:
        date = email.utils.parsedate_to_datetime(fields["Date"]).date().isoformat() if fields["Date"] else ""
    except (ValueError, TypeError, OverflowError):
        date = ""
    texts, attached = _mail_text(message)
    blocks = ["\n".join(f"- {name}: {value}" for name, value in fields.items() if value), *texts]
    if attached:
        blocks.append("\n".join(f"- Attachment: {name}" for name in attached))
    front = {"date": date, "message_id": _header(message, "Message-ID")}
    title = _header(message, "Subject") or "(no subject)"
    return Document(title, [DocumentPart("", "\n\n".join(filter(None, blocks)))], front)


def _header(message: email.message.Message, name: str) -> str:
    value = message.get(name)
    if value is None:
        return ""
    text = str(value)
    if "=?" in text:
        try:
            text = str(email.header.make_header(email.header.decode_header(text)))
        except (ValueError, LookupError):
            pass
    return one_line(text)


def _mail_text(message: email.message.Message) -> tuple[list[str], list[str]]:
    """Return the texts of an e-mail and the names of its attachments. HTML is used if there is no plain text."""
    plain: list[str] = []
    html: list[str] = []
    attached: list[str] = []
    for place, part in enumerate(message.walk()):
        if place > 1_000:
            break
        kind = part.get_content_type()
        name = part.get_filename()
        if part.is_multipart():
            continue
        if name or part.get_content_disposition() == "attachment" or kind not in ("text/plain", "text/html"):
            attached.append(f"{one_line(name or 'without a name')} ({one_line(kind)})")
            continue
        payload = part.get_payload(decode=True)
        text = _decode_as(payload if isinstance(payload, bytes) else b"", part.get_content_charset() or "")
        if kind == "text/plain":
            plain.append(escape_markup(text).strip())
        else:
            html.append(text)
    texts = [text for text in plain if text] or [html_text.main_text(text)[0].strip() for text in html]
    return texts, attached


_MAIL_START = re.compile(rb"From \S+ .*\d{4}")


def read_mailbox(stream: IO[bytes]) -> Iterator[Document]:
    """Yield the e-mails of an mbox file, which is read line by line."""
    data = bytearray()
    was_blank, started = True, False
    while line := stream.readline(65_536):
        if was_blank and line.startswith(b"From ") and _MAIL_START.match(line):
            yield from _mailbox_entry(bytes(data))
            data, started = bytearray(), True
        elif not started:
            raise UnreadableDocument("is not an mbox file: it does not begin with a From line")
        elif len(data) < MAX_MESSAGE:
            data += line[1:] if line.startswith((b">From ", b">>From ")) else line
        was_blank = line in (b"\n", b"\r\n")
    yield from _mailbox_entry(bytes(data))


def _mailbox_entry(data: bytes) -> Iterator[Document]:
    if not data:
        return
    try:
        mail = parse_mail(data)
        parts = list(limited(mail.parts))
        notes = (f"{mail.title}: {parts.pop().text}",) if parts[-1].heading is LEFT_OUT else ()
        yield mail._replace(parts=parts, notes=notes)
    except (ValueError, LookupError, RecursionError, AssertionError, TypeError, IndexError) as error:
        yield Document("", [], {}, (f"an e-mail is left out: {_one_line(error)}",))


# Calendars

_WHEN = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?")
_EVENT_FIELDS = {
    "DTSTART": "From", "DTEND": "Until", "DUE": "Due", "RRULE": "Repeats", "LOCATION": "Where",
    "ORGANIZER": "Organizer", "ATTENDEE": "With", "STATUS": "Status",
}  # fmt: skip


def read_calendar(name: str, stream: IO[bytes]) -> Document:
    """Read an iCalendar file, with a heading for each event, task and journal entry."""
    text = _decode(stream.read(MAX_UNPACKED))
    if "BEGIN:VCALENDAR" not in text[:10_000].upper():
        raise UnreadableDocument("is not an iCalendar file")
    lines = re.sub(r"\r?\n[ \t]", "", text).splitlines()
    title = next((value for field, _, value in map(_property, lines) if field == "X-WR-CALNAME"), "")
    return Document(one_line(_unescape(title)) or stem(name), _events(lines), {})


def _events(lines: list[str]) -> Iterator[DocumentPart]:
    fields: list[tuple[str, dict[str, str], str]] = []
    inside = alarm = False
    for field, parameters, value in map(_property, lines):
        kind = value.upper()
        if field == "BEGIN" and kind in ("VEVENT", "VTODO", "VJOURNAL"):
            fields, inside = [], True
        elif field in ("BEGIN", "END") and kind == "VALARM":
            alarm = field == "BEGIN"
        elif field == "END" and inside and kind in ("VEVENT", "VTODO", "VJOURNAL"):
            inside = False
            yield _event(fields)
        elif inside and not alarm:
            fields.append((field, parameters, value))


def _event(fields: list[tuple[str, dict[str, str], str]]) -> DocumentPart:
    lines, summary, text, day = [], "", "", ""
    for field, parameters, value in fields:
        if field == "SUMMARY":
            summary = one_line(_unescape(value))
        elif field == "DESCRIPTION":
            text = escape_markup(_unescape(value))
        elif field in _EVENT_FIELDS:
            shown = _moment(value, parameters) if field in ("DTSTART", "DTEND", "DUE") else _unescape(value)
            if field in ("ORGANIZER", "ATTENDEE"):
                address = re.sub("(?i)^mailto:", "", shown)
                shown = f"{parameters['CN']} <{address}>" if "CN" in parameters else address
            day = shown[:10] if field == "DTSTART" else day
            lines.append(f"- {_EVENT_FIELDS[field]}: {one_line(shown)}")
    heading = f"{summary or 'Without a title'}{f' ({day})' if day else ''}"
    return DocumentPart(heading, "\n\n".join(filter(None, ["\n".join(lines), text])) or heading)


def _property(line: str) -> tuple[str, dict[str, str], str]:
    """Return the name, the parameters and the value of a line."""
    match = re.match(r'((?:[^":]|"[^"]*")*):(.*)', line)
    if not match:
        return "", {}, ""
    name, *rest = re.findall(r'(?:[^";]|"[^"]*")+', match[1]) or [""]
    pairs = (item.partition("=") for item in rest)
    return name.upper(), {key.upper(): value.strip('"') for key, _, value in pairs}, match[2]


def _moment(value: str, parameters: dict[str, str]) -> str:
    match = _WHEN.match(value)
    if not match:
        return value
    year, month, day, hour, minute, utc = match.groups()
    zone = " UTC" if utc else f" ({parameters['TZID']})" if "TZID" in parameters else ""
    return f"{year}-{month}-{day}" + (f" {hour}:{minute}{zone}" if hour else "")


def _unescape(value: str) -> str:
    return re.sub(r"\\([\\;,nN])", lambda match: "\n" if match[1] in "nN" else match[1], value)


READERS: dict[str, Callable[[str, IO[bytes]], Document]] = {
    "pdf": read_pdf,
    "docx": read_docx,
    "pptx": read_pptx,
    "xlsx": read_xlsx,
    "html": read_html,
    "svg": read_svg,
    "epub": read_epub,
    "eml": read_mail,
    "ics": read_calendar,
    "text": read_text,
    "code": read_code,
}
