"""Where the links in a text lead: what is written there, and which page the memory found for it.

The memory has resolved every link of a page when the page was saved; this brings both together again by the place
where the link stands. What it cannot tell for sure leads to a search.
"""

from collections.abc import Callable, Iterable, Mapping
from posixpath import dirname, normpath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from quaid.core import page as pages, slug as slugs
from quaid.core.links import BY_ID, OR_FROM_ROOT, Reference, key_of, references
from quaid.surfaces.web.pages import addresses

if TYPE_CHECKING:
    from quaid.ops.pages import PageRecord


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
    known = _known(record, list(found), titles)
    slug = record.slug

    def lead(named: str) -> Place | None:
        if named.startswith(BY_ID):
            return known.get(key_of(BY_ID + named[len(BY_ID) :].partition("::")[0].strip()))
        if named.startswith((PATH, "./", "../")):
            path = unquote(named.removeprefix(PATH).partition("#")[0].partition("::")[0])
            place = path if path.startswith("/") else f"{dirname(slug)}/{path}"
            return known.get(key_of("/" + slugs.from_path(normpath(place).lstrip("/"))))
        return known.get(key_of(named.removesuffix(".md").removesuffix(".org")))

    return lead


def _known(record: "PageRecord", found: list[Any], titles: Mapping[str, str]) -> dict[str, Place]:
    """Every target that the text names, folded, and where its page is.

    In one place the memory has as many links as the text: those that are written as a slug are told by it, those
    that lead nowhere by what they say, and if one is left on both sides, these two belong together."""
    page = pages.build(record.slug, record.frontmatter, record.compiled_truth, record.timeline)
    places: dict[tuple[str | None, int | None], list[Any]] = {}
    for each in found:
        places.setdefault((each.part, each.line), []).append(each)
    known: dict[str, Place] = {}
    unsure: dict[tuple[str, int], list[Reference]] = {}
    for reference in references(page):
        here = places.get((reference.part, reference.line), [])
        told = next((each for each in here if _says(reference, each)), None)
        if told is None:
            unsure.setdefault((reference.part, reference.line), []).append(reference)
            continue
        here.remove(told)
        if told.resolved:
            known[_key(reference)] = _place(told, titles)
    for at, named in unsure.items():
        left = places.get(at, [])
        if len(named) == len(left) == 1 and left[0].resolved:
            known.setdefault(_key(named[0]), _place(left[0], titles))
    return known


def _key(reference: Reference) -> str:
    return key_of(reference.target.replace(OR_FROM_ROOT, "/"))


def _says(reference: Reference, link: Any) -> bool:
    """Whether a link is written as what it leads to: its slug, or the last part of it."""
    _, _, rooted = reference.target.partition(OR_FROM_ROOT)
    if rooted and link.to_slug == rooted:
        return True
    target = reference.target.lstrip("/").replace(OR_FROM_ROOT, "/").rpartition("::")[2]
    last = link.to_slug.rpartition("/")[2]
    return bool(link.to_slug == target or (link.resolved and slugs.segment(target) == last))


def _place(link: Any, titles: Mapping[str, str]) -> Place:
    address = slugs.address(link.to_collection, link.to_slug)
    return Place(addresses.page(address), titles.get(address, ""))
