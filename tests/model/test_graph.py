"""Walks over a small graph, drawn as pairs of numbers."""

from collections.abc import Callable
from typing import NamedTuple

from hypothesis import given, strategies as st

from quaid.model import links


class E(NamedTuple):
    id: int
    from_id: int
    to_id: int


def touching(pairs: list[tuple[int, int]]) -> Callable[[list[int], int], list[E]]:
    edges = [E(place, *pair) for place, pair in enumerate(pairs)]
    return lambda nodes, most: [e for e in edges if e.from_id in nodes or e.to_id in nodes][:most]


def around(start: int, pairs: list[tuple[int, int]], **limits: int) -> links.GraphWalk:
    edges = [E(place, *pair) for place, pair in enumerate(pairs)]

    def among(nodes: list[int], most: int) -> list[E]:
        return [e for e in edges if e.from_id in nodes and e.to_id in nodes][:most]

    return links.walk_from(start, touching(pairs), among, **limits)


def test_the_nearest_come_first_with_the_way_to_them() -> None:
    walk = around(1, [(1, 2), (3, 2), (3, 4), (9, 8)], depth=2, most_nodes=9, most_edges=9)
    assert {node: item.distance for node, item in walk.reached.items()} == {1: 0, 2: 1, 3: 2}
    assert [step.node for step in links.path_to(walk, 3)] == [2, 3]
    assert walk.complete
    assert [edge.id for edge in walk.edges] == [0, 1]


def test_links_between_the_outermost_pages_are_shown() -> None:
    walk = around(1, [(1, 2), (1, 3), (2, 3), (3, 4)], depth=1, most_nodes=9, most_edges=9)
    assert [edge.id for edge in walk.edges] == [0, 1, 2]


def test_a_cap_is_kept_and_told() -> None:
    star = [(1, node) for node in range(2, 50)]
    few = around(1, star, depth=3, most_nodes=10, most_edges=200)
    assert (len(few.reached), few.complete) == (10, False)
    thin = around(1, star, depth=3, most_nodes=100, most_edges=7)
    assert (len(thin.edges), thin.complete) == (7, False)


def test_depth_nought_is_the_page_alone() -> None:
    walk = around(1, [(1, 2)], depth=0, most_nodes=5, most_edges=5)
    assert (list(walk.reached), walk.edges) == ([1], [])


def way(pairs: list[tuple[int, int]], start: int, end: int) -> list[int] | None:
    path = links.shortest_path(start, end, touching(pairs), longest=20, most_nodes=1000, most_edges=1000)
    if path is None:
        return None
    at, nodes = start, [start]
    for edge in path.edges:
        assert at in (edge.from_id, edge.to_id)
        at = edge.to_id if at == edge.from_id else edge.from_id
        nodes.append(at)
    return nodes


def test_the_shortest_way_is_found_in_either_direction_of_the_links() -> None:
    pairs = [(1, 2), (3, 2), (3, 4), (1, 5), (5, 6), (6, 7), (7, 4)]
    assert way(pairs, 1, 4) == [1, 2, 3, 4]
    assert way(pairs, 4, 1) == [4, 3, 2, 1]
    assert way([(1, 2), (3, 4)], 1, 4) is None


def test_a_search_that_is_given_up_says_so() -> None:
    star = [(1, node) for node in range(2, 100)] + [(200, 201), (99, 300), (300, 200)]
    path = links.shortest_path(1, 201, touching(star), longest=9, most_nodes=20, most_edges=1000)
    assert path == links.GraphPath((), complete=False)


@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=30),
    st.integers(1, 12),
    st.integers(1, 12),
)
def test_a_way_is_as_long_as_the_walk_says(pairs: list[tuple[int, int]], start: int, end: int) -> None:
    if start == end:
        return
    walk = around(start, pairs, depth=12, most_nodes=100, most_edges=1000)
    result = way(pairs, start, end)
    if end in walk.reached:
        assert result is not None
        assert len(result) - 1 == walk.reached[end].distance
    else:
        assert result is None
