"""The graph of the nodes in the DOT language, and that graphviz parses it."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.kb.nodes import IDS, Folder, text

from quaid.kb import node as nodes
from quaid.kb.node import NodeFilters


@pytest.fixture
def store(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path / "kb")
    twice = f"IMPLEMENTS [[id:{IDS[1]}][two]], IMPLEMENTS [[id:{IDS[1]}][again]], [[id:{IDS[0]}][me]]\n"
    folder.put("one.org", text(1, body=twice, title='Say "hi" \\ <b> & so on'))
    folder.put("two.org", text(2, filetags=":procedure:", PROJECTS=":emacs:", STATUS="contested"))
    folder.put("three.org", text(3, body=f"[[id:{IDS[500]}][part]]\n"))
    folder.put("four.org", text(4, body=f"* Part\n:PROPERTIES:\n:ID: {IDS[500]}\n:END:\n"))
    folder.put("raw/one.org", text(5, body=f"[[id:{IDS[1]}][two]]\n"))
    folder.index()
    return folder


def test_each_link_between_nodes_is_drawn_once(store: Folder) -> None:
    dot, count, links = nodes.draw_graph(store.look().nodes)
    assert (count, links) == (4, 2)
    assert f'"{IDS[0]}" -> "{IDS[1]}" [label="implements"];' in dot
    assert f'"{IDS[2]}" -> "{IDS[3]}";' in dot
    assert IDS[4] not in dot


@pytest.mark.parametrize(
    ("filters", "left"),
    [
        (NodeFilters(project="emacs"), {IDS[1]}),
        (NodeFilters(tag="procedure"), {IDS[1]}),
        (NodeFilters(status="contested"), {IDS[1]}),
        (NodeFilters(project="general", status="current"), {IDS[0], IDS[2], IDS[3]}),
        (NodeFilters(project="nobody"), set()),
    ],
)
def test_only_nodes_that_pass_the_filters_are_drawn(
    store: Folder, filters: NodeFilters, left: set[str]
) -> None:
    dot, _, _ = nodes.draw_graph(filter(filters.match, store.look().nodes))
    assert {id for id in IDS[:5] if f'"{id}"' in dot} == left


def test_graphviz_draws_it_whatever_titles_say(store: Folder) -> None:
    program = shutil.which("dot")
    if program is None:
        pytest.skip("graphviz is not installed")
    dot, _, _ = nodes.draw_graph(store.look().nodes)
    done = subprocess.run([program, "-Tsvg"], input=dot, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "Say &quot;hi&quot; \\ &lt;b&gt; &amp; so on" in done.stdout
