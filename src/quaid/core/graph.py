"""Walking over links, breadth first. Knows nodes by number and edges by their ends; not what they stand for.

Whoever walks brings a function that finds the edges of a set of nodes, so that a whole ring of the walk costs
one look at the store.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol


class Edge(Protocol):
    """Anything with two ends."""

    @property
    def id(self) -> int: ...
    @property
    def from_id(self) -> int: ...
    @property
    def to_id(self) -> int: ...


Touching = Callable[[list[int], int], Iterable[Edge]]
"""The edges that touch one of these nodes, at most so many."""


class Reached(NamedTuple):
    """A node, how far from the start it is, and the edge over which it was first reached."""

    node: int
    distance: int
    via: Edge | None
    before: int | None


class Walk(NamedTuple):
    reached: dict[int, Reached]
    edges: list[Edge]
    """Between nodes that were reached."""
    complete: bool
    """False: a cap was met, and there is more."""


def around(
    start: int, touching: Touching, among: Touching, *, depth: int, most_nodes: int, most_edges: int
) -> Walk:
    """Everything within `depth` steps of a node, the nearest first. `among` finds the edges between nodes."""
    reached = {start: Reached(start, 0, None, None)}
    ring, complete = [start], True
    for distance in range(1, depth + 1):
        found = list(touching(ring, most_edges + 1))
        complete = complete and len(found) <= most_edges
        outer: list[int] = []
        for edge in found[:most_edges]:
            for node, before in ((edge.to_id, edge.from_id), (edge.from_id, edge.to_id)):
                if node in reached or before not in reached or reached[before].distance == distance:
                    continue
                if len(reached) >= most_nodes:
                    complete = False
                    continue
                reached[node] = Reached(node, distance, edge, before)
                outer.append(node)
        ring = outer
        if not ring:
            break
    edges = list(among(list(reached), most_edges + 1)) if depth else []
    return Walk(reached, edges[:most_edges], complete and len(edges) <= most_edges)


def steps_to(walk: Walk, node: int) -> list[Reached]:
    """The way from the start to a node, without the start."""
    way: list[Reached] = []
    at: int | None = node
    while at is not None and walk.reached[at].before is not None:
        way.append(walk.reached[at])
        at = walk.reached[at].before
    return way[::-1]


class Way(NamedTuple):
    edges: tuple[Edge, ...]
    complete: bool
    """False: the search was given up at its cap; there may be a way."""


def between(
    start: int, end: int, touching: Touching, *, longest: int, most_nodes: int, most_edges: int
) -> Way | None:
    """The shortest way from one node to another, or None. It is walked from both ends, the smaller ring first."""
    sides: tuple[dict[int, Edge | None], dict[int, Edge | None]] = ({start: None}, {end: None})
    rings = [[start], [end]]
    for _ in range(longest):
        side = 0 if len(rings[0]) <= len(rings[1]) else 1
        if not rings[side]:
            return None
        mine, other = sides[side], sides[1 - side]
        outer: list[int] = []
        met: int | None = None
        for edge in touching(rings[side], most_edges):
            for node, before in ((edge.to_id, edge.from_id), (edge.from_id, edge.to_id)):
                if before in mine and node not in mine:
                    mine[node] = edge
                    outer.append(node)
                    if node in other:
                        met = node if met is None else met
        if met is not None:
            return Way(_joined(met, *sides), True)
        if len(sides[0]) + len(sides[1]) > most_nodes:
            return Way((), False)
        rings[side] = outer
    return Way((), False) if all(rings) else None


def _joined(met: int, forward: dict[int, Edge | None], backward: dict[int, Edge | None]) -> tuple[Edge, ...]:
    return (*_back(met, forward)[::-1], *_back(met, backward))


def _back(node: int, side: dict[int, Edge | None]) -> list[Edge]:
    """The edges from a node back to where its side began."""
    found: list[Edge] = []
    while (edge := side[node]) is not None:
        found.append(edge)
        node = edge.from_id if edge.to_id == node else edge.to_id
    return found
