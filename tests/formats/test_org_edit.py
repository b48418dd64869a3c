"""An edit of an org file changes what it must, and no other byte."""

import pytest
from hypothesis import assume, given, strategies as st

from quaid.errors import InvalidArgument
from quaid.formats import org

FILE = (
    "# -*- mode: org -*-\r\n"
    ":PROPERTIES:\r\n"
    "  :ID:       u1   \r\n"
    ":Custom:  kept\r\n"
    ":END:\r\n"
    "#+TITLE:   Old title  \r\n"
    "#+filetags: :a:\r\n"
    "\r\n"
    "See [[id:u1][me]], [[id:u2]] and =[[id:u1]]=.  \r\n"
    "* heading\t\r\n"
    "no line end"
)


@pytest.mark.parametrize(
    ("edit", "before", "after"),
    [
        (lambda text: org.set_property(text, "id", "u9"), ":ID:       u1 ", ":ID:       u9 "),
        (lambda text: org.set_property(text, "CUSTOM", ""), ":Custom:  kept\r\n", ":Custom:\r\n"),
        (
            lambda text: org.set_property(text, "KIND", "fact"),
            ":END:\r\n#",
            ":KIND:     fact\r\n:END:\r\n#",
        ),
        (lambda text: org.remove_property(text, "custom"), ":Custom:  kept\r\n", ""),
        (lambda text: org.set_title(text, "New"), "Old title", "New"),
        (lambda text: org.set_filetags(text, ["b", "c"]), ":a:", ":b:c:"),
        (lambda text: org.set_filetags(text, []), "#+filetags: :a:\r\n", ""),
        (lambda text: org.append_lines(text, ["- more"]), "no line end", "no line end\r\n- more\r\n"),
        (lambda text: org.replace_id(text, "u1", "u7"), "[[id:u1][me]]", "[[id:u7][me]]"),
    ],
)
def test_one_thing_changes(edit: "object", before: str, after: str) -> None:
    assert FILE.count(before) == 1
    assert edit(FILE) == FILE.replace(before, after)  # type: ignore[operator]


def test_a_file_without_a_head_gets_one_where_emacs_looks_for_it() -> None:
    text = org.set_title("# -*- mode: org -*-\nwords\n", "T")
    text = org.set_filetags(text, ["a"])
    text = org.set_property(text, "ID", "u1")
    assert text == (
        "# -*- mode: org -*-\n:PROPERTIES:\n:ID:       u1\n:END:\n#+title: T\n#+filetags: :a:\nwords\n"
    )
    assert org.set_property("\ufeffwords", "ID", "u1") == "\ufeff:PROPERTIES:\n:ID:       u1\n:END:\nwords"


def test_a_drawer_that_cannot_be_read_is_not_hidden_by_a_second_one() -> None:
    with pytest.raises(InvalidArgument, match="line 3"):
        org.set_property(":PROPERTIES:\n:ID: a\nwords\n:END:\n", "KIND", "x")


@pytest.mark.parametrize("name", ["", "a b", "END", "a:b"])
def test_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument):
        org.set_property("", name, "x")


def test_value_with_a_line_break_is_refused() -> None:
    with pytest.raises(InvalidArgument):
        org.set_title("", "two\nlines")
    with pytest.raises(InvalidArgument):
        org.set_filetags("", ["two words"])


WORDS = st.text(alphabet="abc :[]*#+=~", min_size=1, max_size=20).map(str.strip).filter(bool)
LINES = st.lists(
    st.sampled_from(
        "# c|:PROPERTIES:|:ID: u1|:KEY: v |:END:|#+title: T|#+FILETAGS: :a:|* a|words|[[id:u1][x]]||  - item".split(
            "|"
        )
    ),
    max_size=12,
)
FILES = st.builds(
    lambda lines, end, last: end.join(lines) + last, LINES, st.sampled_from(["\n", "\r\n"]), st.just("")
)


@given(FILES, WORDS)
def test_property_edit_changes_only_that_property(text: str, value: str) -> None:
    before = org.parse(text)
    try:
        done = org.set_property(text, "NEW", value)
    except InvalidArgument:
        assume(False)
    read = org.parse(done)
    assert read.properties == {**before.properties, "NEW": value}
    assert (read.title, read.filetags, len(read.headings)) == (
        before.title,
        before.filetags,
        len(before.headings),
    )
    assert org.set_property(done, "NEW", value) == done
    gone = org.remove_property(done, "NEW")
    if before.drawer is not None and not before.properties:  # an empty drawer goes with what was put into it
        start, end = before.drawer
        assert gone == text[:start] + text[end:]
    else:
        assert gone == text or not text.endswith("\n")
    titled = org.set_title(done, value)
    assert org.parse(titled).title == value
    assert org.replace_id(text, "u1", "u2") == text.replace("[[id:u1]", "[[id:u2]")
