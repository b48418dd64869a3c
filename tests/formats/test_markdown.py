"""The shape of a page: what parse splits, render puts together again."""

import time
from typing import Any

import pytest
from hypothesis import assume, example, given, settings, strategies as st

from quaid.formats import markdown
from quaid.formats.markdown import MarkdownDocument, decode, parse, render
from quaid.model.plain_text import close_fence


def test_a_whole_page_has_three_parts() -> None:
    text = "---\ntitle: Alice\n---\n\n# Alice\n\nTruth.\n\n---\n\n- 2024-03-01 — Met.\n\n---\n\nmore\n"
    assert parse(text) == MarkdownDocument(
        {"title": "Alice"}, "# Alice\n\nTruth.", "- 2024-03-01 — Met.\n\n---\n\nmore", None
    )
    assert render(*parse(text)[:3]) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ({}, "", "")),
        ("\n \n\t\n", ({}, "", "")),
        ("just text", ({}, "just text", "")),
        ("\ufeff---\na: 1\n---\nx", ({"a": 1}, "x", "")),
        ("---\r\na: 1\r\n---\r\nx\r\ny\rz\r\n", ({"a": 1}, "x\ny\nz", "")),
        ("---  \na: 1\n...\t\nx", ({"a": 1}, "x", "")),
        ("+++\na = 1\n+++\nx\n---\ny", ({"a": 1}, "x", "y")),
        ("---\n---\nx", ({}, "x", "")),
        ("---\n# note\n---\nx", ({}, "x", "")),
        ("---", ({}, "", "")),
        ("\n---\n- 2026-04-25 — Met.", ({}, "", "- 2026-04-25 — Met.")),
        ("\n\n---\na: 1\n---\nx", ({"a": 1}, "x", "")),
        ("\n---\nwords\n---\nx", ({}, "", "words\n---\nx")),
        ("x\n---  \ny", ({}, "x", "y")),
        ("x\n--- \t\n\n\ny\n\n", ({}, "x", "y")),
        ("x\n ---\ny", ({}, "x\n ---\ny", "")),
        ("x\n----\n- - -\n***\ny", ({}, "x\n----\n- - -\n***\ny", "")),
        ("```\n---\n```\n---\ny", ({}, "```\n---\n```", "y")),
        ("~~~\n---\n```\n---\n~~~\n---\ny", ({}, "~~~\n---\n```\n---\n~~~", "y")),
        ("```\n---\nnever closed", ({}, "```\n---\nnever closed", "")),
        ("    indented first line\n", ({}, "    indented first line", "")),
        ("\n\n  x  \n\n", ({}, "  x  ", "")),
    ],
)
def test_parse(text: str, expected: tuple[dict[str, Any], str, str]) -> None:
    document = parse(text)
    assert document[:3] == expected
    assert document.problem is None
    assert parse(render(*expected))[:3] == expected


@pytest.mark.parametrize(
    ("block", "problem"),
    [("a: [1\nb: 2", "line 2"), ("- a\n- b", "a list"), ("words", "plain text"), ("a: &x 1\nb: *x", "alias")],
)
def test_front_matter_that_cannot_be_read_is_kept_as_written(block: str, problem: str) -> None:
    text = f"---\n{block}\n---\n\nbody\n\n---\n\ntimeline\n"
    document = parse(text)
    assert document[:3] == ({"_unparsed": block}, "body", "timeline")
    assert document.problem is not None
    assert problem in document.problem
    assert render(*document[:3]) == text


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("---\nno end\n", "no end"),
        ("---\ntitle: x\n\n# T\n\n- 2026-04-25 — Met.\n", "title: x\n\n# T\n\n- 2026-04-25 — Met."),
        ("\ufeff---\r\ntitle: x\r\n", "title: x"),
        ("+++\nno end", "+++\nno end"),
    ],
)
def test_front_matter_that_is_never_closed_is_text(text: str, truth: str) -> None:
    document = parse(text)
    assert document[:3] == ({}, truth, "")
    assert document.problem is not None
    assert document.problem.startswith("line 1 opens it with ")
    assert parse(render({}, truth, "")) == ({}, truth, "", None)


def test_toml_that_cannot_be_read_keeps_its_fences() -> None:
    text = "+++\na: 1\n+++\n\nbody\n"
    document = parse(text)
    assert document.frontmatter == {"_unparsed": "a: 1", "_fence": "+++"}
    assert document.problem is not None
    assert document.problem.startswith("line 2: ")
    assert render(*document[:3]) == text


@pytest.mark.parametrize("value", ["a: 1", "words\n---\nmore", 5, "", "a: [", "x\n"])
def test_an_honest_key_named_unparsed_survives(value: Any) -> None:
    for values in (
        {"_unparsed": value},
        {"_unparsed": value, "other": 1},
        {"_unparsed": value, "_fence": "***"},
    ):
        assert parse(render(values, "t", "l"))[:3] == (values, "t", "l")


def test_render_adds_an_empty_block_only_where_the_body_would_be_misread() -> None:
    assert render({}, "x", "") == "x\n"
    assert render({}, "", "") == ""
    assert render({}, "", "y") == "---\n---\n\n---\n\ny\n"
    assert render({}, "+++\nx", "") == "---\n---\n\n+++\nx\n"
    assert render({"a": 1}, "", "") == "---\na: 1\n---\n"


def test_a_fence_left_open_is_closed_before_the_timeline() -> None:
    assert close_fence("~~~~ py\nx") == "~~~~ py\nx\n~~~~"
    assert close_fence("```\nx\n```") == "```\nx\n```"
    assert parse(render({}, "~~~~ py\nx", "y"))[:3] == ({}, "~~~~ py\nx\n~~~~", "y")
    assert parse(render({}, "~~~~ py\nx", ""))[:3] == ({}, "~~~~ py\nx", "")


def test_a_truth_with_a_divider_is_recognised() -> None:
    assert markdown.has_divider("a\r\n---\r\nb")
    assert markdown.has_divider("---")
    assert not markdown.has_divider("```\n---\n```\n ---\n----")


# fmt: off
LINES = st.sampled_from([
    "---", "--- ", "---\t", "+++", "...", "```", "~~~", "````", "``` py", "   ~~~", "    ```", "``` `", "",
    " ", "\t", "a: 1", "a: [", "text", "- a", "\ufeff", "> q", "# h", "\u2028", "\x85x", "  x  ", "\x0c",
    "----",
])
# fmt: on
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])
PAGES = (
    st.lists(st.tuples(LINES, ENDS), max_size=25).map(lambda lines: "".join(a + b for a, b in lines))
    | st.text()
)


@given(PAGES)
@settings(max_examples=400)
@example("\ufeff\ufeffx")
@example("---\n---\n---\n---\n---\n")
def test_a_page_reads_the_same_after_it_is_rendered(text: str) -> None:
    document = parse(text)
    if document.problem and not document.frontmatter:
        document = document._replace(problem=None)  # it was never closed, and is text now
    assert parse(render(*document[:3])) == document


TEXT = st.text(max_size=20) | st.sampled_from(
    ["yes", "~", "012", "1e3", "2024-01-01", "a: b", "- a", "# a", "x\ny", "---"]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)
MAPPINGS = st.dictionaries(TEXT | st.sampled_from(["_unparsed", "_fence"]), VALUES, max_size=4)


@given(MAPPINGS, PAGES, PAGES)
@settings(max_examples=200)
def test_any_front_matter_with_any_sound_truth_and_timeline_survives(
    frontmatter: dict[str, Any], truth: str, timeline: str
) -> None:
    truth, timeline = markdown.normalize_part(truth), markdown.normalize_part(timeline)
    assume(not markdown.has_divider(truth))
    truth = close_fence(truth)
    assert parse(render(frontmatter, truth, timeline))[:3] == (frontmatter, truth, timeline)


@given(PAGES)
def test_rendering_settles_at_once(text: str) -> None:
    once = render(*parse(text)[:3])
    assert render(*parse(once)[:3]) == once


@pytest.mark.parametrize(
    ("data", "text", "mended"),
    [
        (b"", "", None),
        ("häß 知识".encode(), "häß 知识", None),
        ("\ufeffx".encode(), "x", None),
        ("\ufeffx\u00e4".encode("utf-16-le"), "xä", None),
        ("\ufeffx\U0001f389".encode("utf-16-be"), "x🎉", None),
        (b"\xff\xfex\0y", "x\ufffd", "not UTF-16: 1 byte replaced"),
        (b"\xc3\xa9 caf\xe9 \xe2\x82 x", "\xe9 caf\ufffd \ufffd x", "not UTF-8: 3 bytes replaced"),
        (b"a\0b\0", "a\ufffdb\ufffd", "2 NUL characters replaced"),
        (b"\0\xff", "\ufffd\ufffd", "not UTF-8: 1 byte replaced; 1 NUL character replaced"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd", "not UTF-8: 3 bytes replaced"),
    ],
)
def test_bytes_are_decoded_and_repairs_are_reported(data: bytes, text: str, mended: str | None) -> None:
    assert decode(data) == (text, mended)


@given(st.binary())
def test_any_bytes_decode_to_text_that_can_be_stored(data: bytes) -> None:
    text, mended = decode(data)
    assert "\0" not in text
    assert text.encode("utf-8").decode("utf-8") == text
    if mended is None and data[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        assert text.encode("utf-8") == data.removeprefix(b"\xef\xbb\xbf")


@pytest.mark.parametrize(
    "unit", ["---\n", "```\n", "`", "~~~\n---\n", "\n", " ", "---\n---\n", "+++\n", "\r", "--- a\n", " \n"]
)
def test_hostile_repetition_is_parsed_in_linear_time(unit: str) -> None:
    text = unit * (400_000 // len(unit))
    start = time.process_time()
    document = parse(text)
    render(*document[:3])
    assert time.process_time() - start < 2


def test_old_windows_text_is_read_as_such() -> None:
    assert markdown.decode("# Café – naïve".encode("cp1252")) == (
        "# Café – naïve",
        "not UTF-8: read as Windows-1252",
    )


def test_one_bad_byte_does_not_turn_the_rest_into_another_code_page() -> None:
    text, mended = markdown.decode("# Café ".encode() + b"\xe9")
    assert text.startswith("# Café ")
    assert mended is not None
    assert "replaced" in mended
