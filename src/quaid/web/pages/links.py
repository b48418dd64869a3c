"""URLs of the dashboard's pages, and the targets of links in page content.

The links of a page are resolved when the page is saved. A link leads to a search if no page has the name in
the link.
"""

from collections.abc import Callable, Iterable, Mapping
from posixpath import dirname, normpath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote, urlencode

from quaid.model import slug as slugs
from quaid.model.links import ID_PREFIX, OR_FROM_ROOT, target_key

if TYPE_CHECKING:
    from quaid.operations.pages import PageRecord

UNQUOTED_CHARACTERS = "/:@!$'()*,~"
"""Characters that are not percent-encoded in a path, so that `notes::people/alice` stays readable."""


def page_url(address: str, part: str = "", line: int | None = None) -> str:
    """Return the URL of a page, or of a line in it.

    If `part` is "timeline", lines are counted from the start of the timeline.
    """
    path = f"/page/{quote(address, safe=UNQUOTED_CHARACTERS)}"
    view = {"view": "1"} if address.endswith("/edit") else {}
    if not line:
        return path + (f"?{urlencode(view)}" if view else "")
    mark = "T" if part == "timeline" else "L"
    return f"{path}?{urlencode({**view, 'at': f'{mark}{line}'})}#{mark}{line}"


def edit_url(address: str) -> str:
    return f"/page/{quote(address, safe=UNQUOTED_CHARACTERS)}/edit"


def file_url(path: str, line: int | None = None) -> str:
    """Return the URL of a notebook file, or of a line in it."""
    url = f"/notebook/{quote(path, safe=UNQUOTED_CHARACTERS)}"
    return f"{url}?at=L{line}#L{line}" if line else url


def node_url(id: str) -> str:
    """Return the URL of a node of the knowledge base."""
    return f"/kb/{quote(id, safe='')}"


def search_url(text: str) -> str:
    """Return the URL of a search for a tag or an unresolved link.

    `link=1` keeps the search from being recorded as a gap (an unanswered question).
    """
    return "/search?" + urlencode({"q": text, "link": 1})


def graph_url(address: str) -> str:
    return "/graph?" + urlencode({"slug": address})


def with_query(path: str, values: dict[str, str | int]) -> str:
    """Return a path with a query string; empty and zero values are omitted."""
    present = {name: value for name, value in values.items() if value not in ("", 0)}
    return path + (f"?{urlencode(present)}" if present else "")


class LinkTarget(NamedTuple):
    """The target of a link."""

    href: str
    title: str = ""
    """Title of the target page; empty if not known."""


LinkResolver = Callable[[str], LinkTarget | None]
"""Maps the name in a link to its target, or to None if it cannot be resolved."""


def slug_words(name: str) -> str:
    """Return a name that has no page as words, for example "alice berg" for `people/alice-berg`.

    In a name with spaces, hyphens and underscores are kept.
    """
    last = name.strip().rstrip("/").rpartition("/")[2]
    return last if " " in name.strip() else last.replace("-", " ").replace("_", " ").strip() or name


FILE_PREFIX = "file:"
"""Prefix of a path that is relative to the page's folder."""


def resolve_nothing(_: str) -> None:
    """Resolve no links."""


def resolver_of_page(
    record: "PageRecord", links: Iterable[Any], titles: Mapping[str, str] = {}
) -> LinkResolver:
    """Return a resolver for the links in this page's text, based on its stored links."""
    targets: dict[str, LinkTarget] = {}
    for link in links:
        if link.resolved:
            address = slugs.address(link.to_collection, link.to_slug)
            target = LinkTarget(page_url(address), titles.get(address, ""))
            for name in link.as_written:
                targets.setdefault(target_key(name.replace(OR_FROM_ROOT, "/")), target)

    def resolve(name: str) -> LinkTarget | None:
        if name.startswith(ID_PREFIX):
            return targets.get(target_key(ID_PREFIX + name[len(ID_PREFIX) :].partition("::")[0].strip()))
        if name.startswith((FILE_PREFIX, "./", "../")):
            path = unquote(name.removeprefix(FILE_PREFIX).partition("#")[0].partition("::")[0])
            place = path if path.startswith("/") else f"{dirname(record.slug)}/{path}"
            return targets.get(target_key("/" + slugs.from_path(normpath(place).lstrip("/"))))
        return targets.get(target_key(name.removesuffix(".md").removesuffix(".org")))

    return resolve
