"""The node that a person means: by its ID, the beginning of it, a pointer, a file name, or its title.

Knows the ways to name a node. Whoever destroys something resolves a name exactly or fails.
"""

from quaid.core.patterns import pattern
from quaid.errors import InvalidArgument, NotFound
from quaid.kb.catalog import Catalog
from quaid.kb.node import Node

_POINTER = pattern(r".*\(([0-9a-fA-F-]{36})\)\s*\Z", 16)
SHORTEST = 6
"""Characters of an ID that are enough, if no other begins with them."""


def find(catalog: Catalog, name: str) -> Node:
    """The one node of this name."""
    wanted = name.strip().removeprefix("id:").strip()
    pointer = _POINTER.match(wanted)
    if pointer:
        wanted = pointer[1]
    nodes = list(catalog.nodes)
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
    raise NotFound(what="node", name=name, hint=_hint(nodes, wanted))


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
