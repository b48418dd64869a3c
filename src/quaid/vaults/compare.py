"""Compare an exported folder with its original.

Pages are matched by slug, the way an import names them, or by the id in their front matter, and compared by front
matter, truth, timeline and sidecars. Spelling (order of keys, blank lines, line ends) does not count. Files that an
import leaves out although they look like pages are compared too: a missing page is named, whatever the reason.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from quaid.model import slug
from quaid.model.page import Page
from quaid.vaults import index, links_and_facts, naming, scan, sidecar
from quaid.vaults.scan import FILE_FLAGS, LARGEST_FILE, PAGE_ENDINGS, Folder, Found, LeftOut

Progress = Callable[[int, int, str], None]

NOT_TAKEN_IN = (scan.LINK, scan.UNREADABLE, scan.BAD_NAME, scan.TOO_DEEP, scan.NOT_A_FILE, scan.GONE)
"""Why a file that looks like a page is left out by an import."""


class FilePage(NamedTuple):
    """The page of a file; long texts only by their hash, so that folders of any size can be compared."""

    path: str
    front: dict[str, Any]
    truth: str
    timeline: str
    entries: int
    why: str = ""
    """Why an import would leave it out; then the truth is the hash of the whole file."""

    @property
    def id(self) -> str:
        return str(self.front.get("id") or self.front.get(index.ID_KEY) or "")


class Contents(NamedTuple):
    pages: dict[str, FilePage]  # by slug
    special: dict[str, FilePage]  # index, schema and README of the root: pages only in an attached folder
    raw: dict[str, tuple[str, str | None]]  # path and hash of a slug's sidecar; no hash: it cannot be read
    contested: set[
        str
    ]  # slugs of pages that asked for the same slug as another: a sync and an import may differ
    troubles: list[tuple[str, str]]


def folders(original: str, exported: str, progress: Progress) -> list[tuple[str, str]]:
    """Return where the two folders differ and how; nothing when every page of one is in the other."""
    before, after = _contents(original, progress), _contents(exported, progress)
    _take_special(before, after)
    _take_special(after, before)
    _match_by_id(before.pages, after.pages)
    _match_by_content(before, after.pages)
    found = before.troubles + after.troubles
    for address, one in before.pages.items():
        if address not in after.pages:
            why = f": it is left out by every import ({one.why})" if one.why else ""
            found.append((one.path, f"page {address} is missing in the export{why}"))
        else:
            found += [(one.path, problem) for problem in _differences(one, after.pages[address])]
    found += [
        (one.path, f"page {address} is only in the export")
        for address, one in after.pages.items()
        if address not in before.pages
    ]
    found += _sidecar_differences(before, after)
    return sorted(found + _missing_beside(original, exported))


def _missing_beside(original: str, exported: str) -> list[tuple[str, str]]:
    """Links and facts that no text holds, where the original is an export and the other folder lacks some of them."""
    path = links_and_facts.PATH
    try:
        before, after = _beside(original), _beside(exported)
    except ValueError as error:
        return [(path, f"cannot be compared: {error}")]
    found = []
    for what, one, other in (("link", before.links, after.links), ("fact", before.facts, after.facts)):
        missing = (Counter(filter(None, one)) - Counter(filter(None, other))).total()
        if missing:
            found.append((path, f"{missing} {what}{'s' * (missing > 1)} missing in the export"))
    return found


def _beside(root: str) -> links_and_facts.Contents:
    """What a folder has of them; a place in a list says nothing in another list, so it is left out."""
    with Folder(os.path.realpath(root)) as folder:
        try:
            contents = links_and_facts.read(folder.read(links_and_facts.PATH, links_and_facts.LARGEST))
        except OSError:
            return links_and_facts.Contents([], [], {}, [])
    return contents._replace(facts=[each and each._replace(supersedes=None) for each in contents.facts])


def _take_special(here: Contents, there: Contents) -> None:
    """Compare a README of the root as a page if the other folder has a page of this slug."""
    for address, one in here.special.items():
        if address in there.pages:
            here.pages.setdefault(address, one)


def _match_by_id(before: dict[str, FilePage], after: dict[str, FilePage]) -> None:
    """Give pages of the export the slug of the original page with the same id."""
    ids = {one.id: address for address, one in before.items() if one.id and address not in after}
    for address, one in list(after.items()):
        if address not in before and one.id in ids:
            after[ids.pop(one.id)] = after.pop(address)


def _match_by_content(before: Contents, after: dict[str, FilePage]) -> None:
    """Find pages with contested slugs under whichever slug they have in the export."""
    here = {address: before.pages[address] for address in before.contested}
    differing = {
        address for address, one in here.items() if address not in after or _differences(one, after[address])
    }
    free = {address for address in after if address in differing or address not in before.pages}
    found: dict[str, FilePage] = {}
    for address in sorted(differing):
        same = next((each for each in sorted(free) if not _differences(here[address], after[each])), None)
        if same is not None:
            free.discard(same)
            found[address] = after.pop(same)
    displaced = [after.pop(address) for address in found if address in after]
    after.update(found)
    vacant = sorted(differing - {*after}) + [f"{one.path} in the export" for one in displaced]
    after.update(zip(vacant, displaced, strict=False))


def _differences(before: FilePage, after: FilePage) -> list[str]:
    problems = []
    if bool(before.why) != bool(after.why):
        return [f"cannot be compared: {before.why or after.why}"]
    if before.truth != after.truth:
        problems.append("the truth differs")
    if before.timeline != after.timeline:
        problems.append(f"the timeline differs ({before.entries} dated entries, exported {after.entries})")
    for key in sorted({*before.front, *after.front}):
        if key not in after.front:
            problems.append(f"front matter: {key} is missing in the export")
        elif key not in before.front:
            problems.append(f"front matter: {key} is only in the export")
        elif not _equal(before.front[key], after.front[key]):
            problems.append(f"front matter: {key} differs")
    return problems


def _sidecar_differences(before: Contents, after: Contents) -> list[tuple[str, str]]:
    found = []
    for address in sorted({*before.raw, *after.raw}):
        path, data = before.raw.get(address, (None, None))
        other_path, other = after.raw.get(address, (None, None))
        if path is None:
            found.append((str(other_path), "the sidecar is only in the export"))
        elif address in before.pages and data is not None and data != other:
            problem = "is missing in the export" if other_path is None else "differs"
            found.append((path, f"the sidecar {problem}"))
    return found


def _contents(root: str, progress: Progress) -> Contents:
    claims: list[tuple[naming.Claim, FilePage]] = []
    contents = Contents({}, {}, {}, set(), [])
    raw: list[tuple[str, bytes]] = []
    with Folder(root, PAGE_ENDINGS) as folder:
        files = list(folder.walk())
        for done, each in enumerate(files):
            progress(done, len(files), "Comparing")
            if isinstance(each, LeftOut):
                _left_out(each, contents)
                continue
            data = _read(folder, each, contents.troubles)
            if each.kind == "sidecar":
                raw += [(each.path, data)] if data is not None else []
            elif data is None or len(data) > LARGEST_FILE:
                if data is not None:
                    claims.append(_too_large(folder, each))
            elif each.kind == "special":
                contents.special.update((claim.slug, one) for claim, one in _pages(each.path, data))
            else:
                claims += _pages(each.path, data)
    slugs = naming.assign([claim for claim, _ in claims])
    asked = Counter(claim.slug for claim, _ in claims)
    contents.contested.update(slugs[claim.path] for claim, _ in claims if asked[claim.slug] > 1)
    contents.pages.update({slugs[claim.path]: one for claim, one in claims})
    by_stem = {index.stem(claim.path): slugs[claim.path] for claim, _ in claims}
    for path, data in raw:
        page_path = sidecar.page_path(path)
        address = by_stem.get(page_path) or slug.from_path(page_path + ".md")
        contents.raw[address] = (path, _sources_hash(data))
    progress(len(files), len(files), "Comparing")
    return contents


def _left_out(entry: LeftOut, contents: Contents) -> None:
    if entry.reason in NOT_TAKEN_IN and (
        entry.path.lower().endswith(PAGE_ENDINGS) or entry.reason in (scan.UNREADABLE, scan.TOO_DEEP)
    ):
        contents.troubles.append((entry.path, f"is left out by every import: {entry.reason}"))


def _read(folder: Folder, found: Found, troubles: list[tuple[str, str]]) -> bytes | None:
    try:
        return folder.read(found.path)
    except OSError as error:
        troubles.append((found.path, f"cannot be read: {error.strerror}"))
        return None


def _too_large(folder: Folder, found: Found) -> tuple[naming.Claim, FilePage]:
    parent, _, name = found.path.rpartition("/")
    whole = hashlib.sha256()
    with os.fdopen(os.open(name, FILE_FLAGS, dir_fd=folder.enter(parent)), "rb") as file:
        while block := file.read(1 << 20):
            whole.update(block)
    why = f"too large: {found.size:,} bytes, and {LARGEST_FILE:,} are allowed"
    claim = naming.Claim(found.path, slug.from_path(found.path))
    return claim, FilePage(found.path, {}, whole.hexdigest(), "", 0, why)


def _pages(path: str, data: bytes) -> list[tuple[naming.Claim, FilePage]]:
    """The page of a file, and those of its headings that are pages of their own."""
    read = index.read(path, data)
    found = [(naming.Claim(path, read.page.slug), _file_page(path, read.page))]
    for number, node in enumerate(read.nodes):
        found.append((naming.Claim(f"{path}/{number}", node.slug), _file_page(path, node)))
    return found


def _file_page(path: str, made: Page) -> FilePage:
    # The slug is how the two are matched. A title that had to be written down for the export is no difference.
    front = {key: value for key, value in made.frontmatter.items() if key != "slug"}
    front["title"] = made.title
    hashes = index.digest(made.truth.encode()), index.digest(made.timeline.encode())
    return FilePage(path, front, *hashes, len(made.entries))


def _sources_hash(data: bytes) -> str | None:
    try:
        sources = sidecar.read(data)
    except ValueError:
        return None
    return index.digest(json.dumps(sources, sort_keys=True).encode()) if sources else None


def _equal(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
