"""Sidecars: `people/.raw/alice.json` holds what other services said about the page people/alice.

Knows how their JSON becomes one value for each source, and back, and how a page takes it. Does not know files.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from quaid.storage import pages
from quaid.vaults.scan import PAGE_ENDINGS, RAW_FOLDER

if TYPE_CHECKING:
    from quaid.storage.sqlite.connection import Database

EMPTY = b'{"sources": {}}'
WHOLE = "sidecar"  # the source of what stands in a sidecar outside of "sources"


class Applied(NamedTuple):
    written: int
    """Answers that were new or changed."""
    changed: bool
    notes: tuple[str, ...]


def is_sidecar(path: str) -> bool:
    """Whether a walk would take the file at this path for a sidecar."""
    folders, _, name = path.rpartition("/")
    shown = all(not each.startswith(".") for each in folders.split("/")[:-1])
    in_raw = folders.rpartition("/")[2] == RAW_FOLDER
    return shown and in_raw and name.lower().endswith(".json") and not name.startswith(".")


def page_files(path: str) -> list[str]:
    """The paths that the file of the page of a sidecar may have."""
    return [page_path(path) + ending for ending in PAGE_ENDINGS]


def apply(
    tx: Any,
    db: "Database",
    page_id: int,
    before: bytes,
    wanted: Mapping[str, Any],
    now: str,
    *,
    force: bool = False,
) -> Applied:
    """Give a page the sources of its sidecar, in place of those of the last one.

    What was changed here stays, unless `force` is given and the sidecar names it.
    """
    try:
        last = read(before)
    except ValueError:
        last = {}
    present = {each.source: each.data for each in pages.read_raw_data(db, page_id)}
    written, changed, notes = 0, False, []
    for source in sorted({*wanted, *last}):
        if (source in wanted) == (source in present) and wanted.get(source) == present.get(source):
            continue
        changed_here = source in present and (source not in last or last[source] != present[source])
        if changed_here and not (force and source in wanted):
            notes.append(f"what {source} says was changed here; left as it is")
            continue
        if source in wanted:
            pages.write_raw_data(tx, page_id, source, wanted[source], now)
            written += 1
        else:
            pages.remove_raw_data(tx, page_id, source)
        changed = True
    return Applied(written, changed, tuple(notes))


def page_path(path: str) -> str:
    """The path, without ending, of the page that a sidecar belongs to."""
    folder, _, name = path.rpartition("/")
    above = folder.rpartition("/")[0]
    return f"{above}/{name[: -len('.json')]}" if above else name[: -len(".json")]


def path_for(page: str) -> str:
    """The path of the sidecar of a page's path (without ending)."""
    folder, mark, name = page.rpartition("/")
    return f"{folder}{mark}.raw/{name}.json"


def parsed(data: bytes) -> Any:
    """A value that JSON gives. ValueError, with the reason, when it is not JSON that can be kept."""
    try:
        value = json.loads(data.decode("utf-8-sig"), parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half a character (a lone surrogate)") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except RecursionError:
        raise ValueError("it nests too deeply") from None
    return value


def read(data: bytes) -> dict[str, Any]:
    """Each source with what it said. ValueError, with the reason, when it is not JSON that can be kept."""
    value = parsed(data)
    sources = value.get("sources") if isinstance(value, dict) else None
    if not isinstance(sources, dict):
        return {WHOLE: value}
    rest = {key: each for key, each in value.items() if key != "sources"}
    if not rest:
        return dict(sources)
    return {WHOLE: value} if WHOLE in sources else {**sources, WHOLE: rest}


def render(sources: Mapping[str, Any]) -> bytes:
    """A sidecar such that `read` gives the same sources again."""
    rest = sources.get(WHOLE)
    value: Any = {"sources": dict(sources)}
    if WHOLE in sources and not (isinstance(rest, dict) and "sources" in rest):
        others = {name: data for name, data in sources.items() if name != WHOLE}
        if not others:
            value = rest
        elif isinstance(rest, dict) and rest:
            value = {"sources": others, **rest}
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
