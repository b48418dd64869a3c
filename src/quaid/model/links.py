"""Links between pages: find them in text and front matter, resolve a target to a page, and walk the graph.

A target is a name (slug, file name, alias or title), a path if it begins with '/', or an id if it begins with
'id:'.
"""

import re
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from quaid.model import dates, slug as slugs
from quaid.model.plain_text import LineCounter, SpanCover, code_spans, fence_cover, shorten, strip_markdown
from quaid.model.slug import INDEX_NAMES, LONGEST_NAME, fold_name

if TYPE_CHECKING:
    from quaid.model.page import Page

MENTIONS = "mentions"
"""The relationship of a link in running text."""

RELATED = "related"
"""The default relationship of a link in front matter."""

ID_PREFIX = "id:"
"""Prefix of a link target that is the id of a page."""

IN_FILE_KEY = "in_file"
"""The front-matter key with the path of the file, for a page that was made from a heading of that file."""

LONGEST_CONTEXT = 200
MOST_LISTED = 1_000
"""At most this many links are read from the front matter of one page."""

MOST_LINKS = 10_000
"""At most this many distinct targets are read from one text, far more than any page written by hand has."""

MOST_PLACES = 100_000
"""At most this many links of one syntax are read from one text, including repeated targets."""

MOST_CONTEXTS = 1_000
"""At most this many lines of one text are stored as link context.

A page with more links is a list, or hostile input.
"""

# Patterns that reading and searching do not need are strings here: `re` compiles them at first use and caches them.
# Each begins with literal characters that the regex engine can search for: three times as fast as a joint pattern.
_WIKI = (
    r"\[\[([^\[\]|#^\n]+)(?:[#^][^\[\]|\n]*)?(?:\\?\|[^\[\]\n]*)?\]"
    r"(\[[^\[\]]{0,500}(?:\[[^\[\]\n]*\][^\[\]]{0,500})?\])?\]"
)
_PATH = (
    r"\]\((?:<([^<>\n]+)>|([^()\s<>]+(?:\([^()\s<>]*\)[^()\s<>]*)*))"
    r"(?:[ \t]+(?:\"[^\"\n]{0,300}\"|'[^'\n]{0,300}'))?[ \t]*\)"
)
_SHORTCODE = (
    r"\{\{[<%][ \t]*(?:rel)?ref[ \t]+(?:path=)?(?:\"([^\"\n]{1,500})\"|'([^'\n]{1,500})')[^{}\n]{0,200}\}\}"
)
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z]{2,4})?\Z")
_PAGE_FILE = re.compile(r"\.(?:md|markdown|org)\Z", re.IGNORECASE)
_ENDINGS = (".md", ".MD", ".markdown", ".org")
_OTHER_FILE = re.compile(r"\.[A-Za-z0-9]{2,5}\Z")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_BULLET = r"\A\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?"


OR_FROM_ROOT = "//"
"""A separator in a target between the folder of the linking page and a path without a leading "./" or "/".

Such a path may be relative to that folder or, as Obsidian also writes it, to the root of the collection.
Without a folder before the separator, the path belongs to a page on a website: /docs/x/ is written
"//docs/x".
"""

CONTENT_FOLDER = "content"
"""The folder of a website in which Hugo keeps its pages, directly or in one folder for each language."""


class LinkReference(NamedTuple):
    """A link found in a page."""

    target: str
    key: str
    """The name to look up: the target without its collection, normalized in the same way as page names."""
    relationship: str
    context: str
    part: str
    """The part of the page: truth (the text above the timeline), timeline or frontmatter."""
    line: int
    """Line number within the part, from 1; always 1 in front matter."""
    valid_from: str | None = None
    valid_until: str | None = None


def find_references(page: "Page") -> list[LinkReference]:
    """Return the links of a page.

    Of links with equal target, relationship and start date, only the first is returned.
    """
    references: dict[tuple[str, ...], LinkReference] = {}
    listed = page.frontmatter.get("links")
    in_text = [
        *_text_references(page, page.truth, "truth"),
        *_text_references(page, page.timeline, "timeline"),
    ]
    for reference in [*_frontmatter_references(listed), *in_text]:
        named = reference.target if reference.target[0] == "/" or "::" in reference.target else reference.key
        key = (named, reference.relationship, reference.valid_from or "")
        references.setdefault(key, reference)
    return list(references.values())


def _text_references(page: "Page", text: str, part: str) -> list[LinkReference]:
    links = _wiki_links(_base_path(page), text) if "[[" in text else []
    if "](/" in text or ("](" in text and any(ending in text for ending in _ENDINGS)):
        links = sorted([*links, *_path_links(_base_path(page), text)])
    if "{{" in text and "ref " in text:
        links = sorted([*links, *_shortcode_links(_base_path(page), text)])
    code = SpanCover(code_spans(text) if links and ("`" in text or "~~~" in text) else [])
    lines = LineCounter(text)
    references = []
    contexts: dict[tuple[int, int], str] = {}  # links on the same line share their context
    named: set[str] = set()
    for start, end, target in links:
        if code.contains(start) or target in named:
            continue
        if len(named) == MOST_LINKS:
            break
        named.add(target)
        around = _context_span(text, start, end)
        if around not in contexts:
            shown = text[slice(*around)] if len(contexts) < MOST_CONTEXTS else ""
            contexts[around] = _context_text(re.sub(_BULLET, "", shown, count=1))
        reference = (target, target_key(target), MENTIONS, contexts[around], part, lines.at(start))
        references.append(LinkReference(*reference))
    return references


def _base_path(page: "Page") -> str:
    """Return the path that relative links start from: the slug or, for a page made from a heading, its file."""
    file = page.frontmatter.get(IN_FILE_KEY)
    return file if isinstance(file, str) and page.slug.startswith(slugs.from_path(file)) else page.slug


def _wiki_links(page_slug: str, text: str) -> list[tuple[int, int, str]]:
    """Return start, end and target of the links in double brackets; images and attachments are skipped."""
    wiki_links = []
    targets: dict[tuple[str, bool], str] = {}
    for match in islice(re.finditer(_WIKI, text), MOST_PLACES):
        written = (match[1], match[2] is not None)
        name = targets.get(written)
        if name is None:
            if len(targets) == 2 * MOST_LINKS:
                break
            name = targets[written] = _wiki_target(page_slug, *written)
        if name:
            wiki_links.append((match.start(), match.end(), name))
    return wiki_links


def _wiki_target(page_slug: str, name: str, described: bool) -> str:
    """Return the target of a link in double brackets; "" if the link cannot lead to a page.

    `described` is True for an Org link with a description.
    """
    name = name.rstrip("\\").strip()  # in a table, the | before the description is escaped
    if name.startswith((ID_PREFIX, "file:", "*")) or described:
        name = _org_target(page_slug, name, described=described)
    elif _PAGE_FILE.search(name):
        name = _PAGE_FILE.sub("", name)
    elif _OTHER_FILE.search(name) and " " not in name:
        return ""
    return name[:LONGEST_NAME] if fold_name(name) else ""


def _org_target(page_slug: str, name: str, *, described: bool) -> str:
    """Return the target of an Org link: an id, a path or a name.

    Return "" for web addresses, for headings in the same file and for files that are not pages.
    """
    if name.startswith(ID_PREFIX):
        return ID_PREFIX + name[len(ID_PREFIX) :].partition("::")[0].strip()
    kind, _, path = name.partition(":")
    if kind == "file" or name.startswith(("./", "../")):
        path = (path if kind == "file" else name).partition("::")[0]
        return (
            _resolve_path(page_slug, path)
            if _PAGE_FILE.search(path) and not path.startswith(("/", "~"))
            else ""
        )
    return "" if name.startswith("*") or (described and _SCHEME.match(name)) else name


def _path_links(page_slug: str, text: str) -> list[tuple[int, int, str]]:
    """Return start, end and target of Markdown links to page files and to pages of a website, such as /docs/x.

    Links with a full web address are skipped.
    """
    path_links = []
    targets: dict[str, str] = {}
    for match in islice(re.finditer(_PATH, text), MOST_PLACES):
        written = match[1] or match[2]
        target = targets.get(written)
        if target is None:
            if len(targets) == 2 * MOST_LINKS:
                break
            target = targets[written] = _page_target(page_slug, written)
        if target:
            path_links.append((match.start(), match.end(), target))
    return path_links


def _shortcode_links(page_slug: str, text: str) -> list[tuple[int, int, str]]:
    """Return start, end and target of Hugo's `ref` and `relref` shortcodes."""
    links = []
    for match in islice(re.finditer(_SHORTCODE, text), MOST_LINKS):
        path = _PAGE_FILE.sub("", (match[1] or match[2]).strip().partition("#")[0])
        if not path or _SCHEME.match(path):
            continue
        if path.startswith("/"):
            target = _site_target(path)
        elif path.startswith(".") or "/../" in path:
            target = _resolve_path(page_slug, path)
        elif "/" in path:
            target = f"/{page_slug.rpartition('/')[0]}{OR_FROM_ROOT}{slugs.from_path(path.strip('/'))}"
        else:
            target = path[:LONGEST_NAME] if fold_name(path) else ""
        if target:
            links.append((match.start(), match.end(), target))
    return links


def _site_target(path: str) -> str:
    """Return the target for the path of a page on a website; "" for the start page or a path with ".."."""
    steps = [step for step in path.split("/") if step not in ("", ".")]
    return f"{OR_FROM_ROOT}{slugs.from_path('/'.join(steps))}" if steps and ".." not in steps else ""


def _page_target(page_slug: str, written: str) -> str:
    """Return the target for the address of a Markdown link.

    Return "" if the address is neither the file of a page nor an absolute path without an extension.
    """
    path = written.partition("#")[0].partition("?")[0]
    is_site_path = path.startswith("/") and not path.startswith("//") and not _OTHER_FILE.search(path)
    is_file = _PAGE_FILE.search(path) and not _SCHEME.match(path) and not path.startswith("//")
    if not is_site_path and not is_file:
        return ""
    if "%" in path:
        from urllib.parse import unquote

        path = unquote(path)
    if is_site_path:
        return "" if _PAGE_FILE.search(path) else _site_target(path)
    folder = page_slug.rpartition("/")[0]
    if folder and "/" in path and not path.startswith((".", "/")) and "/../" not in path:
        return f"/{folder}{OR_FROM_ROOT}{slugs.from_path(path)}"
    return _resolve_path(page_slug, path)


def _resolve_path(page_slug: str, path: str) -> str:
    """Return "/" and the slug that a path, relative to the page, leads to; "" if it leaves the collection."""
    steps = _follow([] if path.startswith("/") else page_slug.split("/")[:-1], path)
    return "/" + slugs.from_path("/".join(steps)) if steps else ""


def _follow(folders: list[str], path: str) -> list[str] | None:
    """Return the folders and the name that a relative path leads to; None if it leaves the root."""
    steps = [*folders]
    for step in path.split("/"):
        if step == "..":
            if not steps:
                return None
            steps.pop()
        elif step not in ("", "."):
            steps.append(step)
    return steps


def _context_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Return start and end of the line around a link; a long line is cut near the link."""
    reach = 2 * LONGEST_CONTEXT + 1  # limit the search, because a line may be as long as the page
    first = text.rfind("\n", max(0, start - reach), start) + 1 or max(0, start - reach)
    last = text.find("\n", end, end + reach)
    last = min(len(text), end + reach) if last < 0 else last
    if last - first > 2 * LONGEST_CONTEXT:
        return max(first, start - LONGEST_CONTEXT), min(last, end + LONGEST_CONTEXT)
    return first, last


def _context_text(text: str) -> str:
    return shorten(strip_markdown(text), LONGEST_CONTEXT)


def _frontmatter_references(links: Any) -> list[LinkReference]:
    """Return the links in front matter.

    Each is a name, or a mapping with `to` (or `target`) and, optionally, `relationship` (or `type`),
    `context`, `valid_from` and `valid_until`.
    """
    references = []
    for entry in (links if isinstance(links, list) else [links])[:MOST_LISTED]:
        values = entry if isinstance(entry, dict) else {"to": entry}
        target = values.get("to", values.get("target"))
        if not isinstance(target, str):
            continue
        target = target.strip().removeprefix("[[").removesuffix("]]").partition("|")[0].strip()
        target = _PAGE_FILE.sub("", target).lstrip("/")[:LONGEST_NAME]
        if not fold_name(target):
            continue
        since, until = _date_or_none(values.get("valid_from")), _date_or_none(values.get("valid_until"))
        if since and until and until < since:
            since = until = None
        named = values.get("relationship", values.get("type"))
        relationship = normalize_relationship(named) if isinstance(named, str) else ""
        context = values.get("context")
        references.append(
            LinkReference(
                *(target, target_key(target), relationship or RELATED),
                *(_context_text(context) if isinstance(context, str) else "", "frontmatter", 1),
                *(since, until),
            )
        )
    return references


def target_key(target: str) -> str:
    """Return the normalized name by which a target is looked up."""
    name = target.rpartition("::")[2]
    return fold_name(name.rpartition("/")[2] if OR_FROM_ROOT in name else name)


def normalize_relationship(text: str) -> str:
    """Return a relationship in its stored form: `Works at` and `works-at` become works_at."""
    return fold_name(text).replace(" ", "_")


def _date_or_none(value: Any) -> str | None:
    """Return a date as YYYY-MM-DD, with the first day of a month or year; None if the value is not a date."""
    text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    text += {4: "-01-01", 7: "-01"}.get(len(text), "")
    return text if dates.is_date(text) else None


def rebase_relative_links(text: str, old_slug: str, new_slug: str) -> str:
    """Rewrite relative links to pages so that they reach the same files after their page moves to another slug."""
    if "](" not in text or old_slug.rpartition("/")[0] == new_slug.rpartition("/")[0]:
        return text
    code = fence_cover(text)

    def moved(link: "re.Match[str]") -> str:
        if code.contains(link.start()):
            return link[0]
        return f"]({link['open']}{_rebase_path(link['path'], old_slug, new_slug)}"

    return re.sub(_RELATIVE_PATH, moved, text)


_RELATIVE_PATH = (
    r"\]\((?P<open><?)(?P<path>(?![A-Za-z][A-Za-z0-9+.-]+:|/|#)[^()\s<>#?]+\.(?:md|markdown|org)\b)"
)


def _rebase_path(path: str, old_slug: str, new_slug: str) -> str:
    steps = _follow(old_slug.split("/")[:-1], path)
    if steps is None:
        return path
    here = new_slug.split("/")[:-1]
    common = 0
    while common < min(len(here), len(steps) - 1) and here[common] == steps[common]:
        common += 1
    return "/".join([".."] * (len(here) - common) + steps[common:])


class LinkCandidate(NamedTuple):
    """A page to which a link may lead, because a name of the page equals the name in the link."""

    page_id: int
    collection: str
    slug: str
    kind: str
    """The kind of the name that matched: title, slug, alias or name."""
    former: tuple[str, ...] = ()
    """Previous slugs of the page."""


def resolve_link(
    target: str, page_slug: str, collection: str, candidates: "Iterable[LinkCandidate]"
) -> int | None:
    """Return the id of the page that a link leads to, by path, else by file name, alias, title or slug.

    A name is first compared with the files in the folder of the linking page, then with paths, also former ones.
    `page_slug` and `collection` belong to the page that contains the link. Unless the target names a collection,
    pages in the same collection are preferred. Of several pages that match, one in the folder of the linking page
    is preferred, then the one with the fewest folders. If two pages match equally well, the link is ambiguous and
    the result is None.
    """
    named, _, name = target.rpartition("::")
    near = [candidate for candidate in candidates if candidate.collection == (named or collection)]
    if not near and not named:
        near = list(candidates)
    if name.startswith(ID_PREFIX):
        ids = {candidate.page_id for candidate in near if candidate.kind == "alias"}
        return ids.pop() if len(ids) == 1 else None
    nested, _, rooted = name.partition(OR_FROM_ROOT)
    path = slugs.from_path(name.lstrip("/"))
    fits = [
        [candidate for candidate in near if candidate.slug == path],
        [candidate for candidate in near if path in candidate.former],
    ]
    folder = page_slug.rpartition("/")[0]
    if rooted:
        paths = _site_paths(nested.strip("/"), rooted, page_slug)
        fits = [[candidate for candidate in near if candidate.slug == path] for path in paths]
        fits.append([candidate for candidate in near if _without_language(candidate.slug) in paths])
    elif not name.startswith("/"):
        key = fold_name(name)
        by_file = [candidate for candidate in near if fold_name(candidate.slug.rpartition("/")[2]) == key]
        beside = [candidate for candidate in by_file if candidate.slug.rpartition("/")[0] == folder]
        fits = [beside, *fits, by_file]
        fits += [
            [candidate for candidate in near if candidate.kind == kind] for kind in ("alias", "title", "slug")
        ]
    for fitting in fits:
        page_ids = _nearest_pages(fitting, folder)
        if page_ids:
            return page_ids.pop() if len(page_ids) == 1 else None
    return None


def _nearest_pages(candidates: list[LinkCandidate], folder: str) -> set[int]:
    """Return the ids of the candidates in a folder or, if none is in it, of those with the fewest folders."""
    nearest = [candidate for candidate in candidates if candidate.slug.rpartition("/")[0] == folder]
    if not nearest and candidates:
        fewest = min(candidate.slug.count("/") for candidate in candidates)
        nearest = [candidate for candidate in candidates if candidate.slug.count("/") == fewest]
    return {candidate.page_id for candidate in nearest}


def _site_paths(nested: str, rooted: str, page_slug: str) -> list[str]:
    """Return the slugs to which a path may lead, best first.

    The path starts in the folder `nested`, at the root of the collection, or in a folder with the pages of a
    website: `content`, or the folder for the language of the linking page.
    """
    bases = [nested] if nested else []
    bases.append("")
    top, _, rest = page_slug.partition("/")
    language = rest.partition("/")[0] if top == CONTENT_FOLDER else top
    bases += [CONTENT_FOLDER, f"{CONTENT_FOLDER}/{language}"]
    if _LANGUAGE.match(top):
        bases.append(top)
    paths = [f"{base}/{rooted}".lstrip("/") for base in bases]
    return [variant for path in paths for variant in (path, *(f"{path}/{name}" for name in INDEX_NAMES))]


def _without_language(slug: str) -> str:
    """Return a slug without the folder of a language, at the root or below `content`."""
    top, _, rest = slug.removeprefix(f"{CONTENT_FOLDER}/").partition("/")
    return rest if _LANGUAGE.match(top) else slug


class GraphLink(NamedTuple):
    """A link with the page ids of both ends."""

    id: int
    from_id: int
    to_id: int
    relationship: str = ""
    valid_from: str | None = None
    valid_until: str | None = None
    part: str | None = None
    """The part of the page with the link, as in LinkReference; None if the link is not in the text."""
    line: int | None = None


def join_spans(links: Iterable[GraphLink]) -> list[tuple[GraphLink, tuple[int, ...]]]:
    """Join links with overlapping validity. All must have the same relationship and the same two pages.

    Return each remaining link with its new validity, and the ids of the links that were joined with it.
    """
    joined: list[tuple[GraphLink, tuple[int, ...]]] = []
    for link in sorted(links, key=lambda link: link.id):
        absorbed: tuple[int, ...] = ()
        while pair := next((pair for pair in joined if _spans_overlap(pair[0], link)), None):
            joined.remove(pair)
            other, before = pair
            since = [day for day in (other.valid_from, link.valid_from) if day]
            until = (
                max(other.valid_until, link.valid_until) if other.valid_until and link.valid_until else None
            )
            absorbed = (*before, link.id, *absorbed)
            link = other._replace(valid_from=min(since, default=None), valid_until=until)
        joined.append((link, absorbed))
    return joined


def _spans_overlap(one: GraphLink, other: GraphLink) -> bool:
    """Return True if two intervals overlap. storage.checks uses the same rule to find overlapping links."""
    (start, end), (other_start, other_end) = _span(one), _span(other)
    return start < other_end and other_start < end


def _span(link: GraphLink) -> tuple[str, str]:
    """Return start and end. An unknown start is the end, or 9999-12-31 if both are unknown."""
    return link.valid_from or link.valid_until or "9999-12-31", link.valid_until or "~"


EdgeQuery = Callable[[list[int], int], list[GraphLink]]
"""A function that takes node ids and a limit, and returns edges of these nodes, up to the limit."""


ReachedNodes = dict[int, tuple[int, int | None]]
"""For each node, its distance from the start, and the node from which it was first reached."""


def walk_from(
    start: int, touching: EdgeQuery, among: EdgeQuery, *, depth: int, most_nodes: int, most_edges: int
) -> tuple[ReachedNodes, list[GraphLink], bool]:
    """Return the nodes within `depth` steps of `start`, nearest first, and the edges between them.

    The last value is False if a limit was reached, so that nodes or edges are missing.
    `touching` returns the edges with at least one end among the given nodes, `among` the edges with both ends
    among them.
    """
    reached: ReachedNodes = {start: (0, None)}
    ring, complete = [start], True
    for distance in range(1, depth + 1):
        nearby_edges = touching(ring, most_edges + 1)
        complete = complete and len(nearby_edges) <= most_edges
        outer: list[int] = []
        for edge in nearby_edges[:most_edges]:
            for node, before in ((edge.to_id, edge.from_id), (edge.from_id, edge.to_id)):
                if node in reached or before not in reached or reached[before][0] == distance:
                    continue
                if len(reached) >= most_nodes:
                    complete = False
                    continue
                reached[node] = (distance, before)
                outer.append(node)
        ring = outer
        if not ring:
            break
    edges = among(list(reached), most_edges + 1) if depth else []
    return reached, edges[:most_edges], complete and len(edges) <= most_edges


def path_to(reached: ReachedNodes, node: int) -> list[int]:
    """Return the nodes on the path from the start of a walk to a node, both included."""
    path: list[int] = []
    at: int | None = node
    while at is not None:
        path.append(at)
        at = reached[at][1]
    return path[::-1]


def shortest_path(
    start: int, end: int, touching: EdgeQuery, *, longest: int, most_nodes: int, most_edges: int
) -> tuple[list[GraphLink], bool]:
    """Return the edges of the shortest path between two nodes, and True if the search was complete.

    If there are no edges and the search was complete, there is no path. A search is not complete if a limit was
    reached. It starts from both ends, and each step expands the smaller frontier.
    """
    sides: tuple[dict[int, GraphLink | None], dict[int, GraphLink | None]] = ({start: None}, {end: None})
    rings, complete = [[start], [end]], True
    for _ in range(longest):
        side = 0 if len(rings[0]) <= len(rings[1]) else 1
        if not rings[side]:
            return [], complete
        mine, other = sides[side], sides[1 - side]
        outer: list[int] = []
        met: int | None = None
        nearby_edges = touching(rings[side], most_edges + 1)
        complete = complete and len(nearby_edges) <= most_edges
        for edge in nearby_edges[:most_edges]:
            for node, before in ((edge.to_id, edge.from_id), (edge.from_id, edge.to_id)):
                if before in mine and node not in mine:
                    mine[node] = edge
                    outer.append(node)
                    if node in other:
                        met = node if met is None else met
        if met is not None:
            return [*_path_back(met, sides[0])[::-1], *_path_back(met, sides[1])], complete
        if len(sides[0]) + len(sides[1]) > most_nodes:
            return [], False
        rings[side] = outer
    return [], complete and not all(rings)


def _path_back(node: int, side: dict[int, GraphLink | None]) -> list[GraphLink]:
    """Return the edges from a node back to the start of its side of the search."""
    edges: list[GraphLink] = []
    while (edge := side[node]) is not None:
        edges.append(edge)
        node = edge.from_id if edge.to_id == node else edge.to_id
    return edges
