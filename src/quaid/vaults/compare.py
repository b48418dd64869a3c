"""Whether an exported folder says what its original says.

Compares pages by slug, the way an import names them: front matter, truth, timeline and sidecars. Spelling
(order of keys, blank lines, line ends) does not count. Knows no database.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from quaid.core import slug
from quaid.vaults import index, naming, sidecar
from quaid.vaults.scan import LARGEST_FILE, Folder, Found

Progress = Callable[[int, int, str], None]


class Said(NamedTuple):
    """What a file says; long texts only by their hash, so that two folders of any size can be compared."""

    path: str
    front: dict[str, Any]
    truth: str
    timeline: str
    entries: int


class Contents(NamedTuple):
    pages: dict[str, Said]  # by slug
    raw: dict[str, tuple[str, str | None]]  # path and hash of a slug's sidecar; no hash: it says nothing
    troubles: list[tuple[str, str]]


def folders(original: str, exported: str, progress: Progress) -> list[tuple[str, str]]:
    """Where the two differ and how; nothing when they say the same."""
    before, after = _contents(original, progress), _contents(exported, progress)
    found = before.troubles + after.troubles
    for address, said in before.pages.items():
        if address not in after.pages:
            found.append((said.path, f"page {address} is missing in the export"))
        else:
            found += [(said.path, problem) for problem in _differences(said, after.pages[address])]
    found += [
        (said.path, f"page {address} is only in the export")
        for address, said in after.pages.items()
        if address not in before.pages
    ]
    return sorted(found + _sidecar_differences(before, after))


def _differences(before: Said, after: Said) -> list[str]:
    problems = []
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
    with Folder(root) as folder:
        files = [each for each in folder.walk() if isinstance(each, Found) and each.kind != "special"]
        said: list[tuple[naming.Claim, Said]] = []
        contents = Contents({}, {}, [])
        found_raw: list[tuple[str, bytes]] = []
        for done, each in enumerate(files):
            progress(done, len(files), "Comparing")
            data = _read(folder, each, contents.troubles)
            if data is None:
                continue
            if each.kind == "page":
                said.append(_said(each.path, data))
            else:
                found_raw.append((each.path, data))
    slugs = naming.assign([claim for claim, _ in said])
    contents.pages.update({slugs[each.path]: each for _, each in said})
    by_stem = {index.stem(each.path): slugs[each.path] for _, each in said}
    for path, data in found_raw:
        page_path = sidecar.page_path(path)
        address = by_stem.get(page_path) or slug.from_path(page_path + ".md")
        contents.raw[address] = (path, _sources_hash(data))
    progress(len(files), len(files), "Comparing")
    return contents


def _read(folder: Folder, found: Found, troubles: list[tuple[str, str]]) -> bytes | None:
    try:
        data = folder.read(found.path)
    except OSError as error:
        troubles.append((found.path, f"cannot be read: {error.strerror}"))
        return None
    return data if len(data) <= LARGEST_FILE else None


def _said(path: str, data: bytes) -> tuple[naming.Claim, Said]:
    made = index.read(path, data).page
    # The slug is how the two were matched. A title that had to be written down for the export counts as said.
    front = {key: value for key, value in made.frontmatter.items() if key != "slug"}
    front["title"] = made.title
    hashes = index.digest(made.truth.encode()), index.digest(made.timeline.encode())
    return naming.Claim(path, made.slug), Said(path, front, *hashes, len(made.entries))


def _sources_hash(data: bytes) -> str | None:
    try:
        sources = sidecar.read(data)
    except ValueError:
        return None
    return index.digest(json.dumps(sources, sort_keys=True).encode()) if sources else None


def _equal(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
