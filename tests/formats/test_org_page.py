"""What pages a file of org makes."""

import time

from hypothesis import given, strategies as st
from tests.formats.test_org import TEXTS

from quaid.formats import markdown, org
from quaid.model import plain_text, timeline


def test_headings_become_headings_and_code_becomes_code() -> None:
    made = org.read_pages(
        "* One\n** Two :tag:\n#+begin_src c\n# no heading\n```\n#+end_src\n# comment\nend\n"
    )[0]
    assert made.truth == "# One\n\n## Two :tag:\n````c\n# no heading\n```\n````\n\nend"
    assert len(plain_text.find_fences(made.truth)) == 1


def test_comments_are_left_out() -> None:
    made = org.read_pages("before\n# secret\n#+begin_comment\nsecret\n#+end_comment\nafter\n")[0]
    assert "secret" not in made.truth
    assert made.truth.split() == ["before", "after"]


def test_verbatim_brackets_are_code() -> None:
    assert org.read_pages("a =[[id:x]]= and =plain=\n")[0].truth == "a `[[id:x]]` and =plain="


def test_dated_headings_leave_the_truth_for_the_timeline() -> None:
    text = (
        "* Log\n** 2026-05-24 Sunday\nRain.\n** [2026-05-25 Mon 10:00] Sun\n*** Detail\nwarm\n"
        "** TODO Visit <2026-07-01 Wed>\n** 2026-13-45 no date\n* 2026-05-26\nDry.\n"
    )
    made = org.read_pages(text)[0]
    entries = [each[:4] for each in timeline.parse(made.timeline)]
    assert entries == [
        ("2026-05-24", "", "Rain.", ""),
        ("2026-05-25", "", "Sun", "*** Detail\nwarm"),
        ("2026-05-26", "", "Dry.", ""),
    ]
    assert "# Log" in made.truth
    assert "## 2026-13-45 no date" in made.truth
    assert "- [ ] Visit <2026-07-01 Wed>" in made.truth


def test_nodes_within_nodes_each_have_their_own_text() -> None:
    text = (
        "#+filetags: :f:\n* A :a:\n:PROPERTIES:\n:ID: a\n:END:\nin a\n** B :b:\n:PROPERTIES:\n:ID: b\n:END:\nin b\n"
        "*** C\nstill b\n** D\nagain a\n* E\nfile\n"
    )
    page, (a, b), _ = org.read_pages(text)
    assert page.truth == "# A\n\n[[id:a][A]]\n\n# E\nfile"
    assert a.truth == "in a\n\n# B\n\n[[id:b][B]]\n\n# D\nagain a"
    assert b.truth == "in b\n\n# C\nstill b"
    assert (a.frontmatter["tags"], b.frontmatter["tags"]) == (["f", "a"], ["f", "a", "b"])


@given(TEXTS)
def test_any_text_makes_pages_and_the_same_ones_with_windows_line_ends(text: str) -> None:
    page, nodes, _ = org.read_pages(text)
    for part in (page, *nodes):
        assert markdown.normalize_part(part.truth) == part.truth
        assert all(isinstance(key, str) for key in part.frontmatter)
    plain = text.replace("\r", "")
    assert org.read_pages(plain.replace("\n", "\r\n"))[:2] == org.read_pages(plain)[:2]


@given(
    st.lists(st.sampled_from(["alpha", "beta", "* gamma", "** delta", "- [ ] zeta", "| eta |"]), max_size=12)
)
def test_no_word_of_plain_org_is_lost(lines: list[str]) -> None:
    truth = org.read_pages("\n".join(lines))[0].truth
    words = "\n".join(lines).replace("*", "#").split()
    assert truth.split() == words


def test_many_headings_and_patches_cost_no_more_than_their_length() -> None:
    text = "* a\n# comment\n=[[id:x]]=\n" * 10_000
    started = time.process_time()
    org.read_pages(text)
    assert time.process_time() - started < 4
