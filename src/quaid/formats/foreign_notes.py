"""Notes and memories in the formats of other programs, as Markdown pages with facts and links.

Each reader takes the files of an export and yields pages, facts and links, and a SkippedEntry for unreadable parts.
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import unquote

from quaid.errors import InvalidFrontMatter
from quaid.formats import markdown, org, transcripts
from quaid.formats.html_text import read_note
from quaid.formats.transcripts import iter_json_list, parse_time
from quaid.model import page as page_model, slug as slugs
from quaid.model.page import PAGE_TYPES
from quaid.model.slug import fold_name
from quaid.model.sync_plan import SkippedEntry

MAX_NOTE_BYTES = 4 * 1024 * 1024
MAX_JSON_BYTES = 64 * 1024 * 1024
"""Maximum size of a JSON file that has to be parsed as a whole. Lists are read item by item."""

MAX_FACTS_OF_NOTE = 200
LONGEST_OBJECT = 1_000
LONGEST_TITLE = 80
OTHER_KIND = "other kind of file"
FACTS_BEGIN, FACTS_END = "%% quaid facts begin %%", "%% quaid facts end %%"

_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_FIELD = re.compile(r"[ \t]*(?:[-*+][ \t]+)?(?:\*\*)?([^\W\d_][\w /-]{0,60}?)(?:\*\*)?::[ \t]+(\S.*)")
_BRACKET_FIELD = re.compile(r"[\[(]([^\W\d_][\w -]{0,60})::[ \t]++([^\]\[()\n]{1,300})[\])]")
_TAG = re.compile(r"(?<!\S)#[\w/-]+")
_HEADING = re.compile(r"# +(\S.*)")


class InputFile(NamedTuple):
    """A file of an export. `read` and `pieces` raise ValueError with the reason if they fail."""

    path: str
    size: int
    modified: str
    read: Callable[[int], bytes]
    pieces: Callable[[], Iterator[bytes]]


class ForeignPage(NamedTuple):
    path: str
    """Path of the Markdown file to import, from which the slug of the page is made."""
    data: bytes
    created: str = ""
    names: tuple[str, ...] = ()
    """Names, in addition to the slug, by which other notes link to the page."""
    sidecar: bytes = b""


class ForeignFact(NamedTuple):
    path: str
    subject: str
    predicate: str
    object: str
    created: str = ""
    evidence: str = ""


class ForeignLink(NamedTuple):
    path: str
    target: str
    """Name of the page that the link leads to."""
    relationship: str
    context: str = ""


class ForeignRecord(NamedTuple):
    """A link or fact of an export of Quaid, in the form of its links-and-facts file."""

    kind: str
    """links or facts."""
    record: dict[str, Any]


Item = ForeignPage | ForeignFact | ForeignLink | ForeignRecord | SkippedEntry
Reader = Callable[[list[InputFile]], Iterator[Item]]


def make_page(
    path: str, front: dict[str, Any], text: str, created: str = "", names: Iterable[str] = ()
) -> ForeignPage:
    """Return a page with this front matter, without the keys that have no value."""
    kept = {key: value for key, value in front.items() if value not in (None, "", [], {})}
    if created:
        kept.setdefault("created", created)
    data = markdown.render(kept, markdown.normalize_part(text), "").encode("utf-8", "replace")
    return ForeignPage(path, data.replace(b"\0", b""), created, tuple(names))


def note_texts(files: list[InputFile], *endings: str) -> Iterator[tuple[InputFile, str] | SkippedEntry]:
    """Yield each file with one of these endings and its text, and a SkippedEntry for other files and for problems."""
    for file in files:
        if not file.path.lower().endswith(endings):
            yield SkippedEntry(file.path, OTHER_KIND)
            continue
        try:
            text, mended = markdown.decode(file.read(MAX_NOTE_BYTES))
        except ValueError as error:
            yield SkippedEntry(file.path, str(error))
            continue
        if mended and "replaced" in mended:
            yield SkippedEntry(file.path, f"only in part: {mended}")
        yield file, text


def _stem(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[0] or path


def _first_words(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= LONGEST_TITLE:
        return line
    head = line[:LONGEST_TITLE]
    return (head.rpartition(" ")[0] or head) + "…"  # Chinese and Japanese have no spaces


def _string_list(value: Any) -> list[str]:
    """Return a list of strings from a list, or from text separated by commas."""
    if isinstance(value, str):
        value = [part.strip().strip("#").removeprefix("[[").removesuffix("]]") for part in value.split(",")]
    return [part for part in value if isinstance(part, str) and part] if isinstance(value, list) else []


def prose_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text that are not in a code block."""
    is_code = False
    for line in text.split("\n"):
        if _FENCE.match(line):
            is_code = not is_code
        elif not is_code:
            yield line


def field_facts(
    path: str, title: str, fields: Iterable[tuple[str, str, str]], created: str
) -> Iterator[ForeignFact | SkippedEntry]:
    """Yield facts from triples of a predicate, an object and the line that states them."""
    for number, (key, value, line) in enumerate(fields):
        if number == MAX_FACTS_OF_NOTE:
            yield SkippedEntry(
                path, f"only {MAX_FACTS_OF_NOTE} fields become facts; the others stay in the text"
            )
            return
        value = value.strip()
        if len(value) > LONGEST_OBJECT:
            yield SkippedEntry(path, f"the field {key} is too long for a fact; it stays in the text")
        elif value.strip("[]*_` "):
            yield ForeignFact(path, title, key.strip(), value, created, line.strip()[:1_000])


def _inline_fields(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Yield key, value and line of the fields `key:: value`."""
    for line in lines:
        if "::" not in line:
            continue
        match = _FIELD.fullmatch(line.rstrip())
        if match:
            yield match[1], match[2], line
        else:
            yield from ((field[1], field[2], line) for field in _BRACKET_FIELD.finditer(line))


# Obsidian and Basic Memory


def _read_note(file: InputFile, text: str) -> tuple[ForeignPage, markdown.MarkdownDocument]:
    """Return the page of a Markdown note and its parts, without the block of facts that an export of Quaid adds.

    The first name of the page is its title.
    """
    start, end = text.find(FACTS_BEGIN), text.find(FACTS_END)
    if 0 <= start < end:
        text = text[:start].rstrip("\n") + "\n" + text[end + len(FACTS_END) :].lstrip("\n")
    document = markdown.parse(text)
    named = document.frontmatter.get("title")
    heading = next((match[1] for line in prose_lines(document.truth) if (match := _HEADING.match(line))), "")
    title = named.strip() if isinstance(named, str) and named.strip() else heading.strip() or _stem(file.path)
    created = _first_time(document.frontmatter, *_CREATED_KEYS)
    return ForeignPage(file.path, text.encode(), created, (title, _stem(file.path))), document


_CREATED_KEYS = ("created", "created_at", "date created", "date_created", "creation date", "date")


def _first_time(values: Mapping[str, Any], *keys: str) -> str:
    """Return the first value of these keys that is a time, or ""."""
    return next((at for key in keys if (at := parse_time(values.get(key)))), "")


def _all_lines(document: markdown.MarkdownDocument) -> Iterator[str]:
    return prose_lines(f"{document.truth}\n{document.timeline}")


def read_obsidian(files: list[InputFile]) -> Iterator[Item]:
    """Read an Obsidian vault. The text stays as it is; fields `key:: value` also become facts."""
    for part in note_texts(files, ".md", ".markdown", ".raw/"):
        if isinstance(part, SkippedEntry):
            if "/.raw/" not in f"/{part.path}":
                yield part
            continue
        page, document = _read_note(*part)
        yield page
        yield from field_facts(page.path, page.names[0], _inline_fields(_all_lines(document)), page.created)


_OBSERVATION = re.compile(r"[ \t]*[-*+][ \t]+\[([^\]\[\n]{2,60})\](?!\()[ \t]+(\S.*)")
_RELATION = re.compile(
    r'[ \t]*[-*+][ \t]++(?:(?:"([^"\n]{1,100})"|([^\W\d_][\w -]{0,100}?))[ \t]*+)?'
    r"\[\[([^\]\n|]+)(?:\|[^\]\n]*)?\]\][ \t]*+(?:\(([^()\n]*)\)[ \t]*)?"
)
_CONTEXT = re.compile(r"(?<![ \t])[ \t]*\(([^()]*)\)[ \t]*\Z")


def read_basic_memory(files: list[InputFile]) -> Iterator[Item]:
    """Read a Basic Memory project. Observations become facts, relations become links, permalinks become slugs."""
    for part in note_texts(files, ".md", ".markdown"):
        if isinstance(part, SkippedEntry):
            yield part
            continue
        page, document = _read_note(*part)
        link = document.frontmatter.get("permalink")
        path = f"{slugs.from_path(link + '.md')}.md" if isinstance(link, str) and link.strip() else page.path
        yield page._replace(path=path)
        observations = []
        for line in _all_lines(document):
            if match := _OBSERVATION.fullmatch(line.rstrip()):
                value = _TAG.sub("", _CONTEXT.sub("", match[2])).strip()
                observations.append((match[1], value or match[2], line))
            elif match := _RELATION.fullmatch(line.rstrip()):
                relationship = (match[1] or match[2] or "relates_to").strip()
                yield ForeignLink(path, match[3].strip(), relationship, match[4] or "")
        yield from field_facts(path, page.names[0], observations, page.created)


# Logseq and Roam

_PROPERTY = re.compile(r"[ \t]*(?:- )?([\w./?!-]{1,60}):: ?(.*)")
_JOURNAL_FILE = re.compile(r"(\d{4})[_-](\d\d)[_-](\d\d)")
_BLOCK_REFERENCE = re.compile(r"\(\(([\w-]{6,40})\)\)")
_EMBED = re.compile(r"\{\{\[?\[?embed\]?\]?:? *(\[\[[^\]\n]+\]\]|\(\([\w-]+\)\)) *\}\}")
_TASK = re.compile(r"^([ \t]*- )(TODO|DOING|NOW|LATER|WAITING|DONE|CANCELED|CANCELLED) ")
_LOGBOOK = re.compile(r"\n[ \t]*:LOGBOOK:\n.*?\n[ \t]*:END:(?=\n|\Z)", re.DOTALL)
_HIDDEN_PROPERTIES = frozenset(
    ("id", "collapsed", "background-color", "heading", "icon", "title", "alias", "tags")
)
_OWN_PROPERTIES = frozenset(("quaid-id", "created", "created-at", "updated", "updated-at"))
"""Properties that describe the page, not its subject. They become front matter, but not facts."""

Blocks = dict[str, tuple[str, str]]
"""Title of the page and text of each block that other blocks refer to, by its id."""


def read_logseq(files: list[InputFile]) -> Iterator[Item]:
    """Read a Logseq graph: pages and journals. Properties of pages become front matter and facts."""
    notes: list[tuple[InputFile, str]] = []
    wanted = [file for file in files if not f"/{file.path}".startswith(("/logseq/", "/.logseq/"))]
    settings = [file for file in files if file not in wanted]
    yield from (SkippedEntry(file.path, "settings and backups of Logseq") for file in settings)
    for part in note_texts(wanted, ".md", ".markdown", ".org"):
        if isinstance(part, SkippedEntry):
            yield part
        elif part[0].path.lower().endswith(".org"):
            yield from _org_pages(*part)
        else:
            notes.append((part[0], part[1].replace("\r\n", "\n")))
    references = {block for _, text in notes for block in _BLOCK_REFERENCE.findall(text)}
    blocks: Blocks = {}
    for file, text in notes:
        blocks.update(_logseq_blocks(_logseq_title(file.path), text, references))
    for file, text in notes:
        yield from _logseq_page(file, text, blocks)


def _logseq_title(path: str) -> str:
    stem = unquote(_stem(path)).replace("___", "/")
    day = _JOURNAL_FILE.fullmatch(stem)
    return "-".join(day.groups()) if day else stem


def _logseq_blocks(title: str, text: str, wanted: set[str]) -> Iterator[tuple[str, tuple[str, str]]]:
    last = ""
    for line in text.split("\n"):
        match = _PROPERTY.fullmatch(line)
        if match and match[1] == "id" and match[2].strip() in wanted:
            yield match[2].strip(), (title, last)
        elif line.strip().startswith("- "):
            last = line.strip()[2:]


def _logseq_page(file: InputFile, text: str, blocks: Blocks) -> Iterator[Item]:
    text = _LOGBOOK.sub("", text)
    lines = text.split("\n")
    properties: dict[str, str] = {}
    first = 0
    for first, line in enumerate(lines):  # noqa: B007 (used below)
        match = _PROPERTY.fullmatch(line)
        if match:
            properties[match[1].lower()] = match[2].strip()
        elif line.strip() not in ("", "-"):
            break
    else:
        first = len(lines)
    title = properties.get("title") or _logseq_title(file.path)
    day = _JOURNAL_FILE.fullmatch(unquote(_stem(file.path)))
    kind = properties.pop("type") if properties.get("type") in PAGE_TYPES else None
    front: dict[str, Any] = {
        "title": title,
        "type": "journal" if day else kind,
        "date": "-".join(day.groups()) if day else None,
        "aliases": _string_list(properties.get("alias")),
        "tags": _string_list(properties.get("tags")),
    }
    extra = {key: value for key, value in properties.items() if key not in _HIDDEN_PROPERTIES and value}
    front.update({key: value for key, value in extra.items() if key not in front})
    created = _first_time(properties, "created", "created-at")
    path = f"journals/{front['date']}.md" if day else f"{slugs.from_path(title + '.md')}.md"
    body = "\n".join(_logseq_lines(lines[first:], blocks))
    yield make_page(path, front, body, created, (title, *front["aliases"]))
    yield from field_facts(
        path,
        title,
        [(key, value, f"{key}:: {value}") for key, value in extra.items() if key not in _OWN_PROPERTIES],
        created,
    )


def _logseq_lines(lines: list[str], blocks: Blocks) -> Iterator[str]:
    """Yield the lines of an outline in Markdown: tasks as checkboxes, references as links."""
    previous = ""
    for line in chain(lines, [""]):
        match = _PROPERTY.fullmatch(line)
        if match and match[1] in ("id", "collapsed", "heading", "background-color"):
            if match[1] == "id" and match[2].strip() in blocks and previous:
                previous += f" ^{match[2].strip()}"
            continue
        if previous or line:
            yield _outline_line(previous, blocks)
        previous = line
    if previous:
        yield _outline_line(previous, blocks)


def _outline_line(line: str, blocks: Blocks) -> str:
    indent = len(line) - len(line.lstrip("\t"))
    line = "  " * indent + line[indent:]
    line = _TASK.sub(
        lambda match: match[1] + ("[x] " if match[2][0] in "DC" and match[2] != "DOING" else "[ ] "), line
    )
    return _replace_references(line, blocks)


def _replace_references(text: str, blocks: Blocks) -> str:
    """Replace embeds and block references with links; references to unknown blocks stay as they are."""

    def link(match: re.Match[str]) -> str:
        if match[1] not in blocks:
            return match[0]
        title, words = blocks[match[1]]
        label = _first_words(re.sub(r"[\[\]|]", "", _BLOCK_REFERENCE.sub("", words))) or title
        return f"[[{title}#^{match[1]}|{label}]]"

    text = _EMBED.sub(lambda match: f"!{match[1]}" if match[1].startswith("[[") else match[1], text)
    return _BLOCK_REFERENCE.sub(link, text) if "((" in text else text


_ROAM_DAY = re.compile(r"([A-Z][a-z]+) (\d{1,2})(?:st|nd|rd|th), (\d{4})")
_ROAM_TASK = re.compile(r"\{\{(?:\[\[)?(TODO|DONE)(?:\]\])?\}\} ?")
_ROAM_ATTRIBUTE = re.compile(r"\*{0,2}([^\W\d_][^:\n`]{0,60}?)::\*{0,2}[ \t]*(\S[^\n]*)")


def read_roam(files: list[InputFile]) -> Iterator[Item]:
    """Read a JSON export of Roam Research. Attributes become facts, and block references become links."""
    for file in files:
        if not file.path.lower().endswith(".json"):
            reason = "export the graph as JSON" if file.path.lower().endswith((".md", ".edn")) else OTHER_KIND
            yield SkippedEntry(file.path, reason)
            continue
        try:
            references: set[str] = set()
            for page in iter_json_list(file.pieces()):
                references.update(_BLOCK_REFERENCE.findall(json.dumps(page, ensure_ascii=False)))
            blocks: Blocks = {}
            for page in iter_json_list(file.pieces()) if references else ():
                for block, title in _roam_blocks(page):
                    if block.get("uid") in references:
                        blocks[block["uid"]] = (title, str(block.get("string") or ""))
            for number, page in enumerate(iter_json_list(file.pieces())):
                if not isinstance(page, dict) or not isinstance(page.get("title"), str):
                    yield SkippedEntry(f"{file.path}[{number}]", "a page without a title")
                else:
                    yield from _roam_page(page, blocks)
        except ValueError as error:
            yield SkippedEntry(file.path, str(error))


def _roam_blocks(page: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the blocks of a page at any depth, each with the title of the page."""
    if not isinstance(page, dict):
        return
    title = str(page.get("title") or "")
    waiting = [page.get("children")]
    while waiting:
        for block in waiting.pop() or ():
            if isinstance(block, dict):
                yield block, title
                waiting.append(block.get("children"))


def _roam_page(page: dict[str, Any], blocks: Blocks) -> Iterator[Item]:
    title = page["title"].strip()
    created = parse_time(page.get("create-time"))
    day = _roam_date(title)
    front = {
        "title": title,
        "type": "journal" if day else None,
        "date": day,
        "id": page.get("uid"),
        "updated": parse_time(page.get("edit-time")),
    }
    path = f"journals/{day}.md" if day else f"{slugs.from_path(title + '.md')}.md"
    lines: list[str] = []
    fields: list[tuple[str, str, str]] = []
    waiting: list[tuple[int, Any]] = [(0, child) for child in reversed(_children(page))]
    while waiting:
        depth, block = waiting.pop()
        text = block.get("string") if isinstance(block, dict) else None
        if not isinstance(text, str):
            yield SkippedEntry(path, "a block without text")
            continue
        if match := _ROAM_ATTRIBUTE.fullmatch(text):
            fields.append((match[1], match[2], text))
        lines += _roam_lines(block, text, depth, blocks)
        waiting += [(depth + 1, child) for child in reversed(_children(block))]
    yield make_page(path, front, "\n".join(lines), created, (title,))
    yield from field_facts(path, title, fields, created)


def _children(block: dict[str, Any]) -> list[Any]:
    children = block.get("children")
    return children if isinstance(children, list) else []


def _roam_lines(block: dict[str, Any], text: str, depth: int, blocks: Blocks) -> Iterator[str]:
    """Yield the lines of a block as an item of a Markdown list."""
    task = _ROAM_TASK.search(text)
    text = ("[x] " if task[1] == "DONE" else "[ ] ") + _ROAM_TASK.sub("", text) if task else text
    text = re.sub(r"\^\^(.+?)\^\^", r"==\1==", re.sub(r"(?<!\w)__(.+?)__(?!\w)", r"*\1*", text))
    level = block.get("heading")
    heading = "#" * level + " " if isinstance(level, int) and 0 < level <= 6 else ""
    mark = f" ^{block['uid']}" if block.get("uid") in blocks else ""
    indent = "  " * min(depth, 50)
    first, *rest = _replace_references(text, blocks).split("\n")
    yield f"{indent}- {heading}{first}{mark if not rest else ''}"
    yield from (f"{indent}  {line}" for line in rest[:-1])
    yield from (f"{indent}  {line}{mark}" for line in rest[-1:])


def _roam_date(title: str) -> str | None:
    match = _ROAM_DAY.fullmatch(title)
    return _day(" ".join(match.groups()), "%B %d %Y") if match else None


def _day(text: str, *formats: str) -> str | None:
    for form in formats:
        try:
            return datetime.strptime(text, form).strftime(
                "%Y-%m-%dT%H:%M:%SZ" if "%H" in form or "%I" in form else "%Y-%m-%d"
            )
        except ValueError:
            continue
    return None


# Notion

_NOTION_ID = re.compile(r"(.*?)[ -]?([0-9a-f]{32})(_all)?")
_NOTION_LINK = re.compile(r"(?<!!)\[([^\[\]\n]*)\]\(([^()\s:]+?\.(?:md|csv))\)")
_NOTION_PROPERTY = re.compile(r"([^\W_][^:\n]{0,60}): (\S.*)")
_NOTION_TIMES = ("%B %d, %Y %I:%M %p", "%B %d, %Y %H:%M", "%B %d, %Y", "%Y/%m/%d %H:%M", "%Y-%m-%d %H:%M")


def read_notion(files: list[InputFile]) -> Iterator[Item]:
    """Read a Notion export of the kind "Markdown & CSV". Properties become front matter and facts."""
    names = {file.path for file in files}
    for file in files:
        if file.path.lower().endswith((".html", ".htm")):
            yield SkippedEntry(file.path, 'export from Notion as "Markdown & CSV" instead of HTML')
            continue
        part = next(note_texts([file], ".md", ".csv"))
        if isinstance(part, SkippedEntry):
            yield part
        elif file.path.lower().endswith(".csv"):
            if f"{file.path[:-4]}_all.csv" not in names:  # the _all file contains all rows of this file
                yield from _notion_table(file.path, part[1])
        else:
            yield from _notion_page(file.path, part[1])


def _notion_path(path: str) -> tuple[str, str]:
    """Return a path without the ids that Notion adds to names, and the id of its last part."""
    folders, name = path.split("/")[:-1], _stem(path)
    parts = [match[1] if (match := _NOTION_ID.fullmatch(folder)) else folder for folder in folders]
    match = _NOTION_ID.fullmatch(name)
    clean = (match[1] if match else name) or "untitled"
    return "/".join([*(part for part in parts if part), clean]), match[2] if match else ""


def _notion_page(source: str, text: str) -> Iterator[Item]:
    clean, identifier = _notion_path(source)
    path = f"{slugs.from_path(clean + '.md')}.md"
    lines = text.replace("\r\n", "\n").lstrip("\ufeff\n").split("\n")
    heading = _HEADING.fullmatch(lines[0].rstrip())
    title = heading[1].strip() if heading else clean.rpartition("/")[2]
    start = 1 if heading else 0
    while heading and start < len(lines) and not lines[start].strip():
        start += 1
    properties: dict[str, str] = {}
    while heading and start < len(lines) and (match := _NOTION_PROPERTY.fullmatch(lines[start].rstrip())):
        properties[match[1].strip()] = match[2].strip()
        start += 1
    if heading and properties and start < len(lines) and lines[start].strip():
        properties, start = {}, 1  # it is a paragraph in the form of properties
    front: dict[str, Any] = {"title": title, "id": identifier}
    created, fields = "", []
    for key, value in properties.items():
        name = re.sub(r"\W+", "_", key.lower()).strip("_")
        if name in ("tags", "tag"):
            front["tags"] = _string_list(value)
        elif name in ("created", "created_time", "date_created"):
            created = parse_time(_day(value, *_NOTION_TIMES) or value)
        elif name in ("last_edited_time", "last_edited", "updated"):
            front["updated"] = _day(value, *_NOTION_TIMES) or value
        else:
            front.setdefault(name, _notion_text(value, source))
            fields.append((key, _notion_text(value, source), f"{key}: {value}"))
    body = _notion_text("\n".join(lines[start:]), source)
    yield make_page(path, front, body, created, (title, clean))
    yield from field_facts(path, title, fields, created)


def _notion_text(text: str, source: str) -> str:
    """Replace links to files of the export with links to their pages."""
    folder = source.rpartition("/")[0].split("/") if "/" in source else []

    def link(match: re.Match[str]) -> str:
        parts = list(folder)
        for part in unquote(match[2]).split("/"):
            if part == "..":
                del parts[-1:]
            elif part not in ("", "."):
                parts.append(part)
        target = slugs.from_path(_notion_path("/".join(parts))[0] + ".md")
        return f"[[{target}|{match[1]}]]" if match[1].strip() else f"[[{target}]]"

    return _NOTION_LINK.sub(link, text)


def _notion_table(source: str, text: str) -> Iterator[Item]:
    """Read a database of Notion as a page with a table. The pages of its rows are separate files."""
    clean, identifier = _notion_path(source)
    path = f"{slugs.from_path(clean + '.md')}.md"
    title = clean.rpartition("/")[2]
    try:
        rows = list(csv.reader(text.lstrip("\ufeff").splitlines(keepends=True)))
    except csv.Error as error:
        yield SkippedEntry(source, f"not a table: {error}")
        return
    if not rows:
        yield SkippedEntry(source, "an empty table")
        return
    width = len(rows[0])
    cells = [[cell.replace("|", "\\|").replace("\n", " ").strip() for cell in row[:width]] for row in rows]
    lines = [f"| {' | '.join(cells[0])} |", "|" + " --- |" * width]
    for row in cells[1:]:
        row += [""] * (width - len(row))
        lines.append(f"| {' | '.join(row)} |")
    yield make_page(
        path, {"title": title, "id": identifier}, f"# {title}\n\n" + "\n".join(lines), "", (title,)
    )


# Org-roam

_ORG_LINK = re.compile(r"\[\[([^\]\[\n]+)\](?:\[([^\]\[\n]+)\])?\]")
_ORG_BLOCK = re.compile(r"^[ \t]*#\+(begin|end)_(\w+).*$", re.IGNORECASE)
_ORG_MARKS = (
    (re.compile(r"(?<![\w*])\*(\S(?:[^*\n]*\S)?)\*(?![\w*])"), r"**\1**"),
    (re.compile(r"(?<![\w/:])/(\S(?:[^/\n]*\S)?)/(?![\w/])"), r"*\1*"),
    (re.compile(r"(?<![\w=~])[=~](\S(?:[^=~\n]*\S)?)[=~](?![\w=~])"), r"`\1`"),
)
_ORG_TIME = re.compile(r"[\[<](\d{4}-\d\d-\d\d)(?: [^\s\[\]<>\d]++)?(?: (\d\d:\d\d))?[^\[\]<>]*[\]>]")


def read_org_roam(files: list[InputFile]) -> Iterator[Item]:
    """Read org files of org-roam: each file, and each heading with an id, becomes a page."""
    for part in note_texts(files, ".org"):
        if isinstance(part, SkippedEntry):
            yield part
        else:
            yield from _org_pages(*part)


def _org_pages(file: InputFile, text: str) -> Iterator[Item]:
    page, headings, problems = org.read_pages(text)
    base = f"{slugs.from_path(file.path[: -len('.org')] + '.md')}"
    stem = re.sub(r"^\d{14}-", "", base.rpartition("/")[2])  # without the timestamp that org-roam prefixes
    path = "/".join(filter(None, [base.rpartition("/")[0], stem or base]))
    yield from (SkippedEntry(f"{file.path}:{problem.line}", problem.message) for problem in problems)
    yield _org_page(f"{path}.md", page)
    for node in headings:
        yield _org_page(f"{slugs.from_path(f'{path}/{slugs.segment(node.title)}.md')}.md", node)


def _org_page(path: str, node: org.OrgPage) -> ForeignPage:
    front = dict(node.frontmatter)
    times = [front.get(key) for key in ("created", "date")]
    created = ""
    for written in filter(None, times):
        match = _ORG_TIME.search(written) if isinstance(written, str) else None
        created = created or parse_time("T".join(filter(None, match.groups())) if match else written)
    if created:
        front["created"] = created
        front.pop("date", None)
    if "type" in front:  # not a page type of Quaid
        front["org_type"] = front.pop("type")
    text = _org_to_markdown(node.truth)
    data = markdown.render(front, text, _org_to_markdown(node.timeline)).encode("utf-8", "replace")
    aliases = front.get("aliases")
    names = (node.title, *(aliases if isinstance(aliases, list) else []))
    return ForeignPage(path, data, created, tuple(str(name) for name in names))


def _org_to_markdown(text: str) -> str:
    """Convert links, emphasis, quotations and table rules; `org.read_pages` has converted the rest."""
    lines, is_code, is_quote = [], False, False
    for line in text.split("\n"):
        if _FENCE.match(line):
            is_code = not is_code
        elif not is_code:
            if block := _ORG_BLOCK.match(line):
                is_quote = block[2].lower() in ("quote", "verse") and block[1].lower() == "begin"
                continue
            if re.fullmatch(r"[ \t]*\|[-+|]+\|[ \t]*", line):
                line = line.replace("+", "|")
            else:
                line = _ORG_LINK.sub(_markdown_link, line)
                for mark, written in _ORG_MARKS:
                    line = mark.sub(written, line)
            line = f"> {line}" if is_quote else line
        lines.append(line)
    return "\n".join(lines)


def _markdown_link(match: re.Match[str]) -> str:
    target, label = match[1].strip(), match[2]
    if target.startswith("id:"):
        return f"[[{target}|{label}]]" if label else f"[[{target}]]"
    if re.match(r"[a-z]+:", target) and not target.startswith("file:"):
        return f"[{label or target}]({target})"
    if target.startswith("file:"):
        name = (
            slugs.from_path(target[5:].rpartition("::")[0] or target[5:])
            if target.endswith(".org")
            else target[5:]
        )
        return f"[[{name}|{label}]]" if target.endswith(".org") and label else f"[{label or name}]({name})"
    return f"[[{target}|{label}]]" if label else match[0]


# Apple Notes


def read_apple_notes(files: list[InputFile]) -> Iterator[Item]:
    """Read Apple Notes exported as HTML, one file for each note."""
    for part in note_texts(files, ".html", ".htm"):
        if isinstance(part, SkippedEntry):
            yield part
            continue
        file, html = part
        text, reader = read_note(html)
        head = reader.meta
        first = next((line.strip("# *") for line in text.split("\n") if line.strip("# *")), "")
        title = " ".join(reader.title.split()) or first or _stem(file.path)
        if not text:
            yield SkippedEntry(file.path, "a note without text")
            continue
        created = _first_time(head, "created", "creation-date", "dcterms.created")
        changed = _first_time(head, "modified", "last-modified", "dcterms.modified")
        identifier = head.get("id") or head.get("note-id")
        front = {"title": title, "id": identifier, "updated": changed or file.modified}
        path = f"{slugs.from_path(file.path.rpartition('.')[0] + '.md')}.md"
        yield make_page(path, front, text, created, (title,))


# Memories of assistants

_DATED_LINE = re.compile(
    r"\s*+(?:(?:[-*+]|\d+\.)\s*+)?\[(\d{4}-\d\d-\d\d)[^\]]*\]\.?\s*+(?:[-–—:]\s*+)?(\S.*)"
)
_LISTED_LINE = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(\S.*)")
_UNDATED = re.compile(r"\[(?:unknown|no date|undated|date unknown)[^\[\]]*\]\s*[-–—:]\s*", re.IGNORECASE)


def memory_page(source: str, text: str, identifier: str, created: str, **front: Any) -> ForeignPage:
    """Return the page of one memory. Its path depends only on source and id, so a changed text keeps its page."""
    title = _first_words(text.partition("\n")[0].strip("# *"))
    mark = re.sub(r"[^a-z0-9-]", "", identifier.lower())[:36] or sha256(identifier.encode()).hexdigest()[:12]
    values = {"title": title, "type": "note", "id": identifier, "source": source, **front}
    return make_page(f"memories/{source}/{mark}.md", values, text, created)


def _listed_memories(source: str, file: InputFile) -> Iterator[Item]:
    """Read a text with one memory on each line, `[date] - text`, as assistants print their memories on request."""
    try:
        text = markdown.decode(file.read(MAX_NOTE_BYTES))[0]
    except ValueError as error:
        yield SkippedEntry(file.path, str(error))
        return
    for number, line in enumerate(text.split("\n"), 1):
        line = _UNDATED.sub("- ", line)
        dated, listed = _DATED_LINE.fullmatch(line), _LISTED_LINE.fullmatch(line)
        if dated or listed:
            words = dated[2] if dated else listed[1] if listed else ""
            identifier = sha256(fold_name(words).encode()).hexdigest()[:16]
            yield memory_page(source, words.strip(), identifier, parse_time(dated[1]) if dated else "")
        elif line.strip() and not line.lstrip().startswith(("#", "```")):
            yield SkippedEntry(f"{file.path}:{number}", "neither a list item nor a line `[date] - text`")


def _json_value(file: InputFile) -> Any:
    try:
        return json.loads(file.read(MAX_JSON_BYTES).decode("utf-8-sig", "replace"))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_chatgpt(files: list[InputFile]) -> Iterator[Item]:
    """Read saved memories and custom instructions from a ChatGPT export."""
    seen: set[str] = set()
    instructions: tuple[str, str] = ("", "")
    for file in files:
        name = file.path.rpartition("/")[2].lower()
        if name.endswith((".txt", ".md")):
            yield from _listed_memories("chatgpt", file)
        if not transcripts.is_export_name(name):
            if not name.endswith((".txt", ".md")):
                yield SkippedEntry(file.path, "no conversations or memories")
            continue
        try:
            for number, value in enumerate(iter_json_list(file.pieces())):
                if not isinstance(value, dict) or not isinstance(value.get("mapping"), dict):
                    yield SkippedEntry(f"{file.path}[{number}]", "not a conversation")
                    continue
                for message in _chatgpt_messages(value):
                    yield from _chatgpt_memories(message, seen)
                    instructions = max(instructions, _chatgpt_instructions(message, value))
        except ValueError as error:
            yield SkippedEntry(file.path, str(error))
    if instructions[1]:
        title = "Custom instructions for ChatGPT"
        front = {"title": title, "type": "note", "source": "chatgpt", "updated": instructions[0]}
        yield make_page("memories/chatgpt/custom-instructions.md", front, instructions[1])


def _chatgpt_messages(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for node in value["mapping"].values():
        message = node.get("message") if isinstance(node, dict) else None
        if isinstance(message, dict) and isinstance(message.get("content"), dict):
            yield message


def _chatgpt_memories(message: dict[str, Any], seen: set[str]) -> Iterator[ForeignPage]:
    """Yield the memories that a message to the tool `bio` saved, or that a message lists."""
    content = message["content"]
    parts = content.get("parts")
    if message.get("recipient") == "bio":
        text = content.get("text") or "\n".join(part for part in parts or () if isinstance(part, str))
        written = [(str(message.get("id") or ""), text.strip(), parse_time(message.get("create_time")))]
    elif content.get("content_type") == "model_editable_context":
        matches = map(_DATED_LINE.fullmatch, str(content.get("model_set_context") or "").split("\n"))
        written = [("", match[2].strip(), parse_time(match[1])) for match in matches if match]
    else:
        return
    for identifier, text, created in written:
        key = fold_name(text)
        if key and key not in seen:
            seen.add(key)
            yield memory_page("chatgpt", text, identifier or sha256(key.encode()).hexdigest()[:16], created)


def _chatgpt_instructions(message: dict[str, Any], value: dict[str, Any]) -> tuple[str, str]:
    """Return the time and the text of the custom instructions in a message; two empty strings if it has none."""
    content = message["content"]
    if content.get("content_type") != "user_editable_context":
        return "", ""
    parts = (("About me", "user_profile"), ("How to answer", "user_instructions"))
    texts = [(name, content.get(key)) for name, key in parts]
    sections = [
        f"## {name}\n\n{text.strip()}" for name, text in texts if isinstance(text, str) and text.strip()
    ]
    at = parse_time(message.get("create_time")) or parse_time(value.get("create_time"))
    return (at, "\n\n".join(sections)) if sections else ("", "")


def read_claude(files: list[InputFile]) -> Iterator[Item]:
    """Read memories and projects from an export of Claude, or a list of memories."""
    for file in files:
        name = file.path.rpartition("/")[2].lower()
        if name.endswith((".txt", ".md")):
            yield from _listed_memories("claude", file)
        elif name in ("memories.json", "projects.json") or re.fullmatch(r".*projects/[^/]+\.json", file.path):
            try:
                value = _json_value(file)
                reader = _claude_memories if name == "memories.json" else _claude_projects
                yield from reader(file.path, value if isinstance(value, list) else [value])
            except ValueError as error:
                yield SkippedEntry(file.path, str(error))
        elif not transcripts.is_export_name(name) and name != "users.json":
            yield SkippedEntry(file.path, "no conversations, memories or projects")


def _claude_memories(path: str, values: list[Any]) -> Iterator[Item]:
    for number, value in enumerate(values):
        memories = value if isinstance(value, dict) else {}
        projects = memories.get("project_memories")
        written = [("conversations", "What Claude remembers", memories.get("conversations_memory"))]
        for key, text in projects.items() if isinstance(projects, dict) else ():
            written.append((str(key), "What Claude remembers about a project", text))
        texts = [(key, title, text) for key, title, text in written if isinstance(text, str) and text.strip()]
        if not texts:
            yield SkippedEntry(f"{path}[{number}]", "no text of a memory")
        for key, title, text in texts:
            changed = parse_time(memories.get("updated_at"))
            front = {
                "title": title,
                "type": "note",
                "source": "claude",
                "project_id": key,
                "updated": changed,
            }
            name = slugs.segment(key) or "memory"
            yield make_page(f"memories/claude/{name}.md", front, text, parse_time(memories.get("created_at")))


def _claude_projects(path: str, values: list[Any]) -> Iterator[Item]:
    for number, project in enumerate(values):
        if not isinstance(project, dict) or not isinstance(project.get("name"), str):
            yield SkippedEntry(f"{path}[{number}]", "not a project")
            continue
        name = project["name"].strip() or "Untitled"
        base = f"projects/claude/{slugs.segment(name)}-{str(project.get('uuid') or number)[:8]}"
        parts = [str(project.get(key) or "").strip() for key in ("description", "prompt_template")]
        body = "\n\n".join(filter(None, [parts[0], f"## Instructions\n\n{parts[1]}" if parts[1] else ""]))
        documents = [doc for doc in project.get("docs") or () if isinstance(doc, dict)]
        lines = []
        for place, doc in enumerate(documents):
            title, text = str(doc.get("filename") or f"Document {place + 1}"), doc.get("content")
            if not isinstance(text, str) or not text.strip():
                yield SkippedEntry(f"{path}[{number}].docs[{place}]", f"{title} has no text")
                continue
            target = f"{base}/{slugs.segment(title)}-{str(doc.get('uuid') or place)[:8]}"
            front = {"title": title, "id": doc.get("uuid"), "source": "claude"}
            yield make_page(f"{target}.md", front, text, parse_time(doc.get("created_at")))
            lines.append(f"- [[{target}|{title}]]")
        body += "\n\n## Documents\n\n" + "\n".join(lines) if lines else ""
        front = {
            "title": name,
            "type": "project",
            "id": project.get("uuid"),
            "source": "claude",
            "updated": parse_time(project.get("updated_at")),
        }
        yield make_page(f"{base}.md", front, body, parse_time(project.get("created_at")), (name,))


def read_gemini(files: list[InputFile]) -> Iterator[Item]:
    """Read lists of memories of Gemini. Conversations (in MyActivity.json) are imported as transcripts."""
    for file in files:
        name = file.path.rpartition("/")[2].lower()
        if name.endswith((".txt", ".md")):
            yield from _listed_memories("gemini", file)
        elif name.endswith((".html", ".htm")):
            yield SkippedEntry(file.path, "choose JSON as the format of My Activity in Google Takeout")
        elif not transcripts.is_export_name(file.path) and not (name.endswith(".json") and len(files) == 1):
            yield SkippedEntry(file.path, "no conversations of Gemini")


def read_mem0(files: list[InputFile]) -> Iterator[Item]:
    """Read memories of Mem0: the result of `get_all` or of an export, as a list, an object or JSON lines."""
    for file in files:
        if not file.path.lower().endswith((".json", ".jsonl")):
            yield SkippedEntry(file.path, OTHER_KIND)
            continue
        try:
            for number, (key, value) in enumerate(_mem0_records(file)):
                where = f"{file.path}[{number}]"
                yield from _mem0_relation(where, value) if key == "relations" else _mem0_memory(where, value)
        except ValueError as error:
            yield SkippedEntry(file.path, str(error))


def _mem0_records(file: InputFile) -> Iterator[tuple[str, Any]]:
    start = next(file.pieces(), b"").lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"["):
        yield from (("results", value) for value in iter_json_list(file.pieces()))
    elif file.path.lower().endswith(".jsonl"):
        yield from (("results", value) for _, value in json_lines(file))
    else:
        value = _json_value(file)
        for key in ("results", "memories", "relations"):
            records = value.get(key) if isinstance(value, dict) else None
            yield from ((key, record) for record in (records if isinstance(records, list) else ()))


def json_lines(file: InputFile) -> Iterator[tuple[int, Any]]:
    """Yield number and value of each line of a file of JSON lines, except blank ones; None for a broken line."""
    rest = b""
    number = 0
    for piece in chain(file.pieces(), [b"\n"]):
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > MAX_JSON_BYTES:
            raise ValueError(f"a line has more than {MAX_JSON_BYTES:,} bytes")
        for line in lines:
            number += 1
            if line.strip():
                try:
                    yield number, json.loads(line.decode("utf-8-sig", "replace"))
                except (ValueError, RecursionError):
                    yield number, None


def _mem0_memory(where: str, value: Any) -> Iterator[Item]:
    record = value if isinstance(value, dict) else {}
    text = next(
        (record[key] for key in ("memory", "data", "text", "content") if isinstance(record.get(key), str)), ""
    )
    if not text.strip():
        yield SkippedEntry(where, "no text of a memory")
        return
    identifier = str(record.get("id") or sha256(text.encode()).hexdigest()[:16])
    owners = {key: record.get(key) for key in ("user_id", "agent_id", "app_id", "run_id")}
    front = {
        **owners,
        "updated": parse_time(record.get("updated_at")),
        "expires": record.get("expiration_date"),
        "tags": _string_list(record.get("categories")),
        "metadata": record.get("metadata"),
    }
    yield memory_page("mem0", text.strip(), identifier, parse_time(record.get("created_at")), **front)


def _mem0_relation(where: str, value: Any) -> Iterator[Item]:
    record = value if isinstance(value, dict) else {}
    names = [record.get(key) for key in ("source", "relationship", "target")]
    names[2] = names[2] or record.get("destination")
    if not all(isinstance(name, str) and name.strip() for name in names):
        yield SkippedEntry(where, "a relation needs source, relationship and target")
        return
    source, relationship, target = (str(name).strip() for name in names)
    sentence = f"{source} {relationship} {target}".replace("_", " ")
    page = memory_page("mem0", sentence, f"relation {source} {relationship} {target}", "")
    yield page
    yield ForeignFact(
        page.path, source.replace("_", " "), relationship, target.replace("_", " "), "", sentence
    )


# Exports of Quaid


def read_jsonl(files: list[InputFile]) -> Iterator[Item]:
    """Read the pages, links and facts of `quaid export --to jsonl`."""
    for file in files:
        if not file.path.lower().endswith(".jsonl"):
            yield SkippedEntry(file.path, OTHER_KIND)
            continue
        if file.path.rpartition("/")[2].startswith("conversations"):
            continue
        try:
            for number, value in json_lines(file):
                yield _jsonl_item(f"{file.path}:{number}", value)
        except ValueError as error:
            yield SkippedEntry(file.path, str(error))


def _jsonl_item(where: str, value: Any) -> Item:
    if not isinstance(value, dict):
        return SkippedEntry(where, "not a JSON object")
    kind = value.get("kind")
    record = {key: item for key, item in value.items() if key != "kind"}
    if kind in ("link", "fact"):
        return ForeignRecord(f"{kind}s", record)
    path, text = value.get("path"), value.get("text")
    if kind != "page" or not isinstance(path, str) or not isinstance(text, str):
        return SkippedEntry(where, "neither a page with path and text, nor a link or fact")
    if path.startswith("/") or ".." in path.split("/") or not path.endswith((".md", ".markdown")):
        return SkippedEntry(where, "its path is not that of a Markdown file in the export")
    raw = value.get("raw")
    sidecar = (
        json.dumps({"sources": raw}, ensure_ascii=False).encode() if isinstance(raw, dict) and raw else b""
    )
    names = (str(value.get("address") or value.get("slug") or ""),)
    return ForeignPage(
        path, text.encode("utf-8", "replace"), parse_time(value.get("created_at")), names, sidecar
    )


# Open Knowledge Format

OKF_RESERVED = ("index", "log")
"""Names of files that are not concepts: index lists the files of a folder, and log is its history."""

OKF_RESERVED_KEY = "okf"
"""The front matter key of a page that was read from a reserved file, with the name of that file."""

OKF_EXPORT_KEY = "quaid_export"
"""The front matter key that records the additions of an export to a page, so that an import can remove them."""

OKF_OTHER_NAME = "-page"
"""Suffix that an export appends to a reserved page name."""

OKF_WRITTEN_LIST = "<!-- This list was written by quaid export. -->"
OKF_NO_TYPE = "has no type, which the format requires; it was imported as a page"
OKF_DERIVED = {"type": "type", "title": "title", "description": "summary"}
"""Maps the front matter keys that an export adds to the page fields from which it takes their values."""


def read_okf(files: list[InputFile]) -> Iterator[Item]:
    """Read a bundle of the Open Knowledge Format (OKF) 0.2: a folder of Markdown files with YAML front matter.

    Each concept is a page; its sources, authors and confirmations also become facts. Lists that an export of Quaid
    wrote are left out.
    """
    renamed = _okf_renamed(files)
    for part in note_texts(files, ".md"):
        if isinstance(part, SkippedEntry):
            yield part
            continue
        file, text = part
        text = rename_targets(text, renamed)
        document = markdown.parse(text)
        if document.problem:
            yield SkippedEntry(file.path, f"its front matter is not used: {document.problem}")
            yield ForeignPage(file.path, text.encode())
        elif _okf_name(file.path) in OKF_RESERVED:
            if OKF_WRITTEN_LIST not in text:
                yield _okf_reserved_page(file.path, text, document)
        else:
            yield from _okf_concept(file.path, text, document)


def rename_targets(text: str, renamed: dict[str, str]) -> str:
    """Return a text with new paths in its links to renamed files."""
    for old, new in renamed.items():
        text = text.replace(f"](/{old}", f"](/{new}")
    return text


def _okf_renamed(files: list[InputFile]) -> dict[str, str]:
    """Return the paths that pages with a reserved name had before an export, by their path in the bundle."""
    renamed = {}
    for part in note_texts([file for file in files if file.path.endswith(f"{OKF_OTHER_NAME}.md")], ".md"):
        if not isinstance(part, SkippedEntry):
            export = markdown.parse(part[1]).frontmatter.get(OKF_EXPORT_KEY)
            if slug := _exported_slug(export):
                renamed[part[0].path] = f"{slug}.md"
    return renamed


def _exported_slug(export: Any) -> str:
    slug = _okf_part(export, "slug")
    return slug if isinstance(slug, str) and slug == slugs.from_path(f"{slug}.md") else ""


def _okf_name(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


def _okf_reserved_page(path: str, text: str, document: markdown.MarkdownDocument) -> ForeignPage:
    folder = path.rpartition("/")[0].rpartition("/")[2]
    front = {"title": " ".join(filter(None, [folder, _okf_name(path)])), **document.frontmatter}
    front[OKF_RESERVED_KEY] = _okf_name(path)
    return ForeignPage(path, _with_front_matter(text, document, front).encode())


def _okf_concept(path: str, text: str, document: markdown.MarkdownDocument) -> Iterator[Item]:
    front, export = dict(document.frontmatter), document.frontmatter.get(OKF_EXPORT_KEY)
    if not str(front.get("type") or "").strip():
        yield SkippedEntry(path, OKF_NO_TYPE)
    created = parse_time(_okf_part(front.get("generated"), "at")) or parse_time(front.get("timestamp"))
    if isinstance(export, dict):
        created = parse_time(export.get("created")) or created
        path = f"{_exported_slug(export)}.md" if _exported_slug(export) else path
        front = _without_added(slugs.from_path(path), document, export)
    elif not front.get("title") and not _has_title(document.truth):
        front["title"] = re.sub(r"[-_]+", " ", _okf_name(path)).strip() or _okf_name(path)
    if front.get("description") and "summary" not in front:
        front["summary"] = front["description"]
    if front != document.frontmatter:
        text = _with_front_matter(text, document, front)
    title = page_model.build_page(slugs.from_path(path), front, document.truth, "").title
    yield ForeignPage(path, text.encode(), created, (title, _okf_name(path)))
    yield from field_facts(path, title, _trust_fields(front), created)


def _okf_part(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _has_title(truth: str) -> bool:
    """Return True if a text begins with a level-1 heading and has no other, so that the heading is its title."""
    headings = [line for line in prose_lines(truth) if line.startswith("# ")]
    return len(headings) == 1 and truth.lstrip().startswith("# ")


def _without_added(slug: str, document: markdown.MarkdownDocument, export: dict[str, Any]) -> dict[str, Any]:
    """Return the front matter of an exported page without the keys that the export added, unless they were edited."""
    named = export.get("added")
    added = [key for key in (*OKF_DERIVED, "generated") if isinstance(named, list) and key in named]
    written = document.frontmatter
    front = {key: value for key, value in written.items() if key not in (*added, OKF_EXPORT_KEY)}
    page = page_model.build_page(slug, front, document.truth, document.timeline)
    for key in added:
        if key in OKF_DERIVED and key in written and written[key] != getattr(page, OKF_DERIVED[key]):
            front[key] = written[key]
    return front


def _with_front_matter(text: str, document: markdown.MarkdownDocument, front: dict[str, Any]) -> str:
    try:
        return markdown.patch(text, front, document.truth, document.timeline)
    except InvalidFrontMatter:
        return markdown.render(front, document.truth, document.timeline)


def _trust_fields(front: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield predicate, object and evidence for the sources, the author and the confirmations of a concept."""
    for source in _mappings(front.get("sources")):
        if isinstance(source.get("resource"), str):
            yield "derived_from", source["resource"], str(source.get("title") or "")
    for key, predicate in (("generated", "generated_by"), ("verified", "verified_by")):
        for event in _mappings(front.get(key)):
            if isinstance(event.get("by"), str):
                yield predicate, event["by"], f"{key} {event.get('at') or ''}".strip()


def _mappings(value: Any) -> list[dict[str, Any]]:
    """Return the mappings of a list; a single mapping counts as a list of one."""
    return [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, dict)]


READERS: dict[str, Reader] = {
    "chatgpt": read_chatgpt,
    "claude": read_claude,
    "gemini": read_gemini,
    "basic-memory": read_basic_memory,
    "mem0": read_mem0,
    "obsidian": read_obsidian,
    "logseq": read_logseq,
    "roam": read_roam,
    "notion": read_notion,
    "org-roam": read_org_roam,
    "apple-notes-html": read_apple_notes,
    "jsonl": read_jsonl,
    "okf": read_okf,
}
CONVERSATION_SOURCES = ("chatgpt", "claude", "gemini")
