"""Nodes for tests, and folders of them that no git is called in."""

from pathlib import Path
from typing import Any

from quaid.kb import catalog as catalogs, node as nodes
from quaid.kb.catalog import Catalog

IDS = [f"{number:08x}-0000-4000-8000-000000000000" for number in range(1, 2000)]


def text(number: int = 1, body: str = "Some words.\n", drop: tuple[str, ...] = (), **values: str) -> str:
    """Return the text of a valid node with these values; `title` and `filetags` are keywords."""
    known = {
        "ID": IDS[number - 1],
        "PROJECTS": ":general:",
        "CREATED": "2026-05-24",
        "UPDATED": "2026-05-24",
        "CREATED_BY": "claude-code",
        "CONFIDENCE": "observed",
        "VISIBILITY": "personal",
        "SOURCE": "chat 2026-05-24",
        "STATUS": "current",
        "SUMMARY": f"What node {number} is about.",
    }
    title = values.pop("title", f"Node {number}")
    tags = values.pop("filetags", ":principle:")
    known |= values
    drawer = "".join(f":{name}: {value}\n" for name, value in known.items() if name not in drop)
    head = "" if "title" in drop else f"#+title: {title}\n"
    return f":PROPERTIES:\n{drawer}:END:\n{head}#+filetags: {tags}\n\n{body}"


class Folder:
    """The files of a store, without a git that anybody calls."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / ".git/ai-kb").mkdir(parents=True)
        self.own_folder = str(root / ".git/ai-kb")

    def put(self, path: str, what: str | bytes) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(what if isinstance(what, bytes) else what.encode())

    def index(self) -> None:
        for path, output in nodes.build_index(self.look().nodes).items():
            self.put(path, output)

    def look(self, **how: Any) -> Catalog:
        return catalogs.load_catalog(str(self.root), **how)
