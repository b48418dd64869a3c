"""Walks over a small graph, drawn as pairs of numbers."""

from collections.abc import Callable

from hypothesis import given, strategies as st

from quaid.model import links
from quaid.model.links import GraphLink, ReachedNodes


def touching(pairs: list[tuple[int, int]]) -> Callable[[list[int], int], list[GraphLink]]:
    edges = [GraphLink(place, *pair) for place, pair in enumerate(pairs)]
    return lambda nodes, most: [e for e in edges if e.from_id in nodes or e.to_id in nodes][:most]


def around(
    start: int, pairs: list[tuple[int, int]], **limits: int
) -> tuple[ReachedNodes, list[GraphLink], bool]:
    edges = [GraphLink(place, *pair) for place, pair in enumerate(pairs)]

    def among(nodes: list[int], most: int) -> list[GraphLink]:
        return [e for e in edges if e.from_id in nodes and e.to_id in nodes][:most]

    return links.walk_from(start, touching(pairs), among, **limits)


def test_the_nearest_come_first_with_the_way_to_them() -> None:
    reached, edges, is_complete = around(
        1, [(1, 2), (3, 2), (3, 4), (9, 8)], depth=2, most_nodes=9, most_edges=9
    )
    assert {node: distance for node, (distance, _) in reached.items()} == {1: 0, 2: 1, 3: 2}
    assert links.path_to(reached, 3) == [1, 2, 3]
    assert is_complete
    assert [edge.id for edge in edges] == [0, 1]


def test_links_between_the_outermost_pages_are_shown() -> None:
    _, edges, _ = around(1, [(1, 2), (1, 3), (2, 3), (3, 4)], depth=1, most_nodes=9, most_edges=9)
    assert [edge.id for edge in edges] == [0, 1, 2]


def test_a_limit_is_applied_and_reported() -> None:
    star = [(1, node) for node in range(2, 50)]
    reached, _, is_complete = around(1, star, depth=3, most_nodes=10, most_edges=200)
    assert (len(reached), is_complete) == (10, False)
    _, edges, is_complete = around(1, star, depth=3, most_nodes=100, most_edges=7)
    assert (len(edges), is_complete) == (7, False)


def test_depth_nought_is_the_page_alone() -> None:
    reached, edges, _ = around(1, [(1, 2)], depth=0, most_nodes=5, most_edges=5)
    assert (list(reached), edges) == ([1], [])


def way(pairs: list[tuple[int, int]], start: int, end: int) -> list[int] | None:
    edges, _ = links.shortest_path(start, end, touching(pairs), longest=20, most_nodes=1000, most_edges=1000)
    if not edges:
        return None
    at, nodes = start, [start]
    for edge in edges:
        assert at in (edge.from_id, edge.to_id)
        at = edge.to_id if at == edge.from_id else edge.from_id
        nodes.append(at)
    return nodes


def test_the_shortest_way_is_found_in_either_direction_of_the_links() -> None:
    pairs = [(1, 2), (3, 2), (3, 4), (1, 5), (5, 6), (6, 7), (7, 4)]
    assert way(pairs, 1, 4) == [1, 2, 3, 4]
    assert way(pairs, 4, 1) == [4, 3, 2, 1]
    assert way([(1, 2), (3, 4)], 1, 4) is None


def test_a_search_beyond_its_limit_is_reported() -> None:
    star = [(1, node) for node in range(2, 100)] + [(200, 201), (99, 300), (300, 200)]
    found = links.shortest_path(1, 201, touching(star), longest=9, most_nodes=20, most_edges=1000)
    assert found == ([], False)


def test_a_path_search_that_ignores_links_of_a_step_is_reported() -> None:
    stars = [(1, node) for node in range(2, 50)] + [(100, node) for node in range(51, 99)] + [(49, 98)]
    assert links.shortest_path(1, 100, touching(stars), longest=9, most_nodes=1000, most_edges=5) == (
        [],
        False,
    )
    path, is_complete = links.shortest_path(
        1, 100, touching(stars), longest=9, most_nodes=1000, most_edges=200
    )
    assert ([(edge.from_id, edge.to_id) for edge in path], is_complete) == (
        [(1, 49), (49, 98), (100, 98)],
        True,
    )


@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=30),
    st.integers(1, 12),
    st.integers(1, 12),
)
def test_path_length_equals_distance_in_the_graph(pairs: list[tuple[int, int]], start: int, end: int) -> None:
    if start == end:
        return
    reached, _, _ = around(start, pairs, depth=12, most_nodes=100, most_edges=1000)
    found = way(pairs, start, end)
    if end in reached:
        assert found is not None
        assert len(found) - 1 == reached[end][0]
    else:
        assert found is None
