"""Resources: the pages, their index and the notebook's context under memory:// addresses.

Everything is read through the call gate, so a resource shows what the tools show and nothing else.
"""

import re
from collections import Counter
from typing import Any

from quaid.brain import Brain
from quaid.errors import InvalidArgument, NoNotebook, NotFound, PageNotFound
from quaid.operations import dispatch
from quaid.surfaces.mcp import labels

INDEX = "memory://index"
CONTEXT = "memory://context"
PAGES = "memory://pages/"
MARKDOWN = "text/markdown"
LISTED_AT_ONCE = 100
READ_AT_ONCE = 10_000  # what memory_list gives at most
DESCRIPTION = 200  # characters; the page itself says more

TEMPLATES = [
    {
        "uriTemplate": PAGES + "{slug}",
        "name": "page",
        "title": "Page",
        "description": "A page as markdown: front matter, truth, timeline. Slugs look like people/alice.",
        "mimeType": MARKDOWN,
    }
]


def listed(brain: Brain, cursor: str | None) -> dict[str, Any]:
    """One portion of the resources, newest page first: a page that is added meanwhile hides no other."""
    offset = _offset(cursor)
    found = _pages(brain, offset, LISTED_AT_ONCE, "created")
    resources = [_entry(each) for each in found.pages]
    if offset == 0:
        resources[:0] = [_index_entry(), *([_context_entry()] if _has_context(brain) else [])]
    result: dict[str, Any] = {"resources": resources}
    if offset + len(found.pages) < found.total and found.pages:
        result["nextCursor"] = _cursor(offset + len(found.pages))
    return result


def read(brain: Brain, uri: str) -> dict[str, Any]:
    """The text behind an address."""
    if uri.rstrip("/") == INDEX:
        text = _index(brain)
    elif uri.rstrip("/") == CONTEXT:
        text = _context(brain)
    elif uri.startswith(PAGES):
        text = _page(brain, _decoded(uri[len(PAGES) :]))
    else:
        raise NotFound(what="resource", name=uri, hint=f" There are {CONTEXT}, {INDEX} and {PAGES}{{slug}}.")
    meta = labels.meta("memory_context" if uri.rstrip("/") == CONTEXT else "memory_get")
    return {"contents": [{"uri": uri, "mimeType": MARKDOWN, "text": text, "_meta": meta}]}


def address(collection: str, slug: str) -> str:
    """How tools and addresses name a page: its slug, behind its collection unless that is the default."""
    return slug if collection == "default" else f"{collection}::{slug}"


def _page(brain: Brain, name: str) -> str:
    """A page as text. An address without a collection is that of the default one, as it is listed."""
    from quaid.formats import markdown

    def get(slug: str) -> Any:
        return dispatch.call(brain, dispatch.find_tool("memory_get"), {"slug": slug}, "read")

    try:
        page = get(name if "::" in name else f"default::{name}")
    except PageNotFound:
        page = get(name)  # perhaps only one other collection has it, and else this is the error to show
    return markdown.render(page.frontmatter, page.compiled_truth, page.timeline)


def _index(brain: Brain) -> str:
    groups: dict[str, set[str]] = {}
    done, total = 0, 1
    while done < total:
        found = _pages(brain, done, READ_AT_ONCE, "created")
        for each in found.pages:
            groups.setdefault(each.type, set()).add(f"{each.collection}::{each.slug}")
        done, total = done + len(found.pages), found.total if found.pages else 0
        brain.progress(done, max(done, total), "Listing pages")
    slugs = Counter(name.partition("::")[2] for names in groups.values() for name in names)
    parts = [f"# Index of the memory\n\nPages: {slugs.total()}\n"]
    for type in sorted(groups):
        parts.append(f"\n## {type} ({len(groups[type])})\n\n")
        parts += [f"- {name}\n" for name in sorted(_short(each, slugs) for each in groups[type])]
    return "".join(parts)


def _short(name: str, slugs: "Counter[str]") -> str:
    """The shortest name by which every tool finds a page."""
    slug = name.removeprefix("default::")
    return name if slugs[slug] > 1 else slug


def _context(brain: Brain) -> str:
    return str(dispatch.call(brain, dispatch.find_tool("memory_context"), {}, "read").text)


def _has_context(brain: Brain) -> bool:
    try:
        return bool(_context(brain))
    except NoNotebook:
        return False


def _pages(brain: Brain, offset: int, limit: int, sort: str) -> Any:
    return dispatch.call(
        brain, dispatch.find_tool("memory_list"), {"offset": offset, "limit": limit, "sort": sort}, "read"
    )


def _entry(page: Any) -> dict[str, Any]:
    name = address(page.collection, page.slug)
    entry = {"uri": PAGES + _encoded(name), "name": name, "title": page.title, "mimeType": MARKDOWN}
    if page.summary:
        entry["description"] = page.summary[:DESCRIPTION]
    return {**entry, "annotations": {"lastModified": page.updated_at}}


def _index_entry() -> dict[str, Any]:
    text = "The slug of every page, grouped by type."
    return {"uri": INDEX, "name": "index", "title": "Index", "description": text, "mimeType": MARKDOWN}


def _context_entry() -> dict[str, Any]:
    text = "What to know from the start: the notebook's reference, today's and yesterday's log."
    return {"uri": CONTEXT, "name": "context", "title": "Context", "description": text, "mimeType": MARKDOWN}


def _cursor(offset: int) -> str:
    return f"after-{offset}"


def _offset(cursor: str | None) -> int:
    if cursor is None:
        return 0
    match = re.fullmatch(r"after-([1-9][0-9]{0,9})", cursor)
    if not match:
        raise InvalidArgument(name="cursor", problem="is not one that this server gave")
    return int(match[1])


def _encoded(name: str) -> str:
    if re.fullmatch(r"[\w/:.-]*", name, re.ASCII):
        return name
    from urllib.parse import quote

    return quote(name, safe="/:")


def _decoded(text: str) -> str:
    if "%" not in text:
        return text
    from urllib.parse import unquote_to_bytes

    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise InvalidArgument(name="uri", problem="does not decode to UTF-8") from None
