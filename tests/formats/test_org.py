"""Org as Emacs reads it: every figure here was compared with org-element of Org 9.5."""

import time

import pytest
from hypothesis import given, strategies as st

from quaid.formats import org

NODE = """\
:PROPERTIES:
:ID:       0190f1b2-7c1e-7a3b-9d3e-0123456789ab
:CREATED:  [2026-05-24 Sun 10:12]
:END:
#+title: How the watcher decides
#+filetags: :watcher:decision:

See [[id:0190f1b2-7c1e-7a3b-9d3e-0123456789ac][another node]] and =[[id:not-this]]=.

* Summary
It takes a lease.
** TODO [#A] Look at the racy files :bug:urgent:
SCHEDULED: <2026-06-01 Mon 9:30>
:PROPERTIES:
:ID: racy
:END:
- [ ] a box, see [[file:notes.org::*Races][races]]
#+begin_src python
* is no heading with a comma only
#+end_src
* DONE 2026-05-24 Found it
# a comment with [[id:hidden]]
: text of fixed width with [[id:hidden]]
"""


def test_the_head_of_a_node() -> None:
    read = org.parse(NODE)
    assert read.properties == {
        "ID": "0190f1b2-7c1e-7a3b-9d3e-0123456789ab",
        "CREATED": "[2026-05-24 Sun 10:12]",
    }
    assert (read.title, read.filetags) == ("How the watcher decides", ("watcher", "decision"))
    assert NODE[read.body_start :].startswith("See [[id:")


def test_a_heading_knows_its_keyword_tags_properties_and_plan() -> None:
    summary, racy, *_ = org.parse(NODE).headings
    assert (summary.level, summary.title, summary.line) == (1, "Summary", 10)
    assert (racy.level, racy.title, racy.todo, racy.done) == (2, "Look at the racy files", "TODO", False)
    assert racy.tags == ("bug", "urgent")
    assert (racy.properties, racy.planning) == ({"ID": "racy"}, {"SCHEDULED": "<2026-06-01 Mon 9:30>"})
    assert NODE[racy.body :].startswith("- [ ] a box")
    assert NODE[summary.start : summary.end].startswith("* Summary\n")
    assert racy.end == summary.end


def test_heading_inside_a_block_ends_the_block_and_that_is_reported() -> None:
    read = org.parse(NODE)
    assert [heading.title for heading in read.headings[2:]] == [
        "is no heading with a comma only",
        "2026-05-24 Found it",
    ]
    assert [(problem.line, problem.code) for problem in read.problems] == [(18, "unclosed-block")]
    mended = org.parse(NODE.replace("\n* is", "\n,* is"))
    assert (mended.problems, [block[0] for block in mended.blocks]) == ((), ["src"])


def test_links_count_where_emacs_counts_them() -> None:
    rows = [
        (link.kind, link.target, link.place, link.description, link.line) for link in org.parse(NODE).links
    ]
    assert rows == [
        ("id", "0190f1b2-7c1e-7a3b-9d3e-0123456789ac", "", "another node", 8),
        ("file", "notes.org", "*Races", "races", 17),
    ]


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("#+begin_src c\n[[id:a]]\n#+end_src\n[[id:b]]", ["b"]),
        ("#+begin_quote\n[[id:a]]\n#+end_quote", ["a"]),
        ("#+begin_example\n[[id:a]]", ["a"]),  # never closed: no block
        ("~code [[id:a]] ~ [[id:b]]~ [[id:c]]", ["c"]),
        ("a=[[id:a]]= b", ["a"]),  # no verbatim inside a word
        ("[[id:a][two\nlines]]", ["a"]),
        ("[[id:a][two\n\nparagraphs]]", []),
        ("[[id:a][b]\n* heading]]", []),
        (":PROPERTIES:\n:SEE: [[id:a]]\n:END:\n#+see: [[id:b]]", ["a", "b"]),  # as org-roam has it
        ("[[[id:a]]]", ["a"]),
        ("[[https://a.example/?q=1][page]]", ["//a.example/?q=1"]),
        ("[[#here]] [[*Heading]] [[./x.org]]", ["here", "*Heading", "./x.org"]),
    ],
)
def test_where_links_are(text: str, targets: list[str]) -> None:
    assert [link.target for link in org.parse(text).links] == targets


def test_a_file_may_name_its_own_words_for_things_to_do() -> None:
    read = org.parse("#+TODO: NEXT(n) WAIT | CUT(c)\n* NEXT a\n* CUT b\n* TODO c\n* WAIT")
    assert [(heading.todo, heading.done, heading.title) for heading in read.headings] == [
        ("NEXT", False, "a"),
        ("CUT", True, "b"),
        ("", False, "TODO c"),
        ("", False, "WAIT"),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (":PROPERTIES:\n:ID: a\n", (1, "unclosed-drawer")),
        (":PROPERTIES:\n:ID: a\n* heading\n:END:\n", (1, "unclosed-drawer")),
        (":PROPERTIES:\n:ID: a\nwords\n:END:\n", (3, "bad-property")),
        (":PROPERTIES:\n:ID:a\n:END:\n", (2, "bad-property")),
        ("\n:PROPERTIES:\n:ID: a\n:END:\n", (2, "misplaced-drawer")),
        ("* a\n\n:PROPERTIES:\n:ID: a\n:END:\n", (3, "misplaced-drawer")),
        (":PROPERTIES:\n:ID: a\n:id: b\n:END:\n", (3, "second-id")),
        (":PROPERTIES:\n:A: a\n:a: b\n:END:\n", (3, "duplicate-property")),
        (":PROPERTIES:\n:ID: a\n:END:\n* h\n:PROPERTIES:\n:ID: a\n:END:\n", (5, "duplicate-id")),
        (":END:\n", (1, "stray-end")),
        (":LOGBOOK:\n* a\n:END:\n", (1, "unclosed-drawer")),
        ("#+BEGIN_SRC c\n#+end_quote\n", (1, "unclosed-block")),
        ("**heading\n", (1, "no-heading")),
        ("*\theading\n", (1, "no-heading")),
        ("a\n[[id:x][y]\n", (2, "torn-link")),
        ("[[id:x][y [[id:z][w]]\n", (1, "torn-link")),
        ("a\r\nb\n", (1, "line-ends")),
    ],
)
def test_constructs_that_emacs_ignores_are_reported(text: str, problem: tuple[int, str]) -> None:
    assert problem in [(problem.line, problem.code) for problem in org.parse(text).problems]


def test_a_drawer_that_emacs_does_not_see_says_nothing() -> None:
    assert org.parse("\n:PROPERTIES:\n:ID: a\n:END:\n").properties == {}
    assert org.parse(":PROPERTIES:\n:ID: a\nwords\n:END:\n").properties == {}
    assert org.parse("# -*- mode: org -*-\n:PROPERTIES:\n:ID: a\n:END:\n").properties == {"ID": "a"}


def test_ordinary_text_has_no_problems() -> None:
    text = "*bold* words\n** too\n:smile:\n#hashtag\n#+name: x\n:LOGBOOK:\nCLOCK: [2026-01-01]\n:END:\n"
    assert org.parse(text.replace("** too", "** two stars ** too")).problems == ()


def test_windows_line_ends_and_a_byte_order_mark_make_no_difference() -> None:
    plain, other = org.parse(NODE), org.parse("\ufeff" + NODE.replace("\n", "\r\n"))
    assert other[:3] == plain[:3]
    assert [heading[:8] for heading in other.headings] == [heading[:8] for heading in plain.headings]
    assert [link[:5] for link in other.links] == [link[:5] for link in plain.links]
    assert [problem.line for problem in other.problems] == [problem.line for problem in plain.problems]


PIECES = st.sampled_from(
    "* a|** TODO b :x:|*|:PROPERTIES:|:ID: u1|:END:|:LOGBOOK:|#+title: T|#+begin_src c|#+end_src|#+BEGIN_QUOTE"
    "|#+END_QUOTE|text [[id:u1][d]]|=[[id:u2]]=|# c [[id:z]]|: f||- [ ] item|[[id:torn][a|SCHEDULED: <2026-01-02 Fri>"
    "|\0|\ufeff|\t:X:|[[|]]|\\[[a]]|~|= =|<2026-01-01>|\r".split("|")
)
TEXTS = st.one_of(
    st.text(max_size=200),
    st.lists(st.one_of(PIECES, st.text(max_size=20)), max_size=25).map("\n".join),
    st.lists(PIECES, max_size=25).map("\r\n".join),
    st.text(alphabet="*:#+[]=~\n\r -<>2019EeNnDdIi_|\\", max_size=120),
)


def assert_parts_in_order(text: str, read: org.OrgDocument) -> None:
    starts = [0, read.body_start, *(heading.start for heading in read.headings), len(text)]
    assert starts == sorted(starts)


@given(TEXTS)
def test_any_text_is_read_and_its_parts_are_in_order(text: str) -> None:
    read = org.parse(text)
    assert_parts_in_order(text, read)
    lines = text.count("\n") + 1
    for heading in read.headings:
        assert text.startswith("*" * heading.level + " ", heading.start)
        assert heading.start < heading.body <= heading.end <= len(text)
        assert text.count("\n", 0, heading.start) + 1 == heading.line
    for link in read.links:
        assert text.startswith("[[", link.start)
        assert text.endswith("]]", 0, link.end)
        assert text.count("\n", 0, link.start) + 1 == link.line
    assert all(1 <= problem.line <= lines for problem in read.problems)


HOSTILE = {
    "deep": "".join("*" * level + " a\n" for level in range(1, 600)),
    "stars": "*" * 200_000,
    "headings": "* a\n" * 50_000,
    "links": "[[id:a][b]] " * 17_000,
    "open links": "[[a" * 66_000,
    "open descriptions": "[[a][" * 40_000 + "\n\n]]",
    "brackets": "[" * 200_000,
    "drawers": ":PROPERTIES:\n" * 15_000,
    "drawers below headings": "* a\n:PROPERTIES:\n" * 11_000,
    "blocks": "#+begin_src\n" * 17_000,
    "blocks in blocks": "#+begin_quote\n#+begin_src\n" * 8_000,
    "ends": ":END:\n" * 33_000,
    "verbatim": " =a" * 66_000,
    "tildes": "~ [[" * 50_000,
    "colons": ":" * 200_000,
    "a long property": ":PROPERTIES:\n:" + ":" * 200_000 + " \n:END:\n",
    "keywords": "#+" + "a:" * 100_000,
    "timestamps": "<2026-01-01 " * 17_000,
    "planned": "* a\n" + "SCHEDULED: <" * 17_000,
    "spaces": "* a " + " " * 200_000 + ":a:",
    "nothing": "\0" * 200_000,
    "escapes": "[[\\" * 66_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_costs_no_more_than_its_length(name: str) -> None:
    text = HOSTILE[name]
    started = time.process_time()
    read = org.parse(text)
    spent = time.process_time() - started
    assert_parts_in_order(text, read)
    # 200 KB: what grows with the square takes minutes; the bound leaves room for a busy machine.
    assert spent < 3
