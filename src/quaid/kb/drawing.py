"""The nodes and their links as a picture that graphviz can draw.

Knows the language DOT and which look says what. Neither raw texts nor the index are in it: they are no nodes.
"""

from collections.abc import Iterable
from typing import NamedTuple

from quaid.kb.node import Node

LONGEST_LABEL = 60
FILLS = {
    "principle": "#cfe2f3",
    "preference": "#d9ead3",
    "procedure": "#fff2cc",
    "observation": "#f3f3f3",
    "reference": "#ead1dc",
}
LOOKS = {
    "contested": 'style="filled,rounded,dashed", color="#cc0000"',
    "superseded": 'style="filled,rounded", fontcolor="#999999", color="#bbbbbb"',
}


class Drawing(NamedTuple):
    dot: str
    nodes: int
    links: int


class Filters(NamedTuple):
    """Which nodes are drawn; nothing: all of them."""

    project: str = ""
    tag: str = ""
    status: str = ""

    def pass_(self, node: Node) -> bool:
        return (
            (not self.project or self.project in node.projects)
            and (not self.tag or self.tag in node.tags)
            and (not self.status or self.status == node.status)
        )


ALL = Filters()


def draw(nodes: Iterable[Node], filters: Filters = ALL) -> Drawing:
    """The nodes that pass, and the links between them, each once."""
    drawn = [node for node in nodes if filters.pass_(node)]
    owner = {id: node.id for node in drawn for id in (node.id, *node.merged, *node.inner) if id}
    lines = [
        "digraph ai_kb {",
        "  graph [rankdir=LR, overlap=false];",
        '  node [shape=box, style="filled,rounded", fontname="sans-serif", fontsize=10];',
        '  edge [fontname="sans-serif", fontsize=8, color="#777777"];',
    ]
    lines += [_node(node) for node in drawn if node.id]
    links = dict.fromkeys(
        (node.id, owner[link.id], link.relation)
        for node in drawn
        for link in node.links
        if node.id and owner.get(link.id, node.id) != node.id
    )
    for source, target, relation in links:
        label = f" [label={_quoted(relation.lower().replace('_', ' '))}]" if relation else ""
        lines.append(f"  {_quoted(source)} -> {_quoted(target)}{label};")
    return Drawing("\n".join([*lines, "}", ""]), len(drawn), len(links))


def _node(node: Node) -> str:
    title = node.title if len(node.title) <= LONGEST_LABEL else node.title[: LONGEST_LABEL - 1] + "…"
    looks = [
        f"label={_quoted(title or node.path)}",
        f"tooltip={_quoted(node.summary)}",
        f'fillcolor="{FILLS.get(node.type, "#ffffff")}"',
    ]
    if node.status in LOOKS:
        looks.append(LOOKS[node.status])
    return f"  {_quoted(node.id)} [{', '.join(looks)}];"


def _quoted(text: str) -> str:
    """A string of DOT: nothing in it is an escape, a quote that ends it, or a line end."""
    plain = " ".join(text.replace("\0", "").split())
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;") + '"'
