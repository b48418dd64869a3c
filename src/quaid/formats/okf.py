"""Bundles in the Open Knowledge Format (OKF) 0.2: folders of Markdown files with YAML front matter.

Each concept is a page. Front matter stays as it is; sources, authors and confirmations also become facts. What an
export adds to a page is listed under the key `quaid_export`, so that an import can remove it again.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from quaid.errors import InvalidFrontMatter
from quaid.formats import front_matter, markdown
from quaid.formats.foreign_notes import (
    ForeignPage,
    InputFile,
    Item,
    UnreadPart,
    field_facts,
    note_texts,
    prose_lines,
)
from quaid.formats.note_writers import Resolve, with_links
from quaid.formats.transcripts import parse_time
from quaid.model import page as page_model, slug as slugs

VERSION = "0.2"
RESERVED = ("index", "log")
"""Names of files that are not concepts: the list of a folder and its history."""

RESERVED_KEY = "okf"
"""The front matter key of a page that was read from a reserved file, with the name of that file."""

EXPORT_KEY = "quaid_export"
OTHER_NAME = "-page"
"""What an export adds to the name of a page whose name is reserved."""

WRITTEN_LIST = "<!-- This list was written by quaid export. -->"
NO_TYPE = "has no type, which the format requires; it was imported as a page"

_DERIVED = {"type": "type", "title": "title", "description": "summary"}
"""Keys that an export adds, and the fields of a page that they show."""

_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class BundlePage(NamedTuple):
    """A page to be written into a bundle."""

    slug: str
    address: str
    """Its slug in the bundle, which begins with the folder of its collection."""
    path: str
    front: dict[str, Any]
    truth: str
    timeline: str
    created: str
    updated: str
    actor: str
    """Who wrote the text, as in human:owner or planner/unknown."""


# Reading


def read_okf(files: list[InputFile]) -> Iterator[Item]:
    """Read a bundle. Lists that an export of Quaid wrote are left out."""
    renamed = _renamed(files)
    for part in note_texts(files, ".md"):
        if isinstance(part, UnreadPart):
            yield part
            continue
        file, text = part
        text = rename_targets(text, renamed)
        document = markdown.parse(text)
        if document.problem:
            yield UnreadPart(file.path, f"its front matter is not used: {document.problem}")
            yield ForeignPage(file.path, text.encode())
        elif _stem(file.path) in RESERVED:
            if WRITTEN_LIST not in text:
                yield _reserved_page(file.path, text, document)
        else:
            yield from _concept(file.path, text, document)


def rename_targets(text: str, renamed: dict[str, str]) -> str:
    """Return a text with new paths in its links to renamed files."""
    for old, new in renamed.items():
        text = text.replace(f"](/{old}", f"](/{new}")
    return text


def _renamed(files: list[InputFile]) -> dict[str, str]:
    """Return the paths that pages with a reserved name had before an export, by their path in the bundle."""
    found = {}
    for part in note_texts([file for file in files if file.path.endswith(f"{OTHER_NAME}.md")], ".md"):
        if not isinstance(part, UnreadPart):
            export = markdown.parse(part[1]).frontmatter.get(EXPORT_KEY)
            if slug := _exported_slug(export):
                found[part[0].path] = f"{slug}.md"
    return found


def _exported_slug(export: Any) -> str:
    slug = _part(export, "slug")
    return slug if isinstance(slug, str) and slug == slugs.from_path(f"{slug}.md") else ""


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


def _reserved_page(path: str, text: str, document: markdown.MarkdownDocument) -> ForeignPage:
    folder = path.rpartition("/")[0].rpartition("/")[2]
    front = {"title": " ".join(filter(None, [folder, _stem(path)])), **document.frontmatter}
    front[RESERVED_KEY] = _stem(path)
    return ForeignPage(path, _patched(text, document, front).encode())


def _concept(path: str, text: str, document: markdown.MarkdownDocument) -> Iterator[Item]:
    front, export = dict(document.frontmatter), document.frontmatter.get(EXPORT_KEY)
    if not str(front.get("type") or "").strip():
        yield UnreadPart(path, NO_TYPE)
    created = parse_time(_part(front.get("generated"), "at")) or parse_time(front.get("timestamp"))
    if isinstance(export, dict):
        created = parse_time(export.get("created")) or created
        path = f"{_exported_slug(export)}.md" if _exported_slug(export) else path
        front = _without_added(slugs.from_path(path), document, export)
    elif not front.get("title") and not _has_title(document.truth):
        front["title"] = re.sub(r"[-_]+", " ", _stem(path)).strip() or _stem(path)
    if front.get("description") and "summary" not in front:
        front["summary"] = front["description"]
    if front != document.frontmatter:
        text = _patched(text, document, front)
    title = page_model.build_page(slugs.from_path(path), front, document.truth, "").title
    yield ForeignPage(path, text.encode(), created, (title, _stem(path)))
    yield from field_facts(path, title, _trust_fields(front), created)


def _part(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _has_title(truth: str) -> bool:
    """Return True if a text begins with its only heading of the first level; others name sections."""
    headings = [line for line in prose_lines(truth) if line.startswith("# ")]
    return len(headings) == 1 and truth.lstrip().startswith("# ")


def _without_added(slug: str, document: markdown.MarkdownDocument, export: dict[str, Any]) -> dict[str, Any]:
    """Return the front matter of an exported page without what the export added. Edited values are kept."""
    named = export.get("added")
    added = [key for key in (*_DERIVED, "generated") if isinstance(named, list) and key in named]
    given = document.frontmatter
    front = {key: value for key, value in given.items() if key not in (*added, EXPORT_KEY)}
    page = page_model.build_page(slug, front, document.truth, document.timeline)
    for key in added:
        if key in _DERIVED and key in given and given[key] != getattr(page, _DERIVED[key]):
            front[key] = given[key]
    return front


def _patched(text: str, document: markdown.MarkdownDocument, front: dict[str, Any]) -> str:
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


# Writing


def is_taken(name: str, front: dict[str, Any], truth: str) -> bool:
    """Return True if a page needs another name, because its name is reserved for lists and histories.

    A page that was read from such a file goes back to it, if its headings still are days in a history.
    """
    if name not in RESERVED or front.get(RESERVED_KEY) != name:
        return name in RESERVED
    days = [line[3:].strip() for line in prose_lines(truth) if line.startswith("## ")]
    return name == "log" and not all(map(_DAY.fullmatch, days))


def free_stem(stem: str, taken: set[str]) -> str:
    """Return the path, without extension, for a page whose name is reserved."""
    new = stem + OTHER_NAME
    while new in taken:
        new += OTHER_NAME
    return new


def standard_links(text: str, resolve: Resolve) -> str:
    """Rewrite links between pages as Markdown links to files of the bundle. Links to unknown pages stay."""

    def write(match: re.Match[str]) -> str:
        ref = resolve(match[2].strip())
        if ref is None:
            return match[0]
        label = match[4] or (ref.title if "/" in match[2] else match[2].strip())
        return f"[{label}](/{ref.stem}.md{(match[3] or '').replace(' ', '%20')})"

    return with_links(text, write)


def write_concept(page: BundlePage) -> tuple[str, str]:
    """Return the text of a concept, and its description."""
    built = page_model.build_page(page.slug, page.front, page.truth, page.timeline)
    missing: dict[str, Any] = {
        "type": built.type,
        "title": built.title,
        "description": " ".join(built.summary.split()),
        "generated": {"by": page.actor, "at": page.updated},
    }
    missing = {key: value for key, value in missing.items() if value and not page.front.get(key)}
    first = {key: page.front.get(key) for key in _DERIVED if key in page.front or key in missing}
    front: dict[str, Any] = {**first, **page.front, **missing}
    export: dict[str, Any] = {"added": [*missing], "created": page.created}
    if slugs.from_path(page.path) != page.address:
        export["slug"] = page.address
    text = markdown.render({**front, EXPORT_KEY: export}, page.truth, page.timeline)
    return text, " ".join(str(front.get("description") or "").split())


def write_reserved(truth: str, timeline: str, *, is_root_index: bool) -> str:
    """Return the text of a reserved file, which has no front matter except the version in the root."""
    return _version_block(is_root_index) + markdown.render({}, truth, timeline)


def write_index(
    folder: str, concepts: Iterable[tuple[str, str, str]], folders: Iterable[tuple[str, int]]
) -> str:
    """Return the list of a folder: title, file and description of concepts, and names and sizes of folders."""
    lines = [WRITTEN_LIST, "", f"# {folder.rpartition('/')[2] or 'Concepts'}", ""]
    for title, name, description in concepts:
        label = " ".join(title.replace("[", "(").replace("]", ")").split())
        lines.append(f"* [{label}]({name})" + (f" - {description}" if description else ""))
    subfolders = [f"* [{name}]({name}/) - {count} concept{'s' * (count != 1)}" for name, count in folders]
    if subfolders:
        lines += ["", "# Folders", "", *subfolders]
    return _version_block(not folder) + "\n".join(lines) + "\n"


def _version_block(is_root: bool) -> str:
    return f"---\n{front_matter.dump_yaml({'okf_version': VERSION}).strip()}\n---\n\n" if is_root else ""
