"""Where the links in a text lead: what is written there, and which page the memory found for it.

The memory resolves the links of a page when it is saved and keeps the names that the text uses for them. A name
without a page leads to a search.
"""

from collections.abc import Callable, Iterable, Mapping
from posixpath import dirname, normpath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from quaid.model import slug as slugs
from quaid.model.links import ID_PREFIX, OR_FROM_ROOT, target_key
from quaid.surfaces.web.pages import addresses

if TYPE_CHECKING:
    from quaid.operations.pages import PageRecord


class Place(NamedTuple):
    """Where a link leads."""

    href: str
    title: str = ""
    """How the page there is called, if that is known."""


Leading = Callable[[str], Place | None]
"""What a link names → where that is in the dashboard; None: nobody knows."""


def as_words(name: str) -> str:
    """What a name says where no page is behind it: people/alice-berg is alice berg; words stay as they are."""
    last = name.strip().rstrip("/").rpartition("/")[2]
    return last if " " in name.strip() else last.replace("-", " ").replace("_", " ").strip() or name


PATH = "file:"
"""What stands before a path, which leads from where the page is."""


def nowhere(_: str) -> None:
    """For a text whose links nobody has looked up."""


def of_page(record: "PageRecord", found: Iterable[Any], titles: Mapping[str, str] = {}) -> Leading:
    """Where the links of this page lead, by the links that the memory has of it."""
    known = _known(found, titles)
    slug = record.slug

    def lead(named: str) -> Place | None:
        if named.startswith(ID_PREFIX):
            return known.get(target_key(ID_PREFIX + named[len(ID_PREFIX) :].partition("::")[0].strip()))
        if named.startswith((PATH, "./", "../")):
            path = unquote(named.removeprefix(PATH).partition("#")[0].partition("::")[0])
            place = path if path.startswith("/") else f"{dirname(slug)}/{path}"
            return known.get(target_key("/" + slugs.from_path(normpath(place).lstrip("/"))))
        return known.get(target_key(named.removesuffix(".md").removesuffix(".org")))

    return lead


def _known(links: Iterable[Any], titles: Mapping[str, str]) -> dict[str, Place]:
    """Return the place of every page that the text links to, by the folded name that the text uses."""
    known: dict[str, Place] = {}
    for link in links:
        if link.resolved:
            for name in link.as_written:
                known.setdefault(target_key(name.replace(OR_FROM_ROOT, "/")), _place(link, titles))
    return known


def _place(link: Any, titles: Mapping[str, str]) -> Place:
    address = slugs.address(link.to_collection, link.to_slug)
    return Place(addresses.page(address), titles.get(address, ""))
