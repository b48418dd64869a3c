"""Pages in the formats of Obsidian, Logseq, org-roam and OKF (Open Knowledge Format)."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import quote

from quaid.formats import markdown
from quaid.formats.foreign_notes import (
    FACTS_BEGIN,
    FACTS_END,
    OKF_DERIVED,
    OKF_EXPORT_KEY,
    OKF_OTHER_NAME,
    OKF_RESERVED,
    OKF_RESERVED_KEY,
    OKF_WRITTEN_LIST,
    prose_lines,
)
from quaid.model import page as page_model, slug as slugs
from quaid.model.slug import fold_name

LONGEST_FILE_NAME = 200
"""Maximum number of bytes of a file name without its extension."""

_WIKI = re.compile(r"(!?)\[\[([^\]\[|#\n]+)(#[^\]\[|\n]*)?(?:\|([^\]\[\n]*))?\]\]")
_FENCE = re.compile(r"[ \t]*(```+|~~~+)[ \t]*(\w*)")
_ITEM = re.compile(r"([ \t]*)(?:[-*+]|(\d+)[.)])[ \t]+(.*)")
_CHECKBOX = re.compile(r"\[([ xX])\] ")
_HEADING = re.compile(r"(#{1,6})[ \t]+(.*)")
_TABLE_RULE = re.compile(r"[ \t:|]*-[ \t:|-]*")
_LINK = re.compile(r"(!?)\[([^\]\[\n]*)\]\(([^()\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
_BOLD = re.compile(r"\*\*(\S(?:.*?\S)?)\*\*|(?<!\w)__(\S(?:.*?\S)?)__(?!\w)")
_ITALIC = re.compile(r"(?<![\w*])\*(\S(?:[^*\n]*\S)?)\*(?![\w*])|(?<![\w_])_(\S(?:[^_\n]*\S)?)_(?![\w_])")
_STRUCK = re.compile(r"~~(\S(?:.*?\S)?)~~")


class NoteRef(NamedTuple):
    """The target of a link: the file and title of a page."""

    stem: str
    """Path of its file without the extension."""
    title: str
    """A title that no other page of the export has."""
    id: str


class Note(NamedTuple):
    """A page to be written."""

    ref: NoteRef
    front: dict[str, Any]
    truth: str
    timeline: str
    created: str
    updated: str
    facts: Sequence[str] = ()
    """Facts that are not in the text, as `predicate:: object`."""
    links: Sequence[tuple[str, NoteRef]] = ()
    """Links that are not in the text: relationship and target."""


Resolve = Callable[[str], NoteRef | None]


def with_links(text: str, write: Callable[[re.Match[str]], str]) -> str:
    """Replace the wiki links of a text, except in code."""
    lines, fence = [], ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if match and (not fence or match[1].startswith(fence)):
            fence = "" if fence else match[1]
        elif not fence and "[[" in line:
            parts = _CODE.split(line)  # the second, fourth and so on are code
            line = "".join(
                f"`{part}`" if place % 2 else _WIKI.sub(write, part) for place, part in enumerate(parts)
            )
        lines.append(line)
    return "\n".join(lines)


def obsidian_links(text: str, resolve: Resolve) -> str:
    """Rewrite links to titles and aliases as links to files, which Obsidian needs; the shown text stays."""

    def write(match: re.Match[str]) -> str:
        mark, name, section, label = match[1], match[2].strip(), match[3] or "", match[4]
        ref = resolve(name)
        if ref is None or name.casefold() in (ref.stem.casefold(), ref.stem.rpartition("/")[2].casefold()):
            return match[0]
        return f"{mark}[[{ref.stem}{section}|{label or name}]]"

    return with_links(text, write)


def obsidian_facts(note: Note) -> str:
    """Return the block of facts and links at the end of a note for Obsidian, or "" if there are none."""
    lines = [f"- {fact}" for fact in note.facts]
    lines += [f"- {relationship}:: [[{ref.stem}|{ref.title}]]" for relationship, ref in note.links]
    return "\n".join(["", FACTS_BEGIN, "## Facts", "", *lines, FACTS_END, ""]) if lines else ""


# Logseq


def logseq_path(title: str) -> str:
    """Return the path of the file of a page with this title in a Logseq graph."""
    name = (
        quote(title.replace("/", "___"), safe=" ,;@&=+$!'()[]{}~_-.")
        if title.isascii()
        else title.replace("/", "___")
    )
    for character in '<>:"\\|?*#\n\r\t\0':
        name = name.replace(character, f"%{ord(character):02X}")
    if len(name.encode()) > LONGEST_FILE_NAME:
        short = name.encode()[: LONGEST_FILE_NAME - 10].decode("utf-8", "ignore")
        name = f"{short}-{sha256(name.encode()).hexdigest()[:8]}"
    return f"pages/{name}.md"


def logseq_page(note: Note, resolve: Resolve) -> str:
    """Return a page as an outline of Logseq, with properties in place of front matter."""
    front = note.front
    lists = {key: [str(value) for value in _as_list(front.get(key))] for key in ("aliases", "tags")}
    properties = {
        "title": note.ref.title,
        "alias": ", ".join(lists["aliases"]),
        "tags": ", ".join(lists["tags"]),
    }
    for key, value in front.items():
        if key not in ("title", "aliases", "alias", "tags", "slug") and isinstance(value, str | int | float):
            properties.setdefault(re.sub(r"[^\w-]+", "-", key), " ".join(str(value).split()))
    properties |= {"quaid-id": note.ref.id, "created": note.created, "updated": note.updated}
    lines = [f"{key}:: {value}" for key, value in properties.items() if value]
    lines.append("")
    lines += _outline(_logseq_links(note.truth, resolve))
    if note.timeline.strip():
        lines += ["- ## Timeline", *_outline(_logseq_links(note.timeline, resolve), 1)]
    if note.facts or note.links:
        lines += ["- ## Facts", *(f"\t- {fact}" for fact in note.facts)]
        lines += [f"\t- {relationship}:: [[{ref.title}]]" for relationship, ref in note.links]
    return "\n".join(lines) + "\n"


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _logseq_links(text: str, resolve: Resolve) -> str:
    def write(match: re.Match[str]) -> str:
        ref, label = resolve(match[2].strip()), match[4]
        target = f"[[{ref.title if ref else match[2].strip()}]]"
        if match[1]:
            return f"{{{{embed {target}}}}}"
        return f"[{label}]({target})" if label and label != (ref.title if ref else "") else target

    return with_links(text, write)


def _outline(text: str, depth: int = 0) -> Iterator[str]:
    """Yield a Markdown text as lines of an outline, in which blocks are nested below the last heading.

    Items of lists are nested further by their indentation.
    """
    below, fence, in_block = depth, "", False
    indent = ""
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if fence or match:
            if not fence:
                yield f"{indent if in_block else chr(9) * below}{'  ' if in_block else '- '}{line.strip()}"
                indent, fence = (indent if in_block else "\t" * below), match[1] if match else ""
            else:
                yield f"{indent}  {line}"
                fence = "" if line.strip().startswith(fence) else fence
            in_block = True
        elif not line.strip():
            in_block = False
        elif heading := _HEADING.match(line):
            indent, below, in_block = "\t" * depth, depth + 1, False
            yield f"{indent}- {heading[1]} {heading[2]}"
        elif item := _ITEM.match(line):
            indent = "\t" * (below + len(item[1].expandtabs(4)) // 2)
            text_of_item = _CHECKBOX.sub(lambda box: "TODO " if box[1] == " " else "DONE ", item[3], count=1)
            yield f"{indent}- {item[2] + '. ' if item[2] else ''}{text_of_item}"
            in_block = True
        elif in_block:
            yield f"{indent}  {line.strip()}"
        else:
            indent, in_block = "\t" * below, True
            yield f"{indent}- {line.strip()}"


# Org-roam


def org_page(note: Note, resolve: Resolve) -> str:
    """Return a page as an org file with an id, as org-roam reads it."""
    front = note.front
    properties = {"ID": note.ref.id}
    names = " ".join(f'"{str(alias).replace(chr(34), chr(39))}"' for alias in _as_list(front.get("aliases")))
    properties |= {"ROAM_ALIASES": names, "CREATED": note.created, "UPDATED": note.updated}
    for key, value in front.items():
        if key not in ("title", "aliases", "alias", "tags", "id", "slug", "created", "updated"):
            written = (
                str(value)
                if isinstance(value, str | int | float)
                else markdown.dump_yaml({key: value}).strip()
            )
            properties.setdefault(re.sub(r"\W+", "_", key).upper(), " ".join(written.split()))
    lines = [":PROPERTIES:", *(f":{key}: {value}" for key, value in properties.items() if value), ":END:"]
    lines.append(f"#+title: {' '.join(note.ref.title.split())}")
    if tags := [re.sub(r"[^\w@%]+", "_", str(tag)) for tag in _as_list(front.get("tags"))]:
        lines.append(f"#+filetags: :{':'.join(tags)}:")
    lines += ["", *_org_lines(note.truth, resolve)]
    if note.timeline.strip():
        lines += ["", "* Timeline", *_org_lines(note.timeline, resolve, 1)]
    if note.facts or note.links:
        lines += ["", "* Facts", *(f"- {fact.replace(':: ', ' :: ', 1)}" for fact in note.facts)]
        lines += [f"- {relationship} :: [[id:{ref.id}][{ref.title}]]" for relationship, ref in note.links]
    return "\n".join(lines).rstrip() + "\n"


def _org_lines(text: str, resolve: Resolve, deeper: int = 0) -> Iterator[str]:
    """Yield the lines of a Markdown text in org syntax."""
    fence, in_quote = "", False
    for line in text.split("\n"):
        match = _FENCE.match(line)
        if fence:
            is_end = line.strip().startswith(fence)
            yield "#+end_src" if is_end else re.sub(r"^(\*|#\+)", r",\1", line)
            fence = "" if is_end else fence
            continue
        is_quote = line.startswith(">")
        if is_quote != in_quote:
            yield "#+begin_quote" if is_quote else "#+end_quote"
            in_quote = is_quote
        if match:
            fence = match[1]
            yield f"#+begin_src {match[2]}".rstrip()
        elif heading := _HEADING.match(line):
            yield f"{'*' * (len(heading[1]) + deeper)} {_org_inline(heading[2], resolve)}"
        elif line.lstrip().startswith("|") and _TABLE_RULE.fullmatch(line.strip()):
            yield "|" + "+".join("---" for _ in line.strip().strip("|").split("|")) + "|"
        else:
            line = line[1:].strip() if is_quote else line
            if item := _ITEM.fullmatch(line):
                mark = f"{item[2]}." if item[2] else "-"
                line = f"{item[1]}{mark} {item[3].replace('[x] ', '[X] ', 1)}"
            yield _org_inline(line, resolve)
    if fence:
        yield "#+end_src"
    if in_quote:
        yield "#+end_quote"


def _org_inline(text: str, resolve: Resolve) -> str:
    """Convert links, code and emphasis of a line."""

    def wiki(match: re.Match[str]) -> str:
        ref, name, label = resolve(match[2].strip()), match[2].strip(), match[4]
        return (
            f"[[id:{ref.id}][{label or name}]]" if ref else f"[[{name}][{label}]]" if label else f"[[{name}]]"
        )

    parts = _CODE.split(text)
    for place, part in enumerate(parts):
        if place % 2:
            parts[place] = f"={part}="
            continue
        part = _LINK.sub(
            lambda match: f"[[{match[3]}]]" if match[1] or not match[2] else f"[[{match[3]}][{match[2]}]]",
            part,
        )
        part = _BOLD.sub(lambda match: f"\x01{match[1] or match[2]}\x01", part)
        part = _ITALIC.sub(lambda match: f"/{match[1] or match[2]}/", part)
        parts[place] = _WIKI.sub(wiki, _STRUCK.sub(r"+\1+", part).replace("\x01", "*"))
    return "".join(parts)


# Open Knowledge Format

OKF_VERSION = "0.2"
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def is_okf_name_taken(name: str, front: dict[str, Any], truth: str) -> bool:
    """Return True if a page needs another name, because its name is reserved for lists and histories.

    A page that was imported from a reserved file keeps the name; a log only if all its `##` headings are dates.
    """
    if name not in OKF_RESERVED or front.get(OKF_RESERVED_KEY) != name:
        return name in OKF_RESERVED
    days = [line[3:].strip() for line in prose_lines(truth) if line.startswith("## ")]
    return name == "log" and not all(map(_ISO_DAY.fullmatch, days))


def free_okf_stem(stem: str, taken: set[str]) -> str:
    """Return a path for a page whose name is reserved, without extension and not in `taken`."""
    new = stem + OKF_OTHER_NAME
    while new in taken:
        new += OKF_OTHER_NAME
    return new


def okf_links(text: str, resolve: Resolve) -> str:
    """Rewrite links between pages as Markdown links to files of the bundle. Links to unknown pages stay."""

    def write(match: re.Match[str]) -> str:
        ref = resolve(match[2].strip())
        if ref is None:
            return match[0]
        label = match[4] or (ref.title if "/" in match[2] else match[2].strip())
        return f"[{label}](/{ref.stem}.md{(match[3] or '').replace(' ', '%20')})"

    return with_links(text, write)


def okf_concept(note: Note, slug: str, address: str, actor: str) -> tuple[str, str]:
    """Return the text of a concept, and its description.

    `address` is the slug of the page in the bundle, which begins with the folder of its collection. `actor` wrote
    the text, for example human:owner or planner/unknown.
    """
    built = page_model.build_page(slug, note.front, note.truth, note.timeline)
    missing: dict[str, Any] = {
        "type": built.type,
        "title": built.title,
        "description": " ".join(built.summary.split()),
        "generated": {"by": actor, "at": note.updated},
    }
    missing = {key: value for key, value in missing.items() if value and not note.front.get(key)}
    first = {key: note.front.get(key) for key in OKF_DERIVED if key in note.front or key in missing}
    front: dict[str, Any] = {**first, **note.front, **missing}
    export: dict[str, Any] = {"added": [*missing], "created": note.created}
    if slugs.from_path(f"{note.ref.stem}.md") != address:
        export["slug"] = address
    text = markdown.render({**front, OKF_EXPORT_KEY: export}, note.truth, note.timeline)
    return text, " ".join(str(front.get("description") or "").split())


def okf_reserved(truth: str, timeline: str, *, is_root_index: bool) -> str:
    """Return the text of a reserved file, which has no front matter except the version in the root."""
    return _okf_version_block(is_root_index) + markdown.render({}, truth, timeline)


def okf_index(
    folder: str, concepts: Iterable[tuple[str, str, str]], folders: Iterable[tuple[str, int]]
) -> str:
    """Return the list of a folder: its concepts (title, file, description) and its subfolders.

    `folders` are the names of the subfolders, each with the number of concepts in it.
    """
    lines = [OKF_WRITTEN_LIST, "", f"# {folder.rpartition('/')[2] or 'Concepts'}", ""]
    for title, name, description in concepts:
        label = " ".join(title.replace("[", "(").replace("]", ")").split())
        lines.append(f"* [{label}]({name})" + (f" - {description}" if description else ""))
    subfolders = [f"* [{name}]({name}/) - {count} concept{'s' * (count != 1)}" for name, count in folders]
    if subfolders:
        lines += ["", "# Folders", "", *subfolders]
    return _okf_version_block(not folder) + "\n".join(lines) + "\n"


def _okf_version_block(is_root: bool) -> str:
    return f"---\n{markdown.dump_yaml({'okf_version': OKF_VERSION}).strip()}\n---\n\n" if is_root else ""


# Names


class NameTable:
    """The pages of an export by their names, so that a link in a text can be resolved."""

    def __init__(self) -> None:
        self._refs: dict[str, NoteRef | None] = {}
        self._titles: set[str] = set()

    def unique_title(self, title: str, otherwise: str) -> str:
        """Return the title, or `otherwise` if another page has it."""
        title = " ".join(title.split()) or otherwise
        key = title.casefold()
        if key in self._titles:
            return otherwise
        self._titles.add(key)
        return title

    def add(self, ref: NoteRef, names: list[str]) -> None:
        """Add a page with its names. A name that several pages share resolves to None."""
        for key in {fold_name(name) for name in names} - {""}:
            self._refs[key] = None if key in self._refs else ref

    def resolve(self, name: str) -> NoteRef | None:
        """Return the page that a name belongs to, or None."""
        return self._refs.get(fold_name(name))
