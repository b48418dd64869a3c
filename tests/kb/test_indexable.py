"""What org-roam cannot index, seen without an Emacs; tests/kb/test_org_roam_agreement.py asks a real one."""

import pytest
from tests.kb.nodes import IDS, text

from quaid.kb import node as nodes

HEADING = f"* {{}}\n:PROPERTIES:\n:ID: {IDS[500]}\n{{}}:END:\n"


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (text(1), []),
        (text(1, ROAM_EXCLUDE="nil", ROAM_ALIASES='"a b" c "d \\" e"'), []),
        (text(1, ROAM_EXCLUDE="t"), [(1, "left-out")]),
        (text(1, ROAM_ALIASES='"never ends'), [(1, "property-invalid")]),
        (text(1, body=HEADING.format("", "")), [(16, "heading-untitled")]),
        (text(1, body=HEADING.format("Part", ':ROAM_REFS: "x\n')), [(16, "property-invalid")]),
        (text(1, ID=IDS[10].replace("0000000b", "0000000B")), [(1, "id-capitals")]),
        (text(1, body=f"[[id:{IDS[10].upper()}][x]]\n"), [(16, "id-capitals")]),
        (text(1).replace("\n", "\r\n", 3), [(1, "line-ends")]),
    ],
)
def test_lint_refuses_nodes_that_org_roam_skips(written: str, found: list[tuple[int, str]]) -> None:
    skipped = {*nodes.STYLE_CODES, "property-missing", "id-missing"}
    findings = nodes.lint_node(written.encode(), nodes.parse_node("a.org", written))
    assert [(line, code) for line, code, _, _ in findings if code not in skipped] == found


def test_heading_that_is_left_out_is_not_a_node() -> None:
    left_out = text(1, body=HEADING.format("Part", ":ROAM_EXCLUDE: t\n"))
    assert nodes.parse_node("a.org", left_out).node.inner == ()
    assert nodes.parse_node("a.org", text(1, body=HEADING.format("Part", ""))).node.inner == (IDS[500],)


def test_id_in_the_text_is_a_link() -> None:
    words = f"See id:{IDS[2]}, =id:{IDS[3]}=, grid:{IDS[4]} and [[https://example.org][id:{IDS[5]}]]. <id:{IDS[6]}>\n"
    links = nodes.parse_node("a.org", text(1, body=words)).node.links
    assert [link.id for link in links] == [IDS[2], IDS[6]]


def test_a_link_in_a_title_is_its_words() -> None:
    title = f"About [[id:{IDS[2]}][the other]] and [[https://example.org]]"
    assert (
        nodes.parse_node("a.org", text(1, title=title)).node.title
        == "About the other and https://example.org"
    )
