"""Resolve how a person names a node: by ID, the beginning of an ID, pointer, link, file name or title.

Reading may fall back to the title of a pointer whose ID is gone; whatever changes a node resolves the ID or fails.
"""

import re

from quaid.errors import InvalidArgument, NotFound
from quaid.kb.catalog import Catalog
from quaid.kb.node import Node

_POINTER = re.compile(r"(?:ai-kb:\s*)?(.*?)\s*\(([0-9a-fA-F-]{36})\)\s*\Z", re.DOTALL)
_LINK = re.compile(r"\[\[id:([^\]]+)\](?:\[(.*)\])?\]\Z", re.DOTALL)
SHORTEST = 6
"""Characters of an ID that are enough, if no other begins with them."""


def find(catalog: Catalog, name: str) -> Node:
    """Return the one node of this name."""
    wanted, _ = _parts(name)
    nodes = list(catalog.nodes)
    node = _resolve(nodes, wanted, name)
    if node is None:
        raise NotFound(what="node", name=name, hint=_hint(nodes, wanted))
    return node


def find_to_read(catalog: Catalog, name: str) -> tuple[Node, str]:
    """Return the node of this name and a note; a pointer whose ID is gone is followed by its title."""
    wanted, title = _parts(name)
    nodes = list(catalog.nodes)
    node = _resolve(nodes, wanted, name)
    if node is not None:
        return node, ""
    node = _resolve(nodes, title, name) if title else None
    if node is None:
        raise NotFound(what="node", name=name, hint=_hint(nodes, title or wanted))
    return (
        node,
        f"No node has the ID {wanted}; this one has the pointer's title. Its pointer is {node.pointer}",
    )


def _parts(name: str) -> tuple[str, str]:
    """Return what names the node, and the title beside it if it is a pointer or a link."""
    wanted = name.strip()
    pointer = _POINTER.match(wanted)
    if pointer:
        return pointer[2], pointer[1]
    link = _LINK.match(wanted)
    if link:
        return link[1].strip(), (link[2] or "").strip()
    return wanted.removeprefix("id:").strip(), ""


def _resolve(nodes: list[Node], wanted: str, name: str) -> Node | None:
    folded = wanted.lower()
    for found in (
        [node for node in nodes if node.id == folded],
        [node for node in nodes if folded in node.merged or folded in node.inner],
        [node for node in nodes if node.path in (wanted, f"{wanted}.org")],
        [node for node in nodes if node.title.casefold() == wanted.casefold()],
        [node for node in nodes if len(folded) >= SHORTEST and node.id.startswith(folded)],
    ):
        if len(found) == 1:
            return found[0]
        if found:
            told = ", ".join(f"{node.pointer} in {node.path}" for node in found[:5])
            raise InvalidArgument(name="node", problem=f"{name!r} can mean {told}; name it by its ID")
    return None


def _hint(nodes: list[Node], wanted: str) -> str:
    from difflib import get_close_matches

    titles = {node.title.casefold(): node for node in nodes}
    close = get_close_matches(wanted.casefold(), titles, n=1, cutoff=0.6)
    if close:
        return f" Did you mean {titles[close[0]].pointer}?"
    return " `ai-kb query WORDS` finds nodes."


def linking_to(catalog: Catalog, node: Node) -> list[Node]:
    """The nodes that link to this one. Neither raw texts nor the index count."""
    ids = {node.id, *node.merged, *node.inner}
    return [
        each
        for each in catalog.nodes
        if each.path != node.path and any(link.id in ids for link in each.links)
    ]
