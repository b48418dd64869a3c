"""Sidecars: `people/.raw/alice.json` holds what other services said about the page people/alice.

Knows how their JSON becomes one value for each source, and back. Does not know files or rows.
"""

import json
from collections.abc import Mapping
from typing import Any, NoReturn

WHOLE = "sidecar"  # the source of what stands in a sidecar outside of "sources"


def page_path(path: str) -> str:
    """The path, without ending, of the page that a sidecar belongs to."""
    folder, _, name = path.rpartition("/")
    above = folder.rpartition("/")[0]
    return f"{above}/{name[: -len('.json')]}" if above else name[: -len(".json")]


def path_for(page: str) -> str:
    """The path of the sidecar of a page's path (without ending)."""
    folder, mark, name = page.rpartition("/")
    return f"{folder}{mark}.raw/{name}.json"


def read(data: bytes) -> dict[str, Any]:
    """Each source with what it said. ValueError, with the reason, when it is not JSON that can be kept."""
    try:
        value = json.loads(data.decode("utf-8-sig"), parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        raise ValueError("it holds half a character (a lone surrogate)") from None
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except RecursionError:
        raise ValueError("it nests too deeply") from None
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
